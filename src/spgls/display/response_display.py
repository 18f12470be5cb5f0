"""Predictions before and after providers reacted, against the labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from spgls.base.types import Vector
from spgls.base.validation import check_count
from spgls.display._figure import ATTACKED, GREY, HONEST, Display, open_axes, tidy
from spgls.display._models import face, read_goals, read_labels, split

__all__ = ["ResponseDisplay"]

#: More ways than this hide each other; clouds are drawn without them.
_WAYS = 150


@dataclass(eq=False, repr=False)
class ResponseDisplay(Display):
    """Where the predictions of a model go when people react to it.

    Make one with :meth:`from_estimator`.

    Parameters
    ----------
    y, z : ndarray of shape (m,)
        Labels and goals.
    before, after : ndarray of shape (m,)
        Predictions on rows as they are, and after everyone moved.

    Attributes
    ----------
    figure_, ax_, axes_ : matplotlib Figure, Axes and array of Axes
        What :meth:`plot` has drawn.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import LinearRegression
    >>> from spgls import Floor
    >>> from spgls.display import ResponseDisplay
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = LinearRegression().fit(X, y)
    >>> display = ResponseDisplay.from_estimator(model, X, y, Floor(250)(y), gamma=1.9e6)
    >>> float((display.after - display.before).mean().round())
    51.0
    >>> display.plot()  # doctest: +SKIP
    """

    y: Vector
    z: Vector
    before: Vector
    after: Vector

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        z: Any = None,
        *,
        gamma: Any = None,
        feature_cost: Any = None,
    ) -> Self:
        """Predict rows before and after their providers moved them.

        Parameters
        ----------
        estimator : estimator
            A fitted linear model, or a Pipeline that ends in one.
        X : array-like, data frame or sparse matrix of shape (m, n)
            Rows before they move.
        y : array-like of shape (m,)
            True labels.
        z : array-like of shape (m,) or callable, optional
            Goals; by default those of the estimator's ``goal``.
        gamma : float or array-like of shape (m,), optional
            Strength of the providers; by default the one that the estimator was fitted for.
        feature_cost : array-like, mapping or Actions, optional
            As in :func:`predict_attacked`; by default those that the estimator was fitted for.

        Returns
        -------
        ResponseDisplay
        """
        before, provider = face(estimator, X, gamma, feature_cost)
        labels = read_labels(X, y)
        goals = read_goals(split(estimator)[1], labels, z)
        return cls(y=labels, z=goals, before=before, after=provider.induced(before, goals))

    def plot(self, ax: Any = None, *, max_rows: int = 400, **kw: Any) -> Self:
        """Draw both clouds and the goals; it needs matplotlib, the extra ``spgls[plot]``.

        Up to 150 rows have their way drawn too.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        max_rows : int
            Draw no more than this many rows, spread evenly over the labels.
        **kw
            For the two clouds, as in ``Axes.scatter``.

        Returns
        -------
        ResponseDisplay
            Itself.
        """
        most = check_count(max_rows, "max_rows") or len(self.y)
        (ax,) = open_axes(ax)
        order = np.argsort(self.y, kind="stable")
        spread = np.linspace(0, len(order) - 1, min(most, len(order))).round().astype(int)
        rows = order[spread]
        y, z, before, after = (v[rows] for v in (self.y, self.z, self.before, self.after))
        if len(rows) <= _WAYS:
            ax.vlines(y, before, after, color=GREY, alpha=0.35, linewidth=0.8, zorder=1)
        ends = [self.y.min(), self.y.max()]
        ax.plot(ends, ends, color="0.2", linewidth=1.0, label="no error", zorder=1.5)
        ax.plot(y, z, color=GREY, linestyle="", marker="_", markersize=5.0, label="goal")
        clouds = (
            ("before", before, {"facecolors": "none", "edgecolors": HONEST}),
            ("after", after, {"color": ATTACKED, "edgecolors": "none"}),
        )
        for label, values, colour in clouds:
            ax.scatter(y, values, **({"s": 16.0, "label": label, "zorder": 2} | colour | kw))
        ax.set_xlabel("label")
        ax.set_ylabel("prediction")
        tidy(ax)
        ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
        return self._drawn([ax])

    def __repr__(self) -> str:
        change = float(np.mean(self.after - self.before))
        return f"ResponseDisplay({len(self.y)} rows, mean change of prediction {change:.4g})"
