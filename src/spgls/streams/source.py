"""What a stream asks of whatever holds the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Columns",
    "Mark",
    "Source",
    "SourceLike",
    "SupportsRows",
    "change_between",
    "mark_of",
    "select",
]

#: Some columns: a slice where they lie together, else their numbers.
Columns: TypeAlias = slice | NDArray[np.intp]
#: Size and time of last change of each file.
Mark: TypeAlias = dict[str, tuple[int, int]]


class SupportsRows(Protocol):
    """What memory maps, HDF5 datasets and Zarr arrays have in common."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""
        ...

    @property
    def dtype(self) -> Any:
        """Type of the numbers."""
        ...

    def __getitem__(self, rows: Any, /) -> Any:
        """Some rows, by a slice."""
        ...


#: What rows may be read from.
SourceLike: TypeAlias = str | PathLike[str] | SupportsRows | Callable[[], Iterable[Any]]


class Source(Protocol):
    """Rows that can be read again and again, in the same order."""

    #: Whether reading can begin at any row.
    seekable: bool
    #: Bytes a second that are to be expected of it.
    rate: float

    @property
    def names(self) -> list[str] | None:
        """Names of the columns; None where they have none."""
        ...

    @property
    def width(self) -> int:
        """Number of columns."""
        ...

    @property
    def rows(self) -> int | None:
        """Number of rows; None where only reading tells."""
        ...

    @property
    def nbytes(self) -> float | None:
        """Bytes that a pass reads; None where nobody knows."""
        ...

    def read(self, columns: Columns, start: int) -> Iterator[Any]:
        """Blocks of some columns from a row on, in order.

        A source that is not seekable begins with the first row.
        """
        ...

    def mark(self) -> Mark:
        """What tells that files have changed; empty where there are none."""
        ...


def select(block: Any, columns: Columns) -> Any:
    """Some columns of an array or a sparse matrix; all of them as they are."""
    width = block.shape[1]
    if isinstance(columns, slice) and columns.indices(width) == (0, width, 1):
        return block
    return block[:, columns]


def mark_of(paths: list[str]) -> Mark:
    """Sizes and times of files."""
    stats = {path: Path(path).stat() for path in paths}
    return {path: (stat.st_size, stat.st_mtime_ns) for path, stat in stats.items()}


def change_between(before: Mark, after: Mark) -> str | None:
    """In words, what changed between two looks at the files; None if nothing did."""
    for path in before.keys() | after.keys():
        if path not in after:
            return f"{path} is gone"
        if path not in before:
            return f"{path} is new"
        if before[path] != after[path]:
            (old, _), (new, _) = before[path], after[path]
            grown = f" ({old} bytes, now {new})" if old != new else ""
            return f"{path} was written to{grown}"
    return None
