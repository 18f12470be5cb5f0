"""What is run on a game: every solver that knows it, and what each answered."""

from __future__ import annotations

import inspect
import signal
import warnings
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

import spgls
from spgls import solvers

from .game import Game
from .pieces import SUMS, add_up
from .places import get

TOL = 1e-9
#: Seconds of work, not of waiting for others, after which a call counts as hanging.
PATIENCE = 60
ALWAYS = ("spectral", "auto", "krylov")
ENGINES = ("gram", "qr")
ITERATIVE = ("gltr", "ltrsr", "rtr-newton", "admm")
CONIC = ("socp", "sdp", "bisection")
SOLVERS = (*ALWAYS, *ENGINES, *ITERATIVE, *CONIC, *SUMS)
#: One game in so many is given to an engine, to an iterative solver, to the conic ones, to sums.
RARITY = {"engine": 2, "iterative": 4, "conic": 200, "sums": 3}


@dataclass(frozen=True, eq=False)
class Answer:
    """What a solver said, in plain numbers."""

    coef: np.ndarray
    intercept: float
    objective: float
    status: str
    ok: bool
    lower_bound: float
    relative_gap: float
    kind: str


@dataclass(frozen=True, eq=False)
class Outcome:
    """An answer, or the words with which it was refused, and what went wrong on the way."""

    value: Any = None
    refused: str = ""
    troubles: tuple[tuple[str, str], ...] = ()


class _HangError(Exception):
    """A call took longer than anybody waits."""


@contextmanager
def patience(seconds: float) -> Any:
    """Interrupt what takes too long."""

    def stop(*_: Any) -> None:
        raise _HangError

    before = signal.signal(signal.SIGPROF, stop)
    # Again and again: an exception that is raised while garbage is collected is lost.
    signal.setitimer(signal.ITIMER_PROF, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def watched(call: Callable[[], Any], allowed: tuple[type[Warning], ...] = ()) -> Outcome:
    """Run something, and note exceptions and warnings that should not be.

    A ValueError that ends in a full stop is a refusal in words, which a library may give.
    """
    troubles = []
    value, refused = None, ""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            with patience(PATIENCE):
                value = call()
        except _HangError:
            troubles.append(("hang", f"longer than {PATIENCE} s"))
        except ValueError as error:
            said = str(error)
            if said.endswith(".") and said.count(" ") > 3:
                refused = said
            else:
                troubles.append(("exception", f"ValueError: {said[:200]}"))
        except Exception as error:
            troubles.append(("exception", f"{type(error).__name__}: {str(error)[:200]}"))
    for warning in heard:
        if not issubclass(warning.category, allowed):
            said = f"{warning.category.__name__}: {str(warning.message)[:160]}"
            troubles.append(("warning", said))
    return Outcome(value, refused, tuple(dict.fromkeys(troubles)))


def solver_named(label: str) -> Any:
    """The solver argument behind a label."""
    return solvers.Spectral(engine=label) if label in ENGINES else label  # type: ignore[arg-type]


def chosen_solvers(game: Game) -> list[str]:
    """Solvers that this game is given to: always the same for the same number."""
    dice = game.dice(1)
    engines = [label for label in ENGINES if dice.integers(RARITY["engine"]) == 0]
    iterative = [label for label in ITERATIVE if dice.integers(RARITY["iterative"]) == 0]
    conic = CONIC if dice.integers(RARITY["conic"]) == 0 else ()
    sums: list[str] = []
    if hasattr(spgls, "GameStatistics"):
        dice = game.dice(10)
        sums = [label for label in SUMS if dice.integers(RARITY["sums"]) == 0]
    return [*ALWAYS, *engines, *((*iterative, *conic) if game.single else ()), *sums]


def run_solver(game: Game, label: str) -> Outcome:
    """Solve a game by one solver, or from sums of its rows."""
    if label in SUMS:
        return watched(lambda: answer(_from_sums(game, label)))
    y, z = game.targets

    def call() -> Answer:
        found = spgls.solve(
            game.table,
            y,
            z,
            game.people.as_given(),
            solver=solver_named(label),
            tol=TOL,
            rng=game.number,
            **game.options(),
        )
        return answer(found)

    return watched(call)


def _from_sums(game: Game, label: str) -> Any:
    options = {name: value for name, value in game.options().items() if name != "sample_weight"}
    return add_up(game, label).solve(game.people.as_given(), tol=TOL, **options)


def run_path(game: Game, label: str) -> Outcome:
    """Solve a game against each of its people at once."""
    y, z = game.targets

    def call() -> list[Answer]:
        everybody = [people.as_given() for people in game.more]
        solver = solver_named(label)
        path = spgls.solve_path(
            game.table, y, z, everybody, solver=solver, tol=TOL, rng=game.number, **game.options()
        )
        return [answer(found) for found in path]

    return watched(call)


def run_certify(game: Game, first: Answer, scale: float) -> Outcome:
    """Bound a game from any predictor: that of an answer, or part of the way to it."""
    y, z = game.targets
    given = {name: value for name, value in game.options().items() if name != "fit_intercept"}
    coef, intercept = scale * first.coef, scale * first.intercept

    def call() -> Answer:
        proof = spgls.certify(
            game.table,
            y,
            z,
            game.people.as_given(),
            coef,
            intercept=intercept if game.fit_intercept else None,
            **given,
        )
        return Answer(coef, intercept, 0.0, "certified", False, *_proof(proof))

    return watched(call)


def run_estimator(game: Game) -> Outcome:
    """Fit the default estimator to a strength; half of the people are honest."""
    y, z = game.targets
    given = {"fit_intercept": False} | game.options()
    weight = given.pop("sample_weight", None)
    # Newer versions leave directions that no row shows unused unless told otherwise.
    if "null_space" in inspect.signature(spgls.StackelbergRegressor).parameters:
        given["null_space"] = "use"

    def call() -> Answer:
        model = spgls.StackelbergRegressor(gamma=game.people.as_given(), tol=TOL, **given)
        model.fit(game.table, y, z=z, sample_weight=weight)
        return Answer(
            get(model.coef_),
            float(model.intercept_),
            float(model.objective_),
            model.status_.value,
            bool(model.status_.ok),
            *_proof(model.certificate_),
        )

    # An estimator warns where the fit is no optimum, and of goals on another scale.
    return watched(call, allowed=(UserWarning,))


def answer(found: Any) -> Answer:
    """A solution as plain numbers."""
    return Answer(
        get(found.coef),
        float(found.intercept),
        float(found.objective),
        found.status.value,
        bool(found.status.ok),
        *_proof(found.certificate),
    )


def _proof(certificate: Any) -> tuple[float, float, str]:
    return (
        float(certificate.lower_bound),
        float(certificate.relative_gap),
        str(certificate.kind),
    )
