"""Checks of what users pass in; each error names the argument, what was given and what to do."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp

from spgls._types import Vector

__all__ = [
    "check_choice",
    "check_cost",
    "check_flag",
    "check_number",
    "check_strength",
    "check_vector",
    "check_weight",
    "describe",
]


def describe(value: Any) -> str:
    """How a value is named in an error message."""
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    shape = getattr(value, "shape", None)
    name = type(value).__name__
    return f"{name} of shape {tuple(shape)}" if isinstance(shape, tuple) else f"a {name}"


def check_number(
    value: Any, name: str, *, above: float | None = None, at_least: float | None = None
) -> float:
    """Return a finite real number within its limits."""
    if isinstance(value, bool) or not isinstance(value, Real | np.number) or np.iscomplexobj(value):
        raise TypeError(f"{name} must be a number; got {describe(value)}.")
    number = float(value)
    limit = ""
    if above is not None:
        limit = f" above {above:g}"
    if at_least is not None:
        limit = f" of at least {at_least:g}"
    low = (above is not None and number <= above) or (at_least is not None and number < at_least)
    if not math.isfinite(number) or low:
        raise ValueError(f"{name} must be a finite number{limit}; got {value!r}.")
    return number


def check_count(value: Any, name: str) -> int | None:
    """Return a positive whole number or None."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be a positive whole number or None; got {describe(value)}.")
    if value < 1:
        raise ValueError(f"{name} must be a positive whole number or None; got {value!r}.")
    return int(value)


def check_flag(value: Any, name: str) -> bool:
    """Return a truth value."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False; got {describe(value)}.")
    return bool(value)


def check_choice(value: Any, name: str, choices: tuple[str, ...]) -> str:
    """Return one of a few names."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be one of {', '.join(choices)}; got {describe(value)}.")
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}; got {value!r}.")
    return value


def check_vector(value: Any, name: str, length: int, per: str) -> Vector:
    """Return a finite float64 vector with one entry per ``per`` ("row of X", "column of X")."""
    array = _numeric(value, name)
    if array.ndim != 1:
        hint = f" Pass {name}.ravel()." if array.ndim == 2 and 1 in array.shape else ""
        raise ValueError(f"{name} must have one dimension; got shape {array.shape}.{hint}")
    if array.shape[0] != length:
        raise ValueError(f"{name} must have one entry per {per}, {length}; got {array.shape[0]}.")
    if not np.isfinite(array).all():
        at = int(np.flatnonzero(~np.isfinite(array))[0])
        raise ValueError(
            f"{name} must be finite; entry {at} is {array[at]}. Drop or impute such rows first."
        )
    return array


def check_weight(value: Any, length: int) -> Vector | None:
    """Return weights, or None where all are one."""
    if value is None:
        return None
    weight = check_vector(value, "sample_weight", length, "row of X")
    if (weight < 0.0).any():
        at = int(np.flatnonzero(weight < 0.0)[0])
        raise ValueError(f"sample_weight must not be negative; entry {at} is {weight[at]}.")
    if not weight.any():
        raise ValueError("sample_weight is zero for every row; at least one row must count.")
    return weight


def check_cost(value: Any, columns: int) -> Vector | None:
    """Return costs per column, ``inf`` for immutable ones, or None where all are one."""
    if value is None:
        return None
    array = _numeric(value, "feature_cost")
    if array.ndim != 1 or array.shape[0] != columns:
        raise ValueError(
            f"feature_cost must have one entry per column of X, {columns}; got shape {array.shape}."
        )
    wrong = ~(array > 0.0)
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"feature_cost must be positive, inf for a feature that cannot be changed; "
            f"entry {at} is {array[at]}."
        )
    return array


def check_strength(value: Any, rows: int) -> float | Vector:
    """Return gamma as one positive number or one per row; ``inf`` is an honest provider."""
    if isinstance(value, Real) and not isinstance(value, bool):
        gamma = float(value)
        if not gamma > 0.0:
            raise ValueError(f"gamma must be positive (inf: honest); got {value!r}.")
        return gamma
    array = _numeric(value, "gamma")
    if array.ndim == 0:
        return check_strength(float(array), rows)
    if array.shape != (rows,):
        raise ValueError(
            f"gamma must be one positive number or one per row of X, {rows}; "
            f"got shape {array.shape}."
        )
    if not (array > 0.0).all():
        at = int(np.flatnonzero(~(array > 0.0))[0])
        raise ValueError(f"gamma must be positive (inf: honest); entry {at} is {array[at]}.")
    return array


def _numeric(value: Any, name: str) -> Vector:
    """Return a float64 array, refusing text, objects, complex numbers and sparse containers."""
    if value is None or isinstance(value, str | bytes | dict):
        raise TypeError(f"{name} must be an array of numbers; got {describe(value)}.")
    if sp.issparse(value):
        raise TypeError(f"{name} must be a dense array; got {describe(value)}. Use .toarray().")
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "biuf":
            if array.dtype.kind != "O":
                raise TypeError
            array = array.astype(np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"{name} must be an array of numbers; got {describe(value)}. "
            "Encode text and categories as numbers first."
        ) from None
    return array.astype(np.float64, copy=False)
