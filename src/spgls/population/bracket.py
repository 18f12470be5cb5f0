"""Minima within brackets: Newton's method for the slope in ``log t``, for one or for many.

The rules are the same for numbers and for vectors. Of a flat stretch of minima the smallest is
found, and slopes within rounding count as zero.
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp, inf, log
from typing import Any, NamedTuple

import numpy as np

from spgls.base.types import EPS, Vector
from spgls.population.moments import Numbers, either
from spgls.population.section import Section

__all__ = ["Bracket", "cubic", "cubic_root", "refine", "refine_many"]

_MAX_STEPS = 80
#: Newton steps below this are rounding if they do not shrink.
_ROUNDING = 1e-12
#: How close to an end of a bracket, in units of its width, a kink may be looked for.
_NEAR = 1e-3


class Bracket(NamedTuple):
    """Where a root of the slope lies, or many of them, and the length and kind of the last step."""

    left: Numbers
    right: Numbers
    before: Numbers
    newton: Numbers

    def advance(
        self, here: Section, least: float = 4 * EPS
    ) -> tuple[Bracket, Numbers, Numbers, Numbers]:
        """Take note of a point inside, and choose the next.

        Parameters
        ----------
        here : Section
            The point, or one in each.
        least : float
            Length of the steps that are not worth taking.

        Returns
        -------
        bracket : Bracket
            What is left of it.
        step : float or ndarray
            How far in ``log t`` the next point is.
        ended : bool or ndarray
            Whether it is not worth a step.
        sure : bool or ndarray
            Whether it ended, and at a root that leaves no doubt.
        """
        many = isinstance(here.t, np.ndarray)
        ln, smaller = (np.log, np.minimum) if many else (log, min)
        t, slope, noise, curvature = here.t, here.slope, here.noise, here.curvature
        beyond, convex = slope >= -noise, curvature > 0.0
        left, right = either(beyond, self.left, t), either(beyond, t, self.right)
        width, ahead = ln(right / left), ln(right / t)
        step = either(convex, -slope / either(convex, curvature, 1.0), inf)
        inside = (ahead - width < step) & (step < ahead)
        close = abs(step) <= _ROUNDING
        # A Newton step that crossed into a flat stretch missed its end by a square.
        back = either(beyond & self.newton, smaller(4.0 * width, 1 / 16), 0.5)
        step = either(inside, step, ahead - back * width)
        # Newton steps this short that no longer shrink are rounding. A slope within rounding is a
        # root, unless it is a flat stretch whose left end we want.
        moved = abs(step)
        stuck = self.newton & (self.before / 4 <= moved) & (moved <= _ROUNDING)
        quiet = (abs(slope) <= noise) & (noise < 1e-8 * curvature)
        ended = quiet | stuck | (moved <= least) | (width <= 4 * EPS)
        return Bracket(left, right, moved, inside), step, ended, ended & (quiet | close)


def _next(here: Section, step: Numbers) -> tuple[Numbers, Numbers]:
    """The next point, and a guess of the multiplier there."""
    many = isinstance(step, np.ndarray)
    power, larger = (np.exp, np.fmax) if many else (exp, max)
    return here.t * power(step), larger(here.mu + step * here.rate, 0.1 * here.mu)


def refine(
    evaluate: Callable[[float, float, bool], Section], left: float, right: float, here: Section
) -> Section:
    """A minimum in a bracket, from a point in it.

    Parameters
    ----------
    evaluate : callable
        The loss at ``t``, from a guess of the multiplier; exactly, or well enough for a step.
    left, right : float
        Ends of the bracket.
    here : Section
        Where to start.
    """
    bracket, kink = Bracket(left, right, inf, False), _Kink()
    for _ in range(_MAX_STEPS):
        bracket, step, ended, _ = bracket.advance(here)
        kink.note(here)
        if ended:
            return here
        jumps = not bracket.newton and kink.between
        if jumps:
            if kink.found:
                return kink.high
            step = log(kink.meet() / here.t)
        here = evaluate(*_next(here, step), jumps)
    # Steps used up at the foot of a flat stretch: the last point on it.
    return evaluate(bracket.right, here.mu, True) if here.slope < -here.noise else here


class _Kink:
    """A minimum where the slope jumps, between points on either side of it.

    Newton's method for the slope is of no use there. But what the loss would be on either side,
    were it smooth, tells where the two meet.
    """

    low: Section
    high: Section

    def __init__(self) -> None:
        self._sides: set[bool] = set()
        self._width, self._steps = inf, 0

    def note(self, here: Section) -> None:
        """Take note of a point, on the side that its slope tells."""
        beyond = bool(here.slope >= -here.noise)
        self._sides.add(beyond)
        if beyond:
            self.high = here
        else:
            self.low = here

    @property
    def between(self) -> bool:
        """Whether there are points on both sides whose slopes are more than rounding."""
        return len(self._sides) == 2 and self.high.slope > self.high.noise

    @property
    def found(self) -> bool:
        """Whether the loss has no room left to fall, if it is convex: then by both tangents."""
        low, high = self.low, self.high
        rise, fall = float(high.slope), -float(low.slope)
        onwards = float(low.value - high.value) + rise * log(high.t / low.t)
        least = float(low.value) - fall * onwards / (rise + fall)
        return bool(min(low.value, high.value) - least <= 4 * EPS * abs(least))

    def meet(self) -> float:
        """Where to look next: just beyond where the two meet, or in the middle."""
        low, high = self.low, self.high
        width = log(high.t / low.t)
        self._steps += 1
        if self._steps % 3 == 0:
            slow, self._width = width > self._width / 8, width
            if slow:
                return float(low.t) * exp(width / 2)
        # By their curvatures too, in a few steps of Newton's method from where tangents meet.
        x = 0.5 * width
        for _ in range(4):
            y = x - width
            gap = low.value + x * (low.slope + x * low.curvature / 2)
            gap -= high.value + y * (high.slope + y * high.curvature / 2)
            x -= gap / (low.slope + x * low.curvature - high.slope - y * high.curvature)
            if not 0.0 < x < width:
                return float(low.t) * exp(width / 2)
        # So close to an end that the other side is not yet known well: on to there.
        x = min(max(x, _NEAR * width), (1 - _NEAR) * width)
        return float(low.t) * exp(x)


def refine_many(
    evaluate: Callable[[Any, Vector, Vector], Section], left: Vector, right: Vector, here: Section
) -> tuple[Section, np.ndarray]:
    """A minimum in each of many brackets, and which of them leave no doubt.

    Parameters
    ----------
    evaluate : callable
        The losses in some of the brackets at ``t``, from guesses of the multipliers.
    left, right : ndarray of shape (B,)
        Ends of the brackets.
    here : Section
        Where to start.
    """
    found, sure = here, np.zeros(len(left), dtype=bool)
    active = np.arange(len(left))
    bracket = Bracket(left, right, np.full(len(left), inf), np.zeros_like(sure))
    for _ in range(_MAX_STEPS):
        bracket, step, ended, certain = bracket.advance(here, _ROUNDING)
        sure[active[certain]] = True
        going = ~ended
        if not going.any():
            break
        active, here, step = active[going], here.taken(going), step[going]
        bracket = Bracket(*(part[going] for part in bracket))
        here = evaluate(active, *_next(here, step))
        for every, some in zip(found[:-1], here[:-1], strict=True):
            every[active] = some
    return found, sure


def cubic(
    x: Numbers, f0: Numbers, f1: Numbers, df0: Numbers, df1: Numbers
) -> tuple[Numbers, Numbers]:
    """Value and slope at ``x`` of the cubic with given values and slopes at zero and one."""
    rise = f1 - f0
    second, third = 3.0 * rise - 2.0 * df0 - df1, df0 + df1 - 2.0 * rise
    return f0 + x * (df0 + x * (second + x * third)), df0 + x * (2.0 * second + 3.0 * x * third)


def cubic_root(f0: float, f1: float, df0: float, df1: float) -> tuple[float, float]:
    """Where a cubic that rises from ``f0 < 0`` to ``f1 > 0`` over a unit vanishes; its slope."""
    low, high, x = 0.0, 1.0, f0 / (f0 - f1)
    for _ in range(8):
        f, df = cubic(x, f0, f1, df0, df1)
        low, high = (low, x) if f > 0.0 else (x, high)
        before, x = x, x - f / df if df > 0.0 else low
        if not low < x < high:
            x = 0.5 * (low + high)
        if abs(x - before) < 1e-6:
            break
    return x, df
