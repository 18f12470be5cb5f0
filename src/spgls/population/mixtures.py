"""Mixtures of populations along a chain: the best answers to them, and how these turn.

At ``|v|^2 = t`` the loss against any population is ``a A + p B`` and a constant, where
``A = |h - z|^2``, ``B = -2 (y - z)'(h - z)`` and ``h`` are the predictions. So a mixture of
populations is a population, the least loss against it is concave in ``a`` and ``p``, and ``A`` and
``B`` at the best answer are its derivatives. Formulas are the same for numbers and for vectors with
an entry for each of many mixtures.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple, TypeAlias

import numpy as np

from spgls.base.types import EPS, Array, Vector
from spgls.population.moments import GroupMoments, Moments, Numbers, column, either, left_by
from spgls.population.multiplier import inner
from spgls.population.places import Links
from spgls.population.section import EXACT, Sections

__all__ = ["Chain"]

#: Changes of ``a`` and ``p``.
_Change: TypeAlias = tuple[Numbers, Numbers]


class _Answers(NamedTuple):
    """Best answers to mixtures.

    Averages over the groups; multipliers; losses against the mixtures, the ridge aside; ``A`` and
    ``B``, and sizes of the terms of each. The rest is what answers turn by: inverses, coefficients,
    gradients of ``A`` and ``B``, and the curvature of the free part and its ``p/a``.
    """

    m: Moments
    mu: Numbers
    value: Numbers
    by_a: Numbers
    by_p: Numbers
    size_a: Numbers
    size_p: Numbers
    inverse: Array
    v: Array
    turn_a: Array
    turn_p: Array
    free: Numbers
    q: Numbers

    def bends(self, by: _Change, other: _Change, t: Numbers) -> tuple[Numbers, Numbers]:
        """Second derivatives of losses by a change: with itself, and with another as ``t`` grows.

        The latter is in ``log t``, while ``a`` and ``p`` take the other change.
        """
        g, h = self._turn(by), self._turn(other)
        along, turned = self.inverse * self.v, self.inverse * g
        # Zero only where the answer is, and then so are the others.
        stiff = inner(along, self.v) + 1e-300
        by_v, other_v = inner(along, g), inner(along, h)
        free, free_other = (p - self.q * a for a, p in (by, other))
        own = 2.0 * (by_v * by_v / stiff - inner(turned, g)) - self.free * free * free
        cross = 2.0 * (by_v * other_v / stiff - inner(turned, h)) - self.free * free * free_other
        return own, cross + t * by_v / stiff

    def _turn(self, by: _Change) -> Array:
        return np.asarray(column(by[0]) * self.turn_a + column(by[1]) * self.turn_p)


class Chain:
    """Populations in a row, and the mixtures of neighbours between them.

    A place is a number from zero to the number of links; whole ones are the populations.

    Parameters
    ----------
    sections : Sections
        A game on the data, in convenient units.
    gammas : ndarray of shape (G,)
        Strengths of all groups in these units, increasing; the last is infinity.
    shares : ndarray of shape (K, G)
        Shares of the groups in each population.
    """

    def __init__(self, sections: Sections, gammas: Vector, shares: Array) -> None:
        self._sections, self._gammas, self._shares = sections, gammas, shares
        self._steps = shares[1:] - shares[:-1]
        self.links = len(shares) - 1

    def game(self, place: Numbers) -> Sections:
        """The game against the mixture at a place, or the games against many."""
        first = self._first(place)
        part = column(place - first)
        shares = (1.0 - part) * self._shares[first] + part * self._shares[first + 1]
        ridge = self._sections.ridge
        if not isinstance(place, np.ndarray):
            return self._sections.against(GroupMoments(self._gammas, shares), ridge)
        strengths = [np.full(place.size, gamma) for gamma in self._gammas[:-1]]
        groups = GroupMoments([*strengths, inf], list(shares.T))
        return self._sections.against(groups, np.full(place.size, ridge))

    def value_at_infinity(self) -> float:
        """Limit of the least loss against the worst mixture as ``t`` grows."""
        places = np.arange(self.links + 1.0)
        if (self._shares[:, :-1].max(axis=1) == 1.0).all():
            # Between two strengths predictions differ most where they weigh alike.
            low, high = (float(one[:-1] @ self._gammas[:-1]) for one in self._shares)
            places = np.append(places, low / (low + high))
        limit = float(np.max(self.game(places).value_at_infinity()))
        honest = self._shares[:, -1] > 0.0
        if honest.any() and not honest.all():
            # However few are honest, far out they alone decide what is predicted without moves.
            limit = max(limit, float(self._sections.apart))
        return limit

    def look(self, t: Vector, place: Vector, guess: Vector) -> Links:
        """What is at places on the chain, and how the loss of the mixture changes along it."""
        if t.size > 1:
            return self._look(t, place, None if np.isnan(guess).any() else guess)
        # Numbers are faster than arrays of one.
        mu = 1.0 if np.isnan(guess[0]) else float(guess[0])
        found = self._look(float(t[0]), float(place[0]), mu)
        return Links(*(np.array([part], dtype=float) for part in found))

    def _look(self, t: Numbers, place: Numbers, guess: Numbers | None) -> Links:
        here, links = self._answers(t, place, guess), self._changes(t)
        by_a, by_p = column(here.by_a), column(here.by_p)
        rises = links[0] * by_a + links[1] * by_p
        first, rise = self._link(rises, place)
        a, p, a1, p1 = (_of(part, first) for part in links)
        noise = abs(a) * here.size_a + abs(p) * here.size_p + here.value
        # How a and p, and their changes along the link, drift in log t: as the mixture turns with
        # t, that adds to the second derivative.
        m, drift = here.m, (-2.0 * here.m.bend, -here.m.u)
        slope = drift[0] * here.by_a + drift[1] * here.by_p
        slope = slope + self._sections.ridge * t - (here.mu - self._sections.lowest) * m.tau
        steep, cross = here.bends((a, p), drift, t)
        cross = cross + a1 * here.by_a + p1 * here.by_p
        turns = (place > first) & (place < first + 1) & (steep < 0.0)
        rate = either(turns, cross / either(turns, -steep, 1.0), 0.0)
        over, bend, first = self._over(rises, place), cross * rate, first + 0.0 * rise
        found = here.mu, here.value, over, slope, bend, rate, rise, steep, 8 * EPS * noise, first
        return Links(*found, a / m.a)

    def _changes(self, t: Numbers) -> Array:
        """Changes of ``a`` and ``p`` along every link, and derivatives of these in ``log t``."""
        s, c = left_by(column(t), self._gammas)
        sc = s * c
        changes = np.array([s * s, s, -2.0 * s * sc, -sc]).dot(self._steps.T)
        near = c.max(axis=-1) < 0.5
        if np.count_nonzero(near):
            # Shares of a step sum to zero: close to one, s and its square are told apart by what
            # they lack.
            lacks = np.array([-c * (1.0 + s), -c]).dot(self._steps.T)
            changes[:2] = np.where(column(near), lacks, changes[:2])
        return np.asarray(changes)

    def _over(self, rises: Array, place: Numbers) -> Numbers:
        """How much larger the largest loss against one of the populations is."""
        links = np.arange(self.links)
        gone = np.minimum(np.maximum(column(place) - links, 0.0), 1.0)
        # To each population by way of the links between.
        ways = [inner((links < k) - gone, rises) for k in range(self.links + 1)]
        return np.max(ways, axis=0)

    def _first(self, place: Numbers) -> Numbers:
        """Where the links of places begin."""
        if isinstance(place, np.ndarray):
            return np.minimum(place.astype(int), self.links - 1)
        return min(int(place), self.links - 1)

    def _link(self, rises: Array, place: Numbers) -> tuple[Numbers, Numbers]:
        """Along which link of the chain the loss grows, and how fast."""
        first = self._first(place)
        rise = _of(rises, first)
        if self.links > 1:
            # At a population in the middle: back, if that rises, and more than onwards.
            behind = either(first > 0, first - 1, 0)
            back = -_of(rises, behind)
            turn = (place == first) & (first > 0) & (back > either(rise > 0.0, rise, 0.0))
            first, rise = either(turn, behind, first), either(turn, -back, rise)
        # Off the ends of a link there is nothing to gain.
        ends = (place == first) & (rise < 0.0) | (place == first + 1) & (rise > 0.0)
        return first, either(ends, 0.0 * rise, rise)

    def _answers(self, t: Numbers, place: Numbers, guess: Numbers | None) -> _Answers:
        """The best answers to mixtures, and their losses against every population."""
        sections, game = self._sections, self.game(place)
        m = game.groups.at(t)
        r, outside, outside_d = sections.target(m)
        x = r * sections.sigma
        mu, fill = sections.multipliers.solve(m, x * x, EXACT, guess)
        nu, w = mu - sections.lowest, sections.inverse(mu)
        residual = r * w
        residual *= column(-nu)
        loss = inner(residual, residual) + outside + sections.lowest * fill
        delta = sections.base[2]
        along = residual.dot(delta) - outside_d
        alpha = m.a**0.5
        beta = m.p / alpha
        side, fixed = 2.0 * beta * along, m.e * sections.apart
        return _Answers(
            m=m,
            mu=mu,
            value=m.spread * sections.apart + loss,
            by_a=(loss + side + fixed) / m.a,
            by_p=-2.0 * (along + beta * sections.apart) / alpha,
            size_a=(loss + abs(side) + fixed) / m.a,
            size_p=2.0 * (abs(along) + beta * sections.apart) / alpha,
            inverse=w / column(m.a),
            v=x * w / column(alpha),
            turn_a=sections.sigma * (residual + column(beta) * delta) / column(alpha),
            turn_p=-sections.sigma * delta,
            free=2.0 * sections.free / m.a,
            q=m.p / m.a,
        )


def _of(links: Array, which: Numbers) -> Numbers:
    """What belongs to one link, or to one in each row."""
    if links.ndim == 1:
        return float(links[which])
    return links[np.arange(len(links)), which]
