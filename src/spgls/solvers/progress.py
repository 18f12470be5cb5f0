"""A line that tells how far a long solve has come, as a callback."""

from __future__ import annotations

import sys
from time import perf_counter
from typing import TextIO

from spgls.base.validation import check_number
from spgls.solvers.solution import Step
from spgls.streams import Reading

__all__ = ["Progress"]

#: Seconds between two changes of the line.
_PAUSE = 0.2


class Progress:
    """Show the steps of an iterative solver that takes longer than a second.

    Pass it as ``callback`` to :func:`solve`, :func:`solve_path` or :func:`compare_solvers`. On a
    terminal one line is written over and over and cleared in the end; elsewhere, as in a log, there
    is a line now and then. Solvers that decompose the data have no steps to show; the reads of a
    :func:`stream` are shown if it is passed there as ``progress``.

    Parameters
    ----------
    after : float
        Seconds that a solve may take in silence.
    limit : float, optional
        Seconds after which to stop. The solve then returns its last predictor, with a certificate
        of what is known about it and the status ``STOPPED``.
    file : text stream, optional
        Where to write; the error stream by default.

    Examples
    --------
    >>> import numpy as np
    >>> from spgls import Progress, solve
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 200))
    >>> y = X @ rng.normal(size=200)
    >>> z = np.maximum(y, 0.0)
    >>> solve(X, y, z, 1e3, solver="gltr", callback=Progress()).status
    <Status.OPTIMAL: 'optimal'>
    >>> solve(X, y, z, 1e3, solver="gltr", callback=Progress(limit=1e-9)).status
    <Status.STOPPED: 'stopped'>
    """

    def __init__(
        self, *, after: float = 1.0, limit: float | None = None, file: TextIO | None = None
    ) -> None:
        self.after = check_number(after, "after", at_least=0.0)
        self.limit = None if limit is None else check_number(limit, "limit", above=0.0)
        self._file = file
        self._shown = 0.0
        self._seconds = 0.0
        self._first: float | None = None
        self._width = 0

    def __call__(self, step: Step | Reading) -> bool:
        """Show a step, and say whether time is up; or how far a read has come."""
        if isinstance(step, Reading):
            now = perf_counter()
            if step.seconds >= self.after and now - self._shown >= self._pause:
                self._shown = now
                self._write(str(step))
            return False
        if step.iteration <= 1 or step.seconds < self._seconds:
            self._first = None
        self._seconds = step.seconds
        if self._first is None:
            self._first = step.residual
        stop = self.limit is not None and step.seconds >= self.limit
        now = perf_counter()
        if step.seconds >= self.after and (stop or now - self._shown >= self._pause):
            self._shown = now
            self._write(self._line(step) + (": time is up" if stop else ""))
        return stop

    def close(self) -> None:
        """Clear the line."""
        if self._width:
            self._stream.write("\r" + " " * self._width + "\r")
            self._stream.flush()
            self._width = 0

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _stream(self) -> TextIO:
        return sys.stderr if self._file is None else self._file

    @property
    def _terminal(self) -> bool:
        return self._stream.isatty()

    @property
    def _pause(self) -> float:
        return _PAUSE if self._terminal else 25 * _PAUSE

    def _line(self, step: Step) -> str:
        known = self._first is not None and self._first > 0.0
        gained = f" of {self._first:.2g} at first" if known else ""
        return (
            f"step {step.iteration}, {step.seconds:.1f} s, {step.passes:g} reads of the data, "
            f"objective {step.objective:.6g}, residual {step.residual:.2g}{gained}"
        )

    def _write(self, line: str) -> None:
        if self._terminal:
            self._stream.write("\r" + line.ljust(self._width))
            self._width = len(line)
        else:
            self._stream.write(line + "\n")
        self._stream.flush()
