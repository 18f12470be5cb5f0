"""What an adversarial run once found, point by point: each test fails on the code of that day."""

from __future__ import annotations

import tracemalloc
import warnings
from collections.abc import Callable
from fractions import Fraction
from math import inf

import numpy as np
import pytest
import scipy.sparse as sp

from spgls import (
    Between,
    Floor,
    GameStatistics,
    Population,
    StackelbergRegressor,
    Status,
    certify,
    solve,
    solve_path,
)
from spgls.solvers import Spectral

ENGINES = ("auto", "gram", "qr")
ITERATIVE = ("krylov", "gltr", "ltrsr", "rtr-newton", "admm")


def exact_loss(X, y, z, people, coef, intercept=0.0, cost=None):
    """A predictor's mean over the groups of their sums of squares, without rounding."""
    if not isinstance(people, Population):
        people = Population([people], [1.0])
    coef = [Fraction(float(w)) for w in coef]
    prices = [Fraction(1)] * len(coef) if cost is None else [Fraction(float(c)) for c in cost]
    norm = sum(w * w / c for w, c in zip(coef, prices, strict=True))
    total, start = Fraction(0), Fraction(float(intercept))
    rows = [
        (start + sum(Fraction(x) * w for x, w in zip(row, coef, strict=True)), Fraction(a), b)
        for row, a, b in zip(X.tolist(), y.tolist(), map(Fraction, z.tolist()), strict=True)
    ]
    for gamma, share in zip(people.gammas, people.shares, strict=True):
        s = 1 / (1 + norm / Fraction(gamma)) if gamma < inf else Fraction(1)
        errors = (s * p + (1 - s) * b - a for p, a, b in rows)
        total += Fraction(share) * sum(e * e for e in errors)
    return float(total)


# Ranks and small columns


@pytest.mark.parametrize("engine", ENGINES)
def test_a_column_below_the_rank_that_squares_resolve(engine):
    X, y, z = np.diag([1.0, 3e-8]), np.array([1.0, 2.0]), np.zeros(2)
    people = Population([inf, 1e6, 0.1], [0.4, 0.4, 0.2])
    found = solve(X, y, z, people, solver=Spectral(engine=engine))
    better = exact_loss(X, y, z, people, [1.0, 6.67e7])
    assert found.certificate.lower_bound <= better < 3.001
    assert found.status.ok == (engine != "gram")
    assert certify(X, y, z, people, [1.0, 0.0]).lower_bound <= better


def test_default_fits_of_graded_columns():
    """Scales that spread over nine decades: the best predictor may use the smallest columns."""
    for seed in (90, 103, 104, 141, 191, 263):
        rng = np.random.default_rng(seed)
        m, n = int(rng.integers(4, 12)), int(rng.integers(2, 5))
        X = rng.normal(size=(m, n)) * 10.0 ** rng.uniform(-9, 0, size=n)
        y = rng.normal(size=m)
        model = StackelbergRegressor(10.0 ** rng.uniform(-3, 6), goal=Floor(0.0))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, y)
        people = Population.mixed(model.gamma_, 0.5)
        # Least squares on all columns but the smallest ones, whole and in part.
        length = np.append(np.linalg.norm(X, axis=0), inf)
        unit = np.column_stack([X / length[:-1], np.ones(m)])
        values = []
        for count in range(n + 1):
            kept = np.argsort(-length)[: count + 1]
            rival = np.zeros(n + 1)
            rival[kept] = np.linalg.lstsq(unit[:, kept], y, rcond=None)[0]
            coef, constant = rival[:-1] / length[:-1], rival[-1]
            values += [
                exact_loss(X, y, Floor(0.0)(y), people, share * coef, share * constant)
                for share in (1.0, 0.9, 0.7, 0.5)
            ]
        assert model.certificate_.lower_bound <= min(values) + 1e-12 * (y @ y)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_rank_that_a_threshold_decides(engine):
    X = np.array([[1.0, 1.0], [0.0, 4e-16], [0.0, 0.0]])
    y, z = np.array([0.0, 1.0, 0.2]), np.array([1.0, 1.0, 0.0])
    people = Population.mixed(1, 0.5)
    found = solve(X, y, z, people, solver=Spectral(engine=engine))
    better = exact_loss(X, y, z, people, [-2.5e15, 2.5e15])
    assert better < 0.55
    assert found.certificate.lower_bound <= better
    assert not found.status.ok
    assert found.certificate.kind == "estimated"


def test_columns_equal_to_fourteen_digits():
    rng = np.random.default_rng(0)
    first = rng.normal(size=40)
    X = np.column_stack([first, first + 1e-14 * rng.normal(size=40)])
    y, z = (X[:, 1] - X[:, 0]) * 1e14, np.zeros(40)
    people = Population.mixed(1.0, 0.9)
    found = solve(X, y, z, people)
    better = exact_loss(X, y, z, people, [-1e14, 1e14])
    assert better < 0.2 * (y @ y)
    assert found.certificate.lower_bound <= better


# Iterative solvers


@pytest.mark.parametrize("solver", ITERATIVE)
@pytest.mark.parametrize("seed", [0, 54, 63, 78, 108])
def test_columns_of_very_different_scales(solver, seed):
    """Products that an iteration stores are wrong here by more than what is left to find."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 6)) * 10.0 ** rng.permutation(np.linspace(-3.5, 3.5, 6))
    y, z = rng.normal(size=(2, 40))
    gamma = 10.0 ** rng.uniform(-6, 6)
    found, best = solve(X, y, z, gamma, solver=solver), solve(X, y, z, gamma)
    assert found.certificate.lower_bound <= best.objective + 1e-12 * (y @ y)
    if found.status.ok:
        assert found.objective <= best.objective + 2e-9 * (y @ y)


@pytest.mark.parametrize("solver", ITERATIVE)
@pytest.mark.parametrize("seed", [0, 1, 2, 8])
def test_goals_far_from_the_labels(solver, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 4)) * [1.0, 0.5, 0.2, 1 / 12]
    y, gamma = rng.normal(size=30), 10.0 ** rng.uniform(-4, 10)
    found = solve(X, y, y + 1e8, gamma, solver=solver)
    best = solve(X, y, y + 1e8, gamma)
    assert found.certificate.lower_bound <= best.objective + 1e-12 * (y @ y)


@pytest.mark.parametrize("solver", ["gltr", "ltrsr"])
def test_costs_of_very_different_size(solver):
    """Where the optimum is zero, a quarter of the labels was called optimal."""
    rng = np.random.default_rng(1234)
    n, m, _ = rng.integers(2, 12), rng.integers(1, 12), rng.choice(4)
    X, cost = rng.normal(size=(m, n)), 10.0 ** rng.uniform(-8, 8, size=n)
    y, gamma = X @ rng.normal(size=n), 49841072.9
    z = y + rng.normal(size=m)
    best = solve(X, y, z, gamma, feature_cost=cost)
    assert best.objective <= 1e-20 * (y @ y)
    found = solve(X, y, z, gamma, feature_cost=cost, solver=solver)
    true = exact_loss(X, y, z, gamma, found.coef, cost=cost)
    assert found.objective == pytest.approx(true, abs=1e-9 * (y @ y))
    assert not found.status.ok or true <= 1e-9 * (y @ y)


# Paths


@pytest.mark.parametrize("seed", [1, 37, 51, 55])
@pytest.mark.parametrize("solver", ["spectral", "krylov"])
def test_bounds_of_paths(seed, solver):
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(3, 12)), int(rng.integers(1, 6))
    X = rng.normal(size=(m, n)) * 10.0 ** rng.uniform(-5, 5, size=n)
    y, z = rng.normal(size=m), rng.normal(size=m) * 10.0 ** rng.uniform(-2, 2)
    people = [Population.mixed(float(g)) for g in 10.0 ** np.sort(rng.uniform(-6, 6, size=4))]
    for who, found in zip(people, solve_path(X, y, z, people, solver=solver), strict=True):
        best = solve(X, y, z, who)
        true = exact_loss(X, y, z, who, best.coef)
        assert found.certificate.lower_bound <= true + 1e-12 * (y @ y)


def test_a_path_and_its_points_agree():
    X = np.array(
        [[-1.077217416528648, -1.077217416522298], [0.41287005854394326, 0.412870058509589]]
    )
    X = np.vstack([X, [-0.596, -0.596]])
    y, z = np.array([0.0, 1.0, 0.0]), np.array([0.0, 0.0, 1.0])
    gammas = [1.0, 1e8]
    path = solve_path(X, y, z, gammas, solver="krylov")
    for gamma, found in zip(gammas, path, strict=True):
        assert found.status.ok == solve(X, y, z, gamma, solver="krylov").status.ok


# Degenerate games and extreme numbers


@pytest.mark.parametrize("seed", [9, 214, 228])
def test_goals_orthogonal_to_the_columns(seed):
    """Recovery divided by what the columns show of the goals."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-3, 4, size=(3, 1)).astype(float)
    other = rng.normal(size=3) if seed % 2 else rng.integers(-2, 3, size=3).astype(float)
    y, z = np.full(3, -2.0), other - X @ np.linalg.lstsq(X, other, rcond=None)[0]
    for solver in ("spectral", "krylov", "auto"):
        found = solve(X, y, z, 0.017, solver=solver)
        true = exact_loss(X, y, z, 0.017, found.coef)
        assert found.status.ok
        assert found.objective == pytest.approx(true, rel=1e-12)


@pytest.mark.parametrize("gamma", [1e-200, 1e-170, 1e140, 1e200])
@pytest.mark.parametrize("size", [1e-80, 1.0])
def test_extremes_are_numbers_and_say_how_it_is(gamma, size):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(12, 3))
    y = size * (X @ rng.normal(size=3) + rng.normal(size=12))
    z = np.maximum(y, 0.0)
    if not 1e-150 <= gamma / size**2 <= 1e150:
        with pytest.raises(ValueError, match=r"^gamma .* is out of range"):
            solve(X, y, z, gamma)
        return
    for found in (solve(X, y, z, gamma), solve_path(X, y, z, [gamma, 2 * gamma])[0]):
        proof = found.certificate
        assert np.isfinite(found.coef).all()
        assert 0.0 <= proof.lower_bound <= found.objective
        assert proof.lower_bound <= (1 + 1e-12) * (y @ y)
        assert not found.status.ok or proof.relative_gap <= 1e-9


@pytest.mark.parametrize("seed", [0, 3, 13, 16])
def test_a_limit_of_zero_is_bounded_by_zero(seed):
    """Goals that are the labels and a constant: beside an intercept losses fall towards zero."""
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(3, 8)), int(rng.integers(1, 4))
    X, y = rng.normal(size=(m, n)), rng.normal(size=m) * 10.0 ** rng.uniform(-3, 3)
    gamma = 10.0 ** rng.uniform(-3, 3)
    found = solve(X, y, y + rng.normal(), gamma, fit_intercept=True)
    assert found.status is Status.UNATTAINED
    assert found.certificate.lower_bound == 0.0


# Certificates at any size


def _peak(call: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_certify_takes_no_more_than_a_solve(kind):
    rng = np.random.default_rng(0)
    if kind == "sparse":
        m, n, entries = 6000, 3000, 200_000
        at = rng.integers(0, m, entries), rng.integers(0, n, entries)
        X = sp.csr_array((rng.normal(size=entries), at), shape=(m, n))
        X.sum_duplicates()
    else:
        m, n = 1500, 800
        X = rng.normal(size=(m, n))
    y = X @ (rng.normal(size=n) * (rng.random(n) < 0.1)) + rng.normal(size=m)
    z = y + np.abs(rng.normal(size=m))
    found = solve(X, y, z, 10.0, solver="krylov")
    good, bad = (certify(X, y, z, 10.0, share * found.coef) for share in (1.0, 0.5))
    assert good.kind == bad.kind == "proved"
    assert good.relative_gap <= 1e-8
    # A bad predictor has a useful bound, the game's.
    error = X @ (0.5 * found.coef)
    alpha = 0.25 * float(found.coef @ found.coef) / 10.0
    error = (error + alpha * z) / (1 + alpha) - y
    assert bad.lower_bound == pytest.approx(found.objective, abs=2e-8 * (y @ y))
    assert bad.gap == pytest.approx(error @ error - found.objective, abs=3e-8 * (y @ y))
    allowed = 3 * _peak(lambda: solve(X, y, z, 10.0, solver="krylov"))
    assert _peak(lambda: certify(X, y, z, 10.0, found.coef)) <= allowed
    assert _peak(lambda: certify(X, y, z, 10.0, 0.5 * found.coef)) <= allowed


@pytest.mark.parametrize("people", [5.0, Population.mixed(5.0)], ids=["one strength", "half"])
def test_certify_of_dense_data_of_both_sides_large(people):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 250))
    y = X @ rng.normal(size=250) + rng.normal(size=600)
    z = y + 1.0 + rng.normal(size=600)
    best = solve(X, y, z, people, fit_intercept=True)
    proof = certify(X, y, z, people, best.coef, intercept=best.intercept)
    assert proof.relative_gap <= 1e-8
    assert proof.lower_bound <= best.objective


# Interrupts


def test_an_interrupted_refit_is_the_fit_before():
    stopped = False

    def goal(labels):
        if stopped:
            raise KeyboardInterrupt
        return np.maximum(labels, 0.0)

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 3)), rng.normal(size=30)
    model = StackelbergRegressor(1.0, goal=goal).fit(X, y)
    expected, stopped = model.predict(X), True
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:, :1], y)
    assert model.n_features_in_ == 3
    np.testing.assert_array_equal(model.predict(X), expected)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_columns_so_large_that_a_null_direction_shows(seed):
    """Large coefficients along a direction that the data does not see: their loss is measured."""
    rng = np.random.default_rng(seed)
    large = rng.normal(size=4)
    X = np.column_stack([1e20 * large, 1e-5 * rng.normal() * large, np.ones(4)])
    y, z = np.array([0.0, 1.0, 0.0, 0.0]), rng.random(4)
    people = Population.mixed(10.0 ** rng.uniform(-3, 10), 0.5)
    alone, among = solve(X, y, z, people), solve_path(X, y, z, [people, 1.0])[0]
    exact = exact_loss(X, y, z, people, among.coef)
    assert among.objective == pytest.approx(exact, rel=1e-12)
    assert among.objective == pytest.approx(alone.objective, rel=1e-12)
    assert exact <= among.certificate.lower_bound + among.certificate.gap + 1e-14


# Predictors whose squared norm is beyond double precision


@pytest.mark.parametrize(
    "people",
    [
        1.0,
        Population([1.0, 5.0], [0.5, 0.5]),
        Population.mixed(1.0, 0.5),
        Population.mixed(Between(0.5, 5), honest=0.3),
    ],
)
@pytest.mark.parametrize("size", [1e155, 1e200, 1.7e308])
@pytest.mark.parametrize("ridge", [0.0, 0.1])
@pytest.mark.parametrize("intercept", [None, 1.0])
def test_certificates_of_huge_coefficients(people, size, ridge, intercept):
    """People predict their goals, unless some are honest; a slope that is not known is infinite."""
    X, y, z = np.array([[1.0, 0.0], [0.2, 1.0], [0.5, 0.1]]), np.eye(3)[0], np.array([1.0, 1, 2])
    best = solve(X, y, z, people, ridge=ridge, fit_intercept=intercept is not None)
    proofs = [certify(X, y, z, people, [size, 0.0], ridge=ridge, intercept=intercept)]
    for method in ("moments", "triangular"):
        sums = GameStatistics.from_data(X, y, z, method=method)
        proofs.append(sums.certify([size, 0.0], people, ridge=ridge, intercept=intercept))
    # Nobody's prediction is a number any more where coefficients are the largest numbers.
    told = size < 1e308 and (people == 1.0 or getattr(people, "honest", None) == 0.0)
    for proof in proofs:
        assert proof.kkt_residual == inf
        assert best.objective - 1e-6 <= proof.lower_bound <= best.objective + 1e-12
        finite = pytest.approx((z - y) @ (z - y))
        assert proof.lower_bound + proof.gap == (finite if told and ridge == 0.0 else inf)


def test_certificates_of_huge_coefficients_on_large_data():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3000, 20)), rng.normal(size=3000)
    z, coef = y + rng.random(3000), np.full(20, 1e155)
    best = solve(X, y, z, 1.0).objective
    proof = certify(X, y, z, 1.0, coef)
    assert proof.kkt_residual == inf
    assert best * (1 - 1e-6) <= proof.lower_bound <= best * (1 + 1e-12)
    assert proof.lower_bound + proof.gap == pytest.approx((z - y) @ (z - y))
    assert certify(X, y, z, Population.mixed(1.0, 0.5), coef).gap == inf
