"""Families of games, each with one kind of difficulty; game i of a seed depends on both only."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.linalg import hadamard

from .draw import EXTREME, MODERATE, Dice
from .game import Game, People

Family = Callable[[Dice], Game]


def make_game(seed: int, number: int) -> Game:
    """The game of a number; families take turns."""
    names = list(FAMILIES)
    rng = np.random.default_rng([seed, number])
    level = EXTREME if rng.random() < 0.5 else MODERATE
    name = names[number % len(names)]
    with np.errstate(all="ignore"):
        made = FAMILIES[name](Dice(rng, level))
    return made.but(family=name, seed=seed, number=number)


def generic(dice: Dice) -> Game:
    X = dice.numbers(*dice.size())
    y = dice.labels(X)
    return dice.finish(X, y, dice.goals(X, y))


def graded_columns(dice: Dice) -> Game:
    """Columns, singular values or entries that spread over decades."""
    X = dice.spread_out(*dice.size())
    y = dice.labels(X / (np.abs(X).max(initial=0.0) or 1.0)) if dice.chance(0.7) else dice.labels(X)
    return dice.finish(X, y, dice.goals(X, y))


def weak_direction(dice: Dice) -> Game:
    """One direction in which the data hardly reaches, mostly against several groups.

    Honest people keep a predictor from paying for its norm, so that the best one may use the weak
    direction however long its coefficients get.
    """
    m, n = dice.size()
    n = max(2, n)
    X = dice.numbers(m, n)
    kind = dice.pick(("column", "singular value", "diagonal", "nearly dependent"))
    low = -16.0 if kind == "nearly dependent" else -10.0
    weak = dice.power(-4.0, -1.0) if dice.level is MODERATE else dice.power(low, -6.0)
    if kind == "column":
        X[:, -1] *= weak
    elif kind == "singular value":
        values = np.ones(min(m, n))
        values[-1] = weak
        X = dice.with_values(m, n, values)
    elif kind == "diagonal":
        X = np.eye(n + int(dice.rng.integers(0, 3)), n)
        X[n - 1, n - 1] = weak
    else:
        X[:, -1] = X[:, 0] + weak * (np.abs(X[:, 0]).max() or 1.0) * dice.numbers(m)
    y = dice.numbers(len(X)) if dice.chance(0.8) else dice.labels(X)
    people = None
    if dice.chance(0.75):
        reach, groups = dice.level.gamma, dice.pick((1, 2, 2))
        gammas = [dice.power(-reach, reach) for _ in range(groups)]
        people = People((math.inf, *gammas), dice.shares(1 + groups))
    return dice.finish(X, y, dice.goals(X, y), people=people)


def graded_weights(dice: Dice) -> Game:
    X = dice.numbers(*dice.size())
    y = dice.labels(X)
    weight = dice.weight(len(y), dice.level.spread)
    return dice.finish(X, y, dice.goals(X, y), weight=weight)


def near_ties(dice: Dice) -> Game:
    """Two predictors that cost nearly the same: alpha and 1/alpha, or two weak directions."""
    if dice.chance(0.5):
        X = dice.numbers(*dice.size())
        z = dice.numbers(len(X))
        y = dice.disturbed(z / 2) if dice.chance(0.7) else z / 2
        return dice.finish(X, y, z)
    m = dice.pick((4, 8))
    n = int(dice.rng.integers(2, min(m, 6)))
    scale = np.full(n, dice.pick((0.25, 0.5, 1.0)))
    scale[0] = 2.0
    X = dice.disturbed(hadamard(m)[:, 1 : n + 1] * scale)
    y = dice.numbers(m)
    return dice.finish(X, y, dice.goals(X, y))


def _hard(dice: Dice) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Games that need a vector which labels and goals do not show."""
    kind = dice.pick(("wide", "repeated rows", "dependent", "constant goal", "lowest", "lowest"))
    if kind == "lowest":
        return _lowest(dice)
    if kind == "repeated rows":
        X = np.repeat(dice.numbers(3, 5), 2, axis=0)
        y = 0.3 * dice.numbers(6)
        return X, y, 0.5 * y + 0.3 * dice.numbers(6), dice.power(0.0, 3.0)
    if kind == "dependent":
        X = dice.rng.integers(-2, 3, (8, 2)) @ dice.rng.integers(-2, 3, (2, 4)) * 1.0
        y = X @ dice.numbers(4) + dice.numbers(8)
        return X, y / 8, y + dice.numbers(8), dice.power(0.0, 4.0)
    m, n = (8, 4) if kind == "constant goal" else (4, 6)
    X, y = dice.numbers(m, n), dice.numbers(m) / 8
    z = np.full(m, 4.0) if kind == "constant goal" else dice.numbers(m)
    return X, y, z, dice.power(0.0, dice.level.gamma)


def _lowest(dice: Dice) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Orthogonal columns, the weakest of them orthogonal to labels and goals."""
    H = hadamard(8).astype(float)
    strong, weak = 2.0, 0.5
    X = H[:, [1, 2, 3]] * [strong, weak, dice.pick((weak, 0.75))]
    nu, stretch = -8 * weak**2, 8 / (8 * strong**2 - 8 * weak**2)
    for _ in range(200):
        a, b = dice.rng.integers(-4, 5, size=(2, 3))
        gamma = 2.0 ** int(dice.rng.integers(-4, 8))
        h = 8 * (b[1:] @ b[1:]) + nu * (gamma + stretch * b[0] ** 2)
        c = (8 * (a[1:] @ b[1:]) + nu * (gamma / 2 + stretch * a[0] * b[0])) / h if h > 0 else 0
        along = strong * stretch * (a[0] - c * b[0])
        if 0.05 < c < 0.95 and gamma * c * (1 - c) > along**2 + 0.1:
            break
    return X, H[:, [1, 4, 5]] @ a, H[:, [1, 4, 5]] @ b, gamma


def hard_case(dice: Dice) -> Game:
    X, y, z, gamma = _hard(dice)
    people = People((gamma,)) if dice.chance(0.85) else None
    return dice.finish(X, y, z, people=people, weight=None, ridge=0.0)


def nearly_hard(dice: Dice) -> Game:
    """A hard game, disturbed by rounding or a little more, some in other units."""
    X, y, z, gamma = _hard(dice)
    # Dependent columns disturbed by rounding have a condition that is anything but moderate.
    low = -4.0 if dice.level is MODERATE else -17.0
    X = dice.disturbed(X, low, -2.0) if dice.chance(0.6) else X
    y, z = (dice.disturbed(part, -17.0, -3.0) if dice.chance(0.6) else part for part in (y, z))
    unit = 2.0 ** int(dice.rng.integers(-20, 21)) if dice.chance(0.3) else 1.0
    gamma *= 1.0 + (dice.power(-16.0, -3.0) if dice.chance(0.3) else 0.0)
    people = People((gamma / unit**2,)) if dice.chance(0.85) else None
    return dice.finish(X * unit, y, z, people=people)


def orthogonal_goals(dice: Dice) -> Game:
    """Goals, at times labels too, that no column shows: exactly, or up to rounding."""
    if dice.chance(0.5):
        H = hadamard(8).astype(float)
        n = int(dice.rng.integers(1, 4))
        X = H[:, 1 : n + 1] * (dice.graded(n) if dice.chance(0.5) else 1.0)
        z = H[:, 5:] @ dice.numbers(3)
        y = z + H[:, 4] if dice.chance(0.3) else H[:, 1 : n + 1] @ dice.numbers(n) + z / 2
        return dice.finish(X, y, z, weight=None)
    X = dice.numbers(*dice.size())
    y, z = dice.labels(X), dice.numbers(len(X))
    z = z - X @ np.linalg.lstsq(X, z, rcond=None)[0]
    if dice.chance(0.3):
        y = y - X @ np.linalg.lstsq(X, y, rcond=None)[0]
    return dice.finish(X, y, z, weight=None)


def rank_deficient(dice: Dice) -> Game:
    m, n = dice.size()
    kinds = ("low rank", "wide", "constant", "zero", "duplicate", "rows")
    kind = dice.pick(kinds if dice.level is MODERATE else (*kinds, "rounded", "nearly"))
    X = dice.numbers(m, n)
    scale = dice.graded(n) if dice.chance(0.4) else np.ones(n)
    intercept = dice.chance(0.5)
    if kind == "low rank":
        k = int(dice.rng.integers(1, 1 + max(1, n // 2)))
        X = dice.rng.integers(-3, 4, (m, k)) @ dice.rng.integers(-2, 3, (k, n)) * 1.0
        scale = 2.0 ** np.rint(np.log2(scale))
    elif kind == "wide":
        m = int(dice.rng.integers(1, n + 1))
        X = X[:m] if m <= len(X) else dice.numbers(m, n)
    elif kind == "constant":
        X[:, -1], intercept = dice.pick((0.1, 1.0, 3.0)), True
    elif kind == "zero":
        X[:, -1] = 0.0
    elif kind == "rows":
        X = X[np.arange(m) % max(1, m // 2)]
    X = X * scale
    if kind == "duplicate":
        X[:, -1] = X[:, 0] * dice.pick((1.0, -2.0, 2.0**-10))
    elif kind == "nearly":
        X[:, -1] = X[:, 0] + dice.power(-16.0, -5.0) * np.abs(X[:, 0]).max() * dice.numbers(m)
    elif kind == "rounded":
        # Dependent but for rounding: no threshold decides rightly whether it is.
        X[:, -1] = X @ dice.rng.normal(size=n) / 3.0 if n == 1 else X[:, :-1] @ np.ones(n - 1) / 3.0
    y = dice.labels(X)
    return dice.finish(X, y, dice.goals(X, y), fit_intercept=intercept)


def huge_and_tiny(dice: Dice) -> Game:
    """Everything in other units, at times so far off that squares leave the range of floats."""
    X = dice.numbers(*dice.size())
    y = dice.labels(X)
    z = dice.goals(X, y)
    reach = (
        8.0 if dice.level is MODERATE else dice.pick((12.0, 20.0, 20.0, 40.0, 60.0, 100.0, 160.0))
    )
    unit, label = dice.power(-reach, reach), dice.power(-reach, reach)
    apart = dice.power(-reach, reach) / label if dice.chance(0.15) else 1.0
    people = dice.people(X, y)
    if dice.chance(0.7):
        # The same game in other units; else providers who are far too weak or strong.
        factor = np.float64(label / unit) ** 2
        gammas = np.array(people.gammas) * factor
        if np.isfinite(factor) and (gammas > 0.0).all():
            people = people._replace(gammas=tuple(gammas.tolist()))
    return dice.finish(X * unit, y * label, z * label * apart, people=people)


def uncentred(dice: Dice) -> Game:
    """Columns whose means are thousands of standard deviations from zero."""
    m, n = dice.size()
    X = dice.numbers(m, n)
    y = dice.labels(X)
    z = dice.goals(X, y)
    high = 4.0 if dice.level is MODERATE else 6.0 if dice.chance(0.8) else 9.0
    X = X + dice.power(2.0, high, n) * dice.rng.choice([-1.0, 0.0, 1.0], n, p=[0.3, 0.2, 0.5])
    if dice.chance(0.3):
        y, z = y + (far := dice.power(2.0, high)), z + far
    return dice.finish(X, y, z, fit_intercept=dice.chance(0.85))


def single_precision(dice: Dice) -> Game:
    m, n = dice.size()
    X = dice.numbers(m, n)
    if dice.chance(0.4):
        X = X * dice.graded(n)
    y = dice.labels(X)
    z = dice.goals(X, y)
    X, y, z = (part.astype(np.float32).astype(np.float64) for part in (X, y, z))
    return dice.finish(X, y, z, store="float32")


def sparse(dice: Dice) -> Game:
    """Few entries, empty rows and columns, entries stored in two halves."""
    m, n = dice.size()
    X = dice.numbers(m, n) * (dice.rng.random((m, n)) < dice.pick((0.15, 0.3, 0.6)))
    X[dice.rng.random(m) < 0.2] = 0.0
    if dice.chance(0.3):
        X = X * dice.graded(n)
    y = dice.labels(X)
    store = dice.pick(("csr", "csr", "csc", "coo", "halves", "halves"))
    return dice.finish(X, y, dice.goals(X, y), store=store)


def populations(dice: Dice) -> Game:
    m, n = dice.size()
    X = dice.spread_out(m, n) if dice.chance(0.5) else dice.numbers(m, n)
    y = dice.labels(X)
    return dice.finish(X, y, dice.goals(X, y), people=dice.population(X, y))


def ridged(dice: Dice) -> Game:
    m, n = dice.size()
    X = dice.spread_out(m, n) if dice.chance(0.4) else dice.numbers(m, n)
    y = dice.labels(X)
    z = dice.goals(X, y)
    return dice.finish(X, y, z, ridge=dice.power(-dice.level.gamma, dice.level.gamma))


def costs(dice: Dice) -> Game:
    """Costs that spread over decades, immutable columns, dependent ones among them."""
    m, n = dice.size()
    X = dice.numbers(m, n)
    cost = dice.cost(n, dice.level.spread, immutable=dice.pick((0.2, 0.5)))
    kind = dice.pick(("plain", "plain", "dependent", "constant", "all"))
    if kind == "all":
        cost = np.full(n, math.inf)
    elif kind != "plain" and n > 1:
        cost[-2:] = math.inf
        # Times three is rounded, so the columns are not quite dependent.
        times = -4.0 if dice.level is MODERATE or dice.chance(0.5) else 3.0
        X[:, -1] = X[:, -2] * times if kind == "dependent" else 1.0
    y = dice.labels(X)
    return dice.finish(X, y, dice.goals(X, y), cost=cost)


def actions(dice: Dice) -> Game:
    """Actions on several columns: fewer than those, as many, more; some that others can replace."""
    others = (generic, graded_columns, weak_direction, rank_deficient, uncentred, sparse)
    made = dice.pick(others)(dice)
    n = made.X.shape[1]
    count = dice.pick((1, max(1, n - 1), n, n + 2))
    whole = dice.chance(0.5)
    effects = dice.rng.integers(-2, 3, (count, n)) * 1.0 if whole else dice.numbers(count, n)
    if dice.chance(0.5):
        effects = effects * (dice.rng.random((count, n)) < 0.5)
    if dice.chance(0.3):
        effects = effects * dice.graded(n)
    idle = ~effects.any(axis=1)
    effects[idle, dice.rng.integers(0, n, int(idle.sum()))] = 1.0
    if count > 2 and dice.chance(0.3):
        effects[-1] = effects[0] - 2.0 * effects[1] if whole else 2.0 * effects[0]
        effects[-1, 0] += 1.0 if not effects[-1].any() else 0.0
    if n > 2 and dice.chance(0.3):
        # A one-hot group that keeps its sum.
        effects = np.eye(n)[:2] - np.eye(n)[1:3]
    cost = dice.cost(len(effects), dice.level.spread, immutable=0.2)
    return made.but(effects=effects, cost=cost)


def paths(dice: Dice) -> Game:
    """Many people on the data of another family."""
    others = (generic, graded_columns, weak_direction, hard_case, rank_deficient, uncentred, costs)
    made = dice.pick(others)(dice)
    number = int(dice.rng.integers(2, 5))
    more = [People((dice.strength(made.X, made.y),)) for _ in range(number)]
    if dice.chance(0.6):
        more += [dice.population(made.X, made.y) for _ in range(int(dice.rng.integers(1, 3)))]
    order = dice.rng.permutation(len(more))
    return made.but(more=tuple(more[i] for i in order))


def ranges(dice: Dice) -> Game:
    """Strengths, honest shares or both of which only the ends are known, on any data."""
    others = (generic, graded_columns, weak_direction, hard_case, rank_deficient, uncentred, costs)
    made = dice.pick((*others, orthogonal_goals, near_ties))(dice)
    strengths = sorted(dice.strength(made.X, made.y) for _ in range(2))
    shares = sorted(dice.pick((0.0, 0.1, 0.25, 0.5, 0.75, 1.0)) for _ in range(2))
    kind = dice.pick(("strength", "share", "both"))
    if kind == "strength":
        shares[1] = shares[0]
    elif kind == "share":
        strengths[1] = strengths[0]
    low, high = (
        People((math.inf, gamma), (share, 1.0 - share))
        for gamma, share in zip(strengths, shares, strict=True)
    )
    return made.but(people=low, more=(high,))


def folds(dice: Dice) -> Game:
    """Strengths to choose from by cross-validation; ``people`` is the world they are judged in."""
    m, n = int(dice.rng.integers(6, 16)), int(dice.rng.integers(1, 5))
    X = dice.numbers(m, n)
    if dice.chance(0.3):
        X = X * dice.graded(n)
    if dice.chance(0.3):
        X = X + dice.power(1.0, 3.0 if dice.level is MODERATE else 6.0, n)
    if dice.chance(0.2):
        X[:, -1] = X[:, 0]
    y = dice.labels(X)
    more = [People((dice.strength(X, y),)) for _ in range(int(dice.rng.integers(1, 3)))]
    store = "csr" if dice.chance(0.15) else "dense"
    return dice.finish(X, y, dice.goals(X, y), more=tuple(more), store=store)


FAMILIES: dict[str, Family] = {
    build.__name__.replace("_", " "): build
    for build in (
        generic,
        graded_columns,
        weak_direction,
        graded_weights,
        near_ties,
        hard_case,
        nearly_hard,
        orthogonal_goals,
        rank_deficient,
        huge_and_tiny,
        uncentred,
        single_precision,
        sparse,
        populations,
        ridged,
        costs,
        actions,
        paths,
        folds,
        ranges,
    )
}
