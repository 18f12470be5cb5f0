"""Branch and bound over all squared norms: nothing better was missed, or it is found."""

from __future__ import annotations

from math import exp, log, sqrt

import numpy as np

from spgls._types import Vector
from spgls.population.bound import end_bound, taylor_bound
from spgls.population.search import Search

__all__ = ["prove"]

#: Widths in log t of first intervals and of those added at the ends, and the least worth cutting.
_WIDTH, _MORE, _LEAST = 1.5, 4.0, 1e-9
#: Most parts an interval is cut into: enough to save generations, few enough to adapt.
_PARTS = 6


def prove(search: Search, max_intervals: int) -> tuple[float, int]:
    """Lower bound of ``phi`` on all of ``t >= 0``, and the number of intervals it took.

    Parameters
    ----------
    search : Search
        A finished search; its incumbent improves where an interval shows better.
    max_intervals : int
        Where to give up.
    """
    if search.best_value <= search.gap:
        # A sum of squares is not negative.
        return 0.0, 0
    low, high = _first_intervals(search)
    low, high, settled, count = _add_ends(search, low, high, max_intervals)
    while low.size:
        count += low.size
        bound, value, margin = taylor_bound(search.sections, low, high)
        known = min(search.best_value, search.infinity)
        better = np.flatnonzero(value < known - np.maximum(margin, search.gap / 8))
        if better.size:
            i = better[np.argmin(value[better])]
            search.look_near(float(low[i]), float(high[i]))
        goal = _goal(search)
        # Rounding, not width, keeps the others down.
        worth = (np.log(high / low) > _LEAST) & (value - bound > 2.0 * margin)
        keep = (bound < goal) & worth
        settled = min(settled, float(np.min(bound[~keep], initial=np.inf)))
        low, high, bound, value = low[keep], high[keep], bound[keep], value[keep]
        # What a bound lacks is of second order in the width.
        with np.errstate(divide="ignore"):
            wanted = np.sqrt((value - bound) / np.maximum(value - goal, 0.0))
        parts = np.clip(np.ceil(wanted), 2, _PARTS).astype(int)
        if count + int(parts.sum()) > max_intervals:
            settled = min(settled, float(np.min(bound, initial=np.inf)))
            break
        low, high = _cut(low, high, parts)
    return min(max(0.0, settled), search.best_value), count


def _goal(search: Search) -> float:
    """Bound to reach, a little more than what was asked for."""
    if search.outcome == "unattained":
        return min(search.best_value, search.infinity) - 0.49 * search.gap
    return search.best_value - 0.99 * search.gap


def _first_intervals(search: Search) -> tuple[Vector, Vector]:
    """Cover the grid by intervals of moderate width, finer towards the incumbent."""
    start, end = float(search.grid[0]), float(search.grid[-1])
    edges = np.linspace(log(start), log(end), int(log(end / start) / _WIDTH) + 2)
    if start < search.best_t < end:
        centre = log(search.best_t)
        here = search.sections.evaluate(np.array([search.best_t]))
        sharp = max(abs(float(here.curvature[0])), 1e-3 * search.sections.yy)
        width = min(max(sqrt(search.gap / sharp), 1e-6), _WIDTH / 3)
        ladder = width * 3.0 ** np.arange(int(log(0.5 * _WIDTH / width) / log(3.0)) + 2)
        edges = edges[np.abs(edges - centre) > 1.2 * ladder[-1]]
        edges = np.sort(np.concatenate([edges, centre - ladder, centre + ladder]))
    points = np.exp(edges)
    return points[:-1], points[1:]


def _add_ends(
    search: Search, low: Vector, high: Vector, max_intervals: int
) -> tuple[Vector, Vector, float, int]:
    """Move both ends out until what lies beyond them is settled."""
    start, end, goal = float(low[0]), float(high[-1]), _goal(search)
    lows, highs, count = [], [], low.size
    while True:
        first = end_bound(search.sections, 0.0, start)
        if first >= goal or start < 1e-60 or count > max_intervals:
            break
        lows.append(start * exp(-_MORE))
        highs.append(start)
        start, count = lows[-1], count + 1
    while True:
        last = end_bound(search.sections, end, np.inf)
        if last >= goal or end > 1e60 or count > max_intervals:
            break
        lows.append(end)
        highs.append(end * exp(_MORE))
        end, count = highs[-1], count + 1
    settled = min(first, last)
    return np.append(low, lows), np.append(high, highs), settled, count - low.size - len(lows) + 2


def _cut(low: Vector, high: Vector, parts: np.ndarray) -> tuple[Vector, Vector]:
    """Cut each interval into its number of parts, equal in ``log t``."""
    index = np.repeat(np.arange(low.size), parts)
    j = np.arange(index.size) - (np.cumsum(parts) - parts)[index]
    step = np.log(high / low)[index] / parts[index]
    left = low[index] * np.exp(j * step)
    right = np.where(j + 1 == parts[index], high[index], low[index] * np.exp((j + 1) * step))
    return left, right
