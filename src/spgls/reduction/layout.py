"""What the columns of a game mean: what each costs to change, and whether there is an intercept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from spgls.base.cached import cached_property
from spgls.base.types import Array, Vector
from spgls.game.moves import Cost, Moves
from spgls.matrix import Matrix
from spgls.reduction.coordinates import Coordinates, coordinates_of

__all__ = ["Layout", "lay_out", "times"]


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
    moves : Moves, optional
        What providers can do, where costs were given by actions or by a matrix.
    coordinates : Coordinates, optional
        How columns were combined such that each has a cost; None where they are those of the data.
    """

    columns: int
    cost: Vector | None = None
    fit_intercept: bool = False
    avoids_null: bool = False
    moves: Moves | None = None
    coordinates: Coordinates | None = None

    @property
    def given_cost(self) -> Cost:
        """Costs of the columns of the data, before any were combined."""
        return self.cost if self.moves is None else self.moves

    def outwards(self, coef: Array) -> Array:
        """Coefficients of the data from those of these columns."""
        return coef if self.coordinates is None else self.coordinates.outwards(coef)

    def inwards(self, coef: Array) -> Array:
        """Coefficients of these columns from those of the data."""
        return coef if self.coordinates is None else self.coordinates.inwards(coef)

    def offset(self, coef: Array) -> Any:
        """What intercepts beside these columns have more than those beside the data.

        Parameters
        ----------
        coef : ndarray of shape (n,) or (n, k)
            Coefficients of the data.
        """
        return 0.0 if self.coordinates is None else self.coordinates.offset(coef)

    def blur(self, lengths: Vector) -> float:
        """Rounding of these columns, in units of their lengths; none for those of the data."""
        return 0.0 if self.coordinates is None else self.coordinates.blur(lengths)

    @property
    def exact(self) -> np.ndarray | None:
        """Which of these columns are known not to be rounded; None if all are."""
        if self.coordinates is None or self.coordinates.exact.all():
            return None
        return self.coordinates.exact

    @cached_property
    def changeable(self) -> np.ndarray:
        """Columns that providers can change."""
        if self.cost is None:
            return np.arange(self.columns)
        return np.flatnonzero(np.isfinite(self.cost))

    @property
    def count(self) -> int:
        """How many columns providers can change."""
        return self.columns if self.cost is None else len(self.changeable)

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


def lay_out(
    matrix: Matrix, cost: Cost, *, fit_intercept: bool = False, avoids_null: bool = False
) -> tuple[Matrix, Layout]:
    """Data whose columns each have a cost, and what they mean.

    Parameters
    ----------
    matrix : Matrix
        The data.
    cost : ndarray of shape (n,), Moves or None
        What its columns cost.
    fit_intercept, avoids_null : bool
        As of a :class:`Layout`.
    """
    n = matrix.shape[1]
    if not isinstance(cost, Moves):
        return matrix, Layout(n, cost, fit_intercept, avoids_null)
    if cost.diagonal is not None:
        return matrix, Layout(n, cost.diagonal, fit_intercept, avoids_null, cost)
    told, coordinates = coordinates_of(matrix, cost, fit_intercept)
    return told, Layout(n, coordinates.cost, fit_intercept, avoids_null, cost, coordinates)


def times(factor: Vector | None, rows: Array) -> Array:
    """Rows of a vector or a block, each times its factor."""
    if factor is None:
        return rows
    return np.asarray(factor * rows if rows.ndim == 1 else factor[:, None] * rows)
