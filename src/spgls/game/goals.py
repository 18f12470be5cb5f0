"""What providers want: goals as functions of the true labels.

A goal is any callable that takes the labels and returns one wanted prediction per row. Those here
are small objects with parameters, so that a grid search can vary them (``goal__level``), a pickle
can hold them and a report can print them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from functools import partial
from typing import Any, ClassVar, TypeAlias, TypeVar

import numpy as np

from spgls.base.devices import Place
from spgls.base.far_array import far_of
from spgls.base.types import Vector
from spgls.base.validation import (
    as_numbers,
    check_number,
    check_row_numbers,
    check_vector,
    describe,
)
from spgls.matrix import check_lazy_vector, is_lazy

__all__ = [
    "Cap",
    "Constant",
    "Floor",
    "Goal",
    "GoalLike",
    "Scale",
    "Shift",
    "check_goal",
    "goals_for",
    "goals_of",
    "is_goal",
    "read_goals",
    "refuse_two_goals",
]

#: Anything that turns labels into goals.
GoalLike: TypeAlias = Callable[[Vector], Any]
_Self = TypeVar("_Self", bound="Goal")


@dataclass(repr=False)
class Goal:
    """What goals with parameters share: scikit-learn's ``get_params`` and ``set_params``."""

    optional: ClassVar[tuple[str, ...]] = ("lower", "upper")

    def __post_init__(self) -> None:
        for name, value in self.get_params().items():
            if value is not None or name not in self.optional:
                check_number(value, name)
        lower, upper = getattr(self, "lower", None), getattr(self, "upper", None)
        if lower is not None and upper is not None and lower > upper:
            raise ValueError(
                f"lower must not be above upper; got lower={lower!r} and upper={upper!r}."
            )

    def __call__(self, y: Any) -> Vector:
        """Return the goal of each row from its label.

        Parameters
        ----------
        y : array-like of shape (m,)
            True labels.

        Returns
        -------
        ndarray of shape (m,)
        """
        wanted = self._wanted(as_numbers(y, "y").astype(np.float64, copy=False))
        lower, upper = getattr(self, "lower", None), getattr(self, "upper", None)
        return wanted if lower is None and upper is None else np.clip(wanted, lower, upper)

    def _wanted(self, y: Vector) -> Vector:
        raise NotImplementedError

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name.

        Parameters
        ----------
        deep : bool
            Ignored; goals hold numbers only.

        Returns
        -------
        dict
        """
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def set_params(self: _Self, **params: Any) -> _Self:
        """Change parameters in place.

        Parameters
        ----------
        **params
            New values by name.

        Returns
        -------
        Goal
            Itself.
        """
        allowed = self.get_params()
        for name in params:
            if name not in allowed:
                raise ValueError(
                    f"{name} is not a parameter of {type(self).__name__}; "
                    f"it has {', '.join(allowed)}."
                )
        # Checked as a whole before anything changes.
        type(self)(**(allowed | params))
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        given = [
            f"{field.name}={getattr(self, field.name)!r}"
            for field in fields(self)
            if field.default is MISSING or getattr(self, field.name) != field.default
        ]
        return f"{type(self).__name__}({', '.join(given)})"


@dataclass(repr=False)
class Shift(Goal):
    """Everyone would like the prediction to be off by the same amount.

    Parameters
    ----------
    amount : float
        What is added to the label; negative to be rated lower.
    lower, upper : float, optional
        Bounds of the goals, such as the ends of a scale of marks.

    Notes
    -----
    With an intercept an unbounded shift teaches the learner nothing: it reads the labels off the
    goals. See the page on choosing a game.

    Examples
    --------
    >>> from spgls import Shift
    >>> Shift(2.0, upper=10.0)([5.0, 9.0])
    array([ 7., 10.])
    """

    amount: float
    lower: float | None = None
    upper: float | None = None

    def _wanted(self, y: Vector) -> Vector:
        return y + self.amount


@dataclass(repr=False)
class Scale(Goal):
    """Everyone would like the prediction to be a multiple of the truth.

    Parameters
    ----------
    factor : float
        What the label is multiplied by.
    lower, upper : float, optional
        Bounds of the goals.

    Examples
    --------
    >>> from spgls import Scale
    >>> Scale(0.5, lower=20.0)([30.0, 100.0])
    array([20., 50.])
    """

    factor: float
    lower: float | None = None
    upper: float | None = None

    def _wanted(self, y: Vector) -> Vector:
        return y * self.factor


@dataclass(repr=False)
class Floor(Goal):
    """Those below a level would like to reach it; the others want the truth.

    Parameters
    ----------
    level : float
        The least prediction that anyone would like.

    Examples
    --------
    >>> from spgls import Floor
    >>> Floor(6.0)([3.0, 8.0])
    array([6., 8.])
    """

    level: float

    def _wanted(self, y: Vector) -> Vector:
        return np.maximum(y, self.level)


@dataclass(repr=False)
class Cap(Goal):
    """Those above a level would like to be at it; the others want the truth.

    Parameters
    ----------
    level : float
        The largest prediction that anyone would like.

    Examples
    --------
    >>> from spgls import Cap
    >>> Cap(100.0)([80.0, 250.0])
    array([ 80., 100.])
    """

    level: float

    def _wanted(self, y: Vector) -> Vector:
        return np.minimum(y, self.level)


@dataclass(repr=False)
class Constant(Goal):
    """Everyone would like the same prediction, whatever the truth.

    Parameters
    ----------
    level : float
        The prediction that everyone would like.

    Examples
    --------
    >>> from spgls import Constant
    >>> Constant(8.0)([3.0, 5.0])
    array([8., 8.])
    """

    level: float

    def _wanted(self, y: Vector) -> Vector:
        return np.full_like(y, self.level)


def check_goal(goal: Any) -> GoalLike | None:
    """Return something that turns labels into goals, or None."""
    if goal is None or is_goal(goal):
        checked: GoalLike | None = goal
        return checked
    raise TypeError(
        "goal must be None, a goal such as Floor(250), or a function of y that returns one number "
        f"per row; got {describe(goal)}."
    )


def refuse_two_goals(goal: Any, z: Any) -> None:
    """Raise an error where a model holds a goal and its fit is given goals."""
    if goal is not None and z is not None:
        raise ValueError(
            f"z was given and so was goal={goal!r}; drop one of them. Where metadata routing "
            "passes z, set_fit_request(z=False) keeps it from here."
        )


def goals_of(goal: GoalLike, y: Vector, name: str = "goal") -> Vector:
    """Apply a goal to labels, and refuse what is not one finite number per row.

    The goal gets a copy: a function that works in place must not change the labels.
    """
    z = goal(np.array(y, dtype=np.float64))
    try:
        return check_row_numbers(z, "z", len(y), _place_of(y))
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"{name} must return one finite number per row, {len(y)}; {goal!r} did not: {error}"
        ) from None


def read_goals(z: Any, y: Vector) -> Vector:
    """Goals as they were given: one per row, or a function of the labels such as ``Floor(250)``."""
    if is_goal(z):
        return goals_of(z, y, "z")
    return check_row_numbers(z, "z", len(y), _place_of(y))


def _place_of(y: Any) -> Place | None:
    """Where labels are that stay on a device; their goals belong beside them."""
    far = far_of(y)
    return None if far is None else far.place


def goals_for(goal: GoalLike | None, m: int, z: Any, y: Any) -> Vector:
    """Goals of rows that a model predicts: those given, or those of a goal and the labels.

    Parameters
    ----------
    goal : callable or None
        The goal that the model holds.
    m : int
        Number of rows.
    z : array-like, callable or None
        Goals; a function of the labels needs ``y``.
    y : array-like or None
        Labels. Goals from Dask arrays are Dask arrays.
    """
    wish = z if is_goal(z) else goal
    if y is None:
        if z is None:
            holds = "this model holds no goal" if goal is None else f"this model holds {goal!r}"
            instead = "z=Floor(250) and y" if goal is None else "y=, the true labels,"
            raise ValueError(
                f"z is needed, the prediction each provider would like; {holds}. Pass z=, one per "
                f"row, or {instead} from which goals follow."
            )
        if is_goal(z):
            raise ValueError(
                f"y is needed, because z={z!r} is a function of the labels; got None. Pass "
                "y=, or z=, one goal per row."
            )
        given: Vector = _one_per_row(z, "z", m)
        return given
    if z is not None and not is_goal(z):
        raise ValueError(
            "z was given and so was y, which goals would follow from; drop one of them."
        )
    if wish is None:
        raise ValueError(
            "y was given, but this model holds no goal that would turn labels into goals. Pass "
            "z=Floor(250) or another function of y beside it, or z=, one goal per row, alone."
        )
    name = "goal" if z is None else "z"
    labels = _one_per_row(y, "y", m)
    if is_lazy(labels):
        later: Vector = labels.map_blocks(partial(goals_of, wish, name=name), dtype=np.float64)
        return later
    return goals_of(wish, labels, name)


def _one_per_row(value: Any, name: str, m: int) -> Any:
    """A number for each row; what Dask has not computed stays so."""
    if is_lazy(value):
        return check_lazy_vector(value, name, m)
    return check_vector(value, name, m, "row of X")


def is_goal(z: Any) -> bool:
    """Whether goals were given as a function of the labels."""
    return callable(z) and not isinstance(z, type)
