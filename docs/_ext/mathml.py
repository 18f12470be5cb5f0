"""Formulas as MathML, which browsers draw by themselves: no script and no network.

A formula that cannot be drawn stops the build. The font is the one that ziamath ships; it is copied
into the pages when they are built.
"""

from __future__ import annotations

import re
import unicodedata
import xml.etree.ElementTree as ElementTree
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util.fileutil import copy_asset
from sphinx.writers.html5 import HTML5Translator

FONT = "STIXTwoMath-Regular.ttf"
TAG = re.compile(r"\\tag\{(.*?)\}")
#: Bars and slashes, which MathML would set apart like signs of a relation.
TIGHT = re.compile(r"<mo([^>]*)>(&#x0007C;|&#x0002F;|\||/)</mo>")
#: Infinity is a number here, not a sign, and these three are signs, not names.
MISTAKEN = {
    "<mo>&#x0221E;</mo>": "<mi>&#x0221E;</mi>",
    "<mi>&#x02AB0;</mi>": "<mo>&#x02AB0;</mo>",
    "<mi>&#x02AAF;</mi>": "<mo>&#x02AAF;</mo>",
    "<mi>&#x0007E;</mi>": "<mo>&#x0223C;</mo>",
}
#: Letters of another alphabet, which browsers know by their own characters only.
ALPHABET = re.compile(r'<mi mathvariant="(script|double-struck|sans-serif)">([A-Z])</mi>')

#: How many parts these have; a formula that lacks one is drawn wrongly, without a word.
PARTS = {"mfrac": 2, "mroot": 2, "msub": 2, "msup": 2, "msubsup": 3}


def character(found: re.Match[str]) -> str:
    """A capital letter of an alphabet; a few were named before the others."""
    name = f"{found.group(1).upper()} CAPITAL {found.group(2)}"
    try:
        letter = unicodedata.lookup(f"MATHEMATICAL {name}")
    except KeyError:
        letter = unicodedata.lookup(name)
    return f"<mi>{letter}</mi>"


def markup(latex: str, display: str) -> str:
    """The formula in MathML.

    Raises
    ------
    ValueError
        If it cannot be read, or has a command that nobody knows, which would be shown as it is.
    """
    try:
        formula = convert(latex, display=display)
    except Exception as error:
        raise ValueError(f"formula {latex!r}: {type(error).__name__} {error}".rstrip()) from error
    for part in ElementTree.fromstring(formula).iter():
        kind = part.tag.rpartition("}")[2]
        if "\\" in (part.text or ""):
            raise ValueError(f"formula {latex!r}: unknown command {part.text}")
        if len(part) != PARTS.get(kind, len(part)):
            raise ValueError(f"formula {latex!r}: an argument is missing ({kind})")
    formula = TIGHT.sub(r'<mo\1 lspace="0" rspace="0">\2</mo>', formula)
    formula = ALPHABET.sub(character, formula)
    for wrong, right in MISTAKEN.items():
        formula = formula.replace(wrong, right)
    return formula


def visit_inline(self: HTML5Translator, node: nodes.math) -> None:
    self.body.append(f'<span class="math">{markup(node.astext(), "inline")}</span>')
    raise nodes.SkipNode


def visit_block(self: HTML5Translator, node: nodes.math_block) -> None:
    latex = node.astext()
    tag = TAG.search(latex)
    self.body.append(self.starttag(node, "div", CLASS="math"))
    self.body.append(markup(TAG.sub("", latex), "block"))
    if tag:
        self.body.append(f'<span class="eqno">({tag.group(1)})</span>')
    self.body.append("</div>\n")
    raise nodes.SkipNode


def copy_font(app: Sphinx) -> None:
    if app.builder.format == "html":
        with as_file(files("ziamath") / "fonts" / FONT) as font:
            copy_asset(font, Path(app.outdir) / "_static" / "fonts")


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    app.connect("builder-inited", copy_font)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
