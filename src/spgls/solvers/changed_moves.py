"""One game with what people can do changed in many ways, from one reading of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from spgls.game.moves import Cost
from spgls.game.providers import Population
from spgls.matrix import Matrix
from spgls.matrix.some_columns import SomeColumns
from spgls.reduction.added import Added, Factor, Moments
from spgls.reduction.data import GameData
from spgls.reduction.game_sums import game_of_sums
from spgls.reduction.layout import lay_out
from spgls.solvers.changed import engine_of_sums
from spgls.solvers.dispatch import check_knows, play, play_sums
from spgls.solvers.iterative.iterate import Controls
from spgls.solvers.registry import Solver
from spgls.solvers.solution import Solution, Stats, Status

__all__ = ["MovesChange", "play_moves"]


class MovesChange(NamedTuple):
    """Columns, and what people can do to them, as they would be.

    Attributes
    ----------
    kept : ndarray of int
        Columns that are there, in order.
    cost : ndarray of shape (kept,), Moves or None
        What it costs to change these.
    """

    kept: np.ndarray
    cost: Cost


def play_moves(
    solver: Solver,
    data: GameData,
    changes: Sequence[MovesChange],
    population: Population,
    ridge: float,
    controls: Controls,
) -> tuple[Solution, ...]:
    """Solve a game with other moves, for each of several changes.

    Where columns are few the rows are added up once, or twice where squares are not enough, and
    read again only for games that sums do not prove. Coefficients are those of the kept columns;
    ``stats`` tell what had been spent on all of the games when a solution was found.

    Parameters
    ----------
    solver : Solver
        How.
    data : GameData
        The game as it is.
    changes : sequence of MovesChange
        What people could do, and to which columns.
    population : Population
        Whom the learner meets.
    ridge : float
        Weight of the squared priced norm of the coefficients.
    controls : Controls
        Tolerance and limits.
    """
    check_knows(solver, population, ridge, data.layout.avoids_null)
    assert data.given is not None
    sums = _Sums(data, data.given, [])
    by_sums = engine_of_sums(solver, data, len(changes)) is not None
    found: list[Solution] = []
    for change in changes:
        before = len(sums.made)
        solution = _from_sums(sums, change, population, ridge, controls.tol) if by_sums else None
        if solution is None:
            (solution,) = play(solver, _from_rows(data, change), [population], ridge, controls)
        spent = solution.stats.plus(Stats(float(len(sums.made) - before), 0, 0.0))
        if found:
            spent = found[-1].stats.plus(spent)
        found.append(replace(solution, stats=spent))
    return tuple(found)


class _Sums(NamedTuple):
    """The rows of a game added up, each way when it is asked for."""

    data: GameData
    matrix: Matrix
    made: list[Added]

    def each(self) -> Sequence[type[Added]]:
        return Moments, Factor

    def of(self, at: int) -> Added:
        """The sums by one of the methods."""
        if at == len(self.made):
            data = self.data
            given = self.matrix, data.y, data.z, data.weight, data.source
            self.made.append(self.each()[at].of(*given))
        return self.made[at]


def _from_sums(
    sums: _Sums, change: MovesChange, population: Population, ridge: float, tol: float
) -> Solution | None:
    """The game on sums; None where they prove nothing, or there are no columns."""
    layout = sums.data.layout
    if not len(change.kept):
        return None
    for at in range(len(sums.each())):
        game = game_of_sums(
            sums.of(at).some(change.kept),
            change.cost,
            fit_intercept=layout.fit_intercept,
            avoids_null=layout.avoids_null,
        )
        (found,) = play_sums(game, [population], ridge, tol)
        settled = found.status.ok or found.status is Status.UNATTAINED
        if settled and found.certificate.kind == "proved":
            return found
    return None


def _from_rows(data: GameData, change: MovesChange) -> GameData:
    """The game with its columns and moves changed, on its rows."""
    assert data.given is not None
    given = data.given
    if len(change.kept) < given.shape[1]:
        given = SomeColumns(given, change.kept).held()
    matrix, layout = lay_out(
        given,
        change.cost,
        fit_intercept=data.layout.fit_intercept,
        avoids_null=data.layout.avoids_null,
    )
    return replace(data, matrix=matrix, layout=layout, given=given)
