"""The game as a scikit-learn regressor."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, Literal, Self

from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from spgls.base.column_groups import ColumnGroups, read_column_groups
from spgls.base.devices import is_foreign
from spgls.base.far_array import far_of
from spgls.base.frames import column_names
from spgls.base.types import Number, Numbers, Table, Vector
from spgls.base.validation import check_weight
from spgls.estimators.conventions import (
    all_or_nothing,
    doubt_of_idle_goals,
    doubt_of_idle_sums,
    doubt_of_scale,
    doubt_of_scale_of_sums,
    doubts_of_reach,
    in_double,
    read_again,
    read_rows,
    warn_of,
    warn_of_status,
    with_callbacks,
)
from spgls.estimators.linear_game import HONEST, LinearGame, Predictions, RandomState, Targets
from spgls.estimators.placed import like, place_to_follow
from spgls.estimators.summary import Summary, summarise
from spgls.game.between import Between
from spgls.game.costs import Costs
from spgls.game.goals import GoalLike, check_goal, goals_for, goals_of, read_goals, refuse_two_goals
from spgls.game.providers import Population, PopulationRange
from spgls.matrix import Matrix, as_matrix
from spgls.reduction.data import GameData, NullSpace
from spgls.solvers import SolverLike, resolve
from spgls.solvers.levers import LeverKind, Levers, find_levers, read_kinds
from spgls.solvers.solve import read_controls
from spgls.solvers.statistics import GameStatistics

__all__ = ["StackelbergRegressor"]

_ADVICE = "Check the sign and the unit of the goals, and on which side of the labels a level lies."


class StackelbergRegressor(RegressorMixin, LinearGame):  # type: ignore[misc]
    """Linear regression against people who change their data in response.

    By default half of the providers are honest, and the others are as strong as those who would
    close half the gap to their goal against least squares.

    Parameters
    ----------
    gamma : float, Between, "auto", Population or PopulationRange
        Strength of the strategic providers; small is strong. ``"auto"`` is the squared priced norm
        of the least-squares coefficients times ``(1 - pull)/pull``, so that the fit does not depend
        on units. Where least squares uses no changeable feature nobody has anything to gain:
        ``gamma_`` is ``inf``, and the fit is least squares. Where that norm comes from directions
        in which the rows hardly vary, it counts up to ten times that of the directions that explain
        99% of what least squares explains; ``gamma_rule_`` tells. Where only a range is known,
        ``Between(0.5, 5)``: the fit makes the worst objective over the range as small as possible.
    pull : float or Between
        With ``gamma="auto"``, the share of the gap to their goal that strategic providers would
        close against least squares, between 0 and 1. Larger means stronger. With any other
        ``gamma``, which says how strong they are itself, it must stay one half. Where only a range
        is known, ``Between(0.2, 0.8)``.
    honest_share : float or Between, optional
        Share of the providers who do not react, or a range of it. It has no part with a Population,
        which holds its own shares: leave the default there. None means the default. Zero is the
        game of the literature, whose predictor can be far off for honest providers.
    goal : callable, optional
        Goals as a function of the labels, such as ``Floor(250)``; see :class:`Floor`,
        :class:`Cap`, :class:`Shift`, :class:`Scale` and :class:`Constant`. Without it ``fit`` needs
        ``z``.
    feature_cost : array-like of shape (n,) or (n, n), mapping or Actions, optional
        Cost per squared unit of change, ``inf`` for features that cannot be changed; or such costs
        by column name: the exact name, else the part after ``__`` that a ColumnTransformer leaves,
        else the name before ``_`` of a one-hot group. Columns not named cost one. Or a matrix of
        costs, or what people can do: :class:`Actions`, and :class:`Switches` in a mapping.
    fit_intercept : bool
        Whether to fit an intercept, which nobody can manipulate.
    ridge : float
        Weight of the squared priced norm of the coefficients in the learner's objective.
    null_space : {"avoid", "use"}
        Whether coefficients may lie in directions in which the rows never vary, as in
        :func:`solve`. The game as stated would use them, with coefficients that predict nonsense
        for a row that does vary there, such as one of a new category.
    decay : float
        What the weight of earlier rows is multiplied with at every :meth:`partial_fit`, above 0 and
        at most 1: less than one forgets them gradually. ``fit`` has no earlier rows.
    solver : str, solver object or function
        As in :func:`solve`. Honest providers and a ridge are known to ``"auto"``, ``"spectral"``
        and ``"krylov"``; others, and functions, need ``honest_share=0`` and ``null_space="use"``.
    tol : float
        Certified relative gap wanted, in units of R2.
    max_iter : int, optional
        Limit on iterations of an iterative solver.
    random_state : int, RandomState or Generator, optional
        Source of randomness for the solvers that use it.

    Attributes
    ----------
    coef_ : ndarray of shape (n,)
        Coefficients.
    intercept_ : float
        Intercept.
    alpha_ : float or ndarray of shape (k,)
        Squared priced norm of the coefficients over ``gamma_``; a strategic provider closes the
        share ``alpha/(1 + alpha)`` of the gap to its goal.
    gamma_ : float or ndarray of shape (k,)
        Strength of the strategic providers, or of each group of a Population, or the ends of a
        range.
    gamma_rule_ : str
        Where ``gamma_`` comes from: ``"given"``, or by which rule it was measured and how
        accurately.
    feature_cost_ : ndarray of shape (n,), or Moves
        Cost of each feature; or what people can do, where that is more than one cost a feature.
    objective_ : float
        Learner's sum of squares in the population, with the ridge term; against a range the worst.
    binding_ : tuple of Population
        Against a range: the populations at its ends that are worst for the model. Otherwise empty.
    regret_ : float
        What knowing the truth would have gained of the objective, at the end of a range where that
        is most; zero without a range.
    status_ : Status
        How the solve ended.
    certificate_ : Certificate
        How far from the global optimum it can be.
    stats_ : Stats
        What the solve cost.
    solver_ : str
        Name of the solver used.
    n_iter_ : int
        Its iterations.
    statistics_ : GameStatistics
        After :meth:`partial_fit`, what all rows so far add up to.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n,)
        Their names, if ``X`` had any.

    See Also
    --------
    solve : the same as a function.
    make_attacked_scorer : scores on attacked rows, for any linear model.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from spgls import Floor, StackelbergRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = StackelbergRegressor(goal=Floor(250)).fit(X, y)
    >>> round(model.score(X, y), 2)
    0.49
    >>> model.status_
    <Status.OPTIMAL: 'optimal'>
    """

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
        self.decay = decay
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    @all_or_nothing
    @with_callbacks
    def fit(
        self,
        X: Table | Matrix,
        y: Numbers,
        *,
        z: Numbers | GoalLike | None = None,
        sample_weight: Numbers | None = None,
    ) -> Self:
        """Fit the best predictor against the providers.

        Parameters
        ----------
        X : array-like, data frame, sparse matrix or Matrix of shape (m, n)
            Rows before anyone moves them; a :func:`stream` for files larger than memory.
        y : array-like of shape (m,)
            True labels.
        z : array-like of shape (m,) or callable, optional
            Goals: the prediction each provider would like, or a function of the labels. By default
            ``goal`` of the labels.
        sample_weight : array-like of shape (m,), optional
            Weights of the rows, not negative.

        Returns
        -------
        StackelbergRegressor
            Itself.
        """
        terms = self._read_terms()
        data, table = self._read_data(X, y, z, sample_weight)
        warn_of(self._doubts(data))
        solution = self._solve(terms, data, table, X, y)
        warn_of_status(solution)
        warn_of(doubts_of_reach(solution, data))
        return self

    @all_or_nothing
    def partial_fit(
        self,
        X: Table,
        y: Numbers,
        *,
        z: Numbers | GoalLike | None = None,
        sample_weight: Numbers | None = None,
    ) -> Self:
        """Fit the best predictor for these rows and all rows of earlier calls.

        Exact: the predictor is that of one ``fit`` to all rows, of which only sums are kept, in
        ``statistics_``. With ``decay`` below one earlier rows count less and less. The first call
        decides on names, number and type of the columns. A strength of "auto" is found anew. Rows
        of an earlier ``fit`` are not among them, because ``fit`` keeps no sums: a warning says so.

        Parameters
        ----------
        X, y, z, sample_weight
            As in :meth:`fit`.

        Returns
        -------
        StackelbergRegressor
            Itself.
        """
        terms = self._read_terms_of_sums()
        rows = self._read_targets(X, y, z, sample_weight, reset=not self._has_sums)
        return self._add(terms, rows, X)

    def _doubts(self, data: GameData) -> tuple[str | None, ...]:
        y, z = data.y, data.z
        advice = f"y lies between {y.min():.4g} and {y.max():.4g}. {_ADVICE}"
        idle = doubt_of_idle_goals(y, z, data.weight, self.goal, advice)
        return doubt_of_scale(y, z), idle

    def _doubts_of_sums(self, sums: GameStatistics) -> tuple[str | None, ...]:
        return doubt_of_scale_of_sums(sums), doubt_of_idle_sums(sums, _ADVICE)

    def _read_targets(
        self, X: Any, y: Any, z: Any, sample_weight: Any, *, reset: bool = True
    ) -> Targets:
        goal = check_goal(self.goal)
        if goal is None and z is None:
            raise ValueError(
                "z or a goal is needed: pass fit(X, y, z=...) with the prediction each provider "
                f"would like, or {type(self).__name__}(goal=Floor(250)) or another function of y."
            )
        refuse_two_goals(goal, z)
        table, labels = read_rows(self, X, y, reset=reset)
        goals = read_goals(z, labels) if goal is None else goals_of(goal, labels)
        far = far_of(labels)
        weight = check_weight(sample_weight, table.shape[0], None if far is None else far.place)
        return Targets(table, labels, goals, weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.array_api_support = True
        return tags

    def predict(self, X: Table | Matrix) -> Predictions:
        """Predict rows as they are.

        Parameters
        ----------
        X : array-like, data frame, sparse matrix or Matrix of shape (m, n)
            Rows, moved or not.

        Returns
        -------
        ndarray of shape (m,)
        """
        said: Predictions = self._said(X)[1]
        return said

    def predict_attacked(
        self,
        X: Table | Matrix,
        z: Numbers | GoalLike | None = None,
        *,
        y: Numbers | None = None,
        gamma: Number | Numbers | None = None,
    ) -> Vector:
        """Predict rows once their providers have moved them against this model.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (m, n)
            Rows before they move.
        z : array-like of shape (m,) or callable, optional
            Goals: the prediction each provider would like. A function of the labels, such as
            ``Floor(250)``, needs ``y`` beside it.
        y : array-like of shape (m,), optional
            True labels, which the goals follow from: by ``z`` where it is a function, else by the
            ``goal`` that this model holds.
        gamma : float or array-like of shape (m,), optional
            Strength of the providers, ``inf`` for honest ones; by default that of the strategic
            providers of the fit.

        Returns
        -------
        ndarray of shape (m,)
        """
        before = in_double(self.predict(X))
        goals = goals_for(self.goal, len(before), z, y)
        provider = self._facing(gamma, len(before))
        said: Vector = like(place_to_follow(X), provider.induced(before, goals))
        return said

    def best_response(
        self,
        X: Table,
        z: Numbers | GoalLike | None = None,
        *,
        y: Numbers | None = None,
        gamma: Number | Numbers | None = None,
    ) -> Any:
        """Rows after each provider has moved its own against this model.

        Parameters
        ----------
        X : array-like or data frame of shape (m, n)
            Rows before they move; sparse data is refused, because moved rows are dense.
        z, y, gamma
            As in :meth:`predict_attacked`.

        Returns
        -------
        ndarray or data frame of shape (m, n)
            In the container of ``X``.
        """
        table = self._dense_rows(X)
        goals = goals_for(self.goal, table.shape[0], z, y)
        provider = self._facing(gamma, table.shape[0])
        linear = (
            provider.predict(as_matrix(table))
            if is_foreign(table)
            else (table @ provider.coef + provider.intercept)
        )
        step = provider.step(linear, goals)
        return self._moved(X, table, step, provider.direction)

    def summary(
        self,
        X: Any = None,
        y: Any = None,
        z: Any = None,
        *,
        sample_weight: Any = None,
        bootstrap: Any = None,
        random_state: Any = None,
    ) -> Summary:
        """Say what the fit came to: coefficients by name, pull, certificate, and errors on rows.

        Parameters
        ----------
        X, y : optional
            Rows and labels to measure errors by, both or neither. On rows of the fit errors are too
            good; on others intervals of coefficients are those of a fit to the others.
        z : array-like of shape (m,), optional
            Goals, if the model has no ``goal``. Without either there are no attacked errors.
        sample_weight : array-like of shape (m,), optional
            Weights of the rows.
        bootstrap : int, optional
            Number of fits to resampled rows, for intervals: 200 is plenty. Strengths that were
            chosen by cross-validation are kept, those that are "auto" are found anew.
        random_state : int, RandomState or Generator, optional
            Source of randomness for the bootstrap.

        Returns
        -------
        Summary

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from spgls import Floor, StackelbergRegressor
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
        >>> model = StackelbergRegressor(goal=Floor(250)).fit(X, y)
        >>> found = model.summary(X, y)
        >>> round(found.honest), found.attacked.round()
        (3051, array([3161.]))
        """
        return summarise(self, X, y, z, sample_weight, bootstrap, random_state)

    def levers(
        self,
        X: Table,
        y: Numbers,
        z: Numbers | GoalLike | None = None,
        *,
        groups: ColumnGroups | None = None,
        kinds: LeverKind | Sequence[LeverKind] = ("verify", "drop", "double"),
        sample_weight: Numbers | None = None,
    ) -> Levers:
        """Say which feature to verify, to drop, or to make dearer to change.

        The game is the one that this model was fitted for, with the strength that ``"auto"`` came
        to: people stay as they are while features change.

        Parameters
        ----------
        X, y : array-like or data frame of shape (m, n), array-like of shape (m,)
            Rows and labels, best those of the fit: games are solved on them.
        z : array-like of shape (m,) or callable, optional
            Goals, if the model has no ``goal``.
        groups, kinds
            As in :func:`levers`: groups of columns by name or position, and what to try with each.
        sample_weight : array-like of shape (m,), optional
            Weights of the rows.

        Returns
        -------
        Levers

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from spgls import Floor, StackelbergRegressor
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
        >>> model = StackelbergRegressor(goal=Floor(250)).fit(X, y)
        >>> print(model.levers(X, y, kinds="verify").answer)
        Verify bmi first: error after manipulation falls from 3106 to 2950.
        """
        check_is_fitted(self)
        tried, solver = read_kinds(kinds), resolve(self.solver)
        controls = read_controls(self.tol, self.max_iter, None, None)
        read_again(self, X)
        # By a copy, because reading rows with labels leaves the names of columns on a model.
        data, _ = copy(self)._read_data(X, y, z, sample_weight)
        named = read_column_groups(groups, data.matrix.shape[1], column_names(X))
        population, ridge = self._expected()
        return find_levers(solver, data, named, tried, population, ridge, controls=controls)
