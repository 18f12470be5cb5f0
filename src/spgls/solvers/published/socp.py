"""The second-order cone program of Wang et al. 2021, on singular coordinates of the data.

In those coordinates the matrix inequality of the SDP is an arrow with a 2 x 2 corner,

    [ d + nu    p_z                -p_y               ]
    [   .       zz + gamma nu      -yz - gamma nu/2   ]  >= 0,
    [   .         .                 yy - mu           ]

with ``p_y = sigma eta`` and ``p_z = sigma zeta``. Its Schur complement asks for a number ``t_i`` a
coordinate, ``t_i (d_i + nu) >= |p_i|^2``, which is a cone of dimension three, and for the corner
less ``sum t_i u_i u_i'`` to be semidefinite, another one; ``u_i`` is the direction of
``(p_z, -p_y)``.
The paper diagonalises the arrow too and is left with a corner of order one. Its program is of the
same size, but that would be a second eigen-decomposition.

What the cone solver returns is a multiplier. An error ``delta`` in it costs ``delta^2`` in the
lower bound, and in the objective of the point recovered from it. So the certificate is far better
than the cone solver's tolerance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from spgls.base.types import EPS, Vector
from spgls.base.validation import check_choice, check_count, check_number
from spgls.reduction.data import GameData
from spgls.reduction.reduced import ReducedGame
from spgls.solvers.by_reduction import Engine, solve_by_reduction
from spgls.solvers.iterative.iterate import Controls
from spgls.solvers.published.conic import Inner, backend, memory_bytes, refuse_above, solve_clarabel
from spgls.solvers.published.from_multiplier import recover
from spgls.solvers.recover import Clock, Task
from spgls.solvers.registry import Capabilities, register
from spgls.solvers.small import ULPS, Optima
from spgls.solvers.solution import Solution, Status
from spgls.sphere import SmallSolution, SmallSolutions, dual_bound
from spgls.sphere.point import unscaled
from spgls.sphere.pole import Pole, ScaledGame, find_pole, scale_to_unit

__all__ = ["SOCP"]

#: Multipliers below this share of their unit ask for a smaller unit.
_SMALL = 0.1
#: How much smaller a unit may become at once.
_SHRINK = 1e-6
#: How much smaller where the cone solver broke down.
_RETRY = 1e-3
#: Least accuracy asked of the cone solver after a first attempt was not enough.
_TIGHT = 1e-12


@register
@dataclass(frozen=True)
class SOCP:
    """One eigen-decomposition, then a second-order cone program (Wang et al. 2021).

    The cone program is solved by Clarabel in units of an upper bound of the multiplier, and once
    more in the units found where that bound was far off and the gap asks for it. The multiplier,
    and with it the certificate, is the cone solver's own.

    Parameters
    ----------
    engine : {"auto", "gram", "qr"}
        How the data is reduced, as in :class:`Spectral`.
    accuracy : float
        Tolerance of the cone solver, in units of ``|Py|^2``.
    max_iter : int
        Limit on iterations of the cone solver.
    rounds : int
        How often the program may be solved in smaller units.
    max_size : int, optional
        Refuse games whose smaller side is longer than this; by default what fits into memory.
    """

    engine: Engine = "auto"
    accuracy: float = 1e-10
    max_iter: int = 200
    rounds: int = 8
    max_size: int | None = None
    capabilities: ClassVar[Capabilities] = Capabilities(
        name="socp",
        summary="singular values, then a second-order cone program (Wang et al. 2021)",
        finds_global=True,
        proves=True,
        iterative=False,
        memory="min(m, n)^2 and one block of rows",
        extra="conic",
    )

    def __post_init__(self) -> None:
        check_choice(self.engine, "engine", ("auto", "gram", "qr"))
        check_number(self.accuracy, "accuracy", above=0.0, below=1.0)
        check_count(self.max_size, "max_size")
        for name in ("max_iter", "rounds"):
            if check_count(getattr(self, name), name) is None:
                raise TypeError(f"{name} must be a positive whole number; got None.")

    def solve(self, data: GameData, gamma: float, controls: Controls) -> Solution:
        """Solve one game."""
        name = self.capabilities.name
        clarabel = backend("clarabel", name)
        # Two matrices of that order, and what LAPACK works in.
        limit = self.max_size or int(sqrt(memory_bytes() / 32))
        refuse_above(
            name,
            min(data.matrix.shape[0], data.layout.count),
            limit,
            "decomposes a dense matrix of the order of the smaller side of the data",
            "Use solver='gltr', which only multiplies by the data.",
        )
        ends: list[Status | None] = []

        def small_solver(game: ReducedGame, _: Task) -> Optima:
            small, status = self._solve_small(clarabel, game, gamma, controls)
            ends.append(status)
            upper = small.value + controls.tol * game.yy
            bound = np.array([dual_bound(game, gamma, small, upper)])
            rows = SmallSolutions.of([small])
            return Optima.of_sphere(game, np.array([gamma]), rows, bound, np.array([upper]))

        task = Task(name, data, [gamma], 0.0, controls.tol, Clock())
        (solution,) = solve_by_reduction(task, self.engine, small_solver, stage="cone")
        if solution.status is Status.INACCURATE and ends[-1] is not None:
            solution = replace(solution, status=ends[-1])
        return solution

    def _solve_small(
        self, clarabel: Any, game: ReducedGame, gamma: float, controls: Controls
    ) -> tuple[SmallSolution, Status | None]:
        """Solve a reduced game; also how the cone solver ended."""
        if game.yy + game.zz == 0.0:
            zero = np.zeros(game.size)
            return SmallSolution(zero, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, "unique", 0), None
        problem = scale_to_unit(game, gamma, ULPS * EPS)
        point, status = self._solve_scaled(clarabel, problem, controls)
        return unscaled(point, problem), status

    def _solve_scaled(
        self, clarabel: Any, problem: ScaledGame, controls: Controls
    ) -> tuple[SmallSolution, Status | None]:
        game, gamma = problem.game, problem.gamma
        pole = find_pole(problem)
        unit, accuracy = float(problem.reach or 1.0 + game.zz / gamma), self.accuracy
        allowed = controls.aim(game.yy)
        best, bound, nu, steps, status = None, -np.inf, pole.nu, 0, None
        for _ in range(self.rounds):
            inner = _cone_program(clarabel, problem, pole, unit, accuracy, self.max_iter)
            steps += inner.iterations
            # Where the cone solver broke down, the end of the multipliers still proves something.
            shift = unit if inner.x is None else max(unit * float(inner.x[1]), 0.0)
            point = recover(problem, pole, shift, allowed)
            proved = dual_bound(game, gamma, point)
            if best is None or point.value < best.value:
                best = point
            if proved > bound:
                bound, nu, status = proved, point.nu, inner.status
            if best.value - bound <= allowed:
                break
            if inner.x is not None:
                if shift >= _SMALL * unit and accuracy <= _TIGHT:
                    break
                accuracy = min(accuracy, _TIGHT)
            share = _RETRY if inner.x is None else min(max(shift / unit, _SHRINK), 1.0)
            unit *= share
        assert best is not None
        return replace(best, nu=nu, steps=steps), status


def _cone_program(
    clarabel: Any, problem: ScaledGame, pole: Pole, unit: float, accuracy: float, max_iter: int
) -> Inner:
    """Solve for ``mu``, the multiplier's distance from its pole over ``unit``, and the ``t_i``.

    Everything is brought to order one: ``t_i`` in units of ``|p_i|^2/(d_i + nu)`` at
    ``nu = pole + unit``, rows and columns of the corner in units of their diagonal there.
    """
    game, gamma = problem.game, problem.gamma
    p = np.array([problem.p_z, -problem.p_y])
    length = np.hypot(*p)
    seen = length > 0.0
    e, p = pole.e[seen], p[:, seen]
    k = len(e)
    scale = e + unit
    corner = 1.0 / np.sqrt([game.zz + gamma * unit, max(game.yy, EPS * game.zz)])
    u = corner[:, None] * p / np.sqrt(scale)
    # The corner as (a + b, a - b, 2 o) of its diagonal a, b and what is off it, o.
    at_pole = _lorentz(
        corner[0] ** 2 * (game.zz + gamma * pole.nu),
        corner[1] ** 2 * game.yy,
        -corner[0] * corner[1] * (game.yz + gamma * pole.nu / 2),
    )
    slope = _lorentz(corner[0] ** 2 * gamma * unit, 0.0, -corner[0] * corner[1] * gamma * unit / 2)
    b = np.zeros((k + 1, 3))
    b[0] = at_pole
    b[1:] = np.column_stack([e / scale, -e / scale, np.full(k, 2.0)])
    head = sp.csc_array(
        np.vstack([[0.0, -1.0], np.column_stack([_lorentz(0.0, 1.0, 0.0), -slope])])
    )
    share = unit / scale
    at_cones = sp.csc_array(
        np.column_stack(
            [np.zeros(3 * k), np.column_stack([-share, share, np.zeros(k)]).reshape(3 * k)]
        )
    )
    columns = np.arange(k)
    pairs = sp.csc_array(
        (np.full(2 * k, -1.0), (np.r_[3 * columns, 3 * columns + 1], np.r_[columns, columns])),
        shape=(3 * k, k),
    )
    from_corner = np.vstack([np.zeros(k), _lorentz(u[0] ** 2, u[1] ** 2, u[0] * u[1])])
    A = sp.csc_array(sp.block_array([[head, sp.csc_array(from_corner)], [at_cones, pairs]]))
    cost = np.zeros(k + 2)
    cost[0] = -1.0
    cones = [clarabel.NonnegativeConeT(1)] + [clarabel.SecondOrderConeT(3)] * (k + 1)
    right = np.concatenate([[0.0], b.ravel()])
    return solve_clarabel(clarabel, cost, A, right, cones, accuracy, max_iter)


def _lorentz(a: Any, b: Any, o: Any) -> Vector:
    """Coordinates in which a symmetric 2 x 2 matrix is semidefinite iff it lies in the cone."""
    return np.array([a + b, a - b, 2 * o])
