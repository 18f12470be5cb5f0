"""Spectral reduction on the side of the columns: from singular vectors back to coefficients.

Two engines end in the same coordinates, from what the rows add up to and nothing else. The Gram
engine (:mod:`~spgls.reduction.second_moments`) is an eigen-decomposition: fast, but squaring the
data squares its condition number. The triangular engine (:mod:`~spgls.reduction.triangular`) is a
singular value decomposition that respects columns of very different scale: it resolves what the
data itself resolves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spgls.base.types import Array, Vector
from spgls.reduction.layout import Layout
from spgls.reduction.reduction import Reduction, canonical_direction
from spgls.reduction.sums import Origin

__all__ = ["ColumnReduction", "sizes_with_free"]


@dataclass(frozen=True, eq=False)
class ColumnReduction(Reduction):
    """A reduction whose singular vectors live in the space of the coefficients."""

    vectors: Array  # right singular vectors, one column per coordinate
    free_map: Array  # immutable coefficients are free_map @ [v, s-combination of y and z]
    means: Vector  # of columns, labels and goals less the origin; zero without an intercept
    origin: Origin

    def lift(self, x: Vector, fill: float) -> Vector:
        """``v = V x`` plus a vector that the data sees least, or not at all."""
        v = self.lift_span(x)
        if fill > 0.0 and self.game.nullity:
            v += fill * canonical_direction(self.vectors, inside=False)
        elif fill > 0.0:
            lowest = self.game.sigma == self.game.sigma.min()
            v += fill * canonical_direction(self.vectors[:, lowest], inside=True)
        return v

    def lift_span(self, x: Array) -> Array:
        """``V x``."""
        return np.asarray(self.vectors @ x)

    def free_part(self, v: Array, alpha: float | Vector) -> Array:
        """``F^+[(1+alpha) y - alpha z - A v]`` for the immutable columns."""
        fixed = self.free_map
        n = len(v)
        f_y, f_z = fixed[:, n], fixed[:, n + 1]
        targets = f_y + np.multiply.outer(alpha, f_y - f_z)
        return np.asarray(targets.T - fixed[:, :n] @ v)

    def variation(self, v: Vector) -> tuple[float, float]:
        """``|PA v|^2``, and the same if the columns were perpendicular to each other."""
        along = self.game.sigma * (v @ self.vectors)
        squares = np.square(self.vectors * self.game.sigma).sum(axis=1)
        return float(along @ along), float(np.square(v) @ squares)

    def intercepts_at_origin(self, coef: Array, alpha: Vector) -> Vector:
        """The intercepts for rows and labels less the origin, where they cost no digits."""
        if not self.layout.fit_intercept:
            return np.zeros(len(alpha))
        y, z = self.means[-2:]
        gap = y - z + self.origin.apart
        return np.asarray(y + alpha * gap - self.means[:-2] @ coef)

    def intercepts(self, coef: Array, alpha: Vector) -> Vector:
        """From the means of columns, labels and goals."""
        return self.origin.intercepts(coef, self.intercepts_at_origin(coef, alpha))


def sizes_with_free(layout: Layout, sizes: Vector, free_map: Array) -> Vector:
    """Sizes of priced columns, labels and goals, each with what was subtracted from it.

    A column less its fit on the immutable ones has the rounding of both.
    """
    n, own = layout.columns, sizes
    if layout.price is not None:
        own = sizes[np.append(layout.changeable, [n, n + 1])]
        own[:-2] *= layout.price
    if len(layout.immutable):
        own = own + sizes[layout.immutable].dot(np.abs(free_map))
    return own
