"""Dense data in memory, in C or F order, float64 or narrower, never copied whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import isqrt
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dgemm, dsyrk

from spgls.base.types import EPS, Array, Vector
from spgls.base.vector import dot
from spgls.matrix.memory import FEW, InMemory, first_non_finite
from spgls.matrix.pieces import (
    BLOCK_BYTES,
    CACHE_BYTES,
    MOMENT_ROWS,
    Rows,
    block_length,
    chosen_rows,
    cuts,
    in_pieces,
    sum_length,
    typical_length,
)
from spgls.matrix.protocol import RowMap
from spgls.matrix.row_step import RowStep
from spgls.matrix.squares import dense_squares
from spgls.matrix.work import Work

__all__ = ["DenseMatrix", "panel_moment"]

Order: TypeAlias = Literal["C", "F"]

#: From so many entries on, compiled products are worth loading.
_LARGE = 4_000_000
#: Data of no more bytes is read twice from cache sooner than BLAS takes it in small blocks. From so
#: many on, the second read follows the first in blocks of half as many.
_CACHED, _PARTED = 2**25, 2**24
#: Rows (or columns, where those lie together) shorter than this are faster by BLAS.
_SHORT = 128
#: Bytes of panels that are squared, by order: rows are read twice and should be in cache, columns
#: are read once and faster in long pieces.
_PANEL_BYTES = {"C": 2 * CACHE_BYTES, "F": BLOCK_BYTES}
#: Up to so many columns, squares come from NumPy: SciPy adds to them in place, but keeps all other
#: threads from running meanwhile, such as one that reads the next rows.
_NARROW = 128
#: Columns that are too few for BLAS to multiply them in blocks of rows.
_THIN = 8
#: Columns are read once where so many of their rows, all columns taken together, fit in so many
#: bytes: shorter pieces of columns come from memory too slowly to gain by it.
_RUN, _RUN_BYTES = 1024, 2**22


class DenseMatrix(InMemory):
    """A NumPy array seen through the matrix protocol.

    Parameters
    ----------
    values : ndarray of shape (m, n)
        Floating point data of any width, any memory order; kept by reference.

    Attributes
    ----------
    parted : bool
        Whether a Gram product takes data that fits in cache in a few parts.
    """

    def __init__(self, values: NDArray[np.floating[Any]]) -> None:
        self.values = values
        self._order: Order = "F" if values.flags.f_contiguous else "C"
        # BLAS takes float64 as it lies if one of the strides is that of neighbours.
        adjacent = min(values.strides) >= 0 and values.itemsize in values.strides
        self._direct = values.dtype == np.float64 and adjacent
        self._by_columns = self._order == "F" and not values.flags.c_contiguous
        length = values.shape[0 if self._by_columns else 1]
        self._run = _RUN_BYTES // max(values.shape[1] * values.itemsize, 1)
        self._large = values.size >= _LARGE and length >= _SHORT and _plain(values)
        self._cached = self._direct and not self._large and values.nbytes <= _CACHED
        self.parted = self._cached and values.nbytes > _PARTED

    @property
    def fused(self) -> bool:
        """Unless data fits in cache, or many long columns lie in memory one after another."""
        if self._cached:
            return False
        return not (self._compilable and self._by_columns) or self._run >= min(_RUN, self.shape[0])

    @property
    def natural_width(self) -> int:
        """Two where data too large for the cache is read once."""
        return 2 if self._compilable and self.fused else 1

    @property
    def work(self) -> Work:
        """All entries, in BLAS."""
        m, n = self.shape
        size = float(m * n)
        nbytes = float(self.values.nbytes)
        return Work(m, n, size, nbytes, False, square=size * n, row_square=size * m)

    def apply(self, v: Array, shift: Vector | None = None) -> Array:
        """``A v``."""
        if self._cached and shift is None and v.ndim == 1:
            return np.asarray(self.values.dot(v))
        if self._compiled(v, shift):
            from spgls.matrix import products

            if self._by_columns:
                return products.cross(self.values.T, v)
            return products.apply(self.values, v, shift)
        if self._direct and shift is None and v.ndim == 1:
            return np.asarray(self.values.dot(v))
        # A block of columns is faster by pieces: BLAS does badly with few columns and many rows.
        out = np.empty((self.shape[0], *v.shape[1:]))
        for rows, block in self._blocks(shift):
            np.matmul(block, v, out=out[rows])
        return out

    def cross(self, u: Array, shift: Vector | None = None) -> Array:
        """``A' u``."""
        if self._cached and shift is None and u.ndim == 1:
            return in_pieces(self.values, u, sum_length(len(u)))
        if self._compiled(u, shift):
            from spgls.matrix import products

            if self._by_columns:
                return products.apply(self.values.T, u, None, sum_length(self.shape[0]))
            return products.cross(self.values, u, shift)
        if self._direct and shift is None and u.ndim == 1:
            return in_pieces(self.values, u, sum_length(self.shape[0]))
        if self._direct and shift is None and 0 < u.shape[1] <= FEW:
            return self._cross_few(np.ascontiguousarray(u.T))
        out = np.zeros((self.shape[1], *u.shape[1:]))
        for rows, block in self._blocks(shift):
            out += in_pieces(block, u[rows], sum_length(self.shape[0]))
        return out

    def _cross_few(self, columns: Array) -> Array:
        """``A' u``, column by column: of blocks that stay in cache for the next, if A does not."""
        length = sum_length(self.shape[0])
        if self._cached:
            return np.array([in_pieces(self.values, column, length) for column in columns]).T
        out = np.zeros((len(columns), self.shape[1]))
        for rows, block in self._blocks(None):
            for total, column in zip(out, columns, strict=True):
                total += in_pieces(block, column[rows], length)
        return out.T

    def gram(self, v: Array, shift: Vector | None = None, middle: RowMap | None = None) -> Array:
        """``A' M A v``, one read of each row block; two where :attr:`fused` says so."""
        if self._cached and not self.parted and shift is None and v.ndim == 1:
            return self._in_two_reads(v, None, middle)
        if self._compiled(v, shift) and (middle is None or isinstance(middle, RowStep)):
            from spgls.matrix import products

            if not self.fused:
                return self._in_two_reads(v, shift, middle)
            if self._by_columns:
                return products.gram_by_columns(self.values, v, self._run, middle)
            return products.gram(self.values, v, shift, middle)
        out = np.zeros(0)
        # One column leaves room in cache for larger blocks, which wake BLAS's threads less often.
        room = CACHE_BYTES
        if v.ndim == 1:
            room = _PARTED // 2 if self.parted else BLOCK_BYTES
        for rows, block in self._blocks(shift, room):
            t = block @ v
            part = in_pieces(
                block, t if middle is None else middle(rows, t), sum_length(self.shape[0])
            )
            # The first sum is the memory of all: fresh memory takes longer than a short product.
            out = np.add(out, part, out=out) if rows.start else part
        return out

    def moment(self, extra: Array, weight: Vector | None, shift: Vector | None) -> Array:
        """``B' S B`` for ``B = [A - 1 shift', extra]``."""
        m, n = self.shape
        if weight is None and shift is None and not extra.shape[1] and n > _NARROW and self._direct:
            # NumPy sees that both are one matrix, and takes half the work.
            return np.asarray(self.values.T @ self.values)
        rows = min(m, block_length(n, at_least=512, block_bytes=_PANEL_BYTES[self._order]))
        panels = (self.values[piece] for piece in cuts(m, rows))
        return panel_moment(panels, rows, extra, weight, shift, self._order)

    def column_squares(self, weight: Vector | None, shift: Vector | None) -> Vector:
        """Squared lengths of the columns, block by block."""
        total = np.zeros(self.shape[1])
        for rows, block in self._blocks(shift):
            total += dense_squares(block, None if weight is None else weight[rows], None)
        return total

    def total_square(self) -> float | None:
        """Sum of squares of all entries; None unless BLAS takes them as they lie."""
        if not (self._direct and _plain(self.values)):
            return None
        entries = self.values.ravel(order="K")
        # Products with data that fits in cache are on all threads of BLAS, and so is this.
        return float(entries.dot(entries)) if self._cached else dot(entries, entries)

    def head_square(self, count: int) -> float:
        """Sum of squares of the first rows."""
        entries = self.values[:count].ravel().astype(np.float64, copy=False)
        return dot(entries, entries)

    def cross_and_squares(
        self, u: Array, weight: Vector | None, shift: Vector | None
    ) -> tuple[Array, Vector | None]:
        """``A' u`` and :meth:`column_squares`, where products are compiled; else None."""
        if self._compiled(u, shift) and not self._by_columns:
            from spgls.matrix import products

            return products.cross_and_squares(self.values, u, weight, shift)
        return self.cross(u, shift), None

    def typical_row(self, weight: Vector | None) -> Vector | None:
        """Mean of the first rows that count."""
        count = typical_length(*self.shape)
        if weight is None:
            first = self.values[:count]
        else:
            first = self.values[np.flatnonzero(weight)[:count]]
        mean = first.mean(axis=0, dtype=np.float64)
        # A column of equal numbers less one of them is exactly zero; less their mean, perhaps not.
        one = first[0].astype(np.float64)
        return np.asarray(np.where(abs(mean - one) <= 64 * EPS * abs(one), one, mean))

    def take(self, rows: Rows) -> DenseMatrix:
        """Some rows."""
        return DenseMatrix(self.values[chosen_rows(rows, self.shape[0])])

    def find_non_finite(self) -> tuple[int, int, float] | None:
        """Row, column and value of the first entry that is not finite."""
        at = first_non_finite(self.values)
        return None if at is None else (at[0], at[1], float(self.values[at]))

    def _compiled(self, v: Array, shift: Vector | None) -> bool:
        """Whether compiled products know this one: few columns, and a shift of rows alone."""
        return self._narrow(v) and not (self._by_columns and shift is not None)

    def _blocks(
        self, shift: Vector | None, block_bytes: int = CACHE_BYTES
    ) -> Iterator[tuple[slice, Array]]:
        """Row blocks that BLAS can take and the cache can hold; each overwrites the last."""
        m, n = self.shape
        # Not too few, or the sum over blocks would be a long one.
        rows = min(m, block_length(n, at_least=max(8, isqrt(m) // 8), block_bytes=block_bytes))
        if self._direct and shift is None:
            yield from self.row_panels(rows)
            return
        buffer = np.empty((rows, n), order=self._order)
        for piece in cuts(m, rows):
            block = buffer[: piece.stop - piece.start]
            np.subtract(self.values[piece], 0.0 if shift is None else shift, out=block)
            yield piece, block


def _plain(values: NDArray[np.floating[Any]]) -> bool:
    """Whether compiled products can take it as it lies: no gaps, numbers of the machine's own."""
    contiguous = values.flags.c_contiguous or values.flags.f_contiguous
    return contiguous and values.dtype in (np.float64, np.float32) and values.dtype.isnative


def panel_moment(
    panels: Iterable[NDArray[np.floating[Any]]],
    rows: int,
    extra: Array,
    weight: Vector | None,
    shift: Vector | None,
    order: Order = "C",
) -> Array:
    """``B' S B`` for ``B = [A - 1 shift', extra]``, from panels of at most ``rows`` rows of A."""
    k = extra.shape[1]
    root = None if weight is None else np.sqrt(weight)[:, None]
    others = extra if root is None else root * extra
    # Columns that lie one after another take those of extra behind them; rows have no room.
    inside = k if order == "F" else 0
    square, beside = np.zeros((0, 0)), np.zeros((0, k))
    buffer, at, both = np.zeros(0), 0, True
    for panel in panels:
        count, n = panel.shape
        width = n + inside
        if at == 0:
            both = width <= _NARROW or count == len(extra)
            if not both:
                square = np.zeros((width, width), order="F")
                beside = np.zeros((width, k - inside), order="F")
        piece, block = slice(at, at + count), panel
        if root is not None or shift is not None or order == "F" or not _in_rows(panel):
            buffer = buffer if buffer.size else np.empty(rows * width)
            block = buffer[: count * width].reshape((count, width), order=order)
            features = block[:, :n]
            np.subtract(panel, 0.0 if shift is None else shift, out=features)
            if root is not None:
                features *= root[piece]
            block[:, n:] = others[piece, :inside]
        add = _add_by_numpy if both else _add_by_scipy
        square, beside = add(block, others[piece, inside:], square, beside)
        at = piece.stop
    if not both:
        # Of the sums, one triangle is there.
        diagonal = np.diagonal(square).copy()
        square += square.T
        np.fill_diagonal(square, diagonal)
    if inside == k:
        return square
    n = len(square)
    total = np.empty((n + k, n + k), order="F")
    total[:n, :n] = square
    total[:n, n:], total[n:, :n] = beside, beside.T
    total[n:, n:] = in_pieces(others, others, MOMENT_ROWS)
    return total


def _in_rows(panel: NDArray[np.floating[Any]]) -> bool:
    """Whether BLAS takes rows as they lie."""
    return panel.dtype == np.float64 and panel.flags.c_contiguous


def _add_by_numpy(
    block: NDArray[np.floating[Any]], others: Array, square: Array, beside: Array
) -> tuple[Array, Array]:
    """Add ``block' block`` and ``block' others``, while other threads may run."""
    # BLAS adds products of few columns one after the other.
    thin = block.shape[1] <= _THIN
    own = in_pieces(block, block, MOMENT_ROWS if thin else len(block))
    sides = in_pieces(block, others, MOMENT_ROWS)
    if not square.size:
        return own, sides
    return np.add(square, own, out=square), np.add(beside, sides, out=beside)


def _add_by_scipy(
    block: NDArray[np.floating[Any]], others: Array, square: Array, beside: Array
) -> tuple[Array, Array]:
    """Add the same to one triangle in place: half the memory, for many columns.

    Both by one BLAS: threads of NumPy's would be in the way of those of SciPy's.
    """
    left, turned = (block.T, 0) if block.flags.c_contiguous else (block, 1)
    square = dsyrk(1.0, left, 1.0, square, trans=turned, overwrite_c=1)
    for piece in cuts(len(block) if beside.size else 0, MOMENT_ROWS):
        some = left[piece] if turned else left[:, piece]
        beside = dgemm(1.0, some, others[piece].T, 1.0, beside, turned, 1, overwrite_c=1)
    return square, beside
