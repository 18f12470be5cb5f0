"""The two players: what a provider does to its row, and what that does to the learner.

A provider of strength ``gamma`` who would like the prediction ``z`` moves its row ``x`` to minimise
``(w'x^ + b - z)^2 + gamma sum_j c_j (x^_j - x_j)^2``. With ``q = sum_j w_j^2/c_j`` over changeable
features it moves along ``w/c`` and closes the share ``alpha/(1+alpha)``, ``alpha = q/gamma``, of
the gap between the prediction and its goal. By actions it moves along ``Kw``, with ``q = w'Kw``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from spgls.base.devices import check_one_place, is_foreign, place_of
from spgls.base.frames import column_names, in_container_of, index_names
from spgls.base.types import Number, Numbers, Table, Vector
from spgls.base.validation import (
    check_number,
    check_strength,
    check_vector,
    check_weight,
    describe,
)
from spgls.game.costs import Costs, read_cost
from spgls.game.goals import GoalLike, read_goals
from spgls.game.providers import Population, Provider, priced_norm
from spgls.matrix import Matrix, as_matrix, dask_matrix, in_chunks, refuse_matrix_object

__all__ = [
    "Movement",
    "Population",
    "Provider",
    "check_pull",
    "gamma_from_pull",
    "induced_prediction",
    "learner_loss",
    "most_taken",
    "moved_rows",
    "movement",
    "priced_norm",
    "shifted",
    "strength_at",
    "undo_response",
]


@dataclass(frozen=True, eq=False)
class Movement:
    """How providers move their rows, without the moved rows.

    Attributes
    ----------
    step : ndarray of shape (m,)
        Row ``i`` moves by ``step[i] * direction``.
    direction : ndarray of shape (n,)
        Zero for features that cannot be changed.
    cost : ndarray of shape (m,)
        What each provider pays, ``gamma sum_j c_j (x^_j - x_j)^2``.
    before, after : ndarray of shape (m,)
        Predictions on the original and on the moved rows.
    actions : mapping of str to float
        Where costs were given by actions: row ``i`` takes ``step[i]`` times so much of each. Empty
        otherwise.
    """

    step: Vector
    direction: Vector
    cost: Vector
    before: Vector
    after: Vector
    actions: Mapping[str, float] = field(default_factory=dict)

    def taken(self, row: int) -> dict[str, float]:
        """How much of each action the provider of one row takes.

        Parameters
        ----------
        row : int
            Number of the row.
        """
        return {name: float(self.step[row]) * much for name, much in self.actions.items()}

    def __repr__(self) -> str:
        moved = int(np.count_nonzero(self.step))
        features = int(np.count_nonzero(self.direction))
        return (
            f"Movement({moved} of {self.step.size} rows move {features} of "
            f"{self.direction.size} features{most_taken(self.actions, self.step)}; mean change of "
            "prediction "
            f"{float(np.mean(self.after - self.before)):.4g}, mean cost "
            f"{float(np.mean(self.cost)):.4g})"
        )


def most_taken(actions: Mapping[str, float], step: Vector) -> str:
    """Which action is taken most in the mean, in words; nothing where there are none.

    Parameters
    ----------
    actions : mapping
        How much of each is taken per unit of step.
    step : ndarray of shape (m,)
        How far each row moves.
    """
    if not actions:
        return ""
    name = max(actions, key=lambda one: abs(actions[one]))
    return f" by {len(actions)} actions, most by {float(step.mean()) * actions[name]:.3g} of {name}"


def movement(
    X: Table | Matrix,
    z: Numbers,
    coef: Numbers,
    *,
    gamma: Number | Numbers,
    intercept: Number = 0.0,
    feature_cost: Costs | None = None,
) -> Movement:
    """How each provider moves its row against a published model.

    Never forms the moved rows, so it works on sparse data of any size.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (m, n)
        Rows before they move.
    z : array-like of shape (m,)
        Goals: the prediction each provider would like.
    coef : array-like of shape (n,)
        Coefficients of the model.
    gamma : float or array-like of shape (m,)
        Strength of the providers; small is strong, ``inf`` is honest.
    intercept : float
        Intercept of the model; providers cannot change it.
    feature_cost : array-like of shape (n,) or (n, n), mapping or Actions, optional
        Cost per squared unit of change, ``inf`` for immutable features, or such costs by column
        name. One by default. Or a matrix of costs, or actions, as in :func:`solve`.

    Returns
    -------
    Movement

    Examples
    --------
    >>> from spgls import movement
    >>> move = movement([[0.0, 0.0]], [2.0], [1.0, 1.0], gamma=2.0)
    >>> move.step, move.before, move.after
    (array([0.5]), array([0.]), array([1.]))
    """
    matrix, provider, goals = _provider(X, z, coef, gamma, intercept, feature_cost)
    before = provider.predict(matrix)
    step = provider.step(before, goals)
    gamma_ = np.where(np.isinf(provider.gamma), 0.0, provider.gamma)
    return Movement(
        step=step,
        direction=provider.direction,
        cost=np.asarray(gamma_ * step**2 * provider.reach),
        before=before,
        after=provider.induced(before, goals),
        actions=provider.actions,
    )


def moved_rows(
    X: Any, z: Any, coef: Any, *, gamma: Any, intercept: Any = 0.0, feature_cost: Any = None
) -> Any:
    """Rows after each provider has moved its own against coefficients, in the container of ``X``.

    Parameters
    ----------
    X : array-like or data frame of shape (m, n)
        Rows before they move, dense.
    z, coef, gamma, intercept, feature_cost
        As in :func:`movement`.
    """
    move = movement(
        _dense_only(
            X,
            "X",
            "Use movement, which gives the step of each row and the common direction, or pass",
        ),
        z,
        coef,
        gamma=gamma,
        intercept=intercept,
        feature_cost=feature_cost,
    )
    return shifted(X, move.step, move.direction)


def undo_response(
    X_hat: Table,
    z: Numbers,
    coef: Numbers,
    *,
    gamma: Number | Numbers,
    intercept: Number = 0.0,
    feature_cost: Costs | None = None,
) -> Any:
    """Rows as they were before providers reacted to a known model: the inverse of the response.

    Parameters
    ----------
    X_hat : array-like or data frame of shape (m, n)
        Moved rows.
    z, coef, gamma, intercept, feature_cost
        Those the providers reacted to; see :func:`movement`.

    Returns
    -------
    ndarray or data frame of shape (m, n)
        In the container of ``X_hat``.

    Examples
    --------
    >>> from spgls import undo_response
    >>> undo_response([[0.5, 0.5]], [2.0], [1.0, 1.0], gamma=2.0)
    array([[0., 0.]])
    """
    rows = _dense_only(X_hat, "X_hat", "Pass")
    matrix, provider, goals = _provider(rows, z, coef, gamma, intercept, feature_cost, "X_hat")
    # The provider left the share gamma/(gamma + q) of its gap open.
    step = (goals - provider.predict(matrix)) / provider.gamma
    return shifted(X_hat, -step, provider.direction)


def induced_prediction(
    X: Table | Matrix,
    z: Numbers,
    coef: Numbers,
    *,
    gamma: Number | Numbers,
    intercept: Number = 0.0,
    feature_cost: Costs | None = None,
) -> Vector:
    """Predict what the model says once the providers have moved.

    Parameters
    ----------
    X, z, coef, gamma, intercept, feature_cost
        As in :func:`movement`.

    Returns
    -------
    ndarray of shape (m,)
    """
    matrix, provider, goals = _provider(X, z, coef, gamma, intercept, feature_cost)
    return provider.induced(provider.predict(matrix), goals)


def learner_loss(
    X: Table | Matrix,
    y: Numbers,
    z: Numbers | GoalLike,
    coef: Numbers,
    *,
    gamma: Number | Numbers,
    intercept: Number = 0.0,
    feature_cost: Costs | None = None,
    sample_weight: Numbers | None = None,
) -> float:
    """Weighted sum of squares of a model once the providers have moved: what the game minimises.

    Parameters
    ----------
    X, z, coef, gamma, intercept, feature_cost
        As in :func:`movement`; ``z`` may be a function of the labels, such as ``Floor(250)``.
    y : array-like of shape (m,)
        True labels.
    sample_weight : array-like of shape (m,), optional
        Weights of the rows.

    Returns
    -------
    float
    """
    matrix = as_matrix(X)
    labels = check_vector(y, "y", matrix.shape[0], "row of X")
    weight = check_weight(sample_weight, matrix.shape[0])
    wanted = read_goals(z, labels)
    _, provider, goals = _provider(X, wanted, coef, gamma, intercept, feature_cost)
    error = provider.induced(provider.predict(matrix), goals) - labels
    return float(error @ error if weight is None else weight @ error**2)


def gamma_from_pull(pull: Number, coef: Numbers, feature_cost: Costs | None = None) -> float:
    """Strength at which providers close a given share of the gap to their goal.

    Parameters
    ----------
    pull : float
        Share between 0 and 1, both excluded: ``alpha/(1 + alpha)``.
    coef : array-like of shape (n,)
        Coefficients of the model they face; a Series, if costs are given by the names in its index.
    feature_cost : array-like of shape (n,) or (n, n), mapping or Actions, optional
        Cost of each feature; see :func:`movement`.

    Returns
    -------
    float
        ``gamma = q (1 - pull)/pull``.

    Examples
    --------
    >>> from spgls import gamma_from_pull
    >>> gamma_from_pull(0.5, [3.0, 4.0])
    25.0
    """
    share = check_pull(pull)
    weights = check_vector(coef, "coef", None, "feature")
    names = index_names(coef)
    reach = priced_norm(weights, read_cost(feature_cost, len(weights), names, "coef", "entry"))
    if reach == 0.0:
        raise ValueError(
            "coef gives providers nothing to gain: it is zero on every changeable feature, "
            "so no gamma leads to that pull."
        )
    return strength_at(share, reach)


def check_pull(pull: Any) -> float:
    """Return a share of the gap that providers can close."""
    return check_number(
        pull,
        "pull",
        above=0.0,
        below=1.0,
        advice="It is the share of the gap that providers close.",
    )


def strength_at(pull: float, reach: float) -> float:
    """``gamma = q (1 - pull)/pull``, for coefficients of a squared priced norm ``q``."""
    return reach * (1.0 - pull) / pull


def _provider(
    X: Any,
    z: Any,
    coef: Any,
    gamma: Any,
    intercept: Any,
    feature_cost: Any,
    table: str = "X",
) -> tuple[Matrix, Provider, Vector]:
    """The rows of a table, the provider who faces a model, and the goals."""
    check_one_place(X, z=z, coef=coef, gamma=gamma)
    matrix = as_matrix(X, table)
    m, n = matrix.shape
    row, column = f"row of {table}", f"column of {table}"
    goals = check_vector(z, "z", m, row)
    provider = Provider(
        coef=check_vector(coef, "coef", n, column),
        intercept=check_number(intercept, "intercept"),
        gamma=check_strength(gamma, m, row),
        cost=read_cost(feature_cost, n, column_names(X), table),
    )
    return matrix, provider, goals


def _dense_only(X: Any, name: str, alternative: str) -> Any:
    if not in_chunks(X):
        refuse_matrix_object(X, name)
    if sp.issparse(X):
        raise TypeError(
            f"{name} must be dense, because the rows returned are; got {describe(X)}. "
            f"{alternative} {name}.toarray()."
        )
    return X


def shifted(X: Any, step: Vector, direction: Vector) -> Any:
    """``X + step direction'`` in the container of ``X``, and where ``X`` is."""
    if is_foreign(X):
        place = place_of(X)
        with place.memory():
            moved = place.put(step)[:, None] * place.put(direction)[None, :]
            return X + place.xp.astype(moved, X.dtype)
    values: Any = dask_matrix(X).lazy_rows(dense=True) if in_chunks(X) else np.asarray(X)
    dtype = values.dtype if values.dtype.kind == "f" else np.dtype(np.float64)
    moved = (values + step[:, None] * direction).astype(dtype, copy=False)
    return in_container_of(X, moved)
