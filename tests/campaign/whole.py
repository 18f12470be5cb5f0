"""One game of the campaign from its number to its record."""

from __future__ import annotations

import math
from typing import Any

from gmpy2 import mpfr

from .check import Failure, allowed_between, in_units, judge, not_numbers, troubles
from .exact import Exact, precise
from .folds import run_folds
from .game import Game, People
from .play import (
    Answer,
    Outcome,
    chosen_solvers,
    run_certify,
    run_estimator,
    run_path,
    run_solver,
)
from .ranges import run_range
from .twins import chosen_twins, run_twin

#: One game in so many is given to the default estimator, and to certify.
_ESTIMATED = 8
_CERTIFIED = 8


def play_game(game: Game) -> dict[str, Any]:
    """Play a game in every way that its number calls for; a record for a shard."""
    # A label in brackets tells runs of one solver apart: people of a path, or a twin.
    with precise():
        exact = Exact(game)
        runs: dict[str, str] = {}
        failures: list[Failure] = []
        if game.family == "folds":
            outcome, found = run_folds(game)
            runs["folds"] = told(outcome)
            failures += found
        elif game.family == "ranges":
            outcome, found = run_range(game, exact)
            runs["range"] = told(outcome)
            failures += found
        elif game.more:
            label = "krylov" if game.dice(5).integers(4) == 0 else "spectral"
            failures += path(game, exact, runs, label)
        outcomes = {label: run_solver(game, label) for label in chosen_solvers(game)}
        if game.dice(6).integers(_CERTIFIED) == 0:
            outcomes |= certified(game, outcomes["spectral"])
        runs |= {label: told(outcome) for label, outcome in outcomes.items()}
        verdict = judge(exact, game.people, game.ridge, outcomes)
        failures += verdict.failures
        if game.family != "folds" and game.dice(4).integers(_ESTIMATED) == 0:
            failures += estimated(game, exact, runs)
        for name, solver in chosen_twins(game):
            told_again, found = run_twin(game, name, outcomes[solver], verdict.best, solver)
            if told_again is not None:
                runs[f"{solver}[{name}]"] = told(told_again)
            failures += found
    return {
        "game": game.number,
        "family": game.family,
        "level": game.level,
        "shape": list(game.X.shape),
        "fingerprint": game.fingerprint,
        "runs": runs,
        "failures": [list(failure) for failure in dict.fromkeys(failures)],
    }


def told(outcome: Outcome) -> str:
    """How a run ended, in a word or two."""
    if isinstance(outcome.value, Answer):
        return f"{outcome.value.status}, {outcome.value.kind}"
    if outcome.refused:
        return "refused"
    return "raised" if outcome.value is None else "done"


def certified(game: Game, first: Outcome) -> dict[str, Outcome]:
    """What certify says of spectral's predictor, or of a worse one."""
    if not isinstance(first.value, Answer) or not_numbers(first.value):
        return {}
    return {"certify": run_certify(game, first.value, certified_scale(game))}


def certified_scale(game: Game) -> float:
    """How far on the way to spectral's predictor the one is that certify is given."""
    return float(game.dice(7).choice([1.0, 0.5, 0.0]))


def estimated(game: Game, exact: Exact, runs: dict[str, str]) -> list[Failure]:
    """The default estimator, and what it is compared with: a solver on the same game."""
    people = game.people
    if people.single:
        people = People((math.inf, *people.gammas), (0.5, 0.5))
    outcome = run_estimator(game)
    runs["estimator"] = told(outcome)
    if game.store == "float32":
        # Its coefficients are rounded to the precision of X after the loss was measured.
        return troubles("estimator", outcome)
    alone = run_solver(game.but(people=people), "spectral")
    runs["spectral[half honest]"] = told(alone)
    outcomes = {"estimator": outcome, "spectral[half honest]": alone}
    return judge(exact, people, game.ridge, outcomes).failures


def path(game: Game, exact: Exact, runs: dict[str, str], label: str) -> list[Failure]:
    """All people at once by a solver, each held against a solve of its own."""
    outcome = run_path(game, label)
    failures = troubles(f"path {label}", outcome)
    if outcome.value is None:
        runs[f"path {label}"] = told(outcome)
        return failures
    for k, (people, answer) in enumerate(zip(game.more, outcome.value, strict=True)):
        name = f"path {label}[{k}]"
        alone = run_solver(game.but(people=people), label)
        both = {name: Outcome(answer), f"{label}[{k}]": alone}
        runs |= {run: told(outcome) for run, outcome in both.items()}
        failures += judge(exact, people, game.ridge, both).failures
        if isinstance(alone.value, Answer):
            failures += _apart(exact, people, name, answer, alone.value)
    return failures


def _apart(exact: Exact, people: People, name: str, answer: Answer, alone: Answer) -> list[Failure]:
    if answer.ok != alone.ok:
        note = f"{answer.status}, alone {alone.status}"
        return [Failure(name, "path status", math.inf, note)]
    off = abs(mpfr(answer.objective) - mpfr(alone.objective))
    if not answer.ok or off <= allowed_between(exact, people, alone):
        return []
    excess = in_units(off, exact)
    note = f"{answer.objective:.12g}, alone {alone.objective:.12g}"
    return [Failure(name, "path objective", excess, note)]
