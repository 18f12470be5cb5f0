"""What ``solver="auto"`` would do with some data, without doing it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from spgls.base.frames import column_names
from spgls.base.machine import available_memory
from spgls.base.types import Number, Numbers, SupportsArray, Table
from spgls.base.validation import check_count, check_flag, check_number, check_vector, check_weight
from spgls.game.costs import Costs, read_cost
from spgls.game.goals import GoalLike, is_goal, read_goals
from spgls.game.providers import Population
from spgls.matrix import Matrix, as_matrix, in_chunks
from spgls.reduction.layout import lay_out
from spgls.solvers.auto import Plan, make_plan
from spgls.solvers.small import is_paper_game
from spgls.solvers.solve import read_gammas, read_population, read_ridge

__all__ = ["explain_solver"]


def explain_solver(
    X: Table | Matrix,
    y: Numbers | None = None,
    z: Numbers | GoalLike | None = None,
    gamma: Number | Population | Sequence[Number | Population] | SupportsArray = 1.0,
    *,
    fit_intercept: bool = False,
    feature_cost: Costs | None = None,
    sample_weight: Numbers | None = None,
    ridge: Number = 0.0,
    threads: int | None = None,
    memory: Number | None = None,
) -> Plan:
    """Say which solver ``"auto"`` would choose, what each would take, and why.

    Parameters
    ----------
    X : array-like, data frame, or SciPy sparse matrix or array, of shape (m, n)
        The data, of which only the amount matters.
    y, z, sample_weight : array-like of shape (m,), optional
        As in :func:`solve`; checked, and of no influence.
    gamma : float, Population or sequence of them
        Whom to play against; a sequence for :func:`solve_path`.
    fit_intercept : bool
        As in :func:`solve`; of no influence.
    feature_cost : array-like of shape (n,) or (n, n), mapping or Actions, optional
        Costs of features; those that are infinite make the game smaller.
    ridge : float
        As in :func:`solve`.
    threads : int, optional
        Cores to plan for; by default those that this process may use.
    memory : float, optional
        Bytes to plan with beyond ``X``; by default what is free.

    Returns
    -------
    Plan
        The choice, the reason, and predicted times and memory of all options.

    Raises
    ------
    MemoryError
        If nothing fits, with what would be needed.

    Examples
    --------
    >>> import numpy as np
    >>> from spgls import explain_solver
    >>> explain_solver(np.ones((5000, 20)), gamma=np.geomspace(0.01, 100.0, 50)).solver
    'spectral'
    >>> explain_solver(np.ones((3000, 3000))).solver
    'krylov'
    """
    # Chunks on workers are not read for a plan.
    matrix = as_matrix(X, check_finite=not in_chunks(X))
    m, n = matrix.shape
    check_flag(fit_intercept, "fit_intercept")
    if y is not None:
        y = check_vector(y, "y", m, "row of X")
    if z is not None and (y is not None or not is_goal(z)):
        read_goals(z, np.zeros(m) if y is None else y)
    check_weight(sample_weight, m)
    penalty = read_ridge(ridge)
    told: Any = gamma
    one = isinstance(told, Population) or np.ndim(told) == 0
    games = [read_population(told)] if one else read_gammas(told)
    _, layout = lay_out(matrix, read_cost(feature_cost, n, column_names(X)))
    return make_plan(
        matrix.work.of_columns(layout.count),
        len(games),
        mixed=not all(is_paper_game(game, penalty) for game in games),
        cores=check_count(threads, "threads"),
        memory=available_memory() if memory is None else check_number(memory, "memory", above=0.0),
    )
