"""Where a data file is: in a folder that the user names, in the cache, or in the archive."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from spgls.base.types import Array
from spgls.base.validation import check_flag, describe
from spgls.datasets._download import download
from spgls.datasets._source import DataFileError, Source, needs

__all__ = ["ARCHIVE", "find"]

#: The archive of the University of California, Irvine.
ARCHIVE = "https://archive.ics.uci.edu"


def find(
    source: Source, folder: Any, *, cache: Any, base_url: Any, progress: Any
) -> tuple[Path, Array]:
    """Return a set's file and the table in it.

    Parameters
    ----------
    source : Source
        What to look for.
    folder : str, path or None
        The only place to look in, if given. Else the folder that ``SPGLS_DATA`` names comes
        first, then the cache, then the archive.
    cache : str, path or None
        Where downloads are kept; by default what ``SPGLS_CACHE`` names, else the system's folder
        for such files.
    base_url : str or None
        Address of the archive; by default what ``SPGLS_UCI_URL`` names, else :data:`ARCHIVE`.
    progress : bool
        Whether a download shows a bar.
    """
    progress = check_flag(progress, "progress")
    if folder is not None:
        place = _folder(folder, "folder")
        path = _in_folder(source, place)
        if path is None:
            raise FileNotFoundError(f"folder={str(place)!r} holds no {_put(source)}")
        return path, _read(source, path)
    named = os.environ.get("SPGLS_DATA")
    if named:
        path = _in_folder(source, _folder(named, "SPGLS_DATA"))
        if path is not None:
            return path, _read(source, path)
    if source.archive_path is None:
        where = (
            f"SPGLS_DATA={named!r} holds no"
            if named
            else "Neither folder nor SPGLS_DATA names a folder that holds a"
        )
        raise FileNotFoundError(f"{where} {_put(source)} This set is not downloaded.")
    url = _address(base_url)
    target = _cache_folder(cache) / source.download_name
    if target.is_file():
        # The copy here is ours, so a damaged one is replaced.
        with suppress(ValueError):
            return target, source.read(target)
    return target, download(source, target, f"{url}/{source.archive_path}", progress=progress)


def _read(source: Source, path: Path) -> Array:
    """Read a file that the user put there."""
    try:
        return source.read(path)
    except ValueError as error:
        raise DataFileError(
            f"{path} is not the {source.title} data: {error}. Get it again from {source.page}."
        ) from None


def _put(source: Source) -> str:
    """What is missing, and where to get it."""
    return (
        f"file of the {source.title} data ({' or '.join(source.names)}). Get "
        f"{source.download_name} from {source.page}, put it in a folder, and name that folder "
        "with folder or SPGLS_DATA."
    )


def _in_folder(source: Source, folder: Path) -> Path | None:
    return next((folder / name for name in source.names if (folder / name).is_file()), None)


def _folder(value: Any, name: str) -> Path:
    path = _path(value, name)
    if not path.is_dir():
        trouble = "is not a folder" if path.exists() else "does not exist"
        raise FileNotFoundError(
            f"{name} must name a folder that holds data files; {str(path)!r} {trouble}."
        )
    return path


def _cache_folder(value: Any) -> Path:
    name = "cache"
    if value is None:
        name, value = "SPGLS_CACHE", os.environ.get("SPGLS_CACHE")
    if not value and name == "SPGLS_CACHE":
        return Path(needs("pooch", "Downloading data").os_cache("spgls"))
    path = _path(value, name)
    if path.exists() and not path.is_dir():
        raise NotADirectoryError(f"{name} must name a folder; {str(path)!r} is a file.")
    return path


def _path(value: Any, name: str) -> Path:
    if not isinstance(value, str | os.PathLike) or not str(value):
        raise TypeError(f"{name} must be the path of a folder; got {describe(value)}.")
    return Path(value).expanduser().absolute()


def _address(value: Any) -> str:
    name = "base_url"
    if value is None:
        name, value = "SPGLS_UCI_URL", os.environ.get("SPGLS_UCI_URL") or ARCHIVE
    if not isinstance(value, str):
        raise TypeError(
            f"{name} must be None or an address such as {ARCHIVE}; got {describe(value)}."
        )
    if not value.startswith(("http://", "https://")):
        raise ValueError(f"{name} must be an address such as {ARCHIVE}; got {describe(value)}.")
    return value.rstrip("/")
