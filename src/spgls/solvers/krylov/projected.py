"""The sphere problem on a Krylov space: optimum over its span, residual in all of space."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from math import isfinite

import numpy as np

from spgls.base.types import Array, Vector
from spgls.base.vector import squares
from spgls.reduction import KrylovReduction, KrylovSpace, reduce_krylov
from spgls.reduction.data import GameData
from spgls.solvers.iterative.finish import Ends, proved_gap
from spgls.solvers.iterative.images import MeasuredSpace
from spgls.solvers.iterative.interpolate import smaller_root
from spgls.solvers.iterative.iterate import Iterate, Run
from spgls.solvers.iterative.lanczos import krylov_start
from spgls.solvers.krylov.plane import on_the_plane
from spgls.solvers.small import ULPS
from spgls.solvers.solution import Status
from spgls.sphere import solve_sphere_many
from spgls.sphere.by_eigen import solve_dense
from spgls.sphere.operator import SphereProblem
from spgls.sphere.tridiagonal import lowest_eigenvalue, solve_tridiagonal

__all__ = [
    "Points",
    "Projection",
    "Schedule",
    "project",
    "restart_from",
    "single_iterates",
    "singular",
]

#: No more than one column in so many is added without a look.
_LOOK = 12
#: Share of a full basis that a restart keeps, and solutions that it goes on from at most.
_KEPT, _SOLUTIONS = 0.5, 8
#: Ritz values below this share of the largest may be those of null vectors.
_NULL = 1e-12
#: Squared length below which a point is none of the unit sphere.
_HELD = 0.5


class Schedule:
    """When to solve the projected problem.

    Decomposing ``k`` columns of length ``n`` takes about ``k^3`` flops where orthogonalising a new
    one takes ``n k``: so after ``k^2/n`` of them, but before their number grew by much.
    """

    def __init__(self) -> None:
        self._looked = 0

    def due(self, space: KrylovSpace) -> bool:
        """Whether enough columns were added since the last time."""
        k = space.count
        wait = min(k // _LOOK, k * k // space.size)
        if self._looked <= k < self._looked + wait and not space.full:
            return False
        self._looked = k
        return True


def restart_from(space: KrylovSpace, solutions: list[Array]) -> None:
    """Restart a full space from solutions on it; do nothing while it is not full.

    Kept are the solutions at earlier restarts too, without which each cycle would start anew like
    steepest descent, and the lowest Ritz vectors, which convergence waits for.
    """
    if not space.full or not solutions:
        return
    wanted = np.stack(solutions[-_SOLUTIONS:], axis=1)
    _, vectors = np.linalg.eigh(space.projected)
    room = max(int(_KEPT * space.limit) - wanted.shape[1] - space.starts.shape[1], 2)
    past = space.past[:, : room - room // 2]
    space.restart(np.hstack([wanted, past, vectors[:, : room - past.shape[1]]]), wanted)


@dataclass(frozen=True, eq=False)
class Points:
    """Points on the span of a Krylov space, a column or an entry for each strength.

    Attributes
    ----------
    problem : SphereProblem
        The problem of any strength.
    space : KrylovSpace
        The space.
    gamma : ndarray of shape (G,)
        Strengths.
    h : ndarray of shape (k, G)
        Coordinates of ``w~`` in the basis.
    last : ndarray of shape (G,)
        ``alpha~``.
    multiplier, objective, residual : ndarray of shape (G,)
        As of an :class:`~spgls.solvers.iterative.iterate.Iterate`.
    lowest : ndarray of shape (G,)
        Estimates of the smallest eigenvalue of ``H`` where the multiplier needs one, else zero.
    floor : ndarray of shape (G,)
        What no eigenvalue of ``H`` is below, zero where nobody looked.
    several, far : ndarray of bool
        Known to be one of several optima; on the way to one that no predictor attains.
    """

    problem: SphereProblem
    space: KrylovSpace
    gamma: Vector
    h: Array
    last: Vector
    multiplier: Vector
    objective: Vector
    residual: Vector
    lowest: Vector
    floor: Vector
    several: np.ndarray
    far: np.ndarray

    @property
    def gap(self) -> Vector:
        """Distances of the objectives from the optima."""
        return np.asarray(proved_gap(self.residual, self.multiplier + np.maximum(self.lowest, 0.0)))

    def iterate(self, i: int) -> Iterate:
        """One of them, as the common loop sees it."""
        h, last = self.h[:, i], float(self.last[i])
        return Iterate(
            multiplier=float(self.multiplier[i]),
            objective=float(self.objective[i]),
            residual=float(self.residual[i]),
            point=lambda: np.append(self.space.combine(h), last),
            lowest=float(self.lowest[i]) if self.multiplier[i] <= 0.0 else None,
            floor=float(self.floor[i]),
            several=bool(self.several[i]),
        )

    def ends(self, rows: np.ndarray) -> Ends:
        """Some of them, in all of space."""
        problem, h, last = self.problem, self.h[:, rows], self.last[rows]
        # The basis is orthonormal: what it lacks of that is measured with the points.
        length = np.sqrt(np.einsum("ij,ij->j", h, h) + last**2)
        if not problem.g.any():
            # Without a linear term -r is as good, and has the smaller alpha.
            length = np.where(last > 0.0, -length, length)
        h, last = h / length, last / length
        space, span = self.space, None
        if isinstance(space, MeasuredSpace):
            targets = np.stack([problem.p_z, problem.p_y], axis=1)
            span = space.span(h, space.frame(targets) if len(rows) > 1 else None)

        def make() -> Array:
            r = np.empty((problem.size, len(rows)), order="F")
            r[:-1], r[-1] = space.combine(h), last
            return r

        return Ends(
            gamma=self.gamma[rows],
            last=last,
            squares=np.einsum("ij,ij->j", h, h),
            make=make,
            several=self.several[rows],
            far=self.far[rows],
            floor=self.floor[rows],
            multiplier=np.full(len(rows), np.nan),
            span=span,
        )


@dataclass(frozen=True, eq=False)
class Projection:
    """A game reduced to the span of a Krylov space."""

    reduction: KrylovReduction

    def optima(self, problem: SphereProblem, gammas: Vector, tol: float) -> Points:
        """Optima over the span.

        The residual of a sphere problem is ``gamma/4`` of what ``A'A w~`` has outside the span.
        """
        game, space = self.reduction.game, self.reduction.space
        small = solve_sphere_many(game, gammas, tol=tol, ulps=ULPS)
        vectors, x = self.reduction.vectors, small.x
        if game.size:
            x[:, int(np.argmin(game.sigma))] += small.fill
        else:
            # The data shows nothing of the span: any of its columns takes the norm.
            vectors, x = np.eye(space.count, 1), small.fill[:, None]
        h = vectors @ (x * (2 / np.sqrt(gammas))[:, None]).T
        multiplier = gammas * small.nu / 4
        return Points(
            problem=problem,
            space=space,
            gamma=gammas,
            h=h,
            last=small.c - small.s,
            multiplier=multiplier,
            objective=small.value,
            residual=gammas / 4 * space.residuals(h),
            # Only an estimate of the lowest eigenvalue.
            lowest=np.where(multiplier <= 0.0, -gammas * small.pole / 4, 0.0),
            floor=np.zeros(len(gammas)),
            several=(small.outcome == "several") | (problem.slope == 0.0),
            far=small.outcome == "unattained",
        )

    def interpolants(self, problem: SphereProblem, gammas: Vector) -> tuple[Points, Vector]:
        """Labels met as well as the span allows with a free choice of the pull, the smallest.

        The optima of singular problems that have several; see ``iterative/interpolate.py``.
        Also each ``alpha``, not a number where the norm allows none.
        """
        game, space = self.reduction.game, self.reduction.space
        # Rounding brings null vectors into the span in the end; they have no part in this.
        seen = game.d > _NULL * float(game.d.max(initial=0.0))
        inverse = np.divide(1.0, game.sigma, out=np.zeros_like(game.sigma), where=seen)
        w_y, w_z = np.stack([game.eta, game.zeta]) * inverse
        alpha = smaller_root(w_y, w_z, gammas)
        c = alpha / (1.0 + alpha)
        h = self.reduction.vectors @ ((w_y[:, None] - w_z[:, None] * c) * (2 / np.sqrt(gammas)))
        last, nothing = (alpha - 1.0) / (alpha + 1.0), np.zeros(len(gammas))
        objective = np.maximum(0.0, game.r_yy - 2 * c * game.r_yz + c**2 * game.r_zz)
        # Coefficients of data that is all rounding cancel to nothing, which no sphere holds.
        lost = squares(h) + last**2 < _HELD
        alpha[lost], objective[lost] = np.nan, np.inf
        points = Points(
            problem=problem,
            space=space,
            gamma=gammas,
            h=h,
            last=last,
            multiplier=nothing,
            objective=objective,
            residual=np.hypot(gammas / 4 * space.residuals(h), (c * game.r_zz - game.r_yz) / 2),
            lowest=nothing,
            floor=nothing,
            several=np.ones(len(gammas), dtype=bool),
            far=np.zeros(len(gammas), dtype=bool),
        )
        return points, alpha


def project(data: GameData, space: KrylovSpace) -> Projection:
    """Reduce a game to the span alone, whatever is known of the rest of space."""
    reduction = reduce_krylov(data, space)
    game = reduction.game
    return Projection(replace(reduction, game=replace(game, nullity=0 if game.size else 1)))


def singular(data: GameData) -> bool:
    """Whether ``H`` has more columns than rows could make independent."""
    m, n = data.projected.shape
    return bool(n + 1 > m - data.free.rank)


def single_iterates(run: Run, room: int) -> Iterator[Iterate]:
    """Iterates of the Krylov method of one strength, ``H`` and ``g``; the last one is final.

    The steps of ``gltr``, until the basis is full and has to be restarted.

    Parameters
    ----------
    run : Run
        What the solve carries.
    room : int
        Most columns of the basis.
    """
    problem, limit = run.problem, run.limit
    length = problem.slope
    start = problem.g if length > 0.0 else krylov_start(problem.g, length)
    space = MeasuredSpace(problem.product, start[:, None], room, bordered=True)
    schedule = Schedule()
    multiplier: float | None = None
    lowest = np.inf
    h: Vector | None = None
    if not space.width:
        # Nothing that is a number to start from.
        yield Iterate(np.nan, np.nan, np.nan, problem.g.copy)
        return
    if problem.targets.begun is not None:
        # The proof needs them; the product is under way meanwhile.
        _ = run.prover.fresh.rulers
    if length > 0.0:
        plane = on_the_plane(problem, space, run.aim)
        if plane is not None:
            yield plane
            return
    while True:
        restart_from(space, [] if h is None else [h])
        space.extend()
        T = space.projected
        ended = space.width == 0
        stopped = not ended and space.steps >= limit
        if space.restarts and not (schedule.due(space) or ended or stopped):
            continue
        if not isfinite(space.scale):
            # Numbers too large for double precision.
            yield Iterate(np.nan, np.nan, np.nan, problem.g.copy)
            return
        if space.restarts == 0:
            d, e = T.diagonal().copy(), T.diagonal(1).copy()
            h, multiplier = solve_tridiagonal(d, e, length, multiplier)
            along = length * float(h[0])
            if multiplier <= 0.0:
                lowest = lowest_eigenvalue(d, e)
        else:
            linear = space.starts[:, 0] if length > 0.0 else np.zeros(space.count)
            h, multiplier, ritz, _ = solve_dense(T, linear)
            along = float(linear @ h)
            lowest = min(lowest, ritz)
        yield Iterate(
            multiplier=multiplier,
            objective=problem.p + along - multiplier,
            residual=space.residual(h),
            point=partial(space.combine, h),
            lowest=lowest if multiplier <= 0.0 else None,
            final=ended or stopped,
            several=length == 0.0,
            status=Status.ITERATION_LIMIT if stopped else None,
            span=partial(space.span, h[:, None]),
        )
        if ended or stopped:
            return
