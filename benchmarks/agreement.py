"""Write docs/agreement.md: every solver on every problem of the test catalogue and on real data.

``python benchmarks/agreement.py [--out FILE]``, or ``make agreement``. Set SPGLS_DATA to the folder
with the data for red wine, insurance and building too.
"""

from __future__ import annotations

import argparse
import platform
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
# Real data is read by the tests, which are no installed package: the imports below need this.
sys.path.insert(0, str(ROOT))

from tests import real_games  # noqa: E402

import spgls  # noqa: E402
from spgls.datasets import catalogue, load_problem  # noqa: E402
from spgls.reduction.data import GameData  # noqa: E402
from spgls.solvers import Status, available_solvers  # noqa: E402

TOL = 1e-9
PACKAGES = ("spgls", "numpy", "scipy", "clarabel", "scs")


class Row(NamedTuple):
    """One game by every solver; ``unit`` is |Py|^2."""

    name: str
    shape: tuple[int, int]
    unit: float
    comparison: spgls.Comparison


def games() -> Iterator[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    """Names, data and options."""
    for name in catalogue():
        game = load_problem(name)
        yield name, (game.X, game.y, game.z, game.gamma), game.options
    for name, game in real_games.games().items():
        yield name, game, {}


def row(name: str, game: tuple[Any, ...], options: dict[str, Any]) -> Row:
    comparison = spgls.compare_solvers(*game, **options, tol=TOL)
    targets, _ = GameData.from_user(*game[:3], **options).projected_targets
    return Row(name, game[0].shape, float(targets[:, 0] @ targets[:, 0]), comparison)


def difference(row: Row, solution: spgls.Solution) -> float:
    """Objective above the best lower bound that anyone proved, in units of R2."""
    return max(0.0, solution.objective - row.comparison.lower_bound) / row.unit


def number(value: float) -> str:
    return "0" if value == 0.0 else f"{value:.0e}".replace("e-0", "e-").replace("e+00", "")


def cell(row: Row, name: str) -> str:
    solution = row.comparison[name].solution
    if solution is None:
        return "refused"
    proof = solution.certificate
    mark = "" if proof.kind == "proved" else "~"
    text = f"{number(difference(row, solution))} / {mark}{number(proof.relative_gap)}"
    said = "" if solution.status.ok else f" {solution.status.value}"
    return text + said


def solved(solution: spgls.Solution | None) -> bool:
    """Whether a solver certified an optimum, or saw that there is none."""
    return solution is not None and (solution.status.ok or solution.status is Status.UNATTAINED)


def summary(rows: list[Row], name: str) -> list[str]:
    """Problems solved, not solved, refused, proved; worst difference where solved; seconds."""
    solutions = [(row, row.comparison[name].solution) for row in rows]
    found = [(row, solution) for row, solution in solutions if solution is not None]
    good = [(row, solution) for row, solution in found if solved(solution)]
    worst = max((difference(*pair) for pair in good), default=0.0)
    proved = sum(solution.certificate.kind == "proved" for _, solution in found)
    seconds = sum(solution.stats.seconds for _, solution in found)
    return [
        f"`{name}`",
        str(len(good)),
        str(len(found) - len(good)),
        str(len(rows) - len(found)),
        str(proved),
        number(worst),
        f"{seconds:.2g}",
    ]


def table(rows: list[Row], names: list[str]) -> list[str]:
    """Games by solvers."""
    return [
        "| problem | $m$ | $n$ | " + " | ".join(f"`{name}`" for name in names) + " |",
        "| --- | ---: | ---: |" + " --- |" * len(names),
        *(
            f"| {row.name} | {row.shape[0]} | {row.shape[1]} | "
            + " | ".join(cell(row, name) for name in names)
            + " |"
            for row in rows
        ),
    ]


def failures(rows: list[Row], name: str) -> list[str]:
    """Problems that a solver did not solve, or refused."""
    lines = []
    for row in rows:
        solution = row.comparison[name].solution
        if solution is None:
            lines.append(f"| `{name}` | {row.name} | refused | | |")
        elif not solved(solution):
            far, gap = number(difference(row, solution)), number(solution.certificate.relative_gap)
            lines.append(f"| `{name}` | {row.name} | {solution.status.value} | {far} | {gap} |")
    return lines


def page(rows: list[Row]) -> str:
    names = [capabilities.name for capabilities in available_solvers()]
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    lines = [
        "# Agreement of the solvers",
        "",
        f"Every solver was given the same {len(rows)} problems: those of the "
        "[catalogue](datasets.md#games-with-known-answers), each hard for a reason, and the small "
        "real sets of Wang et al. 2022. The tolerance was "
        f"`tol={TOL:g}`. [How each solver works](solver_methods.md) explains the names.",
        "",
        "## Summary",
        "",
        "| solver | solved | not solved | refused | proved | largest difference | seconds |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    lines += ["| " + " | ".join(summary(rows, name)) + " |" for name in names]
    lines += [
        "",
        "- *Solved*: the answer is certified to the tolerance, or the solver saw that no predictor "
        "is best. *Not solved*: the status says that the proof is missing. *Refused*: the problem "
        "is too large for the method.",
        "- *Proved*: the certificate rests on no estimate.",
        "- *Difference*: objective less the best lower bound that any solver proved, in units of "
        "R2. It includes how far that bound is below the optimum. The table has the largest one "
        "over the problems that the solver solved.",
        "- `bisection` stops once its interval is 1e-4 of the first one, so some of its "
        "certificates stay above the tolerance; its predictors are far better than that.",
        "",
        "## What was not solved",
        "",
        "Difference and certified gap are in units of R2. [The status](solvers.md"
        "#what-the-status-says) says what is missing.",
        "",
        "| solver | problem | status | difference | certified gap |",
        "| --- | --- | --- | ---: | ---: |",
    ]
    lines += [line for name in names for line in failures(rows, name)]
    refused = {
        trial.solver: trial.reason for row in rows for trial in row.comparison if trial.reason
    }
    if refused:
        lines += ["", "What a solver says when it refuses:", ""]
        lines += [f"- `{name}`: {reason}" for name, reason in refused.items()]
    lines += [
        "",
        "## All problems",
        "",
        ":::{dropdown} Table: all problems by all solvers",
        "Each cell is the difference and the certified gap. `~` marks a gap that was estimated. A "
        "status is named if the answer is not a certified optimum. $m$ and $n$ are rows and "
        "features.",
        "",
        *table(rows, names),
        ":::",
        "",
        "## How it was made",
        "",
        "`make agreement` writes this page, by {py:func}`spgls.compare_solvers`. "
        f"{datetime.now(UTC):%Y-%m-%d}, Python {platform.python_version()}, {packages}.",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "agreement.md")
    options = parser.parse_args()
    rows = []
    for name, game, settings in games():
        rows.append(row(name, game, settings))
        print(f"{name}", flush=True)
    if not real_games.FOLDER:
        print("SPGLS_DATA is not set: without red wine, insurance and building.")
    options.out.write_text(page(rows))
    print(f"Written: {options.out}")


if __name__ == "__main__":
    main()
