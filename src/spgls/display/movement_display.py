"""Which features people move against a model, how far, and what they pay for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from sklearn.preprocessing import StandardScaler

from spgls.base.types import Vector
from spgls.base.validation import check_count, check_vector
from spgls.display._figure import (
    ATTACKED,
    GREY,
    Display,
    label_plainly,
    open_axes,
    plain,
    short,
    tidy,
)
from spgls.display._models import face, read_names, split
from spgls.estimators.faced import model_columns
from spgls.game.response import most_taken

__all__ = ["MovementDisplay"]

_QUANTILES = (0.05, 0.95)


@dataclass(eq=False, repr=False)
class MovementDisplay(Display):
    """Which features of their rows people change, and how far.

    Everyone moves along one direction: row ``i`` changes feature ``j`` by
    ``step[i] * direction[j]``. Make one with :meth:`from_estimator`.

    Parameters
    ----------
    feature_names : list of str
        Names of the features that the linear model sees.
    step : ndarray of shape (m,)
        How far each row moves along the direction.
    direction : ndarray of shape (n,)
        How features move per unit of step; zero for those that cannot be changed.
    scale : ndarray of shape (n,)
        Standard deviation of each feature over the rows; one where it is constant.
    cost : ndarray of shape (m, )
        What each provider pays, in units of squared prediction.
    cost_share : ndarray of shape (n,)
        Share of that which is paid for each feature, the same for everyone. Where people take
        actions, the share of the change of prediction that each feature brings.
    actions : mapping of str to float
        How much of each action is taken per unit of step, by name; empty where features have a
        cost each.

    Attributes
    ----------
    figure_, ax_, axes_ : matplotlib Figure, Axes and array of Axes
        What :meth:`plot` has drawn.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from spgls import Floor, StackelbergRegressor
    >>> from spgls.display import MovementDisplay
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> fixed = {"age": float("inf"), "sex": float("inf")}
    >>> model = StackelbergRegressor(goal=Floor(250), feature_cost=fixed).fit(X, y)
    >>> display = MovementDisplay.from_estimator(model, X, Floor(250)(y))
    >>> display.feature_names[:4]
    ['age', 'sex', 'bmi', 'bp']
    >>> display.mean_move[:4].round(2)
    array([0.  , 0.  , 0.45, 0.3 ])
    >>> display.plot()  # doctest: +SKIP
    """

    feature_names: list[str]
    step: Vector
    direction: Vector
    scale: Vector
    cost: Vector
    cost_share: Vector
    actions: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        z: Any,
        gamma: Any = None,
        *,
        feature_cost: Any = None,
        feature_names: Any = None,
    ) -> Self:
        """Find out how providers move their rows against a model.

        Parameters
        ----------
        estimator : estimator
            A fitted linear model, or a Pipeline that ends in one. In a Pipeline features are those
            that the last step sees.
        X : array-like, data frame or sparse matrix of shape (m, k)
            Rows before they move, as the estimator takes them.
        z : array-like of shape (m,)
            Goals: the prediction each provider would like.
        gamma : float or array-like of shape (m,), optional
            Strength of the providers; by default the one that the estimator was fitted for.
        feature_cost : array-like, mapping or Actions, optional
            As in :func:`predict_attacked`; by default those that the estimator was fitted for.
        feature_names : list of str, optional
            Names of the features; by default those of the columns.

        Returns
        -------
        MovementDisplay
        """
        before, provider = face(estimator, X, gamma, feature_cost)
        goals = check_vector(z, "z", len(before), "row of X")
        head, last = split(estimator)
        seen = X if head is None else head.transform(X)
        step = provider.step(before, goals)
        strength = np.where(np.isinf(provider.gamma), 0.0, provider.gamma)
        paid = provider.coef * provider.direction
        return cls(
            feature_names=read_names(feature_names, len(paid), model_columns(head, last, seen)),
            step=step,
            direction=provider.direction,
            scale=StandardScaler(with_mean=False).fit(seen).scale_,
            cost=np.asarray(strength * step**2 * provider.reach),
            cost_share=paid / (provider.reach or 1.0),
            actions=provider.actions,
        )

    @property
    def mean_move(self) -> Vector:
        """Mean change of each feature, in its standard deviations."""
        # Plus zero, lest features that cannot be changed move by minus zero.
        return np.asarray(self.step.mean() * self.direction / self.scale + 0.0)

    def plot(self, ax: Any = None, *, max_features: int = 15, **kw: Any) -> Self:
        """Draw how far features move and what that costs; it needs matplotlib, ``spgls[plot]``.

        Bars are means over the rows; a thin line spans from the 5% to the 95% quantile.

        Parameters
        ----------
        ax : two matplotlib Axes, optional
            Where to draw moves and costs; a new figure by default.
        max_features : int
            Draw no more than this many features, those that move most.
        **kw
            For the bars, as in ``Axes.barh``.

        Returns
        -------
        MovementDisplay
            Itself.
        """
        most = check_count(max_features, "max_features") or len(self.direction)
        moves, costs = open_axes(
            ax, columns=2, sharey=True, gridspec_kw={"width_ratios": (3.0, 2.0)}
        )
        unit = self.direction / self.scale
        kept = np.argsort(-np.abs(unit), kind="stable")[:most]
        places, mean_cost = np.arange(len(kept)), float(self.cost.mean())
        bars = {"color": ATTACKED, "height": 0.7} | kw
        moves.barh(places, self.mean_move[kept], **bars)
        low, high = np.quantile(self.step, _QUANTILES)
        moves.hlines(places, low * unit[kept], high * unit[kept], color="0.15", linewidth=1.2)
        moves.axvline(0.0, color=GREY, linewidth=0.8)
        names = [short(self.feature_names[at]) for at in kept]
        moves.set_yticks(places, names)
        moves.set_ylim(len(kept) - 0.4, -0.6)
        moves.set_xlabel("change\n(standard deviations)")
        costs.barh(places, mean_cost * self.cost_share[kept], **(bars | {"color": GREY} | kw))
        costs.locator_params(axis="x", nbins=3)
        label_plainly(costs.xaxis, [mean_cost * self.cost_share.max()])
        costs.set_xlabel(f"mean cost\n({plain(mean_cost, 3)} in all)")
        if costs.get_shared_y_axes().joined(moves, costs):
            costs.tick_params(left=False, labelleft=False)
        else:
            costs.set_yticks(places, names)
            costs.set_ylim(moves.get_ylim())
        for one in (moves, costs):
            tidy(one)
            one.grid(visible=False, axis="y")
        return self._drawn([moves, costs])

    def __repr__(self) -> str:
        moved = int(np.count_nonzero(self.direction))
        told = most_taken(self.actions, self.step)
        return (
            f"MovementDisplay({len(self.step)} rows move {moved} of {len(self.direction)} "
            f"features{told}, mean cost {float(self.cost.mean()):.4g})"
        )
