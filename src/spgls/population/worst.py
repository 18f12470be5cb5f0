"""The learner's least loss against the worst of several populations, at prescribed norms.

At ``|v|^2 = t`` a mixture of populations is a population, and

    F(t) = max over mixtures of phi(t)

is what :class:`Sections` evaluates, at a mixture of its own for each ``t``. The populations come as
a chain: the worst mixture consists of one of them, or of two neighbours.

Where the best answer to the worst mixture is not unique (the hard case), the worst loss of each of
them can exceed ``F``. Values here are worst losses of predictors; ``least`` tells how far below
them bounds have to stay.
"""

from __future__ import annotations

from math import inf

import numpy as np

from spgls.base.types import Array, Vector
from spgls.population.mixtures import Chain
from spgls.population.moments import Numbers
from spgls.population.multiplier import blocks
from spgls.population.places import Bracket, Links, Places
from spgls.population.section import EXACT, LOOSE, Section, Sections
from spgls.reduction.reduced import ReducedGame

__all__ = ["WorstSections"]

#: Gain of a better mixture, in units of the labels, that does not matter on a grid.
_COARSE = 1e-8
#: The same in a proof, in units of the gap that it is to reach.
_SHARE = 1e-2
_MAX_STEPS = 60


class WorstSections(Sections):
    """A game against the worst of a chain of populations, in convenient units.

    Parameters
    ----------
    game : ReducedGame
        The reduced data.
    gammas : ndarray of shape (G,)
        Strengths of all groups, increasing; the last is infinity.
    shares : ndarray of shape (K, G)
        Shares of the groups in each population, in the order of the chain.
    ridge : float
        Penalty in the game's own units.
    gap : float
        Distance from the infimum that a proof is to reach, in units of ``|y|^2``.
    ulps : float
        Relative accuracy of the game's coordinates in ulps.

    Attributes
    ----------
    least : float
        Least ``F`` seen; no bound of the whole exceeds it.
    """

    alone = False

    def __init__(
        self,
        game: ReducedGame,
        gammas: Vector,
        shares: Array,
        ridge: float,
        gap: float,
        ulps: float = 2.0,
    ) -> None:
        super().__init__(game, gammas, shares.mean(axis=0), ridge, ulps)
        self._chain = Chain(self, gammas / self.units.t, shares)
        self._settled = _SHARE * gap * self.yy
        # Logarithms of t, in order, places of the worst mixture there, and rates of these.
        self._known: tuple[Vector, ...] = (np.empty(0),) * 3
        # Places of the mixtures that were answered at a single t: where several are equally bad,
        # who asks again must hear of the same one.
        self._answered: dict[float, float] = {}
        self.least = inf

    def value_at_infinity(self) -> float:
        """Limit of ``F`` as ``t`` grows."""
        return self._chain.value_at_infinity()

    def weights_at(self, t: float) -> Vector:
        """Weights of the populations in the mixture that the predictor of ``t`` answers."""
        place = self._answered.get(t)
        if place is None:
            place = float(self._places(np.array([t]), 0.0).primal[0])
        return np.asarray(np.maximum(0.0, 1.0 - abs(np.arange(self._chain.links + 1) - place)))

    def facing(self, t: Vector) -> Sections:
        """The worst mixture at each ``t``: of all, its bounds are the highest there."""
        at = self._places(t, self._settled)
        self.least = min(self.least, float((at.value + self.ridge * t).min(initial=inf)))
        return self._chain.game(at.dual)

    def facing_one(self, t: float) -> Sections:
        """The worst mixture at a single ``t``, as a game of its own."""
        return self._chain.game(float(self._places(np.array([t]), self._settled).dual[0]))

    def evaluate(self, t: Numbers, tol: float = EXACT, guess: Numbers | None = None) -> Section:
        """``F`` and its derivatives at positive ``t``, as :meth:`Sections.evaluate` does."""
        if not isinstance(t, np.ndarray):
            at = self._places(np.array([t]), 0.0)
            place, over, bend, mu = (
                float(part[0]) for part in (at.primal, at.over, at.bend, at.mu)
            )
            self._answered[t] = place
            found = self._chain.game(place).evaluate(t, EXACT, mu)
            return found._replace(value=found.value + over, curvature=found.curvature + bend)
        # What a mixture lacks to first order shows in worst losses; to second, in its own.
        at = self._places(t, 0.0 if tol < LOOSE else _COARSE * self.yy)
        found = self._chain.game(at.primal).evaluate(t, tol, at.mu)
        return found._replace(value=found.value + at.over, curvature=found.curvature + at.bend)

    def _places(self, t: Vector, allowed: float) -> Places:
        """Places on the chain of the worst mixture at each ``t``.

        Parameters
        ----------
        t : ndarray of shape (T,)
            Where.
        allowed : float
            What a better mixture may gain; zero finds them to rounding.
        """
        place, active = self._start(t), np.arange(t.size)
        found, bracket = Places.before(place), Bracket.whole(t.size, float(self._chain.links))
        for i in range(_MAX_STEPS):
            parts = [
                self._chain.look(t[some], place[some], found.mu[some])
                for some in (active[rows] for rows in blocks(active.size, self.size))
            ]
            here = Links(*(np.concatenate(part) for part in zip(*parts, strict=True)))
            found.take(active, place[active], here)
            place[active], done = bracket.narrow(active, place[active], here, allowed, i)
            active = active[~done]
            if not active.size:
                break
        self._remember(t, found)
        return found

    def _start(self, t: Vector) -> Vector:
        """Where on the chain to begin: as the nearest place known moves, or in the middle."""
        known, place, rate = self._known
        if not known.size:
            return np.full(t.size, 0.5 * self._chain.links)
        here = np.log(t)
        above = np.clip(known.searchsorted(here), 1, known.size - 1) if known.size > 1 else 0
        below = np.maximum(above - 1, 0)
        near = np.where(here - known[below] < known[above] - here, below, above)
        start = place[near] + rate[near] * (here - known[near])
        first = np.floor(np.minimum(place[near], self._chain.links - 1.0))
        return np.where(np.isnan(start), place[near], np.clip(start, first, first + 1.0))

    def _remember(self, t: Vector, found: Places) -> None:
        log_t, first = np.unique(np.append(self._known[0], np.log(t)), return_index=True)
        parts = zip(self._known[1:], (found.dual, found.rate), strict=True)
        self._known = log_t, *(np.append(old, new)[first] for old, new in parts)
