"""Functions and classes from outside as solvers: what they are given, and how they are judged."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import spgls
from spgls import (
    Floor,
    Population,
    StackelbergRegressor,
    StackelbergRegressorCV,
    Status,
    certify,
    solve,
    solve_path,
)
from spgls.datasets import catalogue, load_problem
from spgls.solvers import Capabilities, available_solvers, own, register, registry

from .builders import linear_game
from .test_catalogue import measure
from .test_docs_examples import blocks, differences

PAGE = Path(__file__).parents[1] / "docs" / "own_solvers.md"


def exact(X, y, z, gamma):
    """The library's own answer to the plain game."""
    return solve(X, y, z, gamma, solver="spectral").coef


def least_squares(X, y, z, gamma):
    return np.linalg.lstsq(X, y, rcond=None)[0]


def options(m, n, seed=0):
    rng = np.random.default_rng(seed)
    cost = 2.0 ** rng.integers(-2, 3, n)
    cost[1] = np.inf
    return {
        "plain": {},
        "intercept": {"fit_intercept": True},
        "weights": {"sample_weight": rng.integers(1, 5, m) / 2.0},
        "costs": {"feature_cost": cost[[0, *range(2, n), 0]]},
        "all": {"fit_intercept": True, "sample_weight": rng.random(m), "feature_cost": cost},
    }


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("name", options(40, 5))
def test_an_optimal_answer_to_the_plain_game_is_optimal_in_the_game(name, kind):
    X, y, z = linear_game(40, 5)
    told = options(40, 5)[name]
    found = solve(kind(X), y, z, 0.5, solver=exact, **told)
    best = solve(X, y, z, 0.5, solver="spectral", **told)
    assert found.status is Status.OPTIMAL
    assert found.solver == "exact"
    assert found.coef == pytest.approx(best.coef, rel=1e-8)
    assert found.intercept == pytest.approx(best.intercept, rel=1e-8, abs=1e-12)
    assert found.objective == pytest.approx(best.objective, rel=1e-12)
    assert found.alpha == pytest.approx(best.alpha, rel=1e-8)
    assert found.multiplier == pytest.approx(best.multiplier, rel=1e-6)
    assert found.certificate.kind == "proved"


def test_without_options_a_function_gets_what_was_passed():
    X, y, z = linear_game(20, 3)
    seen = []

    def look(*told):
        seen.extend(told)
        return np.zeros(3)

    solve(X, y, z, 0.25, solver=look)
    for given, passed in zip(seen, (X, y, z, 0.25), strict=True):
        assert np.array_equal(given, passed)
    assert not any(part.flags.writeable for part in seen[:3])


@pytest.mark.parametrize("shape", [(40, 5), (2000, 60)])
def test_an_answer_that_is_not_best_says_so_with_the_gap_of_certify(shape):
    X, y, z = linear_game(*shape)
    found = solve(X, y, z, 0.5, solver=least_squares)
    judged = certify(X, y, z, 0.5, found.coef)
    assert found.status is Status.STATIONARY
    assert found.certificate.relative_gap == pytest.approx(judged.relative_gap, rel=1e-3)
    assert found.certificate.relative_gap > 1e-4


@pytest.mark.parametrize("method", [exact, least_squares])
@pytest.mark.parametrize("name", catalogue())
def test_what_is_said_of_an_answer_is_true(name, method):
    problem = load_problem(name)
    if method is least_squares and "mid-size" in problem.tags:
        return
    found, answer = solve(**problem.arguments, solver=method), problem.answer
    loss, _ = measure(problem, found)
    excess, slack = loss - problem.optimum, 1e-12 * float(answer.label_size)
    assert found.objective == pytest.approx(loss, rel=1e-9, abs=slack)
    assert found.certificate.lower_bound <= problem.optimum + slack
    assert -slack <= excess <= found.certificate.gap + slack
    if found.status.ok:
        assert excess <= 1e-9 * float(answer.label_spread)
        assert answer.status != "unattained"
    if method is exact:
        assert found.status.ok or found.status is Status.UNATTAINED


def test_large_games_are_judged_to_the_tolerance():
    X, y, z = linear_game(2000, 60)
    assert solve(X, y, z, 0.5, solver=exact, tol=1e-10).status is Status.OPTIMAL


def test_no_best_predictor_is_called_so():
    X, y, _ = linear_game(30, 4)
    assert solve(X, y, y, 0.5, solver=exact).status is Status.UNATTAINED


def test_a_path_makes_the_rows_once(monkeypatch):
    X, y, z = linear_game(40, 5)
    made = []
    plain = own._plain_game
    monkeypatch.setattr(own, "_plain_game", lambda *told: made.append(1) or plain(*told))
    path = solve_path(X, y, z, [0.1, 1.0, 10.0], solver=exact, fit_intercept=True)
    alone = [solve(X, y, z, gamma, fit_intercept=True).objective for gamma in path.gammas]
    assert len(made) == 1
    assert path.objective == pytest.approx(alone, rel=1e-10)
    assert set(path.status) == {Status.OPTIMAL}
    assert [one.stats.seconds for one in path] == sorted(one.stats.seconds for one in path)


def test_an_estimator_takes_a_function():
    X, y, _ = linear_game(40, 5)
    told = {"gamma": 0.5, "goal": Floor(0.0), "honest_share": 0, "null_space": "use"}
    model = clone(StackelbergRegressor(solver=exact, **told)).fit(X, y)
    best = StackelbergRegressor(solver="spectral", **told).fit(X, y)
    assert model.get_params()["solver"] is exact
    assert model.solver_ == "exact"
    assert model.coef_ == pytest.approx(best.coef_, rel=1e-8)
    with pytest.warns(UserWarning, match="stationary, relative gap"):
        StackelbergRegressor(solver=least_squares, **told).fit(X, y)


def test_a_cross_validated_estimator_takes_a_function():
    X, y, _ = linear_game(60, 4)
    told = {"goal": Floor(0.0), "honest_shares": [0], "null_space": "use", "world": 0.5, "cv": 3}
    model, best = (
        StackelbergRegressorCV([0.1, 0.5, 5.0], solver=solver, **told).fit(X, y)
        for solver in (exact, "spectral")
    )
    assert model.best_params_ == best.best_params_
    assert model.coef_ == pytest.approx(best.coef_, rel=1e-8)
    scores = (one.cv_results_["mean_test_score"] for one in (model, best))
    assert next(scores) == pytest.approx(next(scores), rel=1e-6)


@pytest.mark.parametrize(
    "told",
    [
        {"gamma": Population.mixed(0.5)},
        {"gamma": 0.5, "ridge": 1.0},
        {"gamma": 0.5, "null_space": "avoid"},
    ],
)
def test_games_that_a_function_does_not_know_are_refused(told):
    X, y, z = linear_game(40, 5)
    with pytest.raises(ValueError, match=r"^solver 'exact' "):
        solve(X, y, z, solver=exact, **told)


def test_the_refusal_of_an_estimator_names_the_function():
    X, y, _ = linear_game(40, 5)
    with pytest.raises(ValueError, match=r"^solver 'exact' knows neither.*honest_share=0"):
        StackelbergRegressor(goal=Floor(0.0), solver=exact).fit(X, y)


@pytest.mark.parametrize(
    ("answer", "error", "said"),
    [
        (np.zeros(4), ValueError, r"3; got an array of shape \(4,\)\.$"),
        (
            np.zeros((3, 1)),
            ValueError,
            r"3; got an array of shape \(3, 1\)\. Return it with .ravel",
        ),
        (1.0, ValueError, r"got an array of shape \(\)"),
        (np.array([0.0, np.nan, 0.0]), ValueError, "entry 1 is nan"),
        (np.array([np.inf, 0.0, 0.0]), ValueError, "entry 0 is inf"),
        (None, TypeError, "got None"),
        (["a", "b", "c"], TypeError, "got a list"),
        ((np.zeros(3), 1.0), TypeError, "got a pair. The intercept is found for it"),
    ],
)
def test_wrong_answers_name_the_solver(answer, error, said):
    def mine(X, y, z, gamma):
        return answer

    X, y, z = linear_game(20, 3)
    with pytest.raises(error, match=rf"^solver 'mine' must return one finite coefficient.*{said}"):
        solve(X, y, z, 0.5, solver=mine)


def test_names_of_things_that_can_be_called():
    class Method:
        def __call__(self, X, y, z, gamma):
            return exact(X, y, z, gamma)

    X, y, z = linear_game(20, 3)
    for solver, name in ((Method(), "Method"), (partial(exact), "exact")):
        assert solve(X, y, z, 0.5, solver=solver).solver == name
    with pytest.raises(TypeError, match=r"got the class Method, not an object such as Method\(\)"):
        solve(X, y, z, 0.5, solver=Method)


def test_functions_are_compared_with_solvers():
    X, y, z = linear_game(40, 5)
    found = spgls.compare_solvers(X, y, z, 0.5, solvers=["spectral", exact, least_squares])
    assert [trial.solver for trial in found] == ["spectral", "exact", "least_squares"]
    assert [trial.solution.status.ok for trial in found] == [True, True, False]


def test_rows_that_do_not_fit_are_refused(monkeypatch):
    monkeypatch.setattr(own, "available_memory", lambda: 100.0)
    X, y, z = linear_game(40, 5)
    with pytest.raises(MemoryError, match=r"^solver 'exact' is a function.*solver='krylov'"):
        solve(X, y, z, 0.5, solver=exact)


# Registered classes


@pytest.fixture
def fresh_registry(monkeypatch):
    monkeypatch.setattr(registry, "_REGISTRY", dict(registry._REGISTRY))


def declared(name):
    return Capabilities(name, "a test", False, False, False, "none")


def test_a_name_that_is_taken_is_refused(fresh_registry):
    @dataclass(frozen=True)
    class Mine:
        capabilities: ClassVar[Capabilities] = declared("spectral")

        def solve(self, data, gamma, controls): ...

    with pytest.raises(
        ValueError, match=r"^capabilities.name must be .*'spectral' is spgls.solvers"
    ):
        register(Mine)
    Mine.capabilities = declared("mine")
    assert register(register(Mine)) is Mine
    assert [one.name for one in available_solvers()].count("mine") == 1


@pytest.mark.parametrize("thing", [exact, int, type("Half", (), {"capabilities": declared("x")})])
def test_what_is_no_solver_class_is_not_registered(thing, fresh_registry):
    with pytest.raises(TypeError, match=r"^register takes a class with capabilities"):
        register(thing)


def test_the_page_says_what_its_code_prints(fresh_registry, capsys):
    page, space = PAGE.read_text(encoding="utf-8"), {}
    # Dataclasses look up the module that they stand in.
    space["__name__"] = __name__
    wrong = []
    for code, said in blocks(page):
        exec(compile(code, PAGE.name, "exec"), space)
        wrong += differences(said, capsys.readouterr().out)
    assert not wrong, "\n".join(wrong)
    assert "register" in page
