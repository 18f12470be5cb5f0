"""The tutorial's commands give the tutorial's numbers, on either of its tables."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.test_docs_examples import blocks, differences, run

PAGE = Path(__file__).parents[1] / "docs" / "tutorial.md"
TAB = re.compile(r"^:::\{tab-item\} (\w+)\n(.*?)^:::$", re.MULTILINE | re.DOTALL)


def only(table: str) -> str:
    """The page as read by someone who chose this table."""
    text = PAGE.read_text(encoding="utf-8")
    return TAB.sub(lambda tab: tab.group(2) if tab.group(1) == table else "", text)


@pytest.mark.parametrize("table", ["Diabetes", "Insurance"])
def test_the_tutorial_says_what_its_code_prints(table, monkeypatch):
    pytest.importorskip("matplotlib")
    pytest.importorskip("pandas")
    if table == "Insurance" and not os.environ.get("SPGLS_DATA"):
        pytest.skip("SPGLS_DATA does not name a folder with the data")
    monkeypatch.setenv("MPLBACKEND", "Agg")
    page = only(table)
    found = list(zip(blocks(page), run(page), strict=True))
    assert len(found) == 8
    wrong = [line for (_, said), out in found for line in differences(said, out)]
    assert not wrong, "\n".join(wrong)
