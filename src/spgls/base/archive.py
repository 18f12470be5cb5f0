"""Arrays in a file that is written whole or not at all, and read only if it is what it says.

A file is a NumPy archive without pickles. Beside the arrays it holds what kind of thing it is, the
version of its format and a checksum of everything in it.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from spgls.base.files import whole_file
from spgls.base.validation import describe

__all__ = ["read_arrays", "write_arrays"]

_KIND, _VERSION, _CHECKSUM = "kind", "version", "sha256"


def write_arrays(path: Any, kind: str, version: int, arrays: Mapping[str, Any]) -> None:
    """Write arrays to a file; one that was there stays until the new one is complete.

    Parameters
    ----------
    path : str or path-like
        Where to.
    kind : str
        What they are.
    version : int
        Version of the format.
    arrays : mapping of str to array-like
        The arrays, of numbers or of text.
    """
    target = _path(path)
    whole = {name: np.asarray(value) for name, value in arrays.items()}
    whole |= {_KIND: np.array(kind), _VERSION: np.array(version)}
    whole[_CHECKSUM] = np.array(_checksum(whole))
    with whole_file(target) as file:
        np.savez(file, **dict[str, Any](whole))


def read_arrays(path: Any, kind: str, version: int) -> dict[str, np.ndarray]:
    """Read arrays that :func:`write_arrays` wrote.

    Parameters
    ----------
    path : str or path-like
        Where from.
    kind : str
        What they have to be.
    version : int
        Newest version of the format that is understood.
    """
    source = _path(path)
    foreign = f"{source} does not hold {kind}"
    with source.open("rb") as file:
        if file.read(2) != b"PK":
            raise ValueError(f"{foreign}: it is no NumPy archive. Pass a file that save() wrote.")
    try:
        # NumPy leaves a file that it opened itself open where it is no archive.
        with source.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            if not _is_of_kind(archive, kind):
                raise ValueError(f"{foreign}: something else wrote it. Pass a file of save().")
            found = int(archive[_VERSION])
            if found > version:
                raise ValueError(
                    f"{source} has format {found} of {kind}, and this version of spgls reads "
                    f"formats up to {version}. Update spgls, or save the file with this version."
                )
            arrays = {name: archive[name] for name in archive.files}
            told = str(arrays.pop(_CHECKSUM))
    except (zipfile.BadZipFile, KeyError, EOFError, OSError) as error:
        raise ValueError(f"{source} is damaged or cut short: {error}. Save it again.") from None
    if told != _checksum(arrays):
        raise ValueError(f"{source} is damaged: its checksum differs. Save it again.")
    return {name: array for name, array in arrays.items() if name not in (_KIND, _VERSION)}


def _is_of_kind(archive: Any, kind: str) -> bool:
    if not {_KIND, _VERSION, _CHECKSUM} <= set(archive.files):
        return False
    try:
        return str(archive[_KIND]) == kind
    except ValueError:  # an object, which would have to be unpickled
        return False


def _path(path: Any) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path must name a file; got {describe(path)}.")
    return Path(path)


def _checksum(arrays: Mapping[str, np.ndarray]) -> str:
    """Of names, types, shapes and contents."""
    digest = sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype.str} {array.shape};".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
