"""How time and memory grow with the data, for us and for GALAHAD.

``python benchmarks/growth.py [--quick] [--threads N] [--out FOLDER]``, after ``make bench`` has
installed the peer. Both sides solve in turn at the same certified accuracy, on dense and on sparse
data of a million entries up to 200 million, and a power law is fitted to the times. The largest
data take 2.4 GB. Memory is what the process's peak rises by during a first solve, in a process of
its own.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from games import goals
from harness import PAUSE, environment, machine, ratio_cell, save
from iterative import Comparison, compare
from peers import Game, galahad_gltr
from scipy import sparse

from spgls import solve

RESULTS = Path(__file__).parent / "results"
GAMMA = 0.1
#: Largest power of the number of entries that time may grow with.
TARGET = 1.1
ENTRIES = (1e6, 3e6, 1e7, 3e7, 1e8, 2e8)
#: Entries in a row of sparse data, over the number of columns.
DENSITY = 0.01


@dataclass(frozen=True)
class Point:
    """One size: a comparison with the peer, and memory beyond the data in bytes."""

    kind: str
    entries: int
    comparison: Comparison
    memory: float

    @property
    def verdict(self) -> str:
        """Whether the answers count."""
        return "NC" if self.comparison.ratio is None else "certified"


@dataclass(frozen=True)
class Law:
    """``time = c * entries^power``, fitted to the logarithms."""

    kind: str
    side: str
    power: float

    @property
    def verdict(self) -> str:
        """Whether our own growth meets the goal."""
        if self.side != "krylov":
            return "no target"
        return "met" if self.power <= TARGET else "MISSED"


def dense_game(entries: float) -> Game:
    """Uniform data, twice as many rows as columns."""
    n = round((entries / 2) ** 0.5)
    rng = np.random.default_rng(0)
    X = rng.random((2 * n, n))
    return _game(X, rng)


def sparse_game(entries: float) -> Game:
    """As many rows as columns, ``DENSITY`` of each row stored; a place may be stored twice."""
    n = round((entries / DENSITY) ** 0.5)
    each = round(DENSITY * n)
    rng = np.random.default_rng(0)
    columns = np.empty((n, each), dtype=np.int32)
    for row in columns:
        row[:] = np.sort(rng.integers(0, n, each, dtype=np.int32))
    values = rng.random(n * each)
    starts = np.arange(0, n * each + 1, each, dtype=np.int32)
    return _game(sparse.csr_array((values, columns.ravel(), starts), shape=(n, n)), rng)


def _game(X: Any, rng: np.random.Generator) -> Game:
    y = X @ rng.normal(size=X.shape[1]) + rng.uniform(0.0, 0.5, size=X.shape[0])
    return Game(X, y, goals(y), GAMMA)


KINDS = {"dense": dense_game, "sparse": sparse_game}


def extra_memory(kind: str, entries: float) -> float:
    """Bytes by which the peak rises during a first solve, measured in a fresh process."""
    code = f"import growth; print(growth.peak_rise({kind!r}, {entries!r}))"
    answer = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=True,
    )
    return float(answer.stdout)


def peak_rise(kind: str, entries: float) -> float:
    """For :func:`extra_memory`: compiled code is loaded by a smaller solve first."""
    solve(*KINDS[kind](5e6), solver="krylov")
    game = KINDS[kind](entries)
    # What making the data took is let go by filling it anew, and the peak forgotten.
    Path("/proc/self/clear_refs").write_text("5")
    before = _peak()
    solve(*game, solver="krylov")
    return float(_peak() - before)


def _peak() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return 1024 * int(line.split()[1])
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def measure(kind: str, entries: float, threads: int, pairs: int) -> Point:
    """Compare at one size."""
    game = KINDS[kind](entries)
    stored = game.X.nnz if sparse.issparse(game.X) else game.X.size
    comparison = compare(
        f"{kind} {game.X.shape[0]} x {game.X.shape[1]}",
        game,
        ("krylov", "GALAHAD GLTR", galahad_gltr),
        threads,
        pairs,
        target=1.0,
        pause=PAUSE if threads > 1 else 0.0,
    )
    return Point(kind, int(stored), comparison, extra_memory(kind, entries))


def laws(points: list[Point]) -> Iterator[Law]:
    """Fit each side's growth on each kind of data."""
    for kind in KINDS:
        chosen = [p for p in points if p.kind == kind]
        if len(chosen) < 2:
            continue
        entries = np.log([p.entries for p in chosen])
        ours = np.log([p.comparison.ours for p in chosen])
        theirs = np.log([p.comparison.theirs for p in chosen])
        yield Law(kind, "krylov", float(np.polyfit(entries, ours, 1)[0]))
        yield Law(kind, "GALAHAD GLTR", float(np.polyfit(entries, theirs, 1)[0]))


def page(points: list[Point], fitted: list[Law], about: dict[str, Any]) -> str:
    """Return the results as a page."""
    lines = [
        "# Growth with the data",
        "",
        machine(about),
        "",
        f"gamma {GAMMA:g}; dense data twice as tall as wide, sparse data square with "
        f"{DENSITY:g} of each row stored. Times in milliseconds, medians of interleaved pairs at "
        "the same certified accuracy. Memory: rise of the process's peak during a solve, beyond "
        "the data, in MB.",
        "",
        "| case | entries | threads | reads | spgls ms | GALAHAD ms | ratio | memory MB | |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for p in points:
        c = p.comparison
        lines.append(
            f"| {c.name} | {p.entries:.3g} | {c.threads} | {c.passes:g} | {1e3 * c.ours:.3g} "
            f"| {1e3 * c.theirs:.3g} | {ratio_cell(c.ratio, c.ratio_quartiles)} "
            f"| {p.memory / 1e6:.3g} | {p.verdict} |"
        )
    lines += ["", f"Time as a power of the entries; target for ours: at most {TARGET:g}.", ""]
    lines += ["| data | side | power | |", "| --- | --- | ---: | --- |"]
    lines += [f"| {f.kind} | {f.side} | {f.power:.3f} | {f.verdict} |" for f in fitted]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="smaller data, fewer pairs")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="of both sides")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the results")
    options = parser.parse_args()
    points = []
    for kind in KINDS:
        for entries in ENTRIES[:4] if options.quick else ENTRIES:
            points.append(measure(kind, entries, options.threads, 5 if options.quick else 9))
            c = points[-1].comparison
            print(
                f"{c.name:<28} {1e3 * c.ours:>9.2f} ms {1e3 * c.theirs:>9.2f} ms "
                f"{ratio_cell(c.ratio, c.ratio_quartiles):<20} {points[-1].memory / 1e6:.1f} MB",
                flush=True,
            )
    fitted = list(laws(points))
    for law in fitted:
        print(f"{law.kind}, {law.side}: power {law.power:.3f} {law.verdict}")
    about = environment("galahad-optrove")
    text = page(points, fitted, about)
    path = save([*points, *fitted], text, about, options.out, "growth")
    print(f"Written: {path} and {path.with_suffix('.json').name}")


if __name__ == "__main__":
    main()
