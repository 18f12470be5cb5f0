"""The block Krylov method: grow one space until it holds the optimum of each strength."""

from __future__ import annotations

from dataclasses import replace
from math import isfinite
from typing import Literal

import numpy as np

from spgls.base.threads import one_blas_thread
from spgls.base.types import Array, Vector
from spgls.reduction import KrylovSpace
from spgls.solvers.chunks import column_chunks
from spgls.solvers.iterative.finish import finish
from spgls.solvers.iterative.hard import Fits, HardCase
from spgls.solvers.iterative.images import MeasuredSpace
from spgls.solvers.iterative.interpolate import SETTLED, SHARPER
from spgls.solvers.iterative.iterate import Run, drive
from spgls.solvers.krylov.projected import (
    Points,
    Projection,
    Schedule,
    project,
    restart_from,
    singular,
)
from spgls.solvers.solution import Solution, Status, Step

__all__ = ["BlockMethod", "Doubts"]

Doubts = Literal["ignore", "judge", "leave"]

#: Entries of coefficients that are made at once: of those that are judged by their coordinates,
#: and of others.
_ENTRIES, _FEWER = 2**20, 2**16


class BlockMethod:
    """Which strengths are still open, and the way each has come.

    Parameters
    ----------
    run : Run
        What the solve carries, at any strength. Its callback sees the strength that is farthest
        from its optimum.
    space : KrylovSpace
        A space of ``A'A`` started at ``A'[y, z]``; it grows.
    gammas : ndarray of shape (G,)
        Strengths.
    doubts : {"ignore", "judge", "leave"}
        What to do where a multiplier comes out as zero or less, and the optimum may lie in no
        Krylov space: finish, look beyond the space, or leave it to the method of one strength.

    Attributes
    ----------
    found : dict
        Solutions by number.
    histories : list of list of Step
        The way of each.
    """

    def __init__(self, run: Run, space: KrylovSpace, gammas: Vector, doubts: Doubts) -> None:
        self.run, self.space, self.gammas = run, space, gammas
        self.found: dict[int, Solution] = {}
        self.histories: list[list[Step]] = [[] for _ in gammas]
        self._pending = np.arange(len(gammas))
        self._wanted: list[Array] = []
        self._alpha = np.full(len(gammas), np.inf)
        self._exact = doubts != "ignore" and singular(run.data) and run.problem.yy > 0.0
        self._doubts = doubts
        self._cases: dict[int, HardCase] = {}
        self._fits = Fits(run.problem, run.limit)

    def solve(self) -> dict[int, Solution]:
        """Extend the space until none is open, or the limit or the callback ends it.

        Strengths are left out too where nothing is there to start from, and where numbers become
        too large for double precision.
        """
        space, schedule = self.space, Schedule()
        with np.errstate(all="ignore"), one_blas_thread(self.run.data.matrix.threaded):
            while space.width and len(self._pending) and self.run.problem.yy > 0.0:
                restart_from(space, self._wanted)
                space.extend()
                last = space.width == 0 or space.steps >= self.run.limit
                if not (schedule.due(space) or last):
                    continue
                if not isfinite(space.scale) or self._look(last):
                    break
        return self.found

    def _look(self, last: bool) -> bool:
        """Solve on the span and finish what it holds; whether the callback asks to stop."""
        run, space, pending = self.run, self.space, self._pending
        projection = project(run.data, space)
        points = projection.optima(run.problem, self.gammas[pending], run.controls.tol)
        seconds, passes = run.seconds, run.problem.passes
        values = zip(points.objective.tolist(), points.residual.tolist(), strict=True)
        steps = [Step(space.steps, *value, passes, seconds) for value in values]
        for i, step in zip(pending.tolist(), steps, strict=True):
            self.histories[i].append(step)
        limited = Status.ITERATION_LIMIT if last and space.width else None
        done, wait = self._interpolate(projection, points, last)
        over = ~(done | wait) & (last | (points.gap <= run.aim))
        if self._doubts != "ignore":
            doubtful = ~(done | wait) & self._doubtful(points, last)
            self._finish(points, over & ~doubtful, limited)
            done |= over & ~doubtful
            if self._doubts == "judge":
                done |= self._look_beyond(points, doubtful, limited, final=last)
                over = doubtful & (last | (points.gap <= run.aim))
                self._finish(points, over & ~done, limited)
        else:
            self._finish(points, over, limited)
        left = ~(over | done)
        callback = run.controls.callback
        if callback is not None and left.any():
            farthest = int(np.argmax(np.where(left, points.gap, -np.inf)))
            if callback(steps[farthest]):
                self._finish(points, left, Status.STOPPED)
                self._pending = pending[:0]
                return True
        self._pending, self._wanted = pending[left], list(points.h[:, left].T)
        return False

    def _interpolate(
        self, projection: Projection, points: Points, last: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Finish the strengths whose labels are met with the smallest pull; who has to wait for it.

        As good as that is the optimum over the span, but with any pull.
        """
        run, pending = self.run, self._pending
        near = points.objective <= run.aim
        if not (self._exact and near.any()):
            return np.zeros_like(near), np.zeros_like(near)
        free, alpha = projection.interpolants(run.problem, points.gamma)
        with np.errstate(invalid="ignore"):
            settled = np.abs(alpha - self._alpha[pending]) <= SETTLED * alpha
            met = near & (free.objective <= SHARPER * run.aim) & (settled | last)
        self._alpha[pending] = np.where(np.isfinite(alpha), alpha, np.inf)
        self._finish(free, met, None)
        return met, near & np.isfinite(alpha) & ~met & (not last)

    def _doubtful(self, points: Points, last: bool) -> np.ndarray:
        """Which may have their optimum beyond the space."""
        aim = self.run.aim
        near = last | (np.minimum(points.gap, points.objective) <= aim)
        known = np.array([i in self._cases for i in self._pending.tolist()])
        return np.asarray(known | (near & (points.multiplier <= aim)))

    def _look_beyond(
        self, points: Points, which: np.ndarray, status: Status | None, *, final: bool
    ) -> np.ndarray:
        """Judge multipliers of zero or less; which strengths were finished beyond the space."""
        done = np.zeros_like(which)
        for row in np.flatnonzero(which).tolist():
            i = int(self._pending[row])
            alone = self.run.at(float(self.gammas[i]))
            case = self._cases.setdefault(i, HardCase(alone, self._fits))
            iterate = replace(points.iterate(row), final=final, status=status)
            judged = case.judge(iterate)
            if judged is None:
                self.found[i] = drive(alone, case.beyond(iterate), before=self.histories[i])
                done[row] = True
            else:
                points.lowest[row], points.floor[row] = judged.lowest or 0.0, judged.floor
        return done

    def _finish(self, points: Points, which: np.ndarray, status: Status | None) -> None:
        rows = np.flatnonzero(which)
        kept = isinstance(self.space, MeasuredSpace) and self.space.kept
        width = max((_ENTRIES if kept else _FEWER) // self.space.size, 8)
        if len(self.run.data.layout.immutable):
            width = len(next(column_chunks(self.run.data, np.arange(width))))
        for at in range(0, len(rows), width):
            some = rows[at : at + width]
            numbers = self._pending[some].tolist()
            histories = [self.histories[i] for i in numbers]
            ended = finish(self.run, points.ends(some), status, self.space.steps, histories)
            self.found.update(zip(numbers, ended, strict=True))
