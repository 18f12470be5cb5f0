"""Data in other coordinates: its columns combined by an invertible map, without a copy of it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, onenormest, splu

from spgls.base.types import Array, Vector
from spgls.matrix.blocks import BlockedMatrix
from spgls.matrix.convert import as_matrix
from spgls.matrix.dense import panel_moment
from spgls.matrix.pieces import Rows, block_length, cuts
from spgls.matrix.protocol import Matrix, RowMap
from spgls.matrix.sparse import SparseMatrix
from spgls.matrix.squares import column_squares, dense_squares, longest_row
from spgls.matrix.work import Work

__all__ = ["Change", "ChangedMatrix", "combine_columns", "whole_columns"]

#: Sparse data in other coordinates is formed where it has at most so many times the entries.
_FILL = 3.0
#: Sparse data with more numbers than this, were it dense, has its columns bounded, or else sampled.
_WIDE = 2e7
#: Number of samples, and the factor by which lengths are taken too long. A length is then too
#: short with a probability below 1e-13.
_SAMPLES, _SAFE = 16, 10.0
#: Numbers up to this are added without rounding, if they are whole.
_EXACT = 2.0**30
#: Where means are so many times the spread, they are subtracted before anything is combined.
_LARGE = 8.0


#: Steps towards a bound on the entries of a map that is known by its inverse, and the smallest
#: length that is bounded, in units of the largest.
_SWEEPS, _SMALL = 200, 1e-8


class Change:
    """The map ``w = E w'`` between coefficients of the data and those of its combined columns.

    It is the identity but for some of the columns.

    Parameters
    ----------
    size : int
        Number of columns.
    where : ndarray of int
        The columns that are combined.
    inverse : CSR array
        ``E^{-1}`` on those columns.
    forward : CSR array, optional
        ``E`` itself; without it, it is applied by factors of the inverse.
    """

    def __init__(
        self,
        size: int,
        where: np.ndarray,
        inverse: sp.csr_array,
        forward: sp.csr_array | None = None,
    ) -> None:
        self.size, self.where = size, where
        self._inverse = _handy(inverse)
        self._forward = None if forward is None else _handy(forward)
        self._everywhere = bool(np.array_equal(where, np.arange(size)))

    @property
    def explicit(self) -> bool:
        """Whether the map is known by its entries."""
        return self._forward is not None

    @cached_property
    def _factors(self) -> Any:
        try:
            return splu(sp.csc_matrix(self._inverse), permc_spec="MMD_AT_PLUS_A")
        except RuntimeError:
            raise ValueError(
                "feature_cost has actions that depend on each other among too many columns for a "
                "dense factorisation. Merge or drop actions that others can replace."
            ) from None

    def outwards(self, v: Array) -> Array:
        """``E v``."""
        if self._forward is not None:
            return self._on(v, self._forward.__matmul__)
        return self._on(v, self._factors.solve)

    def across(self, g: Array) -> Array:
        """``E' g``."""
        if self._forward is not None:
            return self._on(g, self._forward.T.__matmul__)
        return self._on(g, lambda t: self._factors.solve(t, trans="T"))

    def inwards(self, w: Array) -> Array:
        """``E^{-1} w``."""
        return self._on(w, self._inverse.__matmul__)

    def back_across(self, s: Array) -> Array:
        """``E^{-T} s``."""
        return self._on(s, self._inverse.T.__matmul__)

    def matrix(self) -> sp.csr_array:
        """``E`` itself, of all columns."""
        own = sp.coo_array(self._forward)
        rest = np.delete(np.arange(self.size), self.where)
        rows, columns = (np.append(self.where[part], rest) for part in (own.row, own.col))
        data = np.append(own.data, np.ones(len(rest)))
        return sp.csr_array((data, (rows, columns)), shape=(self.size, self.size))

    def _on(self, v: Array, act: Any) -> Array:
        if self._everywhere:
            return np.asarray(act(np.ascontiguousarray(v, dtype=np.float64)))
        out = np.array(v, dtype=np.float64, order="C")
        out[self.where] = act(np.ascontiguousarray(out[self.where]))
        return out

    @cached_property
    def alone(self) -> np.ndarray:
        """Which combined columns are columns of the data, perhaps with another sign."""
        out = self._signed(1, 1)
        out[np.delete(np.arange(self.size), self.where)] = True
        return out

    @cached_property
    def whole(self) -> np.ndarray:
        """Which combined columns are sums and differences of several."""
        return self._signed(2, self.size)

    def _signed(self, least: int, most: int) -> np.ndarray:
        """Columns of the map that have so many entries, each of size one."""
        out = np.zeros(self.size, dtype=bool)
        if self.explicit:
            entries = sp.csc_array(self._forward)
            entries.eliminate_zeros()
            count = np.diff(entries.indptr)
            column = np.repeat(np.arange(len(count)), count)
            units = np.bincount(column, np.abs(entries.data) == 1.0, minlength=len(count))
            out[self.where] = (units == count) & (count >= least) & (count <= most)
        return out

    @cached_property
    def feeding(self) -> np.ndarray:
        """Columns of the data that some of :attr:`whole` are made of."""
        if not self.whole.any():
            return np.zeros(0, dtype=np.intp)
        part = abs(sp.csc_array(self._forward)[:, np.flatnonzero(self.whole[self.where])])
        return np.asarray(self.where[np.asarray(part.sum(axis=1)).ravel() > 0.0])

    @cached_property
    def terms(self) -> int:
        """Most columns that one combination is of."""
        longest = 1
        for part in (self._inverse, self._forward):
            if part is not None:
                longest = max(longest, int(np.diff(sp.csc_array(part).indptr).max(initial=1)))
        return longest

    def growth(self, lengths: Vector, exact: np.ndarray) -> float:
        """How many times more than its own length the rounding of a combined column can be.

        By the condition number of Skeel, with columns weighted by their lengths: in units of
        rounding, products with combined columns are wrong by no more than this many times the sum
        of ``lengths * |v|``.

        Parameters
        ----------
        lengths : ndarray of shape (n,)
            Lengths of the combined columns.
        exact : ndarray of bool
            Which of them are known not to be rounded.
        """
        own, rounded = lengths[self.where], ~exact[self.where]
        if not rounded.any():
            return 0.0
        before = np.asarray(abs(self._inverse).T @ own)
        reach = self._gathered(before)
        if reach is None:
            reach = self._estimated(before, own)
        reach = reach[rounded]
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(np.where(reach > 0.0, reach / own[rounded], 0.0).max())

    def lengths(self, before: Vector) -> Vector | None:
        """Upper bounds of the lengths of combined columns, from those of the data.

        None where none is known without the entries of the map.
        """
        out, own = before.copy(), self._gathered(before[self.where])
        if own is None:
            return None
        out[self.where] = own
        return out

    def _gathered(self, before: Vector) -> Vector | None:
        """``|E|' before``, or something larger; None if that is not known."""
        if self._forward is not None:
            return np.asarray(abs(self._forward).T @ before)
        return _majorised(sp.csr_array(self._inverse), before)

    def _estimated(self, before: Vector, own: Vector) -> Vector:
        """A bound on ``|E|' before``, relative to ``own``, by an estimate of a norm."""
        solve, m = self._factors.solve, len(own)
        unit = np.divide(1.0, own, out=np.zeros_like(own), where=own > 0.0)
        operator = LinearOperator(
            (m, m),
            matvec=lambda v: before * solve(unit * np.ravel(v)),
            rmatvec=lambda g: unit * solve(before * np.ravel(g), trans="T"),
            dtype=np.float64,
        )
        # The estimate is a lower bound, and rarely less than a third of the norm.
        return 3.0 * float(onenormest(operator)) * own


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
    squares : ndarray of shape (n,), optional
        Squared lengths of the columns of the data, if they are known.
    """

    def __init__(
        self,
        matrix: Matrix,
        change: Change,
        origin: Vector | None = None,
        squares: Vector | None = None,
    ) -> None:
        self.matrix, self.change, self.origin = matrix, change, origin
        self._squares = squares

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
        if self.matrix.work.by_index and m * n > _WIDE:
            moved, own = self._shift(shift), self._squares
            if own is None or weight is not None or moved is not None:
                own = column_squares(self.matrix, weight, moved)
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
    matrix: Matrix, change: Change, centred: bool, squares: Vector | None = None
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
    squares : ndarray of shape (n,), optional
        Squared lengths of its columns, if they are known.
    """
    if isinstance(matrix, SparseMatrix) and change.explicit:
        product = _product(matrix, change)
        if product is not None:
            return product, None
    origin = _large_means(matrix, change) if centred else None
    return ChangedMatrix(matrix, change, origin, squares), origin


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


def _large_means(matrix: Matrix, change: Change) -> Vector | None:
    """A row to subtract where it saves digits; nothing from what whole numbers are added of."""
    row = matrix.typical_row(None)
    if row is None:
        return None
    _, sample = next(matrix.row_panels(min(256, block_length(matrix.shape[1]))))
    with np.errstate(all="ignore"):
        spread = np.abs(sample - row).mean(axis=0)
        large = np.abs(row) > _LARGE * spread
    large[change.feeding] = False
    counted = np.zeros(len(row), dtype=bool)
    counted[change.where] = True
    return np.where(large & counted, row, 0.0) if (large & counted).any() else None


def _majorised(inverse: sp.csr_array, before: Vector) -> Vector | None:
    """Something larger than ``|inverse^{-1}|' before``; None if none is found.

    Let ``C`` be the inverse map with all entries but the diagonal made negative, in size. Positive
    numbers ``y`` with ``C'y`` at least ``before``, and positive, are such a bound (Ostrowski).
    """
    diagonal = np.abs(inverse.diagonal())
    if not diagonal.all():
        return None
    wanted = np.maximum(before, _SMALL * float(before.max(initial=0.0)))
    others = sp.csr_array((abs(inverse) - sp.diags_array(diagonal)).T)
    y = wanted / diagonal
    for _ in range(_SWEEPS):
        spread = others @ y
        if (diagonal * y - spread >= wanted / 2).all():
            return np.asarray(2 * y)
        y = (wanted + spread) / diagonal
    return None


def _handy(entries: sp.csr_array) -> Any:
    """As an array where most entries are there, since products are faster then."""
    size = entries.shape[0] * entries.shape[1]
    return entries.toarray() if size and entries.nnz > 0.2 * size else entries
