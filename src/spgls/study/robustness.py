"""What manipulation would do to models that somebody already has.

The error of a model on rows of which the share ``s`` is strategic is ``(1 - s)`` times that on
honest rows plus ``s`` times that on attacked ones, so two numbers for each strength say it all.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from numbers import Real
from typing import Any, Literal

import numpy as np

from spgls.base.frames import column_names, resolve_cost
from spgls.base.types import Array, Costs, Numbers, Table, Vector
from spgls.base.validation import check_choice, check_flag, check_vector, check_weight
from spgls.estimators.attack import facing
from spgls.game.providers import Population, Provider
from spgls.game.response import gamma_from_pull
from spgls.matrix import as_matrix
from spgls.reduction.data import GameData
from spgls.reduction.layout import Layout
from spgls.solvers import Solution, play, resolve
from spgls.solvers.solve import read_controls

__all__ = ["Robustness", "robustness"]

_PULLS = (0.1, 0.25, 0.5, 0.75, 0.9)
_METRICS = {"r2": "R2", "mse": "mean squared error", "rmse": "root mean squared error"}
#: Losses below this share of the labels' variance are nothing to act upon.
_LITTLE = 0.01


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

    @property
    def errors(self) -> Array:
        """Mean squared errors, of shape (k, g, s)."""
        honest, attacked = self.honest[:, np.newaxis, np.newaxis], self.attacked[:, :, np.newaxis]
        return np.asarray((1.0 - self.shares) * honest + self.shares * attacked)

    @property
    def scores(self) -> Array:
        """The errors in the metric that was asked for."""
        return np.asarray(self._score(self.errors))

    @property
    def answer(self) -> str:
        """Whether manipulation hurts each model, in words."""
        lines, unit = [], _METRICS[self.metric]
        for i, (name, honest) in enumerate(zip(self.models, self.honest, strict=True)):
            g = int(np.argmax(self.attacked[i]))
            loss = (worst := self.attacked[i, g]) - honest
            hurts = "hurts" if loss > _LITTLE * self.variance else "hardly hurts"
            lines.append(
                f"{name}: {unit} {self._score(honest):.3g} on honest rows and, where all providers "
                f"are strategic, {self._score(worst):.3g} at worst (gamma {self.gammas[g]:.3g}, "
                f"closing {self.pull[i, g]:.2g} of their gaps): manipulation "
                f"{hurts if loss > 0.0 else 'does not hurt'} it."
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
        try:
            return import_module("pandas").DataFrame(self.to_dict())
        except ImportError:
            message = "to_dataframe needs pandas: pip install pandas. Or use to_dict()."
            raise ImportError(message) from None

    def _score(self, error: Any) -> Any:
        if self.metric == "r2":
            return 1.0 - error / self.variance
        return np.sqrt(error) if self.metric == "rmse" else error

    def __repr__(self) -> str:
        named = list(zip(self.models, self.pull, self.scores, strict=True))
        if self.best is not None:
            named.append(("best on these rows", self.gammas * math.nan, self._score(self.best)))
        table = [["model", "gamma", "pull", *(f"{share:.3g}" for share in self.shares)]]
        for name, pull, score in named:
            rows = np.column_stack([self.gammas, pull, score])
            table += [[name, *("-" if x != x else f"{x:.3g}" for x in row)] for row in rows]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = ["  ".join(map(str.rjust, row, widths)) for row in table]
        lines.insert(0, f"{_METRICS[self.metric]} by share of strategic providers")
        return "\n".join([*lines, self.answer])


def robustness(
    models: Any,
    X: Table,
    y: Numbers,
    z: Numbers,
    gammas: Numbers | None = None,
    shares: Numbers = (0.0, 0.25, 0.5, 0.75, 1.0),
    *,
    feature_cost: Costs | None = None,
    sample_weight: Numbers | None = None,
    metric: Literal["r2", "mse", "rmse"] = "r2",
    reference: bool = False,
) -> Robustness:
    """Say how fitted linear models fare when providers manipulate their rows.

    Parameters
    ----------
    models : model, pair, mapping or list
        A fitted linear model, a Pipeline that ends in one, a search that found one, a
        :class:`Solution` or a pair ``(coef, intercept)``; or several, by name or in a list.
    X : array-like, data frame or sparse matrix of shape (m, k)
        Rows before they move, as the models take them; best rows they were not fitted to.
    y, z : array-like of shape (m,)
        True labels; goals, the prediction each provider would like.
    gammas : array-like, optional
        True strengths of providers, the same for every model; small is strong. By default those
        at which they close 0.1, 0.25, 0.5, 0.75 and 0.9 of their gaps against the first model.
    shares : array-like
        Shares of strategic providers, from zero to one.
    feature_cost, sample_weight : array-like or mapping, array-like of shape (m,), optional
        Costs of features as in :func:`predict_attacked`; weights of the rows.
    metric : {"r2", "mse", "rmse"}
        In what to report.
    reference : bool
        Whether to solve each game for the least error of any linear model on these rows, from the
        features that the first model sees.

    Returns
    -------
    Robustness

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
    >>> found = robustness(model, X[300:], y[300:], Floor(250)(y[300:]))
    >>> found.scores[0, 2].round(2)  # those who close half of their gaps, by share
    array([0.51, 0.39, 0.28, 0.17, 0.06])
    """
    check_choice(metric, "metric", tuple(_METRICS))
    check_flag(reference, "reference")
    chosen = _read_models(models)
    faced = {name: _read_model(name, model, X, feature_cost) for name, model in chosen.items()}
    before, first = next(iter(faced.values()))
    m = len(before)
    labels, goals = check_vector(y, "y", m, "row of X"), check_vector(z, "z", m, "row of X")
    weight = check_weight(sample_weight, m)
    if gammas is None:
        if first.reach == 0.0:
            raise ValueError("gammas is needed: the first model uses no changeable feature.")
        gammas = [gamma_from_pull(pull, first.coef, first.cost) for pull in _PULLS]
    strengths = _read_grid(gammas, "gammas", math.inf, "positive, inf for honest providers")
    mix = _read_grid(shares, "shares", 1.0, "from 0, all honest, to 1, all strategic")

    def mean(values: Vector) -> float:
        return float(np.average(values, weights=weight))

    centred, wish = labels - mean(labels), goals - mean(goals)
    variance, wishes = mean(centred**2), mean(wish**2)
    if metric == "r2" and np.ptp(labels if weight is None else labels[weight > 0.0]) == 0.0:
        where = "" if weight is None else " where sample_weight is positive"
        raise ValueError(f"y must vary for metric 'r2'; it is constant{where}. Pass metric='mse'.")
    slope = mean(centred * wish) / wishes if wishes else 0.0
    attacked = np.empty((len(faced), len(strengths)))
    for i, (before, provider) in enumerate(faced.values()):
        for j, gamma in enumerate(strengths):
            strategic = Provider(provider.coef, 0.0, float(gamma), provider.cost)
            attacked[i, j] = mean((strategic.induced(before, goals) - labels) ** 2)
    best = None
    if reference:
        seen = as_matrix(_seen(next(iter(chosen.values())), X))
        layout = Layout(seen.shape[1], first.cost, fit_intercept=True)
        data = GameData(seen, labels, goals, weight, layout)
        best = np.array([[_optimum(data, gamma, s) for s in mix] for gamma in strengths])
    return Robustness(
        models=tuple(faced),
        gammas=strengths,
        shares=mix,
        honest=np.array([mean((before - labels) ** 2) for before, _ in faced.values()]),
        attacked=attacked,
        pull=np.array([facing.reach / (facing.reach + strengths) for _, facing in faced.values()]),
        from_goal=mean((centred - slope * wish) ** 2),
        best=best,
        variance=variance,
        metric=metric,
    )


def _optimum(data: GameData, gamma: float, share: float) -> float:
    """Mean squared error of the best linear model in a population."""
    population = Population((math.inf, gamma), (1.0 - share, share)).merged()
    controls = read_controls(1e-9, None, None, None)
    (solution,) = play(resolve("auto"), data, [population], 0.0, controls)
    return solution.objective / float(len(data.y) if data.weight is None else data.weight.sum())


def _read_models(models: Any) -> dict[str, Any]:
    """Models by name."""
    if isinstance(models, Mapping):
        named = {str(name): model for name, model in models.items()}
    else:
        several = isinstance(models, list | tuple) and not _is_pair(models)
        named = {}
        for model in models if several else [models]:
            kind = "coefficients" if _is_pair(model) else type(model).__name__
            same = 1 + sum(name.split()[0] == kind for name in named)
            named[f"{kind} {same}" if same > 1 else kind] = model
    if not named:
        raise ValueError("models must hold at least one model; got none.")
    return named


def _is_pair(model: Any) -> bool:
    return isinstance(model, tuple) and len(model) == 2 and isinstance(model[1], Real | np.ndarray)


def _seen(model: Any, X: Any) -> Any:
    """The features that a model's last step sees."""
    while hasattr(model, "best_estimator_"):
        model = model.best_estimator_
    return model[:-1].transform(X) if len(getattr(model, "steps", ())) > 1 else X


def _read_model(name: str, model: Any, X: Any, feature_cost: Any) -> tuple[Vector, Provider]:
    """A model's predictions, and the honest provider who faces it."""
    if isinstance(model, Solution):
        model = (model.coef, model.intercept)
    if not _is_pair(model):
        try:
            return facing(model, X, feature_cost)
        except (TypeError, ValueError) as error:
            error.add_note(f"It is models[{name!r}].")
            raise
    matrix = as_matrix(X)
    coef = check_vector(model[0], "coef", matrix.shape[1], "column of X")
    constant = check_vector(np.atleast_1d(model[1]), "intercept", 1, "model")
    cost = resolve_cost(feature_cost, len(coef), column_names(X))
    return matrix.apply(coef) + constant, Provider(coef, 0.0, math.inf, cost)


def _read_grid(values: Any, name: str, most: float, allowed: str) -> Vector:
    values = [values] if isinstance(values, Real) else values
    grid = check_vector(values, name, None, "value", infinite=True)
    wrong = ~(((grid > 0.0) | ((grid == 0.0) & (most == 1.0))) & (grid <= most))
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        raise ValueError(f"{name} must be {allowed}; entry {at} is {grid[at]:g}.")
    return grid
