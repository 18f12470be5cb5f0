"""The block Krylov reduction: one space for every strength, population and ridge."""

from __future__ import annotations

import gc
import itertools
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest
import scipy.sparse as sp
from mpmath import mp, mpf
from sklearn.datasets import make_regression
from sklearn.preprocessing import minmax_scale

from spgls import Population, Status, solve, solve_path
from spgls.matrix import DenseMatrix
from spgls.population import phi, solve_population
from spgls.reduction import KrylovSpace, reduce_krylov, reduce_spectral
from spgls.reduction.data import GameData
from spgls.solvers import GLTR, Controls, Krylov
from spgls.solvers.iterative import images
from spgls.solvers.iterative.images import MeasuredSpace
from spgls.solvers.iterative.iterate import sphere_problem
from spgls.solvers.iterative.lanczos import lanczos
from spgls.solvers.krylov.plane import on_the_plane
from spgls.solvers.krylov.projected import project, restart_from
from spgls.solvers.krylov.truncation import Truncation
from spgls.sphere import solve_sphere

from .builders import linear_game
from .catalogue import CATALOGUE, problem
from .measures import peak_bytes

TOL = 1e-9
#: Krylov solvers that must stand on their own.
ALONE = Krylov()


game = partial(linear_game, noise=0.5)


def paper_data(m, n):
    X, y = make_regression(m, n, noise=0.1, random_state=0)
    return minmax_scale(X), y, np.maximum(y, np.quantile(y, 0.25))


def grown(data, steps, limit=1000, starts=None):
    targets, _ = data.projected_targets
    p = data.projected.cross(targets) if starts is None else starts
    space = KrylovSpace(data.projected.gram, p, limit)
    for _ in range(steps):
        if space.width:
            space.extend()
    return space


def basis(space):
    return space.combine(np.eye(space.count))


# The space


@pytest.mark.parametrize("seeded", [None, 0.0, 0.3], ids=["plain", "inverse", "nearly inverse"])
@pytest.mark.parametrize("limit", [100, 14], ids=["grown", "restarted"])
def test_recurrence_residuals_and_starts_are_true(limit, seeded):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(60, 40)) * np.geomspace(1.0, 1e-2, 40)
    G, C = A.T @ A, rng.normal(size=(40, 2))
    space = KrylovSpace(lambda V: G @ V, C, limit)
    if seeded is not None:
        near = np.linalg.inv(G + seeded * np.diag(rng.random(40)))
        space.seed(lambda V: near @ V, 4)
        assert (space.count, space.steps, space.restarts) == (10, 3, 1)
    for _ in range(60):
        shifted = space.projected + 0.1 * np.eye(space.count)
        restart_from(space, [np.linalg.solve(shifted, space.starts[:, 0])])
        if not space.width:
            break
        space.extend()
        Q, h = basis(space), rng.normal(size=space.count)
        scale = np.linalg.norm(G, 2)
        assert space.count <= limit
        np.testing.assert_allclose(Q.T @ Q, np.eye(space.count), atol=1e-13)
        np.testing.assert_allclose(space.projected, Q.T @ G @ Q, atol=1e-13 * scale)
        np.testing.assert_allclose(Q @ space.starts, C, atol=1e-12)
        np.testing.assert_allclose(space.product(h), G @ (Q @ h), atol=1e-12 * scale)
        outside = G @ (Q @ h) - Q @ (Q.T @ (G @ (Q @ h)))
        assert space.residual(h) == pytest.approx(np.linalg.norm(outside), abs=1e-12 * scale)
        factor = space.outside_factor(np.eye(space.count))
        assert np.linalg.norm(factor @ h) == pytest.approx(space.residual(h), abs=1e-12 * scale)
    assert (space.restarts > 0) == (limit < 40 or seeded is not None)


def test_seeds_hold_what_many_products_would_lead_to():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(300, 200)) * np.geomspace(1.0, 1e-3, 200)
    G, C = A.T @ A, rng.normal(size=(200, 2))
    space = KrylovSpace(lambda V: G @ V, C, 100)
    space.seed(lambda V: np.linalg.solve(G, V), 4)
    h = np.linalg.solve(space.projected, space.starts)
    np.testing.assert_allclose(space.combine(h), np.linalg.solve(G, C), rtol=1e-6, atol=1e-6)


def test_a_space_ends_with_the_last_who_knows_it():
    """Its columns, and the data that its products come from, do not wait to be collected."""
    X, y, z = game(60, 20)
    solve(X, y, z, 1.0, solver="krylov")
    gc.collect()
    gc.disable()
    left = []
    try:
        # Threads of earlier tests may leave something behind meanwhile, but not each time.
        for _ in range(5):
            solve(X, y, z, 1.0, solver="krylov")
            left.append(gc.collect())
    finally:
        gc.enable()
    assert min(left) == 0


def test_restarted_space_still_solves():
    """The residual of a shifted system falls through all restarts, never back to the start."""
    X, y, z = game(300, 120, spread=20.0)
    data = GameData.from_user(X, y, z)
    space = grown(data, 1, limit=24)
    residuals = []
    for _ in range(160):
        h = np.linalg.solve(space.projected + 0.05 * np.eye(space.count), space.starts[:, 0])
        residuals.append(space.residual(h))
        restart_from(space, [h])
        space.extend()
    assert space.restarts > 5
    assert residuals[-1] < 1e-5 * residuals[0]


@pytest.mark.parametrize("kind", ["same", "no goal part", "no label part", "nothing", "parallel"])
def test_deflation_of_the_start(kind):
    X, y, _ = game(40, 12)
    q, _ = np.linalg.qr(X)
    away = y - q @ (q.T @ y)
    z = {"same": y, "no goal part": away, "no label part": y, "nothing": 2.0 * away}.get(kind)
    if kind == "parallel":
        z = 3.0 * y + away
    if kind in ("no label part", "nothing"):
        y = away
    data = GameData.from_user(X, y, z)
    p = X.T @ np.column_stack([y, z])
    p[np.abs(p) < 1e-12] = 0.0
    space = grown(data, 40, starts=p)
    assert space.count == (0 if kind == "nothing" else 12)
    assert space.steps == (0 if kind == "nothing" else 12)
    for gamma in (0.1, 1.0, 10.0):
        expected, found = solve(X, y, z, gamma), solve(X, y, z, gamma, solver=Krylov(width=2))
        # At zero, with nothing to gain or lose, a null vector of length zero may be added.
        assert found.status is expected.status or kind == "nothing"
        # Where no predictor is best each may stop anywhere within the tolerance.
        slack = 1e-8 if expected.status is Status.UNATTAINED else TOL
        assert found.objective == pytest.approx(expected.objective, abs=slack * (y @ y))


def test_complete_space_is_the_spectral_reduction():
    X, y, z = game(50, 9)
    data = GameData.from_user(X, y, z, fit_intercept=True)
    found, exact = reduce_krylov(data, grown(data, 9)).game, reduce_spectral(data, "qr").game
    np.testing.assert_allclose(np.sort(found.sigma), np.sort(exact.sigma), rtol=1e-11)
    for name in ("yy", "yz", "zz", "r_yy", "r_yz", "r_zz", "free_gap"):
        assert getattr(found, name) == pytest.approx(getattr(exact, name), rel=1e-10)
    for gamma in (0.01, 1.0, 100.0):
        value = solve_sphere(exact, gamma).value
        assert solve_sphere(found, gamma).value == pytest.approx(value, rel=1e-11)


# Theorem B


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_the_space_contains_that_of_every_strength(fit_intercept):
    """Theorem B: gltr's iterate after k products lies in the block space after k products."""
    data = GameData.from_user(*game(200, 60, spread=30.0), fit_intercept=fit_intercept)
    space = grown(data, 8)
    Q = basis(space)
    for gamma in np.geomspace(1e-3, 1e3, 13):
        sphere = sphere_problem(data, gamma)
        iterates = lanczos(sphere, sphere.g, reorthogonalise=True)
        for k, plain in enumerate(itertools.islice(iterates, 8), 1):
            w = plain.point()[:-1]
            inside = Q[:, : 2 * k] @ (Q[:, : 2 * k].T @ w)
            assert np.linalg.norm(w - inside) <= 1e-9 * np.linalg.norm(w) + 1e-14
            block = project(data, grown(data, k)).optima(sphere, np.array([gamma]), TOL)
            assert block.objective[0] <= plain.objective + 1e-12 * sphere.yy


def test_one_space_serves_a_path_of_strengths():
    X, y, z = paper_data(600, 300)
    data = GameData.from_user(X, y, z)
    gammas = np.geomspace(1e-3, 1e3, 50)
    path = ALONE.solve_path(data, gammas, Controls())
    hardest = max(
        GLTR().solve(data, gamma, Controls()).stats.passes for gamma in (1e-3, 1e-1, 1e1, 1e3)
    )
    assert max(solution.stats.passes for solution in path) <= hardest
    for gamma, found in zip(gammas, path, strict=True):
        expected = solve(X, y, z, gamma)
        assert found.status is Status.OPTIMAL
        assert found.certificate.kind == "proved"
        assert abs(found.objective - expected.objective) <= TOL * (y @ y)
        assert found.solver == "krylov"


def test_a_path_through_the_hard_case():
    X, y, z = game(20, 50)
    data = GameData.from_user(X, y, z)
    gammas = (0.1, 1.0, 1e3)
    for gamma, found in zip(gammas, ALONE.solve_path(data, gammas, Controls()), strict=True):
        expected = solve(X, y, z, gamma)
        assert found.status is expected.status
        assert found.alpha == pytest.approx(expected.alpha, rel=1e-4)


def test_the_papers_dense_data_takes_three_passes_and_two_for_the_proof():
    X, y, z = paper_data(1000, 500)
    found = solve(X, y, z, 0.1, solver="krylov")
    assert found.status is Status.OPTIMAL
    assert found.certificate.kind == "proved"
    assert found.stats.passes <= 3 + 2


def test_width_follows_the_data(monkeypatch):
    pytest.importorskip("numba", reason="only compiled products take two columns at a time")
    # As if it did not fit in cache.
    monkeypatch.setattr("spgls.matrix.dense._CACHED", 0)
    X, y, z = paper_data(1000, 500)

    def passes(width):
        return solve(X, y, z, 10.0, solver=Krylov(width=width)).stats.passes

    assert passes("auto") == passes(1) > passes(2)
    monkeypatch.setattr(DenseMatrix, "natural_width", 2)
    assert passes("auto") == passes(2) < passes(1)
    sparse = sp.csr_array(np.where(np.random.default_rng(0).random(X.shape) < 0.02, X, 0.0))
    solutions = [solve(sparse, y, z, 10.0, solver=s) for s in ("krylov", "gltr")]
    assert solutions[0].stats.iterations == solutions[1].stats.iterations
    # Its own products are its certificate.
    assert solutions[0].stats.passes == solutions[1].stats.passes - 1
    np.testing.assert_allclose(solutions[0].coef, solutions[1].coef, rtol=1e-9, atol=1e-12)


# Residuals and bounds


@pytest.mark.parametrize("steps", [1, 3, 6])
def test_residual_of_the_recurrence_is_that_of_the_data(steps):
    data = GameData.from_user(*game(100, 40, spread=10.0), fit_intercept=True)
    projection = project(data, grown(data, steps))
    for gamma in (0.01, 1.0, 100.0):
        sphere = sphere_problem(data, gamma)
        iterate = projection.optima(sphere, np.array([gamma]), TOL).iterate(0)
        r = iterate.point()
        product = sphere.product(r)
        scale = np.linalg.norm(product) + sphere.slope
        rho = product + iterate.multiplier * r + sphere.g
        assert iterate.residual == pytest.approx(np.linalg.norm(rho), abs=1e-10 * scale)
        assert iterate.objective == pytest.approx(sphere.value(r, product), rel=1e-10)


POPULATIONS = {
    "half honest": lambda gamma: Population.mixed(gamma, honest=0.5),
    "three groups": lambda gamma: Population((gamma / 4, gamma, 8 * gamma), (0.3, 0.3, 0.4)),
}


@pytest.mark.parametrize("seed", range(6))
def test_truncation_bounds_every_norm(seed):
    """``phi >= phi_k - a |rho|^2/nu`` at any t, and the bound is exact once the space is full."""
    rng = np.random.default_rng(seed)
    X, y, _ = game(40, 20, seed=seed, spread=5.0)
    z = [np.maximum(y, 0.0), -y, rng.normal(size=40)][seed % 3]
    data = GameData.from_user(X, y, z, fit_intercept=bool(seed % 2))
    exact = reduce_spectral(data, "qr").game
    population = list(POPULATIONS.values())[seed % 2](10.0 ** rng.uniform(-2, 2))
    merged, ridge = population.merged(), 0.1 * (seed % 2)
    gammas, shares = np.array(merged.gammas), np.array(merged.shares)
    t = np.geomspace(1e-4, 1e4, 25) * solve_population(exact, gammas, shares, ridge=ridge).t
    true = phi(exact, gammas, shares, t, ridge)
    for steps in (1, 2, 4, 7):
        reduction = reduce_krylov(data, grown(data, steps))
        truncation = Truncation(reduction.game, reduction.residual_factor(), population, ridge)
        upper = phi(reduction.game, gammas, shares, t, ridge)
        assert (upper >= true - 1e-12 * exact.yy).all()
        lower = [truncation._bound(*pair, 0.0)[0] for pair in zip(t, upper, strict=True)]
        assert (np.array(lower) <= true + 1e-12 * exact.yy).all()
        small = solve_population(reduction.game, gammas, shares, ridge=ridge)
        best = solve_population(exact, gammas, shares, ridge=ridge).value
        assert small.value - truncation.anywhere(small, 0.0) <= best + 1e-12 * exact.yy
    full = reduce_krylov(data, grown(data, 20))
    assert not Truncation(full.game, full.residual_factor(), population, ridge).factor.any()


@pytest.mark.parametrize("seed", range(12))
def test_bounds_of_unfinished_populations_are_true(seed):
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(20, 100)), int(rng.integers(10, 50))
    X, y, z = game(m, n, seed=seed, spread=10.0 ** rng.uniform(0, 2))
    population = list(POPULATIONS.values())[seed % 2](10.0 ** rng.uniform(-3, 3))
    options = {"fit_intercept": bool(seed % 3), "ridge": [0.0, 1.0][seed % 4 == 0]}
    expected = solve(X, y, z, population, **options)
    for limit in (1, 2, 4, 8, None):
        found = solve(X, y, z, population, solver=ALONE, max_iter=limit, **options)
        slack = 1e-12 * (y @ y)
        assert found.certificate.lower_bound <= expected.objective + slack
        assert found.objective >= expected.objective - slack
        if limit is not None and not found.status.ok:
            assert found.status is Status.ITERATION_LIMIT
            assert found.stats.iterations == limit
        if found.status.ok:
            assert found.objective - expected.objective <= TOL * (y @ y)


# Equal to the exact solver


@cache
def solution(name, kind, solver="auto"):
    given = problem(name)
    gamma = given.gamma if kind == "one strength" else POPULATIONS[kind](given.gamma)
    return solve(given.X, given.y, given.z, gamma, **given.options, solver=solver)


@pytest.mark.parametrize("solver", [Krylov(), Krylov(width=2), Krylov(width=2, extra_random=1)])
@pytest.mark.parametrize("kind", ["one strength", *POPULATIONS])
def test_catalogue_equals_spectral(kind, solver):
    unsolved = []
    for name in CATALOGUE:
        expected, found = solution(name, kind), solution(name, kind, solver)
        size = float(problem(name).answer.label_spread)
        if found.status.ok:
            assert abs(found.objective - expected.objective) <= TOL * size, name
            assert found.certificate.relative_gap <= TOL
        elif expected.status.ok:
            unsolved.append(name)
        assert found.certificate.lower_bound <= expected.objective + 1e-12 * size, name
        assert found.solver == ("krylov" if found.history else "spectral"), name
        assert found.history or found.status is Status.LEAST_SQUARES, name
    assert len(unsolved) <= 0.05 * len(CATALOGUE), unsolved


@pytest.mark.parametrize("solver", [Krylov(), Krylov(width=2), GLTR()], ids=str)
def test_an_eigenvector_that_labels_and_goals_have_no_part_in_is_found(solver):
    """No Krylov space started at them contains it; a short run from a random vector does."""
    given = problem("hard-isolated-column")
    found = solve(given.X, given.y, given.z, given.gamma, **given.options, solver=solver)
    assert found.status is Status.SEVERAL_OPTIMA
    assert found.solver == solver.capabilities.name
    assert found.history
    assert found.alpha == pytest.approx(float(given.answer.smallest_alpha), rel=1e-4)


def test_a_multiplier_close_to_its_pole():
    """It costs the tridiagonal recurrence half of its digits, and neither method its proof."""
    given = problem("nearly-hard-isolated-column")
    arguments = (given.X, given.y, given.z, given.gamma)
    value = float(given.answer.value)
    for width in (1, 2):
        found = solve(*arguments, **given.options, solver=Krylov(width=width))
        assert found.status is Status.OPTIMAL
        assert found.certificate.kind == "proved"
        assert found.solver == "krylov"
        assert found.objective == pytest.approx(value, rel=1e-12)
        assert found.certificate.relative_gap < 1e-8


def test_columns_of_very_different_scales_do_not_cost_the_proof():
    given = problem("column-scales")
    arguments = (given.X, given.y, given.z, Population.mixed(given.gamma, honest=0.5))
    found = solve(*arguments, **given.options, solver="krylov")
    assert found.status is Status.OPTIMAL
    assert found.solver == "krylov"
    assert found.certificate.kind == "proved"
    best = solve(*arguments, **given.options, solver="spectral")
    assert best.status is Status.OPTIMAL
    excess = found.objective - best.objective
    assert -1e-12 * best.objective <= excess <= found.certificate.gap


@pytest.mark.parametrize("seed", range(20))
def test_optima_far_from_the_first_that_a_space_shows(seed):
    """The space grows until nothing better can exist, not until one minimum has settled.

    Some people move for next to nothing, others hardly: the loss has minima at norms that are far
    apart, and a small space may hold one of them only.
    """
    rng = np.random.default_rng(seed)
    X = rng.integers(-3, 4, (60, 30)).astype(np.float64)
    X[:, 0] *= 10.0
    y, z = rng.integers(-3, 4, (2, 60)).astype(np.float64)
    people = Population([np.inf, 1e-6, 100.0], [0.25, 0.25, 0.5])
    found, exact = (solve(X, y, z, people, solver=name) for name in ("krylov", "spectral"))
    assert found.status.ok
    assert found.objective == pytest.approx(exact.objective, rel=1e-8)


def test_all_honest_is_least_squares_or_ridge():
    X, y, z = game(80, 30)
    honest = Population((np.inf,), (1.0,))
    for ridge in (0.0, 3.0):
        found = solve(X, y, z, honest, ridge=ridge, solver=ALONE)
        expected = np.linalg.solve(X.T @ X + ridge * np.eye(30), X.T @ y)
        assert found.status is Status.OPTIMAL
        np.testing.assert_allclose(found.coef, expected, atol=1e-4)


# The basis limit


@pytest.mark.parametrize("width", [1, 2])
@pytest.mark.parametrize("gamma", [0.5, 5.0, 100.0])
def test_restarts_reach_the_same_optimum(gamma, width):
    X, y, z = game(300, 120, spread=20.0)
    expected = solve(X, y, z, gamma)
    found = solve(X, y, z, gamma, solver=Krylov(width=width, max_basis=30))
    unbounded = solve(X, y, z, gamma, solver=Krylov(width=width))
    assert found.status is unbounded.status is Status.OPTIMAL
    assert abs(found.objective - expected.objective) <= TOL * (y @ y)
    assert found.stats.passes >= unbounded.stats.passes


def test_restarts_serve_populations_and_paths():
    X, y, z = game(300, 120, spread=5.0)
    solver = Krylov(max_basis=30)
    population = Population.mixed(50.0, honest=0.5)
    expected = solve(X, y, z, population)
    found = solve(X, y, z, population, solver=solver)
    assert found.stats.iterations > 15
    assert found.status is Status.OPTIMAL
    assert abs(found.objective - expected.objective) <= TOL * (y @ y)
    gammas = (1.0, 10.0, 50.0)
    path = solver.solve_path(GameData.from_user(X, y, z), gammas, Controls())
    for gamma, solution in zip(gammas, path, strict=True):
        value = solve(X, y, z, gamma).objective
        assert abs(solution.objective - value) <= TOL * (y @ y)


@pytest.mark.parametrize("gamma", [1.0, Population.mixed(1.0)], ids=str)
def test_memory_is_bounded_by_the_basis(gamma):
    """Long columns and slow convergence: what is kept does not grow with the iterations."""
    rng = np.random.default_rng(0)
    n = 20_000
    X = sp.random_array((200, n), density=0.05, random_state=rng, format="csr")
    X = sp.csr_array(sp.diags_array(np.geomspace(1.0, 1e-2, 200)) @ X)
    y = X @ rng.normal(size=n)
    peaks = {}
    for columns in (24, 96):
        solver = Krylov(max_basis=columns, hard_case=False)
        run = partial(solve, X, y, y + rng.normal(size=200), gamma, solver=solver, max_iter=60)
        peaks[columns] = peak_bytes(run)
    # The basis, products of half of it, and what it takes to turn one into the next.
    assert peaks[24] < 6 * 24 * n * 8
    assert peaks[96] < 75e6


# The hard case


@pytest.mark.parametrize("density", [0.01, 0.05, 1.0])
def test_weak_provider_meets_every_label_with_the_smallest_pull(density):
    """The closed form of the least alpha, which a projected solution misses by orders."""
    rng = np.random.default_rng(0)
    m, n, gamma = 500, 2000, 1e4
    X = rng.normal(size=(m, n))
    if density < 1.0:
        X = sp.csr_array(np.where(rng.random((m, n)) < density, X, 0.0))
    y = rng.normal(size=m)
    z = np.maximum(y, np.quantile(y, 0.25))
    dense = X.toarray() if sp.issparse(X) else X
    w_y, w_z = np.linalg.lstsq(dense, np.column_stack([y, z]), rcond=None)[0].T
    gap = w_y - w_z
    b = gamma - 2 * w_y @ gap
    assert gamma >= 2 * (w_y @ gap + np.linalg.norm(w_y) * np.linalg.norm(gap))
    alpha = 2 * (w_y @ w_y) / (b + np.sqrt(b**2 - 4 * (gap @ gap) * (w_y @ w_y)))
    found = solve(X, y, z, gamma, solver=ALONE)
    assert found.status is Status.SEVERAL_OPTIMA
    assert found.objective < 1e-10 * (y @ y)
    assert found.alpha == pytest.approx(alpha, rel=1e-4)
    assert found.certificate.kind == "proved"
    least_squares = sp.linalg.lsmr(dense, y, atol=0, btol=1e-5, conlim=0)
    assert found.stats.iterations <= 1.3 * least_squares[2]


def test_labels_that_cannot_be_met_are_not():
    """Near the border of the hard case, on its easy side: the search is given up, not believed."""
    X, y, z = game(30, 80)
    w_y, w_z = np.linalg.lstsq(X, np.column_stack([y, z]), rcond=None)[0].T
    gap = w_y - w_z
    border = 2 * (w_y @ gap + np.linalg.norm(w_y) * np.linalg.norm(gap))
    for factor in (0.5, 0.9, 1.1, 2.0):
        expected = solve(X, y, z, factor * border)
        found = solve(X, y, z, factor * border, solver=ALONE)
        assert found.status is expected.status
        assert found.objective == pytest.approx(expected.objective, abs=TOL * (y @ y))
        assert found.alpha == pytest.approx(expected.alpha, rel=1e-4)


def test_random_columns_find_the_lowest_eigenvectors():
    """In the space they reach what labels and goals alone do not span."""
    given = problem("hard-isolated-column")
    data = GameData.from_user(given.X, given.y, given.z)
    targets, _ = data.projected_targets
    p = data.projected.cross(targets)
    lowest = np.linalg.eigvalsh(given.X.T @ given.X)[0]
    plain = grown(data, 6)
    random = np.random.default_rng(0).normal(size=(6, 1))
    more = grown(data, 6, starts=np.hstack([p, random]))
    assert plain.count == 5
    assert more.count == 6
    assert np.linalg.eigvalsh(plain.projected)[0] > 1.5 * lowest
    assert np.linalg.eigvalsh(more.projected)[0] == pytest.approx(lowest, rel=1e-10)
    population = Population.mixed(given.gamma, honest=0.3)
    expected = solve(given.X, given.y, given.z, population)
    for solver in (ALONE, replace(ALONE, extra_random=1)):
        found = solve(given.X, given.y, given.z, population, solver=solver)
        assert found.objective == pytest.approx(expected.objective, rel=1e-9)


# Controls


@pytest.mark.parametrize("gamma", [100.0, Population.mixed(100.0)], ids=str)
def test_limits_callbacks_and_history(gamma):
    X, y, z = game(200, 80, spread=10.0)
    steps = []
    found = solve(X, y, z, gamma, solver="krylov", callback=steps.append)
    assert found.status is Status.OPTIMAL
    assert [step.passes for step in found.history] == sorted(s.passes for s in found.history)
    assert steps == list(found.history[: len(steps)])
    stopped = solve(X, y, z, gamma, solver="krylov", callback=lambda step: True)
    assert stopped.status is Status.STOPPED
    limited = solve(X, y, z, gamma, solver="krylov", max_iter=2)
    assert limited.status is Status.ITERATION_LIMIT
    assert limited.certificate.lower_bound <= found.objective


@pytest.mark.parametrize(
    "arguments",
    [
        {"max_basis": 0},
        {"max_iter": 0},
        {"extra_random": -1},
        {"width": 3},
        {"width": True},
    ],
    ids=str,
)
def test_constants_are_checked(arguments):
    with pytest.raises((ValueError, TypeError), match=next(iter(arguments))):
        Krylov(**arguments)


def test_nothing_to_change():
    X, y, z = game(30, 4)
    cost = np.full(4, np.inf)
    for gamma in (1.0, Population.mixed(1.0)):
        found = solve(X, y, z, gamma, feature_cost=cost, solver="krylov")
        assert found.status is Status.LEAST_SQUARES
        assert found.solver == "spectral"
    assert len(solve_path(X, y, z, (1.0, 2.0), feature_cost=cost, solver="krylov")) == 2


@pytest.mark.parametrize(
    "noise", [[-16, -400, 4, -200, 11, -600], [17, -11000, -8, 14000, -4, -10000]]
)
def test_immutable_columns_that_are_nearly_constant_are_no_intercept(noise):
    """Means are taken off beside a constant only: large coefficients show what is left of them."""
    X = 1.0 + 2.0**-52 * np.array(noise, dtype=np.float64).reshape(3, 2)
    y = np.array([4.0, 5.0, 5.5])
    people = Population([np.inf, 0.25], [0.25, 0.75])
    found = solve(X, y, y.copy(), people, feature_cost=[np.inf, 1.0], solver="krylov")
    with mp.workdps(60):
        w, q = [mpf(float(v)) for v in found.coef], mpf(float(found.coef[1])) ** 2
        loss = mpf(0)
        for row, label in zip(X.tolist(), y.tolist(), strict=True):
            left = mpf(row[0]) * w[0] + mpf(row[1]) * w[1] - mpf(label)
            loss += left**2 * (mpf(0.25) + mpf(0.75) / (1 + q / mpf(0.25)) ** 2)
    assert found.certificate.lower_bound <= loss


# The plane of the first column and the last coordinate


class OneRead(DenseMatrix):
    """Data whose products cost one read, as on a device; they are counted."""

    fused, narrow = True, False

    def __init__(self, values):
        super().__init__(values)
        self.reads = 0

    def gram(self, v, shift=None, middle=None):
        self.reads += 1
        return super().gram(v, shift, middle)


def plane_of(X, y, z, gamma):
    """The problem, and the optimum on its plane for the largest gap that there is one for."""
    problem = sphere_problem(GameData.from_user(OneRead(X), y, z), gamma)
    for aim in np.geomspace(1e6, 1e-6, 60) * float(y @ y):
        space = MeasuredSpace(problem.product, problem.g[:, None], 10, bordered=True)
        found = on_the_plane(problem, space, aim)
        if found is not None:
            return problem, found
    return problem, None


@pytest.mark.parametrize("seed", range(12))
def test_the_optimum_on_the_plane_is_one(seed):
    rng = np.random.default_rng(seed)
    X, y, z = game(60, 20, rng)
    problem, found = plane_of(X, y, z, 10.0 ** rng.uniform(-3, 1))
    assert found is not None
    r = found.point()
    product, H = problem.product(r.copy()), problem.dense()
    size = np.abs(H).max() + np.abs(problem.g).max()
    assert abs(np.linalg.norm(r) - 1.0) <= 1e-12
    assert abs(problem.value(r, product) - found.objective) <= 1e-10 * (size + problem.p)
    rho = product + found.multiplier * r + problem.g
    assert np.linalg.norm(rho) <= found.residual + 1e-13 * size
    assert found.residual <= np.linalg.norm(rho) + 1e-6 * size
    # Nothing on the plane is left of the residual, and the last coordinate's product is right.
    plane = np.stack([problem.g, np.eye(len(r))[-1]], axis=1)
    assert np.abs(np.linalg.qr(plane)[0].T @ rho).max() <= 1e-9 * size
    span = found.span()
    assert np.abs(span.product()[:, 0] - H @ r).max() <= 1e-11 * size
    assert np.abs(span.sizes[1] - np.linalg.norm(problem.z) / 2.0) <= 1e-12 * span.sizes[1]


def test_a_loose_tolerance_takes_one_product_and_a_tight_one_no_more_than_before():
    X, y, z = paper_data(600, 300)
    best = solve(X, y, z, 0.1, solver="spectral")
    reads = {}
    for tol in (1e-4, 1e-9):
        data = OneRead(X)
        found = solve(data, y, z, 0.1, tol=tol, solver=Krylov(width=1))
        assert found.status is Status.OPTIMAL
        assert found.certificate.kind == "proved"
        assert found.certificate.relative_gap <= tol
        assert found.certificate.lower_bound <= best.objective * (1.0 + 1e-12)
        assert found.objective >= best.certificate.lower_bound
        reads[tol] = data.reads, found.stats.iterations
    assert reads[1e-4] == (1, 1)
    # The product that the plane took is the first of the space.
    assert reads[1e-9] == (2, 2)


@pytest.mark.parametrize("seed", range(8))
def test_bounds_of_the_plane_hold(seed):
    """Random games at loose tolerances: nothing that spectral finds is below them."""
    rng = np.random.default_rng(100 + seed)
    for _ in range(10):
        m, n = (int(size) for size in rng.integers(2, 30, 2))
        X = rng.normal(size=(m, n)) * 10.0 ** rng.uniform(-2, 2, n) + rng.choice([0.0, 5.0])
        y = X @ rng.normal(size=n) + rng.normal(size=m)
        z = y + rng.normal(size=m) * 10.0 ** rng.uniform(-2, 2)
        gamma, tol = 10.0 ** rng.uniform(-4, 4), 10.0 ** rng.uniform(-6, -1)
        found = solve(OneRead(X), y, z, gamma, tol=tol, solver=Krylov(width=1))
        best = solve(X, y, z, gamma, solver="spectral")
        slack = 1e-12 * float(y @ y)
        assert found.certificate.lower_bound <= best.objective + slack
        assert found.objective >= best.certificate.lower_bound - slack
        if found.status.ok:
            assert found.objective - best.objective <= tol * float(y @ y) + slack


def test_goals_that_are_unknown_take_no_plane():
    """Where ``A'z`` would take a read of its own, none is spent on it."""
    X, y, z = game(60, 20)
    data = GameData.from_user(X, y, z)
    problem = sphere_problem(data, 0.5)
    space = MeasuredSpace(problem.product, problem.g[:, None], 10, bordered=True)
    if problem.targets.knows_goals:
        pytest.skip("this data multiplies goals too")
    assert on_the_plane(problem, space, np.inf) is None
    assert space.steps == 0
    assert not problem.targets.knows_goals


def test_products_that_are_too_large_to_keep_take_no_plane(monkeypatch):
    monkeypatch.setattr(images, "_BYTES", 100)
    X, y, z = paper_data(60, 30)
    found = solve(OneRead(X), y, z, 0.1, tol=1e-3, solver=Krylov(width=1))
    assert found.status is Status.OPTIMAL
    assert found.certificate.relative_gap <= 1e-3


@pytest.mark.parametrize(
    ("X", "y", "z", "gamma", "tol"),
    [
        # Numbers whose squares are none: on the plane, in the length of g, in a strength's unit.
        (
            1e55 * np.array([[-3, 2], [0, 3], [3, -1]]),
            [0, 0, -1e50],
            [-3e51, 1e51, -3e51],
            1e92,
            0.3,
        ),
        (
            1e-8 * np.array([[1, 2], [3, 4], [5, 6]]),
            [1e55, 2e55, 4e55],
            [2e55, 2e55, 5e55],
            1e245,
            1e-9,
        ),
    ],
)
@pytest.mark.parametrize("kind", [OneRead, np.asarray])
def test_numbers_out_of_range_end_no_krylov_method(X, y, z, gamma, tol, kind):
    found = solve(kind(X), np.array(y), np.array(z), gamma, tol=tol, solver=Krylov(width=1))
    assert np.isfinite(found.coef).all()
    assert not found.status.ok or found.certificate.relative_gap <= tol


@pytest.mark.parametrize("solver", ["spectral", "krylov"])
def test_strengths_whose_unit_has_no_square_end_in_a_status(solver):
    rng = np.random.default_rng(0)
    X, y = 6e7 * rng.normal(size=(6, 2)), 1e-150 * rng.normal(size=6)
    found = solve(X, y, np.full(6, 1e-50), 1e-258, fit_intercept=True, solver=solver)
    assert np.isfinite(found.coef).all()
    assert not found.status.ok or found.certificate.relative_gap <= TOL
