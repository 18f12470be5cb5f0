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
from math import sqrt

import numpy as np
from scipy.sparse.linalg import LinearOperator, lsmr

from spgls._types import EPS, Vector
from spgls.solvers.iterate import Controls, Iterate
from spgls.solvers.lanczos import lanczos
from spgls.solvers.lowest import LowestPair, lowest_pair
from spgls.sphere.operator import SphereProblem
from spgls.sphere.problem import to_sphere

__all__ = ["hard_candidate", "hard_iterate", "with_hard_case"]

#: Limit on products spent on the smallest eigenvalue of ``H``.
_LOWEST_PRODUCTS = 200


def with_hard_case(
    problem: SphereProblem, iterates: Iterator[Iterate], controls: Controls, max_iter: int
) -> Iterator[Iterate]:
    """Pass iterates on; where they end at a multiplier of zero or less, look beyond their space.

    Parameters
    ----------
    problem : SphereProblem
        The problem.
    iterates : iterator of Iterate
        A Krylov method.
    controls : Controls
        Tolerance and source of randomness.
    max_iter : int
        Limit on the iterations of each further solve.
    """
    aim = controls.aim(problem.yy)
    pair: LowestPair | None = None
    for iterate in iterates:
        if pair is None:
            # Rounding brings the null space into a Krylov space in the end, and then the multiplier
            # is not negative but 1e-17. An objective of zero cannot be bettered, whatever the
            # residual.
            near = min(iterate.gap(), iterate.objective) <= aim
            if iterate.multiplier > aim or not (iterate.final or near):
                yield iterate
                continue
            pair = lowest_pair(problem, controls.generator(), iterate.multiplier, _LOWEST_PRODUCTS)
        excess = pair.value + iterate.multiplier
        if excess > pair.error:
            yield replace(iterate, lowest=pair.value - pair.error)
            continue
        # The multiplier is known up to the residual; until then the method goes on.
        if iterate.final or iterate.residual <= -excess / 2 or abs(iterate.multiplier) <= aim:
            yield from _beyond(problem, iterate, pair, aim, max_iter)
            return
        yield replace(iterate, lowest=pair.value)


def _beyond(
    problem: SphereProblem, iterate: Iterate, pair: LowestPair, aim: float, max_iter: int
) -> Iterator[Iterate]:
    hard = hard_iterate(problem, iterate, aim, max_iter)
    if hard is not None:
        yield hard
        return
    # Of the two optima, the one with the smaller last coordinate has the smaller alpha.
    trace = np.copysign(aim / 4, pair.vector[-1]) * pair.vector
    for traced in lanczos(problem, problem.g + trace, reorthogonalise=True):
        ended = traced.gap() <= aim or traced.final
        several = ended and _mirror_excess(traced, pair) <= 2 * aim
        yield replace(traced, lowest=pair.value, final=ended, several=several, product=None)
        if ended:
            return


def _mirror_excess(iterate: Iterate, pair: LowestPair) -> float:
    """How much worse the mirror image across the lowest eigenvector is, ``4 (u'r)^2 (l + l_1)``.

    Nothing in the hard case; where the first method was only stuck at a local optimum, a lot.
    """
    lowest = pair.value if iterate.lowest is None else iterate.lowest
    return 4 * float(pair.vector @ iterate.point()) ** 2 * (iterate.multiplier + lowest)


def hard_iterate(
    problem: SphereProblem, iterate: Iterate, aim: float, max_iter: int
) -> Iterate | None:
    """Return the optimum at ``lambda = 0``, if it is as good as a given iterate."""
    r = hard_candidate(problem, max_iter)
    if r is None:
        return None
    product = problem.product(r)
    objective = max(0.0, problem.value(r, product))
    if objective > iterate.objective + aim:
        return None
    residual = float(np.linalg.norm(product + problem.g))
    return Iterate(0.0, objective, residual, r.copy, final=True, several=True)


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
