"""Training sets made of the same pieces of the data, each reduced without reading the data again.

Splits of the rows cut them into pieces such that every training set and every test set is a union
of some. Second moments of the pieces add up to those of a set, and nothing is ever subtracted: a
column that only the held-out rows know stays exactly unknown. Where squaring costs too many digits
a set is replaced by the triangular factors of its pieces: a few rows with the same moments.

All pieces are counted from the origin of all of the data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from spgls.base.types import Array, Vector
from spgls.matrix import BlockedMatrix, Matrix, RowBlocks, block_length
from spgls.matrix.squares import sum_rounding_one_by_one
from spgls.reduction.columns import ColumnReduction
from spgls.reduction.data import GameData
from spgls.reduction.dependence import Dependence, exact_dependence
from spgls.reduction.exact import Engine, few_rows, moment_of
from spgls.reduction.second_moments import reduce_moments
from spgls.reduction.sums import triangle
from spgls.reduction.triangular import reduce_triangle

__all__ = ["Pieces", "Split", "Splits", "cut_into_pieces"]

#: Pieces may be so many for each split; a further one then starts over with pieces of its own.
_PER_SPLIT = 3
#: Moments of all pieces together take at most about this many bytes.
_MOMENT_BYTES = 512 * 2**20
#: Scattered rows are copied so many bytes at a time.
_COPY_BYTES = 32 * 2**20


class Split(NamedTuple):
    """Rows to fit on, and rows to judge on."""

    train: np.ndarray
    test: np.ndarray


class Splits(NamedTuple):
    """Some splits, and the pieces that their sets are made of.

    Attributes
    ----------
    which : list of int
        Numbers of the splits.
    piece : ndarray of shape (m,)
        Number of the piece that each row is in.
    train, test : ndarray of shape (splits, pieces)
        How often a piece is in the training set, and in the test set, of each split.
    """

    which: list[int]
    piece: np.ndarray
    train: Array
    test: Array


def cut_into_pieces(splits: Sequence[Split], rows: int, columns: int) -> Iterator[Splits]:
    """Cut rows into pieces that serve several splits each, as few as they allow.

    Folds that exclude each other share theirs, and so do the growing sets of a time series; sets
    drawn at random share less with every further one, and start over after a few.

    Parameters
    ----------
    splits : sequence of Split
        Rows of every split; a row that is drawn twice counts twice.
    rows, columns : int
        Size of the data.
    """
    room = max(2, _MOMENT_BYTES // (8 * (columns + 3) ** 2))
    which: list[int] = []
    counts: list[Array] = []
    piece = np.zeros(rows, dtype=np.intp)
    for number, split in enumerate(splits):
        drawn = np.array([np.bincount(part, minlength=rows) for part in split])
        finer = _refined(piece, drawn)
        pieces = int(finer.max()) + 1
        if which and pieces > min(_PER_SPLIT * (len(which) + 1) + 1, room):
            yield _joined(which, piece, counts)
            which, counts = [], []
            finer = _refined(np.zeros(rows, dtype=np.intp), drawn)
        which, piece = [*which, number], finer
        counts.append(drawn)
    if which:
        yield _joined(which, piece, counts)


def _refined(piece: np.ndarray, drawn: Array) -> np.ndarray:
    """Number pieces such that rows of one are drawn equally often."""
    train, test = drawn
    most = int(drawn.max()) + 1
    key = (piece * most + train) * most + test
    if key.max() < 8 * len(key):
        present = np.bincount(key) > 0
        return np.asarray((np.cumsum(present) - 1)[key])
    return np.asarray(np.unique(key, return_inverse=True)[1])


def _joined(which: list[int], piece: np.ndarray, counts: list[Array]) -> Splits:
    _, first = np.unique(piece, return_index=True)
    table = np.array([drawn[:, first] for drawn in counts], dtype=float)
    return Splits(which, piece, table[:, 0], table[:, 1])


class Pieces:
    """Statistics of pieces of the rows, and reductions of the sets that they make up.

    Parameters
    ----------
    data : GameData
        All of the data.
    piece : ndarray of shape (m,)
        Number of the piece that each row is in.

    Attributes
    ----------
    weights : ndarray of shape (pieces,)
        Number of rows in each piece, counted by weight.
    factored : bool
        Whether somebody asked for triangular factors.
    """

    def __init__(self, data: GameData, piece: np.ndarray) -> None:
        self.data = data
        self.weights = np.bincount(piece, data.weight).astype(float)
        self.factored = False
        order = np.argsort(piece, kind="stable")
        self._rows = np.split(order, np.cumsum(np.bincount(piece))[:-1])

    def _blocks(self, k: int) -> Iterator[tuple[Any, Matrix]]:
        """Rows of a piece, by reference where they lie together, else a few at a time."""
        rows, matrix = self._rows[k], self.data.matrix
        if rows[-1] - rows[0] + 1 == len(rows):
            some: Any = slice(int(rows[0]), int(rows[-1]) + 1)
            yield some, matrix.take(some)
            return
        length = block_length(matrix.shape[1], block_bytes=_COPY_BYTES)
        if isinstance(matrix, BlockedMatrix) and not isinstance(matrix, RowBlocks):
            # Rows that have to come first come together; they are copied when their block is here.
            length = len(rows)
        for at in range(0, len(rows), length):
            some = rows[at : at + length]
            yield some, matrix.take(some)

    @cached_property
    def moments(self) -> Array:
        """Second moments of each piece, of shape (pieces, columns, columns)."""
        width = self.data.matrix.shape[1] + 2 + self.data.layout.fit_intercept
        out = np.empty((len(self._rows), width, width))
        for k, moment in enumerate(out):
            moment[:] = moment_of(self.data, self._blocks(k))
        self.data.check_finite(out)
        return out

    @cached_property
    def triangles(self) -> list[Array]:
        """Triangular factors of the weighted rows of each piece."""
        self.factored = True
        return [triangle(few_rows(self.data, self._blocks(k))) for k in range(len(self._rows))]

    def moment(self, counts: Vector) -> Array:
        """Second moments of a set in which each piece is so many times."""
        kept = np.flatnonzero(counts)
        return np.asarray(np.tensordot(counts[kept], self.moments[kept], axes=1))

    def _dependence(self) -> Dependence:
        """Of all of the data: what depends in all of the rows depends in some of them."""
        return self._all_dependence

    @cached_property
    def _all_dependence(self) -> Dependence:
        return exact_dependence(self.data)

    def reduce(self, counts: Vector, engine: Engine) -> ColumnReduction | None:
        """Reduce a set in which each piece is so many times.

        Parameters
        ----------
        counts : ndarray of shape (pieces,)
            How often each piece is in the set.
        engine : {"gram", "qr"}
            As in :func:`~spgls.reduction.exact.reduce_spectral`.

        Returns
        -------
        ColumnReduction or None
            None where squaring the data leaves a rank undecided.
        """
        layout, origin, count = self.data.layout, self.data.origin, self.data.matrix.shape[0]
        if engine == "gram":
            one_by_one = sum_rounding_one_by_one(self.data.matrix)
            moment = self.moment(counts)
            return reduce_moments(layout, moment, origin, count, one_by_one=one_by_one)
        kept = np.flatnonzero(counts)
        rows = np.vstack([np.sqrt(counts[k]) * self.triangles[k] for k in kept])
        return reduce_triangle(layout, rows, origin, count, self._dependence)

    def reduce_all(self, engine: Engine) -> ColumnReduction | None:
        """Reduce all of the data."""
        return self.reduce(np.ones(len(self._rows)), engine)
