"""Threads of BLAS, kept out of the way of products that run on threads of their own.

After each call BLAS's threads wait for the next one without sleeping, on the cores that the
products need: a sparse solve on two cores takes nearly twice as long beside them. NumPy and SciPy
each bring a BLAS with threads of its own, which are in each other's way in the same manner.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

__all__ = [
    "FEW_COLUMNS",
    "all_blas_threads",
    "blas_is_alone",
    "blas_threads",
    "one_blas_thread",
    "one_numpy_thread",
]

#: Up to so many columns, decompositions are faster on one thread of BLAS than on several.
FEW_COLUMNS = 400

#: Threads of BLAS outside of :func:`one_blas_thread`; None where it is not in force.
_OUTSIDE: ContextVar[int | None] = ContextVar("threads of BLAS", default=None)


@contextmanager
def one_blas_thread(when: bool) -> Iterator[None]:
    """Keep BLAS to the calling thread, or leave it as it is."""
    if not when:
        yield
        return
    # One by one: threadpoolctl would ask each library for all that it knows of itself.
    libraries = [one for one in _controller().lib_controllers if one.user_api == "blas"]
    before = [one.get_num_threads() for one in libraries]
    outside = _OUTSIDE.get()
    token = _OUTSIDE.set(max(before, default=1) if outside is None else outside)
    try:
        for one in libraries:
            one.set_num_threads(1)
        yield
    finally:
        for one, count in zip(libraries, before, strict=True):
            one.set_num_threads(count)
        _OUTSIDE.reset(token)


def blas_is_alone() -> bool:
    """Whether :func:`one_blas_thread` is in force."""
    return _OUTSIDE.get() is not None


@contextmanager
def all_blas_threads() -> Iterator[None]:
    """Give them back for work that takes longer than waking them, such as squaring the data."""
    outside = _OUTSIDE.get()
    if outside is None:
        yield
        return
    with _controller().limit(limits=outside, user_api="blas"):
        yield


@contextmanager
def one_numpy_thread(when: bool) -> Iterator[None]:
    """Leave the cores to SciPy's BLAS, which decomposes, or leave both as they are."""
    numpy = _numpy_alone() if when else None
    if numpy is None or numpy.lib_controllers[0].num_threads == 1:
        yield
        return
    with numpy.limit(limits=1):
        yield


@contextmanager
def blas_threads(most: int) -> Iterator[None]:
    """Keep BLAS to so many threads at most, beside one that reads."""
    controller = _controller()
    before = [one.num_threads for one in controller.lib_controllers if one.user_api == "blas"]
    if max(before, default=1) <= most:
        yield
        return
    with controller.limit(limits=most, user_api="blas"):
        yield


@lru_cache(maxsize=1)
def _controller() -> Any:
    """Find the libraries once: that takes as long as a small solve."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@lru_cache(maxsize=1)
def _numpy_alone() -> Any:
    """NumPy's BLAS; None where SciPy has the same."""
    controller = _controller()
    paths = [one.filepath for one in controller.lib_controllers if one.user_api == "blas"]
    own = [path for path in paths if "numpy.libs" in path]
    return controller.select(filepath=own) if 0 < len(own) < len(paths) else None
