"""What sums of rows cost: an update against the product of its block, and a solve from sums.

``python benchmarks/game_statistics.py [--pairs N]``. One thread, processor time, in turns.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from spgls import GameStatistics, Population

#: Most that an update may take, in products of its block, and a solve, in milliseconds.
UPDATE, SOLVE = 1.5, 5.0


def timed(call: Callable[[], Any]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=300)
    pairs = parser.parse_args().pairs
    rng = np.random.default_rng(0)
    for mean in (0.0, 100.0):
        X = rng.normal(size=(1000, 200)) + mean
        y = X[:, 0] + rng.normal(size=1000)
        z = np.maximum(y, np.median(y))
        known = GameStatistics.from_data(X + 0.01, y, z)
        ways: dict[str, Callable[[], Any]] = {
            "product": lambda X=X: X.T @ X,
            "update": lambda X=X, y=y, z=z, known=known: known + GameStatistics.from_data(X, y, z),
            "solve": lambda known=known: known.solve(0.5, fit_intercept=True),
            "population": lambda known=known: known.solve(
                Population.mixed(0.5), fit_intercept=True
            ),
        }
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        for together in (("product", "update"), ("solve", "population")):
            for _ in range(pairs):
                for name in together:
                    seconds[name].append(timed(ways[name]))
        ratio = float(np.median(np.divide(seconds["update"], seconds["product"])))
        took = {name: 1e3 * float(np.median(each)) for name, each in seconds.items()}
        verdicts = ["met" if ok else "MISSED" for ok in (ratio <= UPDATE, took["solve"] <= SOLVE)]
        print(f"1000 x 200, means of {mean:g} standard deviations")
        print(f"  X'X {took['product']:.2f} ms, update {took['update']:.2f} ms")
        print(f"  update over X'X {ratio:.2f}, target {UPDATE}: {verdicts[0]}")
        print(f"  solve {took['solve']:.2f} ms, target {SOLVE}: {verdicts[1]}")
        print(f"  solve against a half honest population {took['population']:.2f} ms")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
