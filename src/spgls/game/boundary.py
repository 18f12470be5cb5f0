"""Moves to the boundary of a decision, as in the literature on strategic classification.

A provider who wants the other decision gains its ``budget`` by getting it, and nothing by coming
closer. The least cost ``sum_j c_j (x^_j - x_j)^2`` of changing a score by ``d`` is ``d^2/q``,
``q = sum_j w_j^2/c_j`` over changeable features, by moving along ``w/c``. So it moves to the
boundary if that costs less than the budget, and else stays where it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spgls.base.types import Vector
from spgls.game.providers import Provider

__all__ = ["BoundaryProvider"]

#: How far beyond the boundary people go, as a part of how far they could go: rounding must not
#: leave those who paid on the wrong side.
_BEYOND = 1e-5


@dataclass(frozen=True, eq=False)
class BoundaryProvider:
    """A provider facing a decision by a linear score.

    Parameters
    ----------
    faced : Provider
        The model, and the costs of its features. The strength has no part.
    budget : float or ndarray of shape (m,)
        What the decision is worth, one for all or one per row; zero is an honest provider.
    threshold : float
        Scores above it are in the second class.
    """

    faced: Provider
    budget: float | Vector
    threshold: float = 0.0

    @property
    def direction(self) -> Vector:
        """How features move per unit of step."""
        return self.faced.direction

    def step(self, score: Vector, z: Vector) -> Vector:
        """How far along :attr:`direction` each row moves; ``z`` has the sign of the class wanted.

        Parameters
        ----------
        score, z : ndarray of shape (m,)
            Scores of the rows as they are, and goals.
        """
        reach = self.faced.reach
        if reach == 0.0:
            return np.zeros_like(score)
        far: Vector = (self.induced(score, z) - score) / reach
        return far

    def induced(self, score: Vector, z: Vector) -> Vector:
        """Scores after the rows moved.

        Parameters
        ----------
        score, z : ndarray of shape (m,)
            As in :meth:`step`.
        """
        # The largest change of a score that somebody would pay for.
        farthest = np.sqrt(self.faced.reach * np.asarray(self.budget, dtype=np.float64))
        missing = self.threshold - score
        content = (missing < 0.0) == (z > 0.0)
        moves = ~content & (np.abs(missing) < farthest)
        return np.where(moves, self.threshold + np.sign(z) * _BEYOND * farthest, score)
