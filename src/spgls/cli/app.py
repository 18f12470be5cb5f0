"""The command line: it prints, the library does not."""

from __future__ import annotations

from typing import Annotated

import typer

from spgls import __version__
from spgls.cli import applying, checking, demonstrate, fitting
from spgls.cli.console import Commands, say

__all__ = ["app"]

app = typer.Typer(cls=Commands, pretty_exceptions_enable=False, no_args_is_help=True)


def _tell_version(wanted: bool) -> None:
    if wanted:
        say(f"spgls {__version__}")
        raise typer.Exit


@app.callback()
def about(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_tell_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Linear models that stay right when people change their data in response."""


for command in (
    checking.check,
    fitting.fit,
    fitting.classify,
    applying.predict,
    applying.attack,
    fitting.levers,
    fitting.path,
):
    app.command()(command)
app.command("estimate-gamma")(applying.estimate)
app.command()(applying.export)
app.command()(demonstrate.demo)
app.command(
    hidden=True,
    add_help_option=False,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)(demonstrate.reproduce)
