"""What every test run has in common."""

from __future__ import annotations

import os
import sys

# `make test-no-numba`: Python takes None for a module that cannot be imported.
if os.environ.get("SPGLS_TEST_WITHOUT_NUMBA"):
    sys.modules["numba"] = None


def pytest_make_parametrize_id(val, argname):
    """Name bytes by their argument: an archive holds the time at which it was packed, and worker
    processes would disagree on the name of the test."""
    return argname if isinstance(val, bytes) else None
