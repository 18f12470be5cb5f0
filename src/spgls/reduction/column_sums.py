"""Games on the same rows with other columns, each reduced without reading the rows again.

Whether people can change a column, what that costs, and whether it is there at all, are questions
about columns: the sums over the rows stay what they are. A column that nobody can change is
eliminated from them, a column that is not there is left out, and a cost is a factor.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from spgls.base.types import Array, Vector
from spgls.matrix.some_columns import SomeColumns
from spgls.matrix.squares import sum_rounding_one_by_one
from spgls.reduction.columns import ColumnReduction
from spgls.reduction.data import GameData
from spgls.reduction.dependence import exact_dependence
from spgls.reduction.exact import Engine, few_rows, moment_of
from spgls.reduction.second_moments import reduce_moments
from spgls.reduction.sums import triangle
from spgls.reduction.triangular import reduce_triangle

__all__ = ["ColumnChange", "ColumnSums"]


class ColumnChange(NamedTuple):
    """Columns as they would be.

    Attributes
    ----------
    kept : ndarray of int
        Columns that are there, in order.
    cost : ndarray of shape (kept,), optional
        What each of these costs to change, as in :class:`Layout`.
    """

    kept: np.ndarray
    cost: Vector | None

    def of(self, data: GameData) -> GameData:
        """The game with these columns, nothing copied."""
        layout = replace(data.layout, columns=len(self.kept), cost=self.cost)
        if len(self.kept) == data.layout.columns:
            return replace(data, layout=layout)
        return replace(data, matrix=SomeColumns(data.matrix, self.kept), layout=layout)


@dataclass(frozen=True, eq=False)
class ColumnSums:
    """Sums over the rows of a game, made once, for games with other columns.

    Parameters
    ----------
    data : GameData
        The game as it is.
    """

    data: GameData

    @cached_property
    def moment(self) -> Array:
        """Second moments."""
        moment = moment_of(self.data, [(slice(None), self.data.matrix)])
        self.data.check_finite(moment)
        return moment

    @cached_property
    def rows(self) -> Array:
        """A triangular factor."""
        self.data.check_finite()
        return triangle(few_rows(self.data, [(slice(None), self.data.matrix)]))

    @property
    def reads(self) -> int:
        """How often the rows were read so far."""
        return sum(name in vars(self) for name in ("moment", "rows"))

    def reduce(self, changed: GameData, kept: np.ndarray, engine: Engine) -> ColumnReduction | None:
        """Reduce the game with other columns.

        Parameters
        ----------
        changed : GameData
            That game, from :meth:`ColumnChange.of`.
        kept : ndarray of int
            Its columns among those of the sums.
        engine : {"gram", "qr"}
            As in :func:`~spgls.reduction.exact.reduce_spectral`.

        Returns
        -------
        ColumnReduction or None
            None where squaring the data leaves a rank undecided.
        """
        data, layout = self.data, changed.layout
        count, n = data.matrix.shape
        origin = data.origin
        if origin.row is not None:
            origin = origin._replace(row=origin.row[kept])
        # Labels, goals and ones stand behind the columns.
        order = np.append(kept, np.arange(n, n + 2 + layout.fit_intercept))
        if engine == "gram":
            one_by_one = sum_rounding_one_by_one(data.matrix)
            moment = self.moment[np.ix_(order, order)]
            return reduce_moments(layout, moment, origin, count, one_by_one=one_by_one)
        dependence = partial(exact_dependence, changed)
        return reduce_triangle(layout, self.rows[:, order], origin, count, dependence)
