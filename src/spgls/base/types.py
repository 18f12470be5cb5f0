"""Names for the array types used throughout, and for what users may pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "EPS",
    "Array",
    "Classes",
    "Number",
    "Numbers",
    "Seed",
    "SupportsArray",
    "SupportsCSR",
    "Table",
    "Vector",
]

Vector: TypeAlias = NDArray[np.float64]
Array: TypeAlias = NDArray[np.float64]


class SupportsArray(Protocol):
    """What NumPy can make an array of: arrays, and the frames and series of pandas and polars."""

    def __array__(self) -> Any:
        """Return an array."""
        ...


class SupportsCSR(Protocol):
    """What SciPy's sparse matrices and arrays have in common."""

    def tocsr(self) -> Any:
        """Return the same by rows."""
        ...


#: A number that users may pass; Python's whole numbers count as floats.
Number: TypeAlias = float | np.floating[Any] | np.integer[Any]
#: Several of them: one per row, or one per column.
Numbers: TypeAlias = Sequence[Number] | SupportsArray
#: Labels of any kind, one per row: text, numbers or truth values.
Classes: TypeAlias = Sequence[str] | Sequence[bool] | Numbers
#: Rows of numbers.
Table: TypeAlias = SupportsArray | SupportsCSR | Sequence[Numbers]
#: Where random numbers come from.
Seed: TypeAlias = int | np.integer[Any] | np.random.Generator

#: Spacing of double precision numbers around one, the ``u`` of the documentation.
EPS: float = float(np.finfo(np.float64).eps)
