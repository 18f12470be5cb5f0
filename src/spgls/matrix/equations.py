"""Equations with a sparse matrix, factorised once: narrow bands by LAPACK, others by SuperLU.

Neighbours that act on each other give bands, and a product with sparse data is short: ordering the
columns of a band to save fill would take longer than all that is solved with it.
"""

from __future__ import annotations

from typing import Literal, Protocol

import numpy as np
import scipy.sparse as sp
from scipy.linalg import lapack
from scipy.sparse.linalg import splu

from spgls.base.types import Array, Vector

__all__ = ["Factors", "bandwidths", "factors_of"]

Side = Literal["N", "T"]

#: Diagonals of a triangle, at most, that are solved as a band.
_NARROW = 16


class Factors(Protocol):
    """Something that solves equations with a matrix, or with its transpose."""

    def solve(self, b: Array, trans: Side = "N") -> Array:
        """Solve for a vector, or for a block of columns."""


class _Tridiagonal:
    """Three diagonals, by elimination with row exchanges."""

    def __init__(self, below: Vector, diagonal: Vector, above: Vector) -> None:
        *self._parts, info = lapack.dgttrf(below, diagonal, above)
        self.singular = info != 0

    def solve(self, b: Array, trans: Side = "N") -> Array:
        x, _ = lapack.dgttrs(*self._parts, b, trans=trans)
        return np.asarray(x.reshape(b.shape))


class _Triangle:
    """A triangle of few diagonals, stored by them."""

    def __init__(self, band: Array, upper: bool) -> None:
        self._band, self._uplo = band, "U" if upper else "L"
        self.singular = not band[-1 if upper else 0].all()

    def solve(self, b: Array, trans: Side = "N") -> Array:
        x, _ = lapack.dtbtrs(self._band, b, uplo=self._uplo, trans=trans)
        return np.asarray(x.reshape(b.shape))


def bandwidths(matrix: sp.csr_array) -> tuple[int, int]:
    """How far entries are below and above the diagonal."""
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    off = matrix.indices - rows
    return -int(off.min(initial=0)), int(off.max(initial=0))


def factors_of(matrix: sp.csr_array) -> Factors | None:
    """Factorise a square matrix; None if it is singular.

    Parameters
    ----------
    matrix : CSR array
        The matrix.
    """
    below, above = bandwidths(matrix)
    if matrix.shape[0] > 2 and max(below, above) <= 1:
        three = _Tridiagonal(*(matrix.diagonal(k) for k in (-1, 0, 1)))
        return None if three.singular else three
    if min(below, above) == 0 and max(below, above) < _NARROW:
        one = _Triangle(_band(matrix, below, above), upper=below == 0)
        return None if one.singular else one
    try:
        found: Factors = splu(sp.csc_matrix(matrix), permc_spec="MMD_AT_PLUS_A")
    except RuntimeError:
        return None
    return found


def _band(matrix: sp.csr_array, below: int, above: int) -> Array:
    """Diagonals as rows, each entry in its column, the uppermost first."""
    n = matrix.shape[0]
    band = np.zeros((below + above + 1, n), order="F")
    for k in range(-below, above + 1):
        band[above - k, max(k, 0) : n + min(k, 0)] = matrix.diagonal(k)
    return band
