"""Points of the sphere in singular coordinates: what solving a game ends in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Literal, NamedTuple

import numpy as np

from spgls.base.each import Each, any_of, column, dots
from spgls.base.types import Array, Vector
from spgls.reduction.reduced import ReducedGame
from spgls.sphere.pole import Pole, ScaledGame

__all__ = [
    "SEVERAL",
    "UNIQUE",
    "Outcome",
    "SmallSolution",
    "SmallSolutions",
    "build",
    "loss",
    "sphere_roots",
    "unscaled",
    "wanted",
]

Outcome = Literal["unique", "several", "unattained"]

#: Below the square of any norm that is not zero.
_NOTHING = 1e-300
_ZERO = np.float64(0.0)
UNIQUE, SEVERAL = np.array("unique", dtype="<U10"), np.array("several", dtype="<U10")


@dataclass(frozen=True, eq=False)
class SmallSolution:
    """Optimum of one game in singular coordinates.

    Attributes
    ----------
    x : ndarray
        ``s`` times the coordinates of the coefficients.
    fill : float
        ``s`` times the norm of the coefficients in the null space of the data, or in the space of
        its lowest singular value if there is none; any direction in it is as good.
    s, c : float
        ``1/(1+alpha)`` and ``alpha/(1+alpha)``, each to full relative accuracy.
    nu : float
        Multiplier of ``|x|^2 = gamma s c``.
    pole : float
        Left end of the multipliers that prove optimality.
    value : float
        Learner's sum of squares.
    outcome : {"unique", "several", "unattained"}
        Whether the optimum is unique, one of several (the smallest ``alpha`` is returned), or only
        approached as the coefficients grow.
    steps : int
        Newton steps spent.
    """

    x: Vector
    fill: float
    s: float
    c: float
    nu: float
    pole: float
    value: float
    outcome: Outcome
    steps: int

    @property
    def alpha(self) -> float:
        """Squared priced norm of the coefficients over gamma."""
        return self.c / self.s


@dataclass(eq=False)
class SmallSolutions:
    """Optima of one reduced game for several strengths; a :class:`SmallSolution` in each row."""

    x: Array
    fill: Vector
    s: Vector
    c: Vector
    nu: Vector
    pole: Vector
    value: Vector
    outcome: np.ndarray
    steps: np.ndarray

    @classmethod
    def empty(cls, count: int, size: int) -> SmallSolutions:
        """Rows to be filled."""
        fill, s, c, nu, pole, value = np.full((6, count), np.nan)
        outcome, steps = np.full(count, "unique", dtype="<U10"), np.zeros(count, dtype=np.intp)
        return cls(np.zeros((count, size)), fill, s, c, nu, pole, value, outcome, steps)

    @classmethod
    def of(cls, rows: Sequence[SmallSolution]) -> SmallSolutions:
        """Some solutions, a row each."""
        columns = zip(*(vars(row).values() for row in rows), strict=True)
        return cls(*map(np.array, columns))

    def as_row(self) -> SmallSolutions:
        """The solution for a strength of shape ``()``, as one for strengths of shape ``(1,)``."""
        return SmallSolutions(*(np.array([column]) for column in vars(self).values()))

    def taken(self, row: int) -> SmallSolutions:
        """One row, as the solution for a strength of shape ``()``."""
        return SmallSolutions(*(column[row, ...] for column in vars(self).values()))

    def __len__(self) -> int:
        return len(self.s)

    def __getitem__(self, row: int | tuple[()]) -> SmallSolution:
        return SmallSolution(
            x=self.x[row],
            fill=float(self.fill[row]),
            s=float(self.s[row]),
            c=float(self.c[row]),
            nu=float(self.nu[row]),
            pole=float(self.pole[row]),
            value=float(self.value[row]),
            outcome=str(self.outcome[row]),  # type: ignore[arg-type]
            steps=int(self.steps[row]),
        )

    def put(self, rows: int | np.ndarray, small: SmallSolution | SmallSolutions) -> None:
        """Replace a row, or some."""
        for field in fields(self):
            getattr(self, field.name)[rows] = getattr(small, field.name)

    @property
    def unique(self) -> np.ndarray:
        """Where the optimum is the only one."""
        return np.asarray(self.outcome == "unique")


def unscaled(point: SmallSolution, problem: ScaledGame) -> SmallSolution:
    """A point of a scaled game in the units of the game itself."""
    back, square = problem.length / problem.sigma_max, problem.sigma_max**2
    return replace(
        point,
        x=point.x * back,
        fill=point.fill * back,
        nu=point.nu * square,
        pole=point.pole * square,
        value=point.value * problem.length**2,
    )


def build(
    problem: ScaledGame,
    pole: Pole,
    w: Each,
    s: Each,
    c: Each,
    mu: Each = _ZERO,
    fill: Each = _ZERO,
    *,
    outcome: Each = UNIQUE,
    steps: Each = _ZERO,
) -> SmallSolutions:
    """Points ``x = (p_y - c p_z) w`` at distances ``mu`` from their poles, in the game's own units.

    They are put on the sphere exactly and evaluated.
    """
    game = problem.game
    target = wanted(game, s, c)
    x = game.sigma * target
    x *= w
    norm2 = dots(x, x) + fill * fill + _NOTHING
    x *= column(np.sqrt(problem.gamma * s * c / norm2))
    value = loss(game, game.sigma * x - target, fill, c)
    back, square = problem.length / problem.sigma_max, problem.sigma_max**2
    return SmallSolutions(
        x=x * back,
        fill=fill * back,
        s=s,
        c=c,
        nu=(pole.nu + mu) * square,
        pole=pole.nu * square,
        value=value * problem.length**2,
        outcome=outcome,
        steps=steps,
    )


def wanted(game: ReducedGame, s: Each, c: Each) -> Each:
    """``eta - c zeta = s eta - c (zeta - eta)``, without cancellation for any ``c``."""
    return np.array([s, -c]).T.dot(np.array([game.eta, game.zeta - game.eta]))


def loss(game: ReducedGame, residual: Each, fill: Each, c: Each) -> Each:
    """Learner's sum of squares at points of the sphere, from their residuals within the data."""
    rest = game.r_yy - 2 * c * game.r_yz + c * c * game.r_zz
    if any_of(fill > 0.0):
        rest = rest + game.lowest * fill * fill
    return np.maximum(0.0, dots(residual, residual) + rest)


class SphereRoots(NamedTuple):
    """Both ``(s, c)`` with ``|x(c)|^2 = gamma s c`` at a fixed multiplier, smaller ``c`` first."""

    exist: Each
    s: tuple[Each, Each]
    c: tuple[Each, Each]


def sphere_roots(problem: ScaledGame, w: Each) -> SphereRoots:
    """Solve the quadratic; each of ``s`` and ``c`` is a ratio of positive numbers and accurate."""
    gamma = problem.gamma
    zz, yz, ez, _, yy, ye, _, _, ee = (w * w).dot(problem.products).T
    lead, half_c, half_s = zz + gamma, yz + gamma / 2, ez + gamma / 2
    # half_c^2 - lead yy, in which terms far larger than gamma cancel, is gamma (gamma/4 + ye) less
    # the Gram determinant of x_y and x_e; that one is a product of lengths.
    along = ye / (yy + _NOTHING)
    across = (problem.p_e - column(along) * problem.p_y) * w
    disc = gamma * (gamma / 4 + ye) - yy * dots(across, across)
    root = np.sqrt(disc)
    up_c, up_s = half_c + root, half_s + root
    exist = (disc >= 0.0) & (half_c >= 0.0) & (half_s >= 0.0)
    return SphereRoots(exist, (up_s / lead, ee / up_s), (yy / up_c, up_c / lead))
