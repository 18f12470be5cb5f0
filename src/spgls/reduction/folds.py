"""Training sets made of the same pieces of the data, each reduced without reading the data again.

Splits of the rows cut them into pieces such that every training set and every test set is a union
of some. Second moments of the pieces add up to those of a set, and nothing is ever subtracted: a
column that only the held-out rows know stays exactly unknown. Where squaring costs too many digits
a set is replaced by the triangular factors of its pieces: a few rows with the same moments.

The intercept is a column of ones that nobody can change, and a common origin for rows and labels
keeps it from costing digits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import qr

from spgls._types import Array, Vector
from spgls.data import GameData
from spgls.matrix import Matrix, as_matrix, block_length
from spgls.reduction.columns import (
    ColumnReduction,
    eliminate_free,
    reduce_by_moments,
    reduce_by_qr,
)
from spgls.reduction.spectral import Engine

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

    Columns are those of the data less a typical row, ones if there is an intercept, labels and
    goals less the mean label.

    Parameters
    ----------
    data : GameData
        All of the data.
    table : ndarray or sparse matrix of shape (m, n)
        Its rows.
    piece : ndarray of shape (m,)
        Number of the piece that each row is in.

    Attributes
    ----------
    weights : ndarray of shape (pieces,)
        Number of rows in each piece, counted by weight.
    shift : ndarray of shape (n,), optional
        The row that is subtracted.
    origin : float
        The label that is subtracted from labels and goals.
    frame : GameData
        Stands for any of the sets: the costs of its columns, that of the intercept included.
    """

    def __init__(self, data: GameData, table: Any, piece: np.ndarray) -> None:
        self.data = data
        # Rows of a matrix that is stored by columns are slow to take out.
        self._table = table.tocsr() if getattr(table, "format", "") == "csc" else table
        self.weights = np.bincount(piece, data.weight).astype(float)
        order = np.argsort(piece, kind="stable")
        self._rows = np.split(order, np.cumsum(np.bincount(piece))[:-1])
        lead = data.fit_intercept
        self.shift = data.matrix.typical_row(data.weight) if lead else None
        weighted = data.y if data.weight is None else data.weight * data.y
        self.origin = float(weighted.sum()) / data.total_weight if lead else 0.0
        targets = [data.y - self.origin, data.z - self.origin]
        self._extra: Array = np.column_stack([np.ones(len(data.y)), *targets][not lead :])
        n = data.matrix.shape[1]
        cost = np.ones(n) if data.cost is None else data.cost
        self.frame = replace(
            data,
            matrix=as_matrix(np.zeros((1, n + lead))),
            weight=None,
            cost=np.append(cost, np.inf) if lead else data.cost,
            fit_intercept=False,
        )

    def _blocks(self, k: int) -> Iterator[tuple[Any, Matrix]]:
        """Rows of a piece, by reference where they lie together, else a few at a time."""
        rows = self._rows[k]
        if rows[-1] - rows[0] + 1 == len(rows):
            some: Any = slice(int(rows[0]), int(rows[-1]) + 1)
            yield some, as_matrix(self._table[some], check_finite=False)
            return
        length = block_length(self._table.shape[1], block_bytes=_COPY_BYTES)
        for at in range(0, len(rows), length):
            some = rows[at : at + length]
            yield some, as_matrix(self._table[some], check_finite=False)

    @cached_property
    def moments(self) -> Array:
        """Second moments of each piece, of shape (pieces, columns, columns)."""
        weight = self.data.weight
        width = self.data.matrix.shape[1] + self._extra.shape[1]
        out = np.zeros((len(self._rows), width, width))
        with np.errstate(over="ignore", invalid="ignore"):
            for k, moment in enumerate(out):
                for rows, block in self._blocks(k):
                    some = None if weight is None else weight[rows]
                    moment += block.moment(self._extra[rows], some, self.shift)
        self.data.check_finite(out)
        return out

    @property
    def factored(self) -> bool:
        """Whether somebody asked for the triangular factors."""
        return "triangles" in vars(self)

    @cached_property
    def triangles(self) -> list[Array]:
        """Triangular factors of the weighted rows of each piece."""
        return [self._triangle(k) for k in range(len(self._rows))]

    def _triangle(self, k: int) -> Array:
        n, width = self.data.matrix.shape[1], self.frame.matrix.shape[1] + 2
        factor = np.zeros((0, width))
        for rows, matrix in self._blocks(k):
            extra = self._extra[rows]
            root = None if self.data.root_weight is None else self.data.root_weight[rows]
            for some, panel in matrix.row_panels(block_length(width, at_least=2 * width)):
                block = np.empty((panel.shape[0], width))
                np.subtract(panel, 0.0 if self.shift is None else self.shift, out=block[:, :n])
                block[:, n:] = extra[some]
                if root is not None:
                    block *= root[some, None]
                stack = np.vstack([factor, block]) if factor.size else block
                (factor,) = qr(stack, mode="r", overwrite_a=True, check_finite=False)
                factor = np.triu(factor[:width])
        return factor

    def moment(self, counts: Vector) -> Array:
        """Second moments of a set in which each piece is so many times."""
        kept = np.flatnonzero(counts)
        return np.asarray(np.tensordot(counts[kept], self.moments[kept], axes=1))

    def reduce(self, counts: Vector, engine: Engine) -> ColumnReduction | None:
        """Reduce a set in which each piece is so many times.

        The immutable columns of its game are those of the data and then, with an intercept, the
        ones.

        Parameters
        ----------
        counts : ndarray of shape (pieces,)
            How often each piece is in the set.
        engine : {"gram", "qr"}
            As in :func:`~spgls.reduction.spectral.reduce_spectral`.

        Returns
        -------
        ColumnReduction or None
            None where squaring the data leaves a rank undecided.
        """
        if engine == "gram":
            return _reduce_moment(self.frame, self.moment(counts), self.data.fit_intercept)
        kept = np.flatnonzero(counts)
        rows = np.vstack([np.sqrt(counts[k]) * self.triangles[k] for k in kept])
        few = replace(
            self.frame, matrix=as_matrix(rows[:, :-2]), y=rows[:, -2].copy(), z=rows[:, -1].copy()
        )
        return reduce_by_qr(few, ones_last=self.data.fit_intercept)

    def reduce_all(self, engine: Engine) -> ColumnReduction | None:
        """Reduce all of the data, to what a reduction of the data itself would be."""
        found = self.reduce(np.ones(len(self._rows)), engine)
        if found is None:
            return None
        n = self.data.matrix.shape[1]
        sizes = np.broadcast_to(np.asarray(found.raw), (self.frame.matrix.shape[1],))[:n]
        if self.shift is not None:
            sizes = np.hypot(sizes, np.sqrt(self.data.total_weight) * self.shift)
        own = found.free_map[: len(self.data.immutable)]
        return replace(found, data=self.data, raw=sizes, free_map=own)


def _reduce_moment(frame: GameData, moment: Array, ones_last: bool) -> ColumnReduction | None:
    """Reduce a set by its moments, as :func:`reduce_by_gram` does data."""
    k = len(frame.changeable)
    eliminated = eliminate_free(frame, moment, ones_last=ones_last) if k else None
    if eliminated is None:
        return None
    kept, free_map = eliminated
    raw = np.sqrt(np.diag(moment)[:-2])
    sign = np.array([1.0, -1.0])
    gap = max(0.0, float(sign @ (moment[-2:, -2:] - kept[k:, k:]) @ sign))
    return reduce_by_moments(frame, kept, free_map, raw[frame.changeable], raw, gap)
