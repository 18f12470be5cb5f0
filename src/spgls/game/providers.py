"""Who the providers are: one facing a model, or a population of honest and strategic ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import overload

import numpy as np

from spgls.base.types import Array, Vector
from spgls.base.validation import check_number, check_vector
from spgls.base.vector import dot, squares
from spgls.game.between import Between, read_between
from spgls.game.moves import Cost, Moves
from spgls.matrix import Matrix

__all__ = ["Population", "PopulationRange", "Provider", "priced_norm", "priced_norms"]

#: Shares may miss one by the rounding of their decimals; by more, a group was forgotten.
_SUM = 1e-9


def priced_norm(coef: Vector, cost: Cost) -> float:
    """``q = sum_j w_j^2/c_j``, or ``w'Kw``: what a unit of prediction is worth to a provider."""
    if isinstance(cost, Moves):
        return cost.reach(coef)
    return dot(coef, coef if cost is None else coef / cost)


def priced_norms(coef: Array, cost: Cost) -> Vector:
    """``q`` of each column of coefficients."""
    if isinstance(cost, Moves):
        return cost.reaches(coef)
    if cost is None:
        return squares(coef)
    priced = coef / cost[:, None]
    return np.asarray(np.einsum("ij,ij->j", coef, priced))


@dataclass(frozen=True, eq=False)
class Provider:
    """A provider facing a published linear model.

    Parameters
    ----------
    coef : ndarray of shape (n,)
        The model's coefficients.
    intercept : float
        Its intercept.
    gamma : float or ndarray of shape (m,)
        Strength, one for all or one per row; ``inf`` is an honest provider.
    cost : ndarray of shape (n,) or Moves, optional
        Cost of a squared unit of change of each feature, ``inf`` if it cannot be changed; or what
        else the provider can do.
    """

    coef: Vector
    intercept: float
    gamma: float | Vector
    cost: Cost

    @property
    def reach(self) -> float:
        """Squared priced norm of the coefficients, ``q``."""
        return priced_norm(self.coef, self.cost)

    @property
    def alpha(self) -> float | Vector:
        """``q/gamma``; zero for an honest provider."""
        return self.reach / self.gamma

    @property
    def direction(self) -> Vector:
        """How features move per unit of step."""
        if isinstance(self.cost, Moves):
            return self.cost.direction(self.coef)
        return self.coef if self.cost is None else self.coef / self.cost

    @property
    def actions(self) -> dict[str, float]:
        """How much of each action is taken per unit of step; empty where actions have no names."""
        if not isinstance(self.cost, Moves) or not self.cost.names:
            return {}
        amounts = self.cost.amounts(self.coef).tolist()
        return dict(zip(self.cost.names, amounts, strict=True))

    def predict(self, matrix: Matrix) -> Vector:
        """Predictions on rows as they are."""
        return matrix.apply(self.coef) + self.intercept

    def step(self, prediction: Vector, z: Vector) -> Vector:
        """How far along :attr:`direction` each row moves."""
        far: Vector = (z - prediction) / (self.gamma + self.reach)
        return far

    def induced(self, prediction: Vector, z: Vector) -> Vector:
        """Predictions after the rows moved."""
        alpha = self.alpha
        share = 1.0 / (1.0 + alpha)
        said: Vector = share * prediction + (alpha * share) * z
        return said


@dataclass(frozen=True)
class Population:
    """Groups of providers of different strength who face the same model.

    Parameters
    ----------
    gammas : array-like of shape (k,)
        Strength of each group, positive; ``inf`` is a group of honest providers.
    shares : array-like of shape (k,)
        Share of each group; not negative, one in sum.

    Examples
    --------
    >>> from spgls import Population
    >>> Population([float("inf"), 0.1, 0.5], [0.7, 0.2, 0.1])
    Population(70% honest, 20% gamma 0.1, 10% gamma 0.5)
    >>> Population.mixed(0.1, honest=0.5)
    Population(50% honest, 50% gamma 0.1)
    """

    gammas: tuple[float, ...]
    shares: tuple[float, ...]

    def __post_init__(self) -> None:
        gammas = check_vector(self.gammas, "gammas", None, "group", infinite=True)
        shares = check_vector(self.shares, "shares", len(gammas), "entry of gammas")
        if (gammas <= 0.0).any():
            at = int(np.flatnonzero(gammas <= 0.0)[0])
            raise ValueError(
                f"gammas must be positive, inf for honest providers; entry {at} is {gammas[at]}."
            )
        if (shares < 0.0).any():
            at = int(np.flatnonzero(shares < 0.0)[0])
            raise ValueError(f"shares must not be negative; entry {at} is {shares[at]}.")
        total = math.fsum(shares)
        if abs(total - 1.0) > _SUM:
            raise ValueError(
                f"shares must sum to one; they sum to {total:.10g}. "
                "Divide by their sum, or add the group that is missing."
            )
        object.__setattr__(self, "gammas", tuple(float(gamma) for gamma in gammas))
        object.__setattr__(self, "shares", tuple(float(share / total) for share in shares))

    @overload
    @classmethod
    def mixed(cls, gamma: float, honest: float = 0.5) -> Population: ...
    @overload
    @classmethod
    def mixed(cls, gamma: Between, honest: float | Between = 0.5) -> PopulationRange: ...
    @overload
    @classmethod
    def mixed(cls, gamma: float, honest: Between) -> PopulationRange: ...
    @classmethod
    def mixed(
        cls, gamma: float | Between, honest: float | Between = 0.5
    ) -> Population | PopulationRange:
        """A share of honest providers, and the rest of one strength.

        Parameters
        ----------
        gamma : float or Between
            Strength of the strategic providers.
        honest : float or Between
            Share of the honest ones, from zero to one.

        Returns
        -------
        Population or PopulationRange
            The latter where one of both is not known.
        """
        if isinstance(gamma, Between) or isinstance(honest, Between):
            return PopulationRange.of(gamma, honest)
        strength = check_number(gamma, "gamma", above=0.0)
        share = check_number(honest, "honest", at_least=0.0, at_most=1.0)
        return cls((math.inf, strength), (share, 1.0 - share))

    @classmethod
    def of_one(cls, gamma: float, honest: float = 0.0) -> Population:
        """Everybody but the honest of one strength; of numbers that were checked already.

        Parameters
        ----------
        gamma : float
            Strength, positive.
        honest : float
            Share of the honest ones.
        """
        people, alone = cls.__new__(cls), honest == 0.0 or gamma == math.inf
        vars(people).update(
            gammas=(gamma,) if alone else (math.inf, gamma),
            shares=(1.0,) if alone else (honest, 1.0 - honest),
        )
        return people

    @property
    def honest(self) -> float:
        """Share of the honest providers."""
        if math.inf not in self.gammas:
            return 0.0
        pairs = zip(self.gammas, self.shares, strict=True)
        return math.fsum(share for gamma, share in pairs if gamma == math.inf)

    def merged(self) -> Population:
        """The same people in the fewest groups: equal strengths together, empty groups dropped."""
        total: dict[float, float] = {}
        for gamma, share in zip(self.gammas, self.shares, strict=True):
            if share > 0.0:
                total[gamma] = total.get(gamma, 0.0) + share
        ordered = sorted(total)
        return Population(tuple(ordered), tuple(total[gamma] for gamma in ordered))

    def __repr__(self) -> str:
        groups = [
            f"{100 * share:.4g}% " + ("honest" if math.isinf(gamma) else f"gamma {gamma:.6g}")
            for gamma, share in zip(self.gammas, self.shares, strict=True)
        ]
        return f"Population({', '.join(groups)})"


@dataclass(frozen=True)
class PopulationRange:
    """Honest and strategic providers, of whom strength, or share, or both are not known.

    :meth:`Population.mixed` makes one of a :class:`Between`; it stands where a population does in
    :func:`solve` and :func:`certify`.

    Parameters
    ----------
    gamma : Between
        Strengths of the strategic providers that are possible.
    honest : Between
        Shares of the honest ones that are.

    Examples
    --------
    >>> from spgls import Between, Population
    >>> Population.mixed(Between(0.5, 5), honest=Between(0.2, 0.8))
    PopulationRange(20% to 80% honest, others gamma 0.5 to 5)
    """

    gamma: Between
    honest: Between

    @classmethod
    def of(cls, gamma: float | Between, honest: float | Between) -> PopulationRange:
        """A range of strengths and of honest shares, or a number for either.

        Parameters
        ----------
        gamma : float or Between
            Strength of the strategic providers.
        honest : float or Between
            Share of the honest ones.
        """
        return cls(
            read_between(gamma, "gamma", infinite=True, above=0.0),
            read_between(honest, "honest", at_least=0.0, at_most=1.0),
        )

    @cached_property
    def corners(self) -> tuple[Population, ...]:
        """The populations at the ends of the ranges: one, two or four."""
        pairs = [
            (gamma, honest)
            for gamma in (self.gamma.low, self.gamma.high)
            for honest in (self.honest.low, self.honest.high)
        ]
        return tuple(dict.fromkeys(_two_groups(*pair) for pair in pairs))

    @cached_property
    def chain(self) -> tuple[Population, ...]:
        """Those of them that can be the worst, each beside those it can be the worst with.

        A predictor's loss against a strength is convex in ``s = gamma/(gamma + q)``, which is one
        for the honest. So where weak providers cost more than strong ones, honest ones cost more
        than either, and the weak are the worst with the largest share of the honest only.
        """
        (low, high), (few, many) = ((ends.low, ends.high) for ends in (self.gamma, self.honest))
        return tuple(
            dict.fromkeys(_two_groups(*pair) for pair in ((high, many), (low, many), (low, few)))
        )

    def __repr__(self) -> str:
        low, high = 100 * self.honest.low, 100 * self.honest.high
        share = f"{low:.4g}%" if self.honest.known else f"{low:.4g}% to {high:.4g}%"
        ends = self.gamma
        strength = f"{ends.low:.6g}" if ends.known else f"{ends.low:.6g} to {ends.high:.6g}"
        return f"PopulationRange({share} honest, others gamma {strength})"


def _two_groups(gamma: float, honest: float) -> Population:
    """The population in its fewest groups."""
    return Population.of_one(gamma, honest).merged()
