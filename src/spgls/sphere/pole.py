"""The game in convenient units, and the left end of the multipliers that prove optimality."""

from __future__ import annotations

from dataclasses import dataclass
from math import frexp, ldexp

import numpy as np

from spgls._types import EPS, Vector
from spgls.reduced import ReducedGame

__all__ = ["Pole", "ScaledGame", "find_pole", "power_of_two", "scale_game"]

_MAX_STEPS = 200


@dataclass(frozen=True, eq=False)
class ScaledGame:
    """A game in units in which ``max(d)`` and ``|y|^2 + |z|^2`` lie between 1/4 and 1."""

    game: ReducedGame
    gamma: float
    p_y: Vector
    p_z: Vector
    p_e: Vector
    noise: float  # what counts as zero, relative to the terms summed


@dataclass(frozen=True, eq=False)
class Pole:
    """Left end ``nu0`` of the feasible multipliers and the problem's terms there."""

    nu: float
    e: Vector  # d + nu0, without cancellation
    h: float
    n_y: float
    n_e: float
    noise: float  # magnitude of the terms n_y and n_e were summed from
    low: np.ndarray  # where d + nu0 vanishes


def power_of_two(x: float) -> float:
    """The power of two just above a number: dividing by it is exact."""
    return ldexp(1.0, frexp(x)[1])


def scale_game(
    game: ReducedGame, gamma: float, sigma_max: float, length: float, noise: float
) -> ScaledGame:
    """Divide singular values by ``sigma_max``, labels and goals by ``length``."""
    size = length**2
    unit = ReducedGame(
        sigma=game.sigma / sigma_max,
        eta=game.eta / length,
        zeta=game.zeta / length,
        r_yy=game.r_yy / size,
        r_yz=game.r_yz / size,
        r_zz=game.r_zz / size,
        nullity=game.nullity,
    )
    return ScaledGame(
        game=unit,
        gamma=gamma * (sigma_max / length) ** 2,
        p_y=unit.sigma * unit.eta,
        p_z=unit.sigma * unit.zeta,
        # Formed from the difference: close labels and goals subtract without error.
        p_e=unit.sigma * (unit.zeta - unit.eta),
        noise=noise,
    )


def find_pole(problem: ScaledGame) -> Pole:
    """Largest ``nu`` at which the Hessian of the Lagrangian is singular."""
    game, gamma = problem.game, problem.gamma
    d, zeta = game.d, game.zeta
    none = np.zeros(game.size, dtype=bool)
    if game.nullity or game.r_zz == 0.0:
        n_y = 2 * game.r_yz
        return Pole(0.0, d, game.r_zz, n_y, 2 * (game.r_zz - game.r_yz), 2 * game.r_zz, none)
    d_min = float(d.min())
    gaps = d - d_min
    low = gaps == 0.0
    nu, e = _root_of_h(problem, d_min, gaps)
    if e is not None:
        terms = game.eta * zeta / e
        n_y = 2 * game.r_yz + nu * (gamma + 2 * float(terms.sum()))
        noise = 2 * abs(game.r_yz) + abs(nu) * (gamma + 2 * float(np.abs(terms).sum()))
        return Pole(nu, e, 0.0, n_y, -n_y, noise, none)
    inverse = np.divide(1.0, gaps, out=np.zeros_like(gaps), where=~low)
    yz, zz = game.eta * zeta * inverse, zeta**2 * inverse
    h = game.r_zz - d_min * (gamma + float(zz.sum()))
    n_y = 2 * game.r_yz - d_min * (gamma + 2 * float(yz.sum()))
    noise = 2 * (game.r_zz + d_min * (gamma + float(np.abs(yz).sum() + zz.sum())))
    return Pole(-d_min, gaps, h, n_y, 2 * h - n_y, noise, low)


def _root_of_h(problem: ScaledGame, d_min: float, gaps: Vector) -> tuple[float, Vector | None]:
    """Root of ``h`` in ``(-d_min, 0)`` and ``d`` plus it, or ``(-d_min, None)``.

    ``h`` is concave and increasing, so Newton from the left of its root never overshoots. The
    origin is taken where the root is nearest, at 0 or at ``-d_min``.
    """
    game, gamma = problem.game, problem.gamma
    d, zeta = game.d, game.zeta
    p_zz = problem.p_z**2
    nu = -game.r_zz / (gamma + float((zeta**2 / d).sum()))
    if nu > -d_min / 2:
        for _ in range(_MAX_STEPS):
            w = 1.0 / (d + nu)
            h = game.r_zz + nu * (gamma + float(zeta**2 @ w))
            step = -h / (gamma + float(p_zz @ w**2))
            nu += step
            if abs(step) <= 2 * EPS * abs(nu):
                break
        if nu > -d_min / 2:
            return nu, d + nu
    low = gaps == 0.0
    p_low = float(p_zz[low].sum())
    rest, gaps_rest = p_zz[~low], gaps[~low]
    if p_low <= (EPS * game.zz) ** 2 * d_min:
        at_pole = game.r_zz - d_min * (gamma + float((zeta[~low] ** 2 / gaps_rest).sum()))
        if at_pole > 0.0:
            return -d_min, None
    # h = room - p_low/g - sum rest/(gaps + g) with g the distance from -d_min.
    room = game.zz - gamma * d_min
    g = max(p_low / game.zz, d_min * EPS**2)
    for _ in range(_MAX_STEPS):
        w = 1.0 / (gaps_rest + g)
        h = room + gamma * g - p_low / g - float(rest @ w)
        slope = gamma + p_low / g**2 + float(rest @ w**2)
        step = -h / slope
        if step <= 2 * EPS * g:
            break
        # From far left Newton only doubles g; the nearest pole alone gives a better lower bound.
        g += step
    return g - d_min, gaps + g
