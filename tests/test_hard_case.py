"""The hard case: several optima, none of which a plain Krylov method would find."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from spgls import Status, solve
from spgls.game.response import learner_loss

from .builders import weak_game
from .oracles import families
from .real_games import red_wine


def closed_form(X, y, z, gamma):
    """Smallest alpha and its predictor where z lies in the range of X, or None in the easy case."""
    inverse = np.linalg.pinv(X)
    w_y, D = inverse @ y, inverse @ (y - z)
    b = gamma - 2 * w_y @ D
    if gamma < 2 * (w_y @ D + np.linalg.norm(w_y) * np.linalg.norm(D)):
        return None
    root = np.sqrt(b**2 - 4 * (D @ D) * (w_y @ w_y))
    alpha = 2 * (w_y @ w_y) / (b + root)
    return alpha, w_y + alpha * D


@pytest.mark.parametrize("engine", [np.asarray, sp.csr_array, sp.csc_matrix])
@pytest.mark.parametrize("seed", range(10))
def test_weak_provider_reaches_zero_with_the_smallest_predictor(seed, engine):
    X, y, z = weak_game(6, 12, seed, size=0.01)
    gamma = 10.0
    solution = solve(engine(X), y, z, gamma)
    assert solution.status is Status.SEVERAL_OPTIMA
    assert solution.objective < 1e-12 * (y @ y)
    alpha, w = closed_form(X, y, z, gamma)
    assert solution.alpha == pytest.approx(alpha, rel=1e-9)
    np.testing.assert_allclose(solution.coef, w, rtol=1e-8, atol=1e-12)
    assert abs(solution.multiplier) < 1e-15


@pytest.mark.parametrize("seed", range(10))
def test_threshold_of_the_hard_case(seed):
    """Just above the threshold the objective is zero, just below it is not."""
    X, y, z = weak_game(6, 12, seed)
    inverse = np.linalg.pinv(X)
    w_y, D = inverse @ y, inverse @ (y - z)
    threshold = 2 * (w_y @ D + np.linalg.norm(w_y) * np.linalg.norm(D))
    above = solve(X, y, z, threshold * (1 + 1e-6))
    below = solve(X, y, z, threshold * (1 - 1e-2))
    assert above.status is Status.SEVERAL_OPTIMA
    assert above.objective < 1e-12 * (y @ y)
    assert below.status is Status.OPTIMAL
    assert below.objective > 1e-9 * (y @ y)


@pytest.mark.parametrize("seed", range(5))
def test_constant_goal_has_two_optima_and_the_small_one_wins(seed):
    X, y, _ = weak_game(6, 12, seed, size=0.01)
    z = np.full(len(y), 0.05)
    gamma = 50.0
    solution = solve(X, y, z, gamma)
    alpha, _ = closed_form(X, y, z, gamma)
    assert solution.alpha == pytest.approx(alpha, rel=1e-9)
    # The other root of the same quadratic is as good and far larger.
    inverse = np.linalg.pinv(X)
    w_y, D = inverse @ y, inverse @ (y - z)
    other_alpha = (w_y @ w_y) / (D @ D) / alpha
    other = w_y + other_alpha * D
    assert learner_loss(X, y, z, other, gamma=gamma) < 1e-9 * (y @ y)
    assert np.linalg.norm(other) > 10 * np.linalg.norm(solution.coef)


def test_null_vector_fills_the_norm():
    """A duplicated column and a goal outside the range: the objective needs a null vector."""
    rng = np.random.default_rng(1)
    column = rng.normal(size=(20, 1))
    X = np.hstack([column, column])
    y = rng.normal(size=20)
    z = 3 * y + rng.normal(size=20)
    solution = solve(X, y, z, 100.0)
    assert solution.status is Status.SEVERAL_OPTIMA
    assert solution.certificate.relative_gap < 1e-12
    assert solution.coef[0] != pytest.approx(solution.coef[1])
    # Without the null vector, at the same prediction on clean rows, the loss is larger.
    plain = np.full(2, solution.coef.mean())
    assert learner_loss(X, y, z, plain, gamma=100.0) > solution.objective * (1 + 1e-6)


@pytest.mark.parametrize("kind", ["equal", "shift with intercept", "immutable shift"])
def test_goals_that_reveal_the_labels_are_unattained(kind):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(40, 3))
    y = X @ [1.0, -1.0, 0.5] + rng.normal(size=40)
    options = {}
    z = y
    if kind == "shift with intercept":
        z, options = y + 3.0, {"fit_intercept": True}
    elif kind == "immutable shift":
        z, options = y + 2.0 * X[:, 0], {"feature_cost": [np.inf, 1.0, 1.0]}
    solution = solve(X, y, z, 0.5, **options)
    assert solution.status is Status.UNATTAINED
    assert solution.objective <= 1e-9 * (y @ y)
    assert solution.certificate.relative_gap <= 1e-9
    assert "honest" in solution.status.advice
    assert np.isfinite(solution.coef).all()


@pytest.mark.parametrize(("intercept", "threshold"), [(True, 43.13), (False, 48.17)])
def test_red_wine_with_a_constant_goal(intercept, threshold):
    """The paper's own data meet the hard case once the goal is the same for everyone."""
    X, y = red_wine()
    if not intercept:
        X = np.column_stack([X, np.ones(len(y))])
    z = np.full(len(y), 8.0)
    easy = solve(X, y, z, threshold - 0.02, fit_intercept=intercept)
    hard = solve(X, y, z, threshold + 0.02, fit_intercept=intercept)
    assert easy.status is Status.OPTIMAL
    assert hard.status is Status.SEVERAL_OPTIMA
    for solution in (easy, hard):
        assert solution.certificate.relative_gap < 1e-9


@pytest.mark.parametrize(
    ("seed", "number", "value"),
    [(21, 121, 310.8722197070807), (23, 90, 4.613109527417241), (25, 307, 9.36048311847424)],
)
def test_a_nearly_double_pole_gets_a_second_opinion(seed, number, value):
    """The secular equation alone ends on the wrong side of it, at 328.5, 6.77 and 14.4."""
    given = list(families.problems(1240, seed))[number]
    sigma, eta, zeta = (np.array(getattr(given, t), dtype=float) for t in ("sigma", "eta", "zeta"))
    r_yy, r_yz, r_zz = (float(getattr(given, t)) for t in ("r_yy", "r_yz", "r_zz"))
    X = np.vstack([np.diag(sigma), np.zeros((2, len(sigma)))])
    y = np.r_[eta, np.sqrt(r_yy), 0.0]
    z = np.r_[zeta, r_yz / np.sqrt(r_yy), np.sqrt(max(0.0, r_zz - r_yz**2 / r_yy))]
    found = solve(X, y, z, float(given.gamma))
    assert found.status.ok
    assert found.objective == pytest.approx(value, rel=1e-9)
    assert found.certificate.relative_gap <= 1e-12
