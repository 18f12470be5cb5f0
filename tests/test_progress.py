"""Progress of long solves, and what stopping them early returns."""

from __future__ import annotations

import io
import itertools
from functools import partial

import pytest

from spgls import Population, Progress, Status, certify, solve, solve_path
from spgls.solvers import Krylov, Step
from spgls.solvers import progress as progress_module

from .builders import linear_game

game = partial(linear_game, 400, 300, spread=1e4)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def steps(count, seconds=1.0):
    return [Step(k, 1.0 / k, 2.0**-k, float(k), seconds * k) for k in range(1, count + 1)]


def test_short_solves_are_silent():
    out = io.StringIO()
    solve(*linear_game(50, 10), 0.1, solver="gltr", callback=Progress(file=out))
    assert out.getvalue() == ""


def test_a_log_gets_a_line_now_and_then():
    out = io.StringIO()
    progress = Progress(file=out)
    for step in steps(3, seconds=2.0):
        assert progress(step) is False
    lines = out.getvalue().splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("step 1, 2.0 s, 1 reads of the data, objective 1, residual 0.5")
    progress.close()
    assert out.getvalue().splitlines() == lines


def test_a_terminal_has_one_line_that_is_cleared():
    out = Terminal()
    with Progress(after=0.0, file=out) as progress:
        progress(steps(1)[0])
    text = out.getvalue()
    assert "\n" not in text
    assert text.startswith("\rstep 1")
    assert text.endswith("\r")
    assert text.split("\r")[-2].strip() == ""


def test_it_begins_anew_with_each_solve(monkeypatch):
    # A clock by which every step is due.
    monkeypatch.setattr(progress_module, "perf_counter", itertools.count(100.0, 100.0).__next__)
    out = io.StringIO()
    progress = Progress(after=0.0, file=out)
    for step in (Step(1, 1.0, 8.0, 1.0, 1.0), Step(2, 1.0, 4.0, 2.0, 2.0), Step(1, 1.0, 2.0, 1, 1)):
        progress(step)
    assert [line.split("residual ")[1] for line in out.getvalue().splitlines()] == [
        "8 of 8 at first",
        "4 of 8 at first",
        "2 of 2 at first",
    ]


@pytest.mark.parametrize("solver", ["gltr", "ltrsr", "rtr-newton", "krylov", Krylov(width=2)])
def test_when_time_is_up_the_last_point_comes_with_an_honest_certificate(solver):
    X, y, z = game()
    out = io.StringIO()
    found = solve(X, y, z, 1e3, solver=solver, callback=Progress(limit=1e-9, after=0.0, file=out))
    assert found.status is Status.STOPPED
    assert "time is up" in out.getvalue()
    best = solve(X, y, z, 1e3, solver="spectral").objective
    excess = found.objective - best
    assert -1e-9 * (y @ y) <= excess <= found.certificate.gap + 1e-9 * (y @ y)
    # The objective is that of the predictor returned, whoever measures it.
    judged = certify(X, y, z, 1e3, found.coef)
    assert judged.gap == pytest.approx(excess, abs=1e-9 * (y @ y))


def test_paths_and_populations_stop_too():
    X, y, z = game()
    path = solve_path(X, y, z, [1e3, 1e4], solver="krylov", callback=Progress(limit=1e-9))
    assert set(path.status) == {Status.STOPPED}
    crowd = Population.mixed(1e3, honest=0.5)
    found = solve(X, y, z, crowd, solver=Krylov(), callback=Progress(limit=1e-9))
    assert found.status is Status.STOPPED
    best = solve(X, y, z, crowd, solver="spectral").objective
    assert found.objective - best <= found.certificate.gap + 1e-9 * (y @ y)


@pytest.mark.parametrize("arguments", [{"after": -1.0}, {"limit": 0.0}, {"limit": "soon"}])
def test_bad_input(arguments):
    with pytest.raises((TypeError, ValueError), match=next(iter(arguments))):
        Progress(**arguments)
