"""A predictor against a population, measured on the data.

With ``x = sqrt(a) v`` and ``b = (p y - u z)/sqrt(a)`` its loss, free part chosen best, is
``(1 - e) |y - z|^2 + |P(A x - b)|^2 + ridge t``: one residual for all groups.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spgls.base.types import EPS, Array, Vector
from spgls.game.providers import Population, priced_norm
from spgls.population import GroupMoments
from spgls.population.groups import Groups, Reached
from spgls.reduction.layout import times
from spgls.solvers.iterative.iterate import Run
from spgls.solvers.recover import loss_of

__all__ = ["Measured", "measure_predictor"]


class Measured(NamedTuple):
    """What is known of a predictor.

    Attributes
    ----------
    coef, intercept
        The predictor.
    t, a : float
        Squared priced norm, and the mean of ``s^2`` over the groups there.
    loss, rounding : float
        Its loss, ridge included, and what rounding can have done to that.
    slope : float
        Norm of the gradient at the best multiplier of the norm, over its terms.
    """

    coef: Vector
    intercept: float
    t: float
    a: float
    loss: float
    rounding: float
    slope: float


def measure_predictor(run: Run, v: Vector, population: Population, ridge: float) -> Measured:
    """Measure priced coefficients, with the best intercept and immutable coefficients for them."""
    data, problem, fresh = run.data, run.problem, run.prover.fresh
    groups = Groups(population)
    pull = groups.at(float(v @ v)).pull
    coef = data.layout.coefficients(v, data.free_coefficients(v, pull))
    t = priced_norm(coef, data.layout.cost)
    at = groups.at(t)
    m = GroupMoments(groups.gammas, groups.shares).at(t)
    root, rulers = np.sqrt(at.a), fresh.rulers
    problem.targets.count_once("rulers")
    problem.passes += 1.0
    own = coef[data.layout.changeable]
    x = (root * data.layout.priced(own))[:, None]
    y, z = np.array([m.p / root]), np.array([m.u / root])
    slope, (square,), _ = fresh.product_of(coef[:, None], root, y, z)
    slack = float(rulers.terms(x, y, z)[0])
    terms = rulers.columns @ np.abs(x[:, 0]) + y[0] * rulers.y + z[0] * rulers.z
    fixed, penalty = m.spread * data.loss(data.y - data.z), ridge * t
    size = np.sqrt(square)
    rounding = size * (2.0 * slack + rulers.unit * terms) + slack**2
    rounding += (rulers.down + 16 * EPS) * fixed + 4 * EPS * penalty
    loss, intercept = square + fixed, 0.0
    if data.free.rank:
        intercept, loss, rounding = _with_free_part(run, coef, at, loss, rounding)
    nu = -float(slope[:, 0] @ x[:, 0]) / (float(x[:, 0] @ x[:, 0]) or 1.0)
    # In units of the terms that cancel.
    unit = rulers.whole * float(terms) + abs(nu) * float(np.linalg.norm(x))
    rest = float(np.linalg.norm(slope + nu * x)) / unit if unit > 0.0 else 0.0
    return Measured(coef, intercept, t, at.a, float(loss + penalty), float(rounding), rest)


def _with_free_part(
    run: Run, coef: Vector, at: Reached, loss: float, rounding: float
) -> tuple[float, float, float]:
    """Intercept, loss and its rounding, of coefficients that may not be the best."""
    data, rulers = run.data, run.prover.fresh.rulers
    a, k = np.sqrt(at.a), np.sqrt(at.k)

    def terms(intercept: float) -> float:
        linear = float(rulers.raw @ np.abs(coef)) + rulers.constant * abs(intercept)
        return float(a * linear + k * rulers.raw_z + rulers.raw_y)

    if not len(data.layout.immutable):
        run.problem.targets.count_once("mean row")
        column: Array = coef[:, None]
        intercept = float(data.best_intercepts(column, np.array([at.pull]))[0])
        missed = 2.0 * (rulers.across + rulers.down) * terms(intercept)
        return intercept, loss, rounding + missed**2
    run.problem.passes += 1.0
    linear = data.matrix.apply(coef)
    intercept = data.best_intercept(linear, at.pull)
    measured = loss_of(data, at, linear + intercept)
    moved = rulers.across * terms(intercept)
    direct = moved * (2.0 * np.sqrt(measured) + moved) + rulers.down * measured
    # All groups share the free part: of their errors, those of the mean count.
    errors = a * (linear + intercept - data.y) + at.u / a * (data.z - data.y)
    free, doubt = data.free.part(np.asarray(times(data.root_weight, errors)))
    missed = 2.0 * (rulers.across + rulers.down) * terms(intercept) + doubt
    missed += rulers.turn * np.sqrt(measured)
    rounding += missed * (2.0 * free + missed)
    # In projected data large means do not count, unless the projection is in doubt.
    return (
        (intercept, loss + free**2, rounding)
        if rounding < direct
        else (intercept, measured, direct)
    )
