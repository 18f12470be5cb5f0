"""The place on a chain of mixtures where the learner's loss is largest, for many norms at once.

Along a link of the chain the loss is concave. Newton's method on its derivative finds the place;
where the derivative jumps, tangents from both sides do.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import numpy as np

from spgls.base.types import EPS, Vector

__all__ = ["Bracket", "Links", "Places"]


class Links(NamedTuple):
    """What is at places on the chain, and along the link that each is on; one row each.

    Multipliers, losses of the mixtures, how much larger worst losses are, and what the turning of
    the mixture adds to second derivatives in ``log t``, and its rate. Then the derivatives of the
    losses along the link, second derivatives, the rounding of the first, and where the link begins.
    """

    mu: Vector
    value: Vector
    over: Vector
    bend: Vector
    rate: Vector
    rise: Vector
    steep: Vector
    noise: Vector
    first: Vector


class Places(NamedTuple):
    """The best places on the chain that were looked at, one row for each ``t``.

    ``primal`` has the least worst loss, which is ``over`` more than that of its mixture; ``dual``
    has the mixture of the largest loss, ``value``, and moves at ``rate`` with ``log t``. They
    differ where the predictor of the worst mixture is not unique.
    """

    primal: Vector
    worst: Vector
    mu: Vector
    over: Vector
    bend: Vector
    dual: Vector
    rate: Vector
    value: Vector

    @classmethod
    def before(cls, start: Vector) -> Places:
        """Before any look, where the first are to be."""
        over, bend, rate = np.zeros((3, start.size))
        mu, worst, value = (np.full(start.size, unknown) for unknown in (np.nan, inf, -inf))
        return cls(start.copy(), worst, mu, over, bend, start.copy(), rate, value)

    def take(self, rows: np.ndarray, place: Vector, here: Links) -> None:
        """Take what is better."""
        worst = here.value + here.over
        # Of equal ones that of the worse mixture, whose derivatives are those of the worst loss.
        apart = worst - self.worst[rows]
        alike = (abs(apart) <= here.noise) & (here.over < self.over[rows])
        better = (apart < -here.noise) | alike
        some = rows[better]
        self.primal[some], self.worst[some] = place[better], worst[better]
        self.over[some], self.bend[some] = here.over[better], here.bend[better]
        better = here.value > self.value[rows]
        some = rows[better]
        self.dual[some], self.value[some] = place[better], here.value[better]
        self.rate[some] = here.rate[better]
        self.mu[rows] = here.mu


class Bracket(NamedTuple):
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
    def whole(cls, count: int, last: float) -> Bracket:
        """All of the chain."""
        low, value, rise, _, other, fall = np.full((6, count), np.nan)
        low[:] = 0.0
        return cls(low, value, rise, np.full(count, last), other, fall)

    def narrow(
        self, rows: np.ndarray, place: Vector, here: Links, allowed: float, step: int
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
        meet = 0.5 * (floor + ceiling)
        gain = here.rise * here.rise / (2.0 * np.maximum(-here.steep, 1e-300))
        # Near enough by Newton's own word, or because tangents leave no more.
        done = (abs(here.rise) <= here.noise) | (gain <= allowed)
        if np.count_nonzero(both):
            lines = high_value - low_value + low_rise * low - high_rise * high
            lines = lines / (low_rise - high_rise)
            meet = np.where(both & (floor < lines) & (lines < ceiling), lines, meet)
            most = low_value + low_rise * (lines - low) - np.maximum(low_value, high_value)
            done |= both & (most <= np.maximum(allowed, here.noise))
            done |= both & (ceiling - floor <= 4 * EPS * ceiling)
        new = place - here.rise / np.minimum(here.steep, -1e-300)
        out = (new <= floor) & (floor == low) & np.isfinite(low_rise)
        out |= (new >= ceiling) & (ceiling == high) & np.isfinite(high_rise)
        out |= both & (step % 3 == 2)
        new = np.where(out, meet, np.clip(new, floor, ceiling))
        # What is not a number leads nowhere.
        done |= (new == place) | np.isnan(new)
        return np.where(done, place, new), done
