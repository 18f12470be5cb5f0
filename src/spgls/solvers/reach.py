"""How far least squares reaches: the strength of providers that a fit assumes by itself.

The squared priced norm of its coefficients, from a decomposition where one is made anyway, from
squared data where those are few columns, and else from the Krylov space that the fit goes on with.

Where the norm comes from directions that the data hardly shows it says nothing about providers. So
it counts up to ten times that of a part of least squares: along the directions of largest variation
that explain 99% of what it explains.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import inf, isinf
from typing import Any, Literal, NamedTuple

import numpy as np

from spgls.base.threads import one_blas_thread
from spgls.base.types import EPS, Vector
from spgls.reduction import (
    KrylovReduction,
    KrylovSpace,
    Reduction,
    reduce_krylov,
    reduce_spectral,
)
from spgls.reduction.data import GameData
from spgls.reduction.game_sums import GameSums
from spgls.solvers.auto import check_memory, chosen_solver
from spgls.solvers.iterative.iterate import Controls, Run
from spgls.solvers.krylov import Krylov

__all__ = ["Reach", "reach_from_sums", "reach_of_least_squares"]

#: Share of what least squares explains that its largest directions have to explain,
_SIGNAL = 0.99
#: and how many times their squared norm counts.
_MOST = 10.0
#: Relative accuracy asked of an iteration, and the best that is told of anything.
_ACCURACY, _EXACT = 1e-7, 1e-9
#: Rounding of squared singular values, over the largest: they were found from squares, or they are
#: the squares of what was found.
_ROUNDING = 32 * EPS
#: Steps by an inverse of the squared data that a space begins with, where one is known.
_SEED = 8
#: Ritz values below this share of the largest are those of null vectors.
_NULL = 1e-12
#: Labels explained no better than this are not explained, squared.
_NOTHING = (1e3 * EPS) ** 2


class Reach(NamedTuple):
    """How large least squares is.

    Attributes
    ----------
    value : float
        Its squared priced norm, or what counts of it; zero where nothing is explained.
    accuracy : float
        Relative error of that, at most or by estimate.
    rule : str
        Which of the two.
    cut : float
        Directions that vary by less than this share of the largest were left out; zero for none.
    """

    value: float
    accuracy: float
    rule: str
    cut: float = 0.0

    def __str__(self) -> str:
        told = f", to {self.accuracy:.0e}" if self.accuracy > 0.0 else ""
        if isinf(self.accuracy):
            told = ", how accurately is not known"
        left = f", where rows vary by more than {self.cut:.0e} of the most" if self.cut else ""
        return f"{self.rule}{told}{left}"


def reach_of_least_squares(data: GameData, solver: Any, controls: Controls) -> Reach:
    """Measure least squares on the way to a fit.

    Parameters
    ----------
    data : GameData
        The data.
    solver : Solver
        What the fit is made by; what is computed here is kept for it.
    controls : Controls
        What is asked of it.
    """
    if data.layout.count == 0:
        return Reach(0.0, 0.0, "nothing can be changed")
    chosen = chosen_solver(solver, data)
    if isinstance(chosen, Krylov):
        with np.errstate(all="ignore"), one_blas_thread(data.matrix.threaded):
            return _by_iteration(*chosen.begin(data, replace(controls, max_iter=None)))
    check_memory(chosen, data, 1)
    found = _by_reduction(partial(reduce_spectral, data), data.label_size)
    # Nobody asks what more columns than rows leave out.
    m, n = data.matrix.shape
    return found._replace(cut=0.0) if n + data.layout.fit_intercept > m else found


def reach_from_sums(data: GameSums) -> Reach:
    """Measure least squares by what rows add up to."""
    if data.layout.count == 0:
        return Reach(0.0, 0.0, "nothing can be changed")
    return _by_reduction(data.reduce, data.label_size)


def _by_reduction(
    reduce: Callable[[Literal["gram", "qr"]], Reduction | None], label_size: float
) -> Reach:
    reduction = reduce("gram")
    # A Gram matrix holds half the digits; small singular values, which make coefficients large,
    # are the first to lose them.
    if reduction is None or float(reduction.game.d.min(initial=np.inf)) < reduction.doubt:
        reduction = reduce("qr")
    assert reduction is not None
    game = reduction.game
    if float(game.eta @ game.eta) <= _NOTHING * label_size:
        return Reach(0.0, 0.0, "nothing is explained")
    cut = float(np.sqrt(reduction.cut / game.d.max())) if game.nullity else 0.0
    return _of(game.d, game.eta, _EXACT, squared=reduction.squared)._replace(cut=cut)


def _by_iteration(run: Run, space: KrylovSpace) -> Reach:
    """From squared data, or until the norm does not change any more on a growing space."""
    nothing, inside, points = Reach(0.0, 0.0, "nothing is explained"), 0.0, _Points()
    found, least = nothing, _NOTHING * run.data.loss(run.data.y)
    if run.problem.yy <= least or not space.width:
        return nothing
    for inverse in run.prover.inverses():
        space.seed(inverse.solved, _SEED)
        reduction, d, eta = _seen(run, space)
        w = reduction.lift_span(eta / np.sqrt(d))
        # Steps by an inverse find the lowest of them first.
        squares = run.prover.least_squares(w, inverse, float(d.min()) / 2, _ACCURACY)
        run.problem.passes += squares.reads
        inside = float(eta @ eta)
        if inside <= least:
            return nothing
        found = _of(d, eta, squares.accuracy, squares.norm)
        if squares.settled and found.rule == _WHOLE:
            return found._replace(cut=_cut(reduction, d))
    # Few columns of a space do not show which directions count, nor that none is left.
    while space.width and space.steps < run.limit and not space.full:
        space.extend()
        if space.width and not points.due(space.steps):
            continue
        reduction, d, eta = _seen(run, space)
        inside = float(eta @ eta)
        error = points.error(space.steps, _of(d, eta, 0.0).value)
        # A space that cannot grow holds all of it.
        found = _of(d, eta, error if space.width else min(error, _EXACT))
        cut = _cut(reduction, d)
        if found.rule == _WHOLE:
            # A norm that stands still is not all of it while something is left to explain.
            error, unseen = _left(reduction, d, eta)
            found, cut = found._replace(accuracy=max(found.accuracy, error)), max(cut, unseen)
        found = found._replace(cut=cut)
        if found.accuracy <= _ACCURACY:
            break
    return nothing if inside <= least else found


def _cut(reduction: KrylovReduction, d: Vector) -> float:
    """Below which share of the largest directions were left out, if any were."""
    return float(np.sqrt(_NULL)) if len(d) < reduction.game.size else 0.0


def _left(reduction: KrylovReduction, d: Vector, eta: Vector) -> tuple[float, float]:
    """What a space may miss of the squared norm, relative, if nothing varies less than on it.

    Coefficients that leave a slope ``s`` are off by ``(A'A)^{-1} s``. Also which directions, that
    vary by what share of the largest, could hold more than is asked for and not be seen.
    """
    x = eta / np.sqrt(d)
    size, slope = float(np.linalg.norm(x)), reduction.space.residual(reduction.vectors @ x)
    if not size:
        return 0.0, 0.0
    wrong = slope / (float(d.min()) * size)
    unseen = slope / (float(np.sqrt(_ACCURACY)) * size * float(d.max()))
    return 2.0 * wrong + wrong**2, float(np.sqrt(unseen))


def _seen(run: Run, space: KrylovSpace) -> tuple[KrylovReduction, Vector, Vector]:
    """Squared singular values on a space, and what is explained along them.

    Null vectors come in by rounding, and would have the largest coefficients: they are left out.
    """
    reduction = reduce_krylov(run.data, space)
    game = reduction.game
    seen = game.d > _NULL * float(game.d.max(initial=0.0))
    reduction = replace(reduction, vectors=reduction.vectors[:, seen])
    return reduction, game.d[seen], game.eta[seen]


class _Points:
    """A sequence that converges like a geometric one, looked at now and then."""

    def __init__(self) -> None:
        self._seen: list[tuple[int, float]] = []

    def due(self, step: int) -> bool:
        """Whether to look: a look costs the more the more steps there were."""
        return not self._seen or step >= self._seen[-1][0] + max(4, self._seen[-1][0] // 5)

    def error(self, step: int, value: float) -> float:
        """Relative distance from the limit, by the last three values."""
        self._seen.append((step, value))
        if len(self._seen) < 3:
            return inf
        (a, x), (b, y), (c, z) = self._seen[-3:]
        first, second = abs(y - x) / (b - a), abs(z - y) / (c - b)
        if second == 0.0 or first == 0.0:
            return second / (abs(z) or 1.0)
        rate = float(min((second / first) ** (2 / (c - a)), 1.0 - 1e-3))
        return second * rate / (1.0 - rate) / (abs(z) or 1.0)


#: What counts.
_WHOLE, _PART = "least squares", f"{_MOST:g} times {_SIGNAL:.0%} of least squares"


def _of(
    d: Vector, eta: Vector, accuracy: float, whole: float | None = None, *, squared: bool = True
) -> Reach:
    """From squared singular values, and what is explained along their directions.

    ``squared`` says whether they were found from squares, which shows in the small ones.
    """
    order = np.argsort(-d)
    d, explained = d[order], np.square(eta[order])
    norms = explained / d
    signal = int(np.searchsorted(np.cumsum(explained), _SIGNAL * explained.sum()))
    part = _MOST * float(norms[: signal + 1].sum())
    if whole is None:
        whole = float(norms.sum())
    counted, value, rule = norms, whole, _WHOLE
    if whole > part:
        counted, value, rule = norms[: signal + 1], part, _PART
    away = float(d[0]) / d[: len(counted)]
    rounding = _ROUNDING * float(counted @ (away if squared else np.sqrt(away)))
    return Reach(value, max(accuracy, rounding / (float(counted.sum()) or 1.0)), rule)
