"""The multiplier of a prescribed norm, for many norms at once.

``mu > 0`` with ``sum squares_i/(e_i + mu)^2 = tau``, ``e >= 0``. The inverse norm is concave in
``mu`` and nearly linear, so Newton's method on it arrives at the left of the root after one step
whatever the start, and then increases to it. Its relative curvature is at most three: a step of a
relative size of 1e-8 leaves no error that double precision could show. No bracket is needed.
"""

from __future__ import annotations

from math import log

import numpy as np

from spgls.base.types import EPS, Array, Vector
from spgls.population.moments import Moments, Numbers, column

__all__ = ["Multipliers", "blocks", "inner"]

#: Numbers in one block of rows: three or four such arrays stay in a core's own cache.
_BLOCK = 1 << 16
#: Arrays below this size are not worth thinning out.
_SMALL = 1 << 13
_MAX_STEPS = 100
#: Table of norms: steps per unit of log of the multiplier, and how small a multiplier it reaches.
_DENSITY = 3.0
_REACH = 1e-22
#: Every multiplier lies between these; the products that are formed with the first stay finite.
_LEAST, _MOST = 1e-150, 1e100
#: Squares below this are zero, so that sums over them do not vanish where they are divided by.
_NOTHING = 1e-280


def inner(x: Array, y: Array) -> Numbers:
    """Inner products of rows, or of two vectors."""
    return float(x.dot(y)) if x.ndim == 1 else np.einsum("ij,ij->i", x, y)


def blocks(count: int, size: int) -> list[slice]:
    """Ranges of rows of a length whose arrays stay small."""
    if count * size <= _BLOCK:
        return [slice(0, count)]
    step = max(1, _BLOCK // size)
    return [slice(i, i + step) for i in range(0, count, step)]


class Multipliers:
    """Solver of the norm equation for targets ``sqrt(a) z + sqrt(e) (y - z)``.

    Parameters
    ----------
    e : ndarray of shape (n,)
        Squared singular values less the lowest.
    sides : ndarray of shape (n, 2)
        ``sigma z`` and ``sigma (y - z)``.
    hard_noise : float
        What part of a target in the lowest space is rounding, in squares.
    """

    def __init__(self, e: Vector, sides: Array, hard_noise: float) -> None:
        self._e = e
        self._noise = hard_noise
        low = e == 0.0
        inverse = 1.0 / (e + low)
        inverse[low] = 0.0
        # Columns whose products with squares are: all, the lowest space, the norm at its pole.
        self._columns: Array = np.empty((e.size, 3))
        self._columns[:, 0] = 1.0
        self._columns[:, 1] = low
        np.multiply(inverse, inverse, out=self._columns[:, 2])
        if e.size:
            top = float(inverse.max())
            start = max(_REACH, 1e-2 / top) if top else 1.0
            z, delta = sides.T
            self._tabulate(start, np.array([z * z, z * delta, delta * delta]))

    def _tabulate(self, start: float, squares: Array) -> None:
        """Squared norms by multiplier, for each of the three products that make up the target."""
        span = log(8.0 / start)
        count = int(_DENSITY * span) + 2
        mu = np.empty(count + 1)
        mu[:-1] = start * np.exp(np.arange(count) * (span / (count - 1)))
        # Beyond the spectrum inverse norms are linear.
        mu[-1] = _MOST
        norms = np.empty((3, mu.size))
        for rows in blocks(mu.size, self._e.size):
            w = 1.0 / (self._e + mu[rows, None])
            w *= w
            norms[:, rows] = squares.dot(w.T)
        self._mu, self._norms = mu, norms

    def _start(self, m: Moments) -> Vector:
        """First guess, from the table: inverse norms are nearly linear between its entries."""
        tau = m.tau
        norms = np.array([m.a, 2.0 * m.p, m.e]).T.dot(self._norms)
        place = np.maximum((norms <= tau[:, None]).argmax(axis=1), 1)
        flat = place + np.arange(0, norms.size, norms.shape[1])
        left = 1.0 / np.sqrt(norms.take(flat - 1))
        right = 1.0 / np.sqrt(norms.take(flat))
        part = (1.0 / np.sqrt(tau) - left) / (right - left)
        low = self._mu.take(place - 1)
        return np.asarray(low + part * (self._mu.take(place) - low))

    def solve(
        self, m: Moments, squares: Array, tol: float, guess: Numbers | None = None
    ) -> tuple[Numbers, Numbers]:
        """``mu``, and the squared norm that is left to fill where none is large enough.

        Parameters
        ----------
        m : Moments
            Where.
        squares : ndarray of shape (T, n) or (n,)
            Squares of the target in units of the coefficients, ``(sigma r)^2``.
        tol : float
            Relative size of the last Newton step, whose square is the error.
        guess : ndarray of shape (T,) or float, optional
            Where to start; a single ``t`` needs one.
        """
        if not self._e.size:
            return 0.0 * m.tau, m.tau
        single = squares.ndim == 1
        sums = squares.dot(self._columns)
        total, lowest, far = sums.tolist() if single else sums.T
        if guess is None:
            guess = self._start(m)
        # With the bound first, a guess that is not a number gives way to it.
        larger, smaller = (max, min) if single else (np.fmax, np.fmin)
        low = larger(_LEAST, (lowest / m.tau) ** 0.5)
        start = smaller((total / m.tau) ** 0.5, larger(low, guess))
        hard = lowest <= self._noise * total + _NOTHING
        if not (hard if single else np.count_nonzero(hard)):
            return self._newton(squares, m.tau, start, low, tol), 0.0 * m.tau
        short = m.tau - far
        hard = hard & ((short >= 0.0) | (total < _NOTHING))
        # At the edge of the hard case rounding must not put a null vector into the coefficients.
        fills = hard & (short > 64 * EPS * m.tau)
        if single:
            mu = 0.0 if hard else self._newton(squares, m.tau, start, low, tol)
            return mu, short if fills else 0.0
        mu, easy = np.zeros_like(m.tau), ~hard
        if np.count_nonzero(easy):
            mu[easy] = self._newton(squares[easy], m.tau[easy], start[easy], low[easy], tol)
        return mu, np.where(fills, short, 0.0)

    def _newton(
        self, squares: Array, tau: Numbers, mu: Numbers, low: Numbers, tol: float
    ) -> Numbers:
        single = squares.ndim == 1
        larger = max if single else np.fmax
        for i in range(_MAX_STEPS):
            w = 1.0 / (self._e + column(mu))
            part = squares * w
            norm2 = inner(part, w)
            part *= w
            slope = inner(part, w)
            if single and slope == 0.0:
                # Coefficients so small that double precision does not hold their squares.
                break
            step = norm2 * ((norm2 / tau) ** 0.5 - 1.0) / slope
            new = larger(low, mu + step)
            # From the second step on only rounding makes one negative.
            step = new - mu if i else abs(new - mu)
            mu = new
            going = step > tol * mu
            count = going if single else np.count_nonzero(going)
            if not count:
                break
            if squares.size > _SMALL and 2 * count < np.size(mu):
                mu[going] = self._newton(squares[going], tau[going], mu[going], low[going], tol)
                break
        return mu
