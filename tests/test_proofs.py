"""No certificate may exclude a predictor that exists, whatever rounding did to the game."""

from __future__ import annotations

import os
from dataclasses import replace
from fractions import Fraction
from math import inf

import numpy as np
import pytest

from spgls import (
    Floor,
    Population,
    StackelbergRegressor,
    Status,
    certify,
    solve,
    solve_path,
)
from spgls.datasets import (
    load_blog_feedback,
    load_insurance,
    load_residential_building,
    load_wine_quality,
)
from spgls.population import solve_population
from spgls.reduction import ReducedGame
from spgls.reduction.data import GameData
from spgls.reduction.dependence import Dependence, exact_dependence
from spgls.reduction.layout import Layout
from spgls.reduction.rounding import Rounding
from spgls.reduction.second_moments import reduce_moments
from spgls.reduction.sums import Origin
from spgls.reduction.triangular import reduce_triangle
from spgls.solvers import Spectral
from spgls.sphere import build_certificate, dual_bound, solve_sphere

ENGINES = ("auto", "gram", "qr")


@pytest.mark.parametrize("engine", ENGINES)
def test_prices_count_where_a_rank_is_cut(engine):
    """Raw columns of order one with tiny prices once put the cut above every singular value."""
    rng = np.random.default_rng(0)
    X, y, z = rng.normal(size=(3, 6)), rng.normal(size=3), np.zeros(3)
    told = {"feature_cost": np.full(6, 1e-40), "solver": Spectral(engine=engine)}
    plain = solve(X, y, z, 1.0, solver=Spectral(engine=engine))
    priced = solve(X, y, z, 1e40, **told)
    np.testing.assert_allclose(priced.coef, plain.coef, rtol=1e-7)
    assert priced.certificate.lower_bound <= plain.objective * (1 + 1e-9)


@pytest.mark.parametrize("engine", ENGINES)
def test_large_labels_and_goals_that_are_close(engine):
    """Their means are rounded, but not the mean of their difference."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4, 1)) + 4e4
    y = 621391.0 + np.array([0.9465640828, 0.4465640828, -0.6534359172, 0.7465640828])
    z = y + np.array([-0.7, -0.11, -0.09, 0.76])
    people = Population([6000.0, 1.5e-10], [0.5, 0.5])
    found = solve(X, y, z, people, fit_intercept=True, solver=Spectral(engine=engine))
    rows, coef = [Fraction(float(x)) for x in X[:, 0]], Fraction(float(found.coef[0]))
    labels, goals = ([Fraction(float(t)) for t in part] for part in (y, z))
    groups = []
    for gamma, share in zip(people.gammas, people.shares, strict=True):
        s = 1 / (1 + coef * coef / Fraction(gamma))
        groups.append((s, 1 - s, Fraction(share)))
    each = list(zip(rows, labels, goals, strict=True))
    top = sum(f * s * (a - s * x * coef - c * b) for s, c, f in groups for x, a, b in each)
    best = top / sum(f * s * s for s, c, f in groups for _ in each)
    true = sum(
        f * (s * (x * coef + best) + c * b - a) ** 2 for s, c, f in groups for x, a, b in each
    )
    assert found.certificate.lower_bound <= float(true) * (1 + 1e-13)


def _true_game(rng):
    """Data, and the exact game on it, whose optimum is known to rounding."""
    m, n = int(rng.integers(3, 9)), int(rng.integers(1, 4))
    X = rng.normal(size=(m, n)) * 10.0 ** rng.uniform(-2, 2, size=n)
    y = rng.normal(size=m) * 10.0 ** rng.uniform(-1, 1)
    z = y + rng.normal(size=m) * 10.0 ** rng.uniform(-2, 2)
    return X, y, z


@pytest.mark.parametrize("amplified", [1e-8, 1e-6, 1e-4, 1e-3])
@pytest.mark.parametrize("kind", ["squared", "factor"])
@pytest.mark.parametrize("same", [False, True], ids=["goals", "labels"])
def test_bounds_hold_where_rounding_is_amplified(kind, amplified, same):
    """A game computed from data, or from moments, that are wrong by a known amount.

    Where the goals are the labels they are wrong alike.
    """
    origin = Origin(same=same)
    rng = np.random.default_rng(int(-np.log10(amplified)) + (kind == "factor"))
    useful = 0
    for _ in range(150):
        X, y, z = _true_game(rng)
        n = X.shape[1]
        layout, rows = Layout(n), np.column_stack([X, y, y if same else z])
        true = reduce_triangle(layout, rows.copy(), origin, len(y)).game
        sizes = np.linalg.norm(rows, axis=0)
        if kind == "factor":
            error = rng.normal(size=rows.shape)
            wrong = rows + amplified * sizes * error / np.linalg.norm(error, axis=0)
            if same:
                wrong[:, n + 1] = wrong[:, n]
            reduction = reduce_triangle(layout, wrong, origin, len(y))
        else:
            error = rng.uniform(-1, 1, size=(n + 2, n + 2))
            error = (error + error.T) / 2
            if same:
                error[n + 1] = error[n]
                error[:, n + 1] = error[:, n]
            moment = rows.T @ rows + amplified * np.outer(sizes, sizes) * error
            if same:
                moment[n + 1], moment[:, n + 1] = moment[n], moment[:, n]
            if np.linalg.eigvalsh(moment[: n + 1, : n + 1])[0] <= 0.0:
                continue
            reduction = reduce_moments(layout, moment, origin, len(y))
        if reduction is None:
            continue
        # What is certain of the least singular value shrinks with what is uncertain.
        rounding = replace(reduction.game.rounding, kappa=reduction.game.rounding.kappa + amplified)
        game = replace(reduction.game, rounding=rounding)
        gamma = 10.0 ** rng.uniform(-3, 3)
        exact, found = solve_sphere(true, gamma), solve_sphere(game, gamma)
        upper = max(found.value, exact.value) * (1 + 1e-9)
        bound = dual_bound(game, gamma, found, upper)
        assert bound <= exact.value * (1 + 1e-9) + 1e-13 * (true.yy + true.zz)
        # Everybody who can be moved to the labels is, unless some are honest.
        useful += not same and bound > 0.5 * exact.value
        shares = [0.5, 0.5]
        best = solve_population(true, [gamma, inf], shares)
        bounded = solve_population(game, [gamma, inf], shares, tol=2 * amplified)
        if best.value <= bounded.upper:
            assert bounded.lower_bound <= best.value * (1 + 1e-9) + 1e-13 * (true.yy + true.zz)
            useful += same and bounded.lower_bound > 0.5 * best.value
    assert useful > (20 if amplified < 1e-3 else 5)


@pytest.mark.parametrize("amplified", [1e-8, 1e-6, 1e-4])
def test_what_an_intercept_explains_is_charged_for(amplified):
    """Theorem 1 with ones: sums of columns are wrong too, and means are made of them."""
    rng, useful = np.random.default_rng(5), 0
    for _ in range(100):
        X, y, z = _true_game(rng)
        m, n = X.shape
        X = X + np.linalg.norm(X, axis=0) * rng.uniform(-2, 2, n)
        y, z = y + rng.uniform(-2, 2) * np.linalg.norm(y), z + rng.uniform(-2, 2)
        layout, rows = Layout(n, fit_intercept=True), np.column_stack([X, y, z, np.ones(m)])
        true = reduce_triangle(layout, rows.copy(), Origin(), m)
        gamma = 10.0 ** rng.uniform(-3, 3)
        exact = solve_sphere(true.game, gamma)
        # Every moment is wrong such that the best predictor looks worse than it is.
        alpha = np.array([exact.alpha])
        v = true.lift(exact.x / exact.s, 0.0)[:, None]
        best = np.concatenate(
            [exact.s * v[:, 0], [-1.0, exact.c], exact.s * true.intercepts(v, alpha)]
        )
        sizes = np.linalg.norm(rows, axis=0) * np.sign(best)
        moment = rows.T @ rows + amplified * np.outer(sizes, sizes)
        reduction = reduce_moments(layout, moment, Origin(), m)
        if reduction is None:
            continue
        rounding = reduction.game.rounding
        rounding = replace(rounding, kappa=rounding.kappa + amplified, least=0.0)
        game = replace(reduction.game, rounding=rounding)
        found = solve_sphere(game, gamma)
        bound = dual_bound(game, gamma, found, max(found.value, exact.value) * (1 + 1e-9))
        assert bound <= exact.value * (1 + 1e-9) + 1e-13 * (true.game.yy + true.game.zz)
        useful += bound > 0.5 * exact.value
    assert useful > 20


@pytest.mark.parametrize("amplified", [1e-8, 1e-6, 1e-4, 1e-3])
def test_kernel_bounds_hold_where_rounding_is_amplified(amplified):
    """Theorem 4: products of rows that are wrong by a known amount, more columns than rows."""
    rng, useful = np.random.default_rng(7), 0
    for _ in range(100):
        m = int(rng.integers(1, 6))
        X = rng.normal(size=(m, m + int(rng.integers(1, 4)))) * 10.0 ** rng.uniform(-1, 1)
        y, z = rng.normal(size=(2, m)) * 10.0 ** rng.uniform(-1, 1, size=(2, 1))
        error = rng.normal(size=(m, m))
        error += error.T
        error *= amplified * np.sum(X**2) / np.abs(np.linalg.eigvalsh(error)).max()
        sizes = np.linalg.norm(X), np.linalg.norm(y), np.linalg.norm(z)

        def reduced(kernel, kappa, y=y, z=z, sizes=sizes, nullity=X.shape[1] - m):
            d, vectors = np.linalg.eigh(kernel)
            rounding = Rounding("kernel", kappa, *sizes) if kappa else Rounding()
            sides = vectors.T @ y, vectors.T @ z
            return ReducedGame(np.sqrt(d), *sides, 0.0, 0.0, 0.0, nullity, rounding=rounding)

        if np.linalg.eigvalsh(X @ X.T + error)[0] <= 0.0:
            continue
        true, wrong = reduced(X @ X.T, 0.0), reduced(X @ X.T + error, amplified)
        gamma = 10.0 ** rng.uniform(-3, 3)
        exact, found = solve_sphere(true, gamma), solve_sphere(wrong, gamma)
        upper = max(found.value, exact.value) * (1 + 1e-9)
        bound = dual_bound(wrong, gamma, found, upper)
        assert bound <= exact.value + 1e-13 * (y @ y + z @ z)
        useful += bound > 0.5 * exact.value > 0.0
        best = solve_population(true, [gamma, inf], [0.5, 0.5])
        bounded = solve_population(wrong, [gamma, inf], [0.5, 0.5], tol=2 * amplified)
        if best.value <= bounded.upper:
            assert bounded.lower_bound <= best.value + 1e-13 * (y @ y + z @ z)
    assert useful > 20


@pytest.mark.parametrize("gamma", ["auto", 0.1, 10.0])
def test_raw_blog_posts_are_proved(gamma):
    """Condition 7e5, columns of very different sizes, and goals that are the labels."""
    if not os.environ.get("SPGLS_DATA"):
        pytest.skip("set SPGLS_DATA to the folder that holds blogData_train.csv")
    table = load_blog_feedback(os.environ["SPGLS_DATA"])
    with pytest.warns(UserWarning, match="goal"):
        model = StackelbergRegressor(gamma, goal=Floor(0.0)).fit(table.X, table.y)
    assert model.certificate_.kind == "proved"
    assert model.certificate_.relative_gap <= 1e-9


REAL = {
    "wine": load_wine_quality,
    "insurance": load_insurance,
    "building": load_residential_building,
    "blog": load_blog_feedback,
}


# Some attackers of the papers want no more than people have.
@pytest.mark.filterwarnings("ignore:.*goal:UserWarning")
@pytest.mark.parametrize("scaled", ["raw", "to the unit interval", "standardised"])
@pytest.mark.parametrize("name", REAL)
def test_default_fits_of_the_papers_data_are_proved(name, scaled):
    """Raw, norms alone or predictions alone bound coefficients too loosely for buildings."""
    if not os.environ.get("SPGLS_DATA"):
        pytest.skip("set SPGLS_DATA to the folder that holds the data of the papers")
    table = REAL[name](os.environ["SPGLS_DATA"])
    X, wide = table.X, np.ptp(table.X, axis=0)
    if scaled == "standardised":
        X = (X - X.mean(axis=0)) / np.where(wide > 0.0, X.std(axis=0), 1.0)
    elif scaled == "to the unit interval":
        X = (X - X.min(axis=0)) / np.where(wide > 0.0, wide, 1.0)
    for goals in (table.goals["2021"], table.goals["2022"]):
        for goal in goals.values():
            model = StackelbergRegressor(goal=goal).fit(X, table.y)
            assert model.status_.ok
            assert model.certificate_.kind == "proved"
            assert model.certificate_.relative_gap <= 1e-9


@pytest.mark.parametrize("kind", ["squared", "factor", "kernel"])
def test_a_charge_is_no_less_than_at_any_norm(kind):
    """The quadratic in c, the line in tau and the charge itself agree on who pays what."""
    rng = np.random.default_rng(5)
    for _ in range(100):
        sizes, kappa = 10.0 ** rng.uniform(-3, 3, size=3), 10.0 ** rng.uniform(-15, -3)
        rounding = Rounding(
            kind=kind,
            kappa=kappa,
            reach=sizes[0],
            y=sizes[1],
            z=sizes[2],
            least=float(rng.choice([0.0, 10.0 ** rng.uniform(-6, 0)])) if kind != "kernel" else 0.0,
            splits=tuple(
                (
                    float(rng.choice([2.5 * kappa, 10.0 ** rng.uniform(-6, 0)])),
                    sizes[0] * 10.0 ** rng.uniform(-6, 0),
                )
                for _ in range(rng.integers(0, 4) if kind == "factor" else 0)
            ),
        )
        gamma, nu, upper = 10.0 ** rng.uniform(-3, 3, size=3)
        c = np.float64(rng.random())
        around = rounding.around(1 - c, c, gamma, nu, upper)
        for other in rng.random(5):
            w = other - c
            quadratic = around.at + 2 * around.slope * w + around.bend * w * w
            tau = gamma * other * (1 - other)
            b, k = rounding.y + other * rounding.z, rounding.kappa
            reach = rounding.reach * tau**0.5
            left = rounding.least**2 - k if kind == "squared" else rounding.least - k
            if left > 0.0:
                certain = left**0.5 if kind == "squared" else left
                reach = min(reach, (upper**0.5 + b) / certain)
            for least, weak in rounding.splits:
                if least > k:
                    certain = least - k
                    more = weak * tau**0.5 * least / certain
                    reach = min(reach, (upper**0.5 + b) / certain + more)
            if kind == "kernel":
                needed = k * rounding.reach**2 / nu * upper
            elif kind == "squared":
                needed = k * (reach + b) ** 2
            else:
                needed = 2 * k * (reach + b) * upper**0.5 + (k * (reach + b)) ** 2
            assert quadratic >= needed * (1 - 1e-9)
            charge = rounding.charge(np.float64(tau), np.float64(other), np.float64(nu), upper)
            assert charge >= needed * (1 - 1e-9)


class TestDependence:
    """Ranks that are beyond doubt."""

    def data(self, X, **how):
        y = np.arange(float(len(X)))
        return GameData.from_user(X, y, y[::-1].copy(), **how)

    def found(self, data):
        return exact_dependence(data)

    def test_one_hot_groups_beside_an_intercept(self):
        kinds = np.arange(30) % 3
        X = np.column_stack([np.eye(3)[kinds], np.random.default_rng(0).normal(size=30)])
        assert len(self.found(self.data(X, fit_intercept=True)).columns) == 1
        assert self.found(self.data(X)).columns.tolist() == []

    def test_copies_multiples_and_sums(self):
        rng = np.random.default_rng(1)
        a, b = rng.integers(-9, 9, size=(2, 20)).astype(float)
        X = np.column_stack([a, b, a, 2 * a, a - 3 * b, a / 4 + b])
        assert len(self.found(self.data(X)).columns) == 4

    @pytest.mark.parametrize("off", [1e-16, 1e-13, 1e-8])
    def test_what_is_nearly_dependent_is_not(self, off):
        rng = np.random.default_rng(2)
        a = rng.normal(size=20)
        b = a.copy()
        b[7] += off * abs(b[7]) if off > 1e-15 else np.spacing(b[7])
        assert self.found(self.data(np.column_stack([a, b]))).columns.tolist() == []

    def test_equal_rows(self):
        rng = np.random.default_rng(3)
        X = np.repeat(rng.normal(size=(2, 4)), 5, axis=0)
        found = self.found(self.data(X, feature_cost=[1.0, inf, inf, 1.0]))
        assert (found.free_rows, found.all_rows) == (2, 2)

    def test_honest_people_and_a_whole_one_hot_group_are_proved(self):
        kinds = np.arange(40) % 4
        rng = np.random.default_rng(4)
        X = np.column_stack([np.eye(4)[kinds], rng.normal(size=(40, 2))])
        y = X @ rng.normal(size=6) + 0.1 * rng.normal(size=40)
        found = solve(X, y, y + 1.0, Population.mixed(1.0), fit_intercept=True)
        assert found.certificate.kind == "proved"


def test_columns_that_depend_on_others_pay_for_what_combines_them():
    """Theorem 3, the fourth way: columns A that are wrong turn N in A N, and so norms."""
    rng, kappa = np.random.default_rng(0), 1e-7
    for trial in range(60):
        k = int(rng.integers(1, 25))
        m = k + int(rng.integers(1, 20))
        A = rng.integers(-3, 4, size=(m, k)) * 10.0 ** rng.uniform(-1, 1, size=k)
        if trial % 2:  # all but one of the dummies of k + 1 kinds, less their means
            A = np.eye(k + 1)[:, :k] - 1 / (k + 1)
            m = k + 1
        sizes = np.linalg.norm(A, axis=0)
        if not sizes.all() or np.linalg.cond(A / sizes) > 1e3:
            continue
        N = rng.choice([-1.0, 1.0, 2.0], size=(k, int(rng.integers(1, 3))))
        if trial % 2:
            N = -np.ones((k, 1))
        last = A @ N
        rows = np.column_stack([A, last, rng.normal(size=(m, 2))])
        n = rows.shape[1] - 2
        spanned = Dependence(np.arange(k, n), m, m)
        found = reduce_triangle(Layout(n), rows, Origin(), m, lambda spanned=spanned: spanned)
        rounding = found.game.rounding
        inverse = np.linalg.pinv(A)
        each = np.linalg.norm(inverse, axis=1) * sizes
        # Every column is wrong by as much as is allowed, in a direction that all add up to.
        along = A @ N[:, 0] if trial % 3 else A @ rng.normal(size=k)
        along /= np.linalg.norm(along)
        wrong = A + kappa * np.outer(along, sizes * np.sign(N[:, 0]))
        target = last - kappa * along[:, None] * np.linalg.norm(last, axis=0)
        moved = np.linalg.norm(np.linalg.pinv(wrong) @ target - N)
        needed = each.sum() + 2 * moved / kappa
        assert 1 / rounding.least >= needed * (1 - 1e-4)


@pytest.fixture(scope="module")
def game():
    rng = np.random.default_rng(0)
    kinds = np.eye(3)[np.arange(60) % 3]
    X = np.column_stack([kinds, rng.normal(size=(60, 2))])
    y = X @ np.array([1.0, 2.0, -1.0, 1.0, 0.5]) + 0.3 * rng.normal(size=60)
    return X, y, np.maximum(y, 0.5)


class TestNullSpace:
    """With "avoid" coefficients stay where the rows vary, and the certificate says so."""

    @pytest.mark.parametrize("people", [0.5, Population.mixed(0.5)])
    def test_coefficients_stay_in_the_row_space(self, game, people):
        X, y, z = game
        found = solve(X, y, z, people, fit_intercept=True, null_space="avoid")
        centred = X - X.mean(axis=0)
        inside = np.linalg.pinv(centred) @ (centred @ found.coef)
        np.testing.assert_allclose(inside, found.coef, rtol=1e-9, atol=1e-12)
        assert found.certificate.kind == "proved"
        assert found.certificate.among == "predictors that use no null space"
        assert "use no null space" in repr(found.certificate)

    def test_using_it_is_no_worse_and_avoiding_it_keeps_coefficients_small(self, game):
        X, y, z = game
        people = Population.mixed(0.5)
        used = solve(X, y, z, people, fit_intercept=True)
        avoided = solve(X, y, z, people, fit_intercept=True, null_space="avoid")
        assert used.objective <= avoided.objective * (1 + 1e-9)
        assert np.linalg.norm(avoided.coef) <= np.linalg.norm(used.coef) * (1 + 1e-9)
        path = solve_path(X, y, z, [people], fit_intercept=True, null_space="avoid")
        assert path[0].objective == pytest.approx(avoided.objective, rel=1e-12)
        proof = certify(
            X, y, z, people, avoided.coef, intercept=avoided.intercept, null_space="avoid"
        )
        assert proof.relative_gap < 1e-8

    def test_where_the_rank_is_full_it_changes_nothing(self, game):
        X, y, z = (game[0][:, 1:], *game[1:])
        used, avoided = (
            solve(X, y, z, Population.mixed(0.5), fit_intercept=True, null_space=how)
            for how in ("use", "avoid")
        )
        np.testing.assert_allclose(used.coef, avoided.coef, rtol=1e-9)

    def test_estimators_avoid_by_default(self, game):
        X, y, z = game
        model = StackelbergRegressor(0.5).fit(X, y, z=z)
        assert model.certificate_.among != solve(X, y, z, 0.5).certificate.among
        used = StackelbergRegressor(0.5, null_space="use").fit(X, y, z=z)
        assert used.objective_ <= model.objective_ * (1 + 1e-9)

    def test_published_solvers_play_the_game_as_stated(self, game):
        with pytest.raises(
            ValueError, match=r"^solver 'gltr' plays the game as stated.*null_space"
        ):
            solve(*game, 0.5, solver="gltr", null_space="avoid")
        with pytest.raises(ValueError, match="null_space must be one of use, avoid; got 'never'"):
            solve(*game, 0.5, null_space="never")


def test_a_game_without_rounding_pays_for_none():
    game = ReducedGame(np.array([1.0, 2.0]), np.ones(2), -np.ones(2), 1.0, 0.5, 1.0)
    small = solve_sphere(game, 1.0)
    assert small.value - dual_bound(game, 1.0, small) <= 1e-14 * (game.yy + game.zz)


@pytest.mark.parametrize("engine", ["gram", "qr"])
def test_a_bound_that_misses_the_tolerance_is_kept(engine):
    # The loss of a predictor about large means is known to no more than 2e-10; the bound is.
    rng = np.random.default_rng(5)
    X = rng.standard_normal((40, 5)) + 1e6
    y = X @ rng.standard_normal(5) + rng.standard_normal(40)
    z = y + rng.standard_normal(40)
    who = Population.mixed(1.0, 0.5)
    options = {"fit_intercept": True, "solver": Spectral(engine=engine)}
    loose, tight = (solve(X, y, z, who, tol=tol, **options) for tol in (1e-8, 1e-13))
    assert loose.certificate.kind == "proved"
    assert tight.status is Status.INACCURATE
    assert tight.certificate.kind == "estimated"
    assert tight.certificate.relative_gap < 1e-8
    proof = certify(X, y, z, who, tight.coef, intercept=tight.intercept)
    assert proof.kind == "proved"
    assert proof.relative_gap < 1e-8


def test_a_loss_that_is_no_number_proves_nothing():
    game = ReducedGame(np.ones(1), np.ones(1), np.ones(1), 1.0, 0.0, 1.0)
    for rounding in (np.nan, np.inf):
        found = build_certificate(
            game,
            objective=np.inf,
            bound=np.inf if np.isnan(rounding) else 0.5,
            kkt_residual=0.0,
            bound_rounding=0.0,
            objective_rounding=rounding,
            label_size=1.0,
            tol=1e-9,
        )
        assert found.gap == np.inf
        assert found.kind == "estimated"


def test_bounds_too_small_for_all_digits_are_rounded_down():
    rng = np.random.default_rng(0)
    for seed in range(20):
        X, y = rng.normal(size=(6, 2)), rng.normal(size=6)
        z = y + rng.random(6)
        # Powers of two: but for rounding of tiny numbers it is the same game.
        small = 2.0 ** -(521 + seed % 4)
        told = solve(X, y, z, 0.5)
        tiny = solve(X, small * y, small * z, 0.5 * small * small)
        exact = Fraction(told.objective) * Fraction(small) ** 2
        assert Fraction(tiny.certificate.lower_bound) <= exact
        assert tiny.certificate.lower_bound > 0.0
