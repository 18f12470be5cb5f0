"""What all pictures share: axes to draw in, colours, scales and their labels."""

from __future__ import annotations

import math
from collections.abc import Iterable
from importlib import import_module
from typing import Any, Self

import numpy as np

from spgls.base.types import Array, Vector
from spgls.base.validation import check_choice, describe

__all__ = [
    "ATTACKED",
    "COLOURS",
    "GOAL",
    "GREY",
    "HONEST",
    "METRICS",
    "Display",
    "coefficient_axis",
    "error_axis",
    "in_metric",
    "label_plainly",
    "labels",
    "open_axes",
    "parameter_axis",
    "plain",
    "short",
    "tidy",
]

#: Colours that colour-blind readers can tell apart, dark enough for lines on white.
COLOURS = ("#0072B2", "#D55E00", "#00866A", "#A8458A", "#56B4E9", "#B8860B", "#333333")
HONEST, ATTACKED, GREY = COLOURS[0], COLOURS[1], "#666666"
#: The line that every attacked error must be judged against.
GOAL: dict[str, Any] = {"color": GREY, "linestyle": ":", "linewidth": 1.8}
METRICS = {"mse": "mean squared error", "r2": "R2"}
#: An axis whose ends differ by this factor is logarithmic.
_WIDE = 10.0
#: Coefficients of models that differ by this factor are drawn by their logarithms.
_WIDE_COEFFICIENTS = 100.0
#: R2 falls without bound; below this nobody asks how far.
_WORST = -1.0
_SIZE = (6.4, 4.0)
_LETTERS = 20


class Display:
    """A picture: data, and ``plot`` that draws it and keeps the figure and its axes."""

    figure_: Any
    ax_: Any
    axes_: Any

    def _drawn(self, axes: list[Any]) -> Self:
        self.figure_ = axes[0].figure
        self.ax_ = axes[0]
        self.axes_ = np.array(axes, dtype=object)
        return self


def open_axes(
    ax: Any, rows: int = 1, columns: int = 1, size: tuple[float, float] = _SIZE, **how: Any
) -> list[Any]:
    """Axes as they were given, or those of a new figure."""
    if ax is None:
        try:
            subplots = import_module("matplotlib.pyplot").subplots
        except ImportError:
            raise ImportError(
                "plot needs matplotlib. Install it with: pip install 'spgls[plot]'"
            ) from None
        _, made = subplots(rows, columns, figsize=size, layout="constrained", squeeze=False, **how)
        return list(made.flat)
    given = list(np.ravel(ax)) if isinstance(ax, np.ndarray | list | tuple) else [ax]
    wanted = "matplotlib axes" if rows * columns == 1 else f"{rows * columns} matplotlib axes"
    for one in given:
        if not hasattr(one, "axhline"):
            raise TypeError(f"ax must be {wanted} or None; got {describe(one)}.")
    if len(given) != rows * columns:
        raise ValueError(f"ax must be {wanted} for this picture, or None; got {len(given)}.")
    return given


def tidy(ax: Any) -> None:
    """A faint grid behind, and no box around."""
    ax.grid(alpha=0.25)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)


def short(name: str) -> str:
    """A name that leaves room for the picture: without its middle, if it is long."""
    return name if len(name) <= _LETTERS else f"{name[: _LETTERS // 2]}…{name[-_LETTERS // 2 :]}"


def plain(value: float, digits: int = 2) -> str:
    """A number as people write it: no ``1e+06``."""
    return _power(value, digits) if _needs_power(value) else _decimal(value, digits)


def labels(values: Iterable[float]) -> list[str]:
    """Numbers of one axis, all in decimals or all in powers of ten."""
    numbers = [float(value) for value in values]
    write = _power if any(map(_needs_power, numbers)) else _decimal
    return [write(number, 2) for number in numbers]


def _needs_power(value: float) -> bool:
    return value != 0.0 and not 1e-3 <= abs(value) < 99_999.5


def _decimal(value: float, digits: int) -> str:
    return np.format_float_positional(float(f"{value:.{digits}g}"), trim="-")


def _power(value: float, digits: int) -> str:
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    mantissa = mantissa.rstrip("0").removesuffix(".") if "." in mantissa else mantissa
    power = f"10^{{{int(exponent)}}}"
    if mantissa in ("1", "-1"):
        return f"${mantissa[:-1]}{power}$"
    return f"${mantissa}\\times {power}$" if value else "0"


def _is_wide(values: Iterable[float]) -> bool:
    finite = [value for value in values if math.isfinite(value)]
    return bool(finite) and min(finite) > 0.0 and max(finite) >= _WIDE * min(finite)


def _logarithmic(axis: Any, values: Iterable[float]) -> None:
    """Make an axis logarithmic, with labels that can be read and enough of them."""
    ticker = import_module("matplotlib.ticker")
    (axis.axes.set_xscale if axis.axis_name == "x" else axis.axes.set_yscale)("log")
    finite = [value for value in values if math.isfinite(value)]
    subs = (1.0, 2.0, 5.0) if max(finite) < 300.0 * min(finite) else (1.0,)
    axis.set_major_locator(ticker.LogLocator(subs=subs, numticks=8))
    axis.set_minor_formatter(ticker.NullFormatter())
    label_plainly(axis, finite)


def label_plainly(axis: Any, values: Iterable[float]) -> None:
    """Label the ticks of an axis that shows such values as people write numbers."""
    ticker = import_module("matplotlib.ticker")
    write = _power if any(map(_needs_power, values)) else _decimal
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: write(value, 2)))


def parameter_axis(ax: Any, values: Vector, label: str, *, strong: bool) -> None:
    """A horizontal axis of strengths, or of some other parameter."""
    if _is_wide(values):
        _logarithmic(ax.xaxis, values)
    elif values.min() == 0.0 and _is_wide(positive := values[values > 0.0]):
        least, most = float(positive.min()), float(positive.max())
        ax.set_xscale("symlog", linthresh=least)
        ax.set_xlim(-0.3 * least, 2.0 * most)
        label_plainly(ax.xaxis, positive)
    ax.set_xlabel(f"{label} (left: strong)" if strong else label)


def coefficient_axis(axis: Any, coef: Array, ticks: int) -> None:
    """An axis of coefficients, one row a model: logarithmic where models differ much."""
    largest = np.abs(coef).max(axis=1)
    positive = largest[largest > 0.0]
    if not len(positive) or _WIDE_COEFFICIENTS * positive.min() > positive.max():
        return
    ticker = import_module("matplotlib.ticker")
    width = float(positive.min()) / 4.0
    scale = axis.axes.set_xscale if axis.axis_name == "x" else axis.axes.set_yscale
    scale("asinh", linear_width=width)
    axis.set_major_locator(ticker.AsinhLocator(width, numticks=ticks))
    label_plainly(axis, (float(positive.min()), float(positive.max())))


def in_metric(error: Any, metric: str, variance: float) -> Any:
    """Mean squared errors in the metric that was asked for."""
    check_choice(metric, "metric", tuple(METRICS))
    if metric == "mse":
        return error
    if not variance > 0.0:
        raise ValueError("y must vary for metric 'r2'; it is constant. Pass metric='mse'.")
    return 1.0 - np.asarray(error) / variance


def error_axis(ax: Any, metric: str, values: Iterable[float]) -> None:
    """A vertical axis of errors: logarithmic where they differ much, R2 cut off far below zero."""
    shown = [float(value) for value in values]
    label = METRICS[metric]
    if metric == "mse" and _is_wide(shown):
        _logarithmic(ax.yaxis, shown)
    elif metric == "r2" and min(shown) < _WORST:
        ax.set_ylim(_WORST, max(0.05, max(shown) + 0.05))
        label = f"{label} (cut off at {_WORST:g})".replace("-", "−")
    ax.set_ylabel(label)
