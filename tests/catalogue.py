"""The library's catalogue as tests play it, and how its answers are derived.

Where SPGLS_DATA names a folder with the data, the small real sets are in it too. ``python -m
tests.catalogue --write`` derives the answers anew.
"""

from __future__ import annotations

import argparse
import os
import time
from functools import cache
from pathlib import Path

from spgls.datasets import Problem, catalogue, load_problem
from spgls.datasets._catalogue import stored_answers

from .oracles.answers import derive, write
from .real_games import REAL

FOLDER = os.environ.get("SPGLS_DATA")
CATALOGUE = catalogue() | dict.fromkeys(REAL if FOLDER else (), ("real data",))


@cache
def problem(name: str) -> Problem:
    """A game, built once for all tests."""
    if name not in REAL:
        return load_problem(name)
    options = {"fit_intercept": False, "feature_cost": None, "sample_weight": None}
    return Problem(name, ("real data",), *REAL[name](Path(FOLDER or "")), options)


def main() -> None:
    parser = argparse.ArgumentParser(description="Derive the answers of the catalogue.")
    parser.add_argument("--write", action="store_true", help="store them, for tests to compare")
    parser.add_argument("names", nargs="*", help="problems to derive; all of them by default")
    arguments = parser.parse_args()
    # Answers to real data stay, also where the folder that holds it is not set.
    answers = {n: answer for n, answer in stored_answers().items() if n in CATALOGUE or n in REAL}
    for name in arguments.names or CATALOGUE:
        start = time.perf_counter()
        answers[name] = answer = derive(problem(name))
        seconds = time.perf_counter() - start
        alpha = float(answer.smallest_alpha or "inf")
        print(
            f"{name:28} {answer.how:9} {answer.status:10} sign {answer.sign!s:>4} "
            f"alpha {alpha:9.3g} R2 {1 - float(answer.value) / float(answer.label_spread):.6f} "
            f"{seconds:6.2f} s"
        )
    if arguments.write:
        write({name: answers[name] for name in sorted(answers)})


if __name__ == "__main__":
    main()
