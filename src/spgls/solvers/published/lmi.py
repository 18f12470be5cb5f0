"""The matrix inequality of the SDP: in units of order one, and the way back from its solution.

On the sphere it reads ``[[H + lambda I, g], [g', p - lambda - mu]] >= 0``. With the last coordinate
of ``r`` written as ``2c - 1``, a congruence, nothing cancels where goals are large,

    [ gamma/4 A'A + lambda I    sqrt(gamma)/2 A'z    -sqrt(gamma)/2 A'y ]
    [           .               zz + 4 lambda        -yz - 2 lambda     ]  >= 0,
    [           .                     .                    yy - mu      ]

and a diagonal congruence with units for ``lambda`` and ``mu`` brings all entries to order one.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from spgls.base.types import EPS, Array, Vector
from spgls.solvers.iterative.iterate import Iterate
from spgls.solvers.published.conic import rank_one_pieces
from spgls.solvers.solution import Status
from spgls.sphere.operator import SphereProblem

__all__ = ["MatrixInequality", "Recovered"]

#: Steps to the right of a multiplier, over ``|H|``: at a hard case ``H + lambda I`` is singular.
_NUDGES = np.concatenate([[0.0], EPS * 8.0 ** np.arange(1, 14)])
#: How many multipliers with a factor are tried, each a little further to the right.
_ENOUGH = 4
#: Multipliers below this share of their unit ask for a smaller unit,
_SMALL = 0.1
#: though not at once for one smaller than this share.
_SHRINK = 1e-6
#: Rounding of ``H``, over its norm, that a proof allows for.
_ROUNDING = 8 * EPS


class Recovered(NamedTuple):
    """A unit vector, its product with ``H``, its objective."""

    r: Vector
    product: Vector
    objective: float


class MatrixInequality:
    """Matrices of the inequality, normalised, and what follows from a multiplier.

    Parameters
    ----------
    problem : SphereProblem
        The sphere problem.

    Attributes
    ----------
    A, B, C : ndarray of shape (n + 2, n + 2)
        ``A - mu B + lambda C >= 0`` in normalised units; ``mu`` in units of :attr:`label`,
        ``lambda`` in units of :attr:`unit`.
    """

    def __init__(self, problem: SphereProblem) -> None:
        self.problem = problem
        self.H = problem.dense()
        self.size = float(np.linalg.norm(self.H))
        self.label = max(problem.yy, EPS * problem.zz) or 1.0
        half = np.sqrt(problem.gamma) / 2
        n = problem.size
        problem.passes += 1.0
        # Minus A'y from the data: the difference of g and A'z would lose digits.
        border = half * problem.matrix.cross(np.column_stack([problem.z, -problem.y]))
        self._full = np.empty((n + 1, n + 1))
        self._full[: n - 1, : n - 1] = self.H[:-1, :-1]
        self._full[: n - 1, n - 1 :] = border
        self._full[n - 1 :, : n - 1] = border.T
        self._full[n - 1 :, n - 1 :] = [[problem.zz, -problem.yz], [-problem.yz, problem.yy]]
        self._constraint = np.zeros_like(self._full)
        self._constraint.flat[:: n + 2] = 1.0
        self._constraint[n - 1 :, n - 1 :] = [[4.0, -2.0], [-2.0, 0.0]]
        # The multiplier lies within |g| of the left end of those that are feasible.
        self._normalise(problem.slope or self.size or 1.0)

    def suited(self, share: float) -> MatrixInequality:
        """The inequality in units that suit a multiplier of this share of the present unit."""
        unit = max(self.unit * max(abs(share), _SHRINK), EPS * self.size)
        if unit >= _SMALL * self.unit:
            return self
        other = copy(self)
        other._normalise(unit)
        return other

    def _normalise(self, unit: float) -> None:
        self.unit = unit
        sizes = np.diag(self._full + unit * self._constraint).copy()
        sizes[-1] = self.label
        # A square that is all rounding may be negative, and any unit will do.
        sizes[~(sizes > 0.0)] = unit
        self._scale = 1.0 / np.sqrt(sizes)
        both = np.outer(self._scale, self._scale)
        self.A: Array = self._full * both
        self.B: Array = np.zeros_like(both)
        self.B[-1, -1] = 1.0
        self.C: Array = unit * self._constraint * both

    def start(self) -> Recovered:
        """The point of zero coefficients."""
        r = np.zeros(self.problem.size)
        r[-1] = -1.0
        # Its objective is |y|^2, without the rounding of p.
        return Recovered(r, -self.H[:, -1], self.problem.yy)

    def recover(self, multiplier: float, M: Array | None) -> Recovered:
        """Best unit vector that the dual matrix or the multiplier lead to.

        Pieces of the rank-one decomposition of the dual matrix lie on the sphere, up to the cone
        solver's accuracy. The multiplier alone leads to ``r = -(H + lambda I)^{-1} g``, brought
        onto the sphere along ``(H + lambda I)^{-1} r``, which costs least, or along the lowest
        eigenvector: errors of the multiplier then count squared.
        """
        candidates = [*self._from_multiplier(multiplier)]
        if M is not None:
            candidates.append(self._from_pieces(M))
        R = np.column_stack([self.start().r, *candidates])
        R = R[:, np.isfinite(R).all(axis=0)]
        R = R / np.linalg.norm(R, axis=0)
        points = np.vstack([R[:-1], (1 + R[-1]) / 2, np.ones(R.shape[1])])
        values = np.einsum("ij,ij->j", points, self._full @ points)
        best = int(np.argmin(values))
        return Recovered(R[:, best], self.H @ R[:, best], float(values[best]))

    def _from_pieces(self, M: Array) -> Array:
        pieces = rank_one_pieces(M * np.outer(self._scale, self._scale), self._constraint)
        last = pieces[-1]
        weighty = np.abs(last) > 1e-6 * np.abs(last).max(initial=0.0)
        r = pieces[:-1, weighty] / last[weighty]
        r[-1] = 2 * r[-1] - 1
        return np.asarray(r)

    def _from_multiplier(self, multiplier: float) -> Iterator[Vector]:
        found = 0
        for shifted in self._from(multiplier):
            factor = self._factor(shifted)
            if factor is None:
                continue
            found += 1
            r = -_solve(factor, self.problem.g)
            if r.any():
                yield r
            lowest = np.zeros(len(r))
            lowest[-1] = 1.0
            for _ in range(3):
                lowest = _solve(factor, lowest)
                lowest /= np.linalg.norm(lowest)
            for direction in (_solve(factor, r), lowest):
                yield from _onto_sphere(r, direction)
            if found == _ENOUGH:
                return

    def _from(self, multiplier: float) -> Vector:
        """A multiplier and some to its right; zero too, since ``H >= 0`` is feasible there."""
        steps = _NUDGES * self.size
        if multiplier >= 0.0:
            return multiplier + steps
        return np.sort(np.concatenate([multiplier + steps, steps[1:4]]))

    def iterate(
        self,
        multiplier: float,
        point: Recovered,
        *,
        final: bool = True,
        status: Status | None = None,
    ) -> Iterate:
        """What the shared loop needs to know of a point and a multiplier."""
        slope = point.product + self.problem.g
        return Iterate(
            multiplier=multiplier,
            objective=point.objective,
            residual=float(np.linalg.norm(slope + multiplier * point.r)),
            point=point.r.copy,
            final=final,
            exact=True,
            status=status,
        )

    def lower_bound(self, multiplier: float) -> float:
        """Least value of the Lagrangian: no objective is smaller, but for rounding."""
        factor = self._factor(multiplier)
        if factor is None:
            return -np.inf
        g = self.problem.g
        return float(self.problem.p - multiplier - g @ _solve(factor, g))

    def prove(self, multiplier: float, r: Vector, slope: Vector) -> tuple[float, float]:
        """Bound on how far a unit vector is from optimal, and the multiplier that proves it.

        ``slope`` is ``H r + g``. The bound is ``rho'(H + lambda I)^{-1} rho`` with
        ``rho = (H + lambda I) r + g``, for the multiplier and a few to its right by rounding, since
        at a hard case ``H + lambda I`` is singular. As ``H >= 0``, a positive multiplier also
        proves ``|rho|^2/lambda``.
        """
        least, proving, proofs = np.inf, multiplier, 0
        for shifted in self._from(multiplier):
            rho = slope + shifted * r
            bound = float(rho @ rho) / shifted if shifted > 0.0 else np.inf
            factor = self._factor(shifted - _ROUNDING * self.size)
            if factor is not None:
                bound = min(bound, float(rho @ _solve(factor, rho)))
                proofs += 1
            if bound < least:
                least, proving = bound, float(shifted)
            if proofs == _ENOUGH:
                break
        return least, proving

    def _factor(self, multiplier: float) -> Any:
        """Cholesky factor of ``H + lambda I``, None where that is not positive definite."""
        shifted = self.H.T.copy(order="F")
        shifted.flat[:: len(shifted) + 1] += multiplier
        try:
            return cho_factor(shifted, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            return None


def _solve(factor: Any, right: Vector) -> Vector:
    return np.asarray(cho_solve(factor, right, check_finite=False))


def _onto_sphere(r: Vector, direction: Vector) -> Iterator[Vector]:
    """Where the line from ``r`` along a direction meets the unit sphere."""
    length = float(np.linalg.norm(direction))
    if not 0.0 < length < np.inf:
        return
    direction = direction / length
    along = float(r @ direction)
    short = 1.0 - float(r @ r)
    disc = along**2 + short
    if disc >= 0.0:
        far = -along - float(np.copysign(np.sqrt(disc), along))
        yield r + far * direction
        if far:
            # The product of both steps is -short.
            yield r - (short / far) * direction
