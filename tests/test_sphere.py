"""The small problem: against 50 digits, and the maps between sphere and game."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from spgls.sphere import (
    dual_bound,
    from_sphere,
    scls_terms,
    solve_fixed_norm,
    solve_sphere,
    solve_sphere_many,
    stationarity,
    to_sphere,
)
from tests.builders import reduced
from tests.oracles.exact_sphere import phi, solve_exact
from tests.oracles.families import problems

COUNT = 1240
CASES = [p for p in problems(COUNT, seed=7) if p.sigma or p.nullity]


def moved_by_an_ulp(problem, seed: int) -> tuple:
    """The same data, every number one rounding away."""
    rng = np.random.default_rng(seed)
    ulp = np.finfo(float).eps / 2

    def shake(v):
        return np.asarray(v) * (1 + ulp * rng.choice([-1.0, 1.0], size=np.shape(v)))

    r_yy, r_zz = float(shake(problem.r_yy)), float(shake(problem.r_zz))
    bound = np.sqrt(r_yy) * np.sqrt(r_zz) * (1 - 2 * ulp)
    r_yz = float(np.clip(shake(problem.r_yz), -bound, bound))
    vectors = (shake(v) for v in (problem.sigma, problem.eta, problem.zeta))
    return (*vectors, r_yy, r_yz, r_zz, problem.nullity, problem.gamma)


@pytest.fixture(scope="module")
def answers():
    return [solve_exact(*p.data) for p in CASES]


def test_value_agrees_with_fifty_digits(answers):
    for problem, exact in zip(CASES, answers, strict=True):
        game = reduced(problem)
        found = solve_sphere(game, problem.gamma)
        with mp.workdps(60):
            excess = mpf(found.value) - exact.value
            size = mpf(game.yy) + mpf(game.zz)
            if exact.status == "unattained":
                assert found.outcome == "unattained", problem
                assert -1e-15 * size <= excess <= 1e-9 * game.yy + 1e-15 * size, problem
            else:
                assert found.outcome != "unattained", problem
                assert abs(excess) <= 1e-15 * size, problem


def test_alpha_agrees_with_fifty_digits(answers):
    """To 1e-11, unless alpha itself moves that much when the data moves by one ulp.

    Where a smaller alpha is as good to 1e-15, it may be returned in place of the optimum.
    """
    strict = 0
    for i, (problem, exact) in enumerate(zip(CASES, answers, strict=True)):
        if exact.status == "unattained":
            continue
        found = solve_sphere(reduced(problem), problem.gamma)
        with mp.workdps(60):
            error = abs(mpf(found.alpha) - exact.alpha)
            if error <= mpf("1e-11") * exact.alpha:
                strict += 1
                continue
            size = mpf(reduced(problem).yy) + mpf(reduced(problem).zz)
            excess = phi(mpf(found.alpha), *problem.data) - exact.value
            if mpf(found.alpha) < exact.alpha and excess <= 1e-15 * size:
                continue
            shaken = [solve_exact(*moved_by_an_ulp(problem, 10 * i + j)).alpha for j in range(6)]
            sensitivity = max(abs(a - exact.alpha) for a in shaken)
            assert error <= 8 * sensitivity, (problem, found.alpha, exact.alpha)
    assert strict >= 1000


def test_small_point_is_feasible_and_stationary():
    for problem in CASES[::3]:
        game = reduced(problem)
        found = solve_sphere(game, problem.gamma)
        norm2 = float(found.x @ found.x) + found.fill**2
        wanted = problem.gamma * found.s * found.c
        assert norm2 == pytest.approx(wanted, rel=1e-12, abs=1e-300), problem
        assert found.s + found.c == pytest.approx(1.0, abs=1e-15)
        if found.outcome != "unattained" and game.yy + game.zz > 0:
            # At a double root of the sphere quadratic c is only known to the root of an ulp.
            assert stationarity(game, problem.gamma, found) < 1e-8, problem


def test_pole_beside_a_lowest_value_hardly_aimed_at():
    """The root of ``h`` lies so close to ``-min(d)`` that plain Newton steps only double."""
    problem = problems(990, seed=2)[989]
    assert problem.name.startswith("near_untouched_lowest")
    game, exact = reduced(problem), solve_exact(*problem.data)
    many = solve_sphere_many(game, problem.gamma * np.array([0.5, 1.0, 2.0]))
    for found in (solve_sphere(game, problem.gamma), many[1]):
        assert found.value == pytest.approx(float(exact.value), abs=1e-15 * (game.yy + game.zz))
        assert found.alpha == pytest.approx(float(exact.alpha), rel=1e-11)
        assert found.value - dual_bound(game, problem.gamma, found) <= 1e-14 * (game.yy + game.zz)


def test_dual_bound_never_exceeds_the_optimum(answers):
    """And it is tight: this is the proof every certificate rests on."""
    for problem, exact in zip(CASES, answers, strict=True):
        game = reduced(problem)
        found = solve_sphere(game, problem.gamma)
        bound = dual_bound(game, problem.gamma, found)
        size = game.yy + found.c**2 * game.zz
        with mp.workdps(60):
            assert mpf(bound) <= exact.value + mpf(16 * 2.2e-16 * size), problem


@given(
    exponent=st.floats(-12, 12),
    log_gamma=st.floats(-8, 8),
    size=st.integers(1, 6),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_maps_invert_each_other(exponent, log_gamma, size, seed):
    """The paper's two lemmas, for alpha from 1e-12 to 1e12."""
    rng = np.random.default_rng(seed)
    gamma, alpha = 10.0**log_gamma, 10.0**exponent
    w = rng.normal(size=size)
    w *= np.sqrt(gamma * alpha) / np.linalg.norm(w)
    point = to_sphere(w, gamma)
    assert point.w @ point.w + point.alpha**2 == pytest.approx(1.0, abs=1e-14)
    back = from_sphere(point.w, point.alpha, gamma)
    assert back.alpha == pytest.approx(alpha, rel=1e-13)
    np.testing.assert_allclose(back.w, w, rtol=1e-13)


def test_sphere_has_the_value_of_the_game():
    rng = np.random.default_rng(3)
    A, y, z, w = rng.normal(size=(7, 3)), *rng.normal(size=(2, 7)), rng.normal(size=3)
    gamma = 0.3
    H, g, p = scls_terms(A, y, z, gamma)
    r = np.append(*to_sphere(w, gamma))
    alpha = w @ w / gamma
    loss = np.sum(((A @ w + alpha * z) / (1 + alpha) - y) ** 2)
    assert r @ H @ r + 2 * g @ r + p == pytest.approx(loss, rel=1e-13)


def test_point_at_infinity_is_refused():
    with pytest.raises(ValueError, match="no finite predictor"):
        from_sphere(np.zeros(3), 1.0, 1.0)


@pytest.mark.parametrize("nullity", [0, 2])
@pytest.mark.parametrize("low", ["touched", "untouched"])
def test_fixed_norm_is_optimal(nullity, low):
    """No feasible point is better, and the multiplier proves it."""
    rng = np.random.default_rng(5)
    for _ in range(60):
        k = int(rng.integers(1, 7))
        d, p = np.exp(rng.normal(size=k)), rng.normal(size=k)
        if low == "untouched":
            p[np.argmin(d)] = 0.0
        t = float(np.exp(3 * rng.normal()))
        point = solve_fixed_norm(d, p, t, nullity)
        assert point.v @ point.v + point.fill**2 == pytest.approx(t, rel=1e-12)
        assert point.nu >= -(0.0 if nullity else d.min()) - 1e-14
        np.testing.assert_allclose((d + point.nu) * point.v, p, atol=1e-10)
        value = d @ point.v**2 - 2 * p @ point.v
        trial = rng.normal(size=(2000, k + nullity))
        trial *= np.sqrt(t) / np.linalg.norm(trial, axis=1, keepdims=True)
        inside = trial[:, :k]
        assert value <= (inside**2 @ d - 2 * inside @ p).min() + 1e-9 * (1 + abs(value))
