"""A range of people: what holds of the answer against the worst of its ends.

``people`` is one end of the range and the first of ``more`` the opposite one: each has a strength
and an honest share, and the range is all that lies between.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product

from gmpy2 import mpfr

import spgls

from .check import Failure, not_numbers, of_answer, troubles
from .exact import Exact
from .game import Game, People
from .play import TOL, Answer, Outcome, answer, watched
from .rivals import Rival, rivals

#: Weights of an end in mixtures with another whose best answers are rivals.
_WEIGHTS = (0.5,)


def as_given(game: Game) -> str:
    """The people of a game as they are passed to solve, in words of a program."""
    (strong, weak), (few, many) = ends_of(game)
    return f"Population.mixed(Between({strong!r}, {weak!r}), honest=Between({few!r}, {many!r}))"


def ends_of(game: Game) -> tuple[tuple[float, float], tuple[float, float]]:
    """Ends of the strengths, and of the honest shares."""
    read = [_read(people) for people in (game.people, *game.more[:1])]
    strengths, shares = (sorted(part) for part in zip(*read, strict=True))
    return (strengths[0], strengths[-1]), (shares[0], shares[-1])


def _read(people: People) -> tuple[float, float]:
    """Strength and honest share of people in two groups at most."""
    pairs = list(zip(people.gammas, people.shares, strict=True))
    moving = [gamma for gamma, _ in pairs if math.isfinite(gamma)]
    honest = math.fsum(share for gamma, share in pairs if math.isinf(gamma))
    return (moving[0], honest) if moving else (1.0, 1.0)


def corners_of(game: Game) -> list[People]:
    """The people at the ends."""
    strengths, shares = ends_of(game)
    return [
        People((math.inf, gamma), (honest, 1.0 - honest))
        for gamma, honest in product(sorted(set(strengths)), sorted(set(shares)))
    ]


def run_range(game: Game, exact: Exact) -> tuple[Outcome, list[Failure]]:
    """Solve against the range, and hold the answer against the worst of its ends."""
    y, z = game.targets
    (strong, weak), (few, many) = ends_of(game)

    def call() -> Answer:
        between = spgls.Population.mixed(
            spgls.Between(strong, weak), honest=spgls.Between(few, many)
        )
        return answer(spgls.solve(game.table, y, z, between, tol=TOL, **game.options()))

    outcome = watched(call)
    failures = troubles("range", outcome)
    if not isinstance(outcome.value, Answer):
        return outcome, failures
    lost = not_numbers(outcome.value)
    if lost:
        return outcome, [*failures, Failure("range", "not a number", math.inf, lost)]
    corners = corners_of(game)
    point = exact.point(outcome.value.coef, outcome.value.intercept)
    own = Rival("range", point, _worst(exact, point, corners, game.ridge))
    best = min([own, *_rivals(exact, corners, game.ridge, own)], key=lambda rival: rival.loss)
    floor = max(exact.floor(point, people) for people in corners)
    return outcome, failures + of_answer(exact, "range", outcome.value, own.loss, best, floor)


def _worst(exact: Exact, point: object, corners: list[People], ridge: float) -> mpfr:
    return max(exact.loss(point, people, ridge) for people in corners)  # type: ignore[arg-type]


def _rivals(exact: Exact, corners: list[People], ridge: float, own: Rival) -> Iterator[Rival]:
    """Best answers to the ends and to mixtures of two, with their worst losses."""
    faced = list(corners)
    for at, one in enumerate(corners):
        for other in corners[:at]:
            faced += [_mixed(one, other, weight) for weight in _WEIGHTS]
    for people in faced:
        for rival in rivals(exact, people, ridge, own):
            loss = _worst(exact, rival.point, corners, ridge)
            yield Rival(f"{rival.name} against {people}", rival.point, loss)


def _mixed(one: People, other: People, weight: float) -> People:
    shares = [weight * share for share in one.shares]
    shares += [(1.0 - weight) * share for share in other.shares]
    return People((*one.gammas, *other.gammas), tuple(shares))
