"""Proof of how far a predictor is from the global optimum.

For every multiplier ``nu`` that makes the Lagrangian convex, its unconstrained minimum ``D(nu)``
bounds the game from below. With ``c`` near the optimum

    D = r_yy - 2c r_yz + c^2 r_zz + nu sum (eta - c zeta)^2/(d + nu) - nu gamma s c - t^2/h,

``t = c r_zz - r_yz + nu sum zeta (c zeta - eta)/(d + nu) + nu gamma (c - s)/2``: positive terms and
one small square, so nothing cancels. Convexity needs ``nu > -min(d)`` and ``h(nu) > 0`` only, both
of which a spectral reduction knows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt
from typing import Literal

import numpy as np

from spgls.base.types import EPS
from spgls.reduction.reduced import ReducedGame
from spgls.sphere.each import Each, choose, column, dots
from spgls.sphere.point import SmallSolution, SmallSolutions, wanted

__all__ = [
    "Certificate",
    "build_certificate",
    "dual_bound",
    "dual_bounds",
    "stationarities",
    "stationarity",
    "stationarity_unit",
]

#: Steps to the right of the multiplier, over the largest eigenvalue: at a pole itself the bound is
#: not defined, and how close to it rounding lets us go depends on the game.
_NUDGES = np.concatenate([[0.0], EPS ** np.arange(4.0, 1.0, -0.5), EPS * 16.0 ** np.arange(5)])
#: A bound this close to its value, in ulps of the labels and goals, need not be improved.
_SHARP = 16.0
#: Entries of one array of strengths and coordinates.
_ENTRIES = 2**15


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


def dual_bound(game: ReducedGame, gamma: float, small: SmallSolution | SmallSolutions) -> float:
    """Lower bound on the value of the game at the multiplier of a solution, or just beside it."""
    at = np.float64(small.s), np.float64(small.c), np.float64(small.nu)
    bound = _bounds(game, gamma, *at)
    sharp = small.value - bound <= _SHARP * EPS * (game.yy + game.zz)
    return float(bound if sharp else _best_beside(game, gamma, *at))


def dual_bounds(game: ReducedGame, gammas: Each, small: SmallSolutions) -> Each:
    """:func:`dual_bound` for each of several strengths."""
    if not small.s.ndim:
        return dual_bound(game, gammas, small)
    bounds = np.empty(len(small))
    for rows in _chunks(len(small), game.size):
        bounds[rows] = _bounds(game, gammas[rows], small.s[rows], small.c[rows], small.nu[rows])
    dull = np.flatnonzero(~(small.value - bounds <= _SHARP * EPS * (game.yy + game.zz)))
    for part in _chunks(len(dull), game.size * len(_NUDGES)):
        few = dull[part]
        bounds[few] = _best_beside(game, gammas[few], small.s[few], small.c[few], small.nu[few])
    return bounds


def _chunks(count: int, size: int) -> Iterator[slice]:
    rows = max(_ENTRIES // max(size, 1), 1)
    return (slice(at, at + rows) for at in range(0, count, rows))


def _best_beside(game: ReducedGame, gamma: Each, s: Each, c: Each, nu: Each) -> Each:
    """Best of the bounds at multipliers just right of ``nu``."""
    top = game.top**2 or 1.0
    beside = nu + np.multiply.outer(_NUDGES, top + abs(nu))
    return _bounds(game, gamma, s, c, beside).max(axis=0)


def _bounds(game: ReducedGame, gamma: Each, s: Each, c: Each, nu: Each) -> Each:
    """``D(nu)``, or minus infinity where the Lagrangian is not convex."""
    if game.size + game.nullity == 0:
        return np.full(nu.shape, game.yy)
    if game.nullity:
        nu = np.maximum(nu, 0.0)
    rest = wanted(game, s, c)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        shrink = column(nu) / (game.d + column(nu))
        h = game.r_zz + shrink.dot(game.zeta**2) + gamma * nu
        shrink = shrink * rest
        t = c * game.r_zz - game.r_yz - shrink.dot(game.zeta) + gamma * nu * (c - s) / 2
        outside = game.r_yy - 2 * c * game.r_yz + c * c * game.r_zz
        bound = outside + dots(shrink, rest) - nu * gamma * s * c - t**2 / h
    convex = (nu >= -game.lowest) & (h > 0.0) & np.isfinite(bound)
    return choose(convex, bound, -np.inf)


def stationarity(game: ReducedGame, gamma: float, small: SmallSolution | SmallSolutions) -> float:
    """Residual of ``(H + lambda I) r = -g``, in the paper's variables and relative to its terms."""
    at = np.float64(small.s), np.float64(small.c), np.float64(small.nu)
    return float(_residuals(game, gamma, small.x, small.fill, *at))


def stationarities(game: ReducedGame, gammas: Each, small: SmallSolutions) -> Each:
    """:func:`stationarity` for each of several strengths."""
    if not small.s.ndim:
        return stationarity(game, gammas, small)
    residuals = np.empty(len(small))
    for rows in _chunks(len(small), game.size):
        each = small.x[rows], small.fill[rows], small.s[rows], small.c[rows], small.nu[rows]
        residuals[rows] = _residuals(game, gammas[rows], *each)
    return residuals


def _residuals(
    game: ReducedGame, gamma: Each, x: Each, fill: Each, s: Each, c: Each, nu: Each
) -> Each:
    if game.size + game.nullity == 0:
        return 0.0 * nu
    error = game.sigma * x
    error -= wanted(game, s, c)
    goal = error.dot(game.zeta) + c * game.r_zz - game.r_yz
    last = goal / 2 + gamma * nu * (c - s) / 4
    error *= game.sigma
    error += column(nu) * x
    inside = dots(error, error) + ((game.lowest + nu) * fill) ** 2
    return np.sqrt(gamma / 4 * inside + last**2) / stationarity_unit(game, gamma, nu)


def stationarity_unit(game: ReducedGame, gamma: Each, nu: Each) -> Each:
    """``|L| (|y| + |z|) + |lambda|``: the size of the terms that have to cancel at an optimum."""
    top = game.top
    norm = (np.sqrt(gamma) * top + sqrt(game.zz)) / 2
    unit = norm * (sqrt(game.yy) + sqrt(game.zz)) + gamma * abs(nu) / 4
    return unit + (unit == 0.0)


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
