"""What few columns allow: the curvature of the Lagrangian from squared data, proved.

``M = D (B + nu) D`` with ``D`` such that its diagonal is one has entries that are known to rounding
of their own columns, whatever the columns' scales. With ``e`` a bound of ``|M~ - M|`` and
``M~ = U diag(l) U'``,

    rho'(B + nu)^{-1} rho <= sum_i (U'D rho)_i^2/(l_i - e),      if every l_i > e.

It serves multipliers of either sign, where a Krylov space alone would have to guess. Of more
columns a triangular factor takes the place of the eigenvectors: if ``M~ - (e + f + d)`` has one,
``L``, with ``f`` a bound of its own rounding, then ``M - d`` exceeds ``L L'``, and

    rho'(B + nu)^{-1} rho <= |L^{-1} D rho|^2,      and no eigenvalue of M is below d.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from math import sqrt
from typing import TypeAlias

import numpy as np
from scipy.linalg import LinAlgError, cho_solve, eigh, solve_triangular

from spgls.base.threads import all_blas_threads
from spgls.base.types import Array, Vector
from spgls.matrix import ProjectedMatrix, SolvedMatrix, Work
from spgls.matrix.pieces import block_length, cuts
from spgls.matrix.positive import certain_factor, square_unit
from spgls.matrix.squares import sum_rounding_one_by_one
from spgls.reduction.data import GameData
from spgls.reduction.dependence import independent_columns
from spgls.solvers.iterative.rulers import Rulers

__all__ = ["FEW_COLUMNS", "MOST_COLUMNS", "Curvature", "Metric", "squarable"]

#: Columns that are squared for a proof, and work that may take, in multiplications.
MOST_COLUMNS, _MOST_WORK = 3000, 4e10
#: Columns that are always squared, and whose eigenvectors are found.
FEW_COLUMNS = 400
#: Eigenvalues of more columns, at unit length, are proved to exceed one of these.
_LEAST = (1e-6, 1e-8)
#: Entries of data that is searched for dependent columns.
_EXACT = 1_000_000


Linear: TypeAlias = Callable[[Array], Array]


def squarable(work: Work, most: int = MOST_COLUMNS) -> bool:
    """Whether the columns are few enough."""
    light = work.columns <= FEW_COLUMNS or work.square <= _MOST_WORK
    return 0 < work.columns <= min(most, MOST_COLUMNS) and light


class Metric:
    """A bound of quadratic forms of ``(B + nu)^{-1}``.

    Parameters
    ----------
    scale : ndarray of shape (k,)
        ``D``.
    half : callable
        ``M^{-1/2} b``, or something longer, of columns ``b``.
    whole : callable
        ``M^{-1} b``, nearly.
    least : float
        What no eigenvalue of ``M`` is below.
    """

    def __init__(self, scale: Vector, half: Linear, whole: Linear, least: float) -> None:
        self._scale, self._half, self._whole, self._least = scale, half, whole, least

    def norm(self, rho: Array) -> Vector:
        """``(rho'(B + nu)^{-1} rho)^{1/2}`` at most, of a vector or of columns."""
        scaled = self.root(rho)
        return np.asarray(np.sqrt(np.einsum("i...,i...->...", scaled, scaled)))

    def root(self, rho: Array) -> Array:
        """Something whose inner products are at least those in ``(B + nu)^{-1}``."""
        scale = self._scale if rho.ndim == 1 else self._scale[:, None]
        return self._half(scale * rho)

    def solved(self, rho: Array) -> Array:
        """``(B + nu)^{-1} rho`` of columns, nearly."""
        scale = self._scale[:, None]
        return np.asarray(scale * self._whole(scale * rho))

    @property
    def floor(self) -> float:
        """What no eigenvalue of ``B + nu`` is below."""
        return self._least / float(np.square(self._scale).max())

    def spread(self, errors: Array) -> Vector:
        """:meth:`norm` of anything whose components are no larger than these."""
        scale = self._scale if errors.ndim == 1 else self._scale[:, None]
        scaled = scale * errors
        square = np.einsum("i...,i...->...", scaled, scaled)
        return np.asarray(np.sqrt(square / self._least))


class Curvature:
    """``A'PA`` of data with few columns.

    Parameters
    ----------
    data : GameData
        The data; it is read once.
    rulers : Rulers
        What rounding on it is measured by.
    """

    def __init__(self, data: GameData, rulers: Rulers) -> None:
        m, n = data.projected.shape
        self._data, self._rulers = data, rulers
        matrix = data.projected
        with all_blas_threads():
            if isinstance(matrix, ProjectedMatrix):
                # What cancels is within the rounding allowed for, which is that before projection.
                self._square = matrix.matrix.square()
                for rows in cuts(n, block_length(n)):
                    self._square[rows] -= matrix.overlap[rows] @ matrix.overlap.T
            else:
                self._square = matrix.square()
        # Squares, less those of overlaps, of columns that may have been rounded themselves.
        self._unit = square_unit(m, n) + sum_rounding_one_by_one(data.matrix)
        self._unit += rulers.down + rulers.turn + 3.0 * rulers.blur
        self._rough = 0.0
        if isinstance(matrix, SolvedMatrix):
            self._rough = matrix.square_error(rulers.least)
        targets, _ = data.projected_targets
        z = targets[:, 1]
        self._p_z = data.projected.cross(z)
        self._zz = float(z @ z)

    def alone(self, nu: float) -> Metric | None:
        """Metric of ``A'PA + nu``; None where that is not certainly positive."""
        return self._certain(lambda: self._metric(self._square, self._rulers.columns, nu))

    @cached_property
    def at_zero(self) -> tuple[np.ndarray, Metric | None]:
        """Columns that span all, and the metric of ``A'PA`` on them; None if it is not known.

        Without a multiplier only the range counts, so columns that others span may be left out.
        """
        every = np.arange(len(self._square))
        whole = self.alone(0.0)
        if whole is not None:
            return every, whole
        layout, n = self._data.layout, self._data.matrix.shape[1]
        if self._data.matrix.shape[0] * n > _EXACT or layout.exact is not None:
            return every, None
        X = self._data.matrix.apply(np.eye(n))
        if self._data.weight is not None:
            X = X[self._data.weight > 0.0]
        free = X[:, layout.immutable]
        if layout.fit_intercept:
            free = np.column_stack([free, np.ones(len(X))])
        kept = independent_columns(X[:, layout.changeable], free)
        if kept is None:
            return every, None
        some = np.array(kept, dtype=int)
        return some, self._metric(self._square[np.ix_(some, some)], self._rulers.columns[some], 0.0)

    def with_goal(self, nu: float, gamma: float) -> Metric | None:
        """Metric of ``B + nu`` for a strength."""
        return self._certain(lambda: self._bordered(nu, gamma))

    def _bordered(self, nu: float, gamma: float) -> Metric | None:
        n, reach = len(self._square), sqrt(gamma)
        B = np.empty((n + 1, n + 1))
        B[:-1, :-1] = self._square
        B[-1, :-1] = B[:-1, -1] = self._p_z / reach
        B[-1, -1] = self._zz / gamma
        return self._metric(B, np.append(self._rulers.columns, self._rulers.z / reach), nu)

    @cached_property
    def _spectrum(self) -> tuple[Vector, Array]:
        values, vectors = eigh(self._square, check_finite=False, driver="evd")
        return values, vectors

    @property
    def many(self) -> bool:
        """Whether eigenvectors would take too long."""
        return len(self._square) > FEW_COLUMNS

    def seen(self, x: Vector, cut: float) -> Vector:
        """``x`` less its part along eigenvalues below a share of the largest."""
        values, vectors = self._spectrum
        kept = vectors[:, values > cut * values[-1]]
        return np.asarray(kept @ (kept.T @ x))

    def _certain(self, metric: Callable[[], Metric | None]) -> Metric | None:
        """A metric, from more accurate squares where quick ones show nothing."""
        found = metric()
        matrix = self._data.projected
        if found is not None or not self._rough > 0.0 or not isinstance(matrix, SolvedMatrix):
            return found
        self._square, self._rough = matrix.accurate_square(), 0.0
        return metric()

    def _metric(self, B: Array, sizes: Vector, nu: float) -> Metric | None:
        diagonal = np.diagonal(B) + nu
        if not diagonal.min(initial=np.inf) > 0.0 or not np.isfinite(diagonal).all():
            return None
        # Little is left of a diagonal at the lowest multipliers, with the error of all of it.
        scale = 1.0 / np.sqrt(np.diagonal(B) + abs(nu))
        M = _scaled(B, diagonal, scale)
        error = (self._unit + self._rough) * float(np.square(sizes * scale).sum() + len(B))
        if not np.isfinite(error) or not np.isfinite(M).all():
            return None
        if not len(B):
            return Metric(scale, lambda b: b, lambda b: b, np.inf)
        if len(B) <= FEW_COLUMNS + 1:
            return _by_eigen(M, scale, error)
        with all_blas_threads():
            return _by_factor(M, lambda: _scaled(B, diagonal, scale), scale, error)


def _scaled(B: Array, diagonal: Vector, scale: Vector) -> Array:
    """``D B D`` with another diagonal in ``B``."""
    M = B * scale
    M *= scale[:, None]
    np.fill_diagonal(M, diagonal * scale**2)
    return M


def _by_eigen(M: Array, scale: Vector, error: float) -> Metric | None:
    """The metric of a matrix that is known up to an error, its diagonal at most one."""
    try:
        values, vectors = eigh(M, check_finite=False, driver="evd")
    except LinAlgError:
        return None
    values = values - error
    if not values[0] > 0.0:
        return None
    turned = vectors.T / np.sqrt(values)[:, None]
    return Metric(
        scale,
        lambda b: np.asarray(turned @ b),
        lambda b: np.asarray(turned.T @ (turned @ b)),
        float(values[0]),
    )


def _by_factor(M: Array, make: Callable[[], Array], scale: Vector, error: float) -> Metric | None:
    """The same for more columns; ``M`` is overwritten, and made again where that was in vain."""
    first = [M]
    found = certain_factor(lambda: first.pop() if first else make(), error, _LEAST)
    if found is None:
        return None
    factor, least = found

    def half(b: Array) -> Array:
        return np.asarray(solve_triangular(factor, b, lower=True, check_finite=False))

    def whole(b: Array) -> Array:
        return np.asarray(cho_solve((factor, True), b, check_finite=False))

    return Metric(scale, half, whole, least)
