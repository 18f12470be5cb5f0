"""Models that everybody has, to compare ours with."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.preprocessing import StandardScaler

from spgls.base.frames import in_container_of
from spgls.base.types import Array, Vector
from spgls.game.moves import Cost
from spgls.game.providers import Population
from spgls.solvers.solve import solve

__all__ = ["LEAST_SQUARES", "LOGISTIC", "RIDGE", "fit_baselines", "fit_logistic"]

LEAST_SQUARES, RIDGE, LOGISTIC = "least squares", "ridge", "logistic regression"
#: Cells of a table beyond which models that copy it are left out.
_LARGE = 2e7
#: Penalties to choose from, per row.
_PENALTIES = np.geomspace(1e-6, 1e2, 33)


def fit_baselines(X: Any, y: Vector, feature_cost: Cost) -> dict[str, Any]:
    """Least squares, and ridge regression on standardised features tuned by cross-validation.

    Parameters
    ----------
    X : data frame or ndarray of shape (m, n)
        Rows.
    y : ndarray of shape (m,)
        Labels.
    feature_cost : ndarray of shape (n,) or Moves, optional
        Costs of features, or what else people can do. Where features depend on each other, least
        squares takes the coefficients that providers can exploit least.

    Returns
    -------
    dict
        Coefficients and intercept by name, as :func:`robustness` takes them. Ridge is left out on
        tables of more than twenty million cells.
    """
    honest = Population((math.inf,), (1.0,))
    best = solve(X, y, y, honest, fit_intercept=True, feature_cost=feature_cost, null_space="avoid")
    models: dict[str, Any] = {LEAST_SQUARES: (best.coef, float(best.intercept))}
    if np.size(X) <= _LARGE:
        scaler = StandardScaler().fit(np.asarray(X))
        # Its default squares the columns and then works through all rows for each penalty.
        ridge = RidgeCV(_PENALTIES * len(y), gcv_mode="svd")
        ridge.fit(scaler.transform(np.asarray(X)), y)
        models[RIDGE] = _unscaled(scaler, ridge.coef_, float(ridge.intercept_))
    return models


def fit_logistic(X: Any, y: Any) -> dict[str, Any]:
    """Logistic regression on standardised features, in the units of the rows.

    Parameters
    ----------
    X : data frame or ndarray of shape (m, n)
        Rows.
    y : array-like of shape (m,)
        Labels of two classes.

    Returns
    -------
    dict
        The model by name; none on tables of more than twenty million cells.
    """
    if np.size(X) > _LARGE:
        return {}
    scaler = StandardScaler().fit(np.asarray(X))
    scaled = in_container_of(X, scaler.transform(np.asarray(X)))
    model = LogisticRegression(max_iter=1000).fit(scaled, y)
    coef, intercept = _unscaled(scaler, model.coef_[0], float(model.intercept_[0]))
    model.coef_, model.intercept_ = coef[np.newaxis], np.array([intercept])
    return {LOGISTIC: model}


def _unscaled(scaler: Any, coef: Array, intercept: float) -> tuple[Vector, float]:
    """Coefficients for rows as they are, of a model of scaled ones."""
    own = np.asarray(coef / scaler.scale_)
    return own, intercept - float(scaler.mean_ @ own)
