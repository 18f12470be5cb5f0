"""The oracle held against the mathematics: optimality certificates, ties, symmetries.

A point that is feasible, stationary for nu, and whose A + nu is positive semidefinite is a global
optimum, so the certificate needs no second solver; brute force guards the statement of the game.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy.optimize import minimize

from .exact_sphere import phi, solve_exact
from .families import FAMILIES, Problem, problems

SAMPLE = problems(6 * len(FAMILIES), seed=11)
SMALL = [p for p in SAMPLE if len(p.sigma) <= 4]
DIGITS = 200


def size_of(problem: Problem) -> mpf:
    return mp.fsum(mpf(v) ** 2 for v in problem.eta + problem.zeta) + problem.r_yy + problem.r_zz


@pytest.fixture(autouse=True)
def _many_digits():
    with mp.workdps(DIGITS):
        yield


def stationarity(problem: Problem, answer) -> list[tuple[mpf, mpf]]:
    """Residual of every row of (A + nu) u = b, with the size of the terms that should cancel."""
    nu, c, gamma = answer.nu, answer.c, mpf(problem.gamma)
    rows = []
    last = [c * problem.r_zz, c * gamma * nu, -mpf(problem.r_yz), -gamma * nu / 2]
    for s, e, z, x in zip(problem.sigma, problem.eta, problem.zeta, answer.x, strict=True):
        s, e, z = mpf(s), mpf(e), mpf(z)
        rows.append([s * s * x, nu * x, c * s * z, -s * e])
        last += [s * z * x, c * z * z, -e * z]
    rows += [last, [nu * answer.x0]]
    sphere = [*(x * x for x in answer.x), answer.x0**2, -gamma * answer.c * answer.s]
    return [(abs(mp.fsum(row)), mp.fsum(row, absolute=True)) for row in [*rows, sphere]]


@pytest.mark.parametrize("problem", SAMPLE, ids=lambda p: p.name)
def test_feasible_and_stationary(problem):
    answer = solve_exact(*problem.data)
    for residual, terms in stationarity(problem, answer):
        assert residual <= mpf("1e-45") * terms
    assert answer.c >= 0
    assert answer.s >= 0
    assert abs(answer.c + answer.s - 1) < mpf("1e-45")
    assert not answer.x0 or problem.nullity


@pytest.mark.parametrize("problem", SMALL, ids=lambda p: p.name)
def test_hessian_is_positive_semidefinite(problem):
    answer = solve_exact(*problem.data)
    k, root = len(problem.sigma), mp.sqrt(problem.gamma)
    with mp.workdps(100):
        matrix = mp.zeros(k + 1)
        for i, (s, z) in enumerate(zip(problem.sigma, problem.zeta, strict=True)):
            matrix[i, i] = mpf(s) ** 2 + answer.nu
            matrix[i, k] = matrix[k, i] = mpf(s) * mpf(z) / root
        zz = mp.fsum(mpf(z) ** 2 for z in problem.zeta) + problem.r_zz
        matrix[k, k] = zz / problem.gamma + answer.nu
        values = mp.eigsy(matrix, eigvals_only=True)
        assert min(values) >= -mpf("1e-80") * max(values)
    assert answer.nu >= answer.nu_pole
    assert answer.nu >= 0 or not problem.nullity


def dual_value(problem: Problem, nu: mpf) -> mpf:
    """S_yy - N^2 / (4 h) at nu, a lower bound of every feasible loss."""
    s_yy, s_yz, s_zz = mpf(problem.r_yy), mpf(problem.r_yz), mpf(problem.r_zz)
    for s, e, z in zip(problem.sigma, problem.eta, problem.zeta, strict=True):
        if e or z:
            part = nu / (mpf(s) ** 2 + nu)
            s_yy, s_yz, s_zz = s_yy + part * e * e, s_yz + part * e * z, s_zz + part * z * z
    shift = mpf(problem.gamma) * nu
    h, n = s_zz + shift, 2 * s_yz + shift
    if abs(h) <= mpf("1e-150") * (problem.r_zz + abs(shift)):
        return s_yy
    return s_yy - n * n / (4 * h)


@pytest.mark.parametrize("problem", SAMPLE, ids=lambda p: p.name)
def test_no_duality_gap(problem):
    answer = solve_exact(*problem.data)
    assert abs(dual_value(problem, answer.nu) - answer.value) <= mpf("1e-40") * size_of(problem)


@pytest.mark.parametrize("problem", SAMPLE, ids=lambda p: p.name)
def test_smallest_optimal_alpha(problem):
    """The loss at alpha and alpha_max is the optimum, and below alpha it is larger."""
    answer, tolerance = solve_exact(*problem.data), mpf("1e-40") * size_of(problem)
    for alpha in (answer.alpha, answer.alpha_max):
        assert abs(phi(alpha, *problem.data) - answer.value) <= tolerance
    for factor in (mpf("1e-3"), mpf("0.9"), 1 - mpf("1e-8")):
        if mp.isfinite(answer.alpha) and answer.alpha:
            assert phi(answer.alpha * factor, *problem.data) > answer.value
    assert phi(answer.tie_alpha, *problem.data) <= answer.value + answer.gap_to_other + tolerance
    assert (answer.status == "unattained") == mp.isinf(answer.alpha)


@pytest.mark.parametrize("name", [name for name in FAMILIES if name.startswith("hard")])
def test_hard_families_are_exactly_hard(name):
    for seed in range(20):
        answer = solve_exact(*FAMILIES[name](np.random.default_rng(seed)).data)
        assert answer.status == "several"
        assert answer.nu == answer.nu_pole


def test_problems_are_valid_balanced_and_reproducible():
    made = problems(10 * len(FAMILIES), seed=3)
    assert made == problems(10 * len(FAMILIES), seed=3)
    assert len(FAMILIES) >= 15
    assert len({p.name for p in made}) == len(made)
    for p in made:
        assert len(p.sigma) == len(p.eta) == len(p.zeta)
        assert min(p.sigma, default=1.0) > 0
        assert p.gamma > 0
        assert Fraction(p.r_yz) ** 2 <= Fraction(p.r_yy) * Fraction(p.r_zz)


@pytest.mark.parametrize("seed", range(40))
def test_mirror_image(seed):
    """y -> z - y turns c into 1 - c, so the largest alpha becomes one over the smallest."""
    rng = np.random.default_rng(seed)
    k, nullity = int(rng.integers(0, 5)), int(rng.integers(0, 2))
    eta, zeta = rng.integers(-8, 9, size=(2, k)) / 4.0
    y, z = rng.integers(-3, 4, size=(2, rng.integers(0, 3))) / 4.0
    rest = (rng.uniform(0.2, 2.0, k), eta, zeta, y @ y, y @ z, z @ z, nullity, rng.exponential())
    ours = solve_exact(*rest)
    w = z - y
    theirs = solve_exact(rest[0], zeta - eta, zeta, w @ w, w @ z, z @ z, *rest[6:])
    assert abs(ours.value - theirs.value) <= mpf("1e-45") * (1 + ours.value)
    inverse = 1 / ours.alpha if ours.alpha else mp.inf
    assert theirs.alpha_max == inverse or abs(theirs.alpha_max / inverse - 1) < mpf("1e-45")


@pytest.mark.parametrize("problem", SAMPLE[: len(FAMILIES)], ids=lambda p: p.name)
def test_units_do_not_matter(problem):
    """Powers of two in the units of the columns and of y and z leave alpha alone."""
    columns, target = 2.0**7, 2.0**-5
    grams = {name: getattr(problem, name) * target**2 for name in ("r_yy", "r_yz", "r_zz")}
    other = replace(
        problem,
        sigma=tuple(v * columns for v in problem.sigma),
        eta=tuple(v * target for v in problem.eta),
        zeta=tuple(v * target for v in problem.zeta),
        gamma=problem.gamma * (target / columns) ** 2,
        **grams,
    )
    ours, theirs = solve_exact(*problem.data), solve_exact(*other.data)
    assert ours.status == theirs.status
    assert ours.alpha == theirs.alpha or abs(ours.alpha / theirs.alpha - 1) < mpf("1e-45")
    assert abs(ours.value * target**2 - theirs.value) <= mpf("1e-45") * size_of(other)


def brute_force(problem: Problem, rng: np.random.Generator) -> float:
    """Least loss found from many starts on the sphere |u|^2 = gamma / 4, in float64."""
    sigma, eta, zeta = (np.asarray(v) for v in problem.data[:3])
    k, radius = len(sigma), np.sqrt(problem.gamma) / 2

    def loss(v):
        u = v * (radius / np.linalg.norm(v))
        c = 0.5 + u[-1] / np.sqrt(problem.gamma)
        fit = sigma * u[:k] + c * zeta - eta
        return fit @ fit + problem.r_yy - 2 * c * problem.r_yz + c * c * problem.r_zz

    ends = np.eye(k + 1 + min(problem.nullity, 1))[-1:]
    starts = [*ends, *-ends, *rng.normal(size=(24, ends.shape[1]))]
    return min(min(loss(v), minimize(loss, v, tol=1e-12).fun) for v in starts)


def tiny_problems() -> list[Problem]:
    """Games of at most three columns whose gamma is of the order of their other data."""
    unscaled = ("wide_scales", "tiny_sigma", "many_columns", "hard_any_units")
    names = [n for n in FAMILIES if n not in unscaled]
    found = []
    for i in range(1000):
        problem = FAMILIES[names[i % len(names)]](np.random.default_rng([5, i]))
        if len(problem.sigma) <= 3 and 1e-2 < problem.gamma < 1e2 and len(found) < 70:
            found.append(replace(problem, name=f"{names[i % len(names)]}-{i}"))
    return found


@pytest.mark.parametrize("problem", tiny_problems(), ids=lambda p: p.name)
def test_brute_force_finds_nothing_better(problem):
    found = brute_force(problem, np.random.default_rng(0))
    value, size = float(solve_exact(*problem.data).value), float(size_of(problem))
    assert value - 1e-12 * size <= found <= value + 1e-7 * size


def test_equal_projections_and_no_remainder_are_attained():
    """z = y with r_zz = 0 has the pole at the multiplier of c = 1, yet alpha = |x|^2 / gamma."""
    answer = solve_exact([2.0, 1.0], [2.0, 3.0], [2.0, 3.0], 0.0, 0.0, 0.0, 0, 5.0)
    assert answer.status == "several"
    assert answer.value == 0
    assert abs(answer.alpha - 2) < mpf("1e-45")
    assert mp.isinf(answer.alpha_max)


def test_no_column_leaves_the_two_ends():
    """Without columns or null space only c = 0 and c = 1 are feasible; a tie goes to c = 0."""
    assert solve_exact([], [], [], 1.0, 0.25, 1.0, 0, 3.0).alpha == 0
    assert solve_exact([], [], [], 1.0, 0.75, 1.0, 0, 3.0).status == "unattained"
    tied = solve_exact([], [], [], 1.0, 0.5, 1.0, 0, 3.0)
    assert tied.status == "several"
    assert tied.alpha == 0
    assert mp.isinf(tied.alpha_max)


def test_more_digits_do_not_change_the_answer():
    for problem in SAMPLE:
        first, second = (solve_exact(*problem.data, dps=dps) for dps in (50, 120))
        assert first.status == second.status
        for ours, theirs in ((first.alpha, second.alpha), (first.value, second.value)):
            scale = abs(theirs) if ours is first.alpha else size_of(problem)
            assert ours == theirs or abs(ours - theirs) <= mpf("1e-48") * scale
