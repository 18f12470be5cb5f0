"""What other people's linear models say once providers have moved, and the moved rows.

A provider closes the share ``alpha/(1 + alpha)``, ``alpha = q/gamma``, of the gap between a model's
prediction and its goal, and ``q`` depends on the model's coefficients alone. So an attacked
prediction needs the model's own prediction and its coefficients, nothing of how it was fitted. Of a
classifier of two classes the same holds for its scores.
"""

from __future__ import annotations

from typing import Any, Literal

from scipy.sparse import issparse

from spgls.base.types import Classes, Number, Numbers, Table, Vector
from spgls.base.validation import check_number, describe
from spgls.estimators.faced import MODEL, face, is_auto
from spgls.game.costs import Costs
from spgls.game.goals import GoalLike, goals_for, is_goal
from spgls.game.response import moved_rows, shifted
from spgls.matrix import as_matrix

__all__ = ["best_response", "decision_attacked", "predict_attacked"]


def predict_attacked(
    model: Any,
    X: Table,
    z: Classes | GoalLike | None = None,
    *,
    y: Classes | None = None,
    gamma: Number | Numbers | Literal["auto"] | None = None,
    budget: Number | Numbers | None = None,
    feature_cost: Costs | None = None,
) -> Any:
    """Predict what a linear model says once providers have moved their rows against it.

    Parameters
    ----------
    model : estimator
        A fitted linear model with ``coef_`` and ``intercept_``, a Pipeline that ends in one, or a
        search whose best estimator is one.
    X : array-like, data frame or sparse matrix of shape (m, k)
        Rows before they move, as the model takes them.
    z : array-like of shape (m,) or callable, optional
        Goals: the prediction each provider would like. A function of the labels, such as
        ``Floor(250)``, needs ``y`` beside it. For a classifier, the class each would like, or
        ``Wants(label)`` or ``Opposite()``; by default the second class.
    y : array-like of shape (m,), optional
        True labels, which the goals follow from: by ``z`` where it is a function, else by the
        ``goal`` that the model holds.
    gamma : float, array-like of shape (m,) or "auto"
        Strength of the providers; small is strong, ``inf`` is honest. ``"auto"`` is the strength
        that the model was fitted against, its ``gamma_``, or for other linear models the one at
        which providers close half the gap to their goal. The goals of classes are the scores -1
        and 1.
    budget : float or array-like of shape (m,), optional
        For classifiers, in place of a strength: what the decision is worth. Providers move to the
        boundary, and only if that costs less. Zero is honest.
    feature_cost : array-like of shape (n,) or (n, n), mapping or Actions, optional
        Cost per squared unit of change of each feature of the linear model, ``inf`` for immutable
        ones, or such costs by column name. By default one, or with ``gamma="auto"`` the costs that
        the model was fitted against. In a Pipeline the features are those that the last step sees.

    Returns
    -------
    ndarray of shape (m,)
        Numbers, or of a classifier classes.

    See Also
    --------
    decision_attacked : scores of a classifier in place of classes.
    best_response : the moved rows themselves.
    make_attacked_scorer : the same as a scorer for cross-validation.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from spgls import predict_attacked
    >>> X, y = np.array([[0.0], [1.0], [2.0]]), np.array([0.0, 2.0, 4.0])
    >>> model = Ridge(alpha=1e-12).fit(X, y)
    >>> predict_attacked(model, X, z=[4.0, 4.0, 4.0], gamma=4.0).round(6)
    array([2., 3., 4.])
    """
    faced = face(model, X, feature_cost, is_auto(gamma))
    who = faced.respondent(gamma, budget)
    return faced.spoken(who.induced(faced.before, faced.goals(z, y)))


def decision_attacked(
    model: Any,
    X: Table,
    z: Classes | GoalLike | None = None,
    *,
    y: Classes | None = None,
    gamma: Number | Numbers | Literal["auto"] | None = None,
    budget: Number | Numbers | None = None,
    feature_cost: Costs | None = None,
) -> Vector:
    """Scores of a linear classifier once providers have moved their rows against it.

    Parameters
    ----------
    model : classifier
        A fitted linear classifier of two classes with ``coef_`` and ``decision_function``, a
        Pipeline that ends in one, or a search whose best estimator is one.
    X, z, y, gamma, budget, feature_cost
        As in :func:`predict_attacked`.

    Returns
    -------
    ndarray of shape (m,)
        Positive for the second class.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from spgls import Wants, decision_attacked
    >>> X, y = [[0.0], [1.0], [4.0], [5.0]], ["no", "no", "yes", "yes"]
    >>> model = LogisticRegression(C=1e6, tol=1e-8).fit(X, y)
    >>> (decision_attacked(model, X, Wants("yes"), budget=4.0) > 0)  # up to two units to the cut
    array([False,  True,  True,  True])
    """
    faced = face(model, X, feature_cost, is_auto(gamma))
    if faced.classes is None:
        raise TypeError(f"model must be a linear classifier; got {describe(faced.last)}.")
    who = faced.respondent(gamma, budget)
    return who.induced(faced.before, faced.goals(z, y)) - faced.threshold


def best_response(
    X: Table,
    z: Classes | GoalLike | None = None,
    coef: Any = None,
    *,
    y: Classes | None = None,
    gamma: Number | Numbers | Literal["auto"] | None = None,
    budget: Number | Numbers | None = None,
    intercept: float = 0.0,
    feature_cost: Costs | None = None,
) -> Any:
    """Rows after each provider has moved its own in its best interest.

    Parameters
    ----------
    X : array-like or data frame of shape (m, k)
        Rows before they move. Moved rows are dense, so sparse data is refused: use
        :func:`movement`.
    z, y
        Goals, or a function of the labels and the labels, as in :func:`predict_attacked`.
    coef : array-like of shape (n,) or estimator
        What the providers face: coefficients, or a fitted linear model, a Pipeline that ends in
        one, or a search whose best estimator is one.
    gamma : float, array-like of shape (m,) or "auto"
        Strength of the providers; small is strong, ``inf`` is honest. ``"auto"``, for models only,
        as in :func:`predict_attacked`.
    budget : float or array-like of shape (m,), optional
        In place of a strength, against a classifier, as in :func:`predict_attacked`.
    intercept : float
        Intercept beside coefficients; a model has its own.
    feature_cost : array-like of shape (n,) or (n, n), mapping or Actions, optional
        As in :func:`predict_attacked`.

    Returns
    -------
    ndarray or data frame of shape (m, n)
        In the container of ``X``. Behind the transformers of a Pipeline rows move in the space of
        its last step: these are the transformed rows, moved, for ``pipeline[-1].predict``.

    See Also
    --------
    movement : steps and direction without the moved rows, for sparse data too.
    undo_response : the inverse.

    Examples
    --------
    >>> from spgls import best_response
    >>> best_response([[0.0, 0.0]], [2.0], [1.0, 1.0], gamma=2.0)
    array([[0.5, 0.5]])

    Behind a scaler people move in its units:

    >>> from sklearn.linear_model import LinearRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> model = make_pipeline(StandardScaler(), LinearRegression())
    >>> model = model.fit([[0.0], [10.0]], [0.0, 2.0])
    >>> best_response([[0.0]], [2.0], model, gamma=1.0).round(6)
    array([[0.]])
    """
    if not hasattr(coef, "predict"):
        if budget is not None:
            raise ValueError("budget needs a classifier in the place of coef.")
        if y is not None or is_goal(z):
            z = goals_for(None, as_matrix(X).shape[0], z, y)
        return moved_rows(X, z, coef, gamma=gamma, intercept=intercept, feature_cost=feature_cost)
    if check_number(intercept, "intercept") != 0.0:
        raise ValueError(
            f"intercept must stay 0 with a model, which has its own; got {describe(intercept)}."
        )
    try:
        faced = face(coef, X, feature_cost, is_auto(gamma))
    except (TypeError, ValueError) as error:
        if not str(error).startswith(MODEL):
            raise
        said = str(error).replace("model must be", "coef must be an array of numbers or", 1)
        raise type(error)(said) from None
    if issparse(faced.table):
        raise TypeError(
            f"X must be dense as the linear model sees it, because the rows returned are; it sees "
            f"{describe(faced.table)}. Use transformers with dense output, such as "
            "OneHotEncoder(sparse_output=False), or predict_attacked, which forms no rows."
        )
    who = faced.respondent(gamma, budget)
    return shifted(faced.table, who.step(faced.before, faced.goals(z, y)), who.direction)
