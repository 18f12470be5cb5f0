"""The point of the sphere that a multiplier alone leads to, in singular coordinates.

The minimiser of the Lagrangian at a multiplier lies off the sphere by as much as the multiplier is
off its optimum. Brought onto the sphere along the direction in which the Lagrangian rises least, it
has an objective whose error is the square of that; rescaling alone would multiply it by a condition
number. At a pole, where that direction is not defined, the lowest singular vector or ``c`` itself
is free.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt
from typing import NamedTuple

import numpy as np

from spgls.base.types import EPS, Vector
from spgls.sphere import Outcome, SmallSolution
from spgls.sphere.pole import Pole, ScaledGame

__all__ = ["recover"]


class _Candidate(NamedTuple):
    """A point of the sphere."""

    value: float
    x: Vector
    fill: float
    s: float
    c: float


def recover(problem: ScaledGame, pole: Pole, shift: float, allowed: float) -> SmallSolution:
    """Best point of the sphere that a multiplier alone leads to, in time linear in the size."""
    nu = pole.nu + shift
    points = list(_candidates(problem, pole, shift))
    least = min(point.value for point in points)
    # Of points equally good the one that providers can exploit least.
    tie = problem.noise * problem.game.yy
    equals = [point for point in points if point.value <= least + tie]
    found = min(equals, key=lambda point: point.c)
    apart = found.fill > 0.0 or any(point.c > 1.001 * found.c for point in equals)
    outcome: Outcome = "several" if apart and shift <= sqrt(EPS) * (1.0 + abs(nu)) else "unique"
    if not problem.p_e.any():
        away = _far_out(problem, allowed)
        # As good as a point that is far out already, or better than any that is not.
        if away.value <= found.value + (allowed if found.c > 0.5 else -allowed):
            found, outcome = away, "unattained"
    return SmallSolution(
        found.x, found.fill, found.s, found.c, nu, pole.nu, found.value, outcome, 0
    )


def _candidates(problem: ScaledGame, pole: Pole, shift: float) -> Iterator[_Candidate]:
    """Points near the minimiser of the Lagrangian, brought onto the sphere in several ways."""
    game, gamma = problem.game, problem.gamma
    zero = np.zeros(game.size)
    yield _Candidate(game.yy, zero, 0.0, 1.0, 0.0)
    e = pole.e + shift
    w = np.divide(1.0, e, out=np.zeros_like(e), where=e > 0.0)
    # Where h vanishes c is free; the sphere decides it.
    x_y, x_z, x_e = problem.p_y * w, problem.p_z * w, problem.p_e * w
    lead = float(x_z @ x_z) + gamma
    for c in _roots(lead, -2 * float(x_y @ x_z) - gamma, float(x_y @ x_y)):
        if 0.0 <= c <= 0.5:
            yield _point(problem, x_y - c * x_z, 0.0, 1.0 - c, c)
    for s in _roots(lead, -2 * float(x_e @ x_z) - gamma, float(x_e @ x_e)):
        if 0.0 < s < 0.5:
            yield _point(problem, s * x_z - x_e, 0.0, s, 1.0 - s)
    inner = np.divide(w, pole.e, out=np.zeros_like(e), where=pole.e > 0.0)
    h = pole.h + shift * (gamma + float(problem.p_z**2 @ inner))
    if not h > 0.0:
        return
    c = (pole.n_y + shift * (gamma + 2 * float(problem.p_y * problem.p_z @ inner))) / (2 * h)
    s = (pole.n_e + shift * (gamma + 2 * float(problem.p_e * problem.p_z @ inner))) / (2 * h)
    x = _rest(problem, s, c) * w
    norm2, wanted = float(x @ x), gamma * s * c
    if s > 0.0 and c >= 0.0:
        if norm2 > 0.0:
            yield _point(problem, x, 0.0, s, c)
        if norm2 < wanted:
            yield _point(problem, x, sqrt(wanted - norm2), s, c)
    # Along this direction the Lagrangian rises least for what the constraint changes.
    dc = (float(x_z @ x) - gamma * (c - s) / 2) / h
    dx = -(x + dc * problem.p_z) * w
    for tau in _roots(
        float(dx @ dx) + gamma * dc * dc,
        2 * float(x @ dx) + gamma * dc * (c - s),
        norm2 - wanted,
    ):
        if s - tau * dc > 0.0 and c + tau * dc >= 0.0:
            yield _point(problem, x + tau * dx, 0.0, s - tau * dc, c + tau * dc)


def _rest(problem: ScaledGame, s: float, c: float) -> Vector:
    """``p_y - c p_z``, written as ``s p_z - (p_z - p_y)`` where ``s`` is the small one."""
    return problem.p_y - c * problem.p_z if c <= 0.5 else s * problem.p_z - problem.p_e


def _point(problem: ScaledGame, x: Vector, fill: float, s: float, c: float) -> _Candidate:
    """A candidate, exactly on the sphere, with its objective."""
    game = problem.game
    norm2 = float(x @ x)
    if fill == 0.0 and norm2 > 0.0:
        x = x * sqrt(problem.gamma * s * c / norm2)
    rest = game.eta - c * game.zeta if c <= 0.5 else s * game.zeta - (game.zeta - game.eta)
    error = game.sigma * x - rest
    outside = game.r_yy - 2 * c * game.r_yz + c * c * game.r_zz + game.lowest * fill**2
    return _Candidate(max(0.0, float(error @ error) + outside), x, fill, s, c)


def _roots(a: float, b: float, c: float) -> tuple[float, ...]:
    """Real roots of a quadratic, the one nearer to zero first."""
    disc = b * b - 4 * a * c
    if not (disc >= 0.0 and a > 0.0):
        return ()
    q = -(b + (sqrt(disc) if b >= 0.0 else -sqrt(disc))) / 2
    return (c / q, q / a) if q else (0.0,)


def _far_out(problem: ScaledGame, allowed: float) -> _Candidate:
    """A point whose goals all but reveal the labels, within reach of that limit."""
    game, gamma = problem.game, problem.gamma
    room = gamma * game.lowest + 2 * abs(game.r_zz - game.r_yz) + game.zz
    s = max(min(allowed / (2 * room), 0.25), 1e-30) if room > 0.0 else 0.25
    return _point(problem, np.zeros(game.size), sqrt(gamma * s * (1 - s)), s, 1 - s)
