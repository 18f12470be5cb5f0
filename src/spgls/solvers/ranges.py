"""Games against the worst population of a range: solved, measured at every end, certified.

The worst mixture of the ends is a population, and the predictor is its best answer; so it is
recovered like any other. Its objective is the largest over the ends, each measured on the data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf

import numpy as np

from spgls.base.types import EPS, Array, Vector
from spgls.game.providers import Population, PopulationRange, priced_norm
from spgls.population import PopulationSolution, solve_population
from spgls.population.groups import Groups, Reached
from spgls.population.minimax import solve_worst
from spgls.reduction import Reduction
from spgls.reduction.data import GameData
from spgls.reduction.game_sums import GameSums
from spgls.reduction.reduced import ReducedGame
from spgls.solvers.by_reduction import (
    Engine,
    better,
    counted_reductions,
    known_to_squares,
    on_trusted_reductions,
    reduced,
    slope_of,
    slope_of_sums,
    solve_by_reduction,
    solve_task,
    trusted,
)
from spgls.solvers.recover import Clock, Mask, Task, loss_of, loss_rounding, recover
from spgls.solvers.small import ULPS, Optima, as_game
from spgls.solvers.solution import End, Solution, Status, status_of
from spgls.sphere import Certificate, build_certificate
from spgls.sphere.certificate import EVERY, SEEN

__all__ = ["RangeTask", "certify_against_range", "ends_of", "solve_range"]

#: Objectives that differ by no more than this share are the same.
_SAME = 1e-9
#: Gap to which a certificate asked for on its own is proved.
_TIGHT = 1e-10


@dataclass(frozen=True, eq=False)
class RangeTask:
    """A game against a range of populations, given to one solver.

    Attributes
    ----------
    name : str
        Name of the solver.
    data : GameData or GameSums
        The data of the game, or what its rows add up to.
    people : PopulationRange
        Whom the learner may meet.
    ridge : float
        Weight of the squared priced norm of the coefficients.
    tol : float
        Certified relative gap wanted.
    clock : Clock
        Counts what is spent.
    """

    name: str
    data: GameData | GameSums
    people: PopulationRange
    ridge: float
    tol: float
    clock: Clock = field(default_factory=Clock)


def solve_range(task: RangeTask, engine: Engine) -> Solution:
    """Find the predictor whose worst objective over the range is smallest.

    Parameters
    ----------
    task : RangeTask
        The game.
    engine : {"auto", "gram", "qr"}
        Which reduction.
    """
    return _solve(task, engine)[0]


def _solve(task: RangeTask, engine: Engine) -> tuple[Solution, Population]:
    """The solution, and the mixture of the ends that it is the best answer to."""
    if len(task.people.corners) == 1:
        return _solve_known(task, engine)
    found: list[tuple[Solution, Population]] = []

    def attempt(reduction: Reduction, _: np.ndarray) -> Mask:
        game, people = reduction.game, task.people
        small, mixture = _solve_small(game, people, task.ridge, task.tol)
        optima = Optima.of_populations(game, [Groups(mixture)], [small], task.ridge)
        task.clock.lap("small problem")
        one = Task(task.name, task.data, [mixture], task.ridge, task.tol, task.clock)
        (answer,), best = recover(one, reduction, optima)
        at = [_best_at(game, corner, task.ridge, task.tol) for corner in people.corners]
        task.clock.lap("small problem")
        measured = _Measured(task, reduction, answer.coef, answer.intercept)
        task.clock.lap("recovery", 0.0 if isinstance(task.data, GameSums) else 1.0)
        certificate = measured.certificate(
            bound=small.lower_bound,
            upper=small.upper,
            kkt_residual=float(optima.slope[0]),
            tol=task.tol,
        )
        status = answer.status
        if status is not Status.UNREPRESENTABLE:
            status = status_of(
                certificate.relative_gap,
                task.tol,
                small.outcome if task.data.layout.count else "least squares",
                otherwise=Status.INACCURATE if small.ended else Status.ITERATION_LIMIT,
            )
        solution = replace(
            answer,
            alpha=measured.reach / _strengths(people),
            objective=measured.objective,
            status=status,
            certificate=certificate,
            stats=task.clock.stats(small.steps),
            ends=measured.ends(at),
        )
        if isinstance(task.data, GameSums) and reduction.squared:
            (solution,) = known_to_squares(reduction, optima, [solution], best, task.tol)
            if not found or better(solution, found[-1][0]) is solution:
                found.append((solution, mixture))
            return np.array([found[-1][0].certificate.relative_gap <= task.tol])
        found.append((solution, mixture))
        return trusted(reduction, optima, [solution], best, task.tol)

    # Numbers beyond double precision show in what is returned.
    with np.errstate(all="ignore"):
        on_trusted_reductions(engine, 1, counted_reductions(task.data, task.clock), attempt)
    return found[-1]


def _solve_known(task: RangeTask, engine: Engine) -> tuple[Solution, Population]:
    """The same where the ends of every range are equal: a game against one population."""
    (known,) = task.people.corners
    game = as_game(known, task.ridge)
    one = Task(task.name, task.data, [game], task.ridge, task.tol, task.clock)
    (solution,) = solve_by_reduction(one, engine, solve_task)
    end = End(known, solution.objective, solution.objective, True)
    reach = priced_norm(solution.coef, task.data.layout.cost)
    return replace(solution, alpha=reach / _strengths(task.people), ends=(end,)), known


def _strengths(people: PopulationRange) -> Vector:
    """Ends of the range of strengths."""
    return np.unique([people.gamma.low, people.gamma.high])


def _solve_small(
    game: ReducedGame, people: PopulationRange, ridge: float, tol: float
) -> tuple[PopulationSolution, Population]:
    """The optimum of a reduced game, and the mixture it is the best answer to."""
    gammas, shares = _table(people.chain)
    # Rounding and recovery share the gap with the proof.
    small, weights = solve_worst(game, gammas, shares, ridge=ridge, tol=tol / 4, ulps=ULPS)
    return small, Population(tuple(gammas), tuple(weights @ shares)).merged()


def _table(populations: tuple[Population, ...]) -> tuple[Vector, Array]:
    """All strengths, increasing and infinity last, and their shares in each population."""
    finite = {gamma for one in populations for gamma in one.gammas if gamma < inf}
    gammas = [*sorted(finite), inf]
    shares = np.zeros((len(populations), len(gammas)))
    for row, one in zip(shares, populations, strict=True):
        for gamma, share in zip(one.gammas, one.shares, strict=True):
            row[gammas.index(gamma)] += share
    return np.array(gammas), shares


def _best_at(game: ReducedGame, population: Population, ridge: float, tol: float) -> float:
    """The best objective against one population."""
    gammas, shares = population.gammas, population.shares
    found = solve_population(
        game, gammas, shares, ridge=ridge, tol=tol / 4, certify=False, ulps=ULPS
    )
    return found.value


def ends_of(
    people: PopulationRange, objectives: Sequence[float], best: Sequence[float], rounding: float
) -> tuple[End, ...]:
    """How a predictor fares at every end of a range.

    Parameters
    ----------
    people : PopulationRange
        The range.
    objectives, best : sequence of float
        Objective there of the predictor, and of the best one.
    rounding : float
        What rounding can have done to the former.
    """
    worst = max(objectives)
    least = worst - max(_SAME * worst, 2 * rounding)
    ends = zip(people.corners, objectives, best, strict=True)
    return tuple(End(who, own, there, own >= least) for who, own, there in ends)


class _Measured:
    """A predictor's objective against the population at every end, measured on the data."""

    #: Residual of the optimality conditions, by averages over the groups.
    slope: Callable[[Reached], float]

    def __init__(
        self, task: RangeTask, reduction: Reduction, coef: Vector, intercept: float
    ) -> None:
        data = task.data
        self._task, self._reduction = task, reduction
        self.reach = priced_norm(coef, data.layout.cost)
        at = [Groups(corner).at(self.reach) for corner in task.people.corners]
        if isinstance(data, GameSums):
            errors = data.errors(coef, intercept)
            losses, rounding = zip(*(data.loss(errors, one.each()) for one in at), strict=True)
            size = reduction.reach_of(coef, intercept) if self.reach == inf else 0.0
            rounding = tuple(
                own + one.hidden(size, loss)
                for own, one, loss in zip(rounding, at, losses, strict=True)
            )
            self.slope = partial(slope_of_sums, data, coef=coef, errors=errors, ridge=task.ridge)
        else:
            # As a block even if it is one column: see recover.
            said = data.matrix.apply(coef[:, None])[:, 0] + intercept
            losses = tuple(loss_of(data, one, said) for one in at)
            rounding = tuple(
                loss_rounding(reduction, one, coef, intercept, loss)
                for one, loss in zip(at, losses, strict=True)
            )
            self.slope = partial(slope_of, data, coef=coef, prediction=said, ridge=task.ridge)
        penalty = at[0].penalty(task.ridge)
        self._objectives = [loss + penalty for loss in losses]
        # By NumPy, to which what is not a number is the largest.
        self.objective = float(np.max(self._objectives))
        self._rounding = float(np.max(rounding)) + 4 * EPS * penalty

    def ends(self, best: list[float]) -> tuple[End, ...]:
        """How the predictor fares at every end, where the best one has a known objective."""
        return ends_of(self._task.people, self._objectives, best, self._rounding)

    def certificate(
        self, *, bound: float, upper: float, kkt_residual: float, tol: float
    ) -> Certificate:
        """How far from the best it can be."""
        data = self._task.data
        return build_certificate(
            self._reduction.game,
            objective=self.objective,
            bound=bound,
            upper=upper,
            kkt_residual=kkt_residual,
            bound_rounding=0.0,
            objective_rounding=self._rounding,
            label_size=data.label_size,
            unit=data.unit(self._reduction.game.yy),
            tol=tol,
            among=SEEN if data.layout.avoids_null else EVERY,
        )


@np.errstate(all="ignore")
def certify_against_range(
    data: GameData | GameSums,
    coef: Vector,
    intercept: float,
    people: PopulationRange,
    ridge: float,
) -> Certificate:
    """Judge any predictor by the best worst objective over a range.

    The residual of the optimality conditions is that against the worst mixture of the ends.
    """
    task = RangeTask("spectral", data, people, ridge, _TIGHT)
    best, mixture = _solve(task, "auto")
    reduction = reduced(data, "qr" if "qr" in data.reductions else "gram")
    assert reduction is not None
    measured = _Measured(task, reduction, coef, intercept)
    reached = Groups(mixture).at(measured.reach)
    proof = measured.certificate(
        bound=best.certificate.lower_bound,
        upper=inf,
        kkt_residual=measured.slope(reached),
        tol=inf,
    )
    return replace(proof, kind=best.certificate.kind)
