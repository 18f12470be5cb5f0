"""The game as a Krylov space sees it: Ritz values for singular values, to a known residual."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.linalg import eigh

from spgls.base.types import EPS, Array, Vector
from spgls.reduction.data import GameData
from spgls.reduction.krylov_space import KrylovSpace
from spgls.reduction.reduced import ReducedGame
from spgls.reduction.reduction import ReductionByData

__all__ = ["KrylovReduction", "certainly_singular", "reduce_krylov", "start_block"]


@dataclass(frozen=True, eq=False)
class KrylovReduction(ReductionByData):
    """A reduction to the span of a Krylov space of ``G = (PA)'PA``.

    Every predictor in the span has its true loss in the reduced game, so the game's optimum is an
    upper bound. How far below it the optimum over all predictors can lie is for the solver to say,
    and is kept here as :attr:`truncation`.
    """

    complete: ClassVar[bool] = False

    space: KrylovSpace
    vectors: Array  # coordinates of the Ritz vectors in the basis
    null: Vector | None  # a unit vector that the data does not see, once one is needed
    truncation: float = 0.0

    def lift(self, x: Vector, fill: float) -> Vector:
        """``v = Q U x`` and, in the hard case, a vector of the null space or the lowest one."""
        if fill == 0.0:
            return self.lift_span(x)
        if self.null is not None:
            return np.asarray(self.lift_span(x) + fill * self.null)
        lowest = np.zeros_like(x)
        lowest[int(np.argmin(self.game.sigma))] = fill
        return self.lift_span(x + lowest)

    def lift_span(self, x: Array) -> Array:
        """``Q U x``."""
        return self.space.combine(self.vectors @ x)

    def roundings(
        self, v: Array, *, s: Vector, c: Vector, nu: Vector, value: Vector, filled: np.ndarray
    ) -> Vector:
        """Rounding, and what the span does not hold."""
        own = super().roundings(v, s=s, c=c, nu=nu, value=value, filled=filled)
        return own + self.truncation

    def residual_factor(self) -> Array:
        """A small ``F``: ``|F x|`` is the residual of coordinates ``x`` in all of space."""
        return self.space.outside_factor(self.vectors)


def certainly_singular(data: GameData) -> bool:
    """Whether there are more coefficients than rows could determine."""
    m, n = data.projected.shape
    return bool(n > m - data.free.rank)


def start_block(p: Array, extra: int, generator: np.random.Generator) -> Array:
    """``[p_y, p_z]`` and some random columns, in which every eigenvector has a part."""
    if extra == 0:
        return p
    return np.hstack([p, generator.normal(size=(len(p), extra))])


def reduce_krylov(data: GameData, space: KrylovSpace) -> KrylovReduction:
    """Reduce the game to the span of a space that was started at ``(PA)'[y, z]``.

    Parameters
    ----------
    data : GameData
        The data of the game.
    space : KrylovSpace
        A Krylov space of ``(PA)'PA``; the reduction holds until it is restarted.
    """
    theta, vectors = eigh(space.projected, check_finite=False)
    top = max(float(theta[-1]), 0.0) if len(theta) else 0.0
    # Ritz values below rounding of the largest one are known to be small, and no more.
    sigma = np.sqrt(np.maximum(theta, EPS * top))
    seen = sigma > 0.0
    sigma, vectors = sigma[seen], vectors[:, seen]
    targets, _ = data.projected_targets
    same = np.array_equal(targets[:, 0], targets[:, 1])
    coordinates = (vectors.T @ space.starts[:, :2]) / sigma[:, None]
    eta, zeta = coordinates[:, 0], coordinates[:, 0 if same else 1]
    yy, yz, zz, gap = data.target_squares
    game = ReducedGame(
        sigma=sigma,
        eta=eta,
        zeta=zeta,
        r_yy=max(0.0, yy - float(eta @ eta)),
        r_yz=max(0.0, yy - float(eta @ eta)) if same else yz - float(eta @ zeta),
        r_zz=max(0.0, zz - float(zeta @ zeta)),
        nullity=int(certainly_singular(data) and not data.layout.avoids_null),
        free_gap=max(0.0, data.sizes.gap - gap),
    )
    size = float(np.sqrt(top))
    return KrylovReduction(
        data.layout, game, data.sizes, True, size, size, 0.0, data, space, vectors, None
    )
