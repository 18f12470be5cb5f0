"""Matrices that come as blocks of rows: every verb of the protocol from the blocks alone.

Each product reads every block once, in order, and holds one at a time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from spgls.base.types import Array, Vector
from spgls.base.validation import describe
from spgls.matrix.convert import as_matrix
from spgls.matrix.pieces import MOMENT_ROWS, Rows, chosen_rows, cuts, rows_within
from spgls.matrix.protocol import Matrix, RowMap
from spgls.matrix.row_step import on_rows
from spgls.matrix.squares import column_squares, longest_row, longest_sum
from spgls.matrix.work import Work

__all__ = ["BlockedMatrix", "Longest", "RowBlocks", "blocks_of", "longest_of", "longest_of_any"]


class _Traits(NamedTuple):
    """What blocks say of themselves, without their data."""

    dtype: np.dtype[Any]
    threaded: bool
    natural_width: int
    work: Work


class Longest(NamedTuple):
    """Most entries of a row, and most terms of a sum over a column that are added one by one."""

    row: int
    sum: int

    def over(self, blocks: int) -> Longest:
        """The same where sums go on over so many blocks, in any order."""
        return self._replace(sum=self.sum + blocks)


class BlockedMatrix(ABC):
    """A matrix that is known by its blocks of rows.

    A subclass has a :attr:`shape` and gives :meth:`blocks`; all else follows from them. What kind
    of data it is (:attr:`dtype`, :attr:`threaded`, :attr:`natural_width`, :attr:`work`) is told by
    the first block, as if the others were like it.

    Examples
    --------
    >>> import numpy as np
    >>> from spgls import solve
    >>> from spgls.matrix import BlockedMatrix
    >>> class Powers(BlockedMatrix):
    ...     shape = 100, 3
    ...
    ...     def blocks(self):
    ...         for at in range(0, 100, 20):
    ...             rows = slice(at, at + 20)
    ...             yield rows, np.linspace(-1.0, 1.0, 100)[rows, None] ** [1, 2, 3]
    >>> y = np.sin(np.linspace(-3.0, 3.0, 100))
    >>> solve(Powers(), y, y + np.abs(y), gamma=1.0).status
    <Status.OPTIMAL: 'optimal'>
    """

    #: Whether verbs are carried out where the blocks are, for all of them at once.
    elsewhere: bool = False

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""

    @abstractmethod
    def blocks(self) -> Iterable[tuple[slice, Any]]:
        """All rows in order, anew with every call: a slice, and the rows that it names.

        Rows are anything that :func:`~spgls.matrix.as_matrix` takes.
        """

    @property
    def additions(self) -> int:
        """Additions that a term of a sum over the rows goes through, where blocks are short.

        Sums over blocks are added one by one, and so are entries of blocks that are sparse though
        the first is not. Blocks of some length are few, and nothing beside what happens within
        them: then zero. So it is where blocks are added up elsewhere.
        """
        if self.elsewhere:
            return 0
        if "_lengths" not in self.__dict__:
            for _ in self._matrices():
                pass
        count, longest, within = self.__dict__["_lengths"]
        if MOMENT_ROWS * count > self.shape[0]:
            within = max(within, min(longest, MOMENT_ROWS + 16 * sqrt(longest) + longest / 200))
        return int(count + within) if within else 0

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the stored numbers."""
        return self._traits.dtype

    @property
    def fused(self) -> bool:
        """Always: while a block is here it is multiplied both ways."""
        return True

    @property
    def threaded(self) -> bool:
        """As the blocks."""
        return self._traits.threaded

    @property
    def natural_width(self) -> int:
        """As the blocks; a subclass whose blocks take time to come should say two."""
        return self._traits.natural_width

    @property
    def work(self) -> Work:
        """That of the blocks."""
        return self._traits.work

    @property
    def longest_row(self) -> int:
        """Most entries of a row; of sparse rows it takes a read to tell."""
        return self._longest[0]

    @property
    def longest_sum(self) -> int:
        """Terms of a sum over a column that are added one after another, at most.

        All rows, until a read has told that sparse ones have fewer.
        """
        return self._longest[1] if "_longest" in self.__dict__ else self.shape[0]

    def apply(self, v: Array, shift: Vector | None = None) -> Array:
        """``A v``."""
        out = np.empty((self.shape[0], *v.shape[1:]))
        for rows, block in self._matrices():
            out[rows] = block.apply(v, shift)
        return out

    def cross(self, u: Array, shift: Vector | None = None) -> Array:
        """``A' u``."""
        out = np.zeros((self.shape[1], *u.shape[1:]))
        for rows, block in self._matrices():
            out += block.cross(u[rows], shift)
        return out

    def gram(self, v: Array, shift: Vector | None = None, middle: RowMap | None = None) -> Array:
        """``A' M A v``, each block read once."""
        out = np.zeros((self.shape[1], *v.shape[1:]))
        for rows, block in self._matrices():
            out += block.gram(v, shift, on_rows(middle, rows))
        return out

    def moment(self, extra: Array, weight: Vector | None, shift: Vector | None) -> Array:
        """``B' S B`` for ``B = [A - 1 shift', extra]``, the sum of those of the blocks."""
        width = self.shape[1] + extra.shape[1]
        out, told = np.zeros((width, width)), list[Longest]()
        for rows, block in self._matrices():
            out += block.moment(extra[rows], None if weight is None else weight[rows], shift)
            told.append(longest_of(block))
        self._longest = longest_of_any(told).over(len(told))
        return out

    def column_squares(self, weight: Vector | None, shift: Vector | None) -> Vector:
        """Squared lengths of the columns, the sum of those of the blocks."""
        total = np.zeros(self.shape[1])
        for rows, block in self._matrices():
            total += column_squares(block, None if weight is None else weight[rows], shift)
        return total

    def typical_row(self, weight: Vector | None) -> Vector | None:
        """Mean of the blocks' typical rows, by the weight of each block, in one read.

        Each block has its say, since blocks of sorted rows have means of their own.
        """
        row = np.zeros(self.shape[1])
        total = float(self.shape[0] if weight is None else weight.sum())
        for rows, block in self._matrices():
            some = None if weight is None else weight[rows]
            share = float(rows.stop - rows.start if some is None else some.sum()) / total
            own = block.typical_row(some) if share > 0.0 else None
            if own is not None:
                row += share * own
        return row if row.any() else None

    def row_panels(self, rows: int) -> Iterator[tuple[slice, Array]]:
        """Dense float64 pieces of ``rows`` rows, which may come from several blocks."""
        wanted = cuts(self.shape[0], rows)
        piece, filled, panel = slice(0, 0), 0, np.empty((0, self.shape[1]))
        for _, block in self._matrices():
            for _, given in block.row_panels(rows):
                at = 0
                while at < len(given):
                    if filled == len(panel):
                        piece, filled = next(wanted), 0
                        panel = np.empty((piece.stop - piece.start, self.shape[1]))
                    count = min(len(given) - at, len(panel) - filled)
                    panel[filled : filled + count] = given[at : at + count]
                    at, filled = at + count, filled + count
                    if filled == len(panel):
                        yield piece, panel

    def column_panels(self, columns: int) -> Iterator[tuple[slice, Array]]:
        """Dense float64 pieces of ``columns`` columns, ``m`` times as many numbers each.

        Every piece is assembled from all blocks, so each costs one read of the data.
        """
        for number, piece in enumerate(cuts(self.shape[1], columns)):
            panel = np.empty((self.shape[0], piece.stop - piece.start))
            for rows, block in self._matrices():
                ((_, panel[rows]),) = islice(block.column_panels(columns), number, number + 1)
            yield piece, panel

    def take(self, rows: Rows) -> Matrix:
        """Some rows, taken out of each block when it comes.

        Rows in another order than they come in are read once and held.
        """
        some = chosen_rows(rows, self.shape[0])
        if isinstance(some, slice) or bool((np.diff(some) >= 0).all()):
            return _SomeRows(self, some)
        order = np.argsort(some, kind="stable")
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        return _SomeRows(self, some[order]).held().take(place)

    def find_non_finite(self) -> tuple[int, int, float] | None:
        """Row, column and value of an entry of the first block that has one."""
        for rows, block in self._matrices():
            found = block.find_non_finite()
            if found is not None:
                row, column, value = found
                return rows.start + row, column, value
        return None

    def _matrices(self) -> Iterator[tuple[slice, Matrix]]:
        """Blocks as matrices, in order and complete."""
        (m, n), at, count, longest, entries, sparse = self.shape, 0, 0, 0, 0, False
        for rows, block in self.blocks():
            if rows.start == rows.stop:
                continue
            matrix = as_matrix(block, f"rows {rows.start} to {rows.stop} of X", check_finite=False)
            if rows.start != at or matrix.shape != (rows.stop - at, n):
                raise ValueError(
                    f"blocks must follow each other, {n} columns wide; got one of shape "
                    f"{matrix.shape} for rows {rows.start} to {rows.stop}, after {at} rows."
                )
            yield rows, matrix
            at = rows.stop
            sparse = matrix.work.by_index if count == 0 else sparse
            count, longest = count + 1, max(longest, matrix.shape[0])
            if matrix.work.by_index and not sparse:
                entries = max(entries, longest_sum(matrix))
        if at != m:
            raise ValueError(f"blocks must have {m} rows together, as shape says; got {at}.")
        self.__dict__["_lengths"] = count, longest, entries

    def _examples(self) -> Iterable[Matrix]:
        """Blocks that stand for all."""
        return (block for _, block in islice(self._matrices(), 1))

    @cached_property
    def _longest(self) -> Longest:
        if not self.work.by_index:
            return Longest(self.shape[1], self.shape[0])
        told = [longest_of(block) for _, block in self._matrices()]
        return longest_of_any(told).over(len(told))

    @cached_property
    def _traits(self) -> _Traits:
        m, n = self.shape
        own = [_Traits(b.dtype, b.threaded, b.natural_width, b.work) for b in self._examples()]
        seen = [one.work for one in own]
        share = m / sum(work.rows for work in seen)
        work = Work(
            m,
            n,
            entries=share * sum(work.entries for work in seen),
            bytes=share * sum(work.bytes for work in seen),
            by_index=any(work.by_index for work in seen),
            square=share * sum(work.square for work in seen),
            row_square=float(m) * m * n,
        )
        return _Traits(
            np.result_type(*(one.dtype for one in own)),
            any(one.threaded for one in own),
            min(one.natural_width for one in own),
            work,
        )


class RowBlocks(BlockedMatrix):
    """Data in memory, one block of rows below the other.

    Parameters
    ----------
    blocks : iterable of array-like, data frame, sparse matrix or Matrix
        Rows in order, equally many columns each; kept by reference. They may differ in kind, and
        blocks without rows are left out.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from spgls import solve
    >>> from spgls.matrix import RowBlocks
    >>> rng = np.random.default_rng(0)
    >>> old, new = rng.normal(size=(60, 3)), sp.csr_array(rng.normal(size=(40, 3)))
    >>> X = RowBlocks([old, new])
    >>> X.shape
    (100, 3)
    >>> y = X.apply(np.array([1.0, 2.0, 0.0]))
    >>> apart = solve(X, y, y + 1.0, gamma=0.5)
    >>> whole = solve(np.vstack([old, new.toarray()]), y, y + 1.0, gamma=0.5)
    >>> bool(np.allclose(apart.coef, whole.coef))
    True
    """

    def __init__(self, blocks: Iterable[Any]) -> None:
        self._held: list[tuple[slice, Matrix]] = []
        self.columns: list[Any] | None = None
        m = n = 0
        for number, block in enumerate(blocks):
            if _is_empty(block):
                continue
            matrix = as_matrix(block, f"blocks[{number}]", check_finite=False)
            n = n or matrix.shape[1]
            if matrix.shape[1] != n:
                raise ValueError(
                    f"blocks must have equally many columns; blocks[{number}] has "
                    f"{matrix.shape[1]}, those before it have {n}."
                )
            self._name(getattr(block, "columns", None), number)
            self._held.append((slice(m, m + matrix.shape[0]), matrix))
            m += matrix.shape[0]
        if m == 0:
            raise ValueError("blocks must have at least one row together; got none.")
        self._shape = m, n

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self._shape

    def blocks(self) -> Iterable[tuple[slice, Matrix]]:
        """All rows in order."""
        return self._held

    @property
    def longest_sum(self) -> int:
        """Terms of a sum over a column that are added one after another, at most."""
        return self._longest[1]

    def column_panels(self, columns: int) -> Iterator[tuple[slice, Array]]:
        """Dense float64 pieces of ``columns`` columns, all pieces in one read of the data."""
        parts = [block.column_panels(columns) for _, block in self._held]
        for piece in cuts(self.shape[1], columns):
            yield piece, np.concatenate([next(part)[1] for part in parts])

    def take(self, rows: Rows) -> RowBlocks:
        """Some rows, by reference where those of a block lie together."""
        some = chosen_rows(rows, self.shape[0])
        if isinstance(some, slice):
            return _SomeRows(self, some).held()
        ends = [piece.stop for piece, _ in self._held]
        home = np.searchsorted(ends, some, side="right")
        starts = np.flatnonzero(np.diff(home, prepend=-1))
        found = []
        for numbers, which in zip(np.split(some, starts[1:]), home[starts].tolist(), strict=True):
            piece, block = self._held[which]
            found.append(block.take(numbers - piece.start))
        return RowBlocks(found)

    def _name(self, labels: Any, number: int) -> None:
        """Keep the names of the columns, and refuse other ones."""
        if labels is None:
            return
        names = list(labels)
        if self.columns is not None and names != self.columns:
            raise ValueError(
                f"blocks must have the same columns in the same order; blocks[{number}] has "
                f"{names}, those before it have {self.columns}."
            )
        self.columns = names

    def _examples(self) -> Iterable[Matrix]:
        return [block for _, block in self._held]

    def __repr__(self) -> str:
        """Shape and number of blocks."""
        return f"{describe(self)} in {len(self._held)} blocks"


def blocks_of(matrix: Matrix) -> Iterator[tuple[slice, Matrix]]:
    """Rows of a matrix in one read: block by block if it comes in blocks, else all at once."""
    if isinstance(matrix, BlockedMatrix) and not matrix.elsewhere:
        yield from matrix._matrices()
    else:
        yield slice(0, matrix.shape[0]), matrix


def longest_of(block: Matrix) -> Longest:
    """Of a block alone."""
    return Longest(longest_row(block), longest_sum(block))


def longest_of_any(told: Sequence[Longest]) -> Longest:
    """Of any of some blocks."""
    return Longest(max(one.row for one in told), max(one.sum for one in told))


def _is_empty(block: Any) -> bool:
    """Whether a block has no rows; an empty list has no columns either."""
    shape = getattr(block, "shape", ())
    return shape[:1] == (0,) or (isinstance(block, list | tuple) and not block)


class _SomeRows(BlockedMatrix):
    """Rows of a blocked matrix, in the order in which they come."""

    def __init__(self, whole: BlockedMatrix, rows: Rows) -> None:
        self.whole = whole
        self.rows = rows

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        rows = self.rows
        count = rows.stop - rows.start if isinstance(rows, slice) else len(rows)
        return count, self.whole.shape[1]

    def blocks(self) -> Iterator[tuple[slice, Matrix]]:
        """Rows of each block that has some; none is read after the last."""
        (m, _), at = self.shape, 0
        for piece, block in self.whole._matrices():
            some = rows_within(self.rows, piece)
            if some is not None:
                part = block.take(some)
                yield slice(at, at + part.shape[0]), part
                at += part.shape[0]
            if at == m:
                return

    def held(self) -> RowBlocks:
        """The same, read once and kept."""
        return RowBlocks(block for _, block in self.blocks())
