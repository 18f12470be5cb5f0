"""The pages hold together: links, named tests, the header, and what long pages need."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def entries(page: str) -> list[str]:
    """Pages that a page has in its table of contents."""
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    lines = [line for tree in TOCTREE.findall(text) for line in tree.splitlines()]
    named = [re.sub(r".*<(.*)>", r"\1", line.strip()) for line in lines]
    return [name for name in named if name and not name.startswith(":")]


def test_the_header_has_at_most_six_entries_and_every_page_a_place():
    header = entries("index")
    assert len(header) <= 6
    sections = [name for name in header if (DOCS / f"{name}.md").is_file()]
    placed = {"index", *header, *(name for section in sections for name in entries(section))}
    assert {path.stem for path in PAGES} <= placed


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_files_that_a_page_links_to_are_there(path):
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
    for target in re.findall(r"\]\((?!https?:|#)([^)\s#]+)", text):
        assert (path.parent / target).exists() or target.startswith("gallery/"), target


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_tests_that_a_page_names_are_there(path):
    text = path.read_text(encoding="utf-8")
    for file, name in re.findall(r"`(?:tests/)?(test_\w+\.py)(?:::(\w+))?`", text):
        source = (ROOT / "tests" / file).read_text(encoding="utf-8")
        assert not name or re.search(rf"def {name}\(", source), f"{file}::{name}"


@pytest.mark.parametrize("page", entries("guide"))
def test_long_pages_of_the_guide_have_a_picture_or_a_table(page):
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    shown = re.search(r"!\[|\{image\}|^\| ---", text, flags=re.MULTILINE)
    assert shown or len(text.split()) <= 900


def test_the_check_of_links_finds_what_is_wrong(tmp_path):
    spec = importlib.util.spec_from_file_location("check_links", DOCS / "check_links.py")
    check = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(check)
    (tmp_path / "a.html").write_text('<h1 id="here">A</h1><a href="b.html#there">b</a>')
    (tmp_path / "b.html").write_text('<p id="there"><a href="a.html#here">a</a><a href="#there">')
    assert check.broken(tmp_path) == []
    (tmp_path / "c.html").write_text(
        '<a href="a.html#gone"></a><img src="no.png"><script src="https://cdn.example/x.js"></script>'
    )
    assert check.broken(tmp_path) == [
        "c.html: loads https://cdn.example/x.js",
        "c.html: no anchor for a.html#gone",
        "c.html: no file for no.png",
    ]
