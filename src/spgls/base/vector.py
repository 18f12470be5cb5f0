"""Inner products of long vectors, away from the threads of BLAS, and numbers by halves."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

import numpy as np

from spgls.base.threads import blas_is_alone
from spgls.base.types import Array, Vector

__all__ = ["dot", "exact_terms", "leading_bits", "norm", "squares"]


#: Entries of a piece that BLAS multiplies in the calling thread, and pieces that are few.
_PIECE, _FEW = 8192, 4


def dot(a: Vector, b: Vector) -> float:
    """``a'b``.

    OpenBLAS wakes its threads from ten thousand entries on, which takes longer than the product,
    and leaves them spinning where the data's own kernels want to run. So it gets pieces, unless
    it is kept to the calling thread anyway.
    """
    if len(a) <= _PIECE or not (isinstance(a, np.ndarray) and isinstance(b, np.ndarray)):
        return float(a.dot(b))
    if len(a) <= _FEW * _PIECE:
        if blas_is_alone():
            return float(a.dot(b))
        # One by one they are sooner done than told.
        total = 0.0
        for at in range(0, len(a), _PIECE):
            total += float(a[at : at + _PIECE].dot(b[at : at + _PIECE]))
        return total
    even = len(a) - len(a) % _PIECE
    pieces = a[:even].reshape(-1, _PIECE), b[:even].reshape(-1, _PIECE)
    return float(_inner_products(*pieces).sum()) + float(a[even:].dot(b[even:]))


def _one_by_one(a: Array, b: Array) -> Array:
    return np.array([x.dot(y) for x, y in zip(a, b, strict=True)])


#: Inner products of rows; NumPy has them since its second version.
_inner_products: Callable[[Array, Array], Array] = getattr(np, "vecdot", _one_by_one)


def leading_bits(numbers: Array) -> Array:
    """The first half of the bits of each number: products of two such numbers are exact."""
    spread = numbers * (2.0**27 + 1.0)
    return np.asarray(spread - (spread - numbers))


def exact_terms(a: Vector, b: Vector) -> list[float]:
    """Numbers that add up to the inner product of two vectors exactly."""
    high_a, high_b = leading_bits(a), leading_bits(b)
    low_a, low_b = a - high_a, b - high_b
    pairs = ((high_a, high_b), (high_a, low_b), (low_a, high_b), (low_a, low_b))
    return [number for one, other in pairs for number in (one * other).tolist()]


def squares(columns: Array) -> Vector:
    """Squared lengths of columns."""
    if columns.shape[1] == 1:
        return np.array([dot(columns[:, 0], columns[:, 0])])
    return np.asarray(np.einsum("ij,ij->j", columns, columns))


def norm(a: Vector) -> float:
    """``|a|``."""
    return sqrt(dot(a, a))
