"""A type checker accepts right calls and refuses wrong ones; defaults are in the signature."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

import spgls
from spgls import Floor, Population, StackelbergRegressor

ROOT = Path(__file__).parents[1]
CALLS = ROOT / "tests" / "typing_calls.py"


@pytest.mark.slow
def test_mypy_refuses_exactly_the_wrong_calls():
    pytest.importorskip("mypy", reason="mypy is not installed")
    lines = CALLS.read_text().splitlines()
    marked = {number for number, line in enumerate(lines, 1) if line.endswith("# wrong")}
    assert len(marked) == 12
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", CALLS],
        cwd=ROOT,
        env=os.environ | {"MYPYPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    refused = re.findall(r"^(\S+?):(\d+): error", run.stdout, re.MULTILINE)
    assert {name for name, _ in refused} == {"tests/typing_calls.py"}, run.stdout + run.stderr
    assert {int(number) for _, number in refused} == marked, run.stdout


def test_the_package_says_that_it_is_typed():
    assert (Path(spgls.__file__).parent / "py.typed").exists()


@pytest.mark.parametrize(
    "function",
    [getattr(spgls, name) for name in spgls.__all__ if inspect.isfunction(getattr(spgls, name))],
    ids=lambda function: function.__name__,
)
def test_public_functions_say_what_they_take(function):
    # A model is anything with coef_ and predict, which no type can say; best_response takes one in
    # place of coefficients.
    untyped = {name for name, kind in function.__annotations__.items() if kind == "Any"}
    assert untyped <= {"model", "models", "coef", "return"}


def test_one_half_is_the_default_honest_share_in_the_signature():
    assert inspect.signature(StackelbergRegressor).parameters["honest_share"].default == 0.5
    assert StackelbergRegressor().get_params()["honest_share"] == 0.5


def test_a_population_takes_the_default_honest_share_and_no_other():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = X @ [1.0, 2.0, 0.0] + rng.normal(size=40)
    told = {"goal": Floor(1.0)}
    mixed = Population.mixed(0.5, honest=0.3)
    plain = StackelbergRegressor(mixed, **told).fit(X, y)
    for share in (0.5, np.float64(0.5), None):
        model = clone(StackelbergRegressor(mixed, honest_share=share, **told)).fit(X, y)
        assert model.coef_.tolist() == plain.coef_.tolist()
    for share in (0.3, 0, [0.5], "half"):
        with pytest.raises(ValueError, match=r"^honest_share must stay 0.5.*with a Population"):
            StackelbergRegressor(mixed, honest_share=share, **told).fit(X, y)


def test_no_honest_share_is_one_half():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(30, 2)), rng.normal(size=30)
    none, half = (
        StackelbergRegressor(1.0, honest_share=share, goal=Floor(0.5)).fit(X, y)
        for share in (None, 0.5)
    )
    assert none.coef_.tolist() == half.coef_.tolist()
