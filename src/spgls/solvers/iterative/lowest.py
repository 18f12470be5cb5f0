"""The smallest eigenvalue of ``H``, estimated by a short Lanczos run from a random vector."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from scipy.linalg import eigh_tridiagonal

from spgls.base.types import EPS, Vector
from spgls.solvers.iterative.lanczos import Basis

__all__ = ["LowestPair", "lowest_pair"]


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
    """

    value: float
    error: float
    vector: Vector


def lowest_pair(
    problem: Operator, generator: np.random.Generator, multiplier: float, max_iter: int
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
    """
    q = generator.normal(size=problem.size)
    q /= np.linalg.norm(q)
    basis = Basis(problem.size)
    diagonal: list[float] = []
    off: list[float] = []
    while True:
        basis.append(q)
        w = problem.product(q)
        diagonal.append(float(q @ w))
        for _ in range(2):
            w -= basis.combine(basis.inner(w))
        beta = float(np.linalg.norm(w))
        d, e = np.array(diagonal), np.array(off)
        values, vectors = eigh_tridiagonal(d, e, select="i", select_range=(0, 0))
        value, h = float(values[0]), vectors[:, 0]
        rounding = 4 * EPS * float(np.abs(d).max())
        error = beta * abs(float(h[-1])) + rounding
        known = error <= 0.01 * abs(value + multiplier)
        ended = beta <= 16 * EPS * float(np.abs(d).max()) or len(d) == problem.size
        if ended or known or len(d) >= max_iter:
            vector = basis.combine(h)
            return LowestPair(value, rounding if ended else error, vector / np.linalg.norm(vector))
        off.append(beta)
        q = w / beta
