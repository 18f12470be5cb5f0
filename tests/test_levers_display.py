"""The picture of levers: its data, and what is drawn of it."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from spgls import Floor, Population, StackelbergRegressor, levers
from spgls.display import LeversDisplay

matplotlib = pytest.importorskip("matplotlib")


@pytest.fixture(autouse=True)
def pyplot():
    with matplotlib.rc_context({"backend": "Agg"}):
        import matplotlib.pyplot as plt

        yield plt
        plt.close("all")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    return X, X @ [0.2, 3.0, 1.0, 0.0] + rng.normal(size=200)


@pytest.fixture(scope="module")
def found(data):
    return levers(*data, Floor(2.0), Population.mixed(1.0), fit_intercept=True)


def marks(display, label):
    """Numbers and names of the points that a label stands for."""
    (line,) = [one for one in display.ax_.lines if one.get_label() == label]
    names = [text.get_text() for text in display.ax_.get_yticklabels()]
    return dict(
        zip((names[round(y)] for y in line.get_ydata()), line.get_xdata().tolist(), strict=True)
    )


def test_marks_are_the_errors(found):
    display = LeversDisplay.from_levers(found).plot()
    for k, label in enumerate(("verified", "dropped", "cost doubled")):
        errors = dict(zip(found.names, found.errors[:, k].tolist(), strict=True))
        drawn = marks(display, label)
        assert drawn.items() <= errors.items()
        beyond = [text.get_text() for text in display.ax_.texts]
        assert len(errors) - len(drawn) == (len(beyond) if label == "dropped" else 0)
    now = display.ax_.lines[0]
    assert now.get_xdata()[0] == found.now.error
    left, right = display.ax_.get_xlim()
    assert left < found.errors.min()
    assert right > found.now.error


@pytest.mark.parametrize("metric", ["mse", "r2"])
def test_what_is_far_worse_stands_at_the_edge_with_its_number(data, metric):
    """Weak people leave little to gain, and dropping what the labels hang on costs much."""
    weak = levers(*data, Floor(2.0), Population.mixed(100.0), fit_intercept=True)
    display = LeversDisplay.from_levers(weak).plot(metric=metric)
    error = weak.errors[weak.names.index("x1"), 1]
    drawn = error if metric == "mse" else 1.0 - error / weak.variance
    left, right = display.ax_.get_xlim()
    assert not left <= drawn <= right
    assert any(f"{drawn:.3g}" in text.get_text() for text in display.ax_.texts)


def test_in_r2(found):
    display = LeversDisplay.from_levers(found).plot(metric="r2")
    drawn = marks(display, "verified")
    for name, error in zip(found.names, found.errors[:, 0], strict=True):
        assert drawn[name] == pytest.approx(1.0 - error / found.variance)


def test_fewer_features_and_own_axes(found, pyplot):
    _, ax = pyplot.subplots()
    display = LeversDisplay.from_levers(found).plot(ax, max_features=2)
    assert display.ax_ is ax
    assert [t.get_text() for t in ax.get_yticklabels()] == list(found.names[:2])


def test_figures_without_proof_are_hollow(data):
    loose = levers(*data, Floor(2.0), Population.mixed(1.0), fit_intercept=True, tol=1e-30)
    display = LeversDisplay.from_levers(loose).plot()
    assert not display.certified.any()
    labels = [line.get_label() for line in display.ax_.lines]
    assert "verified (not certified)" in labels
    assert "verified" not in labels


def test_nothing_that_helps_can_be_drawn(data):
    X, y = data
    worse = levers(X, y, y + 1.0, Population.mixed(1.0), fit_intercept=True, kinds="drop")
    assert (worse.gains <= 0.0).all()
    display = LeversDisplay.from_levers(worse).plot()
    assert np.isfinite(display.ax_.get_xlim()).all()
    alone = levers(X, y, y + 1.0, 1.0, groups=[0], feature_cost=[np.inf, 1, 1, 1], kinds="verify")
    assert alone.gains == 0.0
    LeversDisplay.from_levers(alone).plot()


def test_from_estimators_and_pipelines(data):
    X, y = data
    model = StackelbergRegressor(1.0, goal=Floor(2.0))
    pipeline = make_pipeline(StandardScaler(), model).fit(X, y)
    display = LeversDisplay.from_estimator(pipeline, X, y, groups=[0, [1, 2]], kinds="verify")
    same = pipeline[-1].levers(pipeline[:-1].transform(X), y, groups=[0, [1, 2]], kinds="verify")
    assert display.names == same.names
    assert np.array_equal(display.errors, same.errors)
    assert repr(display) == "LeversDisplay(2 features, verify)"


def test_bad_input(data, found):
    with pytest.raises(TypeError, match=r"StackelbergRegressor .* got a LinearRegression"):
        LeversDisplay.from_estimator(LinearRegression().fit(*data), *data)
    with pytest.raises(TypeError, match=r"what spgls\.levers returns"):
        LeversDisplay.from_levers(data)
    with pytest.raises(ValueError, match="metric"):
        LeversDisplay.from_levers(found).plot(metric="mae")
