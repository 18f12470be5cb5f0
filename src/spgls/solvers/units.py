"""Units in which nothing that is squared leaves the range of double precision.

Labels and goals times ``b``, and prices times ``a^2``, are another telling of the same game: its
strengths are ``(b/a)^2`` times as large, a ridge ``a^2`` times, coefficients ``b`` times and
objectives ``b^2`` times. Powers of two change no digit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import frexp, isinf, sqrt
from typing import TypeAlias, overload

import numpy as np

from spgls.base.types import Vector
from spgls.base.vector import dot
from spgls.game.between import Between
from spgls.game.providers import Population, PopulationRange
from spgls.matrix.squares import head_largest, head_square
from spgls.reduction.data import GameData
from spgls.reduction.game_sums import GameSums
from spgls.reduction.layout import Layout
from spgls.solvers.iterative.early import begun_products
from spgls.solvers.solution import End, Solution
from spgls.sphere.certificate import Certificate

__all__ = ["Units", "units_of", "units_of_sums"]

#: Whom the learner meets.
Who: TypeAlias = float | Population | PopulationRange

#: Squares of squares of numbers between these are numbers too.
_SMALL, _LARGE = 1e-60, 1e60
#: The same of strengths, which are squares themselves.
_WEAKEST, _STRONGEST = 1e150, 1e-150
#: Squares below and above these are no numbers, nor are those of factors with so many bits.
_LEAST, _MOST, _MOST_BITS = 1e-140, 1e152, 440
#: Strengths that are this far from both are looked at no closer.
_FAR = 1e30
#: Rows that tell the scale of the data, and entries of all of them.
_ROWS, _ENTRIES = 256, 2**13
#: Numbers below the first have fewer digits; two roundings change them by no more than the second.
_SHORT, _LAST = float(np.finfo(np.float64).tiny), 2 * float(np.finfo(np.float64).smallest_subnormal)


@dataclass(frozen=True)
class Units:
    """Factors of another telling of a game.

    Attributes
    ----------
    a, b : float
        Powers of two, for the data and for labels and goals.
    """

    a: float
    b: float

    def told(self, data: GameData) -> GameData:
        """The data of the game in these units."""
        own = self._priced(data.layout)
        return replace(data, y=data.y * self.b, z=data.z * self.b, layout=own)

    def _priced(self, layout: Layout) -> Layout:
        cost = np.ones(layout.columns) if layout.cost is None else layout.cost
        return replace(layout, cost=cost * self.a * self.a)

    def told_of_sums(self, data: GameSums) -> GameSums:
        """The same of rows that were added up."""
        factors = np.ones(data.sums.columns + 4)
        factors[-4:-1] = self.b
        return GameSums(data.sums.rescaled(factors), self._priced(data.layout))

    @overload
    def people(self, who: float | Population) -> float | Population: ...
    @overload
    def people(self, who: PopulationRange) -> PopulationRange: ...
    def people(self, who: Who) -> Who:
        """Whom the learner meets, in these units."""
        if isinstance(who, PopulationRange):
            ends = who.gamma
            told = Between(self._strength(ends.low), self._strength(ends.high))
            return PopulationRange(told, who.honest)
        if isinstance(who, Population):
            return Population(tuple(self._strength(gamma) for gamma in who.gammas), who.shares)
        return self._strength(who)

    def _strength(self, gamma: float) -> float:
        if isinf(gamma):
            return gamma
        told = gamma / self.a * self.b / self.a * self.b
        if not _STRONGEST <= told <= _WEAKEST:
            raise ValueError(
                f"gamma {gamma:.3g} is out of range: where X and the labels are of order one it is "
                f"{told:.3g}, and squares of that are no numbers. Bring X, y and z to other scales."
            )
        return told

    def ridge(self, ridge: float) -> float:
        """A penalty in these units."""
        return ridge * self.a * self.a

    def coef(self, coef: Vector) -> Vector:
        """Coefficients in these units."""
        return coef * self.b

    def of_certificate(self, proof: Certificate) -> Certificate:
        """A certificate in the units of the game itself."""
        b = self.b
        lower, gap = proof.lower_bound / b / b, proof.gap / b / b
        # Units are powers of two: only what is too small for all its digits is rounded.
        if lower < _SHORT:
            lower = max(0.0, lower - _LAST)
        return replace(proof, lower_bound=lower, gap=gap + _LAST if gap < _SHORT else gap)

    def back(self, solution: Solution, who: float | Population | PopulationRange) -> Solution:
        """A solution in the units of the game itself."""
        b, proof = self.b, solution.certificate
        # The multiplier of a population is that of a squared norm, not of the unit sphere.
        unit = self.a if isinstance(who, Population | PopulationRange) else b
        history = tuple(
            replace(step, objective=step.objective / b / b, residual=step.residual / b / b)
            for step in solution.history
        )
        return replace(
            solution,
            coef=solution.coef / b,
            intercept=solution.intercept / b,
            multiplier=solution.multiplier / unit / unit,
            objective=solution.objective / b / b,
            certificate=self.of_certificate(proof),
            history=history,
            ends=self._ends(solution, who),
        )

    def _ends(
        self, solution: Solution, who: float | Population | PopulationRange
    ) -> tuple[End, ...]:
        """The ends of a range, told in the units of the game itself."""
        if not isinstance(who, PopulationRange):
            return ()
        b = self.b
        return tuple(
            End(population, end.objective / b / b, end.best / b / b, end.binds)
            for population, end in zip(who.corners, solution.ends, strict=True)
        )


def units_of(data: GameData, games: Sequence[Who] = ()) -> Units | None:
    """Units that suit the data; None where its own do.

    Data whose largest numbers have no square in double precision is refused, and so are strengths
    of games that have none once data and labels are of order one.
    """
    count = max(min(_ROWS, _ENTRIES // max(data.matrix.shape[1], 1)), 1)
    if data.layout.price is None and _plain(data, count, games):
        return None
    target = max(max(float(t.max()), -float(t.min())) for t in (data.y, data.z))
    with np.errstate(invalid="ignore"):
        columns = head_largest(data.matrix, count)
    largest = float(columns.max(initial=0.0))
    if target * sqrt(len(data.y)) > _MOST:
        raise ValueError(
            f"y and z hold numbers too large to be squared in double precision, {target:.3g} at "
            "most; bring them to a smaller scale."
        )
    if _MOST < largest * sqrt(data.matrix.shape[0]) < np.inf:
        raise ValueError(
            f"X holds numbers too large to be squared in double precision, {largest:.3g} among the "
            "first rows; bring them to a smaller scale."
        )
    if 0.0 < largest < _LEAST:
        raise ValueError(
            f"X holds numbers too small to be squared in double precision, {largest:.3g} at most; "
            "bring them to a larger scale."
        )
    size, price = largest, data.layout.price
    if price is not None:
        size = float((columns[data.layout.changeable] * price).max(initial=0.0))
    return _units_for(target, size, games)


def units_of_sums(data: GameSums, games: Sequence[Who] = ()) -> Units | None:
    """Units that suit what rows add up to; None where their own do."""
    n, root = data.sums.columns, sqrt(max(data.sums.weight, 1.0))
    raw, layout = data.sums.raw / root, data.layout
    own = raw[layout.changeable] * (1.0 if layout.price is None else layout.price)
    return _units_for(float(raw[n : n + 2].max()), float(own.max(initial=0.0)), games)


def _units_for(target: float, size: float, games: Sequence[Who]) -> Units | None:
    """Units for labels and goals, and for priced data, that reach so far."""
    units = Units(_to_one(size, _MOST_BITS), _to_one(target, 1000))
    for game in games:
        # Strengths that are out of range there are refused, whichever units are taken.
        units.people(game)
    if all(_SMALL <= one <= _LARGE or not 0.0 < one < np.inf for one in (target, size)):
        return None
    return units


def _strengths(who: Who) -> tuple[float, ...]:
    """Of all that may be strategic."""
    if isinstance(who, PopulationRange):
        return who.gamma.low, who.gamma.high
    return who.gammas if isinstance(who, Population) else (who,)


def _plain(data: GameData, count: int, games: Sequence[Who]) -> bool:
    """Whether sums of squares say at once that nothing is out of the ordinary."""
    m, n = data.matrix.shape
    with np.errstate(all="ignore"):
        y, z = data.raw_squares
        if data.weight is not None:
            y, z = dot(data.y, data.y), dot(data.z, data.z)
        begun = begun_products(data)
        if begun is not None:
            # All rows tell more than the first, and somebody is at it already.
            count, own = m, begun.total()
        else:
            own = head_square(data.matrix, count)
    least = m * min(count, m) * n * _SMALL**2
    if not (least < y + z < _LARGE**2 and least < own < _LARGE**2):
        return False
    # In units of the rows, which may be many.
    unit = own / (y + z)
    strengths = (gamma for who in games for gamma in _strengths(who) if not isinf(gamma))
    return all(_STRONGEST * _FAR <= gamma * unit <= _WEAKEST / _FAR for gamma in strengths)


def _to_one(size: float, most: int) -> float:
    """Power of two that brings a number to order one, with so many bits at most."""
    if not 0.0 < size < np.inf:
        return 1.0
    return 2.0 ** max(min(-frexp(size)[1], most), -most)
