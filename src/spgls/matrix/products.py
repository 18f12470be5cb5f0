"""Products for large data on all threads: each reads it once and widens it in registers.

Imported only where the data is large and there is a compiler (``compiler.py``), because this loads
it. Vectors have shape (n,) or (n, width), results likewise. Each thread adds to a result of its
own, by way of one for some rows at a time: a product needs ``2 * threads * n * width`` doubles, or
``threads * m * width`` where columns are what is stored.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, TypeAlias

import numba
import numpy as np
from numpy.typing import NDArray

from spgls.base.types import Array, Vector
from spgls.matrix import kernels
from spgls.matrix.pieces import sum_length
from spgls.matrix.row_step import RowStep

__all__ = [
    "apply",
    "cross",
    "cross_and_squares",
    "gram",
    "gram_by_columns",
    "measured_sparse_cross",
    "sparse_apply",
    "sparse_cross",
    "sparse_gram",
]

Values: TypeAlias = NDArray[Any]
#: Values, unsigned indices and unsigned starts of compressed rows.
Rows: TypeAlias = tuple[Values, Values, Values]
#: What one thread does: its number, its first row and the end of its rows.
Part: TypeAlias = Callable[[int, int, int], Any]

#: From so many tiles a thread on, threads share out the columns of a result and not the rows.
_MANY_TILES = 8


def apply(X: Values, v: Array, shift: Vector | None = None, length: int | None = None) -> Array:
    """``X v`` for rows that lie together in memory, ``length`` columns at a time."""
    X, V = _unlocked(X), np.ascontiguousarray(_block(v).T)
    out, each = np.empty((len(X), len(V))), max(length or X.shape[1], 1)
    _run(len(X), lambda _, a, b: kernels.apply_part(X, shift, V, each, a, b, out))
    return out.reshape(len(X), *v.shape[1:])


def cross(X: Values, u: Array, shift: Vector | None = None) -> Array:
    """``X' u`` for rows that lie together in memory."""
    return _cross(X, u, shift, np.zeros(0), 0)[0]


def cross_and_squares(
    X: Values, u: Array, weight: Vector | None, shift: Vector | None
) -> tuple[Array, Vector]:
    """``X' u`` and the squared lengths of the columns, in one read."""
    each = np.zeros(0) if weight is None else np.ascontiguousarray(weight)
    return _cross(X, u, shift, each, 1)


def _cross(
    X: Values, u: Array, shift: Vector | None, weight: Vector, squared: int
) -> tuple[Array, Vector]:
    X, U = _unlocked(X), _block(u)
    m, n = X.shape
    tiles, threads, length = -(-n // kernels.TILE), _threads(), sum_length(m)
    # Long rows: each thread has its own columns and no result has to be summed.
    by_rows = tiles < _MANY_TILES * threads
    copies = threads if by_rows else 1
    out, squares = _tiles(n, U.shape[1], copies), np.zeros((copies, squared * tiles, kernels.TILE))

    def part(k: int, a: int, b: int) -> None:
        rows, of, k = ((a, b), (0, tiles), k) if by_rows else ((0, m), (a, b), 0)
        kernels.cross_part(X, shift, U, length, *rows, of, out[k], weight, squares[k])

    _run(m if by_rows else tiles, part, grain=8 if by_rows else 1)
    return _untile(out, n, u), squares.sum(axis=0).reshape(-1)[:n]


def gram(X: Values, v: Array, shift: Vector | None = None, step: RowStep | None = None) -> Array:
    """``X' M X v`` for rows that lie together in memory, reading them once."""
    X, V = _unlocked(X), np.ascontiguousarray(_block(v).T)
    out = _tiles(X.shape[1], len(V), _threads())
    row, basis, along, left = _unpack(step, len(V))
    length = sum_length(len(X))
    _run(
        len(X),
        lambda part, a, b: kernels.gram_part(
            X, shift, V, row, basis, along, length, a, b, out[part], left[part]
        ),
    )
    _collect(step, left)
    return _untile(out, X.shape[1], v)


def gram_by_columns(X: Values, v: Array, length: int, step: RowStep | None = None) -> Array:
    """``X' M X v`` for columns that lie together in memory.

    Read once if ``length`` rows, of which there may be as many as in a tile, fit in cache.
    """
    Z, V = _unlocked(X).T, _block(v)
    m, n = X.shape
    length = min(length, kernels.TILE, sum_length(m))
    out = np.zeros((_threads(), n, V.shape[1]))
    row, basis, along, left = _unpack(step, V.shape[1])
    _run(
        m,
        lambda k, a, b: kernels.columns_gram_part(
            Z, V, row, basis, along, length, a, b, out[k], left[k]
        ),
    )
    _collect(step, left)
    return np.asarray(out.sum(axis=0)).reshape(n, *v.shape[1:])


def sparse_apply(A: Rows, v: Array) -> Array:
    """``A v`` for compressed rows."""
    A, m = _unlocked_rows(A), len(A[2]) - 1
    kernel = kernels.sparse_apply_one if _single(v) else kernels.sparse_apply_pairs
    V = _pairs(v)
    out = np.empty(_shape(V, m))
    _run_sparse(A, lambda _, a, b: kernel(A, V, a, b, out))
    return _unpair(out, m, v)


def sparse_cross(A: Rows, u: Array, n: int, at_once: int) -> Array:
    """``A' u`` for compressed rows of length ``n``, in sums over so many of them at once."""
    return _sparse_cross(A, u, n, at_once, 0)[0]


def measured_sparse_cross(
    A: Rows, u: Array, n: int, at_once: int
) -> tuple[Array, float, int | None]:
    """``A' u``, the sum of the squares of all entries, and most entries of a column.

    They are not counted, and None, where sums are formed in pieces: nobody asks then.
    """
    counted = n if at_once >= len(A[2]) - 1 else 0
    product, total, count = _sparse_cross(A, u, n, at_once, counted)
    return product, total, int(count.max(initial=0)) if counted else None


def _sparse_cross(
    A: Rows, u: Array, n: int, at_once: int, counted: int
) -> tuple[Array, float, Values]:
    kernel = kernels.sparse_cross_one if _single(u) else kernels.sparse_cross_pairs
    A, U = _unlocked_rows(A), _pairs(u)
    out, squares = np.zeros((_threads(), *_shape(U, n))), np.zeros(_threads())
    count = np.zeros((_threads(), counted), np.uint32 if len(A[0]) < 2**32 else np.uint64)

    def part(k: int, a: int, b: int) -> None:
        def add(start: int, stop: int, to: Array) -> None:
            squares[k] += kernel(A, U, start, stop, to, count[k])

        _add_in_pieces(add, a, b, at_once, out[k])

    _run_sparse(A, part)
    return _unpair(_sum(out), n, u), float(squares.sum()), _sum(count)


def sparse_gram(A: Rows, v: Array, at_once: int, step: RowStep | None = None) -> Array:
    """``A' M A v`` for compressed rows, reading them once; sums as in :func:`sparse_cross`."""
    kernel = kernels.sparse_gram_one if _single(v) else kernels.sparse_gram_pairs
    A, V = _unlocked_rows(A), _pairs(v)
    width = 1 if V.ndim == 1 else 2 * len(V)
    out = np.zeros((_threads(), *V.shape))
    row, basis, along, left = _unpack(step, width)
    length = sum_length(len(A[2]) - 1)

    def part(k: int, a: int, b: int) -> None:
        def add(start: int, stop: int, to: Array) -> None:
            kernel(A, V, row, basis, along, length, start, stop, to, left[k])

        _add_in_pieces(add, a, b, at_once, out[k])

    _run_sparse(A, part)
    _collect(step, left)
    return _unpair(_sum(out), len(v), v)


def _add_in_pieces(
    add: Callable[[int, int, Array], None], first: int, stop: int, at_once: int, out: Array
) -> None:
    """Add rows to sums, so many at once: terms that are added one by one are rounded alike."""
    if stop - first <= at_once:
        add(first, stop, out)
        return
    room = np.zeros_like(out)
    for start in range(first, stop, at_once):
        add(start, min(start + at_once, stop), room)
        out += room
        room[...] = 0.0


class _Unlocked:
    """Read-only memory under the type of any other, for which compiled code exists already.

    No compiled product writes to the data.
    """

    def __init__(self, values: Values) -> None:
        self._keep_alive = values
        interface = values.__array_interface__
        self.__array_interface__ = {**interface, "data": (interface["data"][0], False)}


def _unlocked(values: Values) -> Values:
    return values if values.flags.writeable else np.asarray(_Unlocked(values))


def _unlocked_rows(A: Rows) -> Rows:
    return _unlocked(A[0]), _unlocked(A[1]), _unlocked(A[2])


def _threads() -> int:
    return int(numba.get_num_threads())


@lru_cache(maxsize=1)
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    """Threads that sleep between products; those of a parent process do not survive a fork."""
    return ThreadPoolExecutor(threads, thread_name_prefix="spgls")


def _run(rows: int, part: Part, grain: int = 8) -> None:
    """Give each thread its share of the rows, in blocks of ``grain``."""
    threads = _threads()
    each = grain * -(-rows // (grain * threads))
    _run_between([min(k * each, rows) for k in range(threads + 1)], part)


def _run_sparse(A: Rows, part: Part) -> None:
    """Give each thread rows with its share of the entries."""
    start, threads = A[2], _threads()
    # Of their own type: others would have all of them converted.
    shares = np.array([int(start[-1]) * k // threads for k in range(1, threads)], start.dtype)
    cuts = np.searchsorted(start, shares).tolist()
    _run_between([0, *cuts, len(start) - 1], part)


def _run_between(cuts: list[int], part: Part) -> None:
    threads = len(cuts) - 1
    others = []
    if threads > 1:
        pool = _pool(os.getpid(), threads - 1)
        others = [pool.submit(part, k, cuts[k], cuts[k + 1]) for k in range(1, threads)]
    part(0, cuts[0], cuts[1])
    for other in others:
        other.result()


def _block(v: Array) -> Array:
    """Columns in a row-major block, one column included."""
    return np.ascontiguousarray(v[:, None] if v.ndim == 1 else v)


def _sum(parts: Values) -> Values:
    """What all threads have found."""
    return np.asarray(parts.sum(axis=0)) if len(parts) > 1 else parts[0]


def _tiles(n: int, width: int, copies: int) -> Array:
    return np.zeros((copies, (width + 1) // 2, -(-n // kernels.TILE), 2 * kernels.TILE))


def _untile(out: Array, n: int, like: Array) -> Array:
    total = _sum(out)
    pairs, tiles, _ = total.shape
    columns: Array = total.reshape(pairs, tiles, 2, kernels.TILE).transpose(1, 3, 0, 2)
    columns = columns.reshape(tiles * kernels.TILE, 2 * pairs)
    if like.ndim == 1:
        return np.ascontiguousarray(columns[:n, 0])
    return np.ascontiguousarray(columns[:n, : like.shape[1]])


def _single(v: Array) -> bool:
    return v.ndim == 1 or v.shape[1] == 1


def _pairs(v: Array) -> Array:
    """Pairs of columns, the last filled with zeros; one column stays alone."""
    if _single(v):
        return np.ascontiguousarray(v.reshape(-1))
    pairs = np.zeros(((v.shape[1] + 1) // 2, len(v), 2))
    for k in range(v.shape[1]):
        pairs[k // 2, :, k % 2] = v[:, k]
    return pairs


def _shape(V: Array, length: int) -> tuple[int, ...]:
    return (length,) if V.ndim == 1 else (len(V), length, 2)


def _unpair(out: Array, length: int, like: Array) -> Array:
    if out.ndim == 1:
        return out.reshape(length, *like.shape[1:])
    columns = out.transpose(1, 0, 2).reshape(length, -1)
    return np.ascontiguousarray(columns[:, : like.shape[1]])


def _unpack(step: RowStep | None, width: int) -> tuple[Array, Array, Array, Array]:
    """Row factors, basis, the known part along it, and room for sums; empty where there is none."""
    row, basis, along = np.zeros(0), np.zeros((0, 0)), np.zeros((0, width))
    if step is not None and step.row is not None:
        row = np.ascontiguousarray(step.row)
    if step is not None and step.basis is not None:
        basis = np.ascontiguousarray(step.basis)
        known = _block(step.along)
        along = np.zeros((len(known), width))
        along[:, : known.shape[1]] = known
    return row, basis, along, np.zeros((_threads(), *along.shape))


def _collect(step: RowStep | None, left: Array) -> None:
    if step is not None and step.basis is not None:
        total = left.sum(axis=0)
        width = 1 if step.left.ndim == 1 else step.left.shape[1]
        step.left[...] += total[:, :width].reshape(step.left.shape)
