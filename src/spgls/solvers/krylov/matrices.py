"""What a Krylov space proves at a multiplier: a matrix below ``S(nu)``, measured on the data.

For ``b`` spanned by labels and goals ``|b|^2_S(nu) = min over x of |Ax - b|^2 + nu |x|^2``, and for
any ``x`` at all, with ``r = Ax - b`` and ``rho = A'r + nu x``,

    |b|^2_S(nu) = |r|^2 + nu |x|^2 - rho'(A'A + nu)^{-1} rho.

Coefficients ``x`` for labels and for goals come from the space. Then ``r`` and ``rho`` are linear
in ``b``, formed anew for several multipliers in one read of the data, and all of this is a 2 x 2
matrix, from which the most is taken off that rounding can have done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from spgls.base.types import Array, Vector
from spgls.solvers.iterative.prove import Prover
from spgls.solvers.iterative.rulers import lengths

__all__ = ["Matrices", "matrices_at"]

_NOTHING = np.zeros(0), np.zeros((0, 3)), np.zeros(0, dtype=bool)
#: Bytes of one array of coefficients, or of errors.
_BYTES = 2e6


class Matrices(NamedTuple):
    """Multipliers, and ``M_yy, M_yz, M_zz`` of each, a row each.

    Also which of them rest on an estimate, and how many reads of the data it took. A multiplier may
    have two rows, a better one by estimate.
    """

    nu: Vector
    M: Array
    estimated: np.ndarray
    reads: int


def matrices_at(
    prover: Prover, nu: Vector, lift: Callable[[Vector], tuple[Array, Array]], floor: float
) -> Matrices:
    """Matrices below ``S(nu)``, from one read of the data for as many as memory allows.

    Parameters
    ----------
    prover : Prover
        What measures, and what is known of the curvature.
    nu : ndarray of shape (N,)
        Multipliers.
    lift : callable
        Coefficients for labels and for goals at some of them, a column each.
    floor : float
        What no eigenvalue of ``A'A`` is below, as far as an estimate tells; zero if none was made.
    """
    width = max(int(_BYTES / (16 * sum(prover.data.matrix.shape))), 2)
    some = [nu[at : at + width] for at in range(0, len(nu), width)]
    parts = [_some(prover, own, *lift(own), floor) for own in some]
    rows = [row for part in parts for row in part]
    own, M, estimated = (np.array(part) for part in zip(*rows, strict=True)) if rows else _NOTHING
    return Matrices(own, M, estimated, len(some))


def _some(
    prover: Prover, nu: Vector, x_y: Array, x_z: Array, floor: float
) -> Iterator[tuple[float, Vector, bool]]:
    """Multiplier, matrix, and whether it rests on an estimate."""
    # Coefficients that are not finite prove nothing, and would spoil products with the others.
    there = np.isfinite(x_y).all(axis=0) & np.isfinite(x_z).all(axis=0)
    nu, x_y, x_z = nu[there], x_y[:, there], x_z[:, there]
    if not len(nu):
        return
    fresh, count = prover.fresh, len(nu)
    rulers, one, none = fresh.rulers, np.ones(count), np.zeros(count)
    x = np.hstack([x_y, x_z])
    y, z = np.append(one, none), np.append(none, one)
    slope, square, left = fresh.product(x, y, -z)
    terms = rulers.columns @ np.abs(x) + y * rulers.y + z * rulers.z
    slack = rulers.terms(x, y, z) + rulers.unit * terms
    size = np.sqrt(square)
    # What is wrong with a product of labels and goals is shared out by their sizes.
    balance = rulers.y / rulers.z if rulers.y > 0.0 and rulers.z > 0.0 else 1.0
    rho = slope + np.append(nu, nu) * x
    known = _at_zero(prover, nu, rho)
    for i in range(count):
        pair = [i, count + i]
        # r_y'r_z = x_z'A'r_y - z'r_y.
        cross = float(x_z[:, i] @ slope[:, i]) - float(left[1, i])
        errors = _errors(size[pair], slack[pair])
        own = x[:, pair]
        gram = own.T @ own * nu[i]
        errors += rulers.unit * abs(nu[i]) * np.outer(lengths(own), lengths(own))
        moved = slack[pair] + rulers.unit * size[pair]
        doubt = np.multiply.outer(rulers.columns, moved) + rulers.unit * abs(nu[i]) * np.abs(own)
        whole = np.array([[square[i], cross], [cross, square[count + i]]]) + gram
        for lost, estimated in _losses(
            prover, float(nu[i]), floor, rho[:, pair], doubt, known[:, pair]
        ):
            M = _below(whole - lost, errors, balance)
            if np.isfinite(M).all():
                yield float(nu[i]), M, estimated


def _errors(size: Vector, slack: Vector) -> Array:
    """What rounding can have done to inner products of errors."""
    both = np.multiply.outer(size, slack)
    return np.asarray(both + both.T + np.multiply.outer(slack, slack))


def _below(whole: Array, errors: Array, balance: float) -> Vector:
    """A matrix below all that differ from one by errors of these sizes, by its three entries."""
    e_y, e_yz, e_z = errors[0, 0], errors[0, 1], errors[1, 1]
    return np.array(
        [whole[0, 0] - e_y - e_yz * balance, whole[0, 1], whole[1, 1] - e_z - e_yz / balance]
    )


def _holds_at_zero(prover: Prover, nu: Vector | float) -> Any:
    """Where the metric of ``A'A`` itself is used: what holds at zero holds to the right of it."""
    return (nu == 0.0) | ((nu > 0.0) & prover.curvature.many)


def _at_zero(prover: Prover, nu: Vector, rho: Array) -> Array:
    """What that metric makes of ``rho``, of all columns at once; zeros where it is not used."""
    if not prover.can_square or not _holds_at_zero(prover, nu).any():
        return np.zeros((0, rho.shape[1]))
    some, metric = prover.curvature.at_zero
    roots = np.zeros((len(some), rho.shape[1]))
    if metric is not None:
        used = np.tile(_holds_at_zero(prover, nu), 2)
        roots[:, used] = metric.root(rho[np.ix_(some, used)])
    return roots


def _losses(
    prover: Prover, nu: float, floor: float, rho: Array, doubt: Array, known: Array
) -> Iterator[tuple[Array, bool]]:
    """At least ``rho'(A'A + nu)^{-1} rho``, and whether that rests on an estimate."""
    if nu > 0.0:
        yield _squares(rho / np.sqrt(nu), lengths(doubt) / np.sqrt(nu)), False
    if prover.can_square and _holds_at_zero(prover, nu):
        some, metric = prover.curvature.at_zero
        # Not what was left out there: a null vector in the coefficients is paid for by the
        # multiplier.
        if metric is not None and (nu == 0.0 or len(some) == len(rho)):
            yield _squares(known, metric.spread(doubt[some])), False
    elif prover.can_square and not prover.curvature.many:
        metric = prover.curvature.alone(nu)
        if metric is not None:
            yield _squares(metric.root(rho), metric.spread(doubt)), False
    elif not prover.can_square and floor > 0.0 and nu + floor > 0.0:
        root = np.sqrt(nu + floor)
        yield _squares(rho / root, lengths(doubt) / root), True


def _squares(root: Array, doubt: Vector) -> Array:
    """At least ``(|root b| + doubt'|b|)^2``, as a matrix."""
    return np.asarray(1.1 * root.T @ root + np.diag(22.0 * doubt**2))
