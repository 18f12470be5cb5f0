"""Columns of data frames: costs given by name, and results in the container they came in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import numpy as np

from spgls.base.types import Array, Vector
from spgls.base.validation import check_cost, describe

__all__ = [
    "closest_keys",
    "column_names",
    "columns_called",
    "data_frame",
    "in_container_of",
    "index_names",
    "matching_columns",
    "nameless",
    "resolve_cost",
]

_EXACT, _AFTER_PREFIX, _GROUP = range(3)


def column_names(X: Any) -> list[str] | None:
    """Return the names of a data frame's columns; None where they have none."""
    columns = getattr(X, "columns", None)
    if columns is None:
        return None
    names = list(columns)
    return names if all(isinstance(name, str) for name in names) else None


def index_names(vector: Any) -> list[str] | None:
    """Return the names of a series' entries; None where they have none."""
    index = getattr(vector, "index", None)
    # The index of a list is a method.
    names = [] if index is None or callable(index) else list(index)
    return names if names and all(isinstance(name, str) for name in names) else None


def data_frame(columns: Mapping[str, Any]) -> Any:
    """Return columns as a pandas data frame."""
    try:
        return import_module("pandas").DataFrame(columns)
    except ImportError:
        message = "to_dataframe needs pandas: pip install pandas. Or use to_dict()."
        raise ImportError(message) from None


def in_container_of(X: Any, values: Array) -> Any:
    """Return values in the container of ``X``: an array, or a data frame with its labels."""
    # A frame in pieces, such as Dask's, is not made from an array.
    if not hasattr(X, "columns") or hasattr(X, "compute"):
        return values
    if hasattr(X, "index"):
        return type(X)(values, columns=X.columns, index=X.index)
    return type(X)(values, schema=list(X.columns)) if hasattr(X, "schema") else values


def resolve_cost(
    feature_cost: Any,
    columns: int,
    names: Sequence[str] | None,
    table: str = "X",
    part: str = "column",
) -> Vector | None:
    """Return costs per column from an array, or from a mapping by column name.

    Parameters
    ----------
    feature_cost : array-like, mapping or None
        A name means the column of exactly that name; else those it names after a ``__``, as a
        ColumnTransformer writes them; else those that begin with it and ``_``, as one-hot encoders
        write them. Of several names that mean one column the closest wins. Columns that nobody
        names cost one.
    columns : int
        Number of columns.
    names : list of str or None
        Their names.
    table, part : str
        How errors call the data, and what of it has a name.
    """
    if not isinstance(feature_cost, Mapping):
        return check_cost(feature_cost, columns, f"{part} of {table}")
    prices = {key: _price(key, value) for key, value in feature_cost.items()}
    if not prices:
        return None
    if names is None:
        raise ValueError(nameless(table, part))
    cost = np.ones(columns)
    for at, key in enumerate(closest_keys(prices, names)):
        if key is not None:
            cost[at] = prices[key]
    return cost


def closest_keys(keys: Iterable[str], names: Sequence[str]) -> list[str | None]:
    """Of several names, the one that means each column most closely; None where none does."""
    best: list[tuple[int, int, str] | None] = [None] * len(names)
    for key in keys:
        level, hits = matching_columns(key, names)
        for at in hits:
            closeness, so_far = (level, -len(key)), best[at]
            if so_far is None or closeness < so_far[:2]:
                best[at] = (*closeness, key)
    return [None if one is None else one[2] for one in best]


def nameless(table: str, part: str, told: str = "feature_cost", otherwise: str = "") -> str:
    """What to do where something is given by name and data has no names."""
    if part != "column":
        return (
            f"{told} gives costs by name, but the entries of {table} have none. Pass a "
            f"pandas Series with names as its index, or one cost per {part}."
        )
    return (
        f"{told} gives costs by column name, but the columns of {table} have no names. Pass "
        "a data frame: behind a transformer, call its set_output(transform='pandas'), with "
        f"OneHotEncoder(sparse_output=False). {otherwise or 'Or pass one cost per column'}; sparse "
        "data has no names, but the fitted transformer's get_feature_names_out() tells the order "
        "of its columns."
    )


def _price(key: Any, value: Any) -> float:
    """Check one entry of a mapping."""
    if not isinstance(key, str):
        raise TypeError(
            f"feature_cost must have column names as keys; got the key {describe(key)}. "
            "Pass an array with one cost per column instead."
        )
    try:
        cost = check_cost([value], 1)
    except (TypeError, ValueError):
        raise _refusal(value)(
            f"feature_cost[{key!r}] must be a positive number, inf for a feature that cannot be "
            f"changed; got {describe(value)}."
        ) from None
    assert cost is not None
    return float(cost[0])


def _refusal(value: Any) -> type[Exception]:
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    return ValueError if number else TypeError


def columns_called(key: str, names: Sequence[str], argument: str) -> list[int]:
    """Return the columns that a name means, by the rules of :func:`resolve_cost`."""
    return matching_columns(key, names, argument)[1]


def matching_columns(
    key: str, names: Sequence[str], argument: str = "feature_cost"
) -> tuple[int, list[int]]:
    """Columns that a name means, and how closely it does; the argument is who says the name."""
    tests: tuple[Callable[[str], bool], ...] = (
        lambda name: name == key,
        lambda name: key in _tails(name),
        lambda name: any(tail.startswith(f"{key}_") for tail in (name, *_tails(name))),
    )
    for level, test in zip((_EXACT, _AFTER_PREFIX, _GROUP), tests, strict=True):
        hits = [at for at, name in enumerate(names) if test(name)]
        if hits:
            return level, hits
    short = {tail for name in names for tail in (name, *_tails(name))}
    near = get_close_matches(key, sorted(short), n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    shown = ", ".join(map(repr, names[:8])) + (", ..." if len(names) > 8 else "")
    raise ValueError(f"{argument} names {key!r}, which no column is called: {shown}.{hint}")


def _tails(name: str) -> Iterator[str]:
    """What follows each ``__`` of a name."""
    at = name.find("__")
    while at >= 0:
        yield name[at + 2 :]
        at = name.find("__", at + 2)
