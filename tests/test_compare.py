"""Comparisons of solvers: everyone gets a row, and the rows tell the truth."""

from __future__ import annotations

import io
import sys
from dataclasses import FrozenInstanceError

import numpy as np
import pandas as pd
import pytest

import spgls
from spgls import Comparison, Trial, compare_solvers, solve
from spgls.solvers import ADMM, GLTR, Spectral, available_solvers
from spgls.solvers.solution import Status

from .builders import linear_game, negative_game

COLUMNS = ["solver", "status", "above_bound", "relative_gap", "kind", "passes", "iterations"]


@pytest.fixture(scope="module")
def game():
    return *linear_game(80, 6, floor=0.0), 0.5


@pytest.fixture(scope="module")
def mixed(game):
    """A direct solver, two iterative ones, one of them with constants, and one that refuses."""
    chosen = ["spectral", "gltr", GLTR(reorthogonalise=False), ADMM(max_size=3)]
    return compare_solvers(*game, solvers=chosen)


def test_everyone_by_default(game):
    comparison = compare_solvers(*game)
    assert [trial.solver for trial in comparison] == [c.name for c in available_solvers()]
    exact = solve(*game)
    for trial in comparison:
        assert trial.solution.status is Status.OPTIMAL
        assert trial.solution.objective == pytest.approx(exact.objective, rel=1e-8)
        assert trial.solution.objective >= comparison.lower_bound - comparison.rounding


def test_options_reach_every_solver(game):
    X, y, z, gamma = game
    rng = np.random.default_rng(1)
    options = {
        "fit_intercept": True,
        "feature_cost": rng.uniform(0.5, 2.0, size=6),
        "sample_weight": rng.uniform(0.5, 2.0, size=80),
        "tol": 1e-7,
    }
    exact = solve(X, y + 1.0, z, gamma, **options)
    for trial in compare_solvers(X, y + 1.0, z, gamma, **options):
        np.testing.assert_allclose(trial.solution.coef, exact.coef, rtol=1e-2, atol=1e-3)
        assert trial.solution.intercept == pytest.approx(exact.intercept, abs=1e-2)
        assert trial.solution.certificate.relative_gap <= 1e-7


def test_rows_by_position_by_name_in_turn(mixed):
    assert isinstance(mixed, Comparison)
    assert len(mixed) == 4
    assert list(mixed) == [mixed[i] for i in range(4)]
    assert mixed["gltr"] is mixed[1] is mixed[-3]
    assert mixed[1:3] == (mixed[1], mixed[2])
    assert mixed["gltr(reorthogonalise=False)"] is mixed[2]
    assert "gltr" in mixed
    assert mixed[0] in mixed
    assert "socp" not in mixed
    with pytest.raises(KeyError, match="no solver 'socp' in this comparison; there are spectral"):
        mixed["socp"]
    with pytest.raises(IndexError):
        mixed[4]


def test_refusals_are_rows_with_reasons(mixed):
    refused = mixed["admm(max_size=3)"]
    assert isinstance(refused, Trial)
    assert refused.solution is None
    assert "refuses above max_size=3. Use solver='gltr'" in refused.reason
    assert repr(refused).startswith("Trial(admm(max_size=3): refused, ")
    assert mixed["gltr"].reason == ""
    assert repr(mixed["gltr"]).startswith("Trial(gltr: Solution(optimal")


def test_lower_bound_is_the_best_proved_one(mixed, monkeypatch):
    proofs = [trial.solution.certificate for trial in mixed if trial.solution is not None]
    assert mixed.lower_bound == max(proof.lower_bound for proof in proofs)
    # As if the columns were too many to be squared for a proof.
    monkeypatch.setattr("spgls.solvers.iterative.curvature.MOST_COLUMNS", 0)
    estimated = compare_solvers(*negative_game(60, 6, 3, noise=0.0), 64.0, solvers=["gltr"])
    assert estimated["gltr"].solution.certificate.kind == "estimated"
    assert estimated.lower_bound == 0.0


def test_text(mixed):
    lines = repr(mixed).splitlines()
    assert lines[0] == f"Best lower bound {mixed.lower_bound:.10g}"
    assert lines[1].split("  ")[0] == "solver"
    for heading in ("status", "above bound", "relative gap", "kind", "passes", "seconds"):
        assert heading in lines[1]
    assert lines[2].startswith("spectral ")
    assert lines[3].split()[:2] == ["gltr", "optimal"]
    assert lines[5].split() == ["admm(max_size=3)", "refused", *["-"] * 6]
    assert lines[6].startswith("admm(max_size=3): solver 'admm' factorises")
    assert len({len(line) for line in lines[1:5]}) == 1


def test_to_data_frame(mixed):
    frame = pd.DataFrame(mixed.to_dict())
    assert list(frame.columns) == [*COLUMNS, "seconds", "objective", "reason"]
    assert list(frame["solver"]) == [trial.solver for trial in mixed]
    assert list(frame["status"]) == ["optimal", "optimal", "optimal", "refused"]
    assert frame["above_bound"][:3].between(0.0, 1e-8 * frame["objective"][0]).all()
    assert frame["iterations"][1] == mixed["gltr"].solution.stats.iterations
    assert frame["objective"].isna().tolist() == [False, False, False, True]
    refused_first = compare_solvers(
        np.eye(4), np.ones(4), np.zeros(4), 1.0, solvers=[ADMM(max_size=3), "gltr"]
    )
    assert list(refused_first.to_dict()) == list(frame.columns)


def test_frozen(mixed):
    with pytest.raises(FrozenInstanceError):
        mixed.trials = ()
    with pytest.raises(FrozenInstanceError):
        mixed[0].reason = "no"


def test_generators_and_iterables(game):
    generator = np.random.default_rng(5)
    before = generator.bit_generator.state
    noisy = GLTR(perturbation=1.0)
    chosen = (solver for solver in [noisy, GLTR(perturbation=1.0, max_iter=1999)])
    first, second = compare_solvers(*game, solvers=chosen, rng=generator)
    assert generator.bit_generator.state == before
    np.testing.assert_array_equal(first.solution.coef, second.solution.coef)


def test_limit_and_callback_reach_every_solver(game):
    seen = []
    comparison = compare_solvers(*game, solvers=["gltr", "admm"], max_iter=2, callback=seen.append)
    assert [trial.solution.status for trial in comparison] == [Status.ITERATION_LIMIT] * 2
    assert [step.iteration for step in seen] == [1, 2, 1, 2]


def test_defects_are_not_refusals(game):
    class Broken(Spectral):
        def solve(self, data, gamma, controls):
            raise ZeroDivisionError("a defect")

    with pytest.raises(ZeroDivisionError, match="a defect"):
        compare_solvers(*game, solvers=[Broken()])


def test_missing_extra_is_a_refusal(game):
    class Absent(Spectral):
        def solve(self, data, gamma, controls):
            raise ImportError("this solver needs spgls[conic].")

    comparison = compare_solvers(*game, solvers=[Absent()])
    assert comparison[0].reason == "this solver needs spgls[conic]."


@pytest.mark.parametrize("x", ["passes", "seconds", "iteration"])
def test_plot(mixed, x):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    figure, given = pyplot.subplots()
    ax = mixed.plot(given, x=x)
    assert ax is given
    lines = ax.get_lines()
    assert [line.get_label() for line in lines] == [*(t.solver for t in mixed[:3]), "rounding"]
    gltr = mixed["gltr"].solution
    np.testing.assert_array_equal(lines[1].get_xdata(), [getattr(s, x) for s in gltr.history])
    above = np.array([step.objective for step in gltr.history]) - mixed.lower_bound
    np.testing.assert_array_equal(lines[1].get_ydata(), np.maximum(above, mixed.rounding))
    assert len(lines[0].get_xdata()) == 1
    assert ax.get_yscale() == "log"
    picture = io.BytesIO()
    figure.savefig(picture, format="png")
    assert picture.getvalue().startswith(b"\x89PNG")
    pyplot.close(figure)


def test_plot_makes_its_own_axes(mixed):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    ax = mixed.plot()
    assert ax.get_xlabel() == "reads of the data"
    assert ax.get_ylabel() == "objective above the best lower bound"
    pyplot.close(ax.figure)


def test_plot_of_nothing_but_refusals_and_of_zero_labels():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    for comparison in (
        compare_solvers(np.eye(4), np.ones(4), np.zeros(4), 1.0, solvers=[ADMM(max_size=3)]),
        compare_solvers(np.eye(4), np.zeros(4), np.zeros(4), 1.0, solvers=["spectral"]),
    ):
        ax = comparison.plot()
        ax.figure.savefig(io.BytesIO())
        pyplot.close(ax.figure)


def test_plot_refuses_nonsense(mixed):
    with pytest.raises(ValueError, match="x must be one of passes, seconds, iteration; got 'time'"):
        mixed.plot(x="time")
    with pytest.raises(TypeError, match="x must be one of passes, seconds, iteration; got 1"):
        mixed.plot(x=1)
    with pytest.raises(TypeError, match="ax must be matplotlib axes or None; got 'passes'"):
        mixed.plot("passes")


def test_plot_without_matplotlib(mixed, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"plot needs matplotlib.*spgls\[plot\]"):
        mixed.plot()


def test_exported():
    assert {"compare_solvers", "Comparison", "Trial"} <= set(spgls.__all__)
