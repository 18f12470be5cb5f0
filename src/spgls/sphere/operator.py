"""The paper's sphere problem on data of any size, through products alone."""

from __future__ import annotations

from math import hypot, sqrt
from typing import Protocol

import numpy as np

from spgls.base.cached import cached_property
from spgls.base.far_array import far_of
from spgls.base.types import Array, Vector
from spgls.base.vector import dot, norm
from spgls.matrix.bordered import Begun, Bordered

__all__ = ["LinearMap", "SphereProblem", "Targets", "bordered"]


class LinearMap(Protocol):
    """What an iterative method may ask of ``PA``."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        ...

    @property
    def fused(self) -> bool:
        """Whether :meth:`gram` reads the data once where two products would read it twice."""
        ...

    def apply(self, v: Array) -> Array:
        """``A v``."""
        ...

    def cross(self, u: Array) -> Array:
        """``A' u``."""
        ...

    def measured_cross(self, u: Array) -> Array:
        """``A' u``; what rounding is measured by may come with it."""
        ...

    def gram(self, v: Array) -> Array:
        """``A'A v``, in one read."""
        ...

    @property
    def narrow(self) -> bool:
        """Whether :meth:`gram_beside` costs no more than :meth:`gram`; a second column would."""
        ...

    def gram_beside(self, v: Vector, target: Vector, times: float) -> tuple[Vector, float]:
        """``A'r`` and ``target'r`` for ``r = A v + times target``, in one read."""
        ...

    def square(self) -> Array:
        """``A'A``, for methods that factorise it."""
        ...


def bordered(gamma: float, yz: float, zz: float) -> Bordered:
    """``H`` and ``g`` of the problem of a strength, as products know them."""
    half = sqrt(gamma) / 2
    return Bordered(gamma / 4, half / 2, zz / 4, -half, half / 2, (zz / 2 - yz) / 2)


#: Of sums of squares that are known, this share is no rounding.
_PLENTY = 1.0 / 16.0


class Targets:
    """Labels and goals on the data: what the problems of all strengths share.

    Parameters
    ----------
    matrix : LinearMap
        ``PA`` of Theorem A.
    targets : ndarray of shape (m, 2)
        Projected labels and goals, ``y`` and ``z``.
    squares : tuple of float, optional
        ``y'y``, ``y'z`` and ``z'z``, where they are known.
    begun : Begun, optional
        First products of a problem that are under way.
    alone : bool
        Whether there is one problem only, which may do without ``A'z``.

    Attributes
    ----------
    slope : ndarray of shape (n,)
        ``A'(z/2 - y)``.
    g_last : float
        Last entry of ``g``, ``z'(z/2 - y)/2``.
    p : float
        ``|z/2 - y|^2``.
    passes : float
        Passes over the data so far.
    """

    def __init__(
        self,
        matrix: LinearMap,
        targets: Array,
        *,
        squares: tuple[float, ...] | None = None,
        begun: Begun | None = None,
        alone: bool = False,
    ) -> None:
        table, y, z = targets, targets[:, 0], targets[:, 1]
        if far_of(targets) is None:
            y, z = both = np.ascontiguousarray(targets.T)
            table = both.T
        self.matrix, self.y, self.z = matrix, y, z
        known = (dot(y, y), dot(y, z), dot(z, z)) if squares is None else squares[:3]
        self.yy, self.yz, self.zz = known
        self.g_last = (self.zz / 2 - self.yz) / 2
        self.begun = begun
        self.p = self.yy - self.yz + self.zz / 4.0
        if not self.p >= _PLENTY * (self.yy + self.zz):
            centre = 0.5 * z - y
            self.p = dot(centre, centre)
        #: Whether goals join in row by row, where multiplying them first would cost a column.
        self.narrow = alone and begun is None and matrix.narrow
        if matrix.fused and not self.narrow:
            products = matrix.measured_cross(table)
            self.p_y, self.p_z = np.ascontiguousarray(products.T)
            # A product by a half is what a division gives, in half the time.
            self.slope: Vector = 0.5 * self.p_z - self.p_y
        else:
            self.slope = matrix.measured_cross(0.5 * z - y)
        self.passes = 1.0
        self._read: set[str] = set()

    @cached_property
    def p_y(self) -> Vector:
        """``A'y``."""
        return np.asarray(self.p_z / 2 - self.slope)

    @cached_property
    def p_z(self) -> Vector:
        """``A'z``."""
        self.passes += 1.0
        return self.matrix.cross(self.z)

    @property
    def knows_goals(self) -> bool:
        """Whether ``A'z`` is known, or would take a read."""
        return "p_z" in self.__dict__

    def close(self) -> None:
        """Wait for products that nobody asked for."""
        if self.begun is not None:
            self.begun.close()
            self.begun = None

    def steepness(self, gamma: float) -> float:
        """``|g|`` of the problem of a strength."""
        return hypot(sqrt(gamma) / 2 * self._length, self.g_last)

    @cached_property
    def _length(self) -> float:
        return norm(self.slope)

    def count_once(self, what: str) -> None:
        """Count a read whose result is kept."""
        if what not in self._read:
            self._read.add(what)
            self.passes += 1.0


class SphereProblem:
    """Minimise ``q(r) = r'Hr + 2g'r + p`` over ``|r| = 1``.

    ``H = L'L`` with ``L = [sqrt(gamma)/2 A, z/2]`` is an arrow: apart from its last row and column,
    which are known, it is a multiple of the Gram matrix of ``A``. So a product with ``H`` is one
    Gram product, one read of the data where the matrix can fuse it. Where it cannot (sparse
    columns, or data small enough for the cache) a product is ``L'(L r)``.

    Parameters
    ----------
    targets : Targets
        Labels and goals on the data.
    gamma : float
        Strength of the providers.

    Attributes
    ----------
    g : ndarray of shape (n + 1,)
        Linear term.
    p : float
        Constant term.
    """

    def __init__(self, targets: Targets, gamma: float) -> None:
        self.targets, self.gamma = targets, gamma
        self.matrix, self.y, self.z = targets.matrix, targets.y, targets.z
        self.yy, self.yz, self.zz, self.p = targets.yy, targets.yz, targets.zz, targets.p
        self._half = np.sqrt(gamma) / 2
        self.g = np.empty(len(targets.slope) + 1)
        np.multiply(targets.slope, self._half, out=self.g[:-1])
        self.g[-1] = targets.g_last

    def with_strength(self, gamma: float) -> SphereProblem:
        """The problem of another strength on the same data; both count the same passes."""
        return SphereProblem(self.targets, gamma)

    @property
    def passes(self) -> float:
        """Passes over the data so far: one for each product, fused or not."""
        return self.targets.passes

    @passes.setter
    def passes(self, count: float) -> None:
        self.targets.passes = count

    @property
    def p_y(self) -> Vector:
        """``A'y``."""
        return self.targets.p_y

    @property
    def p_z(self) -> Vector:
        """``A'z``."""
        return self.targets.p_z

    @property
    def size(self) -> int:
        """Dimension of the sphere's space, one more than the number of coefficients."""
        return len(self.g)

    @cached_property
    def _bordered(self) -> Bordered:
        return bordered(self.gamma, self.yz, self.zz)

    @cached_property
    def slope(self) -> float:
        """``|g|``."""
        return norm(self.g)

    def steepness(self, gamma: float) -> float:
        """``|g|`` of the problem of a strength on the same data."""
        return self.slope if gamma == self.gamma else self.targets.steepness(gamma)

    def product(self, r: Vector) -> Vector:
        """``H r``; ``r`` may change by rounding, to what was multiplied."""
        self.passes += 1.0
        if self.targets.begun is not None:
            known = self.targets.begun.product(self._bordered, r)
            if known is not None:
                return known
        out = np.empty_like(r)
        if self.matrix.fused and not self.targets.narrow:
            np.multiply(self.matrix.gram(r[:-1]), self.gamma / 4, out=out[:-1])
            out[:-1] += (self._half / 2 * r[-1]) * self.p_z
            out[-1] = self._half / 2 * dot(self.p_z, r[:-1]) + self.zz / 4 * r[-1]
            return out
        # L'(L r) needs no A'z, which would cost another read, or another column, to know.
        slope, goal = self.matrix.gram_beside(r[:-1], self.z, r[-1] / (2 * self._half))
        np.multiply(slope, self.gamma / 4, out=out[:-1])
        out[-1] = self._half / 2 * goal
        return out

    def value(self, r: Vector, product: Vector) -> float:
        """``q(r)``, given ``H r``."""
        return dot(r, product) + 2 * dot(self.g, r) + self.p

    def dense(self) -> Array:
        """``H`` itself, for methods that factorise it: ``n + 1`` squared numbers."""
        n = self.size - 1
        self.passes += 1.0
        H = np.empty((n + 1, n + 1))
        H[:-1, :-1] = self.gamma / 4 * self.matrix.square()
        H[-1, :-1] = H[:-1, -1] = self._half / 2 * self.p_z
        H[-1, -1] = self.zz / 4
        return H
