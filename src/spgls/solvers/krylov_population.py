"""Games against a population, or with a ridge, on a Krylov space that grows to hold the optimum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from time import perf_counter
from typing import cast

import numpy as np

from spgls._threads import one_blas_thread
from spgls._types import Array
from spgls.data import GameData
from spgls.population import PopulationSolution, solve_population
from spgls.providers import Population
from spgls.reduction import KrylovSpace, reduce_krylov
from spgls.small import ULPS, solve_small
from spgls.solvers.interpolate import null_vector
from spgls.solvers.iterate import Controls
from spgls.solvers.lowest import lowest_pair
from spgls.solvers.projected import Schedule, restart_from
from spgls.solvers.recover import Clock, Task, recover
from spgls.solvers.solution import Solution, Stats, Status, Step
from spgls.solvers.truncation import Truncation
from spgls.sphere.operator import SphereProblem

__all__ = ["solve_mixed_krylov"]

#: Limit on products spent on the smallest eigenvalue of the data.
_LOWEST_PRODUCTS = 200


def solve_mixed_krylov(
    name: str,
    data: GameData,
    problem: SphereProblem,
    make_space: Callable[[Array | None], KrylovSpace],
    population: Population,
    ridge: float,
    controls: Controls,
    limit: int,
    start: float,
) -> Solution:
    """Grow a space until it holds the optimum of a game against a population.

    Parameters
    ----------
    name : str
        Name of the solver.
    data : GameData
        The data of the game.
    problem : SphereProblem
        Counts the reads of the data.
    make_space : callable
        Makes an empty space of ``A'A`` started at ``A'[y, z]`` and at columns given to it.
    population : Population
        Who the providers are.
    ridge : float
        Weight of the squared priced norm of the coefficients in the learner's objective.
    controls : Controls
        Tolerance, limit, callback.
    limit : int
        Limit on products.
    start : float
        When the solve began.
    """
    growth = _Growth(data, problem, population, ridge, controls, limit, start)
    with one_blas_thread(data.matrix.threaded):
        _grow(growth, problem, make_space, controls, limit)
        return growth.solution(name)


def _grow(
    growth: _Growth,
    problem: SphereProblem,
    make_space: Callable[[Array | None], KrylovSpace],
    controls: Controls,
    limit: int,
) -> None:
    growth.run(make_space(None))
    small = growth.small
    if small is not None and small.nu < 0.0 and growth.status is None:
        # A multiplier below zero is right only if no eigenvalue below it was left out.
        squared = cast(SphereProblem, _Squared(problem))
        pair = lowest_pair(squared, controls.generator(), small.nu, min(limit, _LOWEST_PRODUCTS))
        if pair.value + small.nu <= pair.error:
            growth.run(make_space(pair.vector[:, None]))
        else:
            lowest = pair.value - pair.error
            growth.excess = growth.truncation.anywhere(small, lowest, growth.known)


class _Squared:
    """``A'A`` as an operator on coefficients; its products are counted."""

    def __init__(self, problem: SphereProblem) -> None:
        self._problem = problem
        self.size = problem.size - 1

    def product(self, v: Array) -> Array:
        """``A'A v``."""
        self._problem.passes += 1.0
        return self._problem.matrix.gram(v)


class _Growth:
    """A game on growing spaces: where it stands, and the way there."""

    def __init__(
        self,
        data: GameData,
        problem: SphereProblem,
        population: Population,
        ridge: float,
        controls: Controls,
        limit: int,
        start: float,
    ) -> None:
        self.data, self.problem, self.population = data, problem, population
        self.ridge, self.controls, self.limit, self.start = ridge, controls, limit, start
        self.aim = controls.aim(problem.yy) / 4
        self.history: list[Step] = []
        self.steps = 0
        self.status: Status | None = None
        self.small: PopulationSolution | None = None
        self.excess = 0.0
        self.known: dict[int, float] = {}

    def run(self, space: KrylovSpace) -> None:
        """Extend a space until it holds the optimum, or a limit comes first."""
        schedule = Schedule()
        self.small = None
        self._project(space)
        looked = space.count
        if looked:
            # Others have grown it already.
            self._search()
            if space.width == 0 or self.excess <= self.aim:
                return
        while space.width:
            restart_from(space, self._wanted())
            space.extend()
            self.steps += 1
            ended = space.width == 0
            if not ended and self.steps >= self.limit:
                self.status = Status.ITERATION_LIMIT
            forced = ended or self.status is not None or space.full or space.count >= 2 * looked
            if not forced and (self._still_far(space) or not schedule.due(space)):
                continue
            looked = space.count
            self._project(space)
            step = self._search()
            if ended or self.status or self.excess <= self.aim:
                return
            if self.controls.callback is not None and self.controls.callback(step):
                self._stop()
                return

    def _stop(self) -> None:
        """End early: what is not known of the spectrum is not assumed."""
        self.status = Status.STOPPED
        if self.small is not None:
            self.excess = self.truncation.anywhere(self.small, 0.0, self.known)

    def _project(self, space: KrylovSpace) -> None:
        self.reduction = reduce_krylov(self.data, space)
        factor = self.reduction.residual_factor()
        self.truncation = Truncation(
            self.reduction.game,
            factor,
            self.population,
            self.ridge,
            pure=space.starts.shape[1] == 2,
        )

    def _search(self) -> Step:
        """Solve the game on the span, and compare it with all of space."""
        truncation = self.truncation
        self.small = small = solve_population(
            truncation.game,
            truncation.gammas,
            truncation.shares,
            ridge=self.ridge,
            tol=self.controls.tol / 4,
            certify=False,
            ulps=ULPS,
        )
        lowest = 0.0 if self.status else truncation.guess_lowest(small)
        self.excess = truncation.at_optimum(small, lowest)
        # The other norms are looked at where this one will do, and before anything is returned or
        # forgotten.
        if self.excess <= self.aim or self.status or self.reduction.space.full:
            self.excess = truncation.anywhere(small, lowest, self.known)
        residual = truncation.residual(small)
        seconds = perf_counter() - self.start
        step = Step(self.steps, small.value, residual, self.problem.passes, seconds)
        self.history.append(step)
        return step

    def _wanted(self) -> list[Array]:
        """What a restarted space has to go on with."""
        if self.small is None:
            return []
        both = (self.small.x, self.truncation.worst)
        return [self.reduction.vectors @ x for x in both if x is not None]

    def _still_far(self, space: KrylovSpace) -> bool:
        """Whether the system at the last optimum is not solved yet; no search is worth it then."""
        small = self.small
        if space.restarts:
            # What is outside the span of many columns is dear to know: once a cycle.
            return True
        if small is None or small.t == 0.0:
            return False
        a, y, z = self.truncation.weights(small.t)
        above = small.nu + self.truncation.guess_lowest(small)
        if small.nu < 0.0 or above <= 0.0:
            return False
        starts = space.starts
        shifted = space.projected + small.nu * np.eye(space.count)
        right = y * starts[:, 0] - z * starts[:, 1]
        h: Array = np.linalg.solve(shifted, right).astype(np.float64)
        return a * space.residual(h) ** 2 / above > self.aim

    def solution(self, name: str) -> Solution:
        """What direct solvers would make of the last reduction, and what only we know."""
        reduction = replace(self.reduction, truncation=self.excess)
        if self.small is not None and self.small.fill > 0.0 and reduction.game.nullity:
            null = null_vector(_Squared(self.problem).product, self.problem.size - 1, self.limit)
            reduction = replace(reduction, null=null)
        task = Task(name, self.data, [self.population], self.ridge, self.controls.tol, Clock())
        optima = solve_small(reduction.game, task.games, self.ridge, task.tol)
        (solution,), _ = recover(task, reduction, optima)
        game = reduction.game
        top = float(game.sigma.max()) if game.size else 0.0
        unit = top * (np.sqrt(game.yy) + np.sqrt(game.zz))
        missing = self.history[-1].residual / unit if self.history and unit > 0.0 else 0.0
        proof = replace(
            solution.certificate,
            kkt_residual=float(np.hypot(solution.certificate.kkt_residual, missing)),
            # The span was compared with all of space on a grid of norms, not on intervals.
            kind="estimated",
        )
        status = solution.status
        if self.status is not None and proof.relative_gap > self.controls.tol:
            status = self.status
        # One pass more for the recovery: the loss is measured on the data.
        passes, seconds = self.problem.passes + 1.0, perf_counter() - self.start
        return replace(
            solution,
            certificate=proof,
            status=status,
            stats=Stats(passes, self.steps, seconds),
            history=tuple(self.history),
        )
