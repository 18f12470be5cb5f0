"""Data in row blocks, and objects that only follow the protocol, are data like any other."""

from __future__ import annotations

import re
from functools import partial
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import spgls
from spgls.matrix import (
    BlockedMatrix,
    Matrix,
    ProjectedMatrix,
    RowBlocks,
    ScaledMatrix,
    Work,
    as_matrix,
    range_basis,
)
from spgls.matrix.row_step import RowStep
from spgls.reduction.data import GameData

from . import measures
from .catalogue import CATALOGUE, problem
from .measures import assert_close, compile_small, peak_bytes

M, N = 61, 7
CUTS = (0, 1, 20, 20, 43, 60, M)
#: One column more than compiled products take.
vectors = partial(measures.vectors, widest=9)


def _values(seed=0):
    """Some zeros, a full column of large mean, and one that is empty in a block."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(M, N)) * (rng.random((M, N)) < 0.5)
    X[:, 2] = rng.normal(50.0, 1.0, size=M)
    X[20:43, 4] = 0.0
    return X


def _cut(X, cuts=CUTS):
    """Rows between the cuts; one block is empty and two have one row."""
    return [X[a:b] for a, b in pairwise(cuts)]


def _of_each_kind():
    kinds = (
        np.ascontiguousarray,
        np.asfortranarray,
        lambda X: X.astype(np.float32),
        sp.csr_array,
        lambda X: sp.csc_array(X.astype(np.float32)),
        lambda X: RowBlocks([X]),
    )
    return [kind(X) for kind, X in zip(kinds, _cut(_values().round(3)), strict=True)]


KINDS = {
    "C order": lambda: _cut(_values()),
    "F order": lambda: [np.asfortranarray(X) for X in _cut(_values())],
    "float32": lambda: _cut(_values().astype(np.float32)),
    "csr": lambda: _cut(sp.csr_array(_values())),
    "csr float32": lambda: _cut(sp.csr_array(_values().astype(np.float32))),
    "csc": lambda: [sp.csc_array(X) for X in _cut(_values())],
    "single rows": lambda: _cut(_values(), range(M + 1)),
    "single sparse rows": lambda: _cut(sp.csr_array(_values()), range(M + 1)),
    "one block": lambda: [_values()],
    "blocks of blocks": lambda: [
        RowBlocks(_cut(X, (0, 3, len(X)))) for X in _cut(_values(), (0, 20, M))
    ],
    "of each kind": _of_each_kind,
    "wide": lambda: _cut(np.random.default_rng(1).normal(size=(9, 40)), (0, 2, 3, 9)),
}


def _exact(blocks):
    """What blocks hold, as one float64 array."""
    rows = [
        _exact([inner for _, inner in X.blocks()])
        if isinstance(X, RowBlocks)
        else X.values
        if isinstance(X, Matrix)
        else X
        for X in blocks
    ]
    return np.vstack([X.toarray() if sp.issparse(X) else X for X in rows]).astype(np.float64)


class Stream(BlockedMatrix):
    """Blocks that come anew each time, as a file would give them; counts what was read."""

    def __init__(self, blocks, shape):
        self._given, self._shape, self.read = blocks, shape, 0

    @property
    def shape(self):
        return self._shape

    def blocks(self):
        at = 0
        for block in self._given:
            self.read += block.shape[0]
            yield slice(at, at + block.shape[0]), block
            at += block.shape[0]


@pytest.fixture(params=["plain", "compiled"], autouse=True)
def _compile(request, monkeypatch):
    """Compiled products, which are meant for large data, are tried on small."""
    if request.param == "compiled":
        compile_small(monkeypatch)


plain = pytest.mark.parametrize("_compile", ["plain"], indirect=True)


@pytest.fixture(params=["held", "stream"], name="pair")
def _pair(request, kind):
    """The data in blocks, and as one array."""
    blocks = KINDS[kind]()
    A = _exact([X for X in blocks if X.shape[0]])
    return (RowBlocks(blocks) if request.param == "held" else Stream(blocks, A.shape)), A


each_kind = pytest.mark.parametrize("kind", KINDS)


@each_kind
def test_it_is_a_matrix(pair):
    a, A = pair
    assert isinstance(a, Matrix)
    assert as_matrix(a) is a
    assert a.shape == A.shape
    assert a.fused
    assert a.find_non_finite() is None


@each_kind
@pytest.mark.parametrize("shifted", [False, True])
def test_products(pair, shifted):
    a, A = pair
    m, n = A.shape
    shift = np.where(np.arange(n) % 3 == 2, 50.0, 0.3) if shifted else None
    B = A - shift if shifted else A
    size = np.linalg.norm(A) + np.linalg.norm(B)
    for v in vectors(n):
        assert_close(a.apply(v, shift), B @ v, size * np.linalg.norm(v))
        assert_close(a.gram(v, shift), B.T @ (B @ v), size**2 * np.linalg.norm(v))
    for u in vectors(m, seed=1):
        assert_close(a.cross(u, shift), B.T @ u, size * np.linalg.norm(u))
    v, u = vectors(n)[0], vectors(m)[0]
    gap = a.apply(v, shift) @ u - v @ a.cross(u, shift)
    assert abs(gap) <= 1e-13 * size * np.linalg.norm(u) * np.linalg.norm(v)


@each_kind
def test_any_map_between(pair):
    """It is called with every row once, in order and by its number in the whole."""
    a, A = pair
    factor, seen = np.random.default_rng(3).random(len(A)), []

    def middle(rows, t):
        seen.extend(range(rows.start, rows.stop))
        return (factor[rows] * t.T).T

    for v in vectors(A.shape[1]):
        seen.clear()
        wanted = A.T @ (factor * (A @ v).T).T
        assert_close(a.gram(v, None, middle), wanted, np.linalg.norm(A) ** 2 * np.linalg.norm(v))
        assert seen == list(range(len(A)))


@each_kind
def test_what_is_left_along_a_basis_adds_up_over_blocks(pair):
    """Also where the known part is wrong."""
    a, A = pair
    rng = np.random.default_rng(0)
    row, Q = rng.random(len(A)), np.linalg.qr(rng.normal(size=(len(A), 3)))[0]
    for v in vectors(A.shape[1]):
        along = rng.normal(size=(3, *v.shape[1:]))
        ours, whole = (RowStep.projection(Q, along).weighted(row) for _ in range(2))
        wanted = A.T @ whole(slice(0, len(A)), A @ v)
        size = np.linalg.norm(A) ** 2 * np.linalg.norm(v) + np.linalg.norm(A)
        assert_close(a.gram(v, None, ours), wanted, size)
        assert_close(ours.left, whole.left, size)


@each_kind
@pytest.mark.parametrize("weighted", [False, True])
def test_weights_costs_and_projection(pair, weighted):
    a, A = pair
    rng = np.random.default_rng(2)
    row = rng.random(len(A)) if weighted else None
    column = rng.random(A.shape[1]) + 0.5
    B = A * column * (row[:, None] if weighted else 1.0)
    Q = range_basis((np.ones(len(A)) if row is None else row)[:, None])
    PB = B - Q @ (Q.T @ B)
    projected = ProjectedMatrix(ScaledMatrix(a, row, column=column), Q)
    for v in vectors(A.shape[1]):
        assert_close(projected.gram(v), PB.T @ (PB @ v), np.linalg.norm(B) ** 2 * np.linalg.norm(v))
        assert_close(projected.apply(v), PB @ v, np.linalg.norm(B) * np.linalg.norm(v))


@each_kind
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shifted", [False, True])
def test_moment(pair, weighted, shifted):
    a, A = pair
    rng = np.random.default_rng(2)
    extra = rng.normal(size=(len(A), 2))
    weight = rng.random(len(A)) * (rng.random(len(A)) < 0.8) if weighted else None
    shift = np.full(A.shape[1], 0.7) if shifted else None
    B = np.hstack([A - shift if shifted else A, extra])
    S = np.ones(len(A)) if weight is None else weight
    got = a.moment(extra, weight, shift)
    assert_close(got, B.T @ (S[:, None] * B), (np.linalg.norm(A) + np.linalg.norm(B)) ** 2)


@each_kind
@pytest.mark.parametrize("size", [1, 4, 1000])
def test_panels_reassemble_the_data(pair, size):
    a, A = pair
    for panels, axis in ((a.row_panels(size), 0), (a.column_panels(size), 1)):
        pieces, parts = zip(*panels, strict=True)
        assert all(part.dtype == np.float64 for part in parts)
        assert [p.stop - p.start for p in pieces] == [part.shape[axis] for part in parts]
        assert all(part.shape[axis] == min(size, A.shape[axis]) for part in parts[:-1])
        np.testing.assert_array_equal(np.concatenate(parts, axis=axis), A)


PICKS = {
    "slice": slice(5, 50),
    "within a block": slice(22, 30),
    "every third": slice(None, None, 3),
    "backwards": slice(None, None, -1),
    "in order": np.flatnonzero(np.arange(M) % 5 > 1),
    "together": np.arange(10, 45),
    "twice": np.sort(np.random.default_rng(0).integers(0, M, M)),
    "shuffled": np.random.default_rng(0).permutation(M)[:40],
    "last": np.array([M - 1]),
}


@pytest.mark.parametrize("pick", PICKS)
@each_kind
def test_some_rows(pair, kind, pick):
    a, A = pair
    rows = PICKS[pick]
    if kind == "wide":
        rows = (
            rows if isinstance(rows, slice) and pick != "within a block" else np.array([0, 2, 3, 8])
        )
    some = a.take(rows)
    assert some.shape == A[rows].shape
    assert some.dtype == a.dtype
    v, u = vectors(A.shape[1])[2], vectors(some.shape[0])[2]
    size = np.linalg.norm(A)
    assert_close(some.apply(v), A[rows] @ v, size * np.linalg.norm(v))
    assert_close(some.cross(u), A[rows].T @ u, size * np.linalg.norm(u))
    again = some.take(np.arange(some.shape[0])[::2])
    assert_close(again.apply(v), A[rows][::2] @ v, size * np.linalg.norm(v))
    np.testing.assert_array_equal(next(some.row_panels(len(A)))[1], A[rows])


WHOLE = {
    "C order": np.asarray,
    "F order": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "csr": sp.csr_array,
    "csc": sp.csc_array,
    "csc float32": lambda X: sp.csc_array(X.astype(np.float32)),
    "csr matrix": sp.csr_matrix,
    "csr int64": lambda X: _with_long_indices(sp.csr_array(X)),
}


def _with_long_indices(a):
    a.indices, a.indptr = a.indices.astype(np.int64), a.indptr.astype(np.int64)
    return a


@pytest.mark.parametrize("pick", PICKS)
@pytest.mark.parametrize("kind", WHOLE)
def test_some_rows_of_data_in_one_piece(kind, pick):
    X = WHOLE[kind](_values())
    a, rows = as_matrix(X), PICKS[pick]
    some = a.take(rows)
    A = (X.toarray() if sp.issparse(X) else X)[rows]
    assert some.dtype == X.dtype
    np.testing.assert_array_equal(next(some.row_panels(M))[1], A)
    v = vectors(N)[2]
    assert_close(
        some.gram(v), A.astype(float).T @ (A.astype(float) @ v), np.linalg.norm(A) ** 2 * 9
    )


@plain
@pytest.mark.parametrize("kind", ["C order", "F order", "float32", "csr", "csr int64"])
def test_rows_that_lie_together_are_not_copied(kind):
    X = WHOLE[kind](_values())
    for a in (as_matrix(X), RowBlocks([X, X])):
        for rows in (slice(5, 30), np.arange(5, 30)):
            some = a.take(rows)
            kept = next(iter(some.blocks()))[1].values if isinstance(a, RowBlocks) else some.values
            for part in ("data", "indices") if sp.issparse(X) else ("T",):
                assert np.shares_memory(getattr(kept, part), getattr(X, part))


@plain
def test_a_read_tells_how_long_sums_over_sparse_columns_are():
    X = sp.csr_array(np.eye(60, 20))
    parts = _cut(X, (0, 30, 60))
    held, read = RowBlocks(parts), Stream(parts, X.shape)
    assert held.longest_sum == 1 + 2
    # Nobody reads for it alone: second moments tell, and so does what asks for rows.
    assert read.longest_sum == 60
    read.moment(np.zeros((60, 0)), None, None)
    assert read.longest_sum == 1 + 2
    other = Stream(parts, X.shape)
    assert (other.longest_row, other.longest_sum) == (1, 1 + 2)


@pytest.mark.parametrize("make", [as_matrix, lambda X: RowBlocks([X[:9], X[9:]])])
def test_rows_that_are_not_there(make):
    a = make(_values())
    for rows in (slice(3, 3), np.zeros(0, dtype=int)):
        with pytest.raises(ValueError, match="at least one row; got none"):
            a.take(rows)
    for rows in (np.array([0, M]), np.array([-1, 3])):
        with pytest.raises(IndexError, match=f"between 0 and {M - 1}; got"):
            a.take(rows)


@plain
def test_what_kind_of_data_it_is():
    X = _values()
    for kind in (np.asarray, sp.csr_array, lambda X: X.astype(np.float32)):
        whole, apart = as_matrix(kind(X)), RowBlocks([kind(block) for block in _cut(X)])
        assert apart.dtype == whole.dtype
        assert (apart.threaded, apart.natural_width) == (whole.threaded, 1)
        for ours, theirs in ((apart.work, whole.work), (apart.take(slice(0, 31)).work, None)):
            assert isinstance(ours, Work)
            if theirs is not None:
                assert (ours.rows, ours.columns, ours.by_index) == (M, N, theirs.by_index)
                assert ours.entries == theirs.entries
                assert ours.row_square == theirs.row_square
                assert ours.square == pytest.approx(theirs.square, rel=0.5)
    mixed = RowBlocks([X.astype(np.float32), sp.csr_array(X)])
    assert mixed.dtype == np.float64
    assert mixed.work.by_index
    assert mixed.work.entries == X.size + np.count_nonzero(X)


def test_large_blocks_are_products_of_two_columns(monkeypatch):
    pytest.importorskip("numba", reason="only compiled products take two columns at a time")
    compile_small(monkeypatch)
    X = _values()
    assert (as_matrix(X).natural_width, RowBlocks(_cut(X)).natural_width) == (2, 2)
    assert RowBlocks([X, sp.csr_array(X)]).natural_width == 1
    assert RowBlocks(_cut(X)).threaded


@plain
def test_every_product_reads_every_block_once():
    X = _values()
    stream = Stream(_cut(X), X.shape)
    v, u = vectors(N)[2], vectors(M)[2]
    for verb in (
        lambda: stream.apply(v),
        lambda: stream.cross(u),
        lambda: stream.gram(v, np.ones(N), lambda _, t: t),
        lambda: stream.moment(u, None, None),
        lambda: stream.typical_row(u[:, 0] ** 2),
        lambda: list(stream.row_panels(11)),
        lambda: list(stream.column_panels(N)),
        lambda: stream.find_non_finite(),
        lambda: stream.take(np.arange(0, M, 2)).apply(v),
    ):
        stream.read = 0
        verb()
        assert stream.read == M
    assert stream.take(slice(0, 15)).apply(v).shape == (15, 2)
    stream.read = 0
    assert stream.work.rows == M
    assert (stream.dtype, stream.natural_width, stream.threaded) == (X.dtype, 1, False)
    assert stream.read == 1
    stream.take(slice(2, 15)).apply(v)
    assert stream.read < M


# Digits


@plain
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_typical_row_keeps_the_digits(kind, weighted):
    """Means a million times the deviations, in one column another one in each block."""
    rng = np.random.default_rng(0)
    X = rng.normal([0.0, 1e6, -1e6, 3e6, 0.0], size=(400, 5))
    X[:, 4] = np.repeat([0.0, 1e6, 1e6, 1e6], 100) + rng.normal(size=400)
    weight = rng.uniform(0.1, 2.0, 400) if weighted else None
    blocks = RowBlocks([kind(X[at : at + 100]) for at in range(0, 400, 100)])
    shift = blocks.typical_row(weight)
    near = shift - np.average(X, axis=0, weights=weight)
    assert (np.abs(near[:4]) < 1.0).all()
    assert abs(near[4]) < 1e5
    y = X[:, 0] + rng.normal(size=400)
    z = y + rng.random(400)
    options = {"fit_intercept": True, "sample_weight": weight}
    raw = spgls.solve(blocks, y, z, 0.5, **options)
    whole = spgls.solve(X - X.mean(axis=0), y, z, 0.5, **options)
    assert raw.objective == pytest.approx(whole.objective, rel=1e-9)
    assert raw.status is whole.status


@plain
def test_the_typical_row_is_within_reach_of_the_mean():
    """Subtracting it never makes columns longer than twice what they were."""
    X = np.zeros((1000, 3))
    X[:100] = 1e3
    X[:, 1] = 5.0
    for kind in (np.asarray, sp.csr_array):
        blocks = RowBlocks([kind(block) for block in _cut(X, range(0, 1001, 50))])
        row = blocks.typical_row(None)
        before, after = np.linalg.norm(X, axis=0), np.linalg.norm(X - row, axis=0)
        assert (after <= 2.0 * before).all()
        assert row[1] == pytest.approx(5.0)
    assert RowBlocks(_cut(sp.csr_array(np.eye(60)), (0, 30, 60))).typical_row(None) is None


@plain
def test_blocks_without_weight_have_no_say():
    X = np.vstack([np.full((5, 2), 1e200), np.full((5, 2), 7.0)])
    weight = np.repeat([0.0, 1.0], 5)
    for kind in (np.asarray, sp.csr_array, sp.csc_array):
        blocks = RowBlocks([kind(X[:5]), kind(X[5:])])
        np.testing.assert_allclose(blocks.typical_row(weight), 7.0)


# Games


def _in_blocks(X):
    X = X.tocsr() if sp.issparse(X) else X
    m = X.shape[0]
    return RowBlocks(_cut(X, sorted({0, 1, m // 3, m // 2, m})))


@plain
@pytest.mark.parametrize("name", CATALOGUE)
@pytest.mark.parametrize("solver", ["spectral", "krylov", "auto"])
def test_the_catalogue_in_blocks(solver, name):
    game = problem(name)
    whole, apart = (
        spgls.solve(X, game.y, game.z, game.gamma, **game.options, solver=solver)
        for X in (game.X, _in_blocks(game.X))
    )
    answer = game.answer
    assert apart.status is whole.status
    assert apart.solver == whole.solver
    assert apart.certificate.kind == whole.certificate.kind
    # At an infimum that nobody reaches, a predictor is as close to it as the tolerance asks.
    near = 1e-9 if answer.status == "unattained" else 1e-12
    assert abs(apart.objective - whole.objective) <= near * float(answer.label_size)
    assert apart.certificate.lower_bound <= float(answer.value) + 1e-12 * float(answer.label_size)
    assert apart.certificate.relative_gap <= max(2.0 * whole.certificate.relative_gap, near)


@plain
@pytest.mark.parametrize("kind", ["C order", "csr", "of each kind"])
def test_paths_populations_and_checks(kind):
    blocks = KINDS[kind]()
    X, A = RowBlocks(blocks), _exact([X for X in blocks if X.shape[0]])
    y = A[:, 0] + np.sin(np.arange(M))
    options = {"fit_intercept": True, "feature_cost": [1.0, 2.0, np.inf, 1.0, 1.0, 0.5, 1.0]}
    gammas = [0.01, 1.0, spgls.Population.mixed(2.0, honest=0.5)]
    for solver in ("spectral", "krylov"):
        ours, theirs = (
            spgls.solve_path(T, y, y + 1.0 + y**2, gammas, solver=solver, ridge=0.1, **options)
            for T in (X, A)
        )
        np.testing.assert_allclose(ours.objective, theirs.objective, rtol=1e-9)
    del options["fit_intercept"]
    bounds = [
        spgls.certify(T, y, y + 1.0, 0.5, np.ones(N), intercept=0.5, **options) for T in (X, A)
    ]
    assert bounds[0].lower_bound == pytest.approx(bounds[1].lower_bound, rel=1e-9)


class Own:
    """A matrix that shares no code with ours: just the verbs, on an array."""

    dtype = np.dtype(np.float64)
    fused = False
    threaded = False
    natural_width = 2

    def __init__(self, values):
        self.inner = values
        self.shape = values.shape

    @property
    def work(self):
        m, n = self.shape
        return Work(m, n, m * n, 8.0 * m * n, False, square=m * n * n, row_square=m * m * n)

    def _less(self, shift):
        return self.inner if shift is None else self.inner - shift

    def apply(self, v, shift=None):
        return self._less(shift) @ v

    def cross(self, u, shift=None):
        return self._less(shift).T @ u

    def gram(self, v, shift=None, middle=None):
        t = self.apply(v, shift)
        return self.cross(t if middle is None else middle(slice(0, len(t)), t), shift)

    def moment(self, extra, weight, shift):
        B = np.hstack([self._less(shift), extra])
        return B.T @ (B if weight is None else weight[:, None] * B)

    def typical_row(self, weight):
        return np.average(self.inner, axis=0, weights=weight)

    def row_panels(self, rows):
        for at in range(0, self.shape[0], rows):
            yield slice(at, min(at + rows, self.shape[0])), self.inner[at : at + rows]

    def column_panels(self, columns):
        for at in range(0, self.shape[1], columns):
            yield slice(at, min(at + columns, self.shape[1])), self.inner[:, at : at + columns]

    def take(self, rows):
        return Own(self.inner[rows])

    def find_non_finite(self):
        bad = np.argwhere(~np.isfinite(self.inner))
        return (*bad[0].tolist(), float(self.inner[tuple(bad[0])])) if len(bad) else None


@plain
@pytest.mark.parametrize("shape", [(60, 4), (8, 30)])
def test_a_matrix_of_somebody_else(shape):
    rng = np.random.default_rng(0)
    A = rng.normal(size=shape) + 2.0
    y = A[:, 0] + rng.normal(size=len(A))
    z, X = y + rng.random(len(A)), Own(A)
    assert isinstance(X, Matrix)
    assert as_matrix(X) is X
    weight = rng.random(len(A))
    for solver in (
        "auto",
        "spectral",
        "krylov",
        "gltr",
        "rtr-newton",
        spgls.solvers.Spectral("qr"),
    ):
        for options in ({}, {"fit_intercept": True, "sample_weight": weight}):
            ours, theirs = (spgls.solve(T, y, z, 0.5, solver=solver, **options) for T in (X, A))
            assert ours.status is theirs.status
            assert ours.objective == pytest.approx(theirs.objective, rel=1e-7, abs=1e-12)
    path = spgls.solve_path(X, y, z, [0.1, 1.0, spgls.Population.mixed(1.0)])
    wanted = spgls.solve_path(A, y, z, [0.1, 1.0, spgls.Population.mixed(1.0)])
    np.testing.assert_allclose(path.objective, wanted.objective, rtol=1e-7, atol=1e-12)
    assert spgls.certify(X, y, z, 0.1, path[0].coef).gap <= 1e-9 * (y @ y)
    assert spgls.explain_solver(X, y, z, 0.5).solver == spgls.explain_solver(A, y, z, 0.5).solver
    compared = spgls.compare_solvers(X, y, z, 0.5, solvers=["spectral", "krylov"])
    assert all(trial.solution is not None and trial.solution.status.ok for trial in compared)
    step = spgls.movement(X, z, np.ones(shape[1]), gamma=1.0).step
    np.testing.assert_allclose(step, spgls.movement(A, z, np.ones(shape[1]), gamma=1.0).step)


# Errors


@plain
def test_missing_verbs_are_named():
    class Half:
        shape = 3, 2

        def apply(self, v, shift=None):
            return v

        def gram(self, v, shift=None, middle=None):
            return v

    message = "got Half of shape (3, 2) without dtype, fused, threaded, natural_width, work, cross"
    for call in (
        lambda X: as_matrix(X),
        lambda X: spgls.solve(X, np.ones(3), np.zeros(3), 1.0),
        lambda X: spgls.explain_solver(X),
        lambda X: RowBlocks([X]),
    ):
        with pytest.raises(TypeError, match=re.escape(message)):
            call(Half())
    with pytest.raises(TypeError, match="got the class Own, not an object such as Own"):
        as_matrix(Own)


@plain
def test_a_frame_may_have_columns_called_like_verbs():
    frame = pd.DataFrame(_values()[:, :4], columns=["work", "gram", "fused", "shape"])
    assert as_matrix(frame).shape == (M, 4)


@plain
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, sp.csc_array, Own])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_named_by_its_row(kind, bad):
    X = _values()
    X[33, 5] = bad
    blocks = [kind(block) for block in _cut(X) if len(block)]
    y = np.arange(float(M))
    for table in (RowBlocks(blocks), Stream(blocks, X.shape), RowBlocks([RowBlocks(blocks)])):
        assert table.find_non_finite()[:2] == (33, 5)
        for solver in ("spectral", "krylov", "gltr"):
            for intercept in (False, True):
                with pytest.raises(ValueError, match=f"finite; row 33, column 5 is {bad}"):
                    spgls.solve(table, y, y**2, 1.0, solver=solver, fit_intercept=intercept)
        with pytest.raises(ValueError, match=f"X must be finite; row 33, column 5 is {bad}"):
            spgls.explain_solver(table)


@plain
def test_names_of_columns():
    frame = pd.DataFrame(_values(), columns=list("abcdefg"))
    frame.loc[40, "e"] = np.nan
    X = RowBlocks([frame[:20], frame[20:]])
    y = np.arange(float(M))
    with pytest.raises(ValueError, match="X must be finite; row 40, column 'e' is nan"):
        spgls.solve(X, y, y**2, 1.0)
    with pytest.raises(ValueError, match=r"same columns in the same order; blocks\[1\] has"):
        RowBlocks([frame[:20], frame[20:][list("gfedcba")]])


@plain
def test_data_that_is_finite_but_large():
    """A sum that is not finite does not make its terms so."""
    X = np.full((30, 4), 1e308)
    for a in (as_matrix(X), as_matrix(sp.csr_array(X)), RowBlocks([X[:9], X[9:]])):
        assert a.find_non_finite() is None
    X = np.full((20, 3), 3e38, dtype=np.float32)
    assert as_matrix(X).find_non_finite() is None


@plain
@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ([np.ones((3, 2)), np.ones((2, 3))], r"blocks\[1\] has 3, those before it have 2"),
        ([np.ones((0, 2)), []], "at least one row together; got none"),
        ([], "at least one row together; got none"),
        (np.ones((3, 2)), r"blocks\[0\] must have two dimensions"),
        ([[[1.0, 2.0], [3.0]]], r"blocks\[0\] must be a table .* differ in length"),
        ([np.ones((3, 0))], r"blocks\[0\] must have at least one row and one column"),
    ],
)
def test_blocks_that_do_not_fit(blocks, message):
    with pytest.raises(ValueError, match=message):
        RowBlocks(blocks)


@plain
def test_blocks_that_break_their_word():
    X = _values()
    v = np.ones(N)
    with pytest.raises(ValueError, match="must have 61 rows together, as shape says; got 60"):
        Stream([X[:40], X[40:60]], X.shape).apply(v)
    with pytest.raises(ValueError, match=r"7 columns wide; got one of shape \(21, 6\) for rows 40"):
        Stream([X[:40], X[40:, :6]], X.shape).apply(v)

    class Overlapping(BlockedMatrix):
        shape = M, N

        def blocks(self):
            yield slice(0, 40), X[:40]
            yield slice(39, M), X[39:]

    with pytest.raises(
        ValueError, match=r"must follow each other.*for rows 39 to 61, after 40 rows"
    ):
        Overlapping().gram(v)


@plain
def test_lists_frames_and_integers_are_blocks_too():
    X = np.arange(12).reshape(6, 2)
    a = RowBlocks([X[:2].tolist(), pd.DataFrame(X[2:4]), X[4:], []])
    np.testing.assert_array_equal(next(a.row_panels(6))[1], X)
    assert repr(a) == "RowBlocks of shape (6, 2) in 3 blocks"


# Memory


@plain
def test_no_verb_holds_more_than_blocks():
    """Blocks of 4 MB are made when they are asked for; all of them have 64."""

    class Made(BlockedMatrix):
        shape = 80_000, 100

        def blocks(self):
            for at in range(0, 80_000, 5000):
                yield slice(at, at + 5000), np.random.default_rng(at).random((5000, 100))

    a = Made()
    m, n = a.shape
    v, u, shift = np.ones((n, 2)), np.ones((m, 2)), np.ones(n)
    for verb in (
        lambda: a.apply(v, shift),
        lambda: a.cross(u, shift),
        lambda: a.gram(v, shift),
        lambda: a.moment(u, u[:, 0], shift),
        lambda: a.typical_row(u[:, 0]),
        lambda: a.find_non_finite(),
        lambda: [None for _ in a.row_panels(1000)],
        lambda: a.take(np.arange(0, m, 2)).gram(v),
        lambda: a.work,
    ):
        assert peak_bytes(verb) < 20e6
    y = np.sin(np.arange(m))
    # Eight vectors of the length of the rows are five megabytes.
    for solver in ("spectral", "krylov"):
        found: list[spgls.Solution] = []
        peak = peak_bytes(
            lambda solver=solver, found=found: found.append(
                spgls.solve(a, y, y + 1.0 + y**2, 1.0, solver=solver, fit_intercept=True)
            )
        )
        assert found[0].certificate.relative_gap <= 1e-9
        assert peak < 32e6


@plain
def test_blocks_are_kept_where_they_are():
    blocks = KINDS["C order"]()
    X = RowBlocks(blocks)
    held = [matrix.values for _, matrix in X.blocks()]
    for ours, theirs in zip(held, [b for b in blocks if len(b)], strict=True):
        assert np.shares_memory(ours, theirs)
    data = GameData.from_user(X, np.ones(M), np.zeros(M))
    assert data.matrix is X


@pytest.mark.parametrize(
    "call",
    [
        lambda X, y: spgls.best_response(X, y, [1.0, 2.0], gamma=1.0),
        lambda X, y: spgls.estimate_gamma(X, X, y, [1.0, 2.0]),
        lambda X, y: (
            spgls.StackelbergRegressor(1.0, goal=spgls.Floor(1.0)).fit(X, y).best_response(X, y=y)
        ),
    ],
)
def test_where_rows_are_needed_the_error_says_so(call):
    with pytest.raises(TypeError, match=r"^X must be an array.*got RowBlocks.*solve_path"):
        call(RowBlocks([np.eye(2), np.eye(2)]), np.arange(4.0))
