"""The provider against its own definition: it moves as a numerical optimiser would move."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from spgls import (
    best_response,
    certify,
    compare_solvers,
    estimate_gamma,
    explain_solver,
    gamma_from_pull,
    movement,
    robustness,
    solve,
    solve_path,
    undo_response,
)
from spgls.game.response import induced_prediction, learner_loss

SEEDS = range(12)
STRENGTHS = ("one", "per row", "honest", "some honest")


@dataclass(frozen=True)
class Scene:
    """A model, the rows it is applied to, and the providers who own them."""

    X: np.ndarray
    y: np.ndarray
    z: np.ndarray
    coef: np.ndarray
    intercept: float
    gamma: float | np.ndarray
    cost: np.ndarray | None

    @property
    def reaction(self) -> dict:
        return {"gamma": self.gamma, "intercept": self.intercept, "feature_cost": self.cost}

    @property
    def arguments(self) -> tuple:
        return self.X, self.z, self.coef

    @property
    def price(self) -> np.ndarray:
        return np.ones(self.X.shape[1]) if self.cost is None else self.cost

    @property
    def strength(self) -> np.ndarray:
        return np.broadcast_to(self.gamma, len(self.z))

    @property
    def reach(self) -> float:
        return sum(w * w / c for w, c in zip(self.coef, self.price, strict=True) if np.isfinite(c))

    def closed_form(self) -> np.ndarray:
        alpha = self.reach / self.strength
        return (self.X @ self.coef + self.intercept + alpha * self.z) / (1 + alpha)


def scene(seed: int, strength: str = "one", *, immutable: bool = True, costs: bool = True) -> Scene:
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(1, 7)), int(rng.integers(2, 6))
    X = rng.normal(size=(m, n)) * 10.0 ** rng.uniform(-1, 1, size=n)
    coef = rng.normal(size=n)
    cost = 10.0 ** rng.uniform(-1, 1, size=n) if costs else None
    if costs and immutable:
        cost[rng.integers(n)] = np.inf
    price = np.ones(n) if cost is None else cost
    pull = rng.uniform(0.05, 0.9)
    gamma = float(coef**2 @ (1 / price)) * (1 - pull) / pull
    if strength == "per row":
        gamma = gamma * 10.0 ** rng.uniform(-1, 1, size=m)
    elif strength == "honest":
        gamma = np.inf
    elif strength == "some honest":
        gamma = np.where(rng.random(m) < 0.5, np.inf, gamma)
    y, z = X @ coef + rng.normal(size=m), X @ coef + 3 * rng.normal(size=m)
    return Scene(X, y, z, coef, float(rng.normal()), gamma, cost)


def optimiser_response(row: np.ndarray, goal: float, gamma: float, game: Scene) -> np.ndarray:
    """Minimise the provider's own objective over the features it can change."""
    if np.isinf(gamma):
        return row
    free = np.isfinite(game.price)

    def moved(values: np.ndarray) -> np.ndarray:
        out = row.copy()
        out[free] = values
        return out

    def objective(values: np.ndarray) -> float:
        error = game.coef @ moved(values) + game.intercept - goal
        return error**2 + gamma * float(game.price[free] @ (values - row[free]) ** 2)

    def gradient(values: np.ndarray) -> np.ndarray:
        error = game.coef @ moved(values) + game.intercept - goal
        return 2 * error * game.coef[free] + 2 * gamma * game.price[free] * (values - row[free])

    found = minimize(objective, row[free], jac=gradient, method="BFGS", options={"gtol": 1e-10})
    return moved(found.x)


@pytest.mark.parametrize("strength", STRENGTHS)
@pytest.mark.parametrize("seed", SEEDS)
def test_best_response_is_the_optimisers(seed, strength):
    game = scene(seed, strength)
    moved = best_response(*game.arguments, **game.reaction)
    wanted = [
        optimiser_response(row, goal, gamma, game)
        for row, goal, gamma in zip(game.X, game.z, game.strength, strict=True)
    ]
    np.testing.assert_allclose(moved, wanted, atol=1e-7 * np.abs(game.X).max())


@pytest.mark.parametrize("seed", SEEDS)
def test_default_cost_is_one(seed):
    game = scene(seed, costs=False)
    ones = game.reaction | {"feature_cost": np.ones(game.X.shape[1])}
    moved = best_response(*game.arguments, **game.reaction)
    np.testing.assert_allclose(moved, best_response(*game.arguments, **ones), rtol=1e-14)


@pytest.mark.parametrize("strength", STRENGTHS)
@pytest.mark.parametrize("seed", SEEDS)
def test_prediction_on_moved_rows_is_the_closed_form(seed, strength):
    game = scene(seed, strength)
    moved = best_response(*game.arguments, **game.reaction)
    size = np.abs(game.X) @ np.abs(game.coef) + np.abs(game.z) + abs(game.intercept)
    for after in (
        moved @ game.coef + game.intercept,
        induced_prediction(*game.arguments, **game.reaction),
        movement(*game.arguments, **game.reaction).after,
    ):
        assert (np.abs(after - game.closed_form()) <= 1e-14 * size).all()


@pytest.mark.parametrize("strength", STRENGTHS)
@pytest.mark.parametrize("seed", SEEDS)
def test_movement_describes_the_response(seed, strength):
    game = scene(seed, strength)
    moved = best_response(*game.arguments, **game.reaction)
    move = movement(*game.arguments, **game.reaction)
    size = np.abs(game.X).max()
    np.testing.assert_allclose(
        game.X + np.outer(move.step, move.direction), moved, rtol=0, atol=1e-14 * size
    )
    np.testing.assert_array_equal(move.before, game.X @ game.coef + game.intercept)
    free = np.isfinite(game.price)
    paid = ((moved - game.X)[:, free] ** 2) @ game.price[free]
    honest = np.isinf(game.strength)
    np.testing.assert_allclose(
        move.cost[~honest], game.strength[~honest] * paid[~honest], rtol=1e-9, atol=1e-12
    )
    assert (move.cost[honest] == 0.0).all()
    assert np.isfinite(move.cost).all()
    assert str(len(game.z)) in repr(move)


@pytest.mark.parametrize("seed", SEEDS)
def test_immutable_features_and_honest_rows_do_not_move_at_all(seed):
    game = scene(seed, "some honest")
    moved = best_response(*game.arguments, **game.reaction)
    np.testing.assert_array_equal(moved[:, np.isinf(game.cost)], game.X[:, np.isinf(game.cost)])
    honest = np.isinf(game.gamma)
    np.testing.assert_array_equal(moved[honest], game.X[honest])
    everything = game.reaction | {"feature_cost": np.full(game.X.shape[1], np.inf)}
    np.testing.assert_array_equal(best_response(*game.arguments, **everything), game.X)
    assert movement(*game.arguments, **everything).cost.sum() == 0.0


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array, sp.csr_matrix, sp.csc_matrix])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("seed", SEEDS[:4])
def test_movement_on_sparse_rows_is_that_on_dense_ones(seed, dtype, kind):
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((30, 8)) < 0.3, rng.normal(size=(30, 8)), 0.0).astype(dtype)
    z, coef, cost = rng.normal(size=30), rng.normal(size=8), rng.uniform(0.5, 2, size=8)
    cost[3] = np.inf
    arguments = {"gamma": rng.uniform(0.5, 2, 30), "intercept": 1.5, "feature_cost": cost}
    dense, sparse = (movement(A, z, coef, **arguments) for A in (X, kind(X)))
    for field in ("step", "direction", "cost", "before", "after"):
        np.testing.assert_allclose(
            getattr(sparse, field), getattr(dense, field), rtol=1e-13, atol=1e-13
        )


@settings(max_examples=200, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    strength=st.sampled_from(STRENGTHS),
    immutable=st.booleans(),
    costs=st.booleans(),
)
def test_undoing_gives_the_rows_back(seed, strength, immutable, costs):
    game = scene(seed, strength, immutable=immutable, costs=costs)
    moved = best_response(*game.arguments, **game.reaction)
    back = undo_response(moved, game.z, game.coef, **game.reaction)
    scale = max(np.abs(game.X).max(), np.abs(moved).max(), np.abs(game.z).max())
    np.testing.assert_allclose(back, game.X, rtol=0, atol=1e-12 * scale)


@pytest.mark.parametrize("function", [best_response, undo_response])
class TestContainers:
    X = np.array([[1, 2], [3, 4], [5, 6]])
    rest = ([1.0, 2.0, 3.0], [0.5, -1.0])
    kwargs: ClassVar = {"gamma": 2.0, "intercept": 0.25, "feature_cost": [1.0, 4.0]}

    def wanted(self, function):
        return function(self.X.astype(float), *self.rest, **self.kwargs)

    @pytest.mark.parametrize("dtype", [np.float64, np.int64, np.int8, bool])
    def test_numbers_become_doubles(self, function, dtype):
        X = self.X.astype(dtype)
        moved = function(X, *self.rest, **self.kwargs)
        assert type(moved) is np.ndarray
        assert moved.dtype == np.float64
        np.testing.assert_array_equal(
            moved, function(X.astype(float), *self.rest, **self.kwargs), strict=True
        )

    def test_single_precision_stays(self, function):
        moved = function(self.X.astype(np.float32), *self.rest, **self.kwargs)
        assert moved.dtype == np.float32
        np.testing.assert_array_equal(moved, self.wanted(function).astype(np.float32))

    def test_list(self, function):
        moved = function(self.X.tolist(), *self.rest, **self.kwargs)
        np.testing.assert_array_equal(moved, self.wanted(function), strict=True)

    def test_column_order(self, function):
        X = np.asfortranarray(self.X.astype(float))
        np.testing.assert_array_equal(
            function(X, *self.rest, **self.kwargs), self.wanted(function), strict=True
        )

    @pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
    def test_data_frame(self, function, dtype):
        frame = pd.DataFrame(self.X.astype(dtype), columns=["age", "income"], index=["a", "b", "a"])
        moved = function(frame, *self.rest, **self.kwargs)
        assert type(moved) is pd.DataFrame
        pd.testing.assert_index_equal(moved.columns, frame.columns)
        pd.testing.assert_index_equal(moved.index, frame.index)
        assert set(moved.dtypes) == {np.dtype(np.float32 if dtype == np.float32 else np.float64)}
        np.testing.assert_array_equal(moved, self.wanted(function).astype(moved.dtypes.iloc[0]))

    def test_data_frame_of_nullable_numbers(self, function):
        frame = pd.DataFrame(self.X, columns=["a", "b"]).astype("Int64")
        moved = function(frame, *self.rest, **self.kwargs)
        assert list(moved.columns) == ["a", "b"]
        np.testing.assert_array_equal(moved, self.wanted(function))

    def test_data_frame_of_mixed_types(self, function):
        frame = pd.DataFrame(
            {"flag": [True, False, True], "count": [1, 2, 3], "size": np.float32([0.5, 1.5, 2.5])}
        )
        moved = function(frame, [1.0, 2.0, 3.0], [0.5, -1.0, 1.0], gamma=2.0)
        wanted = function(frame.to_numpy(float), [1.0, 2.0, 3.0], [0.5, -1.0, 1.0], gamma=2.0)
        assert list(moved.columns) == list(frame.columns)
        assert set(moved.dtypes) == {np.dtype(np.float64)}
        np.testing.assert_array_equal(moved, wanted)

    def test_input_is_not_written_to(self, function):
        X = self.X.astype(float)
        function(X, *self.rest, **self.kwargs)
        np.testing.assert_array_equal(X, self.X)

    @pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_matrix, sp.coo_array, sp.lil_matrix])
    def test_sparse_is_refused_with_advice(self, function, kind):
        name = "X" if function is best_response else "X_hat"
        with pytest.raises(TypeError, match=rf"^{name} must be dense.*shape \(3, 2\).*toarray\(\)"):
            function(kind(self.X), *self.rest, **self.kwargs)


def test_sparse_is_sent_to_movement():
    with pytest.raises(TypeError, match="Use movement"):
        best_response(sp.eye_array(2, format="csr"), [1.0, 2.0], [1.0, 1.0], gamma=1.0)


@pytest.mark.parametrize("strength", STRENGTHS)
@pytest.mark.parametrize("seed", SEEDS)
def test_learner_loss_is_the_sum_of_squares_on_moved_rows(seed, strength):
    game = scene(seed, strength)
    moved = best_response(*game.arguments, **game.reaction)
    error = moved @ game.coef + game.intercept - game.y
    weight = np.random.default_rng(seed).uniform(0, 3, size=len(error))
    arguments = (game.X, game.y, game.z, game.coef)
    scale = 1e-12 * (np.abs(game.X).max() + np.abs(game.z).max()) ** 2
    plain = learner_loss(*arguments, **game.reaction)
    assert plain == pytest.approx(np.sum(error**2), rel=1e-11, abs=scale)
    weighted = learner_loss(*arguments, **game.reaction, sample_weight=weight)
    assert weighted == pytest.approx(np.sum(weight * error**2), rel=1e-11, abs=scale)


@pytest.mark.parametrize("pull", [1e-6, 0.1, 0.5, 0.9, 1 - 1e-6])
@pytest.mark.parametrize("seed", SEEDS[:6])
def test_gamma_from_pull_closes_that_share_of_the_gap(seed, pull):
    game = scene(seed)
    gamma = gamma_from_pull(pull, game.coef, game.cost)
    move = movement(*game.arguments, **game.reaction | {"gamma": gamma})
    np.testing.assert_allclose(
        (move.after - move.before), pull * (game.z - move.before), rtol=1e-9, atol=1e-13
    )
    moved = best_response(*game.arguments, **game.reaction | {"gamma": gamma})
    left = game.z - (moved @ game.coef + game.intercept)
    scale = np.abs(game.X) @ np.abs(game.coef) + np.abs(game.z)
    assert (np.abs(left - (1 - pull) * (game.z - move.before)) <= 1e-13 * scale).all()


def test_gamma_from_pull_without_costs():
    assert gamma_from_pull(0.5, [3.0, 4.0]) == gamma_from_pull(0.5, [3.0, 4.0], [1.0, 1.0]) == 25.0
    assert gamma_from_pull(0.5, [3.0, 4.0], [1.0, np.inf]) == 9.0


class TestCostsByName:
    """A mapping is as good as an array in every function that takes costs."""

    one = scene(3, costs=False)
    names: ClassVar = [f"column{j}" for j in range(one.X.shape[1])]
    table = pd.DataFrame(one.X, columns=names)
    by_name: ClassVar = {names[0]: np.inf, names[-1]: 3.0}
    array = np.r_[np.inf, np.ones(len(names) - 2), 3.0]

    @pytest.mark.parametrize(
        "answer",
        [
            lambda X, s, cost: movement(X, s.z, s.coef, gamma=0.5, feature_cost=cost).after,
            lambda X, s, cost: best_response(X, s.z, s.coef, gamma=0.5, feature_cost=cost),
            lambda X, s, cost: undo_response(X, s.z, s.coef, gamma=0.5, feature_cost=cost),
            lambda X, s, cost: induced_prediction(X, s.z, s.coef, gamma=0.5, feature_cost=cost),
            lambda X, s, cost: learner_loss(X, s.y, s.z, s.coef, gamma=0.5, feature_cost=cost),
            lambda X, s, cost: solve(X, s.y, s.z, 0.5, feature_cost=cost).coef,
            lambda X, s, cost: solve_path(X, s.y, s.z, [0.5], feature_cost=cost).coef,
            lambda X, s, cost: certify(X, s.y, s.z, 0.5, s.coef, feature_cost=cost).gap,
            lambda X, s, cost: (
                compare_solvers(X, s.y, s.z, 0.5, solvers=["spectral"], feature_cost=cost)
                .trials[0]
                .solution.coef
            ),
            lambda X, s, cost: explain_solver(X, feature_cost=cost).solver,
            lambda X, s, cost: robustness((s.coef, 0.0), X, s.y, s.z, feature_cost=cost).attacked,
            lambda X, s, cost: (
                estimate_gamma(
                    X,
                    best_response(X, s.z, s.coef, gamma=0.5, feature_cost=cost),
                    s.z,
                    s.coef,
                    feature_cost=cost,
                ).gamma
            ),
        ],
    )
    def test_in_every_function(self, answer):
        found, wanted = (answer(self.table, self.one, c) for c in (self.by_name, self.array))
        np.testing.assert_array_equal(found, wanted)

    def test_of_coefficients(self):
        named = pd.Series(self.one.coef, index=self.names)
        wanted = gamma_from_pull(0.3, self.one.coef, self.array)
        assert gamma_from_pull(0.3, named, self.by_name) == wanted
        for nameless in (self.one.coef, self.one.coef.tolist(), pd.Series(self.one.coef)):
            with pytest.raises(ValueError, match=r"^feature_cost gives costs by name, .*Series"):
                gamma_from_pull(0.3, nameless, self.by_name)
