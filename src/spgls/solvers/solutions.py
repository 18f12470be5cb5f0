"""Solutions of one game against different providers, as one sequence with arrays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, overload

import numpy as np

from spgls.base.types import Array, Vector
from spgls.game.providers import Population
from spgls.solvers.solution import Solution, Stats, Status

__all__ = ["Path"]

#: Rows that are printed at either end of a path.
_SHOWN = 5


@dataclass(frozen=True, eq=False, repr=False)
class Path(Sequence[Solution]):
    """Solutions of one game against different providers, in the order asked for.

    By position a :class:`Solution`, by slice another path. Arrays hold one entry, or row, for each
    solution.

    Attributes
    ----------
    games : tuple of float and Population
        Whom each game was played against.
    solutions : tuple of Solution
        Their solutions. ``stats`` of each tell what the path had cost when it was found.
    stats : Stats
        What the whole path cost, of which a slice is a part.
    """

    games: tuple[float | Population, ...]
    solutions: tuple[Solution, ...]
    stats: Stats

    def __len__(self) -> int:
        return len(self.solutions)

    @overload
    def __getitem__(self, key: int) -> Solution: ...
    @overload
    def __getitem__(self, key: slice) -> Path: ...
    def __getitem__(self, key: int | slice) -> Solution | Path:
        if isinstance(key, slice):
            return Path(self.games[key], self.solutions[key], self.stats)
        return self.solutions[key]

    @cached_property
    def gammas(self) -> np.ndarray:
        """Strengths; an array of objects if there are populations among them."""
        if any(isinstance(game, Population) for game in self.games):
            games = np.empty(len(self.games), dtype=object)
            games[:] = self.games
            return games
        return np.array(self.games, dtype=np.float64)

    @cached_property
    def coef(self) -> Array:
        """Coefficients, a row for each solution."""
        return np.stack([solution.coef for solution in self]) if len(self) else np.zeros((0, 0))

    @cached_property
    def intercept(self) -> Vector:
        """Intercepts."""
        return self._numbers("intercept")

    @cached_property
    def objective(self) -> Vector:
        """Learner's objectives."""
        return self._numbers("objective")

    @cached_property
    def multiplier(self) -> Vector:
        """Multipliers."""
        return self._numbers("multiplier")

    @cached_property
    def relative_gap(self) -> Vector:
        """Certified gaps, in units of R2."""
        return np.array([solution.certificate.relative_gap for solution in self])

    @cached_property
    def alpha(self) -> Array:
        """``q/gamma``; against populations a row for each, with a column for each of its groups.

        Rows of populations with fewer groups than others end with nan.
        """
        if self.gammas.dtype != object:
            return np.array([np.ravel(solution.alpha)[0] for solution in self], dtype=np.float64)
        rows = [np.atleast_1d(solution.alpha) for solution in self]
        alpha = np.full((len(rows), max(map(len, rows))), np.nan)
        for row, entries in zip(alpha, rows, strict=True):
            row[: len(entries)] = entries
        return alpha

    @cached_property
    def pull(self) -> Vector:
        """Share of the gap to their goals that providers close, the mean over a population."""
        pull = []
        for game, solution in zip(self.games, self.solutions, strict=True):
            shares = game.shares if isinstance(game, Population) else (1.0,)
            pull.append(float(np.dot(shares, np.atleast_1d(solution.pull))))
        return np.array(pull)

    @cached_property
    def status(self) -> tuple[Status, ...]:
        """How each solve ended."""
        return tuple(solution.status for solution in self)

    def _numbers(self, name: str) -> Vector:
        return np.array([getattr(solution, name) for solution in self], dtype=np.float64)

    def to_dict(self) -> dict[str, list[Any]]:
        """Columns of the table, for data frames of any kind; coefficients are in :attr:`coef`."""
        return {
            "gamma": list(self.games),
            "objective": self.objective.tolist(),
            "pull": self.pull.tolist(),
            "intercept": self.intercept.tolist(),
            "status": [status.value for status in self.status],
            "relative_gap": self.relative_gap.tolist(),
            "kind": [solution.certificate.kind for solution in self],
        }

    def to_dataframe(self) -> Any:
        """Return the table as a pandas data frame, a row for each solution; it needs pandas."""
        try:
            from pandas import DataFrame
        except ImportError:
            raise ImportError(
                "to_dataframe needs pandas. Install it with: pip install pandas. "
                "to_dict() gives the same columns without it."
            ) from None
        return DataFrame(self.to_dict())

    def __repr__(self) -> str:
        names = ", ".join(dict.fromkeys(solution.solver for solution in self)) or "nobody"
        ends = Counter(status.value for status in self.status)
        told = ", ".join(f"{count} {end}" for end, count in ends.items()) or "none"
        head = (
            f"Path of {len(self)} games by {names}: {told}; "
            f"{self.stats.passes:g} passes, {self.stats.seconds:.3g} s"
        )
        table = [["gamma", "objective", "pull", "relative gap", "status"]]
        rows = list(range(len(self)))
        if len(rows) > 2 * _SHOWN + 1:
            rows = [*rows[:_SHOWN], -1, *rows[-_SHOWN:]]
        for i in rows:
            if i < 0:
                table.append(["..."] * len(table[0]))
                continue
            game, solution = self.games[i], self.solutions[i]
            gap = f"{solution.certificate.relative_gap:.2g} {solution.certificate.kind}"
            name = str(game) if isinstance(game, Population) else f"{game:.4g}"
            numbers = [f"{solution.objective:.8g}", f"{self.pull[i]:.4g}"]
            table.append([name, *numbers, gap, solution.status.value])
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in table
        ]
        return "\n".join([head, *lines])
