"""Interleaved comparison of two sides in one process, and the record of what was measured.

The rules: both sides run in turn, A B A B, in one process and on the same number of threads; the
first call of each is reported apart; the ratio is the median over the pairs; and it is printed
only if our answer is certified (and the peer's, where it solves the same problem).
"""

from __future__ import annotations

import json
import os
import platform
import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numba
import numpy as np
from quiet import NotQuiet, require_quiet
from threadpoolctl import threadpool_limits

__all__ = [
    "CERTIFIED",
    "PAUSE",
    "Case",
    "Measurement",
    "NotQuiet",
    "Timings",
    "environment",
    "interleave",
    "machine",
    "markdown",
    "measure",
    "peak",
    "ratio_cell",
    "require_quiet",
    "save",
    "wake",
]

#: Largest certified relative gap at which a time counts, where a case does not say otherwise.
CERTIFIED = 1e-9
#: Seconds before a call, for the BLAS threads of whoever ran before to stop spinning.
PAUSE = 0.1
PACKAGES = ("numpy", "scipy", "scikit-learn", "spgls")


@dataclass(frozen=True)
class Case:
    """Two sides to compare.

    Attributes
    ----------
    name : str
        What is solved.
    ours : callable
        Our side: a Solution or a fitted estimator, certificate included.
    peer : callable
        The other side.
    peer_name : str
        What the other side calls.
    target : float
        Largest ratio of our time to the peer's that meets the goal.
    pairs : int
        Timed pairs.
    pause : float
        Seconds before each call, for the other side's BLAS threads to stop spinning; untimed
        calls of the same side follow for as long, at least one.
    accuracy : float
        Largest certified relative gap at which a time counts.
    """

    name: str
    ours: Callable[[], Any]
    peer: Callable[[], Any]
    peer_name: str
    target: float
    pairs: int
    pause: float = 0.0
    accuracy: float = CERTIFIED


@dataclass(frozen=True)
class Measurement:
    """What one case gave, times in seconds."""

    name: str
    peer: str
    threads: int
    pairs: int
    warm_up_ours: float
    warm_up_peer: float
    ours: float
    theirs: float
    ratio: float | None
    ratio_quartiles: tuple[float, float] | None
    target: float
    relative_gap: float

    @property
    def verdict(self) -> str:
        """Whether the target was met; NC where our answer is not certified."""
        if self.ratio is None:
            return "NC"
        return "met" if self.ratio <= self.target else "MISSED"


@dataclass(frozen=True)
class Timings:
    """Seconds of each call, first calls apart, and what the last calls returned.

    Earlier results are let go: memory held for one side alone slows that side down.
    """

    first_ours: float
    first_peer: float
    ours: np.ndarray
    theirs: np.ndarray
    our_result: Any
    peer_result: Any

    @property
    def ratio(self) -> float:
        """Median over the pairs of our time to the peer's."""
        return float(np.median(self.ours / self.theirs))

    @property
    def quartiles(self) -> tuple[float, float]:
        """Quartiles of the pairs' ratios."""
        low, high = np.quantile(self.ours / self.theirs, [0.25, 0.75])
        return float(low), float(high)


def interleave(
    ours: Callable[[], Any],
    peer: Callable[[], Any],
    *,
    threads: int,
    pairs: int,
    pause: float = 0.0,
) -> Timings:
    """Time both sides in turn, after one call of each."""
    numba.set_num_threads(threads)
    with threadpool_limits(limits=threads):
        first, result = _timed(ours)
        first_peer, peer_result = _timed(peer)
        seconds = np.empty((pairs, 2))
        for pair in seconds:
            pair[0], result = _timed(ours, pause)
            pair[1], peer_result = _timed(peer, pause)
    return Timings(first, first_peer, seconds[:, 0], seconds[:, 1], result, peer_result)


def measure(case: Case, threads: int) -> Measurement:
    """Time both sides in turn."""
    timings = interleave(case.ours, case.peer, threads=threads, pairs=case.pairs, pause=case.pause)
    result = timings.our_result
    proof = result.certificate_ if hasattr(result, "certificate_") else result.certificate
    gap = proof.relative_gap
    certified = gap <= case.accuracy
    return Measurement(
        name=case.name,
        peer=case.peer_name,
        threads=threads,
        pairs=case.pairs,
        warm_up_ours=timings.first_ours,
        warm_up_peer=timings.first_peer,
        ours=float(np.median(timings.ours)),
        theirs=float(np.median(timings.theirs)),
        ratio=timings.ratio if certified else None,
        ratio_quartiles=timings.quartiles if certified else None,
        target=case.target,
        relative_gap=float(gap),
    )


def wake(function: Callable[[], Any], pause: float) -> None:
    """Let the other side's threads fall asleep, and wake ours by calls for as long."""
    time.sleep(pause)
    awake = time.perf_counter() + pause
    function()
    while time.perf_counter() < awake:
        function()


def _timed(function: Callable[[], Any], pause: float = 0.0) -> tuple[float, Any]:
    if pause:
        wake(function, pause)
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


def peak(function: Callable[[], Any]) -> float:
    """Most bytes that a call held."""
    tracemalloc.start()
    try:
        function()
        return float(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()


def environment(*peers: str) -> dict[str, Any]:
    """Machine, date and versions, those of the named peers included."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "memory_gb": _memory_gb(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "packages": {name: version(name) for name in (*PACKAGES, *peers)},
    }


def _cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"


def _memory_gb() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (ValueError, OSError, AttributeError):
        return None


def machine(about: dict[str, Any]) -> str:
    """Return the environment as a sentence."""
    return (
        f"{about['date']}, {about['cpu']}, {about['cores']} cores, {about['memory_gb']} GiB, "
        f"{about['system']}; Python {about['python']}, "
        + ", ".join(f"{name} {number}" for name, number in about["packages"].items())
        + "."
    )


def markdown(measurements: list[Measurement], about: dict[str, Any]) -> str:
    """Return the results as a page."""
    lines = [
        "# Benchmark results",
        "",
        machine(about),
        "",
        "Times in milliseconds, medians; both sides in one process, interleaved, on equally many "
        "threads. The ratio is the median of the pairs' ratios (quartiles in brackets); NC: our "
        f"answer is not certified to {CERTIFIED:g}, or to what the case says.",
        "",
        "| case | against | threads | pairs | spgls | peer | ratio | target | |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    lines += ["| " + " | ".join(_row(m)) + " |" for m in measurements]
    lines += ["", "First calls, not counted above:", ""]
    lines += ["| case | threads | spgls | peer |", "| --- | ---: | ---: | ---: |"]
    lines += [
        f"| {m.name} | {m.threads} | {1e3 * m.warm_up_ours:.3g} | {1e3 * m.warm_up_peer:.3g} |"
        for m in measurements
    ]
    return "\n".join(lines) + "\n"


def _row(m: Measurement) -> list[str]:
    return [
        m.name,
        m.peer,
        str(m.threads),
        str(m.pairs),
        f"{1e3 * m.ours:.3g}",
        f"{1e3 * m.theirs:.3g}",
        ratio_cell(m.ratio, m.ratio_quartiles),
        f"{m.target:g}",
        m.verdict,
    ]


def ratio_cell(ratio: float | None, quartiles: tuple[float, float] | None) -> str:
    """Return a ratio with its quartiles, or NC."""
    if ratio is None or quartiles is None:
        return "NC"
    return f"{ratio:.2f} [{quartiles[0]:.2f}, {quartiles[1]:.2f}]"


def save(
    measurements: Sequence[Any], page: str, about: dict[str, Any], folder: Path, name: str
) -> Path:
    """Write ``name.json`` and ``name.md`` and return the latter's path."""
    folder.mkdir(parents=True, exist_ok=True)
    record = {
        "environment": about,
        "measurements": [{**asdict(m), "verdict": m.verdict} for m in measurements],
    }
    (folder / f"{name}.json").write_text(json.dumps(record, indent=2) + "\n")
    path = folder / f"{name}.md"
    path.write_text(page)
    return path
