"""The compiled inner loops of products with large data, each over one thread's share of the rows.

Compiling takes seconds once, and the result is kept on disk. All compiled code is in this one file,
because what is kept is renewed when the file of its function changes, not when another does.

Dense rows are taken eight at a time. One sweep forms their dot products with one or two vectors,
eight streams from memory at once; while the rows are in cache a second sweep adds them to the
result. Two results that grow in one sweep lie ``TILE`` apart: were the distance not known, the
compiler could not rule out that they overlap, and would not vectorise. Sparse rows are taken one at
a time, with unsigned indices, since signed ones are tested for being negative, and entries further
on are asked for in advance: between fetches from all over a vector the machine does not see by
itself that the entries come in order.

Sums over many rows are formed of ``length`` rows at a time, and these are added up: one after the
other, equal products would be rounded the same way millions of times.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

__all__ = [
    "TILE",
    "apply_part",
    "columns_gram_part",
    "cross_part",
    "gram_part",
    "sparse_apply_one",
    "sparse_apply_pairs",
    "sparse_cross_one",
    "sparse_cross_pairs",
    "sparse_gram_one",
    "sparse_gram_pairs",
]

Function: TypeAlias = Callable[..., Any]

# Their types do not know the uses made of them below.
_njit: Any = numba.njit
_intrinsic: Any = intrinsic

#: Columns from one result of a pair to the other.
TILE = 2048
_APART = np.uint64(TILE)

#: Sums of dense rows may be reordered and fused; NaN and infinity keep their meaning.
_DENSE: dict[str, Any] = {"nogil": True, "fastmath": {"reassoc", "contract", "nsz"}}
#: Sums over sparse rows may not, or the compiler would vectorise their gathers and lose by it.
_SPARSE: dict[str, Any] = {"nogil": True, "fastmath": {"contract"}}
_1, _2, _3, _4 = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
_5, _6, _7, _8 = np.uint64(5), np.uint64(6), np.uint64(7), np.uint64(8)
#: What entries of a column are counted in.
_ONE = np.uint32(1)
#: Entries of sparse data, and indices, that are asked for so many places in advance.
_AHEAD, _AHEAD_INDEX = np.uint64(128), np.uint64(256)


def _kept(options: dict[str, Any]) -> Callable[[Function], Function]:
    """Compile when first called, and keep the result if some folder can be written to."""

    def decorate(function: Function) -> Function:
        try:
            compiled: Function = _njit(cache=True, **options)(function)
        except RuntimeError:
            compiled = _njit(**options)(function)
        return compiled

    return decorate


def _inner(options: dict[str, Any]) -> Callable[[Function], Function]:
    """Compile as a part of what calls it."""
    decorate: Any = _njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, **options)
    return decorate  # type: ignore[no-any-return]


def _inlined(function: Function) -> Function:
    """Compile as a part of what calls it, without counting references to arrays on the way."""
    compiled: Function = _njit(inline="always")(function)
    return compiled


@_inner(_DENSE)
def _eight(X: Any, i: int, stop: int, lo: int, hi: int) -> Any:
    """Eight rows from ``i`` on; past the last of them, that one again."""
    end = stop - 1
    return (
        X[i][lo:hi],
        X[min(i + 1, end)][lo:hi],
        X[min(i + 2, end)][lo:hi],
        X[min(i + 3, end)][lo:hi],
        X[min(i + 4, end)][lo:hi],
        X[min(i + 5, end)][lo:hi],
        X[min(i + 6, end)][lo:hi],
        X[min(i + 7, end)][lo:hi],
    )


@_inner(_DENSE)
def _dot(rows: Any, v: Any, t: Any) -> None:
    """``t = rows v``."""
    r0, r1, r2, r3, r4, r5, r6, r7 = rows
    a = b = c = d = 0.0
    e = f = g = h = 0.0
    for j in range(len(v)):
        x = v[j]
        a += r0[j] * x
        b += r1[j] * x
        c += r2[j] * x
        d += r3[j] * x
        e += r4[j] * x
        f += r5[j] * x
        g += r6[j] * x
        h += r7[j] * x
    t[0], t[1], t[2], t[3], t[4], t[5], t[6], t[7] = a, b, c, d, e, f, g, h


@_inner(_DENSE)
def _dot_pair(rows: Any, v: Any, w: Any, t: Any, u: Any) -> None:
    """``t, u = rows v, rows w``."""
    r0, r1, r2, r3, r4, r5, r6, r7 = rows
    a = b = c = d = 0.0
    e = f = g = h = 0.0
    k = m = n = o = 0.0
    p = q = r = s = 0.0
    for j in range(len(v)):
        x, y = v[j], w[j]
        a += r0[j] * x
        b += r1[j] * x
        c += r2[j] * x
        d += r3[j] * x
        e += r4[j] * x
        f += r5[j] * x
        g += r6[j] * x
        h += r7[j] * x
        k += r0[j] * y
        m += r1[j] * y
        n += r2[j] * y
        o += r3[j] * y
        p += r4[j] * y
        q += r5[j] * y
        r += r6[j] * y
        s += r7[j] * y
    t[0], t[1], t[2], t[3], t[4], t[5], t[6], t[7] = a, b, c, d, e, f, g, h
    u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7] = k, m, n, o, p, q, r, s


@_inner(_DENSE)
def _add(rows: Any, t: Any, out: Any) -> None:
    """``out += rows' t``."""
    r0, r1, r2, r3, r4, r5, r6, r7 = rows
    a, b, c, d, e, f, g, h = t[0], t[1], t[2], t[3], t[4], t[5], t[6], t[7]
    for j in range(len(r0)):
        first = a * r0[j] + b * r1[j] + c * r2[j] + d * r3[j]
        out[j] += first + (e * r4[j] + f * r5[j] + g * r6[j] + h * r7[j])


@_inner(_DENSE)
def _add_pair(rows: Any, t: Any, u: Any, out: Any) -> None:
    """``out += rows' t``, and ``TILE`` further on ``out += rows' u``."""
    r0, r1, r2, r3, r4, r5, r6, r7 = rows
    a, b, c, d, e, f, g, h = t[0], t[1], t[2], t[3], t[4], t[5], t[6], t[7]
    k, m, n, o, p, q, r, s = u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7]
    for i in range(len(r0)):
        j = np.uint64(i)
        x0, x1, x2, x3 = r0[j], r1[j], r2[j], r3[j]
        x4, x5, x6, x7 = r4[j], r5[j], r6[j], r7[j]
        out[j] += a * x0 + b * x1 + c * x2 + d * x3 + e * x4 + f * x5 + g * x6 + h * x7
        out[j + _APART] += k * x0 + m * x1 + n * x2 + o * x3 + p * x4 + q * x5 + r * x6 + s * x7


@_inner(_DENSE)
def _subtract(X: Any, i: int, stop: int, shift: Any, out: Any) -> None:
    """Copy eight rows, less the shift, to where they stay in cache."""
    for k in range(min(8, stop - i)):
        row, to = X[i + k], out[k]
        for j in range(len(shift)):
            to[j] = row[j] - shift[j]


@_inner(_DENSE)
def _dots(rows: Any, V: Any, lo: int, hi: int, t: Any) -> None:
    """``t = V rows'`` for some entries of the vectors in the rows of ``V``."""
    width = len(V)
    for k in range(0, width - 1, 2):
        _dot_pair(rows, V[k][lo:hi], V[k + 1][lo:hi], t[k], t[k + 1])
    if width % 2:
        _dot(rows, V[width - 1][lo:hi], t[width - 1])


@_inner(_DENSE)
def _adds(X: Any, i: int, stop: int, t: Any, tiles: Any, out: Any) -> None:
    """Add ``t`` times eight rows to some tiles of pairs of results."""
    width, n = len(t), X.shape[1]
    for tile in range(tiles[0], tiles[1]):
        rows = _eight(X, i, stop, tile * TILE, min((tile + 1) * TILE, n))
        for k in range(0, width - 1, 2):
            _add_pair(rows, t[k], t[k + 1], out[k // 2, tile])
        if width % 2:
            _add(rows, t[width - 1], out[width // 2, tile])


@_inner(_DENSE)
def _flush(own: Any, n: int, tiles: Any, out: Any) -> None:
    """Add sums of some rows to those of all, in some tiles, and begin anew."""
    for k in range(len(own)):
        for tile in range(tiles[0], tiles[1]):
            width = min(TILE, n - tile * TILE)
            for at in (0, TILE):
                part, to = own[k, tile][at : at + width], out[k, tile][at : at + width]
                for j in range(width):
                    to[j] += part[j]
                    part[j] = 0.0


@_inner(_DENSE)
def _flush_left(own: Any, left: Any) -> None:
    """The same of what is left along a basis."""
    for c in range(own.shape[0]):
        for k in range(own.shape[1]):
            left[c, k] += own[c, k]
            own[c, k] = 0.0


@_inner(_DENSE)
def _add_squares(X: Any, i: int, stop: int, w: Any, tiles: Any, out: Any) -> None:
    """Add the squares of eight rows, so many times each, to some tiles."""
    n = X.shape[1]
    a, b, c, d, e, f, g, h = w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7]
    for tile in range(tiles[0], tiles[1]):
        r0, r1, r2, r3, r4, r5, r6, r7 = _eight(X, i, stop, tile * TILE, min((tile + 1) * TILE, n))
        to = out[tile]
        for j in range(len(r0)):
            x0, x1, x2, x3 = r0[j], r1[j], r2[j], r3[j]
            x4, x5, x6, x7 = r4[j], r5[j], r6[j], r7[j]
            first = a * x0 * x0 + b * x1 * x1 + c * x2 * x2 + d * x3 * x3
            to[j] += first + (e * x4 * x4 + f * x5 * x5 + g * x6 * x6 + h * x7 * x7)


@_inner(_DENSE)
def _step_rows(t: Any, i: int, count: int, row: Any, basis: Any, along: Any, left: Any) -> None:
    """Apply :class:`RowStep` to ``count`` rows from ``i`` on; ``t`` is zero past them."""
    width, f = len(t), len(along)
    for k in range(width):
        for r in range(count, t.shape[1]):
            t[k, r] = 0.0
        for r in range(count):
            factor = row[i + r] if len(row) else 1.0
            value = factor * t[k, r]
            if f:
                for c in range(f):
                    value -= basis[i + r, c] * along[c, k]
                for c in range(f):
                    left[c, k] += basis[i + r, c] * value
            t[k, r] = factor * value


@_kept(_DENSE)
def apply_part(X: Any, shift: Any, V: Any, length: int, first: int, stop: int, out: Any) -> None:
    """``out = (X - 1 shift') V'`` for the vectors in the rows of ``V``, so many entries a time."""
    n, width = X.shape[1], len(V)
    t, part = np.empty((width, 8)), np.empty((width, 8))
    less = np.empty((8, 0 if shift is None else n))
    for i in range(first, stop, 8):
        count = min(8, stop - i)
        t[:] = 0.0
        if shift is not None:
            _subtract(X, i, stop, shift, less)
        for lo in range(0, n, length):
            hi = min(lo + length, n)
            if shift is None:
                _dots(_eight(X, i, stop, lo, hi), V, lo, hi, part)
            else:
                _dots(_eight(less, 0, count, lo, hi), V, lo, hi, part)
            t += part
        for r in range(count):
            for k in range(width):
                out[i + r, k] = t[k, r]


@_kept(_DENSE)
def cross_part(
    X: Any,
    shift: Any,
    U: Any,
    length: int,
    first: int,
    stop: int,
    tiles: Any,
    out: Any,
    weight: Any,
    squares: Any,
) -> None:
    """``out += (X - 1 shift')' U``, in tiles of pairs, from the first of ``tiles`` to the last.

    Unless ``squares`` is empty, weighted squares of the columns are added to it in the same read.
    """
    n, width = X.shape[1], U.shape[1]
    t, w, own = np.zeros((width, 8)), np.zeros(8), np.zeros_like(out)
    less = np.empty((8, 0 if shift is None else n))
    for i in range(first, stop, 8):
        count = min(8, stop - i)
        for k in range(width):
            for r in range(8):
                t[k, r] = U[i + r, k] if r < count else 0.0
        for r in range(8):
            w[r] = (weight[i + r] if len(weight) else 1.0) if r < count else 0.0
        if shift is None:
            _adds(X, i, stop, t, tiles, own)
            if len(squares):
                _add_squares(X, i, stop, w, tiles, squares)
        else:
            _subtract(X, i, stop, shift, less)
            _adds(less, 0, count, t, tiles, own)
            if len(squares):
                _add_squares(less, 0, count, w, tiles, squares)
        if (i + 8 - first) % length == 0 or i + 8 >= stop:
            _flush(own, n, tiles, out)


@_kept(_DENSE)
def gram_part(
    X: Any,
    shift: Any,
    V: Any,
    row: Any,
    basis: Any,
    along: Any,
    length: int,
    first: int,
    stop: int,
    out: Any,
    left: Any,
) -> None:
    """``out += (X - 1 shift')' M (X - 1 shift') V'``, in tiles of pairs."""
    own, own_left = np.zeros_like(out), np.zeros_like(left)
    tiles = (0, out.shape[1])
    n, width = X.shape[1], len(V)
    t = np.empty((width, 8))
    less = np.empty((8, 0 if shift is None else n))
    for i in range(first, stop, 8):
        count = min(8, stop - i)
        if shift is None:
            _dots(_eight(X, i, stop, 0, n), V, 0, n, t)
            _step_rows(t, i, count, row, basis, along, own_left)
            _adds(X, i, stop, t, tiles, own)
        else:
            _subtract(X, i, stop, shift, less)
            _dots(_eight(less, 0, count, 0, n), V, 0, n, t)
            _step_rows(t, i, count, row, basis, along, own_left)
            _adds(less, 0, count, t, tiles, own)
        if (i + 8 - first) % length == 0 or i + 8 >= stop:
            _flush(own, n, tiles, out)
            _flush_left(own_left, left)


@_kept(_DENSE)
def columns_gram_part(
    Z: Any,
    V: Any,
    row: Any,
    basis: Any,
    along: Any,
    length: int,
    first: int,
    stop: int,
    out: Any,
    left: Any,
) -> None:
    """``out += X' M X V`` for ``X = Z'``, ``length`` rows of ``X`` at a time, by eight columns."""
    n, width = len(Z), V.shape[1]
    pairs = (width + 1) // 2
    coefficient, t, part = np.empty((width, 8)), np.empty((width, length)), np.empty((width, 8))
    sums, own_left = np.empty((pairs, 2 * TILE)), np.zeros_like(left)
    for lo in range(first, stop, length):
        hi = min(lo + length, stop)
        sums[:] = 0.0
        for i in range(0, n, 8):
            rows = _eight(Z, i, n, lo, hi)
            for k in range(width):
                for r in range(8):
                    coefficient[k, r] = V[i + r, k] if i + r < n else 0.0
            for k in range(0, width - 1, 2):
                _add_pair(rows, coefficient[k], coefficient[k + 1], sums[k // 2])
            if width % 2:
                _add(rows, coefficient[width - 1], sums[pairs - 1])
        for k in range(width):
            at = (k % 2) * TILE
            for r in range(hi - lo):
                t[k, r] = sums[k // 2, at + r]
        _step_rows(t, lo, hi - lo, row, basis, along, own_left)
        _flush_left(own_left, left)
        for i in range(0, n, 8):
            _dots(_eight(Z, i, n, lo, hi), t, 0, hi - lo, part)
            for k in range(width):
                for r in range(min(8, n - i)):
                    out[i + r, k] += part[k, r]


# Sparse rows. Vectors come as (n,) or in pairs as (pairs, n, 2), to be fetched together.


@_intrinsic
def _ask_for(typing: Any, array: Any, at: Any) -> Any:
    """Ask for a place of an array to be brought to cache; past its end that does nothing."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        values = context.make_array(signature.args[0])(context, builder, args[0])
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        place = builder.bitcast(builder.gep(values.data, [args[1]]), byte)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        name = "llvm.prefetch.p0i8"
        function = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
        # To read, to keep, data.
        builder.call(function, [place, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(array, at), generate


@_inlined
def _sparse_dot(A: Any, lo: Any, hi: Any, v: Any) -> Any:
    """Stored row times ``v``; four sums, so that none waits for the one before."""
    data, index, _ = A
    a = b = c = d = 0.0
    at = lo
    while at + _8 <= hi:
        _ask_for(data, at + _AHEAD)
        _ask_for(index, at + _AHEAD_INDEX)
        a += data[at] * v[index[at]]
        b += data[at + _1] * v[index[at + _1]]
        c += data[at + _2] * v[index[at + _2]]
        d += data[at + _3] * v[index[at + _3]]
        a += data[at + _4] * v[index[at + _4]]
        b += data[at + _5] * v[index[at + _5]]
        c += data[at + _6] * v[index[at + _6]]
        d += data[at + _7] * v[index[at + _7]]
        at += _8
    while at < hi:
        a += data[at] * v[index[at]]
        at += _1
    return (a + b) + (c + d)


@_inlined
def _sparse_dot_pair(A: Any, lo: Any, hi: Any, V: Any) -> Any:
    data, index, _ = A
    a = b = c = d = 0.0
    at = lo
    while at + _4 <= hi:
        _ask_for(data, at + _AHEAD)
        _ask_for(index, at + _AHEAD_INDEX)
        x, j = data[at], index[at]
        a += x * V[j, 0]
        b += x * V[j, 1]
        x, j = data[at + _1], index[at + _1]
        c += x * V[j, 0]
        d += x * V[j, 1]
        x, j = data[at + _2], index[at + _2]
        a += x * V[j, 0]
        b += x * V[j, 1]
        x, j = data[at + _3], index[at + _3]
        c += x * V[j, 0]
        d += x * V[j, 1]
        at += _4
    while at < hi:
        x, j = data[at], index[at]
        a += x * V[j, 0]
        b += x * V[j, 1]
        at += _1
    return a + c, b + d


@_inlined
def _sparse_add(A: Any, lo: Any, hi: Any, t: Any, out: Any, unread: bool) -> Any:
    """Add ``t`` times a stored row; one that was read just before is in cache.

    Return the sum of its squares, for which there is time while sums come and go.
    """
    data, index, _ = A
    a = b = 0.0
    at = lo
    while at + _4 <= hi:
        if unread:
            _ask_for(data, at + _AHEAD)
            _ask_for(index, at + _AHEAD_INDEX)
        x, y = np.float64(data[at]), np.float64(data[at + _1])
        out[index[at]] += t * x
        out[index[at + _1]] += t * y
        a += x * x
        b += y * y
        x, y = np.float64(data[at + _2]), np.float64(data[at + _3])
        out[index[at + _2]] += t * x
        out[index[at + _3]] += t * y
        a += x * x
        b += y * y
        at += _4
    while at < hi:
        x = np.float64(data[at])
        out[index[at]] += t * x
        a += x * x
        at += _1
    return a + b


@_inlined
def _sparse_add_counted(A: Any, lo: Any, hi: Any, t: Any, out: Any, count: Any) -> Any:
    """The same of an unread row whose indices are counted."""
    data, index, _ = A
    a = b = 0.0
    at = lo
    while at + _2 <= hi:
        _ask_for(data, at + _AHEAD)
        _ask_for(index, at + _AHEAD_INDEX)
        x, j = np.float64(data[at]), index[at]
        out[j] += t * x
        count[j] += _ONE
        a += x * x
        x, j = np.float64(data[at + _1]), index[at + _1]
        out[j] += t * x
        count[j] += _ONE
        b += x * x
        at += _2
    while at < hi:
        x, j = np.float64(data[at]), index[at]
        out[j] += t * x
        count[j] += _ONE
        a += x * x
        at += _1
    return a + b


@_inlined
def _sparse_add_pair(A: Any, lo: Any, hi: Any, t: Any, u: Any, out: Any, unread: bool) -> Any:
    data, index, _ = A
    a = b = 0.0
    at = lo
    while at + _2 <= hi:
        if unread:
            _ask_for(data, at + _AHEAD)
            _ask_for(index, at + _AHEAD_INDEX)
        x, j = np.float64(data[at]), index[at]
        out[j, 0] += t * x
        out[j, 1] += u * x
        a += x * x
        x, j = np.float64(data[at + _1]), index[at + _1]
        out[j, 0] += t * x
        out[j, 1] += u * x
        b += x * x
        at += _2
    while at < hi:
        x, j = np.float64(data[at]), index[at]
        out[j, 0] += t * x
        out[j, 1] += u * x
        a += x * x
        at += _1
    return a + b


@_inlined
def _count(A: Any, lo: Any, hi: Any, count: Any) -> None:
    """Count the indices of a stored row, unless there is no room for that."""
    if len(count):
        for at in range(lo, hi):
            count[A[1][at]] += _ONE


@_inlined
def _ends(A: Any, i: Any) -> Any:
    return np.uint64(A[2][np.uint64(i)]), np.uint64(A[2][np.uint64(i) + _1])


@_kept(_SPARSE)
def sparse_apply_one(A: Any, v: Any, first: int, stop: int, out: Any) -> None:
    """``out = A v``."""
    for i in range(first, stop):
        lo, hi = _ends(A, i)
        out[i] = _sparse_dot(A, lo, hi, v)


@_kept(_SPARSE)
def sparse_apply_pairs(A: Any, V: Any, first: int, stop: int, out: Any) -> None:
    """``out = A V`` for pairs of vectors."""
    if len(V) == 1:
        pair, to = V[0], out[0]
        for i in range(first, stop):
            lo, hi = _ends(A, i)
            to[i, 0], to[i, 1] = _sparse_dot_pair(A, lo, hi, pair)
        return
    for i in range(first, stop):
        lo, hi = _ends(A, i)
        for k in range(len(V)):
            out[k, i, 0], out[k, i, 1] = _sparse_dot_pair(A, lo, hi, V[k])


@_kept(_SPARSE)
def sparse_cross_one(A: Any, u: Any, first: int, stop: int, out: Any, count: Any) -> Any:
    """``out += A' u``, and the sum of the squares of these rows.

    Unless ``count`` is empty, entries of columns are counted in it in the same read.
    """
    total = 0.0
    if len(count):
        for i in range(first, stop):
            lo, hi = _ends(A, i)
            total += _sparse_add_counted(A, lo, hi, u[i], out, count)
        return total
    for i in range(first, stop):
        lo, hi = _ends(A, i)
        total += _sparse_add(A, lo, hi, u[i], out, True)
    return total


@_kept(_SPARSE)
def sparse_cross_pairs(A: Any, U: Any, first: int, stop: int, out: Any, count: Any) -> Any:
    """``out += A' U`` for pairs of vectors; sums and counts as above."""
    total = 0.0
    if len(U) == 1:
        pair, to = U[0], out[0]
        for i in range(first, stop):
            lo, hi = _ends(A, i)
            total += _sparse_add_pair(A, lo, hi, pair[i, 0], pair[i, 1], to, True)
            _count(A, lo, hi, count)
        return total
    for i in range(first, stop):
        lo, hi = _ends(A, i)
        for k in range(len(U)):
            own = _sparse_add_pair(A, lo, hi, U[k, i, 0], U[k, i, 1], out[k], k == 0)
            total += own if k == 0 else 0.0
        _count(A, lo, hi, count)
    return total


@_inner(_SPARSE)
def _sparse_gram_along(
    A: Any, v: Any, q: Any, along: float, length: int, first: int, stop: int, out: Any
) -> Any:
    """``out += A'(A v - along q)``, and ``q'(A v - along q)``: one column ``q`` costs nothing."""
    total = 0.0
    for start in range(first, stop, length):
        part = 0.0
        for k in range(start, min(start + length, stop)):
            i = np.uint64(k)
            lo, hi = _ends(A, i)
            t = _sparse_dot(A, lo, hi, v) - along * q[i]
            part += q[i] * t
            _sparse_add(A, lo, hi, t, out, False)
        total += part
    return total


@_kept(_SPARSE)
def sparse_gram_one(
    A: Any,
    v: Any,
    row: Any,
    basis: Any,
    along: Any,
    length: int,
    first: int,
    stop: int,
    out: Any,
    left: Any,
) -> None:
    """``out += A' M A v``."""
    if len(row) == 0 and len(along) == 0:
        for i in range(first, stop):
            lo, hi = _ends(A, i)
            _sparse_add(A, lo, hi, _sparse_dot(A, lo, hi, v), out, False)
        return
    if len(row) == 0 and len(along) == 1:
        left[0, 0] += _sparse_gram_along(A, v, basis[:, 0], along[0, 0], length, first, stop, out)
        return
    t, own_left = np.empty((1, 1)), np.zeros_like(left)
    for start in range(first, stop, length):
        for i in range(start, min(start + length, stop)):
            lo, hi = _ends(A, i)
            t[0, 0] = _sparse_dot(A, lo, hi, v)
            _step_rows(t, i, 1, row, basis, along, own_left)
            _sparse_add(A, lo, hi, t[0, 0], out, False)
        _flush_left(own_left, left)


@_kept(_SPARSE)
def sparse_gram_pairs(
    A: Any,
    V: Any,
    row: Any,
    basis: Any,
    along: Any,
    length: int,
    first: int,
    stop: int,
    out: Any,
    left: Any,
) -> None:
    """``out += A' M A V`` for pairs of vectors."""
    t, own_left = np.empty((2 * len(V), 1)), np.zeros_like(left)
    if len(V) == 1 and len(row) == 0 and len(along) == 0:
        pair, to = V[0], out[0]
        for i in range(first, stop):
            lo, hi = _ends(A, i)
            a, b = _sparse_dot_pair(A, lo, hi, pair)
            _sparse_add_pair(A, lo, hi, a, b, to, False)
        return
    for start in range(first, stop, length):
        for i in range(start, min(start + length, stop)):
            lo, hi = _ends(A, i)
            for k in range(len(V)):
                t[2 * k, 0], t[2 * k + 1, 0] = _sparse_dot_pair(A, lo, hi, V[k])
            _step_rows(t, i, 1, row, basis, along, own_left)
            for k in range(len(V)):
                _sparse_add_pair(A, lo, hi, t[2 * k, 0], t[2 * k + 1, 0], out[k], False)
        _flush_left(own_left, left)
