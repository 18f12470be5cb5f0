"""Solvers by name, what they declare, and what they return."""

from __future__ import annotations

from spgls.solvers.base import Capabilities, Solver, available_solvers, resolve
from spgls.solvers.solution import Solution, Stats, Status
from spgls.solvers.spectral import Spectral

__all__ = [
    "Capabilities",
    "Solution",
    "Solver",
    "Spectral",
    "Stats",
    "Status",
    "available_solvers",
    "resolve",
]
