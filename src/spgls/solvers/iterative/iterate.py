"""The one loop of all iterative solvers: limits, timing, history, callbacks, and when to stop."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from time import perf_counter

import numpy as np

from spgls.base.threads import one_blas_thread
from spgls.base.types import Vector
from spgls.reduction.data import GameData
from spgls.solvers.iterative.early import take_products
from spgls.solvers.iterative.finish import Ends, finish, proved_gap
from spgls.solvers.iterative.images import Span
from spgls.solvers.iterative.lowest import LOWEST_PRODUCTS, lowest_pair
from spgls.solvers.iterative.prove import Prover
from spgls.solvers.solution import Solution, Stats, Status, Step
from spgls.sphere.operator import SphereProblem, Targets

__all__ = ["Controls", "Iterate", "Run", "drive", "sphere_problem"]

#: A solver aims at this share of the gap allowed, so that rounding does not spoil the certificate.
_AIM = 0.5


@dataclass(frozen=True)
class Controls:
    """What a user asks of every solver.

    Attributes
    ----------
    tol : float
        Certified relative gap wanted, in units of R2.
    max_iter : int, optional
        Limit on iterations; each solver has its own default.
    rng : numpy Generator
        Source of randomness for the solvers that need it.
    callback : callable, optional
        Called with each :class:`Step`; a true result stops the solver.
    """

    tol: float = 1e-9
    max_iter: int | None = None
    rng: np.random.Generator | None = None
    callback: Callable[[Step], object] | None = None

    def generator(self) -> np.random.Generator:
        """The source of randomness, the same for every call by default."""
        return np.random.default_rng(0) if self.rng is None else self.rng

    def aim(self, label_size: float) -> float:
        """Gap at which an iterative method ends, for labels of this squared norm."""
        return _AIM * self.tol * label_size


@dataclass(frozen=True, eq=False)
class Iterate:
    """Where a method stands.

    Attributes
    ----------
    multiplier : float
        ``lambda`` of the sphere constraint.
    objective : float
        ``q(r)``.
    residual : float
        ``|(H + lambda I) r + g|``.
    point : callable
        Makes ``r``; called only for the iterate that is returned.
    lowest : float, optional
        Estimate of the smallest eigenvalue of ``H``, where the method has one: good enough to end
        by, not to prove by.
    floor : float
        What no eigenvalue of ``H`` is below, as far as a random start can tell; zero where nobody
        looked.
    final : bool
        The method cannot improve on this.
    several : bool
        Known to be one of several optima.
    exact : bool
        Whether the multiplier is more than a by-product of ``r``; then it proves what it proves,
        and the method ends by its own rule.
    status : Status, optional
        How the method ended, where it knows better than that it cannot improve.
    span : callable, optional
        ``r`` as a combination of a basis, where its products are known.
    """

    multiplier: float
    objective: float
    residual: float
    point: Callable[[], Vector]
    lowest: float | None = None
    floor: float = 0.0
    final: bool = False
    several: bool = False
    exact: bool = False
    status: Status | None = None
    span: Callable[[], Span | None] = lambda: None

    @property
    def gap(self) -> float:
        """Distance of the objective from the optimum, proved for a positive multiplier.

        Infinite for a method that ends by its own rule.
        """
        if self.exact:
            return np.inf
        return float(proved_gap(self.residual, self.multiplier + max(self.lowest or 0.0, 0.0)))


@dataclass(frozen=True, eq=False)
class Run:
    """What a solve carries with it from its start to its end.

    Attributes
    ----------
    name : str
        Name of the solver.
    data : GameData
        The game's data.
    problem : SphereProblem
        The sphere problem; it counts the reads of the data.
    controls : Controls
        What the user asks for.
    limit : int
        Limit on iterations, the user's or the method's own.
    start : float
        When the solve began.
    prover : Prover
        What bounds the losses of all predictors.
    stages : dict
        Seconds by stage, kept up to date by methods that work in stages.
    """

    name: str
    data: GameData
    problem: SphereProblem
    controls: Controls
    limit: int
    start: float
    prover: Prover
    stages: dict[str, float] = field(default_factory=dict)

    @classmethod
    def begin(
        cls,
        name: str,
        data: GameData,
        gamma: float,
        controls: Controls,
        limit: int,
        *,
        ahead: bool = False,
    ) -> Run:
        """Start a solve; ``limit`` is the method's own, where the user gave none.

        With ``ahead`` the first products of the space of ``g`` are begun, where the data can.
        """
        start = perf_counter()
        problem = sphere_problem(data, gamma, ahead=ahead)
        limit = controls.max_iter or limit
        return cls(name, data, problem, controls, limit, start, Prover(data))

    def at(self, gamma: float) -> Run:
        """The same for another strength; reads and time go on counting."""
        return replace(self, problem=self.problem.with_strength(gamma))

    @property
    def aim(self) -> float:
        """Gap at which an iteration ends."""
        return self.controls.aim(self.problem.yy)

    @property
    def seconds(self) -> float:
        """Time since the start."""
        return perf_counter() - self.start

    def floor(self, gamma: float, nu: float) -> float:
        """What no eigenvalue of ``4 H/gamma`` is below, but for a small chance.

        Looked for where the sign of its sum with a multiplier ``nu`` matters.
        """
        problem, generator = self.at(gamma).problem, self.controls.generator()
        pair = lowest_pair(problem, generator, gamma * nu / 4, LOWEST_PRODUCTS)
        return 4 * pair.floor / gamma

    def stats(self, iterations: int) -> Stats:
        """What has been spent so far."""
        return Stats(self.problem.passes, iterations, self.seconds, self.stages)


def sphere_problem(data: GameData, gamma: float, *, ahead: bool = False) -> SphereProblem:
    """The sphere problem of Theorem A on a game's data, without forming anything."""
    targets, _ = data.projected_targets
    begun = take_products(data, gamma) if ahead else None
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            squares = data.target_squares
            all_of_it = Targets(data.projected, targets, squares=squares, begun=begun, alone=ahead)
            problem = SphereProblem(all_of_it, gamma)
            # A length that is finite says that of all entries.
            length = problem.slope
        data.check_finite(np.asarray(length) if isfinite(length) else problem.g)
    except BaseException:
        if begun is not None:
            begun.close()
        raise
    return problem


def drive(
    run: Run,
    iterates: Iterator[Iterate],
    *,
    before: Sequence[Step] = (),
    factorises: bool = False,
) -> Solution:
    """Drive a method to its end and turn where it ended into a solution.

    Parameters
    ----------
    run : Run
        What the solve carries.
    iterates : iterator of Iterate
        The method; an iterate with a status is its last.
    before : sequence of Step
        The way that led to it.
    factorises : bool
        Whether the method's work is in BLAS and not in products with the data.
    """
    # Numbers beyond double precision end a method; they are nothing to warn of.
    with np.errstate(all="ignore"), one_blas_thread(run.data.matrix.threaded and not factorises):
        return _drive(run, iterates, list(before))


def _drive(run: Run, iterates: Iterator[Iterate], history: list[Step]) -> Solution:
    problem, callback, aim = run.problem, run.controls.callback, run.aim
    best: Iterate | None = None
    status: Status | None = None
    first = history[-1].iteration + 1 if history else 1
    if problem.yy == 0.0:
        # Nothing is left to predict, and zero coefficients do.
        iterates = iter(())
    for count, iterate in enumerate(iterates, first):
        if not isfinite(iterate.objective + iterate.residual + iterate.multiplier):
            status = Status.FAILED
            break
        best = iterate
        step = Step(count, iterate.objective, iterate.residual, problem.passes, run.seconds)
        history.append(step)
        if iterate.final or iterate.gap <= aim:
            status = iterate.status
            break
        if callback is not None and callback(step):
            status = Status.STOPPED
            break
        if count >= run.limit:
            status = Status.ITERATION_LIMIT
            break
    steps = history[-1].iteration if history else 0
    return finish(run, Ends.of_iterate(problem, best), status, steps, [history])[0]
