"""Threads of BLAS, kept out of the way of products that run on threads of their own.

After each call BLAS's threads wait for the next one without sleeping, on the cores that the
products need: a sparse solve on two cores takes nearly twice as long beside them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

__all__ = ["one_blas_thread"]


@contextmanager
def one_blas_thread(when: bool) -> Iterator[None]:
    """Keep BLAS to the calling thread, or leave it as it is."""
    if not when:
        yield
        return
    with _controller().limit(limits=1, user_api="blas"):
        yield


@lru_cache(maxsize=1)
def _controller() -> Any:
    """Find the libraries once: that takes as long as a small solve."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
