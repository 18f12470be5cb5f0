"""Which feature to verify, to drop, or to make dearer to change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from spgls.base.types import Array
from spgls.base.validation import check_count, describe
from spgls.display._figure import (
    COLOURS,
    GOAL,
    METRICS,
    Display,
    in_metric,
    open_axes,
    plain,
    short,
    tidy,
)
from spgls.display._models import split
from spgls.estimators.regressor import StackelbergRegressor
from spgls.solvers.levers import KINDS, Levers

__all__ = ["LeversDisplay"]

_MARKERS = {"verify": "o", "drop": "X", "double": "D"}
#: How far right the picture goes, in falls of the error, before a mark stands for what is beyond.
_FAR = 1.5
_MARGIN = 0.08


@dataclass(eq=False, repr=False)
class LeversDisplay(Display):
    """What the error after manipulation would be, were one feature treated differently.

    Make one with :meth:`from_levers` or :meth:`from_estimator`.

    Parameters
    ----------
    names : tuple of g str
        Features or groups of them, best first.
    kinds : tuple of k str
        What would be done to them: ``"verify"``, ``"drop"``, ``"double"``.
    now : float
        Mean squared error after manipulation as things are.
    errors : ndarray of shape (g, k)
        The same as it would be.
    certified : ndarray of shape (g, k)
        Where it is proved to be the least.
    from_goal : float
        Mean squared error of the best affine function of the goals alone, "y from z alone".
    variance : float
        Mean squared error of predicting the mean label.

    Attributes
    ----------
    figure_, ax_, axes_ : matplotlib Figure, Axes and array of Axes
        What :meth:`plot` has drawn.

    See Also
    --------
    levers : the numbers, each with its proof.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from spgls import Floor, StackelbergRegressor
    >>> from spgls.display import LeversDisplay
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = StackelbergRegressor(goal=Floor(250)).fit(X, y)
    >>> display = LeversDisplay.from_estimator(model, X, y)
    >>> display.names[:3]
    ('bmi', 's5', 'bp')
    >>> display.plot()  # doctest: +SKIP
    """

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    now: float
    errors: Array
    certified: np.ndarray
    from_goal: float
    variance: float

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        z: Any = None,
        *,
        groups: Any = None,
        kinds: Any = ("verify", "drop", "double"),
        sample_weight: Any = None,
    ) -> Self:
        """Find the levers of the game that a model was fitted for.

        Parameters
        ----------
        estimator : StackelbergRegressor, StackelbergRegressorCV or Pipeline
            A fitted model, or a Pipeline that ends in one. In a Pipeline features are those that
            the last step sees.
        X, y : array-like, data frame or sparse matrix of shape (m, n), array-like of shape (m,)
            Rows, as the estimator takes them, and labels.
        z : array-like of shape (m,) or callable, optional
            Goals, if the model has no ``goal``.
        groups, kinds, sample_weight
            As in :meth:`StackelbergRegressor.levers`.

        Returns
        -------
        LeversDisplay
        """
        head, last = split(estimator)
        if not isinstance(last, StackelbergRegressor):
            raise TypeError(
                "estimator must be a StackelbergRegressor or a Pipeline that ends in one; got "
                f"{describe(last)}. For any other game pass what spgls.levers returns to "
                "from_levers."
            )
        seen = X if head is None else head.transform(X)
        how = {"groups": groups, "kinds": kinds, "sample_weight": sample_weight}
        return cls.from_levers(last.levers(seen, y, z, **how))

    @classmethod
    def from_levers(cls, levers: Any) -> Self:
        """Take what :func:`levers` found.

        Parameters
        ----------
        levers : Levers
            Errors with each lever pulled.

        Returns
        -------
        LeversDisplay
        """
        if not isinstance(levers, Levers):
            raise TypeError(
                f"levers must be what spgls.levers returns; got {describe(levers)}. "
                "from_estimator takes a model."
            )
        return cls(
            names=levers.names,
            kinds=levers.kinds,
            now=levers.now.error,
            errors=levers.errors,
            certified=levers.certified,
            from_goal=levers.from_goal,
            variance=levers.variance,
        )

    def plot(
        self, ax: Any = None, *, metric: str = "mse", max_features: int = 15, **kw: Any
    ) -> Self:
        """Draw the error with each lever pulled; it needs matplotlib, the extra ``spgls[plot]``.

        Hollow marks are not certified. An error far worse than all that could be gained stands at
        the edge, with its number.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        metric : {"mse", "r2"}
            What to draw.
        max_features : int
            Draw no more than this many features, the best.
        **kw
            For the marks, as in ``Axes.plot``.

        Returns
        -------
        LeversDisplay
            Itself.
        """
        most = min(check_count(max_features, "max_features") or len(self.names), len(self.names))
        errors, places = self.errors[:most], np.arange(most)
        low, high = self._ends(errors)
        now, drawn, alone = (
            in_metric(e, metric, self.variance) for e in (self.now, errors, self.from_goal)
        )
        edge = float(in_metric(high, metric, self.variance))
        ends = np.sort(in_metric(np.array([low, high]), metric, self.variance))
        room = _MARGIN * (ends[1] - ends[0]) or 0.1 * abs(float(now)) or 1.0
        (ax,) = open_axes(ax, size=(7.2, max(2.6, 1.3 + 0.33 * most)))
        ax.axvline(now, color="0.15", linewidth=1.2, label=f"as it is: {plain(float(now), 4)}")
        said = f"y from z alone: {plain(float(alone), 4)}"
        if low <= self.from_goal <= high:
            ax.axvline(alone, label=said, **GOAL)
        else:
            ax.plot([], [], label=f"{said} (outside)", **GOAL)
        height = 0.5 / max(len(self.kinds), 1)
        for k, kind in enumerate(self.kinds):
            at = places + height * (k - (len(self.kinds) - 1) / 2)
            inside = errors[:, k] <= high
            shown = np.where(inside, drawn[:, k], edge)
            colour = COLOURS[list(KINDS).index(kind)]
            ax.hlines(at, now, shown, color=colour, linewidth=1.2, alpha=0.6)
            for sure, fill in ((True, colour), (False, "white")):
                some = inside & (self.certified[:most, k] == sure)
                label = KINDS[kind] if sure else f"{KINDS[kind]} (not certified)"
                style = {"marker": _MARKERS[kind], "linestyle": "none", "markersize": 6.0}
                style |= {"color": colour, "markerfacecolor": fill}
                if some.any():
                    ax.plot(drawn[some, k], at[some], **(style | {"label": label} | kw))
            for row in np.flatnonzero(~inside):
                text = f"{plain(float(drawn[row, k]), 3)} "
                side = "right" if metric == "mse" else "left"
                ax.annotate(
                    f"{text}→" if metric == "mse" else f"←{text}",
                    (edge, at[row]),
                    color=colour,
                    ha=side,
                    va="center",
                    fontsize="small",
                    bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},
                )
        ax.set_yticks(places, [short(name) for name in self.names[:most]])
        ax.set_ylim(most - 0.4, -0.6)
        ax.set_xlim(ends[0] - room, ends[1] + room)
        ax.locator_params(axis="x", nbins=6)
        ax.set_xlabel(f"{METRICS[metric]} after manipulation")
        tidy(ax)
        ax.grid(visible=False, axis="y")
        ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize="small")
        return self._drawn([ax])

    def _ends(self, errors: Array) -> tuple[float, float]:
        """Errors between which the picture lies."""
        low = min(float(errors.min()), self.now)
        fall = self.now - low
        worse = errors[errors > self.now]
        if not fall and len(worse):
            # Nothing helps: as far as the lesser half of what hurts.
            fall = float(np.median(worse)) - self.now
        high = self.now + _FAR * fall
        within = errors[errors <= high]
        return low, max(float(within.max(initial=self.now)), high if (errors > high).any() else low)

    def __repr__(self) -> str:
        return f"LeversDisplay({len(self.names)} features, {', '.join(self.kinds)})"
