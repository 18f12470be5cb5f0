"""Left ends of the multipliers that prove optimality, for many strengths of provider at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spgls._types import EPS, Array, Vector
from spgls.sphere.pole import ScaledGame

__all__ = ["Poles", "find_poles"]

_MAX_STEPS = 60


@dataclass(frozen=True, eq=False)
class Poles:
    """A :class:`~spgls.sphere.pole.Pole` in each row; one at ``-min(d)`` is not regular."""

    nu: Vector
    e: Array  # d + nu0, without cancellation
    h: Vector
    n_y: Vector
    n_e: Vector
    noise: Vector
    regular: np.ndarray
    fixed: bool  # the same for all strengths

    def taken(self, rows: np.ndarray) -> Poles:
        """Some of the rows."""
        if len(rows) == len(self.nu):
            return self
        return Poles(
            nu=self.nu[rows],
            e=self.e[rows],
            h=self.h[rows],
            n_y=self.n_y[rows],
            n_e=self.n_e[rows],
            noise=self.noise[rows],
            regular=self.regular[rows],
            fixed=self.fixed,
        )


def find_poles(unit: ScaledGame, gamma: Vector) -> Poles:
    """Largest multipliers at which the Hessian of the Lagrangian is singular.

    Parameters
    ----------
    unit : ScaledGame
        The game; its own strength is not looked at.
    gamma : ndarray of shape (G,)
        Strengths in its units.
    """
    game = unit.game
    if game.nullity or game.r_zz == 0.0:
        ones = np.ones(len(gamma))
        return Poles(
            nu=0.0 * ones,
            e=np.tile(game.d, (len(gamma), 1)),
            h=game.r_zz * ones,
            n_y=2 * game.r_yz * ones,
            n_e=2 * (game.r_zz - game.r_yz) * ones,
            noise=2 * game.r_zz * ones,
            regular=ones > 0.0,
            fixed=True,
        )
    nu, e, found = _roots_of_h(unit, gamma)
    terms = game.eta * game.zeta
    inverse = 1.0 / e
    n_y = 2 * game.r_yz + nu * (gamma + 2 * (inverse @ terms))
    noise = 2 * abs(game.r_yz) + np.abs(nu) * (gamma + 2 * (inverse @ np.abs(terms)))
    return Poles(nu, e, np.zeros(len(gamma)), n_y, -n_y, noise, found, False)


def _roots_of_h(unit: ScaledGame, gamma: Vector) -> tuple[Vector, Array, np.ndarray]:
    """Roots of ``h`` in ``(-min(d), 0)``, ``d`` plus each, and whether there is one."""
    game = unit.game
    d, squares, p_zz = game.d, game.zeta**2, unit.p_z**2
    d_min = float(d.min())
    nu = -game.r_zz / (gamma + float((squares / d).sum()))
    e = np.empty((len(gamma), len(d)))
    found = np.zeros(len(gamma), dtype=bool)
    right = np.flatnonzero(nu > -d_min / 2)
    active = right
    for _ in range(_MAX_STEPS):
        if not len(active):
            break
        w = 1.0 / (d + nu[active, None])
        h = game.r_zz + nu[active] * (gamma[active] + w @ squares)
        step = -h / (gamma[active] + (w * w) @ p_zz)
        nu[active] += step
        ended = np.abs(step) <= 2 * EPS * np.abs(nu[active])
        found[active[ended]] = True
        active = active[~ended]
    found &= nu > -d_min / 2
    e[found] = d + nu[found, None]
    left = np.flatnonzero(~found)
    if len(left):
        _from_the_left(unit, gamma, left, nu, e, found)
    return nu, e, found


def _from_the_left(
    unit: ScaledGame, gamma: Vector, rows: np.ndarray, nu: Vector, e: Array, found: np.ndarray
) -> None:
    """Roots nearer to ``-min(d)`` than to zero, with the distance from it as the unknown."""
    game = unit.game
    d_min = float(game.d.min())
    gaps = game.d - d_min
    low = gaps == 0.0
    p_zz = unit.p_z**2
    p_low = float(p_zz[low].sum())
    rest, gaps_rest = p_zz[~low], gaps[~low]
    e[rows] = 1.0
    if p_low <= (EPS * game.zz) ** 2 * d_min:
        return
    g = np.full(len(gamma), max(p_low / game.zz, d_min * EPS**2))
    active = rows
    for _ in range(_MAX_STEPS):
        if not len(active):
            break
        at = g[active]
        w = 1.0 / (gaps_rest + at[:, None])
        h = game.zz - gamma[active] * d_min + gamma[active] * at - p_low / at - w @ rest
        step = -h / (gamma[active] + p_low / at**2 + (w * w) @ rest)
        ended = step <= 2 * EPS * at
        found[active[ended]] = True
        g[active] = np.where(ended, at, at + step)
        active = active[~ended]
    done = rows[found[rows]]
    nu[done] = g[done] - d_min
    e[done] = gaps + g[done, None]
