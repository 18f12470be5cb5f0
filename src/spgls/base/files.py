"""Files that are written whole or not at all."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from tempfile import mkstemp

__all__ = ["write_whole"]


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that nobody ever sees half of it.

    The content goes to a new file beside it, which then takes its name. Whatever interrupts that,
    what was there before stays, and nothing else does.

    Parameters
    ----------
    path : Path
        Where to write; a device or a pipe is written to as it is.
    content : bytes
        All of it.
    """
    if path.exists() and not path.is_file():
        path.write_bytes(content)
        return
    # What a link points to is replaced, and the link stays.
    target = path.resolve()
    handle, name = mkstemp(prefix=f".{target.name[:50]}-", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, _mode(target))
        os.replace(name, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise


def _mode(target: Path) -> int:
    """Permissions of the file before, or those that a new one would have."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
