"""Many predictors at once, in pieces that memory can hold."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from spgls.reduction.data import GameData

__all__ = ["column_chunks"]

#: Predictions for all rows that are held at once.
_BYTES = 32 * 2**20


def column_chunks(data: GameData, columns: np.ndarray) -> Iterator[np.ndarray]:
    """Pieces of a list of predictors, few enough to hold the predictions of each for all rows."""
    width = max(int(_BYTES / (8 * data.matrix.shape[0])), 1)
    for at in range(0, len(columns), width):
        yield columns[at : at + width]
