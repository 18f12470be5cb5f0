"""Predictors that no solver found: what a false bound is caught by.

A lower bound speaks about every predictor, so these are made in high precision from the normal
equations: least squares and its neighbours at every ridge, moves along the weakest directions of
the data, and the nearest local minimum of the loss by Newton's method.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from gmpy2 import mpfr

from .exact import Exact, eliminate, exactly, shrunk, solve_semidefinite
from .game import People

#: Ridges over the largest eigenvalue. The first is so small that it only picks the least norm.
_RIDGES = ("1e-55", "1e-24", "1e-16", "1e-10", "1e-5", "1e-1", "1e2")
#: Lengths of moves along weak directions, over that of the predictor moved.
_MOVES = ("1e-4", "1e-2", "1", "1e2", "1e5", "1e9")
_STEPS = 16


class Rival(NamedTuple):
    """A predictor, where it came from, and its loss."""

    name: str
    point: np.ndarray
    loss: mpfr


def rivals(exact: Exact, people: People, ridge: float, start: Rival | None) -> Iterator[Rival]:
    """Predictors to hold bounds against, ``start`` being the best that a solver found."""
    made = []

    def judged(name: str, point: np.ndarray) -> Rival:
        made.append(Rival(name, point, exact.loss(point, people, ridge)))
        return made[-1]

    nothing = exact.with_best_free(exactly(np.zeros(len(exact.price))), people)
    yield judged("no changeable feature", nothing)
    for name, point in _ridged(exact, people):
        yield judged(name, point)
    best = min([*made, *([start] if start else [])], key=lambda rival: rival.loss)
    for name, point in _moved(exact, people, ridge, best):
        yield judged(f"{name} from {best.name}", point)
    best = min([*made, best], key=lambda rival: rival.loss)
    yield judged(f"Newton from {best.name}", _newton(exact, people, ridge, best))


def _ridged(exact: Exact, people: People) -> Iterator[tuple[str, np.ndarray]]:
    """Stationary points of fixed multiplier: ``(G + nu C) v = X'(y + alpha (y - z))``."""
    top = max([exact.gram[j, j] / exact.price[j] for j in np.flatnonzero(~exact.free)], default=0)
    if top == 0:
        return
    right = np.array([exact.along_y, -exact.along_gap], dtype=object).T
    for size in _RIDGES:
        nu = mpfr(size) * top
        fit, turn = solve_semidefinite(exact.gram + np.diag(nu * exact.price), right).T
        name = "least squares" if size == _RIDGES[0] else f"ridge {size}"
        yield name, fit
        alpha = mpfr(0)
        for _ in range(4):
            a, p, _ = shrunk(exact.reach(fit + alpha * turn), people)
            alpha = p / a - 1
        yield f"{name} against the goals", fit + alpha * turn


def _moved(
    exact: Exact, people: People, ridge: float, best: Rival
) -> Iterator[tuple[str, np.ndarray]]:
    """The best move along each of the two weakest directions, as far as they go."""
    some = np.flatnonzero(~exact.free)
    if not len(some):
        return
    size = np.array([math.sqrt(float(v)) if v else 0.0 for v in exact.price[some]])
    matrix = np.array([[float(v) for v in row] for row in exact.X[:, some]]).reshape(-1, len(some))
    with np.errstate(all="ignore"):
        matrix = matrix / size
        scale = np.abs(matrix).max(initial=0.0)
        if not np.isfinite(scale) or scale == 0.0:
            return
        directions = np.linalg.svd(matrix / scale, full_matrices=True)[2][-2:] / size
    norm = exact.reach(best.point)
    unit = norm if norm else mpfr(1)
    for at, direction in enumerate(directions):
        if not np.isfinite(direction).all():
            continue
        step = exactly(np.zeros(len(exact.price)))
        step[some] = exactly(direction)
        step = step * (unit ** mpfr(0.5))
        trials = [
            exact.with_best_free(best.point + sign * mpfr(length) * step, people)
            for length in _MOVES
            for sign in (1, -1)
        ]
        yield (
            f"move along weak direction {at}",
            min(trials, key=lambda trial: exact.loss(trial, people, ridge)),
        )


def _newton(exact: Exact, people: People, ridge: float, start: Rival) -> np.ndarray:
    """Damped Newton steps on the loss; it never ends above where it started."""
    point, loss = start.point, start.loss
    shift = mpfr(0)
    enough = mpfr("1e-40") * (exact.labels + exact.goals)
    for _ in range(_STEPS):
        slope, curve = derivatives(exact, people, ridge, point)
        size = np.array([abs(v) for v in np.diag(curve)], dtype=object)
        step, definite = eliminate(curve + np.diag(shift * size), -slope)
        trial = point + step
        after = exact.loss(trial, people, ridge) if definite else loss
        if definite and after < loss:
            gained, point, loss = loss - after, trial, after
            shift = shift / 100 if shift > mpfr("1e-12") else mpfr(0)
            if gained <= enough:
                break
        elif shift > 1e12:
            break
        else:
            shift = max(shift * 1000, mpfr("1e-12"))
    return point


def derivatives(
    exact: Exact, people: People, ridge: float, point: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Gradient and Hessian of ``a(t)|Xw - z|^2 + 2 p(t) (Xw - z)'(z - y) + ridge t``."""
    t = exact.reach(point)
    a = a1 = a2 = p = p1 = p2 = mpfr(0)
    for gamma, share in zip(people.gammas, people.shares, strict=True):
        if math.isinf(gamma):
            a, p = a + share, p + share
            continue
        s = gamma / (gamma + t)
        a, p = a + share * s**2, p + share * s
        a1, p1 = a1 - 2 * share * s**3 / gamma, p1 - share * s**2 / gamma
        a2 += 6 * share * s**4 / mpfr(gamma) ** 2
        p2 += 2 * share * s**3 / mpfr(gamma) ** 2
    along = exact.gram @ point
    square = along @ point - 2 * (exact.along_z @ point) + exact.zz
    cross = exact.along_gap @ point - exact.zgap
    d_square, d_cross, d_t = 2 * (along - exact.along_z), exact.along_gap, 2 * exact.price * point
    pull = a1 * square + 2 * p1 * cross + ridge
    slope = a * d_square + 2 * p * d_cross + pull * d_t
    mixed = np.multiply.outer(a1 * d_square + 2 * p1 * d_cross, d_t)
    curve = 2 * a * exact.gram + np.diag(2 * pull * exact.price) + mixed + mixed.T
    return slope, curve + (a2 * square + 2 * p2 * cross) * np.multiply.outer(d_t, d_t)
