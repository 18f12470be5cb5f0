"""Every table and figure of the papers: what to measure, one runner, and what it shows.

``catalogue`` says what is measured, ``runner`` measures it cell by cell, ``tables``, ``figures``,
``claims`` and ``page`` read the cells. ``python -m reproduction`` is the way in.
"""

from __future__ import annotations

from reproduction.catalogue import EXPERIMENTS, find_experiments
from reproduction.experiment import PROTOCOLS, SCALES, Experiment
from reproduction.pipeline import Reproduction, reproduce
from reproduction.runner import RunProgress, Summary, run_cells
from reproduction.store import Results, ResultsError

__all__ = [
    "EXPERIMENTS",
    "PROTOCOLS",
    "SCALES",
    "Experiment",
    "Reproduction",
    "Results",
    "ResultsError",
    "RunProgress",
    "Summary",
    "find_experiments",
    "reproduce",
    "run_cells",
]
