"""Other coordinates of coefficients: an invertible map that is known by its entries, or by factors.

Nothing here knows of data; what it does to the columns of some is in ``combined.py``.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, onenormest

from spgls.base.types import Array, Vector
from spgls.matrix.equations import Factors, factors_of

__all__ = ["Change", "block_diagonal"]

#: Steps towards a bound on the entries of a map that is known by its inverse, and the smallest
#: length that is bounded, in units of the largest.
_SWEEPS, _SMALL = 200, 1e-8


def block_diagonal(blocks: Iterable[Any]) -> sp.csr_array:
    """Dense or sparse blocks along the diagonal of a sparse array."""
    # An array among them, if only an empty one, says that an array is wanted and no matrix.
    return sp.csr_array(sp.block_diag([sp.coo_array((0, 0)), *blocks]))


class Change:
    """The map ``w = E w'`` between coefficients of the data and those of its combined columns.

    It is the identity but for some of the columns.

    Parameters
    ----------
    size : int
        Number of columns.
    where : ndarray of int
        The columns that are combined.
    inverse : CSR array
        ``E^{-1}`` on those columns.
    forward : CSR array, optional
        ``E`` itself; without it, it is applied by factors of the inverse.
    """

    def __init__(
        self,
        size: int,
        where: np.ndarray,
        inverse: sp.csr_array,
        forward: sp.csr_array | None = None,
    ) -> None:
        self.size, self.where = size, where
        self._inverse = _handy(inverse)
        self._forward = None if forward is None else _handy(forward)
        self._everywhere = bool(np.array_equal(where, np.arange(size)))

    @property
    def explicit(self) -> bool:
        """Whether the map is known by its entries."""
        return self._forward is not None

    @cached_property
    def _factors(self) -> Factors:
        found = factors_of(sp.csr_array(self._inverse))
        if found is None:
            raise ValueError(
                "feature_cost has actions that depend on each other among too many columns for a "
                "dense factorisation. Merge or drop actions that others can replace."
            )
        return found

    def outwards(self, v: Array) -> Array:
        """``E v``."""
        if self._forward is not None:
            return self._on(v, self._forward.__matmul__)
        return self._on(v, self._factors.solve)

    def across(self, g: Array) -> Array:
        """``E' g``."""
        if self._forward is not None:
            return self._on(g, self._forward.T.__matmul__)
        return self._on(g, lambda t: self._factors.solve(t, trans="T"))

    def inwards(self, w: Array) -> Array:
        """``E^{-1} w``."""
        return self._on(w, self._inverse.__matmul__)

    def back_across(self, s: Array) -> Array:
        """``E^{-T} s``."""
        return self._on(s, self._inverse.T.__matmul__)

    def matrix(self) -> sp.csr_array:
        """``E`` itself, of all columns."""
        own = sp.coo_array(self._forward)
        rest = np.delete(np.arange(self.size), self.where)
        rows, columns = (np.append(self.where[part], rest) for part in (own.row, own.col))
        data = np.append(own.data, np.ones(len(rest)))
        return sp.csr_array((data, (rows, columns)), shape=(self.size, self.size))

    def entries(self) -> Array:
        """``E`` as an array."""
        return self.outwards(np.eye(self.size))

    def _on(self, v: Array, act: Any) -> Array:
        if self._everywhere:
            return np.asarray(act(np.ascontiguousarray(v, dtype=np.float64)))
        out = np.array(v, dtype=np.float64, order="C")
        out[self.where] = act(np.ascontiguousarray(out[self.where]))
        return out

    @cached_property
    def alone(self) -> np.ndarray:
        """Which combined columns are columns of the data, perhaps with another sign."""
        out = self._signed(1, 1)
        out[np.delete(np.arange(self.size), self.where)] = True
        return out

    @cached_property
    def whole(self) -> np.ndarray:
        """Which combined columns are sums and differences of several."""
        return self._signed(2, self.size)

    def _signed(self, least: int, most: int) -> np.ndarray:
        """Columns of the map that have so many entries, each of size one."""
        out = np.zeros(self.size, dtype=bool)
        if self.explicit:
            entries = sp.csc_array(self._forward)
            entries.eliminate_zeros()
            count = np.diff(entries.indptr)
            column = np.repeat(np.arange(len(count)), count)
            units = np.bincount(column, np.abs(entries.data) == 1.0, minlength=len(count))
            out[self.where] = (units == count) & (count >= least) & (count <= most)
        return out

    @cached_property
    def feeding(self) -> np.ndarray:
        """Columns of the data that some of :attr:`whole` are made of."""
        if not self.whole.any():
            return np.zeros(0, dtype=np.intp)
        part = abs(sp.csc_array(self._forward)[:, np.flatnonzero(self.whole[self.where])])
        return np.asarray(self.where[np.asarray(part.sum(axis=1)).ravel() > 0.0])

    @cached_property
    def terms(self) -> int:
        """Most columns that one combination is of."""
        longest = 1
        for part in (self._inverse, self._forward):
            if part is not None:
                longest = max(longest, int(np.diff(sp.csc_array(part).indptr).max(initial=1)))
        return longest

    def growth(self, lengths: Vector, exact: np.ndarray) -> float:
        """How many times more than its own length the rounding of a combined column can be.

        By the condition number of Skeel, with columns weighted by their lengths: in units of
        rounding, products with combined columns are wrong by no more than this many times the sum
        of ``lengths * |v|``.

        Parameters
        ----------
        lengths : ndarray of shape (n,)
            Lengths of the combined columns.
        exact : ndarray of bool
            Which of them are known not to be rounded.
        """
        own, rounded = lengths[self.where], ~exact[self.where]
        if not rounded.any():
            return 0.0
        before = np.asarray(abs(self._inverse).T @ own)
        reach = self._gathered(before)
        if reach is None:
            reach = self._estimated(before, own)
        reach = reach[rounded]
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(np.where(reach > 0.0, reach / own[rounded], 0.0).max())

    def lengths(self, before: Vector) -> Vector | None:
        """Upper bounds of the lengths of combined columns, from those of the data.

        None where none is known without the entries of the map.
        """
        out, own = before.copy(), self._gathered(before[self.where])
        if own is None:
            return None
        out[self.where] = own
        return out

    def _gathered(self, before: Vector) -> Vector | None:
        """``|E|' before``, or something larger; None if that is not known."""
        if self._forward is not None:
            return np.asarray(abs(self._forward).T @ before)
        diagonal, others = self._comparison
        return _majorised(diagonal, others, before) if diagonal.all() else None

    @cached_property
    def _comparison(self) -> tuple[Vector, sp.csr_array]:
        """Sizes of the diagonal of the inverse map, and of its other entries, transposed."""
        sizes = sp.csr_array(abs(self._inverse))
        diagonal = sizes.diagonal()
        return diagonal, sp.csr_array((sizes - sp.diags_array(diagonal)).T)

    def _estimated(self, before: Vector, own: Vector) -> Vector:
        """A bound on ``|E|' before``, relative to ``own``, by an estimate of a norm."""
        solve, m = self._factors.solve, len(own)
        unit = np.divide(1.0, own, out=np.zeros_like(own), where=own > 0.0)
        operator = LinearOperator(
            (m, m),
            matvec=lambda v: before * solve(unit * np.ravel(v)),
            rmatvec=lambda g: unit * solve(before * np.ravel(g), trans="T"),
            dtype=np.float64,
        )
        # The estimate is a lower bound, and rarely less than a third of the norm.
        return 3.0 * float(onenormest(operator)) * own


def _majorised(diagonal: Vector, others: sp.csr_array, before: Vector) -> Vector | None:
    """Something larger than ``|inverse^{-1}|' before``; None if none is found.

    Let ``C`` be the inverse map with all entries but the diagonal made negative, in size. Positive
    numbers ``y`` with ``C'y`` at least ``before``, and positive, are such a bound (Ostrowski).
    """
    wanted = np.maximum(before, _SMALL * float(before.max(initial=0.0)))
    y = wanted / diagonal
    for _ in range(_SWEEPS):
        spread = others @ y
        if (diagonal * y - spread >= wanted / 2).all():
            return np.asarray(2 * y)
        y = (wanted + spread) / diagonal
    return None


def _handy(entries: sp.csr_array) -> Any:
    """As an array where most entries are there, since products are faster then."""
    size = entries.shape[0] * entries.shape[1]
    return entries.toarray() if size and entries.nnz > 0.2 * size else entries
