"""The small object every reduction of the data ends in, and every small solver starts from."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from spgls.base.cached import cached_property
from spgls.base.types import Vector
from spgls.reduction.rounding import Rounding

__all__ = ["ReducedGame"]

EXACT = Rounding()


@dataclass(frozen=True, eq=False)
class ReducedGame:
    """A game in the singular coordinates of its (projected, priced, weighted) data.

    Every game on the same data, whatever the strength of its providers, depends on the data
    through these numbers only. Sums of products such as ``A'y`` could be stored instead, but
    coordinates keep twice as many digits.

    Parameters
    ----------
    sigma : ndarray of shape (k,)
        Positive singular values of the data, in any order.
    eta, zeta : ndarray of shape (k,)
        Coordinates of the labels and of the goals along the left singular vectors.
    r_yy, r_yz, r_zz : float
        Gram matrix of what is left of labels and goals outside the range of the data. Only its
        sums with the coordinates count, so rounding in one may be made up for in the other.
    nullity : int
        Number of directions of the coefficients that the data does not see.
    free_gap : float
        Squared norm of the part of ``y - z`` that intercept and immutable features explain.
        Populations need it; a single strength does not.
    rounding : Rounding
        How far all this may be from the data it came from; exact by default.
    """

    sigma: Vector
    eta: Vector
    zeta: Vector
    r_yy: float
    r_yz: float
    r_zz: float
    nullity: int = 0
    free_gap: float = 0.0
    rounding: Rounding = EXACT
    d: Vector = field(init=False, repr=False)
    yy: float = field(init=False, repr=False)
    yz: float = field(init=False, repr=False)
    zz: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        set_(self, "d", self.sigma**2)
        set_(self, "yy", float(self.eta @ self.eta) + self.r_yy)
        set_(self, "yz", float(self.eta @ self.zeta) + self.r_yz)
        set_(self, "zz", float(self.zeta @ self.zeta) + self.r_zz)

    @property
    def size(self) -> int:
        """Number of singular directions."""
        return int(self.sigma.shape[0])

    @cached_property
    def as_computed(self) -> ReducedGame:
        """The same numbers, taken for exact: what a solver has to answer for."""
        return replace(self, rounding=EXACT)

    @cached_property
    def top(self) -> float:
        """Largest singular value."""
        return float(self.sigma.max()) if self.size else 0.0

    @cached_property
    def lowest(self) -> float:
        """Smallest eigenvalue of the squared data; zero if it has a null space."""
        return 0.0 if self.nullity or not self.size else float(self.d.min())

    def __repr__(self) -> str:
        spread = f"{self.sigma.max() / self.sigma.min():.3g}" if self.size else "none"
        return (
            f"ReducedGame(size={self.size}, nullity={self.nullity}, condition={spread}, "
            f"|y|^2={self.yy:.6g}, |z|^2={self.zz:.6g})"
        )
