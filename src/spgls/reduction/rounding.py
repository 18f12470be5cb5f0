"""What rounding in a reduction can have done to the loss of any predictor whatever.

The loss of a predictor in a computed game differs from its loss in the true one. Let ``A, y, z``
be the true data, ``x`` the coefficients times their weight in the learner's errors,
``tau = |x|^2`` and ``k`` the mean of ``c^2`` over the groups (one strength: ``tau = gamma s c``,
``k = c^2``). With ``F, Y, Z`` the sizes of data, labels and goals before anything was projected
away, and ``b = Y + sqrt(k) Z``:

*Squared data.* Second moments are wrong by no more than ``kappa`` times the products of those
sizes, and so is the loss: by ``kappa (W + b)^2``, ``W = F sqrt(tau)``. Directions that were cut off
as null space have kept a right-hand side, which explains at most its square over the multiplier.

*Triangular factor.* The computed game is the true game of data that differ by ``kappa``, column by
column. Errors are then wrong by ``delta = kappa (W + b)`` in length, and the loss of whoever does
better than ``upper`` by ``2 delta sqrt(upper) + delta^2``.

*Directions that show.* ``W`` stands for the sum of coefficients, each by the size of its column. In
some directions it is at most what is predicted over a number, ``least``, and whoever does better
than ``upper`` predicts no more than ``sqrt(upper) + b``. In the others it is at most ``weak`` times
the norm. So ``W <= (sqrt(upper) + b)/least + weak sqrt(tau)``, however the directions are split.

*Kernel matrix.* With ``e = kappa F^2`` the bound at a multiplier ``nu > 0`` loses the share
``e/nu`` of itself.

Each of these grows with ``tau`` and ``k`` alone, so a bound on some of the predictors pays for
those and for no others. Proofs are in ``docs/proofs.md``.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field, replace
from math import sqrt
from typing import Any, Literal, NamedTuple

import numpy as np

from spgls.base.cached import cached_property
from spgls.base.each import choose
from spgls.base.types import EPS

__all__ = ["Charge", "Rounding", "kappa_of", "kappa_of_factor", "kappa_of_sums"]

#: Where norms have less to say than this share of the rest, it does not matter how much.
_THIN = 1e-3
#: Columns that are wrong by so much of their lengths prove nothing.
_HOPELESS = 1e-4
#: Norms are no larger than the root of this where they are compared with something.
_FAR = 1e300


def kappa_of(rows: int, columns: int) -> float:
    """Relative error of sums over so many rows and of decompositions of so many columns."""
    return 32.0 * sqrt(columns) * EPS + kappa_of_sums(rows)


def kappa_of_sums(rows: int) -> float:
    """Relative error of sums over so many rows alone."""
    return (min(rows, 400) + rows / 400.0) * EPS


def kappa_of_factor(rows: int, columns: int) -> float:
    """Relative error, column by column, of a triangular factor and its singular vectors."""
    return (32.0 * sqrt(columns) + 128.0 + rows / 400.0) * EPS


class Charge(NamedTuple):
    """A quadratic in ``c`` around a point: ``at + 2 slope w + bend w^2`` at ``c + w``."""

    at: Any
    slope: Any
    bend: Any


@dataclass(frozen=True)
class Rounding:
    """Errors of a computed game; without arguments, those of coordinates that are exact.

    Attributes
    ----------
    kind : {"squared", "factor", "kernel"}
        What the game was computed from.
    kappa : float
        Relative error.
    reach, y, z : float
        Sizes of data, labels and goals before anything was projected away.
    tail_y, tail_z : float
        Squared data: norms of the right-hand sides in directions that were cut off.
    least : float
        As above for all directions together, in the computed game; zero if it is not known.
    splits : tuple of pairs
        Triangular factor: ``least`` of some of the directions and ``weak`` of all others.
    slack : float
        What else was done to the loss, at most.
    bounded : bool
        Whether only charges that do not grow with the norm are of interest.
    blur : float
        How wrong columns were before anything was computed, in units of their lengths.
    """

    kind: Literal["squared", "factor", "kernel"] = "factor"
    kappa: float = 0.0
    reach: float = 0.0
    y: float = 0.0
    z: float = 0.0
    tail_y: float = 0.0
    tail_z: float = 0.0
    least: float = 0.0
    splits: tuple[tuple[float, float], ...] = field(default=(), repr=False)
    slack: float = 0.0
    bounded: bool = False
    blur: float = 0.0

    def blurred(self, blur: float) -> Rounding:
        """The same for data whose columns were wrong by so much of their lengths to begin with."""
        if blur == 0.0:
            return self
        if not blur < _HOPELESS:
            return replace(self, slack=np.inf, least=0.0, blur=_HOPELESS)
        more = blur if self.kind == "factor" else 3 * blur
        return replace(self, kappa=self.kappa + more, blur=blur)

    @cached_property
    def certain(self) -> float:
        """What is left of ``least`` in the true game."""
        return self._certain(self.least)

    @cached_property
    def for_every_norm(self) -> Rounding:
        """The same, with charges that do not grow with the norm, where there are such."""
        return replace(self, bounded=True) if self.certain > 0.0 else self

    def scaled(self, sigma: float, length: float) -> Rounding:
        """The same where data is divided by ``sigma``, labels and goals by ``length``."""
        return replace(
            self,
            reach=self.reach / sigma,
            y=self.y / length,
            z=self.z / length,
            tail_y=self.tail_y / (sigma * length),
            tail_z=self.tail_z / (sigma * length),
            splits=tuple((least, weak / sigma) for least, weak in self.splits),
            slack=self.slack / length**2,
        )

    def charge(self, tau: Any, root_k: Any, nu: Any, upper: float) -> Any:
        """What may be wrong with the loss of predictors up to ``tau`` and ``k``.

        Parameters
        ----------
        tau, root_k : ndarray
            Their squared norms, and the roots of their ``k``, at most.
        nu : ndarray
            The multiplier that bounds them.
        upper : float
            A loss that some predictor has; others are of no interest.
        """
        by_norm, rest = self.linear(tau, root_k, nu, upper)
        # Where nothing is paid for the norm it may be infinite.
        return rest + by_norm * choose(by_norm > 0.0, tau, by_norm)

    def linear(self, tau: Any, root_k: Any, nu: Any, upper: float) -> tuple[Any, Any]:
        """The same for every norm: so much for each unit of ``tau``, and so much besides.

        It is sharp at the ``tau`` given.
        """
        size = self.y + root_k * self.z
        by_norm, constant, by_size, by_square = self._terms(tau, size, nu, upper)
        rest = constant + size * (by_size + by_square * size)
        # What the free part explains of the gap between labels and goals is a difference of sums.
        rest = rest + self.kappa * (root_k * (self.y + self.z)) ** 2
        if self.has_tail:
            tail = (self.tail_y + root_k * self.tail_z) ** 2
            rest = rest + choose(nu > 0.0, tail / nu, np.inf + 0.0 * nu)
        return by_norm, rest

    def around(self, s: Any, c: Any, gamma: Any, nu: Any, upper: Any) -> Charge:
        """The charge of one strength, for every ``c`` between zero and one.

        Parameters
        ----------
        s, c : float or ndarray
            Where it is to be sharp.
        gamma : float or ndarray
            The strength.
        nu, upper
            As for :meth:`charge`.
        """
        size, product = self.y + c * self.z, s * c
        by_norm, at, by_size, by_square = self._terms(gamma * product, size, nu, upper)
        # gamma c (1-c) and (Y + c Z)^2, and their derivatives.
        each = by_norm * gamma
        twice = by_square * size
        at = at + each * product + size * (by_size + twice)
        slope = each * (s - c) / 2 + self.z * (by_size / 2 + twice)
        bend = by_square * self.z**2 - each
        if self.has_tail:
            over = choose(nu > 0.0, 1.0 / nu, np.inf + 0.0 * nu)
            tail = self.tail_y + c * self.tail_z
            at, slope = at + over * tail**2, slope + over * tail * self.tail_z
            bend = bend + over * self.tail_z**2
        return Charge(at, slope, bend)

    def charged(self, bound: Any, charge: Any, upper: float) -> Any:
        """A bound less its charge."""
        if self.kind == "kernel":
            # What is lost is a share of the bound, and was taken of no more than this.
            bound = np.minimum(bound, upper)
        return bound - charge

    def plain(self, tau: Any, root_k: Any, upper: float) -> Any:
        """The charge of what is known without a multiplier."""
        if self.kind == "factor":
            return self.charge(tau, root_k, tau, upper)
        size = self.y + root_k * self.z
        return self.kappa * (self.reach * tau**0.5 + size) ** 2 + self.slack

    @property
    def has_tail(self) -> bool:
        """Whether something was cut off that had a say."""
        return self.tail_y + self.tail_z > 0.0

    def _terms(self, tau: Any, size: Any, nu: Any, upper: Any) -> tuple[Any, Any, Any, Any]:
        """Coefficients of ``tau``, one, ``b`` and ``b^2`` in the charge, tails aside."""
        reach, kappa = self.reach, self.kappa
        if kappa == 0.0:
            return 0.0 * size, self.slack, 0.0, 0.0
        if self.kind == "kernel":
            share = choose(nu > 0.0, kappa * reach**2 / nu, np.inf + 0.0 * nu)
            return 0.0 * share, share * upper + self.slack, 0.0, 2 * kappa
        # W is at most rate (top + size) + weak tau^(1/2), and with b at most q + near, where q is
        # fixed + by size. Products of both are split where they are as large as here.
        top, root = upper**0.5, choose(tau < _FAR, tau, _FAR) ** 0.5
        rate, weak = self._split(root / (top + size + 1e-300))
        fixed, by, by_norm = choose(rate > 0.0, rate * top, 0.0 * rate), 1.0 + rate, weak > 0.0
        q = fixed + by * size
        near, floor = weak * root, _THIN * q + 1e-300
        near = choose(near > floor, near, floor)
        if self.kind == "squared":
            norm, once, apart = kappa * weak * (weak + weak * q / near), 0.0, 0.0
            square = kappa * (1.0 + by_norm * near / (q + 1e-300))
        else:
            square, once = kappa**2 * (1.0 + by_norm), kappa * top
            norm, apart = weak**2 * (once / near + square), by_norm * once * near
        return (
            norm,
            apart + fixed * (2 * once + square * fixed) + self.slack,
            2 * by * (once + square * fixed),
            square * by**2,
        )

    def _split(self, ratio: Any) -> tuple[Any, Any]:
        """The best split of the directions, as a ``rate`` and ``weak``.

        For the root of ``tau``, over that of ``upper`` and ``b``.
        """
        rates, weaks, turns = self._ways
        if not ratio.ndim:
            best = bisect_left(turns, ratio)
            return np.float64(rates[best]), np.float64(weaks[best])
        which = np.searchsorted(turns, ratio)
        return np.array(rates)[which], np.array(weaks)[which]

    @cached_property
    def _ways(self) -> tuple[list[float], list[float], list[float]]:
        """Splits of which each is best up to some ratio, and these ratios."""
        split = [(0.0, self.reach)]
        for least, weak in self.splits:
            certain = self._certain(least)
            # What is wrong with predictions is part of what is bounded by them.
            if certain > least / 2:
                split.append((1.0 / certain, weak * (least / certain)))
        if self.certain > 0.0:
            split.append((1.0 / self.certain, 0.0))
        if self.bounded:
            split = split[-1:]
        kept, turns = split[:1], [-np.inf]
        for rate, weak in split[1:]:
            if not weak < kept[-1][1]:
                continue
            while not (turn := (rate - kept[-1][0]) / (kept[-1][1] - weak)) > turns[-1]:
                del kept[-1], turns[-1]
            kept.append((rate, weak))
            turns.append(turn)
        return [rate for rate, _ in kept], [weak for _, weak in kept], turns[1:]

    def _certain(self, least: float) -> float:
        """What is left in the true game of something that bounds coefficients by predictions."""
        if self.kind == "squared":
            return sqrt(max(0.0, least**2 - self.kappa))
        return max(0.0, least - self.kappa)

    def label_length(self, yy: float) -> float:
        """What the labels are no longer than after projection, by their computed square."""
        if self.kind == "squared":
            return sqrt(yy + self.kappa * self.y**2)
        return sqrt(yy) + self.kappa * self.y

    def proved_lowest(self, lowest: float) -> float:
        """What is certain of the smallest eigenvalue of the squared data, by its computed value."""
        if self.kind == "squared":
            return max(0.0, lowest - self.kappa * self.reach**2)
        if self.kind == "kernel":
            return 0.0
        share = 1.0 - self.kappa / self.certain if self.certain > self.kappa else 0.0
        return max(share * sqrt(lowest), sqrt(lowest) - self.kappa * self.reach, 0.0) ** 2
