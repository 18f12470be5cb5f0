"""Parquet, Arrow and CSV files, or folders of them, read by pyarrow."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from spgls.matrix import block_length
from spgls.streams.ahead import ahead
from spgls.streams.room import Room
from spgls.streams.source import Columns, Mark, mark_of

__all__ = ["FORMATS", "TableSource"]

#: What pyarrow calls a file with such a name; a second ending says how it is packed.
FORMATS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "ipc",
    ".feather": "ipc",
    ".ipc": "ipc",
    ".csv": "csv",
    ".tsv": "csv",
}
#: Bytes a second, by format.
_RATES = {"parquet": 1e9, "ipc": 1e9, "csv": 2e8}
#: Bytes that are fetched of a column at a time; without, a row group is fetched as a whole.
_FETCH = 2**17
#: Blocks that are unpacked at once, at most.
_GROUP = 10
#: Blocks of an Arrow file that are read before they are asked for, and files that are opened.
_AHEAD = 2
#: What may stand between the fields of a line.
_SEPARATORS = ",;\t|"


class TableSource:
    """Columns with names in one file or many.

    Parameters
    ----------
    path : Path
        A file, or a folder of files of one format.
    block_bytes : int
        Bytes of a block, about.
    """

    seekable = False

    def __init__(self, path: Path, block_bytes: int) -> None:
        arrow = arrow_module("dataset", path) and arrow_module("", path)
        self._path, self._block_bytes, self._room = path, block_bytes, Room()
        self._kind, self._files = _find(path)
        try:
            self._dataset = _open(self._files, self._kind)
        except arrow.ArrowInvalid as error:
            raise ValueError(f"{path} could not be read: {error}") from None
        self._names = [str(name) for name in self._dataset.schema.names]
        twice = sorted({name for name in self._names if self._names.count(name) > 1})
        if twice:
            raise ValueError(
                f"source must have one name for each column; {path} has {twice[0]!r} "
                f"{self._names.count(twice[0])} times."
            )
        self.rate = _RATES[self._kind]
        # Text has to be parsed to be counted.
        self._rows = None if self._kind == "csv" else int(self._dataset.count_rows())

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return self._names

    @property
    def width(self) -> int:
        """Number of columns."""
        return len(self._names)

    @property
    def rows(self) -> int | None:
        """Number of rows; None where only reading tells."""
        return self._rows

    @property
    def nbytes(self) -> float:
        """Bytes of all files."""
        return float(sum(size for size, _ in mark_of(self._files).values()))

    def read(self, columns: Columns, start: int) -> Iterator[Any]:
        """Blocks of some columns, from the first row on; each column lies in one piece."""
        fields = [self._dataset.schema.field(int(at)) for at in np.arange(self.width)[columns]]
        for field in fields:
            _refuse_other_types(field, self._path)
        narrow = all(str(field.type) in ("float", "halffloat") for field in fields)
        dtype = np.dtype(np.float32 if narrow else np.float64)
        length = block_length(len(fields), block_bytes=self._block_bytes)
        block, filled = np.empty((0, 0), dtype), 0
        for batch in self._batches([field.name for field in fields], length):
            at = 0
            while at < batch.num_rows:
                if filled == 0:
                    block = self._room.array((len(fields), length), dtype)
                count = min(length - filled, batch.num_rows - at)
                for row, column in zip(block, batch.columns, strict=True):
                    row[filled : filled + count] = _numbers(column.slice(at, count))
                at, filled = at + count, filled + count
                if filled == length:
                    yield block.T
                    filled = 0
        if filled:
            yield np.ascontiguousarray(block[:, :filled]).T

    def mark(self) -> Mark:
        """Of all files; of new ones in the folder too."""
        return mark_of(_find(self._path)[1])

    def _batches(self, names: list[str], length: int) -> Iterator[Any]:
        arrow = arrow_module("", self._path)
        try:
            if self._kind == "parquet":
                # Unpacked while the rows before are copied to blocks.
                for table in ahead(self._groups(names, _GROUP * length)):
                    yield from table.select(names).to_batches()
                return
            yield from self._dataset.to_batches(
                columns=names,
                batch_size=length,
                batch_readahead=_AHEAD,
                fragment_readahead=_AHEAD,
            )
        except (arrow.ArrowInvalid, KeyError) as error:
            raise ValueError(f"{self._path} could not be read: {error}") from None

    def _groups(self, names: list[str], most: int) -> Iterator[Any]:
        """Row groups of Parquet files as tables of so many rows at most.

        A scan of a dataset would hold those of several files. Small pieces of a row group take
        twice the time of a whole one, so only those that have more rows are cut.
        """
        arrow, parquet = (arrow_module(name, self._path) for name in ("", "parquet"))
        for path in self._files:
            with parquet.ParquetFile(path, pre_buffer=False, buffer_size=_FETCH) as file:
                sizes = [file.metadata.row_group(k).num_rows for k in range(file.num_row_groups)]
                for run in _runs(sizes, most):
                    if sum(sizes[k] for k in run) <= most:
                        yield file.read_row_groups(run, columns=names)
                        continue
                    for batch in file.iter_batches(most, row_groups=run, columns=names):
                        yield arrow.Table.from_batches([batch])


def _runs(sizes: list[int], most: int) -> Iterator[list[int]]:
    """Neighbours of so many rows together at most, or one that has more."""
    run, rows = list[int](), 0
    for number, size in enumerate(sizes):
        if run and rows + size > most:
            yield run
            run, rows = [], 0
        run.append(number)
        rows += size
    if run:
        yield run


def arrow_module(name: str, path: Path) -> Any:
    """Import a part of pyarrow."""
    try:
        return import_module(f"pyarrow.{name}" if name else "pyarrow")
    except ImportError:
        raise ImportError(
            f"{path} needs pyarrow to be read: pip install 'spgls[stream]'."
        ) from None


def _find(path: Path) -> tuple[str, list[str]]:
    """Format and files of a path, in the order of their names."""
    if not path.is_dir():
        kind = kind_of(path)
        assert kind is not None
        return kind, [str(path)]
    inside = [one for one in sorted(path.rglob("*")) if one.is_file()]
    hidden = [one for one in inside if one.name.startswith((".", "_"))]
    kinds = {one: kind_of(one) for one in inside if one not in hidden}
    found = {kind for kind in kinds.values() if kind is not None}
    if len(found) != 1:
        several = " and ".join(sorted(found)) or "none"
        raise ValueError(
            f"source must be a folder of files of one format, Parquet, Arrow or CSV; {path} has "
            f"{several}."
        )
    (kind,) = found
    return kind, [str(one) for one, own in kinds.items() if own == kind]


def kind_of(path: Path) -> str | None:
    """Format of a file by its name; None where it is not known."""
    endings = [ending.lower() for ending in path.suffixes]
    if endings and endings[-1] in (".gz", ".bz2", ".zst", ".lz4"):
        endings.pop()
    return FORMATS.get(endings[-1]) if endings else None


def _open(files: list[str], kind: str) -> Any:
    """The files as one dataset; numbers of text files are read in double precision."""
    dataset = import_module("pyarrow.dataset")
    if kind != "csv":
        return dataset.dataset(files, format=kind)
    arrow, csv = import_module("pyarrow"), import_module("pyarrow.csv")
    with arrow.input_stream(files[0]) as file:
        first = file.read(2**16).split(b"\n")[0].decode("utf-8", "replace")
    separator = max(_SEPARATORS, key=first.count)
    text = dataset.CsvFileFormat(parse_options=csv.ParseOptions(delimiter=separator))
    guessed = dataset.dataset(files, format=text).schema
    # What the first lines of a file look like says little of the others: 3, then 3.5.
    schema = arrow.schema(
        [
            (field.name, arrow.float64() if _is_number(field.type) else field.type)
            for field in guessed
        ]
    )
    return dataset.dataset(files, schema=schema, format=text)


def _is_number(kind: Any) -> bool:
    """Whether a column holds numbers, as far as is known: an empty one may."""
    types = import_module("pyarrow").types
    return bool(
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_decimal(kind)
        or types.is_null(kind)
    )


def _refuse_other_types(field: Any, path: Path) -> None:
    if _is_number(field.type) or str(field.type) == "bool":
        return
    raise TypeError(
        f"source must hold numbers; column {field.name!r} of {path} is {field.type}. Encode text, "
        "categories and dates as numbers first, or leave it out with columns=."
    )


def _numbers(column: Any) -> np.ndarray:
    """A column as NumPy has it; what is missing is not a number."""
    arrow = import_module("pyarrow")
    if column.null_count or not (
        arrow.types.is_floating(column.type) or arrow.types.is_integer(column.type)
    ):
        column = column.cast(arrow.float64(), safe=False)
    return np.asarray(column.to_numpy(zero_copy_only=False))
