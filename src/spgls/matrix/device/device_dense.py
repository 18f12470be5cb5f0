"""Dense data of any array library, on any device, never copied whole and never moved.

Products with vectors go through compiled kernels where there are some for the device, and through
the library's own matrix products elsewhere. All sums are in double precision.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from spgls.base.cached import cached_property
from spgls.base.devices import Place
from spgls.base.far_array import FarArray
from spgls.base.types import EPS, Array, Vector
from spgls.matrix.bordered import Begun, Telling
from spgls.matrix.device.begun import Ahead, can_begin
from spgls.matrix.device.device_products import DenseProducts
from spgls.matrix.device.on_device import OnDevice
from spgls.matrix.device.rates import measured_rates
from spgls.matrix.pieces import Rows, chosen_rows, cuts, typical_length
from spgls.matrix.protocol import RowMap
from spgls.matrix.row_step import RowStep
from spgls.matrix.work import Work

__all__ = ["DeviceDense"]

#: Bytes of working copies on the device: narrow data is widened, and means are subtracted, by
#: pieces.
_PIECE = 2**27
#: Rows that count of which a typical one is made at least, if there are so many.
_ENOUGH = 256


class DeviceDense(OnDevice):
    """An array on a device seen through the matrix protocol.

    Vectors come from the host and go back to it; the data stays where it is. Only
    :meth:`row_panels` and :meth:`column_panels` bring rows or columns to the host, piece by piece.

    Parameters
    ----------
    values : array of shape (m, n)
        float64 or float32.
    place : Place
        Where it lives.
    """

    def __init__(self, values: Any, place: Place) -> None:
        super().__init__(values, place)
        self.values = values

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        m, n = self.values.shape
        return int(m), int(n)

    @property
    def natural_width(self) -> int:
        """One: products with one column are begun ahead, and read as fast as the device does."""
        return 1

    @cached_property
    def work(self) -> Work:
        """All entries, at the measured speed of the device."""
        m, n = self.shape
        size = float(m * n)
        nbytes = size * self.dtype.itemsize
        rates = measured_rates(self.place)
        return Work(m, n, size, nbytes, False, square=size * n, row_square=size * m, device=rates)

    @cached_property
    def _products(self) -> DenseProducts | None:
        """Compiled ones; None where there are none."""
        return DenseProducts.of(self.values, self.place, self._held)

    def apply(self, v: Array, shift: Vector | None = None) -> Array:
        """``A v``."""
        products = self._products
        if products is not None and shift is None and products.can_apply(v):
            found = products.apply(v)
            assert found is not None
            return found
        with self.place.memory():
            known = self.place.put(v)
            parts = [block @ known for _, block in self._blocks(shift)]
            return self._get(parts[0] if len(parts) == 1 else self._xp.concat(parts))

    def apply_there(self, v: Array) -> FarArray:
        """``A v`` of a block of columns, which stays on the device."""
        products = self._products
        with self.place.memory():
            # Arrays of JAX are never written to.
            if products is not None and products.can_apply(v) and self.place.library != "jax":
                shape = self.shape[0], v.shape[1]
                out = self._xp.empty(shape, dtype=self._xp.float64, device=self.place.device)
                products.apply(v, to=out)
                return FarArray(self.place, out)
            known = self.place.put(v)
            parts = [block @ known for _, block in self._blocks(None)]
            return FarArray(self.place, parts[0] if len(parts) == 1 else self._xp.concat(parts))

    def cross(self, u: Array, shift: Vector | None = None) -> Array:
        """``A' u``."""
        products = self._products
        if products is not None and shift is None and products.can_cross(u):
            return products.cross(u)[0]
        with self.place.memory():
            known, total = self.place.put(u), None
            for rows, block in self._blocks(shift):
                part = block.T @ known[rows, ...]
                total = part if total is None else total + part
            return self._get(total)

    def gram(self, v: Array, shift: Vector | None = None, middle: RowMap | None = None) -> Array:
        """``A' M A v``; one read where products are compiled."""
        products = self._products
        if products is not None and shift is None and products.can_gram(v, middle):
            return products.gram(v, middle)
        with self.place.memory():
            known, total, left = self.place.put(v), None, None
            parts = self._held.parts(middle)
            for rows, block in self._blocks(shift):
                t = block @ known
                if parts is not None:
                    t, rest = parts.on_rows(rows, t)
                    left = rest if left is None else left + rest
                elif middle is not None:
                    # A map that nobody has taken apart is the host's.
                    t = self.place.put(middle(rows, self._get(t)))
                part = block.T @ t
                total = part if total is None else total + part
        if isinstance(middle, RowStep) and middle.basis is not None:
            # Both in one piece: one wait for the device.
            both = self._get(self._xp.concat([total, left]))
            middle.left[...] += both[self.shape[1] :]
            return both[: self.shape[1]]
        return self._get(total)

    def begin_krylov(self, targets: Array, told: Telling) -> Begun | None:
        """Begin the first steps of a Krylov method, where products are compiled; else None."""
        products = self._products
        if products is None or not (products.fused and can_begin(products, targets)):
            return None
        return Ahead.begin(products, targets, told)

    def moment(self, extra: Array, weight: Vector | None, shift: Vector | None) -> Array:
        """``B' S B`` for ``B = [A - 1 shift', extra]``, by products of matrices."""
        total = None
        with self.place.memory():
            for _, block in self._beside(extra, None if weight is None else np.sqrt(weight), shift):
                part = block.T @ block
                total = part if total is None else total + part
        return self._get(total)

    def triangle(self, extra: Array, root: Vector | None, shift: Vector | None) -> Array:
        """Triangular factor of ``S^{1/2}[A - 1 shift', extra]``, found on the device."""
        xp, width, few = self._xp, self.shape[1] + extra.shape[1], None
        with self.place.memory():
            for _, block in self._beside(extra, root, shift, at_least=2 * width):
                rows = block if few is None else xp.concat([few, block])
                few = xp.linalg.qr(rows, mode="reduced")[1]
        return self._get(few)

    def column_squares(self, weight: Vector | None, shift: Vector | None) -> Vector:
        """Squared lengths of the columns."""
        return self.cross_and_squares(np.zeros((self.shape[0], 0)), weight, shift)[1]

    def cross_and_squares(
        self, u: Array, weight: Vector | None, shift: Vector | None
    ) -> tuple[Array, Vector]:
        """``A' u`` and :meth:`column_squares`, in one read where products are compiled."""
        products = self._products
        if products is not None and shift is None and products.can_cross(u):
            product, squares = products.cross(u, squares=True, weight=weight)
            assert squares is not None
            return product, squares
        xp, total = self._xp, None
        table = u if u.ndim == 2 else u[:, None]
        with self.place.memory():
            known = self.place.put(table)
            own = None if weight is None else self._held.copy(weight)
            for rows, block in self._blocks(shift):
                square = block * block
                if own is not None:
                    square = square * own[rows][:, None]
                part = xp.sum(square, axis=0)[:, None]
                if table.shape[1]:
                    part = xp.concat([block.T @ known[rows, :], part], axis=1)
                total = part if total is None else total + part
        both = self._get(total)
        product = both[:, 0] if u.ndim == 1 else both[:, :-1]
        return np.ascontiguousarray(product), both[:, -1].copy()

    def head_square(self, count: int) -> float:
        """Sum of squares of the first rows."""
        rows = self._xp.reshape(self._head(count), (-1,))
        return float(self._get(self._xp.reshape(rows @ rows, (1,)))[0])

    def head_largest(self, count: int) -> Vector:
        """Largest magnitude in each column of the first rows."""
        return self._get(self._xp.max(self._xp.abs(self._head(count)), axis=0))

    def head_spread(self, count: int, shift: Vector) -> Vector:
        """Median distance of the first rows from a row, column by column."""
        xp, block = self._xp, self._head(count)
        away = xp.sort(xp.abs(block - self.place.put(shift)), axis=0)
        count = int(block.shape[0])
        return self._get((away[(count - 1) // 2, :] + away[count // 2, :]) / 2.0)

    def typical_row(self, weight: Vector | None) -> Vector | None:
        """Mean of the first rows that count."""
        count = typical_length(*self.shape)
        first = self.values[:count, :]
        if weight is not None:
            # Among the first rows are enough of them, as a rule.
            counted = np.flatnonzero(np.asarray(weight[:count]))
            counted = counted if len(counted) >= min(count, _ENOUGH) else np.flatnonzero(weight)
            first = self._some(counted[:count])
        block = self._wide(first)
        both = self._get(self._xp.stack([self._xp.mean(block, axis=0), block[0, :]]))
        mean, one = both
        # A column of equal numbers less one of them is exactly zero; less their mean, perhaps not.
        return np.asarray(np.where(abs(mean - one) <= 64 * EPS * abs(one), one, mean))

    def decompose(self, square: Array) -> tuple[Vector, Array]:
        """Eigenvalues, smallest first, and eigenvectors of a symmetric matrix of the host's."""
        with self.place.memory():
            values, vectors = self._xp.linalg.eigh(self.place.put(square))
            return self._get(values), np.asfortranarray(self._get(vectors))

    def row_panels(self, rows: int) -> Iterator[tuple[slice, Array]]:
        """Dense float64 row blocks, brought to the host one by one."""
        for piece in cuts(self.shape[0], rows):
            yield piece, self._get(self._wide(self.values[piece, :]))

    def column_panels(self, columns: int) -> Iterator[tuple[slice, Array]]:
        """Dense float64 column blocks, brought to the host one by one."""
        for piece in cuts(self.shape[1], columns):
            yield piece, self._get(self._wide(self.values[:, piece]))

    def take(self, rows: Rows) -> DeviceDense:
        """Some rows, which stay on the device."""
        some = chosen_rows(rows, self.shape[0])
        if isinstance(some, slice):
            return DeviceDense(self.values[some, :], self.place)
        return DeviceDense(self._some(some), self.place)

    def find_non_finite(self) -> tuple[int, int, float] | None:
        """Row, column and value of an entry that is not finite, looked for on the device."""
        xp = self._xp
        with self.place.memory():
            for rows in self._cuts(1):
                block = self.values[rows, :]
                wrong = ~xp.isfinite(block)
                if not bool(xp.any(wrong)):
                    continue
                flat = int(xp.argmax(xp.astype(xp.reshape(wrong, (-1,)), xp.int32)))
                row, column = divmod(flat, self.shape[1])
                return rows.start + row, column, float(block[row, column])
        return None

    def _head(self, count: int) -> Any:
        return self._wide(self.values[: min(count, self.shape[0]), :])

    def _some(self, rows: np.ndarray) -> Any:
        numbers = self.place.put(np.asarray(rows, dtype=np.int64))
        with self.place.memory():
            return self._xp.take(self.values, numbers, axis=0)

    def _wide(self, values: Any) -> Any:
        return values if self._double else self._xp.astype(values, self._xp.float64)

    def _get(self, array: Any) -> Array:
        return np.asarray(self.place.get(array), dtype=np.float64)

    def _cuts(self, at_least: int) -> Iterator[slice]:
        m, n = self.shape
        return cuts(m, max(at_least, _PIECE // (8 * n), 1))

    def _blocks(self, shift: Vector | None) -> Iterator[tuple[slice, Any]]:
        """Pieces of rows in double precision, less a shift; all at once if that copies nothing."""
        if self._double and shift is None:
            yield slice(0, self.shape[0]), self.values
            return
        own = None if shift is None else self._held.copy(shift)
        for rows in self._cuts(1):
            block = self._wide(self.values[rows, :])
            yield rows, block if own is None else block - own

    def _beside(
        self, extra: Array, root: Vector | None, shift: Vector | None, at_least: int = 1
    ) -> Iterator[tuple[slice, Any]]:
        """Pieces of ``S^{1/2}[A - 1 shift', extra]``."""
        xp = self._xp
        beside = self.place.put(extra)
        scale = None if root is None else self.place.put(root)
        own = None if shift is None else self._held.copy(shift)
        for rows in self._cuts(at_least):
            block = self._wide(self.values[rows, :])
            if own is not None:
                block = block - own
            if extra.shape[1]:
                block = xp.concat([block, beside[rows, :]], axis=1)
            yield rows, block if scale is None else block * scale[rows][:, None]
