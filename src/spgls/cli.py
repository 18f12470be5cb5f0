"""The command line: it prints, the library does not."""

from __future__ import annotations

import os
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars
from rich.table import Table

from spgls import __version__

if TYPE_CHECKING:
    from spgls.demo import DemoResult
    from spgls.experiments import Experiment, Progress, Reproduction

__all__ = ["app"]

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, no_args_is_help=True)


def _tell_version(wanted: bool) -> None:
    if wanted:
        _say(Console(), f"spgls {__version__}")
        raise typer.Exit


@app.callback()
def about(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_tell_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Linear models that stay right when people change their data in response."""


@app.command()
def demo(
    picture: Annotated[
        Path, typer.Option(help="Where to write the picture: a name in .png, .svg or .pdf.")
    ] = Path("spgls-demo.png"),
) -> None:
    """Compare five models on scikit-learn's diabetes data, before and after people react."""
    from spgls.demo import FORMATS, run_demo

    _check_picture(picture, FORMATS)
    console = Console()
    with console.status("Fitting") as status:
        result = run_demo(lambda model: status.update(f"Fitting {model}"))
    _show(console, result)
    try:
        with console.status("Drawing"):
            result.save(picture)
    except ImportError as error:
        _fail(str(error))
    except OSError as error:
        _fail(f"The picture could not be written to {picture}: {error.strerror or error}.")
    _say(console, f"Picture: {picture}")


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
def reproduce(
    ids: Annotated[
        list[str] | None, typer.Argument(help="Experiments to run; --list shows them.")
    ] = None,
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
    from spgls.experiments import EXPERIMENTS, find_experiments

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
    from spgls.experiments import ResultsError
    from spgls.experiments import reproduce as run

    console = Console()
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
    )
    try:
        with Bars(*columns, console=console, transient=True) as bars:
            task = bars.add_task("Starting", total=None, left="")

            def tell(progress: Progress) -> None:
                bars.update(
                    task,
                    description=f"{progress.cell.experiment} {progress.cell.method}",
                    completed=progress.done,
                    total=progress.total,
                    left=_left(progress.remaining),
                )

            found = run(
                experiments, out, scale=scale, protocol=protocol, threads=threads, notify=tell
            )
    except (ResultsError, ImportError, RuntimeError) as error:
        _fail(str(error))
    except OSError as error:
        _fail(error.strerror or str(error))
    except KeyboardInterrupt:
        _fail("Stopped. What was finished is kept: the same command goes on from there.")
    _show_reproduction(console, found)


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
    from spgls.experiments import Results, ResultsError
    from spgls.experiments.report import write_page

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


def _check_picture(path: Path, formats: tuple[str, ...]) -> None:
    """Refuse what cannot become a picture before anything is computed."""
    folder = path.absolute().parent
    trouble = None
    if path.is_dir():
        trouble = f"{path} is a folder; name a file in it."
    elif path.suffix.lower() not in formats:
        trouble = f"{path} must end in one of {', '.join(formats)}."
    elif not folder.is_dir():
        trouble = f"the folder {folder} does not exist; create it or name another."
    elif not os.access(path if path.exists() else folder, os.W_OK):
        trouble = f"you may not write to {path}; name another place."
    if trouble is not None:
        raise typer.BadParameter(trouble, param_hint="--picture")


def _show(console: Console, result: DemoResult) -> None:
    """Print the table, and how to read it."""
    table = Table()
    table.add_column("model", no_wrap=True)
    for column in ("honest\nR2", "attacked\nR2", "certified\ngap", "fit\nms"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("status")
    for row in result.rows:
        table.add_row(
            row.model,
            "-" if row.honest is None else f"{row.honest:z.2f}",
            f"{row.attacked:z.2f}",
            "-" if row.gap is None else f"{row.gap:.0e}",
            f"{1e3 * row.seconds:.1f}",
            row.status or "-",
        )
    console.print(table)
    text = (
        f"R2 on held-out rows of {result.patients} diabetes patients, 10-fold. Everyone would like "
        "a score of at least 250, and against least squares would get half-way there (gamma = "
        f"{result.gamma:.3g}).\n"
        "  honest    rows as they are\n"
        "  attacked  rows after everyone changed their own, as far as that pays off\n"
        "  gap       how far a fit can be from the global optimum, in units of R2\n"
        "'y from z alone' reads the label off the goal and never sees the data; honest people show "
        "no goal."
    )
    console.print(text, markup=False, highlight=False)


def _say(console: Console, text: str) -> None:
    """Print words as they are: a path may hold brackets, and must stay on one line."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def _fail(message: str) -> NoReturn:
    """End with a sentence on the error stream."""
    _say(Console(stderr=True), message)
    raise typer.Exit(1)
