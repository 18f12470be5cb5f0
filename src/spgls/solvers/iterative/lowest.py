"""The smallest eigenvalue of ``H``, by a Lanczos run from a random vector.

Let ``pi_0, pi_1, ...`` be the orthonormal polynomials of the recurrence from a unit vector ``q``:
its basis is ``q_j = pi_j(H) q``. A unit eigenvector ``u`` of eigenvalue ``mu`` has
``u'q_j = pi_j(mu) u'q``, and the sum of their squares is at most one:

    (u'q)^2 (pi_0(mu)^2 + ... + pi_{k-1}(mu)^2) <= 1.

Of a random ``q`` the part along the lowest eigenvector exceeds ``eps/sqrt(n)`` but for a chance of
less than ``eps``. So the smallest eigenvalue is not below the place, left of all Ritz values, where
that sum reaches ``n/eps^2``: a lower bound, where a Ritz value is an upper one.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from scipy.linalg import eigh_tridiagonal

from spgls.base.types import EPS, Vector
from spgls.solvers.iterative.basis import Basis

__all__ = ["LOWEST_PRODUCTS", "LowestPair", "floor_of", "lowest_pair"]

#: Limit on products that are spent on it by default.
LOWEST_PRODUCTS = 200

#: Chance that a random vector hides the lowest eigenvector from its Krylov space.
_CHANCE = 1e-8
#: Rounding of a Ritz value, in units of the largest entry of the recurrence and of a column.
_ROUNDING = 16 * EPS
#: Steps between looks at how far the spectrum is known.
_LOOK = 8
#: A bound that leaves this share of the distance from a pole is as good as the value.
_SHARE = 0.2
#: Halvings of an interval that leave less than what rounding does.
_HALVINGS = 60


class Operator(Protocol):
    """A symmetric matrix, through products alone."""

    @property
    def size(self) -> int:
        """Its order."""
        ...

    def product(self, r: Vector, /) -> Vector:
        """Its product with a vector."""
        ...


class LowestPair(NamedTuple):
    """A Ritz pair of ``H``.

    Attributes
    ----------
    value : float
        Ritz value, not below the smallest eigenvalue.
    error : float
        Norm of its residual: an eigenvalue lies within it.
    vector : ndarray
        Unit Ritz vector.
    floor : float
        No eigenvalue is below it, but for a chance of 1e-8.
    """

    value: float
    error: float
    vector: Vector
    floor: float


def lowest_pair(
    problem: Operator,
    generator: np.random.Generator,
    multiplier: float,
    max_iter: int,
    *,
    bound: bool = True,
) -> LowestPair:
    """Find the smallest eigenvalue, as accurately as the sign of its sum with ``lambda`` asks.

    Parameters
    ----------
    problem : Operator
        ``H``, or any other matrix; its passes are counted.
    generator : numpy Generator
        Source of the start vector.
    multiplier : float
        ``lambda`` of a stationary point.
    max_iter : int
        Limit on products, and on vectors kept.
    bound : bool
        Whether a lower bound is wanted too, which takes more products than the value.
    """
    q = generator.normal(size=problem.size)
    q /= np.linalg.norm(q)
    before = q
    basis = Basis(problem.size)
    diagonal: list[float] = []
    off: list[float] = []
    while True:
        basis.append(q)
        w = problem.product(q)
        diagonal.append(float(q @ w))
        # First what is large, then all, where hardly anything is left to find.
        w -= diagonal[-1] * q
        if off:
            w -= off[-1] * before
        w -= basis.combine(basis.inner(w))
        beta = float(np.linalg.norm(w))
        if not np.isfinite(beta):
            # Numbers beyond double precision: nothing is known.
            return LowestPair(0.0, np.inf, q, -np.inf)
        d, e = np.array(diagonal), np.array(off)
        values, vectors = eigh_tridiagonal(d, e, select="i", select_range=(0, 0))
        value, h = float(values[0]), vectors[:, 0]
        rounding = 4 * EPS * float(np.abs(d).max())
        error = beta * abs(float(h[-1])) + rounding
        ended = beta <= 16 * EPS * float(np.abs(d).max()) or len(d) == problem.size
        excess = value + multiplier
        known = error <= 0.01 * abs(excess) and (excess < 0.0 or not bound)
        last = ended or known or len(d) >= max_iter
        if last or (bound and excess > error and len(d) % _LOOK == 0):
            floor = -np.inf
            if bound:
                floor = floor_of(d, np.append(e, max(beta, rounding)), value, problem.size)
            if last or floor + multiplier >= _SHARE * excess:
                vector = basis.combine(h)
                error = rounding if ended else error
                return LowestPair(value, error, vector / np.linalg.norm(vector), floor)
        off.append(beta)
        before, q = q, w / beta


def floor_of(d: Vector, e: Vector, value: float, size: int) -> float:
    """Lower bound of the spectrum of an operator, from a recurrence started at random.

    Parameters
    ----------
    d, e : ndarray of shape (k,)
        Diagonal and off-diagonal of the tridiagonal matrix, and what comes next below it; the
        basis was kept orthogonal.
    value : float
        Its smallest eigenvalue.
    size : int
        Order of the operator.
    """
    scale = float(np.abs(d).max() + 2.0 * np.abs(e).max(initial=0.0))
    rounding = _ROUNDING * len(d) ** 0.5 * scale
    if len(d) == size:
        # The basis spans everything, so Ritz values are eigenvalues.
        return float(value - rounding)
    wanted = np.log(size / _CHANCE**2)
    low, high = value - 2.0 * scale, value
    if _log_sum(d, e, low) < wanted:
        return -np.inf
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        if _log_sum(d, e, middle) < wanted:
            high = middle
        else:
            low = middle
        if high - low <= rounding:
            break
    return float(low - rounding)


def _log_sum(d: Vector, e: Vector, mu: float) -> float:
    """Logarithm of the sum of squares of the orthonormal polynomials at a place."""
    before, here, total, log = 0.0, 1.0, 1.0, 0.0
    for j, beta in enumerate(e.tolist()):
        left = e[j - 1] * before if j else 0.0
        before, here = here, ((mu - d[j]) * here - left) / beta
        total += here * here
        if total > 1e200:
            before, here, total, log = before * 1e-100, here * 1e-100, total * 1e-200, log + 460.517
    return float(log + np.log(total))
