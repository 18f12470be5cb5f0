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

__all__ = ["PopulationSolution", "confirms", "phi", "search_sections", "solve_population"]


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
        No predictor reaches a smaller value, whatever rounding did to the game. Minus infinity if
        no proof was asked for.
    upper : float
        What the bound presupposes: a predictor with no larger loss exists.
    proved : bool
        Whether the proof reached the gap asked for.
    ended : bool
        Whether the proof was not cut short.
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
    upper: float
    proved: bool
    ended: bool
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
        return search_sections(game, sections, tol, certify, max_intervals)


def _honest(game: ReducedGame, ridge: float, tol: float, certify: bool) -> PopulationSolution:
    """Ridge regression, or least squares of minimum norm: nobody moves, so there is no search."""
    x = game.sigma * game.eta / (game.d + ridge)
    t = float(x @ x)
    value = ridge * float(game.eta**2 @ (1.0 / (game.d + ridge))) + float(game.r_yy)
    upper = value + tol * game.yy
    lower = -np.inf
    if certify:
        # Whoever does better has no larger norm than these.
        reach = upper / ridge if ridge > 0.0 else np.inf
        lowest = game.rounding.proved_lowest(game.lowest)
        if lowest > 0.0:
            reach = min(reach, (sqrt(upper) + game.rounding.label_length(game.yy)) ** 2 / lowest)
        if not game.size + game.nullity:
            reach = 0.0
        zero, nu = np.zeros(1), np.array([ridge])
        charge = float(game.rounding.charge(zero + reach, zero, nu, upper)[0])
        lower = max(0.0, (1 - 16 * EPS) * value - charge)
    several = ridge == 0.0 and game.nullity > 0
    return PopulationSolution(
        x=x,
        fill=0.0,
        t=t,
        nu=ridge,
        value=value,
        lower_bound=lower,
        upper=upper,
        proved=certify and value - lower <= max(tol, FLOOR) * game.yy,
        ended=True,
        outcome="several" if several else "unique",
        steps=0,
        intervals=0,
    )


def _single(
    game: ReducedGame, gamma: float, tol: float, certify: bool, ulps: float
) -> PopulationSolution | None:
    """One strength: the sphere problem, unless its own dual bound does not confirm it."""
    small = solve_sphere(game, gamma, tol=tol, ulps=ulps)
    upper = small.value + tol * game.yy
    bound = dual_bound(game, gamma, small, upper)
    if not confirms(game, small, bound, tol):
        alone = dual_bound(game.as_computed, gamma, small, upper)
        if not confirms(game, small, alone, tol):
            return None
    if not small.s > 0.0:
        # A norm that double precision does not hold; the search ends before.
        return None
    x, fill = small.x / small.s, small.fill / small.s
    return PopulationSolution(
        x=x,
        fill=fill,
        t=float(x @ x) + fill**2,
        nu=float(small.nu),
        value=float(small.value),
        lower_bound=max(0.0, min(bound, small.value)) if certify else -np.inf,
        upper=upper,
        proved=certify and bool(confirms(game, small, bound, tol)),
        ended=True,
        outcome=small.outcome,
        steps=small.steps,
        intervals=0,
    )


def confirms(
    game: ReducedGame, small: SmallSolution | SmallSolutions, bound: Numbers, tol: float
) -> Numbers:
    """Whether dual bounds confirm optima of games against one strength.

    Parameters
    ----------
    game : ReducedGame
        The reduced data.
    small : SmallSolution or SmallSolutions
        The optimum of one game, or those of many.
    bound : float or ndarray of shape (C,)
        Dual bounds.
    tol : float
        Gap, in units of ``|y|^2``.
    """
    rounding = 64 * EPS * (game.yy + small.c**2 * game.zz)
    return small.value - bound <= max(tol, FLOOR) * game.yy + rounding


def search_sections(
    game: ReducedGame, sections: Sections, tol: float, certify: bool, max_intervals: int
) -> PopulationSolution:
    """Search, prove, and return to the game's own units."""
    search = Search(sections, tol)
    search.run()
    lower, intervals, ended = prove(search, max_intervals) if certify else (-np.inf, 0, True)
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
        upper=search.upper * units.length**2,
        proved=certify and value - lower <= search.gap,
        ended=ended,
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
