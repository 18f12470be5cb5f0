"""What results were measured with: machine, threads, versions. No names of people or places."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

__all__ = ["available_cores", "describe_environment", "environment", "memory_gib", "pinned"]

PACKAGES = ("spgls", "numpy", "scipy", "scikit-learn", "numba", "clarabel", "scs")
_THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
)


def available_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory_gib() -> float:
    """Physical memory; eight GiB where the system does not say."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")) / 2**30
    except (AttributeError, OSError, ValueError):
        return 8.0


def pinned(threads: int) -> dict[str, str]:
    """Environment variables of a process that keeps to so many threads."""
    return os.environ | dict.fromkeys(_THREADS, str(threads))


def environment(threads: int) -> tuple[str, dict[str, Any]]:
    """Return a short name and what it stands for."""
    about = {
        "cpu": _cpu(),
        "cores": available_cores(),
        "memory_gib": round(memory_gib(), 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in PACKAGES},
        "threads": threads,
        "memory_watched": Path("/proc/self/statm").exists(),
    }
    text = json.dumps(about, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:10], about


def describe_environment(about: dict[str, Any]) -> str:
    """Return it as a sentence."""
    packages = ", ".join(f"{name} {number}" for name, number in about["packages"].items() if number)
    return (
        f"{about['cpu']}, {about['cores']} cores, {about['memory_gib']} GiB, {about['system']}, "
        f"{about['threads']} threads; Python {about['python']}, {packages}."
    )


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _cpu() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"
