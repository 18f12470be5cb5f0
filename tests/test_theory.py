"""Statements of the theory pages that no other test holds, on matrices formed outright.

Nothing here uses the library's own formulas: the Lagrangian of the sphere is a dense matrix, its
pole an eigenvalue.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.special import betainc

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


@pytest.mark.parametrize("gamma", [1e-3, 1.0, 1e3])
def test_goals_that_are_what_the_columns_say_of_the_labels_are_hard_at_every_strength(gamma):
    """Theorem D (i) with D = 0: then the point of no predictor, c = 1, is optimal too."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        m, n = rng.integers(3, 7), rng.integers(1, 3)
        A = np.vstack([rng.normal(size=(m, n)), np.zeros((2, n))])
        w, rest = rng.normal(size=n), rng.normal(size=2)
        z = A @ w
        y = z + np.append(np.zeros(m), rest)
        found = solve(A, y, z, gamma)
        assert found.objective == pytest.approx(rest @ rest, rel=1e-9)
        assert found.alpha == pytest.approx(w @ w / gamma, rel=1e-6)
        np.testing.assert_allclose(found.coef, w, rtol=1e-6)


@pytest.mark.parametrize("seed", range(30))
def test_any_point_and_multiplier_bound_the_game(seed):
    """Theorem R1, on the sphere and off it, with a multiplier of either sign."""
    rng = np.random.default_rng(seed)
    game = random_sphere(rng)
    gamma, n = game.gamma, game.A.shape[1]
    best = solve(game.A, game.y, game.z, gamma).objective
    scale = game.y @ game.y + game.z @ game.z
    L = np.column_stack([game.A, game.z / np.sqrt(gamma)])
    low = np.linalg.eigvalsh(L.T @ L)[0]
    sharp = -np.inf
    for _ in range(200):
        c, nu = rng.uniform(), game.pole + 10.0 ** rng.uniform(-4, 3)
        x = rng.normal(size=n) * 10.0 ** rng.uniform(-3, 1)
        if rng.random() < 0.5:  # the best there is at this multiplier, or nearly
            side = np.append(game.A.T @ game.y, game.z @ game.y + nu * gamma / 2)
            *x, c = np.linalg.solve(game.K(nu), side) * (1 + 0.01 * rng.normal())
            x = np.array(x)
        r = game.A @ x + c * game.z - game.y
        goal = game.z @ r / np.sqrt(gamma) + nu * np.sqrt(gamma) * (c - 0.5)
        rho = np.append(game.A.T @ r + nu * x, goal)
        value = r @ r + nu * (x @ x - gamma * c * (1 - c))
        bound = value - rho @ np.linalg.solve(L.T @ L + nu * np.eye(n + 1), rho)
        assert bound <= best + 1e-9 * (scale + abs(value) + abs(nu) * gamma)
        for least in (low, low - 0.5 * (low + nu)):  # not above the least eigenvalue
            assert value - rho @ rho / (nu + least) <= bound + 1e-9 * (scale + abs(value))
        sharp = max(sharp, bound)
    assert sharp > 0.5 * best - 1e-3 * scale


def test_a_random_start_seldom_misses_a_direction():
    """Theorem R4: in every dimension, by the distribution of a coordinate on the sphere."""
    for size in (2, 3, 4, 10, 1000, 10**6):
        for chance in (1e-8, 1e-3, 0.1, 0.9):
            near = betainc(0.5, (size - 1) / 2, chance**2 / size)
            assert near < chance


@pytest.mark.parametrize("seed", range(20))
def test_the_worst_of_a_range_is_at_one_of_three_corners(seed):
    """Theorem F, ends: of every predictor; the outer two are never worst together."""
    rng = np.random.default_rng(seed)
    t, low = 10.0 ** rng.uniform(-2, 2, size=2)
    high = np.inf if seed % 5 == 0 else low * 10.0 ** rng.uniform(0.1, 2)
    least, most = np.sort(rng.uniform(size=2)) if seed % 4 else (0.0, 1.0)
    h, delta = rng.normal(size=(2, 5))

    def loss(gamma, honest, delta):
        s = 1 / (1 + t / gamma)
        one, other = np.sum((h - delta) ** 2), np.sum((s * h - delta) ** 2)
        return honest * one + (1 - honest) * other

    def corners(delta):
        return [loss(high, most, delta), loss(low, most, delta), loss(low, least, delta)]

    gammas = low + (min(high, 1e6 * low) - low) * np.linspace(0, 1, 41) ** 3
    for honest in np.linspace(least, most, 21):
        for gamma in (*gammas, high):
            assert loss(gamma, honest, delta) <= max(corners(delta)) * (1 + 1e-12)
    if high == np.inf or most == 1.0:
        return
    # Labels at which the outer two are equal, along a line: the middle one is worse there.
    below, above = -1e3, 1e3
    for _ in range(200):
        middle = (below + above) / 2
        first, _, last = corners(middle * h)
        below, above = (below, middle) if first < last else (middle, above)
    first, between, last = corners(below * h)
    assert first == pytest.approx(last)
    assert between > max(first, last)


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
