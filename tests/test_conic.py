"""The conic solvers: what they find and prove, how their inner codes may fail, what they refuse."""

from __future__ import annotations

import sys
from dataclasses import fields
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spgls
from spgls.reduction.reduced import ReducedGame
from spgls.solvers import SDP, SOCP, Bisection, Spectral, Status
from spgls.solvers.published.conic import rank_one_pieces, symmetric, triangle
from spgls.solvers.published.from_multiplier import recover
from spgls.sphere import dual_bound, solve_sphere
from spgls.sphere.pole import find_pole, scale_game

from .builders import linear_game, sdp_matrices, unit_game
from .real_games import FOLDER, games

clarabel = pytest.importorskip("clarabel")
scs = pytest.importorskip("scs")

#: Each solver with the accuracy asked of it, in units of |Py|^2.
SOLVERS = {
    "socp": (SOCP(), 1e-7),
    "sdp": (SDP(), 1e-6),
    "sdp-scs": (SDP(backend="scs"), 1e-6),
    "bisection": (Bisection(), 1e-4),
    "bisection-scs": (Bisection(backend="scs"), 1e-4),
}
CODES = {"socp": "cone", "sdp": "clarabel", "sdp-scs": "scs", "bisection": "clarabel"}


def plain(m=40, n=6):
    return *linear_game(m, n, floor=0.0), 0.5


# What is found and proved


@pytest.mark.parametrize("number", range(50))
@pytest.mark.parametrize("name", SOLVERS)
def test_agrees_with_the_secular_equation(name, number):
    solver, accuracy = SOLVERS[name]
    this = unit_game(number)
    exact = spgls.solve(this.X, this.y, this.z, this.gamma)
    found = spgls.solve(this.X, this.y, this.z, this.gamma, solver=solver)
    size = this.y @ this.y
    assert found.solver == solver.capabilities.name
    assert abs(found.objective - exact.objective) <= accuracy * size
    assert found.certificate.kind == "proved"
    assert found.certificate.relative_gap <= accuracy
    assert found.certificate.lower_bound <= exact.objective + 1e-12 * size


@pytest.mark.parametrize("number", range(50))
@pytest.mark.parametrize("name", SOLVERS)
def test_own_multiplier_is_feasible_for_the_matrix_inequality(name, number):
    """The proof again, by eigenvalues of the paper's matrices and nothing of the solver's."""
    solver, accuracy = SOLVERS[name]
    this = unit_game(number)
    found = spgls.solve(this.X, this.y, this.z, this.gamma, solver=solver)
    A, B, C = sdp_matrices(this)
    # Where the loss vanishes, that it is a square proves more than the multiplier.
    mu = found.certificate.lower_bound - accuracy / 100 * (this.y @ this.y)
    slack = A - mu * B + 4.0 * found.multiplier * C
    size = np.linalg.norm(A, 2) + np.linalg.norm(4.0 * found.multiplier * C, 2)
    assert np.linalg.eigvalsh(slack)[0] >= -1e-13 * size


@pytest.mark.parametrize("name", SOLVERS)
def test_options_change_the_game_as_elsewhere(name):
    solver, accuracy = SOLVERS[name]
    X, y, z, gamma = plain()
    rng = np.random.default_rng(1)
    cost = np.array([1.0, 0.25, np.inf, 4.0, 1.0, np.inf])
    options = {"fit_intercept": True, "feature_cost": cost, "sample_weight": rng.random(40)}
    exact = spgls.solve(X, y, z, gamma, **options)
    found = spgls.solve(X, y, z, gamma, **options, solver=solver)
    assert found.objective == pytest.approx(exact.objective, rel=accuracy)
    np.testing.assert_allclose(found.coef, exact.coef, atol=20 * np.sqrt(accuracy))


@pytest.mark.parametrize("name", SOLVERS)
def test_nothing_to_change_is_least_squares(name):
    X, y, z, gamma = plain()
    cost = np.full(X.shape[1], np.inf)
    found = spgls.solve(X, y, z, gamma, feature_cost=cost, solver=SOLVERS[name][0])
    assert found.status is Status.LEAST_SQUARES
    np.testing.assert_allclose(found.coef, np.linalg.lstsq(X, y, rcond=None)[0], atol=1e-10)


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_goals_that_reveal_the_labels_are_said_to(name, shift):
    X, y, _, gamma = plain()
    found = spgls.solve(X, y, y + shift, gamma, fit_intercept=True, solver=SOLVERS[name][0])
    assert found.status is Status.UNATTAINED
    assert np.isfinite(found.coef).all()
    assert found.certificate.relative_gap <= 1e-9


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("what", ["labels", "goals", "both", "features", "half the goals"])
def test_zeros(name, what):
    X, y, z, gamma = plain()
    X = 0.0 * X if what == "features" else X
    y = 0.0 * y if what in ("labels", "both") else z / 2 if what == "half the goals" else y
    z = 0.0 * z if what in ("goals", "both") else z
    exact = spgls.solve(X, y, z, gamma)
    found = spgls.solve(X, y, z, gamma, solver=SOLVERS[name][0])
    assert found.objective <= exact.objective + 1e-4 * (y @ y)
    assert found.certificate.lower_bound <= exact.objective + 1e-12 * (y @ y)


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("power", [-8, 8])
def test_units_do_not_matter(name, power):
    solver, accuracy = SOLVERS[name]
    X, y, z, gamma = plain()
    wanted = spgls.solve(X, y, z, gamma, solver=solver)
    scale = 10.0**power
    by_gamma = spgls.solve(X, scale * y, scale * z, gamma * scale**2, solver=solver)
    by_data = spgls.solve(X * scale, y, z, gamma / scale**2, solver=solver)
    size = y @ y
    assert by_gamma.objective / scale**2 == pytest.approx(wanted.objective, abs=accuracy * size)
    assert by_data.objective == pytest.approx(wanted.objective, abs=accuracy * size)


@pytest.mark.long
@pytest.mark.skipif(not FOLDER, reason="needs SPGLS_DATA")
def test_real_sets_agree():
    for name, (X, y, z, gamma) in games().items():
        comparison = spgls.compare_solvers(X, y, z, gamma)
        exact = comparison["spectral"].solution
        for trial in comparison:
            assert trial.solution is not None, (name, trial)
            excess = (trial.solution.objective - exact.objective) / (y @ y)
            assert abs(excess) <= 1e-6, (name, trial)
            assert trial.solution.certificate.relative_gap <= 1e-6, (name, trial)


# Errors of the multiplier count squared


@pytest.mark.parametrize("seed", range(5))
def test_a_multiplier_slightly_off_costs_its_square(seed):
    rng = np.random.default_rng(seed)
    sigma = np.geomspace(1.0, 1e-3, 8)
    reduced = ReducedGame(sigma, rng.normal(size=8), rng.normal(size=8), 1.0, 0.2, 1.5)
    problem = scale_game(reduced, 0.3, 1.0, 1.0, 1e-14)
    exact = solve_sphere(problem.game, problem.gamma)
    pole = find_pole(problem)
    for off in (1e-2, 1e-3, -1e-3):
        shift = (exact.nu - pole.nu) * (1 + off)
        point = recover(problem, pole, shift, 0.0)
        norm2 = point.x @ point.x + point.fill**2
        assert norm2 == pytest.approx(problem.gamma * point.s * point.c, rel=1e-12)
        size = problem.game.yy + problem.game.zz
        assert exact.value - 1e-14 * size <= point.value <= exact.value + off**2 * size
        assert point.value - dual_bound(problem.game, problem.gamma, point) <= 2 * off**2 * size


# Matrices


@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 2**32 - 1), st.booleans())
@settings(deadline=None)
def test_rank_one_pieces(order, rank, seed, balanced):
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(order, rank)) * 10.0 ** rng.uniform(-3, 3, rank)
    M = half @ half.T
    C = rng.normal(size=(order, order))
    C = C + C.T
    size = np.linalg.norm(M) * np.linalg.norm(C)
    if balanced:
        C -= np.trace(C @ M) / np.trace(M) * np.eye(order)
    pieces = rank_one_pieces(M, C)
    assert pieces.shape[1] <= min(order, rank)
    np.testing.assert_allclose(pieces @ pieces.T, M, atol=1e-12 * np.linalg.norm(M))
    forms = np.einsum("ij,ik,kj->j", pieces, C, pieces)
    wanted = 0.0 if balanced else forms.mean()
    np.testing.assert_allclose(forms, wanted, atol=1e-11 * size)


def test_rank_one_pieces_of_nothing():
    assert rank_one_pieces(np.zeros((3, 3)), np.eye(3)).shape == (3, 0)


@pytest.mark.parametrize("upper", [False, True])
def test_triangles_keep_the_inner_product(upper):
    rng = np.random.default_rng(0)
    S, T = (part + part.T for part in rng.normal(size=(2, 5, 5)))
    s, t = triangle(S, upper=upper), triangle(T, upper=upper)
    assert s @ t == pytest.approx(np.sum(S * T))
    np.testing.assert_allclose(symmetric(s, 5, upper=upper), S)
    # Lower by columns: entry (2, 0) comes third; upper by columns: entry (0, 1) comes second.
    assert s[1] == pytest.approx(np.sqrt(2) * S[1, 0])
    assert s[2] == pytest.approx(S[1, 1] if upper else np.sqrt(2) * S[2, 0])


# What a solution says about the way it was found


@pytest.mark.parametrize("name", CODES)
def test_stages_name_the_cone_solver(name):
    found = spgls.solve(*plain(), solver=SOLVERS[name][0])
    first = "reduction" if name == "socp" else "squares"
    assert list(found.stats.stages) == [first, CODES[name], "recovery"]
    assert 0.0 < sum(found.stats.stages.values()) <= found.stats.seconds * (1 + 1e-9)
    assert found.stats.iterations > 0


def test_scs_is_chosen_for_larger_games():
    found = spgls.solve(*plain(60, 40), solver="sdp")
    assert "scs" in found.stats.stages
    assert found.status is Status.OPTIMAL


def test_bisection_halves_an_interval():
    X, y, z, gamma = plain()
    found = spgls.solve(X, y, z, gamma, solver=Bisection(tolerance=0.01))
    assert len(found.history) == found.stats.iterations == 7
    assert all(np.diff([step.objective for step in found.history]) <= 0.0)
    wanted = spgls.solve(X, y, z, gamma).objective
    assert found.objective <= wanted + 0.01 * (y @ y)


def test_bisection_takes_limit_and_callback():
    steps = []
    found = spgls.solve(*plain(), solver="bisection", max_iter=3)
    assert len(found.history) == 3
    found = spgls.solve(
        *plain(), solver="bisection", callback=lambda s: len(steps) or steps.append(s)
    )
    assert len(found.history) == 2
    assert steps == [found.history[0]]


def test_start_below_the_value_is_noticed():
    X, y, z, gamma = plain()
    exact = spgls.solve(X, y, z, gamma)
    solver = Bisection(start=exact.objective / (y @ y) / 2)
    found = spgls.solve(X, y, z, gamma, solver=solver)
    assert found.objective >= exact.objective - 1e-12 * (y @ y)
    assert found.certificate.lower_bound <= exact.objective + 1e-12 * (y @ y)


# Failures of the inner solver


def honest(found):
    """The certificate is true, whatever became of the solve."""
    X, y, z, gamma = plain()
    exact = spgls.solve(X, y, z, gamma)
    assert found.certificate.lower_bound <= exact.objective + 1e-12 * (y @ y)
    assert found.objective - found.certificate.gap <= exact.objective + 1e-12 * (y @ y)
    assert found.objective <= y @ y * (1 + 1e-12)
    assert found.status.advice.endswith(".")
    return True


@pytest.mark.parametrize(
    "solver",
    [
        SOCP(max_iter=1, rounds=1),
        SDP(max_iter=1, rounds=1),
        SDP(max_iter=1, rounds=1, backend="scs"),
        Bisection(max_inner=1),
        Bisection(max_inner=1, backend="scs"),
    ],
)
def test_iteration_limit_of_the_inner_solver(solver):
    found = spgls.solve(*plain(), solver=solver)
    assert found.status is Status.ITERATION_LIMIT
    assert honest(found)


@pytest.mark.parametrize(
    "solver", [SOCP(accuracy=0.1, rounds=1), SDP(accuracy=0.1, rounds=1), Bisection(tolerance=0.5)]
)
def test_inaccurate_inner_solver(solver):
    found = spgls.solve(*plain(), solver=solver, tol=1e-14)
    assert found.status is Status.INACCURATE
    assert honest(found)


class PanicException(BaseException):
    """What a panic of a code written in Rust looks like from Python."""


class Broken:
    """A cone solver that raises, or ends without an answer."""

    def __init__(self, *arguments, **options):
        pass

    def solve(self, *arguments, **options):
        raise self.error


@pytest.mark.parametrize("error", [PanicException, MemoryError, RuntimeError, ValueError])
@pytest.mark.parametrize("name", SOLVERS)
def test_breakdown_becomes_a_status(monkeypatch, name, error):
    broken = type("Solver", (Broken,), {"error": error("no memory")})
    monkeypatch.setattr(clarabel, "DefaultSolver", broken)
    monkeypatch.setattr(scs, "SCS", broken)
    found = spgls.solve(*plain(), solver=SOLVERS[name][0])
    assert found.status is Status.FAILED
    assert "cone solver" in found.status.advice
    assert honest(found)


@pytest.mark.parametrize("name", SOLVERS)
def test_interruption_passes_through(monkeypatch, name):
    broken = type("Solver", (Broken,), {"error": KeyboardInterrupt()})
    monkeypatch.setattr(clarabel, "DefaultSolver", broken)
    monkeypatch.setattr(scs, "SCS", broken)
    with pytest.raises(KeyboardInterrupt):
        spgls.solve(*plain(), solver=SOLVERS[name][0])


@pytest.mark.parametrize("status", ["PrimalInfeasible", "DualInfeasible", "NumericalError"])
@pytest.mark.parametrize("name", ["socp", "sdp", "bisection"])
def test_claims_of_infeasibility_become_a_status(monkeypatch, name, status):
    class Refuted(Broken):
        def solve(self):
            answer = ModuleType("answer")
            answer.status, answer.iterations = status, 7
            answer.x = answer.z = [np.nan]
            return answer

    monkeypatch.setattr(clarabel, "DefaultSolver", Refuted)
    found = spgls.solve(*plain(), solver=name)
    assert found.status is Status.FAILED
    assert honest(found)


def test_scs_claims_infeasibility(monkeypatch):
    class Refuted(Broken):
        def solve(self, warm_start=False):
            info = {"status_val": -2, "status": "infeasible", "iter": 3}
            return {"x": np.full(2, np.nan), "y": np.full(36, np.nan), "info": info}

    monkeypatch.setattr(scs, "SCS", Refuted)
    found = spgls.solve(*plain(), solver=SDP(backend="scs"))
    assert found.status is Status.FAILED
    assert honest(found)


# What is missing, too large or wrong


@pytest.mark.parametrize(
    ("solver", "module"),
    [
        ("socp", "clarabel"),
        ("sdp", "clarabel"),
        (SDP(backend="scs"), "scs"),
        (Bisection(backend="scs"), "scs"),
    ],
)
def test_missing_extra_is_named(monkeypatch, solver, module):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf"needs {module}.*pip install 'spgls\[conic\]'"):
        spgls.solve(*plain(), solver=solver)
    comparison = spgls.compare_solvers(*plain(), solvers=["spectral", solver])
    assert comparison[1].solution is None
    assert "spgls[conic]" in comparison[1].reason


def test_mosek_is_not_in_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "mosek", None)
    with pytest.raises(ImportError, match="pip install mosek, with a licence of its own"):
        spgls.solve(*plain(), solver=SDP(backend="mosek"))


def test_mosek_without_a_licence_is_left_alone(monkeypatch):
    class Env:
        def __init__(self):
            raise RuntimeError("no licence")

    mosek = ModuleType("mosek")
    mosek.Env = Env
    monkeypatch.setitem(sys.modules, "mosek", mosek)
    found = spgls.solve(*plain(), solver="sdp")
    assert "clarabel" in found.stats.stages
    found = spgls.solve(*plain(), solver=SDP(backend="mosek"))
    assert found.status is Status.FAILED


@pytest.mark.parametrize(
    ("solver", "instead"),
    [
        (SOCP(max_size=5), "gltr"),
        (SDP(max_size=5), "socp"),
        (Bisection(max_size=5), "socp"),
    ],
)
def test_sizes_that_cannot_work_are_refused(solver, instead):
    name = solver.capabilities.name
    with pytest.raises(ValueError, match=rf"solver '{name}'.*here 6.*max_size=5.*{instead}"):
        spgls.solve(*plain(), solver=solver)
    comparison = spgls.compare_solvers(*plain(), solvers=[solver])
    assert "max_size=5" in comparison[0].reason


@pytest.mark.parametrize(("name", "limit"), [("sdp", 300), ("bisection", 150)])
def test_default_sizes(name, limit):
    X = np.random.default_rng(0).normal(size=(5, limit + 1))
    with pytest.raises(ValueError, match=f"max_size={limit}"):
        spgls.solve(X, X[:, 0], X[:, 1], 0.5, solver=name)


def test_interior_point_limit_comes_from_memory(monkeypatch):
    monkeypatch.setattr("spgls.solvers.published.semidefinite.memory_bytes", lambda: 8 * 10.0**4)
    with pytest.raises(ValueError, match=r"asks clarabel .*here 40.*max_size=8"):
        spgls.solve(*plain(50, 40), solver=SDP(backend="clarabel"))


NOT_COUNTS = [(0, ValueError), (1.5, TypeError), ("3", TypeError), (True, TypeError)]
NOT_SHARES = [(0.0, ValueError), (1.0, ValueError), (np.nan, ValueError), ("1", TypeError)]
NOT_CODES = [("cvxpy", ValueError), (None, TypeError), (1, TypeError)]
BAD = {
    SOCP: {
        "engine": [("svd", ValueError), (None, TypeError)],
        "accuracy": [*NOT_SHARES, (None, TypeError)],
        "max_iter": [*NOT_COUNTS, (None, TypeError)],
        "rounds": [*NOT_COUNTS, (None, TypeError)],
        "max_size": NOT_COUNTS,
    },
    SDP: {
        "backend": NOT_CODES,
        "accuracy": NOT_SHARES,
        "max_iter": NOT_COUNTS,
        "rounds": [*NOT_COUNTS, (None, TypeError)],
        "max_size": NOT_COUNTS,
    },
    Bisection: {
        "start": [(0.0, ValueError), (np.inf, ValueError), (None, TypeError)],
        "tolerance": [*NOT_SHARES, (None, TypeError)],
        "backend": NOT_CODES,
        "accuracy": NOT_SHARES,
        "max_inner": NOT_COUNTS,
        "max_size": NOT_COUNTS,
    },
}


@pytest.mark.parametrize("solver", BAD)
def test_every_constant_is_in_the_table(solver):
    assert {field.name for field in fields(solver)} == set(BAD[solver])


@pytest.mark.parametrize(
    ("solver", "constant", "value", "error"),
    [
        pytest.param(solver, constant, *case, id=f"{solver.__name__}-{constant}-{case[0]}")
        for solver, constants in BAD.items()
        for constant, cases in constants.items()
        for case in cases
    ],
)
def test_bad_constants(solver, constant, value, error):
    with pytest.raises(error, match=f"^{constant} must be "):
        solver(**{constant: value})


def test_engines_of_the_reduction_agree():
    X, y, z, gamma = plain()
    wanted = spgls.solve(X, y, z, gamma, solver=Spectral()).objective
    for engine in ("auto", "gram", "qr"):
        found = spgls.solve(X, y, z, gamma, solver=SOCP(engine=engine))
        assert found.objective == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("name", ["sdp", "bisection"])
def test_columns_that_are_all_rounding_warn_of_nothing(name):
    """Two rows that free columns explain: a square is negative by rounding (2001/236528)."""
    X, y, z = np.array([[-3.0, -2.0], [1.0, 3.0]]), np.ones(2), np.array([0.3, -0.9])
    cost = [np.inf, 0.4691907059717543]
    found = spgls.solve(
        X, y, z, 10.268165728064758, fit_intercept=True, feature_cost=cost, solver=name
    )
    assert found.status.ok
    assert found.objective <= 1e-28
