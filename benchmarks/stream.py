"""How fast files larger than memory are solved, against plain reading of the same files.

``python benchmarks/stream.py [--size 6] [--folder FOLDER] [--memory 1.5] [--only npy,parquet,csv]``
makes a .npy file of ``--size`` GB, and a Parquet folder and a CSV file of a third of it, in a
folder of its own, which is deleted in the end. Every measurement is a process of its own, limited
to ``--memory`` GB of data memory if it is ours, and files are dropped from the page cache before
every pass. Reading and solving take turns; medians count. The targets are 0.7 of the speed of a
plain sequential read (npy) or of pyarrow's own scan (Parquet), for every pass, and a whole solve of
text, with a scratch folder, within 1.5 times one parse by pyarrow.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from harness import environment, machine, require_quiet, save

RESULTS = Path(__file__).parent / "results"
COLUMNS, BLOCK = 100, 16 * 2**20
#: Share of the plain speed that a pass keeps, and times of one parse that a solve of text takes.
TARGET, TEXT_TARGET = 0.7, 1.5
ROWS_A_FILE = 200_000


@dataclass(frozen=True)
class Result:
    """One kind of file: seconds of a plain read, and of each pass of a solve."""

    kind: str
    bytes: int
    memory: float
    plain: float
    passes: list[float]
    total: float
    peak: float
    status: str

    @property
    def ratio(self) -> float:
        """Of text, times of one parse; else the share of the plain speed of the slowest pass."""
        return self.total / self.plain if self.kind == "csv" else self.plain / max(self.passes)

    @property
    def mean_ratio(self) -> float:
        """The same of the mean pass."""
        return self.ratio if self.kind == "csv" else self.plain / float(np.mean(self.passes))

    @property
    def verdict(self) -> str:
        """Whether the goal is met by a certified answer."""
        met = self.ratio <= TEXT_TARGET if self.kind == "csv" else self.ratio >= TARGET
        return "NC" if self.status != "optimal" else "met" if met else "missed"


# Files


def _rows(count: int, seed: int) -> np.ndarray:
    """Features; with labels and goals in the last two columns."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(count, COLUMNS)).round(6)
    rows[:, -2] = rows[:, :5].sum(axis=1) + rng.normal(size=count)
    rows[:, -1] = np.maximum(rows[:, -2], 0.0)
    return rows


def make(kind: str, folder: Path, size: float) -> Path:
    """Write files of so many bytes, about."""
    count = int(size / (8 * COLUMNS)) if kind != "csv" else int(size / (10.0 * COLUMNS))
    if kind == "npy":
        path = folder / "rows.npy"
        out = np.lib.format.open_memmap(path, "w+", np.float64, (count, COLUMNS - 2))
        targets = np.empty((2, count))
        for at in range(0, count, ROWS_A_FILE):
            rows = _rows(min(ROWS_A_FILE, count - at), at)
            out[at : at + len(rows)] = rows[:, :-2]
            targets[:, at : at + len(rows)] = rows[:, -2:].T
        out.flush()
        np.save(folder / "targets.npy", targets)
        return path
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    path = folder / ("rows.csv" if kind == "csv" else "parquet")
    if kind == "parquet":
        path.mkdir()
    writer = None
    for number, at in enumerate(range(0, count, ROWS_A_FILE)):
        rows = _rows(min(ROWS_A_FILE, count - at), at)
        names = [*(f"x{j}" for j in range(COLUMNS - 2)), "y", "z"]
        table = pa.table(dict(zip(names, rows.T, strict=True)))
        if kind == "parquet":
            pa.parquet.write_table(table, path / f"{number:04}.parquet")
        else:
            writer = writer or pa.csv.CSVWriter(path, table.schema)
            writer.write_table(table)
    if writer is not None:
        writer.close()
    return path


def _files(path: Path) -> list[Path]:
    return sorted(path.iterdir()) if path.is_dir() else [path]


def drop(path: Path) -> None:
    """Forget what the system keeps of files in memory."""
    for file in _files(path):
        handle = os.open(file, os.O_RDONLY)
        os.fsync(handle)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(handle)


# What one process measures


def plain(kind: str, path: Path) -> dict[str, Any]:
    """Read the files without looking at them: by the system, or by pyarrow."""
    drop(path)
    if kind != "npy":
        import pyarrow.dataset
    begun = time.perf_counter()
    if kind == "npy":
        room = bytearray(BLOCK)
        with path.open("rb", buffering=0) as file:
            while file.readinto(room):
                pass
    else:
        for _ in pyarrow.dataset.dataset(path, format=kind).to_batches():
            pass
    return {"seconds": time.perf_counter() - begun}


def ours(kind: str, path: Path, memory: float) -> dict[str, Any]:
    """Solve a game on the files in so much data memory."""
    import spgls

    limit = int(memory)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    passes: dict[int, float] = {}
    last = 0

    def note(told: spgls.Reading) -> None:
        nonlocal last
        if told.read != last:
            drop(path)
            last = told.read
        passes[told.read] = told.seconds

    drop(path)
    begun = time.perf_counter()
    if kind == "npy":
        y, z = np.load(path.with_name("targets.npy"))
        s = spgls.stream(path, progress=note)
    else:
        folder = str(path.parent) if kind == "csv" else None
        s = spgls.stream(path, y="y", z="z", progress=note, scratch=folder)
        y, z = s.y, s.z
        # Labels and goals are two of a hundred columns.
        if kind == "parquet":
            passes.clear()
    found = spgls.solve(s, y, z, 1.0, fit_intercept=True)
    with open("/proc/self/status") as file:
        peak = next(float(line.split()[1]) for line in file if line.startswith("VmHWM"))
    return {
        "passes": list(passes.values()),
        "total": time.perf_counter() - begun,
        "peak": 1024 * peak,
        "status": found.status.value,
    }


def _ask(*arguments: str) -> dict[str, Any]:
    """The answer of a process of its own."""
    command = [sys.executable, __file__, "--worker", *arguments]
    where = dict(os.environ)
    if arguments[0] == "ours":
        # By itself pyarrow reserves a gigabyte when it is imported, which counts as data memory.
        where["ARROW_DEFAULT_MEMORY_POOL"] = "system"
    run = subprocess.run(command, check=False, capture_output=True, text=True, env=where)
    if run.returncode:
        raise RuntimeError(f"{' '.join(arguments)} failed:\n{run.stderr}")
    return json.loads(run.stdout)


def measure(kind: str, folder: Path, size: float, memory: float, turns: int) -> Result:
    """Make the files, read and solve in turn, and delete them."""
    path = make(kind, folder, size)
    os.sync()
    try:
        answers = []
        for _ in range(turns):
            read = _ask("plain", kind, str(path))
            answers.append((read, _ask("ours", kind, str(path), str(memory))))
        middle = [
            median(times)
            for times in zip(*(answer["passes"] for _, answer in answers), strict=True)
        ]
        return Result(
            kind,
            sum(file.stat().st_size for file in _files(path)),
            memory,
            median(read["seconds"] for read, _ in answers),
            middle,
            median(answer["total"] for _, answer in answers),
            max(answer["peak"] for _, answer in answers),
            answers[-1][1]["status"],
        )
    finally:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def page(results: list[Result], about: dict[str, Any], note: str | None) -> str:
    """The results as a page."""
    lines = [
        "# Files larger than memory",
        "",
        machine(about),
        *([] if note is None else ["", f"Not a quiet machine: {note}"]),
        "",
        f"{COLUMNS} columns. Files are dropped from the page cache before every pass, and our "
        "process is limited in its data memory. Plain: a sequential read (npy), pyarrow's own scan "
        "of the dataset with its defaults (Parquet, CSV). The share is that of the plain "
        "speed, of the mean pass and of the slowest, which decides; of CSV, a whole solve with a "
        "scratch folder over one parse.",
        "",
        "| file | GB | limit, GB | peak, GB | plain, s | passes, s | solve, s | share | least | |",
        "| --- | ---: | ---: | ---: | ---: | --- | ---: | ---: | ---: | --- |",
    ]
    for one in results:
        passes = ", ".join(f"{seconds:.2f}" for seconds in one.passes)
        lines.append(
            f"| {one.kind} | {one.bytes / 1e9:.2f} | {one.memory / 1e9:.2f} | "
            f"{one.peak / 1e9:.2f} | {one.plain:.2f} | {passes} | {one.total:.2f} | "
            f"{one.mean_ratio:.2f} | {one.ratio:.2f} | {one.verdict} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=float, default=6.0, help="GB of the .npy file")
    parser.add_argument("--memory", type=float, default=1.5, help="GB of data memory for us")
    parser.add_argument("--turns", type=int, default=3, help="reads and solves in turn")
    parser.add_argument("--only", default="npy,parquet,csv", help="kinds of files")
    parser.add_argument("--folder", type=Path, help="where files are made; needs --size GB of room")
    parser.add_argument("--force", action="store_true", help="measure beside other work")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the results")
    options = parser.parse_args()
    note = require_quiet(force=options.force)
    folder = Path(tempfile.mkdtemp(dir=options.folder, prefix="spgls-stream-"))
    results = []
    try:
        for kind in options.only.split(","):
            size = options.size * 1e9 / (1.0 if kind == "npy" else 3.0)
            found = measure(kind, folder, size, options.memory * 1e9, options.turns)
            results.append(found)
            print(
                f"{kind:<8} {found.bytes / 1e9:.2f} GB, plain {found.plain:.2f} s, passes "
                f"{[round(one, 2) for one in found.passes]} s, share {found.mean_ratio:.2f} "
                f"(slowest {found.ratio:.2f}), peak {found.peak / 1e9:.2f} GB, {found.verdict}",
                flush=True,
            )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    about = environment("pyarrow")
    path = save(results, page(results, about, note), about, options.out, "stream")
    print(f"Written: {path} and {path.with_suffix('.json').name}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        what, kind, path, *more = sys.argv[2:]
        answer = (
            plain(kind, Path(path)) if what == "plain" else ours(kind, Path(path), float(*more))
        )
        print(json.dumps(answer))
    else:
        main()
