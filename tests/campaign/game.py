"""A game of the campaign: plain arrays, who plays, and how the library is given them."""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from spgls import Actions, Population

from .places import put

#: How X can be handed over. "halves" stores every entry as two halves of it, which add up exactly.
STORES = ("dense", "fortran", "float32", "csr", "csc", "coo", "halves")


class People(NamedTuple):
    """Strengths and shares of the groups; an infinite strength is an honest group."""

    gammas: tuple[float, ...]
    shares: tuple[float, ...] = (1.0,)

    @property
    def single(self) -> bool:
        """Whether it is the game of the paper: one strength, nobody honest."""
        return len(self.gammas) == 1 and math.isfinite(self.gammas[0])

    def as_given(self) -> Any:
        """What users pass as gamma."""
        return self.gammas[0] if self.single else Population(self.gammas, self.shares)


@dataclass(frozen=True, eq=False)
class Game:
    """Data, people and options; ``more`` are the people of a path, or the candidates of folds."""

    X: np.ndarray
    y: np.ndarray
    z: np.ndarray
    people: People
    fit_intercept: bool = False
    cost: np.ndarray | None = None
    #: What a unit of each action does to the columns; ``cost`` is then that of each action.
    effects: np.ndarray | None = None
    weight: np.ndarray | None = None
    ridge: float = 0.0
    store: str = "dense"
    #: Another library than NumPy, on whose device X lies.
    library: str = ""
    more: tuple[People, ...] = ()
    family: str = field(default="", kw_only=True)
    level: str = field(default="", kw_only=True)
    seed: int = field(default=0, kw_only=True)
    number: int = field(default=0, kw_only=True)

    def but(self, **changes: Any) -> Game:
        """The same game with something else in it."""
        return replace(self, **changes)

    @property
    def single(self) -> bool:
        """Whether every solver knows it."""
        return self.people.single and self.ridge == 0.0

    @property
    def table(self) -> Any:
        """X in the container in which it is handed over."""
        given = stored(self.X, self.store)
        return put(self.library, given) if self.library else given

    @property
    def targets(self) -> tuple[np.ndarray, np.ndarray]:
        """Labels and goals in the precision in which they are handed over."""
        kind = np.float32 if self.store == "float32" else np.float64
        return self.y.astype(kind), self.z.astype(kind)

    @property
    def handed_exactly(self) -> bool:
        """Whether the container holds every number of the game as it is."""
        y, z = self.targets
        table = self.table
        X = table.toarray() if sp.issparse(table) else table
        pairs = ((X, self.X), (y, self.y), (z, self.z))
        return all(np.array_equal(given, meant) for given, meant in pairs)

    def options(self) -> dict[str, Any]:
        """Keywords of solve and solve_path, the defaults left out."""
        given: dict[str, Any] = {}
        if self.fit_intercept:
            given["fit_intercept"] = True
        if self.effects is not None:
            given["feature_cost"] = Actions(self.effects, cost=self.cost)
        elif self.cost is not None:
            given["feature_cost"] = self.cost
        if self.weight is not None:
            given["sample_weight"] = self.weight
        if self.ridge:
            given["ridge"] = self.ridge
        return given

    def dice(self, *purpose: int) -> np.random.Generator:
        """Randomness that depends on the number of the game and on what it is for."""
        return np.random.default_rng([self.seed, self.number, *purpose])

    @property
    def fingerprint(self) -> str:
        """A short hash of all numbers: equal games have equal ones."""
        parts = [self.X, self.y, self.z, self.cost, self.weight]
        parts += [] if self.effects is None else [self.effects]
        raw = b"|".join(b"" if part is None else part.tobytes() for part in parts)
        rest = (self.people, self.fit_intercept, self.ridge, self.store, self.more, self.X.shape)
        return f"{zlib.crc32(raw + repr(rest).encode()):08x}"


def stored(X: np.ndarray, store: str) -> Any:
    """X in one of the containers."""
    if store == "dense":
        return X
    if store == "fortran":
        return np.asfortranarray(X)
    if store == "float32":
        return X.astype(np.float32)
    if store in ("csr", "csc", "coo"):
        return getattr(sp, f"{store}_array")(X)
    row, column = np.nonzero(X)
    halves = np.tile(X[row, column] / 2, 2)
    once = sp.coo_array((halves, (np.tile(row, 2), np.tile(column, 2))), shape=X.shape)
    # Built by hand: conversion of coordinates would add the duplicates up.
    order = np.argsort(once.row, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(once.row, minlength=X.shape[0]))])
    return sp.csr_array((once.data[order], once.col[order], starts), shape=X.shape)
