"""Interleaved comparison of two sides in one process, and the record of what was measured.

The rules: both sides run in turn, A B A B, in one process and on the same number of threads; the
first call of each is reported apart; the ratio is the median over the pairs; and it is printed
only if our answer is certified.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from spgls import Solution

__all__ = ["CERTIFIED", "Case", "Measurement", "environment", "markdown", "measure", "save"]

#: Largest certified relative gap at which a time counts.
CERTIFIED = 1e-9
PACKAGES = ("numpy", "scipy", "scikit-learn", "spgls")


@dataclass(frozen=True)
class Case:
    """Two sides to compare.

    Attributes
    ----------
    name : str
        What is solved.
    ours : callable
        Our side, certificate included.
    peer : callable
        The other side.
    peer_name : str
        What the other side calls.
    target : float
        Largest ratio of our time to the peer's that meets the goal.
    pairs : int
        Timed pairs.
    pause : float
        Seconds before each call, for the other side's BLAS threads to stop spinning.
    """

    name: str
    ours: Callable[[], Solution]
    peer: Callable[[], Any]
    peer_name: str
    target: float
    pairs: int
    pause: float = 0.0


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


def measure(case: Case, threads: int) -> Measurement:
    """Time both sides in turn."""
    with threadpool_limits(limits=threads):
        first, solution = _timed(case.ours)
        first_peer, _ = _timed(case.peer)
        ours, theirs = np.empty(case.pairs), np.empty(case.pairs)
        gap = solution.certificate.relative_gap
        for k in range(case.pairs):
            ours[k], solution = _timed(case.ours, case.pause)
            theirs[k], _ = _timed(case.peer, case.pause)
            gap = max(gap, solution.certificate.relative_gap)
    certified = gap <= CERTIFIED
    low, middle, high = np.quantile(ours / theirs, [0.25, 0.5, 0.75])
    return Measurement(
        name=case.name,
        peer=case.peer_name,
        threads=threads,
        pairs=case.pairs,
        warm_up_ours=first,
        warm_up_peer=first_peer,
        ours=float(np.median(ours)),
        theirs=float(np.median(theirs)),
        ratio=float(middle) if certified else None,
        ratio_quartiles=(float(low), float(high)) if certified else None,
        target=case.target,
        relative_gap=float(gap),
    )


def _timed(function: Callable[[], Any], pause: float = 0.0) -> tuple[float, Any]:
    time.sleep(pause)
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


def environment() -> dict[str, Any]:
    """Machine, versions and date."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "memory_gb": _memory_gb(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{name: version(name) for name in PACKAGES},
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


def markdown(measurements: list[Measurement], about: dict[str, Any]) -> str:
    """Return the results as a page."""
    lines = [
        "# Benchmark results",
        "",
        f"{about['date']}, {about['cpu']}, {about['cores']} cores, {about['memory_gb']} GiB, "
        f"{about['system']}; Python {about['python']}, "
        + ", ".join(f"{name} {about[name]}" for name in PACKAGES)
        + ".",
        "",
        "Times in milliseconds, medians; both sides in one process, interleaved, on equally many "
        "threads. The ratio is the median of the pairs' ratios (quartiles in brackets); NC: our "
        f"answer is not certified to {CERTIFIED:g}.",
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
    ratio = "NC"
    if m.ratio is not None and m.ratio_quartiles is not None:
        ratio = f"{m.ratio:.2f} [{m.ratio_quartiles[0]:.2f}, {m.ratio_quartiles[1]:.2f}]"
    return [
        m.name,
        m.peer,
        str(m.threads),
        str(m.pairs),
        f"{1e3 * m.ours:.3g}",
        f"{1e3 * m.theirs:.3g}",
        ratio,
        f"{m.target:g}",
        m.verdict,
    ]


def save(measurements: list[Measurement], about: dict[str, Any], folder: Path, name: str) -> Path:
    """Write ``name.json`` and ``name.md`` and return the latter's path."""
    folder.mkdir(parents=True, exist_ok=True)
    record = {
        "environment": about,
        "measurements": [{**asdict(m), "verdict": m.verdict} for m in measurements],
    }
    (folder / f"{name}.json").write_text(json.dumps(record, indent=2) + "\n")
    page = folder / f"{name}.md"
    page.write_text(markdown(measurements, about))
    return page
