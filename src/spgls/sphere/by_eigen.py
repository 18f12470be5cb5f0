"""The sphere problem for a small dense matrix, by its eigen-decomposition."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spgls.base.types import Array, Vector
from spgls.sphere.fixed_norm import solve_fixed_norm

__all__ = ["DensePoint", "solve_dense"]


class DensePoint(NamedTuple):
    """Minimiser ``r`` of ``r'Hr + 2g'r`` on the unit sphere, and what proves it.

    ``H + multiplier I`` has no negative eigenvalue; ``lowest`` is the smallest one of ``H``, and
    ``vector`` a unit eigenvector of it.
    """

    r: Vector
    multiplier: float
    lowest: float
    vector: Vector


def solve_dense(H: Array, g: Vector) -> DensePoint:
    """Minimise ``r'Hr + 2g'r`` over ``|r| = 1``, in the hard case too.

    Parameters
    ----------
    H : ndarray of shape (k, k)
        Symmetric, of any sign.
    g : ndarray of shape (k,)
        Linear term; zero asks for the lowest eigenvector.

    Examples
    --------
    >>> import numpy as np
    >>> from spgls.sphere import solve_dense
    >>> point = solve_dense(np.diag([2.0, 5.0]), np.array([0.0, 1.5]))
    >>> point.multiplier, point.r.round(3)
    (-2.0, array([-0.866, -0.5  ]))
    """
    values, vectors = np.linalg.eigh(H)
    point = solve_fixed_norm(values, -(vectors.T @ g), 1.0, 0)
    r = vectors @ point.v
    if point.fill:
        # The hard case has two optima: the one whose first entry is smaller.
        r -= np.copysign(point.fill, vectors[0, 0]) * vectors[:, 0]
    return DensePoint(r / np.linalg.norm(r), point.nu, float(values[0]), vectors[:, 0])
