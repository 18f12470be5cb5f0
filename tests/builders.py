"""The games tests are played on: seeded random data, tables with named columns, reduced games.

Wherever a seed is asked for, a generator will do, and is drawn from further. Games with known
answers are in ``catalogue.py``, real data is in ``real_games.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.random import Generator

from spgls import Certificate, Population, Solution, certify, solve
from spgls.reduction.reduced import ReducedGame

Arrays = tuple[np.ndarray, np.ndarray, np.ndarray]

#: Kinds of data that every solver has to accept.
KINDS: dict[str, Any] = {
    "C order": np.ascontiguousarray,
    "F order": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "csr": sp.csr_array,
    "csc": sp.csc_array,
    "frame": pd.DataFrame,
}


@dataclass(frozen=True, eq=False)
class Game:
    """What one call of ``solve`` is told."""

    X: Any
    y: np.ndarray
    z: np.ndarray
    gamma: float | Population
    fit_intercept: bool = False
    cost: np.ndarray | None = None
    weight: np.ndarray | None = None
    ridge: float = 0.0

    @property
    def options(self) -> dict[str, Any]:
        return {"feature_cost": self.cost, "sample_weight": self.weight, "ridge": self.ridge}

    @property
    def prices(self) -> np.ndarray:
        return np.ones(self.X.shape[1]) if self.cost is None else self.cost

    @property
    def weights(self) -> np.ndarray:
        return np.ones(len(self.y)) if self.weight is None else self.weight

    @property
    def design(self) -> np.ndarray:
        return np.c_[self.X, np.ones(len(self.y))] if self.fit_intercept else self.X

    def split(self, theta: np.ndarray) -> tuple[np.ndarray, float]:
        """Coefficients and intercept of a predictor of the design."""
        n = self.X.shape[1]
        return theta[:n], float(theta[n]) if self.fit_intercept else 0.0

    @cache  # noqa: B019 - games are few, frozen, and live as long as the tests
    def solve(self) -> Solution:
        rows = self.X, self.y, self.z
        return solve(*rows, self.gamma, fit_intercept=self.fit_intercept, **self.options)

    def certify(self, coef: np.ndarray, intercept: float) -> Certificate:
        told = {"intercept": intercept if self.fit_intercept else None, **self.options}
        return certify(self.X, self.y, self.z, self.gamma, coef, **told)


# Rows


def linear_game(
    m: int,
    n: int,
    seed: int | Generator = 0,
    *,
    spread: float = 1.0,
    noise: float = 1.0,
    floor: float | None = None,
) -> Arrays:
    """A linear model with noise; columns shrink by ``spread`` from the first to the last.

    Nobody wants less than the floor, by default the lower quartile of the labels.
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, n)) * np.geomspace(1.0, 1.0 / spread, n)
    y = X @ rng.normal(size=n) + noise * rng.normal(size=m)
    return X, y, np.maximum(y, np.quantile(y, 0.25) if floor is None else floor)


def coarse_game(m: int, n: int, seed: int | Generator = 0) -> Arrays:
    """Half of X is zero and single precision holds the rest: the same numbers in every kind."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-8, 9, size=(m, n)) / 4.0
    X[rng.random(size=X.shape) < 0.5] = 0.0
    y = X @ rng.normal(size=n) + rng.normal(size=m)
    return X, y, np.maximum(y, np.quantile(y, 0.3))


def weak_game(m: int, n: int, seed: int | Generator = 0, *, size: float = 1.0) -> Arrays:
    """Labels without a model: with fewer rows than columns, weak providers let all be met."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(m, n)), size * rng.normal(size=m)
    return X, y, y + size + size * rng.normal(size=m)


def negative_game(
    m: int, n: int, seed: int | Generator = 0, *, signal: float = 0.25, noise: float = 0.25
) -> Arrays:
    """Goals that carry half of the label: where providers are weak the multiplier is negative."""
    rng = np.random.default_rng(seed)
    X, z = rng.normal(size=(m, n)), 2.0 * rng.normal(size=m)
    return X, signal * (X @ rng.normal(size=n)) + z / 2.0 + noise * rng.normal(size=m), z


@cache
def unit_game(number: int) -> Game:
    """Data of unit norm and labels of unit length; every fifth game lacks rank or rows."""
    rng = np.random.default_rng([30, number])
    n = int(rng.integers(1, 7))
    m = int(rng.integers(2, 16))
    if number % 5 == 3 and n > 1:
        m = int(rng.integers(1, n)) + 1
    X = rng.normal(size=(m, n)) * 10 ** rng.uniform(-0.3, 0.3, n)
    if number % 5 == 4:
        X = X[:, rng.integers(0, n, n)]
        X[:, 0] = X[:, -1]
    X /= np.linalg.norm(X, 2)
    y = X @ rng.normal(size=n) + 10 ** rng.uniform(-2, 0) * rng.normal(size=m)
    y /= np.linalg.norm(y)
    kind = number % 4
    if kind == 0:
        z = y + rng.normal() + 0.3 * rng.normal(size=m)
    elif kind == 1:
        z = np.maximum(y, rng.uniform(y.min(), y.max()))
    elif kind == 2:
        z = rng.normal(size=m)
    else:
        z = np.full(m, rng.normal())
    return Game(X, y, z, float(10 ** rng.uniform(-2, 2)))


def sdp_matrices(game: Game) -> Arrays:
    """A, B and C of the semidefinite program, written down as the paper has them (eq. SDP)."""
    X, y, d = game.X, game.y, game.z - game.y
    n = X.shape[1]
    A = np.block(
        [
            [X.T @ X, (X.T @ d)[:, None], -(X.T @ y)[:, None]],
            [d @ X, d @ d, -(d @ y)],
            [-(y @ X), -(y @ d), y @ y],
        ]
    )
    B = np.zeros((n + 2, n + 2))
    B[n:, n:] = 1.0
    C = np.zeros((n + 2, n + 2))
    C[:n, :n] = np.eye(n) / game.gamma
    C[n, n + 1] = C[n + 1, n] = -0.5
    return A, B, C


# People who apply for something: four features in units of their own

NAMES = ["income", "age", "debt", "years"]
COEF = np.array([1.0, -0.5, 2.0, 0.3])
COST = np.array([1.0, np.inf, 0.5, 2.0])


def applicants(m: int, seed: int | Generator = 0, *, years: float = 2.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(m, 4)) * [1.0, 2.0, 0.5, 3.0] + [0.0, 5.0, -1.0, years]


# Reduced games


def random_reduced(size: int, seed: int | Generator = 0, *, nullity: int = 0) -> ReducedGame:
    rng = np.random.default_rng(seed)
    sigma = np.exp(rng.normal(size=size))
    eta, zeta = rng.normal(size=(2, size))
    y, z = rng.normal(size=(2, 3))
    return ReducedGame(sigma, eta, zeta, y @ y, y @ z, z @ z, nullity, float(rng.exponential()))


def reduced(problem: Any, free_gap: float = 0.0) -> ReducedGame:
    """A problem of the oracle's families as the library's own."""
    vectors = (np.array(v, dtype=float) for v in (problem.sigma, problem.eta, problem.zeta))
    rest = problem.r_yy, problem.r_yz, problem.r_zz
    return ReducedGame(*vectors, *rest, problem.nullity, free_gap)
