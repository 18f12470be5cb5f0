"""One semidefinite program in two unknowns, by whichever code is at hand.

    maximise  x_0   subject to   A - x_0 E + x_1 C >= 0,

whose dual minimises ``tr(AM)`` over semidefinite ``M`` with ``tr(EM) = 1`` and ``tr(CM) = 0``.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp

from spgls.base.types import Array, Vector
from spgls.solvers.published.conic import (
    Inner,
    attempt,
    backend,
    memory_bytes,
    refuse_above,
    solve_clarabel,
    symmetric,
    triangle,
)
from spgls.solvers.solution import Status

__all__ = ["Backend", "Semidefinite", "SemidefiniteAnswer", "choose_backend"]

Backend = Literal["auto", "scs", "clarabel", "mosek"]

#: Up to this many features Clarabel is as fast as SCS, and it is always more accurate.
_CLARABEL_SIZE = 25
_SCS = {1: None, 2: Status.INACCURATE}
#: SCS says "solved, inaccurate" and the like where it ran out of iterations.
_RAN_OUT = "reached max_iters"


class SemidefiniteAnswer(NamedTuple):
    """What a code made of the program: ``x`` and ``M``, or None where it broke down."""

    status: Status | None
    x: Vector | None
    M: Array | None
    iterations: int


class Semidefinite:
    """A code that solves such programs one after the other.

    Parameters
    ----------
    name : {"scs", "clarabel", "mosek"}
        The code.
    module : module
        Where it lives.
    E, C : ndarray of shape (k, k)
        Matrices that all programs share.
    accuracy : float
        Its tolerance, absolute and relative.
    max_iter : int
        Limit on its iterations.
    """

    def __init__(
        self, name: str, module: Any, E: Array, C: Array, accuracy: float, max_iter: int
    ) -> None:
        self.name = name
        self._module = module
        self._E, self._C = E, C
        self._accuracy, self._max_iter = accuracy, max_iter
        self._scs: Any = None

    def solve(self, A: Array) -> SemidefiniteAnswer:
        """Solve for one matrix ``A``."""
        if self.name == "mosek":
            return self._by_mosek(A)
        inner = self._by_scs(A) if self.name == "scs" else self._by_clarabel(A)
        if inner.x is None or inner.y is None:
            return SemidefiniteAnswer(inner.status, None, None, inner.iterations)
        M = symmetric(inner.y, len(A), upper=self.name == "clarabel")
        return SemidefiniteAnswer(inner.status, inner.x, M, inner.iterations)

    def _columns(self, *, upper: bool) -> Any:
        columns = [triangle(self._E, upper=upper), -triangle(self._C, upper=upper)]
        return sp.csc_matrix(np.column_stack(columns))

    def _by_clarabel(self, A: Array) -> Inner:
        cones = [self._module.PSDTriangleConeT(len(A))]
        return solve_clarabel(
            self._module,
            np.array([-1.0, 0.0]),
            self._columns(upper=True),
            triangle(A, upper=True),
            cones,
            self._accuracy,
            self._max_iter,
        )

    def _by_scs(self, A: Array) -> Inner:
        right = triangle(A, upper=False)
        # Warm where only the right-hand side has changed since the last program.
        found = attempt(lambda: self._call_scs(right, len(A)))
        if found is None:
            return Inner(Status.FAILED, None, None, 0)
        info = found["info"]
        status = _SCS.get(info["status_val"], Status.FAILED)
        x, y = np.asarray(found["x"]), np.asarray(found["y"])
        if status is Status.FAILED or not (np.isfinite(x).all() and np.isfinite(y).all()):
            return Inner(Status.FAILED, None, None, int(info["iter"]))
        if _RAN_OUT in info["status"]:
            status = Status.ITERATION_LIMIT
        return Inner(status, x, y, int(info["iter"]))

    def _call_scs(self, right: Vector, order: int) -> Any:
        if self._scs is not None:
            self._scs.update(b=right)
            return self._scs.solve(warm_start=True)
        data = {"A": self._columns(upper=False), "b": right, "c": np.array([-1.0, 0.0])}
        self._scs = self._module.SCS(
            data,
            {"s": [order]},
            eps_abs=self._accuracy,
            eps_rel=self._accuracy,
            max_iters=self._max_iter,
            verbose=False,
        )
        return self._scs.solve()

    def _by_mosek(self, A: Array) -> SemidefiniteAnswer:
        found: SemidefiniteAnswer | None = attempt(lambda: self._call_mosek(A))
        return SemidefiniteAnswer(Status.FAILED, None, None, 0) if found is None else found

    def _call_mosek(self, A: Array) -> SemidefiniteAnswer:
        """The dual, by MOSEK's optimiser interface; written from its manual, not tested here."""
        mosek, k = self._module, len(A)
        rows, columns = np.tril_indices(k)
        with mosek.Env() as env, env.Task() as task:
            task.putdouparam(mosek.dparam.intpnt_co_tol_rel_gap, self._accuracy)
            task.putintparam(mosek.iparam.intpnt_max_iterations, self._max_iter)
            task.appendbarvars([k])
            task.appendcons(2)

            def stored(S: Array) -> Any:
                values = S[rows, columns]
                kept = values != 0.0
                return task.appendsparsesymmat(k, rows[kept], columns[kept], values[kept])

            task.putbarcj(0, [stored(A)], [1.0])
            for number, (S, value) in enumerate(((self._E, 1.0), (self._C, 0.0))):
                task.putbaraij(number, 0, [stored(S)], [1.0])
                task.putconbound(number, mosek.boundkey.fx, value, value)
            task.putobjsense(mosek.objsense.minimize)
            task.optimize()
            itr = mosek.soltype.itr
            optimal = task.getsolsta(itr) == mosek.solsta.optimal
            y = np.asarray(task.gety(itr))
            packed = np.asarray(task.getbarxj(itr, 0))
            iterations = int(task.getintinf(mosek.iinfitem.intpnt_iter))
        # The lower triangle by columns is the upper one by rows.
        above = np.triu_indices(k)
        M = np.empty((k, k))
        M[above] = M.T[above] = packed
        x = np.array([y[0], -y[1]])
        if not (np.isfinite(x).all() and np.isfinite(M).all()):
            return SemidefiniteAnswer(Status.FAILED, None, None, iterations)
        return SemidefiniteAnswer(None if optimal else Status.INACCURATE, x, M, iterations)


def choose_backend(
    solver: str, wanted: str, n: int, max_size: int | None, patience: int
) -> tuple[str, Any]:
    """Name and module of the code for a game of ``n`` changeable features, or a refusal.

    MOSEK where it is installed and licensed, else Clarabel for small games and SCS for others.
    Without ``max_size`` games are refused above ``patience`` features, where a solve would take
    minutes, and where they would not fit into memory.
    """
    name, module = wanted, None
    if wanted == "auto":
        module = _licensed_mosek()
        small = n <= _CLARABEL_SIZE
        name = "mosek" if module is not None else "clarabel" if small else "scs"
    refuse_above(
        solver,
        n,
        max_size or min(patience, _fitting(name)),
        f"asks {name} for a semidefinite matrix with a row for each changeable feature",
        "Use solver='socp' for the same optimum from one eigen-decomposition, or solver='auto'.",
    )
    return name, module or backend(name, solver)


def _fitting(name: str) -> int:
    """Features for which the matrices of a code fit into memory."""
    if name == "scs":
        return int((memory_bytes() / 160) ** 0.5)
    # An interior point method holds dense matrices of the order of the triangle, n^2/2.
    return max(1, int((memory_bytes() / 8) ** 0.25) - 2)


def _licensed_mosek() -> Any:
    """MOSEK, or None where it is not installed or has no licence."""
    try:
        import mosek
    except ImportError:
        return None

    def checked_out() -> Any:
        with mosek.Env() as env:
            env.checkoutlicense(mosek.feature.pton)
        return mosek

    try:
        return checked_out()
    except Exception:
        # Whatever keeps MOSEK from starting, the others do not need it.
        return None
