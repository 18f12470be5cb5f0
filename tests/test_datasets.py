"""The sets of the papers: what is in them, what their providers want, and synthetic games."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_regression

from spgls import Floor, solve
from spgls.datasets import (
    _synthetic,
    catalogue,
    load_blog_feedback,
    load_insurance,
    load_problem,
    load_residential_building,
    load_wine_quality,
    make_dense,
    make_sparse,
)
from spgls.datasets._entries import TAGS

from .real_games import numbers

FOLDER = os.environ.get("SPGLS_DATA")
LOADERS = {
    "wine": load_wine_quality,
    "insurance": load_insurance,
    "building": load_residential_building,
    "blog": load_blog_feedback,
}
SHAPES = {"wine": (1599, 11), "insurance": (1338, 11), "building": (372, 107), "blog": (52397, 280)}
FILES = {
    "wine": "winequality-red.csv",
    "insurance": "insurance.csv",
    "building": "Residential-Building-Data-Set.xlsx",
    "blog": "blogData_train.csv",
}


@pytest.fixture(scope="module")
def real():
    """Load a set once."""
    if not FOLDER:
        pytest.skip("SPGLS_DATA does not name a folder with the data")
    loaded = {}

    def load(name):
        if name not in loaded:
            loaded[name] = LOADERS[name](FOLDER)
        return loaded[name]

    return load


every = pytest.mark.parametrize("name", LOADERS)


@every
def test_a_set_is_complete(real, name):
    data = real(name)
    assert data.X.shape == SHAPES[name]
    assert data.y.shape == SHAPES[name][:1]
    assert data.X.dtype == data.y.dtype == np.float64
    assert data.X.flags.c_contiguous
    assert np.isfinite(data.X).all()
    assert np.isfinite(data.y).all()
    assert len(set(data.feature_names)) == SHAPES[name][1]
    assert data.target_name not in data.feature_names
    assert Path(data.filename).name.startswith(FILES[name])
    assert data.description == data.DESCR
    assert data.description.startswith(("Red", "Insurance", "Residential", "Blog"))
    assert ("CC BY 4.0" in data.licence) == (name != "insurance")


#: The table of the protocols, in the units of the labels.
ATTACKERS = [
    ("wine", "2021", lambda y: np.maximum(y, 6), lambda y: np.maximum(y, 8)),
    ("wine", "2022", lambda y: np.maximum(y, 6), lambda y: np.maximum(y, 7)),
    ("wine", "2022-text", lambda y: np.maximum(y, 6), lambda y: np.maximum(y, 8)),
    *(
        (
            "insurance",
            protocol,
            lambda y: np.maximum(100 * y - 100, 0) / 100,
            lambda y: np.maximum(100 * y - 300, 0) / 100,
        )
        for protocol in ("2021", "2022", "2022-text")
    ),
    ("building", "2021", lambda y: np.maximum(y + 20, 0), lambda y: np.maximum(y + 40, 0)),
    ("building", "2022", lambda y: y + 20, lambda y: y + 40),
    ("building", "2022-text", lambda y: y + 20, lambda y: y + 40),
    ("blog", "2021", lambda y: np.maximum(y - 5, 0), lambda y: np.maximum(y - 10, 0)),
    ("blog", "2022", lambda y: y + 5, lambda y: y + 10),
    ("blog", "2022-text", lambda y: y + 5, lambda y: y + 10),
]


@pytest.mark.parametrize(("name", "protocol", "modest", "severe"), ATTACKERS)
def test_what_providers_want(real, name, protocol, modest, severe):
    data = real(name)
    goals = data.goals[protocol]
    assert list(goals) == ["modest", "severe"]
    # Labels below zero too: only there do a shift and a shift with a floor always differ.
    labels = np.concatenate([data.y, [-100.0, -1.0, 0.0, 0.5]])
    for goal, formula in zip(goals.values(), (modest, severe), strict=True):
        np.testing.assert_allclose(goal(labels), formula(labels), rtol=1e-14, atol=1e-12)
        assert pickle.loads(pickle.dumps(goal)) == goal


@pytest.mark.parametrize("name", ["wine", "insurance", "building"])
def test_goals_of_two_loads_are_separate(real, name):
    again = LOADERS[name](FOLDER)
    goal = again.goals["2022"]["modest"]
    first = next(iter(goal.get_params()))
    goal.set_params(**{first: 1234.0})
    assert real(name).goals["2022"]["modest"] != goal
    assert list(again.goals) == ["2021", "2022", "2022-text"]


def test_severe_goals_of_wine_are_constant_in_2021(real):
    wine = real("wine")
    assert np.ptp(wine.goals["2021"]["severe"](wine.y)) == 0.0
    assert np.ptp(wine.goals["2022"]["severe"](wine.y)) > 0.0
    assert (wine.y.min(), wine.y.max()) == (3.0, 8.0)
    assert set(wine.y) == {3.0, 4.0, 5.0, 6.0, 7.0, 8.0}
    # Of names and columns in the same order, the density of wine is near that of water.
    np.testing.assert_allclose(wine.X[:, wine.feature_names.index("density")], 1.0, atol=0.01)


def test_insurance_is_singular_with_a_column_of_ones(real):
    data = real("insurance")
    ones = np.ones((len(data.y), 1))
    # Three groups of categories, each of which adds up to the ones.
    assert np.linalg.matrix_rank(np.hstack([data.X, ones])) == 12 - 3
    for group in ("sex_", "smoker_", "region_"):
        columns = [at for at, name in enumerate(data.feature_names) if name.startswith(group)]
        np.testing.assert_array_equal(data.X[:, columns].sum(axis=1), 1.0)
    assert data.feature_names[:5] == ["age", "bmi", "children", "sex_female", "sex_male"]


def test_insurance_against_its_first_and_last_line(real):
    data = real("insurance")
    with (Path(FOLDER) / "insurance.csv").open() as file:
        lines = file.read().splitlines()
    for row, line in ((0, lines[1]), (-1, lines[-1])):
        age, sex, bmi, children, smoker, region, charges = line.split(",")
        person = dict(zip(data.feature_names, data.X[row], strict=True))
        assert (person["age"], person["bmi"], person["children"]) == (
            float(age),
            float(bmi),
            float(children),
        )
        assert person[f"sex_{sex}"] == person[f"smoker_{smoker}"] == person[f"region_{region}"] == 1
        assert data.y[row] == float(charges) / 100.0


def test_building_has_little_rank_unscaled(real):
    data = real("building")
    assert np.linalg.matrix_rank(data.X) == 76
    assert data.y.sum() == 516125.0
    assert data.y.min() == 50.0


def test_building_against_another_reader(real):
    data = real("building")
    table = numbers(Path(data.filename))
    np.testing.assert_array_equal(data.X, table[:, :107])
    np.testing.assert_array_equal(data.y, table[:, 107])
    assert table[:, 108].sum() == 86545.0


def test_building_names_are_in_the_order_of_its_columns(real):
    data = real("building")
    assert [data.feature_names[at] for at in (3, 4, 11, 12, 30, 31, 106)] == [
        "COMPLETION QUARTER",
        "V-1",
        "V-8",
        "V-11 lag 1",
        "V-29 lag 1",
        "V-11 lag 2",
        "V-29 lag 5",
    ]
    column = dict(zip(data.feature_names, data.X.T, strict=True))
    assert set(column["START QUARTER"]) == set(column["COMPLETION QUARTER"]) == {1, 2, 3, 4}
    # What was so a quarter before the start is the second lag of those who start a quarter later.
    start = column["START YEAR"] * 4 + column["START QUARTER"]
    by_start = dict(zip(start, column["V-15 lag 1"], strict=True))
    later = [at for at, when in enumerate(start) if when - 1 in by_start]
    expected = [by_start[start[at] - 1] for at in later]
    assert len(later) > 300
    assert np.mean(column["V-15 lag 2"][later] == expected) > 0.9


def test_blog_has_four_constant_columns(real):
    data = real("blog")
    constant = np.flatnonzero(np.ptp(data.X, axis=0) == 0.0)
    assert [data.feature_names[at] for at in constant] == [
        "source comments day before last min",
        "source links last day min",
        "source links day before last min",
        "parents comments min",
    ]
    assert data.y.min() == 0.0
    assert data.y.sum() == 354451.0


def test_blog_names_mean_what_they_say(real):
    data = real("blog")
    column = dict(zip(data.feature_names, data.X.T, strict=True))
    for what in ("comments", "links"):
        np.testing.assert_array_equal(
            column[f"{what} last day change"],
            column[f"{what} last day"] - column[f"{what} day before last"],
        )
        for count in (what, f"{what} first day"):
            low, middle, high, spread = (
                column[f"source {count} {word}"] for word in ("min", "median", "max", "std")
            )
            assert (low <= column[count]).all()
            assert (column[count] <= high).all()
            assert (low <= middle).all()
            assert (middle <= high).all()
            assert (spread >= 0.0).all()
    for when in ("basetime", "published"):
        days = [values for name, values in column.items() if name.startswith(f"{when} ")]
        assert len(days) == 7
        np.testing.assert_array_equal(np.sum(days, axis=0), 1.0)
    assert set(np.unique(column["word 1"])) <= {0.0, 1.0}
    assert column["hours since publication"].max() == 72.0


@pytest.mark.parametrize("name", ["wine", "insurance", "building"])
def test_frames(real, name):
    plain, framed = real(name), LOADERS[name](FOLDER, as_frame=True)
    assert isinstance(framed.X, pd.DataFrame)
    assert isinstance(framed.y, pd.Series)
    assert list(framed.X.columns) == plain.feature_names
    assert framed.y.name == plain.target_name
    np.testing.assert_array_equal(framed.X.to_numpy(), plain.X)
    np.testing.assert_array_equal(framed.y.to_numpy(), plain.y)


def test_dense_is_the_regression_of_scikit_learn():
    X, y = make_regression(60, 40, noise=0.1, random_state=3)
    game = make_dense(60, 40, scale=False, random_state=3)
    np.testing.assert_array_equal(game.X, X)
    np.testing.assert_array_equal(game.y, y)
    scaled = make_dense(60, 40, random_state=3)
    np.testing.assert_array_equal(scaled.y, y)
    np.testing.assert_array_equal(scaled.X.min(axis=0), 0.0)
    np.testing.assert_array_equal(scaled.X.max(axis=0), 1.0)
    span = np.ptp(X, axis=0)
    np.testing.assert_allclose(scaled.X * span + X.min(axis=0), X, rtol=0, atol=1e-14)


def test_noise_of_dense_games():
    quiet, loud = (make_dense(400, 5, noise=s, scale=False, random_state=1) for s in (0.0, 2.0))
    left = [
        game.y - game.X @ np.linalg.lstsq(game.X, game.y, rcond=None)[0] for game in (quiet, loud)
    ]
    assert np.abs(left[0]).max() < 1e-9
    assert 1.7 < np.std(left[1]) < 2.3


def test_one_row_and_one_column():
    assert make_dense(1, 3, random_state=0).X.tolist() == [[0.0, 0.0, 0.0]]
    assert make_dense(4, 1, random_state=0).X.shape == (4, 1)
    assert make_sparse(1, 1, 1.0, random_state=0).X.nnz == 1


GAMES = [
    lambda seed: make_dense(80, 30, random_state=seed),
    lambda seed: make_sparse(80, 30, 0.2, random_state=seed),
    lambda seed: make_sparse(80, 30, 0.2, noise="normal", random_state=seed),
]
both = pytest.mark.parametrize("make", GAMES, ids=["dense", "sparse", "sparse-normal"])


@both
def test_the_lowest_quarter_would_like_to_leave_it(make):
    game = make(5)
    raised = game.z > game.y
    assert raised.sum() == 20
    assert (game.y[raised] < game.goal.level).all()
    np.testing.assert_array_equal(game.z[raised], game.goal.level)
    np.testing.assert_array_equal(game.z[~raised], game.y[~raised])
    assert isinstance(game.goal, Floor)
    np.testing.assert_array_equal(game.goal(game.y), game.z)


@both
def test_a_seed_is_a_game(make):
    one, same, other = make(5), make(5), make(6)
    assert abs(one.X - same.X).max() == 0.0
    np.testing.assert_array_equal(one.y, same.y)
    assert abs(one.X - other.X).max() > 0.1
    assert np.abs(make(None).y - make(None).y).max() > 0.0


@both
def test_games_can_be_solved(make):
    game = make(2)
    found = solve(game.X, game.y, game.z, 0.1)
    assert found.certificate.kind == "proved"
    assert found.certificate.relative_gap < 1e-9


def test_sparse_entries_are_independent_and_normal():
    m, n, density, rounds = 40, 25, 0.15, 400
    count = np.zeros((m, n))
    for seed in range(rounds):
        count += make_sparse(m, n, density, random_state=seed).X.toarray() != 0.0
    expected, variance = rounds * density, rounds * density * (1.0 - density)
    # The sum of squares of m n standard normals: five of its standard deviations either way.
    chi = ((count - expected) ** 2).sum() / variance
    assert abs(chi - m * n) < 5.0 * np.sqrt(2.0 * m * n)
    assert np.abs(count - expected).max() < 6.0 * np.sqrt(variance)
    X = make_sparse(2000, 3000, 0.01, random_state=0).X
    assert isinstance(X, sp.csr_array)
    assert X.has_canonical_format
    assert X.indices.dtype == X.indptr.dtype == np.int32
    assert abs(X.nnz - 60000) < 5.0 * np.sqrt(60000)
    assert abs(X.data.mean()) < 0.02
    assert abs(X.data.std() - 1.0) < 0.02


@pytest.mark.parametrize(
    ("density", "nnz"), [(1.0, 500), (1e-12, 0), (1e-30, 0), (5e-324, 0)], ids=str
)
def test_extreme_densities(density, nnz):
    assert make_sparse(20, 25, density, random_state=0).X.nnz == nnz


def test_a_draw_that_falls_short_goes_on(monkeypatch):
    monkeypatch.setattr(_synthetic, "SPARE", -10.0)
    X = make_sparse(30, 50, 1.0, random_state=0).X
    assert X.nnz == 1500
    assert X.has_canonical_format


@pytest.mark.parametrize("noise", ["uniform", "normal"])
def test_noise_of_sparse_games(noise):
    game = make_sparse(3000, 50, 0.1, noise=noise, random_state=4)
    error = game.y - game.X @ game.coef
    assert game.coef.min() >= 0.0
    assert game.coef.max() <= 1.0
    if noise == "uniform":
        assert error.min() > -1e-12
        assert error.max() < 0.5 + 1e-12
        assert abs(error.mean() - 0.25) < 0.02
    else:
        assert abs(error.mean()) < 0.05
        assert abs(error.std() - 0.5) < 0.03


@pytest.mark.parametrize(
    ("make", "given", "error", "said"),
    [
        (make_dense, {"m": 0}, ValueError, "m must be a positive whole number"),
        (make_dense, {"m": None}, TypeError, "m must be a positive whole number; got None"),
        (make_dense, {"n": 2.0}, TypeError, "n must be a positive whole number or None; got 2.0"),
        (make_dense, {"noise": -1}, ValueError, "noise must be a finite number of at least 0"),
        (make_dense, {"noise": "uniform"}, TypeError, "noise must be a finite number"),
        (make_dense, {"scale": 1}, TypeError, "scale must be True or False; got 1"),
        (make_dense, {"random_state": 1.5}, TypeError, "random_state must be None or a whole"),
        (make_dense, {"random_state": -1}, ValueError, "random_state must be None or a whole"),
        (make_dense, {"random_state": 2**32}, ValueError, "from 0 to 4294967295; got 4294967296"),
        (make_sparse, {"m": -2}, ValueError, "m must be a positive whole number"),
        (make_sparse, {"density": 0}, ValueError, "density must be .* above 0 and of at most 1"),
        (make_sparse, {"density": 1.5}, ValueError, "density must be .* above 0 and of at most 1"),
        (make_sparse, {"density": "1"}, TypeError, "density must be .*; got '1'"),
        (make_sparse, {"noise": 0.1}, TypeError, "noise must be one of uniform, normal; got 0.1"),
        (make_sparse, {"noise": "none"}, ValueError, "noise must be one of uniform, normal"),
        (make_sparse, {"random_state": True}, TypeError, "random_state must be None or a whole"),
    ],
)
def test_bad_arguments_of_generators(make, given, error, said):
    valid = {"m": 6, "n": 4} | ({"density": 0.5} if make is make_sparse else {})
    with pytest.raises(error, match=said):
        make(**(valid | given))


# The catalogue


def test_a_problem_is_what_solve_takes_and_knows_its_optimum():
    problem = load_problem("everything-at-once")
    solution = solve(**problem.arguments)
    assert solution.objective == pytest.approx(problem.optimum, rel=1e-12)
    assert problem.answer.how == "exact"
    assert repr(problem).startswith("Problem('everything-at-once': 40 x 14, costs, immutable")


def test_every_problem_says_what_is_special_about_it():
    for name, tags in catalogue().items():
        problem = load_problem(name)
        assert problem.tags == tags
        assert problem.description.endswith(".")
        assert set(tags) <= set(TAGS)


def test_problems_are_built_anew():
    load_problem("tall").X[:] = 0.0
    assert load_problem("tall").X.any()


def test_names_and_tags_that_are_not_in_the_catalogue():
    with pytest.raises(ValueError, match=r"^name must be one of tall, .*; got 'tal'"):
        load_problem("tal")
    with pytest.raises(ValueError, match=r"^tag must be one of tall, .*; got 'difficult'"):
        catalogue("difficult")
