"""Free columns projected away by least squares: right, known to be, and at scale."""

from __future__ import annotations

import tracemalloc
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from spgls import Floor, Population, StackelbergRegressor, Status, certify, explain_solver, solve
from spgls.game.response import learner_loss
from spgls.matrix import (
    FreeColumns,
    SolvedMatrix,
    SolvedProjection,
    as_matrix,
    eliminated,
    projection,
    spanned,
)
from spgls.matrix.positive import certain_factor, certain_in_single, square_unit
from spgls.matrix.squares import sum_rounding_in_pieces
from spgls.reduction import data as data_module
from spgls.reduction.data import GameData
from spgls.solvers import cost
from spgls.solvers.iterative.prove import Prover
from spgls.solvers.iterative.rulers import Rulers


@pytest.fixture
def solved(monkeypatch):
    """Never a basis where columns are immutable."""
    monkeypatch.setattr(data_module, "_FEW_FREE", -1.0)
    for name in ("_BASIS_SHARE", "_SMALL_BASIS"):
        monkeypatch.setattr(data_module, name, 0.0)


def exact_projection(F, t):
    """``P t`` in extended precision, twice orthogonalised."""
    wide, rest = F.astype(np.longdouble), t.astype(np.longdouble)
    basis = []
    for column in wide.T:
        own = column / np.sqrt(column @ column)
        for _ in range(2):
            for q in basis:
                own = own - q * (q @ own)
        basis.append(own / np.sqrt(own @ own))
    for _ in range(2):
        for q in basis:
            rest = rest - q * (q @ rest)
    return rest


def columns_of(rng, m, k, condition):
    """Columns of a condition number, and of lengths over six decades."""
    U, _ = np.linalg.qr(rng.normal(size=(m, k)))
    V, _ = np.linalg.qr(rng.normal(size=(k, k)))
    unit = (U * np.geomspace(1.0, 1.0 / condition, k)) @ V
    unit /= np.linalg.norm(unit, axis=0)
    return unit * 10.0 ** rng.uniform(-3, 3, k)


# The theorem: what an inexact projection is wrong by


@pytest.mark.parametrize("target", [1e-13, 1e-10, 1e-7, 1e-4, 1e-2])
@pytest.mark.parametrize("condition", [1.5, 30.0, 1e3])
@pytest.mark.parametrize("constant", [False, True])
def test_the_error_of_a_projection_is_within_its_bound(monkeypatch, target, condition, constant):
    monkeypatch.setattr(projection, "_TARGET", target)
    monkeypatch.setattr(projection, "_ROUNDS", 1)
    rng = np.random.default_rng(0)
    F = columns_of(rng, 60, 12, condition)
    root = rng.uniform(0.5, 2.0, 60)
    columns = FreeColumns.of(as_matrix(F), np.arange(12), root, constant=constant)
    free = SolvedProjection(columns)
    whole = root[:, None] * (np.column_stack([np.ones(60), F]) if constant else F)
    T = rng.normal(size=(60, 3)) + whole @ rng.normal(size=(whole.shape[1], 3))
    found = np.column_stack([free.apply(T[:, :2]), free.apply(T[:, 2])])
    true = np.column_stack([exact_projection(whole, t) for t in T.T])
    wrong = np.linalg.norm((found - true).astype(float), axis=0) / np.linalg.norm(T, axis=0)
    sigma = np.linalg.svd(whole / np.linalg.norm(whole, axis=0), compute_uv=False)[-1]
    assert 0.0 < free.least <= sigma
    assert wrong.max() <= free.wrong(free.least)
    # The bound is good for something: what was left along the columns is most of it.
    assert free.wrong(free.least) <= 30 * max(target, columns.down) / free.least + 1e-11


def test_coefficients_of_a_split_remake_what_was_removed():
    rng = np.random.default_rng(1)
    F = sp.random(200, 30, 0.2, format="csr", random_state=rng)
    free = SolvedProjection(FreeColumns.of(as_matrix(F), np.arange(30), None, constant=True))
    t = rng.normal(size=200)
    rest, u = free.split(t)
    whole = np.column_stack([np.ones(200), F.toarray()])
    np.testing.assert_allclose(rest + whole @ u, t, atol=1e-12)
    np.testing.assert_allclose(whole.T @ rest, 0.0, atol=1e-11)
    again, more = free.split(t, start=u + 1e-6)
    np.testing.assert_allclose(again, rest, atol=1e-11)
    np.testing.assert_allclose(more, u, atol=1e-10)


@pytest.mark.parametrize("lowest", [0.5, 0.1, 1e-2, 1e-3, 1e-5])
def test_factors_prove_no_more_than_the_least_eigenvalue(lowest):
    rng = np.random.default_rng(2)
    for _ in range(10):
        V, _ = np.linalg.qr(rng.normal(size=(80, 80)))
        M = (V * np.linspace(lowest, 1.0, 80)) @ V.T
        true = float(np.linalg.eigvalsh(M)[0])
        for share in (0.1, 0.5, 0.9, 0.999, 1.001, 1.5):
            single = M.astype(np.float32)
            assert certain_in_single(single, 0.0, share * lowest) <= true
            found = certain_factor(M.copy, 0.0, (share * lowest,))
            assert found is None or found[1] <= true
        assert certain_in_single(M.astype(np.float32), 0.0, 0.5 * lowest) > 0.0 or lowest < 0.01


# Dependent columns


def dummies(rng, m, groups, width):
    parts = [
        sp.csr_array((np.ones(m), (np.arange(m), rng.integers(0, width, m))), shape=(m, width))
        for _ in range(groups)
    ]
    return sp.hstack(parts).tocsr()


def test_complete_groups_of_dummies_are_proved(solved):
    rng = np.random.default_rng(3)
    D, A = dummies(rng, 800, 3, 12), sp.random(800, 6, 0.2, format="csr", random_state=rng)
    X = sp.hstack([D, A]).tocsr()
    y = X @ rng.normal(size=42) + rng.normal(size=800)
    z = y + np.abs(rng.normal(size=800))
    price = np.append(np.full(36, np.inf), np.ones(6))
    found = solve(X, y, z, 1.0, feature_cost=price, fit_intercept=True, solver="krylov")
    assert found.status is Status.OPTIMAL
    assert found.certificate.kind == "proved"
    # As by a decomposition, coefficients of the dependent columns included.
    best = solve(X, y, z, 1.0, feature_cost=price, fit_intercept=True, solver="spectral")
    assert found.objective == pytest.approx(best.objective, rel=1e-8)
    apart = X @ (found.coef - best.coef) + found.intercept - best.intercept
    assert np.linalg.norm(apart) <= 1e-4 * np.linalg.norm(y)


def test_columns_that_nearly_depend_are_not_taken_for_dependent():
    rng = np.random.default_rng(4)
    whole = rng.integers(-3, 4, size=(50, 4)).astype(float)
    for last, spanned_by in (
        (whole[:, 0] - 2 * whole[:, 1], True),
        (whole[:, 0] + 5.0, True),
        (whole[:, 0] / 2, False),  # not whole: nothing is shown
        (whole[:, 0] + (np.arange(50) == 7), False),
    ):
        F = np.column_stack([whole, last])
        columns = FreeColumns.of(as_matrix(sp.csr_array(F)), np.arange(5), None, constant=True)
        scale = 1.0 / columns.lengths
        kept = spanned.spanning_columns(columns.square(scale), scale, 1, columns.combine)
        assert (kept is not None and len(kept) == 5) == spanned_by


def test_nearly_dependent_columns_get_a_basis_or_an_honest_status(monkeypatch):
    """Beyond what squared columns can resolve."""
    monkeypatch.setattr(data_module, "_FEW_FREE", -1.0)
    monkeypatch.setattr(data_module, "_SMALL_BASIS", 0.0)
    rng = np.random.default_rng(5)
    F = rng.normal(size=(200, 6))
    F[:, 5] = F[:, 4] + 1e-11 * rng.normal(size=200)
    X = np.column_stack([F, rng.normal(size=(200, 3))])
    table = sp.csr_array(X)
    y = X @ rng.normal(size=9) + rng.normal(size=200)
    z = y + 1.0 + np.abs(rng.normal(size=200))
    price = np.append(np.full(6, np.inf), np.ones(3))
    best = solve(X, y, z, 1.0, feature_cost=price, solver="spectral")
    for share in (0.5, 0.0):
        monkeypatch.setattr(data_module, "_BASIS_SHARE", share)
        found = solve(table, y, z, 1.0, feature_cost=price, solver="krylov")
        loss = learner_loss(X, y, z, best.coef, gamma=1.0, feature_cost=price)
        assert found.certificate.lower_bound <= loss * (1 + 1e-12)
        assert found.objective == pytest.approx(best.objective, rel=1e-6) or not found.status.ok


# Squares by elimination, and single precision


def eliminated_case(kind, rng):
    """Sparse columns: free ones, and changeable ones of very different lengths."""
    m = 300
    A = sp.random(m, 25, 0.3, format="csr", random_state=rng, data_rvs=rng.standard_normal)
    A = A @ sp.diags_array(10.0 ** rng.uniform(-3, 3, 25))
    if kind == "dependent":
        return dummies(rng, m, 3, 5), A
    F = sp.random(m, 40, 0.2, format="csr", random_state=rng, data_rvs=rng.standard_normal)
    if kind == "close":
        # Free columns that nearly depend, and a changeable one that they nearly span.
        near = F @ rng.normal(size=(40, 2)) + 1e-3 * rng.normal(size=(m, 2))
        F, A = sp.hstack([F, near[:, :1]]), sp.hstack([A, near[:, 1:]])
    return F.tocsr(), A.tocsr()


@pytest.mark.parametrize("kind", ["plain", "close", "dependent"])
@pytest.mark.parametrize("wrong", [0.0, 1e-6, 1e-2])
def test_squares_by_elimination_are_within_their_error(solved, monkeypatch, kind, wrong):
    """Whatever the factor is."""
    rng = np.random.default_rng(10)
    factor = eliminated._factor

    def wrong_factor(make):
        found = factor(make)
        noise = 1.0 + wrong * rng.normal(size=len(found.both))
        return found._replace(both=np.tril(found.both) * noise + np.triu(found.both, 1))

    monkeypatch.setattr(eliminated, "_factor", wrong_factor)
    F, A = eliminated_case(kind, rng)
    X, f = sp.hstack([F, A]).tocsr(), F.shape[1]
    price = np.append(np.full(f, np.inf), 10.0 ** rng.uniform(-2, 2, A.shape[1]))
    y, weight = rng.normal(size=300), rng.uniform(0.5, 2.0, 300)
    data = GameData.from_user(
        X, y, y + 1.0, feature_cost=price, sample_weight=weight, fit_intercept=kind != "close"
    )
    rulers = Rulers.of(data)
    square = data.projected.square()
    assert 0.0 < data.projected.square_error(rulers.least) < np.inf
    unit = square_unit(*X.shape) + rulers.turn + data.projected.square_error(rulers.least)
    priced = np.sqrt(weight)[:, None] * (A.toarray() * np.sqrt(price[f:]))
    free = F.toarray()[:, 1:] if kind == "dependent" else F.toarray()
    if kind == "dependent":
        # One column of each group after the first is spanned by the others.
        free = np.delete(free, [4, 9], axis=1)
    if kind != "close":
        free = np.column_stack([np.ones(300), free])
    left = np.column_stack([exact_projection(np.sqrt(weight)[:, None] * free, a) for a in priced.T])
    apart = np.abs(square - (left.T @ left).astype(float))
    lengths = np.linalg.norm(priced, axis=0)
    assert (apart <= unit * np.multiply.outer(lengths, lengths)).all()
    # And the error is good for something.
    if wrong == 0.0:
        assert unit < (1e-5 if kind == "close" else 1e-8)
    again = np.abs(data.projected.accurate_square() - (left.T @ left).astype(float))
    assert data.projected.square_error(rulers.least) == 0.0
    unit = square_unit(*X.shape) + rulers.turn
    assert (again <= unit * np.multiply.outer(lengths, lengths)).all()


def test_few_projected_columns_are_added_up_in_pieces():
    """Equal terms are rounded the same way each time, and BLAS adds few columns row by row."""
    m, value = 200_000, 0.57
    own = SolvedMatrix(SimpleNamespace(shape=(m, 2)), None)
    own.__dict__["_kept"] = np.full((m, 2), value)
    true = m * Fraction(value) ** 2
    for got in (own.cross(np.full(m, value))[0], own.gram(np.array([1.0, 0.0]))[0]):
        assert abs(Fraction(float(got)) - true) <= sum_rounding_in_pieces(m) * true


@pytest.mark.parametrize("kind", ["plain", "close"])
def test_squares_pay_for_what_no_weights_explain(solved, monkeypatch, kind):
    """R5a at ``X = 0``: then ``X'R`` is nothing, and all that is wrong is ``e'e``."""
    monkeypatch.setattr(eliminated, "_weights", lambda factor, C, lengths: (np.zeros_like(C), C))
    rng = np.random.default_rng(10)
    F, A = eliminated_case(kind, rng)
    y, price = rng.normal(size=300), np.append(np.full(F.shape[1], np.inf), np.ones(A.shape[1]))
    data = GameData.from_user(sp.hstack([F, A]).tocsr(), y, y + 1.0, feature_cost=price)
    square, least = data.projected.square(), Rulers.of(data).least
    left = np.column_stack([exact_projection(F.toarray(), a) for a in A.toarray().T])
    lengths = np.linalg.norm(A.toarray(), axis=0)
    apart = np.abs(square - (left.T @ left).astype(float)) / np.multiply.outer(lengths, lengths)
    assert 1e-3 < apart.max() <= data.projected.square_error(least)
    # So it shows nothing of the curvature, and what does is made anew.
    own = Prover(data).curvature
    assert own.alone(0.0) is not None
    apart = np.abs(own._square - (left.T @ left).astype(float))
    assert (apart <= own._unit * np.multiply.outer(lengths, lengths)).all()


def test_populations_on_eliminated_squares(solved):
    for seed in range(3):
        X, y, z, price = game(seed, m=150, n=60, immutable=25)
        options = {"feature_cost": price, "fit_intercept": bool(seed % 2)}
        for who in (Population.mixed(1.0, honest=0.5), Population.mixed(0.1, honest=0.02)):
            found = solve(X, y, z, who, solver="krylov", **options)
            best = solve(X, y, z, who, solver="spectral", **options)
            assert found.status.ok
            assert found.certificate.kind == "proved"
            assert found.certificate.lower_bound <= best.objective * (1 + 1e-12)
            assert found.objective == pytest.approx(best.objective, rel=1e-8)


def test_squares_that_are_too_rough_are_made_anew(solved, monkeypatch):
    X, y, z, price = game(1, m=150, n=60, immutable=25)
    who, made, accurate = Population.mixed(1.0, honest=0.5), [], SolvedMatrix.accurate_square
    monkeypatch.setattr(SolvedMatrix, "square_error", lambda self, least: 1.0)
    monkeypatch.setattr(
        SolvedMatrix, "accurate_square", lambda self: (made.append(1), accurate(self))[1]
    )
    found = solve(X, y, z, who, solver="krylov", feature_cost=price)
    assert found.status.ok
    assert found.certificate.kind == "proved"
    assert made == [1]


@pytest.mark.parametrize("constant", [False, True])
def test_squares_in_single_precision_are_within_their_error(constant):
    rng = np.random.default_rng(11)
    for density in (0.02, 0.3):
        F = sp.random(400, 60, density, format="csr", random_state=rng)
        columns = FreeColumns.of(
            as_matrix(F), np.arange(60), rng.uniform(0.5, 2.0, 400), constant=constant
        )
        scale = 1.0 / columns.lengths
        true, rough = columns.square(scale), columns.square(scale, np.float32).astype(float)
        wrong = np.linalg.norm(true - rough, 2)
        error = columns.in_single(scale).square_error()
        # Rounding of the result itself is counted where it is used.
        assert wrong <= error + 1.2e-7 * np.abs(true).sum(axis=0).max()
        assert error < 1e-3


def test_single_precision_is_left_where_it_has_no_digits():
    rng = np.random.default_rng(12)
    F = sp.random(300, 40, 0.2, format="csr", random_state=rng, data_rvs=rng.standard_normal)
    near = F @ rng.normal(size=(40, 1)) + 1e-5 * rng.normal(size=(300, 1))
    F = sp.hstack([F, near]).tocsr()
    free = SolvedProjection(FreeColumns.of(as_matrix(F), np.arange(41), None, constant=False))
    T = rng.normal(size=(300, 5))
    for t in (T, T[:, 0]):
        rest = free.apply(t)
        true = np.stack([exact_projection(F.toarray(), one) for one in T.T], axis=1)
        true = true if t.ndim == 2 else true[:, 0]
        assert np.abs(rest - true).max() <= 1e-7
    assert not free.poor


def test_columns_of_any_length_are_projected(solved):
    """Lengths that single precision does not hold."""
    rng = np.random.default_rng(13)
    F = sp.random(200, 10, 0.3, format="csr", random_state=rng, data_rvs=rng.standard_normal)
    F = F @ sp.diags_array(10.0 ** np.linspace(-120, 120, 10))
    free = SolvedProjection(FreeColumns.of(as_matrix(F), np.arange(10), None, constant=True))
    for size in (1e-100, 1.0, 1e100):
        t = size * rng.normal(size=200)
        rest, u = free.split(t)
        whole = np.column_stack([np.ones(200), F.toarray()])
        unit = whole / np.linalg.norm(whole, axis=0)
        assert np.abs(unit.T @ rest).max() <= 1e-12 * np.linalg.norm(t)
        np.testing.assert_allclose(rest + whole @ u, t, rtol=0, atol=1e-12 * np.linalg.norm(t))


# Games


def game(seed, m=120, n=14, immutable=9, density=0.3):
    rng = np.random.default_rng(seed)
    X = sp.random(m, n, density, format="csr", random_state=rng, data_rvs=rng.standard_normal)
    X = X @ sp.diags_array(10.0 ** rng.uniform(-2, 2, n))
    price = 10.0 ** rng.uniform(-1, 1, n)
    price[rng.permutation(n)[:immutable]] = np.inf
    y = X @ (rng.normal(size=n) / 10.0 ** rng.uniform(-2, 2, n)) + rng.normal(size=m)
    z = y + np.abs(rng.normal(size=m)) * np.linalg.norm(y) / np.sqrt(m)
    return sp.csr_array(X), y, z, price


KINDS = {
    "rows": sp.csr_array,
    "columns": sp.csc_array,
    "single": lambda X: X.astype(np.float32),
    "dense": lambda X: X.toarray(),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("immutable", [9, 13])
def test_games_as_by_a_decomposition(solved, kind, intercept, weighted, immutable):
    X, y, z, price = game(6, immutable=immutable)
    X = KINDS[kind](X)
    weight = np.random.default_rng(7).uniform(0.0, 2.0, len(y)) if weighted else None
    options = {"feature_cost": price, "fit_intercept": intercept, "sample_weight": weight}
    for gamma in (0.3, Population.mixed(1.0, honest=0.5)):
        found = solve(X, y, z, gamma, solver="krylov", **options)
        best = solve(X, y, z, gamma, solver="spectral", **options)
        assert found.status.ok
        assert found.certificate.kind == "proved"
        assert found.objective == pytest.approx(best.objective, rel=1e-8)
        own = found.intercept if intercept else None
        told = certify(
            X, y, z, gamma, found.coef, intercept=own, feature_cost=price, sample_weight=weight
        )
        assert told.relative_gap <= 1e-8
        apart = X @ (found.coef - best.coef) + found.intercept - best.intercept
        assert np.linalg.norm(apart) <= 1e-4 * np.linalg.norm(y)


@pytest.mark.parametrize("target", [1e-13, 1e-7, 1e-4, 1e-2])
def test_no_predictor_is_below_the_bound_of_an_inexact_projection(solved, monkeypatch, target):
    monkeypatch.setattr(projection, "_TARGET", target)
    proved = 0
    for seed in range(12):
        X, y, z, price = game(seed, m=60, immutable=int(3 + seed % 8))
        intercept, gamma = bool(seed % 2), float(10.0 ** (seed % 5 - 2))
        options = {"feature_cost": price, "fit_intercept": intercept}
        best = solve(X, y, z, gamma, solver="spectral", **options)
        loss = learner_loss(
            X, y, z, best.coef, gamma=gamma, intercept=best.intercept, feature_cost=price
        )
        for who in (gamma, Population.mixed(gamma, honest=0.01)):
            found = solve(X, y, z, who, solver="krylov", **options)
            honest = 0.0
            if who is not gamma:
                # A loss that somebody has: that of the same predictor.
                errors = X @ best.coef + best.intercept - y
                honest = 0.01 * (errors @ errors)
                bound = 0.99 * loss + honest
            else:
                bound = loss
            assert found.certificate.lower_bound <= bound * (1 + 1e-11)
            proved += found.status.ok
    assert proved > 15 or target > 1e-10


def test_a_wrong_projection_is_charged(solved):
    """What is left along free columns is in the rulers, whoever left it."""
    X, y, z, price = game(8)
    data = GameData.from_user(X, y, z, feature_cost=price)
    before = Rulers.of(data).turn
    assert before < 1e-11
    data.free.leak = 1e-5
    assert Rulers.of(data).turn >= 1e-5
    data.free.leak = np.inf
    assert Rulers.of(data).turn == np.inf


def test_many_columns_are_estimated_not_proved(solved, monkeypatch):
    monkeypatch.setattr(projection, "FACTORISED", 4)
    X, y, z, price = game(9)
    for who in (1.0, Population.mixed(1.0, honest=0.5)):
        found = solve(X, y, z, who, feature_cost=price, solver="krylov")
        assert found.status.ok
        assert found.certificate.kind == "estimated"


# Scale


def large(m, n, density, immutable):
    rng = np.random.default_rng(0)
    X = sp.random(m, n, density, format="csr", random_state=rng, data_rvs=rng.standard_normal)
    y = X @ rng.normal(size=n) + rng.normal(size=m)
    price = np.ones(n)
    price[rng.permutation(n)[:immutable]] = np.inf
    return X, y, y + np.abs(rng.normal(size=m)), price


def peak(call):
    tracemalloc.start()
    try:
        return call(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("immutable", [100, 1000, 2900])
def test_sparse_data_with_many_immutable_columns(immutable, monkeypatch):
    """By products with the columns: as many as these take the time that is allowed."""
    X, y, z, price = large(20_000, 3_000, 0.002, immutable)
    counted = []
    times = FreeColumns.apply
    monkeypatch.setattr(
        FreeColumns, "apply", lambda self, u: (counted.append(1), times(self, u))[1]
    )
    found, memory = peak(lambda: solve(X, y, z, 1.0, feature_cost=price))
    assert found.status is Status.OPTIMAL
    assert found.certificate.kind == "proved"
    assert memory < 2e8
    assert len(counted) <= 400
    free = np.isinf(price)
    errors = found.intercept + X @ found.coef
    alpha = found.alpha
    residual = (errors + alpha * z) / (1 + alpha) - y
    assert np.abs(X[:, free].T @ residual).max() <= 1e-7 * np.linalg.norm(y)


@pytest.mark.long
def test_sparse_data_with_few_changeable_columns_among_many():
    X, y, z, price = large(100_000, 50_000, 2e-4, 49_000)
    found, memory = peak(lambda: solve(X, y, z, 1.0, feature_cost=price))
    assert found.status is Status.OPTIMAL
    assert found.certificate.relative_gap <= 1e-9
    assert memory < 2e8


def test_a_fit_with_many_immutable_columns():
    X, y, _, price = large(5_000, 800, 0.01, 700)
    model = StackelbergRegressor(goal=Floor(1.0), feature_cost=price, gamma=1.0).fit(X, y)
    assert model.status_.ok
    assert model.certificate_.kind == "proved"


def test_a_fit_against_a_population_projects_few_columns(monkeypatch):
    """What its proof squares is eliminated, not projected column by column."""
    X, y, _, price = large(5_000, 800, 0.005, 300)
    widths, split = [], SolvedProjection.split
    monkeypatch.setattr(
        SolvedProjection,
        "split",
        lambda self, t, start=None: (widths.append(t.size // len(t)), split(self, t, start))[1],
    )
    model = StackelbergRegressor(goal=Floor(1.0), feature_cost=price, solver="krylov").fit(X, y)
    assert model.status_.ok
    assert model.certificate_.kind == "proved"
    assert 0 < sum(widths) < 300


def test_plans_count_what_free_columns_take():
    X, _, _, price = large(20_000, 3_000, 0.002, 2_900)
    plan = explain_solver(X, feature_cost=price, memory=1e12)
    without = explain_solver(X[:, :100], memory=1e12)
    assert plan.options[0].seconds > 100 * without.options[0].seconds
    assert plan.memory > 8e7 > without.memory
    with pytest.raises(MemoryError, match="free"):
        explain_solver(X, feature_cost=price, memory=1e6)
    work = as_matrix(X).work.of_columns(100)
    assert cost.free_cost(work, 1).memory < 2e8


@pytest.mark.parametrize("solver", ["auto", "spectral", "krylov"])
@pytest.mark.parametrize("gamma", [1.0, Population.mixed(1.0, 0.5)], ids=["single", "mixed"])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_column_of_ones_that_nobody_can_change_is_an_intercept(solver, gamma, sparse):
    # Without that, means of 1000 standard deviations cost half of the digits, and the proof.
    rng = np.random.default_rng(3)
    X = rng.standard_normal((40, 5)) + 1e3
    y = X @ rng.standard_normal(5) + rng.standard_normal(40)
    z = y + rng.standard_normal(40)
    told = np.column_stack([X, np.ones(40)])
    cost = np.append(np.ones(5), np.inf)
    given = sp.csr_array(told) if sparse else told
    found = solve(given, y, z, gamma, feature_cost=cost, solver=solver)
    other = solve(X, y, z, gamma, fit_intercept=True, solver=solver)
    assert found.certificate.kind == other.certificate.kind == "proved"
    assert found.status == other.status
    assert found.objective == pytest.approx(other.objective, rel=1e-11)
    assert found.intercept == 0.0
    np.testing.assert_allclose(found.coef[-1], other.intercept, rtol=1e-6)
    proof = certify(given, y, z, gamma, found.coef, feature_cost=cost)
    assert proof.kind == "proved"
    assert proof.relative_gap < 1e-9


def test_a_column_of_ones_in_the_first_row_alone_is_no_intercept():
    rng = np.random.default_rng(4)
    X = rng.standard_normal((30, 4))
    X[0, 3] = 1.0
    y, z = rng.standard_normal((2, 30))
    cost = np.array([1.0, 1.0, 1.0, np.inf])
    found = solve(X, y, z, 1.0, feature_cost=cost)
    assert found.intercept == 0.0
    loss = learner_loss(X, y, z, found.coef, gamma=1.0, feature_cost=cost)
    assert loss == pytest.approx(found.objective)
    assert certify(X, y, z, 1.0, found.coef, feature_cost=cost).relative_gap < 1e-9
