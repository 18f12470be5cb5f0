"""The strength that a fit assumes by itself: the norm of least squares, at any size."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from spgls import Floor, Population, StackelbergRegressor, solve
from spgls.matrix.rough import rough_square
from spgls.reduction import KrylovSpace
from spgls.reduction.data import GameData
from spgls.solvers import Controls
from spgls.solvers.auto import chosen_solver
from spgls.solvers.iterative.curvature import Curvature
from spgls.solvers.krylov import Krylov
from spgls.solvers.reach import reach_of_least_squares
from spgls.solvers.registry import resolve
from spgls.solvers.spectral import Spectral

EXTEND = KrylovSpace.extend


def game(m=300, n=40, seed=0, **options):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, n))
    y = X @ rng.normal(size=n) + rng.normal(size=m)
    return GameData.from_user(X, y, np.maximum(y, 0.0), **options)


def reach(data, solver):
    return reach_of_least_squares(data, solver, Controls())


TOLD = {
    "plain": {},
    "intercept": {"fit_intercept": True},
    "weights": {"fit_intercept": True, "sample_weight": np.linspace(0.0, 2.0, 300)},
    "costs": {"feature_cost": np.append(np.geomspace(0.1, 10.0, 37), [np.inf] * 3)},
}


@pytest.mark.parametrize("told", TOLD)
@pytest.mark.parametrize("squares", [True, False])
def test_products_lead_to_the_norm_that_a_decomposition_finds(told, squares, monkeypatch):
    if not squares:
        monkeypatch.setattr("spgls.solvers.iterative.curvature.MOST_COLUMNS", 0)
    exact = reach(game(**TOLD[told]), Spectral())
    found = reach(game(**TOLD[told]), Krylov())
    assert found.rule == exact.rule == "least squares"
    assert found.value == pytest.approx(exact.value, rel=1e-6)
    assert abs(found.value / exact.value - 1.0) <= 10 * found.accuracy + 1e-12
    assert found.accuracy <= 1e-6


def test_a_default_fit_takes_few_products_where_an_inverse_is_known(monkeypatch):
    """Squared columns prove the optimum; their factor leads to it as well."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 450))
    y = X @ rng.normal(scale=0.05, size=450) + rng.normal(size=600)
    goal = Floor(float(np.median(y)))

    def fitted(solver):
        steps = []
        monkeypatch.setattr(
            KrylovSpace, "extend", lambda space: steps.append(space) or EXTEND(space)
        )
        return StackelbergRegressor(goal=goal, solver=solver).fit(X, y), len(steps)

    (found, products), (exact, _) = fitted("krylov"), fitted("spectral")
    assert products <= 10
    assert found.certificate_.kind == "proved"
    assert found.gamma_ == pytest.approx(exact.gamma_, rel=1e-9)
    assert found.objective_ == pytest.approx(exact.objective_, rel=1e-9)
    monkeypatch.setattr("spgls.solvers.iterative.curvature.MOST_COLUMNS", 0)
    assert fitted("krylov")[1] > 3 * products


def many_columns(collinear=False):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 450))
    if collinear:
        X[:, 1] = X[:, 0] + 1e-2 * rng.normal(size=900)
    return X, X @ rng.normal(scale=0.05, size=450) + rng.normal(size=900)


@pytest.fixture
def squared(monkeypatch):
    """Squares in double precision that were made."""
    made, begin = [], Curvature.__init__
    monkeypatch.setattr(
        Curvature, "__init__", lambda own, *told: made.append(own) or begin(own, *told)
    )
    return made


@pytest.mark.parametrize("collinear", [False, True])
def test_many_columns_are_squared_in_double_precision_where_single_is_not_enough(
    collinear, squared
):
    """A rough inverse leads to least squares, and a multiplier above zero proves the optimum."""
    X, y = many_columns(collinear)
    found = StackelbergRegressor(goal=Floor(1.0), solver="krylov").fit(X, y)
    assert bool(squared) == collinear
    assert found.certificate_.kind == "proved"
    assert found.certificate_.relative_gap <= 1e-9
    w = np.linalg.lstsq(X - X.mean(axis=0), y, rcond=None)[0]
    assert found.gamma_ == pytest.approx(w @ w, rel=1e-6)


def test_many_columns_are_squared_where_multipliers_above_zero_do_not_prove_the_optimum(squared):
    X, y = many_columns()
    game = X, y, y + 1.0, Population.mixed(0.1, 0.5)
    found, exact = (
        solve(*game, solver=name, fit_intercept=True) for name in ("krylov", "spectral")
    )
    assert len(squared) == 1
    assert found.certificate.kind == "proved"
    assert found.certificate.relative_gap <= 1e-9
    assert found.objective == pytest.approx(exact.objective, rel=1e-9)


@pytest.mark.parametrize("told", TOLD)
@pytest.mark.parametrize("order", ["C", "F"])
def test_rough_squares_are_those_of_projected_data(told, order):
    rng = np.random.default_rng(0)
    X = np.asarray(rng.normal(size=(300, 40)) * np.geomspace(1e-3, 1e3, 40) + 3.0, order=order)
    y = rng.normal(size=300)
    data = GameData.from_user(X, y, y + 1.0, **TOLD[told])
    square, scale = rough_square(data.projected)
    exact = scale[:, None] * data.projected.square() * scale
    np.testing.assert_allclose(np.triu(square), np.triu(exact), atol=1e-5)
    np.testing.assert_allclose(np.diagonal(square), 1.0, atol=1e-5)


@pytest.mark.parametrize("solver", [Spectral(), Krylov()])
def test_directions_that_the_data_hardly_shows_do_not_decide(solver):
    """Two columns that differ by 1e-5, and labels that happen to depend on the difference."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 5))
    X = np.column_stack([X, X[:, 0] + 1e-5 * rng.normal(size=200)])
    y = X[:, :5] @ np.arange(1.0, 6.0) + 0.1 * rng.normal(size=200)
    found = reach(GameData.from_user(X, y, y + 1.0), solver)
    w = np.linalg.lstsq(X[:, :5], y, rcond=None)[0]
    assert np.sum(np.linalg.lstsq(X, y, rcond=None)[0] ** 2) > 100 * (w @ w)
    assert found.rule == "10 times 99% of least squares"
    # The two columns share one coefficient.
    assert w @ w / 2 <= found.value <= 10.1 * (w @ w)


def nearly_collinear(distance, m, n):
    rng = np.random.default_rng(n)
    X = rng.normal(size=(m, n))
    X[:, -1] = X[:, 0] + distance * rng.normal(size=m)
    y = X[:, :5].sum(axis=1) + rng.normal(size=m)
    return GameData.from_user(X, y, y + 1.0)


@pytest.mark.parametrize("squares", [True, False])
@pytest.mark.parametrize("shape", [(60, 12), (300, 40), (900, 200)], ids=str)
@pytest.mark.parametrize("distance", [1e-1, 1e-2, 1e-3, 1e-4, 1e-5])
def test_what_is_told_of_nearly_collinear_columns_is_true(distance, shape, squares, monkeypatch):
    """A norm that stands still is not the limit while a weak direction has not been found."""
    if not squares:
        monkeypatch.setattr("spgls.solvers.iterative.curvature.MOST_COLUMNS", 0)
    exact = reach(nearly_collinear(distance, *shape), Spectral())
    found = reach(nearly_collinear(distance, *shape), Krylov())
    assert found.rule == exact.rule
    assert exact.cut == 0.0
    assert found.cut <= distance or found.rule != "least squares"
    assert abs(found.value / exact.value - 1.0) <= found.accuracy + exact.accuracy


@pytest.mark.parametrize("distance", [1e-3, 1e-4])
def test_a_decomposition_tells_what_rounding_leaves_of_weak_directions(distance):
    """All of the labels lie along the difference of two columns."""
    rng = np.random.default_rng(4)
    half = rng.integers(-8, 8, size=(40, 2)) / 8.0
    X = np.column_stack([half[:, 0], half[:, 0] + distance * half[:, 1]])
    y = 1e3 * (X[:, 1] - X[:, 0])
    found = reach(GameData.from_user(X, y, y + 1.0), Spectral())
    assert found.rule == "least squares"
    assert abs(found.value / 2e6 - 1.0) <= found.accuracy
    assert found.accuracy > 1e-9


@pytest.mark.parametrize("solver", [Spectral(), Krylov()])
def test_directions_that_are_left_out_are_told(solver):
    found = reach(nearly_collinear(1e-9, 300, 40), solver)
    assert 0.0 < found.cut <= 1e-2
    assert "where rows vary by more than" in str(found)
    wide = GameData.from_user(np.eye(3, 5), np.arange(3.0), np.ones(3))
    assert reach(wide, solver).cut == 0.0


@pytest.mark.parametrize("solver", [Spectral(), Krylov()])
def test_more_columns_than_rows(solver):
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(40, 90)), rng.normal(size=40)
    found = reach(GameData.from_user(X, y, y + 1.0), solver)
    assert found.value == pytest.approx(np.sum((np.linalg.pinv(X) @ y) ** 2), rel=1e-6)


@pytest.mark.parametrize("solver", [Spectral(), Krylov()])
def test_nothing_to_explain(solver):
    X, y = np.eye(6)[:, :2], np.eye(6)[:, 5]
    assert reach(GameData.from_user(X, y, y + 1.0), solver).value == 0.0
    data = GameData.from_user(X, y, y + 1.0, feature_cost=[np.inf, np.inf])
    assert reach(data, solver).value == 0.0


def large():
    rng = np.random.default_rng(3)
    X = sp.random_array((6000, 4000), density=0.004, random_state=rng, format="csr")
    y = X @ rng.normal(size=4000) + rng.normal(size=6000)
    return X, y


def test_a_fit_goes_on_where_its_strength_was_measured():
    X, y = large()
    model = StackelbergRegressor(goal=Floor(0.0), solver="krylov").fit(X, y)
    given = StackelbergRegressor(model.gamma_, goal=Floor(0.0), solver="krylov").fit(X, y)
    assert model.gamma_rule_.startswith("least squares, to ")
    assert given.gamma_rule_ == "given"
    assert model.objective_ == pytest.approx(given.objective_, rel=1e-8)
    # Measuring the norm takes products, but the fit hardly any more of them.
    assert model.n_iter_ <= given.n_iter_


def test_the_choice_is_that_of_the_fit():
    X, y = large()
    data = GameData.from_user(X, y, y + 1.0)
    assert isinstance(chosen_solver(resolve("auto"), data), Krylov)
    assert isinstance(chosen_solver(resolve("auto"), game()), Spectral)
    assert isinstance(chosen_solver(resolve("spectral"), data), Spectral)


def test_an_interrupt_ends_it_at_the_next_product(monkeypatch):
    X, y = large()
    products = []

    def interrupted(self, *_):
        products.append(1)
        if len(products) == 5:
            raise KeyboardInterrupt
        return original(self, *_)

    from spgls.matrix.lazy import ProjectedMatrix

    original = ProjectedMatrix.gram
    monkeypatch.setattr(ProjectedMatrix, "gram", interrupted)
    model = StackelbergRegressor(goal=Floor(0.0), solver="krylov")
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert len(products) == 5
    assert not [name for name in vars(model) if name[-1] == "_"]
