"""Strength, honest share and ridge chosen by cross-validation, whatever the kind of labels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from math import inf
from typing import Any, NoReturn, Protocol, Self, TypeAlias

import numpy as np
import sklearn
from scipy.stats import rankdata
from sklearn.base import is_classifier
from sklearn.model_selection import check_cv
from sklearn.utils.metadata_routing import UNUSED, MetadataRouter, MethodMapping, process_routing

from spgls.base.types import Array, Classes, Number, Numbers, Table, Vector
from spgls.base.validation import check_flag, describe
from spgls.estimators.conventions import (
    all_or_nothing,
    read_random_state,
    warn_of,
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
from spgls.estimators.folds import Candidates, CrossValidation, Judge, Measure
from spgls.estimators.linear_game import LinearGame, Plan, population_of
from spgls.game.goals import GoalLike
from spgls.game.providers import Population
from spgls.game.response import check_pull, strength_at
from spgls.matrix import Matrix
from spgls.reduction.data import GameData
from spgls.solvers import Controls, Solver, resolve
from spgls.solvers.reach import reach_of_least_squares
from spgls.solvers.registry import knows_populations
from spgls.solvers.solve import read_controls

__all__ = ["CrossValidated", "Splitter", "World"]

#: Strengths, or None where they depend on the data, honest shares and ridges.
_Grid: TypeAlias = tuple[tuple[float, ...] | None, tuple[float, ...], tuple[float, ...]]
#: The default grid, in units of the strength that closes half the gap against least squares.
_AROUND_AUTO = np.logspace(-3.0, 3.0, 13)
#: Scores that differ by less than this part of themselves are the same.
_SAME = 1e-9


class Splitter(Protocol):
    """What makes splits of rows, as scikit-learn's ``KFold`` does."""

    def split(self, *args: Any, **kwargs: Any) -> Iterable[Any]:
        """Pairs of arrays of training and test rows."""
        ...


#: Who moves the test rows.
World: TypeAlias = Number | Population


class CrossValidated(LinearGame):
    """A model whose strength, honest share and ridge are chosen by cross-validation."""

    gammas: Any
    honest_shares: Any
    ridges: Any
    world: Any
    cv: Any
    scoring: Any
    one_standard_error: Any

    best_params_: dict[str, float]
    best_index_: int
    best_score_: float
    cv_results_: dict[str, Any]
    worlds_: tuple[Population, ...]
    n_splits_: int

    # Groups are for the splitter, which asks for them itself.
    __metadata_request__fit = {"groups": UNUSED}  # noqa: RUF012

    @property
    def partial_fit(self) -> NoReturn:
        """Not here: rows that were added up cannot be split."""
        name = type(self).__name__
        raise AttributeError(
            f"{name} has no partial_fit: rows that were added up cannot be split into folds. "
            f"Choose on some rows, and pass the choice to {name.removesuffix('CV')}."
        )

    @all_or_nothing
    @with_callbacks
    def fit(
        self,
        X: Table | Matrix,
        y: Classes,
        *,
        z: Classes | GoalLike | None = None,
        sample_weight: Numbers | None = None,
        groups: Any = None,
        **params: Any,
    ) -> Self:
        """Choose a candidate by cross-validation, and fit it on all rows.

        Parameters
        ----------
        X : array-like, data frame, sparse matrix or Matrix of shape (m, n)
            Rows before anyone moves them.
        y : array-like of shape (m,)
            True labels.
        z : array-like of shape (m,) or callable, optional
            Goals: the prediction, or the class, that each provider would like, or a function of the
            labels. By default ``goal`` of the labels.
        sample_weight : array-like of shape (m,), optional
            Weights of the rows, not negative, in fits and in scores.
        groups : array-like of shape (m,), optional
            Groups of rows, for a ``cv`` that keeps them together.
        **params
            Further metadata for the ``cv``, where scikit-learn's metadata routing is on.

        Returns
        -------
        self
            The estimator, fitted.
        """
        grid, worlds = self._read_grid(), read_worlds(self.world)
        pull = self._read_pull()
        measure = self._read_measure()
        cautious = check_flag(self.one_standard_error, "one_standard_error")
        solver = self._read_solver(grid)
        rng = read_random_state(self.random_state)
        controls = read_controls(self.tol, self.max_iter, rng, None)
        data, table = self._read_data(X, y, z, sample_weight)
        warn_of(self._doubts(data))
        if worlds is None and self._strengths_are_open(grid):
            warn_of_no_world()
        told = self._for_splitter(groups, params)
        splits = read_splits(self.cv, X, data, told, stratified=is_classifier(self))
        check_enough_rows(self.scoring, splits)
        progress = self._progress(solver, data, X, y)
        search = CrossValidation(data, splits, solver, controls)
        candidates, worlds = _settle(grid, worlds, pull, data, search.solver)
        judge = None if measure else self._read_judge(data, table, candidates, worlds)
        scores, reach = search.scores(candidates, worlds, measure or (lambda mse, _: mse), judge)
        _check_scores(scores)
        best = _choose(scores, reach, cautious)
        self._report(scores, reach, candidates, worlds, best)
        chosen = Plan(
            candidates.population(best),
            self.best_params_["gamma"],
            float(candidates.ridges[best]),
            search.solver,
            controls,
        )
        warn_of_status(self._play(chosen, data, table, progress))
        return self

    def _read_measure(self) -> Measure | None:
        """How scores follow from squared errors; None where they do not."""
        return read_measure(self.scoring)

    def _read_judge(
        self, data: GameData, table: Any, candidates: Candidates, worlds: Sequence[Population]
    ) -> Judge:
        """How models are scored on test rows, where squared errors do not tell."""
        return read_judge(self.scoring, data, table, worlds)

    def _expected(self) -> tuple[Population, float]:
        chosen = self.best_params_
        return population_of(chosen["gamma"], chosen["honest_share"]), float(chosen["ridge"])

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
        if not knows_populations(solver) and (any(shares) or any(ridges)):
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
