"""Errors of models that somebody already has, over the share of strategic providers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from spgls.base.types import Vector
from spgls.base.validation import check_number, describe
from spgls.display._figure import (
    COLOURS,
    GOAL,
    GREY,
    METRICS,
    Display,
    in_metric,
    open_axes,
    plain,
    short,
    tidy,
)
from spgls.display._models import read_goals, read_labels, split
from spgls.game.errors import pull_of
from spgls.study.named_models import read_models
from spgls.study.robustness import Robustness, robustness

__all__ = ["RobustnessDisplay"]

_PULL = 0.5
_TICKS = ("0\nall honest", "¼", "½", "¾", "1\nall react")
#: Errors above this many times that of the mean label would press all others together.
_TALL = 2.5
_MARGIN = 0.08


@dataclass(eq=False, repr=False)
class RobustnessDisplay(Display):
    """How models fare that are there already, by the share of people who react.

    Make one with :meth:`from_estimators` or :meth:`from_robustness`.

    Parameters
    ----------
    models : tuple of k str
        Names of the models.
    honest, attacked : ndarray of shape (k,)
        Mean squared errors on rows as they are, and on rows that everyone moved.
    pull : ndarray of shape (k,)
        Share of the gap to their goals that providers close against each model.
    from_goal : float
        Mean squared error of the best affine function of the goals alone, "y from z alone".
    gamma : float
        Strength of the strategic providers.
    variance : float
        Mean squared error of predicting the mean label.

    Attributes
    ----------
    figure_, ax_, axes_ : matplotlib Figure, Axes and array of Axes
        What :meth:`plot` has drawn.

    See Also
    --------
    TradeoffDisplay : one model, fitted for each share.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import LinearRegression, Ridge
    >>> from spgls import Floor
    >>> from spgls.display import RobustnessDisplay
    >>> X, y = load_diabetes(return_X_y=True)
    >>> models = {"least squares": LinearRegression().fit(X, y), "ridge": Ridge().fit(X, y)}
    >>> display = RobustnessDisplay.from_estimators(models, X, y, Floor(250)(y))
    >>> display.pull.round(2)
    array([0.5 , 0.12])
    >>> (1 - display.error(0.5) / display.variance).round(2)  # half of the people react
    array([0.27, 0.43])
    >>> display.plot()  # doctest: +SKIP
    """

    models: tuple[str, ...]
    honest: Vector
    attacked: Vector
    pull: Vector
    from_goal: float
    gamma: float
    variance: float

    @classmethod
    def from_estimators(
        cls,
        models: Any,
        X: Any,
        y: Any,
        z: Any = None,
        *,
        gamma: Any = None,
        feature_cost: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Judge models on rows as they are and on rows that people moved.

        Parameters
        ----------
        models : model, pair, mapping or list
            As in :func:`robustness`: a fitted linear model, or several, by name or in a list.
        X : array-like, data frame or sparse matrix of shape (m, n)
            Rows before they move; best rows that no model was fitted to.
        y : array-like of shape (m,)
            True labels.
        z : array-like of shape (m,), optional
            Goals; by default those of the first model that has a ``goal``.
        gamma : float, optional
            Strength of the strategic providers, the same for every model. By default the one at
            which they close half of their gaps against the first model.
        feature_cost : array-like, mapping or Actions, optional
            Costs of features, the same for every model, as in :func:`predict_attacked`.
        sample_weight : array-like of shape (m,), optional
            Weights of the rows.

        Returns
        -------
        RobustnessDisplay
        """
        labels = read_labels(X, y)
        if z is None:
            last = [split(model)[1] for model in read_models(models).values()]
            knowing = [model for model in last if getattr(model, "goal", None) is not None]
            z = read_goals((knowing or last)[0], labels, None)
        # Half of the gap is one of the strengths that robustness takes by itself.
        found = robustness(
            models,
            X,
            labels,
            z,
            gamma,
            feature_cost=feature_cost,
            sample_weight=sample_weight,
            metric="mse",
        )
        return cls.from_robustness(found, gamma=gamma)

    @classmethod
    def from_robustness(cls, robustness: Any, *, gamma: Any = None) -> Self:
        """Take what :func:`robustness` found.

        Parameters
        ----------
        robustness : Robustness
            Errors of models.
        gamma : float, optional
            Strength of the strategic providers, any. By default the one of ``robustness.gammas``
            at which they close most nearly half of their gaps against the first model.

        Returns
        -------
        RobustnessDisplay
        """
        if not isinstance(robustness, Robustness):
            raise TypeError(
                "robustness must be what spgls.robustness returns; got "
                f"{describe(robustness)}. from_estimators takes models."
            )
        if gamma is None:
            nearest = int(np.argmin(np.abs(robustness.pull[0] - _PULL)))
            gamma = robustness.gammas[nearest]
        strength = check_number(gamma, "gamma", above=0.0)
        return cls(
            models=robustness.models,
            honest=robustness.honest,
            attacked=robustness.attacked_by(strength),
            pull=pull_of(robustness.reach, strength),
            from_goal=robustness.from_goal,
            gamma=strength,
            variance=robustness.variance,
        )

    def error(self, share: float) -> Vector:
        """Mean squared error of each model where a share of the providers is strategic.

        Parameters
        ----------
        share : float
            From zero to one.

        Returns
        -------
        ndarray of shape (k,)
        """
        part = check_number(share, "share", at_least=0.0, at_most=1.0)
        return np.asarray((1.0 - part) * self.honest + part * self.attacked)

    def plot(self, ax: Any = None, *, metric: str = "mse", **kw: Any) -> Self:
        """Draw errors over the strategic share; it needs matplotlib, the extra ``spgls[plot]``.

        Models are listed as they end where all react. A line far above all others leaves the
        picture, and the legend says where to.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        metric : {"mse", "r2"}
            What to draw.
        **kw
            For the lines of the models, as in ``Axes.plot``.

        Returns
        -------
        RobustnessDisplay
            Itself.
        """
        errors = np.column_stack([self.honest, self.attacked])
        drawn, alone = (in_metric(e, metric, self.variance) for e in (errors, self.from_goal))
        # Of every model at least the better end is seen.
        needed = max(float(errors.min(axis=1).max()), self.from_goal)
        outside = errors > _TALL * max(needed, self.variance)
        (ax,) = open_axes(ax, size=(7.2, 4.0))
        for at in np.argsort(-errors[:, 1], kind="stable"):
            label = short(self.models[at])
            for end, where in enumerate(("are honest", "react")):
                if outside[at, end]:
                    label += f"\n({_plain_minus(drawn[at, end])} where all {where})"
            style = {"color": COLOURS[at % len(COLOURS)], "linewidth": 1.8, "label": label}
            style["linestyle"] = ("-", "--", "-.")[at // len(COLOURS) % 3]
            ax.plot((0.0, 1.0), drawn[at], **(style | kw))
        low = min(float(errors.min()), self.from_goal)
        high = max(float(errors[~outside].max()), needed)
        room = _MARGIN * (high - low) or 1.0
        ends = np.array([low - room, high + (2.0 if outside.any() else 1.0) * room])
        ax.axhline(alone, label="y from z alone", **GOAL)
        if low <= self.variance <= ends[1]:
            mean = in_metric(self.variance, metric, self.variance)
            ax.axhline(mean, label="mean label", color=GREY, linestyle="--", linewidth=0.9)
        ax.set_ylim(np.sort(in_metric(ends, metric, self.variance)))
        ax.set_xlim(0.0, 1.0)
        ax.set_xticks(np.linspace(0.0, 1.0, 5), _TICKS)
        ax.set_xlabel(f"share of strategic people (gamma {plain(self.gamma)})")
        ax.set_ylabel(METRICS[metric])
        tidy(ax)
        ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize="small")
        return self._drawn([ax])

    def __repr__(self) -> str:
        return f"RobustnessDisplay({len(self.models)} models, gamma {self.gamma:.4g})"


def _plain_minus(value: float) -> str:
    """A number with the minus that the ticks of an axis have."""
    text = plain(float(value))
    return text if "$" in text else text.replace("-", "−")
