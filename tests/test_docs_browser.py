"""The built pages in a browser without a network: formulas, pictures, search, nothing cut off."""

from __future__ import annotations

from pathlib import Path

import pytest

from .test_report_browser import CHROMIUM, browser, visits  # noqa: F401

SITE = Path(__file__).parents[1] / "docs" / "_build" / "html"
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: `make browser`"),
    pytest.mark.skipif(not SITE.is_dir(), reason="no pages here: `make docs`"),
]

PAGES = (
    "index",
    "tutorial",
    "choosing",
    "pictures",
    "mathematics",
    "benchmarks",
    "gallery/index",
    "generated/spgls.StackelbergRegressor",
)
#: Texts that reach beyond the right edge, unless they lie in something that scrolls.
WIDE = """
() => {
  const found = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const scrolls = (node) => node && (["auto", "scroll"].includes(getComputedStyle(node).overflowX)
    ? node.tagName !== "BODY" && node.tagName !== "HTML" : scrolls(node.parentElement));
  for (let node = walk.nextNode(); node; node = walk.nextNode()) {
    if (!node.textContent.trim() || !node.parentElement.checkVisibility()) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    if (range.getBoundingClientRect().right > innerWidth + 1 && !scrolls(node.parentElement))
      found.push(node.textContent.trim().slice(0, 40));
  }
  return found;
}
"""
#: Short names in tables, and formulas with their punctuation, that take more than one line.
CUT = """
() => [...document.querySelectorAll("td code span.pre, .together")].filter((one) => {
  const tops = [...one.getClientRects()].map((part) => Math.round(part.top));
  return new Set(tops).size > 1 && (one.className === "together" || one.textContent.length <= 25);
}).map((one) => one.textContent)
"""
#: Pictures are loaded when they come into view.
BLANK = """
async () => {
  const shown = [...document.images].filter((one) => one.checkVisibility());
  for (const one of shown) { one.loading = "eager"; await one.decode().catch(() => 0); }
  return shown.filter((one) => !one.naturalWidth).map((one) => one.src);
}
"""
FLAT = """
() => [...document.querySelectorAll("math")].filter(
  (one) => one.checkVisibility() && one.getBoundingClientRect().height < 4).length
"""


@pytest.fixture
def visit(browser):  # noqa: F811
    # The theme tells what it does.
    with visits(browser, SITE, allowed=("log",)) as (run, _, _):
        yield run


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_whole(visit, name, width, scheme):
    page = visit(name, width, scheme)
    assert page.evaluate("document.documentElement.dataset.theme") == scheme
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(WIDE) == []
    assert page.evaluate(CUT) == []
    assert page.evaluate(BLANK) == []
    assert page.evaluate(FLAT) == 0
    assert (page.locator("math").count() > 0) == (name in ("choosing", "mathematics"))


def test_search_finds_a_page(visit):
    page = visit("search")
    page.goto(page.url + "?q=honest+share")
    page.locator("#search-results li a").first.wait_for()
    assert page.locator("#search-results li").count() >= 5


def test_the_header_and_the_navigation_are_filled(visit):
    page = visit("choosing", 1280)
    header = page.locator(".bd-header .navbar-nav > .nav-item").all_inner_texts()
    assert 4 <= len([text for text in header if text.strip()]) <= 6
    assert page.locator(".bd-sidebar-primary nav a").count() >= 15
