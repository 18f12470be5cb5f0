"""What a campaign found, as counts: by solver, by family, by kind of failure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from .check import KINDS
from .examples import smallest
from .families import FAMILIES
from .kept import Counts, Run

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


#: By family, level and solver.
Cells = dict[tuple[str, str, str], Cell]


def _newest(runs: list[Run]) -> list[Run]:
    """The runs that were checked in the newest way, the latest first."""
    newest = max(run.format for run in runs)
    some = (run for run in runs if run.format == newest)
    return sorted(some, key=lambda run: run.date, reverse=True)


def _cells(counts: Counts) -> Cells:
    cells: Cells = defaultdict(lambda: Cell(Counter(), Counter()))
    for (solver, status, *place), n in counts.statuses.items():
        cells[*place, solver].statuses[status] += n
    for (solver, kind, *place), n in counts.failures.items():
        cells[*place, solver].failures[kind] += n
    return dict(cells)


def as_markdown(runs: list[Run], full: bool = False) -> str:
    """The page."""
    newest = _newest(runs)
    counts = Counts.none()
    # The first one first: solvers come in the order in which they were met.
    for run in reversed(newest):
        counts.add(run.counts)
    cells = _cells(counts)
    about = newest[0].environment
    versions = ", ".join(f"{name} {number}" for name, number in about["packages"].items())
    total, broken = counts.games.total(), counts.failing.total()
    codes = len({run.spgls for run in newest})
    parts = [
        "# Campaign",
        f"{newest[0].date}, {about['cpu']}, {about['cores']} cores, {about['system']}; "
        f"Python {about['python']}, {versions}, spgls {about['spgls']}.",
        f"{total:,} random games in all, played by {codes} version{'s' * (codes > 1)} of the code; "
        f"{counts.statuses.total():,} solves, {counts.twins.total():,} of them of a game told "
        f"again; {_minutes(newest)} minutes of one process. {broken:,} games "
        f"({100 * broken / total:.2g}%) show a failure of some solver. Spreads reach 1e4 and "
        "strengths 1e-6 to 1e6 in moderate games, 1e9 and 1e-8 to 1e8 or beyond in extreme ones. "
        "`make campaign` runs it.",
        "## Runs",
        "A run is what one version of the code played of one seed. Runs with the newest checks are "
        "added up below; older ones are listed only.",
        _runs_table(runs),
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
        _solvers_table(cells),
        "## Families",
        "Games, those in which some solver failed, and how spectral ended; then failed runs of "
        "all solvers.",
        _families_table(counts, cells),
    ]
    if full:
        parts += ["## Every family, level and solver", _full_table(cells)]
    if examples := smallest([example for run in newest for example in run.examples]):
        told = "A failure of each kind, its game made small, by the code that played its seed."
        parts += ["## Smallest examples", told]
        for example in examples:
            parts.append(
                f"{example['kind'].capitalize()}, {example['solver']} (seed {example['seed']}, "
                f"game {example['game']}, {example['family']}, {example['level']}):"
            )
            parts.append(f"```python\n{example['program']}\n```")
    return "\n\n".join(parts) + "\n"


def _minutes(runs: list[Run]) -> str:
    return f"{sum(run.seconds for run in runs) / 60:,.1f}"


def _runs_table(runs: list[Run]) -> str:
    rows = []
    for run in sorted(runs, key=lambda run: (run.format, run.date), reverse=True):
        ranges = ", ".join(f"{start:,} to {stop - 1:,}" for start, stop in run.played)
        kinds = Counter(kind for kind, *_ in run.counts.kinds.elements())
        failing = "; ".join(f"{kinds[kind]:,} {kind}" for kind in KINDS if kinds[kind])
        numbers = [f"{run.counts.games.total():,}", _minutes([run]), failing or "none"]
        rows.append([run.date[:10], run.spgls, str(run.format), str(run.seed), ranges, *numbers])
    head = ["date", "spgls", "checks", "seed", "numbers", "games", "minutes", "failing games"]
    return _markdown(head, rows)


def _failures_table(counts: Counts) -> str:
    found: Counter[tuple[str, str]] = Counter()
    for (kind, _, level), n in counts.kinds.items():
        found[kind, level] += n
    rows = [
        [kind, *(f"{found[kind, level]}" for level in LEVELS)]
        for kind in KINDS
        if any(found[kind, level] for level in LEVELS)
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


def _solvers_table(cells: Cells) -> str:
    rows = []
    for solver in dict.fromkeys(solver for _, _, solver in cells):
        if solver.startswith("folds"):
            continue
        for level in LEVELS:
            cell = _merged(c for (_, at, name), c in cells.items() if (at, name) == (level, solver))
            rows.append([solver, level, *_ended(cell), *_failed(cell)])
    return _markdown(["solver", "level", "runs", "proved", *_ENDS, *_COLUMNS], rows)


def _families_table(counts: Counts, cells: Cells) -> str:
    rows = []
    for family in FAMILIES:
        for level in LEVELS:
            here = {k: c for k, c in cells.items() if k[:2] == (family, level)}
            spectral = here.get((family, level, "spectral"), Cell(Counter(), Counter()))
            ends = [_share(spectral, *names) for names in (_OK, ("unattained",), ("inaccurate",))]
            numbers = [counts.games[family, level], counts.failing[family, level]]
            failed = _failed(_merged(here.values()))
            rows.append([family, level, *map(str, numbers), *ends, *failed])
    head = ["family", "level", "games", "failing", "ok", "unattained", "inaccurate", *_COLUMNS]
    return _markdown(head, rows)


def _full_table(cells: Cells) -> str:
    rows = [
        [*place, *_ended(cells[place]), *_failed(cells[place])]
        for place in sorted(cells, key=lambda k: (list(FAMILIES).index(k[0]), k[1:]))
    ]
    head = ["family", "level", "solver", "runs", "proved", *_ENDS, *_COLUMNS]
    return _markdown(head, rows)


def _markdown(head: list[str], rows: list[list[str]]) -> str:
    words = 1 + max((k for k, cell in enumerate(rows[0]) if not cell[:1].isdigit()), default=0)
    rule = ["---"] * words + ["---:"] * (len(head) - words)
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, rule, *rows))
