"""Predictors in worlds of honest and of strategic providers: what pictures of errors need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from spgls.base.types import Array, Vector
from spgls.base.validation import check_vector, describe
from spgls.game.errors import error_from_goals
from spgls.game.goals import read_goals
from spgls.game.providers import Population
from spgls.matrix import as_matrix
from spgls.study.path import Path

__all__ = ["Course", "Judged", "check_strengths", "common", "read_path"]


@dataclass(frozen=True, eq=False)
class Judged:
    """What several models predict on the same rows, and what providers can do about it.

    Parameters
    ----------
    before : ndarray of shape (k, m)
        Predictions on rows as they are.
    reach : ndarray of shape (k, m) or (k, 1)
        Squared priced norms of the coefficients behind them.
    y, z : ndarray of shape (m,)
        Labels and goals.
    """

    before: Array
    reach: Array
    y: Vector
    z: Vector

    def honest(self) -> Vector:
        """Mean squared error of each model on rows as they are."""
        return np.asarray(np.mean((self.before - self.y) ** 2, axis=1))

    def attacked(self, gamma: Any) -> Vector:
        """Mean squared error on rows that everyone moved, at one strength or one per model."""
        alpha = self.reach / np.reshape(gamma, (-1, 1))
        share = 1.0 / (1.0 + alpha)
        after = share * self.before + (alpha * share) * self.z
        return np.asarray(np.mean((after - self.y) ** 2, axis=1))

    @property
    def variance(self) -> float:
        """Mean squared error of predicting the mean label."""
        return float(np.var(self.y))

    @property
    def from_goal(self) -> float:
        """Mean squared error of the best affine function of the goals: "y from z alone"."""
        return error_from_goals(self.y, self.z, None)


def check_strengths(gammas: Any, name: str) -> Vector:
    """Finite positive strengths, at least one, in increasing order."""
    strengths = np.sort(check_vector(gammas, name, None, "model"))
    if strengths[0] <= 0.0:
        raise ValueError(f"{name} must be positive; got {strengths[0]:g}.")
    return strengths


@dataclass(frozen=True, eq=False)
class Course:
    """A path against one strength a game, in the order of strength and then of strategic share.

    Parameters
    ----------
    gammas, shares : ndarray of shape (k,)
        Strength of the strategic providers, and their share.
    coef, intercept, reach : ndarray of shape (k, n), (k,) and (k,)
        Coefficients, intercepts and squared priced norms.
    """

    gammas: Vector
    shares: Vector
    coef: Array
    intercept: Vector
    reach: Vector

    def judged(self, X: Any, y: Any, z: Any) -> Judged:
        """The predictors on rows."""
        matrix = as_matrix(X)
        m, n = matrix.shape
        if n != self.coef.shape[1]:
            raise ValueError(f"X must have {self.coef.shape[1]} columns, as path has; got {n}.")
        labels = check_vector(y, "y", m, "row of X")
        goals = read_goals(z, labels)
        pairs = zip(self.coef, self.intercept, strict=True)
        before = np.array([matrix.apply(coef) + constant for coef, constant in pairs])
        return Judged(before, self.reach[:, np.newaxis], labels, goals)


def read_path(path: Any) -> Course:
    """What pictures need of a path."""
    if not isinstance(path, Path):
        raise TypeError(f"path must be what solve_path returns; got {describe(path)}.")
    if not len(path):
        raise ValueError("path must hold at least one solution; got none.")
    gammas, shares, reach = np.empty((3, len(path)))
    for at, (game, solution) in enumerate(zip(path.games, path.solutions, strict=True)):
        groups = game if isinstance(game, Population) else Population((game,), (1.0,))
        strategic = np.flatnonzero(np.isfinite(groups.gammas))
        if len(set(np.array(groups.gammas)[strategic])) != 1:
            raise ValueError(
                "path must have strategic providers of one strength in each game, beside honest "
                f"ones; game {at} is {game!r}."
            )
        gammas[at] = groups.gammas[strategic[0]]
        shares[at] = 1.0 - groups.honest
        reach[at] = gammas[at] * np.ravel(solution.alpha)[strategic[0]]
    order = np.lexsort((shares, gammas))
    return Course(
        gammas[order], shares[order], path.coef[order], path.intercept[order], reach[order]
    )


def common(values: Vector, name: str, advice: str) -> float:
    """The one value that all games of a path share."""
    if np.ptp(values) > 1e-9 * abs(values[0]):
        raise ValueError(
            f"path must have the same {name} in every game; it goes from {values.min():g} to "
            f"{values.max():g}. {advice}"
        )
    return float(values[0])
