"""Games with known answers on which solvers are tested, each hard for a reason of its own."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from spgls.base.types import Vector
from spgls.base.validation import check_choice
from spgls.datasets._entries import ENTRIES, TAGS, Entry

__all__ = ["Answer", "Problem", "catalogue", "load_problem", "stored_answers"]


@dataclass(frozen=True)
class Answer:
    """The truth about one problem.

    Numbers are decimal strings of up to 30 digits.

    Attributes
    ----------
    value : str
        Least loss, or the infimum where no predictor is best.
    alpha : str or None
        Alpha of the best predictor; None unless it is the only one.
    smallest_alpha : str or None
        Least alpha of the best predictors; None where no predictor is best.
    status : {"unique", "several", "unattained"}
        How many predictors are best.
    sign : int or None
        Sign of the multiplier; None where there is no game.
    curvature : str
        ``h``: a predictor whose loss is ``g`` too high has a pull within ``sqrt(g/h)`` of the
        optimal one.
    label_size, label_spread : str
        Weighted sum of squares of the labels, before and after the projection away from intercept
        and immutable features.
    how : {"exact", "certified"}
        By an oracle of 50 and more digits that shares no code with the library, or, for the larger
        problems, by the library itself with a proof to 1e-12 of ``label_spread``.
    sha256 : str
        Fingerprint of the data that this is the answer to.
    """

    value: str
    alpha: str | None
    smallest_alpha: str | None
    status: str
    sign: int | None
    curvature: str
    label_size: str
    label_spread: str
    how: str
    sha256: str


@dataclass(frozen=True, eq=False)
class Problem:
    """Arguments of one call of :func:`spgls.solve`, and what is known about them.

    Attributes
    ----------
    name : str
        Its name in the catalogue.
    tags : tuple of str
        What makes it difficult, in words that problems share.
    X, y, z, gamma
        The game, as in :func:`spgls.solve`.
    options : dict
        ``fit_intercept``, ``feature_cost`` and ``sample_weight``.
    description : str
        What is special about this one.
    """

    name: str
    tags: tuple[str, ...]
    X: Any
    y: Vector
    z: Vector
    gamma: float
    options: dict[str, Any]
    description: str = ""

    @property
    def arguments(self) -> dict[str, Any]:
        """Everything as keyword arguments of :func:`spgls.solve`."""
        return {"X": self.X, "y": self.y, "z": self.z, "gamma": self.gamma, **self.options}

    @property
    def answer(self) -> Answer:
        """The truth, in decimal strings."""
        return stored_answers()[self.name]

    @property
    def optimum(self) -> float:
        """Least loss of any predictor, or the infimum where none is best."""
        return float(self.answer.value)

    def __repr__(self) -> str:
        m, n = self.X.shape
        return (
            f"Problem({self.name!r}: {m} x {n}, {', '.join(self.tags)}; "
            f"optimum {self.optimum:.10g}, {self.answer.status})"
        )


def _build(entry: Entry) -> Problem:
    """Build a problem anew."""
    # Its own numbers, unless a seed says that variants share theirs.
    seed = zlib.crc32(entry.name.encode()) if entry.seed is None else entry.seed
    X, y, z, gamma, *rest = entry.builder(np.random.default_rng(seed), **entry.arguments)
    options = dict.fromkeys(("fit_intercept", "feature_cost", "sample_weight"))
    options |= {"fit_intercept": False} | (rest[0] if rest else {})
    said = " ".join((entry.builder.__doc__ or "").split("\n\n")[0].split())
    return Problem(entry.name, entry.tags, X, y, z, gamma, options, said)


def catalogue(tag: str | None = None) -> dict[str, tuple[str, ...]]:
    """Names of games with known answers, and tags that say what makes each difficult.

    Parameters
    ----------
    tag : str, optional
        Only those with this tag.

    Returns
    -------
    dict
        Tags by name, for :func:`load_problem`.

    Examples
    --------
    >>> from spgls.datasets import catalogue
    >>> catalogue("one column")
    {'one-column': ('one column',), 'one-entry': ('one row', 'one column', 'hard case')}
    >>> len(catalogue()) >= 60
    True
    """
    if tag is not None:
        check_choice(tag, "tag", tuple(TAGS))
    return {entry.name: entry.tags for entry in ENTRIES if tag is None or tag in entry.tags}


def load_problem(name: str) -> Problem:
    """Build a game of the catalogue, the same bits on every machine.

    Parameters
    ----------
    name : str
        A name from :func:`catalogue`.

    Returns
    -------
    Problem

    Examples
    --------
    >>> from spgls import solve
    >>> from spgls.datasets import load_problem
    >>> problem = load_problem("hard-wide")
    >>> problem.tags, problem.answer.status
    (('hard case', 'wide'), 'several')
    >>> solution = solve(**problem.arguments)
    >>> bool(abs(solution.objective - problem.optimum) <= 1e-9)
    True
    """
    entries = {entry.name: entry for entry in ENTRIES}
    return _build(entries[check_choice(name, "name", tuple(entries))])


@cache
def stored_answers() -> dict[str, Answer]:
    """Answers by name; those to real data as well, which the catalogue does not hold."""
    text = files("spgls.datasets").joinpath("_answers.json").read_text(encoding="utf-8")
    return {name: Answer(**entry) for name, entry in json.loads(text).items()}
