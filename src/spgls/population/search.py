"""The one-dimensional search over the squared norm ``t``.

``phi`` may have several minima, so its slope is evaluated on a grid of ``log t`` that covers every
scale of the game, and each change of sign is refined to rounding by Newton's method on the slope:
comparing values would give half the digits.
"""

from __future__ import annotations

from math import exp, inf, log, sqrt
from typing import Literal

import numpy as np

from spgls.base.types import EPS, Vector
from spgls.population.bracket import cubic, cubic_root, refine
from spgls.population.far import approach, fall_to, far_margin, far_turn, rounding
from spgls.population.kink import points_around
from spgls.population.moments import Numbers, either
from spgls.population.section import EXACT, LOOSE, Section, Sections

__all__ = ["FLOOR", "POINTS", "STEP", "Outcome", "Search", "expected_range"]

Outcome = Literal["unique", "several", "unattained"]

#: Distance of grid points in log t, and how many there may be.
STEP, POINTS = 0.5, 240
#: How far in log t a root may lie outside its bracket: slopes on the grid are not exact.
_SLACK = 1e-2
#: Beyond this multiple of every strength a goal is reached for all purposes.
_FAR = 1e10
#: No gap below this, in units of |y|^2, is asked for: rounding would not show it.
FLOOR = 1e-12
#: Cells whose least loss seems to be this much above the best, in units of |y|^2, are left to the
#: proof.
_HOPELESS = 1e-6
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
        self.infinity = float(sections.value_at_infinity())
        self.steps = 0
        self.outcome: Outcome = "unique"
        self.best: Section | None = None
        self.best_t, self.best_value = 0.0, sections.yy

    @property
    def upper(self) -> float:
        """A loss that some predictor has, measured or computed: the incumbent's and some more."""
        return self.best_value + 4.0 * self.gap

    def evaluate(self, t: Numbers, tol: float = EXACT, guess: Numbers | None = None) -> Section:
        """``phi`` at several ``t`` or a single one, counted."""
        self.steps += t.size if isinstance(t, np.ndarray) else 1
        return self.sections.evaluate(t, tol, guess)

    def _step_to(self, t: float, guess: float) -> Section:
        """The same at a single one, well enough for a step of Newton's method."""
        self.steps += 1
        return self.sections.step_to(t, guess)

    def run(self) -> None:
        """Find the smallest of the global minima that the grid shows."""
        if self.sections.yy == 0.0:
            return
        low, high = (float(end) for end in expected_range(self.sections, self.infinity))
        self.coarse = self._descend(low, high, int(min(log(high / low) / STEP + 2, POINTS)))
        coarse = self.coarse
        # Minima beyond the grid, which the signs at its ends tell of.
        # Norms that double precision does not hold are zero, which is known.
        if coarse.slope[0] >= -coarse.noise[0] and low * 1e-12 * (1.0 - _SLACK) > 0.0:
            self._refine(low * 1e-12, low, self.evaluate(low, guess=coarse.mu[0]))
        if coarse.slope[-1] < -coarse.noise[-1] and self.infinity == inf:
            self._refine(high, high * 1e12, self.evaluate(high, guess=coarse.mu[-1]))
        self._look_far()

    def look_near(self, low: float, high: float) -> None:
        """Search again around an interval that holds something better."""
        self._descend(low / 2, high * 2, 33)
        self._look_far()

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
        cells = (right[1:] > right[:-1]).nonzero()[0]
        floor = _floors(coarse, cells)
        order = floor.argsort(kind="stable")
        for i, least in zip(cells[order].tolist(), floor[order].tolist(), strict=True):
            if not least > self.best_value + _HOPELESS * self.sections.yy:
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
        here = None
        if f < 0.0 < f_right and min(df, df_right, mu, mu_right) > 0.0:
            width = log(right / left)
            part, rise = cubic_root(f, f_right, width * df, width * df_right)
            here = self._step_to(left * exp(part * width), mu * (mu_right / mu) ** part)
            smooth = abs(here.slope) < 0.1 * (f_right - f)
            if smooth and 0.5 * rise < width * here.curvature < 2.0 * rise:
                self._refine(left, right, here)
                return
        if not self.sections.alone:
            # Where the worst of several changes it bends sharply; a second minimum in the cell
            # shows in the proof.
            self._refine(left, right, here or self.evaluate(right, guess=mu_right))
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
        """Offer the minimum that a bracket holds, from a point in it."""
        ends = left * (1.0 - _SLACK), right * (1.0 + _SLACK)
        self._offer(refine(self._advance, *ends, here))

    def _advance(self, t: float, mu: float, exactly: bool) -> Section:
        return self.evaluate(t, guess=mu) if exactly else self._step_to(t, mu)

    def _look_far(self) -> None:
        """Where the loss falls towards infinity, return the smallest norm that comes close."""
        if self.infinity == inf:
            return
        problem = self.sections
        best, noise = self.best, self.noise(self.infinity)
        # A tie with infinity is an optimum, unless it is as far out or the loss still falls there.
        far = self.best_t > _FAR * problem.groups.gamma.max()
        far = far or (best is not None and best.slope < -(best.noise + 4 * EPS * best.curvature))
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
        fills = problem.nullity and problem.groups.honest > 0.0 and i > 0 and here.fill[i - 1] > 0.0
        if problem.alone and fills:
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


def expected_range(sections: Sections, infinity: Numbers) -> tuple[Numbers, Numbers]:
    """Range of ``t`` where minima are expected; the proof does not rely on it.

    Parameters
    ----------
    sections : Sections
        One game, or many.
    infinity : float or ndarray of shape (C,)
        Limit of ``phi``.
    """
    groups, sigma, (eta, zeta, delta) = sections.groups, sections.sigma, sections.base
    larger, smaller = (np.maximum, np.minimum) if groups.many else (max, min)
    # NumPy divides by zero.
    honest, ridge = np.asarray(groups.honest), np.asarray(sections.ridge)
    low, p_y = inf, _length(sigma * eta)
    if p_y > EPS * sqrt(sections.yy):
        stiff = 1.0 + ridge + 4.0 * sum(share / gamma for gamma, share, _ in groups.moving)
        low = 1e-2 * (p_y / stiff) ** 2
    low = larger(smaller(low, 1e-2 * groups.moving[0][0]), 1e-40)
    reach = float(((eta**2 + zeta**2) / sections.d).sum())
    high = larger(larger(groups.moving[-1][0], reach), 1e4 * low)
    first = sum(reach for _, _, reach in groups.moving)
    second = sum(gamma * reach for gamma, _, reach in groups.moving)
    p_d, far = _length(sigma * delta), 0.0
    if p_d > 1e-60 and not honest.all():
        # Far out sqrt(a) v fits labels less goals, with |sqrt(a) v|^2 about <gamma^2>/t.
        turn = sqrt(sections.zz * sections.apart) + sections.apart
        seen = 2.0 * first * p_d / (EPS * np.asarray(infinity))
        far = smaller(larger((turn / p_d) ** 2, second / p_d**2), seen**2)
    if sections.nullity and honest.any():
        far = either(honest > 0.0, far_turn(sections, first, second, infinity), far)
    high = 1e2 * larger(high, far)
    if sections.lowest > 0.0:
        # The honest group alone would lose more than predicting nothing does.
        cap = sections.yy * (1.0 + 1.0 / np.sqrt(honest)) ** 2 / sections.lowest
        high = smaller(high, 1.1 * cap)
    high = smaller(high, 1.1 * sections.yy / ridge)
    return smaller(low, 1e-2 * high), high


def _length(x: Vector) -> float:
    return sqrt(x.dot(x))


def _floors(coarse: Section, cells: np.ndarray) -> Vector:
    """What the loss in cells of a grid may fall to: twice as deep as the tangents at their ends."""
    after = cells + 1
    width = np.log(coarse.t[after] / coarse.t[cells])
    left, right = coarse.value[cells], coarse.value[after]
    fall, rise = -coarse.slope[cells], coarse.slope[after]
    meet = (left * rise + right * fall - rise * fall * width) / (rise + fall)
    return np.asarray(2.0 * meet - np.fmin(left, right))


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
    return any(f0 * cubic(x, f0, f1, df0, df1)[0] < 0.0 for x in _INSIDE)
