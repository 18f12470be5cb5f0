"""From data of any size to one small object that answers every strength of provider."""

from __future__ import annotations

from spgls.reduced import ReducedGame
from spgls.reduction.krylov import KrylovSpace
from spgls.reduction.reduction import Reduction
from spgls.reduction.ritz import KrylovReduction, reduce_krylov
from spgls.reduction.spectral import reduce_spectral

__all__ = [
    "KrylovReduction",
    "KrylovSpace",
    "ReducedGame",
    "Reduction",
    "reduce_krylov",
    "reduce_spectral",
]
