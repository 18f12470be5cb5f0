"""What every test run has in common."""

from __future__ import annotations

import os
import sys

# `make test-no-numba`: Python takes None for a module that cannot be imported.
if os.environ.get("SPGLS_TEST_WITHOUT_NUMBA"):
    sys.modules["numba"] = None  # type: ignore[assignment]
