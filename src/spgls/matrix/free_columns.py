"""Columns whose coefficients are free: a constant and some columns of the data, as one operator."""

from __future__ import annotations

from functools import cached_property
from typing import Protocol

import numpy as np

from spgls.base.types import Array, Vector
from spgls.matrix.lazy import ScaledMatrix
from spgls.matrix.pieces import block_length, in_pieces, sum_length
from spgls.matrix.protocol import Matrix
from spgls.matrix.squares import (
    longest_row,
    longest_sum,
    scaled_values,
    some_columns,
    sum_rounding,
    sum_rounding_down,
    sum_rounding_in_pieces,
    unit_square,
)
from spgls.matrix.unit_columns import SingleColumns

__all__ = ["Columns", "FreeColumns"]

#: Columns are copied out of sparse data while that takes no more bytes than this.
_COPY = 1e8
#: Largest whole number among data that is combined without rounding error.
_WHOLE = 2.0**20


class Columns(Protocol):
    """An ``m`` x ``k`` matrix ``F`` of free columns: what a projection asks of it."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        ...

    @property
    def lengths(self) -> Vector:
        """Lengths of the columns, or a little more."""
        ...

    @property
    def lead(self) -> int:
        """One if a constant comes first, else zero."""
        ...

    @property
    def across(self) -> float:
        """Rounding of a sum over a row, in units of its terms."""
        ...

    @property
    def down(self) -> float:
        """Rounding of ``F't`` for columns of unit length, in units of the length of ``t``."""
        ...

    def apply(self, u: Array) -> Array:
        """``F u`` for a vector or a block of columns."""
        ...

    def cross(self, t: Array) -> Array:
        """``F't`` for a vector or a block of columns."""
        ...

    def square(self, scale: Vector, dtype: type = np.float64) -> Array:
        """``D F'F D`` itself, for ``D = diag(scale)``, in numbers of a type."""
        ...

    def in_single(self, scale: Vector) -> SingleColumns | None:
        """``F D`` in single precision, where that is fast; else None."""
        ...

    def combine(self, whole: Array) -> Array | None:
        """``F whole`` without rounding error, less constants; None where there would be some."""
        ...


class FreeColumns:
    """``S^{1/2} [1, X_I - 1 shift']``, through products with the data.

    Parameters
    ----------
    matrix : ScaledMatrix
        ``S^{1/2} (X_I - 1 shift')``; a shift changes nothing of the range beside a constant.
    constant : ndarray of shape (m,), optional
        What a constant column becomes.
    """

    def __init__(self, matrix: ScaledMatrix, constant: Vector | None = None) -> None:
        self._matrix, self._constant = matrix, constant

    @classmethod
    def of(
        cls, matrix: Matrix, columns: np.ndarray, root: Vector | None, *, constant: bool
    ) -> FreeColumns:
        """Some columns of the data.

        Parameters
        ----------
        matrix : Matrix
            The data.
        columns : ndarray of int
            Which of its columns.
        root : ndarray of shape (m,), optional
            Square roots of weights.
        constant : bool
            Whether a constant is among the free columns.
        """
        shift = matrix.typical_row(None if root is None else root**2) if constant else None
        ones = (np.ones(matrix.shape[0]) if root is None else root) if constant else None
        own = None if shift is not None else some_columns(matrix, columns, _COPY)
        if own is not None:
            return cls(ScaledMatrix(own, root), ones)
        return cls(ScaledMatrix(matrix, root, columns, None, shift), ones)

    @property
    def lead(self) -> int:
        """One if a constant comes first, else zero."""
        return int(self._constant is not None)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        m, k = self._matrix.shape
        return m, self.lead + k

    @cached_property
    def lengths(self) -> Vector:
        """Lengths of the columns, or a little more."""
        squares, own = self._matrix.squares, self._matrix.columns
        sizes = np.sqrt(squares if own is None else squares[own])
        if self._constant is None:
            return np.asarray(sizes)
        return np.append(np.linalg.norm(self._constant), sizes)

    @cached_property
    def across(self) -> float:
        """Rounding of a sum over a row, in units of its terms."""
        return sum_rounding(longest_row(self._matrix.matrix) + self.lead)

    @cached_property
    def down(self) -> float:
        """Rounding of ``F't`` for columns of unit length, in units of the length of ``t``."""
        m, k = self._matrix.shape
        stored = self._matrix.matrix
        each = sum_rounding_down(stored)
        if self._matrix.shift is None:
            each = min(each, sum_rounding(longest_sum(stored)))
        return float(np.hypot(np.sqrt(k) * each, self.lead * sum_rounding_in_pieces(m)))

    def apply(self, u: Array) -> Array:
        """``F u``."""
        if self._constant is None:
            return self._matrix.apply(u)
        out = self._matrix.apply(np.ascontiguousarray(u[1:]))
        out += np.multiply.outer(self._constant, u[0])
        return out

    def cross(self, t: Array) -> Array:
        """``F't``."""
        product = self._matrix.cross(t)
        if self._constant is None:
            return product
        lead = in_pieces(self._constant, t, sum_length(len(t)))
        return np.concatenate([lead[None], product])

    def square(self, scale: Vector, dtype: type = np.float64) -> Array:
        """``D F'F D`` itself, for ``D = diag(scale)``, in numbers of a type."""
        lead, scaled, dense = self.lead, self._matrix, None
        if scaled.columns is None and scaled.shift is None:
            dense = unit_square(scaled.matrix, scaled.row, scale[lead:], dtype)
        if dense is None:
            dense = self._by_panels(scale[lead:], dtype)
        if self._constant is None:
            return dense
        whole: Array = np.empty((len(scale), len(scale)), dtype=dtype)
        whole[1:, 1:] = dense
        del dense
        whole[0, 1:] = whole[1:, 0] = scale[0] * scale[1:] * scaled.cross(self._constant)
        whole[0, 0] = scale[0] ** 2 * (self._constant @ self._constant)
        return whole

    def in_single(self, scale: Vector) -> SingleColumns | None:
        """``F D`` in single precision, of sparse columns that were copied."""
        lead, scaled = self.lead, self._matrix
        if scaled.columns is not None or scaled.shift is not None:
            return None
        values = scaled_values(scaled.matrix, scaled.row, scale[lead:], np.float32)
        if values is None:
            return None
        constant = None if self._constant is None else scale[0] * self._constant
        return SingleColumns(values, None if constant is None else constant.astype(np.float32))

    def combine(self, whole: Array) -> Array | None:
        """Combinations of the columns by whole numbers, without weights and rounding error.

        Beside a constant they are zero if they are constant, and not zero where the constant itself
        was to be spanned. None unless the data are whole numbers too.
        """
        scaled, lead = self._matrix, self.lead
        columns = slice(None) if scaled.columns is None else scaled.columns
        out = np.zeros((scaled.shape[0], whole.shape[1]))
        for rows, panel in scaled.matrix.row_panels(block_length(2 * scaled.matrix.shape[1])):
            own = panel[:, columns]
            if not (np.abs(own) < _WHOLE).all() or (own != np.rint(own)).any():
                return None
            out[rows] = own @ whole[lead:]
        if lead:
            level = out[:1].copy()
            out -= level
            out += (whole[:1] != 0.0) & (level == 0.0)
        return out

    def _by_panels(self, scale: Vector, dtype: type) -> Array:
        """The same of columns without a constant, of data that brings its rows."""
        scaled, k = self._matrix, len(scale)
        columns = slice(None) if scaled.columns is None else scaled.columns
        total = np.zeros((k, k))
        for rows, panel in scaled.matrix.row_panels(block_length(2 * scaled.matrix.shape[1])):
            own = panel[:, columns]
            if scaled.shift is not None:
                own = own - scaled.shift[columns]
            own = own * scale
            if scaled.row is not None:
                own *= scaled.row[rows, None]
            total += own.T @ own
        return total.astype(dtype, copy=False)
