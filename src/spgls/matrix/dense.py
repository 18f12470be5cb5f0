"""Dense data in memory, in C or F order, float64 or narrower, never copied whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spgls._types import Array, Vector
from spgls.matrix.protocol import block_length

__all__ = ["DenseMatrix"]


class DenseMatrix:
    """A NumPy array seen through the matrix protocol.

    Parameters
    ----------
    values : ndarray of shape (m, n)
        Floating point data of any width, any memory order; kept by reference.
    """

    def __init__(self, values: NDArray[np.floating[Any]]) -> None:
        self.values = values
        self._double = values.dtype == np.float64

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        m, n = self.values.shape
        return m, n

    def apply(self, v: Array) -> Array:
        """``A v``."""
        if self._double:
            return np.asarray(self.values @ v)
        out = np.empty((self.shape[0], *v.shape[1:]))
        for rows, panel in self.row_panels(block_length(self.shape[1])):
            np.matmul(panel, v, out=out[rows])
        return out

    def cross(self, u: Array) -> Array:
        """``A' u``."""
        if self._double:
            return np.asarray(self.values.T @ u)
        out = np.zeros((self.shape[1], *u.shape[1:]))
        for rows, panel in self.row_panels(block_length(self.shape[1])):
            out += panel.T @ u[rows]
        return out

    def gram(self, v: Array) -> Array:
        """``A'(A v)``, one read of each row block."""
        out = np.zeros((self.shape[1], *v.shape[1:]))
        for _, panel in self.row_panels(block_length(self.shape[1])):
            out += panel.T @ (panel @ v)
        return out

    def moment(self, extra: Array, weight: Vector | None, shift: Vector | None) -> Array:
        """``B' S B`` for ``B = [A - 1 shift', extra]``."""
        n = self.shape[1]
        width = n + extra.shape[1]
        rows = min(self.shape[0], block_length(width, at_least=256))
        buffer = np.empty((rows, width))
        total = np.zeros((width, width))
        for at in range(0, self.shape[0], rows):
            piece = self.values[at : at + rows]
            block = buffer[: piece.shape[0]]
            if shift is None:
                block[:, :n] = piece
            else:
                np.subtract(piece, shift, out=block[:, :n])
            block[:, n:] = extra[at : at + rows]
            if weight is not None:
                block *= np.sqrt(weight[at : at + rows])[:, None]
            # NumPy turns B'B into a symmetric rank-k update: half the work of a product.
            total += block.T @ block
        return total

    def typical_row(self) -> Vector | None:
        """Mean of the first rows."""
        return self.values[: min(256, self.shape[0])].mean(axis=0, dtype=np.float64)

    def row_panels(self, rows: int) -> Iterator[tuple[slice, Array]]:
        """Dense float64 row blocks."""
        for at in range(0, self.shape[0], rows):
            piece = slice(at, min(at + rows, self.shape[0]))
            yield piece, self.values[piece].astype(np.float64, copy=False)

    def column_panels(self, columns: int) -> Iterator[tuple[slice, Array]]:
        """Dense float64 column blocks."""
        for at in range(0, self.shape[1], columns):
            piece = slice(at, min(at + columns, self.shape[1]))
            yield piece, self.values[:, piece].astype(np.float64, copy=False)
