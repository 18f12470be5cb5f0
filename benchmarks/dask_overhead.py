"""What workers cost: seconds of a pass on tiny chunks, and whole solves against data in memory.

``python benchmarks/dask_overhead.py [--size 1.0] [--only passes,dense,sparse,outside] [--force]``
writes ``results/dask.md``. It starts a LocalCluster of two worker processes with one thread each.
"passes" takes turns with a bare prototype, a few lines of dask.delayed that do the same product.
"dense" and "sparse" solve games on 4 million x 100 numbers, and on 2 million x 50000 with 20
million entries, held by the workers, against the same data in memory on two threads. "outside"
solves a game on a Zarr array of 4 GB, and on as much of Parquet, with workers of 1.5 GB each.
``--size`` is the share of those rows. The targets are 80 ms a pass at 100 columns and 120 ms at
50000, 1.4 and 3 times the time in memory, and an answer outside.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import dask
import dask.array as da
import numpy as np
import scipy.sparse as sp
from distributed import Client, LocalCluster
from harness import environment, machine, require_quiet, save

from spgls import Population, solve
from spgls.matrix import DaskMatrix

RESULTS = Path(__file__).parent / "results"
CHUNKS = 16
#: Files, or chunks of one, of data that workers cannot hold.
PARTS = 64
GAME = {"gamma": Population.mixed(0.5), "fit_intercept": True}


@dataclass(frozen=True)
class Result:
    """One measurement: seconds of ours and of the other side, if any, and what was asked for."""

    name: str
    ours: float
    other: float | None
    target: str
    met: bool
    note: str

    @property
    def verdict(self) -> str:
        """Whether it is what was asked for."""
        return "met" if self.met else "missed"


def cluster(memory: float | str = "auto") -> LocalCluster:
    """Two worker processes."""
    return LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit=memory
    )


def turns(ours: Callable[[], Any], other: Callable[[], Any], count: int) -> tuple[float, float]:
    """Medians of calls in turn, after one of each."""
    taken: tuple[list[float], list[float]] = ([], [])
    ours(), other()
    for _ in range(count):
        for side, call in zip(taken, (ours, other), strict=True):
            start = time.perf_counter()
            call()
            side.append(time.perf_counter() - start)
    return median(taken[0]), median(taken[1])


# One pass on chunks so small that only the way there and back counts


def bare(blocks: list[Any], v: np.ndarray) -> np.ndarray:
    """The same product by dask.delayed, as anybody would write it."""
    sent = dask.delayed(v)
    parts = [dask.delayed(_product)(block, sent) for block in blocks]
    while len(parts) > 1:
        parts = [dask.delayed(sum)(parts[k : k + 8]) for k in range(0, len(parts), 8)]
    (total,) = dask.compute(*parts)
    return np.asarray(total)


def _product(block: np.ndarray, v: np.ndarray) -> np.ndarray:
    return block.T @ (block @ v)


def passes(columns: int, target: float) -> Result:
    """Seconds of one product with two columns."""
    X = da.random.default_rng(0).normal(size=(4 * CHUNKS, columns), chunks=(4, columns))
    with cluster() as workers, Client(workers):
        held = X.persist()
        matrix, blocks = DaskMatrix(held), list(held.to_delayed().ravel())
        v = np.random.default_rng(0).normal(size=(columns, 2))
        np.testing.assert_allclose(matrix.gram(v), bare(blocks, v), rtol=1e-9, atol=1e-9)
        ours, other = turns(lambda: matrix.gram(v), lambda: bare(blocks, v), 30)
    name = f"a pass, {CHUNKS} chunks, {columns} columns"
    return Result(name, ours, other, f"{1e3 * target:.0f} ms", ours <= target, "bare prototype")


# Whole solves


def dense_rows(count: int, number: int) -> np.ndarray:
    """Rows of one chunk, the same whoever makes them."""
    return np.random.default_rng(number).normal(size=(count, 100))


def sparse_rows(count: int, number: int) -> sp.csr_array:
    """Ten entries a row, and 40 rows a column."""
    rng, width = np.random.default_rng(number), max(count * CHUNKS // 40, 1)
    columns = rng.integers(0, width, size=10 * count)
    starts = np.arange(0, 10 * count + 1, 10)
    return sp.csr_array((rng.normal(size=10 * count), columns, starts), shape=(count, width))


def against_memory(kind: str, rows: int, times: float, count: int) -> Result:
    """A solve on workers that hold the data, and one in this process."""
    make = dense_rows if kind == "dense" else sparse_rows
    size = rows // CHUNKS
    whole = [make(size, number) for number in range(CHUNKS)]
    X = np.concatenate(whole) if kind == "dense" else sp.vstack(whole, format="csr")
    columns = X.shape[1]
    del whole
    rng = np.random.default_rng(0)
    y = X @ rng.normal(size=columns) + rng.normal(size=X.shape[0])
    z = np.maximum(y, np.median(y))
    parts = [
        da.from_delayed(dask.delayed(make)(size, number), (size, columns), dtype=np.float64)
        for number in range(CHUNKS)
    ]
    with cluster() as workers, Client(workers):
        matrix = DaskMatrix(da.concatenate(parts)).persist()
        found: dict[str, Any] = {}

        def ours() -> None:
            found["ours"] = solve(matrix, y, z, **GAME)

        def theirs() -> None:
            found["theirs"] = solve(X, y, z, **GAME)

        seconds = turns(ours, theirs, count)
    a, b = found["ours"], found["theirs"]
    assert a.status is b.status, (a, b)
    name = f"{X.shape[0]} x {columns} {kind}"
    note = (
        f"in memory, {a.solver}; coefficients differ by {abs(a.coef - b.coef).max():.1g}; "
        f"{a.stats.passes:g} passes, {b.stats.passes:g} in memory"
    )
    return Result(name, *seconds, f"{times:g} times", seconds[0] <= times * seconds[1], note)


def outside(kind: str, size: float, folder: Path) -> Result:
    """A solve on files of more numbers than the workers can hold together."""
    rows = int(size * 5_000_000) // PARTS
    path = folder / f"rows.{kind}"
    write = {"zarr": write_zarr, "parquet": write_parquet}[kind]
    write(path, rows)
    limit = max(1.5e9 * size, 4e8)
    try:
        with cluster(limit) as workers, Client(workers) as client:
            start = time.perf_counter()
            matrix, y = opened(kind, path)
            found = solve(matrix, y, np.maximum(y, 0.0), **GAME)
            seconds = time.perf_counter() - start
            peak = max(client.run(_peak).values())
    finally:
        shutil.rmtree(path, ignore_errors=True)
    m, n = matrix.shape
    note = f"{found.status.value}, {matrix.passes} passes, a worker takes {peak / 1e9:.2f} GB"
    met = found.status.ok and peak <= limit
    target = f"optimal below {limit / 1e9:.2f} GB"
    name = f"{8e-9 * m * n:.2g} GB of {kind.capitalize()}, read and solved"
    return Result(name, seconds, None, target, met, note)


def opened(kind: str, path: Path) -> tuple[DaskMatrix, np.ndarray]:
    """Rows on the workers, as the documentation says, and labels here."""
    if kind == "zarr":
        X = da.from_zarr(str(path))
        return DaskMatrix(X), X[:, :5].sum(axis=1).compute()
    import dask.dataframe as dd

    frame = dd.read_parquet(str(path))
    y = sum(frame[f"x{k}"] for k in range(5)).compute().to_numpy()
    return DaskMatrix.from_frame(frame), y


def write_zarr(path: Path, rows: int) -> None:
    """An array in chunks of so many rows."""
    import zarr

    shape, chunk = (PARTS * rows, 100), (rows, 100)
    store = zarr.open(str(path), mode="w", shape=shape, chunks=chunk, dtype="f8")
    for number in range(PARTS):
        store[number * rows : (number + 1) * rows] = dense_rows(rows, number)


def write_parquet(path: Path, rows: int) -> None:
    """A folder of files of so many rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path.mkdir()
    for number in range(PARTS):
        values = dense_rows(rows, number)
        table = pa.table({f"x{k}": values[:, k] for k in range(values.shape[1])})
        pq.write_table(table, path / f"part-{number:03}.parquet")


def _peak() -> float:
    """Most memory of a process; ``ru_maxrss`` would count what its parent held when it began."""
    lines = Path("/proc/self/status").read_text().splitlines()
    told = next(line for line in lines if line.startswith("VmHWM"))
    return 1024.0 * float(told.split()[1])


def page(results: list[Result], about: dict[str, Any], note: str) -> str:
    """The results as a table."""
    lines = [
        "# Workers of Dask",
        "",
        machine(about) + (f" {note}" if note else ""),
        "",
        "| what | ours, s | other, s | asked for | | |",
        "| --- | ---: | ---: | --- | --- | --- |",
    ]
    lines += [
        f"| {one.name} | {one.ours:.3g} | {'' if one.other is None else f'{one.other:.3g}'} | "
        f"{one.target} | {one.verdict} | {one.note} |"
        for one in results
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=float, default=1.0, help="share of the rows")
    parser.add_argument("--turns", type=int, default=3, help="solves in turn")
    parser.add_argument("--only", default="passes,dense,sparse,outside", help="what to measure")
    parser.add_argument("--folder", type=Path, help="where files of 4 GB are made")
    parser.add_argument("--force", action="store_true", help="measure beside other work")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the results")
    options = parser.parse_args()
    note = require_quiet(force=options.force)
    only, size = options.only.split(","), options.size
    results: list[Result] = []
    folder = Path(tempfile.mkdtemp(dir=options.folder, prefix="spgls-dask-"))
    todo: list[tuple[str, Callable[[], Result]]] = [
        ("passes", lambda: passes(100, 0.080)),
        ("passes", lambda: passes(50_000, 0.120)),
        ("dense", lambda: against_memory("dense", int(4e6 * size), 1.4, options.turns)),
        ("sparse", lambda: against_memory("sparse", int(2e6 * size), 3.0, options.turns)),
        ("outside", lambda: outside("zarr", size, folder)),
        ("outside", lambda: outside("parquet", size, folder)),
    ]
    try:
        for kind, call in todo:
            if kind in only:
                results.append(call())
                print(results[-1], flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    about = environment("dask", "distributed", "zarr", "pyarrow")
    path = save(results, page(results, about, note), about, options.out, "dask")
    print(f"Written: {path} and {path.with_suffix('.json').name}")


if __name__ == "__main__":
    sys.exit(main())
