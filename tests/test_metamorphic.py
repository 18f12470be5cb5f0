"""The same game told differently has the same predictor.

Predictors are compared by what they predict, on the rows they were fitted to and on fresh ones:
only the latter see the part of the coefficients that a tie-break chose.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.linalg import hadamard

from spgls import Solution, Status
from spgls.game.response import induced_prediction

from . import builders
from .builders import linear_game

SEEDS = range(20)
TOLERANCE = 1e-8


@dataclass(frozen=True, eq=False)
class Game(builders.Game):
    """A game and fresh rows to compare its predictors on."""

    _: KW_ONLY
    fresh: np.ndarray

    @property
    def scale(self) -> float:
        return float(np.abs(self.y).max())


def predictions(found: Solution, rows: np.ndarray) -> np.ndarray:
    return rows @ found.coef + found.intercept


def assert_same_predictor(
    game: Game, changed: Game, back: Callable[[np.ndarray], np.ndarray] = lambda p: p
) -> None:
    """Predictions on fresh rows and on the game's own agree, once mapped back."""
    one, other = game.solve(), changed.solve()
    mine, theirs = predictions(one, game.fresh), back(predictions(other, changed.fresh))
    np.testing.assert_allclose(theirs, mine, rtol=0, atol=TOLERANCE * game.scale)
    assert one.status.ok
    assert other.status is one.status
    assert other.alpha == pytest.approx(one.alpha, rel=TOLERANCE, abs=1e-12)


def tall(rng):
    X, y, _ = linear_game(30, 5, rng)
    return X, y, y + rng.normal(size=30) + 1.0, 10.0 ** rng.uniform(-2, 1)


def wide(rng):
    X = rng.normal(size=(7, 13))
    y = rng.normal(size=7)
    return X, y, y + rng.normal(size=7), 10.0 ** rng.uniform(-2, 0)


def weak_wide(rng):
    """Weak providers and small labels: the hard case."""
    X = rng.normal(size=(6, 12))
    return X, 0.1 * rng.normal(size=6), rng.normal(size=6), 10.0 ** rng.uniform(1, 3)


def repeated_rows(rng):
    """Labels that no predictor fits, in more columns than rows: the null space is needed."""
    X = rng.normal(size=(4, 12))[np.repeat(np.arange(4), 2)]
    y = 0.3 * rng.normal(size=8)
    return X, y, 0.5 * y + 0.3 * rng.normal(size=8), 10.0 ** rng.uniform(0, 2)


def dependent_columns(rng):
    X = rng.normal(size=(30, 4)) @ rng.normal(size=(4, 6))
    y = X @ rng.normal(size=6) + rng.normal(size=30)
    return X, 0.1 * y, y + rng.normal(size=30), 10.0 ** rng.uniform(1, 3)


def constant_goal(rng):
    X, y, _ = linear_game(30, 5, rng)
    return X, y, np.full(30, 4.0), 10.0 ** rng.uniform(1, 3)


def constant_goal_wide(rng):
    X = rng.normal(size=(6, 12))
    return X, 0.1 * rng.normal(size=6), np.full(6, 1.0), 10.0 ** rng.uniform(0, 3)


FAMILIES = {
    build.__name__: build
    for build in (
        tall,
        wide,
        weak_wide,
        repeated_rows,
        dependent_columns,
        constant_goal,
        constant_goal_wide,
    )
}


@cache
def build(family: str, seed: int) -> Game:
    rng = np.random.default_rng([seed, *map(ord, family)])
    X, y, z, gamma = FAMILIES[family](rng)
    m, n = X.shape
    cost = 10.0 ** rng.uniform(-0.5, 0.5, size=n) if rng.random() < 0.5 else None
    if cost is not None and rng.random() < 0.7:
        cost[rng.permutation(n)[: 1 + (n > 8)]] = np.inf
    weight = rng.uniform(0.2, 2.0, size=m) if rng.random() < 0.5 else None
    intercept = bool(rng.random() < 0.5)
    fresh = rng.normal(size=(8, n))
    return Game(X, y, z, gamma, intercept, cost, weight, fresh=fresh)


@pytest.fixture(params=FAMILIES)
def family(request):
    return request.param


@pytest.fixture(params=SEEDS)
def game(request, family):
    return build(family, request.param)


@pytest.fixture
def rng(request):
    return np.random.default_rng(len(request.node.name))


def rows_of(game: Game, index: np.ndarray, weight: np.ndarray | None) -> Game:
    return replace(game, X=game.X[index], y=game.y[index], z=game.z[index], weight=weight)


def test_weights_are_repeated_rows(game, rng):
    times = rng.integers(1, 4, size=len(game.y))
    index = np.repeat(np.arange(len(game.y)), times)
    repeated = rows_of(game, index, None if game.weight is None else game.weight[index])
    assert_same_predictor(replace(game, weight=times * game.weights), repeated)


def test_rows_of_zero_weight_are_absent(game, rng):
    kept = np.sort(rng.permutation(len(game.y))[1 + len(game.y) // 6 :])
    weight = np.zeros(len(game.y))
    weight[kept] = game.weights[kept]
    removed = rows_of(game, kept, game.weights[kept])
    assert_same_predictor(replace(game, weight=weight), removed)


def test_only_ratios_of_weights_matter(game):
    assert_same_predictor(game, replace(game, weight=3.7 * game.weights))


def test_order_of_rows(game, rng):
    order = rng.permutation(len(game.y))
    assert_same_predictor(game, rows_of(game, order, game.weights[order]))


def test_order_of_columns(game, rng):
    order = rng.permutation(game.X.shape[1])
    turned = replace(game, X=game.X[:, order], fresh=game.fresh[:, order], cost=game.prices[order])
    assert_same_predictor(game, turned)


def test_units_of_columns(game, rng):
    units = 10.0 ** rng.uniform(-2, 2, size=game.X.shape[1])
    scaled = replace(game, X=game.X * units, fresh=game.fresh * units, cost=game.prices / units**2)
    assert_same_predictor(game, scaled)


def test_unit_of_costs_is_that_of_gamma(game):
    assert_same_predictor(game, replace(game, gamma=game.gamma / 5.0, cost=5.0 * game.prices))


def test_stacked_twice(game):
    index = np.tile(np.arange(len(game.y)), 2)
    twice = rows_of(game, index, None if game.weight is None else game.weight[index])
    assert_same_predictor(game, twice)
    scale = float(game.weights @ game.y**2)
    assert twice.solve().objective == pytest.approx(
        2 * game.solve().objective, rel=TOLERANCE, abs=1e-12 * scale
    )


def test_shift_of_labels_and_goals(game):
    game = replace(game, fit_intercept=True)
    shifted = replace(game, y=game.y + 2.5, z=game.z + 2.5)
    assert_same_predictor(game, shifted, back=lambda p: p - 2.5)


def test_shift_of_columns(game, rng):
    game = replace(game, fit_intercept=True)
    by = rng.normal(size=game.X.shape[1])
    assert_same_predictor(game, replace(game, X=game.X + by, fresh=game.fresh + by))


@pytest.mark.parametrize("unit", [1e-3, -3.0])
def test_unit_of_labels(game, unit):
    # Coefficients are in units of the labels, so the priced norm, and gamma, in their square.
    scaled = replace(game, y=unit * game.y, z=unit * game.z, gamma=unit**2 * game.gamma)
    if unit < 0:
        # A tie-break that permutations respect cannot also be odd; its own rows do not see it.
        game, scaled = replace(game, fresh=game.X), replace(scaled, fresh=game.X)
    assert_same_predictor(game, scaled, back=lambda p: p / unit)


def test_intercept_is_an_immutable_column_of_ones(game):
    game = replace(game, fit_intercept=True)

    def with_ones(rows: np.ndarray) -> np.ndarray:
        return np.hstack([rows, np.ones((len(rows), 1))])

    written_out = replace(
        game,
        X=with_ones(game.X),
        fresh=with_ones(game.fresh),
        cost=np.append(game.prices, np.inf),
        fit_intercept=False,
    )
    assert_same_predictor(game, written_out)


def test_column_of_zeros_that_cannot_change(game):
    zeros = replace(
        game,
        X=np.insert(game.X, 1, 0.0, axis=1),
        fresh=np.insert(game.fresh, 1, 0.0, axis=1),
        cost=np.insert(game.prices, 1, np.inf),
    )
    assert_same_predictor(game, zeros)


def test_objective_is_the_loss_and_the_certificate_that_of_certify(game):
    found = game.solve()
    after = induced_prediction(
        game.X,
        game.z,
        found.coef,
        gamma=game.gamma,
        intercept=found.intercept,
        feature_cost=game.cost,
    )
    scale = float(game.weights @ game.y**2)
    loss = float(game.weights @ (after - game.y) ** 2)
    assert found.objective == pytest.approx(loss, rel=1e-12, abs=1e-14 * scale)
    proof = game.certify(found.coef, found.intercept)
    assert proof.relative_gap <= 1e-9
    assert proof.lower_bound <= loss * (1 + 1e-12) + 1e-14 * scale


def read_only(X):
    X = X.copy()
    for array in (X.data, X.indices, X.indptr) if sp.issparse(X) else (X,):
        array.flags.writeable = False
    return X


CONTAINERS = {
    "read only": read_only,
    "read only csr": lambda X: read_only(sp.csr_array(X)),
    "read only csc": lambda X: read_only(sp.csc_array(X)),
    "Fortran order": np.asfortranarray,
    "reversed strides": lambda X: np.ascontiguousarray(X[::-1])[::-1],
    "column slice": lambda X: np.hstack([X, X])[:, : X.shape[1]],
    "float32": lambda X: X.astype(np.float32),
    "float32 Fortran": lambda X: np.asfortranarray(X.astype(np.float32)),
    "float16": lambda X: X.astype(np.float16),
    "longdouble": lambda X: X.astype(np.longdouble),
    "int64": lambda X: X.astype(np.int64),
    "int8": lambda X: X.astype(np.int8),
    "object": lambda X: X.astype(object),
    "list": lambda X: X.tolist(),
    "data frame": lambda X: pd.DataFrame(X),
    "data frame of integers": lambda X: pd.DataFrame(X.astype(int)),
    "data frame of nullable numbers": lambda X: pd.DataFrame(X).astype("Float64"),
    "csr_array": sp.csr_array,
    "csr_matrix": sp.csr_matrix,
    "csc_array": sp.csc_array,
    "csc_matrix": sp.csc_matrix,
    "coo_array": sp.coo_array,
    "csr float32": lambda X: sp.csr_array(X.astype(np.float32)),
    "csc float32": lambda X: sp.csc_array(X.astype(np.float32)),
    "csr integers": lambda X: sp.csr_array(X.astype(np.int64)),
}


@cache
def whole_numbers(family: str, seed: int) -> Game:
    """A game on small whole numbers: every container holds them, and sparse ones have zeros."""
    game = build(family, seed)
    return replace(game, X=np.round(1.5 * game.X))


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("seed", SEEDS[:3])
def test_containers(family, seed, container):
    game = whole_numbers(family, seed)
    assert_same_predictor(game, replace(game, X=CONTAINERS[container](game.X)))


@pytest.mark.parametrize("convert", [list, pd.Series, np.float32, lambda v: v[:, None][:, 0]])
def test_containers_of_vectors(family, convert):
    game = build(family, 0)
    game = replace(
        game,
        y=game.y.astype(np.float32).astype(float),
        z=game.z.astype(np.float32).astype(float),
        weight=np.round(4 * game.weights),
        cost=np.round(4 * game.prices),
    )
    other = replace(
        game,
        y=convert(game.y),
        z=convert(game.z),
        weight=convert(game.weight),
        cost=convert(game.cost),
    )
    np.testing.assert_array_equal(other.solve().coef, game.solve().coef)


@pytest.mark.parametrize(
    "family", ["weak_wide", "repeated_rows", "dependent_columns", "constant_goal_wide"]
)
def test_hard_families_are_hard(family):
    ties = [build(family, seed).solve().status is Status.SEVERAL_OPTIMA for seed in SEEDS]
    assert sum(ties) >= len(ties) / 2


@cache
def balanced(seed: int) -> Game:
    """Orthogonal columns, the weakest of them orthogonal to labels and goals.

    Every column is seen, yet the optimum needs a vector of the lowest eigenspace, whose sign and,
    where two columns are equally weak, whose direction nothing in the game fixes.
    """
    rng = np.random.default_rng(seed)
    H = hadamard(8).astype(float)
    strong, weak = 2.0, 0.5
    X = H[:, [1, 2, 3]] * [strong, weak, weak if seed % 2 else 0.75]
    nu = -8 * weak**2
    stretch = 8 / (8 * strong**2 + nu)
    while True:
        a, b = rng.integers(-4, 5, size=(2, 3))
        gamma = 2.0 ** rng.integers(-4, 8)
        h = 8 * (b[1:] @ b[1:]) + nu * (gamma + stretch * b[0] ** 2)
        c = (8 * (a[1:] @ b[1:]) + nu * (gamma / 2 + stretch * a[0] * b[0])) / h if h > 0 else 0
        along = strong * stretch * (a[0] - c * b[0])
        if 0.05 < c < 0.95 and gamma * c * (1 - c) > along**2 + 0.1:
            y, z = H[:, [1, 4, 5]] @ a, H[:, [1, 4, 5]] @ b
            return Game(X, y, z, float(gamma), fresh=rng.normal(size=(8, 3)))


@pytest.mark.parametrize("seed", SEEDS)
class TestTieAmongTheWeakest:
    def test_there_is_one(self, seed):
        found = balanced(seed).solve()
        assert found.status is Status.SEVERAL_OPTIMA
        assert np.linalg.norm(found.coef[1:]) > 1e-3

    def test_order_of_rows(self, seed):
        game, order = balanced(seed), np.random.default_rng(seed).permutation(8)
        assert_same_predictor(game, rows_of(game, order, None))

    def test_order_of_columns(self, seed):
        game, order = balanced(seed), np.random.default_rng(seed).permutation(3)
        turned = replace(game, X=game.X[:, order], fresh=game.fresh[:, order])
        assert_same_predictor(game, turned)

    def test_weights_are_repeated_rows(self, seed):
        game, index = balanced(seed), np.repeat(np.arange(8), 3)
        assert_same_predictor(replace(game, weight=np.full(8, 3.0)), rows_of(game, index, None))

    def test_containers(self, seed):
        game = balanced(seed)
        for container in ("Fortran order", "float32", "csr_array", "csc_array"):
            assert_same_predictor(game, replace(game, X=CONTAINERS[container](game.X)))
