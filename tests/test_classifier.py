"""StackelbergClassifier and its cross-validation: contract, what is fitted, what is refused."""

from __future__ import annotations

import time
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import balanced_accuracy_score, make_scorer, precision_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

from spgls import (
    Between,
    Constant,
    Floor,
    Opposite,
    Population,
    StackelbergClassifier,
    StackelbergClassifierCV,
    StackelbergRegressor,
    Status,
    Wants,
    make_attacked_scorer,
)

from .builders import COEF, COST, NAMES, applicants

M = 90
rng = np.random.default_rng(0)
X = applicants(M, rng)
codes = np.where(X @ COEF + rng.normal(size=M) > np.median(X @ COEF), 1.0, -1.0)
y = np.where(codes > 0.0, "yes", "no")
weight = rng.integers(1, 4, size=M).astype(float)
frame = pd.DataFrame(X, columns=NAMES, index=np.arange(M) + 100)
inf = np.inf

CHECKS = [
    pytest.param(model, check, id=f"{type(model).__name__}-{n}-{check.func.__name__}")
    for start in (StackelbergClassifier(), StackelbergClassifierCV([2.0], cv=2))
    for n, (model, check) in enumerate(estimator_checks_generator(start, mark="skip"))
]


@pytest.mark.parametrize("routing", [False, True], ids=["plain", "routed"])
@pytest.mark.parametrize(("model", "check"), CHECKS)
def test_contract(model, check, routing):
    with sklearn.config_context(enable_metadata_routing=routing):
        check(model)


class TestTheRegressorOnTheSameLabels:
    @pytest.mark.parametrize("honest", [0.0, 0.3, 0.5])
    @pytest.mark.parametrize("goal", [None, Wants("no"), Opposite()])
    @pytest.mark.parametrize("data", [X, frame, sp.csr_array(X)], ids=["array", "frame", "sparse"])
    def test_same_numbers(self, honest, goal, data):
        told = {"honest_share": honest, "feature_cost": COST, "ridge": 0.3}
        ours = StackelbergClassifier(goal=goal, **told).fit(data, y, sample_weight=weight)
        wish = {None: np.ones(M), Wants: -np.ones(M), Opposite: -codes}
        z = wish[None if goal is None else type(goal)]
        same = StackelbergRegressor(**told).fit(data, codes, z=z, sample_weight=weight)
        for name in ("coef_", "intercept_", "gamma_", "alpha_", "objective_"):
            np.testing.assert_allclose(getattr(ours, name), getattr(same, name), rtol=1e-12)
        assert ours.status_ is same.status_
        assert ours.certificate_ == same.certificate_
        np.testing.assert_allclose(ours.decision_function(data), same.predict(data), rtol=1e-12)
        moved, given = ours.decision_attacked(data, y=y), same.predict_attacked(data, z)
        np.testing.assert_allclose(moved, given, rtol=1e-12)

    def test_classes_by_row(self):
        wanted = rng.choice(["no", "yes"], size=M)
        ours = StackelbergClassifier().fit(X, y, z=wanted)
        same = StackelbergRegressor().fit(X, codes, z=np.where(wanted == "yes", 1.0, -1.0))
        np.testing.assert_allclose(ours.coef_, same.coef_, rtol=1e-12)

    def test_it_costs_no_more(self):
        many = np.random.default_rng(1).normal(size=(40_000, 40))
        labels = np.where(many[:, 0] + 0.5 * many[:, 1] > 0.0, 1.0, -1.0)
        ours, same = StackelbergClassifier(), StackelbergRegressor(goal=Constant(1.0))
        spent: list[list[float]] = [[], []]
        for _ in range(9):
            for times, model in zip(spent, (ours, same), strict=True):
                start = time.process_time()
                model.fit(many, labels)
                times.append(time.process_time() - start)
        assert np.median(spent[0]) <= 1.2 * np.median(spent[1])


class TestLabels:
    @pytest.mark.parametrize(
        "pair", [("no", "yes"), (0, 1), (-1.0, 1.0), (False, True), (3, 7)], ids=str
    )
    def test_any_two(self, pair):
        labels = np.array(pair)[(codes > 0.0).astype(int)]
        model = StackelbergClassifier(goal=Wants(pair[1])).fit(X, labels)
        assert model.classes_.tolist() == list(pair)
        assert model.predict(X).dtype == model.classes_.dtype
        reference = StackelbergClassifier().fit(X, codes)
        np.testing.assert_array_equal(model.coef_, reference.coef_)
        np.testing.assert_array_equal(model.predict(X) == pair[1], reference.predict(X) > 0.0)

    def test_a_series_of_categories(self):
        labels = pd.Series(y, index=frame.index, dtype="category")
        model = StackelbergClassifier(goal=Wants("no")).fit(frame, labels)
        assert set(model.predict(frame)) <= {"no", "yes"}

    def test_one_class_only(self):
        with pytest.raises(ValueError, match=r"^y must hold two classes; got only one class, 'a'"):
            StackelbergClassifier().fit(X, ["a"] * M)
        with pytest.raises(ValueError, match="must leave both classes some weight; only class 'no"):
            StackelbergClassifier().fit(X, y, sample_weight=(y == "no").astype(float))

    def test_three(self):
        with pytest.raises(ValueError, match=r"^Only binary classification is supported.*3 class"):
            StackelbergClassifier().fit(X, np.arange(M) % 3)


class TestWeights:
    def test_classes_and_rows(self):
        by_class = {"no": 2.0, "yes": 0.5}
        ours = StackelbergClassifier(class_weight=by_class).fit(X, y, sample_weight=weight)
        rows = weight * np.where(y == "no", 2.0, 0.5)
        same = StackelbergClassifier().fit(X, y, sample_weight=rows)
        np.testing.assert_array_equal(ours.coef_, same.coef_)

    def test_balanced(self):
        few = np.r_[np.flatnonzero(y == "yes")[:8], np.flatnonzero(y == "no")]
        plain = StackelbergClassifier(goal=Wants("no")).fit(X[few], y[few])
        even = clone(plain).set_params(class_weight="balanced").fit(X[few], y[few])
        scores = [balanced_accuracy_score(y[few], model.predict(X[few])) for model in (plain, even)]
        assert scores[1] > scores[0]


class TestThreshold:
    def test_no_other_is_better_on_attacked_rows(self):
        model = StackelbergClassifier(goal=Opposite(), threshold="attacked", honest_share=0.3)
        model.fit(X, y, sample_weight=weight)
        score = model.decision_function(X) + model.threshold_
        moved = model.decision_attacked(X, y=y) + model.threshold_

        def right(cut):
            by_group = [weight @ ((s > cut) == (codes > 0.0)) for s in (score, moved)]
            return 0.3 * by_group[0] + 0.7 * by_group[1]

        best = max(map(right, [*score, *moved, 0.0, score.min() - 1.0]))
        assert right(model.threshold_) == pytest.approx(best)
        assert right(model.threshold_) > right(0.0)

    def test_given(self):
        zero = StackelbergClassifier().fit(X, y)
        half = StackelbergClassifier(threshold=0.5).fit(X, y)
        np.testing.assert_array_equal(half.coef_, zero.coef_)
        np.testing.assert_allclose(half.decision_function(X), zero.decision_function(X) - 0.5)
        # Goals are scores of the game, whatever the threshold.
        np.testing.assert_allclose(half.decision_attacked(X), zero.decision_attacked(X) - 0.5)

    @pytest.mark.parametrize(
        ("threshold", "error"), [("best", ValueError), (None, TypeError), (inf, ValueError)]
    )
    def test_refused(self, threshold, error):
        with pytest.raises(error, match=r"^threshold must be"):
            StackelbergClassifier(threshold=threshold).fit(X, y)


class TestMovedRows:
    @pytest.mark.parametrize("who", [{}, {"gamma": 0.2}, {"budget": 0.5}, {"budget": weight}])
    @pytest.mark.parametrize("threshold", [0.0, "attacked"])
    def test_they_are_decided_as_told(self, who, threshold):
        model = StackelbergClassifier(
            goal=Opposite(), feature_cost=COST, threshold=threshold, honest_share=0.2
        ).fit(frame, y)
        moved = model.best_response(frame, y=y, **who)
        assert list(moved.columns) == list(frame.columns)
        fixed = [name for name, price in zip(NAMES, COST, strict=True) if np.isinf(price)]
        pd.testing.assert_frame_equal(moved[fixed], frame[fixed])
        after = model.decision_attacked(frame, y=y, **who)
        np.testing.assert_allclose(model.decision_function(moved), after, atol=1e-12)
        told = model.predict_attacked(frame, y=y, **who)
        np.testing.assert_array_equal(model.predict(moved), told)

    def test_float32(self):
        model = StackelbergClassifier().fit(X.astype(np.float32), y)
        rows = X.astype(np.float32)
        assert model.coef_.dtype == model.decision_function(rows).dtype == np.float32
        moved = model.best_response(rows, budget=1.0)
        assert moved.dtype == np.float32
        np.testing.assert_array_equal(model.predict(moved), model.predict_attacked(rows, budget=1))

    def test_refused(self):
        model = StackelbergClassifier().fit(X, y)
        with pytest.raises(ValueError, match=r"^budget was given and so was gamma"):
            model.predict_attacked(X, gamma=1.0, budget=1.0)
        with pytest.raises(ValueError, match=r"^budget must be a finite number of at least 0"):
            model.predict_attacked(X, budget=-1.0)
        with pytest.raises(ValueError, match=r"^budget must not be negative; entry 0 is -1"):
            model.predict_attacked(X, budget=-np.ones(M))
        with pytest.raises(TypeError, match=r"^X must be dense"):
            model.best_response(sp.csr_array(X), budget=1.0)


class TestGoals:
    @pytest.mark.parametrize(
        ("goal", "error", "said"),
        [
            ("yes", TypeError, r"^goal must be None, Wants\(label\).*Pass goal=Wants\('yes'\)"),
            (Wants, TypeError, r"^goal must be .*the class Wants"),
            (Wants("maybe"), ValueError, r"wants a class that there is not; there are 'no' and"),
            (Floor(1.0), TypeError, "y must be an array of numbers"),
            (lambda y: np.ones(len(y)), ValueError, "goal must return one class per row"),
        ],
    )
    def test_refused(self, goal, error, said):
        with pytest.raises(error, match=said):
            StackelbergClassifier(goal=goal).fit(X, y)

    def test_two_goals(self):
        with pytest.raises(ValueError, match=r"^z was given and so was goal=Wants"):
            StackelbergClassifier(goal=Wants("yes")).fit(X, y, z=y)

    def test_people_who_want_the_truth(self):
        with pytest.warns(UserWarning, match="equal the labels y in 90 of 90.*which class"):
            StackelbergClassifier().fit(X, y, z=y)

    def test_rare_classes_are_no_other_scale(self):
        rare = np.where(np.arange(M) < 2, 1, 0)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            StackelbergClassifier(ridge=1.0).fit(X, rare)

    def test_by_routing(self):
        wanted = rng.choice(["no", "yes"], size=M)
        with sklearn.config_context(enable_metadata_routing=True):
            model = make_pipeline(StandardScaler(), StackelbergClassifier())
            routed = model.fit(X, y, z=wanted)[-1]
        scaled = StandardScaler().fit_transform(X)
        direct = StackelbergClassifier().fit(scaled, y, z=wanted)
        np.testing.assert_allclose(routed.coef_, direct.coef_, rtol=1e-12)

    def test_in_a_grid(self):
        search = GridSearchCV(
            StackelbergClassifier(goal=Wants("yes")), {"goal__label": ["no", "yes"]}, cv=3
        )
        assert len(search.fit(X, y).cv_results_["params"]) == 2


class TestRowsThatCome:
    @pytest.mark.parametrize("goal", [None, Wants("no"), Opposite()])
    def test_pieces_are_the_whole(self, goal):
        told = {"goal": goal, "feature_cost": COST, "class_weight": {"no": 2.0}, "threshold": 0.1}
        whole = StackelbergClassifier(**told).fit(frame, y, sample_weight=weight)
        pieces = StackelbergClassifier(**told)
        for rows in (slice(0, 30), slice(30, 41), slice(41, M)):
            pieces.partial_fit(frame[rows], y[rows], sample_weight=weight[rows])
        np.testing.assert_allclose(pieces.coef_, whole.coef_, rtol=1e-7)
        np.testing.assert_allclose(pieces.gamma_, whole.gamma_, rtol=1e-9)
        np.testing.assert_array_equal(pieces.predict(frame), whole.predict(frame))
        assert pieces.threshold_ == 0.1
        assert pieces.status_ is Status.OPTIMAL

    @pytest.mark.parametrize("goal", [None, Wants("no"), Opposite()])
    @pytest.mark.parametrize("data", [X, sp.csr_array(X)], ids=["array", "sparse"])
    def test_one_class_at_a_time(self, goal, data):
        """Warnings are errors here: nothing is wrong with the first call."""
        by_class = {"no": 2.0}
        pieces = StackelbergClassifier(goal=goal, class_weight=by_class)
        for label in ("yes", "no"):
            rows = y == label
            pieces.partial_fit(data[rows], y[rows], classes=["yes", "no"])
            if label == "yes":
                assert (pieces.predict(data) == "yes").all()
                assert pieces.status_ is Status.OPTIMAL
        whole = StackelbergClassifier(goal=goal, class_weight=by_class).fit(data, y)
        assert pieces.classes_.tolist() == ["no", "yes"]
        np.testing.assert_allclose(pieces.coef_, whole.coef_, rtol=1e-7)

    def test_the_regressor_on_the_same_labels(self):
        ours = StackelbergClassifier(goal=Opposite(), feature_cost=COST, ridge=0.3)
        same = StackelbergRegressor(feature_cost=COST, ridge=0.3)
        for rows in (slice(0, 50), slice(50, M)):
            ours.partial_fit(X[rows], y[rows])
            same.partial_fit(X[rows], codes[rows], z=-codes[rows])
            for name in ("coef_", "intercept_", "gamma_", "alpha_", "objective_"):
                np.testing.assert_array_equal(getattr(ours, name), getattr(same, name))
            assert ours.certificate_ == same.certificate_

    def test_decay_is_a_weight(self):
        model = StackelbergClassifier(decay=0.25)
        for rows in (slice(0, 30), slice(30, 60), slice(60, M)):
            model.partial_fit(X[rows], y[rows])
        faded = np.repeat([0.0625, 0.25, 1.0], 30)
        whole = StackelbergClassifier().fit(X, y, sample_weight=faded)
        np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-9)
        assert model.statistics_.weight == pytest.approx(faded.sum())
        for method in ("fit", "partial_fit"):
            with pytest.raises(ValueError, match=r"^decay must be a finite number above 0"):
                getattr(StackelbergClassifier(decay=0.0), method)(X, y)

    def test_classes_by_row_and_by_routing(self):
        wanted = rng.choice(["no", "yes"], size=M)
        whole = StackelbergClassifier().fit(X, y, z=wanted)
        with sklearn.config_context(enable_metadata_routing=True):
            asked = StackelbergClassifier().get_metadata_routing().partial_fit.requests
            assert asked["z"] is True
        pieces = StackelbergClassifier()
        for rows in (slice(0, 50), slice(50, M)):
            pieces.partial_fit(X[rows], y[rows], z=wanted[rows])
        np.testing.assert_allclose(pieces.coef_, whole.coef_, rtol=1e-9)

    def test_a_range_of_strengths(self):
        model = StackelbergClassifier(Between(0.2, 2.0))
        whole = clone(model).fit(X, y)
        for rows in (slice(0, 50), slice(50, M)):
            model.partial_fit(X[rows], y[rows])
        np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-6)
        assert model.binding_ == whole.binding_

    def test_a_call_that_goes_wrong_changes_nothing(self):
        model = StackelbergClassifier().partial_fit(X[:50], y[:50])
        before, holed = dict(vars(model)), X[50:].copy()
        holed[3, 1] = np.nan
        for told in (
            {"X": holed, "y": y[50:]},
            {"X": X[50:, :2], "y": y[50:]},
            {"X": X[50:], "y": codes[50:]},
            {"X": X[50:], "y": y[50:], "classes": ["a", "b"]},
            {"X": X[50:], "y": y[50:], "z": ["maybe"] * 40},
        ):
            with pytest.raises(ValueError, match=r"NaN|features|^classes must|^y must|^z must"):
                model.partial_fit(**told)
            assert vars(model) == before

    def test_people_who_want_the_truth(self):
        model = StackelbergClassifier()
        with pytest.warns(UserWarning, match="equal the labels y in all rows.*which class") as seen:
            model.partial_fit(X, y, z=y)
        assert seen[0].filename == __file__

    def test_a_fit_forgets_classes(self):
        model = StackelbergClassifier().partial_fit(X, y)
        assert model.fit(X, codes).classes_.tolist() == [-1.0, 1.0]
        assert not hasattr(model, "statistics_")
        with pytest.warns(UserWarning, match="partial_fit begins anew") as seen:
            model.partial_fit(X, y)
        assert seen[0].filename == __file__
        assert model.classes_.tolist() == ["no", "yes"]

    @pytest.mark.parametrize(
        ("params", "told", "said"),
        [
            ({"threshold": "attacked"}, {}, "^threshold must be a number for partial_fit"),
            ({"class_weight": "balanced"}, {}, "^class_weight must be None or a dict"),
            ({}, {"y": ["a"] * M}, "^y must hold two classes"),
            ({}, {"classes": ["no", "maybe"]}, "^y must hold the classes 'maybe' and 'no'"),
            ({}, {"classes": ["no"]}, "^classes must be a list of two classes, .*got 'no'"),
            ({"solver": "krylov"}, {}, "^partial_fit solves from sums"),
        ],
    )
    def test_refused(self, params, told, said):
        with pytest.raises(ValueError, match=said):
            StackelbergClassifier(**params).partial_fit(**({"X": X, "y": y} | told))

    def test_later_classes_are_the_first(self):
        model = StackelbergClassifier().partial_fit(X, y)
        with pytest.raises(ValueError, match=r"^classes must stay those of the first call"):
            model.partial_fit(X, y, classes=["a", "b"])
        with pytest.raises(ValueError, match=r"^y must hold the classes 'no' and 'yes'; entry 0"):
            model.partial_fit(X, codes)

    def test_no_folds_of_sums(self):
        assert not hasattr(StackelbergClassifierCV(), "partial_fit")
        with pytest.raises(AttributeError, match=r"pass the choice to StackelbergClassifier\.$"):
            _ = StackelbergClassifierCV().partial_fit

    def test_classes_of_several_kinds(self):
        with pytest.raises(TypeError, match=r"^classes must be of one kind"):
            StackelbergClassifier().partial_fit(X, y, classes=["no", None])


class TestCrossValidation:
    CV = StratifiedKFold(3)

    @pytest.mark.parametrize("threshold", [0.0, "attacked"])
    @pytest.mark.parametrize("scoring", [None, "roc_auc", "recall"])
    def test_scores_are_those_of_a_loop(self, threshold, scoring):
        world = Population.mixed(0.6, honest=0.25)
        told = {"goal": Opposite(), "feature_cost": COST, "threshold": threshold}
        search = StackelbergClassifierCV(
            [0.3, 3.0], ridges=[0.0, 5.0], world=world, cv=self.CV, scoring=scoring, **told
        ).fit(X, y)
        metric = "accuracy" if scoring is None else scoring
        judge = make_attacked_scorer(world, goal=Opposite(), metric=metric, feature_cost=COST)
        for at, params in enumerate(search.cv_results_["params"]):
            model = StackelbergClassifier(**told, **params)
            wanted = cross_val_score(model, X, y, cv=self.CV, scoring=judge)
            for split, score in enumerate(wanted):
                found = search.cv_results_[f"split{split}_test_score"][at]
                assert found == pytest.approx(score, abs=1e-9)
        best = StackelbergClassifier(**told, **search.best_params_).fit(X, y)
        np.testing.assert_allclose(search.coef_, best.coef_, rtol=1e-7)
        assert search.threshold_ == pytest.approx(best.threshold_, rel=1e-6)
        np.testing.assert_array_equal(search.predict(X), best.predict(X))

    def test_a_scorer_of_the_labels_themselves(self):
        scoring = make_scorer(precision_score, pos_label="yes", zero_division=0.0)
        search = StackelbergClassifierCV([1.0], world=1.0, scoring=scoring, cv=3).fit(X, y)
        named = StackelbergClassifierCV([1.0], world=1.0, scoring="precision", cv=3).fit(X, y)
        assert search.best_score_ == pytest.approx(named.best_score_)

    def test_refused(self):
        with pytest.raises(ValueError, match=r"^scoring must be None, .*of classes.*got 'r2'"):
            StackelbergClassifierCV([1.0], scoring="r2").fit(X, y)


def test_breast_cancer_is_certified():
    data, labels = load_breast_cancer(return_X_y=True)
    model = make_pipeline(StandardScaler(), StackelbergClassifier(goal=Wants(1)))
    assert model.fit(data, labels)[-1].status_ is Status.OPTIMAL
    assert model.score(data, labels) > 0.95


@pytest.mark.long
def test_text_like_data():
    """20000 x 50000, 40 words a row, as of a bag of words."""
    random = np.random.default_rng(0)
    m, n, words = 20_000, 50_000, 40
    columns = np.minimum(random.zipf(1.3, size=m * words) - 1, n - 1)
    table = sp.csr_array((np.ones(m * words), (np.repeat(np.arange(m), words), columns)), (m, n))
    table.data = np.log1p(table.data)
    truth = random.normal(size=n) * (random.random(n) < 0.05)
    score = table @ truth
    labels = np.where(score + 0.3 * random.normal(size=m) > np.median(score), "mail", "spam")
    model = StackelbergClassifier(goal=Opposite(), ridge=5.0).fit(table[:15_000], labels[:15_000])
    assert model.status_ is Status.OPTIMAL
    assert model.certificate_.kind == "proved"
    held, told = table[15_000:], labels[15_000:]
    assert model.score(held, told) > 0.7
    attacked = model.predict_attacked(held, y=told)
    assert 0.5 < np.mean(attacked == told) <= model.score(held, told)
