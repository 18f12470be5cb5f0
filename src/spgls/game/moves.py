"""What providers can do to their rows, where that is more than one cost a feature.

A provider takes actions: the amounts ``a`` move its row by ``B'a`` and cost ``sum_i c_i a_i^2``. So
a change of prediction is worth ``q = w'Kw`` to it, with ``K = B' diag(1/c) B``, and it moves along
``Kw``, taking ``(Bw)_i/c_i`` of each action. One cost a feature is the case of an action for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import fsum
from typing import Any, TypeAlias, overload

import numpy as np
import scipy.sparse as sp

from spgls.base.types import EPS, Array, Vector
from spgls.base.vector import exact_terms

__all__ = ["Cost", "Moves", "Numbered"]

#: Larger numbers are not split into halves.
_SPLIT = 1e290
#: Rounding of an action's effects over the root of its cost, and of the root.
_ULPS = 4


@dataclass(frozen=True)
class Numbered(Sequence[str]):
    """Names of actions that have none: their numbers, written when they are asked for.

    Parameters
    ----------
    length : int
        How many actions there are.
    """

    length: int

    def __len__(self) -> int:
        return self.length

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[str]: ...
    def __getitem__(self, at: int | slice) -> str | Sequence[str]:
        if isinstance(at, slice):
            return [f"action {one}" for one in range(self.length)[at]]
        return f"action {range(self.length)[at]}"


@dataclass(frozen=True, eq=False)
class Moves:
    """Actions on the columns of some data, by number.

    Parameters
    ----------
    effects : ndarray or CSR array of shape (k, n)
        What a unit of each action does to each column.
    cost : ndarray of shape (k,)
        Cost of a squared unit of each action; ``inf`` if nobody can take it.
    names : sequence of k str
        What the actions are called; empty where they are no more than a way to write ``K``.
    closed : sequence of ndarray
        Groups of columns whose changes add up to zero, whatever rounding of the effects says.
    """

    effects: Any
    cost: Vector
    names: Sequence[str] = ()
    closed: Sequence[np.ndarray] = ()

    @property
    def columns(self) -> int:
        """Number of columns of the data."""
        return int(self.effects.shape[1])

    @cached_property
    def taken(self) -> np.ndarray:
        """Actions that somebody can take."""
        return np.flatnonzero(np.isfinite(self.cost))

    @cached_property
    def factor(self) -> Any:
        """``diag(c)^{-1/2} B``, so that ``K`` is its square; actions nobody can take left out."""
        taken = self.taken
        price = 1.0 / np.sqrt(self.cost[taken])
        if sp.issparse(self.effects):
            rows = sp.csr_array(self.effects)
            rows = rows.copy() if len(taken) == rows.shape[0] else rows[taken]
            rows.data *= np.repeat(price, np.diff(rows.indptr))
            return rows
        return price[:, None] * self.effects[taken]

    @cached_property
    def reached(self) -> np.ndarray:
        """Whether each column can be changed by some action."""
        return np.asarray(abs(self.factor).sum(axis=0)).ravel() > 0.0

    @cached_property
    def diagonal(self) -> Vector | None:
        """The cost of each column where every action moves one of them; else None."""
        factor = sp.csr_array(self.factor)
        factor.eliminate_zeros()
        if (np.diff(factor.indptr) > 1).any():
            return None
        worth = np.bincount(factor.indices, factor.data**2, minlength=self.columns)
        with np.errstate(divide="ignore"):
            return np.asarray(1.0 / worth)

    @property
    def feature_cost(self) -> Vector:
        """``1/K_jj``: what a column costs to change if it is all that matters; else ``inf``."""
        worth = np.asarray((self.factor * self.factor).sum(axis=0)).ravel()
        with np.errstate(divide="ignore"):
            return np.asarray(1.0 / worth)

    def reach(self, coef: Vector) -> float:
        """``q = w'Kw``."""
        return float(self.reaches(coef[:, None])[0])

    def reaches(self, coef: Array) -> Vector:
        """``q`` of each column of coefficients."""
        v = self.factor @ coef
        return np.asarray(np.einsum("ij,ij->j", v, v))

    def exact_reach(self, coef: Vector) -> float:
        """``q``, where large coefficients cancel in what an action gains: those sums are exact."""
        if not abs(coef).max(initial=0.0) < _SPLIT:
            return self.reach(coef)
        rows = sp.csr_array(self.effects)[self.taken]
        ends = rows.indptr.tolist()
        gains = (
            fsum(exact_terms(rows.data[low:high], coef[rows.indices[low:high]]))
            for low, high in pairwise(ends)
        )
        costs = self.cost[self.taken].tolist()
        return fsum(gain * (gain / cost) for gain, cost in zip(gains, costs, strict=True))

    def reach_rounding(self, coef: Vector) -> float:
        """What rounding can have done to ``sqrt(q)``, not counting that of its last digits."""
        terms, sizes = self._sizes
        return EPS * float(np.linalg.norm(terms * (sizes @ abs(coef))))

    @cached_property
    def _sizes(self) -> tuple[Vector, sp.csr_array]:
        """Roundings of a sum over each action, and sizes of the entries of :attr:`factor`."""
        sizes = abs(sp.csr_array(self.factor))
        return np.diff(sizes.indptr) + float(_ULPS), sizes

    def direction(self, coef: Vector) -> Vector:
        """``Kw``: how a row moves per unit of step."""
        # Plus zero, lest columns that nobody can change move by minus zero.
        return np.asarray(self.factor.T @ (self.factor @ coef)) + 0.0

    def amounts(self, coef: Vector) -> Vector:
        """How much of each action is taken per unit of step."""
        return np.asarray((self.effects @ coef) / self.cost)

    def on(self, kept: np.ndarray) -> Moves:
        """The same actions where only some of the columns count."""
        numbers = np.arange(self.columns)[kept]
        whole = (group for group in self.closed if np.isin(group, numbers).all())
        closed = [np.flatnonzero(np.isin(numbers, group)) for group in whole]
        return Moves(self.effects[:, kept], self.cost, self.names, closed)

    def dearer(self, columns: np.ndarray, *, forbidden: bool) -> Moves:
        """Moves that cost more by how much they change some columns.

        A change of column ``j`` by ``d_j`` costs ``d_j^2/K_jj`` more: twice as much as before where
        nothing else matters. Or it is forbidden, and people move as they can without it.

        Parameters
        ----------
        columns : ndarray of int
            The columns.
        forbidden : bool
            Whether nobody may change them any more.
        """
        factor = sp.csr_array(self.factor)
        own = factor[:, columns].toarray()
        touched = np.flatnonzero(own.any(axis=1))
        own, there = own[touched], factor[touched].toarray()
        basis, sizes, turn = np.linalg.svd(own)
        rank = int((sizes > 8 * max(own.shape) * EPS * sizes.max(initial=0.0)).sum())
        if forbidden:
            # What people can do without them.
            there = basis[:, rank:].T @ there
            there[:, columns] = 0.0
        else:
            # K' = K - K_J (K_JJ + D)^{-1} K_J', D the diagonal of K_JJ, is the square of a factor.
            along = sizes[:rank, None] * turn[:rank]
            worth = along.T @ along
            inner = np.linalg.pinv(worth + np.diag(worth.diagonal()), hermitian=True)
            less, within = np.linalg.eigh(along @ inner @ along.T)
            shrunk = (within * (1.0 - np.sqrt(1.0 - less))) @ within.T
            there = there - basis[:, :rank] @ (shrunk @ (basis[:, :rank].T @ there))
        rest = np.delete(np.arange(factor.shape[0]), touched)
        effects = sp.csr_array(sp.vstack([factor[rest], sp.csr_array(there)]))
        closed = [np.setdiff1d(one, columns) if forbidden else one for one in self.closed]
        return Moves(effects, np.ones(effects.shape[0]), closed=closed)

    def __repr__(self) -> str:
        k, n = self.effects.shape
        what = f"{k} actions" if self.names else "a matrix of costs"
        return f"Moves({what}, {int(self.reached.sum())} of {n} columns can be changed)"


#: Costs as they are resolved: one a column, ``inf`` if immutable; general ones; None for all one.
Cost: TypeAlias = Vector | Moves | None
