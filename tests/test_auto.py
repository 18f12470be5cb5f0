"""The choice of a solver: sensible, explained, corrected where it was wrong, within memory."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from spgls import Population, Status, explain_solver, solve, solve_path
from spgls.base import machine
from spgls.matrix import Work, as_matrix
from spgls.solvers import Auto, Krylov, Spectral, auto
from spgls.solvers.auto import make_plan
from spgls.solvers.cost import Cost, krylov_cost, spectral_cost

from .builders import linear_game
from .catalogue import CATALOGUE, problem

TOL = 1e-9


@pytest.fixture(autouse=True)
def fresh_plans():
    """What other tests predicted is no plan for this one."""
    for kept in (auto._costs, auto._plan_within):
        kept.cache_clear()
    yield
    for kept in (auto._costs, auto._plan_within):
        kept.cache_clear()


@pytest.fixture
def ambitious(monkeypatch):
    """Predict that iterations cost nothing, so that they are tried first."""
    monkeypatch.setattr(auto, "krylov_cost", lambda work, games, cores: Cost(0.0, 0.0))


def test_small_and_narrow_data_is_decomposed():
    for m, n, games in ((500, 20, 1), (5000, 20, 100), (500_000, 20, 100)):
        assert make_plan(work(m, n), games).solver == "spectral"


def test_wide_and_sparse_data_is_multiplied():
    for m, n, games in ((4000, 4000, 1), (20_000, 4000, 100), (500, 20_000, 1)):
        assert make_plan(work(m, n), games).solver == "krylov"
    S = sp.random_array(
        (3000, 3000), density=0.01, format="csr", random_state=np.random.default_rng(0)
    )
    assert explain_solver(S).solver == "krylov"


def work(m, n):
    # A view of one number, so that no memory is taken.
    return as_matrix(np.broadcast_to(np.float64(1.0), (m, n))).work


def test_more_of_everything_never_costs_less():
    for cost in (spectral_cost, krylov_cost):
        for m, n in ((1000, 100), (100, 1000), (1000, 1000)):
            base = cost(work(m, n), 1, 2)
            for other in (
                cost(work(2 * m, n), 1, 2),
                cost(work(m, 2 * n), 1, 2),
                cost(work(m, n), 50, 2),
                cost(work(m, n), 1, 1),
            ):
                assert other.seconds >= base.seconds
                assert other.memory >= base.memory


def test_the_choice_is_carried_out():
    X, y, z = linear_game(400, 300)
    assert explain_solver(X, y, z, 0.1).solver == "krylov"
    found = solve(X, y, z, 0.1)
    assert found.solver == "krylov"
    expected = solve(X, y, z, 0.1, solver="spectral")
    assert abs(found.objective - expected.objective) <= TOL * (y @ y)
    small = solve(X[:50, :5], y[:50], z[:50], 0.1)
    assert small.solver == "spectral"


@pytest.mark.parametrize("name", CATALOGUE)
def test_catalogue_equals_spectral(name, ambitious, monkeypatch):
    # Problems with known answers are so small that they would get no plan.
    monkeypatch.setattr(auto, "_SMALL", 0)
    given = problem(name)
    arguments = (given.X, given.y, given.z, given.gamma)
    expected = solve(*arguments, **given.options, solver="spectral")
    found = solve(*arguments, **given.options)
    size = float(given.answer.label_spread)
    if expected.status.ok:
        assert found.status.ok
        assert found.certificate.kind == "proved"
        assert abs(found.objective - expected.objective) <= TOL * size
    else:
        # Where the exact solver does not get there, nothing better is claimed.
        assert found.certificate.relative_gap <= max(expected.certificate.relative_gap, TOL)


def test_what_takes_too_long_is_given_up(ambitious, monkeypatch):
    monkeypatch.setattr(auto, "krylov_pass", lambda work, cores: math.inf)
    X, y, z = linear_game(300, 200, spread=1e4)
    gamma = 1e3
    assert solve(X, y, z, gamma, solver=Krylov(), max_iter=20).status is (Status.ITERATION_LIMIT)
    found = solve(X, y, z, gamma)
    assert found.status.ok
    assert found.solver == "spectral"
    assert "krylov" in found.stats.stages
    assert found.history
    path = solve_path(X, y, z, [gamma, 1e-6])
    assert path[0].solver == "spectral"
    assert path[1].solver == "krylov"
    alone = solve(X, y, z, gamma, solver="spectral")
    assert path[0].objective == pytest.approx(alone.objective, rel=1e-9)


def test_a_limit_or_a_callback_of_the_user_is_no_reason_to_go_on(ambitious):
    X, y, z = linear_game(300, 200, spread=1e4)
    limited = solve(X, y, z, 1e3, max_iter=3)
    assert limited.status is Status.ITERATION_LIMIT
    assert limited.solver == "krylov"
    stopped = solve(X, y, z, 1e3, callback=lambda step: step.iteration == 2)
    assert stopped.status is Status.STOPPED
    assert np.isfinite(stopped.certificate.gap)
    best = solve(X, y, z, 1e3, solver="spectral").objective
    assert stopped.objective - best <= stopped.certificate.gap + 1e-9 * (y @ y)


def test_populations_are_proved_while_that_is_bearable():
    X, y, z = linear_game(400, 300)
    crowd = Population.mixed(0.1, honest=0.5)
    assert explain_solver(X, gamma=crowd).solver == "spectral"
    assert explain_solver(X, gamma=0.1, ridge=1.0).solver == "spectral"
    found = solve(X, y, z, crowd)
    assert found.solver == "spectral"
    assert found.certificate.kind == "proved"
    assert make_plan(work(60_000, 30_000), mixed=True, memory=1e12).solver == "krylov"


@pytest.mark.parametrize(("worth", "solver"), [(0.0, "krylov"), (math.inf, "spectral")])
def test_populations_by_iteration(worth, solver, ambitious, monkeypatch):
    """Where its bound is an estimate the other solver proves it, if that is worth the time."""
    monkeypatch.setattr(auto, "_BEARABLE", 0.0)
    monkeypatch.setattr(auto, "_WORTH", worth)
    if solver == "spectral":
        # As if the columns were too many to be squared for a proof.
        monkeypatch.setattr("spgls.solvers.iterative.curvature.MOST_COLUMNS", 0)
    X, y, z = linear_game(300, 200)
    crowd = Population.mixed(0.1, honest=0.5)
    best, found = (solve(X, y, z, crowd, solver=name) for name in ("spectral", "auto"))
    assert found.solver == solver
    assert solver == "krylov" or "krylov" in found.stats.stages
    assert found.status is best.status
    assert found.objective == pytest.approx(best.objective, rel=1e-9)


def test_plans_of_paths():
    X, y, z = linear_game(400, 300)
    gammas = np.geomspace(1e-3, 1e3, 7)
    path = solve_path(X, y, z, gammas)
    expected = solve_path(X, y, z, gammas, solver="spectral")
    np.testing.assert_allclose(path.objective, expected.objective, atol=TOL * (y @ y), rtol=0)
    mixed = solve_path(X, y, z, [0.1, Population.mixed(0.1)])
    assert all(solution.certificate.kind == "proved" for solution in mixed)


# Memory


def test_what_does_not_fit_is_not_chosen():
    large = work(20_000, 20_000)
    assert make_plan(large, memory=1e12, cores=10_000).options[0].fits
    tight = make_plan(large, memory=1e9)
    assert tight.solver == "krylov"
    assert not tight.options[0].fits
    assert "(does not fit)" in repr(tight)
    # So narrow that an iteration would not pay, were there room.
    assert make_plan(work(3_000, 3_000), memory=1e8).solver == "krylov"


def test_sums_that_workers_cannot_hold_are_not_made():
    """A part of the squares of 20000 columns is 3.2 GB, on each thread of every worker."""
    m, n = 2_000_000, 20_000
    # Ten entries a row.
    size = 10.0 * m
    there = Work(m, n, size, 12 * size, True, 10 * size, 10 * size, parts=16, room=1.5e9)
    for mixed in (False, True):
        plan = make_plan(there, mixed=mixed, memory=1e12)
        assert plan.solver == "krylov"
        assert not plan.options[0].fits
        # Never given up for what does not fit.
        assert plan.patience == 0
    assert make_plan(replace(there, room=1e11), memory=1e12).options[0].fits
    few = replace(there, columns=100)
    assert make_plan(few, memory=1e12).solver == "spectral"


def test_nothing_fits():
    with pytest.raises(MemoryError, match=r"1 MB .* free.*'krylov', which needs least"):
        make_plan(work(2000, 2000), memory=1e6)


def test_a_decomposition_that_does_not_fit_is_refused(monkeypatch):
    X, y, z = linear_game(2500, 2400)
    monkeypatch.setattr(auto, "available_memory", lambda: 1.2e8)
    for call in (
        lambda solver: solve(X, y, z, 0.1, solver=solver),
        lambda solver: solve_path(X, y, z, [0.1, 0.2], solver=solver),
    ):
        with pytest.raises(MemoryError, match=r"solver='spectral' would take .*'krylov'"):
            call("spectral")
    assert solve(X, y, z, 0.1).solver == "krylov"


def test_memory_of_the_machine(monkeypatch):
    assert 0.0 < machine.available_memory() < 1e15
    files = {
        "/proc/meminfo": "MemTotal: 9 kB\nMemAvailable: 4000 kB\n",
        "/sys/fs/cgroup/memory.max": "3000000\n",
        "/sys/fs/cgroup/memory.current": "1000000\n",
        "/sys/fs/cgroup/memory.stat": "anon 1\ninactive_file 500000\n",
    }

    def read_text(path):
        if path.as_posix() not in files:
            raise FileNotFoundError(path)
        return files[path.as_posix()]

    monkeypatch.setattr(Path, "read_text", read_text)
    assert machine.available_memory() == 2.5e6
    files["/sys/fs/cgroup/memory.max"] = "max\n"
    assert machine.available_memory() == 4.096e6


def test_threads_of_the_machine(monkeypatch):
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    cores = machine.threads()
    assert cores >= 1
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert machine.threads() == 1
    monkeypatch.setenv("OMP_NUM_THREADS", "nonsense")
    assert machine.threads() == cores


# Explanations


def test_explanation():
    X, y, z = linear_game(400, 300)
    cost = np.where(np.arange(300) < 290, np.inf, 1.0)
    plan = explain_solver(X, y, z, [0.1, 1.0], threads=3, memory=1e9)
    assert plan.threads == 3
    assert plan.available == 1e9
    assert {option.solver for option in plan.options} == {"spectral", "krylov"}
    assert plan.seconds == min(option.seconds for option in plan.options)
    assert plan.memory <= 1e9
    text = repr(plan)
    assert plan.reason in text
    assert "order 300 (columns)" in text
    assert "3 threads and 1 GB" in text
    # What cannot be changed is not decomposed.
    assert "order 10 (columns)" in repr(explain_solver(X, feature_cost=cost))
    assert explain_solver(X, feature_cost=np.full(300, np.inf)).solver == "spectral"
    assert "(rows)" in repr(explain_solver(X.T))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"X": np.full(3, 1.0)}, ValueError, "X"),
        ({"gamma": -1.0}, ValueError, "gamma"),
        ({"gamma": []}, ValueError, "gammas"),
        ({"y": np.ones(3)}, ValueError, "y"),
        ({"threads": 0}, ValueError, "threads"),
        ({"memory": -1.0}, ValueError, "memory"),
        ({"ridge": -1.0}, ValueError, "ridge"),
        ({"feature_cost": [1.0]}, ValueError, "feature_cost"),
        ({"sample_weight": [-1.0] * 4}, ValueError, "sample_weight"),
    ],
)
def test_bad_input(arguments, error, message):
    with pytest.raises(error, match=message):
        explain_solver(**{"X": np.ones((4, 2)), **arguments})


def test_auto_is_no_method_of_its_own():
    from spgls.solvers import available_solvers, resolve

    assert "auto" not in {capabilities.name for capabilities in available_solvers()}
    assert isinstance(resolve("auto"), Auto)
    assert isinstance(resolve(Spectral()), Spectral)
