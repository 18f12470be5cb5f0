"""The first steps of a Krylov method in one go: the device never waits for the host.

Products with both targets are queued at once, then the start of the space, its product, the next
column, its product, and so on for as many as nearly every game takes; each stage is one graph where
the same was queued before. The host takes the columns that the device has multiplied, so each
product is that of the column as it is stored. With a loose tolerance fewer will do: products of
large data but the first wait until they are asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from ctypes import c_int, c_longlong, c_void_p
from functools import partial
from typing import Any, NamedTuple, Protocol

from spgls.base.cached import cached_property
from spgls.base.devices import Place
from spgls.base.types import Array, Vector
from spgls.base.vector import dot
from spgls.matrix.bordered import Bordered, Telling
from spgls.matrix.device.cuda import Cuda
from spgls.matrix.device.cuda_source import NEXT
from spgls.matrix.device.device_products import First, lines_there

__all__ = ["Ahead", "Products", "can_begin"]

#: Threads of the kernel that makes columns, entries of each, and how far apart columns of host and
#: device may be.
_THREADS, _ENTRIES, _SAME = 1024, 40, 1e-9
#: Factors of the start and of the matrix.
_FACTORS = 8
#: Bytes that take longer to read than the host takes to ask for them.
_LARGE = 2**32


class _Places(NamedTuple):
    """Addresses: of numbers on either side, of what is multiplied, and of factors."""

    host: int
    device: int
    fused: int
    factors: int


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

    @property
    def columns(self) -> int:
        """How many columns of a space are begun."""
        ...

    @property
    def nbytes(self) -> int:
        """Bytes that a product reads."""
        ...

    def ahead_room(self) -> int:
        """Numbers that products need besides."""
        ...

    @property
    def key(self) -> tuple[Any, ...]:
        """All that queued products depend on, but for the places of vectors."""
        ...

    def start_first(self, u: int, room: int, to: int, stream: int) -> None:
        """Queue ``A' u`` of two lines, and squares: ``3 n`` numbers."""
        ...

    def start_next(self, v: int, room: int, to: int, stream: int) -> None:
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
        Targets, whose products are queued at once.
    """

    def __init__(self, products: Products, u: Array) -> None:
        self._products, self._next = products, 0
        self._told: Bordered | None = None
        self._cuda, self._n, self._columns = products.cuda, products.shape[1], products.columns
        self._cuda.enter()
        self._room, self._open, self._over = self._cuda.take_room(), True, False
        self._start(u)

    @classmethod
    def begin(cls, products: Products, u: Array, told: Telling) -> Ahead | None:
        """Begin with the targets, and go on once it is told with what; None if that is nothing."""
        ahead = cls(products, u)
        try:
            ahead._told = told()
            if ahead._told is not None:
                ahead._go_on(ahead._told)
                return ahead
        except BaseException:
            ahead.close()
            raise
        ahead.close()
        return None

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
        if i == self._columns or told != self._told:
            return None
        if i == 0:
            self._room.wait(1)
        column = self._column(2 * i)
        self._next = self._columns
        # A column that is not a number is not the same.
        apart = column - v
        if not dot(apart, apart) <= _SAME**2:
            return None
        if i > 0:
            if self._last == i:
                self._queue(i + 1, partial(self._multiply, i))
            self._room.wait(i + 1)
        self._next = i + 1
        v[:] = column
        return self._column(2 * i + 1)

    def close(self) -> None:
        """Wait for what nobody asked for, and give the memory back."""
        if self._open:
            self._open = False
            self._finish()
            self._cuda.keep_room(self._room)

    def _finish(self) -> None:
        if not self._over:
            self._room.wait(self._last)
            self._over = True

    def _column(self, which: int) -> Vector:
        at = 3 * self._n + which * (self._n + 1)
        return self._numbers[at : at + self._n + 1]

    def _there(self, which: int) -> int:
        """Address of the same on the device."""
        return self._places.device + 8 * (3 * self._n + which * (self._n + 1))

    def _start(self, u: Array) -> None:
        """Queue products with targets; numbers on both sides: sums, columns and products, rows."""
        n, products, cuda = self._n, self._products, self._cuda
        shown = 3 * n + 2 * self._columns * (n + 1)
        there = lines_there(u, products.place)
        rows = 0 if there is not None else u.size
        host, self._numbers = self._room.pinned(shown + rows + _FACTORS)
        device = self._room.scratch(shown + rows + n + products.ahead_room())
        given = device + 8 * shown
        self._places = _Places(host, device, given + 8 * rows, host + 8 * (shown + rows))
        room, lines = self._places.fused + 8 * n, given if there is None else there
        if rows:
            self._numbers[shown : shown + rows].reshape(2, -1)[:] = u.T

        def queue(stream: int) -> None:
            if rows:
                cuda.to_device(given, host + 8 * shown, rows, stream)
            products.start_first(lines, room, device, stream)
            cuda.to_host(host, device, 3 * n, stream)

        self._key = products.key, self._places
        self._queue(0, queue, (lines, rows))

    def _go_on(self, told: Bordered) -> None:
        """Queue the first columns of the space, and their products."""
        begin = told.first, told.second, 0.0, told.last
        self._numbers[-_FACTORS:] = *begin, told.scale, told.border, told.border, told.corner
        for i in range(self._columns if self._products.nbytes < _LARGE else 1):
            self._queue(i + 1, partial(self._multiply, i))

    def _multiply(self, i: int, stream: int) -> None:
        """Queue the product of a column, and the column that follows unless it is the last."""
        products, at = self._products, self._places
        column, image = self._there(2 * i), self._there(2 * i + 1)
        if i == 0:
            targets = c_void_p(at.device), c_int(products.second_at[1])
            self._column_of(stream, 0, targets, None, 0, None, column)
        products.start_next(column, at.fused + 8 * self._n, at.fused, stream)
        made, last = (c_void_p(at.fused), c_int(1)), i + 1 == self._columns
        count, following = (0, None) if last else (i + 1, self._there(2 * i + 2))
        self._column_of(stream, 1, made, column, count, image, following)

    def _queue(self, stage: int, queue: Callable[[int], None], more: tuple[int, ...] = ()) -> None:
        stream = self._products.stream
        self._cuda.again((stage, self._key, more), stream, queue)
        self._room.mark(stage, stream)
        self._last = stage

    def _column_of(
        self,
        stream: int,
        which: int,
        made: tuple[Any, Any],
        of: int | None,
        k: int,
        *to: int | None,
    ) -> None:
        """Queue the next column, by the first four factors or the others."""
        n, at = self._n, self._places
        second, apart = self._products.second_at
        entries = -(-(n + 1) // _THREADS)
        kernel = self._cuda.kernels(NEXT, ("next_column",), ENTRIES=entries, THREADS=_THREADS)
        kernel["next_column"](
            (1, 1),
            (_THREADS, 1),
            stream,
            c_void_p(at.factors + 8 * 4 * which),
            *made,
            c_void_p(at.device + 8 * second),
            c_int(apart),
            c_void_p(of),
            c_int(n),
            c_void_p(at.device + 8 * 3 * n),
            c_int(k),
            *map(c_void_p, to),
            c_longlong((at.host - at.device) // 8),
        )
