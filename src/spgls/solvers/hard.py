"""The hard case at a singular ``H``, which no Krylov space started at ``g`` contains.

If ``H`` is singular and the sphere can be reached at ``lambda = 0``, the optimum needs ``A^+ y``,
``A^+ z`` and perhaps a vector of the null space. Two least-squares solves and a closed form give
it, with the smallest ``alpha``; no eigenvector is needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt

import numpy as np
from scipy.sparse.linalg import LinearOperator, lsmr

from spgls._types import EPS, Vector
from spgls.solvers.iterate import Iterate
from spgls.sphere.operator import SphereProblem
from spgls.sphere.problem import to_sphere

__all__ = ["hard_candidate", "with_hard_case"]


def with_hard_case(
    problem: SphereProblem, iterates: Iterator[Iterate], aim: float, max_iter: int
) -> Iterator[Iterate]:
    """Pass iterates on; where they end at a multiplier of zero or less, try the hard case first.

    Parameters
    ----------
    problem : SphereProblem
        The problem.
    iterates : iterator of Iterate
        A Krylov method.
    aim : float
        Gap at which it ends.
    max_iter : int
        Limit on the iterations of each least-squares solve.
    """
    for iterate in iterates:
        if (iterate.final or iterate.gap() <= aim) and iterate.multiplier <= 0.0:
            r = hard_candidate(problem, max_iter)
            if r is not None:
                product = problem.product(r)
                objective = max(0.0, problem.value(r, product))
                if objective <= iterate.objective + aim:
                    residual = float(np.linalg.norm(product + problem.g))
                    yield Iterate(0.0, objective, residual, r.copy, final=True, several=True)
                    return
        yield iterate


def hard_candidate(problem: SphereProblem, max_iter: int) -> Vector | None:
    """Return the point of the sphere that is optimal at ``lambda = 0``, if there is one.

    Parameters
    ----------
    problem : SphereProblem
        The problem; its passes are counted.
    max_iter : int
        Limit on the iterations of each least-squares solve.
    """
    if problem.yy == 0.0:
        return None
    gamma = problem.gamma
    w_y = _least_squares(problem, problem.y, max_iter)
    w_z = _least_squares(problem, problem.z, max_iter)
    fitted = problem.matrix.apply(np.column_stack([w_y, w_z]))
    problem.passes += 1.0
    left_y, left_z = problem.y - fitted[:, 0], problem.z - fitted[:, 1]
    r_zz = float(left_z @ left_z)
    if r_zz <= 1e-22 * problem.zz:
        return _free_pull(w_y, w_y - w_z, gamma)
    c = float(left_y @ left_z) / r_zz
    x = w_y - c * w_z
    short = gamma * c * (1.0 - c) - float(x @ x)
    if not 0.0 < c < 1.0 or short < 0.0:
        return None
    null = _null_vector(problem, max_iter)
    if null is None:
        return None
    return to_sphere((x + sqrt(short) * null) / (1.0 - c), gamma).as_vector()


def _free_pull(w_y: Vector, gap: Vector, gamma: float) -> Vector | None:
    """Goals in the range of the data: the smaller root of ``|w_y + alpha gap|^2 = gamma alpha``."""
    yy, yd, dd = float(w_y @ w_y), float(w_y @ gap), float(gap @ gap)
    b = gamma - 2 * yd
    disc = b**2 - 4 * dd * yy
    if b <= 0.0 or disc < 0.0:
        return None
    alpha = 2 * yy / (b + sqrt(disc))
    return to_sphere(w_y + alpha * gap, gamma).as_vector()


def _least_squares(problem: SphereProblem, target: Vector, max_iter: int) -> Vector:
    if not target.any():
        return np.zeros(problem.size - 1)
    matrix = problem.matrix

    def apply(v: Vector) -> Vector:
        problem.passes += 1.0
        return matrix.apply(v.ravel())

    def cross(u: Vector) -> Vector:
        problem.passes += 1.0
        return matrix.cross(u.ravel())

    operator = LinearOperator(matrix.shape, matvec=apply, rmatvec=cross, dtype=np.float64)
    solution = lsmr(operator, target, atol=EPS, btol=EPS, conlim=0.0, maxiter=max_iter)
    return np.asarray(solution[0])


def _null_vector(problem: SphereProblem, max_iter: int) -> Vector | None:
    """Unit vector that the data does not see, the same under permutations of the columns."""
    ones = np.full(problem.size - 1, 1.0 / np.sqrt(problem.size - 1))
    for start in (ones, np.random.default_rng(0).normal(size=problem.size - 1)):
        problem.passes += 1.0
        rest = start - _least_squares(problem, problem.matrix.apply(start), max_iter)
        norm = float(np.linalg.norm(rest))
        if norm > 1e-6 * float(np.linalg.norm(start)):
            return np.asarray(rest / norm)
    return None
