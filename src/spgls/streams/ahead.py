"""The next item is fetched while the last one is worked on."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event, Thread
from typing import TypeVar

__all__ = ["ahead"]

_Item = TypeVar("_Item")


def ahead(items: Iterator[_Item]) -> Iterator[_Item]:
    """Items in order, each fetched in a thread while the one before it is in use.

    A thread fetches one item and ends, so none outlives an interrupt by more than that. Closing
    this waits for it, and closes what the items come from.

    Parameters
    ----------
    items : iterator
        Used by one thread at a time.
    """
    fetch = _Fetch(items)
    try:
        while True:
            item = fetch.wait()
            if fetch.ended:
                return
            fetch = _Fetch(items)
            yield item  # type: ignore[misc]
    finally:
        fetch.settle()
        close = getattr(items, "close", None)
        if close is not None:
            close()


class _Fetch:
    """One item on its way."""

    def __init__(self, items: Iterator[object]) -> None:
        self.ended = False
        self._done = Event()
        self._items = items
        self._item: object = None
        self._error: BaseException | None = None
        self._thread = Thread(target=self._run, name="spgls read ahead", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._item = next(self._items)
        except StopIteration:
            self.ended = True
        except BaseException as error:
            self._error = error
        finally:
            self._done.set()

    def wait(self) -> object:
        """Return the item, or raise what went wrong."""
        self.settle()
        if self._error is not None:
            raise self._error
        return self._item

    def settle(self) -> None:
        """Wait for the end of the thread.

        The next one then gets the memory that this one used. An interrupted join alone would take
        the thread for ended.
        """
        self._done.wait()
        self._thread.join()
