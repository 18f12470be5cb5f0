"""SciPy sparse data, in CSR or CSC form, never densified and never copied whole."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from math import sqrt
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from spgls.base.types import Array, Vector
from spgls.base.vector import dot
from spgls.matrix.dense import panel_moment
from spgls.matrix.memory import FEW, InMemory, first_non_finite
from spgls.matrix.pieces import MOMENT_ROWS, Rows, block_length, chosen_rows, in_pieces
from spgls.matrix.protocol import RowMap
from spgls.matrix.row_step import RowStep
from spgls.matrix.work import Work

__all__ = ["SparseMatrix"]

Compressed = Any  # CSR or CSC, matrix or array class

#: Rows fuller than this are squared faster as dense blocks than as sparse products.
_NEARLY_DENSE = 0.07
#: What squaring an entry found by index takes, in multiplications of dense matrices.
_BY_INDEX = 100.0
#: From so many stored entries on, compiled products are worth loading.
_LARGE = 2_000_000
#: Sums over at least so many rows, and over so many times the root of all, are formed at once,
#: where a piece has so many times the entries that adding up its sums takes. So many threads have
#: sums of their own, at most.
_PIECE, _PIECES, _WORTH, _THREADS = 1024, 15.0, 8.0, 256


class SparseMatrix(InMemory):
    """A compressed sparse matrix seen through the matrix protocol.

    A shift is subtracted from the stored entries of *full* columns, those that store every entry.
    Only their means can dwarf their deviations: among ``m`` entries one zero alone puts the
    deviation at ``mean/sqrt(m)``. Any other part of a shift is expanded after the product.

    Parameters
    ----------
    values : CSR or CSC matrix or array
        Floating point data; kept by reference.
    """

    def __init__(self, values: Compressed) -> None:
        self.values = values
        self._by_rows = values.format == "csr"
        self._double = values.dtype == np.float64
        self._large = bool(values.nnz >= _LARGE and values.dtype.isnative)

    @property
    def fused(self) -> bool:
        """Rows stored together, by compiled products: SciPy's are faster one after the other."""
        return self._by_rows and self._compilable

    @property
    def threaded(self) -> bool:
        """Always: SciPy's products do not take BLAS, nor do compiled ones."""
        return True

    @property
    def natural_width(self) -> int:
        """One: entries are found by index, for two columns at nearly twice the price."""
        return 1

    @property
    def work(self) -> Work:
        """Stored entries, found by index; rows are squared as dense blocks of columns."""
        a, (m, n) = self.values, self.shape
        entries, size = float(a.nnz), float(m * n)
        nbytes = float(a.data.nbytes + a.indices.nbytes + a.indptr.nbytes)
        square = size * n
        if not (self._by_rows and entries > _NEARLY_DENSE * size):
            square = _BY_INDEX * entries**2 / max(m, 1)
        return Work(m, n, entries, nbytes, True, square=square, row_square=size * m)

    def apply(self, v: Array, shift: Vector | None = None) -> Array:
        """``A v``."""
        if self._compiled(v, shift):
            from spgls.matrix import products

            if self._by_rows:
                return products.sparse_apply(self._parts, v)
            return products.sparse_cross(self._parts, v, *self.shape)
        if self._double and shift is None:
            return np.asarray(self.values @ v)
        inner, outer = self._split(shift)
        out = np.zeros((self.shape[0], *v.shape[1:]))
        for piece, block in self._pieces(inner):
            if self._by_rows:
                out[piece] = block @ v
            else:
                out += block @ v[piece]
        return out if outer is None else out - outer @ v

    def cross(self, u: Array, shift: Vector | None = None) -> Array:
        """``A' u``."""
        if self._compiled(u, shift):
            from spgls.matrix import products

            if self._by_rows:
                return products.sparse_cross(self._parts, u, self.shape[1], self._at_once)
            return products.sparse_apply(self._parts, u)
        plain = self._double and shift is None and self._at_once == self.shape[0]
        if plain and u.ndim == 2 and 0 < u.shape[1] <= FEW:
            return np.array([self._transposed @ np.ascontiguousarray(column) for column in u.T]).T
        if plain:
            return np.asarray(self._transposed @ u)
        inner, outer = self._split(shift)
        out = np.zeros((self.shape[1], *u.shape[1:]))
        for piece, block in self._pieces(inner):
            if self._by_rows:
                out += block.T @ u[piece]
            else:
                out[piece] = block.T @ u
        return out if outer is None else out - np.multiply.outer(outer, u.sum(axis=0))

    def gram(self, v: Array, shift: Vector | None = None, middle: RowMap | None = None) -> Array:
        """``A' M A v``; rows stored together are read once, columns have to be read twice."""
        if not self.fused or not self._by_rows:
            return self._in_two_reads(v, shift, middle)
        if self._compiled(v, shift) and (middle is None or isinstance(middle, RowStep)):
            from spgls.matrix import products

            return products.sparse_gram(self._parts, v, self._at_once, middle)
        inner, outer = self._split(shift)
        out = np.zeros((self.shape[1], *v.shape[1:]))
        for piece, block in self._pieces(inner):
            t = block @ v
            if outer is not None:
                t -= outer @ v
            if middle is not None:
                t = middle(piece, t)
            stored = self._double and inner is None
            out += (self._turned[piece.start] if stored else block.T) @ t
            if outer is not None:
                out -= np.multiply.outer(outer, t.sum(axis=0))
        return out

    def moment(self, extra: Array, weight: Vector | None, shift: Vector | None) -> Array:
        """``B' S B`` for ``B = [A - 1 shift', extra]``."""
        m, n = self.shape
        width = n + extra.shape[1]
        if self._by_rows and self.values.nnz > _NEARLY_DENSE * m * n:
            # A panel, the rows it is made from and the buffer it goes to share one block.
            rows = min(m, block_length(3 * width, at_least=256))
            panels = (panel for _, panel in self.row_panels(rows))
            return panel_moment(panels, rows, extra, weight, shift)
        inner, outer = self._split(shift)
        total = np.zeros((width, width))
        for piece, block in self._pieces(inner):
            scaled = block
            if weight is not None:
                rows_of = weight[piece] if self._by_rows else weight
                scaled = sp.diags_array(rows_of) @ block
            if self._by_rows:
                total[:n, :n] += (scaled.T @ block).toarray()
            else:
                for other, right in self._pieces(inner):
                    total[piece, other] = (scaled.T @ right).toarray()
        weighted = extra if weight is None else extra * weight[:, None]
        total[n:, n:] = in_pieces(extra, weighted, MOMENT_ROWS)
        each = np.ones(m) if weight is None else weight
        mixed = self.cross(np.column_stack([weighted, each]), inner)
        cross, sums = mixed[:, :-1], mixed[:, -1]
        if outer is not None:
            twist = np.outer(outer, sums)
            total[:n, :n] += each.sum() * np.outer(outer, outer) - twist - twist.T
            cross = cross - np.outer(outer, weighted.sum(axis=0))
        total[:n, n:] = cross
        total[n:, :n] = cross.T
        return total

    def column_squares(self, weight: Vector | None, shift: Vector | None) -> Vector:
        """Squared lengths of the columns, from what is stored; entries stored in parts add up."""
        (m, n), (inner, outer) = self.shape, self._split(shift)
        total, each = np.zeros(n), np.ones(m) if weight is None else weight
        for piece, block in self._pieces(inner):
            if not self.values.has_canonical_format:
                # Parts of an entry are rounded as they are, even if they cancel. SciPy's own abs
                # would sort the indices in place, which the data shares.
                block = _like(block, np.abs(block.data)).copy()
                block.sum_duplicates()
            squared = _like(block, np.square(block.data))
            if self._by_rows:
                total += squared.T @ each[piece]
            else:
                total[piece] = squared.T @ each
        if outer is not None:
            total = np.square(np.sqrt(total) + np.abs(outer) * np.sqrt(float(each.sum())))
        return total

    def total_square(self) -> float | None:
        """Sum of squares of what is stored; None where entries are stored in parts."""
        if not self.values.has_canonical_format:
            return None
        data = self.values.data
        if self._compilable:
            from spgls.matrix import products

            return products.total_square(data)
        if self._double:
            return dot(data, data)
        return float(np.einsum("i,i->", data, data, dtype=np.float64))

    @cached_property
    def longest_row(self) -> int:
        """Most stored entries of a row, or what they cannot exceed."""
        if self._by_rows:
            return int(np.diff(self.values.indptr).max(initial=0))
        return int(np.bincount(self.values.indices, minlength=1).max(initial=0))

    @cached_property
    def longest_sum(self) -> int:
        """Terms of a sum over a column that are added one after another, at most."""
        m, rows = self.shape[0], self._at_once
        if rows == m:
            return int(self._stored(distinct=False).max(initial=0))
        # Within a piece, and then over the pieces of each thread and over threads.
        return rows + self._parted + len(self._cuts) + _THREADS

    @property
    def _parted(self) -> int:
        """Most entries of a column beyond one for each place, where entries are stored in parts."""
        if self.values.has_canonical_format:
            return 0
        return int((self._stored(distinct=False) - self._stored(distinct=True)).max(initial=0))

    @cached_property
    def _at_once(self) -> int:
        """Rows over which sums are formed at once.

        Products of rows that are stored together add entries of a column one by one. Where there
        are many, sums over pieces of the rows take less time than to count them.
        """
        (m, n), entries = self.shape, self.values.nnz
        rows = max(_PIECE, round(_PIECES * sqrt(m)))
        several = self._by_rows and entries > block_length(2) and rows < m
        return rows if several and entries * rows >= _WORTH * n * m else m

    def some_columns(self, columns: NDArray[Any], most: float) -> SparseMatrix | None:
        """A copy of some columns, by columns; None where that may take more bytes than so many.

        Products with the transpose, which are half of those with few columns, are faster so.
        """
        a = self.values
        if a.data.nbytes + a.indices.nbytes > most:
            return None
        own = a[:, columns].tocsc()
        # So that SciPy never does in place, where others share the indices.
        own.sort_indices()
        return SparseMatrix(own)

    def scaled(self, row: Vector | None, column: Vector, dtype: Any) -> Compressed:
        """``diag(row) A diag(column)`` of numbers of a type, over the same indices."""
        a = self.values
        across, along = (row, column) if self._by_rows else (column, row)
        data = a.data.astype(np.float64)
        if across is not None:
            data *= np.repeat(across, np.diff(a.indptr))
        if along is not None:
            data *= along[a.indices]
        return _like(a, data.astype(dtype, copy=False))

    def unit_square(self, row: Vector | None, column: Vector, dtype: Any) -> Array:
        """``B'B`` for ``B = diag(row) A diag(column)``, in numbers of a type."""
        a = self.scaled(row, column, dtype)
        return np.asarray((a.T @ a).toarray())

    def typical_row(self, weight: Vector | None) -> Vector | None:
        """Mean of full columns, zero elsewhere; None without full columns."""
        if not self._full.any():
            return None
        each = np.ones(self.shape[0]) if weight is None else weight
        return np.where(self._full, self.cross(each) / each.sum(), 0.0)

    def take(self, rows: Rows) -> SparseMatrix:
        """Some rows, as compressed rows; compressed columns are converted once, and kept."""
        some = chosen_rows(rows, self.shape[0])
        if isinstance(some, slice):
            return SparseMatrix(_cut(self._rows, some))
        return SparseMatrix(self._rows[some])

    def find_non_finite(self) -> tuple[int, int, float] | None:
        """Row, column and value of the first stored entry that is not finite."""
        a, found = self.values, first_non_finite(self.values.data)
        if found is None:
            return None
        (at,) = found
        major, minor = int(np.searchsorted(a.indptr, at, side="right")) - 1, int(a.indices[at])
        row, column = (major, minor) if self._by_rows else (minor, major)
        return row, column, float(a.data[at])

    def _compiled(self, v: Array, shift: Vector | None) -> bool:
        """Whether compiled products know this one: few columns and no shift."""
        return self._narrow(v) and shift is None

    @cached_property
    def _parts(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Entries, indices and starts over the same memory, the latter two as unsigned."""
        a = self.values
        index, start = (x.view(f"u{x.itemsize}") for x in (a.indices, a.indptr))
        return a.data, index, start

    @cached_property
    def _transposed(self) -> Compressed:
        """The transpose over the same memory; making it anew costs as much as a small product."""
        return self.values.T

    @cached_property
    def _rows(self) -> Compressed:
        """The data as compressed rows, a copy of it if it is stored by columns."""
        return self.values if self._by_rows else self.values.tocsr()

    @cached_property
    def _full(self) -> NDArray[np.bool_]:
        """Columns that store every entry exactly once."""
        m, n = self.shape
        full = np.zeros(n, dtype=bool)
        if self.values.nnz >= m:
            full = self._stored(distinct=False) == m
        return full & (self._stored(distinct=True) == m) if full.any() else full

    def _stored(self, *, distinct: bool) -> NDArray[np.int64]:
        """Stored entries per column, or stored positions where some are stored repeatedly."""
        n = self.shape[1]
        count = np.zeros(n, dtype=np.int64)
        for piece, block in self._pieces(None):
            if distinct:
                block = block.copy()
                block.sum_duplicates()
            if self._by_rows:
                count += np.bincount(block.indices, minlength=n)
            else:
                count[piece] = np.diff(block.indptr)
        return count

    def _split(self, shift: Vector | None) -> tuple[Vector | None, Vector | None]:
        """Return the parts of a shift for full columns and for the others, None where zero."""
        if shift is None:
            return None, None
        inner, outer = np.where(self._full, shift, 0.0), np.where(self._full, 0.0, shift)
        return inner if inner.any() else None, outer if outer.any() else None

    def _pieces(self, shift: Vector | None) -> Iterator[tuple[slice, Compressed]]:
        """Runs of stored rows (CSR) or columns (CSC) as float64 blocks, over the same memory."""
        for piece, block in self._runs:
            if self._double and shift is None:
                yield piece, block
                continue
            data = block.data.astype(np.float64, copy=False)
            if shift is not None and self._by_rows:
                data = data - shift[block.indices]
            elif shift is not None:
                data = data - np.repeat(shift[piece], np.diff(block.indptr))
            yield piece, _like(block, data)

    @cached_property
    def _runs(self) -> list[tuple[slice, Compressed]]:
        """The same as they are stored; cutting them costs as much as a small product."""
        a, pieces = self.values, self._cuts
        return [(piece, a if len(pieces) == 1 else _cut(a, piece)) for piece in pieces]

    @cached_property
    def _cuts(self) -> list[slice]:
        """Which of the stored rows or columns they are."""
        a = self.values
        major = a.shape[0] if self._by_rows else a.shape[1]
        limit = block_length(2)  # an entry and its index
        if a.nnz <= limit:
            return [slice(0, major)]
        pieces, at, most = list[slice](), 0, self._at_once if self._by_rows else major
        while at < major:
            end = int(np.searchsorted(a.indptr, int(a.indptr[at]) + limit, side="right")) - 1
            pieces.append(slice(at, min(max(end, at + 1), at + most, major)))
            at = pieces[-1].stop
        return pieces

    @cached_property
    def _turned(self) -> dict[int, Compressed]:
        """Transposes of what is stored, by where it begins, over the same memory."""
        return {piece.start: block.T for piece, block in self._runs}


def _cut(a: Compressed, piece: slice) -> Compressed:
    """Stored rows (CSR) or columns (CSC) that lie together, over the same memory."""
    count, (m, n) = piece.stop - piece.start, a.shape
    first, last = int(a.indptr[piece.start]), int(a.indptr[piece.stop])
    starts = a.indptr[piece.start : piece.stop + 1] - a.indptr[piece.start]
    shape = (count, n) if a.format == "csr" else (m, count)
    return _assembled(a.format, shape, a.data[first:last], a.indices[first:last], starts)


def _like(a: Compressed, data: NDArray[Any]) -> Compressed:
    """Other entries in the same places."""
    return _assembled(a.format, a.shape, data, a.indices, a.indptr)


def _assembled(kind: str, shape: tuple[int, int], *parts: NDArray[Any]) -> Compressed:
    """A compressed matrix of its parts, which a constructor would look at, and copy if wide."""
    whole = (sp.csr_array if kind == "csr" else sp.csc_array)(shape, dtype=parts[0].dtype)
    whole.data, whole.indices, whole.indptr = parts
    return whole
