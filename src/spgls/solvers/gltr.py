"""The Krylov method of Gould, Lucidi, Roma and Toint, with the sphere as an equality."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import ClassVar

import numpy as np

from spgls._types import EPS, Array, Vector
from spgls.data import GameData
from spgls.solvers.base import Capabilities, register
from spgls.solvers.hard import with_hard_case
from spgls.solvers.iterate import Controls, Iterate, run, sphere_problem
from spgls.solvers.solution import Solution
from spgls.solvers.spectral import Spectral
from spgls.sphere.operator import SphereProblem
from spgls.sphere.tridiagonal import lowest_eigenvalue, solve_tridiagonal

__all__ = ["GLTR", "Basis"]


@register
@dataclass(frozen=True)
class GLTR:
    """Minimise over growing Krylov spaces of ``H`` and ``g``.

    Parameters
    ----------
    reorthogonalise : bool
        Keep the basis orthogonal to rounding. Without it the method needs more products, but the
        inner products with all earlier vectors are saved.
    perturbation : float
        Length of a random vector added to ``g``, in units of the gap allowed; the answer is judged
        by the original problem. With a perturbation the method reaches a gap of order ``1/k^2``
        after ``k`` products in the hard case too (Carmon and Duchi); zero is the plain method.
    hard_case : bool
        Where the multiplier comes out as zero or less, look for the optimum that no Krylov space
        contains, by least squares.
    max_iter : int
        Limit on products.
    """

    reorthogonalise: bool = True
    perturbation: float = 0.0
    hard_case: bool = True
    max_iter: int = 2000
    capabilities: ClassVar[Capabilities] = Capabilities(
        name="gltr",
        summary="Lanczos and a tridiagonal secular equation (Gould et al. 1999)",
        finds_global=True,
        proves=False,
        iterative=True,
        memory="n times the number of products",
    )

    def solve(self, data: GameData, gamma: float, controls: Controls) -> Solution:
        """Solve one game."""
        start = perf_counter()
        if len(data.changeable) == 0:
            return Spectral().solve(data, gamma, controls)
        problem = sphere_problem(data, gamma)
        g = problem.g
        if self.perturbation:
            xi = controls.generator().normal(size=problem.size)
            length = self.perturbation * controls.tol * problem.yy
            g = g + length / np.linalg.norm(xi) * xi
        limit = controls.max_iter or self.max_iter
        iterates = lanczos(problem, g, reorthogonalise=self.reorthogonalise)
        if self.hard_case:
            iterates = with_hard_case(problem, iterates, controls.aim(problem.yy), limit)
        return run(self.capabilities.name, data, problem, iterates, controls, limit, start)


def lanczos(problem: SphereProblem, g: Vector, *, reorthogonalise: bool) -> Iterator[Iterate]:
    """Iterates of the plain Krylov method; the last one is final."""
    length = float(np.linalg.norm(g))
    basis = Basis(problem.size)
    if length == 0.0:
        return
    q, before = g / length, np.zeros(problem.size)
    diagonal: list[float] = []
    off: list[float] = []
    multiplier: float | None = None
    while True:
        basis.append(q)
        w = problem.product(q)
        diagonal.append(float(q @ w))
        w -= diagonal[-1] * q
        if off:
            w -= off[-1] * before
        if reorthogonalise:
            w -= basis.combine(basis.inner(w))
        beta = float(np.linalg.norm(w))
        d, e = np.array(diagonal), np.array(off)
        h, multiplier = solve_tridiagonal(d, e, length, multiplier)
        scale = float(np.abs(d).max()) + (float(e.max()) if off else 0.0)
        ended = beta <= 16 * EPS * scale or len(diagonal) == problem.size
        yield Iterate(
            multiplier=multiplier,
            objective=problem.p + length * float(h[0]) - multiplier,
            residual=0.0 if ended else beta * abs(float(h[-1])),
            point=lambda h=h: basis.combine(h),  # type: ignore[misc]
            lowest=lowest_eigenvalue(d, e) if multiplier <= 0.0 else None,
            final=ended,
        )
        if ended:
            return
        off.append(beta)
        before, q = q, w / beta


class Basis:
    """Columns of a basis, in memory that grows with them."""

    def __init__(self, size: int, room: int = 16) -> None:
        self._columns: Array = np.empty((size, min(room, size)), order="F")
        self.count = 0

    def append(self, q: Vector) -> None:
        """Add a column."""
        if self.count == self._columns.shape[1]:
            grown = np.empty((len(q), 2 * self.count), order="F")
            grown[:, : self.count] = self._columns
            self._columns = grown
        self._columns[:, self.count] = q
        self.count += 1

    def inner(self, w: Vector) -> Vector:
        """Inner products of all columns with a vector."""
        return np.asarray(self._columns[:, : self.count].T @ w)

    def combine(self, h: Vector) -> Vector:
        """Combination of the first columns."""
        return np.asarray(self._columns[:, : len(h)] @ h)
