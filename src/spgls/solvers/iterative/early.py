"""First products of an iteration that are begun before the game is looked at any closer.

They follow from labels, goals and the strength alone. Where the data is on a device that works by
itself, it is busy with them while the host makes plans.
"""

from __future__ import annotations

from math import isfinite

import numpy as np

from spgls.matrix.bordered import Begun, Bordered, begun_of
from spgls.reduction.data import GameData
from spgls.sphere.operator import bordered

__all__ = ["begin_products", "begun_products", "close_products", "take_products"]

#: Under what name they are kept with the data.
_BEGUN = "begun"


def begin_products(data: GameData, gamma: float) -> None:
    """Begin the first products of a game, where data as it is can do that."""
    if _BEGUN in data.reductions or not hasattr(data.matrix, "begin_krylov") or not data.plain:
        return

    def told() -> Bordered | None:
        targets, _ = data.projected_targets
        _, yz, zz, _ = data.target_squares
        # Goals that are the labels but for rounding are other targets.
        same = targets is data.given_targets
        return bordered(gamma, yz, zz) if same and isfinite(yz + zz) else None

    with np.errstate(all="ignore"):
        # Nothing is kept too: what was begun in vain is not begun again.
        data.reductions[_BEGUN] = begun_of(data.priced, data.given_targets, told)


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
