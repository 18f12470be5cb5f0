"""The Krylov methods obey the theory they are named after, in memory large or small.

The bounds are those of Carmon and Duchi (Analysis of Krylov subspace solutions of regularized
nonconvex quadratic problems, 2018), who write ``f = r'Hr/2 + g'r`` over the ball ``|r| <= 1``; the
sphere's ``q`` is ``2f + p``. A multiple of the identity added to ``H`` changes nothing on the
sphere but a constant. It makes every multiplier of the Krylov method positive, where ball and
sphere have the same optimum; the multipliers rise with ``k``, so the shift ``max(0, -lambda_1)``
is enough.
"""

from __future__ import annotations

import collections
import itertools

import numpy as np
import pytest

import spgls.solvers.iterative.lanczos as lanczos_module
from spgls import Status, solve
from spgls.matrix.dense import DenseMatrix
from spgls.reduction.data import GameData
from spgls.solvers import GLTR, LTRSR
from spgls.solvers.iterative.iterate import sphere_problem
from spgls.solvers.iterative.lanczos import lanczos
from spgls.solvers.published.ltrsr import nested_lanczos
from spgls.sphere import scls_terms, solve_dense
from spgls.sphere.tridiagonal import lowest_eigenvalue, solve_tridiagonal

from .builders import KINDS
from .measures import peak_bytes


class Quadratic:
    """A sphere problem with a given spectrum, multiplier and optimum."""

    p = 0.0

    def __init__(self, spectrum, multiplier, optimum):
        self.spectrum = spectrum
        self.multiplier = multiplier
        self.g = -(spectrum + multiplier) * optimum
        self.slope = float(np.linalg.norm(self.g))
        self.size = len(spectrum)
        self.best = float(self.g @ optimum) - multiplier
        self.passes = 0.0

    @property
    def condition(self):
        shifted = self.spectrum + self.multiplier
        return shifted.max() / shifted.min()

    def product(self, r):
        self.passes += 1.0
        return self.spectrum * r


def with_condition(kappa, kind, multiplier, size=800, seed=0):
    """Spectra on [1, kappa] less the multiplier; the optimum has a part in every eigenvector."""
    spread = {
        "chebyshev": 0.5 + np.cos(np.pi * (np.arange(size) + 0.5) / size) / 2,
        "geometric": (np.geomspace(1.0, kappa, size) - 1.0) / (kappa - 1.0),
    }[kind]
    spectrum = 1.0 + (kappa - 1.0) * (spread - spread.min()) / np.ptp(spread)
    optimum = np.random.default_rng(seed).normal(size=size)
    return Quadratic(spectrum - multiplier, multiplier, optimum / np.linalg.norm(optimum))


def steps(iterates, most):
    return list(itertools.islice(iterates, most))


# The exponential law


@pytest.mark.parametrize("multiplier", [0.5, -3.0], ids=["positive", "negative"])
@pytest.mark.parametrize("kind", ["chebyshev", "geometric"])
@pytest.mark.parametrize("kappa", [1e1, 1e2, 1e3, 1e4, 1e5])
def test_error_and_residual_fall_exponentially(kappa, kind, multiplier):
    """``q_k - q* <= 36 (q(0) - q* + shift) exp(-4k/sqrt(kappa))``, and the root for the residual.

    The residual follows from ``|rho|^2 <= (lambda_max + lambda*) (q - q*)``, since
    ``q - q* = |r - r*|^2`` in the norm of ``H + lambda* I`` and ``rho`` is the tangential part of
    ``(H + lambda* I)(r - r*)``.
    """
    problem = with_condition(kappa, kind, multiplier)
    assert problem.condition == pytest.approx(kappa)
    most = min(problem.size, int(8 * np.sqrt(kappa)) + 5)
    run = steps(lanczos(problem, problem.g, reorthogonalise=True), most)
    k = np.arange(1, len(run) + 1)
    multipliers = np.array([i.multiplier for i in run])
    shift = max(0.0, -multipliers[0])
    start = -problem.best + shift
    law = np.exp(-4 * k / np.sqrt(kappa))
    error = np.array([i.objective for i in run]) - problem.best
    residual = np.array([i.residual for i in run])
    rounding = 1e-13 * (kappa + abs(problem.best))
    assert (error <= 36 * start * law + rounding).all()
    top = problem.spectrum.max() + multiplier
    assert (residual <= 6 * np.sqrt(top * start * law) + rounding).all()
    assert (residual**2 <= top * (error + rounding)).all()
    # What the shift rests on, and what makes warm starts from the left safe.
    assert (np.diff(multipliers) >= -rounding).all()
    assert (np.diff(error) <= rounding).all()
    # Neither bound is empty: at the end it says far more than the first iterate does.
    assert 36 * start * law[-1] < 0.02 * error[0]
    assert 6 * np.sqrt(top * start * law[-1]) < residual[0]


def test_the_rate_is_attained():
    """On a Chebyshev spectrum the error is the law's up to a constant: no faster law holds."""
    kappa = 1e4
    problem = with_condition(kappa, "chebyshev", 0.5, size=2000)
    run = steps(lanczos(problem, problem.g, reorthogonalise=True), 300)
    error = np.array([i.objective for i in run]) - problem.best
    slope = np.log(error[150] / error[299]) / 149
    assert 0.7 * 4 / np.sqrt(kappa) < slope < 1.5 * 4 / np.sqrt(kappa)


def test_one_long_cycle_of_ltrsr_is_gltr():
    problem = with_condition(1e3, "geometric", -2.0)
    plain = steps(lanczos(problem, problem.g, reorthogonalise=True), 60)
    nested = steps(nested_lanczos(problem, 60, 5, reorthogonalise=True), 60)
    scale = abs(problem.best)
    for a, b in zip(plain, nested, strict=True):
        assert a.objective == pytest.approx(b.objective, abs=1e-12 * scale)
        assert a.multiplier == pytest.approx(b.multiplier, abs=1e-9 * scale)
        assert a.residual == pytest.approx(b.residual, abs=1e-9 * scale)
    np.testing.assert_allclose(plain[-1].point(), nested[-1].point(), atol=1e-9)


# The hard case


def hard_game(seed, spread, m=60, n=90):
    """Labels in the range, and a provider so weak that every label is met exactly."""
    rng = np.random.default_rng(seed)
    left, _ = np.linalg.qr(rng.normal(size=(m, m)))
    right, _ = np.linalg.qr(rng.normal(size=(m, m)))
    X = np.zeros((m, n))
    X[:, :m] = left * np.linspace(1.0, spread, m) @ right.T
    y = rng.normal(size=m)
    y *= 0.3 / np.linalg.norm(y)
    return X, y, y + 0.1 * rng.normal(size=m) / np.sqrt(m)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("spread", [1.05, 2.0, 4.0])
def test_perturbed_gltr_meets_the_quadratic_law_where_plain_gltr_stalls(seed, spread):
    """The randomised bound, at ``delta = 0.01`` and with ``sigma`` the length of the perturbation.

    ``q_k - q* <= 2 (lambda_max - lambda_min)/(k - 1/2)^2 [4 + log^2(2|g| sqrt(d)/(sigma delta))/2]
    + 4 sigma``, with probability ``1 - delta``.
    """
    X, y, _ = hard_game(seed, spread)
    # With zero columns and zero goals not even rounding shows the null space to a Krylov space.
    z = np.zeros_like(y)
    gamma, tol = 20.0, 1e-3
    H, g, _ = scls_terms(X, y, z, gamma)
    sigma = tol * (y @ y)
    height = 4 + np.log(2 * (np.linalg.norm(g) + sigma) * np.sqrt(len(g)) / (sigma * 0.01)) ** 2 / 2
    width = np.ptp(np.linalg.eigvalsh(H))
    perturbed, plain = GLTR(perturbation=1.0, hard_case=False), GLTR(hard_case=False)
    for k in (2, 5, 10, 20, 50, 100, 200, 400):
        bound = 2 * width / (k - 0.5) ** 2 * height + 4 * sigma
        found = solve(X, y, z, gamma, solver=perturbed, tol=tol, max_iter=k, rng=seed)
        stalled = solve(X, y, z, gamma, solver=plain, tol=tol, max_iter=k)
        assert found.objective <= bound
    assert stalled.objective > 10 * bound
    assert found.objective <= 4 * sigma
    # Ritz values of a space without the eigenvector mislead, but no bound rests on them.
    assert stalled.certificate.lower_bound <= found.objective


@pytest.mark.parametrize("solver", [GLTR(), LTRSR(), LTRSR(inner=8, history=3)], ids=repr)
@pytest.mark.parametrize("turned", [False, True], ids=["zero columns", "turned"])
@pytest.mark.parametrize("spread", [1.05, 2.0, 10.0])
def test_search_for_the_hard_case_is_exact(spread, turned, solver):
    """Also where rounding turns the null space up by itself, with any of the many optima."""
    X, y, z = hard_game(1, spread)
    if turned:
        X = X @ np.linalg.qr(np.random.default_rng(0).normal(size=(90, 90)))[0]
    expected = solve(X, y, z, 20.0)
    found = solve(X, y, z, 20.0, solver=solver)
    assert expected.status is found.status is Status.SEVERAL_OPTIMA
    assert found.objective < 1e-9 * (y @ y)
    assert found.alpha == pytest.approx(expected.alpha, rel=1e-5)


# The small problems


@pytest.mark.parametrize("k", [1, 2, 3, 5, 10, 30, 100, 200])
def test_tridiagonal_secular_equation_against_eigenvalues(k):
    """Random T, where distant eigenvectors have no first component that rounding could see."""
    rng = np.random.default_rng(k)
    signs = set()
    for _ in range(40):
        d = rng.normal(loc=rng.choice([0.0, 3.0]), size=k) * rng.choice([1e-3, 1.0, 1e3])
        e = np.abs(rng.normal(size=k - 1)) * rng.choice([1e-3, 1.0, 10.0])
        b = 10.0 ** rng.uniform(-6, 3)
        T = np.diag(d) + np.diag(e, 1) + np.diag(e, -1)
        values = np.linalg.eigvalsh(T)
        scale = np.abs(values).max() + b
        rhs = np.zeros(k)
        rhs[0] = b
        reference = solve_dense(T, rhs)
        for start in (None, reference.multiplier, reference.multiplier - 1e-3 * scale):
            h, multiplier = solve_tridiagonal(d, e, b, start)
            assert np.linalg.norm(h) == pytest.approx(1.0, abs=1e-14)
            assert multiplier >= -values[0] - 1e-14 * k * scale
            assert np.linalg.norm(T @ h + multiplier * h + rhs) <= 3e-8 * scale
            value = h @ T @ h + 2 * b * h[0]
            best = reference.r @ T @ reference.r + 2 * b * reference.r[0]
            assert value == pytest.approx(best, abs=1e-13 * k * scale)
            assert multiplier == pytest.approx(reference.multiplier, abs=1e-13 * k * scale)
        assert lowest_eigenvalue(d, e) == pytest.approx(values[0], abs=1e-13 * k * scale)
        signs.add(np.sign(multiplier))
    assert signs >= {-1.0, 1.0}


@pytest.mark.parametrize("k", [1, 2, 7, 40])
def test_dense_sphere_problem_is_optimal_in_easy_and_hard_cases(k):
    rng = np.random.default_rng(k)
    for hard, size in itertools.product([False, True], [1e-8, 1.0, 1e4]):
        B = rng.normal(size=(k, k))
        H = (B + B.T) / 2
        values, vectors = np.linalg.eigh(H)
        g = size * rng.normal(size=k)
        if hard:
            g = vectors[:, 1:] @ ((values[1:] - values[0]) * rng.normal(size=k - 1) / (2 * k))
        r, multiplier, lowest, u = solve_dense(H, g)
        scale = np.abs(values).max() + np.linalg.norm(g)
        assert lowest == pytest.approx(values[0], abs=1e-13 * scale)
        assert np.linalg.norm(H @ u - lowest * u) <= 1e-13 * scale
        assert multiplier + values[0] >= -1e-13 * scale
        assert np.linalg.norm(r) == pytest.approx(1.0, abs=1e-14)
        assert np.linalg.norm(H @ r + multiplier * r + g) <= 1e-12 * scale
        if hard:
            assert multiplier == pytest.approx(-values[0], abs=1e-13 * scale)


def test_without_a_linear_term_the_answer_is_the_lowest_eigenvector():
    H = np.diag([3.0, -1.0, 2.0])
    r, multiplier, lowest, _ = solve_dense(H, np.zeros(3))
    np.testing.assert_allclose(np.abs(r), [0.0, 1.0, 0.0])
    assert multiplier == 1.0
    assert lowest == -1.0
    d, e = np.array([3.0, -1.0, 2.0]), np.array([0.5, 0.25])
    T = np.diag(d) + np.diag(e, 1) + np.diag(e, -1)
    h, multiplier = solve_tridiagonal(d, e, 0.0)
    assert h[0] <= 0.0
    np.testing.assert_allclose(T @ h, -multiplier * h, atol=1e-14)
    assert multiplier == pytest.approx(-np.linalg.eigvalsh(T)[0])


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("solver", ["gltr", "ltrsr"])
def test_goals_of_twice_the_labels_leave_no_linear_term(solver, intercept):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 8)), rng.normal(size=40)
    expected = solve(X, y, 2 * y, 3.0, fit_intercept=intercept)
    found = solve(X, y, 2 * y, 3.0, fit_intercept=intercept, solver=solver)
    assert found.status is Status.SEVERAL_OPTIMA
    assert found.objective == pytest.approx(expected.objective, rel=1e-9)
    assert found.alpha == pytest.approx(expected.alpha, rel=1e-5)


# Orthogonality


@pytest.fixture
def bases(monkeypatch):
    """Every basis that GLTR builds."""
    made = []

    class Recorded(lanczos_module.Basis):
        def __init__(self, *args):
            super().__init__(*args)
            made.append(self)

    monkeypatch.setattr(lanczos_module, "Basis", Recorded)
    return made


def spread_game(seed=0, m=300, n=120, lowest=1e-3):
    """Singular values over three decades and one far above: Lanczos vectors soon repeat."""
    rng = np.random.default_rng(seed)
    left, _ = np.linalg.qr(rng.normal(size=(m, n)))
    right, _ = np.linalg.qr(rng.normal(size=(n, n)))
    sigma = np.append(30.0, np.geomspace(1.0, lowest, n - 1))
    X = np.sqrt(m) * (left * sigma) @ right.T
    y = X @ rng.normal(size=n) + rng.normal(size=m)
    return X, y, y + np.abs(rng.normal(size=m))


def test_reorthogonalised_basis_is_orthogonal_and_saves_products(bases):
    # With a basis that is not orthogonal, whether rounding lets it end depends on the BLAS: on this
    # game it does with every one that we know.
    X, y, z = spread_game(seed=1)
    gamma = 1e3
    reference = solve(X, y, z, gamma)
    kept = solve(X, y, z, gamma, solver=GLTR(reorthogonalise=True))
    lost = solve(X, y, z, gamma, solver=GLTR(reorthogonalise=False))
    error = []
    for basis in bases:
        Q = basis.combine(np.eye(basis.count))
        error.append(np.abs(Q.T @ Q - np.eye(basis.count)).max())
    assert error[0] < 1e-13
    assert error[1] > 0.1
    assert lost.stats.passes > kept.stats.passes
    for found in (kept, lost):
        assert found.status is Status.OPTIMAL
        assert found.certificate.relative_gap <= 1e-9
        assert found.objective == pytest.approx(reference.objective, abs=1e-9 * (y @ y))


# The operator


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_the_operator_is_the_papers_matrix(kind, intercept):
    rng = np.random.default_rng(3)
    m, n = 40, 9
    X = rng.normal(size=(m, n)) * (rng.random((m, n)) < 0.6) + (0.5 if intercept else 0.0)
    cost = np.where(np.arange(n) == 4, np.inf, rng.uniform(0.5, 2.0, n))
    data = GameData.from_user(
        KINDS[kind](X),
        rng.normal(size=m),
        rng.normal(size=m),
        fit_intercept=intercept,
        feature_cost=cost,
        sample_weight=rng.uniform(0.0, 2.0, m),
    )
    gamma = 1.7
    problem = sphere_problem(data, gamma)
    A = data.projected.apply(np.eye(n - 1))
    H, g, p = scls_terms(A, problem.y, problem.z, gamma)
    top = np.linalg.eigvalsh(H).max()
    assert problem.size == n
    np.testing.assert_allclose(problem.g, g, atol=1e-13 * top)
    np.testing.assert_allclose(problem.dense(), H, atol=1e-13 * top)
    assert problem.p == pytest.approx(p)
    before = problem.passes
    for _ in range(10):
        u, v = rng.normal(size=(2, n))
        Hu, Hv = problem.product(u), problem.product(v)
        np.testing.assert_allclose(Hu, H @ u, atol=1e-13 * top * np.linalg.norm(u))
        size = top * np.linalg.norm(u) * np.linalg.norm(v)
        assert Hu @ v == pytest.approx(u @ Hv, abs=1e-14 * size)
        assert u @ Hu >= -1e-14 * top * (u @ u)
        assert problem.value(u, Hu) == pytest.approx(u @ H @ u + 2 * g @ u + p)
    assert problem.passes == before + 20


# Bounded memory


@pytest.mark.parametrize(
    "solver",
    [
        LTRSR(),
        LTRSR(inner=10),
        LTRSR(inner=10, history=2),
        LTRSR(inner=3, history=3),
        LTRSR(inner=1, history=2),
        LTRSR(inner=10, reorthogonalise=False),
        LTRSR(inner=200, history=200),
    ],
    ids=repr,
)
def test_small_memory_reaches_the_objective_of_gltr(solver):
    X, y, z = spread_game(lowest=0.1 if solver.inner >= 10 else 0.5)
    for gamma in (1.0, 1e3, 1e5):
        plain = solve(X, y, z, gamma, solver="gltr", tol=1e-10)
        nested = solve(X, y, z, gamma, solver=solver, tol=1e-10)
        assert nested.status is Status.OPTIMAL
        assert nested.objective == pytest.approx(plain.objective, abs=1e-9 * (y @ y))
        assert nested.stats.iterations >= plain.stats.iterations
        if solver.inner >= 10:
            # In smaller spaces a local optimum may come first, and the search starts anew.
            objective = np.array([step.objective for step in nested.history])
            rounding = 1e-13 * (y @ y + z @ z) + 1e-15 * objective[0]
            assert (np.diff(objective) <= rounding).all()
        if plain.multiplier > 0.0:
            # One product a step, and one every tenth cycle to refresh.
            products = nested.history[-1].passes - 1
            assert products <= nested.stats.iterations * (1 + 0.1 / solver.inner) + 1


def test_reported_residual_and_objective_are_those_of_the_point():
    problem = with_condition(1e3, "geometric", -2.0, size=300)
    scale = abs(problem.best)
    before = np.inf
    for count, iterate in enumerate(nested_lanczos(problem, 7, 4, reorthogonalise=True), 1):
        assert iterate.objective <= before + 1e-13 * scale
        before = iterate.objective
        r = iterate.point()
        slope = problem.spectrum * r + problem.g
        assert np.linalg.norm(r) == pytest.approx(1.0, abs=1e-12)
        true = np.linalg.norm(slope + iterate.multiplier * r)
        assert iterate.residual == pytest.approx(true, abs=1e-11 * scale)
        assert iterate.objective == pytest.approx(r @ (slope + problem.g), abs=1e-11 * scale)
        if count == 300:
            break


def test_restarts_do_not_end_at_a_local_optimum():
    """Here the Lanczos vectors of a cycle alone lead to an optimum a third above the best one."""
    X, y, z = spread_game(lowest=0.1)
    best = solve(X, y, z, 1e5)
    for inner in (10, 20, 40):
        found = solve(X, y, z, 1e5, solver=LTRSR(inner=inner, hard_case=False))
        assert found.objective == pytest.approx(best.objective, rel=1e-6)


def test_more_history_saves_products():
    """Products to a residual of 1e-8: a little history helps most, none is like starting anew."""
    needed = {}
    for history in (1, 2, 20):
        problem = with_condition(4e3, "chebyshev", 0.5, size=500)
        limit = 1e-8 * np.linalg.norm(problem.g)
        run = enumerate(nested_lanczos(problem, 10, history, reorthogonalise=True), 1)
        needed[history] = next(k for k, iterate in run if iterate.residual <= limit)
    assert needed[20] <= needed[2] < 0.5 * needed[1]


def test_memory_of_a_long_run_is_bounded():
    problem = with_condition(1e4, "geometric", 0.5, size=20_000)
    run = nested_lanczos(problem, 10, 5, reorthogonalise=True)
    peak = peak_bytes(lambda: collections.deque(itertools.islice(run, 500), maxlen=0))
    vector = 8 * problem.size
    # [V, HV], the outer space while it is being replaced, and the vectors of one step.
    assert peak <= (2 * (10 + 5) + 4 * 5 + 10) * vector


@pytest.mark.parametrize("options", [{"inner": 0}, {"history": 0}, {"inner": -3}])
def test_sizes_must_be_positive(options):
    with pytest.raises(ValueError, match="positive whole number"):
        LTRSR(**options)


@pytest.mark.parametrize("options", [{"inner": None}, {"history": 2.5}])
def test_sizes_must_be_whole(options):
    with pytest.raises(TypeError, match="positive whole number"):
        LTRSR(**options)


# How a run ends

BOTH = pytest.mark.parametrize("solver", [GLTR(), LTRSR(), LTRSR(inner=4, history=3)], ids=repr)


@BOTH
def test_iteration_limit_becomes_a_status(solver):
    X, y, z = spread_game()
    found = solve(X, y, z, 1e3, solver=solver, max_iter=6)
    assert found.status is Status.ITERATION_LIMIT
    assert found.stats.iterations == len(found.history) == 6
    assert "max_iter" in found.status.advice
    better = solve(X, y, z, 1e3)
    assert found.certificate.lower_bound <= better.objective <= found.objective


@BOTH
def test_callback_stops_at_the_last_iterate(solver):
    X, y, z = spread_game()
    seen = []
    found = solve(X, y, z, 1e3, solver=solver, callback=lambda s: seen.append(s) or len(seen) == 9)
    assert found.status is Status.STOPPED
    assert "callback" in found.status.advice
    assert tuple(seen) == found.history
    assert found.objective == pytest.approx(seen[-1].objective, rel=1e-9)


@BOTH
@pytest.mark.parametrize("sound", [0, 1, 4, 9, 13])
def test_products_that_are_not_finite_become_a_status(solver, sound, monkeypatch):
    """The last finite iterate is returned, also where a new cycle began in between."""
    X, y, z = spread_game()
    apply, calls = DenseMatrix.apply, itertools.count()

    def broken(self, *args):
        out = apply(self, *args)
        return out * np.nan if next(calls) == sound else out

    monkeypatch.setattr(DenseMatrix, "apply", broken)
    found = solve(X, y, z, 1e3, solver=solver)
    assert found.status is Status.FAILED
    assert "not finite" in found.status.advice
    assert len(found.history) == sound
    assert np.isfinite(found.coef).all()
    if sound:
        assert found.objective == pytest.approx(found.history[-1].objective, rel=1e-9)


# Every kind of data


@BOTH
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_matrix_with_intercept_costs_and_weights(kind, solver):
    rng = np.random.default_rng(7)
    m, n = 150, 25
    X = rng.normal(size=(m, n)) * (rng.random((m, n)) < 0.4)
    X = X.astype(np.float32).astype(float)
    y = 3.0 + X @ rng.normal(size=n) + rng.normal(size=m)
    game = {
        "fit_intercept": True,
        "feature_cost": np.where(np.arange(n) % 9 == 4, np.inf, rng.uniform(0.2, 5.0, n)),
        "sample_weight": rng.uniform(0.1, 2.0, m) * (rng.random(m) < 0.9),
    }
    z = y + np.abs(rng.normal(size=m))
    for gamma in (0.1, 10.0):
        expected = solve(X, y, z, gamma, **game)
        found = solve(KINDS[kind](X), y, z, gamma, solver=solver, **game)
        assert found.status is Status.OPTIMAL
        assert found.objective == pytest.approx(expected.objective, rel=1e-8)
        np.testing.assert_allclose(found.coef, expected.coef, atol=1e-3)
        assert found.solver == solver.capabilities.name
