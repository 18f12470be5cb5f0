"""What it would be worth to verify a feature, to drop it, or to make it dearer to change."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import floor, log10
from textwrap import fill
from typing import Any, Literal, TypeAlias

import numpy as np

from spgls.base.column_groups import ColumnGroups, read_column_groups
from spgls.base.frames import column_names, data_frame
from spgls.base.types import Array, Number, Numbers, Table
from spgls.base.validation import describe
from spgls.game.costs import Costs
from spgls.game.errors import error_from_goals, error_of_mean
from spgls.game.goals import GoalLike
from spgls.game.moves import Moves
from spgls.game.providers import Population
from spgls.matrix import Matrix
from spgls.reduction.column_sums import ColumnChange
from spgls.reduction.data import GameData, NullSpace
from spgls.solvers.changed import play_changed
from spgls.solvers.changed_moves import MovesChange, play_moves
from spgls.solvers.iterative.iterate import Controls
from spgls.solvers.registry import Solver, SolverLike, resolve
from spgls.solvers.solution import Solution, Stats, Status, latest
from spgls.solvers.solve import read_controls, read_population, read_ridge

__all__ = ["KINDS", "Figure", "LeverKind", "Levers", "find_levers", "levers", "read_kinds"]

LeverKind: TypeAlias = Literal["verify", "drop", "double"]
#: What is done to a feature, and how tables call it.
KINDS: dict[str, str] = {"verify": "verified", "drop": "dropped", "double": "cost doubled"}
#: What is done to a feature, in a sentence.
_VERBS = {"verify": "Verify", "drop": "Drop", "double": "Double the cost of"}
_DOING = {"verify": "Verifying", "drop": "Dropping", "double": "Doubling the cost of"}
#: Levers that are printed; all are in the arrays.
_SHOWN = 20


@dataclass(frozen=True)
class Figure:
    """The least error after manipulation in one game, and how far it is proved.

    Attributes
    ----------
    error : float
        Mean squared error of the best predictor found, after people moved; a ridge term is
        included.
    lower_bound : float
        No predictor has less.
    status : Status
        How the solve ended.
    kind : {"proved", "estimated"}
        Whether the bound is proved.
    """

    error: float
    lower_bound: float
    status: Status
    kind: str

    @classmethod
    def of(cls, solution: Solution, weight: float) -> Figure:
        """The figure of a solution on rows of some weight."""
        proof = solution.certificate
        error, bound = solution.objective / weight, proof.lower_bound / weight
        return cls(error, bound, solution.status, proof.kind)

    @property
    def certified(self) -> bool:
        """Whether the error is proved to be the least, up to the tolerance."""
        settled = self.status.ok or self.status is Status.UNATTAINED
        return settled and self.kind == "proved"


@dataclass(frozen=True, eq=False, repr=False)
class Levers:
    """Errors after manipulation if one feature were treated differently, best first.

    What :func:`levers` returns.

    Attributes
    ----------
    names : tuple of g str
        Features or groups of them, ranked by the error with the first of ``kinds``.
    columns : tuple of g ndarray
        Columns of each.
    kinds : tuple of k str
        What would be done to them: ``"verify"``, ``"drop"``, ``"double"``.
    now : Figure
        The game as it is.
    figures : tuple of g tuples of k Figure
        The games as they would be.
    from_goal, variance : float
        Mean squared errors of the best affine function of the goals alone, "y from z alone", and of
        predicting the mean label.
    stats : Stats
        What all of them cost together.
    """

    names: tuple[str, ...]
    columns: tuple[np.ndarray, ...]
    kinds: tuple[str, ...]
    now: Figure
    figures: tuple[tuple[Figure, ...], ...]
    from_goal: float
    variance: float
    stats: Stats

    @cached_property
    def errors(self) -> Array:
        """Mean squared errors after manipulation, of shape (g, k)."""
        return np.array([[one.error for one in row] for row in self.figures])

    @cached_property
    def lower_bounds(self) -> Array:
        """What no predictor is below, of shape (g, k)."""
        return np.array([[one.lower_bound for one in row] for row in self.figures])

    @cached_property
    def certified(self) -> np.ndarray:
        """Where the errors are proved to be the least, of shape (g, k)."""
        return np.array([[one.certified for one in row] for row in self.figures])

    @property
    def gains(self) -> Array:
        """By how much the error falls, of shape (g, k); negative where it rises."""
        return np.asarray(self.now.error - self.errors)

    def ranking(self, kind: LeverKind) -> list[str]:
        """Names by the error with one kind of lever, best first.

        Parameters
        ----------
        kind : {"verify", "drop", "double"}
            What would be done to each.

        Returns
        -------
        list of str
        """
        order = np.argsort(self.errors[:, self._place(kind)], kind="stable")
        return [self.names[at] for at in order]

    def _place(self, kind: str) -> int:
        if kind not in self.kinds:
            given = ", ".join(map(repr, self.kinds))
            raise ValueError(f"kind must be one of {given}; got {describe(kind)}.")
        return self.kinds.index(kind)

    @property
    def answer(self) -> str:
        """What to do first, in words."""
        first, *others = self.kinds
        return " ".join([self._advice(first), *(self._remark(kind) for kind in others)])

    def _best(self, kind: str) -> tuple[str, Figure]:
        place = self._place(kind)
        at = int(np.argmin(self.errors[:, place]))
        return self.names[at], self.figures[at][place]

    def _advice(self, kind: str) -> str:
        name, best = self._best(kind)
        before, after = _told(self.now.error, best.error)
        if best.error < self.now.error:
            said = f"{_VERBS[kind]} {name} first: error after manipulation falls from {before} to "
            return f"{said}{after}{self._doubt(best)}."
        return (
            f"{_DOING[kind]} a single one does not lower the error after manipulation: at best it "
            f"goes from {before} to {after}, with {name}{self._doubt(best)}."
        )

    def _remark(self, kind: str) -> str:
        name, best = self._best(kind)
        before, after = _told(self.now.error, best.error)
        if best.error < self.now.error:
            return f"{_DOING[kind]} {name} lowers it most, to {after}{self._doubt(best)}."
        way = f"at best it goes from {before} to {after}, with {name}"
        return f"{_DOING[kind]} a single one does not lower it: {way}{self._doubt(best)}."

    def _doubt(self, best: Figure) -> str:
        """What has to be said of a comparison that is not proved."""
        if self.now.certified and best.certified:
            return ""
        return " (not certified)"

    def to_dict(self) -> dict[str, list[Any]]:
        """Columns of the table, one row per lever."""
        columns: dict[str, list[Any]] = {"feature": list(self.names)}
        for place, kind in enumerate(self.kinds):
            figures = [row[place] for row in self.figures]
            columns[kind] = [one.error for one in figures]
            columns[f"{kind}_lower_bound"] = [one.lower_bound for one in figures]
            columns[f"{kind}_status"] = [one.status.value for one in figures]
            columns[f"{kind}_certified"] = [one.certified for one in figures]
        return columns

    def to_dataframe(self) -> Any:
        """The same as a pandas data frame."""
        return data_frame(self.to_dict())

    def __repr__(self) -> str:
        table = [["", *(KINDS[kind] for kind in self.kinds)]]
        shown = list(zip(self.names, self.figures, strict=True))[:_SHOWN]
        table.append(["as it is", *[_cell(self.now)] * len(self.kinds)])
        table += [[name, *map(_cell, row)] for name, row in shown]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        head = (
            "Mean squared error after manipulation; "
            f"y from z alone {_plain(self.from_goal)}, mean label {_plain(self.variance)}"
        )
        lines = [
            "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip()
            for row in table
        ]
        rest = len(self.names) - len(shown)
        if rest:
            lines.append(f"... and {rest} more: to_dict() has all")
        if not (self.now.certified and self.certified.all()):
            lines.append("* not certified: to_dict() has the lower bound and the status of each")
        return "\n".join([head, *lines, fill(self.answer, 100)])


def _cell(figure: Figure) -> str:
    return f"{_plain(figure.error)}{' ' if figure.certified else '*'}"


def _plain(value: float) -> str:
    """Four digits, and no powers of ten where people write none."""
    rounded = float(f"{value:.4g}")
    if rounded and not 1e-4 <= abs(rounded) < 1e7:
        return f"{value:.4g}"
    return np.format_float_positional(rounded, trim="-")


def _told(before: float, after: float) -> tuple[str, str]:
    """Two numbers with as many digits as tell them apart, if few do."""
    top = max(abs(before), abs(after))
    if not 1e-4 <= top < 1e7:
        return f"{before:.3g}", f"{after:.3g}"
    first = max(0, 2 - floor(log10(top)))
    for decimals in range(first, first + 4):
        told = f"{before:.{decimals}f}", f"{after:.{decimals}f}"
        if told[0] != told[1]:
            return told
    return f"{before:.{first}f}", f"{after:.{first}f}"


def levers(
    X: Table | Matrix,
    y: Numbers,
    z: Numbers | GoalLike,
    gamma: Number | Population,
    *,
    groups: ColumnGroups | None = None,
    kinds: LeverKind | Sequence[LeverKind] = ("verify", "drop", "double"),
    fit_intercept: bool = False,
    feature_cost: Costs | None = None,
    sample_weight: Numbers | None = None,
    ridge: Number = 0.0,
    null_space: NullSpace = "use",
    solver: SolverLike = "auto",
    tol: Number = 1e-9,
) -> Levers:
    """Say which feature to verify, to drop, or to make dearer to change.

    For each feature, or group of them, the game is solved again as it would be if nobody could
    change that feature any more, if the learner did without it, and if changing it cost twice as
    much. People stay as strong as they are. All games come from one reading of the rows, two where
    squares are not enough.

    Parameters
    ----------
    X, y, z, gamma, fit_intercept, feature_cost, sample_weight, ridge, null_space, solver, tol
        The game, as in :func:`solve`.
    groups : list or mapping, optional
        What to try: names of columns or of one-hot groups (``"region"`` for ``region_north``,
        ``region_south``), positions, lists of these; or a mapping from names of your own to them.
        By default every column by itself.
    kinds : str or sequence of str
        What to try with each: ``"verify"``, ``"drop"``, ``"double"`` (the cost). The first ranks.

    Returns
    -------
    Levers

    See Also
    --------
    solve : one game.

    Notes
    -----
    Where people move by actions, or costs are a matrix, a verified feature is one that nobody may
    change: people take any mixture of actions that leaves it as it is. A doubled cost is a
    surcharge on changes of the feature, as large as what it costs to change that feature alone.
    With single costs both are what they say. Of a dropped feature only the effects are gone.

    An error after manipulation can also rise where a feature is verified: people whose goals tell
    the labels reveal them by moving, and no longer do.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from spgls import Floor, Population, levers
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> people = Population.mixed(2e6, honest=0.5)
    >>> found = levers(X, y, Floor(250), people, fit_intercept=True, kinds="verify")
    >>> print(found.answer)
    Verify bmi first: error after manipulation falls from 3089 to 2944.
    >>> found.names[:3]
    ('bmi', 's5', 'bp')
    """
    population, penalty = read_population(gamma), read_ridge(ridge)
    controls = read_controls(tol, None, None, None)
    chosen, tried = resolve(solver), read_kinds(kinds)
    data = GameData.from_user(
        X,
        y,
        z,
        fit_intercept=fit_intercept,
        feature_cost=feature_cost,
        sample_weight=sample_weight,
        null_space=null_space,
    )
    named = read_column_groups(groups, data.matrix.shape[1], column_names(X))
    return find_levers(chosen, data, named, tried, population, penalty, controls=controls)


def read_kinds(kinds: Any) -> tuple[str, ...]:
    """Return what to try with each feature."""
    wanted = f"one or several of {', '.join(map(repr, KINDS))}"
    given = (kinds,) if isinstance(kinds, str) else kinds
    if not isinstance(given, Iterable):
        raise TypeError(f"kinds must be {wanted}; got {describe(kinds)}.")
    tried = tuple(dict.fromkeys(given))
    for kind in tried:
        if not isinstance(kind, str) or kind not in KINDS:
            raise ValueError(f"kinds must be {wanted}; got {describe(kind)}.")
    if not tried:
        raise ValueError(f"kinds must be {wanted}; got none.")
    return tried


def find_levers(
    solver: Solver,
    data: GameData,
    groups: dict[str, np.ndarray],
    kinds: tuple[str, ...],
    population: Population,
    ridge: float,
    *,
    controls: Controls,
) -> Levers:
    """The levers of a game that was read already.

    Parameters
    ----------
    solver : Solver
        How games are solved.
    data : GameData
        The game as it is.
    groups : dict
        Columns of each lever, by its name.
    kinds : tuple of str
        What to try with each.
    population, ridge
        Whom the learner meets, and the weight of its penalty.
    controls : Controls
        Tolerance and limits.
    """
    places = np.zeros((len(groups), len(kinds)), dtype=np.intp)
    changes = [_as_it_is(data)]
    for g, columns in enumerate(groups.values()):
        for k, kind in enumerate(kinds):
            change = _changed(data, columns, kind)
            if change is not None:
                places[g, k] = len(changes)
                changes.append(change)
    game = population, ridge, controls
    if data.layout.coordinates is None:
        told = [ColumnChange(*one) for one in changes]
        solutions = play_changed(solver, data, told, *game)
    else:
        solutions = play_moves(solver, data, [MovesChange(*one) for one in changes], *game)
    made = [Figure.of(one, data.total_weight) for one in solutions]
    errors = np.array([one.error for one in made])
    order = np.argsort(errors[places[:, 0]], kind="stable")
    names, held = list(groups), list(groups.values())
    return Levers(
        names=tuple(names[at] for at in order),
        columns=tuple(held[at] for at in order),
        kinds=kinds,
        now=made[0],
        figures=tuple(tuple(made[at] for at in places[row]) for row in order),
        from_goal=error_from_goals(data.y, data.z, data.weight),
        variance=error_of_mean(data.y, data.weight),
        stats=latest(solutions),
    )


def _as_it_is(data: GameData) -> tuple[np.ndarray, Any]:
    """All columns, and what they cost."""
    layout = data.layout
    cost = layout.cost if layout.coordinates is None else layout.moves
    return np.arange(layout.columns), cost


def _changed(data: GameData, columns: np.ndarray, kind: str) -> tuple[np.ndarray, Any] | None:
    """The columns and their costs with a lever pulled; None where that changes nothing."""
    every, cost = _as_it_is(data)
    kept = np.delete(every, columns)
    if isinstance(cost, Moves):
        if kind == "drop":
            return kept, cost.on(kept)
        verified = kind == "verify"
        some = columns[cost.reached[columns]]
        return (every, cost.dearer(some, forbidden=verified)) if len(some) else None
    if kind == "drop":
        return kept, None if cost is None else cost[kept]
    cost = np.ones(len(every)) if cost is None else cost.copy()
    if np.isinf(cost[columns]).all():
        return None
    cost[columns] = np.inf if kind == "verify" else 2.0 * cost[columns]
    return every, cost
