"""The single semidefinite program of Wang et al. 2021."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Any, ClassVar

import numpy as np

from spgls.base.validation import check_choice, check_count, check_number
from spgls.reduction.data import GameData
from spgls.solvers.iterative.finish import Ends, finish
from spgls.solvers.iterative.iterate import Controls, Iterate, Run
from spgls.solvers.published.lmi import MatrixInequality
from spgls.solvers.published.semidefinite import Backend, Semidefinite, choose_backend
from spgls.solvers.registry import Capabilities, register
from spgls.solvers.solution import Solution, Status

__all__ = ["SDP"]

#: Tolerances that each code reaches in good time.
_ACCURACY = {"scs": 1e-8, "clarabel": 1e-10, "mosek": 1e-10}
_MAX_ITER = {"scs": 20_000, "clarabel": 200, "mosek": 400}
#: Iterations after which it is time to look whether the units are right.
_FIRST = {"scs": 1000}
#: Features at which a solve takes about ten seconds.
_PATIENCE = 300
#: Share of the unit to go on with where the cone solver broke down.
_RETRY = 1e-3


@register
@dataclass(frozen=True)
class SDP:
    """Maximise ``mu`` subject to ``A - mu B + lambda C >= 0`` (Wang et al. 2021).

    The program has two unknowns and a matrix of order ``n + 2``; no eigen-decomposition of the data
    is made. Its dual matrix is decomposed into pieces of rank one that lie on the sphere (Sturm and
    Zhang), and a point is recovered from the multiplier too; the better one is returned. The
    certificate rests on the multiplier that the cone solver found. ``solution.stats.stages`` names
    the cone solver. Of several optima any is returned.

    Parameters
    ----------
    backend : {"auto", "scs", "clarabel", "mosek"}
        The cone solver. ``"auto"`` takes MOSEK where it is installed and licensed, else Clarabel up
        to 25 changeable features and SCS beyond.
    accuracy : float, optional
        Its tolerance in units of order one; by default 1e-8 for SCS, 1e-10 for the others.
    max_iter : int, optional
        Limit on its iterations; by default 20000 for SCS, some hundreds for the others.
    rounds : int
        How often the program may be solved in units that suit the multiplier better.
    max_size : int, optional
        Refuse games with more changeable features. By default 300, or less where an interior point
        method would not fit into memory.
    """

    backend: Backend = "auto"
    accuracy: float | None = None
    max_iter: int | None = None
    rounds: int = 3
    max_size: int | None = None
    capabilities: ClassVar[Capabilities] = Capabilities(
        name="sdp",
        summary="one semidefinite program of order n + 2 (Wang et al. 2021)",
        finds_global=True,
        proves=True,
        iterative=False,
        memory="about 10 n^2; n^4/2 with an interior point method",
        extra="conic",
    )

    def __post_init__(self) -> None:
        check_choice(self.backend, "backend", ("auto", "scs", "clarabel", "mosek"))
        if self.accuracy is not None:
            check_number(self.accuracy, "accuracy", above=0.0, below=1.0)
        check_count(self.max_iter, "max_iter")
        check_count(self.max_size, "max_size")
        if check_count(self.rounds, "rounds") is None:
            raise TypeError("rounds must be a positive whole number; got None.")

    def solve(self, data: GameData, gamma: float, controls: Controls) -> Solution:
        """Solve one game."""
        name, n = self.capabilities.name, data.layout.count
        code, module = choose_backend(name, self.backend, n, self.max_size, _PATIENCE)
        run = Run.begin(name, data, gamma, controls, self.max_iter or _MAX_ITER[code])
        inequality = MatrixInequality(run.problem)
        run.stages.update({"squares": run.seconds, code: 0.0, "recovery": 0.0})
        best, status, iterations = self._solve(run, code, module, inequality)
        began = run.seconds
        ends = Ends.of_iterate(run.problem, best)
        solution = finish(run, ends, status or Status.INACCURATE, iterations, [()])[0]
        # To where the solution's own clock stopped: stages never add up to more than that.
        run.stages["recovery"] += solution.stats.seconds - began
        return solution

    def _solve(
        self, run: Run, code: str, module: Any, inequality: MatrixInequality
    ) -> tuple[Iterate | None, Status | None, int]:
        """Solve in units that suit the multiplier; the best point, how it ended, iterations."""
        problem, stages = run.problem, run.stages
        full = self.max_iter or _MAX_ITER[code]
        limit = min(full, _FIRST.get(code, full))
        best, status, least, iterations = None, None, np.inf, 0
        for _ in range(self.rounds):
            last = perf_counter()
            cone = Semidefinite(
                code,
                module,
                inequality.B,
                inequality.C,
                self.accuracy or _ACCURACY[code],
                limit,
            )
            answer = cone.solve(inequality.A)
            solved = perf_counter()
            stages[code] += solved - last
            iterations += answer.iterations
            if answer.x is None:
                status = status if best else answer.status
                inequality = inequality.suited(_RETRY)
                continue
            share = float(answer.x[1])
            multiplier = inequality.unit * share
            point = inequality.recover(multiplier, answer.M)
            gap, _ = inequality.prove(multiplier, point.r, point.product + problem.g)
            if best is None or gap < least:
                best, status, least = inequality.iterate(multiplier, point), answer.status, gap
            stages["recovery"] += perf_counter() - solved
            suited = inequality.suited(share)
            if gap <= run.aim or (suited is inequality and limit == full):
                break
            inequality, limit = suited, full
        return best, status, iterations
