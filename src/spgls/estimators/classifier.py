"""The game as a scikit-learn classifier of two classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight

from spgls.base.types import Classes, Number, Numbers, Table, Vector
from spgls.base.validation import check_number, check_weight, describe
from spgls.estimators.conventions import (
    all_or_nothing,
    doubt_of_idle_goals,
    doubt_of_idle_sums,
    in_double,
    read_labelled_rows,
    warn_of,
    warn_of_status,
    with_callbacks,
)
from spgls.estimators.faced import check_budget
from spgls.estimators.linear_game import HONEST, LinearGame, Predictions, RandomState, Targets
from spgls.game.between import Between
from spgls.game.boundary import BoundaryProvider
from spgls.game.classes import Labels, check_class_goal, class_goals, named_classes, signs
from spgls.game.costs import Costs
from spgls.game.cut import best_cut
from spgls.game.goals import GoalLike, refuse_two_goals
from spgls.game.providers import Population, PopulationRange, Provider
from spgls.matrix import as_matrix, is_lazy
from spgls.reduction.data import GameData, NullSpace
from spgls.solvers import SolverLike
from spgls.solvers.statistics import GameStatistics

__all__ = ["ClassWeight", "StackelbergClassifier", "Threshold", "attacked_cut", "read_threshold"]

_ADVICE = "Check which class they would like, and whether y and z are of the same rows."
#: Labels -1 and 1 whose standard deviation is below this are of one class, up to rounding.
_ONE_CLASS = 1e-6
ClassWeight = Mapping[Any, float] | Literal["balanced"]
Threshold = Number | Literal["attacked"]


class StackelbergClassifier(ClassifierMixin, LinearGame):  # type: ignore[misc]
    """Decide between two classes where people change their data in response.

    What ``RidgeClassifier`` is to ``Ridge``: the game of :class:`StackelbergRegressor` on the
    labels -1 and 1, solved globally and certified, and a decision by the sign of the score. It
    minimises squared errors of scores, not the number of wrong decisions.

    Parameters
    ----------
    gamma : float, Between, "auto", Population or PopulationRange
        Strength of the strategic providers; small is strong. As in :class:`StackelbergRegressor`.
    pull : float or Between
        With ``gamma="auto"``, the share of the gap to their goal that strategic providers would
        close against least squares, between 0 and 1.
    honest_share : float or Between, optional
        Share of the providers who do not react; one half by default.
    goal : callable, optional
        What providers want: ``Wants("approved")``, :class:`Opposite`, or a function of the labels
        that returns the class each would like. By default everyone wants the second of
        ``classes_``, unless ``fit`` is given ``z``.
    feature_cost : array-like of shape (n,) or (n, n), mapping or Actions, optional
        Cost per squared unit of change, ``inf`` for features that cannot be changed; or such costs
        by column name, as in :class:`StackelbergRegressor`.
    fit_intercept : bool
        Whether to fit an intercept, which nobody can manipulate.
    ridge : float
        Weight of the squared priced norm of the coefficients in the learner's objective.
    null_space : {"avoid", "use"}
        Whether coefficients may lie in directions in which the rows never vary.
    class_weight : dict, "balanced" or None
        Weights of the classes, as in scikit-learn; they multiply ``sample_weight``.
    threshold : float or "attacked"
        Scores above it are in the second class. ``"attacked"`` takes the one that decides the most
        weight of the training rows right once the strategic providers have moved; it needs numbers
        in the place of ranges.
    decay : float
        What the weight of earlier rows is multiplied with at every :meth:`partial_fit`, above 0 and
        at most 1.
    solver, tol, max_iter, random_state
        As in :class:`StackelbergRegressor`.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The classes; in the game they are -1 and 1.
    threshold_ : float
        Where scores are cut.
    coef_ : ndarray of shape (n,)
        Coefficients.
    intercept_ : float
        Intercept; the score of a row is ``x @ coef_ + intercept_``.
    alpha_, gamma_, gamma_rule_, feature_cost_, objective_, status_, certificate_, stats_
        As in :class:`StackelbergRegressor`, and so are ``binding_``, ``regret_``, ``solver_``,
        ``n_iter_``, ``statistics_``, ``n_features_in_`` and ``feature_names_in_``.

    See Also
    --------
    StackelbergClassifierCV : the same with its assumptions chosen by cross-validation.
    make_attacked_scorer : attacked accuracy, AUC and others, for any linear classifier.

    Notes
    -----
    Where everyone reacts alike and wants the same class, all scores move by one increasing
    function: a logistic regression with a shifted threshold is then as good. The game has something
    to gain where honest and strategic people mix, or where they want different things.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from spgls import StackelbergClassifier, Wants
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = scale(X)
    >>> model = StackelbergClassifier(goal=Wants(1)).fit(X, y)
    >>> model.status_
    <Status.OPTIMAL: 'optimal'>
    >>> round(model.score(X, y), 2), round(float((model.predict_attacked(X) == y).mean()), 2)
    (0.97, 0.96)
    """

    classes_: Labels
    threshold_: float

    def __init__(
        self,
        gamma: Number | Between | Literal["auto"] | Population | PopulationRange = "auto",
        *,
        pull: Number | Between = 0.5,
        honest_share: Number | Between | None = HONEST,
        goal: GoalLike | None = None,
        feature_cost: Costs | None = None,
        fit_intercept: bool = True,
        ridge: Number = 0.0,
        null_space: NullSpace = "avoid",
        class_weight: ClassWeight | None = None,
        threshold: Threshold = 0.0,
        decay: Number = 1.0,
        solver: SolverLike = "auto",
        tol: Number = 1e-9,
        max_iter: int | None = None,
        random_state: RandomState | None = None,
    ) -> None:
        self.gamma = gamma
        self.pull = pull
        self.honest_share = honest_share
        self.goal = goal
        self.feature_cost = feature_cost
        self.fit_intercept = fit_intercept
        self.ridge = ridge
        self.null_space = null_space
        self.class_weight = class_weight
        self.threshold = threshold
        self.decay = decay
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    @all_or_nothing
    @with_callbacks
    def fit(
        self,
        X: Table,
        y: Classes,
        *,
        z: Classes | GoalLike | None = None,
        sample_weight: Numbers | None = None,
    ) -> Self:
        """Fit the best scores against the providers.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (m, n)
            Rows before anyone moves them.
        y : array-like of shape (m,)
            True labels, of two classes.
        z : array-like of shape (m,) or callable, optional
            The class each provider would like, or a function of the labels that returns it. By
            default ``goal`` of the labels.
        sample_weight : array-like of shape (m,), optional
            Weights of the rows, not negative.

        Returns
        -------
        StackelbergClassifier
            Itself.
        """
        terms = self._read_terms()
        data, table = self._read_data(X, y, z, sample_weight)
        warn_of(self._doubts(data))
        warn_of_status(self._solve(terms, data, table, X, y))
        return self

    @all_or_nothing
    def partial_fit(
        self,
        X: Table,
        y: Classes,
        classes: Classes | None = None,
        *,
        z: Classes | GoalLike | None = None,
        sample_weight: Numbers | None = None,
    ) -> Self:
        """Fit the best scores for these rows and all rows of earlier calls.

        As in :class:`StackelbergRegressor`: exact, and only sums of the rows are kept, in
        ``statistics_``. A threshold that is chosen on attacked rows, and balanced classes, need all
        rows at once: they are refused here, and known to ``fit``.

        Parameters
        ----------
        X, y, z, sample_weight
            As in :meth:`fit`. Later calls may hold rows of one class only.
        classes : array-like of shape (2,), optional
            Both classes, where the first call does not hold rows of both.

        Returns
        -------
        StackelbergClassifier
            Itself.
        """
        terms, cut = self._read_terms_of_sums(), read_threshold(self.threshold)
        if cut is None:
            raise ValueError(
                "threshold must be a number for partial_fit, which keeps no rows to choose it on; "
                "got 'attacked'. Pass a number, or call fit with all rows."
            )
        if isinstance(self.class_weight, str):
            raise ValueError(
                "class_weight must be None or a dict for partial_fit, which does not know how many "
                f"rows of each class will come; got {describe(self.class_weight)}. Pass a dict, or "
                "call fit with all rows."
            )
        known = self._read_classes(classes)
        rows = self._read_targets(X, y, z, sample_weight, reset=not self._has_sums, classes=known)
        self.threshold_ = cut
        return self._add(terms, rows, X)

    def _read_classes(self, classes: Any) -> Labels | None:
        """Both classes as earlier calls left them or as a first call names them, if either did."""
        known = self.classes_ if self._has_sums else None
        return known if classes is None else named_classes(classes, known)

    def _read_targets(
        self,
        X: Any,
        y: Any,
        z: Any,
        sample_weight: Any,
        *,
        reset: bool = True,
        classes: Labels | None = None,
    ) -> Targets:
        goal = check_class_goal(self.goal)
        read_threshold(self.threshold)
        refuse_two_goals(goal, z)
        table, labels, self.classes_ = read_labelled_rows(self, X, y, classes=classes, reset=reset)
        m = len(labels)
        weight = check_weight(sample_weight, m)
        coded = signs(labels, self.classes_, "y")
        if self.class_weight is not None:
            each = compute_class_weight(self.class_weight, classes=self.classes_, y=labels)
            by_class = each[(coded > 0.0).astype(np.intp)]
            weight = check_weight(by_class if weight is None else weight * by_class, m)
        if classes is None and weight is not None and np.ptp(coded[weight > 0.0]) == 0.0:
            alone = self.classes_[int(coded[weight > 0.0][0] > 0.0)]
            raise ValueError(
                "sample_weight and class_weight must leave both classes some weight; only class "
                f"{describe(alone)} has any."
            )
        return Targets(table, coded, class_goals(goal, m, z, labels, self.classes_), weight)

    def _doubts(self, data: GameData) -> tuple[str | None, ...]:
        return (doubt_of_idle_goals(data.y, data.z, data.weight, self.goal, _ADVICE),)

    def _doubts_of_sums(self, sums: GameStatistics) -> tuple[str | None, ...]:
        # Until the other class comes, that everyone wants the one there is tells nothing.
        alone = sums.label_spread < _ONE_CLASS
        return (None if alone else doubt_of_idle_sums(sums, _ADVICE),)

    def _complete(
        self, population: Population | PopulationRange, data: GameData, table: Any
    ) -> None:
        cut = read_threshold(self.threshold)
        if cut is None:
            if isinstance(population, PopulationRange):
                raise ValueError(
                    "threshold='attacked' needs one population to meet; got a range, "
                    f"{population}. Pass a number as threshold, or numbers in the place of Between."
                )
            faced = self._facing(np.inf, len(data.y))
            rows = as_matrix(table, check_finite=False)
            score = rows.apply(faced.coef) + faced.intercept
            cut = attacked_cut(score, faced, population, data.y, data.z, data.weight)
        self.threshold_ = cut

    def decision_function(self, X: Table) -> Predictions:
        """Scores of rows as they are, less the threshold: positive for the second class.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (m, n)
            Rows, moved or not.

        Returns
        -------
        ndarray of shape (m,)
        """
        said = self._said(X)[1]
        return said - said.dtype.type(self.threshold_)

    def predict(self, X: Table) -> Labels:
        """Decide on rows as they are.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (m, n)
            Rows, moved or not.

        Returns
        -------
        ndarray of shape (m,)
            Classes.
        """
        return self._decided(self.decision_function(X))

    def _decided(self, score: Any) -> Labels:
        if not is_lazy(score):
            return _above_zero(score, self.classes_)
        later: Labels = score.map_blocks(
            _above_zero, classes=self.classes_, dtype=self.classes_.dtype, meta=self.classes_[:0]
        )
        return later

    def decision_attacked(
        self,
        X: Table,
        z: Classes | GoalLike | None = None,
        *,
        y: Classes | None = None,
        gamma: Number | Numbers | None = None,
        budget: Number | Numbers | None = None,
    ) -> Vector:
        """Scores of rows, less the threshold, once their providers have moved them.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (m, n)
            Rows before they move.
        z : array-like of shape (m,) or callable, optional
            The class each provider would like, or a function of the labels, which needs ``y``; by
            default the ``goal`` of this model.
        y : array-like of shape (m,), optional
            True labels, for goals that depend on them.
        gamma : float or array-like of shape (m,), optional
            Strength of the providers, ``inf`` for honest ones; by default that of the strategic
            providers of the fit.
        budget : float or array-like of shape (m,), optional
            In place of a strength: providers move to the boundary, and only if that costs less
            than this. Zero is an honest one.

        Returns
        -------
        ndarray of shape (m,)
        """
        before = in_double(self._said(X)[1])
        who, goals = self._met(len(before), z, y, gamma, budget)
        return who.induced(before, goals) - self.threshold_

    def predict_attacked(
        self,
        X: Table,
        z: Classes | GoalLike | None = None,
        *,
        y: Classes | None = None,
        gamma: Number | Numbers | None = None,
        budget: Number | Numbers | None = None,
    ) -> Labels:
        """Decide on rows once their providers have moved them against this model.

        Parameters
        ----------
        X, z, y, gamma, budget
            As in :meth:`decision_attacked`.

        Returns
        -------
        ndarray of shape (m,)
            Classes.
        """
        return self._decided(self.decision_attacked(X, z, y=y, gamma=gamma, budget=budget))

    def best_response(
        self,
        X: Table,
        z: Classes | GoalLike | None = None,
        *,
        y: Classes | None = None,
        gamma: Number | Numbers | None = None,
        budget: Number | Numbers | None = None,
    ) -> Any:
        """Rows after each provider has moved its own against this model.

        Parameters
        ----------
        X : array-like or data frame of shape (m, n)
            Rows before they move; sparse data is refused, because moved rows are dense.
        z, y, gamma, budget
            As in :meth:`decision_attacked`.

        Returns
        -------
        ndarray or data frame of shape (m, n)
            In the container of ``X``.
        """
        table = self._dense_rows(X)
        who, goals = self._met(table.shape[0], z, y, gamma, budget)
        before = in_double(table @ self.coef_ + self.intercept_)
        return self._moved(X, table, who.step(before, goals), who.direction)

    def _met(
        self, m: int, z: Any, y: Any, gamma: Any, budget: Any
    ) -> tuple[Provider | BoundaryProvider, Vector]:
        """Who faces this model, and what they want."""
        goals = class_goals(check_class_goal(self.goal), m, z, y, self.classes_)
        if budget is None:
            return self._facing(gamma, m), goals
        if gamma is not None:
            raise ValueError("budget was given and so was gamma; drop one of them.")
        faced = self._facing(np.inf, m)
        return BoundaryProvider(faced, check_budget(budget, m), self.threshold_), goals

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def _above_zero(score: Any, classes: Labels) -> Labels:
    """The second class for scores above zero, else the first."""
    decided: Labels = classes[(score > 0.0).astype(np.intp)]
    return decided


def read_threshold(threshold: Any) -> float | None:
    """Where scores are cut; None where attacked rows tell."""
    if isinstance(threshold, str):
        if threshold == "attacked":
            return None
        raise ValueError(f"threshold must be a number or 'attacked'; got {describe(threshold)}.")
    return check_number(threshold, "threshold", advice="Or pass 'attacked'.")


def attacked_cut(
    score: Vector, faced: Provider, population: Population, y: Vector, z: Vector, weight: Any
) -> float:
    """The threshold that decides the most weight of rows right once a population has moved them.

    Parameters
    ----------
    score : ndarray of shape (m,)
        Scores of rows as they are.
    faced : Provider
        The model behind them, and the costs of its features.
    population : Population
        Who moves.
    y, z, weight : ndarray of shape (m,)
        Labels and goals, -1 or 1, and weights or None.
    """
    groups = list(zip(population.gammas, population.shares, strict=True))
    moved = [replace(faced, gamma=gamma).induced(score, z) for gamma, _ in groups]
    rows = np.ones(len(score)) if weight is None else weight
    shares = np.concatenate([share * rows for _, share in groups])
    return best_cut(np.concatenate(moved), np.tile(y, len(groups)), shares)
