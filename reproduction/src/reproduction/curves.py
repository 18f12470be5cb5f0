"""Errors on held-out rows over the strength of providers: the game, least squares, ridge, goals.

The protocol of Wang et al. 2021: features scaled to [0, 1] over all rows, a column of ones that
providers can change, forty strengths. Its ridge took the worst penalty; this one takes, at each
strength, the penalty with the least attacked error in cross-validation on the rows to fit on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spgls import solve_path

if TYPE_CHECKING:
    from reproduction.measure import Array, Game

__all__ = ["GAMMAS", "MODELS", "error_curves"]

GAMMAS = np.linspace(0.001, 0.75, 40)
#: Names of the curves, with ``honest`` and ``attacked`` each; goals are known of no honest row.
MODELS = ("game", "least squares", "ridge", "y from z alone")

#: Of the ridge, in units of the mean squared length of a column.
PENALTIES = np.geomspace(1e-8, 1e3, 200)
INNER_FOLDS = 3
#: Directions below this share of the longest count as none.
RANK = 1e-13


def error_curves(game: Game) -> dict[str, Any]:
    """Mean squared errors on the test rows, in the units of the labels, one for each strength."""
    test = _Rows(game.X_test, game.y_test, game.z_test, game.unit)
    path = _path(game)
    spectrum = _Spectrum(game.X, game.y)
    plain = spectrum.coef(np.zeros(1))
    penalised = _ridge(game, spectrum)
    line = np.polyfit(game.z, game.y, 1) if np.ptp(game.z) > 0.0 else [0.0, game.y.mean()]
    alone = float(np.mean((np.polyval(line, test.z) - test.y) ** 2)) * game.unit**2
    found = {
        "game": test.errors(path),
        "least squares": test.errors(np.repeat(plain, len(GAMMAS), axis=1)),
        "ridge": test.errors(penalised),
        "y from z alone": {"attacked": _digits(np.full(len(GAMMAS), alone))},
    }
    return {"gammas": _digits(GAMMAS), "errors": found}


def _path(game: Game) -> Array:
    """Coefficients of the game, one column for each strength."""
    return np.asarray(solve_path(game.X, game.y, game.z, GAMMAS).coef, dtype=float).T


class _Rows:
    """Rows to judge on."""

    def __init__(self, X: Any, y: Array, z: Array, unit: float) -> None:
        self.X, self.y, self.z, self.unit = X, y, z, unit

    def errors(self, coef: Array) -> dict[str, list[float]]:
        """Errors of one column of coefficients for each strength."""
        plain = self.X @ coef
        alpha = np.sum(coef**2, axis=0) / GAMMAS
        moved = (plain + alpha * self.z[:, None]) / (1.0 + alpha)
        return {
            name: _digits(self.unit**2 * np.mean((said - self.y[:, None]) ** 2, axis=0))
            for name, said in (("honest", plain), ("attacked", moved))
        }

    def attacked(self, coef: Array) -> Array:
        """Attacked errors at each strength (rows) of each column of coefficients."""
        # The error of a share of the way from u to v needs their squares and product only.
        u, v = self.X @ coef - self.y[:, None], self.z - self.y
        uu, uv, vv = np.mean(u**2, axis=0), v @ u / len(v), v @ v / len(v)
        pull = 1.0 / (1.0 + GAMMAS[:, None] / np.sum(coef**2, axis=0))
        return np.asarray((1.0 - pull) ** 2 * uu + 2.0 * pull * (1.0 - pull) * uv + pull**2 * vv)


class _Spectrum:
    """Least squares with any penalty, after one decomposition."""

    def __init__(self, X: Array, y: Array) -> None:
        # The triangle of features and labels together holds all that is needed of many rows.
        triangle: Array = np.asarray(np.linalg.qr(np.column_stack([X, y]), mode="r"))
        left, self.sigma, self.right = np.linalg.svd(triangle[:, :-1], full_matrices=False)
        self.target = left.T @ triangle[:, -1]

    def coef(self, penalties: Array) -> Array:
        """One column of coefficients for each penalty, which is relative."""
        d = self.sigma**2
        seen = self.sigma > RANK * self.sigma[0]
        unit = d.sum() / len(d)
        filters = np.where(seen, self.sigma, 0.0)[:, None] / np.where(
            seen[:, None], d[:, None] + unit * penalties, 1.0
        )
        return np.asarray(self.right.T @ (filters * self.target[:, None]))


def _ridge(game: Game, spectrum: _Spectrum) -> Array:
    """Coefficients of ridge, one column for each strength."""
    order = np.random.default_rng(0).permutation(len(game.y))
    errors = np.zeros((len(GAMMAS), len(PENALTIES)))
    for held in np.array_split(order, INNER_FOLDS):
        kept = np.setdiff1d(order, held)
        coef = _Spectrum(game.X[kept], game.y[kept]).coef(PENALTIES)
        rows = _Rows(game.X[held], game.y[held], game.z[held], 1.0)
        errors += len(held) * rows.attacked(coef)
    return spectrum.coef(PENALTIES)[:, errors.argmin(axis=1)]


def _digits(values: Array) -> list[float]:
    return [float(f"{value:.8g}") for value in values]
