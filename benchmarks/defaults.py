"""What a newcomer meets first: default fits, and ``solve`` on data of ordinary size.

``python benchmarks/defaults.py [--only fits,galahad] [--threads N ...] [--force]``, after ``make
bench`` has installed the peers, writes ``results/defaults.md``. Default fits on dense data take
turns with ``Ridge().fit``, those on sparse data with a fit that is told the strength which the
default finds. ``solve`` takes turns with GALAHAD's GLTR on 0.2, 1 and 3 million entries, dense and
sparse, at the same certified accuracy; ours chooses its solver and proves its answer.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from games import normal, regression, scattered
from harness import (
    Case,
    Measurement,
    environment,
    machine,
    measure,
    peak,
    ratio_cell,
    require_quiet,
)
from harness import save as save_page
from iterative import Comparison, compare
from peers import Game, galahad_gltr
from sklearn.linear_model import Ridge

from spgls import Floor, StackelbergRegressor

RESULTS = Path(__file__).parent / "results"
GAMMA = 0.1
#: Largest ratios of our time to GALAHAD's, from a million entries on and below.
LARGE, SMALL = 1.1, 1.6
#: Most bytes that a default fit on sparse data may hold.
MEMORY = 1e9
DENSE = ((632, 316), (1414, 707), (2449, 1225))
SPARSE = ((20_000, 10_000, 1e-3), (50_000, 20_000, 1e-3), (100_000, 30_000, 1e-3))


def fits() -> Iterator[tuple[Case, Callable[[], Any]]]:
    """Default fits with what they are compared with, and our side once more to see its memory."""
    X, y = normal(4_000, 3_000)
    dense = StackelbergRegressor(goal=Floor(1.0))
    yield (
        Case(
            name="default fit, dense 4000 x 3000",
            ours=lambda: dense.fit(X, y),
            peer=lambda: Ridge().fit(X, y),
            peer_name="Ridge()",
            target=1.0,
            pairs=9,
            pause=0.1,
        ),
        lambda: dense.fit(X, y),
    )
    S, labels, _ = scattered(60_000, 15_000, 1e-3)
    model = StackelbergRegressor(goal=Floor(1.0))
    told = StackelbergRegressor(model.fit(S, labels).gamma_, goal=Floor(1.0))
    yield (
        Case(
            name="default fit, sparse 60000 x 15000",
            ours=lambda: model.fit(S, labels),
            peer=lambda: told.fit(S, labels),
            peer_name="the strength given",
            target=2.0,
            pairs=15,
        ),
        lambda: model.fit(S, labels),
    )


def games() -> Iterator[tuple[str, Game, float]]:
    """Data of ordinary size, and the largest ratio that meets the goal there."""
    for m, n in DENSE:
        target = LARGE if m * n > 5e5 else SMALL
        yield f"dense {m} x {n}", Game(*regression(m, n), GAMMA), target
    for m, n, density in SPARSE:
        entries = m * n * density
        game = Game(*scattered(m, n, density), GAMMA)
        yield f"sparse {m} x {n}, {entries:.0f} entries", game, LARGE if entries > 5e5 else SMALL


def fit_row(m: Measurement, memory: float, kind: str) -> str:
    """A row of the table of fits."""
    verdict = m.verdict if memory <= MEMORY else "MISSED: memory"
    return (
        f"| {m.name} | {m.peer} | {m.threads} | {m.pairs} | {1e3 * m.ours:.4g} "
        f"| {1e3 * m.theirs:.4g} | {ratio_cell(m.ratio, m.ratio_quartiles)} | {m.target:g} "
        f"| {verdict} | {memory / 1e6:.0f} | {kind} | {m.relative_gap:.1e} |"
    )


def game_row(c: Comparison) -> str:
    """A row of the table of solves; products are not compared, as solvers differ."""
    met = c.ratio is not None and c.ratio <= c.target
    verdict = c.verdict if c.ratio is None else "met" if met else "MISSED"
    return (
        f"| {c.name} | {c.threads} | {c.pairs} | {c.passes:g} | {c.peer_products} "
        f"| {1e3 * c.ours:.3g} | {1e3 * c.theirs:.3g} "
        f"| {ratio_cell(c.ratio, c.ratio_quartiles)} | {c.target:g} | {verdict} "
        f"| {c.certified_gap:.1e} | {c.peer_gap:.1e} |"
    )


def page(fit_rows: list[str], game_rows: list[str], about: dict[str, Any], note: str | None) -> str:
    """Return the results as a page."""
    lines = ["# Defaults", "", machine(about), ""]
    lines += [f"Not a quiet machine: {note}", ""] if note else []
    lines += [
        "Milliseconds, medians; both sides in one process, in turn, on equally many threads. The "
        "ratio is the median of the pairs' ratios (quartiles in brackets).",
        "",
        "Default fits. Memory is what a fit holds at most, in MB beyond X.",
        "",
        "| case | against | threads | pairs | spgls | other | ratio | target | | memory | proof "
        "| gap |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- | ---: | --- | ---: |",
        *fit_rows,
        "",
        f"`solve` against GALAHAD's GLTR, gamma {GAMMA:g}: our time holds the choice of the solver "
        "and the proof, theirs neither. A product costs GALAHAD two reads.",
        "",
        "| case | threads | pairs | reads | their products | spgls | GALAHAD | ratio | target | "
        "| certified gap | their gap |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- | ---: | ---: |",
        *game_rows,
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="fits,galahad", help="what to measure")
    parser.add_argument("--threads", type=int, nargs="+", default=sorted({1, os.cpu_count() or 1}))
    parser.add_argument("--force", action="store_true", help="measure beside other work")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the results")
    options = parser.parse_args()
    note = require_quiet(force=options.force)
    measured: list[Any] = []
    fit_rows, game_rows = [], []
    if "fits" in options.only:
        for case, ours in fits():
            kind = ours().certificate_.kind
            memory = peak(ours)
            for threads in options.threads:
                measured.append(measure(case, threads))
                fit_rows.append(fit_row(measured[-1], memory, kind))
                print(fit_rows[-1], flush=True)
    if "galahad" in options.only:
        for name, game, target in games():
            for threads in options.threads:
                rival = ("auto", "GALAHAD GLTR", galahad_gltr)
                measured.append(compare(name, game, rival, threads, 21, target=target))
                game_rows.append(game_row(measured[-1]))
                print(game_rows[-1], flush=True)
    about = environment("galahad-optrove")
    text = page(fit_rows, game_rows, about, note)
    path = save_page(measured, text, about, options.out, "defaults")
    print(f"Written: {path} and {path.with_suffix('.json').name}")


if __name__ == "__main__":
    main()
