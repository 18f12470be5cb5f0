"""Inner products of long vectors, away from the threads of BLAS, and numbers by halves."""

from __future__ import annotations

from math import sqrt

import numpy as np

from spgls.base.types import Array, Vector

__all__ = ["dot", "leading_bits", "norm"]


#: Entries of a piece that BLAS multiplies in the calling thread.
_PIECE = 8192


def dot(a: Vector, b: Vector) -> float:
    """``a'b``.

    OpenBLAS wakes its threads from ten thousand entries on, which takes longer than the product,
    and leaves them spinning where the data's own kernels want to run. So it gets pieces.
    """
    if len(a) <= _PIECE or not (isinstance(a, np.ndarray) and isinstance(b, np.ndarray)):
        return float(a.dot(b))
    total = 0.0
    for at in range(0, len(a), _PIECE):
        total += float(a[at : at + _PIECE].dot(b[at : at + _PIECE]))
    return total


def leading_bits(numbers: Array) -> Array:
    """The first half of the bits of each number: products of two such numbers are exact."""
    spread = numbers * (2.0**27 + 1.0)
    return np.asarray(spread - (spread - numbers))


def norm(a: Vector) -> float:
    """``|a|``."""
    return sqrt(dot(a, a))
