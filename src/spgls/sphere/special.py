"""Games whose multiplier is known: optima at the pole, and labels or goals the data cannot see."""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np

from spgls.base.each import Each, any_of, choose, dots
from spgls.base.types import EPS, Vector
from spgls.sphere.fixed_norm import solve_fixed_norm
from spgls.sphere.point import Outcome, SmallSolution, loss, sphere_roots, wanted
from spgls.sphere.pole import Pole, ScaledGame, find_pole

__all__ = ["AtPole", "find_at_pole", "is_degenerate", "solve_degenerate"]


class AtPole(NamedTuple):
    """Optima at the poles themselves, where ``reached``: the hard case."""

    reached: Each
    s: Each
    c: Each
    fill: Each
    several: Each


def find_at_pole(problem: ScaledGame, pole: Pole) -> AtPole:
    """Optima at the poles, where the sphere can be reached there."""
    gamma, tiny = problem.gamma, problem.noise * pole.noise
    flat = (pole.h <= tiny) & (abs(pole.n_y) <= tiny)
    c, s = pole.n_y / (2 * pole.h), pole.n_e / (2 * pole.h)
    filled = ~flat & (c >= 0.0) & (s > 0.0)
    fill = several = 0.0 * gamma
    if any_of(filled):
        # What is left of the norm goes into the space where d + nu vanishes.
        x = problem.game.sigma * wanted(problem.game, s, c) * pole.inverse
        short = gamma * s * c - dots(x, x)
        small = problem.noise * sqrt(dots(problem.p_y, problem.p_y))
        filled &= (short >= 0.0) & (pole.p_low <= small)
        fill = np.sqrt(choose(filled, short, fill))
        several = fill > 0.0
    if any_of(flat):
        # Where h vanishes c is free, and the sphere decides it.
        roots = sphere_roots(problem, pole.inverse)
        flat &= roots.exist & (roots.s[0] > 0.0)
        apart = roots.s[0] - roots.s[1] > problem.noise * roots.s[0]
        s, c = choose(flat, roots.s[0], s), choose(flat, roots.c[0], c)
        several = choose(flat, apart, several)
    return AtPole(flat | filled, s, c, fill, several)


def is_degenerate(problem: ScaledGame) -> bool:
    """Whether labels, or the gap to the goals, are orthogonal to the data."""
    return not (np.count_nonzero(problem.p_y) and np.count_nonzero(problem.p_e))


def solve_degenerate(problem: ScaledGame, tol: float) -> SmallSolution | None:
    """Solve a degenerate game for one strength, unless its optimum is like that of any other."""
    game, gamma = problem.game, float(problem.gamma)
    if not problem.p_y.any() and not problem.p_z.any():
        return _untouched(problem, tol)
    pole = find_pole(problem)
    nu0 = float(pole.nu)
    # Labels, or the gap to the goals, orthogonal to the data: c = 0, or c = 1, is stationary.
    if not problem.p_y.any() and -2 * game.r_yz >= gamma * nu0:
        nu = -2 * game.r_yz / gamma
        return _point(problem, np.zeros(game.size), 0.0, 1.0, 0.0, nu=nu, pole=nu0)
    end = -2 * (game.r_zz - game.r_yz) / gamma
    if problem.p_e.any() or end < nu0:
        return None
    if end == nu0 and find_at_pole(problem, pole).reached:
        return None
    return _approach(problem, end, tol)


def _point(
    problem: ScaledGame,
    x: Vector,
    fill: float,
    s: float,
    c: float,
    *,
    nu: float,
    pole: float,
    outcome: Outcome = "unique",
) -> SmallSolution:
    game = problem.game
    residual = game.sigma * x - wanted(game, np.float64(s), np.float64(c))
    value = float(loss(game, residual, np.float64(fill), c))
    return SmallSolution(x, fill, s, c, nu, pole, value, outcome, 0)


def _untouched(problem: ScaledGame, tol: float) -> SmallSolution:
    """Labels and goals orthogonal to the data: a scalar quadratic in ``c``."""
    game, gamma = problem.game, float(problem.gamma)
    low = game.lowest
    price = gamma * low
    curvature = game.zz - price
    if curvature > 0.0:
        c = min(max((game.yz - price / 2) / curvature, 0.0), 1.0)
    else:
        c = 1.0 if game.zz < 2 * game.yz else 0.0
    if c == 1.0:
        return _approach(problem, max(-low, -2 * (game.zz - game.yz) / gamma), tol)
    s = 1.0 - c if c < 0.5 else (game.zz - game.yz - price / 2) / curvature
    nu = -low if c > 0.0 else max(-low, -2 * game.yz / gamma)
    norm = sqrt(gamma * s * c)
    outcome: Outcome = "several" if norm > 0.0 else "unique"
    return _point(problem, np.zeros(game.size), norm, s, c, nu=nu, pole=-low, outcome=outcome)


def _approach(problem: ScaledGame, nu: float, tol: float) -> SmallSolution:
    """Return a point near the unattained infimum at ``c = 1``, of about the least norm."""
    game, gamma = problem.game, float(problem.gamma)
    gap = game.zeta - game.eta
    infimum = float(gap @ gap) + game.r_yy - 2 * game.r_yz + game.r_zz
    allowed = infimum + max(tol * game.yy / 2, 8 * EPS)

    def at(log_alpha: float) -> SmallSolution:
        alpha = float(np.exp(log_alpha))
        s, c = 1.0 / (1.0 + alpha), alpha / (1.0 + alpha)
        target = game.sigma * wanted(game, np.float64(s), np.float64(c))
        point = solve_fixed_norm(game.d, target, gamma * s * c, game.nullity)
        return _point(problem, point.v, point.fill, s, c, nu=nu, pole=nu, outcome="unattained")

    low, high = -80.0, 80.0
    if at(low).value <= allowed:
        return at(low)
    while high - low > 1e-3:
        middle = (low + high) / 2
        low, high = (low, middle) if at(middle).value <= allowed else (middle, high)
    return at(high)
