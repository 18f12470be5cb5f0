"""The first steps of a Krylov method in one go: the device never waits for the host.

Products with both targets, the start of the space, its product, the next column, its product: all
of that is queued at once. The host takes the columns that the device has multiplied, so each
product is that of the column as it is stored. Nearly every game takes two products or more.
"""

from __future__ import annotations

from ctypes import c_double, c_int, c_void_p
from functools import cached_property
from typing import Any

import numpy as np

from spgls.base.types import Array, Vector
from spgls.matrix.bordered import Bordered
from spgls.matrix.device.cuda_source import NEXT
from spgls.matrix.device.device_products import DenseProducts, lines_there

__all__ = ["Ahead"]

#: Threads of the kernel that makes columns, and what columns of host and device may differ by.
_THREADS, _SAME = 1024, 1e-9
#: Columns of the space that are begun.
_COLUMNS = 2


class Ahead:
    """Products under way on an NVIDIA device; a :class:`~spgls.matrix.bordered.Begun`.

    Parameters
    ----------
    products : DenseProducts
        Products with the data.
    u : ndarray of shape (m, 2)
        Targets.
    told : Bordered
        The matrix, and where the space starts.
    """

    def __init__(self, products: DenseProducts, u: Array, told: Bordered) -> None:
        self._products, self._told, self._next = products, told, 0
        self._cuda, self._n = products.cuda, products.shape[1]
        self._cuda.enter()
        self._room, self._open = self._cuda.take_room(), True
        self._start(u)

    def cross(self) -> tuple[Array, Vector]:
        """``A' u``, and squared lengths of the columns."""
        self._room.wait(0)
        lines = self._numbers[: 3 * self._n].reshape(3, self._n).copy()
        return lines[:2].T, lines[2]

    def product(self, told: Bordered, v: Vector) -> Vector | None:
        """``H v``, and ``v`` as it was multiplied."""
        i = self._next
        if i == _COLUMNS or told != self._told:
            return None
        if i == 0:
            self._room.wait(1)
        column = self._column(2 * i)
        self._next = _COLUMNS
        # A column that is not a number is not the same.
        if not np.abs(column - v).max() <= _SAME:
            return None
        if i == 1:
            self._room.wait(2)
        self._next = i + 1
        v[:] = column
        return self._column(2 * i + 1).copy()

    def close(self) -> None:
        """Wait for what nobody asked for, and give the memory back."""
        if self._open:
            self._open = False
            self._room.wait(2)
            self._cuda.keep_room(self._room)

    def _column(self, which: int) -> Vector:
        at = 3 * self._n + which * (self._n + 1)
        return self._numbers[at : at + self._n + 1]

    @cached_property
    def _kernel(self) -> Any:
        entries = -(-(self._n + 1) // _THREADS)
        return self._cuda.kernels(NEXT, ("next_column",), ENTRIES=entries, THREADS=_THREADS)

    def _start(self, u: Array) -> None:
        """Queue everything; numbers on both sides: sums, columns in turn with products, rows."""
        n, products, cuda = self._n, self._products, self._cuda
        stream, told = products.stream, self._told
        shown = 3 * n + 2 * _COLUMNS * (n + 1)
        lines = lines_there(u, products.place)
        rows = 0 if lines is not None else u.size
        work = max(products.cross_room(2, squares=True), products.gram_room())
        host, self._numbers = self._room.pinned(shown + rows)
        device = self._room.scratch(shown + rows + 2 * n + 1 + work)
        given = device + 8 * shown
        fused = given + 8 * rows
        # Columns of odd length are made for once too often: there is a place for the last.
        spare, sums = fused + 8 * n, fused + 8 * (2 * n + 1)
        if rows:
            self._numbers[shown:] = u.T.reshape(-1)
            cuda.to_device(given, host + 8 * shown, rows, stream)
        source = given if lines is None else lines
        products.start_cross(source, 2, True, None, sums, device)
        cuda.to_host(host, device, 3 * n, stream)
        self._room.mark(0, stream)
        columns = [device + 8 * (3 * n + i * (n + 1)) for i in range(2 * _COLUMNS)]
        y, z = device, device + 8 * n

        def step(made: int, of: int | None, held: int, image: int, column: int) -> None:
            factors = (told.scale, told.border, told.border, told.corner)
            if of is None:
                factors = (told.first, told.second, 0.0, told.last)
            first, second, border, corner = map(c_double, factors)
            addresses = c_void_p(made), first, c_void_p(z), second, c_void_p(of), border, corner
            rest = c_int(n), c_void_p(columns[0]), c_int(held), c_void_p(image), c_void_p(column)
            self._kernel["next_column"]((1, 1), (_THREADS, 1), stream, *addresses, *rest)

        # The start is no product; its place is taken by one.
        step(y, None, 0, columns[1], columns[0])
        products.start_gram(columns[0], sums, fused)
        step(fused, columns[0], 1, columns[1], columns[2])
        first = 3 * n
        cuda.to_host(host + 8 * first, columns[0], 3 * (n + 1), stream)
        self._room.mark(1, stream)
        products.start_gram(columns[2], sums, fused)
        step(fused, columns[2], 0, columns[3], spare)
        last = first + 3 * (n + 1)
        cuda.to_host(host + 8 * last, columns[3], n + 1, stream)
        self._room.mark(2, stream)
