"""Algorithm 1: its geometry by Taylor slopes, its steps, and how honestly it ends."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from spgls import Solution, Status, certify, solve
from spgls.reduction.data import GameData
from spgls.solvers import GLTR, RTRNewton
from spgls.solvers.iterative.iterate import sphere_problem
from spgls.solvers.iterative.lowest import lowest_pair
from spgls.solvers.published.rtr_newton import PAPER_GRADIENT_TOL
from spgls.solvers.published.tangent import (
    Place,
    retraction,
    riemannian_gradient,
    riemannian_hessian,
    truncated_cg,
)
from spgls.sphere import to_sphere
from spgls.sphere.operator import SphereProblem

from .builders import KINDS, linear_game, negative_game, weak_game

SEEDS = range(5)
LENGTHS = 2.0 ** -np.arange(5, 11)


def game(seed: int, m: int = 40, n: int = 8) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    rng = np.random.default_rng(seed)
    X, y, _ = linear_game(m, n, rng, noise=0.5)
    z = y + rng.normal(size=m) + rng.uniform(-1.0, 2.0)
    return X, y, z, float(10.0 ** rng.uniform(-1.0, 1.0))


def sphere(seed: int) -> tuple[SphereProblem, np.ndarray, np.ndarray, np.ndarray]:
    """A problem, a point and two unit tangent vectors."""
    X, y, z, gamma = game(seed)
    problem = sphere_problem(GameData.from_user(X, y, z), gamma)
    rng = np.random.default_rng(seed)
    r = unit(rng.normal(size=problem.size))
    u, v = (unit(t - (r @ t) * r) for t in rng.normal(size=(2, problem.size)))
    return problem, r, u, v


def unit(v: np.ndarray) -> np.ndarray:
    return v / np.linalg.norm(v)


def value(problem: SphereProblem, r: np.ndarray) -> float:
    return problem.value(r, problem.product(r))


def slope_of(errors: list[float]) -> float:
    return float(np.polyfit(np.log(LENGTHS), np.log(np.abs(errors)), 1)[0])


# Geometry


@pytest.mark.parametrize("seed", SEEDS)
def test_gradient_is_first_order(seed):
    problem, r, _, v = sphere(seed)
    gradient = riemannian_gradient(problem, r, problem.product(r))
    errors = [
        value(problem, retraction(r, t * v)) - value(problem, r) - t * (gradient @ v)
        for t in LENGTHS
    ]
    assert slope_of(errors) > 1.8


@pytest.mark.parametrize("seed", SEEDS)
def test_hessian_is_second_order_along_the_retraction(seed):
    problem, r, _, v = sphere(seed)
    product = problem.product(r)
    gradient = riemannian_gradient(problem, r, product)
    curvature = v @ riemannian_hessian(problem, r, product + problem.g, v)
    model = [t * (gradient @ v) + t**2 / 2 * curvature for t in LENGTHS]
    errors = [
        value(problem, retraction(r, t * v)) - value(problem, r) - m
        for t, m in zip(LENGTHS, model, strict=True)
    ]
    assert slope_of(errors) > 2.8


@pytest.mark.parametrize("seed", SEEDS)
def test_retraction(seed):
    _, r, _, v = sphere(seed)
    assert np.linalg.norm(retraction(r, 0.0 * v) - r) <= 4e-16
    assert np.linalg.norm(retraction(r, 3.0 * v)) == pytest.approx(1.0, abs=1e-15)
    t = 1e-6
    derivative = (retraction(r, t * v) - retraction(r, -t * v)) / (2 * t)
    np.testing.assert_allclose(derivative, v, atol=1e-9)
    errors = [
        float(np.linalg.norm(retraction(r, t * v) - np.cos(t) * r - np.sin(t) * v)) for t in LENGTHS
    ]
    assert slope_of(errors) > 2.9


@pytest.mark.parametrize("seed", SEEDS)
def test_gradient_and_hessian_are_tangent_and_the_hessian_symmetric(seed):
    problem, r, u, v = sphere(seed)
    product = problem.product(r)
    gradient = riemannian_gradient(problem, r, product)
    hess_u, hess_v = (riemannian_hessian(problem, r, product + problem.g, t) for t in (u, v))
    unit_of_rounding = 1e-14 * np.linalg.norm(problem.dense())
    for image in (gradient, hess_u, hess_v):
        assert abs(r @ image) <= unit_of_rounding
    assert abs(u @ hess_v - v @ hess_u) <= unit_of_rounding


# Steps


@pytest.mark.parametrize("seed", SEEDS)
def test_a_step_needs_no_product_and_knows_its_change(seed):
    problem, r, _, v = sphere(seed)
    here = Place.at(problem, r, problem.product(r))
    for length in (1.0, 1e-2):
        s = length * v
        image = riemannian_hessian(problem, r, here.slope, s)
        passes = problem.passes
        there, change = here.moved(problem, s, image)
        assert problem.passes == passes
        np.testing.assert_allclose(there.r, retraction(r, s), atol=1e-15)
        np.testing.assert_allclose(there.product, problem.product(there.r), rtol=1e-11, atol=1e-11)
        expected = value(problem, there.r) - value(problem, r)
        assert change == pytest.approx(expected, rel=1e-9, abs=1e-12 * problem.p)


def test_the_change_of_a_tiny_step_keeps_its_digits():
    problem, r, _, v = sphere(0)
    here = Place.at(problem, r, problem.product(r))
    s = 1e-12 * v
    _, change = here.moved(problem, s, riemannian_hessian(problem, r, here.slope, s))
    assert change == pytest.approx(2 * here.rho @ s, rel=1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_truncated_cg_stays_within_the_radius_and_beats_the_cauchy_point(seed):
    problem, r, _, _ = sphere(seed)
    here = Place.at(problem, r, problem.product(r))
    gradient = 2 * here.rho
    bent = riemannian_hessian(problem, r, here.slope, gradient)
    for radius in (1e-3, 0.1, 1.0):
        s, image = truncated_cg(problem, here, radius, 0.0, 100)
        assert np.linalg.norm(s) <= radius * (1 + 1e-12)
        np.testing.assert_allclose(
            image, riemannian_hessian(problem, r, here.slope, s), atol=1e-10 * here.scale
        )
        length = radius / np.linalg.norm(gradient)
        if gradient @ bent > 0.0:
            length = min(length, (gradient @ gradient) / (gradient @ bent))
        cauchy = -length * (gradient @ gradient) + length**2 / 2 * (gradient @ bent)
        assert gradient @ s + s @ image / 2 <= cauchy * (1 - 1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_the_objective_never_rises(seed):
    solution = solve(*game(seed), solver="rtr-newton")
    values = np.array([step.objective for step in solution.history])
    assert (np.diff(values) <= 1e-13 * values[0]).all()


@pytest.mark.parametrize("seed", range(4))
def test_convergence_is_quadratic(seed):
    """Theorem 2: near the optimum the distance is squared by every iteration."""
    X, y, z, gamma = game(seed)
    best = to_sphere(solve(X, y, z, gamma, tol=1e-13).coef, gamma).as_vector()
    solver = RTRNewton(kappa=1e-10, gradient_tol=0.0)
    distances = []
    for k in range(1, 15):
        solution = solve(X, y, z, gamma, solver=solver, tol=1e-25, max_iter=k)
        point = to_sphere(solution.coef, gamma).as_vector()
        distances.append(float(np.linalg.norm(point - best)))
        if distances[-1] <= 1e-11:
            break
    near = [(a, b) for a, b in pairwise(distances) if 1e-6 < a < 0.1]
    assert near
    for before, after in near:
        assert after <= 10.0 * before**2 + 1e-12
    assert distances[-1] <= 1e-11


def test_products_are_one_per_inner_iteration(monkeypatch):
    X, y, z, gamma = game(0)
    counted = []

    def counting(problem, here, *rest):
        before = problem.passes
        out = truncated_cg(problem, here, *rest)
        counted.append(problem.passes - before)
        return out

    monkeypatch.setattr("spgls.solvers.published.rtr_newton.truncated_cg", counting)
    solution = solve(X, y, z, gamma, solver="rtr-newton")
    # g, the start and, where rounding is near, one fresh product; no others.
    assert solution.history[-1].passes <= sum(counted) + 3


# Agreement


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(6))
def test_agrees_with_spectral(seed, kind):
    X, y, z, gamma = game(seed, *((40, 8), (12, 30), (20, 20))[seed % 3])
    rng = np.random.default_rng(100 + seed)
    X = KINDS[kind](X * (rng.random(X.shape) < 0.5))
    options: dict[str, Any] = {"fit_intercept": seed % 2 == 0}
    if seed in (1, 4, 5):
        options["feature_cost"] = rng.uniform(0.2, 5.0, X.shape[1])
        options["feature_cost"][0] = np.inf
    if seed in (2, 3, 5):
        options["sample_weight"] = rng.uniform(0.0, 2.0, X.shape[0])
    reference = solve(X, y, z, gamma, **options)
    solution = solve(X, y, z, gamma, **options, solver="rtr-newton")
    assert solution.status.ok
    assert solution.certificate.relative_gap <= 1e-9
    unit_of_gap = reference.objective + float(y @ y)
    assert abs(solution.objective - reference.objective) <= 1e-9 * unit_of_gap
    intercept = solution.intercept if options.pop("fit_intercept") else None
    proof = certify(X, y, z, gamma, solution.coef, intercept=intercept, **options)
    assert proof.relative_gap <= 1e-8


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_units_of_the_labels_do_not_matter(factor):
    X, y, z, gamma = game(1)
    one = solve(X, y, z, gamma, solver="rtr-newton")
    other = solve(X, factor * y, factor * z, factor**2 * gamma, solver="rtr-newton")
    assert other.stats.passes == one.stats.passes
    np.testing.assert_allclose(other.coef, factor * one.coef, rtol=1e-6)


def test_negative_multiplier_is_judged_by_the_smallest_eigenvalue():
    X, y, z, gamma = *negative_game(40, 6), 64.0
    solution = solve(X, y, z, gamma, solver="rtr-newton")
    assert solution.multiplier < 0.0
    assert solution.status is Status.OPTIMAL
    # Few columns are squared for the proof.
    assert solution.certificate.kind == "proved"
    assert solution.objective == pytest.approx(solve(X, y, z, gamma).objective, rel=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_hard_case(seed):
    X, y, z = weak_game(8, 20, seed)
    reference = solve(X, y, z, 256.0)
    solution = solve(X, y, z, 256.0, solver="rtr-newton")
    assert reference.status is solution.status is Status.SEVERAL_OPTIMA
    assert solution.alpha == pytest.approx(reference.alpha, rel=1e-6)


def test_smallest_eigenvalue():
    problem, _, _, _ = sphere(0)
    eigenvalues, vectors = np.linalg.eigh(problem.dense())
    pair = lowest_pair(problem, np.random.default_rng(0), -eigenvalues[0], 100)
    assert pair.value == pytest.approx(eigenvalues[0], abs=1e-12 * eigenvalues[-1])
    assert abs(pair.vector @ vectors[:, 0]) == pytest.approx(1.0, abs=1e-9)


def test_an_unfinished_eigenvalue_is_not_relied_on():
    X, y, z, gamma = *negative_game(40, 6), 64.0
    data = GameData.from_user(X, y, z)
    problem = sphere_problem(data, gamma)
    for limit in (1, 2, 3):
        pair = lowest_pair(problem, np.random.default_rng(0), 0.0, limit)
        assert pair.value - pair.error <= np.linalg.eigvalsh(problem.dense())[0]
    solution = solve(X, y, z, gamma, solver=RTRNewton(lowest_products=1, escapes=0))
    assert solution.status is Status.STATIONARY


# Endings


def two_valleys(seed: int) -> tuple[tuple[np.ndarray, np.ndarray, np.ndarray, float], np.ndarray]:
    """A game whose lowest singular direction is one column, and the optimum's mirror image."""
    rng = np.random.default_rng(seed)
    X = np.zeros((32, 6))
    X[:28, :5] = rng.normal(size=(28, 5))
    X[28:, 5] = 0.25
    y = np.append(rng.normal(size=28), np.full(4, 0.02))
    z = np.append(y[:28] + rng.normal(size=28), np.zeros(4))
    mirrored = to_sphere(solve(X, y, z, 8.0).coef, 8.0).as_vector()
    mirrored[5] *= -1.0
    return (X, y, z, 8.0), mirrored


@pytest.mark.parametrize("seed", SEEDS)
def test_a_local_optimum_is_stationary_and_its_gap_honest(seed):
    (X, y, z, gamma), mirrored = two_valleys(seed)
    best = solve(X, y, z, gamma)
    local = solve(X, y, z, gamma, solver=RTRNewton(start=mirrored, escapes=0))
    assert local.status is Status.STATIONARY
    assert "not proved" in local.status.advice
    assert local.objective - best.objective > 0.01
    assert local.certificate.gap >= local.objective - best.objective
    assert local.certificate.relative_gap > 1e-3
    # A local optimum indeed: stationary, and the Hessian on the tangent space is positive.
    assert local.certificate.kkt_residual <= 1e-9
    problem = sphere_problem(GameData.from_user(X, y, z), gamma)
    r = to_sphere(local.coef, gamma).as_vector()
    tangent = np.linalg.svd(r[None])[2][1:].T
    hessian = problem.dense() + local.multiplier * np.eye(len(r))
    assert np.linalg.eigvalsh(tangent.T @ hessian @ tangent)[0] > 0.0


@pytest.mark.parametrize("seed", SEEDS)
def test_escape_from_a_local_optimum(seed):
    problem, mirrored = two_valleys(seed)
    best = solve(*problem)
    solution = solve(*problem, solver=RTRNewton(start=mirrored))
    assert solution.status is Status.OPTIMAL
    assert solution.objective == pytest.approx(best.objective, rel=1e-9)


@pytest.mark.parametrize("corner", range(3))
def test_escape_from_a_saddle_with_no_slope_at_all(corner):
    """Without a linear term every eigenvector is stationary, and the lowest two are optimal."""
    X = np.array([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]])
    y, z = np.array([0.0, 0.0, 1.0]), np.array([0.0, 0.0, 2.0])
    solution = solve(X, y, z, 1.0, solver=RTRNewton(start=np.eye(3)[corner]))
    assert solution.status is Status.SEVERAL_OPTIMA
    assert solution.objective == pytest.approx(0.25)
    stuck = solve(X, y, z, 1.0, solver=RTRNewton(start=np.eye(3)[1], escapes=0))
    assert stuck.status is Status.STATIONARY


@pytest.mark.parametrize("seed", SEEDS)
def test_negative_hard_case(seed):
    """The lowest direction does not touch labels and goals: two optima, mirror images."""
    (X, y, z, gamma), _ = two_valleys(seed)
    y[28:] = 0.0
    reference = solve(X, y, z, gamma)
    solution = solve(X, y, z, gamma, solver="rtr-newton")
    assert solution.multiplier < 0.0
    assert reference.status is solution.status is Status.SEVERAL_OPTIMA
    assert solution.objective == pytest.approx(reference.objective, rel=1e-9)


def test_iteration_limit():
    solution = solve(*game(0), solver="rtr-newton", max_iter=2)
    assert solution.status is Status.ITERATION_LIMIT
    assert solution.stats.iterations == 2
    assert "max_iter" in solution.status.advice
    assert solution.certificate.gap >= solution.objective - solve(*game(0)).objective


def test_callback_stops():
    seen = []
    solution = solve(
        *game(0), solver="rtr-newton", callback=lambda step: seen.append(step) or len(seen) == 3
    )
    assert solution.status is Status.STOPPED
    assert solution.history == tuple(seen)
    assert solution.status.advice


def test_numbers_that_are_not_finite(monkeypatch):
    product = SphereProblem.product

    def breaking(self, r):
        return product(self, r) * (np.nan if 6 <= self.passes <= 7 else 1.0)

    monkeypatch.setattr(SphereProblem, "product", breaking)
    solution = solve(*game(0), solver="rtr-newton")
    assert solution.status is Status.FAILED
    assert np.isfinite(solution.coef).all()
    assert solution.status.advice


def test_the_papers_stopping_rule():
    X, y, z, gamma = game(0)
    solution = solve(X, y, z, gamma, solver=RTRNewton(gradient_tol=PAPER_GRADIENT_TOL), tol=1e-20)
    first, last = solution.history[0].residual, solution.history[-1].residual
    assert last <= PAPER_GRADIENT_TOL * first
    assert solution.history[-2].residual > PAPER_GRADIENT_TOL * first


def test_starts():
    X, y, z, gamma = game(0)
    best = solve(X, y, z, gamma)
    near = to_sphere(best.coef, gamma).as_vector()
    warm = solve(X, y, z, gamma, solver=RTRNewton(start=7.0 * near))
    cold = solve(X, y, z, gamma, solver=RTRNewton(start=None))
    assert warm.status is cold.status is Status.OPTIMAL
    assert warm.stats.iterations < cold.stats.iterations
    with pytest.raises(ValueError, match="start must be"):
        solve(X, y, z, gamma, solver=RTRNewton(start="zeros"))
    with pytest.raises(ValueError, match="start must not be zero"):
        solve(X, y, z, gamma, solver=RTRNewton(start=np.zeros(9)))
    with pytest.raises(ValueError, match="start"):
        solve(X, y, z, gamma, solver=RTRNewton(start=np.ones(4)))


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("radius", 4.0),
        ("acceptance", 0.25),
        ("shrink", 1.0),
        ("growth", 1.0),
        ("kappa", 0.0),
        ("theta", -1.0),
        ("escapes", -1),
        ("max_inner", 0),
    ],
)
def test_constants_out_of_range(name, bad):
    with pytest.raises(ValueError, match=name):
        RTRNewton(**{name: bad})


def test_products_beside_gltr(record_property):
    """Reported, not judged: the Krylov method needs fewer."""
    rows: list[tuple[Solution, Solution]] = []
    for seed in range(5):
        problem = game(seed, 200, 50)
        rows.append((solve(*problem, solver=RTRNewton()), solve(*problem, solver=GLTR())))
    record_property("products", [(ours.stats.passes, gltr.stats.passes) for ours, gltr in rows])
    assert all(ours.status.ok and gltr.status.ok for ours, gltr in rows)
