"""Compiled products for large dense data, each one read of it.

Imported only where the data is large: compiling takes seconds once, and the result is kept on disk.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from spgls._types import Array, Vector

__all__ = ["apply", "cross_pair", "gram"]


@numba.njit(cache=True, fastmath=True, nogil=True)
def _gram_rows(X: Array, v: Vector, first: int, last: int, out: Vector) -> None:
    # Four rows at a time: their dot products share one sweep over v, and while they are still in
    # cache one sweep over the result adds all four.
    n = X.shape[1]
    i = first
    while i + 4 <= last:
        r0, r1, r2, r3 = X[i], X[i + 1], X[i + 2], X[i + 3]
        a = b = c = d = 0.0
        for j in range(n):
            a += r0[j] * v[j]
            b += r1[j] * v[j]
            c += r2[j] * v[j]
            d += r3[j] * v[j]
        for j in range(n):
            out[j] += a * r0[j] + b * r1[j] + c * r2[j] + d * r3[j]
        i += 4
    while i < last:
        row = X[i]
        a = 0.0
        for j in range(n):
            a += row[j] * v[j]
        for j in range(n):
            out[j] += a * row[j]
        i += 1


@numba.njit(cache=True, fastmath=True, nogil=True)
def _cross_rows(X: Array, u: Vector, w: Vector, first: int, last: int, out: Array) -> None:
    n = X.shape[1]
    left, right = out[0], out[1]
    i = first
    while i + 4 <= last:
        r0, r1, r2, r3 = X[i], X[i + 1], X[i + 2], X[i + 3]
        a, b, c, d = u[i], u[i + 1], u[i + 2], u[i + 3]
        for j in range(n):
            left[j] += a * r0[j] + b * r1[j] + c * r2[j] + d * r3[j]
        a, b, c, d = w[i], w[i + 1], w[i + 2], w[i + 3]
        for j in range(n):
            right[j] += a * r0[j] + b * r1[j] + c * r2[j] + d * r3[j]
        i += 4
    while i < last:
        row = X[i]
        for j in range(n):
            left[j] += u[i] * row[j]
            right[j] += w[i] * row[j]
        i += 1


@numba.njit(cache=True, fastmath=True, nogil=True)
def _apply_rows(X: Array, v: Vector, first: int, last: int, out: Vector) -> None:
    n = X.shape[1]
    i = first
    while i + 4 <= last:
        r0, r1, r2, r3 = X[i], X[i + 1], X[i + 2], X[i + 3]
        a = b = c = d = 0.0
        for j in range(n):
            a += r0[j] * v[j]
            b += r1[j] * v[j]
            c += r2[j] * v[j]
            d += r3[j] * v[j]
        out[i], out[i + 1], out[i + 2], out[i + 3] = a, b, c, d
        i += 4
    while i < last:
        row = X[i]
        a = 0.0
        for j in range(n):
            a += row[j] * v[j]
        out[i] = a
        i += 1


@numba.njit(cache=True, parallel=True, nogil=True)
def _apply(X: Array, v: Vector, parts: int) -> Vector:
    m = X.shape[0]
    out = np.empty(m)
    for part in numba.prange(parts):
        _apply_rows(X, v, part * m // parts, (part + 1) * m // parts, out)
    return out


@numba.njit(cache=True, parallel=True, nogil=True)
def _gram(X: Array, v: Vector, parts: int) -> Array:
    m, n = X.shape
    out = np.zeros((parts, n))
    for part in numba.prange(parts):
        _gram_rows(X, v, part * m // parts, (part + 1) * m // parts, out[part])
    return out


@numba.njit(cache=True, parallel=True, nogil=True)
def _cross(X: Array, u: Vector, w: Vector, parts: int) -> Array:
    m, n = X.shape
    out = np.zeros((parts, 2, n))
    for part in numba.prange(parts):
        _cross_rows(X, u, w, part * m // parts, (part + 1) * m // parts, out[part])
    return out


def apply(X: NDArray[Any], v: Vector) -> Vector:
    """``X v``, on the same threads as the other products here, which BLAS's would disturb."""
    return np.asarray(_apply(X, v, numba.get_num_threads()))


def gram(X: NDArray[Any], v: Vector) -> Vector:
    """``X'(X v)`` for rows that lie together in memory."""
    return np.asarray(_gram(X, v, numba.get_num_threads()).sum(axis=0))


def cross_pair(X: NDArray[Any], u: Array) -> Array:
    """``X' u`` for two columns."""
    left, right = np.ascontiguousarray(u.T)
    return np.ascontiguousarray(_cross(X, left, right, numba.get_num_threads()).sum(axis=0).T)
