"""The game in convenient units, and the left end of the multipliers that prove optimality."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import frexp, ldexp, sqrt

import numpy as np

from spgls._types import EPS, Array, Vector
from spgls.reduced import ReducedGame
from spgls.sphere.each import Each, any_of, choose

__all__ = ["Pole", "ScaledGame", "find_pole", "power_of_two", "scale_game", "scale_to_unit"]

_MAX_STEPS = 200


@dataclass(frozen=True, eq=False)
class ScaledGame:
    """A game in units in which ``max(d)`` and ``|y|^2 + |z|^2`` lie between 1/4 and 1."""

    game: ReducedGame
    gamma: Each
    p_y: Vector
    p_z: Vector
    p_e: Vector
    noise: float  # what counts as zero, relative to the terms summed
    sigma_max: float
    length: float

    @cached_property
    def points(self) -> Array:
        """Times ``(c, s)``: ``p_y - c p_z = s p_y - c p_e``, without cancellation."""
        return np.array([-self.p_e, self.p_y])

    @cached_property
    def products(self) -> Array:
        """Columns ``p_z^2, p_y p_z, p_e p_z, p_y^2, p_y p_e, p_e^2``."""
        p = np.array([self.p_z, self.p_y, self.p_e])
        return np.asarray((p[[0, 1, 2, 1, 1, 2]] * p[[0, 0, 0, 1, 2, 2]]).T)

    def at(self, gamma: Each) -> ScaledGame:
        """The game for other strengths, in its units."""
        other = replace(self, gamma=gamma)
        for name in ("points", "products"):
            other.__dict__[name] = getattr(self, name)
        return other


@dataclass(frozen=True, eq=False)
class Pole:
    """Left end ``nu0`` of the feasible multipliers and the problem's terms there."""

    nu: Each
    e: Each  # d + nu0, without cancellation
    inverse: Each  # 1/e, and zero where e is
    h: Each
    n_y: Each
    n_e: Each
    noise: Each  # magnitude of the terms n_y and n_e were summed from
    p_low: Each  # norm of p_y where e vanishes


def power_of_two(x: float) -> float:
    """The power of two just above a number: dividing by it is exact."""
    return ldexp(1.0, frexp(x)[1])


def scale_to_unit(game: ReducedGame, gamma: Each, noise: float) -> ScaledGame:
    """The game in units in which its singular values, labels and goals are of order one.

    Powers of two: close labels and goals must stay exactly as close as they are.
    """
    sigma_max = power_of_two(float(game.sigma.max())) if game.size else 1.0
    return scale_game(game, gamma, sigma_max, power_of_two(sqrt(game.yy + game.zz)), noise)


def scale_game(
    game: ReducedGame, gamma: Each, sigma_max: float, length: float, noise: float
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
        gamma=np.float64(1.0) * gamma * (sigma_max / length) ** 2,
        p_y=unit.sigma * unit.eta,
        p_z=unit.sigma * unit.zeta,
        # Formed from the difference: close labels and goals subtract without error.
        p_e=unit.sigma * (unit.zeta - unit.eta),
        noise=noise,
        sigma_max=sigma_max,
        length=length,
    )


def find_pole(problem: ScaledGame) -> Pole:
    """Largest ``nu`` at which the Hessian of the Lagrangian is singular."""
    game, gamma = problem.game, problem.gamma
    d, zeta = game.d, game.zeta
    zero = 0.0 * gamma
    if game.nullity or game.r_zz == 0.0:
        e = np.broadcast_to(d, (*gamma.shape, game.size))
        h, n_y = zero + game.r_zz, zero + 2 * game.r_yz
        return Pole(zero, e, 1.0 / e, h, n_y, 2 * h - n_y, 2 * h, zero)
    squares, d_min = zeta**2, float(d.min())
    nu = -game.r_zz / (gamma + float((squares / d).sum()))
    left = nu <= -d_min / 2
    origin, offset, h, at_low, p_low = d, 0.0, zero, left & False, zero
    if any_of(left):
        lowest = d == d_min
        inverse = np.divide(1.0, d - d_min, out=np.zeros_like(d), where=~lowest)
        low2 = float((problem.p_z[lowest] ** 2).sum())
        if low2 <= (EPS * game.zz) ** 2 * d_min:
            h = game.r_zz - d_min * (gamma + float(squares @ inverse))
            at_low = left & (h > 0.0)
            h = choose(at_low, h, zero)
            p_low = at_low * float(np.linalg.norm(problem.p_y[lowest]))
        offset = -d_min * left
        origin = d + offset[..., None]
        nu = choose(left, np.float64(max(low2 / game.zz, d_min * EPS**2)), nu)
    with np.errstate(divide="ignore", invalid="ignore"):
        distance, e, inverse = _roots_of_h(problem, nu, origin, offset, at_low)
    nu = distance + offset
    terms = game.eta * zeta
    n_y = 2 * game.r_yz + nu * (gamma + 2 * (inverse @ terms))
    noise = 2 * abs(game.r_yz) + abs(nu) * (gamma + 2 * (inverse @ np.abs(terms)))
    if any_of(at_low):
        sums = gamma + inverse @ (np.abs(terms) + squares)
        noise = choose(at_low, 2 * (game.r_zz + d_min * sums), noise)
    return Pole(nu, e, inverse, h, n_y, 2 * h - n_y, noise, p_low)


def _roots_of_h(
    problem: ScaledGame, distance: Each, origin: Each, offset: Each, at_low: Each
) -> tuple[Each, Each, Each]:
    """Distance of each root of ``h`` from its origin, ``d`` plus the root, and one over that.

    ``h`` is concave and increasing, so Newton from the left of its root never overshoots. The
    origin is taken where the root is nearest, at 0 or at ``-min(d)``; poles of ``d + nu`` there
    have no root to be found.
    """
    game, gamma = problem.game, problem.gamma
    squares, p_zz = game.zeta**2, problem.p_z**2
    distance = choose(at_low, 0.0 * gamma, distance)
    for _ in range(_MAX_STEPS):
        e = origin + distance[..., None]
        inverse = 1.0 / e
        h = game.r_zz + (distance + offset) * (gamma + inverse @ squares)
        step = -h / (gamma + (inverse * inverse) @ p_zz)
        going = (step > 2 * EPS * abs(distance)) & ~at_low
        if not any_of(going):
            break
        # From far left Newton only doubles the distance.
        distance = choose(going, distance + step, distance)
    if any_of(at_low):
        inverse[e == 0.0] = 0.0
    return distance, e, inverse
