"""Many games on the same reduced data at once: each a strength, an honest share and a ridge.

Games on the same data differ in a few averages over their groups only; what they need of the data
are six functions of the multiplier, the same for all of them. A table of those replaces the grid
that a search for one game evaluates, and the minima that the table shows are refined together. A
game that shows anything out of the ordinary is solved on its own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spgls.base.types import Array, Vector
from spgls.population.bracket import refine_many
from spgls.population.far import far_margin
from spgls.population.grid import GamesGrid
from spgls.population.moments import column
from spgls.population.multiplier import inner
from spgls.population.optimum import PopulationSolution, confirms, solve_population
from spgls.population.search import FLOOR, STEP
from spgls.population.section import Sections
from spgls.reduction.reduced import ReducedGame
from spgls.sphere import dual_bounds, solve_sphere_many

__all__ = ["PairOptima", "solve_pairs"]

#: How far in log t a minimum may lie outside its cell: the table is not exact.
_SLACK = 2e-2
#: Multipliers and curvatures above this, in units of the game, leave no doubt of a unique optimum.
_CLEAR = 1e-6
#: Relative accuracy of ``t`` that a minimum has to allow.
_DIGITS = 1e-11
#: Values closer than this, in units of |y|^2, are told apart by the search for one game.
_TIE = 1e-12


class PairOptima(NamedTuple):
    """PairOptima of several games in singular coordinates, one row each.

    As in :class:`PopulationSolution`: ``x`` of shape (C, k), ``fill`` and ``t``. ``room`` is the
    distance of the multiplier from its pole; ``unique`` says where the optimum is attained and the
    only one. Rows that are not are those of the smallest optimum, or of one close to the infimum.
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
    single_tol: float | None = None,
    ulps: float = 2.0,
    thorough: bool = True,
) -> PairOptima:
    """Minimise the learner's loss against each of several populations of two groups.

    Parameters
    ----------
    game : ReducedGame
        The reduced data.
    gammas, honest, ridges : ndarray of shape (C,)
        Strength of the strategic providers, share of the honest ones and ridge of each game.
    tol : float
        As in :func:`solve_population`; only games without an attained optimum use it.
    single_tol : float, optional
        The same for games against one strength without a ridge, if it is another.
    ulps : float
        Relative accuracy of the game's coordinates in ulps.
    thorough : bool
        Whether games out of the ordinary are searched on their own; if not, those that need a
        search are left at zero, and not unique.

    Returns
    -------
    PairOptima

    Examples
    --------
    >>> import numpy as np
    >>> from spgls.population.many import solve_pairs
    >>> from spgls.reduction.reduced import ReducedGame
    >>> one = np.array([1.0])
    >>> game = ReducedGame(one, -3 * one, one, 0.0, 0.0, 4.0)
    >>> found = solve_pairs(game, np.array([0.01, 1e6]), np.full(2, 0.5), np.zeros(2))
    >>> print(*found.t.round(6))
    9.8e-05 9.000108
    """
    count = len(gammas)
    found = PairOptima(
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
        each = tol if single_tol is None else single_tol
        waiting[_solve_single(game, gammas[some], some, found, each, ulps)] = False
    some = np.flatnonzero(moves & ~single)
    if len(some) and game.size and game.yy > 0.0 and float(np.abs(game.eta).max()) > 0.0:
        with np.errstate(all="ignore"):
            stay = honest[some]
            groups = [gammas[some], np.inf], [1.0 - stay, stay]
            games = Sections(game, *groups, ridges[some], ulps)
            waiting[_solve_together(games, tol, some, found)] = False
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
    game: ReducedGame, gammas: Vector, names: np.ndarray, found: PairOptima, tol: float, ulps: float
) -> np.ndarray:
    """Games against one strength: sphere problems, where their own dual bounds confirm them."""
    small = solve_sphere_many(game, gammas, tol=tol, ulps=ulps)
    bound = dual_bounds(game.as_computed, gammas, small, small.value)
    sure = np.flatnonzero(confirms(game, small, bound, tol))
    rows = np.asarray(names[sure])
    s = small.s[sure]
    found.x[rows], found.fill[rows] = small.x[sure] / s[:, None], small.fill[sure] / s
    found.t[rows] = gammas[sure] * small.c[sure] / s
    found.room[rows] = (small.nu - small.pole)[sure]
    found.unique[rows] = small.unique[sure]
    return rows


def _solve_together(
    games: Sections, tol: float, names: np.ndarray, found: PairOptima
) -> np.ndarray:
    """Fill in the optima of games that show nothing out of the ordinary; return their names."""
    grid = GamesGrid(games)
    best = _best_minima(games, *grid.minima(), grid.plain)
    infinity, plain = grid.infinity, grid.plain
    # Nothing else may come close to what is best.
    margin = far_margin(infinity, max(tol, FLOOR) * games.yy, games.yy)
    far = infinity + margin < np.minimum(best.value, games.yy)
    near = best.value < np.minimum(np.minimum(best.rival, infinity), games.yy) - _TIE * games.yy
    t, mu = best.t, best.mu
    some = np.flatnonzero(plain & far)
    t[some], mu[some] = grid.approach(some, infinity[some], margin[some])
    here = np.flatnonzero(plain & np.where(far, t > 0.0, near))
    rows, units = np.asarray(names[here]), games.units
    if len(rows):
        x, fill = _points(games.of(here), t[here], mu[here])
        found.x[rows], found.fill[rows] = x * units.norm, fill * units.norm
        found.t[rows] = t[here] * units.t
        found.room[rows] = mu[here] * units.sigma**2
        found.unique[rows] = (mu[here] > 0.0) & ~far[here]
    return rows


def _points(games: Sections, t: Vector, mu: Vector) -> tuple[Array, Vector]:
    """Coordinates of ``v``, of squared norm ``t``, and its norm in the null space, of each game."""
    m = games.groups.at(t)
    x = games.target(m)[0] * games.sigma * games.inverse(mu)
    norms = inner(x, x)
    filled = mu == 0.0
    x *= column(np.where(filled, 1.0 / np.sqrt(m.a), np.sqrt(t / norms)))
    fill = np.where(filled, np.sqrt(np.maximum(0.0, t - norms / m.a)), 0.0)
    return np.asarray(x), fill


class _Best(NamedTuple):
    """The best minimum of each game, and the value of the next best; infinite where there is none.

    Multipliers are zero where a null space takes part of the norm.
    """

    t: Vector
    mu: Vector
    value: Vector
    rival: Vector


def _best_minima(
    games: Sections, which: np.ndarray, t: Vector, mu: Vector, plain: np.ndarray
) -> _Best:
    """Refine minima and choose among them; a game with a doubtful one is no longer plain."""
    found = _Best(*(np.full(len(plain), np.inf) for _ in _Best._fields))
    if not len(which):
        return found
    reach = np.exp(STEP * (1.0 + _SLACK))
    here, done = refine_many(
        lambda rows, t, mu: games.of(which[rows]).evaluate(t, guess=mu),
        t / reach,
        t * reach,
        games.of(which).evaluate(t, guess=mu),
    )
    filled = (here.mu == 0.0) & (here.fill > 0.0) & (games.nullity > 0)
    clear = done & (filled | (here.fill == 0.0)) & (_DIGITS * here.curvature > here.noise)
    # Away from its least multiplier the loss is analytic: what curves does not become a flat.
    flat = (here.mu <= _CLEAR) | (here.curvature <= _CLEAR * games.yy)
    near = np.flatnonzero(clear & flat)
    if len(near):
        beyond = games.of(which[near]).evaluate(1.5 * here.t[near], guess=here.mu[near])
        rises = beyond.value > here.value[near] + _TIE * games.yy
        clear[near] = rises & (filled[near] | (here.mu[near] > 0.0))
    np.logical_and.at(plain, which, clear)
    order = np.lexsort((here.value, which))
    first = order[np.diff(which[order], prepend=-1) > 0]
    second = order[1:][np.diff(which[order]) == 0]
    for all_games, of_minima in zip(found, (here.t, here.mu, here.value), strict=False):
        all_games[which[first]] = of_minima[first]
    np.minimum.at(found.rival, which[second], here.value[second])
    return found
