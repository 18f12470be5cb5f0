"""Where scikit-learn is met: estimators, cross-validation, attacked predictions and scores."""

from __future__ import annotations

from spgls.estimators.attack import best_response, predict_attacked
from spgls.estimators.cv import StackelbergRegressorCV
from spgls.estimators.regressor import StackelbergRegressor
from spgls.estimators.scorers import make_attacked_scorer

__all__ = [
    "StackelbergRegressor",
    "StackelbergRegressorCV",
    "best_response",
    "make_attacked_scorer",
    "predict_attacked",
]
