"""The place on a chain of mixtures where the learner's loss is largest, for many norms at once.

Along a link of the chain the loss is concave. Newton's method on its derivative finds the place;
where the derivative jumps, tangents from both sides do.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import numpy as np

from spgls.base.types import EPS, Array, Vector
from spgls.population.moments import Numbers

__all__ = ["Bracket", "Links", "Places"]

#: A derivative that falls by more than this multiple of what its own at both ends explain jumps.
_JUMP = 4.0
#: Every so many steps tangents decide, whatever else is promised.
_GUARD = 8


class Links(NamedTuple):
    """What is at places on the chain, and along the link that each is on; one row each.

    Multipliers, losses of the mixtures, how much larger worst losses are, derivatives of the former
    in ``log t``, and what the turning of the mixture adds to second derivatives, and its rate. Then
    the derivatives of the losses along the link, second derivatives, the rounding of the first,
    where the link begins, and the relative derivative of ``a`` along it.
    """

    mu: Vector
    value: Vector
    over: Vector
    slope: Vector
    bend: Vector
    rate: Vector
    rise: Vector
    steep: Vector
    noise: Vector
    first: Vector
    growth: Vector


class Places(NamedTuple):
    """The best places on the chain that were looked at, one row for each ``t``.

    ``primal`` has the least worst loss, which is ``over`` more than that of its mixture; on the way
    from there to the worst mixture the derivative in ``log t`` changes by ``lean``. ``dual`` has
    the mixture of the largest loss, ``value``, and moves at ``rate`` with ``log t``. They differ
    where the predictor of the worst mixture is not unique.
    """

    primal: Vector
    worst: Vector
    mu: Vector
    over: Vector
    bend: Vector
    lean: Vector
    dual: Vector
    rate: Vector
    value: Vector

    @classmethod
    def before(cls, start: Vector) -> Places:
        """Before any look, where the first are to be."""
        over, bend, lean, rate = np.zeros((4, start.size))
        mu, worst, value = (np.full(start.size, unknown) for unknown in (np.nan, inf, -inf))
        return cls(start.copy(), worst, mu, over, bend, lean, start.copy(), rate, value)

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
        lean = here.rate * here.rise
        # Of another sign it is too far away to be known.
        self.lean[some] = np.where(abs(lean) < abs(here.slope), lean, 0.0)[better]
        better = here.value > self.value[rows]
        some = rows[better]
        self.dual[some], self.value[some] = place[better], here.value[better]
        self.rate[some] = here.rate[better]
        self.mu[rows] = here.mu


class Bracket:
    """Where on the chain the loss of the mixture is largest, one row for each ``t``.

    Parameters
    ----------
    count : int
        How many.
    last : float
        Where the chain ends; it begins at zero.
    """

    def __init__(self, count: int, last: float) -> None:
        # Of both ends the place, and the loss, its derivatives and the growth of ``a`` there, not a
        # number if nobody looked.
        self._ends: Array = np.full((2, 5, count), np.nan)
        self._ends[0, 0], self._ends[1, 0] = 0.0, last

    def narrow(
        self, rows: np.ndarray, place: Vector, here: Links, allowed: Numbers, step: int
    ) -> tuple[Vector, np.ndarray]:
        """Take note of places inside; return the next ones, and which of these need no look.

        Newton's method along a link; between two ends of it a parabola. Where the derivative jumps,
        the tangents at both ends meet at the next place: the loss is concave, and below both.
        """
        seen = np.array([place, here.value, here.rise, here.steep, here.growth])
        self._ends[np.where(here.rise > 0.0, 0, 1), :, rows] = seen.T
        (low, low_value, low_rise, low_steep, low_growth), other = self._ends[:, :, rows]
        high, high_value, high_rise, high_steep, _ = other
        floor, ceiling = np.maximum(low, here.first), np.minimum(high, here.first + 1.0)
        # Tangents of another link say nothing about this one.
        both = (floor == low) & (low_rise > 0.0) & (ceiling == high) & (high_rise < 0.0)
        gain = here.rise * here.rise / (2.0 * np.maximum(-here.steep, 1e-300))
        # Near enough by Newton's own word, or because tangents leave no more.
        done = (abs(here.rise) <= here.noise) | (gain <= allowed)
        # Answers depend on the place by p/a alone, in which 1/a is linear: steps are taken in that.
        ahead = -here.rise / np.minimum(here.steep, -1e-300)
        left = 1.0 - ahead * here.growth
        new = place + np.where(left > 0.0, ahead / left, np.copysign(inf, ahead))
        if np.count_nonzero(both):
            width, fall = high - low, low_rise - high_rise
            ratio = 1.0 / (1.0 + low_growth * width)
            at_low, at_high = -width * ratio * low_steep, -width / ratio * high_steep
            part = _parabola(low_rise, -high_rise, at_low, at_high)
            turn = low + width * part * ratio / (1.0 + part * (ratio - 1.0))
            jump = fall / np.fmax(at_low, at_high)
            new = np.where(both, turn, new)
            lines = high_value - low_value + low_rise * low - high_rise * high
            lines = lines / fall
            meet = np.where((low < lines) & (lines < high), lines, 0.5 * (low + high))
            out = ~((jump < _JUMP) & (low < turn) & (turn < high)) | (step % _GUARD == _GUARD - 1)
            new = np.where(both & out, meet, new)
            most = low_value + low_rise * (lines - low) - np.maximum(low_value, high_value)
            done |= both & (most <= np.maximum(allowed, here.noise))
            done |= both & (width <= 4 * EPS * high)
        # Beyond an end that was looked at there is nothing.
        middle = 0.5 * (floor + ceiling)
        out = (new <= floor) & (floor == low) & np.isfinite(low_rise)
        out |= (new >= ceiling) & (ceiling == high) & np.isfinite(high_rise)
        new = np.where(out, middle, np.clip(new, floor, ceiling))
        # What is not a number leads nowhere.
        done |= (new == place) | np.isnan(new)
        return np.where(np.isnan(new) | (abs(here.rise) <= here.noise), place, new), done


def _parabola(f: Vector, g: Vector, fall: Vector, fall_far: Vector) -> Vector:
    """Where what falls from ``f`` to ``-g`` over a unit vanishes, by its fall at the nearer end.

    With both values that makes a parabola, whose signs at the ends differ: it has one root between.
    """
    near = f < g
    here, there, slope = np.where(near, f, g), np.where(near, g, f), np.where(near, fall, fall_far)
    bent = slope - here - there
    part = 2.0 * here / (slope + np.sqrt(np.fmax(slope * slope - 4.0 * bent * here, 0.0)))
    return np.asarray(np.where(near, part, 1.0 - part))
