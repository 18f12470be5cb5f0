"""The Krylov method of Gould, Lucidi, Roma and Toint, with the sphere as an equality."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from spgls.reduction.data import GameData
from spgls.solvers.iterative.hard import with_hard_case
from spgls.solvers.iterative.iterate import Controls, Run, drive
from spgls.solvers.iterative.lanczos import lanczos
from spgls.solvers.registry import Capabilities, register
from spgls.solvers.solution import Solution

__all__ = ["GLTR"]


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
        run = Run.begin(self.capabilities.name, data, gamma, controls, self.max_iter)
        problem = run.problem
        g = problem.g
        if self.perturbation:
            xi = controls.generator().normal(size=problem.size)
            length = self.perturbation * controls.tol * problem.yy
            g = g + length / np.linalg.norm(xi) * xi
        iterates = lanczos(problem, g, reorthogonalise=self.reorthogonalise)
        if self.hard_case:
            iterates = with_hard_case(run, iterates)
        return drive(run, iterates)
