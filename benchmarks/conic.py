"""Our conic solvers against the cone solvers called by hand.

``python benchmarks/conic.py [--quick] [--threads N] [--out FOLDER]``. By hand means: what the
papers' authors do, with NumPy and the cone solver's own interface; form H, decompose it or
normalise it, solve the cone program, recover the coefficients from its multiplier. No certificate,
no options, no care for the hard case. Both answers are judged by ``certify``, outside the timing. A
missed target is said, not an error.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import clarabel
import numpy as np
import scs
from harness import environment, interleave, machine, ratio_cell, save
from scipy import sparse
from scipy.linalg import eigh
from sklearn.datasets import make_regression
from sklearn.preprocessing import minmax_scale

from spgls import Solution, certify, solve

RESULTS = Path(__file__).parent / "results"
#: Largest ratio of our time to that by hand that meets the goal.
TARGET = 1.3
#: What SCS is asked for on both sides: the default of our solver.
SCS_ACCURACY = 1e-8


class Game(NamedTuple):
    """Data and strength."""

    X: np.ndarray
    y: np.ndarray
    z: np.ndarray
    gamma: float


@dataclass(frozen=True)
class Comparison:
    """What one case gave, times in seconds; gaps and residuals by ``certify`` for both sides."""

    name: str
    solver: str
    peer: str
    threads: int
    pairs: int
    warm_up_ours: float
    warm_up_peer: float
    ours: float
    theirs: float
    ratio: float | None
    ratio_quartiles: tuple[float, float] | None
    target: float
    gap: float
    peer_gap: float
    certified_gap: float
    accuracy: float
    stages: dict[str, float]

    @property
    def verdict(self) -> str:
        """Whether the target was met; NC where our answer misses the accuracy asked for."""
        if self.ratio is None:
            return "NC"
        return "met" if self.ratio <= self.target else "MISSED"


def game(m: int, n: int) -> Game:
    """The paper's dense data."""
    X, y = make_regression(m, n, noise=0.1, random_state=0)
    return Game(minmax_scale(X), y, np.maximum(y, np.quantile(y, 0.25)), 0.1)


def sphere(game: Game) -> tuple[np.ndarray, np.ndarray, float]:
    """``H``, ``g`` and ``p`` of the paper's sphere problem."""
    X, y, z, gamma = game
    n = X.shape[1]
    half = np.sqrt(gamma) / 2
    H = np.empty((n + 1, n + 1))
    H[:n, :n] = half**2 * (X.T @ X)
    H[n, :n] = H[:n, n] = half / 2 * (X.T @ z)
    H[n, n] = z @ z / 4
    centre = z / 2 - y
    g = np.append(half * (X.T @ centre), z @ centre / 2)
    return H, g, float(centre @ centre)


def coefficients(r: np.ndarray, gamma: float) -> np.ndarray:
    """``w`` from a vector that is about a unit one."""
    r = r / np.linalg.norm(r)
    return np.sqrt(gamma) / (1 - r[-1]) * r[:-1]


def socp_by_hand(game: Game) -> np.ndarray:
    """The paper's SOCP: eigenvalues of H, a rotated cone for each, Clarabel as it comes."""
    H, g, p = sphere(game)
    d, V = eigh(H, overwrite_a=True, check_finite=False)
    b = V.T @ g
    # In units of order one, as anyone would: lambda in units of |g|, mu of p.
    unit = float(np.linalg.norm(g))
    d, b, c = d / unit, b / unit, p / unit
    n = len(d)
    # Unknowns mu, lambda and s; a cone holds d + lambda + s, d + lambda - s and 2b.
    j = np.arange(n)
    lines = sparse.csc_array(np.r_[[1.0, 1.0], np.ones(n)][None, :])
    rows = np.concatenate([3 * j, 3 * j, 3 * j + 1, 3 * j + 1])
    columns = np.concatenate([np.ones(n), 2 + j, np.ones(n), 2 + j])
    values = np.concatenate([-np.ones(3 * n), np.ones(n)])
    cones = sparse.csc_array((values, (rows, columns)), shape=(3 * n, n + 2))
    right = np.column_stack([d, d, 2 * b]).ravel()
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    solver = clarabel.DefaultSolver(
        sparse.csc_array((n + 2, n + 2)),
        np.r_[-1.0, np.zeros(n + 1)],
        sparse.csc_array(sparse.vstack([lines, cones])),
        np.r_[c, right],
        [clarabel.NonnegativeConeT(1), *[clarabel.SecondOrderConeT(3)] * n],
        settings,
    )
    multiplier = solver.solve().x[1]
    return coefficients(-V @ (b / (d + multiplier)), game.gamma)


def sdp_by_hand(game: Game) -> np.ndarray:
    """The single SDP, scaled to a unit diagonal, by SCS."""
    H, g, p = sphere(game)
    n = len(g)
    unit, label = float(np.linalg.norm(g)), float(game.y @ game.y)
    scale = 1 / np.sqrt(np.append(np.diag(H) + unit, label))
    A = np.block([[H, g[:, None]], [g, np.array([[p]])]]) * np.outer(scale, scale)
    C = unit * np.append(np.ones(n), -1.0) * scale**2
    columns, rows = np.triu_indices(n + 1)
    weight = np.where(rows == columns, 1.0, np.sqrt(2.0))
    diagonal = rows == columns
    matrix = np.zeros((len(rows), 2))
    matrix[-1, 0] = 1.0
    matrix[diagonal, 1] = -C
    solver = scs.SCS(
        {
            "A": sparse.csc_matrix(matrix),
            "b": A[rows, columns] * weight,
            "c": np.array([-1.0, 0.0]),
        },
        {"s": [n + 1]},
        eps_abs=SCS_ACCURACY,
        eps_rel=SCS_ACCURACY,
        max_iters=20_000,
        verbose=False,
    )
    multiplier = unit * solver.solve()["x"][1]
    return coefficients(-np.linalg.solve(H + multiplier * np.eye(n), g), game.gamma)


#: Case, our solver, the peer's name and code, the gap our side has to prove.
Rival = tuple[str, Game, str, str, Callable[[Game], np.ndarray], float]


def cases(*, quick: bool) -> Iterator[tuple[Rival, int]]:
    socp = ("socp", "eigh + Clarabel by hand", socp_by_hand, 1e-9)
    sdp = ("sdp", "SCS by hand", sdp_by_hand, 1e-9)
    yield ("dense 4000 x 2000, gamma 0.1", game(4000, 2000), *socp), 3 if quick else 9
    yield ("dense 200 x 100, gamma 0.1", game(200, 100), *sdp), 7 if quick else 31


def compare(rival: Rival, threads: int, pairs: int) -> Comparison:
    """Time in turn, then judge."""
    name, data, solver, peer_name, peer, accuracy = rival
    timings = interleave(
        lambda: solve(*data, solver=solver, tol=accuracy),
        lambda: peer(data),
        threads=threads,
        pairs=pairs,
    )
    solution: Solution = timings.our_result
    certified = solution.certificate.relative_gap <= accuracy
    return Comparison(
        name=name,
        solver=solver,
        peer=peer_name,
        threads=threads,
        pairs=pairs,
        warm_up_ours=timings.first_ours,
        warm_up_peer=timings.first_peer,
        ours=float(np.median(timings.ours)),
        theirs=float(np.median(timings.theirs)),
        ratio=timings.ratio if certified else None,
        ratio_quartiles=timings.quartiles if certified else None,
        target=TARGET,
        gap=certify(*data, solution.coef).relative_gap,
        peer_gap=certify(*data, timings.peer_result).relative_gap,
        certified_gap=solution.certificate.relative_gap,
        accuracy=accuracy,
        stages=dict(solution.stats.stages),
    )


def page(comparisons: list[Comparison], about: dict[str, Any]) -> str:
    """Return the results as a page."""
    lines = [
        "# Conic solvers against cone solvers called by hand",
        "",
        machine(about),
        "",
        "Times in milliseconds, medians; both sides in one process, interleaved, on equally many "
        "threads; ours with the certificate. The ratio is the median of the pairs' ratios "
        "(quartiles in brackets); NC: our certificate misses 1e-9. Gaps by `certify` for both "
        f"sides, in units of R2. SCS runs at {SCS_ACCURACY:g} on both sides, Clarabel by hand at "
        "its defaults.",
        "",
        "| case | spgls | against | threads | pairs | spgls ms | by hand ms | ratio | target | gap "
        "| gap by hand | |",
        "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    lines += [
        f"| {c.name} | {c.solver} | {c.peer} | {c.threads} | {c.pairs} | {1e3 * c.ours:.3g} "
        f"| {1e3 * c.theirs:.3g} | {ratio_cell(c.ratio, c.ratio_quartiles)} | {c.target:g} "
        f"| {c.gap:.2g} | {c.peer_gap:.2g} | {c.verdict} |"
        for c in comparisons
    ]
    lines += ["", "Where our time goes, in milliseconds of the last run:", ""]
    lines += [
        f"- {c.name}, {c.solver}, {c.threads} threads: "
        + ", ".join(f"{stage} {1e3 * seconds:.3g}" for stage, seconds in c.stages.items())
        for c in comparisons
    ]
    return "\n".join(lines) + "\n"


def report(c: Comparison) -> str:
    ratio = "NC" if c.ratio is None else f"{c.ratio:.2f}"
    return (
        f"{c.name:<30} {c.solver:<5} {c.peer:<24} {c.threads:>7} {1e3 * c.ours:>9.1f} "
        f"{1e3 * c.theirs:>9.1f} {ratio:>6}  {c.verdict} (gaps {c.gap:.1g}, {c.peer_gap:.1g})"
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
    print(
        f"{'case':<30} {'ours':<5} {'against':<24} {'threads':>7} {'ours ms':>9} {'peer ms':>9} "
        f"{'ratio':>6}",
        flush=True,
    )
    comparisons = []
    for rival, pairs in cases(quick=options.quick):
        for threads in options.threads:
            comparisons.append(compare(rival, threads, pairs))
            print(report(comparisons[-1]), flush=True)
    about = environment("clarabel", "scs")
    path = save(comparisons, page(comparisons, about), about, options.out, "conic")
    print(f"Written: {path} and {path.with_suffix('.json').name}")


if __name__ == "__main__":
    main()
