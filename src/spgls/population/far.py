"""Losses that fall towards a limit as the coefficients grow, and how near to it is near enough.

With a null space and somebody honest the limit is that of least squares for the honest, while the
null space makes all others reach their goals.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from spgls.base.types import EPS, Vector
from spgls.population.moments import Numbers
from spgls.population.section import Section, Sections

__all__ = ["above_infinity", "approach", "fall_to", "far_margin", "far_turn", "rounding"]

#: Halvings of a cell of a grid that leave rounding.
_HALVINGS = 56
_MAX_STEPS = 80


def above_infinity(sections: Sections, t: Vector) -> Vector:
    """``phi`` less its limit, where somebody is honest and a null space takes part of the norm.

    The coefficients on the data are then those of least squares, and nothing cancels.
    """
    m, honest = sections.groups.at(t), sections.groups.honest
    # Averages over those who move, as parts of the whole.
    moving = m.each()[:-1]
    p, a = (sum(group.share * group.s**power for group in moving) for power in (1, 2))
    # e is p^2/a, and its limit the honest share.
    rise = (2.0 * honest * p + p * p - honest * a) / m.a
    (r_yy, r_yz, _), (_, r_zz, _), _ = sections.outer
    by_goal = m.u / m.a * (m.u * r_zz - 2.0 * m.p * r_yz)
    return np.asarray(rise * (r_yy - sections.apart) + by_goal)


def far_turn(sections: Sections, first: Numbers, second: Numbers, limit: Numbers) -> Numbers:
    """How far out :func:`above_infinity` turns; zero where it does not, or rounding hides it.

    Parameters
    ----------
    sections : Sections
        One game, or many.
    first, second : float or ndarray of shape (C,)
        Averages of strengths and their squares over those who move, as parts of the whole: it is
        ``c/t + c'/t^2`` far out.
    limit : float or ndarray of shape (C,)
        Limit of ``phi``.
    """
    (r_yy, r_yz, _), (_, r_zz, _), _ = sections.outer
    gain = r_yy - sections.apart
    slow = 2.0 * first * (gain - r_yz)
    square = first * first / np.asarray(sections.groups.honest)
    fast = (square - 3.0 * second) * gain + 4.0 * second * r_yz + square * (r_zz - 2.0 * r_yz)
    turn = np.minimum(abs(fast / slow), abs(slow) / (EPS * limit))
    return np.where((slow < 0.0) & (fast > 0.0), turn, 0.0)


def approach(sections: Sections, low: Vector, high: Vector, allowed: Numbers) -> Vector:
    """``t`` where :func:`above_infinity` falls below what is allowed, between two ends."""
    low, high = np.log(low), np.log(high)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        above = above_infinity(sections, np.exp(middle)) > allowed
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.asarray(np.exp(high))


def fall_to(
    evaluate: Callable[[np.ndarray, Vector, Vector], Section],
    low: Vector,
    high: Vector,
    mu: Vector,
    allowed: Numbers,
) -> tuple[Vector, Vector]:
    """``t`` where losses fall to what is allowed, and multipliers there.

    Newton's method in ``log t``, safeguarded, from the far end.

    Parameters
    ----------
    evaluate : callable
        The losses of some of the games at ``t``, from guesses of the multipliers.
    low, high : ndarray of shape (C,)
        ``t`` where losses are above what is allowed, and where they are not.
    mu : ndarray of shape (C,)
        Multipliers at the far ends.
    allowed : float or ndarray of shape (C,)
        What is allowed.
    """
    low, high, mu = low.copy(), high.copy(), mu.copy()
    t, allowed = high.copy(), np.broadcast_to(allowed, high.shape)
    active = np.arange(len(t))
    for _ in range(_MAX_STEPS):
        here = evaluate(active, t[active], mu[active])
        over = here.value - allowed[active]
        above = over > 0.0
        low[active] = np.where(above, here.t, low[active])
        high[active] = np.where(above, high[active], here.t)
        new = here.t * np.exp(-over / here.slope)
        inside = (low[active] < new) & (new < high[active])
        new = np.where(inside, new, np.sqrt(low[active]) * np.sqrt(high[active]))
        still = (abs(over) > 4 * EPS * here.value) & (abs(new - here.t) > 4 * EPS * here.t)
        t[active], mu[active] = np.where(still, new, here.t), here.mu
        active = active[still]
        if not len(active):
            break
    return t, mu


def far_margin(infinity: Numbers, gap: float, yy: float) -> Numbers:
    """How far above a limit that is not attained the loss may stay."""
    larger = np.maximum if isinstance(infinity, np.ndarray) else max
    return larger(gap / 2, 2 * rounding(infinity, yy))


def rounding(value: Numbers, yy: float) -> Numbers:
    """What rounding may change in a value; residuals of zero come out as rounding of ``y``."""
    return 4 * EPS * value + (8 * EPS) ** 2 * yy
