"""Squares of dense data in single precision: half the time, for inverses that nothing rests on."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import ssyrk

from spgls.base.types import Vector
from spgls.matrix.dense import DenseMatrix
from spgls.matrix.lazy import ProjectedMatrix, ScaledMatrix
from spgls.matrix.pieces import BLOCK_BYTES, block_length, cuts

__all__ = ["Single", "rough_square"]

Single: TypeAlias = NDArray[np.float32]

#: Columns of which a projection leaves less than this share, squared, lose too many digits.
_LEFT = 1e-3


def rough_square(matrix: Any) -> tuple[Single, Vector] | None:
    """``D A'PA D`` of unit diagonal, its upper triangle, by columns; and ``D``.

    None unless the data is dense, in memory, and projected by a basis if at all.

    Parameters
    ----------
    matrix : ProjectedMatrix or ScaledMatrix
        ``P A``; others give None.
    """
    scaled, overlap = matrix, np.zeros((matrix.shape[1], 0))
    if isinstance(matrix, ProjectedMatrix):
        scaled, overlap = matrix.matrix, matrix.overlap
    if not isinstance(scaled, ScaledMatrix) or not isinstance(scaled.matrix, DenseMatrix):
        return None
    columns = slice(None) if scaled.columns is None else scaled.columns
    price = np.ones(matrix.shape[1]) if scaled.column is None else scaled.column
    whole = scaled.squares[columns] * price**2
    left = whole - np.einsum("ij,ij->i", overlap, overlap)
    if not (left > _LEFT * whole).all():
        return None
    scale = 1.0 / np.sqrt(left)
    total = _squared(scaled.matrix.values, scaled.row, columns, scale * price, scaled.shift)
    along = np.asfortranarray(scale[:, None] * overlap, dtype=np.float32)
    if along.shape[1]:
        total = ssyrk(-1.0, along, 1.0, total, overwrite_c=1)
    return total, scale


def _squared(
    values: NDArray[Any], row: Vector | None, columns: Any, scale: Vector, shift: Vector | None
) -> Single:
    """``B'B`` for ``B = diag(row) (A - 1 shift')[:, columns] diag(scale)``, its upper triangle."""
    m, n = len(values), len(scale)
    length = min(m, block_length(n, at_least=512, block_bytes=2 * BLOCK_BYTES))
    total, buffer = np.zeros((n, n), np.float32, order="F"), np.empty((length, n), np.float32)
    for rows in cuts(m, length):
        panel, block = values[rows], buffer[: rows.stop - rows.start]
        if shift is not None:
            panel = panel - shift
        np.multiply(panel[:, columns], scale, out=block, casting="same_kind")
        if row is not None:
            block *= row[rows, None]
        total = ssyrk(1.0, block.T, 1.0, total, overwrite_c=1)
    return total
