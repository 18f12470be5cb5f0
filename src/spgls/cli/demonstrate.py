"""The commands that show what spgls is for: the demonstration, and where the experiments are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer
from rich.console import Console
from rich.table import Table

from spgls.cli.console import Trouble, say
from spgls.cli.fitting import check_output

if TYPE_CHECKING:
    from spgls.cli.demo import DemoResult

__all__ = ["demo", "reproduce"]


def demo(
    picture: Annotated[
        Path, typer.Option(help="Where to write the picture: a name in .png, .svg or .pdf.")
    ] = Path("spgls-demo.png"),
) -> None:
    """Compare five models on scikit-learn's diabetes data, before and after people react."""
    from spgls.cli.demo import FORMATS, run_demo

    if not picture.is_dir() and picture.suffix.lower() not in FORMATS:
        raise Trouble(f"--picture: {picture} must end in one of {', '.join(FORMATS)}.")
    check_output(picture, "--picture")
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
    say(f"Picture: {picture}")


def reproduce() -> None:
    """Say where the experiments of the paper are, whatever the arguments."""
    raise Trouble(
        "The experiments of the paper are a package of their own, reproduction/ in the repository "
        "of spgls: in a clone of it, run 'pip install . ./reproduction', then 'python -m "
        "reproduction --help'."
    )


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
        "a score of at least 250. If least squares were published, they would close half of the "
        f"gap between their score and 250 (gamma = {result.gamma:.3g}).\n"
        "  honest         nobody changes their data\n"
        "  attacked       everybody changes their data, as far as it pays off\n"
        "  certified gap  how much R2 a better linear model could gain at most\n"
        "'y from z alone' predicts from what people want, and sees no features. It needs the "
        "goals, which only strategic people reveal."
    )
    console.print(text, markup=False, highlight=False)


def _fail(message: str) -> NoReturn:
    """End with a sentence on the error stream, after what there is was shown."""
    say(message, error=True)
    raise typer.Exit(1)
