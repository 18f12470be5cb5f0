"""The rows of a game, validated once, and the pieces of Theorem A that are made from them."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from scipy.linalg import lstsq

from spgls.base.cached import cached_property
from spgls.base.devices import check_one_place
from spgls.base.far_array import far_of, side_by_side
from spgls.base.frames import column_names
from spgls.base.machine import available_memory
from spgls.base.types import EPS, Array, Vector
from spgls.base.validation import (
    check_choice,
    check_flag,
    check_row_numbers,
    check_weight,
)
from spgls.base.vector import dot, norm
from spgls.game.costs import read_cost
from spgls.game.goals import read_goals
from spgls.game.response import Provider
from spgls.matrix import (
    BasisProjection,
    FreeColumns,
    Matrix,
    ProjectedMatrix,
    ScaledMatrix,
    SolvedMatrix,
    SolvedProjection,
    Work,
    as_matrix,
    device_of,
    flush_columns,
    range_basis,
    refuse_non_finite,
)
from spgls.matrix.lazy import ROUNDING
from spgls.reduction.layout import Layout, lay_out, times
from spgls.reduction.sums import Origin, Sizes

__all__ = ["GameData", "NullSpace", "basis_bytes", "read_null_space", "takes_basis"]

#: Squaring no more multiplications than this, free columns get a basis.
_FEW_FREE = 2e7
#: Bytes that a basis takes for each entry, while it is made, and what share of the free memory.
_BASIS_BYTES, _BASIS_SHARE = 32.0, 0.5
#: Bytes that nobody asks for.
_SMALL_BASIS = 1e7
#: Under what name predictions are kept with the data.
_PREDICTED = "predictions"

#: Whether predictors may use directions in which the rows never vary.
NullSpace: TypeAlias = Literal["use", "avoid"]


def takes_basis(work: Work) -> bool:
    """Whether a basis of the free columns is made, if memory allows.

    It is no denser than dense data, and of sparse data where there are few.
    """
    return not work.by_index or work.rows * work.free**2 <= _FEW_FREE


def basis_bytes(rows: int, free: int) -> float:
    """Memory that a basis of free columns takes while it is made."""
    return _BASIS_BYTES * rows * free


def read_null_space(null_space: Any) -> bool:
    """Whether coefficients have to stay where the data varies."""
    return check_choice(null_space, "null_space", ("use", "avoid")) == "avoid"


@dataclass(frozen=True, eq=False)
class GameData:
    """Rows, labels, goals and weights, and what the columns mean: all but the providers' strength.

    Theorem A: with ``v_j = w_j/sqrt(c_j)`` over changeable features, ``A = S^{1/2} X C^{1/2}`` and
    ``P`` the projector away from intercept and immutable features, the game is the paper's sphere
    problem on ``PA, Py, Pz``. This object owns that change of variables; reductions and solvers
    see only its pieces. Where costs are not one a feature, the columns of ``matrix`` are those of
    the data combined such that they are (``reduction/coordinates.py``); ``given`` is the data
    itself.
    """

    matrix: Matrix
    y: Vector
    z: Vector
    weight: Vector | None
    layout: Layout
    source: Any = None
    given: Matrix | None = None

    @classmethod
    def from_user(
        cls,
        X: Any,
        y: Any,
        z: Any,
        *,
        fit_intercept: Any = False,
        feature_cost: Any = None,
        sample_weight: Any = None,
        null_space: Any = "use",
    ) -> GameData:
        """Validate what a user passed."""
        check_one_place(X, y=y, z=z, sample_weight=sample_weight)
        given = as_matrix(X, check_finite=False)
        m, n = given.shape
        place = device_of(given)
        labels = check_row_numbers(y, "y", m, place)
        goals, weight = read_goals(z, labels), check_weight(sample_weight, m, place)
        matrix, layout = lay_out(
            given,
            read_cost(feature_cost, n, column_names(X)),
            fit_intercept=check_flag(fit_intercept, "fit_intercept"),
            avoids_null=read_null_space(null_space),
        )
        return cls(matrix, labels, goals, weight, layout, source=X, given=given)

    def check_finite(self, result: Array | None = None) -> None:
        """Refuse data that is not finite.

        Parameters
        ----------
        result : ndarray, optional
            Something computed from all of the data, in which every entry that is not finite has
            left its mark: then the data is read again only if it has to be.
        """
        if result is not None and np.isfinite(result).all():
            self.__dict__["_finite"] = True
            return
        # What was found finite once need not be read again for that.
        if result is None and "_finite" in self.__dict__:
            return
        refuse_non_finite(self.matrix, "X", self.source)
        self.__dict__["_finite"] = True
        if result is not None:
            raise ValueError(
                "X, y or z hold numbers too large to be squared in double precision; "
                "bring them to a smaller scale."
            )

    @cached_property
    def reductions(self) -> dict[str, Any]:
        """What the data was reduced to so far, by engine."""
        return {}

    @cached_property
    def root_weight(self) -> Vector | None:
        """``S^{1/2}``."""
        return None if self.weight is None else np.sqrt(self.weight)

    @cached_property
    def centred(self) -> tuple[Vector, Vector]:
        """Labels and goals less their weighted means, if there is an intercept.

        A remainder below 1e-14 of the original is rounding: it is set to zero, and goals that
        differ from the labels by a constant become equal to them. What is left of goals is
        compared with what is left of the labels too: whatever is dropped is paid for in units of
        them.
        """
        return self._centred[:2]

    @cached_property
    def _centred(self) -> tuple[Vector, Vector, float]:
        """The same, and the length of what goals were changed by to become the labels."""
        if not self.layout.fit_intercept:
            return self.y, self.z, 0.0
        y = self._less_mean(self.y)
        z = self._less_mean(self.z, self._size(y))
        gap = self._size(self._less_mean(self.z - self.y))
        # Beyond the second limit the change would show in what is proved.
        if gap <= min(1e-14 * (self._size(self.y) + self._size(self.z)), 1e-12 * self._size(y)):
            return y, y, gap
        return y, z, 0.0

    @property
    def lost(self) -> float:
        """How much goals that were taken for the labels differ from them."""
        return self._centred[2]

    def _mean(self, t: Vector) -> float:
        return float((t if self.weight is None else self.weight * t).sum()) / self.total_weight

    def _less_mean(self, t: Vector, scale: float = np.inf) -> Vector:
        rest = t - self._mean(t)
        # A second subtraction removes the rounding of the first mean.
        rest -= self._mean(rest)
        left, whole = self._size(rest), self._size(t)
        if left > 1e-14 * whole:
            return rest
        constant = self._size(t - float(t[:1].sum())) == 0.0
        return np.zeros_like(t) if constant or left <= 1e-14 * scale else rest

    def _size(self, t: Vector) -> float:
        return sqrt(self.loss(t))

    @cached_property
    def raw_squares(self) -> tuple[float, float]:
        """Weighted sums of squares of labels and goals as they are."""
        return self.loss(self.y), self.loss(self.z)

    @cached_property
    def total_weight(self) -> float:
        """Number of rows, counted by weight."""
        return float(self.matrix.shape[0] if self.weight is None else self.weight.sum())

    @property
    def label_size(self) -> float:
        """Weighted sum of squares of the labels."""
        return self.raw_squares[0]

    def unit(self, left: float) -> float:
        """What is left of the labels to explain, squared: the unit of gaps."""
        return left

    @cached_property
    def sizes(self) -> Sizes:
        """What rounding is measured by."""
        y, z = raw = sqrt(self.raw_squares[0]), sqrt(self.raw_squares[1])
        centred = raw
        if self.layout.fit_intercept:
            centred = self._size(self.centred[0]), self._size(self.centred[1])
        # With nothing to project, labels and goals are compared already.
        known = self._projected if self._plain and "_projected" in self.__dict__ else None
        gap = self.loss(self.y - self.z) if known is None else known.squares[-1]
        return Sizes(y, z, *centred, gap, self.total_weight)

    @cached_property
    def origin(self) -> Origin:
        """What is subtracted before anything is added up; nothing without an intercept."""
        same = self.y is self.z or np.array_equal(self.y, self.z)
        if not self.layout.fit_intercept:
            return Origin(same=same)
        # Entries that are not finite are found in what comes of them.
        with np.errstate(over="ignore", invalid="ignore"):
            row = self.matrix.typical_row(self.weight)
        y, z = self.centred
        # Large labels and goals that are close have digits in common, which their means lose.
        gap = self._mean((self.y - self.z) - (y - z))
        return Origin(row, self._mean(self.y), self._mean(self.z), gap, same, self.lost)

    def beside(self, rows: Any) -> Array:
        """What is added up beside some rows: labels and goals less the origin, and ones."""
        y, z = (t[rows] for t in self.centred)
        table: Array = side_by_side(y, z, *[1.0] * self.layout.fit_intercept)
        return table

    @cached_property
    def work(self) -> Work:
        """How much work the changeable columns are."""
        return self.matrix.work.of_columns(self.layout.count)

    @cached_property
    def priced(self) -> ScaledMatrix:
        """``A = S^{1/2} X_M C^{1/2}``, lazily."""
        columns = self.layout.changeable if len(self.layout.immutable) else None
        return ScaledMatrix(self.matrix, self.root_weight, columns, self.layout.price)

    @cached_property
    def free(self) -> BasisProjection | SolvedProjection:
        """``P``, the projector away from intercept and immutable columns.

        By a basis of few columns, or of columns that depend too much on each other; else by least
        squares. A basis needs ``m`` times its size in memory, so there may be no room for one.
        """
        return self._first_projection[0]

    @cached_property
    def _first_projection(self) -> tuple[BasisProjection | SolvedProjection, Array, Array]:
        """``P``, what it leaves of ``S^{1/2}[y, z]``, and free coefficients of what it removes."""
        (m, n), f = self.matrix.shape, len(self.layout.immutable)
        if not f or (takes_basis(self.matrix.work.of_columns(n - f)) and _has_room(m, f)):
            return self._by_basis()
        self.check_finite()
        columns = FreeColumns.of(
            self.matrix,
            self.layout.immutable,
            self.root_weight,
            constant=self.layout.fit_intercept,
        )
        solved = SolvedProjection(columns)
        left, free = solved.split(self._targets())
        if solved.poor and _has_room(m, f):
            return self._by_basis()
        return solved, left, free

    def _by_basis(self) -> tuple[BasisProjection, Array, Array]:
        # Before the targets, which are not needed to make it, take memory.
        projection = BasisProjection(self._basis())
        if not projection.rank:
            return projection, self.given_targets, np.zeros((0, 2))
        targets = self._targets()
        # The basis is here, and so is what it leaves of targets that are on a device.
        own = far_of(targets) is None
        targets = projection.remove(targets) if own else projection.apply(targets)
        return projection, targets, np.zeros((0, 2))

    @cached_property
    def given_targets(self) -> Array:
        """``S^{1/2}[y, z]``, before anything is projected away."""
        return self._targets()

    def _targets(self) -> Array:
        """``S^{1/2}[y, z]``."""
        return times(self.root_weight, side_by_side(*self.centred, order="F"))

    def _basis(self) -> Array:
        """Orthonormal basis of ``S^{1/2}[1, X_immutable]``."""
        m = self.matrix.shape[0]
        columns = [np.ones((m, 1))] if self.layout.fit_intercept else []
        if len(self.layout.immutable):
            self.check_finite()
            fixed = self._immutable_columns()
            # Without its mean a column is not swallowed by the intercept's.
            columns.append(fixed - fixed.mean(axis=0) if self.layout.fit_intercept else fixed)
        if not columns:
            return np.zeros((m, 0))
        block = np.hstack(columns) if len(columns) > 1 else columns[0]
        return range_basis(times(self.root_weight, block))

    @cached_property
    def free_condition(self) -> float:
        """Least singular value of the columns that :attr:`free` removes, at unit length.

        One without immutable columns, zero where rounding decides how many count.
        """
        if not len(self.layout.immutable):
            return 1.0
        if isinstance(self.free, SolvedProjection):
            return self.free.least
        fixed = self._immutable_columns()
        if self.layout.fit_intercept:
            fixed = np.column_stack([np.ones(len(fixed)), fixed - fixed.mean(axis=0)])
        fixed = times(self.root_weight, fixed)
        norms = np.linalg.norm(fixed, axis=0)
        unit = fixed[:, norms > 0.0] / norms[norms > 0.0]
        if not unit.shape[1]:
            return 1.0
        if unit.shape[1] > unit.shape[0]:
            return 0.0
        least = float(np.linalg.svd(unit, compute_uv=False)[-1])
        return least if least > 1e-12 else 0.0

    @cached_property
    def projected(self) -> ProjectedMatrix | ScaledMatrix | SolvedMatrix:
        """``PA``, lazily: what the iterative methods work on."""
        if isinstance(self.free, SolvedProjection):
            priced = self.priced
            centred = priced.without_large_means() if self.layout.fit_intercept else priced
            return SolvedMatrix(centred, self.free)
        if self.free.rank == 0:
            return self.priced
        return ProjectedMatrix(self.priced, self.free.basis, constant=self.layout.fit_intercept)

    @property
    def _plain(self) -> bool:
        """Whether there is nothing to project, and no weight."""
        return self.weight is None and not (self.layout.fit_intercept or len(self.layout.immutable))

    @property
    def plain(self) -> bool:
        """Whether the sphere problem is on data as it is: no weights, costs or intercept."""
        return self._plain and self.layout.cost is None

    @cached_property
    def _projected(self) -> _Projected:
        """Labels and goals after projection, with all that is asked of them."""
        before = np.array([sqrt(square) for square in self.raw_squares])
        if not self._plain:
            before = np.array([norm(times(self.root_weight, t)) for t in self.centred])
        free, targets, _ = self._first_projection
        flushed = np.zeros(2)
        if free.rank:
            flushed = flush_columns(targets, before, free.rank)
        y, z = targets[:, 0], targets[:, 1]
        gap = y - z
        apart = dot(gap, gap)
        if sqrt(apart) <= self.same * (before[0] + before[1]):
            flushed[1] += sqrt(apart)
            targets, z, apart = side_by_side(y, y, order="F"), y, 0.0
        yy, zz = self.raw_squares if self._plain else (dot(y, y), dot(z, z))
        if z is y:
            return _Projected(targets, before, flushed, (yy, yy, yy, apart))
        return _Projected(targets, before, flushed, (yy, dot(y, z), zz, apart))

    @property
    def projected_targets(self) -> tuple[Array, Vector]:
        """``P S^{1/2}[y, z]``, rounding set to zero, and the norms before projection."""
        return self._projected.targets, self._projected.before

    @property
    def flushed_targets(self) -> Vector:
        """Lengths of what was set to zero of projected labels and goals."""
        return self._projected.flushed

    @property
    def target_squares(self) -> tuple[float, float, float, float]:
        """``y'y``, ``y'z``, ``z'z`` and ``|y - z|^2`` of projected labels and goals."""
        return self._projected.squares

    @property
    def same(self) -> float:
        """Labels and goals closer than this, after projection, are equal; in units of both."""
        free = self.free
        return max(ROUNDING, 4 * free.leak) if isinstance(free, SolvedProjection) else ROUNDING

    @property
    def _solves(self) -> bool:
        return isinstance(self.free, SolvedProjection)

    def projected_predictions(self, v: Array) -> tuple[Array, Array]:
        """``P A v`` of a block of columns, and the free coefficients that its removal takes.

        The last ones are kept: they are asked for again where a predictor is measured.
        """
        kept = self.reductions.get(_PREDICTED)
        if kept is None or not np.array_equal(kept[0], v):
            assert isinstance(self.projected, SolvedMatrix)
            kept = (v.copy(), *self.projected.split(v))
            self.reductions[_PREDICTED] = kept
        return kept[1], kept[2]

    def free_coefficients(self, v: Array, alpha: float | Vector) -> Array:
        """Best coefficients of the immutable columns for given ``v``, by least squares.

        One ``v`` and its ``alpha``, or a column of the former for each of the latter.
        """
        f = len(self.layout.immutable)
        if f == 0:
            return np.zeros((0, *v.shape[1:]))
        if self._solves:
            return self._solved_coefficients(v, alpha)
        columns = self._immutable_columns()
        target = -self.matrix.apply(self.layout.coefficients(v, np.zeros((f, *v.shape[1:]))))
        target = (target.T + self.y + np.multiply.outer(alpha, self.y - self.z)).T
        if self.layout.fit_intercept:
            columns = columns - np.average(columns, axis=0, weights=self.weight)
            target = target - np.average(target, axis=0, weights=self.weight)
        columns, target = times(self.root_weight, columns), times(self.root_weight, target)
        norms = np.linalg.norm(columns, axis=0)
        unit = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0.0)
        solution, *_ = lstsq(columns * unit, target, cond=8 * max(columns.shape) * EPS)
        return times(unit, solution)

    def _solved_coefficients(self, v: Array, alpha: float | Vector) -> Array:
        """The same by what was projected: labels, goals and predictions, each for itself."""
        y, z = self._first_projection[2].T
        # As it will be read off the coefficients.
        seen = v if self.layout.price is None else self.layout.priced(times(self.layout.price, v))
        _, along = self.projected_predictions(seen.reshape(len(v), -1))
        each = np.ravel(np.asarray(alpha, dtype=float))
        u = (np.multiply.outer(y, 1.0 + each) - np.multiply.outer(z, each)) - along
        # The intercept is chosen when all else is known.
        return np.asarray(u[int(self.layout.fit_intercept) :].reshape(-1, *v.shape[1:]))

    def _immutable_columns(self) -> Array:
        picked = np.zeros((self.matrix.shape[1], len(self.layout.immutable)))
        picked[self.layout.immutable, np.arange(len(self.layout.immutable))] = 1.0
        return self.matrix.apply(picked)

    def best_intercept(self, linear: Vector, alpha: float) -> float:
        """Best intercept for given ``X w``, from the data rather than from a reduction."""
        if not self.layout.fit_intercept:
            return 0.0
        wanted = self.y + alpha * (self.y - self.z) - linear
        return self._mean(wanted)

    @cached_property
    def mean_row(self) -> Vector:
        """Weighted mean of the rows, in one read of the data."""
        weight = np.ones(len(self.y)) if self.weight is None else self.weight
        return np.asarray(self.matrix.cross(weight) / self.total_weight)

    def best_intercepts(self, coef: Array, alpha: Vector) -> Vector:
        """Best intercept of each column of coefficients, from the mean of the rows alone."""
        if not self.layout.fit_intercept:
            return np.zeros(len(alpha))
        wanted = self._mean(self.y) + alpha * self._mean(self.y - self.z)
        return np.asarray(wanted - self.mean_row @ coef)

    def residual(self, linear: Vector, provider: Provider) -> Vector:
        """Errors after the providers moved, given ``X w``."""
        return provider.induced(linear + provider.intercept, self.z) - self.y

    def loss(self, residual: Vector) -> float:
        """Weighted sum of squares."""
        return dot(residual, residual if self.weight is None else self.weight * residual)


class _Projected(NamedTuple):
    """Labels and goals after projection, their norms before, what was flushed, and squares."""

    targets: Array
    before: Vector
    flushed: Vector
    squares: tuple[float, float, float, float]


def _has_room(m: int, columns: int) -> bool:
    """Whether memory holds a basis of so many columns."""
    return basis_bytes(m, columns) <= max(_SMALL_BASIS, _BASIS_SHARE * available_memory())
