"""The whole game in high precision, from the user's data to its infimum (Theorem A).

Data are floats, taken exactly. Ranks, zeros and equalities are decided at a relative size that no
53-bit data of this size can reach by accident, so they are decisions about the exact data.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from mpmath import mp, mpf

from ._precise import Game
from .exact_sphere import ExactAnswer, solve_precise

DIGITS = 500
ZERO = mpf(10) ** -180

Column = list[mpf]


@dataclass(frozen=True, eq=False)
class Instance:
    """Arguments of one call of ``spgls.solve``, and the exact truth about it."""

    X: np.ndarray
    y: np.ndarray
    z: np.ndarray
    gamma: float
    fit_intercept: bool = False
    feature_cost: np.ndarray | None = None
    sample_weight: np.ndarray | None = None

    @property
    def options(self) -> dict:
        return {
            "fit_intercept": self.fit_intercept,
            "feature_cost": self.feature_cost,
            "sample_weight": self.sample_weight,
        }

    @cached_property
    def cost(self) -> np.ndarray:
        n = self.X.shape[1]
        return np.ones(n) if self.feature_cost is None else np.asarray(self.feature_cost)

    @cached_property
    def weight(self) -> list[mpf]:
        m = self.X.shape[0]
        weight = np.ones(m) if self.sample_weight is None else self.sample_weight
        return [mpf(float(v)) for v in weight]

    @cached_property
    def truth(self) -> Truth:
        with mp.workdps(DIGITS):
            return _truth(self)

    def predictor(self, coef, intercept: float) -> tuple[mpf, mpf]:
        """Exact alpha and exact objective of a predictor of floats."""
        with mp.workdps(DIGITS):
            w, b = [mpf(float(v)) for v in coef], mpf(float(intercept))
            terms = (v * v / mpf(float(c)) for v, c in zip(w, self.cost, strict=True) if c < np.inf)
            alpha = mp.fsum(terms) / mpf(self.gamma)
            loss = mpf(0)
            for row, y, z, s in zip(self.X, self.y, self.z, self.weight, strict=True):
                honest = mp.fdot(w, [mpf(float(v)) for v in row]) + b
                attacked = (honest + alpha * mpf(float(z))) / (1 + alpha)
                loss += s * (attacked - mpf(float(y))) ** 2
            return alpha, loss


@dataclass(frozen=True, eq=False)
class Truth:
    """``infimum`` of the game; ``answer`` is None where it is plain least squares.

    ``yy`` is |S^{1/2} y|^2 before, ``pyy`` after the projection, ``gap`` is |P S^{1/2}(y - z)|^2
    and ``d_max`` the largest eigenvalue of (PA)'PA. ``margin`` is the smallest share of a column
    that columns before it, or the free ones, do not explain: the distance from another rank.
    """

    infimum: mpf
    status: str
    answer: ExactAnswer | None
    game: Game | None
    yy: mpf
    zz: mpf
    pyy: mpf
    pzz: mpf
    gap: mpf
    d_max: mpf
    margin: mpf

    @property
    def clearly_outside(self) -> bool:
        """Whether the part of z outside range(PA) is more than rounding of z."""
        return self.game is not None and self.game.r_zz > mpf("1e-26") * self.zz


def _truth(instance: Instance) -> Truth:
    root = [mp.sqrt(s) for s in instance.weight]
    columns = [[r * mpf(float(v)) for r, v in zip(root, x, strict=True)] for x in instance.X.T]
    y, z = (
        [r * mpf(float(v)) for r, v in zip(root, t, strict=True)] for t in (instance.y, instance.z)
    )
    immutable = [c for c, cost in zip(columns, instance.cost, strict=True) if np.isinf(cost)]
    changeable = [
        [mp.sqrt(mpf(float(cost))) * v for v in c]
        for c, cost in zip(columns, instance.cost, strict=True)
        if np.isfinite(cost)
    ]
    free, free_margin = _basis([*immutable, *([root] if instance.fit_intercept else [])])
    a = [_rest(c, free) for c in changeable]
    py, pz = _rest(y, free), _rest(z, free)
    difference = [u - v for u, v in zip(y, z, strict=True)]
    gap = _rest(difference, free)
    if not any(gap):
        pz = py
    yy, zz, pyy, pzz, gap2 = (mp.fdot(t, t) for t in (y, z, py, pz, gap))
    basis, margin = _basis(a)
    margin = min(margin, free_margin, *map(_share, a, changeable))
    k = len(basis)
    rows = [[mp.fdot(q, c) for c in a] for q in basis]
    if k:
        gram = mp.matrix(k, k)
        for i in range(k):
            for j in range(k):
                gram[i, j] = mp.fdot(rows[i], rows[j])
        values, vectors = mp.eigsy(gram)
        d = [values[i] for i in range(k)]
        for i in range(1, k):
            if abs(d[i] - d[i - 1]) <= ZERO * d[i]:
                d[i] = d[i - 1]
        left = [
            [mp.fsum(vectors[j, i] * basis[j][r] for j in range(k)) for r in range(len(y))]
            for i in range(k)
        ]
    else:
        d, left = [], []
    d_max = max(d, default=mpf(0))
    least_squares = not changeable or not any(py)
    if least_squares:
        return Truth(pyy, "least squares", None, None, yy, zz, pyy, pzz, gap2, d_max, margin)
    eta, zeta, apart = (_coordinates(t, left) for t in (py, pz, gap))
    zeta = [v if e else u for u, v, e in zip(eta, zeta, apart, strict=True)]
    outside_y, outside_z = (_rest(t, left) for t in (py, pz))
    r_yy, r_yz, r_zz = (
        mp.fdot(u, v)
        for u, v in ((outside_y, outside_y), (outside_y, outside_z), (outside_z, outside_z))
    )
    if abs(r_yz) <= ZERO * mp.sqrt(r_yy * r_zz):
        r_yz = mpf(0)
    sigma = [mp.sqrt(v) for v in d]
    nullity = len(changeable) - k
    game = Game(sigma, eta, zeta, r_yy, r_yz, r_zz, nullity, mpf(instance.gamma))
    answer = solve_precise(game)
    return Truth(answer.value, answer.status, answer, game, yy, zz, pyy, pzz, gap2, d_max, margin)


def _rest(t: Column, basis: list[Column]) -> Column:
    """What an orthonormal basis leaves of t; exactly zero if only rounding is left."""
    rest = t
    for _ in range(2):
        for q in basis:
            along = mp.fdot(q, rest)
            rest = [v - along * u for v, u in zip(rest, q, strict=True)]
    if mp.fdot(rest, rest) <= ZERO**2 * mp.fdot(t, t):
        return [mpf(0)] * len(t)
    return rest


def _share(rest: Column, column: Column) -> mpf:
    """Length of what is left over the length of what it is left of; one if that is nothing."""
    square = mp.fdot(rest, rest)
    return mp.sqrt(square / mp.fdot(column, column)) if square else mpf(1)


def _basis(columns: list[Column]) -> tuple[list[Column], mpf]:
    """Orthonormal basis of the span by Gram-Schmidt, and the smallest share that it kept."""
    basis: list[Column] = []
    margin = mpf(1)
    for column in columns:
        rest = _rest(column, basis)
        norm = mp.sqrt(mp.fdot(rest, rest))
        if norm:
            basis.append([v / norm for v in rest])
            margin = min(margin, _share(rest, column))
    return basis, margin


def _coordinates(t: Column, left: list[Column]) -> Column:
    size = mp.sqrt(mp.fdot(t, t))
    along = [mp.fdot(q, t) for q in left]
    return [mpf(0) if abs(v) <= ZERO * size else v for v in along]
