"""Threads of BLAS: whoever limits them gets back what was there before."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg  # noqa: F401  its BLAS is one of those that are counted
from threadpoolctl import ThreadpoolController

from spgls import solve
from spgls.base import threads
from spgls.solvers import by_reduction


def counts() -> dict[str, int]:
    """Threads by library."""
    found = ThreadpoolController().lib_controllers
    return {one.filepath: one.num_threads for one in found if one.user_api == "blas"}


@pytest.fixture
def two_threads():
    with ThreadpoolController().limit(limits=2, user_api="blas"):
        if set(counts().values()) != {2}:
            pytest.skip("BLAS of this machine does not take two threads")
        yield


def test_numpy_alone_is_limited_and_given_back(two_threads):
    before = counts()
    if not any("numpy.libs" in path for path in before) or len(before) < 2:
        pytest.skip("NumPy and SciPy share one BLAS here")
    with threads.one_numpy_thread(True):
        inside = counts()
    assert {path: 1 if "numpy.libs" in path else 2 for path in before} == inside
    assert counts() == before


@pytest.mark.parametrize("limit", [threads.one_blas_thread, threads.one_numpy_thread])
def test_an_error_gives_threads_back(two_threads, limit):
    before = counts()
    with pytest.raises(RuntimeError, match="stop"), limit(True):
        raise RuntimeError("stop")
    assert counts() == before


def test_a_solve_leaves_threads_as_they_were(two_threads, monkeypatch):
    seen, reduce = [], by_reduction.reduce_spectral

    def watched(*args):
        seen.append(counts())
        return reduce(*args)

    monkeypatch.setattr(by_reduction, "reduce_spectral", watched)
    rng = np.random.default_rng(0)
    X, (y, z) = rng.standard_normal((300, 200)), rng.standard_normal((2, 300))
    before = counts()
    solve(X, y, z, 1.0, solver="spectral")
    assert counts() == before
    # The decomposition keeps the threads of its own BLAS.
    assert max(seen[0].values()) == 2
