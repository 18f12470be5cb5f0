"""From data of any size to one small object that answers every strength of provider."""

from __future__ import annotations

from spgls.reduction.exact import reduce_spectral
from spgls.reduction.krylov_space import KrylovSpace
from spgls.reduction.reduced import ReducedGame
from spgls.reduction.reduction import Reduction
from spgls.reduction.ritz import KrylovReduction, reduce_krylov

__all__ = [
    "KrylovReduction",
    "KrylovSpace",
    "ReducedGame",
    "Reduction",
    "reduce_krylov",
    "reduce_spectral",
]
