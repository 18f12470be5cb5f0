"""Bounds by residuals: no predictor is below them, whatever rounding did."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from spgls import Actions, GameStatistics, Population, Status, certify, solve, solve_path
from spgls.game.response import learner_loss
from spgls.matrix import RowBlocks, as_matrix
from spgls.matrix.squares import sum_rounding_down, sum_rounding_one_by_one
from spgls.population import GroupMoments
from spgls.reduction.data import GameData
from spgls.reduction.dependence import independent_columns
from spgls.reduction.exact import reduce_spectral
from spgls.reduction.rounding import kappa_of_sums
from spgls.solvers import Spectral
from spgls.solvers.iterative import curvature, residual
from spgls.solvers.iterative.by_products import Points, measure_span
from spgls.solvers.iterative.images import Frame, Span
from spgls.solvers.iterative.iterate import sphere_problem
from spgls.solvers.iterative.lowest import floor_of, lowest_pair
from spgls.solvers.iterative.prove import Prover, Wish
from spgls.solvers.iterative.rulers import Rulers
from spgls.solvers.krylov.lagrangians import Lagrangians
from spgls.solvers.krylov.matrices import matrices_at
from spgls.solvers.units import units_of

from .measures import compile_small

ITERATIVE = ("krylov", "gltr", "ltrsr", "rtr-newton", "admm")
HALF = Population([np.inf, 1.0], [0.5, 0.5])


# Games whose certificates were false, in their smallest form

SMALL = {
    "orthogonal labels": (
        [[1.0], [-1.0], [-1.0], [1.0], [1.0], [-1.0], [-1.0], [1.0]],
        [8.0, -2.0, -2.0, 0.0, -8.0, 2.0, 2.0, 0.0],
        [7.0, -3.0, -3.0, -1.0, -7.0, 3.0, 3.0, 1.0],
        HALF,
        [1.509886920392863],
    ),
    "no data": ([[0.0]], [1.0], [1.0], HALF, [4649.60417612513]),
    "weak column": (
        [[1.0, 0.0], [0.0, 1e-9]],
        [0.0, 1.0],
        [1.0, 0.0],
        Population([np.inf, 1.0], [0.875, 0.125]),
        [0.0, 1e9],
    ),
    "weak direction": (
        [[0.668, -0.388, 0.428], [-0.0551, 0.032, -0.0353]],
        [-3.4, -0.3],
        [-3.4, -0.3],
        HALF,
        [89154.65116277793, 86122.0930232246, -61082.55813954324],
    ),
    "graded columns": (
        [[1.0, 0.0], [0.0, 3e-8]],
        [1.0, 2.0],
        [0.0, 0.0],
        Population([np.inf, 1e6, 0.1], [0.4, 0.4, 0.2]),
        [1.0, 6.67e7],
    ),
}


@pytest.mark.parametrize("name", SMALL)
def test_no_predictor_is_below_the_bound(name):
    X, y, z, people, coef = (
        np.array(part) if i != 3 else part for i, part in enumerate(SMALL[name])
    )
    found = solve(X, y, z, people, solver="krylov")
    shares = zip(people.gammas, people.shares, strict=True)
    loss = sum(share * learner_loss(X, y, z, coef, gamma=gamma) for gamma, share in shares)
    assert found.certificate.lower_bound <= loss + 1e-12 * (y @ y)
    if found.status.ok:
        assert found.objective <= loss + 1e-9 * (y @ y)


@pytest.mark.parametrize("solver", ITERATIVE)
def test_immutable_columns_that_are_nearly_but_not_quite_dependent(solver):
    """Three times 0.1 is not 0.3: coefficients of 1e16 explain more than rounding can see."""
    X = np.array([[0.1, 0.3, 1.0], [1.0, 3.0, 0.5], [0.7, 2.1, -1.0], [0.0, 0.0, 1.0]])
    y, z = np.array([1.0, 0.0, 1.0, 0.5]), np.array([0.0, 1.0, 0.0, 2.0])
    found = solve(X, y, z, 1.0, feature_cost=[np.inf, np.inf, 1.0], solver=solver)
    # The same changeable coefficient, the others by exact least squares.
    w = Fraction(float(found.coef[2]))
    s = 1 / (1 + w**2)
    one, two, last = ([Fraction(v) for v in column] for column in X.T.tolist())
    target = [
        Fraction(a) - (1 - s) * Fraction(b) - s * w * c
        for a, b, c in zip(y.tolist(), z.tolist(), last, strict=True)
    ]

    def inner(a, b):
        return sum(p * q for p, q in zip(a, b, strict=True))

    a, b, d = inner(one, one), inner(one, two), inner(two, two)
    p, q = inner(one, target), inner(two, target)
    loss = inner(target, target) - (d * p * p - 2 * b * p * q + a * q * q) / (a * d - b * b)
    assert found.certificate.lower_bound <= loss
    assert found.objective > loss + 0.1
    assert not found.status.ok


def test_a_local_optimum_is_not_called_global():
    X = (
        np.array([[5.0, 1.3, 1.0], [-5.0, 1.0, -1.9], [5.0, -1.0, -1.9], [-5.0, -1.0, 1.9]] * 2)
        * 100
    )
    X[4, 1:], X[5, 1] = (130.0, 0.0), 130.0
    y = np.array([4.0, 0.0, 4.0, 0.0, 0.0, 2.0, 0.0, 2.0])
    z = np.array([2.0, -8.0, 0.0, -8.0, 2.0, 4.0, 0.0, 4.0])
    weight = [2.0, 0.4, 2.0, 1.1, 0.46, 2.2, 0.42, 0.41]
    options = {"fit_intercept": True, "sample_weight": weight}
    best = solve(X, y, z, 6.103515625e-05, **options)
    for solver in ITERATIVE:
        found = solve(X, y, z, 6.103515625e-05, solver=solver, **options)
        assert found.certificate.lower_bound <= best.objective + 1e-12 * (y @ y)
        if found.status.ok:
            assert found.objective <= best.objective + 1e-9 * (y @ y)


def test_a_pole_is_proved_however_columns_are_turned():
    """Where multipliers are at a pole, one column may be all that is there or only in part."""
    b, c = np.array([1, 1, -1, -1] * 2) / 2, np.array([1, -1, -1, 1] * 2) / 2
    a = np.array([2.0, -2.0] * 4)
    y, z = np.array([3, 1, 3, 1, -1, -3, -1, -3.0]), np.array([-3, 7, -3, 7, 1, -5, 1, -5.0])
    apart = solve(np.column_stack([a, b, c]), y, z, 8.0, solver="krylov")
    turned = np.column_stack([b - a, a + b, c])
    mixed = solve(turned, y, z, 8.0, feature_cost=[0.5, 0.5, 1.0], solver="krylov")
    for found in (apart, mixed):
        assert found.status is Status.SEVERAL_OPTIMA
        assert found.certificate.kind == "proved"
        assert found.certificate.relative_gap <= 1e-9


@pytest.mark.parametrize("solver", ITERATIVE)
@pytest.mark.parametrize("unit", [1e-100, 1e-75, 1e75, 1e100])
def test_labels_of_any_unit(solver, unit):
    rng = np.random.default_rng(0)
    X, y, z = rng.normal(size=(12, 3)), *rng.normal(size=(2, 12))
    plain = solve(X, y, z, 1.0, solver=solver)
    found = solve(X, unit * y, unit * z, unit**2, solver=solver)
    assert found.status is plain.status
    np.testing.assert_allclose(found.coef, unit * plain.coef, rtol=1e-6)
    assert found.certificate.lower_bound <= found.objective


def test_strengths_that_no_units_bring_into_range_are_refused():
    X, y = np.array([[1.0], [2.0]]), np.array([1e100, 0.0])
    for call in (solve, lambda *game: certify(*game, np.zeros(1))):
        with pytest.raises(ValueError, match=r"gamma 1 is out of range.*other scales\."):
            call(X, y, y, 1.0)
    with pytest.raises(ValueError, match="X holds numbers too small to be squared"):
        solve(1e-150 * X, np.ones(2), np.ones(2), 1.0)


@pytest.mark.parametrize("solver", ["auto", "krylov", "gltr"])
@pytest.mark.parametrize("weight", [1e-300, 1e-180, 1e-156, 1e155, 1e200])
def test_weights_of_any_size_change_nothing_but_the_unit(solver, weight):
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(8, 3)), rng.normal(size=8)
    z, share = np.maximum(y, 0.2), rng.uniform(0.1, 1.0, size=8)
    games = [2.0] if solver == "gltr" else [2.0, Population.mixed(2.0, 0.5)]
    for people in games:
        plain = solve(X, y, z, people, sample_weight=share, solver=solver)
        found = solve(X, y, z, people, sample_weight=weight * share, solver=solver)
        assert found.status is plain.status
        np.testing.assert_allclose(found.coef, plain.coef, rtol=1e-6)
        assert found.objective / weight == pytest.approx(plain.objective, rel=1e-9)
        assert found.certificate.relative_gap <= 1e-9
        assert found.multiplier / weight == pytest.approx(plain.multiplier, rel=1e-4)
        proof = certify(X, y, z, people, 0.0 * plain.coef, sample_weight=weight * share)
        bound = proof.lower_bound / weight
        assert bound == pytest.approx(plain.certificate.lower_bound, rel=1e-8)


@pytest.mark.parametrize("weight", [1e-188, 1e-180, 1e-160])
def test_tiny_weights_do_not_raise_a_bound(weight):
    """Goals that are the labels: the loss falls towards nothing as coefficients grow."""
    X, y = np.array([[1.0], [2.0], [4.0]]), np.array([1.0, 3.0, 2.0])
    found = solve(X, y, y, 1.0, sample_weight=np.full(3, weight), tol=1e-2)
    rival, q = Fraction(10**9), Fraction(10**18)
    loss = sum(((rival * int(x) - int(t)) / (1 + q)) ** 2 for x, t in zip(X[:, 0], y, strict=True))
    assert Fraction(found.certificate.lower_bound) <= loss * Fraction(weight)


def test_weights_and_ridges_without_squares_are_refused():
    X, y = np.array([[1.0], [2.0], [4.0]]), np.array([1.0, 3.0, 2.0])
    with pytest.raises(ValueError, match=r"sample_weight holds numbers too large .* 1e\+307"):
        solve(X, y, y, 1.0, sample_weight=np.full(3, 1e307))
    calls = (
        lambda: solve(X, y, y + 1.0, 1.0, ridge=1e296),
        lambda: solve_path(X, y, y + 1.0, [1.0, 2.0], ridge=1e296),
        lambda: certify(X, y, y + 1.0, 1.0, np.ones(1), ridge=1e296),
        lambda: GameStatistics.from_data(X, y, y + 1.0).solve(1.0, ridge=1e296),
    )
    for call in calls:
        with pytest.raises(ValueError, match=r"ridge 1e\+296 is out of range.*are zero either way"):
            call()
    assert solve(X, y, y + 1.0, 1.0, ridge=1e140).status.ok


@pytest.mark.parametrize("solver", ["krylov", Spectral(engine="qr"), Spectral(engine="gram")])
@pytest.mark.parametrize("free", [False, True])
def test_data_without_squares_is_refused_by_every_engine(solver, free):
    X = np.array([[1e159, 2e158], [1e158, -1e159], [3e158, 1e158]])
    cost = [1.0, np.inf if free else 1.0]
    y, z = np.array([1.0, 2.0, -1.0]), np.array([0.5, 0.0, 1.0])
    with pytest.raises(ValueError, match="too large to be squared in double precision"):
        solve(X, y, z, 1e-300, solver=solver, feature_cost=cost)


def test_goals_of_any_size_raise_nothing():
    for people in (HALF, 1.0):
        found = solve(np.array([[1.0]]), np.array([1.0]), np.array([1e50]), people, solver="krylov")
        assert np.isfinite(found.objective)
        assert found.certificate.lower_bound <= 1.0


# The inequalities with rounding amplified


class Noisy(residual.Fresh):
    """Residuals and products that are wrong by all that the rulers allow, in bad directions."""

    def __init__(self, data, size, rng):
        super().__init__(data)
        self._size, self._rng = size, rng
        rulers = Rulers.of(data)
        self.noisy = replace(rulers, across=size, down=size)

    @property
    def rulers(self):
        return self.noisy

    def product(self, x, y, z):
        data, rng, size = self.data, self._rng, self._size
        A = data.projected.apply(np.eye(len(self.noisy.columns)))
        targets, _ = data.projected_targets
        r = A @ x + np.outer(targets[:, 1], z) - np.outer(targets[:, 0], y)
        terms = self.noisy.columns @ np.abs(x) + y * self.noisy.y + np.abs(z) * self.noisy.z
        # Away from the optimum the loss looks larger, and the slope smaller, than they are.
        hide = A @ np.linalg.lstsq(A.T @ A, -A.T @ r, rcond=1e-8)[0]
        push = [r, hide, rng.normal(size=r.shape)][int(rng.integers(3))]
        push = push / np.fmax(np.linalg.norm(push, axis=0), 1e-300) * rng.choice([-1.0, 1.0])
        noisy = r + size * terms * push
        length = np.linalg.norm(noisy, axis=0)
        slope = A.T @ noisy
        slope -= np.sign(slope) * size * np.outer(self.noisy.columns, length)
        square = length**2 + size * terms * length * rng.uniform(-1.0, 1.0)
        left = targets.T @ noisy
        left += size * np.outer([self.noisy.y, self.noisy.z], length) * rng.choice([-1.0, 1.0])
        return slope, np.maximum(square, 0.0), left


def noisy_prover(data, size, rng, monkeypatch):
    """A prover that sees products, and squared data, with so much rounding."""
    monkeypatch.setattr(curvature, "square_unit", lambda m, n: size)
    prover = Prover(data)
    object.__setattr__(prover, "fresh", Noisy(data, size, rng))
    columns, own = prover.fresh.noisy.columns, prover.curvature
    noise = rng.uniform(-1.0, 1.0, (len(columns), len(columns)))
    own._square += size * (noise + noise.T) / 2 * np.outer(columns, columns)
    own._p_z += size * rng.uniform(-1.0, 1.0, len(columns)) * columns * prover.fresh.noisy.z
    return prover


def told_games(seed):
    """Data with everything that a projection, weights and costs can do to it."""
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(4, 30)), int(rng.integers(1, 6))
    X = rng.normal(size=(m, n)) * 10.0 ** rng.uniform(-2, 2, n)
    if seed % 3 == 0:
        X += 10.0 ** rng.uniform(0, 2, n)
    cost = np.append(10.0 ** rng.uniform(-1, 1, n), np.inf)
    X = np.column_stack([X, rng.normal(size=m)])
    y, z = rng.normal(size=(2, m)) * 10.0 ** rng.uniform(-1, 1, (2, 1))
    options = {"fit_intercept": bool(seed % 2)}
    if seed % 4 < 2:
        options["feature_cost"] = cost
    if seed % 5 == 0:
        options["sample_weight"] = rng.integers(0, 3, m) + (np.arange(m) < 3)
    return X, y, z, options, rng


@pytest.mark.parametrize("size", [1e-8, 1e-6, 1e-4, 1e-3])
@pytest.mark.parametrize("seed", range(40))
def test_one_strength_with_rounding_amplified(seed, size, monkeypatch):
    X, y, z, options, rng = told_games(seed)
    gamma = 10.0 ** rng.uniform(-3, 3)
    best = solve(X, y, z, gamma, **options)
    data = GameData.from_user(X, y, z, **options)
    prover = noisy_prover(data, size, rng, monkeypatch)
    for stretch in (1.0, 1.0 + size, 1.3):
        found = prover.fresh.residuals(stretch * best.coef[:, None], np.array([gamma]))
        A, (targets, _) = data.projected.apply(np.eye(len(found.x))), data.projected_targets
        true = A.T @ (A @ found.x[:, 0] + targets @ [-1.0, found.c[0]])
        moved = (1 + 1e-9) * prover.fresh.noisy.columns * found.moved[0]
        assert (np.abs(found.slope[:, 0] - true) <= moved).all()
        none = np.full(1, np.nan)
        wish = Wish(np.array([np.inf]), 1e-3 * data.loss(data.y), none, np.zeros(1))
        bounds, kinds = prover.bounds(found, wish)
        assert kinds == ["proved"]
        assert bounds.lower[0] <= best.objective * (1 + 1e-12)


@pytest.mark.parametrize("kind", ["data", "bordered", "whole frame", "frame"])
@pytest.mark.parametrize("size", [1e-8, 1e-6, 1e-4, 1e-3])
@pytest.mark.parametrize("seed", range(20))
def test_products_of_a_basis_with_rounding_amplified(seed, size, kind):
    """Each product is wrong by all that is allowed, and so are those with labels and goals."""
    X, y, z, options, rng = told_games(seed)
    gamma, bordered = 10.0 ** rng.uniform(-3, 3), kind == "bordered"
    best = solve(X, y, z, gamma, **options)
    data = GameData.from_user(X, y, z, **options)
    fresh, problem = Noisy(data, size, rng), sphere_problem(data, gamma)
    rulers, half = fresh.noisy, np.sqrt(gamma) / 2
    A, (targets, _) = data.projected.apply(np.eye(problem.size - 1)), data.projected_targets
    # L, and the lengths of its columns before projection.
    L = np.column_stack([half * A, targets[:, 1] / 2])
    sides = np.append(half * rulers.columns, rulers.z / 2)
    alpha = best.alpha
    for stretch in (1.0, 0.7):
        s, c = 1 / (1 + stretch**2 * alpha), stretch**2 * alpha / (1 + stretch**2 * alpha)
        v = stretch * best.coef[data.layout.changeable]
        w = s / half * (v if data.layout.price is None else v / data.layout.price)
        r = np.append(w, c - s)
        true = problem.value(r, problem.product(r))
        point, M, lengths = (r, L, sides) if bordered else (w, A, rulers.columns)
        # An orthonormal basis that holds the point, and no column of it.
        held = np.column_stack([point, rng.normal(size=(len(point), 2))])[:, : len(point)]
        Q = np.linalg.qr(held)[0]
        Q = Q @ np.linalg.qr(rng.normal(size=(Q.shape[1],) * 2))[0]
        h = Q.T @ point
        # Errors along the predictions add up, whatever the signs of the coordinates.
        along = np.outer(M @ point, np.sign(h)) * rng.choice([-1.0, 1.0])
        push = [along, rng.normal(size=along.shape)][int(rng.integers(2))]
        push *= size * (lengths @ np.abs(Q)) / np.fmax(np.linalg.norm(push, axis=0), 1e-300)
        seen = M @ Q
        sizes = np.linalg.norm(seen, axis=0)
        sign = rng.choice([-1.0, 1.0], size=Q.shape)
        images = M.T @ (seen + push) + size * sign * np.outer(lengths, sizes)
        noisy = sphere_problem(data, gamma)
        wrong = [
            size * rng.uniform(-1, 1, len(w)) * rulers.columns * t for t in (rulers.y, rulers.z)
        ]
        noisy.targets.p_y = problem.p_y + wrong[0]
        noisy.targets.p_z = problem.p_z + wrong[1]
        noisy.g = problem.g + size * rng.uniform(-1, 1, len(sides)) * sides * (
            rulers.y + rulers.z / 2
        )
        frame, count = None, 1
        if "frame" in kind:
            # A basis that holds all of it, or not; neither quite orthonormal.
            columns, count = np.column_stack([images, noisy.p_z, noisy.p_y]), 2
            more = columns if kind == "whole frame" else rng.normal(size=(len(w), 1))
            more = np.linalg.qr(np.column_stack([Q, more]))[0][:, Q.shape[1] :]
            basis = np.column_stack([Q, more])
            basis = basis + size / 10 * rng.uniform(-1, 1, basis.shape) / np.sqrt(basis.size)
            basis[:, : Q.shape[1]] = Q
            frame = Frame.of(Q, basis, columns)
        span = Span(np.tile(h[:, None], count), images, sizes, bordered, frame)
        at = np.full(count, stretch**2 * alpha), np.full(count, gamma)
        points = np.full(count, np.linalg.norm(w)), np.full(count, c - s)
        points = Points(*points, partial(np.tile, r[:, None], count))
        told = []
        fresh.best_bound = lambda of, *rest, told=told, **more: (
            told.append(of) or Noisy.best_bound(fresh, of, *rest, **more)
        )
        losses, bounds = measure_span(fresh, span, points, *at, noisy)
        if kind == "data":
            given = half * (images @ h) + c * noisy.p_z - noisy.p_y
            exact = A.T @ (half * (A @ w) + targets @ [-1.0, c])
            moved = (1 + 1e-9) * rulers.columns * told[0].moved
            assert (np.abs(given - exact) <= moved).all()
        assert (abs(losses.square - true) <= losses.rounding).all()
        assert (bounds.lower <= best.objective * (1 + 1e-12)).all()


@pytest.mark.parametrize("size", [1e-8, 1e-6, 1e-4, 1e-3])
@pytest.mark.parametrize("seed", range(20))
def test_matrices_below_the_true_ones_with_rounding_amplified(seed, size, monkeypatch):
    X, y, z, options, rng = told_games(seed)
    data = GameData.from_user(X, y, z, **options)
    prover = noisy_prover(data, size, rng, monkeypatch)
    A = data.projected.apply(np.eye(data.projected.shape[1]))
    targets, _ = data.projected_targets
    top = np.linalg.norm(A, 2) ** 2
    nu = top * np.append(10.0 ** rng.uniform(-6, 2, 8), [0.0, -1e-3])

    def lift(some):
        exact = [np.linalg.solve(A.T @ A + one * np.eye(A.shape[1]), A.T @ targets) for one in some]
        both = np.array(exact) * (1.0 + size * rng.normal(size=(len(some), 1, 1)))
        return both[:, :, 0].T, both[:, :, 1].T

    found = matrices_at(prover, nu, lift, prover.curvature)
    assert not found.estimated.any()
    for one, (yy, yz, zz) in zip(found.nu, found.M, strict=True):
        inside = A @ np.linalg.solve(A.T @ A + one * np.eye(A.shape[1]), A.T @ targets)
        true = targets.T @ (targets - inside)
        below = np.array([[yy, yz], [yz, zz]])
        scale = np.linalg.norm(targets, axis=0)
        # In units of labels and goals, so that both count.
        gap = (true - below) / np.outer(scale, scale)
        assert np.linalg.eigvalsh((gap + gap.T) / 2)[0] >= -1e-10 * (1.0 + abs(one) / top)


@pytest.mark.parametrize("few", [400, 2], ids=["eigenvectors", "factor"])
def test_matrices_hold_for_any_coefficients_beside_dependent_columns(few, monkeypatch):
    """A part in the null space is seen by no row, but the multiplier's price counts it."""
    monkeypatch.setattr(curvature, "FEW_COLUMNS", few)
    rng = np.random.default_rng(0)
    A = rng.integers(-4, 5, size=(12, 4)).astype(float)
    X, (y, z) = np.column_stack([A, A[:, 0]]), rng.normal(size=(2, 12))
    null = np.array([1.0, 0.0, 0.0, 0.0, -1.0])
    prover, nus = Prover(GameData.from_user(X, y, z)), np.array([0.0, 0.5, 5.0, 50.0])
    inverse = [np.linalg.pinv(X.T @ X + nu * np.eye(5)) for nu in nus]
    for size in (0.0, 1e-3, 1.0, 10.0):

        def lift(some, size=size):
            own = [inverse[nus.tolist().index(nu)] @ X.T for nu in some]
            return tuple(np.array([P @ t + size * null for P in own]).T for t in (y, z))

        found = matrices_at(prover, nus, lift, prover.curvature)
        assert set(found.nu) == set(nus)
        for nu, (yy, yz, zz) in zip(found.nu, found.M, strict=True):
            pair = np.column_stack([y, z])
            own = inverse[nus.tolist().index(nu)]
            true = pair.T @ (pair - X @ own @ X.T @ pair)
            gap = true - np.array([[yy, yz], [yz, zz]])
            assert np.linalg.eigvalsh(gap)[0] >= -1e-10


@pytest.mark.parametrize("basis", [True, False])
def test_coefficients_that_are_not_finite_prove_nothing_and_spoil_nothing(basis, monkeypatch):
    monkeypatch.setattr("spgls.reduction.data.takes_basis", lambda work: basis)
    monkeypatch.setattr("spgls.matrix.solved._FEW", 0)
    rng = np.random.default_rng(0)
    X, (y, z) = sp.csr_array(rng.normal(size=(12, 4))), rng.normal(size=(2, 12))
    data = GameData.from_user(X, y, z, feature_cost=[1.0, 1.0, 1.0, np.inf])
    # Products that are remembered are where others begin.
    data.projected.apply(np.ones(3))
    nus, x = np.array([1.0, 2.0, 3.0]), rng.normal(size=(3, 3))

    def lift(some):
        own = x.copy()
        own[:, 1] = np.inf
        return own, x

    found = matrices_at(Prover(data), nus, lift, None)
    assert set(found.nu) == {1.0, 3.0}


# Sums of many equal terms, each of which is rounded the same way

STORED = {
    "rows": np.ascontiguousarray,
    "columns": np.asfortranarray,
    "sparse rows": sp.csr_array,
    "sparse columns": sp.csc_array,
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("stored", STORED)
def test_sums_of_equal_terms_are_within_their_rounding(stored, compiled, monkeypatch):
    """R2 presupposes it of ``|r|^2``, ``A'r`` and ``z'r``, Theorem 1 of second moments."""
    if compiled:
        pytest.importorskip("numba", reason="there are no compiled products")
        compile_small(monkeypatch)
    m = 60_000
    for value in (1 / 3, 0.9, 1.1, 0.57):
        X, y = STORED[stored](np.full((m, 2), value)), np.full(m, value)
        # Twice, because a halved number is as hard to add.
        data = GameData.from_user(X, y, 2 * y)
        fresh = residual.Fresh(data)
        slope, square, left = fresh.product(np.zeros((2, 1)), np.ones(1), np.zeros(1))
        true = m * Fraction(value) ** 2
        _, moved = fresh.doubt(np.zeros((2, 1)), 0.0, square)
        allowed, length = fresh.doubt(np.zeros((2, 1)), 0.0, square)[0][0], float(true) ** 0.5
        assert abs(Fraction(float(square[0])) - true) <= allowed
        assert abs(Fraction(float(slope[0, 0])) + true) <= moved[0] * length
        assert abs(Fraction(float(left[1, 0])) + 2 * true) <= 2 * moved[0] * length
        game = reduce_spectral(data, "gram").game
        moment = data.matrix.moment(np.column_stack([y, 2 * y]), None, None)
        for sum_ in (moment[0, 0], moment[0, 1], moment[0, 2]):
            assert abs(Fraction(float(sum_)) - true) <= game.rounding.kappa * true


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("width", [None, 1, 2, 9])
def test_rows_with_many_entries_are_added_in_pieces(width, compiled, monkeypatch):
    """So that nobody has to count the entries of each column to know how wrong sums can be."""
    if compiled:
        pytest.importorskip("numba", reason="there are no compiled products")
        compile_small(monkeypatch)
    m, value = 90_000, 1 / 3
    matrix = as_matrix(sp.csr_array(np.full((m, 4), value)))
    assert matrix.longest_sum < m / 10
    true = m * Fraction(value) ** 2
    allowed = sum_rounding_down(matrix) * true
    u = np.full(m if width is None else (m, width), value)
    for sum_ in (*matrix.cross(u).ravel(), *matrix.moment(u.reshape(m, -1), None, None).ravel()):
        assert abs(Fraction(float(sum_)) - true) <= allowed
    both = matrix.gram(np.full(4 if width is None else (4, width), 1.0))
    for sum_ in both.ravel():
        # Each prediction is a sum of four terms.
        assert abs(Fraction(float(sum_)) - 4 * true) <= 4 * allowed


@pytest.mark.parametrize("compiled", [False, True])
def test_entries_that_are_stored_in_many_parts_pay_for_each(compiled, monkeypatch):
    """Sums over pieces of the rows have more terms than rows then."""
    if compiled:
        pytest.importorskip("numba", reason="there are no compiled products")
        compile_small(monkeypatch)
    m, parts, value = 20_000, 50, 1 / 3
    stored = np.full(m * parts, value), np.zeros(m * parts, int), parts * np.arange(m + 1)
    matrix = as_matrix(sp.csr_array(stored, shape=(m, 1)))
    true = m * parts * Fraction(value) ** 2
    got = matrix.cross(np.full(m, value))[0]
    assert abs(Fraction(float(got)) - true) <= sum_rounding_down(matrix) * true


@pytest.mark.parametrize("rows", [1, 3, 100])
def test_many_short_blocks_pay_for_each(rows):
    """R2 and Theorem 1 presuppose it: sums over blocks are added one by one."""
    m, value = 60_000, 1 / 3
    X = np.full((m, 1), value)
    matrix = RowBlocks([X[at : at + rows] for at in range(0, m, rows)])
    true, u = m * Fraction(value) ** 2, np.full((m, 1), value)
    allowed = sum_rounding_down(matrix) * true
    moments = matrix.moment(u, None, None)
    for got in (matrix.cross(u), matrix.gram(np.ones(1)), moments):
        assert all(abs(Fraction(one) - true) <= allowed for one in got.ravel().tolist())
    kappa = max(kappa_of_sums(m), sum_rounding_one_by_one(matrix))
    assert all(abs(Fraction(one) - true) <= kappa * true for one in moments.ravel().tolist())
    # Blocks of some length change nothing.
    assert RowBlocks([X[:30_000], X[30_000:]]).additions == 0


def test_squares_of_sparse_columns_pay_for_every_term():
    """R3 presupposes it of the entries of squared data."""
    m, value = 200_000, 1 / 3
    X, y = sp.csc_array(np.full((m, 1), value)), np.full(m, value)
    own = Prover(GameData.from_user(X, y, -y)).curvature
    true = m * Fraction(value) ** 2
    assert abs(Fraction(float(own._square[0, 0])) - true) <= own._unit * true
    assert abs(Fraction(float(own._p_z[0])) + true) <= own._unit * true


@pytest.mark.parametrize("seed", range(5))
def test_squares_pay_for_columns_that_were_combined(seed):
    """R3: actions that nearly replace each other leave few digits of what they combine."""
    rng, near = np.random.default_rng(seed), 2.0**-22
    moves = np.array([[1.0, 1.0], [1.0, 1.0 + near]])
    X = rng.normal(size=(9, 2)) @ moves
    data = GameData.from_user(X, *rng.normal(size=(2, 9)), feature_cost=Actions(moves))
    prover = Prover(data)
    # What it does to v = Rw, R the triangular factor in the library's own coordinates.
    change, price = data.layout.coordinates.change, data.layout.price
    inverse = [[Fraction(one) for one in row] for row in change.inwards(np.eye(2)).tolist()]
    (a, b), (c, d) = inverse
    det = a * d - b * c
    E = [[d / det, -b / det], [-c / det, a / det]]
    rows = [[Fraction(one) for one in row] for row in X.tolist()]
    columns = [[sum(x * e[j] for x, e in zip(row, E, strict=True)) for row in rows] for j in (0, 1)]
    lengths = prover.fresh.rulers.columns
    for i in range(2):
        for j in range(2):
            true = sum(p * q for p, q in zip(columns[i], columns[j], strict=True))
            wrong = abs(Fraction(float(prover.curvature._square[i, j])) - true)
            assert wrong <= prover.curvature._unit * lengths[i] * lengths[j]
    assert (price == 1.0).all()


def test_certify_believes_no_sum_of_equal_terms_beyond_its_rounding(monkeypatch):
    """Nobody should be moved, so the best loss is that of the labels, which is known exactly.

    One column speaks of two rows only, so that a predictor off the best one is judged by sums
    that are all rounded the same way.
    """
    pytest.importorskip("numba", reason="there are no compiled products")
    compile_small(monkeypatch)
    m = 60_000
    X = np.zeros((m, 2))
    X[:2, 0], X[2:4, 1] = [1.0, -1.0], [1.0, -1.0]
    for value in (1 / 3, 0.9, 2 / 3):
        y = np.full(m, value)
        for size in (0.0, 1e-2):
            proof = certify(X, y, -y / 2, 1e8, np.array([size, 0.0]))
            assert Fraction(proof.lower_bound) <= m * Fraction(value) ** 2


# What the bounds are made of


@pytest.mark.parametrize("seed", range(30))
def test_lagrangians_on_intervals(seed):
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 4))
    gammas = [*10.0 ** rng.uniform(-3, 3, count), np.inf][: count + seed % 2]
    shares = rng.dirichlet(np.ones(len(gammas)))
    root = rng.normal(size=(5, 2)) * 10.0 ** rng.uniform(-1, 2, 2)
    gram = root.T @ root
    delta = root[:, 0] - root[:, 1]
    M = np.array([[gram[0, 0], gram[0, 1], gram[1, 1]]]) * rng.uniform(0.0, 1.0)
    own = Lagrangians(
        GroupMoments(gammas, shares),
        float(delta @ delta),
        float(rng.choice([0.0, 1.0])),
        rng.normal(size=1),
        M,
    )
    low = 10.0 ** rng.uniform(-4, 4, 20)
    high = low * np.exp(10.0 ** rng.uniform(-6, 0, 20))
    bound, middle = own.on_intervals(low, high)
    inside = low * (high / low) ** np.linspace(0.0, 1.0, 101)[:, None]
    least = np.array([own.best(t)[1] for t in inside]).min(axis=0)
    size = np.abs(own.best(low)[1]) + np.abs(M).sum() + own.apart
    assert (bound <= least + 1e-12 * size).all()
    # To second order in the width.
    width = np.log(high / low)
    wide = np.abs(own.nu[0]) * high + own.ridge * high + size
    assert (middle - bound <= 40 * wide * width).all()
    far = 10.0 ** np.linspace(-8, 8, 400)
    for t in (1e-3, 1.0, 1e3):
        assert own.towards_zero(t) <= own.best(far[far <= t])[1].min() + 1e-12 * size.max()
        assert own.towards_infinity(t) <= own.best(far[far >= t])[1].min() + 1e-9 * size.max()


@pytest.mark.parametrize(
    "spectrum",
    [np.linspace(0.1, 1, 300), np.geomspace(1e-3, 1, 300), np.r_[1e-2, np.linspace(0.5, 1, 299)]],
    ids=["even", "geometric", "one below"],
)
def test_a_random_start_bounds_the_spectrum_from_below(spectrum):
    operator = SimpleNamespace(size=len(spectrum), product=lambda v: spectrum * v)
    for seed in range(10):
        for steps in (5, 20, 80):
            pair = lowest_pair(operator, np.random.default_rng(seed), -0.9 * spectrum[0], steps)
            assert pair.floor <= spectrum.min() <= pair.value + 1e-14
    # A start that misses the lowest eigenvector is what the chance is about.
    d, e = np.array([1.0, 1.0]), np.array([1e-9, 1e-9])
    assert floor_of(d, e, 1.0, 100) <= 1.0


def test_dependent_columns_are_told_without_rounding():
    rng = np.random.default_rng(0)
    group = np.eye(3)[rng.integers(0, 3, 20)]
    x = rng.normal(size=20)
    ones = np.ones((20, 1))
    assert independent_columns(np.column_stack([group, ones])) is not None
    assert independent_columns(group, ones) is not None
    assert len(independent_columns(group, ones)) == 2
    assert len(independent_columns(np.column_stack([x, 4 * x, -x / 2]))) == 1
    assert independent_columns(np.column_stack([x, 3 * x * (1 + 2e-16)])) in (None, [1])
    assert independent_columns(np.column_stack([x, x * (1 + 1e-14)])) is None
    # As many columns as different rows span everything.
    rows = np.repeat(rng.normal(size=(3, 5)), 4, axis=0)
    assert len(independent_columns(rows)) == 3


# Populations from a Krylov space


@pytest.mark.parametrize("seed", range(12))
def test_populations_are_proved(seed):
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(20, 80)), int(rng.integers(2, 12))
    X = rng.normal(size=(m, n))
    y = X @ rng.normal(size=n) + rng.normal(size=m)
    z = y + np.abs(rng.normal(size=m))
    gammas = [np.inf, *10.0 ** rng.uniform(-2, 2, 1 + seed % 3)]
    people = Population(gammas, [1.0 / len(gammas)] * len(gammas))
    options = {"fit_intercept": bool(seed % 2), "ridge": float(seed % 4 == 0)}
    found = solve(X, y, z, people, solver="krylov", **options)
    best = solve(X, y, z, people, **options)
    assert found.status is Status.OPTIMAL
    assert found.certificate.kind == "proved"
    assert found.certificate.lower_bound <= best.objective + 1e-12 * (y @ y)
    assert abs(found.objective - best.objective) <= 2e-9 * (y @ y)


def test_populations_on_wide_data_are_proved_without_squares(monkeypatch):
    """A null space leaves no negative multiplier, so none has to be believed."""
    monkeypatch.setattr("spgls.solvers.iterative.curvature.MOST_COLUMNS", 0)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 90))
    y = X @ rng.normal(size=90) / 9 + rng.normal(size=60)
    found = solve(X, y, y + 3.0 + rng.normal(size=60), Population.mixed(1.0), solver="krylov")
    assert found.status.ok
    assert found.certificate.kind == "proved"


def test_many_columns_are_estimated_where_a_proof_needs_their_spectrum(monkeypatch):
    monkeypatch.setattr("spgls.solvers.iterative.curvature.MOST_COLUMNS", 0)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 40))
    y = X @ rng.normal(size=40) + rng.normal(size=300)
    z = y + np.abs(rng.normal(size=300)) / 10
    for people in (HALF, 1e6):
        found, best = solve(X, y, z, people, solver="krylov"), solve(X, y, z, people)
        assert found.status.ok
        assert found.certificate.kind == "estimated"
        assert found.certificate.lower_bound <= best.objective + 1e-12 * (y @ y)


def test_units_are_those_of_the_data():
    y = np.array([1.0, 2.0])
    for size in (1e-3, 1.0, 1e5):
        assert units_of(GameData.from_user(size * np.eye(2), size * y, y)) is None
    units = units_of(GameData.from_user(1e-100 * np.eye(2), y, y))
    told = units.told(GameData.from_user(1e-100 * np.eye(2), y, y))
    assert 0.1 <= np.abs(told.projected.apply(np.eye(2))).max() <= 10.0
