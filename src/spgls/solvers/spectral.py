"""The exact solver: one spectral reduction, one secular equation."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import ClassVar, Literal

import numpy as np

from spgls._types import EPS
from spgls.data import GameData
from spgls.game import Provider, priced_norm
from spgls.reduction import Reduction, reduce_spectral
from spgls.solvers.base import Capabilities, register
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

__all__ = ["Spectral", "certify_predictor"]

#: Beyond this ratio of the coefficients' reach to the labels, predictions cancel to nothing.
_REPRESENTABLE = 1e10
#: Accuracy of singular coordinates computed from data.
_ULPS = 64.0


@register
@dataclass(frozen=True)
class Spectral:
    """Solve exactly through singular values of the data.

    Parameters
    ----------
    engine : {"auto", "gram", "qr"}
        How the data is reduced. ``"auto"`` squares the data, and starts over without squaring it
        where the certificate shows that too many digits were lost.
    """

    engine: Literal["auto", "gram", "qr"] = "auto"
    capabilities: ClassVar[Capabilities] = Capabilities(
        name="spectral",
        summary="singular values of the data, then a secular equation",
        finds_global=True,
        proves=True,
        iterative=False,
        memory="min(m, n)^2 and one block of rows",
    )

    def __post_init__(self) -> None:
        if self.engine not in ("auto", "gram", "qr"):
            raise ValueError(f"engine must be 'auto', 'gram' or 'qr'; got {self.engine!r}.")

    def solve(self, data: GameData, gamma: float, controls: Controls) -> Solution:
        """Solve one game."""
        tol = controls.tol
        start = perf_counter()
        passes = 0.0
        if self.engine != "qr":
            reduction = reduce_spectral(data, "gram")
            passes += 1.0
            if reduction is not None:
                small = solve_sphere(reduction.game, gamma, tol=tol, ulps=_ULPS)
                solution = _recover(reduction, small, gamma, tol, passes, start)
                if self.engine == "gram" or _trustworthy(reduction, small, solution):
                    return solution
                passes = solution.stats.passes
        reduction = reduce_spectral(data, "qr")
        assert reduction is not None
        small = solve_sphere(reduction.game, gamma, tol=tol, ulps=_ULPS)
        return _recover(reduction, small, gamma, tol, passes + 1.0, start)


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
    reduction: Reduction,
    small: SmallSolution,
    gamma: float,
    tol: float,
    passes: float,
    start: float,
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
        bound_rounding=reduction.rounding(v, small),
        objective_rounding=reduction.evaluation_rounding(provider, objective),
        label_size=data.loss(data.y),
    )
    return Solution(
        coef=coef,
        intercept=provider.intercept,
        alpha=alpha,
        multiplier=gamma * small.nu / 4,
        objective=objective,
        status=_status(reduction, small, gamma, alpha, certificate.relative_gap, tol),
        solver=Spectral.capabilities.name,
        certificate=certificate,
        stats=Stats(passes + 1.0, small.steps, perf_counter() - start),
    )


def _status(
    reduction: Reduction,
    small: SmallSolution,
    gamma: float,
    alpha: float,
    relative_gap: float,
    tol: float,
) -> Status:
    game = reduction.game
    top = float(game.sigma.max()) if game.size else 0.0
    if top * np.sqrt(gamma * alpha) > _REPRESENTABLE * np.sqrt(game.yy):
        return Status.UNREPRESENTABLE
    if relative_gap > tol:
        return Status.INACCURATE
    if len(reduction.data.changeable) == 0:
        return Status.LEAST_SQUARES
    if small.outcome == "unattained":
        return Status.UNATTAINED
    return Status.SEVERAL_OPTIMA if small.outcome == "several" else Status.OPTIMAL


def certify_predictor(data: GameData, provider: Provider, gamma: float) -> Certificate:
    """Judge any predictor by the multiplier of the game's own optimum.

    The bound is the game's, so only the objective and the residual of the optimality conditions
    depend on the predictor; both are measured on the data.
    """
    reduction = reduce_spectral(data, "qr")
    assert reduction is not None
    small = solve_sphere(reduction.game, gamma, ulps=_ULPS)
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
        bound_rounding=reduction.rounding(optimum, small),
        objective_rounding=reduction.evaluation_rounding(provider, objective),
        label_size=data.loss(data.y),
    )
