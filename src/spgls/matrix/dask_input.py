"""What of Dask's collections can be data: one column of chunks of rows, of known lengths."""

from __future__ import annotations

import math
from typing import Any

from spgls.base.validation import describe

__all__ = ["check_array", "check_lazy_vector", "is_dask", "is_dask_frame", "is_lazy"]


#: Where Dask's collections are defined; frames that plan their queries were apart until 2025.
_HOMES = ("dask", "dask_expr")


def is_dask(X: Any) -> bool:
    """Whether something is an array or a frame of Dask, which need not be loaded to tell."""
    kind = type(X)
    return kind.__module__.split(".")[0] in _HOMES and hasattr(kind, "__dask_graph__")


def is_dask_frame(X: Any) -> bool:
    """Whether something is a data frame of Dask."""
    return is_dask(X) and hasattr(X, "to_dask_array")


def is_lazy(value: Any) -> bool:
    """Whether something is a Dask array with chunks of known lengths, to be computed later."""
    chunks = getattr(value, "chunks", None) if is_dask(value) else None
    return chunks is not None and not any(math.isnan(n) for some in chunks for n in some)


def check_lazy_vector(value: Any, name: str, length: int) -> Any:
    """Return a Dask array with one number per row of X, not computed."""
    if value.ndim != 1 or value.shape[0] != length:
        raise ValueError(
            f"{name} must have one dimension, with one entry per row of X, {length}; got shape "
            f"{tuple(value.shape)}."
        )
    if value.dtype.kind not in "biuf":
        raise TypeError(f"{name} must hold real numbers; got a Dask array of type {value.dtype}.")
    return value


def check_array(X: Any, name: str) -> None:
    """Refuse a Dask array that is not a table of numbers in chunks of whole rows.

    Parameters
    ----------
    X : dask.array.Array
        The array; nothing of it is computed.
    name : str
        How errors call it.
    """
    if not is_dask(X) or not hasattr(X, "chunks"):
        raise TypeError(f"{name} must be a Dask array; got {describe(X)}.")
    if X.ndim != 2:
        hint = f" Pass {name}.reshape(-1, 1) if it is one column." if X.ndim == 1 else ""
        raise ValueError(f"{name} must have two dimensions; got {X.ndim}.{hint}")
    if X.dtype.kind not in "biuf":
        raise TypeError(
            f"{name} must hold real numbers; got a Dask array of type {X.dtype}. Encode text and "
            f"categories as numbers first, and convert with {name}.astype(float)."
        )
    rows, columns = X.chunks
    if any(math.isnan(length) for length in (*rows, *columns)):
        raise ValueError(
            f"{name} must know how many rows each chunk has; {sum(map(math.isnan, rows))} of "
            f"{len(rows)} chunks do not say. Call {name}.compute_chunk_sizes() first, or make it "
            "with frame.to_dask_array(lengths=True)."
        )
    if len(columns) > 1:
        raise ValueError(
            f"{name} must have whole rows in each chunk; its columns are cut into {len(columns)} "
            f"pieces, {columns[0]} of {sum(columns)} columns in the first. Pass "
            f"{name}.rechunk({{1: -1}})."
        )
    if not sum(rows) or not sum(columns):
        raise ValueError(
            f"{name} must have at least one row and one column; got shape {tuple(X.shape)}."
        )
    if 0 in rows:
        raise ValueError(
            f"{name} must have rows in every chunk; chunk {rows.index(0)} is the first of "
            f"{rows.count(0)} of {len(rows)} that have none. Pass "
            f"{name}.rechunk((tuple(n for n in {name}.chunks[0] if n), -1)), or of a data frame "
            "its frame.repartition(npartitions=...)."
        )
