"""partial_fit: what many calls fit is what one fit to all rows fits."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.exceptions import NotFittedError

from spgls import (
    Floor,
    GameStatistics,
    Population,
    Shift,
    StackelbergRegressor,
    StackelbergRegressorCV,
    Status,
    stream,
)
from spgls.matrix import RowBlocks

rng = np.random.default_rng(1)
M, N = 2000, 6
X = 1e4 + rng.normal(size=(M, N))
y = X @ rng.normal(size=N) + rng.normal(size=M)
LEVEL = float(np.median(y))
FLOOR = StackelbergRegressor(goal=Floor(LEVEL))


def in_blocks(model, X, y, count, **named):
    for some in np.array_split(np.arange(len(y)), count):
        model.partial_fit(X[some], y[some], **{name: t[some] for name, t in named.items()})
    return model


@pytest.mark.parametrize(
    "model",
    [
        FLOOR,
        StackelbergRegressor(gamma=2.0, honest_share=0.0, goal=Floor(LEVEL)),
        StackelbergRegressor(Population((np.inf, 1.0, 5.0), (0.3, 0.3, 0.4)), goal=Floor(LEVEL)),
        StackelbergRegressor(goal=Floor(LEVEL), feature_cost=[1, np.inf, 2, 1, 1, 3], ridge=1.0),
    ],
    ids=["auto", "paper", "population", "costs"],
)
def test_a_hundred_blocks_equal_one_fit(model):
    """Means of ten thousand standard deviations."""
    mine, its = in_blocks(clone(model), X, y, 100), clone(model).fit(X, y)
    np.testing.assert_allclose(mine.coef_, its.coef_, rtol=1e-9, atol=1e-9 * abs(its.coef_).max())
    assert mine.objective_ == pytest.approx(its.objective_, rel=1e-12)
    assert mine.intercept_ == pytest.approx(its.intercept_, rel=1e-9)
    np.testing.assert_allclose(mine.gamma_, its.gamma_, rtol=1e-9)
    assert mine.status_ is its.status_ is Status.OPTIMAL
    assert mine.certificate_.kind == "proved"
    assert mine.gamma_rule_ == its.gamma_rule_
    assert repr(mine.statistics_) == "GameStatistics(2000 rows, 6 columns, moments)"
    np.testing.assert_allclose(mine.predict(X), its.predict(X), rtol=1e-9)


def test_weights_and_goals_of_rows():
    z, weight = np.maximum(y, LEVEL), rng.random(M)
    mine = in_blocks(StackelbergRegressor(), X, y, 10, z=z, sample_weight=weight)
    its = StackelbergRegressor().fit(X, y, z=z, sample_weight=weight)
    np.testing.assert_allclose(mine.coef_, its.coef_, rtol=1e-9)


def test_decay_forgets():
    model = clone(FLOOR).set_params(decay=0.5)
    mine = in_blocks(model, X, y, 4)
    weight = np.repeat(0.5 ** np.arange(3, -1, -1), M // 4)
    its = clone(FLOOR).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(mine.coef_, its.coef_, rtol=1e-9)
    assert mine.statistics_.weight == pytest.approx(weight.sum())
    for wrong in (0.0, 1.5):
        for method in ("fit", "partial_fit"):
            with pytest.raises(ValueError, match="decay must be a finite number above 0"):
                getattr(clone(FLOOR).set_params(decay=wrong), method)(X, y)


def test_fewer_rows_than_columns_at_first():
    table, labels = load_diabetes(return_X_y=True)
    model = StackelbergRegressor(goal=Floor(250))
    model.partial_fit(table[:3], labels[:3])
    assert model.status_.ok
    in_blocks(model, table[3:], labels[3:], 50)
    its = StackelbergRegressor(goal=Floor(250)).fit(table, labels)
    np.testing.assert_allclose(model.coef_, its.coef_, rtol=1e-9)


def test_complete_dummies_stay_out_of_the_null_space():
    kinds = np.eye(3)[rng.integers(0, 3, 300)]
    table = np.column_stack([kinds, rng.normal(size=(300, 2))])
    labels = table @ [1.0, 2.0, 3.0, 1.0, -1.0] + rng.normal(size=300)
    model = StackelbergRegressor(goal=Floor(2.0))
    mine, its = in_blocks(clone(model), table, labels, 9), clone(model).fit(table, labels)
    np.testing.assert_allclose(mine.coef_, its.coef_, atol=1e-7)
    assert mine.certificate_.among == its.certificate_.among
    assert mine.status_.ok


class TestFirstCallDecides:
    def test_names(self):
        frame = pd.DataFrame(X, columns=list("abcdef"))
        cost = {"b": np.inf, "c": 2.0}
        model = clone(FLOOR).set_params(feature_cost=cost).partial_fit(frame[:500], y[:500])
        assert list(model.feature_names_in_) == list("abcdef")
        with pytest.raises(ValueError, match="feature names"):
            model.partial_fit(frame[list("bacdef")], y)
        model.partial_fit(frame[500:], y[500:])
        its = clone(FLOOR).set_params(feature_cost=cost).fit(frame, y)
        np.testing.assert_allclose(model.coef_, its.coef_, rtol=1e-8, atol=1e-9)

    def test_number_of_columns(self):
        model = clone(FLOOR).partial_fit(X[:100], y[:100])
        before = dict(vars(model))
        with pytest.raises(ValueError, match="features"):
            model.partial_fit(X[100:, :5], y[100:])
        assert vars(model) == before

    def test_type(self):
        near = (X - 1e4).astype(np.float32)
        model = clone(FLOOR).partial_fit(near[:500], y[:500]).partial_fit(X[500:] - 1e4, y[500:])
        assert model.coef_.dtype == np.float32
        assert model.statistics_.sums.kept.dtype == np.float64

    def test_blocks_and_streams(self, tmp_path):
        np.save(tmp_path / "rows.npy", X)
        blocks = RowBlocks(np.array_split(X, 7))
        its = clone(FLOOR).fit(X, y)
        for rows in (blocks, stream(tmp_path / "rows.npy")):
            model = clone(FLOOR).partial_fit(X[:10], y[:10])
            with pytest.raises(ValueError, match="features"):
                model.partial_fit(RowBlocks([X[:, :3]]), y)
            model = clone(FLOOR).partial_fit(rows, y)
            np.testing.assert_allclose(model.coef_, its.coef_, rtol=1e-9)

    def test_sparse(self):
        holes = sp.csr_array(np.where(rng.random((M, N)) < 0.5, 0.0, X - 1e4))
        model = in_blocks(clone(FLOOR), holes, y, 5)
        its = clone(FLOOR).fit(holes, y)
        np.testing.assert_allclose(model.coef_, its.coef_, rtol=1e-7)


class TestAllOrNothing:
    @pytest.mark.parametrize("value", [np.nan, np.inf])
    def test_holes(self, value):
        model = in_blocks(clone(FLOOR), X[:1000], y[:1000], 57)
        before, holed = dict(vars(model)), X[1000:].copy()
        holed[12, 3] = value
        for rows in (holed, sp.csr_array(holed)):
            with pytest.raises(ValueError, match=r"NaN|infinity|inf"):
                model.partial_fit(rows, y[1000:])
            assert vars(model) == before
        labels = y[1000:].copy()
        labels[3] = value
        with pytest.raises(ValueError, match=r"NaN|infinity|inf"):
            model.partial_fit(X[1000:], labels)
        assert vars(model) == before

    def test_goals(self):
        with pytest.raises(ValueError, match="z or a goal is needed"):
            StackelbergRegressor().partial_fit(X, y)
        model = clone(FLOOR)
        with pytest.raises(ValueError, match="drop one of them"):
            model.partial_fit(X, y, z=y)
        with pytest.raises(NotFittedError):
            model.predict(X)


class TestBesideFit:
    def test_fit_starts_over_and_keeps_no_sums(self):
        model = clone(FLOOR).partial_fit(X[:900], y[:900]).fit(X, y)
        assert not hasattr(model, "statistics_")
        with pytest.warns(UserWarning, match="begins anew") as heard:
            model.partial_fit(X, y)
        assert heard[0].filename == __file__
        np.testing.assert_allclose(model.coef_, clone(FLOOR).fit(X, y).coef_, rtol=1e-9)

    def test_solvers(self):
        with pytest.raises(ValueError, match="partial_fit solves from sums"):
            clone(FLOOR).set_params(solver="krylov").partial_fit(X, y)
        assert clone(FLOOR).set_params(solver="spectral").partial_fit(X, y).solver_ == "moments"

    def test_no_folds_of_sums(self):
        model = StackelbergRegressorCV(goal=Floor(LEVEL))
        assert not hasattr(model, "partial_fit")
        with pytest.raises(AttributeError, match="cannot be split into folds"):
            _ = model.partial_fit

    def test_statistics_made_elsewhere_solve_the_same(self):
        model = in_blocks(clone(FLOOR), X, y, 3)
        sums = GameStatistics.from_data(X, y, Floor(LEVEL))
        population = Population.mixed(model.gamma_, honest=0.5)
        other = sums.solve(population, fit_intercept=True, null_space="avoid")
        np.testing.assert_allclose(model.coef_, other.coef, rtol=1e-9)


class TestWarnings:
    def test_goals_that_are_labels(self):
        with pytest.warns(UserWarning, match="equal the labels y in all rows so far") as heard:
            StackelbergRegressor(goal=Floor(y.min() - 1.0)).partial_fit(X, y)
        assert heard[0].filename == __file__

    def test_goals_on_another_scale(self):
        model = StackelbergRegressor(goal=Floor(y.max() + 1e4))
        with pytest.warns(UserWarning, match="another scale") as heard:
            model.partial_fit(X, y)
        assert heard[0].filename == __file__

    def test_status(self):
        model = StackelbergRegressor(goal=Shift(1.0), honest_share=0.0)
        with pytest.warns(UserWarning, match="unattained") as heard:
            model.partial_fit(X, y)
        assert heard[0].filename == __file__

    def test_none_where_all_is_well(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            in_blocks(clone(FLOOR), X, y, 20)
