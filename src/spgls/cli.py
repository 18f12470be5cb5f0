"""The command line: it prints, the library does not."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from spgls.demo import DemoResult, run_demo

__all__ = ["app"]

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.callback()
def about() -> None:
    """Linear models that stay right when people change their data in response."""


@app.command()
def demo(
    picture: Annotated[Path, typer.Option(help="Where to write the picture.")] = Path(
        "spgls-demo.png"
    ),
) -> None:
    """Compare least squares, ridge and the game on scikit-learn's diabetes data."""
    folder = picture.resolve().parent
    if not folder.is_dir():
        raise typer.BadParameter(
            f"the folder {folder} does not exist; create it or name another.",
            param_hint="--picture",
        )
    _show(run_demo(), picture)


def _show(result: DemoResult, picture: Path) -> None:
    console = Console()
    table = Table(
        title="Diabetes: R2 by 10-fold cross-validation; providers want at least 250",
        caption=(
            f"Providers close half the gap to their goal against least squares (gamma = "
            f"{result.gamma:.4g}). The game is right about people who react and wrong about "
            "people who do not;\n'y from z alone' shows how much the goals give away."
        ),
    )
    table.add_column("model")
    for column in ("honest rows", "attacked rows", "certified gap", "seconds a fit"):
        table.add_column(column, justify="right")
    for row in result.rows:
        gap = "" if row.gap is None else f"{row.gap:.1e}"
        seconds = "" if row.seconds is None else f"{row.seconds:.4f}"
        honest = "" if row.honest is None else f"{row.honest:.2f}"
        table.add_row(row.model, honest, f"{row.attacked:.2f}", gap, seconds)
    console.print(table)
    result.plot(picture)
    console.print(f"Picture: {picture}")
