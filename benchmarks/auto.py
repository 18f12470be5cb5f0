"""Whether "auto" chooses well: its time against every option's, and predicted against measured.

``python benchmarks/auto.py [--quick] [--only NAME] [--out FOLDER]``. Each case is solved by "auto"
and by each of its options in turn, one strength and a hundred; an option predicted to take longer
than ``LONGEST`` is left out, and so cannot be the best. Memory is what the peak of a fresh process
rises by, beyond the data, against what ``explain_solver`` says.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from games import STRENGTHS as GAMMAS
from games import grid, scattered, uniform
from growth import _peak
from harness import environment, machine, save

from spgls import explain_solver, solve, solve_path

RESULTS = Path(__file__).parent / "results"
#: Largest ratio of the time of "auto" to the best option's, and of memory to the prediction.
TARGET, MEMORY = 1.5, 1.3
#: Seconds predicted above which an option is not run.
LONGEST = 20.0
#: Seconds above which an option is run once, and below which all are run more often.
SLOW, FAST = 2.0, 0.05
GAMMA = 0.1


@dataclass(frozen=True)
class Choice:
    """One case; seconds by option, None where it was not run."""

    name: str
    games: int
    chosen: str
    auto: float
    options: dict[str, float | None]
    predicted: dict[str, float]
    ratio: float
    memory: float | None
    predicted_memory: float | None

    @property
    def verdict(self) -> str:
        """Whether the choice was within the target."""
        return "met" if self.ratio <= TARGET else "MISSED"


def run(data: tuple[Any, np.ndarray, np.ndarray], games: int, solver: str) -> Any:
    """Solve one game, or all of them."""
    if games == 1:
        return solve(*data, GAMMA, solver=solver)
    return solve_path(*data, GAMMAS, solver=solver)


def _timed(data: tuple[Any, np.ndarray, np.ndarray], games: int, solver: str) -> float:
    # Threads of whoever ran before go to sleep.
    time.sleep(0.05)
    start = time.perf_counter()
    run(data, games, solver)
    return time.perf_counter() - start


def measure(name: str, games: int, repeats: int) -> Choice:
    """Time everything in turn; the least of several."""
    data = grid()[name]()
    plan = explain_solver(data[0], gamma=GAMMA if games == 1 else GAMMAS)
    predicted = {option.solver: option.seconds for option in plan.options}
    solvers = ["auto", *(s for s, seconds in predicted.items() if seconds <= LONGEST)]
    seconds: dict[str, list[float]] = {solver: [] for solver in solvers}
    first = {solver: _timed(data, games, solver) for solver in solvers}
    # Milliseconds need more repeats than seconds for a steady median.
    for _ in range(5 * repeats if first["auto"] < FAST else repeats):
        for solver in solvers:
            # What takes so long is no rival, and was timed well enough the first time.
            slow = first[solver] > SLOW
            seconds[solver].append(first[solver] if slow else _timed(data, games, solver))
    least = {solver: float(np.median(values)) for solver, values in seconds.items()}
    auto = least.pop("auto")
    rise = extra_memory(name, games)
    return Choice(
        name=name,
        games=games,
        chosen=plan.solver,
        auto=auto,
        options={solver: least.get(solver) for solver in predicted},
        predicted=predicted,
        ratio=auto / min(least.values()),
        memory=rise,
        predicted_memory=plan.memory,
    )


def extra_memory(name: str, games: int) -> float:
    """Bytes by which the peak of a fresh process rises, beyond the data."""
    code = f"import auto; print(auto.peak_rise({name!r}, {games}))"
    answer = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=True,
    )
    return float(answer.stdout)


def peak_rise(name: str, games: int) -> float:
    """For :func:`extra_memory`: code is loaded, and compiled, by a smaller solve first."""
    made = scattered(3_000, 2_000, 0.5) if name.startswith("sparse") else uniform(5_000, 1_000)
    run(made, 1, "krylov")
    run(uniform(300, 20), games, "spectral")
    data = grid()[name]()
    # What making the data took goes back to the system, or it would be used again unseen.
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    before = _peak()
    # What is returned is not counted: it is the user's.
    run(data, games, "auto")
    return float(_peak() - before)


def page(choices: list[Choice], about: dict[str, Any]) -> str:
    """Return the results as a page."""
    lines = [
        "# What auto chooses",
        "",
        machine(about),
        "",
        f"One strength ({GAMMA:g}) or {len(GAMMAS)} from {GAMMAS[0]:g} to {GAMMAS[-1]:g}. Times in "
        "milliseconds, medians in turn, with what was predicted in brackets; an option predicted "
        f"above {LONGEST:g} s was not run. The ratio is that of auto to the best option, target "
        f"{TARGET:g}. Memory beyond the data in MB, with the prediction.",
        "",
        "| case | games | choice | auto | spectral | krylov | ratio | | memory |",
        "| --- | ---: | --- | ---: | ---: | ---: | ---: | --- | ---: |",
    ]
    for c in choices:
        cells = [
            f"{'not run' if c.options[s] is None else f'{1e3 * c.options[s]:.3g}'} "
            f"({1e3 * c.predicted[s]:.3g})"
            for s in ("spectral", "krylov")
        ]
        lines.append(
            f"| {c.name} | {c.games} | {c.chosen} | {1e3 * c.auto:.3g} | {cells[0]} | {cells[1]} "
            f"| {c.ratio:.2f} | {c.verdict} | {c.memory / 1e6:.3g} ({c.predicted_memory / 1e6:.3g})"
            " |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="each once")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the results")
    options = parser.parse_args()
    choices = []
    for name in grid():
        if options.only not in name:
            continue
        for games in (1, len(GAMMAS)):
            choices.append(measure(name, games, 1 if options.quick else 5))
            c = choices[-1]
            times = {s: None if t is None else round(1e3 * t, 1) for s, t in c.options.items()}
            guess = {s: round(1e3 * t, 1) for s, t in c.predicted.items()}
            print(
                f"{name:<36} {games:>4} {c.chosen:<9} {1e3 * c.auto:>9.1f} ms {times} predicted "
                f"{guess} ratio {c.ratio:.2f} {c.verdict}; {c.memory / 1e6:.1f} MB predicted "
                f"{c.predicted_memory / 1e6:.1f}",
                flush=True,
            )
    about = environment()
    path = save(choices, page(choices, about), about, options.out, "auto")
    print(f"Written: {path} and {path.with_suffix('.json').name}")


if __name__ == "__main__":
    main()
