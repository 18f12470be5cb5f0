"""The triangular engine: singular values of a factor, each as accurate as its columns are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import lapack, qr, solve_triangular, svd

from spgls.base.types import EPS, Array, Vector
from spgls.matrix import flush_columns
from spgls.reduction.columns import ColumnReduction, sizes_with_free
from spgls.reduction.dependence import Dependence
from spgls.reduction.layout import Layout
from spgls.reduction.reduced import ReducedGame
from spgls.reduction.reduction import remainders
from spgls.reduction.rounding import Rounding, kappa_of_factor
from spgls.reduction.sums import Account, Origin, Sizes, triangle

__all__ = ["reduce_triangle"]

#: Directions are split where all weaker ones have this share of the data.
_STEPS = 4.0 ** -np.arange(1.0, 28.0)
#: Of columns of unit length, what less than this is left of beside the others is avoided, if asked.
_HARDLY = 1e-6
#: Immutable columns whose rounding can turn what they span by more than this prove nothing.
_TURNED = 0.5


def reduce_triangle(
    layout: Layout,
    rows: Array,
    origin: Origin,
    count: int,
    dependence: Callable[[], Dependence] | None = None,
    account: Account | None = None,
) -> ColumnReduction:
    """Reduce through a triangular factor, or any few rows that have the moments of the data.

    Parameters
    ----------
    layout : Layout
        What the columns mean.
    rows : ndarray
        Columns, labels, goals and, with an intercept, ones; by the square roots of weights.
    origin : Origin
        What was subtracted from the rows.
    count : int
        How many rows they stand for, at most.
    dependence : callable, optional
        Tells which columns depend exactly on the others; asked only if some seem to.
    account : Account, optional
        How wrong the rows may be, where they have been put together from others.
    """
    n, lead, free = layout.columns, int(layout.fit_intercept), layout.immutable
    k, f = layout.count, len(free)
    sizes = Sizes.from_rows(rows[:, n:], origin)
    ones = np.arange(n + 2, n + 2 + lead)
    order = np.concatenate([ones, free, layout.changeable, [n, n + 1]])
    factor = _square(triangle(rows[:, order]))
    after, means = np.empty(n + 2), np.zeros(n + 2)
    after[order[lead:]] = np.linalg.norm(factor[:, lead:], axis=0)
    # Columns of zeros stay so, and have no part in the rounding of others.
    kappa = kappa_of_factor(count, int(np.count_nonzero(after[:n])))
    if account is not None:
        after += account.kappa / kappa * account.sizes[: n + 2]
    if lead:
        means[order[1:]] = factor[0, 1:] / factor[0, 0]
    # Ones are wrong like any column, and explain a part of each.
    wrong = after.copy()
    if lead:
        length = abs(factor[0, 0])
        more = 0.0 if account is None else account.kappa / kappa * account.sizes[n + 2]
        wrong[order[1:]] += (1.0 + more / length) * np.abs(factor[0, 1:])
    raw = origin.column_sizes(after[:n], sizes.weight)
    scale, before = after[layout.changeable], raw[layout.changeable]
    if layout.price is not None:
        factor[:, lead + f : lead + f + k] *= layout.price
        scale, before = scale * layout.price, before * layout.price
    # An immutable column that is constant up to rounding is the intercept over again.
    fixed = factor[:, lead : lead + f]
    apart = np.ones(n, dtype=bool)
    flush_columns(fixed[lead:], raw[free], lead)
    fixed[:, ~fixed[lead:].any(axis=0)] = 0.0
    known = factor[lead:, lead : lead + f + k].copy()
    free_map, rest, rank, free_cut, spread = _split_free(
        factor[lead:, lead:], f, kappa, wrong[free]
    )
    left = np.linalg.norm(rest, axis=0)
    if layout.avoids_null:
        # Of columns that immutable ones nearly explain, what is left is such a direction too.
        rest[:, :k][:, left[:k] <= _HARDLY * scale] = 0.0
    lost = float(np.linalg.norm(flush_columns(rest[:, :k], before, lead + f)))
    norms = after[n:]
    zeroed = flush_columns(rest[:, k:], norms, lead + f)
    # Goals that differ from the labels by what the learner may choose freely equal them.
    apart_by = float(np.linalg.norm(rest[:, k] - rest[:, k + 1]))
    same = apart_by <= 1e-14 * norms.sum()
    zeroed[1] += same * apart_by
    corner = _square(triangle(rest))
    core, targets, tail = corner[:k, :k], corner[:k, k:], corner[k:, k:]
    sigma, seen, vectors, cut = _graded_svd(core, scale, _HARDLY if layout.avoids_null else 0.0)
    coordinates = seen.T @ targets
    outside = np.vstack([targets - seen @ coordinates, tail])
    # Coordinates below the rounding of their vector are zero, and lowest singular values that
    # differ by rounding are one: the hard case is decided by such equalities.
    tiny = np.abs(coordinates) <= 8 * EPS * norms
    zeroed += np.linalg.norm(np.where(tiny, coordinates, 0.0), axis=0)
    coordinates[tiny] = 0.0
    if len(sigma):
        sigma = np.where(sigma <= (1 + 64 * EPS) * sigma.min(), sigma.min(), sigma)
    # What is left of labels and goals below rounding of their norms is nothing.
    left_over = np.sqrt(np.einsum("ij,ij->j", outside, outside))
    nothing = left_over <= 32 * np.sqrt(k + 2) * EPS * norms
    outside[:, nothing] = 0.0
    zeroed += np.where(nothing, left_over, 0.0)
    if same:
        coordinates[:, 1] = coordinates[:, 0]
        outside[:, 1] = outside[:, 0]
    gap = np.concatenate([coordinates, outside]) @ [1.0, -1.0]
    left_over, snapped = remainders(outside, norms)
    kappa += cut + free_cut
    blur = layout.blur(after[:n])
    # Immutable columns are wrong too, and with them what they explain of the others.
    turned = (kappa + blur) * spread
    own = sizes_with_free(layout, wrong, free_map)
    if 0.0 < turned <= _TURNED:
        own = (own + turned * spread * left) / (1.0 - turned - turned**2)
    own, (size_y, size_z) = own[:-2], (own[-2:] + zeroed / kappa).tolist()
    reach = float(np.linalg.norm(own)) + lost / kappa
    short = rank < np.count_nonzero(after[free]) or len(sigma) < np.count_nonzero(scale)
    free_rows = all_rows = count
    if short and dependence is not None and not layout.avoids_null:
        columns, free_rows, all_rows = dependence()
        apart[columns] = False
    certain = rank in (np.count_nonzero(apart[free] & (after[free] > 0.0)), free_rows - lead)
    certain |= layout.avoids_null
    certain &= turned <= _TURNED
    least = 0.0
    if short and layout.avoids_null:
        # Only these directions are used, and each of them shows in predictions.
        least = _least_shown(own, vectors, sigma, reach)
    elif certain and len(sigma) == np.count_nonzero(apart[layout.changeable] & (scale > 0.0)):
        columns = np.concatenate([free, layout.changeable])
        priced = wrong[columns]
        if layout.price is not None:
            priced[f:] *= layout.price
        least = _least_singular(known, priced, apart[columns], f)
    elif certain and 0 < len(sigma) == all_rows - lead - rank:
        # As many directions as there are rows: predictions are then what they may be, and only
        # the norm that they take is in doubt.
        least = float(sigma.min()) / reach / 2
    if origin.same:
        # Labels less goals are a share of the labels, and so is their error.
        size_z = 0.0
    elif same:
        size_y = size_z = size_y + size_z
    game = ReducedGame(
        sigma=sigma,
        eta=coordinates[:, 0],
        zeta=coordinates[:, 1],
        **left_over,
        nullity=0 if layout.avoids_null else k - len(sigma),
        free_gap=max(0.0, sizes.gap - float(gap @ gap)),
        rounding=Rounding(
            kind="factor",
            kappa=kappa,
            reach=reach,
            y=size_y,
            z=size_z,
            least=least,
            splits=_splits(own, vectors, sigma, lost / kappa, all_shown=layout.avoids_null),
            # Immutable columns are free: where rounding decides their rank, nothing is certain.
            slack=snapped + origin.slack(sizes.centred_y) if certain else np.inf,
        ).blurred(blur),
    )
    return ColumnReduction(
        layout, game, sizes, False, scale, raw, 0.0, vectors, free_map, means, origin
    )


def _square(factor: Array) -> Array:
    """The same triangle, with rows of zeros where there were fewer rows than columns."""
    square = np.zeros((factor.shape[1], factor.shape[1]))
    square[: len(factor)] = factor
    return square


def _least_shown(sizes: Vector, vectors: Array, sigma: Vector, reach: float) -> float:
    """What bounds coefficients along some directions by predictions; see :class:`Rounding`.

    By the sizes of columns, or by that of all of them together.
    """
    if not len(sigma):
        return 1.0
    each = np.linalg.norm(sizes[:, None] * vectors / sigma, axis=1)
    more = max(1.0, reach / float(np.linalg.norm(sizes)))
    return float(max(1.0 / (float(each.sum()) * more), float(sigma.min()) / reach))


def _splits(
    sizes: Vector, vectors: Array, sigma: Vector, lost: float, *, all_shown: bool
) -> tuple[tuple[float, float], ...]:
    """Ways to bound coefficients by predictions in some directions, by the norm in all others.

    See :class:`Rounding`. The others include those that the data does not show, unless nobody may
    go there.
    """
    k, order = len(sizes), np.argsort(-sigma)
    along = sizes[:, None] * vectors[:, order]
    strong = np.sqrt(np.cumsum(np.square(along / sigma[order]), axis=1)).sum(axis=0)
    behind = np.zeros(along.shape)
    behind[:, :-1] = np.cumsum(np.square(along[:, :0:-1]), axis=1)[:, ::-1]
    if len(sigma) < k and not all_shown:
        hidden = np.eye(k) - vectors @ vectors.T
        behind += np.square(sizes * np.linalg.norm(hidden, axis=1))[:, None]
    # Singular vectors are orthogonal but for rounding.
    turned = 8 * k * EPS * float(sizes.sum())
    reach = float(np.linalg.norm(sizes))
    weak = np.minimum(np.sqrt(behind).sum(axis=0), reach) + lost + turned
    few = np.searchsorted(-weak, -reach * _STEPS)
    return tuple(
        (float(1.0 / strong[i]), float(weak[i])) for i in sorted({*few.tolist()}) if i < len(sigma)
    )


def _least_singular(factor: Array, sizes: Vector, apart: np.ndarray, free: int) -> float:
    """Lower bound of what bounds coefficients by predictions; zero if it is not known.

    Of the columns that stand ``apart``, over their sizes. Columns that depend on them, ``A N``,
    change their norm, by as much as rounding changes ``N``; the first ``free`` ones cost nothing.
    """
    there = sizes > 0.0
    kept, others = there & apart, there & ~apart
    others[:free] = False
    k = np.count_nonzero(kept)
    if k == 0:
        return 1.0
    columns = triangle(np.hstack([factor[:, kept] / sizes[kept], factor[:, others]]))
    if len(columns) < k:
        return 0.0
    inverse, info = lapack.dtrtri(np.asfortranarray(columns[:k, :k]))
    if info:
        return 0.0
    # A coefficient times the size of its column is no more than its row by what is predicted.
    inverse = np.triu(inverse)
    each = np.linalg.norm(inverse, axis=1)
    if not float(np.linalg.norm(each)) < 1e15:
        return 0.0
    # N is wrong by the inverse of the columns times the errors of all that N combines.
    wrong = sizes[others] + np.abs(inverse @ columns[:k, k:]).sum(axis=0)
    own = each[np.flatnonzero(kept) >= free] / sizes[free:][kept[free:]]
    return 1.0 / (float(each.sum()) + 2 * float(np.linalg.norm(own) * np.linalg.norm(wrong)))


def _split_free(
    factor: Array, f: int, error: float, sizes: Vector
) -> tuple[Array, Array, int, float, float]:
    """Eliminate the first ``f`` columns: their least squares map, and what is left of the others.

    Also their rank, what was cut off of them, relative to their lengths, and how far what they span
    turns, at most, for each unit by which they are wrong, in ``sizes``. What is left of a column
    beside the others counts if it exceeds the relative ``error`` of columns: dummies that add up to
    the intercept leave more than a few ulps.

    Dependent columns among the first leave rows of the triangle that still speak of the others;
    a pivoted decomposition hands those rows back. The map is then the smallest, by columns of unit
    length.
    """
    if f == 0:
        return np.zeros((0, factor.shape[1])), factor, 0, 0.0, 0.0
    head, others = factor[:f, :f], factor[:f, f:]
    norms = np.linalg.norm(head, axis=0)
    unit = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0.0)
    q, r, pivot = qr(head * unit, pivoting=True, check_finite=False)
    diagonal = np.abs(np.diag(r))
    least = max(8 * f * EPS, error)
    rank = int((diagonal > least * max(diagonal[0], EPS)).sum()) if diagonal[0] else 0
    turned = q.T @ others
    free_map, lower, spread = np.zeros((f, others.shape[1])), r.T, 0.0
    if rank == f:
        solved = solve_triangular(r, turned, check_finite=False)
        free_map[pivot] = solved * unit[pivot, None]
    elif rank:
        across, upper = qr(r[:rank].T, mode="economic", check_finite=False)
        solved = across @ solve_triangular(upper, turned[:rank], trans="T", check_finite=False)
        free_map[pivot] = solved * unit[pivot, None]
        lower = upper.T
    if rank:
        inverse, info = lapack.dtrtri(np.asfortranarray(lower), lower=1)
        spread = np.inf if info else float(np.linalg.norm(np.tril(inverse)))
        spread *= float(np.linalg.norm(sizes * unit))
    cut = float(np.linalg.norm(r[rank:, rank:]))
    return free_map, np.vstack([turned[rank:], factor[f:, f:]]), rank, cut, spread


def _graded_svd(core: Array, lengths: Vector, hardly: float) -> tuple[Vector, Array, Array, float]:
    """Singular values and vectors, accurate for columns of very different scale.

    Also what was cut off of each column at most, relative to its length. Columns of which less than
    ``hardly`` would be left beside the others count as dependent.

    The rank is decided on columns that were of unit length before anything was projected away:
    rounding is in units of that, however little is left. Preconditioned Jacobi then gives even the
    smallest singular values to high relative accuracy.
    """
    k = core.shape[0]
    if not core.any():
        return np.zeros(0), np.zeros((k, 0)), np.zeros((k, 0)), 0.0
    unit = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0.0)
    q, r, pivot = qr(core * unit, pivoting=True, check_finite=False)
    diagonal = np.abs(np.diag(r))
    rank = int((diagonal > max(8 * k * EPS, hardly * diagonal[0])).sum())
    if rank == 0:
        return np.zeros(0), np.zeros((k, 0)), np.zeros((k, 0)), _longest(r)
    rows = np.empty((rank, k))
    rows[:, pivot] = r[:rank] * lengths[pivot]
    right, sigma, left, wrong = _jacobi(rows.T)
    cut = _longest(r[rank:, rank:])
    if hardly > 0.0 and cut > 8 * k * EPS:
        # What these directions show beside the columns that stand for them.
        left, sigma, turn, more = _jacobi(core @ right)
        right, cut, wrong = right @ turn, 0.0, wrong + more
    else:
        left = q[:, :rank] @ left
    if wrong:
        cut += wrong / float(lengths.min(where=lengths > 0.0, initial=np.inf))
    return sigma, left, right, cut


def _jacobi(matrix: Array) -> tuple[Array, Vector, Array, float]:
    """Singular vectors and values, less zeros, each wrong in units of its row and its column.

    Also what else is wrong with the whole, where Jacobi's method did not converge.
    """
    values, left, right, work, _, info = lapack.dgejsv(matrix, joba=2, jobu=0, jobv=0, jobr=0)
    if info == 0:
        sigma, wrong = values * (work[0] / work[1]), 0.0
    else:
        left, sigma, right_t = svd(matrix, full_matrices=False, check_finite=False)
        right, wrong = right_t.T, 64 * len(matrix) * EPS * float(sigma[0])
    kept = sigma > 0.0
    return left[:, : len(sigma)][:, kept], sigma[kept], right[:, kept], wrong


def _longest(columns: Array) -> float:
    """Length of the longest column."""
    return float(np.linalg.norm(columns, axis=0).max(initial=0.0))
