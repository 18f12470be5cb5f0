"""Products of a bordered matrix, and those that are started before anybody asks for them.

The first steps of a Krylov method follow from its start alone. Where the data is on a device that
works by itself, they are begun at once, and the host looks at results as they come.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeAlias

from spgls.base.types import Array, Vector
from spgls.base.vector import dot

__all__ = ["Begun", "Bordered", "Telling", "begun_of"]


class Bordered(NamedTuple):
    """``H = [[scale A'A, border A't], [border t'A, corner]]``, and the start of a Krylov space.

    Attributes
    ----------
    scale, border, corner : float
        The parts of ``H``; ``t`` is the second of two targets.
    first, second : float
        The start is so often ``A'`` of the first target and of the second.
    last : float
        Its last entry.
    """

    scale: float
    border: float
    corner: float
    first: float
    second: float
    last: float


#: Tells of the matrix once products with the targets are under way; None where it is another one.
Telling: TypeAlias = Callable[[], Bordered | None]


class Begun(Protocol):
    """Products that are under way."""

    def cross(self) -> tuple[Array, Vector | None]:
        """``A'`` of both targets, and squared lengths of the columns where they came with it."""
        ...

    def total(self) -> float:
        """Sum of the squares of all entries."""
        ...

    def product(self, told: Bordered, v: Vector) -> Vector | None:
        """``H v`` for the next column of the space, if that was begun; else None.

        The column that was multiplied may differ from ``v`` by rounding: ``v`` becomes it. The
        result is there until everything is closed, and nobody writes to it.
        """
        ...

    def close(self) -> None:
        """Wait for what nobody asked for."""
        ...


def in_two_reads(matrix: Any, v: Vector, target: Vector, times: float) -> tuple[Vector, float]:
    """``A'r`` and ``target'r`` for ``r = A v + times target``."""
    r = matrix.apply(v)
    r += times * target
    return matrix.cross(r), dot(target, r)


def begun_of(matrix: Any, targets: Array, told: Telling) -> Begun | None:
    """Begin with targets, then with what is told, where the data can; else None."""
    own = getattr(matrix, "begin_krylov", None)
    begun: Begun | None = None if own is None else own(targets, told)
    return begun
