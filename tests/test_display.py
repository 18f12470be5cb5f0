"""Pictures: their data against independent computation, what they draw, and how it looks."""

from __future__ import annotations

import sys
from math import inf

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import sem
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from spgls import (
    Floor,
    Population,
    StackelbergRegressor,
    best_response,
    gamma_from_pull,
    make_attacked_scorer,
    movement,
    predict_attacked,
    robustness,
    solve,
    solve_path,
)
from spgls.display import (
    CoefficientDisplay,
    CVDisplay,
    GammaHeatmapDisplay,
    MovementDisplay,
    PathDisplay,
    ResponseDisplay,
    RobustnessDisplay,
    TradeoffDisplay,
)
from spgls.display._figure import labels, plain
from spgls.estimators.cv import StackelbergRegressorCV

matplotlib = pytest.importorskip("matplotlib")

GOAL = Floor(250)
GAMMA = 1.9e6


@pytest.fixture(autouse=True)
def pyplot():
    with matplotlib.rc_context({"backend": "Agg"}):
        import matplotlib.pyplot as plt

        yield plt
        plt.close("all")


@pytest.fixture(scope="module")
def data():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    return X, y.to_numpy()


@pytest.fixture(scope="module")
def goals(data):
    return GOAL(data[1])


@pytest.fixture(scope="module")
def model(data):
    return StackelbergRegressor(goal=GOAL).fit(*data)


@pytest.fixture(scope="module")
def least_squares(data):
    return make_pipeline(StandardScaler(), LinearRegression()).fit(*data)


@pytest.fixture(scope="module")
def path(data, goals):
    games = [Population.mixed(gamma) for gamma in GAMMA * np.geomspace(0.01, 100.0, 21)]
    return solve_path(*data, goals, games, fit_intercept=True)


@pytest.fixture(scope="module")
def paper(data, goals):
    gammas = GAMMA * np.geomspace(0.01, 100.0, 21)
    return solve_path(*data, goals, gammas, fit_intercept=True)


def moved_error(coef, intercept, data, goals, gamma):
    """Mean squared error on rows that are moved one by one."""
    X, y = data[0].to_numpy(), data[1]
    rows = best_response(X, goals, coef, gamma=gamma, intercept=intercept)
    return np.mean((rows @ coef + intercept - y) ** 2)


def told_by_goals(y, z):
    fitted = LinearRegression().fit(z[:, None], y)
    return np.mean((fitted.predict(z[:, None]) - y) ** 2)


class TestPath:
    def test_data_of_the_paper_game(self, paper, data, goals):
        display = PathDisplay.from_path(paper, *data, goals)
        X, y = data
        np.testing.assert_array_equal(display.coef, paper.coef)
        np.testing.assert_allclose(display.attacked * len(y), paper.objective, rtol=1e-9)
        plain_error = [np.mean((X @ s.coef + s.intercept - y) ** 2) for s in paper]
        np.testing.assert_allclose(display.honest, plain_error)
        assert display.from_goal == pytest.approx(told_by_goals(y, goals))
        assert display.variance == pytest.approx(y.var())
        assert display.feature_names == list(X.columns)

    def test_objective_of_a_mixed_population(self, path, data, goals):
        display = PathDisplay.from_path(path, *data, goals)
        mean = (display.honest + display.attacked) / 2
        np.testing.assert_allclose(mean * len(goals), path.objective, rtol=1e-9)

    def test_one_world_for_all(self, path, data, goals):
        display = PathDisplay.from_path(path, *data, goals, gamma=GAMMA)
        expected = [moved_error(s.coef, s.intercept, data, goals, GAMMA) for s in path]
        np.testing.assert_allclose(display.attacked, expected)
        # Nothing beats the model for the world at hand in that world.
        assert np.argmin(display.honest + display.attacked) == 10

    def test_any_order(self, path, data, goals):
        back = PathDisplay.from_path(path[::-1], *data, goals)
        np.testing.assert_array_equal(back.coef, path.coef)
        assert (np.diff(back.gammas) > 0).all()

    def test_costs_come_with_the_path(self, data, goals):
        X, y = data
        cost = np.linspace(0.5, 2.0, X.shape[1])
        cost[0] = inf
        costly = solve_path(X, y, goals, [GAMMA], fit_intercept=True, feature_cost=cost)
        display = PathDisplay.from_path(costly, X, y, goals)
        assert display.attacked[0] * len(y) == pytest.approx(costly.objective[0])

    def test_draws_coefficients_and_errors(self, path, data, goals):
        display = PathDisplay.from_path(path, *data, goals).plot()
        coefficients, errors = display.axes_
        assert display.ax_ is coefficients
        assert display.figure_ is coefficients.figure
        named = {line.get_label(): line for line in coefficients.get_lines()}
        for j, name in enumerate(data[0].columns):
            np.testing.assert_array_equal(named[name].get_ydata(), path.coef[:, j])
        drawn = {line.get_label(): line.get_ydata() for line in errors.get_lines()}
        assert list(drawn) == ["on honest rows", "on attacked rows", "y from z alone"]
        np.testing.assert_array_equal(drawn["on honest rows"], display.honest)
        np.testing.assert_array_equal(drawn["on attacked rows"], display.attacked)
        assert errors.get_xscale() == "log"
        assert errors.get_xlabel() == "gamma the model is for (left: strong)"
        assert coefficients.get_ylabel() == "coefficient"
        assert errors.get_ylabel() == "mean squared error"

    def test_without_rows(self, path):
        display = PathDisplay.from_path(path)
        assert display.honest is None
        assert display.feature_names[0] == "x0"
        (ax,) = display.plot(max_features=3).axes_
        assert len(ax.get_legend().get_texts()) == 3
        assert len(ax.get_lines()) == 10 + 1
        assert "with errors" not in repr(display)

    def test_panels(self, path, data, goals, pyplot):
        display = PathDisplay.from_path(path, *data, goals, gamma=GAMMA)
        assert len(display.plot(show="coefficients").axes_) == 1
        (ax,) = display.plot(show="errors", metric="r2").axes_
        assert ax.get_ylabel() == "R2"
        assert [line.get_label() for line in ax.get_lines()][-1] == "true gamma"
        _, axes = pyplot.subplots(2, 1)
        assert list(display.plot(axes).axes_) == list(axes)

    def test_one_gamma(self, path, data, goals):
        (*_, errors) = PathDisplay.from_path(path[:1], *data, goals).plot(marker="o").axes_
        assert errors.get_xscale() == "linear"

    def test_coefficients_that_explode_are_drawn_by_logarithms(self, paper):
        assert PathDisplay.from_path(paper).plot().ax_.get_yscale() == "asinh"

    def test_refusals(self, path, data, goals, model):
        X, y = data
        with pytest.raises(TypeError, match="path must be what solve_path returns; got a Stack"):
            PathDisplay.from_path(model)
        with pytest.raises(ValueError, match="at least one solution"):
            PathDisplay.from_path(path[:0])
        with pytest.raises(ValueError, match="X, y and z must be given together; y, z missing"):
            PathDisplay.from_path(path, X)
        with pytest.raises(ValueError, match="gamma was given without rows"):
            PathDisplay.from_path(path, gamma=1.0)
        with pytest.raises(ValueError, match="X must have 10 columns, as path has; got 9"):
            PathDisplay.from_path(path, X.iloc[:, 1:], y, goals, feature_names=list("abcdefghij"))
        with pytest.raises(ValueError, match="z must have one entry per row of X, 442; got 441"):
            PathDisplay.from_path(path, X, y, goals[1:])
        with pytest.raises(ValueError, match="feature_names must have one entry per column of X"):
            PathDisplay.from_path(path, feature_names=["a"])
        with pytest.raises(TypeError, match="feature_names must be a list of names"):
            PathDisplay.from_path(path, feature_names="age")
        with pytest.raises(ValueError, match="show='errors' needs rows"):
            PathDisplay.from_path(path).plot(show="errors")
        with pytest.raises(ValueError, match="show must be one of all, coefficients, errors"):
            PathDisplay.from_path(path).plot(show="everything")
        shares = [Population.mixed(GAMMA, honest=share) for share in (0.2, 0.8)]
        mixed = solve_path(X, y, goals, shares, fit_intercept=True)
        with pytest.raises(ValueError, match=r"same strategic share.*from 0\.2 to 0\.8\. Tradeoff"):
            PathDisplay.from_path(mixed)
        several = solve_path(X, y, goals, [Population((1e5, 1e6), (0.5, 0.5))], fit_intercept=True)
        with pytest.raises(ValueError, match="strategic providers of one strength in each game"):
            PathDisplay.from_path(several)


class TestTradeoff:
    def test_data_equals_refits(self, model, data, goals):
        shares = [0.0, 0.3, 0.9, 1.0]
        display = TradeoffDisplay.from_estimator(model, *data, shares=shares)
        X, y = data
        for at, share in enumerate(shares):
            again = clone(model).set_params(honest_share=1 - share).fit(X, y)
            assert display.honest[at] == pytest.approx(np.mean((again.predict(X) - y) ** 2))
            error = moved_error(again.coef_, again.intercept_, data, goals, model.gamma_)
            assert display.attacked[at] == pytest.approx(error, rel=1e-6)
        assert display.gamma == model.gamma_
        assert display.from_goal == pytest.approx(told_by_goals(y, goals))

    def test_more_strategic_people_expected_help_them_and_hurt_honest_ones(self, model, data):
        display = TradeoffDisplay.from_estimator(model, *data)
        assert (np.diff(display.honest) > -1e-6).all()
        assert (np.diff(display.attacked) < 1e-6).all()

    def test_held_out_rows(self, model, data, goals):
        X, y = data
        folds = KFold(5, shuffle=True, random_state=0)
        display = TradeoffDisplay.from_estimator(model, X, y, shares=[0.5], cv=folds)
        after = np.empty(len(y))
        for train, test in folds.split(X):
            fold = clone(model).set_params(gamma=model.gamma_).fit(X.iloc[train], y[train])
            after[test] = fold.predict_attacked(X.iloc[test], goals[test])
        assert display.attacked[0] == pytest.approx(np.mean((after - y) ** 2), rel=1e-7)

    def test_unfitted_goals_given_and_in_a_pipeline(self, data, goals):
        X, y = data
        pipeline = make_pipeline(StandardScaler(), StackelbergRegressor())
        display = TradeoffDisplay.from_estimator(pipeline, X, y, goals, shares=[0.5])
        fitted = StackelbergRegressor().fit(StandardScaler().fit_transform(X), y, z=goals)
        assert display.gamma == pytest.approx(fitted.gamma_)
        error = np.mean((fitted.predict(StandardScaler().fit_transform(X)) - y) ** 2)
        assert display.honest[0] == pytest.approx(error)
        assert not hasattr(pipeline[-1], "coef_")
        again = TradeoffDisplay.from_estimator(pipeline, X, y, GOAL, shares=[0.5])
        np.testing.assert_array_equal(again.honest, display.honest)
        path = solve_path(X, y, GOAL, [GAMMA], fit_intercept=True)
        drawn = [PathDisplay.from_path(path, X, y, wish).attacked for wish in (GOAL, goals)]
        np.testing.assert_array_equal(*drawn)

    def test_search_costs_ridge_and_sparse(self, data, goals):
        X, y = data
        cost = {"age": inf, "sex": inf}
        base = StackelbergRegressor(goal=GOAL, feature_cost=cost, ridge=1e-4)
        search = GridSearchCV(base, {"tol": [1e-9]}, cv=2).fit(X, y)
        display = TradeoffDisplay.from_estimator(search, X, y, shares=[0.5])
        after = search.best_estimator_.predict_attacked(X, goals)
        assert display.attacked[0] == pytest.approx(np.mean((after - y) ** 2))
        base.set_params(feature_cost=[inf, inf, *[1.0] * 8])
        for kind in (sp.csr_array, sp.coo_array):
            scarce = TradeoffDisplay.from_estimator(base, kind(X), y, shares=[0.5])
            assert scarce.attacked == pytest.approx(display.attacked)
        folds = [
            TradeoffDisplay.from_estimator(base, rows, y, shares=[0.5], cv=3)
            for rows in (X.to_numpy(), sp.coo_array(X))
        ]
        assert folds[1].attacked == pytest.approx(folds[0].attacked)

    def test_what_cross_validation_chose(self, chosen, data, goals):
        display = TradeoffDisplay.from_estimator(chosen, *data, shares=[0.5])
        again = StackelbergRegressor(goal=GOAL, **chosen.best_params_ | {"honest_share": 0.5})
        after = again.fit(*data).predict_attacked(data[0], goals)
        assert display.gamma == chosen.gamma_
        assert display.attacked[0] == pytest.approx(np.mean((after - data[1]) ** 2), rel=1e-6)
        heatmap = GammaHeatmapDisplay.from_estimator(chosen, *data)
        assert heatmap.honest_share == chosen.best_params_["honest_share"]
        response = ResponseDisplay.from_estimator(chosen, *data)
        np.testing.assert_allclose(response.after, chosen.predict_attacked(data[0], goals))
        with pytest.raises(NotFittedError):
            TradeoffDisplay.from_estimator(clone(chosen), *data)

    def test_from_path(self, model, data, goals):
        games = [Population.mixed(model.gamma_, honest=h) for h in (0.0, 1.0, 0.5)]
        path = solve_path(*data, goals, games, fit_intercept=True)
        display = TradeoffDisplay.from_path(path, *data, goals)
        same = TradeoffDisplay.from_estimator(model, *data, shares=[0.0, 0.5, 1.0])
        for name in ("shares", "honest", "attacked", "from_goal", "gamma", "variance"):
            assert getattr(display, name) == pytest.approx(getattr(same, name), rel=1e-6)

    def test_draws(self, model, data):
        display = TradeoffDisplay.from_estimator(model, *data)
        ax = display.plot(linewidth=3.0).ax_
        lines = {line.get_label(): line for line in ax.get_lines()}
        assert list(lines) == ["on honest rows", "on attacked rows", "y from z alone"]
        np.testing.assert_array_equal(lines["on attacked rows"].get_ydata(), display.attacked)
        assert lines["on honest rows"].get_linewidth() == 3.0
        assert ax.get_yscale() == "log"
        assert "strategic share" in ax.get_xlabel()
        cut = display.plot(metric="r2").ax_
        assert cut.get_ylabel() == "R2 (cut off at −1)"
        assert cut.get_ylim()[0] == -1.0

    def test_refusals(self, model, least_squares, data, goals, path):
        X, y = data
        with pytest.raises(TypeError, match="estimator must be a StackelbergRegressor or a Pipe"):
            TradeoffDisplay.from_estimator(least_squares, X, y, goals)
        with pytest.raises(ValueError, match="z was given and so was the model's goal"):
            TradeoffDisplay.from_estimator(model, X, y, goals)
        with pytest.raises(ValueError, match="z is needed, the prediction each provider would"):
            TradeoffDisplay.from_estimator(StackelbergRegressor(), X, y)
        with pytest.raises(ValueError, match=r"shares must be from 0, all honest.*got 1\.5"):
            TradeoffDisplay.from_estimator(model, X, y, shares=[0.5, 1.5])
        with pytest.raises(ValueError, match=r"shares must be .*got -1"):
            TradeoffDisplay.from_estimator(model, X, y, shares=[-1.0, 0.5])
        with pytest.raises(ValueError, match="y must have one entry per row of X, 442; got 441"):
            TradeoffDisplay.from_estimator(model, X, y[1:])
        with pytest.raises(ValueError, match=r"same gamma in every game.*PathDisplay"):
            TradeoffDisplay.from_path(path, X, y, goals)
        honest = StackelbergRegressor(Population((inf,), (1.0,)), goal=GOAL).fit(X, y)
        with pytest.raises(ValueError, match="fitted against honest providers only"):
            TradeoffDisplay.from_estimator(honest, X, y)
        with pytest.raises(ValueError, match="metric must be one of mse, r2; got 'mae'"):
            TradeoffDisplay.from_estimator(model, X, y, shares=[0.5]).plot(metric="mae")


class TestGammaHeatmap:
    def test_to_know_the_truth_is_best(self, model, data):
        display = GammaHeatmapDisplay.from_estimator(model, *data)
        assert display.errors.shape == (7, 7)
        np.testing.assert_array_equal(display.errors.argmin(axis=0), np.arange(7))
        assert display.matches == [(at, at) for at in range(7)]
        assert display.gammas[3] == pytest.approx(model.gamma_)
        assert display.honest_share == 0.5

    def test_data_equals_refits(self, model, data, goals):
        gammas, worlds = [1e5, 1e6], [3e5, 1e6, 3e6]
        display = GammaHeatmapDisplay.from_estimator(
            model, *data, gammas=gammas, true_gammas=worlds, honest_share=0.2
        )
        X, y = data
        for row, gamma in enumerate(gammas):
            again = clone(model).set_params(gamma=gamma).fit(X, y)
            honest = np.mean((again.predict(X) - y) ** 2)
            for column, world in enumerate(worlds):
                moved = moved_error(again.coef_, again.intercept_, data, goals, world)
                error = 0.2 * honest + 0.8 * moved
                assert display.errors[row, column] == pytest.approx(error, rel=1e-6)
        assert display.matches == [(1, 1)]

    def test_the_share_is_that_of_the_model(self, data):
        mixed = StackelbergRegressor(Population.mixed(GAMMA, honest=0.3), goal=GOAL).fit(*data)
        display = GammaHeatmapDisplay.from_estimator(mixed, *data, gammas=[GAMMA])
        assert display.honest_share == 0.3
        assert display.errors[0, 0] * len(data[1]) == pytest.approx(mixed.objective_)
        own = StackelbergRegressor(GAMMA, honest_share=0.7, goal=GOAL)
        assert GammaHeatmapDisplay.from_estimator(own, *data).honest_share == 0.7

    def test_from_path(self, path, paper, data, goals):
        display = GammaHeatmapDisplay.from_path(path, *data, goals)
        assert display.honest_share == 0.5
        own = np.diag(display.errors) * len(goals)
        np.testing.assert_allclose(own, path.objective, rtol=1e-9)
        alone = GammaHeatmapDisplay.from_path(paper, *data, goals, true_gammas=[GAMMA])
        expected = [moved_error(s.coef, s.intercept, data, goals, GAMMA) for s in paper]
        np.testing.assert_allclose(alone.errors[:, 0], expected, rtol=1e-9)

    def test_draws(self, model, data):
        display = GammaHeatmapDisplay.from_estimator(model, *data)
        ax = display.plot().ax_
        np.testing.assert_array_equal(ax.images[0].get_array(), display.errors)
        assert len(ax.texts) == 49
        assert len(ax.patches) == 7
        assert ax.get_xlabel() == "true gamma (left: strong)"
        assert ax.get_ylabel() == "gamma the model is trained for"
        scores = display.plot(metric="r2", cmap="viridis").ax_.images[0]
        np.testing.assert_allclose(scores.get_array(), 1 - display.errors / display.variance)
        assert scores.get_cmap().name == "viridis"

    def test_many_cells_hold_no_words(self, paper, data, goals):
        ax = GammaHeatmapDisplay.from_path(paper, *data, goals).plot().ax_
        assert not ax.texts
        assert len(ax.get_xticks()) <= 7

    def test_scores_far_below_zero(self, paper, data, goals):
        display = GammaHeatmapDisplay.from_path(paper, *data, goals, honest_share=0.5)
        assert display.plot(metric="r2").ax_.images[0].norm.vmin == -1.0

    def test_refusals(self, model, data, goals, path):
        with pytest.raises(ValueError, match="gammas must be positive; got -1"):
            GammaHeatmapDisplay.from_estimator(model, *data, gammas=[1.0, -1.0])
        with pytest.raises(ValueError, match="true_gammas must be positive; got 0"):
            GammaHeatmapDisplay.from_path(path, *data, goals, true_gammas=[0.0])
        with pytest.raises(ValueError, match="honest_share must be a finite number"):
            GammaHeatmapDisplay.from_path(path, *data, goals, honest_share=2.0)
        with pytest.raises(TypeError, match="estimator must be a StackelbergRegressor"):
            GammaHeatmapDisplay.from_estimator(Ridge(), *data, goals)


class TestMovement:
    def test_data(self, data, goals):
        X, y = data
        cost = np.linspace(0.5, 2.0, X.shape[1])
        cost[1] = inf
        model = StackelbergRegressor(goal=GOAL, feature_cost=cost).fit(X, y)
        display = MovementDisplay.from_estimator(model, X, goals)
        change = model.best_response(X, goals) - X
        np.testing.assert_allclose(np.outer(display.step, display.direction), change, atol=1e-12)
        np.testing.assert_allclose(display.mean_move, change.mean() / X.std(ddof=0), atol=1e-12)
        paid = model.gamma_ * np.where(np.isinf(cost), 0.0, cost) * change**2
        np.testing.assert_allclose(display.cost, paid.sum(axis=1))
        shares = paid.sum(axis=0) / paid.sum().sum()
        np.testing.assert_allclose(display.cost_share, shares, atol=1e-15)
        assert display.mean_move[1] == 0.0

    def test_any_linear_model_and_pipelines(self, least_squares, data, goals):
        X, _ = data
        display = MovementDisplay.from_estimator(least_squares, X, goals, gamma=5000.0)
        inside = least_squares[-1]
        seen = least_squares[:-1].transform(X)
        move = movement(seen, goals, inside.coef_, gamma=5000.0, intercept=inside.intercept_)
        np.testing.assert_allclose(display.step, move.step)
        np.testing.assert_allclose(display.cost, move.cost)
        np.testing.assert_allclose(display.scale, 1.0)
        assert display.feature_names == list(X.columns)

    def test_constant_columns_and_sparse_rows(self, data, goals):
        X = np.column_stack([data[0], np.ones(len(goals))])
        model = Ridge().fit(X, data[1])
        display = MovementDisplay.from_estimator(model, X, goals, gamma=GAMMA)
        assert display.scale[-1] == 1.0
        scarce = MovementDisplay.from_estimator(model, sp.csr_array(X), goals, gamma=GAMMA)
        np.testing.assert_allclose(scarce.mean_move, display.mean_move)
        assert scarce.feature_names[-1] == "x10"

    def test_strength_by_row(self, data, goals):
        X, y = data
        model = LinearRegression().fit(X, y)
        gamma = np.where(np.arange(len(y)) % 2, inf, GAMMA)
        display = MovementDisplay.from_estimator(model, X, goals, gamma)
        assert not display.step[1::2].any()
        assert not display.cost[1::2].any()

    def test_draws_those_that_move_most(self, model, data, goals):
        display = MovementDisplay.from_estimator(model, data[0], goals).plot(max_features=4)
        moves, costs = display.axes_
        largest = np.argsort(-np.abs(display.mean_move))[:4]
        names = [label.get_text() for label in moves.get_yticklabels()]
        assert names == [data[0].columns[j] for j in largest]
        widths = [bar.get_width() for bar in moves.patches]
        np.testing.assert_allclose(widths, display.mean_move[largest])
        paid = [bar.get_width() for bar in costs.patches]
        np.testing.assert_allclose(paid, (display.cost_share * display.cost.mean())[largest])
        assert moves.get_xlabel() == "change\n(standard deviations)"
        assert costs.get_xlabel() == f"mean cost\n({plain(display.cost.mean(), 3)} in all)"

    def test_long_names_and_small_costs_leave_room(self, data, goals):
        X, y = data[0], data[1] / 1e3
        names = [f"encoder__a rather long name_{j}" for j in range(X.shape[1])]
        model = LinearRegression().fit(X.to_numpy(), y)
        display = MovementDisplay.from_estimator(
            model, X.to_numpy(), goals / 1e3, GAMMA / 1e6, feature_names=names
        ).plot()
        display.figure_.canvas.draw()
        boxes = words_outside(display)
        assert all(not overlap(a, b) for i, (_, a) in enumerate(boxes) for _, b in boxes[:i])
        first = display.ax_.get_yticklabels()[0].get_text()
        assert first.startswith("encoder__a…")
        assert len(first) == 21

    def test_on_given_axes(self, model, data, goals, pyplot):
        _, axes = pyplot.subplots(1, 2)
        display = MovementDisplay.from_estimator(
            model, data[0], goals, feature_names=list("abcdefghij")
        )
        assert list(display.plot(axes, color="k").axes_) == list(axes)
        assert axes[1].get_ylim() == axes[0].get_ylim()
        assert len(axes[1].get_yticklabels()) == 10

    def test_refusals(self, least_squares, data, goals):
        X, y = data
        with pytest.raises(ValueError, match="gamma is needed: LinearRegression does not say how"):
            MovementDisplay.from_estimator(least_squares, X, goals)
        several = StackelbergRegressor(Population((1e5, 1e6), (0.5, 0.5)), goal=GOAL).fit(X, y)
        with pytest.raises(ValueError, match=r"several strengths: 100000, 1e\+06. Pass one"):
            MovementDisplay.from_estimator(several, X, goals)
        with pytest.raises(NotFittedError):
            MovementDisplay.from_estimator(StackelbergRegressor(), X, goals)
        forest = RandomForestRegressor(2, random_state=0).fit(X, y)
        with pytest.raises(TypeError, match="model must be a fitted linear model"):
            MovementDisplay.from_estimator(forest, X, goals, GAMMA)
        with pytest.raises(ValueError, match="z must have one entry per row of X, 442; got 2"):
            MovementDisplay.from_estimator(least_squares, X, goals[:2], GAMMA)
        display = MovementDisplay.from_estimator(least_squares, X, goals, GAMMA)
        with pytest.raises(ValueError, match="max_features must be a positive whole number"):
            display.plot(max_features=0)


class TestResponse:
    def test_data(self, model, least_squares, data, goals):
        X, y = data
        display = ResponseDisplay.from_estimator(model, X, y)
        np.testing.assert_allclose(display.before, model.predict(X))
        np.testing.assert_allclose(display.after, model.predict_attacked(X, goals))
        np.testing.assert_array_equal(display.z, goals)
        gamma = gamma_from_pull(0.5, least_squares[-1].coef_)
        other = ResponseDisplay.from_estimator(least_squares, X, y, goals, gamma=gamma)
        np.testing.assert_allclose(other.after, (other.before + goals) / 2)
        expected = predict_attacked(least_squares, X, goals, gamma=gamma)
        np.testing.assert_allclose(other.after, expected)

    def test_costs(self, data, goals):
        X, y = data
        cost = dict.fromkeys(X.columns, inf)
        model = LinearRegression().fit(X, y)
        display = ResponseDisplay.from_estimator(model, X, y, goals, gamma=GAMMA, feature_cost=cost)
        np.testing.assert_array_equal(display.after, display.before)

    def test_draws_both_clouds(self, model, data):
        display = ResponseDisplay.from_estimator(model, *data)
        ax = display.plot().ax_
        before, after = ax.collections
        assert len(before.get_offsets()) == len(after.get_offsets()) == 400
        whole = display.plot(max_rows=1000).ax_.collections[1].get_offsets()
        order = np.argsort(display.y, kind="stable")
        np.testing.assert_allclose(whole[:, 0], display.y[order])
        np.testing.assert_allclose(whole[:, 1], display.after[order])
        words = [text.get_text() for text in ax.get_legend().get_texts()]
        assert words == ["no error", "goal", "before", "after"]
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("label", "prediction")

    def test_draws_the_ways_of_a_few(self, model, data):
        display = ResponseDisplay.from_estimator(model, *data).plot(max_rows=50)
        ways = display.ax_.collections[0].get_segments()
        assert len(ways) == 50
        order = np.argsort(display.y, kind="stable")
        assert ways[0][:, 1] == pytest.approx([display.before[order[0]], display.after[order[0]]])
        assert ways[-1][0, 0] == display.y.max()

    def test_refusals(self, least_squares, data, goals):
        X, y = data
        with pytest.raises(ValueError, match=r"z is needed.*LinearRegression has no goal"):
            ResponseDisplay.from_estimator(least_squares, X, y, gamma=1.0)
        with pytest.raises(ValueError, match="y must have one entry per row of X"):
            ResponseDisplay.from_estimator(least_squares, X, y[1:], goals, gamma=1.0)
        with pytest.raises(NotFittedError):
            ResponseDisplay.from_estimator(LinearRegression(), X, y, goals, gamma=1.0)


@pytest.fixture(scope="module")
def search(data):
    grid = {"gamma": list(GAMMA * np.geomspace(0.03, 30.0, 7)), "honest_share": [0.2, 0.5, 0.8]}
    world = make_attacked_scorer(Population.mixed(GAMMA), goal=GOAL)
    return GridSearchCV(StackelbergRegressor(goal=GOAL), grid, scoring=world, cv=5).fit(*data)


@pytest.fixture(scope="module")
def chosen(data):
    return StackelbergRegressorCV(
        GAMMA * np.geomspace(0.1, 10.0, 7),
        honest_shares=[0.2, 0.8],
        ridges=[0.0, 1e-2],
        world=Population.mixed(GAMMA),
        goal=GOAL,
    ).fit(*data)


class TestCV:
    def test_data(self, search):
        display = CVDisplay.from_cv_results(search)
        found = search.cv_results_
        np.testing.assert_array_equal(display.scores, found["mean_test_score"])
        folds = np.array([found[f"split{k}_test_score"] for k in range(5)])
        np.testing.assert_allclose(display.stderr, sem(folds))
        for name, values in display.params.items():
            np.testing.assert_array_equal(values, found[f"param_{name}"].astype(float))
            assert values[display.best] == search.best_params_[name]
        assert list(display.params) == ["gamma", "honest_share"]

    def test_from_the_dictionary(self, search):
        display = CVDisplay.from_cv_results(search.cv_results_)
        assert display.best == search.best_index_
        np.testing.assert_array_equal(display.scores, search.cv_results_["mean_test_score"])

    def test_draws_a_line_for_each_share(self, search):
        display = CVDisplay.from_cv_results(search).plot()
        ax = display.ax_
        words = [text.get_text() for text in ax.get_legend().get_texts()]
        assert words == [*(f"honest share {share}" for share in (0.2, 0.5, 0.8)), "choice"]
        lines = [container[0] for container in ax.containers]
        assert len(lines) == 3
        rows = display.params["honest_share"] == 0.5
        np.testing.assert_array_equal(lines[1].get_xdata(), display.params["gamma"][rows])
        np.testing.assert_array_equal(lines[1].get_ydata(), display.scores[rows])
        bars = ax.containers[1][2][0].get_segments()
        ends = [bar[:, 1] for bar in bars]
        score, wide = display.scores[rows], display.stderr[rows]
        np.testing.assert_allclose(ends, np.column_stack([score - wide, score + wide]))
        ring = ax.collections[-1].get_offsets()
        best = display.best
        np.testing.assert_allclose(ring, [[display.params["gamma"][best], display.scores[best]]])
        assert ax.get_xscale() == "log"
        assert ax.get_xlabel() == "gamma (left: strong)"
        assert ax.get_ylabel() == "R2, mean over folds"

    def test_our_own_search(self, chosen):
        display = CVDisplay.from_cv_results(chosen)
        piped = CVDisplay.from_cv_results(make_pipeline(StandardScaler(), chosen))
        np.testing.assert_array_equal(piped.scores, display.scores)
        found = chosen.cv_results_
        assert list(display.params) == ["gamma", "honest_share", "ridge"]
        np.testing.assert_array_equal(display.scores, found["mean_test_score"])
        folds = np.array([found[f"split{k}_test_score"] for k in range(5)])
        np.testing.assert_allclose(display.stderr, sem(folds))
        assert display.best == chosen.best_index_
        ax = display.plot().ax_
        assert ax.get_ylabel() == "mean squared error, mean over folds"
        assert len(ax.containers) == 4
        drawn = np.concatenate([container[0].get_ydata() for container in ax.containers])
        np.testing.assert_allclose(np.sort(drawn), np.sort(-display.scores))
        # The dotted line is a standard error above the least error.
        top = int(np.argmax(display.scores))
        level = display.stderr[top] - display.scores[top]
        assert ax.get_lines()[-1].get_ydata() == pytest.approx([level, level])

    def test_our_own_dictionary(self, chosen):
        display = CVDisplay.from_cv_results(chosen.cv_results_)
        assert display.best == chosen.best_index_
        assert display.plot().ax_.get_ylabel() == "error, mean over folds"

    def test_the_choice_need_not_be_the_best(self, data):
        careful = StackelbergRegressorCV(
            GAMMA * np.geomspace(0.1, 10.0, 9),
            world=Population.mixed(GAMMA),
            goal=GOAL,
            one_standard_error=True,
            scoring="r2",
        ).fit(*data)
        display = CVDisplay.from_cv_results(careful)
        assert display.best == careful.best_index_ != np.argmax(display.scores)
        ax = display.plot().ax_
        assert ax.get_ylabel() == "R2, mean over folds"
        level = ax.get_lines()[-1].get_ydata()[0]
        assert level <= display.scores[display.best] < display.scores.max()

    def test_several_worlds(self, data):
        worlds = [GAMMA / 10, Population.mixed(GAMMA, honest=0.9)]
        several = StackelbergRegressorCV(
            GAMMA * np.geomspace(0.1, 10.0, 5), world=worlds, goal=GOAL
        ).fit(*data)
        display = CVDisplay.from_cv_results(several)
        found = several.cv_results_
        np.testing.assert_array_equal(-display.scores, found["worst_regret"])
        assert display.best == several.best_index_
        assert display.plot().ax_.get_ylabel() == "worst regret, mean over folds"
        means = np.array([found[f"mean_test_score_world{k}"] for k in range(2)])
        worst = (means.max(axis=1, keepdims=True) - means).argmax(axis=0)
        for at, world in enumerate(worst):
            folds = [found[f"split{k}_test_score_world{world}"][at] for k in range(5)]
            assert display.stderr[at] == pytest.approx(sem(folds))
        one = CVDisplay.from_cv_results(several, score="score_world1")
        np.testing.assert_array_equal(one.scores, means[1])
        assert one.metric == "neg_mean_squared_error"
        again = CVDisplay.from_cv_results(found)
        assert again.best == several.best_index_

    def test_ridges_from_zero(self, data):
        ridges = [0.0, 1e-4, 1e-2, 1.0]
        many = StackelbergRegressorCV([GAMMA], ridges=ridges, goal=GOAL).fit(*data)
        ax = CVDisplay.from_cv_results(many).plot().ax_
        assert ax.get_xlabel() == "ridge"
        assert ax.get_xscale() == "symlog"

    def test_other_axis(self, search):
        ax = CVDisplay.from_cv_results(search).plot(x="honest_share").ax_
        assert ax.get_xlabel() == "honest share"
        assert len(ax.containers) == 7

    def test_other_peoples_searches(self, data):
        pipeline = make_pipeline(StandardScaler(), Ridge())
        grid = {"ridge__alpha": [0.1, 1.0, 10.0], "ridge__solver": ["svd"]}
        scoring = {"honest": "r2", "attacked": make_attacked_scorer(GAMMA, goal=GOAL)}
        other = GridSearchCV(pipeline, grid, scoring=scoring, refit="attacked", cv=3).fit(*data)
        display = CVDisplay.from_cv_results(other, score="attacked")
        assert list(display.params) == ["alpha"]
        assert display.best == other.best_index_
        ax = display.plot(capsize=0.0).ax_
        assert ax.get_ylabel() == "attacked, mean over folds"
        assert len(ax.get_legend().get_texts()) == 1
        with pytest.raises(ValueError, match="score is needed, one of honest, attacked"):
            CVDisplay.from_cv_results(other)
        with pytest.raises(ValueError, match="score must be one of honest, attacked; got 'r2'"):
            CVDisplay.from_cv_results(other, score="r2")

    def test_without_folds_there_are_no_bars(self):
        results = {"param_gamma": [1.0, 2.0], "mean_test_score": [0.1, 0.2]}
        display = CVDisplay.from_cv_results(results)
        assert np.isnan(display.stderr).all()
        assert display.best == 1
        assert display.plot().ax_.get_xscale() == "linear"

    def test_refusals(self, search):
        with pytest.raises(TypeError, match=r"results must be a fitted search.*Call its fit first"):
            CVDisplay.from_cv_results(clone(search))
        with pytest.raises(TypeError, match=r"results must be a fitted search or .*; got 3\."):
            CVDisplay.from_cv_results(3)
        with pytest.raises(ValueError, match="it has no column mean_test_score"):
            CVDisplay.from_cv_results({"param_gamma": [1.0]})
        with pytest.raises(ValueError, match="none of its parameters is a number"):
            CVDisplay.from_cv_results({"param_solver": ["a"], "mean_test_score": [1.0]})
        with pytest.raises(ValueError, match="x must be one of gamma, honest_share; got 'ridge'"):
            CVDisplay.from_cv_results(search).plot(x="ridge")


@pytest.fixture(scope="module")
def several(model, data):
    """Models by name; the last is far off for honest people."""
    return {
        "least squares": LinearRegression().fit(*data),
        "ridge": Ridge(0.1).fit(*data),
        "ours": model,
        "the paper's game": StackelbergRegressor(GAMMA, honest_share=0, goal=GOAL).fit(*data),
    }


class TestRobustness:
    def test_data(self, several, data, goals):
        display = RobustnessDisplay.from_estimators(several, *data, goals, gamma=GAMMA)
        assert display.models == tuple(several)
        for at, one in enumerate(several.values()):
            assert display.honest[at] == pytest.approx(
                np.mean((one.predict(data[0]) - data[1]) ** 2)
            )
            wanted = moved_error(one.coef_, one.intercept_, data, goals, GAMMA)
            assert display.attacked[at] == pytest.approx(wanted)
            for share in (0.0, 0.3, 1.0):
                world = make_attacked_scorer(
                    Population.mixed(GAMMA, honest=1.0 - share),
                    goal=GOAL,
                    metric="neg_mean_squared_error",
                )
                assert display.error(share)[at] == pytest.approx(-world(one, *data))
        assert display.from_goal == pytest.approx(told_by_goals(data[1], goals))
        assert display.variance == pytest.approx(data[1].var())

    def test_defaults(self, several, data, goals):
        """Half of the gap against the first model, and the goals of whoever has one."""
        display = RobustnessDisplay.from_estimators(several, *data)
        wanted = gamma_from_pull(0.5, several["least squares"].coef_)
        assert display.gamma == pytest.approx(wanted)
        assert display.pull[0] == pytest.approx(0.5)
        same = RobustnessDisplay.from_estimators(several, *data, goals)
        np.testing.assert_allclose(display.attacked, same.attacked)

    def test_from_robustness(self, several, data, goals):
        found = robustness(several, *data, goals, [0.1 * GAMMA, GAMMA])
        near = RobustnessDisplay.from_robustness(found)
        assert near.gamma == GAMMA
        np.testing.assert_allclose(near.attacked, found.attacked[:, 1])
        np.testing.assert_allclose(near.pull, found.pull[:, 1])
        other = RobustnessDisplay.from_robustness(found, gamma=3.0 * GAMMA)
        wanted = RobustnessDisplay.from_estimators(several, *data, goals, gamma=3.0 * GAMMA)
        np.testing.assert_allclose(other.attacked, wanted.attacked)

    def test_costs_and_weights(self, several, data, goals):
        how = {"feature_cost": {"bmi": inf, "bp": 3.0}, "sample_weight": np.arange(442.0)}
        display = RobustnessDisplay.from_estimators(several, *data, goals, gamma=GAMMA, **how)
        found = robustness(several, *data, goals, GAMMA, metric="mse", **how)
        np.testing.assert_allclose(display.attacked, found.attacked[:, 0])
        np.testing.assert_allclose(display.honest, found.honest)

    @pytest.mark.parametrize("metric", ["mse", "r2"])
    def test_draws_a_line_for_each_model(self, several, data, metric):
        display = RobustnessDisplay.from_estimators(several, *data).plot(metric=metric)
        ax = display.ax_
        words = [text.get_text() for text in ax.get_legend().get_texts()]
        far = display.honest[3]
        told = plain(far) if metric == "mse" else f"−{plain(far / display.variance - 1)}"
        assert words == [
            "least squares",
            "ridge",
            "ours",
            f"the paper's game\n({told} where all are honest)",
            "y from z alone",
            "mean label",
        ]
        line = {one.get_label(): one for one in ax.get_lines()}["ridge"]
        ends = np.array([display.honest[1], display.attacked[1]])
        drawn = ends if metric == "mse" else 1.0 - ends / display.variance
        np.testing.assert_allclose(line.get_ydata(), drawn)
        assert ax.get_ylabel() == {"mse": "mean squared error", "r2": "R2"}[metric]

    def test_only_a_line_far_above_leaves_the_picture(self, several, data):
        display = RobustnessDisplay.from_estimators(several, *data).plot()
        _, top = display.ax_.get_ylim()
        assert display.honest[3] > top > display.attacked.max()
        words = [text.get_text() for text in display.ax_.get_legend().get_texts()]
        assert words[3] == "the paper's game\n(66000 where all are honest)"
        tame = {name: several[name] for name in ("least squares", "ours")}
        display = RobustnessDisplay.from_estimators(tame, *data).plot()
        low, top = display.ax_.get_ylim()
        everything = np.r_[display.honest, display.attacked, display.from_goal]
        assert low < everything.min() < everything.max() < top

    def test_labels_without_variance(self, several, data, goals):
        X, y = data
        display = RobustnessDisplay.from_estimators(several, X, np.full(len(y), 9.0), goals)
        assert display.plot().ax_.get_ylim()[0] < display.honest.min()
        with pytest.raises(ValueError, match="y must vary for metric 'r2'"):
            display.plot(metric="r2")

    def test_refusals(self, several, data, goals):
        with pytest.raises(TypeError, match=r"robustness must be what .*from_estimators takes mo"):
            RobustnessDisplay.from_robustness(several)
        with pytest.raises(ValueError, match=r"z is needed.*LinearRegression has no goal"):
            RobustnessDisplay.from_estimators(several["least squares"], *data)
        display = RobustnessDisplay.from_estimators(several, *data)
        with pytest.raises(ValueError, match="share must be a finite number of at least 0 and of"):
            display.error(2.0)


class TestCoefficients:
    def test_data(self, several, data):
        display = CoefficientDisplay.from_estimators(several, data[0])
        assert display.feature_names == list(data[0].columns)
        deviation = data[0].to_numpy().std(axis=0)
        for coef, one in zip(display.coef, several.values(), strict=True):
            np.testing.assert_allclose(coef, one.coef_ * deviation)
        raw = CoefficientDisplay.from_estimators(several)
        np.testing.assert_array_equal(raw.coef[1], several["ridge"].coef_)
        assert raw.feature_names == display.feature_names
        assert (raw.unit, display.unit) == ("unit", "standard deviation")

    def test_features_are_sorted_by_size(self, several, data):
        display = CoefficientDisplay.from_estimators(several, data[0])
        size = np.abs(display.coef).max(axis=0)[display.order]
        assert (np.diff(size) <= 0.0).all()
        ticks = [label.get_text() for label in display.plot(max_features=4).ax_.get_yticklabels()]
        assert ticks == [display.feature_names[at] for at in display.order[:4]]
        assert display.ax_.get_ylabel() == "the largest of 10 features"
        assert display.plot().ax_.get_ylabel() == ""

    def test_many_models_can_be_told_apart(self, data):
        ridges = [Ridge(alpha).fit(*data) for alpha in np.geomspace(1e-3, 10.0, 16)]
        lines = CoefficientDisplay.from_estimators(ridges).plot().ax_.get_lines()[1:]
        looks = {(line.get_color(), line.get_marker()) for line in lines}
        assert len(looks) == len(lines) == 16
        lines = (
            RobustnessDisplay.from_estimators(ridges, *data, GOAL(data[1])).plot().ax_.get_lines()
        )
        assert len({(line.get_color(), line.get_linestyle()) for line in lines[:16]}) == 16

    def test_other_kinds_of_models(self, data, goals, least_squares):
        X, y = data
        solution = solve(X, y, goals, GAMMA, fit_intercept=True)
        pair = (least_squares[-1].coef_, 0.0)
        search = GridSearchCV(Ridge(), {"alpha": [1.0]}).fit(X, y)
        display = CoefficientDisplay.from_estimators([least_squares, solution, pair, search])
        assert display.models == ("Pipeline", "Solution", "coefficients", "GridSearchCV")
        np.testing.assert_array_equal(display.coef[0], display.coef[2])
        np.testing.assert_array_equal(display.coef[1], solution.coef)
        assert display.feature_names == list(X.columns)
        # What the last step of a pipeline sees is scaled already.
        scaled = CoefficientDisplay.from_estimators(least_squares, X)
        np.testing.assert_allclose(scaled.coef[0], least_squares[-1].coef_)
        listed = CoefficientDisplay.from_estimators(pair, X.to_numpy().tolist())
        np.testing.assert_allclose(listed.coef[0], pair[0] * X.to_numpy().std(axis=0))
        sparse = CoefficientDisplay.from_estimators(pair, sp.csr_array(X.to_numpy()))
        assert sparse.feature_names[0] == "x0"

    def test_what_cannot_be_changed_is_marked(self, data, pyplot):
        X, y = data
        priced = {"age": inf, "sex": inf, "bmi": 4.0}
        ours = StackelbergRegressor(goal=GOAL, feature_cost=priced).fit(X, y)
        display = CoefficientDisplay.from_estimators([LinearRegression().fit(X, y), ours], X)
        np.testing.assert_array_equal(display.cost, ours.feature_cost_)
        ax = display.plot().ax_
        ticks = [label.get_text() for label in ax.get_yticklabels()]
        assert "bmi (cost 4)" in ticks
        shaded = sorted(patch.get_y() + 0.5 for patch in ax.patches)
        assert [ticks[int(at)] for at in shaded] == sorted(["age", "sex"], key=ticks.index)
        words = [text.get_text() for text in ax.get_legend().get_texts()]
        assert words == ["LinearRegression", "StackelbergRegressor", "cannot be changed"]
        assert repr(display) == (
            "CoefficientDisplay(2 models, 10 features, 2 of them cannot be changed)"
        )
        given = CoefficientDisplay.from_estimators(ours, feature_cost={"bp": inf})
        assert given.cost[3] == inf
        assert given.cost[0] == 1.0
        pyplot.close("all")
        free = CoefficientDisplay.from_estimators(LinearRegression().fit(X, y))
        assert free.cost is None
        assert not free.plot().ax_.patches

    def test_models_of_very_different_size(self, data):
        tiny, huge = (np.ones(3), 0.0), (np.full(3, 1e5), 0.0)
        display = CoefficientDisplay.from_estimators([tiny, huge]).plot()
        assert display.ax_.get_xscale() == "asinh"
        assert CoefficientDisplay.from_estimators(tiny).plot().ax_.get_xscale() == "linear"

    def test_refusals(self, several, data):
        X, _ = data
        with pytest.raises(ValueError, match=r"models must have the same features; models\['b'\]"):
            CoefficientDisplay.from_estimators({"a": (np.ones(3), 0.0), "b": (np.ones(2), 0.0)})
        with pytest.raises(ValueError, match=r"X must have 10 columns, as models\['ridge'\] was"):
            CoefficientDisplay.from_estimators({"ridge": several["ridge"]}, X.to_numpy()[:, :3])
        with pytest.raises(TypeError, match="model must be a fitted linear model"):
            CoefficientDisplay.from_estimators(RandomForestRegressor().fit(X[:20], range(20)))
        with pytest.raises(ValueError, match="feature_names must have one entry per column"):
            CoefficientDisplay.from_estimators(several, feature_names=["a"])
        with pytest.raises(ValueError, match="max_features must be a positive whole number"):
            CoefficientDisplay.from_estimators(several).plot(max_features=0)


@pytest.fixture
def every(model, data, goals, path, chosen, several):
    """One display of each kind."""
    return {
        "path": PathDisplay.from_path(path, *data, goals, gamma=GAMMA),
        "tradeoff": TradeoffDisplay.from_estimator(model, *data),
        "heatmap": GammaHeatmapDisplay.from_estimator(model, *data),
        "movement": MovementDisplay.from_estimator(model, data[0], goals),
        "response": ResponseDisplay.from_estimator(model, *data),
        "cv": CVDisplay.from_cv_results(chosen),
        "robustness": RobustnessDisplay.from_estimators(several, *data),
        "coefficients": CoefficientDisplay.from_estimators(several, data[0]),
    }


KINDS = [
    "path",
    "tradeoff",
    "heatmap",
    "movement",
    "response",
    "cv",
    "robustness",
    "coefficients",
]


@pytest.mark.parametrize("kind", KINDS)
class TestEveryPicture:
    def test_without_matplotlib(self, every, kind, monkeypatch):
        monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
        with pytest.raises(ImportError, match=r"plot needs matplotlib.*'spgls\[plot\]'"):
            every[kind].plot()

    def test_plot_gives_the_display_back(self, every, kind):
        display = every[kind]
        assert not hasattr(display, "figure_")
        assert display.plot() is display
        assert all(ax.figure is display.figure_ for ax in display.axes_)
        assert display.ax_ is display.axes_[0]
        assert repr(display).startswith(type(display).__name__)
        assert "array" not in repr(display)

    def test_wrong_axes(self, every, kind, pyplot):
        with pytest.raises(TypeError, match=r"ax must be .*matplotlib axes or None; got 3"):
            every[kind].plot(3)
        _, axes = pyplot.subplots(1, 3)
        with pytest.raises(ValueError, match=r"ax must be .*matplotlib axes for this .*got 3"):
            every[kind].plot(axes)

    def test_picture_has_something_in_it(self, every, kind):
        figure = every[kind].plot().figure_
        figure.canvas.draw()
        pixels = np.asarray(figure.canvas.buffer_rgba())[..., :3]
        assert 0.01 < (pixels < 250).any(axis=-1).mean() < 0.9
        assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 20

    def test_words_stay_in_the_figure_and_off_each_other(self, every, kind):
        display = every[kind].plot()
        figure = display.figure_
        figure.canvas.draw()
        width, height = figure.canvas.get_width_height()
        boxes = words_outside(display)
        for text, box in boxes:
            assert -1 <= box.x0 < box.x1 <= width + 1, text
            assert -1 <= box.y0 < box.y1 <= height + 1, text
            for ax in figure.axes:
                assert not overlap(box, ax.get_window_extent()), text
        for at, (text, box) in enumerate(boxes):
            for other, another in boxes[:at]:
                assert not overlap(box, another), (text, other)


def words_outside(display):
    """Labels of axes and ticks, and legends that stand beside the axes, with their boxes."""
    found = []
    for ax in display.figure_.axes:
        texts = [ax.xaxis.label, ax.yaxis.label]
        for axis, limits in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim())):
            for tick in axis.get_major_ticks():
                inside = min(limits) <= tick.get_loc() <= max(limits)
                texts += [label for label in (tick.label1, tick.label2) if inside]
        found += [
            (text.get_text(), text.get_window_extent())
            for text in texts
            if text.get_visible() and text.get_text()
        ]
        legend = ax.get_legend()
        if legend and legend.get_window_extent().x0 > ax.get_window_extent().x1:
            found.append(("legend", legend.get_window_extent()))
    return found


def overlap(one, other):
    """Whether two boxes share more than a pixel."""
    wide = min(one.x1, other.x1) - max(one.x0, other.x0)
    high = min(one.y1, other.y1) - max(one.y0, other.y0)
    return wide > 1 and high > 1


class TestNumbers:
    @pytest.mark.parametrize(
        ("value", "text"),
        [
            (0.0, "0"),
            (0.5, "0.5"),
            (20000.0, "20000"),
            (1e5, "$10^{5}$"),
            (-1e5, "$-10^{5}$"),
            (1.9e6, r"$1.9\times 10^{6}$"),
            (0.001, "0.001"),
            (2e-4, r"$2\times 10^{-4}$"),
            (99_999.9, "$10^{5}$"),
        ],
    )
    def test_as_people_write_them(self, value, text):
        assert plain(value) == text

    def test_one_axis_has_one_way(self):
        assert labels([1.0, 10.0]) == ["1", "10"]
        assert labels([0.0, 100.0, 1e6]) == ["0", "$10^{2}$", "$10^{6}$"]
