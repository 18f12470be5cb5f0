"""The learner's best loss at a prescribed norm, for many norms at once.

At ``|v|^2 = t`` the loss of a population, summed over groups and with the shared free part chosen
best, is a sum of squares in which nothing cancels:

    phi(t) = (1 - e) (|y - z|^2 + f) + min |sqrt(a) sigma v - r|^2 + |r outside|^2 + ridge t,

``r = (p y - u z)/sqrt(a) = sqrt(a) z + sqrt(e) (y - z)``. With ``x = sqrt(a) v`` this is least
squares under ``|x|^2 = tau = a t``: ``x = sigma r/(d + nu)``, residual ``-nu r/(d + nu)``.

Without the constraint, and ``nu (|x|^2 - tau)`` added, the minimum is ``psi``, which is never above
``phi`` whatever the multiplier ``nu >= -lowest``: section, search and proof all rest on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, sqrt
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from spgls.base.types import EPS, Array, Vector
from spgls.population.moments import GroupMoments, Moments, Numbers, column, either
from spgls.population.multiplier import Multipliers, blocks, inner
from spgls.reduction.reduced import ReducedGame
from spgls.sphere.pole import power_of_two

__all__ = ["EXACT", "LOOSE", "Dual", "Section", "Sections", "Units"]

#: Last Newton steps that leave a multiplier exact, or good to a few digits.
EXACT, LOOSE = 1e-8, 1e-2
#: Units of strengths between this and its inverse: where the strengths of games are numbers too.
_SMALL = 1e-150


class NoStrength(ArithmeticError, ValueError):
    """A strength leaves the range of double precision: solvers may try another way, or refuse."""


@dataclass(frozen=True)
class Units:
    """Powers of two that bring data, labels and goals to order one."""

    sigma: float
    length: float

    @classmethod
    def of(cls, game: ReducedGame) -> Units:
        """Units of a game."""
        size = game.yy + game.zz + game.free_gap
        sigma = power_of_two(game.top) if game.size else 1.0
        return cls(sigma, power_of_two(sqrt(size)) if size > 0.0 else 1.0)

    @property
    def norm(self) -> float:
        """Unit of the coefficients."""
        return self.length / self.sigma

    @property
    def t(self) -> float:
        """Unit of squared norms and of strengths."""
        # A product becomes infinite where a power would raise.
        return self.norm * self.norm

    def strengths(self, gammas: Sequence[Numbers] | Vector) -> list[Numbers]:
        """Strengths in these units; those that are no numbers there are refused."""
        unit = np.float64(self.t)
        if _SMALL < unit < 1.0 / _SMALL:
            # Strengths of games are between these, too.
            return [gamma / unit for gamma in gammas]
        with np.errstate(all="ignore"):
            told = [gamma / unit for gamma in gammas]
        for gamma, own in zip(gammas, told, strict=True):
            if not np.all((own > 0.0) & ((own < inf) | (gamma == inf))):
                raise NoStrength(
                    "gamma is out of range: the rows leave so little of X or of the labels that it "
                    "is no number in their units. Bring X, y and z to other scales."
                )
        return told


class Dual(NamedTuple):
    """The Lagrangian bound ``psi`` at some ``t`` and multipliers, and the sums it is made of.

    Attributes
    ----------
    m : Moments
        Where.
    nu : ndarray of shape (T,)
        Multipliers.
    value : ndarray of shape (T,)
        ``psi``, as squares less ``nu tau``.
    fixed : ndarray of shape (T,)
        The part of it without the multiplier.
    zz, zd, dd : ndarray of shape (T,)
        ``S_zz``, ``S_zd`` and ``G + f``.
    sizes : ndarray of shape (T, 5)
        Sums of the magnitudes of the terms of ``S_yy, S_yz, S_zz, S_zd, S_dd``.
    """

    m: Moments
    nu: Numbers
    value: Numbers
    fixed: Numbers
    zz: Numbers
    zd: Numbers
    dd: Numbers
    sizes: Array


class Section(NamedTuple):
    """``phi`` at several ``t``, or a single one, in the problem's units.

    ``mu`` is the distance of the multiplier ``nu`` from its least value, ``fill`` the squared norm
    of ``v`` in the lowest space. ``slope`` and ``curvature`` are derivatives of ``phi`` in
    ``log t``, ``stiff`` is the second derivative of the Lagrangian bound at a fixed multiplier,
    ``rate`` the derivative of the multiplier in ``log t``; ``noise`` is what rounding may leave in
    the slope. ``x`` is ``v`` in singular coordinates, kept for a single ``t`` only.
    """

    t: Numbers
    mu: Numbers
    fill: Numbers
    value: Numbers
    slope: Numbers
    curvature: Numbers
    noise: Numbers
    rate: Numbers
    stiff: Numbers
    x: Vector | None = None

    def joined(self, *others: Section) -> Section:
        """Several sections as one."""
        return _joined(self, *others)

    def taken(self, rows: Any) -> Section:
        """Some of the rows."""
        return Section(*(part[rows] for part in self[:-1]))


_Rows = TypeVar("_Rows")


def _joined(*parts: _Rows) -> _Rows:
    """Rows of nested tuples, one after the other."""
    first: Any = parts[0]
    if isinstance(first, np.ndarray):
        return cast(_Rows, np.concatenate(parts))  # type: ignore[arg-type]
    if not isinstance(first, tuple):
        return parts[0]
    columns = zip(*cast(Any, parts), strict=True)
    make = getattr(first, "_make", tuple)
    return cast(_Rows, make(_joined(*column) for column in columns))


class Sections:
    """A population game in convenient units, able to evaluate ``phi`` at many ``t``.

    Or many games on the same data, able to evaluate the loss of each at a ``t`` of its own.

    Parameters
    ----------
    game : ReducedGame
        The reduced data.
    gammas, shares : sequence of K numbers, or of vectors of shape (C,)
        Strengths, in the game's own units, and shares of the groups: of one game, or of C of them
        (see :class:`GroupMoments`).
    ridge : float or ndarray of shape (C,)
        Penalty in the game's own units.
    ulps : float
        Relative accuracy of the game's coordinates in ulps.
    """

    #: Whether a population is faced alone, not the worst of several.
    alone = True
    #: Least value that bounds of the whole can reach, where that may be less than what is attained.
    least = inf

    def __init__(
        self,
        game: ReducedGame,
        gammas: Sequence[Numbers] | Vector,
        shares: Sequence[Numbers] | Vector,
        ridge: Numbers,
        ulps: float = 2.0,
    ) -> None:
        units = Units.of(game)
        self.units = units
        # Intervals know the norms that they pay for.
        self.rounding = game.rounding.scaled(units.sigma, units.length)
        self.groups = GroupMoments(units.strengths(gammas), shares)
        self.ridge: Numbers = ridge / units.sigma**2
        size = units.length**2
        self.sigma: Vector = game.sigma / units.sigma
        self.d: Vector = self.sigma * self.sigma
        self.base: Array = np.empty((3, game.size))
        eta, zeta, delta = self.base
        np.divide(game.eta, units.length, out=eta)
        np.divide(game.zeta, units.length, out=zeta)
        # Close labels and goals subtract without error.
        np.subtract(eta, zeta, out=delta)
        r_yy, r_yz, r_zz = (float(r) / size for r in (game.r_yy, game.r_yz, game.r_zz))
        r_yd, r_zd = r_yy - r_yz, r_yz - r_zz
        r_dd = max(0.0, r_yd - r_zd)
        self.outer: Array = np.array([[r_yy, r_yz, r_yd], [r_yz, r_zz, r_zd], [r_yd, r_zd, r_dd]])
        self._outer_sizes: Vector = np.array([r_yy, abs(r_yz), r_zz, abs(r_zd), r_dd])
        self._r_zz, self._r_zd = r_zz, r_zd
        self.free = float(game.free_gap) / size
        self.yy = float(eta.dot(eta)) + r_yy
        self.zz = float(zeta.dot(zeta)) + r_zz
        #: Squared distance of labels and goals, the free part included.
        self.apart = float(delta.dot(delta)) + r_dd + self.free
        self.nullity = game.nullity
        self.size = game.size
        self.lowest = 0.0 if game.nullity or not game.size else float(self.d.min())
        self.e: Vector = self.d - self.lowest
        # Columns whose products with 1/(d + nu) are S_zz, S_zd and G, and magnitudes.
        zz, zd, dd = zeta * zeta, zeta * delta, delta * delta
        self._products: Array = np.array([zz, zd, self.d * dd]).T
        self._magnitudes: Array = np.array([eta * eta, abs(eta * zeta), zz, abs(zd), dd]).T
        self.sides: Array = (self.base[1:] * self.sigma).T
        self.multipliers = Multipliers(self.e, self.sides, (2.0 * ulps * EPS) ** 2)

    def of(self, which: Any) -> Sections:
        """Some of many games, in any order and as often as wanted; one game serves every ``t``."""
        if not self.groups.many:
            return self
        return self.against(self.groups.of(which), self.ridge[which])

    def against(self, groups: GroupMoments, ridge: Numbers) -> Sections:
        """The same data, labels and goals in another game, or in many."""
        other = Sections.__new__(Sections)
        vars(other).update(vars(self))
        other.groups, other.ridge = groups, ridge
        return other

    def facing(self, t: Vector) -> Sections:
        """The game whose Lagrangian bounds the loss at each ``t``: this one."""
        return self

    def facing_one(self, t: float) -> Sections:
        """The same at a single ``t``."""
        return self

    def target(self, m: Moments) -> tuple[Array, Numbers, Numbers]:
        """``r`` along the data, its squared norm outside, and its product there with ``y - z``."""
        alpha = m.a**0.5
        beta = m.p / alpha
        omega = m.u / alpha
        # Weights of y, z and y - z, in the form with the smaller terms.
        far = m.u > m.a
        if not isinstance(far, np.ndarray):
            weights = np.array((0.0, alpha, beta) if far else (beta, -omega, 0.0))
        else:
            weights = np.array([beta, -omega, 0.0 * beta])
            if np.count_nonzero(far):
                weights = np.where(far, np.array([0.0 * beta, alpha, beta]), weights)
            weights = weights.T
        outside = weights.dot(self.outer)
        larger = max if weights.ndim == 1 else np.fmax
        return weights.dot(self.base), larger(0.0, inner(outside, weights)), outside.T[2]

    def dual(self, t: Numbers, mu: Numbers) -> Dual:
        """The Lagrangian bound at ``t`` and multipliers; a single ``t`` serves several of them."""
        rows = blocks(np.size(mu), self.size)
        if len(rows) > 1 and isinstance(t, np.ndarray):
            joined = _joined(*(self.of(some).dual(t[some], mu[some]) for some in rows))
            return joined._replace(m=joined.m._replace(groups=self.groups))
        m = self.groups.at(t)
        r, outside, _ = self.target(m)
        nu, w = mu - self.lowest, self.inverse(mu)
        squares = r * r
        inside = inner(w, squares) if r.ndim == w.ndim else w.dot(squares)
        fixed = m.spread * self.apart + outside + self.ridge * m.t
        sizes = w.dot(self._magnitudes)
        sizes *= column(abs(nu))
        sizes += self._outer_sizes
        return Dual(m, nu, fixed + nu * (inside - m.tau), fixed, *self._sums(w, nu), sizes)

    def sizes_along(self, some: np.ndarray) -> Vector:
        """Sums of the magnitudes of terms, as in :class:`Dual`, along some directions alone."""
        return np.asarray(self._magnitudes[some].sum(axis=0))

    def _sums(self, w: Array, nu: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """``S_zz``, ``S_zd`` and ``G + f``; ``w`` is ``1/(d + nu)``."""
        sums = w.dot(self._products)
        zz, zd, dd = sums.tolist() if w.ndim == 1 else sums.T
        return self._r_zz + nu * zz, self._r_zd + nu * zd, self.free + dd

    def evaluate(self, t: Numbers, tol: float = EXACT, guess: Numbers | None = None) -> Section:
        """``phi`` and its derivatives at positive ``t``.

        Parameters
        ----------
        t : ndarray of shape (T,) or float
            Where; several, or a single one. Of many games, one for each.
        tol : float
            Relative size of the last step towards the multiplier.
        guess : ndarray of shape (T,) or float, optional
            Multipliers to start from; a single ``t`` needs one.
        """
        ranges = blocks(t.size, self.size) if isinstance(t, np.ndarray) else []
        if len(ranges) <= 1:
            return self._evaluate(t, tol, guess)
        parts = [
            self.of(rows)._evaluate(t[rows], tol, None if guess is None else guess[rows])
            for rows in ranges
        ]
        return _joined(*parts)

    def step_to(self, t: float, guess: float) -> Section:
        """The same at a single ``t``, well enough for Newton's method: exactly."""
        return self.evaluate(t, EXACT, guess)

    def _evaluate(self, t: Numbers, tol: float, guess: Numbers | None) -> Section:
        single = not isinstance(t, np.ndarray)
        m = self.groups.at(t)
        r, outside, outside_d = self.target(m)
        x = r * self.sigma
        mu, fill = self.multipliers.solve(m, x * x, tol, guess)
        nu = mu - self.lowest
        w = self.inverse(mu)
        residual = r * w
        residual *= column(-nu)
        if not (mu.all() if isinstance(mu, np.ndarray) else mu):
            # At the least multiplier nothing of ``v`` answers to the target in the lowest space.
            residual = np.where(w > 0.0, residual, -r)
        loss = inner(residual, residual) + outside + self.lowest * fill
        along = residual.dot(self.base[2]) - outside_d
        alpha, penalty = m.a**0.5, self.ridge * t
        # Envelope theorem: the terms' derivatives with the direction of v held.
        steady = m.e1 * self.apart + penalty
        by_loss = 2.0 * m.bend / m.a * loss
        by_side = 2.0 * (m.u - 2.0 * m.kappa) / alpha * along
        by_norm = nu * m.tau
        zz, zd, dd = self._sums(w, nu)
        stiff = zz * m.a2 + 2.0 * zd * (m.u - 2.0 * m.bend) - nu * m.tau2 + dd * m.e2 + penalty
        x *= w
        # How the squared norm answers to the multiplier, and to goals and labels less goals.
        xw = x * w
        steep = 2.0 * inner(xw, x)
        by_goal, by_gap = xw.dot(self.sides).tolist() if single else xw.dot(self.sides).T
        cross = -2.0 * (m.bend * by_goal + m.kappa * by_gap) / alpha - m.tau1
        if single:
            rate = cross / steep if mu > 0.0 and steep > 0.0 else 0.0
        else:
            rate = cross / steep
            rate[~((mu > 0.0) & (steep > 0.0))] = 0.0
        return Section(
            t=t,
            mu=mu,
            fill=fill / m.a,
            value=m.spread * self.apart + loss + penalty,
            slope=steady - by_loss - by_side - by_norm,
            curvature=stiff + cross * rate,
            noise=4.0 * EPS * (steady + by_loss + abs(by_side) + abs(by_norm)),
            rate=rate,
            stiff=stiff,
            x=x / alpha if single else None,
        )

    def inverse(self, mu: Numbers) -> Array:
        """``1/(e + mu)``, and zero where that is not defined."""
        shifted = self.e + column(mu)
        if mu.all() if isinstance(mu, np.ndarray) else mu:
            return np.asarray(1.0 / shifted)
        defined = np.divide(1.0, shifted, out=np.zeros_like(shifted), where=shifted > 0.0)
        return np.asarray(defined)

    def steepness(self, m: Moments, nu: Numbers, zz: Numbers, zd: Numbers, dd: Numbers) -> Numbers:
        """Derivative of ``psi`` in ``log t``; that of ``phi`` where the multiplier is its own."""
        falling = 2.0 * (m.bend * zz + m.u * zd) + nu * m.tau1
        return dd * m.e1 + self.ridge * m.t - falling

    def value_at_infinity(self) -> Numbers:
        """Limit of ``phi`` as ``t`` grows."""
        honest, spread = self.groups.honest, self.groups.spread_at_infinity()
        some = honest > 0.0
        least = honest * float(self.outer[0, 0])
        goals_alone = spread * self.free + (self.apart - self.free)
        limit = either(some, spread * self.apart + least, goals_alone)
        return either((self.ridge > 0.0) | (some & (self.lowest > 0.0)), inf, limit)
