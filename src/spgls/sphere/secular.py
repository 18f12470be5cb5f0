"""The sphere problem for one strength of provider, solved to rounding in singular coordinates.

Unknowns are ``c = alpha/(1+alpha)``, ``s = 1-c`` and ``x = s v``. The game is

    minimise |sigma x + c zeta - eta|^2 + r_yy - 2 c r_yz + c^2 r_zz   over  |x|^2 = gamma s c,

which is the paper's spherically constrained least squares in coordinates that lose no digits when
``alpha`` is huge or tiny. With a multiplier ``nu`` (four times the paper's over gamma) the optimum
is ``x = sigma (eta - c zeta)/(d + nu)``, ``c = N_y/2h``, ``s = N_e/2h`` and ``nu`` is the root of
the decreasing function ``F = |x|^2 - gamma s c`` to the right of the pole where ``d + nu`` or ``h``
vanishes. Everything is evaluated as a function of ``mu``, the distance from that pole.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Literal

import numpy as np

from spgls._types import EPS, Vector
from spgls.reduced import ReducedGame
from spgls.sphere.fixed_norm import solve_fixed_norm
from spgls.sphere.pole import Pole, ScaledGame, find_pole, power_of_two, scale_game

__all__ = ["SmallSolution", "solve_sphere"]

_MAX_STEPS = 200
#: Multipliers closer to the pole than this, in units of the largest singular value, are at it.
_TINY = 1e-250

Outcome = Literal["unique", "several", "unattained"]


@dataclass(frozen=True, eq=False)
class SmallSolution:
    """Optimum of one game in singular coordinates.

    Attributes
    ----------
    x : ndarray
        ``s`` times the coordinates of the coefficients.
    fill : float
        ``s`` times the norm of the coefficients in the null space of the data, or in the space of
        its lowest singular value if there is none; any direction in it is as good.
    s, c : float
        ``1/(1+alpha)`` and ``alpha/(1+alpha)``, each to full relative accuracy.
    nu : float
        Multiplier of ``|x|^2 = gamma s c``.
    pole : float
        Left end of the multipliers that prove optimality.
    value : float
        Learner's sum of squares.
    outcome : {"unique", "several", "unattained"}
        Whether the optimum is unique, one of several (the smallest ``alpha`` is returned), or only
        approached as the coefficients grow.
    steps : int
        Newton steps spent.
    """

    x: Vector
    fill: float
    s: float
    c: float
    nu: float
    pole: float
    value: float
    outcome: Outcome
    steps: int

    @property
    def alpha(self) -> float:
        """Squared priced norm of the coefficients over gamma."""
        return self.c / self.s


def solve_sphere(
    game: ReducedGame, gamma: float, *, tol: float = 1e-9, ulps: float = 2.0
) -> SmallSolution:
    """Solve the game for providers of strength ``gamma``.

    Parameters
    ----------
    game : ReducedGame
        The reduced data.
    gamma : float
        Strength, positive and finite.
    tol : float
        Where the infimum is not attained, how far above it the returned point may lie, in units
        of ``|y|^2``.
    ulps : float
        Relative accuracy of the game in ulps: where two optima differ by no more, the one with the
        smaller ``alpha`` is returned.

    Returns
    -------
    SmallSolution
    """
    size = game.yy + game.zz
    if size == 0.0 or game.size + game.nullity == 0:
        # Nothing to predict, or nothing that anyone could change: stay at zero.
        return SmallSolution(np.zeros(game.size), 0.0, 1.0, 0.0, 0.0, 0.0, game.yy, "unique", 0)
    # Powers of two: close labels and goals must stay exactly as close as they are.
    sigma_max = power_of_two(float(game.sigma.max())) if game.size else 1.0
    length = power_of_two(sqrt(size))
    scaled = scale_game(game, gamma, sigma_max, length, ulps * EPS)
    point = _solve_scaled(scaled, tol)
    back = length / sigma_max
    return SmallSolution(
        x=point.x * back,
        fill=point.fill * back,
        s=point.s,
        c=point.c,
        nu=point.nu * sigma_max**2,
        pole=point.pole * sigma_max**2,
        value=point.value * length**2,
        outcome=point.outcome,
        steps=point.steps,
    )


def _solve_scaled(problem: ScaledGame, tol: float) -> SmallSolution:
    game, gamma = problem.game, problem.gamma
    if not problem.p_y.any() and not problem.p_z.any():
        return _untouched(problem, tol)
    pole = find_pole(problem)
    # Labels, or the gap to the goals, orthogonal to the data: c = 0, or c = 1, is stationary.
    if not problem.p_y.any() and -2 * game.r_yz >= gamma * pole.nu:
        nu = -2 * game.r_yz / gamma
        return _finish(problem, np.zeros(game.size), 0.0, 1.0, 0.0, nu, pole.nu, 0)
    reads_goal = not problem.p_e.any()
    end = -2 * (game.r_zz - game.r_yz) / gamma
    if reads_goal and end > pole.nu:
        return _approach(problem, end, tol)
    hard = _hard_case(problem, pole)
    if hard is not None:
        return hard
    if reads_goal and end == pole.nu:
        return _approach(problem, end, tol)
    return _newton(problem, pole)


def _value(game: ReducedGame, x: Vector, fill: float, s: float, c: float) -> float:
    residual = game.sigma * x + _blend(game.zeta - game.eta, game.zeta, -game.eta, s, c)
    rest = game.r_yy - 2 * c * game.r_yz + c * c * game.r_zz + game.lowest * fill**2
    return max(0.0, float(residual @ residual) + rest)


def _blend(gap: Vector, goal: Vector, minus_label: Vector, s: float, c: float) -> Vector:
    """``c goal - label``, written as ``(goal - label) - s goal`` where ``s`` is the small one."""
    return minus_label + c * goal if c <= 0.5 else gap - s * goal


def _finish(
    problem: ScaledGame,
    x: Vector,
    fill: float,
    s: float,
    c: float,
    nu: float,
    pole: float,
    steps: int,
    outcome: Outcome = "unique",
) -> SmallSolution:
    """Put the point on the sphere exactly and evaluate it."""
    norm2 = float(x @ x)
    if fill == 0.0 and norm2 > 0.0:
        x = x * sqrt(problem.gamma * s * c / norm2)
    value = _value(problem.game, x, fill, s, c)
    return SmallSolution(x, fill, s, c, nu, pole, value, outcome, steps)


def _untouched(problem: ScaledGame, tol: float) -> SmallSolution:
    """Labels and goals orthogonal to the data: a scalar quadratic in ``c``."""
    game, gamma = problem.game, problem.gamma
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
    return _finish(problem, np.zeros(game.size), norm, s, c, nu, -low, 0, outcome)


def _sphere_quadratic(
    problem: ScaledGame, inverse: Vector
) -> tuple[tuple[float, float], tuple[float, float]] | None:
    """Both ``(s, c)`` with ``|x(c)|^2 = gamma s c`` at a fixed multiplier, smaller ``c`` first.

    Each of ``s`` and ``c`` is the ratio of positive numbers, so neither loses digits.
    """
    gamma = problem.gamma
    x_y, x_z, x_e = problem.p_y * inverse, problem.p_z * inverse, problem.p_e * inverse
    yy, ye, ee = float(x_y @ x_y), float(x_y @ x_e), float(x_e @ x_e)
    lead = float(x_z @ x_z) + gamma
    half_c = float(x_y @ x_z) + gamma / 2
    half_s = float(x_e @ x_z) + gamma / 2
    # half_c^2 - lead yy, in which terms far larger than gamma cancel, is gamma (gamma/4 + ye) less
    # the Gram determinant of x_y and x_e; that one is a product of lengths.
    across = x_e - (ye / yy) * x_y if yy > 0.0 else x_e
    disc = gamma * (gamma / 4 + ye) - yy * float(across @ across)
    if disc < 0.0 or half_c < 0.0 or half_s < 0.0:
        return None
    root = sqrt(disc)
    small_c = yy / (half_c + root) if yy > 0.0 else 0.0
    small_s = ee / (half_s + root) if ee > 0.0 else 0.0
    return ((half_s + root) / lead, small_c), (small_s, (half_c + root) / lead)


def _hard_case(problem: ScaledGame, pole: Pole) -> SmallSolution | None:
    """Return the optimum at the pole itself, if the sphere can be reached there."""
    gamma = problem.gamma
    inverse = np.divide(1.0, pole.e, out=np.zeros_like(pole.e), where=~pole.low)
    if pole.h <= problem.noise * pole.noise and abs(pole.n_y) <= problem.noise * pole.noise:
        pairs = _sphere_quadratic(problem, inverse)
        if pairs is None:
            return None
        (s, c), (s_other, _) = pairs
        if s == 0.0:
            return None
        x = -_blend(problem.p_e, problem.p_z, -problem.p_y, s, c) * inverse
        outcome: Outcome = "several" if s - s_other > problem.noise * s else "unique"
        return _finish(problem, x, 0.0, s, c, pole.nu, pole.nu, 0, outcome)
    if pole.h == 0.0:
        return None
    c, s = pole.n_y / (2 * pole.h), pole.n_e / (2 * pole.h)
    if not (c >= 0.0 and s > 0.0):
        return None
    p_low = problem.p_y[pole.low]
    if float(np.linalg.norm(p_low)) > problem.noise * float(np.linalg.norm(problem.p_y)):
        return None
    x = -_blend(problem.p_e, problem.p_z, -problem.p_y, s, c) * inverse
    short = gamma * s * c - float(x @ x)
    if short < 0.0:
        return None
    fill = sqrt(short)
    outcome = "several" if fill > 0.0 else "unique"
    return _finish(problem, x, fill, s, c, pole.nu, pole.nu, 0, outcome)


def _newton(problem: ScaledGame, pole: Pole) -> SmallSolution:
    """Find the root of ``F`` right of the pole, by Newton on ``1/|r|``, safeguarded."""
    game, gamma = problem.game, problem.gamma
    p_y, p_z, p_e = problem.p_y, problem.p_z, problem.p_e
    e_safe = np.where(pole.low, 1.0, pole.e)
    zz, yz, ez = p_z**2 / e_safe, p_y * p_z / e_safe, p_e * p_z / e_safe
    lo, mu = 0.0, 0.0
    if pole.low.any():
        mu = lo = 2 * float(np.linalg.norm(p_y[pole.low])) / sqrt(gamma)
    if pole.h == 0.0 and mu == 0.0:
        steep = gamma + float((zz / e_safe).sum())
        mu = abs(pole.n_y) / sqrt(gamma * steep)
    drift = game.zz / 2 - game.yz
    gradient = sqrt(gamma * float((p_z / 2 - p_y) @ (p_z / 2 - p_y)) + drift**2)
    hi = max(4 * gradient / gamma, 2 * mu)
    mu = max(mu or EPS * hi, _TINY)
    best = _evaluate(problem, pole, zz, yz, ez, mu)
    steps = 0
    while steps < _MAX_STEPS:
        steps += 1
        f, slope, scale = best.f, best.slope, best.scale
        if abs(f) <= EPS * scale:
            break
        if f > 0.0:
            lo = max(lo, mu)
            n2 = 1.0 + 4 * f / gamma
            new = mu - (f / slope) * 2 * n2 / (1.0 + sqrt(n2))
        else:
            hi = min(hi, mu)
            new = mu - f / slope
        if abs(new - mu) <= 2 * EPS * mu:
            # Before it meets a bracket that rounding may have closed on the wrong side.
            break
        if not lo < new < hi:
            new = sqrt(lo * hi) if lo > 0.0 else hi / 1024.0
        if abs(new - mu) <= 2 * EPS * mu or new < _TINY:
            break
        mu = new
        best = _evaluate(problem, pole, zz, yz, ez, mu)
    inverse = 1.0 / (pole.e + mu)
    s, c = best.s, best.c
    pairs = _sphere_quadratic(problem, inverse)
    if pairs is not None:
        (s1, c1), (s2, c2) = pairs
        # Where the roots separate, the quadratic has more digits than the ratio N_y/2h.
        if s1 - s2 > 1e-3 * min(s1, c2):
            nearer_first = abs(c - c1) <= abs(c - c2) if c <= 0.5 else abs(s - s1) <= abs(s - s2)
            s, c = (s1, c1) if nearer_first else (s2, c2)
    x = -_blend(p_e, p_z, -p_y, s, c) * inverse
    return _finish(problem, x, 0.0, s, c, pole.nu + mu, pole.nu, steps)


@dataclass(frozen=True)
class _Residual:
    """``F`` and its slope at one multiplier, and the point they belong to."""

    f: float
    slope: float
    scale: float
    s: float
    c: float


def _evaluate(
    problem: ScaledGame, pole: Pole, zz: Vector, yz: Vector, ez: Vector, mu: float
) -> _Residual:
    gamma = problem.gamma
    w = 1.0 / (pole.e + mu)
    h = pole.h + mu * (gamma + float(zz @ w))
    c = (pole.n_y + mu * (gamma + 2 * float(yz @ w))) / (2 * h)
    s = (pole.n_e + mu * (gamma + 2 * float(ez @ w))) / (2 * h)
    x = -_blend(problem.p_e, problem.p_z, -problem.p_y, s, c) * w
    norm2 = float(x @ x)
    xw = x * w
    tilt = gamma * (c - s) / 2 - float(problem.p_z @ xw)
    slope = -2 * (float(x @ xw) + tilt**2 / h)
    return _Residual(norm2 - gamma * s * c, slope, norm2 + gamma * abs(s * c), s, c)


def _approach(problem: ScaledGame, nu: float, tol: float) -> SmallSolution:
    """Return a point near the unattained infimum at ``c = 1``, of about the least norm."""
    game, gamma = problem.game, problem.gamma
    gap = game.zeta - game.eta
    infimum = float(gap @ gap) + game.r_yy - 2 * game.r_yz + game.r_zz
    allowed = infimum + max(tol * game.yy / 2, 8 * EPS)

    def at(log_alpha: float) -> SmallSolution:
        alpha = float(np.exp(log_alpha))
        s, c = 1.0 / (1.0 + alpha), alpha / (1.0 + alpha)
        target = -_blend(problem.p_e, problem.p_z, -problem.p_y, s, c)
        point = solve_fixed_norm(game.d, target, gamma * s * c, game.nullity)
        value = _value(game, point.v, point.fill, s, c)
        return SmallSolution(point.v, point.fill, s, c, nu, nu, value, "unattained", 0)

    low, high = -80.0, 80.0
    if at(low).value <= allowed:
        return at(low)
    while high - low > 1e-3:
        middle = (low + high) / 2
        low, high = (low, middle) if at(middle).value <= allowed else (middle, high)
    return at(high)
