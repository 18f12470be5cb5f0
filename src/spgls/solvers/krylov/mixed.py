"""Games against a population, or with a ridge, on a Krylov space that grows to hold the optimum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from spgls.base.threads import one_blas_thread
from spgls.base.types import Array
from spgls.game.providers import Population
from spgls.population import PopulationSolution, solve_population
from spgls.population.groups import Groups
from spgls.reduction import KrylovSpace, reduce_krylov
from spgls.solvers.iterative.interpolate import null_vector
from spgls.solvers.iterative.iterate import Run
from spgls.solvers.iterative.lowest import lowest_pair
from spgls.solvers.krylov.projected import Schedule, restart_from
from spgls.solvers.krylov.truncation import Truncation
from spgls.solvers.recover import Clock, Task, recover
from spgls.solvers.small import ULPS, Optima
from spgls.solvers.solution import Solution, Status, Step
from spgls.sphere.operator import SphereProblem

__all__ = ["solve_mixed_krylov"]

#: Limit on products spent on the smallest eigenvalue of the data.
_LOWEST_PRODUCTS = 200


def solve_mixed_krylov(
    run: Run,
    space: KrylovSpace,
    larger: Callable[[Array], KrylovSpace],
    population: Population,
    ridge: float,
) -> Solution:
    """Grow a space until it holds the optimum of a game against a population.

    Parameters
    ----------
    run : Run
        What the solve carries, at any strength.
    space : KrylovSpace
        A space of ``A'A`` started at ``A'[y, z]``; it grows.
    larger : callable
        Makes an empty space that is started at some columns too.
    population : Population
        Who the providers are.
    ridge : float
        Weight of the squared priced norm of the coefficients in the learner's objective.
    """
    growth = _Growth(run, population, ridge)
    with one_blas_thread(run.data.matrix.threaded):
        growth.run(space)
        small = growth.small
        if small is not None and small.nu < 0.0 and growth.status is None:
            # A multiplier below zero is right only if no eigenvalue below it was left out.
            generator, most = run.controls.generator(), min(run.limit, _LOWEST_PRODUCTS)
            pair = lowest_pair(_Squared(run.problem), generator, small.nu, most)
            if pair.value + small.nu <= pair.error:
                growth.run(larger(pair.vector[:, None]))
            else:
                growth.compare(pair.value - pair.error)
        return growth.solution()


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

    def __init__(self, run: Run, population: Population, ridge: float) -> None:
        self._run, self.population, self.ridge = run, population, ridge
        self.aim = run.aim / 4
        self.history: list[Step] = []
        self.steps = 0
        self.status: Status | None = None
        self.small: PopulationSolution | None = None
        self.excess = 0.0
        self.known: dict[int, float] = {}

    def run(self, space: KrylovSpace) -> None:
        """Extend a space until it holds the optimum, or a limit comes first."""
        schedule, callback = Schedule(), self._run.controls.callback
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
            if not ended and self.steps >= self._run.limit:
                self.status = Status.ITERATION_LIMIT
            forced = ended or self.status is not None or space.full or space.count >= 2 * looked
            if not forced and (self._still_far(space) or not schedule.due(space)):
                continue
            looked = space.count
            self._project(space)
            step = self._search()
            if ended or self.status or self.excess <= self.aim:
                return
            if callback is not None and callback(step):
                # What is not known of the spectrum is not assumed.
                self.status = Status.STOPPED
                self.compare(0.0)
                return

    def compare(self, lowest: float) -> None:
        """Compare the span with all of space, where no eigenvalue is below ``lowest``."""
        assert self.small is not None
        self.excess = self.truncation.anywhere(self.small, lowest, self.known)

    def _project(self, space: KrylovSpace) -> None:
        self.reduction = reduce_krylov(self._run.data, space)
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
        self.small = small = self._optimum(certify=False)
        lowest = 0.0 if self.status else truncation.guess_lowest(small)
        self.excess = truncation.at_optimum(small, lowest)
        # The other norms are looked at where this one will do, and before anything is returned or
        # forgotten.
        if self.excess <= self.aim or self.status or self.reduction.space.full:
            self.compare(lowest)
        residual, passes = truncation.residual(small), self._run.problem.passes
        step = Step(self.steps, small.value, residual, passes, self._run.seconds)
        self.history.append(step)
        return step

    def _optimum(self, *, certify: bool) -> PopulationSolution:
        """The game on the span."""
        truncation = self.truncation
        return solve_population(
            truncation.game,
            truncation.gammas,
            truncation.shares,
            ridge=self.ridge,
            tol=self._run.controls.tol / 4,
            certify=certify,
            ulps=ULPS,
        )

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

    def solution(self) -> Solution:
        """What the last reduction leads to, its optimum proved, and what only we know."""
        run, small = self._run, self._optimum(certify=True)
        reduction = replace(self.reduction, truncation=self.excess)
        if small.fill > 0.0 and reduction.game.nullity:
            squared = _Squared(run.problem)
            reduction = replace(
                reduction, null=null_vector(squared.product, squared.size, run.limit)
            )
        # The loss is measured on the data.
        run.problem.passes += 1.0
        games = [self.population]
        task = Task(run.name, run.data, games, self.ridge, run.controls.tol, Clock())
        optima = Optima.of_populations(reduction.game, [Groups(games[0])], [small], self.ridge)
        (solution,), _ = recover(task, reduction, optima)
        game = reduction.game
        top = game.top
        unit = top * (np.sqrt(game.yy) + np.sqrt(game.zz))
        missing = self.history[-1].residual / unit if self.history and unit > 0.0 else 0.0
        proof = replace(
            solution.certificate,
            kkt_residual=float(np.hypot(solution.certificate.kkt_residual, missing)),
            # The span was compared with all of space on a grid of norms, not on intervals.
            kind="estimated",
        )
        ended = self.status
        if proof.relative_gap <= run.controls.tol:
            ended = None
        elif ended is None:
            # Rounding spoiled it, and the estimate too: certain is that losses are not negative.
            gap = solution.objective + proof.gap
            unit = gap / proof.gap if proof.gap > 0.0 else 1.0
            proof = replace(proof, lower_bound=0.0, gap=gap, relative_gap=proof.relative_gap * unit)
        return replace(
            solution,
            certificate=proof,
            status=ended or solution.status,
            stats=run.stats(self.steps),
            history=tuple(self.history),
        )
