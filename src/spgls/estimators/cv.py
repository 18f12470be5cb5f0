"""The game as a scikit-learn regressor that chooses its strength, honest share and ridge."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import product
from math import inf
from typing import Any, Protocol, Self, TypeAlias

import numpy as np
import sklearn
from scipy.stats import rankdata
from sklearn.model_selection import check_cv
from sklearn.utils.metadata_routing import UNUSED, MetadataRouter, MethodMapping, process_routing

from spgls.base.types import Array, Costs, Number, Numbers, Table, Vector
from spgls.base.validation import check_flag, describe
from spgls.estimators.conventions import (
    Progress,
    all_or_nothing,
    read_random_state,
    warn_of_idle_goals,
    warn_of_scale,
    warn_of_status,
    with_callbacks,
)
from spgls.estimators.cv_options import (
    check_enough_rows,
    read_grid,
    read_judge,
    read_measure,
    read_splits,
    read_worlds,
    warn_of_no_world,
)
from spgls.estimators.folds import Candidates, CrossValidation
from spgls.estimators.regressor import RandomState, StackelbergRegressor
from spgls.game.goals import GoalLike
from spgls.game.providers import Population
from spgls.game.response import check_pull, strength_at
from spgls.reduction.data import GameData, NullSpace
from spgls.solvers import Controls, PopulationSolver, Solver, SolverLike, play, resolve
from spgls.solvers.reach import reach_of_least_squares
from spgls.solvers.solve import read_controls

__all__ = ["StackelbergRegressorCV", "chosen_model"]

#: Strengths, or None where they depend on the data, honest shares and ridges.
_Grid: TypeAlias = tuple[tuple[float, ...] | None, tuple[float, ...], tuple[float, ...]]
#: The default grid, in units of the strength that closes half the gap against least squares.
_AROUND_AUTO = np.logspace(-3.0, 3.0, 13)
#: Scores that differ by less than this part of themselves are the same.
_SAME = 1e-9


class _Splitter(Protocol):
    """What makes splits of rows, as scikit-learn's ``KFold`` does."""

    def split(self, *args: Any, **kwargs: Any) -> Iterable[Any]:
        """Pairs of arrays of training and test rows."""
        ...


#: Who moves the test rows.
_World: TypeAlias = Number | Population


class StackelbergRegressorCV(StackelbergRegressor):
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
    feature_cost : array-like of shape (n,) or mapping, optional
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

    best_params_: dict[str, float]
    best_index_: int
    best_score_: float
    cv_results_: dict[str, Any]
    worlds_: tuple[Population, ...]
    n_splits_: int

    # Groups are for the splitter, which asks for them itself.
    __metadata_request__fit = {"groups": UNUSED}  # noqa: RUF012

    def __init__(
        self,
        gammas: Numbers | None = None,
        *,
        pull: Number = 0.5,
        honest_shares: Numbers = (0.5,),
        ridges: Numbers = (0.0,),
        world: _World | Sequence[_World] | None = None,
        cv: int | _Splitter | Iterable[tuple[Any, Any]] | None = None,
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

    @all_or_nothing
    @with_callbacks
    def fit(
        self,
        X: Table,
        y: Numbers,
        *,
        z: Numbers | GoalLike | None = None,
        sample_weight: Numbers | None = None,
        groups: Any = None,
        **params: Any,
    ) -> Self:
        """Choose a candidate by cross-validation, and fit it on all rows.

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
            Weights of the rows, not negative, in fits and in scores.
        groups : array-like of shape (m,), optional
            Groups of rows, for a ``cv`` that keeps them together.
        **params
            Further metadata for the ``cv``, where scikit-learn's metadata routing is on.

        Returns
        -------
        StackelbergRegressorCV
            Itself.
        """
        grid, worlds = self._read_grid(), read_worlds(self.world)
        pull = self._read_pull()
        measure = read_measure(self.scoring)
        cautious = check_flag(self.one_standard_error, "one_standard_error")
        solver = self._read_solver(grid)
        controls = read_controls(self.tol, self.max_iter, None, None)
        rng = read_random_state(self.random_state)
        data, table = self._read_data(X, y, z, sample_weight)
        warn_of_scale(data.y, data.z)
        warn_of_idle_goals(data.y, data.z, data.weight, self.goal)
        if worlds is None and self._strengths_are_open(grid):
            warn_of_no_world()
        told = self._for_splitter(groups, params)
        splits = read_splits(self.cv, X, data.y, data.weight, told)
        check_enough_rows(self.scoring, splits)
        metadata = {"z": data.z} | ({} if data.weight is None else {"sample_weight": data.weight})
        progress = Progress(self, solver.capabilities.iterative, X=X, y=y, metadata=metadata)
        controls = type(controls)(controls.tol, controls.max_iter, rng, None)
        search = CrossValidation(data, splits, solver, controls)
        candidates, worlds = _settle(grid, worlds, pull, data, search.solver)
        judge = None if measure else read_judge(self.scoring, data, table, worlds)
        scores, reach = search.scores(candidates, worlds, measure or (lambda mse, _: mse), judge)
        _check_scores(scores)
        best = _choose(scores, reach, cautious)
        self._report(scores, reach, candidates, worlds, best)
        controls = type(controls)(controls.tol, controls.max_iter, rng, progress.on_step)
        ridge = float(candidates.ridges[best])
        population = candidates.population(best)
        (solution,) = play(search.solver, data, [population], ridge, controls)
        self._keep(solution, self.best_params_["gamma"], data.layout.cost, table.dtype)
        progress.end()
        warn_of_status(solution)
        return self

    def _read_grid(self) -> _Grid:
        """Strengths (none where they depend on the data), honest shares and ridges."""
        gammas = None
        if self.gammas is not None:
            gammas = read_grid(self.gammas, "gammas", above=0.0)
        shares = read_grid(self.honest_shares, "honest_shares", at_least=0.0, at_most=1.0)
        return gammas, shares, read_grid(self.ridges, "ridges", at_least=0.0)

    def _read_pull(self) -> float:
        """What default strengths and worlds are made for; refused where there are none."""
        pull = check_pull(self.pull)
        if pull != 0.5 and self.gammas is not None and self.world is not None:
            raise ValueError(
                "pull must stay 0.5 with both gammas and a world, which say how strong providers "
                f"are; got {describe(self.pull)}. Drop one of them to use it."
            )
        return pull

    def _strengths_are_open(self, grid: _Grid) -> bool:
        """Whether somebody means to learn a strength or an honest share from the choice."""
        gammas, shares, _ = grid
        return len(set(shares)) > 1 or (gammas is not None and len(set(gammas)) > 1)

    def _read_solver(self, grid: _Grid) -> Solver:
        solver = resolve(self.solver)
        _, shares, ridges = grid
        if not isinstance(solver, PopulationSolver) and (any(shares) or any(ridges)):
            raise ValueError(
                f"solver {solver.capabilities.name!r} knows neither honest providers nor a ridge. "
                "Pass honest_shares=[0] and ridges=[0], or solver='spectral'."
            )
        return solver

    def _for_splitter(self, groups: Any, params: dict[str, Any]) -> dict[str, Any]:
        """Metadata that the splitter wants."""
        given = params if groups is None else {"groups": groups, **params}
        if not sklearn.get_config()["enable_metadata_routing"]:
            if params:
                raise TypeError(
                    f"fit takes X, y, z, sample_weight and groups; got {', '.join(params)}. Other "
                    "metadata reaches the cv where sklearn.set_config(enable_metadata_routing=True)"
                    " is set."
                )
            return given
        routed: dict[str, Any] = process_routing(self, "fit", **given).splitter.split
        return routed

    def _report(
        self,
        scores: Array,
        reach: Array,
        candidates: Candidates,
        worlds: tuple[Population, ...],
        best: int,
    ) -> None:
        """Set the attributes that say what was compared, and what came of it."""
        names = ("gamma", "honest_share", "ridge")
        results: dict[str, Any] = {
            f"param_{name}": values for name, values in zip(names, candidates, strict=True)
        }
        rows = zip(*(values.tolist() for values in candidates), strict=True)
        results["params"] = [dict(zip(names, row, strict=True)) for row in rows]
        for k, by_split in enumerate(scores):
            end = f"_world{k}" if len(worlds) > 1 else ""
            results |= {f"split{i}_test_score{end}": row for i, row in enumerate(by_split)}
            results[f"mean_test_score{end}"] = by_split.mean(axis=0)
            results[f"std_test_score{end}"] = by_split.std(axis=0)
        results["worst_regret"] = regret = _worst_regret(scores)
        results["rank_test_score"] = rankdata(regret, method="min").astype(np.int32)
        results["mean_reach"] = reach.mean(axis=0)
        self.cv_results_ = results
        self.best_index_ = best
        self.best_params_ = results["params"][best]
        self.best_score_ = float(scores.mean(axis=1)[:, best].min())
        self.worlds_ = worlds
        self.n_splits_ = scores.shape[1]

    def get_metadata_routing(self) -> Any:
        """Tell scikit-learn which metadata this estimator wants, and which its splitter.

        Returns
        -------
        MetadataRouter
        """
        return (
            MetadataRouter(owner=type(self).__name__)
            .add_self_request(super().get_metadata_routing())
            .add(
                splitter=check_cv(self.cv),
                method_mapping=MethodMapping().add(caller="fit", callee="split"),
            )
        )


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


def _settle(
    grid: _Grid, worlds: tuple[Population, ...] | None, pull: float, data: GameData, solver: Any
) -> tuple[Candidates, tuple[Population, ...]]:
    """Candidates and worlds, with what depends on the data filled in."""
    gammas, shares, ridges = grid
    auto = inf
    if gammas is None or worlds is None:
        reach = reach_of_least_squares(data, solver, Controls())
        auto = strength_at(pull, reach.value) or inf
    if gammas is None:
        # Where least squares uses nothing that can be changed no strength makes a difference.
        gammas = tuple((auto * _AROUND_AUTO).tolist()) if auto < inf else (inf,)
    candidates = Candidates(*np.array(list(product(gammas, shares, ridges))).T)
    if worlds is None:
        expected = {candidates.population(i).merged() for i in range(candidates.number)}
        if len(expected) > 1:
            expected = {Population.mixed(auto) if auto < inf else Population((inf,), (1.0,))}
        worlds = tuple(expected)
    return candidates, worlds


def _worst_regret(scores: Array) -> Vector:
    """How far each candidate is from the best of its worst world."""
    means = scores.mean(axis=1)
    return np.asarray((means.max(axis=1, keepdims=True) - means).max(axis=0))


def _choose(scores: Array, reach: Array, cautious: bool) -> int:
    """Index of the candidate with the smallest worst regret, or of one that can hardly be gamed."""
    regret = _worst_regret(scores)
    best = int(regret.argmin())
    rounding = _SAME * float(np.abs(scores[:, :, best].mean(axis=1)).max())
    best = int(np.argmax(regret <= regret[best] + rounding))
    splits = scores.shape[1]
    if not cautious or splits < 2:
        return best
    error = float(scores[:, :, best].std(axis=1, ddof=1).max()) / np.sqrt(splits)
    close = np.flatnonzero(regret <= regret[best] + error)
    return int(close[reach.mean(axis=0)[close].argmin()])


def _check_scores(scores: Array) -> None:
    if not np.isfinite(scores).all():
        _, split, _ = np.argwhere(~np.isfinite(scores))[0]
        raise ValueError(
            f"scoring gave a score that is not finite on split {split}. Pass another scoring, such "
            "as None for squared errors, or a cv with larger folds."
        )
