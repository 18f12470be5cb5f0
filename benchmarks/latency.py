"""What small problems and first calls cost: imports, first solves, repeated small solves.

``python benchmarks/latency.py [--quick] [--out FOLDER]``. Imports and first calls run in fresh
processes, ours and the other side's in turn.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from harness import environment, interleave, machine, ratio_cell, save
from sklearn.linear_model import Ridge

from spgls import solve
from spgls.solvers import available_solvers

RESULTS = Path(__file__).parent / "results"
#: Seconds that code takes by itself, printed by the process that ran it.
TIMER = "import time; start = time.perf_counter(); {code}; print(time.perf_counter() - start)"
DATA = (
    "import numpy as np; rng = np.random.default_rng(0); X = rng.random(({m}, {n})); "
    "y = X @ rng.random({n}) + rng.random({m}); z = np.maximum(y, np.median(y)); "
)


@dataclass(frozen=True)
class Latency:
    """Ours against something, in seconds; without a peer the target is on the time itself."""

    name: str
    against: str
    repeats: int
    ours: float
    theirs: float | None
    ratio: float | None
    ratio_quartiles: tuple[float, float] | None
    target: float | None

    @property
    def verdict(self) -> str:
        """Whether the target was met."""
        if self.target is None:
            return "no target"
        measured = self.ours if self.ratio is None else self.ratio
        return "met" if measured <= self.target else "MISSED"


def fresh(code: str, before: str = "", **environment: str) -> float:
    """Seconds that code takes in a process of its own, after something untimed."""
    answer = subprocess.run(
        [sys.executable, "-c", before + TIMER.format(code=code)],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | environment,
    )
    return float(answer.stdout)


def imports(repeats: int) -> Latency:
    """``import spgls`` against ``import sklearn.linear_model``."""
    seconds = np.array(
        [(fresh("import spgls"), fresh("import sklearn.linear_model")) for _ in range(repeats + 1)]
    )[1:]
    return _against("import", "import sklearn.linear_model", seconds, 1.3)


def first_solves(repeats: int) -> list[Latency]:
    """The first solve after import: small, and large with compiled code kept on disk or not."""
    small = DATA.format(m=1000, n=10) + "import spgls; "
    large = DATA.format(m=5000, n=1000) + "import spgls; "
    code = "spgls.solve(X, y, z, 0.1, solver={solver!r})"
    rows = []
    seconds = [fresh(code.format(solver="auto"), small) for _ in range(repeats)]
    rows.append(_alone("first solve of 1000 x 10, auto", repeats, seconds, 0.05))
    with tempfile.TemporaryDirectory() as folder:
        kept = {"NUMBA_CACHE_DIR": folder}
        first = [fresh(code.format(solver="krylov"), large, **kept)]
        again = [fresh(code.format(solver="krylov"), large, **kept) for _ in range(repeats)]
    rows.append(_alone("first krylov solve of 5000 x 1000, compiling", 1, first, None))
    rows.append(_alone("the same in the next process", repeats, again, None))
    return rows


def small_solves(repeats: int) -> list[Latency]:
    """Repeated small solves by every solver that takes milliseconds, against Ridge."""
    rng = np.random.default_rng(0)
    X = rng.random((1000, 10))
    y = X @ rng.random(10) + rng.random(1000)
    z = np.maximum(y, np.median(y))

    def ours(solver: str) -> Callable[[], Any]:
        return lambda: solve(X, y, z, 0.1, solver=solver)

    rows = []
    for solver in ("auto", *(c.name for c in available_solvers())):
        if solver in ("sdp", "bisection"):
            continue
        timings = interleave(
            ours(solver), lambda: Ridge(alpha=1.0).fit(X, y), threads=1, pairs=20 * repeats
        )
        seconds = np.column_stack([timings.ours, timings.theirs])
        rows.append(_against(f"1000 x 10, {solver}", "Ridge().fit", seconds, None))
    return rows


def _against(name: str, peer: str, seconds: np.ndarray, target: float | None) -> Latency:
    ratios = seconds[:, 0] / seconds[:, 1]
    low, high = np.quantile(ratios, [0.25, 0.75])
    ours, theirs = np.median(seconds, axis=0)
    return Latency(
        name,
        peer,
        len(seconds),
        float(ours),
        float(theirs),
        float(np.median(ratios)),
        (float(low), float(high)),
        target,
    )


def _alone(name: str, repeats: int, seconds: list[float], target: float | None) -> Latency:
    return Latency(name, "", repeats, float(np.median(seconds)), None, None, None, target)


def page(rows: list[Latency], about: dict[str, Any]) -> str:
    """Return the results as a page."""
    lines = [
        "# Small problems and first calls",
        "",
        machine(about),
        "",
        "Times in milliseconds, medians. Imports and first calls in fresh processes. Targets: a "
        "ratio where there is another side, else a time.",
        "",
        "| what | against | repeats | spgls ms | peer ms | ratio | target | |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for r in rows:
        theirs = "" if r.theirs is None else f"{1e3 * r.theirs:.3g}"
        target = "" if r.target is None else f"{r.target:g}"
        if r.ratio is None and r.target is not None:
            target = f"{1e3 * r.target:g} ms"
        ratio = "" if r.ratio is None else ratio_cell(r.ratio, r.ratio_quartiles)
        lines.append(
            f"| {r.name} | {r.against} | {r.repeats} | {1e3 * r.ours:.3g} | {theirs} | {ratio} "
            f"| {target} | {r.verdict} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer repeats")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the results")
    options = parser.parse_args()
    repeats = 5 if options.quick else 11
    rows = [imports(repeats), *first_solves(repeats), *small_solves(repeats)]
    for r in rows:
        print(f"{r.name:<46} {1e3 * r.ours:>9.2f} ms  {r.verdict}", flush=True)
    about = environment()
    path = save(rows, page(rows, about), about, options.out, "latency")
    print(f"Written: {path} and {path.with_suffix('.json').name}")


if __name__ == "__main__":
    main()
