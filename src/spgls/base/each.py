"""Arithmetic for one strength or for many: a number each, or an array with one entry for each.

Formulas of the sphere problem are written once, for strengths of shape ``(G,)`` or ``()``. The
numbers of a single strength are NumPy scalars, for which these functions cost next to nothing.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

__all__ = ["Each", "any_of", "choose", "column", "dots"]

#: A number, or an array of one for each strength.
Each: TypeAlias = Any


def any_of(flags: Each) -> bool:
    """Whether any is set."""
    return bool(flags.any() if flags.ndim else flags)


def column(numbers: Each) -> Each:
    """The numbers beside an axis of coordinates."""
    return numbers[..., None] if numbers.ndim else numbers


def choose(flags: Each, first: Each, second: Each) -> Each:
    """Take the first number where the flag is set, the second elsewhere."""
    return np.where(flags, first, second) if flags.ndim else (first if flags else second)


def dots(a: Each, b: Each) -> Each:
    """Inner products of the last axis."""
    # The method costs a third of what the operator does.
    return a.dot(b) if a.ndim == 1 else _vecdot(a, b)


def _einsum_dots(a: Each, b: Each) -> Each:
    return np.einsum("...i,...i->...", a, b)


# NumPy 2 has it as a function of its own.
_vecdot = getattr(np, "vecdot", _einsum_dots)
