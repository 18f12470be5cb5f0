"""Where numba cannot be imported, large games have the same answers from BLAS and SciPy."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

MISSING = "import sys; sys.modules['numba'] = None\n"
#: numba says so where NumPy is newer than it knows.
TOO_OLD = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name == "numba":
            raise SystemError("Numba needs NumPy 2.0 or less")

sys.meta_path.insert(0, Refuse())
"""
#: Without numba these take one column at a time, and end elsewhere within the same tolerance:
#: a loss within 1e-13 of the best leaves a predictor within the root of that.
FREE = ("auto: predictor", "krylov: predictor")


def _python(code):
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        check=False,
        cwd=Path(__file__).parents[1],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    assert run.returncode == 0, run.stderr.decode()
    return run.stdout


@pytest.mark.long
def test_answers_are_the_same_and_nothing_is_copied():
    pytest.importorskip("numba", reason="there is nothing to compare with")
    play = "from tests.large_games import main; main()"
    compiled, wanted, _, _ = pickle.loads(_python(play))
    assert compiled
    compiled, answers, peaks, sizes = pickle.loads(_python(MISSING + play))
    assert not compiled
    for kind, games in wanted.items():
        for name, want in games.items():
            off = np.abs(answers[kind][name] - want).max() / np.abs(want).max()
            assert off <= (1e-6 if name in FREE else 1e-10), (kind, name, off)
    assert max(peaks.values()) < min(sizes.values()), (peaks, sizes)


@pytest.mark.parametrize("block", [MISSING, TOO_OLD])
def test_any_failure_of_the_import_will_do(block):
    code = (
        "import numpy as np\n"
        "from spgls.matrix import as_matrix\n"
        "a = as_matrix(np.ones((20_000, 200)))\n"
        "assert a._large and not a.threaded\n"
        "assert (a.gram(np.ones(200)) == 4e6).all()\n"
    )
    _python(block + code)
