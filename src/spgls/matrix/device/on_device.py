"""What dense and sparse data on a device have in common."""

from __future__ import annotations

from typing import Any

import numpy as np

from spgls.base.devices import Place
from spgls.matrix.device.held import Held

__all__ = ["OnDevice"]


class OnDevice:
    """Numbers that stay on a device.

    Parameters
    ----------
    numbers : array
        float64 or float32.
    place : Place
        Where they live.
    """

    def __init__(self, numbers: Any, place: Place) -> None:
        self.place = place
        self._xp = place.xp
        self._held = Held(place)
        self._double = "64" in str(numbers.dtype)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the stored numbers."""
        return np.dtype(np.float64 if self._double else np.float32)

    @property
    def fused(self) -> bool:
        """Always: what stands between the halves of a product stays on the device."""
        return True

    @property
    def threaded(self) -> bool:
        """Yes: short vectors are all that is left for the host, and threads would only wait."""
        return True
