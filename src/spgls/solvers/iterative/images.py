"""Krylov spaces that keep their products: residuals without another read.

A basis grows by one product with its newest columns. What comes of them is all that is needed to
form the residual of any combination of the columns, and what rounding did to it is known: each
product was formed afresh, from columns as they are stored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.blas import dgemm

from spgls.base.each import Each
from spgls.base.types import EPS, Array, Vector
from spgls.base.vector import dot
from spgls.matrix.squares import sum_rounding
from spgls.reduction.krylov_space import KrylovSpace

__all__ = ["Frame", "MeasuredSpace", "Span"]

#: Beyond so many columns or bytes, one more read costs little in comparison.
_COLUMNS, _BYTES = 96, 24e6
#: Products for which there is room at once.
_FIRST = 4


class MeasuredSpace(KrylovSpace):
    """A growing basis with its products as the data gave them, while they are few.

    Parameters
    ----------
    product : callable
        The product with a column or a block of them.
    starts : ndarray of shape (n, w)
        Start columns.
    limit : int
        Most columns of the basis.
    bordered : bool
        Whether the product is that of the sphere problem, ``H``, and not of the data, ``A'PA``.
    """

    def __init__(
        self,
        product: Callable[[Array], Array],
        starts: Array,
        limit: int,
        *,
        bordered: bool = False,
    ) -> None:
        super().__init__(product, starts, limit)
        self.bordered = bordered
        self._sizes: list[float] = []
        #: A line for each product.
        large = 8 * len(starts) > _BYTES
        self._images: Array | None = None if large else np.empty((_FIRST, len(starts)))
        self._frame: tuple[int, Frame] | None = None

    def _multiply(self, V: Array) -> Array:
        W = super()._multiply(V)
        if self._images is not None:
            pairs = [(V, W)] if V.ndim == 1 else list(zip(V.T, W.T, strict=True))
            count = len(self._sizes) + len(pairs)
            if count > _COLUMNS or 8 * len(V) * count > _BYTES or self.restarts:
                self._images = None
                return W
            if count > len(self._images):
                more = np.empty((2 * count, len(V)))
                more[: len(self._sizes)] = self._images[: len(self._sizes)]
                self._images = more
            for v, w in pairs:
                self._images[len(self._sizes)] = w
                self._sizes.append(sqrt(max(dot(v, w), 0.0)))
        return W

    @property
    def keeps(self) -> bool:
        """Whether products are kept so far."""
        return self._images is not None

    @property
    def kept(self) -> bool:
        """Whether products of all columns are known."""
        return self._kept(self.count) is not None

    def span(self, h: Array, frame: Frame | None = None) -> Span | None:
        """Points of given coordinates, a column each; None where products were not kept."""
        images = self._kept(len(h))
        if images is None:
            return None
        return Span(h, images, np.array(self._sizes), self.bordered, frame)

    def frame(self, targets: Array) -> Frame | None:
        """Coordinates of products and targets; None where products were not kept."""
        images = self._kept(self.count)
        if images is None or self.width == 0:
            return None
        if self._frame is None or self._frame[0] != self.count:
            basis = self._Q[:, : self.count]
            known = Frame.of(basis, np.hstack([basis, self._next]), np.hstack([images, targets]))
            self._frame = self.count, known
        return self._frame[1]

    def _kept(self, count: int) -> Array | None:
        """What products made of all of so many columns, if that is known."""
        if self.restarts or self._images is None or len(self._sizes) != count:
            return None
        return self._images[:count].T


class Frame(NamedTuple):
    """Products and targets in the coordinates of a basis in which they lie, but for what is said.

    The basis is that of the space with the columns that would come next. What it misses is
    measured, so nothing rests on how it was made.

    Attributes
    ----------
    basis : ndarray of shape (n, k)
        Columns of the space, the first of the basis.
    inside : ndarray of shape (K, t)
        Coordinates of products, and of targets behind them.
    outside : ndarray of shape (t,)
        How long the rest of each is at most, with rounding of its coordinates and of ``t`` terms.
    skew : float
        What the basis lacks of being orthonormal at most: no combination is longer than its
        coordinates by more than this share.
    """

    basis: Array
    inside: Array
    outside: Vector
    skew: float

    @classmethod
    def of(cls, basis: Array, all_of_it: Array, columns: Array) -> Frame:
        """Measure columns by a basis that begins with those of the space."""
        n, count = all_of_it.shape
        inside = all_of_it.T @ columns
        rest = columns - all_of_it @ inside
        terms = count + columns.shape[1] + 2
        rounding = terms**2 * EPS * np.sqrt(np.einsum("ij,ij->j", columns, columns))
        outside = 2.0 * np.sqrt(np.einsum("ij,ij->j", rest, rest)) + rounding
        lack = all_of_it.T @ all_of_it - np.eye(count)
        skew = float(np.linalg.norm(lack)) + count * sum_rounding(n)
        return cls(basis, inside, outside, skew)


@dataclass(frozen=True, eq=False)
class Span:
    """Points in the span of a basis whose products are known.

    Attributes
    ----------
    h : ndarray of shape (k, G)
        Coordinates of the points, a column for each.
    images : ndarray of shape (n, k)
        What products made of the basis.
    sizes : ndarray of shape (k,)
        Lengths of what the data makes of it: ``|PA q|``, or ``|L q|`` if bordered.
    bordered : bool
        Whether products are those of the sphere problem, and not of the data.
    frame : Frame, optional
        Coordinates of products and of ``A'z`` and ``A'y``, where there are many points.
    """

    h: Array
    images: Array
    sizes: Vector
    bordered: bool
    frame: Frame | None = None

    def taken(self, rows: np.ndarray) -> Span:
        """Some of them."""
        return self._at(self.h[:, rows])

    def scaled(self, factor: Each) -> Span:
        """Each so many times."""
        return self._at(self.h * factor)

    @property
    def size(self) -> Each:
        """Sums of the magnitudes of the coordinates."""
        return (
            np.abs(self.h).sum(axis=0)
            if self.h.ndim > 1
            else np.float64(sum(map(abs, self.h.tolist())))
        )

    @property
    def seen(self) -> Each:
        """Sums of the lengths of what the data makes of their parts."""
        return self.sizes.dot(np.abs(self.h))

    @property
    def unframed(self) -> Span:
        """The same points, to be judged by vectors."""
        return replace(self, frame=None)

    @property
    def only(self) -> Span:
        """The only one of them, with coordinates of shape ``(k,)``."""
        return self._at(self.h[:, 0])

    def _at(self, h: Array) -> Span:
        """Other points."""
        return Span(h, self.images, self.sizes, self.bordered, self.frame)

    def product(self, targets: Array | None = None, times: Any = None) -> Array:
        """What products make of them, a column for each.

        Parameters
        ----------
        targets : ndarray of shape (n, t), optional
            Columns to add.
        times : ndarray of shape (t, G), optional
            How often, for each of the points.
        """
        if self.h.ndim == 1:
            out = self.images.dot(self.h)
            return np.asarray(out if targets is None else out + np.dot(targets, times))
        out = dgemm(1.0, self.images, self.h)
        if targets is not None:
            out = dgemm(1.0, targets, times, 1.0, out, overwrite_c=1)
        return np.asarray(out)
