"""Games against populations: what they equal, and brute force on the loss as it is stated."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.optimize import minimize

from spgls import Population, Status, certify, compare_solvers, solve
from spgls.game.providers import priced_norm
from spgls.population import solve_population
from spgls.reduction import ReducedGame

from . import builders
from .builders import linear_game
from .real_games import red_wine

inf = np.inf
GAMES = 100
BATCH = 10
STARTS = 12
#: Share of random games whose gap must be proved to 1e-8.
PROVED = 0.98


def data(seed):
    rng = np.random.default_rng(seed)
    X, y, _ = linear_game(60, 4, rng, noise=0.5)
    y += 1.0
    return X, y, np.maximum(y, np.quantile(y, 0.6)) + 0.3 * rng.random(60)


OPTIONS = {
    "plain": {},
    "intercept": {"fit_intercept": True},
    "costs": {"fit_intercept": True, "feature_cost": [1.0, 0.1, inf, 4.0]},
    "weights": {"fit_intercept": True, "sample_weight": np.linspace(0.0, 2.0, 60)},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("gamma", [1e-8, 1e-3, 0.5, 1e3, 1e8])
def test_everyone_of_one_strength_is_the_game_of_the_paper(gamma, options):
    X, y, z = data(0)
    paper = solve(X, y, z, gamma, **options)
    for population in (
        Population([gamma], [1.0]),
        Population([gamma, gamma], [0.25, 0.75]),
        Population([gamma, inf, 3.0], [1.0, 0.0, 0.0]),
    ):
        found = solve(X, y, z, population, **options)
        size = np.linalg.norm(paper.coef)
        np.testing.assert_allclose(found.coef, paper.coef, rtol=0, atol=1e-10 * size)
        assert found.intercept == pytest.approx(paper.intercept, rel=1e-9, abs=1e-9)
        assert found.objective == pytest.approx(paper.objective, rel=1e-10)
        assert found.certificate.relative_gap <= 1e-9


@pytest.mark.parametrize("ridge", [0.0, 1e-6, 3.0, 1e6])
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_honest_people_are_least_squares_or_ridge_regression(options, ridge):
    X, y, z = data(1)
    found = solve(X, y, z, Population([inf], [1.0]), ridge=ridge, **options)
    cost = np.asarray(options.get("feature_cost", np.ones(4)))
    root = np.sqrt(options.get("sample_weight", np.ones(60)))
    design = np.c_[X, np.ones(60)] if options.get("fit_intercept") else X
    penalty = ridge / np.r_[cost, np.full(design.shape[1] - 4, inf)]
    stacked = np.r_[root[:, None] * design, np.diag(np.sqrt(penalty))]
    theta = np.linalg.lstsq(stacked, np.r_[root * y, np.zeros(len(penalty))], rcond=None)[0]
    np.testing.assert_allclose(found.coef, theta[:4], rtol=1e-8, atol=1e-10)
    assert found.alpha.shape == (1,)
    assert not found.alpha.any()
    error = root * (design @ theta - y)
    assert found.objective == pytest.approx(error @ error + penalty[:4] @ theta[:4] ** 2, rel=1e-10)
    assert found.status is Status.OPTIMAL
    assert found.certificate.kind == "proved"


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_groups_merge_and_empty_groups_count_for_nothing(options):
    X, y, z = data(2)
    base = solve(X, y, z, Population([inf, 0.3, 2.0], [0.5, 0.3, 0.2]), **options)
    split = Population([0.3, inf, 2.0, 0.3, 7.0, inf], [0.1, 0.25, 0.2, 0.2, 0.0, 0.25])
    found = solve(X, y, z, split, **options)
    np.testing.assert_allclose(found.coef, base.coef, rtol=1e-10)
    assert found.objective == pytest.approx(base.objective, rel=1e-12)
    assert found.alpha.shape == (6,)
    q = priced_norm(found.coef, options.get("feature_cost"))
    np.testing.assert_allclose(found.alpha, q / np.array(split.gammas), rtol=1e-12)
    assert found.alpha[1] == found.alpha[5] == 0.0


def test_population_prints_compares_and_stays_as_it_is():
    one = Population([inf, 0.1], [0.25, 0.75])
    assert repr(one) == "Population(25% honest, 75% gamma 0.1)"
    assert one == Population.mixed(0.1, honest=0.25)
    assert hash(one) == hash(Population.mixed(0.1, honest=0.25))
    assert one.honest == 0.25
    assert Population.mixed(0.1, honest=0).merged() == Population([0.1], [1.0])
    with pytest.raises(AttributeError):
        one.shares = (1.0,)
    assert sum(Population([1.0, 2.0, 3.0], [1 / 3] * 3).shares) == pytest.approx(1.0, abs=1e-15)


def test_solvers_of_the_paper_say_that_they_know_one_strength_only():
    X, y, z = data(3)
    with pytest.raises(ValueError, match=r"solver 'gltr' solves .* got Population\(50% honest"):
        solve(X, y, z, Population.mixed(0.5), solver="gltr")
    with pytest.raises(ValueError, match=r"with ridge 1\. Use solver='spectral'"):
        solve(X, y, z, 0.5, ridge=1.0, solver="ltrsr")
    table = compare_solvers(X, y, z, Population.mixed(0.5), solvers=["spectral", "gltr"])
    assert table["gltr"].solution is None
    assert "one strength" in table["gltr"].reason
    assert table["spectral"].solution.status is Status.OPTIMAL


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_what_nobody_attains_is_attained_with_honest_people_or_a_ridge(fit_intercept):
    X, y, _ = data(4)
    z = y + 1.0 if fit_intercept else y
    options = {"fit_intercept": fit_intercept}
    assert solve(X, y, z, 0.5, **options).status is Status.UNATTAINED
    two = solve(X, y, z, Population([0.5, 2.0], [0.5, 0.5]), **options)
    # One intercept cannot undo a shift for two strengths at once, so a shift is attained.
    assert two.status is (Status.OPTIMAL if fit_intercept else Status.UNATTAINED)
    assert two.certificate.relative_gap <= 1e-9
    for population, ridge in (
        (Population.mixed(0.5, honest=0.1), 0.0),
        (Population.mixed(0.5, honest=1e-6), 0.0),
        (0.5, 1e-3),
    ):
        found = solve(X, y, z, population, ridge=ridge, **options)
        assert found.status is Status.OPTIMAL, (population, ridge)
        assert found.certificate.relative_gap <= 1e-9


class Game(builders.Game):
    """A random game with everything at once."""

    def loss(self, theta):
        """The loss after each group moved its rows, and its slope."""
        w, b = self.split(theta)
        direction = w / self.prices
        q = float(w @ direction)
        by_q = np.r_[2 * direction, [0.0] * self.fit_intercept]
        value, slope = self.ridge * q, self.ridge * by_q
        for gamma, share in zip(self.gamma.gammas, self.gamma.shares, strict=True):
            before = self.X @ w + b
            kept = 1.0 / (1.0 + q / gamma)
            error = kept * before + q / gamma * kept * self.z - self.y
            value += share * float(self.weights @ error**2)
            along = kept * self.design + np.outer(before - self.z, -(kept**2) / gamma * by_q)
            slope = slope + 2 * share * (self.weights * error) @ along
        return value, slope

    def loss_of_moved_rows(self, theta):
        """The same, on the rows themselves; it loses digits where coefficients are huge."""
        w, b = self.split(theta)
        direction = w / self.prices
        value = self.ridge * float(w @ direction)
        for gamma, share in zip(self.gamma.gammas, self.gamma.shares, strict=True):
            step = (self.z - self.X @ w - b) / (gamma + float(w @ direction))
            moved = self.X + np.outer(step, direction)
            value += share * float(self.weights @ (moved @ w + b - self.y) ** 2)
        return value

    def brute_force(self, guesses, rng):
        """Best of many local searches."""
        size = self.design.shape[1]
        ols = np.linalg.lstsq(self.design, self.y, rcond=None)[0]
        scale = np.linalg.norm(ols) + 1e-3
        starts = [ols, *guesses]
        starts += [scale * 10 ** rng.uniform(-3, 2) * rng.normal(size=size) for _ in range(STARTS)]
        ends = []
        for start in starts:
            with np.errstate(all="ignore"):
                end = minimize(self.loss, start, jac=True, method="BFGS", options={"gtol": 1e-12})
            ends.append((self.loss(end.x)[0], tuple(end.x)))
        return min(ends)


@cache
def game(number):
    rng = np.random.default_rng([5, number])
    n, m = int(rng.integers(1, 5)), int(rng.integers(4, 30))
    X = rng.normal(size=(m, n)) * 10 ** rng.uniform(-0.5, 0.5, n) + rng.normal()
    y = X @ rng.normal(size=n) + 10 ** rng.uniform(-1.5, 0.5) * rng.normal(size=m) + rng.normal()
    goal = [
        y + rng.normal(),
        np.maximum(y, np.quantile(y, rng.random())),
        rng.normal(size=m),
        np.full(m, rng.normal()),
        2.0 * y,
    ][number % 5]
    k = int(rng.integers(1, 5))
    gammas = 10 ** rng.uniform(-2.5, 2.5, k)
    if number % 3:
        gammas[0] = inf
    shares = rng.dirichlet(np.ones(k)) if number % 7 else rng.dirichlet(np.full(k, 0.1))
    cost = 10 ** rng.uniform(-1, 1, n) if number % 2 else None
    if cost is not None and n > 1 and number % 4 == 1:
        cost[int(rng.integers(n))] = inf
    ridge = 0.0 if number % 3 == 0 else float(10 ** rng.uniform(-3, 2)) * (number % 2)
    intercept = bool(rng.integers(2))
    weight = rng.random(m) * 2 if number % 4 > 1 else None
    return Game(X, y, goal, Population(gammas, shares), intercept, cost, weight, ridge)


def test_brute_force_minimises_the_loss_of_moved_rows():
    for number in range(GAMES):
        this = game(number)
        rng = np.random.default_rng(number)
        theta = rng.normal(size=this.X.shape[1] + this.fit_intercept)
        value, slope = this.loss(theta)
        assert value == pytest.approx(this.loss_of_moved_rows(theta), rel=1e-9)
        turn = 1e-6 * rng.normal(size=theta.size)
        ahead, behind = this.loss(theta + turn)[0], this.loss(theta - turn)[0]
        assert (ahead - behind) / 2 == pytest.approx(slope @ turn, rel=1e-5, abs=1e-12 * value)


@pytest.mark.parametrize("batch", range(GAMES // BATCH))
def test_brute_force_never_wins(batch):
    for number in range(BATCH * batch, BATCH * (batch + 1)):
        this = game(number)
        found = this.solve()
        rng = np.random.default_rng(number)
        theta = np.r_[found.coef, [found.intercept] * this.fit_intercept]
        value, _ = this.loss(theta)
        best, where = this.brute_force(
            [theta, theta * (1 + 0.1 * rng.normal(size=theta.size))], rng
        )
        spread = float(np.sum(this.y**2))
        assert found.objective == pytest.approx(value, rel=1e-9, abs=1e-12 * spread), number
        limit = 1e-9 * spread if found.status.ok else found.certificate.gap
        assert best >= found.objective - limit, (number, best, found)
        assert found.certificate.lower_bound <= best + 1e-13 * spread, (number, best, found)
        judged = this.certify(*this.split(np.array(where)))
        assert judged.lower_bound <= best + 1e-13 * spread, (number, judged, best)


def test_gaps_are_proved():
    proofs = [game(number).solve().certificate for number in range(GAMES)]
    unproved = [
        (number, proof)
        for number, proof in enumerate(proofs)
        if proof.kind != "proved" or proof.relative_gap > 1e-8
    ]
    assert len(unproved) <= (1 - PROVED) * GAMES, unproved


def test_certificate_tells_a_bad_predictor_from_a_good_one():
    X, y, z = data(5)
    population = Population([inf, 0.2], [0.6, 0.4])
    best = solve(X, y, z, population, fit_intercept=True, ridge=0.1)
    rest = {"intercept": best.intercept, "ridge": 0.1}
    good = certify(X, y, z, population, best.coef, **rest)
    assert good.relative_gap <= 1e-9
    assert good.kkt_residual <= 1e-8
    assert good.lower_bound == pytest.approx(best.certificate.lower_bound, rel=1e-8)
    bad = certify(X, y, z, population, 1.1 * best.coef, **rest)
    assert bad.relative_gap > 1e-4
    assert bad.kkt_residual > 1e-4
    assert bad.lower_bound == pytest.approx(good.lower_bound, rel=1e-12)


@pytest.mark.parametrize(
    ("strategic", "honest", "attacked"),
    [(0.5, 0.4250, 0.3653), (0.9, 0.5756, 0.3252), (0.99, 1.805, 0.2889), (1.0, 35.52, 0.2654)],
)
def test_red_wine(strategic, honest, attacked):
    X, y = red_wine()
    z = np.maximum(y, 6.0)
    found = solve(X, y, z, Population.mixed(50.0, honest=1 - strategic), fit_intercept=True)
    assert found.status is Status.OPTIMAL
    plain = X @ found.coef + found.intercept
    pull = found.pull[1]
    moved = (1 - pull) * plain + pull * z
    assert np.mean((plain - y) ** 2) == pytest.approx(honest, rel=2e-3)
    assert np.mean((moved - y) ** 2) == pytest.approx(attacked, rel=2e-3)


POPULATION = Population([inf, 0.05, 3.0], [0.5, 0.3, 0.2])


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("ridge", [0.0, 0.7])
def test_weights_are_repeated_rows(seed, ridge):
    X, y, z = data(seed)
    times = np.random.default_rng(seed).integers(0, 4, size=60)
    options = {"fit_intercept": seed % 2 == 0, "ridge": ridge}
    if seed % 3 == 0:
        options["feature_cost"] = [inf, 1.0, 0.2, 3.0]
    weighted = solve(X, y, z, POPULATION, sample_weight=times, **options)
    repeated = solve(*(np.repeat(t, times, axis=0) for t in (X, y, z)), POPULATION, **options)
    np.testing.assert_allclose(
        X @ weighted.coef + weighted.intercept,
        X @ repeated.coef + repeated.intercept,
        rtol=0,
        atol=1e-9 * np.abs(y).max(),
    )


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("ridge", [0.0, 0.7])
def test_order_of_columns_and_units_do_not_matter(seed, ridge):
    X, y, z = data(seed)
    options = {"fit_intercept": seed % 2 == 0, "ridge": ridge}
    base = solve(X, y, z, POPULATION, **options)
    plain = X @ base.coef + base.intercept
    order = np.random.default_rng(seed).permutation(4)
    turned = solve(X[:, order], y, z, POPULATION, **options)
    near = {"rtol": 0, "atol": 1e-9 * np.abs(plain).max()}
    np.testing.assert_allclose(X[:, order] @ turned.coef + turned.intercept, plain, **near)
    # 7X divides coefficients by 7, 100y multiplies them by 100: q scales by (100/7)^2.
    scale = (100.0 / 7.0) ** 2
    gammas = [gamma * scale for gamma in POPULATION.gammas]
    options["ridge"] = ridge * 49.0
    other = solve(7 * X, 100 * y, 100 * z, Population(gammas, POPULATION.shares), **options)
    np.testing.assert_allclose((7 * X @ other.coef + other.intercept) / 100, plain, **near)
    np.testing.assert_allclose(other.alpha, base.alpha, rtol=1e-8)


def test_advice_where_immutable_columns_nearly_depend_on_each_other():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(30, 4))
    X[:, 1] = X[:, 0] + 3e-15 * rng.normal(size=30)
    y = X[:, 2] + rng.normal(size=30)
    people, cost = Population.mixed(0.5, honest=0.5), np.array([inf, inf, 1.0, 1.0])
    found = solve(X, y, np.maximum(y, 0.5), people, feature_cost=cost)
    assert found.status is Status.INACCURATE
    assert "Leave out immutable columns that other immutable ones nearly explain" in found.advice
    few = solve(X[:, 1:], y, np.maximum(y, 0.5), people, feature_cost=cost[1:])
    assert few.status.ok


@pytest.mark.parametrize("null_space", ["use", "avoid"])
@pytest.mark.parametrize("ridge", [0.0, 0.1])
@pytest.mark.parametrize("honest", [0.0, 0.5])
@pytest.mark.parametrize("full_rank", [True, False])
def test_when_an_optimum_is_attained_and_what_is_advised(honest, ridge, null_space, full_rank):
    """Goals that are the labels: what keeps the coefficients from growing for ever."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(30, 3))
    y = X @ [1.0, 2.0, 0.0] + rng.normal(size=30)
    table = X if full_rank else np.hstack([X, X])
    people = Population.mixed(0.5, honest=honest)
    found = solve(table, y, y, people, fit_intercept=True, ridge=ridge, null_space=null_space)
    attained = ridge > 0.0 or (honest > 0.0 and (full_rank or null_space == "avoid"))
    assert (found.status is Status.UNATTAINED) == (not attained)
    assert found.status.ok == attained
    if not attained:
        assert ("Treat some providers as honest" in found.advice) == (honest == 0.0)
        assert ("null_space='avoid'" in found.advice) == (honest > 0.0)
        assert "ridge" in found.advice
    assert found.setting.honest == (honest > 0.0)
    assert found.setting.ridge == (ridge > 0.0)
    assert found.setting.avoids_null == (null_space == "avoid")


@pytest.mark.parametrize("weak", [1e-16, 5.5e-13, 1e-9, 1e-6, 1e-2])
def test_labels_in_a_direction_hardly_shown_are_paid_for(weak):
    """What a point claims to lose is what it loses, though its multiplier is the least there is."""
    sigma, y, z = np.array([5.6, weak]), np.array([0.6, 0.093]), np.array([6.0, 0.02])
    gammas, shares = np.array([3.4, np.inf, 1e8]), np.array([0.375, 0.125, 0.5])
    found = solve_population(ReducedGame(sigma, y, z, 2.5, 0.1, 0.01), gammas, shares)
    kept = 1.0 / (1.0 + found.t / gammas[:, None])
    ends = [found.x + np.array([0.0, sign * found.fill]) for sign in (-1.0, 1.0)]
    least, most = sorted(
        shares @ ((kept * (sigma * x - z) + z - y) ** 2).sum(axis=1)
        + shares @ ((1 - kept[:, 0]) ** 2 * 0.01 - 2 * (1 - kept[:, 0]) * 0.1 + 2.5)
        for x in ends
    )
    assert least - 1e-12 <= found.value <= most + 1e-12
    assert found.lower_bound <= found.value
