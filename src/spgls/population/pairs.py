"""Games on the same data against an honest and a strategic group each."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from spgls._types import Array, Vector
from spgls.population.moments import GroupMoments, Moments
from spgls.population.multiplier import blocks
from spgls.population.section import EXACT, Section, Sections
from spgls.reduced import ReducedGame

__all__ = ["PairGames", "Pairs"]


class Pairs(GroupMoments):
    """An honest and a strategic group for each ``t``, others for every one of them."""

    def __init__(self, gamma: Vector, honest: Any) -> None:
        self.gamma, self.honest = gamma, honest

    def at(self, t: Vector) -> Moments:
        """Averages, one entry for each game."""
        gamma, stay = self.gamma, self.honest
        go = 1.0 - stay
        s, c = 1.0 / (1.0 + t / gamma), t / (t + gamma)
        sc = go * s * c
        ssc = sc * s
        sssc = ssc * s
        p, a = stay + go * s, stay + go * s * s
        q = p / a
        square = stay * go * c * c
        fall = square * s * (2.0 * q / a)
        moved, still = gamma * sc, stay * t
        return Moments(
            t=t,
            a=a,
            p=p,
            u=sc,
            e=p * q,
            spread=square / a,
            bend=ssc,
            a2=4.0 * ssc - 6.0 * sssc,
            kappa=0.5 * fall / q,
            e1=fall,
            e2=fall * (2.0 + 4.0 * ssc / a - sc / p - 3.0 * c),
            tau=moved + still,
            tau1=2.0 * gamma * ssc - moved + still,
            tau2=moved - 6.0 * gamma * (ssc - sssc) + still,
        )

    def kept(self, t: Vector) -> tuple[Vector, Vector]:
        """Averages over those who move, one entry for each game."""
        s = 1.0 / (1.0 + t / self.gamma)
        go = 1.0 - self.honest
        return go * s, go * s * s


class PairGames(Sections):
    """Games on the same data, able to evaluate the loss of each at a ``t`` of its own."""

    def __init__(
        self, game: ReducedGame, gammas: Vector, honest: Vector, ridges: Vector, ulps: float
    ) -> None:
        super().__init__(game, gammas[:1], np.ones(1), 0.0, ulps)
        self.gamma: Vector = gammas / self.units.t
        self.honest: Vector = honest
        self.ridges: Vector = ridges / self.units.sigma**2

    def of(self, which: np.ndarray) -> Sections:
        """Some of the games, in any order and as often as wanted."""
        some: Any = copy(self)
        some.groups = Pairs(self.gamma[which], self.honest[which])
        some.ridge = self.ridges[which]
        return some  # type: ignore[no-any-return]

    def each(self, which: np.ndarray, t: Vector, guess: Vector) -> Section:
        """The loss of games ``which`` at ``t``, exactly."""
        parts = [
            self.of(which[rows])._evaluate(t[rows], EXACT, guess[rows])
            for rows in blocks(len(t), self.size)
        ]
        return parts[0] if len(parts) == 1 else parts[0].joined(*parts[1:])

    def points(self, which: np.ndarray, t: Vector, mu: Vector) -> tuple[Array, Vector]:
        """Coordinates of ``v``, of squared norm ``t``, and its norm in the null space."""
        m = self.of(which).groups.at(t)
        x = self.of(which).target(m)[0] * self.sigma * self.inverse(mu)
        norms = np.einsum("ij,ij->i", x, x)
        filled = mu == 0.0
        x *= np.where(filled, 1.0 / np.sqrt(m.a), np.sqrt(t / norms))[:, None]
        fill = np.where(filled, np.sqrt(np.maximum(0.0, t - norms / m.a)), 0.0)
        return np.asarray(x), fill

    def infinity(self) -> Vector:
        """Limit of the loss of each game as ``t`` grows."""
        far = np.where(
            self.honest > 0.0,
            (1.0 - self.honest) * self.apart + self.honest * float(self.outer[0, 0]),
            self.apart - self.free,
        )
        never = (self.ridges > 0.0) | ((self.honest > 0.0) & (self.lowest > 0.0))
        return np.where(never, np.inf, far)
