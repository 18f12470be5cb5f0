"""From points of the sphere to predictors, their objectives and certificates.

A column for each strength; a solve on its own has one. Certificates rest on products with the data
as it is, and what rounding did to them (:mod:`~spgls.solvers.iterative.residual`): those that an
iteration kept, or new ones. No recurrence is part of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf, isnan, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from spgls.base.cached import cached_property
from spgls.base.types import EPS, Array, Vector
from spgls.base.vector import dot, norm
from spgls.game.providers import priced_norms
from spgls.reduction.data import GameData
from spgls.reduction.layout import times
from spgls.solvers.chunks import column_chunks
from spgls.solvers.iterative.by_products import Points, measure_span
from spgls.solvers.iterative.images import Span
from spgls.solvers.iterative.prove import Kind, Wish
from spgls.solvers.iterative.residual import Bounds, Losses
from spgls.solvers.solution import Solution, Status, Step, status_of
from spgls.sphere.certificate import Certificate
from spgls.sphere.operator import SphereProblem

if TYPE_CHECKING:
    from spgls.solvers.iterative.iterate import Iterate, Run

__all__ = ["Ends", "finish", "proved_gap"]

#: Below the square of any norm that is not zero.
_NOTHING = 1e-300
#: Entries of a long vector that are looked at first.
_FEW = 64


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
    last, squares : ndarray of shape (G,)
        ``alpha~`` of unit vectors ``(w~, alpha~)``, and ``|w~|^2`` up to rounding.
    make : callable
        Makes the vectors, an array of shape (n + 1, G).
    several : ndarray of bool
        Known to be one of several optima.
    far : ndarray of bool
        Known to be on the way to an optimum that no predictor attains, if ``A'(y - z) = 0``.
    floor : ndarray of shape (G,)
        What no eigenvalue of ``H`` is below, as far as a random start can tell; zero where nobody
        looked.
    multiplier : ndarray of shape (G,)
        Multipliers found otherwise than from the points; not a number where there is none.
    span : Span, optional
        The same points as combinations of a basis, where its products are known.
    """

    gamma: Vector
    last: Vector
    squares: Vector
    make: Callable[[], Array]
    several: np.ndarray
    far: np.ndarray
    floor: Vector
    multiplier: Vector
    span: Span | None = None

    @cached_property
    def r(self) -> Array:
        """The vectors themselves."""
        return self.make()

    @property
    def moved(self) -> Ends:
        """The same after :attr:`r` was written to: what was known of the points is lost."""
        w, last = self.r[:-1], self.r[-1]
        squares = np.einsum("ij,ij->j", w, w)
        return replace(self, last=last, squares=squares, make=lambda: self.r, span=None)

    @classmethod
    def of_iterate(cls, problem: SphereProblem, best: Iterate | None) -> Ends:
        """Where a method ended; zero coefficients if it never got anywhere."""
        span, square, length = None, 0.0, 1.0
        if best is None:
            r = np.zeros(problem.size)
            r[-1] = -1.0
        else:
            point = best.point()
            square, end = dot(point[:-1], point[:-1]), float(point[-1])
            length = sqrt(square + end * end)
            if end > 0.0 and problem.slope == 0.0 and not problem.g.any():
                # Without a linear term -r is as good, and has the smaller alpha.
                length = -length
            r = point / length
            span = best.span()
            span = None if span is None else span.scaled(1.0 / length)
        return cls(
            gamma=np.array([problem.gamma]),
            last=r[-1:],
            squares=np.array([square]) / length / length,
            make=lambda: r[:, None],
            several=np.array([best is not None and best.several]),
            far=np.array([False]),
            floor=np.array([0.0 if best is None else best.floor]),
            multiplier=np.array([best.multiplier if best is not None and best.exact else np.nan]),
            span=span,
        )


def finish(
    run: Run,
    ends: Ends,
    status: Status | None,
    iterations: int,
    histories: Sequence[Sequence[Step]],
) -> list[Solution]:
    """A predictor for each point, with its objective and a bound measured anew.

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
    with np.errstate(all="ignore"):
        unattained = _read_goal(run, ends)
        moved = unattained.nonzero()[0].tolist()
        for i in moved:
            _step_back_from_infinity(run.at(float(ends.gamma[i])), ends, i)
        if moved:
            ends = ends.moved
        coef, alpha, sizes = _predictors(run.data, ends)
        judged: list[_Judged] = []
        for some in column_chunks(run.data, np.arange(len(alpha))):
            judged += _judge(run, ends, (coef, alpha, sizes), some, settled=status is None)
    predictors, solutions = np.ascontiguousarray(coef.T), []
    for i, (one, history) in enumerate(zip(judged, histories, strict=True)):
        certificate = _certificate(run, one)
        outcome = "several" if ends.several[i] else "unique"
        solutions.append(
            Solution(
                coef=predictors[i],
                intercept=one.intercept,
                alpha=float(alpha[i]),
                multiplier=one.gamma * one.nu / 4,
                objective=one.objective,
                status=status_of(
                    certificate.relative_gap,
                    run.controls.tol,
                    "unattained" if unattained[i] else outcome,
                    otherwise=status or Status.STATIONARY,
                ),
                solver=run.name,
                certificate=certificate,
                stats=run.stats(iterations),
                history=tuple(history),
            )
        )
    return solutions


def _read_goal(run: Run, ends: Ends) -> np.ndarray:
    """Which points near ``alpha~ = 1`` are on their way to an optimum that no predictor attains.

    That takes ``A'(y - z) = 0``, which may cost a read of the data to see; so look only where the
    coefficients are large already.
    """
    problem, last = run.problem, ends.last
    there = last >= 0.9
    if True not in there.tolist():
        return np.asarray(there)
    square = ends.squares
    large = square / 4 * problem.zz <= 1e4 * run.controls.tol * problem.yy
    there &= large | ends.far
    # The point at infinity itself: no finite predictor belongs to it.
    at_infinity = there & (square < _NOTHING)
    if not (there & ~at_infinity).any():
        return np.asarray(at_infinity)
    rulers = run.prover.fresh.rulers
    most = rulers.whole * (rulers.y + rulers.z)
    # A few entries show that they differ, as a rule.
    if norm(problem.p_y[:_FEW] - problem.p_z[:_FEW]) > (1e-12 + rulers.down) * most:
        return np.asarray(at_infinity)
    gap = norm(problem.p_y - problem.p_z)
    size = norm(problem.p_y) + norm(problem.p_z)
    same = gap <= 1e-12 * size + rulers.down * most
    return np.asarray(at_infinity | (there & same))


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


def _predictors(data: GameData, ends: Ends) -> _Predictors:
    """Coefficients, ``alpha``, and ``|w~|``: the paper's second lemma, as in ``from_sphere``."""
    last, frame = ends.last, None if ends.span is None else ends.span.frame
    # 1 + alpha~ and 1 - alpha~, neither by a subtraction that cancels.
    long = 1.0 + np.abs(last)
    short = np.maximum(ends.squares, _NOTHING) / long
    near = last >= 0.0
    above, below = np.where(near, long, short), np.where(near, short, long)
    factor = np.sqrt(ends.gamma) / below
    if frame is None or ends.span is None:
        v = ends.r[:-1] * factor
    else:
        v = np.matmul((ends.span.h * factor).T, frame.basis.T).T
    coef, layout = v, data.layout
    if layout.cost is not None:
        coef = layout.coefficients(v, data.free_coefficients(v, above / below))
    alpha = priced_norms(coef, layout.cost) / ends.gamma
    # Of the points that were multiplied, by the coefficients that came of them.
    return coef, alpha, np.sqrt(alpha) * below


class _Judged(NamedTuple):
    """What is known of one predictor."""

    gamma: float
    objective: float
    rounding: float
    intercept: float
    lower: float
    nu: float
    residual: float
    kind: Kind


#: Coefficients, ``alpha``, and the lengths of the points that they came from.
_Predictors: TypeAlias = tuple[Array, Vector, Vector]


def _judge(
    run: Run, ends: Ends, predictors: _Predictors, some: np.ndarray, *, settled: bool
) -> list[_Judged]:
    """Measure some predictors, and bound what any other could have.

    From products that are known, where that proves enough; else from the data.
    """
    fresh = run.prover.fresh
    if not fresh.measured:
        run.problem.targets.count_once("rulers")
    done: dict[int, _Judged] = {}
    left = some
    if ends.span is not None and settled and not len(run.data.layout.immutable):
        # Coordinates are sooner judged than vectors, which lose less to rounding.
        known = [ends.span] if ends.span.frame is None else [ends.span, ends.span.unframed]
        for span in known:
            if len(left):
                done |= _by_products(run, ends, span, predictors, left)
                left = np.array([i for i in some.tolist() if i not in done], dtype=int)
    if len(left):
        run.problem.passes += 1.0
        own, gamma = np.ascontiguousarray(predictors[0][:, left]), ends.gamma[left]
        found = fresh.residuals(own, gamma)
        measured = _measured(run, own, found.losses)
        wish = Wish(
            goal=measured.wanted(run),
            gap=run.controls.tol * run.problem.yy,
            hint=4 * ends.multiplier[left] / gamma,
            floor=4 * ends.floor[left] / gamma,
        )
        bounds, kinds = run.prover.bounds(found, wish, run.floor if settled else None)
        done |= zip(left.tolist(), _gather(gamma, measured, bounds, kinds), strict=True)
    return [done[i] for i in some.tolist()]


def _by_products(
    run: Run, ends: Ends, span: Span, predictors: _Predictors, some: np.ndarray
) -> dict[int, _Judged]:
    """Those of some predictors, by number, that products of a basis prove to be good enough."""
    (coef, alpha, sizes), gamma = predictors, ends.gamma
    points = Points(sizes, ends.last, lambda: ends.r)
    if len(some) < len(gamma):
        span, gamma, coef, alpha = span.taken(some), gamma[some], coef[:, some], alpha[some]
        points = Points(sizes[some], ends.last[some], lambda: ends.r[:, some])
    at = run.problem
    if span.bordered and at.gamma != gamma[0]:
        at = at.with_strength(float(gamma[0]))
    losses, bounds = measure_span(run.prover.fresh, span, points, alpha, gamma, at)
    measured = _measured(run, coef, losses)
    enough = (bounds.lower >= measured.wanted(run)).tolist()
    judged = _gather(gamma, measured, bounds, ["proved"] * len(some))
    rows = zip(some.tolist(), judged, enough, strict=True)
    return {i: one for i, one, proved in rows if proved}


class _Measured(NamedTuple):
    """Predictors on the data: what is known of their losses."""

    objective: Vector
    rounding: Vector
    intercept: Vector

    def wanted(self, run: Run) -> Vector:
        """Bounds that would do."""
        return np.asarray(self.objective + self.rounding - run.controls.tol * run.problem.yy)


def _gather(
    gamma: Vector, measured: _Measured, bounds: Bounds, kinds: Sequence[Kind]
) -> list[_Judged]:
    columns = gamma, measured.objective, measured.rounding, measured.intercept, *bounds
    rows = zip(*(column.tolist() for column in columns), kinds, strict=True)
    return [_Judged(*row) for row in rows]


def _measured(run: Run, own: Array, found: Losses) -> _Measured:
    """Losses of predictors with the best intercepts."""
    data, fresh, targets = run.data, run.prover.fresh, run.problem.targets
    intercept, objective, rounding = np.zeros(own.shape[1]), found.square, found.rounding
    if len(data.layout.immutable):
        # Their coefficients come from least squares, which may be less than perfect.
        targets.passes += 1.0
        intercept, loss, free, doubt = _by_row(data, data.matrix.apply(own), found)
        misfit = doubt + fresh.misfit(own, intercept, found) + fresh.rulers.turn * np.sqrt(loss)
        rounding = rounding + misfit * (2.0 * free + misfit)
        direct = fresh.of_measuring(own, intercept, found, loss)
        # In projected data large means do not count, unless the projection is in doubt.
        objective = np.where(rounding < direct, found.square + free**2, loss)
        rounding = np.fmin(rounding, direct)
    elif data.layout.fit_intercept:
        targets.count_once("mean row")
        intercept = data.best_intercepts(own, found.c / found.s)
        rounding = rounding + fresh.misfit(own, intercept, found) ** 2
    return _Measured(objective, rounding, intercept)


def _by_row(data: GameData, linear: Array, found: Losses) -> Array:
    """Best intercepts and losses, from the predictions ``X w`` of all rows.

    Also the length of the errors that better free coefficients would take away, and what that can
    be wrong by.
    """
    intercept, loss, free, doubt = told = np.zeros((4, len(found.s)))
    for i, (s, c) in enumerate(zip(found.s, found.c, strict=True)):
        intercept[i] = data.best_intercept(linear[:, i], float(c / s))
        errors = s * (linear[:, i] + intercept[i]) + c * data.z - data.y
        loss[i] = data.loss(errors)
        free[i], doubt[i] = data.free.part(np.asarray(times(data.root_weight, errors)))
    return told


def _certificate(run: Run, one: _Judged) -> Certificate:
    """What was proved, in the units of the labels."""
    yy, objective = run.problem.yy, one.objective
    lower = min(one.lower, objective) if yy > 0.0 else 0.0
    gap = objective + one.rounding - lower
    if isnan(gap):
        lower, gap = 0.0, inf
    # With nothing left to explain there is no unit: rounding of the labels is as good as zero.
    nothing = yy == 0.0 and gap <= 64 * EPS * run.data.loss(run.data.y)
    residual, multiplier = sqrt(one.gamma) / 2 * one.residual, one.gamma * one.nu / 4
    unit = run.problem.steepness(one.gamma) + abs(multiplier)
    return Certificate(
        lower_bound=lower,
        gap=gap,
        relative_gap=0.0 if nothing else gap / yy if yy > 0.0 else inf,
        kkt_residual=residual / (unit or residual) if residual else 0.0,
        kind=one.kind,
    )
