"""Every table and figure of the papers: what to measure, one runner, and what it shows.

``catalogue`` says what is measured, ``runner`` measures it cell by cell, ``tables``, ``figures``,
``claims`` and ``report`` read the cells. ``spgls reproduce`` is the way in.
"""

from __future__ import annotations

from spgls.experiments.catalogue import EXPERIMENTS, find_experiments
from spgls.experiments.experiment import PROTOCOLS, SCALES, Experiment
from spgls.experiments.reproduction import Reproduction, reproduce
from spgls.experiments.runner import Progress, Summary, run_cells
from spgls.experiments.store import Results, ResultsError

__all__ = [
    "EXPERIMENTS",
    "PROTOCOLS",
    "SCALES",
    "Experiment",
    "Progress",
    "Reproduction",
    "Results",
    "ResultsError",
    "Summary",
    "find_experiments",
    "reproduce",
    "run_cells",
]
