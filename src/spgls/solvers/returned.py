"""What the coefficients that are returned are worth, where columns were combined.

Solvers play on combined columns, and what they find is told as coefficients of the data. Where free
coefficients are large, rounding of them there moves people: ``q`` is not what the solver meant. So
what that can change is charged, and where it can show, the loss is measured once more, from the
coefficients as they are returned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, sqrt

import numpy as np

from spgls.base.types import EPS, Vector
from spgls.game.moves import Moves
from spgls.game.providers import Population, PopulationRange, priced_norm
from spgls.population.groups import Groups, Reached
from spgls.reduction.data import GameData
from spgls.reduction.game_sums import GameSums
from spgls.reduction.layout import Layout
from spgls.solvers.by_reduction import reduced
from spgls.solvers.iterative.rulers import Rulers
from spgls.solvers.ranges import ends_of
from spgls.solvers.recover import loss_of
from spgls.solvers.solution import Solution, Status
from spgls.sphere.certificate import Certificate, in_units

__all__ = ["as_returned", "judged_as_given"]

#: What rounding of coefficients may add to a gap, in units of the tolerance, before it is measured.
_SHARE = 1e-2
#: Statuses that promise a gap.
_PROMISES = (Status.OPTIMAL, Status.SEVERAL_OPTIMA, Status.LEAST_SQUARES, Status.UNATTAINED)


@np.errstate(all="ignore")
def as_returned(
    solution: Solution,
    data: GameData | GameSums,
    people: Population | PopulationRange,
    ridge: float,
    tol: float,
) -> Solution:
    """A solution with the coefficients of the data, and what those are worth.

    Parameters
    ----------
    solution : Solution
        On combined columns.
    data : GameData or GameSums
        Those.
    people : Population or PopulationRange
        Whom the learner meets.
    ridge : float
        Weight of the squared priced norm of the coefficients.
    tol : float
        Certified relative gap wanted.
    """
    layout, proof = data.layout, solution.certificate
    if layout.coordinates is None:
        return solution
    coef = layout.outwards(solution.coef)
    intercept = solution.intercept - float(layout.offset(coef))
    told = replace(solution, coef=coef, intercept=intercept)
    unit = _unit(proof, data)
    extra = _charge(solution, data, coef, people, ridge)
    charged = _with_gap(proof, proof.gap + extra, unit, data, tol)
    # A charge that takes a gap over the tolerance may be more than what happened.
    kept = charged.relative_gap <= tol or not proof.relative_gap <= tol
    if extra <= _SHARE * tol * unit and kept:
        return replace(told, certificate=charged)
    measured = _Measured.of(data, coef, intercept, people, ridge)
    proof = _with_gap(proof, measured.gap(proof.lower_bound), unit, data, tol)
    alpha = measured.reach / _strengths(people)
    fails = told.status in _PROMISES and not proof.relative_gap <= tol
    return replace(
        told,
        alpha=alpha if np.ndim(told.alpha) else float(alpha[0]),
        objective=measured.objective,
        status=Status.UNREPRESENTABLE if fails else told.status,
        certificate=replace(proof, lower_bound=min(proof.lower_bound, measured.objective)),
        ends=ends_of(
            people, measured.objectives, [end.best for end in told.ends], measured.rounding
        )
        if isinstance(people, PopulationRange)
        else (),
    )


@np.errstate(all="ignore")
def judged_as_given(
    proof: Certificate,
    data: GameData | GameSums,
    coef: Vector,
    intercept: float,
    people: Population | PopulationRange,
    ridge: float,
) -> Certificate:
    """A certificate whose gap is that of coefficients as they were given.

    Parameters
    ----------
    proof : Certificate
        Of the predictor on combined columns; its bound is the game's.
    data, people, ridge
        The game.
    coef, intercept
        The predictor, on the columns of the data.
    """
    if data.layout.coordinates is None:
        return proof
    measured = _Measured.of(data, coef, intercept, people, ridge)
    told = _with_gap(proof, measured.gap(proof.lower_bound), _unit(proof, data), data, inf)
    return replace(told, lower_bound=min(proof.lower_bound, measured.objective))


def _charge(
    solution: Solution,
    data: GameData | GameSums,
    coef: Vector,
    people: Population | PopulationRange,
    ridge: float,
) -> float:
    """What the objective can have changed by when coefficients were rounded.

    With ``q`` wrong by ``e`` nobody's weight ``s`` is wrong by a larger share than ``e`` over
    ``gamma + q``, and what it weighs is no longer than the root of the loss and ``|z - y|``.
    """
    moves = _moves(data)
    told = sqrt(priced_norm(solution.coef, data.layout.cost))
    apart = abs(sqrt(moves.reach(coef)) - told) + moves.reach_rounding(coef)
    error, least = apart * (2 * told + apart), max(told - apart, 0.0) ** 2
    loss = sqrt(max(solution.objective, 0.0))
    wrong = error / (float(min(_strengths(people))) + least) * (loss + sqrt(_gaps(data)))
    return wrong * (2 * loss + wrong) + ridge * error


@dataclass(frozen=True, eq=False)
class _Measured:
    """A predictor's objective against the population at every end, from its own coefficients.

    Attributes
    ----------
    reach : float
        ``q``.
    objectives : sequence of float
        Against each population.
    rounding : float
        What rounding can have done to them.
    """

    reach: float
    objectives: Sequence[float]
    rounding: float

    @classmethod
    def of(
        cls,
        data: GameData | GameSums,
        coef: Vector,
        intercept: float,
        people: Population | PopulationRange,
        ridge: float,
    ) -> _Measured:
        """Measure it."""
        reach = _moves(data).exact_reach(coef)
        ends = people.corners if isinstance(people, PopulationRange) else (people,)
        at = [Groups(one).at(reach) for one in ends]
        plain = Layout(data.layout.columns, fit_intercept=data.layout.fit_intercept)
        if isinstance(data, GameSums):
            assert data.given is not None
            sums = GameSums(data.given, plain)
            errors = sums.errors(coef, intercept)
            measured = [sums.loss(errors, one.each()) for one in at]
        else:
            assert data.given is not None
            rows = replace(data, matrix=data.given, layout=plain)
            measured = _on_rows(rows, coef, intercept, at)
        penalty = at[0].penalty(ridge)
        rounding = float(np.max([error for _, error in measured])) + 8 * EPS * penalty
        if not reach < inf:
            rounding = inf
        return cls(reach, [loss + penalty for loss, _ in measured], rounding)

    @property
    def objective(self) -> float:
        """The worst."""
        # By NumPy, to which what is not a number is the largest.
        return float(np.max(self.objectives))

    def gap(self, lower_bound: float) -> float:
        """How far the objective can be above the best."""
        above = self.objective + self.rounding - lower_bound
        return inf if np.isnan(above) else max(0.0, above)


def _on_rows(
    rows: GameData, coef: Vector, intercept: float, at: Sequence[Reached]
) -> list[tuple[float, float]]:
    """Losses of a predictor, and what rounding can have done to each."""
    rulers = Rulers.of(rows)
    # As a block even if it is one column: see recover.
    said = rows.matrix.apply(coef[:, None])[:, 0] + intercept
    losses = [loss_of(rows, one, said) for one in at]
    roundings = [
        rulers.of_loss(coef, intercept, loss, s=sqrt(one.a), c=sqrt(one.k))
        for one, loss in zip(at, losses, strict=True)
    ]
    return list(zip(losses, roundings, strict=True))


def _moves(data: GameData | GameSums) -> Moves:
    moves = data.layout.moves
    assert moves is not None
    return moves


def _gaps(data: GameData | GameSums) -> float:
    """``|z - y|^2``, or a little more."""
    if isinstance(data, GameData):
        return data.loss(data.z - data.y)
    nobody = data.errors(np.zeros(data.layout.columns), 0.0)
    return sum(data.loss(nobody, [(1.0, 0.0, 1.0)]))


def _unit(proof: Certificate, data: GameData | GameSums) -> float:
    """What is left of the labels to explain, squared."""
    if 0.0 < proof.gap < inf and proof.relative_gap > 0.0:
        return proof.gap / proof.relative_gap
    if isinstance(data, GameData):
        return data.unit(data.target_squares[0])
    reduction = reduced(data, "gram") or reduced(data, "qr")
    assert reduction is not None
    return data.unit(reduction.game.yy)


def _with_gap(
    proof: Certificate, gap: float, unit: float, data: GameData | GameSums, tol: float
) -> Certificate:
    """A certificate with another gap."""
    relative = in_units(gap, unit, data.label_size)
    told = replace(proof, gap=gap, relative_gap=relative)
    fails = proof.relative_gap <= tol and not relative <= tol
    return replace(told, kind="estimated") if fails else told


def _strengths(people: Population | PopulationRange) -> Vector:
    """Of all that may be strategic."""
    if isinstance(people, PopulationRange):
        return np.unique([people.gamma.low, people.gamma.high])
    return np.array(people.gammas)
