"""Methods from outside: a function as a solver, and any answer to the plain game as a Solution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spgls.base.machine import available_memory
from spgls.base.types import Array, Vector
from spgls.base.validation import as_numbers, describe
from spgls.base.vector import norm
from spgls.game.providers import Population, priced_norm
from spgls.population.groups import Groups, Reached
from spgls.reduction.data import GameData
from spgls.solvers.auto import Auto
from spgls.solvers.iterative.iterate import Controls
from spgls.solvers.judge import judge_predictor
from spgls.solvers.recover import Clock, loss_of
from spgls.solvers.registry import Capabilities, SolverFunction
from spgls.solvers.solution import Solution, Status, status_of

__all__ = ["OwnSolver", "certified_solution"]

#: Share of the free memory that the rows given to a function may take.
_SHARE = 0.5
#: Goals and labels that the columns tell apart by less than this part of them are the same.
_SAME = 1e-12


def certified_solution(
    name: str,
    data: GameData,
    coef: Any,
    gamma: float,
    controls: Controls,
    *,
    clock: Clock | None = None,
) -> Solution:
    """Judge an answer to the plain game, wherever it came from.

    The plain game is that of the paper: rows ``data.projected``, labels and goals the columns of
    ``data.projected_targets[0]``, without weights, costs, intercept or immutable columns, which are
    in those numbers already. The predictor gets them back here, with the best intercept and the
    best coefficients of immutable columns.

    Parameters
    ----------
    name : str
        Name of the solver, for the solution and for errors.
    data : GameData
        The game.
    coef : array-like
        Coefficients in the plain game, one per column of ``data.projected``.
    gamma : float
        Strength of the providers.
    controls : Controls
        Whose tolerance decides the status.
    clock : Clock, optional
        Started when the method was; without it only this judgement is timed.

    Returns
    -------
    Solution
        Certified as by :func:`spgls.certify`. Within the tolerance the status is ``OPTIMAL``, or
        ``UNATTAINED`` where no predictor is best; else it is ``STATIONARY``.
    """
    clock = Clock() if clock is None else clock
    v = _read_answer(coef, name, data.projected.shape[1])
    layout = data.layout
    # Numbers beyond double precision show in the certificate.
    with np.errstate(all="ignore"):
        w = layout.coefficients(v, data.free_coefficients(v, float(v @ v) / gamma))
        linear = data.matrix.apply(w)
        reached = Groups(gamma).at(priced_norm(w, layout.cost))
        intercept = data.best_intercept(linear, reached.t / gamma)
        prediction = linear + intercept
        certificate = judge_predictor(data, w, intercept, gamma, 0.0, enough=controls.tol)
        unattained = certificate.relative_gap <= controls.tol and _is_unattained(data, gamma)
        multiplier = _multiplier(data, reached, prediction, gamma)
    clock.lap("certificate", 1.0)
    return Solution(
        coef=w,
        intercept=intercept,
        alpha=reached.t / gamma,
        multiplier=multiplier,
        objective=loss_of(data, reached, prediction),
        status=status_of(
            certificate.relative_gap,
            controls.tol,
            "unattained" if unattained else "unique",
            otherwise=Status.STATIONARY,
        ),
        solver=name,
        certificate=certificate,
        stats=clock.stats(1),
    )


@dataclass(frozen=True)
class OwnSolver:
    """A function ``f(X, y, z, gamma)`` as a solver of the plain game.

    Parameters
    ----------
    function : callable
        Takes the rows as a float64 array, labels, goals and a strength, none of which it may
        write to, and returns one coefficient per column.
    """

    function: SolverFunction

    @property
    def capabilities(self) -> Capabilities:
        """What is known of it: its name."""
        return Capabilities(
            name=_name_of(self.function),
            summary="a function of the user's",
            finds_global=False,
            proves=False,
            iterative=False,
            memory="m n, and what the function needs",
        )

    def solve(self, data: GameData, gamma: float, controls: Controls) -> Solution:
        """Solve one game."""
        return self.solve_path(data, [gamma], controls)[0]

    def solve_path(
        self,
        data: GameData,
        gammas: Sequence[float | Population],
        controls: Controls,
        ridge: float = 0.0,
    ) -> tuple[Solution, ...]:
        """Solve one game after the other on the same rows; it knows no ridge."""
        clock, name = Clock(), self.capabilities.name
        rows, y, z = _plain_game(data, name)
        clock.lap("rows", 1.0)
        solutions = []
        for gamma in gammas:
            assert not isinstance(gamma, Population)
            coef = self.function(rows, y, z, gamma)
            clock.lap(name)
            solutions.append(certified_solution(name, data, coef, gamma, controls, clock=clock))
        return tuple(solutions)


def _name_of(function: Any) -> str:
    """A function's name; that of its class, or of what it was made from, where it has none."""
    while not hasattr(function, "__name__") and hasattr(function, "func"):
        function = function.func
    return str(getattr(function, "__name__", type(function).__name__))


def _plain_game(data: GameData, name: str) -> tuple[Array, Vector, Vector]:
    """Rows, labels and goals of the plain game, not to be written to."""
    data.check_finite()
    m, n = data.projected.shape
    needed, room = 8.0 * m * n, available_memory()
    if needed > _SHARE * room:
        raise MemoryError(
            f"solver {name!r} is a function, which gets {m} x {n} dense numbers: "
            f"{needed / 1e9:.3g} GB, and {room / 1e9:.3g} GB are free. Register a solver class, "
            "which can work with products alone, or use solver='krylov'."
        )
    rows = np.ascontiguousarray(data.projected.apply(np.eye(n)))
    y, z = (np.array(target) for target in data.projected_targets[0].T)
    for part in (rows, y, z):
        part.flags.writeable = False
    return rows, y, z


def _read_answer(coef: Any, name: str, n: int) -> Vector:
    """Coefficients that a method returned, or an error that names it."""
    wanted = f"solver {name!r} must return one finite coefficient per column of its X, {n}"
    if isinstance(coef, tuple) and len(coef) == 2 and np.ndim(coef[0]) == 1:
        raise TypeError(f"{wanted}; got a pair. The intercept is found for it: return coef alone.")
    try:
        array = as_numbers(coef, "its answer").astype(np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{wanted}; got {describe(coef)}.") from None
    if array.shape != (n,):
        hint = " Return it with .ravel()." if array.size == n and array.ndim > 1 else ""
        raise ValueError(f"{wanted}; got an array of shape {array.shape}.{hint}")
    wrong = np.flatnonzero(~np.isfinite(array))
    if len(wrong):
        raise ValueError(f"{wanted}; entry {wrong[0]} is {array[wrong[0]]}.")
    return array


def _multiplier(data: GameData, reached: Reached, prediction: Vector, gamma: float) -> float:
    """The multiplier if the predictor is stationary: how its loss changes with its squared norm."""
    error, gap = prediction - data.y, data.z - data.y
    weight = 1.0 if data.weight is None else data.weight
    squares = (float((weight * a) @ b) for a, b in ((error, error), (error, gap), (gap, gap)))
    return gamma / 4 * float(np.divide(reached.by_norm(*squares), reached.a))


def _is_unattained(data: GameData, gamma: float) -> bool:
    """Whether no predictor is best, which takes labels and goals that no column tells apart."""
    seen = np.asarray(data.projected.cross(data.projected_targets[0]))
    if norm(seen[:, 0] - seen[:, 1]) > _SAME * (norm(seen[:, 0]) + norm(seen[:, 1])):
        return False
    return Auto().solve(data, gamma, Controls()).status is Status.UNATTAINED
