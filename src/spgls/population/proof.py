"""Branch and bound over all squared norms: nothing better was missed, or it is found."""

from __future__ import annotations

from math import exp, inf, log, sqrt

import numpy as np

from spgls.base.types import Vector
from spgls.population.bound import between, crude_end, crude_start, end_bound, taylor_bound
from spgls.population.search import Search
from spgls.population.section import LOOSE, Dual, Section

__all__ = ["prove"]

#: Width in log t of intervals added at the ends, and the least worth cutting.
_MORE, _LEAST = 4.0, 1e-9
#: Most parts an interval is cut into: enough to save generations, few enough to adapt.
_PARTS = 6
#: Points of the grid closer than this in log t to the best value give way to a ladder of smaller
#: intervals, which reaches this share of the way to the others; the ratio of its rungs.
_NEAR, _SHARE, _RATIO = 0.2, 0.75, 1.9
#: How far the best value's Lagrangian is taken to be convex, in units of second derivatives.
_CONVEX = 0.05

Intervals = tuple[Vector, Vector]


def prove(search: Search, max_intervals: int) -> tuple[float, int, bool]:
    """Lower bound of ``phi`` on all of ``t >= 0``, and the number of intervals it took.

    Also whether it is as good as rounding allows, and not cut short.

    Parameters
    ----------
    search : Search
        A finished search; its incumbent improves where an interval shows better.
    max_intervals : int
        Where to give up.
    """
    if search.best_value <= search.gap or search.coarse.t.size > max_intervals:
        # A sum of squares is not negative.
        return 0.0, 0, search.best_value <= search.gap
    waiting, settled, count = _ends(search, max_intervals)
    dual, low, high = _first_intervals(search)
    # The least bound known of what waits to be examined again; of ends, that of a sum of squares.
    doubt, ended = 0.0 if waiting else inf, True
    while True:
        count += low.size
        bound, margin = taylor_bound(search.sections, dual, low, high, search.upper)
        value = dual.value
        _improve(search, low, high, value, margin)
        goal = _goal(search)
        keep = bound < goal
        if np.count_nonzero(keep):
            # Rounding, not width, keeps the others down.
            keep &= (np.log(high / low) > _LEAST) & (value - bound > 2.0 * margin)
            doubt = min(doubt, float(bound.min(where=keep, initial=inf)))
        settled = min(settled, float(bound.min(where=~keep, initial=inf)))
        if np.count_nonzero(keep):
            waiting.append(_cut(low[keep], high[keep], bound[keep], value[keep], goal))
        if not waiting:
            break
        low, high = (np.concatenate(ends) for ends in zip(*waiting, strict=True))
        if count + low.size > max_intervals:
            settled, ended = min(settled, doubt), False
            break
        dual = between(search.sections, low, high)
        waiting, doubt = [], inf
    return min(max(0.0, settled), search.best_value), count, ended


def _improve(search: Search, low: Vector, high: Vector, value: Vector, margin: Vector) -> None:
    """Search again where the Lagrangian shows less than the best value known."""
    known, more = min(search.best_value, search.infinity), np.maximum(margin, search.gap / 8)
    some = np.flatnonzero(value + more < known)
    if not some.size:
        return
    # It may lie below the loss where its multiplier keeps away from a pole.
    loss = search.evaluate(np.sqrt(low[some]) * np.sqrt(high[some]), LOOSE).value + more[some]
    i = int(some[loss.argmin()])
    if loss.min() < known:
        search.look_near(float(low[i]), float(high[i]))


def _goal(search: Search) -> float:
    """Bound to reach, a little more than what was asked for."""
    known = min(search.best_value, search.sections.least)
    if search.outcome == "unattained":
        return float(min(known, search.infinity) - 0.49 * search.gap)
    return known - 0.99 * search.gap


def _first_intervals(search: Search) -> tuple[Dual, Vector, Vector]:
    """One around each point of the grid, and around the best value a ladder of smaller ones."""
    sections, coarse, best = search.sections, search.coarse, search.best
    t, mu, roots = coarse.t, coarse.mu, np.sqrt(coarse.t)
    edges = np.empty(t.size + 1)
    edges[0], edges[-1] = t[0], t[-1]
    np.multiply(roots[1:], roots[:-1], out=edges[1:-1])
    if best is not None and t[0] < best.t < t[-1]:
        before, after = t.searchsorted(best.t * exp(-_NEAR)), t.searchsorted(best.t * exp(_NEAR))
        # What is nearer to it than to the next points of the grid, and more.
        back = log(best.t / t[before - 1]) * _SHARE if before else log(best.t / t[0])
        ahead = log(t[after] / best.t) * _SHARE if after < t.size else log(t[-1] / best.t)
        rungs = _ladder(_serves_best(search, best), back, ahead)
        middle = 0.5 * (rungs[1:] + rungs[:-1])
        near = np.zeros_like(middle)
        if best.mu > 0.0:
            # The multiplier goes with a power of t, nearly; any will do.
            near = best.mu * np.exp(min(max(best.rate / best.mu, -9.0), 9.0) * middle)
        steps = best.t * np.exp(rungs)
        # Rounding must not leave out what lies next to the ends of the grid.
        steps[0] = steps[0] if before else t[0]
        steps[-1] = steps[-1] if after < t.size else t[-1]
        t = np.concatenate([t[:before], best.t * np.exp(middle), t[after:]])
        mu = np.concatenate([mu[:before], near, mu[after:]])
        edges = np.concatenate([edges[:before], steps, edges[after + 1 :]])
    low, high = edges[:-1], edges[1:]
    if not sections.alone or (sections.lowest > 0.0 and not mu.all()):
        # At the pole the Lagrangian has no minimum, unless the target avoids the lowest space; and
        # the worst of several populations is another for each interval.
        return between(sections, low, high), low, high
    return sections.dual(t, mu), low, high


def _serves_best(search: Search, best: Section) -> float:
    """How far in ``log t`` the Lagrangian of the best value serves.

    While it is convex, which a third derivative of the size of the curvature may end, or as long as
    what it loses is less than the gap.
    """
    curvature = max(abs(float(best.curvature)), 1e-3 * search.sections.yy)
    return max(_CONVEX * float(best.stiff) / curvature, sqrt(search.gap / curvature), 1e-6)


def _ladder(inner: float, back: float, ahead: float) -> Vector:
    """Edges around the best value, at growing distances from it up to given ones.

    Around a point at a distance of ``x`` its own Lagrangian serves from about ``x/2`` on.
    """
    count = int(log(max(back, ahead) / inner) / log(_RATIO)) + 1 if inner < max(back, ahead) else 0
    rungs = [inner * _RATIO**k for k in range(count)]
    # The last may be closer to the end than the others are to each other.
    left = [-rung for rung in reversed(rungs) if 1.1 * rung < back]
    return np.array([-back, *left, *(rung for rung in rungs if 1.1 * rung < ahead), ahead])


def _ends(search: Search, max_intervals: int) -> tuple[list[Intervals], float, int]:
    """Bound from zero to the grid and from there to infinity, moving out until that is settled.

    Returns what lies between, to be examined, the bound, and the number of intervals it is for.
    """
    sections, coarse, goal = search.sections, search.coarse, _goal(search)
    beyond: list[tuple[float, float]] = []
    upper = search.upper
    t = float(coarse.t[0])
    facing = sections.facing_one(t)
    first = crude_start(facing, t, upper)
    if first < goal:
        first = end_bound(facing, 0.0, t, upper, float(coarse.mu[0]))
    while first < goal and t > 1e-60 and len(beyond) < max_intervals:
        beyond.append((t * exp(-_MORE), t))
        t *= exp(-_MORE)
        first = end_bound(sections.facing_one(t), 0.0, t, upper)
    t = float(coarse.t[-1])
    facing = sections.facing_one(t)
    last = crude_end(facing, t)
    if last < goal:
        last = end_bound(facing, t, inf, upper, float(coarse.mu[-1]))
    while last < goal and t < 1e60 and len(beyond) < max_intervals:
        beyond.append((t, t * exp(_MORE)))
        t *= exp(_MORE)
        last = end_bound(sections.facing_one(t), t, inf, upper)
    low, high = np.array(beyond).reshape(-1, 2).T
    return [(low, high)] if beyond else [], min(first, last), 2


def _cut(low: Vector, high: Vector, bound: Vector, value: Vector, goal: float) -> Intervals:
    """Cut each interval into the number of parts that its bound asks for, equal in ``log t``."""
    # What a bound lacks is of second order in the width.
    wanted = np.sqrt((value - bound) / np.maximum(value - goal, 0.0))
    parts = np.clip(np.ceil(wanted), 2, _PARTS).astype(int)
    index = np.repeat(np.arange(low.size), parts)
    j = np.arange(index.size) - (np.cumsum(parts) - parts)[index]
    step = np.log(high / low)[index] / parts[index]
    left = low[index] * np.exp(j * step)
    right = np.where(j + 1 == parts[index], high[index], low[index] * np.exp((j + 1) * step))
    return left, right
