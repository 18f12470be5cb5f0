"""A column of ones that nobody can change is an intercept under another name.

Told as an intercept it takes the means out of all other columns before anything is squared, so
that large means cost no digits.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from spgls.reduction.data import GameData, takes_basis
from spgls.solvers.solution import Solution

__all__ = ["as_column", "column_of_ones", "with_intercept"]


def column_of_ones(data: GameData) -> int | None:
    """Place of an immutable column of ones; None where it is not worth looking for.

    One read of the data, and that only if the first rows are such that there may be one.
    """
    layout, matrix = data.layout, data.matrix
    free = layout.immutable
    if layout.fit_intercept or layout.coordinates is not None or not len(free):
        return None
    if matrix.work.wait > 0.0 or not takes_basis(matrix.work.of_columns(layout.count)):
        return None
    _, head = next(iter(matrix.row_panels(1)))
    for at in free[head[0, free] == 1.0].tolist():
        pick = np.zeros(layout.columns)
        pick[at] = 1.0
        if (matrix.apply(pick) == 1.0).all():
            return int(at)
    return None


def with_intercept(data: GameData) -> GameData:
    """The same game with an intercept, beside which the column of ones has nothing to add."""
    return replace(data, layout=replace(data.layout, fit_intercept=True))


def as_column(solution: Solution, at: int) -> Solution:
    """A solution whose intercept is the coefficient of the column of ones."""
    coef = solution.coef.copy()
    coef[at] += solution.intercept
    return replace(solution, coef=coef, intercept=0.0)
