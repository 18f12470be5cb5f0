"""Whether our own solver is the fastest column, row by row."""

from __future__ import annotations

from statistics import fmean

from reproduction.catalogue import EXPERIMENTS
from reproduction.store import Results
from reproduction.tables import LABELS, markdown_table, number
from reproduction.view import Point, families, points

__all__ = ["OURS", "fastest_section"]

OURS = "krylov"
#: Solves of fewer seconds are mostly fixed work.
SHORT = 2e-3


def fastest_section(results: Results) -> list[str]:
    """Lines that say where it is the fastest, where not, and why."""
    rows, lost, total = [], [], 0
    for experiment in EXPERIMENTS.values():
        if experiment.kind not in ("real", "synthetic") or OURS not in experiment.methods:
            continue
        found = _races(results.where(experiment=experiment.id), experiment.methods)
        if not found:
            continue
        behind = [race for race in found if race.winner != OURS]
        total += len(found)
        lost += behind
        rows.append(
            [experiment.id, str(len(found)), str(len(found) - len(behind)), _losses(behind)]
        )
    if not total:
        return []
    lines = [
        "## Is krylov the fastest method?",
        "",
        f"Yes in {total - len(lost)} of {total} rows of the tables below. {_why(lost)}".rstrip(),
        "",
        markdown_table(["experiment", "rows", "krylov fastest", "who else, how often"], rows),
    ]
    return lines


class _Race:
    """Times of all methods on games of one size."""

    def __init__(self, times: dict[str, Point]) -> None:
        self.times = times
        self.winner = min(times, key=lambda method: times[method].seconds or 0.0)
        self.ours = times[OURS].seconds or 0.0
        #: How many times as long ours takes as the fastest.
        self.behind = self.ours / (times[self.winner].seconds or 1.0)

    @property
    def reads_less(self) -> bool:
        """Whether ours reads the data no more often than the fastest does."""
        ours, other = (
            fmean(record["passes"] or 0.0 for record in self.times[method].measured)
            for method in (OURS, self.winner)
        )
        return ours <= other


def _races(results: Results, methods: tuple[str, ...]) -> list[_Race]:
    found = []
    for family in families(results):
        by_size: dict[int, dict[str, Point]] = {}
        for method in methods:
            for point in points(results, family, method):
                if point.seconds is not None:
                    by_size.setdefault(point.size, {})[method] = point
        found += [_Race(times) for times in by_size.values() if OURS in times]
    return found


def _losses(lost: list[_Race]) -> str:
    """Who was faster, how often, and by how much."""
    parts = []
    for method in dict.fromkeys(race.winner for race in lost):
        factors = [race.behind for race in lost if race.winner == method]
        most = f"krylov takes up to {number(max(factors))} times as long"
        parts.append(f"{LABELS[method]} {len(factors)} ({most})")
    return "; ".join(parts) or "-"


def _why(lost: list[_Race]) -> str:
    if not lost:
        return ""
    short = [race for race in lost if race.ours < SHORT]
    long = [race for race in lost if race.ours >= SHORT]
    parts = []
    if short:
        parts.append(
            f"In {len(short)} others it takes less than {number(1e3 * SHORT)} ms, and at most "
            f"{_most(short)} times as long as the fastest. Such a short solve is mostly fixed work "
            "around the arithmetic. To read little data costs next to nothing, so it does not help "
            "krylov that it reads the data less often."
        )
    if long:
        less = sum(race.reads_less for race in long)
        parts.append(
            f"In the other {len(long)} it takes at most {_most(long)} times as long. In {less} of "
            f"these {len(long)} it reads the data no more often than the fastest does, so the "
            "difference is noise: times here are not interleaved as in the benchmarks."
        )
    return " ".join(parts)


def _most(races: list[_Race]) -> str:
    return number(max(race.behind for race in races))
