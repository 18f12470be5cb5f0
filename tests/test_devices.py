"""Data on a device, without one: array-api-strict pretends, and refuses what would move unseen.

An array on one of its devices cannot become a NumPy array but through ``Place.get``, so every
transfer goes through the two methods that the guard here counts. PyTorch is tried on the CPU where
it can be imported; ``benchmarks/gpu.py`` plays the same games on a GPU.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from numpy.testing import assert_allclose

import spgls
from spgls import Floor, Population, StackelbergRegressor, explain_solver, solve, solve_path
from spgls.base.devices import Place, check_one_place, is_foreign, on_device, place_of
from spgls.base.far_array import FarArray, side_by_side
from spgls.game.response import learner_loss
from spgls.matrix import DenseMatrix, ScaledMatrix, SparseMatrix, as_matrix
from spgls.matrix.device.device_dense import DeviceDense
from spgls.matrix.device.device_products import _Shape
from spgls.matrix.device.device_sparse import Compressed, DeviceSparse
from spgls.matrix.row_step import RowStep
from spgls.sphere.operator import SphereProblem, Targets, bordered

from .catalogue import CATALOGUE, problem

strict = pytest.importorskip("array_api_strict")
pytest.importorskip("array_api_compat")

THERE, ELSEWHERE = strict.Device("device1"), strict.Device("device2")
DENSE = [name for name in CATALOGUE if not sp.issparse(problem(name).X)]


def put(values, device=THERE):
    return strict.asarray(np.array(values), device=device)


def get(array):
    return np.array(array.to_device(strict.Device("CPU_DEVICE")))


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.fixture
def moved(monkeypatch):
    """Sizes of all that travels, to the device and back."""
    sizes = {"put": [], "get": []}
    own_put, own_get = Place.put, Place.get

    def counted_put(self, values):
        sizes["put"].append(values.size)
        return own_put(self, values)

    def counted_get(self, array):
        out = own_get(self, array)
        sizes["get"].append(out.size)
        return out

    monkeypatch.setattr(Place, "put", counted_put)
    monkeypatch.setattr(Place, "get", counted_get)
    return sizes


def game(rng, m=400, n=12, noise=1.0):
    X = rng.normal(size=(m, n)) + rng.normal(size=n)
    y = X @ rng.normal(size=n) + noise * rng.normal(size=m)
    return X, y, y + rng.random(m)


# The verbs.


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("piece", [2**27, 640])
def test_every_verb_agrees_with_numpy(rng, dtype, piece, monkeypatch):
    monkeypatch.setattr("spgls.matrix.device.device_dense._PIECE", piece)
    values = (rng.normal(size=(57, 8)) + 5.0).astype(dtype)
    here, there = DenseMatrix(values), as_matrix(put(values))
    assert isinstance(there, DeviceDense)
    assert (there.shape, there.dtype) == (here.shape, here.dtype)
    shift, weight = rng.normal(size=8), rng.random(57)
    extra = rng.normal(size=(57, 2))
    for width in ((), (1,), (3,)):
        v, u = rng.normal(size=(8, *width)), rng.normal(size=(57, *width))
        for less in (None, shift):
            assert_allclose(there.apply(v, less), here.apply(v, less), atol=1e-12)
            assert_allclose(there.cross(u, less), here.cross(u, less), atol=1e-12)
            assert_allclose(there.gram(v, less), here.gram(v, less), atol=1e-10)
            product, squares = there.cross_and_squares(u, weight, less)
            assert_allclose(product, here.cross(u, less), atol=1e-12)
            assert_allclose(squares, here.column_squares(weight, less), atol=1e-11)
    assert_allclose(there.moment(extra, weight, shift), here.moment(extra, weight, shift))
    assert_allclose(there.typical_row(weight), here.typical_row(weight))
    assert_allclose(there.typical_row(None), here.typical_row(None))
    table = np.sqrt(weight)[:, None] * np.column_stack([values - shift, extra])
    factor = there.triangle(extra, np.sqrt(weight), shift)
    assert_allclose(factor.T @ factor, table.T @ table)
    assert_allclose(there.head_square(20), np.square(values[:20], dtype=float).sum())
    assert_allclose(there.head_largest(100), np.abs(values).max(axis=0))
    assert_allclose(
        there.head_spread(21, shift), np.median(np.abs(values[:21] - shift), axis=0), rtol=1e-6
    )
    for rows in (slice(3, 20), np.array([5, 2, 2, 40])):
        assert_allclose(there.take(rows).apply(np.eye(8)), values[rows])
    for own, its in zip(here.row_panels(20), there.row_panels(20), strict=True):
        assert own[0] == its[0]
        assert_allclose(own[1], its[1])
    for own, its in zip(here.column_panels(3), there.column_panels(3), strict=True):
        assert own[0] == its[0]
        assert_allclose(own[1], its[1])
    square = values.T.astype(float) @ values
    d, vectors = there.decompose(square)
    assert_allclose(vectors * d @ vectors.T, square)


@pytest.mark.parametrize("width", [(), (2,)])
def test_row_steps_act_on_the_device(rng, width):
    values = rng.normal(size=(60, 7))
    here, there = DenseMatrix(values), DeviceDense(put(values), place_of(put(values)))
    basis = np.linalg.qr(rng.normal(size=(60, 2)))[0]
    v, row = rng.normal(size=(7, *width)), rng.random(60)
    steps = [
        RowStep.projection(basis, basis.T @ (row * (values @ v).T).T).weighted(row)
        for _ in range(2)
    ]
    for _ in range(2):
        assert_allclose(there.gram(v, None, steps[0]), here.gram(v, None, steps[1]), atol=1e-12)
        assert_allclose(steps[0].left, steps[1].left, atol=1e-12)
    # A map that nobody has taken apart.
    assert_allclose(there.gram(v, None, lambda rows, t: 2.0 * t), 2.0 * here.gram(v), atol=1e-12)


def test_a_basis_travels_once(rng, moved):
    values = put(rng.normal(size=(50, 4)))
    scaled = ScaledMatrix(as_matrix(values), row=rng.random(50))
    basis = np.linalg.qr(rng.normal(size=(50, 1)))[0]
    for _ in range(5):
        scaled.gram(np.ones(4), RowStep.projection(basis, np.zeros(1)))
    assert sum(size >= 50 for size in moved["put"]) == 2


def test_sums_are_in_double_precision(rng):
    values = np.ones((4000, 3), dtype=np.float32)
    values[0] = 2.0**24
    there = as_matrix(put(values))
    assert_allclose(there.cross(np.ones(4000)), 2.0**24 + 3999, rtol=1e-15)
    assert_allclose(there.moment(np.zeros((4000, 0)), None, None), 2.0**48 + 3999, rtol=1e-15)


# Games.


@pytest.mark.parametrize("name", DENSE)
def test_the_catalogue_is_that_of_numpy(name):
    own = problem(name)
    X = np.asarray(own.X)
    assert X.dtype in (np.float64, np.float32) or X.dtype.kind in "iu"
    there = put(X if X.dtype.kind == "f" else X.astype(float))
    size = float(np.sum(np.square(own.y))) or 1.0
    for solver in ("spectral", "krylov"):
        for who in (own.gamma, Population.mixed(own.gamma, honest=0.5)):
            options = own.options | {"solver": solver}
            a = solve(X, own.y, own.z, who, **options)
            b = solve(there, own.y, own.z, who, **options)
            assert a.status is b.status
            assert abs(a.objective - b.objective) <= 1e-9 * size
            assert b.certificate.kind == a.certificate.kind


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"fit_intercept": True},
        {"feature_cost": [1.0, 2.0, np.inf, *[1.0] * 9], "fit_intercept": True},
        {"sample_weight": "some", "fit_intercept": True},
    ],
)
@pytest.mark.parametrize("solver", ["auto", "krylov", "spectral"])
def test_paths_and_certificates(rng, options, solver):
    X, y, z = game(rng)
    if "sample_weight" in options:
        options = options | {"sample_weight": rng.random(400)}
    there, gammas = put(X), [0.1, 1.0, 10.0]
    here = solve_path(X, y, z, gammas, solver=solver, **options)
    device = solve_path(there, y, put(z), gammas, solver=solver, **options)
    for a, b in zip(here, device, strict=True):
        assert a.status is b.status
        assert_allclose(b.coef, a.coef, atol=1e-7)
        assert isinstance(b.coef, np.ndarray)
    told = {k: v for k, v in options.items() if k != "fit_intercept"}
    intercept = here[0].intercept if "fit_intercept" in options else None
    a = spgls.certify(X, y, z, 0.1, here[0].coef, intercept=intercept, **told)
    b = spgls.certify(there, y, z, 0.1, here[0].coef, intercept=intercept, **told)
    assert_allclose(b.lower_bound, a.lower_bound, rtol=1e-9)


def test_other_functions_take_it(rng):
    X, y, z = game(rng)
    there, coef = put(X), rng.normal(size=12)
    a, b = (spgls.movement(t, z, coef, gamma=1.0) for t in (X, there))
    assert_allclose(b.after, a.after)
    rows = spgls.best_response(there, put(z), coef, gamma=1.0)
    assert rows.device == THERE
    assert_allclose(get(rows), spgls.best_response(X, z, coef, gamma=1.0))
    assert_allclose(
        learner_loss(there, y, z, coef, gamma=1.0), learner_loss(X, y, z, coef, gamma=1.0)
    )


# What travels.


@pytest.mark.parametrize("solver", ["krylov", "spectral"])
@pytest.mark.parametrize("intercept", [False, True])
def test_the_data_never_travels(rng, moved, solver, intercept):
    m, n = 3000, 40
    X, y, z = game(rng, m, n)
    there = put(X)
    moved["put"].clear()
    found = solve(there, y, z, 1.0, solver=solver, fit_intercept=intercept)
    assert found.status.ok
    # Vectors come back, and the small side squared at most: never rows.
    assert max(moved["get"]) <= max(2 * m, (n + 3) ** 2)
    assert sum(size >= m for size in moved["get"]) <= 2
    assert max(moved["put"]) <= 3 * m
    assert sum(moved["get"]) < X.size / 2
    if solver == "krylov":
        # One wait for the device a pass, and a few to begin with.
        assert len(moved["get"]) <= found.stats.passes + 4


def test_factors_are_found_on_the_device(rng, moved):
    m, n = 2000, 10
    X, y, z = game(rng, m, n)
    there = put(X)
    found = solve(there, y, z, 1.0, solver=spgls.solvers.Spectral(engine="qr"))
    assert found.status.ok
    assert sum(size >= m for size in moved["get"]) <= 1


# What is refused.


def test_vectors_elsewhere_are_refused(rng):
    X, y, z = game(rng, 30, 3)
    there = put(X)
    with pytest.raises(ValueError, match="y must be on the device of X"):
        solve(there, put(y, ELSEWHERE), z, 1.0)
    with pytest.raises(ValueError, match=r"z must be on the device of X.*X in the host's memory"):
        solve(X, y, put(z), 1.0)
    check_one_place(there, y=put(y), z=z, sample_weight=None)


@pytest.mark.parametrize("dtype", [np.int64, np.bool_, np.complex128])
def test_other_types_are_refused(dtype):
    with pytest.raises(TypeError, match="X must hold float64 or float32 numbers on a device"):
        solve(put(np.ones((4, 2), dtype=dtype)), np.ones(4), np.zeros(4), 1.0)


def test_a_device_without_double_precision_is_refused():
    X = put(np.ones((4, 2), dtype=np.float32), strict.Device("no_float64"))
    with pytest.raises(TypeError, match="no double precision"):
        solve(X, np.ones(4), np.zeros(4), 1.0)


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
@pytest.mark.parametrize("solver", ["krylov", "spectral"])
def test_numbers_that_are_not_finite_are_named(rng, wrong, solver):
    X, y, z = game(rng, 300, 4)
    X[123, 2] = wrong
    with pytest.raises(ValueError, match="row 123, column 2"):
        solve(put(X), y, z, 1.0, solver=solver)


def test_a_full_device_is_told(rng, monkeypatch):
    place = place_of(put(np.ones(2)))

    def full(*_, **__):
        raise RuntimeError("CUDA out of memory. Tried to allocate 89 GiB")

    with pytest.raises(MemoryError, match=r"memory of the device.*krylov"), place.memory():
        full()
    with pytest.raises(RuntimeError, match="something else"), place.memory():
        raise RuntimeError("something else")


def test_the_plan_names_the_device(rng):
    X, _, _ = game(rng, 500, 200)
    plan = explain_solver(put(X))
    assert plan.device is not None
    assert "X stays on" in repr(plan)
    assert "GB/s" in repr(plan)
    assert explain_solver(X).device is None


def test_host_arrays_of_other_libraries_are_seen_by_numpy(rng):
    X, y, z = game(rng, 50, 3)
    here = strict.asarray(X)
    assert is_foreign(here)
    assert not on_device(here)
    assert isinstance(as_matrix(here), DenseMatrix)
    assert_allclose(solve(here, y, z, 1.0).coef, solve(X, y, z, 1.0).coef)


# Estimators.


def test_estimators_follow_the_rows(rng, monkeypatch):
    # scikit-learn asks for it; nothing of SciPy is dispatched here.
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    X, y, _ = game(rng)
    own = StackelbergRegressor(goal=Floor(1.0)).fit(X, y)
    there = put(X)
    with sklearn.config_context(array_api_dispatch=True):
        model = StackelbergRegressor(goal=Floor(1.0)).fit(there, put(y))
        assert model.coef_.device == THERE
        assert_allclose(get(model.coef_), own.coef_, atol=1e-9)
        said = model.predict(there)
        assert said.device == THERE
        assert_allclose(get(said), own.predict(X), atol=1e-9)
        assert_allclose(
            get(model.predict_attacked(there, y=y)), own.predict_attacked(X, y=y), atol=1e-9
        )
        assert_allclose(get(model.best_response(there, y=y)), own.best_response(X, y=y), atol=1e-9)
        assert str(own.summary()) == str(model.summary())
        with pytest.raises(ValueError, match="same namespace and device as fit"):
            model.predict(put(X, ELSEWHERE))
        with pytest.raises(ValueError, match="X with NumPy"):
            model.predict(X)
        with pytest.raises(ValueError, match="expecting 12 features"):
            model.predict(put(X[:, :3]))
        single = StackelbergRegressor(goal=Floor(1.0)).fit(put(X.astype(np.float32)), y)
        assert single.coef_.dtype == strict.float32
    with pytest.raises(TypeError, match="array_api_dispatch=True"):
        StackelbergRegressor(goal=Floor(1.0)).fit(there, y)


def test_statistics_take_it(rng, moved):
    X, y, z = game(rng, 2000, 10)
    there = put(X)
    for method in ("moments", "triangular"):
        own = spgls.GameStatistics.from_data(X, y, z, method=method)
        its = spgls.GameStatistics.from_data(there, put(y), z, method=method)
        a, b = own.solve(1.0), its.solve(1.0)
        assert a.status is b.status
        assert_allclose(b.coef, a.coef, atol=1e-9)
    assert max(moved["get"]) <= 2000


def test_partial_fits_follow_the_rows(rng, monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    X, y, _ = game(rng)
    with sklearn.config_context(array_api_dispatch=True):
        model = StackelbergRegressor(goal=Floor(1.0))
        for rows in (slice(0, 200), slice(200, 400)):
            model.partial_fit(put(X[rows]), put(y[rows]))
        assert model.coef_.device == THERE
        whole = StackelbergRegressor(goal=Floor(1.0)).fit(X, y)
        assert_allclose(get(model.coef_), whole.coef_, atol=1e-8)


# Sparse rows and PyTorch, where it is there.


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason="PyTorch is not installed")


def compressed(torch, A):
    parts = (torch.asarray(np.array(p)) for p in (A.data, A.indices, A.indptr))
    return Compressed(*parts, shape=A.shape)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sparse_rows_agree_with_scipy(rng, torch, dtype):
    A = sp.random_array((60, 9), density=0.3, format="csr", rng=rng, dtype=dtype)
    here = SparseMatrix(A)
    there = DeviceSparse(compressed(torch, A), place_of(torch.zeros(1)))
    shift, weight, extra = rng.normal(size=9), rng.random(60), rng.normal(size=(60, 2))
    for width in ((), (2,), (5,)):
        v, u = rng.normal(size=(9, *width)), rng.normal(size=(60, *width))
        for less in (None, shift):
            assert_allclose(there.apply(v, less), here.apply(v, less), atol=1e-12)
            assert_allclose(there.cross(u, less), here.cross(u, less), atol=1e-12)
            assert_allclose(there.gram(v, less), here.gram(v, less), atol=1e-10)
            squares = there.cross_and_squares(u, weight, less)[1]
            dense = A.toarray() - (0.0 if less is None else less)
            assert_allclose(squares, weight @ np.square(dense, dtype=float), rtol=1e-5)
        basis = np.linalg.qr(rng.normal(size=(60, 2)))[0]
        steps = [RowStep.projection(basis, basis.T @ (A @ v)) for _ in range(2)]
        assert_allclose(there.gram(v, None, steps[0]), here.gram(v, None, steps[1]), atol=1e-12)
        assert_allclose(steps[0].left, steps[1].left, atol=1e-12)
    assert_allclose(there.moment(extra, weight, None), here.moment(extra, weight, None), atol=1e-12)
    for rows in (slice(3, 20), np.array([5, 2, 2, 40])):
        assert_allclose(there.take(rows).apply(np.eye(9)), A.toarray()[rows])
    for own, its in zip(here.column_panels(4), there.column_panels(4), strict=True):
        assert_allclose(own[1], its[1])
    assert there.find_non_finite() is None
    spoiled = A.copy()
    spoiled.data[7] = np.nan
    found = DeviceSparse(compressed(torch, spoiled), there.place).find_non_finite()
    assert found is not None
    assert found[:2] == SparseMatrix(spoiled).find_non_finite()[:2]


def test_tensors_of_the_host_are_seen_by_numpy(rng, torch):
    X, y, z = game(rng, 50, 3)
    here = torch.asarray(X)
    matrix = as_matrix(here)
    assert isinstance(matrix, DenseMatrix)
    assert np.shares_memory(matrix.values, here.numpy())
    assert_allclose(solve(here, y, z, 1.0).coef, solve(X, y, z, 1.0).coef)


@pytest.mark.parametrize("name", DENSE[::4])
def test_some_of_the_catalogue_by_pytorch(name, torch):
    own = problem(name)
    X = np.asarray(own.X, dtype=float)
    there = DeviceDense(torch.asarray(X.copy()), place_of(torch.zeros(1)))
    a = solve(X, own.y, own.z, own.gamma, **own.options)
    b = solve(there, own.y, own.z, own.gamma, **own.options)
    assert a.status is b.status
    assert abs(a.objective - b.objective) <= 1e-9 * (float(np.sum(np.square(own.y))) or 1.0)


def test_the_page_runs(torch, monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    page = Path(__file__).parents[1] / "docs" / "gpu.md"
    pieces = re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    assert len(pieces) == 2
    space: dict[str, object] = {}
    for piece in pieces:
        exec(compile(piece, page.name, "exec"), space)


# How rows are shared among multiprocessors.


@pytest.mark.parametrize("itemsize", [4, 8])
@pytest.mark.parametrize("width", [1, 2])
def test_shared_rows_fit(itemsize, width):
    room = 232_448
    for n in (100, 2048, 5000, 10_000, 14_000, 20_000, 100_000):
        shape = _Shape.of(n, itemsize, width, room)
        if shape is None:
            assert n < 2048 or n > 5000 // width
            continue
        assert shape.cluster * shape.segment >= n
        assert shape.packs * (16 // itemsize) * 512 >= shape.segment
        assert shape.stages * shape.rows * shape.segment * itemsize <= room - 4096


# Numbers of rows that stay on the device.


@pytest.fixture
def far(monkeypatch):
    """Labels and goals stay on the device however few they are."""
    monkeypatch.setattr("spgls.base.validation.LONG", 1)


@pytest.mark.parametrize("name", DENSE[::4])
def test_far_labels_give_the_games_of_numpy(name, far):
    given = problem(name)
    y, z = (np.asarray(t, dtype=float) for t in (given.y, given.z))
    there = [put(np.asarray(given.X)), put(y), put(z)]
    for who in (given.gamma, Population.mixed(given.gamma, honest=0.5)):
        for solver in ("auto", "krylov"):
            ours = solve(*there, who, solver=solver, **given.options)
            theirs = solve(given.X, y, z, who, solver=solver, **given.options)
            assert ours.status is theirs.status
            assert abs(ours.objective - theirs.objective) <= 1e-9 * float(np.sum(y**2))


@pytest.mark.parametrize("weighted", [False, True])
def test_a_fit_brings_no_numbers_of_rows_to_the_host(rng, far, monkeypatch, weighted, moved):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    m = 20_000
    X, y, z = game(rng, m=m, n=5)
    weight = rng.random(m) if weighted else None
    there = [put(X), put(y)]
    more = {"z": put(z)} | ({"sample_weight": put(weight)} if weighted else {})
    moved["put"].clear()
    with sklearn.config_context(array_api_dispatch=True):
        ours = StackelbergRegressor().fit(*there, **more)
    theirs = StackelbergRegressor().fit(X, y, z=z, sample_weight=weight)
    assert_allclose(ours.objective_, theirs.objective_, rtol=1e-9)
    assert ours.status_ is theirs.status_
    # Sums, coefficients, and weights of the first rows, of which a typical one is made.
    assert max(moved["get"]) <= 4096


def test_goals_that_are_functions_of_far_labels(rng, far):
    X, y, _ = game(rng)
    goal = Floor(float(np.median(y)))
    ours, theirs = solve(put(X), put(y), goal, 0.5), solve(X, y, goal, 0.5)
    assert_allclose(ours.objective, theirs.objective, rtol=1e-9)


def test_far_numbers_that_are_wrong_are_named(rng, far):
    X, y, z = game(rng)
    y[3] = np.nan
    with pytest.raises(ValueError, match=r"y must be finite; entry 3 is nan"):
        solve(put(X), put(y), put(z), 0.5)
    with pytest.raises(ValueError, match=r"z must have one entry per row of X, 400; got 399"):
        solve(put(X), put(np.ones(400)), put(z[:-1]), 0.5)


def far_array(values):
    values = put(values)
    return FarArray(place_of(values), values)


def test_far_arrays_compute_what_numpy_does(rng):
    a, b = rng.normal(size=(2, 50))
    x, y = far_array(a), far_array(b)
    for job in (
        lambda a, b: a + b,
        lambda a, b: 2.0 * a - b / 3,
        lambda a, b: np.float64(2.0) * -a,
        lambda a, b: 1.0 - a,
        lambda a, b: abs(a) <= np.sqrt(abs(b)),
        lambda a, b: (a * b)[5:40],
        lambda a, b: a**2,
        lambda a, b: a[b > 0.0],
        lambda a, b: ~(a >= b),
        lambda a, b: np.zeros_like(a),
    ):
        found = job(x, y)
        assert isinstance(found, FarArray)
        assert_allclose(np.asarray(found), job(a, b), rtol=1e-15)
    for job in (
        lambda a, b: a @ b,
        lambda a, b: a.sum(),
        lambda a, b: a.max() - a.min(),
        lambda a, b: np.count_nonzero(a > b),
        lambda a, b: (a > 9.0).any() + (a < 9.0).all(),
        lambda a, b: np.array_equal(a, a + 0.0) - np.array_equal(a, b),
        # Whatever nobody has thought of happens on the host.
        lambda a, b: np.median(a),
        lambda a, b: a[np.array([3, 1])].sum(),
        lambda a, b: np.outer(a, b).sum(),
        lambda a, b: float(np.stack([a, b]).std()),
        lambda a, b: (a + np.arange(50.0)).sum(),
    ):
        assert_allclose(job(x, y), job(a, b), rtol=1e-13)


def test_far_arrays_side_by_side(rng):
    a, b = rng.normal(size=(2, 9))
    table = side_by_side(far_array(a), far_array(b), 1.0)
    assert isinstance(table, FarArray)
    assert_allclose(np.asarray(table), np.stack([a, b, np.ones(9)], axis=1))
    assert_allclose(np.asarray(table[:, 1]), b)
    assert_allclose(side_by_side(a, b, 1.0), np.asarray(table))


# Products that are begun before anybody asks.


class Begins(DenseMatrix):
    """Data that begins as a device does, in NumPy; columns differ from the host's by rounding."""

    fused = True

    def __init__(self, values, wrong=0.0):
        super().__init__(values)
        self.wrong, self.asked, self.closed, self.looked = wrong, [], 0, []

    def head_square(self, count):
        self.looked.append(count)
        return np.square(self.values[:count]).sum()

    def begin_krylov(self, targets, told):
        X = self.values
        self.looked.append("begun")
        self._p, self._told = X.T @ targets, told()
        if self._told is None:
            self.close()
            return None
        told = self._told
        start = np.append(told.first * self._p[:, 0] + told.second * self._p[:, 1], told.last)
        self._columns = [start / np.linalg.norm(start)]
        w = self._product(self._columns[0])
        for _ in range(2):
            w -= self._columns[0] * (self._columns[0] @ w)
        self._columns.append(w / np.linalg.norm(w) + self.wrong)
        return self

    def _product(self, r):
        z = self._p[:, 1]
        top = self._told.scale * (self.values.T @ (self.values @ r[:-1]))
        last = self._told.border * (z @ r[:-1]) + self._told.corner * r[-1]
        return np.append(top + self._told.border * r[-1] * z, last)

    def cross(self, u=None, shift=None):
        if u is not None:
            return super().cross(u, shift)
        return self._p, np.square(self.values).sum(axis=0)

    def total(self):
        return np.square(self.values).sum()

    def product(self, told, v):
        if told != self._told or not self._columns:
            return None
        column = self._columns.pop(0)
        if not np.abs(column - v).max() <= 1e-9:
            self._columns = []
            return None
        self.asked.append(len(v))
        v[:] = column
        return self._product(column)

    def close(self):
        self.closed += 1


@pytest.mark.parametrize("wrong", [0.0, 1e-3, np.nan])
def test_products_that_were_begun_are_used(rng, wrong):
    X = rng.random((600, 80))
    y = X[:, :10] @ rng.random(10) + 0.1 * rng.normal(size=600)
    z = np.maximum(y, np.quantile(y, 0.25))
    data = Begins(X, wrong)
    ours, theirs = solve(data, y, z, 0.1, solver="krylov"), solve(X, y, z, 0.1)
    assert ours.status.ok
    assert ours.certificate.kind == "proved"
    assert_allclose(ours.objective, theirs.objective, rtol=1e-9)
    # A column that is not the host's is multiplied anew.
    assert len(data.asked) == (2 if wrong == 0.0 else 1)
    assert data.closed == 1
    # They were begun before anybody looked at the data.
    assert data.looked == ["begun"]
    # No bound is above what a predictor attains.
    assert ours.certificate.lower_bound <= theirs.objective * (1.0 + 1e-12)


def test_other_strengths_do_not_take_what_was_begun(rng):
    X, y, z = game(rng)
    matrix, targets = ScaledMatrix(Begins(X)), np.stack([y, z], axis=1)
    begun = matrix.begin_krylov(targets, lambda: bordered(0.5, y @ z, z @ z))
    told = Targets(matrix, targets, squares=(y @ y, y @ z, z @ z), begun=begun)
    r = np.ones(X.shape[1] + 1) / np.sqrt(X.shape[1] + 1)
    for gamma in (0.5, 2.0):
        problem_of = SphereProblem(told, gamma)
        assert_allclose(problem_of.product(r.copy()), problem_of.dense() @ r, rtol=1e-10)


@pytest.mark.parametrize(
    ("scale", "size", "error"),
    [(1e-90, 1.0, None), (1.0, 1e-90, None), (1.0, np.nan, "X must"), (1.0, 1e200, "too large")],
)
def test_what_was_begun_in_vain_is_closed(rng, scale, size, error):
    X, y, z = game(rng)
    X, y, z = size * X, scale * y, scale * z
    data = Begins(X)
    if error is not None:
        with pytest.raises(ValueError, match=error):
            solve(data, y, z, 0.1, solver="krylov")
    else:
        gamma = 0.5 * (scale / size) ** 2
        ours, theirs = solve(data, y, z, gamma, solver="krylov"), solve(X, y, z, gamma)
        assert ours.status.ok
        assert_allclose(ours.objective, theirs.objective, rtol=0.0, atol=1e-9 * (y @ y))
        # Other units are another game.
        assert data.asked == []
    assert data.looked[0] == "begun"
    assert data.closed == 1


def test_goals_that_are_the_labels_begin_in_vain(rng):
    """Rounding apart, they are other targets than those that were begun with."""
    X, y, _ = game(rng)
    data = Begins(X)
    found = solve(data, y, y * (1.0 + 1e-15), 0.5, solver="krylov")
    assert found.status.value == solve(X, y, y, 0.5, solver="krylov").status.value
    assert data.looked[0] == "begun"
    assert data.closed == 1
    assert data.asked == []


def test_games_that_are_not_plain_begin_nothing(rng):
    X, y, z = game(rng)
    for options in (
        {"fit_intercept": True},
        {"sample_weight": rng.random(len(y))},
        {"feature_cost": np.full(X.shape[1], 2.0)},
    ):
        data = Begins(X)
        assert solve(data, y, z, 0.5, solver="krylov", **options).status.ok
        assert "begun" not in data.looked
