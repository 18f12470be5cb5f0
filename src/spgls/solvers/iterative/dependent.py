"""Columns that depend on others, shown in exact arithmetic.

A rank decided by a threshold is no proof. Dependence among real columns is mostly of one kind:
copies, multiples, dummies that add up to a constant. So a factorisation suggests each dependent
column as a combination of the others, its weights are rounded to small fractions, and whether it
*is* that combination is checked without rounding.
"""

from __future__ import annotations

from fractions import Fraction
from math import fsum, lcm

import numpy as np
from scipy.linalg import lstsq, qr

from spgls.base.types import EPS, Array

__all__ = ["independent_columns"]

#: Largest denominator of a weight, and largest whole number in a combination.
_DENOMINATOR, _WHOLE = 720, 2.0**20
#: Numbers that are checked at most.
_ENTRIES = 2_000_000


def independent_columns(columns: Array) -> list[int] | None:
    """Columns whose span certainly contains all; None if that cannot be shown.

    Those that are left may still be nearly dependent.

    Parameters
    ----------
    columns : ndarray of shape (m, f)
        The numbers as they are.
    """
    size = np.abs(columns).max(axis=0, initial=0.0)
    some = np.flatnonzero(size > 0.0)
    if not len(some):
        return []
    unit = columns[:, some] / np.linalg.norm(columns[:, some], axis=0)
    _, r, order = qr(unit, mode="economic", pivoting=True)
    rank = int((np.abs(np.diag(r)) > 8 * max(columns.shape) * EPS).sum())
    kept, rest = some[order[:rank]], some[order[rank:]]
    if columns.shape[0] * len(rest) * (rank + 1) > _ENTRIES:
        return None
    for j in rest.tolist():
        weights, *_ = lstsq(columns[:, kept], columns[:, j])
        if not _is_combination(columns[:, j], columns[:, kept], weights):
            return None
    return [int(j) for j in np.sort(kept)]


def _is_combination(column: Array, others: Array, weights: Array) -> bool:
    if not np.isfinite(weights).all():
        return False
    fractions = [Fraction(w).limit_denominator(_DENOMINATOR) for w in weights.tolist()]
    common = lcm(*(one.denominator for one in fractions))
    whole = [common, *(-int(one * common) for one in fractions)]
    if max(map(abs, whole)) > _WHOLE:
        return False
    # Halves of few enough bits that their multiples are exact; their sum is, by fsum.
    parts = np.column_stack([column, others])
    high = _leading(parts)
    products = np.hstack([high * whole, (parts - high) * whole])
    return all(fsum(row) == 0.0 for row in products.tolist())


def _leading(numbers: Array) -> Array:
    """The first half of the bits of each number."""
    spread = numbers * (2.0**27 + 1.0)
    return np.asarray(spread - (spread - numbers))
