"""Blocks that a function yields anew with every call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import scipy.sparse as sp

from spgls.base.frames import column_names
from spgls.base.validation import as_numbers, describe
from spgls.streams.source import Columns, Mark, select

__all__ = ["CallSource"]


class CallSource:
    """A function without parameters that returns blocks of rows, all of them in every call."""

    seekable = False
    rate = 1e9
    rows: int | None = None
    nbytes: float | None = None

    def __init__(self, function: Callable[[], Iterable[Any]]) -> None:
        self._function = function
        first = next(self._blocks(), None)
        if first is None:
            raise ValueError(f"source must give at least one row; {function!r} gave none.")
        self._names = column_names(first)
        self._width = int(first.shape[1])

    @property
    def names(self) -> list[str] | None:
        """Names of the columns, if blocks are frames."""
        return self._names

    @property
    def width(self) -> int:
        """Number of columns."""
        return self._width

    def read(self, columns: Columns, start: int) -> Iterator[Any]:
        """Blocks of some columns, from the first row on."""
        for number, block in enumerate(self._blocks()):
            if block.shape[1] != self._width:
                raise ValueError(
                    f"blocks must have equally many columns; block {number} has {block.shape[1]}, "
                    f"the first has {self._width}."
                )
            names = column_names(block)
            if names != self._names:
                raise ValueError(
                    f"blocks must have the same columns in the same order; block {number} has "
                    f"{names}, the first has {self._names}."
                )
            if not sp.issparse(block):
                block = as_numbers(block, f"block {number}", "a table of numbers")
            yield select(block, columns)

    def mark(self) -> Mark:
        """There are no files to look at."""
        return {}

    def _blocks(self) -> Iterator[Any]:
        """Blocks with rows, as they come but sparse ones by rows."""
        blocks = self._function()
        if not isinstance(blocks, Iterable) or isinstance(blocks, str | bytes | dict):
            raise TypeError(
                "source must return blocks of rows, such as a generator of arrays; "
                f"{self._function!r} returned {describe(blocks)}."
            )
        for number, block in enumerate(blocks):
            if sp.issparse(block):
                block = block.tocsr()
            elif not hasattr(block, "shape"):
                block = as_numbers(block, f"block {number}", "a table of numbers")
            if len(block.shape) != 2:
                raise ValueError(
                    f"blocks must have two dimensions; block {number} has shape {block.shape}."
                )
            if block.shape[0]:
                yield block
