"""An orthonormal basis that grows a column at a time."""

from __future__ import annotations

import numpy as np

from spgls.base.types import Array, Vector
from spgls.base.vector import norm

__all__ = ["Basis"]


class Basis:
    """Columns of a basis, in memory that grows with them."""

    def __init__(self, size: int, room: int = 4) -> None:
        self._columns: Array = np.empty((size, min(room, size)), order="F")
        self.count = 0

    def append(self, q: Vector) -> None:
        """Add a column."""
        if self.count == self._columns.shape[1]:
            grown = np.empty((len(q), 2 * self.count), order="F")
            grown[:, : self.count] = self._columns
            self._columns = grown
        self._columns[:, self.count] = q
        self.count += 1

    def inner(self, w: Vector) -> Vector:
        """Inner products of all columns with a vector."""
        return np.asarray(self._columns[:, : self.count].T @ w)

    def clear(self, w: Vector) -> float:
        """Make a vector orthogonal to all columns, in place, and return its norm."""
        w -= self.combine(self.inner(w))
        return norm(w)

    def combine(self, h: Vector) -> Vector:
        """Combination of the first columns."""
        return np.asarray(self._columns[:, : len(h)] @ h)
