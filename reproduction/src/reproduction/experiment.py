"""An experiment: what the paper claims, and which cells show whether it holds.

It lists its cells at a scale: ``quick`` to see it work, ``machine`` for two cores and half an hour
in all, ``paper`` for the sizes and repetitions of the paper.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf

from reproduction.cell import Cell, Data, Real, Synthetic
from reproduction.environment import memory_gib

__all__ = ["ATTACKERS", "PROTOCOLS", "SCALES", "SDPS", "Experiment", "Grid"]

SCALES = ("quick", "machine", "paper")
#: What the authors' code does, and what the text says, where they differ.
PROTOCOLS = ("code", "paper")

SDPS = ("bisection", "sdp")
ATTACKERS = ("modest", "severe")


@dataclass(frozen=True)
class Grid:
    """What is run at a scale.

    Attributes
    ----------
    sizes : tuple of int
        Features of synthetic games, rows of real ones.
    seeds : int
        Games of each kind.
    once : mapping
        Size above which a method sees one game of each kind only; for synthetic games the size
        is the smaller side.
    up_to : mapping
        Size above which it is not run.
    seconds : float
        Limit on a cell's time.
    slow : mapping
        Other limits, by method.
    """

    sizes: tuple[int, ...] = ()
    seeds: int = 1
    once: Mapping[str, int] = field(default_factory=dict)
    up_to: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 120.0
    slow: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Experiment:
    """One thing to show.

    Attributes
    ----------
    id : str
        What users call it.
    title : str
        What it shows.
    claim : str
        What the paper says.
    place : str
        Where the paper says it.
    kind : {"synthetic", "real", "agreement", "curves"}
        How its cells are laid out.
    methods : tuple of str
        Solvers.
    grids : mapping
        What is run, by scale.
    gamma : float
        Strength of the providers.
    sources : tuple of str
        Sets, for real data.
    densities : tuple of float or None
        Of synthetic games; None is dense.
    ratios : tuple of float
        Rows over features, of synthetic games.
    """

    id: str
    title: str
    claim: str
    place: str
    kind: str
    methods: tuple[str, ...]
    grids: Mapping[str, Grid]
    gamma: float = 0.1
    sources: tuple[str, ...] = ()
    densities: tuple[float | None, ...] = ()
    ratios: tuple[float, ...] = ()

    def cells(self, scale: str, protocol: str = "code") -> tuple[Cell, ...]:
        """Return what is measured.

        Parameters
        ----------
        scale : {"quick", "machine", "paper"}
            How large.
        protocol : {"code", "paper"}
            Whether as in the authors' code or as in the text.

        Returns
        -------
        tuple of Cell
            Cells on the same game are neighbours.
        """
        grid = self.grids[scale]
        memory = 0.9 * memory_gib() if scale == "paper" else min(16.0, 0.7 * memory_gib())
        return tuple(
            Cell(
                self.id,
                data,
                method,
                gamma,
                tol=1e-12 if self.kind == "agreement" and method not in SDPS else 1e-9,
                seconds=grid.slow.get(method, grid.seconds),
                memory=float(round(memory)),
                expected=min(_expected(data, method), grid.slow.get(method, grid.seconds)),
            )
            for data, gamma in self._games(grid, protocol)
            for method in self.methods
            if data.size <= grid.up_to.get(method, inf)
            and (data.seed == 0 or data.size <= grid.once.get(method, inf) or self.kind == "curves")
        )

    def _games(self, grid: Grid, protocol: str) -> Iterable[tuple[Data, float]]:
        if self.kind == "synthetic":
            for density in self.densities:
                for ratio in self.ratios:
                    for n in grid.sizes:
                        for seed in range(grid.seeds):
                            m = round(ratio * n)
                            yield Synthetic(m, n, density, protocol, seed), self.gamma
        elif self.kind == "real":
            wanted = "2022" if protocol == "code" else "2022-text"
            for source in self.sources:
                for attacker in ATTACKERS:
                    for rows in grid.sizes:
                        for seed in range(grid.seeds):
                            yield Real(source, attacker, wanted, rows, seed), self.gamma
        elif self.kind == "agreement":
            for source in self.sources:
                for wanted, gamma in (("2021", 0.5), ("2022", 0.1)):
                    for attacker in ATTACKERS:
                        yield Real(source, attacker, wanted, None, 0), gamma
            # The one game on which the text of 2022 and its code differ.
            yield Real("wine", "severe", "2022-text", None, 0), 0.1
        else:
            for source in self.sources:
                for attacker in ATTACKERS:
                    for fold in range(grid.seeds):
                        yield Real(source, attacker, "2021", None, fold, grid.seeds), 0.0


def _expected(data: Data, method: str) -> float:
    """Rough seconds of a cell on two cores, for the time that remains."""
    if isinstance(data, Synthetic):
        share = 1.0 if data.density is None else data.density
        build, side = 4e-8 * data.m * data.n * share, data.size
    else:
        side = {"building": 108, "blog": 281}.get(data.source, 12)
        build = 0.5 if data.source == "blog" else 0.02
    work = {
        "socp": 1.5e-10 * side**3,
        "spectral": 1.5e-10 * side**3,
        "sdp": 1e-5 * side**2.8,
        "bisection": 5e-5 * side**2.7,
    }
    return float(0.05 + build + work.get(method, build))
