"""Inverses of squared data: nearly, for iterations that measure what they lead to."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import spotrf, spotrs

from spgls.base.threads import all_blas_threads
from spgls.base.types import Array
from spgls.matrix.rough import rough_square
from spgls.reduction.data import GameData
from spgls.solvers.iterative.curvature import Linear

__all__ = ["Inverse", "rough_inverse"]

#: Least eigenvalue, of columns at unit length, for which single precision will do.
_CLEAR = 1e-4


class Inverse(NamedTuple):
    """``(A'PA)^{-1}``, nearly.

    Attributes
    ----------
    solved : callable
        What it makes of columns.
    floor : float
        What no eigenvalue of ``A'PA`` is below; zero where that is not known.
    """

    solved: Linear
    floor: float


def rough_inverse(data: GameData) -> Inverse | None:
    """An inverse in single precision, of dense data of moderate condition; else None."""
    with all_blas_threads():
        found = rough_square(data.projected)
        if found is None:
            return None
        square, scale = found
        square[np.diag_indices(len(square))] -= np.float32(_CLEAR)
        factor, info = spotrf(square, lower=0, clean=0, overwrite_a=1)
    if info != 0:
        return None
    each = scale[:, None]

    def solved(V: Array) -> Array:
        right = each * V
        # Numbers that single precision holds.
        size = np.abs(right).max(axis=0, initial=0.0)
        right /= np.where(size > 0.0, size, 1.0)
        inner, _ = spotrs(factor, np.asfortranarray(right, dtype=np.float32), lower=0)
        return np.asarray(size * each * inner)

    return Inverse(solved, 0.0)
