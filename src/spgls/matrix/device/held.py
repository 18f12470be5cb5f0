"""Copies of the host's vectors on a device, made once, and a row step made of them."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spgls.base.devices import Place
from spgls.matrix.protocol import RowMap
from spgls.matrix.row_step import RowStep

__all__ = ["Held", "Parts"]

#: Vectors whose copies are kept: weights, their roots, a basis, a shift.
_MOST = 6


class Parts(NamedTuple):
    """A :class:`~spgls.matrix.row_step.RowStep` on a device."""

    row: Any
    basis: Any
    along: Any

    def on_rows(self, rows: slice, t: Any) -> tuple[Any, Any]:
        """Some rows of ``A v`` mapped, and what is left of them along the basis."""
        row = None
        if self.row is not None:
            row = self.row[rows] if t.ndim == 1 else self.row[rows][:, None]
            t = row * t
        left = None
        if self.basis is not None:
            some = self.basis[rows, :]
            t = t - some @ self.along
            left = some.T @ t
        return t if row is None else row * t, left


class Held:
    """Device copies of arrays that come again with every product.

    They are known by identity: nobody writes to a basis or to weights once a game has them.

    Parameters
    ----------
    place : Place
        Where.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._copies: OrderedDict[int, tuple[NDArray[Any], Any]] = OrderedDict()

    def copy(self, values: NDArray[np.float64]) -> Any:
        """The copy of an array, made now if it is new."""
        key = id(values)
        if key in self._copies:
            self._copies.move_to_end(key)
        else:
            # With the array itself, so that no other takes its identity.
            self._copies[key] = values, self._place.put(values)
            if len(self._copies) > _MOST:
                self._copies.popitem(last=False)
        return self._copies[key][1]

    def parts(self, middle: RowMap | None) -> Parts | None:
        """A row step whose parts are known; None for any other map, or none."""
        if not isinstance(middle, RowStep):
            return None
        row = None if middle.row is None else self.copy(middle.row)
        if middle.basis is None:
            return Parts(row, None, None)
        return Parts(row, self.copy(middle.basis), self._place.put(middle.along))
