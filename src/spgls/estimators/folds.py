"""Scores of many models on held-out rows that providers have moved, all models in the same world.

A model is a population that the learner expects and a ridge; it is fitted on the training rows of
a split. A world is the population that it meets on the test rows, whatever it expected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np

from spgls.base.threads import FEW_COLUMNS, one_blas_thread
from spgls.base.types import EPS, Array, Vector
from spgls.game.providers import Population, priced_norms
from spgls.population.many import solve_pairs
from spgls.reduction.columns import ColumnReduction
from spgls.reduction.data import GameData
from spgls.reduction.exact import reduce_spectral
from spgls.reduction.fold_sums import Pieces, Split, Splits, cut_into_pieces
from spgls.solvers import Controls, Solution, Solver, check_memory, play
from spgls.solvers.auto import Auto, make_plan
from spgls.solvers.by_reduction import Engine, on_trusted_reductions
from spgls.solvers.recover import Mask, squares_suffice
from spgls.solvers.small import ULPS
from spgls.solvers.spectral import Spectral

__all__ = ["Candidates", "CrossValidation", "Judge", "Measure", "Models"]

#: Where moments leave a squared error in doubt by more than this part, it is measured on the rows.
_DOUBT = 1e-9


class Candidates(NamedTuple):
    """Models to compare: the strength and the honest share that each expects, and its ridge.

    An infinite strength, or an honest share of one, expects nobody to move.
    """

    gammas: Vector
    honest: Vector
    ridges: Vector

    @property
    def number(self) -> int:
        """How many they are."""
        return len(self.ridges)

    def population(self, i: int) -> Population:
        """Whom a candidate expects."""
        return Population.of_one(float(self.gammas[i]), float(self.honest[i]))

    def taken(self, some: np.ndarray) -> Candidates:
        """Some of them."""
        return Candidates(*(part[some] for part in self))


class Models(NamedTuple):
    """Linear models: coefficients of shape (n, models), intercepts and squared priced norms.

    Of the columns of the game, which may be those of the data combined.
    """

    coef: Array
    intercept: Vector
    reach: Vector


#: Scores by world and model, from mean squared errors and the variance of the labels.
Measure: TypeAlias = Callable[[Array, float], Array]
#: Scores by world and model, from the rows of a split and the models fitted to its training rows.
Judge: TypeAlias = Callable[[Split, Models], Array]


class CrossValidation:
    """The splits of some data, prepared such that many models can be compared on them.

    With the spectral solver all models of a split come from one reduction of its training set, and
    all training sets from one read of the data, as far as they share pieces. Other solvers, and
    those of data with more columns than rows, get the training rows themselves.

    Parameters
    ----------
    data : GameData
        All of the data. What is found out about it on the way is kept with it.
    splits : sequence of Split
        Training and test rows.
    solver : Solver
        How models are fitted.
    controls : Controls
        Tolerance and limits.

    Attributes
    ----------
    solver : Solver
        The same, or what an automatic choice came to: the one whose reductions are kept.
    """

    def __init__(
        self,
        data: GameData,
        splits: Sequence[Split],
        solver: Solver,
        controls: Controls,
    ) -> None:
        self.data, self.splits = data, splits
        self.solver, self.controls = solver, controls
        m, n = data.matrix.shape
        self._groups: list[Splits] = []
        tall = min(map(self._counted, splits)) > n
        if tall and isinstance(solver, Auto):
            plan = make_plan(data.work, len(splits), mixed=True)
            self.solver = Spectral() if plan.solver == "spectral" else solver
        if tall and isinstance(self.solver, Spectral):
            check_memory(self.solver, data, len(splits))
            self._engine: Engine = self.solver.engine
            self._groups = list(cut_into_pieces(splits, m, n))
            self._first = Pieces(data, self._groups[0].piece)
            if self._engine != "qr":
                reduce_spectral(data, "gram", partial(self._first.reduce_all, "gram"))

    def _counted(self, split: Split) -> int:
        """Training rows that have a weight."""
        weight = self.data.weight
        return len(split.train) if weight is None else int(np.count_nonzero(weight[split.train]))

    def scores(
        self,
        candidates: Candidates,
        worlds: Sequence[Population],
        measure: Measure,
        judge: Judge | None = None,
    ) -> tuple[Array, Array]:
        """Fit every candidate on every training set, and judge it on the test set in every world.

        Parameters
        ----------
        candidates : Candidates
            Models to compare.
        worlds : sequence of Population
            Whom they meet.
        measure : callable
            Scores from mean squared errors.
        judge : callable, optional
            Scores from the models and test rows themselves, instead.

        Returns
        -------
        scores : ndarray of shape (worlds, splits, candidates)
            Greater is better.
        reach : ndarray of shape (splits, candidates)
            Squared priced norms of the coefficients.
        """
        shape = len(self.splits), candidates.number
        scores, reach = np.empty((len(worlds), *shape)), np.empty(shape)
        for number, models, errors in self._fits(candidates, judge is None):
            test = self.splits[number].test
            reach[number] = models.reach
            if judge is not None:
                layout = self.data.layout
                coef = layout.outwards(models.coef)
                intercept = models.intercept - layout.offset(coef)
                scores[:, number] = judge(
                    self.splits[number], Models(coef, intercept, models.reach)
                )
                continue
            if errors is None:
                errors = _on_rows(self._rows(test), models)
            elif errors.doubtful.any():
                errors = errors.corrected(self._rows(test), models)
            means = errors.means(models.reach, worlds)
            scores[:, number] = measure(means, self._variance(test))
        return scores, reach

    def _fits(
        self, candidates: Candidates, with_errors: bool
    ) -> Iterator[tuple[int, Models, _Errors | None]]:
        """Models of every split, and their errors where those need no rows."""
        if not self._groups:
            for number, split in enumerate(self.splits):
                train = self._rows(split.train)
                yield number, _directly(train, candidates, self.solver, self.controls), None
        for group in self._groups:
            pieces = self._first
            if group is not self._groups[0]:
                pieces = Pieces(self.data, group.piece)
            few = self.data.matrix.shape[1] <= FEW_COLUMNS
            for at, number in enumerate(group.which):
                with one_blas_thread(few):
                    fitted = _together(
                        pieces, group.train[at], candidates, self._engine, self.controls.tol
                    )
                    errors = _by_moments(pieces, group.test[at], fitted) if with_errors else None
                yield number, _uprooted(pieces, fitted), errors
            if pieces.factored:
                reduce_spectral(self.data, "qr", partial(pieces.reduce_all, "qr"))

    def _variance(self, rows: np.ndarray) -> float:
        """Variance of some of the labels, counted by weight."""
        y = self.data.y[rows]
        weight = np.ones(len(y)) if self.data.weight is None else self.data.weight[rows]
        rest = y - np.average(y, weights=weight)
        return float(weight @ (rest * rest)) / float(weight.sum())

    def _rows(self, rows: np.ndarray) -> GameData:
        """The game on some of the rows."""
        data = self.data
        return replace(
            data,
            matrix=data.matrix.take(rows),
            y=data.y[rows],
            z=data.z[rows],
            weight=None if data.weight is None else data.weight[rows],
        )


class _Errors(NamedTuple):
    """Sums over test rows of ``(h - y)^2``, ``(h - y)(z - y)``, ``(z - y)^2`` and weights.

    The first two by model; ``doubtful`` says where rounding may have had a say in them.
    """

    own: Vector
    mixed: Vector
    gap: float
    total: float
    doubtful: np.ndarray

    def corrected(self, test: GameData, models: Models) -> _Errors:
        """The same, with what is in doubt measured on the rows."""
        own, mixed, some = self.own.copy(), self.mixed.copy(), np.flatnonzero(self.doubtful)
        exact = _on_rows(test, Models(*(part[..., some] for part in models)))
        own[some], mixed[some] = exact.own, exact.mixed
        return self._replace(own=own, mixed=mixed, doubtful=np.zeros_like(self.doubtful))

    def means(self, reach: Vector, worlds: Sequence[Population]) -> Array:
        """Mean squared errors of each model in each world, of shape (worlds, models)."""
        out = np.zeros((len(worlds), len(reach)))
        for row, world in zip(out, worlds, strict=True):
            for gamma, share in zip(world.gammas, world.shares, strict=True):
                # What is left of a prediction's error, and what a goal adds to it.
                s = 1.0 / (1.0 + reach / gamma)
                c = reach / gamma * s
                row += share * (s * s * self.own + 2.0 * s * c * self.mixed + c * c * self.gap)
        return np.maximum(out, 0.0) / self.total


def _on_rows(test: GameData, models: Models) -> _Errors:
    error = test.matrix.apply(models.coef) + models.intercept - test.y[:, None]
    gap = test.z - test.y
    weight = np.ones(len(gap)) if test.weight is None else test.weight
    return _Errors(
        own=weight @ (error * error),
        mixed=(weight * gap) @ error,
        gap=test.loss(gap),
        total=test.total_weight,
        doubtful=np.zeros(error.shape[1], dtype=bool),
    )


def _by_moments(pieces: Pieces, counts: Vector, models: Models) -> _Errors:
    """The same from the moments of the test rows; models are those of the pieces' origin."""
    moment, data = pieces.moment(counts), pieces.data
    n = len(models.coef)
    error = np.zeros((len(moment), len(models.reach)))
    error[:n], error[n] = models.coef, -1.0
    # From labels to goals, which have an origin of their own.
    gap = np.zeros(len(moment))
    gap[n], gap[n + 1] = -1.0, 1.0
    if data.layout.fit_intercept:
        error[-1], gap[-1] = models.intercept, data.origin.z - data.origin.y
    times, pull = moment @ error, moment @ gap
    own = np.einsum("ij,ij->j", error, times)
    # Large terms that cancel leave the rounding of their squares.
    terms = np.diag(moment) @ (error * error)
    return _Errors(
        own=own,
        mixed=pull @ error,
        gap=float(gap @ pull),
        total=float(counts @ pieces.weights),
        doubtful=~(64 * EPS * terms <= _DOUBT * own),
    )


def _directly(
    train: GameData, candidates: Candidates, solver: Solver, controls: Controls
) -> Models:
    """Fit models on the training rows themselves, those of one ridge together if that gains."""
    fits: dict[int, Solution] = {}
    for ridge in np.unique(candidates.ridges).tolist():
        some = np.flatnonzero(candidates.ridges == ridge).tolist()
        games = [candidates.population(i) for i in some]
        fits |= zip(some, play(solver, train, games, ridge, controls), strict=True)
    coef = np.column_stack([fits[i].coef for i in range(candidates.number)])
    intercept = np.array([fits[i].intercept for i in range(candidates.number)])
    reach = priced_norms(coef, train.layout.given_cost)
    return Models(train.layout.inwards(coef), intercept + train.layout.offset(coef), reach)


def _together(
    pieces: Pieces, counts: Vector, candidates: Candidates, engine: Engine, tol: float
) -> Models:
    """Fit all models of a training set, on rows and labels less the pieces' origin."""
    count, n = candidates.number, pieces.data.matrix.shape[1]
    found = Models(np.empty((n, count)), np.empty(count), np.empty(count))

    def attempt(reduction: ColumnReduction, which: np.ndarray) -> Mask:
        these = candidates.taken(which)
        # Where the data has a null space, what is out of the ordinary is not trusted anyway.
        last = engine != "auto" or not reduction.squared
        thorough = last or reduction.game.nullity == 0
        # The tolerances of the spectral solver, for populations and for one strength.
        optima = solve_pairs(
            reduction.game, *these, tol=tol / 4, single_tol=tol, ulps=ULPS, thorough=thorough
        )
        alpha, stay, go = optima.t / these.gammas, these.honest, 1.0 - these.honest
        s = 1.0 / (1.0 + alpha)
        # The alpha of the one provider whose best free part is the population's.
        pull = go * alpha * s * s / (stay + go * s * s)
        v = reduction.lift_many(optima.x, optima.fill)
        coef = reduction.layout.coefficients(v, reduction.free_part(v, pull))
        found.coef[:, which] = coef
        found.intercept[which] = reduction.intercepts_at_origin(coef, pull)
        found.reach[which] = optima.t
        return squares_suffice(reduction, optima, go * (alpha * s) ** 2, tol)

    on_trusted_reductions(engine, count, partial(pieces.reduce, counts), attempt)
    return found


def _uprooted(pieces: Pieces, models: Models) -> Models:
    """The same models for rows and labels as they came."""
    intercept = pieces.data.origin.intercepts(models.coef, models.intercept)
    return models._replace(intercept=intercept)
