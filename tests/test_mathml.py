"""Formulas of the pages: what they become in MathML, and what stops the build."""

from __future__ import annotations

import importlib.util
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

pytest.importorskip("latex2mathml")
pytest.importorskip("sphinx")

DOCS = Path(__file__).parents[1] / "docs"
FORMULA = re.compile(r"\$\$(.+?)\$\$|(?<![\\$])\$([^$\n]+(?:\n[^$\n]+)?)\$(?!\$)", re.DOTALL)


@pytest.fixture(scope="module")
def mathml():
    spec = importlib.util.spec_from_file_location("mathml", DOCS / "_ext" / "mathml.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def drawn(mathml):
    """Tags and letters of a formula, as nested tuples."""

    def plain(node):
        tag = node.tag.rpartition("}")[2]
        inner = tuple(plain(child) for child in node)
        return (tag, *inner) if inner else (tag, node.text)

    def draw(latex):
        (row,) = ElementTree.fromstring(mathml.markup(latex, "inline"))
        return tuple(plain(node) for node in row)

    return draw


def test_a_fraction_has_two_parts(drawn):
    part = ("mrow", ("mi", "a")), ("mrow", ("mi", "b"))
    assert drawn(r"\frac{a}{b}") == (("mfrac", *part),)


def test_indices_and_powers(drawn):
    x, i, two = ("mi", "x"), ("mi", "i"), ("mn", "2")
    assert drawn("x_i") == (("msub", x, i),)
    assert drawn("x^2") == (("msup", x, two),)
    assert drawn("x_i^2") == (("msubsup", x, i, two),)


def test_a_matrix_is_a_table_in_brackets(drawn):
    def row(*letters):
        return ("mtr", *(("mtd", ("mi", letter)) for letter in letters))

    opened, table, closed = drawn(r"\begin{pmatrix}a&b\\c&d\end{pmatrix}")
    assert (opened, closed) == (("mo", "("), ("mo", ")"))
    assert table == ("mtable", row("a", "b"), row("c", "d"))


@pytest.mark.parametrize(
    ("latex", "letter"),
    [(r"\mathcal B", "ℬ"), (r"\mathcal L", "ℒ"), (r"\mathbb R", "ℝ"), (r"\mathsf S", "𝖲")],
)
def test_letters_of_other_alphabets_are_characters(drawn, latex, letter):
    assert drawn(latex) == (("mi", letter),)


def test_bars_and_slashes_stand_close(mathml):
    marks = re.findall(r"<mo([^>]*)>", mathml.markup("|x|/2", "inline"))
    assert len(marks) == 3
    assert all('lspace="0" rspace="0"' in mark for mark in marks)


def test_infinity_is_a_number(drawn):
    assert drawn(r"\infty") == (("mi", "∞"),)


@pytest.mark.parametrize(
    ("latex", "sign"), [(r"\ge", "≥"), (r"\succeq", "⪰"), (r"\preceq", "⪯"), (r"\sim", "∼")]
)
def test_relations_are_signs_so_that_browsers_leave_room(drawn, latex, sign):
    assert drawn(f"a{latex} b") == (("mi", "a"), ("mo", sign), ("mi", "b"))


@pytest.mark.parametrize(
    ("latex", "words"),
    [
        (r"\nosuchcommand{x}", r"unknown command \nosuchcommand"),
        (r"1 + \nu_\gama", r"unknown command \gama"),
        (r"\frac{a}", "an argument is missing (mfrac)"),
        (r"\begin{pmatrix}a", "MissingEndError"),
        ("x_", "MissingSuperScriptOrSubscriptError"),
        ("{", "NoAvailableTokensError"),
    ],
)
def test_what_cannot_be_drawn_is_an_error_with_the_formula(mathml, latex, words):
    with pytest.raises(ValueError, match="formula ") as caught:
        mathml.markup(latex, "inline")
    assert repr(latex) in str(caught.value)
    assert words in str(caught.value)


def test_every_formula_of_the_pages_can_be_drawn(mathml):
    found = 0
    for path in sorted(DOCS.glob("*.md")):
        text = re.sub(r"^```.*?^```$|`[^`\n]*`", "", path.read_text(), flags=re.M | re.S)
        for block, inline in FORMULA.findall(text):
            mathml.markup(mathml.TAG.sub("", block or inline), "block" if block else "inline")
            found += 1
    assert found > 500
