"""Games large enough for compiled products, their answers, and what the products need."""

from __future__ import annotations

import pickle
import sys
import tracemalloc

import numpy as np
import scipy.sparse as sp

import spgls
from spgls.matrix import as_matrix
from spgls.solvers import Krylov

M = 40_000


def _data():
    X = np.random.default_rng(0).normal(size=(M, 130)) + 1.0
    S = sp.random_array((M, 210), density=0.25, random_state=np.random.default_rng(1), format="csr")
    return {
        "dense": X,
        "dense float32": X.astype(np.float32),
        "dense by columns": np.asfortranarray(X),
        "dense float32 by columns": X.astype(np.float32, order="F"),
        "sparse": S,
        "sparse float32": S.astype(np.float32),
        "sparse float32 by columns": S.astype(np.float32).tocsc(),
    }


def _answers(X):
    """Everything that must not depend on how products are made, as arrays by name."""
    rng = np.random.default_rng(2)
    y = rng.normal(size=M) + X[:, [0]].sum(axis=1) - X[:, [1]].sum(axis=1)
    z = np.maximum(y, 1.0)
    mixed = spgls.Population([np.inf, 0.2], [0.5, 0.5])
    solvers = {name: name for name in ("auto", "krylov", "spectral")}
    solvers["krylov by one column"] = Krylov(width=1)
    games = {
        name: spgls.solve(X, y, z, 0.2, solver=solver, fit_intercept=True, tol=1e-13)
        for name, solver in solvers.items()
    }
    for k, one in enumerate(spgls.solve_path(X, y, z, [0.05, 0.5, mixed], tol=1e-13)):
        games[f"path {k}"] = one
    answers = {}
    for name, one in games.items():
        assert one.certificate.relative_gap <= 1e-9, (name, one)
        answers[f"{name}: loss"] = one.objective
        answers[f"{name}: predictor"] = np.append(one.coef, one.intercept)
    model = spgls.StackelbergRegressor(goal=spgls.Floor(1.0)).fit(X, y)
    answers["estimator"] = np.append(model.coef_, model.intercept_)
    return answers


def _products(X):
    """Products of single and double columns, and the most bytes that any of them took."""
    a, rng = as_matrix(X), np.random.default_rng(3)
    found, peaks = {}, []
    for width in (1, 2):
        v, u = rng.normal(size=(X.shape[1], width)), rng.normal(size=(M, width))
        for verb, argument in ((a.apply, v), (a.cross, u), (a.gram, v)):
            tracemalloc.start()
            found[f"{verb.__name__} {width}"] = verb(argument)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    return found, max(peaks)


def main():
    """Write answers, bytes and whether anything was compiled to standard output."""
    answers, peaks, sizes = {}, {}, {}
    for kind, X in _data().items():
        products, peaks[kind] = _products(X)
        answers[kind] = _answers(X) | products
        sizes[kind] = (X.data if sp.issparse(X) else X).nbytes
    compiled = "spgls.matrix.products" in sys.modules
    sys.stdout.buffer.write(pickle.dumps((compiled, answers, peaks, sizes)))
