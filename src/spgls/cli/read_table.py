"""Tables of any usual kind: text, Parquet, Arrow, Excel."""

from __future__ import annotations

import datetime
import warnings
from collections.abc import Sequence
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from spgls.cli.console import Trouble
from spgls.cli.delimited import MISSING, Wanted, arrow_cells, look, read_delimited
from spgls.cli.table_data import Collector, TableData, find_column, needs, unique_names

__all__ = ["column_names_of", "read_table"]

#: First bytes of files that are not text.
_PARQUET, _ARROW, _ZIP, _OLD_EXCEL = b"PAR1", b"ARROW1", b"PK\x03\x04", b"\xd0\xcf\x11\xe0"
#: Rows of a Parquet file at a time.
_ROWS = 2**16


def read_table(path: Path, wanted: Wanted) -> TableData:
    """Read a table, whatever its name ends in.

    Parameters
    ----------
    path : Path
        The file.
    wanted : Wanted
        Which columns, and as what.
    """
    start = _start(path)
    if start.startswith(_PARQUET) or start.startswith(_ARROW):
        return _read_arrow(path, wanted, start.startswith(_PARQUET))
    if start.startswith(_ZIP):
        return _read_workbook(path, wanted)
    return read_delimited(path, wanted)


def column_names_of(path: Path, wanted: Wanted) -> list[str]:
    """Names of all columns, without reading the rows.

    Parameters
    ----------
    path : Path
        The file.
    wanted : Wanted
        How it is written.
    """
    start = _start(path)
    if start.startswith(_PARQUET) or start.startswith(_ARROW):
        with _arrow_file(path, start.startswith(_PARQUET)) as (schema, _, _):
            return unique_names([str(name) for name in schema.names], path)
    if start.startswith(_ZIP):
        return _workbook_columns(path, wanted.sheet)[0]
    return look(path, wanted).names


def _start(path: Path) -> bytes:
    if path.is_dir():
        raise Trouble(f"{path} is a folder; name a file in it.")
    with path.open("rb") as file:
        start = file.read(8)
    if start.startswith(_OLD_EXCEL):
        raise Trouble(f"{path} is a workbook of an old Excel; save it as .xlsx or .csv.")
    return start


class _arrow_file:
    """Schema, number of rows and batches of a Parquet or Arrow file."""

    def __init__(self, path: Path, parquet: bool) -> None:
        self._path, self._parquet = path, parquet
        self._file: Any = None

    def __enter__(self) -> tuple[Any, int, Any]:
        arrow = needs("pyarrow")
        try:
            if self._parquet:
                self._file = needs("pyarrow.parquet").ParquetFile(self._path, pre_buffer=False)
                schema, rows = self._file.schema_arrow, self._file.metadata.num_rows
                return schema, rows, lambda names: self._file.iter_batches(_ROWS, columns=names)
            self._file = arrow.memory_map(str(self._path))
            reader = needs("pyarrow.ipc").open_file(self._file)
            batches = (reader.get_batch(at) for at in range(reader.num_record_batches))
            return reader.schema, 1, lambda names: (one.select(names) for one in batches)
        except (arrow.ArrowInvalid, OSError) as error:
            said = " ".join(str(error).split())
            raise Trouble(f"{self._path} is damaged, or not what its start says: {said}") from None

    def __exit__(self, *_: object) -> None:
        self._file.close()


def _read_arrow(path: Path, wanted: Wanted, parquet: bool) -> TableData:
    arrow = needs("pyarrow")
    with _arrow_file(path, parquet) as (schema, rows, batches):
        names = unique_names([str(name) for name in schema.names], path)
        found = {name: _arrow_kind(schema.field(name).type) for name in names}
        kinds = wanted.kinds(found)
        for name, kind in kinds.items():
            if kind not in ("number", "text"):
                raise Trouble(
                    f"Column {name!r} of {path} is of type {schema.field(name).type}. Turn it into "
                    f"numbers or text, or pass --drop {name!r}."
                )
        collector = Collector(path, kinds, wanted.aside, rows)
        try:
            for batch in batches(list(kinds)):
                columns, missing = arrow_cells(batch, kinds)
                collector.add(columns, missing)
        except (arrow.ArrowInvalid, OSError) as error:
            said = " ".join(str(error).split())
            raise Trouble(f"{path} is damaged: {said}") from None
        return collector.finished([])


def _arrow_kind(kind: Any) -> str:
    types = needs("pyarrow").types
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "number"
    if types.is_dictionary(kind):
        return "text"
    text = types.is_string(kind) or types.is_large_string(kind) or types.is_boolean(kind)
    return "text" if text or types.is_string_view(kind) else str(kind)


def _read_workbook(path: Path, wanted: Wanted) -> TableData:
    """The first sheet, or the one that was named."""
    names, rows, notes = _workbook_columns(path, wanted.sheet)
    cells = {name: [_cell(row, at) for row in rows] for at, name in enumerate(names)}
    kinds = wanted.kinds({name: _workbook_kind(column) for name, column in cells.items()})
    columns, missing = {}, {}
    for name, kind in kinds.items():
        column = cells[name]
        missing[name] = sum(cell is None for cell in column)
        if kind == "text":
            columns[name] = np.array([_worded(cell) for cell in column], dtype=object)
            continue
        wrong = [at for at, cell in enumerate(column) if isinstance(cell, str)]
        if wrong:
            raise Trouble(
                f"Column {name!r} of {path} holds text among numbers: {column[wrong[0]][:40]!r} in "
                f"row {wrong[0] + 1} of the data. Correct it, pass --category {name!r} if it holds "
                f"categories, or --drop {name!r}."
            )
        columns[name] = np.array([np.nan if c is None else float(c) for c in column])
    collector = Collector(path, kinds, wanted.aside, len(rows))
    collector.add(columns, missing)
    return collector.finished(notes)


def _workbook_columns(
    path: Path, sheet: str | None
) -> tuple[list[str], list[tuple[Any, ...]], list[str]]:
    """Names of the columns of a sheet, its rows, and what was assumed."""
    openpyxl = needs("openpyxl")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            book = openpyxl.load_workbook(path, read_only=True, data_only=True)
            if sheet is not None and sheet not in book.sheetnames:
                find_column(sheet, book.sheetnames, "--sheet", path)
            page = book.worksheets[0] if sheet is None else book[sheet]
            rows = [row for row in page.iter_rows(values_only=True) if any(_there(c) for c in row)]
    except Trouble:
        raise
    except Exception as error:
        # What is no workbook, or no longer one, makes openpyxl fail in as many ways as there are.
        said = f"{type(error).__name__}: {error}"
        raise Trouble(f"{path} cannot be read as an Excel workbook ({said[:200]}).") from None
    if not rows:
        raise Trouble(f"{path} is empty.")
    notes = []
    if len(book.sheetnames) > 1 and sheet is None:
        others = len(book.sheetnames) - 1
        notes.append(
            f"The first of {others + 1} sheets is read, {book.sheetnames[0]!r}; --sheet names "
            "another."
        )
    titles = _titles(rows)
    if len(titles) > 1:
        notes.append(
            f"The first {len(titles)} rows hold names of columns; where one occurs twice, the "
            "title above it stands before it."
        )
    return unique_names(_named(titles), path), rows[len(titles) :], notes


def _titles(rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The rows that hold names: the first, and the one below titles that span several columns."""
    spanning = any(not _there(cell) for cell in rows[0])
    below = len(rows) > 1 and all(isinstance(cell, str) for cell in rows[1] if _there(cell))
    return list(rows[:2]) if spanning and below else list(rows[:1])


def _named(titles: Sequence[tuple[Any, ...]]) -> list[str]:
    last = [str(cell).strip() if _there(cell) else "" for cell in titles[-1]]
    names = [name or f"column {at}" for at, name in enumerate(last, start=1)]
    if len(titles) == 1:
        return names
    above, title = [], ""
    for cell in titles[0]:
        title = str(cell).strip() if _there(cell) else title
        above.append(title)
    return [
        f"{above[at]} {name}" if names.count(name) > 1 else name for at, name in enumerate(names)
    ]


def _there(cell: Any) -> bool:
    return cell is not None and not (isinstance(cell, str) and cell.strip() in MISSING)


def _cell(row: tuple[Any, ...], at: int) -> Any:
    """A number, a text, or None."""
    cell = row[at] if at < len(row) else None
    if not _there(cell):
        return None
    if isinstance(cell, bool | datetime.date | datetime.time):
        return str(cell)
    return cell if isinstance(cell, Real | str) else str(cell)


def _worded(cell: Any) -> str | None:
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return None if cell is None else str(cell)


def _workbook_kind(column: Sequence[Any]) -> str:
    there = [cell for cell in column if cell is not None]
    return "number" if 2 * sum(isinstance(c, Real) for c in there) >= len(there) else "text"
