"""What tests measure: products, which must be right to rounding, and memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest


def vectors(length: int, seed: int = 0, widest: int = 8) -> list[np.ndarray]:
    """Something to multiply by: a vector, and matrices of one and more columns."""
    rng = np.random.default_rng(seed)
    return [rng.normal(size=shape) for shape in (length, *((length, w) for w in (1, 2, 3, widest)))]


def assert_close(got: np.ndarray, wanted: np.ndarray, scale: float | np.ndarray) -> None:
    """Rounding in proportion to what a product of absolute values would be."""
    assert got.dtype == np.float64
    assert got.shape == wanted.shape
    assert np.all(np.abs(got - wanted) <= 1e-13 * np.maximum(scale, 1e-300))


def peak_bytes(function: Callable[[], Any]) -> int:
    """Most bytes that were held at a time; NumPy tells tracemalloc what it allocates."""
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def compile_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Try compiled products, which are meant for large data, on small."""
    for name in ("dense._LARGE", "dense._SHORT", "sparse._LARGE"):
        monkeypatch.setattr(f"spgls.matrix.{name}", 0)
