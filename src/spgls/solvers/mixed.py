"""Games against a population, or with a ridge: reduce, search over one number, recover, prove."""

from __future__ import annotations

import numpy as np

from spgls._types import EPS, Vector
from spgls.data import GameData
from spgls.population import PopulationSolution, solve_population
from spgls.providers import Population, priced_norm
from spgls.reduced import ReducedGame
from spgls.reduction import Reduction, reduce_spectral
from spgls.solvers.by_reduction import ULPS, Clock, Engine, reduce_and_solve, representable
from spgls.solvers.iterate import Controls
from spgls.solvers.solution import Solution, Status
from spgls.sphere import Certificate, build_certificate

__all__ = ["certify_against_population", "solve_mixed"]


def solve_mixed(
    name: str,
    data: GameData,
    population: Population,
    ridge: float,
    controls: Controls,
    engine: Engine,
) -> Solution:
    """Solve one game against a population.

    Parameters
    ----------
    name : str
        Name of the solver.
    data : GameData
        The data of the game.
    population : Population
        Who the providers are.
    ridge : float
        Weight of the squared priced norm of the coefficients in the learner's objective.
    controls : Controls
        Tolerance.
    engine : {"auto", "gram", "qr"}
        Which reduction.
    """
    groups = _Groups(population.merged())

    def attempt(reduction: Reduction, clock: Clock) -> tuple[Solution, bool]:
        small = solve_population(
            reduction.game,
            groups.gammas,
            groups.shares,
            ridge=ridge,
            tol=controls.tol / 4,
            ulps=ULPS,
        )
        clock.lap("small problem")
        v = reduction.lift(small.x, small.fill)
        target = groups.at(small.t)
        coef = data.coefficients(v, reduction.free_part(v, target.pull))
        linear = data.matrix.apply(coef)
        t = priced_norm(coef, data.cost)
        target = groups.at(t)
        intercept = data.best_intercept(linear, target.pull)
        certificate, objective = _judge(
            reduction, groups, small, v, coef, intercept, linear, ridge, None
        )
        clock.lap("recovery", 1.0)
        solution = Solution(
            coef=coef,
            intercept=intercept,
            alpha=t / np.array(population.gammas),
            multiplier=target.a * small.nu,
            objective=objective,
            status=_status(reduction, small, certificate, controls.tol),
            solver=name,
            certificate=certificate,
            stats=clock.stats(small.steps),
        )
        return solution, not reduction.squared or _trustworthy(reduction, small, solution)

    return reduce_and_solve(data, engine, attempt)


def certify_against_population(
    data: GameData, coef: Vector, intercept: float, population: Population, ridge: float
) -> Certificate:
    """Judge any predictor by the best value of the game."""
    reduction = reduce_spectral(data, "qr")
    assert reduction is not None
    groups = _Groups(population.merged())
    small = solve_population(
        reduction.game, groups.gammas, groups.shares, ridge=ridge, tol=_TIGHT, ulps=ULPS
    )
    optimum = reduction.lift(small.x, small.fill)
    linear = data.matrix.apply(coef)
    slope = _slope(data, groups, coef, intercept, linear, ridge)
    return _judge(reduction, groups, small, optimum, coef, intercept, linear, ridge, slope)[0]


#: Gap to which a certificate asked for on its own is proved.
_TIGHT = 1e-10


class _Moments:
    """Averages over the groups of how much they leave of a prediction, ``s = 1/(1 + t/gamma)``."""

    def __init__(self, gammas: Vector, shares: Vector, t: float) -> None:
        alpha = t / gammas
        self.s = 1.0 / (1.0 + alpha)
        self.c = alpha * self.s
        self.shares = shares
        self.a = float(shares @ self.s**2)
        self.u = float(shares @ (self.s * self.c))
        self.k = float(shares @ self.c**2)
        #: Derivatives of s by t.
        self.slope = -(self.s**2) / gammas

    @property
    def pull(self) -> float:
        """``u/a``: the alpha of the one provider whose best free part is the population's."""
        return self.u / self.a


class _Groups:
    """A population as arrays."""

    def __init__(self, population: Population) -> None:
        self.gammas = np.array(population.gammas)
        self.shares = np.array(population.shares)

    def at(self, t: float) -> _Moments:
        """Moments where the coefficients have squared priced norm ``t``."""
        return _Moments(self.gammas, self.shares, t)


def _judge(
    reduction: Reduction,
    groups: _Groups,
    small: PopulationSolution,
    optimum: Vector,
    coef: Vector,
    intercept: float,
    linear: Vector,
    ridge: float,
    slope: float | None,
) -> tuple[Certificate, float]:
    """Certificate and objective, the latter measured on the data group by group."""
    data, game = reduction.data, reduction.game
    t = priced_norm(coef, data.cost)
    moments, best = groups.at(t), groups.at(small.t)
    error, gap = linear + intercept - data.y, data.z - data.y
    losses = [data.loss(s * error + c * gap) for s, c in zip(moments.s, moments.c, strict=True)]
    loss = float(moments.shares @ losses)
    # Where rounding may have chosen the optimum it may have chosen the goals' weight too.
    c = float(np.sqrt(best.k)) if small.outcome == "unique" and small.t > 0.0 else 1.0
    certificate = build_certificate(
        game,
        objective=loss + ridge * t,
        bound=small.lower_bound,
        kkt_residual=_stationarity(game, groups, small, ridge) if slope is None else slope,
        bound_rounding=reduction.rounding(
            optimum,
            s=float(np.sqrt(best.a)),
            c=c,
            nu=small.nu,
            value=max(small.value, 0.0),
            filled=small.fill > 0.0,
        ),
        objective_rounding=reduction.evaluation_rounding(
            coef, intercept, loss, s=float(np.sqrt(moments.a)), c=float(np.sqrt(moments.k))
        )
        + 4 * EPS * ridge * t,
        label_size=data.loss(data.y),
        kind="proved" if small.proved else "estimated",
    )
    return certificate, loss + ridge * t


def _stationarity(
    game: ReducedGame, groups: _Groups, small: PopulationSolution, ridge: float
) -> float:
    """Norm of half the gradient of the loss by the coefficients, relative to its terms."""
    if game.size + game.nullity == 0:
        return 0.0
    at = groups.at(small.t)
    error, gap = game.sigma * small.x - game.eta, game.zeta - game.eta
    out_gap = game.r_zz - 2 * game.r_yz + game.r_yy
    # Along the free part a error + u gap = 0.
    ee = float(error @ error) + game.r_yy + at.pull**2 * game.free_gap
    eg = float(error @ gap) + game.r_yy - game.r_yz - at.pull * game.free_gap
    gg = float(gap @ gap) + out_gap + game.free_gap
    by_norm = _by_norm(at, ee, eg, gg) + ridge
    inside = game.sigma * (at.a * error + at.u * gap) + by_norm * small.x
    # The part in the lowest space multiplies a sum that vanishes at an optimum.
    fill = small.fill * (at.a * game.lowest + by_norm)
    norm = float(np.sqrt(inside @ inside + fill**2))
    top = float(game.sigma.max()) if game.size else 0.0
    return norm / _unit(top, game, abs(by_norm) * float(np.sqrt(small.t))) if norm else 0.0


def _slope(
    data: GameData, groups: _Groups, coef: Vector, intercept: float, linear: Vector, ridge: float
) -> float:
    """Norm of half the gradient, measured on the data, relative to its terms."""
    if len(data.changeable) == 0:
        return 0.0
    at = groups.at(priced_norm(coef, data.cost))
    root = 1.0 if data.root_weight is None else data.root_weight
    error, gap = root * (linear + intercept - data.y), root * (data.z - data.y)
    v = coef[data.changeable] / (1.0 if data.price is None else data.price)
    ee, eg, gg = float(error @ error), float(error @ gap), float(gap @ gap)
    by_norm = _by_norm(at, ee, eg, gg) + ridge
    pulled = data.priced.cross(at.a * error + at.u * gap)
    norm = float(np.linalg.norm(pulled + by_norm * v))
    unit = float(np.linalg.norm(pulled) + abs(by_norm) * np.linalg.norm(v))
    return norm / unit if norm else 0.0


def _by_norm(at: _Moments, ee: float, eg: float, gg: float) -> float:
    """Derivative of the loss by ``t`` where errors and gaps to the goals stay as they are."""
    s, c = at.s, at.c
    each = s * (ee - eg) + c * (eg - gg)
    return float(2.0 * (at.shares * at.slope) @ each)


def _unit(top: float, game: ReducedGame, rest: float) -> float:
    return float(top * (np.sqrt(game.yy) + np.sqrt(game.zz)) + rest) or 1.0


def _trustworthy(reduction: Reduction, small: PopulationSolution, solution: Solution) -> bool:
    """Whether squaring the data cost nothing that matters; as for a single strength."""
    if not solution.status.ok or small.outcome != "unique":
        return False
    noise = EPS * float(np.max(reduction.scale)) ** 2
    return small.nu + reduction.game.lowest > 1e6 * noise or small.t == 0.0


def _status(
    reduction: Reduction, small: PopulationSolution, certificate: Certificate, tol: float
) -> Status:
    if not representable(reduction.game, small.t):
        return Status.UNREPRESENTABLE
    if certificate.relative_gap > tol:
        return Status.INACCURATE if small.proved else Status.ITERATION_LIMIT
    if len(reduction.data.changeable) == 0:
        return Status.LEAST_SQUARES
    if small.outcome == "unattained":
        return Status.UNATTAINED
    return Status.SEVERAL_OPTIMA if small.outcome == "several" else Status.OPTIMAL
