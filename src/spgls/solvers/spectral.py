"""The exact solver: one spectral reduction, one secular equation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from spgls.data import GameData
from spgls.population import solve_population
from spgls.providers import Population
from spgls.reduced import ReducedGame
from spgls.reduction import Reduction
from spgls.solvers.base import Capabilities, register, solve_by_kind
from spgls.solvers.by_reduction import ULPS, Clock, Engine, solve_by_reduction
from spgls.solvers.iterate import Controls
from spgls.solvers.mixed import solve_mixed, solve_mixed_path
from spgls.solvers.path_by_reduction import solve_path_by_reduction
from spgls.solvers.solution import Solution
from spgls.sphere import SmallSolution, solve_sphere

__all__ = ["Spectral"]


@register
@dataclass(frozen=True)
class Spectral:
    """Solve exactly through singular values of the data.

    Parameters
    ----------
    engine : {"auto", "gram", "qr"}
        How the data is reduced. ``"auto"`` squares the data, and starts over without squaring it
        where the certificate shows that too many digits were lost.
    """

    engine: Engine = "auto"
    capabilities: ClassVar[Capabilities] = Capabilities(
        name="spectral",
        summary="singular values of the data, then a secular equation",
        finds_global=True,
        proves=True,
        iterative=False,
        memory="min(m, n)^2 and one block of rows",
    )

    def __post_init__(self) -> None:
        if self.engine not in ("auto", "gram", "qr"):
            raise ValueError(f"engine must be 'auto', 'gram' or 'qr'; got {self.engine!r}.")

    def solve(self, data: GameData, gamma: float, controls: Controls) -> Solution:
        """Solve one game."""

        def small_solver(reduction: Reduction) -> SmallSolution:
            return solve_sphere(reduction.game, gamma, tol=controls.tol, ulps=ULPS)

        def second_opinion(reduction: Reduction, small: SmallSolution) -> SmallSolution:
            return _search(reduction.game, gamma, controls.tol, small)

        return solve_by_reduction(
            self.capabilities.name,
            data,
            gamma,
            controls,
            self.engine,
            small_solver,
            second_opinion=second_opinion,
        )

    def solve_population(
        self, data: GameData, population: Population, ridge: float, controls: Controls
    ) -> Solution:
        """Solve one game against a population, or with a ridge."""
        name = self.capabilities.name
        return solve_mixed(name, data, population, ridge, controls, self.engine)

    def solve_path(
        self,
        data: GameData,
        gammas: Sequence[float | Population],
        controls: Controls,
        ridge: float = 0.0,
    ) -> tuple[Solution, ...]:
        """Solve a game for each strength or population, from one reduction."""
        name, engine, clock = self.capabilities.name, self.engine, Clock()

        def second_opinion(
            reduction: Reduction, gamma: float, small: SmallSolution
        ) -> SmallSolution:
            return _search(reduction.game, gamma, controls.tol, small)

        def numbers(some: list[float]) -> tuple[Solution, ...]:
            return solve_path_by_reduction(
                name, data, some, controls, engine, second_opinion, clock
            )

        def populations(some: list[Population]) -> tuple[Solution, ...]:
            return solve_mixed_path(name, data, some, ridge, controls, engine, clock)

        return solve_by_kind(gammas, numbers, populations)


def _search(game: ReducedGame, gamma: float, tol: float, small: SmallSolution) -> SmallSolution:
    """Solve by the search over norms, which looks at all of them and needs no pole.

    Rounding can take the secular equation to the wrong side of a pole that is nearly double.
    """
    found = solve_population(game, [gamma], [1.0], tol=tol, ulps=ULPS)
    alpha = found.t / gamma
    s = 1.0 / (1.0 + alpha)
    return SmallSolution(
        x=s * found.x,
        fill=s * found.fill,
        s=s,
        c=alpha * s,
        nu=found.nu,
        pole=small.pole,
        value=found.value,
        outcome=found.outcome,
        steps=small.steps + found.steps,
    )
