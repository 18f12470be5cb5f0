"""Checks the built pages: every link, anchor and picture is there, and nothing needs a network.

``make docs`` runs it on ``docs/_build/html``.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: Tags whose attribute makes a browser load something at once.
LOADED = {"script": "src", "img": "src", "link": "href", "source": "src", "iframe": "src"}


class Page(HTMLParser):
    """What a page offers and what it asks for."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value for name, value in attrs if value}
        if "id" in found:
            self.anchors.add(found["id"])
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if tag in LOADED and LOADED[tag] in found:
            self.loads.append(found[LOADED[tag]])


def broken(root: Path) -> list[str]:
    """A line for each thing that is wrong."""
    # The theme's own templates lie among the static files; they are no pages.
    found = sorted(set(root.rglob("*.html")) - set(root.glob("_static/**/*.html")))
    pages = {path: Page(path) for path in found}
    wrong = []
    for path, page in pages.items():
        name = path.relative_to(root)
        wrong += [f"{name}: loads {url}" for url in page.loads if urlsplit(url).netloc]
        for url in page.links + page.loads:
            parts = urlsplit(url)
            if parts.scheme or parts.netloc:
                continue
            target = path if not parts.path else (path.parent / unquote(parts.path)).resolve()
            if not target.is_file():
                wrong.append(f"{name}: no file for {url}")
                continue
            anchors = pages[target].anchors if parts.fragment and target in pages else None
            if anchors is not None and unquote(parts.fragment) not in anchors:
                wrong.append(f"{name}: no anchor for {url}")
    return wrong


def main() -> None:
    root = Path(sys.argv[1]).resolve()
    wrong = broken(root)
    print("\n".join(wrong) if wrong else "Links, anchors and pictures: all there")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
