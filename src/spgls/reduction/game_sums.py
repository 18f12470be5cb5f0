"""A game on rows that were added up: what solvers ask of data, answered from sums alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from math import fsum, inf, nan
from typing import Any, Literal, NamedTuple

import numpy as np

from spgls.base.types import Vector
from spgls.base.vector import exact_terms
from spgls.game.moves import Cost, Moves
from spgls.reduction.added import Added
from spgls.reduction.columns import ColumnReduction
from spgls.reduction.coordinates import coordinates_of_sums
from spgls.reduction.layout import Layout

__all__ = ["Errors", "GameSums", "game_of_sums"]

#: Lengths below this share of the labels are nothing.
_NOTHING = 1e-12


class Errors(NamedTuple):
    """Errors of a predictor and gaps of goals to labels, as combinations of the columns summed."""

    error: Vector
    gap: Vector


def game_of_sums(
    sums: Added, cost: Cost, *, fit_intercept: bool = False, avoids_null: bool = False
) -> GameSums:
    """The game on rows that were added up, each of whose columns has a cost.

    Parameters
    ----------
    sums : Added
        What is left of the rows.
    cost : ndarray of shape (n,), Moves or None
        What their columns cost.
    fit_intercept, avoids_null : bool
        As of a :class:`Layout`.
    """
    n = sums.columns
    if not isinstance(cost, Moves):
        return GameSums(sums, Layout(n, cost, fit_intercept, avoids_null))
    if cost.diagonal is not None:
        return GameSums(sums, Layout(n, cost.diagonal, fit_intercept, avoids_null, cost))
    # An intercept takes up what was subtracted from the rows; without one nothing may be.
    own = sums if fit_intercept else sums.about(np.zeros(len(sums.shift)))
    origin = own.shift[:n] if fit_intercept else None
    made = coordinates_of_sums(cost, np.square(own.sizes[:n]), origin)
    told = own.combined(made)
    # The sum of a one-hot group is the intercept over again, up to rounding: which must not count
    # as a column that the learner may use as much as it likes.
    means = told.sums[:n] / told.weight if fit_intercept else np.zeros(n)
    flat = told.flat(np.flatnonzero(np.isinf(made.cost)), means)
    if len(flat):
        constant, empty = np.zeros(n), made.exact.copy()
        constant[flat], empty[flat] = means[flat], True
        if origin is not None:
            origin = origin + made.change.back_across(constant)
        told, made = told.emptied(flat), replace(made, origin=origin, exact=empty)
    layout = Layout(n, made.cost, fit_intercept, avoids_null, cost, made)
    return GameSums(told.blurred(min(made.blur(told.sizes[:n]), 1.0)), layout, sums)


def _exact_sum(terms: list[float]) -> float:
    """A sum without rounding; not a number where it leaves the range of double precision."""
    try:
        return fsum(terms)
    except (OverflowError, ValueError):
        return nan


@dataclass(frozen=True, eq=False)
class GameSums:
    """Sums of rows, and what their columns mean.

    Parameters
    ----------
    sums : Added
        What is left of the rows.
    layout : Layout
        What each column costs to change, and whether there is an intercept.
    given : Added, optional
        The sums before columns were combined, where they were.
    """

    sums: Added
    layout: Layout
    given: Added | None = None

    @cached_property
    def reductions(self) -> dict[str, Any]:
        """What the sums were reduced to so far, by engine."""
        return {}

    @property
    def label_size(self) -> float:
        """Weighted sum of squares of the labels.

        It is the unit of gaps where nothing of the labels is left to explain. Zero where the sums
        do not tell nothing from little: there is no unit then.
        """
        size = float(self.sums.raw[self.sums.columns])
        return size**2 if self._hidden <= _NOTHING * size else 0.0

    def unit(self, left: float) -> float:
        """What is left of the labels to explain, squared; zero if rounding can have left it."""
        return left if left > self._hidden**2 else 0.0

    @cached_property
    def _hidden(self) -> float:
        """Length that labels may have where nothing of them seems to be left."""
        sums = self.sums
        if not self.layout.fit_intercept:
            sums = sums.about(np.zeros(len(sums.shift)))
        return float(sums.hidden[sums.columns])

    def reduce(self, engine: Literal["gram", "qr"]) -> ColumnReduction | None:
        """Reduce to singular coordinates; None where the other engine is better tried."""
        if engine not in self.reductions:
            self.reductions[engine] = self.sums.reduce(self.layout, engine)
        kept: ColumnReduction | None = self.reductions[engine]
        return kept

    def errors(self, coef: Vector, intercept: float) -> Errors:
        """What a predictor leaves, before anybody moves."""
        n, shift = self.sums.columns, self.sums.shift
        error, gap = np.zeros((2, n + 4))
        error[:n], error[n] = coef, -1.0
        # The constant is small where means are large: its terms cancel, and are added exactly.
        error[-1] = _exact_sum([intercept, -float(shift[n]), *exact_terms(shift[:n], coef)])
        gap[n + 2], gap[-1] = 1.0, shift[n + 2]
        return Errors(error, gap)

    def loss(
        self, errors: Errors, groups: Iterable[tuple[float, float, float]]
    ) -> tuple[float, float]:
        """Mean over groups of sums of squares, and its rounding.

        Parameters
        ----------
        errors : Errors
            Of a predictor.
        groups : iterable of (share, s, c)
            Share of each group, and the weights of errors and of gaps once it has moved.
        """
        value = rounding = 0.0
        for share, s, c in groups:
            try:
                own, doubt = self.sums.square(s * errors.error + c * errors.gap)
            except OverflowError:
                # Python refuses powers that NumPy calls infinite.
                return inf, inf
            value, rounding = value + share * own, rounding + share * doubt
        return max(value, 0.0), rounding

    def products(self, combination: Vector) -> Vector:
        """``X'`` times a combination of the columns."""
        found = self.sums.cross(combination)
        n = self.sums.columns
        return np.asarray(found[:n] + self.sums.shift[:n] * found[-1])

    def inner(self, one: Vector, two: Vector) -> float:
        """Inner product of two combinations."""
        return float(one @ self.sums.cross(two))
