"""Lower bounds of a population's loss from Lagrangians at given multipliers.

For a multiplier ``nu`` and a symmetric ``M`` with ``|b|^2_S(nu) >= b'Mb`` for all ``b`` spanned by
labels and goals, no predictor with ``|v|^2 = t`` has a loss below

    psi(t) = apart (1 - e) + M_yy e - 2 M_yz p u/a + M_zz u^2/a - nu tau + ridge t,

with averages over the groups as in :mod:`spgls.population.moments` and ``apart = |y - z|^2``. It is
linear in them, ``apart - dd e + 2 zd p + zz a - nu tau + ridge t``. On an interval of ``log t`` it
is at least its value in the middle less what its derivative, enclosed, takes away; towards zero
and infinity every average converges.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spgls.base.types import EPS, Array, Vector
from spgls.population import GroupMoments

__all__ = ["Lagrangians"]

#: Rounding allowed for, in units of the terms that are summed.
_ULPS = 32.0 * EPS


class Lagrangians(NamedTuple):
    """Bounds ``psi`` of one game, a row for each multiplier.

    Attributes
    ----------
    groups : GroupMoments
        The population.
    apart : float
        ``|y - z|^2``, the free part included; at most.
    ridge : float
        Weight of ``t``.
    nu : ndarray of shape (N,)
        Multipliers.
    M : ndarray of shape (N, 3)
        ``M_yy, M_yz, M_zz`` of each.
    """

    groups: GroupMoments
    apart: float
    ridge: float
    nu: Vector
    M: Array

    def joined(self, nu: Vector, M: Array) -> Lagrangians:
        """The same and more of them."""
        return self._replace(nu=np.append(self.nu, nu), M=np.vstack([self.M, M]))

    def _sums(self, which: np.ndarray) -> tuple[Vector, Vector, Vector, Vector]:
        """``dd``, ``zd`` and ``zz`` of some rows, and the multipliers."""
        yy, yz, zz = self.M[which].T
        return self.apart - (yy - 2.0 * yz + zz), yz - zz, zz, self.nu[which]

    def best(self, t: Vector) -> tuple[np.ndarray, Vector]:
        """The row that bounds the loss best at each ``t``, and its bound there."""
        m = self.groups.at(t)
        e, both, goals = m.e, m.p * m.u / m.a, m.u * m.u / m.a
        weights = np.array([e, -2.0 * both, goals]).T
        fixed = self.apart * m.spread + self.ridge * t
        psi = fixed[:, None] + weights @ self.M.T - np.multiply.outer(m.tau, self.nu)
        size = fixed[:, None] + np.abs(weights) @ np.abs(self.M).T
        size += np.multiply.outer(m.tau, np.abs(self.nu))
        psi = np.where(np.isfinite(psi), psi - _ULPS * size, -np.inf)
        rows = psi.argmax(axis=1)
        return rows, psi[np.arange(len(t)), rows]

    def on_intervals(self, low: Vector, high: Vector) -> tuple[Vector, Vector]:
        """Bounds on intervals ``[low, high]``, and in their middle."""
        middle = np.sqrt(low) * np.sqrt(high)
        rows, value = self.best(middle)
        down, up = self._slopes(rows, low, high)
        # A hair more than the interval, for the rounding of its logarithms.
        half = 0.5 * np.log(high / low) + 8 * EPS
        change = half * np.maximum(np.maximum(-down, up), 0.0)
        return np.where(np.isfinite(change), value - change, -np.inf), value

    def _slopes(self, rows: np.ndarray, low: Vector, high: Vector) -> tuple[Vector, Vector]:
        """Least and largest derivative in ``log t`` on intervals, of the rows given."""
        groups = self.groups
        dd, zd, goals, nu = (part[:, None] for part in self._sums(rows))
        (s_max, c_min), (s_min, c_max) = groups.left(low), groups.left(high)
        one, other = s_max * c_min, s_min * c_max
        least = np.minimum(one, other)
        most = np.where((s_min <= 0.5) & (s_max >= 0.5), 0.25, np.maximum(one, other))
        pull = nu * np.where(np.isinf(groups.gammas), 0.0, groups.gammas)
        # A group's share of the derivative is s c times a line in s.
        first, second = pull - 2.0 * zd, -2.0 * (goals + pull)
        line = np.sort([first + second * s_min, first + second * s_max], axis=0)
        down = (line[0] * np.where(line[0] < 0.0, most, least)) @ groups.shares
        up = (line[1] * np.where(line[1] > 0.0, most, least)) @ groups.shares
        yy, yz, zz = np.abs(self.M[rows]).T
        size = (2.0 * (yz + 2.0 * zz)[:, None] + 3.0 * np.abs(pull)) * most @ groups.shares
        fall = self._falls(s_max, s_min, c_max, c_min)
        dd = dd[:, 0]
        down += np.where(dd > 0.0, dd * fall[0], dd * fall[1])
        up += np.where(dd > 0.0, dd * fall[1], dd * fall[0])
        rate = self.ridge - nu[:, 0] * groups.honest
        down += rate * np.where(rate > 0.0, low, high)
        up += rate * np.where(rate > 0.0, high, low)
        size += (self.apart + yy + 2.0 * yz + zz) * fall[1]
        size += (self.ridge + np.abs(self.nu[rows]) * groups.honest) * high
        return down - _ULPS * size, up + _ULPS * size

    def _falls(self, s_max: Array, s_min: Array, c_max: Array, c_min: Array) -> Array:
        """Least and largest ``-e'``, a sum of positive terms over pairs of groups."""
        groups = self.groups
        weak, strong = groups.pairs
        bounds = []
        for s, c, other in ((s_min, c_min, s_max), (s_max, c_max, s_min)):
            a, p = (other * other) @ groups.shares, s @ groups.shares
            root = s[..., weak] * c[..., strong]
            terms = root * root * s[..., weak] * s[..., strong]
            bounds.append(2.0 * p / (a * a) * (terms @ groups.apart))
        return np.array(bounds)

    def towards_zero(self, t: float) -> float:
        """Bound on ``[0, t]``, by the best multiplier."""
        groups, every = self.groups, np.arange(len(self.nu))
        dd, zd, zz, nu = self._sums(every)
        s, c = groups.left(t)
        lost_p, lost_a = float(c @ groups.shares), float((c * (1.0 + s)) @ groups.shares)
        most = np.where(s <= 0.5, 0.25, s * c)
        tau = float(most @ groups.reach) + groups.honest * t
        m = groups.at(t)
        lost = 2.0 * np.maximum(zd, 0.0) * lost_p + np.maximum(zz, 0.0) * lost_a
        lost += np.maximum(nu, 0.0) * tau + np.maximum(-dd, 0.0) * (1.0 - m.e)
        yy, yz, goals = np.abs(self.M).T
        size = yy + lost + 2.0 * (yz + goals) * lost_p + (self.apart + yz + goals) * (1.0 - m.e)
        return float(np.nanmax(self.M[:, 0] - lost - _ULPS * size, initial=-np.inf))

    def towards_infinity(self, t: float) -> float:
        """Bound on ``[t, inf)``, by the best multiplier."""
        groups, every = self.groups, np.arange(len(self.nu))
        dd, zd, zz, nu = self._sums(every)
        m, honest = groups.at(t), float(groups.honest)
        s, c = groups.left(t)
        most = np.where(s >= 0.5, 0.25, s * c) @ groups.reach
        rate = self.ridge - nu * honest
        parts: list[Vector] = [
            self.apart + 0.0 * nu,
            -np.maximum(dd, 0.0) * m.e,
            2.0 * np.where(zd > 0.0, honest, float(m.p)) * zd,
            np.where(zz > 0.0, honest, float(m.a)) * zz,
            -np.maximum(nu, 0.0) * float(most),
            np.where(rate >= 0.0, rate * t, -np.inf),
        ]
        terms = np.array(parts)
        yy, yz, goals = np.abs(self.M).T
        size = np.abs(terms).sum(axis=0) + (yy + 2.0 * yz + goals) * m.e
        size += 2.0 * (yz + goals) * m.p + (self.ridge + np.abs(nu) * honest) * t
        bound = terms.sum(axis=0) - _ULPS * size
        return float(np.nanmax(bound, initial=-np.inf))
