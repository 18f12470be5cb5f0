"""The sphere problem on a Krylov space: optimum over its span, residual in all of space."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from math import hypot, sqrt

import numpy as np

from spgls._types import Array, Vector
from spgls.data import GameData
from spgls.reduction import KrylovReduction, KrylovSpace, reduce_krylov
from spgls.small import ULPS
from spgls.solvers.interpolate import SETTLED, SHARPER, smaller_root
from spgls.solvers.iterate import Controls, Iterate
from spgls.solvers.lanczos import krylov_start
from spgls.solvers.solution import Status
from spgls.sphere import solve_sphere
from spgls.sphere.dense import solve_dense
from spgls.sphere.operator import SphereProblem
from spgls.sphere.tridiagonal import lowest_eigenvalue, solve_tridiagonal

__all__ = [
    "NULL",
    "Projection",
    "Schedule",
    "block_iterates",
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
NULL = 1e-12


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
class Projection:
    """A game reduced to the span of a Krylov space."""

    reduction: KrylovReduction

    def sphere_iterate(self, problem: SphereProblem, tol: float) -> tuple[Iterate, Vector]:
        """Optimum over the span for one strength, and its coordinates in the basis.

        The residual of the sphere problem is ``gamma/4`` of what ``A'A w~`` has outside the span.
        """
        game, gamma = self.reduction.game, problem.gamma
        small = solve_sphere(game, gamma, tol=tol, ulps=ULPS)
        x = small.x.copy()
        if small.fill:
            x[int(np.argmin(game.sigma))] += small.fill
        half = sqrt(gamma) / 2
        space, h = self.reduction.space, self.reduction.vectors @ (x / half)
        multiplier, last = gamma * small.nu / 4, small.c - small.s
        iterate = Iterate(
            multiplier=multiplier,
            objective=small.value,
            residual=gamma / 4 * space.residual(h),
            point=partial(_point, space, h, last),
            product=partial(_product, problem, space, h, last),
            lowest=-gamma * small.pole / 4 if multiplier <= 0.0 else None,
            norm=gamma / 4 * space.scale + problem.zz / 4,
            several=small.outcome == "several" or problem.slope == 0.0,
        )
        return iterate, h

    def interpolant(self, problem: SphereProblem) -> tuple[Iterate, float] | None:
        """Labels met as well as the span allows with a free choice of the pull, the smallest.

        The optimum of a singular problem that has several; see :mod:`spgls.solvers.interpolate`.
        Also its ``alpha``; None if the norm allows none.
        """
        game, gamma = self.reduction.game, problem.gamma
        # Rounding brings null vectors into the span in the end; they have no part in this.
        seen = game.d > NULL * float(game.d.max(initial=0.0))
        w = np.stack([game.eta, game.zeta]) * np.divide(seen, game.sigma)
        alpha = smaller_root(w @ w.T, gamma)
        if alpha is None:
            return None
        c = alpha / (1.0 + alpha)
        space = self.reduction.space
        h = self.reduction.vectors @ ((w[0] - c * w[1]) * 2 / sqrt(gamma))
        last = (alpha - 1.0) / (alpha + 1.0)
        iterate = Iterate(
            multiplier=0.0,
            objective=max(0.0, game.r_yy - 2 * c * game.r_yz + c**2 * game.r_zz),
            residual=hypot(gamma / 4 * space.residual(h), (c * game.r_zz - game.r_yz) / 2),
            point=partial(_point, space, h, last),
            product=partial(_product, problem, space, h, last),
            norm=gamma / 4 * space.scale + problem.zz / 4,
            final=True,
            several=True,
        )
        return iterate, alpha


def project(data: GameData, space: KrylovSpace) -> Projection:
    """Reduce a game to the span alone, whatever is known of the rest of space."""
    reduction = reduce_krylov(data, space)
    return Projection(replace(reduction, game=replace(reduction.game, nullity=0)))


def _point(space: KrylovSpace, h: Vector, last: float) -> Vector:
    return np.append(space.combine(h), last)


def _product(problem: SphereProblem, space: KrylovSpace, h: Vector, last: float) -> Vector:
    """``H r`` from the products that made up the basis."""
    half = sqrt(problem.gamma) / 2
    image = problem.gamma / 4 * space.product(h) + half / 2 * last * problem.p_z
    along = float(problem.p_z @ space.combine(h))
    return np.append(image, half / 2 * along + problem.zz / 4 * last)


def singular(data: GameData) -> bool:
    """Whether ``H`` has more columns than rows could make independent."""
    m, n = data.projected.shape
    return bool(n + 1 > m - data.free_basis.shape[1])


def block_iterates(
    data: GameData,
    problem: SphereProblem,
    space: KrylovSpace,
    controls: Controls,
    limit: int,
    met: list[Iterate] | None,
) -> Iterator[Iterate]:
    """Iterates of the block method for one strength; the last one is final.

    Parameters
    ----------
    data : GameData
        The game's data.
    problem : SphereProblem
        The sphere problem.
    space : KrylovSpace
        A space of ``A'A`` started at ``A'[y, z]``.
    controls : Controls
        Tolerance.
    limit : int
        Limit on products.
    met : list of Iterate, optional
        Where labels can be met exactly, end and leave the point of smallest pull that does here:
        it is optimal, and whoever looks for the hard case need not see it.
    """
    schedule, aim = Schedule(), controls.aim(problem.yy)
    exact = met is not None and singular(data) and problem.yy > 0.0
    before = np.inf
    h: Vector | None = None
    while True:
        restart_from(space, [] if h is None else [h])
        space.extend()
        ended = space.width == 0
        stopped = not ended and space.steps >= limit
        if not (schedule.due(space) or ended or stopped):
            continue
        if not np.isfinite(space.projected).all():
            yield _broken(problem)
            return
        projection = project(data, space)
        iterate, h = projection.sphere_iterate(problem, controls.tol)
        free = projection.interpolant(problem) if exact else None
        if free is not None and met is not None:
            point, alpha = free
            settled = ended or abs(alpha - before) <= SETTLED * alpha
            before = alpha
            if point.objective <= SHARPER * aim and settled:
                met.append(point)
                return
            if iterate.objective <= aim and not (ended or stopped):
                # As good, but with any pull: the one with the smallest needs a little longer.
                continue
        if ended or stopped:
            status = Status.ITERATION_LIMIT if stopped else None
            yield replace(iterate, final=ended, status=status)
            return
        yield iterate


def single_iterates(problem: SphereProblem, room: int, limit: int) -> Iterator[Iterate]:
    """Iterates of the Krylov method of one strength, ``H`` and ``g``; the last one is final.

    The steps of ``gltr``, until the basis is full and has to be restarted.

    Parameters
    ----------
    problem : SphereProblem
        The sphere problem.
    room : int
        Most columns of the basis.
    limit : int
        Limit on products.
    """
    length = problem.slope
    start = problem.g if length > 0.0 else krylov_start(problem.g, length)
    space, schedule = KrylovSpace(problem.product, start[:, None], room), Schedule()
    multiplier: float | None = None
    lowest = np.inf
    h: Vector | None = None
    while True:
        restart_from(space, [] if h is None else [h])
        space.extend()
        T = space.projected
        ended = space.width == 0
        stopped = not ended and space.steps >= limit
        if space.restarts and not (schedule.due(space) or ended or stopped):
            continue
        if not np.isfinite(T).all():
            yield _broken(problem)
            return
        linear = space.starts[:, 0] if length > 0.0 else np.zeros(space.count)
        if space.restarts == 0:
            d, e = np.diagonal(T).copy(), np.diagonal(T, 1).copy()
            h, multiplier = solve_tridiagonal(d, e, length, multiplier)
            if multiplier <= 0.0:
                lowest = lowest_eigenvalue(d, e)
        else:
            h, multiplier, ritz, _ = solve_dense(T, linear)
            lowest = min(lowest, ritz)
        yield Iterate(
            multiplier=multiplier,
            objective=problem.p + float(linear @ h) - multiplier,
            residual=space.residual(h),
            point=partial(space.combine, h),
            product=partial(space.product, h),
            lowest=lowest if multiplier <= 0.0 else None,
            norm=space.scale,
            final=ended,
            several=length == 0.0,
            status=Status.ITERATION_LIMIT if stopped else None,
        )
        if ended or stopped:
            return


def _broken(problem: SphereProblem) -> Iterate:
    """Numbers too large for double precision."""
    return Iterate(np.nan, np.nan, np.nan, problem.g.copy)
