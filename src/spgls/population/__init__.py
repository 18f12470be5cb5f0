"""Populations of providers: the search over one number, and the proof that it is global."""

from __future__ import annotations

from spgls.population.bound import interval_bound
from spgls.population.moments import Group, GroupMoments, Moments
from spgls.population.optimum import PopulationSolution, phi, solve_population
from spgls.population.search import Outcome

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
