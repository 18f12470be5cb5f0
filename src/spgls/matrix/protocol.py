"""What a solver may ask of a data matrix, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol, TypeAlias, runtime_checkable

from spgls._types import Array, Vector
from spgls.matrix.work import Work

__all__ = ["BLOCK_BYTES", "CACHE_BYTES", "WIDEST", "Matrix", "RowMap", "block_length"]

#: Working copies of a piece of the data never exceed about this many bytes.
BLOCK_BYTES = 4 * 2**20
#: A block that is read twice should still be in cache the second time.
CACHE_BYTES = 2**20
#: Products of more columns than this are left to BLAS and SciPy.
WIDEST = 8

#: A linear map that acts on some rows of ``A v`` at a time: the slice, the rows, the result.
RowMap: TypeAlias = Callable[[slice, Array], Array]


def block_length(width: int, *, at_least: int = 1, block_bytes: int = BLOCK_BYTES) -> int:
    """Number of rows of ``width`` doubles that fit in one block."""
    return max(at_least, block_bytes // (8 * max(width, 1)), 1)


@runtime_checkable
class Matrix(Protocol):
    """An ``m`` x ``n`` real matrix ``A``. All results are float64, whatever the data's type.

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
    def fused(self) -> bool:
        """Whether :meth:`gram` reads the data once where two products would read it twice."""
        ...

    @property
    def threaded(self) -> bool:
        """Whether products run on several threads of their own, not on those of BLAS."""
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
