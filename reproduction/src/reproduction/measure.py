"""What one cell measures: a game is built, a method solves it, and the answer is judged."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from math import isfinite
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from reproduction.cell import Cell, Data, Real, Synthetic, UnavailableError
from reproduction.experiment import SDPS
from spgls import solve

__all__ = ["CURVES", "Array", "Game", "build", "measure"]

#: The method that is none: errors over strengths.
CURVES = "curves"
#: What the labels are divided by, as a share of the largest, in the code of each paper.
UNITS = {
    "2021": {"wine": 0.1, "insurance": 0.03, "building": 0.01, "blog": 0.01},
    "2022": {"building": 0.01},
}
#: Calls are not repeated beyond so many seconds in all, the first of them, which may compile, left
#: out; where that takes longer than ``LONG`` it is the only one.
ENOUGH, LONG = 1.0, 10.0

Array: TypeAlias = NDArray[np.float64]
Outcome: TypeAlias = tuple[str, dict[str, Any]]


class Game(NamedTuple):
    """Rows to fit on, rows to test on, and what labels and goals were divided by."""

    X: Any
    y: Array
    z: Array
    X_test: Any
    y_test: Array
    z_test: Array
    unit: float


def measure(request: dict[str, Any], started: Callable[[], object]) -> Outcome:
    """Measure a cell; the worker calls it."""
    cell = Cell.from_dict(request)
    game = build(cell.data)
    started()
    if cell.method == CURVES:
        from reproduction.curves import error_curves

        begin = perf_counter()
        try:
            values = error_curves(game)
        except ImportError as error:
            raise UnavailableError(CURVES, str(error)) from None
        return "measured", {"seconds": [_short(perf_counter() - begin)], **values}
    return _solve(cell, game)


def _solve(cell: Cell, game: Game) -> Outcome:
    _forget_peak()
    times: list[float] = []
    stages: list[dict[str, float]] = []
    while _goes_on(cell, times):
        begin = perf_counter()
        try:
            found = solve(game.X, game.y, game.z, cell.gamma, solver=cell.method, tol=cell.tol)
        except ImportError as error:
            raise UnavailableError(cell.method, str(error)) from None
        except (ValueError, NotImplementedError) as error:
            return "refused", {"reason": str(error)}
        times.append(perf_counter() - begin)
        stages.append(dict(found.stats.stages))
    peak = _peak_mib()
    proof = found.certificate
    alpha = float(np.max(found.alpha))
    # The call whose time is shown, its stages too.
    shown = sorted(range(len(times))[1:] or [0], key=lambda k: times[k])
    middle = stages[shown[len(shown) // 2]]
    values = {
        # The first call may compile, import, and touch memory for the first time.
        "first": _short(times[0]),
        "seconds": [_short(time) for time in times[1:] or times],
        "stages": {name: _short(time) for name, time in middle.items()},
        "objective": _finite(found.objective),
        "labels": _finite(float(game.y @ game.y)),
        "gap": _short(proof.relative_gap),
        "kind": proof.kind,
        "status": found.status.value,
        "passes": found.stats.passes,
        "iterations": found.stats.iterations,
        "alpha": _short(alpha),
        "shape": list(game.X.shape),
        "entries": int(game.X.size),
        "peak_mib": peak,
    }
    if len(game.y_test):
        attacked = (game.X_test @ found.coef + alpha * game.z_test) / (1.0 + alpha)
        values["test_mse"] = _finite(float(np.mean((attacked - game.y_test) ** 2)))
    return "measured", values


def _goes_on(cell: Cell, times: list[float]) -> bool:
    """Whether to call once more; semidefinite programs have nothing of ours to compile."""
    if not times:
        return True
    only = times[0] > (ENOUGH if cell.method in SDPS else LONG)
    return len(times) <= cell.repeats and not only and sum(times[1:]) < ENOUGH


@lru_cache(maxsize=1)
def build(data: Data) -> Game:
    """Return a game; the last one is kept for the next method."""
    return _synthetic(data) if isinstance(data, Synthetic) else _real(data)


def _synthetic(data: Synthetic) -> Game:
    # Here, as it imports scikit-learn: processes that build no game start three times as fast.
    from spgls import datasets

    code = data.protocol == "code"
    if data.density is None:
        made = datasets.make_dense(data.m, data.n, scale=code, random_state=data.seed)
    else:
        noise = "normal" if code else "uniform"
        made = datasets.make_sparse(
            data.m, data.n, data.density, noise=noise, random_state=data.seed
        )
    nothing = np.empty(0)
    return Game(made.X, made.y, made.z, made.X[:0], nothing, nothing, 1.0)


def _real(data: Real) -> Game:
    loaded = _load(data.source)
    share = UNITS[data.protocol[:4]].get(data.source)
    unit = share * float(np.abs(loaded.y).max()) if share else 1.0
    y, z = loaded.y / unit, loaded.goals[data.protocol][data.attacker](loaded.y) / unit
    train, test = _split(data, len(y))
    X = _features(data.source)
    return Game(X[train], y[train], z[train], X[test], y[test], z[test], unit)


def _split(data: Real, count: int) -> tuple[Any, Any]:
    if data.folds is not None:
        # One order for all folds.
        order = np.random.default_rng(0).permutation(count)
        folds = np.array_split(order, data.folds)
        test = np.sort(folds[data.seed])
        return np.setdiff1d(np.arange(count), test), test
    if data.rows is None:
        return slice(None), slice(0, 0)
    order = np.random.default_rng(data.seed).permutation(count)
    return order[: data.rows], order[data.rows :]


@lru_cache(maxsize=4)
def _load(source: str) -> Any:
    from spgls import datasets

    loaders = {
        "wine": datasets.load_wine_quality,
        "insurance": datasets.load_insurance,
        "building": datasets.load_residential_building,
        "blog": datasets.load_blog_feedback,
    }
    keywords = {} if source == "insurance" else {"progress": False}
    try:
        return loaders[source](**keywords)
    except (ImportError, OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UnavailableError(source, reason) from None


@lru_cache(maxsize=4)
def _features(source: str) -> Any:
    """All rows scaled to [0, 1], and the authors' column of ones, which providers can change."""
    X = _load(source).X
    low, span = X.min(axis=0), np.ptp(X, axis=0)
    return np.column_stack([(X - low) / np.where(span > 0.0, span, 1.0), np.ones(len(X))])


def _forget_peak() -> None:
    """Start the system's count of the largest memory anew, where it lets one."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _peak_mib() -> int | None:
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) // 1024
    except OSError:
        pass
    return None


def _short(value: float) -> float | None:
    """Four digits: more would be noise."""
    return float(f"{value:.4g}") if isfinite(value) else None


def _finite(value: float) -> float | None:
    return float(value) if isfinite(value) else None
