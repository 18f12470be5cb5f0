"""How strong providers are, learned from rows before and after they moved.

Facing ``w, b`` a provider changes the prediction of its row by the share ``pull = q/(gamma + q)``
of the gap ``z - w'x - b`` to its goal, whatever its features cost. So the pull is the slope of the
changes of prediction on the gaps, and ``gamma = q (1 - pull)/pull`` is a decreasing function of it:
an interval for one is an interval for the other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import stdtr, stdtrit

from spgls.base.frames import column_names
from spgls.base.types import EPS, Array, Number, Numbers, Table, Vector
from spgls.base.validation import check_number, check_vector, describe
from spgls.game.costs import Costs, one_per_column, read_cost
from spgls.game.moves import Moves
from spgls.game.providers import Provider, priced_norm
from spgls.matrix import as_matrix, refuse_matrix_object

__all__ = ["GammaEstimate", "estimate_gamma"]

_CHECK = "Check that z, coef and intercept are those the providers reacted to"
#: Probabilities below which costs do not explain how features moved, nor noise how far.
_DOUBT, _PAST = 0.05, 1e-4


@dataclass(frozen=True, eq=False)
class GammaEstimate:
    """Strength of providers, learned from before and after by :func:`estimate_gamma`.

    Attributes
    ----------
    gamma : float
        Strength, in the unit of the costs; zero where noise lets providers seem to reach goals.
    stderr : float
        Its standard error, by the delta method, which the interval does not need.
    interval, confidence : tuple of float, float
        Confidence interval, not symmetric, cut off at zero; how often such intervals cover.
    pull, noise : float
        Share of their gaps that providers close; standard deviation of the changes of prediction
        about that.
    n_rows, degrees_of_freedom : int, float
        Pairs; degrees of freedom, one less or, where few rows have most of the gaps, still fewer.
    price : ndarray of shape (n,)
        ``gamma c_j``, all that data tell of gamma and of costs, learned without the given ones.
        ``nan`` where the coefficient is zero and nobody had a reason to move; ``inf`` for features
        immutable or not moved towards the goals. Where costs are given by actions, one for each
        of those; ``nan`` where rows do not tell how much of each was taken.
    price_stderr : ndarray of shape (n,)
        Standard errors of finite prices, by the delta method: rough where above a third of them.
    cost_pvalue : float
        Small unless features moved in the proportions that the given costs, or equal ones,
        foretell, and immutable and unused ones not at all; corrected for the number of features.
    misfit : str or int
        Name or number of the feature that agrees least with its cost.
    """

    gamma: float
    stderr: float
    interval: tuple[float, float]
    confidence: float
    pull: float
    noise: float
    n_rows: int
    degrees_of_freedom: float
    price: Vector
    price_stderr: Vector
    cost_pvalue: float
    misfit: str | int

    @property
    def feature_cost(self) -> Vector:
        """Costs that make the prices together with ``gamma``, as ``price/gamma``."""
        return np.asarray(self.price / (self.gamma or math.nan))

    def __repr__(self) -> str:
        low, high = self.interval
        fit = "fit" if self.cost_pvalue >= _DOUBT else f"do not fit, least of all {self.misfit!r}"
        return (
            f"GammaEstimate({self.gamma:.4g} ± {self.stderr:.2g}, {100 * self.confidence:g}% "
            f"interval {low:.4g} to {high:.4g}; providers close {self.pull:.3g} of their gaps, "
            f"{self.n_rows} rows, noise {self.noise:.2g}; costs {fit}, p = {self.cost_pvalue:.2g})"
        )


def estimate_gamma(
    X: Table,
    X_hat: Table,
    z: Numbers,
    coef: Numbers,
    *,
    intercept: Number = 0.0,
    feature_cost: Costs | None = None,
    confidence: Number = 0.95,
) -> GammaEstimate:
    """Learn how strong providers are from rows before and after they reacted to a model.

    Parameters
    ----------
    X, X_hat : array-like or data frame of shape (m, n)
        Rows before they moved, and the same rows in the same order after, with noise in them.
    z : array-like of shape (m,)
        Goals: the prediction each provider would have liked.
    coef, intercept : array-like of shape (n,), float
        The model they reacted to.
    feature_cost : array-like of shape (n,) or (n, n), mapping or Actions, optional
        Cost per squared unit of change, ``inf`` for immutable features, or such costs by column
        name. One by default. Sets the unit of gamma; whether it fits is tested.
    confidence : float
        Level of the interval.

    Returns
    -------
    GammaEstimate

    Raises
    ------
    ValueError
        Where data cannot tell: coef is zero or X immutable, fewer than two rows have a gap, the
        interval for the pull includes zero, or noise does not explain a pull above one.

    Notes
    -----
    The noise is that of ``X_hat``, independent between rows; it may differ between features, rows
    and gaps, and so may the strength of providers. The standard error is robust to that (HC2, with
    Bell and McCaffrey's degrees of freedom): the interval is exact for normal noise and gaps of
    equal size, and close to it otherwise. Where only some providers react, the pull is the average
    of all. Not allowed for is noise in ``X``: of variance ``v`` in the predictions, it adds about
    ``(1 - pull) v/mean(gap^2)`` to the pull.

    Examples
    --------
    >>> import numpy as np
    >>> from spgls import best_response, estimate_gamma
    >>> rng = np.random.default_rng(0)
    >>> X, coef = rng.normal(size=(300, 2)), [1.0, 2.0]
    >>> z = X @ coef + rng.uniform(1.0, 3.0, size=300)
    >>> X_hat = best_response(X, z, coef, gamma=2.5) + 0.1 * rng.normal(size=(300, 2))
    >>> estimate = estimate_gamma(X, X_hat, z, coef)
    >>> round(estimate.gamma, 1), estimate.interval[0] < 2.5 < estimate.interval[1]
    (2.5, True)
    """
    before, after, names = _read_pairs(X, X_hat)
    m, n = before.shape
    level = check_number(confidence, "confidence", above=0.0, below=1.0)
    goals = check_vector(z, "z", m, "row of X")
    w = check_vector(coef, "coef", n, "column of X")
    b = check_number(intercept, "intercept")
    cost = read_cost(feature_cost, n, names)
    w_changeable = np.where(np.isfinite(one_per_column(cost, n)), w, 0.0)
    with np.errstate(over="ignore"):
        d, q = Provider(w, b, math.inf, cost).direction, priced_norm(w, cost)
    if not 0.0 < q < math.inf:
        raise ValueError(
            "coef must differ from zero on a changeable feature, or providers gain nothing at any "
            f"gamma; sum(coef^2/feature_cost) is {q:g}. Check coef and feature_cost."
        )
    moved = after - before
    change = moved @ w_changeable
    # What is left of a gap, without the cancellation in gap - change where providers are strong.
    left = goals - after @ w - b + moved @ (w - w_changeable)
    sizes = 4.0 * EPS * (np.abs(before).max(axis=0) + np.abs(after).max(axis=0))
    rounding = float(sizes @ np.abs(w)) + 4.0 * EPS * (float(np.abs(goals).max()) + abs(b))
    gaps = _Gaps(goals - before @ w - b, rounding)
    pull, kept = (float(gaps.slope(part)) / gaps.unit for part in (change, left))
    rest = gaps.residual(change)
    error = math.hypot(gaps.stderr(rest), gaps.spread(rounding)) / gaps.unit
    reach = error * float(stdtrit(gaps.freedom, 0.5 + 0.5 * level))
    _refuse_unidentified(pull, reach, q, level, float(stdtr(gaps.freedom, (1.0 - pull) / error)))
    low, high = (q * max(kept + side, 0.0) / (pull - side) for side in (-reach, reach))
    if isinstance(cost, Moves):
        price, price_stderr = _action_prices(gaps, moved, rest, cost, w, kept)
    else:
        price, price_stderr = _prices(gaps, moved, rest, w_changeable, kept)
        price[w_changeable != w] = math.inf
    # How features moved beyond what the change of prediction and their costs foretell.
    beyond = moved - np.outer(change / q, d)
    spread = gaps.spread(sizes + np.abs(d) * (rounding / q)) + np.finfo(np.float64).tiny
    ratio = gaps.slope(beyond) / np.hypot(gaps.stderr(gaps.residual(beyond)), spread)
    worst = int(np.argmax(np.abs(ratio)))
    doubt = 2.0 * float(stdtr(gaps.freedom, -abs(ratio[worst])))
    return GammaEstimate(
        gamma=q * max(kept, 0.0) / pull,
        stderr=q * error / pull**2,
        interval=(low, high),
        confidence=level,
        pull=pull,
        noise=math.sqrt(float(rest @ rest) / (m - 1)),
        n_rows=m,
        degrees_of_freedom=gaps.freedom,
        price=price,
        price_stderr=price_stderr,
        cost_pvalue=min(1.0, n * doubt) if n > 1 else 1.0,
        misfit=worst if names is None else names[worst],
    )


class _Gaps:
    """Least squares through the origin on the gaps, with errors robust to uneven noise."""

    def __init__(self, gap: Vector, rounding: float) -> None:
        seen = np.count_nonzero(np.abs(gap) > rounding)
        if seen < 2:
            raise ValueError(
                "z must differ from the predictions X @ coef + intercept in at least two rows, or "
                f"nothing can be learned of gamma; it does so in {seen}. {_CHECK}."
            )
        self.unit = float(np.abs(gap).max())
        self.g = gap / self.unit
        self.square = float(self.g @ self.g)
        leverage = self.g**2 / self.square
        others = _all_but_each(leverage)
        # HC2, and Bell and McCaffrey's degrees of freedom; for gaps of equal size the usual ones.
        self.weight = leverage / others / self.square
        ratio = leverage**2 / others
        freedom = 1.0 / float(leverage @ leverage + ratio @ _all_but_each(ratio))
        self.freedom = min(max(freedom, 1.0), len(gap) - 1.0)

    def slope(self, values: Array) -> Any:
        """Slope of each column on the gaps in their own unit."""
        return (self.g @ values) / self.square

    def residual(self, values: Array) -> Array:
        """What the slopes leave of each column."""
        return np.asarray(values - np.multiply.outer(self.g, self.slope(values)))

    def stderr(self, residual: Array) -> Any:
        """Standard errors of the slopes, from the residuals."""
        return np.sqrt(self.weight @ residual**2)

    def spread(self, rounding: Any) -> Any:
        """Bound on what rounding errors of the values can do to their slopes."""
        return rounding * math.sqrt(len(self.g) / self.square)


def _all_but_each(values: Vector) -> Vector:
    """The sum without each entry, free of cancellation at the largest."""
    largest = int(np.argmax(values))
    rest = np.asarray(values.sum() - values)
    rest[largest] = float(np.delete(values, largest).sum())
    return rest


def _prices(gaps: _Gaps, moved: Array, rest: Vector, coef: Vector, kept: float) -> Array:
    """``gamma c_j = w_j (what is left of the gap)/(displacement)``, and standard errors."""
    price, stderr = np.where(coef == 0.0, math.nan, math.inf), np.full(len(coef), math.nan)
    slope = gaps.slope(moved) / gaps.unit
    towards = np.flatnonzero(slope * coef > 0.0)
    price[towards] = coef[towards] * max(kept, 0.0) / slope[towards]
    if kept > 0.0:
        relative = gaps.residual(moved[:, towards]) / slope[towards] + rest[:, np.newaxis] / kept
        stderr[towards] = price[towards] * gaps.stderr(relative) / gaps.unit
    return np.array([price, stderr])


def _action_prices(
    gaps: _Gaps, moved: Array, rest: Vector, moves: Moves, coef: Vector, kept: float
) -> Array:
    """The same of actions, where rows tell how much of each was taken; else ``nan``."""
    effects = moves.effects.toarray() if sp.issparse(moves.effects) else moves.effects
    if not moves.names or np.linalg.matrix_rank(effects) < len(effects):
        return np.full((2, len(effects)), math.nan)
    worth = np.where(np.isfinite(moves.cost), effects @ coef, 0.0)
    prices = _prices(gaps, moved @ np.linalg.pinv(effects), rest, worth, kept)
    prices[0, np.isinf(moves.cost)] = math.inf
    return prices


def _refuse_unidentified(pull: float, reach: float, q: float, level: float, one: float) -> None:
    low, high = pull - reach, pull + reach
    found = (
        f"X_hat cannot tell gamma: providers closed {pull:.3g} of the gap to their goals, "
        f"{100 * level:g}% interval {low:.3g} to {high:.3g}"
    )
    if low <= 0.0:
        bound = f" All that can be said is gamma > {q * (1 - high) / high:.3g}."
        raise ValueError(
            f"{found}, so perhaps nobody reacts.{bound if 0.0 < high < 1.0 else ''} Pass more rows,"
            f" or rows farther from their goals. {_CHECK}, and rows of X_hat in the order of X."
        )
    # Providers who all but reach their goals seem past them in half of all samples.
    if one < _PAST:
        raise ValueError(f"{found}. They went past their goals, which no gamma explains. {_CHECK}.")


def _read_pairs(X: Any, X_hat: Any) -> tuple[Array, Array, list[str] | None]:
    """Rows before and after as arrays, and the names of their columns."""
    for table, name in ((X, "X"), (X_hat, "X_hat")):
        refuse_matrix_object(table, name)
        if sp.issparse(table):
            raise TypeError(f"{name} must be dense; got {describe(table)}. Pass {name}.toarray().")
    shape, shape_after = as_matrix(X).shape, as_matrix(X_hat, "X_hat").shape
    if shape != shape_after:
        raise ValueError(
            f"X_hat must have the shape of X, {shape}, because it holds the rows of X after they "
            f"moved; got {shape_after}. Keep the rows that are in both."
        )
    names, again = column_names(X), column_names(X_hat)
    if names is not None and again is not None and names != again:
        at = next(i for i in range(len(names)) if names[i] != again[i])
        raise ValueError(
            f"X_hat must have the columns of X in their order; column {at} is {again[at]!r}, not "
            f"{names[at]!r}. Pass X_hat[list(X.columns)]."
        )
    labels = [list(t.index) for t in (X, X_hat) if hasattr(t, "columns") and hasattr(t, "index")]
    if len(labels) == 2 and labels[0] != labels[1] and set(labels[0]) == set(labels[1]):
        raise ValueError(
            "X_hat must have the rows of X in their order; its index holds the same labels in "
            "another. Pass X_hat.loc[X.index]."
        )
    return np.asarray(X, np.float64), np.asarray(X_hat, np.float64), names
