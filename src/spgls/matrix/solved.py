"""``P A`` where ``P`` is applied by least squares, and no basis of what it removes is known."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy.linalg import lstsq

from spgls.base.types import Array, Vector
from spgls.matrix.bordered import in_two_reads
from spgls.matrix.eliminated import EliminationError, eliminated
from spgls.matrix.lazy import ScaledMatrix
from spgls.matrix.pieces import block_length, in_pieces, sum_length
from spgls.matrix.projection import SolvedProjection

__all__ = ["SolvedMatrix"]

#: So few columns are projected once and kept; of more, only what they are multiplied with is.
_FEW = 16
#: Numbers that are remembered of earlier products.
_REMEMBERED = 4_000_000


class SolvedMatrix:
    """``P A``, a projection for each product.

    Parameters
    ----------
    matrix : ScaledMatrix
        The priced and weighted data ``A``.
    projection : SolvedProjection
        ``P``.
    """

    #: A projection asks for all rows, so the data is read twice.
    fused = False
    narrow = False

    def __init__(self, matrix: ScaledMatrix, projection: SolvedProjection) -> None:
        self.matrix, self.projection = matrix, projection
        self._past: list[tuple[Array, Array]] = []
        self._error: EliminationError | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.matrix.shape

    @cached_property
    def _kept(self) -> Array | None:
        """``P A`` itself, if it has few columns."""
        n = self.shape[1]
        return self.split(np.eye(n))[0] if n <= _FEW else None

    def split(self, v: Array) -> tuple[Array, Array]:
        """``P A v``, and the coefficients of the free columns in ``A v - P A v``.

        Those of the last vectors are remembered: what an iteration ends in is a combination of what
        it has multiplied, and so are its coefficients.
        """
        t, start = self.matrix.apply(v), self._likely(v)
        rest, u = self.projection.split(t, start)
        if v.ndim == 1 and (len(self._past) + 1) * (len(v) + len(u)) <= _REMEMBERED:
            self._past.append((v.copy(), u))
        return rest, u

    def _likely(self, v: Array) -> Array | None:
        """About the coefficients, by those of earlier vectors that these are combinations of."""
        if not self._past or v.ndim == 1:
            return None
        seen, found = (np.stack(part, axis=1) for part in zip(*self._past, strict=True))
        weights = lstsq(seen, v)[0]
        return np.asarray(found @ weights)

    def apply(self, v: Array) -> Array:
        """``P A v``."""
        return self.split(v)[0] if self._kept is None else self._kept @ v

    def cross(self, u: Array) -> Array:
        """``A' P u``."""
        if self._kept is not None:
            return in_pieces(self._kept, u, sum_length(len(u)))
        return self.matrix.cross(self.projection.apply(u))

    def measured_cross(self, u: Array) -> Array:
        """``A' P u``, with lengths of columns."""
        return self.matrix.measured_cross(self.projection.apply(u))

    def gram(self, v: Array) -> Array:
        """``A' P A v``."""
        t = self.apply(v)
        if self._kept is None:
            return self.matrix.cross(t)
        return in_pieces(self._kept, t, sum_length(len(t)))

    def gram_beside(self, v: Vector, target: Vector, times: float) -> tuple[Vector, float]:
        """``A'P r`` and ``target'r`` for ``r = P A v + times target``, a projected target."""
        return in_two_reads(self, v, target, times)

    def square(self) -> Array:
        """``A'PA`` itself: by elimination where the free columns can be factorised.

        :meth:`square_error` says what that is wrong by.
        """
        found = eliminated(self.matrix, self.projection) if self._kept is None else None
        if found is None:
            return self.accurate_square()
        square, self._error = found
        return square

    def square_error(self, least: float) -> float:
        """Error of an entry of :meth:`square`, over the lengths of its columns before projection.

        That of the projection and of squaring comes on top.

        Parameters
        ----------
        least : float
            What no singular value of the free columns at unit length is below.
        """
        return 0.0 if self._error is None else self._error.entry(least)

    def accurate_square(self) -> Array:
        """The same from projected columns, some at a time: slow, and no further error."""
        self._error = None
        m, n = self.shape
        whole = np.empty((n, n))
        width = block_length(m)
        for at in range(0, n, width):
            some = np.arange(at, min(at + width, n))
            unit = np.zeros((n, len(some)))
            unit[some, some - at] = 1.0
            whole[:, some] = self.gram(unit)
        return np.asarray((whole + whole.T) / 2)
