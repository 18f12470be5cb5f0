"""From optima of reduced games to predictors, their true losses, certificates and statuses.

One way for all of them: one strength or many, populations, a ridge, any reduction. Losses of
several games come from the reduction wherever its rounding leaves them ten digits, so that many
read the data no more often than one does; the loss of a single game is measured on the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, sqrt
from time import perf_counter
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from spgls.base.far_array import far_of
from spgls.base.types import EPS, Array, Vector
from spgls.base.vector import dot
from spgls.game.providers import Population, priced_norms
from spgls.matrix import predictions
from spgls.matrix.pieces import cuts
from spgls.population.groups import Groups, Reached
from spgls.reduction import Reduction
from spgls.reduction.data import GameData
from spgls.reduction.game_sums import GameSums
from spgls.reduction.reduced import ReducedGame
from spgls.solvers.chunks import column_chunks
from spgls.solvers.small import Optima
from spgls.solvers.solution import Solution, Stats, Status, status_of
from spgls.sphere import build_certificate
from spgls.sphere.certificate import EVERY, SEEN

__all__ = [
    "Clock",
    "Mask",
    "Points",
    "Task",
    "loss_of",
    "loss_rounding",
    "recover",
    "squares_suffice",
]

#: Beyond this ratio of the coefficients' reach to the labels, predictions cancel to nothing.
_REPRESENTABLE = 1e10
#: A loss from the reduction keeps so many digits, or it is measured on the data,
_DIGITS = 1e-10
#: and its rounding takes no more than this share of the gap allowed.
_SHARE = 1e-2
#: Where storing coefficients takes more than this of it, losses are measured all the same.
_STORED = 0.1
#: By so many ulps of the largest column a direction that the data does not see may be seen.
_SEEN = 8
#: Rows whose errors are formed at a time.
_PIECE = 2**16

_NONE, _FIRST = np.arange(0), np.arange(1)

Mask: TypeAlias = NDArray[np.bool_]


class Points(Protocol):
    """What is trusted or not: optima, a row for each game."""

    @property
    def t(self) -> Vector:
        """Squared norms of the coefficients."""
        ...

    @property
    def room(self) -> Vector:
        """Distances of the multipliers from their poles."""
        ...

    @property
    def unique(self) -> Mask:
        """Where the optimum is attained and the only one."""
        ...


class Clock:
    """Passes over the data and seconds, by stage."""

    def __init__(self) -> None:
        self._start = perf_counter()
        self._last = self._start
        self.passes = 0.0
        self.stages: dict[str, float] = {}

    def lap(self, stage: str, passes: float = 0.0) -> None:
        """Charge the time since the last lap to a stage."""
        now = perf_counter()
        self.stages[stage] = self.stages.get(stage, 0.0) + now - self._last
        self._last = now
        self.passes += passes

    def stats(self, iterations: int) -> Stats:
        """What has been spent so far."""
        return Stats(self.passes, iterations, perf_counter() - self._start, self.stages)


@dataclass(frozen=True, eq=False)
class Task:
    """Some games on the same data, given to one solver.

    Attributes
    ----------
    name : str
        Name of the solver.
    data : GameData or GameSums
        The data of the games, or what its rows add up to.
    games : sequence of float and Population
        Whom the learner meets in each; a number is a game of the paper, without a ridge.
    ridge : float
        Weight of the squared priced norm of the coefficients against populations.
    tol : float
        Certified relative gap wanted.
    clock : Clock
        Counts what is spent.
    one_of_many : bool
        Whether losses come from the reduction wherever it knows them well, as those of several
        games do, even if this is a single one: others follow, whose columns differ.
    """

    name: str
    data: GameData | GameSums
    games: Sequence[float | Population]
    ridge: float
    tol: float
    clock: Clock
    one_of_many: bool = False

    @property
    def ridges(self) -> Vector:
        """The ridge of each game."""
        mixed = [isinstance(one, Population) for one in self.games]
        return np.where(mixed, self.ridge, 0.0)

    def some(self, which: Sequence[int]) -> Task:
        """Some of the games."""
        if len(which) == len(self.games):
            return self
        return replace(self, games=[self.games[i] for i in which])


def recover(
    task: Task, reduction: Reduction, optima: Optima
) -> tuple[list[Solution], list[Reached]]:
    """A predictor for each optimum, judged; also the averages over its groups there.

    Parameters
    ----------
    task : Task
        The games.
    reduction : Reduction
        The reduction of their data.
    optima : Optima
        Their optima on it, a row for each.
    """
    data, game, clock = task.data, reduction.game, task.clock
    groups = [Groups(one) for one in task.games]
    best = [one.at(t) for one, t in zip(groups, optima.t.tolist(), strict=True)]
    finite = optima.finite.tolist()
    lost = [i for i, at in enumerate(best) if not (at.a > 0.0 and finite[i])]
    if lost:
        # Nothing of these is a number that double precision holds: predict nothing, and say so.
        optima = optima.without(lost, game)
        for i in lost:
            best[i] = groups[i].at(0.0)
    v = reduction.lift_many(optima.x, optima.fill)
    coef = data.layout.coefficients(v, reduction.free_part(v, np.array([at.pull for at in best])))
    reach = priced_norms(coef, data.layout.cost).tolist()
    reached = [one.at(t) for one, t in zip(groups, reach, strict=True)]
    rounding = _rounding_at(reduction, v, optima, best)
    clock.lap("recovery")
    if isinstance(data, GameSums):
        measured = _by_sums(data, reduction, coef, reached)
        clock.lap("recovery")
    else:
        measured = _on_rows(task, data, reduction, coef, reached, optima, rounding)
    label_size, unit = data.label_size, data.unit(game.yy)
    among = SEEN if data.layout.avoids_null else EVERY
    # Numbers of Python's own: an entry of an array takes as long as all that is done with it.
    each = optima.nu, optima.bound, optima.upper, optima.slope, optima.steps, optima.ended
    columns = [column.tolist() for column in (*each, *measured, rounding, task.ridges)]
    numbers = zip(*columns, strict=True)
    predictors = np.ascontiguousarray(coef.T)
    solutions = []
    for i, (who, at, row) in enumerate(zip(task.games, reached, numbers, strict=True)):
        nu, bound, upper, slope, steps, ended, intercept, loss, error, hidden, ridge = row
        penalty = ridge * at.t
        alpha: float | Vector
        if isinstance(who, Population):
            alpha, multiplier = at.t / np.array(who.gammas), at.a * nu
        else:
            alpha, multiplier = at.t / who, who * nu / 4
        objective = loss + penalty
        certificate = build_certificate(
            game,
            objective=objective,
            bound=bound,
            upper=upper,
            kkt_residual=slope,
            bound_rounding=0.0 if reduction.complete else hidden,
            objective_rounding=error + 4 * EPS * penalty,
            label_size=label_size,
            unit=unit,
            tol=task.tol,
            among=among,
        )
        solutions.append(
            Solution(
                coef=predictors[i],
                intercept=intercept,
                alpha=alpha,
                multiplier=multiplier,
                objective=objective,
                status=status_of(
                    certificate.relative_gap,
                    task.tol,
                    optima.outcome[i] if data.layout.count else "least squares",
                    representable=i not in lost and representable(game, at.t),
                    otherwise=Status.INACCURATE if ended else Status.ITERATION_LIMIT,
                ),
                solver=task.name,
                certificate=certificate,
                stats=clock.stats(steps),
            )
        )
    return solutions, best


def representable(game: ReducedGame, t: float) -> bool:
    """Whether predictions by coefficients of squared priced norm ``t`` keep any digits."""
    top = game.top
    return top * sqrt(t) <= _REPRESENTABLE * sqrt(game.yy)


def squares_suffice(reduction: Reduction, points: Points, k: Vector, tol: float) -> Mask:
    """Where squaring the data cost nothing that matters; everywhere if it was not squared.

    A certificate speaks for the objective. Which of several optima is the smallest, and whether an
    optimum is attained at all, hangs on quantities near zero that a Gram matrix cannot resolve.

    Parameters
    ----------
    reduction : Reduction
        The reduction of the data.
    points : Points
        Optima on it.
    k : ndarray of shape (G,)
        Averages of ``c^2`` over the groups of each game, at its optimum.
    tol : float
        Relative gap that directions taken for zero may hide.
    """
    if not reduction.squared:
        return np.ones(len(k), dtype=bool)
    settled = points.unique & ((points.room > reduction.doubt) | (points.t == 0.0))
    if not reduction.game.nullity:
        return np.asarray(settled)
    # What was cut off as null space must not have had a say.
    hidden = reduction.unseen(np.sqrt(k), points.room - reduction.game.lowest)
    return np.asarray(settled & (hidden <= tol * reduction.game.yy))


def loss_of(data: GameData, reached: Reached, prediction: Vector) -> float:
    """Mean over the groups of their sums of squares, measured on the data.

    Rows are taken in pieces, since they may be all that this process holds of data elsewhere; on a
    device all at once.
    """
    total, m = 0.0, len(prediction)
    for rows in cuts(m, _PIECE if far_of(prediction) is None else m):
        y, weight = data.y[rows], None if data.weight is None else data.weight[rows]
        error, gap = prediction[rows] - y, data.z[rows] - y
        for share, s, c in reached.each():
            residual = s * error + c * gap
            total += share * dot(residual, residual if weight is None else weight * residual)
    return total


def loss_rounding(
    reduction: Reduction, reached: Reached, coef: Vector, intercept: float, loss: float
) -> float:
    """What rounding can have done to such a loss."""
    s, c = sqrt(reached.a), sqrt(reached.k)
    hidden = reached.hidden(reduction.reach_of(coef, intercept), loss) if reached.t == inf else 0.0
    return hidden + reduction.evaluation_rounding(coef, intercept, loss, s=s, c=c)


class _Losses(NamedTuple):
    """Intercepts and losses of predictors, and the rounding of the latter."""

    intercept: Vector
    loss: Vector
    rounding: Vector


def _by_sums(
    data: GameSums, reduction: Reduction, coef: Array, reached: Sequence[Reached]
) -> _Losses:
    """Losses of predictors as they are stored, from sums alone."""
    intercept = reduction.intercepts(coef, np.array([at.pull for at in reached]))
    losses = [
        data.loss(data.errors(coef[:, i], float(intercept[i])), at.each())
        for i, at in enumerate(reached)
    ]
    return _Losses(intercept, *np.array(losses).T)


def _on_rows(
    task: Task,
    data: GameData,
    reduction: Reduction,
    coef: Array,
    reached: list[Reached],
    optima: Optima,
    rounding: Vector,
) -> _Losses:
    """Losses from the reduction where that leaves them digits enough, the others from the rows."""
    measured, clock, game = _Measured(data, coef, reached), task.clock, reduction.game
    rounding = _rounding_as_stored(reduction, reached, optima, rounding)
    some, rest = _NONE, _FIRST
    if len(reached) > 1 or task.one_of_many:
        clear = (rounding <= _DIGITS * optima.value) & (rounding <= _SHARE * task.tol * game.yy)
        # What is filled in along directions that the data shows has an effect, of either sign.
        clear &= (optima.fill == 0.0) | (game.nullity > 0)
        some, rest = np.flatnonzero(clear), np.flatnonzero(~clear)
    if len(some):
        pull = np.array([reached[i].pull for i in some])
        measured.intercept[some] = reduction.intercepts(coef[:, some], pull)
        clock.lap("recovery", reduction.reads)
    measured.measure(rest, reduction, clock)
    # A loss about large means is better known to sums about an origin than to predictions.
    value = optima.value - task.ridges * optima.t
    measured.improve(reduction, value, rounding)
    unsure = some[measured.rounding[some] > _STORED * task.tol * game.yy]
    if len(unsure):
        measured.measure(unsure, reduction, clock)
        measured.improve(reduction, value, rounding)
    return _Losses(measured.intercept, measured.loss, measured.rounding)


def _rounding_as_stored(
    reduction: Reduction, reached: list[Reached], optima: Optima, rounding: Vector
) -> Vector:
    """The rounding of losses from the reduction, for coefficients as they are stored.

    A direction that the data does not see is known to the last digits of its largest entry, which
    may stand for the smallest column. Of predictions that cancel to nothing the reduction knows
    nothing.
    """
    known = [representable(reduction.game, at.t) for at in reached]
    if all(known) and not optima.fill.any():
        return rounding
    largest = float(np.max(reduction.scale, initial=0.0))
    s = np.sqrt([at.a for at in reached])
    shown = _SEEN * EPS * largest * optima.fill * s
    stored = rounding + (2 * np.sqrt(np.maximum(optima.value, 0.0)) + shown) * shown
    return np.where(known, stored, np.inf)


class _Measured:
    """Intercepts and losses of predictors, and the rounding of the latter; infinite until then."""

    def __init__(self, data: GameData, coef: Array, reached: list[Reached]) -> None:
        self._data, self._coef, self._reached = data, coef, reached
        self.intercept, self.loss, self.rounding = np.zeros((3, len(reached)))
        self.rounding += np.inf

    def improve(self, reduction: Reduction, value: Vector, rounding: Vector) -> None:
        """Take losses from the reduction where they have not been measured, or not as well."""
        if not (2 * rounding < self.rounding).any():
            return
        s = np.array([sqrt(at.a) for at in self._reached])
        # The values belong to perturbed data, and so do the predictors, which were rounded besides.
        own = 2 * rounding + reduction.storing_roundings(self._coef, self.intercept, value, s)
        better = own < self.rounding
        better &= ~(abs(value - self.loss) > own + self.rounding)
        self.loss[better], self.rounding[better] = value[better], own[better]

    def measure(self, which: np.ndarray, reduction: Reduction, clock: Clock) -> None:
        """Predict every row by some of them, in as few reads as there is memory for."""
        for some in column_chunks(self._data, which):
            self._measure(some, reduction)
            clock.lap("recovery", 1.0)

    def _measure(self, some: np.ndarray, reduction: Reduction) -> None:
        data, coef = self._data, np.ascontiguousarray(self._coef[:, some])
        # As a block even if it is one column: a vector would wake the threads of BLAS, which then
        # spin beside those of the next reduction.
        linear = predictions(data.matrix, coef, data.y)
        for column, i in enumerate(some.tolist()):
            own = linear[:, column]
            at = self._reached[i]
            intercept = data.best_intercept(own, at.pull)
            loss = loss_of(data, at, own + intercept)
            rounding = loss_rounding(reduction, at, coef[:, column], intercept, loss)
            self.intercept[i], self.loss[i], self.rounding[i] = intercept, loss, rounding


def _rounding_at(reduction: Reduction, v: Array, optima: Optima, best: Sequence[Reached]) -> Vector:
    """What rounding in the reduction can have done to the losses of its own optima."""
    # Where rounding may have chosen the optimum it may have chosen the goals' weight too.
    sure = (optima.unique & (optima.t > 0.0)).tolist()
    return reduction.roundings(
        v,
        s=np.array([sqrt(at.a) for at in best]),
        c=np.array([sqrt(at.k) if one else 1.0 for at, one in zip(best, sure, strict=True)]),
        nu=optima.nu,
        value=np.maximum(optima.value, 0.0),
        filled=optima.fill > 0.0,
    )
