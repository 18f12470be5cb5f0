"""One game for every strength of provider: one reduction of the data, many solutions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from time import perf_counter

from spgls.base.types import Number, Numbers, Seed, Table
from spgls.game.costs import Costs
from spgls.game.goals import GoalLike
from spgls.game.providers import Population
from spgls.matrix import Matrix
from spgls.reduction.data import GameData, NullSpace
from spgls.solvers import SolverLike, Step, latest, play, resolve
from spgls.solvers.small import as_game
from spgls.solvers.solutions import Path
from spgls.solvers.solve import read_controls, read_gammas, read_ridge

__all__ = ["Path", "solve_path"]


def solve_path(
    X: Table | Matrix,
    y: Numbers,
    z: Numbers | GoalLike,
    gammas: Iterable[Number | Population],
    *,
    fit_intercept: bool = False,
    feature_cost: Costs | None = None,
    sample_weight: Numbers | None = None,
    ridge: Number = 0.0,
    null_space: NullSpace = "use",
    solver: SolverLike = "auto",
    tol: Number = 1e-9,
    max_iter: int | None = None,
    rng: Seed | None = None,
    callback: Callable[[Step], object] | None = None,
) -> Path:
    """Find the best predictor against each of many kinds of providers, from one reduction.

    Every solution equals what :func:`solve` finds on its own, up to the tolerance and the rounding
    that its certificate states. ``"spectral"`` and ``"krylov"`` solve all games together: a hundred
    of them take little longer than the hardest one. Other solvers take one game after the other.

    Parameters
    ----------
    X, y, z, fit_intercept, feature_cost, sample_weight, ridge, null_space
        The game, as in :func:`solve`.
    gammas : sequence of float and Population
        Whom to play against: positive strengths, populations, or some of each, in any order.
    solver, tol, max_iter, rng
        As in :func:`solve`.
    callback : callable, optional
        Called with each :class:`Step` of an iterative solver. Where games are solved together that
        is the step of the one farthest from its optimum. A true result stops the games at hand:
        their last predictors are returned with honest certificates.

    Returns
    -------
    Path

    See Also
    --------
    solve : solve one game.

    Examples
    --------
    >>> import numpy as np
    >>> from spgls import solve_path
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 3))
    >>> y = X @ [1.0, 2.0, 0.0] + rng.normal(size=200)
    >>> path = solve_path(X, y, z=y + 1.0, gammas=np.geomspace(0.01, 100.0, 50))
    >>> len(path), path.coef.shape, path.stats.passes
    (50, (50, 3), 1.0)
    >>> path[0].certificate.kind, path[10:20].alpha.shape
    ('proved', (10,))
    >>> set(path.status)
    {<Status.OPTIMAL: 'optimal'>}
    """
    started = perf_counter()
    penalty = read_ridge(ridge)
    populations = read_gammas(gammas)
    controls = read_controls(tol, max_iter, rng, callback)
    chosen = resolve(solver)
    data = GameData.from_user(
        X,
        y,
        z,
        fit_intercept=fit_intercept,
        feature_cost=feature_cost,
        sample_weight=sample_weight,
        null_space=null_space,
    )
    solutions = play(chosen, data, populations, penalty, controls)
    stats = replace(latest(solutions), seconds=perf_counter() - started)
    games = tuple(as_game(population, 0.0) for population in populations)
    return Path(games, solutions, stats)
