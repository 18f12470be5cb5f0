"""Every example of the gallery runs; those on the papers' data where SPGLS_DATA is set."""

from __future__ import annotations

import os
import runpy
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))
#: What the gallery must show, and a word of its code by which it does.
TOPICS = {
    "data_insurance": ("Actions", "levers"),
    "data_wine": ("Population",),
    "house_prices": ("StackelbergRegressor",),
    "unknown_strength": ("Between",),
    "estimate_gamma": ("estimate_gamma",),
    "decisions": ("StackelbergClassifier",),
    "from_a_file": ("stream",),
    "on_a_cluster": ("LocalCluster",),
    "sparse_text": ("scipy.sparse",),
}


def test_the_gallery_is_there():
    assert len(EXAMPLES) >= 8
    for topic, words in TOPICS.items():
        text = EXAMPLES[0].with_name(f"plot_{topic}.py").read_text(encoding="utf-8")
        assert all(word in text for word in words), topic
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
