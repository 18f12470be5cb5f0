"""What people do with the estimator, from end to end."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_transformer
from sklearn.datasets import load_diabetes
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from spgls import (
    Cap,
    Floor,
    Population,
    Shift,
    StackelbergRegressor,
    gamma_from_pull,
    make_attacked_scorer,
    predict_attacked,
)

inf = np.inf


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    gamma = gamma_from_pull(0.5, LinearRegression().fit(X, y).coef_)
    return X, y, np.maximum(y, 250.0), gamma


@pytest.fixture(scope="module")
def flats():
    """Flats with an age, a size, a number of rooms, and a city; sellers like high prices."""
    rng = np.random.default_rng(0)
    m = 300
    table = pd.DataFrame(
        {
            "age": rng.integers(0, 80, size=m),
            "size": rng.normal(80.0, 20.0, size=m),
            "city": rng.choice(["Paris", "Rome", "Oslo"], size=m),
            "city_tax": rng.normal(size=m),
        }
    )
    bonus = table["city"].map({"Paris": 50.0, "Rome": 10.0, "Oslo": 30.0})
    y = 3.0 * table["size"] - table["age"] + bonus + 5.0 * rng.normal(size=m)
    return table, y


def flat_model(cost, *, verbose=True, **parameters):
    encode = ColumnTransformer(
        [
            ("num", StandardScaler(), ["age", "size", "city_tax"]),
            ("cat", OneHotEncoder(sparse_output=False), ["city"]),
        ],
        verbose_feature_names_out=verbose,
    )
    model = StackelbergRegressor(goal=Shift(50.0, upper=350.0), feature_cost=cost, **parameters)
    return Pipeline([("encode", encode.set_output(transform="pandas")), ("model", model)])


class TestCostsByName:
    @pytest.mark.parametrize("verbose", [True, False])
    def test_a_column_and_a_one_hot_group(self, flats, verbose):
        X, y = flats
        model = flat_model({"age": inf, "city": 4.0, "size": 2.0}, verbose=verbose).fit(X, y)
        by_name = dict(
            zip(model[-1].feature_names_in_, model[-1].feature_cost_.tolist(), strict=True)
        )
        mark = "{}__{}".format if verbose else "{1}".format
        # "city" names no column exactly, so it stands for all that begin with "city_".
        assert by_name == {
            mark("num", "age"): inf,
            mark("num", "size"): 2.0,
            mark("num", "city_tax"): 4.0,
            mark("cat", "city_Oslo"): 4.0,
            mark("cat", "city_Paris"): 4.0,
            mark("cat", "city_Rome"): 4.0,
        }

    def test_the_closer_name_wins(self, flats):
        X, y = flats
        cost = {"city": 4.0, "city_tax": 0.5, "cat__city_Rome": 7.0, "city_Oslo": 6.0}
        for order in (cost, dict(reversed(cost.items()))):
            model = flat_model(order).fit(X, y)
            found = dict(zip(model[-1].feature_names_in_, model[-1].feature_cost_, strict=True))
            assert found["num__city_tax"] == 0.5
            assert found["cat__city_Rome"] == 7.0
            assert found["cat__city_Oslo"] == 6.0
            assert found["cat__city_Paris"] == 4.0
            assert found["num__age"] == 1.0

    def test_the_same_as_an_array(self, flats):
        X, y = flats
        named = flat_model({"age": inf, "city": 4.0, "city_tax": 1.0}).fit(X, y)
        array = flat_model([inf, 1.0, 1.0, 4.0, 4.0, 4.0]).fit(X, y)
        np.testing.assert_array_equal(named.predict(X), array.predict(X))

    def test_nobody_moves_what_cannot_be_moved(self, flats):
        X, y = flats
        model = flat_model({"age": inf, "city": inf, "city_tax": 1.0}).fit(X, y)
        seen = model[:-1].transform(X)
        moved = model[-1].best_response(seen, model[-1].goal(y))
        assert isinstance(moved, pd.DataFrame)
        changed = [name for name in seen if not np.allclose(seen[name], moved[name])]
        assert changed == ["num__size", "num__city_tax"]

    def test_without_names_it_says_how_to_get_them(self, flats):
        X, y = flats
        model = flat_model({"age": inf})
        model.set_params(encode=model[0].set_output(transform="default"))
        with pytest.raises(ValueError, match=r"set_output\(transform='pandas'\)"):
            model.fit(X, y)

    def test_sparse_columns_have_none_but_their_encoder_knows_them(self, flats):
        X, y = flats
        encode = make_column_transformer(
            (StandardScaler(), ["age", "size"]), (OneHotEncoder(), ["city"]), sparse_threshold=1.0
        )
        rule = {"goal": Shift(50.0, upper=350.0)}
        model = make_pipeline(encode, StackelbergRegressor(feature_cost={"city": 4.0}, **rule))
        with pytest.raises(ValueError, match=r"sparse data has no names.*get_feature_names_out"):
            model.fit(X, y)
        names = encode.fit(X).get_feature_names_out()
        cost = [4.0 if "__city_" in name else 1.0 for name in names]
        model = make_pipeline(encode, StackelbergRegressor(feature_cost=cost, **rule)).fit(X, y)
        # Whoever is given the whole Pipeline asks the encoder.
        z = rule["goal"](y)
        np.testing.assert_array_equal(
            predict_attacked(model, X, z, gamma=0.5, feature_cost={"city": 4.0}),
            predict_attacked(model, X, z, gamma=0.5, feature_cost=cost),
        )

    def test_in_a_scorer_too(self, flats):
        X, y = flats
        cost = {"age": inf, "city": 4.0}
        by_name = make_attacked_scorer(0.5, goal=Shift(50.0), feature_cost=cost)
        model = flat_model(cost).fit(X, y)
        array = make_attacked_scorer(0.5, goal=Shift(50.0), feature_cost=model[-1].feature_cost_)
        assert by_name(model, X, y) == array(model, X, y)
        # Names are found behind a transformer that forgets them.
        steps = make_column_transformer(
            (StandardScaler(), ["age", "size"]), (OneHotEncoder(), ["city"])
        )
        assert np.isfinite(by_name(make_pipeline(steps, Ridge()).fit(X, y), X, y))


class TestSearches:
    def test_goals_from_the_labels(self, diabetes):
        X, y, _, gamma = diabetes
        model = StackelbergRegressor(goal=Floor(0.0))
        world = make_attacked_scorer(gamma, goal=Floor(250.0))
        grid = {
            "gamma": ["auto", 1e5, 1e6],
            "honest_share": [0.2, 0.5],
            "goal__level": [200.0, 250.0],
        }
        search = GridSearchCV(model, grid, scoring=world, cv=5).fit(X, y)
        assert len(search.cv_results_["params"]) == 12
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()
        assert model.goal == Floor(0.0)
        best = search.best_estimator_
        assert best.goal.level == search.best_params_["goal__level"]
        scores = {
            (row["gamma"], row["honest_share"], row["goal__level"]): score
            for row, score in zip(
                search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True
            )
        }
        # At the strength of the world, who knows what people want does better.
        for share in (0.2, 0.5):
            assert scores["auto", share, 250.0] > scores["auto", share, 200.0]
        found = predict_attacked(search, X, Floor(250.0)(y), gamma=gamma)
        wanted = best.predict_attacked(X, Floor(250.0)(y), gamma=gamma)
        np.testing.assert_allclose(found, wanted, rtol=1e-12)

    def test_a_world_of_one_strength_is_not_gamed_by_the_candidates(self, diabetes):
        # Judged at its own strength the weakest provider always looks best.
        X, y, _, gamma = diabetes
        candidates = [gamma / 10, gamma, gamma * 1e6]
        own, fixed = [], []
        for strength in candidates:
            model = StackelbergRegressor(strength, goal=Floor(250.0))
            for scores, world in ((own, strength), (fixed, gamma)):
                scorer = make_attacked_scorer(world, goal=Floor(250.0))
                scores.append(cross_val_score(model, X, y, scoring=scorer, cv=5).mean())
        assert np.argmax(own) == 2
        assert np.argmax(fixed) != 2

    def test_routed_goals(self, diabetes):
        X, y, z, gamma = diabetes
        grid = {"gamma": ["auto", 1e6], "honest_share": [0.2, 0.5]}
        wanted = GridSearchCV(
            StackelbergRegressor(goal=Floor(250.0)),
            grid,
            scoring=make_attacked_scorer(gamma, goal=Floor(250.0)),
        ).fit(X, y)
        with sklearn.config_context(enable_metadata_routing=True):
            search = GridSearchCV(
                StackelbergRegressor(), grid, scoring=make_attacked_scorer(gamma)
            ).fit(X, y, z=z)
            steps = Pipeline([("scale", FunctionTransformer()), ("model", StackelbergRegressor())])
            piped = GridSearchCV(
                steps,
                {f"model__{name}": values for name, values in grid.items()},
                scoring=make_attacked_scorer(gamma),
            ).fit(X, y, z=z)
        for found in (search, piped):
            np.testing.assert_array_equal(
                found.cv_results_["mean_test_score"], wanted.cv_results_["mean_test_score"]
            )

    def test_goals_routed_to_the_scorer_alone(self, diabetes):
        X, y, z, gamma = diabetes
        model = StackelbergRegressor(goal=Floor(250.0))
        with sklearn.config_context(enable_metadata_routing=True):
            scorer = make_attacked_scorer(gamma)
            found = cross_val_score(model, X, y, scoring=scorer, params={"z": z})
            asked = clone(model).set_fit_request(z=True)
            with pytest.raises(ValueError, match=r"^z was given and so was goal"):
                cross_val_score(asked, X, y, scoring=scorer, params={"z": z}, error_score="raise")
        wanted = make_attacked_scorer(gamma, goal=Floor(250.0))
        np.testing.assert_array_equal(found, cross_val_score(model, X, y, scoring=wanted))

    def test_routed_weights(self, diabetes):
        X, y, z, gamma = diabetes
        weight = np.random.default_rng(0).integers(1, 4, size=len(y)).astype(float)
        with sklearn.config_context(enable_metadata_routing=True):
            model = StackelbergRegressor().set_fit_request(sample_weight=True)
            scorer = make_attacked_scorer(gamma).set_score_request(sample_weight=True)
            found = cross_validate(
                model, X, y, scoring=scorer, params={"z": z, "sample_weight": weight}, cv=KFold(3)
            )
        for score, (train, test) in zip(found["test_score"], KFold(3).split(X), strict=True):
            one = StackelbergRegressor().fit(
                X.iloc[train], y.iloc[train], z=z.iloc[train], sample_weight=weight[train]
            )
            rows, labels, goals = X.iloc[test], y.iloc[test], z.iloc[test]
            wanted = scorer(one, rows, labels, z=goals, sample_weight=weight[test])
            assert score == pytest.approx(wanted, rel=1e-12)

    def test_z_without_routing(self, diabetes):
        X, y, z, gamma = diabetes
        scorer = make_attacked_scorer(gamma, goal=Floor(250.0))
        search = GridSearchCV(StackelbergRegressor(), {"ridge": [0.0, 1e-3]}, scoring=scorer)
        search.fit(X, y, z=z)
        steps = Pipeline([("scale", StandardScaler()), ("model", StackelbergRegressor())])
        steps.fit(X, y, model__z=z)
        assert search.best_score_ > 0.3
        assert steps[-1].status_.ok

    def test_several_scorers(self, diabetes):
        X, y, _, gamma = diabetes
        scoring = {
            "honest": "r2",
            "attacked": make_attacked_scorer(gamma, goal=Floor(250.0)),
            "mixed": make_attacked_scorer(Population.mixed(gamma), goal=Floor(250.0)),
            "error": make_attacked_scorer(
                gamma, goal=Floor(250.0), metric="neg_root_mean_squared_error"
            ),
        }
        models = {"game": StackelbergRegressor(goal=Floor(250.0)), "ridge": Ridge(alpha=0.05)}
        scores = {}
        for name, model in models.items():
            found = cross_validate(model, X, y, scoring=scoring, cv=5)
            scores[name] = {key: found[f"test_{key}"].mean() for key in scoring}
            between = sorted([scores[name]["honest"], scores[name]["attacked"]])
            assert between[0] < scores[name]["mixed"] < between[1]
        assert scores["game"]["attacked"] > scores["ridge"]["attacked"]
        assert scores["game"]["mixed"] > scores["ridge"]["mixed"]
        assert scores["game"]["error"] > scores["ridge"]["error"]

    def test_two_processes(self, diabetes):
        X, y, _, gamma = diabetes
        model = StackelbergRegressor(goal=Floor(250.0))
        scorer = make_attacked_scorer(gamma, goal=Floor(250.0))
        one = cross_val_score(model, X, y, scoring=scorer, cv=4)
        two = cross_val_score(model, X, y, scoring=scorer, cv=4, n_jobs=2)
        np.testing.assert_allclose(two, one, rtol=1e-10)


class TestData:
    def test_sparse_text(self):
        rng = np.random.default_rng(0)
        words = [f"w{number}" for number in range(400)]
        worth = rng.normal(size=400)
        texts, y = [], []
        for _ in range(150):
            chosen = rng.choice(400, size=30)
            texts.append(" ".join(words[word] for word in chosen))
            y.append(worth[chosen].sum() + rng.normal())
        y = np.array(y)
        model = make_pipeline(TfidfVectorizer(), StackelbergRegressor(goal=Floor(5.0), ridge=0.1))
        model.fit(texts, y)
        assert model[-1].status_.ok
        assert sp.issparse(model[:-1].transform(texts))
        attacked = predict_attacked(model, texts, Floor(5.0)(y), gamma=1.0)
        inner = model[-1].predict_attacked(model[:-1].transform(texts), Floor(5.0)(y), gamma=1.0)
        np.testing.assert_allclose(attacked, inner, rtol=1e-10)
        dense = StackelbergRegressor(goal=Floor(5.0), ridge=0.1)
        dense.fit(model[:-1].transform(texts).toarray(), y)
        np.testing.assert_allclose(dense.predict(model[:-1].transform(texts)), model.predict(texts))
        named = clone(model).set_params(stackelbergregressor__feature_cost={"w1": inf})
        with pytest.raises(ValueError, match=r"^feature_cost gives costs by column name"):
            named.fit(texts, y)

    def test_polars(self, diabetes):
        pl = pytest.importorskip("polars", reason="polars is not installed")
        X, y, z, _ = diabetes
        table = pl.from_pandas(X)
        cost = {"age": inf, "sex": inf, "bmi": 2.0}
        model = StackelbergRegressor(feature_cost=cost)
        model.fit(table, pl.Series(y.to_numpy()), z=pl.Series(z.to_numpy()))
        wanted = StackelbergRegressor(feature_cost=cost).fit(X, y, z=z)
        np.testing.assert_allclose(model.coef_, wanted.coef_, rtol=1e-9)
        assert list(model.feature_names_in_) == table.columns
        moved = model.best_response(table, z)
        assert isinstance(moved, pl.DataFrame)
        assert moved.columns == table.columns
        np.testing.assert_allclose(moved.to_numpy(), wanted.best_response(X, z).to_numpy())
        assert moved["age"].equals(table["age"])
        np.testing.assert_allclose(
            predict_attacked(model, table, z, gamma=model.gamma_, feature_cost=cost),
            model.predict_attacked(table, z),
        )

    def test_polars_through_a_column_transformer(self, flats):
        pl = pytest.importorskip("polars", reason="polars is not installed")
        X, y = flats
        cost = {"age": inf, "city": 4.0}
        encode = make_column_transformer(
            (StandardScaler(), ["age", "size"]),
            (OneHotEncoder(sparse_output=False), ["city"]),
        ).set_output(transform="polars")
        model = make_pipeline(encode, StackelbergRegressor(goal=Shift(50.0), feature_cost=cost))
        table = pl.DataFrame({name: X[name].to_list() for name in X})
        model.fit(table, y)
        np.testing.assert_array_equal(model[-1].feature_cost_, [inf, 1.0, 4.0, 4.0, 4.0])


class TestTransformedLabels:
    def test_goals_on_the_old_scale_warn(self, diabetes):
        X, y, z, _ = diabetes
        model = TransformedTargetRegressor(
            StackelbergRegressor(goal=Floor(250.0)), transformer=StandardScaler()
        )
        with pytest.warns(UserWarning, match=r"TransformedTargetRegressor transforms y only"):
            model.fit(X, y)
        routed = TransformedTargetRegressor(
            StackelbergRegressor(), func=np.log, inverse_func=np.exp
        )
        with pytest.warns(UserWarning, match=r"TransformedTargetRegressor transforms y only"):
            routed.fit(X, y, z=z)

    def test_goals_on_the_new_scale_do_not(self, diabetes):
        X, y, z, _ = diabetes
        level = (250.0 - y.mean()) / y.std(ddof=0)
        model = TransformedTargetRegressor(
            StackelbergRegressor(goal=Floor(level)), transformer=StandardScaler()
        )
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.fit(X, y)
        wanted = StackelbergRegressor().fit(X, y, z=z)
        np.testing.assert_allclose(model.predict(X), wanted.predict(X), rtol=1e-8)


def test_weights_count_as_repetitions_through_a_pipeline(diabetes):
    X, y, _, _ = diabetes
    weight = np.random.default_rng(1).integers(0, 3, size=len(y))
    again = np.repeat(np.arange(len(y)), weight)
    model = StackelbergRegressor(goal=Floor(250.0))
    steps = Pipeline([("same", FunctionTransformer()), ("model", model)])
    one = clone(steps).fit(X, y, model__sample_weight=weight)
    two = clone(steps).fit(X.iloc[again], y.iloc[again])
    np.testing.assert_allclose(one.predict(X), two.predict(X), rtol=1e-7)


def test_parameters_of_parameters():
    model = StackelbergRegressor(goal=Shift(1.0))
    assert model.get_params()["goal__upper"] is None
    model.set_params(goal__upper=5.0, gamma=Population.mixed(0.5))
    copy = clone(model)
    assert copy.goal == Shift(1.0, upper=5.0)
    assert copy.goal is not model.goal
    assert copy.gamma == model.gamma
    with pytest.raises(ValueError, match=r"^level is not a parameter of Shift"):
        model.set_params(goal__level=1.0)


def test_a_category_that_nobody_has_seen():
    """One-hot groups have a direction in which no row varies; the game alone would use it."""
    if not os.environ.get("SPGLS_DATA"):
        pytest.skip("set SPGLS_DATA to the folder that holds insurance.csv")
    people = pd.read_csv(Path(os.environ["SPGLS_DATA"]) / "insurance.csv")
    charges = people.pop("charges")
    words = OneHotEncoder(sparse_output=False, handle_unknown="ignore")
    encoded = make_column_transformer(
        (words, ["sex", "smoker", "region"]),
        remainder="passthrough",
        verbose_feature_names_out=False,
    ).set_output(transform="pandas")
    fixed = dict.fromkeys(["age", "bmi", "children", "sex", "region"], np.inf)
    model = StackelbergRegressor(goal=Cap(9000), feature_cost=fixed)
    model = make_pipeline(encoded, model).fit(people, charges)
    assert model[-1].certificate_.kind == "proved"
    assert model.score(people, charges) > 0.7
    new = model.predict(people.assign(smoker="sometimes", region="elsewhere"))
    assert charges.min() <= new.min() <= new.max() <= charges.max()
