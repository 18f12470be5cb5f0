"""Warnings of optima that rest on people, or on directions, that cannot be relied on."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from spgls import Floor, Population, StackelbergRegressor


def rows(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, 4))
    return rng, X, X @ rng.normal(size=4) + rng.normal(size=200)


def test_providers_who_reach_their_goals():
    rng, X, y = rows()
    z = y + 0.1 * rng.normal(size=200)
    for gamma in (1.0, Population([1.0, 2.0], [0.5, 0.5])):
        honest = {} if isinstance(gamma, Population) else {"honest_share": 0.0}
        with pytest.warns(UserWarning, match="close 100% of the gap"):
            StackelbergRegressor(gamma, **honest).fit(X, y, z=z)


def test_honest_people_are_not_counted_among_the_strong():
    _, X, y = rows()
    model = StackelbergRegressor(1.0, goal=Floor(2.0)).fit(X, y)
    assert float(model.alpha_) < 19.0


@pytest.mark.parametrize("apart", [3e-4, 1e-4])
@pytest.mark.parametrize("far", [0.0, 100.0])
def test_norm_in_directions_that_the_data_hardly_shows(apart, far):
    rng, X, y = rows()
    noise = rng.normal(size=200)
    X = np.column_stack([X, X[:, 0] + apart * noise]) + far
    y = y + noise
    with pytest.warns(UserWarning, match="hardly varies"):
        StackelbergRegressor(goal=Floor(2.0)).fit(X, y)


def test_correlated_columns_alone_are_no_cause():
    rng, X, y = rows()
    X = np.column_stack([X, X[:, 0] + 0.01 * rng.normal(size=200)]) + 1e4
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        StackelbergRegressor(goal=Floor(2.0)).fit(X, y)


def test_immutable_columns_do_not_count():
    rng, X, y = rows()
    noise = rng.normal(size=200)
    X = np.column_stack([X, X[:, 0] + 5e-4 * noise])
    price = np.array([np.inf, 1.0, 1.0, 1.0, np.inf])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        StackelbergRegressor(goal=Floor(2.0), feature_cost=price, tol=1e-6).fit(X, y + noise)
