"""Least squares in singular coordinates with the norm of the solution prescribed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spgls.base.types import EPS, Vector

__all__ = ["FixedNormPoint", "solve_fixed_norm"]

_MAX_STEPS = 200


class FixedNormPoint(NamedTuple):
    """Minimiser of ``v'Dv - 2p'v`` over ``|v|^2 = t``; ``fill`` is its norm in the lowest space."""

    v: Vector
    nu: float
    fill: float


def solve_fixed_norm(d: Vector, p: Vector, t: float, nullity: int) -> FixedNormPoint:
    """Minimise ``v'Dv - 2p'v`` subject to ``|v|^2 + fill^2 = t``.

    ``v = p/(d + nu)`` with ``d + nu >= 0``; the multiplier solves ``|v(nu)|^2 = t``, which
    decreases in ``nu``. The multiplier is found as its distance ``mu`` from the pole, because the
    pole is where digits would be lost.

    Parameters
    ----------
    d : ndarray
        Diagonal, positive where there is a nullity and of any sign elsewhere.
    p : ndarray
        Linear term.
    t : float
        Squared norm wanted, positive.
    nullity : int
        Dimension of the space on which both ``D`` and ``p`` vanish.
    """
    if d.size == 0:
        return FixedNormPoint(np.zeros(0), 0.0, float(np.sqrt(t)))
    pole = 0.0 if nullity else -float(d.min())
    e = d + pole
    low = e == 0.0
    p_low = float(np.sqrt(p[low] @ p[low])) if not nullity else 0.0
    if p_low <= 4 * EPS * float(np.linalg.norm(p)):
        rest = np.divide(p, e, out=np.zeros_like(p), where=~low)
        short = t - float(rest @ rest)
        if short >= 0.0:
            return FixedNormPoint(rest, pole, float(np.sqrt(short)))
    root_t = float(np.sqrt(t))
    hi = float(np.linalg.norm(p)) / root_t
    lo = p_low / root_t
    mu = lo if lo > 0.0 else hi * EPS
    for _ in range(_MAX_STEPS):
        w = 1.0 / (e + mu)
        v = p * w
        norm2 = float(v @ v)
        norm = np.sqrt(norm2)
        if norm2 > t:
            lo = max(lo, mu)
        else:
            hi = min(hi, mu)
        # Newton on 1/|v|, which is nearly linear in the multiplier.
        step = norm2 * (norm / root_t - 1.0) / float((v * v) @ w)
        new = mu + step
        if not lo <= new <= hi:
            new = np.sqrt(lo * hi) if lo > 0.0 else hi / 64.0
        if abs(new - mu) <= 2 * EPS * mu:
            break
        mu = float(new)
    v *= root_t / np.sqrt(norm2)
    return FixedNormPoint(v, pole + mu, 0.0)
