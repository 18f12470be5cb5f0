"""GameStatistics: rows that were added up answer every game as the rows themselves do."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import spgls
from spgls import (
    Between,
    Floor,
    GameStatistics,
    Population,
    Shift,
    Status,
    certify,
    solve,
    solve_path,
)
from spgls.base import archive
from spgls.base.types import EPS
from spgls.matrix import BlockedMatrix, RowBlocks, as_matrix
from spgls.solvers import statistics

from .catalogue import CATALOGUE, problem
from .test_catalogue import ROUNDING, TOL, measure

M, N = 210, 5
METHODS = ("moments", "triangular")
rng = np.random.default_rng(3)
X = rng.normal(size=(M, N)) * [1.0, 2.0, 0.5, 3.0, 0.1] + [1e4, 2e4, 0.0, -3e4, 1e3]
y = X @ [1.0, -0.5, 2.0, 0.3, 1.0] + rng.normal(size=M)
z = np.maximum(y, np.median(y))
weight = rng.integers(0, 4, M).astype(float)
MIXED = Population.mixed(5.0, honest=0.5)
GAMES = {
    "one strength": (5.0, {}),
    "population": (MIXED, {}),
    "ridge": (5.0, {"ridge": 0.3}),
    "costs": (MIXED, {"feature_cost": [1.0, 3.0, 0.5, 2.0, 4.0]}),
    "immutable": (5.0, {"feature_cost": [1.0, np.inf, 0.5, 2.0, np.inf]}),
    "no null space": (MIXED, {"null_space": "avoid"}),
}


def added(X, y, z, pieces=7, method="moments", weight=None):
    """Statistics of a few pieces of the rows, put together."""
    parts = np.array_split(np.arange(len(y)), pieces)
    return sum(
        GameStatistics.from_data(
            X[some],
            y[some],
            z[some],
            sample_weight=None if weight is None else weight[some],
            method=method,
        )
        for some in parts
    )


def same(mine, its, *, coef=1e-9, objective=1e-12):
    np.testing.assert_allclose(mine.coef, its.coef, rtol=coef, atol=coef * abs(its.coef).max())
    assert mine.objective == pytest.approx(its.objective, rel=objective)
    assert mine.status is its.status
    assert mine.certificate.kind == "proved"


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("game", GAMES)
class TestParties:
    """Seven parties whose columns have means of ten thousand standard deviations."""

    @pytest.mark.parametrize("weight", [None, weight], ids=["", "weights"])
    def test_merged_equals_pooled(self, game, method, weight):
        gamma, options = GAMES[game]
        found = added(X, y, z, method=method, weight=weight)
        options = options | {"fit_intercept": True}
        # Against the engine that does not square: it has digits to compare with.
        how = {"solver": spgls.solvers.Spectral(engine="qr"), "sample_weight": weight}
        pooled = solve(X, y, z, gamma, **how, **options)
        mine = found.solve(gamma, **options)
        same(mine, pooled)
        assert mine.intercept == pytest.approx(pooled.intercept, rel=1e-9)
        proof = found.certify(pooled.coef, gamma, intercept=pooled.intercept, **_told(options))
        assert proof.relative_gap <= 1e-9
        assert proof.lower_bound <= pooled.objective * (1 + 1e-14)

    def test_without_an_intercept(self, game, method):
        gamma, options = GAMES[game]
        near = X - X.mean(axis=0)
        same(
            added(near, y, z, method=method).solve(gamma, **options),
            solve(near, y, z, gamma, **options),
        )


def _told(options):
    return {name: value for name, value in options.items() if name != "fit_intercept"}


@pytest.mark.parametrize("method", METHODS)
def test_paths_and_certificates(method):
    found, gammas = added(X, y, z, method=method), [0.1, MIXED, 10.0]
    path = found.solve_path(gammas, fit_intercept=True)
    other = solve_path(X, y, z, gammas, fit_intercept=True)
    np.testing.assert_allclose(path.coef, other.coef, rtol=1e-8)
    np.testing.assert_allclose(path.objective, other.objective, rtol=1e-11)
    coef = 0.5 * other[0].coef
    mine = found.certify(coef, 0.1, intercept=3.0)
    its = certify(X, y, z, 0.1, coef, intercept=3.0)
    assert mine.gap == pytest.approx(its.gap, rel=1e-9)
    assert mine.kkt_residual == pytest.approx(its.kkt_residual, rel=1e-6)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("people", [Between(1.0, 8.0), Population.mixed(Between(1.0, 8.0), 0.5)])
def test_ranges(method, people):
    found = added(X, y, z, method=method)
    mine, its = found.solve(people, fit_intercept=True), solve(X, y, z, people, fit_intercept=True)
    assert mine.objective == pytest.approx(its.objective, rel=1e-8)
    assert mine.status.ok
    np.testing.assert_allclose(mine.coef, its.coef, rtol=1e-5)
    assert [end.binds for end in mine.ends] == [end.binds for end in its.ends]
    proof = found.certify(its.coef, people, intercept=its.intercept)
    assert proof.relative_gap <= 1e-8
    assert proof.lower_bound <= its.objective * (1 + 1e-13)


class TestTakenAway:
    def test_equals_never_having_seen_it(self):
        whole, block = added(X, y, z), slice(0, 60)
        gone = GameStatistics.from_data(X[block], y[block], z[block])
        rest = (whole - gone).solve(MIXED, fit_intercept=True)
        same(rest, solve(X[60:], y[60:], z[60:], MIXED, fit_intercept=True), objective=1e-11)
        assert (whole - gone).weight == M - 60

    @pytest.mark.parametrize("size", [1e2, 1e4, 1e6, 1e8, 1e10])
    def test_or_the_certificate_says_that_digits_were_lost(self, size):
        strangers = GameStatistics.from_data(size * X[:50], size * y[:50], size * z[:50])
        kept = added(X, y, z)
        found = ((strangers + kept) - strangers).solve(5.0, fit_intercept=True)
        true = solve(X, y, z, 5.0, fit_intercept=True)
        slack = 1e-13 * float(y @ y)
        assert found.certificate.lower_bound <= true.objective + slack
        loss = certify(X, y, z, 5.0, found.coef, intercept=found.intercept)
        reached = loss.lower_bound + loss.gap
        # What is said of the predictor's own loss holds too.
        said = found.certificate.lower_bound + found.certificate.gap
        assert reached <= said + loss.gap + slack
        if found.status.ok:
            assert reached - true.objective <= 1e-9 * np.sum((y - y.mean()) ** 2) + slack
        assert found.status.ok == (size <= 1e2) or found.status is Status.INACCURATE

    def test_labels_that_rounding_hides_are_not_explained(self):
        rows = np.array([[-693.33, 370.39, -2.0], [-694.33, 373.39, 0.0]])
        labels = np.array([177674443.0, 177674442.0])
        goals = labels + np.array([8.0, -3.0])
        others = GameStatistics.from_data(2.1 * rows, 2.1 * labels, 2.1 * goals)
        own = GameStatistics.from_data(rows, labels, goals)
        found = ((others + own) - others).solve(1e8, fit_intercept=True)
        assert found.status is Status.INACCURATE
        assert found.certificate.relative_gap > 1e-9

    def test_nothing_left(self):
        found = GameStatistics.from_data(X, y, z)
        with pytest.raises(ValueError, match="nothing is left: rows of weight 210"):
            found - found


@pytest.mark.parametrize("method", METHODS)
def test_decayed_equals_weighted_rows(method):
    pieces, total, share = np.array_split(np.arange(M), 5), 0, 0.9
    for some in pieces:
        new = GameStatistics.from_data(X[some], y[some], z[some], method=method)
        total = new if total == 0 else total.decayed(share) + new
    ages = np.concatenate([np.full(len(some), 4 - k) for k, some in enumerate(pieces)])
    its = solve(X, y, z, MIXED, fit_intercept=True, sample_weight=share**ages)
    same(total.solve(MIXED, fit_intercept=True), its, objective=1e-11)


def exact_moments(shift, *parts):
    """Moments of signed, weighted rows about a shift, in fractions."""
    width = len(shift) + 1
    total = [[Fraction(0)] * width for _ in range(width)]
    for factor, X, y, z in parts:
        for row, label, goal in zip(X.tolist(), y.tolist(), z.tolist(), strict=True):
            known = [*map(Fraction, row), Fraction(label), Fraction(goal)]
            known.append(known[-1] - known[-2])
            less = [a - Fraction(b) for a, b in zip(known, shift.tolist(), strict=True)] + [1]
            for i in range(width):
                for j in range(width):
                    total[i][j] += Fraction(factor) * less[i] * less[j]
    return total


@pytest.mark.parametrize("seed", range(6))
def test_moments_are_no_more_wrong_than_they_say(seed):
    dice = np.random.default_rng(seed)
    parts = []
    for _ in range(4):
        size, centre = 10.0 ** dice.uniform(-3, 3), 10.0 ** dice.uniform(-2, 5, 2)
        own = size * dice.normal(size=(dice.integers(1, 9), 2)) + centre
        label = own @ dice.normal(size=2) + dice.normal(size=len(own))
        parts.append((own, label, np.maximum(label, 0.5)))
    a, b, c, d = (GameStatistics.from_data(*part) for part in parts)
    found = (((a + b).decayed(0.7) + c) + d - c).sums
    true = exact_moments(found.shift, (0.7, *parts[0]), (0.7, *parts[1]), (1, *parts[3]))
    for i, row in enumerate(true):
        for j, value in enumerate(row):
            wrong = abs(Fraction(float(found.kept[i, j])) - value)
            assert wrong <= Fraction(EPS * found.doubt[i] * found.doubt[j]), (i, j)


@pytest.mark.parametrize("label", [1e-150, 1e-157, 1e-161, 1e-163])
def test_squares_below_the_range_of_numbers_lose_digits(label):
    dice = np.random.default_rng(0)
    own, y, z = 1e-48 * dice.normal(size=(9, 2)), *(label * dice.normal(size=(2, 9)))
    found = GameStatistics.from_data(own, y, z).sums
    doubt = [Fraction(float(one)) for one in found.doubt]
    for i, row in enumerate(exact_moments(found.shift, (1, own, y, z))):
        for j, value in enumerate(row):
            wrong = abs(Fraction(float(found.kept[i, j])) - value)
            assert wrong <= Fraction(EPS) * doubt[i] * doubt[j], (i, j)


@cache
def solved(name, method):
    game = problem(name)
    options = {key: value for key, value in game.options.items() if key != "sample_weight"}
    table, m = as_matrix(game.X), game.X.shape[0]
    cuts, total = sorted({0, m // 3, m // 2, m}), []
    for first, stop in pairwise(cuts):
        some, own = slice(first, stop), game.options["sample_weight"]
        own = None if own is None else own[some]
        if own is None or own.any():
            rows = table.take(some), game.y[some], game.z[some]
            total.append(GameStatistics.from_data(*rows, sample_weight=own, method=method))
    return sum(total).solve(game.gamma, **options)


#: Problems that squares leave inaccurate, saying so.
HARD = {"moments": {"column-scales"}, "triangular": set()}


CELLS = [
    pytest.param(name, method, marks=[pytest.mark.long] * (name == "sparse-2000"))
    for name in CATALOGUE
    for method in METHODS
]


@pytest.mark.parametrize(("name", "method"), CELLS)
def test_the_catalogue(name, method):
    game, found = problem(name), solved(name, method)
    loss, alpha = measure(game, found)
    value, spread = float(game.answer.value), float(game.answer.label_spread)
    slack, proof = ROUNDING * float(game.answer.label_size), found.certificate
    assert found.alpha == pytest.approx(alpha, rel=1e-9)
    assert abs(found.objective - loss) <= slack
    assert proof.lower_bound <= value + slack
    assert loss - value <= proof.gap + slack
    if found.status.ok or found.status is Status.UNATTAINED:
        assert loss - value <= TOL * spread
        assert proof.relative_gap <= TOL
    if found.status is Status.UNATTAINED:
        assert game.answer.status == "unattained"
    if found.status is Status.SEVERAL_OPTIMA:
        assert alpha == pytest.approx(float(game.answer.smallest_alpha), rel=1e-6)
    solved_it = found.status.ok or game.answer.status == "unattained"
    assert solved_it or name in HARD[method]


class Read(BlockedMatrix):
    """Blocks that count how often they are read."""

    shape = M, N

    def __init__(self):
        self.reads = 0

    def blocks(self):
        self.reads += 1
        for at in range(0, M, 50):
            some = slice(at, min(at + 50, M))
            yield some, X[some] if at else sp.csr_array(X[some])


class TestData:
    @pytest.mark.parametrize("method", METHODS)
    def test_blocks_are_read_once(self, method):
        rows = Read()
        found = GameStatistics.from_data(rows, y, z, method=method)
        assert rows.reads == 1
        same(found.solve(5.0, fit_intercept=True), solve(X, y, z, 5.0, fit_intercept=True))

    @pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array, pd.DataFrame, np.asfortranarray])
    @pytest.mark.parametrize("method", METHODS)
    def test_kinds(self, kind, method):
        holes = np.where(rng.random((M, N)) < 0.4, 0.0, X)
        found = GameStatistics.from_data(kind(holes), y, z, method=method)
        same(found.solve(MIXED), solve(holes, y, z, MIXED), coef=1e-7, objective=1e-10)

    def test_single_precision_is_added_in_double(self):
        single = (X - X.mean(axis=0)).astype(np.float32)
        found = GameStatistics.from_data(single, y, z)
        assert found.sums.kept.dtype == np.float64
        same(found.solve(5.0), solve(single.astype(np.float64), y, z, 5.0))

    def test_goals_as_functions(self):
        found = GameStatistics.from_data(X, y, Floor(float(np.median(y))))
        same(found.solve(5.0, fit_intercept=True), added(X, y, z).solve(5.0, fit_intercept=True))

    def test_constant_shifts_are_recognised_in_pieces(self):
        found = added(X, y, Shift(0.1)(y))
        assert found.solve(5.0, fit_intercept=True).status is Status.UNATTAINED

    def test_costs_by_name(self):
        frame = pd.DataFrame(X, columns=list("abcde"))
        found = GameStatistics.from_data(frame[:100], y[:100], z[:100])
        found = found + GameStatistics.from_data(frame[100:], y[100:], z[100:])
        options = {"feature_cost": {"b": np.inf, "e": 2.0}, "fit_intercept": True}
        same(found.solve(5.0, **options), solve(frame, y, z, 5.0, **options))

    def test_large_and_small_numbers(self):
        found = added(1e80 * X, 1e-70 * y, 1e-70 * z)
        its = added(X, y, z).solve(5.0, fit_intercept=True)
        mine = found.solve(5.0e-300, fit_intercept=True)
        np.testing.assert_allclose(mine.coef * 1e80 * 1e70, its.coef, rtol=1e-9)
        assert mine.status.ok

    def test_blocks_without_weight_count_for_nothing(self):
        heavy = np.ones(M)
        heavy[:50] = 0.0
        found = GameStatistics.from_data(Read(), y, z, sample_weight=heavy)
        same(
            found.solve(5.0, fit_intercept=True),
            added(X[50:], y[50:], z[50:]).solve(5.0, fit_intercept=True),
        )


class TestRefused:
    def test_holes_are_named_with_their_row(self):
        holed = X.copy()
        holed[157, 2] = np.nan
        for rows in (holed, RowBlocks(np.array_split(holed, 10))):
            with pytest.raises(ValueError, match="row 157, column 2 is nan"):
                GameStatistics.from_data(rows, y, z)

    def test_too_large_to_square(self):
        with pytest.raises(ValueError, match="too large to be squared"):
            GameStatistics.from_data(1e160 * X, y, z)

    def test_too_large_to_square_together(self):
        few = slice(0, 3)
        large = GameStatistics.from_data(X[few], np.full(3, 7e153), z[few])
        with pytest.raises(ValueError, match="too large to be squared"):
            large + GameStatistics.from_data(X[few], np.full(3, -7e153), z[few])

    @pytest.mark.parametrize("method", ["moments", "triangular"])
    def test_rows_that_faded_away(self, method):
        found = GameStatistics.from_data(X, y, z, method=method)
        plain = found.solve(1.0, fit_intercept=True)
        with np.errstate(under="ignore"):
            for _ in range(800):
                found = found.decayed(0.5)
            faded = found.solve(1.0, fit_intercept=True)
            assert faded.status is plain.status
            np.testing.assert_allclose(faded.coef, plain.coef, rtol=1e-6)
            for _ in range(300):
                found = found.decayed(0.5)
        for call in (found.solve, lambda gamma: found.certify(plain.coef, gamma)):
            with pytest.raises(ValueError, match=r"weights of these rows .* decay less often"):
                call(1.0)

    def test_too_large_to_square_about_zero(self):
        # About their mean they are zero.
        with pytest.raises(ValueError, match="too large to be squared"):
            GameStatistics.from_data(X[:7], np.full(7, 5.5e153), z[:7])

    def test_columns(self):
        found = GameStatistics.from_data(X, y, z)
        with pytest.raises(ValueError, match="equally many columns; got 5 and 4"):
            found + GameStatistics.from_data(X[:, :4], y, z)
        named = [
            GameStatistics.from_data(pd.DataFrame(X, columns=list(names)), y, z)
            for names in ("abcde", "abdce")
        ]
        with pytest.raises(ValueError, match="column 2 is 'c' and 'd'"):
            named[0] + named[1]
        with pytest.raises(ValueError, match="one entry per column of the statistics, 5"):
            found.certify([1.0], 0.5)

    def test_methods(self):
        both = [GameStatistics.from_data(X, y, z, method=method) for method in METHODS]
        with pytest.raises(ValueError, match="one method; got 'moments' and 'triangular'"):
            both[0] + both[1]
        with pytest.raises(ValueError, match="method 'moments' only"):
            both[1] - both[1]
        with pytest.raises(ValueError, match="method must be one of moments, triangular"):
            GameStatistics.from_data(X, y, z, method="gram")
        with pytest.raises(TypeError):
            both[0] + 1

    @pytest.mark.parametrize("factor", [0.0, 1.1, -1.0])
    def test_factors(self, factor):
        with pytest.raises(ValueError, match="factor must be a finite number above 0"):
            GameStatistics.from_data(X, y, z).decayed(factor)

    def test_memory_is_said_before_it_is_taken(self, monkeypatch):
        wide = sp.csr_array((3, 50_000))
        with pytest.raises(ValueError, match="50000 columns, whose sums would take 20 GB"):
            GameStatistics.from_data(wide, np.ones(3), np.zeros(3))
        monkeypatch.setattr(statistics, "available_memory", lambda: 1e9)
        with pytest.raises(MemoryError, match=r"9000 columns would take 0\.649 GB"):
            GameStatistics.from_data(wide[:, :9000], np.ones(3), np.zeros(3))


class TestFiles:
    @pytest.mark.parametrize("method", METHODS)
    @pytest.mark.parametrize("names", [None, list("abcde")])
    def test_what_is_saved_is_loaded(self, tmp_path, method, names):
        rows = X if names is None else pd.DataFrame(X, columns=names)
        found = GameStatistics.from_data(rows, y, z, method=method)
        found.save(tmp_path / "sums")
        again = GameStatistics.load(str(tmp_path / "sums"))
        assert repr(again) == repr(found)
        assert again.names == found.names
        for name in ("kept", "shift", "doubt", "rows"):
            np.testing.assert_array_equal(getattr(again.sums, name), getattr(found.sums, name))
        assert again.solve(5.0).objective == found.solve(5.0).objective
        assert [path.name for path in tmp_path.iterdir()] == ["sums"]

    def test_a_writer_that_is_stopped_leaves_the_old_file(self, tmp_path, monkeypatch):
        path, old = tmp_path / "sums", GameStatistics.from_data(X, y, z)
        old.save(path)

        def killed(file, **arrays):
            file.write(b"PK half of it")
            raise KeyboardInterrupt

        monkeypatch.setattr(archive.np, "savez", killed)
        with pytest.raises(KeyboardInterrupt):
            (old + old).save(path)
        monkeypatch.undo()
        assert GameStatistics.load(path).weight == M
        assert [one.name for one in tmp_path.iterdir()] == ["sums"]

    def test_damage(self, tmp_path):
        path = tmp_path / "sums"
        GameStatistics.from_data(X, y, z).save(path)
        content = path.read_bytes()
        path.write_bytes(content[: len(content) // 2])
        with pytest.raises(ValueError, match=r"sums is damaged or cut short"):
            GameStatistics.load(path)
        turned = bytearray(content)
        turned[content.index(b"doubt.npy") + 200] ^= 1
        path.write_bytes(bytes(turned))
        with pytest.raises(ValueError, match="sums is damaged"):
            GameStatistics.load(path)

    def test_contents_that_do_not_fit_their_checksum(self, tmp_path):
        path = tmp_path / "sums"
        GameStatistics.from_data(X, y, z).save(path)
        with np.load(path) as held:
            arrays = dict(held)
        arrays["rows"] = np.array(1)
        with path.open("wb") as file:
            np.savez(file, **arrays)
        with pytest.raises(ValueError, match="checksum differs"):
            GameStatistics.load(path)

    def test_foreign_files(self, tmp_path):
        path = tmp_path / "other"
        path.write_text("a,b\n1,2\n")
        with pytest.raises(ValueError, match=r"other does not hold spgls statistics: it is no"):
            GameStatistics.load(path)
        with path.open("wb") as file:
            np.savez(file, kind=np.array([None], dtype=object), version=1, sha256="")
        with pytest.raises(ValueError, match="something else wrote it"):
            GameStatistics.load(path)
        archive.write_arrays(path, "a model", 1, {"coef": np.ones(3)})
        with pytest.raises(ValueError, match="something else wrote it"):
            GameStatistics.load(path)
        with pytest.raises(FileNotFoundError):
            GameStatistics.load(tmp_path / "nowhere")
        with pytest.raises(TypeError, match="path must name a file; got 3"):
            GameStatistics.load(3)

    def test_newer_files(self, tmp_path, monkeypatch):
        path = tmp_path / "sums"
        monkeypatch.setattr(statistics, "_VERSION", 2)
        GameStatistics.from_data(X, y, z).save(path)
        monkeypatch.undo()
        with pytest.raises(ValueError, match="format 2 of spgls statistics, and this version"):
            GameStatistics.load(path)


def test_sums_about_a_far_shift_are_moved():
    """The first row is no guide: later ones lie elsewhere, and their digits count."""
    far = X - X.mean(axis=0) + 1e5
    first = GameStatistics.from_data(far[:1] - 1e5, y[:1], z[:1])
    parts = np.array_split(np.tile(np.arange(M), 40), 400)
    found = sum((GameStatistics.from_data(far[some], y[some], z[some]) for some in parts), first)
    rows = np.vstack([far[:1] - 1e5, np.tile(far, (40, 1))]).astype(np.longdouble)
    centred = rows - rows.mean(axis=0)
    sums = found.sums.kept[:N, :N] - np.outer(*[found.sums.sums[:N]] * 2) / found.weight
    size = np.sqrt(np.diag(sums))
    assert (abs(sums - centred.T @ centred) <= 1e-12 * np.outer(size, size)).all()
    assert (abs(found.sums.shift[:N] - rows.mean(axis=0)) <= 10 * centred.std(axis=0)).all()


def test_repr_and_memory():
    found = GameStatistics.from_data(X, y, z)
    assert repr(found) == "GameStatistics(210 rows, 5 columns, moments)"
    assert found.nbytes == 8 * (9 * 9 + 8 + 9)
    assert found.decayed(1.0) is found
    assert found.label_spread == pytest.approx(y.std())
    assert found.goal_distance == pytest.approx(np.sqrt(np.mean((z - y) ** 2)))
    assert replace(found).weight == M


@pytest.mark.parametrize(
    "people", [Population.mixed(1e12, 0.3), Population([1.0, 1e12], [0.5] * 2)]
)
def test_strengths_that_are_no_numbers_in_units_of_the_rows(people):
    """Labels whose squares vanish in sums: refused as by solve, or answered, and nothing else."""
    columns, small = np.array([[1.0], [2.0], [4.0]]), np.array([1.0, 2.0, -1.0]) * 1e-164
    found = GameStatistics.from_data(columns, small, np.zeros(3))
    with pytest.raises(ValueError, match=r"^gamma .*is out of range"):
        found.solve(people)
    with pytest.raises(ValueError, match=r"^gamma .*is out of range"):
        found.certify([1.0], people)


@pytest.mark.parametrize("method", ["moments", "triangular"])
def test_columns_whose_squares_vanish_in_sums(method):
    """Honest people can be predicted exactly, by a huge coefficient: no bound denies that."""
    columns, labels, goals = np.array([[0.0], [2e-171]]), np.array([1.0, 0.0]), np.array([1.1, 0.9])
    found = GameStatistics.from_data(columns, labels, goals, method=method)
    people = Population.mixed(0.8, 0.5)
    proof = found.solve(people, fit_intercept=True).certificate
    assert proof.lower_bound <= 0.5 * np.sum((goals - labels) ** 2)
    assert found.certify([-5e170], people, intercept=1.0).lower_bound <= 0.41
