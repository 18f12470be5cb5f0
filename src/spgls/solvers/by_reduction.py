"""Reduce the data, solve the small games, recover predictors: what direct solvers share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import inf, isfinite
from typing import Literal, TypeAlias, TypeVar

import numpy as np

from spgls.base.threads import one_numpy_thread
from spgls.base.types import EPS, Vector
from spgls.game.providers import Population, priced_norm
from spgls.population.groups import Groups, Reached
from spgls.reduction import Reduction, reduce_spectral
from spgls.reduction.data import GameData
from spgls.reduction.game_sums import Errors, GameSums
from spgls.reduction.layout import Layout, times
from spgls.reduction.reduced import ReducedGame
from spgls.solvers.recover import (
    Clock,
    Mask,
    Task,
    loss_of,
    loss_rounding,
    recover,
    squares_suffice,
)
from spgls.solvers.small import Optima, solve_small
from spgls.solvers.solution import Solution, Status
from spgls.sphere import Certificate, build_certificate

__all__ = [
    "Engine",
    "better",
    "certify_predictor",
    "counted_reductions",
    "known_to_squares",
    "on_trusted_reductions",
    "reduced",
    "slope_of",
    "slope_of_sums",
    "solve_by_reduction",
    "solve_task",
    "trusted",
]

Engine = Literal["auto", "gram", "qr"]
#: Solves games, given as a task, on a reduced game.
SmallSolver: TypeAlias = Callable[[ReducedGame, Task], Optima]
#: Reduces by squares or by a triangular factor; None where squares leave a rank undecided.
ReduceSums: TypeAlias = Callable[[Literal["gram", "qr"]], Reduction | None]

#: Coefficients beyond this average of ``s^2`` are so large that rounding decides them.
_FAR = 1e-12
#: Gap to which a certificate asked for on its own is proved, and that above which it is not called
#: a proof, although its bound holds.
_TIGHT, _PROVED = 1e-10, 1e-8

#: Decompositions of more columns than this are for several threads.
_SEVERAL = 128
#: Share of the labels that squares can tell from nothing.
_UNEXPLAINED = 1e-7

_Reduction = TypeVar("_Reduction", bound=Reduction)


def on_trusted_reductions(
    engine: Engine,
    games: int,
    reduce: Callable[[Literal["gram", "qr"]], _Reduction | None],
    attempt: Callable[[_Reduction, np.ndarray], Mask],
) -> None:
    """Attempt games on squared data, and again without squaring it where that was not enough.

    Parameters
    ----------
    engine : {"auto", "gram", "qr"}
        Which reduction; ``"auto"`` tries the first.
    games : int
        How many games there are.
    reduce : callable
        Makes a reduction; None where squaring the data leaves a rank undecided.
    attempt : callable
        Solves games, named by their numbers, on a reduction, and says with which of them it can be
        trusted.
    """
    left = np.arange(games)
    for name in _ENGINES[engine == "qr" :]:
        reduction = reduce(name)
        if reduction is None:
            continue
        trusted = attempt(reduction, left)
        left = left[~trusted]
        if engine == name or not len(left):
            return


_ENGINES: tuple[Literal["gram", "qr"], ...] = ("gram", "qr")


def solve_by_reduction(
    task: Task,
    engine: Engine,
    small_solver: SmallSolver,
    stage: str = "small problem",
    sums: ReduceSums | None = None,
) -> tuple[Solution, ...]:
    """Solve every game of a task.

    Parameters
    ----------
    task : Task
        The games.
    engine : {"auto", "gram", "qr"}
        Which reduction.
    small_solver : callable
        Solves reduced games.
    stage : str
        Under what name its time is counted.
    sums : callable, optional
        Makes a reduction from sums of the data, where somebody has added it up already.
    """
    found: dict[int, Solution] = {}

    def attempt(reduction: Reduction, which: np.ndarray) -> Mask:
        some = task.some(which.tolist())
        optima = small_solver(reduction.game, some)
        task.clock.lap(stage)
        solutions, best = recover(some, reduction, optima)
        if isinstance(task.data, GameSums) and reduction.squared:
            solutions = known_to_squares(reduction, optima, solutions, best, task.tol)
            for i, solution in zip(which.tolist(), solutions, strict=True):
                found[i] = better(solution, found.get(i))
            return np.array([found[i].certificate.relative_gap <= task.tol for i in which.tolist()])
        found.update(zip(which.tolist(), solutions, strict=True))
        return trusted(reduction, optima, solutions, best, task.tol)

    large = task.data.layout.count > _SEVERAL
    # Numbers beyond double precision show in what is returned.
    with np.errstate(all="ignore"), one_numpy_thread(large):
        reduce = counted_reductions(task.data, task.clock, sums)
        on_trusted_reductions(engine, len(task.games), reduce, attempt)
    return tuple(found[i] for i in range(len(task.games)))


def counted_reductions(
    data: GameData | GameSums, clock: Clock, sums: ReduceSums | None = None
) -> ReduceSums:
    """Makes reductions of the data, or of sums of it, and counts what they cost."""

    def reduce(name: Literal["gram", "qr"]) -> Reduction | None:
        # An earlier game on the same data may have made it; sums are never read again.
        known = sums is not None or isinstance(data, GameSums) or name in data.reductions
        reduction = reduced(data, name, sums)
        clock.lap("reduction", 0.0 if known else 1.0)
        return reduction

    return reduce


def trusted(
    reduction: Reduction,
    optima: Optima,
    solutions: Sequence[Solution],
    best: Sequence[Reached],
    tol: float,
) -> Mask:
    """With which of its games a reduction can be trusted.

    Parameters
    ----------
    reduction : Reduction
        The reduction of their data.
    optima : Optima
        Their optima on it.
    solutions : sequence of Solution
        What they led to.
    best : sequence of Reached
        Averages over the groups there.
    tol : float
        Certified relative gap wanted.
    """
    pairs = zip(solutions, best, strict=True)
    sure = np.array([one.status.ok and at.a >= _FAR for one, at in pairs])
    k = np.array([at.k for at in best])
    return np.asarray(sure & squares_suffice(reduction, optima, k, tol))


def reduced(
    data: GameData | GameSums, engine: Literal["gram", "qr"], sums: ReduceSums | None = None
) -> Reduction | None:
    """A reduction of data, or of sums of it, made once and kept."""
    if isinstance(data, GameSums):
        return data.reduce(engine)
    return reduce_spectral(data, engine, None if sums is None else partial(sums, engine))


def known_to_squares(
    reduction: Reduction,
    optima: Optima,
    solutions: Sequence[Solution],
    best: Sequence[Reached],
    tol: float,
) -> list[Solution]:
    """Solutions that say no more than squares of the data can tell, where nothing else is left.

    Squares prove a loss, and may not tell whether other predictors have the same. Labels that are
    met exactly have an optimum where those that are not have none.

    Parameters
    ----------
    reduction, optima, solutions, best, tol
        As for :func:`trusted`.
    """
    settled = squares_suffice(reduction, optima, np.array([at.k for at in best]), tol)
    left = reduction.game.r_yy > _UNEXPLAINED * reduction.game.yy
    said = []
    for solution, sure in zip(solutions, settled.tolist(), strict=True):
        certain = {Status.SEVERAL_OPTIMA: sure, Status.UNATTAINED: left}
        told = certain.get(solution.status, True)
        said.append(solution if told else replace(solution, status=Status.OPTIMAL))
    return said


def better(new: Solution, old: Solution | None) -> Solution:
    """The better certified of two solutions."""
    if old is not None and old.certificate.relative_gap <= new.certificate.relative_gap:
        return old
    return new


@np.errstate(all="ignore")
def certify_predictor(
    data: GameData | GameSums, coef: Vector, intercept: float, who: float | Population, ridge: float
) -> Certificate:
    """Judge any predictor by the best value of the game.

    The bound is that of a solution of the same game; only the objective and the residual of the
    optimality conditions depend on the predictor, and both are measured on the data.
    """
    task = Task("spectral", data, [who], ridge, _TIGHT, Clock())
    best = solve_by_reduction(task, "auto", solve_task)[0].certificate
    reduction = reduced(data, "qr" if "qr" in data.reductions else "gram")
    assert reduction is not None
    reached = Groups(who).at(priced_norm(coef, data.layout.cost))
    penalty = reached.penalty(ridge)
    if isinstance(data, GameSums):
        errors = data.errors(coef, intercept)
        loss, rounding = data.loss(errors, reached.each())
        rounding += reached.hidden(reduction.reach_of(coef, intercept), loss)
        slope = slope_of_sums(data, reached, coef, errors, ridge)
    else:
        prediction = data.matrix.apply(coef) + intercept
        loss = loss_of(data, reached, prediction)
        rounding = loss_rounding(reduction, reached, coef, intercept, loss)
        slope = slope_of(data, reached, coef, prediction, ridge)
    return build_certificate(
        reduction.game,
        objective=loss + penalty,
        bound=best.lower_bound,
        kkt_residual=slope,
        bound_rounding=0.0,
        objective_rounding=rounding + 4 * EPS * penalty,
        label_size=data.label_size,
        unit=data.unit(reduction.game.yy),
        kind="proved" if best.relative_gap <= _PROVED else "estimated",
        among=best.among,
    )


def solve_task(game: ReducedGame, task: Task) -> Optima:
    """The games of a task, on a reduced game."""
    return solve_small(game, task.games, task.ridge, task.tol)


def slope_of(data: GameData, at: Reached, coef: Vector, prediction: Vector, ridge: float) -> float:
    """Norm of half the gradient of a predictor's loss, measured on the data, over its terms.

    Infinite where it is not known, since something left the range of double precision.
    """
    if data.layout.count == 0:
        return 0.0
    root = 1.0 if data.root_weight is None else data.root_weight
    error, gap = root * (prediction - data.y), root * (data.z - data.y)
    by_norm = at.by_norm(float(error @ error), float(error @ gap), float(gap @ gap)) + ridge
    pulled = data.priced.cross(at.a * error + at.u * gap)
    return _relative(data.layout, coef, pulled, by_norm, at)


def slope_of_sums(data: GameSums, at: Reached, coef: Vector, errors: Errors, ridge: float) -> float:
    """The same from sums alone."""
    layout, (error, gap) = data.layout, errors
    if layout.count == 0:
        return 0.0
    products = (data.inner(*pair) for pair in ((error, error), (error, gap), (gap, gap)))
    by_norm = at.by_norm(*products) + ridge
    pulled = data.products(at.a * error + at.u * gap)[layout.changeable]
    return _relative(layout, coef, times(layout.price, pulled), by_norm, at)


def _relative(layout: Layout, coef: Vector, pulled: Vector, by_norm: float, at: Reached) -> float:
    """Norm of a gradient over those of its two terms."""
    if not (at.t < inf and at.a > 0.0):
        # Both terms vanish in double precision, whether or not they cancel.
        return inf
    v = coef[layout.changeable] / (1.0 if layout.price is None else layout.price)
    norm = float(np.linalg.norm(pulled + by_norm * v))
    unit = float(np.linalg.norm(pulled) + abs(by_norm) * np.linalg.norm(v))
    if not isfinite(norm + unit):
        return inf
    return norm / unit if norm else 0.0
