"""Measures cells one after another in a process of their own, and goes on where it was stopped.

One process is kept warm for many cells, so that imports, data and compiled code are there. It is
killed, and another one started, where a cell outlasts its limits. A cell's file appears once the
cell is finished, so a run that is killed at any moment loses no more than the cell at hand.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from queue import Empty, SimpleQueue
from time import monotonic
from typing import IO, Any

from reproduction.cell import Cell
from reproduction.environment import available_cores, environment, pinned
from reproduction.store import Record, Store

__all__ = ["RunProgress", "Summary", "run_cells"]

#: Seconds between looks at the memory of the process.
WATCH = 0.05
#: Seconds in which a process must be ready, or have a game in memory.
PATIENCE = 600.0

MEASURE = "reproduction.measure:measure"


@dataclass(frozen=True)
class RunProgress:
    """How far a run is.

    Attributes
    ----------
    done, total : int
        Cells, those from earlier runs included.
    cell : Cell
        The one that comes next, or that was finished last.
    remaining : float or None
        Seconds that the rest will take, by what the finished cells took against what was expected
        of them; None before the first.
    """

    done: int
    total: int
    cell: Cell
    remaining: float | None


@dataclass
class Summary:
    """What a run did.

    Attributes
    ----------
    measured, kept : int
        Cells measured now, and before.
    unavailable : dict
        Cells left open, by reason.
    """

    measured: int = 0
    kept: int = 0
    unavailable: dict[str, list[Cell]] = field(default_factory=dict)


def run_cells(
    cells: Sequence[Cell],
    folder: Path,
    *,
    threads: int | None = None,
    notify: Callable[[RunProgress], object] | None = None,
    measure: str = MEASURE,
) -> Summary:
    """Measure what is not measured yet.

    Parameters
    ----------
    cells : sequence of Cell
        In the order they run; those on the same game should be neighbours.
    folder : Path
        Where the cells go; made if it is missing.
    threads : int, optional
        Threads of the process that measures; by default as many as there are cores.
    notify : callable, optional
        Told the :class:`RunProgress` before each cell and at the end.
    measure : str
        ``module:function`` that measures a cell; see :mod:`reproduction.worker`.

    Returns
    -------
    Summary

    Raises
    ------
    ResultsError
        A file there is damaged, or another run is writing to the folder.
    OSError
        A file could not be written. What was finished is kept.
    """
    store, summary = Store(folder), Summary()
    count = threads or available_cores()
    with store.locked(), _Worker(measure, count) as worker:
        known = {cell: store.read(cell) for cell in cells}
        kept = {cell: record for cell, record in known.items() if record and record.lasts}
        store.check_threads(kept.values(), count)
        open_cells = [cell for cell in cells if cell not in kept]
        summary.kept = len(cells) - len(open_cells)
        name, about = environment(count)
        pace = _Pace(open_cells)
        missing: dict[str, str] = {}
        for number, cell in enumerate(open_cells):
            if notify is not None:
                notify(RunProgress(summary.kept + number, len(cells), cell, pace.remaining))
            reason = missing.get(cell.data.source) or missing.get(cell.method)
            if reason is None:
                began = monotonic()
                outcome, values = worker.measure(cell)
                if outcome == "unavailable":
                    reason = values["reason"]
                    # Nobody waits for a dead network once for each cell.
                    missing[values["need"]] = reason
                else:
                    store.write_environment(name, about)
                    store.write(Record(cell, outcome, values, name))
                    summary.measured += 1
                    pace.took(cell, monotonic() - began)
            if reason is not None:
                summary.unavailable.setdefault(reason, []).append(cell)
                pace.took(cell, 0.0)
        if notify is not None and cells:
            notify(RunProgress(len(cells), len(cells), cells[-1], 0.0))
    return summary


class _Pace:
    """How long the rest takes."""

    def __init__(self, cells: Sequence[Cell]) -> None:
        self._left = sum(cell.expected for cell in cells)
        self._expected = self._took = 0.0

    def took(self, cell: Cell, seconds: float) -> None:
        self._left -= cell.expected
        if seconds:
            self._expected += cell.expected
            self._took += seconds

    @property
    def remaining(self) -> float | None:
        return self._left * self._took / self._expected if self._expected else None


class _Worker:
    """The process at the other end, started when it is needed."""

    def __init__(self, target: str, threads: int) -> None:
        self._target = target
        self._variables = pinned(threads)
        self._process: subprocess.Popen[str] | None = None
        self._answers: SimpleQueue[dict[str, Any] | None] = SimpleQueue()
        self._listener: threading.Thread | None = None
        self._errors: IO[bytes] | None = None

    def __enter__(self) -> _Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self._kill()

    def measure(self, cell: Cell) -> tuple[str, dict[str, Any]]:
        """Outcome and values of a cell."""
        process = self._asked(json.dumps(cell.to_dict()) + "\n")
        end, limit = monotonic() + PATIENCE, PATIENCE
        while True:
            answer = self._wait(process, end, cell.memory)
            if isinstance(answer, str):
                self._kill()
                return answer, {"limit": limit if answer == "time" else cell.memory}
            if answer is None:
                status = process.wait()
                self._kill()
                return "died", {"reason": f"its process ended with status {status}"}
            if answer["event"] == "started":
                end, limit = monotonic() + cell.seconds, cell.seconds
            elif answer["event"] == "unavailable":
                return "unavailable", {"need": answer["need"], "reason": answer["reason"]}
            else:
                return answer["outcome"], answer["values"]

    def _wait(
        self, process: subprocess.Popen[str], end: float, memory: float
    ) -> dict[str, Any] | str | None:
        """Next answer, the limit that was reached, or None where the process ended."""
        while True:
            try:
                return self._answers.get(timeout=max(0.0, min(WATCH, end - monotonic())))
            except Empty:
                if monotonic() >= end:
                    return "time"
                if _resident_gib(process.pid) > memory:
                    return "memory"

    def _asked(self, request: str) -> subprocess.Popen[str]:
        """The process, with a request sent; a new one where the last has gone meanwhile."""
        process = self._process or self._start()
        assert process.stdin is not None
        try:
            process.stdin.write(request)
            process.stdin.flush()
        except OSError:
            self._kill()
            return self._asked(request)
        return process

    def _start(self) -> subprocess.Popen[str]:
        errors = self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        process = self._process = subprocess.Popen(
            [sys.executable, "-m", "reproduction.worker", self._target],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            encoding="utf-8",
            env=self._variables,
        )
        self._answers = SimpleQueue()
        self._listener = threading.Thread(
            target=_listen, args=(process.stdout, self._answers), daemon=True
        )
        self._listener.start()
        if not isinstance(self._wait(process, monotonic() + PATIENCE, inf), dict):
            errors.seek(0)
            told = errors.read().decode(errors="replace").strip().splitlines() or ["nothing"]
            self._kill()
            raise RuntimeError(f"The process that measures could not start; it said: {told[-1]}")
        return process

    def _kill(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            if self._listener is not None:
                self._listener.join()
            for pipe in (process.stdin, process.stdout):
                with suppress(OSError):
                    assert pipe is not None
                    pipe.close()
        if self._errors is not None:
            self._errors.close()
            self._errors = None


def _listen(lines: IO[str], answers: SimpleQueue[dict[str, Any] | None]) -> None:
    # A process that is killed may leave half a line.
    with suppress(ValueError):
        for line in lines:
            answers.put(json.loads(line))
    answers.put(None)


def _resident_gib(pid: int) -> float:
    """Memory of a process; zero where the system does not say."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**30
    except (OSError, IndexError, ValueError, AttributeError):
        return 0.0
