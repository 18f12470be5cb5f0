"""A cell: one method on one game, the unit that is measured, limited, stored and resumed."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, TypeAlias

__all__ = ["Cell", "Data", "Family", "Real", "Synthetic", "UnavailableError"]


@dataclass(frozen=True)
class Synthetic:
    """A generated game.

    Attributes
    ----------
    m, n : int
        Rows and features.
    density : float or None
        Share of entries that are not zero; None for dense games.
    protocol : {"paper", "code"}
        Where the authors' code and text differ: features scaled to [0, 1] and normal noise in the
        code, neither in the text.
    seed : int
        Of the generator.
    """

    m: int
    n: int
    density: float | None
    protocol: str
    seed: int

    @property
    def source(self) -> str:
        """Where the rows come from."""
        return "dense" if self.density is None else "sparse"

    @property
    def size(self) -> int:
        """What the cost of a decomposition depends on: the smaller side."""
        return min(self.m, self.n)

    @property
    def name(self) -> str:
        """Short name, part of a file's."""
        kind = self.source if self.density is None else f"sparse{self.density:g}"
        return f"{kind}-{self.m}x{self.n}-{self.protocol}-s{self.seed}"


@dataclass(frozen=True)
class Real:
    """A game on rows of a real set.

    Attributes
    ----------
    source : {"wine", "insurance", "building", "blog"}
        Which set.
    attacker : {"modest", "severe"}
        What the providers want.
    protocol : {"2021", "2022", "2022-text"}
        Whose goals and units.
    rows : int or None
        Random rows to fit on, the others being for the test; None for all.
    seed : int
        Of the choice, or the number of the fold.
    folds : int or None
        Number of folds, where the choice is a fold.
    """

    source: str
    attacker: str
    protocol: str
    rows: int | None
    seed: int
    folds: int | None = None

    @property
    def size(self) -> int:
        """Rows, zero for all."""
        return self.rows or 0

    @property
    def name(self) -> str:
        """Short name, part of a file's."""
        part = (
            f"fold{self.seed}of{self.folds}" if self.folds else f"{self.rows or 'all'}-s{self.seed}"
        )
        return f"{self.source}-{self.attacker}-{self.protocol}-{part}"


Data: TypeAlias = Synthetic | Real


class Family(NamedTuple):
    """Games that differ in size only.

    ``density`` is None, and ``attacker`` empty, where there is no such thing.
    """

    source: str
    gamma: float
    density: float | None
    ratio: float
    attacker: str

    @property
    def rows(self) -> str:
        """How the number of rows depends on that of features."""
        return f"m = {self.ratio:g}n".replace(" 1n", " n")


@dataclass(frozen=True)
class Cell:
    """What to measure, and how long and large that may become.

    Attributes
    ----------
    experiment : str
        Whose cell it is.
    data : Synthetic or Real
        The game.
    method : str
        A solver, or ``"curves"`` for errors over many strengths.
    gamma : float
        Strength of the providers; ignored by curves.
    tol : float
        Relative gap asked of the solver.
    repeats : int
        Timed calls, fewer where they are slow.
    seconds : float
        Limit on the time of the calls.
    memory : float
        Limit on the memory of the process, in GiB.
    expected : float
        Guess of the seconds it takes, for the time that remains; no part of what is measured.
    """

    experiment: str
    data: Data
    method: str
    gamma: float
    tol: float = 1e-9
    repeats: int = 3
    seconds: float = 120.0
    memory: float = 16.0
    expected: float = 0.1

    def to_dict(self) -> dict[str, Any]:
        """Return what is measured as plain values."""
        plain = asdict(self)
        del plain["expected"]
        return plain

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Cell:
        """Return the cell of such values."""
        data = dict(plain["data"])
        kind: type[Data] = Real if "attacker" in data else Synthetic
        return cls(**{**plain, "data": kind(**data)})

    @property
    def family(self) -> Family:
        """Those games of which this is one."""
        data = self.data
        if isinstance(data, Synthetic):
            return Family(data.source, self.gamma, data.density, data.m / data.n, "")
        return Family(data.source, self.gamma, None, 0.0, data.attacker)

    @property
    def key(self) -> str:
        """Name of its file: readable, and different for whatever differs."""
        text = json.dumps(self.to_dict(), sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()[:10]
        name = f"{self.data.name}-{self.method}-g{self.gamma:g}"
        return re.sub(r"[^A-Za-z0-9.-]", "_", name) + f"-{digest}"


class UnavailableError(Exception):
    """A cell cannot be measured here and now; that is no result, so the cell stays open.

    Parameters
    ----------
    need : str
        The set or the solver that is not there.
    reason : str
        Why, and what to do.
    """

    def __init__(self, need: str, reason: str) -> None:
        super().__init__(reason)
        self.need = need
