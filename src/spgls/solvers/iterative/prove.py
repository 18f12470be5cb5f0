"""The best lower bound that a predictor's residual leads to, from what is cheap to what is dear.

First ``B >= 0``, which asks for a positive multiplier; then, for few columns, the curvature from
squared data, which serves any multiplier; for many, an estimate of the smallest eigenvalue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

from spgls.base.cached import cached_property
from spgls.base.types import Vector
from spgls.reduction.data import GameData
from spgls.reduction.ritz import certainly_singular
from spgls.solvers.iterative.curvature import FEW_COLUMNS, Curvature, squarable
from spgls.solvers.iterative.inverse import Inverse, rough_inverse
from spgls.solvers.iterative.residual import Bounds, Fresh, Residuals, least_residual
from spgls.solvers.iterative.rulers import lengths

__all__ = ["Kind", "LeastSquares", "Prover", "Wish"]

Kind = Literal["proved", "estimated"]

#: Steps to the right of a multiplier, in units of the gap allowed over the strength: at a pole the
#: Lagrangian has no minimum, and a step of two costs half of the gap.
_STEPS = (0.0, 1e-4, 1e-2, 0.25, 2.0)
#: Eigenvalues of squared data, over the largest, that may be those of a null space.
_CUTS = (1e-14, 1e-12, 1e-9)
#: Reads that least squares may take to be corrected.
_CORRECTIONS = 6
#: Multipliers below this share of the squared data may gain from what is known of its spectrum.
_WEAK = 1e-8


class LeastSquares(NamedTuple):
    """What least squares comes to.

    Attributes
    ----------
    norm, accuracy : float
        Its squared norm, and the relative accuracy of that.
    settled : bool
        Whether it is as accurate as was wanted, or as rounding allows.
    reads : int
        Reads of the data it took.
    """

    norm: float
    accuracy: float
    settled: bool
    reads: int


class Wish(NamedTuple):
    """What is asked of a bound, an entry for each predictor.

    Attributes
    ----------
    goal : ndarray of shape (G,)
        Bounds that would do.
    gap : float
        Gap that is allowed.
    hint : ndarray of shape (G,)
        Multipliers ``nu`` known otherwise; not a number where there is none.
    floor : ndarray of shape (G,)
        What no eigenvalue of ``B`` is below, as far as it is known by estimate.
    """

    goal: Vector
    gap: float
    hint: Vector
    floor: Vector


@dataclass(frozen=True, eq=False)
class Prover:
    """Bounds on one game's data.

    Attributes
    ----------
    data : GameData
        The data.
    fresh : Fresh
        What forms residuals anew.
    """

    data: GameData
    fresh: Fresh = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "fresh", Fresh(self.data))

    @property
    def kind(self) -> Kind:
        """Whether what rounding can have done is certain: how well many columns project is not."""
        return "estimated" if self.fresh.rulers.estimated else "proved"

    @property
    def few_columns(self) -> bool:
        """Whether columns are squared wherever that helps."""
        return squarable(self.data.work, FEW_COLUMNS)

    @property
    def can_square(self) -> bool:
        """Whether they are squared where nothing else proves anything."""
        return squarable(self.data.work)

    @property
    def squared(self) -> bool:
        """Whether they are squared already, or as good as that."""
        return self.few_columns or "curvature" in self.__dict__

    @cached_property
    def curvature(self) -> Curvature:
        """Squared data; one read."""
        return Curvature(self.data, self.fresh.rulers)

    def inverses(self) -> Iterator[Inverse]:
        """``(A'PA)^{-1}`` from squared data: a rough one of many columns, then one that is certain.

        None unless there certainly is one.
        """
        if not self.can_square or certainly_singular(self.data):
            return
        rough = None if self.squared else rough_inverse(self.data)
        if rough is not None:
            yield rough
        some, metric = self.curvature.at_zero
        if metric is not None and len(some) == self.data.projected.shape[1]:
            yield Inverse(metric.solved, metric.floor)

    def least_squares(
        self, w: Vector, inverse: Inverse, lowest: float, wanted: float
    ) -> LeastSquares:
        """Least squares from coefficients that are close to it, corrected until they are closer.

        With ``s = A'P(Aw - y)`` they are off by ``(A'PA)^{-1} s``, which is no longer than ``s``
        over the least eigenvalue.

        Parameters
        ----------
        w : ndarray of shape (n,)
            Coefficients.
        inverse : Inverse
            One of :meth:`inverses`.
        lowest : float
            What no eigenvalue of ``A'PA`` is below, by estimate; what is certain may be far less.
        wanted : float
            Relative accuracy of the squared norm at which to stop.
        """
        w, fresh = w[:, None], self.fresh
        least, before, reads = max(lowest, inverse.floor), np.inf, 0
        while True:
            reads += 1
            slope, square, _ = fresh.product(w, np.ones(1), np.zeros(1))
            left = float(lengths(slope)[0])
            rounding = fresh.rulers.whole * float(fresh.doubt(w, 0.0, square)[1][0])
            size, wrong = float(lengths(w)[0]), (left + rounding) / least
            accuracy = 2 * wrong / size + (wrong / size) ** 2 if size else 0.0
            settled = accuracy <= wanted or left <= rounding
            if settled or left > before / 2 or reads == _CORRECTIONS:
                break
            w, before = w - inverse.solved(slope), left
        return LeastSquares(size**2, accuracy, settled, reads)

    def bounds(
        self,
        found: Residuals,
        wish: Wish,
        estimate: Callable[[float, float], float] | None = None,
    ) -> tuple[Bounds, list[Kind]]:
        """The best bounds known, and whether they are certain.

        Parameters
        ----------
        found : Residuals
            Predictors.
        wish : Wish
            What is asked for.
        estimate : callable, optional
            Lower bound of the eigenvalues of ``B``, given strength and multiplier, that is very
            likely and not certain.
        """
        bounds = self.fresh.bounds(found)
        kinds: list[Kind] = [self.kind] * len(found.gamma)
        if self.few_columns:
            for i in np.flatnonzero(~np.isnan(wish.hint)).tolist():
                # Methods that find a multiplier are judged by it.
                one = found.taken(np.array([i]))
                bounds.lower[i], bounds.nu[i] = self._by_curvature(one, wish, i)
        for i in np.flatnonzero(np.isnan(wish.hint) & ~(bounds.lower >= wish.goal)).tolist():
            one = found.taken(np.array([i]))
            if self.few_columns:
                better, _ = self._by_curvature(one, wish, i)
                if better < wish.goal[i]:
                    better = max(better, self._beside_null_space(one))
                bounds.lower[i] = max(bounds.lower[i], better)
                continue
            floor, nu = float(wish.floor[i]), float(bounds.nu[i])
            weak = nu <= _WEAK * self.fresh.rulers.whole**2
            if floor <= 0.0 and weak and estimate is not None:
                floor = estimate(float(found.gamma[i]), nu)
            if floor > 0.0:
                better = float(self.fresh.bounds(one, floor).lower[0])
                if better > bounds.lower[i]:
                    bounds.lower[i], kinds[i] = better, "estimated"
        return bounds, kinds

    def _by_curvature(self, one: Residuals, wish: Wish, i: int) -> tuple[float, float]:
        """The bound of one predictor, and which multiplier right of its own leads to it."""
        rho, (nu,), x = least_residual(one)
        errors = self.fresh.errors(one)[:, 0]
        gamma, certain = float(one.gamma[0]), float(one.certain[0])
        start = float(nu if np.isnan(wish.hint[i]) else wish.hint[i])
        # Zero is feasible at least, and proves that squares are not negative.
        best, proving = -np.inf, max(start, 0.0)
        for step in _STEPS:
            trial = start + step * wish.gap / gamma
            metric = self.curvature.with_goal(trial, gamma)
            if metric is None:
                continue
            slope = rho[:, 0] + (trial - nu) * x[:, 0]
            more = self.fresh.rulers.unit * abs(trial) * np.abs(x[:, 0])
            lost = metric.norm(slope) + metric.spread(errors + more)
            if certain - float(lost) ** 2 > best:
                best, proving = certain - float(lost) ** 2, trial
            if best >= wish.goal[i]:
                break
        return max(best, 0.0), proving

    def _beside_null_space(self, one: Residuals) -> float:
        """The bound of one predictor less what the data hardly sees of it."""
        x = np.stack([self.curvature.seen(one.x[:, 0], cut) for cut in _CUTS], axis=1)
        s, c, gamma = (float(part[0]) for part in (one.s, one.c, one.gamma))
        return self.fresh.off_the_sphere(x, s, c, gamma)
