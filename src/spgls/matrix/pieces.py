"""How matrices are cut into pieces, and which of their rows are meant."""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from spgls.base.types import Array

__all__ = [
    "BLOCK_BYTES",
    "CACHE_BYTES",
    "MOMENT_ROWS",
    "Rows",
    "block_length",
    "chosen_rows",
    "cuts",
    "in_pieces",
    "rows_within",
    "sum_length",
    "typical_length",
]

#: Working copies of a piece of the data never exceed about this many bytes.
BLOCK_BYTES = 4 * 2**20
#: A block that is read twice should still be in cache the second time.
CACHE_BYTES = 2**20
#: Entries whose mean costs no time.
_TYPICAL = 2**21
#: Rows of which second moments are formed at a time, at most; then these are added up.
MOMENT_ROWS = 800

#: Some rows: a slice, or their numbers.
Rows: TypeAlias = slice | NDArray[np.integer[Any]]


def block_length(width: int, *, at_least: int = 1, block_bytes: int = BLOCK_BYTES) -> int:
    """Number of rows of ``width`` doubles that fit in one block."""
    return max(at_least, block_bytes // (8 * max(width, 1)), 1)


def cuts(length: int, size: int) -> Iterator[slice]:
    """Slices of ``size`` that cover ``length`` in order; the last may be shorter."""
    for at in range(0, length, size):
        yield slice(at, min(at + size, length))


def sum_length(rows: int) -> int:
    """Terms that a sum over so many rows is formed of at a time, a multiple of eight.

    Sums of pieces are added up, so that no number is rounded more than about fifteen times the root
    of the rows: one after the other, equal terms would be rounded the same way each time.
    """
    return 8 * max(32, round(1.875 * sqrt(rows)))


def typical_length(rows: int, columns: int) -> int:
    """Rows whose mean stands in for that of so many: what it is off by is paid for as rounding.

    More of many, whose sums cost more digits, and of short ones, which cost no time.
    """
    return min(rows, max(rows // 256, _TYPICAL // max(columns, 1), 256), 4096)


def in_pieces(a: NDArray[np.floating[Any]], b: NDArray[np.floating[Any]], length: int) -> Array:
    """``a'b``, by BLAS, so many rows at a time."""
    # The method costs less than the operator, and the first sum is the memory of all.
    total = np.asarray(a[:length].T.dot(b[:length]))
    for at in range(length, len(a), length):
        total += a[at : at + length].T.dot(b[at : at + length])
    return total


def chosen_rows(rows: Rows, length: int) -> Rows:
    """Return rows as a slice where they lie together in order, else as an array of numbers."""
    if isinstance(rows, slice):
        first, stop, step = rows.indices(length)
        numbers = range(first, stop, step)
        if step == 1 and numbers:
            return slice(first, stop)
        rows = np.array(numbers, dtype=np.intp)
    if len(rows) == 0:
        raise ValueError("rows must name at least one row; got none.")
    low, high = int(rows.min()), int(rows.max())
    if low < 0 or high >= length:
        raise IndexError(f"rows must lie between 0 and {length - 1}; got {low} to {high}.")
    together = high - low + 1 == len(rows) and bool((np.diff(rows) == 1).all())
    return slice(low, high + 1) if together else rows


def rows_within(rows: Rows, piece: slice) -> Rows | None:
    """Rows, in order, that lie in a piece, as numbers of its own; None where there are none."""
    if isinstance(rows, slice):
        first, stop = max(rows.start, piece.start), min(rows.stop, piece.stop)
        return slice(first - piece.start, stop - piece.start) if first < stop else None
    some = rows[slice(*np.searchsorted(rows, (piece.start, piece.stop)))]
    return some - piece.start if len(some) else None
