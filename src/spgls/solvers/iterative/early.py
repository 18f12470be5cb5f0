"""First products of an iteration that are begun before the game is looked at any closer.

They follow from labels, goals and the strength alone. Where the data is on a device that works by
itself, it is busy with them while the host makes plans.
"""

from __future__ import annotations

from math import isfinite

import numpy as np

from spgls.matrix.bordered import Begun, begun_of
from spgls.reduction.data import GameData
from spgls.sphere.operator import bordered

__all__ = ["begin_products", "begun_products", "close_products", "take_products"]

#: Under what name they are kept with the data.
_BEGUN = "begun"


def begin_products(data: GameData, gamma: float) -> None:
    """Begin the first products of a game, where data as it is can do that."""
    if _BEGUN in data.reductions or not hasattr(data.matrix, "begin_krylov") or not data.plain:
        return
    with np.errstate(all="ignore"):
        targets, _ = data.projected_targets
        _, yz, zz, _ = data.target_squares
        if isfinite(yz + zz):
            begun = begun_of(data.projected, targets, bordered(gamma, yz, zz))
            if begun is not None:
                data.reductions[_BEGUN] = begun


def begun_products(data: GameData) -> Begun | None:
    """Those that are under way; they stay with the data."""
    begun: Begun | None = data.reductions.get(_BEGUN)
    return begun


def take_products(data: GameData, gamma: float) -> Begun | None:
    """Those that are under way, or are begun now; the caller has to close them."""
    begin_products(data, gamma)
    begun: Begun | None = data.reductions.pop(_BEGUN, None)
    return begun


def close_products(data: GameData) -> None:
    """Wait for products that nobody took."""
    begun: Begun | None = data.reductions.pop(_BEGUN, None)
    if begun is not None:
        begun.close()
