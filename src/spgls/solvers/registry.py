"""What a solver declares about itself, and how one is found by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeGuard, TypeVar, runtime_checkable

from spgls.base.types import Array, Numbers, Vector
from spgls.base.validation import check_choice, describe
from spgls.game.providers import Population, PopulationRange
from spgls.reduction.data import GameData
from spgls.solvers.iterative.iterate import Controls
from spgls.solvers.solution import Solution

__all__ = [
    "Capabilities",
    "EarlySolver",
    "PathSolver",
    "PopulationSolver",
    "RangeSolver",
    "Solver",
    "SolverFunction",
    "SolverLike",
    "available_solvers",
    "begins_early",
    "knows_populations",
    "register",
    "resolve",
    "solve_by_kind",
]


@dataclass(frozen=True)
class Capabilities:
    """What a solver can do and what it needs.

    Attributes
    ----------
    name : str
        The name users pass.
    summary : str
        One line for tables.
    finds_global : bool
        Whether its answer is the global optimum by construction.
    proves : bool
        Whether its certificate is a proof in every case.
    iterative : bool
        Whether it iterates, with a history, and takes a limit and a callback.
    memory : str
        Memory beyond the data, as a formula.
    extra : str or None
        Optional dependency group it needs.
    """

    name: str
    summary: str
    finds_global: bool
    proves: bool
    iterative: bool
    memory: str
    extra: str | None = None


class Solver(Protocol):
    """A frozen object that carries a method's constants and no data."""

    @property
    def capabilities(self) -> Capabilities:
        """What it can do."""
        ...

    def solve(self, data: GameData, gamma: float, controls: Controls) -> Solution:
        """Solve one game."""
        ...


#: A user's own method: ``f(X, y, z, gamma)`` returns the coefficients of the columns of ``X``.
SolverFunction: TypeAlias = Callable[[Array, Vector, Vector, float], Numbers]
#: What users pass: a name, an object, or a function.
SolverLike: TypeAlias = str | Solver | SolverFunction


@runtime_checkable
class PopulationSolver(Protocol):
    """A solver that also knows populations of providers, and a ridge."""

    def solve_population(
        self, data: GameData, population: Population, ridge: float, controls: Controls
    ) -> Solution:
        """Solve one game against a population."""
        ...


@runtime_checkable
class RangeSolver(Protocol):
    """A solver that also knows populations of which only a range is known."""

    def solve_range(
        self, data: GameData, people: PopulationRange, ridge: float, controls: Controls
    ) -> Solution:
        """Solve one game against the worst population of a range."""
        ...


class EarlySolver(Protocol):
    """A solver whose first products can be begun before a game is looked at any closer."""

    def begin_early(self, data: GameData, gamma: float) -> None:
        """Begin them, where the data can."""
        ...


@runtime_checkable
class PathSolver(Protocol):
    """A solver that gains by solving many games on the same data together."""

    def solve_path(
        self,
        data: GameData,
        gammas: Sequence[float | Population],
        controls: Controls,
        ridge: float = 0.0,
    ) -> tuple[Solution, ...]:
        """Solve a game for each strength or population, in the order given.

        Numbers are games of the paper; a ridge belongs to the populations. ``stats`` of a solution
        tell what had been spent on all of them together when it was found.
        """
        ...


def begins_early(solver: object) -> TypeGuard[EarlySolver]:
    """Whether a solver can begin with products before a game is looked at."""
    return hasattr(solver, "begin_early")


def knows_populations(solver: object) -> TypeGuard[PopulationSolver]:
    """Whether a solver knows populations; asking for a protocol takes longer than a product."""
    return hasattr(solver, "solve_population")


def solve_by_kind(
    gammas: Sequence[float | Population],
    numbers: Callable[[list[float]], tuple[Solution, ...]],
    populations: Callable[[list[Population]], tuple[Solution, ...]],
) -> tuple[Solution, ...]:
    """Solve the numbers together, then the populations, and put them in the order given."""
    mixed = [i for i, gamma in enumerate(gammas) if isinstance(gamma, Population)]
    single = [i for i, gamma in enumerate(gammas) if not isinstance(gamma, Population)]
    found: dict[int, Solution] = {}
    if single:
        strengths = [float(gamma) for gamma in gammas if not isinstance(gamma, Population)]
        found.update(zip(single, numbers(strengths), strict=True))
    if mixed:
        others = [gamma for gamma in gammas if isinstance(gamma, Population)]
        found.update(zip(mixed, populations(others), strict=True))
    return tuple(found[i] for i in range(len(gammas)))


_Class = TypeVar("_Class", bound=type[Any])
_REGISTRY: dict[str, type[Any]] = {}
#: What is no method of its own, and so not among those to compare.
_AUTOMATIC: dict[str, type[Any]] = {}


def register(solver: _Class) -> _Class:
    """Make a solver class available under its declared name, as a decorator.

    Parameters
    ----------
    solver : type
        A class with ``capabilities`` and ``solve(data, gamma, controls)`` that can be made without
        arguments; :class:`Solver` has the details. :class:`PopulationSolver` and
        :class:`PathSolver` are what it may offer besides.

    Returns
    -------
    type
        The same class. ``solve(..., solver=name)`` and :func:`~spgls.compare_solvers` know it now.

    Raises
    ------
    TypeError
        If the class does not declare what it can do, or has no ``solve``.
    ValueError
        If another solver has the name.

    See Also
    --------
    certified_solution : from coefficients to a certified Solution.
    """
    declared = getattr(solver, "capabilities", None)
    if not isinstance(declared, Capabilities) or not callable(getattr(solver, "solve", None)):
        raise TypeError(
            "register takes a class with capabilities, an instance of Capabilities, and a method "
            f"solve(data, gamma, controls); got {describe(solver)}. A function of (X, y, z, gamma) "
            "needs no registration: pass it as solver=."
        )
    known = (_AUTOMATIC | _REGISTRY).get(declared.name)
    # A module that is loaded again, or a cell of a notebook, registers the same class anew.
    if known is not None and (known.__module__, known.__qualname__) != (
        solver.__module__,
        solver.__qualname__,
    ):
        raise ValueError(
            f"capabilities.name must be a name that no other solver has; {declared.name!r} is "
            f"{known.__module__}.{known.__qualname__}. Choose another."
        )
    _REGISTRY[declared.name] = solver
    return solver


def register_choice(chooser: type[Any]) -> type[Any]:
    """Make a class available that chooses among the others."""
    _AUTOMATIC[chooser.capabilities.name] = chooser
    return chooser


def available_solvers() -> tuple[Capabilities, ...]:
    """What every registered solver declares."""
    found = [solver.capabilities for solver in _REGISTRY.values()]
    # The exact one first: the others are compared with it.
    return tuple(sorted(found, key=lambda one: one.name != "spectral"))


def resolve(solver: Any, argument: str = "solver") -> Solver:
    """Return a solver object from a name, from "auto", from such an object or from a function."""
    if hasattr(solver, "capabilities") and not isinstance(solver, type):
        given: Solver = solver
        return given
    if callable(solver) and not isinstance(solver, type):
        # What judges a function's answers is built from registered solvers.
        from spgls.solvers.own import OwnSolver

        return OwnSolver(solver)
    if type(solver) is str and solver in _AUTOMATIC:
        usual: Solver = _AUTOMATIC[solver]()
        return usual
    known = _AUTOMATIC | _REGISTRY
    if not isinstance(solver, str):
        raise TypeError(
            f"{argument} must be one of {', '.join(known)}, a function of (X, y, z, gamma), or a "
            f"solver object; got {describe(solver)}."
        )
    chosen: Solver = known[check_choice(solver, argument, tuple(known))]()
    return chosen
