"""Averages over the groups of a population, as functions of the squared norm ``t``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spgls._types import Array, Vector

__all__ = ["GroupMoments", "Moments"]


@dataclass(frozen=True, eq=False)
class Moments:
    """What the loss needs to know about the groups, one entry (or row) for each ``t``.

    Primes below are derivatives in ``log t``. With ``s_k = 1/(1 + t/gamma_k)``, ``c_k = 1 - s_k``,
    averages over shares: ``a = <s^2>``, ``p = <s>``, ``u = <s c>``, ``e = p^2/a``, ``q = p/a``.

    Attributes
    ----------
    t : ndarray of shape (T,)
        Squared norms.
    s, c : ndarray of shape (T, K)
        By group, in order of increasing gamma; an honest group comes last.
    a, p, u, e : ndarray of shape (T,)
        The averages.
    spread : ndarray of shape (T,)
        ``1 - e``: what the groups' predictions differ by.
    bend : ndarray of shape (T,)
        ``<s^2 c>``, which is ``-a'/2``.
    kappa : ndarray of shape (T,)
        ``u - q <s^2 c>``, which is ``-e'/2q``.
    tau, tau1 : ndarray of shape (T,)
        ``a t`` and its derivative.
    fall : ndarray of shape (T, pairs)
        Positive terms of ``-e'``, one for each pair of groups.
    growth : ndarray of shape (T, pairs)
        Their logarithmic derivatives.
    """

    t: Vector
    s: Array
    c: Array
    a: Vector
    p: Vector
    u: Vector
    e: Vector
    spread: Vector
    bend: Vector
    kappa: Vector
    tau: Vector
    tau1: Vector
    fall: Array
    growth: Array

    @property
    def q(self) -> Vector:
        """Ratio of the averages ``p`` and ``a``."""
        return np.asarray(self.p / self.a)


class GroupMoments:
    """The groups of a population: in order of increasing gamma, equal ones merged.

    Differences of ``s`` are formed as ``s_k - s_l = s_k c_l (1 - gamma_l/gamma_k)`` for
    ``gamma_k > gamma_l``, and variances as sums over pairs of groups, so nothing cancels whether
    ``t`` is far below every strength or far above.

    Parameters
    ----------
    gammas : ndarray of shape (K,)
        Strengths, positive; infinity is honest.
    shares : ndarray of shape (K,)
        Positive, summing to one.
    """

    def __init__(self, gammas: Vector, shares: Vector) -> None:
        strengths, place = np.unique(np.asarray(gammas, dtype=float), return_inverse=True)
        weights = np.zeros(strengths.size)
        np.add.at(weights, place.ravel(), np.asarray(shares, dtype=float))
        self.gammas: Vector = strengths
        self.shares: Vector = weights
        #: Strengths and shares of the groups that move, and the share of the one that does not.
        self.finite = int(np.isfinite(strengths).sum())
        self.gamma: Vector = strengths[: self.finite]
        self.share: Vector = weights[: self.finite]
        self.honest = float(weights[self.finite :].sum())
        strong, weak = np.triu_indices(strengths.size, 1)
        #: Every two groups: the one that moves less, and the one that moves more.
        self.pairs = weak, strong
        with np.errstate(invalid="ignore"):
            apart = (strengths[weak] - strengths[strong]) / strengths[weak]
        self._apart: Vector = np.where(np.isfinite(strengths[weak]), apart, 1.0)
        self._pair: Vector = weights[weak] * weights[strong]

    def pull(self, t: Vector) -> tuple[Array, Array]:
        """``s`` and ``c`` of every group, for ``t`` from zero to infinity inclusive."""
        column = np.asarray(t, dtype=float)[:, None]
        with np.errstate(divide="ignore", over="ignore"):
            s = 1.0 / (1.0 + column / self.gamma)
            c = 1.0 / (1.0 + self.gamma / column)
        if self.honest > 0.0:
            ones = np.ones_like(column)
            return np.hstack([s, ones]), np.hstack([c, 0.0 * ones])
        return s, c

    def at(self, t: Vector) -> Moments:
        """Averages at finite ``t``."""
        s, c = self.pull(t)
        n, pi = self.finite, self.shares
        ss = s * s
        a, p, u = ss @ pi, s @ pi, (s * c) @ pi
        bend = (ss * c) @ pi
        moving = (s * c)[:, :n]
        tau = moving @ (self.share * self.gamma) + self.honest * t
        tau1 = (moving * (s - c)[:, :n]) @ (self.share * self.gamma) + self.honest * t
        weak, strong = self.pairs
        square = self._pair * (s[:, weak] * c[:, strong] * self._apart) ** 2
        cross = square * s[:, weak] * s[:, strong]
        growth = 2.0 - 3.0 * (c[:, weak] + c[:, strong]) + (4.0 * bend / a - u / p)[:, None]
        return Moments(
            t=np.asarray(t, dtype=float),
            s=s,
            c=c,
            a=a,
            p=p,
            u=u,
            e=p * p / a,
            spread=square.sum(axis=1) / a,
            bend=bend,
            kappa=cross.sum(axis=1) / a,
            tau=tau,
            tau1=tau1,
            fall=cross * (2.0 * p / a**2)[:, None],
            growth=growth,
        )

    def drop(self, low: Vector, high: Vector) -> tuple[Vector, Vector]:
        """How much ``a`` and ``p`` fall from ``low`` to ``high``, which may be infinite."""
        s_low, _ = self.pull(low)
        s_high, c_high = self.pull(high)
        with np.errstate(invalid="ignore"):
            share = np.where(np.isfinite(high), 1.0 - low / high, 1.0)[:, None]
        fall = s_low * c_high * share
        return (fall * (s_low + s_high)) @ self.shares, fall @ self.shares

    def spread_at_infinity(self) -> float:
        """Limit of ``1 - e`` as ``t`` grows."""
        if self.honest > 0.0:
            return float(self.share.sum())
        size = self.gammas / self.gammas.max()
        weak, strong = self.pairs
        square = self._pair * (size[weak] - size[strong]) ** 2
        return float(square.sum() / (self.shares @ size**2))
