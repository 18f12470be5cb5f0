"""Draws the figures of these pages: ``make figures``, with SPGLS_DATA naming the data folder."""

from __future__ import annotations

import csv
import os
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

from spgls import Population, solve

STATIC = Path(__file__).parent / "_static"


def red_wine(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    with (folder / "winequality-red.csv").open() as file:
        _, *rows = csv.reader(file, delimiter=";")
    table = np.array(rows, dtype=float)
    X, y = table[:, :-1], table[:, -1]
    return (X - X.min(axis=0)) / np.ptp(X, axis=0), y


def population_tradeoff(folder: Path) -> Path:
    """Honest and attacked error on red wine over the strategic share the model is fitted for."""
    X, y = red_wine(folder)
    z, gamma = np.maximum(y, 6.0), 50.0
    shares = np.r_[np.linspace(0.0, 0.98, 50), 0.985, 0.99, 0.995, 0.998, 0.999, 1.0]
    honest, attacked = [], []
    for share in shares:
        found = solve(X, y, z, Population.mixed(gamma, honest=1 - share), fit_intercept=True)
        plain = X @ found.coef + found.intercept
        alpha = float(found.coef @ found.coef) / gamma
        honest.append(np.mean((plain - y) ** 2))
        attacked.append(np.mean(((plain + alpha * z) / (1 + alpha) - y) ** 2))
    slope, constant = np.polyfit(z, y, 1)
    figure, ax = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
    ax.plot(shares, honest, label="on honest rows", color="tab:blue")
    ax.plot(shares, attacked, label="on rows that all moved", color="tab:red")
    alone = np.mean((slope * z + constant - y) ** 2)
    ax.axhline(alone, color="0.5", linestyle=":", label="y from z alone")
    ax.set_yscale("log")
    ax.set_ylim(0.2, 50.0)
    ax.set_yticks([0.3, 0.5, 1, 2, 5, 10, 30], ["0.3", "0.5", "1", "2", "5", "10", "30"])
    ax.minorticks_off()
    ax.set_xlabel("strategic share the model is fitted for")
    ax.set_ylabel("mean squared error")
    ax.set_title("Red wine, goal max(y, 6), gamma 50")
    ax.grid(alpha=0.3)
    ax.legend()
    path = STATIC / "population-tradeoff.png"
    figure.savefig(path, dpi=150)
    return path


def main() -> None:
    folder = os.environ.get("SPGLS_DATA")
    if not folder:
        sys.exit("Set SPGLS_DATA to the folder that holds winequality-red.csv.")
    STATIC.mkdir(exist_ok=True)
    print(f"Written: {population_tradeoff(Path(folder))}")


if __name__ == "__main__":
    main()
