"""Groups of columns, such as the dummies of one category, given by name or by position."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any, TypeAlias

import numpy as np

from spgls.base.frames import columns_called
from spgls.base.validation import describe

__all__ = ["ColumnGroups", "read_column_groups"]

#: A column or a one-hot group by name, a column by position, or several of either.
_Group: TypeAlias = str | int | Iterable[str | int]
#: Groups of columns, with names of their own or without.
ColumnGroups: TypeAlias = Mapping[str, _Group] | Iterable[_Group]

_WANTED = (
    "a list of column names, names of one-hot groups, positions or lists of these, or a mapping "
    "from names to them"
)


def read_column_groups(
    groups: Any, columns: int, names: Sequence[str] | None, argument: str = "groups"
) -> dict[str, np.ndarray]:
    """Return the columns of each group, by its name.

    Parameters
    ----------
    groups : mapping, sequence or None
        From names to columns, or the groups themselves: a name means the columns that it means in a
        mapping of costs, a number is a position, a list holds several of either. None stands for
        every column by itself.
    columns : int
        Number of columns.
    names : list of str or None
        Their names.
    argument : str
        How errors call the groups.
    """
    if groups is None:
        alone: dict[str, np.ndarray] = {}
        for at in range(columns):
            name = _label(at, names)
            alone[f"{name} (column {at})" if name in alone else name] = np.array([at])
        return alone
    if isinstance(groups, str | bytes) or not isinstance(groups, Iterable):
        raise TypeError(f"{argument} must be {_WANTED}; got {describe(groups)}.")
    entries = list(groups.items()) if isinstance(groups, Mapping) else [(None, g) for g in groups]
    if not entries:
        raise ValueError(
            f"{argument} must have at least one group; got none. Leave it out for "
            "every column by itself."
        )
    found: dict[str, np.ndarray] = {}
    for key, group in entries:
        if key is not None and not isinstance(key, str):
            raise TypeError(f"{argument} must have names as keys; got the key {describe(key)}.")
        held = _columns(group, columns, names, argument)
        name = key if key is not None else _name(group, held, names)
        if name in found:
            raise ValueError(
                f"{argument} has two groups of the name {name!r}; pass a mapping from "
                "different names to columns."
            )
        found[name] = np.array(held)
    return found


def _columns(group: Any, columns: int, names: Sequence[str] | None, argument: str) -> list[int]:
    """Columns of one group, in order."""
    if isinstance(group, str):
        if names is None:
            raise ValueError(
                f"{argument} names {group!r}, but the columns of X have no names. Pass a data "
                "frame, or positions of columns."
            )
        return columns_called(group, names, argument)
    if isinstance(group, Integral) and group is not True and group is not False:
        at = int(group)
        if not 0 <= at < columns:
            raise ValueError(
                f"{argument} has the position {at}; X has {columns} columns, from 0 to "
                f"{columns - 1}."
            )
        return [at]
    if not isinstance(group, Iterable) or isinstance(group, bytes | Mapping):
        raise TypeError(f"{argument} must be {_WANTED}; got {describe(group)} in it.")
    held = {at for part in group for at in _columns(part, columns, names, argument)}
    if not held:
        raise ValueError(f"{argument} has a group without columns; leave it out.")
    return sorted(held)


def _name(group: Any, held: list[int], names: Sequence[str] | None) -> str:
    """A name for a group that was given none."""
    if isinstance(group, str):
        return group
    return ", ".join(_label(at, names) for at in held)


def _label(at: int, names: Sequence[str] | None) -> str:
    return f"x{at}" if names is None else names[at]
