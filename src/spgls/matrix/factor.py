"""Triangular factors of rows that come a panel at a time."""

from __future__ import annotations

import numpy as np
from scipy.linalg import qr

from spgls.base.types import Array, Vector
from spgls.matrix.pieces import block_length
from spgls.matrix.protocol import Matrix

__all__ = ["few_rows_with", "triangle"]


def triangle(rows: Array) -> Array:
    """Triangular factor of some rows: as few rows as there are columns, with the same moments.

    The rows given may be overwritten.
    """
    (factor,) = qr(rows, mode="r", overwrite_a=True, check_finite=False)
    return np.array(factor[: rows.shape[1]])


def few_rows_with(
    few: Array, matrix: Matrix, beside: Array, root: Vector | None, row: Vector | None
) -> Array:
    """Few rows and those of a matrix as few rows with the same moments.

    They are no more than a triangular factor and the last panel.

    Parameters
    ----------
    few : ndarray
        Rows so far; empty at first.
    matrix : Matrix
        More rows. Where it has a method ``triangle``, that factors them where they are.
    beside : ndarray
        What stands beside each of them.
    root : ndarray, optional
        Square roots of their weights.
    row : ndarray, optional
        What is subtracted from each.
    """
    own = getattr(matrix, "triangle", None)
    if own is not None:
        factor = np.asarray(own(beside, root, row))
        return np.vstack([few, factor]) if few.size else factor
    n = matrix.shape[1]
    width = n + beside.shape[1]
    for some, panel in matrix.row_panels(block_length(width, at_least=2 * width)):
        block = np.empty((panel.shape[0], width))
        np.subtract(panel, 0.0 if row is None else row, block[:, :n])
        block[:, n:] = beside[some]
        if root is not None:
            block *= root[some, None]
        few = np.vstack([triangle(few), block]) if few.size else block
    return few
