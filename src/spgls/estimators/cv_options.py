"""What a cross-validated estimator is told: grids, worlds, splits of the rows, and scores."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence, Set
from numbers import Real
from typing import Any

import numpy as np
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import check_cv

from spgls.base.types import Array, Vector
from spgls.base.validation import check_number, describe
from spgls.estimators.conventions import _CALLER
from spgls.estimators.folds import Judge, Measure, Models
from spgls.estimators.scorers import AttackedScorer
from spgls.game.providers import Population
from spgls.matrix import Matrix, in_chunks
from spgls.reduction.data import GameData
from spgls.reduction.fold_sums import Split

__all__ = [
    "check_enough_rows",
    "check_scoring",
    "read_grid",
    "read_judge",
    "read_measure",
    "read_splits",
    "read_worlds",
    "warn_of_no_world",
]

#: Scores that follow from mean squared errors and the variance of the labels.
_MEASURES: dict[str, Measure] = {
    "neg_mean_squared_error": lambda mse, _: -mse,
    "neg_root_mean_squared_error": lambda mse, _: -np.sqrt(mse),
    # Of constant labels as in scikit-learn: right or not.
    "r2": lambda mse, variance: 1.0 - mse / variance if variance > 0.0 else 1.0 * (mse == 0.0),
}
_WORLD = (
    "world must be a positive number (every provider moves with that strength; inf is everyone "
    "honest), a Population, or a list of such"
)


_PAIRS = (
    "cv must be a number of folds, a splitter, or yield pairs of arrays of row numbers, training "
    "and test"
)


def read_grid(values: Any, name: str, **limits: float) -> tuple[float, ...]:
    """Return the numbers of a grid, each within its limits."""
    wanted = f"{name} must be a list or array of numbers"
    if values is None or isinstance(values, str | bytes | Mapping | Set | Real | Population):
        hint = f" Pass {name}=[{values!r}]." if isinstance(values, Real) else ""
        raise TypeError(f"{wanted}; got {describe(values)}.{hint}")
    try:
        entries = list(values)
    except TypeError:
        raise TypeError(f"{wanted}; got {describe(values)}.") from None
    if not entries:
        raise ValueError(f"{wanted}, at least one; got an empty one.")
    return tuple(
        check_number(entry, f"{name}[{at}]", **limits)  # type: ignore[arg-type]
        for at, entry in enumerate(entries)
    )


def read_worlds(world: Any) -> tuple[Population, ...] | None:
    """Return the worlds that models are judged in; None where none was given."""
    if world is None:
        return None
    if isinstance(world, Population | Real):
        return (_read_world(world, "world"),)
    if isinstance(world, np.ndarray) and world.ndim == 0:
        world = [world.item()]
    if isinstance(world, str | bytes | Mapping | Set) or not hasattr(world, "__iter__"):
        raise TypeError(f"{_WORLD}; got {describe(world)}.")
    worlds = tuple(_read_world(one, f"world[{at}]") for at, one in enumerate(world))
    if not worlds:
        raise ValueError(f"{_WORLD}; got an empty one.")
    return worlds


def _read_world(value: Any, name: str) -> Population:
    if isinstance(value, Population):
        return value
    said = f"{_WORLD}; {name} is {describe(value)}."
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise TypeError(said)
    if not float(value) > 0.0:
        raise ValueError(said)
    return Population((float(value),), (1.0,))


def read_splits(
    cv: Any, X: Any, data: GameData, metadata: dict[str, Any], *, stratified: bool
) -> list[Split]:
    """Return the rows of each split, refusing splits that nothing can be fitted or judged on."""
    y, weight = data.y, data.weight
    pairs = _read_pairs(cv, X, y, metadata, stratified)
    if not pairs:
        raise ValueError(f"cv must yield at least one split of the rows; {cv!r} yields none.")
    splits = []
    for number, pair in enumerate(pairs):
        try:
            train, test = pair
        except (TypeError, ValueError):
            raise TypeError(f"{_PAIRS}; split {number} is {describe(pair)}.") from None
        split = Split(*(_read_rows(rows, number, len(y)) for rows in (train, test)))
        for rows, name in zip(split, ("training", "test"), strict=True):
            counted = len(rows) if weight is None else np.count_nonzero(weight[rows])
            if not counted:
                why = "" if weight is None else " of positive weight"
                raise ValueError(
                    f"cv must leave {name} rows{why} in every split; split {number} has none. "
                    "Pass a cv with fewer or larger folds."
                )
        splits.append(split)
    return splits


def _read_pairs(
    cv: Any, X: Any, y: Vector, metadata: dict[str, Any], stratified: bool
) -> list[Any]:
    """What a splitter makes of the rows, or what was given in its place."""
    if hasattr(cv, "__iter__") and not hasattr(cv, "split") and not isinstance(cv, str):
        return list(cv)
    splitter = check_cv(cv, y, classifier=stratified)
    # Data that is known by its verbs alone has no rows to show; splitters count them.
    shown = np.zeros((len(y), 1)) if isinstance(X, Matrix) or in_chunks(X) else X
    try:
        return list(splitter.split(shown, y, **metadata))
    except ValueError as error:
        asks = "'groups'" in str(error) and "groups" not in metadata
        hint = "Pass groups= to fit." if asks else "Pass a cv that can, such as one of fewer folds."
        raise ValueError(
            f"cv={cv!r} could not split the {len(y)} rows of X: {error} {hint}"
        ) from None


def _read_rows(rows: Any, number: int, m: int) -> np.ndarray:
    array = np.asarray(rows)
    if array.dtype == np.bool_ and array.shape == (m,):
        array = np.flatnonzero(array)
    whole = array.ndim == 1 and (array.dtype.kind in "iu" or array.size == 0)
    if not whole or (array.size and not -m <= array.min() <= array.max() < m):
        raise ValueError(
            f"cv must yield pairs of arrays of row numbers below {m}, training and test; split "
            f"{number} has {describe(rows)}."
        )
    return np.asarray(array % m, dtype=np.intp)


def read_measure(scoring: Any) -> Measure | None:
    """Return how scores follow from squared errors; None where they do not."""
    if scoring is None:
        return _MEASURES["neg_mean_squared_error"]
    if isinstance(scoring, str) and scoring in _MEASURES:
        return _MEASURES[scoring]
    check_scoring(scoring, "numbers")
    return None


def check_scoring(scoring: Any, kind: str) -> None:
    """Refuse what scores neither numbers nor classes, or not those that are predicted."""
    try:
        judges = AttackedScorer(1.0, metric=scoring).judges
    except (TypeError, ValueError) as error:
        said = str(error).replace("metric must be", "scoring must be None,", 1)
        raise type(error)(said) from None
    if kind not in judges:
        raise ValueError(
            f"scoring must be None, the name of a scikit-learn scorer of {kind}, or one from "
            f"make_scorer; got {describe(scoring)}, which judges {' and '.join(judges)}."
        )


def check_enough_rows(scoring: Any, splits: Sequence[Split]) -> None:
    """Refuse scores that test sets of one row do not have."""
    short = [number for number, split in enumerate(splits) if len(split.test) < 2]
    if isinstance(scoring, str) and scoring == "r2" and short:
        raise ValueError(
            f"scoring='r2' needs two test rows or more in every split; split {short[0]} has one. "
            "Pass larger folds, or another scoring, such as None."
        )


def read_judge(scoring: Any, data: GameData, table: Any, worlds: Sequence[Population]) -> Judge:
    """Return how a scikit-learn scorer judges models on attacked rows."""
    cost = data.layout.given_cost
    scorers = [AttackedScorer(world, metric=scoring, feature_cost=cost) for world in worlds]

    def judge(split: Split, models: Models) -> Array:
        test = split.test
        rows = table.take(test) if isinstance(table, Matrix) else table[test]
        y, z = data.y[test], data.z[test]
        weight = None if data.weight is None else data.weight[test]
        return np.array(
            [
                [
                    scorer(_linear(coef, intercept), rows, y, z=z, sample_weight=weight)
                    for coef, intercept in zip(models.coef.T, models.intercept, strict=True)
                ]
                for scorer in scorers
            ]
        )

    return judge


def _linear(coef: Vector, intercept: float) -> LinearRegression:
    """A linear model that is there already."""
    model = LinearRegression()
    model.coef_, model.intercept_ = coef, intercept
    return model


def warn_of_no_world() -> None:
    """Warn where strengths or shares are to be chosen and nobody said what for."""
    warnings.warn(
        "gammas or honest_shares were given to choose from, but no world to choose them for. Rows "
        "as they were collected do not tell who will move them: candidates are compared where half "
        "of the providers are honest and the others close a fixed share (pull) of the gap to their "
        "goal against least squares, and what is chosen mostly repeats that. Pass "
        "world=, a strength or a Population.",
        UserWarning,
        stacklevel=_CALLER,
    )
