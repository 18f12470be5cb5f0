"""Where a line must not break: between a formula and its comma, and in a short name in a table."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

PUNCTUATION = re.compile(r"[.,;:!?)]+")
#: As long as the longest name of a class; longer names may break.
SHORT = 25


def keep_together(app: Sphinx, tree: nodes.document, name: str) -> None:
    """Put formulas and what follows them into one piece, and mark short names."""
    for formula in list(tree.findall(nodes.math)):
        after = formula.next_node(descend=False, siblings=True)
        found = PUNCTUATION.match(after.astext()) if isinstance(after, nodes.Text) else None
        if found:
            after.parent.replace(after, nodes.Text(after.astext()[found.end() :]))
            piece = nodes.inline(classes=["together"])
            formula.replace_self(piece)
            piece += [formula, nodes.Text(found.group())]
    for cell in tree.findall(nodes.entry):
        for literal in cell.findall(nodes.literal):
            if max(map(len, literal.astext().split()), default=0) <= SHORT:
                literal["classes"].append("short")


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("doctree-resolved", keep_together)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
