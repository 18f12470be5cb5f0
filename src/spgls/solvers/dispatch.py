"""From games and a solver to solutions: the one way in for everybody who plays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from spgls.game.between import Between
from spgls.game.providers import Population, PopulationRange
from spgls.reduction.data import GameData
from spgls.reduction.game_sums import GameSums
from spgls.reduction.layout import Layout
from spgls.solvers.auto import check_memory
from spgls.solvers.by_reduction import solve_by_reduction, solve_task
from spgls.solvers.iterative.early import close_products
from spgls.solvers.iterative.iterate import Controls
from spgls.solvers.ones import as_column, column_of_ones, with_intercept
from spgls.solvers.ranges import RangeTask, solve_range
from spgls.solvers.recover import Clock, Task
from spgls.solvers.registry import (
    PathSolver,
    RangeSolver,
    Solver,
    begins_early,
    knows_populations,
)
from spgls.solvers.returned import as_returned
from spgls.solvers.small import as_game, is_paper_game
from spgls.solvers.solution import Setting, Solution
from spgls.solvers.spectral import Spectral
from spgls.solvers.units import units_of, units_of_sums

__all__ = ["check_knows", "play", "play_sums"]


def check_knows(
    solver: Solver,
    population: Population | PopulationRange,
    ridge: float,
    avoids_null: bool = False,
) -> None:
    """Refuse a game that a solver does not know."""
    if isinstance(population, PopulationRange):
        if not isinstance(solver, RangeSolver):
            raise ValueError(
                f"solver {solver.capabilities.name!r} does not know ranges; got {population}. Use "
                "solver='auto' or 'spectral', or pass numbers in the place of Between."
            )
        return
    paper = is_paper_game(population, ridge)
    if (paper and not avoids_null) or knows_populations(solver):
        return
    if avoids_null:
        raise ValueError(
            f"solver {solver.capabilities.name!r} plays the game as stated; got "
            "null_space='avoid'. Pass null_space='use', or solver='spectral'."
        )
    raise ValueError(
        f"solver {solver.capabilities.name!r} solves games against one strength of provider "
        f"without a ridge; got {population} with ridge {ridge:g}. Use solver='spectral'."
    )


def play(
    solver: Solver,
    data: GameData,
    populations: Sequence[Population | PopulationRange],
    ridge: float,
    controls: Controls,
) -> tuple[Solution, ...]:
    """Solve a game against each population, together where the solver can.

    ``stats`` of a solution tell what had been spent on all of them when it was found.

    Parameters
    ----------
    solver : Solver
        How.
    data : GameData
        The data of the games.
    populations : sequence of Population and PopulationRange
        Whom the learner meets in each.
    ridge : float
        Weight of the squared priced norm of the coefficients.
    controls : Controls
        Tolerance, limits, callback.
    """
    ones = column_of_ones(data)
    if ones is not None:
        told_apart = play(solver, with_intercept(data), populations, ridge, controls)
        return tuple(as_column(one, ones) for one in told_apart)
    for population in populations:
        check_knows(solver, population, ridge, data.layout.avoids_null)
    ranged = any(isinstance(one, PopulationRange) for one in populations)
    check_memory(solver, data, len(populations), only=ranged)
    games = [
        one if isinstance(one, PopulationRange) else as_game(one, ridge) for one in populations
    ]
    if len(games) == 1 and isinstance(games[0], float) and begins_early(solver):
        solver.begin_early(data, games[0])
    try:
        units = units_of(data, games, ridge)
        if units is None:
            found = _play(solver, data, games, ridge, controls)
        else:
            told = [units.people(game) for game in games]
            scaled = _play(solver, units.told(data), told, units.ridge(ridge), controls)
            found = tuple(units.back(one, game) for one, game in zip(scaled, games, strict=True))
    finally:
        close_products(data)
    return tuple(
        _with_setting(
            as_returned(one, data, population, ridge, controls.tol),
            population,
            ridge,
            data.layout,
        )
        for one, population in zip(found, populations, strict=True)
    )


def play_sums(
    data: GameSums,
    populations: Sequence[Population | PopulationRange],
    ridge: float,
    tol: float,
) -> tuple[Solution, ...]:
    """The same on rows that were added up, by the one way that there is.

    Parameters
    ----------
    data : GameSums
        What the rows add up to.
    populations, ridge
        As for :func:`play`.
    tol : float
        Certified relative gap wanted.
    """
    games = [
        one if isinstance(one, PopulationRange) else as_game(one, ridge) for one in populations
    ]
    units = units_of_sums(data, games, ridge)
    if units is None:
        found = _play_sums(data, games, ridge, tol)
    else:
        told = [units.people(game) for game in games]
        scaled = _play_sums(units.told_of_sums(data), told, units.ridge(ridge), tol)
        found = tuple(units.back(one, game) for one, game in zip(scaled, games, strict=True))
    return tuple(
        _with_setting(
            as_returned(one, data, population, ridge, tol), population, ridge, data.layout
        )
        for one, population in zip(found, populations, strict=True)
    )


def _play_sums(
    data: GameSums, games: Sequence[float | Population | PopulationRange], ridge: float, tol: float
) -> tuple[Solution, ...]:
    name, clock = data.sums.method, Clock()
    plain = [one for one in games if not isinstance(one, PopulationRange)]
    task = Task(name, data, plain, ridge, tol, clock)
    solved = iter(solve_by_reduction(task, "auto", solve_task) if plain else ())
    return tuple(
        solve_range(RangeTask(name, data, one, ridge, tol, clock), "auto")
        if isinstance(one, PopulationRange)
        else next(solved)
        for one in games
    )


def _with_setting(
    solution: Solution, population: Population | PopulationRange, ridge: float, layout: Layout
) -> Solution:
    """A solution that knows its game, as far as its advice asks."""
    share = population.honest
    honest = (share.low if isinstance(share, Between) else share) > 0.0
    immutable = layout.coordinates is None and layout.count < layout.columns
    if not (honest or ridge or layout.avoids_null or immutable):
        # Games of the paper come in thousands, and their solutions know that already.
        return solution
    setting = Setting(honest, ridge > 0.0, layout.avoids_null, immutable)
    return replace(solution, setting=setting)


def _play(
    solver: Solver,
    data: GameData,
    games: Sequence[float | Population | PopulationRange],
    ridge: float,
    controls: Controls,
) -> tuple[Solution, ...]:
    plain = [game for game in games if not isinstance(game, PopulationRange)]
    if data.layout.count == 0:
        # Nobody can react, so there is no game to solve.
        solver = Spectral()
    if len(plain) == len(games) > 1 and isinstance(solver, PathSolver):
        return solver.solve_path(data, plain, controls, ridge)
    solutions: list[Solution] = []
    for game in games:
        if isinstance(game, PopulationRange):
            assert isinstance(solver, RangeSolver)
            solution = solver.solve_range(data, game, ridge, controls)
        elif isinstance(game, Population):
            assert knows_populations(solver)
            solution = solver.solve_population(data, game, ridge, controls)
        else:
            solution = solver.solve(data, game, controls)
        if solutions:
            solution = replace(solution, stats=solutions[-1].stats.plus(solution.stats))
        solutions.append(solution)
    return tuple(solutions)
