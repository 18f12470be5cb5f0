"""How fast a device is, measured once."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from time import perf_counter
from typing import Any

import numpy as np

from spgls.base.devices import Place
from spgls.matrix.work import DeviceRates

__all__ = ["measured_rates"]

#: Entries of the vector that is read, and order of the matrices that are multiplied.
_READ, _ORDER = 2**24, 2048
_TURNS = 3


@cache
def measured_rates(place: Place) -> DeviceRates:
    """What a device reads and multiplies in a second, and how long it takes to answer."""
    xp = place.xp

    def made(*shape: int) -> Any:
        return xp.ones(shape, dtype=xp.float64, device=place.device)

    one, long, square = made(1), made(_READ), made(_ORDER, _ORDER)
    answer = _least(lambda: place.get(one + one))
    read = _least(lambda: place.get(xp.sum(long)[None])) - answer
    multiply = _least(lambda: place.get((square @ square)[:1, 0])) - answer
    tick = 1e-6
    return DeviceRates(
        name=str(place.device),
        read=8.0 * _READ / max(read, tick),
        multiply=float(_ORDER) ** 3 / max(multiply, tick),
        answer=max(answer, tick),
    )


def _least(job: Callable[[], np.ndarray]) -> float:
    job()
    times = []
    for _ in range(_TURNS):
        start = perf_counter()
        job()
        times.append(perf_counter() - start)
    return min(times)
