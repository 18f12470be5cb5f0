"""Cross-validation against one fit: ``python benchmarks/cv.py [--quick] [--threads N] [--out F]``.

A hundred strengths on ten folds, chosen and fitted, against one fit by the spectral solver on the
same data. Set SPGLS_DATA to a folder with ``blogData_train.csv`` (or ``.csv.xz``) to measure on the
blog posts as well, their columns brought to the unit interval and, once, as they are.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from games import blog, normal
from harness import CERTIFIED, Case, Measurement, environment, markdown, measure, save
from sklearn.model_selection import KFold

from spgls import Floor, Population, Shift, StackelbergRegressor, StackelbergRegressorCV

RESULTS = Path(__file__).parent / "results"
STRENGTHS, FOLDS = 100, 10
#: Times that the whole cross-validation may take of one fit.
TARGET = 4.0


def case(name, X, y, goal, *, honest=0.5, ridge=0.0, unit=1.0, cv=FOLDS, tol=CERTIFIED, pairs=10):
    one = StackelbergRegressor(
        unit, honest_share=honest, ridge=ridge, goal=goal, solver="spectral", tol=tol
    )
    many = StackelbergRegressorCV(
        unit * np.logspace(-3, 3, STRENGTHS),
        honest_shares=[honest],
        ridges=[ridge],
        goal=goal,
        world=Population.mixed(unit),
        cv=cv,
        tol=tol,
    )
    return Case(
        name=name,
        ours=lambda: many.fit(X, y),
        peer=lambda: one.fit(X, y),
        peer_name="one fit",
        target=TARGET,
        pairs=pairs,
        accuracy=tol,
    )


def cases(*, quick: bool) -> Iterator[Case]:
    pairs = 3 if quick else 10
    X, y = normal(50_000, 280)
    yield case("normal, half honest", X, y, Floor(1.0), pairs=pairs)
    shuffled = KFold(FOLDS, shuffle=True, random_state=0)
    yield case("normal, shuffled folds", X, y, Floor(1.0), cv=shuffled, pairs=pairs)
    yield case("normal, nobody honest", X, y, Floor(1.0), honest=0.0, pairs=pairs)
    posts = blog()
    if posts is None:
        return
    X, y = posts
    goal = Shift(-5.0, lower=0.0)
    unit = (X - X.min(axis=0)) / np.maximum(np.ptp(X, axis=0), 1e-300)
    yield case("blog, nobody honest", unit, y, goal, honest=0.0, pairs=pairs)
    # Coefficients of 1e8 leave no ninth digit.
    yield case("blog, half honest, to 1e-8", unit, y, goal, tol=1e-8, pairs=pairs)
    yield case("blog, half honest, ridge", unit, y, goal, ridge=1.0, pairs=pairs)
    yield case("blog as it is, ridge", X, y, goal, ridge=1.0, pairs=min(pairs, 3))


def report(m: Measurement) -> str:
    ratio = "NC (not certified)" if m.ratio is None else f"{m.ratio:5.2f}"
    return (
        f"{m.name:<26} {m.threads:>7} {m.pairs:>5} {1e3 * m.ours:>9.0f} {1e3 * m.theirs:>9.0f} "
        f"{ratio:>6} {m.target:>7.1f}  {m.verdict}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer pairs")
    parser.add_argument(
        "--threads",
        type=int,
        nargs="+",
        default=[1],
        help="BLAS threads of both sides; several to measure each",
    )
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the results")
    options = parser.parse_args()
    print(
        f"{'case':<26} {'threads':>7} {'pairs':>5} {'cv ms':>9} {'fit ms':>9} {'ratio':>6} "
        f"{'target':>7}",
        flush=True,
    )
    measurements = []
    for one in cases(quick=options.quick):
        for threads in options.threads:
            measurements.append(measure(one, threads))
            print(report(measurements[-1]), flush=True)
    about = environment()
    page = markdown(measurements, about).replace("# Benchmark results", "# Cross-validation", 1)
    path = save(measurements, page, about, options.out, "cv")
    print(f"Written: {path} and {path.with_suffix('.json').name}")


if __name__ == "__main__":
    main()
