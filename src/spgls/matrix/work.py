"""How much work a matrix is, for those who choose a method."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

__all__ = ["DeviceRates", "Work"]


@dataclass(frozen=True)
class DeviceRates:
    """How fast the device is that holds a matrix.

    Attributes
    ----------
    name : str
        What it is called.
    read : float
        Bytes a second.
    multiply : float
        Multiplications a second in products of matrices.
    answer : float
        Seconds until the smallest result is on the host.
    """

    name: str
    read: float
    multiply: float
    answer: float


@dataclass(frozen=True)
class Work:
    """What products with a matrix, and its squares, take.

    Attributes
    ----------
    rows, columns : int
        Shape.
    entries : float
        Stored entries.
    bytes : float
        Memory that one pass reads.
    by_index : bool
        Whether the entries of a product are found by index, one after another.
    square, row_square : float
        What ``A'A`` and ``AA'`` take, in multiplications of dense matrices.
    free : int
        Columns beside these whose coefficients are free.
    moments : float
        What the squares of all columns take, where some are free.
    wait : float
        Seconds that the rows of one pass take to come, whatever they are needed for.
    device : DeviceRates, optional
        Speed of the device that holds it; none where the host does.
    threads : int, optional
        Cores where the data is, if not those of this process.
    parts : int
        Sums over parts of the rows that travel to be added up, each of the size of the whole.
    room : float
        Bytes that each core has for such sums, beside the data, if not those of this process.
    place : str
        Where that is, in words, and what a pass takes there.
    """

    rows: int
    columns: int
    entries: float
    bytes: float
    by_index: bool
    square: float
    row_square: float
    free: int = 0
    moments: float = 0.0
    wait: float = 0.0
    device: DeviceRates | None = None
    threads: int | None = None
    parts: int = 0
    room: float = inf
    place: str = ""

    def of_columns(self, count: int) -> Work:
        """The same for some of the columns; a pass still reads all of them."""
        if count == self.columns and not self.free:
            return self
        share = count / max(self.columns, 1)
        return replace(
            self,
            columns=count,
            square=share**2 * self.square,
            row_square=share * self.row_square,
            free=self.columns - count,
            moments=self.square,
        )
