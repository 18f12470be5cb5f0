"""Some of the columns of a matrix, without copying them until somebody asks for that."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from spgls.base.types import Array, Vector
from spgls.matrix.blocks import BlockedMatrix
from spgls.matrix.convert import as_matrix
from spgls.matrix.dense import DenseMatrix
from spgls.matrix.memory import InMemory
from spgls.matrix.pieces import block_length
from spgls.matrix.protocol import Matrix

__all__ = ["SomeColumns"]


class SomeColumns(BlockedMatrix):
    """Columns of a matrix, read a few rows at a time.

    Parameters
    ----------
    whole : Matrix
        The matrix.
    kept : ndarray of int
        Columns that are there.
    """

    def __init__(self, whole: Matrix, kept: np.ndarray) -> None:
        self.whole = whole
        self.kept = kept

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and kept columns."""
        return self.whole.shape[0], len(self.kept)

    def blocks(self) -> Iterator[tuple[slice, Any]]:
        """Dense rows, without the other columns."""
        for rows, panel in self.whole.row_panels(block_length(self.whole.shape[1])):
            yield rows, panel[:, self.kept]

    def apply(self, v: Array, shift: Vector | None = None) -> Array:
        """``A v``, as the whole would with nothing in the other columns."""
        wide, moved = np.zeros((self.whole.shape[1], *v.shape[1:])), None
        wide[self.kept] = v
        if shift is not None:
            moved = np.zeros(self.whole.shape[1])
            moved[self.kept] = shift
        return self.whole.apply(wide, moved)

    def held(self) -> Matrix:
        """A matrix of its own, for work that reads it often; data outside memory stays there."""
        if not len(self.kept):
            return DenseMatrix(np.empty(self.shape))
        if not isinstance(self.whole, InMemory):
            return self
        return as_matrix(self.whole.values[:, self.kept], check_finite=False)
