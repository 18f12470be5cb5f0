"""Small games of every kind, drawn by hypothesis or from a seed by the same rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from .exact_game import Instance


@dataclass(frozen=True)
class Source:
    """Where the choices of a game come from: hypothesis, or a seeded generator."""

    pick: Callable[[Sequence[Any]], Any]
    number: Callable[[], float]
    uniform: Callable[[float, float], float]

    @classmethod
    def of_hypothesis(cls, draw) -> Source:
        numbers = st.one_of(
            st.integers(-3, 3).map(float), st.floats(-4, 4, allow_subnormal=False, width=32)
        )
        return cls(
            pick=lambda options: draw(st.sampled_from(options)),
            number=lambda: _plain(draw(numbers)),
            uniform=lambda low, high: draw(st.floats(low, high)),
        )

    @classmethod
    def of_seed(cls, *seed: int) -> Source:
        rng = np.random.default_rng(seed)

        def number() -> float:
            return float(rng.integers(-3, 4)) if rng.random() < 0.3 else float(rng.normal())

        return cls(
            pick=lambda options: options[int(rng.integers(len(options)))],
            number=number,
            uniform=lambda low, high: float(rng.uniform(low, high)),
        )

    def numbers(self, *shape: int) -> np.ndarray:
        return np.array([self.number() for _ in range(int(np.prod(shape)))]).reshape(shape)

    def power(self, decades: float) -> float:
        """A factor of up to so many decades either way; one, more often than by chance."""
        return 10.0 ** self.uniform(-decades, decades) if self.pick((True, True, False)) else 1.0


def _plain(value: float) -> float:
    """Entries of one magnitude: scales are a choice of their own."""
    return 0.0 if abs(value) < 1e-3 else value


@dataclass(frozen=True)
class Scales:
    """Decades by which the parts of a game may differ."""

    columns: float
    labels: float
    gamma: float
    cost: float
    weight: float


MODERATE = Scales(columns=3, labels=1, gamma=4, cost=1, weight=1)
EXTREME = Scales(columns=8, labels=8, gamma=8, cost=8, weight=4)


def make_game(source: Source, scales: Scales) -> Instance:
    m, n = source.pick((1, 2, 3, 3, 4, 4, 5, 5, 6, 6, 6)), source.pick((1, 1, 2, 2, 3, 3, 4))
    X = _columns(source, m, n, scales)
    y = _labels(source, X, scales)
    z = _goals(source, X, y, scales)
    return Instance(
        X,
        y,
        z,
        gamma=10.0 ** source.uniform(-scales.gamma, scales.gamma),
        fit_intercept=source.pick((False, True)),
        feature_cost=_cost(source, n, scales),
        sample_weight=_weight(source, m, scales),
    )


def _columns(source: Source, m: int, n: int, scales: Scales) -> np.ndarray:
    kind = source.pick(("free", "free", "duplicate", "zero", "constant", "low rank", "rows"))
    X = source.numbers(m, n)
    if kind == "low rank":
        # Small whole numbers and powers of two: the rank is exact.
        X = np.rint(source.numbers(m, 1)) @ np.rint(source.numbers(1, n))
    elif kind == "rows":
        X = X[[int(v) for v in np.arange(m) % max(1, m // 2)]]
    elif kind == "zero":
        X[:, -1] = 0.0
    elif kind == "constant":
        X[:, -1] = source.number()
    for j in range(n):
        scale = source.power(scales.columns)
        X[:, j] *= 2.0 ** np.rint(np.log2(scale)) if kind == "low rank" else scale
    if kind == "duplicate":
        X[:, -1] = X[:, 0] * source.pick((1.0, -2.0, 2.0**-10))
    return X


def _labels(source: Source, X: np.ndarray, scales: Scales) -> np.ndarray:
    m, n = X.shape
    kind = source.pick(
        ("free", "free", "free", "free", "zero", "constant", "in range", "far from zero")
    )
    if kind == "zero":
        return np.zeros(m)
    if kind == "in range":
        y = X @ source.numbers(n)
    elif kind == "constant":
        y = np.full(m, source.number())
    else:
        y = source.numbers(m)
        if kind == "far from zero":
            y = y + 100.0
    return y * source.power(scales.labels)


def _goals(source: Source, X: np.ndarray, y: np.ndarray, scales: Scales) -> np.ndarray:
    m, n = X.shape
    size = float(np.abs(y).max()) or 1.0
    kinds = ("free", "free", "zero", "constant", "y", "shift", "scaled", "floor", "near y", "range")
    kind = source.pick(kinds)
    if kind == "zero":
        return np.zeros(m)
    if kind == "constant":
        return np.full(m, source.number() * size)
    if kind == "y":
        return y.copy()
    if kind == "shift":
        return y + source.pick((0.5, 1.0, -2.0)) * size
    if kind == "scaled":
        return y * source.pick((-1.0, 0.5, 2.0, 3.0))
    if kind == "floor":
        return np.maximum(y, float(np.median(y)))
    if kind == "near y":
        return y + 10.0 ** source.uniform(-16, -2) * size * source.numbers(m)
    if kind == "range":
        return X @ source.numbers(n)
    return size * source.numbers(m) * source.power(scales.labels)


def _cost(source: Source, n: int, scales: Scales) -> np.ndarray | None:
    kind = source.pick(("none", "none", "none", "costs", "costs", "some", "some", "all immutable"))
    if kind == "none":
        return None
    cost = np.array([source.power(scales.cost) for _ in range(n)])
    if kind == "all immutable":
        return np.full(n, np.inf)
    if kind == "some":
        cost[[source.pick((True, False, False)) for _ in range(n)]] = np.inf
    return cost


def _weight(source: Source, m: int, scales: Scales) -> np.ndarray | None:
    kind = source.pick(("none", "none", "none", "weights", "some zero"))
    if kind == "none":
        return None
    weight = np.array([source.power(scales.weight) for _ in range(m)])
    if kind == "some zero":
        weight[[source.pick((True, False)) for _ in range(m)]] = 0.0
        weight[-1] = weight[-1] or 1.0
    return weight


@st.composite
def games(draw, scales: Scales) -> Instance:
    return make_game(Source.of_hypothesis(draw), scales)
