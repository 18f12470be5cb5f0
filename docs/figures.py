"""Draws the figures of these pages: ``make figures``.

Those on red wine and on the insured people need SPGLS_DATA, the folder that holds
winequality-red.csv and insurance.csv; the others need nothing.
"""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

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
    solve_path,
)
from spgls.datasets import load_insurance
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


def main() -> None:
    STATIC.mkdir(exist_ok=True)
    for name, display in (displays() | decisions() | tutorial()).items():
        path = STATIC / f"{name}.png"
        display.figure_.savefig(path, dpi=150)
        print(f"Written: {path}")
    folder = os.environ.get("SPGLS_DATA")
    if folder:
        print(f"Written: {population_tradeoff(Path(folder))}")
        print(f"Written: {insurance_levers()}")
    else:
        missing = "population-tradeoff.png, display-levers.png"
        print(f"Not drawn: {missing}. Set SPGLS_DATA to the folder of the data.")


if __name__ == "__main__":
    main()
