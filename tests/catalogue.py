"""Problems that every solver is tested on, each with a tag for what makes it difficult.

``CATALOGUE`` maps names to builders and ``problem(name)`` builds one. Answers lie in
``catalogue_answers.json``; ``python -m tests.catalogue --write`` derives them anew.

Data are sums and products of dyadic fractions, which floating point computes exactly, or they are
computed entry by entry with ``fsum``; so they are the same bits on every machine.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from math import fsum
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.random import Generator

from tests.oracles.answers import Answer, derive, stored, write


@dataclass(frozen=True, eq=False)
class Problem:
    """Arguments of one call of ``spgls.solve``; ``tags`` say what is special about them."""

    name: str
    tags: tuple[str, ...]
    X: Any
    y: np.ndarray
    z: np.ndarray
    gamma: float
    options: dict[str, Any]

    @property
    def answer(self) -> Answer:
        return stored()[self.name]


CATALOGUE: dict[str, Callable[[], Problem]] = {}


def add(name: str, *tags: str, seed: int | None = None, **arguments: Any):
    """Register a builder that takes a generator and returns X, y, z, gamma and perhaps options.

    The generator is the name's own unless a seed is given, by which variants share their data.
    """

    def register(builder):
        def build() -> Problem:
            rng = np.random.default_rng(zlib.crc32(name.encode()) if seed is None else seed)
            X, y, z, gamma, *rest = builder(rng, **arguments)
            options = dict.fromkeys(("fit_intercept", "feature_cost", "sample_weight"))
            options |= {"fit_intercept": False} | (rest[0] if rest else {})
            return Problem(name, tags, X, y, z, gamma, options)

        assert name not in CATALOGUE
        CATALOGUE[name] = build
        return builder

    return register


@cache
def problem(name: str) -> Problem:
    return CATALOGUE[name]()


# Ingredients


def draws(rng: Generator, *shape: int) -> np.ndarray:
    """Nearly normal numbers of variance one: multiples of 2^-11 below 4 in magnitude."""
    return rng.integers(-(2**10), 2**10, size=(3, *shape)).sum(axis=0) / 2.0**10


def whole(rng: Generator, *shape: int) -> np.ndarray:
    return rng.integers(-3, 4, size=shape).astype(float)


def label(rng: Generator, X, noise: float = 0.5) -> np.ndarray:
    m, n = X.shape
    return X @ draws(rng, n) + noise * draws(rng, m)


def floor(y: np.ndarray) -> np.ndarray:
    """The goals of the paper's synthetic data: nobody wants less than the lower quartile."""
    return np.maximum(y, np.sort(y)[len(y) // 4])


def product(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """A B with every entry rounded once."""
    return np.array([[fsum(row * column) for column in B.T] for row in A])


def rotation(rng: Generator, order: int) -> np.ndarray:
    """An orthogonal matrix, up to rounding: two reflections."""
    first, second = rng.integers(1, 17, size=(2, order)) * rng.choice((-1.0, 1.0), (2, order))
    mirrors = (np.eye(order) - 2.0 * np.outer(v, v) / fsum(v * v) for v in (first, second))
    return product(*mirrors)


def with_spectrum(rng: Generator, m: int, n: int, sigma) -> np.ndarray:
    k = min(m, n)
    return product(rotation(rng, m)[:, :k] * np.asarray(sigma), rotation(rng, n)[:k])


def hadamard(order: int) -> np.ndarray:
    H = np.ones((1, 1))
    while len(H) < order:
        H = np.block([[H, H], [H, -H]])
    return H


def scattered(rng: Generator, m: int, n: int, entries: int) -> sp.csr_array:
    where = rng.integers(0, m, entries), rng.integers(0, n, entries)
    return sp.csr_array((draws(rng, entries), where), shape=(m, n))


# Shapes and containers


@add("tall", "tall", m=40, n=8)
@add("wide", "wide", m=12, n=30)
@add("square", "square", m=16, n=16)
@add("tall-500", "tall", "mid-size", m=500, n=50)
@add("wide-300", "wide", "mid-size", m=100, n=300)
def plain(rng, m, n):
    X = draws(rng, m, n)
    y = label(rng, X)
    return X, y, floor(y), 0.5


@add("one-column", "one column", m=20, n=1)
@add("one-row", "one row", "hard case", m=1, n=6)
@add("one-entry", "one row", "one column", "hard case", m=1, n=1)
def single(rng, m, n):
    X = draws(rng, m, n)
    y = label(rng, X) + 1.0
    return X, y, 2.0 * y + 1.0, 0.25


@add("sparse-csr", "sparse")
def sparse_csr(rng):
    X = scattered(rng, 40, 15, 120)
    y = label(rng, X)
    return X, y, y + 1.0, 0.5


@add("sparse-csc-intercept", "sparse", "intercept", "weights")
def sparse_csc(rng):
    X = scattered(rng, 40, 15, 120).tocsc()
    y = label(rng, X) + 2.0
    options = {"fit_intercept": True, "sample_weight": rng.integers(1, 9, 40) / 4.0}
    return X, y, floor(y), 0.5, options


@add("sparse-wide-csr", "sparse", "wide")
def sparse_wide(rng):
    X = scattered(rng, 20, 60, 200)
    y = label(rng, X)
    return X, y, floor(y), 0.125


@add("sparse-400", "sparse", "mid-size", m=400, n=300, entries=3600, gamma=1.0)
@add("sparse-2000", "sparse", "mid-size", m=2000, n=1500, entries=30000, gamma=0.1)
def sparse_large(rng, m, n, entries, gamma):
    X = scattered(rng, m, n, entries)
    y = label(rng, X)
    return X, y, floor(y), gamma


@add("float32", "float32")
def float32(rng):
    X = draws(rng, 40, 10).astype(np.float32) / np.float32(3)
    y = draws(rng, 40).astype(np.float32)
    return X, y, floor(y), 0.5, {"fit_intercept": True}


@add("float32-csr", "float32", "sparse")
def float32_sparse(rng):
    X = (scattered(rng, 40, 12, 100) / 3.0).astype(np.float32)
    y = draws(rng, 40)
    return X, y, y + 0.5, 0.5


@add("fortran-order", "layout")
def fortran_order(rng):
    X = np.asfortranarray(draws(rng, 36, 9))
    y = label(rng, X)
    return X, y, floor(y), 0.5


@add("every-other-row", "layout")
def every_other_row(rng):
    X = draws(rng, 60, 16)[::2, ::-2]
    y = label(rng, X)
    return X, y, y + 1.0, 0.5


# Spectra


@add("condition-1e4", "ill-conditioned", m=30, n=10, bits=13, gamma=64.0)
@add("condition-1e6", "ill-conditioned", m=30, n=10, bits=20, gamma=64.0)
@add("condition-1e8", "ill-conditioned", m=30, n=12, bits=27, gamma=64.0)
@add("condition-1e8-weak", "ill-conditioned", m=30, n=12, bits=27, gamma=1024.0)
@add("condition-1e10", "ill-conditioned", m=30, n=12, bits=33, gamma=64.0)
@add("condition-1e6-wide", "ill-conditioned", "wide", m=10, n=25, bits=20, gamma=4.0)
@add("condition-1e6-square", "ill-conditioned", "square", m=14, n=14, bits=20, gamma=4.0)
def ill_conditioned(rng, m, n, bits, gamma):
    """Labels mostly in the range of large singular values, so that the multiplier can be small."""
    k = min(m, n)
    X = 8.0 * with_spectrum(rng, m, n, 2.0 ** -np.rint(np.linspace(0, bits, k)))
    y = product(X, draws(rng, n, 1))[:, 0] + draws(rng, m) / 64.0
    return X, y, y + 0.25 * draws(rng, m), gamma


@add("many-scales", "ill-conditioned", "mid-size")
def many_scales(rng):
    """Every iteration of a Krylov method finds one more scale."""
    X = draws(rng, 100, 48) * 2.0 ** -np.rint(np.linspace(0, 16, 48))
    y = X @ (draws(rng, 48) * 16.0) + draws(rng, 100) / 16.0
    return X, y, y + draws(rng, 100), 2.0**18


@add("differences", "ill-conditioned", "sparse", "mid-size")
def differences(rng):
    """Second differences with fixed ends: a spectrum that Krylov methods resolve slowly."""
    X = sp.csr_array(sp.diags([1.0, -2.0, 1.0], [-1, 0, 1], shape=(60, 60)))
    y = X @ draws(rng, 60) + draws(rng, 60) / 16.0
    return X, y, y + draws(rng, 60) / 4.0, 128.0


@add("rank-deficient", "rank deficient", gamma=0.5)
@add("rank-deficient-hard", "rank deficient", "hard case", gamma=4096.0)
def rank_deficient(rng, gamma):
    """The goals lie outside the range: with a weak provider a null vector has to fill the norm."""
    X = whole(rng, 30, 6) @ whole(rng, 6, 10)
    y = X @ draws(rng, 10) + draws(rng, 30)
    z = 0.5 * y + 4.0 * draws(rng, 30)
    return X, y, z + y, gamma


@add("duplicate-columns", "rank deficient")
def duplicate_columns(rng):
    X = draws(rng, 30, 6)
    X = np.c_[X, X[:, :3], -2.0 * X[:, 3:4]]
    y = label(rng, X)
    return X, y, floor(y), 0.5, {"fit_intercept": True}


@add("zero-column", "rank deficient")
def zero_column(rng):
    X = draws(rng, 30, 7)
    X[:, 3] = 0.0
    y = label(rng, X)
    return X, y, floor(y), 0.5


@add("repeated-singular-values", "spectrum")
def repeated(rng):
    X = hadamard(32)[:, :12] / 4.0
    X[:, 8:] *= 4.0
    y = label(rng, X)
    return X, y, floor(y), 2.0


@add("clustered-spectrum", "spectrum")
def clustered(rng):
    near = 1.0 + np.arange(8) * 2.0**-30
    X = with_spectrum(rng, 40, 24, np.r_[near, near / 16.0, near / 1024.0] * 8.0)
    y = product(X, draws(rng, 24, 1))[:, 0] + draws(rng, 40) / 16.0
    return X, y, y + draws(rng, 40), 16.0


@add("column-scales", "scales")
def column_scales(rng):
    scale = 2.0 ** np.rint(np.linspace(-10, 10, 9))
    X = draws(rng, 40, 9) * scale
    y = X @ (draws(rng, 9) / scale) + 0.5 * draws(rng, 40)
    return X, y, floor(y), 4.0, {"fit_intercept": True}


@add("means-far-from-zero", "scales", "intercept")
def far_means(rng):
    X = draws(rng, 40, 6) + 2.0 ** np.arange(8, 14)
    y = (X - 2.0 ** np.arange(8, 14)) @ draws(rng, 6) + draws(rng, 40) + 512.0
    return X, y, floor(y), 0.5, {"fit_intercept": True}


# Multipliers and hard cases


@add("hard-wide", "hard case", "wide", gamma=256.0)
@add("hard-wide-60", "hard case", "wide", "mid-size", m=60, n=150, gamma=64.0)
@add("nearly-hard-wide", "nearly hard", "wide", seed=6, gamma=0.79238993)
@add("barely-hard-wide", "nearly hard", "hard case", "wide", seed=6, gamma=0.79239151)
def weak_provider(rng, gamma, m=8, n=20):
    """More columns than rows and small labels: every label is met exactly.

    For seed 6 that begins at gamma = 0.7923907, a part in a million from the last two.
    """
    X = draws(rng, m, n)
    y = draws(rng, m)
    return X, y, y + 1.0 + draws(rng, m), gamma


@add("hard-constant-goal", "hard case", "constant goal", "intercept")
def hard_constant_goal(rng):
    X = draws(rng, 30, 5)
    y = label(rng, X)
    return X, y, np.full(30, 3.0), 512.0, {"fit_intercept": True}


@add("hard-isolated-column", "hard case", "negative multiplier", seed=3, nudge=0.0)
@add("nearly-hard-isolated-column", "nearly hard", "negative multiplier", seed=3, nudge=2.0**-24)
def isolated_column(rng, nudge):
    """The lowest singular direction is orthogonal to labels and goals, or nearly so."""
    X = np.zeros((32, 6))
    X[:28, :5] = draws(rng, 28, 5)
    X[28:, 5] = 0.5
    y = np.r_[draws(rng, 28), np.full(4, nudge)]
    z = np.r_[y[:28] + draws(rng, 28), np.zeros(4)]
    return X, y, z, 8.0


@add("negative-weak", "negative multiplier", gamma=64.0)
@add("negative-weak-intercept", "negative multiplier", "intercept", gamma=64.0, fit_intercept=True)
def negative(rng, gamma, **options):
    """Goals that carry half of the label, and a provider too weak to matter."""
    X = draws(rng, 40, 6)
    z = draws(rng, 40) * 2.0
    y = X @ draws(rng, 6) / 4.0 + z / 2.0 + draws(rng, 40) / 4.0
    return X, y, z, gamma, options


@add("negative-sparse", "negative multiplier", "sparse", m=60, n=20, entries=300, gamma=256.0)
@add(
    "negative-sparse-400",
    *("negative multiplier", "sparse", "mid-size"),
    **{"m": 400, "n": 100, "entries": 2500, "gamma": 1024.0},
)
def negative_sparse(rng, m, n, entries, gamma):
    X = scattered(rng, m, n, entries) + sp.csr_array(np.eye(m, n) * 4.0)
    z = draws(rng, m) * 2.0
    y = X @ draws(rng, n) / 8.0 + z / 2.0 + draws(rng, m) / 4.0
    return X, y, z, gamma


@add("negative-costs-weights", "negative multiplier", "costs", "weights")
def negative_options(rng):
    X, y, z, gamma, _ = negative(rng, 64.0)
    options = {
        "feature_cost": 2.0 ** rng.integers(-2, 3, 6),
        "sample_weight": rng.integers(1, 9, 40) / 4.0,
    }
    return X, y, z, gamma, options


@add("goal-in-range", "goal in range", gamma=0.5)
@add("goal-in-range-weak", "goal in range", "hard case", gamma=512.0)
def goal_in_range(rng, gamma):
    X = whole(rng, 24, 6)
    y = X @ draws(rng, 6) + draws(rng, 24)
    return X, y, X @ whole(rng, 6), gamma


# Strengths and pulls


@add("gamma-1e-6", "extreme gamma", gamma=1e-6)
@add("gamma-1e6", "extreme gamma", gamma=1e6)
@add("gamma-1e-6-intercept", "extreme gamma", "intercept", gamma=1e-6, fit_intercept=True)
def extreme_gamma(rng, gamma, **options):
    X = draws(rng, 40, 8)
    y = label(rng, X)
    return X, y, floor(y), gamma, options


@add("alpha-1e-8", "tiny alpha")
def tiny_alpha(rng):
    """Goals opposite to labels that the columns hardly explain: no reason to react."""
    X = draws(rng, 40, 6)
    y = draws(rng, 40) / 2.0**11
    return X, y, -y, 1.0


@add("alpha-1e5", "huge alpha", noise=2.0**-8)
@add("alpha-1e7", "huge alpha", noise=2.0**-11)
def huge_alpha(rng, noise):
    """Goals that nearly reveal the labels."""
    X = draws(rng, 40, 6)
    y = label(rng, X)
    return X, y, y + noise * draws(rng, 40), 1.0


@add("unattained-same", "unattained", m=30, n=6)
@add("unattained-shift", "unattained", "intercept", m=30, n=6, shift=1.0, fit_intercept=True)
def unattained(rng, m, n, shift=0.0, **options):
    X = draws(rng, m, n)
    y = label(rng, X)
    return X, y, y + shift, 0.5, options


# Goals, costs, weights


@add("constant-goal", "constant goal")
@add("constant-goal-intercept", "constant goal", "intercept", fit_intercept=True)
def constant_goal(rng, **options):
    X = draws(rng, 30, 5)
    y = label(rng, X)
    return X, y, np.full(30, 2.0), 0.5, options


@add("intercept", "intercept")
def intercept(rng):
    X = draws(rng, 40, 8) + 1.0
    y = label(rng, X) + 3.0
    return X, y, floor(y), 0.5, {"fit_intercept": True}


@add("costs", "costs", infinite=0)
@add("immutable", "costs", "immutable", infinite=3)
@add("immutable-wide", "costs", "immutable", "wide", infinite=3, m=10, n=24)
@add("nothing-to-change", "immutable", "no game", infinite=8)
def costs(rng, infinite, m=40, n=8):
    X = draws(rng, m, n)
    y = label(rng, X)
    cost = 2.0 ** rng.integers(-3, 4, n)
    cost[:infinite] = np.inf
    return X, y, floor(y), 0.5, {"feature_cost": cost}


@add("weights", "weights")
def weights(rng):
    X = draws(rng, 40, 8)
    y = label(rng, X)
    return X, y, floor(y), 0.5, {"sample_weight": rng.integers(0, 5, 40) / 2.0}


@add("everything-at-once", "costs", "immutable", "weights", "intercept", "sparse")
def everything(rng):
    X = scattered(rng, 40, 14, 250)
    y = label(rng, X) + 2.0
    cost = 2.0 ** rng.integers(-3, 4, 14)
    cost[[2, 7]] = np.inf
    weight = rng.integers(0, 5, 40) / 2.0
    options = {"fit_intercept": True, "feature_cost": cost, "sample_weight": weight}
    return X, y, floor(y), 0.5, options


# Real data, by the protocol of the 2022 paper: a column of ones that providers can change


def scaled_with_ones(columns: list[np.ndarray]) -> np.ndarray:
    X = np.column_stack(columns)
    X = (X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0))
    return np.c_[X, np.ones(len(X))]


def wine(rng, folder: Path, goal: float):
    with (folder / "winequality-red.csv").open(newline="") as file:
        rows = list(csv.reader(file, delimiter=";"))[1:]
    table = np.array(rows, dtype=float)
    y = table[:, -1]
    return scaled_with_ones(list(table[:, :-1].T)), y, np.maximum(y, goal), 0.1


def insurance(rng, folder: Path, discount: float):
    with (folder / "insurance.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    columns = [np.array([float(row[key]) for row in rows]) for key in ("age", "bmi", "children")]
    for key in ("sex", "smoker", "region"):
        kinds = sorted({row[key] for row in rows})
        columns += [np.array([float(row[key] == kind) for row in rows]) for kind in kinds]
    charges = np.array([float(row["charges"]) for row in rows])
    z = np.maximum(charges - discount, 0.0) / 100.0
    return scaled_with_ones(columns), charges / 100.0, z, 0.1


REAL = {
    "wine-modest": partial(wine, goal=6.0),
    "wine-severe": partial(wine, goal=7.0),
    "insurance-modest": partial(insurance, discount=100.0),
    "insurance-severe": partial(insurance, discount=300.0),
}
if os.environ.get("SPGLS_DATA"):
    for name, builder in REAL.items():
        add(name, "real data")(partial(builder, folder=Path(os.environ["SPGLS_DATA"])))


def main() -> None:
    parser = argparse.ArgumentParser(description="Derive the answers of the catalogue.")
    parser.add_argument("--write", action="store_true", help="store them, for tests to compare")
    parser.add_argument("names", nargs="*", help="problems to derive; all of them by default")
    arguments = parser.parse_args()
    # Answers to real data stay, also where the folder that holds it is not set.
    answers = {n: answer for n, answer in stored().items() if n in CATALOGUE or n in REAL}
    for name in arguments.names or CATALOGUE:
        start = time.perf_counter()
        answers[name] = answer = derive(problem(name))
        seconds = time.perf_counter() - start
        alpha = float(answer.smallest_alpha or "inf")
        print(
            f"{name:28} {answer.how:9} {answer.status:10} sign {answer.sign!s:>4} "
            f"alpha {alpha:9.3g} R2 {1 - float(answer.value) / float(answer.label_spread):.6f} "
            f"{seconds:6.2f} s"
        )
    if arguments.write:
        write({name: answers[name] for name in sorted(answers)})


if __name__ == "__main__":
    main()
