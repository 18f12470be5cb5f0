"""Scores of linear models on rows that providers have moved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import get_scorer, get_scorer_names
from sklearn.utils.metadata_routing import MetadataRequest

from spgls.base.types import Number, Vector
from spgls.base.validation import (
    check_number,
    check_strength,
    check_vector,
    check_weight,
    describe,
)
from spgls.estimators.faced import Faced, check_budget, face, is_auto
from spgls.game.classes import Labels, class_goals, signs
from spgls.game.costs import Costs
from spgls.game.goals import GoalLike, check_goal, goals_of, read_goals
from spgls.game.providers import Population

__all__ = ["AttackedScorer", "make_attacked_scorer"]

_GAMMA = "gamma must be one positive number, inf for honest providers, 'auto' or a Population"


class _Group(NamedTuple):
    """Some of the people: their strength, or what a decision is worth to them, and their share."""

    gamma: Any
    budget: float | None
    share: float


def make_attacked_scorer(
    gamma: Number | Population | None = None,
    *,
    budget: Number | None = None,
    share: Number | None = None,
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
    budget : float, optional
        For classifiers, in place of a strength: what the decision is worth to providers, who move
        to the boundary if that costs less.
    share : float, optional
        With a budget, the share of providers who react; one by default. A Population holds its own
        shares.
    goal : callable, optional
        Goals as a function of the labels, such as ``Floor(250)``. Without it the scorer asks for
        ``z``, which needs scikit-learn's metadata routing. For classifiers ``Wants("approved")`` or
        ``Opposite()``; by default everyone wants the second class.
    metric : str or scorer
        Name of a scikit-learn scorer, or one from ``make_scorer``: of numbers, or for classifiers
        of classes or scores, such as ``"accuracy"``, ``"balanced_accuracy"``, ``"roc_auc"``,
        ``"precision"`` and ``"recall"``. By name the second class is the positive one.
    feature_cost : array-like, mapping or Actions, optional
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
    told: dict[str, Any] = {"goal": goal, "metric": metric, "feature_cost": feature_cost}
    return AttackedScorer(gamma, budget=budget, share=share, **told)


class AttackedScorer:
    """What :func:`make_attacked_scorer` returns: ``scorer(model, X, y, z=None)``.

    Parameters
    ----------
    gamma, budget, share, goal, metric, feature_cost
        As in :func:`make_attacked_scorer`.

    Examples
    --------
    >>> from spgls import Floor, make_attacked_scorer
    >>> make_attacked_scorer(0.5, goal=Floor(1.0))
    AttackedScorer(gamma=0.5, goal=Floor(level=1.0), metric='r2')
    """

    def __init__(
        self,
        gamma: Any = None,
        *,
        budget: Any = None,
        share: Any = None,
        goal: Any = None,
        metric: Any = "r2",
        feature_cost: Any = None,
    ) -> None:
        self.gamma = gamma
        self.budget = budget
        self.share = share
        self.goal: GoalLike | None = check_goal(goal)
        self.metric = metric
        self.feature_cost = feature_cost
        self._groups = _read_world(gamma, budget, share)
        self._scorer, self._weighted = _read_metric(metric)
        # Without a goal the scorer is of no use without z, so it asks for it unprompted.
        self._requests: dict[str, Any] = {"z": self.goal is None, "sample_weight": None}

    @property
    def judges(self) -> tuple[str, ...]:
        """What the metric judges: "numbers", "classes" or both."""
        return tuple(self._weighted)

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
        faced = face(estimator, X, self.feature_cost, is_auto(self.gamma))
        # Rows in chunks are predicted here, once for all groups.
        faced = replace(faced, before=np.asarray(faced.before))
        if z is not None and self.goal is not None:
            raise ValueError(f"z was given and so was goal={self.goal!r}; drop one of them.")
        m = len(faced.before)
        if faced.classes is None:
            labels: Any = check_vector(y, "y", m, "row of X")
            goals = self._goals(labels, z)
        else:
            labels = np.asarray(y)
            goals = class_goals(self.goal, m, z, labels, faced.classes)
        return self.on_rows(faced, labels, goals, check_weight(sample_weight, m))

    def on_rows(self, faced: Faced, labels: Any, goals: Vector, weight: Vector | None) -> float:
        """Score a model that is taken apart already.

        Parameters
        ----------
        faced : Faced
            The model, and what it says of the rows.
        labels, goals : ndarray of shape (m,)
            True labels, and goals as numbers.
        weight : ndarray of shape (m,), optional
            Weights of the rows.
        """
        kind = "numbers" if faced.classes is None else "classes"
        if kind not in self._weighted:
            instead = "'r2'" if kind == "numbers" else "'accuracy'"
            raise ValueError(
                f"metric must judge {kind}, which {describe(faced.last)} predicts; got "
                f"{self.metric!r}. Pass one such as {instead}."
            )
        said = [
            faced.respondent(group.gamma, group.budget).induced(faced.before, goals)
            for group in self._groups
        ]
        if len(said) > 1:
            rows = np.ones(len(goals)) if weight is None else weight
            weight = np.concatenate([group.share * rows for group in self._groups])
        metadata = {} if weight is None else {"sample_weight": weight}
        if metadata and not self._weighted[kind]:
            raise ValueError(
                f"metric {self.metric!r} takes no weights, so it cannot score weighted rows or "
                "several groups of providers; choose one that does, such as 'r2'."
            )
        speaker: Any = _Spoken()
        if faced.classes is not None:
            classes = faced.classes
            if isinstance(self.metric, str):
                # By name, the positive class is 1.
                labels = (signs(labels, classes, "y", len(goals)) > 0.0).astype(np.intp)
                classes = np.array([0, 1])
            speaker = _Decided(classes, faced.threshold)
        told = np.concatenate(said), np.tile(labels, len(said))
        return float(self._scorer(speaker, *told, **metadata))

    def _goals(self, labels: Vector, z: Any) -> Vector:
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
        return any(self._weighted.values())

    def __repr__(self) -> str:
        told = {"gamma": self.gamma} if self.budget is None else {"budget": self.budget}
        told |= {} if self.share is None else {"share": self.share}
        told |= {"goal": self.goal, "metric": self.metric}
        told |= {} if self.feature_cost is None else {"feature_cost": self.feature_cost}
        return f"AttackedScorer({', '.join(f'{name}={value!r}' for name, value in told.items())})"


class _Spoken(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A regressor that repeats the predictions it is given, so that any scorer can judge them."""

    def predict(self, X: Any) -> Any:
        return X


class _Decided(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that repeats the scores it is given, and cuts them."""

    def __init__(self, classes_: Labels, threshold: float) -> None:
        self.classes_ = classes_
        self.threshold = threshold

    def decision_function(self, X: Any) -> Any:
        return X - self.threshold

    def predict(self, X: Any) -> Any:
        return self.classes_[(self.threshold < X).astype(np.intp)]


def _read_world(gamma: Any, budget: Any, share: Any) -> tuple[_Group, ...]:
    """The groups of people whom models meet."""
    if budget is not None:
        if gamma is not None:
            raise ValueError("budget was given and so was gamma; drop one of them.")
        if np.ndim(budget) != 0:
            raise TypeError(f"budget must be one number for all; got {describe(budget)}.")
        worth = check_budget(budget, 1)
        part = 1.0
        if share is not None:
            part = check_number(share, "share", at_least=0.0, at_most=1.0)
        groups = (_Group(None, 0.0, 1.0 - part), _Group(None, float(worth), part))
        return tuple(group for group in groups if group.share > 0.0)
    if share is not None:
        raise ValueError(
            f"share must stay None without a budget; got {describe(share)}. With strengths, "
            "Population.mixed(gamma, honest=0.5) says who reacts."
        )
    if is_auto(gamma):
        return (_Group("auto", None, 1.0),)
    if isinstance(gamma, Population):
        pairs = zip(gamma.gammas, gamma.shares, strict=True)
        return tuple(_Group(strength, None, part) for strength, part in pairs if part > 0.0)
    try:
        strength = check_strength(gamma, 1)
    except (TypeError, ValueError):
        strength = np.zeros(1)
    if isinstance(strength, float):
        return (_Group(strength, None, 1.0),)
    number = isinstance(gamma, int | float | np.number) and not isinstance(gamma, bool)
    raise (ValueError if number else TypeError)(f"{_GAMMA}; got {describe(gamma)}.")


def _read_metric(metric: Any) -> tuple[Any, dict[str, bool]]:
    """Return a scorer, and for the kinds of predictions it judges whether it takes weights."""
    wanted = (
        "metric must be the name of a scikit-learn scorer, such as 'r2' or, for classes, "
        "'accuracy', or a scorer from make_scorer"
    )
    known = isinstance(metric, str) and metric in get_scorer_names()
    if not known and not isinstance(metric, type(get_scorer("r2"))):
        raise (ValueError if isinstance(metric, str) else TypeError)(
            f"{wanted}; got {describe(metric)}."
        )
    scorer = get_scorer(metric)
    numbers, scores = np.array([0.5, 1.5]), np.array([-1.0, 1.0])
    positive = getattr(scorer, "_kwargs", {}).get("pos_label", 1)
    classes = np.array([0, positive] if positive != 0 else [0, 1])
    trials: dict[str, tuple[Any, Vector, Labels]] = {
        "numbers": (_Spoken(), numbers, numbers[::-1]),
        "classes": (_Decided(classes, 0.0), scores, classes),
    }
    takes: dict[str, bool] = {}
    for kind, trial in trials.items():
        for metadata in ({"sample_weight": np.ones(2)}, {}):
            try:
                scorer(*trial, **metadata)
            except (AttributeError, TypeError, ValueError):
                continue
            takes[kind] = bool(metadata)
            break
        if takes and isinstance(metric, str):
            # A measure of numbers would take the codes of classes for some.
            return scorer, takes
    if not takes:
        raise ValueError(
            f"{wanted}; got {describe(metric)}, which takes neither numbers nor scores of two "
            "classes."
        )
    return scorer, takes
