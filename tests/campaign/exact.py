"""Losses of predictors in 400 bits, from the data taken exactly as it is given."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import gmpy2
import numpy as np
from gmpy2 import mpfr

from .game import Game, People

#: Enough for squares of numbers of 53 bits that differ by sixty decades.
BITS = 400
#: A pivot below this part of its diagonal entry is that of a dependent column: data in 53 bits
#: that is not exactly dependent stays far above it, rounding in 400 bits far below.
_DEPENDENT = mpfr("1e-75")


def precise() -> Any:
    """Context in which every number of the campaign is computed."""
    return gmpy2.context(precision=BITS, emax=gmpy2.get_emax_max(), emin=gmpy2.get_emin_min())


def exactly(numbers: Iterable[Any]) -> np.ndarray:
    """Floats as exact numbers, in an array of objects."""
    array = np.asarray(numbers, dtype=np.float64)
    made = np.empty(array.shape, dtype=object)
    made.ravel()[:] = [mpfr(v) for v in array.ravel().tolist()]
    return made


class Exact:
    """The data of a game in high precision, and its losses.

    A predictor is one vector: the coefficients, then the intercept if there is one. ``free`` marks
    what nobody can change, the intercept among it. Where people take actions, coefficients are
    those of combined columns, of which each has a cost (:class:`Combined`).
    """

    def __init__(self, game: Game) -> None:
        m, n = game.X.shape
        columns = game.X if not game.fit_intercept else np.hstack([game.X, np.ones((m, 1))])
        cost = np.ones(n) if game.cost is None else game.cost
        self.combined = None
        if game.effects is not None:
            self.combined = Combined(game.effects, game.cost)
            cost = self.combined.cost
        cost = np.append(cost, math.inf) if game.fit_intercept else cost
        weight = np.ones(m) if game.weight is None else game.weight
        kept = weight > 0.0
        self.n, self.fit_intercept = n, game.fit_intercept
        self.free = np.isinf(cost)
        self.X = self._given = exactly(columns[kept])
        if self.combined is not None:
            self.X = self.X.copy()
            self.X[:, :n] = self.X[:, :n] @ self.combined.outwards
        self.weight = exactly(weight[kept])
        self.y, self.z = exactly(game.y[kept]), exactly(game.z[kept])
        self.gap = self.z - self.y
        self.price = np.array(
            [mpfr(0) if math.isinf(c) else 1 / mpfr(c) for c in cost.tolist()], dtype=object
        )
        weighted = (self.X * self.weight[:, None]).T
        self.gram = weighted @ self.X
        self.along_y, self.along_z = weighted @ self.y, weighted @ self.z
        self.along_gap = self.along_z - self.along_y
        self.yy, self.zz = self._square(self.y), self._square(self.z)
        self.zgap, self.gaps = (self.weight * self.gap) @ self.z, self._square(self.gap)
        self.labels = self.yy - self._explained(self.along_y)
        self.goals = self.zz - self._explained(self.along_z)

    def _square(self, t: np.ndarray) -> mpfr:
        return (self.weight * t) @ t

    def _explained(self, along: np.ndarray) -> mpfr:
        """What the intercept and the immutable columns explain of a vector."""
        some = np.flatnonzero(self.free)
        if not len(some):
            return mpfr(0)
        part = along[some]
        return part @ solve_semidefinite(self.gram[np.ix_(some, some)], part)

    @property
    def explained(self) -> bool:
        """Whether intercept and immutable columns leave nothing of the labels but rounding."""
        return bool(self.labels <= mpfr("1e-20") * (self.yy + self.zz))

    @property
    def slack(self) -> float:
        """What is allowed to rounding.

        Parts of the squared norms of labels and goals after projection, and the square of what the
        library takes for rounding of a projection (1e-14 of what was projected).
        """
        part = mpfr("1e-12") * self.labels + mpfr("1e-15") * self.goals
        return part + mpfr("1e-28") * (self.yy + self.zz)

    def point(self, coef: Any, intercept: float) -> np.ndarray:
        """A predictor as one vector."""
        made = exactly([*np.asarray(coef, dtype=np.float64), *[intercept] * self.fit_intercept])
        if self.combined is not None:
            made[: self.n] = self.combined.inwards @ made[: self.n]
        return made

    def reach(self, point: np.ndarray) -> mpfr:
        """Squared priced norm ``q`` of the coefficients."""
        return (self.price * point) @ point

    def loss(self, point: np.ndarray, people: People, ridge: float) -> mpfr:
        """Learner's objective, residual by residual."""
        t = self.reach(point)
        a, p, whole = shrunk(t, people)
        rest = self.X @ point - self.z if len(self.z) else self.z
        weighted = self.weight * rest
        return a * (weighted @ rest) + 2 * p * (weighted @ self.gap) + whole * self.gaps + ridge * t

    def floor(self, point: np.ndarray, people: People) -> mpfr:
        """Loss that a predictor of 53 bits may have by rounding alone.

        Where labels are explained to the last digit nothing smaller can be asked of coefficients
        that are floats.
        """
        given = point.copy()
        if self.combined is not None:
            given[: self.n] = self.combined.outwards @ point[: self.n]
        terms = abs(self._given) @ abs(given) + abs(self.y) if len(self.y) else self.y
        moved = mpfr(0)
        if self.combined is not None:
            # Actions whose effects on the prediction cancel do so up to rounding.
            reach = self.combined.wobble(given[: self.n] * mpfr(2.0**-50))
            for gamma, share in zip(people.gammas, people.shares, strict=True):
                moved += 0 if math.isinf(gamma) else share * (reach / gamma) ** 2 * self.gaps
        return moved + shrunk(self.reach(point), people)[0] * self._square(terms * mpfr(2.0**-50))

    def with_best_free(self, point: np.ndarray, people: People) -> np.ndarray:
        """The same changeable coefficients with the best intercept and immutable ones."""
        some = np.flatnonzero(self.free)
        if not len(some):
            return point
        a, p, _ = shrunk(self.reach(point), people)
        held = np.where(self.free, mpfr(0), point)
        wanted = self.along_z - self.gram @ held - (p / a) * self.along_gap
        best = held.copy()
        best[some] = solve_semidefinite(self.gram[np.ix_(some, some)], wanted[some])
        return best


class Combined:
    """Coordinates in which actions are costs: ``v = Rw`` at the pivots of ``R``, else ``w``.

    ``K = R'R`` by a Cholesky factorisation with pivots, in high precision; ``K`` itself is taken
    exactly from effects and costs.
    """

    def __init__(self, effects: np.ndarray, cost: np.ndarray) -> None:
        n = effects.shape[1]
        B, taken = exactly(effects), np.isfinite(cost)
        price = np.array([1 / mpfr(c) for c in cost[taken].tolist()], dtype=object)
        rest = self.kernel = (
            (B[taken].T * price) @ B[taken] if taken.any() else exactly(np.zeros((n, n)))
        )
        first, pivots, rows = np.diag(rest).copy(), [], []
        while True:
            share = [
                rest[j, j] / first[j] if j not in pivots and first[j] > 0 else mpfr(0)
                for j in range(n)
            ]
            j = max(range(n), key=lambda at: share[at])
            if not share[j] > _DEPENDENT:
                break
            pivots.append(j)
            rows.append(rest[j] / gmpy2.sqrt(rest[j, j]))
            rest = rest - np.multiply.outer(rows[-1], rows[-1])
            # Entries that are nothing but rounding would join columns that nothing joins.
            rest = np.where(_tiny(rest, first), mpfr(0), rest)
        self._sizes = abs(B[taken]), price
        self.cost = np.full(n, math.inf)
        self.cost[pivots] = 1.0
        self.inwards = exactly(np.eye(n))
        for j, row in zip(pivots, rows, strict=True):
            self.inwards[j] = row
        self.outwards = inverse(self.inwards)
        noise = _DEPENDENT * abs(self.outwards).max(axis=0)
        self.outwards = np.where(abs(self.outwards) <= noise, mpfr(0), self.outwards)

    def wobble(self, error: np.ndarray) -> mpfr:
        """``q`` of coefficients no larger than these, at most."""
        effects, price = self._sizes
        if not len(price):
            return mpfr(0)
        along = effects @ abs(error)
        return (price * along) @ along


def _tiny(rest: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Which entries of what is left of a semidefinite matrix are rounding, by its diagonal."""
    root = np.array([gmpy2.sqrt(entry) for entry in first], dtype=object)
    return np.asarray(abs(rest) <= _DEPENDENT * np.multiply.outer(root, root), dtype=bool)


def inverse(matrix: np.ndarray) -> np.ndarray:
    """Of a matrix that has one, by elimination with pivots."""
    n = len(matrix)
    whole = np.hstack([matrix, exactly(np.eye(n))])
    for j in range(n):
        at = max(range(j, n), key=lambda i: abs(whole[i, j]))
        whole[[j, at]] = whole[[at, j]]
        whole[j] = whole[j] / whole[j, j]
        for i in range(n):
            if i != j:
                whole[i] = whole[i] - whole[i, j] * whole[j]
    return whole[:, n:]


def shrunk(t: mpfr, people: People) -> tuple[mpfr, mpfr, mpfr]:
    """Mean over the groups of ``s^2``, of ``s`` and of one, ``s = gamma/(gamma + t)``."""
    a = p = whole = mpfr(0)
    for gamma, share in zip(people.gammas, people.shares, strict=True):
        s = mpfr(1) if math.isinf(gamma) else gamma / (gamma + t)
        a, p, whole = a + share * s * s, p + share * s, whole + mpfr(share)
    return a, p, whole


def solve_semidefinite(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solution of a consistent semidefinite system, zero along dependent columns."""
    return eliminate(matrix, right)[0]


def eliminate(matrix: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, bool]:
    """Solution of a symmetric system, and whether its matrix is positive definite."""
    n = len(matrix)
    rest, vector = matrix.copy(), right.copy()
    pivots = []
    for j in range(n):
        if not rest[j, j] > _DEPENDENT * abs(matrix[j, j]):
            continue
        pivots.append(j)
        if j + 1 < n:
            factor = rest[j + 1 :, j] / rest[j, j]
            rest[j + 1 :, j + 1 :] -= np.multiply.outer(factor, rest[j, j + 1 :])
            vector[j + 1 :] -= np.multiply.outer(factor, vector[j])
    found = np.full(vector.shape, mpfr(0), dtype=object)
    for j in reversed(pivots):
        after = rest[j, j + 1 :] @ found[j + 1 :] if j + 1 < n else 0
        found[j] = (vector[j] - after) / rest[j, j]
    return found, len(pivots) == n
