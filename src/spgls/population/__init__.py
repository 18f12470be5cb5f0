"""Populations of providers: the search over one number, and the proof that it is global."""

from __future__ import annotations

from spgls.population.bound import interval_bound
from spgls.population.moments import Group, GroupMoments, Moments
from spgls.population.search import Outcome
from spgls.population.solve import PopulationSolution, phi, solve_population

__all__ = [
    "Group",
    "GroupMoments",
    "Moments",
    "Outcome",
    "PopulationSolution",
    "interval_bound",
    "phi",
    "solve_population",
]
