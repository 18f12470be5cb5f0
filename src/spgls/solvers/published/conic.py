"""What the conic solvers share: optional codes, how those end, sizes, and matrices of low rank."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh

from spgls.base.types import EPS, Array, Vector
from spgls.solvers.solution import Status

__all__ = [
    "Inner",
    "attempt",
    "backend",
    "memory_bytes",
    "rank_one_pieces",
    "refuse_above",
    "solve_clarabel",
    "symmetric",
    "triangle",
]

#: How far out of balance a piece of the decomposition may stay, relative to its size.
_BALANCED = 64 * EPS
#: What Clarabel says, as far as it is not a plain success.
_CLARABEL = {
    "Solved": None,
    "AlmostSolved": Status.INACCURATE,
    "InsufficientProgress": Status.INACCURATE,
    "MaxIterations": Status.ITERATION_LIMIT,
    "MaxTime": Status.ITERATION_LIMIT,
}

#: What the extra ``conic`` holds.
_EXTRA = ("clarabel", "scs")

T = TypeVar("T")


class Inner(NamedTuple):
    """How a call of a cone solver ended.

    ``status`` is None for a plain success; ``x`` and ``y`` are its primal and dual variables, None
    where it left nothing that could be used.
    """

    status: Status | None
    x: Vector | None
    y: Vector | None
    iterations: int


def backend(module: str, solver: str) -> Any:
    """Import a cone solver, or say how to get it."""
    try:
        return import_module(module)
    except ImportError:
        how = "'spgls[conic]'" if module in _EXTRA else f"{module}, with a licence of its own"
        raise ImportError(
            f"solver {solver!r} needs {module}. Install it with: pip install {how}"
        ) from None


def attempt(call: Callable[[], T]) -> T | None:
    """Result of a call into a cone solver, or None where it broke down.

    Codes written in Rust panic with an exception that is not even an ``Exception``.
    """
    try:
        return call()
    except (ArithmeticError, MemoryError, RuntimeError, ValueError):
        return None
    except BaseException as error:
        if type(error).__name__ == "PanicException":
            return None
        raise


def memory_bytes() -> float:
    """Physical memory; eight GiB where the system does not say."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):
        return 8 * 2.0**30


def refuse_above(solver: str, size: int, limit: int, what: str, instead: str) -> None:
    """Refuse a game that would not fit into memory or patience, before anything is computed."""
    if size > limit:
        raise ValueError(
            f"solver {solver!r} {what}, here {size}, and refuses above max_size={limit}. {instead}"
        )


def solve_clarabel(
    clarabel: Any, c: Vector, A: Any, b: Vector, cones: list[Any], accuracy: float, max_iter: int
) -> Inner:
    """Minimise ``c'x`` over ``b - A x`` in a product of cones, by Clarabel's own interface."""
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_iter = max_iter
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = accuracy

    def call() -> Any:
        nothing = sp.csc_array((len(c), len(c)))
        return clarabel.DefaultSolver(nothing, c, A, b, cones, settings).solve()

    found = attempt(call)
    if found is None:
        return Inner(Status.FAILED, None, None, 0)
    status = _CLARABEL.get(str(found.status), Status.FAILED)
    x, y = np.asarray(found.x), np.asarray(found.z)
    if status is Status.FAILED or not (np.isfinite(x).all() and np.isfinite(y).all()):
        return Inner(Status.FAILED, None, None, int(found.iterations))
    return Inner(status, x, y, int(found.iterations))


def triangle(M: Array, *, upper: bool) -> Vector:
    """A symmetric matrix as a vector with its inner product: one triangle, column by column.

    SCS stores the lower triangle, Clarabel the upper; both scale what is off the diagonal.
    """
    n = len(M)
    # Reading a symmetric matrix by rows of one triangle is reading it by columns of the other.
    rows, columns = np.tril_indices(n) if upper else np.triu_indices(n)
    return np.asarray(M[rows, columns] * np.where(rows == columns, 1.0, np.sqrt(2.0)))


def symmetric(v: Vector, n: int, *, upper: bool) -> Array:
    """The matrix of a vector made by :func:`triangle`."""
    rows, columns = np.tril_indices(n) if upper else np.triu_indices(n)
    M = np.empty((n, n))
    M[rows, columns] = M[columns, rows] = v / np.where(rows == columns, 1.0, np.sqrt(2.0))
    return M


def rank_one_pieces(M: Array, C: Array) -> Array:
    """Columns ``v`` with ``sum v v' = M`` and equal ``v'Cv`` (Sturm and Zhang 2003).

    Pieces whose ``v'Cv`` lies on either side of the mean are turned in their common plane until one
    of them has the mean exactly; that one is done. Where ``tr(CM) = 0``, each ends at zero.

    Parameters
    ----------
    M : ndarray of shape (k, k)
        Positive semidefinite matrix; eigenvalues below rounding are left out.
    C : ndarray of shape (k, k)
        Symmetric matrix.

    Returns
    -------
    ndarray of shape (k, r)
    """
    values, vectors = eigh(M)
    kept = values > 8 * len(M) * EPS * max(float(values[-1]), 0.0)
    pieces = vectors[:, kept] * np.sqrt(values[kept])
    form = np.einsum("ij,ij->j", pieces, C @ pieces)
    count = len(form)
    mean = form.sum() / max(count, 1)
    size = float(np.abs(C @ pieces * pieces).sum())
    open_ = list(range(count))
    while len(open_) > 1:
        low = min(open_, key=lambda i: form[i])
        high = max(open_, key=lambda i: form[i])
        below, above = form[low] - mean, form[high] - mean
        if above - below <= _BALANCED * size:
            break
        u, v = pieces[:, low].copy(), pieces[:, high].copy()
        mixed = float(u @ C @ v)
        # (u + t v)'C(u + t v) = mean (1 + t^2): below < 0 < above, so the root is real.
        t = _positive_root(above, mixed, below)
        length = np.hypot(1.0, t)
        pieces[:, low], pieces[:, high] = (u + t * v) / length, (v - t * u) / length
        form[low] = mean
        form[high] = float(pieces[:, high] @ C @ pieces[:, high])
        open_.remove(low)
    return np.asarray(pieces)


def _positive_root(a: float, half: float, c: float) -> float:
    """Positive root of ``a t^2 + 2 half t + c`` for ``a >= 0 >= c``, without cancellation."""
    root = float(np.sqrt(half * half - a * c))
    return -c / (half + root) if half > 0.0 else (root - half) / a
