"""What happens where a chunk is: the products of data in memory, and sums of their results.

Everything here is sent to workers by name, so they need this version of spgls.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from spgls.base.types import Array, Vector
from spgls.base.validation import describe
from spgls.matrix.blocks import Longest, longest_of, longest_of_any
from spgls.matrix.convert import as_matrix, non_finite
from spgls.matrix.factor import few_rows_with, triangle
from spgls.matrix.pieces import Rows
from spgls.matrix.protocol import Matrix
from spgls.matrix.row_step import RowStep
from spgls.matrix.squares import column_squares
from spgls.matrix.work import Work

__all__ = [
    "Look",
    "Place",
    "Repeated",
    "added",
    "added_moments",
    "as_repeated",
    "chunk_apply",
    "chunk_columns",
    "chunk_cross",
    "chunk_cross_and_squares",
    "chunk_gram",
    "chunk_look",
    "chunk_moment",
    "chunk_non_finite",
    "chunk_predictions",
    "chunk_rows",
    "chunk_squares",
    "chunk_triangle",
    "chunk_typical",
    "chunk_values",
    "first_found",
    "on_chunk",
    "own_version",
    "stacked_triangles",
]


class Place(NamedTuple):
    """Where a chunk belongs, and what is expected of it."""

    number: int
    start: int
    shape: tuple[int, int]
    sparse: bool | None
    version: str


@dataclass(frozen=True, eq=False)
class Repeated:
    """Rows that are all the same, told once."""

    row: Array
    count: int


class Look(NamedTuple):
    """What one chunk says of itself: its kind, its amount of work, its first rows.

    ``typical`` is a row near its mean, None where zero serves best.
    """

    sparse: bool
    dtype: Any
    work: Work
    head: Array
    typical: Vector | None


def on_chunk(place: Place, work: Callable[..., Any], values: Any, *given: Any) -> Any:
    """Do some work on a chunk, after a look at whether it is what it should be."""
    if place.version != own_version():
        raise RuntimeError(
            f"workers must have the version of spgls that asks, {place.version}; this one has "
            f"{own_version()}. Install the same version on all workers."
        )
    name = f"chunk {place.number} of X"
    matrix = as_matrix(values, name, check_finite=False)
    if matrix.shape != place.shape:
        raise ValueError(
            f"{name} must have shape {place.shape}, as X says; it has {matrix.shape}. Call "
            "X.compute_chunk_sizes(), or make X anew."
        )
    if place.sparse is not None and sp.issparse(values) is not place.sparse:
        kinds = ("dense", "sparse")
        raise TypeError(
            f"X must have chunks of one kind; chunk 0 is {kinds[place.sparse]}, and {name} is "
            f"{describe(values)}. Pass X.map_blocks(scipy.sparse.csr_array), or all chunks dense."
        )
    # Entries that are not finite are found in what comes of them.
    with np.errstate(all="ignore"):
        return work(matrix, *(_spread(one) for one in given))


def own_version() -> str:
    """Version of spgls in this process."""
    return str(import_module("spgls").__version__)


def _spread(given: Any) -> Any:
    if not isinstance(given, Repeated):
        return given
    return np.repeat(given.row[None], given.count, axis=0)


def as_repeated(rows: Array) -> Any:
    """Rows as they are, or told once if they are all the same."""
    same = len(rows) > 1 and bool((rows == rows[0]).all())
    return Repeated(np.array(rows[0]), len(rows)) if same else rows


def chunk_look(matrix: Matrix, count: int) -> Look:
    """What a chunk says of itself."""
    _, head = next(iter(matrix.row_panels(count)))
    sparse = sp.issparse(getattr(matrix, "values", None))
    typical = matrix.typical_row(None)
    return Look(sparse, matrix.dtype, matrix.work, np.array(head), typical)


def chunk_apply(matrix: Matrix, v: Array, shift: Vector | None) -> Array:
    """``A v``."""
    return matrix.apply(v, shift)


def chunk_cross(matrix: Matrix, shift: Vector | None, u: Array) -> Array:
    """``A' u``."""
    return matrix.cross(u, shift)


def chunk_cross_and_squares(
    matrix: Matrix, shift: Vector | None, u: Array, weight: Vector | None
) -> tuple[Array, Vector]:
    """``A' u`` and squared lengths of the columns."""
    return matrix.cross(u, shift), column_squares(matrix, weight, shift)


def chunk_gram(
    matrix: Matrix,
    v: Array,
    shift: Vector | None,
    along: Array,
    row: Vector | None,
    *basis: Array,
) -> tuple[Array, Array]:
    """``A' M A v``, and what was left along the columns of a basis, which come in parts."""
    if row is None and not basis:
        return matrix.gram(v, shift), np.zeros(0)
    step = RowStep(row, basis, along, np.zeros_like(along))
    return matrix.gram(v, shift, step), step.left


def chunk_moment(
    matrix: Matrix, shift: Vector | None, extra: Array, weight: Vector | None
) -> tuple[Array, Longest]:
    """Second moments of the rows and what stands beside them, and what they were added up from."""
    return matrix.moment(extra, weight, shift), longest_of(matrix)


def chunk_squares(matrix: Matrix, shift: Vector | None, weight: Vector | None) -> Vector:
    """Squared lengths of the columns."""
    return column_squares(matrix, weight, shift)


def chunk_triangle(
    matrix: Matrix, shift: Vector | None, beside: Array, root: Vector | None
) -> Array:
    """Triangular factor of the rows and what stands beside them."""
    return triangle(few_rows_with(np.zeros((0, 0)), matrix, beside, root, shift))


def chunk_typical(matrix: Matrix, weight: Vector) -> Vector | None:
    """A row near the mean of those that count."""
    return matrix.typical_row(weight)


def chunk_columns(matrix: Matrix, width: int, number: int) -> Array:
    """One of the dense pieces of so many columns."""
    ((_, panel),) = islice(matrix.column_panels(width), number, number + 1)
    return np.array(panel)


def chunk_predictions(
    matrix: Matrix, coef: Vector, start: int, *, intercept: float, dtype: np.dtype[Any]
) -> Array:
    """``A w + b``, in the type of the model; rows are counted from ``start`` in errors."""
    said = matrix.apply(coef) + intercept
    found = None if np.isfinite(said).all() else chunk_non_finite(matrix, start)
    if found is not None:
        raise non_finite("X", f"row {found[0]}", found[1], found[2])
    return said.astype(dtype, copy=False)


def chunk_rows(rows: Rows, values: Any) -> Any:
    """Some rows of a chunk, as they are stored."""
    return _values(as_matrix(values, check_finite=False).take(rows))


def chunk_values(matrix: Matrix) -> Any:
    """The chunk itself."""
    return _values(matrix)


def chunk_non_finite(matrix: Matrix, start: int) -> tuple[int, int, float] | None:
    """Row, column and value of an entry that is not finite; rows are counted from ``start``."""
    found = matrix.find_non_finite()
    return None if found is None else (start + found[0], *found[1:])


def added(parts: list[Any]) -> Any:
    """Sum of arrays, or of tuples of them."""
    if isinstance(parts[0], tuple):
        return tuple(added(list(some)) for some in zip(*parts, strict=True))
    if len(parts) == 1:
        return parts[0]
    # Fresh memory is what takes time in sums of long vectors, so it is asked for once.
    total = np.add(parts[0], parts[1])
    for part in parts[2:]:
        total += part
    return total


def added_moments(parts: list[tuple[Array, Longest]]) -> tuple[Array, Longest]:
    """Sum of second moments, and what they were added up from."""
    sums, told = zip(*parts, strict=True)
    return added(list(sums)), longest_of_any(told)


def stacked_triangles(parts: list[Array]) -> Array:
    """Triangular factor of several on top of each other."""
    return triangle(np.vstack(parts))


def first_found(parts: list[Any]) -> Any:
    """The first that is not None."""
    return next((part for part in parts if part is not None), None)


def _values(matrix: Matrix) -> Any:
    return getattr(matrix, "values", matrix)
