"""Results as pictures; matplotlib is imported where one is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from math import ceil
from statistics import fmean
from typing import Any

from reproduction import paper
from reproduction.cell import Family
from reproduction.curves import MODELS
from reproduction.store import Results
from reproduction.tables import LABELS
from reproduction.view import families, points, real_games

__all__ = ["curves_figure", "mean_curves", "ratio_figure", "times_figure"]

#: Colours that colour-blind readers can tell apart.
COLOURS = {
    "bisection": "#999999",
    "sdp": "#000000",
    "socp": "#D55E00",
    "rtr-newton": "#009E73",
    "ltrsr": "#0072B2",
    "krylov": "#CC79A7",
    "spectral": "#E69F00",
    "gltr": "#56B4E9",
    "game": "#D55E00",
    "least squares": "#0072B2",
    "ridge": "#009E73",
    "y from z alone": "#666666",
}
_PRINTED = {"socp": "socp", "rtr-newton": "rtr_newton", "ltrsr": "ltrsr"}
_WIDTH, _HEIGHT = 4.2, 3.2
#: Panels side by side: more would be too small to read on a page.
_BESIDE = 2
#: Sizes named on an axis, at most.
TICKS = 4
#: A curve at this share of the others would leave no room for them.
FAR = 1e-3


def times_figure(results: Results, methods: Sequence[str]) -> bytes:
    """Time against size, one panel for each family of games, the paper's times dashed.

    Parameters
    ----------
    results : Results
        Of one experiment.
    methods : sequence of str
        Lines to draw, with the shortest and longest time shaded.

    Returns
    -------
    bytes
        A picture in PNG.
    """
    shown = families(results)
    figure, panels = _panels(len(shown), min(len(shown), _BESIDE))
    for ax, family in zip(panels, shown, strict=True):
        for method in methods:
            found = [point for point in points(results, family, method) if point.measured]
            if not found:
                continue
            sizes, spread = [p.size for p in found], [p.spread for p in found]
            mean = [p.seconds or fmean(p.spread) for p in found]
            ax.plot(sizes, mean, marker="o", ms=3, color=COLOURS[method], label=LABELS[method])
            low, high = zip(*spread, strict=True)
            ax.fill_between(sizes, low, high, color=COLOURS[method], alpha=0.2, linewidth=0)
        own = {p.size for method in methods for p in points(results, family, method)}
        printed = paper.TIMES.get((family.density, family.ratio, family.gamma), ())
        if printed and max(own) < printed[0].n:
            printed = ()
        for method, name in _PRINTED.items():
            if printed and method in methods:
                times = [getattr(row, name) for row in printed]
                ax.plot(
                    [row.n for row in printed], times, "--", color=COLOURS[method], linewidth=0.9
                )
        if printed:
            ax.plot([], [], "--", color="0.4", linewidth=0.9, label="the paper's times")
        sizes = sorted(own | {row.n for row in printed})
        _log(ax, _title(family), "rows" if family.attacker else "features", "seconds", sizes)
    _legend(figure, panels)
    return _png(figure)


def ratio_figure(results: Results, ratios: Sequence[float] = (0.5, 1.0)) -> bytes:
    """How many times as long as others SOCP takes, over size and density."""
    others = ("ltrsr", "rtr-newton", "krylov")
    densities = sorted({f.density or 1.0 for f in families(results)}, reverse=True)
    figure, panels = _panels(len(densities), min(len(densities), _BESIDE))
    for ax, density in zip(panels, densities, strict=True):
        sizes: set[int] = set()
        for family in families(results):
            if (family.density or 1.0) != density or family.ratio not in ratios:
                continue
            style = "-" if family.ratio == ratios[0] else "--"
            socp = {p.size: p.seconds for p in points(results, family, "socp") if p.seconds}
            for method in others:
                found = {
                    p.size: socp[p.size] / p.seconds
                    for p in points(results, family, method)
                    if p.seconds and p.size in socp
                }
                sizes |= set(found)
                ax.plot(
                    list(found),
                    list(found.values()),
                    style,
                    marker="o",
                    ms=3,
                    color=COLOURS[method],
                    label=f"SOCP/{LABELS[method]}, {family.rows}",
                )
        title = "dense" if density == 1.0 else f"density {density:g}"
        _log(ax, title, "features", "ratio of times", sorted(sizes))
        ax.axhline(1.0, color="0.6", linewidth=0.8)
    _legend(figure, panels)
    return _png(figure)


def mean_curves(results: Results, source: str, attacker: str) -> dict[str, dict[str, list[float]]]:
    """Errors of each model, the mean over folds; ``gammas`` are under their own name."""
    records = [r for r in results.where(source=source, attacker=attacker).records if r.measured]
    if not records:
        return {}
    found: dict[str, dict[str, list[float]]] = {"gammas": {"gammas": records[0]["gammas"]}}
    for model in MODELS:
        found[model] = {
            kind: [
                fmean(fold)
                for fold in zip(*(r["errors"][model][kind] for r in records), strict=True)
            ]
            for kind in records[0]["errors"][model]
        }
    return found


def curves_figure(results: Results, kind: str) -> bytes:
    """Errors on held-out rows over gamma; ``attacked`` or ``honest``."""
    games = [game for game in real_games(results) if mean_curves(results, *game)]
    figure, panels = _panels(len(games), min(len(games), _BESIDE))
    for ax, (source, attacker) in zip(panels, games, strict=True):
        found = mean_curves(results, source, attacker)
        for model in MODELS:
            if kind in found[model]:
                # A ridge that is none lies on least squares.
                style = {"y from z alone": ":", "ridge": "--"}.get(model, "-")
                ax.plot(
                    found["gammas"]["gammas"],
                    found[model][kind],
                    style,
                    color=COLOURS[model],
                    label=model,
                )
        ax.set_yscale("log")
        low = min(min(found[m][kind]) for m in MODELS[:-1])
        if kind in found[MODELS[-1]] and found[MODELS[-1]][kind][0] < FAR * low:
            # Goals that are labels and a constant reveal them all.
            ax.set_ylim(bottom=low / 2)
            ax.text(0.04, 0.03, f"{MODELS[-1]}: no error", transform=ax.transAxes, fontsize=9)
        ax.set_title(f"{source}, {attacker}", loc="left", fontsize=10)
        ax.set_xlabel("gamma")
        ax.set_ylabel(f"{kind} MSE")
        ax.grid(alpha=0.25)
    _legend(figure, panels)
    return _png(figure)


def _legend(figure: Any, panels: Sequence[Any]) -> None:
    """Name every line once, below the panels, where it hides none."""
    named = {
        label: line
        for ax in panels
        for line, label in zip(*ax.get_legend_handles_labels(), strict=True)
    }
    figure.legend(
        named.values(),
        named.keys(),
        loc="outside lower center",
        ncols=min(len(named), 3 if len(panels) > 1 else 2),
        fontsize=9,
        handlelength=3.5,
        frameon=False,
    )


def _title(family: Family) -> str:
    if family.attacker:
        return f"{family.source}, {family.attacker}"
    kind = "dense" if family.density is None else f"density {family.density:g}"
    return f"{kind}, {family.rows}"


def _panels(count: int, columns: int) -> tuple[Any, list[Any]]:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError(
            "The pictures need matplotlib. Install it with: pip install 'spgls[plot]'"
        ) from None
    rows = ceil(count / columns)
    width = max(_WIDTH * columns, 4.5)
    figure = Figure(figsize=(width, _HEIGHT * rows), layout="constrained")
    return figure, [figure.add_subplot(rows, columns, k + 1) for k in range(count)]


def _log(ax: Any, title: str, x: str, y: str, sizes: Sequence[int]) -> None:
    ax.set_xscale("log")
    ax.set_yscale("log")
    if sizes:
        # Names of sizes that were run, as far apart as they can be read.
        shown = [sizes[0]]
        for size in sizes[1:]:
            if size >= shown[-1] * (sizes[-1] / sizes[0]) ** (1 / TICKS):
                shown.append(size)
        ax.set_xticks(shown, [f"{size:,}" for size in shown])
    ax.minorticks_off()
    ax.set_title(title, loc="left", fontsize=10)
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    ax.grid(alpha=0.25)


def _png(figure: Any) -> bytes:
    drawn = BytesIO()
    figure.savefig(drawn, format="png", dpi=100)
    return drawn.getvalue()
