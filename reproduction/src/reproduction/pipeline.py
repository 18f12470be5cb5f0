"""From experiments to tables: measure what is missing, then write; nothing is printed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from reproduction.experiment import Experiment
from reproduction.outputs import write_outputs
from reproduction.runner import RunProgress, Summary, run_cells
from reproduction.store import Results

__all__ = ["Reproduction", "reproduce"]


@dataclass(frozen=True)
class Reproduction:
    """What came of it.

    Attributes
    ----------
    summary : Summary
        What was measured, and what could not be.
    files : tuple of Path
        Tables and pictures.
    """

    summary: Summary
    files: tuple[Path, ...]


def reproduce(
    experiments: Sequence[Experiment],
    folder: Path,
    *,
    scale: str = "machine",
    protocol: str = "code",
    threads: int | None = None,
    notify: Callable[[RunProgress], object] | None = None,
) -> Reproduction:
    """Measure experiments, or go on with them, and write their tables and pictures.

    Parameters
    ----------
    experiments : sequence of Experiment
        From :func:`find_experiments`.
    folder : Path
        Where everything goes. What is there already is not measured again.
    scale : {"quick", "machine", "paper"}
        How large.
    protocol : {"code", "paper"}
        Whether as in the authors' code or as in the text.
    threads : int, optional
        Threads of the solvers; by default as many as there are cores.
    notify : callable, optional
        Told the progress.

    Returns
    -------
    Reproduction
    """
    planned = {experiment: experiment.cells(scale, protocol) for experiment in experiments}
    cells = [cell for listed in planned.values() for cell in listed]
    summary = run_cells(cells, folder, threads=threads, notify=notify)
    if not summary.measured and not summary.kept:
        return Reproduction(summary, ())
    everything = Results.read(folder)
    files = [everything.collect(folder)]
    for experiment, listed in planned.items():
        found = everything.of(listed)
        if found.records:
            files += write_outputs(experiment, found, folder)
    return Reproduction(summary, tuple(files))
