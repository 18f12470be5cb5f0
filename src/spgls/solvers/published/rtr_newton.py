"""The Riemannian trust-region Newton method on the sphere (the paper's Algorithm 1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from spgls.base.types import Vector
from spgls.base.validation import check_choice, check_count, check_number, check_vector
from spgls.reduction.data import GameData
from spgls.solvers.iterative.hard import Fits, hard_iterate
from spgls.solvers.iterative.iterate import Controls, Iterate, Run, drive
from spgls.solvers.iterative.lowest import lowest_pair
from spgls.solvers.published.tangent import Place, truncated_cg
from spgls.solvers.registry import Capabilities, register
from spgls.solvers.solution import Solution

__all__ = ["PAPER_GRADIENT_TOL", "RTRNewton"]

#: Relative gradient at which the authors stop.
PAPER_GRADIENT_TOL = 1e-5
#: A multiplier below this share of ``|g| + |Hr|`` may belong to the hard case at ``lambda = 0``.
_NEARLY_ZERO = 1e-7
#: Residuals below this share of ``|g| + |Hr|`` are not trusted before ``Hr`` is computed anew.
_TRUSTED = 1e-11
#: Iterations without progress, at residuals that rounding explains, after which the method ends.
_PATIENCE = 5


@register
@dataclass(frozen=True, eq=False)
class RTRNewton:
    """Newton steps in the tangent space, by truncated conjugate gradients within a radius.

    The method ends at a stationary point. With a positive multiplier that is the global optimum;
    otherwise an estimate of the smallest eigenvalue of ``H`` tells, and shows the way down from a
    point that is not.

    Parameters
    ----------
    start : "ones" or array-like
        Point of the sphere to start from, scaled to length one: as many numbers as there are
        changeable features, and one more. By default all are equal, as in the paper.
    gradient_tol : float
        The method ends where the Riemannian gradient is this much smaller than at the start, or
        earlier, where the gap is certified. ``PAPER_GRADIENT_TOL`` is the paper's.
    max_radius, radius : float
        Largest and first radius (``Delta_bar`` and ``Delta_0`` of Algorithm 1).
    acceptance : float
        Least ratio of actual to predicted decrease of a step that is taken (``c``), below 1/4.
    shrink, growth : float
        Factors of the radius after a poor step, below one (``tau_1``), and after a good long one,
        above one (``tau_2``).
    theta, kappa : float
        Conjugate gradients stop at ``|r_j| <= |r_0| min(|r_0|^theta, kappa)``, with ``|r_0|`` in
        units of the gradient at the start, so that units of the labels do not matter.
    max_inner : int, optional
        Limit on products of one outer iteration; by default twice the dimension.
    hard_case : bool
        Where the multiplier comes out as nearly zero, look for the optimum with the smallest
        ``alpha`` by least squares.
    escapes : int
        How often the method may move on from a stationary point that is not optimal.
    lowest_products : int
        Limit on products spent on the smallest eigenvalue, each time it is needed.
    max_iter : int
        Limit on outer iterations.
    """

    start: Any = "ones"
    gradient_tol: float = 1e-13
    max_radius: float = np.pi
    radius: float = 1.0
    acceptance: float = 0.1
    shrink: float = 0.25
    growth: float = 2.0
    theta: float = 1.0
    kappa: float = 0.1
    max_inner: int | None = None
    hard_case: bool = True
    escapes: int = 3
    lowest_products: int = 100
    max_iter: int = 1000
    capabilities: ClassVar[Capabilities] = Capabilities(
        name="rtr-newton",
        summary="Riemannian trust regions with truncated conjugate gradients (Absil et al. 2007)",
        finds_global=False,
        proves=False,
        iterative=True,
        memory="a few vectors of length n",
    )

    def __post_init__(self) -> None:
        check_number(self.max_radius, "max_radius", above=0.0)
        check_number(self.radius, "radius", above=0.0, below=self.max_radius)
        check_number(self.acceptance, "acceptance", above=0.0, below=0.25)
        check_number(self.shrink, "shrink", above=0.0, below=1.0)
        check_number(self.growth, "growth", above=1.0)
        check_number(self.theta, "theta", at_least=0.0)
        check_number(self.kappa, "kappa", above=0.0, below=1.0)
        check_number(self.gradient_tol, "gradient_tol", at_least=0.0)
        check_number(self.escapes, "escapes", at_least=0.0)
        check_count(self.max_inner, "max_inner")
        check_count(self.lowest_products, "lowest_products")
        check_count(self.max_iter, "max_iter")

    def solve(self, data: GameData, gamma: float, controls: Controls) -> Solution:
        """Solve one game."""
        run = Run.begin(self.capabilities.name, data, gamma, controls, self.max_iter)
        return drive(run, self._iterates(run, self._first_point(run.problem.size)))

    def _first_point(self, size: int) -> Vector:
        if self.start is None or isinstance(self.start, str):
            check_choice(self.start or "ones", "start", ("ones",))
            return np.full(size, 1.0 / np.sqrt(size))
        r = check_vector(self.start, "start", size, "changeable feature, and one more")
        length = float(np.linalg.norm(r))
        if length == 0.0:
            raise ValueError("start must not be zero: it is scaled to a point of the unit sphere.")
        return r / length

    def _iterates(self, run: Run, r: Vector) -> Iterator[Iterate]:
        """One for every outer iteration; the last one is final."""
        problem, aim = run.problem, run.aim
        here = Place.at(problem, r, problem.product(r))
        first, radius, escapes = here.size, self.radius, self.escapes
        stale, idle, least = False, 0, here.size
        while True:
            if stale and here.size <= _TRUSTED * here.scale:
                here, stale = Place.at(problem, here.r, problem.product(here.r)), False
            iterate = here.iterate(problem)
            idle = 0 if here.size < 0.5 * least else idle + 1
            least = min(here.size, least)
            stuck = idle >= _PATIENCE and here.size <= 10 * _TRUSTED * here.scale
            if stuck or here.size <= self.gradient_tol * first or iterate.gap <= aim:
                ending = self._ending(run, here, iterate, escape=escapes > 0)
                if isinstance(ending, Iterate):
                    yield ending
                    return
                here, radius, escapes = ending, self.radius, escapes - 1
                stale, idle, least, first = True, 0, here.size, max(first, here.size)
                continue
            yield iterate
            # What certifies the gap asked for is enough; the factor is for the curved part.
            enough = 0.2 * np.sqrt(aim * max(here.multiplier, 0.0))
            s, image = truncated_cg(
                problem,
                here,
                radius,
                2 * max(enough, here.size * min((here.size / first) ** self.theta, self.kappa)),
                self.max_inner or 2 * problem.size,
            )
            predicted = 2 * float(here.rho @ s) + float(s @ image) / 2
            there, change = here.moved(problem, s, image)
            ratio = change / predicted if predicted < 0.0 else 0.0
            if ratio > 0.75:
                if np.linalg.norm(s) >= 0.8 * radius:
                    radius = min(self.growth * radius, self.max_radius)
            elif not ratio >= 0.1:
                radius *= self.shrink
            if ratio > self.acceptance or not np.isfinite(change):
                here, stale = there, True

    def _ending(self, run: Run, here: Place, iterate: Iterate, *, escape: bool) -> Iterate | Place:
        """Judge a stationary point: the last iterate, or a lower place to go on from."""
        problem, aim = run.problem, run.aim
        nearly_zero = _NEARLY_ZERO * here.scale
        last = replace(iterate, final=True)
        if here.multiplier > nearly_zero:
            return last
        proved = iterate.gap <= aim
        if self.hard_case and (proved or here.multiplier >= -nearly_zero):
            hard = hard_iterate(problem, Fits(problem, run.limit), iterate, aim)
            if hard is not None:
                return hard
        if proved:
            return last
        generator = run.controls.generator()
        wanted = not run.prover.few_columns
        most = self.lowest_products
        pair = lowest_pair(problem, generator, here.multiplier, most, bound=wanted)
        lower, mirrored = here.across(problem, pair, aim)
        if lower is not None:
            return lower if escape else last
        if mirrored is not None:
            last = replace(mirrored.iterate(problem), final=True, several=True)
        return replace(last, lowest=pair.value - pair.error, floor=pair.floor)
