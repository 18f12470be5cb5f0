"""Two campaigns on the same games: what the second does worse, better, or otherwise."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, NamedTuple

from .shards import read_shards

#: What identifies a failure: seed, game, solver, kind.
Key = tuple[int, int, str, str]
_SHOWN = 5


class Results(NamedTuple):
    """A campaign by game."""

    games: dict[tuple[int, int], dict[str, Any]]
    failures: dict[Key, list[Any]]
    versions: list[str]
    formats: set[int]


class Difference(NamedTuple):
    """Failures of one campaign only, changes of status, games that are not the same."""

    added: dict[Key, list[Any]]
    gone: dict[Key, list[Any]]
    changed: dict[tuple[str, str, str], list[tuple[int, int]]]
    shared: int
    unlike: int


def read_results(out: Path) -> Results:
    games, failures, versions, formats = {}, {}, set(), set()
    for head, records in read_shards(out):
        versions.add(head["spgls"])
        formats.add(head["format"])
        for record in records:
            at = (head["seed"], record["game"])
            games[at] = record
            for solver, kind, *rest in record["failures"]:
                failures.setdefault((*at, solver, kind), rest)
    return Results(games, failures, sorted(versions), formats)


def compare(before: Results, after: Results) -> Difference:
    """What two campaigns have in common and what not, on the games that both played."""
    if before.formats != after.formats:
        raise SystemExit(
            f"The campaigns were checked in different ways, {before.formats} and {after.formats}. "
            "Run them again, or the failures of the older one: python -m tests.campaign again."
        )
    shared = [
        at
        for at in before.games.keys() & after.games.keys()
        if before.games[at]["fingerprint"] == after.games[at]["fingerprint"]
    ]
    same = set(shared)
    mine = {key: rest for key, rest in before.failures.items() if key[:2] in same}
    theirs = {key: rest for key, rest in after.failures.items() if key[:2] in same}
    changed = defaultdict(list)
    for at in sorted(shared):
        old, new = before.games[at]["runs"], after.games[at]["runs"]
        for solver in old.keys() & new.keys():
            if old[solver] != new[solver]:
                changed[solver.split("[")[0], old[solver], new[solver]].append(at)
    return Difference(
        added={key: rest for key, rest in theirs.items() if key not in mine},
        gone={key: rest for key, rest in mine.items() if key not in theirs},
        changed=dict(changed),
        shared=len(shared),
        unlike=len(before.games.keys() & after.games.keys()) - len(shared),
    )


def told(difference: Difference) -> str:
    """The difference as a page of text."""
    lines = [f"{difference.shared} games in both."]
    if difference.unlike:
        lines.append(f"{difference.unlike} games have the same number but other data: left out.")
    for title, failures in (("New failures", difference.added), ("Gone", difference.gone)):
        lines += ["", f"## {title}: {len(failures)}"]
        by_kind = defaultdict(list)
        for key in failures:
            by_kind[key[2].split("[")[0], key[3]].append(key)
        for (solver, kind), keys in sorted(by_kind.items(), key=lambda item: -len(item[1])):
            lines.append(f"- {solver}, {kind}: {len(keys)}")
            for key in sorted(keys)[:_SHOWN]:
                excess, note = failures[key]
                lines.append(f"    - seed {key[0]} game {key[1]}: {excess:.3g}; {note}")
    lines += ["", f"## Changes of status: {sum(map(len, difference.changed.values()))}"]
    totals = Counter({key: len(games) for key, games in difference.changed.items()})
    for (solver, old, new), count in totals.most_common():
        games = difference.changed[solver, old, new][:_SHOWN]
        some = ", ".join(str(number) for _, number in games)
        lines.append(f"- {solver}: {old} -> {new}: {count} (games {some})")
    return "\n".join(lines)
