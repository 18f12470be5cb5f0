"""How far any predictor is from the best one, on data of any size.

The bound is the game's: its predictor's loss is measured on the data, and nothing else depends on
it. On small data the bound comes from a decomposition. On large data a predictor that is nearly
the best proves itself by its residual, in a few reads; otherwise the game is solved by products
alone, which needs no more memory than a solve.
"""

from __future__ import annotations

from math import inf, isfinite, sqrt

import numpy as np

from spgls.base.machine import available_memory, threads
from spgls.base.types import EPS, Vector
from spgls.game.providers import Population, priced_norm
from spgls.population.groups import Groups, Reached
from spgls.reduction.data import GameData
from spgls.solvers.by_reduction import certify_predictor, slope_of
from spgls.solvers.cost import krylov_cost, krylov_pass, spectral_cost
from spgls.solvers.iterative.iterate import Controls, Run
from spgls.solvers.iterative.prove import Kind, Wish
from spgls.solvers.krylov.solver import Krylov
from spgls.solvers.ones import column_of_ones, with_intercept
from spgls.solvers.recover import loss_of
from spgls.sphere.certificate import Certificate, in_units

__all__ = ["judge_predictor"]

#: Data with fewer entries than this is decomposed without a thought.
_SMALL = 50_000
#: Gap, in units of R2, below which no better bound is looked for.
_ENOUGH = 1e-8
#: A decomposition that keeps all digits takes so many times the plain one, in time and memory,
_CAREFUL = 6.0
#: and so many seconds, and this share of the free memory, are bearable.
_BEARABLE, _SHARE = 30.0, 0.5
#: Reads of the data for a judgement by decomposition, two of which its cost counts already, and
#: besides those of a solve by products.
_READS, _COUNTED, _MORE_READS = 4, 2, 5


def judge_predictor(
    data: GameData,
    coef: Vector,
    intercept: float,
    who: float | Population,
    ridge: float,
    *,
    enough: float = _ENOUGH,
) -> Certificate:
    """Bound how far a predictor is from the best one.

    Parameters
    ----------
    data : GameData
        The data of the game.
    coef, intercept
        The predictor.
    who : float or Population
        Whom the learner meets; a number is a game of the paper, without a ridge.
    ridge : float
        Weight of the squared priced norm of the coefficients against a population.
    enough : float
        Gap, in units of R2, below which no better bound is looked for on large data.
    """
    if column_of_ones(data) is not None:
        data = with_intercept(data)
    m, n = data.matrix.shape
    if m * n <= _SMALL or not data.layout.count:
        return certify_predictor(data, coef, intercept, who, ridge)
    limit = _patience(data)
    if limit == 0:
        return certify_predictor(data, coef, intercept, who, ridge)
    with np.errstate(all="ignore"):
        judged = _Judged(data, coef, intercept, who, ridge, enough)
        if not isinstance(who, Population) and isfinite(judged.objective):
            judged.take(*judged.own_bound(who))
        if judged.relative_gap > enough:
            judged.solve(limit)
        if not judged.useful and limit is not None:
            direct = certify_predictor(data, coef, intercept, who, ridge)
            judged.take(direct.lower_bound, direct.kind)
        return judged.certificate()


def _patience(data: GameData) -> int | None:
    """Products after which a decomposition is sooner; None where it is not to be borne at all."""
    work, cores = data.work, threads()
    cost = spectral_cost(work, 1, cores)
    own = _CAREFUL * (cost.seconds - _COUNTED * work.wait)
    seconds = own + _READS * work.wait
    if own > _BEARABLE or not cost.fits(_SHARE * available_memory() / _CAREFUL, work):
        return None
    if seconds < krylov_cost(work, 1, cores).seconds + _MORE_READS * work.wait:
        return 0
    return max(20, int(min(seconds / max(krylov_pass(work, cores), 1e-6), 1e6)))


class _Judged:
    """A predictor, its loss, and the best bound so far."""

    def __init__(
        self,
        data: GameData,
        coef: Vector,
        intercept: float,
        who: float | Population,
        ridge: float,
        enough: float,
    ) -> None:
        self._data, self._coef, self._who, self._ridge = data, coef, who, ridge
        self._enough = enough
        self._run = Run.begin("certify", data, 1.0, Controls(), 1)
        self._reached: Reached = Groups(who).at(priced_norm(coef, data.layout.cost))
        self._prediction = data.matrix.apply(coef) + intercept
        loss, at = loss_of(data, self._reached, self._prediction), self._reached
        penalty = at.penalty(ridge)
        self.objective = loss + penalty
        rulers = self._run.prover.fresh.rulers
        self._rounding = rulers.of_loss(coef, intercept, loss, s=sqrt(at.a), c=sqrt(at.k))
        self._rounding += at.hidden(rulers.reach_of(coef, intercept), loss)
        self._rounding += 4 * EPS * penalty
        self._lower, self.useful = 0.0, True
        self._kind: Kind = "proved"

    def take(self, lower: float, kind: Kind) -> None:
        """Take another bound, if it is better."""
        lower = min(lower, self.objective)
        if lower > self._lower:
            self._lower, self._kind = lower, kind

    def own_bound(self, gamma: float) -> tuple[float, Kind]:
        """What its own residual proves."""
        run = self._run
        gap = self._enough / 2 * run.problem.yy
        found = run.prover.fresh.residuals(self._coef[:, None], np.array([gamma]))
        none = np.full(1, np.nan)
        wish = Wish(np.array([self.objective - gap]), gap, none, np.zeros(1))
        bounds, kinds = run.prover.bounds(found, wish)
        return float(bounds.lower[0]), kinds[0]

    def solve(self, limit: int | None) -> None:
        """Take the bound of the game solved by products alone, with so many of them at most."""
        data, who = self._data, self._who
        controls = Controls(tol=min(1e-9, self._enough / 4), max_iter=limit)
        if isinstance(who, Population):
            found = Krylov().solve_population(data, who, self._ridge, controls)
        else:
            found = Krylov().solve(data, who, controls)
        self.useful = found.certificate.relative_gap <= self._enough
        self.take(found.certificate.lower_bound, found.certificate.kind)

    @property
    def relative_gap(self) -> float:
        """Gap in units of R2."""
        gap = self.objective + self._rounding - self._lower
        if not isfinite(gap):
            return inf
        return in_units(gap, self._run.problem.yy, self._data.label_size)

    def certificate(self) -> Certificate:
        """All that is known."""
        gap = self.objective + self._rounding - self._lower
        return Certificate(
            lower_bound=self._lower,
            gap=gap if isfinite(gap) else inf,
            relative_gap=self.relative_gap,
            kkt_residual=slope_of(
                self._data, self._reached, self._coef, self._prediction, self._ridge
            ),
            kind=self._kind,
        )
