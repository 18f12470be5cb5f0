"""The block Krylov solver at scale: against peers, the machine, and LSMR.

``python benchmarks/engine.py [--quick] [--threads N] [--only NAME] [--out FOLDER]``, after ``make
bench`` has installed the peers. Three questions:

- How long does a solve take against peers at the same certified accuracy, both sides in turn?
- How long does it take against reading the data as often as it does by the machine's own ``gemv``,
  in turn with it?
- Against weak providers on data with more columns than rows, where a peer for the game does not
  exist: how many iterations and how much time against LSMR on labels and goals, to the same loss
  and the same smallest alpha?

The largest case needs 2 GB.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from games import regression, scattered
from games import weak as weak_data
from harness import PAUSE, environment, interleave, machine, ratio_cell, save
from iterative import Comparison, compare
from peers import Game, Peer, eigh_socp, galahad_gltr, pymanopt_rtr, scipy_trlib
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse.linalg import lsmr

from spgls import Solution, solve

RESULTS = Path(__file__).parent / "results"
GAMMA = 0.1


@dataclass(frozen=True)
class Rival:
    """A peer, with the largest ratios of our time to its that meet the goal."""

    name: str
    peer: Peer
    target: float
    sparse_target: float
    dense_only: bool = False
    most_entries: float = np.inf

    def on(self, dense: bool, threads: int) -> float:
        """The goals are for all cores; on one, not to be slower is enough."""
        if threads < (os.cpu_count() or 1):
            return 1.0
        return self.target if dense else self.sparse_target

    def takes(self, X: Any) -> bool:
        """Whether it is a rival on such data."""
        dense = isinstance(X, np.ndarray)
        return (dense or not self.dense_only) and X.shape[0] * X.shape[1] <= self.most_entries


RIVALS = (
    Rival("GALAHAD GLTR", galahad_gltr, 1 / 1.5, 1 / 1.5),
    Rival("pymanopt RTR", pymanopt_rtr, 0.1, 1.0),
    Rival("SciPy trlib", scipy_trlib, 1.0, 1.0),
    Rival("eigh + SOCP", eigh_socp, 1.0, 1.0, dense_only=True, most_entries=4e7),
)
#: Largest ratio of our time to that of as many reads by ``gemv`` that meets the goal, dense data.
FLOOR = 1.4
#: Most reads of dense data that meet the goal.
READS = 3
#: What a weak provider's game is solved to: loss over |y|^2, and relative error of alpha.
LOSS, ALPHA = 1e-10, 1e-4
#: Largest ratios to LSMR, of iterations and of time, that meet the goal.
MORE_ITERATIONS, MORE_TIME = 1.3, 3.0


@dataclass(frozen=True)
class Floor:
    """A solve against reading the data as often as it does by ``gemv``, in turn."""

    name: str
    threads: int
    pairs: int
    dense: bool
    reads: float
    data_bytes: float
    bandwidth: float
    ours: float
    ratio: float
    ratio_quartiles: tuple[float, float]

    @property
    def verdict(self) -> str:
        """Whether both targets for dense data were met."""
        if not self.dense or self.threads < (os.cpu_count() or 1):
            return "no target"
        missed = []
        if self.ratio > FLOOR:
            missed.append("time")
        if self.reads > READS:
            missed.append("reads")
        return "MISSED: " + ", ".join(missed) if missed else "met"


@dataclass(frozen=True)
class Weak:
    """A weak provider's game against LSMR on labels and goals; times in seconds."""

    name: str
    threads: int
    pairs: int
    rows: int
    condition: float
    lsmr_iterations: int
    iterations: int
    passes: float
    ours: float
    theirs: float
    ratio: float | None
    ratio_quartiles: tuple[float, float] | None
    loss: float
    alpha_error: float
    certified_gap: float

    @property
    def verdict(self) -> str:
        """Whether both targets were met; NC where loss or alpha was not reached."""
        if self.ratio is None:
            return "NC: ours"
        missed = []
        if self.iterations > MORE_ITERATIONS * self.lsmr_iterations:
            missed.append("iterations")
        if self.ratio > MORE_TIME:
            missed.append("time")
        return "MISSED: " + ", ".join(missed) if missed else "met"


def games() -> Iterator[tuple[str, Game]]:
    """The paper's dense data, and sparse data, at two sizes each."""
    for m, n in ((8_000, 4_000), (20_000, 10_000)):
        yield f"dense {m} x {n}", Game(*regression(m, n), GAMMA)
    for m, n, density in ((30_000, 30_000, 0.01), (90_000, 30_000, 0.001)):
        yield f"sparse {m} x {n}, density {density:g}", Game(*scattered(m, n, density), GAMMA)


def size(X: Any) -> float:
    """Bytes that one read of the data takes."""
    if sparse.issparse(X):
        return float(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)
    return float(X.nbytes)


def measure_floor(name: str, game: Game, threads: int, pairs: int) -> Floor:
    """Time a solve, and as many products of BLAS with a dense matrix of as many bytes, in turn."""
    dense = isinstance(game.X, np.ndarray)
    A = game.X if dense else np.ones((int(size(game.X)) // 32_000, 4_000))
    v = np.ones(A.shape[1])
    reads = solve(*game, solver="krylov").stats.passes
    timings = interleave(
        lambda: solve(*game, solver="krylov"),
        lambda: [A @ v for _ in range(int(reads))],
        threads=threads,
        pairs=pairs,
        pause=PAUSE,
    )
    return Floor(
        name=name,
        threads=threads,
        pairs=pairs,
        dense=dense,
        reads=reads,
        data_bytes=size(game.X),
        bandwidth=reads * A.nbytes / float(np.median(timings.theirs)),
        ours=float(np.median(timings.ours)),
        ratio=timings.ratio,
        ratio_quartiles=timings.quartiles,
    )


def weak_games() -> Iterator[tuple[str, Game]]:
    """Small labels, more columns than rows, a provider too weak to matter."""
    for density in (1e-3, 5e-3):
        yield f"weak, sparse 5000 x 20000, density {density:g}", Game(*weak_data(density), 1e4)


def smallest_alpha(w_y: np.ndarray, w_z: np.ndarray, gamma: float) -> float:
    """The closed form: smaller root of ``|w_y + alpha (w_y - w_z)|^2 = gamma alpha``."""
    gap = w_y - w_z
    b = gamma - 2 * (w_y @ gap)
    disc = b**2 - 4 * (gap @ gap) * (w_y @ w_y)
    return 2 * (w_y @ w_y) / (b + np.sqrt(disc)) if disc >= 0.0 and b > 0.0 else np.nan


def loss_of(game: Game, coef: np.ndarray, alpha: float) -> float:
    """The learner's loss over ``|y|^2``."""
    share = 1.0 / (1.0 + alpha)
    error = share * (game.X @ coef) + alpha * share * game.z - game.y
    return float(error @ error) / float(game.y @ game.y)


def least_squares(game: Game, target: np.ndarray, iterations: int) -> np.ndarray:
    return lsmr(game.X, target, atol=0.0, btol=0.0, conlim=0.0, maxiter=iterations)[0]


def iterations_needed(reached: Callable[[int], bool], most: int = 5_000) -> int:
    """Least number of iterations that reaches a goal, by bisection."""
    low, high = 1, most
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) else (middle + 1, high)
    return low


def measure_weak(name: str, game: Game, threads: int, pairs: int) -> Weak:
    """Time us against LSMR on labels and goals, at the accuracy both are held to."""
    kernel = (game.X @ game.X.T).toarray()
    values = np.linalg.eigvalsh(kernel)
    factor = cho_factor(kernel)
    exact = [game.X.T @ cho_solve(factor, t) for t in (game.y, game.z)]
    alpha = smallest_alpha(*exact, game.gamma)

    def reached(iterations: int) -> bool:
        w_y, w_z = (least_squares(game, t, iterations) for t in (game.y, game.z))
        found = smallest_alpha(w_y, w_z, game.gamma)
        close = abs(found / alpha - 1.0) <= ALPHA
        return bool(close and loss_of(game, w_y + found * (w_y - w_z), found) <= LOSS)

    needed = iterations_needed(reached)
    timings = interleave(
        lambda: solve(*game, solver="krylov"),
        lambda: [least_squares(game, t, needed) for t in (game.y, game.z)],
        threads=threads,
        pairs=pairs,
        pause=PAUSE if threads > 1 else 0.0,
    )
    solution: Solution = timings.our_result
    loss = loss_of(game, solution.coef, float(solution.alpha))
    error = abs(float(solution.alpha) / alpha - 1.0)
    good = loss <= LOSS and error <= ALPHA
    return Weak(
        name=name,
        threads=threads,
        pairs=pairs,
        rows=game.X.shape[0],
        condition=float(np.sqrt(values[-1] / values[0])),
        lsmr_iterations=needed,
        iterations=solution.stats.iterations,
        passes=solution.stats.passes,
        ours=float(np.median(timings.ours)),
        theirs=float(np.median(timings.theirs)),
        ratio=timings.ratio if good else None,
        ratio_quartiles=timings.quartiles if good else None,
        loss=loss,
        alpha_error=error,
        certified_gap=float(solution.certificate.relative_gap),
    )


def page(
    compared: list[Comparison], floors: list[Floor], weak: list[Weak], about: dict[str, Any]
) -> str:
    """Return the results as a page."""
    lines = [
        "# The block Krylov solver at scale",
        "",
        machine(about),
        "",
        f"gamma {GAMMA:g}. Times in milliseconds, medians; both sides in one process, interleaved, "
        "on equally many threads; ours with the certificate. The ratio is the median of the pairs' "
        "ratios (quartiles in brackets); NC: a side missed the certified gap, at which the peers' "
        "tolerance is as loose as it may be. Products as in `iterative.md`; in brackets all "
        "our reads.",
        "",
        "| case | against | threads | pairs | products | theirs | spgls ms | peer ms | ratio "
        "| target | |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    lines += [
        f"| {c.name} | {c.peer} | {c.threads} | {c.pairs} | {c.products:g} ({c.passes:g}) "
        f"| {c.peer_products or 'n/a'} | {1e3 * c.ours:.3g} | {1e3 * c.theirs:.3g} "
        f"| {ratio_cell(c.ratio, c.ratio_quartiles)} | {c.target:.2g} | {verdict(c)} |"
        for c in compared
    ]
    lines += [
        "",
        "Against the machine: our time over that of as many products of BLAS with a dense matrix "
        f"of as many bytes, in turn. Targets for dense data: ratio at most {FLOOR:g}, at most "
        f"{READS} reads.",
        "",
        "| case | threads | pairs | reads | MB | gemv GB/s | spgls ms | ratio | |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    lines += [
        f"| {f.name} | {f.threads} | {f.pairs} | {f.reads:g} | {f.data_bytes / 1e6:.0f} "
        f"| {f.bandwidth / 1e9:.3g} | {1e3 * f.ours:.3g} "
        f"| {ratio_cell(f.ratio, f.ratio_quartiles)} | {f.verdict} |"
        for f in floors
    ]
    lines += [
        "",
        "Accuracy, by one measure for both sides taken outside the timing: relative gap "
        "`|rho|^2/(lambda |y|^2)`, and objective above the better side's in units of `|y|^2`.",
        "",
        "| case | side | threads | tolerance | gap | objective above | first call ms |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for c in compared:
        lines += [
            f"| {c.name} | krylov | {c.threads} | 1e-09 | {c.gap:.2g} | {c.excess:.2g} "
            f"| {1e3 * c.warm_up_ours:.3g} |",
            f"| {c.name} | {c.peer} | {c.threads} | {c.peer_tolerance:.2g} | {c.peer_gap:.2g} "
            f"| {c.peer_excess:.2g} | {1e3 * c.warm_up_peer:.3g} |",
        ]
    lines += [
        "",
        "Weak providers (gamma 1e4): every label can be met, and the answer is the one of smallest "
        f"alpha. Both sides reach a loss of {LOSS:g} `|y|^2` and that alpha to {ALPHA:g}, known "
        "from a dense solve. LSMR runs twice, on labels and on goals, for exactly as many "
        "iterations as that takes, and gives neither certificate nor predictor. Targets: at most "
        f"{MORE_ITERATIONS:g} times the iterations of one run, at most {MORE_TIME:g} times the "
        "time of both.",
        "",
        "| case | threads | pairs | cond(X) | iterations (reads) | LSMR | spgls ms | LSMR ms "
        "| ratio | loss | alpha error | |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    lines += [
        f"| {w.name} | {w.threads} | {w.pairs} | {w.condition:.3g} "
        f"| {w.iterations} ({w.passes:g}) | {w.lsmr_iterations} | {1e3 * w.ours:.3g} "
        f"| {1e3 * w.theirs:.3g} | {ratio_cell(w.ratio, w.ratio_quartiles)} | {w.loss:.2g} "
        f"| {w.alpha_error:.2g} | {w.verdict} |"
        for w in weak
    ]
    return "\n".join(lines) + "\n"


def verdict(c: Comparison) -> str:
    """As the comparison's own, where the peer's products are not counted without them."""
    return c.verdict if c.peer_products else "met" if (c.ratio or np.inf) <= c.target else "MISSED"


def report(c: Comparison) -> str:
    ratio = "NC" if c.ratio is None else f"{c.ratio:.3f}"
    return (
        f"{c.name:<40} {c.peer:<13} {c.threads:>7} {c.products:>8g} {c.peer_products:>6} "
        f"{1e3 * c.ours:>9.2f} {1e3 * c.theirs:>9.2f} {ratio:>6}  {verdict(c)} "
        f"(gaps {c.gap:.1g}, {c.peer_gap:.1g})"
    )


def report_floor(f: Floor) -> str:
    return (
        f"{f.name:<40} {'gemv':<13} {f.threads:>7} {f.reads:>8g} {f.reads:>6g} "
        f"{1e3 * f.ours:>9.2f} {1e3 * f.ours / f.ratio:>9.2f} {f.ratio:>6.3f}  {f.verdict} "
        f"({f.bandwidth / 1e9:.1f} GB/s)"
    )


def report_weak(w: Weak) -> str:
    ratio = "NC" if w.ratio is None else f"{w.ratio:.2f}"
    return (
        f"{w.name:<40} {'LSMR':<13} {w.threads:>7} {w.iterations:>8} {w.lsmr_iterations:>6} "
        f"{1e3 * w.ours:>9.2f} {1e3 * w.theirs:>9.2f} {ratio:>6}  {w.verdict} "
        f"(loss {w.loss:.1g}, alpha {w.alpha_error:.1g})"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer pairs")
    parser.add_argument(
        "--threads",
        type=int,
        nargs="+",
        default=sorted({1, os.cpu_count() or 1}),
        help="BLAS threads of both sides; several to measure each",
    )
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the results")
    options = parser.parse_args()
    if os.environ.get("OMP_PROC_BIND", "false").lower() not in ("false", ""):
        parser.error("unset OMP_PROC_BIND: with GALAHAD it pins both sides to one core.")
    pairs = 7 if options.quick else 9
    print(
        f"{'case':<40} {'against':<13} {'threads':>7} {'products':>8} {'theirs':>6} "
        f"{'ours ms':>9} {'peer ms':>9} {'ratio':>6}",
        flush=True,
    )
    weak: list[Weak] = []
    for name, game in weak_games():
        if options.only in name:
            for threads in options.threads:
                weak.append(measure_weak(name, game, threads, 3 * pairs))
                print(report_weak(weak[-1]), flush=True)
    compared: list[Comparison] = []
    floors: list[Floor] = []
    for name, game in games():
        if options.only not in name:
            continue
        for threads in options.threads:
            floors.append(measure_floor(name, game, threads, pairs))
            print(report_floor(floors[-1]), flush=True)
        for rival in RIVALS:
            slow = rival.peer is eigh_socp
            if not rival.takes(game.X) or (slow and options.quick):
                continue
            for threads in options.threads:
                dense = isinstance(game.X, np.ndarray)
                against = ("krylov", rival.name, rival.peer)
                if slow and threads < max(options.threads):
                    continue
                pause = PAUSE if threads > 1 and not slow else 0.0
                compared.append(
                    compare(
                        name,
                        game,
                        against,
                        threads,
                        1 if slow else pairs,
                        target=rival.on(dense, threads),
                        pause=pause,
                    )
                )
                print(report(compared[-1]), flush=True)
    about = environment("galahad-optrove", "pymanopt")
    text = page(compared, floors, weak, about)
    path = save([*compared, *floors, *weak], text, about, options.out, "engine")
    print(f"Written: {path} and {path.with_suffix('.json').name}")


if __name__ == "__main__":
    main()
