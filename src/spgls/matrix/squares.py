"""Squared lengths of the columns, which rounding is measured by, in one read of the data."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from spgls.base.far_array import far_of
from spgls.base.types import EPS, Array, Vector
from spgls.matrix.pieces import block_length
from spgls.matrix.protocol import Matrix

__all__ = [
    "column_squares",
    "cross_and_squares",
    "head_largest",
    "head_spread",
    "head_square",
    "longest_row",
    "longest_sum",
    "predictions",
    "scaled_values",
    "some_columns",
    "sum_rounding",
    "sum_rounding_down",
    "sum_rounding_in_pieces",
    "sum_rounding_one_by_one",
    "total_square",
    "unit_square",
]

#: Ulps for what happens to terms before they are added, and for sums in pieces times the root of
#: their number.
_ULPS = 8.0


def sum_rounding(count: int) -> float:
    """Rounding of sums of so many products in any order, and of what happens to them before.

    In units of the sum of their magnitudes: half an ulp for each.
    """
    return (count / 2 + _ULPS) * EPS


def sum_rounding_in_pieces(count: int) -> float:
    """The same of sums in pieces of :func:`~spgls.matrix.pieces.sum_length` terms."""
    return (min(_ULPS * sqrt(count), count / 2) + _ULPS) * EPS


def sum_rounding_down(matrix: Matrix) -> float:
    """The same of sums over the rows of a matrix: in pieces, but for what is added one by one."""
    return max(sum_rounding_in_pieces(matrix.shape[0]), sum_rounding_one_by_one(matrix))


def sum_rounding_one_by_one(matrix: Matrix) -> float:
    """The same where entries of a column are added one by one, as those of sparse data; else 0.

    So are the sums over many short blocks of rows.
    """
    if matrix.work.by_index:
        return sum_rounding(longest_sum(matrix))
    added = int(getattr(matrix, "additions", 0))
    return sum_rounding(added) if added else 0.0


def column_squares(matrix: Matrix, weight: Vector | None, shift: Vector | None) -> Vector:
    """``sum_i weight_i (A_ij - shift_j)^2`` of each column, or a little more.

    Parameters
    ----------
    matrix : Matrix
        The data. Where it has a method ``column_squares`` of the same kind, that is faster.
    weight : ndarray of shape (m,), optional
        Weights of the rows; one by default.
    shift : ndarray of shape (n,), optional
        Subtracted from every row; nothing by default.
    """
    own = getattr(matrix, "column_squares", None)
    if own is not None:
        return np.asarray(own(weight, shift))
    total = np.zeros(matrix.shape[1])
    for rows, panel in matrix.row_panels(block_length(matrix.shape[1])):
        total += dense_squares(panel, None if weight is None else weight[rows], shift)
    return total


def cross_and_squares(
    matrix: Matrix, u: Array, weight: Vector | None, shift: Vector | None
) -> tuple[Array, Vector | None]:
    """``A' u`` and :func:`column_squares`, where one read is enough for both; else None."""
    both = getattr(matrix, "cross_and_squares", None)
    if both is None:
        return matrix.cross(u, shift), None
    product, squares = both(u, weight, shift)
    return np.asarray(product), squares


def predictions(matrix: Matrix, v: Array, beside: Vector) -> Array:
    """``A v`` for a block of columns: on a device, if that is where the numbers of rows stay."""
    own = getattr(matrix, "apply_there", None)
    if own is None or far_of(beside) is None:
        return matrix.apply(v)
    there: Array = own(v)
    return there


def total_square(matrix: Matrix) -> float | None:
    """Sum of the squares of all entries, where the data can tell without much ado; else None."""
    own = getattr(matrix, "total_square", None)
    return None if own is None else own()


def longest_row(matrix: Matrix) -> int:
    """Most entries of a row, which is how many terms a prediction has."""
    return int(getattr(matrix, "longest_row", matrix.shape[1]))


def longest_sum(matrix: Matrix) -> int:
    """Terms of a sum over a column that are added one after another, at most."""
    return int(getattr(matrix, "longest_sum", matrix.shape[0]))


def some_columns(matrix: Matrix, columns: np.ndarray, most: float) -> Matrix | None:
    """A copy of some columns, where the data is stored so that it takes few bytes; else None."""
    own = getattr(matrix, "some_columns", None)
    return None if own is None else own(columns, most)


def unit_square(matrix: Matrix, row: Vector | None, column: Vector, dtype: type) -> Array | None:
    """``B'B`` for ``B = diag(row) A diag(column)``, where the data knows a fast way; else None."""
    own = getattr(matrix, "unit_square", None)
    return None if own is None else own(row, column, dtype)


def scaled_values(matrix: Matrix, row: Vector | None, column: Vector, dtype: type) -> Any | None:
    """``diag(row) A diag(column)`` as sparse data of a type, where it is sparse; else None."""
    own = getattr(matrix, "scaled", None)
    return None if own is None else own(row, column, dtype)


def head_square(matrix: Matrix, count: int) -> float:
    """Sum of squares of the first rows."""
    own = getattr(matrix, "head_square", None)
    if own is not None:
        return float(own(count))
    rows = _head(matrix, count)
    return float(np.einsum("ij,ij->", rows, rows))


def head_largest(matrix: Matrix, count: int) -> Vector:
    """Largest magnitude in each column of the first rows."""
    own = getattr(matrix, "head_largest", None)
    return np.asarray(np.abs(_head(matrix, count)).max(axis=0) if own is None else own(count))


def head_spread(matrix: Matrix, count: int, shift: Vector) -> Vector:
    """Median distance of the first rows from a row, column by column."""
    own = getattr(matrix, "head_spread", None)
    if own is not None:
        return np.asarray(own(count, shift))
    return np.asarray(np.median(np.abs(_head(matrix, count) - shift), axis=0))


def _head(matrix: Matrix, count: int) -> Array:
    _, rows = next(matrix.row_panels(count))
    return rows


def dense_squares(panel: np.ndarray, weight: Vector | None, shift: Vector | None) -> Vector:
    """The same for some rows in memory."""
    rows = panel if shift is None else panel - shift
    if weight is None:
        return np.asarray(np.einsum("ij,ij->j", rows, rows, dtype=np.float64))
    return np.asarray(weight @ np.square(rows, dtype=np.float64))
