"""Cells in groups: a game family, a method, a size, and what its repetitions say together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import exp, log
from statistics import fmean, median_high
from typing import NamedTuple

from reproduction.cell import Family, Real, Synthetic
from reproduction.store import Record, Results

__all__ = [
    "Family",
    "Law",
    "Point",
    "families",
    "fit_law",
    "law_of",
    "pairs",
    "points",
    "real_games",
    "seconds_of",
]

#: Sizes a law is fitted to, the largest ones.
FITTED = 3
#: Decompositions do not grow faster.
CUBE = 3.0


@dataclass(frozen=True)
class Point:
    """What one method made of games of one size.

    Attributes
    ----------
    size : int
        Features, or rows of real data.
    order : int
        What a decomposition depends on: the smaller side of synthetic data.
    records : tuple of Record
        One for each game.
    """

    size: int
    order: int
    records: tuple[Record, ...]

    @property
    def measured(self) -> tuple[Record, ...]:
        """Those with numbers."""
        return tuple(record for record in self.records if record.measured)

    @property
    def seconds(self) -> float | None:
        """Mean time of a solve; None if any outlasted its limit, or there is none."""
        if not self.records or len(self.measured) < len(self.records):
            return None
        return fmean(seconds_of(record) for record in self.measured)

    @property
    def spread(self) -> tuple[float, float]:
        """Shortest and longest time."""
        times = [seconds_of(record) for record in self.measured]
        return min(times), max(times)

    @property
    def decomposition(self) -> float | None:
        """Mean time of the decomposition, for methods with one."""
        stages = [record["stages"].get("reduction") for record in self.measured]
        known = [time for time in stages if time is not None]
        return fmean(known) if known else None

    @property
    def trouble(self) -> str:
        """Why there is no time: the mark of the first cell without one."""
        for record in self.records:
            if record.outcome == "time":
                return f"> {record['limit']:g} s"
            if record.outcome == "memory":
                limit = record["limit"] or record.cell.memory
                return f"> {limit:g} GiB"
            if not record.measured:
                return record.outcome
        return "not run"


def seconds_of(record: Record) -> float:
    """Time of a solve: the median of a cell's calls, the later of two, whose stages are kept."""
    return max(float(median_high(record["seconds"])), 1e-9)


def families(results: Results) -> list[Family]:
    """Families there are: sets in their order, then the sparser and the flatter."""
    found = dict.fromkeys(family for family, _ in results.groups)
    return sorted(found, key=lambda family: (-(family.density or 1.0), -family.ratio))


def real_games(results: Results) -> list[tuple[str, str]]:
    """Sets and attackers there are."""
    data = [record.cell.data for record in results.records]
    return sorted({(one.source, one.attacker) for one in data if isinstance(one, Real)})


def points(results: Results, family: Family, method: str) -> list[Point]:
    """Points of a method, by size."""
    found: dict[tuple[int, int], list[Record]] = {}
    for record in results.groups.get((family, method), ()):
        data = record.cell.data
        size = data.n if isinstance(data, Synthetic) else data.size
        found.setdefault((size, data.size), []).append(record)
    return [Point(*key, tuple(found[key])) for key in sorted(found)]


def pairs(
    results: Results, family: Family, first: str, second: str
) -> Iterator[tuple[Record, Record]]:
    """Measured cells of two methods on the same game."""
    others = {r.cell.data: r for r in results.groups.get((family, second), ()) if r.measured}
    for record in results.groups.get((family, first), ()):
        if record.measured and record.cell.data in others:
            yield record, others[record.cell.data]


class Law(NamedTuple):
    """``seconds = factor * size**exponent``, fitted on sizes from ``low`` to ``high``."""

    factor: float
    exponent: float
    low: int
    high: int

    def __call__(self, size: float) -> float:
        """Return the seconds at a size."""
        return float(self.factor * size**self.exponent)

    def at_most(self, exponent: float) -> Law:
        """Return the same law at its largest size that grows no faster beyond."""
        if self.exponent <= exponent:
            return self
        return self._replace(factor=self(self.high) / self.high**exponent, exponent=exponent)


def fit_law(times: dict[int, float]) -> Law | None:
    """Fit a power law to the largest sizes by least squares of logarithms.

    Parameters
    ----------
    times : dict
        Seconds by size.

    Returns
    -------
    Law or None
        None where there are fewer than two sizes.

    Examples
    --------
    >>> from reproduction.view import fit_law
    >>> law = fit_law({10: 2.0, 20: 16.0, 40: 128.0})
    >>> round(law.exponent, 6), round(law(80))
    (3.0, 1024)
    """
    sizes = sorted(times)[-FITTED:]
    if len(sizes) < 2:
        return None
    x, t = [log(size) for size in sizes], [log(times[size]) for size in sizes]
    mean_x, mean_t = fmean(x), fmean(t)
    slope = sum((a - mean_x) * (b - mean_t) for a, b in zip(x, t, strict=True)) / sum(
        (a - mean_x) ** 2 for a in x
    )
    return Law(exp(mean_t - slope * mean_x), slope, sizes[0], sizes[-1])


def law_of(results: Results, family: Family, method: str) -> Law | None:
    """How a method's time grows with the smaller side of the data.

    A decomposition takes at most the cube of that side, however caches let its time grow for a
    while. Where too few sizes of a family were measured, families of the same density that
    decompose the same side serve instead.
    """
    own = fit_law(_times(results, [family], method))
    if method not in ("socp", "spectral"):
        return own
    alike = [
        other
        for other in families(results)
        if other[:3] == family[:3] and (other.ratio < 1.0) == (family.ratio < 1.0)
    ]
    law = own or fit_law(_times(results, alike, method))
    return None if law is None else law.at_most(CUBE)


def _times(results: Results, wanted: list[Family], method: str) -> dict[int, float]:
    found: dict[int, list[float]] = {}
    for family in wanted:
        for point in points(results, family, method):
            if point.seconds is not None:
                found.setdefault(point.order, []).append(point.seconds)
    return {order: fmean(times) for order, times in found.items()}
