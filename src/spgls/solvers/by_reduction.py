"""Reduce the data, solve the small problem, recover a predictor: what direct solvers share."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Literal, TypeAlias

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
    Outcome,
    SmallSolution,
    build_certificate,
    dual_bound,
    solve_sphere,
    stationarity,
    stationarity_unit,
)

__all__ = [
    "ULPS",
    "Clock",
    "Engine",
    "certify_predictor",
    "judge",
    "recover",
    "reduce_and_solve",
    "representable",
    "solve_by_reduction",
    "status_of",
    "trustworthy",
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


#: Solves some of several games, named by their numbers, on one reduction: each solution, and
#: whether squaring the data can be trusted with it.
Attempt: TypeAlias = Callable[[Reduction, Clock, list[int]], list[tuple[Solution, bool]]]


def reduce_and_solve(
    data: GameData, engine: Engine, games: int, attempt: Attempt, clock: Clock | None = None
) -> tuple[Solution, ...]:
    """Reduce by squaring the data, and again without squaring it where that was not enough.

    Parameters
    ----------
    data : GameData
        The data of the games.
    engine : {"auto", "gram", "qr"}
        Which reduction; ``"auto"`` tries the first.
    games : int
        How many games are played on it.
    attempt : callable
        Makes solutions from a reduction, and says whether squaring can be trusted with each.
    clock : Clock, optional
        Goes on with a count; a new one by default.
    """
    clock = clock or Clock()
    found: dict[int, Solution] = {}
    if engine != "qr":
        reduction = _reduced(data, "gram", clock)
        if reduction is not None:
            for i, (solution, trusted) in enumerate(attempt(reduction, clock, list(range(games)))):
                if engine == "gram" or trusted:
                    found[i] = solution
    left = [i for i in range(games) if i not in found]
    if left:
        reduction = _reduced(data, "qr", clock)
        assert reduction is not None
        solved = (solution for solution, _ in attempt(reduction, clock, left))
        found.update(zip(left, solved, strict=True))
    return tuple(found[i] for i in range(games))


def _reduced(data: GameData, engine: Literal["gram", "qr"], clock: Clock) -> Reduction | None:
    """Reduce, and count the read of the data unless an earlier game on it made it."""
    passes = 0.0 if engine in data.reductions else 1.0
    reduction = reduce_spectral(data, engine)
    clock.lap("reduction", passes)
    return reduction


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

    def attempt(reduction: Reduction, clock: Clock, _: list[int]) -> list[tuple[Solution, bool]]:
        small = small_solver(reduction)
        clock.lap(stage)
        solution = recover(name, reduction, small, gamma, controls.tol, clock)
        if solution.status is Status.INACCURATE and second_opinion is not None:
            other = second_opinion(reduction, small)
            if other.value < small.value:
                clock.lap(stage)
                small = other
                solution = recover(name, reduction, small, gamma, controls.tol, clock)
        return [(solution, not reduction.squared or trustworthy(reduction, small, solution))]

    return reduce_and_solve(data, engine, 1, attempt)[0]


def trustworthy(reduction: Reduction, small: SmallSolution, solution: Solution) -> bool:
    """Whether squaring the data cost nothing that matters.

    The certificate speaks for the objective. Which of several optima is the smallest, and whether
    an optimum is attained at all, hangs on quantities near zero that a Gram matrix cannot resolve.
    """
    if not solution.status.ok or small.outcome != "unique" or small.s < 1e-6:
        return False
    noise = EPS * float(np.max(reduction.scale)) ** 2
    return small.nu - small.pole > 1e6 * noise or small.c == 0.0


def recover(
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
    clock.lap("recovery", 1.0)
    return judge(name, reduction, small, gamma, tol, clock, v, coef, linear)


def judge(
    name: str,
    reduction: Reduction,
    small: SmallSolution,
    gamma: float,
    tol: float,
    clock: Clock,
    v: Vector,
    coef: Vector,
    linear: Vector,
) -> Solution:
    """Measure a recovered predictor ``coef``, priced ``v``, by its predictions on the data."""
    data = reduction.data
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
    clock.lap("recovery")
    return Solution(
        coef=coef,
        intercept=provider.intercept,
        alpha=alpha,
        multiplier=gamma * small.nu / 4,
        objective=objective,
        status=status_of(reduction, small.outcome, gamma * alpha, certificate.relative_gap, tol),
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


def status_of(
    reduction: Reduction, outcome: Outcome, t: float, relative_gap: float, tol: float
) -> Status:
    """How a solve ended, whose coefficients have the squared priced norm ``t``."""
    if not representable(reduction.game, t):
        return Status.UNREPRESENTABLE
    if relative_gap > tol:
        return Status.INACCURATE
    if len(reduction.data.changeable) == 0:
        return Status.LEAST_SQUARES
    if outcome == "unattained":
        return Status.UNATTAINED
    return Status.SEVERAL_OPTIMA if outcome == "several" else Status.OPTIMAL


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
