"""Run the benchmarks: ``python benchmarks/run.py [--quick] [--threads N] [--out FOLDER]``.

Set SPGLS_DATA to a folder with ``winequality-red.csv`` to measure on the real data as well.
A missed target is said, not an error: what is measured is reported as measured.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from games import normal, red_wine, wine_sized
from harness import Case, Measurement, environment, markdown, measure, save
from sklearn.linear_model import Ridge

from spgls import Floor, StackelbergRegressor, solve

RESULTS = Path(__file__).parent / "results"
GAMMA = 1.0


def small_data() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Red wine where it can be found, and data of its shape."""
    wine = red_wine()
    if wine is not None:
        yield "red wine 1599 x 11", *wine
    yield "normal 1599 x 11", *wine_sized()


def cases(*, quick: bool) -> Iterator[Case]:
    for name, X, y in small_data():
        z = np.maximum(y, 6.0)
        yield Case(
            name=name,
            ours=lambda X=X, y=y, z=z: solve(X, y, z, GAMMA, fit_intercept=True),
            peer=lambda X=X, y=y: Ridge().fit(X, y),
            peer_name="Ridge()",
            target=2.0,
            pairs=50 if quick else 500,
        )
        model = StackelbergRegressor(goal=Floor(6.0))
        yield Case(
            name=name,
            ours=lambda X=X, y=y, model=model: model.fit(X, y),
            peer=lambda X=X, y=y: Ridge().fit(X, y),
            peer_name="Ridge(), the estimator",
            target=2.5,
            pairs=50 if quick else 500,
        )
    X, y = normal(20_000, 500)
    z = np.maximum(y, 1.0)
    yield Case(
        name="normal 20000 x 500",
        ours=lambda: solve(X, y, z, GAMMA, fit_intercept=True),
        peer=lambda: Ridge(solver="cholesky").fit(X, y),
        peer_name='Ridge(solver="cholesky")',
        target=1.3,
        pairs=15 if quick else 50,
        pause=0.05,
    )


def report(m: Measurement) -> str:
    ratio = "NC (not certified)" if m.ratio is None else f"{m.ratio:5.2f}"
    return (
        f"{m.name:<20} {m.peer:<25} {m.threads:>7} {m.pairs:>5} {1e3 * m.ours:>9.2f} "
        f"{1e3 * m.theirs:>9.2f} {ratio:>6} {m.target:>7.1f}  {m.verdict:<6} "
        f"(first calls {1e3 * m.warm_up_ours:.1f}, {1e3 * m.warm_up_peer:.1f})"
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
        f"{'case':<20} {'against':<25} {'threads':>7} {'pairs':>5} {'ours ms':>9} {'peer ms':>9} "
        f"{'ratio':>6} {'target':>7}",
        flush=True,
    )
    measurements = []
    for case in cases(quick=options.quick):
        for threads in options.threads:
            measurements.append(measure(case, threads))
            print(report(measurements[-1]), flush=True)
    about = environment()
    page = save(measurements, markdown(measurements, about), about, options.out, "solve")
    print(f"Written: {page} and {page.with_suffix('.json').name}")


if __name__ == "__main__":
    main()
