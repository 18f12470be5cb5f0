"""The first steps of a Krylov method in one go: the device never waits for the host.

Products with both targets, the start of the space, its product, the next column, its product: all
of that is queued at once. The host takes the columns that the device has multiplied, so each
product is that of the column as it is stored. Nearly every game takes two products or more.
"""

from __future__ import annotations

from ctypes import c_double, c_int, c_longlong, c_void_p
from functools import cached_property
from typing import Any, Protocol

from spgls.base.devices import Place
from spgls.base.types import Array, Vector
from spgls.matrix.bordered import Bordered
from spgls.matrix.device.cuda import Cuda
from spgls.matrix.device.cuda_source import NEXT
from spgls.matrix.device.device_products import First, lines_there

__all__ = ["Ahead", "Products", "can_begin"]

#: Threads of the kernel that makes columns, entries of each, and what columns of host and device
#: may differ by.
_THREADS, _ENTRIES, _SAME = 1024, 40, 1e-9
#: Columns of the space that are begun.
_COLUMNS = 2


class Products(Protocol):
    """What is asked of products with data on an NVIDIA device; all by addresses there."""

    @property
    def cuda(self) -> Cuda:
        """The device."""
        ...

    @property
    def place(self) -> Place:
        """The same, as the array library knows it."""
        ...

    @property
    def stream(self) -> int:
        """The queue of work."""
        ...

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        ...

    @property
    def second_at(self) -> tuple[int, int]:
        """Where numbers of the second target begin in ``A'u``, and how far apart they are."""
        ...

    def ahead_room(self) -> int:
        """Numbers that products need besides."""
        ...

    def start_first(self, u: int, room: int, to: int) -> None:
        """Queue ``A' u`` of two lines, and squares: ``3 n`` numbers."""
        ...

    def start_gram(self, v: int, room: int, to: int) -> None:
        """Queue ``A'A v``."""
        ...

    def read_first(self, numbers: Array) -> First:
        """What :meth:`start_first` has left, copied."""
        ...


def can_begin(products: Products, u: Array) -> bool:
    """Whether the first steps of a Krylov method can be queued at once."""
    # What JAX holds may be freed while work on it goes on.
    several = u.ndim == 2 and u.shape[1] == 2 and products.place.library != "jax"
    return several and products.shape[1] < _THREADS * _ENTRIES


class Ahead:
    """Products under way on an NVIDIA device; a :class:`~spgls.matrix.bordered.Begun`.

    Parameters
    ----------
    products : Products
        Products with the data.
    u : ndarray of shape (m, 2)
        Targets.
    told : Bordered
        The matrix, and where the space starts.
    """

    def __init__(self, products: Products, u: Array, told: Bordered) -> None:
        self._products, self._told, self._next = products, told, 0
        self._cuda, self._n = products.cuda, products.shape[1]
        self._cuda.enter()
        self._room, self._open, self._over = self._cuda.take_room(), True, False
        self._start(u)

    def cross(self) -> tuple[Array, Vector | None]:
        """``A' u``, and squared lengths of the columns."""
        return self._first.product, self._first.squares

    def total(self) -> float:
        """Sum of the squares of all entries."""
        return self._first.total

    @cached_property
    def _first(self) -> First:
        self._room.wait(0)
        return self._products.read_first(self._numbers[: 3 * self._n])

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
        apart = column - v
        if not max(apart.max(), -apart.min()) <= _SAME:
            return None
        if i == 1:
            self._finish()
        self._next = i + 1
        v[:] = column
        return self._column(2 * i + 1).copy()

    def close(self) -> None:
        """Wait for what nobody asked for, and give the memory back."""
        if self._open:
            self._open = False
            self._finish()
            self._cuda.keep_room(self._room)

    def _finish(self) -> None:
        if not self._over:
            self._room.wait(2)
            self._over = True

    def _column(self, which: int) -> Vector:
        at = 3 * self._n + which * (self._n + 1)
        return self._numbers[at : at + self._n + 1]

    def _start(self, u: Array) -> None:
        """Queue everything; numbers on both sides: sums, columns in turn with products, rows."""
        n, products, cuda = self._n, self._products, self._cuda
        stream, told = products.stream, self._told
        shown = 3 * n + 2 * _COLUMNS * (n + 1)
        lines = lines_there(u, products.place)
        rows = 0 if lines is not None else u.size
        host, self._numbers = self._room.pinned(shown + rows)
        device = self._room.scratch(shown + rows + n + products.ahead_room())
        given = device + 8 * shown
        fused = given + 8 * rows
        room = fused + 8 * n
        if rows:
            self._numbers[shown:].reshape(2, -1)[:] = u.T
            cuda.to_device(given, host + 8 * shown, rows, stream)
        products.start_first(given if lines is None else lines, room, device)
        cuda.to_host(host, device, 3 * n, stream)
        self._room.mark(0, stream)
        q0, h0, q1, h1 = (device + 8 * (3 * n + i * (n + 1)) for i in range(2 * _COLUMNS))
        at, apart = products.second_at
        entries = -(-(n + 1) // _THREADS)
        kernel = cuda.kernels(NEXT, ("next_column",), ENTRIES=entries, THREADS=_THREADS)
        column = kernel["next_column"]
        z, step = c_void_p(device + 8 * at), c_int(apart)
        width, held, away = c_int(n), c_void_p(q0), c_longlong((host - device) // 8)
        nothing, one = c_void_p(None), c_int(1)

        def start(
            made: tuple[Any, Any], of: Any, factors: tuple[float, ...], k: int, *to: Any
        ) -> None:
            first, second, border, corner = map(c_double, factors)
            column(
                (1, 1),
                (_THREADS, 1),
                stream,
                *made,
                first,
                z,
                step,
                second,
                of,
                border,
                corner,
                width,
                held,
                c_int(k),
                *map(c_void_p, to),
                away,
            )

        factors = told.scale, told.border, told.border, told.corner
        begin = told.first, told.second, 0.0, told.last
        start((c_void_p(device), step), nothing, begin, 0, None, q0)
        products.start_gram(q0, room, fused)
        start((c_void_p(fused), one), c_void_p(q0), factors, 1, h0, q1)
        self._room.mark(1, stream)
        products.start_gram(q1, room, fused)
        start((c_void_p(fused), one), c_void_p(q1), factors, 0, h1, None)
        self._room.mark(2, stream)
