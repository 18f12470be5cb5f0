"""Triangular factors that prove how large the least eigenvalue of a matrix is.

If Cholesky's algorithm finishes on ``M~ - (e + f + d)``, where ``e`` bounds what is wrong with
``M~`` and ``f`` the rounding of the algorithm itself, then no eigenvalue of ``M`` is below ``d``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import sqrt

import numpy as np
from scipy.linalg.lapack import dpotrf, spotrf

from spgls.base.types import EPS, Array
from spgls.matrix.pieces import CACHE_BYTES, block_length, cuts

__all__ = ["certain_factor", "certain_in_single", "largest_column_sum", "square_unit"]


def square_unit(m: int, n: int) -> float:
    """Rounding of products of columns, over their lengths."""
    return (32.0 * sqrt(n) + min(m, 400) + m / 400.0) * EPS


def certain_in_single(M: Array, error: float, shift: float) -> float:
    """What no eigenvalue of ``M`` is below, by a factor of ``M~ - shift`` in single precision.

    Half the time of :func:`certain_factor`, for matrices far from singular; zero or less where
    nothing is shown. The factor ``L`` is exact for a matrix that differs by at most
    ``(k + 1) u |L||L'|``, and the norm of that is at most its largest sum over a row.

    Parameters
    ----------
    M : ndarray of shape (k, k)
        ``M~``, in single precision, which may be overwritten.
    error : float
        At least ``|M~ - M|``, before it was rounded to that.
    shift : float
        What is subtracted from its diagonal.
    """
    k, unit = len(M), float(np.finfo(np.float32).eps)
    single = M.T if M.flags.c_contiguous else np.asfortranarray(M)
    rounding = unit * (largest_column_sum(single) + 1.0)
    single[np.diag_indices(k)] -= np.float32(shift)
    factor, info = spotrf(single, lower=1, clean=0, overwrite_a=1)
    if info != 0:
        return 0.0
    rows = np.zeros(k)
    for p in _pieces(k):
        part = np.abs(factor[p.start :, p])
        # What is above the diagonal is not the factor's.
        part[: p.stop - p.start] = np.tril(part[: p.stop - p.start])
        rows[p.start :] += part @ part.sum(axis=0)
    return shift - error - rounding - 1.1 * (k + 1) * unit * float(rows.max())


def largest_column_sum(M: Array) -> float:
    """Largest sum of magnitudes in a column; of a symmetric matrix at least its norm."""
    return max((float(np.abs(M[:, p]).sum(axis=0).max()) for p in _pieces(len(M))), default=0.0)


def _pieces(k: int) -> Iterator[slice]:
    """Some columns of a square at a time, few enough for the cache."""
    return cuts(k, block_length(k, block_bytes=CACHE_BYTES))


def certain_factor(
    make: Callable[[], Array], error: float, trials: Sequence[float]
) -> tuple[Array, float] | None:
    """A lower triangular factor of ``M`` less a little, and what no eigenvalue is below.

    None where no trial succeeds.

    Parameters
    ----------
    make : callable
        ``M~``, of diagonal entries one at most, in memory that may be overwritten.
    error : float
        At least ``|M~ - M|``.
    trials : sequence of float
        Values of ``d``, the largest first.
    """
    for least in trials:
        made = make()
        # Symmetric: by rows is as good as by columns, and needs no copy.
        shifted = np.asfortranarray(made.T if made.flags.c_contiguous else made)
        k = len(shifted)
        # Of the factor and of solving with it: |dM| <= (k + 1) u |L||L'|, whose trace is k.
        shifted[np.diag_indices(k)] -= error + 4 * (k + 1) * k * EPS + least
        factor, info = dpotrf(shifted, lower=1, clean=0, overwrite_a=1)
        if info == 0:
            return factor, least
    return None
