"""Linear models that somebody already has, one or several, by name."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from spgls.base.frames import column_names
from spgls.base.types import Vector
from spgls.base.validation import check_vector
from spgls.estimators.faced import facing
from spgls.game.costs import read_cost
from spgls.game.providers import Provider
from spgls.matrix import as_matrix
from spgls.solvers import Solution

__all__ = ["decides", "face_model", "is_pair", "read_models", "seen_by"]


def read_models(models: Any) -> dict[str, Any]:
    """Models by name."""
    if isinstance(models, Mapping):
        named = {str(name): model for name, model in models.items()}
    else:
        several = isinstance(models, list | tuple) and not is_pair(models)
        named = {}
        for model in models if several else [models]:
            kind = "coefficients" if is_pair(model) else type(model).__name__
            same = 1 + sum(name.split()[0] == kind for name in named)
            named[f"{kind} {same}" if same > 1 else kind] = model
    if not named:
        raise ValueError("models must hold at least one model; got none.")
    return named


def is_pair(model: Any) -> bool:
    """Whether a model is given as coefficients and intercept."""
    return isinstance(model, tuple) and len(model) == 2 and isinstance(model[1], Real | np.ndarray)


def decides(model: Any) -> bool:
    """Whether a model is a classifier."""
    return hasattr(model, "predict") and not isinstance(model, type) and is_classifier(model)


def seen_by(model: Any, X: Any) -> Any:
    """The features that a model's last step sees."""
    while hasattr(model, "best_estimator_"):
        model = model.best_estimator_
    return model[:-1].transform(X) if len(getattr(model, "steps", ())) > 1 else X


def face_model(name: str, model: Any, X: Any, feature_cost: Any) -> tuple[Vector, Provider]:
    """A model's predictions, and the honest provider who faces it."""
    if isinstance(model, Solution):
        model = (model.coef, model.intercept)
    if not is_pair(model):
        try:
            return facing(model, X, feature_cost)
        except (TypeError, ValueError) as error:
            error.add_note(f"It is models[{name!r}].")
            raise
    matrix = as_matrix(X)
    coef = check_vector(model[0], "coef", matrix.shape[1], "column of X")
    constant = check_vector(np.atleast_1d(model[1]), "intercept", 1, "model")
    cost = read_cost(feature_cost, len(coef), column_names(X))
    return matrix.apply(coef) + constant, Provider(coef, 0.0, math.inf, cost)
