"""Many strengths on one Krylov space: their optima over its span, a column for each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spgls._types import Array, Vector
from spgls.small import ULPS
from spgls.solvers.interpolate import smaller_root
from spgls.solvers.projected import NULL, Projection
from spgls.sphere import solve_sphere_many
from spgls.sphere.operator import SphereProblem

__all__ = ["PathPoints", "interpolants", "path_points"]


@dataclass(frozen=True, eq=False)
class PathPoints:
    """Points on a span, a column or an entry for each strength.

    Attributes
    ----------
    gamma : ndarray of shape (G,)
        Strengths.
    h : ndarray of shape (k, G)
        Coordinates of ``w~`` in the basis.
    last : ndarray of shape (G,)
        ``alpha~``.
    multiplier, objective, residual, gap, norm : ndarray of shape (G,)
        As of an :class:`~spgls.solvers.iterate.Iterate`.
    several : ndarray of bool
        Known to be one of several optima.
    """

    gamma: Vector
    h: Array
    last: Vector
    multiplier: Vector
    objective: Vector
    residual: Vector
    gap: Vector
    norm: Vector
    several: np.ndarray

    def taken(self, rows: np.ndarray | slice) -> PathPoints:
        """Some of them."""
        return PathPoints(
            self.gamma[rows],
            np.ascontiguousarray(self.h[:, rows]),
            self.last[rows],
            self.multiplier[rows],
            self.objective[rows],
            self.residual[rows],
            self.gap[rows],
            self.norm[rows],
            self.several[rows],
        )


def path_points(
    projection: Projection, base: SphereProblem, gammas: Vector, tol: float
) -> PathPoints:
    """Optima over the span; :meth:`Projection.sphere_iterate` for many strengths."""
    reduction = projection.reduction
    game, space = reduction.game, reduction.space
    small = solve_sphere_many(game, gammas, tol=tol, ulps=ULPS)
    x = small.x
    x[:, int(np.argmin(game.sigma))] += small.fill
    h = reduction.vectors @ (x * (2 / np.sqrt(gammas))[:, None]).T
    multiplier = gammas * small.nu / 4
    # Only an estimate of the lowest eigenvalue, and of use only where the multiplier needs one.
    lowest = np.where(multiplier <= 0.0, np.maximum(-gammas * small.pole / 4, 0.0), 0.0)
    residual = gammas / 4 * space.residuals(h)
    several = np.array([outcome == "several" for outcome in small.outcome], dtype=bool)
    return PathPoints(
        gamma=gammas,
        h=h,
        last=small.c - small.s,
        multiplier=multiplier,
        objective=small.value,
        residual=residual,
        gap=_proved_gaps(residual, multiplier + lowest),
        norm=gammas / 4 * space.scale + base.zz / 4,
        several=several | (base.slope == 0.0),
    )


def _proved_gaps(residual: Vector, multiplier: Vector) -> Vector:
    """Least of ``|rho(l)|^2/l`` over all ``l > 0``, as for a single strength."""
    root = np.hypot(residual, multiplier)
    with np.errstate(divide="ignore", invalid="ignore"):
        right = 2 * residual**2 / (root + multiplier)
    return np.where(multiplier > 0.0, right, 2 * (root - multiplier))


def interpolants(
    projection: Projection, base: SphereProblem, gammas: Vector
) -> tuple[PathPoints, Vector]:
    """Labels met as well as the span allows, with the smallest pull, and each ``alpha``.

    :meth:`Projection.interpolant` for many strengths; ``alpha`` is not a number where the norm
    allows none.
    """
    reduction = projection.reduction
    game, space = reduction.game, reduction.space
    seen = game.d > NULL * float(game.d.max(initial=0.0))
    w = np.stack([game.eta, game.zeta]) * np.divide(seen, game.sigma)
    gram = w @ w.T
    roots = [smaller_root(gram, gamma) for gamma in gammas.tolist()]
    alpha = np.array([np.nan if root is None else root for root in roots])
    c = alpha / (1.0 + alpha)
    h = reduction.vectors @ ((w[0][:, None] - w[1][:, None] * c) * (2 / np.sqrt(gammas)))
    outside = np.hypot(gammas / 4 * space.residuals(h), (c * game.r_zz - game.r_yz) / 2)
    points = PathPoints(
        gamma=gammas,
        h=h,
        last=(alpha - 1.0) / (alpha + 1.0),
        multiplier=np.zeros(len(c)),
        objective=np.maximum(0.0, game.r_yy - 2 * c * game.r_yz + c**2 * game.r_zz),
        residual=outside,
        gap=2 * outside,
        norm=gammas / 4 * space.scale + base.zz / 4,
        several=np.ones(len(c), dtype=bool),
    )
    return points, alpha
