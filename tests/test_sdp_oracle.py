"""Small games held against the single SDP of the paper (eq. SDP), solved by an interior point code.

The lemma: the value of the game is the largest ``mu`` for which some ``lambda`` makes
``A - mu B + lambda C`` positive semidefinite. The matrices are written down as the paper has them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import cvxpy as cp
import numpy as np
import pytest

import spgls

GAMES = 50


@dataclass(frozen=True, eq=False)
class Game:
    X: np.ndarray
    y: np.ndarray
    z: np.ndarray
    gamma: float

    @property
    def matrices(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        X, y, d = self.X, self.y, self.z - self.y
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
        C[:n, :n] = np.eye(n) / self.gamma
        C[n, n + 1] = C[n + 1, n] = -0.5
        return A, B, C


@cache
def game(number: int) -> Game:
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


def largest_mu(game: Game) -> tuple[float, float]:
    """``mu`` and ``lambda``, after a congruence that makes the first block of C the identity."""
    n = game.X.shape[1]
    scale = np.r_[np.full(n, np.sqrt(game.gamma)), 1.0, 1.0]
    A, B, C = (np.outer(scale, scale) * part for part in game.matrices)
    mu, multiplier = cp.Variable(), cp.Variable()
    problem = cp.Problem(cp.Maximize(mu), [A - mu * B + multiplier * C >> 0])
    problem.solve(
        solver=cp.CLARABEL,
        tol_gap_abs=1e-9,
        tol_gap_rel=1e-9,
        tol_feas=1e-9,
    )
    assert problem.status == cp.OPTIMAL
    return float(mu.value), float(multiplier.value)


@cache
def solution(number: int) -> spgls.Solution:
    this = game(number)
    return spgls.solve(this.X, this.y, this.z, this.gamma)


@pytest.mark.parametrize("number", range(GAMES))
def test_value_is_that_of_the_sdp(number):
    this, answer = game(number), solution(number)
    mu, _ = largest_mu(this)
    assert answer.status.ok, (this, answer)
    assert abs(answer.objective - mu) <= 1e-6 * (this.y @ this.y), (this, answer, mu)


@pytest.mark.parametrize("number", range(GAMES))
def test_objective_and_multiplier_are_feasible_for_the_sdp(number):
    """A proof of global optimality that needs no conic solver.

    In the SDP the constraint reads ``w'w/gamma - alpha``; in the paper's sphere its multiplier is a
    quarter of that, because ``|v~|^2 + a~^2 - 1 = 4 (w'w/gamma - alpha)/(1 + alpha)^2``.
    """
    this, answer = game(number), solution(number)
    A, B, C = this.matrices
    slack = A - answer.objective * B + 4.0 * answer.multiplier * C
    size = np.linalg.norm(A, 2) + np.linalg.norm(4.0 * answer.multiplier * C, 2)
    assert np.linalg.eigvalsh(slack)[0] >= -1e-13 * size, (this, answer)


def test_games_lack_rank_or_rows_sometimes():
    games = [game(number) for number in range(GAMES)]
    assert sum(g.X.shape[0] < g.X.shape[1] for g in games) >= 5
    assert sum(np.linalg.matrix_rank(g.X) < min(g.X.shape) for g in games) >= 5
    statuses = {solution(number).status for number in range(GAMES)}
    assert statuses >= {spgls.Status.OPTIMAL, spgls.Status.SEVERAL_OPTIMA}
