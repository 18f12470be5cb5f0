"""Attacks on anybody's linear classifier: moved rows, scores, robustness and pictures of it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import (
    LinearRegression,
    LogisticRegression,
    Perceptron,
    RidgeClassifier,
    SGDClassifier,
)
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    make_scorer,
    precision_score,
    recall_score,
    roc_auc_score,
)
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from spgls import (
    DecisionRobustness,
    Opposite,
    Population,
    StackelbergClassifier,
    StackelbergRegressor,
    Wants,
    best_response,
    decision_attacked,
    make_attacked_scorer,
    predict_attacked,
    robustness,
)
from spgls.display import DecisionDisplay, DecisionRobustnessDisplay, RobustnessDisplay

M, N = 120, 4
rng = np.random.default_rng(3)
X = rng.normal(size=(M, N)) * [1.0, 2.0, 0.5, 1.0] + [0.0, 5.0, 0.0, 1.0]
codes = np.where((X - X.mean(axis=0)) @ [1.0, 0.5, -1.0, 0.0] + rng.normal(size=M) > 0.0, 1, -1)
y = np.where(codes > 0, "yes", "no")
cost = np.array([1.0, 2.0, np.inf, 0.5])
weight = rng.integers(1, 4, size=M).astype(float)
frame = pd.DataFrame(X, columns=list("abcd"))

MODELS = {
    "LogisticRegression": LogisticRegression(),
    "LinearSVC": LinearSVC(),
    "SGDClassifier": SGDClassifier(random_state=0),
    "RidgeClassifier": RidgeClassifier(),
    "Perceptron": Perceptron(),
    "discriminant": LinearDiscriminantAnalysis(),
    "pipeline": make_pipeline(StandardScaler(), LogisticRegression()),
    "search": GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=3),
    "ours": StackelbergClassifier(threshold=0.2, goal=Opposite()),
}
WORLDS = [{"gamma": 0.7}, {"gamma": "auto"}, {"gamma": weight}, {"budget": 1.5}, {"budget": weight}]


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    return MODELS[request.param].fit(X, y)


@pytest.mark.parametrize("who", WORLDS, ids=str)
@pytest.mark.parametrize("wish", [{}, {"z": Wants("no")}, {"z": Opposite()}, {"z": y[::-1]}])
def test_what_is_told_of_moved_rows_is_what_the_model_says(model, who, wish):
    labels = {} if isinstance(wish.get("z"), np.ndarray) else {"y": y}
    told = {**wish, **labels, **who, "feature_cost": cost}
    moved = best_response(X, coef=model, **told)
    last = model[-1] if hasattr(model, "steps") else model
    np.testing.assert_array_equal(last.predict(moved), predict_attacked(model, X, **told))
    after = decision_attacked(model, X, **told)
    np.testing.assert_allclose(last.decision_function(moved), after, atol=1e-9)
    seen = model[:-1].transform(X) if hasattr(model, "steps") else X
    np.testing.assert_array_equal(moved[:, 2], seen[:, 2])


def test_who_is_honest():
    model = LogisticRegression().fit(X, y)
    for who in ({"gamma": np.inf}, {"budget": 0.0}):
        np.testing.assert_array_equal(predict_attacked(model, X, **who), model.predict(X))


def test_the_default_wish_is_the_second_class():
    model = LogisticRegression().fit(X, y)
    same = predict_attacked(model, X, Wants("yes"), budget=1.0)
    np.testing.assert_array_equal(predict_attacked(model, X, budget=1.0), same)


def test_sparse_rows_have_scores():
    model = LogisticRegression().fit(X, y)
    told = {"budget": 1.0, "z": Opposite(), "y": y}
    dense = decision_attacked(model, X, **told)
    np.testing.assert_allclose(decision_attacked(model, sp.csr_array(X), **told), dense)
    with pytest.raises(TypeError, match=r"^X must be dense as the linear model sees it"):
        best_response(sp.csr_array(X), coef=model, **told)


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (
            lambda: predict_attacked(LinearRegression().fit(X, codes), X, codes, budget=1.0),
            ValueError,
            "^budget is what a decision is worth, but a LinearRegression predicts numbers",
        ),
        (
            lambda: predict_attacked(LogisticRegression().fit(X, y), X, budget=1.0, gamma=1.0),
            ValueError,
            "^budget was given and so was gamma",
        ),
        (
            lambda: decision_attacked(LinearRegression().fit(X, codes), X, codes, gamma=1.0),
            TypeError,
            "^model must be a linear classifier; got a LinearRegression",
        ),
        (
            lambda: best_response(X, codes, np.ones(N), budget=1.0),
            ValueError,
            "^budget needs a classifier",
        ),
        (
            lambda: predict_attacked(DecisionTreeClassifier().fit(X, y), X, budget=1.0),
            TypeError,
            "which has no coef_",
        ),
        (
            lambda: predict_attacked(SVC().fit(X, y), X, budget=1.0),
            TypeError,
            "which has no coef_",
        ),
        (
            lambda: predict_attacked(LogisticRegression().fit(X, y), X, Opposite(), budget=1.0),
            ValueError,
            r"^y is needed, because z=Opposite\(\)",
        ),
        (
            lambda: RobustnessDisplay.from_estimators(
                {"a": LinearRegression().fit(X, codes), "b": LogisticRegression().fit(X, y)},
                X,
                codes,
                np.ones(M),
            ),
            TypeError,
            "^models must all be classifiers, or none of them; models.'a'. is a LinearRegression",
        ),
    ],
)
def test_refused(call, error, said):
    with pytest.raises(error, match=said):
        call()


METRICS = {
    "accuracy": accuracy_score,
    "balanced_accuracy": balanced_accuracy_score,
    "precision": precision_score,
    "recall": recall_score,
    "roc_auc": roc_auc_score,
}
#: Fitted, to be compared.
FITTED = {
    "logistic": LogisticRegression().fit(frame, y),
    "ours": StackelbergClassifier(goal=Opposite()).fit(frame, y),
}


class TestScorers:
    @pytest.mark.parametrize("metric", METRICS)
    @pytest.mark.parametrize("weighted", [False, True])
    @pytest.mark.parametrize(
        "who",
        [{"gamma": Population.mixed(0.7, honest=0.3)}, {"budget": 1.5, "share": 0.7}],
        ids=["strength", "budget"],
    )
    def test_scores_of_moved_rows(self, metric, weighted, who):
        """Both groups as rows, the strategic ones truly moved, under scikit-learn's own metric."""
        model = LogisticRegression().fit(X, y)
        told = {"gamma": 0.7} if "gamma" in who else {"budget": 1.5}
        moved = best_response(X, Opposite(), model, y=y, feature_cost=cost, **told)
        rows, labels = np.vstack([X, moved]), np.tile(codes > 0, 2)
        own = weight if weighted else np.ones(M)
        shares = np.concatenate([0.3 * own, 0.7 * own])
        said = (
            model.decision_function(rows) if metric == "roc_auc" else model.predict(rows) == "yes"
        )
        wanted = METRICS[metric](labels, said, sample_weight=shares)
        scorer = make_attacked_scorer(**who, goal=Opposite(), metric=metric, feature_cost=cost)
        found = scorer(model, X, y, sample_weight=weight if weighted else None)
        assert found == pytest.approx(wanted, rel=1e-12)

    def test_in_cross_validation(self):
        scoring = {
            name: make_attacked_scorer(budget=1.0, metric=name, goal=Wants("yes"))
            for name in METRICS
        }
        found = cross_validate(make_pipeline(StandardScaler(), LinearSVC()), X, y, scoring=scoring)
        assert all(np.isfinite(found[f"test_{name}"]).all() for name in METRICS)

    def test_goals_by_routing(self):
        scorer = make_attacked_scorer(budget=1.0, metric="accuracy")
        wanted = rng.choice(["no", "yes"], size=M)
        with sklearn.config_context(enable_metadata_routing=True):
            found = cross_validate(
                LogisticRegression(),
                X,
                y,
                scoring=scorer,
                params={"z": wanted},
                cv=[([*range(M)],) * 2],
            )
        direct = scorer(LogisticRegression().fit(X, y), X, y, z=wanted)
        assert found["test_score"].tolist() == [direct]

    def test_scorers_see_the_labels_themselves(self):
        own = make_scorer(precision_score, pos_label="no")
        scorer = make_attacked_scorer(budget=1.0, metric=own)
        model = LogisticRegression().fit(X, y)
        said = predict_attacked(model, X, budget=1.0)
        assert scorer(model, X, y) == pytest.approx(precision_score(y, said, pos_label="no"))

    def test_refused(self):
        model, numbers = LogisticRegression().fit(X, y), LinearRegression().fit(X, codes)
        with pytest.raises(ValueError, match=r"^metric must judge classes, .*got 'r2'.*'accuracy'"):
            make_attacked_scorer(1.0)(model, X, y)
        with pytest.raises(ValueError, match=r"^metric must judge numbers, .*got 'accuracy'.*'r2'"):
            make_attacked_scorer(1.0, metric="accuracy")(numbers, X, codes, z=codes)
        with pytest.raises(TypeError, match=r"^budget must be one number for all"):
            make_attacked_scorer(budget=[1.0, 2.0])
        with pytest.raises(ValueError, match=r"^share must be a finite number"):
            make_attacked_scorer(budget=1.0, share=2.0)

    def test_in_words(self):
        scorer = make_attacked_scorer(budget=1.0, share=0.5, goal=Wants("a"), metric="recall")
        said = "AttackedScorer(budget=1.0, share=0.5, goal=Wants(label='a'), metric='recall')"
        assert repr(scorer) == said


class TestRobustness:
    @pytest.mark.parametrize("kind", ["gammas", "budgets"])
    @pytest.mark.parametrize("metric", ["accuracy", "roc_auc"])
    def test_scores_are_those_of_scorers(self, kind, metric):
        found = robustness(
            FITTED,
            frame,
            y,
            Opposite(),
            shares=[0.0, 0.4, 1.0],
            **{kind: [0.5, 2.0]},
            feature_cost={"c": np.inf},
            sample_weight=weight,
            metric=metric,
        )
        assert isinstance(found, DecisionRobustness)
        told = {"goal": Opposite(), "metric": metric, "feature_cost": {"c": np.inf}}
        for i, model in enumerate(FITTED.values()):
            for g, value in enumerate((0.5, 2.0)):
                for s, share in enumerate((0.0, 0.4, 1.0)):
                    who = (
                        {"budget": value, "share": share}
                        if kind == "budgets"
                        else {"gamma": Population.mixed(value, honest=1.0 - share)}
                    )
                    score = make_attacked_scorer(**who, **told)(
                        model, frame, y, sample_weight=weight
                    )
                    assert found.scores[i, g, s] == pytest.approx(score, rel=1e-12)
        np.testing.assert_allclose(found.honest, found.scores[:, 0, 0])

    def test_accuracy_is_a_mixture(self):
        found = robustness(FITTED, frame, y, Opposite(), budgets=[1.0], shares=[0, 0.3, 1])
        honest, mixed, all_react = found.scores[:, 0].T
        np.testing.assert_allclose(mixed, 0.7 * honest + 0.3 * all_react)
        lost = (honest - all_react) @ np.ones(2)
        assert lost <= found.crossed.sum() + 1e-12

    def test_in_words_and_tables(self):
        found = robustness(FITTED, frame, y, Opposite())
        np.testing.assert_allclose(found.pull[0], [0.1, 0.25, 0.5, 0.75, 0.9])
        said = repr(found)
        assert "accuracy by share" in said
        assert "manipulation hurts it" in said
        table = found.to_dataframe()
        assert len(table) == 2 * 5 * 5
        assert list(table) == ["model", "gamma", "share", "crossed", "accuracy"]

    @pytest.mark.parametrize(
        ("change", "said"),
        [
            ({"budgets": [-1.0]}, "^budgets must not be negative; entry 0 is -1"),
            ({"budgets": [1.0], "gammas": [1.0]}, "^gammas were given and so were budgets"),
            ({"shares": [2.0]}, "^shares must be from 0"),
        ],
    )
    def test_refused(self, change, said):
        with pytest.raises(ValueError, match=said):
            robustness(FITTED, frame, y, Opposite(), **change)

    def test_budgets_are_for_decisions(self):
        numbers = StackelbergRegressor().fit(X, codes, z=np.ones(M))
        with pytest.raises(ValueError, match=r"^budgets are for classifiers"):
            robustness(numbers, X, codes, np.ones(M), budgets=[1.0])


class TestPictures:
    def test_who_crosses(self):
        pytest.importorskip("matplotlib").use("Agg")
        model = LogisticRegression().fit(X, y)
        display = DecisionDisplay.from_estimator(model, X, y, Wants("yes"), budget=1.0)
        told = predict_attacked(model, X, Wants("yes"), budget=1.0)
        assert display.accuracy.tolist() == [np.mean(model.predict(X) == y), np.mean(told == y)]
        crosses = told != model.predict(X)
        wanted = [np.mean(crosses & (y == "no")), np.mean(crosses & (y == "yes"))]
        np.testing.assert_allclose(display.crossing, wanted)
        axes = display.plot().axes_
        assert len(axes) == 2
        drawn = sum(len(points.get_offsets()) for points in axes[1].collections)
        assert drawn == M
        assert "budget 1.0" in axes[0].get_title()
        assert "accuracy" in repr(display)

    def test_own_strength(self):
        model = StackelbergClassifier(goal=Opposite()).fit(X, y)
        display = DecisionDisplay.from_estimator(model, X, y)
        np.testing.assert_allclose(display.after, model.decision_attacked(X, y=y))

    def test_numbers_are_no_decisions(self):
        with pytest.raises(TypeError, match=r"^estimator must be a linear classifier"):
            DecisionDisplay.from_estimator(LinearRegression().fit(X, codes), X, codes, codes)
        with pytest.raises(TypeError, match=r"^robustness must be what robustness\(\) returns"):
            DecisionRobustnessDisplay.from_robustness(1.0)

    @pytest.mark.parametrize("worlds", [{}, {"gammas": [3.0, 0.1, 1.0]}])
    def test_several(self, worlds):
        pytest.importorskip("matplotlib").use("Agg")
        models = FITTED
        display = DecisionRobustnessDisplay.from_estimators(models, frame, y, Opposite(), **worlds)
        assert (np.diff(display.worlds) > 0.0).all()
        left, right = display.plot().axes_
        for ax, along in ((left, display.shares), (right, display.worlds)):
            assert len(ax.lines) == 2
            np.testing.assert_allclose(ax.lines[0].get_xdata(), along)
        np.testing.assert_allclose(right.lines[1].get_ydata(), display.scores[1, :, -1])
        assert "2 models" in repr(display)
