"""Numbers near the ends of double precision: told in units that hold them, or refused by name."""

from __future__ import annotations

import warnings
from fractions import Fraction
from math import inf

import numpy as np
import pytest

from spgls import (
    Between,
    GameStatistics,
    Population,
    StackelbergRegressor,
    Status,
    certify,
    levers,
    solve,
    solve_path,
)

HALF = Population.mixed(1.0, 0.5)


def plain_game(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(12, 3))
    y = X @ [1.0, -0.5, 0.3] + 0.2 * rng.normal(size=12)
    return X, y, y + 1.0 + rng.normal(size=12)


def exact_loss(X, y, z, weight, gamma, coef):
    """A predictor's weighted sum of squares against one strength, without rounding."""
    coef = [Fraction(float(w)) for w in coef]
    s = 1 / (1 + sum(w * w for w in coef) / Fraction(float(gamma)))
    total = Fraction(0)
    for row, a, b, own in zip(X.tolist(), y.tolist(), z.tolist(), weight.tolist(), strict=True):
        p = sum(Fraction(x) * w for x, w in zip(row, coef, strict=True))
        total += Fraction(own) * (s * p + (1 - s) * Fraction(b) - Fraction(a)) ** 2
    return total


@pytest.mark.parametrize(
    ("data", "labels", "weights"), [(150, 600, 900), (45, 555, 900), (440, 757, 990)]
)
def test_powers_of_two_change_no_digit(data, labels, weights):
    """Strengths and losses are numbers where what they are scaled by on the way is not."""
    X, y, z = plain_game()
    best = solve(X, y, z, 1.3)
    gamma, weight = np.ldexp(1.3, 2 * data - 2 * labels), np.full(12, 2.0**weights)
    told = np.ldexp(X, -data), np.ldexp(y, -labels), np.ldexp(z, -labels)
    for solver in ("spectral", "krylov"):
        found = solve(*told, gamma, sample_weight=weight, solver=solver)
        np.testing.assert_allclose(np.ldexp(found.coef, labels - data), best.coef, rtol=1e-6)
        true = exact_loss(*told, weight, gamma, np.ldexp(best.coef, data - labels))
        assert Fraction(found.certificate.lower_bound) <= true
        assert found.objective == pytest.approx(float(true), rel=1e-9, abs=0.0)


def test_losses_that_are_small_are_told():
    """Weights make numbers of them that labels alone do not have."""
    X, y, z = plain_game()
    told = np.ldexp(X, -200), np.ldexp(y, -700), np.ldexp(z, -700)
    gamma, weight = np.ldexp(1.3, -1000), np.full(12, 2.0**400)
    found = solve(*told, gamma, sample_weight=weight)
    true = float(exact_loss(*told, weight, gamma, found.coef))
    assert true > 0.0
    assert found.objective == pytest.approx(true, rel=1e-9, abs=0.0)


@pytest.mark.parametrize(("heavy", "light"), [(1e200, 1e-118), (1e100, 1e-217), (1e40, 1e-279)])
def test_weights_that_are_too_far_apart(heavy, light):
    X, y, z = plain_game()
    X[0] = y[0] = z[0] = 0.0
    weight = np.full(12, light)
    weight[0] = heavy
    with pytest.raises(ValueError, match=r"^sample_weight holds numbers from .* too far apart"):
        solve(X, y, z, 1.0, sample_weight=weight)
    weight[0] = 0.0
    found = solve(X, y, z, 1.0, sample_weight=weight)
    np.testing.assert_allclose(found.coef, solve(X[1:], y[1:], z[1:], 1.0).coef, rtol=1e-6)


def short_column(t):
    """The first column alone explains the labels, by a coefficient of one over ``t``."""
    X = np.array([[t, 0.0], [0.0, 1.0], [0.0, 1.0]])
    return X, np.array([1.0, 0.0, 0.0]), np.array([0.5, 1.0, -1.0])


@pytest.mark.parametrize("solver", ["spectral", "krylov", "gltr", "auto"])
@pytest.mark.parametrize("t", [1e-156, 1e-180, 1e-300])
@pytest.mark.parametrize("cost", [[inf, 1.0], [inf, inf]])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_immutable_columns_that_have_no_squares(t, cost, solver, fit_intercept):
    game = *short_column(t), 1.0
    told = {"feature_cost": cost, "fit_intercept": fit_intercept}
    wanted = pytest.raises(ValueError, match=r"^X holds numbers too small .* in column 0, about")
    with wanted:
        solve(*game, solver=solver, **told)
    with wanted:
        solve_path(*game[:3], [1.0, 2.0], solver=solver, **told)
    with wanted:
        certify(*game, [1.0 / t, 0.0], feature_cost=cost, intercept=0.0 if fit_intercept else None)


@pytest.mark.parametrize("people", [HALF, Population.mixed(Between(0.5, 1.0), 0.5)])
def test_columns_that_have_no_squares_beside_honest_people(people):
    with pytest.raises(ValueError, match=r"in column 0, about .* leave it out\.$"):
        solve(*short_column(1e-170), people)


def test_a_short_column_is_named():
    pandas = pytest.importorskip("pandas")
    X, y, z = short_column(1e-200)
    frame = pandas.DataFrame(X, columns=["kernel", "price"])
    with pytest.raises(ValueError, match=r"in column 0 \('kernel'\)"):
        StackelbergRegressor(1.0).fit(frame, y, z=z)


def test_weights_make_columns_short():
    X, y, z = np.diag([1e-65, 1.0, 1.0]), np.array([1e60, 0.0, 1.0]), np.ones(3)
    told = {"feature_cost": [inf, 1.0, 1.0], "sample_weight": [1e-200, 1.0, 1.0]}
    with pytest.raises(ValueError, match=r"in column 0, about .*, weights included;"):
        solve(X, y, z, 1.0, **told)


def test_levers_make_any_column_immutable():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 2)) * [1e-170, 1.0], rng.normal(size=20)
    with pytest.raises(ValueError, match=r"too small to be squared .* in column 0"):
        levers(X, y, y + 1.0, 1.0)


@pytest.mark.parametrize("sparse", [False, True])
def test_columns_of_zeros_are_not_short(sparse):
    """Nor are those that show late, or that never vary."""
    sp = pytest.importorskip("scipy.sparse")
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(1000, 2)), np.zeros(1000), np.zeros(1000), np.ones(1000)])
    X[-1, 2] = 1e-3
    y = rng.normal(size=1000)
    for cost in ([1.0] * 5, [1.0, 1.0, inf, inf, inf]):
        data = sp.csr_array(X) if sparse else X
        found = solve(data, y, y + 1.0, HALF, feature_cost=cost, fit_intercept=True)
        assert np.isfinite(found.coef).all()
        assert found.certificate.relative_gap <= 1e-8


def test_one_strength_takes_short_columns_as_they_are():
    """Coefficients are bounded, so such a column is as good as one of zeros."""
    X, y, z = short_column(1e-180)
    found = solve(X, y, z, 1.0)
    assert found.status in (Status.OPTIMAL, Status.SEVERAL_OPTIMA)
    assert found.objective == pytest.approx(solve(X * [0.0, 1.0], y, z, 1.0).objective)


@pytest.mark.parametrize("method", ["moments", "triangular"])
@pytest.mark.parametrize("t", [1e-156, 1e-165, 1e-180, 1e-300])
@pytest.mark.parametrize("people", [1.0, HALF], ids=["one strength", "half"])
def test_sums_of_short_columns_prove_nothing_wrong(method, t, people):
    """Blocks may be short where their sum is not, so sums pay for what squares have lost."""
    X, y, z = short_column(t)
    sums = GameStatistics.from_data(X, y, z, method=method)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = sums.solve(people, feature_cost=[inf, 1.0])
    # The label that the first column explains costs nothing then, and the others are as they were.
    best = solve(X[:, 1:], np.array([0.0, 0.0, 0.0]), z * [0.0, 1.0, 1.0], people)
    assert found.certificate.lower_bound <= best.objective + 1e-12


def test_a_share_that_may_be_honest_counts():
    people = Population.mixed(1.0, Between(0.0, 0.5))
    with pytest.raises(ValueError, match=r"too small to be squared .* in column 0"):
        solve(*short_column(1e-170), people)


def counted(X):
    """The data, and how often a product with its transpose was asked for."""
    from spgls.matrix import as_matrix

    class Counting(type(as_matrix(X))):
        calls = 0

        def cross(self, *told):
            type(self).calls += 1
            return super().cross(*told)

    return Counting(X), Counting


def test_no_row_is_read_for_columns_that_show():
    """Not where rows do not count, nor where columns show late."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(5000, 6)), rng.normal(size=5000)
    X[:4000, 2] = 0.0
    weight = np.ones(5000)
    weight[3] = 0.0
    for told in ({}, {"sample_weight": weight}):
        data, kind = counted(X)
        found = solve(data, y, y + 1.0, HALF, solver="spectral", **told)
        assert found.status.ok
        plain, base = counted(rng.normal(size=(5000, 6)))
        solve(plain, y, y + 1.0, 1.0, solver="spectral", **told)
        assert kind.calls == base.calls
