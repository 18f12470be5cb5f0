"""What a campaign found, as counts: by solver, by family, by kind of failure."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from .check import KINDS
from .examples import read_examples
from .families import FAMILIES
from .replay import detail, plain
from .shards import read_shards
from .twins import TWINS

LEVELS = ("moderate", "extreme")
_OK = ("optimal", "several optima", "least squares")
#: Columns of failures, and the kinds that each counts.
_COLUMNS = {
    "false bounds": ("false bound proved",),
    "estimated": ("false bound estimated",),
    "false optima": ("false optimum", "false limit", "wrong objective", "ok without proof"),
    "explained": ("false bound, labels explained", "false optimum, labels explained"),
    "exceptions": ("exception", "hang"),
    "NaN, warnings": ("not a number", "warning"),
    "path, folds": ("path objective", "path status", "folds"),
    "twins": ("twin objective", "twin status"),
}


class Cell(NamedTuple):
    """Runs of one solver on one family at one level."""

    statuses: Counter[str]
    failures: Counter[str]


class Counts(NamedTuple):
    """A campaign in numbers."""

    about: dict[str, Any]
    games: Counter[tuple[str, str]]
    failing: Counter[tuple[str, str]]
    #: Games with a failure of the kind, by kind and level.
    kinds: Counter[tuple[str, str]]
    twins: int
    cells: dict[tuple[str, str, str], Cell]


def count(out: Path) -> Counts:
    """Add up the shards of a folder."""
    heads = []
    games, failing, kinds = Counter(), Counter(), Counter()
    cells: dict[tuple[str, str, str], Cell] = defaultdict(lambda: Cell(Counter(), Counter()))
    twins = 0
    for head, records in read_shards(out):
        heads.append(head)
        for record in records:
            place = (record["family"], record["level"])
            games[place] += 1
            failing[place] += bool(record["failures"])
            for label, status in record["runs"].items():
                cells[*place, plain(label)].statuses[status] += 1
                twins += detail(label) in TWINS
            found = {(label, kind) for label, kind, *_ in record["failures"]}
            for label, kind in found:
                cells[*place, plain(label)].failures[kind] += 1
            kinds.update((kind, record["level"]) for kind in {kind for _, kind in found})
    return Counts(_about(heads), games, failing, kinds, twins, dict(cells))


def _about(heads: list[dict[str, Any]]) -> dict[str, Any]:
    if not heads:
        raise SystemExit("No shards there.")
    last = max(heads, key=lambda head: head["date"])
    told = ("date", "cpu", "cores", "system", "python", "packages", "spgls")
    about = {key: last[key] for key in told}
    about["seeds"] = sorted({head["seed"] for head in heads})
    about["games"] = sum(head["stop"] - head["start"] for head in heads)
    # Wall-clock time says as much of what else the machine did as of the games.
    seconds = sum(head.get("cpu_seconds", head["seconds"]) for head in heads)
    about["process_minutes"] = round(seconds / 60, 1)
    return about


def as_markdown(counts: Counts, examples: list[dict[str, Any]], full: bool = False) -> str:
    """The page."""
    about = counts.about
    versions = ", ".join(f"{name} {number}" for name, number in about["packages"].items())
    total, broken = about["games"], sum(counts.failing.values())
    runs = sum(sum(cell.statuses.values()) for cell in counts.cells.values())
    parts = [
        "# Campaign",
        f"{about['date']}, {about['cpu']}, {about['cores']} cores, {about['system']}; "
        f"Python {about['python']}, {versions}, spgls {about['spgls']}.",
        f"{total:,} random games (seed {', '.join(map(str, about['seeds']))}), {runs:,} solves, "
        f"{counts.twins:,} of them of a game told again; {about['process_minutes']:g} minutes of "
        f"one process. {broken:,} games ({100 * broken / total:.2g}%) show a failure of some "
        "solver. Spreads reach 1e4 and strengths 1e-6 to 1e6 in moderate games, 1e9 and 1e-8 to "
        "1e8 or beyond in extreme ones. `make campaign` runs it.",
        "## Failures",
        "Games in which some solver failed so. A bound is false if a predictor has a loss below "
        "it, measured in 400 bits; an optimum is false if the status is ok, or says that nothing "
        "is better in the limit, and a predictor is better by more than the tolerance. Where "
        "intercept and immutable columns explain the labels the tolerance is zero; what is false "
        "there only is counted apart: it is rounding, or nearly so.",
        _failures_table(counts),
        "## Solvers",
        "Runs and how they ended, in percent; ok counts optimal, several optima and least "
        "squares. Then runs that failed. spectral, krylov and auto play every game, gram and qr "
        "every second, the other iterative ones every fourth of those that they know, the conic "
        "ones every two-hundredth; certify judges spectral's predictor, or one on the way to it.",
        _solvers_table(counts),
        "## Families",
        "Games, those in which some solver failed, and how spectral ended; then failed runs of "
        "all solvers.",
        _families_table(counts),
    ]
    if full:
        parts += ["## Every family, level and solver", _full_table(counts)]
    if examples:
        parts += ["## Smallest examples", "A failure of each kind, its game made small."]
        for example in _smallest(examples):
            parts.append(
                f"{example['kind'].capitalize()}, {example['solver']} (seed {example['seed']}, "
                f"game {example['game']}, {example['family']}, {example['level']}):"
            )
            parts.append(f"```python\n{example['program']}\n```")
    return "\n\n".join(parts) + "\n"


def _smallest(examples: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The shortest program of each kind."""
    by_kind = {kind: [e for e in examples if e["kind"] == kind and "shape" in e] for kind in KINDS}
    shortest = (min(some, key=lambda e: len(e["program"])) for some in by_kind.values() if some)
    return list(shortest)


def _failures_table(counts: Counts) -> str:
    rows = [
        [kind, *(f"{counts.kinds[kind, level]}" for level in LEVELS)]
        for kind in KINDS
        if any(counts.kinds[kind, level] for level in LEVELS)
    ]
    total = [f"{sum(n for (_, at), n in counts.games.items() if at == level)}" for level in LEVELS]
    return _markdown(["kind", *LEVELS], [*rows, ["games", *total]])


def _merged(cells: Iterable[Cell]) -> Cell:
    merged = Cell(Counter(), Counter())
    for cell in cells:
        merged.statuses.update(cell.statuses)
        merged.failures.update(cell.failures)
    return merged


def _share(cell: Cell, *names: str) -> str:
    total = sum(cell.statuses.values())
    part = sum(n for status, n in cell.statuses.items() if status.split(",")[0] in names)
    return f"{100 * part / total:.1f}" if total else ""


def _failed(cell: Cell) -> list[str]:
    return [str(sum(cell.failures[kind] for kind in kinds)) for kinds in _COLUMNS.values()]


_ENDS = {
    "ok": _OK,
    "several": ("several optima",),
    "unattained": ("unattained",),
    "unrepresentable": ("unrepresentable",),
    "inaccurate": ("inaccurate",),
    "stationary, limit, failed": ("stationary", "iteration limit", "failed"),
    "refused": ("refused",),
    "raised": ("raised",),
}


def _ended(cell: Cell) -> list[str]:
    proved = sum(n for status, n in cell.statuses.items() if status.endswith("proved"))
    total = sum(cell.statuses.values())
    shares = [_share(cell, *names) for names in _ENDS.values()]
    return [str(total), f"{100 * proved / total:.1f}" if total else "", *shares]


def _solvers_table(counts: Counts) -> str:
    rows = []
    for solver in dict.fromkeys(solver for _, _, solver in counts.cells):
        if solver.startswith("folds"):
            continue
        for level in LEVELS:
            cell = _merged(
                c for (_, at, name), c in counts.cells.items() if (at, name) == (level, solver)
            )
            rows.append([solver, level, *_ended(cell), *_failed(cell)])
    return _markdown(["solver", "level", "runs", "proved", *_ENDS, *_COLUMNS], rows)


def _families_table(counts: Counts) -> str:
    rows = []
    for family in FAMILIES:
        for level in LEVELS:
            here = {k: c for k, c in counts.cells.items() if k[:2] == (family, level)}
            spectral = here.get((family, level, "spectral"), Cell(Counter(), Counter()))
            ends = [_share(spectral, *names) for names in (_OK, ("unattained",), ("inaccurate",))]
            numbers = [counts.games[family, level], counts.failing[family, level]]
            failed = _failed(_merged(here.values()))
            rows.append([family, level, *map(str, numbers), *ends, *failed])
    head = ["family", "level", "games", "failing", "ok", "unattained", "inaccurate", *_COLUMNS]
    return _markdown(head, rows)


def _full_table(counts: Counts) -> str:
    rows = [
        [*place, *_ended(counts.cells[place]), *_failed(counts.cells[place])]
        for place in sorted(counts.cells, key=lambda k: (list(FAMILIES).index(k[0]), k[1:]))
    ]
    head = ["family", "level", "solver", "runs", "proved", *_ENDS, *_COLUMNS]
    return _markdown(head, rows)


def _markdown(head: list[str], rows: list[list[str]]) -> str:
    words = 1 + max((k for k, cell in enumerate(rows[0]) if not cell[:1].isdigit()), default=0)
    rule = ["---"] * words + ["---:"] * (len(head) - words)
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, rule, *rows))


def as_json(counts: Counts, examples: list[dict[str, Any]]) -> str:
    """The same numbers, every family, level and solver apart."""
    return json.dumps(
        {
            "environment": counts.about,
            "kinds": [[*key, n] for key, n in sorted(counts.kinds.items())],
            "cells": [
                {
                    "family": family,
                    "level": level,
                    "solver": solver,
                    "statuses": dict(sorted(cell.statuses.items())),
                    "failures": dict(sorted(cell.failures.items())),
                }
                for (family, level, solver), cell in sorted(counts.cells.items())
            ],
            "examples": examples,
        },
        indent=1,
    )


def write_page(out: Path, folder: Path) -> None:
    """Write the page and its numbers, ``campaign.md`` and ``campaign.json``."""
    counts, examples = count(out), read_examples(out)
    (folder / "campaign.md").write_text(as_markdown(counts, examples))
    (folder / "campaign.json").write_text(as_json(counts, examples) + "\n")
