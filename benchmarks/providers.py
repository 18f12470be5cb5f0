"""What kinds of providers cost: ``python benchmarks/providers.py [--quick] [--out FOLDER]``.

Actions in a band, one for each feature and its neighbours, against one cost a feature on the same
sparse data. Ranges of strengths and shares against one population on small random games. CPU time
of one thread, both sides in turn in one process.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numba
import numpy as np
import scipy.sparse as sp
from harness import environment, machine, ratio_cell, require_quiet, save
from threadpoolctl import threadpool_limits

from spgls import Actions, Between, Population, solve

RESULTS = Path(__file__).parent / "results"
#: Times that a band of actions may take of single costs, and a range of a population.
BAND, RANGE = 2.0, 10.0
#: Rows, columns and entries of sparse data.
SIZES = (
    (50_000, 20_000, 1_000_000),
    (20_000, 8_000, 400_000),
    (50_000, 5_000, 500_000),
    (10_000, 3_000, 100_000),
    (10_000, 2_000, 100_000),
    (5_000, 300, 20_000),
)
#: Diagonals of the effects: both neighbours, or the next two.
BANDS = {"neighbours": {-1: 0.4, 0: 1.0, 1: -0.3}, "next two": {0: 1.0, 1: 0.4, 2: -0.3}}
#: Random games of each number of features against ranges.
GAMES, FEATURES = 12, (1, 2, 5, 10)


@dataclass(frozen=True)
class Case:
    """Two games that are solved in turn."""

    name: str
    ours: Callable[[], Any]
    theirs: Callable[[], Any]
    target: float


@dataclass(frozen=True)
class Measurement:
    """CPU seconds of both sides, their ratio, and passes of both."""

    name: str
    pairs: int
    ours: float
    theirs: float
    ratio: float
    ratio_quartiles: tuple[float, float]
    largest: float
    target: float
    passes: float
    their_passes: float
    proved: bool

    @property
    def verdict(self) -> str:
        """Whether the target was met; NO where something is not proved."""
        if not self.proved:
            return "NO"
        return "met" if self.ratio <= self.target else "MISSED"


def bands() -> Iterator[Case]:
    for m, n, entries in SIZES:
        rng = np.random.default_rng(0)
        X = sp.random_array(
            (m, n), density=entries / (m * n), rng=rng, data_sampler=rng.standard_normal
        ).tocsr()
        y = X @ (rng.normal(size=n) * (rng.random(n) < 0.05)) + 0.1 * rng.normal(size=m)
        game = X, y, np.maximum(y, 0.5), 10.0
        single, prices = rng.uniform(0.5, 2.0, (2, n))
        for name, diagonals in BANDS.items():
            rows = [np.full(n - abs(k), size) for k, size in diagonals.items()]
            effects = sp.csr_array(sp.diags_array(rows, offsets=list(diagonals)))
            ways = single, Actions(effects, cost=prices)
            theirs, ours = (partial(solve, *game, fit_intercept=True, feature_cost=w) for w in ways)
            yield Case(f"{m} x {n}, {entries} entries, {name}", ours, theirs, BAND)


def ranges(n: int) -> Iterator[Case]:
    for seed in range(GAMES):
        rng = np.random.default_rng([n, seed])
        X = rng.normal(size=(20 * n + 10, n)) + rng.normal(size=n)
        y = X @ rng.normal(size=n) + rng.normal(size=len(X))
        z = (np.maximum(y, np.quantile(y, 0.6)), y + rng.normal(size=len(X)))[seed % 2]
        low = 10 ** rng.uniform(-2, 1)
        ends = Between(low, low * 10 ** rng.uniform(0.1, 2))
        whom = (ends, Population.mixed(ends), Population.mixed(ends, Between(0.2, 0.8)))[seed % 3]
        known = Population.mixed(float(np.sqrt(ends.low * ends.high)))
        ours, theirs = (partial(solve, X, y, z, who, fit_intercept=True) for who in (whom, known))
        yield Case(f"ranges, {n} features", ours, theirs, RANGE)


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = function()
    return time.process_time() - start, result


def measure(cases: list[Case], pairs: int) -> Measurement:
    """Medians over the pairs of each case, and over the cases."""
    seconds, ratios, proved = [], [], True
    for case in cases:
        for side in (case.theirs, case.ours):
            side()
        spent = np.empty((pairs, 2))
        for pair in spent:
            pair[0], found = timed(case.ours)
            pair[1], other = timed(case.theirs)
        proved &= found.certificate.kind == other.certificate.kind == "proved"
        seconds.append(np.median(spent, axis=0))
        ratios.append(spent[:, 0] / spent[:, 1])
    middle = [float(np.median(each)) for each in ratios]
    spread = ratios[0] if len(cases) == 1 else middle
    low, high = np.quantile(spread, [0.25, 0.75])
    ours, theirs = np.median(seconds, axis=0)
    return Measurement(
        name=cases[0].name,
        pairs=pairs,
        ours=float(ours),
        theirs=float(theirs),
        ratio=float(np.median(middle)),
        ratio_quartiles=(float(low), float(high)),
        largest=float(np.max(middle)),
        target=cases[0].target,
        passes=found.stats.passes,
        their_passes=other.stats.passes,
        proved=bool(proved),
    )


def page(measurements: list[Measurement], about: dict[str, Any]) -> str:
    lines = [
        "# Kinds of providers",
        "",
        machine(about),
        "",
        "Bands of actions against single costs, ranges against one population. CPU milliseconds of "
        "one thread, medians; both sides in one process, in turn. The ratio is the median of the "
        f"pairs' ratios (quartiles in brackets); ranges are {GAMES} games each, and largest is the "
        "median ratio of the slowest of them.",
        "",
        "| case | pairs | passes | spgls | compared with | ratio | largest | target | |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for m in measurements:
        cells = [
            m.name,
            str(m.pairs),
            f"{m.passes:g} / {m.their_passes:g}",
            f"{1e3 * m.ours:.3g}",
            f"{1e3 * m.theirs:.3g}",
            ratio_cell(m.ratio, m.ratio_quartiles),
            f"{m.largest:.2f}",
            f"{m.target:g}",
            m.verdict,
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few pairs")
    parser.add_argument("--force", action="store_true", help="measure beside other work")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the results")
    options = parser.parse_args()
    note = require_quiet(force=options.force)
    pairs, measurements = 3 if options.quick else 15, []
    numba.set_num_threads(1)
    with threadpool_limits(limits=1):
        for cases in [*([case] for case in bands()), *(list(ranges(n)) for n in FEATURES)]:
            m = measure(cases, pairs)
            measurements.append(m)
            print(
                f"{m.name:<45} {1e3 * m.ours:>8.1f} {1e3 * m.theirs:>8.1f} {m.ratio:>6.2f} "
                f"{m.largest:>6.2f} {m.target:>5.0f} {m.verdict:<6} passes {m.passes:g} / "
                f"{m.their_passes:g}",
                flush=True,
            )
    about = environment() | ({"note": note} if note else {})
    path = save(measurements, page(measurements, about), about, options.out, "providers")
    print(f"Written: {path} and {path.with_suffix('.json').name}")


if __name__ == "__main__":
    main()
