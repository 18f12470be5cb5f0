"""Draw the figures of the benchmark pages from committed results: ``make bench-figures``.

Nothing is measured here: every number comes from a file in ``results/``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

RESULTS = Path(__file__).parent / "results"
STATIC = Path(__file__).parents[1] / "docs" / "_static"
#: Safe for all kinds of colour vision.
OURS, THEIRS = "#0072B2", ("#D55E00", "#009E73", "#CC79A7", "#E69F00")


def load(name: str) -> list[dict[str, Any]]:
    """Measurements of one page."""
    return json.loads((RESULTS / f"{name}.json").read_text())["measurements"]


def engine() -> plt.Figure:
    """How many times longer each peer takes, all cores."""
    rows = [r for r in load("engine") if "peer_tolerance" in r]
    threads = max(r["threads"] for r in rows)
    rows = [r for r in rows if r["threads"] == threads]
    names = list(dict.fromkeys(r["name"] for r in rows))
    peers = list(dict.fromkeys(r["peer"] for r in rows))
    figure, ax = plt.subplots(figsize=(7.0, 4.2), layout="constrained")
    height = 0.8 / len(peers)
    for k, (peer, colour) in enumerate(zip(peers, THEIRS, strict=False)):
        for i, name in enumerate(names):
            found = [r for r in rows if r["name"] == name and r["peer"] == peer]
            if not found:
                continue
            at = i + (k - (len(peers) - 1) / 2) * height
            ratio = found[0]["ratio"]
            if ratio is None:
                ax.text(1.05, at, "NC", va="center", fontsize=8)
                continue
            ax.barh(at, 1 / ratio, height, color=colour, label=peer if i == 0 else None)
            ax.text(1.05 / ratio, at, f"{1 / ratio:.3g}", va="center", fontsize=8)
    ax.axvline(1.0, color="0.3", linewidth=1)
    ax.set_xscale("log")
    # Room for the number beside the longest bar.
    ax.set_xlim(0.5, 3 * max(1 / r["ratio"] for r in rows if r["ratio"]))
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    ax.set_xlabel(f"time over that of spgls, {threads} threads, equal certified accuracy")
    ax.legend(frameon=False, loc="lower right")
    return figure


def growth() -> plt.Figure:
    """Time against stored entries."""
    rows = load("growth")
    points = [r for r in rows if "entries" in r]
    powers = {(r["kind"], r["side"]): r["power"] for r in rows if "power" in r}
    figure, axes = plt.subplots(1, 2, figsize=(8.0, 3.8), layout="constrained", sharey=True)
    for ax, kind in zip(axes, ("dense", "sparse"), strict=True):
        chosen = [p for p in points if p["kind"] == kind]
        entries = [p["entries"] for p in chosen]
        for side, key, colour, marker in (
            ("krylov", "ours", OURS, "o"),
            ("GALAHAD GLTR", "theirs", THEIRS[0], "s"),
        ):
            seconds = [p["comparison"][key] for p in chosen]
            power = powers[kind, side]
            label = f"{side}, power {power:.2f}"
            ax.loglog(entries, seconds, color=colour, marker=marker, label=label)
        ax.set_title(kind)
        ax.set_xlabel("stored entries")
        ax.grid(alpha=0.3)
        ax.legend(frameon=False)
    axes[0].set_ylabel("seconds")
    return figure


def paths() -> plt.Figure:
    """How many times as long the other side takes as one path."""
    rows = [r for r in load("paths") if r.get("peer") and r["ratio"] is not None]
    figure, ax = plt.subplots(figsize=(8.0, 4.4), layout="constrained")
    names = [r["name"] for r in rows]
    times = np.array([1 / r["ratio"] for r in rows])
    ax.barh(range(len(names)), times, color=OURS)
    for at, value in enumerate(times):
        # Right of the line at one, which would cross the number.
        ax.text(1.05 * max(value, 1.0), at, f"{value:.3g}", va="center", fontsize=8)
    ax.axvline(1.0, color="0.3", linewidth=1)
    ax.set_xscale("log")
    ax.margins(x=0.2)
    games = ["1 strength" if r["games"] == 1 else f"{r['games']} strengths" for r in rows]
    sides = [
        f"{r['name']}, {many}\nagainst {r['peer']}" for r, many in zip(rows, games, strict=True)
    ]
    ax.set_yticks(range(len(names)), sides, fontsize=8)
    ax.invert_yaxis()
    ax.set_xlabel("time over that of the path")
    return figure


def main() -> None:
    STATIC.mkdir(exist_ok=True)
    for draw in (engine, growth, paths):
        if not (RESULTS / f"{draw.__name__}.json").exists():
            print(f"No results: {draw.__name__}")
            continue
        path = STATIC / f"benchmark-{draw.__name__}.png"
        figure = draw()
        figure.savefig(path, dpi=150)
        plt.close(figure)
        print(f"Written: docs/_static/{path.name}")


if __name__ == "__main__":
    main()
