"""Text tables: separator, decimal sign, names and kinds of columns, as the first lines show."""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import lzma
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import StringIO, TextIOWrapper
from pathlib import Path
from typing import Any

import numpy as np

from spgls.cli.console import Trouble
from spgls.cli.table_data import Collector, TableData, needs, unique_names

__all__ = ["MISSING", "Layout", "Wanted", "arrow_cells", "look", "read_delimited"]

#: What stands for a cell that is not there.
MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "?", "-", "#N/A", "n/a")
#: What may stand between the cells of a line; the last is also a decimal sign.
_SEPARATORS = "\t;|,"
#: Bytes that are looked at, lines of them, and bytes that are parsed at a time.
_LOOK, _LINES, _BLOCK = 2**18, 500, 2**22
_NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*$|\s*[-+]?inf(inity)?\s*$", re.I)
_COMMA = re.compile(r"\s*[-+]?\d+,\d+\s*$")
#: First bytes of packed files, and what opens them.
_PACKED: dict[bytes, Callable[[Any], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
}


@dataclass(frozen=True)
class Wanted:
    """Which columns are read, and as what.

    Attributes
    ----------
    aside : tuple of str
        Columns that are not features.
    drop : tuple of str
        Columns that are not read.
    only : tuple of str, optional
        Features that are read; by default all.
    text : tuple of str
        Columns that hold categories, although they look like numbers.
    separator, encoding : str, optional
        How text is written; by default what the first lines show, and UTF-8.
    sheet : str, optional
        Sheet of a workbook; by default the first.
    """

    aside: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    only: tuple[str, ...] | None = None
    text: tuple[str, ...] = ()
    separator: str | None = None
    encoding: str | None = None
    sheet: str | None = None

    def kinds(self, found: dict[str, str]) -> dict[str, str]:
        """The columns to read of those there are, and what each holds."""
        names = [name for name in found if name not in self.drop]
        if self.only is not None:
            names = [name for name in names if name in self.only or name in self.aside]
        return {name: "text" if name in self.text else found[name] for name in names}


@dataclass(frozen=True)
class Layout:
    """How a text table is written.

    Attributes
    ----------
    separator, decimal, encoding : str
        What stands between cells and in numbers, and how characters are bytes.
    header : bool
        Whether the first line holds names.
    names : list of str
        Names of the columns.
    kinds : dict
        "number" or "text" by column.
    quoted : bool
        Whether cells are in quotes, which may hide ends of lines.
    width : float
        Bytes of a line, about.
    """

    separator: str
    decimal: str
    encoding: str
    header: bool
    names: list[str]
    kinds: dict[str, str]
    quoted: bool
    width: float


def look(path: Path, wanted: Wanted) -> Layout:
    """See how a text table is written.

    Parameters
    ----------
    path : Path
        The file, packed or not.
    wanted : Wanted
        What is known of it.
    """
    with _opened(path) as file:
        start = file.read(_LOOK)
    if not start.strip():
        raise Trouble(f"{path} is empty.")
    text, encoding = _decoded(start, path, wanted.encoding)
    if len(start) == _LOOK and "\n" not in text and "\r" not in text:
        raise Trouble(
            f"{path} has a first line of more than {_LOOK} characters, which is not a table."
        )
    lines = text.splitlines()[: _LINES + 1]
    if len(start) == _LOOK and len(lines) > 1:
        lines = lines[:-1]
    separator = _separator(lines, path, wanted.separator)
    # A quote that is never closed would swallow the rest.
    rows = [row for row in csv.reader(StringIO("\n".join(lines)), delimiter=separator) if row]
    decimal = "," if separator != "," and _has_commas(rows) else "."
    cells = [[_plain(cell, decimal) for cell in row] for row in rows]
    header = not all(_NUMBER.match(cell) or cell in MISSING for cell in cells[0])
    width = len(cells[0])
    named = [name.strip() or f"column {at}" for at, name in enumerate(rows[0], start=1)]
    names = unique_names(named if header else [f"column {at}" for at in range(1, width + 1)], path)
    data = cells[1:] if header else cells
    kinds = {
        name: _kind([row[at] for row in data if at < len(row)]) for at, name in enumerate(names)
    }
    used = len("\n".join(lines).encode(encoding, "replace"))
    return Layout(
        separator, decimal, encoding, header, names, kinds, '"' in text, used / len(lines)
    )


def read_delimited(path: Path, wanted: Wanted) -> TableData:
    """Read a text table.

    Parameters
    ----------
    path : Path
        The file, packed or not.
    wanted : Wanted
        Which columns, and as what.
    """
    layout = look(path, wanted)
    notes = []
    if not layout.header:
        notes.append(
            f"The first line of {path.name} holds numbers only, so columns are called 'column 1' "
            f"to 'column {len(layout.names)}'."
        )
    if layout.decimal == ",":
        notes.append("Numbers are written with a decimal comma.")
    kinds = wanted.kinds(layout.kinds)
    expected = int(1.05 * path.stat().st_size / layout.width) + 1000
    collector = Collector(path, kinds, wanted.aside, expected)
    try:
        with _opened(path) as file:
            for batch in _batches(file, layout, kinds):
                columns, missing = arrow_cells(batch, kinds)
                collector.add(columns, missing)
    except needs("pyarrow").ArrowInvalid as error:
        raise _explained(error, path, layout) from None
    except UnicodeDecodeError:
        raise _not_encoded(path, layout.encoding) from None
    return collector.finished(notes)


def arrow_cells(batch: Any, kinds: dict[str, str]) -> tuple[dict[str, np.ndarray], dict[str, int]]:
    """Columns of a batch of Arrow's as arrays, and how many cells of each are missing."""
    arrow = needs("pyarrow")
    columns, missing = {}, {}
    for name, kind in kinds.items():
        column = batch.column(name)
        if kind == "number":
            if column.type != arrow.float64():
                column = column.cast(arrow.float64(), safe=False)
            cells = column.to_numpy(zero_copy_only=False)
            # A Parquet file may hold NaN where nothing is missing for Arrow.
            holes = column.null_count or int(np.isnan(cells.sum()) and np.isnan(cells).sum())
        else:
            cells, holes = _texts(column), column.null_count
        columns[name], missing[name] = cells, holes
    return columns, missing


def _texts(column: Any) -> np.ndarray:
    """Text, in which equal cells are one object."""
    arrow = needs("pyarrow")
    if not arrow.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    kinds = np.array([*map(_name, column.dictionary.to_pylist()), None], dtype=object)
    codes = column.indices.fill_null(len(kinds) - 1).to_numpy(zero_copy_only=False)
    return np.asarray(kinds[codes])


def _name(value: Any) -> str | None:
    """A category as text; a whole number has no decimals."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return None if value is None else str(value)


def _batches(file: Any, layout: Layout, kinds: dict[str, str]) -> Iterator[Any]:
    arrow, parser = needs("pyarrow"), needs("pyarrow.csv")
    types = {"number": arrow.float64(), "text": arrow.dictionary(arrow.int32(), arrow.string())}
    yield from parser.open_csv(
        file,
        read_options=parser.ReadOptions(
            column_names=layout.names,
            skip_rows_after_names=int(layout.header),
            encoding=layout.encoding,
            block_size=_BLOCK,
        ),
        parse_options=parser.ParseOptions(
            delimiter=layout.separator, newlines_in_values=layout.quoted
        ),
        convert_options=parser.ConvertOptions(
            column_types={name: types[kind] for name, kind in kinds.items()},
            include_columns=list(kinds),
            null_values=list(MISSING),
            strings_can_be_null=True,
            decimal_point=layout.decimal,
        ),
    )


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """The bytes of a file, unpacked."""
    with path.open("rb") as file:
        start = file.read(6)
    opener: Any = next((f for magic, f in _PACKED.items() if start.startswith(magic)), open)
    try:
        with opener(path, "rb") as file:
            yield file
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise Trouble(f"{path} is packed and damaged: {str(error).rstrip('.')}.") from None


def _decoded(start: bytes, path: Path, encoding: str | None) -> tuple[str, str]:
    """The first lines as text, and how they are encoded."""
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and encoding is None:
        encoding = "utf-16"
    if encoding is None and b"\0" in start:
        raise Trouble(f"{path} is not a text table: it holds bytes of zero.")
    name = "utf-8" if encoding is None else encoding
    try:
        decoder = codecs.getincrementaldecoder(name)()
        return decoder.decode(start).removeprefix("\ufeff"), name
    except LookupError:
        raise Trouble(f"--encoding must be one that Python knows; got {name!r}.") from None
    except UnicodeError:
        raise _not_encoded(path, name) from None


def _not_encoded(path: Path, encoding: str) -> Trouble:
    return Trouble(
        f"{path} is not written in {encoding.upper()}; name its encoding, such as --encoding "
        "latin-1, or save it as UTF-8."
    )


def _separator(lines: Sequence[str], path: Path, given: str | None) -> str:
    """What stands between cells: the sign that cuts most lines into equally many."""
    if given is not None:
        sign = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";"}.get(given, given)
        if len(sign) != 1:
            raise Trouble(f"--separator must be one character, or 'tab'; got {given!r}.")
        candidates = sign
    else:
        candidates = _SEPARATORS
    best, agreed = "", 0.0
    for sign in candidates:
        rows = [len(row) for row in csv.reader(StringIO("\n".join(lines)), delimiter=sign) if row]
        width, times = Counter(rows).most_common(1)[0]
        if width > 1 and times / len(rows) > agreed:
            best, agreed = sign, times / len(rows)
    if not best:
        what = "one of comma, semicolon, tab and bar" if given is None else repr(given)
        raise Trouble(
            f"{path} has one column only, where {what} stands between cells; name the right sign "
            "with --separator."
        )
    return best


def _has_commas(rows: Sequence[Sequence[str]]) -> bool:
    cells = [cell for row in rows[1:] for cell in row]
    return any(map(_COMMA.match, cells)) and not any("." in c and _NUMBER.match(c) for c in cells)


def _plain(cell: str, decimal: str) -> str:
    return cell.strip().replace(",", ".") if decimal == "," else cell.strip()


def _kind(cells: Sequence[str]) -> str:
    """What a column holds, by most of its first cells."""
    there = [cell for cell in cells if cell not in MISSING]
    numbers = sum(_NUMBER.match(cell) is not None for cell in there)
    return "number" if 2 * numbers >= len(there) else "text"


def _explained(error: Exception, path: Path, layout: Layout) -> Trouble:
    """What Arrow says, in words of the table."""
    said = " ".join(str(error).split())
    if "UTF8" in said or "UTF-8" in said:
        return _not_encoded(path, layout.encoding)
    if "straddling" in said:
        return Trouble(
            f"{path} holds a line of more than {_BLOCK // 2**20} million characters, which is not "
            "a row of a table. Is a quotation mark not closed?"
        )
    found = re.search(r"Expected (\d+) columns, got (\d+)", said)
    if found:
        row = re.search(r"Row #(\d+)", said)
        where = f"Line {row[1]}" if row else "A line"
        return Trouble(
            f"{where} of {path} has {found[2]} cells, and the first has {found[1]}. Is the "
            "separator right?"
        )
    found = re.search(r"In CSV column #(\d+):", said)
    if found and "conversion error" in said:
        return _text_among_numbers(path, layout, int(found[1]))
    return Trouble(f"{path} could not be read: {said[:300]}")


def _text_among_numbers(path: Path, layout: Layout, column: int) -> Trouble:
    """Find the cell that is no number."""
    name = layout.names[column]
    with _opened(path) as file:
        text = TextIOWrapper(file, encoding=layout.encoding, errors="replace", newline="")
        rows = csv.reader(text, delimiter=layout.separator)
        for line, row in enumerate(rows, start=0 if layout.header else 1):
            if line == 0 or column >= len(row):
                continue
            cell = _plain(row[column], layout.decimal)
            if cell not in MISSING and not _NUMBER.match(cell):
                return Trouble(
                    f"Column {name!r} of {path} holds text among numbers: {cell[:40]!r} in row "
                    f"{line} of the data. Correct it, pass --category {name!r} if it holds "
                    f"categories, or --drop {name!r}."
                )
    return Trouble(f"Column {name!r} of {path} holds text among numbers.")
