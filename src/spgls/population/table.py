"""What games on the same data need of it, tabulated by multiplier."""

from __future__ import annotations

import numpy as np

from spgls.base.types import Array, Vector
from spgls.population.bracket import cubic
from spgls.population.moments import Moments
from spgls.population.section import Sections

__all__ = ["Table"]

#: Distance of multipliers in log, and how far below the spectrum they begin.
_CELL, _BELOW = 0.25, 1e-8


class Table:
    """``n_ab = sum d a b/(d + nu)^2`` and ``j_ab = sum a b/(d + nu)`` by multiplier.

    ``a`` and ``b`` are the goals and the labels less the goals: zz, zd, dd of either kind. Between
    multipliers they are cubics in its logarithm.

    Parameters
    ----------
    sections : Sections
        The data, in the units of the game.
    most : float
        Largest multiplier that is needed, as a distance from the least.

    Attributes
    ----------
    mu : ndarray
        Multipliers, as distances from the least.
    least : float
        The smallest of them.
    """

    def __init__(self, sections: Sections, most: float) -> None:
        positive = sections.e[sections.e > 0.0]
        self.least = _BELOW * (float(positive.min()) if positive.size else sections.lowest)
        count = int(np.log(most / self.least) / _CELL) + 2
        self.mu: Vector = self.least * np.exp(_CELL * np.arange(count))
        _, z, delta = sections.base
        products = np.array([z * z, z * delta, delta * delta])
        w = 1.0 / (sections.e[:, None] + self.mu)
        w2 = w * w
        seen = sections.d * products
        self._values: Array = np.vstack([seen.dot(w2), products.dot(w)])
        #: Where a null space takes what is missing of a norm, how far the data alone goes.
        self._pole: Vector | None = None
        if sections.nullity:
            self._pole = (products / sections.d).sum(axis=1)
        by_log = _CELL * self.mu
        self._slopes: Array = by_log * np.vstack([-2.0 * seen.dot(w2 * w), -products.dot(w2)])

    def at(self, m: Moments) -> tuple[Vector, Array]:
        """Multipliers where the coefficients have the right norm, and ``j`` there.

        Where that takes a multiplier below the table it is the least one; it is zero where a null
        space takes what is missing of the norm.
        """
        weights = np.array([m.a, 2.0 * m.p, m.e])
        # The norm falls with the multiplier: halve the range of the table's cells.
        low = np.zeros(len(m.t), dtype=np.intp)
        high = np.full(len(m.t), len(self.mu) - 1)
        for _ in range(int(np.log2(len(self.mu))) + 1):
            middle = (low + high) // 2
            above = np.einsum("ij,ij->j", weights, self._values[:3].take(middle, axis=1)) > m.tau
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        low = np.minimum(low, len(self.mu) - 2)
        ends = [part.take(low + k, axis=1) for part in (self._values, self._slopes) for k in (0, 1)]
        n0, n1, d0, d1 = (np.einsum("ij,ij->j", weights, part[:3]) for part in ends)
        x = np.log(n0 / m.tau) / np.log(n0 / n1)
        for _ in range(2):
            x = np.clip(x, 0.0, 1.0)
            n, slope = cubic(x, n0, n1, d0, d1)
            x = x - np.log(n / m.tau) * n / slope
        # What is not a number lies in a cell whose ends agree.
        x = np.fmin(np.fmax(x, 0.0), 1.0)
        j, _ = cubic(x, *(part[3:] for part in ends))
        mu = self.mu[low] * np.exp(_CELL * x)
        if self._pole is not None:
            mu[self._pole.dot(weights) <= m.tau] = 0.0
        return mu, j
