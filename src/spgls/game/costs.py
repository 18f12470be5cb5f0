"""Costs of change as users give them, resolved for the columns of some data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from scipy.linalg import lapack
from scipy.sparse.csgraph import connected_components

from spgls.base.frames import closest_keys, column_names, nameless, resolve_cost
from spgls.base.types import EPS, Array, Number, Numbers, Table, Vector
from spgls.base.validation import as_numbers
from spgls.game.actions import Actions, Switches
from spgls.game.moves import Cost, Moves
from spgls.matrix import block_diagonal

__all__ = ["Costs", "one_per_column", "read_cost"]

#: What features cost to change, as users may say it: a number per column, a matrix, some by column
#: name, or actions.
Costs: TypeAlias = Numbers | Table | Mapping[str, Number | Switches] | Actions | Moves

#: A matrix may miss symmetry by the rounding of how it was made, and no more.
_SYMMETRY = 1e-10
#: Reciprocal condition, at unit diagonal, up to which a matrix counts as singular.
_SINGULAR = 1e-14


def read_cost(
    feature_cost: Any,
    columns: int,
    names: Sequence[str] | None,
    table: str = "X",
    part: str = "column",
) -> Cost:
    """Costs of the columns of some data.

    Parameters
    ----------
    feature_cost : array-like, mapping, Actions, Moves or None
        One positive number per column, ``inf`` for those that nobody can change. Or a symmetric
        positive definite matrix. Or a mapping from names to numbers or :class:`Switches`; see
        :func:`~spgls.base.frames.resolve_cost` for what a name means. Or :class:`Actions`.
    columns : int
        Number of columns.
    names : list of str or None
        Their names.
    table, part : str
        How errors call the data, and what of it has a name.

    Returns
    -------
    ndarray of shape (columns,), Moves or None
        None where all are one.
    """
    if feature_cost is None:
        return None
    if isinstance(feature_cost, Moves):
        if feature_cost.columns != columns:
            raise ValueError(
                f"feature_cost must be for the {columns} columns of {table}; got {feature_cost!r} "
                f"of {feature_cost.columns} columns."
            )
        return feature_cost
    if isinstance(feature_cost, Actions):
        return feature_cost.moves(columns, names, table, part)
    if isinstance(feature_cost, Switches):
        raise TypeError(
            "feature_cost takes Switches for a group of columns, in a mapping such as "
            "{'region': Switches(cost=4.0)}; got one without a group."
        )
    if isinstance(feature_cost, Mapping):
        if any(isinstance(value, Switches) for value in feature_cost.values()):
            return _with_switches(feature_cost, columns, names, table, part)
    elif _is_table(feature_cost):
        return _of_matrix(feature_cost, columns, names, table, part)
    return resolve_cost(feature_cost, columns, names, table, part)


def one_per_column(cost: Cost, columns: int) -> Vector:
    """A number for each column that tells what it costs by itself, ``inf`` if it is immutable."""
    if isinstance(cost, Moves):
        return cost.feature_cost
    return np.ones(columns) if cost is None else cost


def _with_switches(
    given: Mapping[Any, Any], columns: int, names: Sequence[str] | None, table: str, part: str
) -> Moves:
    """Costs by name, some of which are of groups whose sum stays."""
    if names is None:
        raise ValueError(nameless(table, part))
    groups = {key: value for key, value in given.items() if isinstance(value, Switches)}
    plain = {key: value for key, value in given.items() if key not in groups}
    cost = resolve_cost(plain | dict.fromkeys(groups, 1.0), columns, names, table, part)
    assert cost is not None
    meant = closest_keys(given, names)
    blocks, prices, called, closed = [], [], [], []
    grouped = np.zeros(columns, dtype=bool)
    for key, switches in groups.items():
        where = np.array([at for at, one in enumerate(meant) if one == key], dtype=np.intp)
        if len(where) < 2:
            raise ValueError(
                f"feature_cost[{key!r}] is Switches, between the columns of a one-hot group; "
                f"{len(where)} column of {table} is called so. Encode it with a column for each "
                "category (OneHotEncoder without drop), or give a number."
            )
        grouped[where] = True
        closed.append(where)
        # Towards each category, away from all alike.
        rows = sp.coo_array(np.eye(len(where)) - 1.0 / len(where))
        block = sp.csr_array((rows.data, (rows.row, where[rows.col])), shape=(len(where), columns))
        blocks.append(block)
        prices.append(np.full(len(where), float(switches.cost)))
        called += [f"{key}: {names[at]}" for at in where.tolist()]
    alone = np.flatnonzero(~grouped)
    single = sp.csr_array(
        (np.ones(len(alone)), (np.arange(len(alone)), alone)), shape=(len(alone), columns)
    )
    effects = sp.csr_array(sp.vstack([single, *blocks]))
    called = [names[at] for at in alone.tolist()] + called
    return Moves(effects, np.concatenate([cost[alone], *prices]), tuple(called), closed)


def _is_table(feature_cost: Any) -> bool:
    """Whether costs are given as a square of numbers."""
    shape = getattr(feature_cost, "shape", None)
    if not isinstance(shape, tuple):
        if not isinstance(feature_cost, list | tuple):
            return False
        try:
            shape = np.shape(feature_cost)
        except ValueError:
            return False
    return len(shape) == 2 and shape[0] == shape[1]


def _of_matrix(
    given: Any, columns: int, names: Sequence[str] | None, table: str, part: str
) -> Cost:
    """Moves ``d`` that cost ``d'Cd``, from a symmetric positive definite ``C``."""
    told = column_names(given)
    if told is not None and names is not None and told != list(names):
        if set(told) != set(names) or len(told) != len(names):
            raise ValueError(
                f"feature_cost is a matrix with names that are not those of the {part}s of "
                f"{table}. Name its rows and columns as {table} does."
            )
        order = [told.index(name) for name in names]
        given = np.asarray(given)[np.ix_(order, order)]
    whole = given if sp.issparse(given) else as_numbers(given, "feature_cost")
    if whole.shape != (columns, columns):
        raise ValueError(
            f"feature_cost must be one number per {part} of {table}, {columns}, or a symmetric "
            f"matrix of shape {(columns, columns)}; got shape {tuple(whole.shape)}."
        )
    matrix = sp.csr_array(whole, dtype=np.float64)
    matrix.eliminate_zeros()
    if not np.isfinite(matrix.data).all():
        raise ValueError(
            "feature_cost must be finite where it is a matrix. For features that nobody can change "
            "pass one cost per column, or Actions."
        )
    diagonal = matrix.diagonal()
    wrong = np.flatnonzero(~(diagonal > 0.0))
    if len(wrong):
        raise ValueError(
            f"feature_cost must be positive definite; entry ({wrong[0]}, {wrong[0]}) of its "
            f"diagonal is {diagonal[wrong[0]]:g}."
        )
    unit = sp.diags_array(1.0 / np.sqrt(diagonal))
    skew = abs(unit @ (matrix - matrix.T) @ unit)
    if skew.nnz and skew.max() > _SYMMETRY:
        i, j = np.unravel_index(int(skew.toarray().argmax()), skew.shape)
        raise ValueError(
            f"feature_cost must be symmetric where it is a matrix; entry ({i}, {j}) is "
            f"{matrix[i, j]:g}, entry ({j}, {i}) is {matrix[j, i]:g}. Pass (C + C.T)/2."
        )
    matrix = (matrix + matrix.T) / 2.0
    if matrix.nnz == columns:
        return np.asarray(diagonal)
    return Moves(_inverse_factor(matrix), np.ones(columns))


def _inverse_factor(matrix: sp.csr_array) -> Any:
    """``B`` with ``B'B = C^{-1}``, block by block of columns that have to do with each other."""
    count, block_of = connected_components(matrix, directed=False)
    if count == 1:
        return _inverse_block(matrix.toarray(), np.arange(matrix.shape[0]))
    order = np.argsort(block_of, kind="stable")
    blocks = np.split(order, np.cumsum(np.bincount(block_of))[:-1])
    inverse = [_inverse_block(matrix[b][:, b].toarray(), b) for b in blocks]
    assembled = block_diagonal(inverse)
    back = np.argsort(order)
    return sp.csr_array(assembled[:, back])


def _inverse_block(block: Array, where: np.ndarray) -> Array:
    """The same of one block."""
    scale = 1.0 / np.sqrt(np.diag(block))
    unit = block * np.outer(scale, scale)
    lower, info = lapack.dpotrf(unit, lower=1, clean=1)
    sure = info == 0 and lapack.dpocon(lower, float(np.abs(unit).sum(axis=0).max()), uplo="L")[0]
    if not sure or sure < max(_SINGULAR, len(block) * EPS):
        least = float(np.linalg.eigvalsh(unit)[0])
        some = ", ".join(map(str, where[:6].tolist())) + (", ..." if len(where) > 6 else "")
        raise ValueError(
            "feature_cost must be positive definite where it is a matrix: every change has to cost "
            f"something. Scaled to a unit diagonal, its smallest eigenvalue is {least:.3g}, among "
            f"columns {some}. Add a little to the diagonal, or pass Actions."
        )
    inverse, _ = lapack.dtrtri(lower, lower=1)
    return np.asarray(np.tril(inverse) * scale)
