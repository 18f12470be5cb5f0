"""The exact reduction of data: which side of it, and how carefully.

On the side of the columns the data is first added up: that is all that its rows are needed for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Literal

import numpy as np

from spgls.base.types import Array
from spgls.matrix import Matrix, few_rows_with
from spgls.matrix.squares import sum_rounding_one_by_one
from spgls.reduction.columns import ColumnReduction
from spgls.reduction.data import GameData
from spgls.reduction.dependence import exact_dependence
from spgls.reduction.reduction import Reduction, eigen
from spgls.reduction.rows import reduce_rows_by_gram, reduce_rows_by_qr
from spgls.reduction.second_moments import reduce_moments
from spgls.reduction.triangular import reduce_triangle

__all__ = ["Engine", "few_rows", "moment_of", "reduce_by_gram", "reduce_by_qr", "reduce_spectral"]

Engine = Literal["gram", "qr"]

#: Up to so many columns a triangular factor of their number is always affordable.
_MODERATE = 256
#: Order of matrices from which on a device may decompose them.
_LARGE = 400


def reduce_spectral(
    data: GameData, engine: Engine, reduce: Callable[[], Reduction | None] | None = None
) -> Reduction | None:
    """Reduce to singular coordinates on the smaller side of the data.

    Every game on the same data starts here; what is found once is kept with the data.

    Parameters
    ----------
    data : GameData
        The data of the game.
    engine : {"gram", "qr"}
        ``"gram"`` squares the data: the fastest way, good to about eight digits of conditioning.
        ``"qr"`` does not: about three times the work, good to what the data resolves.
    reduce : callable, optional
        Another way to the same reduction, for those who have added up the data already.

    Returns
    -------
    Reduction or None
        None where squaring the data leaves a rank undecided.
    """
    if engine not in data.reductions:
        data.reductions[engine] = _reduce(data, engine) if reduce is None else reduce()
    kept: Reduction | None = data.reductions[engine]
    return kept


def _reduce(data: GameData, engine: Engine) -> Reduction | None:
    m, n = data.matrix.shape[0], data.layout.count
    if engine == "gram":
        return reduce_rows_by_gram(data) if m < n else reduce_by_gram(data)
    # The column side alone respects columns of very different scale: worth it while affordable.
    return reduce_rows_by_qr(data) if n > max(4 * m, _MODERATE) else reduce_by_qr(data)


def reduce_by_gram(data: GameData) -> ColumnReduction | None:
    """Reduce through the Gram matrix; None where its digits cannot decide a rank."""
    if data.layout.count == 0:
        return None
    moment = moment_of(data, [(slice(None), data.matrix)])
    data.check_finite(moment)
    own = getattr(data.matrix, "decompose", None)
    # A device that holds the data is faster at large matrices than the host.
    decompose = eigen if own is None or len(moment) < _LARGE else own
    return reduce_moments(
        data.layout,
        moment,
        data.origin,
        data.matrix.shape[0],
        one_by_one=sum_rounding_one_by_one(data.matrix),
        decompose=decompose,
    )


def reduce_by_qr(data: GameData) -> ColumnReduction:
    """Reduce through a triangular factor of the data, built from blocks of rows."""
    data.check_finite()
    rows = few_rows(data, [(slice(None), data.matrix)])
    with np.errstate(over="ignore"):
        data.check_finite(np.einsum("ij,ij->j", rows, rows))
    dependence = partial(exact_dependence, data)
    return reduce_triangle(data.layout, rows, data.origin, data.matrix.shape[0], dependence)


def moment_of(data: GameData, blocks: Iterable[tuple[Any, Matrix]]) -> Array:
    """Second moments of ``S^{1/2}[X, y, z, 1]`` less the origin, over blocks of the rows.

    A number that is not finite shows in them; it is for the caller to look.
    """
    total = np.zeros((0, 0))
    with np.errstate(over="ignore", invalid="ignore"):
        # Found before what stands beside the rows takes memory.
        origin = data.origin.row
    for rows, block in blocks:
        weight = None if data.weight is None else data.weight[rows]
        with np.errstate(over="ignore", invalid="ignore"):
            moment = block.moment(data.beside(rows), weight, origin)
            total = total + moment if total.size else moment
    y, z = data.centred
    if y is z:
        n = data.matrix.shape[1]
        total[n + 1] = total[n]
        total[:, n + 1] = total[:, n]
    return total


def few_rows(data: GameData, blocks: Iterable[tuple[Any, Matrix]]) -> Array:
    """Rows with the moments of ``S^{1/2}[X, y, z, 1]`` less the origin, over blocks of the rows."""
    few = np.zeros((0, 0))
    for rows, matrix in blocks:
        root = None if data.root_weight is None else data.root_weight[rows]
        few = few_rows_with(few, matrix, data.beside(rows), root, data.origin.row)
    return few
