"""Free columns at unit length: in double precision, and in single for iterations corrected later.

Products of sparse columns take two thirds of the time in single precision. What comes of them is
never trusted: an iteration on them is begun anew from a residual in double precision.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from spgls.base.types import Array, Vector

__all__ = ["Products", "SingleColumns", "UnitColumns"]

Single = NDArray[np.float32]


class Products(Protocol):
    """``B = F D`` through products with blocks of columns, in numbers of one type."""

    @property
    def dtype(self) -> Any:
        """Type of the numbers."""
        ...

    def apply(self, u: Any) -> Any:
        """``B u``."""
        ...

    def cross(self, t: Any) -> Any:
        """``B't``."""
        ...


class _Columns(Protocol):
    def apply(self, u: Array) -> Array: ...

    def cross(self, t: Array) -> Array: ...


class UnitColumns:
    """``F D`` in double precision.

    Parameters
    ----------
    columns : Columns
        ``F``.
    scale : ndarray of shape (k,)
        Diagonal of ``D``.
    """

    dtype = np.float64

    def __init__(self, columns: _Columns, scale: Vector) -> None:
        self._columns, self._scale = columns, scale

    def apply(self, u: Array) -> Array:
        """``F D u`` of a vector or of columns; a single one is multiplied as a vector."""
        if u.ndim == 1:
            return self._columns.apply(self._scale * u)
        if u.shape[1] == 1:
            return self._columns.apply(self._scale * u[:, 0])[:, None]
        return self._columns.apply(self._scale[:, None] * u)

    def cross(self, t: Array) -> Array:
        """``D F't``."""
        if t.ndim == 1:
            return self._scale * self._columns.cross(t)
        if t.shape[1] == 1:
            return (self._scale * self._columns.cross(np.ascontiguousarray(t[:, 0])))[:, None]
        return np.asarray(self._scale[:, None] * self._columns.cross(t))


class SingleColumns:
    """``F D`` in single precision.

    Parameters
    ----------
    values : compressed sparse columns of shape (m, k)
        Columns of the data.
    constant : ndarray of shape (m,), optional
        A dense column before them.
    """

    dtype = np.float32

    def __init__(self, values: Any, constant: Single | None = None) -> None:
        self._values, self._turned, self._constant = values, values.T, constant

    def apply(self, u: Single) -> Single:
        """``F D u`` of columns."""
        own = u if self._constant is None else u[1:]
        out = self._values @ (own[:, 0] if u.shape[1] == 1 else own)
        out = out.reshape(len(out), -1)
        if self._constant is not None:
            out += np.multiply.outer(self._constant, u[0])
        return np.asarray(out)

    def cross(self, t: Single) -> Single:
        """``D F't`` of columns."""
        out = self._turned @ (t[:, 0] if t.shape[1] == 1 else t)
        out = out.reshape(len(out), -1)
        if self._constant is not None:
            out = np.concatenate([(self._constant @ t)[None], out])
        return np.asarray(out)

    def square_error(self) -> float:
        """At least ``|M~ - M|`` of the columns of the data, squared in single precision.

        An entry is a sum of at most as many products as a column has entries, each of numbers that
        were rounded: its error is so many ulps of ``|b_i|'|b_j|``, whose norm is at most that of
        its longest row.
        """
        size = self._values.copy()
        np.abs(size.data, out=size.data)
        terms = int(np.diff(size.indptr).max(initial=0)) + 4
        rows = size.T @ (size @ np.ones(size.shape[1], dtype=np.float32))
        return 1.1 * terms * float(np.finfo(np.float32).eps) * float(rows.max(initial=0.0))
