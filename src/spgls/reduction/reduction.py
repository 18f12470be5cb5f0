"""What a reduction hands to a solver: the small game, the way back, and how far to trust it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.linalg import lapack

from spgls.base.types import EPS, Array, Vector
from spgls.reduction.data import GameData
from spgls.reduction.layout import Layout
from spgls.reduction.reduced import ReducedGame
from spgls.reduction.sums import Sizes

__all__ = ["Reduction", "ReductionByData", "canonical_direction", "eigen", "remainders"]

#: A unit vector whose projection is shorter than this has none worth normalising.
_VANISHED = 1e-7

#: Numbers so many times the rounding of squared data are trusted.
_TRUSTED = 1e6

#: Rounding errors are taken as this many ulps of the quantities they come from.
_ULPS = 8 * EPS
#: How many ulps of coefficients of immutable columns are rounding.
_SOLVED = 16


@dataclass(frozen=True, eq=False)
class Reduction(ABC):
    """A reduced game and the map from its coordinates back to coefficients.

    Attributes
    ----------
    layout : Layout
        What the columns mean.
    game : ReducedGame
        The small problem.
    sizes : Sizes
        What rounding is measured by.
    squared : bool
        Whether the data was squared on the way (a Gram matrix), which squares rounding too.
    scale : ndarray or float
        Size of each column of the priced data before projection, or their common bound.
    raw : ndarray or float
        Size of each column of ``S^{1/2} X`` as it came, or their common bound.
    cut : float
        Squared singular values up to this may have been taken for zero.
    """

    #: Whether the game tells all that may be wrong with it.
    complete: ClassVar[bool] = True

    layout: Layout
    game: ReducedGame
    sizes: Sizes
    squared: bool
    scale: Vector | float
    raw: Vector | float
    cut: float

    @abstractmethod
    def lift(self, x: Vector, fill: float) -> Vector:
        """Priced coefficients from singular coordinates and a norm in the lowest space."""

    @abstractmethod
    def lift_span(self, x: Array) -> Array:
        """Priced coefficients from singular coordinates alone, a vector or a block of columns."""

    def lift_many(self, x: Array, fill: Vector) -> Array:
        """A column of priced coefficients for each row of coordinates, in one product."""
        v = self.lift_span(x.T)
        for i in np.flatnonzero(fill).tolist():
            v[:, i] = self.lift(x[i], float(fill[i]))
        return v

    @abstractmethod
    def free_part(self, v: Array, alpha: float | Vector) -> Array:
        """Best coefficients of the immutable columns for given ``v``, or for each column of it."""

    @property
    def doubt(self) -> float:
        """Squared singular values, and distances from a pole, below this are not to be trusted."""
        return _TRUSTED * EPS * float(np.max(self.scale, initial=0.0)) ** 2 if self.squared else 0.0

    @property
    def reads(self) -> float:
        """Reads of the data that :meth:`intercepts` takes."""
        return 0.0

    @abstractmethod
    def intercepts(self, coef: Array, alpha: Vector) -> Vector:
        """Best intercept of each column of coefficients; zero where the game has none."""

    def roundings(
        self, v: Array, *, s: Vector, c: Vector, nu: Vector, value: Vector, filled: np.ndarray
    ) -> Vector:
        """What rounding in the reduction can have done to the losses of these predictors.

        Bounds on all predictors rest on the game's own account of it.

        Parameters
        ----------
        v : ndarray of shape (n, G)
            Priced coefficients of the optima.
        s, c : ndarray of shape (G,)
            Weights of predictions and of goals in the learner's errors; a ``c`` that rounding may
            have chosen is one.
        nu : ndarray of shape (G,)
            Multipliers.
        value : ndarray of shape (G,)
            Values of the games.
        filled : ndarray of bool
            Whether an optimum has a part that the data does not see.
        """
        game = self.game
        squares = np.square(v).T
        total, scale = squares.sum(axis=1), self.scale
        reach = squares.dot(scale * scale) if isinstance(scale, np.ndarray) else total * scale**2
        size, ulps = self._target_size(c) + np.sqrt(reach) * s, _ULPS + game.rounding.blur
        if self.squared:
            size = size + game.top * np.sqrt(total) * s
            return np.asarray(ulps * size**2 + self.unseen(c, nu))
        return np.asarray(2 * np.sqrt(value) * ulps * size + (ulps * size) ** 2)

    def _target_size(self, c: Vector) -> Vector:
        """``|y| + c|z|`` before projection."""
        return np.asarray(self.sizes.centred_y + c * self.sizes.centred_z)

    def unseen(self, c: Vector, nu: Vector) -> Vector:
        """What directions taken for zero could have explained at the solution's multiplier."""
        game = self.game
        if game.nullity == 0 or self.cut == 0.0:
            return np.zeros(len(c))
        outside = game.r_yy - 2 * c * game.r_yz + c**2 * game.r_zz
        return np.asarray(np.maximum(outside, 0.0) * self.cut / (self.cut + np.maximum(nu, 0.0)))

    def storing_roundings(
        self, coef: Array, intercept: Vector, objective: Vector, s: Vector
    ) -> Vector:
        """What storing predictors, a column each, can have done to their losses."""
        columns = np.broadcast_to(self.raw, len(coef))
        if len(self.layout.immutable):
            # Solved for, by a map that is solved for: more than the last digit is wrong.
            columns = columns.copy()
            columns[self.layout.immutable] *= _SOLVED
        linear = np.sqrt(np.square(columns) @ np.square(coef))
        error = EPS * s * (linear + abs(intercept) * np.sqrt(self.sizes.weight))
        error = error + self.game.rounding.blur * s * linear
        return np.asarray(2 * np.sqrt(np.maximum(objective, 0.0)) * error + error**2)

    def reach_of(self, coef: Vector, intercept: float) -> float:
        """Length of predictions and labels, at most."""
        linear = float(np.abs(self.raw * coef).sum())
        return linear + abs(intercept) * float(np.sqrt(self.sizes.weight)) + float(self.sizes.y)

    def evaluation_rounding(
        self, coef: Vector, intercept: float, objective: float, *, s: float, c: float
    ) -> float:
        """Bound on what rounding can have done to an objective measured on the data."""
        linear = float(np.linalg.norm(self.raw * coef))
        if not linear < np.inf:
            # Its square leaves the range of double precision before it does.
            linear = float(np.abs(self.raw * coef).sum())
        blurred = self.game.rounding.blur * s * linear
        linear += abs(intercept) * np.sqrt(self.sizes.weight)
        error = _ULPS / 2 * (s * linear + self.sizes.y + c * self.sizes.z) + blurred
        return float(2 * np.sqrt(objective) * error + error**2)


@dataclass(frozen=True, eq=False)
class ReductionByData(Reduction):
    """A reduction whose way back to coefficients goes through the data."""

    data: GameData

    def free_part(self, v: Array, alpha: float | Vector) -> Array:
        """Least squares of what ``v`` leaves, on intercept and immutable columns."""
        return self.data.free_coefficients(v, alpha)

    @property
    def reads(self) -> float:
        """One for the mean of the rows."""
        return float(self.layout.fit_intercept)

    def intercepts(self, coef: Array, alpha: Vector) -> Vector:
        """From the mean of the rows."""
        return self.data.best_intercepts(coef, alpha)


def eigen(gram: Array) -> tuple[Vector, Array]:
    """Eigenvalues, smallest first, and eigenvectors of a symmetric matrix.

    What SciPy's ``eigh`` ends in, without its checks, which take longer than a small problem.
    """
    work, iwork, _ = lapack.dsyevd_lwork(len(gram), lower=1)
    values, vectors, info = lapack.dsyevd(gram, lower=1, lwork=int(work), liwork=iwork)
    if info:
        raise np.linalg.LinAlgError("the eigenvalues of the squared data did not converge.")
    return values, vectors


def remainders(outside: Array, before: Vector) -> tuple[dict[str, float], float]:
    """Gram matrix of what is left of labels and goals; equal ones are made exactly equal.

    ``before`` holds their norms before anything was projected away, the unit of rounding. Also by
    how much that may have changed a loss.
    """
    r = outside.T @ outside
    r_yy, r_yz, r_zz = float(r[0, 0]), float(r[0, 1]), float(r[1, 1])
    bound = float(np.sqrt(r_yy) * np.sqrt(r_zz))
    given = r_yz
    r_yz = min(max(r_yz, -bound), bound)
    if abs(r_zz - r_yz) <= _ULPS * np.sqrt(r_zz) * float(before.sum()):
        r_yz = r_zz
    return {"r_yy": r_yy, "r_yz": r_yz, "r_zz": r_zz}, 2 * abs(r_yz - given)


def canonical_direction(basis: Array, *, inside: bool) -> Vector:
    """Unit vector in the span of orthonormal columns, or orthogonal to it.

    The projection of a vector that no permutation of the columns of the data changes; where that
    vanishes every choice is arbitrary, and the coordinate with most room is taken.
    """

    def project(t: Vector) -> Vector:
        along = basis @ (basis.T @ t)
        return along if inside else t - along

    n = basis.shape[0]
    covered = np.einsum("ij,ij->i", basis, basis)
    widest = np.zeros(n)
    widest[int(np.argmax(covered if inside else 1.0 - covered))] = 1.0
    for start in (np.full(n, 1.0 / np.sqrt(n)), widest):
        direction = project(project(start))
        norm = float(np.linalg.norm(direction))
        if norm > _VANISHED:
            break
    return np.asarray(direction / norm)
