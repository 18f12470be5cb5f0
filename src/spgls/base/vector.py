"""Inner products of long vectors, away from the threads of BLAS."""

from __future__ import annotations

from math import sqrt

import numpy as np

from spgls.base.types import Vector

__all__ = ["dot", "norm"]


def dot(a: Vector, b: Vector) -> float:
    """``a'b``.

    OpenBLAS wakes its threads from ten thousand entries on, which takes longer than the product,
    and leaves them spinning where the data's own kernels want to run.
    """
    return float(np.einsum("i,i->", a, b))


def norm(a: Vector) -> float:
    """``|a|``."""
    return sqrt(dot(a, a))
