"""Block Krylov spaces of the data: one for every strength of provider, and for populations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from spgls.base.types import Array
from spgls.base.validation import check_count
from spgls.game.providers import Population
from spgls.reduction import KrylovSpace
from spgls.reduction.data import GameData
from spgls.reduction.ritz import start_block
from spgls.solvers.iterative.early import begin_products
from spgls.solvers.iterative.hard import with_hard_case
from spgls.solvers.iterative.images import MeasuredSpace
from spgls.solvers.iterative.interpolate import with_interpolation
from spgls.solvers.iterative.iterate import Controls, Run, drive
from spgls.solvers.krylov.block import BlockMethod, Doubts
from spgls.solvers.krylov.mixed import solve_mixed_krylov
from spgls.solvers.krylov.projected import single_iterates, singular
from spgls.solvers.registry import Capabilities, register, solve_by_kind
from spgls.solvers.solution import Solution, Status, Step

__all__ = ["Krylov"]

#: Basis and products stored after a restart stay below this, at the moment they are copied too.
_BASIS_BYTES = 64e6
#: However long the columns are, a basis of fewer is no use.
_LEAST_BASIS = 24


#: Under what name a space that others have grown is kept with the data.
_BEGUN = "krylov"


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
    max_iter : int
        Limit on products.
    """

    max_basis: int = 600
    width: int | str = "auto"
    extra_random: int = 0
    hard_case: bool = True
    max_iter: int = 2000
    capabilities: ClassVar[Capabilities] = Capabilities(
        name="krylov",
        summary="block Lanczos for all strengths and populations at once",
        finds_global=True,
        proves=False,
        iterative=True,
        memory="n times the columns kept, at most 100 MB; for populations 3 n^2, n <= 3000",
    )

    def __post_init__(self) -> None:
        for name in ("max_basis", "max_iter"):
            if check_count(getattr(self, name), name) is None:
                raise TypeError(f"{name} must be a positive whole number; got None.")
        extra = self.extra_random
        if isinstance(extra, bool) or not isinstance(extra, int) or extra < 0:
            raise ValueError(f"extra_random must be a whole number, zero or more; got {extra!r}.")
        if self.width not in ("auto", 1, 2) or isinstance(self.width, bool):
            raise ValueError(f"width must be 'auto', 1 or 2; got {self.width!r}.")

    def begin_early(self, data: GameData, gamma: float) -> None:
        """Begin the first products of a game, which :meth:`solve` will ask for."""
        if not self._wide(data):
            begin_products(data, gamma)

    def solve(self, data: GameData, gamma: float, controls: Controls) -> Solution:
        """Solve one game."""
        wide = self._wide(data)
        run = self._begin(data, gamma, controls, ahead=not wide)
        if wide:
            return self._solve_strengths(run, self._space(run), [gamma])[0]
        try:
            alone = self._solve_alone(run)
        finally:
            run.problem.targets.close()
        if alone.status is not Status.STATIONARY:
            return alone
        # Rounding may have spoiled it; the space of a path goes another way, and may prove it.
        doubts: Doubts = "leave" if self.hard_case else "ignore"
        found = BlockMethod(run, self._space(run), np.array([gamma]), doubts).solve()
        return _better(alone, found.get(0), run)

    def solve_path(
        self,
        data: GameData,
        gammas: Sequence[float | Population],
        controls: Controls,
        ridge: float = 0.0,
    ) -> tuple[Solution, ...]:
        """Solve one game for each strength or population, on one space.

        It grows until it holds the optima of all strengths, then those of one population after the
        other.
        """
        run = self._begin(data, 1.0, controls)
        space = self._space(run)

        def numbers(some: list[float]) -> tuple[Solution, ...]:
            # Equal strengths have one solution, to the last digit.
            distinct = list(dict.fromkeys(some))
            solved = zip(distinct, self._solve_strengths(run, space, distinct), strict=True)
            return tuple(map(dict(solved).__getitem__, some))

        def populations(some: list[Population]) -> tuple[Solution, ...]:
            return tuple(self._solve_mixed(run, space, each, ridge) for each in some)

        return solve_by_kind(gammas, numbers, populations)

    def solve_population(
        self, data: GameData, population: Population, ridge: float, controls: Controls
    ) -> Solution:
        """Solve one game against a population, or with a ridge."""
        run, space = data.reductions.pop(_BEGUN, None) or self.begin(data, controls)
        run = replace(run, controls=controls, limit=controls.max_iter or self.max_iter)
        data.reductions.pop(_BEGUN, None)
        return self._solve_mixed(run, space, population, ridge)

    def begin(self, data: GameData, controls: Controls) -> tuple[Run, KrylovSpace]:
        """A solve and its space, on which a game against a population goes on."""
        run = self._begin(data, 1.0, controls)
        begun = run, self._space(run, kept=False)
        data.reductions[_BEGUN] = begun
        return begun

    def _wide(self, data: GameData) -> bool:
        """Whether a single strength takes the block method too."""
        wide = data.matrix.natural_width == 2 if self.width == "auto" else self.width == 2
        return wide or self.extra_random > 0

    def _begin(
        self, data: GameData, gamma: float, controls: Controls, *, ahead: bool = False
    ) -> Run:
        name = self.capabilities.name
        return Run.begin(name, data, gamma, controls, self.max_iter, ahead=ahead)

    def _solve_strengths(
        self, run: Run, space: KrylovSpace, gammas: list[float]
    ) -> tuple[Solution, ...]:
        """On one space; alone what that leaves out, or what rounding spoils on it."""
        doubts: Doubts = "judge" if self._wide(run.data) else "leave"
        block = BlockMethod(run, space, np.array(gammas), doubts if self.hard_case else "ignore")
        found = block.solve()
        for i, gamma in enumerate(gammas):
            together = found.get(i)
            if together is not None and together.status is not Status.STATIONARY:
                continue
            alone = self._solve_alone(run.at(gamma), block.histories[i])
            found[i] = _better(alone, together, run)
        return tuple(found[i] for i in range(len(gammas)))

    def _solve_alone(self, run: Run, before: Sequence[Step] = ()) -> Solution:
        """On the space of one strength."""
        iterates = single_iterates(run, self._room(run))
        if self.hard_case:
            iterates = with_hard_case(run, iterates)
            if singular(run.data):
                iterates = with_interpolation(run, iterates)
        return drive(run, iterates, before=before)

    def _solve_mixed(
        self, run: Run, space: KrylovSpace, population: Population, ridge: float
    ) -> Solution:
        def larger(columns: Array) -> KrylovSpace:
            return self._space(run, columns, kept=False)

        return solve_mixed_krylov(run, space, larger, population, ridge)

    def _space(self, run: Run, more: Array | None = None, *, kept: bool = True) -> KrylovSpace:
        """An empty block space, with its products kept or not.

        Each step is counted with the problem's passes.
        """
        problem = run.problem

        def product(V: Array) -> Array:
            problem.passes += 1.0
            return problem.matrix.gram(V)

        p = np.stack([problem.p_y, problem.p_z], axis=1)
        starts = start_block(p, self.extra_random, run.controls.generator())
        if more is not None:
            starts = np.hstack([starts, more])
        kind = MeasuredSpace if kept else KrylovSpace
        return kind(product, starts, self._room(run))

    def _room(self, run: Run) -> int:
        """Columns of the basis that may be kept."""
        most = int(_BASIS_BYTES / (8 * run.problem.size))
        return max(min(self.max_basis, most), _LEAST_BASIS)


def _better(alone: Solution, together: Solution | None, run: Run) -> Solution:
    """Whichever is closer to its bound, with all that was spent."""
    if together is None or alone.certificate.gap < together.certificate.gap:
        return replace(alone, stats=run.stats(alone.stats.iterations))
    return replace(together, stats=run.stats(alone.stats.iterations))
