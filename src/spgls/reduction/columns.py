"""Spectral reduction on the side of the columns, from what the rows add up to and nothing else.

Two engines end in the same coordinates. The Gram engine is an eigen-decomposition of second
moments: fast, but squaring the data squares its condition number. The triangular engine is a
singular value decomposition of a triangular factor that respects columns of very different scale:
it resolves what the data itself resolves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import eigh, lapack, qr, solve_triangular, svd

from spgls.base.types import EPS, Array, Vector
from spgls.matrix import flush_columns
from spgls.reduction.dependence import Dependence
from spgls.reduction.layout import Layout
from spgls.reduction.reduced import ReducedGame
from spgls.reduction.reduction import Reduction, canonical_direction, eigen, remainders
from spgls.reduction.rounding import Rounding, kappa_of, kappa_of_factor, kappa_of_sums
from spgls.reduction.sums import Account, Origin, Sizes, triangle

__all__ = ["ColumnReduction", "reduce_moments", "reduce_squares", "reduce_triangle"]

#: Eigenvalues of an equilibrated Gram matrix between these are neither zero nor trustworthy.
_CERTAINLY_ZERO, _CERTAINLY_NOT = 1e-13, 1e-7
#: Directions are split where all weaker ones have this share of the data.
_STEPS = 4.0 ** -np.arange(1.0, 28.0)
#: Of columns of unit length, what less than this is left of beside the others is avoided, if asked.
_HARDLY = 1e-6


@dataclass(frozen=True, eq=False)
class ColumnReduction(Reduction):
    """A reduction whose singular vectors live in the space of the coefficients."""

    vectors: Array  # right singular vectors, one column per coordinate
    free_map: Array  # immutable coefficients are free_map @ [v, s-combination of y and z]
    means: Vector  # of columns, labels and goals less the origin; zero without an intercept
    origin: Origin

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

    def variation(self, v: Vector) -> tuple[float, float]:
        """``|PA v|^2``, and the same if the columns were perpendicular to each other."""
        along = self.game.sigma * (v @ self.vectors)
        squares = np.square(self.vectors * self.game.sigma).sum(axis=1)
        return float(along @ along), float(np.square(v) @ squares)

    def intercepts_at_origin(self, coef: Array, alpha: Vector) -> Vector:
        """The intercepts for rows and labels less the origin, where they cost no digits."""
        if not self.layout.fit_intercept:
            return np.zeros(len(alpha))
        y, z = self.means[-2:]
        gap = y - z + self.origin.apart
        return np.asarray(y + alpha * gap - self.means[:-2] @ coef)

    def intercepts(self, coef: Array, alpha: Vector) -> Vector:
        """From the means of columns, labels and goals."""
        return self.origin.intercepts(coef, self.intercepts_at_origin(coef, alpha))


def reduce_moments(
    layout: Layout,
    moment: Array,
    origin: Origin,
    rows: int,
    account: Account | None = None,
    *,
    one_by_one: float = 0.0,
    decompose: Callable[[Array], tuple[Vector, Array]] = eigen,
) -> ColumnReduction | None:
    """Reduce through second moments; None where their digits cannot decide a rank.

    Parameters
    ----------
    layout : Layout
        What the columns mean.
    moment : ndarray
        Moments of columns, labels, goals and, with an intercept, ones.
    origin : Origin
        What was subtracted from the rows before they were multiplied.
    rows : int
        How many rows were added up, at most.
    account : Account, optional
        How wrong the moments may be, where that does not follow from their sizes.
    one_by_one : float
        Relative rounding of sums whose terms were not added in pieces.
    decompose : callable
        Eigenvalues and eigenvectors of a symmetric matrix.
    """
    n, k = layout.columns, layout.count
    if k == 0:
        return None
    sizes = Sizes.from_moments(moment[n:, n:], origin)
    if account is None:
        summed, added = np.sqrt(np.diag(moment)), max(kappa_of_sums(rows), one_by_one)
    else:
        # Once as the moments are, and once more where entries of no more than that are dropped.
        summed, added = _less_ones(layout, moment, account), 2 * account.kappa
        if not _free_is_certain(layout, moment, summed, added):
            return None
    scale = summed[:n]
    raw = origin.column_sizes(scale, sizes.weight)
    doubt = 0.0 if account is None else account.kappa * np.square(account.sizes[:n])
    eliminated = _eliminate_free(layout, moment, summed, raw, doubt)
    if eliminated is None:
        return None
    kept, free_map, means, tail = eliminated
    same = np.array_equal(moment[n], moment[n + 1])
    if same:
        kept[k + 1] = kept[k]
        kept[:, k + 1] = kept[:, k]
    wrong = summed[: n + 2]
    if account is None and layout.fit_intercept:
        # What ones explain is a square of sums, each with the rounding of its own.
        wrong = wrong + np.abs(moment[-1, : n + 2]) / np.sqrt(moment[-1, -1])
    own, size_y, size_z = sizes_with_free(layout, wrong, free_map)
    reach = float(own.dot(own)) ** 0.5
    blur = layout.blur(scale)
    scale = scale[layout.changeable]
    if layout.price is not None:
        scale = scale * layout.price
    d, vectors = decompose(kept[:k, :k])
    lowest = float(d[0])
    cut = 4 * k * EPS * max(float(scale.max()) ** 2, float(d[-1]))
    seen = d > cut
    along = kept[k:, :k].dot(vectors)
    if layout.avoids_null:
        # Where the data hardly varies, its rank is for unsquared columns of unit length to tell.
        there = np.count_nonzero(np.diag(kept)[:k])
        if there and not d[k - there] > max(cut, _CERTAINLY_NOT * scale.max() ** 2):
            return None
        tail = np.zeros(2)
        d, vectors, along = d[seen], vectors[:, seen], along[:, seen]
    elif not seen.all():
        # Rounding decided that these are null: they keep what they could explain.
        tail = np.hypot(tail, np.sqrt(np.square(along[:, ~seen]).sum(axis=1)))
        d, vectors, along = d[seen], vectors[:, seen], along[:, seen]
    sigma = np.sqrt(d)
    eta, zeta = np.ascontiguousarray(along / sigma)
    if same:
        zeta = eta
    gap = float(kept[k, k] - 2 * kept[k, k + 1] + kept[k + 1, k + 1])
    nullity = 0 if layout.avoids_null else k - len(sigma)
    kappa = kappa_of(0, n) + added + 4 * k * EPS * (nullity > 0)
    # What was subtracted leaves eigenvalues that no data has.
    kappa += max(0.0, -lowest - cut) / reach**2 if reach else 0.0
    least = float(sigma[0]) / reach if len(sigma) and nullity == 0 else 0.0
    r_yy, r_zz = float(kept[k, k] - eta.dot(eta)), float(kept[k + 1, k + 1] - zeta.dot(zeta))
    game = ReducedGame(
        sigma=sigma,
        eta=eta,
        zeta=zeta,
        r_yy=max(0.0, r_yy),
        r_yz=float(kept[k, k + 1] - eta.dot(zeta)),
        r_zz=max(0.0, r_zz),
        nullity=nullity,
        free_gap=max(0.0, sizes.gap - gap),
        rounding=Rounding(
            kind="squared",
            kappa=kappa,
            reach=reach,
            y=size_y,
            # Labels less goals are then a share of the labels, and so is their error.
            z=0.0 if origin.same else size_z,
            tail_y=float(tail[0]),
            tail_z=float(tail[1]),
            least=least,
            slack=max(0.0, -r_yy) + max(0.0, -r_zz) + origin.slack(sizes.centred_y),
        ).blurred(blur),
    )
    return ColumnReduction(
        layout, game, sizes, True, scale, raw, cut, vectors, free_map, means, origin
    )


def reduce_squares(
    layout: Layout, moment: Array, origin: Origin, rows: int, account: Account
) -> ColumnReduction:
    """Reduce through rows that have the given second moments, where nothing but those is left.

    Columns of very different scale keep their own digits, and every rank is decided somehow. What
    squaring cost is charged as such.

    Parameters
    ----------
    layout, moment, origin, rows, account
        As for :func:`reduce_moments`.
    """
    n = layout.columns
    # Of a column that is no longer than rounding can make it, its products with others are kept:
    # it counts as that long.
    doubt = account.kappa * np.square(account.sizes)
    shown = np.diag(moment) >= doubt
    shown |= ~moment.any(axis=1)
    if not shown.all():
        moment = moment.copy()
        np.fill_diagonal(moment, np.where(shown, np.diag(moment), doubt))
    own_kappa = (2.0 if shown.all() else 4.0) * account.kappa
    root = np.sqrt(np.diag(moment))
    unit = np.divide(1.0, root, out=np.zeros_like(root), where=root > 0.0)
    # One after the other: their product may not be a number.
    values, vectors = eigen(moment * unit[:, None] * unit)
    few = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T * root
    if np.array_equal(moment[n], moment[n + 1]):
        few[:, n + 1] = few[:, n]
    summed = _less_ones(layout, moment, account)
    accuracy = kappa_of_factor(rows, n)
    # As large as the account says, whatever the factor's own rounding is measured by.
    found = reduce_triangle(layout, few, origin, rows, account=Account(summed, accuracy))
    game, own = found.game, found.game.rounding
    kappa = own_kappa + kappa_of(0, n) + max(0.0, -float(values[0])) + 2 * own.kappa
    certain = _free_is_certain(layout, moment, summed, own_kappa)
    rounding = replace(
        own,
        kind="squared",
        kappa=kappa,
        # As many directions as rows prove nothing where the rows are not these.
        least=0.0 if game.nullity else own.certain,
        splits=(),
        slack=own.slack if certain else np.inf,
    )
    return replace(found, game=replace(game, rounding=rounding), squared=True)


def _less_ones(layout: Layout, moment: Array, account: Account) -> Vector:
    """Sizes by which moments are wrong once ones have explained what they can."""
    sizes = account.sizes
    if not layout.fit_intercept:
        return sizes
    weight = float(moment[-1, -1])
    return np.asarray(sizes + np.abs(moment[-1]) * sizes[-1] / weight)


def _free_is_certain(layout: Layout, moment: Array, sizes: Vector, kappa: float) -> bool:
    """Whether immutable columns are further from dependent than rounding can have moved them."""
    free = layout.immutable
    if not len(free):
        return True
    rest = moment[np.ix_(free, free)]
    if layout.fit_intercept:
        sums = moment[-1, free]
        rest = rest - np.outer(sums, sums) / moment[-1, -1]
    there = sizes[free] > 0.0
    unit = 1.0 / sizes[free][there]
    if not len(unit):
        return True
    lowest = float(eigen(rest[np.ix_(there, there)] * unit[:, None] * unit)[0][0])
    return lowest > 8 * len(unit) * kappa


def sizes_with_free(layout: Layout, sizes: Vector, free_map: Array) -> tuple[Vector, float, float]:
    """Sizes of priced columns, labels and goals, each with what was subtracted from it.

    A column less its fit on the immutable ones has the rounding of both.
    """
    n, own = layout.columns, sizes
    if layout.price is not None:
        own = sizes[np.append(layout.changeable, [n, n + 1])]
        own[:-2] *= layout.price
    if len(layout.immutable):
        own = own + sizes[layout.immutable].dot(np.abs(free_map))
    y, z = own[-2:].tolist()
    return own[:-2], y, z


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
    free_map, rest, rank, free_cut = _split_free(factor[lead:, lead:], f, kappa)
    if layout.avoids_null:
        # Of columns that immutable ones nearly explain, what is left is such a direction too.
        rest[:, :k][:, np.linalg.norm(rest[:, :k], axis=0) <= _HARDLY * scale] = 0.0
    lost = flush_columns(rest[:, :k], before, lead + f)
    norms = after[n:]
    flush_columns(rest[:, k:], norms, lead + f)
    # Goals that differ from the labels by what the learner may choose freely equal them.
    same = bool(np.linalg.norm(rest[:, k] - rest[:, k + 1]) <= 1e-14 * norms.sum())
    corner = _square(triangle(rest))
    core, targets, tail = corner[:k, :k], corner[:k, k:], corner[k:, k:]
    sigma, left, vectors, cut = _graded_svd(core, scale, _HARDLY if layout.avoids_null else 0.0)
    coordinates = left.T @ targets
    outside = np.vstack([targets - left @ coordinates, tail])
    # Coordinates below the rounding of their vector are zero, and lowest singular values that
    # differ by rounding are one: the hard case is decided by such equalities.
    tiny = np.abs(coordinates) <= 8 * EPS * norms
    zeroed = np.linalg.norm(np.where(tiny, coordinates, 0.0), axis=0)
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
    own, size_y, size_z = sizes_with_free(layout, after, free_map)
    reach = float(np.hypot(np.linalg.norm(own), lost / kappa))
    size_y, size_z = (np.array([size_y, size_z]) + zeroed / kappa).tolist()
    short = rank < np.count_nonzero(after[free]) or len(sigma) < np.count_nonzero(scale)
    free_rows = all_rows = count
    if short and dependence is not None and not layout.avoids_null:
        columns, free_rows, all_rows = dependence()
        apart[columns] = False
    certain = rank in (np.count_nonzero(apart[free] & (after[free] > 0.0)), free_rows - lead)
    certain |= layout.avoids_null
    least = 0.0
    if short and layout.avoids_null:
        # Only these directions are used, and each of them shows in predictions.
        least = _least_shown(scale, vectors, sigma, reach)
    elif certain and len(sigma) == np.count_nonzero(apart[layout.changeable] & (scale > 0.0)):
        columns = np.concatenate([free, layout.changeable])
        least = _least_singular(known, np.concatenate([after[free], scale]), apart[columns], f)
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
        ).blurred(layout.blur(after[:n])),
    )
    return ColumnReduction(
        layout, game, sizes, False, scale, raw, 0.0, vectors, free_map, means, origin
    )


def _eliminate_free(
    layout: Layout, moment: Array, summed: Vector, raw: Vector, doubt: Vector | float
) -> tuple[Array, Array, Vector, Vector] | None:
    """Moments of changeable columns, labels and goals after intercept and immutable columns.

    Also the map to the immutable coefficients, the means, and what columns taken for constant may
    have explained of labels and goals; None where rounding would decide.
    ``summed`` are the sizes of columns, labels and goals less the origin, ``raw`` those of the
    columns as they came, ``doubt`` what their squares may be wrong by.
    """
    n, free = layout.columns, layout.immutable
    scale = summed[:n]
    means, rest, tail = np.zeros(n + 2), moment, np.zeros(2)
    if layout.fit_intercept:
        # Ones explain first: only so are coefficients of columns that depend on each other those
        # of centred columns.
        sums, top = moment[-1, :-1], moment[-1, -1]
        means, root = sums / top, sums / np.sqrt(top)
        rest = moment[:-1, :-1] - np.outer(root, root)
        # A column that is constant up to the rounding of its own mean is the intercept.
        left = np.diag(rest)[:n]
        flat = left <= 64 * EPS**2 * raw**2
        if len(free):
            flat[free] |= left[free] <= _CERTAINLY_ZERO * scale[free] ** 2
            if (~flat[free] & (left[free] < _CERTAINLY_NOT * scale[free] ** 2)).any():
                return None
        constant = np.flatnonzero(flat)
        doubtful = flat & (scale > 0.0)
        if doubtful.any():
            # Of a column that is as short as rounding, its products with others would be lost.
            hidden = doubtful & (left < doubt) & np.asarray(rest.any(axis=1))[:n]
            if doubtful[free].any() or hidden.any():
                return None
            size = 8 * EPS * raw[doubtful]
            if layout.cost is not None:
                size = size * np.sqrt(layout.cost[doubtful])
            tail = np.linalg.norm(size) * summed[n : n + 2]
        rest[constant] = 0.0
        rest[:, constant] = 0.0
    order, kept = np.append(layout.changeable, [n, n + 1]), rest
    if layout.price is not None:
        price = np.append(layout.price, [1.0, 1.0])
        kept = rest[np.ix_(order, order)] * np.outer(price, price)
    free_map = np.zeros((0, len(order)))
    if len(free):
        own = rest[np.ix_(free, free)]
        inverse = _certain_inverse(own)
        if inverse is None:
            return None
        mixed = rest[np.ix_(free, order)] * price
        free_map = inverse @ mixed
        free_map += inverse @ (mixed - own @ free_map)
        # What is left of columns less what others explain: an error of the map counts squared.
        explained = mixed.T @ free_map
        explained = explained + explained.T - free_map.T @ (own @ free_map)
        kept = kept - (explained + explained.T) / 2
    if rest is not moment or len(free):
        before, after = (_target_squares(t) for t in (moment[n : n + 2, n : n + 2], kept[-2:, -2:]))
        most = 1 - _CERTAINLY_NOT
        if any(b - a > most * abs(b) for b, a in zip(before, after, strict=True)):
            return None
    return kept, free_map, means, tail


def _target_squares(gram: Array) -> tuple[float, float, float]:
    """Squared norms of labels, goals and their difference."""
    (yy, yz), (_, zz) = gram.tolist()
    return yy, zz, yy - 2 * yz + zz


def _certain_inverse(gram: Array) -> Array | None:
    """Pseudo-inverse of a Gram matrix, or None if its rank is a matter of opinion."""
    root = np.sqrt(np.diag(gram))
    unit = np.divide(1.0, root, out=np.zeros_like(root), where=root > 0.0)
    values, vectors = eigh(gram * np.outer(unit, unit), check_finite=False)
    kept = values >= _CERTAINLY_NOT
    # Columns of zeros have no say; any other that depends on the rest does so up to rounding.
    if np.count_nonzero(kept) < np.count_nonzero(root):
        return None
    scaled = unit[:, None] * vectors[:, kept]
    return np.asarray((scaled / values[kept]) @ scaled.T)


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


def _split_free(factor: Array, f: int, error: float) -> tuple[Array, Array, int, float]:
    """Eliminate the first ``f`` columns: their least squares map, and what is left of the others.

    Also their rank, and what was cut off of them, relative to their lengths. What is left of a
    column beside the others counts if it exceeds the relative ``error`` of columns: dummies that
    add up to the intercept leave more than a few ulps.

    Dependent columns among the first leave rows of the triangle that still speak of the others;
    a pivoted decomposition hands those rows back. The map is then the smallest, by columns of unit
    length.
    """
    if f == 0:
        return np.zeros((0, factor.shape[1])), factor, 0, 0.0
    head, others = factor[:f, :f], factor[:f, f:]
    norms = np.linalg.norm(head, axis=0)
    unit = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0.0)
    q, r, pivot = qr(head * unit, pivoting=True, check_finite=False)
    diagonal = np.abs(np.diag(r))
    least = max(8 * f * EPS, error)
    rank = int((diagonal > least * max(diagonal[0], EPS)).sum()) if diagonal[0] else 0
    turned = q.T @ others
    free_map = np.zeros((f, others.shape[1]))
    if rank == f:
        solved = solve_triangular(r, turned, check_finite=False)
        free_map[pivot] = solved * unit[pivot, None]
    elif rank:
        across, lower = qr(r[:rank].T, mode="economic", check_finite=False)
        solved = across @ solve_triangular(lower, turned[:rank], trans="T", check_finite=False)
        free_map[pivot] = solved * unit[pivot, None]
    cut = float(np.linalg.norm(r[rank:, rank:]))
    return free_map, np.vstack([turned[rank:], factor[f:, f:]]), rank, cut


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
    right, sigma, left = _jacobi(rows.T)
    cut = _longest(r[rank:, rank:])
    if hardly > 0.0 and cut > 8 * k * EPS:
        # What these directions show beside the columns that stand for them.
        left, sigma, turn = _jacobi(core @ right)
        return sigma, left, right @ turn, 0.0
    return sigma, q[:, :rank] @ left, right, cut


def _jacobi(matrix: Array) -> tuple[Array, Vector, Array]:
    """Singular vectors and values, less zeros, each wrong in units of its row and its column."""
    values, left, right, work, _, info = lapack.dgejsv(matrix, joba=2, jobu=0, jobv=0, jobr=0)
    if info == 0:
        sigma = values * (work[0] / work[1])
    else:
        left, sigma, right_t = svd(matrix, full_matrices=False, check_finite=False)
        right = right_t.T
    kept = sigma > 0.0
    return left[:, : len(sigma)][:, kept], sigma[kept], right[:, kept]


def _longest(columns: Array) -> float:
    """Length of the longest column."""
    return float(np.linalg.norm(columns, axis=0).max(initial=0.0))
