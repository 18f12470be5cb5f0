"""What providers want of a decision: one of two classes.

A goal is a function of the labels that returns the class each provider would like. In the game
classes are the numbers -1 and 1, the first and the second in sorted order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from spgls.base.types import Vector
from spgls.base.validation import describe
from spgls.game.goals import Goal, GoalLike, is_goal

__all__ = [
    "Labels",
    "Opposite",
    "Wants",
    "check_class_goal",
    "class_goals",
    "named_classes",
    "signs",
    "two_classes",
]

#: Labels of any kind: text, numbers, truth values.
Labels: TypeAlias = NDArray[Any]


@dataclass(repr=False)
class Wants(Goal):
    """Everyone would like to be put in the same class.

    Parameters
    ----------
    label : str, number or bool
        The class that everyone would like.

    See Also
    --------
    Opposite : everyone would like to pass for the other class.

    Examples
    --------
    >>> from spgls import Wants
    >>> Wants("approved")(["rejected", "approved"])
    array(['approved', 'approved'], dtype='<U8')
    """

    label: Any

    def __post_init__(self) -> None:
        if self.label is None or np.ndim(self.label) != 0:
            raise TypeError(
                f"label must be one class, such as 'approved' or 1; got {describe(self.label)}."
            )

    def __call__(self, y: Any) -> Labels:
        """Return the class that each row's provider would like.

        Parameters
        ----------
        y : array-like of shape (m,)
            True labels.

        Returns
        -------
        ndarray of shape (m,)
        """
        return np.full(len(y), self.label)


@dataclass(repr=False)
class Opposite(Goal):
    """Everyone would like to pass for the other class, as spam does.

    Examples
    --------
    >>> from spgls import Opposite
    >>> Opposite()(["spam", "mail", "spam"])
    array(['mail', 'spam', 'mail'], dtype='<U4')
    """

    def __call__(self, y: Any) -> Labels:
        """Return the class that each row's provider would like.

        Parameters
        ----------
        y : array-like of shape (m,)
            True labels, of two classes.

        Returns
        -------
        ndarray of shape (m,)
        """
        labels = np.asarray(y)
        classes = two_classes(labels)
        if len(classes) != 2:
            raise ValueError(
                f"y must hold two classes, so that each has an opposite; got {_listed(classes)}."
            )
        return np.asarray(np.where(labels == classes[0], classes[1], classes[0]))


def two_classes(labels: Labels) -> Labels:
    """The different labels, sorted; there may be one or many."""
    if labels.dtype.kind in "biuf" and labels.size:
        # Two numbers are found without sorting all of them.
        low, high = labels.min(), labels.max()
        if low != high and ((labels == low) | (labels == high)).all():
            return np.array([low, high], dtype=labels.dtype)
    return np.unique(labels)


def named_classes(classes: Any, known: Labels | None) -> Labels:
    """Two classes that a caller names, sorted; where they are known already, no others."""
    values = np.asarray(classes)
    try:
        found = two_classes(values)
    except TypeError as error:
        raise TypeError(f"classes must be of one kind, text or numbers: {error}.") from None
    if known is not None and not np.array_equal(found, known):
        raise ValueError(
            f"classes must stay those of the first call, {_listed(known)}; got {_listed(found)}."
        )
    if values.ndim != 1 or len(found) != 2:
        raise ValueError(
            f"classes must be a list of two classes, such as ['no', 'yes']; got {_listed(found)}."
        )
    return found


def signs(labels: Any, classes: Labels, name: str, length: int | None = None) -> Vector:
    """Labels as the numbers -1 and 1, refusing all that is neither class."""
    values = np.asarray(labels)
    if values.ndim != 1 or (length is not None and len(values) != length):
        wanted = "" if length is None else f", {length}"
        raise ValueError(
            f"{name} must have one class per row of X{wanted}; got {describe(values)}."
        )
    if (values.dtype.kind in "biuf") != (classes.dtype.kind in "biuf"):
        values = values.astype(object)
    second = np.asarray(values == classes[1])
    wrong = ~(second | np.asarray(values == classes[0]))
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"{name} must hold the classes {_listed(classes)}; entry {at} is "
            f"{describe(values[at])}."
        )
    return np.where(second, 1.0, -1.0)


def check_class_goal(goal: Any) -> GoalLike | None:
    """Return something that turns labels into classes, or None."""
    if goal is None or is_goal(goal):
        checked: GoalLike | None = goal
        return checked
    hint = f" Pass goal=Wants({goal!r})." if isinstance(goal, str) else ""
    raise TypeError(
        "goal must be None, Wants(label), Opposite(), or a function of y that returns one class "
        f"per row; got {describe(goal)}.{hint}"
    )


def class_goals(goal: Any, m: int, z: Any, y: Any, classes: Labels) -> Vector:
    """Goals of rows as the numbers -1 and 1.

    Parameters
    ----------
    goal : callable or None
        The goal that a model holds; without any, everyone wants the second class.
    m : int
        Number of rows.
    z : array-like, callable or None
        The class each provider would like, or a goal, in place of the model's.
    y : array-like or None
        True labels, which goals other than Wants follow from.
    classes : ndarray of shape (2,)
        The two classes.
    """
    name, wish = ("goal", goal) if z is None else ("z", z)
    if wish is None:
        return np.ones(m)
    if not is_goal(wish):
        return signs(wish, classes, name, m)
    if isinstance(wish, Wants):
        try:
            return np.full(m, signs([wish.label], classes, name)[0])
        except ValueError:
            raise ValueError(
                f"{name}={wish!r} wants a class that there is not; there are {_listed(classes)}."
            ) from None
    if y is None:
        raise ValueError(
            f"y is needed, because {name}={wish!r} is a function of the labels; got None. Pass "
            "y=, or z=, one class per row."
        )
    own = signs(y, classes, "y", m)
    if isinstance(wish, Opposite):
        return -own
    # The goal gets a copy: a function that works in place must not change the labels.
    wanted = wish(np.array(y))
    try:
        return signs(wanted, classes, "z", m)
    except ValueError as error:
        raise ValueError(
            f"{name} must return one class per row; {wish!r} did not: {error}"
        ) from None


def _listed(classes: Labels) -> str:
    shown = [describe(one) for one in classes[:5]]
    return " and ".join(shown) if len(classes) <= 2 else ", ".join(shown)
