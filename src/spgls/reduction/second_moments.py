"""The Gram engine: an eigen-decomposition of second moments, and what squaring costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from spgls.base.types import EPS, Array, Vector
from spgls.reduction.columns import ColumnReduction, sizes_with_free
from spgls.reduction.layout import Layout
from spgls.reduction.reduced import ReducedGame
from spgls.reduction.reduction import eigen
from spgls.reduction.rounding import Rounding, kappa_of, kappa_of_factor, kappa_of_sums
from spgls.reduction.sums import Account, Origin, Sizes
from spgls.reduction.triangular import reduce_triangle

__all__ = ["reduce_moments", "reduce_squares"]

#: Eigenvalues of an equilibrated Gram matrix between these are neither zero nor trustworthy.
_CERTAINLY_ZERO, _CERTAINLY_NOT = 1e-13, 1e-7
#: Immutable columns whose rounding is more than this of what they are from dependent prove nothing.
_DOUBTED = 1 / 8


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
        summed, added = moment.diagonal() ** 0.5, max(kappa_of_sums(rows), one_by_one)
        doubt: Vector | float = 0.0
        # What ones explain is a square of sums, each with the rounding of its own.
        wrong = _less_ones(layout, moment, summed)
    else:
        # Once as the moments are, and once more where entries of no more than that are dropped.
        summed = wrong = _less_ones(layout, moment, account.sizes)
        added, doubt = 2 * account.kappa, account.kappa * np.square(account.sizes[:n])
    scale = summed[:n]
    raw = origin.column_sizes(scale, sizes.weight)
    blur = layout.blur(scale)
    eliminated = _eliminate_free(layout, moment, (summed, raw, wrong), added + 3 * blur, doubt)
    if eliminated is None:
        return None
    kept, free_map, means, tail, turned = eliminated
    same = np.array_equal(moment[n], moment[n + 1])
    if same:
        kept[k + 1] = kept[k]
        kept[:, k + 1] = kept[:, k]
    own = turned * sizes_with_free(layout, wrong[: n + 2], free_map)
    size_y, size_z = own[-2:].tolist()
    own = own[:-2]
    reach = float(own.dot(own)) ** 0.5
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
    r_yz = float(kept[k, k + 1] - eta.dot(zeta))
    # What no data has is taken for nothing, in labels, in goals and between them.
    below = sum(max(0.0, -r) for r in (r_yy, r_zz, max(0.0, r_yy) + max(0.0, r_zz) - 2 * r_yz))
    game = ReducedGame(
        sigma=sigma,
        eta=eta,
        zeta=zeta,
        r_yy=max(0.0, r_yy),
        r_yz=r_yz,
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
            slack=below + origin.slack(sizes.centred_y),
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
    summed = _less_ones(layout, moment, account.sizes)
    accuracy = kappa_of_factor(rows, n)
    # As large as the account says, whatever the factor's own rounding is measured by.
    found = reduce_triangle(layout, few, origin, rows, account=Account(summed, accuracy))
    game, own = found.game, found.game.rounding
    kappa = own_kappa + kappa_of(0, n) + max(0.0, -float(values[0])) + 2 * own.kappa
    certain = _free_is_certain(layout, moment, summed, kappa)
    turned = 1.0 / (1.0 - _DOUBTED) if len(layout.immutable) else 1.0
    rounding = replace(
        own,
        kind="squared",
        kappa=kappa,
        reach=turned * own.reach,
        y=turned * own.y,
        z=turned * own.z,
        # As many directions as rows prove nothing where the rows are not these.
        least=0.0 if game.nullity else own.certain / turned,
        splits=(),
        slack=own.slack if certain else np.inf,
    )
    return replace(found, game=replace(game, rounding=rounding), squared=True)


def _less_ones(layout: Layout, moment: Array, sizes: Vector) -> Vector:
    """Sizes by which moments are wrong once ones have explained what they can."""
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
    return _DOUBTED * lowest > len(unit) * kappa


class _Eliminated(NamedTuple):
    """What intercept and immutable columns leave of the others.

    Attributes
    ----------
    kept : ndarray
        Moments of changeable columns, labels and goals.
    free_map : ndarray
        From these to immutable coefficients.
    means : ndarray
        Of columns, labels and goals.
    tail : ndarray
        What columns taken for constant may have explained of labels and goals.
    turned : float
        How many times larger the map may be than it seems.
    """

    kept: Array
    free_map: Array
    means: Vector
    tail: Vector
    turned: float


def _eliminate_free(
    layout: Layout,
    moment: Array,
    lengths: tuple[Vector, Vector, Vector],
    kappa: float,
    doubt: Vector | float,
) -> _Eliminated | None:
    """Take out what intercept and immutable columns explain; None where rounding would decide.

    Parameters
    ----------
    layout, moment
        As for :func:`reduce_moments`.
    lengths : tuple of three ndarrays
        Sizes of columns, labels and goals less the origin, those of the columns as they came, and
        those by which moments are wrong,
    kappa : float
        times this and each other.
    doubt : ndarray or float
        What squares of the columns may be wrong by.
    """
    n, free = layout.columns, layout.immutable
    summed, raw, wrong = lengths
    scale, turned = summed[:n], 1.0
    means, rest, tail = np.zeros(n + 2), moment, np.zeros(2)
    if layout.fit_intercept:
        # Ones explain first: only so are coefficients of columns that depend on each other those
        # of centred columns.
        sums, top = moment[-1, :-1], moment[-1, -1]
        means, root = sums / top, sums / np.sqrt(top)
        rest = moment[:-1, :-1] - root[:, None] * root
        # A column that is constant up to the rounding of its own mean is the intercept.
        left = rest.diagonal()[:n]
        flat = left <= 64 * EPS**2 * raw**2
        if len(free):
            flat[free] |= left[free] <= _CERTAINLY_ZERO * scale[free] ** 2
            if (~flat[free] & (left[free] < _CERTAINLY_NOT * scale[free] ** 2)).any():
                return None
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
        if flat.any():
            constant = np.flatnonzero(flat)
            rest[constant] = 0.0
            rest[:, constant] = 0.0
    kept, free_map = rest, np.zeros((0, layout.count + 2))
    if layout.price is not None:
        order = np.append(layout.changeable, [n, n + 1])
        price = np.append(layout.price, [1.0, 1.0])
        kept = rest[np.ix_(order, order)] * np.outer(price, price)
    if len(free):
        own = rest[np.ix_(free, free)]
        certain = _certain_inverse(own, wrong[free], kappa)
        if certain is None:
            return None
        inverse, turned = certain
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
    return _Eliminated(kept, free_map, means, tail, turned)


def _target_squares(gram: Array) -> tuple[float, float, float]:
    """Squared norms of labels, goals and their difference."""
    (yy, yz), (_, zz) = gram.tolist()
    return yy, zz, yy - 2 * yz + zz


def _certain_inverse(gram: Array, sizes: Vector, kappa: float) -> tuple[Array, float] | None:
    """Pseudo-inverse of a Gram matrix, or None if its rank is a matter of opinion.

    Entries are wrong by ``kappa`` times the sizes of their columns. Also how many times larger
    fits by the true matrix may be.
    """
    square = np.diag(gram)
    if (sizes[~(square > 0.0)] > 0.0).any():
        return None
    root = np.sqrt(square)
    unit = np.divide(1.0, root, out=np.zeros_like(root), where=root > 0.0)
    values, vectors = eigh(gram * np.outer(unit, unit), check_finite=False)
    kept = values >= _CERTAINLY_NOT
    # Columns of zeros have no say; any other that depends on the rest does so up to rounding.
    if np.count_nonzero(kept) < np.count_nonzero(root):
        return None
    least = float(values.min(where=kept, initial=1.0))
    doubted = kappa * len(root) * float((sizes * unit).max()) ** 2 / least
    if doubted > _DOUBTED:
        return None
    scaled = unit[:, None] * vectors[:, kept]
    return (scaled / values[kept]) @ scaled.T, 1.0 / (1.0 - doubted)
