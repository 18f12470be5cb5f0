"""The results of a campaign on disk: whole shards, so that a run can stop and go on.

A shard is one file of lines: what was run, then a record a game. It is written under another name
and renamed, so a file is there as a whole or not at all.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import spgls

from .families import make_game
from .whole import play_game

SIZE = 500
#: Numbers of games, from the first to before the second.
Range = tuple[int, int]
#: Raised when games or checks change, so that results of different kinds are not compared.
FORMAT = 3


class Shard(NamedTuple):
    """Games ``start`` to ``stop`` of a seed."""

    seed: int
    start: int
    stop: int

    @property
    def name(self) -> str:
        """Name of its file."""
        return f"seed{self.seed}-{self.start:07d}-{self.stop:07d}.jsonl"


def code_version() -> str:
    """The version of spgls and a hash of its sources, which tells builds of one version apart."""
    digest = hashlib.sha256()
    folder = Path(spgls.__file__).parent
    for path in sorted(folder.rglob("*.py")):
        digest.update(str(path.relative_to(folder)).encode() + path.read_bytes())
    return f"{spgls.__version__} (sources {digest.hexdigest()[:10]})"


def environment() -> dict[str, Any]:
    """What the games were run by and on."""
    return {
        "format": FORMAT,
        "spgls": code_version(),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in ("numpy", "scipy", "scikit-learn")},
        "cpu": _cpu(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
    }


def _cpu() -> str:
    """Name of the processor, where the system tells it."""
    told = Path("/proc/cpuinfo")
    lines = told.read_text().splitlines() if told.exists() else []
    names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def wanted(seed: int, games: int) -> list[Shard]:
    """The shards of so many games."""
    return [Shard(seed, at, min(at + SIZE, games)) for at in range(0, games, SIZE)]


def run_shard(shard: Shard, out: Path) -> float:
    """Play the games of a shard and write its file; seconds taken."""
    started, worked = time.perf_counter(), time.process_time()
    records = [play_game(make_game(shard.seed, i)) for i in range(shard.start, shard.stop)]
    seconds = time.perf_counter() - started
    head = environment() | {
        "seed": shard.seed,
        "start": shard.start,
        "stop": shard.stop,
        "seconds": round(seconds, 3),
        "cpu_seconds": round(time.process_time() - worked, 3),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    _write(out / shard.name, head, records)
    return seconds


def _write(path: Path, head: dict[str, Any], records: list[dict[str, Any]]) -> None:
    lines = (json.dumps(line, separators=(",", ":")) + "\n" for line in (head, *records))
    write_whole(path, "".join(lines))


def write_whole(path: Path, text: str) -> None:
    """Write a file under another name and rename it: who is interrupted leaves the old one."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.part")
    with temporary.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def joined(ranges: Iterable[Range]) -> list[Range]:
    """The same games in as few ranges as it takes, in order."""
    found: list[Range] = []
    for start, stop in sorted(ranges):
        if found and start <= found[-1][1]:
            start, before = found.pop()
            stop = max(stop, before)
        found.append((start, stop))
    return found


def inside(some: Range, ranges: Iterable[Range]) -> bool:
    """Whether one of the ranges, joined before, holds all of some games."""
    return any(start <= some[0] and some[1] <= stop for start, stop in ranges)


def play_again(out: Path) -> tuple[int, int]:
    """Play games that failed once more; how many, and how many records differ.

    For checks that have become more lenient since, and for a machine that stood still: games that
    did not fail are taken to be as they were.
    """
    played = changed = 0
    mine = environment()
    for path in sorted(out.glob("seed*.jsonl")):
        head, records = _read(path)
        if head["spgls"] != mine["spgls"]:
            raise SystemExit(f"{out} holds results of {head['spgls']}, this is {mine['spgls']}.")
        for at, record in enumerate(records):
            if record["failures"]:
                again = play_game(make_game(head["seed"], record["game"]))
                played, changed = played + 1, changed + (json.loads(json.dumps(again)) != record)
                records[at] = again
        _write(path, head | {"format": FORMAT}, records)
    return played, changed


def run_campaign(
    out: Path,
    seed: int,
    games: int,
    processes: int,
    tell: Callable[[int, int], None],
    played: Iterable[Range] = (),
) -> None:
    """Play what is neither there nor ``played``; ``tell`` hears how many games are done."""
    out.mkdir(parents=True, exist_ok=True)
    _check_same_code(out)
    shards = wanted(seed, games)
    todo = [
        shard
        for shard in shards
        if not (out / shard.name).exists() and not inside((shard.start, shard.stop), played)
    ]
    done = games - sum(shard.stop - shard.start for shard in todo)
    tell(done, games)
    if not todo:
        return
    tasks = [(shard, out) for shard in todo]
    with ExitStack() as stack:
        if processes > 1:
            # Leaving ends the workers, also after an interrupt; the shards in work are lost.
            start = get_context("spawn").Pool
            pool = stack.enter_context(start(processes, initializer=_ignore_interrupts))
            finished = pool.imap_unordered(_run, tasks)
        else:
            finished = map(_run, tasks)
        for shard in finished:
            done += shard.stop - shard.start
            _drop_parts_of(shard, out)
            tell(done, games)


def _run(task: tuple[Shard, Path]) -> Shard:
    run_shard(*task)
    return task[0]


def _ignore_interrupts() -> None:
    """Leave interrupts to the parent, which ends its workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _drop_parts_of(shard: Shard, out: Path) -> None:
    """Remove shorter files of the same games, of a run that asked for fewer."""
    for path in out.glob(f"seed{shard.seed}-{shard.start:07d}-*.jsonl"):
        if path.name < shard.name:
            path.unlink()


def _check_same_code(out: Path) -> None:
    for path in out.glob("*.part"):
        path.unlink()
    mine = environment()
    for head, _ in read_shards(out):
        for key in ("format", "spgls"):
            if head[key] != mine[key]:
                raise SystemExit(
                    f"{out} holds results of {key} {head[key]}, this is {mine[key]}. "
                    "Pass another folder, or remove it."
                )
        return


def read_shards(out: Path) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """What was run, and the records, of every shard in order."""
    for path in sorted(out.glob("seed*.jsonl")):
        yield _read(path)


def _read(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    with path.open() as file:
        head, *records = (json.loads(line) for line in file)
    return head, records
