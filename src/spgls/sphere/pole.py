"""The game in convenient units, and the left end of the multipliers that prove optimality."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import frexp, ldexp, sqrt
from typing import NamedTuple

import numpy as np

from spgls.base.each import Each, any_of, choose, column, dots
from spgls.base.types import EPS, Array, Vector
from spgls.reduction.reduced import ReducedGame

__all__ = [
    "Pole",
    "ScaledGame",
    "find_pole",
    "power_of_two",
    "scale_game",
    "scale_to_unit",
    "strength_in_units",
]

_MAX_STEPS = 200
#: A Newton step for h leaves an error below the square of its length, both over the distance.
_CLOSE = 1e-9
#: What rounding leaves of h at its root, over the terms that cancel there.
_ROUNDING = 8 * EPS


@dataclass(frozen=True, eq=False)
class ScaledGame:
    """A game in units in which ``max(d)`` and ``|y|^2 + |z|^2`` lie between 1/4 and 1."""

    game: ReducedGame
    gamma: Each
    p: Array  # p_z, p_y and p_e = p_z - p_y
    products: Array  # columns p_i p_j for i and j among them
    noise: float  # what counts as zero, relative to the terms summed
    sigma_max: float
    length: float

    @property
    def p_z(self) -> Vector:
        """Goals along the data, times the singular values."""
        row: Vector = self.p[0]
        return row

    @property
    def p_y(self) -> Vector:
        """Labels along the data, times the singular values."""
        row: Vector = self.p[1]
        return row

    @property
    def p_e(self) -> Vector:
        """Goals less labels along the data, times the singular values."""
        row: Vector = self.p[2]
        return row

    @property
    def reach(self) -> Each:
        """Upper bound of the multiplier's distance from its pole, ``4|g|/gamma``."""
        slope, drift = self.p_e - self.p_y, self.game.zz - 2 * self.game.yz
        return 2 * np.sqrt(self.gamma * dots(slope, slope) + drift**2) / self.gamma

    def at(self, gamma: Each) -> ScaledGame:
        """The game for other strengths, in its units."""
        return replace(self, gamma=gamma)


class Pole(NamedTuple):
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
    sigma_max = power_of_two(game.top) if game.size else 1.0
    return scale_game(game, gamma, sigma_max, power_of_two(sqrt(game.yy + game.zz)), noise)


@np.errstate(all="ignore")
def strength_in_units(gamma: Each, sigma_max: float, length: float) -> Each:
    """A strength where singular values and labels have been divided by numbers.

    One factor after the other: their square may be no number where the product is one.
    """
    ratio = sigma_max / length
    return np.multiply(np.multiply(gamma, ratio), ratio)


def scale_game(
    game: ReducedGame, gamma: Each, sigma_max: float, length: float, noise: float
) -> ScaledGame:
    """Divide singular values by ``sigma_max``, labels and goals by ``length``."""
    unit = ReducedGame(
        sigma=game.sigma / sigma_max,
        eta=game.eta / length,
        zeta=game.zeta / length,
        r_yy=game.r_yy / length / length,
        r_yz=game.r_yz / length / length,
        r_zz=game.r_zz / length / length,
        nullity=game.nullity,
    )
    # The last from the difference: close labels and goals subtract without error.
    p = unit.sigma * np.array([unit.zeta, unit.eta, unit.zeta - unit.eta])
    return ScaledGame(
        game=unit,
        gamma=strength_in_units(gamma, sigma_max, length),
        p=p,
        products=(p[:, None] * p).reshape(9, -1).T,
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
        e = d + column(zero)
        h, n_y = zero + game.r_zz, zero + 2 * game.r_yz
        return Pole(zero, e, 1.0 / e, h, n_y, 2 * h - n_y, 2 * h, zero)
    squares, p_zz, d_min = zeta**2, problem.p_z**2, game.lowest
    distance = -game.r_zz / (gamma + float(squares.dot(1.0 / d)))
    origin, offset, low2, h, p_low = d, 0.0, 0.0, zero, zero
    left = distance <= -d_min / 2
    at_low = left & False
    if any_of(left):
        # The origin is taken where the root is nearest, at 0 or at -min(d).
        offset = -d_min * left
        origin = d + column(offset)
        lowest = d == d_min
        low2 = float(dots(problem.p_z[lowest], problem.p_z[lowest]))
        distance = choose(left, np.float64(max(low2 / game.zz, d_min * EPS**2)), distance)
        if low2 <= (EPS * game.zz) ** 2 * d_min:
            inverse = np.divide(1.0, d - d_min, out=np.zeros_like(d), where=~lowest)
            h = game.r_zz - d_min * (gamma + float(squares @ inverse))
            at_low = left & (h > 0.0)
            h = choose(at_low, h, zero)
            p_low = at_low * float(np.linalg.norm(problem.p_y[lowest]))
    # h is concave and increasing, so Newton from the left of its root never overshoots.
    for _ in range(_MAX_STEPS):
        inverse = 1.0 / (origin + column(distance))
        excess = game.r_zz + (distance + offset) * (gamma + inverse.dot(squares))
        slope = gamma + (inverse * inverse).dot(p_zz)
        step = -excess / slope
        if low2 > 0.0:
            step = choose(left, _step_beside_pole(excess, slope, distance, low2, gamma), step)
        step = choose(at_low, zero, step)
        going = (abs(step) > _CLOSE * abs(distance)) & (abs(excess) > _ROUNDING * abs(game.r_zz))
        distance = distance + step
        if not any_of(going):
            break
    distance = choose(at_low, zero, distance)
    e, nu, terms = origin + column(distance), distance + offset, game.eta * zeta
    low = any_of(at_low)
    inverse = 1.0 / (np.where(e > 0.0, e, np.inf) if low else e)
    n_y = 2 * game.r_yz + nu * (gamma + 2 * inverse.dot(terms))
    noise = 2 * abs(game.r_yz) + abs(nu) * (gamma + 2 * inverse.dot(np.abs(terms)))
    if low:
        sums = gamma + inverse @ (np.abs(terms) + squares)
        noise = choose(at_low, 2 * (game.r_zz + d_min * sums), noise)
    return Pole(nu, e, inverse, h, n_y, 2 * h - n_y, noise, p_low)


def _step_beside_pole(h: Each, slope: Each, distance: Each, low2: float, gamma: Each) -> Each:
    """Newton's step for ``h``, with its nearest pole ``-low2/distance`` left as it is."""
    rest = gamma + abs(slope - gamma - low2 / distance**2)
    linear = h + slope * distance
    root = np.sqrt(abs(linear * linear - 4 * rest * h * distance))
    return choose(
        linear < 0.0, (root - linear) / (2 * rest), -2 * h * distance / (abs(linear) + root)
    )
