"""StackelbergRegressorCV: the naive loop at a fraction of its cost, and what the choice means."""

from __future__ import annotations

import os
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.metrics import make_scorer, median_absolute_error
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    RepeatedKFold,
    ShuffleSplit,
    TimeSeriesSplit,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

from spgls import (
    Floor,
    Population,
    StackelbergRegressor,
    Status,
    make_attacked_scorer,
)
from spgls.datasets import load_blog_feedback
from spgls.estimators.cv import StackelbergRegressorCV
from spgls.estimators.folds import CrossValidation
from spgls.matrix import DenseMatrix
from spgls.population import many, solve_population
from spgls.population.many import solve_pairs
from spgls.reduction.data import GameData
from spgls.reduction.fold_sums import Pieces, Split, cut_into_pieces
from spgls.reduction.reduced import ReducedGame
from spgls.solvers import Spectral

from .builders import COEF, COST, NAMES, applicants

inf, nan = np.inf, np.nan
M, N = 90, 4
rng = np.random.default_rng(0)
X = applicants(M, rng, years=20.0)
y = X @ COEF + rng.normal(size=M)
z = np.maximum(y, np.median(y))
weight = rng.integers(0, 4, size=M).astype(float)
group = rng.integers(0, 6, size=M)
frame = pd.DataFrame(X, columns=NAMES, index=np.arange(M) + 100)
GAMMAS, SHARES, RIDGES = (0.05, 2.0, 1e4), (0.0, 0.4, 1.0), (0.0, 3.0)
WORLD = Population([inf, 0.5, 30.0], [0.2, 0.5, 0.3])
GRID = {"gammas": GAMMAS, "honest_shares": SHARES, "ridges": RIDGES, "world": WORLD}


def drawn(draw):
    """Splits by hand: a mask, rows drawn twice, rows in no set, negative numbers."""
    pick = np.random.default_rng(draw)
    order = pick.permutation(M)
    mask = np.zeros(M, dtype=bool)
    mask[order[:50]] = True
    return [
        (mask, ~mask),
        (pick.integers(0, M, size=70), order[:25].tolist()),
        (order[40:80], order[:10] - M),
    ]


SPLITTERS = {
    "default": None,
    "folds": 4,
    "shuffled folds": KFold(3, shuffle=True, random_state=0),
    "repeated folds": RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
    "groups": GroupKFold(3),
    "shuffles": ShuffleSplit(4, test_size=0.3, random_state=0),
    "thin shuffles": ShuffleSplit(3, test_size=0.2, train_size=0.4, random_state=0),
    "time": TimeSeriesSplit(4),
    "time with gaps": TimeSeriesSplit(3, gap=5, test_size=10),
    "by hand": drawn(1),
}


def splits_of(cv, groups=None):
    if isinstance(cv, list):
        return [tuple(np.arange(M)[part] for part in pair) for pair in cv]
    cv = KFold(cv or 5) if cv is None or isinstance(cv, int) else cv
    return list(cv.split(X, y, groups))


def naive(splits, table=X, *, labels=y, goals=z, sample_weight=None, world=WORLD, grid=GRID, **how):
    """Scores of the loop that fits and attacks one model at a time, splits by candidates."""
    found = []
    for train, test in splits:
        row = []
        weights = (
            [None, None] if sample_weight is None else [sample_weight[i] for i in (train, test)]
        )
        for gamma in grid["gammas"]:
            for honest in grid.get("honest_shares", (0.5,)):
                for ridge in grid.get("ridges", (0.0,)):
                    model = StackelbergRegressor(gamma, honest_share=honest, ridge=ridge, **how)
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        model.fit(
                            table[train], labels[train], z=goals[train], sample_weight=weights[0]
                        )
                    error = 0.0
                    for strength, share in zip(world.gammas, world.shares, strict=True):
                        moved = model.predict_attacked(table[test], goals[test], gamma=strength)
                        squares = (moved - labels[test]) ** 2
                        error += share * np.average(squares, weights=weights[1])
                    row.append(-error)
        found.append(row)
    return np.array(found)


def scores_of(model, end=""):
    results = model.cv_results_
    return np.array([results[f"split{i}_test_score{end}"] for i in range(model.n_splits_)])


CHECKS = list(estimator_checks_generator(StackelbergRegressorCV(goal=Floor(1.5)), mark="skip"))


@pytest.mark.parametrize("routing", [False, True], ids=["plain", "routed"])
@pytest.mark.parametrize(
    ("model", "check"),
    CHECKS,
    ids=[f"{n}-{check.func.__name__}" for n, (_, check) in enumerate(CHECKS)],
)
def test_contract(model, check, routing):
    with sklearn.config_context(enable_metadata_routing=routing):
        check(model)


@pytest.fixture(scope="module")
def blog():
    if not os.environ.get("SPGLS_DATA"):
        pytest.skip("set SPGLS_DATA to the folder that holds blogData_train.csv")
    return load_blog_feedback(os.environ["SPGLS_DATA"])


class TestTheNaiveLoop:
    @pytest.mark.parametrize("name", SPLITTERS)
    @pytest.mark.parametrize("sample_weight", [None, weight], ids=["", "weighted"])
    @pytest.mark.parametrize(
        "how", [{}, {"feature_cost": COST}, {"fit_intercept": False}], ids=["", "costs", "origin"]
    )
    def test_every_splitter(self, name, sample_weight, how):
        cv = SPLITTERS[name]
        model = StackelbergRegressorCV(**GRID, cv=cv, **how)
        groups = group if name == "groups" else None
        model.fit(X, y, z=z, sample_weight=sample_weight, groups=groups)
        wanted = naive(splits_of(cv, groups), sample_weight=sample_weight, **how)
        np.testing.assert_allclose(scores_of(model), wanted, rtol=1e-8)
        results = model.cv_results_
        np.testing.assert_allclose(results["mean_test_score"], wanted.mean(0), rtol=1e-8)
        np.testing.assert_allclose(results["std_test_score"], wanted.std(0), rtol=1e-6)
        assert model.best_index_ == wanted.mean(0).argmax()

    def test_min_max_columns_far_from_zero(self):
        table, labels = load_diabetes(return_X_y=True)
        low = table.min(0)
        table = (table - low) / (table.max(0) - low) + 1e3
        goals = np.maximum(labels, 250.0)
        grid = {"gammas": np.geomspace(1.0, 1e4, 5), "honest_shares": (0.0, 0.5)}
        world = Population.mixed(100.0)
        model = StackelbergRegressorCV(**grid, world=world, cv=4).fit(table, labels, z=goals)
        splits = KFold(4).split(table)
        wanted = naive(splits, table, labels=labels, goals=goals, world=world, grid=grid)
        np.testing.assert_allclose(scores_of(model), wanted, rtol=1e-8)

    @pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_matrix, sp.coo_array])
    def test_sparse(self, kind):
        table = X * (rng.random(X.shape) < 0.4)
        model = StackelbergRegressorCV(**GRID, cv=KFold(3, shuffle=True, random_state=0))
        model.fit(kind(table), y, z=z)
        wanted = naive(splits_of(model.cv), table)
        np.testing.assert_allclose(scores_of(model), wanted, rtol=1e-8)

    def test_a_column_that_only_the_held_out_rows_know(self):
        # Subtracting a fold from the whole would leave rounding where nothing is.
        table = np.column_stack([X, np.zeros(M)])
        table[80:, -1] = 1e3 * rng.normal(size=10)
        grid = {"gammas": (0.5, 20.0), "honest_shares": (0.0, 0.4), "ridges": (3.0,)}
        model = StackelbergRegressorCV(**grid, world=WORLD, cv=9).fit(table, y, z=z)
        wanted = naive(KFold(9).split(table), table, grid=grid)
        np.testing.assert_allclose(scores_of(model), wanted, rtol=1e-8)

    @pytest.mark.parametrize("engine", ["auto", "qr"])
    def test_where_squaring_the_data_is_not_enough(self, engine, monkeypatch):
        factored, reduce = [], Pieces.reduce
        monkeypatch.setattr(
            Pieces, "reduce", lambda self, *how: (factored.append(how[-1]), reduce(self, *how))[1]
        )
        table = np.column_stack([X, X[:, 0] + 1e-7 * rng.normal(size=M)])
        # Honest providers make the learner use the direction that is hardly there.
        grid = {"gammas": (1e13, 1e14), "honest_shares": (0.5,)}
        # No more is certain beside columns that agree to seven digits.
        how = {"solver": Spectral(engine=engine), "tol": 1e-6, "null_space": "use"}
        model = StackelbergRegressorCV(**grid, world=WORLD, cv=3, **how).fit(table, y, z=z)
        assert "qr" in factored
        wanted = naive(KFold(3).split(table), table, grid=grid, **how)
        np.testing.assert_allclose(scores_of(model), wanted, rtol=1e-8)

    def test_exact_fits(self):
        labels = X @ COEF
        grid = {"gammas": (1e12,), "honest_shares": (1.0,)}
        world = Population([inf], [1.0])
        model = StackelbergRegressorCV(**grid, world=inf, cv=3).fit(X, labels, z=labels + 1.0)
        wanted = naive(KFold(3).split(X), labels=labels, goals=labels + 1, world=world, grid=grid)
        assert np.abs(scores_of(model)).max() < 1e-24
        assert np.abs(wanted).max() < 1e-24

    def test_more_columns_than_rows(self):
        table = rng.normal(size=(M, 2 * M))
        grid = {"gammas": (0.5, 20.0), "honest_shares": (0.4,), "ridges": (3.0,)}
        model = StackelbergRegressorCV(**grid, world=WORLD, cv=3).fit(table, y, z=z)
        wanted = naive(KFold(3).split(table), table, grid=grid)
        np.testing.assert_allclose(scores_of(model), wanted, rtol=1e-8)

    def test_other_solvers(self):
        grid = {"gammas": GAMMAS, "honest_shares": (0.0,)}
        how = {"solver": "gltr", "random_state": 0, "null_space": "use"}
        model = StackelbergRegressorCV(**grid, world=WORLD, cv=3, **how).fit(X, y, z=z)
        wanted = naive(KFold(3).split(X), grid=grid, **how)
        np.testing.assert_allclose(scores_of(model), wanted, rtol=1e-10)
        assert model.solver_ == "gltr"

    def test_nothing_that_anyone_can_change(self):
        how = {"feature_cost": np.full(N, inf)}
        model = StackelbergRegressorCV(**GRID, cv=3, **how).fit(X, y, z=z)
        np.testing.assert_allclose(scores_of(model), naive(KFold(3).split(X), **how), rtol=1e-8)

    @settings(max_examples=40, deadline=None)
    @given(seed=st.integers(0, 2**32 - 1), intercept=st.booleans(), weighted=st.booleans())
    def test_random_games_and_splits(self, seed, intercept, weighted):
        pick = np.random.default_rng(seed)
        rows, columns = int(pick.integers(12, 60)), int(pick.integers(1, 5))
        table = pick.normal(size=(rows, columns)) * 10 ** pick.uniform(-2, 2, columns)
        labels = table @ (pick.normal(size=columns) / table.std(0)) + pick.normal(size=rows)
        goals = labels + pick.normal(size=rows) + pick.normal()
        splits = []
        for _ in range(int(pick.integers(1, 5))):
            order = pick.permutation(rows)
            cut = int(pick.integers(columns + 4, rows - 2))
            splits.append((order[:cut], order[cut:]))
        reach = float(np.sum(LinearRegression().fit(table, labels).coef_ ** 2))
        grid = {
            "gammas": reach * 10.0 ** pick.uniform(-2, 2, 2),
            "honest_shares": pick.choice([0.0, 0.3, 0.7], 1),
            "ridges": [0.0, 0.1 * np.sum(table**2) / columns],
        }
        how = {"fit_intercept": intercept, "feature_cost": 10 ** pick.uniform(-1, 1, columns)}
        how["feature_cost"][1:] *= pick.choice([1.0, inf], columns - 1)
        weights = pick.uniform(0.5, 2.0, rows) if weighted else None
        world = Population([inf, reach], [0.3, 0.7])
        model = StackelbergRegressorCV(**grid, world=world, cv=splits, **how)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(table, labels, z=goals, sample_weight=weights)
        wanted = naive(
            splits, table, labels=labels, goals=goals, world=world, grid=grid,
            sample_weight=weights, **how,
        )  # fmt: skip
        np.testing.assert_allclose(scores_of(model), wanted, rtol=1e-7)


class TestHowItIsDone:
    def test_pieces_make_up_the_sets(self):
        for name, cv in SPLITTERS.items():
            pairs = splits_of(cv, group if name == "groups" else None)
            splits = [Split(*pair) for pair in pairs]
            seen = []
            for some in cut_into_pieces(splits, M, N):
                seen += some.which
                for at, number in enumerate(some.which):
                    for counts, rows in zip((some.train, some.test), splits[number], strict=True):
                        np.testing.assert_array_equal(
                            counts[at][some.piece], np.bincount(rows % M, minlength=M)
                        )
            assert seen == list(range(len(splits)))

    @pytest.mark.parametrize(
        ("cv", "pieces"), [(KFold(7), [7]), (LeaveOneOut(), [M]), (TimeSeriesSplit(6), [7])]
    )
    def test_as_few_pieces_as_the_splits_allow(self, cv, pieces):
        splits = [Split(*pair) for pair in cv.split(X)]
        found = [some.train.shape[1] for some in cut_into_pieces(splits, M, N)]
        assert found == pieces

    def test_moments_and_factors_agree(self):
        data = GameData.from_user(
            X, y, z, fit_intercept=True, feature_cost=COST, sample_weight=weight
        )
        pieces = Pieces(data, rng.integers(0, 3, size=M))
        for triangle, moment in zip(pieces.triangles, pieces.moments, strict=True):
            np.testing.assert_allclose(triangle.T @ triangle, moment, rtol=1e-10, atol=1e-10)

    def test_one_read_for_all_folds_and_the_fit(self, monkeypatch):
        rows = []
        moment = DenseMatrix.moment
        monkeypatch.setattr(
            DenseMatrix,
            "moment",
            lambda self, *a: (rows.append(self.shape[0]), moment(self, *a))[1],
        )
        StackelbergRegressorCV(GAMMAS, world=WORLD, cv=10).fit(X, y, z=z)
        assert sum(rows) == M

    @settings(max_examples=40, deadline=None)
    @example(seed=2618, size=1, short=False, close=False)
    @given(
        seed=st.integers(0, 2**32 - 1),
        size=st.integers(1, 30),
        short=st.booleans(),
        close=st.booleans(),
    )
    def test_games_solved_together_are_games_solved_alone(self, seed, size, short, close):
        pick = np.random.default_rng(seed)
        k = (size + 1) // 2 if short else size
        sigma = 10 ** pick.uniform(-2, 1, k)
        eta, zeta = pick.normal(size=(2, k)) * 10 ** pick.uniform(-1, 1, (2, 1))
        out = pick.normal(size=(2, 3))
        free = pick.exponential()
        if close:
            # With a null space the infimum is often not attained.
            zeta, out[1], free = eta + 0.1 * zeta, out[0] + 0.1 * out[1], 0.0
        r = out @ out.T
        game = ReducedGame(sigma, eta, zeta, r[0, 0], r[0, 1], r[1, 1], size - k, free)
        unit = float(np.sum((eta / sigma) ** 2))
        gammas = unit * 10 ** pick.uniform(-3, 3, 6)
        honest = pick.choice([0.0, 0.1, 0.5, 0.9, 1.0], 6)
        ridges = pick.choice([0.0, 0.1, 10.0], 6) * sigma.max() ** 2
        found = solve_pairs(game, gammas, honest, ridges)
        for i, (gamma, share, ridge) in enumerate(zip(gammas, honest, ridges, strict=True)):
            groups = [(inf, share), (gamma, 1.0 - share)]
            strengths, shares = zip(*(one for one in groups if one[1] > 0.0), strict=True)
            alone = solve_population(game, strengths, shares, ridge=ridge)
            assert found.t[i] == pytest.approx(alone.t, rel=1e-8, abs=1e-12 * unit)
            size_of = max(np.sqrt(alone.t), 1e-6 * np.sqrt(unit))
            np.testing.assert_allclose(found.x[i], alone.x, atol=1e-8 * size_of)
            assert found.fill[i] == pytest.approx(alone.fill, rel=1e-6, abs=1e-8 * size_of)
            assert found.unique[i] == (alone.outcome == "unique")
        quick = solve_pairs(game, gammas, honest, ridges, thorough=False)
        np.testing.assert_array_equal(quick.x[quick.unique], found.x[quick.unique])
        same = (quick.x == found.x).all(axis=1)
        assert (same | ~(quick.unique | quick.x.any(axis=1))).all()

    @pytest.mark.parametrize("noise", [0.1, 3.0])
    def test_columns_that_depend_on_each_other(self, noise, monkeypatch):
        """A category in full: where labels are hard to tell from features, reading the goals for
        nothing is best, and coefficients grow without bound. No candidate needs its own search.
        """
        alone = []
        monkeypatch.setattr(
            many, "solve_population", lambda *a, **k: alone.append(a) or solve_population(*a, **k)
        )
        pick = np.random.default_rng(5)
        category = np.eye(4)[np.arange(400) % 4]
        table = np.column_stack([pick.normal(size=(400, 3)), category])
        labels = table @ pick.normal(size=7) + noise * pick.normal(size=400)
        grid = {"gammas": np.logspace(-3, 4, 20)}
        how = {"null_space": "use"}
        model = StackelbergRegressorCV(grid["gammas"], world=WORLD, cv=5, **how)
        goals = 0.8 * labels + 0.5
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(table, labels, z=goals)
        assert (model.status_.value == "unattained") == (noise > 1.0)
        splits = KFold(5).split(table)
        loop = naive(splits, table, labels=labels, goals=goals, grid=grid, **how)
        np.testing.assert_allclose(scores_of(model), loop, rtol=1e-8)
        assert not alone

    @pytest.mark.parametrize("engine", ["auto", "qr"])
    def test_a_category_that_nobody_can_change_is_missing_from_a_fold(self, engine):
        """Dependent immutable columns leave a choice, which is the estimator's."""
        pick = np.random.default_rng(0)
        kind = pick.integers(0, 3, M)
        kind[:2] = 3
        table = np.column_stack([X[:, :2], np.eye(4)[kind]])
        grid = {"gammas": (0.1, 10.0), "honest_shares": (0.0, 0.5, 1.0)}
        how = {
            "feature_cost": np.array([1.0, 1.0, inf, inf, inf, inf]),
            "solver": Spectral(engine=engine),
        }
        model = StackelbergRegressorCV(**grid, world=WORLD, cv=5, **how).fit(table, y, z=z)
        for choice in ("gram", "qr"):
            how["solver"] = Spectral(engine=choice)
            loop = naive(KFold(5).split(table), table, grid=grid, **how)
            np.testing.assert_allclose(scores_of(model), loop, rtol=1e-8)

    @pytest.mark.parametrize("honest", [0.0, 1e-4, 0.3])
    def test_goals_that_are_a_multiple_of_the_labels(self, honest):
        """At one norm labels and goals cancel, and the loss has a minimum on either side."""
        pick = np.random.default_rng(0)
        table = pick.normal(size=(24, 4))
        labels = table @ pick.normal(size=4) + 0.5 * pick.normal(size=24)
        grid = {
            "gammas": (0.01, 0.1, 1.0),
            "honest_shares": (honest,),
            "ridges": (1e-3, 1e-2, 0.1),
        }
        model = StackelbergRegressorCV(**grid, world=WORLD, cv=3).fit(table, labels, z=1.5 * labels)
        loop = naive(KFold(3).split(table), table, labels=labels, goals=1.5 * labels, grid=grid)
        np.testing.assert_allclose(scores_of(model), loop, rtol=1e-8)

    def test_infima_that_are_not_attained_are_those_of_the_estimator(self):
        grid = {"gammas": (0.1, 10.0), "honest_shares": (0.0,)}
        model = StackelbergRegressorCV(**grid, world=WORLD, cv=3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, y, z=y + 1.0)
        loop = naive(KFold(3).split(X), goals=y + 1.0, grid=grid)
        np.testing.assert_allclose(scores_of(model), loop, rtol=1e-6)

    @pytest.mark.parametrize(("honest", "ridge"), [(0.0, 0.0), (0.5, 1.0)])
    def test_blog_posts(self, blog, honest, ridge):
        """Four constant columns among 280, and others that depend on each other."""
        span = np.ptp(blog.X, axis=0)
        table = (blog.X - blog.X.min(axis=0)) / np.where(span > 0.0, span, 1.0)
        goals = np.maximum(blog.y - 5.0, 0.0)
        grid = {"gammas": (1e-3, 1.0, 1e4), "honest_shares": (honest,), "ridges": (ridge,)}
        model = StackelbergRegressorCV(**grid, world=WORLD, cv=10).fit(table, blog.y, z=goals)
        some = list(KFold(10).split(table))[::5]
        how = {"labels": blog.y, "goals": goals, "grid": grid, "solver": "spectral"}
        loop = naive(some, table, **how)
        np.testing.assert_allclose(scores_of(model)[::5], loop, rtol=1e-8)

    def test_r2_of_labels_that_do_not_vary(self):
        """As in scikit-learn; a single row has none."""
        flat = y.copy()
        flat[: M // 5] = 2.0
        model = StackelbergRegressorCV([0.1], world=1.0, scoring="r2", cv=KFold(5)).fit(
            X, flat, z=z
        )
        assert scores_of(model)[0] == 0.0
        with pytest.raises(ValueError, match="needs two test rows or more in every split; split 0"):
            StackelbergRegressorCV([0.1], world=1.0, scoring="r2", cv=M).fit(X, y, z=z)

    @pytest.mark.parametrize(
        ("cv", "error", "told"),
        [
            ([1, 2], TypeError, "yield pairs of arrays of row numbers.*; split 0 is 1"),
            ([(np.arange(M),)], TypeError, "yield pairs of arrays .*; split 0 is a tuple"),
            (GroupKFold(3), ValueError, r"Pass groups= to fit\."),
        ],
    )
    def test_what_does_not_split(self, cv, error, told):
        with pytest.raises(error, match=told):
            StackelbergRegressorCV([0.1], world=1.0, cv=cv).fit(X, y, z=z)

    def test_pairs_and_worlds_as_arrays(self):
        pairs = [np.array([np.arange(40), np.arange(40, 80)])]
        model = StackelbergRegressorCV([0.1], world=np.array(2.0), cv=pairs).fit(X, y, z=z)
        same = StackelbergRegressorCV([0.1], world=2.0, cv=[tuple(pairs[0])]).fit(X, y, z=z)
        np.testing.assert_array_equal(scores_of(model), scores_of(same))

    def test_the_first_of_candidates_that_differ_by_rounding(self):
        for better, best in ((0.0, 1), (1e-6, 2)):
            told = iter([-2.0, -1.0 - 1e-12, -1.0 + better, -1.0 + 1e-12])
            # Scorers are tried on two rows first.
            scorer = make_scorer(lambda t, _, told=told: next(told) if len(t) > 2 else 0.0)
            one = [(np.arange(60), np.arange(60, M))]
            how = {"honest_shares": (0.5,), "world": 1.0, "scoring": scorer, "cv": one}
            model = StackelbergRegressorCV([0.1, 1.0, 2.0, 3.0], **how)
            assert model.fit(X, y, z=z).best_index_ == best

    @pytest.mark.filterwarnings("ignore:Strategic providers close")
    @pytest.mark.parametrize("scoring", ["r2", "neg_root_mean_squared_error", "max_error", None])
    def test_scores(self, scoring):
        if scoring == "max_error":
            world, metric = 0.5, "neg_max_error"
        else:
            world, metric = WORLD, scoring or "neg_mean_squared_error"
        model = StackelbergRegressorCV(
            GAMMAS, world=world, cv=3, goal=Floor(1.0), scoring=scoring and metric
        ).fit(X, y)
        scorer = make_attacked_scorer(world, goal=Floor(1.0), metric=metric)
        for i, gamma in enumerate(GAMMAS):
            one = StackelbergRegressor(gamma, goal=Floor(1.0))
            wanted = cross_val_score(one, X, y, cv=KFold(3), scoring=scorer)
            np.testing.assert_allclose(scores_of(model)[:, i], wanted, rtol=1e-8)

    def test_any_scorer(self):
        absolute = make_scorer(median_absolute_error, greater_is_better=False)
        model = StackelbergRegressorCV(GAMMAS, world=WORLD, cv=3, scoring=absolute)
        model.fit(X, y, z=z, sample_weight=weight + 1.0)
        assert (scores_of(model) < 0.0).all()


class TestTheChoice:
    def test_results_in_the_manner_of_scikit_learn(self):
        model = StackelbergRegressorCV(**GRID, cv=3, feature_cost=COST).fit(X, y, z=z)
        results = model.cv_results_
        count = len(GAMMAS) * len(SHARES) * len(RIDGES)
        assert all(len(column) == count for column in results.values())
        table = pd.DataFrame(results)
        assert table["rank_test_score"].min() == 1
        assert list(table["params"].iloc[1]) == ["gamma", "honest_share", "ridge"]
        best = table.iloc[model.best_index_]
        assert best["rank_test_score"] == 1
        assert best["worst_regret"] == 0.0
        assert best["mean_test_score"] == model.best_score_ == table["mean_test_score"].max()
        for name, value in model.best_params_.items():
            assert best[f"param_{name}"] == value
            assert isinstance(value, float)

    def test_afterwards_it_is_the_model_it_chose(self):
        model = StackelbergRegressorCV(**GRID, cv=3, feature_cost=COST)
        model.fit(frame, y, z=z, sample_weight=weight)
        chosen = StackelbergRegressor(**model.best_params_, feature_cost=COST)
        chosen.fit(frame, y, z=z, sample_weight=weight)
        np.testing.assert_allclose(model.coef_, chosen.coef_, rtol=1e-9)
        np.testing.assert_allclose(model.predict(frame), chosen.predict(frame), rtol=1e-9)
        np.testing.assert_allclose(
            model.predict_attacked(frame, z), chosen.predict_attacked(frame, z), rtol=1e-9
        )
        moved = model.best_response(frame, z)
        assert isinstance(moved, pd.DataFrame)
        np.testing.assert_allclose(moved, chosen.best_response(frame, z), rtol=1e-9)
        assert model.score(frame, y) == pytest.approx(chosen.score(frame, y))
        assert model.objective_ == pytest.approx(chosen.objective_, rel=1e-9)
        assert model.certificate_.relative_gap <= 1e-9
        assert (model.status_, model.solver_) == (Status.OPTIMAL, "spectral")
        np.testing.assert_array_equal(model.feature_names_in_, NAMES)
        copy = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(copy.predict(frame), model.predict(frame))
        assert "relative gap" in model._repr_html_()

    def test_float32_stays(self):
        model = StackelbergRegressorCV(GAMMAS, world=WORLD, cv=3).fit(X.astype("f4"), y, z=z)
        assert model.coef_.dtype == model.predict(X.astype("f4")).dtype == np.float32

    def test_a_known_world_is_found(self):
        hits = 0
        for seed in range(80):
            pick = np.random.default_rng(seed)
            table = pick.normal(size=(400, 5))
            labels = table @ pick.normal(size=5) + pick.normal(size=400)
            goals = np.maximum(labels, np.quantile(labels, 0.75))
            reach = float(np.sum(LinearRegression().fit(table, labels).coef_ ** 2))
            grid = reach * 10.0 ** np.arange(-2, 3)
            true = reach * 10.0 ** (pick.integers(-1, 2) + pick.uniform(-0.25, 0.25))
            model = StackelbergRegressorCV(grid, world=Population.mixed(true))
            model.fit(table, labels, z=goals)
            hits += model.best_index_ == np.abs(np.log(grid / true)).argmin()
        assert hits >= 64

    @pytest.mark.filterwarnings("ignore:Strategic providers close")
    def test_a_number_is_a_world_where_everyone_moves(self):
        one = StackelbergRegressorCV(GAMMAS, world=0.5).fit(X, y, z=z)
        same = StackelbergRegressorCV(GAMMAS, world=Population([0.5], [1.0])).fit(X, y, z=z)
        np.testing.assert_array_equal(scores_of(one), scores_of(same))
        assert one.worlds_ == (Population([0.5], [1.0]),)
        honest = StackelbergRegressorCV(GAMMAS, world=inf, cv=5, goal=Floor(1.0)).fit(X, y)
        plain = cross_val_score(
            StackelbergRegressor(GAMMAS[0], goal=Floor(1.0)), X, y, scoring="neg_mean_squared_error"
        )
        np.testing.assert_allclose(scores_of(honest)[:, 0], plain, rtol=1e-9)

    def test_several_worlds(self):
        worlds = [inf, 0.5, Population.mixed(5.0)]
        model = StackelbergRegressorCV(**(GRID | {"world": worlds}), cv=3).fit(X, y, z=z)
        means = []
        for k, world in enumerate(worlds):
            alone = StackelbergRegressorCV(**(GRID | {"world": world}), cv=3).fit(X, y, z=z)
            np.testing.assert_array_equal(scores_of(model, f"_world{k}"), scores_of(alone))
            means.append(alone.cv_results_["mean_test_score"])
        regret = np.max([mean.max() - mean for mean in means], axis=0)
        np.testing.assert_allclose(model.cv_results_["worst_regret"], regret)
        assert model.best_index_ == regret.argmin()
        assert model.best_score_ == min(mean[model.best_index_] for mean in means)
        assert "mean_test_score" not in model.cv_results_

    def test_one_standard_error(self):
        best = StackelbergRegressorCV(**GRID, cv=5).fit(X, y, z=z)
        model = StackelbergRegressorCV(**GRID, cv=5, one_standard_error=True).fit(X, y, z=z)
        scores = scores_of(best)
        error = scores[:, best.best_index_].std(ddof=1) / np.sqrt(5)
        close = scores.mean(0) >= best.best_score_ - error
        assert close[model.best_index_]
        reach = model.cv_results_["mean_reach"]
        assert reach[model.best_index_] == reach[close].min()
        assert reach[model.best_index_] < reach[best.best_index_]
        split = StackelbergRegressorCV(
            **GRID, cv=ShuffleSplit(1, random_state=0), one_standard_error=True
        ).fit(X, y, z=z)
        assert split.cv_results_["rank_test_score"][split.best_index_] == 1

    def test_the_default_grid_knows_no_units(self):
        model = StackelbergRegressorCV().fit(X, y, z=z)
        scaled = StackelbergRegressorCV().fit(100 * X, 0.1 * y, z=0.1 * z)
        auto = StackelbergRegressor().fit(X, y, z=z).gamma_
        grid = model.cv_results_["param_gamma"]
        np.testing.assert_allclose(grid[[0, 6, 12]], auto * np.array([1e-3, 1.0, 1e3]), rtol=1e-9)
        np.testing.assert_allclose(scaled.cv_results_["param_gamma"], 1e-6 * grid, rtol=1e-9)
        assert scaled.best_index_ == model.best_index_
        (world,) = model.worlds_
        assert world.honest == 0.5
        assert world.gammas[1] == pytest.approx(auto, rel=1e-9)

    def test_without_a_world(self):
        with pytest.warns(
            UserWarning, match=r"^gammas or honest_shares were .*Pass world="
        ) as seen:
            model = StackelbergRegressorCV([0.1, 10.0]).fit(X, y, z=z)
        assert seen[0].filename == __file__
        auto = StackelbergRegressor().fit(X, y, z=z).gamma_
        assert model.worlds_[0].gammas[1] == pytest.approx(auto, rel=1e-9)
        with pytest.warns(UserWarning, match="no world to choose them for"):
            StackelbergRegressorCV([0.1], honest_shares=[0.2, 0.5]).fit(X, y, z=z)
        # Candidates that expect the same people are judged in their world.
        model = StackelbergRegressorCV([2.0, 2.0], honest_shares=[0.3], ridges=RIDGES)
        assert model.fit(X, y, z=z).worlds_ == (Population([2.0, inf], [0.7, 0.3]),)

    def test_where_nobody_has_anything_to_gain(self):
        model = StackelbergRegressorCV(ridges=[0.0, 1.0]).fit(X, np.full(M, 3.0), z=z)
        assert model.worlds_[0].honest == 1.0
        assert model.gamma_ == inf
        np.testing.assert_allclose(model.predict(X), 3.0)

    def test_goals_are_those_of_all_labels(self):
        quantile = StackelbergRegressorCV(
            GAMMAS, world=WORLD, goal=lambda y: np.full_like(y, np.quantile(y, 0.9))
        ).fit(X, y)
        given = StackelbergRegressorCV(GAMMAS, world=WORLD)
        given.fit(X, y, z=np.full(M, np.quantile(y, 0.9)))
        np.testing.assert_array_equal(scores_of(quantile), scores_of(given))

    def test_weights_are_repetitions(self):
        again = np.repeat(np.arange(M), weight.astype(int))
        splits = splits_of(3)
        repeated = [
            tuple(np.flatnonzero(np.isin(again, part)) for part in split) for split in splits
        ]
        one = StackelbergRegressorCV(**GRID, cv=splits).fit(X, y, z=z, sample_weight=weight)
        two = StackelbergRegressorCV(**GRID, cv=repeated).fit(X[again], y[again], z=z[again])
        np.testing.assert_allclose(scores_of(one), scores_of(two), rtol=1e-8)
        assert one.best_params_ == two.best_params_


class TestAmongOthers:
    def test_in_a_pipeline_without_routing(self):
        model = make_pipeline(StandardScaler(), StackelbergRegressorCV(**GRID, cv=GroupKFold(3)))
        name = "stackelbergregressorcv"
        model.fit(frame, y, **{f"{name}__z": z, f"{name}__groups": group})
        scaled = StandardScaler().fit_transform(X)
        wanted = naive(GroupKFold(3).split(X, y, group), scaled)
        np.testing.assert_allclose(scores_of(model[-1]), wanted, rtol=1e-8)

    def test_in_a_pipeline_with_routing(self):
        plain = StackelbergRegressorCV(**GRID, cv=GroupKFold(3)).fit(X, y, z=z, groups=group)
        with sklearn.config_context(enable_metadata_routing=True):
            own = StackelbergRegressorCV(**GRID, cv=GroupKFold(3)).fit(X, y, z=z, groups=group)
            inner = StackelbergRegressorCV(**GRID, cv=GroupKFold(3))
            piped = make_pipeline(FunctionTransformer(), inner).fit(X, y, z=z, groups=group)
            weighted = clone(inner).set_fit_request(sample_weight=True)
            heavy = make_pipeline(FunctionTransformer(), weighted)
            heavy.fit(X, y, z=z, groups=group, sample_weight=weight)
            with pytest.raises(TypeError, match="groups"):
                StackelbergRegressorCV(**GRID, cv=3).fit(X, y, z=z, groups=group)
        direct = StackelbergRegressorCV(**GRID, cv=GroupKFold(3))
        direct.fit(X, y, z=z, groups=group, sample_weight=weight)
        for model in (own, piped[-1]):
            np.testing.assert_array_equal(scores_of(model), scores_of(plain))
        np.testing.assert_array_equal(scores_of(heavy[-1]), scores_of(direct))

    def test_as_a_model_to_be_scored(self):
        model = StackelbergRegressorCV(GAMMAS, world=0.5, goal=Floor(1.0))
        scorer = make_attacked_scorer(0.5, goal=Floor(1.0))
        ours = cross_val_score(model, X, y, scoring=scorer, cv=3).mean()
        assert ours > cross_val_score(Ridge(), X, y, scoring=scorer, cv=3).mean()
        fresh = clone(model).set_params(goal__level=3.0, ridges=[1.0])
        assert fresh.goal == Floor(3.0)
        assert model.goal == Floor(1.0)

    def test_costs_by_name(self):
        how = {"gammas": GAMMAS, "world": WORLD, "goal": Floor(1.0)}
        named = StackelbergRegressorCV(**how, feature_cost={"age": inf, "debt": 0.5, "years": 2.0})
        array = StackelbergRegressorCV(**how, feature_cost=COST).fit(X, y)
        np.testing.assert_allclose(scores_of(named.fit(frame, y)), scores_of(array), rtol=1e-10)

    def test_a_pull_other_than_one_half(self):
        reach = np.sum(LinearRegression().fit(X, y).coef_ ** 2)
        how = {"goal": Floor(1.0), "pull": 0.8, "cv": 3}
        model = StackelbergRegressorCV(**how).fit(X, y)
        middle = model.cv_results_["param_gamma"][6]
        assert middle == pytest.approx(reach / 4.0, rel=1e-9)
        assert model.worlds_[0].gammas[1] == pytest.approx(reach / 4.0, rel=1e-9)
        given = StackelbergRegressorCV([1.0, 2.0], world=1.0, **how)
        with pytest.raises(ValueError, match=r"^pull must stay 0.5 with both.*; got 0\.8\. Drop"):
            given.fit(X, y)

    def test_goals_that_ask_for_nothing(self):
        with pytest.warns(UserWarning, match=r"^The goals from Floor.* equal the labels y") as seen:
            StackelbergRegressorCV([1.0], goal=Floor(-250.0)).fit(X, y)
        assert seen[0].filename == __file__

    def test_warnings_of_the_final_fit(self):
        model = StackelbergRegressorCV([1.0], honest_shares=[0.0], world=1.0)
        with pytest.warns(UserWarning, match=r"^unattained, .*honest") as seen:
            model.fit(X, y, z=y + 1.0)
        assert seen[0].filename == __file__
        with pytest.warns(UserWarning, match="another scale"):
            StackelbergRegressorCV([1.0], goal=Floor(250.0)).fit(X, y)


CONSTRUCTOR = [
    ("gammas", 1.0, TypeError, r"be a list or array of numbers; got 1.0. Pass gammas=\[1.0\]"),
    ("gammas", "auto", TypeError, "be a list or array of numbers; got 'auto'"),
    ("gammas", [], ValueError, "at least one; got an empty one"),
    ("gammas", [1.0, 0.0], ValueError, r"above 0; got 0.0"),
    ("gammas", [inf], ValueError, "finite number above 0; got inf"),
    ("gammas", ["auto"], TypeError, "finite number above 0; got 'auto'"),
    ("gammas", np.ones((2, 2)), TypeError, "got ndarray of shape"),
    ("gammas", Population.mixed(1.0), TypeError, "got a Population"),
    ("pull", "half", TypeError, "be a finite number above 0 and below 1; got 'half'"),
    ("pull", 1.0, ValueError, "be a finite number above 0 and below 1; got 1.0"),
    ("honest_shares", None, TypeError, "be a list or array of numbers; got None"),
    ("honest_shares", 0.5, TypeError, r"Pass honest_shares=\[0.5\]"),
    ("honest_shares", (), ValueError, "at least one"),
    ("honest_shares", [1.1], ValueError, "at most 1; got 1.1"),
    ("ridges", {1.0}, TypeError, "got a set"),
    ("ridges", np.array([]), ValueError, "at least one"),
    ("ridges", [0.0, -1.0], ValueError, "at least 0; got -1.0"),
    ("ridges", object(), TypeError, "got an object"),
    ("world", "auto", TypeError, "be a positive number .*a Population, or a list.*got 'auto'"),
    ("world", True, TypeError, "world is True"),
    ("world", 0.0, ValueError, "world is 0.0"),
    ("world", nan, ValueError, "world is nan"),
    ("world", [], ValueError, "got an empty one"),
    ("world", [1.0, "x"], TypeError, r"world\[1\] is 'x'"),
    ("world", object(), TypeError, "got an object"),
    ("cv", 1, ValueError, ""),
    ("cv", "five", ValueError, ""),
    ("cv", 91, ValueError, ""),
    ("cv", [], ValueError, "yield at least one split"),
    ("cv", [([], [1])], ValueError, "leave training rows in every split; split 0 has none"),
    ("cv", [([1, 2], [3]), ([1], [])], ValueError, "leave test rows in every split; split 1 has"),
    ("cv", [([1, 90], [3])], ValueError, "yield pairs of arrays of row numbers below 90"),
    ("cv", [([0.5], [3])], ValueError, "yield pairs of arrays of row numbers below 90"),
    ("goal", 250, TypeError, "be None, a goal such as Floor"),
    ("feature_cost", np.ones(3), ValueError, "have one entry per column of X, 4; got 3"),
    ("fit_intercept", 1, TypeError, "be True or False"),
    ("scoring", "best", ValueError, "be None, the name of a scikit-learn .*got 'best'"),
    ("scoring", "accuracy", ValueError, "be None, the name of .*got 'accuracy'"),
    ("scoring", len, TypeError, "be None, the name of"),
    ("null_space", "both", ValueError, "be one of use, avoid; got 'both'"),
    ("one_standard_error", "yes", TypeError, "be True or False; got 'yes'"),
    ("solver", "magic", ValueError, "be one of auto"),
    ("tol", 0.0, ValueError, "above 0"),
    ("max_iter", 0, ValueError, "be a positive whole number or None"),
    ("random_state", "seed", TypeError, "be None, a seed"),
]


@pytest.mark.parametrize(("parameter", "value", "error", "said"), CONSTRUCTOR)
def test_bad_constructor_parameters(parameter, value, error, said):
    model = StackelbergRegressorCV(**({"goal": Floor(2.0)} | {parameter: value}))
    wanted = rf"^{parameter}(\[\d\])? must .*{said}" if said else "cv|n_splits|split"
    with pytest.raises(error, match=wanted):
        model.fit(X, y)
    assert model.get_params(deep=False)[parameter] is value


def test_every_constructor_parameter_is_in_the_table():
    assert {row[0] for row in CONSTRUCTOR} == set(StackelbergRegressorCV().get_params())


def test_other_bad_input():
    fit = StackelbergRegressorCV(GAMMAS, world=WORLD, cv=3).fit
    with pytest.raises(ValueError, match=r"^z or a goal is needed: .*RegressorCV\(goal=Floor"):
        fit(X, y)
    with pytest.raises(ValueError, match=r"^z was given and so was goal"):
        StackelbergRegressorCV(goal=Floor(1.0)).fit(X, y, z=z)
    with pytest.raises(TypeError, match=r"^fit takes X, y.*got colour"):
        fit(X, y, z=z, colour=1)
    with pytest.raises(ValueError, match=r"^cv=GroupKFold.*groups"):
        StackelbergRegressorCV(GAMMAS, world=WORLD, cv=GroupKFold(3)).fit(X, y, z=z)
    with pytest.raises(ValueError, match=r"^cv must leave test rows of positive weight.*split 0"):
        fit(X, y, z=z, sample_weight=np.arange(M) >= 30)
    with pytest.raises(ValueError, match=r"^cv=91 could not split the 90 rows.*fewer folds"):
        StackelbergRegressorCV(cv=91).fit(X, y, z=z)
    with pytest.raises(ValueError, match=r"^solver 'gltr' knows neither.*honest_shares=\[0\]"):
        StackelbergRegressorCV(solver="gltr").fit(X, y, z=z)
    with pytest.raises(ValueError, match=r"^sample_weight must have one entry per row"):
        fit(X, y, z=z, sample_weight=weight[1:])
    scorer = make_scorer(lambda y_true, y_pred: nan)
    with pytest.raises(ValueError, match=r"^scoring gave a score that is not finite on split 0"):
        StackelbergRegressorCV([1.0], world=1.0, scoring=scorer).fit(X, y, z=z)


def test_nothing_is_left_undone_without_pieces():
    # The names under which reductions are kept are those that the solver looks for.
    data = GameData.from_user(X, y, z, fit_intercept=True)
    splits = [Split(*pair) for pair in splits_of(3)]
    CrossValidation(data, splits, Spectral(), None)
    assert set(data.reductions) == {"gram"}
