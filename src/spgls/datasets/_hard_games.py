"""Games that are hard for one reason each, built from a generator of random numbers.

Data are sums and products of dyadic fractions, which floating point computes exactly, or they are
computed entry by entry with ``fsum``; so they are the same bits on every machine. Each function
returns X, y, z and gamma, and further arguments of :func:`spgls.solve` where the game has any; its
first line says what is special about the game.
"""

from __future__ import annotations

from math import fsum
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.random import Generator
from numpy.typing import NDArray

from spgls.base.types import Array, Vector

__all__: list[str] = []

Built: TypeAlias = tuple[Any, ...]


# Ingredients


def _draws(rng: Generator, *shape: int) -> Array:
    """Nearly normal numbers of variance one: multiples of 2^-11 below 4 in magnitude."""
    return np.asarray(rng.integers(-(2**10), 2**10, size=(3, *shape)).sum(axis=0) / 2.0**10)


def _whole(rng: Generator, *shape: int) -> Array:
    return rng.integers(-3, 4, size=shape).astype(float)


def _label(rng: Generator, X: Any, noise: float = 0.5) -> Vector:
    m, n = X.shape
    return np.asarray(X @ _draws(rng, n) + noise * _draws(rng, m))


def _floor(y: NDArray[np.floating[Any]]) -> Any:
    """The goals of the paper's synthetic data: nobody wants less than the lower quartile."""
    return np.maximum(y, np.sort(y)[len(y) // 4])


def _product(A: Array, B: Array) -> Array:
    """A B with every entry rounded once."""
    return np.array([[fsum(row * column) for column in B.T] for row in A])


def _rotation(rng: Generator, order: int) -> Array:
    """An orthogonal matrix, up to rounding: two reflections."""
    first, second = rng.integers(1, 17, size=(2, order)) * rng.choice((-1.0, 1.0), (2, order))
    mirrors = (np.eye(order) - 2.0 * np.outer(v, v) / fsum(v * v) for v in (first, second))
    return _product(*mirrors)


def _with_spectrum(rng: Generator, m: int, n: int, sigma: Any) -> Array:
    k = min(m, n)
    return _product(_rotation(rng, m)[:, :k] * np.asarray(sigma), _rotation(rng, n)[:k])


def _hadamard(order: int) -> Array:
    H = np.ones((1, 1))
    while len(H) < order:
        H = np.block([[H, H], [H, -H]])
    return H


def _scattered(rng: Generator, m: int, n: int, entries: int) -> Any:
    where = rng.integers(0, m, entries), rng.integers(0, n, entries)
    return sp.csr_array((_draws(rng, entries), where), shape=(m, n))


# Shapes and containers


def plain(rng: Generator, m: int, n: int) -> Built:
    """A linear model with noise; nobody wants less than the lower quartile."""
    X = _draws(rng, m, n)
    y = _label(rng, X)
    return X, y, _floor(y), 0.5


def single(rng: Generator, m: int, n: int) -> Built:
    """A single column, row or entry, and goals further out than the labels."""
    X = _draws(rng, m, n)
    y = _label(rng, X) + 1.0
    return X, y, 2.0 * y + 1.0, 0.25


def sparse_csr(rng: Generator) -> Built:
    """Sparse rows, and everybody wants one more."""
    X = _scattered(rng, 40, 15, 120)
    y = _label(rng, X)
    return X, y, y + 1.0, 0.5


def sparse_csc(rng: Generator) -> Built:
    """Sparse columns with weights and an intercept, which must not fill them."""
    X = _scattered(rng, 40, 15, 120).tocsc()
    y = _label(rng, X) + 2.0
    options = {"fit_intercept": True, "sample_weight": rng.integers(1, 9, 40) / 4.0}
    return X, y, _floor(y), 0.5, options


def sparse_wide(rng: Generator) -> Built:
    """Sparse rows, fewer than columns."""
    X = _scattered(rng, 20, 60, 200)
    y = _label(rng, X)
    return X, y, _floor(y), 0.125


def sparse_large(rng: Generator, m: int, n: int, entries: int, gamma: float) -> Built:
    """Sparse rows of a size at which products are cheaper than decompositions."""
    X = _scattered(rng, m, n, entries)
    y = _label(rng, X)
    return X, y, _floor(y), gamma


def float32(rng: Generator) -> Built:
    """Single precision, of thirds, which double precision does not hold either."""
    X = _draws(rng, 40, 10).astype(np.float32) / np.float32(3)
    y = _draws(rng, 40).astype(np.float32)
    return X, y, _floor(y), 0.5, {"fit_intercept": True}


def float32_sparse(rng: Generator) -> Built:
    """Single precision in sparse rows."""
    X = (_scattered(rng, 40, 12, 100) / 3.0).astype(np.float32)
    y = _draws(rng, 40)
    return X, y, y + 0.5, 0.5


def fortran_order(rng: Generator) -> Built:
    """Data stored by columns."""
    X = np.asfortranarray(_draws(rng, 36, 9))
    y = _label(rng, X)
    return X, y, _floor(y), 0.5


def every_other_row(rng: Generator) -> Built:
    """A view with strides: every other row, every other column backwards."""
    X = _draws(rng, 60, 16)[::2, ::-2]
    y = _label(rng, X)
    return X, y, y + 1.0, 0.5


# Spectra


def ill_conditioned(rng: Generator, m: int, n: int, bits: int, gamma: float) -> Built:
    """Labels mostly in the range of large singular values, so that the multiplier can be small."""
    k = min(m, n)
    X = 8.0 * _with_spectrum(rng, m, n, 2.0 ** -np.rint(np.linspace(0, bits, k)))
    y = _product(X, _draws(rng, n, 1))[:, 0] + _draws(rng, m) / 64.0
    return X, y, y + 0.25 * _draws(rng, m), gamma


def many_scales(rng: Generator) -> Built:
    """Every iteration of a Krylov method finds one more scale."""
    X = _draws(rng, 100, 48) * 2.0 ** -np.rint(np.linspace(0, 16, 48))
    y = X @ (_draws(rng, 48) * 16.0) + _draws(rng, 100) / 16.0
    return X, y, y + _draws(rng, 100), 2.0**18


def differences(rng: Generator) -> Built:
    """Second differences with fixed ends: a spectrum that Krylov methods resolve slowly."""
    X = sp.csr_array(sp.diags([1.0, -2.0, 1.0], [-1, 0, 1], shape=(60, 60)))
    y = X @ _draws(rng, 60) + _draws(rng, 60) / 16.0
    return X, y, y + _draws(rng, 60) / 4.0, 128.0


def rank_deficient(rng: Generator, gamma: float) -> Built:
    """The goals lie outside the range: with a weak provider a null vector has to fill the norm."""
    X = _whole(rng, 30, 6) @ _whole(rng, 6, 10)
    y = X @ _draws(rng, 10) + _draws(rng, 30)
    z = 0.5 * y + 4.0 * _draws(rng, 30)
    return X, y, z + y, gamma


def duplicate_columns(rng: Generator) -> Built:
    """Columns that appear twice, one of them times minus two."""
    X = _draws(rng, 30, 6)
    X = np.c_[X, X[:, :3], -2.0 * X[:, 3:4]]
    y = _label(rng, X)
    return X, y, _floor(y), 0.5, {"fit_intercept": True}


def zero_column(rng: Generator) -> Built:
    """A column of zeros."""
    X = _draws(rng, 30, 7)
    X[:, 3] = 0.0
    y = _label(rng, X)
    return X, y, _floor(y), 0.5


def repeated(rng: Generator) -> Built:
    """Two singular values, each of them many times."""
    X = _hadamard(32)[:, :12] / 4.0
    X[:, 8:] *= 4.0
    y = _label(rng, X)
    return X, y, _floor(y), 2.0


def clustered(rng: Generator) -> Built:
    """Singular values in three clusters, a billionth apart within each."""
    near = 1.0 + np.arange(8) * 2.0**-30
    X = _with_spectrum(rng, 40, 24, np.r_[near, near / 16.0, near / 1024.0] * 8.0)
    y = _product(X, _draws(rng, 24, 1))[:, 0] + _draws(rng, 40) / 16.0
    return X, y, y + _draws(rng, 40), 16.0


def column_scales(rng: Generator) -> Built:
    """Columns whose scales lie six decades apart."""
    scale = 2.0 ** np.rint(np.linspace(-10, 10, 9))
    X = _draws(rng, 40, 9) * scale
    y = X @ (_draws(rng, 9) / scale) + 0.5 * _draws(rng, 40)
    return X, y, _floor(y), 4.0, {"fit_intercept": True}


def far_means(rng: Generator) -> Built:
    """Means of columns up to 8192 where their spread is one."""
    X = _draws(rng, 40, 6) + 2.0 ** np.arange(8, 14)
    y = (X - 2.0 ** np.arange(8, 14)) @ _draws(rng, 6) + _draws(rng, 40) + 512.0
    return X, y, _floor(y), 0.5, {"fit_intercept": True}


# Multipliers and hard cases


def weak_provider(rng: Generator, gamma: float, m: int = 8, n: int = 20) -> Built:
    """More columns than rows and small labels: weak providers let every label be met.

    For seed 6 they do from gamma = 0.7923907, a part in a million from both problems that share it.
    """
    X = _draws(rng, m, n)
    y = _draws(rng, m)
    return X, y, y + 1.0 + _draws(rng, m), gamma


def hard_constant_goal(rng: Generator) -> Built:
    """One goal for everybody, which the intercept can meet, and a weak provider."""
    X = _draws(rng, 30, 5)
    y = _label(rng, X)
    return X, y, np.full(30, 3.0), 512.0, {"fit_intercept": True}


def isolated_column(rng: Generator, nudge: float) -> Built:
    """The lowest singular direction is orthogonal to labels and goals, or nearly so."""
    X = np.zeros((32, 6))
    X[:28, :5] = _draws(rng, 28, 5)
    X[28:, 5] = 0.5
    y = np.r_[_draws(rng, 28), np.full(4, nudge)]
    z = np.r_[y[:28] + _draws(rng, 28), np.zeros(4)]
    return X, y, z, 8.0


def negative(rng: Generator, gamma: float, **options: Any) -> Built:
    """Goals that carry half of the label, and a provider too weak to matter."""
    X = _draws(rng, 40, 6)
    z = _draws(rng, 40) * 2.0
    y = X @ _draws(rng, 6) / 4.0 + z / 2.0 + _draws(rng, 40) / 4.0
    return X, y, z, gamma, options


def negative_sparse(rng: Generator, m: int, n: int, entries: int, gamma: float) -> Built:
    """Sparse rows, goals that carry half of the label, and a weak provider."""
    X = _scattered(rng, m, n, entries) + sp.csr_array(np.eye(m, n) * 4.0)
    z = _draws(rng, m) * 2.0
    y = X @ _draws(rng, n) / 8.0 + z / 2.0 + _draws(rng, m) / 4.0
    return X, y, z, gamma


def negative_options(rng: Generator) -> Built:
    """Goals that carry half of the label, a weak provider, costs and weights."""
    X, y, z, gamma, _ = negative(rng, 64.0)
    options = {
        "feature_cost": 2.0 ** rng.integers(-2, 3, 6),
        "sample_weight": rng.integers(1, 9, 40) / 4.0,
    }
    return X, y, z, gamma, options


def goal_in_range(rng: Generator, gamma: float) -> Built:
    """Goals that a linear model meets exactly."""
    X = _whole(rng, 24, 6)
    y = X @ _draws(rng, 6) + _draws(rng, 24)
    return X, y, X @ _whole(rng, 6), gamma


# Strengths and pulls


def extreme_gamma(rng: Generator, gamma: float, **options: Any) -> Built:
    """Providers a million times stronger, or weaker, than the labels ask for."""
    X = _draws(rng, 40, 8)
    y = _label(rng, X)
    return X, y, _floor(y), gamma, options


def tiny_alpha(rng: Generator) -> Built:
    """Goals opposite to labels that the columns hardly explain: no reason to react."""
    X = _draws(rng, 40, 6)
    y = _draws(rng, 40) / 2.0**11
    return X, y, -y, 1.0


def huge_alpha(rng: Generator, noise: float) -> Built:
    """Goals that nearly reveal the labels."""
    X = _draws(rng, 40, 6)
    y = _label(rng, X)
    return X, y, y + noise * _draws(rng, 40), 1.0


def unattained(rng: Generator, m: int, n: int, shift: float = 0.0, **options: Any) -> Built:
    """Goals that are the labels, or differ from them by a constant."""
    X = _draws(rng, m, n)
    y = _label(rng, X)
    return X, y, y + shift, 0.5, options


# Goals, costs, weights


def constant_goal(rng: Generator, **options: Any) -> Built:
    """One goal for everybody."""
    X = _draws(rng, 30, 5)
    y = _label(rng, X)
    return X, y, np.full(30, 2.0), 0.5, options


def intercept(rng: Generator) -> Built:
    """Columns and labels with means, and an intercept."""
    X = _draws(rng, 40, 8) + 1.0
    y = _label(rng, X) + 3.0
    return X, y, _floor(y), 0.5, {"fit_intercept": True}


def costs(rng: Generator, infinite: int, m: int = 40, n: int = 8) -> Built:
    """Costs over six binary orders, some of them infinite."""
    X = _draws(rng, m, n)
    y = _label(rng, X)
    cost = 2.0 ** rng.integers(-3, 4, n)
    cost[:infinite] = np.inf
    return X, y, _floor(y), 0.5, {"feature_cost": cost}


def weights(rng: Generator) -> Built:
    """Weights, some of them zero."""
    X = _draws(rng, 40, 8)
    y = _label(rng, X)
    return X, y, _floor(y), 0.5, {"sample_weight": rng.integers(0, 5, 40) / 2.0}


def everything(rng: Generator) -> Built:
    """Sparse rows with an intercept, weights, costs and immutable columns."""
    X = _scattered(rng, 40, 14, 250)
    y = _label(rng, X) + 2.0
    cost = 2.0 ** rng.integers(-3, 4, 14)
    cost[[2, 7]] = np.inf
    weight = rng.integers(0, 5, 40) / 2.0
    options = {"fit_intercept": True, "feature_cost": cost, "sample_weight": weight}
    return X, y, _floor(y), 0.5, options
