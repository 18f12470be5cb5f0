"""The one-dimensional search over the squared norm ``t``.

``phi`` may have several minima, so its slope is evaluated on a grid of ``log t`` that covers every
scale of the game, and each change of sign is refined to rounding by Newton's method on the slope:
comparing values would give half the digits.
"""

from __future__ import annotations

from math import sqrt
from typing import Literal

import numpy as np

from spgls._types import EPS, Vector
from spgls.population.section import Section, Sections

__all__ = ["FLOOR", "Outcome", "Search"]

Outcome = Literal["unique", "several", "unattained"]

#: Distance of grid points in log t, and how many there may be.
_STEP, _POINTS = 0.5, 240
_MAX_STEPS = 80
#: Beyond this multiple of every strength a goal is reached for all purposes.
_FAR = 1e10
#: No gap below this, in units of |y|^2, is asked for: rounding would not show it.
FLOOR = 1e-12


class Search:
    """State of one search, in the units of its sections.

    ``best_t`` and ``best_value`` are the incumbent, ``infinity`` is the limit of ``phi`` as ``t``
    grows, and ``gap`` the distance from the infimum that is asked for.
    """

    def __init__(self, sections: Sections, tol: float) -> None:
        self.sections = sections
        self.gap = max(tol, FLOOR) * sections.yy
        self.infinity = sections.value_at_infinity()
        self.steps = 0
        self.outcome: Outcome = "unique"
        self.best_t, self.best_value = 0.0, sections.yy

    def evaluate(self, t: Vector, rtol: float = 2 * EPS, guess: Vector | None = None) -> Section:
        """``phi`` at several ``t``, counted."""
        self.steps += t.size
        return self.sections.evaluate(t, rtol=rtol, guess=guess)

    def run(self) -> None:
        """Find the smallest of the global minima that the grid shows."""
        if self.sections.yy == 0.0:
            return
        low, high = self._range()
        count = int(min(np.log(high / low) / _STEP + 2, _POINTS))
        self.grid = np.geomspace(low, high, count)
        self._descend(self.grid, whole=True)
        self._look_far()

    def look_near(self, low: float, high: float) -> None:
        """Search again around an interval that holds something better."""
        self._descend(np.geomspace(low / 2, high * 2, 33), whole=False)
        self._look_far()

    def _range(self) -> tuple[float, float]:
        """Range of ``t`` where minima are expected; the proof does not rely on it."""
        problem, groups = self.sections, self.sections.groups
        sigma, (eta, zeta, delta) = problem.sigma, problem.base
        gamma_min, gamma_max = float(groups.gamma.min()), float(groups.gamma.max())
        p_y = float(np.linalg.norm(sigma * eta))
        stiff = 1.0 + problem.ridge + 4.0 * float(groups.share @ (1.0 / groups.gamma))
        low = 1e-2 * (p_y / stiff) ** 2 if p_y > EPS * sqrt(problem.yy) else np.inf
        low = max(min(low, 1e-2 * gamma_min), 1e-40)
        reach = float(((eta**2 + zeta**2) / problem.d).sum()) if problem.size else 0.0
        high = 1e2 * max(gamma_max, reach, 1e4 * low)
        if groups.honest == 0.0:
            # Far out sqrt(a) v fits labels less goals, with |sqrt(a) v|^2 about <gamma^2>/t.
            p_d = float(np.linalg.norm(sigma * delta))
            m1, m2 = float(groups.share @ groups.gamma), float(groups.share @ groups.gamma**2)
            turn = sqrt(problem.zz * problem.apart) + problem.apart
            if p_d > 1e-60:
                far = max((turn / p_d) ** 2, m2 / p_d**2)
                seen = 2.0 * m1 * p_d / (EPS * self.infinity) if self.infinity > 0.0 else np.inf
                high = max(high, 1e2 * min(far, seen**2))
        if groups.honest > 0.0 and problem.lowest > 0.0:
            # The honest group alone would lose more than predicting nothing does.
            cap = problem.yy * (1.0 + 1.0 / sqrt(groups.honest)) ** 2 / problem.lowest
            high = min(high, 1.1 * cap)
        if problem.ridge > 0.0:
            high = min(high, 1.1 * problem.yy / problem.ridge)
        return min(low, 1e-2 * high), high

    def _descend(self, grid: Vector, *, whole: bool) -> None:
        """Refine every minimum that the slopes on a grid show, or beyond it if it is the whole."""
        coarse = self.evaluate(grid, rtol=1e-6)
        hidden = _hidden_turns(coarse)
        if hidden.size:
            coarse = coarse.joined(self.evaluate(hidden, rtol=1e-6)).sorted()
            grid = coarse.t
        # A slope within rounding counts as the far side, so that of a flat stretch of minima the
        # smallest is found.
        right = coarse.slope >= -coarse.noise
        start = np.flatnonzero(~right[:-1] & right[1:])
        left, end = grid[start], grid[start + 1]
        if whole and right[0]:
            left, end = np.append(left, grid[0] * 1e-12), np.append(end, grid[0])
        if whole and not right[-1] and self.infinity == np.inf:
            left, end = np.append(left, grid[-1]), np.append(end, grid[-1] * 1e12)
        if left.size:
            # From both ends: two minima may share a cell of the grid.
            both = np.concatenate([left, left]), np.concatenate([end, end])
            found = self._refine(*both, np.concatenate([end, left]))
            self._offer(found.t, found.value)
        i = int(np.argmin(coarse.value))
        if coarse.value[i] < self.best_value - self.noise(self.best_value):
            self._offer(coarse.t[i : i + 1], coarse.value[i : i + 1])

    def noise(self, value: float) -> float:
        """What rounding may change in a value; residuals of zero come out as rounding of ``y``."""
        return 4 * EPS * value + (8 * EPS) ** 2 * self.sections.yy

    def _offer(self, t: Vector, value: Vector) -> None:
        """Take minima that are better by more than rounding, or as good and smaller."""
        for here, loss in zip(t.tolist(), value.tolist(), strict=True):
            noise = self.noise(self.best_value)
            if abs(loss - self.best_value) > noise:
                if loss < self.best_value:
                    self.best_t, self.best_value, self.outcome = here, loss, "unique"
            elif abs(here - self.best_t) > 1e-6 * self.best_t:
                if here < self.best_t:
                    self.best_t, self.best_value = here, loss
                self.outcome = "several" if self.best_t > 0.0 else "unique"

    def _refine(self, left: Vector, right: Vector, t: Vector) -> Section:
        """Roots of the slope in brackets, all at once: Newton in ``log t``, safeguarded."""
        here = self.evaluate(t)
        active = np.ones(t.size, dtype=bool)
        before = np.full(t.size, np.inf)
        newton = np.zeros(t.size, dtype=bool)
        for _ in range(_MAX_STEPS):
            beyond = here.slope >= -here.noise
            left, right = np.where(beyond, left, t), np.where(beyond, t, right)
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                new = t * np.exp(-here.slope / here.curvature)
            inside = (new > left) & (new < right) & (here.curvature > 0.0)
            # A Newton step that crossed into a flat stretch missed its end by a square.
            width = np.log(right / left)
            back = np.where(beyond & newton, np.minimum(4.0 * width, 1 / 16), 0.5)
            new = np.where(inside, new, right * np.exp(-back * width))
            moved = np.abs(np.log(new / t))
            # Newton steps this short that no longer shrink are rounding.
            idle = (moved <= 4 * EPS) | ((moved <= 1e-12) & (moved >= before / 4) & newton)
            newton = inside
            # A slope within rounding is a root, unless it is a flat stretch whose left end we want.
            idle |= (np.abs(here.slope) <= here.noise) & (here.noise < 1e-8 * here.curvature)
            active &= ~(idle | (width <= 4 * EPS))
            before = moved
            if not active.any():
                break
            t = np.where(active, new, t)
            here = self.evaluate(t, guess=here.mu)
        # Steps used up at the foot of a flat stretch: the last point on it.
        short = active & (here.slope < -here.noise)
        return self.evaluate(np.where(short, right, t)) if short.any() else here

    def _look_far(self) -> None:
        """Where the loss falls towards infinity, return the smallest norm that comes close."""
        if np.isinf(self.infinity):
            return
        far = self.best_t > _FAR * self.sections.groups.gamma.max()
        noise = self.noise(self.infinity)
        if self.infinity > self.best_value + (noise if far else -noise):
            return
        self.outcome = "unattained"
        allowed = self.infinity + max(self.gap / 2, 2 * self.noise(self.infinity))
        if self.sections.yy <= allowed:
            self.best_t, self.best_value = 0.0, self.sections.yy
            return
        grid = self.grid
        while True:
            values = self.evaluate(grid).value
            if (values <= allowed).any() or grid[-1] > 1e200:
                break
            grid = np.geomspace(grid[-1], 1e6 * grid[-1], 20)
        for _ in range(5):
            # The last point where none is good enough, which only rounding can bring about.
            i = int(np.argmax(np.append(values[:-1] <= allowed, True)))
            self.best_t, self.best_value = float(grid[i]), float(values[i])
            grid = np.geomspace(grid[max(i - 1, 0)], grid[i], 12)
            values = self.evaluate(grid).value


def _hidden_turns(coarse: Section) -> Vector:
    """More points in cells of a grid where a tangent of the slope meets a zero that is not seen."""
    f, df = coarse.slope, coarse.curvature
    gap = np.log(coarse.t[1:] / coarse.t[:-1])
    tangents = (f[:-1] * (f[:-1] + gap * df[:-1]) < 0.0) | (f[1:] * (f[1:] - gap * df[1:]) < 0.0)
    cells = np.flatnonzero(tangents & (f[:-1] * f[1:] > 0.0))
    inner = np.array([0.25, 0.5, 0.75])
    return np.asarray((coarse.t[cells, None] * np.exp(gap[cells, None] * inner)).ravel())
