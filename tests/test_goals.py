"""Goals: what they want, how they are varied, stored and printed, and what they refuse."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone

from spgls import (
    Cap,
    Constant,
    Floor,
    Scale,
    Shift,
    StackelbergRegressor,
    certify,
    compare_solvers,
    explain_solver,
    make_attacked_scorer,
    robustness,
    solve,
    solve_path,
)
from spgls.game.goals import goals_of
from spgls.game.response import learner_loss

y = np.array([-3.0, 0.0, 2.0, 7.5])
GOALS = [
    Shift(2.0),
    Shift(-1.5, lower=0.0),
    Shift(1, lower=-2, upper=5.0),
    Scale(0.5),
    Scale(-2.0, lower=-4.0, upper=4.0),
    Floor(1.0),
    Cap(1.0),
    Constant(8.0),
]
identified = pytest.mark.parametrize("goal", GOALS, ids=repr)


@pytest.mark.parametrize(
    ("goal", "wanted"),
    [
        (Shift(2.0), y + 2.0),
        (Shift(2.0, upper=3.0), [-1.0, 2.0, 3.0, 3.0]),
        (Shift(-2.0, lower=-1.0), [-1.0, -1.0, 0.0, 5.5]),
        (Scale(2.0), 2.0 * y),
        (Scale(2.0, lower=0.0, upper=10.0), [0.0, 0.0, 4.0, 10.0]),
        (Floor(1.0), [1.0, 1.0, 2.0, 7.5]),
        (Cap(1.0), [-3.0, 0.0, 1.0, 1.0]),
        (Constant(8.0), [8.0] * 4),
    ],
    ids=repr,
)
def test_what_they_want(goal, wanted):
    np.testing.assert_array_equal(goal(y), wanted)


@identified
def test_labels_of_any_kind_and_untouched(goal):
    before = y.copy()
    wanted = goal(y)
    np.testing.assert_array_equal(y, before)
    assert wanted.dtype == np.float64
    assert not np.shares_memory(wanted, y)
    np.testing.assert_array_equal(goal(list(y)), wanted)
    whole = np.array([1, 2, 3])
    np.testing.assert_array_equal(goal(whole), goal(whole.astype(float)))


@identified
def test_order_of_labels_and_goals(goal):
    # All but a negative scale keep the order of the labels, and none sees its neighbours.
    wanted = goal(y)
    steps = np.diff(wanted)
    assert (steps >= 0.0).all() or (steps <= 0.0).all()
    np.testing.assert_array_equal(goal(y[::-1]), wanted[::-1])
    np.testing.assert_array_equal(np.concatenate([goal(y[:1]), goal(y[1:])]), wanted)


@identified
def test_copies_are_equal_and_independent(goal):
    for copy in (clone(goal), pickle.loads(pickle.dumps(goal)), eval(repr(goal))):
        assert copy == goal
        assert copy is not goal
    name, value = next(iter(goal.get_params().items()))
    copy = clone(goal)
    assert copy.set_params(**{name: value + 0.25}) is copy
    assert goal.get_params()[name] == value
    assert copy != goal
    assert copy.set_params() is copy


def test_a_refused_change_changes_nothing():
    goal = Shift(1.0, lower=0.0, upper=2.0)
    with pytest.raises(ValueError, match="lower must not be above upper"):
        goal.set_params(amount=5.0, lower=3.0)
    assert goal == Shift(1.0, lower=0.0, upper=2.0)
    with pytest.raises(ValueError, match="height is not a parameter of Shift; it has amount, low"):
        goal.set_params(height=3.0)


BAD = [
    (None, TypeError),
    ("1", TypeError),
    (True, TypeError),
    (1j, TypeError),
    ([1.0], TypeError),
    (np.ones(2), TypeError),
    (np.nan, ValueError),
    (np.inf, ValueError),
]


@pytest.mark.parametrize(("value", "error"), BAD)
@identified
def test_parameters_are_finite_numbers(goal, value, error):
    for name, given in goal.get_params().items():
        if value is None and name in ("lower", "upper"):
            continue
        with pytest.raises(error, match=f"^{name} must be a finite number; got"):
            type(goal)(**(goal.get_params() | {name: value}))
        with pytest.raises(error, match=f"^{name} must be a finite number; got"):
            goal.set_params(**{name: value})
        assert goal.get_params()[name] == given


@identified
@pytest.mark.parametrize("labels", [None, "abc", ["a"], [1j], {"a": 1.0}])
def test_labels_are_numbers(goal, labels):
    with pytest.raises(TypeError, match=r"^y must be an array of numbers"):
        goal(labels)


def in_place(labels):
    labels += 1.0
    return labels


def test_a_goal_gets_a_copy():
    labels = y.copy()
    np.testing.assert_array_equal(goals_of(in_place, labels), y + 1.0)
    np.testing.assert_array_equal(labels, y)


@pytest.mark.parametrize(
    ("goal", "error", "said"),
    [
        (lambda y: y[:-1], ValueError, "one entry per row of X, 4; got 3"),
        (lambda y: y[:, None], ValueError, "one dimension"),
        (lambda y: 1.0, ValueError, "one dimension"),
        (lambda y: y * np.nan, ValueError, "entry 0 is nan"),
        (lambda y: np.full(4, np.inf), ValueError, "entry 0 is inf"),
        (lambda y: None, TypeError, "got None"),
        (lambda y: ["a"] * 4, TypeError, "entry 0 is 'a'"),
    ],
)
def test_what_a_goal_returns_is_checked(goal, error, said):
    with pytest.raises(error, match=f"^goal must return one finite number per row, 4; .*{said}"):
        goals_of(goal, y)


def test_any_callable_is_a_goal():
    np.testing.assert_array_equal(goals_of(np.abs, y), np.abs(y))
    assert goals_of(lambda y: list(y), y).dtype == np.float64


class TestInPlaceOfZ:
    """Where labels are at hand, a function of them is as good as its values."""

    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 3))
    y = X @ [1.0, 2.0, 0.0] + rng.normal(size=40)
    goal = Floor(1.0)
    z = goal(y)

    def test_games(self):
        X, y, z = self.X, self.y, self.z
        for answer in (
            lambda z: solve(X, y, z, 0.5).coef,
            lambda z: solve_path(X, y, z, [0.5, 1.0]).coef,
            lambda z: certify(X, y, z, 0.5, [1.0, 2.0, 0.0]).lower_bound,
            lambda z: compare_solvers(X, y, z, 0.5, solvers=["spectral"]).trials[0].solution.coef,
            lambda z: learner_loss(X, y, z, [1.0, 2.0, 0.0], gamma=0.5),
            lambda z: explain_solver(X, y, z).solver,
            lambda z: StackelbergRegressor().fit(X, y, z=z).coef_,
        ):
            np.testing.assert_array_equal(answer(self.goal), answer(z))
        assert explain_solver(X, None, self.goal).solver == "spectral"

    def test_models(self):
        X, y, z = self.X, self.y, self.z
        model = StackelbergRegressor().fit(X, y, z=z)
        scorer = make_attacked_scorer(0.5)
        assert scorer(model, X, y, z=self.goal) == scorer(model, X, y, z=z)
        found, wanted = (robustness(model, X, y, wish) for wish in (self.goal, z))
        np.testing.assert_array_equal(found.errors, wanted.errors)

    def test_refused(self):
        with pytest.raises(ValueError, match=r"^z must return one finite number per row, 40; "):
            solve(self.X, self.y, lambda y: y[1:], 0.5)
        with pytest.raises(TypeError, match=r"^z must be .*got the class Floor, not an object"):
            solve(self.X, self.y, Floor, 0.5)
