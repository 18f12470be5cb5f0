"""Block Krylov spaces of the data: one for every strength of provider, and for populations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from time import perf_counter
from typing import ClassVar

import numpy as np

from spgls._threads import one_blas_thread
from spgls._types import Array
from spgls._validation import check_count
from spgls.data import GameData
from spgls.providers import Population
from spgls.reduction import KrylovSpace
from spgls.reduction.ritz import start_block
from spgls.solvers.base import Capabilities, register, solve_by_kind
from spgls.solvers.hard import with_hard_case
from spgls.solvers.interpolate import with_interpolation
from spgls.solvers.iterate import Controls, Iterate, run, sphere_problem
from spgls.solvers.krylov_path import solve_strengths
from spgls.solvers.krylov_population import solve_mixed_krylov
from spgls.solvers.projected import block_iterates, single_iterates, singular
from spgls.solvers.solution import Solution, Stats, Status, latest
from spgls.solvers.spectral import Spectral
from spgls.sphere.operator import SphereProblem

__all__ = ["Krylov"]

#: Basis and products stored after a restart stay below this, at the moment they are copied too.
_BASIS_BYTES = 64e6
#: However long the columns are, a basis of fewer is no use.
_LEAST_BASIS = 24


@register
@dataclass(frozen=True)
class Krylov:
    """Minimise over a block Krylov space of ``(PA)'PA`` started at ``(PA)'[y, z]``.

    For every strength that space contains the one of the paper's Krylov method, so it needs no
    more reads of the data for any of them, and one space serves them all.

    Parameters
    ----------
    max_basis : int
        Most columns kept, fewer where they would take more than 64 MB. Beyond it the space is
        restarted from the solution and the lowest Ritz vectors.
    width : {"auto", 1, 2}
        Columns multiplied in one read for a single strength. One is the Krylov space of that
        strength alone, which is cheaper where a second column is not nearly free, as with sparse
        data; ``"auto"`` follows the data. Populations and paths always take two.
    extra_random : int
        Random columns added to the start. With them the space finds the lowest eigenvectors too,
        which the hard case needs.
    hard_case : bool
        Where the multiplier comes out as zero or less, look for the optimum that no Krylov space
        contains, by least squares.
    fall_back : int
        Where the tolerance is not certified, because rounding or an eigenvector out of reach
        forbids it, and the data has at most so many rows or columns, solve by ``"spectral"``.
    max_iter : int
        Limit on products.
    """

    max_basis: int = 600
    width: int | str = "auto"
    extra_random: int = 0
    hard_case: bool = True
    fall_back: int = 2000
    max_iter: int = 2000
    capabilities: ClassVar[Capabilities] = Capabilities(
        name="krylov",
        summary="block Lanczos for all strengths and populations at once",
        finds_global=True,
        proves=False,
        iterative=True,
        memory="n times the columns kept, at most 100 MB",
    )

    def __post_init__(self) -> None:
        for name in ("max_basis", "max_iter"):
            if check_count(getattr(self, name), name) is None:
                raise TypeError(f"{name} must be a positive whole number; got None.")
        for name in ("extra_random", "fall_back"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise ValueError(f"{name} must be a whole number, zero or more; got {value!r}.")
        if self.width not in ("auto", 1, 2) or isinstance(self.width, bool):
            raise ValueError(f"width must be 'auto', 1 or 2; got {self.width!r}.")

    def solve(self, data: GameData, gamma: float, controls: Controls) -> Solution:
        """Solve one game."""
        start = perf_counter()
        if len(data.changeable) == 0:
            return self._named(Spectral().solve(data, gamma, controls))
        problem = sphere_problem(data, gamma)
        limit = controls.max_iter or self.max_iter
        aim = controls.aim(problem.yy)
        wide = data.matrix.natural_width == 2 if self.width == "auto" else self.width == 2
        if (wide or self.extra_random) and (problem.p_y.any() or problem.p_z.any()):
            space, met = self._space(problem, controls), list[Iterate]()
            iterates = block_iterates(
                data, problem, space, controls, limit, met if self.hard_case else None
            )
            if self.hard_case:
                iterates = chain(with_hard_case(problem, iterates, controls, limit), met)
        else:
            iterates = single_iterates(problem, self._room(problem.size), limit)
            if self.hard_case:
                iterates = with_hard_case(problem, iterates, controls, limit)
                if singular(data):
                    iterates = with_interpolation(problem, iterates, aim, limit)
        name = self.capabilities.name
        solution = run(name, data, problem, _up_to_limit(iterates), controls, limit, start)
        return self._or_exactly(
            data, solution, controls, start, lambda: Spectral().solve(data, gamma, controls)
        )

    def solve_path(
        self,
        data: GameData,
        gammas: Sequence[float | Population],
        controls: Controls,
        ridge: float = 0.0,
    ) -> tuple[Solution, ...]:
        """Solve one game for each strength or population, on one space.

        It grows until it holds the optima of all strengths, then those of one population after the
        other. Strengths that come out at multipliers of zero or less are not done with it: they
        are solved exactly where the data is moderate, and each alone where it is not.
        """
        start = perf_counter()
        if len(data.changeable) == 0:
            exact = Spectral().solve_path(data, gammas, controls, ridge)
            return tuple(self._named(solution) for solution in exact)
        # Of the sphere problem only what no strength enters is used: A'y, A'z and the counting.
        base = sphere_problem(data, 1.0)
        space = self._space(base, controls)

        def numbers(some: list[float]) -> tuple[Solution, ...]:
            found: dict[int, Solution] = {}
            if space.width:
                with one_blas_thread(data.matrix.threaded):
                    found = solve_strengths(
                        self.capabilities.name,
                        data,
                        base,
                        space,
                        np.array(some),
                        controls,
                        controls.max_iter or self.max_iter,
                        self.hard_case,
                        start,
                    )
            return self._completed(data, some, found, base, controls, start)

        def populations(some: list[Population]) -> tuple[Solution, ...]:
            def make_space(more: Array | None) -> KrylovSpace:
                return space if more is None else self._space(base, controls, more)

            return tuple(
                self._population(data, base, make_space, population, ridge, controls, start)
                for population in some
            )

        return solve_by_kind(gammas, numbers, populations)

    def solve_population(
        self, data: GameData, population: Population, ridge: float, controls: Controls
    ) -> Solution:
        """Solve one game against a population, or with a ridge."""
        start = perf_counter()
        if len(data.changeable) == 0:
            return self._named(Spectral().solve_population(data, population, ridge, controls))
        problem = sphere_problem(data, 1.0)

        def make_space(more: Array | None) -> KrylovSpace:
            return self._space(problem, controls, more)

        return self._population(data, problem, make_space, population, ridge, controls, start)

    def _population(
        self,
        data: GameData,
        problem: SphereProblem,
        make_space: Callable[[Array | None], KrylovSpace],
        population: Population,
        ridge: float,
        controls: Controls,
        start: float,
    ) -> Solution:
        limit = controls.max_iter or self.max_iter
        solution = solve_mixed_krylov(
            self.capabilities.name,
            data,
            problem,
            make_space,
            population,
            ridge,
            controls,
            limit,
            start,
        )
        return self._or_exactly(
            data,
            solution,
            controls,
            start,
            lambda: Spectral().solve_population(data, population, ridge, controls),
        )

    def _completed(
        self,
        data: GameData,
        gammas: list[float],
        found: dict[int, Solution],
        base: SphereProblem,
        controls: Controls,
        start: float,
    ) -> tuple[Solution, ...]:
        """All solutions: those left out of a path, and those it did not certify, by other means."""
        limited = controls.max_iter is not None
        doubtful = [i for i, solution in found.items() if _unfinished(solution, limited)]
        missing = [i for i in range(len(gammas)) if i not in found]
        spent = Stats(base.passes, latest(found.values()).iterations, perf_counter() - start)
        solved: dict[int, Solution] = {}
        if min(data.matrix.shape) <= self.fall_back and not limited:
            # For more than one of them a reduction takes less than what each would need alone.
            exactly = doubtful + (missing if len(missing) > 1 else [])
            some = [gammas[i] for i in exactly]
            if some:
                solved.update(
                    zip(exactly, Spectral().solve_path(data, some, controls), strict=True)
                )
        for i in missing:
            if i not in solved:
                before = latest(solved.values())
                alone = self.solve(data, gammas[i], controls)
                solved[i] = replace(alone, stats=before.plus(alone.stats))
        for i, solution in solved.items():
            history = solution.history or (found[i].history if i in found else ())
            stats = spent.plus(solution.stats)
            found[i] = replace(self._named(solution), stats=stats, history=history)
        return tuple(found[i] for i in range(len(gammas)))

    def _space(
        self, problem: SphereProblem, controls: Controls, more: Array | None = None
    ) -> KrylovSpace:
        """An empty block space; each step is counted with the problem's passes."""

        def product(V: Array) -> Array:
            problem.passes += 1.0
            return problem.matrix.gram(V)

        p = np.stack([problem.p_y, problem.p_z], axis=1)
        starts = start_block(p, self.extra_random, controls.generator())
        if more is not None:
            starts = np.hstack([starts, more])
        return KrylovSpace(product, starts, self._room(len(p)))

    def _room(self, n: int) -> int:
        """Columns of length ``n`` that may be kept."""
        return max(min(self.max_basis, int(_BASIS_BYTES / (8 * n))), _LEAST_BASIS)

    def _named(self, solution: Solution) -> Solution:
        return replace(solution, solver=self.capabilities.name)

    def _or_exactly(
        self,
        data: GameData,
        solution: Solution,
        controls: Controls,
        start: float,
        exactly: Callable[[], Solution],
    ) -> Solution:
        """Return a solution, or the exact one where it is not certified and data is moderate.

        A limit or a callback of the user's is no reason to go on by other means.
        """
        if not _unfinished(solution, controls.max_iter is not None):
            return solution
        if min(data.matrix.shape) > self.fall_back:
            return solution
        before = perf_counter() - start
        exact = exactly()
        seconds = perf_counter() - start
        stages = {"krylov": before, "fallback": seconds - before}
        spent = solution.stats
        passes = spent.passes + exact.stats.passes
        return replace(
            self._named(exact),
            stats=Stats(passes, spent.iterations, seconds, stages),
            history=solution.history,
        )


def _up_to_limit(iterates: Iterator[Iterate]) -> Iterator[Iterate]:
    """Pass iterates on; one that came with a status is the last, and was not to be improved on."""
    for iterate in iterates:
        if iterate.status is not None:
            yield replace(iterate, final=True)
            return
        yield iterate


def _unfinished(solution: Solution, limited: bool) -> bool:
    """Whether a solution should be had by other means: not certified, and not by the user's wish.

    ``limited`` is whether the limit on iterations was the user's.
    """
    ended = (Status.STOPPED, Status.UNATTAINED)
    by_wish = solution.status is Status.ITERATION_LIMIT and limited
    return not (solution.status.ok or solution.status in ended or by_wish)
