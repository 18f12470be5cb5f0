"""Where to cut scores into two classes."""

from __future__ import annotations

import numpy as np

from spgls.base.types import Vector

__all__ = ["best_cut"]

#: Sums of weights that differ by less than this part are the same.
_SAME = 1e-12


def best_cut(score: Vector, y: Vector, weight: Vector) -> float:
    """The threshold that puts the largest weight of rows into their class.

    Zero where it is as good as any, else the middle of the nearest interval that is.

    Parameters
    ----------
    score, y, weight : ndarray of shape (m,)
        Scores, labels -1 and 1, and weights.
    """
    levels, place = np.unique(score, return_inverse=True)
    # What is gained by putting a level, and all below it, into the first class.
    gain = np.cumsum(np.bincount(place, weights=-y * weight))
    gain = np.concatenate([[0.0], gain])
    best = gain >= gain.max() - _SAME * weight.sum()
    low = np.concatenate([[-np.inf], levels])[best]
    high = np.concatenate([levels, [np.inf]])[best]
    if ((low <= 0.0) & (high > 0.0)).any():
        return 0.0
    nearest = int(np.argmin(np.where(low > 0.0, low, -high)))
    if np.isinf(low[nearest]):
        # One below the lowest score, in the units of the labels.
        return float(high[nearest] - 1.0)
    if np.isinf(high[nearest]):
        return float(low[nearest])
    middle = float(low[nearest] + (high[nearest] - low[nearest]) / 2.0)
    # Between neighbours there is no middle.
    return middle if middle < high[nearest] else float(low[nearest])
