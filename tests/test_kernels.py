"""Compiled products: the same numbers as NumPy, and out of the way of small problems."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import spgls
from spgls.matrix import ProjectedMatrix, ScaledMatrix, as_matrix
from spgls.matrix.row_step import RowStep

from .measures import assert_close, compile_small, vectors

numba = pytest.importorskip("numba", reason="these are tests of compiled products")
from spgls.matrix import kernels, products  # noqa: E402

SHAPES = [(1, 1), (7, 3), (8, 5), (5, 1), (101, 37), (17, 4099), (4099, 3)]


@pytest.fixture(autouse=True)
def _compile_everything(monkeypatch):
    compile_small(monkeypatch)


@pytest.fixture(params=[1, 2])
def threads(request):
    if request.param > numba.config.NUMBA_NUM_THREADS:
        pytest.skip("this machine has one core")
    before = numba.get_num_threads()
    numba.set_num_threads(request.param)
    yield request.param
    numba.set_num_threads(before)


def _watch(monkeypatch):
    """Names of the compiled products as they are taken."""
    taken = []
    for name in products.__all__:
        product = getattr(products, name)
        monkeypatch.setattr(products, name, lambda *a, n=name, p=product: taken.append(n) or p(*a))
    return taken


@pytest.fixture
def compiled(monkeypatch):
    return _watch(monkeypatch)


def _assert_products(a, A, shift=None, compiled=None):
    """As NumPy has them; none by another way than the compiled one, where that is watched."""
    B = A if shift is None else A - shift
    size = np.abs(A) + (0.0 if shift is None else np.abs(shift))

    def check(product, v, wanted, scale):
        assert_close(product(v, shift), wanted, scale)
        if compiled is not None:
            assert compiled, "a compiled product was expected"
            compiled.clear()

    for v in vectors(A.shape[1]):
        reach = size @ np.abs(v)
        check(a.apply, v, B @ v, reach)
        check(a.gram, v, B.T @ (B @ v), size.T @ reach)
    for u in vectors(A.shape[0], seed=1):
        check(a.cross, u, B.T @ u, size.T @ np.abs(u))


def _sparse(shape, kind, dtype, index=np.int32):
    rng = np.random.default_rng(sum(shape))
    values = rng.normal(size=shape) * (rng.random(shape) < 0.2)
    values[:: max(3, shape[0] // 5)] = 0.0
    a = kind(values.astype(dtype))
    a.indices, a.indptr = a.indices.astype(index), a.indptr.astype(index)
    return a


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("order", ["C", "F"])
def test_dense(shape, dtype, order, threads, compiled):
    X = np.random.default_rng(sum(shape)).normal(size=shape).astype(dtype, order=order)
    _assert_products(as_matrix(X), X.astype(np.float64), compiled=compiled)


def test_long_rows_whose_columns_are_shared_out(threads):
    X = np.random.default_rng(0).normal(size=(11, 8 * 2 * products.kernels.TILE + 5))
    _assert_products(as_matrix(X), X)
    _assert_products(as_matrix(X.T), X.T)


def test_columns_are_read_twice_where_pieces_of_them_would_be_short(threads, monkeypatch):
    X = np.asfortranarray(np.random.default_rng(0).normal(size=(300, 40)))
    assert as_matrix(X).fused
    monkeypatch.setattr("spgls.matrix.dense._RUN_BYTES", 40 * 8 * 100)
    assert not as_matrix(X).fused
    _assert_products(as_matrix(X), X)
    between = RowStep().weighted(np.arange(300.0))
    wanted = X.T @ (np.arange(300.0)[:, None] ** 2 * (X @ np.eye(40)[:, :2]))
    np.testing.assert_allclose(as_matrix(X).gram(np.eye(40)[:, :2], None, between), wanted)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_dense_with_a_shift(shape, dtype, threads, compiled):
    rng = np.random.default_rng(sum(shape))
    shift = rng.normal(size=shape[1])
    X = (rng.normal(size=shape) + shift).astype(dtype)
    _assert_products(as_matrix(X), X.astype(np.float64), shift, compiled)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("shape", SHAPES)
def test_sparse(shape, kind, dtype, index, threads, compiled):
    a = as_matrix(_sparse(shape, kind, dtype, index))
    _assert_products(a, a.values.toarray().astype(np.float64), compiled=compiled)


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array])
def test_sparse_entries_in_any_order_and_number(kind, threads):
    a = _sparse((90, 31), kind, np.float64)
    data, indices = np.repeat(a.data / 2, 2), np.repeat(a.indices, 2)
    twice = kind((data[::-1], indices[::-1], (2 * (a.indptr[-1] - a.indptr))[::-1]), shape=a.shape)
    wanted = a.toarray()[::-1] if kind is sp.csr_array else a.toarray()[:, ::-1]
    _assert_products(as_matrix(twice), wanted)
    _assert_products(as_matrix(kind((90, 31))), np.zeros((90, 31)))


def _containers():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(203, 29)) + 3.0
    sparse = _sparse((203, 29), sp.csr_array, np.float64)
    return {
        "dense C": X,
        "dense F": np.asfortranarray(X),
        "dense float32": X.astype(np.float32),
        "csr": sparse,
        "csr float32": sparse.astype(np.float32),
        "csc": sparse.tocsc(),
    }


@pytest.mark.parametrize("kind", _containers())
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("projected", [None, 0, 1, 4])
def test_weights_and_projection(kind, weighted, projected, threads, compiled):
    X = _containers()[kind]
    A = (X.toarray() if sp.issparse(X) else X).astype(np.float64)
    m, n = A.shape
    rng = np.random.default_rng(3)
    row = rng.random(m) if weighted else None
    column = rng.random(n) + 0.5
    A = A * column
    if weighted:
        A = row[:, None] * A
    scaled = ScaledMatrix(as_matrix(X), row, column=column)
    if projected is not None:
        ones = np.ones(m) if row is None else row
        columns = np.column_stack([ones, rng.normal(size=(m, 3))])
        Q = np.linalg.qr(columns[:, :projected])[0]
        a = ProjectedMatrix(scaled, Q)
        A = A - Q @ (Q.T @ A)
    else:
        a = scaled
    for v in vectors(n):
        wanted = A.T @ (A @ v)
        compiled.clear()
        np.testing.assert_allclose(a.gram(v), wanted, rtol=0, atol=1e-12 * np.abs(wanted).max())
        assert compiled


def test_what_stands_between_is_the_same_compiled_or_not(threads):
    """Also where the known part is wrong: what is left along the basis makes up for it."""
    rng = np.random.default_rng(0)
    X, row = rng.normal(size=(61, 5)), rng.random(61)
    Q = np.linalg.qr(rng.normal(size=(61, 3)))[0]
    for v in vectors(5):
        along = rng.normal(size=(3, *v.shape[1:]))
        compiled, plain = (RowStep.projection(Q, along).weighted(row) for _ in range(2))
        got = products.gram(X, v, None, compiled)
        np.testing.assert_allclose(got, X.T @ plain(slice(0, 61), X @ v), rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(compiled.left, plain.left, rtol=1e-11, atol=1e-12)


@pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="this machine has one core")
@pytest.mark.parametrize("kind", _containers())
def test_results_do_not_depend_on_the_number_of_threads(kind):
    a = as_matrix(_containers()[kind])
    before = numba.get_num_threads()
    results = []
    for number in (1, 2):
        numba.set_num_threads(number)
        results.append(
            [a.apply(v) for v in vectors(29)]
            + [a.gram(v) for v in vectors(29)]
            + [a.cross(u) for u in vectors(203)]
        )
    numba.set_num_threads(before)
    for one, two in zip(*results, strict=True):
        np.testing.assert_allclose(one, two, rtol=0, atol=1e-13 * np.abs(one).max())


VIEWS = {
    "every other column": lambda X: X[:, ::2],
    "every other row": lambda X: X[::2],
    "backwards": lambda X: X[::-1],
    "columns of a wider table": lambda X: X[:, :9],
    "big-endian": lambda X: X.astype(">f8"),
}


@pytest.mark.parametrize("view", VIEWS)
def test_views_with_gaps_are_left_to_the_blocks(view, compiled):
    X = VIEWS[view](np.random.default_rng(0).normal(size=(40, 20)))
    _assert_products(as_matrix(X), np.asarray(X, dtype=np.float64))
    assert compiled == []


def test_read_only_data_and_vectors_with_gaps(threads):
    X = np.random.default_rng(0).normal(size=(40, 20))
    X.flags.writeable = False
    a = as_matrix(X)
    V = np.random.default_rng(1).normal(size=(20, 6))[:, ::3]
    np.testing.assert_allclose(a.gram(V), X.T @ (X @ V), rtol=1e-12, atol=1e-12)
    v = np.random.default_rng(1).normal(size=40)[::2]
    np.testing.assert_allclose(a.gram(v), X.T @ (X @ v), rtol=1e-12, atol=1e-12)
    S = sp.csr_array(X)
    for buffer in (S.data, S.indices, S.indptr):
        buffer.flags.writeable = False
    np.testing.assert_allclose(as_matrix(S).gram(v), X.T @ (X @ v), rtol=1e-12, atol=1e-12)
    compiled = products.kernels.gram_part.signatures
    assert all(signature[0].mutable for signature in compiled)


def test_wide_blocks_are_left_to_blas(compiled):
    X = np.random.default_rng(0).normal(size=(40, 20))
    for a in (as_matrix(X), as_matrix(sp.csr_array(X))):
        for V in (np.eye(20), np.zeros((20, 0))):
            np.testing.assert_allclose(a.gram(V), X.T @ (X @ V), rtol=1e-12, atol=1e-12)
    assert compiled == []


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_shows(bad, threads):
    X = np.ones((30, 12))
    X[17, 5] = bad
    v = np.ones(12)
    for values in (X, np.asfortranarray(X), sp.csr_array(X)):
        a = as_matrix(values, check_finite=False)
        assert not np.isfinite(a.gram(v)).any()
        assert np.flatnonzero(~np.isfinite(a.apply(v))).tolist() == [17]


def test_only_large_data_is_compiled(monkeypatch):
    monkeypatch.undo()
    compiled = _watch(monkeypatch)
    X = np.zeros((2100, 2000))
    for small in (X[:1000], X.reshape(-1, 100)):
        as_matrix(small).apply(np.ones(small.shape[1]))
    assert compiled == []
    as_matrix(X).apply(np.ones(2000))
    assert compiled == ["apply"]


def test_without_a_folder_for_the_compiled_code(monkeypatch):
    compile_ = numba.njit

    def refuse(*args, cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return compile_(*args, **options)

    monkeypatch.setattr(kernels, "_njit", refuse)
    assert kernels._kept({})(lambda x: x + 1)(1) == 2


def _python(code, **environment):
    run = subprocess.run(
        [sys.executable, "-c", code], check=False, env={**os.environ, **environment}
    )
    return run.returncode


def test_small_problems_do_not_load_the_compiler():
    code = (
        "import sys, numpy as np, scipy.sparse as sp, spgls\n"
        "X = np.arange(60.0).reshape(20, 3) % 7\n"
        "for A in (X, sp.csr_array(X), sp.csc_array(X)):\n"
        "    spgls.solve(A, X[:, 0], X[:, 1], 0.5)\n"
        "    spgls.solve(A, X[:, 0], X[:, 1], 0.5, solver='gltr', fit_intercept=True)\n"
        "sys.exit('numba' in sys.modules or 'sklearn' in sys.modules)\n"
    )
    assert _python(code) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_products_survive_a_fork():
    """The parent's threads do not exist in a child."""
    code = (
        "import os, warnings, numpy as np\n"
        "from spgls.matrix import products\n"
        "X, v = np.ones((50, 8)), np.ones(8)\n"
        "products.gram(X, v)\n"
        "warnings.simplefilter('ignore', DeprecationWarning)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os._exit(0 if products.gram(X, v)[0] == 400.0 else 1)\n"
        "raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    assert _python(code) == 0


@pytest.mark.parametrize("repeated", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("width", [None, 2, 3])
def test_sizes_of_sparse_data_come_with_the_first_product(
    width, dtype, repeated, threads, compiled
):
    X = _sparse((90, 31), sp.csr_array, dtype)
    if repeated:
        X = sp.csr_array((np.repeat(X.data, 2), np.repeat(X.indices, 2), 2 * X.indptr), X.shape)
    u = np.random.default_rng(0).normal(size=90 if width is None else (90, width))
    a = as_matrix(X)
    product, total = a.cross_and_total(u)
    assert a.longest_sum == np.bincount(X.indices, minlength=31).max()
    assert compiled == ["measured_sparse_cross"]
    dense = X.toarray().astype(np.float64)
    assert_close(product, dense.T @ u, np.abs(dense).T @ np.abs(u))
    assert total is None if repeated else total == pytest.approx(np.sum(dense**2), rel=1e-13)


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array, np.asarray])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("projected", [False, True])
def test_a_target_joins_in_row_by_row(kind, weighted, projected, threads):
    rng = np.random.default_rng(3)
    X = _sparse((90, 31), sp.csr_array, np.float64).toarray()
    row = rng.uniform(0.5, 2.0, size=90) if weighted else None
    matrix = ScaledMatrix(as_matrix(kind(X)), row)
    A, target, v = X if row is None else row[:, None] * X, rng.normal(size=90), rng.normal(size=31)
    if projected:
        basis = np.linalg.qr(rng.normal(size=(90, 2)))[0]
        matrix = ProjectedMatrix(matrix, basis)
        A, target = (t - basis @ (basis.T @ t) for t in (A, target))
    r = A @ v - 0.7 * target
    slope, goal = matrix.gram_beside(v, target, -0.7)
    np.testing.assert_allclose(slope, A.T @ r, atol=1e-12)
    assert goal == pytest.approx(target @ r, abs=1e-12)


@pytest.mark.parametrize("intercept", [False, True])
def test_one_strength_multiplies_one_column_of_sparse_data(intercept, threads, monkeypatch):
    """A second one, of goals, would cost as much as the first."""
    rng = np.random.default_rng(1)
    X = _sparse((300, 40), sp.csr_array, np.float64)
    y, z = rng.normal(size=(2, 300))
    shapes = []
    for name in ("sparse_cross", "measured_sparse_cross", "sparse_gram"):
        own = getattr(products, name)
        monkeypatch.setattr(
            products,
            name,
            lambda A, v, *more, own=own: shapes.append(v.shape[1:]) or own(A, v, *more),
        )
    found = spgls.solve(X, y, z, 0.5, solver="krylov", fit_intercept=intercept)
    exact = spgls.solve(X, y, z, 0.5, solver="spectral", fit_intercept=intercept)
    assert all(shape in ((), (1,)) for shape in shapes)
    assert found.certificate.kind == "proved"
    assert found.objective == pytest.approx(exact.objective, rel=1e-9)
