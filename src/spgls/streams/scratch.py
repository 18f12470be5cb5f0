"""Numbers that were slow to come, kept in a file that nobody else sees."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import IO, Any
from weakref import finalize

import numpy as np

from spgls.base.validation import describe
from spgls.streams.arrays import FileSource

__all__ = ["Scratch"]


class Scratch:
    """Rows written as they pass by, and read from there afterwards.

    The file has no name where the system allows that, so it is gone with this object, or with the
    process at the latest.

    Parameters
    ----------
    folder : str
        Where it is made.
    """

    def __init__(self, folder: str) -> None:
        # Open for as long as its rows are read.
        self._file: IO[bytes] = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115
        finalize(self, self._file.close)
        self._rows = 0
        self._like: np.ndarray = np.empty((0, 0))

    def keep(self, blocks: Iterator[Any], columns: int) -> Iterator[Any]:
        """The same blocks, the first columns of each written before it is handed on."""
        for block in blocks:
            if not isinstance(block, np.ndarray):
                raise TypeError(
                    f"scratch keeps dense rows only; got {describe(block)}. Leave scratch out."
                )
            if not self._rows:
                self._like = block[:0, :columns]
            rows = np.ascontiguousarray(block[:, :columns], dtype=self._like.dtype)
            room = rows.data.cast("B")
            while len(room):
                room = room[self._file.write(room) :]
            self._rows += len(block)
            yield block

    def source(self, block_bytes: int) -> FileSource:
        """What was kept, to be read."""
        like = self._like
        return FileSource(self._file, 0, (self._rows, like.shape[1]), like.dtype, block_bytes)
