"""The commands that use a kept model: predict, attack, learn a strength, export."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Sequence
from io import BytesIO, StringIO
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from spgls.base.files import write_whole
from spgls.cli.console import Trouble, say, working
from spgls.cli.delimited import Wanted
from spgls.cli.fitting import check_output, plain_json
from spgls.cli.options import AttackOptions, ModelOptions, PredictOptions, StrengthOptions, takes
from spgls.cli.prepare import CATEGORIES
from spgls.cli.read_table import column_names_of, read_table
from spgls.cli.table_data import TableData, find_column, needs

__all__ = ["attack", "estimate", "export", "predict"]

#: What results may be written as.
_FORMATS = (".csv", ".parquet")
#: Signs at the start of a cell that make a spreadsheet compute it.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@takes(PredictOptions)
def predict(options: PredictOptions) -> None:
    """Predict the rows of a table with a kept model."""
    _check_results(options)
    with working("Predicting"):
        model = _load(options.model)
        table = _read(model, options, options.data, [])
        said = model.predict(_rows(model, table))
    _results(options.out, {"prediction": said})


@takes(AttackOptions)
def attack(options: AttackOptions) -> None:
    """Rows as people would send them once they know the model, and what it then says."""
    _check_results(options)
    with working("Moving rows"):
        model = _load(options.model)
        table, told = _targets(model, options, options.data)
        if options.gamma is not None:
            if not options.gamma > 0.0:
                raise Trouble(f"--gamma must be positive; got {options.gamma:g}.")
            told["gamma"] = options.gamma
        rows = _rows(model, table)
        last, seen = _seen(model, rows)
        moved = last.best_response(seen, **told)
        columns = _sent(table, seen, moved, rows)
        columns["prediction before"] = last.predict(seen)
        columns["prediction after"] = last.predict(moved)
    _results(options.out, columns)


@takes(StrengthOptions)
def estimate(options: StrengthOptions) -> None:
    """Learn how strong people are from their rows before and after they knew the model."""
    from spgls.estimators.faced import linear_parts
    from spgls.game.strength import estimate_gamma

    with working("Estimating"):
        model = _load(options.model)
        table, told = _targets(model, options, options.data)
        after = _read(model, options, options.after, [])
        if after.rows != table.rows:
            raise Trouble(
                f"{options.after} must hold the rows of {options.data} after people moved, "
                f"{table.rows}; it has {after.rows}."
            )
        last, seen = _seen(model, _rows(model, table))
        _, seen_after = _seen(model, _rows(model, after))
        goals = _goals_of(last, told)
        found = estimate_gamma(
            seen,
            seen_after,
            goals,
            linear_parts(last)[2],
            intercept=float(last.intercept_),
            feature_cost=last.feature_cost_,
        )
    if options.as_json:
        low, high = found.interval
        answer = {
            "gamma": found.gamma,
            "stderr": found.stderr,
            "interval": [low, high],
            "confidence": found.confidence,
            "pull": found.pull,
            "rows": found.n_rows,
            "cost_pvalue": found.cost_pvalue,
            "misfit": found.misfit,
        }
        print(plain_json({"command": "estimate-gamma"} | answer))
        return
    say(repr(found))


def export(
    model: Annotated[Path, typer.Argument(help="A model that 'spgls fit --model' kept.")],
    onnx: Annotated[Path, typer.Option(metavar="OUT", help="Where to write an ONNX graph.")],
) -> None:
    """Write a kept model for programs that are not in Python."""
    from spgls.io.onnx_export import export_onnx

    check_output(onnx, "--onnx", model)
    with working("Exporting"):
        export_onnx(_load(model), onnx)
    say(f"ONNX: {onnx}")


def _load(path: Path) -> Any:
    from spgls.io.model_file import load_model

    return load_model(path)


def _check_results(options: PredictOptions) -> None:
    if options.out is not None:
        if options.out.suffix.lower() not in _FORMATS:
            raise Trouble(f"--out must end in one of {', '.join(_FORMATS)}; got {options.out}.")
        check_output(options.out, "--out", options.data, options.model)


def _encoder_of(model: Any) -> Any:
    """What turns a table into numbers; None where the model takes numbers."""
    return model[:-1] if hasattr(model, "steps") and len(model.steps) > 1 else None


def _categories(model: Any) -> dict[str, list[str]]:
    """Columns of text that the model knows, with their kinds."""
    encoder = _encoder_of(model)
    first = None if encoder is None else encoder.steps[0][1]
    found: dict[str, list[str]] = {}
    for _, step, columns in getattr(first, "transformers_", []):
        for one in dict(getattr(step, "steps", [("", step)])).values():
            for name, kinds in zip(columns, getattr(one, "categories_", []), strict=False):
                found[str(name)] = [str(kind) for kind in kinds]
    return found


def _read(
    model: Any, options: ModelOptions, path: Path, aside: Sequence[tuple[str, str]]
) -> TableData:
    """The columns that a model takes, and some others."""
    how = {name: getattr(options, name) for name in ("separator", "encoding", "sheet")}
    names = column_names_of(path, Wanted(**how))
    for name, option in aside:
        find_column(name, names, option, path)
    others = tuple(name for name, _ in aside)
    known = getattr(model, "feature_names_in_", None)
    if known is None:
        wanted = tuple(name for name in names if name not in others)
    else:
        wanted = tuple(map(str, known))
        missing = [name for name in wanted if name not in names]
        if missing:
            raise Trouble(
                f"{path} lacks {len(missing)} of the {len(wanted)} columns that the model takes, "
                f"the first {missing[0]!r}."
            )
    kinds = _categories(model)
    text = tuple(name for name in kinds if name in wanted)
    table = read_table(path, Wanted(aside=others, only=wanted, text=text, **how))
    worded = [name for name in table.texts if name not in kinds]
    if worded:
        raise Trouble(f"Column {worded[0]!r} of {path} holds text, and the model takes numbers.")
    _refuse_holes(model, table)
    _refuse_new_kinds(table, kinds)
    return table


def _refuse_holes(model: Any, table: TableData) -> None:
    holes = {name: count for name, count in table.missing.items() if name in table.names}
    encoder = _encoder_of(model)
    imputes = encoder is not None and "Imputer" in repr(encoder)
    if holes and not imputes:
        shown = ", ".join(f"{name!r} {count}" for name, count in list(holes.items())[:8])
        raise Trouble(
            f"{table.path} has missing cells, and the model was fitted without --impute: {shown}."
        )


def _refuse_new_kinds(table: TableData, kinds: dict[str, list[str]]) -> None:
    for name, cells in table.texts.items():
        strange = sorted({str(cell) for cell in cells if cell is not None} - set(kinds[name]))
        if strange:
            raise Trouble(
                f"Column {name!r} of {table.path} holds {strange[0][:40]!r}, which the model never "
                f"saw; it knows {', '.join(kinds[name][:8])}."
            )


def _rows(model: Any, table: TableData) -> Any:
    known = getattr(model, "feature_names_in_", None)
    if known is not None:
        return table.frame([str(name) for name in known])
    return np.asarray(table.frame())


def _seen(model: Any, rows: Any) -> tuple[Any, Any]:
    """The last step of a model, and rows as it sees them."""
    encoder = _encoder_of(model)
    return (model, rows) if encoder is None else (model[-1], encoder.transform(rows))


def _targets(model: Any, options: Any, path: Path) -> tuple[TableData, dict[str, Any]]:
    """The table, and what people want: by their labels or by their goals."""
    given = [(name, f"--{at}") for at in ("y", "z") if (name := getattr(options, at)) is not None]
    if len(given) != 1:
        what = "none" if not given else "both"
        raise Trouble(f"Say what people want by exactly one of --y and --z; got {what}.")
    ((name, option),) = given
    last = model[-1] if hasattr(model, "steps") else model
    if option == "--y" and last.goal is None and not hasattr(last, "classes_"):
        raise Trouble(
            f"--y was given, but {options.model} was fitted to goals of their own (--z); pass --z."
        )
    table = _read(model, options, path, given)
    if hasattr(last, "classes_"):
        table.refuse_holes(name, option)
        column = table.aside[name]
        if column.dtype != object and last.classes_.dtype.kind in "iu":
            column = column.astype(np.int64)
        elif column.dtype == object:
            column = column.astype(str)
        values: Any = column
    else:
        values = table.number(name, option)
    return table, {option[2:]: values}


def _goals_of(last: Any, told: dict[str, Any]) -> Any:
    """Goals as numbers."""
    if hasattr(last, "classes_"):
        from spgls.game.classes import class_goals

        y, z = told.get("y"), told.get("z")
        rows = len(next(iter(told.values())))
        return class_goals(last.goal, rows, z, y, last.classes_)
    return told["z"] if "z" in told else last.goal(told["y"])


def _sent(table: TableData, seen: Any, moved: Any, rows: Any) -> dict[str, Any]:
    """Rows after they moved, by column of the table where nothing moved within a category."""
    before, after = np.asarray(seen, dtype=float), np.asarray(moved, dtype=float)
    names = [str(name) for name in getattr(seen, "columns", range(before.shape[1]))]
    text = set(table.texts)
    sent: dict[str, Any] = {}
    for at, name in enumerate(names):
        plain = name.removeprefix(f"{CATEGORIES}__")
        group = next((one for one in text if plain.startswith(f"{one}_")), None)
        if group is None or not np.array_equal(before[:, at], after[:, at]):
            sent[name] = after[:, at]
    kept = {name: rows[name].to_numpy() for name in table.texts}
    return kept | sent if kept else sent


def _results(out: Path | None, columns: dict[str, Any]) -> None:
    """Write columns to a file, or print them."""
    if out is not None and out.suffix.lower() == ".parquet":
        arrow = needs("pyarrow")
        stream = BytesIO()
        plain = {name: arrow.array(np.asarray(one).tolist()) for name, one in columns.items()}
        needs("pyarrow.parquet").write_table(arrow.table(plain), stream)
        write_whole(out, stream.getvalue())
        return
    text = StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow([_harmless(name) for name in columns])
    parts = [np.asarray(one).tolist() for one in columns.values()]
    writer.writerows(_cells(row) for row in zip(*parts, strict=True))
    if out is None:
        sys.stdout.write(text.getvalue())
        sys.stdout.flush()
    else:
        write_whole(out, text.getvalue().encode())


def _cells(row: Iterable[Any]) -> list[Any]:
    return [_harmless(one) if isinstance(one, str) else one for one in row]


def _harmless(text: str) -> str:
    """A text that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text
