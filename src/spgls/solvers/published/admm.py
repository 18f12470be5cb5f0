"""Alternating directions on the sphere: one linear system, one projection, one dual step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from spgls.base.types import EPS, Array, Vector
from spgls.base.validation import check_count, check_number
from spgls.reduction.data import GameData
from spgls.solvers.iterative.iterate import Controls, Iterate, Run, drive
from spgls.solvers.registry import Capabilities, register
from spgls.solvers.solution import Solution
from spgls.sphere.operator import SphereProblem

__all__ = ["ADMM"]

#: Iterations before the first change of ``rho``; each change doubles the wait for the next.
_FIRST_WAIT = 5
#: How far off ``rho`` must be to be worth a factorisation.
_WORTH = 3.0
#: Share of a random vector in the start: where ``-g`` is an eigenvector, or lies with all of its
#: Krylov space apart from the optimum, the method would never leave that space.
_NUDGE = 0.01
#: Up to this size eigenvalues are computed, beyond it estimated from the factor at hand.
_SMALL = 200


@register
@dataclass(frozen=True)
class ADMM:
    """Split the quadratic from the sphere and let the two agree (Wei et al. 2026).

    Built from the description in arXiv 2604.02676, whose code is not public: ``H + rho I`` is
    factorised once, each iteration solves with it, projects onto the sphere and moves the dual
    variable. The choice of ``rho`` and the over-relaxation are ours.

    It may end at a stationary point that is not the global optimum; the certificate says so. Of
    several optima it returns any, not the one with the smallest ``alpha``.

    Parameters
    ----------
    rho : "auto" or float
        Penalty, in units of ``H``. ``"auto"`` follows the multiplier, since ``rho = lambda`` makes
        the iteration contract alike along every eigenvector; it factorises anew where ``rho`` was
        far off, ever more rarely. A number is kept, with one factorisation.
    relaxation : float
        Over-relaxation, above 0 and below 2; one is the plain method.
    max_iter : int
        Limit on iterations.
    max_size : int
        Refuse games with more changeable features than this: the method holds two dense matrices
        of that order.
    """

    rho: float | Literal["auto"] = "auto"
    relaxation: float = 1.6
    max_iter: int = 5000
    max_size: int = 5000
    capabilities: ClassVar[Capabilities] = Capabilities(
        name="admm",
        summary="a shifted system, a projection and a dual step in turn (Wei et al. 2026)",
        finds_global=False,
        proves=False,
        iterative=True,
        memory="2 n^2",
    )

    def __post_init__(self) -> None:
        if self.rho != "auto":
            check_number(self.rho, "rho", above=0.0, advice="Or leave it at 'auto'.")
        check_number(self.relaxation, "relaxation", above=0.0, below=2.0)
        for name in ("max_iter", "max_size"):
            if check_count(getattr(self, name), name) is None:
                raise TypeError(f"{name} must be a positive whole number; got None.")

    def solve(self, data: GameData, gamma: float, controls: Controls) -> Solution:
        """Solve one game."""
        n = data.layout.count
        if n > self.max_size:
            raise ValueError(
                f"solver 'admm' factorises a dense matrix with one row per changeable feature, "
                f"here {n}, and refuses above max_size={self.max_size}. Use solver='gltr', which "
                f"only multiplies by the data, or pass ADMM(max_size={n}) if you have "
                f"{16e-9 * n**2:.2g} GB to spare."
            )
        run = Run.begin(self.capabilities.name, data, gamma, controls, self.max_iter)
        return drive(run, self._iterates(run.problem, controls.generator()), factorises=True)

    def _iterates(self, problem: SphereProblem, rng: np.random.Generator) -> Iterator[Iterate]:
        g = problem.g
        length = float(np.linalg.norm(g))
        u = _NUDGE * _random_unit(problem.size, rng)
        u -= g / length if length else 0.0
        u /= np.linalg.norm(u)
        dual = np.zeros(problem.size)
        system = _System(problem.dense())
        lowest: float | None = None
        product = system.H @ u
        curvature, multiplier = float(u @ product), -float(u @ (product + g))
        rho = self._penalty(multiplier, curvature, system)
        system.factorise(rho)
        changed, wait = 0, _FIRST_WAIT
        count = 0
        while True:
            count += 1
            right = rho * (u - dual) - g
            x = system.solve(right)
            # The system itself gives H x, so the residual on the sphere costs no product.
            norm = float(np.linalg.norm(x))
            r = x / norm
            product = (right - rho * x) / norm
            curvature, multiplier = float(r @ product), -float(r @ (product + g))
            residual = float(np.linalg.norm(product + g + multiplier * r))
            floor = 16 * EPS * (system.size + rho + length)
            if lowest is None and multiplier <= 0.0 and residual <= 1e-4 * (length + floor):
                lowest = system.lowest()
            yield Iterate(
                multiplier=multiplier,
                objective=problem.value(r, product),
                residual=residual,
                point=r.copy,
                lowest=lowest,
                final=residual <= floor,
            )
            moved = self.relaxation * x + (1 - self.relaxation) * u + dual
            u = moved / np.linalg.norm(moved)
            dual = moved - u
            if count - changed < wait:
                continue
            wanted = self._penalty(multiplier, curvature, system)
            if not rho / _WORTH <= wanted <= rho * _WORTH:
                dual *= rho / wanted
                rho = wanted
                system.factorise(rho)
                changed, wait = count, 2 * wait

    def _penalty(self, multiplier: float, curvature: float, system: _System) -> float:
        """``rho`` that contracts fastest, as far as multiplier and curvature ``r'Hr`` tell.

        Along an eigenvector of ``H`` with eigenvalue ``h``, tangential to the sphere, a plain step
        contracts by ``(rho^2 + h lambda)/((rho + h)(rho + lambda))``, along its normal by
        about ``r'Hr/(rho + r'Hr)``; a negative multiplier needs ``rho`` well above its magnitude.
        """
        if self.rho != "auto":
            return float(self.rho)
        least = max(0.01 * curvature, 1e-12 * system.size)
        between = float(np.sqrt(abs(multiplier) * max(curvature, 0.0)))
        return max(multiplier, -10 * multiplier, between, least) or 1.0


class _System:
    """``H``, and the Cholesky factor of ``H + rho I``."""

    def __init__(self, H: Array) -> None:
        self.H = H
        self.size = float(np.linalg.norm(H))
        self._rho = 0.0
        self._factor: Any = None

    def factorise(self, rho: float) -> None:
        shifted = self.H.T.copy(order="F")
        shifted.flat[:: len(shifted) + 1] += rho
        try:
            self._factor = cho_factor(shifted, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            raise ValueError(
                f"rho must be large enough for H + rho I to be positive definite after rounding, "
                f"with H of norm {self.size:.3g}; got {rho:.3g}. Leave it at 'auto'."
            ) from None
        self._rho = rho

    def solve(self, right: Vector) -> Vector:
        return np.asarray(cho_solve(self._factor, right, check_finite=False))

    def lowest(self) -> float | None:
        """Smallest eigenvalue of ``H``; from inverse iterations with the factor if it is large."""
        n = len(self.H)
        if n <= _SMALL:
            return float(np.linalg.eigvalsh(self.H)[0])
        inverse = LinearOperator((n, n), matvec=lambda v: self.solve(v.ravel()), dtype=np.float64)
        start = _random_unit(n, np.random.default_rng(0))
        try:
            top = eigsh(inverse, k=1, which="LA", v0=start, tol=1e-9, return_eigenvectors=False)
        except ArpackNoConvergence:
            return None
        return float(1.0 / top[0] - self._rho)


def _random_unit(size: int, rng: np.random.Generator) -> Vector:
    v = rng.normal(size=size)
    return np.asarray(v / np.linalg.norm(v))
