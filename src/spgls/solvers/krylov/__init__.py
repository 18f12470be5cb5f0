"""Our matrix-free solver: a Krylov space that grows until it holds the optima."""

from __future__ import annotations

from spgls.solvers.krylov.solver import Krylov

__all__ = ["Krylov"]
