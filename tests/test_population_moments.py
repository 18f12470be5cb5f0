"""Averages over groups, of one game or of many: one formula, whatever goes in."""

from __future__ import annotations

import numpy as np
import pytest

from spgls.game.providers import Population
from spgls.population import GroupMoments
from spgls.population.bracket import refine, refine_many
from spgls.population.groups import Groups
from spgls.population.search import expected_range
from spgls.population.section import Sections

from .builders import random_reduced

INF = np.inf
EPS = np.finfo(float).eps
LONG = np.longdouble
AVERAGES = ("a", "p", "u", "e", "spread", "bend", "a2", "kappa", "e1", "e2", "tau", "tau1", "tau2")


def assert_same(m, other, at=()):
    for name in AVERAGES:
        expected = np.asarray(getattr(other, name))
        np.testing.assert_allclose(
            np.asarray(getattr(m, name))[at], expected, rtol=1e-12, atol=1e-15, err_msg=name
        )


@pytest.mark.parametrize("count", [1, 2, 3, 7])
@pytest.mark.parametrize("honest", [False, True])
def test_a_number_is_a_vector_of_one(count, honest):
    """Groups one after the other, or all of them at once."""
    rng = np.random.default_rng(count)
    gammas = 10.0 ** rng.uniform(-3, 3, count)
    shares = rng.dirichlet(np.ones(count + honest))
    groups = GroupMoments([*gammas, INF] if honest else gammas, shares)
    t = np.geomspace(1e-6, 1e6, 9)
    many = groups.at(t)
    for i, number in enumerate(t.tolist()):
        assert_same(many, groups.at(number), i)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_many_games_are_as_many_single_ones(count):
    rng = np.random.default_rng(count)
    gammas = np.sort(10.0 ** rng.uniform(-3, 3, (count, 20)), axis=0)
    shares = rng.dirichlet(np.ones(count + 1), 20).T
    shares[:, :5] /= 1.0 - shares[-1, :5]
    shares[-1, :5] = 0.0
    t = 10.0 ** rng.uniform(-4, 4, 20)
    groups = GroupMoments([*gammas, INF], shares)
    some = np.array([3, 3, 17])
    for where, part in ((np.arange(20), groups), (some, groups.of(some))):
        m, far = part.at(t[where]), part.spread_at_infinity()
        for row, i in enumerate(where):
            alone = GroupMoments([*gammas[:, i], INF], shares[:, i])
            assert_same(m, alone.at(float(t[i])), row)
            assert far[row] == pytest.approx(alone.spread_at_infinity(), abs=1e-15)


def test_averages_keep_their_digits():
    gammas, shares = np.array([INF, 0.03, 2.0, 50.0]), np.array([0.2, 0.3, 0.1, 0.4])
    groups = GroupMoments(gammas, shares)
    for t in (1e-12, 1e-3, 1.0, 1e7, 1e15):
        m = groups.at(t)
        s = 1 / (1 + LONG(t) / LONG(gammas))
        c = np.where(np.isinf(gammas), 0, LONG(t) / (LONG(gammas) + LONG(t)))
        k, u, a = ((LONG(shares) * part).sum() for part in (c * c, s * c, s * s))
        reached = Groups(Population(gammas, shares)).at(t)
        for name, exact in (("a", a), ("u", u), ("k", k), ("pull", u / a)):
            assert getattr(reached, name) == pytest.approx(float(exact), rel=1e-14)
        order = np.argsort(gammas)
        for group, i in zip(m.each(), order, strict=True):
            assert group.share == shares[i]
            assert group.s == pytest.approx(float(s[i]), rel=4 * EPS)
            assert group.c == pytest.approx(float(c[i]), rel=4 * EPS)
            assert group.slope == pytest.approx(float(-(s[i] ** 2) / gammas[i]), rel=8 * EPS)


def test_equal_strengths_and_empty_groups_do_not_matter():
    merged = GroupMoments([1.0, INF], [0.75, 0.25])
    apart = GroupMoments([1.0, INF, 1.0, 3.0], [0.5, 0.25, 0.25, 0.0])
    assert_same(apart.at(0.3), merged.at(0.3))
    assert len(apart.each(0.3)) == 2


def test_ends_of_the_range_of_norms():
    """Nobody has moved at zero; at infinity only the honest are left."""
    for gammas, shares in (([2.0], [1.0]), ([2.0, 3.0, INF], [0.25, 0.25, 0.5])):
        groups = GroupMoments(gammas, shares)
        start, end = groups.at(0.0), groups.at(INF)
        honest = shares[-1] if gammas[-1] == INF else 0.0
        assert (start.a, start.p, start.u) == (1.0, 1.0, 0.0)
        assert [group.slope for group in start.each()] == [-1.0 / gamma for gamma in gammas]
        assert (end.a, end.p, end.u) == (honest, honest, 0.0)
        with np.errstate(all="ignore"):
            s, c = groups.left(np.array([0.0, INF]))
        np.testing.assert_array_equal(s[0], np.ones(len(gammas)))
        np.testing.assert_array_equal(c, 1.0 - s)
        np.testing.assert_array_equal(s[1], np.isinf(gammas))


def games_of(rng, nullity: int):
    game = random_reduced(int(rng.integers(1, 6)), rng, nullity=nullity)
    gammas, honest = 10.0 ** rng.uniform(-2, 2, 12), rng.choice([0.0, 0.1, 0.6], 12)
    ridges = rng.choice([0.0, 0.1], 12)
    together = Sections(game, [gammas, INF], [1.0 - honest, honest], ridges)
    alone = [
        Sections(game, [gamma, INF], [1.0 - share, share], ridge)
        for gamma, share, ridge in zip(gammas, honest, ridges, strict=True)
    ]
    return together, alone


@pytest.mark.parametrize("seed", range(6))
def test_range_and_limit_of_many_games_are_those_of_each(seed):
    together, alone = games_of(np.random.default_rng(seed), seed % 2)
    with np.errstate(all="ignore"):
        infinity = together.value_at_infinity()
        low, high = expected_range(together, infinity)
        for i, one in enumerate(alone):
            assert infinity[i] == pytest.approx(one.value_at_infinity(), rel=1e-14)
            ends = expected_range(one, one.value_at_infinity())
            assert (low[i], high[i]) == pytest.approx(ends, rel=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_minima_refined_together_are_those_refined_alone(seed):
    together, alone = games_of(np.random.default_rng(seed), 0)
    grid = np.geomspace(1e-6, 1e6, 60)
    with np.errstate(all="ignore"):
        which, left, right, expected = [], [], [], []
        for i, one in enumerate(alone):
            slope = one.evaluate(grid).slope
            for k in np.flatnonzero((slope[:-1] < 0.0) & (slope[1:] > 0.0)):
                which.append(i)
                left.append(grid[k])
                right.append(grid[k + 1])
                start = one.evaluate(float(grid[k]), guess=1.0)
                found = refine(
                    lambda t, mu, exactly, one=one: one.evaluate(t, guess=mu),
                    float(grid[k]),
                    float(grid[k + 1]),
                    start,
                )
                expected.append(found.t)
        which = np.array(which)
        found, sure = refine_many(
            lambda rows, t, mu: together.of(which[rows]).evaluate(t, guess=mu),
            np.array(left),
            np.array(right),
            together.of(which).evaluate(np.array(left), guess=np.ones(len(which))),
        )
    assert len(which) >= 6
    assert sure.all()
    np.testing.assert_allclose(found.t, expected, rtol=1e-11)
