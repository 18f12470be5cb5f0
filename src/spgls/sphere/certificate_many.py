"""The terms of a proof, as in :mod:`spgls.sphere.certificate`, for many strengths at once."""

from __future__ import annotations

import numpy as np

from spgls._types import EPS, Vector
from spgls.reduced import ReducedGame
from spgls.sphere.certificate import dual_bound
from spgls.sphere.secular_many import SmallSolutions, targets

__all__ = ["dual_bounds", "stationarities"]

#: A bound this close to its value, in ulps of the labels and goals, need not be improved.
_SHARP = 16.0
#: Entries of one array of strengths and coordinates.
_ENTRIES = 2**16


def dual_bounds(game: ReducedGame, gammas: Vector, small: SmallSolutions) -> Vector:
    """Lower bounds on the values of the game, at the multiplier of each solution.

    The scalar bound, which also looks beside the multiplier, steps in where that is too close to a
    pole to be of use.
    """
    bounds = np.empty(len(small))
    for rows in _chunks(len(small), game.size):
        bounds[rows] = _at_multipliers(game, gammas[rows], small, rows)
    allowed = _SHARP * EPS * (game.yy + game.zz)
    for row in np.flatnonzero(~(small.value - bounds <= allowed)).tolist():
        bounds[row] = dual_bound(game, float(gammas[row]), small[row])
    return bounds


def _at_multipliers(game: ReducedGame, gamma: Vector, small: SmallSolutions, rows: slice) -> Vector:
    s, c, nu = small.s[rows], small.c[rows], small.nu[rows]
    if game.nullity:
        nu = np.maximum(nu, 0.0)
    rest = targets(game.eta, game.eta - game.zeta, game.zeta, s, c)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        shrink = nu[:, None] / (game.d + nu[:, None])
        h = game.r_zz + shrink @ game.zeta**2 + gamma * nu
        shrink *= rest
        t = c * game.r_zz - game.r_yz - shrink @ game.zeta + gamma * nu * (c - s) / 2
        outside = game.r_yy - 2 * c * game.r_yz + c * c * game.r_zz
        bound = outside + np.einsum("ij,ij->i", shrink, rest) - nu * gamma * s * c - t**2 / h
    convex = (nu >= -game.lowest) & (h > 0.0) & np.isfinite(bound)
    return np.where(convex, bound, -np.inf)


def stationarities(game: ReducedGame, gammas: Vector, small: SmallSolutions) -> Vector:
    """Residuals of ``(H + lambda I) r = -g``, each relative to its terms."""
    if game.size + game.nullity == 0:
        return np.zeros(len(small))
    squares, goal = np.empty(len(small)), np.empty(len(small))
    for rows in _chunks(len(small), game.size):
        x = small.x[rows]
        residual = game.sigma * x - targets(
            game.eta, game.eta - game.zeta, game.zeta, small.s[rows], small.c[rows]
        )
        goal[rows] = residual @ game.zeta
        residual *= game.sigma
        residual += small.nu[rows, None] * x
        squares[rows] = np.einsum("ij,ij->i", residual, residual)
    goal += small.c * game.r_zz - game.r_yz
    last = goal / 2 + gammas * small.nu * (small.c - small.s) / 4
    fill = (game.lowest + small.nu) * small.fill
    norm = np.sqrt(gammas / 4 * (squares + fill**2) + last**2)
    top = float(game.sigma.max()) if game.size else 0.0
    unit = (np.sqrt(gammas) * top + np.sqrt(game.zz)) / 2 * (np.sqrt(game.yy) + np.sqrt(game.zz))
    unit += gammas * np.abs(small.nu) / 4
    return np.asarray(np.divide(norm, unit, out=norm.copy(), where=unit > 0.0))


def _chunks(count: int, size: int) -> list[slice]:
    rows = max(_ENTRIES // max(size, 1), 1)
    return [slice(at, min(at + rows, count)) for at in range(0, count, rows)]
