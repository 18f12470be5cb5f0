"""Averages over the groups of a population, as functions of the squared norm ``t``.

Each average is written once. A group's strength and share are numbers, or vectors with an entry for
each of many games; ``t`` is a number, a vector, or a vector with an entry for each of those games.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import inf
from operator import mul
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from spgls.base.cached import cached_property
from spgls.base.types import Array

__all__ = [
    "Group",
    "GroupMoments",
    "Moments",
    "Numbers",
    "averaged",
    "column",
    "either",
    "left_by",
]

#: A vector with an entry for each ``t``, or a number where there is a single one: the formulas of
#: this package are the same for both, and numbers spare the searches most of NumPy's overhead.
Numbers: TypeAlias = Any

#: Up to so many groups a loop over them is faster than vectors, at a single ``t``.
_FEW = 5
#: Squares below this may vanish where they are divided by, which Python refuses to do.
_VANISHING = 1e-150


class Moments(NamedTuple):
    """What the loss needs to know about the groups, one entry (or row) for each ``t``.

    Primes below are derivatives in ``log t``. With ``s_k = 1/(1 + t/gamma_k)``, ``c_k = 1 - s_k``,
    averages over shares: ``a = <s^2>``, ``p = <s>``, ``u = <s c>``, ``e = p^2/a``, ``q = p/a``.

    Attributes
    ----------
    groups : GroupMoments
        Whose averages.
    t : float or ndarray of shape (T,)
        Squared norms.
    a, p, u, e : float or ndarray of shape (T,)
        The averages; ``p' = -u`` and ``p'' = u - 2 <s^2 c>``.
    spread : float or ndarray of shape (T,)
        ``1 - e``: what the groups' predictions differ by.
    bend : float or ndarray of shape (T,)
        ``<s^2 c>``, which is ``-a'/2``.
    a2 : float or ndarray of shape (T,)
        ``a''``.
    kappa : float or ndarray of shape (T,)
        ``u - q <s^2 c>``, which is ``-e'/2q``.
    e1, e2 : float or ndarray of shape (T,)
        ``-e'`` and ``-e''``.
    middle : float or ndarray of shape (T,)
        ``2 + 4 <s^2 c>/a - u/p``, which the logarithmic derivatives of all terms of ``-e'`` share.
    tau, tau1, tau2 : float or ndarray of shape (T,)
        ``a t`` and its derivatives.
    left : tuple of two ndarrays, optional
        ``s`` and ``c`` by group, where they are at hand.
    """

    groups: GroupMoments
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
    middle: Numbers
    tau: Numbers
    tau1: Numbers
    tau2: Numbers
    left: tuple[Array, Array] | None = None

    def by_group(self) -> tuple[Array, Array]:
        """``s`` and ``c`` of one game by group, which is the last axis."""
        return self.left or self.groups.left(self.t)

    def by_pair(self) -> Array:
        """Terms of ``-e'`` but for their weights, by pair of groups, which is the last axis."""
        (s, c), (weak, strong) = self.by_group(), self.groups.pairs
        _, cross = _by_pair(s[..., weak], s[..., strong], c[..., strong])
        return np.asarray(cross * column(2.0 * self.p / self.a**2))

    @property
    def s(self) -> Array:
        """``s`` by group, in order of increasing gamma; an honest group comes last."""
        return self.by_group()[0]

    @property
    def fall(self) -> Array:
        """Positive terms of ``-e'``, one for each pair of groups."""
        return np.asarray(self.by_pair() * self.groups.apart)

    @property
    def growth(self) -> Array:
        """Their logarithmic derivatives."""
        (_, c), (weak, strong) = self.by_group(), self.groups.pairs
        return np.asarray(column(self.middle) - 3.0 * (c[..., weak] + c[..., strong]))

    def each(self) -> list[Group]:
        """Every group at ``t``, in the order of ``s``."""
        return self.groups.each(self.t)


class Group(NamedTuple):
    """One group at some ``t``: how much it leaves of a prediction, and of the gap to its goal.

    Attributes
    ----------
    share : float or ndarray
        Its share of the providers.
    s, c : float or ndarray
        ``1/(1 + t/gamma)`` and ``1 - s``.
    slope : float or ndarray
        Derivative of ``s`` by ``t``.
    """

    share: Numbers
    s: Numbers
    c: Numbers
    slope: Numbers


class GroupMoments:
    """The groups of a population: in order of increasing gamma, equal ones merged.

    Differences of ``s`` are formed as ``s_k - s_l = s_k c_l (1 - gamma_l/gamma_k)`` for
    ``gamma_k > gamma_l``, and variances as sums over pairs of groups, so nothing cancels whether
    ``t`` is far below every strength or far above.

    Parameters
    ----------
    gammas : sequence of K numbers, or of vectors of shape (C,)
        Strengths, positive; infinity is honest. Vectors are those of C games, in increasing order
        in each; the number infinity comes last.
    shares : sequence of K numbers, or of vectors of shape (C,)
        Shares, summing to one; a group of one game may have none.

    Attributes
    ----------
    many : bool
        Whether there is an entry for each of many games.
    moving : list of tuples
        Strength, share, and the product of both, of the groups that move.
    honest : float or ndarray of shape (C,)
        Share of those who do not.
    """

    def __init__(self, gammas: Iterable[Numbers], shares: Iterable[Numbers]) -> None:
        groups = list(zip(gammas, shares, strict=True))
        self.many = isinstance(groups[0][0], np.ndarray)
        if not self.many:
            total: dict[float, float] = {}
            for gamma, share in groups:
                if share > 0.0:
                    total[float(gamma)] = total.get(float(gamma), 0.0) + float(share)
            groups = sorted(total.items())
        still = self.many or groups[-1][0] == inf
        self.finite = len(groups) - still
        self.moving = [(gamma, share, gamma * share) for gamma, share in groups[: self.finite]]
        self.honest: Numbers = groups[-1][1] if still else 0.0
        #: Every two groups, the one that moves less first, and how far they are apart.
        self._pairs = [
            (i, j, groups[i][1] * groups[j][1] * _apart(groups[i][0], groups[j][0]) ** 2)
            for i in range(len(groups))
            for j in range(i)
        ]
        self._groups, self._still = groups, still

    # The same as vectors with an entry for each group, or for each pair; of many games as rows.

    @cached_property
    def gammas(self) -> Array:
        """Strengths."""
        return self._stacked([gamma for gamma, _ in self._groups])

    @cached_property
    def shares(self) -> Array:
        """Shares."""
        return self._stacked([share for _, share in self._groups])

    @cached_property
    def gamma(self) -> Array:
        """Strengths of those who move."""
        return np.asarray(self.gammas[..., : self.finite])

    @cached_property
    def share(self) -> Array:
        """Their shares."""
        return np.asarray(self.shares[..., : self.finite])

    @cached_property
    def reach(self) -> Array:
        """Products of both, zero for those who do not move."""
        return self._stacked([reach for _, _, reach in self.moving] + [0.0] * self._still)

    @cached_property
    def apart(self) -> Array:
        """How far the groups of each pair are apart."""
        return self._stacked([apart for _, _, apart in self._pairs])

    @cached_property
    def pairs(self) -> tuple[Any, Any]:
        """Places of the groups of each pair, the one that moves less first."""
        if len(self._groups) == 2:
            return slice(1, 2), slice(0, 1)
        weak, strong = ([pair[k] for pair in self._pairs] for k in (0, 1))
        return np.array(weak, dtype=int), np.array(strong, dtype=int)

    def _stacked(self, parts: list[Numbers]) -> Array:
        return np.array(np.broadcast_arrays(*parts)).T if self.many else np.array(parts)

    def of(self, which: Any) -> GroupMoments:
        """The groups of some of the games."""
        gammas = [gamma[which] for gamma, _, _ in self.moving]
        shares = [share[which] for _, share, _ in self.moving]
        return GroupMoments([*gammas, inf], [*shares, self.honest[which]])

    def left(self, t: Numbers) -> tuple[Array, Array]:
        """``s`` and ``c`` of every group, for ``t`` from zero to infinity inclusive."""
        by = t[..., None] if isinstance(t, np.ndarray) else t
        s, c = left_by(by, self.gammas)
        if self.many or self.honest:
            s[..., -1], c[..., -1] = 1.0, 0.0
        return s, c

    def each(self, t: Numbers) -> list[Group]:
        """Every group, for ``t`` from zero to infinity inclusive; the honest one, if any, last."""
        found = []
        with np.errstate(all="ignore"):
            for gamma, share, _ in self.moving:
                s, c = left_by(t, gamma)
                found.append(Group(share, s, c, -s * s / gamma))
        return found + [Group(self.honest, 1.0, 0.0, 0.0)] * (self.many or self.honest > 0.0)

    def at(self, t: Numbers) -> Moments:
        """Averages at ``t``, a number or a vector; where there are many games, one for each.

        A number may be anything from zero to infinity, where ``tau`` has no limit if nobody is
        honest; a vector is positive.
        """
        single = not isinstance(t, np.ndarray)
        # One group after the other while they are few; else all of them at once, as rows.
        if self.many or self.finite == 1 or (single and 0 < self.finite <= _FEW):
            left = [left_by(t, gamma) for gamma, _, _ in self.moving]
            s_of: Any = [s for s, _ in left] + [1.0]
            c_of: Any = [c for _, c in left] + [0.0]
            groups: Any = zip(self.moving, left, strict=True)
            parts = [_by_group(mul, share, reach, *own) for (_, share, reach), own in groups]
            pairs, by, still, every = self._pairs, mul, self.honest, None
        else:
            every = self.left(t)
            s_of, c_of = every[0].T, every[1].T
            parts = [_by_group(np.dot, self.shares, self.reach, s_of, c_of)]
            pairs, by, still = [(*self.pairs, self.apart)], np.dot, 0.0
        p, a, u, bend, bend3, moved, moved1, moved2 = _total(parts)
        p, a = p + still, a + still
        if type(a) is float and a < _VANISHING:
            with np.errstate(all="ignore"):
                return self.at(np.float64(t))
        q, stay = p / a, self.honest * t
        middle = 2.0 + 4.0 * bend / a - u / p
        parts = []
        for weak, strong, apart in pairs:
            s, c_strong = s_of[weak], c_of[strong]
            square, cross = _by_pair(s, s_of[strong], c_strong)
            growth = middle - 3.0 * (c_of[weak] + c_strong)
            parts.append((by(apart, square), by(apart, cross), by(apart, cross * growth)))
        spread, e1, e2 = _total(parts) if parts else (0.0, 0.0, 0.0)
        a2 = 4.0 * bend - 6.0 * bend3
        e, e1, e2, kappa = p * q, e1 * (2.0 * q / a), e2 * (2.0 * q / a), e1 / a
        tau, tau1 = moved + stay, 2.0 * moved1 - moved + stay
        tau2 = moved - 6.0 * (moved1 - moved2) + stay
        # By position, which is faster.
        moments = t, a, p, u, e, spread / a, bend, a2, kappa, e1, e2, middle, tau, tau1, tau2
        return Moments(self, *moments, every)

    def spread_at_infinity(self) -> Numbers:
        """Limit of ``1 - e`` as ``t`` grows."""
        largest = self.moving[-1][0]
        size = [gamma / largest for gamma, _, _ in self.moving]
        apart = sum(x * size[i] ** 2 for i, _, x in self._pairs if i < self.finite)
        whole = sum(share * x * x for (_, share, _), x in zip(self.moving, size, strict=True))
        moving = sum(share for _, share, _ in self.moving)
        return either(self.honest > 0.0, moving, apart / whole)


def left_by(t: Numbers, gamma: Numbers) -> tuple[Numbers, Numbers]:
    """``s`` and ``c`` of a group that moves, or of each of several."""
    s = 1.0 / (1.0 + t / gamma)
    return s, 1.0 / (1.0 + gamma / t) if isinstance(t, np.ndarray) or t > 0.0 else 0.0 * s


def _by_group(
    by: Callable[[Any, Any], Any], share: Numbers, reach: Numbers, s: Numbers, c: Numbers
) -> tuple[Numbers, ...]:
    """What a group adds to the averages, or all of them do: weights ``by`` what they weigh."""
    sc = s * c
    ssc = sc * s
    sssc = ssc * s
    by_share = by(share, s), by(share, s * s), by(share, sc), by(share, ssc), by(share, sssc)
    return *by_share, by(reach, sc), by(reach, ssc), by(reach, sssc)


def _by_pair(s: Numbers, s_strong: Numbers, c_strong: Numbers) -> tuple[Numbers, Numbers]:
    """What a pair of groups adds to ``a (1 - e)`` and to ``-e' a/2q``, but for its weight."""
    root = s * c_strong
    square = root * root
    return square, square * s * s_strong


def _total(parts: Sequence[tuple[Numbers, ...]]) -> Iterable[Numbers]:
    """Sums of what each of several adds; they cost nothing where there is one."""
    return map(sum, zip(*parts, strict=True)) if len(parts) > 1 else parts[0]


def _apart(weak: Numbers, strong: Numbers) -> Numbers:
    return (weak - strong) / weak if isinstance(weak, np.ndarray) or weak < inf else 1.0


def averaged(values: Array, weights: Array) -> Numbers:
    """Sums over the last axis, weighted alike in every row, or in each by weights of its own."""
    if weights.ndim == 1:
        return values.dot(weights)
    return np.einsum("...ij,ij->...i", values, weights)


def column(x: Numbers) -> Numbers:
    """A vector as a column; a number as it is."""
    return x[:, None] if isinstance(x, np.ndarray) else x


def either(condition: Numbers, x: Numbers, y: Numbers) -> Numbers:
    """One or the other: for numbers, or entry by entry."""
    return np.where(condition, x, y) if isinstance(condition, np.ndarray) else x if condition else y
