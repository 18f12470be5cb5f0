"""Mixed populations on a reduced game: the search, its bounds, and its proof.

``Brute`` knows nothing of the library: it embeds the game in explicit vectors, solves the problem
at a fixed norm by bisection in extended precision, and adds up the loss group by group.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from spgls.population import GroupMoments, interval_bound, phi, solve_population
from spgls.population.far import above_infinity
from spgls.population.section import Sections
from spgls.reduction.reduced import ReducedGame
from spgls.sphere import dual_bound, solve_sphere
from tests.builders import random_reduced, reduced
from tests.oracles.families import problems

INF = np.inf
EPS = np.finfo(float).eps
LONG = np.longdouble


@dataclass(frozen=True, eq=False)
class Mixed:
    """A reduced game and a population."""

    name: str
    game: ReducedGame
    gammas: np.ndarray
    shares: np.ndarray
    ridge: float = 0.0

    @property
    def args(self):
        return self.game, self.gammas, self.shares

    def solve(self, **options):
        return solve_population(*self.args, ridge=self.ridge, **options)

    def phi(self, t):
        return phi(*self.args, t, self.ridge)


class Brute:
    """The learner's loss by its definition, in extended precision."""

    def __init__(self, mixed: Mixed) -> None:
        game = mixed.game
        self.sigma, eta, zeta = (LONG(v) for v in (game.sigma, game.eta, game.zeta))
        k = game.size
        # Labels and goals outside the data: a Cholesky factor of their Gram matrix.
        r_yy, r_yz, r_zz = (LONG(v) for v in (game.r_yy, game.r_yz, game.r_zz))
        root = np.sqrt(r_yy)
        along = r_yz / root if root > 0 else LONG(0)
        rest = np.sqrt(max(r_zz - along**2, LONG(0)))
        self.y = np.concatenate([eta, [root, LONG(0)]])
        self.z = np.concatenate([zeta, [along, rest]])
        # One coordinate that the shared free part can fit, where y - z = sqrt(f).
        self.free = np.sqrt(LONG(game.free_gap))
        self.gammas, self.shares, self.ridge = mixed.gammas, LONG(mixed.shares), LONG(mixed.ridge)
        self.k, self.nullity = k, game.nullity
        self.d = self.sigma**2

    def s(self, t):
        return 1 / (1 + LONG(t)[..., None] / LONG(self.gammas))

    def c(self, t):
        t = LONG(t)[..., None]
        return np.where(np.isinf(self.gammas), 0, t / (LONG(self.gammas) + t))

    def point(self, t):
        """Best coefficients with ``|v|^2 = t``, and the norm to be put in the lowest space."""
        s = self.s(t)
        a = (self.shares * s**2).sum(-1)[:, None]
        p = (self.shares * s).sum(-1)[:, None]
        u = (self.shares * s * self.c(t)).sum(-1)[:, None]
        y, z = self.y[: self.k], self.z[: self.k]
        goal = self.sigma * (p * y - u * z) / a
        if not self.k:
            return np.zeros((t.size, 0), LONG), np.sqrt(LONG(t))
        pole = LONG(0) if self.nullity else -self.d.min()
        lo, hi = np.full((t.size, 1), LONG(1e-40)), np.sqrt((goal**2).sum(-1) / t)[:, None] + 1e-38
        gaps = self.d + pole
        for _ in range(110):
            mid = np.sqrt(lo * hi)
            long = ((goal / (gaps + mid)) ** 2).sum(-1)[:, None] > t[:, None]
            lo, hi = np.where(long, mid, lo), np.where(long, hi, mid)
        v = goal / (gaps + hi)
        return v, np.sqrt(np.maximum(t - (v**2).sum(-1), 0))

    def loss(self, t):
        """Loss of an actual predictor at each t: an upper bound of the infimum whatever happens."""
        t = LONG(np.atleast_1d(t))
        v, fill = self.point(t)
        if self.k and not self.nullity:
            low = int(np.argmin(self.d))
            v = v.copy()
            v[:, low] += np.where(v[:, low] < 0, -fill, fill)
        t = (v**2).sum(-1) + (fill**2 if self.nullity else 0)
        s = self.s(t)
        best = (self.shares * s).sum(-1) / (self.shares * s**2).sum(-1) * self.free
        total = self.ridge * t
        fitted = np.zeros((t.size, self.k + 2), LONG)
        fitted[:, : self.k] = self.sigma * v
        for share, s_k, c_k in zip(self.shares, s.T, self.c(t).T, strict=True):
            residual = s_k[:, None] * fitted + c_k[:, None] * self.z - self.y
            # The free coordinate has goal 0 and label sqrt(f).
            total = total + share * ((residual**2).sum(-1) + (s_k * best - self.free) ** 2)
        return t, total

    def best(self, centre: float):
        """Least loss over a scan of every scale, refined around the best of it."""
        finite = [g for g in self.gammas if np.isfinite(g)]
        scales = [*finite, *([centre] if centre > 0 else [])]
        low, high = min(scales, default=1.0) * 1e-10, max(scales, default=1.0) * 1e10
        grid = np.geomspace(low, high, 300)
        least = [(self.y**2).sum()]
        for _ in range(4):
            _, loss = self.loss(grid)
            i = int(np.argmin(loss))
            least.append(loss[i])
            grid = np.geomspace(grid[max(i - 1, 0)], grid[min(i + 1, grid.size - 1)], 40)
        return min(least)


def population(rng, gamma: float):
    """One to four groups within a few decades of a strength, half the time with an honest one."""
    count = int(rng.integers(1, 5))
    gammas = gamma * 10.0 ** rng.uniform(-3, 3, count)
    if rng.random() < 0.5:
        gammas[0] = INF
    return gammas, rng.dirichlet(np.full(count, 0.7)) * (1 - 4e-6) + 4e-6 / count


def mixed_games(count: int, seed: int) -> list[Mixed]:
    made = []
    for i, problem in enumerate(problems(count, seed=seed)):
        rng = np.random.default_rng([seed, i, 1])
        game = reduced(problem)
        free = rng.choice([0.0, 1.0, 10.0]) * rng.exponential() * (game.yy + game.zz)
        game = replace(game, free_gap=float(free))
        gammas, shares = population(rng, problem.gamma)
        top = float(game.d.max()) if game.size else 1.0
        ridge = top * 10.0 ** rng.uniform(-6, 1) if rng.random() < 0.4 else 0.0
        made.append(Mixed(problem.name, game, gammas, shares, ridge))
    return made


def in_units(game: ReducedGame, column: float, label: float) -> ReducedGame:
    rest = (label**2 * part for part in (game.r_yy, game.r_yz, game.r_zz))
    vectors = column * game.sigma, label * game.eta, label * game.zeta
    return ReducedGame(*vectors, *rest, game.nullity, label**2 * game.free_gap)


def test_two_minima_of_the_design_example():
    """One feature, X'X = 1, X'y = -3, X'z = 1, yy = 9, zz = 5, yz = -3."""
    one = np.array([1.0])
    game = ReducedGame(one, -3 * one, one, 0.0, 0.0, 4.0)
    mixed = Mixed("two minima", game, np.array([INF, 0.01]), np.array([0.5, 0.5]))
    found = mixed.solve()
    assert found.value == pytest.approx(8.970, abs=5e-4)
    assert found.t < 1e-3
    assert found.proved
    assert found.outcome == "unique"
    t = np.geomspace(1e-6, 100, 20_001)
    loss = mixed.phi(t)
    minima = np.flatnonzero((loss[1:-1] < loss[:-2]) & (loss[1:-1] < loss[2:])) + 1
    assert len(minima) == 2
    assert t[minima[1]] == pytest.approx(8.937, abs=0.01)
    assert loss[minima[1]] == pytest.approx(9.978, abs=5e-4)


def test_one_group_is_the_sphere_problem():
    """Also where the sphere solver misses its optimum, which its own dual bound tells."""
    missed = 0
    for problem in problems(310, seed=21):
        game = reduced(problem, free_gap=0.3)
        if not game.size + game.nullity:
            continue
        exact = solve_sphere(game, problem.gamma)
        found = solve_population(game, [problem.gamma], [1.0])
        rounding = 32 * EPS * (game.yy + exact.c**2 * game.zz)
        if exact.value - dual_bound(game, problem.gamma, exact) > 1e-9 * game.yy + rounding:
            assert found.proved, problem
            missed += 1
            continue
        assert found.value == pytest.approx(exact.value, rel=1e-10, abs=1e-14 * game.yy), problem
        assert found.outcome == exact.outcome
        np.testing.assert_allclose(found.x * exact.s, exact.x, rtol=1e-10)
        assert found.fill * exact.s == pytest.approx(exact.fill, rel=1e-10)
        assert found.lower_bound <= found.value
    assert missed <= 2


def test_general_search_agrees_with_the_sphere_problem():
    """A vanishing ridge keeps one strength from being handed to the other solver."""
    rng = np.random.default_rng(3)
    for i in range(60):
        game = random_reduced(int(rng.integers(1, 9)), rng, nullity=i % 2)
        gamma = 10.0 ** rng.uniform(-2, 2)
        exact = solve_sphere(game, gamma)
        found = solve_population(game, [gamma], [1.0], ridge=1e-300)
        assert found.value == pytest.approx(exact.value, rel=1e-13)
        np.testing.assert_allclose(found.x, exact.x / exact.s, rtol=1e-9, atol=1e-12)
        assert found.nu == pytest.approx(exact.nu, rel=1e-9, abs=1e-10)


@pytest.mark.parametrize("ridge", [0.0, 1e-3, 2.0])
@pytest.mark.parametrize("nullity", [0, 2])
def test_honest_population_is_ridge_regression(ridge, nullity):
    game = random_reduced(7, 4, nullity=nullity)
    found = solve_population(game, [INF], [1.0], ridge=ridge)
    x = game.sigma * game.eta / (game.d + ridge)
    loss = np.sum((game.sigma * x - game.eta) ** 2) + game.r_yy + ridge * x @ x
    np.testing.assert_allclose(found.x, x, rtol=1e-14)
    assert found.value == pytest.approx(loss, rel=1e-14)
    assert found.t == pytest.approx(x @ x, rel=1e-14)
    assert found.proved
    assert found.lower_bound <= loss


def test_nearly_honest_population_tends_to_ridge_regression():
    game = random_reduced(7, 5)
    for ridge in (0.0, 0.1):
        x = game.sigma * game.eta / (game.d + ridge)
        for gammas, shares in (([INF, 1.0], [1 - 1e-12, 1e-12]), ([1e14, 1e15], [0.5, 0.5])):
            found = solve_population(game, gammas, shares, ridge=ridge)
            np.testing.assert_allclose(found.x, x, rtol=1e-10, atol=1e-10)


def test_splitting_a_group_changes_nothing():
    rng = np.random.default_rng(6)
    for ridge in (0.0, 0.05):
        game = random_reduced(6, rng)
        whole = solve_population(game, [INF, 0.7, 3.0], [0.5, 0.3, 0.2], ridge=ridge)
        split = solve_population(game, [0.7, INF, 3.0, 0.7], [0.1, 0.5, 0.2, 0.2], ridge=ridge)
        np.testing.assert_allclose(split.x, whole.x, rtol=1e-12)
        near = solve_population(
            game, [0.7, INF, 3.0, 0.7 + 1e-9], [0.1, 0.5, 0.2, 0.2], ridge=ridge
        )
        np.testing.assert_allclose(near.x, whole.x, rtol=1e-7)


def test_vanishing_share_vanishes():
    game = random_reduced(6, 7)
    without = solve_population(game, [INF, 0.5], [0.6, 0.4])
    errors = []
    for share in (1e-2, 1e-4, 1e-6, 1e-10):
        found = solve_population(game, [INF, 0.5, 2.0], [0.6 - share, 0.4, share])
        errors.append(np.abs(found.x - without.x).max())
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 1e-8


def test_stationary_and_on_the_sphere():
    """The fields mean what they say: norm, multiplier, value."""
    rng = np.random.default_rng(8)
    for i in range(40):
        game = random_reduced(5, rng, nullity=i % 2)
        gammas, shares = population(rng, 1.0)
        ridge = 0.1 if i % 3 == 0 else 0.0
        found = solve_population(game, gammas, shares, ridge=ridge)
        m = GroupMoments(gammas, shares).at(np.array([found.t]))
        assert found.x @ found.x + found.fill**2 == pytest.approx(found.t, rel=1e-13)
        right = game.sigma * (m.p * game.eta - m.u * game.zeta) / m.a
        np.testing.assert_allclose((game.d + found.nu) * found.x, right, atol=1e-11)
        assert found.value == pytest.approx(float(phi(game, gammas, shares, found.t, ridge)))
        assert found.steps > 0 or len(gammas) == 1


def test_sample_of_mixed_games_is_never_beaten_and_always_bounded():
    """Against a scan and local refinement in extended precision that share no code."""
    proved, count = 0, 0
    for mixed in mixed_games(186, seed=31):
        game = mixed.game
        if not game.size + game.nullity:
            continue
        found = mixed.solve(tol=1e-8)
        best = float(Brute(mixed).best(found.t))
        assert found.value <= best + 1e-8 * game.yy, mixed.name
        assert found.lower_bound <= best * (1 + 4 * EPS), mixed.name
        assert found.lower_bound <= found.value
        assert found.proved == (found.value - found.lower_bound <= 1e-8 * game.yy), mixed.name
        count += 1
        proved += found.proved
    assert count >= 165
    assert proved >= 0.98 * count


def test_phi_agrees_with_extended_precision():
    for mixed in mixed_games(124, seed=5):
        if not mixed.game.size + mixed.game.nullity:
            continue
        finite = mixed.gammas[np.isfinite(mixed.gammas)]
        t = np.median(finite if finite.size else [1.0]) * np.geomspace(1e-8, 1e8, 9)
        exact_t, exact = Brute(mixed).loss(t)
        close = np.abs(exact_t / t - 1) < 1e-15
        scale = mixed.game.yy + mixed.ridge * t + mixed.game.free_gap + np.abs(exact)
        excess = (mixed.phi(t) - exact)[close] / scale[close]
        assert np.all(excess < 1e-14), mixed.name


def test_interval_bound_never_exceeds_phi():
    """6000 random intervals, a fine grid inside each."""
    rng = np.random.default_rng(9)
    count, tight = 0, 0
    for mixed in [m for m in mixed_games(150, seed=41) if m.game.size + m.game.nullity]:
        finite = mixed.gammas[np.isfinite(mixed.gammas)]
        centre = float(np.median(finite)) if finite.size else 1.0
        if not finite.size:
            continue
        low = centre * 10.0 ** rng.uniform(-6, 6, 52)
        high = low * np.exp(10.0 ** rng.uniform(-6, 1, 52))
        low[0], high[1] = 0.0, INF
        bound = interval_bound(*mixed.args, low, high, mixed.ridge)
        part = np.linspace(0.0, 1.0, 41)
        inner_low = np.where(low > 0.0, low, high * 1e-12)
        inner_high = np.where(np.isfinite(high), high, low * 1e12)
        t = np.clip(
            inner_low[:, None] * (inner_high / inner_low)[:, None] ** part,
            low[:, None],
            high[:, None],
        )
        loss = mixed.phi(t)
        assert np.all(bound <= loss.min(axis=1)), mixed.name
        count += low.size
        narrow = high - low < 1e-3 * low
        tight += np.sum(bound[narrow] >= loss.min(axis=1)[narrow] - 1e-4 * mixed.game.yy)
    assert count >= 6000
    assert tight >= 1000


def test_intervals_that_reach_zero_or_infinity():
    rng = np.random.default_rng(10)
    for i in range(30):
        game = random_reduced(4, rng, nullity=i % 2)
        gammas, shares = population(rng, 1.0)
        end = 10.0 ** rng.uniform(-9, 9, 20)
        first = interval_bound(game, gammas, shares, np.zeros(20), end)
        last = interval_bound(game, gammas, shares, end, np.full(20, INF))
        for j in range(20):
            assert first[j] <= phi(game, gammas, shares, end[j] * np.geomspace(1e-14, 1, 50)).min()
            assert last[j] <= phi(game, gammas, shares, end[j] * np.geomspace(1, 1e14, 50)).min()
        assert interval_bound(game, gammas, shares, 0.0, 1e-25)[0] >= game.yy * (1 - 1e-9)


def test_units_do_not_matter():
    """Columns times 7, labels and goals times 100, strengths and ridge to match."""
    rng = np.random.default_rng(11)
    for i in range(20):
        game = random_reduced(5, rng, nullity=i % 2)
        gammas, shares = population(rng, 1.0)
        ridge = 0.1 * (i % 3)
        other = in_units(game, 7.0, 100.0)
        found = solve_population(game, gammas, shares, ridge=ridge)
        there = solve_population(other, gammas * (100 / 7) ** 2, shares, ridge=ridge * 49)
        np.testing.assert_allclose(there.x * 7 / 100, found.x, rtol=1e-9, atol=1e-12)
        assert there.value == pytest.approx(found.value * 1e4, rel=1e-12)
        assert there.nu == pytest.approx(found.nu * 49, rel=1e-8, abs=1e-9)
        assert there.outcome == found.outcome


@pytest.mark.parametrize("size", [1, 2, 500, 3000])
@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_extreme_populations(size, scale):
    game = in_units(replace(random_reduced(size, size), free_gap=1.0), 1.0, scale)
    gammas, shares = np.array([1e-8, 1e8, INF, 1.0]), np.array([1e-6, 0.3, 0.4, 0.3 - 1e-6])
    found = solve_population(game, gammas, shares, tol=1e-8)
    assert found.proved
    t = found.t * np.geomspace(1e-6, 1e6, 200)
    assert found.value <= phi(game, gammas, shares, t).min() * (1 + 1e-13)
    strong = solve_population(game, gammas[:2], [1e-6, 1 - 1e-6], tol=1e-8)
    assert strong.proved


def test_unattained_infimum():
    """Goals that are the labels: the loss falls to zero as the coefficients grow."""
    rng = np.random.default_rng(12)
    eta, y = rng.normal(size=4), rng.normal(size=3)
    game = ReducedGame(np.exp(rng.normal(size=4)), eta, eta, y @ y, y @ y, y @ y)
    found = solve_population(game, [0.5, 2.0], [0.4, 0.6], tol=1e-8)
    assert found.outcome == "unattained"
    assert found.proved
    assert 0.0 <= found.value <= 1e-8 * game.yy
    smaller = phi(game, [0.5, 2.0], [0.4, 0.6], found.t * np.geomspace(1e-9, 0.99, 100))
    assert smaller.min() > found.value
    for more in ({"gammas": [0.5, INF]}, {"gammas": [0.5, 2.0], "ridge": 1e-3}):
        attained = solve_population(game, shares=[0.4, 0.6], tol=1e-8, **more)
        assert attained.outcome == "unique"
        assert attained.proved


def test_honest_share_does_not_keep_the_infimum_with_a_null_space():
    """Null vectors let strategic providers reach the goal and honest predictions be."""
    rng = np.random.default_rng(13)
    eta, y = rng.normal(size=4), rng.normal(size=3)
    game = ReducedGame(np.exp(rng.normal(size=4)), eta, eta, y @ y, y @ y, y @ y, 2)
    found = solve_population(game, [0.5, INF], [0.4, 0.6], tol=1e-8)
    assert found.outcome == "unattained"
    assert found.proved
    assert found.value == pytest.approx(0.6 * game.r_yy, abs=1e-8 * game.yy)


@pytest.mark.parametrize("short", [1e-2, 1e-4, 1e-6])
def test_minimum_far_beyond_every_strength_is_found_without_a_proof(short):
    """With a null space the loss may fall below its limit far out, and rise to it from there."""
    one = np.array([1.0])
    game = ReducedGame(one, one, one, 1.0, 0.5 - short, 0.5, 1)
    groups = [INF, 1.0], [0.5, 0.5]
    found = solve_population(game, *groups, certify=False)
    t = np.geomspace(1e-3, 1e12, 200_001)
    values = phi(game, *groups, t)
    limit = 0.5 * game.r_yy + 0.5 * (game.r_yy - 2 * game.r_yz + game.r_zz)
    assert found.outcome == "several"
    assert limit - found.value == pytest.approx(short**2, rel=0.1)
    assert found.value <= values.min() + 1e-15
    assert found.t == pytest.approx(t[np.argmin(values)], rel=1e-2)


@pytest.mark.parametrize("seed", range(20))
def test_search_sees_both_sides_of_a_kink(seed):
    """Goals that are a multiple of the labels: at one norm nothing is left to fit."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(1, 8))
    sigma, eta = np.exp(rng.normal(size=k)), rng.normal(size=k)
    out = rng.exponential()
    game = ReducedGame(sigma, eta, 1.5 * eta, out, 1.5 * out, 2.25 * out)
    for gamma, ridge in 10.0 ** rng.uniform([-3, -4], [2, 0], (8, 2)):
        quick = solve_population(game, [gamma], [1.0], ridge=ridge, certify=False)
        proved = solve_population(game, [gamma], [1.0], ridge=ridge)
        assert proved.proved
        assert quick.value <= proved.value + 1e-9 * game.yy


@pytest.mark.parametrize("gammas", [[INF, 2.0], [INF, 0.03, 2.0, 50.0]])
def test_loss_less_its_limit_keeps_its_digits(gammas):
    game = random_reduced(4, 3, nullity=1)
    shares = np.full(len(gammas), 1 / len(gammas))
    brute = Brute(Mixed("far", game, np.array(gammas), shares))
    sections = Sections(game, np.array(gammas), shares, 0.0)
    t = np.geomspace(1e3, 1e9, 7)
    limit = shares[0] * LONG(game.r_yy) + (1 - LONG(shares[0])) * (
        ((brute.y - brute.z) ** 2).sum() + brute.free**2
    )
    ours = above_infinity(sections, t / sections.units.t) * sections.units.length**2
    np.testing.assert_allclose(ours, (brute.loss(t)[1] - limit).astype(float), rtol=1e-8)


def test_nothing_to_learn():
    zero = np.zeros(3)
    plain = ReducedGame(np.ones(3), zero, zero, 2.0, -1.0, 1.0)
    found = solve_population(plain, [INF, 1.0], [0.5, 0.5])
    assert found.t == 0.0
    assert found.value == 2.0
    assert found.proved
    empty = ReducedGame(np.zeros(0), np.zeros(0), np.zeros(0), 2.0, 1.0, 1.0)
    found = solve_population(empty, [INF, 1.0], [0.5, 0.5])
    assert (found.t, found.value, found.lower_bound) == (0.0, 2.0, pytest.approx(2.0))
    silent = ReducedGame(np.ones(3), zero, np.ones(3), 0.0, 0.0, 0.0)
    found = solve_population(silent, [INF, 1.0], [0.5, 0.5])
    assert (found.t, found.value, found.proved) == (0.0, 0.0, True)


def test_null_space_alone_reads_the_goal():
    """No data, only directions nobody sees: their norm sets how far providers go."""
    game = ReducedGame(np.zeros(0), np.zeros(0), np.zeros(0), 1.0, 0.6, 1.0, 1)
    gammas, shares = [1.0, 4.0], [0.5, 0.5]
    found = solve_population(game, gammas, shares, tol=1e-10)
    t = np.geomspace(1e-3, 1e3, 100_001)
    c = t[:, None] / (np.array(gammas) + t[:, None])
    loss = (1.0 - 1.2 * c + c**2) @ shares
    assert found.value == pytest.approx(loss.min(), rel=1e-9)
    assert found.t == pytest.approx(t[np.argmin(loss)], rel=1e-3)
    assert found.fill**2 == pytest.approx(found.t)
    assert found.outcome == "several"
    assert found.proved


def test_limits_are_honest():
    rng = np.random.default_rng(14)
    game = random_reduced(6, rng)
    rough = solve_population(game, [INF, 0.5], [0.5, 0.5], tol=1e-12, max_intervals=10)
    full = solve_population(game, [INF, 0.5], [0.5, 0.5], tol=1e-12)
    assert not rough.proved
    assert rough.lower_bound <= full.value
    unproved = solve_population(game, [INF, 0.5], [0.5, 0.5], certify=False)
    assert unproved.lower_bound == -INF
    assert not unproved.proved
    assert unproved.intervals == 0
    assert unproved.value == pytest.approx(full.value, rel=1e-14)


def test_moments_against_their_definitions():
    """And derivatives against differences, in extended precision."""
    gammas, shares = np.array([INF, 0.03, 2.0, 50.0]), np.array([0.2, 0.3, 0.1, 0.4])
    groups = GroupMoments(gammas, shares)
    order = np.argsort(gammas)
    for t in (1e-9, 1e-3, 1.0, 40.0, 1e7):
        m = groups.at(np.array([t]))
        s = 1 / (1 + LONG(t) / LONG(gammas))
        a, p = (LONG(shares) * s**2).sum(), (LONG(shares) * s).sum()
        np.testing.assert_allclose(m.s[0], s[order].astype(float), rtol=1e-15)
        assert float(m.a[0]) == pytest.approx(float(a), rel=1e-14)
        assert float(m.e[0]) == pytest.approx(float(p * p / a), rel=1e-14)
        variance = (LONG(shares) * (s - p) ** 2).sum() / a
        assert float(m.spread[0]) == pytest.approx(float(variance), rel=1e-9)
        step = 1e-4
        up, down = (groups.at(np.array([t * np.exp(h)])) for h in (step, -step))
        assert float(m.fall.sum()) == pytest.approx(
            float(up.spread[0] - down.spread[0]) / (2 * step), rel=1e-6
        )
        assert float((m.fall * m.growth).sum()) == pytest.approx(
            float(up.fall.sum() - down.fall.sum()) / (2 * step), rel=1e-5, abs=1e-16
        )
