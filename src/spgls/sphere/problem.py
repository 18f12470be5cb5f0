"""The paper's spherically constrained least squares, and its maps to and from the game."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spgls.base.types import Array, Vector
from spgls.base.vector import dot

__all__ = ["GamePoint", "SpherePoint", "from_sphere", "scls_terms", "to_sphere"]


class SpherePoint(NamedTuple):
    """``(w~, alpha~)`` of the paper, on the unit sphere."""

    w: Vector
    alpha: float

    def as_vector(self) -> Vector:
        """``r = (w~, alpha~)``."""
        return np.append(self.w, self.alpha)


class GamePoint(NamedTuple):
    """``(w, alpha)`` of the paper, with ``|w|^2 = gamma alpha``."""

    w: Vector
    alpha: float


def to_sphere(w: Vector, gamma: float) -> SpherePoint:
    """Map coefficients to the unit sphere (the paper's first lemma).

    Parameters
    ----------
    w : ndarray
        Priced coefficients; ``alpha`` is ``|w|^2/gamma``.
    gamma : float
        Strength of the providers.
    """
    alpha = float(w @ w) / gamma
    return SpherePoint(2.0 / (np.sqrt(gamma) * (1.0 + alpha)) * w, (alpha - 1.0) / (alpha + 1.0))


def from_sphere(w: Vector, alpha: float, gamma: float) -> GamePoint:
    """Map a point of the unit sphere to coefficients (the paper's second lemma).

    ``1 - alpha~`` and ``1 + alpha~`` are never formed by a subtraction that cancels: their product
    is ``|w~|^2``, which keeps its digits for any ``alpha``.

    Parameters
    ----------
    w : ndarray
        ``w~``.
    alpha : float
        ``alpha~``, below one.
    gamma : float
        Strength of the providers.
    """
    square = dot(w, w)
    if alpha >= 0.0:
        above = 1.0 + alpha
        below = square / above
    else:
        below = 1.0 - alpha
        above = square / below
    if below == 0.0:
        raise ValueError(
            "alpha~ = 1 is the point at infinity of the game: no finite predictor belongs to it."
        )
    return GamePoint(np.sqrt(gamma) / below * w, above / below)


def scls_terms(A: Array, y: Vector, z: Vector, gamma: float) -> tuple[Array, Vector, float]:
    """``H, g, p`` of ``q(r) = r'Hr + 2g'r + p``, dense: for small problems and for tests."""
    L = np.column_stack([np.sqrt(gamma) / 2 * A, z / 2])
    centre = z / 2 - y
    return L.T @ L, L.T @ centre, float(centre @ centre)
