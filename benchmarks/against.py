"""One version of spgls against another: two live processes in turn, on a quiet machine.

``make bench-against BEFORE=REV``, or ``python benchmarks/against.py --before REV_OR_FOLDER [--after
REV_OR_FOLDER] [--quick] [--only WORD ...] [--threads N ...] [--force] [--out FOLDER]``. Each
process imports one version, builds the same data and is warm before it is timed; a ratio counts
only where both give the same objectives, certified alike. It refuses to run beside other work.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from against_cases import Task, tasks
from against_worker import Failed, Worker
from harness import NotQuiet, environment, machine, ratio_cell, require_quiet, save
from quiet import Snapshot, load
from versions import ROOT, find_version

RESULTS = Path(__file__).parent / "results"
#: Largest ratio of a case, and largest geometric mean of a group, that meet the goal.
LIMIT, MEAN_LIMIT = 1.2, 1.05
#: Largest difference of two objectives that count as the same, over ``|y|^2``.
SAME = 1e-9
#: Turns of each version; quick, enough to see that everything runs.
ROUNDS, QUICK_ROUNDS = 7, 3
#: Seconds of timed calls that a turn is to take, and fewest and most calls for that.
TURN, FEWEST, MOST = 0.3, 2, 200


@dataclass(frozen=True)
class Row:
    """What one case gave, times in seconds; ``others`` are the cores that others used meanwhile."""

    group: str
    name: str
    threads: int
    rounds: int
    calls: int
    before: float | None
    after: float | None
    ratio: float | None
    ratio_quartiles: tuple[float, float] | None
    reason: str | None
    gaps: tuple[float, float] | None
    difference: float | None
    others: float | None
    limit: float = LIMIT

    @property
    def verdict(self) -> str:
        """Whether the limit was kept; NC and why where the answers do not count."""
        if self.ratio is None:
            return f"NC: {self.reason}"
        return "met" if self.ratio <= self.limit else "MISSED"


@dataclass(frozen=True)
class Mean:
    """Geometric mean of the ratios of a group."""

    group: str
    cases: int
    not_compared: int
    ratio: float | None
    limit: float = MEAN_LIMIT

    @property
    def verdict(self) -> str:
        """Whether the limit was kept by the cases that count."""
        if self.ratio is None:
            return "NC"
        return "met" if self.ratio <= self.limit else "MISSED"


def summarise(rows: Sequence[Row]) -> list[Mean]:
    """Means by group, then of everything."""
    groups = list(dict.fromkeys(row.group for row in rows))
    return [
        *(_mean(group, [row for row in rows if row.group == group]) for group in groups),
        _mean("all", rows),
    ]


def _mean(group: str, rows: Sequence[Row]) -> Mean:
    ratios = [row.ratio for row in rows if row.ratio is not None]
    mean = float(np.exp(np.mean(np.log(ratios)))) if ratios else None
    return Mean(group, len(rows), len(rows) - len(ratios), mean)


def objection(turns: Sequence[tuple[dict, dict]], accuracy: float) -> str | None:
    """Why the answers of two versions do not count; None where they do."""
    for before, after in turns:
        for name, turn in (("before", before), ("after", after)):
            if not turn["gap"] <= accuracy:
                return f"gap {turn['gap']:.1e} {name}"
        if before["proved"] != after["proved"]:
            return f"{before['proved']} answers proved before, {after['proved']} after"
        if not difference(before, after) <= SAME:
            return f"objectives differ by {difference(before, after):.1e}"
    return None


def difference(before: dict, after: dict) -> float:
    """Largest difference of objectives, over ``|y|^2``; infinite where one has more of them."""
    one, other = np.array(before["objectives"]), np.array(after["objectives"])
    return float(np.abs(one - other).max()) if one.shape == other.shape else np.inf


def alternate(pair: tuple[Any, Any], rounds: int, calls: int) -> Iterator[tuple[dict, dict]]:
    """Turns of the two versions, A B A B."""
    before, after = pair
    for _ in range(rounds):
        yield before.turn(calls), after.turn(calls)


def measure(task: Task, pair: tuple[Any, Any], threads: int, rounds: int) -> Row:
    """Build, alternate, compare the answers, let go."""
    start, calls = Snapshot.take(), 0
    try:
        slowest = max([worker.build(task.title) for worker in pair])
        calls = int(np.clip(round(TURN / slowest), FEWEST, MOST))
        turns = list(alternate(pair, rounds, calls))
        reason = objection(turns, task.accuracy)
    except Failed as failure:
        turns, reason = [], str(failure)
    for worker in pair:
        worker.drop()
    others = _others(start, [worker.pid for worker in pair])
    if not turns:
        nothing = (None,) * 4
        return Row(task.group, task.name, threads, 0, calls, *nothing, reason, None, None, others)
    seconds = np.array([[turn["seconds"] for turn in both] for both in turns])
    ratios = seconds[:, 1] / seconds[:, 0]
    low, high = np.quantile(ratios, [0.25, 0.75])
    return Row(
        group=task.group,
        name=task.name,
        threads=threads,
        rounds=rounds,
        calls=calls,
        before=float(np.median(seconds[:, 0])),
        after=float(np.median(seconds[:, 1])),
        ratio=float(np.median(ratios)) if reason is None else None,
        ratio_quartiles=(float(low), float(high)) if reason is None else None,
        reason=reason,
        gaps=tuple(max(both[side]["gap"] for both in turns) for side in (0, 1)),
        difference=max(difference(*both) for both in turns),
        others=others,
    )


def _others(start: Snapshot | None, workers: list[int]) -> float | None:
    end = Snapshot.take()
    if start is None or end is None:
        return None
    return load(start, end, ours=[os.getpid(), *workers]).cores


def run(
    chosen: Iterable[Task], pair: tuple[Any, Any], threads: int, rounds: int, quiet: Any
) -> Iterator[Row]:
    """Measure one case after the other, each after a look at what else runs."""
    for task in chosen:
        quiet()
        yield measure(task, pair, threads, rounds)


@contextmanager
def workers(sources: tuple[Path, Path], threads: int) -> Iterator[tuple[Worker, Worker]]:
    """Two live processes, ended afterwards."""
    with ExitStack() as stack:
        pair = []
        for name, source in zip(("before", "after"), sources, strict=True):
            pair.append(Worker(name, source, threads))
            stack.callback(pair[-1].close)
        yield tuple(pair)


def page(rows: Sequence[Row], means: Sequence[Mean], about: dict[str, Any]) -> str:
    """Return the results as a page."""
    lines = [
        "# Before and after",
        "",
        machine(about),
        "",
        f"Before: {about['before']}. After: {about['after']}. {about['quiet']}",
        "",
        "Times in milliseconds, medians over the rounds; each version in a process of its own, the "
        "two in turn, on equally many threads, first calls not counted. The ratio, after over "
        "before, is the median of the rounds' ratios (quartiles in brackets). NC: the objectives "
        f"differ by more than {SAME:g} `|y|^2`, or the two are not certified alike. Others: cores "
        "in use by other processes during the case.",
        "",
        "| case | threads | rounds | calls | before | after | ratio | limit | | others |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- | ---: |",
    ]
    lines += [
        f"| {r.group}: {r.name} | {r.threads} | {r.rounds} | {r.calls} | {_ms(r.before)} "
        f"| {_ms(r.after)} | {ratio_cell(r.ratio, r.ratio_quartiles)} | {r.limit:g} "
        f"| {r.verdict} | {'' if r.others is None else f'{r.others:.2f}'} |"
        for r in rows
    ]
    lines += [
        "",
        "Geometric means of the ratios:",
        "",
        "| group | cases | NC | ratio | limit | |",
        "| --- | ---: | ---: | ---: | ---: | --- |",
    ]
    lines += [
        f"| {m.group} | {m.cases} | {m.not_compared} "
        f"| {'NC' if m.ratio is None else f'{m.ratio:.3f}'} | {m.limit:g} | {m.verdict} |"
        for m in means
    ]
    return "\n".join(lines) + "\n"


def _ms(seconds: float | None) -> str:
    return "" if seconds is None else f"{1e3 * seconds:.3g}"


def report(r: Row) -> str:
    ratio = ratio_cell(r.ratio, r.ratio_quartiles)
    return (
        f"{r.group + ': ' + r.name:<54} {r.threads:>7} {_ms(r.before):>9} {_ms(r.after):>9} "
        f"{ratio:>18}  {r.verdict}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", required=True, help="git revision, or folder with its code")
    parser.add_argument("--after", default=str(ROOT), help="the same; by default the code here")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_ROUNDS} rounds")
    parser.add_argument("--only", nargs="+", default=[""], help="cases named by one of these")
    parser.add_argument(
        "--threads",
        type=int,
        nargs="+",
        default=sorted({1, os.cpu_count() or 1}),
        help="threads of both versions; several to measure each",
    )
    parser.add_argument("--force", action="store_true", help="run beside other work, and say so")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the results")
    options = parser.parse_args()
    chosen = [task for task in tasks() if any(word in task.title for word in options.only)]
    if not chosen:
        parser.error(f"no case is named by {' or '.join(options.only)}.")
    rounds = QUICK_ROUNDS if options.quick else ROUNDS
    complaints: list[str | None] = []

    def quiet() -> None:
        complaints.append(require_quiet(force=options.force))

    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as spare:
        try:
            versions = [
                find_version(wanted, Path(spare) / side)
                for side, wanted in (("before", options.before), ("after", options.after))
            ]
            about = environment() | {"before": str(versions[0]), "after": str(versions[1])}
            print(f"Before: {about['before']}\nAfter:  {about['after']}", flush=True)
            sources = (versions[0].source, versions[1].source)
            for threads in options.threads:
                with workers(sources, threads) as pair:
                    for row in run(chosen, pair, threads, rounds, quiet):
                        rows.append(row)
                        print(report(row), flush=True)
        except (NotQuiet, Failed, ValueError) as error:
            parser.exit(1, f"{error}\n")
    found = [complaint for complaint in complaints if complaint]
    about["forced"] = options.force
    about["quiet"] = (
        f"Not a quiet machine, measured by force: {found[0]}"
        if found
        else "A look before each case found the machine quiet."
    )
    means = summarise(rows)
    for m in means:
        print(f"{m.group:<14} mean {'NC' if m.ratio is None else f'{m.ratio:.3f}'}  {m.verdict}")
    path = save([*rows, *means], page(rows, means, about), about, options.out, "against")
    print(f"Written: {path} and {path.with_suffix('.json').name}")


if __name__ == "__main__":
    main()
