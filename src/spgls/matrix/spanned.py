"""Columns that others span exactly, shown in whole numbers.

Dependence among the columns of a table is mostly of one kind: dummies that add up to a constant,
and sums of other columns. A factor with pivots suggests which columns the others span, and by which
weights; rounded to small fractions, these are checked without rounding error.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf

from spgls.base.types import Array, Vector

__all__ = ["spanning_columns"]

#: Pivots below this share of the largest are taken for those of dependent columns.
_DEPENDENT = 1e-9
#: Common denominators of weights, how close to fractions they are, and the largest whole number.
_DENOMINATORS, _CLOSE, _WHOLE = (1, 2, 3, 4, 6, 12, 60), 1e-3, 2.0**20


def spanning_columns(
    square: Array, scale: Vector, lead: int, combine: Callable[[Array], Array | None]
) -> np.ndarray | None:
    """Columns whose range certainly holds all others; None where that is not shown.

    Parameters
    ----------
    square : ndarray of shape (k, k)
        ``D F'F D``, which may be overwritten.
    scale : ndarray of shape (k,)
        Diagonal of ``D``.
    lead : int
        One if the first column is a constant, else zero. What others are spanned by up to a
        constant they are spanned by.
    combine : callable
        Combinations of the columns by whole numbers, a column each, without rounding error; None
        where they would have some.
    """
    k = len(square)
    factor, pivot, rank, _ = dpstrf(square, tol=_DEPENDENT, lower=0, overwrite_a=1)
    if rank == k:
        return None
    kept, rest = pivot[:rank] - 1, pivot[rank:] - 1
    weights = solve_triangular(factor[:rank, :rank], factor[:rank, rank:], check_finite=False)
    there = scale[rest] > 0.0
    rest, weights = rest[there], weights[:, there]
    weights = weights * scale[kept][:, None] / scale[rest]
    if lead:
        weights[kept == 0] = 0.0
    whole = np.zeros((k, len(rest)))
    for j, column in enumerate(weights.T):
        common = _denominator(column)
        if common is None:
            return None
        whole[kept, j] = -np.rint(common * column)
        whole[rest[j], j] = common
    if not np.abs(whole).max(initial=0.0) < _WHOLE:
        return None
    zero = combine(whole)
    return None if zero is None or zero.any() else np.sort(kept)


def _denominator(weights: Vector) -> int | None:
    """A number that makes weights whole, nearly."""
    for common in _DENOMINATORS:
        if np.abs(common * weights - np.rint(common * weights)).max(initial=0.0) <= _CLOSE:
            return common
    return None
