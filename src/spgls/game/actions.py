"""What users say people can do: actions on several features, and switches between categories."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from spgls.base.frames import index_names, matching_columns, nameless
from spgls.base.types import Vector
from spgls.base.validation import as_numbers, check_number, describe
from spgls.game.moves import Moves, Numbered

__all__ = ["Actions", "Switches"]

_EFFECTS = (
    "a mapping from the name of each action to what a unit of it does to features, such as "
    "{'exercise': {'bmi': -1.0}}, or an array with a row for each action and a column for each "
    "feature"
)


@dataclass(frozen=True, eq=False)
class Actions:
    """Things people can do, each of which moves one or several features.

    Pass it wherever ``feature_cost`` is taken. The amounts ``a`` of the actions move a row by the
    sum of their effects and cost ``sum_i c_i a_i^2``. A direction that no combination of actions
    has cannot be moved along, and the learner may use it freely.

    Parameters
    ----------
    effects : mapping, data frame, array or sparse matrix
        By action, what a unit of it does to features: a mapping from names or positions of columns
        to changes. Or a table with a row for each action and a column for each feature; the names
        of a data frame's rows and columns are used.
    cost : float, array-like of shape (k,) or mapping
        Cost of a squared unit of each action, ``inf`` if nobody can take it; one for all, one per
        action, or some by name, where the others cost one.
    others : float
        Cost of each feature that no action reaches; by default nobody can change those.

    Examples
    --------
    >>> import numpy as np
    >>> from spgls import Actions, movement
    >>> actions = Actions({"exercise": {0: -1.0, 1: -4.0}, "new scale": {0: -0.5}})
    >>> move = movement(np.zeros((1, 3)), [-2.0], [1.0, 0.5, 7.0], gamma=1.0, feature_cost=actions)
    >>> {name: round(float(much), 3) for name, much in move.taken(0).items()}
    {'exercise': 0.585, 'new scale': 0.098}
    """

    effects: Any
    cost: Any = 1.0
    others: Any = math.inf

    def __post_init__(self) -> None:
        if not isinstance(self.effects, Mapping):
            return
        if not self.effects:
            raise ValueError("effects must hold at least one action; got none.")
        for name, one in self.effects.items():
            if not isinstance(one, Mapping):
                raise TypeError(
                    f"effects[{name!r}] must be a mapping from features to changes; got "
                    f"{describe(one)}. effects is {_EFFECTS}."
                )

    def __repr__(self) -> str:
        named = isinstance(self.effects, Mapping)
        count = len(self.effects) if named else np.shape(self.effects)[0]
        others = "" if self.others == math.inf else f", others={self.others!r}"
        cost = "" if isinstance(self.cost, float) and self.cost == 1.0 else f", cost={self.cost!r}"
        return f"Actions({count} actions{cost}{others})"

    def moves(
        self, columns: int, names: Sequence[str] | None, table: str = "X", part: str = "column"
    ) -> Moves:
        """The actions on the columns of some data.

        Parameters
        ----------
        columns : int
            Number of columns.
        names : list of str or None
            Their names.
        table, part : str
            How errors call the data, and what of it has a name.
        """
        called, effects = self._read_effects(columns, names, table, part)
        for at in np.flatnonzero(np.diff(effects.indptr) == 0).tolist():
            raise ValueError(
                f"effects must move something; action {called[at]!r} moves no feature. Drop it, or "
                "say what it does."
            )
        cost = self._read_cost(called)
        rest = check_number(self.others, "others", above=0.0, infinite=True)
        if rest < math.inf:
            untouched = np.flatnonzero(np.bincount(effects.indices, minlength=columns) == 0)
            rest_called = [f"x{j}" if names is None else names[j] for j in untouched.tolist()]
            called = (*called, *rest_called)
            single = sp.csr_array(
                (np.ones(len(untouched)), (np.arange(len(untouched)), untouched)),
                shape=(len(untouched), columns),
            )
            effects = sp.csr_array(sp.vstack([effects, single]))
            cost = np.append(cost, np.full(len(untouched), rest))
        return Moves(effects, cost, called)

    def _read_effects(
        self, columns: int, names: Sequence[str] | None, table: str, part: str
    ) -> tuple[Sequence[str], sp.csr_array]:
        """Names of the actions, and their effects on each column."""
        given, labels = self.effects, None
        if hasattr(given, "columns") and hasattr(given, "index"):
            labels = [str(label) for label in given.index]
            by_name = [str(column) for column in given.columns]
            rows = _table(given)
            given = {
                label: dict(zip(by_name, row, strict=True))
                for label, row in zip(labels, rows.toarray().tolist(), strict=True)
            }
        if isinstance(given, Mapping):
            effects = sp.dok_array((len(given), columns))
            for at, (action, one) in enumerate(given.items()):
                for feature, change in one.items():
                    where = _column(action, feature, columns, names, table, part)
                    effects[at, where] += check_number(change, f"effects[{action!r}][{feature!r}]")
            return tuple(str(action) for action in given), _without_zeros(sp.csr_array(effects))
        rows = _table(given)
        if rows.shape[1] != columns:
            raise ValueError(
                f"effects must have one entry per {part} of {table}, {columns}, in each row; got "
                f"an array of shape {rows.shape}."
            )
        return Numbered(rows.shape[0]), rows

    def _read_cost(self, called: Sequence[str]) -> Vector:
        """Cost of each action."""
        given, advice = self.cost, "It is the cost of a squared unit of an action."
        names = index_names(given)
        if names is not None:
            given = dict(zip(names, np.asarray(given).tolist(), strict=True))
        if isinstance(given, Mapping):
            cost = np.ones(len(called))
            for name, one in given.items():
                if name not in called:
                    told = ", ".join(map(repr, called[:8]))
                    raise ValueError(f"cost names {name!r}, which no action is called: {told}.")
                cost[called.index(name)] = check_number(
                    one, f"cost[{name!r}]", above=0.0, infinite=True, advice=advice
                )
            return cost
        if np.ndim(given) == 0:
            one = check_number(given, "cost", above=0.0, infinite=True, advice=advice)
            return np.full(len(called), one)
        several = as_numbers(given, "cost").astype(np.float64)
        if several.shape != (len(called),):
            raise ValueError(
                f"cost must be one number, or one per action, {len(called)}; got an array of shape "
                f"{several.shape}."
            )
        wrong = np.flatnonzero(~(several > 0.0))
        if len(wrong):
            raise ValueError(
                "cost must be positive, inf for an action that nobody can take; entry "
                f"{wrong[0]} is {several[wrong[0]]}."
            )
        return np.asarray(several)


@dataclass(frozen=True)
class Switches:
    """Moves between the categories of a one-hot group, which keep the sum of its columns.

    Pass it for a group in a mapping of costs: ``{"bmi": 1.0, "region": Switches(cost=4.0)}``. The
    changes of the group's columns add up to zero, and their squares cost so much each.

    Parameters
    ----------
    cost : float
        Cost of a squared unit of change of each column, positive.

    Examples
    --------
    >>> import pandas as pd
    >>> from spgls import Switches, best_response
    >>> X = pd.DataFrame({"bmi": [30.0], "smoker_no": [0.0], "smoker_yes": [1.0]})
    >>> cost = {"bmi": float("inf"), "smoker": Switches(cost=2.0)}
    >>> best_response(X, [-0.5], [0.0, 0.0, 1.0], gamma=0.5, feature_cost=cost)
        bmi  smoker_no  smoker_yes
    0  30.0        0.5         0.5
    """

    cost: float = 1.0

    def __post_init__(self) -> None:
        check_number(
            self.cost, "cost", above=0.0, advice="Where nobody can switch, pass inf alone."
        )


def _column(
    action: Any,
    feature: Any,
    columns: int,
    names: Sequence[str] | None,
    table: str,
    part: str,
) -> int:
    """The one column that an effect is on."""
    told = f"effects[{action!r}]"
    if isinstance(feature, str):
        if names is None:
            raise ValueError(nameless(table, part, told, "Or name columns by their positions"))
        _, hits = matching_columns(feature, names, told)
        if len(hits) > 1:
            shown = ", ".join(repr(names[at]) for at in hits[:4])
            raise ValueError(
                f"{told} names {feature!r}, which several columns are called: {shown}. Name one "
                "of them; a switch between the columns of a one-hot group lowers one and raises "
                "another."
            )
        return hits[0]
    if isinstance(feature, bool | np.bool_) or not isinstance(feature, int | np.integer):
        raise TypeError(
            f"{told} must have names or positions of columns as keys; got {describe(feature)}."
        )
    if not 0 <= feature < columns:
        raise ValueError(
            f"{told} names column {feature}; {table} has the columns 0 to {columns - 1}."
        )
    return int(feature)


def _table(effects: Any) -> sp.csr_array:
    """Effects that were given as a table."""
    if isinstance(effects, str | bytes) or effects is None:
        raise TypeError(f"effects must be {_EFFECTS}; got {describe(effects)}.")
    if sp.issparse(effects):
        rows = sp.csr_array(effects, dtype=np.float64)
    else:
        array = as_numbers(effects, "effects").astype(np.float64)
        if array.ndim != 2:
            raise ValueError(f"effects must be {_EFFECTS}; got an array of shape {array.shape}.")
        rows = sp.csr_array(array)
    if rows.shape[0] == 0:
        raise ValueError("effects must hold at least one action; got none.")
    if not np.isfinite(rows.data).all():
        raise ValueError("effects must be finite; got numbers that are not.")
    return _without_zeros(rows)


def _without_zeros(rows: sp.csr_array) -> sp.csr_array:
    """The same without entries of zero; what users pass stays as it is."""
    if rows.data.all():
        return rows
    rows = rows.copy()
    rows.eliminate_zeros()
    return rows
