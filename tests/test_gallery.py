"""Every example of the gallery runs; those on the papers' data where SPGLS_DATA is set."""

from __future__ import annotations

import os
import runpy
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


def test_the_gallery_is_there():
    assert len(EXAMPLES) >= 8
    assert all(path.name.startswith("plot_") for path in EXAMPLES), "sphinx-gallery runs plot_*.py"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path, capsys):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pytest.importorskip("pandas")
    if "cluster" in path.name:
        pytest.importorskip("distributed")
    if path.name.startswith("plot_data_") and not os.environ.get("SPGLS_DATA"):
        pytest.skip("SPGLS_DATA does not name a folder with the data")
    pyplot.switch_backend("Agg")
    try:
        runpy.run_path(str(path))
        shown = capsys.readouterr().out or pyplot.get_fignums()
    finally:
        pyplot.close("all")
    assert shown, "an example prints or draws something"
