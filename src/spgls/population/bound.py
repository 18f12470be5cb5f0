"""Lower bounds of ``phi`` on intervals of ``t``, and the branch and bound built on them.

For every multiplier ``nu >= -lowest`` the unconstrained minimum of the Lagrangian bounds ``phi``
from below at every ``t``. With ``d = y - z``, ``S_ab = a'b outside + nu sum a_i b_i/(d_i + nu)``
and ``G = sum d_i (y_i - z_i)^2/(d_i + nu)`` it is

    psi(t) = |y - z|^2 + f + S_zz a + 2 S_zd p - (G + f) e - nu tau + ridge t,

a fixed combination of the averages ``a``, ``p``, ``e = p^2/a`` and ``tau = a t``. Two bounds of it:

*Taylor.* In ``log t`` around a point inside, with a lower bound of the second derivative. A group
that moves contributes ``pi s c (-6 A s^2 + (4A - 2B) s + B)``, ``A = S_zz + nu gamma`` and
``B = 2 S_zd - nu gamma``: a quadratic in ``s``, whose range over an interval of ``s`` is exact,
times ``s c``. The derivative ``-e'`` is a sum over pairs of groups of positive terms ``E``
whose logarithmic derivative ``b = 2 - 3(c_k + c_l) - u/p + 4<s^2 c>/a`` is enclosed because every
``c`` increases and averages of it drift slowly; then ``E`` is within ``exp(h max|b|)`` of its
value at the point.

*Ends.* From the left end ``a``, ``p`` and ``e`` only decrease, by a known amount for ``a`` and
``p``; ``tau`` splits into the honest ``pi t`` and ``pi gamma s c``, whose range is known. This one
holds on ``[0, t]`` and on ``[t, inf)`` too, and there it is tight: all of ``a, p, e`` converge.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from spgls.base.types import EPS, Array, Vector
from spgls.population.moments import Moments, Numbers, averaged, column
from spgls.population.multiplier import blocks
from spgls.population.section import LOOSE, Dual, Sections
from spgls.reduction.reduced import ReducedGame

__all__ = [
    "between",
    "crude_end",
    "crude_start",
    "end_bound",
    "interval_bound",
    "taylor_bound",
]

#: Rounding allowed for, in units of the terms that are summed.
_ULPS = 16.0 * EPS
#: Multipliers tried for intervals that reach zero or infinity, relative to that of their end.
_TRIALS = np.concatenate([[0.0], 4.0 ** np.arange(-6.0, 7.0)])
#: Further ones, relative to the lowest squared singular value, and to the ridge.
_SHIFTS, _RIDGES = np.linspace(-0.95, 0.0, 8), np.array([0.25, 0.5, 1.0])


def interval_bound(
    game: ReducedGame,
    gammas: Vector,
    shares: Vector,
    low: Vector,
    high: Vector,
    ridge: float = 0.0,
) -> Vector:
    """Lower bound of ``phi`` of a game taken for exact, on each interval ``[low, high]``.

    Parameters
    ----------
    game : ReducedGame
        The reduced data.
    gammas, shares : ndarray of shape (K,)
        Strengths and shares of the groups.
    low, high : ndarray of shape (T,)
        Ends of the intervals of ``t``; zero and infinity are allowed.
    ridge : float
        Weight of ``t``.

    Returns
    -------
    ndarray of shape (T,)
    """
    with np.errstate(all="ignore"):
        sections = Sections(game.as_computed, np.asarray(gammas), np.asarray(shares), ridge)
        unit = sections.units.t
        low, high = np.atleast_1d(low) / unit, np.atleast_1d(high) / unit
        bound = np.full(low.shape, -np.inf)
        inner = (low > 0.0) & np.isfinite(high)
        if inner.any():
            ends = low[inner], high[inner]
            dual = between(sections, *ends)
            bound[inner] = taylor_bound(sections, dual, *ends, np.inf)[0]
        for i in np.flatnonzero(~inner):
            bound[i] = end_bound(sections, float(low[i]), float(high[i]), np.inf)
    return np.asarray(np.maximum(bound, 0.0) * sections.units.length**2)


def between(sections: Sections, low: Vector, high: Vector) -> Dual:
    """The Lagrangian in the middle of intervals, at multipliers that serve all of them well."""
    t = np.sqrt(low) * np.sqrt(high)
    half = 0.5 * np.log(high / low)
    rows, part = blocks(t.size, sections.size), sections.facing(t)
    mu = np.concatenate([_serving(part.of(some), t[some], half[some]) for some in rows])
    return part.dual(t, mu)


def _serving(sections: Sections, t: Vector, half: Vector) -> Vector:
    """Multipliers that are exact in the middle, or further from the pole for wide intervals."""
    m = sections.groups.at(t)
    along = sections.target(m)[0] * sections.sigma
    mu, _ = sections.multipliers.solve(m, along * along, LOOSE)
    if sections.lowest == 0.0:
        return np.asarray(mu)
    # Close to the pole the bound would fall off within the interval as the target turns into the
    # lowest space; backing off costs only to second order in the width.
    low_space = sections.e == 0.0
    sides = sections.sides[low_space]
    turn = column(m.bend) * sides[:, 0] + column(m.kappa) * sides[:, 1]
    there = np.linalg.norm(along[:, low_space], axis=1)
    turned = half * np.linalg.norm(turn, axis=1) / np.sqrt(m.a)
    # Closer still, rounding costs more than backing off does.
    hidden = _terms(m, sections.sizes_along(low_space))
    closest = np.sqrt(_ULPS * sections.lowest * hidden / m.tau)
    return np.asarray(np.fmax(np.fmax(mu, (there + turned) / np.sqrt(m.tau)), closest))


def _margin(sections: Sections, dual: Dual) -> Numbers:
    """What rounding may hide in the value of the Lagrangian."""
    m = dual.m
    terms = _terms(m, dual.sizes.T)
    return _ULPS * (terms + m.spread * sections.apart + abs(dual.nu) * m.tau + dual.fixed)


def _terms(m: Moments, sizes: Array) -> Numbers:
    """Sizes of the terms of the squared target, in the form it was computed in."""
    yy, yz, zz, zd, dd = sizes
    terms = m.e * yy + (2.0 * m.p * yz + m.u * zz) * (m.u / m.a)
    far = m.u > m.a
    if np.count_nonzero(far):
        terms = np.where(far, m.a * zz + 2.0 * m.p * zd + m.e * dd, terms)
    return terms


def taylor_bound(
    sections: Sections, dual: Dual, low: Vector, high: Vector, upper: float
) -> tuple[Vector, Vector]:
    """Bound on each interval from the Lagrangian at a point inside, and the rounding allowed for.

    Both the rounding of its evaluation and what it did to the game, for every predictor of the
    interval.

    Parameters
    ----------
    sections : Sections
        The problem.
    dual : Dual
        The Lagrangian at one point of each interval.
    low, high : ndarray of shape (T,)
        Ends, in the problem's units.
    upper : float
        A loss that some predictor has; the bound is of no interest above it.
    """
    m, nu = dual.m, dual.nu
    # A hair more than the interval, for the rounding of its logarithms.
    back, ahead = np.log(m.t / low) + 4 * EPS, np.log(high / m.t) + 4 * EPS
    reach = np.maximum(back, ahead)
    slope = sections.steepness(m, nu, dual.zz, dual.zd, dual.dd)
    _, _, size_zz, size_zd, _ = dual.sizes.T
    slope_size = dual.dd * m.e1 + sections.ridge * m.t + abs(nu) * m.tau
    slope_size += 2.0 * (m.bend * size_zz + m.u * size_zd)
    curvature, curvature_size, most = _least_curvature(sections, dual, low, high, reach)
    charge = sections.rounding.charge(*most, nu, upper)
    margin = _margin(sections, dual)
    margin += _ULPS * reach * (slope_size + reach * curvature_size)
    left = back * (0.5 * curvature * back - slope)
    right = ahead * (0.5 * curvature * ahead + slope)
    vertex = -slope / curvature
    inside = (curvature > 0.0) & (-back < vertex) & (vertex < ahead)
    change = np.where(inside, 0.5 * slope * vertex, np.minimum(left, right))
    # What is not a number is no bound.
    bound = sections.rounding.charged(dual.value + change - margin, charge, upper)
    return np.fmax(bound, -np.inf), margin + charge


def _least_curvature(
    sections: Sections, dual: Dual, low: Vector, high: Vector, reach: Vector
) -> tuple[Vector, Vector, tuple[Vector, Vector]]:
    """Lower bound of the second derivative of ``psi`` in ``log t``, and the size of its terms.

    Also the largest ``tau`` and root of ``k`` on each interval.
    """
    m, nu = dual.m, dual.nu
    groups, n = m.groups, m.groups.finite
    s, c = groups.left(np.array([low, high]))
    (s_max, s_min), (c_min, c_max) = s, c
    at_low, at_high = s * c
    w_max = np.maximum(at_low, at_high)
    w_max[(s_min <= 0.5) & (s_max >= 0.5)] = 0.25
    pull = nu[:, None] * groups.gamma
    first, second = dual.zz[:, None] + pull, 2.0 * dual.zd[:, None] - pull
    least = _least_quadratic(first, second, s_min[:, :n], s_max[:, :n])
    w_least = np.where(least < 0.0, w_max[:, :n], np.minimum(at_low, at_high)[:, :n])
    moving = averaged(least * w_least, groups.share)
    _, _, size_zz, size_zd, _ = dual.sizes.T
    size = (size_zz + 2.0 * size_zd) * averaged(w_max[:, :n], groups.share)
    size += 2.0 * abs(nu) * averaged(w_max, groups.reach)

    # Weighted averages of c move by <s c> less once or twice the variance of c, hence by no more
    # than the largest s c, or a multiple of the squared range of c, for a unit of log t.
    # Strengths are in order: the first group moves most, the last least.
    spread = (c_max[:, 0] - c_min[:, -1]) ** 2 / 4.0
    most = w_max.max(axis=1)
    drift = 4.0 * np.maximum(most, 2.0 * spread) + np.maximum(most, spread)
    wander = reach * drift
    weak, strong = groups.pairs
    less, more = 3.0 * (c[..., weak] + c[..., strong])
    b_max, b_min = (m.middle + wander)[:, None] - less, (m.middle - wander)[:, None] - more
    stretch = np.exp(reach[:, None] * np.maximum(-b_min, b_max))
    # A fall of zero stays zero whatever it is stretched by.
    fall = m.by_pair()
    spans = np.fmax(fall * stretch, 0.0)
    falls = np.where(b_min < 0.0, spans, fall / stretch) * b_min
    rate = sections.ridge - nu * groups.honest
    size += 4.0 * dual.dd * averaged(spans, groups.apart) + abs(rate) * high
    linear = rate * np.where(rate < 0.0, high, low)
    tau = groups.honest * high + averaged(w_max, groups.reach)
    most = tau, np.sqrt(averaged(c_max * c_max, groups.shares))
    return moving + dual.dd * averaged(falls, groups.apart) + linear, size, most


def _least_quadratic(first: Array, second: Array, low: Array, high: Array) -> Array:
    """Minimum of ``-6 A s^2 + (4A - 2B) s + B`` over ``low <= s <= high``."""
    candidates = [low, high]
    if (first < 0.0).any():
        vertex = (2.0 * first - second) / (6.0 * first)
        # Where the quadratic is a line the vertex is not a number, and fmax takes an end.
        candidates.append(np.fmin(np.fmax(vertex, low), high))
    s = np.array(candidates)
    return np.asarray((2.0 * first * s * (2.0 - 3.0 * s) + second * (1.0 - 2.0 * s)).min(axis=0))


def crude_start(sections: Sections, t: float, upper: float) -> float:
    """Bound on ``[0, t]`` at next to no cost: errors are labels less what was predicted at most.

    A group's errors are ``s h + c z - y``, at least ``|y| - |h| - c|z|`` long.
    """
    # In its units no singular value is above one.
    length = sqrt(sections.yy) - sqrt(t)
    size = sqrt(sections.zz)
    groups = sections.groups
    _, pulls = groups.left(t)
    left = [max(length - c * size, 0.0) ** 2 for c in pulls.tolist()]
    root_k = np.sqrt((pulls * pulls).dot(groups.shares))
    charge = float(sections.rounding.plain(np.float64(t), root_k, upper))
    return (1.0 - _ULPS) * float(groups.shares.dot(left)) - _ULPS * sections.yy - charge


def crude_end(sections: Sections, t: float) -> float:
    """The same on ``[t, inf)``: large coefficients cost honest predictions, or a ridge."""
    rounding = sections.rounding
    square, honest = t * rounding.proved_lowest(sections.lowest), sections.groups.honest
    excess = max(sqrt(square) - rounding.label_length(sections.yy), 0.0)
    margin = _ULPS * honest * (square + sections.yy)
    return float(honest * excess**2 - margin + (1.0 - _ULPS) * sections.ridge * t)


def end_bound(
    sections: Sections, low: float, high: float, upper: float, mu: float | None = None
) -> float:
    """Bound on one interval that may start at zero or end at infinity, over several multipliers.

    Parameters
    ----------
    sections : Sections
        The problem.
    low, high : float
        Ends, in its units.
    upper : float
        A loss that some predictor has; the bound is of no interest above it.
    mu : float, optional
        Distance from its least value of the multiplier at the end that is neither.
    """
    groups = sections.groups
    if not sections.size and not sections.nullity:
        zero = np.float64(0.0)
        charge = float(sections.rounding.plain(zero, zero, upper))
        return (1.0 - _ULPS) * sections.yy - charge if low == 0.0 else np.inf
    if mu is None:
        t = high if low == 0.0 else low
        mu = float(sections.evaluate(np.array([t]), LOOSE).mu[0]) if 0.0 < t < np.inf else 1.0
    nu = _trial_multipliers(sections, mu)
    dual = sections.dual(low, nu + sections.lowest)
    # As it was used: a difference is rounded.
    nu = dual.nu
    (s_max, c_min), (s_min, c_max) = groups.left(low), groups.left(high)
    # How much a and p fall to the other end.
    falls = s_max * c_max * (1.0 - low / high if 0.0 < low < high < np.inf else 1.0)
    drop_a = float((falls * (s_max + s_min)).dot(groups.shares))
    drop_p = 2.0 * float(falls.dot(groups.shares))
    lost = np.fmax(dual.zz, 0.0) * drop_a + np.fmax(dual.zd, 0.0) * drop_p
    margin = _margin(sections, dual)
    _, _, size_zz, size_zd, _ = dual.sizes.T
    margin += _ULPS * (size_zz * drop_a + size_zd * drop_p)
    one, other = s_max * c_min, s_min * c_max
    most = np.where((s_min <= 0.5) & (s_max >= 0.5), 0.25, np.maximum(one, other))
    rise = float((most - one).dot(groups.reach))
    fall = float((one - np.minimum(one, other)).dot(groups.reach))
    # What rounding did to the game grows with tau, like the price that the multiplier asks.
    here = dual.m.tau
    most_tau = float(groups.honest * high + most.dot(groups.reach)) if high < np.inf else here
    root_k = np.sqrt((c_max * c_max).dot(groups.shares))
    rounding = sections.rounding.for_every_norm if high == np.inf else sections.rounding
    by_norm, charge = rounding.linear(np.float64(most_tau), root_k, nu, upper)
    price = nu + by_norm
    lost += np.fmax(price * rise, -price * fall) + by_norm * here
    rate = sections.ridge - price * groups.honest
    lost += np.where(rate < 0.0, -rate * (high - low), 0.0)
    bound = sections.rounding.charged(dual.value - lost - margin - _ULPS * lost, charge, upper)
    return float(np.fmax.reduce(bound, initial=-np.inf))


def _trial_multipliers(sections: Sections, mu: float) -> Vector:
    honest, ridge, lowest = sections.groups.honest, sections.ridge, sections.lowest
    parts = [(mu - lowest) * _TRIALS, mu * _TRIALS]
    if lowest > 0.0:
        parts.append(lowest * _SHIFTS)
    if honest > 0.0 and ridge > 0.0:
        parts.append(ridge / honest * _RIDGES)
    nu = np.concatenate(parts)
    return np.asarray(nu[nu > -lowest if lowest > 0.0 else nu >= 0.0])
