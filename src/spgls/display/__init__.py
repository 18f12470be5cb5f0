"""Pictures of games and models: classes that hold data and draw it in ``plot``."""

from __future__ import annotations

from spgls.display.coefficient_display import CoefficientDisplay
from spgls.display.cv_display import CVDisplay
from spgls.display.decision_display import DecisionDisplay
from spgls.display.decision_robustness_display import DecisionRobustnessDisplay
from spgls.display.heatmap_display import GammaHeatmapDisplay
from spgls.display.levers_display import LeversDisplay
from spgls.display.movement_display import MovementDisplay
from spgls.display.path_display import PathDisplay
from spgls.display.response_display import ResponseDisplay
from spgls.display.robustness_display import RobustnessDisplay
from spgls.display.tradeoff_display import TradeoffDisplay

__all__ = [
    "CVDisplay",
    "CoefficientDisplay",
    "DecisionDisplay",
    "DecisionRobustnessDisplay",
    "GammaHeatmapDisplay",
    "LeversDisplay",
    "MovementDisplay",
    "PathDisplay",
    "ResponseDisplay",
    "RobustnessDisplay",
    "TradeoffDisplay",
]
