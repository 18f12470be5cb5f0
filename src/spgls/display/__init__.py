"""Pictures of games and models: classes that hold data and draw it in ``plot``."""

from __future__ import annotations

from spgls.display.cv import CVDisplay
from spgls.display.heatmap import GammaHeatmapDisplay
from spgls.display.movement import MovementDisplay
from spgls.display.path import PathDisplay
from spgls.display.response import ResponseDisplay
from spgls.display.tradeoff import TradeoffDisplay

__all__ = [
    "CVDisplay",
    "GammaHeatmapDisplay",
    "MovementDisplay",
    "PathDisplay",
    "ResponseDisplay",
    "TradeoffDisplay",
]
