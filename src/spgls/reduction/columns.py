"""Spectral reduction on the side of the columns, for data with at least as many rows.

Two engines end in the same coordinates. The Gram engine is one matrix product over the data and
an eigen-decomposition: fast, but it squares the condition number. The triangular engine is a QR
decomposition built block by block and a singular value decomposition that respects columns of very
different scale: about three times the work, and it resolves what the data itself resolves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh, lapack, qr, solve_triangular, svd

from spgls._types import EPS, Array, Vector
from spgls.data import GameData
from spgls.matrix import block_length, flush_columns
from spgls.reduced import ReducedGame
from spgls.reduction.reduction import Reduction, canonical_direction, remainders

__all__ = [
    "ColumnReduction",
    "eliminate_free",
    "reduce_by_gram",
    "reduce_by_moments",
    "reduce_by_qr",
]

#: Eigenvalues of an equilibrated Gram matrix between these are neither zero nor trustworthy.
_CERTAINLY_ZERO, _CERTAINLY_NOT = 1e-13, 1e-7


@dataclass(frozen=True, eq=False)
class ColumnReduction(Reduction):
    """A reduction whose singular vectors live in the space of the coefficients."""

    vectors: Array  # right singular vectors, one column per coordinate
    free_map: Array  # immutable coefficients are free_map @ [v, s-combination of y and z]

    def lift(self, x: Vector, fill: float) -> Vector:
        """``v = V x`` plus a vector that the data sees least, or not at all."""
        v = self.lift_span(x)
        if fill > 0.0 and self.game.nullity:
            v += fill * canonical_direction(self.vectors, inside=False)
        elif fill > 0.0:
            lowest = self.game.sigma == self.game.sigma.min()
            v += fill * canonical_direction(self.vectors[:, lowest], inside=True)
        return v

    def lift_span(self, x: Array) -> Array:
        """``V x``."""
        return np.asarray(self.vectors @ x)

    def free_part(self, v: Array, alpha: float | Vector) -> Array:
        """``F^+[(1+alpha) y - alpha z - A v]`` for the immutable columns."""
        fixed = self.free_map
        n = len(v)
        f_y, f_z = fixed[:, n], fixed[:, n + 1]
        targets = f_y + np.multiply.outer(alpha, f_y - f_z)
        return np.asarray(targets.T - fixed[:, :n] @ v)


def reduce_by_gram(data: GameData) -> ColumnReduction | None:
    """Reduce through the Gram matrix; None where its digits cannot decide a rank."""
    k = len(data.changeable)
    if k == 0:
        return None
    moment, scale, raw = _centred_moment(data)
    eliminated = eliminate_free(data, moment)
    if eliminated is None:
        return None
    kept, free_map = eliminated
    if data.centred[0] is data.centred[1]:
        kept[k + 1] = kept[k]
        kept[:, k + 1] = kept[:, k]
    gap = float(kept[k, k] - 2 * kept[k, k + 1] + kept[k + 1, k + 1])
    return reduce_by_moments(
        data, kept, free_map, scale[data.changeable], raw, _free_gap(data, gap)
    )


def reduce_by_moments(
    data: GameData, kept: Array, free_map: Array, scale: Vector, raw: Vector, free_gap: float
) -> ColumnReduction:
    """Reduce through what the immutable columns left of the moments.

    Parameters
    ----------
    data : GameData
        Whose reduction it is.
    kept : ndarray of shape (k + 2, k + 2)
        Moments of changeable columns, labels and goals.
    free_map : ndarray
        Map to the immutable coefficients.
    scale, raw : ndarray
        Sizes of the changeable columns when squared, and of all columns before any shift.
    free_gap : float
        What the immutable columns took of the squared distance of labels and goals.
    """
    k = len(scale)
    scale = scale * (1.0 if data.price is None else data.price)
    d, vectors = eigh(kept[:k, :k], driver="evd", check_finite=False)
    cut = 4 * k * EPS * max(float(scale.max()) ** 2, float(d[-1]))
    seen = d > cut
    sigma, vectors = np.sqrt(d[seen]), vectors[:, seen]
    eta, zeta = np.ascontiguousarray((kept[k:, :k] @ vectors) / sigma)
    if np.array_equal(kept[k], kept[k + 1]):
        zeta = eta
    game = ReducedGame(
        sigma=sigma,
        eta=eta,
        zeta=zeta,
        r_yy=max(0.0, float(kept[k, k] - eta @ eta)),
        r_yz=float(kept[k, k + 1] - eta @ zeta),
        r_zz=max(0.0, float(kept[k + 1, k + 1] - zeta @ zeta)),
        nullity=k - len(sigma),
        free_gap=free_gap,
    )
    return ColumnReduction(data, game, True, scale, raw, cut, vectors, free_map)


def reduce_by_qr(data: GameData, *, ones_last: bool = False) -> ColumnReduction:
    """Reduce through a triangular factor of the data, built from blocks of rows.

    The last immutable column may be an intercept, which then explains what it can before the
    others do, as one that is not a column does.
    """
    free = data.immutable[:-1] if ones_last else data.immutable
    k, f = len(data.changeable), len(free)
    lead = int(data.fit_intercept or ones_last)
    order = np.concatenate([data.immutable[len(free) :], free, data.changeable])
    factor, raw = _triangle(data, order)
    if data.price is not None:
        factor[:, lead + f : lead + f + k] *= data.price
    scale = np.linalg.norm(factor, axis=0)[lead + f : lead + f + k]
    # An immutable column that is constant up to rounding is the intercept over again.
    fixed = factor[:, lead : lead + f]
    flush_columns(fixed[lead:], raw[free], lead)
    fixed[:, ~fixed[lead:].any(axis=0)] = 0.0
    free_map, rest = _split_free(factor[lead:, lead:], f)
    if ones_last:
        ones = factor[0, 1 + f :] - factor[0, 1 : 1 + f] @ free_map
        free_map = np.vstack([free_map, ones / factor[0, 0]])
    before = raw[data.changeable] * (1.0 if data.price is None else data.price)
    flush_columns(rest[:, :k], before, lead + f)
    norms = np.sqrt(np.einsum("ij,ij->j", factor[:, -2:], factor[:, -2:]))
    flush_columns(rest[:, k:], norms, lead + f)
    if rest.shape[0] < k + 2:
        rest = np.vstack([rest, np.zeros((k + 2 - rest.shape[0], k + 2))])
    (triangle,) = qr(rest, mode="r", check_finite=False)
    core, targets, tail = triangle[:k, :k], triangle[:k, k:], triangle[k : k + 2, k:]
    # Goals that differ from the labels by what the learner may choose freely equal them.
    same = bool(np.linalg.norm(rest[:, k] - rest[:, k + 1]) <= 1e-14 * norms.sum())
    sigma, left, vectors = _graded_svd(core)
    coordinates = left.T @ targets
    outside = np.vstack([targets - left @ coordinates, tail])
    # Coordinates below the rounding of their vector are zero, and lowest singular values that
    # differ by rounding are one: the hard case is decided by such equalities.
    coordinates[np.abs(coordinates) <= 8 * EPS * norms] = 0.0
    if len(sigma):
        sigma = np.where(sigma <= (1 + 64 * EPS) * sigma.min(), sigma.min(), sigma)
    # What is left of labels and goals below rounding of their norms is nothing.
    left_over = np.sqrt(np.einsum("ij,ij->j", outside, outside))
    outside[:, left_over <= 32 * np.sqrt(k + 2) * EPS * norms] = 0.0
    if same:
        coordinates[:, 1] = coordinates[:, 0]
        outside[:, 1] = outside[:, 0]
    gap = np.concatenate([coordinates, outside]) @ [1.0, -1.0]
    game = ReducedGame(
        sigma=sigma,
        eta=coordinates[:, 0],
        zeta=coordinates[:, 1],
        **remainders(outside, norms),
        nullity=k - len(sigma),
        free_gap=_free_gap(data, float(gap @ gap)),
    )
    return ColumnReduction(data, game, False, scale, raw, 0.0, vectors, free_map)


def _centred_moment(data: GameData) -> tuple[Array, Vector, Vector]:
    """Second moments of ``[X, y, z]`` after the intercept; column sizes when squared and raw."""
    y, z = data.centred
    if not data.fit_intercept:
        moment = _checked_moment(data, np.column_stack([y, z]), None)
        scale = np.sqrt(np.diag(moment)[:-2])
        return moment, scale, scale
    with np.errstate(over="ignore", invalid="ignore"):
        shift = data.matrix.typical_row(data.weight)
    ones = np.ones(len(y))
    moment = _checked_moment(data, np.column_stack([y, z, ones]), shift)
    sums = moment[:-1, -1] / np.sqrt(moment[-1, -1])
    raw = np.diag(moment)[:-1].copy()
    moment = moment[:-1, :-1] - np.outer(sums, sums)
    # A column that is constant up to the rounding of its own mean is the intercept.
    origin = 0.0 if shift is None else data.total_weight * shift**2
    flat = np.flatnonzero(np.diag(moment)[:-2] <= 64 * EPS**2 * (raw[:-2] + origin))
    moment[flat] = 0.0
    moment[:, flat] = 0.0
    return moment, np.sqrt(raw[:-2]), np.sqrt(raw[:-2] + origin)


def _checked_moment(data: GameData, extra: Array, shift: Vector | None) -> Array:
    """Moments of the data; a number that is not finite shows in them, and is refused."""
    with np.errstate(over="ignore", invalid="ignore"):
        moment = data.matrix.moment(extra, data.weight, shift)
    data.check_finite(moment)
    return moment


def eliminate_free(
    data: GameData, moment: Array, *, ones_last: bool = False
) -> tuple[Array, Array] | None:
    """Moments of changeable columns, labels and goals after the immutable columns explained theirs.

    Also the map to the immutable coefficients; None where rounding would decide either. The last
    immutable column may be ones, an intercept, which then explains what it can before the others.
    """
    free, k = data.immutable, len(data.changeable)
    price = np.concatenate([np.ones(k) if data.price is None else data.price, [1.0, 1.0]])
    if len(free) == 0:
        kept = moment if data.price is None else moment * np.outer(price, price)
        return kept, np.zeros((0, k + 2))
    n = data.matrix.shape[1]
    order = np.concatenate([data.changeable, [n, n + 1]])
    kept = moment[np.ix_(order, order)] * np.outer(price, price)
    mixed = moment[np.ix_(free, order)] * price
    explain = _inverse_after_ones if ones_last else _certain_inverse
    inverse = explain(moment[np.ix_(free, free)])
    if inverse is None:
        return None
    free_map = inverse @ mixed
    rest = kept - mixed.T @ free_map
    if (_target_squares(rest[k:, k:]) < _CERTAINLY_NOT * _target_squares(kept[k:, k:])).any():
        return None
    return rest, free_map


def _target_squares(gram: Array) -> Vector:
    """Squared norms of labels, goals and their difference."""
    gap = np.array([1.0, -1.0])
    return np.append(np.diag(gram), gap @ gram @ gap)


def _certain_inverse(gram: Array) -> Array | None:
    """Pseudo-inverse of a Gram matrix, or None if its rank is a matter of opinion."""
    root = np.sqrt(np.diag(gram))
    unit = np.divide(1.0, root, out=np.zeros_like(root), where=root > 0.0)
    values, vectors = eigh(gram * np.outer(unit, unit), check_finite=False)
    if ((values > _CERTAINLY_ZERO * len(root)) & (values < _CERTAINLY_NOT)).any():
        return None
    kept = values >= _CERTAINLY_NOT
    scaled = unit[:, None] * vectors[:, kept]
    return np.asarray((scaled / values[kept]) @ scaled.T)


def _inverse_after_ones(gram: Array) -> Array | None:
    """The same where the last column explains first, as if the others had been centred.

    Only so are coefficients of columns that depend on each other those of centred columns.
    """
    top = gram[-1, -1]
    if len(gram) == 1:
        return np.array([[1.0 / top]])
    means = gram[:-1, -1] / top
    centred = gram[:-1, :-1] - top * np.outer(means, means)
    part = np.diag(centred) / np.maximum(np.diag(gram)[:-1], np.finfo(float).tiny)
    constant = part <= _CERTAINLY_ZERO
    if ((part < _CERTAINLY_NOT) & ~constant).any():
        return None
    centred[constant] = centred[:, constant] = 0.0
    inverse = _certain_inverse(centred)
    if inverse is None:
        return None
    back = inverse @ means
    return np.block([[inverse, -back[:, None]], [-back, 1.0 / top + means @ back]])


def _free_gap(data: GameData, projected: float) -> float:
    gap = data.y - data.z
    return max(0.0, data.loss(gap) - projected)


def _triangle(data: GameData, order: np.ndarray) -> tuple[Array, Vector]:
    """Triangular factor of ``S^{1/2}[1, X, y, z]``, columns shifted and in the order given.

    Also the size of each column of ``S^{1/2} X`` before the shift.
    """
    data.check_finite()
    y, z = data.centred
    lead = int(data.fit_intercept)
    n = len(order)
    width = lead + n + 2
    shift = data.matrix.typical_row(data.weight) if data.fit_intercept else None
    factor = np.zeros((0, width))
    for rows, panel in data.matrix.row_panels(block_length(width, at_least=2 * width)):
        block = np.empty((panel.shape[0], width))
        if lead:
            block[:, 0] = 1.0
        block[:, lead : lead + n] = (panel if shift is None else panel - shift)[:, order]
        block[:, -2], block[:, -1] = y[rows], z[rows]
        if data.root_weight is not None:
            block *= data.root_weight[rows, None]
        stack = np.vstack([factor, block]) if factor.size else block
        (factor,) = qr(stack, mode="r", overwrite_a=True, check_finite=False)
        factor = factor[:width]
    if factor.shape[0] < width:
        factor = np.vstack([factor, np.zeros((width - factor.shape[0], width))])
    factor = np.triu(factor)
    sizes = np.empty(n)
    sizes[order] = np.linalg.norm(factor[:, lead : lead + n], axis=0)
    if shift is not None:
        sizes = np.hypot(sizes, np.sqrt(data.total_weight) * shift)
    return factor, sizes


def _split_free(factor: Array, f: int) -> tuple[Array, Array]:
    """Eliminate the first ``f`` columns: their least squares map, and what is left of the others.

    Dependent columns among the first leave rows of the triangle that still speak of the others;
    a pivoted decomposition hands those rows back. The map is then the smallest, by columns of unit
    length.
    """
    if f == 0:
        return np.zeros((0, factor.shape[1])), factor
    head, others = factor[:f, :f], factor[:f, f:]
    norms = np.linalg.norm(head, axis=0)
    unit = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0.0)
    q, r, pivot = qr(head * unit, pivoting=True, check_finite=False)
    diagonal = np.abs(np.diag(r))
    rank = int((diagonal > 8 * f * EPS * max(diagonal[0], EPS)).sum()) if diagonal[0] else 0
    turned = q.T @ others
    free_map = np.zeros((f, others.shape[1]))
    if rank == f:
        solved = solve_triangular(r, turned, check_finite=False)
        free_map[pivot] = solved * unit[pivot, None]
    elif rank:
        across, lower = qr(r[:rank].T, mode="economic", check_finite=False)
        solved = across @ solve_triangular(lower, turned[:rank], trans="T", check_finite=False)
        free_map[pivot] = solved * unit[pivot, None]
    return free_map, np.vstack([turned[rank:], factor[f:, f:]])


def _graded_svd(core: Array) -> tuple[Vector, Array, Array]:
    """Singular values and vectors, accurate for columns of very different scale.

    The rank is decided on columns of unit length; preconditioned Jacobi then gives even the
    smallest singular values to high relative accuracy.
    """
    k = core.shape[0]
    if not core.any():
        return np.zeros(0), np.zeros((k, 0)), np.zeros((k, 0))
    norms = np.linalg.norm(core, axis=0)
    unit = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0.0)
    q, r, pivot = qr(core * unit, pivoting=True, check_finite=False)
    diagonal = np.abs(np.diag(r))
    rank = int((diagonal > 8 * k * EPS * diagonal[0]).sum())
    rows = np.empty((rank, k))
    rows[:, pivot] = r[:rank] * norms[pivot]
    values, right, left, work, _, info = lapack.dgejsv(rows.T, joba=2, jobu=0, jobv=0, jobr=0)
    if info == 0:
        sigma = values * (work[0] / work[1])
        right = right[:, :rank]
    else:
        left_t, sigma, right_t = svd(rows, full_matrices=False, check_finite=False)
        left, right = left_t, right_t.T
    kept = sigma > 0.0
    return sigma[kept], (q[:, :rank] @ left)[:, kept], right[:, kept]
