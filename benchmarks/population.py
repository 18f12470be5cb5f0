"""Time of mixed populations on reduced games: ``python benchmarks/population.py [--quick]``.

Random games of size 500 with two to four groups, half of them with an honest one, solved with and
without the proof that the optimum is global. One thread; the reduction of the data is not counted.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter

import numpy as np
from harness import environment, machine
from threadpoolctl import threadpool_limits

from spgls.population import PopulationSolution, solve_population
from spgls.reduction.reduced import ReducedGame

RESULTS = Path(__file__).parent / "results"
SIZE = 500
GAP = 1e-8
#: Milliseconds that the proof, and the search alone, may take.
TARGET, TARGET_SEARCH = 30.0, 20.0


@dataclass(frozen=True)
class Row:
    """What the games of one kind gave, times in milliseconds."""

    groups: int
    games: int
    search: float
    search_slowest: float
    proved: float
    proved_slowest: float
    evaluations: float
    intervals: float
    most_intervals: int
    proofs: int
    largest_gap: float

    @property
    def met(self) -> bool:
        """Whether both medians are within the targets and every game was proved."""
        return self.proved <= TARGET and self.search <= TARGET_SEARCH and self.proofs == self.games


def random_game(rng: np.random.Generator) -> ReducedGame:
    """A regression of 1000 rows and 500 columns, goals being labels with noise and a floor."""
    A = rng.normal(size=(2 * SIZE, SIZE)) * np.exp(rng.normal(size=SIZE)) / np.sqrt(2 * SIZE)
    y = A @ rng.normal(size=SIZE) + 0.3 * rng.normal(size=2 * SIZE)
    z = np.maximum(y, 0.5) + rng.uniform(0.0, 1.0) * rng.normal(size=2 * SIZE)
    u, sigma, _ = np.linalg.svd(A, full_matrices=False)
    eta, zeta = u.T @ y, u.T @ z
    r_y, r_z = y - u @ eta, z - u @ zeta
    free = 0.1 * SIZE * float(rng.exponential())
    return ReducedGame(sigma, eta, zeta, r_y @ r_y, r_y @ r_z, r_z @ r_z, 0, free)


def random_population(
    rng: np.random.Generator, game: ReducedGame, groups: int
) -> tuple[np.ndarray, np.ndarray]:
    """Strengths over four decades around least squares, half the time with an honest group."""
    gammas = float(np.sum(game.eta**2 / game.d)) * 10.0 ** rng.uniform(-2, 2, groups)
    if rng.random() < 0.5:
        gammas[0] = np.inf
    return gammas, rng.dirichlet(np.ones(groups))


def timed(
    game: ReducedGame, gammas: np.ndarray, shares: np.ndarray, *, certify: bool, repeats: int
) -> tuple[float, PopulationSolution]:
    """Shortest of a few calls, which is the one nobody else disturbed."""
    seconds = []
    for _ in range(repeats):
        start = perf_counter()
        found = solve_population(game, gammas, shares, tol=GAP, certify=certify)
        seconds.append(perf_counter() - start)
    return 1e3 * min(seconds), found


def run(groups: int, games: int, repeats: int) -> Row:
    rng = np.random.default_rng(groups)
    search, proof, found = [], [], []
    for _ in range(games):
        game = random_game(rng)
        population = random_population(rng, game, groups)
        search.append(timed(game, *population, certify=False, repeats=repeats)[0])
        time, solution = timed(game, *population, certify=True, repeats=repeats)
        proof.append(time)
        found.append((solution, (solution.value - solution.lower_bound) / game.yy))
    return Row(
        groups=groups,
        games=games,
        search=float(np.median(search)),
        search_slowest=max(search),
        proved=float(np.median(proof)),
        proved_slowest=max(proof),
        evaluations=float(np.median([s.steps for s, _ in found])),
        intervals=float(np.median([s.intervals for s, _ in found])),
        most_intervals=max(s.intervals for s, _ in found),
        proofs=sum(s.proved for s, _ in found),
        largest_gap=max(gap for _, gap in found),
    )


def table(rows: list[Row]) -> str:
    head = (
        "| groups | games | search | slowest | with proof | slowest | evaluations | intervals | "
        "most | proved | largest gap | |\n"
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |\n"
    )
    lines = [
        f"| {r.groups} | {r.games} | {r.search:.1f} | {r.search_slowest:.1f} | {r.proved:.1f} | "
        f"{r.proved_slowest:.1f} | {r.evaluations:.0f} | {r.intervals:.0f} | {r.most_intervals} | "
        f"{r.proofs} | {r.largest_gap:.1e} | {'met' if r.met else 'MISSED'} |"
        for r in rows
    ]
    return head + "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer games")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the results")
    options = parser.parse_args()
    with threadpool_limits(limits=1):
        rows = [run(k, 10 if options.quick else 40, 3) for k in (2, 3, 4)]
    about = environment()
    page = (
        f"# Mixed populations\n\n{machine(about)}\n\n"
        f"Games of size {SIZE}, gap {GAP:.0e} of |y|^2, one thread. Times in milliseconds: medians "
        "over games of the shortest of three calls; targets "
        f"{TARGET:.0f} with the proof and {TARGET_SEARCH:.0f} without.\n\n{table(rows)}"
    )
    print(page)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "population.md").write_text(page)
    record = {"environment": about, "rows": [asdict(row) for row in rows]}
    (options.out / "population.json").write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
