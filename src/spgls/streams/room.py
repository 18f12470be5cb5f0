"""Memory for blocks, used again as soon as nobody looks at a block any more.

Blocks are made in threads, and what threads give back to the system stays with the process for a
while: several times the blocks that are in use. Here there are as many as are in use at a time.
"""

from __future__ import annotations

import mmap
from typing import Any
from weakref import finalize

import numpy as np

__all__ = ["Room"]


class Room:
    """Arrays whose memory comes back when they, and all views of them, are gone."""

    def __init__(self) -> None:
        self._free: list[mmap.mmap] = []

    def array(self, shape: tuple[int, int], dtype: np.dtype[Any]) -> np.ndarray:
        """An array of any content."""
        size = shape[0] * shape[1] * dtype.itemsize
        memory = self._free.pop() if self._free else mmap.mmap(-1, size)
        if len(memory) < size:
            memory = mmap.mmap(-1, size)
        # Views of views refer to this one: NumPy sees to that.
        whole = np.frombuffer(memory, dtype, shape[0] * shape[1])
        finalize(whole, self._free.append, memory).atexit = False
        return whole.reshape(shape)
