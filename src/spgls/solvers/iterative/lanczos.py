"""Lanczos on the sphere problem: a growing basis, and the optimum over its span."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from spgls.base.types import EPS, Vector
from spgls.base.vector import dot, norm
from spgls.solvers.iterative.basis import Basis
from spgls.solvers.iterative.iterate import Iterate
from spgls.sphere.operator import SphereProblem
from spgls.sphere.tridiagonal import lowest_eigenvalue, solve_tridiagonal

__all__ = ["krylov_start", "lanczos"]


def lanczos(problem: SphereProblem, g: Vector, *, reorthogonalise: bool) -> Iterator[Iterate]:
    """Iterates of the plain Krylov method; the last one is final."""
    length = problem.slope if g is problem.g else norm(g)
    basis = Basis(problem.size)
    q, before = krylov_start(g, length), np.zeros(problem.size)
    diagonal: list[float] = []
    off: list[float] = []
    multiplier: float | None = None
    trusted = np.inf
    while True:
        basis.append(q)
        w = problem.product(q)
        diagonal.append(dot(q, w))
        w -= diagonal[-1] * q
        if off:
            w -= off[-1] * before
        beta = norm(w) if basis.count == 1 or not reorthogonalise else basis.clear(w)
        # The second vector is orthogonal to the first as it stands, unless nearly all cancelled.
        if reorthogonalise and beta < diagonal[-1] / 256:
            beta = basis.clear(w)
        d, e = np.array(diagonal), np.array(off)
        h, multiplier = solve_tridiagonal(d, e, length, multiplier)
        scale = max(map(abs, diagonal)) + max(off, default=0.0)
        # A basis that is not kept orthogonal does not span everything after so many steps.
        full = reorthogonalise and len(diagonal) == problem.size
        ended = full or beta <= 16 * EPS * scale
        residual = 0.0 if ended else beta * abs(float(h[-1]))
        if not reorthogonalise and residual < trusted / 2:
            # The length of h is not that of its combination, which the recurrence cannot know.
            measured = _residual(basis.combine(h), _product(basis, d, e, h, w), g)
            residual = trusted = max(residual, measured)
        yield Iterate(
            multiplier=multiplier,
            objective=problem.p + length * float(h[0]) - multiplier,
            residual=residual,
            point=partial(basis.combine, h),
            lowest=lowest_eigenvalue(d, e) if multiplier <= 0.0 else None,
            final=ended,
            several=length == 0.0,
        )
        if ended:
            return
        off.append(beta)
        before, q = q, w / beta


def _product(basis: Basis, d: Vector, e: Vector, h: Vector, rest: Vector) -> Vector:
    """``H Q h = Q T h + h_k rest``: the recurrence knows the product already."""
    turned = d * h
    turned[:-1] += e * h[1:]
    turned[1:] += e * h[:-1]
    return np.asarray(basis.combine(turned) + h[-1] * rest)


def _residual(x: Vector, product: Vector, g: Vector) -> float:
    """Residual of ``x/|x|`` at its best multiplier."""
    length = norm(x)
    slope, r = product / length + g, x / length
    return norm(slope - dot(r, slope) * r)


def krylov_start(g: Vector, length: float) -> Vector:
    """First vector of a Krylov space; without a linear term, the zero predictor's.

    ``g`` vanishes for goals ``z = 2y``. The optimum is then the lowest eigenvector of ``H``, which
    is built from ``A'z`` and the last coordinate.
    """
    if length > 0.0:
        return np.asarray(g / length)
    q = np.zeros_like(g)
    q[-1] = 1.0
    return q
