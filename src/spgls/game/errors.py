"""Mean squared errors on rows as they are and on rows that providers moved, from three means.

Providers who close the share ``p`` of the gap to their goal turn a prediction ``a`` into
``(1 - p) a + p z``. The error on moved rows is therefore a convex quadratic in ``p``, whose
coefficients are means over the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from spgls.base.types import Array, Vector

__all__ = ["ErrorMeans", "error_from_goals", "error_of_mean", "pull_of"]


@dataclass(frozen=True, eq=False)
class ErrorMeans:
    """Means from which the error at every pull follows, of one model or of several.

    Parameters
    ----------
    honest : float or ndarray of shape (k,)
        Mean of ``(a - y)^2``.
    cross : float or ndarray of shape (k,)
        Mean of ``(a - y) (z - y)``.
    goal : float or ndarray of shape (k,)
        Mean of ``(z - y)^2``: the error of whoever predicts the goals.
    """

    honest: Any
    cross: Any
    goal: Any

    @classmethod
    def of(cls, predicted: Array, y: Vector, z: Vector, weight: Array | None) -> ErrorMeans:
        """The means of predictions (..., m) over rows, under one or several sets of weights."""
        error, wish = predicted - y, z - y
        rows = np.ones(len(y)) if weight is None else weight
        total = rows.sum(axis=-1)
        products = (error**2, error * wish, wish**2)
        return cls(*(np.einsum("...i,...i", rows, one) / total for one in products))

    def at(self, pull: Any) -> Any:
        """Error where everyone closes the share ``pull`` of its gap.

        Parameters
        ----------
        pull : float or ndarray
            From zero to one; it broadcasts with the means.
        """
        # Three terms that are exact at both ends, where a difference of large ones would not be.
        rest = 1.0 - pull
        mixed = rest**2 * self.honest + 2.0 * rest * pull * self.cross + pull**2 * self.goal
        return np.maximum(mixed, 0.0)

    def pull_reaching(self, level: Any) -> Any:
        """Smallest pull at which the error reaches a level above the honest one; NaN if none does.

        Parameters
        ----------
        level : float or ndarray of shape (k,)
            Errors, none below the honest one.
        """
        slope = 2.0 * (self.cross - self.honest)
        bend = np.maximum(self.honest - 2.0 * self.cross + self.goal, 0.0)
        missing = np.asarray(level - self.honest)
        root = np.sqrt(slope**2 + 4.0 * bend * missing)
        # The quadratic is convex and starts below the level, so it crosses it once if at all.
        with np.errstate(divide="ignore", invalid="ignore"):
            rising, falling = 2.0 * missing / (slope + root), (root - slope) / (2.0 * bend)
        pull = np.where(missing > 0.0, np.where(slope >= 0.0, rising, falling), 0.0)
        return np.where(self.goal >= level, np.minimum(pull, 1.0), np.nan)


def pull_of(reach: Any, gamma: Any) -> Any:
    """Share of the gap that providers close against coefficients of a squared priced norm."""
    return np.asarray(reach / (reach + gamma))


def error_of_mean(y: Vector, weight: Vector | None) -> float:
    """Mean squared error of predicting the mean label."""
    return float(np.average((y - np.average(y, weights=weight)) ** 2, weights=weight))


def error_from_goals(y: Vector, z: Vector, weight: Vector | None) -> float:
    """Mean squared error of the best affine function of the goals: "y from z alone"."""
    label, wish = y - np.average(y, weights=weight), z - np.average(z, weights=weight)
    wishes = float(np.average(wish**2, weights=weight))
    slope = float(np.average(label * wish, weights=weight)) / wishes if wishes else 0.0
    return float(np.average((label - slope * wish) ** 2, weights=weight))
