"""Files of results: each whole or not there at all, and never written twice."""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any

from reproduction.cell import Cell, Family
from reproduction.environment import describe_environment

__all__ = ["Record", "Results", "ResultsError", "Store", "write_whole"]

#: Of the files; another number is refused.
FORMAT = 1
#: All cells of a folder in one file.
COLLECTED = "results.jsonl"
#: Names of files that are not finished.
_TEMPORARY = re.compile(r"\..+\.\d+\.tmp")


class ResultsError(ValueError):
    """A folder of results cannot be used: a damaged file, or somebody else is writing to it.

    Examples
    --------
    >>> from reproduction import ResultsError
    >>> issubclass(ResultsError, ValueError)
    True
    """


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file under another name, flush it to the disk, and only then give it its own.

    Raises
    ------
    OSError
        It could not be written. Nothing new stays behind, and what was there stays as it was.
    """
    data = content.encode() if isinstance(content, str) else content
    # Matched by _TEMPORARY.
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        _flush_folder(path.parent)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise OSError(
            error.errno or errno.EIO,
            f"{path.name} could not be written to {path.parent}: {error.strerror or error}. "
            "Make room there, or name another folder. What was finished is kept: the same command "
            "goes on from there.",
        ) from None


def _flush_folder(folder: Path) -> None:
    """Make a new name last; not every system lets one."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@dataclass(frozen=True)
class Record:
    """A cell and what was found.

    Attributes
    ----------
    cell : Cell
        What was to be measured.
    outcome : str
        ``"measured"``; ``"time"`` or ``"memory"`` beyond the limit; ``"refused"`` by the solver;
        ``"failed"`` with an exception; ``"died"`` with its process.
    values : dict
        What was found, by name.
    environment : str
        Which one it was measured in.
    """

    cell: Cell
    outcome: str
    values: dict[str, Any]
    environment: str

    @property
    def measured(self) -> bool:
        """Whether there are numbers."""
        return self.outcome == "measured"

    @property
    def lasts(self) -> bool:
        """Whether it says something of the method; one that died or failed is measured again."""
        return self.outcome not in ("died", "failed")

    def __getitem__(self, name: str) -> Any:
        return self.values.get(name)

    def to_json(self) -> str:
        """Return it as a line of text."""
        plain = {
            "format": FORMAT,
            "cell": self.cell.to_dict(),
            "outcome": self.outcome,
            "values": self.values,
            "environment": self.environment,
        }
        return json.dumps(plain, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Record:
        """Return the record of such a line.

        Raises
        ------
        ValueError
            It is none.
        """
        try:
            plain = json.loads(text)
            if plain["format"] != FORMAT:
                raise ValueError(f"format {plain['format']}, not {FORMAT}")
            cell = Cell.from_dict(plain["cell"])
            return cls(cell, str(plain["outcome"]), dict(plain["values"]), plain["environment"])
        except (KeyError, TypeError) as error:
            raise ValueError(f"no {error}") from None


@dataclass(frozen=True)
class Store:
    """A folder that cells are written to, one file each.

    Attributes
    ----------
    folder : Path
        Where ``cells/`` and ``environments/`` are.
    """

    folder: Path

    def path(self, cell: Cell) -> Path:
        """Where a cell's file is, or will be."""
        return self.folder / "cells" / cell.experiment / f"{cell.key}.json"

    def read(self, cell: Cell) -> Record | None:
        """Return what is known of a cell, if anything."""
        path = self.path(cell)
        if not path.is_file():
            return None
        record = _read(path, path.read_text)
        if record.cell.key != cell.key:
            raise ResultsError(f"{path} holds another cell, {record.cell.key}. Delete it.")
        return record

    def write(self, record: Record) -> None:
        """Store a finished cell; one that is there stays as it is, unless it is no result."""
        known = self.read(record.cell)
        if known is None or not known.lasts:
            write_whole(self.path(record.cell), record.to_json())

    def check_threads(self, records: Iterable[Record], threads: int) -> None:
        """Refuse to go on with results on another number of threads: they are not comparable."""
        for name in {record.environment for record in records}:
            path = self.folder / "environments" / f"{name}.json"
            known = _about(path, path.read_text())["threads"] if path.is_file() else threads
            if known != threads:
                raise ResultsError(
                    f"{self.folder} has results on {known} threads, and this run would take "
                    f"{threads}. Pass --threads {known}, or another folder."
                )

    def write_environment(self, name: str, about: dict[str, Any]) -> None:
        """Store an environment once."""
        path = self.folder / "environments" / f"{name}.json"
        if not path.exists():
            write_whole(path, json.dumps(about, indent=2) + "\n")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep others from writing to the folder; what a killed run left half-written goes."""
        path = self.folder / ".lock"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = path.open("w")
        except OSError as error:
            raise OSError(
                error.errno or errno.EIO,
                f"The folder {self.folder} cannot be written to: {error.strerror or error}. Name "
                "another one.",
            ) from None
        with lock:
            _lock(lock, path)
            try:
                for left in self._half_written():
                    left.unlink(missing_ok=True)
                yield
            finally:
                # Not every system removes an open file.
                with suppress(OSError):
                    path.unlink()

    def _half_written(self) -> list[Path]:
        """Files that a killed run did not finish, and nobody else's."""
        places = (self.folder, self.folder / "environments", *self.folder.glob("cells/*"))
        return [
            file
            for place in places
            for file in place.glob(".*.tmp")
            if file.is_file() and _TEMPORARY.fullmatch(file.name)
        ]


def _lock(file: IO[str], path: Path) -> None:
    try:
        import fcntl
    except ImportError:  # pragma: no cover - there is no such lock on this system
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # A run that ended in between took its file away: a lock on that one keeps nobody out.
        alone = os.path.samefile(file.fileno(), path)
    except OSError:
        alone = False
    if not alone:
        raise ResultsError(
            f"Another run is writing to {path.parent}. Wait for it, or name another folder."
        )


def _read(path: Path, text: Callable[[], str]) -> Record:
    try:
        return Record.from_json(text())
    except ValueError as error:
        raise ResultsError(
            f"{path} is damaged, it cannot be read as a cell ({error}). Delete it to have that "
            "cell measured again."
        ) from None


def _about(path: Path, text: str) -> dict[str, Any]:
    try:
        about = json.loads(text)
        describe_environment(about)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ResultsError(
            f"{path} is damaged, it does not say what results were measured with ({error!r}). "
            "Take it from a copy, or delete the folder and measure again."
        ) from None
    return dict(about)


@dataclass(frozen=True)
class Results:
    """Finished cells, however they are stored, and the environments they were measured in.

    Attributes
    ----------
    records : tuple of Record
        In the order of their names.
    environments : dict
        By name.
    """

    records: tuple[Record, ...]
    environments: dict[str, dict[str, Any]]

    @classmethod
    def read(cls, folder: Path) -> Results:
        """Read a folder that a run wrote to, or one that holds its collected results.

        Parameters
        ----------
        folder : Path
            With ``cells/``, or else with ``results.jsonl``.

        Returns
        -------
        Results
        """
        records, environments = [], {}
        cells = folder / "cells"
        if cells.is_dir():
            records = [_read(path, path.read_text) for path in sorted(cells.glob("*/*.json"))]
            for path in sorted((folder / "environments").glob("*.json")):
                environments[path.stem] = _about(path, path.read_text())
            return cls(tuple(records), environments)
        path = folder / COLLECTED
        if not path.is_file():
            raise ResultsError(
                f"{folder} holds no results, neither cells/ nor {COLLECTED}. Measure some with "
                f"'python -m reproduction --all --out {folder}'."
            )
        for line in path.read_text().splitlines():
            if line.startswith('{"environment_name"'):
                about = _about(path, line)
                environments[about.pop("environment_name")] = about
            else:
                records.append(_read(path, lambda line=line: line))  # type: ignore[misc]
        return cls(tuple(records), environments)

    @cached_property
    def groups(self) -> dict[tuple[Family, str], list[Record]]:
        """Records by family of games and method."""
        found: dict[tuple[Family, str], list[Record]] = {}
        for record in self.records:
            found.setdefault((record.cell.family, record.cell.method), []).append(record)
        return found

    def of(self, cells: Iterable[Cell]) -> Results:
        """Those of some cells, in their order."""
        known = {record.cell.key: record for record in self.records}
        found = tuple(known[cell.key] for cell in cells if cell.key in known)
        used = {record.environment for record in found}
        about = {name: value for name, value in self.environments.items() if name in used}
        return Results(found, about)

    def where(self, **wanted: Any) -> Results:
        """Those whose cell, or whose game, has these values."""
        return Results(
            tuple(
                record
                for record in self.records
                if all(_value(record.cell, name) == value for name, value in wanted.items())
            ),
            self.environments,
        )

    def collect(self, folder: Path) -> Path:
        """Write all of it into one file and return its path."""
        lines = [
            json.dumps({"environment_name": name, **about}) + "\n"
            for name, about in sorted(self.environments.items())
        ]
        lines += [record.to_json() for record in self.records]
        path = folder / COLLECTED
        write_whole(path, "".join(lines))
        return path


def _value(cell: Cell, name: str) -> Any:
    return getattr(cell, name) if hasattr(cell, name) else getattr(cell.data, name, None)
