"""The public functions that solve a game and that check an answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from spgls.base.types import Number, Numbers, Seed, Table, Vector
from spgls.base.validation import (
    as_numbers,
    check_callback,
    check_count,
    check_number,
    check_rng,
    check_vector,
    describe,
)
from spgls.game.between import Between
from spgls.game.costs import Costs
from spgls.game.goals import GoalLike
from spgls.game.providers import Population, PopulationRange
from spgls.matrix import Matrix
from spgls.reduction.data import GameData, NullSpace
from spgls.solvers import (
    Controls,
    Solution,
    SolverLike,
    Spectral,
    Step,
    check_memory,
    play,
    resolve,
)
from spgls.solvers.judge import judge_predictor
from spgls.solvers.ranges import certify_against_range
from spgls.solvers.returned import judged_as_given
from spgls.solvers.small import as_game
from spgls.solvers.units import units_of
from spgls.sphere import Certificate

__all__ = [
    "certify",
    "read_controls",
    "read_gammas",
    "read_people",
    "read_population",
    "read_ridge",
    "solve",
]

_GAMMA = (
    "Small is strong; gamma_from_pull finds the one at which providers close a given share of the "
    "gap to their goal. Against several groups, or honest providers, pass a Population."
)


def read_population(gamma: Any, name: str = "gamma") -> Population:
    """Return who the providers are."""
    if isinstance(gamma, Population):
        return gamma
    if isinstance(gamma, Between | PopulationRange):
        raise TypeError(
            f"{name} must be a positive number or a Population here; got {gamma!r}. solve, certify "
            "and StackelbergRegressor take a range, one at a time."
        )
    return Population.of_one(check_number(gamma, name, above=0.0, advice=_GAMMA))


def read_people(gamma: Any) -> Population | PopulationRange:
    """Return who the providers are, or may be."""
    if isinstance(gamma, Between):
        return PopulationRange.of(gamma, 0.0)
    return gamma if isinstance(gamma, PopulationRange) else read_population(gamma)


def read_gammas(gammas: Any) -> list[Population]:
    """Return who the providers are in each of several games."""
    wanted = "a sequence of positive numbers and Populations"
    one = isinstance(gammas, Population | PopulationRange) or not isinstance(gammas, Iterable)
    if one or isinstance(gammas, str | bytes | dict | set | frozenset):
        advice = " Pass a list of it, or call solve for one game."
        hint = advice if one and gammas is not None else ""
        raise TypeError(f"gammas must be {wanted}; got {describe(gammas)}.{hint}")
    if hasattr(gammas, "dtype"):
        if gammas.dtype != np.dtype(object):
            gammas = as_numbers(gammas, "gammas", wanted)
        shape = np.shape(gammas)
        if len(shape) != 1:
            hint = " Pass gammas.ravel()." if len(shape) == 2 and 1 in shape else ""
            raise ValueError(f"gammas must be {wanted}; got an array of shape {shape}.{hint}")
    entries = list(gammas)
    if not entries:
        raise ValueError(f"gammas must be {wanted}; got none.")
    return [read_population(entry, f"gammas[{i}]") for i, entry in enumerate(entries)]


def read_ridge(ridge: Any) -> float:
    """Return a ridge weight."""
    return check_number(ridge, "ridge", at_least=0.0)


def read_controls(tol: Any, max_iter: Any, rng: Any, callback: Any) -> Controls:
    """Return what a user asks of every solver."""
    return Controls(
        tol=check_number(tol, "tol", above=0.0),
        max_iter=check_count(max_iter, "max_iter"),
        rng=check_rng(rng),
        callback=check_callback(callback),
    )


def solve(
    X: Table | Matrix,
    y: Numbers,
    z: Numbers | GoalLike,
    gamma: Number | Between | Population | PopulationRange,
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
) -> Solution:
    """Find the best linear predictor against providers who react to it.

    Parameters
    ----------
    X : array-like, data frame, SciPy sparse matrix or array, or Matrix, of shape (m, n)
        Rows before anyone moves them. Never copied whole; float32 stays float32. Any object with
        the verbs of :class:`spgls.matrix.Matrix` will do.
    y : array-like of shape (m,)
        True labels.
    z : array-like of shape (m,) or callable
        Goals: the prediction each provider would like, or a function of the labels that returns
        them, such as ``Floor(250)``.
    gamma : float, Between, Population or PopulationRange
        Strength of the providers, positive; small is strong. A :class:`Population` where they
        differ in strength or some are honest. Where only a range is known, :class:`Between`, or
        ``Population.mixed(Between(0.5, 5), honest=Between(0.2, 0.8))``: then the worst objective
        over the range is made as small as possible.
    fit_intercept : bool
        Whether the predictor has an intercept, which nobody can manipulate.
    feature_cost : array-like of shape (n,) or (n, n), mapping or Actions, optional
        Cost per squared unit of change, ``inf`` for features that cannot be changed, or such costs
        by column name. One by default. Or a symmetric positive definite matrix, or what people can
        do: :class:`Actions`, and :class:`Switches` in a mapping.
    sample_weight : array-like of shape (m,), optional
        Weights of the rows, not negative.
    ridge : float
        Weight of the penalty ``ridge * sum_j w_j^2/c_j`` on changeable coefficients.
    null_space : {"use", "avoid"}
        Whether the predictor may use directions in which the rows never vary, as the game as stated
        does: they cost nothing there, and everything on rows that do vary. ``"avoid"`` looks for
        the best predictor among those that do not, and the certificate speaks of those.
    solver : str, solver object or function
        ``"auto"``, a name from :func:`spgls.solvers.available_solvers`, or an object such as
        ``spgls.solvers.Spectral(engine="qr")``. A function ``f(X, y, z, gamma)`` gets the plain
        game, with weights, costs, intercept and immutable features already in its numbers, and
        returns a coefficient per column; what it returns is certified.
    tol : float
        Certified relative gap wanted, in units of R2.
    max_iter : int, optional
        Limit on iterations of an iterative solver; each has its own default.
    rng : int or numpy Generator, optional
        Source of randomness for the solvers that use it.
    callback : callable, optional
        Called with each :class:`Step` of an iterative solver; a true result stops it, and the
        last predictor is returned with its honest certificate.

    Returns
    -------
    Solution

    See Also
    --------
    solve_path : solve a game for many strengths at once.
    certify : check a predictor, wherever it came from.
    compare_solvers : solve one game by every method.

    Examples
    --------
    >>> import numpy as np
    >>> from spgls import solve
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 3))
    >>> y = X @ [1.0, 2.0, 0.0] + rng.normal(size=200)
    >>> solution = solve(X, y, z=y + 1.0, gamma=0.5)
    >>> solution.status
    <Status.OPTIMAL: 'optimal'>
    >>> solution.certificate.relative_gap < 1e-12
    True
    """
    people, penalty = read_people(gamma), read_ridge(ridge)
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
    return play(chosen, data, [people], penalty, controls)[0]


def certify(
    X: Table | Matrix,
    y: Numbers,
    z: Numbers | GoalLike,
    gamma: Number | Between | Population | PopulationRange,
    coef: Numbers,
    *,
    intercept: Number | None = None,
    feature_cost: Costs | None = None,
    sample_weight: Numbers | None = None,
    ridge: Number = 0.0,
    null_space: NullSpace = "use",
) -> Certificate:
    """Bound how far a predictor is from the best one, from the data alone.

    Small data is decomposed. Large data is only multiplied with, in as little memory as
    :func:`solve` takes; then the bound is that of the game solved by ``"krylov"``. Against a range
    data of any size is decomposed.

    Parameters
    ----------
    X, y, z, gamma, feature_cost, sample_weight, ridge, null_space
        The game, as in :func:`solve`.
    coef : array-like of shape (n,)
        Coefficients to judge, from any source.
    intercept : float, optional
        Its intercept. None judges it in the game without an intercept, a number in the game with
        one.

    Returns
    -------
    Certificate

    Examples
    --------
    >>> import numpy as np
    >>> from spgls import certify, solve
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(50, 2))
    >>> y, z = X[:, 0], X[:, 0] + rng.random(50)
    >>> least_squares = np.linalg.lstsq(X, y, rcond=None)[0]
    >>> certify(X, y, z, 0.5, least_squares).relative_gap > 0.01
    True
    >>> certify(X, y, z, 0.5, solve(X, y, z, 0.5).coef).relative_gap < 1e-12
    True
    """
    people, penalty = read_people(gamma), read_ridge(ridge)
    data = GameData.from_user(
        X,
        y,
        z,
        fit_intercept=intercept is not None,
        feature_cost=feature_cost,
        sample_weight=sample_weight,
        null_space=null_space,
    )
    predictor = check_vector(coef, "coef", data.matrix.shape[1], "column of X")
    constant = 0.0 if intercept is None else check_number(intercept, "intercept")
    told = data, predictor, constant, people, penalty
    return judged_as_given(_judged(*told), *told)


@np.errstate(all="ignore")
def _judged(
    data: GameData,
    coef: Vector,
    intercept: float,
    people: Population | PopulationRange,
    penalty: float,
) -> Certificate:
    """How far a predictor is from the best, on the columns that are played on."""
    constant = intercept + float(data.layout.offset(coef))
    predictor = data.layout.inwards(coef)
    units = units_of(data, [people], penalty)
    if isinstance(people, PopulationRange):
        check_memory(Spectral(), data, 1, only=True)
        if units is None:
            return certify_against_range(data, predictor, constant, people, penalty)
        moved = units.told(data), units.coef(predictor), constant * units.b, units.people(people)
        return units.of_certificate(certify_against_range(*moved, units.ridge(penalty)))
    game = as_game(people, penalty)
    if units is None:
        return judge_predictor(data, predictor, constant, game, penalty)
    told = units.told(data), units.coef(predictor), constant * units.b, units.people(game)
    return units.of_certificate(judge_predictor(*told, units.ridge(penalty)))
