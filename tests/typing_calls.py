"""Calls that a type checker accepts, and calls that it refuses; ``test_typing.py`` runs mypy here.

Nothing is executed. A line that ends in ``# wrong`` must be refused, every other one accepted.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spgls import (
    Floor,
    Opposite,
    Population,
    Solution,
    StackelbergClassifier,
    StackelbergClassifierCV,
    StackelbergRegressor,
    StackelbergRegressorCV,
    Status,
    Wants,
    best_response,
    certify,
    compare_solvers,
    decision_attacked,
    gamma_from_pull,
    levers,
    make_attacked_scorer,
    robustness,
    solve,
    solve_path,
)
from spgls.solvers import Krylov

Numbers = NDArray[np.float64]


def own(X: Numbers, y: Numbers, z: Numbers, gamma: float) -> Numbers:
    return np.zeros(X.shape[1])


def prints(X: Numbers, y: Numbers, z: Numbers, gamma: float) -> None:
    print(X.shape)


def right(X: Numbers, y: Numbers, z: Numbers) -> None:
    levers(X, y, Floor(1), Population.mixed(1), groups={"both": [0, 1]}, kinds="verify")
    StackelbergRegressor(1, goal=Floor(1)).levers(X, y, kinds=["verify", "drop"]).ranking("drop")
    StackelbergRegressor(0.5, honest_share=0, goal=Floor(1), feature_cost={"age": np.inf})
    StackelbergRegressor(Population.mixed(0.5), fit_intercept=False, solver=Krylov())
    StackelbergRegressorCV([0.1, 1.0], world=[np.inf, Population.mixed(1.0)], cv=3)
    fitted: StackelbergRegressor = StackelbergRegressor(goal=np.sign).fit(X, y)
    status: Status = fitted.status_
    solution: Solution = solve(X, y, z, np.float32(0.5), solver=own, rng=0)
    gap: float = certify([[1.0], [2.0]], [1, 2], [2, 2], 1, solution.coef).relative_gap
    objective: Numbers = solve_path(X, y, z, np.geomspace(0.1, 1.0, 5)).objective
    compare_solvers(X, y, z, 0.5, solvers=["gltr", Krylov(), own])
    best_response(X, z, [1.0, 2.0], gamma=np.ones(3), intercept=gap)
    decided: StackelbergClassifier = StackelbergClassifier(goal=Wants("yes")).fit(X, ["yes", "no"])
    decided.predict_attacked(X, ["no", "yes"], budget=1)
    decided.partial_fit(X, ["yes", "yes"], classes=["no", "yes"], z=["no", "yes"])
    StackelbergClassifierCV([0.1], goal=Opposite(), threshold="attacked", class_weight="balanced")
    decision_attacked(decided, X, Opposite(), y=["yes", "no"], gamma="auto")
    robustness(decided, X, ["yes", "no"], Wants("yes"), budgets=[1.0])
    print(status, objective)


def wrong(X: Numbers, y: Numbers, z: Numbers) -> None:
    StackelbergRegressor(gamma="strong")  # wrong
    StackelbergRegressor(goal=250.0)  # wrong
    StackelbergRegressor(null_space="ignore")  # wrong
    StackelbergRegressorCV(0.1)  # wrong
    StackelbergRegressor().fit(X, y, goals=z)  # wrong
    solve(X, y, z, "0.5")  # wrong
    solve(X, y, z, 0.5, solver=prints)  # wrong
    solve_path(X, y, z, 0.5)  # wrong
    gamma_from_pull("half", [1.0])  # wrong
    make_attacked_scorer([0.1, 0.2])  # wrong
    StackelbergClassifier(threshold="best")  # wrong
    StackelbergClassifier(goal="yes")  # wrong
