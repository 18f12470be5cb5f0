"""Attacked predictions and scores of other people's models."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.compose import TransformedTargetRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import (
    ElasticNet,
    HuberRegressor,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
    SGDRegressor,
)
from sklearn.metrics import make_scorer, mean_absolute_error, mean_squared_error, r2_score
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from spgls import (
    Floor,
    Population,
    StackelbergRegressor,
    StackelbergRegressorCV,
    best_response,
    gamma_from_pull,
    make_attacked_scorer,
    predict_attacked,
)

from .builders import COEF, COST, NAMES, applicants

rng = np.random.default_rng(0)
X = applicants(60, rng)
y = 4.0 + X @ COEF + rng.normal(size=60)
z = np.maximum(y, 2.0)
frame = pd.DataFrame(X, columns=NAMES)
nan, inf = np.nan, np.inf
holed = X.copy()
holed[2, 1] = nan


@pytest.mark.parametrize(
    "model",
    [
        LinearRegression(),
        LinearRegression(fit_intercept=False),
        Ridge(),
        ElasticNet(alpha=0.1),
        HuberRegressor(max_iter=1000),
        SGDRegressor(random_state=0, eta0=1e-3),
        SVR(kernel="linear"),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("gamma", [0.7, np.linspace(0.1, 3.0, 60)], ids=["one", "each"])
def test_the_same_as_predicting_moved_rows(model, gamma):
    model.fit(X, y)
    moved = best_response(
        X,
        z,
        np.ravel(model.coef_),
        gamma=gamma,
        intercept=float(np.sum(model.intercept_)),
        feature_cost=COST,
    )
    found = predict_attacked(model, X, z, gamma=gamma, feature_cost=COST)
    np.testing.assert_allclose(found, np.ravel(model.predict(moved)), rtol=1e-9, atol=1e-9)


def test_a_pipeline_moves_what_its_last_step_sees():
    model = make_pipeline(StandardScaler(), Ridge()).fit(X, y)
    inner = predict_attacked(model[-1], model[:-1].transform(X), z, gamma=0.5, feature_cost=COST)
    found = predict_attacked(model, X, z, gamma=0.5, feature_cost=COST)
    np.testing.assert_allclose(found, inner, rtol=1e-12)
    # A feature in units of its standard deviation costs what it costs over that, squared.
    plain = Ridge().set_params(alpha=1.0)
    plain.coef_ = model[-1].coef_ / model[0].scale_
    plain.intercept_ = model[-1].intercept_ - plain.coef_ @ model[0].mean_
    raw = predict_attacked(plain, X, z, gamma=0.5, feature_cost=COST / model[0].scale_ ** 2)
    np.testing.assert_allclose(found, raw, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("head", [[], ["passthrough"]])
def test_a_pipeline_may_have_nothing_before_its_model(head):
    model = make_pipeline(*head, Ridge()).fit(X, y)
    found = predict_attacked(model, X, z, gamma=0.5, feature_cost=COST)
    np.testing.assert_array_equal(
        found, predict_attacked(model[-1], X, z, gamma=0.5, feature_cost=COST)
    )


def test_a_search_stands_for_its_best_model():
    search = GridSearchCV(make_pipeline(StandardScaler(), Ridge()), {"ridge__alpha": [0.1, 1.0]})
    search.fit(X, y)
    np.testing.assert_array_equal(
        predict_attacked(search, X, z, gamma=0.5),
        predict_attacked(search.best_estimator_, X, z, gamma=0.5),
    )


def test_honest_and_all_powerful_providers():
    model = Ridge().fit(X, y)
    np.testing.assert_array_equal(predict_attacked(model, X, z, gamma=inf), model.predict(X))
    np.testing.assert_allclose(predict_attacked(model, X, z, gamma=1e-14), z, rtol=1e-9)
    locked = predict_attacked(model, X, z, gamma=1e-9, feature_cost=[inf] * 4)
    np.testing.assert_array_equal(locked, model.predict(X))


def test_sparse_float32_and_frames():
    dense = Ridge().fit(X, y)
    wanted = predict_attacked(dense, X, z, gamma=0.5)
    np.testing.assert_allclose(
        predict_attacked(dense, sp.csr_array(X), z, gamma=0.5), wanted, rtol=1e-12
    )
    small = Ridge().fit(X.astype("f4"), y.astype("f4"))
    found = predict_attacked(small, X.astype("f4"), z, gamma=0.5)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)
    named = Ridge().fit(frame, y)
    np.testing.assert_allclose(predict_attacked(named, frame, z, gamma=0.5), wanted, rtol=1e-12)


@pytest.mark.parametrize("names", ["frame", "output", "fitted"])
def test_costs_by_name(names):
    steps = make_pipeline(StandardScaler(), Ridge())
    wanted_cost = [1.0, inf, 0.5, 1.0]
    if names == "output":
        steps.set_output(transform="pandas")
    model = Ridge().fit(frame, y) if names == "frame" else steps.fit(frame, y)
    found = predict_attacked(model, frame, z, gamma=0.5, feature_cost={"age": inf, "debt": 0.5})
    wanted = predict_attacked(model, frame, z, gamma=0.5, feature_cost=wanted_cost)
    np.testing.assert_array_equal(found, wanted)


GAMES = [
    StackelbergRegressor(0.7, goal=Floor(2.0), feature_cost=COST),
    StackelbergRegressor(goal=Floor(2.0), feature_cost=COST),
    StackelbergRegressor(Population.mixed(0.7), goal=Floor(2.0), feature_cost=COST),
    StackelbergRegressorCV([0.7, 2.0], world=1.0, goal=Floor(2.0), feature_cost=COST),
]


class TestModelsInTheirOwnWorld:
    """With gamma="auto" strength and costs are those of the model."""

    @pytest.mark.parametrize("game", GAMES, ids=["number", "auto", "population", "cv"])
    def test_of_a_game(self, game):
        model = make_pipeline(StandardScaler(), game).fit(X, y)
        seen, last = model[0].transform(X), model[-1]
        wanted = last.predict_attacked(seen, z)
        found = predict_attacked(model, X, z, gamma="auto")
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
        np.testing.assert_array_equal(predict_attacked(model, X, y=y, gamma="auto"), found)
        moved = best_response(X, z, model, gamma="auto")
        np.testing.assert_allclose(moved, last.best_response(seen, z), rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(best_response(X, coef=model, y=y, gamma="auto"), moved)
        scorer = make_attacked_scorer("auto", goal=Floor(2.0))
        assert scorer(model, X, y) == pytest.approx(r2_score(y, wanted), rel=1e-12)

    def test_of_any_other_linear_model(self):
        model = Ridge().fit(X, y)
        half = (model.predict(X) + z) / 2
        np.testing.assert_allclose(predict_attacked(model, X, z, gamma="auto"), half, rtol=1e-12)
        scorer = make_attacked_scorer("auto", goal=Floor(2.0), feature_cost=COST)
        assert scorer(model, X, y) == pytest.approx(r2_score(y, half), rel=1e-12)
        gamma = gamma_from_pull(0.5, model.coef_)
        np.testing.assert_allclose(
            best_response(X, z, model, gamma="auto"),
            best_response(X, z, model.coef_, gamma=gamma, intercept=model.intercept_),
            rtol=1e-9,
        )

    def test_where_nobody_has_anything_to_gain(self):
        model = Ridge().fit(X, np.full(60, 3.0))
        model.coef_[:] = 0.0
        found = predict_attacked(model, X, z, gamma="auto")
        np.testing.assert_array_equal(found, model.predict(X))

    def test_costs_that_are_given_come_first(self):
        model = StackelbergRegressor(0.7, feature_cost=COST).fit(X, y, z=z)
        found = predict_attacked(model, X, z, gamma="auto", feature_cost=np.ones(4))
        np.testing.assert_array_equal(found, predict_attacked(model, X, z, gamma=0.7))

    def test_several_strengths(self):
        model = StackelbergRegressor(Population([0.5, 2.0], [0.4, 0.6])).fit(X, y, z=z)
        for ask in (
            lambda: predict_attacked(model, X, z, gamma="auto"),
            lambda: best_response(X, z, model, gamma="auto"),
            lambda: make_attacked_scorer("auto", goal=Floor(2.0))(model, X, y),
        ):
            with pytest.raises(ValueError, match=r"^gamma is needed.*: 0\.5, 2\. Pass one"):
                ask()

    def test_in_cross_validation(self):
        scorer = make_attacked_scorer("auto", goal=Floor(2.0))
        assert repr(scorer) == "AttackedScorer(gamma='auto', goal=Floor(level=2.0), metric='r2')"
        model = StackelbergRegressor(goal=Floor(2.0))
        found = cross_validate(model, X, y, scoring=pickle.loads(pickle.dumps(scorer)), cv=3)
        assert np.isfinite(found["test_score"]).all()


class TestRowsBehindAPipeline:
    @pytest.mark.parametrize("model", [Ridge(), StackelbergRegressor(goal=Floor(2.0))])
    @pytest.mark.parametrize("gamma", [0.7, np.linspace(0.1, 3.0, 60)], ids=["one", "each"])
    def test_they_move_in_the_space_of_the_last_step(self, model, gamma):
        whole = make_pipeline(StandardScaler(), model).fit(X, y)
        moved = best_response(X, z, whole, gamma=gamma, feature_cost=COST)
        np.testing.assert_allclose(
            whole[-1].predict(moved),
            predict_attacked(whole, X, z, gamma=gamma, feature_cost=COST),
            rtol=1e-9,
        )
        still = ~np.isfinite(COST)
        np.testing.assert_array_equal(moved[:, still], whole[0].transform(X)[:, still])

    def test_frames_and_searches(self):
        steps = make_pipeline(StandardScaler().set_output(transform="pandas"), Ridge())
        search = GridSearchCV(steps, {"ridge__alpha": [0.1, 1.0]}).fit(frame, y)
        moved = best_response(frame, z, search, gamma=0.5, feature_cost={"age": inf})
        assert list(moved.columns) == NAMES
        seen = search.best_estimator_[0].transform(frame)
        np.testing.assert_array_equal(moved["age"], seen["age"])

    def test_goals_and_labels(self):
        model = Ridge().fit(X, y)
        wanted = best_response(X, z, model, gamma=0.5)
        np.testing.assert_array_equal(best_response(X, Floor(2.0), model, y=y, gamma=0.5), wanted)
        plain = {"gamma": 0.5, "intercept": model.intercept_}
        np.testing.assert_array_equal(
            best_response(X, Floor(2.0), model.coef_, y=y, **plain),
            best_response(X, z, model.coef_, **plain),
        )
        for about in (model, model.coef_):
            with pytest.raises(ValueError, match=r"^y is needed, because z=Floor"):
                best_response(X, Floor(2.0), about, gamma=0.5)
            with pytest.raises(ValueError, match=r"^z was given and so was y"):
                best_response(X, z, about, y=y, gamma=0.5)

    def test_refused(self):
        model = Ridge().fit(X, y)
        with pytest.raises(ValueError, match=r"^intercept must stay 0 with a model.*got 1\.0"):
            best_response(X, z, model, gamma=0.5, intercept=1.0)
        with pytest.raises(TypeError, match=r"^X must be dense as the linear model sees it.*csr"):
            best_response(sp.csr_array(X), z, model, gamma=0.5)
        with pytest.raises(TypeError, match=r"^gamma must be one positive number or one per row"):
            best_response(X, z, model.coef_, gamma="auto")
        with pytest.raises(TypeError, match=r"^coef must be .* or a fitted linear model.*Neighb"):
            best_response(X, z, KNeighborsRegressor().fit(X, y), gamma=0.5)


class TestScorer:
    world = make_attacked_scorer(0.5, goal=Floor(2.0))

    def test_it_scores_attacked_predictions(self):
        model = Ridge().fit(X, y)
        attacked = predict_attacked(model, X, z, gamma=0.5, feature_cost=COST)
        scorer = make_attacked_scorer(0.5, goal=Floor(2.0), feature_cost=COST)
        assert scorer(model, X, y) == pytest.approx(r2_score(y, attacked), rel=1e-12)
        for metric in (
            "neg_mean_absolute_error",
            make_scorer(mean_absolute_error, greater_is_better=False),
        ):
            scorer = make_attacked_scorer(0.5, metric=metric, feature_cost=COST)
            wanted = -mean_absolute_error(y, attacked)
            assert scorer(model, X, y, z=z) == pytest.approx(wanted, rel=1e-12)

    def test_weights(self):
        model = Ridge().fit(X, y)
        weight = rng.integers(0, 4, size=60).astype(float)
        again = np.repeat(np.arange(60), weight.astype(int))
        wanted = self.world(model, X[again], y[again])
        assert self.world(model, X, y, sample_weight=weight) == pytest.approx(wanted, rel=1e-12)

    def test_a_population_is_its_groups_in_their_shares(self):
        model = Ridge().fit(X, y)
        shares = [0.5, 0.2, 0.3]
        gammas = [inf, 0.1, 0.5]
        metric = "neg_mean_squared_error"
        each = [
            make_attacked_scorer(gamma, goal=Floor(2.0), metric=metric)(model, X, y)
            for gamma in gammas
        ]
        mixed = make_attacked_scorer(Population(gammas, shares), goal=Floor(2.0), metric=metric)
        assert mixed(model, X, y) == pytest.approx(np.dot(shares, each), rel=1e-12)
        r2 = make_attacked_scorer(Population(gammas, shares), goal=Floor(2.0))(model, X, y)
        assert r2 == pytest.approx(1 + np.dot(shares, each) / np.var(y), rel=1e-12)

    def test_honest_scores_are_plain_scores(self):
        model = Ridge().fit(X, y)
        scorer = make_attacked_scorer(inf, goal=Floor(2.0))
        assert scorer(model, X, y) == pytest.approx(model.score(X, y), rel=1e-12)

    @pytest.mark.parametrize("routing", [False, True])
    def test_in_cross_validation_with_a_goal(self, routing):
        with sklearn.config_context(enable_metadata_routing=routing):
            found = cross_validate(Ridge(), X, y, scoring={"honest": "r2", "attacked": self.world})
        assert np.isfinite(found["test_attacked"]).all()
        assert np.isfinite(found["test_honest"]).all()
        assert found["test_attacked"].mean() != found["test_honest"].mean()

    def test_in_cross_validation_with_routed_goals(self):
        scorer = make_attacked_scorer(0.5)
        with sklearn.config_context(enable_metadata_routing=True):
            routed = cross_validate(Ridge(), X, y, scoring=scorer, params={"z": z})
            under = scorer.set_score_request(z="wish")
            renamed = cross_validate(Ridge(), X, y, scoring=under, params={"wish": z})
            own = cross_validate(Ridge(), X, y, scoring=self.world)
        np.testing.assert_array_equal(routed["test_score"], own["test_score"])
        np.testing.assert_array_equal(renamed["test_score"], own["test_score"])

    def test_weights_in_searches(self):
        weight = np.linspace(0.5, 2.0, 60)
        grid = {"alpha": [0.1, 10.0]}
        scoring = {"attacked": self.world, "r2": "r2"}
        plain = GridSearchCV(Ridge(), grid, scoring=scoring, refit="attacked")
        plain.fit(X, y, sample_weight=weight)
        assert np.isfinite(plain.cv_results_["mean_test_attacked"]).all()
        with sklearn.config_context(enable_metadata_routing=True):
            asked = make_attacked_scorer(0.5, goal=Floor(2.0)).set_score_request(sample_weight=True)
            model = Ridge(alpha=10.0).set_fit_request(sample_weight=True)
            params = {"sample_weight": weight}
            routed = cross_validate(model, X, y, scoring=asked, params=params, cv=KFold(3))
        for score, (train, test) in zip(routed["test_score"], KFold(3).split(X), strict=True):
            one = Ridge(alpha=10.0).fit(X[train], y[train], weight[train])
            wanted = self.world(one, X[test], y[test], sample_weight=weight[test])
            assert score == pytest.approx(wanted, rel=1e-9)

    def test_without_goals_it_says_what_to_pass(self):
        model = Ridge().fit(X, y)
        with pytest.raises(ValueError, match=r"goal=Floor.*enable_metadata_routing.*params="):
            make_attacked_scorer(0.5)(model, X, y)
        with pytest.raises(ValueError, match=r"^z was given and so was goal=Floor"):
            self.world(model, X, y, z=z)

    def test_metrics_without_weights(self):
        model = Ridge().fit(X, y)
        scorer = make_attacked_scorer(0.5, goal=Floor(2.0), metric="neg_max_error")
        assert scorer(model, X, y) < 0.0
        with pytest.raises(ValueError, match=r"^metric 'neg_max_error' takes no weights"):
            scorer(model, X, y, sample_weight=np.ones(60))

    def test_pickled_and_printed(self):
        copy = pickle.loads(pickle.dumps(self.world))
        model = Ridge().fit(X, y)
        assert copy(model, X, y) == self.world(model, X, y)
        assert repr(copy) == "AttackedScorer(gamma=0.5, goal=Floor(level=2.0), metric='r2')"
        assert "feature_cost={'age': inf}" in repr(
            make_attacked_scorer(1.0, feature_cost={"age": inf})
        )
        with pytest.raises(TypeError, match=r"^groups is nothing this scorer can ask for"):
            copy.set_score_request(groups=True)

    @pytest.mark.parametrize(
        ("gamma", "error"),
        [
            (None, TypeError),
            ("automatic", TypeError),
            (True, TypeError),
            ([1.0], TypeError),
            (np.ones(60), TypeError),
            (1j, TypeError),
            (0.0, ValueError),
            (-1.0, ValueError),
            (nan, ValueError),
        ],
    )
    def test_bad_gamma(self, gamma, error):
        wanted = "^gamma must be one positive number, inf for honest.*, 'auto' or a Population; got"
        with pytest.raises(error, match=wanted):
            make_attacked_scorer(gamma)

    @pytest.mark.parametrize(
        ("metric", "error"),
        [
            (None, TypeError),
            (1, TypeError),
            (mean_squared_error, TypeError),
            ("mse", ValueError),
            ("neg_log_loss", ValueError),
            ("neg_brier_score", ValueError),
        ],
    )
    def test_bad_metric(self, metric, error):
        with pytest.raises(error, match=r"^metric must be the name of a scikit-learn scorer"):
            make_attacked_scorer(0.5, metric=metric)

    @pytest.mark.parametrize("goal", [1.0, "floor", Floor, [Floor(1.0)]])
    def test_bad_goal(self, goal):
        with pytest.raises(TypeError, match=r"^goal must be None, a goal such as Floor"):
            make_attacked_scorer(0.5, goal=goal)


@pytest.mark.parametrize(
    ("model", "error", "said"),
    [
        (None, TypeError, "model must be a fitted linear model.*got None"),
        (Ridge, TypeError, "model must be .*the class"),
        (StandardScaler(), TypeError, "model must be a fitted linear model"),
        (Ridge(), NotFittedError, "not fitted"),
        (KNeighborsRegressor().fit(X, y), TypeError, "which has no coef_"),
        (
            LogisticRegression().fit(X, np.digitize(y, np.quantile(y, [0.3, 0.6]))),
            ValueError,
            "for two classes; got a LogisticRegression with 3",
        ),
        (PoissonRegressor().fit(X, np.exp(y / 4)), TypeError, "does not predict X @ coef_"),
        (Ridge().fit(X, np.column_stack([y, y])), ValueError, "one output; got a Ridge with 2"),
        (
            TransformedTargetRegressor(Ridge(), transformer=StandardScaler()).fit(X, y),
            TypeError,
            "whose labels are transformed. Pass its regressor_",
        ),
        (make_pipeline(StandardScaler(), "passthrough").fit(X), TypeError, "model must be"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_models_that_are_not_linear(model, error, said):
    with pytest.raises(error, match=said):
        predict_attacked(model, X, z, gamma=0.5)


MODEL = Ridge().fit(X, y)


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"X": None}, TypeError, "X must be a table of numbers"),
        ({"X": X[:, 0]}, ValueError, "X must have two dimensions"),
        ({"X": X[:, :3]}, ValueError, "X must have 4 columns, as model was fitted; got 3"),
        ({"X": holed}, ValueError, "X must be finite; row 2, column 1"),
        ({"z": None}, ValueError, "z is needed.*holds no goal"),
        ({"z": z[:-1]}, ValueError, "z must have one entry per row of X, 60; got 59"),
        ({"z": z * nan}, ValueError, "z must be finite"),
        ({"gamma": None}, TypeError, "gamma must be one positive number or one per row"),
        ({"gamma": 0.0}, ValueError, "gamma must be one positive number or one per row"),
        ({"gamma": np.ones(3)}, ValueError, "gamma must have one entry per row of X, 60; got 3"),
        ({"feature_cost": [1.0]}, ValueError, "feature_cost must have one entry per column"),
        ({"feature_cost": [0.0] * 4}, ValueError, "feature_cost must be positive"),
        ({"feature_cost": "age"}, TypeError, "feature_cost must be an array of numbers"),
        ({"feature_cost": {"age": 2.0}}, ValueError, r"feature_cost gives .* set_output\(trans"),
    ],
)
def test_refused(change, error, said):
    with pytest.raises(error, match=f"^{said}"):
        predict_attacked(MODEL, **({"X": X, "z": z, "gamma": 0.5} | change))


def test_refused_names():
    model = Ridge().fit(frame, y)
    for wrong, error, said in [
        ({"incme": 2.0}, ValueError, "feature_cost names 'incme', which no column is called: 'in"),
        ({"incme": 2.0}, ValueError, "Did you mean 'income'?"),
        ({1: 2.0}, TypeError, "feature_cost must have column names as keys; got the key 1"),
        ({"age": 0.0}, ValueError, r"feature_cost['age'] must be a positive number, inf for a"),
        ({"age": nan}, ValueError, r"feature_cost['age'] must be a positive number"),
        ({"age": "2"}, TypeError, r"feature_cost['age'] must be a positive number"),
        ({"age": None}, TypeError, r"feature_cost['age'] must be a positive number"),
        ({"age": [1.0]}, TypeError, r"feature_cost['age'] must be a positive number"),
    ]:
        with pytest.raises(error, match=re.escape(said)):
            predict_attacked(model, frame, z, gamma=0.5, feature_cost=wrong)
