"""Spectral reduction on the side of the rows, for data with more columns than rows.

The same two engines as on the side of the columns, turned by ninety degrees: the kernel matrix
``(PA)(PA)'``, or a triangular factor of ``(PA)'`` built from blocks of columns. Coefficients come
back as combinations of rows, so no object of the size of ``n`` squared is ever formed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy.linalg import svd

from spgls.base.cached import cached_property
from spgls.base.types import EPS, Array, Vector
from spgls.matrix import SolvedProjection, block_length, column_squares, flush_columns
from spgls.reduction.data import GameData
from spgls.reduction.layout import times
from spgls.reduction.reduced import ReducedGame
from spgls.reduction.reduction import ReductionByData, eigen, remainders
from spgls.reduction.rounding import Rounding, kappa_of, kappa_of_factor
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
        base = self._target_size(c) ** 2
        positive = nu > 0.0
        share = np.divide(value, nu, out=np.zeros_like(nu), where=positive)
        right = 8 * EPS * (base + self.game.top**2 * share) + self.unseen(c, nu)
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
    kernel, total = np.zeros((m, m)), np.zeros(4)
    for panel, squares in _projected_panels(data):
        kernel += panel @ panel.T
        total += squares
    scale = float(np.sqrt(max(np.trace(kernel), 0.0)))
    d, vectors = eigen(kernel)
    raw, priced, own, lost = total.tolist()
    cut = 4 * m * EPS * max(float(d[-1]), EPS * priced)
    seen = d > cut
    kappa = kappa_of(data.matrix.shape[1], m) + 4 * m * EPS
    # Large means may put the cut above what is allowed for data less its means.
    hidden = 0.0 if seen.all() else cut / kappa
    rounding = _rounding(data, "kernel", kappa, own + hidden, lost)
    sigma, sizes = np.sqrt(d[seen]), (scale, float(np.sqrt(raw)), cut)
    return _finish(data, sigma, vectors[:, seen], sizes, rounding)


def reduce_rows_by_qr(data: GameData) -> RowReduction:
    """Reduce through a triangular factor of ``(PA)'``, built from blocks of columns."""
    m = data.matrix.shape[0]
    factor, total = np.zeros((0, m)), np.zeros(4)
    for panel, squares in _projected_panels(data):
        total += squares
        factor = triangle(np.vstack([factor, panel.T]))
    scale = float(np.linalg.norm(factor))
    _, sigma, right = svd(factor, full_matrices=False, check_finite=False)
    raw, priced, own, lost = total.tolist()
    cut = 4 * m * EPS * max(float(sigma[0]), EPS * np.sqrt(priced))
    seen = sigma > cut
    kappa = kappa_of_factor(data.matrix.shape[1], m)
    kappa += (40 * np.sqrt(m) + 4 * m * np.sqrt(m - np.count_nonzero(seen))) * EPS
    hidden = float(np.linalg.norm(sigma[~seen])) / kappa
    rounding = _rounding(data, "factor", kappa, (np.sqrt(own) + hidden) ** 2, lost)
    return _finish(data, sigma[seen], right[seen].T, (scale, float(np.sqrt(raw)), 0.0), rounding)


def _rounding(
    data: GameData, kind: Literal["factor", "kernel"], kappa: float, own: float, lost: float
) -> Rounding:
    """What rounding can have done, from squared sizes of the data after its shift.

    The basis of what is projected away is wrong by its own rounding over the least singular value
    of the columns it comes from.
    """
    kappa += data.free.leak if isinstance(data.free, SolvedProjection) else 0.0
    kappa *= 1.0 + 1.0 / data.free_condition if data.free_condition else np.inf
    before = data.projected_targets[1]
    y, z = before.tolist()
    if np.array_equal(*data.projected_targets[0].T):
        y = z = y + z
    rounding = Rounding(
        kind=kind,
        kappa=kappa,
        reach=float(np.sqrt(own) + np.sqrt(lost) / kappa) if kappa < np.inf else 0.0,
        y=y,
        z=z,
        slack=0.0 if kappa < np.inf else np.inf,
    )
    if data.layout.coordinates is None:
        return rounding
    lengths = np.sqrt(column_squares(data.matrix, data.weight, data.origin.row))
    turned = 1.0 + 1.0 / data.free_condition if data.free_condition else np.inf
    return rounding.blurred(turned * data.layout.blur(lengths))


def _projected_panels(data: GameData) -> Iterator[tuple[Array, Vector]]:
    """Blocks of columns of ``PA``, and four squared sizes of the same columns.

    As they came; with their prices; after their means were subtracted; and of what was taken for
    rounding.
    """
    data.check_finite()
    m = data.matrix.shape[0]
    width = block_length(m, at_least=64)
    free = data.free
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
        own = float(np.einsum("ij,ij->", piece, piece))
        piece = free.apply(piece) if free.rank else piece
        before = np.sqrt(squares[wanted]) * price[columns][wanted]
        lost = flush_columns(piece, before, free.rank)
        yield piece, np.array([size, float(before @ before), own, float(lost @ lost)])


def _finish(
    data: GameData,
    sigma: Vector,
    vectors: Array,
    sizes: tuple[float, float, float],
    rounding: Rounding,
) -> RowReduction:
    targets, before = data.projected_targets
    coordinates = vectors.T @ targets
    if np.array_equal(targets[:, 0], targets[:, 1]):
        coordinates[:, 1] = coordinates[:, 0]
    outside = targets - vectors @ coordinates
    limit = 32 * np.sqrt(len(targets)) * EPS * np.linalg.norm(targets, axis=0)
    length = np.linalg.norm(outside, axis=0)
    outside[:, length <= limit] = 0.0
    zeroed = data.flushed_targets + np.where(length <= limit, length, 0.0)
    if 0.0 < rounding.kappa < np.inf:
        more_y, more_z = (zeroed / rounding.kappa).tolist()
        rounding = replace(rounding, y=rounding.y + more_y, z=rounding.z + more_z)
    gap = targets[:, 0] - targets[:, 1]
    avoids = data.layout.avoids_null
    if avoids and len(sigma) and rounding.kind == "factor":
        rounding = replace(rounding, least=float(sigma.min()) / rounding.reach)
    elif rounding.kind == "factor" and 0 < len(sigma) == len(targets) - data.free.rank:
        # As many directions as there are rows: only the norms of coefficients are in doubt.
        rounding = replace(rounding, least=float(sigma.min()) / rounding.reach / 2)
    left_over, snapped = remainders(outside, before)
    lost = data.origin.slack(data.sizes.centred_y)
    game = ReducedGame(
        sigma=sigma,
        eta=coordinates[:, 0],
        zeta=coordinates[:, 1],
        **left_over,
        nullity=0 if avoids else data.layout.count - len(sigma),
        free_gap=max(0.0, data.sizes.gap - float(gap @ gap)),
        rounding=replace(rounding, slack=rounding.slack + snapped + lost),
    )
    squared = rounding.kind == "kernel"
    return RowReduction(data.layout, game, data.sizes, squared, *sizes, data, vectors)
