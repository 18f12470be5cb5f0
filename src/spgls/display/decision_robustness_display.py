"""Scores of classifiers over the share of people who react, and over how strongly they do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from spgls.base.types import Array, Vector
from spgls.base.validation import describe
from spgls.display._figure import COLOURS, Display, open_axes, parameter_axis, plain, short, tidy
from spgls.study.robust_decisions import DecisionRobustness
from spgls.study.robustness import robustness

__all__ = ["DecisionRobustnessDisplay"]

_BUDGETS = (0.0, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
_SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
_MARKS = "osD^vP"


@dataclass(eq=False, repr=False)
class DecisionRobustnessDisplay(Display):
    """How classifiers fare that are there already, by share and strength of those who react.

    Make one with :meth:`from_estimators` or :meth:`from_robustness`.

    Parameters
    ----------
    models : tuple of k str
        Names of the models.
    shares, worlds : ndarray of shape (s,), ndarray of shape (g,)
        Shares of people who react, and their strengths or budgets.
    kind : {"gamma", "budget"}
        Which of the two.
    scores : ndarray of shape (k, g, s)
        Scores; greater is better.
    metric : str
        What they are.

    Attributes
    ----------
    figure_, ax_, axes_ : matplotlib Figure, Axes and array of Axes
        What :meth:`plot` has drawn.

    See Also
    --------
    DecisionDisplay : one classifier, row by row.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.preprocessing import scale
    >>> from spgls.display import DecisionRobustnessDisplay
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LogisticRegression().fit(scale(X), y)
    >>> display = DecisionRobustnessDisplay.from_estimators(model, scale(X), y, budgets=[0, 2.0])
    >>> display.scores[0, 1].round(2)  # by share of people who react
    array([0.99, 0.97, 0.94, 0.92, 0.9 ])
    >>> display.plot()  # doctest: +SKIP
    """

    models: tuple[str, ...]
    shares: Vector
    worlds: Vector
    kind: str
    scores: Array
    metric: str

    @classmethod
    def from_estimators(
        cls,
        models: Any,
        X: Any,
        y: Any,
        z: Any = None,
        *,
        gammas: Any = None,
        budgets: Any = None,
        shares: Any = _SHARES,
        feature_cost: Any = None,
        metric: str = "accuracy",
    ) -> Self:
        """Judge classifiers on rows that people moved.

        Parameters
        ----------
        models : classifier, mapping or list
            A fitted linear classifier, or several, by name or in a list.
        X, y, z
            Rows, true labels and what people want, as in :func:`robustness`.
        gammas, budgets : array-like, optional
            Strengths of those who react, or what the decision is worth to them: by default budgets
            from 0 to 8.
        shares : array-like
            Shares of people who react.
        feature_cost : array-like, mapping or Actions, optional
            Costs of features, the same for every model.
        metric : str
            Name of a scikit-learn scorer of classes.

        Returns
        -------
        DecisionRobustnessDisplay
        """
        if gammas is None and budgets is None:
            budgets = _BUDGETS
        found = robustness(
            models,
            X,
            y,
            z,
            gammas,
            shares,
            budgets=budgets,
            feature_cost=feature_cost,
            metric=metric,
        )
        return cls.from_robustness(found)

    @classmethod
    def from_robustness(cls, robustness: Any) -> Self:
        """Take what :func:`robustness` found of classifiers.

        Parameters
        ----------
        robustness : DecisionRobustness
            Scores by model, world and share.

        Returns
        -------
        DecisionRobustnessDisplay
        """
        if not isinstance(robustness, DecisionRobustness):
            raise TypeError(
                "robustness must be what robustness() returns for classifiers; got "
                f"{describe(robustness)}. RobustnessDisplay is for models that predict numbers."
            )
        found = robustness
        order = np.argsort(found.worlds)
        return cls(
            found.models,
            found.shares,
            found.worlds[order],
            found.kind,
            found.scores[:, order],
            found.metric,
        )

    def plot(self, ax: Any = None, *, world: int | None = None, **kw: Any) -> Self:
        """Draw scores over shares and over worlds; it needs matplotlib, ``spgls[plot]``.

        Parameters
        ----------
        ax : list of two matplotlib Axes, optional
            Where to draw; a new figure by default.
        world : int, optional
            Which of the worlds the first picture is about; the middle one by default.
        **kw
            For the lines, as in ``Axes.plot``.

        Returns
        -------
        DecisionRobustnessDisplay
            Itself.
        """
        middle = len(self.worlds) // 2 if world is None else world
        axes = open_axes(ax, columns=2, size=(9.6, 4.0), sharey=True)
        last = int(np.argmax(self.shares))
        for at, name in enumerate(self.models):
            style = {"color": COLOURS[at % len(COLOURS)], "linewidth": 1.8, "label": short(name)}
            style |= {"marker": _MARKS[at % len(_MARKS)], "markersize": 4}
            axes[0].plot(self.shares, self.scores[at, middle], **(style | kw))
            axes[1].plot(self.worlds, self.scores[at, :, last], **(style | kw))
        axes[0].set_xlabel(f"share of people who react ({self.kind} {plain(self.worlds[middle])})")
        axes[0].set_ylabel(self.metric.replace("_", " "))
        strong = self.kind == "gamma"
        share = plain(self.shares[last])
        who = "everyone reacts" if self.shares[last] == 1.0 else f"share {share} reacts"
        parameter_axis(axes[1], self.worlds, f"{self.kind}, {who}", strong=strong)
        for one in axes:
            tidy(one)
        axes[1].legend(frameon=False, fontsize="small")
        return self._drawn(axes)

    def __repr__(self) -> str:
        return (
            f"DecisionRobustnessDisplay({len(self.models)} models, {self.metric} in "
            f"{len(self.worlds)} worlds)"
        )
