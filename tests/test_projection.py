"""Numerics of the projection: column means a million times the deviations cost few digits."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from spgls import solve
from spgls.reduction.data import GameData
from spgls.solvers import Spectral

ROUNDING = 2.2e-16
ALLOWED = {1e4: 3.0, 1e6: 5.0}


def _rational(values):
    return [Fraction(float(v)) for v in values]


def _exact_gram(X, q, weight, immutable=()):
    """``A'PA q`` in rational arithmetic, projected off the ones and the immutable columns."""
    w = _rational(weight)

    def dot(a, b):
        return sum(i * j * k for i, j, k in zip(a, b, w, strict=True))

    columns = [_rational(c) for c in X.T]
    free = [[Fraction(1)] * len(w), *(columns[j] for j in immutable)]
    for k, column in enumerate(free):
        for other in free[:k]:
            part = dot(other, column) / dot(other, other)
            column = [c - part * o for c, o in zip(column, other, strict=True)]
        free[k] = column
    kept = [c for j, c in enumerate(columns) if j not in immutable]
    for k, column in enumerate(kept):
        for other in free:
            part = dot(other, column) / dot(other, other)
            column = [c - part * o for c, o in zip(column, other, strict=True)]
        kept[k] = column
    t = [
        sum(qj * c for qj, c in zip(_rational(q), row, strict=True))
        for row in zip(*kept, strict=True)
    ]
    return np.array([float(dot(column, t)) for column in kept])


def _digits_lost(got, wanted):
    error = np.linalg.norm(got - wanted) / np.linalg.norm(wanted)
    return np.log10(max(error, ROUNDING) / ROUNDING)


def _data(kind, m, n, ratio, seed):
    """Deviations of about one around means of about ``ratio``; sparse columns in between."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, n)) + ratio * rng.uniform(0.7, 1.4, size=n) * rng.choice([-1, 1], n)
    if kind.startswith("sparse"):
        holes = X[:, ::2].shape
        X[:, ::2] = rng.normal(size=holes) * (rng.random(holes) < 0.2)
    return X


CONTAINERS = {
    "dense": np.asarray,
    "dense F": np.asfortranarray,
    "sparse rows": sp.csr_array,
    "sparse columns": sp.csc_array,
}


@pytest.mark.parametrize("ratio", [1e4, 1e6])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(20, 4), (300, 6)])
@pytest.mark.parametrize("kind", CONTAINERS)
def test_gram_products_keep_their_digits(kind, shape, weighted, ratio):
    for seed in range(3):
        X = _data(kind, *shape, ratio, seed)
        rng = np.random.default_rng(seed)
        weight = rng.uniform(0.1, 2.0, shape[0]) if weighted else None
        data = GameData.from_user(
            CONTAINERS[kind](X),
            np.zeros(shape[0]),
            np.ones(shape[0]),
            fit_intercept=True,
            sample_weight=weight,
        )
        q = rng.normal(size=shape[1])
        wanted = _exact_gram(X, q, np.ones(shape[0]) if weight is None else weight)
        assert _digits_lost(data.projected.gram(q), wanted) <= ALLOWED[ratio]
        two_reads = data.projected.cross(data.projected.apply(q))
        assert _digits_lost(two_reads, wanted) <= ALLOWED[ratio]


@pytest.mark.parametrize("ratio", [1e4, 1e6])
@pytest.mark.parametrize("kind", CONTAINERS)
def test_gram_products_with_costs_and_immutable_columns(kind, ratio):
    m, n = 60, 6
    X = _data(kind, m, n, ratio, 1)
    rng = np.random.default_rng(2)
    weight = rng.uniform(0.1, 2.0, m)
    cost = np.where(np.arange(n) == 1, np.inf, 4.0 ** rng.integers(-2, 3, n))
    data = GameData.from_user(
        CONTAINERS[kind](X),
        np.zeros(m),
        np.ones(m),
        fit_intercept=True,
        feature_cost=cost,
        sample_weight=weight,
    )
    q = rng.normal(size=n - 1)
    price = np.sqrt(cost[np.isfinite(cost)])
    # Prices are powers of two, so that scaling by them is exact.
    wanted = price * _exact_gram(X, price * q, weight, immutable=(1,))
    assert _digits_lost(data.projected.gram(q), wanted) <= ALLOWED[ratio]


def test_a_column_of_ones_beside_an_intercept_vanishes():
    X = np.column_stack([np.random.default_rng(0).normal(size=50), np.full(50, 1e6)])
    data = GameData.from_user(X, np.zeros(50), np.ones(50), fit_intercept=True)
    v = np.array([0.0, 1.0])
    assert np.linalg.norm(data.projected.apply(v)) <= 1e-14 * 1e6
    assert np.linalg.norm(data.projected.gram(v)) <= 1e-14 * 1e6


def _size(y, weight):
    """``|Py|^2``, the unit of relative gaps."""
    mean = np.average(y, weights=weight)
    return float(np.average((y - mean) ** 2, weights=weight)) * (
        len(y) if weight is None else weight.sum()
    )


def _centred(X, weight):
    """Columns less their means, which no float64 can hold: rounded once from rationals."""
    w = _rational(np.ones(len(X)) if weight is None else weight)
    out = np.empty_like(X)
    for j, column in enumerate(X.T):
        values = _rational(column)
        mean = sum(a * b for a, b in zip(w, values, strict=True)) / sum(w)
        out[:, j] = [float(v - mean) for v in values]
    return out


@pytest.mark.parametrize("ratio", [1e4, 1e6])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(200, 5), (12, 30)])
@pytest.mark.parametrize("kind", CONTAINERS)
@pytest.mark.parametrize("gamma", [0.1, 10.0])
def test_solutions_agree_with_data_centred_beforehand(kind, shape, weighted, ratio, gamma):
    m, n = shape
    X = _data(kind, m, n, ratio, 3)
    rng = np.random.default_rng(4)
    weight = rng.uniform(0.1, 2.0, m) if weighted else None
    centred = _centred(X, weight)
    y = centred @ rng.normal(size=n) / np.sqrt(n) + rng.normal(size=m)
    z = np.maximum(y, 0.5) + 0.3 * rng.random(m)
    options = {"fit_intercept": True, "sample_weight": weight}
    raw = solve(CONTAINERS[kind](X), y, z, gamma, **options)
    wanted = solve(centred, y, z, gamma, **options)
    assert raw.status is wanted.status
    assert raw.status.ok
    size = _size(y, weight)
    # Predictions made from the raw rows carry the rounding of x'w, of size |w| times the mean.
    reach = ROUNDING * ratio * np.abs(raw.coef).sum()
    assert abs(raw.objective - wanted.objective) <= 1e-9 * size
    np.testing.assert_allclose(
        raw.coef, wanted.coef, rtol=0, atol=1e-7 * np.linalg.norm(wanted.coef)
    )
    spread = np.linalg.norm(centred @ wanted.coef) / np.sqrt(m) + np.ptp(y)
    np.testing.assert_allclose(
        X @ raw.coef + raw.intercept,
        centred @ wanted.coef + wanted.intercept,
        rtol=0,
        atol=1e-7 * spread + 8 * reach,
    )


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_engines_agree_on_wide_data(kind, fit_intercept):
    """A factor of the rows has as many digits as the data, their square half of them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 400)) * np.geomspace(1.0, 1e-3, 30)[:, None]
    y = rng.normal(size=30)
    by_gram, by_qr = (
        solve(kind(X), y, y + 1.0, 0.5, fit_intercept=fit_intercept, solver=Spectral(engine=engine))
        for engine in ("gram", "qr")
    )
    # What rounding may have done is counted for every predictor.
    assert by_qr.certificate.relative_gap <= 1e-11
    assert by_qr.objective == pytest.approx(by_gram.objective, abs=1e-9 * (y @ y))
