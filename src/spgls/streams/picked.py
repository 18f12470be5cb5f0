"""Which columns of a source are features, and which are labels, goals and weights."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

import numpy as np

from spgls.base.validation import describe
from spgls.streams.source import Columns, Source

__all__ = ["pick_column", "pick_features"]


def pick_column(source: Source, column: Any, name: str) -> int:
    """Number of a column that is given by name or number."""
    names = source.names
    if isinstance(column, bool) or not isinstance(column, str | int | np.integer):
        raise TypeError(
            f"{name} must be the name or number of a column; got {describe(column)}. Labels, goals "
            "and functions of labels themselves are passed to solve or fit."
        )
    if isinstance(column, str):
        if names is None:
            raise ValueError(
                f"{name} must be the number of a column, because columns of this source have no "
                f"names; got {column!r}."
            )
        if column not in names:
            near = get_close_matches(column, names, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            shown = ", ".join(map(repr, names[:8])) + (", ..." if len(names) > 8 else "")
            raise ValueError(f"{name} must be one of the columns {shown}; got {column!r}.{hint}")
        return names.index(column)
    width = source.width
    if not -width <= column < width:
        raise ValueError(
            f"{name} must be the number of a column, from 0 to {width - 1}; got {column}."
        )
    return int(column) % width


def pick_features(source: Source, columns: Any, aside: dict[str, int]) -> Columns:
    """Numbers of the features, as a slice where they lie together."""
    if len(set(aside.values())) < len(aside):
        raise ValueError(f"{', '.join(aside)} must be different columns of the source.")
    if columns is None:
        chosen = [at for at in range(source.width) if at not in aside.values()]
    else:
        if isinstance(columns, str | bytes) or not isinstance(columns, Iterable):
            raise TypeError(f"columns must be a list of columns; got {describe(columns)}.")
        chosen = [pick_column(source, column, f"columns[{i}]") for i, column in enumerate(columns)]
        if len(set(chosen)) < len(chosen):
            raise ValueError("columns must name each column once.")
        both = [role for role, at in aside.items() if at in chosen]
        if both:
            raise ValueError(f"columns must not name the column of {both[0]}, which is no feature.")
    if not chosen:
        raise ValueError("source must have at least one column besides labels, goals and weights.")
    if chosen == list(range(chosen[0], chosen[-1] + 1)):
        return slice(chosen[0], chosen[-1] + 1)
    return np.array(chosen, dtype=np.intp)
