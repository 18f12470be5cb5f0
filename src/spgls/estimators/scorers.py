"""Scores of linear models on rows that providers have moved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import get_scorer, get_scorer_names
from sklearn.utils.metadata_routing import MetadataRequest

from spgls.base.types import Costs, Number, Vector
from spgls.base.validation import check_strength, check_vector, check_weight, describe
from spgls.estimators.faced import face, is_auto
from spgls.game.goals import GoalLike, check_goal, goals_of, read_goals
from spgls.game.providers import Population

__all__ = ["AttackedScorer", "make_attacked_scorer"]


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
        self._groups = None if is_auto(gamma) else _read_groups(gamma)
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
        faced = face(estimator, X, self.feature_cost, self._groups is None)
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
