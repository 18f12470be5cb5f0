"""Immutable columns of sparse data against none: ``python benchmarks/immutable.py [--quick]``.

The same game with and without immutable columns, in turn in one process. The first four cases are
solves against one strength; the targets are 10, 30, 30 and 100 times the time without, 200 MB of
memory beyond X, and a certified gap. The rest are default fits, where half of the people are honest
and the proof squares the changeable columns; they have no target. Each case is measured on one
thread and on all cores (``--threads 1,2``): a factor of the free columns takes all it is given.
``--force`` measures beside other work; then look at the CPU time.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numba
import numpy as np
import scipy.sparse as sp
from harness import CERTIFIED, environment, machine, peak, ratio_cell, require_quiet, save
from threadpoolctl import threadpool_limits

from spgls import Floor, StackelbergRegressor, solve

RESULTS = Path(__file__).parent / "results"
#: Bytes beyond X that a solve may take.
MEMORY = 2e8
#: Calls without immutable columns, which are short, for each with them.
SHORT = 5


@dataclass(frozen=True)
class Case:
    """Sparse data, how many of its columns are immutable, and what is done with it."""

    shape: tuple[int, int]
    density: float
    immutable: int
    fit: bool
    target: float | None

    @property
    def name(self) -> str:
        """What is measured."""
        (m, n), what = self.shape, "default fit" if self.fit else "solve"
        return f"{what}, {m} x {n}, {self.immutable} immutable"


SMALL, LARGE = ((20_000, 3_000), 0.002), ((100_000, 50_000), 2e-4)
CASES = (
    Case(*SMALL, 100, False, 10.0),
    Case(*SMALL, 1_000, False, 30.0),
    Case(*SMALL, 2_900, False, 30.0),
    Case(*LARGE, 49_000, False, 100.0),
    Case(*SMALL, 100, True, None),
    Case(*SMALL, 1_000, True, None),
    Case(*SMALL, 2_900, True, None),
)


@dataclass(frozen=True)
class Measurement:
    """Seconds with and without, and what is known of the answer."""

    name: str
    threads: int
    pairs: int
    ours: float
    theirs: float
    ratio: float
    ratio_quartiles: tuple[float, float]
    cpu_ratio: float
    target: float | None
    memory: float
    kind: str
    relative_gap: float

    @property
    def verdict(self) -> str:
        """Whether the target was met; NC where the answer is not certified."""
        if not self.relative_gap <= CERTIFIED:
            return "NC"
        if self.target is None:
            return ""
        return "met" if self.ratio <= self.target and self.memory <= MEMORY else "MISSED"


def sides(case: Case) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Calls with and without immutable columns, which return what was found."""
    (m, n), rng = case.shape, np.random.default_rng(0)
    X = sp.random(m, n, case.density, format="csr", random_state=rng, data_rvs=rng.standard_normal)
    y = X @ rng.normal(size=n) + rng.normal(size=m)
    price = np.ones(n)
    price[rng.permutation(n)[: case.immutable]] = np.inf
    z = y + np.abs(rng.normal(size=m))

    def play(cost: np.ndarray | None) -> Any:
        if not case.fit:
            return solve(X, y, z, 1.0, feature_cost=cost).certificate
        return StackelbergRegressor(goal=Floor(1.0), feature_cost=cost).fit(X, y).certificate_

    return lambda: play(price), lambda: play(None)


def timed(function: Callable[[], Any]) -> tuple[float, float, Any]:
    """Seconds on the clock and of the processor, and what the call returned."""
    clock, cpu = time.perf_counter(), time.process_time()
    result = function()
    return time.perf_counter() - clock, time.process_time() - cpu, result


def measure(case: Case, threads: int, pairs: int) -> Measurement:
    """Time both sides in turn, after one call of each."""
    ours, without = sides(case)
    numba.set_num_threads(threads)
    with threadpool_limits(limits=threads):
        ours(), without()
        times = np.empty((pairs, 2, 2))
        for pair in times:
            *pair[0], proof = timed(ours)
            pair[1] = np.median([timed(without)[:2] for _ in range(SHORT)], axis=0)
        memory = peak(ours)
    clock, cpu = (times[:, 0, k] / times[:, 1, k] for k in (0, 1))
    low, high = np.quantile(clock, [0.25, 0.75])
    return Measurement(
        name=case.name,
        threads=threads,
        pairs=pairs,
        ours=float(np.median(times[:, 0, 0])),
        theirs=float(np.median(times[:, 1, 0])),
        ratio=float(np.median(clock)),
        ratio_quartiles=(float(low), float(high)),
        cpu_ratio=float(np.median(cpu)),
        target=case.target,
        memory=memory,
        kind=proof.kind,
        relative_gap=float(proof.relative_gap),
    )


def cells(m: Measurement) -> Iterator[str]:
    """A row of the table."""
    yield from (m.name, str(m.threads), str(m.pairs))
    yield from (f"{1e3 * m.ours:.4g}", f"{1e3 * m.theirs:.3g}")
    yield from (ratio_cell(m.ratio, m.ratio_quartiles), f"{m.cpu_ratio:.1f}")
    yield from ("" if m.target is None else f"{m.target:g}", m.verdict)
    yield from (f"{m.memory / 1e6:.0f}", m.kind, f"{m.relative_gap:.1e}")


def page(measurements: list[Measurement], about: dict[str, Any], note: str | None) -> str:
    """Return the results as a page."""
    lines = ["# Immutable columns", "", machine(about), ""]
    lines += [f"Not a quiet machine: {note}", ""] if note else []
    lines += [
        "Milliseconds, medians; with and without immutable columns in one process, in turn. The "
        "ratio is the median of the pairs' ratios (quartiles in brackets), on the clock and of CPU "
        "time. Memory is what a call holds at most, in MB beyond X.",
        "",
        "| case | threads | pairs | with | without | ratio | CPU ratio | target | | memory | proof "
        "| gap |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- | ---: | --- | ---: |",
    ]
    lines += ["| " + " | ".join(cells(m)) + " |" for m in measurements]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one pair, and no default fits")
    parser.add_argument("--threads", default=f"1,{os.cpu_count()}", help="numbers of threads")
    parser.add_argument("--force", action="store_true", help="measure beside other work")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the results")
    options = parser.parse_args()
    note = require_quiet(force=options.force)
    measurements = []
    for case in CASES:
        if case.fit and options.quick:
            continue
        for threads in dict.fromkeys(int(t) for t in options.threads.split(",")):
            m = measure(case, threads, 1 if options.quick else 7)
            measurements.append(m)
            print("  ".join(cells(m)), flush=True)
    about = environment()
    path = save(measurements, page(measurements, about, note), about, options.out, "immutable")
    print(f"Written: {path} and {path.with_suffix('.json').name}")


if __name__ == "__main__":
    main()
