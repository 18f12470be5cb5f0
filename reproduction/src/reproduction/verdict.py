"""What a claim can turn out to be."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from reproduction.store import Results

__all__ = ["CAVEAT", "FAILS", "HOLDS", "REAL", "Verdict", "several"]

HOLDS, CAVEAT, FAILS = "holds", "holds with a caveat", "does not hold here"
REAL = ("wine", "insurance", "building", "blog")


class Verdict(NamedTuple):
    """A claim, whether it holds, and the figure that says so."""

    claim: str
    place: str
    verdict: str
    sentence: str


def several(results: Results, ids: Iterable[str]) -> Results:
    """Those of some experiments."""
    wanted = set(ids)
    records = tuple(r for r in results.records if r.cell.experiment in wanted)
    return Results(records, results.environments)
