"""One game with its columns changed in many ways: the rows are added up once for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from spgls.base.machine import available_memory, threads
from spgls.base.threads import FEW_COLUMNS, one_blas_thread
from spgls.game.providers import Population
from spgls.matrix.some_columns import SomeColumns
from spgls.reduction.column_sums import ColumnChange, ColumnSums
from spgls.reduction.data import GameData
from spgls.solvers.auto import Auto, check_memory
from spgls.solvers.by_reduction import Engine, solve_by_reduction, solve_task
from spgls.solvers.cost import decomposition_seconds, krylov_cost, spectral_cost
from spgls.solvers.dispatch import check_knows, play
from spgls.solvers.iterative.iterate import Controls
from spgls.solvers.recover import Clock, Task
from spgls.solvers.registry import Solver
from spgls.solvers.short import refuse_short_columns
from spgls.solvers.small import as_game
from spgls.solvers.solution import Solution
from spgls.solvers.spectral import Spectral
from spgls.solvers.units import units_of

__all__ = ["engine_of_sums", "play_changed"]


def play_changed(
    solver: Solver,
    data: GameData,
    changes: Sequence[ColumnChange],
    population: Population,
    ridge: float,
    controls: Controls,
) -> tuple[Solution, ...]:
    """Solve a game with its columns changed, for each of several changes.

    With the spectral solver, which ``"auto"`` takes unless columns are very many, the rows are read
    once, or twice where squares are not enough, and every further game is a small decomposition.
    Other solvers, and data with no more rows than columns, take one game after the other.
    ``stats`` of a solution tell what had been spent on all of them when it was found.

    Parameters
    ----------
    solver : Solver
        How.
    data : GameData
        The game as it is.
    changes : sequence of ColumnChange
        Columns as they would be; the first tells how carefully the others have to be reduced.
    population : Population
        Whom the learner meets.
    ridge : float
        Weight of the squared priced norm of the coefficients.
    controls : Controls
        Tolerance and limits.
    """
    check_knows(solver, population, ridge, data.layout.avoids_null)
    engine = engine_of_sums(solver, data, len(changes))
    if engine is not None:
        check_memory(Spectral(), data, 1)
        return _from_sums(engine, data, changes, as_game(population, ridge), ridge, controls.tol)
    found: list[Solution] = []
    for change in changes:
        changed = change.of(data)
        if isinstance(changed.matrix, SomeColumns):
            changed = replace(changed, matrix=changed.matrix.held())
        (solution,) = play(solver, changed, [population], ridge, controls)
        if found:
            solution = replace(solution, stats=found[-1].stats.plus(solution.stats))
        found.append(solution)
    return tuple(found)


def engine_of_sums(solver: Solver, data: GameData, games: int) -> Engine | None:
    """How sums would be decomposed; None where games are better taken one after the other.

    Parameters
    ----------
    solver : Solver
        How games are to be solved.
    data : GameData
        One of them.
    games : int
        How many there are.
    """
    m, n = data.matrix.shape
    rows = m if data.weight is None else int(np.count_nonzero(data.weight))
    # Any column may be one that nobody can change in one of the games.
    refuse_short_columns(data, honest=True)
    if rows <= n or units_of(data) is not None:
        return None
    if isinstance(solver, Spectral):
        return solver.engine
    if not isinstance(solver, Auto):
        return None
    work, cores = data.matrix.work, threads()
    exact, krylov = spectral_cost(work, 1, cores), krylov_cost(work, 1, cores)
    longer = exact.seconds + (games - 1) * decomposition_seconds(n, cores) > games * krylov.seconds
    return "auto" if not longer and exact.fits(available_memory(), work) else None


@np.errstate(all="ignore")
def _from_sums(
    engine: Engine,
    data: GameData,
    changes: Sequence[ColumnChange],
    game: float | Population,
    ridge: float,
    tol: float,
) -> tuple[Solution, ...]:
    """Solve every game from the same sums."""
    sums, clock = ColumnSums(data), Clock()
    found: list[Solution] = []
    with one_blas_thread(data.matrix.shape[1] <= FEW_COLUMNS):
        for change in changes:
            changed, before = change.of(data), sums.reads
            task = Task("spectral", changed, [game], ridge, tol, clock, one_of_many=True)
            reduce = partial(sums.reduce, changed, change.kept)
            found += solve_by_reduction(task, engine, solve_task, sums=reduce)
            clock.passes += sums.reads - before
            if engine == "auto" and len(found) == 1 and "qr" in changed.reductions:
                # What squares could not tell of the first game they will hardly tell of its likes.
                engine = "qr"
    return tuple(found)
