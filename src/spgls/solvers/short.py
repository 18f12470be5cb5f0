"""Columns of numbers so small that their squares are nothing.

A reduction takes such a column for one of zeros. That does no harm where its coefficient is
bounded. If nobody can change the column, or some people are honest, the coefficient may be as large
as a number can be, and predict what no bound counts with. Then the data is refused.
"""

from __future__ import annotations

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
#: Under what name it is kept with the data that no column is short.
_LOOKED = "no short columns"


def refuse_short_columns(data: GameData, *, honest: bool) -> None:
    """Refuse columns too small to be squared, where their coefficients have no limit.

    Parameters
    ----------
    data : GameData
        The data of a game.
    honest : bool
        Whether the learner meets people who change nothing, or may meet them.
    """
    if data.reductions.get(_LOOKED, False) or not (honest or len(data.layout.immutable)):
        return
    direct = not data.matrix.work.by_index
    if direct and _shown(data, _FIRST).min() >= _SHORT:
        return
    which = np.arange(data.layout.columns) if honest else data.layout.immutable
    with np.errstate(all="ignore"):
        if direct:
            which = which[_shown(data, len(data.y))[which] < _SHORT]
        size = _sums(data)[which] if len(which) else np.zeros(0)
        short = np.flatnonzero((size > 0.0) & (size < _SHORT))
    data.reductions[_LOOKED] = honest and not len(short)
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


def _shown(data: GameData, most: int) -> Vector:
    """What the largest number of each column is not below, by the root of its weight."""
    count = max(min(most, _ENTRIES // max(data.matrix.shape[1], 1)), 1)
    if data.weight is None:
        return head_largest(data.matrix, count)
    rows, head = next(data.matrix.row_panels(count))
    root = np.sqrt(np.asarray(data.weight[rows]) / float(data.weight.max()))
    return np.asarray(np.abs(head * root[:, None]).max(axis=0))


def _sums(data: GameData) -> Vector:
    """Sums of each column by random weights, which only columns of zeros make zero."""
    weights = np.random.default_rng(0).uniform(1.0, 2.0, len(data.y))
    if data.weight is not None:
        weights *= np.sqrt(np.asarray(data.weight) / float(data.weight.max()))
    return np.abs(np.asarray(data.matrix.cross(weights)))
