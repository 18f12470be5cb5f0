"""Levers where people move by actions, or costs are a matrix."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from spgls import Actions, Cap, Population, StackelbergRegressor, Switches, levers, solve
from spgls.game.costs import read_cost

KINDS = ("verify", "drop", "double")


def drawn(seed: int):
    """A random game by actions or with a matrix of costs, and the ``K`` of its moves."""
    rng = np.random.default_rng([50, seed])
    n = int(rng.integers(2, 6))
    m = int(rng.integers(n + 4, 50))
    X = rng.normal(size=(m, n)) * rng.choice([1.0, 3.0, 0.2], size=n) + rng.normal(size=n)
    y = X @ rng.normal(size=n) + rng.normal(size=m)
    z = y + rng.normal(0.5, 1.0, m)
    gamma = float(10 ** rng.uniform(-1, 1))
    if seed % 3 == 0:
        root = rng.normal(size=(n, n))
        cost = root @ root.T + 0.1 * np.eye(n)
        K = np.linalg.inv(cost)
    else:
        B = rng.normal(size=(int(rng.integers(1, n + 3)), n)) * (rng.random(n) < 0.8)
        B[:, 0] += 0.5
        c = rng.uniform(0.5, 3.0, len(B))
        cost, K = Actions(B, cost=c), B.T @ np.diag(1.0 / c) @ B
    how = {
        "fit_intercept": bool(seed % 2),
        "sample_weight": rng.uniform(0.2, 2.0, m) if seed % 5 == 0 else None,
        "ridge": 0.1 if seed % 7 == 0 else 0.0,
    }
    return X, y, z, gamma if seed % 4 else Population.mixed(gamma, 0.4), cost, K, how


def pulled(K: np.ndarray, columns: list[int], kind: str) -> np.ndarray:
    """``K`` with a surcharge on changes of some columns, by the limit of a large one."""
    part = K[np.ix_(columns, columns)]
    middle = part + (np.diag(np.diag(part)) if kind == "double" else 0.0)
    return K - K[:, columns] @ np.linalg.pinv(middle, rcond=1e-10) @ K[columns]


def root_of(K: np.ndarray) -> Actions | np.ndarray:
    """Actions with a given ``K``, or costs that nobody can pay."""
    values, vectors = np.linalg.eigh(K)
    there = values > 1e-10 * max(values.max(), 1e-300)
    if not there.any() or abs(K).max() < 1e-12:
        return np.full(len(K), math.inf)
    rows = np.sqrt(values[there])[:, None] * vectors[:, there].T
    rows[:, np.diag(K) < 1e-12] = 0.0
    return Actions(rows)


@pytest.mark.parametrize("seed", range(40))
def test_each_figure_is_that_of_a_separate_solve(seed):
    X, y, z, who, cost, K, how = drawn(seed)
    n = X.shape[1]
    groups = {f"x{j}": [j] for j in range(n)} | ({"both": [0, n - 1]} if n > 2 else {})
    found = levers(X, y, z, who, groups=groups, feature_cost=cost, **how)
    total = len(y) if how["sample_weight"] is None else how["sample_weight"].sum()
    unit = float(np.mean(y**2))
    now = solve(X, y, z, who, feature_cost=cost, **how)
    assert found.now.error == pytest.approx(now.objective / total, abs=1e-8 * unit)
    for name, row in zip(found.names, found.figures, strict=True):
        for kind, figure in zip(found.kinds, row, strict=True):
            columns, seen, left = groups[name], X, K
            if kind == "drop":
                keep = np.delete(np.arange(n), columns)
                seen, left = X[:, keep], K[np.ix_(keep, keep)]
            else:
                left = pulled(K, columns, kind)
            if not seen.shape[1]:
                continue
            alone = solve(seen, y, z, who, feature_cost=root_of(left), **how)
            if alone.status.ok and figure.certified:
                assert figure.error == pytest.approx(alone.objective / total, abs=1e-8 * unit)
            assert figure.lower_bound <= alone.objective / total + 1e-11 * unit
    assert found.certified.mean() >= 0.9


def test_what_people_do_is_the_best_they_may():
    """Providers of the changed moves solve their own problem, which has the surcharge."""
    rng = np.random.default_rng(3)
    B, c, w = rng.normal(size=(4, 3)), rng.uniform(0.5, 2.0, 4), rng.normal(size=3)
    some, gamma, gap = np.array([1, 2]), 0.7, 1.3
    moves = read_cost(Actions(B, cost=c), 3, None)
    worth, own = np.diag(B.T @ np.diag(1.0 / c) @ B)[some], B @ w
    for forbidden, extra in ((False, 1.0), (True, 1e9)):
        told = moves.dearer(some, forbidden=forbidden)
        change = told.direction(w) * gap / (gamma + told.reach(w))
        # Amounts a cost sum(c a^2) and a surcharge on what they do to some columns.
        price = np.diag(c) + extra * B[:, some] @ np.diag(1.0 / worth) @ B[:, some].T
        amounts = np.linalg.solve(gamma * price + np.outer(own, own), own * gap)
        np.testing.assert_allclose(B.T @ amounts, change, atol=1e-7)
    assert (change[some] == 0.0).all()


def test_single_costs_are_what_they_were():
    X, y, z, who, _, _, how = drawn(2)
    n = X.shape[1]
    cost = np.linspace(0.5, 2.0, n)
    # The same costs as actions that a last one, which nobody can take, joins.
    effects = np.vstack([np.eye(n), np.ones(n)])
    joined = Actions(effects, cost=[*cost, 1e12])
    plain = levers(X, y, z, who, feature_cost=cost, **how)
    other = levers(X, y, z, who, feature_cost=joined, **how)
    assert plain.names == other.names
    np.testing.assert_allclose(plain.errors, other.errors, rtol=1e-6)


def test_one_hot_groups_and_models():
    rng = np.random.default_rng(0)
    m = 200
    smoker, region = rng.integers(0, 2, m), rng.integers(0, 3, m)
    X = pd.DataFrame({"age": rng.uniform(20, 60, m), "bmi": rng.normal(28.0, 5.0, m)})
    X["smoker_no"], X["smoker_yes"] = 1.0 - smoker, 1.0 * smoker
    for at in range(3):
        X[f"region_{at}"] = (region == at).astype(float)
    y = 0.3 * X.age + 0.5 * X.bmi + 20.0 * smoker + region + rng.normal(size=m)
    costs = {"age": math.inf, "bmi": 1.0, "smoker": Switches(40.0), "region": Switches(4.0)}
    model = StackelbergRegressor(5.0, goal=Cap(25.0), feature_cost=costs).fit(X, y)
    found = model.levers(X, y, groups=["age", "bmi", "smoker", "region"])
    assert found.certified.all()
    at = dict(zip(found.names, found.figures, strict=True))
    # Nobody can change the age, whatever is checked.
    assert at["age"][0].error == at["age"][2].error == found.now.error
    checked = StackelbergRegressor(
        5.0, goal=Cap(25.0), feature_cost=costs | {"smoker": math.inf}
    ).fit(X, y)
    assert at["smoker"][0].error == pytest.approx(checked.objective_ / m, rel=1e-8)


def test_rows_are_read_once_where_sums_prove_all():
    X, y, z, _, cost, _, _ = drawn(6)
    found = levers(X, y, z, 2.0, feature_cost=cost, solver="spectral", fit_intercept=True)
    assert found.certified.all()
    assert found.stats.passes == 1.0
