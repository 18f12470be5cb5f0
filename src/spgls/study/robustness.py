"""What manipulation would do to models that somebody already has.

The error of a model on rows of which the share ``s`` is strategic is ``(1 - s)`` times that on
honest rows plus ``s`` times that on attacked ones, so two numbers for each strength say it all.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from spgls.base.frames import data_frame
from spgls.base.types import Array, Classes, Numbers, Table, Vector
from spgls.base.validation import (
    check_choice,
    check_flag,
    check_number,
    check_vector,
    check_weight,
)
from spgls.estimators.faced import face
from spgls.game.costs import Costs
from spgls.game.errors import ErrorMeans, error_from_goals, error_of_mean, pull_of
from spgls.game.goals import GoalLike, read_goals
from spgls.game.providers import Population, Provider
from spgls.game.response import strength_at
from spgls.matrix import as_matrix
from spgls.reduction.data import GameData
from spgls.reduction.layout import lay_out
from spgls.solvers import play, resolve
from spgls.solvers.solve import read_controls
from spgls.study.named_models import decides, face_model, read_models, seen_by
from spgls.study.robust_decisions import DecisionRobustness, judge_decisions
from spgls.study.thresholds import METRICS, Thresholds, percent, wrapped

__all__ = ["Robustness", "robustness"]

_PULLS = (0.1, 0.25, 0.5, 0.75, 0.9)
#: Losses below this share of the labels' variance are nothing to act upon.
_LITTLE = 0.01
#: The part of its accuracy whose loss is told unprompted.
_LOSS = 0.1


@dataclass(frozen=True, eq=False, repr=False)
class Robustness:
    """Errors of models against providers of several strengths and shares.

    Attributes
    ----------
    models, gammas, shares : tuple of k str, ndarray of shape (g,), ndarray of shape (s,)
        Names of the models, strengths of the strategic providers, and their shares.
    honest, attacked : ndarray of shape (k,), ndarray of shape (k, g)
        Mean squared errors on rows as they are, and on rows that everyone moved.
    pull : ndarray of shape (k, g)
        Share of the gap to their goals that providers close against each model.
    from_goal : float
        Mean squared error of the best affine function of the goals alone, "y from z alone".
    best : ndarray of shape (g, s), optional
        Least mean squared error of any linear model on these very rows, not held out from it.
    variance, metric : float, {"r2", "mse", "rmse"}
        Mean squared error of predicting the mean label; what tables are in.
    reach, means : ndarray of shape (k,), ErrorMeans
        Squared priced norms of the coefficients, and the means from which errors at any other
        strength follow.
    """

    models: tuple[str, ...]
    gammas: Vector
    shares: Vector
    honest: Vector
    attacked: Array
    pull: Array
    from_goal: float
    best: Array | None
    variance: float
    metric: str
    reach: Vector
    means: ErrorMeans

    @property
    def errors(self) -> Array:
        """Mean squared errors, of shape (k, g, s)."""
        honest, attacked = self.honest[:, np.newaxis, np.newaxis], self.attacked[:, :, np.newaxis]
        return np.asarray((1.0 - self.shares) * honest + self.shares * attacked)

    @property
    def scores(self) -> Array:
        """The errors in the metric that was asked for."""
        return np.asarray(self._score(self.errors))

    def attacked_by(self, gamma: Any) -> Vector:
        """Mean squared error of each model on rows that everyone moved with some strength.

        Parameters
        ----------
        gamma : float
            Strength, which need not be among :attr:`gammas`.

        Returns
        -------
        ndarray of shape (k,)
        """
        strength = check_number(gamma, "gamma", above=0.0)
        return np.asarray(self.means.at(pull_of(self.reach, strength)))

    def thresholds(self, loss: Any = _LOSS) -> Thresholds:
        """Say from which pull, strength and strategic share on manipulation hurts each model.

        Parameters
        ----------
        loss : float
            How much of its accuracy a model may lose: a part of its R2 on honest rows, or with
            the other metrics the part by which its error grows.

        Returns
        -------
        Thresholds

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from sklearn.linear_model import Ridge
        >>> from spgls import Floor, robustness
        >>> X, y = load_diabetes(return_X_y=True)
        >>> found = robustness(Ridge(0.1).fit(X, y), X, y, Floor(250)(y))
        >>> limits = found.thresholds(loss=0.05)
        >>> float(limits.pull[0].round(3)), float(limits.share[0, -1].round(3))
        (0.126, 0.015)
        """
        part = check_number(loss, "loss", above=0.0)
        if self.metric == "r2":
            lost = part * (self.variance - self.honest)
        else:
            lost = self.honest * ((1.0 + part) ** (2 if self.metric == "rmse" else 1) - 1.0)
        # A model that is no better than the mean label has no R2 to lose.
        missing = np.where(lost > 0.0, lost, math.nan) if self.metric == "r2" else lost
        level = self.honest + missing
        pull = np.where(self.reach > 0.0, self.means.pull_reaching(level), math.nan)
        with np.errstate(divide="ignore", invalid="ignore"):
            gamma = self.reach * (1.0 - pull) / pull
            share = missing[:, np.newaxis] / (self.attacked - self.honest[:, np.newaxis])
        # Where the error falls the share is negative, and where it stays not finite.
        within = (share >= 0.0) & (share <= 1.0)
        return Thresholds(
            models=self.models,
            gammas=self.gammas,
            loss=part,
            metric=self.metric,
            level=level,
            pull=pull,
            gamma=gamma,
            share=np.where(within, share, math.nan),
        )

    @property
    def answer(self) -> str:
        """From where on manipulation hurts each model, in words."""
        lines, unit, limits = [], METRICS[self.metric], self.thresholds()
        for i, (name, honest) in enumerate(zip(self.models, self.honest, strict=True)):
            g = int(np.argmax(self.attacked[i]))
            loss = (worst := self.attacked[i, g]) - honest
            hurts = "hurts" if loss > _LITTLE * self.variance else "hardly hurts"
            lines.append(
                f"{name}: {unit} {self._score(honest):.3g} on honest rows. {limits.sentence(i)} "
                f"At worst, where all react with gamma {self.gammas[g]:.3g} and close "
                f"{percent(self.pull[i, g])} of their gaps, {unit} is {self._score(worst):.3g}: "
                f"manipulation {hurts if loss > 0.0 else 'does not hurt'} it."
            )
        return "\n".join([*lines, f"y from z alone: {unit} {self._score(self.from_goal):.3g}."])

    def to_dict(self) -> dict[str, list[Any]]:
        """Columns of the table, one row per model, strength and share."""
        i, g, s = np.indices(self.errors.shape).reshape(3, -1)
        columns: dict[str, list[Any]] = {
            "model": [self.models[at] for at in i],
            "gamma": self.gammas[g].tolist(),
            "pull": self.pull[i, g].tolist(),
            "share": self.shares[s].tolist(),
            self.metric: self.scores.ravel().tolist(),
            "from_goal": [float(self._score(self.from_goal))] * len(i),
        }
        if self.best is not None:
            columns["best"] = self._score(self.best)[g, s].tolist()
        return columns

    def to_dataframe(self) -> Any:
        """The same as a pandas data frame."""
        return data_frame(self.to_dict())

    def _score(self, error: Any) -> Any:
        if self.metric == "r2":
            return 1.0 - error / self.variance
        return np.sqrt(error) if self.metric == "rmse" else error

    def __repr__(self) -> str:
        limits = self.thresholds()
        nothing = self.gammas * math.nan
        named = list(zip(self.models, self.pull, self.scores, limits.share, strict=True))
        if self.best is not None:
            named.append(("best on these rows", nothing, self._score(self.best), nothing))
        shares = [f"{share:.3g}" for share in self.shares]
        table = [["model", "gamma", "pull", *shares, "hurts from"]]
        for name, pull, score, limit in named:
            rows = np.column_stack([self.gammas, pull, score, limit])
            table += [[name, *("-" if x != x else f"{x:.3g}" for x in row)] for row in rows]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = ["  ".join(map(str.rjust, row, widths)) for row in table]
        title = f"{METRICS[self.metric]} by share of strategic providers"
        hurts = f'"hurts from" is the share at which a model {limits.lost}'
        words = map(wrapped, self.answer.splitlines())
        return "\n".join([wrapped(f"{title}; {hurts}"), *lines, *words])


def robustness(
    models: Any,
    X: Table,
    y: Classes,
    z: Classes | GoalLike | None = None,
    gammas: Numbers | None = None,
    shares: Numbers = (0.0, 0.25, 0.5, 0.75, 1.0),
    *,
    budgets: Numbers | None = None,
    feature_cost: Costs | None = None,
    sample_weight: Numbers | None = None,
    metric: str | None = None,
    reference: bool = False,
) -> Robustness | DecisionRobustness:
    """Say how fitted linear models fare when providers manipulate their rows.

    Parameters
    ----------
    models : model, pair, mapping or list
        A fitted linear model, a Pipeline that ends in one, a search that found one, a
        :class:`Solution` or a pair ``(coef, intercept)``; or several, by name or in a list. Or
        linear classifiers, one or several.
    X : array-like, data frame or sparse matrix of shape (m, k)
        Rows before they move, as the models take them; best rows they were not fitted to.
    y : array-like of shape (m,)
        True labels.
    z : array-like of shape (m,) or callable
        Goals: the prediction each provider would like, or a function of the labels that returns
        them, such as ``Floor(250)``. For classifiers the class each would like, ``Wants(label)`` or
        ``Opposite()``; by default their own ``goal``, or else the second class.
    gammas : array-like, optional
        True strengths of providers, the same for every model; small is strong. By default those
        at which they close 0.1, 0.25, 0.5, 0.75 and 0.9 of their gaps against the first model.
    budgets : array-like, optional
        For classifiers, in place of strengths: what the decision is worth to people who move to the
        boundary if that costs less.
    shares : array-like
        Shares of strategic providers, from zero to one.
    feature_cost, sample_weight : array-like or mapping, array-like of shape (m,), optional
        Costs of features as in :func:`predict_attacked`; weights of the rows.
    metric : {"r2", "mse", "rmse"} or str, optional
        In what to report; R2 by default. For classifiers the name of a scikit-learn scorer, such as
        "balanced_accuracy" or "roc_auc"; accuracy by default.
    reference : bool
        Whether to solve each game for the least error of any linear model on these rows, from the
        features that the first model sees.

    Returns
    -------
    Robustness, or of classifiers DecisionRobustness

    Notes
    -----
    Costs count per squared unit of what a linear model sees: at the same gamma a model behind a
    StandardScaler and one without face different providers.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import LinearRegression
    >>> from spgls import Floor, robustness
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = LinearRegression().fit(X[:300], y[:300])
    >>> found = robustness(model, X[300:], y[300:], Floor(250))
    >>> found.scores[0, 2].round(2)  # those who close half of their gaps, by share
    array([0.51, 0.39, 0.28, 0.17, 0.06])
    """
    check_flag(reference, "reference")
    chosen = read_models(models)
    mix = _read_grid(shares, "shares", 1.0, "from 0, all honest, to 1, all strategic")
    if any(decides(model) for model in chosen.values()):
        return judge_decisions(
            chosen,
            X,
            y,
            z,
            _read_worlds(chosen, X, feature_cost, gammas, budgets),
            mix,
            feature_cost=feature_cost,
            sample_weight=sample_weight,
            metric="accuracy" if metric is None else metric,
        )
    if budgets is not None:
        raise ValueError("budgets are for classifiers; models predict numbers. Pass gammas.")
    metric = check_choice("r2" if metric is None else metric, "metric", tuple(METRICS))
    faced = {name: face_model(name, model, X, feature_cost) for name, model in chosen.items()}
    before, first = next(iter(faced.values()))
    m = len(before)
    labels = check_vector(y, "y", m, "row of X")
    goals = read_goals(z, labels)
    weight = check_weight(sample_weight, m)
    strengths = _read_strengths(gammas, first)
    if metric == "r2" and np.ptp(labels if weight is None else labels[weight > 0.0]) == 0.0:
        where = "" if weight is None else " where sample_weight is positive"
        raise ValueError(f"y must vary for metric 'r2'; it is constant{where}. Pass metric='mse'.")
    means = ErrorMeans.of(np.array([said for said, _ in faced.values()]), labels, goals, weight)
    reach = np.array([provider.reach for _, provider in faced.values()])
    pull = pull_of(reach[:, np.newaxis], strengths)
    best = None
    if reference:
        seen = as_matrix(seen_by(next(iter(chosen.values())), X))
        seen, layout = lay_out(seen, first.cost, fit_intercept=True)
        data = GameData(seen, labels, goals, weight, layout)
        best = np.array([[_optimum(data, gamma, s) for s in mix] for gamma in strengths])
    return Robustness(
        models=tuple(faced),
        gammas=strengths,
        shares=mix,
        honest=means.honest,
        attacked=means.at(pull.T).T,
        pull=pull,
        from_goal=error_from_goals(labels, goals, weight),
        best=best,
        variance=error_of_mean(labels, weight),
        metric=metric,
        reach=reach,
        means=means,
    )


def _read_strengths(gammas: Any, first: Provider) -> Vector:
    """Strengths as they were given, or those that a model suggests."""
    if gammas is None:
        if first.reach == 0.0:
            raise ValueError("gammas is needed: the first model uses no changeable feature.")
        gammas = [strength_at(pull, first.reach) for pull in _PULLS]
    return _read_grid(gammas, "gammas", math.inf, "positive, inf for honest providers")


def _read_worlds(
    models: Mapping[str, Any], X: Any, feature_cost: Any, gammas: Any, budgets: Any
) -> tuple[str, Vector]:
    """Strengths or budgets of those whom classifiers meet."""
    if budgets is None:
        first = face(next(iter(models.values())), X, feature_cost).provider(math.inf)
        return "gamma", _read_strengths(gammas, first)
    if gammas is not None:
        raise ValueError("gammas were given and so were budgets; drop one of them.")
    values = [budgets] if isinstance(budgets, Real) else budgets
    worth = check_vector(values, "budgets", None, "value")
    if (worth < 0.0).any():
        at = int(np.flatnonzero(worth < 0.0)[0])
        raise ValueError(f"budgets must not be negative; entry {at} is {worth[at]:g}.")
    return "budget", worth


def _optimum(data: GameData, gamma: float, share: float) -> float:
    """Mean squared error of the best linear model in a population."""
    population = Population((math.inf, gamma), (1.0 - share, share)).merged()
    controls = read_controls(1e-9, None, None, None)
    (solution,) = play(resolve("auto"), data, [population], 0.0, controls)
    return solution.objective / float(len(data.y) if data.weight is None else data.weight.sum())


def _read_grid(values: Any, name: str, most: float, allowed: str) -> Vector:
    values = [values] if isinstance(values, Real) else values
    grid = check_vector(values, name, None, "value", infinite=True)
    wrong = ~(((grid > 0.0) | ((grid == 0.0) & (most == 1.0))) & (grid <= most))
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        raise ValueError(f"{name} must be {allowed}; entry {at} is {grid[at]:g}.")
    return grid
