"""Coefficients of linear models, feature by feature, with what it costs to change each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.preprocessing import StandardScaler

from spgls.base.frames import column_names
from spgls.base.types import Array, Vector
from spgls.base.validation import check_count, check_vector
from spgls.display._figure import (
    COLOURS,
    GREY,
    Display,
    coefficient_axis,
    label_plainly,
    open_axes,
    plain,
    short,
    tidy,
)
from spgls.display._models import read_names
from spgls.estimators.faced import linear_parts, model_columns
from spgls.game.costs import one_per_column, read_cost
from spgls.matrix import as_matrix
from spgls.solvers import Solution
from spgls.study.named_models import is_pair, read_models, seen_by

__all__ = ["CoefficientDisplay"]

_MARKERS = "osD^vP*"
#: Height in inches of a feature, of each model's point in it, and of everything around them.
_ROW, _POINT, _AROUND = 0.26, 0.09, 1.0


@dataclass(eq=False, repr=False)
class CoefficientDisplay(Display):
    """What models rely on, and which of it people can change.

    Make one with :meth:`from_estimators`.

    Parameters
    ----------
    models : tuple of k str
        Names of the models.
    coef : ndarray of shape (k, n)
        Coefficients of each.
    feature_names : list of str
        Names of the features.
    cost : ndarray of shape (n,), optional
        Cost of each feature, ``inf`` for those that cannot be changed; None where it is not known.
    unit : str
        What coefficients are per: the unit of a feature, or its standard deviation.

    Attributes
    ----------
    figure_, ax_, axes_ : matplotlib Figure, Axes and array of Axes
        What :meth:`plot` has drawn.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import LinearRegression
    >>> from spgls import Floor, StackelbergRegressor
    >>> from spgls.display import CoefficientDisplay
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> fixed = {"age": float("inf"), "sex": float("inf")}
    >>> model = StackelbergRegressor(goal=Floor(250), feature_cost=fixed).fit(X, y)
    >>> display = CoefficientDisplay.from_estimators([LinearRegression().fit(X, y), model], X)
    >>> [display.feature_names[at] for at in display.order[:3]]
    ['s1', 's5', 'bmi']
    >>> display.coef[:, display.order[:3]].round()
    array([[-38.,  36.,  25.],
           [ -2.,  19.,  21.]])
    >>> display.plot()  # doctest: +SKIP
    """

    models: tuple[str, ...]
    coef: Array
    feature_names: list[str]
    cost: Vector | None = None
    unit: str = "unit"

    @classmethod
    def from_estimators(
        cls, models: Any, X: Any = None, *, feature_cost: Any = None, feature_names: Any = None
    ) -> Self:
        """Take the coefficients of models.

        Parameters
        ----------
        models : model, pair, mapping or list
            As in :func:`robustness`: a fitted linear model, or several, by name or in a list, all
            of the same features. In a Pipeline features are those that the last step sees.
        X : array-like, data frame or sparse matrix of shape (m, k), optional
            Rows as the models take them. With rows coefficients are per standard deviation of a
            feature, which makes them comparable; without, per its unit.
        feature_cost : array-like, mapping or Actions, optional
            As in :func:`predict_attacked`; by default those of the first model that was fitted for
            some.
        feature_names : list of str, optional
            Names of the features; by default those that the models know.

        Returns
        -------
        CoefficientDisplay
        """
        named = read_models(models)
        rows: list[Vector] = []
        known, cost = None, None
        for name, model in named.items():
            coef, names, priced = _read(model, X)
            if rows and len(coef) != len(rows[0]):
                raise ValueError(
                    f"models must have the same features; models[{name!r}] has {len(coef)}, the "
                    f"first one {len(rows[0])}."
                )
            if X is not None:
                seen = seen_by(model, X)
                _, n = as_matrix(seen).shape
                if n != len(coef):
                    raise ValueError(
                        f"X must have {len(coef)} columns, as models[{name!r}] was fitted; got {n}."
                    )
                coef = coef * StandardScaler(with_mean=False).fit(seen).scale_
            rows.append(coef)
            known = names if known is None else known
            cost = priced if cost is None else cost
        labels = read_names(feature_names, len(rows[0]), known)
        if feature_cost is not None:
            cost = one_per_column(read_cost(feature_cost, len(rows[0]), labels), len(rows[0]))
        unit = "unit" if X is None else "standard deviation"
        return cls(tuple(named), np.array(rows), labels, cost, unit)

    @property
    def order(self) -> np.ndarray:
        """Features from the largest to the smallest, by their largest coefficient in any model."""
        return np.argsort(-np.abs(self.coef).max(axis=0), kind="stable")

    def plot(self, ax: Any = None, *, max_features: int = 20, **kw: Any) -> Self:
        """Draw coefficients by feature; it needs matplotlib, the extra ``spgls[plot]``.

        Features that cannot be changed are shaded, and costs other than one stand after names.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        max_features : int
            Draw no more than this many features, those of the largest coefficients.
        **kw
            For the points, as in ``Axes.plot``.

        Returns
        -------
        CoefficientDisplay
            Itself.
        """
        most = check_count(max_features, "max_features") or self.coef.shape[1]
        kept = self.order[:most]
        places = np.arange(len(kept))
        row = max(_ROW, _POINT * len(self.models))
        (ax,) = open_axes(ax, size=(7.2, _AROUND + max(row * len(kept), 6 * _ROW)))
        ax.axvline(0.0, color=GREY, linewidth=0.8, zorder=1)
        # Points of several models at one height would hide each other where they agree.
        offsets = np.linspace(-0.5, 0.5, len(self.models) + 2)[1:-1]
        for at, (name, coef, offset) in enumerate(
            zip(self.models, self.coef, offsets, strict=True)
        ):
            style = {
                "color": COLOURS[at % len(COLOURS)],
                # Once colours are used up, they come with other markers.
                "marker": _MARKERS[(at + at // len(COLOURS)) % len(_MARKERS)],
                "markersize": 5.0,
                "linestyle": "",
                "label": short(name),
            }
            ax.hlines(places + offset, 0.0, coef[kept], color=style["color"], linewidth=1.0)
            ax.plot(coef[kept], places + offset, **(style | kw))
        if self.cost is not None:
            fixed = places[np.isinf(self.cost[kept])]
            for at, place in enumerate(fixed):
                label = None if at else "cannot be changed"
                ax.axhspan(place - 0.5, place + 0.5, color="0.92", zorder=0, label=label)
        ax.set_yticks(places, [self._called(at) for at in kept])
        ax.set_ylim(len(kept) - 0.4, -0.6)
        label_plainly(ax.xaxis, [float(np.abs(self.coef).max())])
        coefficient_axis(ax.xaxis, self.coef, 5)
        ax.margins(x=0.06)
        ax.set_xlabel(f"coefficient (per {self.unit})")
        if len(kept) < self.coef.shape[1]:
            ax.set_ylabel(f"the largest of {self.coef.shape[1]} features")
        tidy(ax)
        ax.grid(visible=False, axis="y")
        ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize="small")
        return self._drawn([ax])

    def _called(self, feature: int) -> str:
        name = short(self.feature_names[feature])
        cost = 1.0 if self.cost is None else float(self.cost[feature])
        return name if cost == 1.0 or np.isinf(cost) else f"{name} (cost {plain(cost)})"

    def __repr__(self) -> str:
        fixed = 0 if self.cost is None else int(np.isinf(self.cost).sum())
        told = f", {fixed} of them cannot be changed" if fixed else ""
        return f"CoefficientDisplay({len(self.models)} models, {self.coef.shape[1]} features{told})"


def _read(model: Any, X: Any) -> tuple[Vector, list[str] | None, Vector | None]:
    """Coefficients, names and costs of a model, the latter two where it knows them."""
    if isinstance(model, Solution):
        model = (model.coef, model.intercept)
    if is_pair(model):
        return check_vector(model[0], "coef", None, "feature"), column_names(X), None
    head, last, coef = linear_parts(model)
    names = model_columns(head, last, X if head is None or len(head) == 0 else None)
    cost = getattr(last, "feature_cost_", None)
    return coef, names, None if cost is None else one_per_column(cost, len(coef))
