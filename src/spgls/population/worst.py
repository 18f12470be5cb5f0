"""The learner's least loss against the worst of several populations, at prescribed norms.

At ``|v|^2 = t`` the loss against any population is ``a |h - z|^2 + p (-2 (y - z)'(h - z))`` and a
constant, ``h`` the predictions. So a mixture of populations is a population, and

    F(t) = max over mixtures of phi(t)

is what :class:`Sections` evaluates, at a mixture of its own for each ``t``. The populations come as
a chain: the worst mixture consists of one of them, or of two neighbours. It is found by Newton's
method on the difference of the losses against the two, which falls along the chain.

Where the predictor of the worst mixture is not unique (the hard case), the worst loss of each of
them can exceed ``F``. Values here are worst losses of predictors; ``least`` tells how far below
them bounds can be.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import NamedTuple

import numpy as np

from spgls.base.types import EPS, Array, Vector
from spgls.population.moments import GroupMoments, Moments, Numbers
from spgls.population.multiplier import blocks, inner
from spgls.population.section import EXACT, LOOSE, Section, Sections
from spgls.reduction.reduced import ReducedGame

__all__ = ["WorstSections"]

#: Gain of a better mixture, in units of the labels, that does not matter on a grid.
_COARSE = 1e-8
#: The same in a proof, in units of the gap that it is to reach.
_SHARE = 1e-2
_MAX_STEPS = 60


@dataclass(frozen=True, eq=False)
class _Mixtures:
    """What is known of a mixture at each ``t``, one row each.

    Attributes
    ----------
    m : Moments
        Averages over their groups.
    left : tuple of two ndarrays
        ``s`` and ``c`` of the groups.
    mu : ndarray of shape (T,)
        Multipliers.
    value : ndarray of shape (T,)
        Losses against the mixtures, the ridge aside: no predictor of this norm does better.
    over : ndarray of shape (T, K)
        How much larger the predictor's loss is against each population.
    by_a, by_p : ndarray of shape (T,)
        Derivatives of losses by ``a`` and ``p``.
    noise : ndarray of shape (T, K)
        Rounding of ``over``.
    """

    m: Moments
    left: tuple[Array, Array]
    mu: Vector
    value: Vector
    over: Array
    by_a: Vector
    by_p: Vector
    noise: Array
    # Directions in which predictors turn, and what stands in their way.
    _inverse: Array
    _v: Array
    _turn_a: Array
    _turn_p: Array
    _free: Vector
    _q: Vector

    def slope(self, by: tuple[Vector, Vector], other: tuple[Vector, Vector]) -> Vector:
        """Second derivative of the loss by two changes of ``a`` and ``p``, at fixed ``t``."""
        g, h = self._turn(by), self._turn(other)
        along = inner(self._inverse * self._v, self._v)
        lost = inner(self._inverse * g, h)
        kept = inner(self._inverse * g, self._v) * inner(self._inverse * h, self._v)
        free = self._free * (by[1] - self._q * by[0]) * (other[1] - self._q * other[0])
        return np.asarray(-2.0 * (lost - np.where(along > 0.0, kept / along, 0.0)) - free)

    def by_norm(self, by: tuple[Vector, Vector], t: Vector) -> Vector:
        """Derivative in ``log t``, with ``a`` and ``p`` held, of that by a change of both."""
        along = inner(self._inverse * self._v, self._v)
        turned = inner(self._inverse * self._turn(by), self._v)
        return np.asarray(np.where(along > 0.0, t * turned / along, 0.0))

    def _turn(self, by: tuple[Vector, Vector]) -> Array:
        return by[0][:, None] * self._turn_a + by[1][:, None] * self._turn_p


class _Links(NamedTuple):
    """What is at places on the chain, and along the link that each is on; one row each.

    Multipliers, losses of the mixtures, how much larger worst losses are, and what the turning of
    the mixture adds to second derivatives in ``log t``. Then the derivatives of the losses along
    the link, second derivatives, the rounding of the first, and where the link begins.
    """

    mu: Vector
    value: Vector
    over: Vector
    bend: Vector
    rise: Vector
    steep: Vector
    noise: Vector
    first: Vector


class _Places(NamedTuple):
    """The best places on the chain that were looked at, one row for each ``t``.

    ``primal`` has the least worst loss, which is ``over`` more than that of its mixture; ``dual``
    has the mixture of the largest loss, ``value``. They differ where the predictor of the worst
    mixture is not unique.
    """

    primal: Vector
    worst: Vector
    mu: Vector
    over: Vector
    bend: Vector
    dual: Vector
    value: Vector

    @classmethod
    def none(cls, count: int) -> _Places:
        """Before any look."""
        empty = np.full((6, count), np.nan)
        return cls(empty[0], np.full(count, inf), *empty[1:5], np.full(count, -inf))

    def take(self, rows: np.ndarray, place: Vector, here: _Links) -> None:
        """Take what is better."""
        worst = here.value + here.over
        better = worst < self.worst[rows]
        some = rows[better]
        self.primal[some], self.worst[some] = place[better], worst[better]
        self.over[some], self.bend[some] = here.over[better], here.bend[better]
        better = here.value > self.value[rows]
        some = rows[better]
        self.dual[some], self.value[some] = place[better], here.value[better]
        self.mu[rows] = here.mu


class _Bracket(NamedTuple):
    """Where on the chain the loss of the mixture is largest, one row for each ``t``.

    Each end has a place, and the loss and its derivative there, not a number if nobody looked.
    """

    low: Vector
    low_value: Vector
    low_rise: Vector
    high: Vector
    high_value: Vector
    high_rise: Vector

    @classmethod
    def whole(cls, count: int, last: float) -> _Bracket:
        """All of the chain."""
        low, value, rise, _, other, fall = np.full((6, count), np.nan)
        low[:] = 0.0
        return cls(low, value, rise, np.full(count, last), other, fall)

    def narrow(
        self, rows: np.ndarray, place: Vector, here: _Links, allowed: float, step: int
    ) -> tuple[Vector, np.ndarray]:
        """Take note of places inside; return the next ones, and which of them need no next.

        Newton's method along a link. Where it leaves the bracket, or the derivative jumps, the
        tangents at both ends meet at the next place: the loss is concave, and below both.
        """
        up = here.rise > 0.0
        for end, some in ((0, up), (3, ~up)):
            for part, new in zip(self[end : end + 3], (place, here.value, here.rise), strict=True):
                part[rows[some]] = new[some]
        low, low_value, low_rise, high, high_value, high_rise = (part[rows] for part in self)
        floor, ceiling = np.maximum(low, here.first), np.minimum(high, here.first + 1.0)
        # Tangents of another link say nothing about this one.
        both = (floor == low) & (low_rise > 0.0) & (ceiling == high) & (high_rise < 0.0)
        meet = high_value - low_value + low_rise * low - high_rise * high
        meet = np.where(both, meet / (low_rise - high_rise), np.nan)
        most = low_value + low_rise * (meet - low)
        gain = here.rise * here.rise / (2.0 * np.maximum(-here.steep, 1e-300))
        # Near enough by Newton's own word, unless tangents know better; or by theirs.
        done = (abs(here.rise) <= here.noise) | (gain <= allowed)
        known = np.maximum(low_value, high_value)
        done |= most - known <= np.maximum(allowed, here.noise)
        new = place - here.rise / np.minimum(here.steep, -1e-300)
        out = (new <= floor) & (floor == low) & np.isfinite(low_rise)
        out |= (new >= ceiling) & (ceiling == high) & np.isfinite(high_rise)
        out |= both & (step % 3 == 2)
        meet = np.where((floor < meet) & (meet < ceiling), meet, 0.5 * (floor + ceiling))
        new = np.where(out, meet, np.clip(new, floor, ceiling))
        done |= (new == place) | (both & (ceiling - floor <= 4 * EPS * ceiling))
        return np.where(done, place, new), done


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
        self._corners = shares
        self._strengths: Vector = gammas / self.units.t
        self._settled = _SHARE * gap * self.yy
        self._known: tuple[Vector, Vector] = np.empty(0), np.empty(0)
        self.least = inf

    def value_at_infinity(self) -> float:
        """Limit of ``F`` as ``t`` grows."""
        last = len(self._corners) - 1
        places = np.arange(last + 1.0)
        pure = self._corners[:, :-1].max(axis=1) == 1.0
        if pure.all():
            # Between two strengths predictions differ most where they weigh alike.
            low, high = (float(corner[:-1] @ self._strengths[:-1]) for corner in self._corners[:2])
            places = np.append(places, low / (low + high))
        return float(np.max(self._mixed(places).value_at_infinity()))

    def weights_at(self, t: float) -> Vector:
        """Weights of the populations in the worst mixture at ``t``."""
        place = self._place(np.array([t]), 0.0).primal
        return np.maximum(0.0, 1.0 - abs(np.arange(len(self._corners)) - place))

    def facing(self, t: Vector) -> Sections:
        """The worst mixture at each ``t``: of all, its bounds are the highest there."""
        at = self._place(t, self._settled)
        self.least = min(self.least, float((at.value + self.ridge * t).min(initial=inf)))
        return self._mixed(at.dual)

    def facing_one(self, t: float) -> Sections:
        """The worst mixture at a single ``t``, as a game of its own."""
        return self._single(self._place(np.array([t]), self._settled).dual)

    def evaluate(self, t: Numbers, tol: float = EXACT, guess: Numbers | None = None) -> Section:
        """``F`` and its derivatives at positive ``t``, as :meth:`Sections.evaluate` does."""
        if not isinstance(t, np.ndarray):
            at = self._place(np.array([t]), 0.0)
            found = self._single(at.primal).evaluate(t, EXACT, float(at.mu[0]))
            over, bend = float(at.over[0]), float(at.bend[0])
        else:
            allowed = self._settled if tol < LOOSE else max(_COARSE * self.yy, self._settled)
            at = self._place(t, allowed)
            found = self._mixed(at.primal).evaluate(t, tol, at.mu)
            over, bend = at.over, at.bend
        return found._replace(value=found.value + over, curvature=found.curvature + bend)

    def _weights(self, place: Vector) -> Array:
        """Shares of the groups at places on the chain."""
        first = np.minimum(place.astype(int), len(self._corners) - 2)
        part = (place - first)[:, None]
        return np.asarray((1.0 - part) * self._corners[first] + part * self._corners[first + 1])

    def _mixed(self, place: Vector) -> Sections:
        """The games against mixtures, one for each place on the chain."""
        shares = self._weights(place).T
        strengths = [np.full(place.size, gamma) for gamma in self._strengths[:-1]]
        groups = GroupMoments([*strengths, inf], list(shares))
        return self.against(groups, np.full(place.size, self.ridge))

    def _single(self, place: Vector) -> Sections:
        """The game against one mixture."""
        return self.against(GroupMoments(self._strengths, self._weights(place)[0]), self.ridge)

    def _start(self, t: Vector) -> Vector:
        """Where on the chain to begin: between places known nearby, or in the middle."""
        known, place = self._known
        if not known.size:
            return np.full(t.size, 0.5 * (len(self._corners) - 1))
        start = np.interp(np.log(t), known, place)
        # Interpolation between equal numbers must not miss them.
        whole = np.rint(start)
        return np.where(abs(start - whole) < 1e-9, whole, start)

    def _remember(self, t: Vector, place: Vector) -> None:
        known = np.concatenate([self._known[0], np.log(t)])
        known, first = np.unique(known, return_index=True)
        self._known = known, np.concatenate([self._known[1], place])[first]

    def _place(self, t: Vector, allowed: float) -> _Places:
        """Places on the chain of the worst mixture at each ``t``.

        Parameters
        ----------
        t : ndarray of shape (T,)
            Where.
        allowed : float
            What a better mixture may gain; zero finds them to rounding.
        """
        found, bracket = _Places.none(t.size), _Bracket.whole(t.size, len(self._corners) - 1.0)
        place, active = self._start(t), np.arange(t.size)
        for i in range(_MAX_STEPS):
            rows = blocks(active.size, self.size)
            parts = [
                self._advance(t[active[some]], place[active[some]], found.mu[active[some]])
                for some in rows
            ]
            here = parts[0] if len(parts) == 1 else _Links(*map(np.concatenate, zip(*parts)))
            found.take(active, place[active], here)
            new, done = bracket.narrow(active, place[active], here, allowed, i)
            place[active] = new
            active = active[~done]
            if not active.size:
                break
        self._remember(t, found.dual)
        return found

    def _advance(self, t: Vector, place: Vector, guess: Vector) -> _Links:
        """What is at places on the chain, and how the loss of the mixture changes along it."""
        part = self._mixed(place)
        here = self._look(part, t, None if np.isnan(guess).any() else guess)
        first, rise, noise = self._link(here, place)
        shares = self._corners[first + 1] - self._corners[first]
        s, c = here.left
        change = _differences(shares, s, c)
        steep = here.slope(change, change)
        # Derivatives in log t of a, p, and of their changes along the link: the mixture turns with
        # t, which adds to the second derivative.
        drift = -2.0 * here.m.bend, -here.m.u
        sc = s * c
        cross = here.slope(change, drift) + here.by_norm(change, t)
        cross -= 2.0 * inner(shares, s * sc) * here.by_a + inner(shares, sc) * here.by_p
        turns = (place > first) & (place < first + 1) & (steep < 0.0)
        bend = np.where(turns, cross * cross / np.where(turns, -steep, 1.0), 0.0)
        over = here.over.max(axis=1)
        return _Links(here.mu, here.value, over, bend, rise, steep, noise, first.astype(float))

    def _link(self, here: _Mixtures, place: Vector) -> tuple[np.ndarray, Vector, Vector]:
        """Along which link of the chain the loss grows, how fast, and rounding of that."""
        last, rows = len(self._corners) - 1, np.arange(place.size)
        first = np.minimum(place.astype(int), last - 1)
        rise = here.over[rows, first + 1] - here.over[rows, first]
        at = place == first
        if at.any() and last > 1:
            # At a population in the middle: back, if that rises and onwards does not.
            behind = np.maximum(first - 1, 0)
            back = here.over[rows, behind] - here.over[rows, first]
            turn = at & (first > 0) & (back > np.maximum(rise, 0.0))
            first, rise = np.where(turn, behind, first), np.where(turn, -back, rise)
        # Onwards from the first, or back from the last, there is nothing to gain.
        ends = (place == first) & (rise < 0.0) | (place == first + 1) & (rise > 0.0)
        noise = here.noise[rows, first] + here.noise[rows, first + 1]
        return first, np.where(ends, 0.0, rise), noise

    def _look(self, part: Sections, t: Vector, guess: Vector | None) -> _Mixtures:
        """The best predictors against mixtures, and their losses against every population."""
        m = part.groups.at(t)
        r, outside, outside_d = self.target(m)
        x = r * self.sigma
        mu, fill = self.multipliers.solve(m, x * x, EXACT, guess)
        nu, w = mu - self.lowest, self.inverse(mu)
        residual = r * w
        residual *= -nu[:, None]
        loss = inner(residual, residual) + outside + self.lowest * fill
        delta = self.base[2]
        along = residual.dot(delta) - outside_d
        alpha = np.sqrt(m.a)
        beta = m.p / alpha
        by_a = (loss + 2.0 * beta * along + m.e * self.apart) / m.a
        by_p = -2.0 * (along + beta * self.apart) / alpha
        s, c = part.groups.left(t)
        apart = [_differences(corner - part.groups.shares, s, c) for corner in self._corners]
        over = np.array([a * by_a + p * by_p for a, p in apart]).T
        value = m.spread * self.apart + loss
        sizes = np.array([abs(a * by_a) + abs(p * by_p) for a, p in apart]).T
        return _Mixtures(
            m=m,
            left=(s, c),
            mu=mu,
            value=value,
            over=over,
            by_a=by_a,
            by_p=by_p,
            noise=8 * EPS * (sizes + value[:, None]),
            _inverse=w / m.a[:, None],
            _v=x * w / alpha[:, None],
            _turn_a=self.sigma * (residual + beta[:, None] * delta) / alpha[:, None],
            _turn_p=np.broadcast_to(-self.sigma * delta, r.shape),
            _free=2.0 * self.free / m.a,
            _q=m.p / m.a,
        )


def _differences(shares: Array, s: Array, c: Array) -> tuple[Vector, Vector]:
    """Differences of ``a`` and ``p`` by those of shares, which sum to zero."""
    near = c.max(axis=1) < 0.5
    # Close to one, s and its square are told apart by what they lack.
    a = np.where(near, -inner(shares, c * (1.0 + s)), inner(shares, s * s))
    p = np.where(near, -inner(shares, c), inner(shares, s))
    return a, p
