"""Compiled products: the same numbers as NumPy, and out of the way of small problems."""

from __future__ import annotations

import subprocess
import sys

import numba
import numpy as np
import pytest

from spgls.matrix import DenseMatrix
from spgls.matrix.kernels import cross_pair, gram


@pytest.fixture(params=[1, 2])
def threads(request):
    if request.param > numba.config.NUMBA_NUM_THREADS:
        pytest.skip("this machine has one core")
    before = numba.get_num_threads()
    numba.set_num_threads(request.param)
    yield request.param
    numba.set_num_threads(before)


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (4, 7), (5, 1), (101, 37), (2, 300)])
def test_products_agree_with_numpy(shape, threads):
    rng = np.random.default_rng(sum(shape))
    X = rng.normal(size=shape)
    v, u = rng.normal(size=shape[1]), rng.normal(size=(shape[0], 2))
    size = np.abs(X).T @ (np.abs(X) @ np.abs(v))
    assert np.all(np.abs(gram(X, v) - X.T @ (X @ v)) <= 1e-13 * size)
    size = np.abs(X).T @ np.abs(u)
    assert np.all(np.abs(cross_pair(X, u) - X.T @ u) <= 1e-13 * size)


def test_large_matrices_use_them_and_agree(threads):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2100, 2000))
    v, u = rng.normal(size=2000), rng.normal(size=(2100, 2))
    plain, large = DenseMatrix(X[:, ::2]), DenseMatrix(X)
    assert large._compiled
    assert not plain._compiled
    np.testing.assert_allclose(large.gram(v), X.T @ (X @ v), rtol=1e-10, atol=1e-9)
    np.testing.assert_allclose(large.cross(u), X.T @ u, rtol=1e-10, atol=1e-9)


def test_small_problems_do_not_load_the_compiler():
    code = (
        "import sys, numpy as np, spgls\n"
        "X = np.arange(60.0).reshape(20, 3) % 7\n"
        "spgls.solve(X, X[:, 0], X[:, 1], 0.5)\n"
        "spgls.solve(X, X[:, 0], X[:, 1], 0.5, solver='gltr')\n"
        "sys.exit('numba' in sys.modules or 'sklearn' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
