"""A fitted game on one page: coefficients by name, errors, proof, and bootstrap intervals."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from spgls.base.frames import data_frame
from spgls.base.types import Array, Vector
from spgls.base.validation import check_count, check_vector, check_weight
from spgls.estimators.conventions import read_random_state
from spgls.estimators.placed import as_numpy
from spgls.game.costs import one_per_column
from spgls.game.errors import ErrorMeans, error_from_goals, error_of_mean
from spgls.game.goals import check_goal, goals_of
from spgls.game.providers import Provider
from spgls.solvers import Status
from spgls.sphere import Certificate

__all__ = ["Intervals", "Summary", "summarise"]

#: What intervals hold, and the quantiles that they end in.
_LEVEL = "95%"
_ENDS = (0.025, 0.975)
#: Features that are printed; all are in the arrays.
_FEATURES = 20
#: The same of actions.
_ACTIONS = 6


@dataclass(frozen=True, eq=False)
class Intervals:
    """Bootstrap intervals of 95%: resampled rows, a model fitted to them and its error on them.

    Attributes
    ----------
    refits, uncertified : int
        How many refits there were, and how many of them did not end at a certified optimum.
    coef, intercept, pull : ndarray of shape (n, 2), (2,) and (g, 2)
        For each coefficient, the intercept, and the pull at each strength.
    honest, attacked : ndarray of shape (2,), ndarray of shape (g, 2)
        For the mean squared errors of the model itself, on resampled rows.
    """

    refits: int
    uncertified: int
    coef: Array
    intercept: Vector
    pull: Array
    honest: Vector
    attacked: Array


@dataclass(frozen=True, eq=False, repr=False)
class Summary:
    """What a fitted model came to; ``StackelbergRegressor.summary`` makes one.

    Attributes
    ----------
    model : str
        Name of its class.
    feature_names : tuple of n str
        Names of the features.
    coef, feature_cost : ndarray of shape (n,)
        Coefficients, and costs of the features, ``inf`` for those that cannot be changed. Where
        costs were given by actions or a matrix, what each feature costs if it alone matters.
    intercept : float
        Intercept.
    gamma, pull : ndarray of shape (g,)
        Strengths of the strategic providers the model was fitted for, and the share of the gap to
        their goals that they close against it.
    status, certificate : Status, Certificate
        How the solve ended, and how far from the global optimum it can be.
    rows : int
        How many rows the errors are of; zero where there are none.
    honest, attacked : float, ndarray of shape (g,)
        Mean squared errors on rows as they are, and on rows that everyone moved with each
        strength; NaN where rows, or goals, were not given.
    from_goal, variance : float
        Mean squared errors of the best affine function of the goals alone, "y from z alone", and of
        predicting the mean label; NaN likewise.
    intervals : Intervals, optional
        Bootstrap intervals, if they were asked for.
    actions : mapping of str to float
        How much of each action raises the prediction by one at the least cost; empty where costs
        were not given by actions.
    """

    model: str
    feature_names: tuple[str, ...]
    coef: Vector
    feature_cost: Vector
    intercept: float
    gamma: Vector
    pull: Vector
    status: Status
    certificate: Certificate
    rows: int
    honest: float
    attacked: Vector
    from_goal: float
    variance: float
    intervals: Intervals | None
    actions: Mapping[str, float] = field(default_factory=dict)

    def to_dict(self) -> dict[str, list[Any]]:
        """Columns of the table of coefficients, one row per feature."""
        columns: dict[str, list[Any]] = {
            "feature": list(self.feature_names),
            "coef": self.coef.tolist(),
            "cost": self.feature_cost.tolist(),
        }
        if self.intervals is not None:
            columns |= dict(zip(("low", "high"), self.intervals.coef.T.tolist(), strict=True))
        return columns

    def to_dataframe(self) -> Any:
        """The same as a pandas data frame."""
        return data_frame(self.to_dict())

    def errors(self) -> dict[str, list[Any]]:
        """Columns of the table of errors: rows as they are, moved with each strength, goals alone.

        Returns
        -------
        dict of lists
        """
        none = np.full((1, 2), np.nan)
        strengths = [np.nan, *self.gamma.tolist(), np.nan]
        error = np.array([self.honest, *self.attacked, self.from_goal])
        with np.errstate(divide="ignore", invalid="ignore"):
            r2 = 1.0 - error / self.variance
        columns: dict[str, list[Any]] = {
            "rows": ["honest", *["attacked"] * len(self.gamma), "y from z alone"],
            "gamma": strengths,
            "pull": [0.0, *self.pull.tolist(), np.nan],
            "mse": error.tolist(),
            "r2": r2.tolist(),
        }
        if (found := self.intervals) is not None:
            ends = np.vstack([found.honest[np.newaxis], found.attacked, none])
            columns |= dict(zip(("low", "high"), ends.T.tolist(), strict=True))
        return columns

    def _head(self) -> list[str]:
        """Sentences above the tables."""
        proof, found = self.certificate, self.intervals
        lines = [
            f"{self.model}: {self.status.value}, {proof.kind} to be within "
            f"{proof.relative_gap:.2g}, in R2, of the best among {proof.among}."
        ]
        for at, (gamma, pull) in enumerate(zip(self.gamma, self.pull, strict=True)):
            ends = "" if found is None else f" ({_span(found.pull[at])})"
            lines.append(
                f"Strategic providers of gamma {gamma:.4g} close {pull:.3g}{ends} of the gap to "
                "their goals."
            )
        if self.actions:
            most = sorted(self.actions, key=lambda name: -abs(self.actions[name]))[:_ACTIONS]
            told = ", ".join(f"{self.actions[name]:.3g} of {name}" for name in most)
            more = len(self.actions) - len(most)
            rest = f" and less of {more} others" if more else ""
            lines.append(f"To raise the prediction by one, people take {told}{rest}.")
        if found is not None:
            lines.append(f"{_LEVEL} intervals are from {found.refits} bootstrap samples.")
            if found.uncertified:
                lines.append(f"{found.uncertified} of their fits are not certified optima.")
        return lines

    def _error_table(self) -> list[list[str]]:
        """Errors on rows, as cells."""
        found = self.errors()
        known = [at for at, mse in enumerate(found["mse"]) if not np.isnan(mse)]
        names = [
            name if np.isnan(gamma) else f"{name}, gamma {gamma:.4g}"
            for name, gamma in zip(found["rows"], found["gamma"], strict=True)
        ]
        table = [[f"errors on {self.rows} rows", *(names[at] for at in known)]]
        table.append(["mean squared error", *(f"{found['mse'][at]:.4g}" for at in known)])
        if self.intervals is not None:
            spans = list(zip(found["low"], found["high"], strict=True))
            table.append([f"{_LEVEL} interval", *(_span(spans[at]) for at in known)])
        table.append(["R2", *(f"{found['r2'][at]:.3g}" for at in known)])
        return _turned(table)

    def _coefficient_table(self) -> list[list[str]]:
        """Coefficients in the order of the columns, or the largest of many, as cells."""
        order = np.arange(len(self.coef))
        if len(order) > _FEATURES:
            order = np.argsort(-np.abs(self.coef), kind="stable")[:_FEATURES]
        table = [
            ["feature", *(self.feature_names[at] for at in order), "intercept"],
            ["coefficient", *(f"{self.coef[at]:.4g}" for at in order), f"{self.intercept:.4g}"],
        ]
        if self.intervals is not None:
            spans = [*self.intervals.coef[order], self.intervals.intercept]
            table.append([f"{_LEVEL} interval", *map(_span, spans)])
        if (self.feature_cost != 1.0).any():
            costs = (self.feature_cost[at] for at in order)
            prices = ("fixed" if np.isinf(cost) else f"{cost:.3g}" for cost in costs)
            table.append(["cost", *prices, ""])
        return _turned(table)

    def _foot(self) -> list[str]:
        more = len(self.coef) - _FEATURES
        return [f"And {more} features with smaller coefficients."] if more > 0 else []

    def __repr__(self) -> str:
        lines = self._head()
        if self.rows:
            lines += ["", *_text(self._error_table())]
        return "\n".join([*lines, "", *_text(self._coefficient_table()), *self._foot()])

    def _repr_html_(self) -> str:
        head, foot = ("".join(f"<p>{escape(s)}</p>" for s in f()) for f in (self._head, self._foot))
        errors = _html(self._error_table()) if self.rows else ""
        tables = errors + _html(self._coefficient_table())
        return f"<div class='spgls-summary'>{head}{tables}{foot}</div>"


def summarise(
    model: Any,
    X: Any,
    y: Any,
    z: Any,
    sample_weight: Any,
    bootstrap: Any,
    random_state: Any,
) -> Summary:
    """Summarise a fitted regressor; the arguments are those of its ``summary``."""
    check_is_fitted(model)
    goals, weight = None, None
    before, labels = np.empty(0), np.empty(0)
    refits = check_count(bootstrap, "bootstrap")
    if X is not None and y is not None:
        before = np.asarray(model.predict(X), dtype=np.float64)
        labels = check_vector(y, "y", len(before), "row of X")
        goals = _read_goals(model, labels, z)
        weight = check_weight(sample_weight, len(labels))
    else:
        _refuse_without_rows(X, y, z, sample_weight, refits)
    finite = np.isfinite(np.atleast_1d(model.gamma_))
    alpha = np.atleast_1d(model.alpha_)[finite]
    pull = alpha / (1.0 + alpha)
    honest, attacked, from_goal, variance = np.nan, np.full(len(pull), np.nan), np.nan, np.nan
    if len(labels):
        variance = error_of_mean(labels, weight)
        means = ErrorMeans.of(before, labels, labels if goals is None else goals, weight)
        honest = float(means.honest)
        if goals is not None:
            attacked = means.at(pull)
            from_goal = error_from_goals(labels, goals, weight)
    intervals = None
    if refits is not None:
        if goals is None:
            raise ValueError(
                "z is needed for bootstrap, which fits the model again: pass the prediction each "
                "provider would like."
            )
        again = _Rows(X, labels, goals, weight, before)
        intervals = _bootstrap(model, again, refits, read_random_state(random_state))
    return Summary(
        model=type(model).__name__,
        feature_names=_names(model),
        coef=np.asarray(as_numpy(model.coef_), dtype=np.float64),
        feature_cost=one_per_column(as_numpy(model.feature_cost_), model.n_features_in_),
        actions=_per_unit(model),
        intercept=float(model.intercept_),
        gamma=np.atleast_1d(model.gamma_)[finite],
        pull=pull,
        status=model.status_,
        certificate=model.certificate_,
        rows=len(labels),
        honest=honest,
        attacked=attacked,
        from_goal=from_goal,
        variance=variance,
        intervals=intervals,
    )


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows to resample, and what the model predicts for them."""

    X: Any
    y: Vector
    z: Vector
    weight: Vector | None
    before: Vector


def _bootstrap(model: Any, rows: _Rows, refits: int, rng: np.random.Generator | None) -> Intervals:
    """Fit a model again to resampled rows, and judge the model itself on them."""
    from spgls.estimators.cv import StackelbergRegressorCV, chosen_model

    fresh = chosen_model(model) if isinstance(model, StackelbergRegressorCV) else clone(model)
    finite = np.isfinite(np.atleast_1d(model.gamma_))
    alpha = np.atleast_1d(model.alpha_)[finite]
    told = {"z": rows.z} if fresh.goal is None else {}
    random = np.random.default_rng() if rng is None else rng
    m, uncertified = len(rows.y), 0
    found: list[tuple[Any, ...]] = []
    for _ in range(refits):
        # A row that is drawn twice has twice the weight, so no row is ever copied.
        weight = _draw(m, rows.weight, random)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fresh.fit(rows.X, rows.y, sample_weight=weight, **told)
        uncertified += not fresh.status_.ok
        strength = np.atleast_1d(fresh.alpha_)[finite]
        means = ErrorMeans.of(rows.before, rows.y, rows.z, weight)
        errors = means.honest, means.at(alpha / (1.0 + alpha))
        found.append((fresh.coef_, fresh.intercept_, strength / (1.0 + strength), *errors))
    spans = (np.quantile(np.array(each), _ENDS, axis=0).T for each in zip(*found, strict=True))
    return Intervals(refits, uncertified, *spans)


def _draw(m: int, weight: Vector | None, random: np.random.Generator) -> Vector:
    """Weights of rows drawn with replacement; drawn again if no row with weight is among them."""
    while True:
        times = random.multinomial(m, np.full(m, 1.0 / m)).astype(np.float64)
        drawn = times if weight is None else times * weight
        if drawn.any():
            return drawn


def _read_goals(model: Any, labels: Vector, z: Any) -> Vector | None:
    """Goals as they were given, or those of the model's goal; None without either."""
    goal = check_goal(model.goal)
    if goal is not None and z is not None:
        raise ValueError(f"z was given and so was the model's goal={goal!r}; drop one of them.")
    if goal is not None:
        return goals_of(goal, labels)
    return None if z is None else check_vector(z, "z", len(labels), "row of X")


def _refuse_without_rows(X: Any, y: Any, z: Any, sample_weight: Any, refits: int | None) -> None:
    """Refuse what is of no use without rows and labels."""
    if (X is None) != (y is None):
        missing, there = ("X", "y") if X is None else ("y", "X")
        raise ValueError(f"{missing} is needed with {there}: errors need rows and labels.")
    given = {"z": z, "sample_weight": sample_weight, "bootstrap": refits}
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"{name} was given without rows; pass X and y too.")


def _per_unit(model: Any) -> dict[str, float]:
    """How much of each action raises the prediction by one."""
    coef, cost = np.asarray(as_numpy(model.coef_), dtype=float), as_numpy(model.feature_cost_)
    facing = Provider(coef, 0.0, np.inf, cost)
    reach = facing.reach or np.inf
    return {name: much / reach for name, much in facing.actions.items()}


def _names(model: Any) -> tuple[str, ...]:
    """Names of the features, or their numbers."""
    names = getattr(model, "feature_names_in_", None)
    numbers = (f"x{j}" for j in range(model.n_features_in_))
    return tuple(numbers if names is None else map(str, names))


def _span(ends: Sequence[float]) -> str:
    return "" if np.isnan(ends[0]) else f"{ends[0]:.4g} to {ends[1]:.4g}"


def _turned(columns: list[list[str]]) -> list[list[str]]:
    """Rows of cells from columns of them."""
    return [list(row) for row in zip(*columns, strict=True)]


def _text(table: list[list[str]]) -> list[str]:
    """Lines of a table, the first column to the left and the others to the right."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip()
        for row in table
    ]


def _html(table: list[list[str]]) -> str:
    """The same for notebooks."""
    head, *body = table
    cells = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in body]
    names = "".join(f"<th>{escape(name)}</th>" for name in head)
    rows = "".join(f"<tr>{row}</tr>" for row in cells)
    return f"<table><thead><tr>{names}</tr></thead><tbody>{rows}</tbody></table>"
