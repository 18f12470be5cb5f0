"""The learner's best loss at a prescribed norm, for many norms at once.

At ``|v|^2 = t`` the loss of a population, summed over groups and with the shared free part chosen
best, is a sum of squares in which nothing cancels:

    phi(t) = (1 - e) (|y - z|^2 + f) + min |sqrt(a) sigma v - r|^2 + |r outside|^2 + ridge t,

``r = (p y - u z)/sqrt(a) = sqrt(a) z + sqrt(e) (y - z)``. With ``x = sqrt(a) v`` this is least
squares under ``|x|^2 = tau = a t``: ``x = sigma r/(d + nu)``, residual ``-nu r/(d + nu)``.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import sqrt

import numpy as np

from spgls._types import EPS, Array, Vector
from spgls.population.moments import GroupMoments, Moments
from spgls.reduced import ReducedGame
from spgls.sphere.pole import power_of_two

__all__ = ["Section", "Sections", "Sums", "Units"]

#: Numbers in one block of rows: three or four such arrays stay in a core's own cache.
_BLOCK = 1 << 16
_MAX_STEPS = 100
#: Table of norms: steps per unit of log of the multiplier, and how small a multiplier it reaches.
_DENSITY = 1.5
_REACH = 1e-22


@dataclass(frozen=True)
class Units:
    """Powers of two that bring data, labels and goals to order one."""

    sigma: float
    length: float

    @classmethod
    def of(cls, game: ReducedGame) -> Units:
        """Units of a game."""
        size = game.yy + game.zz + game.free_gap
        sigma = power_of_two(float(game.sigma.max())) if game.size else 1.0
        return cls(sigma, power_of_two(sqrt(size)) if size > 0.0 else 1.0)

    @property
    def norm(self) -> float:
        """Unit of the coefficients."""
        return self.length / self.sigma

    @property
    def t(self) -> float:
        """Unit of squared norms and of strengths."""
        return self.norm**2


@dataclass(frozen=True, eq=False)
class Sums:
    """``S_zz``, ``S_zd`` and ``G + f`` at several multipliers, and the terms the first two sum."""

    zz: Vector
    zd: Vector
    dd: Vector
    size_zz: Vector
    size_zd: Vector


@dataclass(frozen=True, eq=False)
class Section:
    """``phi`` at several ``t``: all entries are vectors, in the problem's units.

    ``mu`` is the distance of the multiplier ``nu`` from its least value, ``fill`` the squared norm
    of ``sqrt(a) v`` in the lowest space. ``slope`` and ``curvature`` are derivatives of ``phi`` in
    ``log t``; ``noise`` is what rounding may leave in the slope.
    """

    t: Vector
    nu: Vector
    mu: Vector
    fill: Vector
    value: Vector
    slope: Vector
    curvature: Vector
    noise: Vector

    def joined(self, *others: Section) -> Section:
        """Several sections as one."""
        names = [field.name for field in fields(self)]
        return Section(*(np.concatenate([getattr(s, n) for s in (self, *others)]) for n in names))

    def sorted(self) -> Section:
        """The same in order of ``t``."""
        order = np.argsort(self.t)
        return Section(*(getattr(self, field.name)[order] for field in fields(self)))


class Sections:
    """A population game in convenient units, able to evaluate ``phi`` at many ``t``.

    Parameters
    ----------
    game : ReducedGame
        The reduced data.
    groups : GroupMoments
        Groups with strengths in the game's own units.
    ridge : float
        Penalty in the game's own units.
    ulps : float
        Relative accuracy of the game's coordinates in ulps.
    """

    def __init__(
        self, game: ReducedGame, groups: GroupMoments, ridge: float, ulps: float = 2.0
    ) -> None:
        units = Units.of(game)
        self.units = units
        self.groups = GroupMoments(groups.gammas / units.t, groups.shares)
        self.ridge = ridge / units.sigma**2
        size = units.length**2
        self.sigma: Vector = game.sigma / units.sigma
        self.d: Vector = self.sigma**2
        eta, zeta = game.eta / units.length, game.zeta / units.length
        # Close labels and goals subtract without error.
        delta = eta - zeta
        self.base: Array = np.stack([eta, zeta, delta])
        r_yy, r_yz, r_zz = (float(r) / size for r in (game.r_yy, game.r_yz, game.r_zz))
        r_dd = max(0.0, (r_yy - r_yz) - (r_yz - r_zz))
        self.outer: Array = np.array(
            [[r_yy, r_yz, r_yy - r_yz], [r_yz, r_zz, r_yz - r_zz], [r_yy - r_yz, r_yz - r_zz, r_dd]]
        )
        self.free = float(game.free_gap) / size
        self.yy = float(eta @ eta) + r_yy
        self.zz = float(zeta @ zeta) + r_zz
        #: Squared distance of labels and goals, the free part included.
        self.apart = float(delta @ delta) + r_dd + self.free
        self.nullity = game.nullity
        self.size = game.size
        self.lowest = 0.0 if game.nullity or not game.size else float(self.d.min())
        self.e: Vector = self.d - self.lowest
        self.low = self.e == 0.0
        self.hard_noise = (2.0 * ulps * EPS) ** 2
        with np.errstate(divide="ignore"):
            self._inverse: Vector = np.where(self.low, 0.0, 1.0 / self.e)
        # Columns whose products with 1/(d + nu) are S_zz, S_zd and G, and the size of S_zd.
        cross = zeta * delta
        self._products: Array = np.stack([zeta**2, cross, self.d * delta**2, np.abs(cross)], axis=1)
        self._sides: Array = np.stack([self.sigma * zeta, self.sigma * delta], axis=1)
        self._make_table()

    def _make_table(self) -> None:
        """Squared norms of ``sigma z/(e + mu)`` and so on, to start every Newton iteration from."""
        if not self.size:
            return
        positive = self.e[~self.low]
        start = max(_REACH, 1e-2 * float(positive.min())) if positive.size else 1.0
        count = int(_DENSITY * np.log(8.0 / start)) + 2
        self._mu: Vector = np.geomspace(start, 8.0, count)
        self._log_mu: Vector = np.log(self._mu)
        squares = self._sides[:, [0, 0, 1]] * self._sides[:, [0, 1, 1]]
        self._norms: Array = np.empty((3, count))
        for rows in self.blocks(count):
            self._norms[:, rows] = ((self.e + self._mu[rows, None]) ** -2.0 @ squares).T

    def blocks(self, count: int) -> list[slice]:
        """Ranges of rows whose arrays stay small."""
        step = max(1, _BLOCK // max(1, self.size))
        return [slice(i, i + step) for i in range(0, count, step)]

    def target(self, m: Moments) -> tuple[Array, Vector, Vector]:
        """``r`` along the data, its squared norm outside, and its product there with ``y - z``."""
        weights = self.weights(m)
        outside = np.einsum("ti,ij,tj->t", weights, self.outer, weights)
        return weights @ self.base, np.maximum(outside, 0.0), weights @ self.outer[2]

    def weights(self, m: Moments) -> Array:
        """Weights of ``y``, ``z`` and ``y - z`` in ``r``; the form with the smaller terms."""
        alpha = np.sqrt(m.a)
        beta, omega = m.p / alpha, m.u / alpha
        near, zero = m.u <= m.a, np.zeros_like(alpha)
        columns = [
            np.where(near, beta, zero),
            np.where(near, -omega, alpha),
            np.where(near, zero, beta),
        ]
        return np.stack(columns, axis=1)

    def start(self, m: Moments, length: Vector) -> tuple[Vector, Vector, Vector]:
        """First guess of ``mu`` and a bracket, from the table; ``length`` is ``|sigma r|``."""
        top = length / np.sqrt(m.tau)
        norms = np.stack([m.a, 2.0 * m.p, m.e], axis=1) @ self._norms
        j = (norms > m.tau[:, None]).sum(axis=1)
        last = self._mu.size - 1
        k = np.clip(j, 1, last)
        rows = np.arange(j.size)
        tiny = np.finfo(float).tiny
        left = np.log(np.maximum(norms[rows, k - 1], tiny))
        right = np.log(np.maximum(norms[rows, k], tiny))
        drop = np.maximum(left - right, 1e-3)
        part = np.clip((left - np.log(m.tau)) / drop, -1.0, 2.0)
        mu = np.exp(self._log_mu[k - 1] + part * (self._log_mu[k] - self._log_mu[k - 1]))
        # Beyond the table the spectrum looks like a point.
        mu = np.where(j > last, np.maximum(top - 0.5, 0.5 * top), mu)
        return np.minimum(mu, top), np.zeros_like(mu), top

    def multiplier(
        self, m: Moments, r: Array, rtol: float, guess: Vector | None = None
    ) -> tuple[Vector, Vector]:
        """``mu`` with ``|sigma r/(e + mu)|^2 = tau``, and the squared norm that is left to fill."""
        if not self.size:
            return np.zeros_like(m.t), m.tau.copy()
        squares = (r * self.sigma) ** 2
        total = squares.sum(axis=1)
        p_low = squares[:, self.low].sum(axis=1)
        short = m.tau - squares @ self._inverse**2
        hard = (p_low <= self.hard_noise * total) & (short >= 0.0)
        mu, lo, hi = self.start(m, np.sqrt(total))
        if guess is not None:
            mu = np.where(guess > 0.0, np.minimum(guess, hi), mu)
        lo = np.maximum(lo, np.sqrt(p_low / m.tau))
        mu = np.where(hard, 0.0, np.maximum(mu, lo))
        todo = np.flatnonzero(~hard & (total > 0.0))
        rows = squares if todo.size == mu.size else squares[todo]
        for _ in range(_MAX_STEPS):
            if not todo.size:
                break
            here = mu[todo]
            with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
                w = 1.0 / (self.e + here[:, None])
                part = rows * w
                part *= w
                norm2 = part.sum(axis=1)
                fall = np.einsum("ij,ij->i", part, w)
                tau = m.tau[todo]
                left = norm2 > tau
                lo[todo] = np.where(left, here, lo[todo])
                hi[todo] = np.where(left, hi[todo], here)
                # Newton on 1/|x|, which is nearly linear in the multiplier.
                new = here + norm2 * (np.sqrt(norm2 / tau) - 1.0) / fall
            low, high = lo[todo], hi[todo]
            inside = (new >= low) & (new <= high) & (new > 0.0)
            middle = np.where(low > 0.0, np.sqrt(low * high), high / 1024.0)
            new = np.where(inside, new, middle)
            mu[todo] = new
            going = (np.abs(new - here) > rtol * new) & (np.abs(norm2 - tau) > 2 * EPS * tau)
            if not going.all():
                todo, rows = todo[going], rows[going]
        # At the edge of the hard case rounding must not put a null vector into the coefficients.
        return mu, np.where(hard & (short > 64 * EPS * m.tau), short, 0.0)

    def evaluate(self, t: Vector, *, rtol: float = 2 * EPS, guess: Vector | None = None) -> Section:
        """``phi`` and its derivatives at positive ``t``."""
        t = np.asarray(t, dtype=float)
        parts = [
            self._evaluate(t[rows], rtol, None if guess is None else guess[rows])
            for rows in self.blocks(t.size)
        ]
        return parts[0] if len(parts) == 1 else parts[0].joined(*parts[1:])

    def _evaluate(self, t: Vector, rtol: float, guess: Vector | None) -> Section:
        m = self.groups.at(t)
        r, outside, outside_d = self.target(m)
        mu, fill = self.multiplier(m, r, rtol, guess)
        nu = mu - self.lowest
        w = self.inverse(mu)
        residual = -nu[:, None] * r
        residual *= w
        loss = np.einsum("ij,ij->i", residual, residual) + outside + self.lowest * fill
        value = m.spread * self.apart + loss + self.ridge * t
        along = residual @ self.base[2] - outside_d
        q, alpha = m.q, np.sqrt(m.a)
        terms = np.stack(
            [
                -2.0 * m.bend / m.a * loss,
                -2.0 * (m.u - 2.0 * m.kappa) / alpha * along,
                2.0 * m.kappa * q * self.apart,
                -nu * m.tau,
                self.ridge * t,
            ]
        )
        sums = self.sums(w, nu)
        curvature = self.curvature(m, nu, sums)
        x = r * self.sigma
        x *= w
        x *= w
        steep = 2.0 * np.einsum("ij,ij->i", x, r * self.sigma * w)
        turn = x @ self._sides
        cross = -2.0 * (m.bend * turn[:, 0] + m.kappa * turn[:, 1]) / alpha - m.tau1
        moves = (mu > 0.0) & (steep > 0.0)
        curvature += np.divide(cross**2, steep, out=np.zeros_like(steep), where=moves)
        noise = 4.0 * EPS * np.abs(terms).sum(axis=0)
        return Section(t, nu, mu, fill, value, terms.sum(axis=0), curvature, noise)

    def inverse(self, mu: Vector) -> Array:
        """``1/(e + mu)``, and zero where that is not defined."""
        shifted = self.e + mu[:, None]
        return np.divide(1.0, shifted, out=np.zeros_like(shifted), where=shifted > 0.0)

    def sums(self, w: Array, nu: Vector) -> Sums:
        """Coefficients of the Lagrangian bound at a multiplier."""
        sums = w @ self._products
        outer_zz, outer_zd = self.outer[1, 1], self.outer[1, 2]
        return Sums(
            zz=outer_zz + nu * sums[:, 0],
            zd=outer_zd + nu * sums[:, 1],
            dd=sums[:, 2] + self.free,
            size_zz=outer_zz + np.abs(nu) * sums[:, 0],
            size_zd=abs(outer_zd) + np.abs(nu) * sums[:, 3],
        )

    def curvature(self, m: Moments, nu: Vector, sums: Sums) -> Vector:
        """Second derivative of the Lagrangian bound in ``log t`` at a fixed multiplier."""
        n, gamma = self.groups.finite, self.groups.gamma
        s, c = m.s[:, :n], m.c[:, :n]
        first = sums.zz[:, None] + nu[:, None] * gamma
        second = 2.0 * sums.zd[:, None] - nu[:, None] * gamma
        bracket = 2.0 * first * s * (2.0 - 3.0 * s) + second * (c - s)
        linear = (self.ridge - nu * self.groups.honest) * m.t
        pairs = sums.dd * np.einsum("ij,ij->i", m.fall, m.growth)
        return np.asarray((s * c * bracket) @ self.groups.share + pairs + linear)

    def value_at_infinity(self) -> float:
        """Limit of ``phi`` as ``t`` grows."""
        if self.ridge > 0.0 or (self.groups.honest > 0.0 and self.lowest > 0.0):
            return np.inf
        spread = self.groups.spread_at_infinity()
        if self.groups.honest > 0.0:
            return spread * self.apart + self.groups.honest * float(self.outer[0, 0])
        return spread * self.free + (self.apart - self.free)

    def point(self, t: float) -> tuple[Vector, float, float, float]:
        """Coordinates of ``v``, its norm in the lowest space, multiplier and value at one ``t``."""
        m = self.groups.at(np.array([t]))
        r, _, _ = self.target(m)
        section = self.evaluate(m.t)
        alpha = sqrt(float(m.a[0]))
        x = (r * self.sigma * self.inverse(section.mu))[0] / alpha
        fill = sqrt(float(section.fill[0])) / alpha
        norm2 = float(x @ x)
        if fill == 0.0 and norm2 > 0.0:
            x *= sqrt(t / norm2)
        return x, fill, float(section.nu[0]), float(section.value[0])
