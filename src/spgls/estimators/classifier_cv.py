"""The game as a scikit-learn classifier that chooses its strength, honest share and ridge."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from spgls.base.types import Array, Number, Numbers
from spgls.estimators.classifier import (
    ClassWeight,
    StackelbergClassifier,
    Threshold,
    attacked_cut,
    read_threshold,
)
from spgls.estimators.cross_validated import CrossValidated, Splitter, World
from spgls.estimators.cv_options import check_scoring
from spgls.estimators.faced import Faced
from spgls.estimators.folds import Candidates, Judge, Models
from spgls.estimators.linear_game import RandomState
from spgls.estimators.scorers import AttackedScorer
from spgls.game.costs import Costs
from spgls.game.goals import GoalLike
from spgls.game.providers import Population, Provider
from spgls.matrix import as_matrix
from spgls.reduction.data import GameData, NullSpace
from spgls.reduction.fold_sums import Split
from spgls.solvers import SolverLike

__all__ = ["StackelbergClassifierCV"]

_ACCURACY = "accuracy"


class StackelbergClassifierCV(CrossValidated, StackelbergClassifier):
    """Decide between two classes where people change their data, its assumptions cross-validated.

    As :class:`StackelbergRegressorCV`, with decisions in the place of predictions: a candidate is
    fitted on the training rows of each split, and judged by its accuracy on the test rows after
    their providers have moved against it. How they move is the ``world``, the same for every
    candidate. Folds are stratified.

    Parameters
    ----------
    gammas : array-like of shape (k,), optional
        Strengths to choose from; small is strong. By default 13 over six decades around the
        strength at which providers close the share ``pull`` of the gap to their goal against least
        squares.
    pull, honest_shares, ridges, world, cv
        As in :class:`StackelbergRegressorCV`.
    goal, feature_cost, fit_intercept, null_space, class_weight
        As in :class:`StackelbergClassifier`. Class weights count in fits and in scores.
    threshold : float or "attacked"
        As in :class:`StackelbergClassifier`. With ``"attacked"`` each candidate has its own, chosen
        on its training rows as the providers whom it expects move them.
    scoring : str or scorer, optional
        What candidates are scored by on attacked rows: accuracy by default, or
        ``"balanced_accuracy"``, ``"roc_auc"``, ``"precision"`` and others.
    one_standard_error : bool
        As in :class:`StackelbergRegressorCV`.
    solver, tol, max_iter, random_state
        As in :class:`StackelbergRegressor`.

    Attributes
    ----------
    best_params_, best_index_, best_score_, cv_results_, worlds_, n_splits_
        As in :class:`StackelbergRegressorCV`.
    classes_, threshold_, coef_, intercept_, alpha_, gamma_, feature_cost_, objective_, status_
        As in :class:`StackelbergClassifier`, and so are ``certificate_``, ``stats_``, ``solver_``,
        ``n_iter_``, ``n_features_in_`` and ``feature_names_in_``.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from spgls import Population, StackelbergClassifierCV, Wants
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = StackelbergClassifierCV(world=Population.mixed(5.0), goal=Wants(1), ridges=[0, 100])
    >>> model = model.fit(scale(X), y)
    >>> model.best_params_["honest_share"], round(model.best_score_, 2)
    (0.5, 0.96)
    """

    def __init__(
        self,
        gammas: Numbers | None = None,
        *,
        pull: Number = 0.5,
        honest_shares: Numbers = (0.5,),
        ridges: Numbers = (0.0,),
        world: World | Sequence[World] | None = None,
        cv: int | Splitter | Iterable[tuple[Any, Any]] | None = None,
        goal: GoalLike | None = None,
        feature_cost: Costs | None = None,
        fit_intercept: bool = True,
        null_space: NullSpace = "avoid",
        class_weight: ClassWeight | None = None,
        threshold: Threshold = 0.0,
        scoring: str | Callable[..., Any] | None = None,
        one_standard_error: bool = False,
        solver: SolverLike = "auto",
        tol: Number = 1e-9,
        max_iter: int | None = None,
        random_state: RandomState | None = None,
    ) -> None:
        self.gammas = gammas
        self.pull = pull
        self.honest_shares = honest_shares
        self.ridges = ridges
        self.world = world
        self.cv = cv
        self.goal = goal
        self.feature_cost = feature_cost
        self.fit_intercept = fit_intercept
        self.null_space = null_space
        self.class_weight = class_weight
        self.threshold = threshold
        self.scoring = scoring
        self.one_standard_error = one_standard_error
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def _read_measure(self) -> None:
        # Squared errors say nothing of decisions.
        check_scoring(_ACCURACY if self.scoring is None else self.scoring, "classes")

    def _read_judge(
        self, data: GameData, table: Any, candidates: Candidates, worlds: Sequence[Population]
    ) -> Judge:
        cost, fixed = data.layout.given_cost, read_threshold(self.threshold)
        metric = _ACCURACY if self.scoring is None else self.scoring
        scorers = [AttackedScorer(world, metric=metric) for world in worlds]
        labels = self.classes_[(data.y > 0.0).astype(np.intp)]
        matrix = as_matrix(table, check_finite=False)

        def part(values: Any, rows: np.ndarray) -> Any:
            return None if values is None else values[rows]

        def judge(split: Split, models: Models) -> Array:
            train, test = split
            rows = matrix.take(test)
            scores = np.empty((len(worlds), candidates.number))
            for at, (coef, intercept) in enumerate(
                zip(models.coef.T, models.intercept, strict=True)
            ):
                cut = fixed
                if cut is None:
                    said = matrix.take(train).apply(coef) + intercept
                    provider = Provider(coef, intercept, np.inf, cost)
                    y, z, weight = (part(v, train) for v in (data.y, data.z, data.weight))
                    cut = attacked_cut(said, provider, candidates.population(at), y, z, weight)
                before = rows.apply(coef) + intercept
                faced = Faced(self, rows, before, coef, cost, self.classes_, cut)
                scores[:, at] = [
                    scorer.on_rows(faced, labels[test], data.z[test], part(data.weight, test))
                    for scorer in scorers
                ]
            return scores

        return judge
