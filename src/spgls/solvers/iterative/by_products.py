"""Losses and bounds of points in the span of a basis, from the products that it has kept.

``A'P r`` is a combination of products that were formed afresh, each with the rounding of one
product; docs/proofs.md adds it up. Formulas stand for one point, or for a column each of many.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spgls.base.each import Each
from spgls.base.types import EPS, Array, Vector
from spgls.base.vector import dot
from spgls.solvers.iterative.images import Span
from spgls.solvers.iterative.residual import Bounds, Fresh, Losses, Slopes
from spgls.solvers.iterative.rulers import Rulers
from spgls.sphere.operator import SphereProblem

__all__ = ["measure_span"]


def measure_span(
    fresh: Fresh, span: Span, r: Array, alpha: Vector, gamma: Vector, problem: SphereProblem
) -> tuple[Losses, Bounds]:
    """Losses and bounds without a read of the data.

    Parameters
    ----------
    fresh : Fresh
        What measures predictors, and knows how rounding is measured.
    span : Span
        Points of the sphere as combinations of the basis; without their last entries where the
        products are those of the data.
    r : ndarray of shape (n + 1, G)
        The points themselves.
    alpha : ndarray of shape (G,)
        Of the predictors that they lead to.
    gamma : ndarray of shape (G,)
        Strengths.
    problem : SphereProblem
        The problem of this strength where products are bordered, else of any.
    """
    if len(gamma) > 1:
        return _measure(fresh, span, r, alpha, gamma, problem)
    # Numbers cost a tenth of what arrays of one number do.
    losses, bounds = _measure(fresh, span.only, r[:, 0], alpha[0], gamma[0], problem)
    return Losses(*(np.array([one]) for one in losses)), Bounds(*(np.array([b]) for b in bounds))


def _measure(
    fresh: Fresh, span: Span, r: Each, alpha: Each, gamma: Each, problem: SphereProblem
) -> tuple[Losses, Bounds]:
    rulers, half, w = fresh.rulers, gamma**0.5 / 2.0, r[:-1]
    unit = rulers.unit
    s, c = 1.0 / (1.0 + alpha), alpha / (1.0 + alpha)
    total, ulps = span.size, (len(span.h) + 16) * EPS
    # How far the points are from those of the predictors, w~ and alpha~.
    size, last = 2.0 * (s * c) ** 0.5, c - s
    aside = abs(_inner(w, w) ** 0.5 - size) + ulps * total
    apart = half * rulers.whole * aside
    if span.bordered:
        found = _bordered(span, r, half, problem)
        inside = total * (half * rulers.whole + rulers.z / 2.0)
        apart = apart + rulers.z * (abs(r[-1] - last) + ulps * total)
        seen = span.seen
    else:
        found = _of_data(span.scaled(half), w, c, half, problem)
        inside, seen = half * total * rulers.whole, half * span.seen
    parts, rounding = _rounding(rulers, inside, seen, c, half * size, apart)
    losses = Losses(s, c, found.square, rounding)
    last, goal = half * last, found.goal / (2.0 * half)
    nu = -(found.inner + goal * last) / half**2
    # The slopes become residuals.
    slope = found.slope
    slope += w * (half * nu)
    residual = (_inner(slope, slope) + (goal + nu * last) ** 2) ** 0.5
    along = unit * (abs(nu) * half**2 + residual * half)
    moved = 2.0 * parts + unit * (seen + rulers.y + 2.0 * rulers.z)
    moved = moved + abs(nu) * half * aside / (rulers.whole or 1.0)
    if not span.bordered:
        # The goals meet predictions by way of A'Pz, which is rounded column by column.
        share = rulers.z / ((2.0 * half * rulers.whole) ** 2 + rulers.z**2 + 1e-300) ** 0.5
        moved = moved + share * unit * rulers.whole * half * size
    slopes = Slopes(gamma, nu, residual, along, moved)
    return losses, fresh.best_bound(slopes, losses.certain)


def _rounding(
    rulers: Rulers, inside: Each, seen: Each, c: Each, size: Each, apart: Each
) -> tuple[Each, Each]:
    """What rounding can have done to ``r``, part by part, and to ``|r|^2``."""
    targets, seen = rulers.y + c * rulers.z, seen + rulers.y + 2.0 * rulers.z
    parts = (rulers.across + rulers.turn) * (inside + targets) + rulers.cut * targets + apart
    whole = rulers.whole * size + targets
    return parts, 2.0 * parts * seen + parts**2 + 2.0 * rulers.unit * whole * seen


class _Found(NamedTuple):
    """``A'P r``, ``z'P r``, ``|r|^2`` and ``x'A'P r``."""

    slope: Array
    goal: Each
    square: Each
    inner: Each


def _bordered(span: Span, r: Array, half: Each, problem: SphereProblem) -> _Found:
    """From products with ``H``."""
    slope = span.product()
    linear = problem.g
    slope += linear if r.ndim == 1 else linear[:, None]
    along = dot(linear, r) if r.ndim == 1 else linear @ r
    square = _inner(r, slope) + along + problem.p
    goal = 2.0 * slope[-1]
    slope = slope[:-1] / half
    return _Found(slope, goal, square * (square > 0.0), half * _inner(r[:-1], slope))


def _of_data(span: Span, w: Array, c: Each, half: Each, problem: SphereProblem) -> _Found:
    """From products with ``A'PA``."""
    targets = np.stack([problem.p_z, problem.p_y])
    slope = span.product(targets.T, np.array([c, 0.0 * c - 1.0]))
    inner = half * _inner(w, slope)
    goal, label = half * (targets @ w)
    goal = goal + c * problem.zz - problem.yz
    label = label + c * problem.yz - problem.yy
    square = inner + c * goal - label
    return _Found(slope, goal, square * (square > 0.0), inner)


def _inner(a: Array, b: Array) -> Each:
    return np.float64(dot(a, b)) if a.ndim == 1 else np.einsum("ij,ij->j", a, b)
