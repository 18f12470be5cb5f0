"""The command line: it prints, the library does not."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer
from rich.console import Console
from rich.table import Table

from spgls import __version__

if TYPE_CHECKING:
    from spgls.cli.demo import DemoResult

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
    from spgls.cli.demo import FORMATS, run_demo

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


@app.command(
    hidden=True,
    add_help_option=False,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)
def reproduce() -> None:
    """Say where the experiments of the paper are, whatever the arguments."""
    _fail(
        "The experiments of the paper are a package of their own, reproduction/ in the repository "
        "of spgls: in a clone of it, run 'pip install . ./reproduction', then 'python -m "
        "reproduction --help'.",
        code=2,
    )


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


def _fail(message: str, code: int = 1) -> NoReturn:
    """End with a sentence on the error stream."""
    _say(Console(stderr=True), message)
    raise typer.Exit(code)
