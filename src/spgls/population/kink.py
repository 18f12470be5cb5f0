"""Where labels and goals cancel: nearly nothing is left to fit, and the loss has a kink or nearly.

At ``q = p/a`` the target is ``q y + (1 - q) z``. Where goals are nearly a multiple of the labels,
all of it vanishes at one norm; the coefficients turn round there, and the loss has a minimum on
either side that points of a grid may miss.
"""

from __future__ import annotations

from math import exp, isclose

import numpy as np

from spgls.base.types import Vector
from spgls.population.section import Sections

__all__ = ["cancelling", "points_around"]

#: Squared sine of the angle between goals and labels less goals below which they count as parallel.
_ALIKE = 0.2
#: Where to look on either side of a kink, in log t.
_OFFSETS = np.array([1e-4, 1e-3, 1e-2, 0.03, 0.1, 0.3])
_HALVINGS = 30
#: Levels that differ by less than this share are one.
_SAME = 1e-12


def cancelling(sections: Sections) -> list[float]:
    """Values of ``q`` at which the target all but vanishes, on one part of the data or another."""
    _, z, delta = sections.base
    products = np.array([z * z, z * delta, delta * delta])
    weights = np.array([sections.d, np.ones_like(sections.d), 1.0 / sections.d])
    levels: list[float] = []
    for zz, zd, dd in weights.dot(products.T).tolist():
        if zd < 0.0 and zd * zd > (1.0 - _ALIKE) * zz * dd > 0.0 and -zd > dd:
            level = -zd / dd
            # Of a single column all are the same.
            if not any(isclose(level, other, rel_tol=_SAME) for other in levels):
                levels.append(level)
    return levels


def points_around(sections: Sections, t: Vector) -> Vector:
    """``t`` on either side of the kinks within a grid."""
    levels = cancelling(sections)
    if not levels:
        return np.empty(0)
    m = sections.groups.at(t)
    q = m.p / m.a
    found = [np.empty(0)]
    for level in levels:
        for cell in np.flatnonzero((q[1:] > level) != (q[:-1] > level)).tolist():
            low, high = np.log(t[cell : cell + 2]).tolist()
            rises = bool(q[cell + 1] > q[cell])
            for _ in range(_HALVINGS):
                middle = 0.5 * (low + high)
                here = sections.groups.at(exp(middle))
                low, high = (low, middle) if (here.p > level * here.a) == rises else (middle, high)
            found += [high - _OFFSETS, high + _OFFSETS]
    around = np.exp(np.concatenate(found))
    return np.asarray(around[(around > t[0]) & (around < t[-1])])
