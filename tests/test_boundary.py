"""Goals of decisions, moves to the boundary and the best cut, against brute force."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from spgls import Opposite, Wants, best_response, decision_attacked, predict_attacked
from spgls.game.boundary import BoundaryProvider
from spgls.game.classes import class_goals, signs, two_classes
from spgls.game.cut import best_cut
from spgls.game.providers import Provider

inf = np.inf


def cheapest_crossing(x, coef, intercept, cost, side):
    """The least cost of reaching the other side of zero, by a general optimiser."""
    free = np.isfinite(cost)
    if not coef[free].any():
        return inf, x
    # In units in which all features cost the same, and the boundary is about one away.
    units = 1.0 / np.sqrt(cost[free])
    score = coef @ x + intercept
    slope = side * coef[free] * units / abs(score)
    units /= np.linalg.norm(slope)
    slope /= np.linalg.norm(slope)
    found = minimize(
        lambda move: float(move @ move),
        np.zeros(len(units)),
        constraints={"type": "ineq", "fun": lambda move: slope @ move - 1.0},
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert slope @ found.x - 1.0 > -1e-8
    moved = x.copy()
    moved[free] += units * found.x
    return float(cost[free] @ (moved - x)[free] ** 2), moved


def random_model(rng, n):
    """Somebody's logistic regression, with whatever coefficients."""
    model = LogisticRegression()
    model.classes_ = np.array(["no", "yes"])
    model.coef_ = rng.normal(size=(1, n)) * np.exp(rng.normal())
    model.intercept_ = rng.normal(size=1)
    model.n_features_in_ = n
    return model


@pytest.mark.parametrize("seed", range(200))
def test_the_boundary_response_is_the_cheapest_that_pays(seed):
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 7)), 4
    model, X = random_model(rng, n), rng.normal(size=(m, n))
    cost = np.exp(rng.normal(size=n))
    cost[rng.random(n) < 0.3] = inf
    wanted = rng.choice(model.classes_, size=m)
    budget = float(np.exp(rng.normal()))
    told = {"budget": budget, "feature_cost": cost}
    moved = best_response(X, wanted, model, **told)
    after = decision_attacked(model, X, wanted, **told)
    decided = predict_attacked(model, X, wanted, **told)
    # What is said of moved rows is what the model says of them.
    np.testing.assert_allclose(model.decision_function(moved), after, atol=1e-10)
    assert (model.predict(moved) == decided).all()
    for i in range(m):
        side = 1.0 if wanted[i] == "yes" else -1.0
        coef, intercept = model.coef_[0], float(model.intercept_[0])
        score = coef @ X[i] + intercept
        if (score > 0.0) == (side > 0.0):
            np.testing.assert_array_equal(moved[i], X[i])
            continue
        least, target = cheapest_crossing(X[i], coef, intercept, cost, side)
        if least < budget:
            np.testing.assert_allclose(moved[i], target, atol=2e-4 * (1.0 + abs(target).max()))
            paid = np.sum(np.where(np.isinf(cost), 0.0, cost) * (moved[i] - X[i]) ** 2)
            assert least * (1.0 - 1e-6) <= paid <= least + 1e-4 * budget
            assert decided[i] == wanted[i]
        else:
            np.testing.assert_array_equal(moved[i], X[i])
            assert decided[i] != wanted[i]


def test_nobody_moves_for_nothing():
    faced = Provider(np.array([1.0, 2.0]), 0.0, inf, None)
    score, z = np.array([-1.0, 0.0, 1.0]), np.ones(3)
    np.testing.assert_array_equal(BoundaryProvider(faced, 0.0).induced(score, z), score)
    fixed = Provider(np.array([1.0]), 0.0, inf, np.array([inf]))
    np.testing.assert_array_equal(BoundaryProvider(fixed, 9.0).step(score, z), np.zeros(3))


def test_budgets_by_row_and_a_threshold():
    faced = Provider(np.array([2.0]), 0.0, inf, np.array([4.0]))
    # One squared unit of score costs one.
    who = BoundaryProvider(faced, np.array([0.9, 1.1, 1.1]), threshold=3.0)
    after = who.induced(np.array([2.0, 2.0, 4.0]), np.array([1.0, 1.0, -1.0]))
    np.testing.assert_allclose(after, [2.0, 3.0, 3.0], atol=1e-4)
    assert after[1] > 3.0 > after[2]


@pytest.mark.parametrize("seed", range(40))
def test_no_cut_decides_more(seed):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 12))
    score = rng.integers(-3, 4, size=m) + rng.choice([0.0, 0.5, 10.0])
    y, weight = rng.choice([-1.0, 1.0], size=m), rng.integers(0, 3, size=m) + 0.5
    cut = best_cut(score, y, weight)

    def right(at):
        return float(weight @ ((score > at) == (y > 0.0)))

    tried = np.concatenate([score, score - 1e-9, [score.min() - 1.0, 0.0]])
    assert right(cut) == pytest.approx(max(map(right, tried)))
    if right(0.0) == pytest.approx(right(cut)):
        assert cut == 0.0


class TestGoals:
    def test_in_words(self):
        assert Wants("yes")(["no", "yes"]).tolist() == ["yes", "yes"]
        assert Opposite()([1, 0, 1]).tolist() == [0, 1, 0]
        assert repr(Wants("yes")) == "Wants(label='yes')"
        assert repr(Opposite()) == "Opposite()"
        assert Wants(1).get_params() == {"label": 1}
        again = pickle.loads(pickle.dumps(Wants("a")))
        assert again == Wants("a")
        assert Wants("a").set_params(label="b") == Wants("b")

    @pytest.mark.parametrize("label", [None, ["a", "b"]])
    def test_one_class_only(self, label):
        with pytest.raises(TypeError, match=r"^label must be one class"):
            Wants(label)

    @pytest.mark.parametrize("y", [["a"], ["a", "b", "c"]])
    def test_an_opposite_needs_two(self, y):
        with pytest.raises(ValueError, match=r"^y must hold two classes"):
            Opposite()(y)

    @pytest.mark.parametrize(
        "labels",
        [[0, 1, 1], [2.5, -1.0], [True, False], ["b", "a"], np.array(["b", 1], dtype=object)],
    )
    def test_classes_are_those_of_numpy(self, labels):
        labels = np.asarray(labels)
        try:
            wanted = np.unique(labels)
        except TypeError:
            with pytest.raises(TypeError):
                two_classes(labels)
            return
        found = two_classes(labels)
        np.testing.assert_array_equal(found, wanted)
        assert found.dtype == wanted.dtype

    def test_as_numbers(self):
        classes = np.array(["no", "yes"])
        assert class_goals(None, 2, None, None, classes).tolist() == [1.0, 1.0]
        assert class_goals(Wants("no"), 2, None, None, classes).tolist() == [-1.0, -1.0]
        assert class_goals(Wants("no"), 2, Opposite(), ["no", "yes"], classes).tolist() == [1, -1]
        spam = class_goals(lambda y: np.where(y == "no", "yes", y), 2, None, classes, classes)
        assert spam.tolist() == [1.0, 1.0]
        assert class_goals(None, 2, ["yes", "no"], None, classes).tolist() == [1.0, -1.0]

    @pytest.mark.parametrize(
        ("goal", "z", "y", "said"),
        [
            (Wants("maybe"), None, None, r"^goal=Wants\(label='maybe'\) wants a class that there"),
            (Opposite(), None, None, r"^y is needed, because goal=Opposite\(\)"),
            (None, ["yes"], None, "^z must have one class per row of X, 2; got"),
            (None, ["yes", "maybe"], None, "^z must hold the classes 'no' and 'yes'; entry 1 is"),
            (None, [1, 0], None, "^z must hold the classes 'no' and 'yes'; entry 0 is 1"),
            (lambda y: y[:1], None, ["no", "yes"], "^goal must return one class per row"),
            (Opposite(), None, ["no", "maybe"], "^y must hold the classes"),
        ],
    )
    def test_refused(self, goal, z, y, said):
        with pytest.raises(ValueError, match=said):
            class_goals(goal, 2, z, y, np.array(["no", "yes"]))

    def test_codes(self):
        assert signs([True, False], np.array([False, True]), "y").tolist() == [1.0, -1.0]
