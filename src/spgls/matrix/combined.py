"""Data in other coordinates: its columns combined by an invertible map, without a copy of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from spgls.base.types import Array, Vector
from spgls.matrix.blocks import BlockedMatrix
from spgls.matrix.change import Change
from spgls.matrix.convert import as_matrix
from spgls.matrix.dense import panel_moment
from spgls.matrix.pieces import Rows, block_length, cuts
from spgls.matrix.protocol import Matrix, RowMap
from spgls.matrix.sparse import SparseMatrix
from spgls.matrix.squares import column_squares, dense_squares, longest_row
from spgls.matrix.work import Work

__all__ = ["ChangedMatrix", "combine_columns", "whole_columns"]

#: Sparse data in other coordinates is formed where it has at most so many times the entries.
_FILL = 3.0
#: Sparse data with more numbers than this, were it dense, has its columns bounded, or else sampled.
_WIDE = 2e7
#: So are those of data with no more than this share of entries, where the map is not known by its.
_THIN = 0.1
#: Number of samples, and the factor by which lengths are taken too long. A length is then too
#: short with a probability below 1e-13.
_SAMPLES, _SAFE = 16, 10.0
#: Numbers up to this are added without rounding, if they are whole.
_EXACT = 2.0**30
#: Where means are so many times the spread, they are subtracted before anything is combined.
_LARGE = 8.0


class ChangedMatrix(BlockedMatrix):
    """``(A - 1 origin') E`` without forming it.

    Parameters
    ----------
    matrix : Matrix
        The data ``A``.
    change : Change
        The map ``E``.
    origin : ndarray of shape (n,), optional
        Subtracted from every row first, where large means would cost digits.
    """

    def __init__(self, matrix: Matrix, change: Change, origin: Vector | None = None) -> None:
        self.matrix, self.change, self.origin = matrix, change, origin

    @property
    def shape(self) -> tuple[int, int]:
        """As the data."""
        return self.matrix.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Combinations are float64."""
        return np.dtype(np.float64)

    @property
    def fused(self) -> bool:
        """As the data."""
        return self.matrix.fused

    @property
    def threaded(self) -> bool:
        """As the data."""
        return self.matrix.threaded

    @property
    def natural_width(self) -> int:
        """As the data."""
        return self.matrix.natural_width

    @property
    def longest_row(self) -> int:
        """As the data; what combining adds is told by :meth:`Change.growth`."""
        return longest_row(self.matrix)

    @property
    def additions(self) -> int:
        """As the data."""
        return int(getattr(self.matrix, "additions", 0))

    @property
    def work(self) -> Work:
        """As the data."""
        return self.matrix.work

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        """Rows in pieces, combined."""
        return self.row_panels(block_length(self.shape[1]))

    def apply(self, v: Array, shift: Vector | None = None) -> Array:
        """``A v``, in the data's own coordinates."""
        return self.matrix.apply(self.change.outwards(v), self._shift(shift))

    def cross(self, u: Array, shift: Vector | None = None) -> Array:
        """``A' u``."""
        return self.change.across(self.matrix.cross(u, self._shift(shift)))

    def gram(self, v: Array, shift: Vector | None = None, middle: RowMap | None = None) -> Array:
        """``A' M A v``."""
        own = self.matrix.gram(self.change.outwards(v), self._shift(shift), middle)
        return self.change.across(own)

    def moment(self, extra: Array, weight: Vector | None, shift: Vector | None) -> Array:
        """``B' S B`` for ``B = [A - 1 shift', extra]``."""
        rows = block_length(self.shape[1] + extra.shape[1], at_least=256)
        panels = (panel for _, panel in self.row_panels(rows))
        return panel_moment(panels, rows, extra, weight, shift)

    def column_squares(self, weight: Vector | None, shift: Vector | None) -> Vector:
        """Squared lengths of the columns, or more: those of wide sparse data are not formed."""
        m, n = self.shape
        work = self.matrix.work
        thin = not self.change.explicit and work.entries < _THIN * m * n
        if work.by_index and (thin or m * n > _WIDE):
            own = column_squares(self.matrix, weight, self._shift(shift))
            more = self.change.lengths(np.sqrt(own))
            if more is not None:
                return np.square(more)
            signs = np.random.default_rng(0).normal(size=(m, _SAMPLES))
            if weight is not None:
                signs *= np.sqrt(weight)[:, None]
            return np.asarray(_SAFE**2 * np.square(self.cross(signs, shift)).mean(axis=1))
        total = np.zeros(n)
        for rows, panel in self.blocks():
            total += dense_squares(panel, None if weight is None else weight[rows], shift)
        return total

    def typical_row(self, weight: Vector | None) -> Vector | None:
        """That of the data, combined."""
        own = self.matrix.typical_row(weight)
        if own is None:
            return None
        row = self.change.across(own if self.origin is None else own - self.origin)
        # A column of equal whole numbers less one of them is exactly zero.
        return np.where(self.change.whole, np.round(row), row)

    def row_panels(self, rows: int) -> Iterator[tuple[slice, Array]]:
        """Dense float64 pieces of ``rows`` rows, combined."""
        for piece, panel in self.matrix.row_panels(rows):
            own = panel if self.origin is None else panel - self.origin
            yield piece, np.ascontiguousarray(self.change.across(own.T).T)

    def column_panels(self, columns: int) -> Iterator[tuple[slice, Array]]:
        """Dense float64 pieces of ``columns`` columns, each a product with the data."""
        for piece in cuts(self.shape[1], columns):
            some = np.zeros((self.shape[1], piece.stop - piece.start))
            some[piece] = np.eye(piece.stop - piece.start)
            yield piece, self.apply(some)

    def take(self, rows: Rows) -> ChangedMatrix:
        """Some rows."""
        return ChangedMatrix(self.matrix.take(rows), self.change, self.origin)

    def find_non_finite(self) -> tuple[int, int, float] | None:
        """An entry of the data itself."""
        return self.matrix.find_non_finite()

    def _shift(self, shift: Vector | None) -> Vector | None:
        """A shift of combined columns, as one of the data."""
        if shift is None:
            return self.origin
        own = self.change.back_across(shift)
        return own if self.origin is None else own + self.origin


def combine_columns(
    matrix: Matrix, change: Change, *, centred: bool, whole: bool
) -> tuple[Matrix, Vector | None]:
    """The data in other coordinates, and what was subtracted from its rows before.

    Parameters
    ----------
    matrix : Matrix
        The data.
    change : Change
        The map.
    centred : bool
        Whether a row may be subtracted from all of them.
    whole : bool
        Whether what :attr:`Change.whole` columns are made of are whole numbers, which are added
        without rounding as they are.
    """
    if isinstance(matrix, SparseMatrix) and change.explicit:
        product = _product(matrix, change)
        if product is not None:
            return product, None
    origin = _large_means(matrix, change, whole) if centred else None
    return ChangedMatrix(matrix, change, origin), origin


def whole_columns(matrix: Matrix, columns: np.ndarray) -> bool:
    """Whether some columns hold nothing but whole numbers of moderate size, in one read."""
    if isinstance(matrix, SparseMatrix):
        return _whole(matrix.values[:, columns].data)
    panels = matrix.row_panels(block_length(matrix.shape[1]))
    return all(_whole(panel[:, columns]) for _, panel in panels)


def _whole(numbers: np.ndarray) -> bool:
    return bool(((numbers == np.round(numbers)) & (np.abs(numbers) < _EXACT)).all())


def _product(matrix: SparseMatrix, change: Change) -> Matrix | None:
    """Sparse data in other coordinates, itself sparse; None where it would fill up."""
    values, full = sp.csr_array(matrix.values, dtype=np.float64), change.matrix()
    entries = np.bincount(values.indices, minlength=change.size)
    if float(entries @ np.diff(full.indptr)) > _FILL * max(values.nnz, 1):
        return None
    return as_matrix(sp.csr_array(values @ full), check_finite=False)


def _large_means(matrix: Matrix, change: Change, whole: bool) -> Vector | None:
    """A row to subtract where it saves digits; nothing from what whole numbers are added of.

    Rounding of a combination is charged by what columns are about that row.
    """
    row = matrix.typical_row(None)
    if row is None:
        return None
    _, sample = next(matrix.row_panels(min(256, block_length(matrix.shape[1]))))
    with np.errstate(all="ignore"):
        spread = np.abs(sample - row).mean(axis=0)
        large = np.abs(row) > _LARGE * spread
    if whole:
        large[change.feeding] = False
    counted = np.zeros(len(row), dtype=bool)
    counted[change.where] = True
    return np.where(large & counted, row, 0.0) if (large & counted).any() else None
