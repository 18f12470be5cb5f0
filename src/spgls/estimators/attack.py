"""What other people's linear models say once providers have moved, and scores of that.

A provider closes the share ``alpha/(1 + alpha)``, ``alpha = q/gamma``, of the gap between a model's
prediction and its goal, and ``q`` depends on the model's coefficients alone. So an attacked
prediction needs the model's own prediction and its coefficients, nothing of how it was fitted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, RegressorMixin, is_classifier
from sklearn.metrics import get_scorer, get_scorer_names
from sklearn.utils.metadata_routing import MetadataRequest
from sklearn.utils.validation import check_is_fitted

from spgls.base.frames import column_names, resolve_cost
from spgls.base.types import Costs, Number, Numbers, Table, Vector
from spgls.base.validation import (
    check_number,
    check_strength,
    check_vector,
    check_weight,
    describe,
)
from spgls.game.goals import GoalLike, check_goal, goals_for, goals_of, is_goal, read_goals
from spgls.game.providers import Population, Provider
from spgls.game.response import moved_rows, shifted, strength_at
from spgls.matrix import as_matrix

__all__ = [
    "AttackedScorer",
    "best_response",
    "facing",
    "fitted_strength",
    "linear_parts",
    "make_attacked_scorer",
    "model_columns",
    "predict_attacked",
]

_MODEL = "model must be a fitted linear model, or a Pipeline that ends in one"
#: What a model predicts may differ by so much from ``X @ coef_ + intercept_``, in float32 too.
_LINEAR = 1e-2


def predict_attacked(
    model: Any,
    X: Table,
    z: Numbers | GoalLike | None = None,
    *,
    y: Numbers | None = None,
    gamma: Number | Numbers | Literal["auto"],
    feature_cost: Costs | None = None,
) -> Vector:
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
        ``Floor(250)``, needs ``y`` beside it.
    y : array-like of shape (m,), optional
        True labels, which the goals follow from: by ``z`` where it is a function, else by the
        ``goal`` that the model holds.
    gamma : float, array-like of shape (m,) or "auto"
        Strength of the providers; small is strong, ``inf`` is honest. ``"auto"`` is the strength
        that the model was fitted against, its ``gamma_``, or for other linear models the one at
        which providers close half the gap to their goal.
    feature_cost : array-like of shape (n,) or mapping, optional
        Cost per squared unit of change of each feature of the linear model, ``inf`` for immutable
        ones, or such costs by column name. By default one, or with ``gamma="auto"`` the costs that
        the model was fitted against. In a Pipeline the features are those that the last step sees.

    Returns
    -------
    ndarray of shape (m,)

    See Also
    --------
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
    faced = _face(model, X, feature_cost, _is_auto(gamma))
    goals = goals_for(getattr(faced.last, "goal", None), len(faced.before), z, y)
    return faced.provider(gamma).induced(faced.before, goals)


def best_response(
    X: Table,
    z: Numbers | GoalLike | None = None,
    coef: Any = None,
    *,
    y: Numbers | None = None,
    gamma: Number | Numbers | Literal["auto"],
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
    intercept : float
        Intercept beside coefficients; a model has its own.
    feature_cost : array-like of shape (n,) or mapping, optional
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
        if y is not None or is_goal(z):
            z = goals_for(None, as_matrix(X).shape[0], z, y)
        return moved_rows(X, z, coef, gamma=gamma, intercept=intercept, feature_cost=feature_cost)
    if check_number(intercept, "intercept") != 0.0:
        raise ValueError(
            f"intercept must stay 0 with a model, which has its own; got {describe(intercept)}."
        )
    try:
        faced = _face(coef, X, feature_cost, _is_auto(gamma))
    except (TypeError, ValueError) as error:
        if not str(error).startswith(_MODEL):
            raise
        said = str(error).replace("model must be", "coef must be an array of numbers or", 1)
        raise type(error)(said) from None
    if issparse(faced.table):
        raise TypeError(
            f"X must be dense as the linear model sees it, because the rows returned are; it sees "
            f"{describe(faced.table)}. Use transformers with dense output, such as "
            "OneHotEncoder(sparse_output=False), or predict_attacked, which forms no rows."
        )
    wanted = goals_for(getattr(faced.last, "goal", None), len(faced.before), z, y)
    provider = faced.provider(gamma)
    return shifted(faced.table, provider.step(faced.before, wanted), provider.direction)


def make_attacked_scorer(
    gamma: Number | Population,
    *,
    goal: GoalLike | None = None,
    metric: str | Callable[..., Any] = "r2",
    feature_cost: Costs | None = None,
) -> AttackedScorer:
    """Make a scorer that judges linear models by what they predict on attacked rows.

    With a number or a Population the providers are the same for every model that is scored, which
    is what makes scores comparable. With ``"auto"`` each model meets its own, and scores only say
    how that model fares: a search over strengths would favour the candidate that assumes the
    weakest.

    Parameters
    ----------
    gamma : float, Population or "auto"
        Who the providers are; ``inf`` is everyone honest. In a population the score is that of
        rows drawn from its groups. ``"auto"`` takes the strength from the model that is scored: the
        one it was fitted against, its ``gamma_``, or for other linear models the one at which
        providers close half the gap to their goal. Everyone moves then.
    goal : callable, optional
        Goals as a function of the labels, such as ``Floor(250)``. Without it the scorer asks for
        ``z``, which needs scikit-learn's metadata routing.
    metric : str or scorer
        Name of a scikit-learn regression scorer, or one from ``make_scorer``.
    feature_cost : array-like or mapping, optional
        As in :func:`predict_attacked`: taken from the model that is scored with ``gamma="auto"``
        only.

    Returns
    -------
    AttackedScorer
        For the ``scoring`` of ``cross_validate``, ``GridSearchCV`` and their like.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.model_selection import cross_val_score
    >>> from spgls import Floor, make_attacked_scorer
    >>> X, y = load_diabetes(return_X_y=True)
    >>> attacked = make_attacked_scorer(1.9e6, goal=Floor(250))
    >>> round(float(cross_val_score(Ridge(), X, y, scoring=attacked).mean()), 2)
    0.38
    """
    return AttackedScorer(gamma, goal=goal, metric=metric, feature_cost=feature_cost)


class AttackedScorer:
    """What :func:`make_attacked_scorer` returns: ``scorer(model, X, y, z=None)``.

    Parameters
    ----------
    gamma, goal, metric, feature_cost
        As in :func:`make_attacked_scorer`.

    Examples
    --------
    >>> from spgls import Floor, make_attacked_scorer
    >>> make_attacked_scorer(0.5, goal=Floor(1.0))
    AttackedScorer(gamma=0.5, goal=Floor(level=1.0), metric='r2')
    """

    def __init__(
        self, gamma: Any, *, goal: Any = None, metric: Any = "r2", feature_cost: Any = None
    ) -> None:
        self.gamma = gamma
        self.goal: GoalLike | None = check_goal(goal)
        self.metric = metric
        self.feature_cost = feature_cost
        self._groups = None if _is_auto(gamma) else _read_groups(gamma)
        self._scorer, self._weighted = _read_metric(metric)
        # Without a goal the scorer is of no use without z, so it asks for it unprompted.
        self._requests: dict[str, Any] = {"z": self.goal is None, "sample_weight": None}

    def __call__(
        self, estimator: Any, X: Any, y: Any, *, z: Any = None, sample_weight: Any = None
    ) -> float:
        """Score a fitted model.

        Parameters
        ----------
        estimator : estimator
            A fitted linear model, or a Pipeline that ends in one.
        X : array-like, data frame or sparse matrix of shape (m, k)
            Rows before they move.
        y : array-like of shape (m,)
            True labels.
        z : array-like of shape (m,) or callable, optional
            Goals, or a function of the labels that returns them; by default the scorer's ``goal``.
        sample_weight : array-like of shape (m,), optional
            Weights of the rows.

        Returns
        -------
        float
            Greater is better.
        """
        faced = _face(estimator, X, self.feature_cost, self._groups is None)
        before, m = faced.before, len(faced.before)
        labels = check_vector(y, "y", m, "row of X")
        goals = self._goals(labels, z)
        weight = check_weight(sample_weight, m)
        groups = ((faced.own_strength, 1.0),) if self._groups is None else self._groups
        predicted = [faced.provider(strength).induced(before, goals) for strength, _ in groups]
        if len(predicted) > 1:
            rows = np.ones(m) if weight is None else weight
            weight = np.concatenate([share * rows for _, share in groups])
        metadata = {} if weight is None else {"sample_weight": weight}
        if metadata and not self._weighted:
            raise ValueError(
                f"metric {self.metric!r} takes no weights, so it cannot score weighted rows or "
                "several groups of providers; choose one that does, such as 'r2'."
            )
        tiled = np.tile(labels, len(predicted))
        return float(self._scorer(_Spoken(), np.concatenate(predicted), tiled, **metadata))

    def _goals(self, labels: Vector, z: Any) -> Vector:
        if z is not None and self.goal is not None:
            raise ValueError(f"z was given and so was goal={self.goal!r}; drop one of them.")
        if z is not None:
            return read_goals(z, labels)
        if self.goal is None:
            raise ValueError(
                "z or a goal is needed to score attacked rows. Pass make_attacked_scorer(..., "
                "goal=Floor(250)) or another goal; or sklearn.set_config(enable_metadata_routing="
                "True) and params={'z': z} to cross_validate, z=z to GridSearchCV.fit."
            )
        return goals_of(self.goal, labels)

    def set_score_request(self, **requests: Any) -> AttackedScorer:
        """Say which metadata this scorer wants, when metadata routing is on.

        Parameters
        ----------
        **requests
            ``z`` and ``sample_weight``: True, False, None or the name it travels under.

        Returns
        -------
        AttackedScorer
            Itself.
        """
        for name in requests:
            if name not in self._requests:
                raise TypeError(
                    f"{name} is nothing this scorer can ask for; it has {', '.join(self._requests)}"
                    "."
                )
        self._requests |= requests
        return self

    def get_metadata_routing(self) -> Any:
        """Tell scikit-learn which metadata this scorer wants.

        Returns
        -------
        MetadataRequest
        """
        request = MetadataRequest(owner=type(self).__name__)
        for name, alias in self._requests.items():
            request.score.add_request(param=name, alias=alias)
        return request

    def _accept_sample_weight(self) -> bool:
        """What scikit-learn asks scorers where routing is off."""
        return self._weighted

    def __repr__(self) -> str:
        cost = "" if self.feature_cost is None else f", feature_cost={self.feature_cost!r}"
        return (
            f"AttackedScorer(gamma={self.gamma!r}, goal={self.goal!r}, metric={self.metric!r}"
            f"{cost})"
        )


class _Spoken(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A regressor that repeats the predictions it is given, so that any scorer can judge them."""

    def predict(self, X: Any) -> Any:
        return X


def _read_groups(gamma: Any) -> tuple[tuple[float, float], ...]:
    """Strength and share of each group of providers."""
    if isinstance(gamma, Population):
        pairs = zip(gamma.gammas, gamma.shares, strict=True)
        return tuple((strength, share) for strength, share in pairs if share > 0.0)
    try:
        strength = check_strength(gamma, 1)
    except (TypeError, ValueError):
        strength = np.zeros(1)
    if isinstance(strength, float):
        return ((strength, 1.0),)
    wanted = "gamma must be one positive number, inf for honest providers, 'auto' or a Population"
    number = isinstance(gamma, int | float | np.number) and not isinstance(gamma, bool)
    raise (ValueError if number else TypeError)(f"{wanted}; got {describe(gamma)}.")


def _read_metric(metric: Any) -> tuple[Any, bool]:
    """Return a scorer of predictions, and whether it takes weights."""
    wanted = (
        "metric must be the name of a scikit-learn regression scorer, such as 'r2' or "
        "'neg_mean_absolute_error', or a scorer from make_scorer"
    )
    known = isinstance(metric, str) and metric in get_scorer_names()
    if not known and not isinstance(metric, type(get_scorer("r2"))):
        raise (ValueError if isinstance(metric, str) else TypeError)(
            f"{wanted}; got {describe(metric)}."
        )
    scorer = get_scorer(metric)
    sample = np.array([0.5, 1.5])
    for metadata in ({"sample_weight": np.ones(2)}, {}):
        try:
            scorer(_Spoken(), sample, sample[::-1], **metadata)
        except (AttributeError, TypeError, ValueError):
            continue
        return scorer, bool(metadata)
    raise ValueError(f"{wanted}; got {describe(metric)}, which does not take real predictions.")


def facing(model: Any, X: Any, feature_cost: Any) -> tuple[Vector, Provider]:
    """A model's predictions, and the honest provider who faces it."""
    faced = _face(model, X, feature_cost)
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


def _is_auto(gamma: Any) -> bool:
    return isinstance(gamma, str) and gamma == "auto"


@dataclass(frozen=True, eq=False)
class _Faced:
    """A linear model as its providers see it.

    Attributes
    ----------
    last : estimator
        The model, without what comes before it.
    table : array-like, data frame or sparse matrix of shape (m, n)
        Rows as it sees them.
    before : ndarray of shape (m,)
        Its predictions.
    coef, cost : ndarray of shape (n,)
        Its coefficients, and the costs of its features.
    """

    last: Any
    table: Any
    before: Vector
    coef: Vector
    cost: Vector | None

    @property
    def own_strength(self) -> float:
        """Strength it was fitted against, or at which providers close half their gaps."""
        if _knows_its_providers(self.last):
            return fitted_strength(self.last.gamma_)
        return strength_at(0.5, self.provider(math.inf).reach) or math.inf

    def provider(self, gamma: Any) -> Provider:
        """Who faces it."""
        strength = self.own_strength if _is_auto(gamma) else check_strength(gamma, len(self.before))
        return Provider(self.coef, 0.0, strength, self.cost)


def _knows_its_providers(last: Any) -> bool:
    return hasattr(last, "gamma_") and hasattr(last, "feature_cost_")


def linear_parts(model: Any) -> tuple[Any, Any, Vector]:
    """What transforms rows, or None, the fitted linear model at the end, and its coefficients."""
    while hasattr(model, "best_estimator_"):
        model = model.best_estimator_
    head, last = (model[:-1], model[-1]) if hasattr(model, "steps") else (None, model)
    if isinstance(last, type) or not hasattr(last, "predict") or is_classifier(last):
        raise TypeError(f"{_MODEL}; got {describe(model)}.")
    if hasattr(last, "regressor"):
        raise TypeError(
            f"{_MODEL}; got {describe(model)}, whose labels are transformed. Pass its regressor_ "
            "with X and z as that sees them."
        )
    check_is_fitted(last)
    if not hasattr(last, "coef_"):
        raise TypeError(f"{_MODEL}; got {describe(model)}, which has no coef_.")
    coef = np.asarray(last.coef_, dtype=np.float64)
    if coef.ndim == 2 and coef.shape[0] == 1:
        coef = coef[0]
    if coef.ndim != 1:
        raise ValueError(f"{_MODEL}, with one output; got {describe(model)} with {len(coef)}.")
    return head, last, coef


def _face(model: Any, X: Any, feature_cost: Any, own_cost: bool = False) -> _Faced:
    """Take apart a model; on request, with the costs it was fitted against unless any are given."""
    head, last, coef = linear_parts(model)
    table = X if head is None or len(head) == 0 else head.transform(X)
    matrix = as_matrix(table)
    m, n = matrix.shape
    if n != len(coef):
        raise ValueError(f"X must have {len(coef)} columns, as model was fitted; got {n}.")
    if own_cost and feature_cost is None and _knows_its_providers(last):
        feature_cost = last.feature_cost_
    cost = resolve_cost(feature_cost, n, model_columns(head, last, table))
    said = np.asarray(last.predict(table), dtype=np.float64).reshape(m)
    offset = said - matrix.apply(coef)
    constant = float(offset.mean()) if m > 1 else float(np.sum(getattr(last, "intercept_", 0.0)))
    if np.abs(offset - constant).max() > _LINEAR * max(np.abs(said).max(), np.abs(offset).max()):
        raise TypeError(
            f"{_MODEL}; {describe(last)} does not predict X @ coef_ + intercept_, so providers "
            "would not move along coef_."
        )
    return _Faced(last, table, said, coef, cost)


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
