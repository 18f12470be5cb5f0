"""The same game told differently must have the same optimum.

A twin is exact: no number of it is rounded, so that whatever differs is the library's doing. Where
only units change, by powers of two, every operation of floats is the same and so is the status.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from gmpy2 import mpfr

from .check import Failure, allowed_between, in_units, judge
from .exact import Exact
from .game import Game
from .play import Answer, Outcome, run_solver
from .rivals import Rival

#: One game in so many is told again, in so many ways.
RARITY = 3
TIMES = 2


class Twin(NamedTuple):
    """A game that was told again, and how many times the objective of the first its own is."""

    game: Game
    factor: float = 1.0
    only_units: bool = False
    #: What it is compared with, if that is not the game itself.
    first: Game | None = None


def permuted_columns(game: Game, dice: np.random.Generator) -> Twin | None:
    order = dice.permutation(game.X.shape[1])
    cost = None if game.cost is None else game.cost[order]
    return Twin(game.but(X=game.X[:, order], cost=cost))


def permuted_rows(game: Game, dice: np.random.Generator) -> Twin | None:
    return Twin(_rows(game, dice.permutation(len(game.y))))


def weights_as_repetition(game: Game, dice: np.random.Generator) -> Twin | None:
    times = dice.integers(1, 4, len(game.y))
    weight = np.ones(len(game.y)) if game.weight is None else game.weight
    repeated = _rows(game, np.repeat(np.arange(len(game.y)), times))
    if not _exact(weight * times, [mpfr(w) * int(t) for w, t in zip(weight, times, strict=True)]):
        return None
    return Twin(repeated, first=game.but(weight=weight * times))


def weightless_row(game: Game, dice: np.random.Generator) -> Twin | None:
    at = int(dice.integers(len(game.y)))
    more = _rows(game, np.append(np.arange(len(game.y)), at))
    weight = np.ones(len(game.y)) if game.weight is None else game.weight
    y = np.append(game.y, 2.0 * game.y[at])
    return Twin(more.but(weight=np.append(weight, 0.0), y=y))


def stacked_twice(game: Game, dice: np.random.Generator) -> Twin | None:
    if game.ridge > 1e300:
        return None
    return Twin(_rows(game, np.tile(np.arange(len(game.y)), 2)).but(ridge=2 * game.ridge), 2.0)


def other_unit_of_labels(game: Game, dice: np.random.Generator) -> Twin | None:
    unit = 2.0 ** int(dice.integers(-12, 13))
    gammas = tuple(gamma * unit**2 for gamma in game.people.gammas)
    people = game.people._replace(gammas=gammas)
    told = game.but(y=game.y * unit, z=game.z * unit, people=people)
    back = np.array(gammas) / unit**2
    pairs = ((game.y, told.y / unit), (game.z, told.z / unit), (game.people.gammas, back))
    if not all(_same(np.asarray(one), other) for one, other in pairs):
        return None
    return Twin(told, unit**2, only_units=True)


def other_unit_of_a_column(game: Game, dice: np.random.Generator) -> Twin | None:
    n = game.X.shape[1]
    unit = np.ones(n)
    j = int(dice.integers(n))
    unit[j] = 2.0 ** int(dice.integers(-12, 13))
    before = np.ones(n) if game.cost is None else game.cost
    told = game.but(X=game.X * unit, cost=before / unit**2)
    if not _same(game.X, told.X / unit) or not _same(before, told.cost * unit**2):
        return None
    return Twin(told, only_units=math.isfinite(before[j]))


def turned_columns(game: Game, dice: np.random.Generator) -> Twin | None:
    """Two columns of one cost replaced by their sum and difference, where those are exact."""
    n = game.X.shape[1]
    if n < 2:
        return None
    j, k = dice.permutation(n)[:2]
    cost = np.ones(n) if game.cost is None else game.cost.copy()
    if cost[j] != cost[k]:
        return None
    a, b = game.X[:, j], game.X[:, k]
    total, apart = a + b, a - b
    wanted = [(mpfr(u) + mpfr(v), mpfr(u) - mpfr(v)) for u, v in zip(a, b, strict=True)]
    if not _exact(total, [w[0] for w in wanted]) or not _exact(apart, [w[1] for w in wanted]):
        return None
    X = game.X.copy()
    X[:, j], X[:, k] = total, apart
    cost[[j, k]] /= 2.0
    return Twin(game.but(X=X, cost=cost))


def intercept_as_a_column(game: Game, dice: np.random.Generator) -> Twin | None:
    if not game.fit_intercept:
        return None
    m, n = game.X.shape
    cost = np.ones(n) if game.cost is None else game.cost
    X = np.hstack([game.X, np.ones((m, 1))])
    return Twin(game.but(X=X, cost=np.append(cost, math.inf), fit_intercept=False))


def other_container(game: Game, dice: np.random.Generator) -> Twin | None:
    stores = [store for store in ("dense", "fortran", "csr", "csc") if store != game.store]
    if game.store == "float32":
        return Twin(game.but(store="dense"))
    return Twin(game.but(store=str(dice.choice(stores))))


TWINS: dict[str, Callable[[Game, np.random.Generator], Twin | None]] = {
    build.__name__.replace("_", " "): build
    for build in (
        permuted_columns,
        permuted_rows,
        weights_as_repetition,
        weightless_row,
        stacked_twice,
        other_unit_of_labels,
        other_unit_of_a_column,
        turned_columns,
        intercept_as_a_column,
        other_container,
    )
}


def chosen_twins(game: Game) -> list[tuple[str, str]]:
    """Names of the twins of a game, each with the solver that is asked."""
    dice = game.dice(2)
    # Twins know costs of columns, and not those of actions.
    if dice.integers(RARITY) or game.effects is not None:
        return []
    names = dice.permutation(list(TWINS))[:TIMES]
    return [(str(name), "krylov" if dice.integers(4) == 0 else "spectral") for name in names]


def run_twin(
    game: Game, name: str, first: Outcome, best: Rival | None, solver: str
) -> tuple[Outcome | None, list[Failure]]:
    """Solve a game told again: the answer, nothing where there is no such twin, and what differs.

    ``first`` is what the solver said of the game itself, ``best`` its best predictor known.
    """
    twin = TWINS[name](game, game.dice(3))
    if twin is None or not twin.game.handed_exactly:
        return None, []
    if twin.first is not None:
        first, best = run_solver(twin.first, solver), None
    other = run_solver(twin.game, solver)
    return other, compare_twins(twin, first, other, best, f"{solver}[{name}]")


def compare_twins(
    twin: Twin, first: Outcome, other: Outcome, best: Rival | None, label: str
) -> list[Failure]:
    """What two tellings of one game disagree about."""
    game, exact = twin.game, Exact(twin.game)
    # The twin is a game of its own, and its answer is held to what holds of every answer.
    known = None if best is None else best._replace(loss=best.loss * mpfr(twin.factor))
    given = {label: other}
    failures = judge(exact, game.people, game.ridge, given, seek=False, known=known).failures

    def fail(kind: str, excess: float, note: str) -> None:
        failures.append(Failure(label, kind, excess, note[:200]))

    one, two = first.value, other.value
    if not isinstance(one, Answer) or not isinstance(two, Answer):
        if bool(first.refused) != bool(other.refused):
            why = f"{first.refused or 'solved'} / {other.refused or 'solved'}"
            fail("twin status", math.inf, why)
        return failures
    if one.status != two.status if twin.only_units else one.ok != two.ok:
        fail("twin status", math.inf, f"{one.status} / {two.status}")
    off = abs(mpfr(one.objective) * mpfr(twin.factor) - mpfr(two.objective))
    if one.ok and two.ok and off > allowed_between(exact, game.people, two):
        fail(
            "twin objective",
            in_units(off, exact),
            f"{one.objective * twin.factor:.12g} / {two.objective:.12g}",
        )
    return failures


def _rows(game: Game, index: np.ndarray) -> Game:
    weight = None if game.weight is None else game.weight[index]
    return game.but(X=game.X[index], y=game.y[index], z=game.z[index], weight=weight)


def _same(one: np.ndarray, other: np.ndarray) -> bool:
    return bool(np.array_equal(one, other))


def _exact(rounded: np.ndarray, wanted: list[mpfr]) -> bool:
    return all(mpfr(r) == w for r, w in zip(rounded.tolist(), wanted, strict=True))
