"""Scores of a classifier before and after people moved, and who crosses its boundary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from spgls.base.types import Vector
from spgls.base.validation import describe
from spgls.display._figure import COLOURS, GREY, Display, open_axes, tidy
from spgls.estimators.faced import face
from spgls.game.classes import Labels, signs

__all__ = ["DecisionDisplay"]

_BINS = 40
#: Points drawn; more would only cover each other.
_POINTS = 2000
#: Scores outside these quantiles do not stretch the picture.
_ENDS = (0.005, 0.995)


@dataclass(eq=False, repr=False)
class DecisionDisplay(Display):
    """What a classifier's scores become once people have moved, by true class.

    Make one with :meth:`from_estimator`.

    Parameters
    ----------
    before, after : ndarray of shape (m,)
        Scores less the threshold, on rows as they are and on rows that everyone moved.
    positive : ndarray of shape (m,)
        Whether a row truly is in the second class.
    classes : ndarray of shape (2,)
        The classes.
    world : str
        Who moved, for the title.

    Attributes
    ----------
    figure_, ax_, axes_ : matplotlib Figure, Axes and array of Axes
        What :meth:`plot` has drawn.

    See Also
    --------
    DecisionRobustnessDisplay : several classifiers, by share and strength of those who react.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.preprocessing import scale
    >>> from spgls.display import DecisionDisplay
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LogisticRegression().fit(scale(X), y)
    >>> display = DecisionDisplay.from_estimator(model, scale(X), y, budget=2.0)
    >>> display.crossing.round(2)  # shares of both classes that cross, of all rows
    array([0.09, 0.  ])
    >>> display.plot()  # doctest: +SKIP
    """

    before: Vector
    after: Vector
    positive: np.ndarray
    classes: Labels
    world: str = ""

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        z: Any = None,
        *,
        gamma: Any = None,
        budget: Any = None,
        feature_cost: Any = None,
    ) -> Self:
        """Let everyone move against a fitted linear classifier.

        Parameters
        ----------
        estimator : classifier
            A fitted linear classifier of two classes, a Pipeline that ends in one, or a search.
        X : array-like, data frame or sparse matrix of shape (m, n)
            Rows before they move; best rows that it was not fitted to.
        y : array-like of shape (m,)
            True labels.
        z : array-like of shape (m,) or callable, optional
            The class each provider would like, as in :func:`predict_attacked`.
        gamma, budget : float, optional
            Strength of the providers, or what the decision is worth to them. By default the
            strength that the model was fitted against, or at which half of the gaps are closed.
        feature_cost : array-like, mapping or Actions, optional
            Costs of features, as in :func:`predict_attacked`.

        Returns
        -------
        DecisionDisplay
        """
        strength = "auto" if gamma is None and budget is None else gamma
        faced = face(estimator, X, feature_cost, strength == "auto")
        if faced.classes is None:
            raise TypeError(f"estimator must be a linear classifier; got {describe(faced.last)}.")
        positive = signs(y, faced.classes, "y", len(faced.before)) > 0.0
        # Goals that do not depend on labels take none.
        after = faced.respondent(strength, budget).induced(faced.before, faced.goals(z, y))
        world = f"gamma {strength}" if budget is None else f"budget {budget}"
        if strength == "auto":
            world = f"gamma {faced.own_strength:.3g}"
        cut = faced.threshold
        return cls(faced.before - cut, after - cut, positive, faced.classes, world)

    @property
    def crossing(self) -> Vector:
        """Share of all rows whose decision changes, of the first and of the second class."""
        crosses = (self.before > 0.0) != (self.after > 0.0)
        return np.array([np.mean(crosses & ~self.positive), np.mean(crosses & self.positive)])

    @property
    def accuracy(self) -> Vector:
        """Accuracy before and after."""
        return np.array(
            [np.mean((score > 0.0) == self.positive) for score in (self.before, self.after)]
        )

    def plot(self, ax: Any = None, **kw: Any) -> Self:
        """Draw distributions of scores, and who crosses; it needs matplotlib, ``spgls[plot]``.

        Parameters
        ----------
        ax : list of two matplotlib Axes, optional
            Where to draw; a new figure by default.
        **kw
            For the points, as in ``Axes.scatter``.

        Returns
        -------
        DecisionDisplay
            Itself.
        """
        axes = open_axes(ax, columns=2, size=(9.6, 4.0))
        self._histograms(axes[0])
        self._points(axes[1], kw)
        return self._drawn(axes)

    def _limits(self) -> tuple[float, float]:
        both = np.concatenate([self.before, self.after])
        low, high = np.quantile(both, _ENDS)
        room = 0.05 * (high - low) or 1.0
        return min(float(low), 0.0) - room, max(float(high), 0.0) + room

    def _histograms(self, ax: Any) -> None:
        # The boundary is an edge, so that no bar stands on both sides of it.
        low, high = self._limits()
        width = (high - low) / _BINS
        bins = width * np.arange(np.floor(low / width), np.ceil(high / width) + 1.0)
        for at, label in enumerate(self.classes):
            rows, colour = self.positive == bool(at), COLOURS[at]
            ax.hist(self.before[rows], bins, histtype="step", color=colour, linestyle="--")
            ax.hist(self.after[rows], bins, color=colour, alpha=0.45, label=f"truly {label}")
        ax.plot([], [], color=GREY, linestyle="--", label="before they moved")
        ax.axvline(0.0, color=GREY, linewidth=0.9)
        ax.set_xlim(bins[0], bins[-1])
        ax.set_xlabel(f"score less threshold (right: decided {self.classes[1]})")
        ax.set_ylabel("rows")
        ax.set_title(f"scores once all react, {self.world}", fontsize="medium")
        tidy(ax)
        ax.legend(frameon=False, fontsize="small")

    def _points(self, ax: Any, kw: dict[str, Any]) -> None:
        shown = np.random.default_rng(0).permutation(len(self.before))[:_POINTS]
        crosses = (self.before > 0.0) != (self.after > 0.0)
        low, high = self._limits()
        ax.plot([low, high], [low, high], color=GREY, linestyle=":", linewidth=0.9)
        for at, label in enumerate(self.classes):
            rows = shown[self.positive[shown] == bool(at)]
            part = 100.0 * float(np.mean(crosses[self.positive == bool(at)]))
            style = {"s": 14, "alpha": 0.6, "linewidths": 0, "color": COLOURS[at]}
            style |= {"label": f"truly {label}: {part:.3g}% cross"}
            ax.scatter(self.before[rows], self.after[rows], **(style | kw))
        ax.axhline(0.0, color=GREY, linewidth=0.9)
        ax.axvline(0.0, color=GREY, linewidth=0.9)
        ax.set_xlim(low, high)
        ax.set_ylim(low, high)
        ax.set_xlabel("score before")
        ax.set_ylabel("score after")
        right = " to ".join(f"{100 * share:.3g}%" for share in self.accuracy)
        ax.set_title(f"who crosses: accuracy from {right}", fontsize="medium")
        tidy(ax)
        ax.legend(frameon=False, fontsize="small", loc="lower right")

    def __repr__(self) -> str:
        first, second = self.accuracy
        return f"DecisionDisplay({self.world}, accuracy {first:.3g} to {second:.3g})"
