"""What is left of rows once they are added up: where they are counted from, and how large they are.

Sums are second moments ``B'B``, or a triangular factor of ``B``, for ``B = S^{1/2}[X, y, z, 1]``.
The ones are there where the learner has an intercept; a common origin is then subtracted from rows,
labels and goals before anything is multiplied, so that large means cost no digits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, sqrt
from typing import NamedTuple

import numpy as np

from spgls.base.types import Array, Vector
from spgls.matrix import few_rows_with, triangle

__all__ = ["Account", "Origin", "Sizes", "few_rows_with", "triangle"]


class Origin(NamedTuple):
    """What is subtracted from every row, from the labels and from the goals.

    Attributes
    ----------
    row : ndarray of shape (n,), optional
        From every row.
    y, z : float
        From labels and goals.
    gap : float, optional
        How much more from labels than from goals, where that is known better than by the
        difference of two rounded numbers.
    same : bool
        Whether the goals are the labels, number by number.
    lost : float
        Length of what goals were changed by to become the labels.
    """

    row: Vector | None = None
    y: float = 0.0
    z: float = 0.0
    gap: float | None = None
    same: bool = False
    lost: float = 0.0

    def slack(self, labels: float) -> float:
        """What that can have done to the loss of whoever does better than labels of this length.

        Errors change by no more than what is lost.
        """
        return self.lost * (2.0 * labels + self.lost)

    @property
    def apart(self) -> float:
        """How much more was subtracted from labels than from goals."""
        return self.y - self.z if self.gap is None else self.gap

    def column_sizes(self, after: Vector, weight: float) -> Vector:
        """Sizes of the columns as they came, from those after the subtraction."""
        return after if self.row is None else np.hypot(after, np.sqrt(weight) * self.row)

    def intercepts(self, coef: Array, at_origin: Vector) -> Vector:
        """Intercepts for rows and labels as they came, from those for rows and labels less this."""
        return at_origin + self.y - (0.0 if self.row is None else self.row @ coef)


class Account(NamedTuple):
    """How wrong sums may be, where they were not added up at one go from the rows at hand.

    Attributes
    ----------
    sizes : ndarray
        Sizes of columns, labels, goals and, with an intercept, ones: of all that was ever added or
        subtracted, so never less than those of what is left.
    kappa : float
        A second moment is wrong by no more than this times the sizes of both its columns; a column
        of a triangular factor by this times its size.
    """

    sizes: Vector
    kappa: float


@dataclass(frozen=True)
class Sizes:
    """What rounding in a game is measured by.

    Attributes
    ----------
    y, z : float
        Norms of labels and goals, by weight.
    centred_y, centred_z : float
        The same after the intercept explained what it can.
    gap : float
        Squared distance of labels and goals.
    weight : float
        Number of rows, counted by weight; sums without ones do not know it, and say zero.
    """

    y: float
    z: float
    centred_y: float
    centred_z: float
    gap: float
    weight: float

    @classmethod
    def from_moments(cls, moment: Array, origin: Origin) -> Sizes:
        """From second moments of labels, goals and ones."""
        full = np.zeros((3, 3))
        full[: len(moment), : len(moment)] = moment
        (yy, yz, _), (_, zz, _), (sum_y, sum_z, weight) = full.tolist()
        parts = (
            (yy, sum_y, origin.y),
            (zz, sum_z, origin.z),
            (yy - 2 * yz + zz, sum_y - sum_z, origin.apart),
        )
        y, z, gap = (max(0.0, a + o * (2 * b + weight * o)) for a, b, o in parts)
        yy, zz = (max(0.0, a - b * (b / (weight or inf))) for a, b, _ in parts[:2])
        return cls(sqrt(y), sqrt(z), sqrt(yy), sqrt(zz), gap, weight)

    @classmethod
    def from_rows(cls, rows: Array, origin: Origin) -> Sizes:
        """From rows of labels, goals and ones that have the right moments."""
        gap = rows @ np.array([1.0, -1.0, origin.apart])[: rows.shape[1]]
        return replace(cls.from_moments(rows.T @ rows, origin), gap=float(gap @ gap))
