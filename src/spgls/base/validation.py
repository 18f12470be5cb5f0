"""Checks of what users pass in; each error names the argument, what was given and what to do."""

from __future__ import annotations

import math
from datetime import date, timedelta
from numbers import Integral, Real
from typing import Any, cast

import numpy as np
import scipy.sparse as sp

from spgls.base.devices import Place, on_device, on_host, place_of
from spgls.base.far_array import LONG, FarArray
from spgls.base.types import Vector

__all__ = [
    "as_numbers",
    "check_callback",
    "check_choice",
    "check_cost",
    "check_count",
    "check_flag",
    "check_number",
    "check_rng",
    "check_row_numbers",
    "check_strength",
    "check_vector",
    "check_weight",
    "column_label",
    "describe",
    "refuse_lazy",
]


#: What makes a table of a query, in Spark, Ibis and polars.
_COMPUTES = ("toPandas", "to_pandas", "collect")


def describe(value: Any) -> str:
    """How a value is named in an error message."""
    if isinstance(value, type):
        return f"the class {value.__name__}, not an object such as {value.__name__}()"
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | complex | str):
        text = repr(value)
        return text if len(text) <= 60 else f"{text[:57]}..."
    shape = getattr(value, "shape", None)
    name = type(value).__name__
    article = "an" if name[0].lower() in "aeiou" else "a"
    return f"{name} of shape {shape}" if isinstance(shape, tuple) else f"{article} {name}"


def check_number(
    value: Any,
    name: str,
    *,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
    infinite: bool = False,
    advice: str = "",
) -> float:
    """Return a real number within its limits, finite unless ``infinite`` allows ``inf``."""
    number = _scalar(value)
    if number is not None and (math.isfinite(number) or (infinite and number == math.inf)):
        low = (above is not None and number <= above) or (
            at_least is not None and number < at_least
        )
        high = (below is not None and number >= below) or (at_most is not None and number > at_most)
        if not low and not high:
            return number
    limits = [
        f" {words} {limit:g}"
        for words, limit in (
            ("above", above),
            ("of at least", at_least),
            ("below", below),
            ("of at most", at_most),
        )
        if limit is not None
    ]
    kind = "a number" if infinite else "a finite number"
    message = f"{name} must be {kind}{' and'.join(limits)}; got {describe(value)}."
    if advice:
        message = f"{message} {advice}"
    raise TypeError(message) if number is None else ValueError(message)


def check_count(value: Any, name: str) -> int | None:
    """Return a positive whole number or None."""
    if value is None:
        return None
    message = f"{name} must be a positive whole number or None; got {describe(value)}."
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(message)
    if value < 1:
        raise ValueError(message)
    return int(value)


def check_rng(value: Any) -> np.random.Generator | None:
    """Return a random generator from a seed or a generator, or None."""
    if value is None or isinstance(value, np.random.Generator):
        return value
    message = (
        "rng must be None, a seed (a whole number of at least 0) or a numpy Generator; "
        f"got {describe(value)}."
    )
    if isinstance(value, np.random.RandomState):
        raise TypeError(f"{message} Pass numpy.random.default_rng(seed).")
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(message)
    if value < 0:
        raise ValueError(message)
    return np.random.default_rng(int(value))


def check_callback(value: Any) -> Any:
    """Return something to call, or None."""
    if value is not None and not callable(value):
        raise TypeError(
            "callback must be None or a function of one Step, such as print; "
            f"got {describe(value)}."
        )
    return value


def check_flag(value: Any, name: str) -> bool:
    """Return a truth value."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False; got {describe(value)}.")
    return bool(value)


def check_choice(value: Any, name: str, choices: tuple[str, ...]) -> str:
    """Return one of a few names."""
    if isinstance(value, str) and value in choices:
        return value
    wrong = ValueError if isinstance(value, str) else TypeError
    raise wrong(f"{name} must be one of {', '.join(choices)}; got {describe(value)}.")


def check_vector(
    value: Any, name: str, length: int | None, per: str, *, infinite: bool = False
) -> Vector:
    """Return a float64 vector with one entry per ``per`` ("row of X", "column of X").

    A length of None accepts any but zero; entries are finite unless ``infinite`` allows ``inf``.
    """
    array = _one_dimensional(value, name, length, per)
    fine = ~np.isnan(array) if infinite else np.isfinite(array)
    if not fine.all():
        wrong = ~fine
        at = int(np.flatnonzero(wrong)[0])
        advice = "Drop or impute such rows first" if "row" in per else "Replace it by a number"
        allowed = "a number" if infinite else "finite"
        raise ValueError(f"{name} must be {allowed}; entry {at} is {array[at]}. {advice}.")
    return array


def check_row_numbers(value: Any, name: str, length: int, place: Place | None = None) -> Vector:
    """Return one number per row of X, as :func:`check_vector` does.

    With data on a device and many rows they are there, or brought there, and stay.

    Parameters
    ----------
    value : array-like of shape (length,)
        What was given.
    name : str
        How errors call it.
    length : int
        Number of rows.
    place : Place, optional
        Where the data is, if on a device.
    """
    if place is None or length < LONG:
        return check_vector(value, name, length, "row of X")
    far: Any = _there(value, length, place)
    if far is None:
        host = _one_dimensional(value, name, length, "row of X")
        far = FarArray(place, place.put(host), host)
    if not np.isfinite(far).all():
        check_vector(value, name, length, "row of X")
    return cast(Vector, far)


def _there(value: Any, length: int, place: Place) -> FarArray | None:
    """Numbers that are on the device already, one per row, in double precision."""
    if isinstance(value, FarArray):
        return value
    if not on_device(value) or place_of(value) != place or tuple(value.shape) != (length,):
        return None
    kind = str(value.dtype).rpartition(".")[2]
    if kind not in ("float64", "float32"):
        return None
    own = value
    if place.library == "torch":
        own = value.detach().contiguous()
    elif place.library == "cupy":
        own = place.xp.ascontiguousarray(value)
    if kind == "float32":
        own = place.xp.astype(own, place.xp.float64)
    return FarArray(place, own)


def check_weight(value: Any, length: int, place: Place | None = None) -> Vector | None:
    """Return weights, or None where all are one; where the data is, as the numbers of rows."""
    if value is None:
        return None
    weight = check_row_numbers(value, "sample_weight", length, place)
    if (weight < 0.0).any():
        at = int(np.flatnonzero(weight < 0.0)[0])
        raise ValueError(
            f"sample_weight must not be negative; entry {at} is {weight[at]}. "
            "Give rows that should not count a weight of zero."
        )
    if not weight.any():
        raise ValueError(
            "sample_weight must be positive for at least one row; got zero for every row."
        )
    return weight


def check_cost(value: Any, columns: int, per: str = "column of X") -> Vector | None:
    """Return costs per column, ``inf`` for immutable ones, or None where all are one."""
    if value is None:
        return None
    array = _one_dimensional(value, "feature_cost", columns, per)
    wrong = ~(array > 0.0)
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"feature_cost must be positive, inf for a feature that cannot be changed; "
            f"entry {at} is {array[at]}."
        )
    return array


def check_strength(value: Any, rows: int, per: str = "row of X") -> float | Vector:
    """Return gamma as one positive number or one per row; ``inf`` is an honest provider."""
    wanted = f"gamma must be one positive number or one per {per}, {rows}, inf for honest providers"
    number = _scalar(value)
    if number is not None:
        if not number > 0.0:
            raise ValueError(f"{wanted}; got {describe(value)}.")
        return number
    if value is None or isinstance(value, bool | np.bool_ | str | bytes | dict):
        raise TypeError(f"{wanted}; got {describe(value)}.")
    if getattr(value, "dtype", None) == np.bool_:
        raise TypeError(f"{wanted}; got {describe(value)} of truth values.")
    array = _one_dimensional(value, "gamma", rows, per)
    if not (array > 0.0).all():
        at = int(np.flatnonzero(~(array > 0.0))[0])
        raise ValueError(f"{wanted}; entry {at} is {array[at]}.")
    return array


def as_numbers(value: Any, name: str, what: str = "an array of numbers") -> np.ndarray:
    """Return an array of real numbers of any width, refusing all that is not one as it stands.

    NumPy would read the text "1" as a number, None as missing, and forget the mask of an array.
    """
    if type(value) is np.ndarray and value.dtype.kind in "biuf":
        return value
    if value is None or isinstance(value, str | bytes | dict | set | frozenset):
        raise TypeError(f"{name} must be {what}; got {describe(value)}.")
    refuse_lazy(value, name, what)
    if hasattr(value, "__next__"):
        raise TypeError(f"{name} must be {what}; got {describe(value)}. Pass list({name}).")
    if np.ma.is_masked(value):
        raise TypeError(
            f"{name} must be {what}; got {describe(value)} with masked entries. "
            "Drop such rows, or impute them with .filled(), first."
        )
    try:
        array = np.asarray(on_host(value))
    except Exception as error:
        if hasattr(value, "__array__"):
            # A tensor on another device, or one with a gradient, says what to do about it.
            raise TypeError(
                f"{name} must be {what}; got {describe(value)}, which NumPy cannot read: {error}"
            ) from None
        if not isinstance(error, ValueError):
            raise
        raise ValueError(
            f"{name} must be {what}; got {describe(value)} whose entries differ in length."
        ) from None
    if array.dtype.kind in "biuf":
        return array
    if array.dtype.kind == "c":
        raise TypeError(
            f"{name} must be {what}; got {describe(value)} of complex numbers. Pass its real part."
        )
    if array.dtype.kind == "O" and not any(isinstance(entry, str | bytes) for entry in array.flat):
        try:
            return array.astype(np.float64)
        except (TypeError, ValueError, OverflowError):
            pass
    entry, where = _culprit(value, array)
    raise TypeError(f"{name} must be {what}; got {describe(value)}{where}. {_remedy(entry)}")


def refuse_lazy(value: Any, name: str, what: str = "an array of numbers") -> None:
    """Raise an error where a query was given, and not yet its result."""
    if hasattr(value, "__array__"):
        return
    for verb in _COMPUTES:
        if callable(getattr(value, verb, None)):
            raise TypeError(
                f"{name} must be {what}; got {describe(value)}, which has not been computed. Pass "
                f"{name}.{verb}()."
            )


def column_label(table: Any, column: int) -> Any:
    """Label of a data frame's column, or its number where columns have no labels."""
    labels = getattr(table, "columns", None)
    return column if labels is None else labels[column]


def _scalar(value: Any) -> float | None:
    """Return a real number as a float; None if it is anything else, truth values included."""
    if type(value) is float:
        return value
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    real = not isinstance(value, bool | np.bool_) and isinstance(value, Real)
    if not real:
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _one_dimensional(value: Any, name: str, length: int | None, per: str) -> Vector:
    """Return a float64 vector of the right length, finite or not."""
    if sp.issparse(value):
        raise TypeError(
            f"{name} must be a dense array; got {describe(value)}. Pass {name}.toarray().ravel()."
        )
    array = as_numbers(value, name).astype(np.float64, copy=False)
    wanted = f"{name} must have one dimension, with one entry per {per}"
    if array.ndim != 1:
        hint = ""
        if array.ndim == 2 and 1 in array.shape:
            source = name if isinstance(value, np.ndarray) else f"numpy.asarray({name})"
            hint = f" Pass {source}.ravel()."
        elif array.ndim == 2 and name in ("y", "z"):
            hint = f" A model has one output: pass one column of {name}, and fit a model for each."
        raise ValueError(f"{wanted}; got shape {array.shape}.{hint}")
    if length is None and array.shape[0] == 0:
        raise ValueError(f"{wanted}; got none.")
    if length is not None and array.shape[0] != length:
        raise ValueError(f"{name} must have one entry per {per}, {length}; got {array.shape[0]}.")
    return array


def _culprit(value: Any, array: np.ndarray) -> tuple[Any, str]:
    """The first entry that is not a number, and where it stands."""
    for at, entry in np.ndenumerate(array):
        # NumPy takes a duration for a whole number.
        number = isinstance(entry, Real | np.bool_) and not isinstance(entry, np.timedelta64)
        if number or entry is None:
            continue
        if array.ndim == 1:
            return entry, f" whose entry {at[0]} is {describe(entry)}"
        if array.ndim == 2:
            column = column_label(value, at[1])
            return entry, f" whose row {at[0]}, column {column!r} is {describe(entry)}"
        return entry, ""
    return None, ""


def _remedy(entry: Any) -> str:
    """What to do about an entry that is not a number."""
    if isinstance(entry, str | bytes):
        return "Encode text and categories as numbers first, for example with OneHotEncoder."
    if isinstance(entry, np.datetime64 | np.timedelta64 | date | timedelta):
        return "Turn dates and durations into numbers first, such as days since the first date."
    if type(entry).__name__ == "NAType":
        return "Drop or impute missing values first."
    if callable(entry):
        return "Pass the numbers that it returns, such as goal(y)."
    return "Pass numbers only."
