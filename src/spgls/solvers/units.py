"""Units in which nothing that is squared leaves the range of double precision.

Labels and goals times ``b``, prices times ``a^2`` and weights times ``w^2`` are another telling of
the same game: its strengths are ``(b/a)^2`` times as large, a ridge ``(a w)^2`` times, coefficients
``b`` times and objectives ``(b w)^2`` times. Powers of two change no digit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import copysign, frexp, inf, isinf, ldexp, sqrt
from typing import TypeAlias, overload

import numpy as np

from spgls.base.cached import cached_property
from spgls.base.types import Vector
from spgls.base.vector import dot
from spgls.game.between import Between
from spgls.game.providers import Population, PopulationRange
from spgls.matrix.squares import head_largest, head_square
from spgls.reduction.data import GameData
from spgls.reduction.game_sums import GameSums
from spgls.reduction.layout import Layout
from spgls.solvers.iterative.early import begun_products
from spgls.solvers.short import refuse_short_columns
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
#: Strengths and ridges that are this far from them are looked at no closer.
_FAR = 1e30
#: Weights between these do no harm; those of rows that were added up must be between the others.
_LIGHT, _HEAVY = 1e-30, 1e30
_LIGHTEST, _HEAVIEST = 1e-250, 1e250
#: Rows that tell the scale of the data, and entries of all of them.
_ROWS, _ENTRIES = 256, 2**13
#: Numbers below the first have fewer digits; two roundings change them by no more than the second.
_SHORT, _LAST = float(np.finfo(np.float64).tiny), 2 * float(np.finfo(np.float64).smallest_subnormal)


@dataclass(frozen=True)
class Units:
    """Factors of another telling of a game.

    Attributes
    ----------
    a, b, w : float
        Powers of two, for the data, for labels and goals, and for roots of weights.
    """

    a: float
    b: float
    w: float = 1.0

    @cached_property
    def _bits(self) -> tuple[int, int, int]:
        """Their logarithms: products of them may not be numbers where what they multiply is."""
        a, b, w = (frexp(unit)[1] - 1 for unit in (self.a, self.b, self.w))
        return a, b, w

    def told(self, data: GameData) -> GameData:
        """The data of the game in these units."""
        weight = None if data.weight is None else data.weight * self.w * self.w
        own = self._priced(data.layout)
        return replace(data, y=data.y * self.b, z=data.z * self.b, weight=weight, layout=own)

    def _priced(self, layout: Layout) -> Layout:
        cost = np.ones(layout.columns) if layout.cost is None else layout.cost
        return replace(layout, cost=cost * self.a * self.a)

    def told_of_sums(self, data: GameSums) -> GameSums:
        """The same of rows that were added up."""
        factors = np.ones(data.sums.columns + 4)
        factors[-4:-1] = self.b
        shift = data.sums.shift * factors[:-1]
        sums = replace(data.sums.rescaled(factors * self.w), shift=shift)
        return GameSums(sums, self._priced(data.layout))

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
        a, b, _ = self._bits
        told = _times(gamma, 2 * (b - a))
        if not _STRONGEST <= told <= _WEAKEST:
            raise ValueError(
                f"gamma {gamma:.3g} is out of range: where X and the labels are of order one it is "
                f"{told:.3g}, and squares of that are no numbers. Bring X, y and z to other scales."
            )
        return told

    def ridge(self, ridge: float) -> float:
        """A penalty in these units."""
        a, _, w = self._bits
        told = _times(ridge, 2 * (a + w))
        if told > _WEAKEST:
            raise ValueError(
                f"ridge {ridge:.3g} is out of range: where X and the weights are of order one it "
                f"is {told:.3g}, and squares of that are no numbers. Take a smaller one: the "
                "coefficients are zero either way."
            )
        return told

    def _of_loss(self, value: float) -> float:
        """Something that is measured like objectives, in the units of the game itself."""
        _, b, w = self._bits
        return _times(value, -2 * (b + w))

    def coef(self, coef: Vector) -> Vector:
        """Coefficients in these units."""
        return coef * self.b

    def of_certificate(self, proof: Certificate) -> Certificate:
        """A certificate in the units of the game itself."""
        lower, gap = self._of_loss(proof.lower_bound), self._of_loss(proof.gap)
        # Units are powers of two: only what is too small for all its digits is rounded.
        if lower < _SHORT:
            lower = max(0.0, lower - _LAST)
        return replace(proof, lower_bound=lower, gap=gap + _LAST if gap < _SHORT else gap)

    def back(self, solution: Solution, who: float | Population | PopulationRange) -> Solution:
        """A solution in the units of the game itself."""
        proof, of_loss, (a_bits, b_bits, w_bits) = solution.certificate, self._of_loss, self._bits
        # The multiplier of a population is that of a squared norm, not of the unit sphere.
        unit = w_bits + (a_bits if isinstance(who, Population | PopulationRange) else b_bits)
        history = tuple(
            replace(step, objective=of_loss(step.objective), residual=of_loss(step.residual))
            for step in solution.history
        )
        return replace(
            solution,
            coef=solution.coef / self.b,
            intercept=solution.intercept / self.b,
            multiplier=_times(solution.multiplier, -2 * unit),
            objective=of_loss(solution.objective),
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
        of_loss = self._of_loss
        return tuple(
            End(population, of_loss(end.objective), of_loss(end.best), end.binds)
            for population, end in zip(who.corners, solution.ends, strict=True)
        )


def units_of(data: GameData, games: Sequence[Who] = (), ridge: float = 0.0) -> Units | None:
    """Units that suit the data; None where its own do.

    Data whose largest numbers have no square in double precision is refused, and so are strengths
    and ridges of games that have none once data and labels are of order one, and columns that no
    bound could speak about.
    """
    units = _units_of(data, games, ridge)
    refuse_short_columns(data, honest=any(_may_be_honest(game) for game in games))
    return units


def _units_of(data: GameData, games: Sequence[Who], ridge: float) -> Units | None:
    count = max(min(_ROWS, _ENTRIES // max(data.matrix.shape[1], 1)), 1)
    heaviest, lightest = 1.0, 1.0
    if data.weight is not None:
        heaviest, lightest = float(data.weight.max()), _least_positive(data.weight)
    usual = data.layout.price is None and _LIGHT <= heaviest <= _HEAVY
    usual &= lightest >= _LIGHTEST * heaviest
    if usual and _plain(data, count, games, ridge):
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
    if lightest < _LIGHTEST * heaviest:
        raise ValueError(
            f"sample_weight holds numbers from {lightest:.3g} to {heaviest:.3g}, too far apart for "
            "sums of squares in double precision; set the smallest ones to zero."
        )
    if max(target, 1.0) * sqrt(len(data.y)) * sqrt(heaviest) > _MOST:
        raise ValueError(
            f"sample_weight holds numbers too large for squares of labels to be added up by them, "
            f"{heaviest:.3g} at most; bring them to a smaller scale."
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
    return _units_for(target, size, heaviest, games, ridge)


def units_of_sums(data: GameSums, games: Sequence[Who] = (), ridge: float = 0.0) -> Units | None:
    """Units that suit what rows add up to; None where their own do."""
    n, weight = data.sums.columns, data.sums.weight
    if not _LIGHTEST <= weight <= _HEAVIEST:
        raise ValueError(
            f"The weights of these rows add up to {weight:.3g}, and what they add up to does not "
            "fit into double precision. Give them other weights, or let old ones decay less often."
        )
    raw, layout = data.sums.raw / sqrt(weight), data.layout
    own = raw[layout.changeable] * (1.0 if layout.price is None else layout.price)
    target, size = float(raw[n : n + 2].max()), float(own.max(initial=0.0))
    return _units_for(target, size, weight, games, ridge)


def _units_for(
    target: float, size: float, weight: float, games: Sequence[Who], ridge: float
) -> Units | None:
    """Units for labels and goals, for priced data and for weights that reach so far."""
    units = Units(_to_one(size, _MOST_BITS), _to_one(target, 1000), _to_one(sqrt(weight), 1000))
    for game in games:
        # Strengths that are out of range there are refused, whichever units are taken.
        units.people(game)
    units.ridge(ridge)
    usual = all(_SMALL <= one <= _LARGE or not 0.0 < one < np.inf for one in (target, size))
    if not _LIGHT <= weight <= _HEAVY:
        return units if not usual else Units(1.0, 1.0, units.w)
    return None if usual else replace(units, w=1.0)


def _strengths(who: Who) -> tuple[float, ...]:
    """Of all that may be strategic."""
    if isinstance(who, PopulationRange):
        return who.gamma.low, who.gamma.high
    return who.gammas if isinstance(who, Population) else (who,)


def _may_be_honest(who: Who) -> bool:
    """Whether some people, perhaps, change nothing."""
    if not isinstance(who, Population | PopulationRange):
        return False
    share = who.honest
    return (share.high if isinstance(share, Between) else share) > 0.0


def _plain(data: GameData, count: int, games: Sequence[Who], ridge: float) -> bool:
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
    if ridge > own * _WEAKEST / _FAR:
        return False
    # In units of the rows, which may be many.
    unit = own / (y + z)
    strengths = (gamma for who in games for gamma in _strengths(who) if not isinf(gamma))
    return all(_STRONGEST * _FAR <= gamma * unit <= _WEAKEST / _FAR for gamma in strengths)


def _times(value: float, bits: int) -> float:
    """A number times a power of two, rounded once where it is too small for all its digits."""
    try:
        return ldexp(value, bits)
    except OverflowError:
        return copysign(inf, value)


def _least_positive(weight: Vector) -> float:
    least = float(weight.min())
    if least > 0.0:
        return least
    own = np.asarray(weight)
    return float(own[own > 0.0].min())


def _to_one(size: float, most: int) -> float:
    """Power of two that brings a number to order one, with so many bits at most."""
    if not 0.0 < size < np.inf:
        return 1.0
    return 2.0 ** max(min(-frexp(size)[1], most), -most)
