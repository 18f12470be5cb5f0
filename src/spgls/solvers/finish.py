"""From points of the sphere to predictors, their objectives and certificates.

A column for each strength; a solve on its own has one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from spgls._types import EPS, Array, Vector
from spgls._vector import dot, norm
from spgls.data import GameData
from spgls.game import Provider, priced_norm
from spgls.providers import priced_norms
from spgls.solvers.chunks import column_chunks
from spgls.solvers.solution import Solution, Status, Step
from spgls.sphere.certificate import Certificate
from spgls.sphere.operator import SphereProblem

if TYPE_CHECKING:
    from spgls.solvers.iterate import Iterate, Run

__all__ = ["Ends", "finish", "proved_gap"]

#: An objective above this share of its terms keeps enough digits to be trusted without the data,
_CLEAR = 1e-4
#: if its rounding takes no more than this share of the gap allowed.
_SHARE = 1e-2


def proved_gap(residual: float | Vector, multiplier: float | Vector) -> Vector:
    """Least of ``|rho(l)|^2/l`` over all ``l > 0``, for the least-squares multiplier.

    ``H`` is positive semidefinite, so each of them bounds the distance from the optimum.
    """
    root = np.hypot(residual, multiplier) + np.abs(multiplier)
    share = residual / np.maximum(root, np.finfo(float).tiny)
    return np.where(multiplier > 0.0, 2 * residual * share, 2 * root)


@dataclass(frozen=True, eq=False)
class Ends:
    """Points of the sphere where iterations ended, a column or an entry for each strength.

    Attributes
    ----------
    gamma : ndarray of shape (G,)
        Strengths.
    w, last : ndarray of shapes (n, G) and (G,)
        Unit vectors ``r``, their last entries apart.
    slope, slope_last : ndarray of shapes (n, G) and (G,)
        ``H r + g`` likewise.
    norm : ndarray of shape (G,)
        Estimates of ``|H|``; infinite where there is none.
    lowest : ndarray of shape (G,)
        Estimates of the smallest eigenvalue of ``H``, zero where there is none.
    several : ndarray of bool
        Known to be one of several optima.
    far : ndarray of bool
        Known to be on the way to an optimum that no predictor attains, if ``A'(y - z) = 0``.
    prove : callable, optional
        As of an :class:`~spgls.solvers.iterate.Iterate`, where there is one column.
    """

    gamma: Vector
    w: Array
    last: Vector
    slope: Array
    slope_last: Vector
    norm: Vector
    lowest: Vector
    several: np.ndarray
    far: np.ndarray
    prove: Callable[[Vector, Vector], tuple[float, float]] | None = None

    @classmethod
    def of_iterate(cls, problem: SphereProblem, best: Iterate | None) -> Ends:
        """Where a method ended; zero coefficients if it never got anywhere."""
        lowest, spread, several, prove = 0.0, np.inf, False, None
        if best is None:
            r = np.zeros(problem.size)
            r[-1] = -1.0
            product = problem.product(r)
        else:
            lowest, spread = best.lowest or 0.0, best.norm
            several, prove = best.several, best.prove
            r = best.point()
            length = norm(r)
            if r[-1] > 0.0 and not problem.g.any():
                # Without a linear term -r is as good, and has the smaller alpha.
                length = -length
            r = r / length
            product = problem.product(r) if best.product is None else best.product() / length
        slope = product + problem.g
        return cls(
            gamma=np.array([problem.gamma]),
            w=r[:-1, None],
            last=r[-1:],
            slope=slope[:-1, None],
            slope_last=slope[-1:],
            norm=np.array([spread]),
            lowest=np.array([lowest]),
            several=np.array([several]),
            far=np.array([False]),
            prove=prove,
        )


def finish(
    run: Run,
    ends: Ends,
    status: Status | None,
    iterations: int,
    histories: Sequence[Sequence[Step]],
) -> list[Solution]:
    """A predictor for each point, with its objective and residual measured anew.

    Parameters
    ----------
    run : Run
        What the solve carries; its problem may be that of any strength.
    ends : Ends
        Where each strength ended.
    status : Status or None
        How they ended, unless the certificates say that all is well.
    iterations : int
        Iterations it took.
    histories : sequence of sequence of Step
        The way there, for each.
    """
    unattained = _reads_goal(run, ends)
    for i in np.flatnonzero(unattained).tolist():
        _step_back_from_infinity(run.at(float(ends.gamma[i])), ends, i)
    coef, alpha = _predictors(run.data, ends)
    slopes = _Slopes.at(run.problem, ends)
    losses = _losses(run, ends, slopes, coef, alpha)
    certificates = _certificates(run, ends, slopes, losses)
    predictors, stats, solutions = np.ascontiguousarray(coef.T), run.stats(iterations), []
    for i, (certificate, history) in enumerate(zip(certificates, histories, strict=True)):
        ended = status or Status.STATIONARY
        if certificate.relative_gap <= run.controls.tol:
            ended = Status.SEVERAL_OPTIMA if ends.several[i] else Status.OPTIMAL
            ended = Status.UNATTAINED if unattained[i] else ended
        solutions.append(
            Solution(
                coef=predictors[i],
                intercept=float(losses.intercept[i]),
                alpha=float(alpha[i]),
                multiplier=float(slopes.multiplier[i]),
                objective=float(losses.objective[i]),
                status=ended,
                solver=run.name,
                certificate=certificate,
                stats=stats,
                history=tuple(history),
            )
        )
    return solutions


def _inner(a: Array, b: Array) -> Vector:
    return np.asarray(np.einsum("ij,ij->j", a, b))


def _reads_goal(run: Run, ends: Ends) -> np.ndarray:
    """Which points near ``alpha~ = 1`` are on their way to an optimum that no predictor attains.

    That takes ``A'(y - z) = 0``, which may cost a read of the data to see; so look only where the
    coefficients are large already.
    """
    problem, near = run.problem, ends.last >= 0.9
    if near.any():
        small = _inner(ends.w, ends.w) / 4 * problem.zz <= 1e4 * run.controls.tol * problem.yy
        near &= small | ends.far
    if near.any():
        gap = float(np.linalg.norm(problem.p_y - problem.p_z))
        size = float(np.linalg.norm(problem.p_y) + np.linalg.norm(problem.p_z))
        near &= gap <= 1e-12 * size
    return near


def _step_back_from_infinity(run: Run, ends: Ends, i: int) -> None:
    """Move to a point of smaller coefficients whose loss is within the tolerance of the infimum."""
    problem, w = run.problem, ends.w[:, i]
    direction = w if w.any() else np.ones(problem.size - 1)
    direction = direction / np.linalg.norm(direction)
    problem.passes += 1.0
    stretch = problem.gamma * float(direction @ problem.matrix.gram(direction))
    room = stretch + 2 * abs(problem.zz - problem.yz) + problem.zz
    s = 0.25
    if room > 0.0:
        s = max(min(run.controls.tol * problem.yy / (4 * room), 0.25), 1e-30)
    if float(w @ w) / 4 <= s:
        w[:], ends.last[i] = 2 * np.sqrt(s * (1 - s)) * direction, 1 - 2 * s
    slope = problem.product(np.append(w, ends.last[i])) + problem.g
    ends.slope[:, i], ends.slope_last[i], ends.norm[i] = slope[:-1], slope[-1], np.inf


def _predictors(data: GameData, ends: Ends) -> tuple[Array, Vector]:
    """Coefficients, and ``alpha``: the paper's second lemma, as in ``from_sphere``."""
    square, last = _inner(ends.w, ends.w), ends.last
    with np.errstate(divide="ignore", invalid="ignore"):
        long = 1.0 + np.abs(last)
        above, below = np.where(last >= 0.0, (long, square / long), (square / long, long))
        v, pull = ends.w * (np.sqrt(ends.gamma) / below), above / below
    coef = data.coefficients(v, data.free_coefficients(v, pull))
    return coef, priced_norms(coef, data.cost) / ends.gamma


class _Slopes(NamedTuple):
    """What ``H r + g`` tells of each point."""

    multiplier: Vector
    objective: Vector
    residual: Vector
    gap: Vector
    linear: Vector  # |g|

    @classmethod
    def at(cls, problem: SphereProblem, ends: Ends) -> _Slopes:
        w, last, slope, half = ends.w, ends.last, ends.slope, np.sqrt(ends.gamma) / 2
        pull, g_last = problem.targets.slope, float(problem.g[-1])
        multiplier = -(_inner(w, slope) + last * ends.slope_last)
        # q(r) = r'Hr + 2g'r + p, and r'(Hr + g) is known.
        objective = half * (pull @ w) + g_last * last - multiplier + problem.p
        gap = None
        if ends.prove is not None:
            r, steep = np.append(w[:, 0], last), np.append(slope[:, 0], ends.slope_last)
            gap, multiplier = (np.array([number]) for number in ends.prove(r, steep))
        rest = slope + w * multiplier
        residual = np.sqrt(_inner(rest, rest) + (ends.slope_last + multiplier * last) ** 2)
        gap = proved_gap(residual, multiplier) if gap is None else gap
        linear = np.sqrt(half**2 * dot(pull, pull) + g_last**2)
        return cls(multiplier, objective, residual, gap, linear)


class _Losses(NamedTuple):
    """Objectives, what rounding can have done to them, and the intercepts they hold for."""

    objective: Vector
    rounding: Vector
    intercept: Vector


def _losses(run: Run, ends: Ends, slopes: _Slopes, coef: Array, alpha: Vector) -> _Losses:
    """Objectives from the recurrence where that has the digits, measured on the data where not."""
    data, problem, objective = run.data, run.problem, slopes.objective
    size = ends.norm + 2 * slopes.linear + problem.p
    rounding, intercept = 16 * EPS * size, np.zeros(len(alpha))
    clear = (objective >= _CLEAR * size) & (len(data.immutable) == 0)
    if data.fit_intercept and clear.any():
        problem.targets.count_once("mean row")
        intercept = data.best_intercepts(coef, alpha)
        # Columns far from zero: what they cancel to is rounded as they are.
        far = (np.abs(data.mean_row) @ np.abs(coef)) / (1.0 + alpha) * np.sqrt(data.total_weight)
        rounding += 16 * EPS * far * (2 * np.sqrt(np.abs(objective)) + EPS * far)
        clear &= rounding <= _SHARE * run.controls.tol * problem.yy
    for some in column_chunks(data, np.flatnonzero(~clear)):
        columns = np.ascontiguousarray(coef[:, some])
        # A vector takes less time than a block of one column.
        linear = data.matrix.apply(columns if len(some) > 1 else columns[:, 0])
        problem.passes += 1.0
        for row, i in zip(linear.reshape(len(linear), -1).T, some.tolist(), strict=True):
            measured = _measure(data, coef[:, i], float(ends.gamma[i]), row)
            objective[i], rounding[i], intercept[i] = measured
    return _Losses(objective, rounding, intercept)


def _measure(
    data: GameData, coef: Vector, gamma: float, linear: Vector
) -> tuple[float, float, float]:
    """Objective, its rounding and the best intercept, from the predictions ``X w`` of all rows."""
    alpha = priced_norm(coef, data.cost) / gamma
    provider = Provider(coef, data.best_intercept(linear, alpha), gamma, data.cost)
    objective = data.loss(data.residual(linear, provider))
    pull = alpha / (1 + alpha)
    size = (1 - pull) * np.sqrt(data.loss(linear)) + np.sqrt(data.loss(data.y))
    size += pull * np.sqrt(data.loss(data.z))
    rounding = float(16 * EPS * size * (np.sqrt(objective) + EPS * size))
    return objective, rounding, provider.intercept


def _certificates(run: Run, ends: Ends, slopes: _Slopes, losses: _Losses) -> Iterator[Certificate]:
    """Bounds by the residual: proved by ``H >= 0``, or estimated by its least Ritz value."""
    residual, multiplier, yy = slopes.residual, slopes.multiplier, run.problem.yy
    # A sum of squares is not negative, so the objective itself bounds the gap.
    gap = np.minimum(slopes.gap, losses.objective)
    estimate = proved_gap(residual, multiplier + ends.lowest)
    estimated = (ends.lowest > 0.0) & (estimate < 1e-3 * gap)
    gap = np.where(estimated, estimate, gap) + losses.rounding
    unit = slopes.linear + np.abs(multiplier)
    kkt = np.where(unit > 0.0, residual / np.where(unit > 0.0, unit, 1.0), residual > 0.0)
    # With nothing left to explain there is no unit: rounding of the labels is as good as zero.
    relative = (
        gap / yy if yy > 0.0 else np.where(gap <= 64 * EPS * run.data.loss(run.data.y), 0.0, np.inf)
    )
    columns = np.stack([losses.objective, gap, relative, kkt, estimated])
    for loss, distance, share, slope, guessed in columns.T.tolist():
        kind: Literal["proved", "estimated"] = "estimated" if guessed else "proved"
        yield Certificate(max(0.0, loss - distance), distance, share, slope, kind)
