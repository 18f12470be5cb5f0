"""ADMM: right on well-conditioned games, honest elsewhere, and modest about size."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.linalg import LinAlgError

from spgls import Status, certify, solve
from spgls.reduction.data import GameData
from spgls.solvers import ADMM
from spgls.solvers.iterative.iterate import sphere_problem
from spgls.sphere import scls_terms, to_sphere

from .builders import KINDS, coarse_game, negative_game


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(60, 8), (12, 12), (10, 25)], ids=["tall", "square", "wide"])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_agrees_with_spectral(kind, shape, fit_intercept):
    X, y, z = coarse_game(*shape, sum(shape))
    exact = solve(X, y, z, 0.5, fit_intercept=fit_intercept)
    found = solve(KINDS[kind](X), y, z, 0.5, fit_intercept=fit_intercept, solver="admm")
    yy = float(y @ y)
    assert found.status is exact.status is Status.OPTIMAL
    assert found.solver == "admm"
    assert found.objective - exact.objective == pytest.approx(0.0, abs=1e-9 * yy)
    assert found.certificate.relative_gap <= 1e-9
    assert len(found.history) == found.stats.iterations
    proof = certify(X, y, z, 0.5, found.coef, intercept=found.intercept if fit_intercept else None)
    assert proof.relative_gap <= 1e-9


def test_agrees_with_costs_immutable_features_and_weights():
    rng = np.random.default_rng(7)
    X, y, z = coarse_game(50, 9, rng)
    cost = rng.uniform(0.5, 2.0, size=9)
    cost[4] = np.inf
    options = {
        "feature_cost": cost,
        "sample_weight": rng.uniform(0.5, 2.0, size=50),
        "fit_intercept": True,
    }
    exact = solve(X, y, z, 0.5, **options)
    found = solve(X, y, z, 0.5, solver="admm", **options)
    assert found.status.ok
    assert found.objective == pytest.approx(exact.objective, rel=1e-8)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_dense_form_is_what_products_multiply_by(weighted, fit_intercept, kind):
    rng = np.random.default_rng(3)
    X, y, z = coarse_game(20, 6, rng)
    cost = np.array([1.0, 2.0, np.inf, 0.5, 4.0, 1.0])
    data = GameData.from_user(
        kind(X),
        y,
        z,
        fit_intercept=fit_intercept,
        feature_cost=cost,
        sample_weight=rng.uniform(0.5, 2.0, size=20) if weighted else None,
    )
    problem = sphere_problem(data, 0.7)
    H = problem.dense()
    products = np.column_stack([problem.product(e) for e in np.eye(problem.size)])
    np.testing.assert_allclose(H, products, rtol=0, atol=1e-13 * np.abs(H).max())
    A = data.projected.apply(np.eye(problem.size - 1))
    np.testing.assert_allclose(
        H, scls_terms(A, problem.y, problem.z, 0.7)[0], rtol=0, atol=1e-13 * np.abs(H).max()
    )


def test_iterates_lie_on_the_sphere_with_the_residual_they_claim():
    X, y, z = coarse_game(30, 6, 5)
    problem = sphere_problem(GameData.from_user(X, y, z), 0.5)
    H = problem.dense()
    for count in range(1, 20):
        found = solve(X, y, z, 0.5, solver="admm", max_iter=count, tol=1e-30)
        last = found.history[-1]
        assert last.iteration == count
        r = to_sphere(found.coef, 0.5).as_vector()
        slope = H @ r + problem.g
        assert np.linalg.norm(r) == pytest.approx(1.0, abs=1e-14)
        assert found.multiplier == pytest.approx(-r @ slope, rel=1e-10)
        assert last.residual == pytest.approx(
            np.linalg.norm(slope + found.multiplier * r), rel=1e-6, abs=1e-12 * np.abs(H).max()
        )
        assert last.objective == pytest.approx(r @ H @ r + 2 * problem.g @ r + problem.p)


@pytest.mark.parametrize("seed", range(30))
def test_never_claims_more_than_is_true(seed):
    rng = np.random.default_rng(seed)
    m, n = rng.integers(1, 30, size=2)
    X = rng.normal(size=(m, n)) * 10.0 ** rng.uniform(-2, 2, size=n)
    y, z = rng.normal(size=(2, m))
    gamma = 10.0 ** rng.uniform(-4, 4)
    exact = solve(X, y, z, gamma)
    found = solve(X, y, z, gamma, solver=ADMM(max_iter=300))
    yy = float(y @ y)
    assert exact.status.ok
    if found.certificate.kind == "proved":
        assert found.certificate.lower_bound <= exact.objective + 1e-12 * yy
    if found.status.ok:
        assert found.objective <= exact.objective + 2e-9 * yy
    else:
        assert found.status in (Status.STATIONARY, Status.ITERATION_LIMIT)
        assert found.certificate.relative_gap > 1e-9


@pytest.mark.parametrize("rho", [1.0, 30.0, 1000.0])
@pytest.mark.parametrize("relaxation", [1.0, 1.6])
def test_any_reasonable_penalty_leads_there(rho, relaxation):
    X, y, z = coarse_game(60, 8, 1)
    exact = solve(X, y, z, 0.5)
    found = solve(X, y, z, 0.5, solver=ADMM(rho=rho, relaxation=relaxation))
    assert found.status is Status.OPTIMAL
    assert found.objective == pytest.approx(exact.objective, rel=1e-8)


def test_automatic_penalty_needs_few_factorisations(monkeypatch):
    from spgls.solvers.published import admm

    calls = []
    factorise = admm.cho_factor
    monkeypatch.setattr(admm, "cho_factor", lambda H, **how: calls.append(H) or factorise(H, **how))
    X, y, z = coarse_game(200, 40, 1)
    assert solve(X, y, z, 0.1, solver="admm").stats.iterations < 50
    assert len(calls) <= 2
    scale = 10.0 ** np.linspace(-3, 3, 40)
    assert solve(X * scale, y, z, 1.0, solver="admm", max_iter=3000).history
    assert len(calls) <= 2 + 11


def test_negative_multiplier_is_proved_by_squared_columns():
    X, y, z = negative_game(600, 250, 11, signal=1 / 64)
    exact = solve(X, y, z, 64.0)
    found = solve(X, y, z, 64.0, solver="admm")
    assert exact.multiplier < 0.0
    assert found.status is Status.OPTIMAL
    assert found.certificate.kind == "proved"
    assert found.objective == pytest.approx(exact.objective, rel=1e-8)


def test_goals_twice_the_labels_have_no_linear_term():
    X, y, _ = coarse_game(30, 5, 2)
    exact = solve(X, y, 2 * y, 0.5)
    found = solve(X, y, 2 * y, 0.5, solver="admm", rng=0)
    assert found.objective == pytest.approx(exact.objective, rel=1e-6)


def test_refuses_large_games_before_it_starts():
    X, y, z = coarse_game(30, 20, 0)
    with pytest.raises(ValueError, match=r"here 20, and refuses above max_size=10\. Use solver"):
        solve(X, y, z, 1.0, solver=ADMM(max_size=10))
    assert solve(X, y, z, 1.0, solver=ADMM(max_size=20)).status.ok
    wide = sp.csr_array((3, 6000))
    with pytest.raises(ValueError, match=r"here 6000.*solver='gltr'.*ADMM\(max_size=6000\)"):
        solve(wide, np.ones(3), np.zeros(3), 1.0, solver="admm")


def test_immutable_features_do_not_count_as_size():
    X, y, z = coarse_game(30, 6, 0)
    cost = np.array([1.0, 1.0, np.inf, np.inf, np.inf, 1.0])
    assert solve(X, y, z, 1.0, feature_cost=cost, solver=ADMM(max_size=3)).status.ok


def test_nothing_to_change_is_least_squares():
    X, y, z = coarse_game(30, 3, 0)
    found = solve(X, y, z, 1.0, feature_cost=np.full(3, np.inf), solver="admm")
    assert found.status is Status.LEAST_SQUARES


def test_iteration_limit():
    X, y, z = coarse_game(60, 8, 0)
    found = solve(X, y, z, 0.5, solver="admm", max_iter=3)
    assert found.status is Status.ITERATION_LIMIT
    assert found.stats.iterations == 3
    assert found.certificate.relative_gap > 1e-9
    assert solve(X, y, z, 0.5, solver=ADMM(max_iter=3)).status is Status.ITERATION_LIMIT


def test_callback_stops():
    X, y, z = coarse_game(60, 8, 0)
    steps = []
    found = solve(
        X, y, z, 0.5, solver="admm", callback=lambda s: steps.append(s) or s.iteration == 4
    )
    assert found.status is Status.STOPPED
    assert [step.iteration for step in steps] == [1, 2, 3, 4]
    assert found.history == tuple(steps)


def test_seed_decides_the_start():
    X, y, z = coarse_game(60, 8, 0)
    first, again, other = (solve(X, y, z, 0.5, solver="admm", rng=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.coef, again.coef)
    assert (first.coef != other.coef).any()
    assert first.objective == pytest.approx(other.objective, rel=1e-8)


@pytest.mark.parametrize(
    ("constants", "error", "message"),
    [
        ({"rho": 0.0}, ValueError, "rho must be a finite number above 0; got 0.0. Or leave it"),
        ({"rho": np.nan}, ValueError, "rho must be a finite number above 0; got nan"),
        ({"rho": "big"}, TypeError, "rho must be a finite number above 0; got 'big'"),
        ({"rho": None}, TypeError, "rho must be a finite number above 0; got None"),
        ({"relaxation": 2.0}, ValueError, "relaxation must be .* above 0 and below 2; got 2.0"),
        ({"max_iter": 0}, ValueError, "max_iter must be a positive whole number or None; got 0"),
        ({"max_iter": None}, TypeError, "max_iter must be a positive whole number; got None"),
        ({"max_size": 2.5}, TypeError, "max_size must be a positive whole number .*got 2.5"),
    ],
)
def test_bad_constants(constants, error, message):
    with pytest.raises(error, match=message):
        ADMM(**constants)


def test_penalty_too_small_for_rounding():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(8, 4)), 5, axis=1) * 1e6
    y = rng.normal(size=8)
    with pytest.raises(ValueError, match=r"rho must be large enough.*Leave it at 'auto'") as caught:
        solve(X, y, y + rng.normal(size=8), 1.0, solver=ADMM(rho=1e-300))
    assert not isinstance(caught.value, LinAlgError)
