"""A path of strengths: against its hardest single one, the peer's solves, and work by hand.

``python benchmarks/paths.py [--quick] [--threads N] [--out FOLDER]``, after ``make bench`` has
installed the peer. On tall data "by hand" is what a path cannot do without: ``X'X``, its
eigen-decomposition, ``X'y`` and ``X'z``. The peer solves every strength once, each at the loosest
tolerance that reaches the certified gap; all answers are judged outside the timing.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from games import STRENGTHS as GAMMAS
from games import regression, scattered, uniform
from harness import CERTIFIED, PAUSE, environment, interleave, machine, ratio_cell, save
from peers import Game, galahad_gltr, judge, tighten

from spgls import Path as Solutions
from spgls import solve, solve_path

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Race:
    """A path against something; times in seconds."""

    name: str
    peer: str
    games: int
    threads: int
    pairs: int
    ours: float
    theirs: float
    ratio: float | None
    ratio_quartiles: tuple[float, float] | None
    target: float | None
    passes: float
    worst_gap: float
    missed: int

    @property
    def verdict(self) -> str:
        """Whether the target was met; NC where an answer missed the gap."""
        if self.ratio is None:
            return "NC"
        if self.target is None:
            return "no target"
        return "met" if self.ratio <= self.target else "MISSED"


def race(
    name: str,
    peer: str,
    target: float | None,
    ours: Callable[[], Any],
    theirs: Callable[[], Any],
    threads: int,
    pairs: int,
    missed: Callable[[Any], int] = lambda answer: 0,
) -> Race:
    """Time in turn, then judge."""
    timings = interleave(ours, theirs, threads=threads, pairs=pairs, pause=PAUSE)
    found = timings.our_result
    path = found if isinstance(found, Solutions) else [found]
    worst = max(solution.certificate.relative_gap for solution in path)
    short = missed(timings.peer_result)
    good = worst <= CERTIFIED and short == 0
    return Race(
        name=name,
        peer=peer,
        games=len(path),
        threads=threads,
        pairs=pairs,
        ours=float(np.median(timings.ours)),
        theirs=float(np.median(timings.theirs)),
        ratio=timings.ratio if good else None,
        ratio_quartiles=timings.quartiles if good else None,
        target=target,
        passes=found.stats.passes,
        worst_gap=float(worst),
        missed=short,
    )


def against_singles(name: str, data: tuple[Any, ...], threads: int, pairs: int) -> list[Race]:
    """The whole path against its hardest strength, and against the peer on all of them."""

    def path() -> Solutions:
        return solve_path(*data, GAMMAS, solver="krylov")

    singles = [solve(*data, gamma, solver="krylov").stats for gamma in GAMMAS]
    passes = np.array([stats.passes for stats in singles])
    hard = np.flatnonzero(passes == passes.max())
    hardest = float(GAMMAS[hard[len(hard) // 2]])
    rows = [
        race(
            name,
            f"krylov at gamma {hardest:.2g}, one of the {len(hard)} with most reads",
            1.3 if isinstance(data[0], np.ndarray) else None,
            path,
            lambda: solve(*data, hardest, solver="krylov"),
            threads,
            3 * pairs,
        )
    ]
    tolerance = [tighten(galahad_gltr, Game(*data, gamma), CERTIFIED) for gamma in GAMMAS]

    def peer() -> list[np.ndarray]:
        return [
            galahad_gltr(Game(*data, gamma), tol).coef
            for gamma, tol in zip(GAMMAS, tolerance, strict=True)
        ]

    def missed(answers: list[np.ndarray]) -> int:
        gaps = [
            judge(Game(*data, gamma), coef).relative_gap
            for gamma, coef in zip(GAMMAS, answers, strict=True)
        ]
        return int(np.sum(np.array(gaps) > CERTIFIED))

    target = 1 / 40 if isinstance(data[0], np.ndarray) else 1 / 20
    many = f"{len(GAMMAS)} solves by GALAHAD GLTR"
    # Each side of a pair is run twice, the first time to wake its threads.
    rows.append(race(name, many, target, path, peer, threads, pairs, missed))
    return rows


def against_hand(name: str, data: tuple[Any, ...], threads: int, pairs: int) -> list[Race]:
    """Tall data: one strength and many against the decomposition alone."""
    X, y, z = data

    def by_hand() -> tuple[Any, ...]:
        return np.linalg.eigh(X.T @ X), X.T @ y, X.T @ z

    hand = "eigh(X.T @ X), X.T @ y, X.T @ z"
    one = race(
        name,
        hand,
        1.5,
        lambda: solve(*data, 0.1, solver="spectral"),
        by_hand,
        threads,
        3 * pairs,
    )
    many = race(
        name,
        hand,
        1.5,
        lambda: solve_path(*data, GAMMAS, solver="spectral"),
        by_hand,
        threads,
        3 * pairs,
    )
    return [one, many]


def page(races: list[Race], about: dict[str, Any]) -> str:
    """Return the results as a page."""
    lines = [
        "# Paths of strengths",
        "",
        machine(about),
        "",
        f"Strengths from {GAMMAS[0]:g} to {GAMMAS[-1]:g}. Times in milliseconds, medians; both "
        "sides in one process, interleaved. The ratio is the median of the pairs' ratios "
        f"(quartiles in brackets); NC: an answer missed the certified gap of {CERTIFIED:g}.",
        "",
        "| case | strengths | against | threads | pairs | reads | spgls ms | other ms | ratio "
        "| target | |",
        "| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    lines += [
        f"| {r.name} | {r.games} | {r.peer} | {r.threads} | {r.pairs} | {r.passes:g} "
        f"| {1e3 * r.ours:.4g} | {1e3 * r.theirs:.4g} | {ratio_cell(r.ratio, r.ratio_quartiles)} "
        f"| {'' if r.target is None else f'{r.target:.3g}'} | {r.verdict} |"
        for r in races
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer pairs, no sparse data")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="of both sides")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the results")
    options = parser.parse_args()
    pairs = 1 if options.quick else 3
    races: list[Race] = []

    def add(found: list[Race]) -> None:
        races.extend(found)
        for r in found:
            ratio = "NC" if r.ratio is None else f"{r.ratio:.4f}"
            print(
                f"{r.name:<34} {r.games:>4} {r.peer:<48} {1e3 * r.ours:>9.1f} "
                f"{1e3 * r.theirs:>10.1f} {ratio:>7} {r.verdict} (gap {r.worst_gap:.1g}, "
                f"missed {r.missed})",
                flush=True,
            )

    for m, n in ((1_000_000, 50), (200_000, 300)):
        name = f"tall {m} x {n}"
        if options.only in name:
            add(against_hand(name, uniform(m, n, noise=1.0), options.threads, pairs))
    name = "dense 8000 x 4000"
    if options.only in name:
        add(against_singles(name, regression(8_000, 4_000), options.threads, pairs))
    name = "sparse 30000 x 30000, density 0.01"
    if options.only in name and not options.quick:
        add(against_singles(name, scattered(30_000, 30_000, 0.01), options.threads, pairs))
    about = environment("galahad-optrove")
    path = save(races, page(races, about), about, options.out, "paths")
    print(f"Written: {path} and {path.with_suffix('.json').name}")


if __name__ == "__main__":
    main()
