"""Fetching a file from the archive: all of it, checked, or nothing."""

from __future__ import annotations

import errno
import logging
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from spgls.base.types import Array
from spgls.datasets._source import DataFileError, Source, needs

__all__ = ["download"]

#: Seconds without a byte after which a server counts as gone.
TIMEOUT = 30


def download(source: Source, target: Path, url: str, *, progress: bool) -> Array:
    """Download a file, check it, and only then give it its name.

    Parameters
    ----------
    source : Source
        What it should be.
    target : Path
        Where it goes; its folder is made if it is missing.
    url : str
        Where it is.
    progress : bool
        Whether to show a bar on the error stream, where that is a terminal.

    Returns
    -------
    ndarray
        The table in the file.
    """
    pooch = needs("pooch", "Downloading data")
    requests = needs("requests", "Downloading data")
    tables: list[Array] = []
    by_hand = (
        f"Or get it by hand from {source.page}, put {' or '.join(source.names)} into a folder, and "
        "name that folder by SPGLS_DATA or the argument folder."
    )

    def fetch(address: str, temporary: str, _: object) -> None:
        with _bar(source.title) if progress else nullcontext(False) as bar:
            pooch.HTTPDownloader(progressbar=bar, timeout=TIMEOUT)(address, temporary, None)
        try:
            tables.append(source.read_download(Path(temporary)))
        except ValueError as error:
            raise DataFileError(
                f"What {address} sent is not the {source.title} data: {error}. Nothing was kept. "
                f"Try again later. {by_hand}"
            ) from None

    try:
        # What is there is damaged, or nobody would ask for another.
        target.unlink(missing_ok=True)
        with _quiet(pooch.get_logger()):
            # Hashes are checked in fetch, beside the values of files that have none.
            pooch.retrieve(
                url, known_hash=None, fname=target.name, path=target.parent, downloader=fetch
            )
    # Its exceptions are OSErrors too, so this one comes first.
    except requests.RequestException as error:
        raise ConnectionError(
            f"The {source.title} data could not be downloaded from {url}: {_told(error)}. "
            f"Nothing was kept. Try again with a network. {by_hand}"
        ) from None
    except OSError as error:
        # pooch puts one without a number around the system's.
        cause = error.__cause__ if isinstance(error.__cause__, OSError) else error
        raise OSError(
            cause.errno or errno.EIO,
            f"The {source.title} data could not be stored in {target.parent}: "
            f"{cause.strerror or cause}. Nothing was kept. Make room or name another folder with "
            f"cache or SPGLS_CACHE. {by_hand}",
        ) from None
    # Without a table somebody else's download came first.
    return tables[0] if tables else source.read(target)


def _told(error: Exception) -> str:
    """What went wrong, without the addresses of objects."""
    response = getattr(error, "response", None)
    if response is not None:
        return f"the server answered {response.status_code} {response.reason}"
    words = {
        "ConnectTimeout": "the server did not answer",
        "ReadTimeout": "the server stopped answering",
        "ChunkedEncodingError": "the connection broke off",
        "ConnectionError": "there is no connection to the server",
    }
    return words.get(type(error).__name__, str(error))


@contextmanager
def _quiet(logger: logging.Logger) -> Iterator[None]:
    """Keep pooch from printing: a library does not."""
    before = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(before)


class _Bar:
    """A bar of rich with the words that pooch uses of bars."""

    def __init__(self, bars: Any, task: Any) -> None:
        self._bars = bars
        self._task = task
        self._total = 0

    @property
    def total(self) -> int:
        return self._total

    @total.setter
    def total(self, size: int) -> None:
        self._total = size
        # A server that does not tell the size sends zero.
        self._bars.update(self._task, total=size or None)

    def update(self, size: int) -> None:
        self._bars.update(self._task, advance=size)

    def reset(self) -> None:
        self._bars.reset(self._task)

    def close(self) -> None:
        self._bars.refresh()


@contextmanager
def _bar(title: str) -> Iterator[_Bar | bool]:
    rich = needs("rich.progress", "The progress bar")
    console = _console()
    if not console.is_terminal:
        yield False
        return
    columns = (
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        rich.DownloadColumn(),
        rich.TimeRemainingColumn(),
    )
    with rich.Progress(*columns, console=console, transient=True) as bars:
        yield _Bar(bars, bars.add_task(f"Downloading {title}", total=None))


def _console() -> Any:
    return needs("rich.console", "The progress bar").Console(stderr=True)
