"""Nested restarted Lanczos (LTRSR-type): a Krylov method that forgets, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.linalg import solve_triangular

from spgls.base.types import EPS, Array, Vector
from spgls.base.validation import check_count
from spgls.reduction.data import GameData
from spgls.solvers.iterative.hard import with_hard_case
from spgls.solvers.iterative.iterate import Controls, Iterate, Run, drive
from spgls.solvers.iterative.lanczos import krylov_start
from spgls.solvers.registry import Capabilities, register
from spgls.solvers.solution import Solution
from spgls.sphere.by_eigen import solve_dense
from spgls.sphere.operator import SphereProblem

__all__ = ["LTRSR"]

#: Cycles after which ``H s`` is measured anew rather than combined from what is stored.
_REFRESH = 10


@register
@dataclass(frozen=True)
class LTRSR:
    """Minimise over Krylov spaces that are restarted, joined with the last outer iterates.

    After the nested Lanczos method of Zhang and Shen (2018), whose code and constants are not
    public: the space of a cycle is spanned by the last outer iterates and by Lanczos vectors
    started at the residual of the last one. It contains the last iterate, so the objective never
    rises. The lowest Ritz vector is kept as well: it leads away from local optima.

    Parameters
    ----------
    inner : int
        Lanczos steps a cycle.
    history : int
        Outer iterates remembered. One is as slow as steepest descent; two help most.
    reorthogonalise : bool
        Keep the basis of a cycle orthogonal to rounding.
    hard_case : bool
        Where the multiplier comes out as zero or less, look for the optimum that no Krylov space
        contains; this may keep up to 200 vectors more.
    max_iter : int
        Limit on Lanczos steps, over all cycles.
    """

    inner: int = 40
    history: int = 20
    reorthogonalise: bool = True
    hard_case: bool = True
    max_iter: int = 5000
    capabilities: ClassVar[Capabilities] = Capabilities(
        name="ltrsr",
        summary="nested restarted Lanczos (LTRSR-type, after Zhang and Shen 2018)",
        finds_global=True,
        proves=False,
        iterative=True,
        memory="2 n (inner + history + 1)",
    )

    def __post_init__(self) -> None:
        for name in ("inner", "history"):
            if check_count(getattr(self, name), name) is None:
                raise TypeError(f"{name} must be a positive whole number; got None.")

    def solve(self, data: GameData, gamma: float, controls: Controls) -> Solution:
        """Solve one game."""
        run = Run.begin(self.capabilities.name, data, gamma, controls, self.max_iter)
        iterates = nested_lanczos(
            run.problem, self.inner, self.history, reorthogonalise=self.reorthogonalise
        )
        if self.hard_case:
            iterates = with_hard_case(run, iterates)
        return drive(run, iterates)


def nested_lanczos(
    problem: SphereProblem, inner: int, history: int, *, reorthogonalise: bool
) -> Iterator[Iterate]:
    """Iterates of all cycles, one a product; the last one is final."""
    length = problem.slope
    space = _Space(problem, inner, history)
    q = krylov_start(problem.g, length)
    lowest = np.inf
    while True:
        space.extend(q)
        if not np.isfinite(space.projected).all():
            yield Iterate(np.nan, np.nan, np.nan, q.copy)
            return
        y, multiplier, ritz, ritz_vector = solve_dense(space.projected, space.linear)
        lowest = min(lowest, ritz)
        residual = float(np.linalg.norm(space.residual(y, multiplier)))
        new, beta = space.lanczos(reorthogonalise=reorthogonalise)
        scale = float(np.abs(space.projected).max())
        ended = beta <= 16 * EPS * scale
        final = (
            (ended and space.outer == 0)
            or space.count == problem.size
            or residual <= 16 * EPS * (scale + abs(multiplier) + length)
        )
        yield Iterate(
            multiplier=multiplier,
            objective=problem.p + float(space.linear @ y) - multiplier,
            residual=residual,
            point=space.maker(space.combine, y),
            lowest=lowest if multiplier <= 0.0 else None,
            final=final,
            several=length == 0.0,
        )
        if final:
            return
        if not ended and space.count < space.outer + inner:
            q = new / beta
            continue
        space.restart(y, ritz_vector)
        rho = space.outer_residual()
        norm = float(np.linalg.norm(rho))
        if norm == 0.0:
            return
        q = rho / norm


class _Space:
    """An orthonormal basis ``V = [W, Q]`` with ``H V``.

    ``W`` spans the last outer iterates, the newest first, and the lowest Ritz vector, without which
    a restarted method can end at a local optimum. ``[W, Q]`` spans ``W`` and a Krylov space of
    ``H`` itself, not of its restriction to the complement of ``W``, which takes up to three times
    the products. So the Lanczos vectors ``u`` are not columns of ``V``; they are kept as
    coordinates in it.
    """

    def __init__(self, problem: SphereProblem, inner: int, history: int) -> None:
        size = problem.size
        most = min(inner + history + 1, size)
        self._problem = problem
        self._history = history
        self._V: Array = np.empty((size, most), order="F")
        self._HV: Array = np.empty((size, most), order="F")
        self._P: Array = np.zeros((most, most))
        self._linear: Vector = np.zeros(most)
        self._U: Array = np.zeros((most, most))
        self._u: Vector = np.ones(1)
        self.outer = 0
        self.count = 0
        self.restarts = 0

    @property
    def projected(self) -> Array:
        """``V'HV``."""
        return self._P[: self.count, : self.count]

    @property
    def linear(self) -> Vector:
        """``V'g``."""
        return self._linear[: self.count]

    def combine(self, Y: Array) -> Array:
        """``V Y``."""
        return np.asarray(self._V[:, : len(Y)] @ Y)

    def image(self, Y: Array) -> Array:
        """``H V Y``."""
        return np.asarray(self._HV[:, : len(Y)] @ Y)

    def maker(self, make: Callable[[Array], Array], y: Vector) -> Callable[[], Vector]:
        """Delay ``make(y)``; past a restart ``y`` has become the first column of ``W``."""
        made = self.restarts
        return lambda: make(y if made == self.restarts else np.ones(1))

    def residual(self, y: Vector, multiplier: float) -> Vector:
        """``(H + multiplier I) V y + g``, without a product."""
        return np.asarray(self.image(y) + multiplier * self.combine(y) + self._problem.g)

    def extend(self, q: Vector) -> None:
        """Add a unit vector orthogonal to the basis, at the cost of a product."""
        j = self.count
        self._V[:, j] = q
        self._HV[:, j] = self._problem.product(q)
        self._P[: j + 1, j] = self._V[:, : j + 1].T @ self._HV[:, j]
        self._P[j, :j] = self._P[:j, j]
        self._linear[j] = q @ self._problem.g
        self.count = j + 1
        if j == self.outer:
            self._u = np.zeros(j + 1)
            self._u[j] = 1.0

    def lanczos(self, *, reorthogonalise: bool) -> tuple[Vector, float]:
        """Part of ``H u`` outside the basis and its norm, for the newest Lanczos vector ``u``."""
        step = self.count - self.outer
        self._U[: self.count, step - 1] = self._u
        inside = self.projected @ self._u
        new = self.image(self._u) - self.combine(inside)
        if reorthogonalise:
            new -= self.combine(self._V[:, : self.count].T @ new)
        beta = float(np.linalg.norm(new))
        U = self._U[: self.count, :step]
        for _ in range(2):
            inside = inside - U @ (U.T @ inside)
        u = np.append(inside, beta)
        self._u = u / (float(np.linalg.norm(u)) or 1.0)
        return new, beta

    def restart(self, y: Vector, ritz: Vector) -> None:
        """Keep ``s = V y``, the newest iterates before it and a Ritz vector; drop all else."""
        older = max(0, min(self.outer, self._history) - 1)
        kept = np.zeros((self.count, older + 2))
        kept[:, 0] = y
        kept[:older, 1:-1] = np.eye(older)
        kept[:, -1] = ritz
        # Orthogonal among themselves in coordinates, so that close iterates cost no digits.
        Y, _ = np.linalg.qr(kept)
        Y[:, 0] = y
        W, HW = _orthonormal(self.combine(Y), self.image(Y))
        self.restarts += 1
        if self.restarts % _REFRESH == 0:
            HW[:, 0] = self._problem.product(W[:, 0])
        k = self.outer = self.count = W.shape[1]
        self._V[:, :k], self._HV[:, :k] = W, HW
        P = W.T @ HW
        self._P[:k, :k] = (P + P.T) / 2
        self._linear[:k] = W.T @ self._problem.g
        self._U[:] = 0.0

    def outer_residual(self) -> Vector:
        """Residual of the newest outer iterate, orthogonal to all of them."""
        W = self._V[:, : self.outer]
        rho = self._HV[:, 0] + self._problem.g
        for _ in range(2):
            rho = rho - W @ (W.T @ rho)
        return np.asarray(rho)


def _orthonormal(W: Array, HW: Array) -> tuple[Array, Array]:
    """Orthonormal columns of the same span and their images; the first column alone if in doubt."""
    gram = W.T @ W
    try:
        R = np.linalg.cholesky(gram).T
    except np.linalg.LinAlgError:
        R = np.zeros_like(gram)
    if R.diagonal().min() < 0.5:
        unit = float(np.linalg.norm(W[:, 0]))
        return W[:, :1] / unit, HW[:, :1] / unit
    return (
        solve_triangular(R, W.T, trans="T").T,
        solve_triangular(R, HW.T, trans="T").T,
    )
