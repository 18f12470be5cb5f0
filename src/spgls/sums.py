"""What is left of rows once they are added up: where they are counted from, and how large they are.

Sums are second moments ``B'B``, or a triangular factor of ``B``, for ``B = S^{1/2}[X, y, z, 1]``.
The ones are there where the learner has an intercept; a common origin is then subtracted from rows,
labels and goals before anything is multiplied, so that large means cost no digits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import qr

from spgls._types import Array, Vector

__all__ = ["Origin", "Sizes", "triangle"]

#: From labels, goals and ones to labels, goals, the gap between them, and ones.
_WITH_GAP = np.array([[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, -1.0, 0.0], [0.0, 0.0, 0.0, 1.0]])


class Origin(NamedTuple):
    """What is subtracted from every row, from the labels and from the goals."""

    row: Vector | None = None
    y: float = 0.0
    z: float = 0.0

    def column_sizes(self, after: Vector, weight: float) -> Vector:
        """Sizes of the columns as they came, from those after the subtraction."""
        return after if self.row is None else np.hypot(after, np.sqrt(weight) * self.row)

    def intercepts(self, coef: Array, at_origin: Vector) -> Vector:
        """Intercepts for rows and labels as they came, from those for rows and labels less this."""
        return at_origin + self.y - (0.0 if self.row is None else self.row @ coef)


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
    def from_rows(cls, rows: Array, origin: Origin) -> Sizes:
        """From rows of labels, goals and ones that have the right moments."""
        rows = rows @ _WITH_GAP[: rows.shape[1]]
        return cls._from_gram(rows.T @ rows, origin)

    @classmethod
    def from_moments(cls, moment: Array, origin: Origin) -> Sizes:
        """From second moments of labels, goals and ones."""
        part = _WITH_GAP[: len(moment)]
        return cls._from_gram(part.T @ moment @ part, origin)

    @classmethod
    def _from_gram(cls, gram: Array, origin: Origin) -> Sizes:
        squares, sums, weight = np.diag(gram)[:3], gram[3, :3], float(gram[3, 3])
        away = np.array([origin.y, origin.z, origin.y - origin.z])
        with np.errstate(over="ignore"):
            raw = np.maximum(squares + away * (2 * sums + weight * away), 0.0)
        centred = np.maximum(squares - sums * (sums / weight) if weight else squares, 0.0)
        (y, z, _), (centred_y, centred_z, _) = np.sqrt([raw, centred]).tolist()
        return cls(y, z, centred_y, centred_z, float(raw[2]), weight)


def triangle(rows: Array) -> Array:
    """Triangular factor of some rows: as few rows as there are columns, with the same moments.

    The rows given may be overwritten.
    """
    (factor,) = qr(rows, mode="r", overwrite_a=True, check_finite=False)
    return np.array(factor[: rows.shape[1]])
