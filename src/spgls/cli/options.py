"""Options that commands share: each is written down once."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

__all__ = ["DataOptions", "DecisionOptions", "GameOptions", "ModelOptions", "takes"]

Options = TypeVar("Options")
_GOAL, _PEOPLE, _TABLE, _OUT = "What people want", "Who they are", "The table", "Results"


_Table = Annotated[
    Path, typer.Argument(help="A table: CSV (packed or not), Parquet, Arrow or Excel.")
]


@dataclass(frozen=True, kw_only=True)
class _Written:
    """How a table is written."""

    separator: Annotated[
        str | None,
        typer.Option(help="What stands between cells; found by itself.", rich_help_panel=_TABLE),
    ] = None
    encoding: Annotated[
        str | None, typer.Option(help="Of a text file; UTF-8.", rich_help_panel=_TABLE)
    ] = None
    sheet: Annotated[
        str | None, typer.Option(help="Of a workbook; the first.", rich_help_panel=_TABLE)
    ] = None


@dataclass(frozen=True, kw_only=True)
class _Truth:
    """What people of rows to be judged want, or what is true of them."""

    y: Annotated[
        str | None, typer.Option("--y", metavar="COL", help="True labels.", rich_help_panel=_GOAL)
    ] = None
    z: Annotated[
        str | None, typer.Option("--z", metavar="COL", help="Goals.", rich_help_panel=_GOAL)
    ] = None


@dataclass(frozen=True, kw_only=True)
class DataOptions(_Written):
    """A table, and how to read it."""

    data: _Table
    drop: Annotated[
        list[str] | None,
        typer.Option(metavar="COL,...", help="Columns to leave out.", rich_help_panel=_TABLE),
    ] = None
    category: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COL,...",
            help="Columns of numbers that are categories, such as postal codes.",
            rich_help_panel=_TABLE,
        ),
    ] = None
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON and nothing else.", rich_help_panel=_OUT)
    ] = False


@dataclass(frozen=True, kw_only=True)
class PeopleOptions(DataOptions):
    """Labels, who reacts, how strongly and at what cost."""

    y: Annotated[str, typer.Option("--y", metavar="COL", help="The column to predict.")]
    z: Annotated[
        str | None,
        typer.Option("--z", metavar="COL", help="A column with the goals.", rich_help_panel=_GOAL),
    ] = None
    gamma: Annotated[
        str | None,
        typer.Option(
            metavar="G|A:B",
            help="What changing data costs people: small is strong.",
            rich_help_panel=_PEOPLE,
        ),
    ] = None
    pull: Annotated[
        str | None,
        typer.Option(
            metavar="P|A:B",
            help="Share of the gap to their goals they would close against least squares; 0.5.",
            rich_help_panel=_PEOPLE,
        ),
    ] = None
    honest: Annotated[
        str,
        typer.Option(
            metavar="S|A:B", help="Share of people who do not react.", rich_help_panel=_PEOPLE
        ),
    ] = "0.5"
    cost: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COL=V,...",
            help="What features cost to change, against others; 1.",
            rich_help_panel=_PEOPLE,
        ),
    ] = None
    immutable: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COL,...",
            help="Features that nobody can change. Categories are, unless --cost names them.",
            rich_help_panel=_PEOPLE,
        ),
    ] = None
    actions: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="What people can do, as JSON: {name: {effects: {COL: change}, cost: V}}.",
            rich_help_panel=_PEOPLE,
        ),
    ] = None
    units: Annotated[
        str,
        typer.Option(
            metavar="sd|raw",
            help="Whether a standard deviation of each feature costs the same, or a unit.",
            rich_help_panel=_PEOPLE,
        ),
    ] = "sd"
    impute: Annotated[
        bool,
        typer.Option(
            "--impute",
            help="Fill missing numbers with the median, and categories with the most frequent.",
            rich_help_panel=_TABLE,
        ),
    ] = False
    test_size: Annotated[
        float,
        typer.Option(
            metavar="F", help="Share of rows held out to measure errors on.", rich_help_panel=_TABLE
        ),
    ] = 0.25
    seed: Annotated[int, typer.Option(help="Which rows are held out.", rich_help_panel=_TABLE)] = 0


@dataclass(frozen=True, kw_only=True)
class GameOptions(PeopleOptions):
    """A game of numbers."""

    shift: Annotated[
        float | None,
        typer.Option(metavar="D", help="Everyone wants D more.", rich_help_panel=_GOAL),
    ] = None
    floor: Annotated[
        float | None,
        typer.Option(metavar="T", help="Everyone wants at least T.", rich_help_panel=_GOAL),
    ] = None
    cap: Annotated[
        float | None,
        typer.Option(metavar="T", help="Everyone wants at most T.", rich_help_panel=_GOAL),
    ] = None
    scale: Annotated[
        float | None,
        typer.Option(metavar="K", help="Everyone wants K times the truth.", rich_help_panel=_GOAL),
    ] = None
    constant: Annotated[
        float | None, typer.Option(metavar="T", help="Everyone wants T.", rich_help_panel=_GOAL)
    ] = None


@dataclass(frozen=True, kw_only=True)
class DecisionOptions(PeopleOptions):
    """A game of two classes."""

    wants: Annotated[
        str | None,
        typer.Option(metavar="CLASS", help="Everyone wants this class.", rich_help_panel=_GOAL),
    ] = None
    opposite: Annotated[
        bool,
        typer.Option(
            "--opposite", help="Everyone wants to pass for the other.", rich_help_panel=_GOAL
        ),
    ] = False


@dataclass(frozen=True, kw_only=True)
class _Results:
    model: Annotated[
        Path | None,
        typer.Option(metavar="OUT", help="Where to keep the model.", rich_help_panel=_OUT),
    ] = None
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="OUT.html", help="Where to write a report to send on.", rich_help_panel=_OUT
        ),
    ] = None
    rows: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="People's own rows to show in the report, at most 200; it is sent on.",
            rich_help_panel=_OUT,
        ),
    ] = 0


@dataclass(frozen=True, kw_only=True)
class FitOptions(GameOptions, _Results):
    """Options of ``spgls fit``."""


@dataclass(frozen=True, kw_only=True)
class ClassifyOptions(DecisionOptions, _Results):
    """Options of ``spgls classify``."""


@dataclass(frozen=True, kw_only=True)
class CheckOptions(DataOptions):
    """Options of ``spgls check``."""

    y: Annotated[str | None, typer.Option("--y", metavar="COL", help="The column to predict.")] = (
        None
    )


@dataclass(frozen=True, kw_only=True)
class ModelOptions(_Written):
    """A kept model, and a table for it."""

    model: Annotated[Path, typer.Argument(help="A model that 'spgls fit --model' kept.")]
    data: _Table


@dataclass(frozen=True, kw_only=True)
class PredictOptions(ModelOptions):
    """Options of ``spgls predict``."""

    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A name in .csv or .parquet; else it is printed."),
    ] = None


@dataclass(frozen=True, kw_only=True)
class AttackOptions(PredictOptions, _Truth):
    """Options of ``spgls attack``."""

    gamma: Annotated[
        float | None,
        typer.Option(metavar="G", help="Strength; that of the fit.", rich_help_panel=_PEOPLE),
    ] = None


@dataclass(frozen=True, kw_only=True)
class StrengthOptions(ModelOptions, _Truth):
    """Options of ``spgls estimate-gamma``."""

    after: Annotated[Path, typer.Argument(help="The same rows in the same order, after.")]
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")] = False


@dataclass(frozen=True, kw_only=True)
class PathOptions(GameOptions):
    """Options of ``spgls path``."""

    pulls: Annotated[
        str, typer.Option(metavar="P,...", help="Pulls to try.", rich_help_panel=_PEOPLE)
    ] = "0.1,0.25,0.5,0.75,0.9"


def takes(kind: type[Options]) -> Callable[[Callable[[Options], None]], Callable[..., None]]:
    """Make a command of a function that takes one object with all options.

    Parameters
    ----------
    kind : type
        A dataclass whose fields typer understands.
    """
    hints = get_type_hints(kind, include_extras=True)
    # Every Options is a dataclass, which its type alone does not tell.
    ordered = sorted(fields(kind), key=lambda one: one.default is not MISSING)  # type: ignore[arg-type]
    parameters = [
        inspect.Parameter(
            one.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if one.default is MISSING else one.default,
            annotation=hints[one.name],
        )
        for one in ordered
    ]

    def wrap(function: Callable[[Options], None]) -> Callable[..., None]:
        def command(**given: Any) -> None:
            function(kind(**given))

        command.__name__, command.__doc__ = function.__name__, function.__doc__
        # typer reads the options from here; functions are not declared to have one.
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {one.name: one.annotation for one in parameters}
        return command

    return wrap
