"""The one loop of all iterative solvers: limits, timing, history, callbacks, and when to stop."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Literal

import numpy as np

from spgls._threads import one_blas_thread
from spgls._types import EPS, Vector
from spgls._vector import dot, norm
from spgls.data import GameData
from spgls.game import Provider, priced_norm
from spgls.solvers.solution import Solution, Stats, Status, Step
from spgls.sphere.certificate import Certificate
from spgls.sphere.operator import SphereProblem
from spgls.sphere.problem import from_sphere

__all__ = [
    "CLEAR",
    "Controls",
    "Iterate",
    "certify_residual",
    "finish",
    "measure",
    "run",
    "sphere_problem",
    "status_at_end",
]

#: A solver aims at this share of the gap allowed, so that rounding does not spoil the certificate.
_AIM = 0.5
#: An objective above this share of its terms keeps enough digits to be trusted without the data.
CLEAR = 1e-4


@dataclass(frozen=True)
class Controls:
    """What a user asks of every solver.

    Attributes
    ----------
    tol : float
        Certified relative gap wanted, in units of R2.
    max_iter : int, optional
        Limit on iterations; each solver has its own default.
    rng : numpy Generator
        Source of randomness for the solvers that need it.
    callback : callable, optional
        Called with each :class:`Step`; a true result stops the solver.
    """

    tol: float = 1e-9
    max_iter: int | None = None
    rng: np.random.Generator | None = None
    callback: Callable[[Step], object] | None = None

    def generator(self) -> np.random.Generator:
        """The source of randomness, the same for every call by default."""
        return np.random.default_rng(0) if self.rng is None else self.rng

    def aim(self, label_size: float) -> float:
        """Gap at which an iterative method ends, for labels of this squared norm."""
        return _AIM * self.tol * label_size


@dataclass(frozen=True, eq=False)
class Iterate:
    """Where a method stands.

    Attributes
    ----------
    multiplier : float
        ``lambda`` of the sphere constraint.
    objective : float
        ``q(r)``.
    residual : float
        ``|(H + lambda I) r + g|``.
    point : callable
        Makes ``r``; called only for the iterate that is returned.
    product : callable, optional
        Makes ``H r`` where the method has it without another read of the data.
    lowest : float, optional
        Estimate of the smallest eigenvalue of ``H``, where the method has one.
    norm : float
        Estimate of ``|H|``, where the method has one; infinite where not.
    final : bool
        The method cannot improve on this.
    several : bool
        Known to be one of several optima.
    prove : callable, optional
        Bounds the gap of a unit vector ``r``, given ``H r + g``, by this very multiplier, up to
        rounding, and tells the multiplier with its rounding; for methods whose multiplier is more
        than a by-product of ``r``.
    status : Status, optional
        How the method ended, where it knows better than that it cannot improve.
    """

    multiplier: float
    objective: float
    residual: float
    point: Callable[[], Vector]
    lowest: float | None = None
    product: Callable[[], Vector] | None = None
    norm: float = np.inf
    final: bool = False
    several: bool = False
    prove: Callable[[Vector, Vector], tuple[float, float]] | None = None
    status: Status | None = None

    def gap(self) -> float:
        """Distance of the objective from the optimum, proved for a positive multiplier.

        Infinite for a method that proves in its own way, which also ends by its own rule.
        """
        if self.prove is not None:
            return np.inf
        lowest = max(self.lowest or 0.0, 0.0)
        return _proved_gap(self.residual, self.multiplier + lowest)


def _proved_gap(residual: float, multiplier: float) -> float:
    """Least of ``|rho(l)|^2/l`` over all ``l > 0``, for the least-squares multiplier.

    ``H`` is positive semidefinite, so each of them bounds the distance from the optimum.
    """
    root = float(np.hypot(residual, multiplier))
    if multiplier > 0.0:
        return 2 * residual**2 / (root + multiplier)
    return 2 * (root - multiplier)


def sphere_problem(data: GameData, gamma: float) -> SphereProblem:
    """The sphere problem of Theorem A on a game's data, without forming anything."""
    targets, _ = data.projected_targets
    y, z = np.ascontiguousarray(targets.T)
    with np.errstate(over="ignore", invalid="ignore"):
        problem = SphereProblem(data.projected, y, z, gamma)
    data.check_finite(problem.g)
    return problem


def run(
    name: str,
    data: GameData,
    problem: SphereProblem,
    iterates: Iterator[Iterate],
    controls: Controls,
    max_iter: int,
    start: float,
    stages: Mapping[str, float] | None = None,
    factorises: bool = False,
) -> Solution:
    """Drive a method to its end and turn where it ended into a solution.

    Parameters
    ----------
    name : str
        Name of the solver.
    data : GameData
        The game's data.
    problem : SphereProblem
        The sphere problem the iterates belong to.
    iterates : iterator of Iterate
        The method.
    controls : Controls
        Tolerance, limit, callback.
    max_iter : int
        The method's own limit, where the user gave none.
    start : float
        When the solve began.
    stages : dict, optional
        Seconds by stage, which the method keeps up to date.
    factorises : bool
        Whether the method's work is in BLAS and not in products with the data.
    """
    with one_blas_thread(data.matrix.threaded and not factorises):
        return _run(name, data, problem, iterates, controls, max_iter, start, stages)


def _run(
    name: str,
    data: GameData,
    problem: SphereProblem,
    iterates: Iterator[Iterate],
    controls: Controls,
    max_iter: int,
    start: float,
    stages: Mapping[str, float] | None,
) -> Solution:
    limit = controls.max_iter or max_iter
    allowed = controls.aim(problem.yy)
    history: list[Step] = []
    best: Iterate | None = None
    status: Status | None = None
    for count, iterate in enumerate(iterates, 1):
        if not np.isfinite([iterate.objective, iterate.residual, iterate.multiplier]).all():
            status = Status.FAILED
            break
        best = iterate
        seconds = perf_counter() - start
        step = Step(count, iterate.objective, iterate.residual, problem.passes, seconds)
        history.append(step)
        if iterate.final or iterate.gap() <= allowed:
            status = iterate.status
            break
        if controls.callback is not None and controls.callback(step):
            status = Status.STOPPED
            break
        if count >= limit:
            status = Status.ITERATION_LIMIT
            break
    return finish(
        name,
        data,
        problem,
        best,
        status,
        controls,
        start=start,
        iterations=len(history),
        history=tuple(history),
        stages=stages,
    )


def finish(
    name: str,
    data: GameData,
    problem: SphereProblem,
    best: Iterate | None,
    status: Status | None,
    controls: Controls,
    *,
    start: float,
    iterations: int,
    history: tuple[Step, ...] = (),
    stages: Mapping[str, float] | None = None,
) -> Solution:
    """From the last iterate to a predictor, with its objective and residual measured anew.

    Parameters
    ----------
    name, data, problem, controls, start, stages
        As in :func:`run`.
    best : Iterate or None
        Where the method ended; None if it never got anywhere.
    status : Status or None
        How it ended, unless the certificate says that all is well.
    iterations : int
        Iterations it took.
    history : tuple of Step
        The way there.
    """
    gamma = problem.gamma
    r, product = _final_point(problem, best)
    unattained = _reads_goal(problem, r, controls.tol)
    if unattained:
        r = _step_back_from_infinity(problem, r, controls.tol)
        product = problem.product(r)
    slope = product + problem.g
    multiplier = -dot(r, slope)
    proved: float | None = None
    w, alpha = from_sphere(r[:-1], float(r[-1]), gamma)
    coef = data.coefficients(w, data.free_coefficients(w, alpha))
    alpha = priced_norm(coef, data.cost) / gamma
    spread = np.inf if best is None or unattained else best.norm
    # q(r) = r'Hr + 2g'r + p, and r'(Hr + g) is known.
    objective = dot(problem.g, r) - multiplier + problem.p
    if best is not None and best.prove is not None:
        proved, multiplier = best.prove(r, slope)
    slope += multiplier * r
    residual = norm(slope)
    size = spread + 2 * problem.slope + problem.p
    if objective >= CLEAR * size and data.free_basis.shape[1] == 0:
        intercept, rounding = 0.0, 16 * EPS * size
    else:
        intercept, objective, rounding = measure(data, coef, gamma, data.matrix.apply(coef))
        problem.passes += 1.0
    lowest = None if best is None else best.lowest
    certificate = certify_residual(
        data,
        problem.yy,
        problem.slope,
        objective,
        rounding,
        residual,
        multiplier,
        lowest,
        proved,
    )
    several = best is not None and best.several
    return Solution(
        coef=coef,
        intercept=intercept,
        alpha=alpha,
        multiplier=multiplier,
        objective=objective,
        status=status_at_end(status, certificate, controls.tol, unattained, several),
        solver=name,
        certificate=certificate,
        stats=Stats(problem.passes, iterations, perf_counter() - start, stages or {}),
        history=history,
    )


def _final_point(problem: SphereProblem, best: Iterate | None) -> tuple[Vector, Vector]:
    """The unit vector a method ended at, and its product with ``H``."""
    if best is None:
        r = np.zeros(problem.size)
        r[-1] = -1.0
        return r, problem.product(r)
    r = best.point()
    length = norm(r)
    if r[-1] > 0.0 and not problem.g.any():
        # Without a linear term -r is as good, and has the smaller alpha.
        length = -length
    r = r / length
    if best.product is None:
        return r, problem.product(r)
    product = best.product()
    product /= length
    return r, product


def _reads_goal(problem: SphereProblem, r: Vector, tol: float) -> bool:
    """Whether a point near ``alpha~ = 1`` is on its way to an optimum that no predictor attains.

    That takes ``A'(y - z) = 0``, which costs a read of the data to see; so look only where the
    coefficients are large already.
    """
    if r[-1] < 0.9 or dot(r[:-1], r[:-1]) / 4 * problem.zz > 1e4 * tol * problem.yy:
        return False
    gap = float(np.linalg.norm(problem.p_y - problem.p_z))
    size = float(np.linalg.norm(problem.p_y) + np.linalg.norm(problem.p_z))
    return gap <= 1e-12 * size


def _step_back_from_infinity(problem: SphereProblem, r: Vector, tol: float) -> Vector:
    """Return a point of smaller coefficients whose loss is within ``tol`` of the infimum."""
    direction = r[:-1] if r[:-1].any() else np.ones(problem.size - 1)
    direction = direction / np.linalg.norm(direction)
    problem.passes += 1.0
    stretch = problem.gamma * float(direction @ problem.matrix.gram(direction))
    room = stretch + 2 * abs(problem.zz - problem.yz) + problem.zz
    s = max(min(tol * problem.yy / (4 * room), 0.25), 1e-30) if room > 0.0 else 0.25
    if float(r[:-1] @ r[:-1]) / 4 > s:
        return r
    return np.append(2 * np.sqrt(s * (1 - s)) * direction, 1 - 2 * s)


def measure(
    data: GameData, coef: Vector, gamma: float, linear: Vector
) -> tuple[float, float, float]:
    """Best intercept, objective and its rounding, from the predictions ``X w`` of all rows."""
    alpha = priced_norm(coef, data.cost) / gamma
    provider = Provider(coef, data.best_intercept(linear, alpha), gamma, data.cost)
    objective = data.loss(data.residual(linear, provider))
    pull = alpha / (1 + alpha)
    size = (1 - pull) * np.sqrt(data.loss(linear)) + np.sqrt(data.loss(data.y))
    size += pull * np.sqrt(data.loss(data.z))
    rounding = float(16 * EPS * size * (np.sqrt(objective) + EPS * size))
    return provider.intercept, objective, rounding


def certify_residual(
    data: GameData,
    yy: float,
    slope: float,
    objective: float,
    rounding: float,
    residual: float,
    multiplier: float,
    lowest: float | None = None,
    proved: float | None = None,
) -> Certificate:
    """Bound the gap by the residual: proved by ``H >= 0``, or estimated by its least Ritz value.

    Where the method has a proof of its own, that one counts. ``slope`` is ``|g|``.
    """
    gap = _proved_gap(residual, multiplier) if proved is None else proved
    # A sum of squares is not negative, so the objective itself bounds the gap.
    gap = min(gap, objective)
    kind: Literal["proved", "estimated"] = "proved"
    if lowest is not None and lowest > 0.0:
        estimate = _proved_gap(residual, multiplier + lowest)
        if estimate < 1e-3 * gap:
            gap, kind = estimate, "estimated"
    gap = gap + rounding
    lower = max(0.0, objective - gap)
    unit = slope + abs(multiplier)
    return Certificate(
        lower_bound=lower,
        gap=gap,
        relative_gap=_relative(gap, yy, data),
        kkt_residual=residual / (unit or residual) if residual else 0.0,
        kind=kind,
    )


def _relative(gap: float, yy: float, data: GameData) -> float:
    """Gap in units of R2; where nothing is left to explain, none is allowed but rounding."""
    if yy > 0.0:
        return gap / yy
    return 0.0 if gap <= 64 * EPS * data.loss(data.y) else np.inf


def status_at_end(
    status: Status | None,
    certificate: Certificate,
    tol: float,
    unattained: bool,
    several: bool,
) -> Status:
    """How a method ended: well, by its certificate, or as it said itself."""
    if certificate.relative_gap <= tol:
        if unattained:
            return Status.UNATTAINED
        return Status.SEVERAL_OPTIMA if several else Status.OPTIMAL
    return Status.STATIONARY if status is None else status
