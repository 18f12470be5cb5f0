"""The command that says what is in a table, and what is wrong with it."""

from __future__ import annotations

from typing import Any

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from spgls.cli.console import say, working
from spgls.cli.fitting import plain_json
from spgls.cli.options import CheckOptions, takes
from spgls.cli.prepare import read_data
from spgls.cli.table_data import TableData

__all__ = ["check"]

#: Columns that are printed; all are in the JSON.
_SHOWN = 40
#: Different texts beyond which a column names rows.
_CATEGORIES = 100


@takes(CheckOptions)
def check(options: CheckOptions) -> None:
    """Say what is in a table, and what is wrong with it."""
    with working("Reading"):
        table = read_data(options, [] if options.y is None else [(options.y, "--y")])
    columns = [_about(table, name) for name in (*table.aside, *table.names)]
    wrong = _wrong(table, columns)
    if options.as_json:
        answer = {"rows": table.rows, "columns": columns, "assumed": table.notes, "wrong": wrong}
        print(plain_json({"command": "check"} | answer))
    else:
        _tell(table, columns, wrong)
    if wrong:
        raise typer.Exit(1)


def _about(table: TableData, name: str) -> dict[str, Any]:
    """What a column holds."""
    holes = table.missing.get(name, 0)
    about: dict[str, Any] = {"name": name, "missing": holes}
    cells = table.aside.get(name)
    if cells is None and name in table.number_names:
        cells = table.numbers[table.number_names.index(name)]
    if cells is not None and cells.dtype != object:
        there = cells[~np.isnan(cells)] if holes else cells
        about["kind"] = "number"
        if len(there):
            about |= {"min": there.min(), "mean": there.mean(), "max": there.max()}
            counts = len(there) == table.rows and np.array_equal(
                np.diff(there), np.ones(len(there) - 1)
            )
            about["counts_rows"] = bool(counts and len(there) > 2)
        return about
    texts = table.texts[name] if cells is None else cells
    kinds = sorted({text for text in texts if text is not None})
    return about | {"kind": "text", "different": len(kinds), "examples": kinds[:5]}


def _wrong(table: TableData, columns: list[dict[str, Any]]) -> list[str]:
    """Sentences on what a fit would stumble over."""
    wrong = []
    for one in columns:
        name = one["name"]
        if one["missing"] == table.rows:
            wrong.append(f"{name!r} is empty: --drop it.")
        elif one["missing"]:
            wrong.append(
                f"{name!r} is missing in {one['missing']} of {table.rows} rows: remove them, or "
                "fill them with --impute."
            )
        if one.get("different", 0) > _CATEGORIES:
            wrong.append(f"{name!r} holds {one['different']} different texts: --drop it.")
        if one.get("counts_rows"):
            wrong.append(f"{name!r} counts the rows, which predicts nothing: --drop it.")
        if one["kind"] == "number" and "min" in one and one["min"] == one["max"]:
            wrong.append(f"{name!r} holds one value only, {one['min']:g}: --drop it.")
    if table.rows < 4:
        wrong.append(f"There are {table.rows} rows, and a fit needs 4.")
    return wrong


def _tell(table: TableData, columns: list[dict[str, Any]], wrong: list[str]) -> None:
    for note in table.notes:
        say(note)
    say(f"{table.rows} rows, {len(columns)} columns.")
    shown = Table()
    shown.add_column("column")
    for head in ("kind", "missing", "least", "mean", "greatest"):
        shown.add_column(head, justify="right")
    for one in columns[:_SHOWN]:
        if one["kind"] == "number":
            cells = [f"{one[key]:.4g}" if key in one else "-" for key in ("min", "mean", "max")]
        else:
            cells = [escape(", ".join(text[:20] for text in one["examples"][:3])), "", ""]
        kind = one["kind"] if one["kind"] == "number" else f"text ({one['different']})"
        shown.add_row(escape(_visible(one["name"])), kind, str(one["missing"]), *cells)
    Console().print(shown)
    if len(columns) > _SHOWN:
        say(f"And {len(columns) - _SHOWN} columns more; --json shows all.")
    for sentence in wrong or ["Nothing is wrong with it."]:
        say(_visible(sentence))


def _visible(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)
