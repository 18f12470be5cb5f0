"""``A'PA`` by eliminating the free columns from squares, with what that is wrong by.

Let ``G = D F'F D`` and ``C = D F'A``. For any ``X`` at all, with ``R = C - G X``,

    a_i'P a_j = a_i'a_j - C_i'X_j - X_i'R_j - e_i'e_j,      |e_j| <= |R_j| / sigma,

since ``e_j`` is the part of ``a_j - F D X_j`` in the range of ``F``. So ``X`` may come from any
factor, and what is wrong with it shows in ``R``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_solve
from scipy.linalg.blas import dsymm
from scipy.linalg.lapack import dpotrf

from spgls.base.threads import all_blas_threads
from spgls.base.types import Array, Vector
from spgls.matrix.lazy import ScaledMatrix
from spgls.matrix.pieces import block_length
from spgls.matrix.positive import largest_column_sum
from spgls.matrix.projection import FACTORISED, SolvedProjection
from spgls.matrix.squares import sum_rounding

__all__ = ["EliminationError", "eliminated"]

#: What is left of the right-hand sides, over the lengths of columns, that is not worth a second
#: step.
_ENOUGH = 1e-12
#: What is added to the diagonal where columns depend on others, and the least pivot of a factor.
_SHIFT, _PIVOT = 1e-7, 1e-4


class EliminationError(NamedTuple):
    """The largest sizes of what an elimination is wrong by, over the lengths of the columns.

    Attributes
    ----------
    weights : float
        ``|X_j|``.
    rest : float
        ``|R_j|``, with its rounding.
    rounding : float
        Rounding of ``C_i'X_j``, and of ``C`` in it.
    """

    weights: float
    rest: float
    rounding: float

    def entry(self, least: float) -> float:
        """Error of an entry, where no singular value of unit columns is below ``least``."""
        if not least > 0.0:
            return np.inf
        return self.rounding + self.weights * self.rest + (self.rest / least) ** 2


def eliminated(
    matrix: ScaledMatrix, projection: SolvedProjection
) -> tuple[Array, EliminationError] | None:
    """``A'PA`` and its error; None where there is no factor.

    Parameters
    ----------
    matrix : ScaledMatrix
        ``A``.
    projection : SolvedProjection
        ``P``.
    """
    if projection.size > FACTORISED:
        return None
    with all_blas_threads():
        # Squares of all columns are made on the way, which are gone when the factor comes.
        square = matrix.square()
        found = _factor(projection.unit_square)
        if found is None:
            return None
        C, lengths = _crossed(matrix, projection), np.sqrt(np.diagonal(square))
        k, n = C.shape
        # Of a sum over a column of G, whose entries are known to the rounding of their own sums.
        across, down = sum_rounding(k), projection.columns.down
        spread = across * found.longest + float(np.sqrt(k)) * down
        worst = np.zeros(3)
        width = block_length(k)
        for at in range(0, n, width):
            some = slice(at, min(at + width, n))
            X, R = _weights(found, C[:, some], lengths[some])
            square[:, some] -= C.T @ X
            sizes = np.stack([_over(part, lengths[some]) for part in (X, R, C[:, some])])
            sizes[1] += spread * sizes[0] + down + across * sizes[2]
            worst = np.maximum(worst, sizes.max(axis=1))
    if not np.isfinite(worst).all():
        return None
    weights, rest, sides = (float(size) for size in worst)
    rounding = (across * sides + down) * weights
    return (square + square.T) / 2, EliminationError(weights, rest, rounding)


class _Factor(NamedTuple):
    """``G`` and a triangular factor of nearly that, in the memory of one of them.

    Attributes
    ----------
    both : ndarray of shape (k, k)
        The factor, and strictly above its diagonal ``G``.
    diagonal : ndarray of shape (k,)
        That of ``G``.
    longest : float
        At least the norm of the magnitudes in ``G``.
    """

    both: Array
    diagonal: Vector
    longest: float

    def solve(self, right: Array) -> Array:
        """``G^{-1}``, nearly."""
        return np.asarray(cho_solve((self.both, True), right, check_finite=False))

    def times(self, X: Array) -> Array:
        """``G X``."""
        out = dsymm(1.0, self.both, X, lower=0)
        out += (self.diagonal - np.diagonal(self.both))[:, None] * X
        return np.asarray(out)


def _factor(make: Callable[[], Array]) -> _Factor | None:
    """Of ``G``, or of a little more where columns depend; None where that fails."""
    for shift in (0.0, _SHIFT):
        made = make()
        # Symmetric: by rows is as good as by columns, and needs no copy.
        both = np.asfortranarray(made.T if made.flags.c_contiguous else made)
        diagonal, longest = np.diagonal(both).copy(), largest_column_sum(both)
        both[np.diag_indices(len(both))] += shift
        both, info = dpotrf(both, lower=1, clean=0, overwrite_a=1)
        if info == 0 and float(np.diagonal(both).min()) > _PIVOT:
            return _Factor(both, diagonal, longest)
    return None


def _crossed(matrix: ScaledMatrix, projection: SolvedProjection) -> Array:
    """``D F'A``, some columns at a time."""
    m, n = matrix.shape
    out = np.empty((projection.size, n))
    width = block_length(m)
    for at in range(0, n, width):
        some = np.arange(at, min(at + width, n))
        unit = np.zeros((n, len(some)))
        unit[some, some - at] = 1.0
        out[:, some] = projection.along(matrix.apply(unit))
    return out


def _weights(factor: _Factor, C: Array, lengths: Vector) -> tuple[Array, Array]:
    """``X`` and ``C - G X``, by at most two steps."""
    X = factor.solve(C)
    R = C - factor.times(X)
    if (_over(R, lengths) > _ENOUGH).any():
        X += factor.solve(R)
        R = C - factor.times(X)
    return X, R


def _over(part: Array, lengths: Vector) -> Vector:
    """Lengths of columns over others; zero for nothing over nothing."""
    own = np.sqrt(np.einsum("ij,ij->j", part, part))
    empty = np.where(own > 0.0, np.inf, 0.0)
    return np.asarray(np.divide(own, lengths, out=empty, where=lengths > 0.0))
