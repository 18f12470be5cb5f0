"""A population as direct solvers see it: how much each group leaves of a prediction."""

from __future__ import annotations

from collections.abc import Iterator

from spgls.providers import Population

__all__ = ["Groups", "Moments"]


class Moments:
    """Averages over the groups of how much they leave of a prediction, ``s = 1/(1 + t/gamma)``."""

    def __init__(self, gammas: list[float], shares: list[float], t: float) -> None:
        # Numbers, not arrays: groups are few.
        self.t = t
        self.shares = shares
        self.s = [1.0 / (1.0 + t / gamma) for gamma in gammas]
        self.c = [t / gamma * s for gamma, s in zip(gammas, self.s, strict=True)]
        #: Derivatives of s by t.
        self.slope = [-s * s / gamma for gamma, s in zip(gammas, self.s, strict=True)]
        self.a = self.k = self.u = 0.0
        for share, s, c in self.each():
            self.a += share * s * s
            self.u += share * s * c
            self.k += share * c * c

    def each(self) -> Iterator[tuple[float, float, float]]:
        """Share, ``s`` and ``c = 1 - s`` of every group."""
        return zip(self.shares, self.s, self.c, strict=True)

    @property
    def pull(self) -> float:
        """``u/a``: the alpha of the one provider whose best free part is the population's."""
        return self.u / self.a

    def by_norm(self, ee: float, eg: float, gg: float) -> float:
        """Derivative of the loss by ``t`` where errors and gaps to the goals stay as they are.

        From the inner products of errors and gaps.
        """
        terms = zip(self.each(), self.slope, strict=True)
        return 2.0 * sum(
            share * slope * (s * (ee - eg) + c * (eg - gg)) for (share, s, c), slope in terms
        )


class Groups:
    """The groups of a population that someone is in."""

    def __init__(self, population: Population) -> None:
        pairs = zip(population.gammas, population.shares, strict=True)
        kept = [(gamma, share) for gamma, share in pairs if share > 0.0]
        self.gammas = [gamma for gamma, _ in kept]
        self.shares = [share for _, share in kept]

    @classmethod
    def of(cls, who: float | Population) -> Groups:
        """Everybody of one strength, or the groups of a population."""
        return cls(who if isinstance(who, Population) else Population.of_one(who))

    def at(self, t: float) -> Moments:
        """Moments where the coefficients have squared priced norm ``t``."""
        return Moments(self.gammas, self.shares, t)
