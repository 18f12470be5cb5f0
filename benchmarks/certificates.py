"""What is proved on large data, and what that takes: ``python benchmarks/certificates.py``.

Two tables. `certify` of predictors that `krylov` found, good ones and halves of them, against the
solve itself, in turn in one process: its gap is to be 1e-8, its memory at most three times that of
the solve, its time at most ten times. And populations that `krylov` solves: of those whose loss is
within 1e-9 of the optimum in truth, by the bound of `spectral`, 95% are to be proved. ``--force``
measures beside other work.
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
from games import scattered, uniform
from harness import environment, machine, peak, ratio_cell, require_quiet, save
from threadpoolctl import threadpool_limits

from spgls import Population, certify, solve

RESULTS = Path(__file__).parent / "results"
#: People for whom it is cheap to change their rows, and for whom it is dear.
STRONG, WEAK = 0.1, 1e3
#: The largest gap of a good predictor, and what certify may take of a solve's memory and time.
GAP, MEMORY, TIME = 1e-8, 3.0, 10.0
#: Populations that are solved well enough to count, and the share of them that is to be proved.
SOLVED, PROVED = 1e-9, 0.95
SPARSE = (60_000, 30_000, 2e6 / (60_000 * 30_000))


#: Whom the learner meets, by what is said of them.
PEOPLE: dict[str, float | Population] = {
    "one strength": STRONG,
    "half honest": Population.mixed(WEAK),
    "half honest, others strong": Population.mixed(STRONG),
}


@dataclass(frozen=True)
class Judged:
    """Seconds and bytes of a solve, and of ``certify`` of what it found."""

    name: str
    threads: int
    pairs: int
    solve: float
    certify: float
    ratio: float
    ratio_quartiles: tuple[float, float]
    solve_memory: float
    memory: float
    kind: str
    relative_gap: float
    #: What the bound misses of the optimum, relative to the squared labels.
    off: float

    @property
    def verdict(self) -> str:
        """Whether the bound is as good as asked for, and no dearer."""
        cheap = self.ratio <= TIME and self.memory <= MEMORY * self.solve_memory
        if not cheap or self.off > GAP:
            return "MISSED"
        return "met" if self.kind == "proved" else "estimated"


@dataclass(frozen=True)
class Proved:
    """How many populations ``krylov`` solved in truth, and how many of these it proved."""

    name: str
    games: int
    solved: int
    proved: int

    @property
    def verdict(self) -> str:
        """Whether enough of them are proved."""
        return "met" if self.solved and self.proved >= PROVED * self.solved else "MISSED"


def judgements(threads: int, pairs: int, rows: int | None) -> Iterator[Judged]:
    """Predictors of sparse and of dense data of both sides large."""
    numba.set_num_threads(threads)
    for kind in ("sparse", "dense"):
        if kind == "sparse":
            m, n, density = SPARSE
            data = scattered(rows or m, n, density)
        else:
            data = uniform(rows or 8_000, 4_000)
        X, y, _ = data
        shape = " x ".join(map(str, X.shape))
        for people, who in PEOPLE.items():
            with threadpool_limits(limits=threads):
                found = solve(*data, who, solver="krylov")
                for share, what in ((1.0, "found"), (0.5, "half of it")):
                    coef = share * found.coef
                    yield _judged(
                        f"{kind} {shape}, {people}, {what}",
                        threads,
                        pairs,
                        partial(solve, *data, who, solver="krylov"),
                        partial(certify, *data, who, coef),
                        found.objective,
                        float(y @ y),
                    )


def _judged(
    name: str,
    threads: int,
    pairs: int,
    play: Callable[[], Any],
    judge: Callable[[], Any],
    objective: float,
    labels: float,
) -> Judged:
    play(), judge()
    times = np.array([(_seconds(play), _seconds(judge)) for _ in range(pairs)])
    ratios, proof = times[:, 1] / times[:, 0], judge()
    low, high = np.quantile(ratios, [0.25, 0.75])
    return Judged(
        name=name,
        threads=threads,
        pairs=pairs,
        solve=float(np.median(times[:, 0])),
        certify=float(np.median(times[:, 1])),
        ratio=float(np.median(ratios)),
        ratio_quartiles=(float(low), float(high)),
        solve_memory=peak(play),
        memory=peak(judge),
        kind=proof.kind,
        relative_gap=float(proof.relative_gap),
        off=float((objective - proof.lower_bound) / labels),
    )


def _seconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def populations(games: int) -> Iterator[Proved]:
    """Random populations on dense, wide, graded and sparse data."""
    for name, make in DATA.items():
        solved = proved = 0
        for seed in range(games):
            rng = np.random.default_rng((seed, len(name)))
            X = make(rng)
            m, n = X.shape
            y = X @ (rng.normal(size=n) / np.sqrt(n)) + rng.normal(size=m)
            z = y + np.abs(rng.normal(size=m)) if seed % 2 else np.maximum(y, np.median(y))
            whole = float(sp.linalg.norm(X) if sp.issparse(X) else np.linalg.norm(X))
            groups = rng.integers(1, 4)
            strengths = 10.0 ** rng.uniform(-4, 2, size=groups) * float(y @ y) / whole**2
            honest = rng.choice([0.0, 0.1, 0.5, 0.9])
            shares = rng.dirichlet(np.ones(groups)) * (1.0 - honest)
            people = Population([np.inf, *strengths], [honest, *shares])
            told = {"fit_intercept": bool(seed % 3)}
            mine = solve(X, y, z, people, solver="krylov", **told)
            best = solve(X, y, z, people, solver="spectral", **told)
            near = mine.objective - best.certificate.lower_bound
            unit = float(np.square(y - y.mean() * told["fit_intercept"]).sum())
            if near <= SOLVED * unit:
                solved += 1
                proved += mine.certificate.kind == "proved"
        yield Proved(name, games, solved, proved)


#: Data of the populations, by what is said of it.
DATA: dict[str, Callable[[np.random.Generator], Any]] = {
    "dense 600 x 250": lambda rng: rng.normal(size=(600, 250)),
    "dense 250 x 600": lambda rng: rng.normal(size=(250, 600)),
    "dense 900 x 450, scales over 1e3": lambda rng: (
        rng.normal(size=(900, 450)) * 10.0 ** rng.uniform(-3, 0, size=450)
    ),
    "sparse 4000 x 1500": lambda rng: sp.random(
        4000, 1500, 0.005, format="csr", random_state=rng, data_rvs=rng.standard_normal
    ),
}


def judged_cells(j: Judged) -> Iterator[str]:
    """A row of the first table."""
    yield from (j.name, str(j.threads), str(j.pairs), f"{1e3 * j.solve:.3g}")
    yield from (f"{1e3 * j.certify:.3g}", ratio_cell(j.ratio, j.ratio_quartiles))
    yield from (f"{j.solve_memory / 1e6:.1f}", f"{j.memory / 1e6:.1f}", j.kind)
    yield from (f"{j.relative_gap:.1e}", f"{j.off:.1e}", j.verdict)


def proved_cells(p: Proved) -> Iterator[str]:
    """A row of the second table."""
    yield from (p.name, str(p.games), str(p.solved), str(p.proved), p.verdict)


def page(
    judged: list[Judged], proved: list[Proved], about: dict[str, Any], note: str | None
) -> str:
    """Return the results as a page."""
    lines = ["# Certificates", "", machine(about), ""]
    lines += [f"Not a quiet machine: {note}", ""] if note else []
    lines += [
        f"`certify` of what `krylov` finds against that solve, gamma {STRONG:g}, and {WEAK:g} "
        "where half are honest and the others are not called strong. Milliseconds, "
        "medians, in one process, in turn; the ratio is the median of the pairs' ratios (quartiles "
        "in brackets). Memory is what a call holds at most, in MB beyond X. *Gap* is that of the "
        "predictor, in units of R2, *missed* what the bound misses of the optimum, relative to the "
        f"squared labels: at most {GAP:g}. A call may take {TIME:g} times the time and {MEMORY:g} "
        "times the memory of the solve. Against strong people beside honest ones the multiplier is "
        "next to nothing. Beyond 3,000 columns a bound then rests on what a random start tells of "
        "the spectrum, and says that it is estimated.",
        "",
        "| predictor | threads | pairs | solve | certify | ratio | solve's memory | memory | proof "
        "| gap | missed | |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- | ---: | ---: | --- |",
        *("| " + " | ".join(judged_cells(j)) + " |" for j in judged),
        "",
        "Populations by `krylov`: those whose loss is within 1e-9 R2 of the optimum in truth, by "
        f"the bound of `spectral`, and those of them that it proves ({PROVED:.0%} asked for).",
        "",
        "| data | games | solved | proved | |",
        "| --- | ---: | ---: | ---: | --- |",
        *("| " + " | ".join(proved_cells(p)) + " |" for p in proved),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--games", type=int, default=40, help="populations on data of each kind")
    parser.add_argument("--rows", type=int, help="fewer rows, for a quick look")
    parser.add_argument("--force", action="store_true", help="measure beside other work")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the results")
    options = parser.parse_args()
    note = require_quiet(force=options.force)
    judged, proved = [], []
    for j in judgements(options.threads, options.pairs, options.rows):
        judged.append(j)
        print("  ".join(judged_cells(j)), flush=True)
    for p in populations(options.games):
        proved.append(p)
        print("  ".join(proved_cells(p)), flush=True)
    about = environment()
    text = page(judged, proved, about, note)
    path = save([*judged, *proved], text, about, options.out, "certificates")
    print(f"Written: {path} and {path.with_suffix('.json').name}")


if __name__ == "__main__":
    main()
