"""The game as a scikit-learn regressor."""

from __future__ import annotations

from numbers import Real
from typing import Any, Literal, Self, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from spgls.base.frames import column_names, in_container_of, resolve_cost
from spgls.base.types import Costs, Number, Numbers, Seed, Table, Vector
from spgls.base.validation import (
    check_flag,
    check_number,
    check_strength,
    check_weight,
    describe,
)
from spgls.estimators.conventions import (
    CallbackSupportMixin,
    Progress,
    all_or_nothing,
    html_table,
    read_again,
    read_random_state,
    read_rows,
    warn_of_idle_goals,
    warn_of_scale,
    warn_of_status,
    with_callbacks,
)
from spgls.estimators.faced import fitted_strength
from spgls.estimators.summary import Summary, summarise
from spgls.game.goals import GoalLike, check_goal, goals_for, goals_of, read_goals
from spgls.game.providers import Population, Provider
from spgls.game.response import check_pull, strength_at
from spgls.matrix import as_matrix
from spgls.reduction.data import GameData, NullSpace, read_null_space
from spgls.reduction.layout import Layout
from spgls.solvers import (
    PopulationSolver,
    Solution,
    SolverLike,
    Stats,
    Status,
    play,
    resolve,
)
from spgls.solvers.reach import reach_of_least_squares
from spgls.solvers.solve import read_controls, read_ridge
from spgls.sphere import Certificate

__all__ = ["Predictions", "RandomState", "StackelbergRegressor"]

#: Numbers in the precision of the rows.
Predictions: TypeAlias = NDArray[np.floating[Any]]
#: Anything scikit-learn takes for a source of randomness.
RandomState: TypeAlias = Seed | np.random.RandomState
#: Share of the providers who do not react, unless somebody says otherwise.
_HONEST = 0.5


class StackelbergRegressor(CallbackSupportMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Linear regression against people who change their data in response.

    By default half of the providers are honest, and the others are as strong as those who would
    close half the gap to their goal against least squares.

    Parameters
    ----------
    gamma : float, "auto" or Population
        Strength of the strategic providers; small is strong. ``"auto"`` is the squared priced norm
        of the least-squares coefficients times ``(1 - pull)/pull``, so that the fit does not depend
        on units. Where least squares uses no changeable feature nobody has anything to gain:
        ``gamma_`` is ``inf``, and the fit is least squares. Where that norm comes from directions
        in which the rows hardly vary, it counts up to ten times that of the directions that explain
        99% of what least squares explains; ``gamma_rule_`` tells.
    pull : float
        With ``gamma="auto"``, the share of the gap to their goal that strategic providers would
        close against least squares, between 0 and 1. Larger means stronger. With any other
        ``gamma``, which says how strong they are itself, it must stay one half.
    honest_share : float, optional
        Share of the providers who do not react. It has no part with a Population, which holds its
        own shares: leave the default there. None means the default. Zero is the game of the
        literature, whose predictor can be far off for honest providers.
    goal : callable, optional
        Goals as a function of the labels, such as ``Floor(250)``; see :class:`Floor`,
        :class:`Cap`, :class:`Shift`, :class:`Scale` and :class:`Constant`. Without it ``fit`` needs
        ``z``.
    feature_cost : array-like of shape (n,) or mapping, optional
        Cost per squared unit of change, ``inf`` for features that cannot be changed; or such costs
        by column name: the exact name, else the part after ``__`` that a ColumnTransformer leaves,
        else the name before ``_`` of a one-hot group. Columns not named cost one.
    fit_intercept : bool
        Whether to fit an intercept, which nobody can manipulate.
    ridge : float
        Weight of the squared priced norm of the coefficients in the learner's objective.
    null_space : {"avoid", "use"}
        Whether coefficients may lie in directions in which the rows never vary, as in
        :func:`solve`. The game as stated would use them, with coefficients that predict nonsense
        for a row that does vary there, such as one of a new category.
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
        Strength of the strategic providers, or of each group of a Population.
    gamma_rule_ : str
        Where ``gamma_`` comes from: ``"given"``, or by which rule it was measured and how
        accurately.
    feature_cost_ : ndarray of shape (n,)
        Cost of each feature.
    objective_ : float
        Learner's sum of squares in the population, with the ridge term.
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

    coef_: Predictions
    intercept_: np.floating[Any]
    alpha_: float | Vector
    gamma_: float | Vector
    feature_cost_: Vector
    objective_: float
    status_: Status
    certificate_: Certificate
    stats_: Stats
    solver_: str
    n_iter_: int
    n_features_in_: int
    feature_names_in_: NDArray[np.object_]

    def __init__(
        self,
        gamma: Number | Literal["auto"] | Population = "auto",
        *,
        pull: Number = 0.5,
        honest_share: Number | None = _HONEST,
        goal: GoalLike | None = None,
        feature_cost: Costs | None = None,
        fit_intercept: bool = True,
        ridge: Number = 0.0,
        null_space: NullSpace = "avoid",
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
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    @all_or_nothing
    @with_callbacks
    def fit(
        self,
        X: Table,
        y: Numbers,
        *,
        z: Numbers | GoalLike | None = None,
        sample_weight: Numbers | None = None,
    ) -> Self:
        """Fit the best predictor against the providers.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (m, n)
            Rows before anyone moves them.
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
        gamma, honest = self._read_providers()
        pull = self._read_pull()
        ridge, solver = read_ridge(self.ridge), resolve(self.solver)
        controls = read_controls(self.tol, self.max_iter, None, None)
        rng = read_random_state(self.random_state)
        data, table = self._read_data(X, y, z, sample_weight)
        warn_of_scale(data.y, data.z)
        warn_of_idle_goals(data.y, data.z, data.weight, self.goal)
        rule = "given"
        if gamma == "auto":
            reach = reach_of_least_squares(data, solver, controls)
            gamma, rule = strength_at(pull, reach.value) or np.inf, str(reach)
        population = _population(gamma, honest)
        paper = len(population.gammas) == 1 and not ridge and not data.layout.avoids_null
        if not isinstance(solver, PopulationSolver) and not paper:
            raise ValueError(
                f"solver {solver.capabilities.name!r} knows neither honest providers nor a ridge, "
                "and uses null spaces. Pass honest_share=0, ridge=0 and null_space='use', or "
                "solver='spectral'."
            )
        metadata = {"z": data.z} | ({} if data.weight is None else {"sample_weight": data.weight})
        progress = Progress(self, solver.capabilities.iterative, X=X, y=y, metadata=metadata)
        controls = type(controls)(controls.tol, controls.max_iter, rng, progress.on_step)
        (solution,) = play(solver, data, [population], ridge, controls)
        self._keep(solution, gamma, data.layout.cost, table.dtype)
        self.gamma_rule_ = rule
        progress.end()
        warn_of_status(solution)
        return self

    def _read_data(self, X: Any, y: Any, z: Any, sample_weight: Any) -> tuple[GameData, Any]:
        """The game, and its rows as scikit-learn reads them."""
        goal = check_goal(self.goal)
        fit_intercept = check_flag(self.fit_intercept, "fit_intercept")
        if goal is None and z is None:
            raise ValueError(
                "z or a goal is needed: pass fit(X, y, z=...) with the prediction each provider "
                f"would like, or {type(self).__name__}(goal=Floor(250)) or another function of y."
            )
        if goal is not None and z is not None:
            raise ValueError(
                f"z was given and so was goal={goal!r}; drop one of them. Where metadata routing "
                "passes z, set_fit_request(z=False) keeps it from here."
            )
        table, labels = read_rows(self, X, y)
        m, n = table.shape
        # Names are asked of X itself: scikit-learn does not know every version of every data frame.
        data = GameData(
            matrix=as_matrix(table, check_finite=False),
            y=labels,
            z=read_goals(z, labels) if goal is None else goals_of(goal, labels),
            weight=check_weight(sample_weight, m),
            layout=Layout(
                n,
                resolve_cost(self.feature_cost, n, column_names(X)),
                fit_intercept,
                read_null_space(self.null_space),
            ),
            source=X,
        )
        return data, table

    def _read_providers(self) -> tuple[Any, float | None]:
        """Strength and honest share as they were given, checked."""
        if isinstance(self.gamma, Population):
            share: object = self.honest_share
            if share is not None and not (isinstance(share, Real) and share == _HONEST):
                raise ValueError(
                    f"honest_share must stay {_HONEST}, its default, with a Population, which "
                    f"holds its own shares; got {describe(share)}. Population.mixed(gamma, "
                    "honest=0.5) makes one with honest providers."
                )
            return self.gamma, None
        honest = _HONEST
        if self.honest_share is not None:
            honest = check_number(self.honest_share, "honest_share", at_least=0.0, at_most=1.0)
        if isinstance(self.gamma, str) and self.gamma == "auto":
            return "auto", honest
        advice = (
            "Or pass 'auto', or a Population. Small is strong; gamma_from_pull finds the one at "
            "which providers close a given share of the gap to their goal."
        )
        return check_number(self.gamma, "gamma", above=0.0, advice=advice), honest

    def _read_pull(self) -> float:
        """What "auto" aims at; refused beside a strength that was given."""
        pull = check_pull(self.pull)
        if pull != 0.5 and not isinstance(self.gamma, str):
            raise ValueError(
                f"pull must stay 0.5 with gamma={self.gamma!r}, which says how strong providers "
                f"are; got {describe(self.pull)}. Pass gamma='auto' with it."
            )
        return pull

    def _keep(self, solution: Solution, gamma: Any, cost: Vector | None, dtype: Any) -> None:
        """Set the fitted attributes."""
        reach = Provider(solution.coef, 0.0, np.inf, cost).reach
        self.gamma_ = np.array(gamma.gammas) if isinstance(gamma, Population) else gamma
        self.alpha_ = reach / self.gamma_
        self.coef_ = solution.coef.astype(dtype, copy=False)
        self.intercept_ = dtype.type(solution.intercept)
        self.feature_cost_ = np.ones(self.n_features_in_) if cost is None else cost
        self.objective_ = solution.objective
        self.status_ = solution.status
        self.certificate_ = solution.certificate
        self.stats_ = solution.stats
        self.solver_ = solution.solver
        self.n_iter_ = max(1, solution.stats.iterations)

    def predict(self, X: Table) -> Predictions:
        """Predict rows as they are.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (m, n)
            Rows, moved or not.

        Returns
        -------
        ndarray of shape (m,)
        """
        check_is_fitted(self)
        table = read_again(self, X)
        said: Predictions = table @ self.coef_ + self.intercept_
        return said

    def predict_attacked(
        self,
        X: Table,
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
        before = np.asarray(self.predict(X), dtype=np.float64)
        goals = goals_for(self.goal, len(before), z, y)
        provider = self._facing(gamma, len(before))
        return provider.induced(before, goals)

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
        check_is_fitted(self)
        if sp.issparse(X):
            raise TypeError(
                f"X must be dense, because the rows returned are; got {describe(X)}. Use "
                "spgls.movement, which gives the step of each row and the common direction, or "
                "pass X.toarray()."
            )
        table = read_again(self, X, accept_sparse=False)
        goals = goals_for(self.goal, table.shape[0], z, y)
        provider = self._facing(gamma, table.shape[0])
        step = provider.step(table @ provider.coef + provider.intercept, goals)
        moved = table + np.outer(step, provider.direction)
        return in_container_of(X, moved.astype(table.dtype, copy=False))

    def _facing(self, gamma: Any, m: int) -> Provider:
        """The provider who faces this model."""
        own = gamma is None
        strength = fitted_strength(self.gamma_) if own else check_strength(gamma, m)
        coef = self.coef_.astype(np.float64, copy=False)
        return Provider(coef, float(self.intercept_), strength, self.feature_cost_)

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

    def get_metadata_routing(self) -> Any:
        """Tell scikit-learn which metadata this estimator wants; without a goal it wants ``z``.

        Returns
        -------
        MetadataRequest
        """
        request = super().get_metadata_routing()
        if request.fit.requests.get("z") is None:
            request.fit.add_request(param="z", alias=self.goal is None)
        return request

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _fit_html(self) -> str:
        """What the fit came to, for notebooks."""
        if not hasattr(self, "status_"):
            return ""
        pull = np.atleast_1d(self.alpha_ / (1.0 + self.alpha_))
        proof = self.certificate_
        return html_table(
            {
                "status": self.status_.value,
                "relative gap": f"{proof.relative_gap:.2g} ({proof.kind})",
                "pull": ", ".join(f"{share:.3g}" for share in pull),
                "passes": f"{self.stats_.passes:g}",
            }
        )

    def _repr_html_inner(self) -> str:
        return str(super()._repr_html_inner()) + self._fit_html()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] += self._fit_html()
        return bundle


def _population(gamma: float | Population, honest: float | None) -> Population:
    if isinstance(gamma, Population):
        return gamma
    if not honest or np.isinf(gamma):
        return Population((gamma,), (1.0,))
    return Population((np.inf, gamma), (honest, 1.0 - honest))
