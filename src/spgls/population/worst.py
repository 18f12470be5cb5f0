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

from collections.abc import Callable
from math import inf
from typing import TypeAlias

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
#: The same in units of how far an interval of a proof is above what it is to reach.
_SPARE = 0.1
#: How small the derivative along the chain has to be for a step of Newton's method in ``log t``, in
#: units of that by ``log t``.
_STEP = 0.03
_MAX_STEPS = 60

#: What a better mixture may gain, by what was found, and in which rows.
_Rule: TypeAlias = Callable[[Links, np.ndarray], Numbers]


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
        # Least worst loss of a predictor that was evaluated alone.
        self._attained = inf

    def value_at_infinity(self) -> float:
        """Limit of ``F`` as ``t`` grows."""
        return self._chain.value_at_infinity()

    def weights_at(self, t: float) -> Vector:
        """Weights of the populations in the mixture that the predictor of ``t`` answers."""
        place = self._answered.get(t)
        if place is None:
            place = float(self._places(np.array([t]), _exactly).primal[0])
        return np.asarray(np.maximum(0.0, 1.0 - abs(np.arange(self._chain.links + 1) - place)))

    def facing(self, t: Vector) -> Sections:
        """The worst mixture at each ``t``, nearly: of all, its bounds are the highest there."""
        penalty = self.ridge * t

        def spare(here: Links, rows: np.ndarray) -> Numbers:
            more = here.value + penalty[rows] - self._attained
            return np.fmax(self._settled, _SPARE * more)

        at = self._places(t, spare)
        self.least = min(self.least, float((at.value + penalty).min(initial=inf)))
        return self._chain.game(at.dual)

    def facing_one(self, t: float) -> Sections:
        """The worst mixture at a single ``t``, as a game of its own."""
        return self._chain.game(float(self._places(np.array([t]), self._settle).dual[0]))

    def evaluate(self, t: Numbers, tol: float = EXACT, guess: Numbers | None = None) -> Section:
        """``F`` and its derivatives at positive ``t``, as :meth:`Sections.evaluate` does."""
        if not isinstance(t, np.ndarray):
            return self._single(t, _exactly)
        # What a mixture lacks to first order shows in worst losses; to second, in its own.
        at = self._places(t, _exactly if tol < LOOSE else self._coarsely)
        found = self._chain.game(at.primal).evaluate(t, tol, at.mu)
        return _of_the_worst(found, at.over, at.lean, at.bend)

    def step_to(self, t: float, guess: float) -> Section:
        """The same at a single ``t``, well enough for Newton's method in ``log t``.

        Where the slope is nothing but rounding, so is what is missing.
        """
        return self._single(t, _for_a_step)

    def _single(self, t: float, rule: _Rule) -> Section:
        at = self._places(np.array([t]), rule)
        place, mu, over, lean, bend = (
            float(part[0]) for part in (at.primal, at.mu, at.over, at.lean, at.bend)
        )
        self._answered[t] = place
        found = self._chain.game(place).evaluate(t, EXACT, mu)
        self._attained = min(self._attained, found.value + over)
        return _of_the_worst(found, over, lean, bend)

    def _places(self, t: Vector, rule: _Rule) -> Places:
        """Places on the chain of the worst mixture at each ``t``.

        Parameters
        ----------
        t : ndarray of shape (T,)
            Where.
        rule : callable
            What a better mixture may gain; zero finds them to rounding.
        """
        place, active = self._start(t), np.arange(t.size)
        found, bracket = Places.before(place), Bracket(t.size, float(self._chain.links))
        for i in range(_MAX_STEPS):
            parts = [
                self._chain.look(t[some], place[some], found.mu[some])
                for some in (active[rows] for rows in blocks(active.size, self.size))
            ]
            here = Links(*(np.concatenate(part) for part in zip(*parts, strict=True)))
            found.take(active, place[active], here)
            allowed = rule(here, active)
            place[active], done = bracket.narrow(active, place[active], here, allowed, i)
            active = active[~done]
            if not active.size:
                break
        self._remember(t, place, found.rate)
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

    def _remember(self, t: Vector, place: Vector, rate: Vector) -> None:
        log_t, first = np.unique(np.append(self._known[0], np.log(t)), return_index=True)
        parts = zip(self._known[1:], (place, rate), strict=True)
        self._known = log_t, *(np.append(old, new)[first] for old, new in parts)

    def _settle(self, here: Links, rows: np.ndarray) -> Numbers:
        """Rule of proofs."""
        return self._settled

    def _coarsely(self, here: Links, rows: np.ndarray) -> Numbers:
        """Rule of grids."""
        return np.fmax(_COARSE * self.yy, _for_a_step(here, rows))


def _of_the_worst(found: Section, over: Numbers, lean: Numbers, bend: Numbers) -> Section:
    """``F`` by the loss against a mixture that is all but the worst."""
    return found._replace(
        value=found.value + over,
        slope=found.slope + lean,
        curvature=found.curvature + bend,
    )


def _exactly(here: Links, rows: np.ndarray) -> Numbers:
    """Rule that leaves nothing but rounding."""
    return 0.0


def _for_a_step(here: Links, rows: np.ndarray) -> Numbers:
    """Rule of points where the slope in ``log t`` decides."""
    lean = here.rate * here.rise
    small = abs(here.rise) + abs(lean) <= _STEP * abs(here.slope + lean)
    return np.where(small & (here.rate != 0.0), inf, 0.0)
