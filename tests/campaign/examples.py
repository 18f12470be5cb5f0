"""The smallest example of each kind of failure in a campaign, kept beside its shards."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .check import KINDS, Failure
from .families import make_game
from .replay import plain
from .reproducer import program
from .shards import read_shards, write_whole
from .shrink import shrink

FILE = "shrunk.json"


def chosen_failures(out: Path, limit: int) -> list[dict[str, Any]]:
    """The first few failures of each kind, moderate games first."""
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
    return [entry for kind in KINDS for entry in _varied(found[kind])[:limit]]


def _varied(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Failures of a kind, those first that tell the most: other games, then other solvers."""
    turns: Counter[Any] = Counter()
    ranked = []
    for entry in sorted(entries, key=lambda e: (e["level"] != "moderate", e["game"])):
        game, solver = (entry["seed"], entry["game"]), plain(entry["failure"][0])
        ranked.append((turns[game], turns[solver], len(ranked), entry))
        turns.update([game, solver])
    return [entry for *_, entry in sorted(ranked, key=lambda rank: rank[:3])]


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
        write_whole(out / FILE, json.dumps(done, indent=1))
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


def smallest(examples: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The shortest program of each kind."""
    by_kind = {kind: [e for e in examples if e["kind"] == kind and "shape" in e] for kind in KINDS}
    return [min(some, key=lambda e: len(e["program"])) for some in by_kind.values() if some]
