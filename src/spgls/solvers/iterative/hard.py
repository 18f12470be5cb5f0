"""The hard case, whose optimum no Krylov space started at ``g`` contains.

A Krylov method that ends at a multiplier below zero may have missed the lowest eigenvector of
``H``. A short Lanczos run from a random vector tells. If ``H`` is singular, the optimum needs
``A^+ y``, ``A^+ z`` and perhaps a vector of the null space: two least-squares solves and a closed
form give it, with the smallest ``alpha``. Otherwise a trace of the eigenvector in the start vector
is enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import isnan, sqrt

import numpy as np
from scipy.sparse.linalg import LinearOperator, lsmr

from spgls.base.cached import cached_property
from spgls.base.types import EPS, Vector
from spgls.solvers.iterative.interpolate import smaller_root
from spgls.solvers.iterative.iterate import Iterate, Run
from spgls.solvers.iterative.lanczos import lanczos
from spgls.solvers.iterative.lowest import LOWEST_PRODUCTS, LowestPair, lowest_pair
from spgls.sphere.operator import SphereProblem
from spgls.sphere.problem import to_sphere

__all__ = ["Fits", "HardCase", "hard_iterate", "with_hard_case"]


def with_hard_case(run: Run, iterates: Iterator[Iterate]) -> Iterator[Iterate]:
    """Pass iterates on; where they end at a multiplier of zero or less, look beyond their space.

    Parameters
    ----------
    run : Run
        What the solve carries.
    iterates : iterator of Iterate
        A Krylov method.
    """
    hard = HardCase(run)
    for iterate in iterates:
        judged = hard.judge(iterate)
        if judged is None:
            yield from hard.beyond(iterate)
            return
        yield judged


class HardCase:
    """What is known of the optimum of one strength beyond a Krylov space.

    Parameters
    ----------
    run : Run
        The solve, at that strength.
    fits : Fits, optional
        Least squares of labels and goals, where several strengths share them.
    """

    def __init__(self, run: Run, fits: Fits | None = None) -> None:
        self._run = run
        self._fits = fits or Fits(run.problem, run.limit)
        self._pair: LowestPair | None = None

    def judge(self, iterate: Iterate) -> Iterate | None:
        """The iterate, with what is known of the smallest eigenvalue; None if it is beyond."""
        run, aim = self._run, self._run.aim
        # A limit is not the end of the method.
        final = iterate.final and iterate.status is None
        if self._pair is None:
            # Rounding brings the null space into a Krylov space in the end, and then the multiplier
            # is not negative but 1e-17. An objective of zero cannot be bettered, whatever the
            # residual.
            near = min(iterate.gap, iterate.objective) <= aim
            if iterate.multiplier > aim or not (final or near):
                return iterate
            self._pair = lowest_pair(
                run.problem,
                run.controls.generator(),
                iterate.multiplier,
                LOWEST_PRODUCTS,
                # Few columns are squared for a proof.
                bound=not run.prover.few_columns,
            )
        pair = self._pair
        excess = pair.value + iterate.multiplier
        if excess > pair.error:
            # A proof will rest on what is certain, so the method goes on until that will do.
            known = pair.value - pair.error if run.prover.few_columns else pair.floor
            lowest = known if known + iterate.multiplier > 0.0 else pair.value - pair.error
            return replace(iterate, lowest=lowest, floor=pair.floor)
        # The multiplier is known up to the residual; until then the method goes on.
        if final or iterate.residual <= -excess / 2 or abs(iterate.multiplier) <= aim:
            return None
        return replace(iterate, lowest=pair.value, floor=pair.floor)

    def beyond(self, iterate: Iterate) -> Iterator[Iterate]:
        """Iterates from beyond the space of one that was judged."""
        problem, aim, pair = self._run.problem, self._run.aim, self._pair
        assert pair is not None
        hard = hard_iterate(problem, self._fits, iterate, aim)
        if hard is not None:
            yield hard
            return
        # Of the two optima, the one with the smaller last coordinate has the smaller alpha.
        trace = np.copysign(aim / 4, pair.vector[-1]) * pair.vector
        for traced in lanczos(problem, problem.g + trace, reorthogonalise=True):
            # Judged by the eigenvalue that its own space may not know yet.
            judged = replace(traced, lowest=pair.value - pair.error, floor=pair.floor)
            ended = judged.gap <= aim or traced.final
            several = ended and _mirror_excess(judged, pair) <= 2 * aim
            yield replace(judged, final=ended, several=several)
            if ended:
                return


def _mirror_excess(iterate: Iterate, pair: LowestPair) -> float:
    """How much worse the mirror image across the lowest eigenvector is, ``4 (u'r)^2 (l + l_1)``.

    Nothing in the hard case; where the first method was only stuck at a local optimum, a lot.
    """
    return 4 * float(pair.vector @ iterate.point()) ** 2 * (iterate.multiplier + pair.value)


def hard_iterate(
    problem: SphereProblem, fits: Fits, iterate: Iterate, aim: float
) -> Iterate | None:
    """Return the optimum at ``lambda = 0``, if it is as good as a given iterate."""
    r = _candidate(problem, fits)
    if r is None:
        return None
    product = problem.product(r)
    objective = max(0.0, problem.value(r, product))
    if objective > iterate.objective + aim:
        return None
    residual = float(np.linalg.norm(product + problem.g))
    return Iterate(0.0, objective, residual, r.copy, final=True, several=True)


def _candidate(problem: SphereProblem, fits: Fits) -> Vector | None:
    """Return the point of the sphere that is optimal at ``lambda = 0``, if there is one."""
    if problem.yy == 0.0:
        return None
    gamma, (w_y, w_z), (left_y, left_z) = problem.gamma, fits.solutions, fits.left
    r_zz = float(left_z @ left_z)
    if r_zz <= 1e-22 * problem.zz:
        # Goals in the range of the data: the pull is free.
        alpha = float(smaller_root(w_y, w_z, np.array([gamma]))[0])
        return None if isnan(alpha) else to_sphere(w_y + alpha * (w_y - w_z), gamma).as_vector()
    c = float(left_y @ left_z) / r_zz
    x = w_y - c * w_z
    short = gamma * c * (1.0 - c) - float(x @ x)
    if not 0.0 < c < 1.0 or short < 0.0 or fits.null is None:
        return None
    return to_sphere((x + sqrt(short) * fits.null) / (1.0 - c), gamma).as_vector()


class Fits:
    """Least squares of labels and goals on the data, which no strength enters.

    Parameters
    ----------
    problem : SphereProblem
        The problem of any strength; its passes are counted.
    max_iter : int
        Limit on the iterations of each least-squares solve.
    """

    def __init__(self, problem: SphereProblem, max_iter: int) -> None:
        self._problem, self._max_iter = problem, max_iter

    @cached_property
    def solutions(self) -> tuple[Vector, Vector]:
        """``A^+ y`` and ``A^+ z``."""
        return self._least_squares(self._problem.y), self._least_squares(self._problem.z)

    @cached_property
    def left(self) -> tuple[Vector, Vector]:
        """What they leave of ``y`` and ``z``."""
        problem = self._problem
        fitted = problem.matrix.apply(np.column_stack(self.solutions))
        problem.passes += 1.0
        return problem.y - fitted[:, 0], problem.z - fitted[:, 1]

    @cached_property
    def null(self) -> Vector | None:
        """Unit vector that the data does not see, the same under permutations of the columns."""
        problem, n = self._problem, self._problem.size - 1
        for start in (np.full(n, 1.0 / np.sqrt(n)), np.random.default_rng(0).normal(size=n)):
            problem.passes += 1.0
            rest = start - self._least_squares(problem.matrix.apply(start))
            norm = float(np.linalg.norm(rest))
            if norm > 1e-6 * float(np.linalg.norm(start)):
                return np.asarray(rest / norm)
        return None

    def _least_squares(self, target: Vector) -> Vector:
        problem, matrix = self._problem, self._problem.matrix
        if not target.any():
            return np.zeros(problem.size - 1)

        def apply(v: Vector) -> Vector:
            problem.passes += 1.0
            return matrix.apply(v.ravel())

        def cross(u: Vector) -> Vector:
            problem.passes += 1.0
            return matrix.cross(u.ravel())

        operator = LinearOperator(matrix.shape, matvec=apply, rmatvec=cross, dtype=np.float64)
        solution = lsmr(operator, target, atol=EPS, btol=EPS, conlim=0.0, maxiter=self._max_iter)
        return np.asarray(solution[0])
