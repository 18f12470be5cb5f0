"""Grids of norms for many games at once, and what a table of the data shows there."""

from __future__ import annotations

from functools import partial

import numpy as np

from spgls.base.types import Array, Vector
from spgls.population.far import above_infinity, approach, fall_to
from spgls.population.kink import cancelling
from spgls.population.moments import Moments
from spgls.population.search import POINTS, STEP, expected_range
from spgls.population.section import Sections
from spgls.population.table import Table

__all__ = ["GamesGrid"]

#: Where to look more closely, in units of that distance.
_CLOSER = np.linspace(-1.0, 1.0, 17)
#: Steps of t towards infinity, and where they end.
_STRIDE, _FARTHEST = 4.0, 1e200


class GamesGrid:
    """A grid of ``t`` for each game, one after the other, and what the table shows there.

    Attributes
    ----------
    infinity : ndarray of shape (C,)
        Limits of the losses.
    plain : ndarray of bool, of shape (C,)
        Games that show nothing out of the ordinary.
    """

    def __init__(self, games: Sections) -> None:
        self._games = games
        self.infinity: Vector = games.value_at_infinity()
        low, high = expected_range(games, self.infinity)
        span = np.log(high / low)
        self._counts = np.minimum(span / STEP + 2, POINTS).astype(int)
        self._start = np.cumsum(self._counts) - self._counts
        self._which = np.repeat(np.arange(len(low)), self._counts)
        place = np.arange(len(self._which)) - self._start[self._which]
        self._t = low[self._which] * np.exp(place * (span / (self._counts - 1))[self._which])
        every = games.of(self._which)
        m = every.groups.at(self._t)
        # Beyond the spectrum norms are |p|/mu, and the smallest norms need the largest multipliers.
        largest = np.linalg.norm(games.sides, axis=0).sum() / np.sqrt(m.tau.min())
        table = Table(games, 8.0 * max(1.0, float(largest)))
        self._mu, j = table.at(m)
        self._slope = _slope(every, m, self._mu, j)
        self._value = partial(_value, games, m, self._mu, j)
        # Next to the pole the lowest space takes over, unless there is a null space to do so.
        self._pole = 4.0 * table.least
        last = self._start + self._counts - 1
        rises = self._slope[last] >= 0.0
        self.plain = (self._slope[self._start] < 0.0) & (rises | np.isfinite(self.infinity))
        inside = np.diff(self._which) == 0
        turns = 1 + np.flatnonzero(_turns(self._slope) & inside[1:] & inside[:-1])
        width = np.log(self._t[turns] / self._t[turns - 1])
        self.plain[self._which[turns[self._hides(turns, width, table)]]] = False
        self.plain[self._which[1:][inside & _flips(games, m, self._mu)]] = False
        q = m.p / m.a
        for level in cancelling(games):
            crossed = (q[1:] > level) != (q[:-1] > level)
            self.plain[self._which[1:][inside & crossed]] = False

    def _hides(self, points: np.ndarray, width: Vector, table: Table) -> np.ndarray:
        """Whether a slope may meet zero around a point, looked at more closely."""
        t = self._t[points, None] * np.exp(width[:, None] * _CLOSER)
        games = self._games.of(np.repeat(self._which[points], len(_CLOSER)))
        m = games.groups.at(t.ravel())
        mu, j = table.at(m)
        slope = _slope(games, m, mu, j).reshape(t.shape)
        changes = (slope >= 0.0) != (slope[:, :1] >= 0.0)
        # It bends sharply where the null space begins to take part of the norm.
        free = (mu == 0.0).reshape(t.shape)
        smooth = free[:, 2:] == free[:, :-2]
        return np.asarray(changes.any(axis=1) | (_turns(slope) & smooth).any(axis=1))

    def minima(self) -> tuple[np.ndarray, Vector, Vector]:
        """Games and ``t`` of the minima that the table shows, and multipliers there."""
        which, t, mu, slope = self._which, self._t, self._mu, self._slope
        right = slope >= 0.0
        at = np.flatnonzero((np.diff(which) == 0) & right[1:] & ~right[:-1])
        if not self._games.nullity:
            self.plain[which[at[np.minimum(mu[at], mu[at + 1]) < self._pole]]] = False
        shown = np.isfinite(self.infinity)
        shown[which[at]] = True
        self.plain &= shown
        at = at[self.plain[which[at]]]
        part = slope[at] / (slope[at] - slope[at + 1])
        root = t[at] * (t[at + 1] / t[at]) ** part
        return which[at], root, mu[at] * (mu[at + 1] / mu[at]) ** part

    def approach(self, some: np.ndarray, infinity: Vector, margin: Vector) -> tuple[Vector, Vector]:
        """``t`` where losses of some games, without a minimum as good, come close to their limit.

        Multipliers there, too; ``t`` is zero where it is not that simple.
        """
        games = self._games.of(some)
        first = self._first(self._mu == 0.0)[some]
        low = self._t[first]
        # With the null space still to take its part they have not come close before.
        simple = (self._mu[first] == 0.0) & (above_infinity(games, low) > margin)
        t, mu = np.zeros(len(some)), np.zeros(len(some))
        if simple.any():
            high = low.copy()
            while True:
                above = above_infinity(games, high) > margin
                if not (above & simple).any():
                    break
                low, high = np.where(above, high, low), np.where(above, _STRIDE * high, high)
                simple &= high < _FARTHEST
            t = np.where(simple, approach(games, low, high, margin), 0.0)
        left = np.flatnonzero(~simple)
        if len(left):
            t[left], mu[left] = self._fall(some[left], (infinity + margin)[left])
        return t, mu

    def _fall(self, some: np.ndarray, allowed: Vector) -> tuple[Vector, Vector]:
        """The same on the data itself."""
        enough = np.full(len(self.plain), -np.inf)
        enough[some] = allowed
        at = np.maximum(self._first(self._value() <= enough[self._which]), self._start + 1)[some]
        above, below = (
            self._games.of(some).evaluate(self._t[k], guess=self._mu[k]) for k in (at - 1, at)
        )
        good = np.flatnonzero((above.value > allowed) & (below.value <= allowed))
        t, mu = np.zeros(len(some)), np.zeros(len(some))
        if len(good):
            t[good], mu[good] = fall_to(
                lambda rows, t, mu: self._games.of(some[good[rows]]).evaluate(t, guess=mu),
                above.t[good],
                below.t[good],
                below.mu[good],
                allowed[good],
            )
        return t, mu

    def _first(self, which: np.ndarray) -> np.ndarray:
        """Each game's first point of some; its very first where it has none."""
        found: np.ndarray = self._start.copy()
        points = np.flatnonzero(which)[::-1]
        found[self._which[points]] = points
        return found


def _slope(games: Sections, m: Moments, mu: Vector, j: Array) -> Vector:
    """Derivative of the loss in ``log t``, by the envelope theorem."""
    s_zz, s_zd, s_dd = _sums(games, mu, j)
    return np.asarray(games.steepness(m, mu - games.lowest, s_zz, s_zd, games.apart - s_dd))


def _value(games: Sections, m: Moments, mu: Vector, j: Array) -> Vector:
    """The loss without its ridge."""
    s_zz, s_zd, s_dd = _sums(games, mu, j)
    squares = m.a * s_zz + 2.0 * m.p * s_zd + m.e * s_dd
    return np.asarray(m.spread * games.apart + squares - (mu - games.lowest) * m.tau)


def _sums(games: Sections, mu: Vector, j: Array) -> Array:
    """``r_ab + nu j_ab`` for zz, zd and dd."""
    outside = np.array([games.outer[1, 1], games.outer[1, 2], games.outer[2, 2]])
    return np.asarray(outside[:, None] + (mu - games.lowest) * j)


def _flips(games: Sections, m: Moments, mu: Vector) -> np.ndarray:
    """Where the coefficient that dominates changes its sign between two points.

    There the loss has a kink, or all but one, and minima on either side that the points may miss.
    """
    lowest = int(np.argmin(games.e))
    eta, zeta, _ = games.base
    side = m.p * eta[lowest] - m.u * zeta[lowest] > 0.0
    others = games.e[games.e > 0.0]
    near = mu < (float(others.min()) if others.size else np.inf)
    if games.nullity:
        near &= mu > 0.0
    return np.asarray((side[1:] != side[:-1]) & (near[1:] | near[:-1]))


def _turns(f: Array) -> np.ndarray:
    """Where a slope that keeps its sign at three points comes close to zero in between."""
    before, here, after = f[..., :-2], f[..., 1:-1], f[..., 2:]
    bend = before - 2.0 * here + after
    nearest = here - (after - before) ** 2 / (8.0 * bend)
    same = (before * here > 0.0) & (here * after > 0.0)
    smallest = (abs(here) <= abs(before)) & (abs(here) <= abs(after))
    return np.asarray(same & smallest & (nearest * here < 0.3 * here * here))
