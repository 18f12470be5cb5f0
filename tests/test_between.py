"""Ranges in the place of numbers: the predictor whose worst case is the smallest, and its proof.

The rival is an epigraph solver that shares no code with the library: it minimises the largest loss
over the ends of the ranges, from many starts, with the providers' own formula.
"""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.base import clone

from spgls import (
    Between,
    Constant,
    Floor,
    Population,
    PopulationRange,
    StackelbergClassifier,
    StackelbergRegressor,
    StackelbergRegressorCV,
    Status,
    certify,
    solve,
    solve_path,
)
from spgls.population import phi
from spgls.population.minimax import solve_worst
from spgls.population.mixtures import Chain
from spgls.population.worst import WorstSections
from spgls.reduction.reduced import ReducedGame
from spgls.solvers import auto

INF = math.inf


@dataclass(frozen=True)
class Drawn:
    """A random game, its ends as pairs of strength and honest share, and its losses."""

    given: dict[str, Any]
    ends: list[tuple[float, float]]

    def losses(self, point: np.ndarray, ends: list[tuple[float, float]] | None = None):
        """Losses and gradients of coefficients and intercept, at ends or anywhere else."""
        X, y, z = (self.given[name] for name in ("X", "y", "z"))
        m, n = X.shape
        weight = self.given["sample_weight"]
        weight = np.ones(m) if weight is None else weight
        price, ridge = 1.0 / self.given["feature_cost"], self.given["ridge"]
        table = np.column_stack([X, np.ones(m)]) if self.given["fit_intercept"] else X
        q, by_q = float(point[:n] ** 2 @ price), 2.0 * point[:n] * price
        toward, gap = table @ point - z, z - y
        values, slopes = [], []
        for gamma, honest in self.ends if ends is None else ends:
            value, slope = ridge * q, np.zeros(len(point))
            slope[:n] = ridge * by_q
            for share, s in ((honest, 1.0), (1.0 - honest, gamma / (gamma + q))):
                error = s * toward + gap
                value += share * float(weight @ error**2)
                slope += 2.0 * share * s * (table.T @ (weight * error))
                if s < 1.0:
                    turn = 2.0 * share * float(weight @ (error * toward)) * -(s**2) / gamma
                    slope[:n] += turn * by_q
            values.append(value)
            slopes.append(slope)
        return np.array(values), np.array(slopes)

    def point(self, solution) -> np.ndarray:
        """A solution as one vector."""
        tail = [solution.intercept] if self.given["fit_intercept"] else []
        return np.append(solution.coef, tail)


def draw(seed: int) -> Drawn:
    rng = np.random.default_rng([20, seed])
    m, n = int(rng.integers(8, 40)), int(rng.integers(1, 6))
    X = rng.normal(size=(m, n)) * 10 ** rng.uniform(-0.5, 0.5, n) + rng.normal(size=n)
    y = X @ rng.normal(size=n) * rng.uniform(0.2, 1.5) + rng.normal(size=m)
    goals = (
        np.maximum(y, np.quantile(y, 0.6)),
        y + rng.normal(size=m),
        2.0 * rng.normal(size=m),
        -y * rng.uniform(0.5, 1.5) + 0.3 * rng.normal(size=m),
    )
    cost = np.where(rng.random(n) < 0.15, INF, 10 ** rng.uniform(-0.5, 0.5, n))
    cost[0] = 1.0 if np.isinf(cost).all() else cost[0]
    low = 10 ** rng.uniform(-2, 1)
    gamma = Between(low, low * 10 ** rng.uniform(0.1, 2))
    share = Between(*np.sort(rng.uniform(0, 1, 2)))
    whom = (
        gamma,
        Population.mixed(gamma, honest=share.low),
        Population.mixed(gamma.low, honest=share),
        Population.mixed(gamma, honest=share),
    )
    kind = int(rng.integers(4))
    strengths = {gamma.low} if kind == 2 else {gamma.low, gamma.high}
    shares = ({0.0}, {share.low}, {share.low, share.high}, {share.low, share.high})[kind]
    given = {
        "X": X,
        "y": y,
        "z": goals[rng.integers(4)],
        "gamma": whom[kind],
        "feature_cost": cost,
        "sample_weight": rng.uniform(0.2, 2, m) if rng.random() < 0.4 else None,
        "fit_intercept": bool(rng.random() < 0.7),
        "ridge": 10 ** rng.uniform(-2, 1) if rng.random() < 0.3 else 0.0,
    }
    return Drawn(given, list(product(strengths, shares)))


def epigraph(game: Drawn, starts: int, seed: int) -> float:
    """Least worst loss that a local solver finds."""
    rng = np.random.default_rng(seed)
    size = game.given["X"].shape[1] + game.given["fit_intercept"]
    unit = float(game.losses(np.zeros(size))[0].max())
    best = INF
    for _ in range(starts):
        start = rng.normal(size=size) * 10 ** rng.uniform(-1.5, 1)
        limit = {
            "type": "ineq",
            "fun": lambda u: u[-1] - game.losses(u[:-1])[0] / unit,
            "jac": lambda u: np.column_stack(
                [-game.losses(u[:-1])[1] / unit, np.ones(len(game.ends))]
            ),
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = minimize(
                lambda u: u[-1],
                np.append(start, game.losses(start)[0].max() / unit),
                jac=lambda u: np.append(np.zeros(len(u) - 1), 1.0),
                method="SLSQP",
                constraints=limit,
                options={"maxiter": 300, "ftol": 1e-14},
            )
        value = game.losses(found.x[:-1])[0].max()
        best = min(best, value) if np.isfinite(value) else best
    return float(best)


def play(seeds: range, starts: int) -> None:
    """Solve games, and hold all that is promised against the rival and against grids."""
    proved = 0
    for seed in seeds:
        game = draw(seed)
        found = solve(**game.given)
        unit = found.certificate.gap / found.certificate.relative_gap
        assert found.objective <= epigraph(game, starts, seed) + 1e-9 * unit
        proof = found.certificate
        proved += proof.kind == "proved" and proof.relative_gap <= 1e-8
        point = game.point(found)
        assert found.objective == pytest.approx(game.losses(point)[0].max(), rel=1e-9)
        (low, *_, high), (few, *_, many) = (
            sorted(part * 2) for part in zip(*game.ends, strict=True)
        )
        strengths, shares = np.geomspace(low, high, 200), np.linspace(few, many, 5)
        inside = game.losses(point, list(product(strengths, shares)))[0]
        assert inside.max() <= found.objective * (1 + 1e-9)
        rng = np.random.default_rng(seed)
        for _ in range(50):
            other = point * rng.normal(size=len(point)) + 0.1 * rng.normal(size=len(point))
            assert proof.lower_bound <= game.losses(other)[0].max()
    assert proved >= 0.95 * len(seeds)


class TestWorstCase:
    def test_no_local_solver_does_better(self):
        play(range(30), starts=6)

    @pytest.mark.long
    def test_no_local_solver_does_better_in_200_games(self):
        play(range(200), starts=30)

    @pytest.mark.parametrize("honest", [0.0, 0.3])
    def test_equal_ends_are_a_game_that_is_known(self, honest):
        for seed in range(6):
            given = draw(seed).given | {
                "gamma": 0.7 if not honest else Population.mixed(0.7, honest)
            }
            known = solve(**given)
            found = solve(**given | {"gamma": Population.mixed(Between(0.7, 0.7), honest=honest)})
            np.testing.assert_allclose(found.coef, known.coef, rtol=1e-10, atol=1e-12)
            assert found.objective == pytest.approx(known.objective, rel=1e-10)
            assert found.regret == 0.0
            assert len(found.binding) == 1

    def test_nearly_equal_ends_are_nearly_that(self):
        for seed in range(6):
            given = draw(seed).given
            known = solve(**given | {"gamma": Population.mixed(0.7, 0.3)})
            near = Population.mixed(Between(0.7, 0.7 * (1 + 1e-12)), honest=Between(0.3, 0.3))
            assert solve(**given | {"gamma": near}).objective == pytest.approx(
                known.objective, rel=1e-10
            )

    def test_wider_ranges_cost_more(self):
        for seed in range(8):
            given = draw(seed).given
            worst = [
                solve(
                    **given | {"gamma": Population.mixed(Between(1 / k, k), honest=0.2)}
                ).objective
                for k in (1, 2, 4, 8)
            ]
            assert (np.diff(worst) >= -1e-9 * np.array(worst[1:])).all()

    def test_it_is_no_better_than_the_best_answer_to_any_end(self):
        for seed in range(8):
            game = draw(seed)
            found = solve(**game.given)
            for gamma, honest in game.ends:
                alone = solve(**game.given | {"gamma": Population.mixed(gamma, honest)})
                assert found.objective >= alone.certificate.lower_bound * (1 - 1e-12)

    def test_units_do_not_matter(self):
        for seed in range(6):
            given = draw(seed).given
            found = solve(**given)
            a, b = 2.0**120, 2.0**-90
            whom = given["gamma"]
            if isinstance(whom, Between):
                whom = Population.mixed(whom, honest=0.0)
            factor = (b / a) ** 2
            told = PopulationRange(
                Between(whom.gamma.low * factor, whom.gamma.high * factor), whom.honest
            )
            other = given | {"X": given["X"] * a, "y": given["y"] * b, "z": given["z"] * b}
            again = solve(**other | {"gamma": told, "ridge": given["ridge"] * a * a})
            assert again.objective / b**2 == pytest.approx(found.objective, rel=1e-9)
            assert again.regret / b**2 == pytest.approx(found.regret, rel=1e-6, abs=1e-9)

    @pytest.mark.parametrize(("features", "seed"), [(1, 9), (2, 9), (5, 9), (10, 3)])
    def test_few_mixtures_are_looked_at(self, features, seed, monkeypatch):
        """In games where the worst mixture turns with the norm: the slowest of the benchmark."""
        rng = np.random.default_rng([features, seed])
        X = rng.normal(size=(20 * features + 10, features)) + rng.normal(size=features)
        y = X @ rng.normal(size=features) + rng.normal(size=len(X))
        z = y + rng.normal(size=len(X))
        low = 10 ** rng.uniform(-2, 1)
        looks, look = [], Chain.look

        def counted(self, t, *rest):
            looks.append(t.size)
            return look(self, t, *rest)

        monkeypatch.setattr(Chain, "look", counted)
        ends = Between(low, low * 10 ** rng.uniform(0.1, 2))
        found = solve(X, y, z, ends, fit_intercept=True)
        assert found.status is Status.OPTIMAL
        assert len(looks) <= 50

    @pytest.mark.long
    def test_it_takes_at_most_ten_times_as_long_as_a_population(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(200, 10))
        y = X @ rng.normal(size=10) + rng.normal(size=200)
        z = np.maximum(y, 1.0)
        known, ends = Population.mixed(10.0, honest=0.5), Between(2.0, 50.0)
        for whom in (ends, Population.mixed(ends), Population.mixed(ends, Between(0.2, 0.8))):
            spent = np.zeros((15, 2))
            for row in spent:
                for at, people in enumerate((whom, known)):
                    start = time.process_time()
                    solve(X, y, z, people, fit_intercept=True)
                    row[at] = time.process_time() - start
            range_, population = np.median(spent, axis=0)
            assert range_ <= 10 * population


class TestEnds:
    def test_ends_that_bind_are_those_of_the_largest_loss(self):
        for seed in range(12):
            game = draw(seed)
            found = solve(**game.given)
            own = game.losses(game.point(found))[0]
            unit = own.max()
            assert len(found.ends) == len(game.ends)
            by_end = {
                (end.population.honest, min(end.population.gammas)): end for end in found.ends
            }
            for (gamma, honest), loss in zip(game.ends, own, strict=True):
                end = by_end[honest, gamma]
                assert end.objective == pytest.approx(loss, rel=1e-9)
                assert end.binds == (loss >= unit * (1 - 1e-8))
            assert found.binding == tuple(end.population for end in found.ends if end.binds)

    def test_regret_is_what_the_truth_would_have_gained(self):
        for seed in range(6):
            game = draw(seed)
            found = solve(**game.given)
            for end in found.ends:
                best = solve(**game.given | {"gamma": end.population}).objective
                assert end.best == pytest.approx(best, rel=1e-8)
                assert end.regret == pytest.approx(end.objective - best, abs=1e-8 * best)
            assert found.regret == max(end.regret for end in found.ends)

    def test_weak_providers_are_worst_beside_many_honest_ones_only(self):
        """The chain leaves one of four ends out, for every predictor whatever."""
        rng = np.random.default_rng(5)
        for seed in range(40):
            game = draw(seed)
            low, few = rng.uniform(0.01, 3), rng.uniform(0, 0.9)
            people = PopulationRange(
                Between(low, low * 10 ** rng.uniform(0, 2)), Between(few, rng.uniform(few, 1))
            )

            def pairs(populations):
                read = [(one.gammas, one.honest) for one in populations]
                return [(min(gammas), honest) for gammas, honest in read]

            point = rng.normal(size=len(game.losses(game.point(solve(**game.given)))[1][0]))
            every = game.losses(point, pairs(people.corners))[0].max()
            assert game.losses(point, pairs(people.chain))[0].max() == pytest.approx(every)

    def test_an_infinite_end_is_an_honest_population(self):
        given = draw(3).given | {"gamma": Between(0.5, INF)}
        found = solve(**given)
        other = solve(**given | {"gamma": Population.mixed(0.5, honest=Between(0, 1))})
        assert found.objective == pytest.approx(other.objective, rel=1e-10)
        assert found.status is Status.OPTIMAL


class TestCertificates:
    def test_any_predictor_is_judged_by_its_worst_end(self):
        for seed in range(8):
            game = draw(seed)
            given = dict(game.given)
            intercept = given.pop("fit_intercept")
            found = solve(**game.given)
            rng = np.random.default_rng(seed)
            for scale in (1.0, 0.5, 0.0):
                coef = scale * found.coef + (scale < 1) * 0.1 * rng.normal(size=len(found.coef))
                constant = 0.3 if intercept else None
                proof = certify(**given, coef=coef, intercept=constant)
                point = np.append(coef, [0.3]) if intercept else coef
                worst = game.losses(point)[0].max()
                assert proof.lower_bound <= found.objective * (1 + 1e-12)
                assert proof.gap == pytest.approx(
                    worst - found.objective, rel=1e-6, abs=1e-7 * worst
                )
            exact = certify(
                **given, coef=found.coef, intercept=found.intercept if intercept else None
            )
            assert exact.relative_gap <= 1e-8
            assert exact.kkt_residual <= 1e-8

    def test_where_no_predictor_is_best(self):
        """Goals that reveal the labels, and nobody honest: the loss falls for ever."""
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(30, 3)), rng.normal(size=30)
        found = solve(X, y, y + 1.0, Between(0.5, 5), fit_intercept=True)
        assert found.status is Status.UNATTAINED
        assert found.certificate.relative_gap <= 1e-9
        honest = solve(X, y, y + 1.0, Population.mixed(Between(0.5, 5), 0.2), fit_intercept=True)
        assert honest.status is Status.OPTIMAL

    def test_more_columns_than_rows(self):
        rng = np.random.default_rng(1)
        X, y, z = rng.normal(size=(5, 9)), rng.normal(size=5), rng.normal(size=5)
        found = solve(X, y, z, Population.mixed(Between(0.5, 5), honest=Between(0.2, 0.6)))
        assert found.certificate.relative_gap <= 1e-9

    def test_where_nothing_can_be_changed(self):
        rng = np.random.default_rng(1)
        X, y = rng.normal(size=(9, 2)), rng.normal(size=9)
        found = solve(X, y, y + 1, Between(0.5, 5), feature_cost=[INF, INF])
        assert found.status is Status.LEAST_SQUARES
        np.testing.assert_allclose(found.coef, np.linalg.lstsq(X, y, rcond=None)[0])
        assert len(found.binding) == 2
        assert found.regret == pytest.approx(0.0, abs=1e-12)

    def test_where_a_feature_never_varies(self):
        y = np.arange(5.0)
        found = solve(np.zeros((5, 2)), y, y + 1, Between(0.5, 5), null_space="avoid")
        np.testing.assert_array_equal(found.coef, 0.0)
        assert found.objective == pytest.approx(float(y @ y))

    def test_one_feature_that_may_turn_round(self):
        """A sphere of two points: a mixture may have two best answers."""
        x = np.array([3.0, -1.0, -2.0, -3.0, 0.0, 3.0])
        y = np.array([0.0, -1.0, 0.0, -2.0, -4.0, -4.0])
        z = np.array([-2.0, -3.0, 6.0, -4.0, -5.0, -3.0])
        found = solve(x[:, None], y, z, Between(0.0625, 0.5))
        w = np.concatenate([sign * np.geomspace(1e-5, 1e2, 200_000) for sign in (-1, 1)])
        worst = np.max(
            [
                np.sum(
                    (gamma / (gamma + w**2) * (x[:, None] * w - z[:, None]) + (z - y)[:, None])
                    ** 2,
                    axis=0,
                )
                for gamma in (0.0625, 0.5)
            ],
            axis=0,
        )
        assert found.objective <= worst.min()
        assert found.certificate.lower_bound <= worst.min()


def reduced(seed: int, size: int = 5) -> ReducedGame:
    rng = np.random.default_rng(seed)
    sigma, (eta, zeta) = 10 ** rng.uniform(-1, 1, size), 2.0 * rng.normal(size=(2, size))
    return ReducedGame(sigma, eta, zeta, 1.0, 0.2, 1.5, free_gap=float(seed % 2))


class TestSections:
    """The least loss against the worst mixture, at prescribed norms."""

    GAMMAS = np.array([0.1, 2.0, INF])
    CHAIN = np.array([[0.0, 0.4, 0.6], [0.4, 0.0, 0.6], [0.8, 0.0, 0.2]])

    @pytest.mark.parametrize("seed", range(6))
    def test_no_mixture_is_worse(self, seed):
        game = reduced(seed)
        worst = WorstSections(game, self.GAMMAS, self.CHAIN, 0.3, 1e-9)
        t = np.geomspace(1e-3, 1e3, 25)
        value = worst.evaluate(t / worst.units.t).value * worst.units.length**2
        rng = np.random.default_rng(seed)
        most = np.full(t.size, -INF)
        for weights in [*np.eye(3), *rng.dirichlet(np.ones(3), 200)]:
            most = np.maximum(most, phi(game, self.GAMMAS, weights @ self.CHAIN, t, ridge=0.3))
        assert (value >= most * (1 - 1e-12)).all()

    @pytest.mark.parametrize("seed", range(6))
    def test_slope_and_curvature_are_derivatives(self, seed):
        worst = WorstSections(reduced(seed), self.GAMMAS, self.CHAIN, 0.3, 1e-9)
        for t in np.geomspace(1e-2, 1e1, 9).tolist():
            h = 1e-4
            before, here, after = (worst.evaluate(t * math.exp(k * h)) for k in (-1, 0, 1))
            if min(before.mu, here.mu, after.mu) < 1e-3:
                continue
            places = [worst.weights_at(t * math.exp(k * h)) for k in (-1, 1)]
            if ((places[0] > 0) != (places[1] > 0)).any():
                continue
            scale = abs(here.value) + abs(here.slope)
            assert (after.value - before.value) / (2 * h) == pytest.approx(
                here.slope, abs=1e-6 * scale
            )
            assert (after.slope - before.slope) / (2 * h) == pytest.approx(
                here.curvature, abs=1e-5 * (scale + abs(here.curvature))
            )

    @pytest.mark.parametrize("seed", range(4))
    def test_bounds_hold_whoever_is_asked(self, seed):
        game = reduced(seed)
        found, weights = solve_worst(game, self.GAMMAS, self.CHAIN, ridge=0.1)
        assert found.proved
        assert weights.sum() == pytest.approx(1.0)
        t = np.geomspace(1e-6, 1e6, 400)
        losses = [phi(game, self.GAMMAS, shares, t, ridge=0.1) for shares in self.CHAIN]
        assert found.lower_bound <= np.max(losses, axis=0).min() * (1 + 1e-12)


class TestEstimator:
    def fitted(self, **given):
        rng = np.random.default_rng(2)
        X = rng.normal(size=(80, 3))
        y = X @ [1.0, 2.0, -1.0] + rng.normal(size=80)
        return StackelbergRegressor(goal=Floor(1.0), **given).fit(X, y), X, y

    def test_a_range_of_pulls_is_one_of_strengths(self):
        model, X, y = self.fitted(pull=Between(0.2, 0.8), honest_share=Between(0.2, 0.6))
        reach = self.fitted()[0].gamma_
        np.testing.assert_allclose(model.gamma_, [reach / 4, reach * 4], rtol=1e-9)
        np.testing.assert_allclose(model.alpha_ * model.gamma_, model.coef_ @ model.coef_)
        people = Population.mixed(Between(*model.gamma_), honest=Between(0.2, 0.6))
        same = solve(X, y, np.maximum(y, 1.0), people, fit_intercept=True, null_space="avoid")
        np.testing.assert_allclose(model.coef_, same.coef, rtol=1e-8)
        assert model.binding_ == same.binding
        assert model.regret_ == pytest.approx(same.regret, rel=1e-6)
        other, _, _ = self.fitted(gamma=people)
        np.testing.assert_allclose(other.coef_, same.coef, rtol=1e-8)

    def test_equal_ends_are_a_number(self):
        one, _, _ = self.fitted(pull=Between(0.4, 0.4), honest_share=Between(0.3, 0.3))
        other, _, _ = self.fitted(pull=0.4, honest_share=0.3)
        np.testing.assert_array_equal(one.coef_, other.coef_)
        assert one.gamma_ == other.gamma_
        assert other.binding_ == ()
        assert other.regret_ == 0.0

    def test_it_is_cloned_and_printed(self):
        model, X, y = self.fitted(gamma=Between(1, 5))
        again = clone(model).fit(X, y)
        np.testing.assert_array_equal(model.coef_, again.coef_)
        assert "Between(1, 5)" in repr(model)
        with pytest.raises(ValueError, match="several strengths: 1, 5"):
            model.predict_attacked(X, y=y)
        assert len(model.predict_attacked(X, y=y, gamma=5.0)) == 80

    def test_classifiers_take_ranges_but_for_their_threshold(self):
        rng = np.random.default_rng(4)
        X = rng.normal(size=(60, 3))
        y = (X @ [1.0, 2.0, -1.0] + rng.normal(size=60) > 0).astype(int)
        people = {"pull": Between(0.2, 0.8), "honest_share": Between(0.2, 0.6)}
        model = StackelbergClassifier(**people).fit(X, y)
        whom = Population.mixed(Between(*model.gamma_), honest=Between(0.2, 0.6))
        same = solve(X, 2.0 * y - 1.0, np.ones(60), whom, fit_intercept=True, null_space="avoid")
        np.testing.assert_allclose(model.coef_, same.coef, rtol=1e-8)
        with pytest.raises(ValueError, match="threshold='attacked' needs one population"):
            StackelbergClassifier(threshold="attacked", **people).fit(X, y)

    def test_levers_need_one_population(self):
        model, X, y = self.fitted(pull=Between(0.2, 0.8))
        with pytest.raises(ValueError, match="fitted against a range, PopulationRange"):
            model.levers(X, y)

    def test_nobody_gains_where_nothing_is_explained(self):
        X = np.random.default_rng(0).normal(size=(20, 2))
        given = {"pull": Between(0.2, 0.8), "honest_share": Between(0.1, 0.5)}
        model = StackelbergRegressor(goal=Constant(3.0), **given).fit(X, np.zeros(20))
        assert model.gamma_ == INF


class TestRefused:
    X = np.arange(12.0).reshape(6, 2) ** 1.5
    y = np.arange(6.0)

    @pytest.mark.parametrize(
        ("low", "high", "error", "words"),
        [
            (5, 1, ValueError, r"low must not be above high.*5 and 1.*Between\(1, 5\)"),
            ("a", 1, TypeError, "low of Between must be a number; got 'a'"),
            (1, [], TypeError, "high of Between must be a number; got a list"),
            (1, True, TypeError, "high of Between must be a number; got True"),
            (math.nan, 1, ValueError, "low of Between must be a number; got nan"),
        ],
    )
    def test_what_is_no_range(self, low, high, error, words):
        with pytest.raises(error, match=words):
            Between(low, high)

    @pytest.mark.parametrize(
        ("gamma", "words"),
        [
            (Between(0, 1), "low end of gamma must be a finite number above 0; got 0"),
            (Between(INF, INF), "low end of gamma must be a finite number"),
        ],
    )
    def test_strengths_out_of_range(self, gamma, words):
        with pytest.raises(ValueError, match=words):
            solve(self.X, self.y, self.y + 1, gamma)

    def test_shares_out_of_range(self):
        with pytest.raises(ValueError, match=r"high end of honest must be .* at most 1; got 1\.5"):
            Population.mixed(1.0, honest=Between(0.5, 1.5))

    @pytest.mark.parametrize("solver", ["krylov", "gltr"])
    def test_solvers_that_know_no_ranges(self, solver):
        with pytest.raises(ValueError, match=f"{solver}.* does not know ranges.*spectral"):
            solve(self.X, self.y, self.y + 1, Between(1, 2), solver=solver)

    @pytest.mark.parametrize("solver", ["auto", "spectral"])
    def test_decompositions_that_memory_cannot_hold(self, solver, monkeypatch):
        monkeypatch.setattr(auto, "available_memory", lambda: 1e8)
        X, y = sp.eye_array(6000, format="csr"), np.arange(6000.0)
        with pytest.raises(MemoryError, match="Only this solver knows ranges"):
            solve(X, y, y + 1, Between(1, 2), solver=solver)
        with pytest.raises(MemoryError, match="Only this solver knows ranges"):
            certify(X, y, y + 1, Between(1, 2), y)

    def test_where_a_range_has_no_place(self):
        for gammas in ([Between(1, 2)], [Population.mixed(Between(1, 2))]):
            with pytest.raises(TypeError, match=r"gammas\[0\] must be .* here; got .*solve"):
                solve_path(self.X, self.y, self.y + 1, gammas)
        with pytest.raises(TypeError, match="gammas must be a sequence"):
            solve_path(self.X, self.y, self.y + 1, Between(1, 2))

    @pytest.mark.parametrize(
        ("given", "words"),
        [
            ({"pull": Between(0, 0.5)}, "pull must be a finite number above 0 and below 1"),
            ({"honest_share": Between(0.5, 2)}, "high end of honest_share"),
            ({"gamma": 1.0, "pull": Between(0.2, 0.5)}, "pull must stay 0.5"),
            (
                {"gamma": Population.mixed(Between(1, 2)), "honest_share": Between(0, 1)},
                "honest_share must stay 0.5",
            ),
            ({"gamma": Between(1, 2), "solver": "gltr"}, "knows neither honest providers"),
        ],
    )
    def test_estimators(self, given, words):
        with pytest.raises(ValueError, match=words):
            StackelbergRegressor(goal=Floor(1.0), **given).fit(self.X, self.y)

    @pytest.mark.parametrize(
        ("given", "words"),
        [
            ({"gammas": [Between(1, 2)]}, r"gammas\[0\] must be a finite number"),
            ({"honest_shares": Between(0, 1)}, "honest_shares must be a list"),
            ({"pull": Between(0.1, 0.2)}, "pull must be a finite number"),
        ],
    )
    def test_cross_validation(self, given, words):
        with pytest.raises(TypeError, match=words):
            StackelbergRegressorCV(goal=Floor(1.0), **given).fit(self.X, self.y)


class TestFarOut:
    """A null space, and honest people whom one end of the range has and the other has not."""

    SMALL = ReducedGame(
        np.array([3.0]), np.array([2.0]), np.array([0.5]), 0.0, 0.0, 1.5, nullity=1, free_gap=0.7
    )

    def test_the_limit_is_that_of_the_worst_mixture(self):
        shares = np.array([[1.0, 0.0], [0.9, 0.1]])
        sections = WorstSections(self.SMALL, np.array([0.01, np.inf]), shares, 0.0, 1e-9, 2.0)
        with np.errstate(all="ignore"):
            far = sections.evaluate(np.array([1e6, 1e9]))
        assert far.value == pytest.approx(sections.value_at_infinity(), rel=1e-6)

    def test_an_optimum_is_found_before_that(self):
        x = np.array([-1.5, -5.5, -3.0, -2.5, 4.0, 4.0, 1.5, -8.5, 2.5, 7.5])
        X, y = np.column_stack([x, 0.0 * x]), 0.5 * x
        z = np.maximum(y, 0.0)
        people = Population.mixed(Between(5e-4, 6.5), honest=Between(0.0, 0.1))
        found = solve(X, y, z, people, fit_intercept=True)
        assert found.status.ok
        assert np.isfinite(found.objective)
        # Zero coefficients, or a null space that makes everybody reach the goals, are no better.
        assert found.objective < min(np.sum((y - y.mean()) ** 2), np.sum((z - y) ** 2))

    def test_people_who_move_for_nothing(self):
        X = [-2.4, -0.2, -0.1, -1.4, -0.8, 1.6, -0.9, -0.3, -0.9, -1.7]
        X += [1.7, -1.5, 0.8, -0.4, -0.3, 0.8, 1.2, -1.0, -0.5, 0.9]
        y = [3.0, -2.0, -3.0, -1.0, 0.0, -2.0, -1.0, 2.0, 1.0, -2.0]
        z = [0.8241809125042572, 0.008262951832274323, -0.0442985849673474, 0.2946422575031339]
        z += [-1.1128574175014494, 1.392168846450546, -0.9447146803517092, 0.20752583250235476]
        z += [-0.5403184302047142, -0.6135050890657701]
        strength = Between(2.397527003073441e-08, 5.02960933031085e-05)
        people = Population.mixed(strength, honest=Between(0.0, 0.25))
        assert solve(np.reshape(X, (10, 2)), y, z, people).status.ok
