"""Whether there is a compiler for the products with large data: the one place that decides it.

numba is the fast way and a dependency, but it lags behind new releases of Python and NumPy, and
some systems have none. Without it BLAS and SciPy take the data in blocks, with the same answers.
"""

from __future__ import annotations

from functools import lru_cache

__all__ = ["compiler_works"]


@lru_cache(maxsize=1)
def compiler_works() -> bool:
    """Whether numba can be imported; asked only where the data is large, because it is slow."""
    try:
        import numba.extending  # noqa: F401
    except Exception:  # where it does not fit, numba raises SystemError and others as well
        return False
    return True
