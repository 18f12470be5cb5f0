"""Lower bounds from residuals that are formed anew on the data, with all that rounding can do.

For a predictor with ``v`` let ``s = 1/(1 + alpha)``, ``c = 1 - s``, ``x = s v`` and
``r = P(A x + c z - y)``; with the best intercept and immutable coefficients its loss is ``|r|^2``.
Every predictor has ``|x|^2 = gamma s c``. So, whatever the multiplier ``nu``, its loss is

    Phi(x, c) = |P(A x + c z - y)|^2 + nu (|x|^2 - gamma c (1 - c)),

a quadratic in ``(x, sqrt(gamma) c)`` with Hessian ``2 (B + nu)``, ``B = L'L`` and
``L = P[A, z/sqrt(gamma)]``. With half its gradient ``rho`` at one of them, none has a loss below

    |r|^2 - rho'(B + nu)^{-1} rho  >=  |r|^2 - |rho|^2/(nu + low),      low <= least of spec(B).

``B`` has no negative eigenvalue, so ``low = 0`` is certain. What rounding does to ``r`` and to
``rho`` is bounded in the units of :class:`~spgls.solvers.iterative.rulers.Rulers`.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np

from spgls.base.cached import cached_property
from spgls.base.each import Each, choose
from spgls.base.types import Array, Vector
from spgls.base.vector import dot
from spgls.game.providers import priced_norms
from spgls.matrix import BasisProjection, ProjectedMatrix, SolvedMatrix
from spgls.matrix.pieces import in_pieces, sum_length
from spgls.matrix.row_step import RowStep
from spgls.reduction.data import GameData
from spgls.solvers.iterative.rulers import Rulers, lengths, scaled_of

__all__ = [
    "Bounds",
    "Fresh",
    "Losses",
    "Residuals",
    "Slopes",
    "least_residual",
]

#: Multipliers tried, over the one that would be best.
_TRIALS = (0.25, 0.5, 1.0, 2.0, 4.0)
#: The same at a pole of zero, over the residual there.
_SMALL = tuple(4.0**k for k in range(-4, 7))


class Losses(NamedTuple):
    """Losses of predictors, measured on the data, an entry for each.

    Attributes
    ----------
    s, c : ndarray of shape (G,)
        ``1/(1 + alpha)`` and ``alpha/(1 + alpha)``.
    square, rounding : ndarray of shape (G,)
        ``|r|^2``, and what rounding can have done to it.
    """

    s: Vector
    c: Vector
    square: Vector
    rounding: Vector

    @property
    def certain(self) -> Vector:
        """``|r|^2``, at least."""
        return self.square - self.rounding


class Slopes(NamedTuple):
    """What a bound takes of the slopes of predictors.

    Attributes
    ----------
    gamma : ndarray of shape (G,)
        Strengths.
    nu, residual : ndarray of shape (G,)
        Multipliers of least residual ``|rho|``, and that.
    along : ndarray of shape (G,)
        Inner products of ``rho`` and of what multiplies ``nu`` in it, which rounding leaves, or
        the most they can be.
    moved : ndarray of shape (G,)
        What rounding can have done to products of ``r`` with columns of unit length.
    """

    gamma: Vector
    nu: Vector
    residual: Vector
    along: Vector
    moved: Vector


class Residuals(NamedTuple):
    """Predictors against providers of one strength each, measured on the data; a column for each.

    Attributes
    ----------
    gamma, s, c : ndarray of shape (G,)
        Strengths, ``1/(1 + alpha)`` and ``alpha/(1 + alpha)``.
    x : ndarray of shape (k, G)
        ``s v``.
    square : ndarray of shape (G,)
        ``|r|^2``.
    rounding, moved : ndarray of shape (G,)
        What rounding can have done to ``|r|^2``, and to products of ``r`` with columns of unit
        length.
    slope : ndarray of shape (k, G)
        ``A'P r``.
    goal : ndarray of shape (G,)
        ``z'P r``.
    """

    gamma: Vector
    s: Vector
    c: Vector
    x: Array
    square: Vector
    rounding: Vector
    moved: Vector
    slope: Array
    goal: Vector

    @property
    def losses(self) -> Losses:
        """What is known of their losses."""
        return Losses(self.s, self.c, self.square, self.rounding)

    @property
    def certain(self) -> Vector:
        """``|r|^2``, at least."""
        return self.losses.certain

    def taken(self, rows: np.ndarray) -> Residuals:
        """Some of them."""
        return Residuals(*(part[..., rows] for part in self))


class Bounds(NamedTuple):
    """What residuals prove, an entry for each predictor.

    Attributes
    ----------
    lower : ndarray of shape (G,)
        No predictor has a smaller loss.
    nu, residual : ndarray of shape (G,)
        Multipliers of least residual, whatever their sign, and those residuals ``|rho|``.
    """

    lower: Vector
    nu: Vector
    residual: Vector


class Fresh:
    """Measures predictors on a game's data.

    Parameters
    ----------
    data : GameData
        The data.
    """

    def __init__(self, data: GameData) -> None:
        self.data = data

    @cached_property
    def rulers(self) -> Rulers:
        """What rounding is measured by; one read of the data."""
        return Rulers.of(self.data)

    def product(self, x: Array, y: Vector, z: Vector) -> tuple[Array, Array, Array]:
        """``A'P r``, ``|r|^2`` and ``[y, z]'P r`` for ``r = P(A x + z - y)``, in one read.

        Parameters
        ----------
        x : ndarray of shape (k, G)
            Coefficients.
        y, z : ndarray of shape (G,)
            How often labels are subtracted and goals added.
        """
        data = self.data
        targets, _ = data.projected_targets
        matrix = data.projected
        if isinstance(matrix, SolvedMatrix):
            return self._from_image(matrix.apply(x), y, z)
        assert isinstance(data.free, BasisProjection)
        basis, f = data.free.basis, data.free.rank
        overlap = matrix.overlap if isinstance(matrix, ProjectedMatrix) else np.zeros((len(x), 0))
        along = np.vstack([overlap.T @ x, y, -z])
        narrow = x.shape[1] == 1
        # The rows of A x become those of r while they are at hand.
        told = np.ascontiguousarray(along[:, 0]) if narrow else along
        step = RowStep.projection(basis, told, targets)
        slope = scaled_of(data).gram(np.ascontiguousarray(x[:, 0]) if narrow else x, step)
        slope, left = slope.reshape(x.shape), step.left.reshape(along.shape)
        # r'r by what r is made of.
        square = _inner(x, slope) - _inner(along, left)
        square -= np.einsum("ij,ij->j", left[:f], left[:f])
        return slope - overlap @ left[:f], np.maximum(square, 0.0), left[f:]

    def residuals(self, coef: Array, gamma: Vector) -> Residuals:
        """Errors of predictors, a column each, in one read of the data.

        Parameters
        ----------
        coef : ndarray of shape (n, G)
            Coefficients.
        gamma : ndarray of shape (G,)
            Strengths.
        """
        s, c, x = self._points(coef, gamma)
        slope, square, (_, goal) = self.product_of(coef, s, np.ones_like(c), c)
        return Residuals(gamma, s, c, x, square, *self.doubt(x, c, square), slope, goal)

    def product_of(
        self, coef: Array, s: Vector | float, y: Vector, z: Vector
    ) -> tuple[Array, Array, Array]:
        """:meth:`product` at ``x = s v`` of predictors, whose predictions may be known already."""
        layout = self.data.layout
        v = layout.priced(coef[layout.changeable])
        if not isinstance(self.data.projected, SolvedMatrix):
            return self.product(s * v, y, z)
        # Finding the free coefficients has formed it.
        return self._from_image(s * self.data.projected_predictions(v)[0], y, z)

    def _from_image(self, image: Array, y: Vector, z: Vector) -> tuple[Array, Array, Array]:
        """The same from ``P A x``, where no basis of what ``P`` removes is known."""
        matrix, (targets, _) = self.data.projected, self.data.projected_targets
        assert isinstance(matrix, SolvedMatrix)
        r = image + targets @ np.vstack([-y, z])
        square = np.array([dot(column, column) for column in np.ascontiguousarray(r.T)])
        return matrix.matrix.cross(r), square, in_pieces(targets, r, sum_length(len(r)))

    def _points(self, coef: Array, gamma: Vector) -> tuple[Vector, Vector, Array]:
        """``s``, ``c`` and ``x`` of predictors."""
        layout = self.data.layout
        alpha = priced_norms(coef, layout.cost) / gamma
        s, c = 1.0 / (1.0 + alpha), alpha / (1.0 + alpha)
        return s, c, s * layout.priced(coef[layout.changeable])

    def doubt(self, x: Array, c: Vector | float, square: Vector) -> tuple[Vector, Vector]:
        """What rounding can have done to ``|r|^2`` and to products of ``r`` with unit columns."""
        rulers, size = self.rulers, np.sqrt(square)
        slack = rulers.terms(x, 1.0, c)
        wobble = rulers.unit * (rulers.columns @ np.abs(x) + rulers.y + c * rulers.z)
        return size * (2.0 * slack + wobble) + slack**2, slack + rulers.unit * size

    @property
    def measured(self) -> bool:
        """Whether lengths of columns are known, or would take a read."""
        return "squares" in scaled_of(self.data).__dict__

    def misfit(self, coef: Array, intercept: Vector, found: Losses) -> Vector:
        """How far rounding can take intercepts from their best, as part of the errors' length."""
        rulers = self.rulers
        return 2.0 * (rulers.across + rulers.down) * self._terms(coef, intercept, found)

    def of_measuring(self, coef: Array, intercept: Vector, found: Losses, loss: Vector) -> Vector:
        """What rounding can have done to losses measured on the data as it is."""
        rulers = self.rulers
        moved = rulers.across * self._terms(coef, intercept, found)
        return np.asarray(moved * (2.0 * np.sqrt(loss) + moved) + rulers.down * loss)

    def _terms(self, coef: Array, intercept: Vector, found: Losses) -> Vector:
        """Sizes of what errors are summed from, nothing subtracted."""
        rulers = self.rulers
        linear = rulers.raw @ np.abs(coef) + rulers.constant * np.abs(intercept)
        return np.asarray(found.s * linear + found.c * rulers.raw_z + rulers.raw_y)

    def bounds(self, found: Residuals, low: Vector | float = 0.0) -> Bounds:
        """Bounds of the losses of all predictors, by the best of several multipliers.

        Parameters
        ----------
        found : Residuals
            Predictors.
        low : float or ndarray of shape (G,)
            What no eigenvalue of ``B`` is below.
        """
        reach = np.sqrt(found.gamma)
        last, goal = reach * (found.c - found.s) / 2.0, found.goal / reach
        nu = -(_inner(found.slope, found.x) + goal * last) / (found.gamma / 4.0)
        rho = found.slope + nu * found.x
        size = np.hypot(lengths(rho), goal + nu * last)
        along = _inner(rho, found.x) + (goal + nu * last) * last
        slopes = Slopes(found.gamma, nu, size, along, found.moved)
        return self.best_bound(slopes, found.certain, low)

    def best_bound(
        self, of: Slopes, certain: Each, low: Each = 0.0, *, stretch: float = 0.0
    ) -> Bounds:
        """The best of several multipliers, by what is known of slopes and of ``|r|^2``.

        Residuals may be longer than they seem by a share of ``stretch``.
        """
        reach, size, unit = of.gamma**0.5, of.residual, self.rulers.unit
        error = of.moved * (self.rulers.whole**2 + (self.rulers.z / reach) ** 2) ** 0.5
        total = of.nu + low
        # Over lambda + low = 0, in which |rho|^2/total is least where this is.
        best = (total**2 + (2.0 * (size + error) / reach) ** 2) ** 0.5
        lost = np.inf + 0.0 * size
        for trial in (total, *(share * best for share in _TRIALS)):
            step = trial - total
            square = size**2 + 2.0 * abs(step * of.along) + step**2 * of.gamma / 4.0
            missing = (1.0 + stretch) * abs(square) ** 0.5 + error + unit * abs(trial - low) * reach
            own = missing**2 / trial
            lost = choose((trial > 0.0) & (own < lost), own, lost)
        lower = certain - lost
        return Bounds(choose(lower > 0.0, lower, 0.0 * size), of.nu, size)

    def off_the_sphere(self, x: Array, s: float, c: float, gamma: float) -> float:
        """The same from points that are not those of predictors, for small positive multipliers.

        At a pole of zero the predictor's own null vector is in the way: it is not seen by the
        data, but by rounding.

        Parameters
        ----------
        x : ndarray of shape (k, G)
            Points, all with the same ``c``.
        s, c : float
            What is left of predictions and of the gap to the goal; the sum is one.
        gamma : float
            The strength.
        """
        count = x.shape[1]
        slope, square, (_, goal) = self.product(x, np.ones(count), np.full(count, c))
        rulers, each = self.rulers, np.ones(count)
        doubt = self.doubt(x, c, square)
        found = Residuals(gamma * each, s * each, c * each, x, square, *doubt, slope, goal)
        error, xx = lengths(self.errors(found)), np.einsum("ij,ij->j", x, x)
        best = 0.0
        for share in _SMALL:
            nu = share * (lengths(slope) + error) / sqrt(gamma)
            last = goal / sqrt(gamma) + nu * sqrt(gamma) * (c - s) / 2
            rho = np.hypot(lengths(slope + nu * x), last)
            missing = rho + error + rulers.unit * nu * (np.sqrt(xx) + sqrt(gamma))
            lower = found.certain + nu * (xx - gamma * s * c) - missing**2 / nu
            best = max(best, float(np.nanmax(lower, initial=0.0)))
        return best

    def errors(self, found: Residuals) -> Array:
        """What rounding can have done to each component of ``L'P r``, a column for each."""
        each = np.multiply.outer(np.append(self.rulers.columns, self.rulers.z), found.moved)
        each[-1] /= np.sqrt(found.gamma)
        return np.asarray(each)


def least_residual(found: Residuals) -> tuple[Array, Vector, Array]:
    """``rho`` where the multiplier makes it least, that multiplier, and what multiplies it.

    The latter is ``(x, sqrt(gamma)(c-s)/2)``, which is ``sqrt(gamma)/2`` long.
    """
    reach = np.sqrt(found.gamma)
    x = np.vstack([found.x, reach * (found.c - found.s) / 2.0])
    slope = np.vstack([found.slope, found.goal / reach])
    nu = -_inner(slope, x) / (found.gamma / 4.0)
    return slope + nu * x, nu, x


def _inner(a: Array, b: Array) -> Vector:
    return np.asarray(np.einsum("ij,ij->j", a, b))
