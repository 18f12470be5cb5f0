"""The page of examples says what its code prints, where SPGLS_DATA names a folder with the data."""

from __future__ import annotations

import contextlib
import io
import os
import re
from pathlib import Path

import pytest
import scipy

PAGE = Path(__file__).parents[1] / "docs" / "examples.md"
LEVERS, RANGES, ACTIONS = map(PAGE.with_name, ("levers.md", "ranges.md", "actions.md"))
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.]*\w)")


def blocks(page: str) -> list[tuple[str, str]]:
    """Pieces of code, and what the page says each prints: nothing, unless a text block follows."""
    found: list[tuple[str, str]] = []
    for kind, content in BLOCK.findall(page):
        if kind == "python":
            found.append((content, ""))
        else:
            code, said = found.pop()
            assert not said, "a text block must follow the code that prints it"
            found.append((code, content))
    return found


def run(page: str) -> list[str]:
    """What each piece of code prints, all in one namespace."""
    space: dict[str, object] = {}
    printed = []
    for at, (code, _) in enumerate(blocks(page)):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(code, f"{PAGE.name}, block {at}", "exec"), space)
        printed.append(out.getvalue())
    return printed


def unit(number: str) -> float:
    """One in the last digit."""
    return 10.0 ** -len(number.partition(".")[2])


def differences(said: str, printed: str) -> list[str]:
    """Lines that differ by more than spaces and a unit in the last digit of a number."""
    wrong = []
    ours, theirs = said.splitlines(), printed.splitlines()
    for at in range(max(len(ours), len(theirs))):
        a, b = (lines[at] if at < len(lines) else "" for lines in (ours, theirs))
        same = re.sub(r"\s+", " ", NUMBER.sub("#", a)) == re.sub(r"\s+", " ", NUMBER.sub("#", b))
        pairs = zip(NUMBER.findall(a), NUMBER.findall(b), strict=same)
        if not same or any(abs(float(x) - float(y)) > 1.001 * unit(x) for x, y in pairs):
            wrong.append(f"page:    {a}\nprinted: {b}")
    return wrong


def test_differences_are_found():
    assert not differences("model  0.25  -1\n", "model 0.26   0\n")
    assert differences("model 0.25\n", "model 0.27\n")
    assert differences("model 0.25\n", "other 0.25\n")
    assert differences("model 0.25\n", "model 0.25\nmore\n")
    assert differences("model 0.25\n", "model 0.25 0.25\n")


def test_every_block_is_read():
    page = PAGE.read_text(encoding="utf-8")
    assert page.count("\n```") == 2 * len(BLOCK.findall(page))


@pytest.fixture(scope="module")
def page() -> str:
    pytest.importorskip("pandas")
    pytest.importorskip("openpyxl")
    if not os.environ.get("SPGLS_DATA"):
        pytest.skip("SPGLS_DATA does not name a folder with the data")
    return PAGE.read_text(encoding="utf-8")


@pytest.mark.long
@pytest.mark.skipif(
    tuple(map(int, scipy.__version__.split(".")[:2])) < (1, 17),
    reason="a baseline of the page, least squares on dependent columns, turns on LAPACK's rounding",
)
def test_the_page_says_what_its_code_prints(page):
    printed = run(page)
    wrong = [
        line
        for (_, said), out in zip(blocks(page), printed, strict=True)
        for line in differences(said, out)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(("path", "number"), [(LEVERS, 3), (RANGES, 2), (ACTIONS, 5)])
def test_a_page_on_one_subject_says_what_its_code_prints(path, number, page):
    text = path.read_text(encoding="utf-8")
    found = list(zip(blocks(text), run(text), strict=True))
    assert len(found) == number
    wrong = [line for (_, said), out in found for line in differences(said, out)]
    assert not wrong, "\n".join(wrong)


def scores(printed: str, name: str) -> tuple[float, float]:
    """R2 of a model on honest and on attacked rows, in a table of the page."""
    line = next(line for line in printed.splitlines() if line.startswith(name))
    _, honest, _, attacked = (float(number) for number in line[len(name) :].split())
    return honest, attacked


@pytest.mark.slow
def test_other_folds_say_the_same(page):
    other = page.replace("random_state=0", "random_state=1")
    assert other != page
    tables = [out for out in run(other) if "StackelbergRegressorCV" in out]
    *tables, whole_economy = tables
    assert len(tables) == 6
    for harmless, harmful in zip(tables[::2], tables[1::2], strict=True):
        honest, attacked = scores(harmless, "LinearRegression")
        assert attacked >= honest
        honest, attacked = scores(harmful, "LinearRegression")
        game_honest, game_attacked = scores(harmful, "StackelbergRegressorCV")
        assert attacked < honest
        assert game_attacked > attacked + 0.02
        assert honest - 0.05 < game_honest <= honest
    assert scores(whole_economy, "RidgeCV") > scores(whole_economy, "StackelbergRegressorCV")
