"""Projections away from the range of free columns ``F``: by a basis, or by least squares.

A basis is dense: many columns of sparse data have none that fits. Then ``P t = t - F u`` comes from
the normal equations of columns at unit length, by conjugate gradients, with a triangular factor
where those are slow. Whatever ``u`` they end in, what is wrong with the result ``r`` is measured:

    P (t - F u) = P t,    and    |(I - P) r| <= |D F'r| / sigma,

with ``D`` the inverse lengths of the columns and ``sigma`` no larger than the least singular value
of ``F D``. So an iteration that ends too soon is inaccurate, and known to be.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy.linalg import solve_triangular

from spgls.base.threads import all_blas_threads
from spgls.base.types import EPS, Array, Vector
from spgls.base.vector import norm
from spgls.matrix.conjugate import column_lengths, descend
from spgls.matrix.free_columns import Columns
from spgls.matrix.pieces import cuts
from spgls.matrix.positive import certain_factor, certain_in_single, square_unit
from spgls.matrix.spanned import spanning_columns
from spgls.matrix.unit_columns import UnitColumns

__all__ = ["BasisProjection", "Projection", "SolvedProjection"]

#: Rows that are projected at a time.
_PIECE = 2**16
#: What is left along unit columns, over the length of what was projected, that is aimed at, unless
#: four times the rounding of the products that measure it is more.
_TARGET = 1e-13
#: Times that an iteration is begun anew from a fresh residual, and what each may leave of it in
#: single precision.
_ROUNDS, _DIGITS = 6, 1e-6
#: Products after which an iteration is slow, and after which it is given up.
_SLOW, _MOST = 250, 2000
#: Most columns that are squared and factorised.
FACTORISED = 3200
#: What a factor is to prove of the least eigenvalue of squared unit columns, over what it seems to
#: be, and least eigenvalues for which single precision is tried.
_SHARES, _CLEAR = (0.5, 1e-1, 1e-2, 1e-4, 1e-6), 0.02
#: The same of columns that are left when dependent ones are taken away, about which less is known.
_SOME = (1e-1, 1e-2, 1e-3, 1e-4, 1e-6)
#: What is taken off the diagonal for a factor that only has to precondition.
_SHIFT = 1e-7


class Projection(Protocol):
    """The projector ``P`` onto the complement of a range, nearly."""

    @property
    def rank(self) -> int:
        """Dimension of the range, at most."""
        ...

    def apply(self, t: Array) -> Array:
        """``P t`` for a vector or a block of columns."""
        ...

    def part(self, t: Vector) -> tuple[float, float]:
        """``|t - P t|``, and what that can be wrong by."""
        ...


class BasisProjection:
    """``I - Q Q'``, applied twice.

    Parameters
    ----------
    basis : ndarray of shape (m, f)
        Orthonormal columns ``Q``.
    """

    def __init__(self, basis: Array) -> None:
        self.basis = basis

    @property
    def rank(self) -> int:
        """Columns of the basis."""
        return int(self.basis.shape[1])

    def apply(self, t: Array) -> Array:
        """``P t``; what rounding left along the basis is removed once more."""
        return self.remove(np.array(t))

    def remove(self, t: Array) -> Array:
        """``P t``, in the memory of ``t``."""
        for _ in range(2):
            along = self.basis.T @ t
            for rows in cuts(len(t), _PIECE):
                t[rows] -= self.basis[rows] @ along
        return t

    def part(self, t: Vector) -> tuple[float, float]:
        """``|Q't|``."""
        return norm(self.basis.T @ t), 0.0


class SolvedProjection:
    """``t - F u`` with ``u`` from least squares, never denser than ``F`` itself.

    Parameters
    ----------
    columns : Columns
        ``F``.

    Attributes
    ----------
    leak : float
        Largest ``|D F'r|/|t|`` of all results so far.
    stretch : float
        Largest ``sum_j |f_j||u_j|/|t|``.
    poor : bool
        Whether some result was worse than what was aimed at.
    """

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        lengths = columns.lengths
        self._scale = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0.0)
        self._unit, self._single = UnitColumns(columns, self._scale), columns.in_single(self._scale)
        self._factor: Array | None = None
        self._lowest, self._target = 1.0, max(_TARGET, 4 * columns.down)
        self.leak = self.stretch = 0.0
        self.poor = False

    @cached_property
    def rank(self) -> int:
        """Columns that are not zero, which is more than the rank if some depend on others."""
        return int(np.count_nonzero(self._scale))

    def apply(self, t: Array) -> Array:
        """``P t``."""
        return self.split(t)[0]

    def part(self, t: Vector) -> tuple[float, float]:
        """Nothing, for what is projected already, up to a bound of what is left of it."""
        if not self.least:
            rest = self.apply(t)
            return norm(t - rest), 0.0
        along = norm(self.along(t)) + self.columns.down * norm(t)
        return 0.0, along / self.least

    def wrong(self, least: float) -> float:
        """``|P~t - P t|/|t|`` of all results so far, at most.

        Parameters
        ----------
        least : float
            What no singular value of the columns at unit length is below.
        """
        if not least > 0.0:
            return np.inf
        # A result is no longer than what was projected and what is left along the columns.
        leak = self.leak + self.columns.down * (1.0 + self.leak / least)
        return self.columns.across * (1.0 + self.stretch) + leak / least

    def split(self, t: Array, start: Array | None = None) -> tuple[Array, Array]:
        """``P t``, and ``u`` with ``t - P t = F u``, of a vector or of columns.

        Parameters
        ----------
        t : ndarray of shape (m,) or (m, w)
            What is projected.
        start : ndarray of shape (k,) or (k, w), optional
            What ``u`` may be close to.
        """
        block = t.reshape(len(t), -1)
        size = column_lengths(block)
        u, rest = np.zeros((len(self._scale), block.shape[1])), block
        if start is not None:
            u += start.reshape(u.shape) * self.columns.lengths[:, None]
            rest = block - self._unit.apply(u)
        along = self.along(rest)
        left = column_lengths(along)
        for _ in range(_ROUNDS):
            if not (left > self._target * size).any():
                break
            u += self._solve(along, 0.5 * self._target * size)
            # Afresh: what a recurrence says of it is worth no more than its digits.
            rest = block - self._unit.apply(u)
            along = self.along(rest)
            now = column_lengths(along)
            better, left = (now < 0.5 * left).any(), now
            if not better and self._single is None:
                break
            # Digits that single precision does not have are left to double.
            self._single = self._single if better else None
        self._remember(size, left, u)
        u *= self._scale[:, None]
        return rest.reshape(t.shape), u.reshape(-1, *t.shape[1:])

    def _remember(self, size: Vector, left: Vector, u: Array) -> None:
        """Keep what the worst result was wrong by."""
        if np.isnan(left).any():
            self.leak, self.poor = np.inf, True
            return
        there = size > 0.0
        if there.any():
            leak = float((left[there] / size[there]).max())
            stretch = float((np.abs(u).sum(axis=0)[there] / size[there]).max())
            self.leak, self.stretch = max(self.leak, leak), max(self.stretch, stretch)
            self.poor = self.poor or leak > 10 * self._target

    def _solve(self, along: Array, goal: Vector) -> Array:
        """Conjugate gradients on ``D F'F D``, all columns at once; with a factor where slow."""
        if self._single is not None:
            within = np.fmax(goal, _DIGITS * column_lengths(along))
            found = descend(self._single, along, within, _SLOW)
            self._lowest = min(self._lowest, found.lowest)
            if not found.slow:
                return found.u
            self._single = None
        u, left = np.zeros_like(along), along
        if self._factor is None:
            u, left, slow, lowest = descend(self._unit, along, goal, _SLOW)
            self._lowest = min(self._lowest, lowest)
            if not slow:
                return u
            if len(along) <= FACTORISED:
                self._factor = self._preconditioner()
        more = descend(self._unit, left, goal, _MOST, self._precondition).u
        return u + more

    @property
    def _precondition(self) -> Callable[[Array], Array] | None:
        return None if self._factor is None else self._twice

    def _twice(self, along: Array) -> Array:
        """``(L L')^{-1}``."""
        half = solve_triangular(self._factor, along, lower=True, check_finite=False)
        whole = solve_triangular(self._factor, half, lower=True, trans=1, check_finite=False)
        return np.asarray(whole)

    def along(self, t: Array) -> Array:
        """``D F't``."""
        return self._unit.cross(t)

    @property
    def size(self) -> int:
        """Number of columns."""
        return len(self._scale)

    def product(self, u: Vector) -> Vector:
        """``D F'F D u``."""
        return np.asarray(self.along(self._unit.apply(u)))

    @cached_property
    def least(self) -> float:
        """What no singular value of the columns at unit length is below; zero if not shown.

        Shown by a factor, of columns that are not too many.
        """
        if self.size > FACTORISED:
            return 0.0
        m, k = self.columns.shape
        # Of sparse columns, entries are added one by one, and the square is wrong by that too.
        error = 2 * k * square_unit(m, k) + 4 * k * EPS + float(np.sqrt(k)) * self.columns.down
        with all_blas_threads():
            if self._lowest > _CLEAR:
                single = self.columns.in_single(self._scale)
                more = 0.0 if single is None else single.square_error()
                shown = certain_in_single(
                    self.unit_square(np.float32), error + more, _SHARES[0] * self._lowest
                )
                if shown > 0.1 * self._lowest:
                    return float(np.sqrt(shown))
            trials = [share * self._lowest for share in _SHARES]
            found = certain_factor(self.unit_square, error, trials)
            if found is None:
                found = self._without_dependent(error)
        return 0.0 if found is None else float(np.sqrt(found[1]))

    def _without_dependent(self, error: float) -> tuple[Array, float] | None:
        """The same of some columns that span all: they see no less of what is left along any."""
        kept = spanning_columns(
            self.unit_square(), self._scale, self.columns.lead, self.columns.combine
        )
        if kept is None:
            return None
        some = np.ix_(kept, kept)
        return certain_factor(lambda: self.unit_square()[some], error, _SOME)

    def _preconditioner(self) -> Array | None:
        with all_blas_threads():
            found = certain_factor(self.unit_square, 0.0, (-_SHIFT,))
        return None if found is None else found[0]

    def unit_square(self, dtype: type = np.float64) -> Array:
        """``D F'F D``, with ones for columns of zeros, which have no part in the range."""
        square = self.columns.square(self._scale, dtype)
        square[np.diag_indices(len(square))] += self._scale == 0.0
        return square
