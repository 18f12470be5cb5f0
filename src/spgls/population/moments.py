"""Averages over the groups of a population, as functions of the squared norm ``t``."""

from __future__ import annotations

from math import inf
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from spgls._types import Array, Vector

__all__ = ["GroupMoments", "Moments", "Numbers", "column"]

#: A vector with an entry for each ``t``, or a number where there is a single one: the formulas of
#: this package are the same for both, and numbers spare the searches most of NumPy's overhead.
Numbers: TypeAlias = Any

#: From averages of s, s^2, s c, s^2 c and s^3 c to a, p, u, <s^2 c>, a'', and to what moves of tau,
#: tau' and tau''. The first five are averages by share, the others by share times strength.
_POWERS = np.array(
    [
        [0.0, 1.0, 0.0, 0.0, 0.0],
        [1.0, 0.0, 0.0, 0.0, 0.0],
        [0.0, 0.0, 1.0, 0.0, 0.0],
        [0.0, 0.0, 0.0, 1.0, 0.0],
        [0.0, 0.0, 0.0, 4.0, -6.0],
        [0.0, 0.0, 1.0, 0.0, 0.0],
        [0.0, 0.0, -1.0, 2.0, 0.0],
        [0.0, 0.0, 1.0, -6.0, 6.0],
    ]
)[:, :, None]
_BY_REACH = slice(5, 8)
#: Up to so many groups a loop over them is faster than vectors.
_FEW = 5


class Moments(NamedTuple):
    """What the loss needs to know about the groups, one entry (or row) for each ``t``.

    Primes below are derivatives in ``log t``. With ``s_k = 1/(1 + t/gamma_k)``, ``c_k = 1 - s_k``,
    averages over shares: ``a = <s^2>``, ``p = <s>``, ``u = <s c>``, ``e = p^2/a``, ``q = p/a``.

    Attributes
    ----------
    t : ndarray of shape (T,)
        Squared norms.
    a, p, u, e : ndarray of shape (T,)
        The averages; ``p' = -u`` and ``p'' = u - 2 <s^2 c>``.
    spread : ndarray of shape (T,)
        ``1 - e``: what the groups' predictions differ by.
    bend : ndarray of shape (T,)
        ``<s^2 c>``, which is ``-a'/2``.
    a2 : ndarray of shape (T,)
        ``a''``.
    kappa : ndarray of shape (T,)
        ``u - q <s^2 c>``, which is ``-e'/2q``.
    e1, e2 : ndarray of shape (T,)
        ``-e'`` and ``-e''``.
    tau, tau1, tau2 : ndarray of shape (T,)
        ``a t`` and its derivatives.
    s : ndarray of shape (T, K), optional
        By group, in order of increasing gamma; an honest group comes last.
    fall : ndarray of shape (T, pairs), optional
        Positive terms of ``-e'``, one for each pair of groups.
    growth : ndarray of shape (T, pairs), optional
        Their logarithmic derivatives. For a single ``t`` these three are left out.
    """

    t: Numbers
    a: Numbers
    p: Numbers
    u: Numbers
    e: Numbers
    spread: Numbers
    bend: Numbers
    a2: Numbers
    kappa: Numbers
    e1: Numbers
    e2: Numbers
    tau: Numbers
    tau1: Numbers
    tau2: Numbers
    s: Any = None
    fall: Any = None
    growth: Any = None


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
        total: dict[float, float] = {}
        pairs = zip(np.asarray(gammas).tolist(), np.asarray(shares).tolist(), strict=True)
        for gamma, share in pairs:
            total[gamma] = total.get(gamma, 0.0) + share
        strengths = sorted(total)
        weights = [total[gamma] for gamma in strengths]
        count = len(strengths)
        #: Strengths and shares of the groups that move, and the share of the one that does not.
        self.finite = count - (strengths[-1] == inf)
        self.honest: float = weights[-1] if strengths[-1] == inf else 0.0
        self.shares: Vector = np.array(weights)
        self.share: Vector = self.shares[: self.finite]
        #: Every two groups: the one that moves less, and the one that moves more.
        self.pairs: tuple[Any, Any] = slice(1, 2), slice(0, 1)
        both = [(i, j) for i in range(count) for j in range(i)]
        if count != 2:
            self.pairs = [i for i, _ in both], [j for _, j in both]
        apart = [weights[i] * weights[j] * _apart(strengths[i], strengths[j]) ** 2 for i, j in both]
        self._apart = [(i, j, square) for (i, j), square in zip(both, apart, strict=True)]
        self._pair: Vector = np.array(apart)
        #: Ones, whose product with numbers for each pair is their sum.
        self.each: Vector = np.array([1.0] * len(both))
        self.gammas: Vector = np.array(strengths, dtype=float)
        self._column: Array = self.gammas[:, None]
        self.gamma: Vector = self.gammas[: self.finite]
        #: Shares times strengths, whose products with ``s c`` sum to what moves of ``a t``.
        self.reach: Vector = self.share * self.gamma
        reach = self.reach.tolist() + [0.0] * (count - self.finite)
        self._groups = list(zip(strengths, weights, reach, strict=True))
        by = np.array([[weights]] * 5 + [[reach]] * 3)
        self._by: Array = (_POWERS * by).reshape(8, -1)

    def pull(self, t: Numbers) -> tuple[Array, Array]:
        """``s`` and ``c`` of every group, for ``t`` from zero to infinity inclusive."""
        by = t[..., None] if isinstance(t, np.ndarray) else t
        s = by / self.gammas
        s += 1.0
        np.divide(1.0, s, out=s)
        c = self.gammas / by
        c += 1.0
        np.divide(1.0, c, out=c)
        if self.honest > 0.0:
            s[..., -1] = 1.0
            c[..., -1] = 0.0
        return s, c

    def at(self, t: Numbers) -> Moments:
        """Averages at finite ``t``."""
        if not isinstance(t, np.ndarray):
            return self._at_one(float(t))
        # Groups come first here, and the averages are sums over leading rows.
        with np.errstate(divide="ignore", over="ignore"):
            s = t / self._column
            c = self._column / t
        s += 1.0
        np.divide(1.0, s, out=s)
        c += 1.0
        np.divide(1.0, c, out=c)
        sc = s * c
        ssc = sc * s
        parts = np.array([s, s * s, sc, ssc, ssc * s])
        averages = self._by.dot(parts.reshape(-1, t.size))
        averages[_BY_REACH] += self.honest * t
        a, p, u, bend, a2, tau, tau1, tau2 = averages
        weak, strong = self.pairs
        s_weak, c_strong = s[weak], c[strong]
        square = s_weak * c_strong
        square *= square
        square *= self._pair[:, None]
        cross = square * s_weak
        cross *= s[strong]
        q = p / a
        growth = c[weak] + c_strong
        growth *= -3.0
        growth += 2.0 + 4.0 * bend / a - u / p
        fall = cross * (2.0 * q / a)
        e1, e2 = self.each.dot(fall), self.each.dot(fall * growth)
        return Moments(
            t=t,
            a=a,
            p=p,
            u=u,
            e=p * q,
            spread=self.each.dot(square) / a,
            bend=bend,
            a2=a2,
            kappa=0.5 * e1 / q,
            e1=e1,
            e2=e2,
            tau=tau,
            tau1=tau1,
            tau2=tau2,
            s=s.T,
            fall=fall.T,
            growth=growth.T,
        )

    def _at_one(self, t: float) -> Moments:
        """The same at a single ``t``, where Python is faster than NumPy while groups are few."""
        if len(self._groups) > _FEW:
            return self._first_of(t)
        a = p = u = bend = bend3 = moved = moved1 = moved2 = 0.0
        left = []
        for gamma, share, reach in self._groups:
            s, c = 1.0 / (1.0 + t / gamma), t / (t + gamma)
            sc = s * c
            ssc = sc * s
            p += share * s
            a += share * s * s
            u += share * sc
            bend += share * ssc
            bend3 += share * ssc * s
            moved += reach * sc
            moved1 += reach * ssc
            moved2 += reach * ssc * s
            left.append((s, c))
        if a < 1e-150:
            # Python refuses to divide by what may have vanished.
            return self._first_of(t)
        spread = e1 = e2 = 0.0
        q, stay = p / a, self.honest * t
        middle = 2.0 + 4.0 * bend / a - u / p
        for i, j, apart in self._apart:
            (s, c), (s_strong, c_strong) = left[i], left[j]
            square = apart * (s * c_strong) ** 2
            fall = square * s * s_strong * (2.0 * q / a)
            spread += square
            e1 += fall
            e2 += fall * (middle - 3.0 * (c + c_strong))
        return Moments(
            t=t,
            a=a,
            p=p,
            u=u,
            e=p * q,
            spread=spread / a,
            bend=bend,
            a2=4.0 * bend - 6.0 * bend3,
            kappa=0.5 * e1 / q,
            e1=e1,
            e2=e2,
            tau=moved + stay,
            tau1=2.0 * moved1 - moved + stay,
            tau2=moved - 6.0 * (moved1 - moved2) + stay,
        )

    def _first_of(self, t: float) -> Moments:
        many = self.at(np.array([t]))
        return Moments(*(part[0] for part in many if part.ndim == 1))

    def kept(self, t: Vector) -> tuple[Vector, Vector]:
        """Averages of ``s`` and ``s^2`` over those who move, as parts of the whole."""
        s = 1.0 / (1.0 + t / self.gamma[:, None])
        return self.share.dot(s), self.share.dot(s * s)

    def spread_at_infinity(self) -> float:
        """Limit of ``1 - e`` as ``t`` grows."""
        if self.honest > 0.0:
            return float(self.share.sum())
        size = self.gammas / self.gammas.max()
        weak, strong = self.pairs
        square = self.shares[weak] * self.shares[strong] * (size[weak] - size[strong]) ** 2
        return float(square.sum() / (self.shares @ size**2))


def _apart(weak: float, strong: float) -> float:
    return 1.0 if weak == inf else (weak - strong) / weak


def column(x: Numbers) -> Numbers:
    """A vector as a column; a number as it is."""
    return x[:, None] if isinstance(x, np.ndarray) else x
