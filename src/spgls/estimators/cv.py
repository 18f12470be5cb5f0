"""The game as a scikit-learn regressor that chooses its strength, honest share and ridge."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from spgls.base.types import Number, Numbers
from spgls.estimators.cross_validated import CrossValidated, Splitter, World
from spgls.estimators.linear_game import RandomState
from spgls.estimators.regressor import StackelbergRegressor
from spgls.game.costs import Costs
from spgls.game.goals import GoalLike
from spgls.reduction.data import NullSpace
from spgls.solvers import SolverLike

__all__ = ["StackelbergRegressorCV", "chosen_model"]


class StackelbergRegressorCV(CrossValidated, StackelbergRegressor):
    """Linear regression against people who change their data, its assumptions cross-validated.

    A candidate is a strength of the strategic providers, a share of honest ones and a ridge. It is
    fitted on the training rows of each split and judged on the test rows after their providers have
    moved against it. How they move is the ``world``: the same for every candidate, because a
    candidate that were judged against the providers it expects would look the better, the weaker
    it expects them to be. The best candidate is fitted on all rows, and then this is a
    :class:`StackelbergRegressor`.

    Parameters
    ----------
    gammas : array-like of shape (k,), optional
        Strengths to choose from; small is strong. By default 13 over six decades around the
        strength at which providers close the share ``pull`` of the gap to their goal against least
        squares.
    pull : float
        What the default ``gammas`` and the default ``world`` are made for, as in
        :class:`StackelbergRegressor`. Where both are given it must stay one half.
    honest_shares : array-like of shape (k,)
        Shares of providers who do not react to choose from.
    ridges : array-like of shape (k,)
        Weights of the squared priced norm of the coefficients to choose from.
    world : float, Population or list of such, optional
        Who moves the test rows. A number is a world in which every provider moves with that
        strength, ``inf`` one in which nobody does; a :class:`Population` may hold both. In several
        worlds a candidate's regret is how much it scores below the best candidate of each, and the
        one whose largest regret is smallest is chosen. By default the population that the
        candidates expect, if they all expect the same one; else half of the providers are honest,
        and the others close the share ``pull`` of the gap to their goal against least squares, as
        :class:`StackelbergRegressor` expects.
    cv : int, splitter or iterable, optional
        As in scikit-learn: number of folds (five by default), a splitter such as ``GroupKFold(4)``,
        or pairs of arrays of training and test rows.
    goal : callable, optional
        Goals as a function of the labels, applied once to all of them. Without it ``fit`` needs
        ``z``.
    feature_cost : array-like of shape (n,) or (n, n), mapping or Actions, optional
        As in :class:`StackelbergRegressor`; costs are the same for candidates and worlds.
    fit_intercept : bool
        Whether to fit an intercept, which nobody can manipulate.
    null_space : {"avoid", "use"}
        Whether coefficients may lie in directions in which the rows never vary, as in
        :class:`StackelbergRegressor`.
    scoring : str or scorer, optional
        What candidates are scored by, on attacked rows; by default minus the mean squared error.
        Scores other than that, ``"neg_root_mean_squared_error"`` and ``"r2"`` need a prediction of
        every test row by every candidate.
    one_standard_error : bool
        Whether to choose, of the candidates that score within one standard error of the best, the
        one whose coefficients have the smallest squared priced norm: providers can gain least
        by moving against it.
    solver, tol, max_iter, random_state
        As in :class:`StackelbergRegressor`. With ``"spectral"``, which ``"auto"`` takes unless
        columns are very many, all candidates of a split come from one reduction, and all splits
        into folds from one read of the data.

    Attributes
    ----------
    best_params_ : dict
        The candidate that was chosen: ``gamma``, ``honest_share``, ``ridge``. The first of those
        whose scores are the same up to rounding.
    best_index_ : int
        Its place in ``cv_results_``.
    best_score_ : float
        Its mean score over the splits; of several worlds, in the one that is worst for it.
    cv_results_ : dict of arrays
        One entry for each candidate: ``params``, ``param_gamma``, ``param_honest_share``,
        ``param_ridge``, ``split0_test_score`` and so on, ``mean_test_score``, ``std_test_score``,
        ``worst_regret``, ``rank_test_score`` and ``mean_reach``, the squared priced norm of its
        coefficients. With several worlds the names of scores end in ``_world0`` and so on.
    worlds_ : tuple of Population
        The worlds that candidates were judged in.
    n_splits_ : int
        Number of splits.
    coef_, intercept_, alpha_, gamma_, feature_cost_, objective_, status_, certificate_
        As in :class:`StackelbergRegressor`, and so are ``stats_``, ``solver_``, ``n_iter_``,
        ``n_features_in_`` and ``feature_names_in_``.

    See Also
    --------
    StackelbergRegressor : the same for one strength, honest share and ridge.
    make_attacked_scorer : attacked scores for scikit-learn's own searches.

    Notes
    -----
    Rows that were collected honestly say nothing about who will move them, so data cannot choose
    among strengths unless a world is given: without one, the choice repeats the default world, and
    a warning says so where strengths or shares were given to choose from.

    With the spectral solver scores are those of a loop over fits to eight digits, unless the best
    coefficients grow without bound. Iterative solvers stop at ``tol`` in the objective, which
    leaves about its square root in coefficients and scores.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from spgls import Floor, Population, StackelbergRegressorCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> world = Population.mixed(2e6, honest=0.5)
    >>> model = StackelbergRegressorCV([2e5, 2e6, 2e7], world=world, goal=Floor(250)).fit(X, y)
    >>> model.best_params_
    {'gamma': 2000000.0, 'honest_share': 0.5, 'ridge': 0.0}
    >>> model.cv_results_["rank_test_score"]
    array([3, 1, 2], dtype=int32)
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
        self.scoring = scoring
        self.one_standard_error = one_standard_error
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state


def chosen_model(search: StackelbergRegressorCV) -> StackelbergRegressor:
    """The model that a fitted search chose, to be fitted to other rows."""
    plain = StackelbergRegressor()
    # The strength that was chosen leaves no part to a pull.
    shared = (search.get_params().keys() & plain.get_params().keys()) - {"pull"}
    chosen: dict[str, Any] = dict(search.best_params_)
    if np.isinf(chosen["gamma"]):
        # What "auto" comes to where nobody has anything to gain.
        chosen["gamma"] = "auto"
    plain.set_params(**{name: getattr(search, name) for name in shared}, **chosen)
    return plain
