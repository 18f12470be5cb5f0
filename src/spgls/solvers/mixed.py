"""Games against a population, or with a ridge: reduce, search over one number, recover, prove."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np

from spgls._types import EPS, Array, Vector
from spgls.data import GameData
from spgls.population import PopulationSolution, solve_population
from spgls.providers import Population, priced_norm, priced_norms
from spgls.reduced import ReducedGame
from spgls.reduction import Reduction, reduce_spectral
from spgls.solvers.by_reduction import ULPS, Clock, Engine, reduce_and_solve, representable
from spgls.solvers.chunks import column_chunks
from spgls.solvers.groups import Groups, Moments
from spgls.solvers.iterate import Controls
from spgls.solvers.path_by_reduction import is_clear
from spgls.solvers.solution import Solution, Status
from spgls.sphere import Certificate, build_certificate

__all__ = ["certify_against_population", "recover_mixed", "solve_mixed", "solve_mixed_path"]


def solve_mixed(
    name: str,
    data: GameData,
    population: Population,
    ridge: float,
    controls: Controls,
    engine: Engine,
) -> Solution:
    """Solve one game against a population; its objective is measured on the data.

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
    games = _Games(name, data, [population], ridge, controls, measured=True)
    return reduce_and_solve(data, engine, 1, games.attempt)[0]


def solve_mixed_path(
    name: str,
    data: GameData,
    populations: Sequence[Population],
    ridge: float,
    controls: Controls,
    engine: Engine,
    clock: Clock,
) -> tuple[Solution, ...]:
    """Solve a game against each of several populations, from one reduction.

    Parameters as for :func:`solve_mixed`, and a clock that counts what is spent. Objectives are
    measured on the data only where the reduction leaves them fewer than ten digits.
    """
    games = _Games(name, data, populations, ridge, controls, measured=False)
    return reduce_and_solve(data, engine, len(populations), games.attempt, clock)


def recover_mixed(
    name: str,
    reduction: Reduction,
    small: PopulationSolution,
    population: Population,
    ridge: float,
    controls: Controls,
) -> Solution:
    """From the optimum on a reduction to a solution; its objective is measured on the data."""
    games = _Games(name, reduction.data, [population], ridge, controls, measured=True)
    return games.recover(reduction, Clock(), [0], [small])[0][0]


class _Games:
    """Games on the same data against several populations."""

    def __init__(
        self,
        name: str,
        data: GameData,
        populations: Sequence[Population],
        ridge: float,
        controls: Controls,
        *,
        measured: bool,
    ) -> None:
        self.name, self.data, self.populations = name, data, populations
        self.ridge, self.tol, self.measured = ridge, controls.tol, measured
        self.groups = [Groups(population) for population in populations]

    def attempt(
        self, reduction: Reduction, clock: Clock, games: list[int]
    ) -> list[tuple[Solution, bool]]:
        """Solve some of the games on one reduction; whether squaring can be trusted with each."""
        small = [self._search(reduction.game, i) for i in games]
        clock.lap("small problem")
        return self.recover(reduction, clock, games, small)

    def recover(
        self,
        reduction: Reduction,
        clock: Clock,
        games: list[int],
        small: list[PopulationSolution],
    ) -> list[tuple[Solution, bool]]:
        """From optima on a reduction to solutions; whether squaring can be trusted with each."""
        data = self.data
        best = [self.groups[i].at(found.t) for i, found in zip(games, small, strict=True)]
        x, fill = np.stack([f.x for f in small]), np.array([f.fill for f in small])
        v = reduction.lift_many(x, fill)
        coef = data.coefficients(v, reduction.free_part(v, np.array([at.pull for at in best])))
        reach = priced_norms(coef, data.cost).tolist()
        reached = [self.groups[i].at(t) for i, t in zip(games, reach, strict=True)]
        rounding = _bound_roundings(reduction, v, small, best)
        clear = is_clear(rounding, np.array([f.value for f in small]), self.tol, reduction.game.yy)
        losses, intercepts = [np.nan] * len(games), np.zeros(len(games))
        if clear.any() and not self.measured:
            intercepts = data.best_intercepts(coef, np.array([at.pull for at in reached]))
            losses = [f.value - self.ridge * f.t for f in small]
            clock.lap("recovery", float(data.fit_intercept))
        unclear = np.flatnonzero(~clear) if not self.measured else np.arange(len(games))
        for some in column_chunks(data, unclear):
            linear = data.matrix.apply(np.ascontiguousarray(coef[:, some]))
            for column, i in enumerate(some.tolist()):
                intercepts[i] = data.best_intercept(linear[:, column], reached[i].pull)
                losses[i] = _loss(data, reached[i], linear[:, column] + intercepts[i])
            clock.lap("recovery", 1.0)
        solved = []
        for k, i in enumerate(games):
            predictor, intercept = np.ascontiguousarray(coef[:, k]), float(intercepts[k])
            size = 2 * float(rounding[k])
            if k in unclear:
                size = _loss_rounding(reduction, reached[k], predictor, intercept, losses[k])
            slope = _stationarity(reduction.game, best[k], small[k], self.ridge)
            certificate = _certificate(
                reduction,
                small[k],
                float(rounding[k]),
                losses[k],
                size,
                self.ridge * reached[k].t,
                slope,
            )
            solution = Solution(
                coef=predictor,
                intercept=intercept,
                alpha=reached[k].t / np.array(self.populations[i].gammas),
                multiplier=reached[k].a * small[k].nu,
                objective=losses[k] + self.ridge * reached[k].t,
                status=_status(reduction, small[k], certificate, self.tol),
                solver=self.name,
                certificate=certificate,
                stats=clock.stats(small[k].steps),
            )
            trusted = not reduction.squared or _trustworthy(reduction, small[k], solution)
            solved.append((solution, trusted))
        return solved

    def _search(self, game: ReducedGame, i: int) -> PopulationSolution:
        groups = self.groups[i]
        return solve_population(
            game,
            groups.gammas,
            groups.shares,
            ridge=self.ridge,
            tol=self.tol / 4,
            ulps=ULPS,
        )


def certify_against_population(
    data: GameData, coef: Vector, intercept: float, population: Population, ridge: float
) -> Certificate:
    """Judge any predictor by the best value of the game."""
    reduction = reduce_spectral(data, "qr")
    assert reduction is not None
    groups = Groups(population)
    small = solve_population(
        reduction.game, groups.gammas, groups.shares, ridge=ridge, tol=_TIGHT, ulps=ULPS
    )
    best, v = groups.at(small.t), reduction.lift(small.x, small.fill)
    linear = data.matrix.apply(coef)
    reached = groups.at(priced_norm(coef, data.cost))
    loss = _loss(data, reached, linear + intercept)
    return _certificate(
        reduction,
        small,
        float(_bound_roundings(reduction, v[:, None], [small], [best])[0]),
        loss,
        _loss_rounding(reduction, reached, coef, intercept, loss),
        ridge * reached.t,
        _slope(data, reached, coef, intercept, linear, ridge),
    )


#: Gap to which a certificate asked for on its own is proved.
_TIGHT = 1e-10


def _bound_roundings(
    reduction: Reduction, v: Array, small: list[PopulationSolution], best: list[Moments]
) -> Vector:
    """What rounding in the reduction can have done to the values of games."""
    # Where rounding may have chosen the optimum it may have chosen the goals' weight too.
    free = [not (f.outcome == "unique" and f.t > 0.0) for f in small]
    return reduction.roundings(
        v,
        s=np.array([sqrt(at.a) for at in best]),
        c=np.array([1.0 if any_ else sqrt(at.k) for any_, at in zip(free, best, strict=True)]),
        nu=np.array([f.nu for f in small]),
        value=np.array([max(f.value, 0.0) for f in small]),
        filled=np.array([f.fill > 0.0 for f in small]),
    )


def _loss(data: GameData, reached: Moments, prediction: Vector) -> float:
    """Mean over the groups of their sums of squares, measured on the data."""
    error, gap = prediction - data.y, data.z - data.y
    return sum(share * data.loss(s * error + c * gap) for share, s, c in reached.each())


def _loss_rounding(
    reduction: Reduction, reached: Moments, coef: Vector, intercept: float, loss: float
) -> float:
    return reduction.evaluation_rounding(
        coef, intercept, loss, s=sqrt(reached.a), c=sqrt(reached.k)
    )


def _certificate(
    reduction: Reduction,
    small: PopulationSolution,
    bound_rounding: float,
    loss: float,
    loss_rounding: float,
    penalty: float,
    slope: float,
) -> Certificate:
    return build_certificate(
        reduction.game,
        objective=loss + penalty,
        bound=small.lower_bound,
        kkt_residual=slope,
        bound_rounding=bound_rounding,
        objective_rounding=loss_rounding + 4 * EPS * penalty,
        label_size=reduction.data.loss(reduction.data.y),
        kind="proved" if small.proved else "estimated",
    )


def _stationarity(game: ReducedGame, at: Moments, small: PopulationSolution, ridge: float) -> float:
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
    data: GameData, at: Moments, coef: Vector, intercept: float, linear: Vector, ridge: float
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


def _by_norm(at: Moments, ee: float, eg: float, gg: float) -> float:
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
