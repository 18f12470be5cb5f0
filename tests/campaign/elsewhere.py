"""Games whose X lies on a device: the same answers, and bounds that hold there too.

Products of a device are rounded otherwise than the host's, so its certificates are held against
losses in 400 bits like any others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from .check import Failure, judge
from .exact import Exact, precise
from .families import make_game
from .game import Game
from .play import run_solver
from .twins import Twin, compare_twins
from .whole import certified, path, told

#: Solvers that are asked on both sides.
ASKED = ("spectral", "auto", "krylov")
#: Families that are more than one call of solve or solve_path.
_OTHERS = ("folds", "ranges")


def play_there(game: Game, library: str) -> tuple[dict[str, str], list[Failure]]:
    """How the runs of a game ended whose X is in that library, and what is wrong with them."""
    there = game.but(library=library)
    runs: dict[str, str] = {}
    with precise():
        exact = Exact(game)
        outcomes = {label: run_solver(there, label) for label in ASKED}
        outcomes |= certified(there, outcomes["spectral"])
        runs |= {label: told(outcome) for label, outcome in outcomes.items()}
        failures, best = judge(exact, game.people, game.ridge, outcomes)
        for label in ASKED:
            here = run_solver(game, label)
            failures += compare_twins(Twin(there), here, outcomes[label], best, f"{label}[host]")
        if game.more and game.family not in _OTHERS:
            failures += path(there, exact, runs, "krylov" if game.number % 2 else "spectral")
    return runs, list(dict.fromkeys(failures))


def count_there(library: str, seed: int, numbers: Iterable[int]) -> dict[str, Any]:
    """Play games of a seed there: runs, kinds of failure, and each failing game."""
    runs, kinds, failing = Counter(), Counter(), []
    games = 0
    for number in numbers:
        ended, failures = play_there(make_game(seed, number), library)
        games += 1
        runs.update(status for status in ended.values())
        kinds.update({failure.kind for failure in failures})
        failing += [[number, *failure] for failure in failures]
    return {"games": games, "runs": dict(runs), "kinds": dict(kinds), "failing": failing}
