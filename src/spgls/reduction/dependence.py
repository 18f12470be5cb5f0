"""Columns that depend on others exactly: a rank that is beyond doubt.

A singular value that rounding takes for zero may be zero, or as small as rounding. Only the former
leaves predictors without effect, so a proof must know. One-hot groups beside an intercept, copies,
sums and constants depend exactly, with coefficients that are small whole numbers or powers of two:
a triangular factor suggests them, and sums of the columns without any rounding confirm them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from spgls.base.types import Array, Vector
from spgls.reduction.data import GameData
from spgls.reduction.sums import triangle

__all__ = ["Dependence", "exact_dependence"]

#: What is left of a column beside those before it, relative to its length, where it is looked at.
_LITTLE = 1e-10
#: Coefficients farther than this from a simple number are not simple.
_NEARLY = 1e-5
#: Largest whole number that counts as simple, and panels of rows that are added up at a time.
_LARGEST, _ROWS = 8, 4096
#: Rows of no more entries than this are looked at for equal ones.
_ENTRIES = 10**6


class Dependence(NamedTuple):
    """What is known of a rank without rounding.

    Attributes
    ----------
    columns : ndarray of int
        Columns that are exact sums of multiples of others, which are not among them: up to a
        constant where there is an intercept, and of immutable ones first.
    free_rows, all_rows : int
        Most different rows that the immutable columns have, and that all of them have.
    """

    columns: np.ndarray
    free_rows: int
    all_rows: int


def exact_dependence(data: GameData, rows: Array) -> Dependence:
    """Look for columns that depend exactly on others, and for equal rows.

    Parameters
    ----------
    data : GameData
        The data.
    rows : ndarray
        Rows that have its moments: columns, labels, goals and, with an intercept, ones.
    """
    layout, n = data.layout, data.layout.columns
    lead = int(layout.fit_intercept)
    order = np.concatenate([layout.immutable, layout.changeable])
    # The ones come first: columns are then what is left beside a constant.
    factor = triangle(rows[:, np.append(np.arange(n + 2, n + 2 + lead), order)])[lead:, lead:]
    sizes = np.linalg.norm(rows[:, order], axis=0)
    there = np.flatnonzero(sizes > 0.0)
    independent: list[int] = []
    suggested: dict[int, tuple[np.ndarray, Vector]] = {}
    columns = factor[:, there] / sizes[there]
    height, left = 0, columns
    # Gram-Schmidt by reflections would hide which columns are used; the factor tells.
    for at in range(len(there)):
        beside = columns[:, independent]
        basis, _ = np.linalg.qr(beside) if independent else (np.zeros((len(columns), 0)), None)
        rest = left[:, at] - basis @ (basis.T @ left[:, at])
        if height < len(columns) and np.linalg.norm(rest) > _LITTLE:
            independent.append(at)
            height += 1
            continue
        use = np.array(independent, dtype=int)
        parts = np.zeros(0)
        if len(use):
            q, r = np.linalg.qr(beside)
            parts = solve_triangular(r, q.T @ columns[:, at], check_finite=False)
            parts = parts * sizes[there[at]] / sizes[there[use]]
        suggested[at] = use, parts
    simple = {}
    for at, (use, parts) in suggested.items():
        numbers = _simple(parts)
        if numbers is not None:
            kept = numbers != 0.0
            simple[order[there[at]]] = order[there[use[kept]]], numbers[kept]
    found = np.array([j for j, one in simple.items() if _holds(data, j, *one)], dtype=np.intp)
    every = np.arange(n)
    return Dependence(found, _different(data, layout.immutable), _different(data, every))


def _different(data: GameData, columns: np.ndarray) -> int:
    """How many different rows there are, at most."""
    m = data.matrix.shape[0]
    if m * max(len(columns), 1) > _ENTRIES:
        return m
    panels = [panel[:, columns] for _, panel in data.matrix.row_panels(_ROWS)]
    return len(np.unique(np.vstack(panels), axis=0))


def _simple(parts: Vector) -> Vector | None:
    """The simple numbers that these nearly are, or None."""
    tiny = abs(parts) < _NEARLY
    size = np.where(tiny, 1.0, abs(parts))
    power = np.exp2(np.round(np.log2(size)))
    nearest = np.where(abs(power - size) <= _NEARLY * size, power, np.round(size))
    good = (abs(nearest - size) <= _NEARLY * size) & ((nearest <= _LARGEST) | (nearest == power))
    if not (good | tiny).all():
        return None
    return np.asarray(np.where(tiny, 0.0, np.sign(parts) * nearest))


def _holds(data: GameData, column: int, others: np.ndarray, parts: Vector) -> bool:
    """Whether the column is the sum of so many times the others, and a constant, exactly."""
    constant: float | None = None if data.layout.fit_intercept else 0.0
    for rows, panel in data.matrix.row_panels(_ROWS):
        total = panel[:, column]
        for other, part in zip(others.tolist(), parts.tolist(), strict=True):
            for term in _powers(part):
                total, error = _two_sum(total, -term * panel[:, other])
                if error.any():
                    return False
        counts = np.ones(len(total), bool) if data.weight is None else data.weight[rows] > 0.0
        if not counts.any():
            continue
        if constant is None:
            constant = float(total[counts][0])
        if (total[counts] != constant).any():
            return False
    return True


def _powers(number: float) -> list[float]:
    """A simple number as a sum of powers of two, by which a product is exact."""
    if abs(number) < 1.0:
        return [number]
    sign, whole = np.sign(number), int(abs(number))
    return [float(sign * 2**bit) for bit in range(whole.bit_length()) if whole >> bit & 1]


def _two_sum(a: Vector, b: Vector) -> tuple[Vector, Vector]:
    """Sum and its rounding error, exactly."""
    total = a + b
    back = total - a
    return total, (a - (total - back)) + (b - back)
