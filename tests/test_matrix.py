"""Every kind of matrix speaks the same language, to rounding, without copying its data."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp

import spgls
from spgls.base import vector
from spgls.matrix import (
    Matrix,
    ProjectedMatrix,
    ScaledMatrix,
    as_matrix,
    block_diagonal,
    dense,
    range_basis,
)

from .measures import assert_close, peak_bytes, vectors

M, N = 83, 11


def _sparse_values(dtype=np.float64):
    rng = np.random.default_rng(5)
    values = rng.normal(size=(M, N)) * (rng.random((M, N)) < 0.3)
    values[:, 3] = 0.0
    values[[0, 17, M - 1]] = 0.0
    return values.astype(dtype)


def _unsorted(kind):
    a = kind(_sparse_values())
    for start, stop in zip(a.indptr[:-1], a.indptr[1:], strict=True):
        a.indices[start:stop] = a.indices[start:stop][::-1].copy()
        a.data[start:stop] = a.data[start:stop][::-1].copy()
    a.has_sorted_indices = False
    return a


def _duplicated(kind, full_column):
    """Entries stored twice; as COO converts, they stay apart only if built by hand."""
    values = _sparse_values()
    if full_column:
        values[:, 2] = np.arange(1.0, M + 1)
    a = kind(values)
    data = np.repeat(a.data / 2, 2)
    twice = kind((data, np.repeat(a.indices, 2), 2 * a.indptr), shape=a.shape)
    assert twice.nnz == 2 * a.nnz
    return twice


def _with_full_columns(kind, dtype=np.float64):
    values = _sparse_values()
    values[:, [1, 7]] = np.random.default_rng(6).normal([1.0, 50.0], size=(M, 2))
    return kind(values.astype(dtype))


def _masquerade(kind):
    """As many entries as rows in one column, but one row holds two and another none."""
    rng = np.random.default_rng(3)
    rows = np.arange(M)
    rows[-1] = 0
    coo = sp.coo_array((rng.normal(size=M) + 9.0, (rows, np.full(M, 4))), shape=(M, N))
    if kind is sp.csc_array:
        indptr = np.zeros(N + 1, dtype=np.int32)
        indptr[5:] = M
        return kind((coo.data, rows, indptr), shape=(M, N))
    order = np.argsort(rows, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=M))])
    return kind((coo.data[order], np.full(M, 4), indptr), shape=(M, N))


def _long_indices(kind):
    a = kind(_sparse_values())
    a.indices, a.indptr = a.indices.astype(np.int64), a.indptr.astype(np.int64)
    return a


def _dense(seed=4):
    return np.random.default_rng(seed).normal(size=(M, N))


KINDS = {
    "dense C": lambda: _dense(),
    "dense F": lambda: np.asfortranarray(_dense()),
    "every other column": lambda: np.random.default_rng(1).normal(size=(M, 2 * N))[:, ::2],
    "every other row": lambda: np.random.default_rng(1).normal(size=(2 * M, N))[::2],
    "rows backwards": lambda: _dense()[::-1],
    "columns backwards": lambda: _dense()[:, ::-1],
    "broadcast": lambda: np.broadcast_to(np.arange(1.0, N + 1), (M, N)),
    "read-only": lambda: _frozen(_dense()),
    "big-endian": lambda: _dense().astype(">f8"),
    "float32 C": lambda: _dense().astype(np.float32),
    "float32 F": lambda: np.asfortranarray(_dense().astype(np.float32)),
    "float32 view": lambda: np.random.default_rng(1).normal(size=(M, 2 * N)).astype("f4")[:, ::2],
    "float16": lambda: _dense().astype(np.float16),
    "integers": lambda: np.random.default_rng(2).integers(-9, 9, size=(M, N)),
    "truth values": lambda: np.random.default_rng(2).random((M, N)) < 0.4,
    "one row": lambda: _dense()[:1],
    "one column": lambda: _dense()[:, :1],
    "wide": lambda: np.random.default_rng(2).normal(size=(5, 40)),
    "csr": lambda: sp.csr_array(_sparse_values()),
    "csc": lambda: sp.csc_array(_sparse_values()),
    "csr matrix": lambda: sp.csr_matrix(_sparse_values()),
    "csc matrix": lambda: sp.csc_matrix(_sparse_values()),
    "csr float32": lambda: sp.csr_array(_sparse_values(np.float32)),
    "csc float32": lambda: sp.csc_array(_sparse_values(np.float32)),
    "csr integers": lambda: sp.csr_array(np.random.default_rng(2).integers(0, 3, size=(M, N))),
    "csr unsorted": lambda: _unsorted(sp.csr_array),
    "csc unsorted": lambda: _unsorted(sp.csc_array),
    "csr duplicates": lambda: _duplicated(sp.csr_array, False),
    "csc duplicates": lambda: _duplicated(sp.csc_array, False),
    "csr duplicates in a full column": lambda: _duplicated(sp.csr_array, True),
    "csc duplicates in a full column": lambda: _duplicated(sp.csc_array, True),
    "csr masquerade": lambda: _masquerade(sp.csr_array),
    "csc masquerade": lambda: _masquerade(sp.csc_array),
    "csr full columns": lambda: _with_full_columns(sp.csr_array),
    "csc full columns": lambda: _with_full_columns(sp.csc_array),
    "csr float32 full columns": lambda: _with_full_columns(sp.csr_array, np.float32),
    "csc float32 full columns": lambda: _with_full_columns(sp.csc_array, np.float32),
    "csr int64 indices": lambda: _long_indices(sp.csr_array),
    "csc int64 indices": lambda: _long_indices(sp.csc_array),
    "csr empty": lambda: sp.csr_array((M, N)),
    "csc empty": lambda: sp.csc_array((M, N)),
    "csr few": lambda: sp.random_array(
        (400, 90), density=0.02, random_state=np.random.default_rng(9), format="csr"
    ),
    "coo": lambda: sp.coo_array(_sparse_values()),
}


def _frozen(a):
    a.flags.writeable = False
    return a


def _exact(X):
    """What the data holds, as a float64 array."""
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)


@pytest.fixture(params=KINDS, name="X")
def _x(request):
    return KINDS[request.param]()


@pytest.fixture(params=["one block", "many blocks"], autouse=True)
def _block_size(request, monkeypatch):
    """All of this has to hold wherever the data is cut."""
    if request.param == "many blocks":
        for module in ("dense", "sparse"):
            monkeypatch.setattr(
                f"spgls.matrix.{module}.block_length", lambda width, **_: max(1, 70 // width)
            )


def _assert_verbs(a, A):
    """Apply, cross and gram against NumPy, and the adjoint identity."""
    size = np.linalg.norm(A)
    for v in vectors(A.shape[1]):
        assert_close(a.apply(v), A @ v, size * np.linalg.norm(v))
        assert_close(a.gram(v), A.T @ (A @ v), size**2 * np.linalg.norm(v))
    for u in vectors(A.shape[0], seed=1):
        assert_close(a.cross(u), A.T @ u, size * np.linalg.norm(u))
    u, v = vectors(A.shape[0])[0], vectors(A.shape[1])[0]
    bound = 1e-13 * size * np.linalg.norm(u) * np.linalg.norm(v)
    assert abs(a.apply(v) @ u - v @ a.cross(u)) <= bound
    assert abs(a.gram(v) @ v - a.apply(v) @ a.apply(v)) <= 1e-13 * size**2 * (v @ v)


def test_every_kind_follows_the_protocol(X):
    a = as_matrix(X)
    assert isinstance(a, Matrix)
    assert a.shape == X.shape
    assert as_matrix(a) is a


def test_verbs(X):
    _assert_verbs(as_matrix(X), _exact(X))


def _shifts(n):
    some = np.random.default_rng(8).normal(size=n) * 3.0
    return {"all": some, "few": np.where(np.arange(n) % 3 == 1, some, 0.0), "none": np.zeros(n)}


@pytest.mark.parametrize("which", ["all", "few", "none"])
def test_verbs_with_shift(X, which):
    a = as_matrix(X)
    shift = _shifts(a.shape[1])[which]
    A = _exact(X) - shift
    size = np.linalg.norm(_exact(X)) + np.sqrt(a.shape[0]) * np.linalg.norm(shift)
    for v in vectors(a.shape[1]):
        assert_close(a.apply(v, shift), A @ v, size * np.linalg.norm(v))
        assert_close(a.gram(v, shift), A.T @ (A @ v), size**2 * np.linalg.norm(v))
    for u in vectors(a.shape[0]):
        assert_close(a.cross(u, shift), A.T @ u, size * np.linalg.norm(u))


@pytest.mark.parametrize("which", ["all", None])
def test_gram_with_a_map_between(X, which):
    a = as_matrix(X)
    shift = None if which is None else _shifts(a.shape[1])[which]
    A = _exact(X) - (0.0 if shift is None else shift)
    factor = np.random.default_rng(3).random(a.shape[0])
    seen = []

    def middle(rows, t):
        seen.append(rows)
        return (factor[rows] * t.T).T

    for v in vectors(a.shape[1]):
        seen.clear()
        size = (np.linalg.norm(_exact(X)) + np.linalg.norm(A)) ** 2 * np.linalg.norm(v)
        assert_close(a.gram(v, shift, middle), A.T @ (factor * (A @ v).T).T, size)
        assert np.concatenate([np.arange(a.shape[0])[s] for s in seen]).tolist() == list(
            range(a.shape[0])
        )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("which", ["all", "few", None])
def test_moment(X, weighted, which):
    a = as_matrix(X)
    m, n = a.shape
    rng = np.random.default_rng(2)
    extra = rng.normal(size=(m, 3))
    weight = rng.random(m) * (rng.random(m) < 0.8) if weighted else None
    shift = None if which is None else _shifts(n)[which]
    B = np.hstack([_exact(X) - (0.0 if shift is None else shift), extra])
    S = np.ones(m) if weight is None else weight
    reach = np.linalg.norm(_exact(X)) + np.linalg.norm(B)
    assert_close(a.moment(extra, weight, shift), B.T @ (S[:, None] * B), reach**2)


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_panels_reassemble_the_data(X, size):
    a = as_matrix(X)
    for panels, axis in ((a.row_panels(size), 0), (a.column_panels(size), 1)):
        pieces, blocks = zip(*panels, strict=True)
        assert all(block.dtype == np.float64 for block in blocks)
        assert [p.start for p in pieces[1:]] == [p.stop for p in pieces[:-1]]
        np.testing.assert_array_equal(np.concatenate(blocks, axis=axis), _exact(X))


@pytest.mark.parametrize("weighted", [False, True])
def test_typical_row_is_within_reach_of_the_mean(X, weighted):
    """Subtracting it never makes columns longer than twice what they were."""
    a = as_matrix(X)
    weight = np.where(np.arange(a.shape[0]) % 2, 0.0, 2.0) if weighted else None
    row = a.typical_row(weight)
    if row is None:
        return
    values = _exact(X)[:: 2 if weighted else 1]
    before, after = np.linalg.norm(values, axis=0), np.linalg.norm(values - row, axis=0)
    assert (after <= 2 * before + 1e-12).all()


def test_typical_row_ignores_rows_without_weight():
    weight = np.ones(40)
    weight[:5] = 0.0
    values = np.full((40, 3), 7.0)
    values[:5] = 1e200
    for kind in (np.asarray, sp.csr_array, sp.csc_array):
        np.testing.assert_allclose(as_matrix(kind(values)).typical_row(weight), 7.0)


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array])
def test_only_full_columns_of_sparse_data_are_shifted(kind):
    row = as_matrix(_with_full_columns(kind)).typical_row(None)
    assert np.flatnonzero(row).tolist() == [1, 7]
    for other in (_masquerade(kind), _duplicated(kind, True), kind(_sparse_values())):
        assert as_matrix(other).typical_row(None) is None


# Memory


def test_float_data_is_kept_where_it_is():
    for dtype in (np.float64, np.float32):
        values = _dense().astype(dtype)
        for view in (values, values.T, values[::2], values[:, ::3], values[::-1]):
            assert np.shares_memory(as_matrix(view).values, values)
        for kind in (sp.csr_array, sp.csc_array, sp.csr_matrix, sp.csc_matrix):
            a = kind(_sparse_values(dtype))
            kept = as_matrix(a).values
            for part in ("data", "indices", "indptr"):
                assert np.shares_memory(getattr(kept, part), getattr(a, part))


def test_integers_are_converted_once():
    a = as_matrix(np.arange(12).reshape(4, 3))
    assert a.values.dtype == np.float64
    assert np.shares_memory(next(a.row_panels(10))[1], a.values)
    b = as_matrix(sp.csr_array(np.eye(3, dtype=int)))
    assert b.values.dtype == np.float64


def test_nothing_is_written_to_the_data(X):
    a = as_matrix(X)
    held = [a.values] if not sp.issparse(a.values) else [a.values.data, a.values.indices]
    before = [h.copy() for h in held]
    extra, weight = np.ones((a.shape[0], 2)), np.full(a.shape[0], 2.0)
    shift = np.ones(a.shape[1])
    for v, u in zip(vectors(a.shape[1]), vectors(a.shape[0]), strict=True):
        a.apply(v, shift), a.cross(u, shift), a.gram(v, shift, lambda _, t: t)
    a.moment(extra, weight, shift)
    a.typical_row(weight)
    for now, then in zip(held, before, strict=True):
        np.testing.assert_array_equal(now, then)


@pytest.fixture(scope="module")
def tall():
    """32 MB of float64."""
    return np.random.default_rng(0).normal(size=(50_000, 80))


LAYOUTS = {
    "float64": lambda t: t,
    "float64 F": np.asfortranarray,
    "float32": lambda t: t.astype(np.float32),
    "float32 F": lambda t: np.asfortranarray(t.astype(np.float32)),
    "float64 view": lambda t: np.repeat(t, 2, axis=1)[:, ::2],
    "csr": sp.csr_array,
    "csr float32": lambda t: sp.csr_array(t.astype(np.float32)),
    "csc float32": lambda t: sp.csc_array(t.astype(np.float32)),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("_block_size", ["one block"], indirect=True)
def test_no_verb_copies_the_data(layout, tall):
    a = as_matrix(LAYOUTS[layout](tall))
    m, n = a.shape
    v, u = np.ones((n, 2)), np.ones((m, 2))
    shift = np.ones(n)
    # Results, their double over rows, and a few blocks; a float64 copy alone has 32 MB.
    allowed = 2 * u.nbytes + 20e6
    for verb in (
        lambda: a.apply(v),
        lambda: a.cross(u),
        lambda: a.gram(v),
        lambda: a.apply(v, shift),
        lambda: a.cross(u, shift),
        lambda: a.gram(v, shift),
        lambda: a.moment(u, None, shift),
        lambda: a.moment(u, u[:, 0], None),
        lambda: a.typical_row(u[:, 0]),
    ):
        verb()  # loads the compiler where it is wanted, which is no copy of the data
        assert peak_bytes(verb) < allowed


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("_block_size", ["one block"], indirect=True)
def test_sparse_data_is_never_densified(kind, dtype):
    """The dense form would take 160 GB."""
    m, n = 200_000, 100_000
    X = sp.random_array(
        (m, n),
        density=5e-5,
        random_state=np.random.default_rng(0),
        dtype=dtype,
        format=kind((1, 1)).format,
    )
    a = as_matrix(X)
    exact = X.astype(np.float64)
    rng = np.random.default_rng(1)
    v, u = rng.normal(size=n), rng.normal(size=m)
    shift = np.where(np.arange(n) % 1000 == 0, 1.0, 0.0)
    wanted = exact @ v

    def check():
        assert_close(a.apply(v), wanted, np.linalg.norm(wanted))
        assert_close(a.cross(u), exact.T @ u, np.linalg.norm(u))
        assert_close(a.gram(v), exact.T @ wanted, np.linalg.norm(wanted))
        assert_close(a.apply(v, shift), wanted - shift @ v, np.linalg.norm(wanted))
        assert a.typical_row(None) is None

    assert peak_bytes(check) < 60 * 2**20


@pytest.mark.parametrize("layout", ["float32", "float32 F", "csr float32", "csc float32"])
def test_float32_data_has_float64_results(layout):
    """Products of the float32 values as if they had been widened before: no float32 rounding."""
    X = LAYOUTS[layout](np.random.default_rng(0).normal(size=(3000, 40)) + 3.0)
    a, A = as_matrix(X), _exact(X)
    assert a.values.dtype == np.float32
    v, u = vectors(40)[0], vectors(3000)[0]
    for got, wanted in (
        (a.apply(v), A @ v),
        (a.cross(u), A.T @ u),
        (a.gram(v), A.T @ (A @ v)),
        (a.moment(u[:, None], None, None)[:40, :40], A.T @ A),
        (a.moment(u[:, None], None, v)[:40, :40], (A - v).T @ (A - v)),
    ):
        assert np.linalg.norm(got - wanted) <= 1e-13 * np.linalg.norm(wanted)


# Lazy wrappers


def _scalings(m, n):
    rng = np.random.default_rng(7)
    row, column = rng.random(m) + 0.1, rng.random(n) + 0.5
    some = np.flatnonzero(np.arange(n) % 3 != 1)
    return {
        "nothing": (None, None, None, None),
        "rows": (row, None, None, None),
        "columns": (None, some, None, None),
        "prices": (None, None, column, None),
        "all": (row, some, column[some], None),
        "all and shift": (row, some, column[some], rng.normal(size=n)),
    }


def _scaled(A, row, columns, column, shift):
    A = A - (0.0 if shift is None else shift)
    A = A if columns is None else A[:, columns]
    A = A if column is None else A * column
    return A if row is None else row[:, None] * A


@pytest.mark.parametrize("which", ["nothing", "rows", "columns", "prices", "all", "all and shift"])
def test_scaled(X, which):
    scaling = _scalings(*X.shape)[which]
    a = ScaledMatrix(as_matrix(X), *scaling)
    A = _scaled(_exact(X), *scaling)
    assert a.shape == A.shape
    _assert_verbs(a, A)


@pytest.mark.parametrize("which", ["nothing", "rows", "all"])
@pytest.mark.parametrize("free", ["nothing", "intercept", "columns", "both"])
def test_projected(X, which, free):
    m, n = X.shape
    scaling = _scalings(m, n)[which]
    ones = np.ones((m, 1)) if scaling[0] is None else scaling[0][:, None]
    others = np.random.default_rng(1).normal(size=(m, 2))
    F = {
        "nothing": np.zeros((m, 0)),
        "intercept": ones,
        "columns": others,
        "both": np.hstack([ones, others]),
    }[free]
    Q = range_basis(F)
    A = _scaled(_exact(X), *scaling)
    a = ProjectedMatrix(ScaledMatrix(as_matrix(X), *scaling), Q)
    PA = A - Q @ (Q.T @ A)
    size = np.linalg.norm(A)
    for v in vectors(A.shape[1]):
        assert_close(a.apply(v), PA @ v, size * np.linalg.norm(v))
        assert_close(a.gram(v), PA.T @ (PA @ v), size**2 * np.linalg.norm(v))
        assert np.linalg.norm(Q.T @ a.apply(v)) <= 1e-13 * size * np.linalg.norm(v)
    for u in vectors(m):
        assert_close(a.cross(u), PA.T @ u, size * np.linalg.norm(u))
    v, u = vectors(A.shape[1])[0], vectors(m)[0]
    bound = 1e-13 * size * np.linalg.norm(u) * np.linalg.norm(v)
    assert abs(a.apply(v) @ u - v @ a.cross(u)) <= bound


def test_range_basis_is_orthonormal_and_spans():
    rng = np.random.default_rng(0)
    F = rng.normal(size=(30, 3)) * [1.0, 1e8, 1e-8]
    F = np.column_stack([F, F[:, 0] + F[:, 2] * 1e8, np.zeros(30)])
    Q = range_basis(F)
    assert Q.shape == (30, 3)
    np.testing.assert_allclose(Q.T @ Q, np.eye(3), atol=1e-14)
    rest = F - Q @ (Q.T @ F)
    assert (np.linalg.norm(rest, axis=0) <= 1e-14 * np.linalg.norm(F, axis=0)).all()


def test_range_basis_of_nothing():
    assert range_basis(np.zeros((4, 2))).shape == (4, 0)
    assert range_basis(np.zeros((4, 0))).shape == (4, 0)


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("solver", ["spectral", "krylov", "auto"])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_indices_out_of_order_stay_as_they_are(kind, solver, fit_intercept):
    """Products of sparse matrices have such; sorting them in place would mix up the entries."""
    rng = np.random.default_rng(3)
    table = rng.normal(size=(40, 12)) * (rng.random((40, 12)) < 0.5)
    X = kind(table)
    for start, stop in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        X.indices[start:stop] = X.indices[start:stop][::-1].copy()
        X.data[start:stop] = X.data[start:stop][::-1].copy()
    X.has_sorted_indices = False
    y, z = rng.normal(size=(2, 40))
    before = X.data.copy(), X.indices.copy(), X.indptr.copy()
    how = {
        "solver": solver,
        "fit_intercept": fit_intercept,
        "feature_cost": [*[1.0] * 10, 2, np.inf],
    }
    found, wanted = (spgls.solve(data, y, z, 1.0, **how) for data in (X, table))
    assert found.objective == pytest.approx(wanted.objective, rel=1e-9)
    for was, now in zip(before, (X.data, X.indices, X.indptr), strict=True):
        np.testing.assert_array_equal(now, was)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n", [dense._NARROW - 3, dense._NARROW, dense._NARROW + 1])
def test_moment_of_few_and_of_many_columns(n, order, monkeypatch):
    """Both ways to a square, at the width where they meet; panels of unequal length."""
    monkeypatch.setattr(dense, "_PANEL_BYTES", {"C": 0, "F": 0})
    rng = np.random.default_rng(n)
    X = np.asarray(rng.normal(size=(1300, n)) + 2.0, order=order)
    extra, weight, shift = rng.normal(size=(1300, 3)), rng.random(1300), rng.normal(size=n)
    a = as_matrix(X)
    for w, s, e in itertools.product((None, weight), (None, shift), (extra, extra[:, :0])):
        B = np.hstack([X if s is None else X - s, e])
        B = B if w is None else np.sqrt(w)[:, None] * B
        found = a.moment(e, w, s)
        np.testing.assert_array_equal(found, found.T)
        assert_close(found, B.T @ B, np.linalg.norm(B) ** 2)


@pytest.mark.parametrize("order", ["C", "F"])
def test_squares_of_few_columns_let_other_threads_run(order, monkeypatch):
    """SciPy's products hold the interpreter's lock, and so up the thread that reads a stream."""

    def holds_the_lock(*_args, **_options):
        raise AssertionError("other threads wait for this")

    monkeypatch.setattr(dense, "dsyrk", holds_the_lock)
    monkeypatch.setattr(dense, "dgemm", holds_the_lock)
    X = np.asarray(np.random.default_rng(0).normal(size=(3000, 100)), order=order)
    for shift in (None, np.ones(100)):
        as_matrix(X).moment(np.ones((3000, 3)), None, shift)


@pytest.mark.parametrize("length", [0, 1, 8192, 8193, 100_000])
@pytest.mark.parametrize("by_row", [True, False])
def test_inner_products_of_any_length(length, by_row, monkeypatch):
    """In pieces, whether or not NumPy has inner products of rows."""
    if not by_row:
        monkeypatch.setattr("spgls.base.vector._inner_products", vector._one_by_one)
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, length)), rng.normal(size=(length, 2))
    exact = math.fsum((a[0] * b[:, 1]).tolist())
    assert vector.dot(a[0], b[:, 1]) == pytest.approx(exact, rel=1e-12, abs=1e-11)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("cached", [True, False])
def test_data_in_cache_and_in_blocks_has_the_same_products(order, cached, monkeypatch):
    if not cached:
        monkeypatch.setattr("spgls.matrix.dense._CACHED", 0)
        monkeypatch.setattr("spgls.matrix.dense.CACHE_BYTES", 2**12)
    rng = np.random.default_rng(0)
    X = np.asarray(rng.normal(size=(130, 17)), order=order)
    matrix = as_matrix(X)
    assert matrix.fused != cached
    u, v = rng.normal(size=(130, 2)), rng.normal(size=17)
    np.testing.assert_allclose(matrix.cross(u), X.T @ u, atol=1e-12)
    np.testing.assert_allclose(matrix.gram(v), X.T @ (X @ v), atol=1e-12)
    assert matrix.total_square() == pytest.approx(np.sum(X**2), rel=1e-13)


@pytest.mark.parametrize("weighted", [True, False])
def test_data_in_cache_is_taken_in_parts_where_it_is_long(weighted, monkeypatch):
    """One product for some rows after the other, with what stands beside the data."""
    monkeypatch.setattr("spgls.matrix.dense._PARTED", 2**12)
    rng = np.random.default_rng(0)
    X, target, v = rng.normal(size=(130, 17)), rng.normal(size=130), rng.normal(size=17)
    row = rng.random(130) if weighted else None
    matrix = as_matrix(X)
    seen = []
    monkeypatch.setattr(type(matrix), "row_panels", _noting(type(matrix).row_panels, seen))
    product, last = ScaledMatrix(matrix, row).gram_beside(v, target, 0.5)
    A = X if row is None else row[:, None] * X
    t = A @ v + 0.5 * target
    np.testing.assert_allclose(product, A.T @ t, rtol=1e-12, atol=1e-12)
    assert last == pytest.approx(target @ t, rel=1e-12)
    assert len(seen) == 1
    assert seen[0] < 130


def _noting(function, seen):
    def noted(self, rows):
        seen.append(rows)
        return function(self, rows)

    return noted


def test_blocks_along_a_diagonal():
    """Dense and sparse ones, zeros that are stored, and nothing but an array comes out."""
    blocks = [np.array([[1.0, 0.0], [2.0, 3.0]]), sp.coo_array(np.array([[4.0]])), np.ones((1, 2))]
    found = block_diagonal(blocks)
    assert isinstance(found, sp.csr_array)
    expected = np.zeros((4, 5))
    expected[:2, :2], expected[2, 2], expected[3, 3:] = blocks[0], 4.0, 1.0
    np.testing.assert_array_equal(found.toarray(), expected)
    assert found.nnz == 7
