"""Krylov spaces that keep their products: residuals without another read.

A basis grows by one product with its newest columns. What comes of them is all that is needed to
form the residual of any combination of the columns, and what rounding did to it is known: each
product was formed afresh, from columns as they are stored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from scipy.linalg.blas import dgemm

from spgls.base.each import Each
from spgls.base.types import Array, Vector
from spgls.base.vector import dot
from spgls.reduction.krylov_space import KrylovSpace

__all__ = ["MeasuredSpace", "Span"]

#: Beyond so many columns or bytes, one more read costs little in comparison.
_COLUMNS, _BYTES = 96, 24e6


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
        self._images: list[Array] | None = []

    def _multiply(self, V: Array) -> Array:
        W = super()._multiply(V)
        if self._images is not None:
            pairs = [(V, W)] if V.ndim == 1 else zip(V.T, W.T, strict=True)
            self._sizes += [sqrt(max(dot(v, w), 0.0)) for v, w in pairs]
            # The basis makes a copy of its own.
            self._images.append(W if W.ndim == 2 else W[:, None])
            many = len(self._sizes) > _COLUMNS or 8 * len(V) * len(self._sizes) > _BYTES
            if many or self.restarts:
                self._images = None
        return W

    def span(self, h: Array) -> Span | None:
        """Points of given coordinates, a column each; None where products were not kept."""
        if self.restarts or self._images is None or len(self._sizes) != len(h):
            return None
        if len(self._images) > 1:
            self._images = [np.concatenate([block.T for block in self._images]).T]
        return Span(h, self._images[0], np.array(self._sizes), self.bordered)


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
    """

    h: Array
    images: Array
    sizes: Vector
    bordered: bool

    def taken(self, rows: np.ndarray) -> Span:
        """Some of them."""
        return Span(self.h[:, rows], self.images, self.sizes, self.bordered)

    def scaled(self, factor: Each) -> Span:
        """Each so many times."""
        return Span(self.h * factor, self.images, self.sizes, self.bordered)

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
    def only(self) -> Span:
        """The only one of them, with coordinates of shape ``(k,)``."""
        return Span(self.h[:, 0], self.images, self.sizes, self.bordered)

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
