"""Solutions over the strength of providers: coefficients, honest and attacked errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from spgls.base.frames import column_names
from spgls.base.types import Array, Vector
from spgls.base.validation import check_choice, check_count, check_number
from spgls.display._figure import (
    ATTACKED,
    COLOURS,
    GOAL,
    GREY,
    HONEST,
    Display,
    coefficient_axis,
    error_axis,
    in_metric,
    open_axes,
    parameter_axis,
    short,
    tidy,
)
from spgls.display._models import read_names
from spgls.display._worlds import common, read_path

__all__ = ["PathDisplay"]

_SHOW = ("all", "coefficients", "errors")


@dataclass(eq=False, repr=False)
class PathDisplay(Display):
    """How the best predictor changes with the strength of people, and how it fares.

    Make one with :meth:`from_path`.

    Parameters
    ----------
    gammas : ndarray of shape (k,)
        Strengths that the models are for.
    coef : ndarray of shape (k, n)
        Coefficients of each.
    feature_names : list of str
        Names of the features.
    honest, attacked : ndarray of shape (k,), optional
        Mean squared errors on rows as they are, and on rows that everyone moved; None without rows
        to judge by.
    from_goal : float, optional
        Mean squared error of the best affine function of the goals alone, "y from z alone".
    gamma : float, optional
        Strength of those who attack; None where it is the one that each model is for.
    variance : float, optional
        Mean squared error of predicting the mean label.

    Attributes
    ----------
    figure_, ax_, axes_ : matplotlib Figure, Axes and array of Axes
        What :meth:`plot` has drawn.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from spgls import Floor, Population, solve_path
    >>> from spgls.display import PathDisplay
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> z = Floor(250)(y)
    >>> half = [Population.mixed(gamma, honest=0.5) for gamma in (1e5, 1e6, 1e7)]
    >>> path = solve_path(X, y, z, half, fit_intercept=True)
    >>> display = PathDisplay.from_path(path, X, y, z)
    >>> (1 - display.honest / display.variance).round(2)
    array([0.22, 0.45, 0.51])
    >>> display.plot()  # doctest: +SKIP
    """

    gammas: Vector
    coef: Array
    feature_names: list[str]
    honest: Vector | None = None
    attacked: Vector | None = None
    from_goal: float | None = None
    gamma: float | None = None
    variance: float | None = None

    @classmethod
    def from_path(
        cls,
        path: Any,
        X: Any = None,
        y: Any = None,
        z: Any = None,
        feature_names: Any = None,
        *,
        gamma: Any = None,
    ) -> Self:
        """Take a path, and judge it by rows if there are any.

        Parameters
        ----------
        path : Path
            What :func:`solve_path` returned.
        X, y, z : optional
            Rows, labels and goals to judge by, all three or none.
        feature_names : list of str, optional
            Names of the features; by default those of the columns of ``X``.
        gamma : float, optional
            Strength of those who attack, the same for every model, as a comparison of models needs
            it. By default each is attacked by the people it is for.

        Returns
        -------
        PathDisplay
        """
        course = read_path(path)
        common(course.shares, "strategic share", "TradeoffDisplay draws shares.")
        gammas, coef = course.gammas, course.coef
        names = read_names(feature_names, coef.shape[1], column_names(X))
        given = [value is not None for value in (X, y, z)]
        if not any(given):
            if gamma is not None:
                raise ValueError("gamma was given without rows to attack; pass X, y and z too.")
            return cls(gammas, coef, names)
        if not all(given):
            missing = [name for name, there in zip("Xyz", given, strict=True) if not there]
            raise ValueError(f"X, y and z must be given together; {', '.join(missing)} missing.")
        judged = course.judged(X, y, z)
        world = None if gamma is None else check_number(gamma, "gamma", above=0.0)
        return cls(
            gammas=gammas,
            coef=coef,
            feature_names=names,
            honest=judged.honest(),
            attacked=judged.attacked(gammas if world is None else world),
            from_goal=judged.from_goal,
            gamma=world,
            variance=judged.variance,
        )

    def plot(
        self,
        ax: Any = None,
        *,
        show: str = "all",
        metric: str = "mse",
        max_features: int = 10,
        **kw: Any,
    ) -> Self:
        """Draw coefficients above errors; it needs matplotlib, the extra ``spgls[plot]``.

        Parameters
        ----------
        ax : matplotlib Axes, or two of them, optional
            Where to draw; a new figure by default.
        show : {"all", "coefficients", "errors"}
            Which panels to draw; all are those that there is data for.
        metric : {"mse", "r2"}
            What to draw of the errors.
        max_features : int
            Name and colour no more than this many features, those of the largest coefficients in
            units of ``X``; the others are grey.
        **kw
            For the lines, as in ``Axes.plot``.

        Returns
        -------
        PathDisplay
            Itself.
        """
        check_choice(show, "show", _SHOW)
        most = check_count(max_features, "max_features") or self.coef.shape[1]
        if show == "errors" and self.honest is None:
            raise ValueError("show='errors' needs rows: pass X, y and z to from_path.")
        coefficients = show != "errors"
        errors = show == "errors" or (show == "all" and self.honest is not None)
        both = coefficients and errors
        size = (6.4, 6.0) if both else (6.4, 4.0)
        axes = open_axes(ax, rows=1 + both, size=size, sharex=True)
        if coefficients:
            self._plot_coefficients(axes[0], most, kw)
        if errors:
            self._plot_errors(axes[-1], metric, kw)
        for one in axes:
            parameter_axis(one, self.gammas, "gamma the model is for", strong=True)
            tidy(one)
        if both and axes[0].get_shared_x_axes().joined(*axes):
            axes[0].set_xlabel("")
        return self._drawn(axes)

    def _plot_coefficients(self, ax: Any, most: int, kw: dict[str, Any]) -> None:
        size = np.abs(self.coef).max(axis=0)
        largest = np.argsort(-size, kind="stable")
        # In the legend from top to bottom as the lines end.
        named = largest[:most][np.argsort(-self.coef[-1, largest[:most]], kind="stable")]
        for j in largest[most:]:
            ax.plot(self.gammas, self.coef[:, j], **({"color": "0.8", "linewidth": 0.8} | kw))
        for at, j in enumerate(named):
            style = {"color": COLOURS[at % len(COLOURS)], "label": short(self.feature_names[j])}
            style["linestyle"] = ("-", "--", "-.", ":")[at // len(COLOURS) % 4]
            ax.plot(self.gammas, self.coef[:, j], **(style | kw))
        ax.axhline(0.0, color=GREY, linewidth=0.8, zorder=1)
        coefficient_axis(ax.yaxis, self.coef, 9)
        ax.set_ylabel("coefficient")
        ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize="small")

    def _plot_errors(self, ax: Any, metric: str, kw: dict[str, Any]) -> None:
        variance = 0.0 if self.variance is None else self.variance
        honest, attacked, alone = (
            in_metric(error, metric, variance)
            for error in (self.honest, self.attacked, self.from_goal)
        )
        lines = (("on honest rows", honest, HONEST), ("on attacked rows", attacked, ATTACKED))
        for label, values, colour in lines:
            ax.plot(self.gammas, values, **({"color": colour, "label": label} | kw))
        ax.axhline(alone, label="y from z alone", **GOAL)
        if self.gamma is not None:
            ax.axvline(self.gamma, color="0.3", linestyle="--", linewidth=1.0, label="true gamma")
        error_axis(ax, metric, [*honest, *attacked, alone])
        ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize="small")

    def __repr__(self) -> str:
        low, high = self.gammas.min(), self.gammas.max()
        judged = "" if self.honest is None else ", with errors"
        return (
            f"PathDisplay({len(self.gammas)} gammas from {low:.4g} to {high:.4g}, "
            f"{self.coef.shape[1]} features{judged})"
        )
