"""Models trained for one strength of provider, in worlds of another."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any, Self

import numpy as np

from spgls.base.types import Array, Vector
from spgls.base.validation import check_number
from spgls.display._figure import (
    METRICS,
    Display,
    in_metric,
    label_plainly,
    labels,
    open_axes,
    plain,
)
from spgls.display._models import game_of, own_strength, read_goals, read_labels, refit
from spgls.display._worlds import Judged, check_strengths, common, read_path
from spgls.game.providers import Population

__all__ = ["GammaHeatmapDisplay"]

#: Around the estimator's own strength, by half a decade.
_FACTORS = 10.0 ** np.arange(-1.5, 1.6, 0.5)
#: Larger tables than this show colours only.
_WRITTEN = 64
_TICKS = 7
#: Errors that differ by this factor are coloured by their logarithms.
_WIDE = 10.0


@dataclass(eq=False, repr=False)
class GammaHeatmapDisplay(Display):
    """What it costs to be wrong about the strength of people.

    Make one with :meth:`from_estimator` or :meth:`from_path`.

    Parameters
    ----------
    gammas : ndarray of shape (k,)
        Strengths that models are trained for.
    true_gammas : ndarray of shape (l,)
        Strengths that people have.
    errors : ndarray of shape (k, l)
        Mean squared error of each model in each world.
    honest_share : float
        Share of the people who leave their rows alone, in every world.
    variance : float
        Mean squared error of predicting the mean label.

    Attributes
    ----------
    figure_, ax_, axes_ : matplotlib Figure, Axes and array of Axes
        What :meth:`plot` has drawn.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from spgls import Floor, StackelbergRegressor
    >>> from spgls.display import GammaHeatmapDisplay
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = StackelbergRegressor(goal=Floor(250))
    >>> display = GammaHeatmapDisplay.from_estimator(model, X, y, gammas=[1e5, 1e6, 1e7])
    >>> display.errors.argmin(axis=0)  # nothing beats to know the truth
    array([0, 1, 2])
    >>> display.plot()  # doctest: +SKIP
    """

    gammas: Vector
    true_gammas: Vector
    errors: Array
    honest_share: float
    variance: float

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        z: Any = None,
        gammas: Any = None,
        *,
        true_gammas: Any = None,
        honest_share: Any = None,
        cv: Any = None,
    ) -> Self:
        """Fit an estimator for each strength, and judge it against all of them.

        Parameters
        ----------
        estimator : StackelbergRegressor or Pipeline that ends in one
            Fitted or not, unless it chooses by cross-validation: then fitted. It is cloned, and
            stays as it is.
        X : array-like, data frame or sparse matrix of shape (m, n)
            Rows before they move.
        y : array-like of shape (m,)
            True labels.
        z : array-like of shape (m,) or callable, optional
            Goals; by default those of the estimator's ``goal``.
        gammas : array-like of shape (k,), optional
            Strengths to train for; by default seven around the estimator's own.
        true_gammas : array-like of shape (l,), optional
            Strengths to judge by; by default the same.
        honest_share : float, optional
            Share of honest people in every world; by default the one the estimator is fitted for.
        cv : int or splitter, optional
            Judge on rows held out in these folds. By default on the rows of the fit.

        Returns
        -------
        GammaHeatmapDisplay
        """
        labels = read_labels(X, y)
        _, last = game_of(estimator)
        goals = read_goals(last, labels, z)
        if gammas is None:
            gammas = own_strength(estimator, X, labels, goals) * _FACTORS
        trained = check_strengths(gammas, "gammas")
        share = _honest_share(last)
        populations = [Population.mixed(float(gamma), honest=share) for gamma in trained]
        judged = refit(estimator, X, labels, goals, populations, cv)
        world = share if honest_share is None else honest_share
        return cls._from_judged(judged, trained, true_gammas, world)

    @classmethod
    def from_path(
        cls,
        path: Any,
        X: Any,
        y: Any,
        z: Any,
        *,
        true_gammas: Any = None,
        honest_share: Any = None,
    ) -> Self:
        """Judge the solutions of a path against all of its strengths.

        Parameters
        ----------
        path : Path
            What :func:`solve_path` returned.
        X, y, z
            Rows, labels and goals to judge by.
        true_gammas : array-like of shape (l,), optional
            Strengths to judge by; by default those of the path.
        honest_share : float, optional
            Share of honest people in every world; by default the one of the path.

        Returns
        -------
        GammaHeatmapDisplay
        """
        course = read_path(path)
        share = common(course.shares, "strategic share", "TradeoffDisplay draws shares.")
        world = 1.0 - share if honest_share is None else honest_share
        return cls._from_judged(course.judged(X, y, z), course.gammas, true_gammas, world)

    @classmethod
    def _from_judged(cls, judged: Judged, trained: Vector, true_gammas: Any, share: Any) -> Self:
        worlds = trained if true_gammas is None else check_strengths(true_gammas, "true_gammas")
        honest = check_number(share, "honest_share", at_least=0.0, at_most=1.0)
        attacked = np.column_stack([judged.attacked(gamma) for gamma in worlds])
        errors = honest * judged.honest()[:, np.newaxis] + (1.0 - honest) * attacked
        return cls(trained, worlds, errors, honest, judged.variance)

    def plot(self, ax: Any = None, *, metric: str = "mse", **kw: Any) -> Self:
        """Draw the table as a map; it needs matplotlib, the extra ``spgls[plot]``.

        Frames mark models that are trained for the world they are in.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        metric : {"mse", "r2"}
            What to draw.
        **kw
            For the map, as in ``Axes.imshow``.

        Returns
        -------
        GammaHeatmapDisplay
            Itself.
        """
        values = np.asarray(in_metric(self.errors, metric, self.variance))
        (ax,) = open_axes(ax)
        colors = import_module("matplotlib.colors")
        low, high = float(values.min()), float(values.max())
        style: dict[str, Any] = {"cmap": "cividis_r" if metric == "mse" else "cividis"}
        if metric == "mse" and 0.0 < _WIDE * low <= high:
            style["norm"] = colors.LogNorm(low, high)
        elif metric == "r2" and low < -1.0:
            style["norm"] = colors.Normalize(-1.0, max(high, 0.0))
        image = ax.imshow(values, **(style | {"origin": "lower", "aspect": "auto"} | kw))
        if values.size <= _WRITTEN:
            _write(ax, image, values, metric)
        patches = import_module("matplotlib.patches")
        frame = {"fill": False, "color": "k", "linewidth": 2.0 if max(values.shape) <= 12 else 0.6}
        for row, column in self.matches:
            ax.add_patch(patches.Rectangle((column - 0.5, row - 0.5), 1.0, 1.0, **frame))
        ax.set_xticks(*_ticks(self.true_gammas), fontsize="small")
        ax.set_yticks(*_ticks(self.gammas), fontsize="small")
        ax.set_xlabel("true gamma (left: strong)")
        ax.set_ylabel("gamma the model is trained for")
        bar = ax.figure.colorbar(image, ax=ax, label=METRICS[metric], pad=0.02)
        bar.outline.set_visible(False)
        if "norm" in style and metric == "mse":
            label_plainly(bar.ax.yaxis, (low, high))
            bar.ax.yaxis.set_minor_formatter(import_module("matplotlib.ticker").NullFormatter())
        return self._drawn([ax])

    @property
    def matches(self) -> list[tuple[int, int]]:
        """Row and column of each model that is in the world it was trained for."""
        same = np.isclose(self.gammas[:, np.newaxis], self.true_gammas, rtol=1e-9, atol=0.0)
        return [(int(row), int(column)) for row, column in np.argwhere(same)]

    def __repr__(self) -> str:
        return (
            f"GammaHeatmapDisplay({len(self.gammas)} models in {len(self.true_gammas)} worlds, "
            f"{100 * self.honest_share:.4g}% honest)"
        )


def _honest_share(last: Any) -> float:
    """Share of honest providers that an estimator is fitted for."""
    if isinstance(last.gamma, Population):
        return last.gamma.honest
    if last.honest_share is None:
        return 0.5
    return check_number(last.honest_share, "honest_share", at_least=0.0, at_most=1.0)


def _ticks(gammas: Vector) -> tuple[list[int], list[str]]:
    """Places and labels of no more ticks than there is room for."""
    places = list(range(0, len(gammas), -(-len(gammas) // _TICKS)))
    return places, labels(gammas[places])


def _write(ax: Any, image: Any, values: Array, metric: str) -> None:
    """Write each value into its cell, in black or white."""
    for (row, column), value in np.ndenumerate(values):
        red, green, blue, _ = image.cmap(image.norm(value))
        dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.5
        text = f"{value:.2f}".replace("-", "−") if metric == "r2" else plain(float(value), 3)
        style = {"ha": "center", "va": "center", "color": "w" if dark else "k", "fontsize": 8}
        ax.text(column, row, text, **style)
