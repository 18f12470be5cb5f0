"""Honest against attacked error, over the share of strategic providers a model is fitted for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from spgls.base.types import Vector
from spgls.base.validation import check_number, check_vector
from spgls.display._figure import (
    ATTACKED,
    GOAL,
    HONEST,
    Display,
    error_axis,
    in_metric,
    open_axes,
    plain,
    tidy,
)
from spgls.display._models import game_of, own_strength, read_goals, read_labels, refit
from spgls.display._worlds import Judged, common, read_path
from spgls.game.providers import Population

__all__ = ["TradeoffDisplay"]

#: Close together where everyone is strategic, because there the honest error takes off.
_SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 0.99, 0.995, 1.0)


@dataclass(eq=False, repr=False)
class TradeoffDisplay(Display):
    """What a model gains on strategic people, and loses on honest ones, by expecting more of them.

    Make one with :meth:`from_estimator` or :meth:`from_path`.

    Parameters
    ----------
    shares : ndarray of shape (k,)
        Share of strategic providers that each model is fitted for.
    honest, attacked : ndarray of shape (k,)
        Mean squared errors on rows as they are, and on rows that everyone moved.
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

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from spgls import Floor, StackelbergRegressor
    >>> from spgls.display import TradeoffDisplay
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = StackelbergRegressor(goal=Floor(250))
    >>> display = TradeoffDisplay.from_estimator(model, X, y, shares=[0.0, 0.5, 1.0])
    >>> (1 - display.honest / display.variance).round(2)
    array([  0.52,   0.49, -10.18])
    >>> (1 - display.attacked / display.variance).round(2)
    array([0.02, 0.47, 0.57])
    >>> display.plot()  # doctest: +SKIP
    """

    shares: Vector
    honest: Vector
    attacked: Vector
    from_goal: float
    gamma: float
    variance: float

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        z: Any = None,
        shares: Any = _SHARES,
        *,
        gamma: Any = None,
        cv: Any = None,
    ) -> Self:
        """Fit an estimator for each share of strategic providers, and judge it on both kinds.

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
        shares : array-like of shape (k,)
            Shares of strategic providers to fit for, from zero to one.
        gamma : float, optional
            Their strength, in fitting and in judging; by default that of the estimator.
        cv : int or splitter, optional
            Judge on rows held out in these folds. By default on the rows of the fit.

        Returns
        -------
        TradeoffDisplay
        """
        labels = read_labels(X, y)
        _, last = game_of(estimator)
        goals = read_goals(last, labels, z)
        mix = np.sort(check_vector(shares, "shares", None, "model"))
        if mix[0] < 0.0 or mix[-1] > 1.0:
            wrong = mix[0] if mix[0] < 0.0 else mix[-1]
            raise ValueError(
                f"shares must be from 0, all honest, to 1, all strategic; got {wrong:g}."
            )
        strength = (
            own_strength(estimator, X, labels, goals)
            if gamma is None
            else check_number(gamma, "gamma", above=0.0)
        )
        populations = [Population.mixed(strength, honest=float(1.0 - share)) for share in mix]
        judged = refit(estimator, X, labels, goals, populations, cv)
        return cls._from_judged(judged, mix, strength)

    @classmethod
    def from_path(cls, path: Any, X: Any, y: Any, z: Any) -> Self:
        """Judge the solutions of a path over the share of strategic providers.

        Parameters
        ----------
        path : Path
            What :func:`solve_path` returned for populations of one strength and several shares,
            such as ``Population.mixed(gamma, honest)``.
        X, y, z
            Rows, labels and goals to judge by.

        Returns
        -------
        TradeoffDisplay
        """
        course = read_path(path)
        strength = common(course.gammas, "gamma", "PathDisplay draws a path over gamma.")
        return cls._from_judged(course.judged(X, y, z), course.shares, strength)

    @classmethod
    def _from_judged(cls, judged: Judged, shares: Vector, gamma: float) -> Self:
        return cls(
            shares=shares,
            honest=judged.honest(),
            attacked=judged.attacked(gamma),
            from_goal=judged.from_goal,
            gamma=gamma,
            variance=judged.variance,
        )

    def plot(self, ax: Any = None, *, metric: str = "mse", **kw: Any) -> Self:
        """Draw both errors over the share; it needs matplotlib, the extra ``spgls[plot]``.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        metric : {"mse", "r2"}
            What to draw.
        **kw
            For the two lines, as in ``Axes.plot``.

        Returns
        -------
        TradeoffDisplay
            Itself.
        """
        errors = (self.honest, self.attacked, self.from_goal)
        honest, attacked, alone = (in_metric(e, metric, self.variance) for e in errors)
        (ax,) = open_axes(ax)
        kinds = (
            ("on honest rows", honest, HONEST, "o"),
            ("on attacked rows", attacked, ATTACKED, "s"),
        )
        for label, values, colour, marker in kinds:
            style = {"color": colour, "marker": marker, "markersize": 4.0, "label": label}
            ax.plot(self.shares, values, **(style | kw))
        ax.axhline(alone, label="y from z alone", **GOAL)
        error_axis(ax, metric, [*honest, *attacked, alone])
        ax.set_xlabel(f"strategic share the model is fitted for (gamma {plain(self.gamma)})")
        tidy(ax)
        ax.legend(frameon=False)
        return self._drawn([ax])

    def __repr__(self) -> str:
        return f"TradeoffDisplay({len(self.shares)} strategic shares, gamma {self.gamma:.4g})"
