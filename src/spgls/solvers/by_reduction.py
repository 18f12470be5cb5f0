"""Reduce the data, solve the small problem, recover a predictor: what direct solvers share."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Literal

import numpy as np

from spgls._types import EPS, Vector
from spgls.data import GameData
from spgls.game import Provider, priced_norm
from spgls.reduced import ReducedGame
from spgls.reduction import Reduction, reduce_spectral
from spgls.solvers.iterate import Controls
from spgls.solvers.solution import Solution, Stats, Status
from spgls.sphere import (
    Certificate,
    SmallSolution,
    build_certificate,
    dual_bound,
    solve_sphere,
    stationarity,
)
from spgls.sphere.certificate import stationarity_unit

__all__ = [
    "ULPS",
    "Clock",
    "Engine",
    "certify_predictor",
    "reduce_and_solve",
    "representable",
    "solve_by_reduction",
]

#: Beyond this ratio of the coefficients' reach to the labels, predictions cancel to nothing.
_REPRESENTABLE = 1e10
#: Accuracy of singular coordinates computed from data.
ULPS = 64.0

Engine = Literal["auto", "gram", "qr"]


class Clock:
    """Passes over the data and seconds, by stage."""

    def __init__(self) -> None:
        self._start = perf_counter()
        self._last = self._start
        self.passes = 0.0
        self.stages: dict[str, float] = {}

    def lap(self, stage: str, passes: float = 0.0) -> None:
        """Charge the time since the last lap to a stage."""
        now = perf_counter()
        self.stages[stage] = self.stages.get(stage, 0.0) + now - self._last
        self._last = now
        self.passes += passes

    def stats(self, iterations: int) -> Stats:
        """What has been spent so far."""
        return Stats(self.passes, iterations, perf_counter() - self._start, self.stages)


def reduce_and_solve(
    data: GameData, engine: Engine, attempt: Callable[[Reduction, Clock], tuple[Solution, bool]]
) -> Solution:
    """Reduce by squaring the data, and again without squaring it where that was not enough.

    Parameters
    ----------
    data : GameData
        The data of the game.
    engine : {"auto", "gram", "qr"}
        Which reduction; ``"auto"`` tries the first.
    attempt : callable
        Makes a solution from a reduction, and says whether squaring can be trusted with it.
    """
    clock = Clock()
    if engine != "qr":
        reduction = reduce_spectral(data, "gram")
        clock.lap("reduction", 1.0)
        if reduction is not None:
            solution, trusted = attempt(reduction, clock)
            if engine == "gram" or trusted:
                return solution
    reduction = reduce_spectral(data, "qr")
    assert reduction is not None
    clock.lap("reduction", 1.0)
    return attempt(reduction, clock)[0]


def solve_by_reduction(
    name: str,
    data: GameData,
    gamma: float,
    controls: Controls,
    engine: Engine,
    small_solver: Callable[[Reduction], SmallSolution],
    stage: str = "small problem",
    second_opinion: Callable[[Reduction, SmallSolution], SmallSolution] | None = None,
) -> Solution:
    """Solve one game by any solver of the small problem.

    Parameters
    ----------
    name : str
        Name of the solver.
    data : GameData
        The data of the game.
    gamma : float
        Strength of the providers.
    controls : Controls
        Tolerance.
    engine : {"auto", "gram", "qr"}
        Which reduction.
    small_solver : callable
        Solves a reduced game.
    stage : str
        Under what name its time is counted.
    second_opinion : callable, optional
        Solves a reduced game in another way, for solutions that their own bound does not confirm.
    """

    def attempt(reduction: Reduction, clock: Clock) -> tuple[Solution, bool]:
        small = small_solver(reduction)
        clock.lap(stage)
        solution = _recover(name, reduction, small, gamma, controls.tol, clock)
        if solution.status is Status.INACCURATE and second_opinion is not None:
            other = second_opinion(reduction, small)
            if other.value < small.value:
                clock.lap(stage)
                small = other
                solution = _recover(name, reduction, small, gamma, controls.tol, clock)
        return solution, not reduction.squared or _trustworthy(reduction, small, solution)

    return reduce_and_solve(data, engine, attempt)


def _trustworthy(reduction: Reduction, small: SmallSolution, solution: Solution) -> bool:
    """Whether squaring the data cost nothing that matters.

    The certificate speaks for the objective. Which of several optima is the smallest, and whether
    an optimum is attained at all, hangs on quantities near zero that a Gram matrix cannot resolve.
    """
    if not solution.status.ok or small.outcome != "unique" or small.s < 1e-6:
        return False
    noise = EPS * float(np.max(reduction.scale)) ** 2
    return small.nu - small.pole > 1e6 * noise or small.c == 0.0


def _recover(
    name: str,
    reduction: Reduction,
    small: SmallSolution,
    gamma: float,
    tol: float,
    clock: Clock,
) -> Solution:
    """From singular coordinates to a predictor, its true objective and its certificate."""
    data = reduction.data
    v = reduction.lift(small.x / small.s, small.fill / small.s)
    coef = data.coefficients(v, reduction.free_part(v, small.alpha))
    linear = data.matrix.apply(coef)
    alpha = priced_norm(coef, data.cost) / gamma
    provider = Provider(coef, data.best_intercept(linear, alpha), gamma, data.cost)
    objective = data.loss(data.residual(linear, provider))
    certificate = build_certificate(
        reduction.game,
        objective=objective,
        bound=dual_bound(reduction.game, gamma, small),
        kkt_residual=stationarity(reduction.game, gamma, small),
        bound_rounding=_bound_rounding(reduction, v, small),
        objective_rounding=_objective_rounding(reduction, provider, objective),
        label_size=data.loss(data.y),
    )
    clock.lap("recovery", 1.0)
    return Solution(
        coef=coef,
        intercept=provider.intercept,
        alpha=alpha,
        multiplier=gamma * small.nu / 4,
        objective=objective,
        status=_status(reduction, small, gamma, alpha, certificate.relative_gap, tol),
        solver=name,
        certificate=certificate,
        stats=clock.stats(small.steps),
    )


def _bound_rounding(reduction: Reduction, v: Vector, small: SmallSolution) -> float:
    # At a pole rounding may have chosen c.
    c = small.c if small.outcome == "unique" and small.c > 0.0 else 1.0
    return reduction.rounding(
        v, s=small.s, c=c, nu=small.nu, value=small.value, filled=small.fill > 0.0
    )


def _objective_rounding(reduction: Reduction, provider: Provider, objective: float) -> float:
    alpha = float(provider.alpha)
    s, c = 1 / (1 + alpha), alpha / (1 + alpha)
    return reduction.evaluation_rounding(provider.coef, provider.intercept, objective, s=s, c=c)


def _status(
    reduction: Reduction,
    small: SmallSolution,
    gamma: float,
    alpha: float,
    relative_gap: float,
    tol: float,
) -> Status:
    if not representable(reduction.game, gamma * alpha):
        return Status.UNREPRESENTABLE
    if relative_gap > tol:
        return Status.INACCURATE
    if len(reduction.data.changeable) == 0:
        return Status.LEAST_SQUARES
    if small.outcome == "unattained":
        return Status.UNATTAINED
    return Status.SEVERAL_OPTIMA if small.outcome == "several" else Status.OPTIMAL


def representable(game: ReducedGame, t: float) -> bool:
    """Whether predictions by coefficients of squared priced norm ``t`` keep any digits."""
    top = float(game.sigma.max()) if game.size else 0.0
    return bool(top * np.sqrt(t) <= _REPRESENTABLE * np.sqrt(game.yy))


def certify_predictor(data: GameData, provider: Provider, gamma: float) -> Certificate:
    """Judge any predictor by the multiplier of the game's own optimum.

    The bound is the game's, so only the objective and the residual of the optimality conditions
    depend on the predictor; both are measured on the data.
    """
    reduction = reduce_spectral(data, "qr")
    assert reduction is not None
    small = solve_sphere(reduction.game, gamma, ulps=ULPS)
    alpha = float(provider.alpha)
    s, c = 1.0 / (1.0 + alpha), alpha / (1.0 + alpha)
    error = data.residual(data.matrix.apply(provider.coef), provider)
    objective = data.loss(error)
    v = provider.coef[data.changeable]
    if data.price is not None:
        v = v / data.price
    weighted = error if data.root_weight is None else data.root_weight * error
    slope = data.priced.cross(weighted) + small.nu * s * v
    goal = float(weighted @ (data.z if data.root_weight is None else data.root_weight * data.z))
    last = goal / 2 + gamma * small.nu * (c - s) / 4
    # With nothing to change c is fixed at zero, and its slope means nothing.
    norm = float(np.sqrt(gamma / 4 * (slope @ slope) + last**2)) if len(v) else 0.0
    optimum = reduction.lift(small.x / small.s, small.fill / small.s)
    unit = stationarity_unit(reduction.game, gamma, small.nu)
    return build_certificate(
        reduction.game,
        objective=objective,
        bound=dual_bound(reduction.game, gamma, small),
        kkt_residual=norm / unit,
        bound_rounding=_bound_rounding(reduction, optimum, small),
        objective_rounding=_objective_rounding(reduction, provider, objective),
        label_size=data.loss(data.y),
    )
