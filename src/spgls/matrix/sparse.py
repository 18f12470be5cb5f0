"""SciPy sparse data, in CSR or CSC form, never densified and never copied whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from spgls._types import Array, Vector
from spgls.matrix.protocol import BLOCK_BYTES, block_length

__all__ = ["SparseMatrix"]

Compressed = Any  # CSR or CSC, matrix or array class


class SparseMatrix:
    """A compressed sparse matrix seen through the matrix protocol.

    Parameters
    ----------
    values : CSR or CSC matrix or array
        Floating point data; kept by reference.
    """

    def __init__(self, values: Compressed) -> None:
        self.values = values
        self._by_rows = values.format == "csr"
        self._double = values.dtype == np.float64

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        m, n = self.values.shape
        return int(m), int(n)

    def apply(self, v: Array) -> Array:
        """``A v``."""
        if self._double:
            return np.asarray(self.values @ v)
        out = np.zeros((self.shape[0], *v.shape[1:]))
        for piece, block in self._pieces():
            if self._by_rows:
                out[piece] = block @ v
            else:
                out += block @ v[piece]
        return out

    def cross(self, u: Array) -> Array:
        """``A' u``."""
        if self._double:
            return np.asarray(self.values.T @ u)
        out = np.zeros((self.shape[1], *u.shape[1:]))
        for piece, block in self._pieces():
            if self._by_rows:
                out += block.T @ u[piece]
            else:
                out[piece] = block.T @ u
        return out

    def gram(self, v: Array) -> Array:
        """``A'(A v)``; rows stored together are read once, columns have to be read twice."""
        if not self._by_rows:
            return self.cross(self.apply(v))
        out = np.zeros((self.shape[1], *v.shape[1:]))
        for _, block in self._pieces():
            out += block.T @ (block @ v)
        return out

    def moment(self, extra: Array, weight: Vector | None, shift: Vector | None) -> Array:
        """``B' S B`` for ``B = [A - 1 shift', extra]``, expanding the shift afterwards."""
        m, n = self.shape
        width = n + extra.shape[1]
        total = np.zeros((width, width))
        for piece, block in self._pieces():
            if self._by_rows:
                scaled = block
                if weight is not None:
                    scaled = block.copy()
                    scaled.data *= np.repeat(weight[piece], np.diff(block.indptr))
                total[:n, :n] += (scaled.T @ block).toarray()
            else:
                scaled = block
                if weight is not None:
                    scaled = block.copy()
                    scaled.data *= weight[block.indices]
                for other, right in self._pieces():
                    total[piece, other] = (scaled.T @ right).toarray()
        weighted = extra if weight is None else extra * weight[:, None]
        total[n:, n:] = extra.T @ weighted
        mixed = self.cross(np.column_stack([weighted, np.ones(m) if weight is None else weight]))
        sums = mixed[:, -1]
        cross = mixed[:, :-1]
        if shift is not None:
            count = float(m if weight is None else weight.sum())
            outer = np.outer(shift, sums)
            total[:n, :n] += count * np.outer(shift, shift) - outer - outer.T
            cross = cross - np.outer(shift, weighted.sum(axis=0))
        total[:n, n:] = cross
        total[n:, :n] = cross.T
        return total

    def typical_row(self, weight: Vector | None) -> Vector | None:
        """None: most entries are zero, and so is the best row to subtract."""
        return None

    def row_panels(self, rows: int) -> Iterator[tuple[slice, Array]]:
        """Dense float64 row blocks."""
        for at in range(0, self.shape[0], rows):
            piece = slice(at, min(at + rows, self.shape[0]))
            yield piece, self.values[piece].toarray().astype(np.float64, copy=False)

    def column_panels(self, columns: int) -> Iterator[tuple[slice, Array]]:
        """Dense float64 column blocks."""
        for at in range(0, self.shape[1], columns):
            piece = slice(at, min(at + columns, self.shape[1]))
            yield piece, self.values[:, piece].toarray().astype(np.float64, copy=False)

    def _pieces(self) -> Iterator[tuple[slice, Compressed]]:
        """Runs of stored rows (CSR) or columns (CSC) as float64 blocks over the same memory."""
        a = self.values
        major = a.shape[0] if self._by_rows else a.shape[1]
        minor = a.shape[1] if self._by_rows else a.shape[0]
        limit = block_length(1, block_bytes=BLOCK_BYTES)
        kind = sp.csr_array if self._by_rows else sp.csc_array
        at = 0
        while at < major:
            end = int(np.searchsorted(a.indptr, a.indptr[at] + limit, side="right")) - 1
            end = min(max(end, at + 1), major)
            first, last = int(a.indptr[at]), int(a.indptr[end])
            shape = (end - at, minor) if self._by_rows else (minor, end - at)
            block = kind(
                (
                    a.data[first:last].astype(np.float64, copy=False),
                    a.indices[first:last],
                    a.indptr[at : end + 1] - first,
                ),
                shape=shape,
            )
            yield slice(at, end), block
            at = end
