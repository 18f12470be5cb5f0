"""Files that say the same thing in several places say the same."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import spgls
from tests.oldest import constraints

ROOT = Path(__file__).parents[1]


def _read(path):
    if not (ROOT / path).exists():
        pytest.skip(f"{path} is not part of an sdist")
    return (ROOT / path).read_text(encoding="utf-8")


def test_one_version():
    assert f"\nversion: {spgls.__version__}\n" in _read("CITATION.cff")


def test_every_python_we_claim_is_tried():
    project = tomllib.loads(_read("pyproject.toml"))["project"]
    claimed = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    (tried,) = re.findall(r"python: \[(.*)\]", _read(".github/workflows/checks.yml"))
    assert set(claimed) <= set(re.findall(r"3\.\d+", tried))
    assert project["requires-python"] == f">={claimed[0]}"


def test_the_lowest_versions_are_those_of_every_dependency():
    project = tomllib.loads(_read("pyproject.toml"))["project"]
    lowest = constraints()
    for line in project["dependencies"]:
        assert line.replace(">=", "==") in lowest
    assert not [line for line in lowest if ">" in line]
