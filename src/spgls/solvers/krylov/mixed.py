"""Games against a population, or with a ridge, on a Krylov space that grows to hold the optimum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import inf, isfinite

import numpy as np

from spgls.base.threads import one_blas_thread
from spgls.base.types import EPS, Array, Vector
from spgls.game.providers import Population
from spgls.population import PopulationSolution, solve_population
from spgls.population.section import Sections
from spgls.reduction import KrylovSpace, reduce_krylov
from spgls.reduction.ritz import certainly_singular
from spgls.solvers.iterative.curvature import Curvature
from spgls.solvers.iterative.interpolate import null_vector
from spgls.solvers.iterative.iterate import Run
from spgls.solvers.iterative.lowest import LOWEST_PRODUCTS, LowestPair, lowest_pair
from spgls.solvers.krylov.branch import Place, Proof, prove_population
from spgls.solvers.krylov.matrices import Matrices, matrices_at
from spgls.solvers.krylov.predictor import Measured, measure_predictor
from spgls.solvers.krylov.projected import Schedule, restart_from
from spgls.solvers.krylov.truncation import Truncation
from spgls.solvers.recover import representable
from spgls.solvers.small import ULPS
from spgls.solvers.solution import Solution, Status, Step, status_of
from spgls.sphere.certificate import Certificate
from spgls.sphere.operator import SphereProblem

__all__ = ["solve_mixed_krylov"]


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
    growth, found = _Growth(run, population, ridge), None
    with np.errstate(all="ignore"), one_blas_thread(run.data.matrix.threaded):
        try:
            _grow(growth, space, larger)
            found = growth.solution()
            while growth.may_go_on(found):
                # The optimum may have a norm at which the span does not show it yet.
                _grow(growth, growth.reduction.space, larger)
                again = growth.solution()
                found = min(again, found, key=lambda one: one.certificate.gap)
                found = replace(found, stats=again.stats, history=again.history)
            return found
        except ArithmeticError:
            # Numbers that double precision does not hold.
            return found or growth.failure()


def _grow(growth: _Growth, space: KrylovSpace, larger: Callable[[Array], KrylovSpace]) -> None:
    """Extend a space, or a larger one, until it holds the optimum."""
    growth.run(space)
    small = growth.small
    if small is not None and small.nu < 0.0 and growth.status is None:
        # A multiplier below zero is right only if no eigenvalue below it was left out.
        pair = growth.lowest(small.nu)
        if pair.value + small.nu <= pair.error:
            growth.run(larger(pair.vector[:, None]))
        else:
            growth.compare(pair.value - pair.error)


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
        self._pair: LowestPair | None = None
        self._least = 0

    def may_go_on(self, found: Solution) -> bool:
        """Whether a larger space may prove what this one does not; it is asked for then."""
        space = self.reduction.space
        self._least = 2 * space.count
        proved = found.certificate.relative_gap <= self._run.controls.tol
        ended = self.status is not None or space.width == 0 or space.full or space.restarts > 0
        return not (proved or ended)

    def run(self, space: KrylovSpace) -> None:
        """Extend a space until it holds the optimum, or a limit comes first."""
        schedule, callback = Schedule(), self._run.controls.callback
        self.small = None
        self._project(space)
        looked = space.count
        if looked and looked >= self._least:
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
            if ended or self.status:
                return
            if self.excess <= self.aim and space.count >= self._least:
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
            singular=certainly_singular(self._run.data),
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

    def lowest(self, nu: float) -> LowestPair:
        """What is known of the smallest eigenvalue of the squared data."""
        if self._pair is None:
            run = self._run
            generator, most = run.controls.generator(), min(run.limit, LOWEST_PRODUCTS)
            self._pair = lowest_pair(_Squared(run.problem), generator, nu, most)
        return self._pair

    def solution(self) -> Solution:
        """What the last reduction leads to, measured on the data, and what no other can reach."""
        run, small = self._run, self._optimum(certify=False)
        found = measure_predictor(run, self._lift(small), self.population, self.ridge)
        allowed = run.controls.tol * run.problem.yy
        place = Place(found.t, found.loss, max(allowed - found.rounding, allowed / 8))
        return self._told(found, self._prove(place), small)

    def failure(self) -> Solution:
        """No coefficients at all, where nothing better is known."""
        v = np.zeros(self._run.problem.size - 1)
        found = measure_predictor(self._run, v, self.population, self.ridge)
        self.status = Status.FAILED
        return self._told(found, Proof(0.0, "proved", 0), None)

    def _told(self, found: Measured, proof: Proof, small: PopulationSolution | None) -> Solution:
        run, data, yy = self._run, self._run.data, self._run.problem.yy
        lower = min(proof.lower, found.loss)
        gap = found.loss + found.rounding - lower
        if not isfinite(gap):
            lower, gap = 0.0, inf
        # With nothing left to explain there is no unit: rounding of the labels is as good as zero.
        nothing = yy == 0.0 and gap <= 64 * EPS * data.loss(data.y)
        certificate = Certificate(
            lower_bound=lower,
            gap=gap,
            relative_gap=0.0 if nothing else gap / yy if yy > 0.0 else inf,
            kkt_residual=found.slope,
            kind=proof.kind,
        )
        return Solution(
            coef=found.coef,
            intercept=found.intercept,
            alpha=found.t / np.array(self.population.gammas),
            multiplier=0.0 if small is None else found.a * small.nu,
            objective=found.loss,
            status=status_of(
                certificate.relative_gap,
                run.controls.tol,
                "unique" if small is None else small.outcome,
                representable=small is None or representable(self.reduction.game, found.t),
                otherwise=self.status or Status.INACCURATE,
            ),
            solver=run.name,
            certificate=certificate,
            stats=run.stats(self.steps),
            history=tuple(self.history),
        )

    def _lift(self, small: PopulationSolution) -> Vector:
        """Coefficients of an optimum; nothing where they are not numbers."""
        reduction = self.reduction
        if small.fill > 0.0 and reduction.game.nullity:
            squared = _Squared(self._run.problem)
            null = null_vector(squared.product, squared.size, self._run.limit)
            reduction = replace(reduction, null=null)
        v = reduction.lift(small.x, small.fill)
        return v if np.isfinite(v).all() else np.zeros_like(v)

    def _prove(self, place: Place) -> Proof:
        """A lower bound of the loss of all predictors."""
        if not place.loss > place.gap > 0.0:
            # Squares are not negative.
            return Proof(0.0, "proved", 0)
        run, truncation, reduction = self._run, self.truncation, self.reduction
        game, data = reduction.game, run.data
        sections = Sections(game, truncation.gammas, truncation.shares, self.ridge, ULPS)
        apart = (1.0 - run.prover.fresh.rulers.down) * data.loss(data.y - data.z)
        sides = np.stack([game.eta, game.zeta]) * game.sigma

        def lift(nu: Vector) -> tuple[Array, Array]:
            y, z = (reduction.lift_span((side / (game.d + nu[:, None])).T) for side in sides)
            return y, z

        def measure(curvature: Curvature | None, nu: Vector) -> Matrices:
            floor = 0.0
            if (nu <= 0.0).any() and not run.prover.can_square and self.status is None:
                floor = max(self.lowest(float(nu.min())).floor, 0.0)
            found = matrices_at(run.prover, nu, lift, curvature, floor)
            run.problem.passes += found.reads
            return found

        size = run.prover.fresh.rulers.whole**2 or place.loss / float(truncation.gammas.min())

        def proved(curvature: Curvature | None) -> Proof:
            return prove_population(sections, place, apart, size, partial(measure, curvature))

        squared = run.prover.squared
        proof = proved(run.prover.curvature if squared else None)
        if proof.lower < place.loss - place.gap and run.prover.can_square and not squared:
            # Multipliers above zero were not enough.
            proof = max(proof, proved(run.prover.curvature), key=lambda found: found.lower)
        return proof if run.prover.kind == "proved" else proof._replace(kind="estimated")
