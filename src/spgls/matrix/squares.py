"""Squared lengths of the columns, which rounding is measured by, in one read of the data."""

from __future__ import annotations

import numpy as np

from spgls.base.types import Vector
from spgls.matrix.pieces import block_length
from spgls.matrix.protocol import Matrix

__all__ = ["column_squares"]


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


def dense_squares(panel: np.ndarray, weight: Vector | None, shift: Vector | None) -> Vector:
    """The same for some rows in memory."""
    rows = panel if shift is None else panel - shift
    if weight is None:
        return np.asarray(np.einsum("ij,ij->j", rows, rows, dtype=np.float64))
    return np.asarray(weight @ np.square(rows, dtype=np.float64))
