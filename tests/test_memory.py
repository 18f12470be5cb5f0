"""What a solve needs beyond the data: blocks and something of the size of a Gram matrix."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
import scipy.sparse as sp

from spgls import solve
from spgls.solvers import Spectral

from .measures import peak_bytes

MB = 1e6
M, N = 20_000, 500


@pytest.fixture(scope="module")
def labels():
    rng = np.random.default_rng(1)
    y = rng.normal(size=M)
    return y, np.maximum(y, 1.0)


@pytest.fixture(scope="module")
def dense():
    return np.random.default_rng(0).normal(size=(M, N)).astype(np.float32)


def _buffers(X):
    return [X.data, X.indices, X.indptr] if sp.issparse(X) else [X]


def _hash(X):
    return [hashlib.sha256(np.ascontiguousarray(b).tobytes()).hexdigest() for b in _buffers(X)]


def _freeze(X):
    """Make writing to the data an error, not only a difference."""
    for buffer in _buffers(X):
        buffer.flags.writeable = False


def _peak(X, labels, **options):
    """Most bytes beyond X at any moment of a solve."""
    y, z = labels
    before = _hash(X)
    _freeze(X)
    found = []
    # Compiled code is loaded by the first call that needs it, and is not part of a solve.
    solve(X, y, z, 1.0, **options)
    peak = peak_bytes(lambda: found.append(solve(X, y, z, 1.0, **options)))
    assert found[0].certificate.relative_gap <= 1e-9
    assert _hash(X) == before
    return peak


def test_tracemalloc_sees_arrays_and_workspaces():
    """Without this the other tests would pass whatever was allocated."""
    from scipy.linalg import eigh

    G = np.eye(300)
    # The eigenvectors and a workspace of twice their size.
    assert peak_bytes(lambda: eigh(G, driver="evd")) >= 2 * G.nbytes


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("order", ["C", "F"])
def test_float32_costs_less_than_the_data_itself(dense, labels, order, fit_intercept):
    X = np.array(dense, order=order)
    assert X.nbytes == 40 * MB
    assert _peak(X, labels, fit_intercept=fit_intercept) < 40 * MB


def test_weights_and_costs_copy_nothing(dense, labels):
    cost = np.linspace(0.5, 2.0, N)
    cost[::50] = np.inf
    weight = np.linspace(0.5, 2.0, M)
    peak = _peak(dense.copy(), labels, fit_intercept=True, feature_cost=cost, sample_weight=weight)
    assert peak < 40 * MB


def test_float64(dense, labels):
    assert _peak(dense.astype(np.float64), labels, fit_intercept=True) < 40 * MB


def test_the_triangular_engine(dense, labels):
    """A factor of the data instead of its square: some more blocks, still no copy."""
    solver = Spectral(engine="qr")
    assert _peak(dense.copy(), labels, fit_intercept=True, solver=solver) < 60 * MB


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("density", [0.02, 0.3])
def test_sparse(labels, kind, dtype, density):
    """The data has 0.8 to 36 MB; its dense form would have 80."""
    X = sp.random_array(
        (M, N),
        density=density,
        random_state=np.random.default_rng(0),
        dtype=dtype,
        format=kind((1, 1)).format,
    )
    assert _peak(X, labels, fit_intercept=True) < 40 * MB


def test_wide_data_needs_a_kernel_matrix_only():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 40_000)).astype(np.float32)
    y = rng.normal(size=200)
    assert _peak(X, (y, y + rng.random(200)), fit_intercept=True) < X.nbytes
