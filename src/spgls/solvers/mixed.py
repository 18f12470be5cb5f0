"""Games against a population, or with a ridge: reduce, search over one number, recover, prove."""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt

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
    groups = _Groups(population)

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
        best = groups.at(small.t)
        coef = data.coefficients(v, reduction.free_part(v, best.pull))
        linear = data.matrix.apply(coef)
        reached = groups.at(priced_norm(coef, data.cost))
        intercept = data.best_intercept(linear, reached.pull)
        slope = _stationarity(reduction.game, best, small, ridge)
        certificate, objective = _judge(
            reduction, small, best, v, reached, coef, intercept, linear, ridge, slope
        )
        clock.lap("recovery", 1.0)
        solution = Solution(
            coef=coef,
            intercept=intercept,
            alpha=reached.t / np.array(population.gammas),
            multiplier=reached.a * small.nu,
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
    groups = _Groups(population)
    small = solve_population(
        reduction.game, groups.gammas, groups.shares, ridge=ridge, tol=_TIGHT, ulps=ULPS
    )
    best, v = groups.at(small.t), reduction.lift(small.x, small.fill)
    linear = data.matrix.apply(coef)
    reached = groups.at(priced_norm(coef, data.cost))
    slope = _slope(data, reached, coef, intercept, linear, ridge)
    return _judge(reduction, small, best, v, reached, coef, intercept, linear, ridge, slope)[0]


#: Gap to which a certificate asked for on its own is proved.
_TIGHT = 1e-10


class _Moments:
    """Averages over the groups of how much they leave of a prediction, ``s = 1/(1 + t/gamma)``."""

    def __init__(self, gammas: list[float], shares: list[float], t: float) -> None:
        # Numbers, not arrays: groups are few.
        self.t = t
        self.shares = shares
        self.s = [1.0 / (1.0 + t / gamma) for gamma in gammas]
        self.c = [t / gamma * s for gamma, s in zip(gammas, self.s, strict=True)]
        #: Derivatives of s by t.
        self.slope = [-s * s / gamma for gamma, s in zip(gammas, self.s, strict=True)]
        self.a = self.k = self.u = 0.0
        for share, s, c in self.each():
            self.a += share * s * s
            self.u += share * s * c
            self.k += share * c * c

    def each(self) -> Iterator[tuple[float, float, float]]:
        """Share, ``s`` and ``c = 1 - s`` of every group."""
        return zip(self.shares, self.s, self.c, strict=True)

    @property
    def pull(self) -> float:
        """``u/a``: the alpha of the one provider whose best free part is the population's."""
        return self.u / self.a


class _Groups:
    """The groups of a population that someone is in."""

    def __init__(self, population: Population) -> None:
        pairs = zip(population.gammas, population.shares, strict=True)
        kept = [(gamma, share) for gamma, share in pairs if share > 0.0]
        self.gammas = [gamma for gamma, _ in kept]
        self.shares = [share for _, share in kept]

    def at(self, t: float) -> _Moments:
        """Moments where the coefficients have squared priced norm ``t``."""
        return _Moments(self.gammas, self.shares, t)


def _judge(
    reduction: Reduction,
    small: PopulationSolution,
    best: _Moments,
    optimum: Vector,
    reached: _Moments,
    coef: Vector,
    intercept: float,
    linear: Vector,
    ridge: float,
    slope: float,
) -> tuple[Certificate, float]:
    """Certificate and objective, the latter measured on the data group by group."""
    data, game = reduction.data, reduction.game
    error, gap = linear + intercept - data.y, data.z - data.y
    loss = sum(share * data.loss(s * error + c * gap) for share, s, c in reached.each())
    penalty = ridge * reached.t
    # Where rounding may have chosen the optimum it may have chosen the goals' weight too.
    c = sqrt(best.k) if small.outcome == "unique" and small.t > 0.0 else 1.0
    certificate = build_certificate(
        game,
        objective=loss + penalty,
        bound=small.lower_bound,
        kkt_residual=slope,
        bound_rounding=reduction.rounding(
            optimum,
            s=sqrt(best.a),
            c=c,
            nu=small.nu,
            value=max(small.value, 0.0),
            filled=small.fill > 0.0,
        ),
        objective_rounding=reduction.evaluation_rounding(
            coef, intercept, loss, s=sqrt(reached.a), c=sqrt(reached.k)
        )
        + 4 * EPS * penalty,
        label_size=data.loss(data.y),
        kind="proved" if small.proved else "estimated",
    )
    return certificate, loss + penalty


def _stationarity(
    game: ReducedGame, at: _Moments, small: PopulationSolution, ridge: float
) -> float:
    """Norm of half the gradient of the loss by the coefficients, relative to its terms."""
    if game.size + game.nullity == 0:
        return 0.0
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
    norm = sqrt(float(inside @ inside) + fill**2)
    top = float(game.sigma.max()) if game.size else 0.0
    return norm / _unit(top, game, abs(by_norm) * sqrt(small.t)) if norm else 0.0


def _slope(
    data: GameData, at: _Moments, coef: Vector, intercept: float, linear: Vector, ridge: float
) -> float:
    """Norm of half the gradient, measured on the data, relative to its terms."""
    if len(data.changeable) == 0:
        return 0.0
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
    terms = zip(at.each(), at.slope, strict=True)
    return 2.0 * sum(
        share * slope * (s * (ee - eg) + c * (eg - gg)) for (share, s, c), slope in terms
    )


def _unit(top: float, game: ReducedGame, rest: float) -> float:
    return top * (sqrt(game.yy) + sqrt(game.zz)) + rest or 1.0


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
