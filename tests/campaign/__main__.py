"""The command line of the campaign: run, table, keep, shrink, again, compare."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

# Before NumPy is loaded: two processes with a BLAS of two threads each fight over two cores.
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

KEPT = Path("benchmarks/results/campaign.json")


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line says; the status to exit with."""
    options = _parser().parse_args(arguments)
    # Asked to end by either signal, a run lets go of the shards in work and keeps the others.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return options.do(options)
    except KeyboardInterrupt:
        print("Interrupted; finished shards are kept.", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.campaign", description=__doc__)
    commands = parser.add_subparsers(required=True)
    run = commands.add_parser("run", help="play games that were not played yet")
    run.add_argument("--games", type=int, default=50_000)
    run.add_argument("--seed", type=int, default=1)
    run.add_argument("--out", type=Path, default=Path("campaign"))
    run.add_argument("--processes", type=int, default=2)
    run.add_argument(
        "--shrink", type=int, default=1, help="failures of a kind to shrink at the end"
    )
    run.add_argument(
        "--kept",
        type=Path,
        default=KEPT,
        help="file of kept counts, whose games are not played again by the same code",
    )
    run.set_defaults(do=_run)
    table = commands.add_parser("table", help="print what was found, as a page of tables")
    table.add_argument("--out", type=Path, default=Path("campaign"))
    table.add_argument("--full", action="store_true", help="every family, level and solver apart")
    table.set_defaults(do=_table)
    keep = commands.add_parser("keep", help="add what was found to the kept counts and their page")
    keep.add_argument("--out", type=Path, default=Path("campaign"))
    keep.add_argument("--into", type=Path, default=KEPT.parent, help="folder of campaign.json, .md")
    keep.set_defaults(do=_keep)
    shrink = commands.add_parser("shrink", help="make failing games small and print them")
    shrink.add_argument("--out", type=Path, default=Path("campaign"))
    shrink.add_argument("--limit", type=int, default=3, help="failures of each kind")
    shrink.set_defaults(do=_shrink)
    again = commands.add_parser("again", help="play failing games once more, by newer checks")
    again.add_argument("--out", type=Path, default=Path("campaign"))
    again.set_defaults(do=_again)
    compare = commands.add_parser("compare", help="list what one campaign adds to another")
    compare.add_argument("before", type=Path)
    compare.add_argument("after", type=Path)
    compare.set_defaults(do=_compare)
    return parser


def _run(options: argparse.Namespace) -> int:
    from .examples import shrink_failures
    from .kept import played_before, read_runs, why_not
    from .shards import environment, run_campaign

    about, runs = environment(), read_runs(options.kept)
    print(f"spgls {about['spgls']}, seed {options.seed}, into {options.out}")
    if reason := why_not(options.seed, about["spgls"], runs):
        print(f"These games cannot be kept. {reason}")
    played = played_before(runs, options.seed, about)
    if played:
        print(f"Not played again: what {options.kept} counts of this seed and code.")
    with _progress() as tell:
        run_campaign(options.out, options.seed, options.games, options.processes, tell, played)
    shrink_failures(options.out, options.shrink, print)
    return 0


def _table(options: argparse.Namespace) -> int:
    from .kept import add_shards
    from .table import as_markdown

    print(as_markdown(add_shards([], options.out), options.full))
    return 0


def _keep(options: argparse.Namespace) -> int:
    from .kept import keep
    from .shards import write_whole
    from .table import as_markdown

    runs = keep(options.out, options.into / KEPT.name)
    write_whole(options.into / "campaign.md", as_markdown(runs))
    print(f"{sum(run.counts.games.total() for run in runs):,} games are kept in {options.into}.")
    return 0


def _shrink(options: argparse.Namespace) -> int:
    from .examples import shrink_failures

    shrink_failures(options.out, options.limit, print)
    return 0


def _again(options: argparse.Namespace) -> int:
    from .shards import play_again

    played, changed = play_again(options.out)
    print(f"{played} games played again, {changed} records differ.")
    return 0


def _compare(options: argparse.Namespace) -> int:
    from .compare import compare, read_results, told

    difference = compare(read_results(options.before), read_results(options.after))
    print(told(difference))
    return 1 if difference.added else 0


class _progress:
    """A bar on a terminal, a line a shard elsewhere."""

    def __enter__(self) -> Callable[[int, int], None]:
        self._bar = None
        if sys.stdout.isatty():
            from rich.progress import Progress

            self._bar = Progress()
            self._bar.start()
            self._task = self._bar.add_task("games", total=None)
        self._started, self._first = time.perf_counter(), None
        return self._tell

    def _tell(self, done: int, games: int) -> None:
        if self._bar is not None:
            self._bar.update(self._task, completed=done, total=games)
            return
        self._first = done if self._first is None else self._first
        seconds = time.perf_counter() - self._started
        pace = 1e3 * seconds / max(1, done - self._first)
        print(f"{done} of {games} games, {seconds:.0f} s, {pace:.1f} ms a game", flush=True)

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()


if __name__ == "__main__":
    sys.exit(main())
