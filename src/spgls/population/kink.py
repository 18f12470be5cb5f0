"""Where labels and goals cancel: nearly nothing is left to fit, and the loss has a kink or nearly.

At ``q = p/a`` the target is ``q y + (1 - q) z``. Where goals are nearly a multiple of the labels,
all of it vanishes at one norm; the coefficients turn round there, and the loss has a minimum on
either side that points of a grid may miss.
"""

from __future__ import annotations

import numpy as np

from spgls._types import Vector
from spgls.population.section import Sections

__all__ = ["cancelling", "points_around"]

#: Squared sine of the angle between goals and labels less goals below which they count as parallel.
_ALIKE = 0.2
#: Where to look on either side of a kink, in log t.
_OFFSETS = np.array([1e-4, 1e-3, 1e-2, 0.03, 0.1, 0.3])
_HALVINGS = 50


def cancelling(sections: Sections) -> list[float]:
    """Values of ``q`` at which the target all but vanishes, on one part of the data or another."""
    found = []
    _, z, delta = sections.base
    for weight in (sections.d, np.ones_like(sections.d), 1.0 / sections.d):
        zz, zd, dd = (float(weight @ part) for part in (z * z, z * delta, delta * delta))
        if zd < 0.0 and zd * zd > (1.0 - _ALIKE) * zz * dd > 0.0 and -zd > dd:
            found.append(-zd / dd)
    return found


def points_around(sections: Sections, t: Vector) -> Vector:
    """``t`` on either side of the kinks within a grid."""
    m = sections.groups.at(t)
    q = m.p / m.a
    found = []
    for level in cancelling(sections):
        cells = np.flatnonzero((q[1:] > level) != (q[:-1] > level))
        if not len(cells):
            continue
        low, high = np.log(t[cells]), np.log(t[cells + 1])
        rises = q[cells + 1] > q[cells]
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            m = sections.groups.at(np.exp(middle))
            beyond = (m.p / m.a > level) == rises
            low, high = np.where(beyond, low, middle), np.where(beyond, middle, high)
        found.append((high + np.concatenate([-_OFFSETS, _OFFSETS])[:, None]).ravel())
    around = np.exp(np.concatenate(found)) if found else np.empty(0)
    return np.asarray(around[(around > t[0]) & (around < t[-1])])
