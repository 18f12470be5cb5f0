"""Names for the array types used throughout."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["EPS", "Array", "Vector"]

Vector: TypeAlias = NDArray[np.float64]
Array: TypeAlias = NDArray[np.float64]

#: Spacing of double precision numbers around one, the ``u`` of the documentation.
EPS: float = float(np.finfo(np.float64).eps)
