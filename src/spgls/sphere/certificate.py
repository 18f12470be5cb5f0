"""Proof of how far a predictor is from the global optimum.

For every multiplier ``nu`` that makes the Lagrangian convex, its unconstrained minimum ``D(nu)``
bounds the game from below. With ``c`` near the optimum

    D = r_yy - 2c r_yz + c^2 r_zz + nu sum (eta - c zeta)^2/(d + nu) - nu gamma s c - t^2/h,

``t = c r_zz - r_yz + nu sum zeta (c zeta - eta)/(d + nu) + nu gamma (c - s)/2``: positive terms and
one small square, so nothing cancels. Convexity in the coefficients needs ``nu > -min(d)`` only;
``c`` lies between zero and one for every predictor. What rounding may have done to the game
(:class:`~spgls.reduction.rounding.Rounding`) is a quadratic in ``c`` too, and is subtracted before
the minimum is taken, so the bound holds for every predictor and not only near the answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt
from typing import Literal

import numpy as np

from spgls.base.each import Each, choose, column, dots
from spgls.base.types import EPS
from spgls.reduction.reduced import ReducedGame
from spgls.reduction.rounding import Rounding
from spgls.sphere.point import SmallSolution, SmallSolutions, wanted

__all__ = [
    "EVERY",
    "SEEN",
    "Certificate",
    "build_certificate",
    "dual_bound",
    "dual_bounds",
    "in_units",
    "stationarities",
    "stationarity",
    "stationarity_unit",
]

#: Whom certificates speak of.
EVERY, SEEN = "all predictors", "predictors that use no null space"
#: Steps to the right of the multiplier, over the largest eigenvalue: at a pole itself the bound is
#: not defined, and how close to it rounding lets us go depends on the game.
_NUDGES = np.concatenate([[0.0], EPS ** np.arange(4.0, 1.0, -0.5), EPS * 16.0 ** np.arange(5)])
#: Rounding in evaluating a bound, relative to the terms that are summed.
_EVALUATED = 16 * EPS
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
        Whether the gap is certain. Estimated are those that rest on an eigenvalue which is very
        likely, and those of a decomposition that miss the tolerance asked for.
    among : str
        Of which predictors this is said.
    """

    lower_bound: float
    gap: float
    relative_gap: float
    kkt_residual: float
    kind: Literal["proved", "estimated"]
    among: str = EVERY

    def __repr__(self) -> str:
        among = "" if self.among == EVERY else f" among {self.among}"
        return (
            f"Certificate({self.kind}{among}: gap {self.gap:.3g}, relative "
            f"{self.relative_gap:.3g}; lower bound {self.lower_bound:.10g}, KKT residual "
            f"{self.kkt_residual:.3g})"
        )


def dual_bound(
    game: ReducedGame, gamma: float, small: SmallSolution | SmallSolutions, upper: float = np.inf
) -> float:
    """Lower bound on the value of the game at the multiplier of a solution, or just beside it.

    Parameters
    ----------
    game : ReducedGame
        The reduced data; what rounding may have done to it is subtracted.
    gamma : float
        The strength.
    small : SmallSolution
        Where to look.
    upper : float
        A loss that some predictor has, by default that of the solution; the bound is no higher.
    """
    upper = float(small.value) if upper == np.inf else upper
    at = np.float64(small.s), np.float64(small.c), np.float64(small.nu)
    bound = _bounds(game, game.rounding, gamma, *at, upper)
    sharp = small.value - bound <= _enough(game, upper - small.value)
    return float(bound if sharp else _best_beside(game, gamma, *at, upper))


def dual_bounds(game: ReducedGame, gammas: Each, small: SmallSolutions, upper: Each) -> Each:
    """:func:`dual_bound` for each of several strengths."""
    if not small.s.ndim:
        return dual_bound(game, gammas, small, upper)
    bounds = np.empty(len(small))
    for rows in _chunks(len(small), game.size):
        at = small.s[rows], small.c[rows], small.nu[rows]
        bounds[rows] = _bounds(game, game.rounding, gammas[rows], *at, upper[rows])
    dull = np.flatnonzero(~(small.value - bounds <= _enough(game, upper - small.value)))
    for part in _chunks(len(dull), game.size * len(_NUDGES)):
        few = dull[part]
        at = small.s[few], small.c[few], small.nu[few]
        bounds[few] = _best_beside(game, gammas[few], *at, upper[few])
    return bounds


def _enough(game: ReducedGame, wanted: Each) -> Each:
    """A gap that need not be smaller: rounding, or a share of what is wanted."""
    return _SHARP * EPS * (game.yy + game.zz) + wanted / 8


def _chunks(count: int, size: int) -> Iterator[slice]:
    rows = max(_ENTRIES // max(size, 1), 1)
    return (slice(at, at + rows) for at in range(0, count, rows))


def _best_beside(game: ReducedGame, gamma: Each, s: Each, c: Each, nu: Each, upper: Each) -> Each:
    """Best of the bounds at multipliers just right of ``nu``."""
    beside = nu + np.multiply.outer(_NUDGES, (game.top**2 or 1.0) + abs(nu))
    ways = {game.rounding, game.rounding.for_every_norm}
    bounds = [_bounds(game, way, gamma, s, c, beside, upper).max(axis=0) for way in ways]
    return bounds[0] if len(bounds) == 1 else np.maximum(*bounds)


def _bounds(
    game: ReducedGame, rounding: Rounding, gamma: Each, s: Each, c: Each, nu: Each, upper: Each
) -> Each:
    """``min_c D(nu, c)`` less what rounding may hide; minus infinity where there is no bound.

    ``D(nu, c + w) = D + 2 t w + h w^2``; a predictor has ``c + w`` between zero and one.
    """
    if game.size + game.nullity == 0:
        charge = rounding.charge(0.0 * nu, 0.0 * nu, 0.0 * nu + 1.0, upper)
        return game.yy * (1.0 - _EVALUATED) - charge + 0.0 * nu
    if game.nullity:
        nu = np.maximum(nu, 0.0)
    rest = wanted(game, s, c)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        share = column(nu) / (game.d + column(nu))
        price, zeta2 = gamma * nu, game.zeta**2
        along = share.dot(zeta2)
        h = game.r_zz + along + price
        seen = share * rest
        t = c * game.r_zz - game.r_yz - seen.dot(game.zeta) + price * (c - s) / 2
        goals = c * (c * game.r_zz - 2 * game.r_yz)
        inside = dots(seen, rest)
        value = game.r_yy + goals + inside - price * s * c
        # Shares are positive or, for a negative multiplier, all negative.
        size = abs(inside) + abs(price) * s * c + game.yy + c * c * game.zz
        size_t = c * game.zz + sqrt(game.yy * game.zz) + abs(inside * along) ** 0.5 + abs(price)
        charge = rounding.around(s, c, gamma, nu, upper)
        bend = h - charge.bend - _EVALUATED * (abs(h) + game.zz + abs(price))
        slack = _EVALUATED * size_t
        value = value - charge.at - _EVALUATED * size
        left = _least(t - charge.slope + slack, bend, c)
        right = _least(charge.slope - t + slack, bend, s)
        bound = value + choose(left < right, left, right)
        # A share of the bound may be lost, which was taken of no more than this, wherever c is.
        most = upper - charge.at + 0.0 * nu
        if rounding.kind == "kernel":
            most = most - s * (2 * charge.slope + s * charge.bend)
        bound = choose(bound >= most, most, bound)
        return choose((nu >= -game.lowest) & (bound > -np.inf), bound, -np.inf + 0.0 * nu)


def _least(fall: Each, bend: Each, length: Each) -> Each:
    """Minimum of ``bend w^2 - 2 fall w`` over ``0 <= w <= length``."""
    end = length * (bend * length - 2 * fall)
    inside = (fall > 0.0) & (fall < bend * length)
    least = choose(inside, -fall * fall / bend, choose(end < 0.0, end, 0.0 * end))
    return least


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
    upper: float = np.inf,
    kkt_residual: float,
    bound_rounding: float,
    objective_rounding: float,
    label_size: float,
    unit: float | None = None,
    tol: float = np.inf,
    kind: Literal["proved", "estimated"] = "proved",
    among: str = EVERY,
) -> Certificate:
    """Combine an objective measured on the data with a bound from its reduction.

    The bound is on predictors of a loss of at most ``upper``; all others lose more than that. What
    does not reach the tolerance is not called a proof, although its bound holds. Gaps are in units
    of what is left of the labels to explain, or of ``unit``, if that is known better.
    """
    bound = min(bound, upper)
    # A bound above what was measured convicts the reduction: its error is at least the excess.
    excess = max(0.0, bound - objective)
    lower = max(0.0, bound - max(bound_rounding, 4 * excess))
    # What is not a number is no gap of zero.
    above = objective + objective_rounding - lower
    gap = np.inf if np.isnan(above) else max(0.0, above)
    relative = in_units(gap, game.yy if unit is None else unit, label_size)
    if gap > 0.0 and game.rounding.slack == np.inf:
        # Which columns are free is not certain, nor what these leave of the labels.
        relative = np.inf
    if not relative <= tol:
        kind = "estimated"
    return Certificate(min(lower, objective), gap, relative, kkt_residual, kind, among)


def in_units(gap: float, unit: float, label_size: float) -> float:
    """A gap in units of what is left of the labels to explain.

    With nothing left there is no unit, and rounding of the labels is as good as zero.
    """
    if unit > 0.0:
        return gap / unit
    return 0.0 if gap <= 64 * EPS * label_size else np.inf
