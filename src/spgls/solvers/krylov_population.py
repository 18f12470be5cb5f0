"""Games against a population, or with a ridge, on a Krylov space of the data.

On the span of the space the game is the exact one, so its optimum is an upper bound. At a squared
norm ``t`` the learner minimises ``a (v'Gv - 2q'v)`` plus constants over ``|v|^2 = t``; let ``v`` be
best on the span, with the multiplier ``nu``, and ``rho = (G + nu) v - q``, the part of ``G v``
outside the span. For any ``nu > 0``, with or without the norm constraint,

    phi(t) >= min over all v of the Lagrangian = (the same over the span) - a rho'(G + nu)^{-1} rho
           >= (the same over the span) - a |rho|^2/nu,

because ``G`` has no negative eigenvalue. So a reduced game knows how far below its ``phi`` the true
one can lie, at every ``t``, from the recurrence alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from time import perf_counter
from typing import cast

import numpy as np

from spgls._types import Array, Vector
from spgls.data import GameData
from spgls.population import GroupMoments, PopulationSolution, phi, solve_population
from spgls.providers import Population
from spgls.reduced import ReducedGame
from spgls.reduction import KrylovSpace, reduce_krylov
from spgls.solvers.by_reduction import ULPS
from spgls.solvers.interpolate import null_vector
from spgls.solvers.iterate import Controls
from spgls.solvers.lowest import lowest_pair
from spgls.solvers.mixed import solve_mixed
from spgls.solvers.projected import Schedule, restart_from
from spgls.solvers.solution import Solution, Stats, Status, Step
from spgls.sphere.fixed_norm import solve_fixed_norm
from spgls.sphere.operator import SphereProblem

__all__ = ["Truncation", "solve_mixed_krylov"]

#: Norms at which the span is compared with all of space: on each side, and for a unit of log t.
_POINTS, _DENSITY = 24, 1.3
#: Multipliers tried at each norm, in units of the largest eigenvalue.
_TRIALS = np.geomspace(1e-14, 1e2, 49)
#: Limit on products spent on the smallest eigenvalue of the data.
_LOWEST_PRODUCTS = 200


class Truncation:
    """How far below a reduced game's values those of the whole game can lie.

    Parameters
    ----------
    game : ReducedGame
        The game on the span.
    factor : ndarray
        ``|factor x|`` is the part of ``G v`` outside the span, for coordinates ``x`` of ``v``.
    population : Population
        Who the providers are.
    ridge : float
        Weight of the squared norm.
    pure : bool
        Whether the space was started at labels and goals alone.
    """

    def __init__(
        self,
        game: ReducedGame,
        factor: Array,
        population: Population,
        ridge: float,
        *,
        pure: bool = False,
    ) -> None:
        self.game, self.factor, self.ridge, self.pure = game, factor, ridge, pure
        groups = population.merged()
        self.gammas, self.shares = np.array(groups.gammas), np.array(groups.shares)
        self._groups = GroupMoments(self.gammas, self.shares)
        #: Coordinates at the norm that is known worst, where it is not the optimum's.
        self.worst: Vector | None = None

    def weights(self, t: float) -> tuple[float, float, float]:
        """``a``, and the weights of ``p_y`` and ``-p_z`` in ``q``, at a squared norm."""
        m = self._groups.at(np.array([t]))
        a = float(m.a[0])
        return a, float(m.p[0]) / a, float(m.u[0]) / a

    def _target(self, t: float) -> tuple[float, Vector]:
        """``a`` and ``q``, the right-hand side of ``(G + nu) v = q``."""
        a, y, z = self.weights(t)
        return a, np.asarray(self.game.sigma * (y * self.game.eta - z * self.game.zeta))

    def _outside(self, small: PopulationSolution) -> float:
        """``|rho|`` at an optimum; a null vector of the data adds nothing to it."""
        x = small.x
        if small.fill > 0.0 and not self.game.nullity:
            x = x.copy()
            x[int(np.argmin(self.game.sigma))] += small.fill
        return float(np.linalg.norm(self.factor @ x))

    def residual(self, small: PopulationSolution) -> float:
        """Norm of half the gradient of the loss that the span does not see, at an optimum."""
        return self.weights(small.t)[0] * self._outside(small)

    def guess_lowest(self, small: PopulationSolution) -> float:
        """What eigenvalues are taken to exceed: zero, which is certain, or half of the Ritz values.

        The latter is an estimate, of use where the multiplier is small or negative: providers so
        strong that the honest decide alone, or so weak that they do not count.
        """
        half = float(self.game.d.min()) / 2 if self.game.size else 0.0
        # With other columns in the start, residuals have parts that Ritz values know nothing of.
        return 0.0 if small.nu > (half if self.pure else 0.0) else half

    def at_optimum(self, small: PopulationSolution, lowest: float) -> float:
        """How far below the value of an optimum that of the whole game can lie, at its norm.

        Parameters
        ----------
        small : PopulationSolution
            The optimum on the span.
        lowest : float
            What no eigenvalue of ``G`` is below.
        """
        rho = self._outside(small)
        if rho == 0.0:
            return 0.0
        a, _, _ = self.weights(small.t)
        above = small.nu + lowest
        return a * rho**2 / above if above > 0.0 else np.inf

    def anywhere(
        self, small: PopulationSolution, lowest: float, known: dict[int, float] | None = None
    ) -> float:
        """The same at any norm, on a grid of them.

        Parameters
        ----------
        small : PopulationSolution
            The optimum on the span.
        lowest : float
            What no eigenvalue of ``G`` is below.
        known : dict, optional
            Bounds at points of the grid found on other spaces, and from now on those of this one:
            at a given norm the best bound counts, whichever space it came from.
        """
        game, moving = self.game, self._groups.gamma
        here = min(self.at_optimum(small, lowest), small.value)
        # The honest alone play a convex game.
        if not game.size or not moving.size or not self.factor.any():
            return here
        known = {} if known is None else known
        centre = round(_DENSITY * np.log(small.t or float(moving.min())))
        points = np.arange(centre - _POINTS, centre + _POINTS + 1)
        values = phi(game, self.gammas, self.shares, np.exp(points / _DENSITY), self.ridge)
        for point, value in zip(points.tolist(), values.tolist(), strict=True):
            t = float(np.exp(point / _DENSITY))
            certain, x = self._bound(t, value, 0.0)
            known[point] = bound = max(known.get(point, 0.0), certain)
            if lowest > 0.0 and small.value - bound > here:
                bound = max(bound, self._bound(t, value, lowest)[0])
            if small.value - bound > here:
                here, self.worst = small.value - bound, x
        return here

    def _bound(self, t: float, value: float, lowest: float) -> tuple[float, Vector]:
        """Lower bound of the whole game's ``phi``, given the span's, and the ``v`` it rests on."""
        game = self.game
        a, q = self._target(t)
        best = solve_fixed_norm(game.d, q, t, game.nullity)
        # What phi holds beside the quadratic.
        rest = value - a * float(best.v @ (game.d * best.v) - 2 * q @ best.v)
        rest -= a * game.lowest * best.fill**2
        nu = _TRIALS * float(game.d.max()) - lowest
        if best.nu > -lowest:
            nu = np.append(nu, best.nu)
        v = q / (game.d + nu[:, None])
        lagrangian = rest - a * (v @ q) - a * nu * t
        rho = v @ self.factor.T
        bound = lagrangian - a * np.einsum("ij,ij->i", rho, rho) / (nu + lowest)
        best_at = int(np.argmax(bound))
        # A loss is a sum of squares, and so is every part of it.
        return max(float(bound[best_at]), 0.0), v[best_at]


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
    return growth.solution(name)


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
        looked = 0
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
        reduced = replace(self.data)
        reduced.reductions["gram"] = reduction
        solution = solve_mixed(
            name, reduced, self.population, self.ridge, self.controls, engine="gram"
        )
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
