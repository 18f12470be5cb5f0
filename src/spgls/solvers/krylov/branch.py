"""Branch and bound over all norms, on Lagrangians that were measured on the data.

Multipliers are few at first: those that the game on the space has at some norms. Where the best of
them is not good enough at some norm, that norm's own is measured too, all such in one read.
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp, inf, isfinite
from typing import NamedTuple

import numpy as np

from spgls.base.types import Vector
from spgls.population import GroupMoments
from spgls.population.section import Sections
from spgls.solvers.iterative.prove import Kind
from spgls.solvers.krylov.lagrangians import Lagrangians
from spgls.solvers.krylov.matrices import Matrices

__all__ = ["Place", "Proof", "prove_population"]

#: Reads of the data for more multipliers, and how many multipliers each is for.
_ROUNDS, _WIDTH = 8, 16
#: First norms, over the best one, whose multipliers are measured.
_FIRST = np.exp(np.array([-8.0, -4.0, -2.0, -0.7, -0.1, 0.0, 0.1, 0.7, 2.0, 4.0]))
#: Others, over the smallest eigenvalue, and over a ridge.
_BELOW, _RIDGE = (0.5, 0.9), (0.25, 0.5, 1.0)
#: And others yet, over the squared size of the data: next to zero, or all that there may be.
_TINY, _ALL = (1e-15, 1e-13, 1e-11), tuple(10.0**k for k in range(-15, 6))
#: A norm so close in log t to the best is on a ladder to it.
_NEAR = 0.2
#: Width of intervals in log t at first, the least worth cutting, and how many there may be.
_STEP, _LEAST, _INTERVALS = 0.5, 1e-7, 20_000
#: Multipliers closer to each other than this, relatively, are one.
_SAME = 1e-6
#: Norms beyond which nothing is looked for, over the best.
_FAR = 1e40


class Place(NamedTuple):
    """The best predictor known: its squared norm, its loss, and the gap that is allowed."""

    t: float
    loss: float
    gap: float


class Proof(NamedTuple):
    """A lower bound of the loss of all predictors, whether it is certain, and reads it took."""

    lower: float
    kind: Kind
    reads: int


def prove_population(
    sections: Sections,
    place: Place,
    apart: float,
    size: float,
    measure: Callable[[Vector], Matrices],
) -> Proof:
    """Bound the loss of a population's game from below, for every predictor.

    Parameters
    ----------
    sections : Sections
        The game on the space, which tells multipliers that serve; nothing of it is relied on.
    place : Place
        The best predictor known.
    apart : float
        ``|y - z|^2``, free part included, at most.
    size : float
        ``|A|_F^2``.
    measure : callable
        Matrices below ``S(nu)`` of several multipliers.
    """
    search = _Search(sections, place, apart, size, measure)
    lower = search.run()
    # What only estimates lead to is compared with what is certain.
    if not search.estimated.any():
        return Proof(lower, "proved", search.reads)
    certain = search.again()
    if certain >= min(lower, place.loss - place.gap):
        return Proof(certain, "proved", search.reads)
    return Proof(lower, "estimated", search.reads)


class _Search:
    """State of a branch and bound: Lagrangians, and intervals that wait for better ones."""

    def __init__(
        self,
        sections: Sections,
        place: Place,
        apart: float,
        size: float,
        measure: Callable[[Vector], Matrices],
    ) -> None:
        units = sections.units
        self._sections, self._place, self._measure = sections, place, measure
        gammas = sections.groups.gammas * units.t
        groups = GroupMoments(gammas.tolist(), sections.groups.shares.tolist())
        ridge = float(sections.ridge) * units.sigma**2
        # Squares are not negative.
        self.lagrangians = Lagrangians(groups, apart, ridge, np.zeros(1), np.zeros((1, 3)))
        self.estimated = np.zeros(1, dtype=bool)
        self.reads, self._tried, self._scale = 0, [inf], size
        self.goal = place.loss - place.gap

    def run(self) -> float:
        """The bound, with more multipliers as long as they help."""
        t = self._place.t if 0.0 < self._place.t < inf else float(self._sections.units.t)
        self._add(np.append(self._multipliers(t * _FIRST), self._others()))
        lower = -inf
        for _ in range(_ROUNDS):
            lower, stuck = self._bound(t)
            if lower >= self.goal or not len(stuck):
                break
            if not self._add(self._multipliers(np.append(stuck, self._ladder(t, stuck)))):
                break
        return max(lower, 0.0)

    def _ladder(self, t: float, stuck: Vector) -> Vector:
        """Norms ever closer to the best one, from those close to it where a multiplier is wanted.

        There the Lagrangian of the best norm is not convex, and each other serves only from about
        half the way to it on.
        """
        away = np.log(stuck / t)
        near = [float(some.min()) for some in (away[away > 0.0], -away[away < 0.0]) if len(some)]
        if not near or min(near) > _NEAR:
            return np.zeros(0)
        least = np.sqrt(self._place.gap / (self._place.loss + self._place.gap))
        count = int(np.clip(np.log2(min(near) / least) + 2, 1, _WIDTH))
        rungs = min(near) * 0.5 ** np.arange(1, count + 1)
        return np.asarray(t * np.exp(np.append(rungs, -rungs)))

    def again(self) -> float:
        """The bound by what is certain alone."""
        kept = ~self.estimated
        own = self.lagrangians
        self.lagrangians = own._replace(nu=own.nu[kept], M=own.M[kept])
        self.estimated = self.estimated[kept]
        t = self._place.t if 0.0 < self._place.t < inf else float(self._sections.units.t)
        return max(self._bound(t)[0], 0.0)

    def _others(self) -> Vector:
        """Multipliers that serve the largest norms: next to zero, below it, and a ridge's own."""
        own, sections = self.lagrangians, self._sections
        lowest = sections.lowest * sections.units.sigma**2
        found = [0.0, *(-share * lowest for share in _BELOW)]
        found += [share * self._scale for share in (_TINY if sections.size else _ALL)]
        if own.groups.honest > 0.0:
            found += [share * own.ridge / own.groups.honest for share in _RIDGE]
        return np.array(found)

    def _multipliers(self, t: Vector) -> Vector:
        """Those of the game on the space at some norms."""
        sections, units = self._sections, self._sections.units
        if not sections.size:
            return np.zeros(0)
        inside = np.clip(t / units.t, 1e-60, 1e60)
        mu = sections.evaluate(inside).mu
        return np.asarray((mu - sections.lowest) * units.sigma**2)

    def _add(self, nu: Vector) -> bool:
        """Measure multipliers that are new; whether there were any."""
        new: list[float] = []
        for one in nu[np.isfinite(nu)].tolist():
            known = np.array(self._tried + new)
            if (np.abs(known - one) > _SAME * abs(one) + 1e-18 * self._scale).all():
                new.append(one)
        if not new:
            return False
        some = np.array(new)
        found = self._measure(some)
        self.reads += found.reads
        self._tried += new
        self.lagrangians = self.lagrangians.joined(found.nu, found.M)
        self.estimated = np.append(self.estimated, found.estimated)
        return True

    def _bound(self, t: float) -> tuple[float, Vector]:
        """The least bound over all norms, and norms where another multiplier is wanted."""
        low, first = self._end(t, exp(-4.0), self.lagrangians.towards_zero, t / _FAR)
        high, last = self._end(t, exp(4.0), self.lagrangians.towards_infinity, t * _FAR)
        count = int(np.log(high / low) / _STEP) + 2
        edges = low * np.exp(np.log(high / low) / (count - 1) * np.arange(count))
        edges[-1] = high
        left, right = edges[:-1], edges[1:]
        settled, stuck, total = min(first, last), [], 0
        if first < self.goal:
            stuck.append((low, first))
        if last < self.goal:
            stuck.append((high, last))
        while len(left):
            total += len(left)
            bound, value = self.lagrangians.on_intervals(left, right)
            wide = np.log(right / left) > _LEAST
            # Another multiplier is wanted where this one is not good enough in the middle.
            poor = (bound < self.goal) & ~((value > self.goal) & wide)
            cut = (bound < self.goal) & ~poor
            if total > _INTERVALS:
                poor, cut = poor | cut, np.zeros_like(cut)
            middle = np.sqrt(left) * np.sqrt(right)
            stuck += list(zip(middle[poor].tolist(), value[poor].tolist(), strict=True))
            settled = min(settled, float(bound.min(where=~cut, initial=inf)))
            left, right = (
                np.concatenate([left[cut], middle[cut]]),
                np.concatenate([middle[cut], right[cut]]),
            )
        return settled, _worst(stuck)

    def _end(
        self, t: float, step: float, bound: Callable[[float], float], last: float
    ) -> tuple[float, float]:
        """How far out the loss is bounded well enough, and by what."""
        at = t * step
        while True:
            found = bound(at)
            if found >= self.goal or not min(at, last) > 0.0 or not isfinite(at):
                return at, found
            if (at < last) == (step < 1.0):
                return at, found
            at *= step


def _worst(stuck: list[tuple[float, float]]) -> Vector:
    """Some of the norms where bounds are too low: the lowest, and others all over."""
    if not stuck:
        return np.zeros(0)
    t, value = np.array(sorted(stuck)).T
    some = np.linspace(0, len(t) - 1, min(len(t), _WIDTH)).astype(int)
    return np.unique(t[np.append(some, int(value.argmin()))])
