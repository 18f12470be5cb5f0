"""Charges for rounding that no other charge makes up for: without each, something false is proved.

Errors are as large as a theorem of ``docs/proofs.md`` allows, in the direction that flatters most.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.linalg.lapack import spotrf

from spgls import GameStatistics, Population, solve
from spgls.matrix import FreeColumns, SolvedProjection, as_matrix, positive, projection
from spgls.population import solve_population
from spgls.reduction import second_moments, triangular
from spgls.reduction.data import GameData
from spgls.reduction.layout import Layout
from spgls.reduction.rounding import Rounding
from spgls.reduction.rows import reduce_rows_by_gram, reduce_rows_by_qr
from spgls.reduction.second_moments import reduce_moments
from spgls.reduction.sums import Account, Origin
from spgls.reduction.triangular import reduce_triangle
from spgls.solvers import Spectral
from spgls.solvers.iterative import curvature
from spgls.solvers.iterative.by_products import Points, measure_span
from spgls.solvers.iterative.images import Span
from spgls.solvers.iterative.iterate import sphere_problem
from spgls.solvers.iterative.prove import Prover
from spgls.solvers.iterative.residual import Fresh
from spgls.solvers.iterative.rulers import Rulers
from spgls.solvers.krylov.matrices import matrices_at
from spgls.sphere import dual_bound, solve_sphere

#: Half an ulp of one in single precision.
HALF_ULP = float(np.finfo(np.float32).eps) / 2


def amplify(fresh, size):
    """Let products be wrong by so much, in units of their terms."""
    rulers = replace(fresh.rulers, across=size, down=size)
    fresh.__dict__["rulers"] = rulers
    return rulers


# Theorem 3a: coefficients bounded by predictions in some directions, by the norm in others


def graded(rng, k):
    """Columns of very different length, of which some nearly depend on others."""
    near = rng.normal(size=(k, k)) * 10.0 ** rng.uniform(-9, 0, size=k)
    return rng.normal(size=(k + 6, k)) @ near * 10.0 ** rng.uniform(-4, 4, size=k)


def flattering(rng, sizes, V, sigma, strong):
    """Coefficients that are large beside what they predict, or beside their norm."""
    sign = rng.choice([-1.0, 1.0], size=len(sizes))
    towards = V.T @ (sizes * sign)
    yield V[:, :strong] @ (towards[:strong] / sigma[:strong] ** 2)
    yield V[:, strong:] @ towards[strong:]
    yield sizes * sign - V @ towards
    yield V @ (towards / (sigma**2 + sigma[strong - 1] ** 2))


@pytest.mark.parametrize("null", ["none", "use", "avoid"])
def test_no_split_of_directions_forgets_a_coefficient(null):
    """What bounds the sum of coefficients, each by the size of its column."""
    rng, tight = np.random.default_rng(0), []
    for _ in range(60):
        k = int(rng.integers(2, 12))
        X = graded(rng, k)
        if null != "none":
            short = np.argmin(np.linalg.norm(X, axis=0))
            X[:, short - 1] = -2 * X[:, short]
        rows = np.column_stack([X, rng.normal(size=(len(X), 2))])
        layout = Layout(k, avoids_null=null == "avoid")
        found = reduce_triangle(layout, rows.copy(), Origin(), len(X))
        V, sigma = found.vectors, found.game.sigma
        sizes, rounding = np.linalg.norm(X, axis=0), found.game.rounding
        for least, weak in rounding.splits:
            assert weak <= 1.001 * rounding.reach
            for strong in range(1, len(sigma) + 1):
                for v in flattering(rng, sizes, V, sigma, strong):
                    v = v if null != "avoid" else V @ (V.T @ v)
                    here = np.abs(v).dot(sizes)
                    predicted = np.linalg.norm(X.astype(np.longdouble) @ v) + rounding.kappa * here
                    bound = float(predicted) / least + weak * np.linalg.norm(v)
                    assert bound >= here * (1 - 1e-9)
                    tight.append(here / bound if bound else 0.0)
    assert max(tight) > 0.5


def test_what_was_taken_for_rounding_has_a_part_in_every_split():
    """A column that the intercept explains, but for rounding of its mean."""
    rng = np.random.default_rng(1)
    X = np.column_stack([1e6 * rng.normal(size=20), 1e-12 * rng.normal(size=20)])
    rows = np.column_stack([X, rng.normal(size=(20, 2)), np.ones(20)])
    origin = Origin(np.array([0.0, 1e3]))
    found = reduce_triangle(Layout(2, fit_intercept=True), rows, origin, 20)
    rounding = found.game.rounding
    # Ones explain a part of each column, and are wrong too.
    sizes = np.linalg.norm(X, axis=0) + np.abs(X.mean(axis=0)) * 20**0.5
    lost = rounding.reach - np.linalg.norm(sizes)
    assert len(found.game.sigma) == 1
    assert lost > 0.0
    assert min(weak for _, weak in rounding.splits) >= 0.99 * lost


@pytest.mark.parametrize("amplified", [1e-8, 1e-6, 1e-4])
@pytest.mark.parametrize("honest", [0.0, 0.5])
def test_splits_pay_for_predictions_that_are_wrong(amplified, honest):
    """Columns are wrong such that the best predictor loses more than it does in truth."""
    rng, better = np.random.default_rng(2), 0
    for _ in range(60):
        k = int(rng.integers(2, 6))
        m = k + 6
        X = rng.normal(size=(m, k)) * 10.0 ** rng.uniform(-4, 0, size=k)
        near = amplified * 10.0 ** rng.uniform(0, 3) * np.linalg.norm(X[:, 1])
        X[:, 0] = X[:, 1] + near * rng.normal(size=m)
        y = X @ (rng.normal(size=k) / np.linalg.norm(X, axis=0)) + 0.1 * rng.normal(size=m)
        z = y + rng.normal(size=m)
        gamma = 10.0 ** rng.uniform(0, 8)
        people = Population([gamma, np.inf], [1 - honest, honest]) if honest else gamma
        rows = np.column_stack([X, y, z])
        true = reduce_triangle(Layout(k), rows.copy(), Origin(), m).game
        best = solve(X, y, z, people, solver="spectral")
        prediction = X @ best.coef
        shares, alphas = [1.0], [best.alpha]
        if honest:
            shares, alphas = [1 - honest, honest], [best.coef @ best.coef / gamma, 0.0]
        errors = sum(
            f * ((prediction + a * z) / (1 + a) - y) / (1 + a)
            for f, a in zip(shares, alphas, strict=True)
        )
        along = errors / np.linalg.norm(errors)
        sizes = np.linalg.norm(X, axis=0) * np.sign(best.coef)
        wrong = rows.copy()
        wrong[:, :k] += amplified * np.outer(along, sizes)
        game = reduce_triangle(Layout(k), wrong, Origin(), m).game
        rounding = replace(game.rounding, kappa=game.rounding.kappa + amplified)
        bounds = []
        for splits in (rounding.splits, ()):
            told = replace(game, rounding=replace(rounding, splits=splits))
            if honest:
                exact = solve_population(true, people.gammas, people.shares)
                found = solve_population(told, people.gammas, people.shares, tol=2 * amplified)
                upper, bound = found.upper, found.lower_bound
            else:
                exact, found = solve_sphere(true, gamma), solve_sphere(told, gamma)
                upper = max(found.value, exact.value) * (1 + 1e-9)
                bound = dual_bound(told, gamma, found, upper)
            if exact.value <= upper:
                assert bound <= exact.value * (1 + 1e-9) + 1e-13 * (true.yy + true.zz)
            bounds.append(bound)
        better += bounds[0] > bounds[1] + amplified * exact.value
    assert better > 5


@pytest.mark.parametrize("k", [5, 40])
def test_what_the_data_hardly_shows_is_as_accurate(k):
    """Where nobody may go along directions that hardly show, errors count column by column too."""
    rng = np.random.default_rng(3)
    for _ in range(5):
        m = k + 20
        X = rng.normal(size=(m, k)) * 10.0 ** rng.uniform(-9, 0, size=k)
        X[:, 1] = X[:, 0] + 10.0 ** rng.uniform(-11, -7) * rng.normal(size=m) * abs(X[:, 0]).max()
        rows = np.column_stack([X, rng.normal(size=(m, 2))])
        found = reduce_triangle(Layout(k, avoids_null=True), rows, Origin(), m)
        V, sigma = found.vectors, found.game.sigma
        assert len(sigma) == k - 1
        shown = X.astype(np.longdouble) @ V
        wrong = np.abs(shown.T @ shown - np.diag(sigma.astype(np.longdouble) ** 2))
        sums = np.linalg.norm(X, axis=0) @ np.abs(V)
        allowed = np.multiply.outer(sums, sigma)
        assert (wrong <= found.game.rounding.kappa * (allowed + allowed.T)).all()


# Immutable columns that are wrong


def turned_game(rng, size, squared):
    """Labels that two immutable columns explain by little, and what rounding makes of them.

    Returns rows with one changeable column, and the same or their moments wrong by ``size``, such
    that what is explained seems less by as much as it can.
    """
    explained, away, other = np.linalg.qr(rng.normal(size=(10, 3)))[0].T
    near = (size**0.5 if squared else size) * 10.0 ** rng.uniform(-2, 4)
    free = np.column_stack([other, other + near * explained])
    y = explained + 10.0 ** rng.uniform(-3, 0) * rng.normal(size=10)
    z = 10.0 ** rng.uniform(-3, 0) * rng.normal(size=10)
    rows = np.column_stack([free, rng.normal(size=10), y, z])
    if squared:
        moment = rows.T @ rows
        lengths = np.linalg.norm(free, axis=0) * [1.0, -1.0]
        moment[:2, :2] += size * np.outer(lengths, lengths)
        return rows, moment
    wrong = rows.copy()
    wrong[:, :2] += size * np.outer(away, [-1.0, 1.0])
    return rows, wrong


@pytest.mark.parametrize("engine", ["triangular", "moments", "moments with an account"])
@pytest.mark.parametrize("size", [1e-7, 1e-6, 1e-4])
def test_immutable_columns_pay_for_what_they_explain_in_truth(monkeypatch, engine, size):
    """The true columns explain more than the computed ones, by larger coefficients."""
    rng, squared = np.random.default_rng(0), "moments" in engine
    layout, useful, doubted = Layout(3, cost=np.array([np.inf, np.inf, 1.0])), 0, 0
    for _ in range(300):
        rows, wrong = turned_game(rng, size, squared)
        true = reduce_triangle(layout, rows.copy(), Origin(), 10).game
        with monkeypatch.context() as patched:
            patched.setattr(triangular, "kappa_of_factor", lambda *_: size)
            patched.setattr(second_moments, "kappa_of_sums", lambda *_: size)
            if not squared:
                found = reduce_triangle(layout, wrong, Origin(), 10)
            else:
                sizes = np.linalg.norm(rows, axis=0)
                account = Account(sizes, size) if "account" in engine else None
                found = reduce_moments(layout, wrong, Origin(), 10, account)
        if found is None:
            doubted += 1
            continue
        doubted += found.game.rounding.slack == np.inf
        gamma = 10.0 ** rng.uniform(0, 8)
        for least in (found.game.rounding.least, 0.0):
            rounding = replace(found.game.rounding, least=least)
            if not least:
                rounding = replace(rounding, splits=())
            game = replace(found.game, rounding=rounding)
            exact, here = solve_sphere(true, gamma), solve_sphere(game, gamma)
            bound = dual_bound(game, gamma, here, max(here.value, exact.value) * (1 + 1e-9))
            assert bound <= exact.value * (1 + 1e-9) + 1e-13 * (true.yy + true.zz)
            useful += bound > 0.5 * exact.value
    assert useful > 10
    assert 30 < doubted < 270


@pytest.mark.parametrize("told", [False, True])
@pytest.mark.parametrize("size", [1e-7, 1e-5])
def test_ones_that_are_wrong_are_charged_for(monkeypatch, size, told):
    """An immutable column that hardly varies, and what it explains beside an intercept.

    Rows are as wrong as a factor makes them, or as those who added them up tell.
    """
    rng, m, useful = np.random.default_rng(0), 6, 0
    layout = Layout(1, cost=np.array([np.inf]), fit_intercept=True)
    own = size / 1000 if told else size
    monkeypatch.setattr(triangular, "kappa_of_factor", lambda *_: own)
    for _ in range(200):
        weak = rng.normal(size=m)
        weak = (weak - weak.mean()) / np.linalg.norm(weak - weak.mean())
        f = np.ones(m) + size * 10.0 ** rng.uniform(0.7, 4) * m**0.5 * weak
        y = weak + 10.0 ** rng.uniform(-3, 0) * rng.normal(size=m)
        rows = np.column_stack([f, y, rng.normal(size=m), np.ones(m)])
        free, lengths = rows[:, [0, 3]], np.linalg.norm(rows, axis=0)
        best = np.linalg.lstsq(free / lengths[[0, 3]], y)[0] / lengths[[0, 3]]
        left = free @ best - y
        # All of them are wrong such that the best predictor seems worse.
        sign = np.array([np.sign(best[0]), -1.0, 0.0, np.sign(best[1])])
        wrong = rows + size * np.outer(left / np.linalg.norm(left), sign * lengths)
        account = Account(lengths, size) if told else None
        game = reduce_triangle(layout, wrong, Origin(), m, account=account).game
        nothing = np.float64(0.0)
        charge = game.rounding.charge(nothing, nothing, np.float64(1.0), game.yy * (1 + 1e-9))
        assert game.yy - charge <= left @ left * (1 + 1e-9)
        useful += game.yy - charge > 0.5 * (left @ left)
    assert useful > 20


@pytest.mark.parametrize("sums", [False, True])
def test_no_gap_is_small_in_units_that_are_not_known(sums):
    """Rounding decides which immutable columns count, and these explain nearly all labels."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(5, 6))
    X[:, 0] = 0.7 * X[:, 1] - 1.3 * X[:, 2]
    y = 1e7 + rng.normal(size=5)
    z, cost = np.maximum(y, 1e7 + 0.3), [np.inf] * 4 + [1.0, 2.0]
    if sums:
        others = GameStatistics.from_data(7 * X, y, z)
        found = (GameStatistics.from_data(X, y, z) + others - others).solve(1.0, feature_cost=cost)
    else:
        found = solve(X, y, z, 1.0, feature_cost=cost, solver="spectral")
    assert found.certificate.lower_bound == 0.0
    assert found.certificate.kind == "estimated"
    assert not found.status.ok


def test_singular_values_that_did_not_converge_are_as_wrong_as_the_longest_column(monkeypatch):
    """Where Jacobi's method gives up, short columns have the rounding of long ones."""
    rng, jacobi = np.random.default_rng(4), triangular.lapack.dgejsv
    X = rng.normal(size=(12, 4)) * [1e6, 1.0, 1e-3, 1.0]
    rows = np.column_stack([X, rng.normal(size=(12, 2))])
    sure = reduce_triangle(Layout(4), rows.copy(), Origin(), 12).game.rounding
    monkeypatch.setattr(triangular.lapack, "dgejsv", lambda *a, **k: (*jacobi(*a, **k)[:5], 1))
    found = reduce_triangle(Layout(4), rows.copy(), Origin(), 12)
    shown = X.astype(np.longdouble) @ found.vectors
    wrong = np.abs(shown.T @ shown - np.diag(found.game.sigma.astype(np.longdouble) ** 2))
    sums = np.linalg.norm(X, axis=0) @ np.abs(found.vectors)
    allowed = np.multiply.outer(sums, found.game.sigma)
    allowed = allowed + allowed.T
    assert (wrong > sure.kappa * allowed).any()
    assert (wrong <= found.game.rounding.kappa * allowed).all()


# Theorem R3: squared data that is wrong


def nearly_dependent(rng, lowest, n=4, m=20):
    """Columns of different lengths that have this least eigenvalue, at unit length."""
    U, V = np.linalg.qr(rng.normal(size=(m, n)))[0], np.linalg.qr(rng.normal(size=(n, n)))[0]
    unit = (U * np.append(np.sqrt(lowest), np.ones(n - 1))) @ V
    return unit / np.linalg.norm(unit, axis=0) * 10.0 ** rng.uniform(-2, 2, n)


@pytest.mark.parametrize("few", [400, 2], ids=["eigenvectors", "factor"])
@pytest.mark.parametrize("goals", [False, True])
@pytest.mark.parametrize("size", [1e-7, 1e-5])
def test_no_quadratic_form_is_larger_than_squared_data_allow(monkeypatch, few, goals, size):
    """R3: errors that lengthen the shortest combination of columns are charged in full."""
    monkeypatch.setattr(curvature, "FEW_COLUMNS", few)
    monkeypatch.setattr(curvature, "square_unit", lambda m, n: size)
    rng, told = np.random.default_rng(0), 0
    for share in (0.0, 3.0, 10.0, 30.0, 100.0):
        X = nearly_dependent(rng, share * size)
        y, z = rng.normal(size=(2, len(X)))
        own = Prover(GameData.from_user(X, y, z)).curvature
        B, lengths = X.T @ X, np.linalg.norm(X, axis=0)
        if goals:
            B = np.block([[B, X.T @ z[:, None]], [z[None] @ X, z @ z]])
        unit = B / np.sqrt(np.multiply.outer(np.diagonal(B), np.diagonal(B)))
        sign = np.sign(np.linalg.eigh(unit)[1][:, 0])
        own._square += size * np.outer(sign[:4] * lengths, sign[:4] * lengths)
        if goals:
            own._p_z += size * sign[:4] * sign[4] * lengths * np.linalg.norm(z)
        metric = own.with_goal(0.0, 1.0) if goals else own.alone(0.0)
        if metric is None:
            continue
        told += 1
        values, vectors = np.linalg.eigh(unit)
        rho = np.sqrt(np.diagonal(B)) * vectors[:, 0]
        assert values[0] > 0.0
        assert metric.norm(rho) >= values[0] ** -0.5
        assert metric.spread(np.abs(rho)) >= values[0] ** -0.5
        assert metric.floor <= np.linalg.eigvalsh(B)[0]
    assert told >= 2


# Theorem R2a: products that were formed from nothing but rounding


@pytest.mark.parametrize("size", [1e-8, 1e-6, 1e-4])
def test_losses_pay_for_the_square_of_rounding(size):
    """R2a: the data sees no point, so that products are rounding, which is rounded again."""
    rng = np.random.default_rng(0)
    X = np.outer(rng.normal(size=12), np.ones(2))
    y, z = 1e-3 * size * rng.normal(size=(2, 12))
    data, gamma = GameData.from_user(X, y, z), 4.0
    fresh, problem = Fresh(data), sphere_problem(data, gamma)
    rulers = amplify(fresh, size)
    s, c = 0.5, 0.5
    q = np.array([1.0, -1.0]) / np.sqrt(2)
    h = np.array([2.0 * np.sqrt(s * c)])
    w = h[0] * q
    # The product with q is A'e + f: e is as long as R2 allows, and f as its own sum is rounded.
    e = size * (rulers.columns @ np.abs(q))
    image = size * e * rulers.columns * np.sign(w)
    span = Span(h[:, None], image[:, None], np.zeros(1), False)
    r = np.append(w, c - s)
    points = Points(np.array([np.linalg.norm(w)]), np.array([c - s]), partial(np.copy, r[:, None]))
    losses, _ = measure_span(fresh, span, points, np.ones(1), np.array([gamma]), problem)
    # All that is left is c z - y.
    true = np.sum((c * z - y) ** 2)
    assert X @ w == pytest.approx(0.0, abs=1e-15)
    assert losses.square[0] > 10 * true
    assert losses.certain[0] <= true
    assert abs(losses.square[0] - true) <= losses.rounding[0]


# Theorem R5: slopes that rounding hides


@pytest.mark.parametrize("known", ["multiplier", "curvature", "curvature at zero", "floor"])
@pytest.mark.parametrize("size", [1e-8, 1e-7, 1e-6])
def test_matrices_pay_for_slopes_that_rounding_hides(monkeypatch, known, size):
    """R5: coefficients off by as much as leaves no slope to be seen, where the data sees little."""
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.normal(size=(10, 2)))[0]
    A = np.column_stack([basis[:, 0], basis[:, 0] + 1e-3 * basis[:, 1]])
    # Labels and goals are explained, so that errors of their squares are of second order too.
    targets = A @ rng.normal(size=(2, 2))
    prover = Prover(GameData.from_user(A, *targets.T))
    squared = prover.curvature if "curvature" in known else None
    rulers = amplify(prover.fresh, size)
    nu = 0.0 if known in ("curvature at zero", "floor") else 1e-6
    floor = np.linalg.eigvalsh(A.T @ A)[0] if known == "floor" else 0.0
    inverse = np.linalg.inv(A.T @ A + nu * np.eye(2))
    exact = inverse @ A.T @ targets
    hidden = size * rulers.columns[:, None] * (rulers.columns @ np.abs(exact)) * [[1.0], [-1.0]]
    moved = exact + inverse @ hidden
    product = prover.fresh.product

    def hides(x, y, z):
        slope, square, left = product(x, y, z)
        return slope - hidden, square, left

    monkeypatch.setattr(prover.fresh, "product", hides)
    found = matrices_at(
        prover, np.array([nu]), lambda some: (moved[:, :1], moved[:, 1:]), squared, floor
    )
    assert len(found.nu)
    true = targets.T @ (targets - A @ exact)
    for yy, yz, zz in found.M:
        gap = true - np.array([[yy, yz], [yz, zz]])
        # In units of what hidden slopes would add, were they not charged for.
        worth = np.trace(hidden.T @ inverse @ hidden)
        assert np.linalg.eigvalsh(gap)[0] >= -1e-6 * worth


# Single precision


def test_a_factor_in_single_precision_pays_for_numbers_that_were_rounded():
    """Little is left of a diagonal, and the digits of that which were cut off are missing."""
    rng, above = np.random.default_rng(0), 0
    for _ in range(200):
        one, other = rng.uniform(0.5, 1.0), 1e-3 * rng.uniform(0.5, 1.0)
        M = np.array([[one, other], [other, one]])
        true = one - other
        shift = true + rng.uniform(0.1, 0.4) * HALF_ULP
        single = M.astype(np.float32)
        left = single.copy()
        left[np.diag_indices(2)] -= np.float32(shift)
        above += spotrf(left, lower=1)[1] == 0
        assert positive.certain_in_single(single, 0.0, shift) <= true
    # Factors that would have shown too much.
    assert above > 10


def test_a_factor_in_single_precision_pays_for_its_own_rounding(monkeypatch):
    """The factor is that of a matrix whose entries are all as far off as they can be."""
    rng, k, above = np.random.default_rng(0), 60, []

    def flattering(single, **options):
        # |L||L'| has the diagonal of the matrix; two ulps are left for storing the factor.
        off = (k - 2) * HALF_ULP * np.diagonal(single).astype(float)
        factor = np.linalg.cholesky(single.astype(float) + np.diag(off))
        above.append(1)
        return np.asfortranarray(factor, dtype=np.float32), 0

    monkeypatch.setattr(positive, "spotrf", flattering)
    for lowest in (0.05, 0.2, 0.5):
        V = np.linalg.qr(rng.normal(size=(k, k)))[0]
        M = (V * np.linspace(lowest, 1.0, k)) @ V.T
        M = ((M + M.T) / 2).astype(np.float32)
        true = float(np.linalg.eigvalsh(M.astype(float))[0])
        lift = (k - 2) * HALF_ULP * float(np.diagonal(M).min() - lowest)
        shift = true + 0.9 * lift
        assert positive.certain_in_single(M, 0.0, shift) <= true
    assert len(above) == 3


def test_squares_in_single_precision_pay_for_every_term(monkeypatch):
    """Equal terms are rounded the same way each time, far beyond an ulp of their sum."""
    m, seen, shown = 30_000, [], positive.certain_in_single

    def watched(M, error, shift):
        seen.append((M.astype(float), error))
        return shown(M, error, shift)

    monkeypatch.setattr(projection, "certain_in_single", watched)
    for value in (1 / 3, 0.7, 0.9):
        F = np.zeros((m, 2))
        F[:, 0], F[: m // 2, 1] = value, value
        columns = FreeColumns.of(as_matrix(sp.csc_array(F)), np.arange(2), None, constant=False)
        free = SolvedProjection(columns)
        assert free.least > 0.0
    assert len(seen) == 3
    # Exactly: columns of unit length with so much in common.
    true = np.array([[1.0, np.sqrt(0.5)], [np.sqrt(0.5), 1.0]])
    wrong = [np.linalg.norm(M - true, 2) for M, _ in seen]
    stored = 2 * HALF_ULP * true.sum(axis=0).max()
    assert all(off <= error + stored for off, (_, error) in zip(wrong, seen, strict=True))
    # More than what is charged for storing the result.
    assert max(wrong) > 10 * stored


# What is projected away


def left_of(F, t):
    """What least squares on columns leave of a vector, exactly."""
    rows = [[Fraction(one) for one in row] for row in F.tolist()]
    rest, basis = [Fraction(one) for one in t.tolist()], []
    for column in zip(*rows, strict=True):
        own = list(column)
        for q in basis:
            share = _inner(q, own) / _inner(q, q)
            own = [a - share * b for a, b in zip(own, q, strict=True)]
        basis.append(own)
    for q in basis:
        share = _inner(q, rest) / _inner(q, q)
        rest = [a - share * b for a, b in zip(rest, q, strict=True)]
    return rest


def _inner(a, b):
    return sum(p * q for p, q in zip(a, b, strict=True))


def _apart(found, true):
    """Length of a difference."""
    off = [Fraction(a) - b for a, b in zip(found.tolist(), true, strict=True)]
    return float(_inner(off, off)) ** 0.5


@pytest.mark.parametrize("near", [1e-3, 1e-6, 1e-8])
@pytest.mark.parametrize("intercept", [False, True])
def test_projections_pay_for_columns_that_nearly_depend(near, intercept):
    """R2: the range of nearly dependent columns turns by their rounding over the little left."""
    worst = 0.0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        F = rng.normal(size=(12, 2))
        F[:, 1] = F[:, 0] + near * F[:, 1]
        X, (y, z) = np.column_stack([rng.normal(size=12), F]), rng.normal(size=(2, 12))
        data = GameData.from_user(
            X, y, z, feature_cost=[1.0, np.inf, np.inf], fit_intercept=intercept
        )
        rulers, free = Rulers.of(data), np.column_stack([F, np.ones(12)]) if intercept else F
        targets, _ = data.projected_targets
        errors = _apart(targets[:, 0], left_of(free, y)), _apart(targets[:, 1], left_of(free, z))
        assert errors[0] <= rulers.terms(np.zeros(1), 1.0, 0.0)
        assert errors[1] <= rulers.terms(np.zeros(1), 0.0, 1.0)
        error = _apart(data.projected.apply(np.ones(1)), left_of(free, X[:, 0]))
        assert error <= rulers.terms(np.ones(1), 0.0, 0.0)
        worst = max(worst, *errors)
    # Far beyond the rounding of sums.
    assert worst > 1e-2 * np.finfo(float).eps / near


@pytest.mark.parametrize("gone", ["labels", "goals", "difference"])
def test_what_a_projection_flushed_is_paid_for(gone):
    """R2: less than 1e-14 of a vector was taken for rounding, and need not have been."""
    F = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [0.0, 0.0]])
    little = np.array([0.0, 0.0, 0.6, 0.8])
    other = np.array([1.0, 2.0, -1.0, 1.0])
    # Unit vectors of the free columns: their projection is exact, and so is what it leaves.
    vector = 1e14 * np.array([1.0, 0.0, 0.0, 0.0]) + 1.9 * little
    pair = {
        "labels": (vector, other),
        "goals": (other, vector),
        "difference": (1e14 * other, 1e14 * other + 4.0 * little),
    }[gone]
    X = np.column_stack([np.arange(4.0), F])
    data = GameData.from_user(X, *pair, feature_cost=[1.0, np.inf, np.inf])
    rulers, (targets, _) = Rulers.of(data), data.projected_targets
    errors = [_apart(found, left_of(F, t)) for found, t in zip(targets.T, pair, strict=True)]
    allowed = [rulers.terms(np.zeros(1), *which) for which in ((1.0, 0.0), (0.0, 1.0))]
    assert errors[0] <= allowed[0]
    assert errors[1] <= allowed[1]
    # Something was flushed that was there.
    assert max(errors) > 0.5


@pytest.mark.parametrize("solver", ["krylov", "spectral", "gltr"])
def test_goals_that_hardly_vary_count_where_labels_are_as_small(solver):
    X = np.array([[1.0], [1.0], [-1.0], [-1.0]]) * 2.0**-10
    turns = np.array([1.0, -1.0, 1.0, -1.0])
    # Every goal is stored exactly, and so is what an intercept leaves of them.
    y, z = 3.0 * turns, 1e14 + turns * 60 / 64
    found = solve(X, y, z, 1.0, fit_intercept=True, solver=solver)
    # Coefficients of 2^20 make nearly everybody reach the goals, whose mean is free.
    assert found.certificate.lower_bound <= np.sum((60 / 64 - 3.0) ** 2 * turns**2)


def test_products_of_a_column_that_subtraction_left_shorter_than_rounding_count():
    """Found by an adversary: the column was taken for constant, and the bound was false by 6e-9."""
    X = np.array([[2.1e-3], [1.7e-3], [3.7e-3], [3.2e-3], [3.3e-3]])
    y = 910.0 * X[:, 0] + np.array([1e-3, -2e-3, 1e-3, 2e-3, -2e-3])
    z = np.zeros(5)
    for seed in range(40):
        rng = np.random.default_rng([31, seed])
        far_X, far_y = 10.0 ** rng.uniform(5, 7) * rng.normal(size=(4, 1)), rng.normal(size=4)
        far = GameStatistics.from_data(far_X, far_y, far_y)
        first, last = (GameStatistics.from_data(X[i], y[i], z[i]) for i in (slice(1), slice(1, 5)))
        cost, gamma = 2.0**-10, 2.0**-25
        found = ((first + far) + last - far).solve(gamma, feature_cost=[cost], fit_intercept=True)
        best = solve(X, y, z, gamma, feature_cost=[cost], fit_intercept=True)
        assert best.status.ok
        unit = float(np.square(y - y.mean()).sum())
        assert found.certificate.lower_bound <= best.objective + 1e-12 * unit


def labels_that_flushing_changes(columns, rows, ratio):
    """Goals are a multiple of an immutable column but for what is taken for rounding.

    Without that there are two optima of the same loss, with it the second is the better one.
    """
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.normal(size=(rows, columns + 2)))[0]
    fixed, seen, rest = basis[:, :columns], basis[:, columns], basis[:, columns + 1]
    y = 0.8 * seen + rest
    z = ratio * fixed[:, 0] + 0.8e-14 * columns * ratio * rest
    return np.column_stack([fixed, seen]), y, z


def test_labels_and_goals_that_are_flushed_are_charged_for():
    f, gamma = 120, 64.0
    X, y, z = labels_that_flushing_changes(f, 160, 100.0)
    cost = np.append(np.full(f, np.inf), 1.0)
    found = solve(X, y, z, gamma, feature_cost=cost, solver=Spectral(engine="qr"))
    losses = []
    for pull in np.roots([1.0, -1.0, 0.64 / gamma]).real:
        v = 0.8 / (1.0 - pull)
        # What the immutable columns do best, by refinement in more digits than are claimed.
        wanted = (y + v * v / gamma * (y - z) - v * X[:, f]).astype(np.longdouble)
        free = np.zeros(f, dtype=np.longdouble)
        for _ in range(3):
            left = np.asarray(wanted - X[:, :f].astype(np.longdouble) @ free, dtype=float)
            free += np.linalg.lstsq(X[:, :f], left, rcond=None)[0]
        losses.append(exact_sum(X, y, z, gamma, np.append(free.astype(float), v)))
    assert Fraction(found.certificate.lower_bound) <= min(losses) + Fraction(1e-11)


def exact_sum(X, y, z, gamma, coef):
    """Loss of a predictor whose last column alone is changeable, without rounding."""
    exact = [Fraction(float(w)) for w in coef]
    s = 1 / (1 + exact[-1] ** 2 / Fraction(gamma))
    rows = zip(X.tolist(), y.tolist(), z.tolist(), strict=True)
    told = (
        (sum(Fraction(x) * w for x, w in zip(row, exact, strict=True)), Fraction(a), Fraction(b))
        for row, a, b in rows
    )
    return sum((s * p + (1 - s) * b - a) ** 2 for p, a, b in told)


# Charges against the formulas of the theorems


def theorem(rounding, tau, size, upper, ways):
    """What theorems 1, 2, 3 and 3a charge for, by the best of some ways to bound coefficients."""
    kappa, top = rounding.kappa, np.sqrt(upper)
    charges = []
    for least, weak in ways:
        certain = np.sqrt(least**2 - kappa) if rounding.kind == "squared" else least - kappa
        weight = weak * np.sqrt(tau)
        if least < np.inf:
            weight = (top + size) / certain + weight * (least / certain)
        if rounding.kind == "squared":
            charges.append(kappa * (weight + size) ** 2)
        else:
            delta = kappa * (weight + size)
            charges.append(2 * delta * top + delta**2)
    return min(charges)


@pytest.mark.parametrize("kind", ["squared", "factor"])
def test_charges_are_no_less_than_theorems_say(kind):
    """In any units, and with columns that were wrong before anything was computed."""
    rng, sharp = np.random.default_rng(0), 0
    for _ in range(400):
        kappa, reach = 10.0 ** rng.uniform(-9, -2), 10.0 ** rng.uniform(-2, 2)
        ways = [(np.inf, reach)]
        if kind == "factor" and rng.random() < 0.7:
            ways.append((kappa * 10.0 ** rng.uniform(0.31, 3), reach * 10.0 ** rng.uniform(-9, 0)))
        least = (kappa**0.5 if kind == "squared" else kappa) * 10.0 ** rng.uniform(0.01, 4)
        if rng.random() < 0.5:
            ways.append((least, 0.0))
        y, z = rng.random(2)
        own = Rounding(
            kind=kind,
            kappa=kappa,
            reach=reach,
            y=y,
            z=z,
            least=least if ways[-1][1] == 0.0 else 0.0,
            splits=tuple(way for way in ways[1:] if way[1] > 0.0),
        )
        tau, k, upper = 10.0 ** rng.uniform(-8, 24), rng.random(), 10.0 ** rng.uniform(-6, 0)
        told, unit = own, 1.0
        if rng.random() < 0.5:
            sigma, unit = 2.0 ** rng.integers(-9, 10), 2.0 ** rng.integers(-9, 10)
            told = own.scaled(sigma, unit)
            tau_told, upper_told = tau * (sigma / unit) ** 2, upper / unit**2
        else:
            tau_told, upper_told = tau, upper
        where = np.float64(tau_told), np.float64(np.sqrt(k)), np.float64(1.0), upper_told
        charged = float(told.charge(*where)) * unit**2
        wanted = theorem(own, tau, y + np.sqrt(k) * z, upper, ways)
        # What the free part explains of the gap between labels and goals.
        wanted += (kind == "squared") * kappa * k * (y + z) ** 2
        assert charged >= wanted * (1 - 1e-9)
        sharp += charged <= 5 * wanted
    assert sharp > 200


@pytest.mark.parametrize("kind", ["squared", "factor"])
def test_columns_that_were_wrong_before_are_charged_for(kind):
    """As if the sums or the factor were as wrong as that besides."""
    own = Rounding(kind=kind, kappa=1e-9, reach=1.0, y=1.0, z=1.0, least=0.5)
    blur = 3e-7
    more = 1e-9 + (2 * blur + blur**2 if kind == "squared" else blur)
    where = np.float64(4.0), np.float64(0.5), np.float64(1.0), 0.3
    wanted = theorem(replace(own, kappa=more), 4.0, 1.5, 0.3, [(np.inf, 1.0), (0.5, 0.0)])
    assert own.blurred(blur).charge(*where) >= wanted
    lowest = own.blurred(blur).proved_lowest(0.04)
    by_size, share = 0.2 - blur, 0.2 * (1 - more / (0.5 - more)) if kind == "factor" else 0.0
    assert 0.0 < lowest <= max(by_size, share) ** 2


def test_what_is_certain_of_the_smallest_eigenvalue():
    """Predictions are wrong by the size of all columns, or by a share of themselves."""
    own = Rounding(kind="factor", kappa=1e-3, reach=1.0, y=1.0, z=1.0, least=0.1)
    assert own.proved_lowest(0.04) <= (0.2 - 1e-3) ** 2
    assert own.proved_lowest(1e-8) <= (1e-4 * (1 - 1e-3 / (0.1 - 1e-3))) ** 2
    assert own.proved_lowest(1e-8) > 0.9 * 1e-8


def test_rows_pay_for_goals_that_are_flushed():
    f = 40
    X, y, z = labels_that_flushing_changes(f, 60, 100.0)
    rng = np.random.default_rng(1)
    wide = np.hstack([X, rng.normal(size=(60, 300))])
    cost = np.append(np.full(f, np.inf), np.ones(301))
    data = GameData.from_user(wide, y, z, feature_cost=cost)
    for reduce in (reduce_rows_by_qr, reduce_rows_by_gram):
        game = reduce(data).game
        assert not game.zeta.any()
        # Goals are as long as a column of unit length a hundred times.
        lost = 0.8e-14 * f * 100.0
        assert game.rounding.kappa * (game.rounding.z - 100.0) >= 0.9 * lost


@pytest.mark.parametrize("kind", ["squared", "factor"])
def test_labels_that_immutable_columns_nearly_explain_may_be_longer(kind):
    own = Rounding(kind=kind, kappa=1e-9, reach=1.0, y=3.0, z=1.0)
    left = 1e-10
    longest = left**0.5 + 1e-9 * 3.0 if kind == "factor" else (left + 1e-9 * 3.0**2) ** 0.5
    assert own.label_length(left) >= longest * (1 - 1e-12)


def test_moments_that_no_data_has_are_charged_for():
    """Labels and goals, each of length one, whose product rounding has made larger than one."""
    moment = np.diag([1.0, 1.0, 1.0])
    moment[1, 2] = moment[2, 1] = 1.0 + 1e-6
    game = reduce_moments(Layout(1), moment, Origin(), 5).game
    assert game.rounding.slack >= 2e-6 * (1 - 1e-9)
