"""Linear models taken apart: what their providers face, whoever fitted them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from spgls.base.frames import column_names
from spgls.base.types import Vector
from spgls.base.validation import check_number, check_strength, check_vector, describe
from spgls.game.boundary import BoundaryProvider
from spgls.game.classes import Labels, check_class_goal, class_goals
from spgls.game.costs import read_cost
from spgls.game.goals import goals_for
from spgls.game.moves import Cost
from spgls.game.providers import Provider
from spgls.game.response import strength_at
from spgls.matrix import DaskMatrix, Matrix, as_matrix, in_chunks

__all__ = [
    "MODEL",
    "Faced",
    "check_budget",
    "face",
    "facing",
    "fitted_strength",
    "is_auto",
    "linear_parts",
    "model_columns",
]

#: How errors about a model begin.
MODEL = "model must be a fitted linear model, or a Pipeline that ends in one"
#: What a model predicts may differ by so much from ``X @ coef_ + intercept_``, in float32 too.
_LINEAR = 1e-2


def facing(model: Any, X: Any, feature_cost: Any) -> tuple[Vector, Provider]:
    """A model's predictions, which are numbers, and the honest provider who faces it."""
    faced = face(model, X, feature_cost)
    if faced.classes is not None:
        raise TypeError(
            f"{MODEL}, that predicts numbers; got {describe(faced.last)}, which predicts classes."
        )
    return faced.before, faced.provider(math.inf)


def fitted_strength(gamma: Any) -> float:
    """The one strength of the strategic providers that a model was fitted against."""
    strengths = np.atleast_1d(gamma)
    finite = np.unique(strengths[np.isfinite(strengths)])
    if len(finite) > 1:
        raise ValueError(
            "gamma is needed, because this model was fitted against several strengths: "
            f"{', '.join(f'{strength:.6g}' for strength in finite)}. Pass one of them, or another."
        )
    return float(finite[0]) if len(finite) else math.inf


def check_budget(budget: Any, m: int) -> float | Vector:
    """Return what a decision is worth, one number or one per row; zero is honest."""
    if np.ndim(budget) == 0:
        return check_number(budget, "budget", at_least=0.0, advice="Zero is an honest provider.")
    values = check_vector(budget, "budget", m, "row of X")
    if (values < 0.0).any():
        at = int(np.flatnonzero(values < 0.0)[0])
        raise ValueError(f"budget must not be negative; entry {at} is {values[at]}.")
    return values


def is_auto(gamma: Any) -> bool:
    """Whether a strength is to be that of the model."""
    return isinstance(gamma, str) and gamma == "auto"


@dataclass(frozen=True, eq=False)
class Faced:
    """A linear model as its providers see it.

    Attributes
    ----------
    last : estimator
        The model, without what comes before it.
    table : array-like, data frame or sparse matrix of shape (m, n)
        Rows as it sees them.
    before : ndarray of shape (m,)
        Its predictions; of a classifier its scores.
    coef : ndarray of shape (n,)
        Its coefficients.
    cost : ndarray of shape (n,), Moves or None
        What its features cost to change.
    classes : ndarray of shape (2,), optional
        The classes of a classifier.
    threshold : float
        Where its scores are cut.
    """

    last: Any
    table: Any
    before: Vector
    coef: Vector
    cost: Cost
    classes: Labels | None = None
    threshold: float = 0.0

    @property
    def own_strength(self) -> float:
        """Strength it was fitted against, or at which providers close half their gaps."""
        if _knows_its_providers(self.last):
            return fitted_strength(self.last.gamma_)
        return strength_at(0.5, self.provider(math.inf).reach) or math.inf

    def provider(self, gamma: Any) -> Provider:
        """Who faces it."""
        strength = self.own_strength if is_auto(gamma) else check_strength(gamma, len(self.before))
        return Provider(self.coef, 0.0, strength, self.cost)

    def respondent(self, gamma: Any, budget: Any) -> Provider | BoundaryProvider:
        """Who faces it: providers of some strength, or those who move to the boundary."""
        if budget is None:
            return self.provider(gamma)
        if gamma is not None:
            raise ValueError("budget was given and so was gamma; drop one of them.")
        if self.classes is None:
            raise ValueError(
                f"budget is what a decision is worth, but {describe(self.last)} predicts numbers "
                "and not classes. Pass gamma."
            )
        worth = check_budget(budget, len(self.before))
        return BoundaryProvider(self.provider(math.inf), worth, self.threshold)

    def goals(self, z: Any, y: Any) -> Vector:
        """What providers want of it: those goals, or those of its own goal."""
        own, m = getattr(self.last, "goal", None), len(self.before)
        if self.classes is None:
            return goals_for(own, m, z, y)
        return class_goals(check_class_goal(own), m, z, y, self.classes)

    def spoken(self, said: Vector) -> Any:
        """What it makes of predictions or scores."""
        if self.classes is None:
            return said
        return self.classes[(said > self.threshold).astype(np.intp)]


def _knows_its_providers(last: Any) -> bool:
    return hasattr(last, "gamma_") and hasattr(last, "feature_cost_")


def linear_parts(model: Any) -> tuple[Any, Any, Vector]:
    """What transforms rows, or None, the fitted linear model at the end, and its coefficients."""
    while hasattr(model, "best_estimator_"):
        model = model.best_estimator_
    head, last = (model[:-1], model[-1]) if hasattr(model, "steps") else (None, model)
    if isinstance(last, type) or not hasattr(last, "predict"):
        raise TypeError(f"{MODEL}; got {describe(model)}.")
    if hasattr(last, "regressor"):
        raise TypeError(
            f"{MODEL}; got {describe(model)}, whose labels are transformed. Pass its regressor_ "
            "with X and z as that sees them."
        )
    check_is_fitted(last)
    if not hasattr(last, "coef_"):
        raise TypeError(f"{MODEL}; got {describe(model)}, which has no coef_.")
    coef = np.asarray(last.coef_, dtype=np.float64)
    if coef.ndim == 2 and coef.shape[0] == 1:
        coef = coef[0]
    if coef.ndim != 1:
        what = "for two classes" if is_classifier(last) else "with one output"
        raise ValueError(f"{MODEL}, {what}; got {describe(model)} with {len(coef)}.")
    return head, last, coef


def face(model: Any, X: Any, feature_cost: Any, own_cost: bool = False) -> Faced:
    """Take apart a model; on request, with the costs it was fitted against unless any are given."""
    head, last, coef = linear_parts(model)
    table = X if head is None or len(head) == 0 else head.transform(X)
    matrix = as_matrix(table, check_finite=not in_chunks(table))
    m, n = matrix.shape
    if n != len(coef):
        raise ValueError(f"X must have {len(coef)} columns, as model was fitted; got {n}.")
    if own_cost and feature_cost is None and _knows_its_providers(last):
        feature_cost = last.feature_cost_
    cost = read_cost(feature_cost, n, model_columns(head, last, table))
    classes, threshold = None, 0.0
    if is_classifier(last):
        classes, threshold = np.asarray(last.classes_), float(getattr(last, "threshold_", 0.0))
    if isinstance(table, Matrix) or in_chunks(table):
        # Not for every model to predict: what it says is taken from its coefficients.
        intercept = float(np.sum(getattr(last, "intercept_", 0.0)))
        if isinstance(matrix, DaskMatrix) and classes is None:
            said = matrix.lazy_predictions(coef, intercept, np.float64)
        else:
            said = matrix.apply(coef) + intercept
        return Faced(last, matrix, said, coef, cost, classes, threshold)
    said = _scores(last, table, classes).reshape(m) + threshold
    offset = said - matrix.apply(coef)
    constant = float(offset.mean()) if m > 1 else float(np.sum(getattr(last, "intercept_", 0.0)))
    if np.abs(offset - constant).max() > _LINEAR * max(np.abs(said).max(), np.abs(offset).max()):
        raise TypeError(
            f"{MODEL}; {describe(last)} does not predict X @ coef_ + intercept_, so providers "
            "would not move along coef_."
        )
    return Faced(last, table, said, coef, cost, classes, threshold)


def _scores(last: Any, table: Any, classes: Labels | None) -> Vector:
    """What a linear model says of rows: numbers, or scores that are cut into two classes."""
    if classes is None:
        return np.asarray(last.predict(table), dtype=np.float64)
    if not hasattr(last, "decision_function") or len(classes) != 2:
        raise TypeError(
            f"{MODEL}, for numbers or for two classes with a decision_function; got "
            f"{describe(last)}."
        )
    return np.asarray(last.decision_function(table), dtype=np.float64)


def model_columns(head: Any, last: Any, table: Any) -> list[str] | None:
    """Names of the columns that a linear model sees."""
    names = column_names(table)
    if names is None and hasattr(last, "feature_names_in_"):
        names = [str(name) for name in last.feature_names_in_]
    if names is None and head is not None and hasattr(head, "get_feature_names_out"):
        try:
            known = head.get_feature_names_out()
        except (AttributeError, ValueError):
            return None
        # A head without a step that transforms anything knows of none.
        names = None if known is None else [str(name) for name in known]
    return names
