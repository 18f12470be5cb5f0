"""Lower bounds of ``phi`` on intervals of ``t``, and the branch and bound built on them.

For every multiplier ``nu >= -lowest`` the unconstrained minimum of the Lagrangian bounds ``phi``
from below at every ``t``. With ``d = y - z``, ``S_ab = a'b outside + nu sum a_i b_i/(d_i + nu)``
and ``G = sum d_i (y_i - z_i)^2/(d_i + nu)`` it is

    psi(t) = |y - z|^2 + f + S_zz a + 2 S_zd p - (G + f) e - nu tau + ridge t,

a fixed combination of the averages ``a``, ``p``, ``e = p^2/a`` and ``tau = a t``. Two bounds of it:

*Taylor.* In ``log t`` around the middle, with a lower bound of the second derivative. A group that
moves contributes ``pi s c (-6 A s^2 + (4A - 2B) s + B)``, ``A = S_zz + nu gamma`` and
``B = 2 S_zd - nu gamma``: a quadratic in ``s``, whose range over an interval of ``s`` is exact,
times ``s c``. The derivative ``-e'`` is a sum over pairs of groups of positive terms ``E``
whose logarithmic derivative ``b = 2 - 3(c_k + c_l) - u/p + 4<s^2 c>/a`` is enclosed because every
``c`` increases and averages of it drift slowly; then ``E`` is within ``exp(h max|b|)`` of its
value in the middle.

*Ends.* From the left end ``a``, ``p`` and ``e`` only decrease, by a known amount for ``a`` and
``p``; ``tau`` splits into the honest ``pi t`` and ``pi gamma s c``, whose range is known. This one
holds on ``[0, t]`` and on ``[t, inf)`` too, and there it is tight: all of ``a, p, e`` converge.
"""

from __future__ import annotations

import numpy as np

from spgls._types import EPS, Array, Vector
from spgls.population.moments import GroupMoments, Moments
from spgls.population.section import Sections, Sums
from spgls.reduced import ReducedGame

__all__ = ["end_bound", "interval_bound", "taylor_bound"]

#: Rounding allowed for, in units of the terms that are summed.
_ULPS = 16.0 * EPS
#: Multipliers tried for intervals that reach zero or infinity, relative to that of their end.
_TRIALS = np.concatenate([[0.0], 4.0 ** np.arange(-6.0, 7.0)])


def interval_bound(
    game: ReducedGame,
    gammas: Vector,
    shares: Vector,
    low: Vector,
    high: Vector,
    ridge: float = 0.0,
) -> Vector:
    """Lower bound of ``phi`` on each interval ``[low, high]``, rounding accounted for.

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
    sections = Sections(game, GroupMoments(gammas, shares), ridge)
    unit = sections.units.t
    low, high = np.atleast_1d(low) / unit, np.atleast_1d(high) / unit
    bound = np.full(low.shape, -np.inf)
    inner = (low > 0.0) & np.isfinite(high)
    if inner.any():
        bound[inner] = taylor_bound(sections, low[inner], high[inner])[0]
    for i in np.flatnonzero(~inner):
        bound[i] = end_bound(sections, float(low[i]), float(high[i]))
    return np.asarray(np.maximum(bound, 0.0) * sections.units.length**2)


def _lagrangian(
    sections: Sections, m: Moments, nu: Vector, w: Array, r: Array, outside: Vector
) -> tuple[Vector, Vector]:
    """``psi`` at the points of ``m``, as squares less ``nu tau``, and what rounding may hide."""
    inside = np.einsum("ij,ij->i", r * w, r)
    fixed = m.spread * sections.apart + outside + sections.ridge * m.t
    value = fixed + nu * inside - nu * m.tau
    weights = np.abs(sections.weights(m))
    size = weights @ np.abs(sections.base)
    terms = np.abs(nu) * np.einsum("ij,ij->i", size * w, size)
    terms += np.einsum("ti,ij,tj->t", weights, np.abs(sections.outer), weights)
    return value, _ULPS * (m.spread * sections.apart + terms + np.abs(nu) * m.tau + fixed)


def taylor_bound(sections: Sections, low: Vector, high: Vector) -> tuple[Vector, Vector, Vector]:
    """Bound on each interval, the Lagrangian in its middle, and the rounding allowed for."""
    parts = [_taylor(sections, low[rows], high[rows]) for rows in sections.blocks(low.size)]
    bound, value, margin = (np.concatenate(column) for column in zip(*parts, strict=True))
    return bound, value, margin


def _taylor(sections: Sections, low: Vector, high: Vector) -> tuple[Vector, Vector, Vector]:
    groups = sections.groups
    # A hair more than the interval, for the rounding of its middle.
    half = 0.5 * np.log(high / low) + 4 * EPS
    m = groups.at(np.sqrt(low) * np.sqrt(high))
    r, outside, _ = sections.target(m)
    mu, _ = sections.multiplier(m, r, rtol=1e-4)
    # Close to the pole the bound would fall off within the interval as the target turns into the
    # lowest space; backing off costs only to second order in the width.
    if sections.lowest > 0.0:
        low_space = sections.low
        sigma, base = sections.sigma[low_space], sections.base[:, low_space]
        turn = (m.bend[:, None] * base[1] + m.kappa[:, None] * base[2]) * sigma
        there = np.linalg.norm(r[:, low_space] * sigma, axis=1)
        turned = half * np.linalg.norm(turn, axis=1) / np.sqrt(m.a)
        mu = np.maximum(mu, (there + turned) / np.sqrt(m.tau))
    nu = mu - sections.lowest
    w = sections.inverse(mu)
    value, margin = _lagrangian(sections, m, nu, w, r, outside)
    sums = sections.sums(w, nu)
    steady = sums.dd * m.fall.sum(axis=1) + sections.ridge * m.t
    slope = steady - 2.0 * (m.bend * sums.zz + m.u * sums.zd) - nu * m.tau1
    slope_size = steady + 2.0 * (m.bend * sums.size_zz + m.u * sums.size_zd)
    slope_size += np.abs(nu) * m.tau
    curvature, curvature_size = _least_curvature(sections, m, low, high, nu, sums)
    margin += _ULPS * half * (slope_size + half * curvature_size)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        ends = value - np.abs(slope) * half + 0.5 * curvature * half**2
        inner = value - 0.5 * slope**2 / curvature
        convex = (curvature > 0.0) & (np.abs(slope) < curvature * half)
        bound = np.where(convex, inner, ends) - margin
    return np.where(np.isnan(bound), -np.inf, bound), value, margin


def _least_curvature(
    sections: Sections,
    m: Moments,
    low: Vector,
    high: Vector,
    nu: Vector,
    sums: Sums,
) -> tuple[Vector, Vector]:
    """Lower bound of the second derivative of ``psi`` in ``log t``, and the size of its terms."""
    groups, n = sections.groups, sections.groups.finite
    s_max, c_min = groups.pull(low)
    s_min, c_max = groups.pull(high)
    first = sums.zz[:, None] + nu[:, None] * groups.gamma
    second = 2.0 * sums.zd[:, None] - nu[:, None] * groups.gamma
    least = _least_quadratic(first, second, s_min[:, :n], s_max[:, :n])
    one, other = (s_min * c_max)[:, :n], (s_max * c_min)[:, :n]
    w_min = np.minimum(one, other)
    w_max = np.where(
        (s_min <= 0.5) & (s_max >= 0.5), 0.25, np.maximum(s_min * c_max, s_max * c_min)
    )
    moving = least * np.where(least < 0.0, w_max[:, :n], w_min) @ groups.share
    terms = (sums.size_zz + 2.0 * sums.size_zd)[:, None] + 2.0 * np.abs(nu[:, None]) * groups.gamma
    size = terms * w_max[:, :n] @ groups.share

    # Weighted averages of c move by <s c> less once or twice the variance of c, hence by no more
    # than the largest s c, or a multiple of the squared range of c, for a unit of log t.
    half = (0.5 * np.log(high / low) + 4 * EPS)[:, None]
    reach = (c_max.max(axis=1) - c_min.min(axis=1)) ** 2 / 4.0
    most = w_max.max(axis=1)
    drift = 4.0 * np.maximum(most, 2.0 * reach) + np.maximum(most, reach)
    middle = (4.0 * m.bend / m.a - m.u / m.p)[:, None]
    wander = half * drift[:, None]
    weak, strong = groups.pairs
    b_max = 2.0 - 3.0 * (c_min[:, weak] + c_min[:, strong]) + middle + wander
    b_min = 2.0 - 3.0 * (c_max[:, weak] + c_max[:, strong]) + middle - wander
    with np.errstate(over="ignore", invalid="ignore"):
        stretch = np.exp(half * np.maximum(np.abs(b_min), np.abs(b_max)))
        spans = np.where(m.fall > 0.0, m.fall * stretch, 0.0)
        falls = np.where(b_min < 0.0, spans, m.fall / stretch) * b_min
    pairs = sums.dd * falls.sum(axis=1)
    rate = sections.ridge - nu * groups.honest
    linear = rate * np.where(rate < 0.0, high, low)
    size += 4.0 * sums.dd * spans.sum(axis=1) + np.abs(rate) * high
    return moving + pairs + linear, size


def _least_quadratic(first: Array, second: Array, low: Array, high: Array) -> Array:
    """Minimum of ``-6 A s^2 + (4A - 2B) s + B`` over ``low <= s <= high``."""

    def at(s: Array) -> Array:
        return 2.0 * first * s * (2.0 - 3.0 * s) + second * (1.0 - 2.0 * s)

    with np.errstate(divide="ignore", invalid="ignore"):
        vertex = (2.0 * first - second) / (6.0 * first)
    vertex = np.clip(np.where(np.isfinite(vertex), vertex, low), low, high)
    return np.minimum(np.minimum(at(low), at(high)), at(vertex))


def end_bound(sections: Sections, low: float, high: float) -> float:
    """Bound on one interval that may start at zero or end at infinity, over several multipliers.

    Parameters
    ----------
    sections : Sections
        The problem.
    low, high : float
        Ends, in its units.
    """
    groups = sections.groups
    if not sections.size and not sections.nullity:
        return sections.yy if low == 0.0 else np.inf
    nu = _trial_multipliers(sections, low, high)
    t = np.full(nu.shape, low)
    m = groups.at(t)
    r, outside, _ = sections.target(m)
    w = sections.inverse(nu + sections.lowest)
    value, margin = _lagrangian(sections, m, nu, w, r, outside)
    sums = sections.sums(w, nu)
    drop_a, drop_p = (float(v[0]) for v in groups.drop(t[:1], np.array([high])))
    lost = np.maximum(sums.zz, 0.0) * drop_a + 2.0 * np.maximum(sums.zd, 0.0) * drop_p
    margin += _ULPS * (sums.size_zz * drop_a + 2.0 * sums.size_zd * drop_p)
    (s_max, s_min), (c_min, c_max) = (
        v[:, : groups.finite] for v in groups.pull(np.array([low, high]))
    )
    one, other = s_max * c_min, s_min * c_max
    most = np.where((s_min <= 0.5) & (s_max >= 0.5), 0.25, np.maximum(one, other))
    rise = float((most - one) @ (groups.share * groups.gamma))
    fall = float((one - np.minimum(one, other)) @ (groups.share * groups.gamma))
    lost += np.where(nu > 0.0, nu * rise, -nu * fall)
    rate = sections.ridge - nu * groups.honest
    with np.errstate(invalid="ignore"):
        lost += np.where(rate < 0.0, -rate * (high - low), 0.0)
        bound = value - lost - margin - _ULPS * lost
    return float(np.max(bound[~np.isnan(bound)], initial=-np.inf))


def _trial_multipliers(sections: Sections, low: float, high: float) -> Vector:
    groups = sections.groups
    t = np.array([high if low == 0.0 else low])
    if np.isfinite(t[0]) and t[0] > 0.0:
        m = groups.at(t)
        r, _, _ = sections.target(m)
        mu = float(sections.multiplier(m, r, rtol=1e-3)[0][0])
    else:
        mu = 1.0
    nu = np.concatenate([(mu - sections.lowest) * _TRIALS, mu * _TRIALS])
    if sections.lowest > 0.0:
        nu = np.concatenate([nu, sections.lowest * np.linspace(-0.95, 0.0, 8)])
    if groups.honest > 0.0 and sections.ridge > 0.0:
        nu = np.concatenate([nu, sections.ridge / groups.honest * np.array([0.25, 0.5, 1.0])])
    allowed = nu > -sections.lowest if sections.lowest > 0.0 else nu >= 0.0
    return np.asarray(nu[allowed])
