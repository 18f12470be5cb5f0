"""Spectral reduction on the side of the rows, for data with more columns than rows.

The same two engines as on the side of the columns, turned by ninety degrees: the kernel matrix
``(PA)(PA)'``, or a triangular factor of ``(PA)'`` built from blocks of columns. Coefficients come
back as combinations of rows, so no object of the size of ``n`` squared is ever formed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import svd

from spgls.base.types import EPS, Array, Vector
from spgls.matrix import block_length, flush_columns
from spgls.reduction.data import GameData
from spgls.reduction.layout import times
from spgls.reduction.reduced import ReducedGame
from spgls.reduction.reduction import ReductionByData, eigen, remainders
from spgls.reduction.sums import triangle

__all__ = ["RowReduction", "reduce_rows_by_gram", "reduce_rows_by_qr"]


@dataclass(frozen=True, eq=False)
class RowReduction(ReductionByData):
    """A reduction whose singular vectors live in the space of the rows."""

    vectors: Array  # left singular vectors, one column per coordinate

    def lift(self, x: Vector, fill: float) -> Vector:
        """``v = (PA)' U (x/sigma)`` plus a vector the data does not see."""
        v = self.lift_span(x)
        if fill > 0.0:
            v += fill * self._null_direction
        return v

    def lift_span(self, x: Array) -> Array:
        """``(PA)' U (x/sigma)``."""
        return self.data.projected.cross(self.vectors @ (x.T / self.game.sigma).T)

    def roundings(
        self, v: Array, *, s: Vector, c: Vector, nu: Vector, value: Vector, filled: np.ndarray
    ) -> Vector:
        """As on the column side, but a kernel matrix perturbs the value through the residual."""
        if not self.squared:
            return super().roundings(v, s=s, c=c, nu=nu, value=value, filled=filled)
        game = self.game
        base = self._target_size(c) ** 2
        top = game.top
        positive = nu > 0.0
        share = np.divide(value, nu, out=np.zeros_like(nu), where=positive)
        right = 8 * EPS * (base + top**2 * share) + self.unseen(c, nu)
        return np.where(positive, right, np.where(filled, np.inf, 8 * EPS * base))

    @cached_property
    def _null_direction(self) -> Vector:
        """As ``canonical_direction``, without a basis of the size of the columns."""
        a = self.data.projected
        n = a.shape[1]
        # Permutations of the columns commute with each of these but the last.
        likeness = a.cross(self.vectors @ self.game.eta) ** 2
        for start in (np.ones(n), likeness, np.random.default_rng(0).normal(size=n)):
            size = float(np.linalg.norm(start))
            rest = start
            for _ in range(2):
                rest = rest - a.cross(self.vectors @ (self.vectors.T @ a.apply(rest) / self.game.d))
            norm = float(np.linalg.norm(rest))
            if norm > 1e-7 * size:
                break
        return np.asarray(rest / norm)


def reduce_rows_by_gram(data: GameData) -> RowReduction:
    """Reduce through the kernel matrix ``(PA)(PA)'``."""
    m = data.matrix.shape[0]
    kernel = np.zeros((m, m))
    raw = 0.0
    for panel, size in _projected_panels(data):
        kernel += panel @ panel.T
        raw += size
    scale = float(np.sqrt(max(np.trace(kernel), 0.0)))
    d, vectors = eigen(kernel)
    cut = 4 * m * EPS * max(float(d[-1]), EPS * raw)
    seen = d > cut
    return _finish(data, np.sqrt(d[seen]), vectors[:, seen], True, scale, np.sqrt(raw), cut)


def reduce_rows_by_qr(data: GameData) -> RowReduction:
    """Reduce through a triangular factor of ``(PA)'``, built from blocks of columns."""
    m = data.matrix.shape[0]
    factor = np.zeros((0, m))
    raw = 0.0
    for panel, size in _projected_panels(data):
        raw += size
        factor = triangle(np.vstack([factor, panel.T]))
    scale = float(np.linalg.norm(factor))
    _, sigma, right = svd(factor, full_matrices=False, check_finite=False)
    seen = sigma > 4 * m * EPS * max(float(sigma[0]), EPS * np.sqrt(raw))
    return _finish(data, sigma[seen], right[seen].T, False, scale, np.sqrt(raw), 0.0)


def _projected_panels(data: GameData) -> Iterator[tuple[Array, float]]:
    """Blocks of columns of ``PA``, and the squared size of the same columns as they came."""
    data.check_finite()
    m = data.matrix.shape[0]
    width = block_length(m, at_least=64)
    basis = data.free_basis
    price = np.ones(data.matrix.shape[1]) if data.layout.cost is None else np.sqrt(data.layout.cost)
    changeable = np.isfinite(price)
    for columns, panel in data.matrix.column_panels(width):
        wanted = changeable[columns]
        rows = times(data.root_weight, panel)
        squares = np.einsum("ij,ij->j", rows, rows)
        size = float(squares.sum())
        piece = panel[:, wanted]
        if data.layout.fit_intercept:
            piece = piece - piece.mean(axis=0)
        piece = times(data.root_weight, piece * price[columns][wanted])
        for _ in range(2):
            piece = piece - basis @ (basis.T @ piece)
        flush_columns(piece, np.sqrt(squares[wanted]) * price[columns][wanted], basis.shape[1])
        yield piece, size


def _finish(
    data: GameData,
    sigma: Vector,
    vectors: Array,
    squared: bool,
    scale: float,
    raw: float,
    cut: float,
) -> RowReduction:
    targets, before = data.projected_targets
    coordinates = vectors.T @ targets
    if np.array_equal(targets[:, 0], targets[:, 1]):
        coordinates[:, 1] = coordinates[:, 0]
    outside = targets - vectors @ coordinates
    limit = 32 * np.sqrt(len(targets)) * EPS * np.linalg.norm(targets, axis=0)
    outside[:, np.linalg.norm(outside, axis=0) <= limit] = 0.0
    gap = targets[:, 0] - targets[:, 1]
    game = ReducedGame(
        sigma=sigma,
        eta=coordinates[:, 0],
        zeta=coordinates[:, 1],
        **remainders(outside, before),
        nullity=len(data.layout.changeable) - len(sigma),
        free_gap=max(0.0, data.sizes.gap - float(gap @ gap)),
    )
    return RowReduction(data.layout, game, data.sizes, squared, scale, raw, cut, data, vectors)
