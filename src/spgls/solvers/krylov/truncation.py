"""How far below the values of a game on a Krylov space those of the whole game can lie.

On the span of the space the game is the exact one, so its optimum is an upper bound. At a squared
norm ``t`` the learner minimises ``a (v'Gv - 2q'v)`` plus constants over ``|v|^2 = t``; for a
multiplier ``nu > 0`` let ``v`` minimise the Lagrangian over the span, and ``rho = (G + nu) v - q``,
which is the part of ``G v`` outside the span. Then

    phi(t) >= min over all v of the Lagrangian = (the same over the span) - a rho'(G + nu)^{-1} rho
           >= (the same over the span) - a |rho|^2/nu,

because ``G`` has no negative eigenvalue. So a reduced game knows how far below its ``phi`` the true
one can lie, at every ``t``, from the recurrence alone.
"""

from __future__ import annotations

import numpy as np

from spgls.base.types import Array, Vector
from spgls.game.providers import Population
from spgls.population import GroupMoments, PopulationSolution, phi
from spgls.reduction.reduced import ReducedGame
from spgls.sphere.fixed_norm import solve_fixed_norm

__all__ = ["Truncation"]

#: Norms at which the span is compared with all of space: on each side, and for a unit of log t.
_POINTS, _DENSITY = 24, 1.3
#: Multipliers below this share of the largest eigenvalue would take too long to prove by.
_WEAK = 1e-6
#: Multipliers tried at each norm, in units of the largest eigenvalue.
_TRIALS = np.geomspace(1e-14, 1e2, 49)


class Truncation:
    """How far below a reduced game's values those of the whole game can lie.

    Parameters
    ----------
    game : ReducedGame
        The game on the span.
    factor : ndarray
        ``|factor x|`` is the part of ``G v`` outside the span, for coordinates ``x`` of ``v``.
    population : Population
        Who the providers are.
    ridge : float
        Weight of the squared norm.
    pure : bool
        Whether the space was started at labels and goals alone.
    singular : bool
        Whether the data certainly has a null space.
    """

    def __init__(
        self,
        game: ReducedGame,
        factor: Array,
        population: Population,
        ridge: float,
        *,
        pure: bool = False,
        singular: bool = False,
    ) -> None:
        self.game, self.factor, self.ridge, self.pure = game, factor, ridge, pure
        self.singular = singular
        groups = population.merged()
        self.gammas, self.shares = np.array(groups.gammas), np.array(groups.shares)
        self._groups = GroupMoments(self.gammas, self.shares)
        #: Coordinates at the norm that is known worst, where it is not the optimum's.
        self.worst: Vector | None = None

    def weights(self, t: float) -> tuple[float, float, float]:
        """``a``, and the weights of ``p_y`` and ``-p_z`` in ``q``, at a squared norm."""
        m = self._groups.at(t)
        return m.a, m.p / m.a, m.u / m.a

    def _target(self, t: float) -> tuple[float, Vector]:
        """``a`` and ``q``, the right-hand side of ``(G + nu) v = q``."""
        a, y, z = self.weights(t)
        return a, np.asarray(self.game.sigma * (y * self.game.eta - z * self.game.zeta))

    def _outside(self, small: PopulationSolution) -> float:
        """``|rho|`` at an optimum; a null vector of the data adds nothing to it."""
        x = small.x
        if small.fill > 0.0 and not self.game.nullity:
            x = x.copy()
            x[int(np.argmin(self.game.sigma))] += small.fill
        return float(np.linalg.norm(self.factor @ x))

    def residual(self, small: PopulationSolution) -> float:
        """Norm of half the gradient of the loss that the span does not see, at an optimum."""
        return self.weights(small.t)[0] * self._outside(small)

    def guess_lowest(self, small: PopulationSolution) -> float:
        """What eigenvalues are taken to exceed: zero, which is certain, or half of the Ritz values.

        The latter is an estimate, of use where the multiplier is small or negative: providers so
        strong that the honest decide alone, or so weak that they do not count.
        """
        half = float(self.game.d.min()) / 2 if self.game.size else 0.0
        # With other columns in the start, residuals have parts that Ritz values know nothing of.
        enough = half if self.pure else 0.0
        if self.singular or not self._groups.honest:
            # Nothing of the proof needs more than a positive multiplier.
            enough = min(enough, _WEAK * self.game.top**2)
        return 0.0 if small.nu > enough else half

    def at_optimum(self, small: PopulationSolution, lowest: float) -> float:
        """How far below the value of an optimum that of the whole game can lie, at its norm.

        Parameters
        ----------
        small : PopulationSolution
            The optimum on the span.
        lowest : float
            What no eigenvalue of ``G`` is below.
        """
        rho = self._outside(small)
        if rho == 0.0:
            return 0.0
        a, _, _ = self.weights(small.t)
        above = small.nu + lowest
        return a * rho**2 / above if above > 0.0 else np.inf

    def anywhere(
        self, small: PopulationSolution, lowest: float, known: dict[int, float] | None = None
    ) -> float:
        """The same at any norm, on a grid of them.

        Parameters
        ----------
        small : PopulationSolution
            The optimum on the span.
        lowest : float
            What no eigenvalue of ``G`` is below.
        known : dict, optional
            Bounds at points of the grid found on other spaces, and from now on those of this one:
            at a given norm the best bound counts, whichever space it came from.
        """
        game, moving = self.game, self._groups.gamma
        here = min(self.at_optimum(small, lowest), small.value)
        # The honest alone play a convex game.
        if not game.size or not moving.size or not self.factor.any():
            return here
        known = {} if known is None else known
        centre = round(_DENSITY * np.log(small.t or float(moving.min())))
        points = np.arange(centre - _POINTS, centre + _POINTS + 1)
        values = phi(game, self.gammas, self.shares, np.exp(points / _DENSITY), self.ridge)
        for point, value in zip(points.tolist(), values.tolist(), strict=True):
            t = float(np.exp(point / _DENSITY))
            certain, x = self._bound(t, value, 0.0)
            known[point] = bound = max(known.get(point, 0.0), certain)
            if lowest > 0.0 and small.value - bound > here:
                bound = max(bound, self._bound(t, value, lowest)[0])
            if small.value - bound > here:
                here, self.worst = small.value - bound, x
        return here

    def _bound(self, t: float, value: float, lowest: float) -> tuple[float, Vector]:
        """Lower bound of the whole game's ``phi``, given the span's, and the ``v`` it rests on."""
        game = self.game
        a, q = self._target(t)
        best = solve_fixed_norm(game.d, q, t, game.nullity)
        # What phi holds beside the quadratic.
        rest = value - a * float(best.v @ (game.d * best.v) - 2 * q @ best.v)
        rest -= a * game.lowest * best.fill**2
        nu = _TRIALS * float(game.d.max()) - lowest
        if best.nu > -lowest:
            nu = np.append(nu, best.nu)
        v = q / (game.d + nu[:, None])
        lagrangian = rest - a * (v @ q) - a * nu * t
        rho = v @ self.factor.T
        bound = lagrangian - a * np.einsum("ij,ij->i", rho, rho) / (nu + lowest)
        best_at = int(np.argmax(bound))
        # A loss is a sum of squares, and so is every part of it.
        return max(float(bound[best_at]), 0.0), v[best_at]
