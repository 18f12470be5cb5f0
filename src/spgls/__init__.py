"""Linear models that stay right when people change their data in response.

The learner publishes a linear predictor, each data provider then moves its row as far as pays off,
and the predictor is the best possible against that: the Stackelberg prediction game with
least-squares loss, solved globally and certified.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spgls.game.actions import Actions, Switches
from spgls.game.between import Between
from spgls.game.classes import Opposite, Wants
from spgls.game.goals import Cap, Constant, Floor, Scale, Shift
from spgls.game.providers import Population, PopulationRange
from spgls.game.response import gamma_from_pull, movement, undo_response
from spgls.game.strength import GammaEstimate, estimate_gamma
from spgls.solvers import End, Solution, Stats, Status, Step
from spgls.solvers.levers import Levers, levers
from spgls.solvers.progress import Progress
from spgls.solvers.solve import certify, solve
from spgls.solvers.statistics import GameStatistics
from spgls.sphere import Certificate
from spgls.streams import Reading, Stream, stream
from spgls.study.compare import Comparison, Trial, compare_solvers
from spgls.study.explain import explain_solver
from spgls.study.path import Path, solve_path

if TYPE_CHECKING:
    from spgls.estimators.attack import best_response, decision_attacked, predict_attacked
    from spgls.estimators.classifier import StackelbergClassifier
    from spgls.estimators.classifier_cv import StackelbergClassifierCV
    from spgls.estimators.cv import StackelbergRegressorCV
    from spgls.estimators.regressor import StackelbergRegressor
    from spgls.estimators.scorers import make_attacked_scorer
    from spgls.estimators.summary import Summary
    from spgls.io.model_file import ModelFileError, load_model, save_model
    from spgls.io.onnx_export import export_onnx
    from spgls.report.write import write_report
    from spgls.study.robust_decisions import DecisionRobustness
    from spgls.study.robustness import Robustness, robustness
    from spgls.study.thresholds import Thresholds

__version__ = "0.1.0"

__all__ = [
    "Actions",
    "Between",
    "Cap",
    "Certificate",
    "Comparison",
    "Constant",
    "DecisionRobustness",
    "End",
    "Floor",
    "GameStatistics",
    "GammaEstimate",
    "Levers",
    "ModelFileError",
    "Opposite",
    "Path",
    "Population",
    "PopulationRange",
    "Progress",
    "Reading",
    "Robustness",
    "Scale",
    "Shift",
    "Solution",
    "StackelbergClassifier",
    "StackelbergClassifierCV",
    "StackelbergRegressor",
    "StackelbergRegressorCV",
    "Stats",
    "Status",
    "Step",
    "Stream",
    "Summary",
    "Switches",
    "Thresholds",
    "Trial",
    "Wants",
    "best_response",
    "certify",
    "compare_solvers",
    "decision_attacked",
    "estimate_gamma",
    "explain_solver",
    "export_onnx",
    "gamma_from_pull",
    "levers",
    "load_model",
    "make_attacked_scorer",
    "movement",
    "predict_attacked",
    "robustness",
    "save_model",
    "solve",
    "solve_path",
    "stream",
    "undo_response",
    "write_report",
]

#: Names that need scikit-learn, which takes longer to import than all the rest.
_LATER = {
    "DecisionRobustness": "spgls.study.robust_decisions",
    "ModelFileError": "spgls.io.model_file",
    "Robustness": "spgls.study.robustness",
    "StackelbergClassifier": "spgls.estimators.classifier",
    "StackelbergClassifierCV": "spgls.estimators.classifier_cv",
    "StackelbergRegressor": "spgls.estimators.regressor",
    "StackelbergRegressorCV": "spgls.estimators.cv",
    "Summary": "spgls.estimators.summary",
    "Thresholds": "spgls.study.thresholds",
    "best_response": "spgls.estimators.attack",
    "decision_attacked": "spgls.estimators.attack",
    "export_onnx": "spgls.io.onnx_export",
    "load_model": "spgls.io.model_file",
    "make_attacked_scorer": "spgls.estimators.scorers",
    "predict_attacked": "spgls.estimators.attack",
    "robustness": "spgls.study.robustness",
    "save_model": "spgls.io.model_file",
    "write_report": "spgls.report.write",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'spgls' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LATER[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
