"""What data in memory has in common, dense or sparse."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from spgls.base.cached import cached_property
from spgls.base.types import Array, Vector
from spgls.matrix.compiler import compiler_works
from spgls.matrix.pieces import block_length, cuts
from spgls.matrix.protocol import RowMap

__all__ = ["FEW", "InMemory", "first_non_finite"]

#: Up to so many columns, one product for each beats one for all.
FEW = 3
#: Products of more columns than this are left to BLAS and SciPy.
_WIDEST = 8


class InMemory(ABC):
    """A NumPy array or a sparse matrix, kept by reference as ``values``."""

    values: Any
    #: Whether compiled products would be worth loading.
    _large: bool

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        m, n = self.values.shape
        return int(m), int(n)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the stored numbers."""
        kind: np.dtype[Any] = self.values.dtype
        return kind

    @property
    def threaded(self) -> bool:
        """Where products are compiled."""
        return self._compilable

    @abstractmethod
    def apply(self, v: Array, shift: Vector | None = None) -> Array:
        """``A v``."""

    @abstractmethod
    def cross(self, u: Array, shift: Vector | None = None) -> Array:
        """``A' u``."""

    def row_panels(self, rows: int) -> Iterator[tuple[slice, Array]]:
        """Dense float64 row blocks."""
        return ((piece, _dense(self.values[piece])) for piece in cuts(self.shape[0], rows))

    def column_panels(self, columns: int) -> Iterator[tuple[slice, Array]]:
        """Dense float64 column blocks."""
        return ((piece, _dense(self.values[:, piece])) for piece in cuts(self.shape[1], columns))

    @cached_property
    def _compilable(self) -> bool:
        """Whether the data is large enough for compiled products, and there are any."""
        return self._large and compiler_works()

    def _narrow(self, v: Array) -> bool:
        """Whether products are compiled for so few columns."""
        return self._compilable and (v.ndim == 1 or 0 < v.shape[1] <= _WIDEST)

    def _in_two_reads(self, v: Array, shift: Vector | None, middle: RowMap | None) -> Array:
        """``A' M A v``, one product after the other."""
        t = self.apply(v, shift)
        return self.cross(t if middle is None else middle(slice(0, len(t)), t), shift)


def _dense(values: Any) -> Array:
    wide = values.astype(np.float64, copy=False)
    return np.asarray(wide.toarray() if sp.issparse(wide) else wide)


def first_non_finite(entries: NDArray[np.floating[Any]]) -> tuple[int, ...] | None:
    """Place of the first entry that is not finite; None if all are."""
    # One sum reads the data once and keeps no copy; only a bad sum is worth a closer look.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(entries.sum(dtype=np.float64)):
            return None
    for piece in cuts(len(entries), block_length(entries[0].size)):
        bad = np.argwhere(~np.isfinite(entries[piece]))
        if len(bad):
            first, *rest = bad[0].tolist()
            return (piece.start + first, *rest)
    return None
