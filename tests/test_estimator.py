"""StackelbergRegressor: scikit-learn's contract, what the defaults mean, what is refused."""

from __future__ import annotations

import pickle
import warnings
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LinearRegression, RidgeCV
from sklearn.model_selection import KFold, cross_validate
from sklearn.utils.estimator_checks import estimator_checks_generator

import spgls
from spgls import (
    Cap,
    Floor,
    Population,
    Scale,
    Shift,
    StackelbergRegressor,
    StackelbergRegressorCV,
    Status,
    gamma_from_pull,
    make_attacked_scorer,
    predict_attacked,
    solve,
)
from spgls.estimators.conventions import doubt_of_scale
from spgls.solvers import GLTR

from .builders import COEF, COST, NAMES, applicants

M, N = 80, 4
rng = np.random.default_rng(0)
X = applicants(M, rng)
y = X @ COEF + rng.normal(size=M)
z = np.maximum(y, 2.0)
weight = rng.integers(0, 4, size=M).astype(float)
frame = pd.DataFrame(X, columns=NAMES, index=np.arange(M) + 100)
nan, inf = np.nan, np.inf
holed = X.copy()
holed[2, 1] = nan
FLOOR = StackelbergRegressor(goal=Floor(2.0))


@pytest.fixture(scope="module")
def fitted():
    return clone(FLOOR).fit(X, y)


CHECKS = list(estimator_checks_generator(StackelbergRegressor(goal=Floor(1.5)), mark="skip"))


@pytest.mark.parametrize("routing", [False, True], ids=["plain", "routed"])
@pytest.mark.parametrize(
    ("model", "check"),
    CHECKS,
    ids=[f"{n}-{check.func.__name__}" for n, (_, check) in enumerate(CHECKS)],
)
def test_contract(model, check, routing):
    with sklearn.config_context(enable_metadata_routing=routing):
        check(model)


class TestWhatIsFitted:
    @pytest.mark.parametrize("honest", [None, 0.0, 0.3, 1.0])
    def test_the_game_of_solve(self, honest):
        share = 0.5 if honest is None else honest
        who = Population.mixed(0.7, honest=share) if share else 0.7
        wanted = solve(
            X, y, z, who, fit_intercept=True, feature_cost=COST, sample_weight=weight, ridge=0.1
        )
        model = StackelbergRegressor(0.7, honest_share=honest, feature_cost=COST, ridge=0.1)
        model.fit(X, y, z=z, sample_weight=weight)
        np.testing.assert_allclose(model.coef_, wanted.coef, rtol=1e-7, atol=1e-10)
        assert model.intercept_ == pytest.approx(wanted.intercept, rel=1e-7)
        assert model.objective_ == pytest.approx(wanted.objective, rel=1e-9)
        assert model.status_ is wanted.status
        assert model.certificate_.relative_gap <= 1e-9
        assert model.solver_ == "spectral"
        assert model.gamma_ == 0.7
        assert model.alpha_ == pytest.approx(np.max(wanted.alpha) if share < 1 else model.alpha_)
        assert model.alpha_ == pytest.approx(np.sum(model.coef_**2 / COST) / 0.7)
        np.testing.assert_array_equal(model.feature_cost_, COST)

    def test_a_population(self):
        who = Population([inf, 0.5, 2.0], [0.4, 0.3, 0.3])
        wanted = solve(X, y, z, who, fit_intercept=True)
        model = StackelbergRegressor(who).fit(X, y, z=z)
        np.testing.assert_allclose(model.coef_, wanted.coef, rtol=1e-9)
        np.testing.assert_allclose(model.alpha_, wanted.alpha)
        np.testing.assert_array_equal(model.gamma_, who.gammas)
        with pytest.raises(ValueError, match=r"^gamma is needed.*0\.5, 2\. Pass one"):
            model.predict_attacked(X, z)
        assert model.predict_attacked(X, z, gamma=2.0).shape == (M,)
        one = StackelbergRegressor(Population([inf, 0.5], [0.4, 0.6])).fit(X, y, z=z)
        np.testing.assert_array_equal(
            one.predict_attacked(X, z), one.predict_attacked(X, z, gamma=0.5)
        )

    @pytest.mark.parametrize("fit_intercept", [True, False])
    @pytest.mark.parametrize("price", [None, np.array([1.0, 4.0, 0.5, 2.0])])
    @pytest.mark.parametrize("sample_weight", [None, weight])
    def test_auto_is_a_pull_of_one_half_against_least_squares(
        self, fit_intercept, price, sample_weight
    ):
        least = LinearRegression(fit_intercept=fit_intercept).fit(X, y, sample_weight)
        wanted = gamma_from_pull(0.5, least.coef_, price)
        model = StackelbergRegressor(fit_intercept=fit_intercept, feature_cost=price)
        model.fit(X, y, z=z, sample_weight=sample_weight)
        assert model.gamma_ == pytest.approx(wanted, rel=1e-9)
        attacked = predict_attacked(least, X, z, gamma=model.gamma_, feature_cost=price)
        np.testing.assert_allclose(attacked, (least.predict(X) + z) / 2, rtol=1e-8)

    @pytest.mark.parametrize("pull", [0.1, 0.5, 0.9])
    def test_auto_is_any_pull_against_least_squares(self, pull):
        least = LinearRegression().fit(X, y)
        model = StackelbergRegressor(pull=pull).fit(X, y, z=z)
        assert model.gamma_ == pytest.approx(gamma_from_pull(pull, least.coef_), rel=1e-9)
        attacked = predict_attacked(least, X, z, gamma=model.gamma_)
        np.testing.assert_allclose(attacked, (1 - pull) * least.predict(X) + pull * z, rtol=1e-8)
        nobody = StackelbergRegressor(pull=pull).fit(X * 0.0, y, z=z)
        assert nobody.gamma_ == inf

    def test_auto_with_immutable_features_and_dependent_columns(self):
        model = StackelbergRegressor(feature_cost=COST).fit(X, y, z=z)
        least = LinearRegression().fit(X, y).coef_
        assert model.gamma_ == pytest.approx(np.sum(least**2 / COST), rel=1e-9)
        twice = StackelbergRegressor().fit(np.hstack([X, X]), y, z=z)
        shortest = np.linalg.pinv(np.hstack([X, X]) - np.hstack([X, X]).mean(0)) @ (y - y.mean())
        assert twice.gamma_ == pytest.approx(shortest @ shortest, rel=1e-6)

    @pytest.mark.parametrize(
        ("table", "labels", "price"),
        [
            (X, np.full(M, 3.0), None),
            (X * 0.0, y, None),
            (X, y, np.full(N, inf)),
            (np.tile([[1.0], [-1.0]], (M // 2, 1)), np.repeat(np.arange(M / 2), 2), None),
        ],
        ids=["constant labels", "constant rows", "nothing changeable", "unrelated"],
    )
    def test_auto_where_nobody_has_anything_to_gain(self, table, labels, price):
        model = StackelbergRegressor(goal=Shift(1.0), feature_cost=price).fit(table, labels)
        assert model.gamma_ == inf
        assert model.alpha_ == 0.0
        least = LinearRegression().fit(table, labels)
        np.testing.assert_allclose(model.predict(table), least.predict(table), atol=1e-9)
        goals = labels + 1.0
        np.testing.assert_array_equal(model.predict_attacked(table, goals), model.predict(table))
        np.testing.assert_array_equal(model.best_response(table, goals), table)

    @pytest.mark.parametrize("columns", [7.0, 1e-3])
    @pytest.mark.parametrize("labels", [100.0, 1e-2])
    def test_the_default_knows_no_units(self, fitted, columns, labels):
        scaled = StackelbergRegressor().fit(columns * X, labels * y, z=labels * z)
        wanted = labels * fitted.predict(X)
        np.testing.assert_allclose(
            scaled.predict(columns * X), wanted, rtol=0, atol=1e-9 * np.abs(wanted).max()
        )

    def test_weights_are_repetitions(self):
        again = np.repeat(np.arange(M), weight.astype(int))
        one = clone(FLOOR).fit(X, y, sample_weight=weight)
        two = clone(FLOOR).fit(X[again], y[again])
        np.testing.assert_allclose(one.coef_, two.coef_, rtol=1e-7)
        assert one.gamma_ == pytest.approx(two.gamma_, rel=1e-9)

    def test_a_goal_is_its_z(self, fitted):
        given = StackelbergRegressor().fit(X, y, z=z)
        np.testing.assert_array_equal(given.coef_, fitted.coef_)

    @pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_matrix, sp.coo_array])
    def test_sparse(self, fitted, kind):
        model = clone(FLOOR).fit(kind(X), y)
        np.testing.assert_allclose(model.coef_, fitted.coef_, rtol=1e-8)
        np.testing.assert_allclose(model.predict(kind(X)), fitted.predict(X), rtol=1e-8)
        np.testing.assert_allclose(
            model.predict_attacked(kind(X), z), fitted.predict_attacked(X, z), rtol=1e-8
        )

    def test_float32_stays(self, fitted):
        model = clone(FLOOR).fit(X.astype("f4"), y)
        assert model.coef_.dtype == model.predict(X.astype("f4")).dtype == np.float32
        np.testing.assert_allclose(model.coef_, fitted.coef_, rtol=1e-3)

    def test_iterative_solvers_and_seeds(self):
        exact = StackelbergRegressor(0.7, honest_share=0).fit(X, y, z=z)
        for seed in (0, np.random.RandomState(0), np.random.default_rng(0)):
            model = StackelbergRegressor(
                0.7,
                honest_share=0,
                null_space="use",
                solver=GLTR(perturbation=1.0),
                random_state=seed,
            ).fit(X, y, z=z)
            assert model.solver_ == "gltr"
            assert model.objective_ == pytest.approx(exact.objective_, rel=1e-8)
        with pytest.raises(
            ValueError, match=r"^solver 'gltr' knows neither honest.*honest_share=0"
        ):
            StackelbergRegressor(solver="gltr").fit(X, y, z=z)


class TestAfterwards:
    def test_attacked_predictions_are_predictions_of_moved_rows(self, fitted):
        for gamma in (None, 0.3, np.linspace(0.1, 3.0, M), inf):
            moved = fitted.best_response(X, z, gamma=gamma)
            attacked = fitted.predict_attacked(X, z, gamma=gamma)
            np.testing.assert_allclose(fitted.predict(moved), attacked, rtol=1e-10, atol=1e-10)
        np.testing.assert_array_equal(fitted.best_response(X, z, gamma=inf), X)
        pull = fitted.alpha_ / (1 + fitted.alpha_)
        closed = (fitted.predict_attacked(X, z) - fitted.predict(X)) / (z - fitted.predict(X))
        np.testing.assert_allclose(closed, pull, rtol=1e-8)

    @pytest.mark.parametrize("method", ["predict_attacked", "best_response"])
    def test_goals_from_labels(self, fitted, method):
        given = StackelbergRegressor().fit(X, y, z=z)
        wanted = getattr(given, method)(X, z)
        np.testing.assert_array_equal(getattr(fitted, method)(X, y=y), wanted)
        np.testing.assert_array_equal(getattr(fitted, method)(X, z), wanted)
        np.testing.assert_array_equal(getattr(given, method)(X, Floor(2.0), y=y), wanted)
        # What is passed comes before what the model holds.
        other = getattr(fitted, method)(X, Floor(3.0), y=list(y))
        np.testing.assert_array_equal(other, getattr(fitted, method)(X, np.maximum(y, 3.0)))

    @pytest.mark.parametrize("method", ["predict_attacked", "best_response"])
    def test_goals_that_cannot_be_known(self, fitted, method):
        given = StackelbergRegressor().fit(X, y, z=z)
        for model, told, said in (
            (fitted, {}, r"^z is needed.*holds Floor\(level=2\.0\)\. Pass z=.* or y=, the true"),
            (given, {}, r"^z is needed.*holds no goal\. Pass z=.* or z=Floor\(250\) and y from"),
            (given, {"y": y}, r"^y was given, but this model holds no goal.*Pass z=Floor\(250\)"),
            (fitted, {"z": z, "y": y}, r"^z was given and so was y.*drop one"),
            (fitted, {"z": Floor(1.0)}, r"^y is needed, because z=Floor\(level=1\.0\)"),
            (fitted, {"y": y[1:]}, r"^y must have one entry per row of X, 80; got 79"),
        ):
            with pytest.raises(ValueError, match=said):
                getattr(model, method)(X, **told)

    def test_immutable_features_stay(self):
        model = StackelbergRegressor(feature_cost=COST).fit(X, y, z=z)
        moved = model.best_response(X, z)
        np.testing.assert_array_equal(moved[:, 1], X[:, 1])
        assert (moved[:, 0] != X[:, 0]).all()
        wanted = spgls.best_response(
            X, z, model.coef_, gamma=model.gamma_, intercept=model.intercept_, feature_cost=COST
        )
        np.testing.assert_allclose(moved, wanted, rtol=1e-12)

    def test_pandas_in_pandas_out(self):
        model = clone(FLOOR).fit(frame, y)
        moved = model.best_response(frame, z)
        assert isinstance(moved, pd.DataFrame)
        assert list(moved.columns) == NAMES
        assert list(moved.index) == list(frame.index)
        np.testing.assert_array_equal(model.feature_names_in_, NAMES)
        with pytest.raises(ValueError, match="feature names should match"):
            model.best_response(frame[NAMES[::-1]], z)
        with pytest.raises(ValueError, match="feature names should match"):
            model.predict_attacked(frame[NAMES[::-1]], z)

    def test_whole_numbers_and_float32_rows(self, fitted):
        whole = np.arange(M * N).reshape(M, N) % 7
        assert fitted.best_response(whole, z).dtype == np.float64
        assert fitted.best_response(X.astype("f4"), z).dtype == np.float32

    def test_copies(self, fitted):
        copy = pickle.loads(pickle.dumps(fitted))
        np.testing.assert_array_equal(copy.predict(X), fitted.predict(X))
        assert copy.status_ is Status.OPTIMAL
        assert copy.goal == fitted.goal
        fresh = clone(fitted).set_params(goal__level=3.0, honest_share=0.1)
        assert not hasattr(fresh, "coef_")
        assert fresh.goal == Floor(3.0)
        assert fitted.goal == Floor(2.0)
        assert "goal=Floor(level=3.0)" in repr(fresh)

    def test_score_is_plain_r2(self, fitted):
        wanted = 1 - np.mean((fitted.predict(X) - y) ** 2) / np.var(y)
        assert fitted.score(X, y) == pytest.approx(wanted, rel=1e-12)

    def test_not_fitted(self):
        for call in ("predict_attacked", "best_response"):
            with pytest.raises(NotFittedError):
                getattr(StackelbergRegressor(), call)(X, z)

    def test_notebooks_show_what_the_fit_came_to(self, fitted):
        shown = fitted._repr_mimebundle_()["text/html"]
        for word in ("status", "optimal", "relative gap", "proved", "pull", "passes"):
            assert word in shown
        assert fitted._repr_html_().endswith("</table>")
        assert "spgls-fit" not in StackelbergRegressor()._repr_html_()
        mixed = StackelbergRegressor(Population.mixed(0.5)).fit(X, y, z=z)
        assert f"0, {mixed.alpha_[1] / (1.0 + mixed.alpha_[1]):.3g}" in mixed._repr_html_()
        with sklearn.config_context(display="text"):
            assert "text/html" not in fitted._repr_mimebundle_()


class TestWarnings:
    def test_limits(self):
        model = StackelbergRegressor(
            0.7, honest_share=0, null_space="use", solver="gltr", max_iter=1
        )
        with pytest.warns(ConvergenceWarning, match=r"^iteration limit, .*Raise max_iter") as seen:
            model.fit(X, y, z=z)
        assert seen[0].filename == __file__
        assert model.status_ is Status.ITERATION_LIMIT

    def test_goals_that_reveal_the_labels(self):
        with pytest.warns(UserWarning, match=r"^unattained, .*honest"):
            StackelbergRegressor(0.7, honest_share=0, goal=Shift(1.0)).fit(X, y)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            StackelbergRegressor(0.7, goal=Shift(1.0)).fit(X, y)

    def test_advice_is_that_of_the_game_at_hand(self):
        """Honest providers are there already; what is missing is a hold in the null space."""

        def warned(**how):
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                StackelbergRegressor(0.7, goal=Shift(0.0), **how).fit(np.hstack([X, X]), y)
            return [str(w.message) for w in seen if str(w.message).startswith("unattained")]

        (half,) = warned(null_space="use")
        assert half.endswith("Pass null_space='avoid' or penalise large coefficients (ridge).")
        (nobody,) = warned(honest_share=0)
        assert nobody.endswith(
            "Treat some providers as honest or penalise large coefficients (ridge)."
        )
        assert not warned(null_space="avoid")
        assert not warned(null_space="use", ridge=0.1)

    def test_a_solver_is_not_advised_in_its_own_place(self):
        model = StackelbergRegressor(solver="spectral", tol=1e-300, goal=Floor(2.0))
        with pytest.warns(ConvergenceWarning, match=r"^inaccurate, .*allow a larger tol\.$"):
            model.fit(X, y)

    @pytest.mark.parametrize("goal", [Floor(-250.0), Cap(250.0), Scale(1.0)])
    def test_goals_that_ask_for_nothing(self, goal):
        with pytest.warns(
            UserWarning, match=rf"equal the labels y in {M} of {M} rows \(100%\)"
        ) as seen:
            StackelbergRegressor(goal=goal).fit(X, y)
        assert repr(goal) in str(seen[0].message)
        assert f"between {y.min():.4g} and {y.max():.4g}" in str(seen[0].message)
        assert seen[0].filename == __file__
        with pytest.warns(UserWarning, match="^The goals from z equal the labels"):
            StackelbergRegressor().fit(X, y, z=goal(y))

    def test_goals_of_next_to_nobody(self):
        table, labels = np.tile(X, (4, 1)), np.tile(y, 4)
        goals, few = labels.copy(), 4 * M // 100
        goals[:few] += 1.0
        with pytest.warns(UserWarning, match=r"in 317 of 320 rows \(99\.06%\)"):
            StackelbergRegressor().fit(table, labels, z=goals)
        goals[few] += 1.0
        StackelbergRegressor().fit(table, labels, z=goals)

    def test_only_rows_that_count_may_want_something(self):
        goals = y.copy()
        goals[:5] += 1.0
        with pytest.warns(UserWarning, match=r"in 75 of 75 rows"):
            StackelbergRegressor().fit(X, y, z=goals, sample_weight=np.arange(M) >= 5)

    def test_goals_on_another_scale(self):
        with pytest.warns(UserWarning, match=r"standard deviations of y.*another scale"):
            StackelbergRegressor(goal=Floor(250.0)).fit(X, y)

    def test_labels_whose_squares_leave_the_range(self):
        """They are refused in words, with no warning of NumPy's before."""
        with pytest.raises(ValueError, match="too large to be squared"):
            StackelbergRegressor(gamma=1.0).fit(X, 1e160 * y, z=1e160 * z)

    @pytest.mark.parametrize("unit", [1e-200, 1.0, 1e200])
    def test_scale_of_labels_of_any_size(self, unit):
        assert doubt_of_scale(unit * y, unit * z) is None
        assert "another scale" in doubt_of_scale(unit * y, unit * (y + 1e3))


class Watch:
    """A callback of scikit-learn's that counts, and stops where it is told."""

    def __init__(self, stop_at=None):
        self.seen = []
        self.stop_at = stop_at

    def setup(self, estimator, context):
        self.seen.append("setup")

    def teardown(self, estimator, context):
        self.seen.append("teardown")

    def on_fit_task_begin(self, estimator, context, *, metadata=None):
        self.seen.append(f"begin {context.task_name}")
        assert "z" in metadata

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        self.seen.append(f"end {context.task_name}")
        if context.task_name == "fit":
            assert fitted_estimator.predict(X).shape == (M,)
        return context.task_name == f"iteration {self.stop_at}"


@pytest.mark.skipif(
    find_spec("sklearn.callback") is None, reason="this scikit-learn has no callbacks"
)
class TestCallbacks:
    def test_a_direct_solver_is_one_task(self):
        watch = Watch()
        clone(FLOOR).set_callbacks(watch).fit(X, y)
        assert watch.seen == ["setup", "begin fit", "end fit", "teardown"]

    def test_iterations_are_tasks_and_can_be_stopped(self):
        watch = Watch(stop_at=2)
        model = StackelbergRegressor(
            0.7, honest_share=0, null_space="use", solver="gltr"
        ).set_callbacks(watch)
        model.fit(X, y, z=z)
        assert model.status_ is Status.STOPPED
        assert model.n_iter_ == 2
        assert watch.seen[:3] == ["setup", "begin fit", "begin iteration 1"]
        assert watch.seen[-3:] == ["end iteration 2", "end fit", "teardown"]

    def test_torn_down_after_an_error(self):
        watch = Watch()
        with pytest.raises(ValueError, match=r"^solver"):
            clone(FLOOR).set_params(solver="gltr", null_space="use").set_callbacks(watch).fit(X, y)
        assert "end fit" not in watch.seen
        assert watch.seen.count("setup") == watch.seen.count("teardown")

    def test_they_go_with_clones_and_not_with_pickles_of_others(self, fitted):
        watch = Watch()
        clone(clone(FLOOR).set_callbacks(watch)).fit(X, y)
        assert watch.seen
        assert not hasattr(fitted, "_callback_fit_ctx")


@pytest.mark.parametrize(
    ("model", "honest", "attacked", "within"),
    [
        (LinearRegression(), 0.48, 0.00, (0.02, 0.02)),
        (RidgeCV(alphas=np.geomspace(1e-3, 10, 30)), 0.48, 0.21, (0.02, 0.02)),
        (StackelbergRegressor(goal=Floor(250)), 0.46, 0.44, (0.02, 0.02)),
        (StackelbergRegressor(goal=Floor(250), honest_share=0), -10.5, 0.54, (1.05, 0.054)),
    ],
    ids=["least squares", "ridge", "default", "paper's game"],
)
def test_diabetes(model, honest, attacked, within):
    table, labels = load_diabetes(return_X_y=True)
    gamma = gamma_from_pull(0.5, LinearRegression().fit(table, labels).coef_)
    scoring = {"honest": "r2", "attacked": make_attacked_scorer(gamma, goal=Floor(250))}
    folds = KFold(10, shuffle=True, random_state=0)
    found = cross_validate(model, table, labels, cv=folds, scoring=scoring)
    assert found["test_honest"].mean() == pytest.approx(honest, abs=within[0])
    assert found["test_attacked"].mean() == pytest.approx(attacked, abs=within[1])


text = X.astype(object)
text[3, 2] = "abc"
CONSTRUCTOR = [
    ("gamma", None, TypeError, "a finite number above 0; got None. Or pass 'auto', or a Popul"),
    ("gamma", "big", TypeError, "a finite number above 0; got 'big'"),
    ("gamma", [1.0], TypeError, "got a list"),
    ("gamma", np.ones(M), TypeError, "got ndarray of shape"),
    ("gamma", Population, TypeError, "got the class Population"),
    ("gamma", 0.0, ValueError, "above 0; got 0.0"),
    ("gamma", nan, ValueError, "got nan"),
    ("gamma", inf, ValueError, "got inf"),
    ("pull", "half", TypeError, "a finite number above 0 and below 1; got 'half'"),
    ("pull", None, TypeError, "a finite number above 0 and below 1; got None"),
    ("pull", nan, ValueError, "got nan"),
    ("pull", 0.0, ValueError, "above 0 and below 1; got 0.0"),
    ("pull", 1.0, ValueError, "above 0 and below 1; got 1.0"),
    ("honest_share", "half", TypeError, "a finite number of at least 0 and of at most 1; got 'h"),
    ("honest_share", [0.5], TypeError, "got a list"),
    ("honest_share", nan, ValueError, "got nan"),
    ("honest_share", -0.1, ValueError, "of at least 0 and of at most 1; got -0.1"),
    ("honest_share", 1.1, ValueError, "of at least 0 and of at most 1; got 1.1"),
    ("goal", 250, TypeError, "None, a goal such as Floor"),
    ("goal", Floor, TypeError, "got the class Floor, not an object"),
    ("goal", lambda y: y[1:], ValueError, "return one finite number per row, 80"),
    ("goal", lambda y: y[:, None], ValueError, "return one finite number per row, 80"),
    ("goal", lambda y: y * nan, ValueError, "return one finite number per row, 80"),
    ("goal", lambda y: "high", TypeError, "return one finite number per row, 80"),
    ("feature_cost", 1.0, ValueError, "have one dimension"),
    ("feature_cost", "age", TypeError, "be an array of numbers"),
    ("feature_cost", np.ones(3), ValueError, "have one entry per column of X, 4; got 3"),
    ("feature_cost", [1.0, nan, 1.0, 1.0], ValueError, "be positive, inf for .*entry 1 is nan"),
    ("feature_cost", [1.0, 0.0, 1.0, 1.0], ValueError, "be positive, inf for .*entry 1 is 0.0"),
    ("feature_cost", {1: 1.0}, TypeError, "have column names as keys"),
    ("fit_intercept", "yes", TypeError, "be True or False; got 'yes'"),
    ("fit_intercept", 1, TypeError, "be True or False; got 1"),
    ("null_space", "both", ValueError, "be one of use, avoid; got 'both'"),
    ("null_space", None, TypeError, "be one of use, avoid; got None"),
    ("decay", "slow", TypeError, "a finite number above 0 and of at most 1; got 'slow'"),
    ("decay", 0.0, ValueError, "above 0 and of at most 1; got 0.0"),
    ("decay", 1.5, ValueError, "of at most 1; got 1.5"),
    ("ridge", "1", TypeError, "a finite number of at least 0; got '1'"),
    ("ridge", [1.0], TypeError, "got a list"),
    ("ridge", nan, ValueError, "got nan"),
    ("ridge", -1.0, ValueError, "of at least 0; got -1.0"),
    ("solver", "magic", ValueError, "be one of auto, .*got 'magic'"),
    ("solver", GLTR, TypeError, "or a solver object; got the class GLTR"),
    ("solver", None, TypeError, "got None"),
    ("tol", "small", TypeError, "a finite number above 0"),
    ("tol", [1e-9], TypeError, "got a list"),
    ("tol", nan, ValueError, "got nan"),
    ("tol", 0.0, ValueError, "above 0; got 0.0"),
    ("max_iter", 1.5, TypeError, "be a positive whole number or None"),
    ("max_iter", [5], TypeError, "be a positive whole number or None"),
    ("max_iter", 0, ValueError, "be a positive whole number or None"),
    ("random_state", "seed", TypeError, "be None, a seed"),
    ("random_state", [1], TypeError, "be None, a seed"),
    ("random_state", nan, TypeError, "be None, a seed"),
    ("random_state", -1, ValueError, "be None, a seed"),
]


@pytest.mark.parametrize(("parameter", "value", "error", "said"), CONSTRUCTOR)
def test_bad_constructor_parameters(parameter, value, error, said):
    model = StackelbergRegressor(**({"goal": Floor(2.0)} | {parameter: value}))
    with pytest.raises(error, match=rf"^{parameter} must (be )?{said}|^{parameter} must .*{said}"):
        model.fit(X, y)
    assert model.get_params(deep=False)[parameter] is value


def test_every_constructor_parameter_is_in_the_table():
    assert {row[0] for row in CONSTRUCTOR} == set(StackelbergRegressor().get_params())


def test_parameters_that_contradict_each_other():
    model = StackelbergRegressor(Population.mixed(0.5), honest_share=0.4, goal=Floor(2.0))
    with pytest.raises(
        ValueError, match=r"^honest_share must stay 0.5, its default, with a Population.*got 0"
    ):
        model.fit(X, y)
    for strength in (0.7, Population.mixed(0.5)):
        with pytest.raises(ValueError, match=r"^pull must stay 0.5 with gamma=.*; got 0\.3\. Pass"):
            StackelbergRegressor(strength, pull=0.3).fit(X, y, z=z)
        StackelbergRegressor(strength, pull=0.5).fit(X, y, z=z)
    with pytest.raises(ValueError, match=r"^z was given and so was goal=Floor.*set_fit_request"):
        clone(FLOOR).fit(X, y, z=z)
    with pytest.raises(ValueError, match=r"^z or a goal is needed: pass fit\(X, y, z=.*goal=Floor"):
        StackelbergRegressor().fit(X, y)


def test_names_that_mean_nothing():
    model = StackelbergRegressor(goal=Floor(2.0), feature_cost={"age": inf})
    with pytest.raises(ValueError, match=r"^feature_cost gives .*set_output\(transform='pandas'\)"):
        model.fit(X, y)
    model.set_params(feature_cost={"agee": inf})
    with pytest.raises(ValueError, match=r"^feature_cost names 'agee'.*Did you mean 'age'\?"):
        model.fit(frame, y)


VECTORS = [
    ("abc", TypeError, "be an array of numbers"),
    (1.0, ValueError, "have one dimension"),
    (np.ones((M, 2)), ValueError, "have one dimension"),
    (np.ones(M - 1), ValueError, "have one entry per row of X, 80; got 79"),
    (np.full(M, nan), ValueError, "be finite"),
]
GAMMAS = [
    ("auto", TypeError, "be one positive number or one per row of X, 80"),
    (np.ones(3), ValueError, "have one entry per row of X, 80; got 3"),
    (nan, ValueError, "be one positive number"),
    (0.0, ValueError, "be one positive number"),
]
TABLES = [
    (None, ValueError, "Expected 2D array|None"),
    (X[:, 0], ValueError, "(?s)Expected 2D array.*Reshape your data"),
    (holed, ValueError, "Input X contains NaN"),
    (X[:0], ValueError, "minimum of 1 is required"),
    (text, TypeError, "X must be a table of numbers.*row 3, column 2 is 'abc'"),
]
METHODS = [
    *(("fit", "z", *row) for row in VECTORS),
    *(("fit", "sample_weight", *row) for row in VECTORS),
    ("fit", "sample_weight", -np.ones(M), ValueError, "not be negative"),
    *(("fit", "X", *row) for row in TABLES),
    ("fit", "y", None, ValueError, "requires y to be passed, but the target y is None"),
    ("fit", "y", y[:-1], ValueError, "inconsistent numbers of samples"),
    ("fit", "y", np.column_stack([y, y]), ValueError, "A model has one output"),
    ("fit", "y", y * nan, ValueError, "Input y contains NaN"),
    ("fit", "y", ["a"] * M, TypeError, "y must be an array of numbers.*entry 0 is 'a'"),
    *(("predict", "X", *row) for row in TABLES),
    *(
        (method, parameter, *row)
        for method in ("predict_attacked", "best_response")
        for parameter, rows in (
            ("X", TABLES),
            ("z", VECTORS),
            ("gamma", GAMMAS),
        )
        for row in rows
    ),
    ("best_response", "X", sp.csr_array(X), TypeError, "X must be dense.*spgls.movement"),
    ("predict", "X", X[:, :3], ValueError, "expecting 4 features"),
]


@pytest.mark.parametrize(("method", "parameter", "value", "error", "said"), METHODS)
def test_bad_method_parameters(fitted, method, parameter, value, error, said):
    good = {
        "fit": {"X": X, "y": y, "z": z},
        "predict": {"X": X},
        "predict_attacked": {"X": X, "z": z},
        "best_response": {"X": X, "z": z},
    }[method]
    model = StackelbergRegressor() if method == "fit" else fitted
    names_it = parameter in ("z", "sample_weight", "gamma")
    with pytest.raises(error, match=f"^{parameter} must .*{said}" if names_it else said):
        getattr(model, method)(**(good | {parameter: value}))


@pytest.mark.parametrize(
    "model", [StackelbergRegressor(0.7), StackelbergRegressorCV([0.7, 2.0], world=1.0)]
)
def test_an_interrupted_fit_leaves_the_last_one(model, monkeypatch):
    """Coefficients of one fit beside the number of features of another would predict nonsense."""
    model = clone(model).fit(X, y, z=z)
    before = {name: np.copy(value) for name, value in vars(model).items() if name[-1] == "_"}

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("spgls.estimators.linear_game.play", interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:, :1], y, z=z)
    assert {name for name in vars(model) if name[-1] == "_"} == set(before)
    np.testing.assert_array_equal(model.coef_, before["coef_"])
    assert model.n_features_in_ == X.shape[1]
    fresh = clone(model)
    with pytest.raises(KeyboardInterrupt):
        fresh.fit(X, y, z=z)
    assert not [name for name in vars(fresh) if name[-1] == "_"]
