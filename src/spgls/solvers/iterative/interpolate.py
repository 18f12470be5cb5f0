"""Weak providers and more columns than rows: meet every label exactly, with the smallest pull.

Then the optimum is ``v = w_y + alpha (w_y - w_z)`` with the least-squares solutions ``w_y, w_z`` of
smallest norm and the smaller root ``alpha`` of ``|v|^2 = gamma alpha``; no Krylov space of the
sphere problem contains it with that ``alpha``. Both solutions come from conjugate gradients on the
normal equations, two recurrences that share each read of the data and keep no basis.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from functools import partial
from math import hypot, isnan, sqrt

import numpy as np
from numpy.typing import NDArray

from spgls.base.types import EPS, Array, Vector
from spgls.base.vector import dot
from spgls.solvers.iterative.iterate import Iterate, Run
from spgls.sphere.operator import SphereProblem
from spgls.sphere.problem import to_sphere

__all__ = [
    "SETTLED",
    "SHARPER",
    "NormalEquations",
    "null_vector",
    "smaller_root",
    "with_interpolation",
]

#: Steps of the Krylov method after which a multiplier below zero is believed.
_PATIENCE = 2
#: Objective aimed at, in units of what is allowed: alpha is known to the root of it only.
SHARPER = 0.1
#: Relative change of alpha in one step at which it counts as settled.
SETTLED = 1e-5
#: Squared gradients below this share of the first are rounding.
_ROUNDING = (16 * EPS) ** 2


def with_interpolation(run: Run, iterates: Iterator[Iterate]) -> Iterator[Iterate]:
    """Pass iterates on; at a multiplier below zero, try to meet the labels exactly.

    ``H`` has to be singular for certain. Over growing Krylov spaces the multiplier only rises, so
    it is below zero from the first step on wherever the labels can be met.

    Parameters
    ----------
    run : Run
        What the solve carries; its problem has more coefficients than rows.
    iterates : iterator of Iterate
        A Krylov method.
    """
    for count, iterate in enumerate(iterates, 1):
        yield iterate
        if count == _PATIENCE and iterate.multiplier < 0.0:
            met = yield from _interpolate(run)
            if met:
                return


def _interpolate(run: Run) -> Generator[Iterate, None, bool]:
    """Iterates with labels met better and better; returns whether they could be."""
    problem, gamma = run.problem, run.problem.gamma
    strength = np.array([gamma])

    def product(V: Array) -> Array:
        problem.passes += 1.0
        if problem.matrix.fused:
            return problem.matrix.gram(V)
        # Data that lies in cache is read twice sooner than two columns are multiplied at once.
        return np.stack([problem.matrix.gram(v) for v in V.T]).T

    pair = NormalEquations(
        product,
        np.stack([problem.p_y, problem.p_z]).T,
        np.array([problem.yy, problem.zz]),
    )
    before, misses = np.inf, 0
    for _ in range(run.limit):
        if not pair.step():
            return False
        alpha = float(smaller_root(pair.x[:, 0], pair.x[:, 1], strength)[0])
        # The norms of both solutions only grow, so a root that is gone does not come back.
        misses = misses + 1 if isnan(alpha) else 0
        if misses == _PATIENCE:
            return False
        if misses:
            continue
        c = alpha / (1.0 + alpha)
        left_y, left_z = np.sqrt(pair.left)
        objective = float(left_y + c * left_z) ** 2
        inside = pair.gradient[:, 0] - c * pair.gradient[:, 1]
        residual = hypot(
            sqrt(gamma) / 2 * float(np.linalg.norm(inside)), sqrt(problem.zz * objective) / 2
        )
        settled = abs(alpha - before) <= SETTLED * alpha or pair.ended
        before = alpha
        make = partial(_point, pair.x, alpha, gamma)
        if objective <= SHARPER * run.aim and settled:
            yield _measured(problem, make())
            return True
        yield Iterate(0.0, objective, residual, make)
    return False


class NormalEquations:
    """Conjugate gradients on ``A'A x = A't`` for several targets, a read for all of them a step.

    Parameters
    ----------
    product : callable
        ``A'A V``.
    right : ndarray of shape (n, w)
        ``A't`` of each target.
    squares : ndarray of shape (w,)
        ``|t|^2``.

    Attributes
    ----------
    x : ndarray of shape (n, w)
        The solutions so far, of smallest norm in the end.
    gradient : ndarray of shape (n, w)
        ``A'(t - A x)``.
    left : ndarray of shape (w,)
        ``|t - A x|^2``.
    """

    def __init__(self, product: Callable[[Array], Array], right: Array, squares: Vector) -> None:
        self._product = product
        # Each column in one piece: sums over short rows take several times as long.
        self.x: Array = np.zeros_like(right, order="F")
        self.gradient: Array = np.array(right, order="F")
        self.left: Vector = squares.astype(float)
        self._direction: Array = np.array(right, order="F")
        self._slope: Vector = np.einsum("ij,ij->j", right, right)
        self._first = self._slope.copy()
        self._squares = squares

    @property
    def _active(self) -> NDArray[np.bool_]:
        worth = self._slope > _ROUNDING * self._first
        return np.asarray(worth & (self.left > 4 * EPS * self._squares))

    @property
    def ended(self) -> bool:
        """Whether rounding leaves no step worth taking."""
        return not self._active.any()

    def step(self) -> bool:
        """Take one step, if there is one worth taking."""
        active = self._active
        if not active.any():
            return False
        image = np.asfortranarray(self._product(self._direction))
        bend = np.einsum("ij,ij->j", self._direction, image)
        active &= bend > 0.0
        length = np.divide(self._slope, bend, out=np.zeros_like(bend), where=active)
        self.x = self.x + length * self._direction
        self.gradient -= length * image
        self.left = np.maximum(self.left - length * self._slope, 0.0)
        slope = np.einsum("ij,ij->j", self.gradient, self.gradient)
        turn = np.divide(slope, self._slope, out=np.zeros_like(slope), where=active)
        self._direction *= turn
        self._direction += self.gradient
        self._slope = np.where(active, slope, 0.0)
        return bool(np.isfinite(slope).all())


def smaller_root(w_y: Vector, w_z: Vector, gamma: Vector) -> Vector:
    """``alpha`` of ``|w_y + alpha (w_y - w_z)|^2 = gamma alpha``, not a number if there is none.

    Parameters
    ----------
    w_y, w_z : ndarray of shape (n,)
        Least-squares solutions for labels and goals.
    gamma : ndarray of shape (G,)
        Strengths of the providers.
    """
    gap = w_y - w_z
    yy = dot(w_y, w_y)
    b = gamma - 2 * dot(w_y, gap)
    disc = b**2 - 4 * dot(gap, gap) * yy
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((b > 0.0) & (disc >= 0.0), 2 * yy / (b + np.sqrt(disc)), np.nan)


def _point(x: Array, alpha: float, gamma: float) -> Vector:
    w_y, w_z = x.T
    return to_sphere(w_y + alpha * (w_y - w_z), gamma).as_vector()


def _measured(problem: SphereProblem, r: Vector) -> Iterate:
    """The last iterate, its residual from a product of its own."""
    product = problem.product(r)
    return Iterate(
        multiplier=0.0,
        objective=max(0.0, problem.value(r, product)),
        residual=float(np.linalg.norm(product + problem.g)),
        point=r.copy,
        final=True,
        several=True,
    )


def null_vector(product: Callable[[Array], Array], n: int, max_iter: int) -> Vector | None:
    """Unit vector that the data does not see, the same under permutations of the columns.

    Parameters
    ----------
    product : callable
        ``A'A V``.
    n : int
        Number of columns.
    max_iter : int
        Limit on products.
    """
    for start in (np.ones(n), np.random.default_rng(0).normal(size=n)):
        right = product(start)[:, None]
        equations = NormalEquations(product, right, np.array([float(start @ right[:, 0])]))
        for _ in range(max_iter):
            if not equations.step():
                break
        rest = start - equations.x[:, 0]
        norm = float(np.linalg.norm(rest))
        if norm > 1e-6 * float(np.linalg.norm(start)):
            return np.asarray(rest / norm)
    return None
