"""Many strengths of provider on one reduction: what :mod:`by_reduction` does, for all at once.

Objectives come from the reduction wherever its rounding leaves them ten digits, so that a path
reads the data no more often than one solve does; the others are measured on the data together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from spgls._types import Array, Vector
from spgls.data import GameData
from spgls.providers import priced_norms
from spgls.reduction import Reduction
from spgls.solvers.by_reduction import (
    ULPS,
    Clock,
    Engine,
    judge,
    recover,
    reduce_and_solve,
    status_of,
    trustworthy,
)
from spgls.solvers.chunks import column_chunks
from spgls.solvers.iterate import Controls
from spgls.solvers.solution import Solution, Status
from spgls.sphere import SmallSolution, build_certificate
from spgls.sphere.certificate_many import dual_bounds, stationarities
from spgls.sphere.secular_many import SmallSolutions, solve_sphere_many

__all__ = ["is_clear", "solve_path_by_reduction"]

#: An objective from the reduction keeps so many digits, or it is measured on the data,
_DIGITS = 1e-10
#: and its rounding takes no more than this share of the gap allowed.
_SHARE = 1e-2


def solve_path_by_reduction(
    name: str,
    data: GameData,
    gammas: Sequence[float],
    controls: Controls,
    engine: Engine,
    second_opinion: Callable[[Reduction, float, SmallSolution], SmallSolution],
    clock: Clock,
) -> tuple[Solution, ...]:
    """Solve a game for each of several strengths.

    Parameters
    ----------
    name : str
        Name of the solver.
    data : GameData
        The data of the game.
    gammas : sequence of float
        Strengths of the providers.
    controls : Controls
        Tolerance.
    engine : {"auto", "gram", "qr"}
        Which reduction.
    second_opinion : callable
        Solves a reduced game in another way, for solutions that their own bound does not confirm.
    clock : Clock
        Counts what is spent.
    """
    strengths = np.array(gammas, dtype=np.float64)

    def attempt(
        reduction: Reduction, clock: Clock, games: list[int]
    ) -> list[tuple[Solution, bool]]:
        some = strengths[games]
        small = solve_sphere_many(reduction.game, some, tol=controls.tol, ulps=ULPS)
        clock.lap("small problem")
        solutions = _recover(name, reduction, small, some, controls.tol, clock)
        for i, solution in enumerate(solutions):
            if solution.status is not Status.INACCURATE:
                continue
            gamma, doubtful = float(some[i]), small[i]
            other = second_opinion(reduction, gamma, doubtful)
            if other.value < doubtful.value:
                clock.lap("small problem")
                small.put(i, other)
                solutions[i] = recover(name, reduction, other, gamma, controls.tol, clock)
        return [
            (solution, not reduction.squared or trustworthy(reduction, small[i], solution))
            for i, solution in enumerate(solutions)
        ]

    return reduce_and_solve(data, engine, len(gammas), attempt, clock)


def is_clear(rounding: Vector, value: Vector, tol: float, label_size: float) -> np.ndarray:
    """Where the values of games can stand in for losses measured on the data."""
    return (rounding <= _DIGITS * value) & (rounding <= _SHARE * tol * label_size)


def _recover(
    name: str,
    reduction: Reduction,
    small: SmallSolutions,
    gammas: Vector,
    tol: float,
    clock: Clock,
) -> list[Solution]:
    """From singular coordinates to predictors, their objectives and certificates."""
    data, game = reduction.data, reduction.game
    v = reduction.lift_many(small.x / small.s[:, None], small.fill / small.s)
    coef = data.coefficients(v, reduction.free_part(v, small.c / small.s))
    # At a pole rounding may have chosen c.
    c = np.where(small.unique & (small.c > 0.0), small.c, 1.0)
    rounding = reduction.roundings(
        v, s=small.s, c=c, nu=small.nu, value=small.value, filled=small.fill > 0.0
    )
    clear = is_clear(rounding, small.value, tol, game.yy)
    clock.lap("recovery")
    found: dict[int, Solution] = {}
    for some in column_chunks(data, np.flatnonzero(~clear)):
        linear = data.matrix.apply(np.ascontiguousarray(coef[:, some]))
        clock.lap("recovery", 1.0)
        for column, i in enumerate(some.tolist()):
            parts = np.ascontiguousarray(v[:, i]), np.ascontiguousarray(coef[:, i])
            gamma, predictions = float(gammas[i]), linear[:, column]
            found[i] = judge(name, reduction, small[i], gamma, tol, clock, *parts, predictions)
    rows = np.flatnonzero(clear)
    if len(rows):
        found |= _from_values(name, reduction, small, gammas, tol, clock, rows, coef, rounding)
    return [found[i] for i in range(len(gammas))]


def _from_values(
    name: str,
    reduction: Reduction,
    small: SmallSolutions,
    gammas: Vector,
    tol: float,
    clock: Clock,
    rows: np.ndarray,
    coef: Array,
    rounding: Vector,
) -> dict[int, Solution]:
    """Solutions whose objectives are the values of the reduced game."""
    data, game = reduction.data, reduction.game
    alpha = priced_norms(coef, data.cost) / gammas
    intercept = data.best_intercepts(coef, alpha)
    bound, slope = dual_bounds(game, gammas, small), stationarities(game, gammas, small)
    label_size = data.loss(data.y)
    predictors = np.ascontiguousarray(coef.T)
    clock.lap("recovery", float(data.fit_intercept))
    found = {}
    for i in rows.tolist():
        gamma, objective = float(gammas[i]), float(small.value[i])
        certificate = build_certificate(
            game,
            objective=objective,
            bound=float(bound[i]),
            kkt_residual=float(slope[i]),
            bound_rounding=float(rounding[i]),
            # The value belongs to perturbed data, and so does the predictor.
            objective_rounding=2 * float(rounding[i]),
            label_size=label_size,
        )
        found[i] = Solution(
            coef=predictors[i],
            intercept=float(intercept[i]),
            alpha=float(alpha[i]),
            multiplier=gamma * float(small.nu[i]) / 4,
            objective=objective,
            status=status_of(
                reduction,
                small.outcome[i],
                gamma * float(alpha[i]),
                certificate.relative_gap,
                tol,
            ),
            solver=name,
            certificate=certificate,
            stats=clock.stats(int(small.steps[i])),
        )
    return found
