"""The pieces that games are drawn from: sizes, numbers, labels, goals, people, options."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .game import Game, People


@dataclass(frozen=True)
class Level:
    """How far the parts of a game may be apart, in decades."""

    name: str
    spread: float
    gamma: float
    #: Share of games with strengths far beyond even that.
    beyond: float


MODERATE = Level("moderate", spread=4.0, gamma=6.0, beyond=0.0)
EXTREME = Level("extreme", spread=9.0, gamma=8.0, beyond=0.04)


class Dice:
    """Choices of one game, from one generator."""

    def __init__(self, rng: np.random.Generator, level: Level) -> None:
        self.rng, self.level = rng, level

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def pick(self, options: Sequence[Any]) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def power(self, low: float, high: float, size: Any = None) -> Any:
        """Ten to a power between two ends."""
        drawn = 10.0 ** self.rng.uniform(low, high, size)
        return float(drawn) if size is None else drawn

    def graded(self, size: int, decades: float | None = None) -> np.ndarray:
        """Factors that spread over up to so many decades, in any order."""
        reach = self.level.spread if decades is None else decades
        reach *= 1.0 if self.chance(0.4) else self.rng.uniform(0.3, 1.0)
        if size > 1 and self.chance(0.5):
            return self.rng.permutation(10.0 ** np.linspace(-reach / 2, reach / 2, size))
        return self.power(-reach / 2, reach / 2, size)

    def disturbed(self, value: np.ndarray, low: float = -16.0, high: float = -4.0) -> np.ndarray:
        """Nearly the same numbers."""
        noise = self.rng.normal(size=np.shape(value)) * (np.abs(value).max(initial=0.0) or 1.0)
        return value + self.power(low, high) * noise

    def numbers(self, *shape: int) -> np.ndarray:
        """Whole numbers, short decimals or real ones, all of one magnitude."""
        kind = self.pick(("real", "real", "whole", "short"))
        if kind == "whole":
            return self.rng.integers(-3, 4, shape).astype(float)
        drawn = self.rng.normal(size=shape)
        return np.round(drawn, 1) if kind == "short" else drawn

    def spread_out(self, m: int, n: int) -> np.ndarray:
        """Data whose columns, singular values or entries spread over decades."""
        kind = self.pick(("columns", "columns", "singular values", "diagonal"))
        if kind == "columns":
            return self.numbers(m, n) * self.graded(n)
        if kind == "singular values":
            return self.with_values(m, n, self.graded(min(m, n)))
        X = np.zeros((max(m, n), n))
        X[np.arange(n), np.arange(n)] = self.graded(n)
        return X

    def with_values(self, m: int, n: int, values: np.ndarray) -> np.ndarray:
        """Data of given singular values, as far as rounding allows."""
        shape = (m, len(values)), (n, len(values))
        left, right = (np.linalg.qr(self.rng.normal(size=size))[0] for size in shape)
        return (left * values) @ right.T

    def size(self, rows: int = 12, columns: int = 6) -> tuple[int, int]:
        """Mostly small; a few percent of the games are larger."""
        if self.chance(0.03):
            return int(self.rng.integers(10, 41)), int(self.rng.integers(4, 16))
        return int(self.rng.integers(2, rows + 1)), int(self.rng.integers(1, columns + 1))

    def labels(self, X: np.ndarray) -> np.ndarray:
        m, n = X.shape
        kind = self.pick(("free",) * 5 + ("zero", "constant", "in range", "far from zero", "fit"))
        if kind == "zero":
            return np.zeros(m)
        if kind == "constant":
            return np.full(m, float(self.rng.integers(1, 9)))
        if kind == "far from zero":
            return self.numbers(m) + 100.0
        if kind == "free":
            return self.numbers(m)
        fitted = X @ self.numbers(n)
        return fitted if kind == "in range" else fitted + self.numbers(m)

    def goals(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        m, n = X.shape
        size = float(np.abs(y).max(initial=0.0)) or 1.0
        kind = self.pick(
            ("free",) * 4
            + ("zero", "constant", "y", "shift", "scaled", "floor", "near y", "range", "large")
        )
        if kind == "zero":
            return np.zeros(m)
        if kind == "constant":
            return np.full(m, size * self.pick((-1.0, 0.5, 1.0, 3.0)))
        if kind == "y":
            return y.copy()
        if kind == "shift":
            return y + size * self.pick((0.5, 1.0, -2.0))
        if kind == "scaled":
            return y * self.pick((-1.0, 0.5, 2.0, 3.0))
        if kind == "floor":
            return np.maximum(y, float(np.median(y)))
        if kind == "near y":
            return self.disturbed(y, -16.0, -2.0)
        if kind == "range":
            return X @ self.numbers(n)
        return size * self.numbers(m) * (self.power(0, self.level.spread) if kind == "large" else 1)

    def strength(self, X: np.ndarray, y: np.ndarray) -> float:
        """Anything, or about the squared norm of least squares, where games are least one-sided."""
        reach = self.level.gamma
        if self.chance(self.level.beyond):
            return self.power(-14.0, 14.0)
        if self.chance(0.5):
            with np.errstate(all="ignore"):
                size = float(np.sum((np.linalg.pinv(X) @ y) ** 2))
            if math.isfinite(size) and size > 0.0:
                power = np.clip(math.log10(size) + self.rng.normal(), -reach, reach)
                return float(10.0**power)
        return self.power(-reach, reach)

    def shares(self, groups: int) -> tuple[float, ...]:
        """Shares of some sixteenths or tenths, at times none, that add up to one."""
        whole = self.pick((8, 10, 16, 100))
        cuts = np.sort(self.rng.integers(0 if self.chance(0.2) else 1, whole, groups - 1))
        parts = np.diff(np.concatenate([[0], cuts, [whole]]))
        return tuple(float(part) / whole for part in parts)

    def population(self, X: np.ndarray, y: np.ndarray) -> People:
        """Two to four groups, honest ones in most."""
        groups = self.pick((2, 2, 2, 3, 3, 4))
        gammas = [self.strength(X, y) for _ in range(groups)]
        if self.chance(0.7):
            gammas[int(self.rng.integers(groups))] = math.inf
        return People(tuple(gammas), self.shares(groups))

    def people(self, X: np.ndarray, y: np.ndarray) -> People:
        """One strength in most games, half honest in some, several groups in a few."""
        kind = self.pick(("one",) * 7 + ("half", "half", "groups"))
        if kind == "groups":
            return self.population(X, y)
        gamma = self.strength(X, y)
        return People((gamma,)) if kind == "one" else People((math.inf, gamma), (0.5, 0.5))

    def weight(self, m: int, decades: float = 1.0) -> np.ndarray:
        if self.chance(0.3):
            weight = self.rng.integers(0, 4, m).astype(float)
        else:
            weight = self.graded(m, decades)
        if self.chance(0.2):
            weight[self.rng.random(m) < 0.3] = 0.0
        if not weight.any():
            weight[0] = 1.0
        return weight

    def cost(self, n: int, decades: float = 1.0, immutable: float = 0.3) -> np.ndarray:
        cost = self.graded(n, decades) if self.chance(0.7) else np.ones(n)
        if self.chance(0.6):
            cost[self.rng.random(n) < immutable] = math.inf
        return cost

    def finish(self, X: np.ndarray, y: np.ndarray, z: np.ndarray, **fixed: Any) -> Game:
        """Options at random, except those that a family fixes."""
        m, n = X.shape
        drawn: dict[str, Any] = {
            "fit_intercept": self.chance(0.5),
            "weight": self.weight(m) if self.chance(0.25) else None,
            "cost": self.cost(n) if self.chance(0.25) else None,
            "ridge": self.power(-6.0, 3.0) if self.chance(0.04) else 0.0,
            "store": "fortran" if self.chance(0.05) else "dense",
        }
        people = fixed.pop("people", None) or self.people(X, y)
        return Game(X, y, z, people, **(drawn | fixed), level=self.level.name)
