"""Solvers by name, what they declare, and what they return."""

from __future__ import annotations

from spgls.solvers.auto import Auto, Option, Plan, check_memory
from spgls.solvers.dispatch import check_knows, play
from spgls.solvers.iterative.iterate import Controls
from spgls.solvers.krylov.solver import Krylov
from spgls.solvers.own import OwnSolver, certified_solution
from spgls.solvers.published.admm import ADMM
from spgls.solvers.published.bisection import Bisection
from spgls.solvers.published.gltr import GLTR
from spgls.solvers.published.ltrsr import LTRSR
from spgls.solvers.published.rtr_newton import RTRNewton
from spgls.solvers.published.sdp import SDP
from spgls.solvers.published.socp import SOCP
from spgls.solvers.recover import Clock
from spgls.solvers.registry import (
    Capabilities,
    PathSolver,
    PopulationSolver,
    RangeSolver,
    Solver,
    SolverFunction,
    SolverLike,
    available_solvers,
    register,
    resolve,
)
from spgls.solvers.solution import End, Solution, Stats, Status, Step, latest
from spgls.solvers.spectral import Spectral

__all__ = [
    "ADMM",
    "GLTR",
    "LTRSR",
    "SDP",
    "SOCP",
    "Auto",
    "Bisection",
    "Capabilities",
    "Clock",
    "Controls",
    "End",
    "Krylov",
    "Option",
    "OwnSolver",
    "PathSolver",
    "Plan",
    "PopulationSolver",
    "RTRNewton",
    "RangeSolver",
    "Solution",
    "Solver",
    "SolverFunction",
    "SolverLike",
    "Spectral",
    "Stats",
    "Status",
    "Step",
    "available_solvers",
    "certified_solution",
    "check_knows",
    "check_memory",
    "latest",
    "play",
    "register",
    "resolve",
]
