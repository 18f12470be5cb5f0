"""The exact solver: one spectral reduction, one secular equation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from spgls.game.providers import Population, PopulationRange
from spgls.reduction.data import GameData
from spgls.solvers.by_reduction import Engine, solve_by_reduction, solve_task
from spgls.solvers.iterative.iterate import Controls
from spgls.solvers.ranges import RangeTask, solve_range
from spgls.solvers.recover import Clock, Task
from spgls.solvers.registry import Capabilities, register
from spgls.solvers.solution import Solution

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
        return self.solve_path(data, [gamma], controls)[0]

    def solve_population(
        self, data: GameData, population: Population, ridge: float, controls: Controls
    ) -> Solution:
        """Solve one game against a population, or with a ridge."""
        return self.solve_path(data, [population], controls, ridge)[0]

    def solve_range(
        self, data: GameData, people: PopulationRange, ridge: float, controls: Controls
    ) -> Solution:
        """Solve one game against the worst population of a range."""
        name = self.capabilities.name
        return solve_range(RangeTask(name, data, people, ridge, controls.tol), self.engine)

    def solve_path(
        self,
        data: GameData,
        gammas: Sequence[float | Population],
        controls: Controls,
        ridge: float = 0.0,
    ) -> tuple[Solution, ...]:
        """Solve a game for each strength or population, from one reduction."""
        task = Task(self.capabilities.name, data, gammas, ridge, controls.tol, Clock())
        return solve_by_reduction(task, self.engine, solve_task)
