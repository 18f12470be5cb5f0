"""The choice of a solver: predicted costs of each, the reason, and what to do if it was wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import inf
from time import monotonic
from typing import Any, ClassVar

from spgls.base.machine import available_memory, threads
from spgls.game.providers import Population, PopulationRange
from spgls.matrix import DeviceRates, Work
from spgls.reduction.data import GameData
from spgls.solvers.cost import Cost, krylov_cost, krylov_pass, spectral_cost
from spgls.solvers.iterative.iterate import Controls
from spgls.solvers.krylov.solver import Krylov
from spgls.solvers.registry import Capabilities, register_choice
from spgls.solvers.solution import Solution, Stats, Status
from spgls.solvers.spectral import Spectral

__all__ = ["Auto", "Option", "Plan", "check_memory", "chosen_solver", "make_plan"]

#: Data with so few entries, on a side as short as this, is solved before a plan would be made.
_SMALL, _SHORT = 50_000, 64
#: A method that may fail to finish has to promise more than this to be tried first.
_PROMISE = 1.0
#: Share of the other method's time after which the first is given up.
_PATIENCE = 0.6
#: Seconds that a proof may take in any case, and how much longer than the answer.
_BEARABLE, _WORTH = 30.0, 4.0
#: Share of the free memory that a solve may take, and bytes that are always there.
_SHARE, _CHECKED = 0.9, 1e8
#: Rows and columns from which on products that are begun in vain are a tenth of a decomposition.
_BEGUN = 2048
#: Seconds for which what is free is remembered.
_FRESH = 0.5
#: Rows or columns up to which a decomposition is tried where memory seemed too small for one.
_MODERATE = 2000
#: So few columns are squared for a proof against populations in any case; more of them, if not
#: more than rows, are decomposed where that takes no longer than this.
_FEW, _SOON = 400, 0.5
#: What there is to choose from.
_EXACT, _ITERATIVE = Spectral(), Krylov()


@dataclass(frozen=True)
class Option:
    """One way to solve a game, with what it would take.

    Attributes
    ----------
    solver : str
        Its name.
    how : str
        What it would do.
    seconds, memory : float
        Predicted time, and memory beyond the data in bytes.
    fits : bool
        Whether there is so much memory.
    """

    solver: str
    how: str
    seconds: float
    memory: float
    fits: bool


@dataclass(frozen=True)
class Plan:
    """What ``solver="auto"`` would do, and why.

    Attributes
    ----------
    solver : str
        The choice.
    reason : str
        Why.
    options : tuple of Option
        What there was to choose from.
    threads : int
        Cores that predictions are for.
    available : float
        Bytes of free memory.
    patience : int
        Products after which an iterative choice is given up for the other, zero for never.
    device : DeviceRates, optional
        The device that holds the data, as fast as it was measured.
    place : str
        Where the data is, if not in this process, and what a pass takes there.
    """

    solver: str
    reason: str
    options: tuple[Option, ...]
    threads: int
    available: float
    patience: int = 0
    device: DeviceRates | None = None
    place: str = ""

    @property
    def seconds(self) -> float:
        """Predicted time of the choice."""
        return self._chosen.seconds

    @property
    def memory(self) -> float:
        """Predicted memory of the choice beyond the data, in bytes."""
        return self._chosen.memory

    @property
    def _chosen(self) -> Option:
        return next(option for option in self.options if option.solver == self.solver)

    def __repr__(self) -> str:
        lines = [f"Plan: {self.solver}. {self.reason}"]
        lines += [
            f"  {option.solver:<9} {_seconds(option.seconds):>8} {_bytes(option.memory):>8}"
            f"{'' if option.fits else ' (does not fit)'}  {option.how}"
            for option in self.options
        ]
        room = "unknown" if self.available == float("inf") else _bytes(self.available)
        lines.append(f"  for {self.threads} threads and {room} of free memory")
        if self.device is not None:
            lines.append(
                f"  X stays on {self.device.name}, which reads {self.device.read / 1e9:.3g} GB/s, "
                f"multiplies {2e-12 * self.device.multiply:.3g} Tflop/s and answers in "
                f"{_seconds(self.device.answer)}"
            )
        lines += [f"  {self.place}"] if self.place else []
        return "\n".join(lines)


def make_plan(
    work: Work,
    games: int = 1,
    *,
    mixed: bool = False,
    cores: int | None = None,
    memory: float | None = None,
) -> Plan:
    """Choose a solver for some games on data of which only the amount of work is known.

    Parameters
    ----------
    work : Work
        The data, changeable columns alone.
    games : int
        Number of games on it.
    mixed : bool
        Whether there are populations or a ridge among them.
    cores : int, optional
        Threads to use; by default those there are.
    memory : float, optional
        Bytes that may be used; by default what is free, which small games do not ask for.
    """
    cores = threads() if cores is None else cores
    room = inf if memory is None else memory
    if memory is None and max(cost.memory for cost in _costs(work, games, cores)) > _CHECKED:
        room = _free_memory(int(monotonic() / _FRESH))
    return _plan_within(work, games, mixed, cores, room)


@lru_cache(maxsize=64)
def _plan_within(work: Work, games: int, mixed: bool, cores: int, room: float) -> Plan:
    """The plan where so much memory is free; games on data of one kind come in numbers."""
    m, n = work.rows, work.columns
    side = "columns" if m >= n else "rows"
    exact, krylov = _costs(work, games, cores)
    options = (
        _option("spectral", f"decompose a matrix of order {min(m, n)} ({side})", exact, room, work),
        _option("krylov", "multiply with the data until certified", krylov, room, work),
    )
    direct, iterative = options
    patience = 0
    if not direct.fits and not iterative.fits:
        _refuse(work, options, room)
    if not direct.fits:
        choice, reason = "krylov", "A decomposition does not fit in memory."
    elif not iterative.fits or n == 0:
        choice, reason = "spectral", "Nothing else fits." if n else "There is nothing to change."
    elif krylov.seconds > _PROMISE * exact.seconds:
        choice, reason = "spectral", "Decomposing takes less than multiplying would."
    elif mixed and exact.seconds <= _bearable(work):
        choice, reason = "spectral", "A proof against populations takes squared columns anyway."
    else:
        choice, reason = "krylov", "Multiplying takes less than decomposing would."
        left = _PATIENCE * exact.seconds / max(krylov_pass(work, cores), 1e-6)
        patience = max(20, int(min(left, 1e6)))
    return Plan(choice, reason, options, cores, room, patience, work.device, work.place)


@lru_cache(maxsize=64)
def _costs(work: Work, games: int, cores: int) -> tuple[Cost, Cost]:
    """What both would take."""
    return spectral_cost(work, games, cores), krylov_cost(work, games, cores)


@lru_cache(maxsize=1)
def _free_memory(now: int) -> float:
    """Free memory as of now: asking for it takes as long as a pass of a fast device."""
    return available_memory()


def _bearable(work: Work) -> float:
    """Seconds that a decomposition may take where a proof takes squared columns anyway."""
    if work.columns <= _FEW and work.free <= _FEW:
        return _BEARABLE
    return _SOON if work.columns <= work.rows else 0.0


def _option(solver: str, how: str, cost: Cost, room: float, work: Work) -> Option:
    return Option(solver, how, cost.seconds, cost.memory, cost.fits(_SHARE * room, work))


def _refuse(work: Work, options: tuple[Option, ...], room: float) -> None:
    least = min(options, key=lambda option: option.memory)
    raise MemoryError(
        f"X has {work.rows} rows and {work.columns} columns, and {_bytes(room)} of memory are "
        f"free: solver={least.solver!r}, which needs least, would take {_bytes(least.memory)} "
        "beyond X. Free memory, use fewer columns, or solve for fewer strengths at once."
    )


@register_choice
@dataclass(frozen=True)
class Auto:
    """Whichever of ``spectral`` and ``krylov`` is predicted to be faster.

    What the data's condition will demand of an iteration is not known beforehand. So where
    ``krylov`` is tried first and takes longer than ``spectral`` would have taken by more than a
    little, it is given up for that.
    """

    capabilities: ClassVar[Capabilities] = Capabilities(
        name="auto",
        summary="the faster of spectral and krylov",
        finds_global=True,
        proves=False,
        iterative=True,
        memory="as the one chosen",
    )

    def begin_early(self, data: GameData, gamma: float) -> None:
        """Begin the first products of a game that will be multiplied.

        On large data before there is a plan: it is made while the data is being read.
        """
        if hasattr(data.matrix, "begin_krylov") and min(data.matrix.shape) >= _BEGUN:
            _ITERATIVE.begin_early(data, gamma)
            _plan(data, 1, mixed=False)
            return
        plan = _plan(data, 1, mixed=False)
        if plan is not None and plan.solver == "krylov":
            _ITERATIVE.begin_early(data, gamma)

    def solve(self, data: GameData, gamma: float, controls: Controls) -> Solution:
        """Solve one game."""
        plan = _plan(data, 1, mixed=False)
        if plan is None or plan.solver == "spectral":
            return _EXACT.solve(data, gamma, controls)
        first = _ITERATIVE.solve(data, gamma, _limited(controls, plan))
        if not _given_up(first, data, controls, plan):
            return first
        return _after(first, _EXACT.solve(data, gamma, controls))

    def solve_population(
        self, data: GameData, population: Population, ridge: float, controls: Controls
    ) -> Solution:
        """Solve one game against a population, or with a ridge."""
        plan = _plan(data, 1, mixed=True)
        if plan is None or plan.solver == "spectral":
            return _EXACT.solve_population(data, population, ridge, controls)
        first = _ITERATIVE.solve_population(data, population, ridge, _limited(controls, plan))
        if not _given_up(first, data, controls, plan):
            return first
        return _after(first, _EXACT.solve_population(data, population, ridge, controls))

    def solve_range(
        self, data: GameData, people: PopulationRange, ridge: float, controls: Controls
    ) -> Solution:
        """Solve one game against the worst population of a range: by decomposition, if it fits."""
        check_memory(_EXACT, data, 1, only=True)
        return _EXACT.solve_range(data, people, ridge, controls)

    def solve_path(
        self,
        data: GameData,
        gammas: Sequence[float | Population],
        controls: Controls,
        ridge: float = 0.0,
    ) -> tuple[Solution, ...]:
        """Solve a game for each strength or population."""
        mixed = any(isinstance(gamma, Population) for gamma in gammas)
        plan = _plan(data, len(gammas), mixed=mixed)
        if plan is None or plan.solver == "spectral":
            return _EXACT.solve_path(data, gammas, controls, ridge)
        found = list(_ITERATIVE.solve_path(data, gammas, _limited(controls, plan), ridge))
        lost = [i for i, solution in enumerate(found) if _given_up(solution, data, controls, plan)]
        if lost:
            again = _EXACT.solve_path(data, [gammas[i] for i in lost], controls, ridge)
            for i, solution in zip(lost, again, strict=True):
                found[i] = _after(found[i], solution)
        return tuple(found)


def chosen_solver(solver: Any, data: GameData) -> Spectral | Krylov:
    """Which of the two a fit against a population would begin with."""
    if isinstance(solver, Spectral | Krylov):
        return solver
    plan = _plan(data, 1, mixed=True)
    return _ITERATIVE if plan is not None and plan.solver == "krylov" else _EXACT


def check_memory(solver: Any, data: GameData, games: int, *, only: bool = False) -> None:
    """Refuse a decomposition that memory cannot hold, before it starts.

    Parameters
    ----------
    solver : Solver
        The user's choice.
    data : GameData
        The data of the game.
    games : int
        Number of games on it.
    only : bool
        Whether no other solver knows such games.
    """
    if not isinstance(solver, Spectral) or _is_small(data):
        return
    work, cores = data.work, threads()
    cost = spectral_cost(work, games, cores)
    room = inf if cost.memory <= _CHECKED else available_memory()
    if cost.fits(_SHARE * room, work):
        return
    advice = "Only this solver knows ranges: use fewer rows or columns, or pass numbers."
    if not only:
        other = krylov_cost(work, games, cores).memory
        advice = f"solver='krylov' would take {_bytes(other)}."
    where, needed = "", cost.memory
    if cost.there > work.room:
        where, needed, room = " on each thread of a worker", cost.there, work.room
    raise MemoryError(
        f"solver='spectral' would take {_bytes(needed)} of memory{where} beyond X for {work.rows} "
        f"rows and {work.columns} changeable columns, and {_bytes(room)} are free. {advice}"
    )


def _is_small(data: GameData) -> bool:
    m, n = data.matrix.shape
    return m * n <= _SMALL and min(m, n) <= _SHORT


def _plan(data: GameData, games: int, *, mixed: bool) -> Plan | None:
    """Make a plan, or none where that would take longer than solving; it is kept with the data."""
    if _is_small(data):
        return None
    key = f"plan for {games}, {'mixed' if mixed else 'alike'}"
    if key not in data.reductions:
        data.reductions[key] = make_plan(data.work, games, mixed=mixed)
    plan: Plan = data.reductions[key]
    return plan


def _limited(controls: Controls, plan: Plan) -> Controls:
    if controls.max_iter is not None or not plan.patience:
        return controls
    return Controls(controls.tol, plan.patience, controls.rng, controls.callback)


def _given_up(solution: Solution, data: GameData, controls: Controls, plan: Plan) -> bool:
    """Whether the other option is to be tried: not where the user asked for an end."""
    if controls.max_iter is not None or solution.status is Status.STOPPED:
        return False
    settled = solution.status.ok or solution.status is Status.UNATTAINED
    if not plan.patience:
        # It was not meant to fit, but what is so small will.
        return not settled and min(data.matrix.shape) <= _MODERATE
    if settled and solution.certificate.kind == "proved":
        return False
    other = plan.options[0].seconds
    return other <= max(_BEARABLE, _WORTH * solution.stats.seconds)


def _after(first: Solution, exact: Solution) -> Solution:
    """The exact solution, with what had been spent before."""
    a, b = first.stats, exact.stats
    stages = {"krylov": a.seconds, **b.stages}
    passes, seconds = a.passes + b.passes, a.seconds + b.seconds
    stats = Stats(passes, a.iterations + b.iterations, seconds, stages)
    return replace(exact, stats=stats, history=first.history)


def _seconds(value: float) -> str:
    return f"{1e3 * value:.3g} ms" if value < 1.0 else f"{value:.3g} s"


def _bytes(value: float) -> str:
    return f"{value / 1e6:.3g} MB" if value < 1e9 else f"{value / 1e9:.3g} GB"
