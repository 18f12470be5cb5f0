"""Reductions from sums alone: no row in memory, and the same game as from the rows."""

from __future__ import annotations

from dataclasses import astuple

import numpy as np
import pytest
import scipy.sparse as sp

from spgls import solve
from spgls.game.providers import priced_norm
from spgls.reduction.data import GameData
from spgls.reduction.exact import reduce_by_gram, reduce_by_qr
from spgls.reduction.layout import Layout
from spgls.reduction.second_moments import reduce_moments
from spgls.reduction.sums import Origin, Sizes, triangle
from spgls.reduction.triangular import reduce_triangle
from spgls.sphere import solve_sphere

inf = np.inf
M, N = 120, 6
rng = np.random.default_rng(0)
X = rng.normal(size=(M, N)) * [1.0, 2.0, 0.5, 3.0, 1.0, 0.1] + [0.0, 5.0, -1.0, 20.0, 0.0, 1.0]
y = X @ [1.0, -0.5, 2.0, 0.3, 0.0, 1.0] + rng.normal(size=M)
z = np.maximum(y, np.median(y))
COSTS = {
    "no costs": None,
    "costs": np.array([1.0, 3.0, 0.5, 2.0, 4.0, 1.0]),
    "immutable": np.array([1.0, inf, 0.5, 2.0, inf, 1.0]),
}
ORIGINS = [Origin(X.mean(axis=0), float(y.mean()), float(z.mean())), Origin(X[0], 1.0, 2.0)]
ENGINES = {"moments": reduce_by_gram, "triangle": reduce_by_qr}


def columns(layout: Layout, weight, origin: Origin, some=slice(None)):
    """Rows to add up, written down as the definition has them."""
    row = 0.0 if origin.row is None else origin.row
    parts = [X - row, y - origin.y, z - origin.z, *[np.ones(M)] * layout.fit_intercept]
    return (np.sqrt(weight)[:, None] * np.column_stack(parts))[some]


def add_up(layout, weight, origin, engine):
    """Sums of three parts of the rows, merged; the rows are forgotten."""
    parts = [columns(layout, weight, origin, slice(at, at + 50)) for at in range(0, M, 50)]
    if engine == "moments":
        return reduce_moments(layout, sum(part.T @ part for part in parts), origin, 1000)
    return reduce_triangle(layout, np.vstack([triangle(part) for part in parts]), origin, 1000)


CASES = [
    pytest.param(Layout(N, cost, intercept), origin, weight, engine)
    for cost in COSTS.values()
    for intercept in (False, True)
    for origin in (ORIGINS if intercept else [Origin()])
    for weight in (np.ones(M), rng.integers(0, 4, M).astype(float))
    for engine in ENGINES
]


def data_of(layout, weight):
    how = {"fit_intercept": layout.fit_intercept, "feature_cost": layout.cost}
    return GameData.from_user(X, y, z, sample_weight=weight, **how)


@pytest.mark.parametrize(("layout", "origin", "weight", "engine"), CASES)
class TestSumsAlone:
    def test_the_same_game(self, layout, origin, weight, engine):
        found = add_up(layout, weight, origin, engine).game
        game = ENGINES[engine](data_of(layout, weight)).game
        order, other = np.argsort(found.sigma), np.argsort(game.sigma)
        np.testing.assert_allclose(found.sigma[order], game.sigma[other], rtol=1e-11)
        sign = np.sign(found.eta[order] * game.eta[other])
        for mine, its in ((found.eta, game.eta), (found.zeta, game.zeta)):
            size = np.linalg.norm(its)
            np.testing.assert_allclose(mine[order], sign * its[other], atol=1e-11 * size)
        for name in ("r_yy", "r_yz", "r_zz", "free_gap"):
            unit = 1e-11 * (game.yy + game.zz + game.free_gap)
            assert getattr(found, name) == pytest.approx(getattr(game, name), abs=unit)
        assert found.nullity == game.nullity == 0

    def test_the_same_way_back(self, layout, origin, weight, engine):
        found, data = add_up(layout, weight, origin, engine), data_of(layout, weight)
        kept = ENGINES[engine](data)
        # Of coordinates that do not depend on the signs of singular vectors.
        v = [reduction.lift_span(reduction.game.eta) for reduction in (found, kept)]
        np.testing.assert_allclose(*v, rtol=1e-10)
        alpha = np.array([0.0, 0.3, 7.0])
        many = [np.outer(each, [1.0, -2.0, 0.1]) for each in v]
        fixed = [r.free_part(b, alpha) for r, b in zip((found, kept), many, strict=True)]
        np.testing.assert_allclose(*fixed, rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(fixed[0], data.free_coefficients(many[0], alpha), atol=1e-9)
        coef = layout.coefficients(many[0], fixed[0])
        wanted = data.best_intercepts(coef, alpha)
        for reduction in (found, kept):
            np.testing.assert_allclose(reduction.intercepts(coef, alpha), wanted, atol=1e-10)

    def test_the_same_solution(self, layout, origin, weight, engine):
        gamma, reduction = 2.0, add_up(layout, weight, origin, engine)
        small = solve_sphere(reduction.game, gamma)
        v = reduction.lift(small.x / small.s, small.fill / small.s)
        coef = layout.coefficients(v, reduction.free_part(v, small.alpha))
        how = {"fit_intercept": layout.fit_intercept, "feature_cost": layout.cost}
        wanted = solve(X, y, z, gamma, sample_weight=weight, **how)
        np.testing.assert_allclose(coef, wanted.coef, rtol=1e-9, atol=1e-10)
        assert small.value == pytest.approx(wanted.objective, rel=1e-11)
        alpha = priced_norm(coef, layout.cost) / gamma
        intercept = reduction.intercepts(coef[:, None], np.array([alpha]))
        np.testing.assert_allclose(intercept, [wanted.intercept], rtol=1e-9, atol=1e-10)

    def test_the_same_rounding(self, layout, origin, weight, engine):
        found, data = add_up(layout, weight, origin, engine), data_of(layout, weight)
        sizes = list(astuple(data.sizes))
        if not layout.fit_intercept:
            sizes[-1] = 0.0
        np.testing.assert_allclose(astuple(found.sizes), sizes, rtol=1e-12)
        kept = ENGINES[engine](data)
        coef, how = rng.normal(size=N), {"s": 0.4, "c": 0.6}
        if origin.row is None:
            np.testing.assert_allclose(found.raw, kept.raw, rtol=1e-12)
        mine, its = (r.evaluation_rounding(coef, 0.0, 3.0, **how) for r in (found, kept))
        # An origin away from the mean counts twice.
        assert its / 2 <= mine <= 2 * its


def test_sizes_of_few_rows_and_of_moments():
    rows = columns(Layout(N, None, True), np.ones(M), ORIGINS[1])[:, N:]
    found = Sizes.from_moments(rows.T @ rows, ORIGINS[1])
    np.testing.assert_allclose(astuple(found), astuple(Sizes.from_rows(rows, ORIGINS[1])))
    assert found.weight == pytest.approx(M)
    assert found.gap == pytest.approx(np.sum((y - z) ** 2))


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("intercept", [False, True])
def test_goals_that_differ_by_a_constant_are_labels(kind, intercept):
    shift = 2.0 if intercept else 0.0
    data = GameData.from_user(kind(X), y, y + shift, fit_intercept=intercept)
    for reduce in ENGINES.values():
        game = reduce(data).game
        np.testing.assert_array_equal(game.eta, game.zeta)
        assert game.r_yy == game.r_yz == game.r_zz
        assert game.free_gap == pytest.approx(M * shift**2, abs=1e-9)


def test_an_immutable_column_that_is_hardly_more_than_constant_is_left_to_the_triangle():
    # Its mean lies far from the origin: squares keep no digit of what it varies by.
    table = np.column_stack([X[:, 0], 1.0 + 1e-5 * X[:, 2]])
    rows = np.column_stack([table, y - y.mean(), z - y.mean(), np.ones(M)])
    layout = Layout(2, np.array([1.0, inf]), fit_intercept=True)
    origin = Origin(np.zeros(2), float(y.mean()), float(y.mean()))
    assert reduce_moments(layout, rows.T @ rows, origin, len(rows)) is None
    found = reduce_triangle(layout, rows, origin, len(rows))
    how = {"fit_intercept": True, "feature_cost": layout.cost}
    wanted = solve(table, y, z, 2.0, **how)
    small = solve_sphere(found.game, 2.0)
    v = found.lift(small.x / small.s, 0.0)
    coef = layout.coefficients(v, found.free_part(v, small.alpha))
    np.testing.assert_allclose(coef, wanted.coef, rtol=1e-7)


def test_a_column_that_ones_explain_has_no_coefficient():
    layout = Layout(2, np.array([1.0, inf]), fit_intercept=True)
    rows = np.column_stack([X[:, 0], np.full(M, 3.0), y, z, np.ones(M)])
    # Second moments about another point than the constant cannot tell it from one that varies.
    assert reduce_moments(layout, rows.T @ rows, Origin(), len(rows)) is None
    shifted = rows - np.array([0.0, 3.0, 0.0, 0.0, 0.0])
    origin = Origin(np.array([0.0, 3.0]), 0.0, 0.0)
    for found in (
        reduce_moments(layout, shifted.T @ shifted, origin, len(rows)),
        reduce_triangle(layout, rows, Origin(), len(rows)),
    ):
        assert found is not None
        v = found.lift_span(found.game.eta)
        assert found.free_part(v, 0.5) == [0.0]
