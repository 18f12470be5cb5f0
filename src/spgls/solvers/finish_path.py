"""From points on a Krylov space to solutions, for many strengths at once.

What a solve on its own computes from its last iterate is computed with a column for each strength
instead, from the same recurrence. Nothing here reads the data for a single strength.
"""

from __future__ import annotations

from time import perf_counter

import numpy as np

from spgls._types import EPS, Array, Vector
from spgls.data import GameData
from spgls.providers import priced_norms
from spgls.reduction import KrylovSpace
from spgls.solvers.iterate import (
    CLEAR,
    Controls,
    Iterate,
    certify_residual,
    finish,
    measure,
    status_at_end,
)
from spgls.solvers.projected_path import PathPoints
from spgls.solvers.recover import column_chunks
from spgls.solvers.solution import Solution, Stats, Status, Step
from spgls.sphere.operator import SphereProblem

__all__ = ["finish_path"]

#: Entries of one array of coefficients and strengths.
_ENTRIES = 2**17


def finish_path(
    name: str,
    data: GameData,
    base: SphereProblem,
    space: KrylovSpace,
    points: PathPoints,
    status: Status | None,
    controls: Controls,
    start: float,
    histories: list[list[Step]],
) -> list[Solution]:
    """From points on a span to predictors; :func:`~spgls.solvers.iterate.finish` for many.

    Parameters
    ----------
    name, data, controls, start
        As for one strength.
    base : SphereProblem
        The problem of any strength; counts the reads of the data.
    space : KrylovSpace
        The space whose span it is.
    points : PathPoints
        Where each strength ended.
    status : Status or None
        How they ended, unless the certificates say that all is well.
    histories : list of list of Step
        The way there, for each.
    """
    width = max(_ENTRIES // space.size, 8)
    if len(data.immutable):
        width = len(next(column_chunks(data, np.arange(width))))
    solutions: list[Solution] = []
    for at in range(0, len(points.gamma), width):
        some = slice(at, at + width)
        piece = _Ends(name, data, base, space, points.taken(some), controls)
        solutions += piece.solutions(status, start, histories[some])
    return solutions


class _Ends:
    """A few points on the sphere, in all of space."""

    def __init__(
        self,
        name: str,
        data: GameData,
        base: SphereProblem,
        space: KrylovSpace,
        points: PathPoints,
        controls: Controls,
    ) -> None:
        self.name, self.data, self.base, self.space = name, data, base, space
        self.points, self.controls = points, controls
        gamma, half, g_last = points.gamma, np.sqrt(points.gamma) / 2, float(base.g[-1])
        p_y, p_z = space.starts.T[:2]
        pull = p_z / 2 - p_y
        w = space.combine(points.h)
        length = np.sqrt(_squares(w) + points.last**2)
        if not pull.any() and g_last == 0.0:
            # Without a linear term -r is as good, and has the smaller alpha.
            length = np.where(points.last > 0.0, -length, length)
        w /= length
        h, last = points.h / length, points.last / length
        # H r + g, from the products that made up the basis; labels and goals lie in its span.
        inside = gamma / 4 * (space.projected @ h)
        inside += np.outer(p_z, half / 2 * last) + np.outer(pull, half)
        slope = space.combine(inside)
        slope += space.outside(gamma / 4 * h)
        slope_last = half / 2 * (p_z @ h) + base.zz / 4 * last + g_last
        self.multiplier = -(np.einsum("ij,ij->j", w, slope) + last * slope_last)
        # q(r) = r'Hr + 2g'r + p, and r'(Hr + g) is known.
        self.objective = half * (pull @ h) + g_last * last - self.multiplier + base.p
        slope += w * self.multiplier
        slope_last += self.multiplier * last
        self.residual = np.sqrt(_squares(slope) + slope_last**2)
        self.slope = np.sqrt(half**2 * float(pull @ pull) + g_last**2)
        self.w, self.last = w, last

    def solutions(
        self, status: Status | None, start: float, histories: list[list[Step]]
    ) -> list[Solution]:
        """A predictor for each, with its certificate."""
        data, base, points, tol = self.data, self.base, self.points, self.controls.tol
        unattained = self._unattained()
        coef, alpha = self._predictors()
        intercept = np.zeros(len(alpha))
        size = points.norm + 2 * self.slope + base.p
        rounding = 16 * EPS * size
        clear = (self.objective >= CLEAR * size) & (len(data.immutable) == 0) & ~unattained
        if data.fit_intercept and clear.any():
            if "mean_row" not in data.__dict__:
                base.passes += 1.0
            intercept = data.best_intercepts(coef, alpha)
            # Columns far from zero: what they cancel to is rounded as they are.
            far = (np.abs(data.mean_row) @ np.abs(coef)) / (1.0 + alpha)
            far *= np.sqrt(data.total_weight)
            rounding += 16 * EPS * far * (2 * np.sqrt(np.abs(self.objective)) + EPS * far)
            clear &= rounding <= 1e-2 * tol * base.yy
        objective = self.objective.copy()
        for some in column_chunks(data, np.flatnonzero(~clear & ~unattained)):
            columns = np.ascontiguousarray(coef[:, some])
            linear = data.matrix.apply(columns)
            base.passes += 1.0
            for column, i in enumerate(some.tolist()):
                intercept[i], objective[i], rounding[i] = measure(
                    data, columns[:, column], float(points.gamma[i]), linear[:, column]
                )
        rows = np.ascontiguousarray(coef.T)
        found = []
        for i, history in enumerate(histories):
            if unattained[i]:
                found.append(self._alone(i, status, start, history))
                continue
            certificate = certify_residual(
                data,
                base.yy,
                float(self.slope[i]),
                float(objective[i]),
                float(rounding[i]),
                float(self.residual[i]),
                float(self.multiplier[i]),
            )
            several = bool(points.several[i])
            found.append(
                Solution(
                    coef=rows[i],
                    intercept=float(intercept[i]),
                    alpha=float(alpha[i]),
                    multiplier=float(self.multiplier[i]),
                    objective=float(objective[i]),
                    status=status_at_end(status, certificate, tol, False, several),
                    solver=self.name,
                    certificate=certificate,
                    stats=Stats(base.passes, self.space.steps, perf_counter() - start),
                    history=tuple(history),
                )
            )
        return found

    def _predictors(self) -> tuple[Array, Vector]:
        """Coefficients, and ``alpha``; the paper's second lemma, as in ``from_sphere``."""
        square, last, gamma = _squares(self.w), self.last, self.points.gamma
        with np.errstate(divide="ignore", invalid="ignore"):
            far = last >= 0.0
            above = np.where(far, 1.0 + last, square / (1.0 - last))
            below = np.where(far, square / (1.0 + last), 1.0 - last)
            v, pull = self.w * (np.sqrt(gamma) / below), above / below
        coef = self.data.coefficients(v, self.data.free_coefficients(v, pull))
        return coef, priced_norms(coef, self.data.cost) / gamma

    def _unattained(self) -> np.ndarray:
        """Which may be on their way to an optimum that no predictor attains."""
        base, tol = self.base, self.controls.tol
        small = _squares(self.w) / 4 * base.zz <= 1e4 * tol * base.yy
        near = (self.last >= 0.9) & small
        if not near.any():
            return near
        gap = float(np.linalg.norm(base.p_y - base.p_z))
        size = float(np.linalg.norm(base.p_y) + np.linalg.norm(base.p_z))
        return near & (gap <= 1e-12 * size)

    def _alone(self, i: int, status: Status | None, start: float, history: list[Step]) -> Solution:
        problem = _Strength(self.base, float(self.points.gamma[i]))
        r = np.append(self.w[:, i], self.last[i])
        iterate = Iterate(
            multiplier=float(self.points.multiplier[i]),
            objective=float(self.points.objective[i]),
            residual=float(self.points.residual[i]),
            point=r.copy,
            norm=float(self.points.norm[i]),
            several=bool(self.points.several[i]),
        )
        solution = finish(
            self.name,
            self.data,
            problem,
            iterate,
            status,
            self.controls,
            start=start,
            iterations=self.space.steps,
            history=tuple(history),
        )
        self.base.passes = problem.passes
        return solution


def _squares(columns: Array) -> Vector:
    return np.asarray(np.einsum("ij,ij->j", columns, columns))


class _Strength(SphereProblem):
    """The sphere problem of another strength on the same data, without another read."""

    def __init__(self, other: SphereProblem, gamma: float) -> None:
        self.__dict__.update(other.__dict__)
        self.__dict__.pop("slope", None)
        self.gamma = gamma
        self._half = np.sqrt(gamma) / 2
        self.p_y, self.p_z = other.p_y, other.p_z
        self.g = np.append(self._half * (self.p_z / 2 - self.p_y), other.g[-1])
