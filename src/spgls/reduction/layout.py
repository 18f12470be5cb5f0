"""What the columns of a game mean: what each costs to change, and whether there is an intercept."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from spgls.base.types import Array, Vector

__all__ = ["Layout", "times"]


@dataclass(frozen=True, eq=False)
class Layout:
    """The columns of a game, and no rows.

    Parameters
    ----------
    columns : int
        How many they are; the intercept is none of them.
    cost : ndarray of shape (columns,), optional
        Cost of each per squared unit of change, ``inf`` where nobody can change it; one by default.
    fit_intercept : bool
        Whether the learner chooses an intercept. In sums over rows it is a column of ones, which
        explains what it can before any other column does.
    avoids_null : bool
        Whether coefficients stay in the row space of the data: none in directions in which it does
        not vary.
    """

    columns: int
    cost: Vector | None = None
    fit_intercept: bool = False
    avoids_null: bool = False

    @cached_property
    def changeable(self) -> np.ndarray:
        """Columns that providers can change."""
        if self.cost is None:
            return np.arange(self.columns)
        return np.flatnonzero(np.isfinite(self.cost))

    @cached_property
    def immutable(self) -> np.ndarray:
        """Columns that nobody can change."""
        if self.cost is None:
            return np.zeros(0, dtype=np.intp)
        return np.flatnonzero(np.isinf(self.cost))

    @cached_property
    def price(self) -> Vector | None:
        """``sqrt(c)`` of the changeable columns."""
        return None if self.cost is None else np.sqrt(self.cost[self.changeable])

    def priced(self, own: Array) -> Array:
        """``v`` from coefficients of changeable columns; vectors or blocks."""
        return (
            own
            if self.price is None
            else own / (self.price if own.ndim == 1 else self.price[:, None])
        )

    def coefficients(self, v: Array, fixed: Array) -> Array:
        """``w`` from the changeable part ``v`` and the coefficients of immutable columns.

        Vectors, or blocks with a column for each predictor.
        """
        if len(self.immutable) == 0:
            return v.copy(order="K") if self.price is None else times(self.price, v)
        coef = np.zeros((self.columns, *v.shape[1:]))
        coef[self.changeable] = times(self.price, v)
        coef[self.immutable] = fixed
        return coef


def times(factor: Vector | None, rows: Array) -> Array:
    """Rows of a vector or a block, each times its factor."""
    if factor is None:
        return rows
    return np.asarray(factor * rows if rows.ndim == 1 else factor[:, None] * rows)
