"""A live process that imports one version of spgls, and works only when it is asked to.

Requests and replies are lines of JSON. Between them the process waits for its pipe, so that of two
workers at most one is at work.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

__all__ = ["Failed", "Worker", "limits"]

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class Failed(RuntimeError):
    """A worker could not do what it was asked to."""


def limits(threads: int) -> dict[str, str]:
    """Environment of both workers: as many threads, which sleep while they wait, and one hash seed.

    OpenBLAS has no such setting: its threads spin for some milliseconds, which a pause outlasts.
    """
    alike = {"OMP_WAIT_POLICY": "passive", "PYTHONHASHSEED": "0"}
    return dict.fromkeys(_THREADS, str(threads)) | alike


class Worker:
    """The driver's end of a worker.

    Parameters
    ----------
    name : str
        What to call it in messages.
    source : Path
        Folder from which it has to import spgls.
    threads : int
        Threads that its libraries may use.
    """

    def __init__(self, name: str, source: Path, threads: int) -> None:
        self.name = name
        path = os.pathsep.join(filter(None, [str(source), os.environ.get("PYTHONPATH")]))
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", __file__],
            env=os.environ | limits(threads) | {"PYTHONPATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            self._ask("check", str(source))
        except Failed:
            self.close()
            raise

    @property
    def pid(self) -> int:
        return self._process.pid

    def build(self, title: str) -> float:
        """Build the data of a case, call it until it is warm, and return the seconds of a call."""
        return self._ask("build", title)

    def turn(self, calls: int) -> dict[str, Any]:
        """Time some calls: the median of their seconds, and the answer."""
        return self._ask("turn", calls)

    def drop(self) -> None:
        """Let go of the data."""
        self._ask("drop", None)

    def close(self) -> None:
        """End the process."""
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

    def _ask(self, what: str, argument: Any) -> Any:
        try:
            self._process.stdin.write(json.dumps([what, argument]) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise Failed(f"{self.name}: its process has ended, status {self._process.wait()}.")
        reply = json.loads(line)
        if "error" in reply:
            raise Failed(f"{self.name}: {reply['error']}")
        return reply["value"]


class _Server:
    """The worker's own end: one case at a time."""

    def __init__(self) -> None:
        self.labels: Any = None
        self.call: Callable[[], Any] | None = None

    def check(self, source: str) -> None:
        import spgls

        found = Path(spgls.__file__).resolve()
        if not found.is_relative_to(Path(source).resolve()):
            raise ImportError(f"spgls comes from {found.parent}, not from {source}.")

    def build(self, title: str) -> float:
        from against_cases import tasks

        task = next(task for task in tasks() if task.title == title)
        self.labels, self.call = task.build()
        # The first call compiles, or loads what is compiled.
        self.call()
        return min(self._timed()[0] for _ in range(3))

    def turn(self, calls: int) -> dict[str, Any]:
        from against_cases import read
        from harness import PAUSE, wake

        wake(self.call, PAUSE)
        seconds = []
        for _ in range(calls):
            spent, result = self._timed()
            seconds.append(spent)
        return {"seconds": median(seconds), **read(result, self.labels)._asdict()}

    def _timed(self) -> tuple[float, Any]:
        start = time.perf_counter()
        result = self.call()
        return time.perf_counter() - start, result

    def drop(self, _: None) -> None:
        self.labels = self.call = None


def serve() -> None:
    """Answer requests until the pipe is closed."""
    # What a library prints must not end up among the replies.
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    server = _Server()
    for line in sys.stdin:
        what, argument = json.loads(line)
        try:
            reply = {"value": getattr(server, what)(argument)}
        except Exception as error:
            reply = {"error": f"{type(error).__name__}: {error}"}
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


if __name__ == "__main__":
    serve()
