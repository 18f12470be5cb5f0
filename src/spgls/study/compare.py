"""One game solved by every method, side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, overload

from spgls.base.types import EPS, Number, Numbers, Seed, Table
from spgls.base.validation import check_choice, describe
from spgls.game.costs import Costs
from spgls.game.goals import GoalLike
from spgls.game.providers import Population
from spgls.matrix import Matrix
from spgls.reduction.data import GameData
from spgls.solvers import (
    OwnSolver,
    Solution,
    Solver,
    SolverLike,
    Step,
    available_solvers,
    play,
    resolve,
)
from spgls.solvers.solve import read_controls, read_population, read_ridge

__all__ = ["Comparison", "Trial", "compare_solvers"]

#: What a solver raises when it refuses a game; anything else is a defect and passes through.
_REFUSALS = (ValueError, NotImplementedError, ImportError, MemoryError)

#: Least rounding, which a logarithmic axis can show.
_TINY = 1e-300

_HEADINGS = {
    "solver": "solver",
    "status": "status",
    "above_bound": "above bound",
    "relative_gap": "relative gap",
    "kind": "kind",
    "passes": "passes",
    "iterations": "iterations",
    "seconds": "seconds",
}
_AXES = {
    "passes": "reads of the data",
    "seconds": "seconds",
    "iteration": "iteration",
}


@dataclass(frozen=True, eq=False)
class Trial:
    """What one solver made of a game.

    Attributes
    ----------
    solver : str
        Name of the solver, with the constants that differ from its own.
    solution : Solution or None
        What it found; None if it refused.
    reason : str
        Why it refused, empty otherwise.
    """

    solver: str
    solution: Solution | None
    reason: str = ""

    def __repr__(self) -> str:
        if self.solution is None:
            return f"Trial({self.solver}: refused, {self.reason})"
        return f"Trial({self.solver}: {self.solution!r})"


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Trials of several solvers on one game; by position, by the solver's name, or in turn.

    Attributes
    ----------
    trials : tuple of Trial
        One per solver, in the order they ran.
    lower_bound : float
        Best lower bound on the objective that any of them proved; zero if none did.
    rounding : float
        Differences of objectives below this mean nothing.
    """

    trials: tuple[Trial, ...]
    lower_bound: float
    rounding: float

    def __len__(self) -> int:
        return len(self.trials)

    def __iter__(self) -> Iterator[Trial]:
        return iter(self.trials)

    def __contains__(self, item: object) -> bool:
        return item in self.trials or any(trial.solver == item for trial in self.trials)

    @overload
    def __getitem__(self, key: int | str) -> Trial: ...
    @overload
    def __getitem__(self, key: slice) -> tuple[Trial, ...]: ...
    def __getitem__(self, key: int | str | slice) -> Trial | tuple[Trial, ...]:
        if not isinstance(key, str):
            return self.trials[key]
        for trial in self.trials:
            if trial.solver == key:
                return trial
        names = ", ".join(trial.solver for trial in self.trials)
        raise KeyError(f"no solver {key!r} in this comparison; there are {names}.")

    def to_dict(self) -> dict[str, list[Any]]:
        """Columns of the table, for ``pandas.DataFrame`` and its like; None where refused."""
        rows = [self._row(trial) for trial in self.trials]
        return {column: [row[column] for row in rows] for column in rows[0]}

    def plot(self, ax: Any = None, x: str = "passes") -> Any:
        """Draw how far each solver was above the best lower bound, and when.

        Direct solvers are a single point. It needs matplotlib, the extra ``spgls[plot]``.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        x : {"passes", "seconds", "iteration"}
            The horizontal axis.

        Returns
        -------
        matplotlib Axes
        """
        check_choice(x, "x", tuple(_AXES))
        if ax is None:
            try:
                from matplotlib.pyplot import subplots
            except ImportError:
                raise ImportError(
                    "plot needs matplotlib. Install it with: pip install 'spgls[plot]'"
                ) from None
            _, ax = subplots(layout="constrained")
        elif not hasattr(ax, "axhline"):
            raise TypeError(f"ax must be matplotlib axes or None; got {describe(ax)}.")
        farthest, nearest = 0.0, float("inf")
        for number, trial in enumerate(self.trials):
            if trial.solution is None:
                continue
            where, above = self._curve(trial.solution, x)
            ax.plot(
                where,
                above,
                marker="osD^vP*X"[number % 8],
                # Solvers that walk the same way stay visible beneath each other.
                linewidth=max(1.0, 3.0 - 0.4 * number),
                markersize=max(4.0, 8.0 - 0.8 * number),
                markevery=max(1, len(where) // 15),
                label=trial.solver,
            )
            farthest, nearest = max(farthest, *where), min(nearest, *where)
        if farthest > 30.0 * nearest > 0.0:
            ax.set_xscale("log")
        ax.set_yscale("log")
        ax.axhline(self.rounding, color="0.6", linestyle=":", label="rounding")
        ax.set_xlabel(_AXES[x])
        ax.set_ylabel("objective above the best lower bound")
        ax.grid(alpha=0.3)
        ax.legend()
        return ax

    def _curve(self, solution: Solution, x: str) -> tuple[list[float], list[float]]:
        """Horizontal and vertical coordinates; what rounding hides lies on its line."""
        if solution.history:
            where = [float(getattr(step, x)) for step in solution.history]
            objective = [step.objective for step in solution.history]
        else:
            where = [float(getattr(solution.stats, "iterations" if x == "iteration" else x))]
            objective = [solution.objective]
        return where, [max(value - self.lower_bound, self.rounding) for value in objective]

    def _row(self, trial: Trial) -> dict[str, Any]:
        found = trial.solution
        if found is None:
            empty = dict.fromkeys([*_HEADINGS, "objective"])
            return empty | {"solver": trial.solver, "status": "refused", "reason": trial.reason}
        return {
            "solver": trial.solver,
            "status": found.status.value,
            "above_bound": max(0.0, found.objective - self.lower_bound),
            "relative_gap": found.certificate.relative_gap,
            "kind": found.certificate.kind,
            "passes": found.stats.passes,
            "iterations": found.stats.iterations,
            "seconds": found.stats.seconds,
            "objective": found.objective,
            "reason": "",
        }

    def __repr__(self) -> str:
        rows = [self._row(trial) for trial in self.trials]
        table = [list(_HEADINGS.values())]
        table += [[_text(row[column]) for column in _HEADINGS] for row in rows]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        words = {"solver", "status", "kind"}
        lines = [
            "  ".join(
                cell.ljust(width) if column in words else cell.rjust(width)
                for cell, width, column in zip(line, widths, _HEADINGS, strict=True)
            ).rstrip()
            for line in table
        ]
        lines += [f"{row['solver']}: {row['reason']}" for row in rows if row["reason"]]
        return "\n".join([f"Best lower bound {self.lower_bound:.10g}", *lines])


def compare_solvers(
    X: Table | Matrix,
    y: Numbers,
    z: Numbers | GoalLike,
    gamma: Number | Population,
    *,
    solvers: Iterable[SolverLike] | None = None,
    fit_intercept: bool = False,
    feature_cost: Costs | None = None,
    sample_weight: Numbers | None = None,
    ridge: Number = 0.0,
    tol: Number = 1e-9,
    max_iter: int | None = None,
    rng: Seed | None = None,
    callback: Callable[[Step], object] | None = None,
) -> Comparison:
    """Solve one game by several solvers, each from a fresh start.

    Parameters
    ----------
    X, y, z, gamma, fit_intercept, feature_cost, sample_weight, ridge
        The game, as in :func:`solve`.
    solvers : list of names, solver objects and functions, optional
        Whom to compare; every registered solver by default.
    tol, max_iter, rng, callback
        As in :func:`solve`, for each solver alike. A random generator is copied, so that each
        solver draws the same numbers.

    Returns
    -------
    Comparison

    See Also
    --------
    solve : solve a game by one solver.

    Examples
    --------
    >>> import numpy as np
    >>> from spgls import compare_solvers
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 3))
    >>> y = X @ [1.0, 2.0, 0.0] + rng.normal(size=200)
    >>> comparison = compare_solvers(X, y, y + 1.0, 0.5, solvers=["spectral", "gltr"])
    >>> [trial.solution.status.value for trial in comparison]
    ['optimal', 'optimal']
    >>> comparison["gltr"].solution.stats.iterations
    4
    """
    population, penalty = read_population(gamma), read_ridge(ridge)
    controls = read_controls(tol, max_iter, rng, callback)
    chosen = _read_solvers(solvers)
    data = GameData.from_user(
        X,
        y,
        z,
        fit_intercept=fit_intercept,
        feature_cost=feature_cost,
        sample_weight=sample_weight,
    )
    data.check_finite()
    trials = []
    for label, solver in chosen.items():
        # Nobody gains from what another's run has cached.
        fresh, own = replace(data), replace(controls, rng=deepcopy(controls.rng))
        try:
            trials.append(Trial(label, play(solver, fresh, [population], penalty, own)[0]))
        except _REFUSALS as refusal:
            trials.append(Trial(label, None, str(refusal) or type(refusal).__name__))
    proofs = [trial.solution.certificate for trial in trials if trial.solution is not None]
    bounds = [proof.lower_bound for proof in proofs if proof.kind == "proved"]
    rounding = EPS * (data.loss(data.centred[0]) + data.loss(data.centred[1]))
    return Comparison(tuple(trials), max([0.0, *bounds]), max(rounding, _TINY))


def _read_solvers(solvers: Any) -> dict[str, Solver]:
    """Solver objects by label."""
    if solvers is None:
        solvers = [capabilities.name for capabilities in available_solvers()]
    if isinstance(solvers, str | dict) or not isinstance(solvers, Iterable):
        hint = f" Pass [{solvers!r}]." if isinstance(solvers, str) else ""
        raise TypeError(
            "solvers must be None or a list of names and solver objects; "
            f"got {describe(solvers)}.{hint}"
        )
    found: dict[str, Solver] = {}
    for number, solver in enumerate(solvers):
        chosen = resolve(solver, f"solvers[{number}]")
        label = _label(chosen)
        if label in found:
            raise ValueError(f"solvers must differ from each other; got {label} twice.")
        found[label] = chosen
    if not found:
        raise ValueError("solvers must hold at least one name or solver object; got none.")
    return found


def _label(solver: Any) -> str:
    """Return a solver's name, with the constants that differ from its defaults."""
    name = str(solver.capabilities.name)
    if isinstance(solver, OwnSolver):
        return name
    given = []
    for field in fields(solver) if is_dataclass(solver) else ():
        value = getattr(solver, field.name)
        plain = value is None or isinstance(value, bool | int | float | str)
        if not plain and value is not field.default:
            given.append(f"{field.name}={type(value).__name__}")
        elif plain and value != field.default:
            given.append(f"{field.name}={value!r}")
    return f"{name}({', '.join(given)})" if given else name


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.3g}"
    return str(value)
