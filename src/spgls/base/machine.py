"""What the machine has to offer: cores, and memory that nobody uses."""

from __future__ import annotations

import contextlib
import math
import os
from pathlib import Path

__all__ = ["available_memory", "threads"]

#: Where Linux says how much a container may use, uses, and what for: second version, then first.
_LIMITS = (
    (
        "/sys/fs/cgroup/memory.max",
        "/sys/fs/cgroup/memory.current",
        "/sys/fs/cgroup/memory.stat",
    ),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
        "/sys/fs/cgroup/memory/memory.stat",
    ),
)
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")


def threads() -> int:
    """Cores that this process may use, or what the environment limits threads to."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    for name in _THREADS:
        value = os.environ.get(name, "")
        if value.isdigit() and int(value) > 0:
            cores = min(cores, int(value))
    return cores


def available_memory() -> float:
    """Bytes that can be had without swapping; infinite where the system does not say."""
    found = math.inf
    for line in _lines("/proc/meminfo"):
        if line.startswith("MemAvailable:"):
            found = 1024.0 * float(line.split()[1])
    if math.isinf(found) and hasattr(os, "sysconf"):
        with contextlib.suppress(ValueError, OSError):
            found = float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for limit, usage, details in _LIMITS:
        allowed, used = (_number(path) for path in (limit, usage))
        if allowed is not None and used is not None:
            # Files that were read and can be read again count as used, and make room.
            idle = [line.split()[1] for line in _lines(details) if line.startswith("inactive_file")]
            room = allowed - used + float(idle[0] if idle else 0.0)
            found = min(found, max(0.0, room))
    return min(found, _own_limit())


def _own_limit() -> float:
    """Bytes that this process may still take; infinite where nobody set a limit (``ulimit``)."""
    try:
        import resource
    except ImportError:  # Windows
        return math.inf
    found = math.inf
    for name, field in (("RLIMIT_DATA", "VmData:"), ("RLIMIT_AS", "VmSize:")):
        limit, _ = resource.getrlimit(getattr(resource, name))
        if limit == resource.RLIM_INFINITY:
            continue
        for line in _lines("/proc/self/status"):
            if line.startswith(field):
                found = min(found, max(0.0, limit - 1024.0 * float(line.split()[1])))
    return found


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


def _number(path: str) -> float | None:
    lines = _lines(path)
    return float(lines[0]) if lines and lines[0].isdigit() else None
