"""One Krylov space for every strength of a path: grow it until it holds the optimum of each."""

from __future__ import annotations

from time import perf_counter

import numpy as np

from spgls._types import Array, Vector
from spgls.data import GameData
from spgls.reduction import KrylovSpace
from spgls.solvers.finish_path import finish_path
from spgls.solvers.interpolate import SETTLED, SHARPER
from spgls.solvers.iterate import Controls
from spgls.solvers.projected import Projection, Schedule, project, restart_from, singular
from spgls.solvers.projected_path import PathPoints, interpolants, path_points
from spgls.solvers.solution import Solution, Status, Step
from spgls.sphere.operator import SphereProblem

__all__ = ["solve_strengths"]


def solve_strengths(
    name: str,
    data: GameData,
    base: SphereProblem,
    space: KrylovSpace,
    gammas: Vector,
    controls: Controls,
    limit: int,
    hard_case: bool,
    start: float,
) -> dict[int, Solution]:
    """Solutions by number; strengths at multipliers of zero or less are left out.

    Parameters
    ----------
    name : str
        Name of the solver.
    data : GameData
        The data of the games.
    base : SphereProblem
        The sphere problem of any strength; counts the reads of the data.
    space : KrylovSpace
        A space of ``A'A`` started at ``A'[y, z]``; it grows.
    gammas : ndarray of shape (G,)
        Strengths.
    controls : Controls
        Tolerance and callback. The latter sees the strength that is farthest from its optimum.
    limit : int
        Limit on products.
    hard_case : bool
        Whether to look for the smallest pull where labels can be met.
    start : float
        When the solve began.
    """
    path = _Strengths(name, data, base, space, gammas, controls, start)
    path.exact = hard_case and singular(data) and base.yy > 0.0
    path.run(limit)
    return path.found


class _Strengths:
    """Which strengths are still open, and the way each has come."""

    exact = False

    def __init__(
        self,
        name: str,
        data: GameData,
        base: SphereProblem,
        space: KrylovSpace,
        gammas: Vector,
        controls: Controls,
        start: float,
    ) -> None:
        self.name, self.data, self.base, self.space = name, data, base, space
        self.gammas, self.controls, self.start = gammas, controls, start
        self.aim = controls.aim(base.yy)
        self.found: dict[int, Solution] = {}
        self.pending = np.arange(len(gammas))
        self.histories: list[list[Step]] = [[] for _ in gammas]
        self._alpha = np.full(len(gammas), np.inf)
        self._wanted: list[Array] = []

    def run(self, limit: int) -> None:
        """Extend the space until none is open, or the limit or the callback ends it."""
        space, schedule = self.space, Schedule()
        while len(self.pending):
            restart_from(space, self._wanted)
            space.extend()
            ended = space.width == 0 or space.steps >= limit
            if not (schedule.due(space) or ended):
                continue
            # Numbers too large for double precision are for a solve on its own to report.
            if not np.isfinite(space.projected).all() or self._look(ended):
                return

    def _look(self, ended: bool) -> bool:
        """Solve on the span and finish what it holds; whether the callback asks to stop."""
        base, space, aim, callback = self.base, self.space, self.aim, self.controls.callback
        projection = project(self.data, space)
        points = path_points(projection, base, self.gammas[self.pending], self.controls.tol)
        seconds = perf_counter() - self.start
        values = zip(points.objective.tolist(), points.residual.tolist(), strict=True)
        steps = [Step(space.steps, *value, base.passes, seconds) for value in values]
        for i, step in zip(self.pending.tolist(), steps, strict=True):
            self.histories[i].append(step)
        over = (points.gap <= aim) | ended
        met = np.zeros(len(over), dtype=bool)
        near = points.objective <= aim
        if self.exact and near.any():
            met, wait = self._interpolate(projection, near, ended)
            over &= ended | ~wait
        status = Status.ITERATION_LIMIT if space.width else None
        self._finish(points, over & ~met & (points.multiplier > aim), status)
        left = ~(over | met)
        if callback is not None and left.any():
            farthest = int(np.argmax(np.where(left, points.gap, -np.inf)))
            if callback(steps[farthest]):
                self._finish(points, left, Status.STOPPED)
                return True
        self.pending, self._wanted = self.pending[left], list(points.h[:, left].T)
        return False

    def _interpolate(
        self, projection: Projection, near: np.ndarray, ended: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Finish the strengths whose labels are met with the smallest pull; who has to wait for it.

        As good as that is the optimum over the span, but with any pull.
        """
        pending = self.pending
        points, alpha = interpolants(projection, self.base, self.gammas[pending])
        with np.errstate(invalid="ignore"):
            settled = np.abs(alpha - self._alpha[pending]) <= SETTLED * alpha
            met = near & (points.objective <= SHARPER * self.aim) & (settled | ended)
        self._alpha[pending] = np.where(np.isfinite(alpha), alpha, np.inf)
        self._finish(points, met, None)
        return met, near & np.isfinite(alpha)

    def _finish(self, points: PathPoints, which: np.ndarray, status: Status | None) -> None:
        rows = np.flatnonzero(which)
        if not len(rows):
            return
        numbers = self.pending[rows].tolist()
        solutions = finish_path(
            self.name,
            self.data,
            self.base,
            self.space,
            points.taken(rows),
            status,
            self.controls,
            self.start,
            [self.histories[i] for i in numbers],
        )
        self.found.update(zip(numbers, solutions, strict=True))
