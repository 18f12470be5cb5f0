"""Columns of numbers so small that their squares are nothing, although coefficients may be large.

A reduction takes such a column for one of zeros. Who may give it any coefficient can predict with
it all the same: the learner, if nobody can change it, and the learner who is met by honest people.
Then no bound could be trusted, and the data is refused.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from spgls.base.frames import column_names
from spgls.base.types import Vector
from spgls.matrix.squares import head_largest
from spgls.reduction.data import GameData

__all__ = ["refuse_short_columns"]

#: Numbers whose squares, and those of what varies in their last digits, are still numbers.
_SHORT = 1e-130
#: Rows in which most columns show what they hold, and entries that are looked at for the others
#: before all are.
_FIRST, _ENTRIES = 16, 2**20


def refuse_short_columns(data: GameData, *, honest: bool) -> None:
    """Refuse columns too small to be squared, where their coefficients have no limit.

    Parameters
    ----------
    data : GameData
        The data of a game.
    honest : bool
        Whether the learner meets people who change nothing, or may meet them.
    """
    if not (honest or len(data.layout.immutable)):
        return
    direct = not data.matrix.work.by_index
    if direct and _shown(data, _FIRST).min() >= _SHORT:
        return
    which = np.arange(data.layout.columns) if honest else data.layout.immutable
    with np.errstate(all="ignore"):
        if direct:
            which = which[_shown(data, len(data.y))[which] < _SHORT]
        size = _weighted_means(data)[which] if len(which) else np.zeros(0)
        short = np.flatnonzero((size > 0.0) & (size < _SHORT))
    if len(short):
        at, names = int(which[short[0]]), column_names(data.source)
        plain = names is not None and data.layout.coordinates is None
        raise ValueError(
            f"X holds numbers too small to be squared in double precision in column {at}"
            + (f" ({names[at]!r})" if plain and names is not None else "")
            + f", about {size[short[0]]:.1g}"
            + (", weights included" if data.weight is not None else "")
            + "; bring that column to a larger scale, or leave it out."
        )


def _shown(data: GameData, rows: int) -> Vector:
    """What the first rows show of each column, at least."""
    count = max(min(rows, _ENTRIES // max(data.matrix.shape[1], 1)), 1)
    largest = head_largest(data.matrix, count)
    if data.weight is None:
        return largest
    return largest * sqrt(float(data.weight[:count].min()) / float(data.weight.max()))


def _weighted_means(data: GameData) -> Vector:
    """Means of each column by random weights, which only columns of zeros make zero."""
    weights = np.random.default_rng(0).uniform(1.0, 2.0, len(data.y))
    if data.weight is not None:
        weights *= np.sqrt(np.asarray(data.weight) / float(data.weight.max()))
    return np.abs(np.asarray(data.matrix.cross(weights))) / float(weights.sum())
