"""Games against the worst of several populations, on a reduced game: the entry point."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spgls.base.types import Array, Vector
from spgls.population.optimum import PopulationSolution, search_sections, solve_population
from spgls.population.worst import WorstSections
from spgls.reduction.reduced import ReducedGame

__all__ = ["solve_worst"]


def solve_worst(
    game: ReducedGame,
    gammas: Sequence[float] | Vector,
    shares: Sequence[Sequence[float]] | Array,
    *,
    ridge: float = 0.0,
    tol: float = 1e-9,
    max_intervals: int = 20_000,
    ulps: float = 2.0,
) -> tuple[PopulationSolution, Vector]:
    """Minimise the learner's loss against the worst of a chain of populations, globally.

    Parameters
    ----------
    game : ReducedGame
        The reduced data.
    gammas : array-like of shape (G,)
        Strengths of all groups, increasing; the last is infinity.
    shares : array-like of shape (K, G)
        Shares of the groups in each population. The worst mixture of all of them must be one of
        them, or lie between two neighbours.
    ridge : float
        Weight of ``|v|^2``.
    tol : float
        Gap to prove, in units of ``|y|^2``.
    max_intervals : int
        Where the branch and bound gives up; its bound is valid all the same.
    ulps : float
        Relative accuracy of the game's coordinates in ulps.

    Returns
    -------
    solution : PopulationSolution
        The optimum; its ``value`` is the worst loss of the predictor.
    weights : ndarray of shape (K,)
        Of the populations in the mixture that it is the best answer to.

    Examples
    --------
    Half of the providers are honest; the others are strong, or weak, or anything in between:

    >>> import numpy as np
    >>> from spgls.population.minimax import solve_worst
    >>> from spgls.reduction.reduced import ReducedGame
    >>> game = ReducedGame(np.array([2.0, 1.0]), np.array([3.0, 1.0]), np.ones(2), 0.5, 0.0, 4.0)
    >>> half = [[0.5, 0.0, 0.5], [0.0, 0.5, 0.5]]
    >>> found, weights = solve_worst(game, [0.1, 10.0, np.inf], half)
    >>> print(f"{found.value:.4f} {found.proved} {weights.round(2)}")
    4.2533 True [1. 0.]
    """
    gammas, shares = np.asarray(gammas, dtype=float), np.asarray(shares, dtype=float)
    if game.size + game.nullity == 0:
        # Nobody can move anything, so all populations are alike.
        alike = solve_population(game, gammas, shares[0], ridge=ridge, tol=tol, ulps=ulps)
        return alike, np.eye(len(shares))[0]
    with np.errstate(all="ignore"):
        sections = WorstSections(game, gammas, shares, ridge, tol, ulps)
        found = search_sections(game, sections, tol, True, max_intervals)
        if found.t == 0.0:
            return found, np.eye(len(shares))[0]
        return found, sections.weights_at(found.t / sections.units.t)
