"""Cross-validated scores over a grid of parameters, and the choice among them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.pipeline import Pipeline

from spgls import StackelbergRegressorCV
from spgls.base.types import Vector
from spgls.base.validation import check_choice, describe
from spgls.display._figure import (
    COLOURS,
    GREY,
    METRICS,
    Display,
    open_axes,
    parameter_axis,
    plain,
    tidy,
)

__all__ = ["CVDisplay"]

#: Words for parameters, those that belong on the horizontal axis first.
_WORDS = {"gamma": "gamma", "honest_share": "honest share", "ridge": "ridge"}
_REGRET = "worst_regret"
_RESULTS = "results must be a fitted search or its cv_results_"


@dataclass(eq=False, repr=False)
class CVDisplay(Display):
    """How a score depends on the parameters that a cross-validation chose from.

    Make one with :meth:`from_cv_results`.

    Parameters
    ----------
    params : dict of str to ndarray of shape (k,)
        Values of each parameter, one for each candidate.
    scores, stderr : ndarray of shape (k,)
        Mean over the folds, greater is better, and its standard error.
    best : int
        Number of the candidate that was chosen.
    metric : str
        What the scores are, for the vertical axis. ``neg_`` means minus an error, and the error is
        drawn.

    Attributes
    ----------
    figure_, ax_, axes_ : matplotlib Figure, Axes and array of Axes
        What :meth:`plot` has drawn.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from spgls import Floor, Population
    >>> from spgls.display import CVDisplay
    >>> from spgls import StackelbergRegressorCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> world = Population.mixed(2e6, honest=0.5)
    >>> model = StackelbergRegressorCV([2e5, 2e6, 2e7], world=world, goal=Floor(250))
    >>> display = CVDisplay.from_cv_results(model.fit(X, y))
    >>> float(display.params["gamma"][display.best])
    2000000.0
    >>> display.plot()  # doctest: +SKIP
    """

    params: dict[str, Vector]
    scores: Vector
    stderr: Vector
    best: int
    metric: str = "score"

    @classmethod
    def from_cv_results(cls, results: Any, *, score: str | None = None) -> Self:
        """Read what a search has found.

        Parameters
        ----------
        results : StackelbergRegressorCV, search or dict
            Fitted, or its ``cv_results_``; scikit-learn's searches have the same, and of a
            pipeline its last step is taken.
        score : str, optional
            Name of the score in columns such as ``mean_test_r2`` and ``mean_test_score_world0``,
            where there are several. In several worlds the default is the regret in the worst,
            which the choice is made by.

        Returns
        -------
        CVDisplay
        """
        last = results[-1] if isinstance(results, Pipeline) else results
        table = getattr(last, "cv_results_", last)
        if isinstance(results, type) or not isinstance(table, Mapping):
            hint = " Call its fit first." if hasattr(results, "fit") else ""
            raise TypeError(f"{_RESULTS}; got {describe(results)}.{hint}")
        names = [key.removeprefix("mean_test_") for key in table if key.startswith("mean_test_")]
        if not names:
            raise ValueError(f"{_RESULTS}; it has no column mean_test_score.")
        if score is None and len(names) > 1 and _REGRET in table:
            scores = -np.asarray(table[_REGRET], dtype=np.float64)
            means = np.array([table[f"mean_test_{name}"] for name in names])
            worst = np.argmax(means.max(axis=1, keepdims=True) - means, axis=0)
            spread = np.array([_stderr(table, name) for name in names])
            stderr, metric = spread[worst, np.arange(len(scores))], f"neg_{_REGRET}"
        else:
            if score is None and len(names) > 1 and "score" not in names:
                raise ValueError(f"score is needed, one of {', '.join(names)}.")
            chosen = score or ("score" if "score" in names else names[0])
            check_choice(chosen, "score", tuple(names))
            scores = np.asarray(table[f"mean_test_{chosen}"], dtype=np.float64)
            stderr, metric = _stderr(table, chosen), _metric(results, chosen)
            if metric == "score" and scores.max() < 0.0:
                metric = "neg_error"
        best = getattr(results, "best_index_", None)
        if best is None:
            rank = table.get(f"rank_test_{score or 'score'}", table.get("rank_test_score"))
            best = np.nanargmax(scores) if rank is None else np.argmin(rank)
        return cls(_read_params(table), scores, stderr, int(best), metric)

    def plot(self, ax: Any = None, *, x: str | None = None, **kw: Any) -> Self:
        """Draw scores with a standard error either way; it needs matplotlib, ``spgls[plot]``.

        A ring marks the choice, a dotted line what is a standard error worse than the best.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        x : str, optional
            Parameter of the horizontal axis, by default the one of most values; there is a line
            for each combination of the others.
        **kw
            For the lines, as in ``Axes.errorbar``.

        Returns
        -------
        CVDisplay
            Itself.
        """
        counts = {name: len(np.unique(values)) for name, values in self.params.items()}
        along = max(counts, key=lambda name: counts[name]) if x is None else x
        check_choice(along, "x", tuple(counts))
        others = [name for name in counts if name != along and counts[name] > 1]
        (ax,) = open_axes(ax)
        sign = -1.0 if self.metric.startswith("neg_") else 1.0
        drawn = sign * self.scores
        where = self.params[along]
        keys = np.array([self.params[name] for name in others]).reshape(len(others), len(where)).T
        groups = np.unique(keys, axis=0)
        for at, group in enumerate(groups):
            rows = np.flatnonzero((keys == group).all(axis=1))
            rows = rows[np.argsort(where[rows], kind="stable")]
            style: dict[str, Any] = {
                "color": COLOURS[at % len(COLOURS)],
                "linestyle": ("-", "--", "-.", ":")[at // len(COLOURS) % 4],
                "marker": "osD^vP*"[at % 7],
                "markersize": 4.0,
                "elinewidth": 0.8,
                "capsize": 2.0,
            }
            if others:
                pairs = zip(others, group, strict=True)
                style["label"] = ", ".join(f"{_word(k)} {plain(value, 3)}" for k, value in pairs)
            ax.errorbar(where[rows], drawn[rows], self.stderr[rows], **(style | kw))
        ring = {"s": 100.0, "facecolors": "none", "edgecolors": "k", "linewidths": 1.5}
        ax.scatter(where[self.best], drawn[self.best], label="choice", zorder=3, **ring)
        top = int(np.nanargmax(self.scores))
        if np.isfinite(self.stderr[top]):
            level = sign * (self.scores[top] - self.stderr[top])
            ax.axhline(level, color=GREY, linestyle=":", linewidth=1.2, zorder=1)
        parameter_axis(ax, where, _word(along), strong=along == "gamma")
        ax.set_ylabel(f"{self._words}, mean over folds")
        tidy(ax)
        # Lines with bars come after the ring by themselves.
        entries = dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
        entries["choice"] = entries.pop("choice")
        beside = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)}
        ax.legend(entries.values(), entries.keys(), frameon=False, fontsize="small", **beside)
        return self._drawn([ax])

    @property
    def _words(self) -> str:
        """What is drawn, in words."""
        return METRICS.get(self.metric) or self.metric.removeprefix("neg_").replace("_", " ")

    def __repr__(self) -> str:
        pairs = self.params.items()
        chosen = ", ".join(f"{_word(name)} {values[self.best]:.4g}" for name, values in pairs)
        value = abs(self.scores[self.best]) if "neg_" in self.metric else self.scores[self.best]
        return (
            f"CVDisplay({len(self.scores)} candidates; {chosen}: {self._words} {value:.4g} ± "
            f"{self.stderr[self.best]:.2g})"
        )


def _metric(results: Any, score: str) -> str:
    """Name of what a search has scored, as scikit-learn calls it."""
    if score != "score" and not score.startswith("score_world"):
        return score
    scoring = getattr(results, "scoring", None)
    if scoring is None and isinstance(results, StackelbergRegressorCV):
        return "neg_mean_squared_error"
    name = getattr(scoring, "metric", scoring)
    return name if isinstance(name, str) else "score"


def _stderr(table: Mapping[str, Any], score: str) -> Vector:
    """Standard errors of the means over the splits; nan where there is one split only."""
    pattern = re.compile(rf"split\d+_test_{re.escape(score)}")
    splits = np.array([table[key] for key in table if pattern.fullmatch(key)], dtype=np.float64)
    if len(splits) < 2:
        return np.full(len(table[f"mean_test_{score}"]), np.nan)
    return np.asarray(splits.std(axis=0, ddof=1) / np.sqrt(len(splits)))


def _word(name: str) -> str:
    return _WORDS.get(name, name.replace("_", " "))


def _read_params(table: Mapping[str, Any]) -> dict[str, Vector]:
    """Parameters that are numbers, without the names of pipeline steps, ours first."""
    found: dict[str, Vector] = {}
    for key, values in table.items():
        if not key.startswith("param_"):
            continue
        try:
            numbers = np.ma.filled(np.ma.asarray(values).astype(np.float64), np.nan)
        except (TypeError, ValueError):
            continue
        if np.isfinite(numbers).all():
            found[key.removeprefix("param_").rpartition("__")[2]] = numbers
    if not found:
        raise ValueError(f"{_RESULTS}; none of its parameters is a number for every candidate.")
    ours = [name for name in _WORDS if name in found]
    return {name: found[name] for name in dict.fromkeys([*ours, *found])}
