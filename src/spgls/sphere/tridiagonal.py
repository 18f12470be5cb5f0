"""The sphere problem for a tridiagonal matrix, as Lanczos methods meet it."""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh_tridiagonal, eigvalsh_tridiagonal, lapack

from spgls.base.types import EPS, Vector

__all__ = ["TridiagonalPoint", "lowest_eigenvalue", "solve_tridiagonal"]

_MAX_STEPS = 100
#: A norm this far from one at the end says that the root is closer to the pole than rounding.
_NORM_ERROR = 1e-8


class TridiagonalPoint(NamedTuple):
    """Minimiser ``h`` of ``h'Th + 2 b h_1`` on the unit sphere, and its multiplier."""

    h: Vector
    multiplier: float


def solve_tridiagonal(
    diagonal: Vector, off: Vector, b: float, start: float | None = None
) -> TridiagonalPoint:
    """Minimise ``h'Th + 2 b h_1`` over ``|h| = 1`` by safeguarded Newton on ``1/|h(lambda)|``.

    ``T`` is irreducible, so every eigenvector has a first component and there is no hard case on
    paper. Below rounding there is: a first component of 1e-30 is as good as none, and the lowest
    eigenvector has to be added. The multiplier may be negative. Each step costs two tridiagonal
    solves.

    Parameters
    ----------
    diagonal, off : ndarray
        ``T``; ``off`` has one entry less and no zeros.
    b : float
        Length of the linear term, not negative.
    start : float, optional
        A guess from the left, such as the multiplier of the leading block.
    """
    k = len(diagonal)
    if k == 1:
        return TridiagonalPoint(np.array([-1.0]), b - float(diagonal[0]))
    radius, size = np.zeros(k), abs(off)
    radius[:-1] += size
    radius[1:] += size
    lo = -float((diagonal + radius).max())
    hi = b - float((diagonal - radius).min())
    rhs = np.zeros(k)
    rhs[0] = -b
    if b <= EPS**2 * (hi - lo):
        return _at_the_pole(diagonal, off, rhs, lo)
    multiplier = hi if start is None or not lo < start < hi else start
    h, norm = rhs, 0.0
    for _ in range(_MAX_STEPS):
        d, e, h, info = lapack.dptsv(diagonal + multiplier, off, rhs)
        # What is no number shows in the last of them.
        if info != 0 or not d[-1] > 0.0:
            lo = multiplier
            multiplier = (lo + hi) / 2
            continue
        norm = sqrt(h.dot(h))
        if norm > 1.0:
            lo = multiplier
        else:
            hi = multiplier
        if abs(norm - 1.0) <= 4 * EPS:
            break
        slope, _ = lapack.dpttrs(d, e, h)
        new = multiplier + (norm - 1.0) * norm**2 / float(h.dot(slope))
        if not lo < new < hi:
            new = (lo + hi) / 2
        if abs(new - multiplier) <= 2 * EPS * abs(multiplier) or new == multiplier:
            break
        multiplier = new
    if abs(norm - 1.0) > _NORM_ERROR and np.isfinite(multiplier):
        return _at_the_pole(diagonal, off, rhs, multiplier)
    return TridiagonalPoint(h / sqrt(h.dot(h)), multiplier)


def _at_the_pole(diagonal: Vector, off: Vector, rhs: Vector, multiplier: float) -> TridiagonalPoint:
    """Right of a pole that rounding cannot tell from the root, fill up with its eigenvector."""
    values, vectors = eigh_tridiagonal(diagonal, off, select="i", select_range=(0, 0))
    u = -np.copysign(1.0, vectors[0, 0]) * vectors[:, 0]
    multiplier = max(multiplier, -float(values[0]))
    nudge = EPS * (float(np.abs(diagonal).max()) + float(np.abs(off).max()))
    h = rhs
    for _ in range(_MAX_STEPS):
        multiplier += nudge
        d, e, info = lapack.dpttrf(diagonal + multiplier, off)
        if info == 0 and (d > 0.0).all():
            h, _ = lapack.dpttrs(d, e, rhs)
            short = 1.0 - float(h @ h)
            if short >= 0.0:
                along = float(h @ u)
                h = h + short / (along + np.sqrt(along**2 + short)) * u if short else h
                break
        nudge *= 2
    return TridiagonalPoint(h / sqrt(h.dot(h)), multiplier)


def lowest_eigenvalue(diagonal: Vector, off: Vector) -> float:
    """Smallest eigenvalue of a symmetric tridiagonal matrix."""
    if len(diagonal) == 1:
        return float(diagonal[0])
    values = eigvalsh_tridiagonal(diagonal, off, select="i", select_range=(0, 0))
    return float(values[0])
