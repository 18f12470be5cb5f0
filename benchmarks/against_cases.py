"""What two versions of spgls are measured on, by calls that both of them know.

Only names that ``import spgls`` offers appear here, so that the rooms behind them may change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import games
import numpy as np
from harness import CERTIFIED

import spgls

__all__ = ["Answer", "Task", "read", "tasks"]

GAMMA = 0.1
#: Points of the grid on which "auto" is judged, and how many strengths are asked for at each.
AUTO = (
    ("dense 500 x 20", 1),
    ("dense 500 x 20", 100),
    ("dense 500000 x 20", 1),
    ("dense 5000 x 500", 1),
    ("dense 5000 x 500", 100),
    ("dense 50000 x 500", 1),
    ("dense 4000 x 4000", 100),
    ("dense 500 x 20000", 1),
    ("float32 5000 x 500", 100),
    ("sparse 20000 x 20000, density 0.001", 1),
    ("sparse 20000 x 20000, density 0.001", 100),
    ("sparse 200000 x 2000, density 0.01", 1),
)

#: Builds the data, and returns the labels and what is timed.
Build = Callable[[], tuple[np.ndarray, Callable[[], Any]]]


class Answer(NamedTuple):
    """What the versions have to agree on: objectives over ``|y|^2``, and how they are proved."""

    objectives: list[float]
    gap: float
    proved: int


@dataclass(frozen=True)
class Task:
    """Something to time.

    Attributes
    ----------
    group, name : str
        What it belongs to, and what it is.
    build : callable
        Builds the data, from a seed, and returns the labels and the call to time.
    accuracy : float
        Largest certified relative gap at which a time counts.
    """

    group: str
    name: str
    build: Build
    accuracy: float = CERTIFIED

    @property
    def title(self) -> str:
        return f"{self.group}: {self.name}"


def read(result: Any, y: np.ndarray) -> Answer:
    """The answer in a Solution, a Path, a fitted estimator or a Certificate."""
    if isinstance(result, spgls.Certificate):
        objectives, proofs = [result.lower_bound + result.gap], [result]
    elif hasattr(result, "certificate_"):
        objectives, proofs = [result.objective_], [result.certificate_]
    else:
        solutions = result if isinstance(result, spgls.Path) else [result]
        objectives = [solution.objective for solution in solutions]
        proofs = [solution.certificate for solution in solutions]
    return Answer(
        [float(objective / (y @ y)) for objective in objectives],
        float(max(proof.relative_gap for proof in proofs)),
        sum(proof.kind == "proved" for proof in proofs),
    )


def tasks() -> Iterator[Task]:
    """All of them; those on the blog posts where they can be found."""
    yield from _engine()
    yield from _paths()
    for name, count in AUTO:
        strength = GAMMA if count == 1 else games.STRENGTHS[:: len(games.STRENGTHS) // count]
        yield Task("auto", f"{name}, {count}", _game(games.grid()[name], strength))
    yield from _populations()
    yield from _cross_validation()
    yield from _wine()
    small = partial(games.uniform, 50, 5)
    yield Task("small", "solve 50 x 5", _game(small, GAMMA))
    yield Task("small", "solve 50 x 5, intercept", _game(small, GAMMA, fit_intercept=True))
    yield Task("small", "solve 50 x 5, krylov", _game(small, GAMMA, solver="krylov"))


def _game(make: Callable[[], games.Data], strength: Any, **options: Any) -> Build:
    """One strength or population by ``solve``, several by ``solve_path``."""

    def build() -> tuple[np.ndarray, Callable[[], Any]]:
        data = make()
        call = spgls.solve_path if isinstance(strength, list | np.ndarray) else spgls.solve
        return data[1], lambda: call(*data, strength, **options)

    return build


def _engine() -> Iterator[Task]:
    for m, n in ((4_000, 2_000), (8_000, 4_000)):
        make = partial(games.regression, m, n)
        yield Task("engine", f"dense {m} x {n}", _game(make, GAMMA, solver="krylov"))
    make = partial(games.scattered, 30_000, 30_000, 0.01)
    yield Task("engine", "sparse 30000 x 30000", _game(make, GAMMA, solver="krylov"))
    make = partial(games.weak, 1e-3)
    yield Task("engine", "weak, sparse 5000 x 20000", _game(make, 1e4, solver="krylov"))


def _paths() -> Iterator[Task]:
    for m, n in ((1_000_000, 50), (200_000, 300)):
        build = _game(partial(games.uniform, m, n, noise=1.0), games.STRENGTHS, solver="spectral")
        yield Task("paths", f"tall {m} x {n}", build)
    for name, make in (
        ("dense 8000 x 4000", partial(games.regression, 8_000, 4_000)),
        ("sparse 30000 x 30000", partial(games.scattered, 30_000, 30_000, 0.01)),
    ):
        yield Task("paths", name, _game(make, games.STRENGTHS, solver="krylov"))


def _populations() -> Iterator[Task]:
    half = spgls.Population.mixed(GAMMA)
    four = spgls.Population([np.inf, 0.01, 0.1, 1.0], [0.4, 0.2, 0.2, 0.2])
    tall, large = partial(games.uniform, 5_000, 200), partial(games.regression, 4_000, 2_000)
    sparse = partial(games.scattered, 200_000, 2_000, 0.01)
    many = [spgls.Population.mixed(gamma) for gamma in np.geomspace(1e-2, 1e2, 20)]
    for name, make, population, options in (
        ("spectral, 5000 x 200", tall, half, {"solver": "spectral"}),
        ("spectral, four groups, 5000 x 200", tall, four, {"solver": "spectral"}),
        ("spectral, path of 20, 5000 x 200", tall, many, {"solver": "spectral"}),
        ("spectral, ridge, 5000 x 200", tall, GAMMA, {"solver": "spectral", "ridge": 1.0}),
        ("krylov, 4000 x 2000", large, half, {"solver": "krylov"}),
        ("krylov, four groups, sparse 200000 x 2000", sparse, four, {"solver": "krylov"}),
        ("krylov, ridge, 4000 x 2000", large, GAMMA, {"solver": "krylov", "ridge": 1.0}),
    ):
        yield Task("populations", name, _game(make, population, **options))


def _cross_validation() -> Iterator[Task]:
    def fit(make: Callable[[], Any], goal: Any, **options: Any) -> Build:
        def build() -> tuple[np.ndarray, Callable[[], Any]]:
            # Should it ever need more than both versions have, the other groups still run.
            from cv import case

            X, y = make()
            return y, case("", X, y, goal, **options).ours

        return build

    def posts() -> tuple[np.ndarray, np.ndarray]:
        X, y = games.blog()
        return (X - X.min(axis=0)) / np.maximum(np.ptp(X, axis=0), 1e-300), y

    for m, n in ((5_000, 50), (50_000, 280)):
        yield Task("cv", f"normal {m} x {n}", fit(partial(games.normal, m, n), spgls.Floor(1.0)))
    if games.has_blog():
        goal = spgls.Shift(-5.0, lower=0.0)
        yield Task("cv", "blog, nobody honest", fit(posts, goal, honest=0.0))
        yield Task("cv", "blog, half honest, ridge", fit(posts, goal, ridge=1.0))


def _wine() -> Iterator[Task]:
    """What somebody with a table of 1599 rows does."""
    real = games.red_wine()
    X, y = games.wine_sized() if real is None else real
    data, half = (X, y, np.maximum(y, 6.0)), spgls.Population.mixed(1.0)
    table, options = "normal 1599 x 11" if real is None else "red wine", {"fit_intercept": True}
    one = spgls.StackelbergRegressor(goal=spgls.Floor(6.0))
    many = spgls.StackelbergRegressorCV(goal=spgls.Floor(6.0))

    def check() -> tuple[np.ndarray, Callable[[], Any]]:
        found = spgls.solve(*data, 1.0, **options)
        return y, lambda: spgls.certify(*data, 1.0, found.coef, intercept=found.intercept)

    for name, build in (
        ("solve", _game(lambda: data, 1.0, **options)),
        ("solve, half honest", _game(lambda: data, half, **options)),
        ("solve_path of 50", _game(lambda: data, games.STRENGTHS[::2], **options)),
        ("StackelbergRegressor", lambda: (y, lambda: one.fit(X, y))),
        ("StackelbergRegressorCV", lambda: (y, lambda: many.fit(X, y))),
        ("certify", check),
    ):
        yield Task("wine", f"{table}, {name}", build)
