"""What our estimators share: whom they expect, one fit, and rows that move against them."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from spgls.base.devices import Place, is_foreign, on_host
from spgls.base.frames import column_names, in_container_of
from spgls.base.types import Seed, Vector
from spgls.base.validation import check_flag, check_number, check_strength, describe
from spgls.estimators.conventions import (
    NEW_BEGINNING,
    CallbackSupportMixin,
    Progress,
    html_table,
    linear_of,
    read_again,
    read_random_state,
    warn_of,
    warn_of_status,
)
from spgls.estimators.faced import fitted_strength
from spgls.estimators.placed import (
    as_numpy,
    check_where_fitted,
    like,
    place_to_follow,
    predict_placed,
)
from spgls.game.between import Between, read_between
from spgls.game.costs import read_cost
from spgls.game.moves import Cost, Moves
from spgls.game.providers import Population, PopulationRange, Provider
from spgls.game.response import check_pull, shifted, strength_at
from spgls.matrix import DaskMatrix, as_matrix
from spgls.reduction.data import GameData, read_null_space
from spgls.reduction.game_sums import GameSums
from spgls.reduction.layout import lay_out
from spgls.solvers import (
    Auto,
    Controls,
    Solution,
    Solver,
    Spectral,
    Stats,
    Status,
    play,
    resolve,
)
from spgls.solvers.dispatch import play_sums
from spgls.solvers.reach import Reach, reach_from_sums, reach_of_least_squares
from spgls.solvers.registry import knows_populations
from spgls.solvers.solve import read_controls, read_ridge
from spgls.solvers.statistics import GameStatistics
from spgls.sphere import Certificate

__all__ = ["HONEST", "LinearGame", "Plan", "Predictions", "RandomState", "Targets"]

#: Numbers in the precision of the rows.
Predictions: TypeAlias = NDArray[np.floating[Any]]
#: Anything scikit-learn takes for a source of randomness.
RandomState: TypeAlias = Seed | np.random.RandomState
#: Share of the providers who do not react, unless somebody says otherwise.
HONEST = 0.5


class Targets(NamedTuple):
    """Rows as scikit-learn reads them, and what the game knows of each: label, goal, weight."""

    table: Any
    y: Vector
    z: Vector
    weight: Vector | None


class Plan(NamedTuple):
    """One game to play: whom the learner expects, their strength as it is told, and how."""

    population: Population | PopulationRange
    gamma: Any
    ridge: float
    solver: Solver
    controls: Controls


class Terms(NamedTuple):
    """Parameters of an estimator, checked: whom it expects, and how it is fitted."""

    gamma: Any
    honest: float | Between | None
    pull: Between
    ridge: float
    decay: float
    solver: Solver
    controls: Controls

    def plan(self, data: GameData | GameSums) -> tuple[Plan, str]:
        """The game on some data, or on sums of it, and where the strength comes from."""
        gamma, rule = self.gamma, "given"
        if isinstance(gamma, str):
            reach = self._reach(data)
            # The larger pull is the stronger.
            ends = (self.pull.high, self.pull.low)
            strengths = Between(*(strength_at(end, reach.value) or np.inf for end in ends))
            gamma, rule = _one_or_both(strengths), str(reach)
        population = _people(gamma, self.honest)
        one = isinstance(population, Population) and len(population.gammas) == 1
        paper = one and not self.ridge and not data.layout.avoids_null
        if not paper and not knows_populations(self.solver):
            raise ValueError(
                f"solver {self.solver.capabilities.name!r} knows neither honest providers nor a "
                "ridge, and uses null spaces. Pass honest_share=0, ridge=0 and null_space='use', "
                "or solver='spectral'."
            )
        return Plan(population, gamma, self.ridge, self.solver, self.controls), rule

    def _reach(self, data: GameData | GameSums) -> Reach:
        """How large least squares is."""
        if isinstance(data, GameSums):
            return reach_from_sums(data)
        # What a fit draws at random does not depend on how its strength was found.
        told = self.controls
        controls = told if told.rng is None else replace(told, rng=None)
        return reach_of_least_squares(data, self.solver, controls)


# scikit-learn has no types, so a checker takes its classes for anything; so in subclasses.
class LinearGame(CallbackSupportMixin, BaseEstimator):  # type: ignore[misc]
    """A linear model fitted against people who change their data; its kind of labels is open."""

    gamma: Any
    pull: Any
    honest_share: Any
    goal: Any
    feature_cost: Any
    fit_intercept: Any
    ridge: Any
    null_space: Any
    decay: Any
    solver: Any
    tol: Any
    max_iter: Any
    random_state: Any

    coef_: Predictions
    intercept_: np.floating[Any]
    alpha_: float | Vector
    gamma_: float | Vector
    gamma_rule_: str
    feature_cost_: Vector | Moves
    objective_: float
    binding_: tuple[Population, ...]
    regret_: float
    status_: Status
    certificate_: Certificate
    stats_: Stats
    solver_: str
    n_iter_: int
    statistics_: GameStatistics
    n_features_in_: int
    feature_names_in_: NDArray[np.object_]

    def _read_targets(
        self, X: Any, y: Any, z: Any, sample_weight: Any, *, reset: bool = True
    ) -> Targets:
        """Rows, labels, goals and weights as this kind of model reads them.

        Unless ``reset``, the columns have to be those of earlier rows.
        """
        raise NotImplementedError

    def _read_terms(self) -> Terms:
        """The parameters, checked before any data is."""
        gamma, honest = self._read_providers()
        return Terms(
            gamma,
            honest,
            self._read_pulls(),
            read_ridge(self.ridge),
            check_number(self.decay, "decay", above=0.0, at_most=1.0),
            resolve(self.solver),
            read_controls(self.tol, self.max_iter, read_random_state(self.random_state), None),
        )

    def _read_data(self, X: Any, y: Any, z: Any, sample_weight: Any) -> tuple[GameData, Any]:
        """The game, and its rows as scikit-learn reads them."""
        fit_intercept = check_flag(self.fit_intercept, "fit_intercept")
        targets = self._read_targets(X, y, z, sample_weight)
        # Names are asked of X itself: scikit-learn does not know every version of every data frame.
        given = as_matrix(targets.table, check_finite=False)
        matrix, layout = lay_out(
            given,
            read_cost(self.feature_cost, targets.table.shape[1], column_names(X)),
            fit_intercept=fit_intercept,
            avoids_null=read_null_space(self.null_space),
        )
        data = GameData(matrix, targets.y, targets.z, targets.weight, layout, source=X, given=given)
        return data, targets.table

    def _game_on(self, sums: GameStatistics) -> GameSums:
        """The game on rows that were added up, their columns by name where they have some."""
        return sums.game(
            read_cost(self.feature_cost, sums.n_features, sums.names),
            fit_intercept=check_flag(self.fit_intercept, "fit_intercept"),
            avoids_null=read_null_space(self.null_space),
        )

    def _doubts(self, data: GameData) -> tuple[str | None, ...]:
        """What the caller of fit should be warned of before anything is solved."""
        raise NotImplementedError

    def _doubts_of_sums(self, sums: GameStatistics) -> tuple[str | None, ...]:
        """What the caller of partial_fit should be warned of."""
        raise NotImplementedError

    def _solve(self, terms: Terms, data: GameData, table: Any, X: Any, y: Any) -> Solution:
        """Settle whom to expect, solve the game and keep what came of it."""
        # Rows of earlier calls of partial_fit have no part in it.
        if self._has_sums:
            del self.statistics_
        plan, rule = terms.plan(data)
        solution = self._play(plan, data, table, self._progress(plan.solver, data, X, y))
        self.gamma_rule_ = rule
        return solution

    def _read_terms_of_sums(self) -> Terms:
        """The parameters of a fit to sums of rows, checked before any data is."""
        terms = self._read_terms()
        if not isinstance(terms.solver, Auto | Spectral):
            raise ValueError(
                f"partial_fit solves from sums of the rows; got solver={self.solver!r}. Pass "
                "solver='auto' or 'spectral', or call fit with all rows."
            )
        return terms

    @property
    def _has_sums(self) -> bool:
        """Whether rows are added to those of earlier calls."""
        return hasattr(self, "statistics_")

    def _add(self, terms: Terms, rows: Targets, source: Any) -> Self:
        """Add rows to those of earlier calls, solve the game on their sums, and keep both.

        Only ``partial_fit`` calls it: warnings are for whoever called that.
        """
        known = self.statistics_ if self._has_sums else None
        if known is None and hasattr(self, "coef_"):
            warn_of([NEW_BEGINNING], adding=True)
        matrix = as_matrix(rows.table, check_finite=False)
        sums = GameStatistics.of(matrix, rows.y, rows.z, rows.weight, source=source)
        if known is not None:
            sums = known.decayed(terms.decay) + sums
        warn_of(self._doubts_of_sums(sums), adding=True)
        game = self._game_on(sums)
        plan, self.gamma_rule_ = terms.plan(game)
        (solution,) = play_sums(game, [plan.population], plan.ridge, plan.controls.tol)
        dtype = matrix.dtype if known is None else np.asarray(on_host(self.coef_)).dtype
        place = place_to_follow(rows.table)
        self._keep(solution, plan.gamma, game.layout.given_cost, dtype, place)
        self.statistics_ = sums
        warn_of_status(solution, adding=True)
        return self

    def _progress(self, solver: Solver, data: GameData, X: Any, y: Any) -> Progress:
        """The tasks of a fit, for scikit-learn's callbacks."""
        metadata = {"z": data.z} | ({} if data.weight is None else {"sample_weight": data.weight})
        return Progress(self, solver.capabilities.iterative, X=X, y=y, metadata=metadata)

    def _play(self, plan: Plan, data: GameData, table: Any, progress: Progress) -> Solution:
        """Solve one game, and keep what came of it."""
        told = plan.controls
        controls = Controls(told.tol, told.max_iter, told.rng, progress.on_step)
        (solution,) = play(plan.solver, data, [plan.population], plan.ridge, controls)
        place = place_to_follow(table)
        self._keep(solution, plan.gamma, data.layout.given_cost, data.matrix.dtype, place)
        self._complete(plan.population, data, table)
        progress.end()
        return solution

    def _complete(
        self, population: Population | PopulationRange, data: GameData, table: Any
    ) -> None:
        """Whatever a model adds to coefficients and intercept."""

    def _read_providers(self) -> tuple[Any, float | Between | None]:
        """Strength and honest share as they were given, checked."""
        if isinstance(self.gamma, Population | PopulationRange):
            share: object = self.honest_share
            if share is not None and not (isinstance(share, Real) and share == HONEST):
                raise ValueError(
                    f"honest_share must stay {HONEST}, its default, with a Population, which "
                    f"holds its own shares; got {describe(share)}. Population.mixed(gamma, "
                    "honest=0.5) makes one with honest providers."
                )
            return self.gamma, None
        told = HONEST if self.honest_share is None else self.honest_share
        honest = _one_or_both(read_between(told, "honest_share", at_least=0.0, at_most=1.0))
        if isinstance(self.gamma, str) and self.gamma == "auto":
            return "auto", honest
        advice = (
            "Or pass 'auto', or a Population. Small is strong; gamma_from_pull finds the one at "
            "which providers close a given share of the gap to their goal."
        )
        gamma = read_between(self.gamma, "gamma", infinite=True, above=0.0, advice=advice)
        return _one_or_both(gamma), honest

    def _expected(self) -> tuple[Population, float]:
        """Whom the fitted model expects, and the ridge of its fit; a range is refused."""
        gamma, honest = self._read_providers()
        if isinstance(gamma, str):
            strengths = np.atleast_1d(self.gamma_)
            gamma = _one_or_both(Between(strengths[0], strengths[-1]))
        population = _people(gamma, honest)
        if isinstance(population, PopulationRange):
            raise ValueError(
                f"this model was fitted against a range, {population}, and what is asked for needs "
                "one population. Fit it with numbers in the place of Between."
            )
        return population, read_ridge(self.ridge)

    def _read_pulls(self) -> Between:
        """What "auto" aims at; refused beside a strength that was given."""
        told = self.pull
        ends = (told.low, told.high) if isinstance(told, Between) else (told, told)
        pull = Between(*(check_pull(end) for end in ends))
        if not isinstance(self.gamma, str) and pull != Between(0.5, 0.5):
            raise ValueError(
                f"pull must stay 0.5 with gamma={self.gamma!r}, which says how strong providers "
                f"are; got {describe(self.pull)}. Pass gamma='auto' with it."
            )
        return pull

    def _keep(
        self,
        solution: Solution,
        gamma: Any,
        cost: Cost,
        dtype: np.dtype[Any],
        place: Place | None,
    ) -> None:
        """Set the fitted attributes, arrays where the rows are."""
        reach = Provider(solution.coef, 0.0, np.inf, cost).reach
        self.gamma_ = _strengths(gamma)
        self.alpha_ = reach / self.gamma_
        self.coef_ = like(place, solution.coef.astype(dtype, copy=False))
        self.intercept_ = dtype.type(solution.intercept)
        self.feature_cost_ = like(place, np.ones(self.n_features_in_) if cost is None else cost)
        self.objective_ = solution.objective
        self.binding_, self.regret_ = solution.binding, solution.regret
        self.status_ = solution.status
        self.certificate_ = solution.certificate
        self.stats_ = solution.stats
        self.solver_ = solution.solver
        self.n_iter_ = max(1, solution.stats.iterations)

    def _said(self, X: Any) -> tuple[Any, Predictions]:
        """Rows for a fitted model, and ``w'x + b`` of each."""
        check_is_fitted(self)
        place = place_to_follow(X)
        if place is not None:
            return X, predict_placed(self, X, place)
        if is_foreign(self.coef_):
            check_where_fitted(self, X)
        table = read_again(self, X)
        return table, linear_of(self, table)

    def _dense_rows(self, X: Any) -> Any:
        """Rows for a fitted model that are going to be moved."""
        check_is_fitted(self)
        if sp.issparse(X):
            raise TypeError(
                f"X must be dense, because the rows returned are; got {describe(X)}. Use "
                "spgls.movement, which gives the step of each row and the common direction, or "
                "pass X.toarray()."
            )
        table = read_again(self, X, accept_sparse=False)
        return table.lazy_rows(dense=True) if isinstance(table, DaskMatrix) else table

    def _moved(self, X: Any, table: Any, step: Vector, direction: Vector) -> Any:
        """Rows after each has moved, in the container of ``X``."""
        if is_foreign(table):
            return shifted(table, step, direction)
        moved = table + step[:, None] * direction
        return in_container_of(X, moved.astype(table.dtype, copy=False))

    def _facing(self, gamma: Any, m: int) -> Provider:
        """The provider who faces this model."""
        own = gamma is None
        strength = fitted_strength(self.gamma_) if own else check_strength(gamma, m)
        coef = np.asarray(on_host(self.coef_), dtype=np.float64)
        cost: Cost = as_numpy(self.feature_cost_)
        return Provider(coef, float(self.intercept_), strength, cost)

    def get_metadata_routing(self) -> Any:
        """Tell scikit-learn which metadata this estimator wants; without a goal it wants ``z``.

        Returns
        -------
        MetadataRequest
        """
        request = super().get_metadata_routing()
        for method in ("fit", "partial_fit"):
            wanted = getattr(request, method)
            if "z" in wanted.requests and wanted.requests["z"] is None:
                wanted.add_request(param="z", alias=self.goal is None)
        return request

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        # As text, which model files can hold.
        if "status_" in state:
            state = state | {"status_": state["status_"].value}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "status_" in state:
            state = state | {"status_": Status(state["status_"])}
        super().__setstate__(state)

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


def population_of(gamma: float | Population, honest: float | None) -> Population:
    """A population as it is, or one of honest providers and others of some strength."""
    if isinstance(gamma, Population):
        return gamma
    return Population.of_one(float(gamma), float(honest or 0.0))


def _people(gamma: Any, honest: Any) -> Population | PopulationRange:
    """The same where strength, or honest share, may be a range."""
    if isinstance(gamma, PopulationRange):
        return gamma
    # Where nobody has anything to gain it does not matter how many are honest.
    idle = isinstance(gamma, float) and np.isinf(gamma)
    if isinstance(gamma, Between) or (isinstance(honest, Between) and not idle):
        return PopulationRange.of(gamma, honest)
    return population_of(gamma, None if idle else honest)


def _one_or_both(ends: Between) -> float | Between:
    """A number where both ends of a range are the same."""
    return ends.low if ends.known else ends


def _strengths(gamma: Any) -> float | Vector:
    """Strengths that a fit assumes: one, those of groups, or the ends of a range."""
    if isinstance(gamma, Population):
        return np.array(gamma.gammas)
    if isinstance(gamma, PopulationRange):
        gamma = _one_or_both(gamma.gamma)
    return np.array([gamma.low, gamma.high]) if isinstance(gamma, Between) else gamma
