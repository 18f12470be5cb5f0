"""Weights, costs and the projection of Theorem A as wrappers that copy nothing."""

from __future__ import annotations

from math import sqrt

import numpy as np
from scipy.linalg import qr

from spgls.base.cached import cached_property
from spgls.base.types import EPS, Array, Vector
from spgls.matrix.bordered import Begun, Telling, begun_of, in_two_reads
from spgls.matrix.pieces import block_length, in_pieces, sum_length
from spgls.matrix.protocol import Matrix
from spgls.matrix.row_step import RowStep
from spgls.matrix.squares import (
    column_squares,
    cross_and_squares,
    cross_and_total,
    head_spread,
)

__all__ = ["ROUNDING", "ProjectedMatrix", "ScaledMatrix", "flush_columns", "range_basis"]

#: A projected column shorter than this share of the original is rounding.
ROUNDING = 1e-14


class ScaledMatrix:
    """``diag(row) (A - 1 shift')[:, columns] diag(column)`` without forming it.

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
    shift : ndarray of shape (n,), optional
        Subtracted from every row of the data.
    """

    def __init__(
        self,
        matrix: Matrix,
        row: Vector | None = None,
        columns: np.ndarray | None = None,
        column: Vector | None = None,
        shift: Vector | None = None,
    ) -> None:
        self.matrix = matrix
        self.row = row
        self.columns = columns
        self.column = column
        self.shift = shift
        self._begun: Begun | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and kept columns."""
        m, n = self.matrix.shape
        return m, n if self.columns is None else len(self.columns)

    @property
    def fused(self) -> bool:
        """As the data itself."""
        return self.matrix.fused

    def apply(self, v: Array) -> Array:
        """``A v``."""
        return _scale(self.row, self.matrix.apply(self._spread(v), self.shift))

    def cross(self, u: Array) -> Array:
        """``A' u``."""
        return self._gather(self.matrix.cross(_scale(self.row, u), self.shift))

    @cached_property
    def squares(self) -> Vector:
        """Squared lengths of all columns of ``diag(row) (A - 1 shift')``, kept or not."""
        return column_squares(self.matrix, self._weight, self.shift)

    @cached_property
    def size(self) -> float:
        """``|A|_F``."""
        own = self.squares if self.columns is None else self.squares[self.columns]
        return float(np.linalg.norm(_scale(self.column, np.sqrt(own))))

    def measured_cross(self, u: Array) -> Array:
        """``A' u``; with :attr:`squares`, or :attr:`size` at least, where that costs little.

        Where :meth:`begin_krylov` began with these targets, that is under way.
        """
        if self._begun is not None:
            product, squares = self._begun.cross()
            if squares is not None:
                self.squares = squares
            # Only data as it is can begin.
            self.size = sqrt(self._begun.total())
            self._begun = None
            return product
        if "squares" in self.__dict__:
            return self.cross(u)
        total = None
        if self._plain:
            product, squares, total = cross_and_total(self.matrix, u)
        else:
            own = _scale(self.row, u), self._weight, self.shift
            product, squares = cross_and_squares(self.matrix, *own)
        if squares is not None:
            self.squares = squares
        elif total is not None:
            self.size = float(np.sqrt(total))
        return self._gather(product)

    def begin_krylov(self, targets: Array, told: Telling) -> Begun | None:
        """Begin the first steps of a Krylov method, where data as it is can do that; else None."""
        self._begun = begun_of(self.matrix, targets, told) if self._plain else None
        return self._begun

    @property
    def _plain(self) -> bool:
        """Whether this is the data as it is."""
        return all(part is None for part in (self.row, self.columns, self.column, self.shift))

    def without_large_means(self) -> ScaledMatrix:
        """The same less a row where that saves digits, for those who project a constant away."""
        shift = _large_means(self)
        return ScaledMatrix(self.matrix, self.row, self.columns, self.column, shift)

    @property
    def _weight(self) -> Vector | None:
        return None if self.row is None else self.row**2

    def gram(self, v: Array, middle: RowStep | None = None) -> Array:
        """``A' M A v``, reading the data once; ``middle`` is ``M``, the identity by default."""
        if self.row is not None:
            middle = (middle or RowStep()).weighted(self.row)
        return self._gather(self.matrix.gram(self._spread(v), self.shift, middle))

    @property
    def narrow(self) -> bool:
        """Whether :meth:`gram_beside` costs no more than :meth:`gram`; a second column would."""
        return bool(getattr(self.matrix, "narrow", False))

    def gram_beside(self, v: Vector, target: Vector, times: float) -> tuple[Vector, float]:
        """``A'r`` and ``target'r`` for ``r = A v + times target``, row by row if that pays.

        It does in one read, or in parts that stay in cache for the second.
        """
        if not (self.fused or getattr(self.matrix, "parted", False)):
            return in_two_reads(self, v, target, times)
        step = RowStep.projection(target[:, None], np.array([-times]))
        return self.gram(v, step), float(step.left[0])

    def square(self) -> Array:
        """``A'A`` itself, in one read."""
        m, _ = self.matrix.shape
        square = self.matrix.moment(np.zeros((m, 0)), self._weight, self.shift)
        if self.columns is not None:
            square = square[np.ix_(self.columns, self.columns)]
        if self.column is not None:
            square *= self.column
            square *= self.column[:, None]
        return square

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
    standard deviations. Here ``A v`` is projected row by row before it meets ``A'``; and where
    ``Q`` contains the intercept, large means are subtracted from the data to begin with, which
    changes nothing but the rounding.

    Parameters
    ----------
    matrix : ScaledMatrix
        The priced and weighted data ``A``.
    basis : ndarray of shape (m, f)
        Orthonormal columns ``Q``.
    constant : bool
        Whether what a constant column becomes is among them, for certain.
    """

    def __init__(self, matrix: ScaledMatrix, basis: Array, *, constant: bool = False) -> None:
        # Columns that are constant but for rounding would not do: what they leave of means is
        # multiplied with coefficients of any size.
        if constant and matrix.shift is None:
            matrix = matrix.without_large_means()
        self.matrix = matrix
        self.basis = basis
        self.overlap = matrix.measured_cross(basis)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.matrix.shape

    @property
    def fused(self) -> bool:
        """As the data itself."""
        return self.matrix.fused

    def apply(self, v: Array) -> Array:
        """``P A v``."""
        t = self.matrix.apply(v)
        t -= self.basis @ (self.overlap.T @ v)
        # What rounding left along Q is removed once more; it is tiny, so this is accurate.
        t -= self.basis @ (self.basis.T @ t)
        return t

    def cross(self, u: Array) -> Array:
        """``A' P u``."""
        along = in_pieces(self.basis, u, sum_length(len(u)))
        return np.asarray(self.matrix.cross(u) - self.overlap @ along)

    def measured_cross(self, u: Array) -> Array:
        """``A' P u``; lengths of columns came with the product that made this."""
        return self.cross(u)

    def gram(self, v: Array) -> Array:
        """``A' P A v``, reading the data once."""
        middle = RowStep.projection(self.basis, self.overlap.T @ v)
        out = self.matrix.gram(v, middle)
        return np.asarray(out - self.overlap @ middle.left)

    @property
    def narrow(self) -> bool:
        """As the data itself."""
        return self.matrix.narrow

    def gram_beside(self, v: Vector, target: Vector, times: float) -> tuple[Vector, float]:
        """``A'P r`` and ``target'r`` for ``r = P(A v + times target)``, in one read if it pays.

        ``target`` has to be projected.
        """
        if not self.fused:
            return in_two_reads(self, v, target, times)
        basis = np.column_stack([self.basis, target])
        step = RowStep.projection(basis, np.append(self.overlap.T @ v, -times))
        out = self.matrix.gram(v, step)
        return np.asarray(out - self.overlap @ step.left[:-1]), float(step.left[-1])

    def square(self) -> Array:
        """``A'PA`` itself, in one read and as accurate as its products."""
        return self.gram(np.eye(self.shape[1]))


def _large_means(matrix: ScaledMatrix) -> Vector | None:
    """Return a row to subtract, or None where it would save less than two digits.

    Subtracting costs a copy of each block in cache, so it is done where some column of a sample
    of the rows deviates by little from its mean.
    """
    data = matrix.matrix
    shift = data.typical_row(None if matrix.row is None else matrix.row**2)
    if shift is None:
        return None
    spread = head_spread(data, min(256, block_length(data.shape[1])), shift)
    return shift if bool((np.abs(shift) > 30.0 * spread).any()) else None


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


def flush_columns(columns: Array, before: Vector, dimension: int) -> Vector:
    """Set columns to zero, in place, of which a projection left nothing but rounding.

    ``dimension`` is that of the space projected away. Returned are the lengths of what was there,
    zero of columns that stay.
    """
    after = np.sqrt(np.einsum("ij,ij->j", columns, columns))
    flat = after <= ROUNDING * max(dimension, 1) * before
    columns[:, flat] = 0.0
    return np.where(flat, after, 0.0)


def _scale(factor: Vector | None, v: Array) -> Array:
    if factor is None:
        return v
    return factor * v if v.ndim == 1 else factor[:, None] * v
