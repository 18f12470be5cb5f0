"""How far one pass over a source has come."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Reading", "size_of"]


@dataclass(frozen=True)
class Reading:
    """What a stream tells after each block that it read.

    Attributes
    ----------
    read : int
        Which pass over the source this is, from one.
    rows : int
        Rows read so far in it.
    bytes : float
        Bytes read so far in it: of the files, or of the numbers where there are no files.
    total : float or None
        Bytes of a whole pass; None in the first where nobody knows.
    seconds : float
        Seconds since it began.
    """

    read: int
    rows: int
    bytes: float
    total: float | None
    seconds: float

    @property
    def remaining(self) -> float | None:
        """Seconds until the end of this pass at the speed so far; None where nobody knows."""
        if self.total is None or not self.bytes:
            return None
        return max(self.total - self.bytes, 0.0) * self.seconds / self.bytes

    def __str__(self) -> str:
        done = size_of(self.bytes)
        speed = f", {size_of(self.bytes / self.seconds)}/s" if self.seconds > 0.0 else ""
        if self.total is None or self.remaining is None:
            return f"read {self.read} of the data, {done}{speed}"
        left = f"{self.remaining:.0f} s left in this read"
        return f"read {self.read} of the data, {done} of {size_of(self.total)}{speed}, {left}"


def size_of(count: float) -> str:
    """Bytes in words."""
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= unit:
            return f"{count / unit:.3g} {name}"
    return f"{count:.0f} bytes"
