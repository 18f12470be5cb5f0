"""What a solver may ask of a data matrix, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from spgls.base.types import Array, Vector
from spgls.matrix.pieces import Rows
from spgls.matrix.work import Work

__all__ = ["VERBS", "Matrix", "RowMap"]

#: A linear map that acts on some rows of ``A v`` at a time: the slice, the rows, the result.
RowMap: TypeAlias = Callable[[slice, Array], Array]


@runtime_checkable
class Matrix(Protocol):
    """An ``m`` x ``n`` real matrix ``A``. All results are float64, whatever the data's type.

    Any object with these properties and methods is data that every function takes as ``X``; it
    need not inherit from anything. Data that comes in row blocks gets all of them from
    :class:`~spgls.matrix.BlockedMatrix`.

    Three verbs carry the iterative methods (:meth:`apply`, :meth:`cross`, :meth:`gram`), the rest
    the direct ones. A ``shift`` stands for ``A - 1 shift'``, subtracted from the entries before
    anything is multiplied, so that large column means cost no digits. A matrix knows nothing of
    games; a solver never learns how the data is stored.
    """

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        ...

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the stored numbers."""
        ...

    @property
    def fused(self) -> bool:
        """Whether :meth:`gram` reads the data once where two products would read it twice."""
        ...

    @property
    def threaded(self) -> bool:
        """Whether products have no use for the threads of BLAS."""
        ...

    @property
    def natural_width(self) -> int:
        """Columns that one read multiplies at little more than the price of one.

        Two where reading is what takes the time, one where it is not.
        """
        ...

    @property
    def work(self) -> Work:
        """How much work it is."""
        ...

    def apply(self, v: Array, shift: Vector | None = None) -> Array:
        """``A v`` for a vector or a block of columns."""
        ...

    def cross(self, u: Array, shift: Vector | None = None) -> Array:
        """``A' u`` for a vector or a block of columns."""
        ...

    def gram(self, v: Array, shift: Vector | None = None, middle: RowMap | None = None) -> Array:
        """``A' M A v``, reading each row once; ``middle`` is ``M``, the identity by default."""
        ...

    def moment(self, extra: Array, weight: Vector | None, shift: Vector | None) -> Array:
        """``B' S B`` for ``B = [A - 1 shift', extra]`` and ``S = diag(weight)``, in one read."""
        ...

    def typical_row(self, weight: Vector | None) -> Vector | None:
        """Return a row near the mean, fit to be a ``shift``; None where zero serves best."""
        ...

    def row_panels(self, rows: int) -> Iterator[tuple[slice, Array]]:
        """Dense float64 pieces of ``rows`` rows, in order. Not to be written to."""
        ...

    def column_panels(self, columns: int) -> Iterator[tuple[slice, Array]]:
        """Dense float64 pieces of ``columns`` columns, in order. Not to be written to."""
        ...

    def take(self, rows: Rows) -> Matrix:
        """Return some rows, given by a slice or by their numbers, in the type they are stored in.

        By reference where they lie together, else a copy of those rows alone.
        """
        ...

    def find_non_finite(self) -> tuple[int, int, float] | None:
        """Row, column and value of an entry that is not finite; None if all are. Copies nothing."""
        ...


#: What an object must have to be a :class:`Matrix`.
VERBS: tuple[str, ...] = tuple(name for name in vars(Matrix) if not name.startswith("_"))
