"""Whether anything else works on this machine, by the processor time that Linux counts."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

__all__ = ["QUIET", "Load", "NotQuiet", "Snapshot", "complaint", "load", "require_quiet"]

#: Cores that others may use, on average over a look, on a machine that counts as quiet.
QUIET = 0.1
#: Seconds of a look, and looks in a row that have to find others at work: some wake for a moment.
LOOK, LOOKS = 1.0, 3
#: Processes that a complaint names.
NAMED = 4
BLIND = "This system does not tell what else runs on it."


class NotQuiet(RuntimeError):
    """Somebody else works on this machine."""


@dataclass(frozen=True)
class Snapshot:
    """Seconds of processor time since the machine started, over all cores and by process."""

    when: float
    busy: float
    stolen: float
    processes: dict[int, tuple[str, float]]

    @classmethod
    def take(cls) -> Snapshot | None:
        """Read it; None where the system does not tell."""
        try:
            counts = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
            tick = 1.0 / os.sysconf("SC_CLK_TCK")
        except (OSError, ValueError, AttributeError):
            return None
        user, nice, system, _, _, irq, softirq, stolen = (int(c) * tick for c in counts[:8])
        processes = {}
        for folder in Path("/proc").iterdir():
            # A process may end while we read.
            with suppress(OSError, ValueError, IndexError):
                name, rest = (folder / "stat").read_text().split("(", 1)[1].rsplit(")", 1)
                fields = rest.split()
                processes[int(folder.name)] = name, tick * (int(fields[11]) + int(fields[12]))
        busy = user + nice + system + irq + softirq
        return cls(time.monotonic(), busy, stolen, processes)


@dataclass(frozen=True)
class Load:
    """Cores in use by others, of which some are taken by other machines, and by whom."""

    cores: float
    stolen: float
    processes: tuple[tuple[str, int, float], ...]


def load(before: Snapshot, after: Snapshot, ours: Collection[int] = ()) -> Load:
    """What others did between two snapshots; ``ours`` are the processes that may work."""
    elapsed = after.when - before.when
    used = {
        pid: (name, (seconds - before.processes.get(pid, (name, 0.0))[1]) / elapsed)
        for pid, (name, seconds) in after.processes.items()
    }
    mine = sum(cores for pid, (_, cores) in used.items() if pid in ours)
    stolen = (after.stolen - before.stolen) / elapsed
    others = [(name, pid, cores) for pid, (name, cores) in used.items() if pid not in ours]
    busiest = sorted((o for o in others if o[2] > 0.0), key=lambda o: -o[2])
    cores = (after.busy - before.busy) / elapsed - mine + stolen
    return Load(max(0.0, cores), stolen, tuple(busiest))


def complaint(found: Load, average: float | None = None) -> str | None:
    """A sentence that names who is busy; None on a quiet machine.

    The load average is a hint only: it remembers what we ourselves did a minute ago.
    """
    if found.cores <= QUIET:
        return None
    who = [f"{name} ({pid}, {cores:.2f})" for name, pid, cores in found.processes[:NAMED]]
    if found.stolen > QUIET / 2:
        who.append(f"other machines on this host ({found.stolen:.2f})")
    if not who:
        who = ["processes that cannot be seen from here, or have ended"]
    hint = "" if average is None else f"; load average {average:.2f}"
    return f"Other work uses {found.cores:.2f} cores: {', '.join(who)}{hint}."


def look() -> str | None:
    """Watch for a second, in which this process sleeps."""
    before = Snapshot.take()
    time.sleep(LOOK)
    after = Snapshot.take()
    if before is None or after is None:
        return BLIND
    return complaint(load(before, after, ours=[os.getpid()]), os.getloadavg()[0])


def require_quiet(
    *, force: bool = False, look: Callable[[], str | None] = look, looks: int = LOOKS
) -> str | None:
    """Refuse to measure beside other work.

    Parameters
    ----------
    force : bool
        Return the complaint instead, for the record.
    look : callable
        Watches for a while and returns a complaint or None; our own workers have to sleep.
    looks : int
        So many looks in a row have to complain.

    Returns
    -------
    str or None
        The complaint, None on a quiet machine.

    Raises
    ------
    NotQuiet
        Where it is not quiet, unless forced.
    """
    found = None
    for _ in range(looks):
        found = look()
        if found is None:
            return None
    if not force:
        raise NotQuiet(f"{found} Stop it, wait for it, or pass --force, which the record will say.")
    return found
