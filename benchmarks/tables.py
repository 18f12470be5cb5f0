"""A large text table: how long the command line takes to read it, against its reader alone.

``python benchmarks/tables.py [--size 2.0] [--folder FOLDER] [--force]`` writes
``results/tables.md``. Both sides parse the same file with pyarrow, in processes of their own that
take turns. The target is 1.5 times the time of the parse, and 2 GB of memory beyond the numbers.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from harness import environment, machine, require_quiet, save

RESULTS = Path(__file__).parent / "results"
COLUMNS = 50
#: Most seconds over those of the parse, and bytes beyond the numbers.
TIME, MEMORY = 1.5, 2e9

PARSE = """
import json, sys, time
from pyarrow import csv
start = time.perf_counter()
rows = sum(batch.num_rows for batch in csv.open_csv(sys.argv[1]))
print(json.dumps({"seconds": time.perf_counter() - start, "rows": rows}))
"""
READ = """
import json, resource, sys, time
from pathlib import Path
import pyarrow.csv
from spgls.cli.delimited import Wanted
from spgls.cli.read_table import read_table
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.perf_counter()
table = read_table(Path(sys.argv[1]), Wanted(aside=("y",)))
seconds = time.perf_counter() - start
peak = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
numbers = 8 * table.rows * (len(table.names) + 1)
print(json.dumps({"seconds": seconds, "rows": table.rows, "beyond": peak - numbers}))
"""


@dataclass(frozen=True)
class Result:
    """What was measured; seconds are medians."""

    gigabytes: float
    rows: int
    turns: int
    ours: float
    parse: float
    ratio: float
    beyond: float

    @property
    def verdict(self) -> str:
        """Whether both targets were met."""
        return "met" if self.ratio <= TIME and self.beyond <= MEMORY else "MISSED"


def write(path: Path, size: float) -> None:
    """A table of numbers with six digits, of so many GB."""
    rng = np.random.default_rng(0)
    names = [f"x{at}" for at in range(COLUMNS - 1)] + ["y"]
    block = "\n".join(
        ",".join(f"{number:.6g}" for number in row)
        for row in rng.normal(size=(20_000, COLUMNS)).tolist()
    )
    with path.open("w") as file:
        file.write(",".join(names) + "\n")
        while file.tell() < 1e9 * size:
            file.write(block + "\n")


def run(program: str, path: Path) -> dict[str, Any]:
    """What a program, in a process of its own, says of a file."""
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--size", type=float, default=2.0, help="GB of the file")
    parser.add_argument("--turns", type=int, default=5, help="reads of each side")
    parser.add_argument("--folder", type=Path, help="where the file is made")
    parser.add_argument("--force", action="store_true", help="measure beside other work")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the results")
    options = parser.parse_args()
    note = require_quiet(force=options.force)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = Path(folder) / "table.csv"
        write(path, options.size)
        run(PARSE, path)
        taken = [(run(READ, path), run(PARSE, path)) for _ in range(options.turns)]
        size = path.stat().st_size / 1e9
    result = Result(
        size,
        taken[0][0]["rows"],
        options.turns,
        median(a["seconds"] for a, _ in taken),
        median(b["seconds"] for _, b in taken),
        median(a["seconds"] / b["seconds"] for a, b in taken),
        max(a["beyond"] for a, _ in taken),
    )
    about = environment("pyarrow")
    lines = ["# Large tables", "", machine(about), ""]
    lines += [f"Not a quiet machine: {note}", ""] if note else []
    lines += [
        f"A text table of {COLUMNS} columns, in the page cache. Ours: what `spgls fit` does to "
        "read it into memory. Parse: pyarrow's parser alone, whose batches are let go. In turn, "
        "each in a process of its own. Memory is the peak beyond the numbers themselves.",
        "",
        "| GB | rows | turns | spgls, s | parse, s | ratio | target | beyond, GB | target | |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
        f"| {result.gigabytes:.2f} | {result.rows} | {result.turns} | {result.ours:.2f} "
        f"| {result.parse:.2f} | {result.ratio:.2f} | {TIME:g} | {result.beyond / 1e9:.2f} "
        f"| {MEMORY / 1e9:g} | {result.verdict} |",
    ]
    path = save([result], "\n".join(lines) + "\n", about, options.out, "tables")
    print("\n".join(lines[-3:]))
    print(f"Written: {path} and {path.with_suffix('.json').name}")


if __name__ == "__main__":
    main()
