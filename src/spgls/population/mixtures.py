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

    Averages over the groups; ``s`` and ``c`` of the groups; multipliers; losses against the
    mixtures, the ridge aside. Then how much larger losses against each population are, and their
    rounding, populations first; and ``A`` and ``B``. The rest is what answers turn by: inverses,
    coefficients, gradients of ``A`` and ``B``, and the curvature of the free part and its ``p/a``.
    """

    m: Moments
    left: tuple[Array, Array]
    mu: Numbers
    value: Numbers
    over: Array
    noise: Array
    by_a: Numbers
    by_p: Numbers
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
        return float(np.max(self.game(places).value_at_infinity()))

    def look(self, t: Vector, place: Vector, guess: Vector) -> Links:
        """What is at places on the chain, and how the loss of the mixture changes along it."""
        if t.size > 1:
            return self._look(t, place, None if np.isnan(guess).any() else guess)
        # Numbers are faster than arrays of one.
        mu = 1.0 if np.isnan(guess[0]) else float(guess[0])
        found = self._look(float(t[0]), float(place[0]), mu)
        return Links(*(np.array([part], dtype=float) for part in found))

    def _look(self, t: Numbers, place: Numbers, guess: Numbers | None) -> Links:
        here = self._answers(t, place, guess)
        first, rise, noise = self._link(here, place)
        step, (s, c) = self._steps[first], here.left
        change = _differences(step, s, c)
        # How a and p, and their changes along the link, drift in log t: as the mixture turns with
        # t, that adds to the second derivative.
        steep, cross = here.bends(change, (-2.0 * here.m.bend, -here.m.u), t)
        sc = s * c
        cross = cross - 2.0 * inner(sc * s, step) * here.by_a - inner(sc, step) * here.by_p
        turns = (place > first) & (place < first + 1) & (steep < 0.0)
        rate = either(turns, cross / either(turns, -steep, 1.0), 0.0)
        over, bend = here.over.max(axis=0), cross * rate
        return Links(here.mu, here.value, over, bend, rate, rise, steep, noise, first + 0.0 * rise)

    def _first(self, place: Numbers) -> Numbers:
        """Where the links of places begin."""
        if isinstance(place, np.ndarray):
            return np.minimum(place.astype(int), self.links - 1)
        return min(int(place), self.links - 1)

    def _link(self, here: _Answers, place: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """Along which link of the chain the loss grows, how fast, and rounding of that."""
        first = self._first(place)
        rise = np.choose(first + 1, here.over) - np.choose(first, here.over)
        if self.links > 1:
            # At a population in the middle: back, if that rises, and more than onwards.
            behind = either(first > 0, first - 1, 0)
            back = np.choose(behind, here.over) - np.choose(first, here.over)
            turn = (place == first) & (first > 0) & (back > either(rise > 0.0, rise, 0.0))
            first, rise = either(turn, behind, first), either(turn, -back, rise)
        # Off the ends of a link there is nothing to gain.
        ends = (place == first) & (rise < 0.0) | (place == first + 1) & (rise > 0.0)
        noise = np.choose(first, here.noise) + np.choose(first + 1, here.noise)
        return first, either(ends, 0.0 * rise, rise), noise

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
        by_a = (loss + 2.0 * beta * along + m.e * sections.apart) / m.a
        by_p = -2.0 * (along + beta * sections.apart) / alpha
        s, c = left_by(column(t), self._gammas)
        first = self._first(place)
        part = column(place - first)
        # Differences from the mixture, by those along the links: no share is subtracted twice.
        mixed = (1.0 - part) * self._shares[first] + part * self._shares[first + 1]
        apart = [_differences(one - mixed, s, c) for one in self._shares]
        value = m.spread * sections.apart + loss
        sizes = np.array([abs(a * by_a) + abs(p * by_p) for a, p in apart])
        return _Answers(
            m=m,
            left=(s, c),
            mu=mu,
            value=value,
            over=np.array([a * by_a + p * by_p for a, p in apart]),
            noise=8 * EPS * (sizes + value),
            by_a=by_a,
            by_p=by_p,
            inverse=w / column(m.a),
            v=x * w / column(alpha),
            turn_a=sections.sigma * (residual + column(beta) * delta) / column(alpha),
            turn_p=-sections.sigma * delta,
            free=2.0 * sections.free / m.a,
            q=m.p / m.a,
        )


def _differences(shares: Array, s: Array, c: Array) -> _Change:
    """Differences of ``a`` and ``p`` by those of shares, which sum to zero."""
    near = c.max(axis=-1) < 0.5
    # Close to one, s and its square are told apart by what they lack.
    a = either(near, -inner(c * (1.0 + s), shares), inner(s * s, shares))
    p = either(near, -inner(c, shares), inner(s, shares))
    return a, p
