"""Mixed populations on a reduced game: the entry point, and the cases that need no search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from spgls.base.types import EPS, Vector
from spgls.population.moments import Numbers
from spgls.population.proof import prove
from spgls.population.search import FLOOR, Outcome, Search
from spgls.population.section import Section, Sections
from spgls.reduction.reduced import ReducedGame
from spgls.sphere import SmallSolution, SmallSolutions, dual_bound, solve_sphere

__all__ = ["PopulationSolution", "confirm_single", "phi", "solve_population"]


@dataclass(frozen=True, eq=False)
class PopulationSolution:
    """Optimum of a mixed population in singular coordinates.

    Attributes
    ----------
    x : ndarray
        Coordinates of the coefficients ``v`` themselves.
    fill : float
        Norm of the coefficients in the null space of the data, or in the space of its lowest
        singular value if there is none; any direction in it is as good.
    t : float
        ``|v|^2``, which is ``|x|^2 + fill^2``.
    nu : float
        Multiplier of ``|v|^2 = t`` in the problem at fixed ``t``, divided by ``a(t)``: the
        coefficients solve ``(D + nu) x = sigma (p eta - u zeta)/a``. Zero where ``t`` is.
    value : float
        Learner's sum of squares, the ridge term included.
    lower_bound : float
        No predictor reaches a smaller value; rounding is accounted for. Minus infinity if no
        proof was asked for.
    proved : bool
        Whether the proof reached the gap asked for.
    outcome : {"unique", "several", "unattained"}
        Whether the optimum is unique, one of several (the smallest ``t`` is returned), or only
        approached as the coefficients grow.
    steps : int
        Norms at which the search evaluated the loss.
    intervals : int
        Intervals the branch and bound examined.
    """

    x: Vector
    fill: float
    t: float
    nu: float
    value: float
    lower_bound: float
    proved: bool
    outcome: Outcome
    steps: int
    intervals: int


def phi(
    game: ReducedGame,
    gammas: Sequence[float] | Vector,
    shares: Sequence[float] | Vector,
    t: float | Vector,
    ridge: float = 0.0,
) -> Vector:
    """Learner's best loss at each squared norm ``t``, in an array of the shape of ``t``.

    Parameters
    ----------
    game : ReducedGame
        The reduced data.
    gammas, shares : array-like of shape (K,)
        Strengths, infinity being honest, and shares, positive and summing to one.
    t : float or ndarray
        Squared norms, non-negative and finite.
    ridge : float
        Weight of ``t``.
    """
    t = np.asarray(t, dtype=float)
    with np.errstate(all="ignore"):
        sections = Sections(game, np.asarray(gammas), np.asarray(shares), ridge)
        value = np.full(t.size, sections.yy)
        flat = t.ravel() / sections.units.t
        positive = flat > 0.0
        if positive.any():
            nowhere = not game.size and not game.nullity
            value[positive] = np.inf if nowhere else sections.evaluate(flat[positive]).value
    return (value * sections.units.length**2).reshape(t.shape)


def solve_population(
    game: ReducedGame,
    gammas: Sequence[float] | Vector,
    shares: Sequence[float] | Vector,
    *,
    ridge: float = 0.0,
    tol: float = 1e-9,
    certify: bool = True,
    max_intervals: int = 100_000,
    ulps: float = 2.0,
) -> PopulationSolution:
    """Minimise the learner's loss in a population of providers, globally.

    Parameters
    ----------
    game : ReducedGame
        The reduced data.
    gammas, shares : array-like of shape (K,)
        Strengths, infinity being honest, and shares, positive and summing to one.
    ridge : float
        Weight of ``|v|^2``.
    tol : float
        Gap to prove, in units of ``|y|^2``. Where the infimum is not attained, also how far above
        it the returned point may lie.
    certify : bool
        Whether to prove a lower bound.
    max_intervals : int
        Where the branch and bound gives up; its bound is valid all the same.
    ulps : float
        Relative accuracy of the game's coordinates in ulps.

    Returns
    -------
    PopulationSolution

    Examples
    --------
    Half of the providers honest, half of them weak enough to be swayed by any prediction:

    >>> import numpy as np
    >>> from spgls.population import solve_population
    >>> from spgls.reduction.reduced import ReducedGame
    >>> one = np.array([1.0])
    >>> game = ReducedGame(one, -3 * one, one, 0.0, 0.0, 4.0)
    >>> found = solve_population(game, [np.inf, 0.01], [0.5, 0.5])
    >>> print(f"{found.value:.4f} {found.proved}")
    8.9702 True
    """
    gammas, shares = np.asarray(gammas, dtype=float), np.asarray(shares, dtype=float)
    strongest, weakest = float(gammas.min()), float(gammas.max())
    if strongest == np.inf or game.size + game.nullity == 0:
        return _honest(game, ridge, tol, certify)
    if strongest == weakest and ridge == 0.0:
        single = _single(game, strongest, tol, certify, ulps)
        if single is not None:
            return single
    with np.errstate(all="ignore"):
        sections = Sections(game, gammas, shares, ridge, ulps)
        return _search(game, sections, tol, certify, max_intervals)


def _honest(game: ReducedGame, ridge: float, tol: float, certify: bool) -> PopulationSolution:
    """Ridge regression, or least squares of minimum norm: nobody moves, so there is no search."""
    x = game.sigma * game.eta / (game.d + ridge)
    t = float(x @ x)
    value = ridge * float(game.eta**2 @ (1.0 / (game.d + ridge))) + float(game.r_yy)
    lower = (1 - 16 * EPS) * value if certify else -np.inf
    proved = certify and bool(value - lower <= max(tol, FLOOR) * game.yy)
    several = ridge == 0.0 and game.nullity > 0
    outcome: Outcome = "several" if several else "unique"
    return PopulationSolution(x, 0.0, t, ridge, value, lower, proved, outcome, 0, 0)


def _single(
    game: ReducedGame, gamma: float, tol: float, certify: bool, ulps: float
) -> PopulationSolution | None:
    """One strength: the sphere problem, unless its own dual bound does not confirm it."""
    small = solve_sphere(game, gamma, tol=tol, ulps=ulps)
    lower, sure = confirm_single(game, small, dual_bound(game, gamma, small), tol)
    if not sure:
        return None
    x, fill = small.x / small.s, small.fill / small.s
    return PopulationSolution(
        x=x,
        fill=fill,
        t=float(x @ x) + fill**2,
        nu=float(small.nu),
        value=float(small.value),
        lower_bound=float(lower) if certify else -np.inf,
        proved=certify and bool(small.value - lower <= max(tol, FLOOR) * game.yy),
        outcome=small.outcome,
        steps=small.steps,
        intervals=0,
    )


def confirm_single(
    game: ReducedGame, small: SmallSolution | SmallSolutions, bound: Numbers, tol: float
) -> tuple[Numbers, Numbers]:
    """Lower bounds of games against one strength, and whether they confirm the optima.

    Parameters
    ----------
    game : ReducedGame
        The reduced data.
    small : SmallSolution or SmallSolutions
        The optimum of one game, or those of many.
    bound : float or ndarray of shape (C,)
        Dual bounds, without rounding.
    tol : float
        Gap, in units of ``|y|^2``.
    """
    rounding = 16 * EPS * (game.yy + small.c**2 * game.zz)
    lower = np.minimum(np.maximum(bound - rounding, 0.0), small.value)
    return lower, small.value - lower <= max(tol, FLOOR) * game.yy + 2 * rounding


def _search(
    game: ReducedGame, sections: Sections, tol: float, certify: bool, max_intervals: int
) -> PopulationSolution:
    """Search, prove, and return to the game's own units."""
    search = Search(sections, tol)
    search.run()
    lower, intervals = prove(search, max_intervals) if certify else (-np.inf, 0)
    units, outcome = sections.units, search.outcome
    t, value = search.best_t, search.best_value
    x, fill, nu = np.zeros(game.size), 0.0, 0.0
    if t > 0.0:
        best = search.best or sections.evaluate(t, guess=1.0)
        x, fill = _point(best)
        nu, value = float(best.mu) - sections.lowest, float(best.value)
        if outcome == "unique" and (fill > 0.0 or _is_free(search, best)):
            outcome = "several"
    return PopulationSolution(
        x=x * units.norm,
        fill=fill * units.norm,
        t=t * units.t,
        nu=nu * units.sigma**2,
        value=value * units.length**2,
        lower_bound=min(lower, value) * units.length**2,
        proved=certify and value - lower <= search.gap,
        outcome=outcome,
        steps=search.steps,
        intervals=intervals,
    )


def _point(best: Section) -> tuple[Vector, float]:
    """Coordinates of ``v``, and its norm in the lowest space."""
    assert best.x is not None
    norm2, fill = float(best.x.dot(best.x)), sqrt(best.fill)
    return best.x * sqrt(best.t / norm2) if fill == 0.0 < norm2 else best.x, fill


def _is_free(search: Search, best: Section) -> bool:
    """Whether a larger norm costs nothing."""
    value = float(best.value)
    allowed = value + search.noise(value)
    if search.infinity <= allowed:
        return True
    # Away from its least multiplier the loss is analytic: what curves does not become a flat.
    if best.mu > 1e-6 and best.curvature > 1e-6 * search.sections.yy:
        return False
    beyond = search.sections.evaluate(1.5 * search.best_t, guess=best.mu)
    return bool(beyond.value <= allowed)
