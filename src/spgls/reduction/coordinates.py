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

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from math import fsum
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import qr, solve_triangular
from scipy.sparse.csgraph import connected_components, min_weight_full_bipartite_matching
from scipy.sparse.linalg import LinearOperator, onenormest

from spgls.base.types import EPS, Array, Vector
from spgls.base.vector import leading_bits
from spgls.game.moves import Moves
from spgls.matrix import (
    Change,
    Matrix,
    block_diagonal,
    column_squares,
    combine_columns,
    whole_columns,
)
from spgls.matrix.equations import factors_of

__all__ = ["Coordinates", "coordinates_of", "coordinates_of_sums"]

#: Joined actions and columns are factorised as a dense block of up to so many numbers,
_BLOCK = 2e7
#: with so many multiplications.
_WORK = 2e10
#: Up to so many joined columns they always are, if there is an action for each;
_FEW = 64
#: beyond that where actions have more effects than this times the columns.
_SPARSE = 8
#: Ulps by which weights of a free direction may miss whole numbers that they should be.
_SNAP = 64 * EPS
#: Rounding of a combination, in ulps of its terms times the root of their number; of many, half an
#: ulp for each.
_ULPS = 8.0
#: What is left of columns beside others, in units of their lengths, where they are independent.
_CLEAR = 1e-8
#: Actions closer to dependent than this prove nothing.
_DEPENDENT = 1e-7
#: Columns of a one-hot group, at most, whose coefficients are centred, and how much longer than
#: others some may be: short ones would drown in them.
_SMALL, _ALIKE = 500, 1e3
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
    least : float
        How far actions are from depending on each other: what no singular value of their effects is
        below, with actions and columns at about unit length. Zero where rounding of the effects
        decides what is free.
    """

    moves: Moves
    change: Change
    cost: Vector
    origin: Vector | None
    exact: np.ndarray
    least: float = 1.0

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
        if self.least < _DEPENDENT:
            # Rounding of the effects decides what some moves cost.
            return 1.0
        terms = self.change.terms
        unit = (_ULPS + max(_ULPS * np.sqrt(terms), terms / 2)) * EPS
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

    @cache
    def lengths() -> Vector:
        shift = matrix.typical_row(None) if fit_intercept else None
        return _comparable(column_squares(matrix, None, shift))

    change, cost, least = _change(moves, lengths)
    whole = bool(change.whole.any()) and whole_columns(matrix, change.feeding)
    told, origin = combine_columns(matrix, change, centred=fit_intercept, whole=whole)
    exact = change.alone | change.whole if whole else change.alone
    return told, Coordinates(moves, change, cost, origin, exact, least)


def coordinates_of_sums(moves: Moves, squares: Vector, origin: Vector | None) -> Coordinates:
    """Coordinates for columns of which only sums are left.

    Parameters
    ----------
    moves : Moves
        What providers can do.
    squares : ndarray of shape (n,)
        Squared lengths of the columns less the origin.
    origin : ndarray of shape (n,), optional
        What was subtracted from the rows; nothing without an intercept, which takes it up.
    """
    change, cost, least = _change(moves, lambda: _comparable(squares))
    # Sums do not tell whether columns hold whole numbers.
    return Coordinates(moves, change, cost, origin, change.alone, least)


class _Block(NamedTuple):
    """Some joined columns: their pivots among them, the inverse map and the map if it is known."""

    pivots: np.ndarray
    inverse: Array | sp.csr_array
    forward: Array | None
    #: As of :class:`Coordinates`.
    least: float = 1.0


def _comparable(squares: Vector) -> Vector:
    """Lengths of columns by their squares, such that they can be compared."""
    lengths = np.sqrt(np.where(np.isfinite(squares), squares, 1.0))
    return np.maximum(lengths, _TINY * (lengths.max(initial=0.0) or 1.0))


def _change(moves: Moves, lengths: Callable[[], Vector]) -> tuple[Change, Vector, float]:
    """The map, what its coordinates cost, and how far from dependent actions are.

    ``lengths`` are those of columns, where the map depends on them.
    """
    factor, n = sp.csr_array(moves.factor), moves.columns
    factor.eliminate_zeros()
    k = factor.shape[0]
    squares = np.bincount(factor.indices, np.square(factor.data), minlength=n)
    with np.errstate(divide="ignore"):
        cost = 1.0 / squares
    joined = _joined(factor)
    if not joined:
        empty = sp.csr_array((0, 0))
        return Change(n, _NOWHERE, empty, empty), cost, 1.0
    blocks = []
    effects = sp.csr_array(moves.effects)[moves.taken]
    for group, rows in joined:
        own = factor if len(rows) == k and len(group) == n else factor[rows][:, group]
        closed = any(np.array_equal(np.sort(group), np.sort(one)) for one in moves.closed)
        exact = None if closed else effects[rows][:, group]
        block = _block(own, partial(_units, lengths, group), exact)
        cost[group] = np.inf
        cost[group[block.pivots]] = 1.0
        blocks.append(block)
    where = np.concatenate([group for group, _ in joined])
    return Change(n, where, *_assembled(blocks)), cost, min(one.least for one in blocks)


def _units(lengths: Callable[[], Vector], group: np.ndarray) -> Vector:
    return np.asarray(1.0 / lengths()[group])


def _assembled(blocks: list[_Block]) -> tuple[sp.csr_array, sp.csr_array | None]:
    """The inverse map and the map of all groups; the latter by its entries for all, or for none."""
    if len(blocks) == 1:
        inverse, forward = sp.csr_array(blocks[0].inverse), blocks[0].forward
        return inverse, None if forward is None else sp.csr_array(forward)
    inverse = block_diagonal(one.inverse for one in blocks)
    if all(one.forward is None for one in blocks):
        return inverse, None
    entries = [_entries(one) for one in blocks]
    known = all(one is not None for one in entries)
    return inverse, block_diagonal(entries) if known else None


def _entries(block: _Block) -> Array | None:
    """The map of a group; None where it would be too large."""
    n = block.inverse.shape[0]
    if block.forward is not None or n * n > _BLOCK:
        return block.forward
    factors = factors_of(sp.csr_array(block.inverse))
    return None if factors is None else factors.solve(np.eye(n))


def _joined(factor: sp.csr_array) -> list[tuple[np.ndarray, np.ndarray]]:
    """Columns that actions join to others, and those actions, group by group."""
    n, count = factor.shape[1], np.diff(factor.indptr)
    # Along an action each column is joined to the next.
    row = np.repeat(np.arange(len(count)), count)
    within = row[1:] == row[:-1]
    pairs = factor.indices[:-1][within], factor.indices[1:][within]
    if not len(pairs[0]):
        return []
    links = sp.coo_array((np.ones(len(pairs[0])), pairs), shape=(n, n))
    _, label = connected_components(links.tocsr(), directed=False)
    size = np.bincount(label)
    taken = np.flatnonzero(count)
    action = label[factor.indices[factor.indptr[taken]]]
    if size.max() == n:
        return [(np.arange(n), taken)]
    where = np.flatnonzero(size[label] > 1)
    where = where[np.argsort(label[where], kind="stable")]
    starts = np.flatnonzero(np.diff(label[where], prepend=-1))
    taken = taken[np.argsort(action, kind="stable")]
    first = np.searchsorted(np.sort(action), np.arange(len(size) + 1))
    groups = np.split(where, starts[1:])
    own = (label[group[0]] for group in groups)
    return [
        (group, taken[first[at] : first[at + 1]]) for group, at in zip(groups, own, strict=True)
    ]


def _block(
    factor: sp.csr_array, units: Callable[[], Vector], effects: sp.csr_array | None
) -> _Block:
    """Coordinates of columns that actions join; a column is in as many units as ``units`` says.

    ``effects`` are those of the actions before their cost; None where it is known that they keep
    the sum of the columns.
    """
    k, n = factor.shape
    dense = k * n <= _BLOCK and min(k, n) ** 2 * max(k, n) <= _WORK
    few = n <= (_FEW if k == n else _SMALL)
    if dense and (few or k > n or factor.nnz > _SPARSE * n):
        return _dense_block(
            factor.toarray(), units(), None if effects is None else effects.toarray()
        )
    # Where every column is a pivot it does not matter which action has which.
    found = _sparse_block(factor, np.ones(n) if k == n else units())
    if found is not None and not (dense and _doubtful(found.inverse)):
        return found
    if dense:
        return _dense_block(
            factor.toarray(), units(), None if effects is None else effects.toarray()
        )
    raise ValueError(
        f"feature_cost has {k} actions that join {n} columns and depend on each other, which is "
        "too much for a dense factorisation. Merge or drop actions that others can replace."
    )


def _doubtful(inverse: sp.csr_array) -> bool:
    """Whether actions depend on each other, or nearly so."""
    factors = factors_of(inverse)
    if factors is None:
        return True
    n = inverse.shape[0]
    operator = LinearOperator(
        (n, n),
        matvec=lambda v: factors.solve(np.ravel(v)),
        rmatvec=lambda v: factors.solve(np.ravel(v), trans="T"),
        dtype=np.float64,
    )
    size = float(np.bincount(inverse.indices, np.abs(inverse.data)).max())
    return not onenormest(operator) * size < 1.0 / _CLEAR


def _dense_block(factor: Array, unit: Vector, effects: Array | None) -> _Block:
    """By elimination.

    Pivots are where actions, each at unit length, have the largest effects on columns of unit
    length: then columns that are combined with pivots keep a part of their own. What actions cost
    may differ by many decades, and has no part in which directions are free.
    """
    unit = _power_of_two(unit)
    scaled = factor * unit
    even = scaled / _power_of_two(np.linalg.norm(scaled, axis=1))[:, None]
    pivots = _pivots(even)
    # A column that the data hardly shows hides what actions do to others.
    by_effects = _pivots(factor / np.linalg.norm(factor, axis=1)[:, None])
    if len(by_effects) > len(pivots):
        pivots = by_effects
    block = _block_of(factor, unit, even, effects, pivots)
    while block is None:
        # The last of them depends on the others but for rounding, which proves nothing.
        pivots = pivots[:-1]
        block = _block_of(factor, unit, even, effects, pivots)
        block = None if block is None else block._replace(least=0.0)
    return block


def _block_of(
    factor: Array, unit: Vector, even: Array, effects: Array | None, pivots: np.ndarray
) -> _Block | None:
    """Coordinates with given pivots; None where these depend on each other.

    ``even`` are the effects, with actions and columns of about unit length.
    """
    n, rank = len(unit), len(pivots)
    rest, some = np.delete(np.arange(n), pivots), np.arange(rank)
    if len(factor) > rank:
        some = qr(even[:, pivots].T, mode="r", pivoting=True, check_finite=False)[1][:rank]
    own = even[np.ix_(some, pivots)]
    try:
        found = _solved(own, np.hstack([np.eye(rank), -even[np.ix_(some, rest)]]))
        head, undone = _triangle((factor * unit)[:, pivots])
    except np.linalg.LinAlgError:
        if rank > 1:
            return None
        raise
    least = 1.0 / float(np.linalg.norm(np.linalg.norm(own, axis=0)[:, None] * found[:, :rank]))
    forward, inverse = np.zeros((n, n)), np.zeros((n, n))
    forward[rest, rest] = inverse[rest, rest] = 1.0
    forward[np.ix_(pivots, rest)] = unit[pivots, None] * found[:, rank:] / unit[rest]
    forward[:, rest], exact = _whole(effects, forward[:, rest])
    if (np.isin(forward[:, rest], (-1.0, 0.0, 1.0)).all(axis=0) & ~exact).any():
        # A sum of columns that people keep, but for rounding of the effects: as told, they do not.
        least = 0.0
    inverse[np.ix_(pivots, pivots)] = head / unit[pivots]
    inverse[np.ix_(pivots, rest)] = -inverse[np.ix_(pivots, pivots)] @ forward[np.ix_(pivots, rest)]
    forward[np.ix_(pivots, pivots)] = unit[pivots, None] * undone
    alike = len(rest) and n <= _SMALL and unit.max() <= _ALIKE * unit.min()
    if alike and np.isin(forward[:, rest], (-1.0, 0.0, 1.0)).all():
        _centre(forward, inverse, pivots, rest)
    return _Block(pivots, inverse, forward, least)


def _power_of_two(size: Vector) -> Vector:
    """Numbers as large as these, by which others are divided without rounding."""
    return np.asarray(2.0 ** np.round(np.log2(size)))


def _whole(effects: Array | None, free: Array) -> tuple[Array, np.ndarray]:
    """Directions of small whole numbers, such as the sum of a one-hot group, as they should be.

    Also which of them nobody can move along, without any rounding; the others are left as they are.
    """
    whole, slack = np.round(free), _SNAP * len(free)
    near = (np.abs(free - whole) <= slack * np.fmax(np.abs(whole), 1.0)) & (np.abs(whole) < 1e3)
    exact = np.asarray(near.all(axis=0))
    if effects is not None:
        exact[exact] = [_vanishes(effects, whole[:, j]) for j in np.flatnonzero(exact).tolist()]
    return np.where(exact, whole, free), exact


def _vanishes(table: Array, whole: Vector) -> bool:
    """Whether a combination of columns with small whole numbers is zero, without any rounding."""
    high = leading_bits(table)
    parts = np.hstack([high * whole, (table - high) * whole])
    return not any(fsum(row) for row in parts.tolist())


def _solved(own: Array, wanted: Array) -> Array:
    """Solve with a square matrix, and again for what that left; of few columns, in long numbers."""
    kind: Any = np.longdouble if wanted.shape[1] <= _FEW else np.float64
    matrix: Any = own.astype(kind)
    found: Any = np.linalg.solve(own, wanted).astype(kind)
    for _ in range(2):
        found += np.linalg.solve(own, np.asarray(wanted - matrix @ found, dtype=np.float64))
    return np.asarray(found, dtype=np.float64)


def _triangle(rows: Array) -> tuple[Array, Array]:
    """A square matrix with the moments of rows of very different lengths, and its inverse.

    Long rows first and large columns first: then each row is rounded in units of its own. Of few
    columns, what rounding did is seen in longer numbers, where the machine has them, and taken
    back: then it is no more than that of the entries.
    """
    order = np.argsort(-np.linalg.norm(rows, axis=1), kind="stable")
    factor, columns = qr(rows[order], mode="r", pivoting=True, check_finite=False)
    rank = rows.shape[1]
    head, undone = np.empty((rank, rank)), np.empty((rank, rank))
    head[:, columns] = factor[:rank]
    undone[columns] = solve_triangular(factor[:rank], np.eye(rank))
    if rank > _FEW:
        return head, undone
    seen = rows.astype(np.longdouble) @ undone
    left = np.triu((seen.T @ seen - np.eye(rank)).astype(np.float64))
    left[np.diag_indices(rank)] /= 2
    return head + left @ head, undone - undone @ left


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


def _sparse_block(factor: sp.csr_array, unit: Vector) -> _Block | None:
    """By the inverse map alone: its rows are actions, and a free column each for the others.

    None where the pattern of the actions shows that they depend on each other.
    """
    k, n = factor.shape
    pivot = _matched(factor, unit) if k <= n else None
    if pivot is None:
        return None
    count = np.diff(factor.indptr)
    if k == n and (pivot == np.arange(n)).all():
        return _Block(pivot, factor, None)
    rest = np.delete(np.arange(n), pivot)
    rows = np.append(np.repeat(pivot, count), rest)
    inverse = sp.csr_array(
        (
            np.append(factor.data, np.ones(len(rest))),
            (rows, np.append(factor.indices, rest)),
        ),
        shape=(n, n),
    )
    return _Block(np.sort(pivot), inverse, None)


def _matched(factor: sp.csr_array, unit: Vector) -> np.ndarray | None:
    """A pivot for each action, such that the map can be inverted, and as large as can be."""
    size = np.abs(factor.data) * unit[factor.indices]
    count, begin = np.diff(factor.indptr), factor.indptr[:-1]
    top = np.repeat(np.maximum.reduceat(size, begin), count)
    at = np.flatnonzero(size == top)
    # The first of the largest effects of each action.
    _, first = np.unique(np.repeat(np.arange(len(count)), count)[at], return_index=True)
    pivot = factor.indices[at[first]].astype(np.intp)
    if np.bincount(pivot).max() == 1:
        return np.asarray(pivot)
    weight = sp.csr_array((1.0 + np.log(size.max() / size), factor.indices, factor.indptr))
    weight.resize(factor.shape)
    try:
        return np.asarray(min_weight_full_bipartite_matching(weight)[1])
    except ValueError:
        return None
