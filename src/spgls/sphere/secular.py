"""The sphere problem, solved to rounding in singular coordinates for any number of strengths.

Unknowns are ``c = alpha/(1+alpha)``, ``s = 1-c`` and ``x = s v``. The game is

    minimise |sigma x + c zeta - eta|^2 + r_yy - 2 c r_yz + c^2 r_zz   over  |x|^2 = gamma s c,

which is the paper's spherically constrained least squares in coordinates that lose no digits when
``alpha`` is huge or tiny. With a multiplier ``nu`` (four times the paper's over gamma) the optimum
is ``x = sigma (eta - c zeta)/(d + nu)``, ``c = N_y/2h``, ``s = N_e/2h`` and ``nu`` is the root of
the decreasing function ``F = |x|^2 - gamma s c`` to the right of the pole where ``d + nu`` or ``h``
vanishes. Everything is evaluated as a function of ``mu``, the distance from that pole.
"""

from __future__ import annotations

import numpy as np

from spgls.base.each import Each, any_of, choose, column, dots
from spgls.base.types import EPS
from spgls.reduction.reduced import ReducedGame
from spgls.sphere.point import (
    SEVERAL,
    UNIQUE,
    SmallSolution,
    SmallSolutions,
    build,
    sphere_roots,
    unscaled,
)
from spgls.sphere.pole import Pole, ScaledGame, find_pole, scale_to_unit, strength_in_units
from spgls.sphere.special import find_at_pole, is_degenerate, solve_degenerate

__all__ = ["solve_sphere", "solve_sphere_many"]

_MAX_STEPS = 200
#: Multipliers closer to the pole than this, in units of the largest singular value, are at it.
_TINY = 1e-250
#: Entries of one array of strengths and coordinates: several of them stay in cache.
_ENTRIES = 2**16


def solve_sphere(
    game: ReducedGame, gamma: float, *, tol: float = 1e-9, ulps: float = 2.0
) -> SmallSolution:
    """Solve the game for providers of strength ``gamma``.

    Parameters
    ----------
    game : ReducedGame
        The reduced data.
    gamma : float
        Strength, positive and finite.
    tol : float
        Where the infimum is not attained, how far above it the returned point may lie, in units
        of ``|y|^2``.
    ulps : float
        Relative accuracy of the game in ulps: where two optima differ by no more, the one with the
        smaller ``alpha`` is returned.

    Returns
    -------
    SmallSolution
    """
    return solve_sphere_many(game, np.float64(gamma), tol=tol, ulps=ulps)[()]


def solve_sphere_many(
    game: ReducedGame, gammas: Each, *, tol: float = 1e-9, ulps: float = 2.0
) -> SmallSolutions:
    """Solve the game for providers of every strength in ``gammas``.

    Parameters
    ----------
    game, tol, ulps
        As for :func:`solve_sphere`.
    gammas : ndarray of shape (G,) or ()
        Strengths, positive and finite, in any order.

    Returns
    -------
    SmallSolutions
        With the shape of the strengths; row by row what :func:`solve_sphere` would return, to
        rounding.
    """
    if gammas.shape == (1,):
        # Numbers are faster than arrays of one.
        return solve_sphere_many(game, gammas[0], tol=tol, ulps=ulps).as_row()
    empty = game.yy + game.zz == 0.0 or game.size + game.nullity == 0
    problem = None if empty else scale_to_unit(game, gammas, ulps * EPS)
    if problem is None or is_degenerate(problem):
        # Rare, and told apart one by one.
        each = np.atleast_1d(gammas).tolist()
        rows = SmallSolutions.of([_solve_alone(game, gamma, problem, tol) for gamma in each])
        return rows if gammas.shape else rows.taken(0)
    if not gammas.shape:
        with np.errstate(all="ignore"):
            return _solve(problem)
    found = SmallSolutions.empty(len(gammas), game.size)
    # Rows further apart take different numbers of steps: neighbours share a chunk.
    order = np.argsort(gammas)
    few = max(_ENTRIES // game.size, 1)
    with np.errstate(all="ignore"):
        for at in range(0, len(order), few):
            some = order[at : at + few]
            found.put(some, _solve(problem.at(problem.gamma[some])))
    return found


def _solve_alone(
    game: ReducedGame, gamma: float, problem: ScaledGame | None, tol: float
) -> SmallSolution:
    if problem is None:
        # Nothing to predict, or nothing that anyone could change: stay at zero.
        return SmallSolution(np.zeros(game.size), 0.0, 1.0, 0.0, 0.0, 0.0, game.yy, "unique", 0)
    problem = problem.at(strength_in_units(gamma, problem.sigma_max, problem.length))
    with np.errstate(all="ignore"):
        point = solve_degenerate(problem, tol)
        return _solve(problem)[()] if point is None else unscaled(point, problem)


def _solve(problem: ScaledGame) -> SmallSolutions:
    """Optima at the poles or right of them, with the shape of the strengths."""
    pole = find_pole(problem)
    hard = find_at_pole(problem, pole)
    if not any_of(hard.reached):
        return _right_of_pole(problem, pole)
    if not any_of(~hard.reached):
        return build(
            problem,
            pole,
            pole.inverse,
            hard.s,
            hard.c,
            fill=hard.fill,
            outcome=choose(hard.several, SEVERAL, UNIQUE),
        )
    # Both kinds in one chunk: each on its own.
    found = SmallSolutions.empty(len(problem.gamma), problem.game.size)
    for some in (hard.reached, ~hard.reached):
        found.put(some, _solve(problem.at(problem.gamma[some])))
    return found


def _right_of_pole(problem: ScaledGame, pole: Pole) -> SmallSolutions:
    """Optima at the roots of ``F``."""
    mu, c, s, steps = _newton(problem, pole)
    w = 1.0 / (pole.e + column(mu))
    roots = sphere_roots(problem, w)
    (s1, s2), (c1, c2) = roots.s, roots.c
    # Where the roots separate, the quadratic has more digits than the ratio N_y/2h.
    apart = roots.exist & ((s1 - s2 > 1e-3 * s1) | (s1 - s2 > 1e-3 * c2))
    by_c, by_s = abs(c - c1) <= abs(c - c2), abs(s - s1) <= abs(s - s2)
    first = choose(c <= 0.5, by_c, by_s)
    s = choose(apart, choose(first, s1, s2), s)
    c = choose(apart, choose(first, c1, c2), c)
    return build(problem, pole, w, s, c, mu, steps=steps)


def _newton(problem: ScaledGame, pole: Pole) -> Each:
    """``mu``, ``c``, ``s`` and steps: the root of ``F`` by Newton on ``1/|r|``, safeguarded."""
    g, p_z, ends, products = problem.gamma, problem.p_z, problem.p[1:], problem.products[:, :3]
    (_, e, inverse, h0, y0, e0, *_), (lo, hi, mu) = pole, _start(problem, pole)
    found, steps = np.empty((3, *g.shape)), np.empty(g.shape, dtype=np.intp)
    rows: Each = ...
    for step in range(1, _MAX_STEPS + 1):
        w = 1.0 / (e + column(mu))
        zz, yz, ez = (w * inverse).dot(products).T
        h = h0 + mu * (g + zz)
        c = (y0 + mu * (g + 2 * yz)) / (2 * h)
        s = (e0 + mu * (g + 2 * ez)) / (2 * h)
        x = np.array([s, -c]).T.dot(ends)
        x *= w
        norm2, radius2 = dots(x, x), g * s * c
        w *= x
        tilt = g * (c - s) / 2 - w.dot(p_z)
        f, drop = norm2 - radius2, dots(x, w) + tilt * tilt / h
        outside = f > 0.0
        lo, hi = choose(outside, mu, lo), choose(outside, hi, mu)
        n2 = 1.0 + choose(outside, f, 0.0 * f) * 4 / g
        new = mu + (f / drop) * n2 / (1.0 + np.sqrt(n2))
        # Before it meets a bracket that rounding may have closed on the wrong side.
        ended = (abs(f) <= EPS * (norm2 + abs(radius2))) | (abs(new - mu) <= 2 * EPS * mu)
        beyond = ~((lo < new) & (new < hi))
        if any_of(beyond):
            middle = choose(lo > _TINY, np.sqrt(lo * hi), hi / 1024.0)
            new = choose(beyond, middle, new)
            ended |= (abs(new - mu) <= 2 * EPS * mu) | (new < _TINY)
        on = ~ended
        if step == _MAX_STEPS or not any_of(on):
            break
        if any_of(ended):
            found[:, rows], steps[rows] = (mu, c, s), step
            rows = np.flatnonzero(on) if rows is ... else rows[on]
            new, g, lo, hi = new[on], g[on], lo[on], hi[on]
            e, inverse, h0, y0, e0 = e[on], inverse[on], h0[on], y0[on], e0[on]
        mu = new
    if rows is ...:
        return mu, c, s, np.intp(step)
    found[:, rows], steps[rows] = (mu, c, s), step
    return *found, steps


def _start(problem: ScaledGame, pole: Pole) -> tuple[Each, Each, Each]:
    """A bracket of ``mu``, and where to begin."""
    gamma = problem.gamma
    mu = 2 * pole.p_low / np.sqrt(gamma)
    lo = mu + _TINY
    root = pole.h == 0.0
    if any_of(root):
        steep = gamma + (pole.inverse * pole.inverse) @ problem.products[:, 0]
        mu = choose(root, abs(pole.n_y) / np.sqrt(gamma * steep), mu)
    hi = problem.reach + 2 * mu
    return lo, hi, choose(mu > 0.0, mu, EPS * hi) + _TINY
