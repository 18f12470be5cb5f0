"""From points of the sphere to predictors, their objectives and certificates.

A column for each strength; a solve on its own has one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import hypot, inf, isnan, sqrt
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from spgls.base.types import EPS, Array, Vector
from spgls.base.vector import norm
from spgls.game.providers import priced_norms
from spgls.game.response import Provider, priced_norm
from spgls.reduction.data import GameData
from spgls.solvers.chunks import column_chunks
from spgls.solvers.solution import Solution, Status, Step, status_of
from spgls.sphere.certificate import Certificate
from spgls.sphere.operator import SphereProblem

if TYPE_CHECKING:
    from spgls.solvers.iterative.iterate import Iterate, Run

__all__ = ["Ends", "finish", "proved_gap"]

#: An objective above this share of its terms keeps enough digits to be trusted without the data,
_CLEAR = 1e-4
#: if its rounding takes no more than this share of the gap allowed.
_SHARE = 1e-2
#: Multipliers below this share of ``|H|`` ask for products measured on the data.
_WEAK = 1e-6
#: Below the square of any norm that is not zero.
_NOTHING = 1e-300


def proved_gap(residual: Any, multiplier: Any) -> Any:
    """Least of ``|rho(l)|^2/l`` over all ``l > 0``, for the least-squares multiplier.

    ``H`` is positive semidefinite, so each of them bounds the distance from the optimum. Numbers,
    or arrays of them.
    """
    root = (residual * residual + multiplier * multiplier) ** 0.5 + abs(multiplier)
    right = 2 * residual * (residual / (root + (root == 0.0)))
    return right * (multiplier > 0.0) + 2 * root * (multiplier <= 0.0)


@dataclass(frozen=True, eq=False)
class Ends:
    """Points of the sphere where iterations ended, a column or an entry for each strength.

    Attributes
    ----------
    gamma : ndarray of shape (G,)
        Strengths.
    r, slope : ndarray of shape (n + 1, G)
        Unit vectors ``r = (w~, alpha~)``, and ``H r + g``.
    norm : ndarray of shape (G,)
        Estimates of ``|H|``; infinite where there is none.
    lowest : ndarray of shape (G,)
        Estimates of the smallest eigenvalue of ``H``, zero where there is none.
    several : ndarray of bool
        Known to be one of several optima.
    far : ndarray of bool
        Known to be on the way to an optimum that no predictor attains, if ``A'(y - z) = 0``.
    prove : callable, optional
        As of an :class:`~spgls.solvers.iterative.iterate.Iterate`, where there is one column.
    """

    gamma: Vector
    r: Array
    slope: Array
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
        return cls(
            gamma=np.array([problem.gamma]),
            r=r[:, None],
            slope=(product + problem.g)[:, None],
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
    columns = _columns(run.problem, ends)
    # Beside a multiplier this small, products made up from stored ones have too few digits.
    weak = [i for i, at in enumerate(columns) if 0.0 < at.multiplier < _WEAK * at.norm < inf]
    if weak and ends.prove is None:
        _measure_slopes(run.problem, ends, np.array(weak))
        columns = _columns(run.problem, ends)
    unattained = [_reads_goal(run, column) for column in columns]
    for i in [i for i, away in enumerate(unattained) if away]:
        _step_back_from_infinity(run.at(columns[i].gamma), ends, i)
        columns = _columns(run.problem, ends)
    coef, alpha = _predictors(run.data, ends, columns)
    losses = _losses(run, columns, coef, alpha)
    predictors, solutions = np.ascontiguousarray(coef.T), []
    for i, (column, loss, history) in enumerate(zip(columns, losses, histories, strict=True)):
        proved = None if ends.prove is None else ends.prove(ends.r[:, i], ends.slope[:, i])
        certificate = _certificate(run, column, loss, proved)
        outcome = "several" if ends.several[i] else "unique"
        outcome = "unattained" if unattained[i] else outcome
        solutions.append(
            Solution(
                coef=predictors[i],
                intercept=loss.intercept,
                alpha=alpha[i],
                multiplier=column.multiplier if proved is None else proved[1],
                objective=loss.objective,
                status=status_of(
                    certificate.relative_gap,
                    run.controls.tol,
                    outcome,
                    otherwise=status or Status.STATIONARY,
                ),
                solver=run.name,
                certificate=certificate,
                stats=run.stats(iterations),
                history=tuple(history),
            )
        )
    return solutions


def _measure_slopes(problem: SphereProblem, ends: Ends, rows: np.ndarray) -> None:
    """``H r + g`` of some points from the data, in one read."""
    gamma, r, targets = ends.gamma[rows], ends.r[:, rows], problem.targets
    half = np.sqrt(gamma) / 2
    problem.passes += 1.0
    w = np.ascontiguousarray(r[:-1])
    image = problem.matrix.gram(w if len(rows) > 1 else w[:, 0]).reshape(w.shape)
    ends.slope[:-1, rows] = gamma / 4 * image + np.outer(problem.p_z, half / 2 * r[-1])
    ends.slope[:-1, rows] += np.outer(targets.slope, half)
    last = half / 2 * (problem.p_z @ w) + problem.zz / 4 * r[-1] + targets.g_last
    ends.slope[-1, rows] = last


class _Column(NamedTuple):
    """What is known of one point, in numbers."""

    gamma: float
    last: float
    square: float  # |w~|^2
    along: float  # w~'A'(z/2 - y)
    multiplier: float
    residual: float
    norm: float
    lowest: float
    far: bool

    @property
    def sides(self) -> tuple[float, float]:
        """``1 + alpha~`` and ``1 - alpha~``, neither by a subtraction that cancels."""
        long = 1.0 + abs(self.last)
        short = max(self.square, _NOTHING) / long
        return (long, short) if self.last >= 0.0 else (short, long)


def _columns(problem: SphereProblem, ends: Ends) -> list[_Column]:
    r, w = ends.r, ends.r[:-1]
    multiplier = -_inner(r, ends.slope)
    rest = ends.slope + r * multiplier
    entries = (
        ends.gamma,
        r[-1],
        _inner(w, w),
        problem.targets.slope @ w,
        multiplier,
        np.sqrt(_inner(rest, rest)),
        ends.norm,
        ends.lowest,
        ends.far,
    )
    return [_Column(*row) for row in zip(*(entry.tolist() for entry in entries), strict=True)]


def _inner(a: Array, b: Array) -> Vector:
    return np.asarray(np.einsum("ij,ij->j", a, b))


def _reads_goal(run: Run, column: _Column) -> bool:
    """Whether a point near ``alpha~ = 1`` is on its way to an optimum that no predictor attains.

    That takes ``A'(y - z) = 0``, which may cost a read of the data to see; so look only where the
    coefficients are large already.
    """
    problem = run.problem
    large = column.square / 4 * problem.zz <= 1e4 * run.controls.tol * problem.yy
    if column.last < 0.9 or not (large or column.far):
        return False
    if column.square < _NOTHING:
        # The point at infinity itself: no finite predictor belongs to it.
        return True
    gap = float(np.linalg.norm(problem.p_y - problem.p_z))
    size = float(np.linalg.norm(problem.p_y) + np.linalg.norm(problem.p_z))
    return gap <= 1e-12 * size


def _step_back_from_infinity(run: Run, ends: Ends, i: int) -> None:
    """Move to a point of smaller coefficients whose loss is within the tolerance of the infimum."""
    problem, r = run.problem, ends.r[:, i]
    w = r[:-1]
    direction = w if w.any() else np.ones(problem.size - 1)
    direction = direction / np.linalg.norm(direction)
    problem.passes += 1.0
    stretch = problem.gamma * float(direction @ problem.matrix.gram(direction))
    room = stretch + 2 * abs(problem.zz - problem.yz) + problem.zz
    s = 0.25
    if room > 0.0:
        s = max(min(run.controls.tol * problem.yy / (4 * room), 0.25), 1e-30)
    if float(w @ w) / 4 <= s:
        w[:], r[-1] = 2 * np.sqrt(s * (1 - s)) * direction, 1 - 2 * s
    ends.slope[:, i], ends.norm[i] = problem.product(r) + problem.g, np.inf


def _predictors(data: GameData, ends: Ends, columns: list[_Column]) -> tuple[Array, list[float]]:
    """Coefficients, and ``alpha``: the paper's second lemma, as in ``from_sphere``."""
    above, below = zip(*(column.sides for column in columns), strict=True)
    v = ends.r[:-1] * (np.sqrt(ends.gamma) / below)
    coef = data.layout.coefficients(v, data.free_coefficients(v, np.divide(above, below)))
    return coef, (priced_norms(coef, data.layout.cost) / ends.gamma).tolist()


class _Loss(NamedTuple):
    """An objective, what rounding can have done to it, and the intercept it holds for."""

    objective: float
    rounding: float
    intercept: float = 0.0


def _losses(run: Run, columns: list[_Column], coef: Array, alpha: list[float]) -> list[_Loss]:
    """Objectives from the recurrence where that has the digits, measured on the data where not."""
    data, problem = run.data, run.problem
    found = [_from_recurrence(problem, column) for column in columns]
    clear = [loss.objective >= _CLEAR / (16 * EPS) * loss.rounding for loss in found]
    if len(data.layout.immutable):
        clear = [False] * len(found)
    if data.layout.fit_intercept and any(clear):
        problem.targets.count_once("mean row")
        intercepts = data.best_intercepts(coef, np.array(alpha)).tolist()
        # Columns far from zero: what they cancel to is rounded as they are.
        reach = np.abs(data.mean_row) @ np.abs(coef) * np.sqrt(data.total_weight)
        for i, (loss, far) in enumerate(zip(found, reach / (1.0 + np.array(alpha)), strict=True)):
            more = 16 * EPS * far * (2 * sqrt(abs(loss.objective)) + EPS * far)
            found[i] = _Loss(loss.objective, loss.rounding + float(more), intercepts[i])
            clear[i] &= found[i].rounding <= _SHARE * run.controls.tol * problem.yy
    unclear = np.flatnonzero(np.logical_not(clear))
    for some in column_chunks(data, unclear):
        block = np.ascontiguousarray(coef[:, some])
        # A vector takes less time than a block of one column.
        linear = data.matrix.apply(block if len(some) > 1 else block[:, 0])
        problem.passes += 1.0
        for row, i in zip(linear.reshape(len(linear), -1).T, some.tolist(), strict=True):
            found[i] = _measured(data, coef[:, i], columns[i].gamma, row)
    return found


def _from_recurrence(problem: SphereProblem, column: _Column) -> _Loss:
    """``q(r) = r'Hr + 2g'r + p``, as ``r'(Hr + g)`` is known."""
    along = sqrt(column.gamma) / 2 * column.along + problem.targets.g_last * column.last
    size = column.norm + 2 * problem.targets.steepness(column.gamma) + problem.p
    return _Loss(along - column.multiplier + problem.p, 16 * EPS * size)


def _measured(data: GameData, coef: Vector, gamma: float, linear: Vector) -> _Loss:
    """With the best intercept, from the predictions ``X w`` of all rows."""
    alpha = priced_norm(coef, data.layout.cost) / gamma
    provider = Provider(coef, data.best_intercept(linear, alpha), gamma, data.layout.cost)
    objective = data.loss(data.residual(linear, provider))
    pull = alpha / (1 + alpha)
    size = (1 - pull) * sqrt(data.loss(linear)) + sqrt(data.loss(data.y))
    size += pull * sqrt(data.loss(data.z))
    rounding = 16 * EPS * size * (sqrt(objective) + EPS * size)
    return _Loss(objective, rounding, provider.intercept)


def _certificate(
    run: Run, column: _Column, loss: _Loss, proved: tuple[float, float] | None
) -> Certificate:
    """Bound the gap by the residual: proved by ``H >= 0``, or estimated by its least Ritz value.

    Where the method has a proof of its own, that one counts.
    """
    residual, multiplier, yy = column.residual, column.multiplier, run.problem.yy
    if proved is None:
        gap = proved_gap(residual, multiplier)
    else:
        gap, multiplier = proved
        # What is left at the best multiplier is orthogonal to the point.
        residual = hypot(residual, multiplier - column.multiplier)
    # A sum of squares is not negative, so the objective itself bounds the gap.
    gap = min(gap, loss.objective)
    kind: Literal["proved", "estimated"] = "proved"
    if column.lowest > 0.0:
        estimate = proved_gap(residual, multiplier + column.lowest)
        if estimate < 1e-3 * gap:
            gap, kind = estimate, "estimated"
    gap += loss.rounding
    if isnan(gap):
        gap = inf
    # With nothing left to explain there is no unit: rounding of the labels is as good as zero.
    nothing = yy == 0.0 and gap <= 64 * EPS * run.data.loss(run.data.y)
    unit = run.problem.targets.steepness(column.gamma) + abs(multiplier)
    return Certificate(
        lower_bound=max(0.0, loss.objective - gap) if yy > 0.0 else 0.0,
        gap=gap,
        relative_gap=0.0 if nothing else gap / yy if yy > 0.0 else inf,
        kkt_residual=residual / (unit or residual) if residual else 0.0,
        kind=kind,
    )
