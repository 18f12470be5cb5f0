"""Columns that depend on others, shown in exact arithmetic.

A rank decided by a threshold is no proof. Dependence among real columns is mostly of one kind:
copies, multiples, dummies that add up to a constant. So a factorisation suggests each dependent
column as a combination of the others, its weights are rounded to small fractions, and whether it
*is* that combination is checked without rounding.
"""

from __future__ import annotations

from fractions import Fraction
from math import fsum, lcm
from typing import NamedTuple

import numpy as np
from scipy.linalg import lstsq, qr

from spgls.base.types import EPS, Array
from spgls.base.vector import leading_bits
from spgls.reduction.data import GameData

__all__ = ["Dependence", "exact_dependence", "independent_columns"]

#: Largest denominator of a weight, and largest whole number in a combination.
_DENOMINATOR, _WHOLE = 720, 2.0**20
#: Numbers that are checked at most, and rows that are read at a time.
_ENTRIES, _ROWS = 2_000_000, 4096


class Dependence(NamedTuple):
    """What is known of a rank without rounding.

    Attributes
    ----------
    columns : ndarray of int
        Columns that the others span exactly, with a constant where there is an intercept; of
        changeable ones, beside the immutable.
    free_rows, all_rows : int
        Most different rows that the immutable columns have, and that all of them have.
    """

    columns: np.ndarray
    free_rows: int
    all_rows: int


def exact_dependence(data: GameData) -> Dependence:
    """Look for columns that depend exactly on others, and for equal rows.

    Of data too large to be looked at in full nothing is known.
    """
    m, n = data.matrix.shape
    nothing = np.zeros(0, dtype=np.intp)
    if m * n > _ENTRIES:
        return Dependence(nothing, m, m)
    X = np.vstack([np.array(panel) for _, panel in data.matrix.row_panels(_ROWS)])
    if data.weight is not None:
        X = X[data.weight > 0.0]
    immutable, changeable = data.layout.immutable, data.layout.changeable
    free_rows, all_rows = (len(np.unique(rows, axis=0)) for rows in (X[:, immutable], X))
    if data.layout.exact is not None:
        # Of columns that were rounded when they were combined nothing is exact.
        free_rows = all_rows = m
        immutable, changeable = (part[data.layout.exact[part]] for part in (immutable, changeable))
    free, others = X[:, immutable], X[:, changeable]
    ones = np.ones((len(X), int(data.layout.fit_intercept)))
    kept = independent_columns(free, ones)
    if kept is None:
        return Dependence(nothing, free_rows, all_rows)
    dependent = np.delete(immutable, kept)
    rest = independent_columns(others, np.hstack([ones, free[:, kept]]))
    if rest is not None:
        dependent = np.append(dependent, np.delete(changeable, rest))
    return Dependence(dependent, free_rows, all_rows)


def independent_columns(columns: Array, beside: Array | None = None) -> list[int] | None:
    """Columns whose span, with that of others, certainly contains all; None if it is not shown.

    Those that are left may still be nearly dependent.

    Parameters
    ----------
    columns : ndarray of shape (m, f)
        The numbers as they are.
    beside : ndarray of shape (m, g), optional
        Others that count as there.
    """
    m, f = columns.shape
    given = np.zeros((m, 0)) if beside is None else beside
    norms = np.linalg.norm(columns, axis=0)
    some = np.flatnonzero(norms > 0.0)
    if not len(some):
        return []
    unit, basis = columns[:, some] / norms[some], np.zeros((m, 0))
    if given.shape[1]:
        basis, r, _ = qr(given / _lengths(given), mode="economic", pivoting=True)
        basis = basis[:, : int((np.abs(np.diag(r)) > _cut(m, given.shape[1])).sum())]
        for _ in range(2):
            unit = unit - basis @ (basis.T @ unit)
    _, r, order = qr(unit, mode="economic", pivoting=True)
    rank = int((np.abs(np.diag(r)) > _cut(m, f)).sum())
    kept, rest = some[order[:rank]], some[order[rank:]]
    if len(rest) and m * (f + given.shape[1]) <= _ENTRIES:
        # As many as there are different rows span all that such rows can hold.
        different = len(np.unique(np.hstack([columns, given]), axis=0))
        if rank + basis.shape[1] >= different:
            return [int(j) for j in np.sort(kept)]
    if m * len(rest) * (rank + given.shape[1] + 1) > _ENTRIES:
        return None
    others = np.hstack([columns[:, kept], given])
    for j in rest.tolist():
        weights = np.zeros(others.shape[1])
        if others.shape[1]:
            size = _lengths(others)
            weights = lstsq(others / size, columns[:, j])[0] / size
        if not _is_combination(columns[:, j], others, weights):
            return None
    return [int(j) for j in np.sort(kept)]


def _cut(m: int, f: int) -> float:
    return 8 * max(m, f) * EPS


def _lengths(columns: Array) -> Array:
    return np.asarray(np.fmax(np.linalg.norm(columns, axis=0), 1e-300))


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
    high = leading_bits(parts)
    products = np.hstack([high * whole, (parts - high) * whole])
    return all(fsum(row) == 0.0 for row in products.tolist())
