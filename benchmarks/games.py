"""The data that several benchmarks share; nothing here knows spgls, so any version can be measured.

Each builder starts from a seed of its own and returns features, labels and goals, or features and
labels where the goals belong to an estimator.
"""

from __future__ import annotations

import lzma
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.datasets import make_regression
from sklearn.preprocessing import minmax_scale

__all__ = [
    "STRENGTHS",
    "Data",
    "blog",
    "goals",
    "grid",
    "has_blog",
    "normal",
    "red_wine",
    "regression",
    "scattered",
    "uniform",
    "weak",
    "wine_sized",
]

Data = tuple[Any, np.ndarray, np.ndarray]

#: Strengths of a path, from providers who do what they like to providers who hardly move.
STRENGTHS = np.geomspace(1e-3, 1e3, 100)
_BLOG = ("blogData_train.csv", "blogData_train.csv.xz")
_DENSE = (
    (500, 20),
    (5_000, 20),
    (500_000, 20),
    (5_000, 500),
    (50_000, 500),
    (1_000, 1_000),
    (4_000, 4_000),
    (1_000, 5_000),
    (500, 20_000),
    (20_000, 4_000),
)
_SINGLE = ((5_000, 500), (4_000, 4_000))
_SPARSE = (
    (20_000, 20_000, 0.01),
    (20_000, 20_000, 0.001),
    (20_000, 20_000, 0.0001),
    (5_000, 50_000, 0.001),
    (200_000, 2_000, 0.01),
)


def goals(y: np.ndarray) -> np.ndarray:
    """The lowest quarter wants to be seen where the next one begins."""
    return np.maximum(y, np.quantile(y, 0.25))


def regression(m: int, n: int) -> Data:
    """The paper's dense data: columns brought to the unit interval."""
    X, y = make_regression(m, n, noise=0.1, random_state=0)
    minmax_scale(X, copy=False)
    return X, y, goals(y)


def uniform(m: int, n: int, dtype: type = np.float64, noise: float = 0.5) -> Data:
    rng = np.random.default_rng(0)
    return _labelled(rng.random((m, n)).astype(dtype, copy=False), rng, noise)


def scattered(m: int, n: int, density: float) -> Data:
    """Sparse data, as many entries in each row on average."""
    rng = np.random.default_rng(0)
    return _labelled(sparse.random_array((m, n), density=density, format="csr", rng=rng), rng, 0.5)


def _labelled(X: Any, rng: np.random.Generator, noise: float) -> Data:
    y = np.asarray(X @ rng.normal(size=X.shape[1]), dtype=np.float64)
    y += rng.uniform(0.0, noise, size=X.shape[0])
    return X, y, goals(y)


def weak(density: float) -> Data:
    """Small labels and more columns than rows: every label can be met."""
    rng = np.random.default_rng(0)
    S = sparse.random_array(
        (5_000, 20_000),
        density=density,
        format="csr",
        rng=rng,
        data_sampler=lambda size: rng.normal(size=size),
    )
    S = S[np.diff(S.indptr) > 0]
    y = rng.normal(size=S.shape[0])
    return S, y, goals(y)


def normal(m: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(m, n))
    return X, X @ rng.normal(scale=0.05, size=n) + rng.normal(size=m)


def wine_sized() -> tuple[np.ndarray, np.ndarray]:
    """Marks for 1599 wines by 11 columns, all of them made up."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1599, 11))
    y = np.clip(np.rint(5.6 + X @ rng.normal(scale=0.2, size=11) + rng.normal(size=1599)), 3, 8)
    return X, y


def red_wine() -> tuple[np.ndarray, np.ndarray] | None:
    """The red wines, where SPGLS_DATA leads to them."""
    return _table(("winequality-red.csv",), delimiter=";", skiprows=1)


def blog() -> tuple[np.ndarray, np.ndarray] | None:
    """The blog posts, where SPGLS_DATA leads to them."""
    return _table(_BLOG, delimiter=",")


def has_blog() -> bool:
    """Whether the blog posts are there, without reading them."""
    return _found(_BLOG) is not None


def _found(names: tuple[str, ...]) -> Path | None:
    folder = Path(os.environ.get("SPGLS_DATA") or "nowhere")
    return next((folder / name for name in names if (folder / name).exists()), None)


def _table(names: tuple[str, ...], **how: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """Columns but the last, and the last, of the first of these files that is there."""
    path = _found(names)
    if path is None:
        return None
    with (lzma.open if path.suffix == ".xz" else open)(path, "rt") as file:
        table = np.loadtxt(file, **how)
    return np.ascontiguousarray(table[:, :-1]), table[:, -1].copy()


def grid() -> dict[str, Callable[[], Data]]:
    """Makers of data of many shapes, by name."""
    made: dict[str, Callable[[], Data]] = {}
    for m, n in _DENSE:
        made[f"dense {m} x {n}"] = partial(uniform, m, n)
    for m, n in _SINGLE:
        made[f"float32 {m} x {n}"] = partial(uniform, m, n, np.float32)
    for m, n, density in _SPARSE:
        made[f"sparse {m} x {n}, density {density:g}"] = partial(scattered, m, n, density)
    return made
