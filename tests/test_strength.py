"""Strength of providers learned from rows before and after they moved."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from scipy import stats

from spgls import best_response, gamma_from_pull
from spgls.game.strength import GammaEstimate, estimate_gamma

from .builders import COEF, COST, NAMES, applicants

rng = np.random.default_rng(0)
X, w = applicants(60, rng, years=20.0), COEF
z = X @ w + 4.0 + rng.uniform(-1.0, 3.0, size=60)
frame = pd.DataFrame(X, columns=NAMES)
nan, inf = np.nan, np.inf


def move(gamma, feature_cost=None, noise=0.0):
    moved = best_response(X, z, w, gamma=gamma, intercept=4.0, feature_cost=feature_cost)
    return moved + noise * np.random.default_rng(1).normal(size=X.shape)


def learn(X_hat, **options):
    return estimate_gamma(X, X_hat, z, w, **({"intercept": 4.0} | options))


class TestWithoutNoise:
    @pytest.mark.parametrize("feature_cost", [None, COST], ids=["equal", "costs"])
    @pytest.mark.parametrize("gamma", [1e-6, 0.01, 0.7, 30.0, 1e4, 1e8])
    def test_it_finds_the_strength(self, gamma, feature_cost):
        found = learn(move(gamma, feature_cost), feature_cost=feature_cost)
        assert found.gamma == pytest.approx(gamma, rel=1e-8)
        assert found.interval[0] <= gamma <= found.interval[1]
        assert found.interval[1] - found.interval[0] < 1e-4 * gamma
        assert gamma_from_pull(found.pull, w, feature_cost) == pytest.approx(gamma, rel=1e-8)
        assert found.cost_pvalue == 1.0

    def test_prices_and_costs(self):
        found = learn(move(0.7, COST), feature_cost=COST)
        np.testing.assert_allclose(found.price, 0.7 * COST, rtol=1e-10)
        np.testing.assert_allclose(found.feature_cost, COST, rtol=1e-10)
        assert np.isnan(found.price_stderr[1])
        assert (found.price_stderr[[0, 2, 3]] < 1e-10).all()

    def test_only_the_product_of_strength_and_costs_is_in_the_data(self):
        moved = move(0.7, COST)
        once, twice = learn(moved, feature_cost=COST), learn(moved, feature_cost=2.0 * COST)
        assert twice.gamma == pytest.approx(once.gamma / 2.0, rel=1e-10)
        np.testing.assert_allclose(twice.price, once.price, rtol=1e-10)

    def test_prices_do_not_need_the_costs(self):
        changeable = np.array([1.0, 3.0, 0.5, 2.0])
        found = learn(move(0.7, changeable))
        np.testing.assert_allclose(found.price, 0.7 * changeable, rtol=1e-10)
        again = learn(move(0.7, changeable), feature_cost=found.feature_cost)
        assert again.gamma == pytest.approx(found.gamma, rel=1e-10)
        assert again.cost_pvalue == 1.0

    def test_unused_features_have_no_price(self):
        unused = w * [1.0, 0.0, 1.0, 1.0]
        moved = best_response(X, z, unused, gamma=0.7)
        found = estimate_gamma(X, moved, z, unused)
        assert np.isnan(found.price[1])
        np.testing.assert_allclose(found.price[[0, 2, 3]], 0.7, rtol=1e-10)


class TestNoise:
    @pytest.mark.parametrize(
        ("rows", "gaps", "noise", "options"),
        [
            (100, "uniform", 0.3, {}),
            (10, "uniform", 0.2, {}),
            (50, "normal", 0.3, {}),
            (50, "exponential", 0.3, {}),
            (80, "normal", 0.2, {"feature_cost": [1.0, 4.0, 0.5, inf]}),
            (200, "uniform", 0.3, {"gamma": 20.0}),
            (100, "uniform", 0.3, {"gamma": 0.05}),
            (100, "normal", 0.2, {"growing": True}),
            (100, "uniform", 0.2, {"growing": True}),
            (100, "uniform", [0.01, 3.0, 0.1, 0.3], {}),
            (100, "normal", 0.3, {"shared": True}),
        ],
        ids=[
            "uniform gaps",
            "few rows",
            "normal gaps",
            "exponential gaps",
            "costs",
            "weak",
            "strong",
            "noise grows with normal gaps",
            "noise grows with uniform gaps",
            "features of different noise",
            "features that share noise",
        ],
    )
    def test_its_interval_covers_the_truth(self, rows, gaps, noise, options):
        draw = np.random.default_rng(2)
        gamma, prices = options.get("gamma", 1.5), options.get("feature_cost")
        direction = w if prices is None else w / prices
        hits = alarms = 0
        for _ in range(2000):
            before = draw.normal(size=(rows, 4))
            gap = {
                "uniform": lambda: draw.uniform(1.0, 3.0, size=rows),
                "normal": lambda: 2.0 * draw.normal(size=rows),
                "exponential": lambda: 2.0 * draw.exponential(size=rows),
            }[gaps]()
            goals = before @ w + gap - 2.0
            error = draw.normal(size=(rows, 1 if options.get("shared") else 4)) * noise
            if options.get("growing"):
                error = error * np.abs(gap)[:, np.newaxis]
            after = before + np.outer(gap / (gamma + direction @ w), direction) + error
            found = estimate_gamma(before, after, goals, w, intercept=-2.0, feature_cost=prices)
            hits += found.interval[0] <= gamma <= found.interval[1]
            alarms += found.cost_pvalue < 0.05
        assert 0.93 <= hits / 2000 <= 0.97
        # Bonferroni's correction is on the safe side.
        assert alarms / 2000 <= 0.065

    def test_standard_errors_are_the_spread_of_the_estimates(self):
        draw = np.random.default_rng(3)
        clean = move(2.0)
        found = [learn(clean + 0.1 * draw.normal(size=X.shape)) for _ in range(1000)]
        spread = np.std([one.gamma for one in found])
        assert np.mean([one.stderr for one in found]) == pytest.approx(spread, rel=0.1)
        prices = np.std([one.price[2] for one in found])
        assert np.mean([one.price_stderr[2] for one in found]) == pytest.approx(prices, rel=0.1)
        noise = 0.1 * np.linalg.norm(w)
        assert np.mean([one.noise for one in found]) == pytest.approx(noise, rel=0.02)

    def test_providers_may_differ_in_strength(self):
        draw = np.random.default_rng(4)
        hits, mean = 0, 0.4
        for _ in range(1000):
            before = draw.normal(size=(150, 4))
            goals = before @ w + draw.uniform(1.0, 3.0, size=150)
            pulls = np.clip(draw.normal(mean, 0.1, size=150), 0.05, 0.75)
            strengths = (w @ w) * (1.0 - pulls) / pulls
            found = estimate_gamma(
                before, best_response(before, goals, w, gamma=strengths), goals, w
            )
            hits += found.interval[0] <= gamma_from_pull(mean, w) <= found.interval[1]
        assert 0.93 <= hits / 1000 <= 0.97

    def test_equal_costs_are_least_squares_over_all_entries(self):
        moved = move(0.7, noise=0.2)
        gap = z - X @ w - 4.0
        along = np.outer(gap, w).reshape(-1, 1)
        slope = np.linalg.lstsq(along, (moved - X).ravel(), rcond=None)[0][0]
        assert learn(moved).gamma == pytest.approx(1.0 / slope - w @ w, rel=1e-10)

    def test_equal_gaps_give_the_textbook_interval(self):
        goals = X @ w + 2.0
        moved = best_response(X, goals, w, gamma=3.0) + 0.3 * rng.normal(size=X.shape)
        found = estimate_gamma(X, moved, goals, w, confidence=0.9)
        pulls = (moved - X) @ w / 2.0
        low, high = stats.t.interval(0.9, 59, pulls.mean(), stats.sem(pulls))
        q = w @ w
        assert found.degrees_of_freedom == pytest.approx(59.0)
        assert found.pull == pytest.approx(pulls.mean())
        assert found.interval == pytest.approx((q * (1 / high - 1), q * (1 / low - 1)))

    def test_units_of_features_do_not_matter(self):
        unit = np.array([1e3, 1e-2, 7.0, 1.0])
        moved = move(0.7, COST, noise=0.1)
        plain = learn(moved, feature_cost=COST)
        scaled = estimate_gamma(
            X * unit, moved * unit, z, w / unit, intercept=4.0, feature_cost=COST / unit**2
        )
        assert scaled.gamma == pytest.approx(plain.gamma, rel=1e-9)
        assert scaled.interval == pytest.approx(plain.interval, rel=1e-9)
        np.testing.assert_allclose(scaled.price * unit**2, plain.price, rtol=1e-9)
        assert scaled.cost_pvalue == pytest.approx(plain.cost_pvalue, rel=1e-6)

    def test_noise_on_immutable_features_does_not_matter(self):
        moved = move(0.7, COST, noise=0.1)
        quiet = moved.copy()
        quiet[:, 1] = X[:, 1]
        noisy, clean = (learn(rows, feature_cost=COST) for rows in (moved, quiet))
        assert noisy.gamma == pytest.approx(clean.gamma, rel=1e-9)
        assert noisy.cost_pvalue > 0.05

    def test_a_wider_interval_for_more_confidence(self):
        moved = move(0.7, noise=0.1)
        narrow, wide = learn(moved, confidence=0.5), learn(moved, confidence=0.999)
        assert wide.interval[0] < narrow.interval[0] < narrow.interval[1] < wide.interval[1]
        assert narrow.gamma == wide.gamma
        assert narrow.confidence == 0.5

    def test_strength_is_never_negative(self):
        goals = X @ w + 1.0
        noise = 0.02 + 0.1 * np.resize([1.0, -1.0], 60)
        moved = best_response(X, goals, w, gamma=1e-3) + np.outer(noise, w)
        found = estimate_gamma(X, moved, goals, w)
        assert found.pull > 1.0
        assert found.gamma == 0.0
        assert found.interval[0] == 0.0
        assert found.interval[1] > 1e-3
        np.testing.assert_array_equal(found.price, 0.0)
        assert np.isnan(found.feature_cost).all()
        assert "GammaEstimate(0 " in repr(found)


class TestCosts:
    def test_wrong_costs_show(self):
        moved = pd.DataFrame(move(0.7, [1.0, 1.0, 1.0, 0.02], noise=0.05), columns=NAMES)
        found = estimate_gamma(frame, moved, z, w, intercept=4.0)
        assert found.cost_pvalue < 1e-6
        assert found.misfit == "years"
        assert "costs do not fit, least of all 'years', p = " in repr(found)

    def test_immutable_features_that_moved_show(self):
        found = learn(move(0.7, noise=0.01), feature_cost=COST)
        assert found.cost_pvalue < 1e-6
        assert found.misfit == 1
        assert found.price[1] == inf

    def test_unused_features_that_moved_show(self):
        unused = w * [1.0, 0.0, 1.0, 1.0]
        moved = best_response(X, z, unused, gamma=0.7)
        moved[:, 1] += 0.1 * (z - X @ unused)
        found = estimate_gamma(X, moved + 0.01 * rng.normal(size=X.shape), z, unused)
        assert found.cost_pvalue < 1e-6
        assert found.misfit == 1
        assert np.isnan(found.price[1])

    def test_a_feature_that_did_not_move_costs_infinitely_much(self):
        found = learn(move(0.7, COST))
        assert found.price[1] == inf
        assert found.cost_pvalue < 1e-6

    def test_one_feature_has_no_proportions_to_test(self):
        goals = X[:, 0] + rng.uniform(1.0, 2.0, size=60)
        moved = best_response(X[:, :1], goals, [1.0], gamma=2.0)
        found = estimate_gamma(X[:, :1], moved + 0.1 * rng.normal(size=(60, 1)), goals, [1.0])
        assert found.cost_pvalue == 1.0
        assert found.price[0] == pytest.approx(found.gamma)
        assert found.price_stderr[0] == pytest.approx(found.stderr)


class TestContainers:
    moved = move(0.7, COST, noise=0.1)
    wanted = learn(moved, feature_cost=COST)

    @pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
    def test_frames_and_costs_by_name(self, kind):
        before, after = kind(dict(zip(NAMES, X.T, strict=True))), self.moved
        after = kind(dict(zip(NAMES, after.T, strict=True)))
        prices = {"age": inf, "debt": 0.5, "years": 2.0}
        found = estimate_gamma(before, after, z, w, intercept=4.0, feature_cost=prices)
        assert found.gamma == pytest.approx(self.wanted.gamma, rel=1e-12)
        assert found.misfit == NAMES[self.wanted.misfit]

    def test_lists_and_float32(self):
        found = estimate_gamma(
            X.tolist(), self.moved.tolist(), list(z), list(w), intercept=4, feature_cost=list(COST)
        )
        assert found.gamma == self.wanted.gamma
        small = estimate_gamma(X.astype("f4"), self.moved.astype("f4"), z, w, intercept=4.0)
        assert small.gamma == pytest.approx(learn(self.moved).gamma, rel=1e-4)

    def test_more_features_than_rows(self):
        wide = rng.normal(size=(20, 50))
        goals = wide @ np.ones(50) + rng.uniform(5.0, 9.0, size=20)
        moved = best_response(wide, goals, np.ones(50), gamma=30.0)
        found = estimate_gamma(wide, moved + 0.01 * rng.normal(size=wide.shape), goals, np.ones(50))
        assert found.gamma == pytest.approx(30.0, rel=0.02)

    def test_printed(self):
        assert isinstance(self.wanted, GammaEstimate)
        assert re.fullmatch(
            r"GammaEstimate\(0\.\d+ ± 0\.\d+, 95% interval 0\.\d+ to 1\.\d+; providers close "
            r"0\.\d+ of their gaps, 60 rows, noise 0\.\d+; costs fit, p = [\d.]+\)",
            repr(self.wanted),
        )

    def test_inputs_are_left_alone(self):
        before, after, prices = X.copy(), self.moved.copy(), COST.copy()
        estimate_gamma(before, after, z, w, intercept=4.0, feature_cost=prices)
        np.testing.assert_array_equal(before, X)
        np.testing.assert_array_equal(after, self.moved)
        np.testing.assert_array_equal(prices, COST)


CHECK = ".*Check that z, coef and intercept are those the providers reacted to"


class TestUnidentified:
    @pytest.mark.parametrize(
        ("change", "said"),
        [
            ({"coef": np.zeros(4)}, r"coef must differ from zero on a changeable.*\) is 0"),
            ({"feature_cost": [inf] * 4}, r"coef must differ from zero on a changeable.*\) is 0"),
            ({"coef": w * [0, 1, 0, 0], "feature_cost": COST}, "coef must differ from zero"),
            ({"coef": w * 1e200}, "coef must differ from zero .* is inf"),
            ({"z": X @ w + 4.0}, "z must differ from the predictions .*; it does so in 0" + CHECK),
            (
                {"z": X @ w + 4.0 + np.eye(60)[3]},
                "z must differ from the predictions .* in at least two rows.*in 1" + CHECK,
            ),
            ({"X_hat": X}, "X_hat cannot tell gamma: providers closed 0 of the gap" + CHECK),
            (
                {"X_hat": X + np.random.default_rng(5).normal(size=X.shape)},
                "X_hat cannot tell gamma.*perhaps nobody reacts. All that can be said is gamma > "
                r"\d.*Pass more rows",
            ),
            ({"X_hat": 2.0 * X - move(0.7)}, "X_hat cannot tell gamma: providers closed -0.8"),
            (
                {"X_hat": X + 2.0 * (move(0.01) - X)},
                r"X_hat cannot tell gamma: .*They went past their goals, which no gamma" + CHECK,
            ),
            ({"X_hat": move(0.7, noise=0.1)[::-1]}, "X_hat cannot tell gamma.*in the order of X"),
        ],
        ids=lambda value: value[:20] if isinstance(value, str) else "+".join(value),
    )
    def test_refused(self, change, said):
        given = {"X": X, "X_hat": move(0.7), "z": z, "coef": w, "intercept": 4.0}
        with pytest.raises(ValueError, match=f"^{said}"):
            estimate_gamma(**(given | change))

    def test_one_row(self):
        with pytest.raises(ValueError, match="in at least two rows"):
            estimate_gamma(X[:1], move(0.7)[:1], z[:1], w, intercept=4.0)

    def test_two_rows(self):
        found = estimate_gamma(X[:2], move(0.7)[:2], z[:2], w, intercept=4.0)
        assert found.gamma == pytest.approx(0.7)
        assert found.degrees_of_freedom == 1.0


holed = X.copy()
holed[2, 1] = nan


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"X": None}, TypeError, "X must be a table of numbers"),
        ({"X_hat": None}, TypeError, "X_hat must be a table of numbers"),
        ({"X": X[:, 0]}, ValueError, "X must have two dimensions"),
        ({"X_hat": X[:, 0]}, ValueError, "X_hat must have two dimensions"),
        ({"X": holed}, ValueError, "X must be finite; row 2, column 1"),
        ({"X_hat": holed}, ValueError, "X_hat must be finite; row 2, column 1"),
        ({"X": sp.csr_array(X)}, TypeError, r"X must be dense; got .*Pass X.toarray\(\)"),
        ({"X_hat": sp.csr_array(X)}, TypeError, r"X_hat must be dense; got .*X_hat.toarray\(\)"),
        (
            {"X_hat": X[:50]},
            ValueError,
            r"X_hat must have the shape of X, \(60, 4\), .*; got \(50, 4\). Keep the rows",
        ),
        ({"X_hat": X[:, :3]}, ValueError, r"X_hat must have the shape of X, .*got \(60, 3\)"),
        ({"z": None}, TypeError, "z must be an array of numbers; got None"),
        ({"z": z[:-1]}, ValueError, "z must have one entry per row of X, 60; got 59"),
        ({"z": z * nan}, ValueError, "z must be finite"),
        ({"coef": w[:3]}, ValueError, "coef must have one entry per column of X, 4; got 3"),
        ({"coef": "w"}, TypeError, "coef must be an array of numbers"),
        ({"intercept": None}, TypeError, "intercept must be a finite number"),
        ({"intercept": inf}, ValueError, "intercept must be a finite number"),
        ({"feature_cost": [1.0]}, ValueError, "feature_cost must have one entry per column"),
        ({"feature_cost": [-1.0] * 4}, ValueError, "feature_cost must be positive"),
        ({"feature_cost": {"age": 2.0}}, ValueError, "feature_cost gives costs by column name"),
        ({"confidence": 95}, ValueError, "confidence must be a finite number above 0 and below 1"),
        ({"confidence": None}, TypeError, "confidence must be a finite number"),
    ],
)
def test_bad_input(change, error, said):
    given = {"X": X, "X_hat": move(0.7), "z": z, "coef": w, "intercept": 4.0}
    with pytest.raises(error, match=f"^{said}"):
        estimate_gamma(**(given | change))


def test_frames_whose_pairs_do_not_match():
    moved = pd.DataFrame(move(0.7), columns=NAMES)
    with pytest.raises(ValueError, match=r"^X_hat must have the columns of X in their order; col"):
        estimate_gamma(frame, moved[NAMES[::-1]], z, w)
    with pytest.raises(ValueError, match=r"^X_hat must have the rows of X in .*X_hat.loc\[X.index"):
        estimate_gamma(frame, moved[::-1], z, w)
    # Other labels say nothing about the order.
    other = moved.set_index(np.arange(100, 160))
    assert estimate_gamma(frame, other, z, w, intercept=4.0).gamma == pytest.approx(0.7)
