"""Statements of the theory pages that no other test holds, on matrices formed outright.

Nothing here uses the library's own formulas: the Lagrangian of the sphere is a dense matrix, its
pole an eigenvalue.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from spgls import Population, Status, solve


@dataclass(frozen=True)
class Sphere:
    """``|Ax + cz - y|^2`` on ``|x|^2 = gamma c (1 - c)``."""

    A: np.ndarray
    y: np.ndarray
    z: np.ndarray
    gamma: float

    def K(self, nu: float) -> np.ndarray:
        """Matrix of the Lagrangian at a multiplier."""
        L = np.column_stack([self.A, self.z])
        return L.T @ L + nu * np.diag([1.0] * self.A.shape[1] + [self.gamma])

    @property
    def pole(self) -> float:
        L = np.column_stack([self.A, self.z / np.sqrt(self.gamma)])
        lowest = np.linalg.eigvalsh(L.T @ L)[0]
        return -lowest if lowest > 1e-12 * np.sum(L**2) else 0.0

    def excess(self, nu: float) -> float:
        """By how much the Lagrangian's minimiser misses the sphere."""
        side = np.append(self.A.T @ self.y, self.z @ self.y + nu * self.gamma / 2)
        *x, c = np.linalg.solve(self.K(nu), side)
        return float(np.dot(x, x) - self.gamma * c * (1 - c))

    def least(self) -> float:
        """Least loss on a fine net of the sphere, refined from each of its best points."""
        rng = np.random.default_rng(0)
        n = self.A.shape[1]
        L = np.column_stack([np.sqrt(self.gamma) / 2 * self.A, self.z / 2])
        side = self.y - self.z / 2
        r = rng.normal(size=(20_000, n + 1))
        r /= np.linalg.norm(r, axis=1, keepdims=True)
        r = r[np.argsort(np.sum((r @ L.T - side) ** 2, axis=1))[:20]]
        step = 0.5 / np.linalg.norm(L, 2) ** 2
        for _ in range(5_000):  # projected gradients
            r = r - step * (r @ L.T - side) @ L
            r /= np.linalg.norm(r, axis=1, keepdims=True)
        return float(np.min(np.sum((r @ L.T - side) ** 2, axis=1)))


def random_sphere(rng: np.random.Generator) -> Sphere:
    m, n = rng.integers(2, 7), rng.integers(1, 6)
    A, y, z = rng.normal(size=(m, n)), rng.normal(size=m), rng.normal(size=m)
    return Sphere(A, y, z, float(np.exp(rng.normal())))


@pytest.mark.parametrize("seed", range(40))
def test_the_excess_falls_unless_nothing_pulls(seed):
    """Theorem S (i)."""
    game = random_sphere(np.random.default_rng(seed))
    multipliers = game.pole + np.geomspace(1e-4, 1e5, 60)
    excess = [game.excess(nu) for nu in multipliers]
    assert np.all(np.diff(excess) < 0)
    assert excess[-1] == pytest.approx(-game.gamma / 4, rel=0.01)
    still = Sphere(game.A, game.z / 2, game.z, game.gamma)
    assert np.allclose([still.excess(nu) for nu in multipliers], -game.gamma / 4, rtol=1e-9)


@pytest.mark.parametrize("seed", range(30))
def test_roots_exist_exactly_where_the_limit_is_positive(seed):
    """Theorem S (ii) to (iv): a root is the optimum; without one the pole's minimum is."""
    rng = np.random.default_rng(seed)
    game = random_sphere(rng)
    if seed % 3 == 0:  # often hard: small labels, weak providers, more columns than rows
        wide = np.column_stack([game.A, rng.normal(size=(len(game.y), len(game.y)))])
        game = Sphere(wide, 0.1 * game.y, game.z, 10 * game.gamma)
    scale = np.sum(game.y**2) + np.sum(game.z**2)
    pole = game.pole
    found = solve(game.A, game.y, game.z, game.gamma)
    least = game.least()
    assert found.objective <= least + 1e-9 * scale
    assert least <= found.objective + 1e-5 * scale
    near = game.excess(pole + 1e-7 * np.sum(game.A**2))
    if near > 1e-3 * game.gamma:
        low, high = pole + 1e-9, pole + 1e6
        for _ in range(200):
            middle = pole + np.sqrt((low - pole) * (high - pole))
            low, high = (middle, high) if game.excess(middle) > 0 else (low, middle)
        side = np.append(game.A.T @ game.y, game.z @ game.y + low * game.gamma / 2)
        point = np.linalg.solve(game.K(low), side)
        value = np.sum((np.column_stack([game.A, game.z]) @ point - game.y) ** 2)
        assert found.objective == pytest.approx(value, rel=1e-6, abs=1e-9 * scale)
    elif near < -1e-3 * game.gamma:
        # The Lagrangian's minimum at the pole is the optimum.
        K, nu = game.K(pole), pole
        side = np.append(game.A.T @ game.y, game.z @ game.y + nu * game.gamma / 2)
        value = game.y @ game.y - side @ np.linalg.pinv(K, rcond=1e-9, hermitian=True) @ side
        assert found.objective == pytest.approx(value, abs=1e-8 * scale)


def test_dependent_columns_are_hard_exactly_where_theorem_d_says():
    """Theorem D (ii): the goals are outside the range of columns that depend on each other."""
    rng = np.random.default_rng(0)
    hard = []
    for _ in range(200):
        m, n = rng.integers(3, 7), rng.integers(1, 4)
        A = rng.normal(size=(m, n))
        A = np.column_stack([A, A[:, 0]])
        y = rng.normal(size=m) * rng.choice([0.1, 1.0])
        z = rng.normal(size=m) + rng.choice([0.0, 1.0]) * y
        gamma = float(np.exp(rng.normal() + rng.choice([0.0, 3.0])))
        y_out, z_out = (b - A @ np.linalg.pinv(A) @ b for b in (y, z))
        if np.linalg.norm(z_out) < 1e-6:
            continue
        c = (y_out @ z_out) / (z_out @ z_out)
        x = np.linalg.pinv(A) @ (y - c * z)
        hard.append(0 <= c <= 1 and x @ x <= gamma * c * (1 - c))
        found = solve(A, y, z, gamma)
        above = found.objective - np.sum((A @ x + c * z - y) ** 2)
        assert (above < 1e-9 * (y @ y + z @ z)) == hard[-1]
        if hard[-1]:
            assert found.alpha / (1 + found.alpha) == pytest.approx(c, abs=1e-6)
    assert 20 < sum(hard) < len(hard) - 20


def has_no_best(game: Sphere) -> bool:
    """Theorem E, from the null space of a dense matrix."""
    size = np.sum(game.A**2) + game.z @ game.z
    if np.abs(game.A.T @ (game.y - game.z)).max() > 1e-10 * size:
        return False
    nu, pole = -2 * game.z @ (game.z - game.y) / game.gamma, game.pole
    if abs(nu - pole) > 1e-9 * size:
        return bool(nu > pole)
    values, vectors = np.linalg.eigh(game.K(pole))
    return bool(np.abs(vectors[-1, values < 1e-9 * size]).max() < 1e-6)


@pytest.mark.parametrize("kind", ["labels", "beyond", "at the pole", "in the range"])
@pytest.mark.parametrize("null_space", [False, True])
def test_nothing_is_best_exactly_where_theorem_e_says(kind, null_space):
    """Labels and goals differ only in two rows that A does not see: A'y = A'z without rounding."""
    rng = np.random.default_rng(3)
    answers = []
    for _ in range(40):
        game = random_sphere(rng)
        A = np.column_stack([game.A, game.A[:, 0]]) if null_space else game.A
        seen, y_rest, z_rest = game.z, rng.normal(size=2), rng.normal(size=2)
        if kind == "labels":
            y_rest = z_rest
        elif kind == "at the pole":
            y_rest, z_rest = np.array([1.0, rng.choice([0.5, 4.0])]), np.array([1.0, 0.0])
        elif kind == "in the range":
            seen, z_rest = A @ rng.integers(-3, 4, A.shape[1]), np.zeros(2)
        A = np.vstack([A, np.zeros((2, A.shape[1]))])
        game = Sphere(A, np.append(seen, y_rest), np.append(seen, z_rest), game.gamma)
        expected = has_no_best(game)
        status = solve(A, game.y, game.z, game.gamma).status
        assert (status is Status.UNATTAINED) == expected, status
        answers.append(expected)
    assert any(answers) == (kind != "in the range")
    assert all(answers) == (kind in ("labels", "at the pole"))


def test_branch_and_bound_ends():
    """Theorem C (iii), down to the gap that was asked for."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 4))
    y = X @ [1.0, -1.0, 0.5, 0.0] + rng.normal(size=60)
    z = np.maximum(y, 1.0)
    people = Population([np.inf, 0.02, 1.0], [0.4, 0.3, 0.3])
    for tol in (1e-3, 1e-6, 1e-9):
        found = solve(X, y, z, people, fit_intercept=True, tol=tol)
        assert found.status is Status.OPTIMAL
        assert found.certificate.kind == "proved"
        assert found.certificate.relative_gap <= tol
