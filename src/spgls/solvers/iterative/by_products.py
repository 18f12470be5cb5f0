"""Losses and bounds of points in the span of a basis, from the products that it has kept.

``A'P r`` is a combination of products that were formed afresh, each with the rounding of one
product; docs/proofs.md adds it up. Formulas stand for one point, or for a column each of many.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from spgls.base.each import Each
from spgls.base.types import EPS, Array, Vector
from spgls.base.vector import dot
from spgls.solvers.iterative.images import Span
from spgls.solvers.iterative.residual import Bounds, Fresh, Losses, Slopes
from spgls.solvers.iterative.rulers import Rulers
from spgls.sphere.operator import SphereProblem

__all__ = ["Points", "measure_span"]


def measure_span(
    fresh: Fresh,
    span: Span,
    points: Points,
    alpha: Vector,
    gamma: Vector,
    problem: SphereProblem,
) -> tuple[Losses, Bounds]:
    """Losses and bounds without a read of the data.

    Parameters
    ----------
    fresh : Fresh
        What measures predictors, and knows how rounding is measured.
    span : Span
        Points of the sphere as combinations of the basis; without their last entries where the
        products are those of the data.
    points : Points
        The points themselves, which are not needed where products are known by coordinates.
    alpha : ndarray of shape (G,)
        Of the predictors that they lead to.
    gamma : ndarray of shape (G,)
        Strengths.
    problem : SphereProblem
        The problem of this strength where products are bordered, else of any.
    """
    if len(gamma) > 1 or span.frame is not None:
        return _measure(fresh, span, points, alpha, gamma, problem)
    # Numbers cost a tenth of what arrays of one number do.
    one = Points(points.sizes[0], points.last[0], lambda: points.make()[:, 0])
    losses, bounds = _measure(fresh, span.only, one, alpha[0], gamma[0], problem)
    return Losses(*(np.array([one]) for one in losses)), Bounds(*(np.array([b]) for b in bounds))


class Points(NamedTuple):
    """Points of the sphere: lengths without their last entries, those, and how to make them."""

    sizes: Each
    last: Each
    make: Callable[[], Array]


def _measure(
    fresh: Fresh, span: Span, points: Points, alpha: Each, gamma: Each, problem: SphereProblem
) -> tuple[Losses, Bounds]:
    rulers, half = fresh.rulers, gamma**0.5 / 2.0
    unit = rulers.unit
    s, c = 1.0 / (1.0 + alpha), alpha / (1.0 + alpha)
    total, ulps = span.size, (len(span.h) + 16) * EPS
    # How far the points are from those of the predictors, w~ and alpha~.
    size, last = 2.0 * (s * c) ** 0.5, c - s
    aside = abs(points.sizes - size) + ulps * total
    apart = half * rulers.whole * aside
    if span.bordered:
        found = _bordered(span, points.make(), half, problem)
        inside = total * (half * rulers.whole + rulers.z / 2.0)
        apart = apart + rulers.z * (abs(points.last - last) + ulps * total)
        seen = span.seen
    else:
        found = _of_data(span.scaled(half), points, c, half, problem)
        inside, seen = half * total * rulers.whole, half * span.seen
    parts, rounding = _rounding(rulers, inside, seen, c, half * size, apart)
    if span.frame is not None:
        # Inner products of columns of the basis with products, and not of the points.
        rounding = rounding + rulers.across * inside * (seen + 2.0 * (rulers.y + rulers.z))
    losses = Losses(s, c, found.square, rounding)
    last, goal = half * last, found.goal / (2.0 * half)
    nu = -(found.inner + goal * last) / half**2
    # The slopes become residuals.
    slope, unit_of = found.slope, found.unit
    slope += found.w * (half * nu / unit_of)
    residual = (_inner(slope, slope) * unit_of**2 + (goal + nu * last) ** 2) ** 0.5
    along = unit * (abs(nu) * half**2 + residual * half)
    moved = 2.0 * parts + unit * (seen + rulers.y + 2.0 * rulers.z)
    moved = moved + (abs(nu) * half * aside + found.outside) / (rulers.whole or 1.0)
    if not span.bordered:
        # The goals meet predictions by way of A'Pz, which is rounded column by column.
        share = rulers.z / ((2.0 * half * rulers.whole) ** 2 + rulers.z**2 + 1e-300) ** 0.5
        moved = moved + share * unit * rulers.whole * half * size
    slopes = Slopes(gamma, nu, residual, along, moved)
    return losses, fresh.best_bound(slopes, losses.certain, stretch=found.skew)


def _rounding(
    rulers: Rulers, inside: Each, seen: Each, c: Each, size: Each, apart: Each
) -> tuple[Each, Each]:
    """What rounding can have done to ``r``, part by part, and to ``|r|^2``."""
    targets, seen = rulers.y + c * rulers.z, seen + rulers.y + 2.0 * rulers.z
    parts = (rulers.across + rulers.turn) * (inside + targets) + rulers.cut * targets + apart
    whole = rulers.whole * size + targets
    return parts, 2.0 * parts * seen + parts**2 + 2.0 * rulers.unit * whole * seen


class _Found(NamedTuple):
    """``A'P r`` in some unit, ``z'P r``, ``|r|^2``, ``x'A'P r`` and the points.

    Slopes and points as they are, or their coordinates in a basis: then what of slopes is outside
    of it at most, and how much longer they can be than their coordinates.
    """

    slope: Array
    goal: Each
    square: Each
    inner: Each
    w: Array
    outside: Each = 0.0
    skew: float = 0.0
    unit: Each = 1.0


def _bordered(span: Span, r: Array, half: Each, problem: SphereProblem) -> _Found:
    """From products with ``H``."""
    slope = span.product()
    linear = problem.g
    slope += linear if r.ndim == 1 else linear[:, None]
    along = dot(linear, r) if r.ndim == 1 else linear @ r
    square = _inner(r, slope) + along + problem.p
    goal = 2.0 * slope[-1]
    w, slope = r[:-1], slope[:-1]
    return _Found(slope, goal, square * (square > 0.0), _inner(w, slope), w, unit=1.0 / half)


def _of_data(span: Span, points: Points, c: Each, half: Each, problem: SphereProblem) -> _Found:
    """From products with ``A'PA``."""
    times, outside, skew = np.array([c, 0.0 * c - 1.0]), 0.0 * c, 0.0
    if span.frame is None:
        w = points.make()[:-1]
        targets = np.stack([problem.p_z, problem.p_y])
        slope = span.product(targets.T, times)
        goal, label = half * (targets @ w)
    else:
        frame, k = span.frame, len(span.h)
        factors = np.concatenate([span.h, times])
        slope, w = frame.inside @ factors, np.zeros((len(frame.inside), len(half)))
        w[:k] = span.h / half
        goal, label = half * (frame.inside[:, k:].T @ w)
        outside, skew = frame.outside @ np.abs(factors), frame.skew
    inner = half * _inner(w, slope)
    goal = goal + c * problem.zz - problem.yz
    label = label + c * problem.yz - problem.yy
    square = inner + c * goal - label
    return _Found(slope, goal, square * (square > 0.0), inner, w, outside, skew)


def _inner(a: Array, b: Array) -> Each:
    return np.float64(dot(a, b)) if a.ndim == 1 else np.einsum("ij,ij->j", a, b)
