"""A table in memory: columns of numbers in one array, columns of text, and what is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from spgls.base.types import Array, Vector
from spgls.cli.console import Trouble

__all__ = ["Collector", "TableData", "find_column", "needs", "unique_names"]

#: Longest text that can be the name of a category or of a column.
_LONGEST = 1000


@dataclass(frozen=True, eq=False)
class TableData:
    """What was read of a table.

    Attributes
    ----------
    path : Path
        Where it came from.
    names : list of k str
        Names of the feature columns, in the order of the file.
    numbers : ndarray of shape (j, m)
        Feature columns of numbers, each in one piece; NaN where a cell is missing.
    number_names : list of j str
        Their names.
    texts : dict
        Feature columns of text; None where a cell is missing.
    aside : dict
        Columns that are not features: labels and goals, numbers or text.
    missing : dict
        Number of missing cells by column, where there are any.
    notes : list of str
        What was assumed about the file.
    """

    path: Path
    names: list[str]
    numbers: Array
    number_names: list[str]
    texts: dict[str, np.ndarray]
    aside: dict[str, np.ndarray]
    missing: dict[str, int]
    notes: list[str] = field(default_factory=list)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.numbers.shape[1])

    def frame(self, names: Sequence[str] | None = None) -> Any:
        """Features as a data frame; numbers alone are not copied.

        Parameters
        ----------
        names : list of str, optional
            Which columns, in which order; by default all.
        """
        pandas = needs("pandas")
        frame = pandas.DataFrame(self.numbers.T, columns=self.number_names, copy=False)
        for name, cells in self.texts.items():
            frame[name] = pandas.Series(cells, dtype=object)
        wanted = list(self.names if names is None else names)
        return frame if wanted == list(frame.columns) else frame[wanted]

    def number(self, name: str, option: str) -> Vector:
        """A column that was set aside, as numbers without holes.

        Parameters
        ----------
        name, option : str
            Its name, and the option that named it.
        """
        column = self.aside[name]
        if column.dtype == object:
            shown = next((str(one) for one in column if one is not None), "")
            raise Trouble(
                f"{option} must name a column of numbers; {name!r} of {self.path} holds text, such "
                f"as {shown[:40]!r}."
            )
        self.refuse_holes(name, option)
        return np.asarray(column, dtype=np.float64)

    def refuse_holes(self, name: str, option: str) -> None:
        """Refuse a column that was set aside and has missing cells."""
        if self.missing.get(name):
            raise Trouble(
                f"{option} must name a column without holes; {name!r} of {self.path} is missing in "
                f"{self.missing[name]} of {self.rows} rows. Remove those rows."
            )


def unique_names(names: Sequence[str], path: Path) -> list[str]:
    """Names of columns, refused where two are the same or one is no name."""
    for at, name in enumerate(names, start=1):
        if len(name) > _LONGEST:
            raise Trouble(
                f"Column {at} of {path} has a name of {len(name)} characters; is its first line "
                "the names of columns, and is the separator right?"
            )
    seen: dict[str, int] = {}
    for at, name in enumerate(names, start=1):
        if name in seen:
            raise Trouble(
                f"{path} has two columns called {name!r}, number {seen[name]} and number {at}. "
                "Rename one of them."
            )
        seen[name] = at
    return list(names)


class Collector:
    """Puts blocks of rows together.

    Parameters
    ----------
    path : Path
        Where they come from.
    kinds : mapping
        Which columns there are, and whether each holds a "number" or "text".
    aside : sequence of str
        Columns that are not features.
    expected : int
        How many rows there will be, about.
    """

    def __init__(
        self, path: Path, kinds: Mapping[str, str], aside: Sequence[str], expected: int
    ) -> None:
        self._path, self._kinds, self._aside = path, dict(kinds), list(aside)
        self._numbers = [n for n, kind in kinds.items() if kind == "number" and n not in aside]
        # Memory that is never written to is never taken.
        self._block = np.empty((len(self._numbers), max(expected, 1)))
        self._others: dict[str, list[np.ndarray]] = {
            name: [] for name in kinds if name not in self._numbers
        }
        self._missing = dict.fromkeys(kinds, 0)
        self._rows = 0

    def add(self, columns: Mapping[str, np.ndarray], missing: Mapping[str, int]) -> None:
        """Add some rows.

        Parameters
        ----------
        columns : mapping
            A column each, as numbers or as objects.
        missing : mapping
            How many cells of each are missing.
        """
        count = len(next(iter(columns.values()))) if columns else 0
        end = self._rows + count
        if end > self._block.shape[1]:
            room = np.empty((len(self._numbers), end + end // 2))
            room[:, : self._rows] = self._block[:, : self._rows]
            self._block = room
        for row, name in zip(self._block, self._numbers, strict=True):
            row[self._rows : end] = columns[name]
        for name, parts in self._others.items():
            parts.append(columns[name])
        for name, holes in missing.items():
            self._missing[name] += holes
        self._rows = end

    def finished(self, notes: Sequence[str]) -> TableData:
        """All rows as a table."""
        if self._rows == 0:
            raise Trouble(f"{self._path} holds no rows of data.")
        numbers = self._block[:, : self._rows]
        joined = {name: np.concatenate(parts) for name, parts in self._others.items()}
        missing = {name: holes for name, holes in self._missing.items() if holes}
        table = TableData(
            self._path,
            [name for name in self._kinds if name not in self._aside],
            numbers,
            self._numbers,
            {name: cells for name, cells in joined.items() if name not in self._aside},
            {name: joined[name] for name in self._aside},
            missing,
            list(notes),
        )
        for name, row in (*zip(self._numbers, numbers, strict=True), *table.aside.items()):
            self._refuse_infinite(name, row)
        return table

    def _refuse_infinite(self, name: str, column: np.ndarray) -> None:
        # One infinite cell makes the sum infinite or not a number, and so does a missing one.
        if column.dtype == object or np.isfinite(column.sum()):
            return
        infinite = np.isinf(column)
        if infinite.any():
            raise Trouble(
                f"Column {name!r} of {self._path} holds {int(infinite.sum())} infinite numbers, "
                f"the first in row {int(np.argmax(infinite)) + 1} of the data."
            )


def find_column(name: str, names: Sequence[str], option: str, path: Path) -> str:
    """The column of a name, or an error that suggests one."""
    if name in names:
        return name
    near = get_close_matches(name, names, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    shown = ", ".join(map(repr, names[:8])) + (", ..." if len(names) > 8 else "")
    raise Trouble(f"{option} names {name!r}, which no column of {path} is called: {shown}.{hint}")


def needs(package: str) -> Any:
    """Import what tables are read with."""
    try:
        return import_module(package)
    except ImportError:
        first = package.split(".")[0]
        raise Trouble(f"Reading tables needs {first}: pip install 'spgls[table]'.") from None
