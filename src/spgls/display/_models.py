"""Other people's models and our own: what they predict, for whom, and fitted for others."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, check_is_fitted

from spgls.base.frames import column_names
from spgls.base.types import Vector
from spgls.base.validation import check_number, check_strength, check_vector, describe
from spgls.display._worlds import Judged
from spgls.estimators.conventions import read_random_state
from spgls.estimators.cv import StackelbergRegressorCV, chosen_model
from spgls.estimators.faced import facing
from spgls.estimators.regressor import StackelbergRegressor
from spgls.game import goals
from spgls.game.costs import read_cost
from spgls.game.providers import Population, Provider, priced_norm
from spgls.matrix import as_matrix
from spgls.study.path import solve_path

__all__ = [
    "face",
    "game_of",
    "own_strength",
    "read_goals",
    "read_labels",
    "read_names",
    "refit",
    "split",
]


def split(estimator: Any) -> tuple[Any, Any]:
    """What transforms rows, or None, and the model at the end; a search gives its best."""
    while hasattr(estimator, "best_estimator_"):
        estimator = estimator.best_estimator_
    if not hasattr(estimator, "steps"):
        return None, estimator
    head = estimator[:-1]
    return (head if len(head) else None), estimator[-1]


def game_of(estimator: Any) -> tuple[Any, StackelbergRegressor]:
    """The same for an estimator that can be fitted for other providers.

    One that chose its parameters by cross-validation gives the model that it chose.
    """
    head, last = split(estimator)
    if isinstance(last, StackelbergRegressorCV):
        check_is_fitted(last)
        last = chosen_model(last)
    if not isinstance(last, StackelbergRegressor):
        raise TypeError(
            "estimator must be a StackelbergRegressor or a Pipeline that ends in one, because it "
            f"is fitted for other providers; got {describe(last)}. robustness compares models as "
            "they are."
        )
    return head, last


def read_labels(X: Any, y: Any) -> Vector:
    """Labels, one per row."""
    return check_vector(y, "y", _num_samples(X), "row of X")


def read_goals(last: Any, labels: Vector, z: Any) -> Vector:
    """Goals as they were given, or those of a model's goal."""
    goal = goals.check_goal(getattr(last, "goal", None))
    if z is not None and goal is not None:
        raise ValueError(f"z was given and so was the model's goal={goal!r}; drop one of them.")
    if z is not None:
        return goals.read_goals(z, labels)
    if goal is None:
        raise ValueError(
            f"z is needed, the prediction each provider would like: {type(last).__name__} has no "
            "goal that would tell."
        )
    return goals.goals_of(goal, labels)


def own_strength(estimator: Any, X: Any, y: Vector, z: Vector) -> float:
    """Strength of the strategic providers that an estimator is for, fitted or not."""
    head, last = game_of(estimator)
    gamma: object = last.gamma
    if isinstance(gamma, Real):
        return check_number(gamma, "gamma", above=0.0)
    if not hasattr(last, "gamma_"):
        seen = X if head is None else clone(head).fit_transform(X, y)
        last = clone(last).fit(seen, y, **({"z": z} if last.goal is None else {}))
    return _only_strength(last)


def _only_strength(last: Any) -> float:
    """The finite strength of a fitted model, if there is one and no more."""
    strengths = np.unique(np.atleast_1d(np.asarray(getattr(last, "gamma_", []), dtype=float)))
    finite = strengths[np.isfinite(strengths)]
    if len(finite) == 1:
        return float(finite[0])
    name = type(last).__name__
    if len(finite):
        told = ", ".join(f"{strength:.6g}" for strength in finite)
        reason = f"{name} was fitted against several strengths: {told}"
    elif len(strengths):
        reason = f"{name} was fitted against honest providers only"
    else:
        reason = f"{name} does not say how strong providers are"
    raise ValueError(
        f"gamma is needed: {reason}. Pass one, for example gamma_from_pull(0.5, coef)."
    )


def face(estimator: Any, X: Any, gamma: Any, feature_cost: Any) -> tuple[Vector, Provider]:
    """Any linear model's predictions, and the provider who faces it.

    Strength and costs are by default those that the model was fitted for.
    """
    _, last = split(estimator)
    if feature_cost is None:
        feature_cost = getattr(last, "feature_cost_", None)
    before, honest = facing(estimator, X, feature_cost)
    strength = _only_strength(last) if gamma is None else check_strength(gamma, len(before))
    return before, Provider(honest.coef, 0.0, strength, honest.cost)


def refit(
    estimator: Any, X: Any, y: Vector, z: Vector, populations: Sequence[Population], cv: Any
) -> Judged:
    """Fit an estimator for each of several populations.

    Judged on the rows it was fitted to or, with ``cv``, on the rows of each fold that were held
    out from it.
    """
    head, last = game_of(estimator)
    if issparse(X):
        X = X.tocsr()
    everyone = np.arange(len(y))
    folds = [(everyone, everyone)] if cv is None else list(check_cv(cv).split(X, y))
    before, reach = [], []
    for train, test in folds:
        seen, held = _safe_indexing(X, train), _safe_indexing(X, test)
        if head is not None:
            fitted_head = clone(head).fit(seen, y[train])
            seen, held = fitted_head.transform(seen), fitted_head.transform(held)
        matrix = as_matrix(held)
        cost = read_cost(last.feature_cost, matrix.shape[1], column_names(seen))
        path = solve_path(
            seen,
            y[train],
            z[train],
            populations,
            fit_intercept=last.fit_intercept,
            feature_cost=cost,
            ridge=last.ridge,
            solver=last.solver,
            tol=last.tol,
            max_iter=last.max_iter,
            rng=read_random_state(last.random_state),
        )
        before.append(np.array([matrix.apply(one.coef) + one.intercept for one in path]))
        norms = np.array([[priced_norm(one.coef, cost)] for one in path])
        reach.append(np.repeat(norms, len(test), axis=1))
    rows = np.concatenate([test for _, test in folds])
    return Judged(np.hstack(before), np.hstack(reach), y[rows], z[rows])


def read_names(given: Any, columns: int, known: Any) -> list[str]:
    """Names of features: those given, else those known, else numbers."""
    if given is None:
        return list(known) if known is not None else [f"x{j}" for j in range(columns)]
    if isinstance(given, str):
        raise TypeError(f"feature_names must be a list of names; got {describe(given)}.")
    names = [str(name) for name in given]
    if len(names) != columns:
        raise ValueError(
            f"feature_names must have one entry per column of X, {columns}; got {len(names)}."
        )
    return names
