"""Levers: every figure is that of a game solved by itself, and the ranking follows from them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize

from spgls import (
    Floor,
    Population,
    Shift,
    StackelbergRegressor,
    StackelbergRegressorCV,
    Status,
    levers,
    solve,
)
from spgls.datasets import load_insurance, load_wine_quality
from tests.real_games import FOLDER

KINDS = ("verify", "drop", "double")


def random_game(seed):
    """Costs, weights, intercept, ridge, null spaces and populations, each in some of the games."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 7))
    m = int(rng.integers(n + 3, 60))
    X = rng.normal(size=(m, n)) * 10.0 ** rng.uniform(-1.0, 1.0, n) + rng.normal(size=n)
    y = X @ rng.normal(size=n) + rng.normal(size=m)
    z = y + rng.normal(0.5, 1.0, m)
    cost = rng.uniform(0.3, 3.0, n)
    if rng.random() < 0.4:
        cost[rng.integers(n)] = np.inf
    gamma = float(10.0 ** rng.uniform(-1.0, 1.5))
    who = (gamma, Population.mixed(gamma, honest=0.4), Population((0.3, gamma), (0.3, 0.7)))[
        rng.integers(3)
    ]
    weight = rng.uniform(0.0, 2.0, m)
    weight[0] = 0.0
    how = {
        "fit_intercept": bool(rng.random() < 0.7),
        "feature_cost": cost if rng.random() < 0.7 else None,
        "sample_weight": weight if rng.random() < 0.5 else None,
        "ridge": 0.3 if rng.random() < 0.3 else 0.0,
        "null_space": "avoid" if rng.random() < 0.4 else "use",
    }
    return X, y, z, who, how


def alone(X, y, z, who, columns, kind, how):
    """The game with a lever pulled, solved by itself from its own rows."""
    own, X = dict(how), np.asarray(X)
    n = X.shape[1]
    cost = np.ones(n) if own["feature_cost"] is None else np.array(own["feature_cost"])
    if kind == "drop":
        X, cost = np.delete(X, columns, axis=1), np.delete(cost, columns)
    else:
        cost[columns] = np.inf if kind == "verify" else 2.0 * cost[columns]
    return solve(X, y, z, who, **{**own, "feature_cost": cost})


def check_figures(found, X, y, z, who, how):
    """Each figure, its bound and its status are those of a separate solve."""
    weight = len(y) if how["sample_weight"] is None else how["sample_weight"].sum()
    unit = float(np.average(y**2, weights=how["sample_weight"]))
    now = solve(np.asarray(X), y, z, who, **how)
    assert abs(found.now.error - now.objective / weight) <= 1e-8 * unit
    for columns, row in zip(found.columns, found.figures, strict=True):
        for kind, figure in zip(found.kinds, row, strict=True):
            if kind == "drop" and len(columns) == X.shape[1]:
                continue
            other = alone(X, y, z, who, columns, kind, how)
            both = other.status.ok and figure.certified
            bound, error = other.certificate.lower_bound / weight, other.objective / weight
            if both:
                assert abs(figure.error - error) <= 1e-8 * unit
            # Neither bound is above what the other found.
            assert figure.lower_bound <= error * (1 + 1e-12) + 1e-12 * unit
            assert bound <= figure.error * (1 + 1e-12) + 1e-12 * unit


@pytest.mark.parametrize("seed", range(40))
def test_each_figure_is_that_of_a_separate_solve(seed):
    X, y, z, who, how = random_game(seed)
    found = levers(X, y, z, who, **how)
    assert found.kinds == KINDS
    assert sorted(found.names) == [f"x{j}" for j in range(X.shape[1])]
    check_figures(found, X, y, z, who, how)


@pytest.mark.parametrize("seed", range(40, 60))
def test_groups_of_columns_are_changed_together(seed):
    X, y, z, who, how = random_game(seed)
    found = levers(X, y, z, who, groups={"ends": [0, X.shape[1] - 1], "first": 0}, **how)
    assert {n: c.tolist() for n, c in zip(found.names, found.columns, strict=True)} == {
        "ends": [0, X.shape[1] - 1],
        "first": [0],
    }
    check_figures(found, X, y, z, who, how)


def test_most_figures_are_certified():
    games = [random_game(seed) for seed in range(20)]
    found = [levers(*game, **how) for *game, how in games]
    assert np.concatenate([one.certified.ravel() for one in found]).mean() >= 0.95
    assert all((one.lower_bounds <= one.errors).all() for one in found)


@pytest.mark.parametrize("seed", range(6))
def test_no_predictor_is_below_a_bound(seed):
    """Brute force by the provider's own answer: nothing of the library but the numbers judged."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(30, 3)), rng.normal(size=30)
    z, cost = y + rng.normal(0.5, 1.0, 30), rng.uniform(0.5, 2.0, 3)
    gamma, honest = 0.7, 0.3
    people = Population.mixed(gamma, honest=honest)
    found = levers(X, y, z, people, fit_intercept=True, feature_cost=cost)

    def loss(theta, kept, price):
        w, b = theta[:-1], theta[-1]
        said = X[:, kept] @ w + b
        q = float((w**2 / price).sum())
        moved = (said + q / gamma * z) / (1.0 + q / gamma)
        return honest * np.mean((said - y) ** 2) + (1.0 - honest) * np.mean((moved - y) ** 2)

    for columns, row in zip(found.columns, found.figures, strict=True):
        j = int(columns[0])
        for kind, figure in zip(found.kinds, row, strict=True):
            kept = [i for i in range(3) if kind != "drop" or i != j]
            price = cost.copy()
            price[j] = {"verify": np.inf, "drop": 1.0, "double": 2.0 * cost[j]}[kind]
            starts = rng.normal(size=(8, len(kept) + 1)) * 2.0
            tried = [minimize(loss, s, (kept, price[kept])).fun for s in starts]
            assert figure.certified
            assert min(tried) >= figure.lower_bound - 1e-12
            assert min(tried) == pytest.approx(figure.error, rel=1e-6)


@pytest.mark.skipif(not FOLDER, reason="set SPGLS_DATA to the folder of the real data")
@pytest.mark.parametrize("null_space", ["use", "avoid"])
def test_each_figure_on_red_wine(null_space):
    wine = load_wine_quality(FOLDER, as_frame=True)
    X, y, z = wine.X, wine.y.to_numpy(), np.maximum(wine.y.to_numpy(), 6.0)
    how = {"fit_intercept": True, "feature_cost": None, "sample_weight": None, "ridge": 0.0}
    how["null_space"] = null_space
    for people in (50.0, Population.mixed(50.0, honest=0.5)):
        found = levers(X, y, z, people, **how)
        assert sorted(found.names) == sorted(X.columns)
        assert found.certified.all()
        check_figures(found, X, y, z, people, how)


@pytest.mark.skipif(not FOLDER, reason="set SPGLS_DATA to the folder of the real data")
@pytest.mark.parametrize("null_space", ["use", "avoid"])
def test_each_figure_on_insurance_with_its_one_hot_groups(null_space):
    insured = load_insurance(FOLDER, as_frame=True)
    X, y = insured.X, insured.y.to_numpy()
    z = np.maximum(y - 30.0, 0.0)
    how = {"fit_intercept": True, "feature_cost": None, "sample_weight": None, "ridge": 0.0}
    how["null_space"] = null_space
    people = Population.mixed(1e3, honest=0.5)
    groups = ["age", "sex", "bmi", "children", "smoker", "region"]
    found = levers(X, y, z, people, groups=groups, **how)
    assert set(found.names) == set(groups)
    check_figures(found, X, y, z, people, how)


def test_squares_that_lose_digits_are_not_trusted():
    """Columns that nearly depend on others: the triangular factor of the same rows decides."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 5))
    X[:, 4] = X[:, 3] + 1e-7 * rng.normal(size=400)
    X[:, 0] += 1e4
    y = X[:, 1] + 1e6 * (X[:, 4] - X[:, 3]) + rng.normal(size=400)
    z = y + rng.random(400)
    how = {"fit_intercept": True, "feature_cost": None, "sample_weight": None, "ridge": 0.0}
    people = Population.mixed(10.0, honest=0.5)
    for null_space in ("use", "avoid"):
        how["null_space"] = null_space
        found = levers(X, y, z, people, **how)
        assert found.stats.passes >= 2
        check_figures(found, X, y, z, people, how)


def test_the_rows_are_read_once():
    X, y = np.random.default_rng(0).normal(size=(500, 8)), np.arange(500.0) % 7
    found = levers(X, y, y + 1.0, Population.mixed(1.0), fit_intercept=True)
    assert found.stats.passes == 1


def test_features_that_nobody_can_change_are_verified_already():
    X, y, z, _, _ = random_game(1)
    cost = np.ones(X.shape[1])
    cost[0] = np.inf
    found = levers(X, y, z, Population.mixed(1.0), fit_intercept=True, feature_cost=cost)
    row = found.figures[found.names.index("x0")]
    assert row[0] == row[2] == found.now != row[1]


def test_everything_verified_is_least_squares():
    X, y, z, _, _ = random_game(2)
    everything = {"all": list(range(X.shape[1]))}
    found = levers(X, y, z, 1.0, fit_intercept=True, groups=everything, kinds="verify")
    ones = np.column_stack([X, np.ones(len(y))])
    rest = y - ones @ np.linalg.lstsq(ones, y)[0]
    assert found.figures[0][0].status is Status.LEAST_SQUARES
    assert found.figures[0][0].error == pytest.approx(np.mean(rest**2), rel=1e-10)


@pytest.mark.parametrize("rows", [3, None])
def test_everything_dropped_leaves_the_mean_label(rows):
    X, y, z, _, _ = random_game(2)
    X, y, z = X[:rows], y[:rows], z[:rows]
    everything = {"all": list(range(X.shape[1]))}
    found = levers(X, y, z, 1.0, fit_intercept=True, groups=everything, kinds="drop")
    assert found.figures[0][0].error == pytest.approx(np.var(y), rel=1e-10)
    assert found.variance == pytest.approx(np.var(y))


@pytest.mark.parametrize("shape", [(12, 20), (20, 20)])
def test_wide_data_takes_one_game_after_the_other(shape):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=shape), rng.normal(size=shape[0])
    how = {"fit_intercept": True, "feature_cost": None, "sample_weight": None, "ridge": 0.1}
    how["null_space"] = "avoid"
    people = Population.mixed(1.0)
    found = levers(X, y, y + 1.0, people, groups=[0, [1, 2]], **how)
    check_figures(found, X, y, y + 1.0, people, how)


@pytest.mark.parametrize("solver", ["krylov", "spectral"])
def test_sparse_data_and_other_solvers(solver):
    rng = np.random.default_rng(5)
    X = sp.random_array((300, 8), density=0.3, format="csr", rng=rng)
    y = np.asarray(X @ rng.normal(size=8)) + rng.normal(size=300)
    z = np.maximum(y, 0.5)
    found = levers(X, y, z, 0.5, fit_intercept=True, solver=solver, groups=[0, 3])
    dense = levers(X.toarray(), y, z, 0.5, fit_intercept=True, groups=[0, 3])
    assert found.names == dense.names
    assert np.allclose(found.errors, dense.errors, rtol=1e-8)


def test_numbers_without_squares_are_no_trouble():
    X, y, z, _, _ = random_game(4)
    plain = levers(X, y, z, 0.5, fit_intercept=True)
    huge = levers(X, 1e80 * y, 1e80 * z, 0.5e160, fit_intercept=True)
    assert plain.names == huge.names
    assert np.allclose(huge.errors / 1e160, plain.errors, rtol=1e-9)


def test_names_of_columns_and_of_one_hot_groups():
    frame = pd.DataFrame(
        np.random.default_rng(0).normal(size=(60, 4)),
        columns=["age", "cat__region_north", "cat__region_south", "num__bmi"],
    )
    y = frame.to_numpy() @ [1.0, 1.0, 0.0, 2.0]
    found = levers(frame, y, Shift(1.0), Population.mixed(1.0), groups=["region", "age", "bmi"])
    held = dict(zip(found.names, (c.tolist() for c in found.columns), strict=True))
    assert held == {"region": [1, 2], "age": [0], "bmi": [3]}
    assert levers(frame, y, Shift(1.0), 1.0, kinds="drop").names[0] in frame.columns
    listed = levers(frame, y, Shift(1.0), 1.0, groups=[["age", 3]], kinds=["double"])
    assert listed.names == ("age, num__bmi",)
    table = listed.to_dataframe()
    assert list(table.columns) == [
        "feature",
        "double",
        "double_lower_bound",
        "double_status",
        "double_certified",
    ]


def test_the_answer_names_the_largest_fall():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = X @ [0.3, 2.0, 0.5] + rng.normal(scale=0.5, size=400)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    found = levers(frame, y, Floor(2.0), Population.mixed(1.0), fit_intercept=True)
    assert found.names[0] == found.ranking("verify")[0] == "b"
    assert found.answer.startswith("Verify b first: error after manipulation falls from ")
    assert (np.diff(found.errors[:, 0]) >= 0.0).all()
    assert found.gains[0, 0] == found.now.error - found.errors[0, 0] > 0.0
    dropped = found.errors[:, 1]
    assert found.ranking("drop") == [found.names[at] for at in np.argsort(dropped)]
    assert "y from z alone" in repr(found)
    assert "Dropping a single one does not lower it" in found.answer


def test_what_is_not_certified_is_marked():
    """Goals that reveal the labels against copies of a column: nothing is proved to 1e-30."""
    X, y, z, _, _ = random_game(3)
    found = levers(X, y, z, Population.mixed(1.0), fit_intercept=True, tol=1e-30)
    assert not found.certified.all()
    assert "* not certified" in repr(found)
    assert "(not certified)" in found.answer
    assert set(found.to_dict()["verify_status"]) == {"inaccurate"}


@pytest.mark.parametrize(
    ("how", "kind", "words"),
    [
        ({"groups": "age"}, TypeError, "groups must be a list of column names"),
        ({"groups": []}, ValueError, "at least one group"),
        ({"groups": ["agee"]}, ValueError, "groups names 'agee'.*Did you mean 'age'"),
        ({"groups": [7]}, ValueError, "position 7; X has 2 columns"),
        ({"groups": {"a": []}}, ValueError, "group without columns"),
        ({"groups": [0, "age"]}, ValueError, "two groups of the name 'age'"),
        ({"groups": {3: [0]}}, TypeError, "names as keys"),
        ({"groups": [2.5]}, TypeError, "got 2.5"),
        ({"groups": [True]}, TypeError, "got True"),
        ({"kinds": "verfy"}, ValueError, "kinds must be one or several of 'verify'"),
        ({"kinds": []}, ValueError, "got none"),
        ({"kinds": 3}, TypeError, "kinds must be"),
        ({"solver": "gltr", "null_space": "avoid"}, ValueError, "plays the game as stated"),
    ],
)
def test_bad_input_is_named(how, kind, words):
    frame = pd.DataFrame(np.arange(12.0).reshape(6, 2) ** 2, columns=["age", "bmi"])
    y = np.arange(6.0)
    with pytest.raises(kind, match=words):
        levers(frame, y, y + 1.0, 1.0, **how)


def test_names_need_names():
    with pytest.raises(ValueError, match="have no names"):
        levers(np.eye(3), np.ones(3), np.zeros(3), 1.0, groups=["age"])


def test_a_kind_that_was_not_tried_is_named():
    found = levers(np.eye(4)[:, :2], np.ones(4), np.zeros(4), 1.0, kinds="verify")
    with pytest.raises(ValueError, match="kind must be one of 'verify'; got 'drop'"):
        found.ranking("drop")


class TestModel:
    """The method of the estimators plays the game that they were fitted for."""

    def frame(self):
        rng = np.random.default_rng(2)
        X = pd.DataFrame(rng.normal(size=(200, 3)), columns=["a", "b_x", "b_y"])
        return X, X.to_numpy() @ [1.0, 2.0, 0.5] + rng.normal(size=200)

    @pytest.mark.parametrize("gamma", ["auto", 2.0, Population((1.0, 5.0), (0.5, 0.5))])
    def test_the_game_is_that_of_the_fit(self, gamma):
        X, y = self.frame()
        model = StackelbergRegressor(gamma, goal=Floor(1.0), ridge=0.5, feature_cost={"a": 3.0})
        model.fit(X, y)
        found = model.levers(X, y, groups=["a", "b"], kinds=["verify", "double"])
        assert found.now.error == pytest.approx(model.objective_ / len(y), rel=1e-9)
        people = gamma
        if not isinstance(gamma, Population):
            people = Population.mixed(model.gamma_, honest=0.5)
        same = levers(
            X,
            y,
            Floor(1.0),
            people,
            groups=["a", "b"],
            kinds=["verify", "double"],
            fit_intercept=True,
            ridge=0.5,
            feature_cost=[3.0, 1.0, 1.0],
            null_space="avoid",
        )
        assert found.names == same.names
        assert np.array_equal(found.errors, same.errors)

    def test_goals_may_be_given(self):
        X, y = self.frame()
        model = StackelbergRegressor(1.0).fit(X, y, z=y + 1.0)
        found = model.levers(X, y, y + 1.0)
        assert found.now.error == pytest.approx(model.objective_ / len(y), rel=1e-9)
        with pytest.raises(ValueError, match="z or a goal is needed"):
            model.levers(X, y)

    def test_a_search_plays_what_it_chose(self):
        X, y = self.frame()
        search = StackelbergRegressorCV(
            [0.5, 5.0], honest_shares=[0.3], ridges=[0.2], goal=Floor(1.0), world=1.0
        )
        search.fit(X, y)
        found = search.levers(X, y)
        assert found.now.error == pytest.approx(search.objective_ / len(y), rel=1e-9)

    def test_other_columns_are_refused(self):
        X, y = self.frame()
        model = StackelbergRegressor(1.0, goal=Floor(1.0)).fit(X, y)
        with pytest.raises(ValueError, match="feature"):
            model.levers(X[["a", "b_x"]], y)
        assert model.n_features_in_ == 3


@pytest.mark.parametrize("noise", [1e-5, 1e-7, 1e-9, 1e-11, 1e-13])
def test_a_column_that_a_verified_one_nearly_repeats(noise):
    """Beside it there is nothing to see, so a predictor that avoids null spaces leaves it alone."""
    rng = np.random.default_rng(int(-np.log10(noise)))
    X = rng.normal(size=(60, 3))
    X[:, 2] = X[:, 0] + noise * rng.normal(size=60)
    y = X[:, 0] - X[:, 1] + rng.normal(size=60)
    z, people = y + rng.normal(0.5, 1.0, 60), Population.mixed(2.0, honest=0.4)
    how = {"fit_intercept": True, "feature_cost": np.array([1.0, 2.0, 0.5]), "sample_weight": None}
    how |= {"ridge": 0.0, "null_space": "avoid"}
    found = levers(X, y, z, people, **how)
    check_figures(found, X, y, z, people, how)
    if noise < 1e-6:
        assert found.certified.all()
        assert found.figures[found.names.index("x0")][0].error == pytest.approx(
            found.figures[found.names.index("x2")][0].error, rel=1e-4
        )


@pytest.mark.parametrize("seed", range(12))
def test_a_verified_one_hot_group_adds_up_to_the_intercept(seed):
    """Its rank is one less than its columns, however rounding comes out."""
    rng = np.random.default_rng(seed)
    smokes = rng.random(1338) < 0.2
    X = np.column_stack([rng.uniform(18, 64, 1338), ~smokes, smokes]).astype(float)
    y = 2.5 * X[:, 0] + 240.0 * smokes + rng.normal(scale=60.0, size=1338)
    z, people = np.maximum(y - 30.0, 0.0), Population.mixed(1e3, honest=0.5)
    how = {"fit_intercept": True, "feature_cost": [1.0, np.inf, np.inf]}
    assert np.abs(solve(X, y, z, people, **how).coef).max() < 1e4
    found = levers(X, y, z, people, fit_intercept=True, groups=[[1, 2]], kinds="verify")
    assert found.figures[0][0].certified
