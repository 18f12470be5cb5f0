"""The sphere problem for many strengths of provider at once, on one reduced game.

The same secular equation as in :mod:`spgls.sphere.secular`, with one row per strength in every
array. Only its regular case is done here: a pole away from the lowest singular value, an optimum
right of it, labels and goals that the data sees. A strength that turns out to be anything else, or
whose iteration does not end, is left to :func:`~spgls.sphere.secular.solve_sphere`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from spgls._types import EPS, Array, Vector
from spgls.reduced import ReducedGame
from spgls.sphere.pole import ScaledGame, power_of_two, scale_game
from spgls.sphere.poles import Poles, find_poles
from spgls.sphere.secular import Outcome, SmallSolution, solve_sphere

__all__ = ["SmallSolutions", "solve_sphere_many", "targets"]

#: Steps after which a strength is left to the scalar code, which bisects for longer.
_MAX_STEPS = 60
#: As in the scalar code.
_TINY = 1e-250
#: Entries of one array of strengths and coordinates: several of them stay in cache.
_ENTRIES = 2**16


@dataclass(eq=False)
class SmallSolutions:
    """Optima of one reduced game for several strengths; a :class:`SmallSolution` in each row."""

    x: Array
    fill: Vector
    s: Vector
    c: Vector
    nu: Vector
    pole: Vector
    value: Vector
    outcome: list[Outcome]
    steps: np.ndarray

    @classmethod
    def empty(cls, count: int, size: int) -> SmallSolutions:
        """Rows to be filled."""
        s, c, nu, pole, value = np.full((5, count), np.nan)
        return cls(
            x=np.zeros((count, size)),
            fill=np.zeros(count),
            s=s,
            c=c,
            nu=nu,
            pole=pole,
            value=value,
            outcome=["unique"] * count,
            steps=np.zeros(count, dtype=np.intp),
        )

    @classmethod
    def of(cls, rows: list[SmallSolution]) -> SmallSolutions:
        """Some solutions, a row each."""
        found = cls.empty(len(rows), len(rows[0].x))
        for i, row in enumerate(rows):
            found.put(i, row)
        return found

    def __len__(self) -> int:
        return len(self.s)

    def __getitem__(self, row: int) -> SmallSolution:
        return SmallSolution(
            x=self.x[row],
            fill=float(self.fill[row]),
            s=float(self.s[row]),
            c=float(self.c[row]),
            nu=float(self.nu[row]),
            pole=float(self.pole[row]),
            value=float(self.value[row]),
            outcome=self.outcome[row],
            steps=int(self.steps[row]),
        )

    def put(self, row: int, small: SmallSolution) -> None:
        """Replace one row."""
        self.x[row], self.fill[row] = small.x, small.fill
        self.s[row], self.c[row] = small.s, small.c
        self.nu[row], self.pole[row], self.value[row] = small.nu, small.pole, small.value
        self.outcome[row], self.steps[row] = small.outcome, small.steps

    @property
    def unique(self) -> np.ndarray:
        """Where the optimum is the only one."""
        return np.array([outcome == "unique" for outcome in self.outcome], dtype=bool)


def solve_sphere_many(
    game: ReducedGame, gammas: Vector, *, tol: float = 1e-9, ulps: float = 2.0
) -> SmallSolutions:
    """Solve the game for providers of every strength in ``gammas``.

    Parameters
    ----------
    game, tol, ulps
        As for :func:`~spgls.sphere.secular.solve_sphere`.
    gammas : ndarray of shape (G,)
        Strengths, positive and finite, in any order.

    Returns
    -------
    SmallSolutions
        Row by row what :func:`~spgls.sphere.secular.solve_sphere` would return, to rounding.
    """
    found = SmallSolutions.empty(len(gammas), game.size)
    size = game.yy + game.zz
    if size > 0.0 and game.size:
        sigma_max, length = power_of_two(float(game.sigma.max())), power_of_two(sqrt(size))
        unit = scale_game(game, 1.0, sigma_max, length, ulps * EPS)
        if unit.p_y.any() and unit.p_e.any():
            # Rows further apart take different numbers of steps: neighbours share a chunk.
            order = np.argsort(gammas)
            rows = max(_ENTRIES // game.size, 1)
            with np.errstate(all="ignore"):
                for at in range(0, len(order), rows):
                    some = order[at : at + rows]
                    _solve_chunk(unit, gammas[some] * (sigma_max / length) ** 2, found, some)
            back = length / sigma_max
            found.x *= back
            found.nu *= sigma_max**2
            found.pole *= sigma_max**2
            found.value *= length**2
    for row in np.flatnonzero(~np.isfinite(found.value)).tolist():
        found.put(row, solve_sphere(game, float(gammas[row]), tol=tol, ulps=ulps))
    return found


def _solve_chunk(unit: ScaledGame, gamma: Vector, found: SmallSolutions, rows: np.ndarray) -> None:
    """Fill in the rows that are regular."""
    poles = find_poles(unit, gamma)
    regular = np.flatnonzero(poles.regular & ~_hard(unit, gamma, poles))
    if not len(regular):
        return
    gamma, poles, rows = gamma[regular], poles.taken(regular), rows[regular]
    mu, s, c, steps, done = _newton(unit, gamma, poles)
    w = 1.0 / (poles.e + mu[:, None])
    s, c = _sharpened(unit, gamma, w, s, c)
    game = unit.game
    x = targets(unit.p_y, -unit.p_e, unit.p_z, s, c)
    x *= w
    # Onto the sphere exactly.
    x *= np.sqrt(gamma * s * c / _squares(x))[:, None]
    residual = game.sigma * x - targets(game.eta, game.eta - game.zeta, game.zeta, s, c)
    rest = game.r_yy - 2 * c * game.r_yz + c * c * game.r_zz
    value = np.maximum(0.0, _squares(residual) + rest)
    fine = done & (s > 0.0) & (c > 0.0) & np.isfinite(value) & np.isfinite(x).all(axis=1)
    rows = rows[fine]
    found.x[rows], found.s[rows], found.c[rows] = x[fine], s[fine], c[fine]
    found.nu[rows], found.pole[rows] = (poles.nu + mu)[fine], poles.nu[fine]
    found.value[rows], found.steps[rows] = value[fine], steps[fine]


def _squares(x: Array) -> Vector:
    return np.asarray(np.einsum("ij,ij->i", x, x))


def targets(label: Vector, gap: Vector, goal: Vector, s: Vector, c: Vector) -> Array:
    """``label - c goal`` for each ``c``; ``gap`` is ``label - goal``, for where ``s`` is small."""
    near = c <= 0.5
    weights = np.stack([near, ~near, np.where(near, -c, s)], axis=1)
    return np.asarray(weights @ np.stack([label, gap, goal]))


def _hard(unit: ScaledGame, gamma: Vector, poles: Poles) -> np.ndarray:
    """Where the sphere may be reached at the pole itself; the scalar code decides."""
    noise = unit.noise * poles.noise
    flat = (poles.h <= noise) & (np.abs(poles.n_y) <= noise)
    if not poles.fixed:
        return flat
    # At nu = 0 nothing but the radius depends on the strength.
    game, inverse = unit.game, 1.0 / poles.e[0]
    x_y, x_e = unit.p_y * inverse, unit.p_e * inverse
    if flat[0]:
        yy, ye = float(x_y @ x_y), float(x_y @ x_e)
        across = x_e - (ye / yy) * x_y
        disc = gamma * (gamma / 4 + ye) - yy * float(across @ across)
        return np.asarray(disc >= -8 * EPS * (gamma * (gamma + abs(ye))))
    if game.r_zz == 0.0:
        return flat
    c = game.r_yz / game.r_zz
    x = x_y - c * (x_y + x_e)
    reached = gamma * c * (1.0 - c) >= (1 - 8 * EPS) * float(x @ x)
    return np.asarray(flat | (reached if 0.0 <= c < 1.0 else False))


def _newton(
    unit: ScaledGame, gamma: Vector, poles: Poles
) -> tuple[Vector, Vector, Vector, np.ndarray, np.ndarray]:
    """Root of ``F`` right of each pole: ``mu``, the point there, steps, and whether it was found.

    The scalar iteration, on all rows that have not ended.
    """
    count = len(gamma)
    products = np.stack([unit.p_z**2, unit.p_y * unit.p_z, unit.p_e * unit.p_z], axis=1)
    game = unit.game
    e, inverse = poles.e, 1.0 / poles.e
    steep = gamma + (inverse * inverse) @ unit.p_z**2
    mu = np.where(poles.h == 0.0, np.abs(poles.n_y) / np.sqrt(gamma * steep), 0.0)
    half_gap = unit.p_z / 2 - unit.p_y
    gradient = np.sqrt(gamma * float(half_gap @ half_gap) + (game.zz / 2 - game.yz) ** 2)
    lo, hi = np.zeros(count), np.maximum(4 * gradient / gamma, 2 * mu)
    mu = np.maximum(np.where(mu > 0.0, mu, EPS * hi), _TINY)
    s, c = np.empty(count), np.empty(count)
    steps = np.zeros(count, dtype=np.intp)
    done = np.zeros(count, dtype=bool)
    active = np.arange(count)
    for _ in range(_MAX_STEPS):
        at, g = mu[active], gamma[active]
        w = 1.0 / (e + at[:, None])
        sums = (w * inverse) @ products
        h = poles.h[active] + at * (g + sums[:, 0])
        c_at = (poles.n_y[active] + at * (g + 2 * sums[:, 1])) / (2 * h)
        s_at = (poles.n_e[active] + at * (g + 2 * sums[:, 2])) / (2 * h)
        x = targets(unit.p_y, -unit.p_e, unit.p_z, s_at, c_at)
        x *= w
        norm2 = _squares(x)
        w *= x
        tilt = g * (c_at - s_at) / 2 - w @ unit.p_z
        slope = -2 * (np.einsum("ij,ij->i", x, w) + tilt**2 / h)
        f = norm2 - g * s_at * c_at
        s[active], c[active] = s_at, c_at
        steps[active] += 1
        outside = f > 0.0
        lo[active] = np.where(outside, np.maximum(lo[active], at), lo[active])
        hi[active] = np.where(outside, hi[active], np.minimum(hi[active], at))
        n2 = 1.0 + 4 * np.maximum(f, 0.0) / g
        new = at - (f / slope) * np.where(outside, 2 * n2 / (1.0 + np.sqrt(n2)), 1.0)
        ended = np.abs(f) <= EPS * (norm2 + g * np.abs(s_at * c_at))
        ended |= np.abs(new - at) <= 2 * EPS * at
        low, high = lo[active], hi[active]
        bisected = np.where(low > 0.0, np.sqrt(low * high), high / 1024.0)
        new = np.where((low < new) & (new < high), new, bisected)
        ended |= (np.abs(new - at) <= 2 * EPS * at) | (new < _TINY)
        done[active[ended]] = True
        mu[active] = np.where(ended, at, new)
        if ended.any():
            on = ~ended
            active = active[on]
            if not len(active):
                break
            e, inverse = e[on], inverse[on]
    return mu, s, c, steps, done


def _sharpened(
    unit: ScaledGame, gamma: Vector, w: Array, s: Vector, c: Vector
) -> tuple[Vector, Vector]:
    """``s`` and ``c`` from the sphere quadratic, where its roots separate: it has more digits."""
    p_y, p_z, p_e = unit.p_y, unit.p_z, unit.p_e
    products = np.stack([p_y**2, p_y * p_e, p_e**2, p_z**2, p_y * p_z, p_e * p_z], axis=1)
    yy, ye, ee, zz, yz, ez = ((w * w) @ products).T
    lead, half_c, half_s = zz + gamma, yz + gamma / 2, ez + gamma / 2
    across = (p_e - (ye / yy)[:, None] * p_y) * w
    disc = gamma * (gamma / 4 + ye) - yy * _squares(across)
    root = np.sqrt(disc)
    s1, c1 = (half_s + root) / lead, yy / (half_c + root)
    s2, c2 = ee / (half_s + root), (half_c + root) / lead
    apart = (disc >= 0.0) & (half_c >= 0.0) & (half_s >= 0.0)
    apart &= s1 - s2 > 1e-3 * np.minimum(s1, c2)
    by_c, by_s = np.abs(c - c1) <= np.abs(c - c2), np.abs(s - s1) <= np.abs(s - s2)
    first = np.where(c <= 0.5, by_c, by_s)
    better_s, better_c = np.where(first, s1, s2), np.where(first, c1, c2)
    return np.where(apart, better_s, s), np.where(apart, better_c, c)
