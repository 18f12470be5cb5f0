"""Our Krylov and Riemannian solvers against GALAHAD and pymanopt.

``python benchmarks/iterative.py [--quick] [--threads N] [--out FOLDER]``, after ``make bench`` has
installed the peers. All answers are held to one measure, taken outside the timing; the peers run
at the loosest tolerance that reaches it. A missed target is said, not an error.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from games import goals
from harness import CERTIFIED, PAUSE, environment, interleave, machine, ratio_cell, save
from peers import Game, Judgement, Peer, galahad_gltr, judge, pymanopt_rtr, tighten
from scipy import sparse
from sklearn.datasets import make_regression
from sklearn.preprocessing import minmax_scale

from spgls import Solution, solve
from spgls.solvers import available_solvers

RESULTS = Path(__file__).parent / "results"
#: Largest ratio of our time to the peer's that meets the goal; products: not more than theirs.
TARGET = 1.1

#: Our solver, the peer's name, the peer.
RIVALS: tuple[tuple[str, str, Peer], ...] = (
    ("gltr", "GALAHAD GLTR", galahad_gltr),
    ("rtr-newton", "pymanopt RTR", pymanopt_rtr),
)


@dataclass(frozen=True)
class Comparison:
    """What one case gave, times in seconds; gaps, residuals and objectives by the one measure."""

    name: str
    solver: str
    peer: str
    threads: int
    pairs: int
    peer_tolerance: float
    warm_up_ours: float
    warm_up_peer: float
    ours: float
    theirs: float
    ratio: float | None
    ratio_quartiles: tuple[float, float] | None
    target: float
    products: float
    peer_products: int
    passes: float
    gap: float
    peer_gap: float
    kkt_residual: float
    peer_kkt_residual: float
    excess: float
    peer_excess: float
    certified_gap: float

    @property
    def verdict(self) -> str:
        """Whether both targets were met; NC where a side did not reach the gap."""
        if self.ratio is None:
            sides = [
                side
                for side, gap in (("ours", self.gap), ("peer", self.peer_gap))
                if not gap <= CERTIFIED
            ]
            return "NC: " + ", ".join(sides)
        missed = []
        if self.ratio > self.target:
            missed.append("time")
        if self.products > self.peer_products:
            missed.append("products")
        return "MISSED: " + ", ".join(missed) if missed else "met"


def games() -> Iterator[tuple[str, Game]]:
    """The paper's dense and sparse data, and the dense unscaled against a weak provider."""
    X, y = make_regression(4000, 2000, noise=0.1, random_state=0)
    yield "dense 4000 x 2000, gamma 0.1", Game(minmax_scale(X), y, goals(y), 0.1)
    yield "raw 4000 x 2000, gamma 1e5", Game(X, y, goals(y), 1e5)
    rng = np.random.default_rng(0)
    S = sparse.random_array((15_000, 30_000), density=1e-4, format="csr", rng=rng)
    y = S @ rng.normal(size=30_000) + rng.uniform(0.0, 0.5, size=15_000)
    yield "sparse 15000 x 30000, gamma 0.1", Game(S, y, goals(y), 0.1)


def compare(
    name: str,
    game: Game,
    rival: tuple[str, str, Peer],
    threads: int,
    pairs: int,
    *,
    target: float = TARGET,
    pause: float | None = None,
) -> Comparison:
    """Match the accuracy, time in turn, then judge."""
    solver, peer_name, peer = rival
    tolerance = tighten(peer, game, CERTIFIED)
    if pause is None:
        # Threads of BLAS spin after products of long vectors too.
        pause = PAUSE if threads > 1 else 0.0
    timings = interleave(
        lambda: solve(*game, solver=solver, tol=CERTIFIED),
        lambda: peer(game, tolerance),
        threads=threads,
        pairs=pairs,
        pause=pause,
    )
    solution: Solution = timings.our_result
    answer = timings.peer_result
    mine, theirs = judge(game, solution.coef), judge(game, answer.coef)
    best = min(mine.objective, theirs.objective)
    reached = _reached(mine) and _reached(theirs)
    return Comparison(
        name=name,
        solver=solver,
        peer=peer_name,
        threads=threads,
        pairs=pairs,
        peer_tolerance=tolerance,
        warm_up_ours=timings.first_ours,
        warm_up_peer=timings.first_peer,
        ours=float(np.median(timings.ours)),
        theirs=float(np.median(timings.theirs)),
        ratio=timings.ratio if reached else None,
        ratio_quartiles=timings.quartiles if reached else None,
        target=target,
        # The peers' count ends with the last iterate: no certificate, no objective on the data.
        products=solution.history[-1].passes if solution.history else solution.stats.passes,
        peer_products=answer.products,
        passes=solution.stats.passes,
        gap=mine.relative_gap,
        peer_gap=theirs.relative_gap,
        kkt_residual=mine.kkt_residual,
        peer_kkt_residual=theirs.kkt_residual,
        excess=mine.objective - best,
        peer_excess=theirs.objective - best,
        certified_gap=float(solution.certificate.relative_gap),
    )


def _reached(judgement: Judgement) -> bool:
    return judgement.relative_gap <= CERTIFIED


def page(comparisons: list[Comparison], about: dict[str, Any]) -> str:
    """Return the results as a page."""
    lines = [
        "# Iterative solvers against their peers",
        "",
        machine(about),
        "",
        "Times in milliseconds, medians; both sides in one process, interleaved, on equally many "
        "threads; ours with the certificate, which the peers do not give. The ratio is the median "
        "of the pairs' ratios (quartiles in brackets); NC: a side missed the relative gap of "
        f"{CERTIFIED:g}. Products count each application of X'X and each gradient once, up to the "
        "last iterate; in brackets all our reads of X. A product costs a peer two reads. Targets: "
        f"products not more than theirs, ratio at most {TARGET:g}.",
        "",
        "| case | spgls | against | threads | pairs | products | theirs | spgls ms | peer ms "
        "| ratio | |",
        "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    lines += [
        f"| {c.name} | {c.solver} | {c.peer} | {c.threads} | {c.pairs} "
        f"| {c.products:g} ({c.passes:g}) | {c.peer_products} "
        f"| {1e3 * c.ours:.3g} | {1e3 * c.theirs:.3g} "
        f"| {ratio_cell(c.ratio, c.ratio_quartiles)} | {c.verdict} |"
        for c in comparisons
    ]
    lines += [
        "",
        "Accuracy, by one measure for both sides taken outside the timing: relative gap "
        "`|rho|^2/(lambda |y|^2)`, residual `|rho|/|g|` with `rho = (H + lambda I) r + g`, and "
        "objective above the better side's in units of `|y|^2`. The peer's tolerance is the "
        "loosest that reaches the gap. First calls are not counted above.",
        "",
        "| case | side | threads | tolerance | gap | residual | objective above | first call ms |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for c in comparisons:
        lines += [
            f"| {c.name} | {c.solver} | {c.threads} | {CERTIFIED:.1g} | {c.gap:.2g} "
            f"| {c.kkt_residual:.2g} | {c.excess:.2g} | {1e3 * c.warm_up_ours:.3g} |",
            f"| {c.name} | {c.peer} | {c.threads} | {c.peer_tolerance:.2g} | {c.peer_gap:.2g} "
            f"| {c.peer_kkt_residual:.2g} | {c.peer_excess:.2g} | {1e3 * c.warm_up_peer:.3g} |",
        ]
    return "\n".join(lines) + "\n"


def report(c: Comparison) -> str:
    ratio = "NC" if c.ratio is None else f"{c.ratio:.2f}"
    return (
        f"{c.name:<32} {c.solver:<11} {c.peer:<13} {c.threads:>7} {c.products:>8g} "
        f"{c.peer_products:>6} {1e3 * c.ours:>9.2f} {1e3 * c.theirs:>9.2f} {ratio:>6}  {c.verdict} "
        f"(gaps {c.gap:.1g}, {c.peer_gap:.1g} at tolerance {c.peer_tolerance:.1g})"
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
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the results")
    options = parser.parse_args()
    if os.environ.get("OMP_PROC_BIND", "false").lower() not in ("false", ""):
        parser.error("unset OMP_PROC_BIND: with GALAHAD it pins both sides to one core.")
    known = {capabilities.name for capabilities in available_solvers()}
    print(
        f"{'case':<32} {'ours':<11} {'against':<13} {'threads':>7} {'products':>8} {'theirs':>6} "
        f"{'ours ms':>9} {'peer ms':>9} {'ratio':>6}",
        flush=True,
    )
    comparisons = []
    for name, game in games():
        for rival in RIVALS:
            if rival[0] not in known:
                print(f"{name:<32} {rival[0]:<11} N/A: spgls has no such solver", flush=True)
                continue
            for threads in options.threads:
                # Milliseconds need more pairs than seconds for a steady median.
                pairs = (7 if options.quick else 21) * (1 if isinstance(game[0], np.ndarray) else 7)
                comparisons.append(compare(name, game, rival, threads, pairs))
                print(report(comparisons[-1]), flush=True)
    about = environment("galahad-optrove", "pymanopt")
    path = save(comparisons, page(comparisons, about), about, options.out, "iterative")
    print(f"Written: {path} and {path.with_suffix('.json').name}")


if __name__ == "__main__":
    main()
