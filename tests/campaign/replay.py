"""One failure of one game again, with no more work than it takes."""

from __future__ import annotations

from .check import Failure, judge
from .exact import Exact, precise
from .folds import run_folds
from .game import Game
from .play import ENGINES, run_solver
from .ranges import run_range
from .twins import TWINS, run_twin
from .whole import certified, estimated, path

#: Who else is asked, so that a false bound has somebody to be beaten by.
FIELD = ("spectral", "qr", "krylov")


def plain(label: str) -> str:
    """A label without what tells runs of one solver apart."""
    return label.split("[")[0]


def detail(label: str) -> str:
    """What tells them apart."""
    return label.partition("[")[2].rstrip("]")


def prepared(game: Game, label: str) -> tuple[Game, str]:
    """The smallest game and label of the same failure: people of a path can be faced alone."""
    inside = detail(label)
    if not label.startswith("path ") and inside.isdigit():
        return game.but(people=game.more[int(inside)], more=()), plain(label)
    if not label.startswith(("path ", "range")) and game.family != "folds":
        return game.but(more=()), label
    return game, label


def replay(game: Game, label: str, kind: str) -> list[Failure]:
    """Failures of the same solver and kind; none if the game does not fail so."""
    with precise():
        found = _failures(game, label)
    return [f for f in found if plain(f.solver) == plain(label) and f.kind == kind]


def _failures(game: Game, label: str) -> list[Failure]:
    inside = detail(label)
    if label.startswith("folds"):
        return run_folds(game)[1]
    exact = Exact(game)
    if label == "range":
        return run_range(game, exact)[1]
    if label.startswith("path "):
        return path(game, exact, {}, plain(label).removeprefix("path "))
    if label == "estimator" or inside == "half honest":
        return estimated(game, exact, {})
    if label == "certify":
        outcomes = {other: run_solver(game, other) for other in FIELD}
        outcomes |= certified(game, outcomes["spectral"])
        return judge(exact, game.people, game.ridge, outcomes).failures
    solver = plain(label)
    outcomes = {solver: run_solver(game, solver)}
    if inside in TWINS:
        verdict = judge(exact, game.people, game.ridge, outcomes)
        return run_twin(game, inside, outcomes[solver], verdict.best, solver)[1]
    outcomes |= {other: run_solver(game, other) for other in FIELD if other != solver}
    return judge(exact, game.people, game.ridge, outcomes).failures


def as_solver(label: str) -> str:
    """The solver argument of a label, as it is written in a program."""
    name = plain(label).removeprefix("path ")
    return f"solvers.Spectral(engine={name!r})" if name in ENGINES else repr(name)
