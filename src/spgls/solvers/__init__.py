"""Solvers by name, what they declare, and what they return."""

from __future__ import annotations

from spgls.solvers.base import Capabilities, Solver, available_solvers, resolve
from spgls.solvers.gltr import GLTR
from spgls.solvers.iterate import Controls
from spgls.solvers.solution import Solution, Stats, Status, Step
from spgls.solvers.spectral import Spectral

__all__ = [
    "GLTR",
    "Capabilities",
    "Controls",
    "Solution",
    "Solver",
    "Spectral",
    "Stats",
    "Status",
    "Step",
    "available_solvers",
    "resolve",
]
