"""The command line of the experiments: it prints, the other modules do not."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from reproduction.catalogue import EXPERIMENTS, find_experiments
from reproduction.experiment import Experiment
from reproduction.page import write_page
from reproduction.pipeline import Reproduction, reproduce
from reproduction.runner import RunProgress
from reproduction.store import Results, ResultsError

__all__ = ["app"]

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class Scale(StrEnum):
    """How large experiments are."""

    QUICK = "quick"
    MACHINE = "machine"
    PAPER = "paper"


class Protocol(StrEnum):
    """Whom experiments follow where the paper and its authors' code differ."""

    CODE = "code"
    PAPER = "paper"


@app.command()
def run(
    ids: Annotated[
        list[str] | None, typer.Argument(help="Experiments to run; --list shows them.")
    ] = None,
    *,
    show: Annotated[bool, typer.Option("--list", help="Show the experiments and end.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Run all of them.")] = False,
    scale: Annotated[
        Scale,
        typer.Option(help="Minutes, half an hour, or days: the sizes and repetitions to run."),
    ] = Scale.MACHINE,
    protocol: Annotated[
        Protocol, typer.Option(help="Follow the authors' code or the text where they differ.")
    ] = Protocol.CODE,
    out: Annotated[
        Path, typer.Option(help="Folder for the results. A run that was stopped goes on there.")
    ] = Path("spgls-reproduction"),
    threads: Annotated[
        int | None, typer.Option(min=1, help="Threads of the solvers; all cores by default.")
    ] = None,
    page: Annotated[
        Path | None, typer.Option(help="Write the page of the documentation here; runs nothing.")
    ] = None,
    source: Annotated[
        Path | None, typer.Option("--from", help="Folder whose results the page is made of.")
    ] = None,
) -> None:
    """Run the experiments of the paper; write its tables and figures with our numbers beside."""
    if show:
        _list_experiments(list(EXPERIMENTS.values()), scale.value, protocol.value)
        return
    if page is not None:
        _write_page(page, source or out, protocol.value)
        return
    if everything == bool(ids):
        raise typer.BadParameter(
            "name experiments or pass --all, not both; --list shows what there is.",
            param_hint="IDS",
        )
    try:
        chosen = find_experiments(EXPERIMENTS if everything else ids or ())
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="IDS") from None
    _run_experiments(chosen, out, scale.value, protocol.value, threads)


def _list_experiments(experiments: list[Experiment], scale: str, protocol: str) -> None:
    table = Table()
    table.add_column("id", no_wrap=True)
    table.add_column("what it shows")
    table.add_column("in the paper")
    table.add_column(f"cells\n({scale})", justify="right")
    for experiment in experiments:
        cells = experiment.cells(scale, protocol)
        table.add_row(experiment.id, experiment.title, experiment.place, str(len(cells)))
    Console().print(table)


def _run_experiments(
    experiments: tuple[Experiment, ...], out: Path, scale: str, protocol: str, threads: int | None
) -> None:
    console = Console()
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
    )
    try:
        with _terminable(), Progress(*columns, console=console, transient=True) as bars:
            task = bars.add_task("Starting", total=None, left="")

            def tell(progress: RunProgress) -> None:
                bars.update(
                    task,
                    description=f"{progress.cell.experiment} {progress.cell.method}",
                    completed=progress.done,
                    total=progress.total,
                    left=_left(progress.remaining),
                )

            found = reproduce(
                experiments, out, scale=scale, protocol=protocol, threads=threads, notify=tell
            )
    except (ResultsError, ImportError, RuntimeError) as error:
        _fail(str(error))
    except OSError as error:
        _fail(error.strerror or str(error))
    except KeyboardInterrupt:
        _fail("Stopped. What was finished is kept: the same command goes on from there.")
    _show_reproduction(console, found)


@contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM end a run as Ctrl-C does."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _left(seconds: float | None) -> str:
    """Words for the time that remains."""
    return "" if seconds is None else f"about {timedelta(seconds=round(seconds))} left"


def _show_reproduction(console: Console, found: Reproduction) -> None:
    summary = found.summary
    _say(console, f"Cells measured now: {summary.measured}; kept from before: {summary.kept}.")
    for path in found.files:
        _say(console, f"Written: {path}")
    if summary.unavailable:
        words = [
            f"{len(cells)} cells of {', '.join(dict.fromkeys(c.experiment for c in cells))} could "
            f"not be measured: {reason}"
            for reason, cells in summary.unavailable.items()
        ]
        words.append("The same command measures them once that is mended, and nothing else.")
        _fail("\n".join(words))


def _write_page(page: Path, source: Path, protocol: str) -> None:
    if page.suffix != ".md" or not page.absolute().parent.is_dir():
        raise typer.BadParameter(
            f"{page} must name a .md file in a folder that exists.", param_hint="--page"
        )
    try:
        files = write_page(Results.read(source), page, protocol=protocol)
    except (ResultsError, ImportError) as error:
        _fail(str(error))
    except OSError as error:
        _fail(error.strerror or str(error))
    for path in files:
        _say(Console(), f"Written: {path}")


def _say(console: Console, text: str) -> None:
    """Print words as they are: a path may hold brackets, and must stay on one line."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def _fail(message: str) -> NoReturn:
    """End with a sentence on the error stream."""
    _say(Console(stderr=True), message)
    raise typer.Exit(1)
