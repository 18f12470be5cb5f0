"""Sums of rows with cost matrices and actions: what the rows themselves would give."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from spgls import (
    Actions,
    Between,
    Floor,
    GameStatistics,
    Population,
    StackelbergRegressor,
    Switches,
    certify,
    solve,
    solve_path,
)

METHODS = ("moments", "triangular")
KINDS = ("matrix", "fewer", "as many", "more", "some")


def cost_of(kind: str, n: int, rng: np.random.Generator):
    """What people can do, as it would be told."""
    if kind == "matrix":
        root = rng.normal(size=(n, n))
        return root @ root.T + 0.1 * np.eye(n)
    if kind == "some":
        effects = np.zeros((2, n))
        effects[:, :2] = rng.normal(size=(2, 2))
        return Actions(effects, others=2.0)
    count = {"fewer": max(1, n - 2), "as many": n, "more": n + 2}[kind]
    return Actions(rng.normal(size=(count, n)), cost=rng.uniform(0.5, 3.0, count))


def drawn(seed: int, kind: str):
    rng = np.random.default_rng([21, seed, KINDS.index(kind)])
    n = int(rng.integers(2, 6))
    m = int(rng.integers(3 * n + 6, 60))
    far = rng.choice([0.0, 1.0, 1e4]) if seed % 2 else 0.0
    X = rng.normal(size=(m, n)) * rng.choice([1.0, 3.0, 0.2], size=n) + far * rng.normal(size=n)
    y = (X - X.mean(axis=0)) @ rng.normal(size=n) + rng.normal(size=m)
    gamma = float(np.exp(rng.normal()))
    people = (
        gamma,
        Population((math.inf, gamma, 3 * gamma), (0.3, 0.4, 0.3)),
        Between(gamma, 4 * gamma),
        Population.mixed(Between(gamma, 4 * gamma), honest=0.4),
    )[seed % 4]
    how = {
        "feature_cost": cost_of(kind, n, rng),
        "fit_intercept": bool(seed % 2),
        "ridge": 0.1 if seed % 5 == 0 else 0.0,
    }
    weight = rng.uniform(0.2, 2.0, m) if seed % 3 == 0 else None
    return X, y, y + rng.normal(0.5, 1.0, m), people, how, weight


def added(X, y, z, weight, method):
    """Statistics of three pieces, put together."""
    parts = np.array_split(np.arange(len(y)), 3)
    return sum(
        GameStatistics.from_data(
            X[some],
            y[some],
            z[some],
            sample_weight=None if weight is None else weight[some],
            method=method,
        )
        for some in parts
    )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(8))
def test_equal_to_the_rows(seed, kind, method):
    X, y, z, people, how, weight = drawn(seed, kind)
    rows = solve(X, y, z, people, sample_weight=weight, **how)
    sums = added(X, y, z, weight, method)
    found = sums.solve(people, **how)
    unit = float(y @ y)
    assert rows.status.ok
    assert found.status.ok
    assert found.certificate.kind == "proved"
    assert found.objective == pytest.approx(rows.objective, abs=1e-11 * unit)
    assert found.certificate.lower_bound <= rows.objective + 1e-13 * unit
    assert rows.certificate.lower_bound <= found.objective + 1e-13 * unit
    told = X @ np.column_stack([found.coef, rows.coef]) + [found.intercept, rows.intercept]
    np.testing.assert_allclose(*told.T, atol=1e-6 * abs(y).max())
    np.testing.assert_allclose(found.alpha, rows.alpha, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", KINDS)
def test_any_predictor_is_judged_as_by_the_rows(kind, method):
    for seed in range(4):
        X, y, z, people, how, weight = drawn(seed, kind)
        sums, rng = added(X, y, z, weight, method), np.random.default_rng(seed)
        coef = rng.normal(size=X.shape[1])
        given = {name: how[name] for name in ("feature_cost", "ridge")}
        if how["fit_intercept"]:
            given["intercept"] = float(rng.normal() - X.mean(axis=0) @ coef)
        mine = sums.certify(coef, people, **given)
        its = certify(X, y, z, people, coef, sample_weight=weight, **given)
        assert mine.lower_bound + mine.gap == pytest.approx(its.lower_bound + its.gap, rel=1e-9)
        assert mine.relative_gap == pytest.approx(its.relative_gap, rel=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_paths(method):
    X, y, z, _, how, _ = drawn(3, "matrix")
    gammas = np.geomspace(0.1, 10.0, 5)
    mine = added(X, y, z, None, method).solve_path(gammas, **how)
    its = solve_path(X, y, z, gammas, **how)
    np.testing.assert_allclose(mine.objective, its.objective, rtol=1e-10)
    np.testing.assert_allclose(mine.coef, its.coef, rtol=1e-6, atol=1e-8)


def test_bounds_of_hostile_games_are_true():
    """Nearly dependent columns and actions, means and costs of very different sizes."""
    proved = 0
    for seed in range(60):
        rng = np.random.default_rng([22, seed])
        n = int(rng.integers(2, 6))
        m = int(rng.integers(n + 4, 50))
        X = rng.normal(size=(m, n)) * 10 ** rng.uniform(-3, 3, n)
        X += rng.choice([0.0, 1e3, 1e6]) * rng.normal(size=n)
        if seed % 3 == 0:
            X[:, 0] = X[:, 1] + 10 ** rng.uniform(-9, -1) * rng.normal(size=m)
        y = (X - X.mean(axis=0)) @ (rng.normal(size=n) / X.std(axis=0)) + rng.normal(size=m)
        z, gamma = y + rng.normal(size=m), 10 ** rng.uniform(-2, 3)
        turn = np.linalg.qr(rng.normal(size=(n, n)))[0]
        B = rng.normal(size=(n, n))
        B[0] = B[1] + 10 ** rng.uniform(-10, -2) * rng.normal(size=n)
        root = turn * 10 ** rng.uniform(-2, 2, n)
        how = {
            "feature_cost": root @ root.T if seed % 2 else Actions(B),
            "fit_intercept": seed % 5 > 0,
        }
        people = Population.mixed(gamma) if seed % 4 else gamma
        rows = solve(X, y, z, people, **how)
        for method in METHODS:
            found = added(X, y, z, None, method).solve(people, **how)
            best = min(rows.objective, found.objective)
            assert found.certificate.lower_bound <= best + 1e-12 * float(y @ y)
            proved += found.certificate.kind == "proved"
    # Actions closer to dependent than 1e-7, of which there are some, prove nothing.
    assert proved >= 45


@pytest.fixture
def insured():
    rng = np.random.default_rng(0)
    m = 300
    region = rng.integers(0, 3, m)
    X = pd.DataFrame({"age": rng.uniform(20, 60, m), "bmi": rng.normal(28.0, 5.0, m)})
    for at in range(3):
        X[f"region_{at}"] = (region == at).astype(float)
    y = 0.3 * X.age + 0.5 * X.bmi + 5.0 * region + rng.normal(size=m)
    return X, y


@pytest.mark.parametrize("method", METHODS)
def test_the_sum_of_a_one_hot_group_is_the_intercept(insured, method):
    X, y = insured
    costs = {"age": math.inf, "bmi": 1.0, "region": Switches(4.0)}
    z = y - 5.0 + 0.1 * X.bmi
    sums = GameStatistics.from_data(X, y, z, method=method)
    for null_space in ("use", "avoid"):
        how = {"feature_cost": costs, "fit_intercept": True, "null_space": null_space}
        rows, found = solve(X, y, z, 20.0, **how), sums.solve(20.0, **how)
        # Sums do not tell whether it is so exactly, and claim no more than they know.
        assert found.objective == pytest.approx(rows.objective, abs=1e-11 * float(y @ y))
        assert found.certificate.lower_bound <= rows.objective
        proved = method == "triangular" and null_space == "avoid"
        assert (found.certificate.kind == "proved") == proved
        given = {"intercept": rows.intercept, "feature_cost": costs, "null_space": null_space}
        judged = sums.certify(rows.coef, 20.0, **given)
        objective = judged.lower_bound + judged.gap
        assert objective == pytest.approx(rows.objective, abs=1e-11 * float(y @ y))


def test_partial_fit_takes_actions(insured):
    X, y = insured
    sport = Actions({"sport": {"bmi": -2.0, "age": 0.5}}, others=3.0)
    model = StackelbergRegressor(20.0, goal=Floor(30.0), feature_cost=sport)
    for some in np.array_split(np.arange(len(y)), 4):
        model.partial_fit(X.iloc[some], y.iloc[some])
    whole = StackelbergRegressor(20.0, goal=Floor(30.0), feature_cost=sport).fit(X, y)
    np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-8)
    assert model.intercept_ == pytest.approx(whole.intercept_, rel=1e-8)
