"""Dask arrays as data: the same answers as in memory, whatever runs the chunks.

Workers in processes of their own, and their loss, are in ``test_dask_workers.py``.
"""

from __future__ import annotations

import pickle
import tracemalloc
from dataclasses import replace
from functools import reduce
from itertools import pairwise
from operator import add

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import KFold

import spgls
from spgls.matrix import DaskMatrix, SparseMatrix, as_matrix
from spgls.matrix.row_step import RowStep
from spgls.solvers import auto

from .catalogue import CATALOGUE, problem

da = pytest.importorskip("dask.array", reason="dask is not installed")
dask = pytest.importorskip("dask")

M, N = 60, 5


def _chunked(X, sizes):
    """Rows as a Dask array whose chunks have these lengths."""
    if not sp.issparse(X):
        return da.from_array(X, chunks=(sizes, -1))
    X = X.tocsr()
    ends = np.cumsum([0, *sizes])
    parts = [dask.delayed(X[a:b]) for a, b in pairwise(ends)]
    blocks = [
        da.from_delayed(part, (size, X.shape[1]), dtype=X.dtype)
        for part, size in zip(parts, sizes, strict=True)
    ]
    return da.concatenate(blocks)


def thirds(m):
    return tuple(len(part) for part in np.array_split(np.arange(m), min(3, m)))


def uneven(m):
    ends = sorted({0, 1, m // 3, m // 2, m})
    return tuple(b - a for a, b in pairwise(ends))


def _data(seed=0, m=M, n=N):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, n)) + 3.0
    y = X @ rng.normal(size=n) + rng.normal(size=m)
    return X, y, np.maximum(y, np.median(y))


def _kind(X, kind):
    if kind == "float32":
        return X.astype(np.float32)
    return sp.csr_array(np.where(X > 3.0, X, 0.0)) if kind == "csr" else X


KINDS = ("dense", "float32", "csr")


# Verbs


@pytest.mark.parametrize("kind", KINDS)
def test_every_verb_is_that_of_data_in_memory(kind):
    rng = np.random.default_rng(1)
    X = _kind(_data()[0], kind)
    ours, theirs = as_matrix(_chunked(X, uneven(M))), as_matrix(X)
    assert isinstance(ours, DaskMatrix)
    assert ours.shape == theirs.shape
    assert ours.dtype == theirs.dtype
    shift, weight = rng.normal(size=N), rng.random(M)
    basis = np.linalg.qr(rng.normal(size=(M, 2)))[0]
    for width in ((), (1,), (2,), (3,)):
        v, u = rng.normal(size=(N, *width)), rng.normal(size=(M, *width))
        for by in (None, shift):
            steps = [RowStep.projection(basis, np.ones((2, *width))).weighted(weight) for _ in "ab"]
            for a, b in (
                (ours.apply(v, by), theirs.apply(v, by)),
                (ours.cross(u, by), theirs.cross(u, by)),
                (ours.gram(v, by), theirs.gram(v, by)),
                (ours.gram(v, by, steps[0]), theirs.gram(v, by, steps[1])),
                (steps[0].left, steps[1].left),
                (
                    ours.gram(v, by, lambda rows, t: 2.0 * t),
                    theirs.gram(v, by, lambda rows, t: 2.0 * t),
                ),
            ):
                assert a.shape == b.shape
                np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11)
    extra = rng.normal(size=(M, 2))
    for w in (None, weight):
        a, b = ours.moment(extra, w, shift), theirs.moment(extra, w, shift)
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11)
        root = None if w is None else np.sqrt(w)
        factor = ours.triangle(extra, root, shift)
        np.testing.assert_allclose(factor.T @ factor, b, rtol=1e-10, atol=1e-10)
        product, squares = ours.cross_and_squares(extra, w, shift)
        np.testing.assert_allclose(product, theirs.cross(extra, shift), rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(squares, ours.column_squares(w, shift))
        # Of sparse columns with a shift they are a little more.
        assert (squares >= np.diag(b)[:N] * (1.0 - 1e-10)).all()
        if kind != "csr":
            np.testing.assert_allclose(np.diag(b)[:N], squares, rtol=1e-10)
    for panel in (7, 20, 300):
        for (some, a), (same, b) in zip(
            ours.row_panels(panel), theirs.row_panels(panel), strict=True
        ):
            assert some == same
            np.testing.assert_array_equal(a, b)
    for (some, a), (same, b) in zip(ours.column_panels(2), theirs.column_panels(2), strict=True):
        assert some == same
        np.testing.assert_array_equal(a, b)
    assert ours.find_non_finite() is None


@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize(
    "rows", [slice(3, 41), np.array([0, 5, 5, 30, 59]), np.array([40, 2, 2, 17])], ids=str
)
def test_some_rows(kind, rows):
    X = _kind(_data()[0], kind)
    v = np.arange(1.0, N + 1)
    some = as_matrix(_chunked(X, uneven(M))).take(rows)
    np.testing.assert_allclose(some.apply(v), (X @ v)[rows])
    np.testing.assert_allclose(some.take(slice(1, 3)).apply(v), (X @ v)[rows][1:3])


def test_sparse_chunks_stay_sparse_and_whole_numbers_count():
    X = sp.csr_array(np.eye(4))
    (values,) = (one for _, one in as_matrix(_chunked(X, (4,))).blocks())
    assert isinstance(as_matrix(values), SparseMatrix)
    whole = as_matrix(da.from_array(np.arange(12).reshape(6, 2), chunks=(2, 2)))
    assert whole.dtype == np.float64
    np.testing.assert_allclose(whole.apply(np.ones(2)), np.arange(12).reshape(6, 2).sum(axis=1))


# Games


def _same_answers(name, solver, sizes):
    game = problem(name)
    tables = game.X, _chunked(game.X, sizes(game.X.shape[0]))

    def both(**more):
        given = {"solver": solver, **game.options, **more}
        return [spgls.solve(X, game.y, game.z, game.gamma, **given) for X in tables]

    whole, apart = both()
    answer = game.answer
    size = float(answer.label_size)
    assert apart.status is whole.status
    assert apart.certificate.kind == whole.certificate.kind
    assert apart.certificate.lower_bound <= float(answer.value) + 1e-12 * size
    # At an infimum that nobody reaches, a predictor is as close to it as the tolerance asks.
    near = 1e-9 if answer.status == "unattained" else 1e-10
    assert apart.certificate.relative_gap <= max(2.0 * whole.certificate.relative_gap, 1e-9)
    if whole.solver == "krylov":
        # Chunks are multiplied with two columns at a time, so iterations end at other points
        # within the tolerance.
        whole, apart = both(tol=near / 10)
    assert abs(apart.objective - whole.objective) <= near * size


@pytest.mark.parametrize("name", CATALOGUE)
@pytest.mark.parametrize("sizes", [thirds, uneven])
def test_the_catalogue_in_chunks(name, sizes):
    with dask.config.set(scheduler="synchronous"):
        _same_answers(name, "auto", sizes)


@pytest.mark.long
@pytest.mark.parametrize("name", CATALOGUE)
@pytest.mark.parametrize("sizes", [thirds, uneven])
@pytest.mark.parametrize("solver", ["spectral", "krylov"])
def test_the_catalogue_in_chunks_by_each_solver(name, solver, sizes):
    _same_answers(name, solver, sizes)


@pytest.mark.parametrize("kind", KINDS)
def test_paths_populations_weights_and_checks(kind):
    X, y, z = _data(2, m=90, n=6)
    X = _kind(X, kind)
    chunked, weight = _chunked(X, (50, 10, 30)), np.random.default_rng(5).random(90)
    weight[50:60] = 0.0
    lazy_y, lazy_w = (da.from_array(t, chunks=40) for t in (y, weight))
    cost = [1.0, 2.0, np.inf, 1.0, 0.5, 1.0]
    more = {"fit_intercept": True, "feature_cost": cost, "ridge": 0.1}
    gammas = [0.01, 1.0, spgls.Population.mixed(2.0, honest=0.5)]
    for solver in ("spectral", "krylov"):
        a = spgls.solve_path(
            chunked, lazy_y, z, gammas, solver=solver, sample_weight=lazy_w, **more, tol=1e-11
        )
        b = spgls.solve_path(
            X, y, z, gammas, solver=solver, sample_weight=weight, **more, tol=1e-11
        )
        np.testing.assert_allclose(a.objective, b.objective, rtol=1e-10)
        assert [one.status for one in a] == [one.status for one in b]
    del more["fit_intercept"]
    at = np.linspace(-1.0, 1.0, 6)
    proofs = [spgls.certify(T, y, z, 0.5, at, intercept=0.5, **more) for T in (chunked, X)]
    assert proofs[0].lower_bound == pytest.approx(proofs[1].lower_bound, rel=1e-10)
    assert proofs[0].gap == pytest.approx(proofs[1].gap, rel=1e-10)


def test_digits_that_squares_lose_are_kept_by_triangles():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    X[:, 3] = X[:, 2] + 1e-7 * rng.normal(size=120)
    y = X @ [1.0, 1.0, 2.0, -1.0] + 0.1 * rng.normal(size=120)
    chunked = DaskMatrix(_chunked(X, (50, 40, 30)))
    a, b = (
        spgls.solve(T, y, y + 1.0 + y**2, 2.0, solver=spgls.solvers.Spectral(engine="qr"))
        for T in (chunked, X)
    )
    assert a.status is b.status is spgls.Status.OPTIMAL
    assert a.objective == pytest.approx(b.objective, rel=1e-10)


def test_column_means_much_larger_than_deviations():
    """Chunks of sorted rows have means of their own; the shift comes from several of them."""
    rng = np.random.default_rng(3)
    X = np.sort(rng.normal(size=(300, 3)), axis=0) + 1e6
    y = X @ [1.0, -1.0, 0.5] + rng.normal(size=300)
    given = {"fit_intercept": True}
    for solver in ("spectral", "krylov"):
        a, b = (
            spgls.solve(T, y, np.maximum(y, np.median(y)), 1.0, solver=solver, **given)
            for T in (_chunked(X, (100, 100, 100)), X)
        )
        assert a.status is b.status
        assert a.objective == pytest.approx(b.objective, rel=1e-9)


def _tall(m=60_000, n=2_000, entries=3):
    """Sparse rows of which a column has few."""
    rng = np.random.default_rng(0)
    places = rng.integers(0, n, size=entries * m), np.arange(0, entries * m + 1, entries)
    X = sp.csr_array((rng.normal(size=entries * m), *places), shape=(m, n))
    y = X @ rng.normal(size=n) + rng.normal(size=m)
    return X, y, np.maximum(y, np.median(y))


def test_rounding_is_counted_by_entries_of_sparse_columns():
    X, y, z = _tall()
    rows = DaskMatrix(_chunked(X, (20_000, 30_000, 10_000)))
    given = {"solver": "krylov", "fit_intercept": True, "tol": 3e-11}
    a, b = (spgls.solve(T, y, z, 0.5, **given) for T in (rows, X))
    assert a.status is b.status is spgls.Status.OPTIMAL
    assert a.certificate.gap <= 2.0 * b.certificate.gap
    # Entries of a column are added within chunks, and then those sums.
    most = max(np.bincount(X[k].indices).max() for k in rows._chunks.rows)
    assert rows.longest_sum == most + 3
    assert rows.longest_row == 3


@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("method", ["moments", "triangular"])
def test_statistics_of_chunks(kind, method):
    X, y, z = _data(9, m=120)
    X, weight = _kind(X, kind), np.linspace(0.0, 2.0, 120)
    rows = DaskMatrix(_chunked(X, (50, 30, 40)))
    given = {"sample_weight": weight, "method": method}
    a, b = (spgls.GameStatistics.from_data(T, y, z, **given) for T in (rows, X))
    # Added up where the chunks are.
    assert rows.passes == 1
    game = {"fit_intercept": True, "feature_cost": [1.0, 2.0, np.inf, 1.0, 1.0]}
    for gamma in (0.5, spgls.Population.mixed(1.0)):
        ours, theirs = (one.solve(gamma, **game) for one in (a, b))
        assert ours.status is theirs.status
        assert ours.objective == pytest.approx(theirs.objective, rel=1e-10)
    half = spgls.GameStatistics.from_data(rows.take(slice(0, 60)), y[:60], z[:60], method=method)
    rest = spgls.GameStatistics.from_data(X[60:], y[60:], z[60:], method=method)
    whole = spgls.GameStatistics.from_data(X, y, z, method=method)
    assert (half + rest).solve(1.0).objective == pytest.approx(whole.solve(1.0).objective)


# Estimators


def test_partial_fit_takes_chunks():
    X, y, _ = _data(4, m=120)
    goal = spgls.Floor(float(np.median(y)))
    whole = spgls.StackelbergRegressor(1.0, goal=goal).fit(X, y)
    model = spgls.StackelbergRegressor(1.0, goal=goal)
    for some in (slice(0, 70), slice(70, 120)):
        model.partial_fit(da.from_array(X[some], chunks=(30, N)), da.from_array(y[some], chunks=9))
    np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-8)


@pytest.fixture(scope="module")
def fitted():
    X, y, _ = _data(4, m=120)
    model = spgls.StackelbergRegressor(goal=spgls.Floor(float(np.median(y)))).fit(X, y)
    return model, X, y


@pytest.mark.parametrize("kind", KINDS)
def test_a_fit_to_chunks_is_a_fit(kind):
    X, y, _ = _data(4, m=120)
    X = _kind(X, kind)
    goal = spgls.Floor(float(np.median(y)))
    chunked, labels = _chunked(X, (50, 30, 40)), da.from_array(y, chunks=70)
    a = spgls.StackelbergRegressor(goal=goal).fit(chunked, labels)
    b = spgls.StackelbergRegressor(goal=goal).fit(X, y)
    np.testing.assert_allclose(a.coef_, b.coef_, rtol=1e-10 if kind != "float32" else 1e-5)
    assert a.coef_.dtype == b.coef_.dtype
    assert a.n_features_in_ == N
    assert not hasattr(a, "feature_names_in_")
    assert a.status_ is b.status_
    assert a.score(chunked, labels) == pytest.approx(b.score(X, y), rel=1e-5)
    said = a.predict(chunked)
    assert isinstance(said, da.Array)
    assert said.dtype == a.coef_.dtype
    np.testing.assert_allclose(said.compute(), b.predict(X), rtol=1e-4)


def test_predictions_and_moved_rows_are_lazy(fitted):
    model, X, y = fitted
    loads = []

    def load(block):
        loads.append(len(block))
        return block

    chunked = da.from_array(X, chunks=(50, N)).map_blocks(load, dtype=X.dtype)
    labels, strength = da.from_array(y, chunks=35), np.linspace(0.5, 3.0, len(y))
    with dask.config.set(scheduler="synchronous"):
        chunks = DaskMatrix(chunked)
        chunks.dtype  # noqa: B018 (a look at three chunks)
        loads.clear()
        found = {
            "predict": (model.predict(chunks), model.predict(X)),
            "attacked": (model.predict_attacked(chunks, y=labels), model.predict_attacked(X, y=y)),
            "goals": (model.predict_attacked(chunks, labels), model.predict_attacked(X, y)),
            "strengths": (
                model.predict_attacked(chunks, y, gamma=strength),
                model.predict_attacked(X, y, gamma=strength),
            ),
            "moved": (model.best_response(chunks, y=labels), model.best_response(X, y=y)),
            "function": (
                spgls.predict_attacked(model, chunks, y=labels, gamma="auto"),
                spgls.predict_attacked(model, X, y=y, gamma="auto"),
            ),
            "rows": (
                spgls.best_response(chunks, labels, model, gamma=1.0),
                spgls.best_response(X, y, model, gamma=1.0),
            ),
        }
        assert loads == []
        for ours, theirs in found.values():
            assert isinstance(ours, da.Array)
            assert ours.shape == theirs.shape
            np.testing.assert_allclose(ours.compute(), theirs, rtol=1e-12)
        # Coefficients alone: how far each row moves is computed, the rows are not.
        ours = spgls.best_response(chunks, y, model.coef_, gamma=1.0)
        assert isinstance(ours, da.Array)
        np.testing.assert_allclose(ours, spgls.best_response(X, y, model.coef_, gamma=1.0))


def test_scorers_on_chunks(fitted):
    model, X, y = fitted
    chunked, labels = _chunked(X, (50, 30, 40)), da.from_array(y, chunks=70)
    for world in (1.0, "auto", spgls.Population.mixed(0.5)):
        scorer = spgls.make_attacked_scorer(world, goal=spgls.Floor(3.0))
        assert scorer(model, chunked, labels) == pytest.approx(scorer(model, X, y), rel=1e-10)


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("scoring", [None, "neg_mean_absolute_error"])
def test_cross_validation_on_chunks(shuffle, scoring):
    X, y, _ = _data(6, m=120)
    cv = KFold(3, shuffle=shuffle, random_state=0 if shuffle else None)
    goal = spgls.Floor(float(np.median(y)))
    make = spgls.StackelbergRegressorCV(
        [0.1, 10.0], ridges=(0.0, 1.0), goal=goal, world=1.0, cv=cv, scoring=scoring
    )
    a, b = (clone(make).fit(T, y) for T in (_chunked(X, (50, 30, 40)), X))
    assert a.best_params_ == b.best_params_
    for name in ("mean_test_score", "mean_reach"):
        np.testing.assert_allclose(a.cv_results_[name], b.cv_results_[name], rtol=1e-9)
    np.testing.assert_allclose(a.coef_, b.coef_, rtol=1e-9)


# Decisions


def _decisions(seed=0, m=120):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 4))
    y = np.where(X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=m) > 0.3, "yes", "no")
    return X, y


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "options", [{}, {"class_weight": "balanced"}, {"threshold": "attacked", "gamma": 1.0}], ids=str
)
def test_a_classifier_fits_chunks_where_they_are(kind, options):
    X, y = _decisions()
    X, weight = _kind(X, kind), np.linspace(0.5, 1.0, len(y))
    chunked, labels = _chunked(X, (50, 30, 40)), da.from_array(y, chunks=70)
    matrix = DaskMatrix(chunked)
    make = spgls.StackelbergClassifier(goal=spgls.Wants("yes"), **options)
    b = clone(make).fit(X, y, sample_weight=weight)
    for table in (chunked, matrix):
        a = clone(make).fit(table, labels, sample_weight=weight)
        assert list(a.classes_) == ["no", "yes"]
        assert a.n_features_in_ == 4
        assert a.status_ is b.status_
        near = 1e-9 if kind != "float32" else 1e-5
        np.testing.assert_allclose(a.coef_, b.coef_, rtol=near, atol=near)
        assert a.threshold_ == pytest.approx(b.threshold_, rel=1e-5, abs=1e-6)
    assert matrix.passes > 0
    # The score of a row may be at the threshold up to rounding.
    assert abs(a.score(chunked, labels) - b.score(X, y)) <= 1.0 / len(y)


def test_decisions_on_chunks_are_lazy():
    X, y = _decisions()
    model = spgls.StackelbergClassifier(goal=spgls.Opposite()).fit(X, y)
    loads = []

    def load(block):
        loads.append(len(block))
        return block

    chunked = da.from_array(X, chunks=(50, 4)).map_blocks(load, dtype=X.dtype)
    labels = da.from_array(y, chunks=35)
    with dask.config.set(scheduler="synchronous"):
        chunks = DaskMatrix(chunked)
        chunks.dtype  # noqa: B018 (a look at three chunks)
        loads.clear()
        found = []
        for more in ({}, {"gamma": 0.5}, {"budget": 0.5}):
            for name in ("decision_attacked", "predict_attacked", "best_response"):
                call = getattr(model, name)
                found.append((call(chunks, y=labels, **more), call(X, y=y, **more)))
        found += [(call(chunks), call(X)) for call in (model.decision_function, model.predict)]
        assert loads == []
        for ours, theirs in found:
            assert isinstance(ours, da.Array)
            assert ours.dtype == theirs.dtype
            assert ours.shape == theirs.shape
            if theirs.dtype.kind == "f":
                np.testing.assert_allclose(ours.compute(), theirs, rtol=1e-12, atol=1e-12)
            else:
                np.testing.assert_array_equal(ours.compute(), theirs)
        assert loads


def test_classifiers_are_cross_validated_and_continued_on_chunks():
    X, y = _decisions(1)
    chunked = _chunked(X, (50, 30, 40))
    make = spgls.StackelbergClassifierCV(
        [0.1, 10.0], goal=spgls.Wants("yes"), world=1.0, cv=3, threshold="attacked"
    )
    a, b = (clone(make).fit(T, y) for T in (chunked, X))
    assert a.best_params_ == b.best_params_
    np.testing.assert_allclose(
        a.cv_results_["mean_test_score"], b.cv_results_["mean_test_score"], rtol=1e-9
    )
    whole = spgls.StackelbergClassifier(1.0, goal=spgls.Wants("yes")).fit(X, y)
    model = spgls.StackelbergClassifier(1.0, goal=spgls.Wants("yes"))
    for some in (slice(0, 70), slice(70, 120)):
        model.partial_fit(da.from_array(X[some], chunks=(30, 4)), y[some])
    np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-8)
    for world in (1.0, spgls.Population.mixed(0.5)):
        scorer = spgls.make_attacked_scorer(world, goal=spgls.Wants("yes"), metric="accuracy")
        assert scorer(whole, chunked, y) == scorer(whole, X, y)


def test_labels_of_chunks_that_are_no_two_classes():
    X, y = _decisions()
    chunked, model = _chunked(X, (50, 70)), spgls.StackelbergClassifier()
    with pytest.raises(ValueError, match=r"y must have one entry per row of X, 120; got 3"):
        model.fit(chunked, y[:3])
    with pytest.raises(ValueError, match="y must hold two classes; got only one class"):
        model.fit(chunked, np.ones(120))
    with pytest.raises(ValueError, match="y contains NaN"):
        model.fit(chunked, np.where(y == "yes", 1.0, np.nan))
    X[73, 2] = np.nan
    with pytest.raises(ValueError, match=r"row 73 \(chunk 1\), column 2 is nan"):
        model.fit(_chunked(X, (50, 70)), y)


def test_frames_keep_their_names():
    pd = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe")
    X, y, z = _data(7)
    frame = pd.DataFrame(X, columns=list("abcde"))
    lazy, cost = dd.from_pandas(frame, npartitions=4), {"b": 2.0, "e": np.inf}
    theirs = spgls.solve(frame, y, z, 1.0, feature_cost=cost)
    for table in (lazy, DaskMatrix.from_frame(lazy)):
        ours = spgls.solve(table, y, z, 1.0, feature_cost=cost)
        np.testing.assert_allclose(ours.coef, theirs.coef, rtol=1e-10)
        model = spgls.StackelbergRegressor(1.0, feature_cost=cost).fit(table, y, z=z)
        assert list(model.feature_names_in_) == list("abcde")
        assert isinstance(model.predict(table), da.Array)
    with pytest.raises(ValueError, match=r"features of the fit in the same order; 'b' stands"):
        model.predict(lazy[["b", "a", "c", "d", "e"]])
    with pytest.raises(ValueError, match="'f', which no column is called"):
        spgls.solve(lazy, y, z, 1.0, feature_cost={"f": 1.0})


# What it costs


def test_passes_are_counted_and_chunks_loaded_once_in_each():
    X, y, z = _data(8, m=900, n=4)
    loads = []

    def load(block):
        loads.append(len(block))
        return block

    chunked = da.from_array(X, chunks=(300, 4)).map_blocks(load, dtype=X.dtype, meta=X[:0])
    with dask.config.set(scheduler="synchronous"):
        matrix = DaskMatrix(chunked)
        found = spgls.solve(matrix, y, z, spgls.Population.mixed(1.0), fit_intercept=True)
        # A look at three chunks comes first.
        assert matrix.passes == found.stats.passes == 2.0
        assert len(loads) == 3 * (1 + 2)
        loads.clear()
        held = matrix.persist()
        assert matrix.passes == 3
        assert len(loads) == 3
        assert held.held
        assert not matrix.held
        again = spgls.solve(held, y, z, spgls.Population.mixed(1.0), fit_intercept=True)
        assert len(loads) == 3
        assert held.passes == 2
        np.testing.assert_array_equal(again.coef, found.coef)
        # Dask's own way to hold chunks is as good.
        loads.clear()
        kept = chunked.persist()
        spgls.solve(kept, y, z, 1.0)
        assert len(loads) == 3
        assert DaskMatrix(kept).held


@pytest.mark.parametrize(
    ("solver", "weighted", "most"), [("spectral", True, 6.0), ("krylov", False, 9.0)]
)
def test_what_this_process_holds_of_the_rows(solver, weighted, most):
    """In numbers a row, beside labels, goals and weights that it was given; the data is larger."""
    m = 300_000
    X = _numbers(m, 8, 60)
    y = np.random.default_rng(0).normal(size=m)
    z, weight = np.maximum(y, 0.0), np.linspace(0.5, 1.0, m) if weighted else None
    rows, world = DaskMatrix(X), spgls.Population.mixed(0.5)
    rows.dtype  # noqa: B018 (a look at three chunks)
    with dask.config.set(scheduler="synchronous"):
        tracemalloc.start()
        found = spgls.solve(
            rows, y, z, world, fit_intercept=True, sample_weight=weight, solver=solver
        )
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert found.status.ok
    # The chunk that is being worked on, a sixtieth of the data, is among it.
    assert peak <= 8.0 * most * m


def test_sums_of_chunks_leave_no_rows_here():
    """Labels and goals that are in chunks too stay there, and only sums come back."""
    m = 160_000
    X = _numbers(m, 4, 20)
    y = X[:, 0] + X[:, 1] ** 2
    z = da.maximum(y, 1.0)
    parts = [
        dask.delayed(spgls.GameStatistics.from_data)(*some)
        for some in zip(X.to_delayed().ravel(), y.to_delayed(), z.to_delayed(), strict=True)
    ]
    with dask.config.set(scheduler="synchronous"):
        dask.compute(parts[0])
        tracemalloc.start()
        total = reduce(add, dask.compute(*parts))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        # Of one chunk at a time: less than one number for each of all rows.
        assert peak < 8.0 * m
        found = total.solve(0.5, fit_intercept=True)
        whole = spgls.solve(X.compute(), y.compute(), z.compute(), 0.5, fit_intercept=True)
    assert found.status is whole.status
    assert found.objective == pytest.approx(whole.objective, rel=1e-9)


def _numbers(m, n, chunks):
    """Rows that are made when they are needed."""
    made = [dask.delayed(_normal)(number, m // chunks, n) for number in range(chunks)]
    parts = [da.from_delayed(part, (m // chunks, n), dtype=np.float64) for part in made]
    return da.concatenate(parts)


def _normal(seed, m, n):
    return np.random.default_rng(seed).normal(size=(m, n))


def test_the_plan_knows_what_a_pass_takes():
    X = da.ones((4000, 50), chunks=(1000, 50))
    plan = spgls.explain_solver(X, gamma=[0.1, 1.0, 10.0])
    assert "4 chunks: a pass reads 1.6 MB (loaded anew), sends 0.8 kB to each" in repr(plan)
    assert "adds up in 1 step" in repr(plan)
    assert "(loaded anew)" not in repr(spgls.explain_solver(X.persist()))
    work, held = as_matrix(X).work, as_matrix(X).persist().work
    assert work.wait > held.wait > 0.0


def _sparse_part(number, rows, columns, entries):
    rng = np.random.default_rng(number)
    at = rng.integers(0, columns, size=rows * entries)
    starts = np.arange(0, rows * entries + 1, entries)
    # Columns of very different lengths take an iteration long.
    values = rng.normal(size=rows * entries) * np.geomspace(1.0, 1e-4, columns)[at]
    return sp.csr_array((values, at, starts), shape=(rows, columns))


def _sparse_chunks(rows, columns, chunks=16, entries=10):
    made = [dask.delayed(_sparse_part)(k, rows // chunks, columns, entries) for k in range(chunks)]
    shape = (rows // chunks, columns)
    return da.concatenate([da.from_delayed(part, shape, dtype=np.float64) for part in made])


def test_fifty_thousand_sparse_columns_are_never_decomposed():
    """Their squares would take 20 GB, in each of several copies."""
    rows = DaskMatrix(_sparse_chunks(2_000_000, 50_000))
    for memory in (8e9, 2e10, 1e12):
        for gamma in (0.5, spgls.Population.mixed(0.5), [0.1, spgls.Population.mixed(0.5)]):
            plan = spgls.explain_solver(rows, gamma=gamma, fit_intercept=True, memory=memory)
            assert plan.solver == "krylov"
            assert plan.memory < 2e9
            # What is not settled by then stays so: the other option has to promise an end.
            direct = plan.options[0]
            assert not direct.fits or direct.seconds > 1e4
    assert rows.passes == 0


def test_what_does_not_fit_is_not_tried_where_an_iteration_did_not_end(monkeypatch):
    rows = DaskMatrix(_sparse_chunks(9600, 2400, chunks=4))
    y = np.random.default_rng(0).normal(size=9600)
    slow = spgls.solvers.Krylov.solve_population

    def unfinished(self, data, population, ridge, controls):
        return slow(self, data, population, ridge, replace(controls, max_iter=3))

    monkeypatch.setattr(spgls.solvers.Krylov, "solve_population", unfinished)
    monkeypatch.setattr(spgls.solvers.Spectral, "solve_population", None)
    monkeypatch.setattr(auto, "available_memory", lambda: 1.5e8)
    auto._free_memory.cache_clear()
    world = spgls.Population.mixed(0.5)
    with dask.config.set(scheduler="synchronous"):
        found = spgls.solve(rows, y, np.maximum(y, 0.0), world, fit_intercept=True)
    assert found.solver == "krylov"
    assert not found.status.ok


def test_repr_and_pickle():
    matrix = DaskMatrix(da.ones((6, 2), chunks=(2, 2)))
    assert repr(matrix) == "DaskMatrix of shape (6, 2) in 3 chunks"
    assert repr(matrix.persist()).endswith("in 3 chunks, held")
    with pytest.raises(TypeError, match="Send the Dask array"):
        pickle.dumps(matrix)


# What is wrong is said before long work


def _refused(X, error, match, **more):
    y = np.arange(float(M))
    with pytest.raises(error, match=match):
        spgls.solve(X, y, y + 1.0, 1.0, **more)
    with pytest.raises(error, match=match):
        spgls.StackelbergRegressor(1.0).fit(X, y, z=y + 1.0)


def test_chunks_of_columns():
    X = da.ones((M, 4), chunks=(20, 2))
    _refused(X, ValueError, r"columns are cut into 2 pieces, 2 of 4 .* Pass X.rechunk\(\{1: -1\}\)")


def test_chunks_of_unknown_lengths():
    X = da.ones((M, 4), chunks=(20, 4))
    X = X[X[:, 0] > 0.0]
    _refused(X, ValueError, r"3 of 3 chunks do not say. Call X.compute_chunk_sizes\(\)")


@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_chunks_without_rows(kind):
    X, y, z = _data()
    chunked = _chunked(X, (20, 0, 40, 0))
    if kind == "csr":
        chunked = chunked.map_blocks(sp.csr_array)
    _refused(chunked, ValueError, r"rows in every chunk; chunk 1 is the first of 2 of 4 that have")
    # What the error says to do.
    filled = chunked.rechunk((tuple(n for n in chunked.chunks[0] if n), -1))
    assert filled.chunks[0] == (20, 40)
    a, b = (spgls.solve(T, y, z, 1.0, fit_intercept=True) for T in (filled, X))
    np.testing.assert_allclose(a.coef, b.coef, rtol=1e-10)


def test_partitions_without_rows():
    pd = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame(_data()[0], columns=list("abcde"))
    lazy = dd.from_pandas(frame.assign(a=np.arange(M)), npartitions=4)
    some = lazy[lazy["a"] >= M // 2]
    with pytest.raises(ValueError, match=r"rows in every chunk; chunk 0 is the first of 2 of 4"):
        DaskMatrix.from_frame(some)
    assert DaskMatrix.from_frame(some.repartition(npartitions=1)).shape == (M // 2, N)


def test_nothing_at_all():
    _refused(da.ones((0, 4), chunks=(0, 4)), ValueError, "at least one row and one column")
    _refused(da.ones(M, chunks=20), ValueError, r"two dimensions; got 1. Pass X.reshape")


@pytest.mark.parametrize("kind", [object, complex, "datetime64[s]", "U3"])
def test_types_that_are_no_numbers(kind):
    X = da.from_array(np.zeros((M, 2), dtype=kind), chunks=(20, 2))
    _refused(X, TypeError, "must hold real numbers; got a Dask array of type")


def _text_in_chunk_two(block, block_id=None):
    return block.astype(str).astype(object) + "?" if block_id[0] == 2 else block


def test_chunks_that_hold_no_numbers():
    """The array says that it has numbers; one of its chunks has none."""
    X = da.from_array(np.ones((M, 3)), chunks=(10, 3))
    lies = X.map_blocks(_text_in_chunk_two, dtype=float, meta=np.zeros((0, 0)))
    _refused(lies, TypeError, r"chunk 2 of X must be a table of numbers")


def _sparse_in_chunk_three(block, block_id=None):
    return sp.csr_array(block) if block_id[0] == 3 else block


def test_chunks_of_several_kinds():
    X = da.from_array(np.ones((M, 3)), chunks=(10, 3))
    mixed = X.map_blocks(_sparse_in_chunk_three, dtype=float, meta=np.zeros((0, 0)))
    _refused(mixed, TypeError, r"chunks of one kind; chunk 0 is dense, and chunk 3 of X is")
    # The last is among those that are looked at beforehand.
    last = X.map_blocks(
        lambda block, block_id=None: sp.csr_array(block) if block_id[0] == 5 else block,
        dtype=float,
        meta=np.zeros((0, 0)),
    )
    _refused(last, TypeError, r"chunk 0 is dense, and chunk 5 is sparse")


@pytest.mark.parametrize("solver", ["spectral", "krylov", "auto"])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_the_chunk_of_a_missing_value_is_named(solver, fit_intercept):
    X, y, z = _data(m=100)
    X[73, 2] = np.nan
    chunked = da.from_array(X, chunks=(10, N))
    for kind in (chunked, chunked.map_blocks(sp.csr_array)):
        with pytest.raises(ValueError, match=r"row 73 \(chunk 7\), column 2 is nan"):
            spgls.solve(kind, y, z, 1.0, solver=solver, fit_intercept=fit_intercept)
    with pytest.raises(ValueError, match=r"row 73 \(chunk 7\), column 'c' is nan"):
        spgls.solve(DaskMatrix(chunked, columns=list("abcde")), y, z, 1.0, solver=solver)


def test_predictions_of_a_missing_value(fitted):
    model, X, _ = fitted
    X = X.copy()
    X[73, 2] = np.inf
    said = model.predict(da.from_array(X, chunks=(10, N)))
    with pytest.raises(ValueError, match=r"X must be finite; row 73, column 2 is inf"):
        said.compute()


def test_chunks_that_are_not_what_the_array_says():
    X = da.from_array(np.ones((M, 3)), chunks=(20, 3))
    short = X.map_blocks(
        lambda block: block[:-1], dtype=float, chunks=X.chunks, meta=np.ones((0, 0))
    )
    _refused(
        short, ValueError, r"chunk \d of X must have shape \(20, 3\), as X says; it has \(19, 3\)"
    )


def test_labels_and_names_of_the_wrong_number(fitted):
    model, X, y = fitted
    chunked = da.from_array(X, chunks=(50, N))
    with pytest.raises(ValueError, match=r"y must have one entry per row of X, 120; got 3"):
        spgls.solve(chunked, da.ones(3, chunks=3), y, 1.0)
    with pytest.raises(ValueError, match=r"z must have one dimension.*120; got shape \(3,\)"):
        model.predict_attacked(chunked, da.ones(3, chunks=3))
    with pytest.raises(TypeError, match="z must hold real numbers"):
        model.predict_attacked(chunked, da.from_array(np.full(120, "a"), chunks=50))
    with pytest.raises(ValueError, match="each of the 5 columns of X; got 1 names"):
        DaskMatrix(chunked, columns=["a"])
    with pytest.raises(
        ValueError, match="X has 4 features, but StackelbergRegressor is expecting 5"
    ):
        model.predict(chunked[:, :4])
    with pytest.raises(TypeError, match="frame must be a data frame of Dask"):
        DaskMatrix.from_frame(chunked)
    with pytest.raises(TypeError, match="X must be a Dask array; got ndarray"):
        DaskMatrix(X)


def test_moved_rows_of_sparse_chunks_are_refused(fitted):
    model, X, y = fitted
    chunked = da.from_array(X, chunks=(50, N)).map_blocks(sp.csr_array)
    for call in (
        lambda: model.best_response(chunked, y=y),
        lambda: spgls.best_response(chunked, y, model.coef_, gamma=1.0),
    ):
        with pytest.raises(TypeError, match=r"its chunks are sparse\. Use spgls\.movement"):
            call()


def test_errors_of_a_task_are_those_of_its_user():
    def fails(block, block_id=None):
        if block.size and block_id[0] == 2:
            raise OSError("the disk is gone")
        return block

    X = da.from_array(np.ones((M, 3)), chunks=(20, 3)).map_blocks(
        fails, dtype=float, meta=np.ones((0, 0))
    )
    _refused(X, OSError, "the disk is gone")
