"""A data file: what it may be called, how it is unpacked, and how a wrong one is told."""

from __future__ import annotations

import hashlib
import lzma
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from spgls.base.types import Array

__all__ = ["DataFileError", "Source", "check_table", "csv_table", "digest", "needs"]

#: What zip and xz raise on files that are cut off, altered, locked or something else altogether.
_DAMAGED = (
    zipfile.BadZipFile,
    lzma.LZMAError,
    zlib.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
)


class DataFileError(ValueError):
    """A file is not the data that its name promises: cut off, altered, or something else.

    Examples
    --------
    >>> from spgls.datasets import DataFileError
    >>> issubclass(DataFileError, ValueError)
    True
    """


@dataclass(frozen=True)
class Source:
    """A set's file, and where it comes from.

    Parameters
    ----------
    title : str
        What messages call the data.
    names : tuple of str
        Accepted file names, in order of preference; the first is the file as it is, the others
        the same in .xz or, as a member, in .zip.
    parse : callable
        Turns the bytes of the file as it is into a table, and raises ValueError for wrong ones.
    page : str
        Where a person finds it.
    sha256 : str, optional
        Of the file as it is; None where copies differ in bytes and ``parse`` checks values.
    archive_path : str, optional
        Of the download, below the archive's address; None where there is none.
    archive_sha256 : str, optional
        Of the download, where it differs from ``sha256``.
    """

    title: str
    names: tuple[str, ...]
    parse: Callable[[bytes], Array]
    page: str
    sha256: str | None = None
    archive_path: str | None = None
    archive_sha256: str | None = None

    @property
    def download_name(self) -> str:
        """Name of the download."""
        return (self.archive_path or self.names[0]).rpartition("/")[2]

    def read(self, path: Path) -> Array:
        """Return the table in a file.

        Raises
        ------
        ValueError
            It is not this data; the message is the reason, without the name of the file.
        """
        return self._table(path.read_bytes(), path.name)

    def read_download(self, path: Path) -> Array:
        """Return the table in a download that has a temporary name still.

        Raises
        ------
        ValueError
            As :meth:`read`.
        """
        content = path.read_bytes()
        if self.archive_sha256 is not None and digest(content) != self.archive_sha256:
            raise ValueError(_other_hash(content, self.archive_sha256))
        return self._table(content, self.download_name)

    def _table(self, content: bytes, name: str) -> Array:
        content = self._unpack(content, Path(name).suffix.lower())
        self._check_hash(content)
        return self.parse(content)

    def _unpack(self, content: bytes, suffix: str) -> bytes:
        try:
            if suffix == ".xz":
                return lzma.decompress(content)
            if suffix == ".zip":
                return self._member(content)
        except _DAMAGED as error:
            raise ValueError(
                f"it cannot be unpacked ({error or type(error).__name__}), so it is cut off or "
                "damaged"
            ) from None
        return content

    def _member(self, content: bytes) -> bytes:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            for entry in archive.namelist():
                if entry.rpartition("/")[2] == self.names[0]:
                    return archive.read(entry)
        raise ValueError(f"it holds no {self.names[0]}")

    def _check_hash(self, content: bytes) -> None:
        if self.sha256 is None:
            return
        if digest(content) == self.sha256:
            return
        # Version control and mail change the ends of lines, and nothing else.
        plain = content.replace(b"\r\n", b"\n")
        if self.sha256 not in (digest(plain), digest(plain.replace(b"\n", b"\r\n"))):
            raise ValueError(_other_hash(content, self.sha256))


def csv_table(content: bytes, *, delimiter: str, header: int, shape: tuple[int, int]) -> Array:
    """Return the numbers of a text file below its header."""
    table = np.loadtxt(BytesIO(content), delimiter=delimiter, skiprows=header, ndmin=2)
    return check_table(table, shape)


def check_table(table: Array, shape: tuple[int, int]) -> Array:
    """Refuse a table of another shape, or with gaps."""
    if table.shape != shape:
        raise ValueError("it has {} rows of {} numbers, not {} of {}".format(*table.shape, *shape))
    wrong = np.argwhere(~np.isfinite(table))
    if len(wrong):
        row, column = wrong[0]
        raise ValueError(
            f"row {row + 1} of the data has {table[row, column]} in column {column + 1}"
        )
    return table


def digest(content: bytes) -> str:
    """SHA-256, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def needs(module: str, what: str, how: str = "'spgls[data]'") -> Any:
    """Import an optional package, or say how to get it."""
    try:
        return import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise ImportError(f"{what} needs {package}. Install it with: pip install {how}") from None


def _other_hash(content: bytes, expected: str) -> str:
    return f"its {len(content)} bytes have the SHA-256 {digest(content)}, not {expected}"
