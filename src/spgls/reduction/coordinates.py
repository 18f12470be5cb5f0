"""Coordinates in which every column has a cost of its own, for moves of any kind.

Let ``K = R'R`` with ``R`` of full row rank. Then ``q = w'Kw`` is the squared norm of ``v = Rw``,
and nobody can move against coefficients with ``Rw = 0``: they are free. Some columns of ``R``, the
pivots, are a basis of all of them, ``R = [R_1, R_2]``. The coordinates of ``w`` are ``v`` in the
place of its pivots and, where it has none, ``w`` itself: ``w_pivots = R_1^{-1}(v - R_2 w_rest)``.
So a game with any ``K`` is one with costs of one and of ``inf``, on combined columns of the data,
and nothing to the right of this file knows of another kind.

Columns that no action joins to others keep their place and their cost. Where all that is joined is
too much for a dense factorisation, as in long chains of actions, the map is applied by sparse
factors of its inverse, ``w -> (v, w_rest)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import qr, solve_triangular
from scipy.sparse.csgraph import connected_components, min_weight_full_bipartite_matching

from spgls.base.types import EPS, Array, Vector
from spgls.game.moves import Moves
from spgls.matrix import Change, Matrix, column_squares, combine_columns, whole_columns

__all__ = ["Coordinates", "coordinates_of"]

#: Joined actions and columns are factorised as a dense block of up to so many numbers,
_BLOCK = 2e7
#: with so many multiplications.
_WORK = 2e10
#: Ulps by which weights of a free direction may miss whole numbers that they should be.
_SNAP = 64 * EPS
#: Rounding of a combination, in ulps of its terms times the root of their number.
_ULPS = 8.0
#: What is left of columns beside others, in units of their lengths, where they are independent.
_CLEAR = 1e-8
#: Columns of a one-hot group, at most, whose coefficients are centred.
_SMALL = 500
#: Columns shorter than this, in units of the longest, count as so long where they are compared.
_TINY = 1e-12
_NOWHERE = np.zeros(0, dtype=np.intp)


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Coefficients of the data, ``w``, by coefficients of its combined columns, ``w'``.

    Attributes
    ----------
    moves : Moves
        What providers can do.
    change : Change
        The map ``w = E w'``.
    cost : ndarray of shape (n,)
        What each combined column costs; ``inf`` for free ones.
    origin : ndarray of shape (n,), optional
        What is subtracted from rows before they are combined.
    exact : ndarray of bool
        Which combined columns are known not to be rounded.
    """

    moves: Moves
    change: Change
    cost: Vector
    origin: Vector | None
    exact: np.ndarray

    def outwards(self, coef: Array) -> Array:
        """Coefficients of the data; vectors, or blocks with a column for each predictor."""
        out = self.change.outwards(coef)
        # What rounding did to moves is taken back once, lest large free coefficients move people.
        return np.asarray(out + self.change.outwards(coef - self.change.inwards(out)))

    def inwards(self, coef: Array) -> Array:
        """Coefficients of the combined columns."""
        return self.change.inwards(coef)

    def offset(self, coef: Array) -> Array | float:
        """What an intercept beside combined columns has more than one beside the data."""
        return 0.0 if self.origin is None else self.origin @ coef

    def blur(self, lengths: Vector) -> float:
        """Rounding of combined columns, in units of their lengths.

        Parameters
        ----------
        lengths : ndarray of shape (n,)
            Lengths of the combined columns.
        """
        unit = (_ULPS + _ULPS * np.sqrt(self.change.terms)) * EPS
        return float(unit * self.change.growth(lengths, self.exact))


def coordinates_of(matrix: Matrix, moves: Moves, fit_intercept: bool) -> tuple[Matrix, Coordinates]:
    """The data with its columns combined, and how.

    Parameters
    ----------
    matrix : Matrix
        The data.
    moves : Moves
        What providers can do.
    fit_intercept : bool
        Whether there is an intercept, which takes up what is subtracted from all rows.
    """
    shift = matrix.typical_row(None) if fit_intercept else None
    squares = column_squares(matrix, None, shift)
    lengths = np.sqrt(np.where(np.isfinite(squares), squares, 1.0))
    change, cost = _change(moves, np.maximum(lengths, _TINY * (lengths.max(initial=0.0) or 1.0)))
    known = squares if shift is None else None
    told, origin = combine_columns(matrix, change, fit_intercept, known)
    exact = change.alone
    if change.whole.any() and whole_columns(matrix, change.feeding):
        exact = exact | change.whole
    return told, Coordinates(moves, change, cost, origin, exact)


class _Block(NamedTuple):
    """Some joined columns: their pivots among them, the inverse map and the map."""

    pivots: np.ndarray
    inverse: Array | sp.csr_array
    forward: Array | None


def _change(moves: Moves, lengths: Vector) -> tuple[Change, Vector]:
    """The map, and what its coordinates cost; ``lengths`` of columns make them comparable."""
    factor, n = sp.csr_array(moves.factor), moves.columns
    factor.eliminate_zeros()
    k = factor.shape[0]
    pattern = sp.csr_array((np.ones(factor.nnz), factor.indices, factor.indptr), shape=(k, n))
    joined = sp.block_array([[None, pattern], [pattern.T, None]]) if k else sp.csr_array((n, n))
    _, label = connected_components(joined, directed=False)
    action, column = label[:k], label[k:]
    size = np.bincount(column, minlength=label.max(initial=0) + 1)
    with np.errstate(divide="ignore"):
        cost = 1.0 / np.asarray((factor * factor).sum(axis=0)).ravel()
    # Columns in the order of what they are joined to.
    where = np.flatnonzero(size[column] > 1)
    where = where[np.argsort(column[where], kind="stable")]
    starts = np.flatnonzero(np.diff(column[where], prepend=-1))
    groups = np.split(where, starts[1:]) if len(where) else []
    by_action = np.argsort(action, kind="stable")
    first = np.searchsorted(action[by_action], np.arange(len(size) + 1))
    inverse, forward = [], []
    for group in groups:
        own = column[group[0]]
        rows = by_action[first[own] : first[own + 1]]
        block = _block(factor[rows][:, group], 1.0 / lengths[group])
        cost[group] = np.inf
        cost[group[block.pivots]] = 1.0
        inverse.append(block.inverse)
        forward.append(block.forward)
    if not groups:
        empty = sp.csr_array((0, 0))
        return Change(n, _NOWHERE, empty, empty), cost
    explicit = all(one is not None for one in forward)
    return (
        Change(
            n,
            where,
            sp.csr_array(sp.block_diag(inverse)),
            sp.csr_array(sp.block_diag(forward)) if explicit else None,
        ),
        cost,
    )


def _block(factor: sp.csr_array, unit: Vector) -> _Block:
    """Coordinates of columns that actions join; a column is in as many units as ``unit`` says."""
    k, n = factor.shape
    if k * n <= _BLOCK and min(k, n) ** 2 * max(k, n) <= _WORK:
        return _dense_block(factor.toarray(), unit)
    return _sparse_block(factor, unit)


def _dense_block(factor: Array, unit: Vector) -> _Block:
    """By a triangular factorisation.

    Pivots are where actions, each at unit length, have the largest effects on columns of unit
    length: then columns that are combined with pivots keep a part of their own.
    """
    n = len(unit)
    scaled = factor * unit
    pivots = _pivots(scaled / np.linalg.norm(scaled, axis=1)[:, None])
    rest = np.delete(np.arange(n), pivots)
    rank = len(pivots)
    turn, head = qr(scaled[:, pivots], mode="economic", check_finite=False)
    tail = turn.T @ scaled[:, rest]
    forward, inverse = np.zeros((n, n)), np.zeros((n, n))
    forward[np.ix_(pivots, pivots)] = unit[pivots, None] * solve_triangular(head, np.eye(rank))
    inverse[np.ix_(pivots, pivots)] = head / unit[pivots]
    weights = -solve_triangular(head, tail)
    weights[np.abs(weights) <= _SNAP * n] = 0.0
    free = unit[pivots, None] * weights / unit[rest]
    # Free directions of small whole numbers, such as the sum of a one-hot group, are exact.
    whole = np.round(free)
    near = (np.abs(free - whole) <= _SNAP * n * np.abs(whole)) & (np.abs(whole) < 1e3)
    forward[np.ix_(pivots, rest)] = np.where(near, whole, free)
    inverse[np.ix_(pivots, rest)] = tail / unit[rest]
    forward[rest, rest] = inverse[rest, rest] = 1.0
    if len(rest) and n <= _SMALL and np.isin(forward[:, rest], (-1.0, 0.0, 1.0)).all():
        _centre(forward, inverse, pivots, rest)
    return _Block(pivots, inverse, forward)


def _pivots(columns: Array) -> np.ndarray:
    """Columns that are a basis of all, large ones first.

    A column counts where more than rounding is left of it beside those before, whatever the sizes
    of others.
    """
    k, n = columns.shape
    own = np.linalg.norm(columns, axis=0)
    r, order = qr(columns, mode="r", pivoting=True, check_finite=False)
    left = np.abs(np.diag(r)) / own[order[: min(k, n)]]
    if (left > _CLEAR).all():
        return np.asarray(order[: min(k, n)])
    rest, basis, pivots = columns.copy(), np.zeros((k, 0)), list[int]()
    for _ in range(min(k, n)):
        size = np.linalg.norm(rest, axis=0)
        size[size <= 8 * max(k, n) * EPS * own] = 0.0
        size[pivots] = 0.0
        at = int(np.argmax(size))
        if size[at] == 0.0:
            break
        direction = rest[:, at] / size[at]
        direction -= basis @ (basis.T @ direction)
        direction /= np.linalg.norm(direction)
        pivots.append(at)
        basis = np.column_stack([basis, direction])
        rest -= np.outer(direction, direction @ rest)
    return np.array(pivots, dtype=np.intp)


def _centre(forward: Array, inverse: Array, pivots: np.ndarray, rest: np.ndarray) -> None:
    """Make the directions of moves orthogonal to the free ones, in place.

    So no column of a one-hot group is chosen as a reference, and the order of columns plays no
    part.
    """
    free = forward[:, rest]
    along = np.linalg.solve(free.T @ free, free.T @ forward[:, pivots])
    forward[:, pivots] -= free @ along
    inverse[rest] += along @ inverse[pivots]


def _sparse_block(factor: sp.csr_array, unit: Vector) -> _Block:
    """By the inverse map alone: its rows are actions, and a free column each for the others."""
    k, n = factor.shape
    # A pivot for each action, such that the map can be inverted, and as large as can be.
    weight = sp.csr_array(abs(factor) @ sp.diags_array(unit))
    weight.data = 1.0 + np.log(weight.data.max() / weight.data)
    try:
        pivot = min_weight_full_bipartite_matching(weight)[1] if k <= n else None
    except ValueError:
        pivot = None
    if pivot is None:
        raise ValueError(
            f"feature_cost has {k} actions that join {n} columns and depend on each other, which "
            "is too much for a dense factorisation. Merge or drop actions that others can replace."
        ) from None
    rows = sp.coo_array(factor)
    rest = np.delete(np.arange(n), pivot)
    inverse = sp.csr_array(
        (
            np.append(rows.data, np.ones(len(rest))),
            (np.append(pivot[rows.row], rest), np.append(rows.col, rest)),
        ),
        shape=(n, n),
    )
    return _Block(np.sort(pivot), inverse, None)
