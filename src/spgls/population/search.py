"""The one-dimensional search over the squared norm ``t``.

``phi`` may have several minima, so its slope is evaluated on a grid of ``log t`` that covers every
scale of the game, and each change of sign is refined to rounding by Newton's method on the slope:
comparing values would give half the digits.
"""

from __future__ import annotations

from math import exp, inf, log, sqrt
from typing import Literal

import numpy as np

from spgls._types import EPS, Vector
from spgls.population.far import approach, fall_to, far_margin, far_turn, rounding
from spgls.population.kink import points_around
from spgls.population.moments import Numbers
from spgls.population.section import EXACT, LOOSE, Section, Sections

__all__ = ["FLOOR", "Outcome", "Search"]

Outcome = Literal["unique", "several", "unattained"]

#: Distance of grid points in log t, and how many there may be.
_STEP, _POINTS = 0.5, 240
_MAX_STEPS = 80
#: How far in log t a root may lie outside its bracket: slopes on the grid are not exact.
_SLACK = 1e-2
#: Beyond this multiple of every strength a goal is reached for all purposes.
_FAR = 1e10
#: No gap below this, in units of |y|^2, is asked for: rounding would not show it.
FLOOR = 1e-12
#: Where cells of the grid are looked into.
_INSIDE = (0.25, 0.5, 0.75)


class Search:
    """State of one search, in the units of its sections.

    ``best_t`` and ``best_value`` are the incumbent and ``best`` its section, if it was evaluated;
    ``coarse`` is the grid, ``infinity`` the limit of ``phi`` as ``t`` grows, and ``gap`` the
    distance from the infimum that is asked for.
    """

    coarse: Section

    def __init__(self, sections: Sections, tol: float) -> None:
        self.sections = sections
        self.gap = max(tol, FLOOR) * sections.yy
        self.infinity = sections.value_at_infinity()
        self.steps = 0
        self.outcome: Outcome = "unique"
        self.best: Section | None = None
        self.best_t, self.best_value = 0.0, sections.yy

    def evaluate(self, t: Numbers, tol: float = EXACT, guess: Numbers | None = None) -> Section:
        """``phi`` at several ``t`` or a single one, counted."""
        self.steps += t.size if isinstance(t, np.ndarray) else 1
        return self.sections.evaluate(t, tol, guess)

    def run(self) -> None:
        """Find the smallest of the global minima that the grid shows."""
        if self.sections.yy == 0.0:
            return
        low, high = self._range()
        self.coarse = self._descend(low, high, int(min(log(high / low) / _STEP + 2, _POINTS)))
        coarse = self.coarse
        # Minima beyond the grid, which the signs at its ends tell of.
        if coarse.slope[0] >= -coarse.noise[0]:
            self._refine(low * 1e-12, low, self.evaluate(low, guess=coarse.mu[0]))
        if coarse.slope[-1] < -coarse.noise[-1] and self.infinity == inf:
            self._refine(high, high * 1e12, self.evaluate(high, guess=coarse.mu[-1]))
        self._look_far()

    def look_near(self, low: float, high: float) -> None:
        """Search again around an interval that holds something better."""
        self._descend(low / 2, high * 2, 33)
        self._look_far()

    def _range(self) -> tuple[float, float]:
        """Range of ``t`` where minima are expected; the proof does not rely on it."""
        problem, groups = self.sections, self.sections.groups
        sigma, (eta, zeta, delta) = problem.sigma, problem.base
        gamma_min, gamma_max = float(groups.gamma[0]), float(groups.gamma[-1])
        p_y = _length(sigma * eta)
        stiff = 1.0 + problem.ridge + 4.0 * float(groups.share.dot(1.0 / groups.gamma))
        low = 1e-2 * (p_y / stiff) ** 2 if p_y > EPS * sqrt(problem.yy) else inf
        low = max(min(low, 1e-2 * gamma_min), 1e-40)
        reach = float(((eta**2 + zeta**2) / problem.d).sum()) if problem.size else 0.0
        high = 1e2 * max(gamma_max, reach, 1e4 * low)
        if groups.honest == 0.0:
            # Far out sqrt(a) v fits labels less goals, with |sqrt(a) v|^2 about <gamma^2>/t.
            p_d = _length(sigma * delta)
            m1, m2 = float(groups.share @ groups.gamma), float(groups.share @ groups.gamma**2)
            turn = sqrt(problem.zz * problem.apart) + problem.apart
            if p_d > 1e-60:
                far = max((turn / p_d) ** 2, m2 / p_d**2)
                seen = 2.0 * m1 * p_d / (EPS * self.infinity) if self.infinity > 0.0 else inf
                high = max(high, 1e2 * min(far, seen**2))
        elif self.infinity < inf:
            m1, m2 = float(groups.reach.sum()), float(groups.reach @ groups.gamma)
            high = max(high, 1e2 * float(far_turn(problem, m1, m2, groups.honest)))
        if groups.honest > 0.0 and problem.lowest > 0.0:
            # The honest group alone would lose more than predicting nothing does.
            cap = problem.yy * (1.0 + 1.0 / sqrt(groups.honest)) ** 2 / problem.lowest
            high = min(high, 1.1 * cap)
        if problem.ridge > 0.0:
            high = min(high, 1.1 * problem.yy / problem.ridge)
        return min(low, 1e-2 * high), high

    def _descend(self, low: float, high: float, count: int) -> Section:
        """Refine every minimum that the slopes on a grid show, and return the grid."""
        width = log(high / low) / (count - 1)
        grid = low * np.exp(width * np.arange(count))
        coarse = self.evaluate(grid, LOOSE)
        hidden = np.append(_hidden_turns(coarse, width), points_around(self.sections, grid))
        if hidden.size:
            coarse = coarse.joined(self.evaluate(hidden, LOOSE))
            coarse = coarse.taken(np.argsort(coarse.t))
        # A slope within rounding counts as the far side, so that of a flat stretch of minima the
        # smallest is found.
        right = coarse.slope >= -coarse.noise
        for i in (right[1:] > right[:-1]).nonzero()[0].tolist():
            self._enter(coarse, i)
        i = int(coarse.value.argmin())
        if coarse.value[i] < self.best_value - self.noise(self.best_value):
            # Not exact, perhaps not a minimum, but it may be better than what was found.
            self._offer(self.evaluate(float(coarse.t[i]), guess=coarse.mu[i]))
        return coarse

    def _enter(self, coarse: Section, i: int) -> None:
        """Refine what a cell of the grid holds."""
        ends = (coarse.t, coarse.mu, coarse.slope, coarse.curvature)
        (left, right), (mu, mu_right), (f, f_right), (df, df_right) = (
            part[i : i + 2].tolist() for part in ends
        )
        if f < 0.0 < f_right and min(df, df_right, mu, mu_right) > 0.0:
            width = log(right / left)
            part, rise = _cubic_root(f, f_right, width * df, width * df_right)
            here = self.evaluate(left * exp(part * width), guess=mu * (mu_right / mu) ** part)
            smooth = abs(here.slope) < 0.1 * (f_right - f)
            if smooth and 0.5 * rise < width * here.curvature < 2.0 * rise:
                self._refine(left, right, here)
                return
        # Not as smooth as the ends look: two minima may share the cell, so come from both.
        self._refine(left, right, self.evaluate(right, guess=mu_right))
        self._refine(left, right, self.evaluate(left, guess=mu))

    def noise(self, value: float) -> float:
        """What rounding may change in a value; residuals of zero come out as rounding of ``y``."""
        return float(rounding(value, self.sections.yy))

    def _offer(self, found: Section) -> None:
        """Take a minimum that is better by more than rounding, or as good and smaller."""
        here, loss = float(found.t), float(found.value)
        noise = self.noise(self.best_value)
        if abs(loss - self.best_value) > noise:
            if loss < self.best_value:
                self.best, self.outcome = found, "unique"
                self.best_t, self.best_value = here, loss
        elif abs(here - self.best_t) > 1e-6 * self.best_t:
            if here < self.best_t:
                self.best, self.best_t, self.best_value = found, here, loss
            self.outcome = "several" if self.best_t > 0.0 else "unique"

    def _refine(self, left: float, right: float, here: Section) -> None:
        """Find a root of the slope in a bracket: Newton in ``log t``, safeguarded."""
        t = float(here.t)
        left, right = left * (1.0 - _SLACK), right * (1.0 + _SLACK)
        before, newton = inf, False
        for _ in range(_MAX_STEPS):
            slope, noise, curvature = float(here.slope), float(here.noise), float(here.curvature)
            beyond = slope >= -noise
            left, right = (left, t) if beyond else (t, right)
            width = log(right / left)
            step = -slope / curvature if curvature > 0.0 else inf
            inside = log(left / t) < step < log(right / t)
            if not inside:
                # A Newton step that crossed into a flat stretch missed its end by a square.
                back = min(4.0 * width, 1 / 16) if beyond and newton else 0.5
                step = log(right / t) - back * width
            # Newton steps this short that no longer shrink are rounding. A slope within rounding is
            # a root, unless it is a flat stretch whose left end we want.
            moved = abs(step)
            idle = moved <= 4 * EPS or (newton and before / 4 <= moved <= 1e-12)
            idle = idle or (abs(slope) <= noise and noise < 1e-8 * curvature)
            if idle or width <= 4 * EPS:
                break
            before, newton = moved, inside
            t *= exp(step)
            here = self.evaluate(t, guess=max(here.mu + step * here.rate, 0.1 * here.mu))
        else:
            # Steps used up at the foot of a flat stretch: the last point on it.
            if here.slope < -here.noise:
                here = self.evaluate(right, guess=here.mu)
        self._offer(here)

    def _look_far(self) -> None:
        """Where the loss falls towards infinity, return the smallest norm that comes close."""
        if self.infinity == inf:
            return
        problem = self.sections
        best, noise = self.best, self.noise(self.infinity)
        # A tie with infinity is an optimum, unless it is as far out or the loss still falls there.
        far = self.best_t > _FAR * problem.groups.gamma.max()
        far = far or (best is not None and best.slope < -best.noise)
        if self.infinity > self.best_value + (noise if far else -noise):
            return
        self.outcome, self.best = "unattained", None
        margin = far_margin(self.infinity, self.gap, problem.yy)
        allowed = self.infinity + margin
        if problem.yy <= allowed:
            self.best_t, self.best_value = 0.0, problem.yy
            return
        grid = self.coarse.t
        while True:
            here = self.evaluate(grid)
            if (here.value <= allowed).any() or grid[-1] > 1e200:
                break
            grid = np.geomspace(grid[-1], 1e6 * grid[-1], 20)
        # The last point where none is good enough, which only rounding can bring about.
        i = int(np.argmax(np.append(here.value[:-1] <= allowed, True)))
        if problem.nullity and problem.groups.honest > 0.0 and i > 0 and here.fill[i - 1] > 0.0:
            t = float(approach(problem, grid[i - 1 : i], grid[i : i + 1], margin)[0])
            self.best_t, self.best_value = t, float(self.evaluate(t, guess=1.0).value)
            return
        self.best_t, self.best_value = float(grid[i]), float(here.value[i])
        if i > 0 and here.value[i] <= allowed < here.value[i - 1]:
            where, _ = fall_to(
                lambda _, t, mu: self.evaluate(t, guess=mu),
                grid[i - 1 : i],
                grid[i : i + 1],
                here.mu[i : i + 1],
                allowed,
            )
            self.best_t = float(where[0])
            self.best_value = float(self.evaluate(self.best_t, guess=here.mu[i]).value)


def _length(x: Vector) -> float:
    return sqrt(x.dot(x))


def _cubic_root(f0: float, f1: float, df0: float, df1: float) -> tuple[float, float]:
    """Where a cubic that rises from ``f0 < 0`` to ``f1 > 0`` over a unit vanishes; its slope."""
    low, high, x = 0.0, 1.0, f0 / (f0 - f1)
    second, third = 3.0 * (f1 - f0) - 2.0 * df0 - df1, df0 + df1 - 2.0 * (f1 - f0)
    for _ in range(8):
        f = f0 + x * (df0 + x * (second + x * third))
        df = df0 + x * (2.0 * second + 3.0 * x * third)
        low, high = (low, x) if f > 0.0 else (x, high)
        before, x = x, x - f / df if df > 0.0 else low
        if not low < x < high:
            x = 0.5 * (low + high)
        if abs(x - before) < 1e-6:
            break
    return x, df


def _hidden_turns(coarse: Section, width: float) -> Vector:
    """More points in cells of a grid where the slope may meet a zero that its signs do not show."""
    t, f, df = coarse.t, coarse.slope, coarse.curvature
    # A tangent has to meet it within the cell.
    ends = (width * abs(df) > abs(f)).nonzero()[0].tolist()
    cells = {i for end in ends for i in (end - 1, end) if 0 <= i < t.size - 1}
    found = [
        float(t[i]) * exp(width * x)
        for i in cells
        if _may_turn(*f[i : i + 2].tolist(), *(width * df[i : i + 2]).tolist())
        for x in _INSIDE
    ]
    return np.array(found)


def _may_turn(f0: float, f1: float, df0: float, df1: float) -> bool:
    """Whether a slope of one sign heads for zero from both ends, or its cubic interpolant does."""
    if f0 * f1 <= 0.0:
        return False
    if f0 * df0 < 0.0 < f1 * df1:
        return True
    second, third = 3.0 * (f1 - f0) - 2.0 * df0 - df1, df0 + df1 - 2.0 * (f1 - f0)
    return any(f0 * (f0 + x * (df0 + x * (second + x * third))) < 0.0 for x in _INSIDE)
