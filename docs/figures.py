"""Draws the figures of these pages: ``make figures``.

Those on red wine and on the insured people need SPGLS_DATA, the folder that holds
winequality-red.csv and insurance.csv; the others need nothing.
"""

from __future__ import annotations

import csv
import itertools
import os
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeClassifier
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import OneHotEncoder, StandardScaler, scale

from spgls import (
    Cap,
    Floor,
    Population,
    StackelbergClassifier,
    StackelbergRegressor,
    StackelbergRegressorCV,
    Wants,
    solve,
    solve_path,
)
from spgls.datasets import load_insurance, make_dense
from spgls.display import (
    CoefficientDisplay,
    CVDisplay,
    DecisionDisplay,
    DecisionRobustnessDisplay,
    GammaHeatmapDisplay,
    LeversDisplay,
    MovementDisplay,
    PathDisplay,
    ResponseDisplay,
    RobustnessDisplay,
    TradeoffDisplay,
)

STATIC = Path(__file__).parent / "_static"


def displays() -> dict[str, Any]:
    """The pictures of pictures.md, drawn as it says."""
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    z = Floor(250)(y)
    model = StackelbergRegressor(goal=Floor(250)).fit(X, y)
    gammas = model.gamma_ * np.geomspace(0.01, 100.0, 41)
    half = [Population.mixed(gamma, honest=0.5) for gamma in gammas]
    path = solve_path(X, y, z, half, fit_intercept=True)
    fixed = {"age": np.inf, "sex": np.inf}
    costly = StackelbergRegressor(goal=Floor(250), feature_cost=fixed).fit(X, y)
    models = {
        "least squares": LinearRegression().fit(X, y),
        "ridge": Ridge(0.1).fit(X, y),
        "spgls default": model,
        "the paper's game": StackelbergRegressor(goal=Floor(250), honest_share=0).fit(X, y),
    }
    rely = CoefficientDisplay.from_estimators([models["least squares"], costly], X)
    search = StackelbergRegressorCV(
        model.gamma_ * np.geomspace(0.03, 30.0, 11),
        honest_shares=[0.2, 0.5, 0.8],
        world=Population.mixed(model.gamma_, honest=0.5),
        goal=Floor(250),
    )
    return {
        "display-robustness": RobustnessDisplay.from_estimators(models, X, y).plot(),
        "display-coefficients": rely.plot(),
        "display-path": PathDisplay.from_path(path, X, y, z, gamma=model.gamma_).plot(metric="r2"),
        "display-tradeoff": TradeoffDisplay.from_estimator(model, X, y).plot(),
        "display-heatmap": GammaHeatmapDisplay.from_estimator(model, X, y, cv=5).plot(metric="r2"),
        "display-movement": MovementDisplay.from_estimator(costly, X, z).plot(),
        "display-response": ResponseDisplay.from_estimator(model, X, y).plot(max_rows=120),
        "display-cv": CVDisplay.from_cv_results(search.fit(X, y)).plot(),
    }


def decisions() -> dict[str, Any]:
    """The pictures of decisions.md, on rows that no model was fitted to."""
    X, y = load_breast_cancer(return_X_y=True)
    X, y = scale(X), np.array(["malignant", "benign"])[y]
    fit, judge = (X[::2], y[::2]), (X[1::2], y[1::2])
    goal = Wants("benign")
    models = {
        "logistic": LogisticRegression().fit(*fit),
        "RidgeClassifier": RidgeClassifier().fit(*fit),
        "spgls": StackelbergClassifier(goal=goal).fit(*fit),
        "spgls, shifted": StackelbergClassifier(goal=goal, threshold="attacked").fit(*fit),
    }
    one = DecisionDisplay.from_estimator(models["logistic"], *judge, goal, budget=2.0)
    several = DecisionRobustnessDisplay.from_estimators(models, *judge, goal)
    return {"display-decision": one.plot(), "display-decision-robustness": several.plot()}


def tutorial() -> dict[str, Any]:
    """The picture of tutorial.md, on the table that ships with scikit-learn."""
    table, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    encode = ColumnTransformer(
        [
            ("num", StandardScaler(), table.columns.drop("sex")),
            ("cat", OneHotEncoder(sparse_output=False), ["sex"]),
        ]
    )
    train, _, y, _ = train_test_split(table, y, random_state=0)
    X = encode.set_output(transform="pandas").fit_transform(train)
    cost = {"age": np.inf, "sex": np.inf}
    game = StackelbergRegressor(goal=Floor(250), feature_cost=cost).fit(X, y)
    both = [LinearRegression().fit(X, y), game]
    return {"tutorial-coefficients": CoefficientDisplay.from_estimators(both, X).plot()}


def red_wine(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    with (folder / "winequality-red.csv").open() as file:
        _, *rows = csv.reader(file, delimiter=";")
    table = np.array(rows, dtype=float)
    X, y = table[:, :-1], table[:, -1]
    return (X - X.min(axis=0)) / np.ptp(X, axis=0), y


def population_tradeoff(folder: Path) -> Path:
    """Honest and attacked error on red wine over the strategic share the model is fitted for."""
    X, y = red_wine(folder)
    z, gamma = np.maximum(y, 6.0), 50.0
    shares = np.r_[np.linspace(0.0, 0.98, 50), 0.985, 0.99, 0.995, 0.998, 0.999, 1.0]
    people = [Population.mixed(gamma, honest=1 - share) for share in shares]
    found = solve_path(X, y, z, people, fit_intercept=True)
    display = TradeoffDisplay.from_path(found, X, y, z).plot(marker="")
    display.ax_.set_title("Red wine, goal max(y, 6)")
    path = STATIC / "population-tradeoff.png"
    display.figure_.savefig(path, dpi=150)
    return path


def insurance_levers() -> Path:
    """What checking each field of the insured people is worth, as in levers.md."""
    insured = load_insurance(as_frame=True)
    X = StandardScaler().set_output(transform="pandas").fit_transform(insured.X)
    model = StackelbergRegressor(goal=Cap(50.0)).fit(X, insured.y)
    fields = ["age", "sex", "bmi", "children", "smoker", "region"]
    path = STATIC / "display-levers.png"
    display = LeversDisplay.from_estimator(model, X, insured.y, groups=fields).plot()
    display.figure_.savefig(path, dpi=150)
    return path


def excess(A: np.ndarray, y: np.ndarray, z: np.ndarray, gamma: float, nu: np.ndarray) -> np.ndarray:
    """By how much the Lagrangian's minimiser misses the sphere, from dense matrices."""
    L = np.column_stack([A, z])
    found = []
    for multiplier in nu:
        K = L.T @ L + multiplier * np.diag([1.0] * A.shape[1] + [gamma])
        *x, c = np.linalg.solve(K, np.append(A.T @ y, z @ y + multiplier * gamma / 2))
        found.append(np.dot(x, x) - gamma * c * (1 - c))
    return np.array(found)


def theory_excess() -> Any:
    """Theorem S: a root, the hard case, and no linear term."""
    rng = np.random.default_rng(2)
    A, y, z = rng.normal(size=(6, 3)), rng.normal(size=6), rng.normal(size=6)
    wide = rng.normal(size=(4, 6))
    games = {
        "a root: one optimum": (A, y, z),
        "hard case: no root": (wide, 0.15 * y[:4], z[:4]),
        "y = z/2: constant": (A, z / 2, z),
    }
    figure, ax = plt.subplots(figsize=(7, 4))
    for name, (data, labels, goals) in games.items():
        lowest = np.linalg.svd(np.column_stack([data, goals]))[1][-1] ** 2
        pole = 0.0 if data.shape[0] < data.shape[1] + 1 else -lowest
        nu = pole + np.geomspace(1e-3, 6.0, 300)
        ax.plot(nu, excess(data, labels, goals, 1.0, nu), label=name)
    ax.axhline(0.0, color="grey", linewidth=0.8)
    ax.axhline(-0.25, color="grey", linewidth=0.8, linestyle=":", label="-gamma/4")
    ax.set(xlabel="multiplier", ylabel="excess", ylim=(-0.4, 1.0))
    ax.legend()
    figure.tight_layout()
    return figure


def theory_valleys() -> Any:
    """Theorem C: the loss over the norm in the game with two valleys, and bounds on intervals."""
    yy, zz, yz, p_y, p_z, honest, gamma = 9.0, 5.0, -3.0, -3.0, 1.0, 0.5, 0.01

    def averages(t: np.ndarray) -> tuple[np.ndarray, ...]:
        s = 1 / (1 + t / gamma)
        return honest + (1 - honest) * s**2, honest + (1 - honest) * s

    def phi(t: np.ndarray) -> np.ndarray:
        a, p = averages(t)
        inner = np.abs(p * p_y - (p - a) * p_z) * np.sqrt(t)
        return a * t - 2 * inner + yy - 2 * (1 - p) * yz + (1 - 2 * p + a) * zz

    t = np.geomspace(1e-6, 1e2, 2000)
    figure, ax = plt.subplots(figsize=(7, 4))
    ax.plot(t, phi(t), label="least loss at this norm")
    edges = np.geomspace(1e-6, 1e2, 17)
    for number, (low, high) in enumerate(itertools.pairwise(edges)):
        middle = np.sqrt(low * high)
        a, p = averages(middle)
        nu = np.abs(p * p_y - (p - a) * p_z) / (a * np.sqrt(middle)) - 1.0
        inside = np.geomspace(low, high, 50)
        a, p = averages(inside)
        # The Lagrangian at the middle's multiplier, with G = 1.
        side = (p * p_y - (p - a) * p_z) / np.sqrt(a)
        bound = -(side**2) / (1 + nu) - nu * a * inside
        bound += yy - 2 * (1 - p) * yz + (1 - 2 * p + a) * zz
        name = "bounds on intervals" if number == 0 else None
        ax.plot([low, high], [bound.min()] * 2, color="tab:red", label=name)
    ax.set(xscale="log", xlabel="squared norm t", ylabel="loss", ylim=(8.5, 16))
    ax.legend(loc="upper left")
    figure.tight_layout()
    return figure


def theory_passes() -> Any:
    """Theorem B: passes over the data for several strengths."""
    game = make_dense(1000, 500, random_state=0)
    X, y, z = game.X, game.y, game.z
    sizes, ours, theirs = (1, 10, 50), [], []
    for size in sizes:
        gammas = np.geomspace(1e-3, 1e3, size) if size > 1 else np.array([1.0])
        theirs.append(sum(solve(X, y, z, g, solver="gltr").stats.passes for g in gammas))
        ours.append(solve_path(X, y, z, gammas, solver="krylov").stats.passes)
    figure, ax = plt.subplots(figsize=(7, 3.2))
    at = np.arange(len(sizes))
    for shift, name, passes in ((-0.2, "one by one (gltr)", theirs), (0.2, "one space", ours)):
        bars = ax.bar(at + shift, passes, 0.4, label=name)
        ax.bar_label(bars, fmt="%.0f")
    ax.set_xticks(at, [f"{size} strength{'s' if size > 1 else ''}" for size in sizes])
    ax.set(yscale="log", ylabel="passes over the data", ylim=(1, 4 * max(theirs)))
    ax.legend(loc="upper left")
    figure.tight_layout()
    return figure


def theory() -> None:
    """The pictures of the pages on theory."""
    for name, draw in {
        "excess": theory_excess,
        "valleys": theory_valleys,
        "passes": theory_passes,
    }.items():
        path = STATIC / f"theory-{name}.png"
        draw().savefig(path, dpi=120)
        print(f"Written: {path}")


def main() -> None:
    STATIC.mkdir(exist_ok=True)
    for name, display in (displays() | decisions() | tutorial()).items():
        path = STATIC / f"{name}.png"
        display.figure_.savefig(path, dpi=150)
        print(f"Written: {path}")
    theory()
    folder = os.environ.get("SPGLS_DATA")
    if folder:
        print(f"Written: {population_tradeoff(Path(folder))}")
        print(f"Written: {insurance_levers()}")
    else:
        missing = "population-tradeoff.png, display-levers.png"
        print(f"Not drawn: {missing}. Set SPGLS_DATA to the folder of the data.")


if __name__ == "__main__":
    main()
