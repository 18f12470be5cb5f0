"""Arrays outside of memory: .npy files, memory maps, HDF5 datasets, Zarr arrays."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import IO, Any

import numpy as np

from spgls.base.validation import describe
from spgls.matrix import block_length
from spgls.streams.room import Room
from spgls.streams.source import Columns, Mark, mark_of, select

__all__ = ["ArraySource", "FileSource", "open_array", "open_hdf5", "open_npy", "open_zarr"]


class ArraySource:
    """Anything with a shape and a type that gives rows by slices."""

    seekable = True
    rate = 5e8
    names: list[str] | None = None

    def __init__(self, array: Any, block_bytes: int, files: list[str]) -> None:
        self._array, self._files, self._room = array, files, Room()
        self._shape = tuple(array.shape)
        chunk = int((getattr(array, "chunks", None) or (1,))[0])
        length = block_length(self.width, block_bytes=block_bytes)
        # A chunk is unpacked as a whole, so it should lie in one block.
        self._step = max(length // chunk, 1) * chunk

    @property
    def width(self) -> int:
        """Number of columns."""
        return int(self._shape[1])

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self._shape[0])

    @property
    def nbytes(self) -> float:
        """Bytes of all numbers."""
        return float(self.rows * self.width * np.dtype(self._array.dtype).itemsize)

    def read(self, columns: Columns, start: int) -> Iterator[Any]:
        """Blocks of some columns from a row on."""
        if tuple(self._array.shape) != self._shape:
            raise ValueError(
                f"the source of a stream must not change; it has shape {tuple(self._array.shape)} "
                f"now, and had {self._shape}. Make a new stream of it."
            )
        while start < self.rows:
            stop = min((start // self._step + 1) * self._step, self.rows)
            yield select(self._rows_of(start, stop), columns)
            start = stop

    def mark(self) -> Mark:
        """Of the file, where it is known."""
        return mark_of(self._files)

    def _rows_of(self, start: int, stop: int) -> np.ndarray:
        found = self._array[start:stop]
        if not isinstance(found, np.ndarray):
            return np.asarray(found)
        if found.base is None:
            return found
        # A copy of a memory map: its pages would be fetched by the thread that needs them.
        block = self._room.array((stop - start, self.width), found.dtype)
        np.copyto(block, found)
        return block


class FileSource:
    """Rows of one type, one after the other in a file.

    Parameters
    ----------
    file : str or file object
        A path, opened in every pass; or a file that is open for as long as this is used.
    offset : int
        Where the first row begins.
    shape, dtype
        Of all rows.
    block_bytes : int
        Bytes of a block, about.
    """

    seekable = True
    rate = 1e9
    names: list[str] | None = None

    def __init__(
        self,
        file: str | IO[bytes],
        offset: int,
        shape: tuple[int, int],
        dtype: Any,
        block_bytes: int,
    ) -> None:
        self._file, self._offset = file, offset
        self._rows, self._width = shape
        self._dtype = np.dtype(dtype)
        self._step = block_length(self._width, block_bytes=block_bytes)
        self._lock, self._room = Lock(), Room()

    @property
    def width(self) -> int:
        """Number of columns."""
        return self._width

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self._rows

    @property
    def nbytes(self) -> float:
        """Bytes of all numbers."""
        return float(self._rows * self._width * self._dtype.itemsize)

    def read(self, columns: Columns, start: int) -> Iterator[Any]:
        """Blocks of some columns from a row on."""
        with self._opened() as file:
            while start < self._rows:
                stop = min((start // self._step + 1) * self._step, self._rows)
                block = self._room.array((stop - start, self._width), self._dtype)
                # Two passes over an open file may take turns.
                with self._lock:
                    file.seek(self._offset + start * self._width * self._dtype.itemsize)
                    _fill(file, block)
                yield select(block, columns)
                start = stop

    def mark(self) -> Mark:
        """Of the file, if others can find it."""
        return mark_of([self._file]) if isinstance(self._file, str) else {}

    def _opened(self) -> AbstractContextManager[IO[bytes]]:
        if isinstance(self._file, str):
            return open(self._file, "rb", buffering=0)
        return nullcontext(self._file)


def _fill(file: IO[bytes], block: np.ndarray) -> None:
    """Read a block as a whole."""
    room = block.data.cast("B")
    while len(room):
        count = file.readinto(room)  # type: ignore[attr-defined]
        if not count:
            raise ValueError(
                f"the source of a stream must not change; {file.name} has been cut since the "
                "stream was made. Make a new stream of it."
            )
        room = room[count:]


def open_array(array: Any, block_bytes: int) -> ArraySource | FileSource:
    """A source of an array, a memory map, an HDF5 dataset or a Zarr array."""
    _check(array, describe(array))
    if isinstance(array, np.memmap) and getattr(array, "filename", None):
        path = str(array.filename)
        # A part of a map does not say where it begins.
        base: Any = array.base
        whole = isinstance(base, mmap.mmap) and array.mode != "c"
        if whole and array.flags.c_contiguous:
            shape = array.shape[0], array.shape[1]
            return FileSource(path, array.offset, shape, array.dtype, block_bytes)
        return ArraySource(array, block_bytes, [path])
    name = getattr(getattr(array, "file", None), "filename", None)
    return ArraySource(array, block_bytes, [name] if isinstance(name, str) else [])


def open_npy(path: Path, block_bytes: int) -> ArraySource | FileSource:
    """A source of a .npy file."""
    try:
        array = np.load(path, mmap_mode="r")
    except ValueError as error:
        raise ValueError(
            f"source must be a .npy file of a table of numbers; {path} is not: {error}"
        ) from None
    _check(array, str(path))
    return open_array(array, block_bytes)


def open_hdf5(path: Path, block_bytes: int) -> ArraySource:
    """A source of the only table in an HDF5 file."""
    h5py = _module("h5py", path)
    tables: list[str] = []
    file = h5py.File(path, "r")

    def look(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and len(item.shape) == 2:
            tables.append(name)

    file.visititems(look)
    if len(tables) != 1:
        found = ", ".join(map(repr, tables)) or "none"
        file.close()
        raise ValueError(
            f"source must be an HDF5 file with one table; {path} has {found}. Pass one of its "
            "tables, such as h5py.File(path)['name']."
        )
    array = file[tables[0]]
    _check(array, f"{path}, {tables[0]!r}")
    return ArraySource(array, block_bytes, [str(path)])


def open_zarr(path: Path, block_bytes: int) -> ArraySource:
    """A source of a Zarr array in a folder."""
    array = _module("zarr", path).open(str(path), mode="r")
    if not hasattr(array, "shape"):
        raise ValueError(
            f"source must be a Zarr array; {path} is a group. Pass one of its arrays, such as "
            "zarr.open(path)['name']."
        )
    _check(array, str(path))
    return ArraySource(array, block_bytes, [])


def _module(name: str, path: Path) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise ImportError(f"{path} needs {name} to be read: pip install 'spgls[stream]'.") from None


def _check(array: Any, what: str) -> None:
    """Refuse what is not a table of numbers."""
    shape, kind = tuple(array.shape), np.dtype(array.dtype).kind
    if len(shape) != 2 or 0 in shape:
        raise ValueError(
            f"source must be a table, with at least one row and one column; got {what} of shape "
            f"{shape}."
        )
    if kind not in "biuf":
        raise TypeError(f"source must hold real numbers; got {what} of type {array.dtype}.")
