"""A fitted game on one page: numbers against independent computation, words, refusals."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.metrics import mean_squared_error, r2_score

from spgls import (
    Floor,
    Population,
    StackelbergRegressor,
    StackelbergRegressorCV,
    Summary,
    predict_attacked,
)
from spgls.estimators.cv import chosen_model

from .builders import COEF, NAMES, applicants

rng = np.random.default_rng(0)
m = 120
X = applicants(m, rng)
y = 4.0 + X @ COEF + rng.normal(size=m)
goal = Floor(5.0)
z = goal(y)
weight = rng.integers(0, 4, size=m).astype(float)
frame = pd.DataFrame(X, columns=NAMES)
COST = {"age": np.inf, "debt": 0.5}
inf = np.inf


@pytest.fixture(scope="module")
def model():
    return StackelbergRegressor(goal=goal, feature_cost=COST).fit(frame, y)


class TestNumbers:
    def test_what_the_model_knows(self, model):
        found = model.summary()
        assert isinstance(found, Summary)
        assert found.feature_names == tuple(NAMES)
        np.testing.assert_array_equal(found.coef, model.coef_)
        np.testing.assert_array_equal(found.feature_cost, model.feature_cost_)
        assert found.intercept == model.intercept_
        assert found.certificate is model.certificate_
        assert found.status is model.status_
        assert found.gamma == pytest.approx([model.gamma_])
        assert found.pull == pytest.approx([model.alpha_ / (1 + model.alpha_)])
        assert np.isnan([found.honest, *found.attacked, found.from_goal, found.variance]).all()
        assert found.intervals is None

    @pytest.mark.parametrize("weights", [None, weight], ids=["equal", "weighted"])
    def test_errors_are_those_of_moved_rows(self, model, weights):
        found = model.summary(frame, y, sample_weight=weights)
        how = {"sample_weight": weights}
        moved = model.predict_attacked(frame, z)
        assert found.honest == pytest.approx(mean_squared_error(y, model.predict(frame), **how))
        assert found.attacked == pytest.approx([mean_squared_error(y, moved, **how)])
        goals = z[:, np.newaxis]
        told = LinearRegression().fit(goals, y, weights).predict(goals)
        assert found.from_goal == pytest.approx(mean_squared_error(y, told, **how))
        columns = found.errors()
        assert columns["rows"] == ["honest", "attacked", "y from z alone"]
        assert columns["r2"][1] == pytest.approx(r2_score(y, moved, **how))
        assert pd.DataFrame(columns).shape == (3, 5)

    def test_goals_may_be_given(self, model):
        plain = StackelbergRegressor(model.gamma_, feature_cost=COST).fit(frame, y, z=z)
        found, wanted = plain.summary(frame, y, z), model.summary(frame, y)
        np.testing.assert_allclose(found.attacked, wanted.attacked, rtol=1e-6)
        without = plain.summary(frame, y)
        assert without.honest == pytest.approx(found.honest)
        assert np.isnan(without.attacked).all()
        assert np.isnan(without.from_goal)
        assert "attacked" not in repr(without)

    def test_several_strengths(self):
        people = Population([inf, 0.1, 10.0], [0.5, 0.25, 0.25])
        several = StackelbergRegressor(people, goal=goal).fit(X, y)
        found = several.summary(X, y)
        np.testing.assert_array_equal(found.gamma, [0.1, 10.0])
        for gamma, error in zip(found.gamma, found.attacked, strict=True):
            moved = predict_attacked(several, X, z, gamma=gamma)
            assert error == pytest.approx(mean_squared_error(y, moved))
        assert found.errors()["rows"].count("attacked") == 2

    def test_nobody_to_attack(self):
        fixed = StackelbergRegressor(goal=goal, feature_cost=[inf] * X.shape[1]).fit(X, y)
        found = fixed.summary(X, y, bootstrap=2)
        assert found.pull.shape == (0,)
        assert found.intervals.attacked.shape == (0, 2)
        assert "gamma" not in repr(found)

    def test_kinds_of_rows(self, model):
        wanted = model.summary(frame, y).honest
        bare = StackelbergRegressor(goal=goal, feature_cost=model.feature_cost_)
        for table in (sp.csr_array(X), X.astype(np.float32)):
            found = bare.fit(table, y).summary(table, y, bootstrap=2)
            assert found.honest == pytest.approx(wanted, rel=1e-4)
            assert found.feature_names[0] == "x0"


class TestBootstrap:
    @pytest.mark.parametrize("weights", [None, weight], ids=["equal", "weighted"])
    def test_it_is_fitting_to_rows_drawn_with_replacement(self, model, weights):
        found = model.summary(frame, y, sample_weight=weights, bootstrap=20, random_state=3)
        random = np.random.default_rng(3)
        coefs, honest, pulls = [], [], []
        for _ in range(20):
            times = random.multinomial(m, np.full(m, 1.0 / m))
            rows = np.repeat(np.arange(m), times)
            own = None if weights is None else weights[rows]
            again = StackelbergRegressor(goal=goal, feature_cost=COST)
            again.fit(frame.iloc[rows], y[rows], sample_weight=own)
            coefs.append(again.coef_)
            pulls.append([again.alpha_ / (1 + again.alpha_)])
            said = model.predict(frame.iloc[rows])
            honest.append(mean_squared_error(y[rows], said, sample_weight=own))
        ends = (0.025, 0.975)
        np.testing.assert_allclose(
            found.intervals.coef, np.quantile(coefs, ends, axis=0).T, rtol=1e-6, atol=1e-8
        )
        np.testing.assert_allclose(found.intervals.honest, np.quantile(honest, ends), rtol=1e-10)
        np.testing.assert_allclose(
            found.intervals.pull, np.quantile(pulls, ends, axis=0).T, rtol=1e-6
        )
        assert found.intervals.refits == 20
        assert found.intervals.uncertified == 0

    def test_where_all_are_honest_it_is_that_of_least_squares(self):
        """Against the standard errors of the textbook."""
        rows, random = 400, np.random.default_rng(1)
        table = random.normal(size=(rows, 3))
        labels = table @ [1.0, -2.0, 0.0] + random.normal(size=rows)
        fitted = StackelbergRegressor(1.0, honest_share=1.0, goal=goal).fit(table, labels)
        found = fitted.summary(table, labels, bootstrap=400, random_state=0)
        design = np.column_stack([np.ones(rows), table])
        residual = labels - fitted.predict(table)
        spread = np.linalg.inv(design.T @ design) * (residual @ residual) / (rows - 4)
        wide = 2 * 1.96 * np.sqrt(np.diag(spread))
        np.testing.assert_allclose(np.ptp(found.intervals.coef, axis=1), wide[1:], rtol=0.2)
        np.testing.assert_allclose(np.ptp(found.intervals.intercept), wide[0], rtol=0.2)

    def test_seeds(self, model):
        one, same, other = (
            model.summary(frame, y, bootstrap=5, random_state=seed).intervals.coef
            for seed in (0, np.random.default_rng(0), 1)
        )
        np.testing.assert_array_equal(one, same)
        assert not np.array_equal(one, other)
        model.summary(frame, y, bootstrap=2)

    def test_the_model_stays_as_it_was(self, model):
        before = dict(vars(model))
        model.summary(frame, y, bootstrap=3)
        assert vars(model).keys() == before.keys()
        assert all(vars(model)[name] is value for name, value in before.items())

    def test_a_choice_is_not_made_again(self):
        world = Population.mixed(1.0)
        search = StackelbergRegressorCV([0.1, 1.0], ridges=[0.0, 1.0], world=world, goal=goal)
        search.fit(frame, y)
        found = search.summary(frame, y, bootstrap=5, random_state=0)
        chosen = StackelbergRegressor(goal=goal, **search.best_params_).fit(frame, y)
        wanted = chosen.summary(frame, y, bootstrap=5, random_state=0)
        np.testing.assert_allclose(found.intervals.coef, wanted.intervals.coef, rtol=1e-7)
        assert found.model == "StackelbergRegressorCV"

    def test_a_choice_where_nobody_can_move(self):
        search = StackelbergRegressorCV(goal=goal, feature_cost=[inf] * X.shape[1]).fit(X, y)
        assert search.best_params_["gamma"] == inf
        chosen = chosen_model(search).fit(X, y)
        np.testing.assert_allclose(chosen.coef_, search.coef_, rtol=1e-7)

    def test_unfinished_refits_are_counted(self):
        hasty = StackelbergRegressor(1.0, goal=goal, solver="krylov", max_iter=1, random_state=0)
        with pytest.warns(UserWarning, match="iteration"):
            hasty.fit(X, y)
        found = hasty.summary(X, y, bootstrap=3, random_state=0)
        assert found.intervals.uncertified == 3
        assert "3 of their fits are not certified optima." in repr(found)


class TestWords:
    def test_lines(self, model):
        found = model.summary(frame, y, bootstrap=10, random_state=0)
        lines = repr(found).splitlines()
        proof = model.certificate_
        assert lines[0] == (
            f"StackelbergRegressor: optimal, {proof.kind} to be within {proof.relative_gap:.2g}, "
            f"in R2, of the best among {proof.among}."
        )
        assert lines[1].startswith(f"Strategic providers of gamma {model.gamma_:.4g} close 0.")
        assert lines[2] == "95% intervals are from 10 bootstrap samples."
        assert lines[4].split() == f"errors on {m} rows mean squared error 95% interval R2".split()
        table = {line.split("  ")[0]: line for line in lines[9:]}
        assert table["age"].endswith("fixed")
        assert f"{model.coef_[NAMES.index('age')]:.4g}" in table["age"]
        assert " to " in table["intercept"]

    def test_costs_are_told_where_they_differ(self):
        assert "cost" not in repr(StackelbergRegressor(goal=goal).fit(X, y).summary())

    def test_html(self):
        named = frame.rename(columns={NAMES[0]: "<b>&"})
        found = StackelbergRegressor(goal=goal).fit(named, y).summary(named, y)
        text = found._repr_html_()
        assert "<td>&lt;b&gt;&amp;</td>" in text
        assert "<b>" not in text
        assert text.count("<table>") == text.count("</table>") == 2
        assert found.__class__(**(vars(found) | {"rows": 0}))._repr_html_().count("<table>") == 1

    def test_many_features(self):
        wide = rng.normal(size=(60, 30))
        found = StackelbergRegressor(goal=goal).fit(wide, y[:60]).summary()
        lines = repr(found).splitlines()
        assert lines[-1] == "And 10 features with smaller coefficients."
        assert len(lines) == 3 + 1 + 20 + 1 + 1
        largest = int(np.abs(found.coef).argmax())
        assert lines[4].startswith(f"x{largest} ")
        assert len(found.to_dict()["feature"]) == 30

    def test_pandas(self, model, monkeypatch):
        found = model.summary(frame, y, bootstrap=4, random_state=0)
        table = found.to_dataframe()
        assert list(table) == ["feature", "coef", "cost", "low", "high"]
        assert table.set_index("feature").loc["age", "cost"] == inf
        assert (table["low"] <= table["high"]).all()
        assert list(model.summary().to_dict()) == ["feature", "coef", "cost"]
        monkeypatch.setitem(sys.modules, "pandas", None)
        with pytest.raises(ImportError, match=r"^to_dataframe needs pandas: pip install pandas"):
            found.to_dataframe()


@pytest.mark.parametrize(
    ("told", "error", "said"),
    [
        ({"X": frame}, ValueError, "y is needed with X: errors need rows and labels"),
        ({"y": y}, ValueError, "X is needed with y: errors need rows and labels"),
        ({"z": z}, ValueError, "z was given without rows; pass X and y too"),
        ({"bootstrap": 5}, ValueError, "bootstrap was given without rows; pass X and y too"),
        ({"sample_weight": weight}, ValueError, "sample_weight was given without rows"),
        ({"X": frame, "y": y, "z": z}, ValueError, "z was given and so was the model's goal"),
        ({"X": frame, "y": y[1:]}, ValueError, "y must have one entry per row of X, 120; got 119"),
        ({"X": frame, "y": y, "bootstrap": 0}, ValueError, "bootstrap must be a positive whole"),
        ({"X": frame, "y": y, "bootstrap": True}, TypeError, "bootstrap must be a positive whole"),
        (
            {"X": frame, "y": y, "bootstrap": 2, "random_state": "a"},
            TypeError,
            "random_state must be",
        ),
    ],
)
def test_refusals(model, told, error, said):
    with pytest.raises(error, match=f"^{said}"):
        model.summary(**told)


def test_what_needs_a_fit_or_goals():
    with pytest.raises(NotFittedError):
        StackelbergRegressor(goal=goal).summary()
    without = StackelbergRegressor().fit(X, y, z=z)
    with pytest.raises(ValueError, match="z is needed for bootstrap, which fits the model again"):
        without.summary(X, y, bootstrap=2)
