"""What stands between ``A'`` and ``A`` in a Gram product: weights and a projection."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from spgls.base.types import Array, Vector
from spgls.matrix.pieces import in_pieces, sum_length
from spgls.matrix.protocol import RowMap

__all__ = ["RowStep", "on_rows"]


@dataclass(frozen=True)
class RowStep:
    """``M = R (I - Q Q') R`` as a map of some rows of ``A v`` at a time.

    A :data:`~spgls.matrix.protocol.RowMap` whose parts are known, so that compiled products can
    apply it to a row while they have it.

    Attributes
    ----------
    row : ndarray of shape (m,), optional
        Diagonal of ``R``; square roots of weights in a game.
    parts : tuple of ndarray
        Columns ``Q``, orthonormal, side by side; each array has all rows.
    along : ndarray of shape (f,) or (f, w)
        ``Q'R A v``, known beforehand.
    left : ndarray of the shape of ``along``
        What rounding and a shift left along ``Q``, summed over the rows seen so far.
    """

    row: Vector | None = None
    parts: tuple[Array, ...] = ()
    along: Array = field(default_factory=lambda: np.zeros(0))
    left: Array = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def projection(cls, basis: Array, along: Array, *more: Array) -> RowStep:
        """``I - Q Q'`` for a product whose part along ``Q`` is known; ``more`` of its columns."""
        return cls(parts=(basis, *more), along=along, left=np.zeros_like(along))

    @cached_property
    def basis(self) -> Array | None:
        """``Q`` as one array."""
        return np.hstack(self.parts) if len(self.parts) > 1 else next(iter(self.parts), None)

    def weighted(self, row: Vector | None) -> RowStep:
        """Return the same between two factors of rows; sums go to the same place."""
        return self if row is None else replace(self, row=row)

    def restricted(self, rows: slice) -> RowStep:
        """Return the same for some rows, numbered from zero; sums go to the same place."""
        row = None if self.row is None else self.row[rows]
        basis = () if self.basis is None else (self.basis[rows],)
        return replace(self, row=row, parts=basis)

    def __call__(self, rows: slice, t: Array) -> Array:
        """Map the rows of ``A v`` that a slice names."""
        row = None if self.row is None else self.row[rows]
        if row is not None:
            row = row if t.ndim == 1 else row[:, None]
            t = row * t
        if self.basis is not None:
            t = t - self.basis[rows] @ self.along
            self.left[...] += in_pieces(self.basis[rows], t, sum_length(len(t)))
        return t if row is None else row * t


def on_rows(middle: RowMap | None, rows: slice) -> RowMap | None:
    """Return a map of all rows as one of some, numbered from zero."""
    if middle is None:
        return None
    if isinstance(middle, RowStep):
        return middle.restricted(rows)
    return lambda some, t: middle(slice(rows.start + some.start, rows.start + some.stop), t)
