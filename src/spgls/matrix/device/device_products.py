"""Products of dense rows on an NVIDIA device, each row read once; vectors alone travel.

One copy to the device, one or two kernels, one wait: that is a pass. The fused Gram product is
there for rows that fit on chip, where it was measured to win by 1.3 or more over two products
(``benchmarks/gpu.py``).
"""

from __future__ import annotations

from ctypes import c_int, c_longlong, c_void_p
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from spgls.base.devices import Place
from spgls.base.far_array import far_of
from spgls.base.types import Array, Vector
from spgls.matrix.device.cuda import Cuda, Kernel, cuda_of
from spgls.matrix.device.cuda_source import COMMON, CROSS, GRAM
from spgls.matrix.device.held import Held
from spgls.matrix.protocol import RowMap
from spgls.matrix.row_step import RowStep

__all__ = ["DenseProducts", "First", "address_of", "compiled_device", "lines_there"]

#: What a multiprocessor of the first generation that copies rows by itself is called.
_CAPABLE = (9, 0)
#: Threads of a block; entries of the vectors that each can hold; rows that are too short to share.
_THREADS, _ENTRIES, _SHORT = 512, 24, 2048
#: Bytes of shared memory that are left for sums, and groups of rows that wait there at most.
_RESERVED, _STAGES = 4096, 8
#: Bytes of a long row, and groups that have to fit for three of them to be under way at once.
_LONG, _UNDER_WAY = 2**14, 4
#: Columns that one read multiplies at most.
_WIDEST = 2
#: Blocks of products down the columns for each multiprocessor, and along the rows.
_CROSS_BLOCKS, _APPLY_BLOCKS = 2, 8
#: Packs of columns of a thread there, and rows that it reads at once, in double and in single
#: precision: as measured.
_CROSS_DOUBLE, _CROSS_SINGLE = (4, 2), (2, 8)


def address_of(array: Any) -> int:
    """Where an array begins in the device's memory."""
    if hasattr(array, "data_ptr"):
        # PyTorch writes a page about an array that is asked for more.
        return int(array.data_ptr())
    return int(array.__cuda_array_interface__["data"][0])


#: Where an array begins, and bytes from row to row and from column to column if not by rows.
_Layout: TypeAlias = tuple[int, tuple[int, ...] | None]


def _layout(array: Any) -> _Layout:
    """Where an array begins, and bytes from row to row and from column to column if not by rows."""
    if hasattr(array, "data_ptr"):
        size = array.element_size()
        return address_of(array), tuple(size * step for step in array.stride())
    interface = array.__cuda_array_interface__
    return int(interface["data"][0]), interface.get("strides")


def compiled_device(place: Place) -> Cuda | None:
    """The device of a place, where compiled products run there."""
    known = place.library in ("torch", "cupy", "jax")
    if not known or "cuda" not in str(place.device).lower():
        return None
    number = getattr(place.device, "index", getattr(place.device, "id", 0)) or 0
    return cuda_of(int(number))


_ROWS, _FUSED = COMMON + CROSS, COMMON + GRAM


class First(NamedTuple):
    """``A'`` of two targets, and what squares of entries came with it."""

    product: Array
    squares: Vector | None
    total: float


class _Shape(NamedTuple):
    """How rows are shared: blocks in a cluster, rows at a time, packs for a thread, and so on."""

    width: int
    cluster: int
    rows: int
    packs: int
    segment: int
    stages: int

    @staticmethod
    @cache
    def of(n: int, itemsize: int, width: int, room: int) -> _Shape | None:
        """The best one for rows of this length; None where none is any good."""
        pack = 16 // itemsize
        if n < _SHORT:
            return None
        for cluster in (1, 2):
            segment = -(-n // (32 * cluster)) * 32
            packs = -(-segment // (pack * _THREADS))
            held = (room - _RESERVED) // (segment * itemsize)
            # Pairs of long rows where blocks have to wait for each other, and there is room.
            long = cluster if held >= _UNDER_WAY * cluster else 1
            rows = long if segment * itemsize > _LONG else 4
            stages = min(held // rows, _STAGES)
            if packs * pack * width <= _ENTRIES and stages >= 2:
                return _Shape(width, cluster, rows, packs, segment, stages)
        return None


class DenseProducts:
    """Compiled products of one array.

    Parameters
    ----------
    values : array of shape (m, n)
        The data, by rows.
    cuda : Cuda
        Its device.
    place : Place
        The same, as the array library knows it.
    held : Held
        Copies of vectors that come with every product.
    layout : tuple
        Where the array begins, and bytes from row to row and from column to column.
    """

    def __init__(self, values: Any, cuda: Cuda, place: Place, held: Held, layout: _Layout) -> None:
        self._values, self._cuda, self._place, self._held = values, cuda, place, held
        self._m, self._n = map(int, values.shape)
        self._double = "64" in str(values.dtype)
        self._itemsize = 8 if self._double else 4
        self._address, strides = layout
        self._row = self._n if strides is None else int(strides[0]) // self._itemsize
        pack = 16 // self._itemsize
        aligned = self._address % 16 == 0 and self._row % pack == 0 and self._n % pack == 0
        self._pack = pack if aligned else 1
        # Products of one solve are in one queue.
        self.stream = place.stream()
        self._ready: dict[Any, Any] = {}

    @classmethod
    def of(cls, values: Any, place: Place, held: Held) -> DenseProducts | None:
        """Products of an array; None unless rows lie together on a device that can."""
        cuda = compiled_device(place)
        if cuda is None or cuda.capability < _CAPABLE:
            return None
        layout = _layout(values)
        _, strides = layout
        itemsize = 8 if "64" in str(values.dtype) else 4
        if strides is not None and (strides[1] != itemsize or strides[0] < 0):
            return None
        return cls(values, cuda, place, held, layout)

    @property
    def place(self) -> Place:
        """The device, as the array library knows it."""
        return self._place

    @property
    def cuda(self) -> Cuda:
        """The device."""
        return self._cuda

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self._m, self._n

    def can_apply(self, v: Array) -> bool:
        """Whether so few columns are better off here."""
        return v.ndim == 1 or 0 < v.shape[1] <= _WIDEST

    def can_cross(self, u: Array) -> bool:
        """The same for the transpose."""
        return u.ndim == 1 or u.shape[1] <= _WIDEST

    def can_gram(self, v: Array, middle: RowMap | None) -> bool:
        """The same for both at once."""
        width = 1 if v.ndim == 1 else v.shape[1]
        if width not in (1, 2) or self._shape(width) is None:
            return False
        if middle is None:
            return True
        few = isinstance(middle, RowStep) and (
            middle.basis is None or middle.basis.shape[1] <= _THREADS
        )
        return few

    def apply(self, v: Array, to: Any = None) -> Array | None:
        """``A v``, brought to the host or left in an array of the device's."""
        m, n, width = self._m, self._n, 1 if v.ndim == 1 else v.shape[1]
        kernel = self._kernels(width)["apply"]
        with self._cuda.busy:
            self._cuda.enter()
            stream = self.stream
            back = width * m if to is None else 0
            host, numbers = self._cuda.pinned(max(width * n, back))
            device = self._cuda.scratch(width * n + back)
            result = device + 8 * width * n if to is None else address_of(to)
            numbers[: width * n] = v.T.reshape(-1)
            self._cuda.to_device(device, host, width * n, stream)
            grid = min(-(-m // 8), _APPLY_BLOCKS * self._cuda.multiprocessors)
            kernel((grid, 1), (256, 1), stream, *self._data(), c_void_p(device), c_void_p(result))
            if to is None:
                self._cuda.to_host(host, result, back, stream)
            self._cuda.wait(stream)
            return numbers[:back].reshape(m, *v.shape[1:]).copy() if to is None else None

    def cross(
        self, u: Array, *, squares: bool = False, weight: Vector | None = None
    ) -> tuple[Array, Vector | None]:
        """``A' u``, and squared lengths of the columns, where they are asked for."""
        out = self._cross(u, self._m, squares, weight)
        width = len(out) - squares
        return out[0] if u.ndim == 1 else out[:width].T, out[width] if squares else None

    def _cross(self, u: Array, m: int, squares: bool, weight: Vector | None) -> Array:
        """The same for the first rows, a line for each column of ``u``."""
        n, width = self._n, 1 if u.ndim == 1 else u.shape[1]
        lines = width + squares
        if not lines:
            return np.zeros((0, n))
        weights = None if weight is None else address_of(self._held.copy(weight))
        with self._cuda.busy:
            self._cuda.enter()
            stream = self.stream
            there = lines_there(u, self._place)
            told = 0 if there is not None else width * m
            host, numbers = self._cuda.pinned(max(told, lines * n))
            device = self._cuda.scratch(told + self.cross_room(width, squares=squares, m=m))
            sums = device + 8 * told
            if told:
                numbers[:told] = u.T.reshape(-1)
                self._cuda.to_device(device, host, told, stream)
            source = device if there is None else there
            self.start_cross(source, width, squares, weights, sums, host, m)
            self._cuda.wait(stream)
            return numbers[: lines * n].reshape(lines, n).copy()

    @property
    def _cross_shape(self) -> tuple[int, int]:
        return _CROSS_DOUBLE if self._double else _CROSS_SINGLE

    def _tiling(self, m: int) -> tuple[int, int, int, int]:
        """Products down the columns: threads across and down, tiles of columns, parts of rows."""
        packs = self._n // self._pack
        across = min(256, 1 << max((packs - 1).bit_length(), 0))
        down, tiles = 256 // across, -(-packs // (self._cross_shape[0] * across))
        parts = max(1, min(_CROSS_BLOCKS * self._cuda.multiprocessors // tiles, -(-m // down)))
        return across, down, tiles, parts

    def cross_room(self, width: int, *, squares: bool, m: int | None = None) -> int:
        """Numbers that products down the columns leave to be added up."""
        _, down, _, parts = self._tiling(self._m if m is None else m)
        return parts * down * (width + squares) * self._n

    def start_cross(
        self,
        u: int,
        width: int,
        squares: bool,
        weights: int | None,
        sums: int,
        to: int,
        m: int | None = None,
        *,
        stream: int | None = None,
    ) -> None:
        """Queue ``A' u`` and squared lengths of the columns; all by their addresses."""
        kernels, rows = self._kernels(width, squares), self._m if m is None else m
        across, down, tiles, parts = self._tiling(rows)
        stream = self.stream if stream is None else stream
        kernels["cross"](
            (tiles, parts),
            (across, down),
            stream,
            *self._data(rows),
            c_void_p(u),
            c_void_p(weights),
            c_void_p(sums),
        )
        length = (width + squares) * self._n
        self._add_up(kernels["add_up"], sums, parts * down, length, to, stream)

    def gram(self, v: Array, middle: RowMap | None) -> Array:
        """``A' M A v``, each row read once."""
        n, width = self._n, 1 if v.ndim == 1 else v.shape[1]
        step = middle if isinstance(middle, RowStep) else None
        factor = basis = None
        along, f = np.zeros(0), 0
        if step is not None and step.row is not None:
            factor = address_of(self._held.copy(step.row))
        if step is not None and step.basis is not None:
            basis, along, f = address_of(self._held.copy(step.basis)), step.along, len(step.along)
        length, known = width * (n + f), width * n
        with self._cuda.busy:
            self._cuda.enter()
            stream = self.stream
            host, numbers = self._cuda.pinned(length)
            device = self._cuda.scratch(length + self.gram_room(width, f))
            numbers[:known] = v.T.reshape(-1)
            numbers[known:length] = along.reshape(-1)
            self._cuda.to_device(device, host, length, stream)
            middle_at = factor, basis, f, device + 8 * known
            self.start_gram(device, device + 8 * length, host, width, middle_at)
            self._cuda.wait(stream)
            out = numbers[:length].copy()
        if step is not None and f:
            step.left[...] += out[known:].reshape(step.left.shape)
        return _shape_like(out[:known], v)

    def gram_room(self, width: int = 1, f: int = 0) -> int:
        """Numbers that the fused product leaves to be added up."""
        shape = self._shape(width)
        assert shape is not None
        return self._cuda.multiprocessors // shape.cluster * width * (self._n + f)

    def start_gram(
        self,
        v: int,
        sums: int,
        to: int,
        width: int = 1,
        middle: tuple[int | None, int | None, int, int | None] = (None, None, 0, None),
        *,
        stream: int | None = None,
    ) -> None:
        """Queue ``A' M A v``; all by their addresses, as is what ``M`` is made of."""
        shape = self._shape(width)
        assert shape is not None
        kernels, shared = self._fused(width, shape)
        clusters = self._cuda.multiprocessors // shape.cluster
        factor, basis, f, along = middle
        stream = self.stream if stream is None else stream
        kernels["gram"](
            (shape.cluster * clusters, 1),
            (_THREADS, 1),
            stream,
            *self._data(),
            c_void_p(v),
            c_void_p(factor),
            c_void_p(basis),
            c_int(f),
            c_void_p(along),
            c_void_p(sums),
            shared=shared,
        )
        length = width * (self._n + f)
        self._add_up(kernels["add_up"], sums, clusters, length, to, stream)

    @property
    def fused(self) -> bool:
        """Whether rows fit on chip."""
        return self._shape(1) is not None

    @property
    def second_at(self) -> tuple[int, int]:
        """One line behind the other."""
        return self._n, 1

    @property
    def columns(self) -> int:
        """Two: dense games hardly take more products, and nearly all take these."""
        return 2

    @property
    def nbytes(self) -> int:
        """Bytes that a product reads."""
        return self._m * self._n * self._itemsize

    def ahead_room(self) -> int:
        """Numbers that the first products leave to be added up."""
        return max(self.cross_room(2, squares=True), self.gram_room())

    @property
    def key(self) -> tuple[Any, ...]:
        """All that queued products depend on, but for the places of vectors."""
        return self._address, self._m, self._n, self._row, self._itemsize, self._pack

    def start_first(self, u: int, room: int, to: int, stream: int) -> None:
        """Queue ``A' u`` of two lines, and squared lengths of the columns."""
        self.start_cross(u, 2, True, None, room, to, stream=stream)

    def start_next(self, v: int, room: int, to: int, stream: int) -> None:
        """Queue ``A'A v``."""
        self.start_gram(v, room, to, stream=stream)

    def read_first(self, numbers: Array) -> First:
        """What that has left, copied."""
        lines = numbers.reshape(3, self._n).copy()
        return First(lines[:2].T, lines[2], float(lines[2].sum()))

    def _data(self, m: int | None = None) -> tuple[Any, ...]:
        rows = c_longlong(self._m if m is None else m)
        return c_void_p(self._address), rows, c_int(self._n), c_longlong(self._row)

    def _add_up(
        self, kernel: Kernel, sums: int, parts: int, length: int, to: int, stream: int
    ) -> None:
        grid = (-(-length // 32), 1)
        told = c_void_p(sums), c_int(parts), c_longlong(length), c_void_p(to)
        kernel(grid, (256, 1), stream, *told)

    def _shape(self, width: int) -> _Shape | None:
        if self._pack == 1:
            return None
        return _Shape.of(self._n, self._itemsize, width, self._cuda.shared_memory)

    @property
    def _macros(self) -> dict[str, Any]:
        return {"T": "double" if self._double else "float", "V": self._pack}

    def _kernels(self, width: int, squares: bool = False) -> dict[str, Kernel]:
        key = width, squares
        if key not in self._ready:
            self._ready[key] = self._cuda.kernels(
                _ROWS,
                ("apply", "cross", "add_up"),
                W=width,
                SQUARES=int(squares),
                P=self._cross_shape[0],
                UNROLL=self._cross_shape[1],
                **self._macros,
            )
        found: dict[str, Kernel] = self._ready[key]
        return found

    def _fused(self, width: int, shape: _Shape) -> tuple[dict[str, Kernel], int]:
        if shape not in self._ready:
            kernels = self._cuda.kernels(
                _FUSED,
                ("gram", "add_up"),
                W=width,
                C=shape.cluster,
                R=shape.rows,
                K=shape.packs,
                SEGMENT=shape.segment,
                STAGES=shape.stages,
                THREADS=_THREADS,
                **self._macros,
            )
            shared = shape.stages * shape.rows * shape.segment * self._itemsize
            kernels["gram"].allow_shared(shared)
            self._ready[shape] = kernels, shared
        found: tuple[dict[str, Kernel], int] = self._ready[shape]
        return found


def lines_there(u: Array, place: Place) -> int | None:
    """Address of columns that stay on a device, one behind the other; None if they do not."""
    far = far_of(u)
    # JAX has queues of its own, which ours know nothing of.
    if far is None or place.library == "jax":
        return None
    lines = far.there(place).T
    whole = lines.__cuda_array_interface__.get("strides") is None
    return address_of(lines) if whole else None


def _shape_like(flat: Vector, v: Array) -> Array:
    """Columns that lie one behind the other, in the shape of a vector or a block."""
    if v.ndim == 1:
        return flat
    return flat.reshape(v.shape[1], -1).T
