"""Games on one reduced game: each solved by the method that fits it, all returned as one table.

A game against one strength without a ridge is the paper's sphere problem, and those are solved
together; any other is a search over one number. Whoever recovers predictors sees only the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from math import isfinite, sqrt

import numpy as np

from spgls.base.each import Each, column
from spgls.base.types import Array, Vector
from spgls.game.providers import Population
from spgls.population import PopulationSolution, solve_population
from spgls.population.groups import Groups, Reached
from spgls.population.optimum import confirms
from spgls.reduction.reduced import ReducedGame
from spgls.sphere import SmallSolutions, dual_bounds, solve_sphere_many, stationarities

__all__ = ["ULPS", "Optima", "as_game", "is_paper_game", "solve_small"]

#: Accuracy of singular coordinates computed from data.
ULPS = 64.0


def is_paper_game(population: Population, ridge: float) -> bool:
    """Whether everybody is of one strength and nothing is penalised."""
    return len(population.gammas) == 1 and ridge == 0.0 and isfinite(population.gammas[0])


def as_game(population: Population, ridge: float) -> float | Population:
    """The strength in a game of the paper, the population in any other."""
    return population.gammas[0] if is_paper_game(population, ridge) else population


@dataclass(frozen=True, eq=False)
class Optima:
    """Optima of several games in singular coordinates, one row each.

    Attributes
    ----------
    x : ndarray of shape (G, k)
        Coordinates of the coefficients.
    fill : ndarray of shape (G,)
        Norms of the coefficients in the null space of the data, or in the space of its lowest
        singular value if there is none; any direction in it is as good.
    t : ndarray of shape (G,)
        Squared norms of the coefficients, ``fill`` included.
    nu, room : ndarray of shape (G,)
        Multipliers, and their distance from the least ones that prove optimality.
    value, bound : ndarray of shape (G,)
        Learner's losses, ridge included, and lower bounds of all losses.
    upper : ndarray of shape (G,)
        What the bounds presuppose: a predictor with no larger loss exists.
    slope : ndarray of shape (G,)
        Residuals of the optimality conditions, relative to their terms.
    ended : ndarray of bool
        Whether the proof was not cut short.
    outcome : ndarray of {"unique", "several", "unattained"}
        Whether an optimum is unique, the smallest of several, or only approached.
    steps : ndarray of int
        Steps spent.
    """

    x: Array
    fill: Vector
    t: Vector
    nu: Vector
    room: Vector
    value: Vector
    bound: Vector
    upper: Vector
    slope: Vector
    ended: np.ndarray
    outcome: np.ndarray
    steps: np.ndarray

    @classmethod
    def of_sphere(
        cls, game: ReducedGame, gammas: Each, small: SmallSolutions, bound: Each, upper: Each
    ) -> Optima:
        """Solutions of sphere problems, with the bounds that their multipliers prove."""
        columns = (
            small.x / column(small.s),
            small.fill / small.s,
            gammas * (small.c / small.s),
            small.nu,
            small.nu - small.pole,
            small.value,
            bound,
            upper,
            stationarities(game, gammas, small),
            np.isfinite(small.nu),
            small.outcome,
            small.steps,
        )
        return cls(*columns) if small.s.ndim else cls(*(np.array([one]) for one in columns))

    @classmethod
    def of_populations(
        cls,
        game: ReducedGame,
        games: Sequence[Groups],
        found: Sequence[PopulationSolution],
        ridge: float,
    ) -> Optima:
        """Solutions of searches, with the bounds that they proved."""
        at = [groups.at(one.t) for groups, one in zip(games, found, strict=True)]
        nu = np.array([one.nu for one in found])
        return cls(
            x=np.stack([one.x for one in found]),
            fill=np.array([one.fill for one in found]),
            t=np.array([one.t for one in found]),
            nu=nu,
            room=nu + game.lowest,
            value=np.array([one.value for one in found]),
            bound=np.array([one.lower_bound for one in found]),
            upper=np.array([one.upper for one in found]),
            slope=np.array([_slope(game, m, one, ridge) for m, one in zip(at, found, strict=True)]),
            ended=np.array([one.ended for one in found], dtype=bool),
            outcome=np.array([one.outcome for one in found], dtype="<U10"),
            steps=np.array([one.steps for one in found]),
        )

    def taken(self, rows: Sequence[int]) -> Optima:
        """Some of the rows, as often as wanted."""
        return Optima(*(getattr(self, field.name)[rows] for field in fields(self)))

    def put(self, rows: Sequence[int], others: Optima) -> None:
        """Replace some rows by those of another table."""
        for field in fields(self):
            getattr(self, field.name)[rows] = getattr(others, field.name)

    def without(self, rows: Sequence[int], game: ReducedGame) -> Optima:
        """The same with coefficients of zero, and no bound, in some rows."""
        found = self.taken(range(len(self.t)))
        for part in (found.x, found.fill, found.t, found.nu, found.bound, found.slope):
            part[rows] = 0.0
        found.value[rows] = game.yy
        return found

    @property
    def finite(self) -> np.ndarray:
        """Where all coordinates are numbers."""
        return np.asarray(np.isfinite(self.x.sum(axis=1) + self.fill + self.t))

    @property
    def unique(self) -> np.ndarray:
        """Where the optimum is attained and the only one."""
        return np.asarray(self.outcome == "unique")


def solve_small(
    game: ReducedGame, games: Sequence[float | Population], ridge: float, tol: float
) -> Optima:
    """Solve every game, and bound its value from below.

    Parameters
    ----------
    game : ReducedGame
        The reduced data.
    games : sequence of float and Population
        Whom the learner meets in each; a number is a game of the paper, without a ridge.
    ridge : float
        Weight of the squared norm in the games against populations.
    tol : float
        Gap wanted, in units of ``|y|^2``.
    """
    single = [i for i, one in enumerate(games) if not isinstance(one, Population)]
    mixed = [i for i, one in enumerate(games) if isinstance(one, Population)]
    strengths = np.array([games[i] for i in single], dtype=np.float64)
    groups = [Groups(one) for one in games if isinstance(one, Population)]
    if not mixed:
        return _solve_spheres(game, strengths, tol)
    # Rounding and recovery share the gap with the proof.
    searched = [_search(game, one, ridge, tol / 4) for one in groups]
    others = Optima.of_populations(game, groups, searched, ridge)
    if not single:
        return others
    found = others.taken([0] * len(games))
    found.put(mixed, others)
    found.put(single, _solve_spheres(game, strengths, tol))
    return found


def _search(game: ReducedGame, groups: Groups, ridge: float, tol: float) -> PopulationSolution:
    return solve_population(game, groups.gammas, groups.shares, ridge=ridge, tol=tol, ulps=ULPS)


def _solve_spheres(game: ReducedGame, gammas: Vector, tol: float) -> Optima:
    """Sphere problems, with a second opinion on those that their own bounds do not confirm.

    Rounding can take the secular equation to the wrong side of a pole that is nearly double. A
    search over norms looks at all of them and needs no pole.
    """
    # Numbers are faster than arrays of one.
    each = gammas if len(gammas) > 1 else gammas[0]
    small = solve_sphere_many(game, each, tol=tol, ulps=ULPS)
    upper = small.value + tol * game.yy
    bound = dual_bounds(game, each, small, upper)
    found = Optima.of_sphere(game, each, small, bound, upper)
    sure = confirms(game, small, bound, tol)
    if not np.all(sure):
        # Rounding in the reduction is no fault of the solution.
        alone = dual_bounds(game.as_computed, each, small, upper)
        sure = confirms(game, small, alone, tol)
    for i in np.flatnonzero(~sure).tolist():
        groups = Groups(float(gammas[i]))
        try:
            other = _search(game, groups, 0.0, tol)
        except ArithmeticError:
            # Numbers that double precision does not hold: the first opinion stands.
            continue
        if other.value < found.value[i]:
            found.put([i], Optima.of_populations(game, [groups], [other], 0.0))
    return found


def _slope(game: ReducedGame, at: Reached, found: PopulationSolution, ridge: float) -> float:
    """Norm of half the gradient of the loss by the coefficients, relative to its terms."""
    if game.size + game.nullity == 0:
        return 0.0
    error, gap = game.sigma * found.x - game.eta, game.zeta - game.eta
    out_gap = game.r_zz - 2 * game.r_yz + game.r_yy
    # Along the free part a error + u gap = 0.
    ee = float(error @ error) + game.r_yy + at.pull * at.pull * game.free_gap
    eg = float(error @ gap) + game.r_yy - game.r_yz - at.pull * game.free_gap
    gg = float(gap @ gap) + out_gap + game.free_gap
    by_norm = at.by_norm(ee, eg, gg) + ridge
    inside = game.sigma * (at.a * error + at.u * gap) + by_norm * found.x
    # The part in the lowest space multiplies a sum that vanishes at an optimum.
    fill = found.fill * (at.a * game.lowest + by_norm)
    norm = sqrt(float(inside @ inside) + fill**2)
    top = game.top
    unit = top * (sqrt(game.yy) + sqrt(game.zz)) + abs(by_norm) * sqrt(found.t)
    return norm / (unit or 1.0)
