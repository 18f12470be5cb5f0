"""Bisection on the value of the game, a semidefinite program at each step (Bishop et al. 2020)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, log2
from time import perf_counter
from typing import Any, ClassVar

import numpy as np

from spgls.base.validation import check_choice, check_count, check_number
from spgls.reduction.data import GameData
from spgls.solvers.iterative.iterate import Controls, Iterate, Run, drive
from spgls.solvers.published.lmi import MatrixInequality
from spgls.solvers.published.semidefinite import Backend, Semidefinite, choose_backend
from spgls.solvers.registry import Capabilities, register
from spgls.solvers.solution import Solution, Status

__all__ = ["Bisection"]

#: Tolerances that tell feasible from infeasible at the accuracy of the bisection.
_ACCURACY = {"scs": 1e-6, "clarabel": 1e-8, "mosek": 1e-9}
_MAX_ITER = {"scs": 1000, "clarabel": 200, "mosek": 400}
#: Features at which a solve takes some ten seconds.
_PATIENCE = 150
#: How often the cone solver may break down,
_FAILURES = 3
#: and the share of the unit to go on with.
_RETRY = 1e-3


@register
@dataclass(frozen=True)
class Bisection:
    """Halve an interval that holds the value of the game (Bishop, Tran-Thanh, Gerding 2020).

    No predictor does better than ``q`` exactly if some ``lambda`` makes ``A - q B + lambda C``
    positive semidefinite. Each step asks for the ``lambda`` with the largest smallest eigenvalue.
    If that is not negative, ``lambda`` proves ``q`` a lower bound. If it is, the dual matrix has a
    piece of rank one that lies on the sphere and has an objective below ``q`` (Sturm and Zhang).

    Returned is the best point met, from such a piece or from a multiplier, with the multiplier of
    the best lower bound. The value is as good as the tolerance here, so the certificate is rarely
    as small as ``tol`` of :func:`solve`; then the status is ``INACCURATE``.

    Parameters
    ----------
    start : float
        Upper end of the first interval, in units of ``|Py|^2``, the value at zero coefficients.
    tolerance : float
        Length of the last interval, as a share of the first.
    backend : {"auto", "scs", "clarabel", "mosek"}
        The cone solver, chosen as in :class:`SDP`.
    accuracy : float, optional
        Its tolerance in units of order one; by default 1e-6 for SCS, 1e-8 for the others.
    max_inner : int, optional
        Limit on its iterations in one step; by default 1000 for SCS, some hundreds for the others.
    max_size : int, optional
        Refuse games with more changeable features. By default 150, or less where an interior point
        method would not fit into memory.
    """

    start: float = 1.0
    tolerance: float = 1e-4
    backend: Backend = "auto"
    accuracy: float | None = None
    max_inner: int | None = None
    max_size: int | None = None
    capabilities: ClassVar[Capabilities] = Capabilities(
        name="bisection",
        summary="a sequence of semidefinite programs (Bishop et al. 2020)",
        finds_global=True,
        proves=True,
        iterative=True,
        memory="about 10 n^2; n^4/2 with an interior point method",
        extra="conic",
    )

    def __post_init__(self) -> None:
        check_number(self.start, "start", above=0.0)
        check_number(self.tolerance, "tolerance", above=0.0, below=1.0)
        check_choice(self.backend, "backend", ("auto", "scs", "clarabel", "mosek"))
        if self.accuracy is not None:
            check_number(self.accuracy, "accuracy", above=0.0, below=1.0)
        check_count(self.max_inner, "max_inner")
        check_count(self.max_size, "max_size")

    def solve(self, data: GameData, gamma: float, controls: Controls) -> Solution:
        """Solve one game."""
        name, n = self.capabilities.name, data.layout.count
        code, module = choose_backend(name, self.backend, n, self.max_size, _PATIENCE)
        run = Run.begin(name, data, gamma, controls, max(1, ceil(-log2(self.tolerance))))
        inequality = MatrixInequality(run.problem)
        run.stages.update({"squares": run.seconds, code: 0.0, "recovery": 0.0})
        return drive(run, self._iterates(code, module, inequality, run.stages))

    def _iterates(
        self, code: str, module: Any, inequality: MatrixInequality, stages: dict[str, float]
    ) -> Iterator[Iterate]:
        problem = inequality.problem
        # Zero coefficients, and a loss that is a square: an interval before any program is solved.
        best = inequality.start()
        multiplier, bound = 0.0, 0.0
        if best.objective <= 0.0:
            yield inequality.iterate(multiplier, best)
            return
        cone = self._cone(code, module, inequality)
        first = self.start * problem.yy
        low, high, failures = 0.0, first, 0
        while True:
            last = perf_counter()
            q = (low + high) / 2
            answer = cone.solve(inequality.A - q / inequality.label * inequality.B)
            solved = perf_counter()
            stages[code] += solved - last
            if answer.x is None:
                failures += 1
                if failures == _FAILURES:
                    yield inequality.iterate(multiplier, best, status=Status.FAILED)
                    return
                inequality = inequality.suited(_RETRY)
                cone = self._cone(code, module, inequality)
                continue
            share = float(answer.x[1])
            trial = inequality.unit * share
            point = inequality.recover(trial, answer.M)
            proved = inequality.lower_bound(trial)
            if point.objective < best.objective:
                best = point
            if proved > bound:
                multiplier, bound = trial, proved
            # What was found decides; the program's own value only where nothing was.
            feasible = proved >= q or (point.objective >= q and answer.x[0] >= 0.0)
            low, high = (q, high) if feasible else (low, q)
            suited = inequality.suited(share)
            if suited is not inequality:
                # Steps in other units cannot start from this one's solution.
                inequality, cone = suited, self._cone(code, module, suited)
            stages["recovery"] += perf_counter() - solved
            done = high - low <= self.tolerance * first
            status = answer.status if answer.status is Status.ITERATION_LIMIT else None
            yield inequality.iterate(
                multiplier, best, final=done, status=status or Status.INACCURATE
            )

    def _cone(self, code: str, module: Any, inequality: MatrixInequality) -> Semidefinite:
        """The programs of all steps: only ``A`` differs between them."""
        return Semidefinite(
            code,
            module,
            np.eye(len(inequality.A)),
            inequality.C,
            self.accuracy or _ACCURACY[code],
            self.max_inner or _MAX_ITER[code],
        )
