"""What a population leaves of a prediction at a given norm of the coefficients."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf, sqrt
from sys import float_info

from spgls.game.providers import Population
from spgls.population.moments import left_by

__all__ = ["Groups", "Reached"]


class Reached:
    """Averages over the groups of ``s = 1/(1 + t/gamma)`` and ``c = 1 - s`` at one ``t``.

    ``a``, ``u`` and ``k`` are those of ``s^2``, ``s c`` and ``c^2``.
    """

    __slots__ = ("_groups", "a", "c", "k", "s", "t", "u")

    def __init__(self, groups: Groups, t: float) -> None:
        # Numbers, not arrays: groups are few.
        self._groups, self.t = groups, t
        self.s, self.c = [], []
        a = k = u = 0.0
        for gamma, share in zip(groups.gammas, groups.shares, strict=True):
            # Who cannot move does not, whatever the norm.
            s, c = left_by(t, gamma) if gamma < inf else (1.0, 0.0)
            a += share * s * s
            u += share * s * c
            k += share * c * c
            self.s.append(s)
            self.c.append(c)
        self.a, self.k, self.u = a, k, u

    def each(self) -> Iterator[tuple[float, float, float]]:
        """Share, ``s`` and ``c`` of every group."""
        return zip(self._groups.shares, self.s, self.c, strict=True)

    @property
    def pull(self) -> float:
        """``u/a``: the alpha of the one provider whose best free part is the population's."""
        return self.u / self.a if self.a > 0.0 else inf

    def penalty(self, ridge: float) -> float:
        """A ridge times ``t``: nothing without a ridge, even where ``t`` is beyond all numbers."""
        return ridge * self.t if ridge else 0.0

    def hidden(self, size: float, loss: float) -> float:
        """What a ``t`` beyond all numbers hides of a loss: ``s`` is taken for zero there.

        Parameters
        ----------
        size : float
            Length of the errors before anybody moves, at most.
        loss : float
            The loss.
        """
        if self.t < inf:
            return 0.0
        moving = max((gamma for gamma in self._groups.gammas if gamma < inf), default=0.0)
        wrong = moving / float_info.max * size
        return wrong * (2.0 * sqrt(loss) + wrong)

    def by_norm(self, ee: float, eg: float, gg: float) -> float:
        """Derivative of the loss by ``t`` where errors and gaps to the goals stay as they are.

        From the inner products of errors and gaps.
        """
        # The derivative of s is -s^2/gamma.
        terms = zip(self.each(), self._groups.gammas, strict=True)
        return -2.0 * sum(
            share * s * s / gamma * (s * (ee - eg) + c * (eg - gg))
            for (share, s, c), gamma in terms
        )


class Groups:
    """The groups of a population that someone is in."""

    __slots__ = ("gammas", "shares")

    def __init__(self, who: float | Population) -> None:
        self.gammas: Sequence[float]
        self.shares: Sequence[float]
        if not isinstance(who, Population):
            self.gammas, self.shares = (who,), (1.0,)
            return
        pairs = zip(who.gammas, who.shares, strict=True)
        kept = [(gamma, share) for gamma, share in pairs if share > 0.0]
        self.gammas, self.shares = zip(*kept, strict=True)

    def at(self, t: float) -> Reached:
        """Averages where the coefficients have squared priced norm ``t``."""
        return Reached(self, t)
