"""Proof of how far a predictor is from the global optimum.

For every multiplier ``nu`` that makes the Lagrangian convex, its unconstrained minimum ``D(nu)``
bounds the game from below. With ``c`` near the optimum

    D = r_yy - 2c r_yz + c^2 r_zz + nu sum (eta - c zeta)^2/(d + nu) - nu gamma s c - t^2/h,

``t = c r_zz - r_yz + nu sum zeta (c zeta - eta)/(d + nu) + nu gamma (c - s)/2``: positive terms and
one small square, so nothing cancels. Convexity needs ``nu > -min(d)`` and ``h(nu) > 0`` only, both
of which a spectral reduction knows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from spgls._types import EPS
from spgls.reduced import ReducedGame
from spgls.sphere.secular import SmallSolution

__all__ = [
    "Certificate",
    "build_certificate",
    "dual_bound",
    "stationarity",
    "stationarity_unit",
]

#: Steps to the right of the multiplier, over the largest eigenvalue: at a pole itself the bound is
#: not defined, and how close to it rounding lets us go depends on the game.
_NUDGES = np.concatenate([[0.0], EPS ** np.arange(4.0, 1.0, -0.5), EPS * 16.0 ** np.arange(5)])


@dataclass(frozen=True)
class Certificate:
    """How far a predictor can be from the best one.

    Attributes
    ----------
    lower_bound : float
        No predictor reaches a smaller objective; rounding is accounted for.
    gap : float
        Objective less :attr:`lower_bound`, plus what rounding can hide in measuring the objective.
    relative_gap : float
        Gap over ``|Py|^2``, the error of the best constant (with an intercept): units of R2.
    kkt_residual : float
        Norm of the residual of the optimality conditions, relative to their terms.
    kind : {"proved", "estimated"}
        Whether the bound rests on a complete spectrum or on estimates of it.
    """

    lower_bound: float
    gap: float
    relative_gap: float
    kkt_residual: float
    kind: Literal["proved", "estimated"]

    def __repr__(self) -> str:
        return (
            f"Certificate({self.kind}: gap {self.gap:.3g}, relative {self.relative_gap:.3g}; "
            f"lower bound {self.lower_bound:.10g}, KKT residual {self.kkt_residual:.3g})"
        )


def dual_bound(game: ReducedGame, gamma: float, small: SmallSolution) -> float:
    """Best lower bound on the value of the game near the multiplier of a solution."""
    if game.size + game.nullity == 0:
        return game.yy
    top = float(game.d.max()) if game.size else 1.0
    nu = small.nu + (top + abs(small.nu)) * _NUDGES
    if game.nullity:
        nu = np.maximum(nu, 0.0)
    c, s = small.c, small.s
    # Labels less goals, without cancellation when the two are close and c is near one.
    rest = game.eta - c * game.zeta if c <= 0.5 else s * game.zeta - (game.zeta - game.eta)
    with np.errstate(divide="ignore", invalid="ignore"):
        shrink = nu[:, None] / (game.d + nu[:, None])
        h = game.r_zz + shrink @ game.zeta**2 + gamma * nu
        t = c * game.r_zz - game.r_yz - shrink @ (game.zeta * rest) + gamma * nu * (c - s) / 2
        outside = game.r_yy - 2 * c * game.r_yz + c * c * game.r_zz
        bound = outside + shrink @ rest**2 - nu * gamma * s * c - t**2 / h
    convex = (nu >= -game.lowest) & (h > 0.0) & np.isfinite(bound)
    return float(bound[convex].max()) if convex.any() else -np.inf


def stationarity(game: ReducedGame, gamma: float, small: SmallSolution) -> float:
    """Residual of ``(H + lambda I) r = -g``, in the paper's variables and relative to its terms."""
    if game.size + game.nullity == 0:
        return 0.0
    half = np.sqrt(gamma) / 2
    residual = game.sigma * small.x + small.c * game.zeta - game.eta
    inside = half * (game.sigma * residual + small.nu * small.x)
    goal = float(game.zeta @ residual) + small.c * game.r_zz - game.r_yz
    last = goal / 2 + gamma * small.nu * (small.c - small.s) / 4
    fill = half * (game.lowest + small.nu) * small.fill
    norm = float(np.sqrt(inside @ inside + last**2 + fill**2))
    return norm / stationarity_unit(game, gamma, small.nu) if norm else 0.0


def stationarity_unit(game: ReducedGame, gamma: float, nu: float) -> float:
    """``|L| (|y| + |z|) + |lambda|``: the size of the terms that have to cancel at an optimum."""
    top = float(game.sigma.max()) if game.size else 0.0
    norm = (np.sqrt(gamma) * top + np.sqrt(game.zz)) / 2
    return float(norm * (np.sqrt(game.yy) + np.sqrt(game.zz)) + gamma * abs(nu) / 4) or 1.0


def build_certificate(
    game: ReducedGame,
    *,
    objective: float,
    bound: float,
    kkt_residual: float,
    bound_rounding: float,
    objective_rounding: float,
    label_size: float,
    kind: Literal["proved", "estimated"] = "proved",
) -> Certificate:
    """Combine an objective measured on the data with a bound from its reduction."""
    # A bound above what was measured convicts the reduction: its error is at least the excess.
    excess = max(0.0, bound - objective)
    lower = max(0.0, bound - max(bound_rounding, 4 * excess))
    gap = max(0.0, objective + objective_rounding - lower)
    # With nothing left to explain there is no unit: rounding of the labels is as good as zero.
    unexplained = 0.0 if gap <= 64 * EPS * label_size else np.inf
    relative = gap / game.yy if game.yy > 0.0 else unexplained
    return Certificate(min(lower, objective), gap, relative, kkt_residual, kind)
