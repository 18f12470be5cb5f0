"""What manipulation would do to models that somebody already has."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_diabetes
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, Ridge, RidgeCV
from sklearn.metrics import mean_squared_error, r2_score
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from spgls import (
    Floor,
    Population,
    Shift,
    StackelbergRegressor,
    best_response,
    gamma_from_pull,
    make_attacked_scorer,
    predict_attacked,
    solve,
)
from spgls.study.robustness import Robustness, robustness

from .builders import COEF, COST, NAMES, applicants

rng = np.random.default_rng(0)
X = applicants(80, rng)
y = 4.0 + X @ COEF + rng.normal(size=80)
z = np.maximum(y, 2.0)
weight = rng.integers(0, 4, size=80).astype(float)
frame = pd.DataFrame(X, columns=NAMES)
gammas, shares = [0.1, 1.0, 10.0], [0.0, 0.3, 1.0]
models = {"least squares": LinearRegression().fit(X, y), "ridge": Ridge(50.0).fit(X, y)}
UNCHANGED = StandardScaler(with_mean=False, with_std=False)
nan, inf = np.nan, np.inf


def assess(**change):
    given = {"models": models, "X": X, "y": y, "z": z, "gammas": gammas, "shares": shares}
    return robustness(**(given | change))


class TestErrors:
    def test_they_are_those_of_predicting_moved_rows(self):
        found = assess(feature_cost=COST)
        assert isinstance(found, Robustness)
        assert found.errors.shape == (2, 3, 3)
        for i, model in enumerate(models.values()):
            assert found.honest[i] == pytest.approx(mean_squared_error(y, model.predict(X)))
            for j, gamma in enumerate(gammas):
                moved = best_response(
                    X, z, model.coef_, gamma=gamma, intercept=model.intercept_, feature_cost=COST
                )
                wanted = mean_squared_error(y, model.predict(moved))
                assert found.attacked[i, j] == pytest.approx(wanted, rel=1e-10)
                closed = (model.predict(moved) - model.predict(X)) / (z - model.predict(X))
                np.testing.assert_allclose(closed, found.pull[i, j], rtol=1e-8)

    def test_shares_mix_honest_and_attacked_errors(self):
        found = assess()
        np.testing.assert_allclose(found.errors[:, :, 0], np.tile(found.honest, (3, 1)).T)
        np.testing.assert_allclose(found.errors[:, :, 2], found.attacked)
        mixed = 0.7 * found.honest[:, np.newaxis] + 0.3 * found.attacked
        np.testing.assert_allclose(found.errors[:, :, 1], mixed)

    @pytest.mark.parametrize("weights", [None, weight], ids=["equal", "weighted"])
    @pytest.mark.parametrize(
        ("metric", "scorer"),
        [("r2", "r2"), ("mse", "neg_mean_squared_error"), ("rmse", "neg_root_mean_squared_error")],
    )
    def test_scores_are_those_of_the_attacked_scorer(self, metric, scorer, weights):
        found = assess(metric=metric, sample_weight=weights, feature_cost=COST)
        for j, gamma in enumerate(gammas):
            for s, share in enumerate(shares):
                world = Population.mixed(gamma, honest=1.0 - share)
                score = make_attacked_scorer(world, metric=scorer, feature_cost=COST)
                for i, model in enumerate(models.values()):
                    wanted = score(model, X, y, z=z, sample_weight=weights)
                    assert found.scores[i, j, s] == pytest.approx(
                        wanted if metric == "r2" else -wanted, rel=1e-10
                    )

    def test_weights_are_repetitions(self):
        again = np.repeat(np.arange(80), weight.astype(int))
        repeated = assess(X=X[again], y=y[again], z=z[again], reference=True)
        weighted = assess(sample_weight=weight, reference=True)
        for field in ("honest", "attacked", "from_goal", "variance", "best"):
            wanted = getattr(repeated, field)
            np.testing.assert_allclose(getattr(weighted, field), wanted, rtol=1e-7)

    def test_y_from_z_alone(self):
        goals = z[:, np.newaxis]
        wanted = mean_squared_error(y, LinearRegression().fit(goals, y).predict(goals))
        assert assess().from_goal == pytest.approx(wanted)
        assert assess(z=np.full(80, 3.0)).from_goal == pytest.approx(np.var(y))
        assert assess(z=2.0 * y + 1.0).from_goal == pytest.approx(0.0, abs=1e-12)
        linear = LinearRegression().fit(goals, y, weight).predict(goals)
        wanted = mean_squared_error(y, linear, sample_weight=weight)
        assert assess(sample_weight=weight).from_goal == pytest.approx(wanted)

    def test_honest_and_all_powerful_providers(self):
        found = assess(gammas=[inf, 1e-12])
        np.testing.assert_array_equal(found.attacked[:, 0], found.honest)
        np.testing.assert_allclose(found.attacked[:, 1], mean_squared_error(y, z))
        np.testing.assert_allclose(found.pull, [[0.0, 1.0]] * 2)


class TestStrengths:
    def test_by_default_pulls_against_the_first_model(self):
        found = assess(gammas=None, feature_cost=COST)
        np.testing.assert_allclose(found.pull[0], [0.1, 0.25, 0.5, 0.75, 0.9])
        first = models["least squares"].coef_
        wanted = [gamma_from_pull(pull, first, COST) for pull in found.pull[0]]
        np.testing.assert_allclose(found.gammas, wanted)
        # The world is the same for all, so a model with smaller coefficients is pulled less.
        assert (found.pull[1] < found.pull[0]).all()

    def test_the_default_does_not_depend_on_units(self):
        plain, scaled = (
            robustness(LinearRegression().fit(table, y), table, y, z).scores
            for table in (X, 100.0 * X)
        )
        np.testing.assert_allclose(plain, scaled, rtol=1e-8)

    def test_one_number(self):
        one = assess(gammas=1.0, shares=0.3)
        np.testing.assert_array_equal(one.errors[:, 0, 0], assess().errors[:, 1, 1])


class TestModels:
    wanted = robustness(models["ridge"], X, y, z, gammas, shares).errors[0]

    @pytest.mark.parametrize(
        ("given", "called"),
        [
            (models["ridge"], ("Ridge",)),
            ({"mine": models["ridge"]}, ("mine",)),
            (
                [models["ridge"], models["ridge"], Ridge().fit(X, y)],
                ("Ridge", "Ridge 2", "Ridge 3"),
            ),
            ((models["ridge"].coef_, models["ridge"].intercept_), ("coefficients",)),
            ((models["ridge"].coef_, np.array([models["ridge"].intercept_])), ("coefficients",)),
            ((models["ridge"], models["least squares"]), ("Ridge", "LinearRegression")),
            (
                [models["ridge"], (models["ridge"].coef_, models["ridge"].intercept_)],
                ("Ridge", "coefficients"),
            ),
            (make_pipeline(UNCHANGED, Ridge(50.0)).fit(X, y), ("Pipeline",)),
            (GridSearchCV(Ridge(), {"alpha": [50.0]}).fit(X, y), ("GridSearchCV",)),
        ],
        ids=str,
    )
    def test_one_or_several(self, given, called):
        found = assess(models=given)
        assert found.models == called
        np.testing.assert_allclose(found.errors[0], self.wanted, rtol=1e-10)

    def test_solutions_of_games(self):
        solution = solve(X, y, z, 1.0, fit_intercept=True)
        found = assess(models=solution)
        # What the game minimises is the error where everyone has the strength it was solved for.
        assert found.attacked[0, 1] * 80 == pytest.approx(solution.objective)

    def test_pipelines_move_what_their_last_step_sees(self):
        model = make_pipeline(StandardScaler(), Ridge()).fit(X, y)
        found = assess(models=model, feature_cost=COST)
        for gamma, error in zip(gammas, found.attacked[0], strict=True):
            attacked = predict_attacked(model, X, z, gamma=gamma, feature_cost=COST)
            assert error == pytest.approx(mean_squared_error(y, attacked))

    @pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
    def test_frames_and_costs_by_name(self, kind):
        table = kind(dict(zip(NAMES, X.T, strict=True)))
        prices = {"age": inf, "debt": 0.5, "years": 2.0}
        ridge = Ridge(50.0).fit(table, y)
        pair = (models["ridge"].coef_, models["ridge"].intercept_)
        found = assess(models=[ridge, pair], X=table, feature_cost=prices, reference=True)
        wanted = assess(models=models["ridge"], feature_cost=COST, reference=True)
        for errors in found.errors:
            np.testing.assert_allclose(errors, wanted.errors[0], rtol=1e-10)
        np.testing.assert_allclose(found.best, wanted.best, rtol=1e-8)

    def test_sparse_rows(self):
        pair = (models["ridge"].coef_, models["ridge"].intercept_)
        found = assess(models=[models["ridge"], pair], X=sp.csr_array(X), reference=True)
        for errors in found.errors:
            np.testing.assert_allclose(errors, self.wanted, rtol=1e-10)


class TestReference:
    def test_it_is_the_optimum_of_each_game(self):
        found = assess(reference=True, feature_cost=COST)
        for gamma, line in zip(gammas, found.best, strict=True):
            for share, error in zip(shares, line, strict=True):
                world = Population.mixed(gamma, honest=1.0 - share)
                solution = solve(X, y, z, world, fit_intercept=True, feature_cost=COST)
                assert error * 80 == pytest.approx(solution.objective, rel=1e-7)

    def test_no_model_is_better(self):
        found = assess(reference=True)
        assert (found.errors >= found.best * (1.0 - 1e-9)).all()
        # Where everyone is honest it is least squares.
        np.testing.assert_allclose(found.best[:, 0], found.honest[0], rtol=1e-8)

    def test_it_plays_with_the_features_the_first_model_sees(self):
        model = make_pipeline(StandardScaler(), Ridge()).fit(X, y)
        search = GridSearchCV(model, {"ridge__alpha": [1.0]}).fit(X, y)
        table = StandardScaler().fit_transform(X)
        wanted = assess(models=Ridge().fit(table, y), X=table, reference=True).best
        for given in (model, search):
            found = assess(models=given, reference=True).best
            np.testing.assert_allclose(found, wanted, rtol=1e-8)

    def test_not_unless_asked_for(self):
        assert assess().best is None
        assert "best" not in assess().to_dict()


class TestDiabetes:
    """The facts of the design: ten-fold, providers who close half the gap to least squares."""

    X, y = load_diabetes(return_X_y=True)
    gamma = gamma_from_pull(0.5, LinearRegression().fit(X, y).coef_)

    def cross_validate(self, goal, fits):
        scores = []
        for train, test in KFold(10, shuffle=True, random_state=0).split(self.X):
            fitted = [model.fit(self.X[train], self.y[train]) for model in fits]
            goals = goal(self.y[test])
            found = robustness(fitted, self.X[test], self.y[test], goals, self.gamma, [0.0, 1.0])
            scores.append(found.scores[:, 0])
        return np.mean(scores, axis=0)

    def test_a_high_floor_hurts(self):
        goal = Floor(250)
        found = self.cross_validate(
            goal,
            [
                LinearRegression(),
                RidgeCV(alphas=np.geomspace(1e-3, 10.0, 30)),
                StackelbergRegressor(goal=goal),
                StackelbergRegressor(self.gamma, honest_share=0, goal=goal),
            ],
        )
        wanted = [[0.48, 0.0], [0.48, 0.21], [0.46, 0.44], [-10.5, 0.54]]
        np.testing.assert_allclose(found, wanted, atol=0.02, rtol=0.01)

    def test_a_shift_helps(self):
        model = LinearRegression().fit(self.X, self.y)
        found = robustness(model, self.X, self.y, Shift(20.0)(self.y))
        assert (np.diff(found.scores, axis=2) > 0.0).all()
        assert "manipulation does not hurt it" in found.answer
        assert found.from_goal == pytest.approx(0.0, abs=1e-9)

    def test_the_answer(self):
        model = LinearRegression().fit(self.X, self.y)
        found = robustness({"mine": model}, self.X, self.y, Floor(250)(self.y), [self.gamma])
        attacked = predict_attacked(model, self.X, Floor(250)(self.y), gamma=self.gamma)
        honest, worst = model.score(self.X, self.y), r2_score(self.y, attacked)
        limits = found.thresholds()
        assert found.answer.splitlines()[0] == (
            f"mine: R2 {honest:.3g} on honest rows. It loses 10% of its R2 once all providers "
            f"close {100 * limits.pull[0]:.2g}% of their gaps (gamma {limits.gamma[0]:.3g}), or "
            f"once {100 * limits.share[0, 0]:.2g}% of them react with gamma {self.gamma:.3g}. At "
            f"worst, where all react with gamma {self.gamma:.3g} and close 50% of their gaps, R2 "
            f"is {worst:.3g}: manipulation hurts it."
        )
        assert found.answer.splitlines()[1].startswith("y from z alone: R2 0.")
        weak = robustness(model, self.X, self.y, Floor(250)(self.y), 12.0 * self.gamma)
        assert 0.0 < weak.attacked[0, 0] - weak.honest[0] < 0.01 * weak.variance
        assert "manipulation hardly hurts it" in weak.answer
        assert "stronger than any given" in weak.answer


class TestThresholds:
    @pytest.mark.parametrize("metric", ["r2", "mse", "rmse"])
    @pytest.mark.parametrize("loss", [0.02, 0.1])
    @pytest.mark.parametrize("weights", [None, weight], ids=["equal", "weighted"])
    def test_the_loss_is_reached_exactly_there(self, metric, loss, weights):
        """At the pull, and at the share, the score is the honest one less the loss."""
        how = {"metric": metric, "sample_weight": weights, "feature_cost": COST, "z": y + 3.0}
        found = assess(**how)
        limits = found.thresholds(loss)
        honest = found.scores[:, 0, 0]
        wanted = honest * (1.0 - loss if metric == "r2" else 1.0 + loss)
        for i, name in enumerate(models):
            there = assess(models=models[name], gammas=limits.gamma[i], shares=1.0, **how)
            assert there.scores.item() == pytest.approx(wanted[i], rel=1e-9)
            assert there.pull.item() == pytest.approx(limits.pull[i])
            for gamma, share in zip(gammas, limits.share[i], strict=True):
                if np.isfinite(share):
                    there = assess(models=models[name], gammas=gamma, shares=share, **how)
                    assert there.scores.item() == pytest.approx(wanted[i], rel=1e-9)
                else:
                    assert gamma > limits.gamma[i]
        assert np.isfinite(limits.share).any()

    def test_below_it_less_is_lost(self):
        found = assess(z=y + 3.0, metric="mse")
        limits = found.thresholds()
        for i in range(2):
            pulls = np.linspace(0.0, limits.pull[i], 50, endpoint=False)[1:]
            weaker = [found.attacked_by(found.reach[i] * (1 - p) / p)[i] for p in pulls]
            assert max(weaker) < 1.1 * found.honest[i] == pytest.approx(limits.level[i])

    @pytest.mark.parametrize("bias", [-2.0, 0.0, 2.0])
    def test_whether_the_first_step_helps_or_hurts(self, bias):
        """Goals above the labels mend a model that is too low before they hurt it."""
        biased = (models["ridge"].coef_, models["ridge"].intercept_ + bias)
        found = assess(models=biased, z=y + 5.0, metric="mse")
        assert (found.attacked_by(1e3 * found.reach[0])[0] > found.honest[0]) == (bias > 0.0)
        limits = found.thresholds()
        there = assess(models=biased, z=y + 5.0, metric="mse", gammas=limits.gamma, shares=1.0)
        assert there.scores.item() == pytest.approx(1.1 * found.honest[0])

    def test_attacked_by_any_strength(self):
        found = assess()
        for j, gamma in enumerate(gammas):
            np.testing.assert_allclose(found.attacked_by(gamma), found.attacked[:, j])
        with pytest.raises(ValueError, match="gamma must be a finite number above 0; got 0"):
            found.attacked_by(0)

    def test_where_goals_are_harmless_there_is_none(self):
        found = assess(z=y)
        limits = found.thresholds()
        assert np.isnan(limits.pull).all()
        assert np.isnan(limits.share).all()
        assert limits.sentence(0) == (
            "It would never lose 10% of its R2, however strong providers are."
        )
        worse = assess(z=y, metric="mse").thresholds(0.5)
        assert worse.sentence(1).startswith("It would never err 50% more")

    def test_whoever_cannot_be_moved(self):
        found = assess(feature_cost=[inf] * 4, z=y + 3.0)
        assert np.isnan(found.thresholds().pull).all()

    def test_a_model_without_accuracy_has_none_to_lose(self):
        found = assess(models=(np.zeros(4) + 1e-3, 100.0))
        assert found.thresholds().sentence(0) == "It has no R2 to lose."
        assert "It has no R2 to lose." in repr(found)

    def test_a_perfect_model_loses_at_once(self):
        exact = X @ COEF
        found = assess(models=(COEF, 0.0), y=exact, z=exact + 1.0, metric="mse")
        limits = found.thresholds()
        assert limits.pull == pytest.approx([0.0], abs=1e-12)
        np.testing.assert_allclose(limits.share, 0.0, atol=1e-12)

    def test_the_table(self):
        limits = assess(z=y + 3.0).thresholds()
        data = limits.to_dataframe()
        assert list(data) == ["model", "pull_from", "gamma_from", "gamma", "share_from"]
        chosen = data.query("model == 'ridge' and gamma == 0.1")
        assert chosen["share_from"].item() == limits.share[1, 0]
        assert chosen["pull_from"].item() == limits.pull[1]

    @pytest.mark.parametrize("loss", [0.0, -1.0, nan])
    def test_bad_loss(self, loss):
        with pytest.raises(ValueError, match="loss must be a finite number above 0; got"):
            assess().thresholds(loss)


class TestTable:
    def test_columns(self):
        found = assess(reference=True)
        table = found.to_dict()
        assert list(table) == ["model", "gamma", "pull", "share", "r2", "from_goal", "best"]
        assert {len(column) for column in table.values()} == {18}
        data = found.to_dataframe()
        chosen = data.query("model == 'ridge' and gamma == 1 and share == 0.3")
        assert chosen["r2"].item() == found.scores[1, 1, 1]
        assert chosen["best"].item() == pytest.approx(1.0 - found.best[1, 1] / np.var(y))
        assert chosen["pull"].item() == found.pull[1, 1]
        assert "rmse" in assess(metric="rmse").to_dict()

    def test_without_pandas(self, monkeypatch):
        found = assess()
        monkeypatch.setitem(sys.modules, "pandas", None)
        with pytest.raises(ImportError, match=r"^to_dataframe needs pandas: pip install pandas"):
            found.to_dataframe()

    def test_printed(self):
        found = assess(reference=True, metric="mse")
        lines = repr(found).splitlines()
        assert max(map(len, lines)) <= 100
        assert " ".join(line.strip() for line in lines[:2]) == (
            'mean squared error by share of strategic providers; "hurts from" is the share at '
            "which a model errs 10% more"
        )
        table, words = lines[2:12], lines[12:]
        head = ["model", "gamma", "pull", "0", "0.3", "1", "hurts", "from"]
        assert table[0].split() == head
        assert table[1].split()[:3] == ["least", "squares", "0.1"]
        assert table[7].split()[:6] == ["best", "on", "these", "rows", "0.1", "-"]
        assert len({len(line) for line in table}) == 1
        assert " ".join(line.strip() for line in words) == found.answer.replace("\n", " ")
        assert [line.split(":")[0] for line in words if not line.startswith(" ")] == [
            "least squares",
            "ridge",
            "y from z alone",
        ]


holed = X.copy()
holed[2, 1] = nan


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"models": {}}, ValueError, "models must hold at least one model; got none"),
        ({"models": []}, ValueError, "models must hold at least one model; got none"),
        ({"models": None}, TypeError, "model must be a fitted linear model.*got None"),
        ({"models": Ridge}, TypeError, "model must be .*the class"),
        ({"models": Ridge()}, NotFittedError, "This Ridge instance is not fitted"),
        ({"models": np.ones(4)}, TypeError, "model must be a fitted linear model"),
        ({"models": ([1.0] * 4, [0.0])}, TypeError, "model must be a fitted .*; got a list"),
        ({"models": KNeighborsRegressor().fit(X, y)}, TypeError, "model must be .*no coef_"),
        ({"models": (np.ones(3), 0.0)}, ValueError, "coef must have one entry per column of X, 4"),
        ({"models": (np.ones(4), nan)}, ValueError, "intercept must be finite"),
        ({"models": (np.ones(4), np.ones(2))}, ValueError, "intercept must have one entry per mod"),
        ({"X": X[:, :3]}, ValueError, "X must have 4 columns, as model was fitted; got 3"),
        ({"X": holed}, ValueError, "X must be finite; row 2, column 1"),
        ({"y": y[:-1]}, ValueError, "y must have one entry per row of X, 80; got 79"),
        ({"y": np.full(80, 0.1)}, ValueError, "y must vary for metric 'r2'.*Pass metric='mse'"),
        ({"sample_weight": np.eye(80)[3]}, ValueError, "y must vary .* where sample_weight is pos"),
        ({"z": None}, TypeError, "z must be an array of numbers; got None"),
        ({"z": z * nan}, ValueError, "z must be finite"),
        ({"gammas": []}, ValueError, "gammas must have .*; got none"),
        ({"gammas": [1.0, 0.0]}, ValueError, "gammas must be positive, inf .*; entry 1 is 0"),
        ({"gammas": [nan]}, ValueError, "gammas must be a number; entry 0 is nan"),
        ({"gammas": "auto"}, TypeError, "gammas must be an array of numbers; got 'auto'"),
        ({"shares": None}, TypeError, "shares must be an array of numbers; got None"),
        ({"shares": [0.5, 1.5]}, ValueError, "shares must be from 0, .*to 1,.*; entry 1 is 1.5"),
        ({"shares": [-0.5]}, ValueError, "shares must be from 0, .*to 1,.*; entry 0 is -0.5"),
        ({"feature_cost": [1.0]}, ValueError, "feature_cost must have one entry per column"),
        ({"feature_cost": {"age": 2.0}}, ValueError, "feature_cost gives costs by column name"),
        (
            {"gammas": None, "feature_cost": [inf] * 4},
            ValueError,
            "gammas is needed: the first model uses no changeable feature",
        ),
        ({"sample_weight": -weight}, ValueError, "sample_weight must not be negative"),
        ({"metric": "mae"}, ValueError, "metric must be one of r2, mse, rmse; got 'mae'"),
        ({"metric": 2}, TypeError, "metric must be one of r2, mse, rmse; got 2"),
        ({"reference": "yes"}, TypeError, "reference must be True or False; got 'yes'"),
    ],
)
def test_bad_input(change, error, said):
    with pytest.raises(error, match=f"^{said}"):
        assess(**change)


def test_the_model_at_fault_is_named():
    with pytest.raises(NotFittedError) as caught:
        assess(models={"good": models["ridge"], "bad": Ridge()})
    assert caught.value.__notes__ == ["It is models['bad']."]
