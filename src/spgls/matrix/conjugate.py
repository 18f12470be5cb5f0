"""Conjugate gradients on the normal equations of unit columns, several right-hand sides at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigvalsh_tridiagonal

from spgls.base.types import Array, Vector
from spgls.base.vector import dot
from spgls.matrix.unit_columns import Products

__all__ = ["Descent", "column_lengths", "descend"]

#: Up to so many right-hand sides, one after the other is faster than all at once.
_NARROW = 3


class Descent(NamedTuple):
    """Where an iteration ended.

    Attributes
    ----------
    u, left : ndarray of shape (k, w)
        Coefficients, and what a recurrence says is left of the right-hand side.
    slow : bool
        Whether that is too much.
    lowest : float
        Least eigenvalue of the matrix, about; one at most.
    """

    u: Array
    left: Array
    slow: bool
    lowest: float


def descend(
    unit: Products,
    along: Array,
    goal: Vector,
    limit: int,
    precondition: Callable[[Array], Array] | None = None,
) -> Descent:
    """Solve ``B'B u = along``, as far as so many steps go.

    Parameters
    ----------
    unit : Products
        ``B``.
    along : ndarray of shape (k, w)
        Right-hand sides.
    goal : ndarray of shape (w,)
        Lengths of what may be left of them.
    limit : int
        Most steps.
    precondition : callable, optional
        A product with nearly the inverse.
    """
    if 1 < along.shape[1] <= _NARROW and precondition is None:
        each = [
            _descend(unit, along[:, [j]], goal[[j]], limit, None) for j in range(along.shape[1])
        ]
        u, left = (np.hstack([getattr(one, name) for one in each]) for name in ("u", "left"))
        return Descent(u, left, any(d.slow for d in each), min(d.lowest for d in each))
    return _descend(unit, along, goal, limit, precondition)


def _descend(
    unit: Products,
    along: Array,
    goal: Vector,
    limit: int,
    precondition: Callable[[Array], Array] | None,
) -> Descent:
    # In units of the right-hand sides, which single precision could not hold.
    size = column_lengths(along)
    size[size == 0.0] = 1.0
    left: Any = (along / size).astype(unit.dtype)
    aim = np.square(goal / size)
    u, room = np.zeros_like(left), np.empty_like(left)
    towards = left if precondition is None else precondition(left)
    inner, step = _inner(left, towards), towards.copy()
    open_, steps = _inner(left, left) > aim, list[tuple[float, float]]()
    for _ in range(limit):
        if not open_.any():
            break
        image = unit.apply(step)
        length = _inner(image, image)
        # Columns that have arrived stay where they are.
        open_ &= length > 0.0
        share = np.divide(inner, length, out=np.zeros_like(length), where=open_)
        factor = share.astype(unit.dtype)
        u += np.multiply(factor, step, out=room)
        left -= np.multiply(factor, unit.cross(image), out=room)
        if open_[0]:
            steps.append((float(share[0]), float(inner[0])))
        towards = left if precondition is None else precondition(left)
        now = _inner(left, towards)
        open_ = (now if precondition is None else _inner(left, left)) > aim
        ratio = np.divide(now, inner, out=np.zeros_like(now), where=inner > 0.0)
        step *= ratio.astype(unit.dtype)
        step += towards
        inner = now
    lowest = 1.0 if precondition is not None else _lowest_of(steps)
    slow = bool((_inner(left, left) > aim).any())
    return Descent(size * u.astype(np.float64), size * left.astype(np.float64), slow, lowest)


def _lowest_of(steps: list[tuple[float, float]]) -> float:
    """Least eigenvalue, about, by the steps of conjugate gradients and the squares before them."""
    if not steps:
        return 1.0
    share, inner = np.array(steps).T
    ratio = inner[1:] / inner[:-1]
    diagonal = 1.0 / share
    diagonal[1:] += ratio / share[:-1]
    off = np.sqrt(ratio) / share[:-1]
    lowest = eigvalsh_tridiagonal(diagonal, off, select="i", select_range=(0, 0))[0]
    return min(float(lowest), 1.0)


def column_lengths(block: Array) -> Vector:
    """Norms of columns."""
    return np.asarray(np.sqrt(_inner(block, block)))


def _inner(a: Any, b: Any) -> Vector:
    if a.shape[1] == 1:
        return np.array([dot(a[:, 0], b[:, 0])], dtype=np.float64)
    return np.asarray(np.einsum("ij,ij->j", a, b), dtype=np.float64)
