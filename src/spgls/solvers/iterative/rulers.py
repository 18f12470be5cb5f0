"""Sizes that rounding on a game's data is measured by."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from scipy.linalg import qr

from spgls.base.cached import cached_property
from spgls.base.types import EPS, Array, Vector
from spgls.base.vector import squares
from spgls.matrix import ScaledMatrix, SolvedProjection, longest_row
from spgls.matrix.lazy import ROUNDING
from spgls.matrix.squares import sum_rounding, sum_rounding_down
from spgls.reduction.data import GameData
from spgls.reduction.dependence import independent_columns
from spgls.reduction.layout import times
from spgls.solvers.iterative.lowest import LOWEST_PRODUCTS, lowest_pair

__all__ = ["Rulers", "lengths", "scaled_of"]


@dataclass(frozen=True, eq=False)
class Rulers:
    """Sizes that rounding on one game's data is measured by.

    Attributes
    ----------
    data : GameData
        The data; lengths of its columns are measured when they are asked for, in one read.
    y, z : float
        Lengths of labels and goals less their means, before projection.
    raw_y, raw_z : float
        The same as they come.
    constant : float
        Length of the column of the intercept.
    across, down : float
        Rounding of sums over a row and over a column, in units of their terms; the former with
        that of columns that were combined, the latter with that of a sum along what is projected
        away.
    turned : float
        The same of a projection by a basis: the sine of the angle between what is projected away
        and what should be.
    cut : float
        What may have been taken off labels and goals as rounding, in units of their lengths.
    least : float
        What no singular value of free columns at unit length is below, where a projection is by
        least squares.
    estimated : bool
        Whether that is very likely and not certain.
    blur : float
        Rounding of columns that were combined, in units of their lengths.
    """

    data: GameData
    y: float
    z: float
    raw_y: float
    raw_z: float
    constant: float
    across: float
    down: float
    turned: float
    cut: float
    least: float = 1.0
    estimated: bool = False
    blur: float = 0.0

    @classmethod
    def of(cls, data: GameData) -> Rulers:
        """Measure labels and goals."""
        sizes, blur = data.sizes, _blur(data)
        # Rows first: the read that may take tells of sums too.
        across, own = sum_rounding(longest_row(data.matrix)), sum_rounding_down(data.matrix)
        least, estimated = _least(data)
        return cls(
            data=data,
            y=sizes.centred_y,
            z=sizes.centred_z,
            raw_y=sizes.y,
            raw_z=sizes.z,
            constant=sqrt(data.total_weight) if data.layout.fit_intercept else 0.0,
            across=across + blur,
            down=own * (1 + (data.free.rank > 0)),
            turned=_turned(data, own + blur),
            cut=_flushed(data),
            least=least,
            estimated=estimated,
            blur=blur,
        )

    @property
    def turn(self) -> float:
        """Rounding of a projection, in units of what is projected."""
        free = self.data.free
        if not isinstance(free, SolvedProjection):
            return self.turned
        turn = free.wrong(self.least)
        if self.blur > 0.0:
            layout = self.data.layout
            rounded = 0 if layout.exact is None else sum(~layout.exact[layout.immutable])
            turn += self.blur * (free.stretch + sqrt(rounded) / (self.least or EPS))
        return turn

    @property
    def unit(self) -> float:
        """Rounding of a product with projected data or its transpose."""
        return self.across + self.down + self.turn

    @cached_property
    def columns(self) -> Vector:
        """Lengths of the columns of ``A``, after a provisional shift and before projection."""
        layout, own = self.data.layout, np.sqrt(scaled_of(self.data).squares)
        columns = own[layout.changeable]
        return np.asarray(columns if layout.price is None else columns * layout.price)

    @cached_property
    def raw(self) -> Vector:
        """Lengths of all columns of ``S^{1/2} X`` as they come, or a little more."""
        scaled = scaled_of(self.data)
        own = np.sqrt(scaled.squares)
        if scaled.shift is None:
            return own
        return np.asarray(own + sqrt(self.data.total_weight) * np.abs(scaled.shift))

    @cached_property
    def whole(self) -> float:
        """``|A|_F``."""
        return scaled_of(self.data).size

    def terms(self, x: Array, y: Vector | float, z: Vector | float) -> Vector:
        """What rounding can have done to ``P(A x + z - y)``, for goals and labels so many times."""
        inside = self.columns @ np.abs(x)
        targets = y * self.y + z * self.z
        return np.asarray((self.across + self.turn) * (inside + targets) + self.cut * targets)

    def reach_of(self, coef: Vector, intercept: float) -> float:
        """Length of predictions and labels, at most."""
        return self._linear(coef, intercept) + self.raw_y

    def _linear(self, coef: Vector, intercept: float) -> float:
        return float(self.raw @ np.abs(coef)) + self.constant * abs(intercept)

    def of_loss(self, coef: Vector, intercept: float, loss: float, *, s: float, c: float) -> float:
        """What rounding can have done to a loss that was measured on the data.

        Parameters
        ----------
        coef, intercept
            The predictor.
        loss : float
            Its loss.
        s, c : float
            Weights of predictions and of goals once people have moved.
        """
        linear = self._linear(coef, intercept)
        moved = self.across * (s * linear + c * self.raw_z + self.raw_y)
        return float(moved * (2.0 * sqrt(loss) + moved) + self.down * loss)


def scaled_of(data: GameData) -> ScaledMatrix:
    """The data before projection, after a provisional shift."""
    matrix = data.projected
    return matrix if isinstance(matrix, ScaledMatrix) else matrix.matrix


def _blur(data: GameData) -> float:
    """Rounding of columns that were combined, in units of their lengths."""
    if data.layout.coordinates is None:
        return 0.0
    blur = data.layout.blur(np.sqrt(scaled_of(data).squares))
    return blur if blur < 1.0 else np.inf


def _turned(data: GameData, unit: float) -> float:
    """How far the range that is projected away can be from that of the immutable columns.

    Rounding of the unit columns over their least singular value. Infinite where columns were left
    out as dependent that are not certainly so.
    """
    immutable = data.layout.immutable
    if not len(immutable) or isinstance(data.free, SolvedProjection):
        return 0.0
    picked = np.zeros((data.matrix.shape[1], len(immutable)))
    picked[immutable, np.arange(len(immutable))] = 1.0
    fixed = data.matrix.apply(picked)
    if data.layout.fit_intercept:
        fixed = np.column_stack([fixed, np.ones(len(fixed))])
    counted = slice(None) if data.weight is None else data.weight > 0.0
    sure = np.arange(fixed.shape[1])
    if data.layout.exact is not None:
        sure = np.append(np.flatnonzero(data.layout.exact[immutable]), sure[len(immutable) :])
    kept = independent_columns(fixed[counted][:, sure])
    if kept is not None:
        # Columns that were rounded count as independent, which their singular values have to show.
        rounded = np.delete(np.arange(fixed.shape[1]), sure)
        kept = np.sort(np.append(sure[kept], rounded)).tolist()
    if kept is None or len(kept) != data.free.rank:
        return np.inf
    if not kept:
        return 0.0
    raw = lengths(np.asarray(times(data.root_weight, fixed)))
    if data.layout.fit_intercept:
        fixed[:, :-1] -= fixed[:, :-1].mean(axis=0)
    own = np.asarray(times(data.root_weight, fixed))
    if data.layout.fit_intercept and len(kept) < own.shape[1]:
        # Which of them span the rest may be another choice without their means.
        kept = qr(own / np.fmax(lengths(own), 1e-300), mode="r", pivoting=True)[1][: len(kept)]
    own, raw = own[:, kept], raw[kept]
    size = lengths(own)
    error = unit * float(np.linalg.norm(raw / size))
    least = float(np.linalg.svd(own / size, compute_uv=False)[-1]) - error
    return error / least if least > 0.0 else np.inf


def _least(data: GameData) -> tuple[float, bool]:
    """What no singular value of free columns at unit length is below; whether by estimate.

    By a triangular factor of no more columns than that is affordable for, else by Lanczos.
    """
    free = data.free
    if not isinstance(free, SolvedProjection) or free.least > 0.0:
        return (free.least if isinstance(free, SolvedProjection) else 1.0), False
    floor = lowest_pair(free, np.random.default_rng(0), 0.0, LOWEST_PRODUCTS).floor
    return sqrt(max(floor, 0.0)), True


def _flushed(data: GameData) -> float:
    """What labels and goals may have lost where they, or their difference, came out as nothing."""
    yy, _, zz, apart = data.target_squares
    gone = not (yy and zz and apart)
    if not gone or not data.projected_targets[1].any():
        return 0.0
    lost = data.lost / data.sizes.centred_z if data.lost else 0.0
    return float(2.0 * max(ROUNDING * data.free.rank, data.same) + lost)


def lengths(columns: Array) -> Vector:
    """Norms of columns."""
    return np.asarray(np.sqrt(squares(columns)))
