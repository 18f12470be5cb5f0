"""What the game changes, on data that ships with scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np

from spgls._types import Array, Vector
from spgls.game import gamma_from_pull, induced_prediction
from spgls.solve import solve

__all__ = ["DemoResult", "DemoRow", "run_demo"]

LEVEL = 250.0
FOLDS = 10

#: A fitted model: coefficients, intercept, certified relative gap or None.
Fitted = tuple[Vector, float, float | None]


@dataclass(frozen=True)
class DemoRow:
    """One model's cross-validated R2 on rows as they are and on rows their providers moved."""

    model: str
    honest: float | None
    attacked: float
    gap: float | None
    seconds: float | None


@dataclass(frozen=True)
class DemoResult:
    """The table and the curves of the demonstration."""

    gamma: float
    rows: tuple[DemoRow, ...]
    shares: Vector
    curves: dict[str, Vector]

    def plot(self, path: Path) -> None:
        """Draw the error against the share of providers who react."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        figure = Figure(figsize=(7.0, 4.2), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        for (model, curve), marker in zip(self.curves.items(), "os^", strict=True):
            axes.plot(self.shares, curve, marker=marker, markevery=2, label=model)
        axes.set_yscale("log")
        axes.set_xlabel("share of providers who react")
        axes.set_ylabel("mean squared error over variance")
        axes.set_title("Diabetes: everyone would like a prediction of at least 250")
        axes.grid(alpha=0.3)
        axes.legend()
        figure.savefig(path, dpi=150)


def run_demo() -> DemoResult:
    """Cross-validate three models on honest and on attacked rows."""
    from sklearn.datasets import load_diabetes

    X, y = load_diabetes(return_X_y=True)
    z = np.maximum(y, LEVEL)
    gamma = gamma_from_pull(0.5, _least_squares(X, y, z)[0])
    models: dict[str, Callable[[Array, Vector, Vector], Fitted]] = {
        "least squares": _least_squares,
        "ridge": _ridge,
        "the game": lambda A, b, c: _game(A, b, c, gamma),
    }
    shares = np.linspace(0.0, 1.0, 21)
    rows, curves = [], {}
    for name, fit in models.items():
        honest, attacked, gap, seconds = _cross_validate(fit, X, y, z, gamma)
        rows.append(DemoRow(name, 1 - honest, 1 - attacked, gap, seconds))
        curves[name] = (1 - shares) * honest + shares * attacked
    rows.append(DemoRow("y from z alone", None, 1 - _from_goal_alone(y, z), None, None))
    return DemoResult(gamma, tuple(rows), shares, curves)


def _folds(m: int) -> list[np.ndarray]:
    return np.array_split(np.random.default_rng(0).permutation(m), FOLDS)


def _cross_validate(
    fit: Callable[[Array, Vector, Vector], Fitted], X: Array, y: Vector, z: Vector, gamma: float
) -> tuple[float, float, float | None, float]:
    """Mean squared errors over the variance: honest, attacked; worst gap; seconds a fit."""
    honest, attacked = np.empty_like(y), np.empty_like(y)
    gaps, seconds = [], 0.0
    for held_out in _folds(len(y)):
        train = np.setdiff1d(np.arange(len(y)), held_out)
        start = perf_counter()
        coef, intercept, gap = fit(X[train], y[train], z[train])
        seconds += perf_counter() - start
        gaps.append(gap)
        rows = X[held_out]
        honest[held_out] = rows @ coef + intercept
        attacked[held_out] = induced_prediction(
            rows, z[held_out], coef, gamma=gamma, intercept=intercept
        )
    worst = max((g for g in gaps if g is not None), default=None)
    unit = float(np.var(y))
    errors = (float(np.mean((p - y) ** 2)) / unit for p in (honest, attacked))
    return next(errors), next(errors), worst, seconds / FOLDS


def _least_squares(X: Array, y: Vector, z: Vector) -> Fitted:
    from sklearn.linear_model import LinearRegression

    model = LinearRegression().fit(X, y)
    return model.coef_, float(model.intercept_), None


def _ridge(X: Array, y: Vector, z: Vector) -> Fitted:
    from sklearn.linear_model import RidgeCV

    model = RidgeCV(alphas=np.geomspace(1e-3, 10, 30)).fit(X, y)
    return model.coef_, float(model.intercept_), None


def _game(X: Array, y: Vector, z: Vector, gamma: float) -> Fitted:
    solution = solve(X, y, z, gamma, fit_intercept=True)
    return solution.coef, solution.intercept, solution.certificate.relative_gap


def _from_goal_alone(y: Vector, z: Vector) -> float:
    """Cross-validated error of predicting the label from the goal and nothing else."""
    predicted = np.empty_like(y)
    for held_out in _folds(len(y)):
        train = np.setdiff1d(np.arange(len(y)), held_out)
        slope, offset = np.polyfit(z[train], y[train], 1)
        predicted[held_out] = slope * z[held_out] + offset
    return float(np.mean((predicted - y) ** 2) / np.var(y))
