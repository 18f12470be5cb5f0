"""Weights, costs and the projection of Theorem A as wrappers that copy nothing."""

from __future__ import annotations

import numpy as np
from scipy.linalg import qr

from spgls._types import EPS, Array, Vector
from spgls.matrix.protocol import Matrix

__all__ = ["ProjectedMatrix", "ScaledMatrix", "range_basis"]


class ScaledMatrix:
    """``diag(row) A[:, columns] diag(column)`` without forming it.

    Parameters
    ----------
    matrix : Matrix
        The data.
    row : ndarray of shape (m,), optional
        Factor of each row; square roots of weights in a game.
    columns : ndarray of int, optional
        Columns to keep; all by default.
    column : ndarray, optional
        Factor of each kept column; square roots of costs in a game.
    """

    def __init__(
        self,
        matrix: Matrix,
        row: Vector | None = None,
        columns: np.ndarray | None = None,
        column: Vector | None = None,
    ) -> None:
        self.matrix = matrix
        self.row = row
        self.columns = columns
        self.column = column

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and kept columns."""
        m, n = self.matrix.shape
        return m, n if self.columns is None else len(self.columns)

    def apply(self, v: Array) -> Array:
        """``A v``."""
        return _scale(self.row, self.matrix.apply(self._spread(v)))

    def cross(self, u: Array) -> Array:
        """``A' u``."""
        return self._gather(self.matrix.cross(_scale(self.row, u)))

    def gram(self, v: Array) -> Array:
        """``A'(A v)``."""
        if self.row is None:
            return self._gather(self.matrix.gram(self._spread(v)))
        return self.cross(self.apply(v))

    def _spread(self, v: Array) -> Array:
        v = _scale(self.column, v)
        if self.columns is None:
            return v
        full = np.zeros((self.matrix.shape[1], *v.shape[1:]))
        full[self.columns] = v
        return full

    def _gather(self, g: Array) -> Array:
        return _scale(self.column, g if self.columns is None else g[self.columns])


class ProjectedMatrix:
    """``(I - Q Q') A`` for orthonormal ``Q``, accurate when ``Q`` explains nearly all of ``A``.

    The shortcut ``A'A v - B B'v`` with ``B = A'Q`` loses digits twice where column means dwarf
    standard deviations. Here the residual is projected row by row before it meets ``A'``.

    Parameters
    ----------
    matrix : ScaledMatrix
        The priced and weighted data ``A``.
    basis : ndarray of shape (m, f)
        Orthonormal columns ``Q``.
    """

    def __init__(self, matrix: ScaledMatrix, basis: Array) -> None:
        self.matrix = matrix
        self.basis = basis
        self.overlap = matrix.cross(basis)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.matrix.shape

    def apply(self, v: Array) -> Array:
        """``P A v``."""
        t = self.matrix.apply(v)
        t -= self.basis @ (self.overlap.T @ v)
        # What rounding left along Q is removed once more; it is tiny, so this is accurate.
        t -= self.basis @ (self.basis.T @ t)
        return t

    def cross(self, u: Array) -> Array:
        """``A' P u``."""
        return np.asarray(self.matrix.cross(u) - self.overlap @ (self.basis.T @ u))

    def gram(self, v: Array) -> Array:
        """``A' P A v``."""
        return self.cross(self.apply(v))


def range_basis(columns: Array) -> Array:
    """Orthonormal basis of the range of a few columns, duplicates and zeros dropped."""
    norms = np.sqrt(np.einsum("ij,ij->j", columns, columns))
    kept = columns[:, norms > 0.0] / norms[norms > 0.0]
    if kept.shape[1] == 0:
        return np.zeros((columns.shape[0], 0))
    q, r, _ = qr(kept, mode="economic", pivoting=True, overwrite_a=True)
    pivots = np.abs(np.diag(r))
    rank = int((pivots > 8 * max(columns.shape) * EPS).sum())
    return np.ascontiguousarray(q[:, :rank])


def _scale(factor: Vector | None, v: Array) -> Array:
    if factor is None:
        return v
    return factor * v if v.ndim == 1 else factor[:, None] * v
