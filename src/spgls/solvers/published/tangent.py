"""Points of the sphere, their tangent spaces, and Newton steps within them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spgls.base.types import Vector
from spgls.solvers.iterative.iterate import Iterate
from spgls.solvers.iterative.lowest import LowestPair
from spgls.sphere.operator import SphereProblem

__all__ = ["Place", "retraction", "riemannian_gradient", "riemannian_hessian", "truncated_cg"]

#: Angles tried on the circle through a stationary point and an eigenvector.
_ANGLES = 256


class Place(NamedTuple):
    """A point of the sphere and what is known there.

    Attributes
    ----------
    r, product : ndarray
        The point, and ``H r``.
    slope : ndarray
        ``H r + g``, half the Euclidean gradient.
    multiplier : float
        Least-squares estimate ``-r'(Hr + g)`` of ``lambda``.
    rho : ndarray
        ``(H + lambda I) r + g``, half the Riemannian gradient.
    size : float
        ``|rho|``.
    scale : float
        ``|g| + |Hr|``, the unit of rounding.
    """

    r: Vector
    product: Vector
    slope: Vector
    multiplier: float
    rho: Vector
    size: float
    scale: float

    @classmethod
    def at(cls, problem: SphereProblem, r: Vector, product: Vector) -> Place:
        """Make one from a unit vector and its product."""
        slope = product + problem.g
        rho = riemannian_gradient(problem, r, product) / 2
        scale = problem.slope + float(np.linalg.norm(product))
        return cls(r, product, slope, -float(r @ slope), rho, float(np.linalg.norm(rho)), scale)

    def iterate(self, problem: SphereProblem) -> Iterate:
        """What the common loop needs to know."""
        value = problem.value(self.r, self.product)
        return Iterate(self.multiplier, value, self.size, self.r.copy)

    def moved(self, problem: SphereProblem, s: Vector, image: Vector) -> tuple[Place, float]:
        """Where a tangent step leads, and the change of ``q``, without a product.

        Parameters
        ----------
        problem : SphereProblem
            The problem.
        s : ndarray
            Tangent vector.
        image : ndarray
            The Riemannian Hessian's image of it.
        """
        product = image / 2 - self.multiplier * s + float(self.product @ s) * self.r
        length = float(np.sqrt(1.0 + s @ s))
        r = retraction(self.r, s)
        # q changes by d'(H + lambda I)d + 2 rho'd with d the difference of two unit vectors; its
        # part along r is formed without cancellation.
        back = -float(s @ s) / (length * (1.0 + length))
        d = s / length + back * self.r
        bent = product / length + back * self.product + self.multiplier * d
        change = float(d @ bent) + 2 * float(self.rho @ d)
        return Place.at(problem, r, (self.product + product) / length), change

    def across(
        self, problem: SphereProblem, pair: LowestPair, aim: float
    ) -> tuple[Place | None, Place | None]:
        """Look around the circle through a stationary point and the lowest eigenvector.

        Returns
        -------
        lower : Place or None
            The lowest place tried, if ``q`` is lower there by more than ``aim``.
        mirrored : Place or None
            The reflection in the eigenvector's complement or the point itself, whichever has the
            smaller ``alpha``, if ``q`` is the same at both: then there are several optima.
        """
        u = pair.vector
        share = float(u @ self.r)
        t = u - share * self.r
        length = float(np.linalg.norm(t))
        if length <= 1e-8:
            # The point is the eigenvector itself, and its reflection the opposite point.
            opposite = Place.at(problem, -self.r, -self.product)
            return self._choose(opposite, -4 * float(problem.g @ self.r), aim)
        t /= length
        product = (problem.product(u) - share * self.product) / length

        def turned(cos: float, sin: float) -> Place:
            r = cos * self.r + sin * t
            norm = float(np.linalg.norm(r))
            return Place.at(problem, r / norm, (cos * self.product + sin * product) / norm)

        angles = 2 * np.pi / _ANGLES * np.arange(1, _ANGLES)
        mirror = np.arctan2(-2 * share * length, 1 - 2 * share**2)
        angles = np.append(angles, mirror)
        cos, sin = np.cos(angles), np.sin(angles)
        down = -2 * np.sin(angles / 2) ** 2  # cos - 1
        tt = float(t @ product) + self.multiplier
        rt = float(self.r @ product)
        rr = float(self.r @ self.product) + self.multiplier
        slope = float(self.rho @ t)
        change = down**2 * rr + 2 * down * sin * rt + sin**2 * tt + 2 * sin * slope
        best = int(np.argmin(change))
        if change[best] < -aim:
            return turned(cos[best], sin[best]), None
        if abs(share) <= 1e-6:
            return None, None
        return self._choose(turned(cos[-1], sin[-1]), float(change[-1]), aim)

    def _choose(self, other: Place, change: float, aim: float) -> tuple[Place | None, Place | None]:
        """Compare with the reflection, for which ``q`` differs by ``change``."""
        if change < -aim:
            return other, None
        if change > aim:
            return None, None
        return None, other if other.r[-1] < self.r[-1] else self


def riemannian_gradient(problem: SphereProblem, r: Vector, product: Vector) -> Vector:
    """``(I - rr')(2Hr + 2g)``, the paper's eq. (Rgrad), from ``H r``."""
    return _tangent(r, 2 * (product + problem.g))


def riemannian_hessian(problem: SphereProblem, r: Vector, slope: Vector, v: Vector) -> Vector:
    """``(I - rr')(2Hv - 2v r'(Hr + g))``, the paper's eq. (RHess), with ``slope = Hr + g``."""
    return _tangent(r, 2 * problem.product(v) - 2 * float(r @ slope) * v)


def retraction(r: Vector, v: Vector) -> Vector:
    """``(r + v)/|r + v|``, the paper's eq. (Retr)."""
    moved = r + v
    return np.asarray(moved / np.linalg.norm(moved))


def _tangent(r: Vector, v: Vector) -> Vector:
    return np.asarray(v - float(r @ v) * r)


def truncated_cg(
    problem: SphereProblem, here: Place, radius: float, tolerance: float, max_iter: int
) -> tuple[Vector, Vector]:
    """Minimise the quadratic model within a radius by conjugate gradients, one product each.

    Parameters
    ----------
    problem : SphereProblem
        The problem.
    here : Place
        Where the model was made.
    radius : float
        Largest length of the step.
    tolerance : float
        Residual at which to stop.
    max_iter : int
        Limit on products.

    Returns
    -------
    s, image : ndarray
        The step and the Hessian's image of it.
    """
    s, image = np.zeros_like(here.r), np.zeros_like(here.r)
    residual = 2 * here.rho
    d = -residual
    square = float(residual @ residual)
    for _ in range(max_iter):
        bent = riemannian_hessian(problem, here.r, here.slope, d)
        curvature = float(d @ bent)
        dd, sd = float(d @ d), float(s @ d)
        # Positive root of |s + t d| = radius.
        room = max(radius**2 - float(s @ s), 0.0)
        limit = room / (sd + np.sqrt(sd**2 + dd * room)) if room > 0.0 else 0.0
        step = square / curvature if curvature > 0.0 else np.inf
        s = s + min(step, limit) * d
        image = image + min(step, limit) * bent
        if not step < limit:
            break
        residual = _tangent(here.r, residual + step * bent)
        before, square = square, float(residual @ residual)
        if np.sqrt(square) <= tolerance:
            break
        d = square / before * d - residual
    return s, image
