"""Sums of rows that can be put together, taken apart and faded, and how wrong they may be by then.

Everything is about a shift, which is subtracted from the rows before they are multiplied. Sums of
different rows have different shifts, each near the mean of its own rows; the lighter ones are moved
to the shift of the heavier. Beside the sums goes what rounding may have done to them, of everything
that was ever added or subtracted: it does not shrink with what is left.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any, ClassVar, Literal, Self

import numpy as np
from scipy.linalg.blas import dger

from spgls.base.types import EPS, Array, Vector
from spgls.matrix import Matrix, blocks_of, refuse_non_finite
from spgls.matrix.squares import sum_rounding_one_by_one
from spgls.reduction.columns import ColumnReduction
from spgls.reduction.coordinates import Coordinates
from spgls.reduction.layout import Layout
from spgls.reduction.rounding import kappa_of_factor, kappa_of_sums
from spgls.reduction.second_moments import reduce_moments, reduce_squares
from spgls.reduction.sums import Account, Origin, few_rows_with, triangle
from spgls.reduction.triangular import reduce_triangle

__all__ = ["Added", "Factor", "Moments"]

#: Rounding of one row by the time it is added: shift, weight and products, in ulps.
_FORMED = 8.0
#: The same of sums that are moved to another shift, and of rows that are factored.
_MOVED, _FACTORED = 4.0, 16.0
#: Means further from the shift than this many standard deviations are worth a new shift.
_FAR = 10.0
#: Where no mean is further from zero than so many, judged by so many rows, zero is as good a shift.
_NEAR, _FIRST = 2.0, 64
#: Numbers that differ by no more than this are one number and its rounding.
_SAME = 64 * EPS
#: Goals less labels that vary by no more than this, over both, do not vary.
_CONSTANT = 1e-14
#: Shorter columns are as wrong as this, since products below the range of double precision lose
#: their digits.
_SHORT = 1e-140


@dataclass(frozen=True, eq=False)
class Added(ABC):
    """What is left of rows ``S^{1/2}[X, y, z, z - y, 1]``, less a shift.

    Goals less labels are kept beside both, because where these are close their difference has
    digits that theirs do not hold.

    Attributes
    ----------
    kept : ndarray
        Second moments, or a few rows that have them.
    shift : ndarray of shape (n + 3,)
        What was subtracted from columns, labels, goals, and goals less labels.
    doubt : ndarray of shape (n + 4,)
        How wrong the sums may be, in ulps.
    rows : int
        How many rows were added, at most.
    """

    method: ClassVar[str]

    kept: Array
    shift: Vector
    doubt: Vector
    rows: int

    @classmethod
    def of(cls, matrix: Matrix, y: Vector, z: Vector, weight: Vector | None, source: Any) -> Self:
        """Add up rows, in one read."""
        total: Self | None = None
        for rows, block in blocks_of(matrix):
            some = None if weight is None else weight[rows]
            if some is not None and not some.any():
                refuse_non_finite(block, "X", source)
                continue
            found = cls._of_block(block, y[rows], z[rows], some)
            if not np.isfinite(found.doubt).all():
                refuse_non_finite(matrix, "X", source)
            found.refuse_infinite()
            total = found if total is None else total.plus(found)
        assert total is not None
        return total

    def refuse_infinite(self) -> None:
        """Raise where squares left the range of double precision."""
        with np.errstate(over="ignore", invalid="ignore"):
            finite = np.isfinite(self.doubt).all() and np.isfinite(self.raw).all()
        if not finite:
            raise ValueError(
                "X, y or z hold numbers too large to be squared in double precision; bring them to "
                "a smaller scale."
            )

    @classmethod
    def _of_block(cls, matrix: Matrix, y: Vector, z: Vector, weight: Vector | None) -> Self:
        with np.errstate(over="ignore", invalid="ignore"):
            row = _shift_of(matrix, weight)
            beside = y, z, z - y
            middle = [_typical(t, weight) for t in beside]
            extra = np.ones((4, len(y)))
            for t, centre, out in zip(beside, middle, extra, strict=False):
                np.subtract(t, centre, out=out)
            kept = cls._summed(matrix, extra.T, weight, row)
            doubt = cls._own_doubt(kept, matrix)
        shift = np.concatenate([np.zeros(matrix.shape[1]) if row is None else row, middle])
        return cls(kept, shift, doubt, len(y))

    @classmethod
    @abstractmethod
    def _summed(
        cls, matrix: Matrix, extra: Array, weight: Vector | None, row: Vector | None
    ) -> Array:
        """The sums of some rows about a shift of their columns."""

    @classmethod
    @abstractmethod
    def _own_doubt(cls, kept: Array, matrix: Matrix) -> Vector:
        """How wrong freshly added sums of the rows of a matrix may be."""

    @abstractmethod
    def about(self, shift: Vector) -> Self:
        """The same about another shift."""

    @abstractmethod
    def plus(self, other: Self) -> Self:
        """Both together."""

    @abstractmethod
    def faded(self, factor: float) -> Self:
        """The same with every weight times a factor."""

    @abstractmethod
    def square(self, combination: Vector) -> tuple[float, float]:
        """Squared length of a combination of the columns less the shift, and its rounding."""

    @abstractmethod
    def cross(self, combination: Vector) -> Vector:
        """Products of every column less the shift with a combination of them."""

    @abstractmethod
    def reduce(self, layout: Layout, engine: Literal["gram", "qr"]) -> ColumnReduction | None:
        """Reduce for given columns; None where another engine is better tried."""

    @property
    @abstractmethod
    def sizes(self) -> Vector:
        """Lengths of the columns less the shift, and of ones."""

    @property
    @abstractmethod
    def sums(self) -> Vector:
        """Sums of the columns less the shift, and of the weights."""

    @property
    @abstractmethod
    def hidden(self) -> Vector:
        """Lengths that columns may have where they seem to have none."""

    @abstractmethod
    def rescaled(self, factors: Vector) -> Self:
        """The same with every column times a power of two."""

    @abstractmethod
    def some(self, columns: np.ndarray) -> Self:
        """The same of some of the columns of the data."""

    def _with_beside(self, columns: np.ndarray) -> np.ndarray:
        """Places of some columns, and of what stands beside them."""
        n = self.columns
        return np.append(columns, np.arange(n, n + 4))

    @abstractmethod
    def emptied(self, columns: np.ndarray) -> Self:
        """The same with nothing in some columns, as wrong as before."""

    def flat(self, columns: np.ndarray, about: Vector) -> np.ndarray:
        """Which of some columns are no more than rounding, less a number each.

        Parameters
        ----------
        columns : ndarray of int
            Some columns.
        about : ndarray of shape (n,)
            Numbers for all of them.
        """
        found = []
        for at in columns.tolist():
            combination = np.zeros(len(self.doubt))
            combination[at], combination[-1] = 1.0, -about[at]
            value, rounding = self.square(combination)
            found.append(value <= rounding)
        return np.asarray(columns[found], dtype=np.intp)

    @abstractmethod
    def _product(self, entries: Array) -> Array:
        """The sums, with columns combined by a matrix."""

    @abstractmethod
    def _together(self, *doubts: Vector) -> Vector:
        """How wrong sums are for several reasons at once."""

    @abstractmethod
    def _doubt_of(self, share: float, sizes: Vector) -> Vector:
        """How wrong sums are whose columns are wrong by a share of given sizes."""

    def combined(self, coordinates: Coordinates) -> Self:
        """The same with columns combined.

        A combined column is as wrong as what it is made of, by as much of it as there is.

        Parameters
        ----------
        coordinates : Coordinates
            How; its origin is the shift of these sums.
        """
        n, change = self.columns, coordinates.change
        entries = change.entries()
        sizes = np.abs(entries).T
        shift = np.append(np.zeros(n), self.shift[n:])
        told = replace(self, kept=self._product(entries), shift=shift)
        doubt, rounded = self.doubt.copy(), np.zeros(n + 4)
        doubt[:n] = sizes @ doubt[:n]
        rounded[:n] = np.where(coordinates.exact, 0.0, sizes @ self.sizes[:n])
        more = self._doubt_of((change.terms + 2.0) * EPS, rounded)
        return replace(told, doubt=self._together(doubt, more))

    def blurred(self, share: float) -> Self:
        """The same where columns are wrong by a share of their lengths to begin with."""
        own = np.append(self.sizes[: self.columns], np.zeros(4))
        return replace(self, doubt=self._together(self.doubt, self._doubt_of(share, own)))

    @property
    def columns(self) -> int:
        """Columns of the data."""
        return len(self.shift) - 3

    @property
    def weight(self) -> float:
        """Number of rows, counted by weight."""
        return float(self.sums[-1])

    @property
    def raw(self) -> Vector:
        """Lengths of columns, labels, goals and goals less labels as they came."""
        size, total = self.sizes[:-1], self.sums
        square = size**2 + self.shift * (2 * total[:-1] + total[-1] * self.shift)
        return np.asarray(np.sqrt(np.maximum(square, 0.0)))

    def _centred(self) -> Self:
        """The same about a new shift in columns whose mean is far from it."""
        sums, sizes = self.sums, self.sizes
        mean = sums[:-1] / sums[-1]
        spread = np.maximum(sizes[:-1] ** 2 / sums[-1] - mean**2, 0.0)
        far = (mean**2 > _FAR**2 * spread) & (np.abs(mean) > _SAME * np.abs(self.shift))
        return self.about(self.shift + np.where(far, mean, 0.0)) if far.any() else self

    def _moved_doubt(self, step: Vector) -> Vector:
        """How wrong sums are once a step was subtracted from the columns, before its rounding."""
        return np.append(self.doubt[:-1] + np.abs(step) * self.doubt[-1], self.doubt[-1])

    def _layout_columns(self, layout: Layout) -> tuple[Self, np.ndarray, Origin]:
        """Sums as a layout has them, which of their columns it takes, and where they begin."""
        n = self.columns
        if not layout.fit_intercept:
            return self.about(np.zeros(n + 3)), np.arange(n + 2), Origin()
        shift = self.shift
        origin = Origin(shift[:n], float(shift[n]), float(shift[n + 1]))
        return self, np.append(np.arange(n + 2), n + 3), origin

    def _account(self, which: np.ndarray, sizes: Vector, power: float) -> Account:
        """The doubt in sizes of columns, none smaller than they are, and one relative error.

        ``power`` is two where sums are squares, one where they are not.
        """
        doubt, sizes = self.doubt[which], sizes[which]
        there = sizes > 0.0
        ratio = doubt[there] / sizes[there]
        if not len(ratio) or not ratio.min() > 0.0:
            return Account(sizes, 0.0)
        least = float(ratio.min())
        return Account(np.maximum(doubt / least, sizes), EPS * least**power)


@dataclass(frozen=True, eq=False)
class Moments(Added):
    """Second moments: they can be subtracted too.

    An entry is wrong by no more than one ulp of the product of its columns' ``doubt``.
    """

    method: ClassVar[str] = "moments"

    @classmethod
    def _summed(
        cls, matrix: Matrix, extra: Array, weight: Vector | None, row: Vector | None
    ) -> Array:
        return matrix.moment(extra, weight, row)

    @classmethod
    def _own_doubt(cls, kept: Array, matrix: Matrix) -> Vector:
        rows = matrix.shape[0]
        lost = rows * _SHORT**2 * kept.any(axis=0)
        kappa = max(kappa_of_sums(rows), sum_rounding_one_by_one(matrix))
        return np.asarray(np.sqrt((_FORMED + kappa / EPS) * kept.diagonal() + lost))

    def about(self, shift: Vector) -> Moments:
        """Move the shift, by two products of vectors."""
        step = shift - self.shift
        if not step.any():
            return self
        kept = self._move(self.kept.copy(order="F"), step)
        return Moments(kept, shift, self._doubt_after(step), self.rows)

    def _move(self, kept: Array, step: Vector) -> Array:
        """Subtract a step from the columns of these sums in a sum that they are part of.

        In place: a block of rows is to cost little more than its product.
        """
        ones, away = self.kept[-1], np.append(step, 0.0)
        along = ones - ones[-1] / 2 * away
        kept = dger(-1.0, along, away, a=kept, overwrite_a=1)
        return np.asarray(dger(-1.0, away, along, a=kept, overwrite_a=1))

    def _doubt_after(self, step: Vector) -> Vector:
        sizes = self.sizes
        sizes[:-1] += np.abs(step) * sqrt(self.weight)
        return np.hypot(self._moved_doubt(step), sqrt(_MOVED) * sizes)

    def plus(self, other: Moments) -> Moments:
        """Add what both have, about the shift of the heavier."""
        heavy, light = (self, other) if self.weight >= other.weight else (other, self)
        kept, step = heavy.kept + light.kept, heavy.shift - light.shift
        doubt = light.doubt
        if step.any():
            kept, doubt = light._move(kept, step), light._doubt_after(step)
        own = np.sqrt(np.maximum(kept.diagonal(), 0.0))
        doubt = np.hypot(np.hypot(heavy.doubt, doubt), own)
        return Moments(kept, heavy.shift, doubt, self.rows + other.rows)._centred()

    def minus(self, other: Moments) -> Moments:
        """Take away rows that were added before."""
        less = other.about(self.shift)
        kept = self.kept - less.kept
        own = np.sqrt(np.maximum(kept.diagonal(), 0.0))
        doubt = np.hypot(np.hypot(self.doubt, less.doubt), own)
        total = Moments(kept, self.shift, doubt, self.rows)
        if not total.weight > _FORMED * EPS * total.doubt[-1] ** 2:
            raise ValueError(
                f"nothing is left: rows of weight {other.weight:g} were subtracted from rows of "
                f"weight {self.weight:g}. Subtract only statistics that were added before."
            )
        return total._centred()

    def faded(self, factor: float) -> Moments:
        """Every product times the factor."""
        found = replace(self, kept=factor * self.kept)
        # What is too small for all its digits is wrong by the least number there is.
        own = np.hypot(found.sizes, float(np.finfo(np.float64).tiny) ** 0.5)
        return replace(found, doubt=np.hypot(sqrt(factor) * self.doubt, own))

    def square(self, combination: Vector) -> tuple[float, float]:
        """A quadratic form."""
        value = float(combination @ (self.kept @ combination))
        size = np.abs(combination)
        return value, self._doubted(float(size @ self.doubt), float(size @ self.sizes))

    def _doubted(self, doubt: float, size: float) -> float:
        return EPS * (doubt**2 + (2.0 * sqrt(len(self.doubt)) + _FORMED) * size**2)

    def cross(self, combination: Vector) -> Vector:
        """A product."""
        return np.asarray(self.kept @ combination)

    @property
    def sizes(self) -> Vector:
        """Roots of the diagonal."""
        return np.asarray(np.sqrt(np.maximum(self.kept.diagonal(), 0.0)))

    @property
    def sums(self) -> Vector:
        """The row of ones."""
        return np.asarray(self.kept[-1])

    @property
    def hidden(self) -> Vector:
        """Roots of errors, which are those of squares."""
        return np.asarray(sqrt(EPS) * self.doubt)

    def some(self, columns: np.ndarray) -> Moments:
        """By the products of these alone."""
        at = self._with_beside(columns)
        return Moments(self.kept[np.ix_(at, at)], self.shift[at[:-1]], self.doubt[at], self.rows)

    def emptied(self, columns: np.ndarray) -> Moments:
        """Without their products."""
        kept = self.kept.copy()
        kept[columns] = 0.0
        kept[:, columns] = 0.0
        return replace(self, kept=kept)

    def _product(self, entries: Array) -> Array:
        n, kept = len(entries), self.kept.copy()
        kept[:n] = entries.T @ kept[:n]
        kept[:, :n] = kept[:, :n] @ entries
        return np.asarray((kept + kept.T) / 2)

    def _together(self, *doubts: Vector) -> Vector:
        return np.asarray(np.sqrt(np.square(doubts).sum(axis=0)))

    def _doubt_of(self, share: float, sizes: Vector) -> Vector:
        # A product is wrong by the shares of both its columns, and by their product.
        return sqrt(3.0 * share / EPS) * sizes

    def rescaled(self, factors: Vector) -> Moments:
        """Rows and columns times them."""
        # One after the other: the product of two factors may be no number.
        kept = self.kept * factors * factors[:, None]
        return Moments(kept, self.shift * factors[:-1], self.doubt * factors, self.rows)

    def reduce(self, layout: Layout, engine: Literal["gram", "qr"]) -> ColumnReduction | None:
        """From squares, first as they are and then with every column at unit length."""
        found, which, origin = self._layout_columns(layout)
        moment = found.kept[np.ix_(which, which)]
        account = found._account(which, found.sizes, 2.0)
        n = self.columns
        apart = found._spread_of_gap(layout)
        if apart <= _CONSTANT * float(self.raw[n : n + 2].sum()):
            # Goals that differ from labels by a constant are labels; by how little, is charged.
            moment[n + 1] = moment[n]
            moment[:, n + 1] = moment[:, n]
            more = apart / account.kappa if account.kappa else 0.0
            account.sizes[n + 1] = account.sizes[n : n + 2].max() + more
        if engine == "gram":
            return reduce_moments(layout, moment, origin, self.rows, account)
        return reduce_squares(layout, moment, origin, self.rows, account)

    def _spread_of_gap(self, layout: Layout) -> float:
        """Length of goals less labels after the intercept, at most."""
        at, weight = self.columns + 2, self.kept[-1, -1]
        square = float(self.kept[at, at])
        if layout.fit_intercept:
            square -= float(self.kept[-1, at]) ** 2 / weight
        return sqrt(max(square, 0.0) + EPS * float(self.doubt[at]) ** 2)


@dataclass(frozen=True, eq=False)
class Factor(Added):
    """A triangular factor: it keeps all digits, and cannot be subtracted.

    A column is wrong by no more than ``doubt`` ulps, in length.
    """

    method: ClassVar[str] = "triangular"

    @classmethod
    def _summed(
        cls, matrix: Matrix, extra: Array, weight: Vector | None, row: Vector | None
    ) -> Array:
        root = None if weight is None else np.sqrt(weight)
        few = few_rows_with(np.zeros((0, 0)), matrix, extra, root, row)
        return triangle(few) if np.isfinite(few).all() else few

    @classmethod
    def _own_doubt(cls, kept: Array, matrix: Matrix) -> Vector:
        rows = matrix.shape[0]
        short = _SHORT * kept.any(axis=0)
        return np.asarray(kappa_of_factor(rows, 0) / EPS * np.linalg.norm(kept, axis=0) + short)

    def about(self, shift: Vector) -> Factor:
        """Subtract the step from every row, as often as it stands for one."""
        step = shift - self.shift
        if not step.any():
            return self
        kept = self.kept.copy()
        kept[:, :-1] -= np.outer(kept[:, -1], step)
        sizes = self.sizes + np.append(np.abs(step) * sqrt(self.weight), 0.0)
        doubt = self._moved_doubt(step) + _MOVED * sizes
        return replace(self, kept=kept, shift=shift, doubt=doubt)

    def plus(self, other: Factor) -> Factor:
        """Factor what both have, about the shift of the heavier."""
        heavy, light = (self, other) if self.weight >= other.weight else (other, self)
        light = light.about(heavy.shift)
        kept = triangle(np.vstack([heavy.kept, light.kept]))
        found = Factor(kept, heavy.shift, heavy.doubt, self.rows + other.rows)
        doubt = np.hypot(heavy.doubt, light.doubt) + _FACTORED * found.sizes
        return replace(found, doubt=doubt)._centred()

    def faded(self, factor: float) -> Factor:
        """Every row times the root of the factor."""
        found = replace(self, kept=sqrt(factor) * self.kept)
        return replace(found, doubt=sqrt(factor) * self.doubt + found.sizes)

    def square(self, combination: Vector) -> tuple[float, float]:
        """Of a vector as long as there are rows."""
        error = self.kept @ combination
        size = np.abs(combination)
        doubt = float(size @ self.doubt)
        doubt += (2.0 * sqrt(len(self.doubt)) + _FORMED) * float(size @ self.sizes)
        length = float(np.linalg.norm(error))
        return length**2, EPS * doubt * (2.0 * length + EPS * doubt)

    def cross(self, combination: Vector) -> Vector:
        """By the rows."""
        return np.asarray(self.kept.T @ (self.kept @ combination))

    @property
    def sizes(self) -> Vector:
        """Lengths of the columns."""
        return np.asarray(np.linalg.norm(self.kept, axis=0))

    @property
    def sums(self) -> Vector:
        """Products with the column of ones."""
        return np.asarray(self.kept[:, -1] @ self.kept)

    @property
    def hidden(self) -> Vector:
        """The errors themselves."""
        return np.asarray(EPS * self.doubt)

    def some(self, columns: np.ndarray) -> Factor:
        """By the entries of these alone."""
        at = self._with_beside(columns)
        return Factor(self.kept[:, at], self.shift[at[:-1]], self.doubt[at], self.rows)

    def emptied(self, columns: np.ndarray) -> Factor:
        """Without their entries."""
        kept = self.kept.copy()
        kept[:, columns] = 0.0
        return replace(self, kept=kept)

    def _product(self, entries: Array) -> Array:
        n, kept = len(entries), self.kept.copy()
        kept[:, :n] = kept[:, :n] @ entries
        return kept

    def _together(self, *doubts: Vector) -> Vector:
        return np.asarray(np.sum(doubts, axis=0))

    def _doubt_of(self, share: float, sizes: Vector) -> Vector:
        return share / EPS * sizes

    def rescaled(self, factors: Vector) -> Factor:
        """Columns times them."""
        return Factor(
            self.kept * factors, self.shift * factors[:-1], self.doubt * factors, self.rows
        )

    def reduce(self, layout: Layout, engine: Literal["gram", "qr"]) -> ColumnReduction | None:
        """Without squaring anything."""
        if engine == "gram":
            return None
        found, which, origin = self._layout_columns(layout)
        account = found._account(which, found.sizes, 1.0)
        return reduce_triangle(layout, found.kept[:, which], origin, self.rows, account=account)


def _shift_of(matrix: Matrix, weight: Vector | None) -> Vector | None:
    """A row near the mean; None where zero is near enough, and rows need no copy."""
    row = matrix.typical_row(weight)
    if row is None or weight is not None:
        return row
    _, first = next(matrix.row_panels(_FIRST))
    spread = np.einsum("ij,ij->j", first, first) / len(first) - row**2
    return None if (row**2 <= _NEAR**2 * spread).all() else row


def _typical(t: Vector, weight: Vector | None) -> float:
    """Mean of some numbers, or one of them where they are equal up to rounding."""
    if weight is None:
        mean, one = float(t.sum()) / len(t), float(t[0])
    else:
        mean, one = float(weight @ t) / float(weight.sum()), float(t[int(np.argmax(weight > 0.0))])
    return one if abs(mean - one) <= _SAME * abs(one) else mean
