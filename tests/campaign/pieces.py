"""A game given in pieces: its rows are added up, forgotten, and the game is solved from sums."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

import spgls

from .game import Game

#: How rows are added up. "subtracted" also adds strangers, and takes them away again.
SUMS = ("moments", "triangular", "subtracted")


def cuts_of(game: Game) -> list[int]:
    """Where the rows are cut: one to four pieces."""
    dice, m = game.dice(8), len(game.y)
    inner = np.unique(dice.integers(0, m + 1, dice.integers(4)))
    return [0, *(int(at) for at in inner if 0 < at < m), m]


def strangers(game: Game) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows that have no part in the game: its own, turned around and larger or smaller."""
    size = 10.0 ** game.dice(9).uniform(-3.0, 4.0)
    return size * game.X[::-1], size * game.y[::-1], size * game.z[::-1]


def add_up(game: Game, label: str) -> Any:
    """Statistics of the rows, piece by piece."""
    method = "triangular" if label == "triangular" else "moments"
    table, (y, z) = spgls.matrix.as_matrix(game.table), game.targets
    cuts, total = cuts_of(game), 0

    def piece(first: int, stop: int) -> Any:
        some = slice(first, stop)
        weight = None if game.weight is None else game.weight[some]
        if weight is not None and not weight.any():
            return 0
        return spgls.GameStatistics.from_data(
            table.take(some), y[some], z[some], sample_weight=weight, method=method
        )

    pieces = [piece(*pair) for pair in pairwise(cuts)]
    total = sum(one for one in pieces if one != 0)
    if label == "subtracted":
        others = spgls.GameStatistics.from_data(*strangers(game))
        total = (others + total) - others
    return total
