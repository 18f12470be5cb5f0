"""A failing game made as small as it can be while it still fails in the same way.

Rows, columns and groups are dropped, options are taken back, then numbers are rounded; whatever
keeps the failure is kept, until nothing does.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator

import numpy as np

from .check import Failure
from .game import Game, People
from .replay import prepared, replay

#: Seconds of work after which the smallest game so far is good enough.
PATIENCE = 40.0
#: A failure has to stay within this factor of its size, or above one part in a thousand.
_FADED, _CLEAR = 0.1, 1e-3


class Small:
    """A shrunk game, how it fails, and by what label it is replayed."""

    def __init__(self, game: Game, label: str, failure: Failure) -> None:
        self.game, self.label, self.failure = game, label, failure


def shrink(game: Game, failure: Failure, patience: float = PATIENCE) -> Small | None:
    """The smallest game found that fails like this one; nothing if it does not fail again."""
    game, label = prepared(game, failure.solver)
    again = replay(game, label, failure.kind)
    if not again:
        return None
    first = again[0]
    kept = Small(game, label, first)
    ends = time.process_time() + patience

    def fails(candidate: Game) -> bool:
        # A failure of a smaller game is the same one only if it is not a mere shadow of it.
        for found in replay(candidate, label, first.kind):
            large = found.excess >= min(_FADED * first.excess, _CLEAR)
            if large and _alike(found.note, first.note, first.kind):
                kept.game, kept.failure = candidate, found
                return True
        return False

    progress = True
    while progress and time.process_time() < ends:
        progress = False
        for step in (_smaller, _plainer, _rounder):
            while time.process_time() < ends and _first(step(kept.game), fails, ends):
                progress = True
    return kept


def _first(candidates: Iterator[Game], fails: Callable[[Game], bool], ends: float) -> bool:
    for candidate in candidates:
        if time.process_time() > ends:
            return False
        if fails(candidate):
            return True
    return False


def _alike(note: str, first: str, kind: str) -> bool:
    """Whether two failures of one kind are the same: exceptions have to have one type."""
    return kind != "exception" or note.split(":")[0] == first.split(":")[0]


def _smaller(game: Game) -> Iterator[Game]:
    """Fewer rows, columns, groups and people: halves first, then one at a time."""
    m, n = game.X.shape
    for kept in _subsets(m):
        weight = None if game.weight is None else game.weight[kept]
        if weight is None or weight.any():
            yield game.but(X=game.X[kept], y=game.y[kept], z=game.z[kept], weight=weight)
    for kept in _subsets(n):
        cost, effects = game.cost, game.effects
        if effects is not None:
            moving = effects[:, kept].any(axis=1)
            cost, effects = cost[moving], effects[moving][:, kept]
        elif cost is not None:
            cost = cost[kept]
        if effects is None or len(effects):
            yield game.but(X=game.X[:, kept], cost=cost, effects=effects)
    for kept in _subsets(0 if game.effects is None else len(game.effects)):
        yield game.but(effects=game.effects[kept], cost=game.cost[kept])
    for kept in _subsets(len(game.more)):
        yield game.but(more=tuple(game.more[i] for i in kept))
    for kept in _subsets(len(game.people.gammas)):
        yield game.but(people=_part(game.people, kept))
    for at, people in enumerate(game.more):
        for kept in _subsets(len(people.gammas)):
            more = (*game.more[:at], _part(people, kept), *game.more[at + 1 :])
            yield game.but(more=more)


def _subsets(size: int) -> Iterator[np.ndarray]:
    everything = np.arange(size)
    if size > 3:
        yield everything[: size // 2]
        yield everything[size // 2 :]
    if size > 1:
        for i in range(size):
            yield np.delete(everything, i)


def _part(people: People, kept: np.ndarray) -> People:
    """Some of the groups, in equal shares unless the shares of the others still add up."""
    gammas = tuple(people.gammas[i] for i in kept)
    shares = tuple(people.shares[i] for i in kept)
    if not math.isclose(sum(shares), 1.0):
        shares = tuple(1.0 / len(kept) for _ in kept)
    return People(gammas, shares)


def _plainer(game: Game) -> Iterator[Game]:
    """Fewer options, plainer people."""
    if game.weight is not None:
        yield game.but(weight=None)
    if game.cost is not None:
        yield game.but(cost=None, effects=None)
        for j in np.flatnonzero(game.cost != 1.0):
            yield game.but(cost=_with(game.cost, j, 1.0))
    if game.fit_intercept:
        yield game.but(fit_intercept=False)
    if game.ridge:
        yield game.but(ridge=0.0)
    if game.store != "dense":
        yield game.but(store="dense")
    equal = tuple(1.0 / len(game.people.shares) for _ in game.people.shares)
    if game.people.shares != equal:
        yield game.but(people=game.people._replace(shares=equal))


def _rounder(game: Game) -> Iterator[Game]:
    """Shorter numbers: all of an array at once, then one at a time."""
    arrays = {name: getattr(game, name) for name in ("X", "y", "z", "weight", "cost")}
    arrays = {name: array for name, array in arrays.items() if array is not None}
    for digits in (1, 2, 3, 6):
        for name, array in arrays.items():
            short = np.vectorize(lambda v, d=digits: rounded(v, d), otypes=[float])(array)
            if not np.array_equal(short, array) and _sound(name, short):
                yield game.but(**{name: short})
    for name, array in arrays.items():
        for index, value in np.ndenumerate(array):
            for plain in simpler(float(value)):
                changed = _with(array, index, plain)
                if _sound(name, changed):
                    yield game.but(**{name: changed})
    for at, gamma in enumerate(game.people.gammas):
        for plain in simpler(gamma):
            if plain > 0.0:
                gammas = (*game.people.gammas[:at], plain, *game.people.gammas[at + 1 :])
                yield game.but(people=game.people._replace(gammas=gammas))
    for k, people in enumerate(game.more):
        for at, gamma in enumerate(people.gammas):
            for plain in simpler(gamma):
                if plain > 0.0:
                    gammas = (*people.gammas[:at], plain, *people.gammas[at + 1 :])
                    changed = people._replace(gammas=gammas)
                    yield game.but(more=(*game.more[:k], changed, *game.more[k + 1 :]))
    for plain in simpler(game.ridge):
        if plain > 0.0:
            yield game.but(ridge=plain)


def _sound(name: str, array: np.ndarray) -> bool:
    """Whether an array can be what its name says."""
    if name == "cost":
        return bool((array > 0.0).all())
    if name == "weight":
        return bool((array >= 0.0).all() and array.any())
    return True


def _with(array: np.ndarray, index: object, value: float) -> np.ndarray:
    changed = array.copy()
    changed[index] = value
    return changed


def rounded(value: float, digits: int) -> float:
    """A number to so many digits."""
    return float(f"{value:.{digits - 1}e}") if math.isfinite(value) else value


def simpler(value: float) -> Iterator[float]:
    """Numbers that are shorter to write, the shortest first."""
    if not math.isfinite(value):
        return
    tried = [0.0, 1.0, math.copysign(1.0, value), abs(value)]
    if value:
        power = 10.0 ** round(math.log10(abs(value)))
        tried += [math.copysign(power, value), *(rounded(value, d) for d in (1, 2, 3, 4, 6))]
        tried.append(float(round(value)) if abs(value) < 1e15 else value)
    length = _length(value)
    for plain in dict.fromkeys(tried):
        if _length(plain) < length:
            yield plain


def _length(value: float) -> tuple[int, float]:
    """How long a number is to write; of two that are equally long the smaller is simpler."""
    return len(f"{value:.17g}".replace(".", "")), abs(value)
