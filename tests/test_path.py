"""Paths: every point is what a solve on its own finds, and together they cost little more."""

from __future__ import annotations

import sys
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp

from spgls import Path, Population, Solution, Stats, Status, solve, solve_path
from spgls.reduction.data import GameData
from spgls.reduction.reduced import ReducedGame
from spgls.solvers import GLTR, Controls, Krylov, PathSolver, Spectral, available_solvers
from spgls.solvers.iterative.images import MeasuredSpace
from spgls.sphere import (
    dual_bound,
    dual_bounds,
    solve_sphere,
    solve_sphere_many,
    stationarities,
    stationarity,
)

from .builders import linear_game, negative_game, weak_game
from .catalogue import CATALOGUE, problem

TOL = 1e-9
#: Krylov solvers that must stand on their own.
ALONE = Krylov()
FACTORS = (10.0, 1e-3, 1.0, 1e3, 0.1, 1.0)
INF = float("inf")
POPULATIONS = (
    Population.mixed(0.5, honest=0.5),
    Population([INF, 0.1, 5.0], [0.2, 0.5, 0.3]),
    Population([INF], [1.0]),
)


def game(m=120, n=12, noise=0.5):
    return linear_game(m, n, spread=10.0, noise=noise)


def options(m, n, seed=1):
    rng = np.random.default_rng(seed)
    cost = rng.uniform(0.5, 2.0, n)
    cost[1] = INF
    return {
        "fit_intercept": True,
        "feature_cost": cost,
        "sample_weight": rng.uniform(0.0, 2.0, m),
    }


def measured(X, y, z, gamma, solution):
    """The learner's loss, from its definition, with more digits than the library has."""
    X, y, z, w = (np.asarray(part, dtype=np.longdouble) for part in (X, y, z, solution.coef))
    alpha = np.sum(w**2) / gamma
    error = (X @ w + solution.intercept + alpha * z) / (1 + alpha) - y
    return float(np.sum(error**2))


def spread(data):
    targets, _ = data.projected_targets
    return float(targets[:, 0] @ targets[:, 0])


# Every point equals a separate solve


@cache
def rows(name):
    given = problem(name)
    return GameData.from_user(given.X, given.y, given.z, **given.options)


@pytest.mark.parametrize("solver", [Spectral(), Spectral("qr"), Krylov()], ids=repr)
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.long if "2000" in name else ()) for name in CATALOGUE],
)
def test_points_equal_separate_solves_on_the_catalogue(name, solver):
    given = problem(name)
    data = rows(name)
    gammas = [given.gamma * factor for factor in FACTORS]
    path = solve_path(given.X, given.y, given.z, gammas, **given.options, solver=solver)
    size = spread(data)
    rounding = 1e-12 * data.loss(data.y)
    for gamma, found in zip(gammas, path, strict=True):
        exact = solver if isinstance(solver, Spectral) else Spectral()
        expected = exact.solve(data, gamma, Controls())
        unattained = Status.UNATTAINED in (found.status, expected.status)
        # Without a best predictor each may stop anywhere within the tolerance of the infimum.
        slack = (1e-8 if unattained else TOL) * size + rounding
        assert abs(found.objective - expected.objective) <= slack
        assert found.certificate.lower_bound <= expected.objective + rounding
        assert found.solver == (
            solver.capabilities.name if len(data.layout.changeable) else "spectral"
        )
        if isinstance(solver, Spectral):
            assert found.status is expected.status
            assert found.certificate.kind == "proved"
            allowed = expected.certificate.relative_gap + 1e-11 + rounding / (size or 1.0)
            assert found.certificate.relative_gap <= 3 * allowed
        elif expected.status.ok and name != "nearly-hard-isolated-column":
            # There the multiplier is so close to its pole that rounding hides the last digit.
            assert found.status.ok
        if found.status is expected.status is Status.OPTIMAL and "nearly hard" not in given.tags:
            # The gap pins the pull to its square root.
            near = 1e-6 if isinstance(solver, Spectral) else 1e-3
            assert found.alpha == pytest.approx(expected.alpha, rel=near, abs=1e-12)
    first, again = path[2], path[5]
    assert first.objective == again.objective
    assert abs(first.objective - float(given.answer.value)) <= 10 * (TOL * size + rounding)


@pytest.mark.parametrize("solver", ["spectral", "krylov", ALONE], ids=str)
@pytest.mark.parametrize("ridge", [0.0, 3.0])
@pytest.mark.parametrize("everything", [False, True])
def test_numbers_and_populations_in_one_path(solver, ridge, everything):
    X, y, z = game()
    given = options(*X.shape) if everything else {}
    gammas = [0.1, *POPULATIONS, 10.0, 0.1]
    path = solve_path(X, y, z, gammas, ridge=ridge, solver=solver, **given)
    assert path.gammas.tolist() == gammas
    for gamma, found in zip(gammas, path, strict=True):
        expected = solve(X, y, z, gamma, ridge=ridge, **given)
        assert found.status is expected.status is Status.OPTIMAL
        assert found.objective == pytest.approx(expected.objective, rel=1e-9)
        close = 1e-9 if solver == "spectral" else 1e-4
        np.testing.assert_allclose(found.alpha, expected.alpha, rtol=close)
        np.testing.assert_allclose(found.coef, expected.coef, rtol=close, atol=close)
        np.testing.assert_allclose(found.intercept, expected.intercept, rtol=close, atol=close)
        assert np.shape(found.alpha) == np.shape(expected.alpha)


@pytest.mark.parametrize("order", ["C", "F", "csr", "csc", "float32"])
def test_containers(order):
    X, y, z = game()
    kinds = {"csr": sp.csr_array, "csc": sp.csc_array, "F": np.asfortranarray}
    given = X.astype(np.float32) if order == "float32" else kinds.get(order, np.asarray)(X)
    gammas = np.geomspace(1e-2, 1e2, 7)
    for solver in ("spectral", "krylov"):
        path = solve_path(given, y, z, gammas, solver=solver, fit_intercept=True)
        for gamma, found in zip(gammas, path, strict=True):
            expected = solve(given, y, z, gamma, fit_intercept=True)
            assert abs(found.objective - expected.objective) <= TOL * (y @ y)


@pytest.mark.parametrize("m", [8, 40])
def test_a_wide_path_through_the_hard_case_takes_one_space(m):
    """Where labels can be met the smallest pull is found on the space of all the others."""
    X, y, z = weak_game(m, 120)
    gammas = np.geomspace(1e-2, 1e3, 40)
    exact = solve_path(X, y, z, gammas)
    assert set(exact.status) == {Status.OPTIMAL, Status.SEVERAL_OPTIMA}
    path = solve_path(X, y, z, gammas, solver=ALONE)
    assert path.status == exact.status
    np.testing.assert_allclose(path.alpha, exact.alpha, rtol=1e-4)
    np.testing.assert_allclose(path.objective, exact.objective, atol=TOL * (y @ y))
    alone = [solve(X, y, z, gamma, solver=ALONE).stats.passes for gamma in (gammas[0], gammas[-1])]
    assert path.stats.passes <= 4 * max(alone)


@pytest.mark.parametrize("solver", ["spectral", "krylov"])
def test_where_no_predictor_is_best(solver):
    X, y, _ = game()
    path = solve_path(X, y, y + 1.0, [0.1, 1.0, 10.0], fit_intercept=True, solver=solver)
    assert set(path.status) == {Status.UNATTAINED}
    assert (path.objective <= TOL * (y @ y)).all()


def test_weak_goals_have_negative_multipliers():
    X, y, z = negative_game(40, 6)
    gammas = np.geomspace(1e-1, 1e4, 30)
    exact = solve_path(X, y, z, gammas)
    assert (exact.multiplier < 0).any()
    assert (exact.multiplier > 0).any()
    for solver in (Krylov(), ALONE):
        path = solve_path(X, y, z, gammas, solver=solver)
        np.testing.assert_allclose(path.objective, exact.objective, atol=TOL * (y @ y))


# The small problem for many strengths


def random_game(rng, kind):
    k = int(rng.integers(1, 60))
    sigma = np.exp(rng.normal(size=k) * rng.choice([0.1, 1.0, 4.0]))
    eta, zeta = rng.normal(size=(2, k)) * np.exp(rng.normal(size=(2, k)) * rng.choice([0.0, 2.0]))
    root = rng.normal(size=(2, 2))
    rest = root @ root.T * np.exp(2.0 * rng.normal())
    if kind == "close goals":
        zeta = eta + 1e-4 * rng.normal(size=k)
    if kind == "everything seen":
        rest = np.zeros((2, 2))
    if kind == "lowest repeated":
        sigma[: k // 2] = sigma.min()
    if kind == "lowest not aimed at":
        zeta[sigma == sigma.min()] = 0.0
    if kind == "same":
        zeta, rest = eta.copy(), np.full((2, 2), rest[0, 0])
    if kind == "nothing":
        eta, zeta = np.zeros(k), np.zeros(k)
    nullity = 2 if kind == "null space" else 0
    return ReducedGame(sigma, eta, zeta, rest[0, 0], rest[0, 1], rest[1, 1], nullity=nullity)


@pytest.mark.parametrize(
    "kind",
    [
        "plain",
        "close goals",
        "everything seen",
        "lowest repeated",
        "lowest not aimed at",
        "null space",
        "same",
        "nothing",
    ],
)
def test_rows_equal_the_scalar_solver(kind):
    rng = np.random.default_rng(sum(map(ord, kind)))
    for _ in range(4 if kind == "same" else 25):
        small_game = random_game(rng, kind)
        gammas = rng.permutation(np.geomspace(1e-6, 1e6, 25))
        many = solve_sphere_many(small_game, gammas, ulps=64.0)
        bounds = dual_bounds(small_game, gammas, many, many.value)
        slopes = stationarities(small_game, gammas, many)
        size = small_game.yy + small_game.zz
        for i, gamma in enumerate(gammas):
            one, row = solve_sphere(small_game, gamma, ulps=64.0), many[i]
            assert row.outcome == one.outcome
            assert row.value == pytest.approx(one.value, abs=1e-14 * size)
            assert row.s == pytest.approx(one.s, rel=1e-7, abs=1e-300)
            assert row.c == pytest.approx(one.c, rel=1e-7, abs=1e-300)
            assert bounds[i] <= row.value + 1e-14 * size
            assert bounds[i] >= dual_bound(small_game, gamma, one) - 1e-14 * size
            assert slopes[i] == pytest.approx(stationarity(small_game, gamma, row), abs=1e-14)


def test_regular_rows_are_not_left_to_the_scalar_solver(monkeypatch):
    rng = np.random.default_rng(0)
    small_game = random_game(rng, "plain")
    monkeypatch.delattr("spgls.sphere.secular.solve_sphere")
    many = solve_sphere_many(small_game, np.geomspace(1e-4, 1e4, 200))
    assert np.isfinite(many.value).all()
    assert many.steps.max() <= 30


# What a path costs, and what it says about that


def test_one_reduction_serves_all():
    X, y, z = game(600, 30)
    gammas = np.geomspace(1e-3, 1e3, 100)
    path = solve_path(X, y, z, gammas)
    assert path.stats.passes == 1
    assert solve_path(X, y, z, [*gammas, *POPULATIONS]).stats.passes == 1
    # Intercepts come from the sums that the reduction is made of.
    assert solve_path(X, y, z, gammas, fit_intercept=True).stats.passes == 1
    assert path.stats.seconds >= max(solution.stats.seconds for solution in path)
    assert sum(path.stats.stages.values()) <= path.stats.seconds


def test_one_space_serves_all():
    X, y, z = game(600, 200)
    gammas = np.geomspace(1e-3, 1e3, 60)
    hardest = max(solve(X, y, z, g, solver=ALONE).stats.passes for g in (1e-3, 1.0, 1e3))
    path = solve_path(X, y, z, gammas, solver=ALONE)
    assert path.stats.passes <= hardest + 1
    both = solve_path(X, y, z, [*gammas, *POPULATIONS[:2], *POPULATIONS[:2]], solver=ALONE)
    alone = [solve(X, y, z, population, solver=ALONE).stats for population in POPULATIONS[:2]]
    # A read to measure each, and what the hardest still needs.
    longest = max(stats.passes for stats in alone)
    assert both.stats.passes <= path.stats.passes + longest + len(POPULATIONS) + 1
    assert {solution.certificate.kind for solution in path} == {"proved"}


@pytest.mark.parametrize("most", [1, 3, 100])
@pytest.mark.parametrize("intercept", [False, True])
def test_solutions_are_judged_by_coordinates_in_the_space(monkeypatch, intercept, most):
    X, y, z = linear_game(900, 150, noise=0.3)
    X = X + 0.5
    gammas, told = np.geomspace(1e-2, 10.0, 7), {"fit_intercept": intercept}
    exact = solve_path(X, y, z, gammas, solver="spectral", **told)
    # Pieces of any length, the last of a single one.
    monkeypatch.setattr("spgls.solvers.chunks._BYTES", 8 * len(y) * most)
    found = solve_path(X, y, z, gammas, solver="krylov", **told)
    monkeypatch.setattr(MeasuredSpace, "frame", lambda *_: None)
    plain = solve_path(X, y, z, gammas, solver="krylov", **told)
    for best, one, other in zip(exact, found, plain, strict=True):
        assert one.status is Status.OPTIMAL
        assert one.certificate.kind == "proved"
        assert one.certificate.lower_bound <= best.objective * (1 + 1e-12)
        assert abs(one.objective - best.objective) <= one.certificate.gap
        # As good as from the vectors themselves, and no further read.
        assert one.stats.passes == other.stats.passes
        np.testing.assert_allclose(one.coef, other.coef, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(one.objective, other.objective, rtol=1e-11)


def test_what_coordinates_do_not_prove_vectors_may(monkeypatch):
    X, y, z = linear_game(900, 150, noise=0.3)
    gammas, own = np.geomspace(1e-2, 10.0, 7), MeasuredSpace.frame
    plain = solve_path(X, y, z, gammas, solver="krylov")

    def poor(self, targets):
        frame = own(self, targets)
        return frame._replace(outside=1e3 * frame.outside + 1e3)

    monkeypatch.setattr(MeasuredSpace, "frame", poor)
    found = solve_path(X, y, z, gammas, solver="krylov")
    for one, other in zip(found, plain, strict=True):
        assert one.status is Status.OPTIMAL
        assert one.certificate.lower_bound <= other.objective
        # Without another read.
        assert one.stats.passes == other.stats.passes


@pytest.mark.parametrize("noise", [0.5, 1e-3, 1e-7])
@pytest.mark.parametrize("solver", ["spectral", "krylov"])
def test_objectives_are_true_to_ten_digits(noise, solver):
    """From the reduction where that has the digits, from the data where not."""
    X, y, z = game(300, 8, noise=noise)
    gammas = np.geomspace(1e-3, 1e6, 12)
    path = solve_path(X, y, z, gammas, solver=solver)
    for gamma, solution in zip(gammas, path, strict=True):
        loss = measured(X, y, z, gamma, solution)
        assert solution.objective == pytest.approx(loss, rel=1e-10)
        proof = solution.certificate
        assert proof.lower_bound <= loss
        assert abs(solution.objective - loss) <= proof.gap


@pytest.mark.parametrize("solver", ["spectral", "krylov"])
def test_objectives_hold_with_columns_far_from_zero(solver):
    X, y, z = game(200, 6)
    X = X + np.array([1e4, 0.0, 1e6, 1.0, -1e5, 3.0])
    gammas = np.geomspace(1e-2, 1e2, 9)
    path = solve_path(X, y, z, gammas, fit_intercept=True, solver=solver)
    for gamma, solution in zip(gammas, path, strict=True):
        loss = measured(X, y, z, gamma, solution)
        assert abs(solution.objective - loss) <= solution.certificate.gap <= 1e-9 * (y @ y)
        assert solution.certificate.lower_bound <= loss


def test_solvers_without_a_path_take_one_game_after_the_other():
    X, y, z = game()
    path = solve_path(X, y, z, [0.1, 1.0, 10.0], solver="gltr")
    alone = [solve(X, y, z, gamma, solver="gltr") for gamma in (0.1, 1.0, 10.0)]
    assert path.objective.tolist() == [solution.objective for solution in alone]
    # Lengths of columns are read once, not three times.
    assert path.stats.passes == sum(solution.stats.passes for solution in alone) - 2
    passes = [solution.stats.passes for solution in path]
    assert passes == sorted(passes)
    assert not isinstance(GLTR(), PathSolver)
    assert isinstance(Spectral(), PathSolver)
    assert {"spectral", "krylov"} <= {solver.name for solver in available_solvers()}


def test_a_callback_sees_the_farthest_and_stops_all():
    X, y, z = game(300, 100)
    seen = []
    gammas = np.geomspace(1e-2, 1e3, 20)
    path = solve_path(X, y, z, gammas, solver=ALONE, callback=seen.append)
    assert set(path.status) == {Status.OPTIMAL}
    assert [step.iteration for step in seen] == sorted({step.iteration for step in seen})
    stopped = solve_path(X, y, z, gammas, solver=Krylov(), callback=lambda step: True)
    assert Status.STOPPED in stopped.status
    assert set(stopped.status) <= {Status.STOPPED, Status.OPTIMAL}
    for found, best in zip(stopped, path, strict=True):
        assert found.certificate.lower_bound <= best.objective


def test_a_limit_is_kept():
    X, y, z = game(300, 100)
    path = solve_path(X, y, z, np.geomspace(1e-2, 1e3, 20), solver="krylov", max_iter=2)
    assert set(path.status) == {Status.OPTIMAL, Status.ITERATION_LIMIT}
    best = solve_path(X, y, z, path.gammas)
    assert (path.objective >= best.objective - 1e-9 * (y @ y)).all()
    assert all(a.certificate.lower_bound <= b.objective for a, b in zip(path, best, strict=True))


def test_data_that_squaring_spoils_is_reduced_again():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 8)) * np.geomspace(1.0, 1e-9, 8)
    y = X @ (rng.normal(size=8) / np.geomspace(1.0, 1e-9, 8)) + 0.1 * rng.normal(size=60)
    z = y + rng.normal(size=60)
    gammas = np.geomspace(1e-2, 1e20, 23)
    path = solve_path(X, y, z, gammas)
    for gamma, found in zip(gammas, path, strict=True):
        expected = solve(X, y, z, gamma)
        assert found.status is expected.status
        assert abs(found.objective - expected.objective) <= TOL * (y @ y)


@pytest.mark.parametrize("solver", ["spectral", "krylov"])
def test_nothing_to_change_or_to_predict(solver):
    X, y, z = game()
    fixed = np.full(X.shape[1], INF)
    gammas = [1.0, POPULATIONS[0], 2.0]
    path = solve_path(X, y, z, gammas, feature_cost=fixed, solver=solver)
    assert set(path.status) == {Status.LEAST_SQUARES}
    # Nobody plays: whatever was asked for, "spectral" finds least squares.
    assert {solution.solver for solution in path} == {"spectral"}
    nothing = solve_path(X, 0.0 * y, 0.0 * z, [1.0, 2.0], solver=solver)
    assert not nothing.coef.any()
    assert not nothing.objective.any()


# The object


def test_a_path_is_a_sequence_of_solutions():
    X, y, z = game()
    gammas = [3.0, 0.1, 3.0, 20.0]
    path = solve_path(X, y, z, gammas, fit_intercept=True)
    assert len(path) == 4
    assert list(path) == list(path.solutions)
    assert isinstance(path[-1], Solution)
    assert path[1] in path
    part = path[1:3]
    assert isinstance(part, Path)
    assert part.gammas.tolist() == [0.1, 3.0]
    assert part[0] is path[1]
    assert isinstance(part.stats, Stats)
    assert path[::-1].objective.tolist() == path.objective[::-1].tolist()
    assert len(path[4:]) == 0
    assert "0 games" in repr(path[4:])
    assert path.coef.shape == (4, X.shape[1])
    for name in ("objective", "alpha", "intercept", "multiplier", "pull", "relative_gap"):
        array = getattr(path, name)
        assert array.shape == (4,)
        assert array.dtype == np.float64
    assert path.intercept[1] == path[1].intercept
    assert path.alpha[3] == path[3].alpha
    assert path.pull[3] == pytest.approx(path[3].pull)
    with pytest.raises(IndexError):
        path[4]
    np.testing.assert_array_equal(path.coef[0], path.coef[2])


def test_arrays_of_populations():
    X, y, z = game()
    path = solve_path(X, y, z, [0.5, *POPULATIONS])
    assert path.alpha.shape == (4, 3)
    assert np.isnan(path.alpha).sum() == 2 + 1 + 0 + 2
    assert path.pull[3] == 0.0
    assert path.pull[1] == pytest.approx(0.5 * path[1].pull[1])
    assert path.gammas.dtype == object
    with_ridge = solve_path(X, y, z, [0.5, 1.0], ridge=1.0)
    assert with_ridge.alpha.shape == (2,)
    assert with_ridge.gammas.dtype == np.float64


def test_printing_and_tables():
    X, y, z = game()
    path = solve_path(X, y, z, np.geomspace(0.01, 1.0, 30))
    text = repr(path)
    assert text.startswith("Path of 30 games by spectral: 30 optimal; 1 passes")
    assert len(text.splitlines()) == 2 + 11
    assert "proved" in text
    short = repr(solve_path(X, y, z, [1.0, POPULATIONS[0]]))
    assert "50% honest, 50% gamma 0.5" in short
    assert "..." not in short
    table = path.to_dataframe()
    assert table.shape == (30, 7)
    assert table["objective"].tolist() == path.objective.tolist()
    assert set(table["status"]) == {"optimal"}


def test_a_data_frame_without_pandas(monkeypatch):
    X, y, z = game()
    path = solve_path(X, y, z, [1.0])
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        path.to_dataframe()
    assert path.to_dict()["gamma"] == [1.0]


# What users pass


@pytest.mark.parametrize(
    "gammas",
    [
        (0.1, 1),
        iter([0.1, 1]),
        (g for g in (0.1, 1)),
        np.array([0.1, 1.0]),
        np.array([0.1, 1.0], dtype=np.float32),
        [np.float64(0.1), np.array(1.0)],
        range(1, 3),
    ],
    ids=lambda value: type(value).__name__,
)
def test_sequences_of_any_kind(gammas):
    X, y, z = game()
    assert len(solve_path(X, y, z, gammas)) == 2


@pytest.mark.parametrize(
    ("gammas", "error", "words"),
    [
        (0.5, TypeError, "gammas .* got 0.5. Pass a list"),
        (POPULATIONS[0], TypeError, "gammas .* got a Population. Pass a list"),
        (None, TypeError, "gammas .* got None"),
        ("0.5", TypeError, "gammas .* got '0.5'"),
        ({0.5, 1.0}, TypeError, "gammas .* got a set"),
        ({0.5: 1.0}, TypeError, "gammas .* got a dict"),
        ([], ValueError, "gammas .* got none"),
        (np.zeros(0), ValueError, "gammas .* got none"),
        (np.ones((3, 1)), ValueError, r"gammas .* shape \(3, 1\). Pass gammas.ravel"),
        (np.array(1.0), ValueError, r"gammas .* shape \(\)"),
        ([1.0, -0.5], ValueError, r"gammas\[1\] .* above 0; got -0.5"),
        ([1.0, 0.0], ValueError, r"gammas\[1\] .* above 0; got 0.0"),
        ([float("nan")], ValueError, r"gammas\[0\] .* got nan"),
        ([1.0, INF], ValueError, r"gammas\[1\] .* got inf.* Population"),
        ([1.0, "2"], TypeError, r"gammas\[1\] .* got '2'"),
        ([1.0, None], TypeError, r"gammas\[1\] .* got None"),
        ([True], TypeError, r"gammas\[0\] .* got True"),
        ([[1.0, 2.0]], TypeError, r"gammas\[0\] .* got a list"),
        (np.array(["1", "2"]), TypeError, "gammas"),
        (np.array([1.0 + 2.0j]), TypeError, "gammas .* complex"),
        (np.ma.array([1.0, 2.0], mask=[False, True]), TypeError, "gammas .* masked"),
    ],
)
def test_gammas_that_are_refused(gammas, error, words):
    X, y, z = game()
    with pytest.raises(error, match=words):
        solve_path(X, y, z, gammas)


def test_games_that_a_solver_does_not_know_are_refused_before_any_is_solved():
    X, y, z = game()
    seen = []
    with pytest.raises(ValueError, match="gltr"):
        solve_path(X, y, z, [1.0, POPULATIONS[0]], solver="gltr", callback=seen.append)
    assert not seen


@pytest.mark.parametrize("solver", ["krylov", "spectral", "auto"])
def test_a_changeable_column_that_immutable_ones_explain(solver):
    """Up to rounding nothing of it is left, so it predicts nothing, but its norm pulls."""
    first = [[0, 0, 0, 0], [-2, -4, 2, 0], [-2, -4, 2, 0], [1, 2, -1, 0]]
    X = np.array([*first, [-4, -4, 4, 4], [2, 0, -2, -4], [-4, -2, 4, 6], [0, -2, 0, -2]])
    y = np.array([0.07073088, 0.03269882, -0.09570476, 0.01640568])
    y = np.append(y, [0.53003144, -0.89231216, 0.90268535, -0.60694843])
    z = np.array([0.47313233, -0.36099396, -0.97434965, 0.50550449])
    z = np.append(z, [6.02013992, -6.97316872, 6.4103052, -4.14202805])
    options = {"feature_cost": [1.0, np.inf, np.inf, np.inf], "solver": solver}
    gammas = [0.0045, 0.00057, 0.27]
    for gamma, found in zip(gammas, solve_path(X, y, z, gammas, **options), strict=True):
        alone = solve(X, y, z, gamma, **options)
        assert found.status is alone.status
        assert found.objective == pytest.approx(alone.objective, rel=1e-9)


def test_what_is_filled_in_along_a_direction_that_shows_is_measured():
    """The data hardly varies along it, and rounding takes its part in the labels for nothing."""
    for seed in (19, 61, 115):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(9, 3)) * 10.0 ** rng.integers(-8, 9, size=3)
        y, z = rng.normal(size=(2, 9))
        gamma = 10.0 ** rng.uniform(-2, 2)
        people = Population([INF, gamma, 3 * gamma], [0.3, 0.3, 0.4])
        options = {"feature_cost": [1.0, 2.0, INF]}
        alone = solve(X, y, z, people, **options)
        for others in ([], [gamma], [people]):
            found = solve_path(X, y, z, [people, *others], **options)[0]
            assert found.status is alone.status
            assert found.objective == pytest.approx(alone.objective, rel=1e-11)


def test_losses_that_the_reduction_cannot_tell_are_measured():
    """Immutable columns with large coefficients, which cancel."""
    X = [[1e-8, -2e-113, -1e-23, -1e24], [1e-8, 1e-113, -1e-23, -2e24]]
    X = np.array([*X, [1e-8, 1e-113, 1e-23, -2e24], [1e-8, 2e-113, 1e-23, -2e24]])
    y = np.array([2.244, 0.66, -0.876, 0.835])
    z = np.maximum(y, 0.3)
    options = {"feature_cost": [INF, INF, 0.0225, INF], "fit_intercept": True}
    for gamma in (0.1, 80.0, 1e4):
        alone = solve(X, y, z, gamma, **options)
        found = solve_path(X, y, z, [gamma, 3 * gamma], **options)[0]
        assert found.status is alone.status
        assert found.objective == pytest.approx(alone.objective, rel=1e-9)
        assert np.isfinite(found.certificate.gap)


@pytest.mark.parametrize("seed", [1, 14, 32, 40])
def test_losses_that_stored_coefficients_change_are_measured(seed):
    """Means that are many standard deviations: a path would miss a tolerance that a solve meets."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(12, 6)), 1) + np.round(10.0 ** rng.uniform(2, 6, size=6))
    y, z = np.round(rng.normal(size=(2, 12)), 1)
    options = {"fit_intercept": True, "feature_cost": [1.0, 1.0, INF, 1.0, 1.0, INF]}
    gammas = (0.2, 1.0, 0.05, 3.0)
    for found, gamma in zip(solve_path(X, y, z, gammas, **options), gammas, strict=True):
        assert found.status is solve(X, y, z, gamma, **options).status
