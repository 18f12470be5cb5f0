"""The optimum on the plane of a first column and the last coordinate.

What ``H`` makes of the last coordinate is known with ``A'z``, before any product. So the first
product tells of a plane, and where the tolerance is not a tight one its optimum may do: that saves
a read of the data.
"""

from __future__ import annotations

from functools import partial
from math import sqrt

import numpy as np

from spgls.base.types import EPS, Array, Vector
from spgls.base.vector import dot
from spgls.solvers.iterative.images import MeasuredSpace, Span
from spgls.solvers.iterative.iterate import Iterate
from spgls.sphere.operator import SphereProblem
from spgls.sphere.tridiagonal import solve_tridiagonal

__all__ = ["on_the_plane"]

#: Squared length that a first column must have beside its last entry.
_APART = 1e-6
#: Numbers below this have squares.
_LARGE = 1e150
#: Roundings of a squared residual that was added up from inner products.
_ULPS = 64


def on_the_plane(problem: SphereProblem, space: MeasuredSpace, aim: float) -> Iterate | None:
    """The optimum on the plane, if its gap is small enough; else None.

    Parameters
    ----------
    problem : SphereProblem
        The problem of one strength.
    space : MeasuredSpace
        Its Krylov space, before anything was multiplied; it begins with ``g``.
    aim : float
        The gap that is small enough.
    """
    if not (problem.targets.knows_goals and space.keeps):
        return None
    # What needs no product comes first: it may be under way.
    start, p_z, half, last = problem.g, problem.p_z, sqrt(problem.gamma) / 4.0, problem.zz / 4.0
    square = problem.slope * problem.slope
    apart = dot(start[:-1], start[:-1]) / square if square > 0.0 else 0.0
    goals = half * half * dot(p_z, p_z) + last * last
    images = np.empty((2, problem.size))
    np.multiply(p_z, half, out=images[1, :-1])
    images[1, -1] = last
    first = space.begin()
    known = space.span(np.ones((1, 1)))
    assert known is not None
    image = images[0] = known.images[:, 0]
    if not apart > _APART:
        return None
    size, end, beyond = float(known.sizes[0]), float(first[-1]), float(image[-1])
    along = size * size
    # The last coordinate less its part along the first column, at unit length.
    root = sqrt(apart)
    corner = (beyond - end * along) / root
    far = (last - 2.0 * end * beyond + end * end * along) / apart
    if not 0.0 < abs(corner) < _LARGE or not along + abs(far) < _LARGE:
        return None
    (one, two), multiplier = solve_tridiagonal(
        np.array([along, far]), np.array([corner]), problem.slope
    )
    if not multiplier > aim:
        return None
    a, b = float(one) - float(two) * end / root, float(two) / root
    # |a H q + b H e + multiplier (a q + b e) + |g| q|^2, from inner products of the four.
    crossed = half * dot(p_z, image[:-1]) + last * beyond
    c, d = multiplier * a + problem.slope, multiplier * b
    terms = (
        a * a * dot(image, image),
        b * b * goals,
        c * c,
        d * d,
        2.0 * a * b * crossed,
        2.0 * a * c * along,
        2.0 * a * d * beyond,
        2.0 * b * c * beyond,
        2.0 * b * d * last,
        2.0 * c * d * end,
    )
    rounding = _ULPS * EPS * sum(map(abs, terms))
    iterate = Iterate(
        multiplier=multiplier,
        objective=problem.p + problem.slope * float(one) - multiplier,
        residual=sqrt(max(sum(terms), 0.0) + rounding),
        point=partial(_point, first, a, b),
        span=partial(_span, images, size, sqrt(problem.zz) / 2.0, a, b),
    )
    return iterate if iterate.gap <= aim else None


def _point(first: Vector, a: float, b: float) -> Vector:
    point = a * first
    point[-1] += b
    return np.asarray(point)


def _span(images: Array, size: float, goal: float, a: float, b: float) -> Span:
    """The point by the first column and the last coordinate, of which the data makes ``z/2``."""
    return Span(np.array([[a], [b]]), images.T, np.array([size, goal]), bordered=True)
