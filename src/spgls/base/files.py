"""Files that are written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkstemp
from typing import IO

__all__ = ["whole_file", "write_whole"]


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for writing so that nobody ever sees half of it.

    What is written goes to a new file beside it, which then takes its name. Whatever interrupts
    that, what was there before stays, and nothing else does.

    Parameters
    ----------
    path : Path
        Where to write; a device or a pipe is written to as it is.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            yield file
        return
    # What a link points to is replaced, and the link stays.
    target = path.resolve()
    handle, name = mkstemp(prefix=f".{target.name[:50]}-", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, _mode(target))
        os.replace(name, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise


def write_whole(path: Path, content: bytes) -> None:
    """Write all of a file, or nothing.

    Parameters
    ----------
    path, content : Path, bytes
        Where to write, and what.
    """
    with whole_file(path) as file:
        file.write(content)


def _mode(target: Path) -> int:
    """Permissions of the file before, or those that a new one would have."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
