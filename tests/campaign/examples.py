"""The smallest example of each kind of failure in a campaign, kept beside its shards."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .check import KINDS, Failure
from .families import make_game
from .replay import plain
from .reproducer import program
from .shards import read_shards
from .shrink import shrink

FILE = "shrunk.json"


def chosen_failures(out: Path, limit: int) -> list[dict[str, Any]]:
    """The first few failures of each kind, moderate games first, one solver after the other."""
    found = defaultdict(list)
    for head, records in read_shards(out):
        for record in records:
            for failure in record["failures"]:
                entry = {
                    "seed": head["seed"],
                    "game": record["game"],
                    "family": record["family"],
                    "level": record["level"],
                    "failure": failure,
                }
                found[failure[1]].append(entry)
    chosen = []
    for kind in KINDS:
        turns: dict[str, int] = defaultdict(int)
        ranked = []
        entries = sorted(found[kind], key=lambda e: (e["level"] != "moderate", e["game"]))
        for entry in entries:
            solver = plain(entry["failure"][0])
            ranked.append((turns[solver], len(ranked), entry))
            turns[solver] += 1
        chosen += [entry for _, _, entry in sorted(ranked, key=lambda r: r[:2])[:limit]]
    return chosen


def shrink_failures(out: Path, limit: int, tell: Callable[[str], None]) -> list[dict[str, Any]]:
    """Shrink the first few failures of each kind; those that were shrunk before are kept."""
    done = read_examples(out)
    known = {(e["seed"], e["game"], e["solver"], e["kind"]) for e in done}
    for entry in chosen_failures(out, limit):
        failure = Failure(*entry["failure"])
        if (entry["seed"], entry["game"], failure.solver, failure.kind) in known:
            continue
        made = _example(entry, failure)
        done.append(made)
        tell(f"{failure.kind}, {failure.solver}, game {entry['game']}:\n{made['program']}\n")
        temporary = out / f"{FILE}.part"
        temporary.write_text(json.dumps(done, indent=1))
        temporary.replace(out / FILE)
    return done


def _example(entry: dict[str, Any], failure: Failure) -> dict[str, Any]:
    small = shrink(make_game(entry["seed"], entry["game"]), failure)
    about = {key: entry[key] for key in ("seed", "game", "family", "level")}
    about |= {"solver": failure.solver, "kind": failure.kind, "excess": failure.excess}
    if small is None:
        return about | {"program": "# does not fail when it is played alone"}
    return about | {
        "shape": list(small.game.X.shape),
        "excess_shrunk": small.failure.excess,
        "program": program(small),
    }


def read_examples(out: Path) -> list[dict[str, Any]]:
    """What was shrunk so far."""
    path = out / FILE
    return json.loads(path.read_text()) if path.exists() else []
