"""Counts that outlive their shards: added up by version of the code and seed, no game twice.

Shards are too large to commit. What is kept of them in ``campaign.json`` is a run for each seed and
version: which games were played, how they ended, and the games that failed, to be played again.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from .examples import read_examples, smallest
from .replay import detail, plain
from .shards import Range, inside, joined, read_shards, write_whole
from .twins import TWINS

#: Seeds whose failures were seen while code was mended: their games say too little of new code.
USED = (1, 301, 401, 501, 1101)
_ENVIRONMENT = ("format", "spgls", "python", "packages", "cpu", "system", "cores")


class Counts(NamedTuple):
    """Games in numbers; every key ends in a family and a level."""

    games: Counter[tuple[str, ...]]
    failing: Counter[tuple[str, ...]]
    #: Solves of a game told again.
    twins: Counter[tuple[str, ...]]
    #: Games with a failure of the kind, by kind.
    kinds: Counter[tuple[str, ...]]
    #: Solves, by solver and status.
    statuses: Counter[tuple[str, ...]]
    #: Solves that failed, by solver and kind.
    failures: Counter[tuple[str, ...]]

    @classmethod
    def none(cls) -> Counts:
        """Nothing counted yet."""
        return cls(*(Counter() for _ in cls._fields))

    def add_game(self, record: dict[str, Any]) -> None:
        """Count one game."""
        place = (record["family"], record["level"])
        self.games[place] += 1
        self.failing[place] += bool(record["failures"])
        for label, status in record["runs"].items():
            self.statuses[plain(label), status, *place] += 1
            self.twins[place] += detail(label) in TWINS
        found = {(label, kind) for label, kind, *_ in record["failures"]}
        self.failures.update((plain(label), kind, *place) for label, kind in found)
        self.kinds.update((kind, *place) for kind in {kind for _, kind in found})

    def add(self, other: Counts) -> None:
        """Count what another has counted."""
        for mine, more in zip(self, other, strict=True):
            mine.update(more)


@dataclass
class Run:
    """Games of one seed, played by one version of the code."""

    seed: int
    #: Of the shard that was played last.
    environment: dict[str, Any]
    date: str = ""
    seconds: float = 0.0
    played: list[Range] = field(default_factory=list)
    counts: Counts = field(default_factory=Counts.none)
    #: Game, label, kind and note, which is what it takes to play it again.
    failures: list[tuple[int, str, str, str]] = field(default_factory=list)
    #: The smallest of each kind.
    examples: list[dict[str, Any]] = field(default_factory=list)

    @property
    def format(self) -> int:
        """Number of the way in which its games were checked."""
        return self.environment["format"]

    @property
    def spgls(self) -> str:
        """Version of the code."""
        return self.environment["spgls"]

    def add_shard(self, head: dict[str, Any], records: list[dict[str, Any]]) -> None:
        """Count the games of a shard that were not counted before."""
        new = [r for r in records if not inside((r["game"], r["game"] + 1), self.played)]
        if not new:
            return
        for record in new:
            self.counts.add_game(record)
            self.failures += [
                (record["game"], label, kind, note) for label, kind, _, note in record["failures"]
            ]
        self.failures.sort()
        self.played = joined([*self.played, *((r["game"], r["game"] + 1) for r in new)])
        # Wall-clock time says as much of what else the machine did as of the games.
        seconds = head.get("cpu_seconds", head["seconds"]) * len(new) / len(records)
        self.seconds = round(self.seconds + seconds, 3)
        if head["date"] > self.date:
            self.date = head["date"]
            self.environment = {key: head[key] for key in _ENVIRONMENT}


def add_shards(runs: list[Run], out: Path) -> list[Run]:
    """Add the shards of a folder to the runs that they belong to, or to new ones."""
    by_key = {(run.format, run.spgls, run.seed): run for run in runs}
    by_seed = {}
    for head, records in read_shards(out):
        key = (head["format"], head["spgls"], head["seed"])
        run = by_key.setdefault(key, Run(head["seed"], {k: head[k] for k in _ENVIRONMENT}))
        run.add_shard(head, records)
        by_seed[head["seed"]] = run
    if not by_key:
        raise SystemExit(f"No games in {out}.")
    examples = read_examples(out)
    for seed, run in by_seed.items():
        mine = [_without_excess(example) for example in examples if example["seed"] == seed]
        run.examples = smallest([*run.examples, *mine])
    return list(by_key.values())


def _without_excess(example: dict[str, Any]) -> dict[str, Any]:
    """An example without what may be infinite, for which JSON has no word."""
    return {key: value for key, value in example.items() if not key.startswith("excess")}


def keep(out: Path, path: Path) -> list[Run]:
    """Add the shards of a folder to the kept counts; all runs."""
    runs = add_shards(read_runs(path), out)
    for run in runs:
        if reason := why_not(run.seed, run.spgls, runs):
            raise SystemExit(f"{reason} Nothing was kept.")
    write_whole(path, _as_text(runs))
    return runs


def why_not(seed: int, spgls: str, runs: list[Run]) -> str | None:
    """Why games of a seed must not be counted for a version of the code, if they must not."""
    if seed in USED:
        return f"Seed {seed} was used while code was mended: compare its games, do not count them."
    for run in runs:
        if run.seed == seed and run.spgls != spgls:
            return f"Seed {seed} is counted for spgls {run.spgls}: take one of its own for {spgls}."
    return None


def played_before(runs: list[Run], seed: int, about: dict[str, Any]) -> list[Range]:
    """Games of a seed that are counted for the same code and checks."""
    same = (about["format"], about["spgls"], seed)
    return [r for run in runs if (run.format, run.spgls, run.seed) == same for r in run.played]


def read_runs(path: Path) -> list[Run]:
    """The runs of a file; none if there is no file yet."""
    if not path.exists():
        return []
    return [_unpacked(packed) for packed in json.loads(path.read_text())]


def _packed(run: Run) -> dict[str, Any]:
    """A run with a column for each family and level, which takes a fifth of a list of cells."""
    places = list(run.counts.games)
    packed = asdict(run)
    del packed["counts"]
    packed["places"] = places
    for name, counter in run.counts._asdict().items():
        rows: dict[tuple[str, ...], list[int]] = {}
        for (*names, family, level), n in counter.items():
            row = rows.setdefault(tuple(names), [0] * len(places))
            row[places.index((family, level))] = n
        packed[f"count {name}"] = [[*names, row] for names, row in rows.items()]
    return packed


def _unpacked(packed: dict[str, Any]) -> Run:
    places = packed.pop("places")
    counters = []
    for name in Counts._fields:
        rows = packed.pop(f"count {name}")
        counters.append(
            Counter(
                {
                    (*names, *place): n
                    for *names, row in rows
                    for place, n in zip(places, row, strict=True)
                    if n
                }
            )
        )
    for name in ("played", "failures"):
        packed[name] = [tuple(row) for row in packed[name]]
    return Run(**packed, counts=Counts(*counters))


def _as_text(runs: list[Run]) -> str:
    """The runs as JSON, a row of numbers a line, so that changes can be read."""

    def compact(value: Any) -> str:
        return json.dumps(value, separators=(",", ":"), allow_nan=False)

    def told(value: Any) -> str:
        if not isinstance(value, list) or not value:
            return compact(value)
        return "[\n  " + ",\n  ".join(map(compact, value)) + "]"

    objects = (
        ",\n ".join(f"{compact(key)}: {told(value)}" for key, value in _packed(run).items())
        for run in runs
    )
    return "[\n" + ",\n".join(f"{{{text}}}" for text in objects) + "\n]\n"
