"""Many games on the same reduced data at once: each a strength, an honest share and a ridge.

Games on the same data differ in a few averages over their groups only; what they need of the data
are six functions of the multiplier, the same for all of them. A table of those replaces the grid
that a search for one game evaluates, and the minima that the table shows are refined together. A
game that shows anything out of the ordinary is solved on its own.
"""

from __future__ import annotations

from copy import copy
from typing import Any, NamedTuple

import numpy as np

from spgls._types import EPS, Array, Vector
from spgls.population.moments import GroupMoments, Moments
from spgls.population.multiplier import blocks
from spgls.population.search import FLOOR
from spgls.population.section import EXACT, Section, Sections
from spgls.population.solve import PopulationSolution, solve_population
from spgls.population.table import Table
from spgls.reduced import ReducedGame
from spgls.sphere.certificate_many import dual_bounds
from spgls.sphere.secular_many import solve_sphere_many

__all__ = ["Optima", "solve_pairs"]

#: Distance of grid points in log t, and how many one game may have.
_STEP, _POINTS = 0.5, 240
_MAX_STEPS = 40
#: Relative steps of log t below this end the refinement; their squares are the error.
_CLOSE = 1e-6
#: How far in log t a minimum may lie outside its cell: the table is not exact.
_SLACK = 2e-2
#: Multipliers and curvatures above this, in units of the game, leave no doubt of a unique optimum.
_CLEAR = 1e-6
#: Relative accuracy of ``t`` that a minimum has to allow.
_DIGITS = 1e-11
#: Values closer than this, in units of |y|^2, are told apart by the search for one game.
_TIE = 1e-12


class Optima(NamedTuple):
    """Optima of several games in singular coordinates, one row each.

    As in :class:`PopulationSolution`: ``x`` of shape (C, k), ``fill`` and ``t``. ``room`` is the
    distance of the multiplier from its pole; ``unique`` says where the optimum is attained and the
    only one.
    """

    x: Array
    fill: Vector
    t: Vector
    room: Vector
    unique: np.ndarray


def solve_pairs(
    game: ReducedGame,
    gammas: Vector,
    honest: Vector,
    ridges: Vector,
    *,
    tol: float = 1e-9,
    ulps: float = 2.0,
    thorough: bool = True,
) -> Optima:
    """Minimise the learner's loss against each of several populations of two groups.

    Parameters
    ----------
    game : ReducedGame
        The reduced data.
    gammas, honest, ridges : ndarray of shape (C,)
        Strength of the strategic providers, share of the honest ones and ridge of each game.
    tol : float
        As in :func:`solve_population`; only games without an attained optimum use it.
    ulps : float
        Relative accuracy of the game's coordinates in ulps.
    thorough : bool
        Whether games out of the ordinary are searched on their own; if not, those that need a
        search are left at zero, and not unique.

    Returns
    -------
    Optima

    Examples
    --------
    >>> import numpy as np
    >>> from spgls.population.many import solve_pairs
    >>> from spgls.reduced import ReducedGame
    >>> one = np.array([1.0])
    >>> game = ReducedGame(one, -3 * one, one, 0.0, 0.0, 4.0)
    >>> found = solve_pairs(game, np.array([0.01, 1e6]), np.full(2, 0.5), np.zeros(2))
    >>> print(*found.t.round(6))
    9.8e-05 9.000108
    """
    count = len(gammas)
    found = Optima(
        x=np.zeros((count, game.size)),
        fill=np.zeros(count),
        t=np.zeros(count),
        room=np.zeros(count),
        unique=np.zeros(count, dtype=bool),
    )
    waiting = np.ones(count, dtype=bool)
    moves = np.isfinite(gammas) & (honest < 1.0)
    single = moves & (honest == 0.0) & (ridges == 0.0)
    some = np.flatnonzero(single)
    if len(some):
        waiting[_solve_single(game, gammas[some], some, found, tol, ulps)] = False
    some = np.flatnonzero(moves & ~single)
    if len(some) and game.size and game.yy > 0.0 and float(np.abs(game.eta).max()) > 0.0:
        with np.errstate(all="ignore"):
            games = _Games(game, gammas[some], honest[some], ridges[some], ulps)
            waiting[_solve_together(games, some, found)] = False
    if not thorough:
        waiting &= ~moves
    for i in np.flatnonzero(waiting):
        alone = _solve_alone(game, gammas[i], honest[i], ridges[i], tol, ulps)
        found.x[i], found.fill[i], found.t[i] = alone.x, alone.fill, alone.t
        found.room[i], found.unique[i] = alone.nu + game.lowest, alone.outcome == "unique"
    return found


def _solve_alone(
    game: ReducedGame, gamma: float, honest: float, ridge: float, tol: float, ulps: float
) -> PopulationSolution:
    groups = [(np.inf, honest), (gamma, 1.0 - honest)]
    strengths, shares = zip(*(group for group in groups if group[1] > 0.0), strict=True)
    return solve_population(game, strengths, shares, ridge=ridge, tol=tol, ulps=ulps)


def _solve_single(
    game: ReducedGame, gammas: Vector, names: np.ndarray, found: Optima, tol: float, ulps: float
) -> np.ndarray:
    """Games against one strength: sphere problems, where their own dual bounds confirm them."""
    small = solve_sphere_many(game, gammas, tol=tol, ulps=ulps)
    rounding = 16 * EPS * (game.yy + small.c**2 * game.zz)
    missing = small.value - (dual_bounds(game, gammas, small) - rounding)
    sure = np.flatnonzero(missing <= max(tol, FLOOR) * game.yy + 2 * rounding)
    rows = np.asarray(names[sure])
    s = small.s[sure]
    found.x[rows], found.fill[rows] = small.x[sure] / s[:, None], small.fill[sure] / s
    found.t[rows] = gammas[sure] * small.c[sure] / s
    found.room[rows] = (small.nu - small.pole)[sure]
    found.unique[rows] = small.unique[sure]
    return rows


class _Pairs(GroupMoments):
    """An honest and a strategic group for each ``t``, others for every one of them."""

    def __init__(self, gamma: Vector, honest: Vector) -> None:
        self._gamma, self._honest = gamma, honest

    def at(self, t: Vector) -> Moments:
        """Averages, one entry for each game."""
        gamma, stay = self._gamma, self._honest
        go = 1.0 - stay
        s, c = 1.0 / (1.0 + t / gamma), t / (t + gamma)
        sc = go * s * c
        ssc = sc * s
        sssc = ssc * s
        p, a = stay + go * s, stay + go * s * s
        q = p / a
        square = stay * go * c * c
        fall = square * s * (2.0 * q / a)
        moved, still = gamma * sc, stay * t
        return Moments(
            t=t,
            a=a,
            p=p,
            u=sc,
            e=p * q,
            spread=square / a,
            bend=ssc,
            a2=4.0 * ssc - 6.0 * sssc,
            kappa=0.5 * fall / q,
            e1=fall,
            e2=fall * (2.0 + 4.0 * ssc / a - sc / p - 3.0 * c),
            tau=moved + still,
            tau1=2.0 * gamma * ssc - moved + still,
            tau2=moved - 6.0 * gamma * (ssc - sssc) + still,
        )


class _Games(Sections):
    """Games on the same data, able to evaluate the loss of each at a ``t`` of its own."""

    def __init__(
        self, game: ReducedGame, gammas: Vector, honest: Vector, ridges: Vector, ulps: float
    ) -> None:
        super().__init__(game, gammas[:1], np.ones(1), 0.0, ulps)
        self.gamma: Vector = gammas / self.units.t
        self.honest: Vector = honest
        self.ridges: Vector = ridges / self.units.sigma**2

    def of(self, which: np.ndarray) -> Sections:
        """Some of the games, in any order and as often as wanted."""
        some: Any = copy(self)
        some.groups = _Pairs(self.gamma[which], self.honest[which])
        some.ridge = self.ridges[which]
        return some  # type: ignore[no-any-return]

    def each(self, which: np.ndarray, t: Vector, guess: Vector) -> Section:
        """The loss of games ``which`` at ``t``, exactly."""
        parts = [
            self.of(which[rows])._evaluate(t[rows], EXACT, guess[rows])
            for rows in blocks(len(t), self.size)
        ]
        return parts[0] if len(parts) == 1 else parts[0].joined(*parts[1:])

    def points(self, which: np.ndarray, t: Vector, mu: Vector) -> Array:
        """Coordinates of ``v``, of squared norm ``t``."""
        m = self.of(which).groups.at(t)
        x = self.of(which).target(m)[0] * self.sigma * self.inverse(mu)
        return np.asarray(x * np.sqrt(t / np.einsum("ij,ij->i", x, x))[:, None])

    def infinity(self) -> Vector:
        """Limit of the loss of each game as ``t`` grows."""
        far = np.where(
            self.honest > 0.0,
            (1.0 - self.honest) * self.apart + self.honest * float(self.outer[0, 0]),
            self.apart - self.free,
        )
        never = (self.ridges > 0.0) | ((self.honest > 0.0) & (self.lowest > 0.0))
        return np.where(never, np.inf, far)


def _solve_together(games: _Games, names: np.ndarray, found: Optima) -> np.ndarray:
    """Fill in the optima of games that show nothing out of the ordinary; return their names."""
    which, t, mu, plain = _minima(games)
    if not len(which):
        return names[:0]
    here, done = _refine(games, which, t, mu)
    clear = done & (here.fill == 0.0) & (_DIGITS * here.curvature > here.noise)
    # Away from its least multiplier the loss is analytic: what curves does not become a flat.
    flat = (here.mu <= _CLEAR) | (here.curvature <= _CLEAR * games.yy)
    near = np.flatnonzero(clear & flat)
    if len(near):
        beyond = games.each(which[near], 1.5 * here.t[near], here.mu[near])
        clear[near] = (here.mu[near] > 0.0) & (beyond.value > here.value[near] + _TIE * games.yy)
    np.logical_and.at(plain, which, clear)
    # The best minimum of each game, and whether another comes close.
    order = np.lexsort((here.value, which))
    first = order[np.diff(which[order], prepend=-1) > 0]
    second = order[1:][np.diff(which[order]) == 0]
    best = np.full(len(plain), np.inf)
    best[which[first]] = here.value[first]
    runner_up = np.full(len(plain), np.inf)
    np.minimum.at(runner_up, which[second], here.value[second])
    rival = np.minimum(np.minimum(runner_up, games.infinity()), games.yy)
    plain &= best < rival - _TIE * games.yy
    first = first[plain[which[first]]]
    game, units = which[first], games.units
    rows = np.asarray(names[game])
    found.x[rows] = games.points(game, here.t[first], here.mu[first]) * units.norm
    found.t[rows] = here.t[first] * units.t
    found.room[rows] = here.mu[first] * units.sigma**2
    found.unique[rows] = True
    return rows


def _range(games: _Games) -> tuple[Vector, Vector]:
    """Range of ``t`` where the minima of each game are expected, as in a search for one."""
    gamma, honest, ridge = games.gamma, games.honest, games.ridges
    eta, zeta, delta = games.base
    p_y = float(np.linalg.norm(games.sigma * eta))
    low = 1e-2 * (p_y / (1.0 + ridge + 4.0 * (1.0 - honest) / gamma)) ** 2
    low = np.maximum(np.minimum(low, 1e-2 * gamma), 1e-40)
    reach = float(((eta**2 + zeta**2) / games.d).sum())
    high = 1e2 * np.maximum(np.maximum(gamma, reach), 1e4 * low)
    p_d = float(np.linalg.norm(games.sigma * delta))
    if p_d > 1e-60:
        turn = np.sqrt(games.zz * games.apart) + games.apart
        far = np.maximum((turn / p_d) ** 2, (gamma / p_d) ** 2)
        seen = 2.0 * gamma * p_d / (EPS * (games.apart - games.free))
        further = np.maximum(high, 1e2 * np.minimum(far, seen**2))
        high = np.where(honest == 0.0, further, high)
    if games.lowest > 0.0:
        cap = games.yy * (1.0 + 1.0 / np.sqrt(honest)) ** 2 / games.lowest
        high = np.minimum(high, 1.1 * cap)
    high = np.minimum(high, 1.1 * games.yy / ridge)
    return np.minimum(low, 1e-2 * high), high


def _minima(games: _Games) -> tuple[np.ndarray, Vector, Vector, np.ndarray]:
    """Games and ``t`` of the minima that the table shows, multipliers there; ordinary games."""
    low, high = _range(games)
    span = np.log(high / low)
    counts = np.minimum(span / _STEP + 2, _POINTS).astype(int)
    which = np.repeat(np.arange(len(low)), counts)
    start = np.cumsum(counts) - counts
    place = np.arange(len(which)) - start[which]
    t = low[which] * np.exp(place * (span / (counts - 1))[which])
    m = games.of(which).groups.at(t)
    # Beyond the spectrum norms are |p|/mu, and the smallest norms need the largest multipliers.
    largest = np.linalg.norm(games.sides, axis=0).sum() / np.sqrt(m.tau.min())
    table = Table(games, 8.0 * max(1.0, float(largest)))
    mu, j = table.at(m)
    slope = _slope(games, which, m, mu, j)
    right = slope >= 0.0
    inside = np.diff(which) == 0
    at = np.flatnonzero(inside & right[1:] & ~right[:-1])
    plain = ~right[start] & right[start + counts - 1]
    # Next to the pole the lowest space takes over.
    pole = 4.0 * table.least
    plain[which[at[np.minimum(mu[at], mu[at + 1]) < pole]]] = False
    plain[which[1:-1][_turns(slope) & inside[1:] & inside[:-1]]] = False
    plain[which[1:][inside & _flips(games, m, mu)]] = False
    at = at[plain[which[at]]]
    part = slope[at] / (slope[at] - slope[at + 1])
    root = t[at] * (t[at + 1] / t[at]) ** part
    shown = np.zeros(len(plain), dtype=bool)
    shown[which[at]] = True
    return which[at], root, mu[at] * (mu[at + 1] / mu[at]) ** part, plain & shown


def _slope(games: _Games, which: np.ndarray, m: Moments, mu: Vector, j: Array) -> Vector:
    """Derivative of the loss in ``log t``, by the envelope theorem."""
    nu = mu - games.lowest
    r_zz, r_zd, r_dd = games.outer[1, 1], games.outer[1, 2], games.outer[2, 2]
    s_zz, s_zd, s_dd = r_zz + nu * j[0], r_zd + nu * j[1], r_dd + nu * j[2]
    slope = (games.apart - s_dd) * m.e1 - 2.0 * (m.bend * s_zz + m.u * s_zd) - nu * m.tau1
    return np.asarray(slope + games.ridges[which] * m.t)


def _flips(games: _Games, m: Moments, mu: Vector) -> np.ndarray:
    """Where the coefficient that dominates changes its sign between two points.

    There the loss has a kink, or all but one, and minima on either side that the points may miss.
    """
    lowest = int(np.argmin(games.e))
    eta, zeta, _ = games.base
    side = m.p * eta[lowest] - m.u * zeta[lowest] > 0.0
    others = games.e[games.e > 0.0]
    near = mu < (float(others.min()) if others.size else np.inf)
    return np.asarray((side[1:] != side[:-1]) & (near[1:] | near[:-1]))


def _turns(f: Vector) -> np.ndarray:
    """Where a slope that keeps its sign at three points comes close to zero in between."""
    before, here, after = f[:-2], f[1:-1], f[2:]
    bend = before - 2.0 * here + after
    nearest = here - (after - before) ** 2 / (8.0 * bend)
    same = (before * here > 0.0) & (here * after > 0.0)
    smallest = (abs(here) <= abs(before)) & (abs(here) <= abs(after))
    return np.asarray(same & smallest & (nearest * here < 0.3 * here * here))


def _refine(games: _Games, which: np.ndarray, t: Vector, mu: Vector) -> tuple[Section, np.ndarray]:
    """Newton's method for the slope in ``log t``, safeguarded; where it converged."""
    here = games.each(which, t, mu)
    width = _STEP * (1.0 + _SLACK)
    left, right = t * np.exp(-width), t * np.exp(width)
    done = np.zeros(len(t), dtype=bool)
    for _ in range(_MAX_STEPS):
        active = np.flatnonzero(~done)
        now = here.taken(active)
        beyond = now.slope >= 0.0
        right[active] = np.where(beyond, now.t, right[active])
        left[active] = np.where(beyond, left[active], now.t)
        step = -now.slope / now.curvature
        back, ahead = np.log(left[active] / now.t), np.log(right[active] / now.t)
        newton = (now.curvature > 0.0) & (back <= step) & (step <= ahead)
        step = np.where(newton, step, 0.5 * (back + ahead))
        # A last step whose square is rounding need not be evaluated but to be taken.
        new = now.t * np.exp(step)
        guess = np.fmax(now.mu + step * now.rate, 0.1 * now.mu)
        after = games.each(which[active], new, guess)
        for all_rows, rows in zip(here[:-1], after[:-1], strict=True):
            all_rows[active] = rows
        done[active] = (newton & (abs(step) <= _CLOSE)) | (abs(after.slope) <= after.noise)
        if done.all():
            break
    return here, done
