"""Where an estimator meets scikit-learn: reading, warning, callbacks, display in notebooks."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from html import escape
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_array, column_or_1d, validate_data

from spgls.base.devices import on_device, on_host, place_of
from spgls.base.frames import column_names
from spgls.base.types import Vector
from spgls.base.validation import as_numbers, check_rng, check_vector, describe, refuse_lazy
from spgls.estimators.placed import place_to_follow, read_placed, read_placed_rows
from spgls.game.classes import two_classes
from spgls.matrix import (
    DaskMatrix,
    Matrix,
    as_matrix,
    in_chunks,
    is_dask,
    is_lazy,
    refuse_matrix_object,
    refuse_non_finite,
)
from spgls.matrix.squares import column_squares
from spgls.reduction.columns import ColumnReduction
from spgls.reduction.data import GameData
from spgls.solvers import Solution, Status, Step
from spgls.solvers.statistics import GameStatistics

try:
    from sklearn.callback import CallbackSupportMixin
    from sklearn.callback import with_callbacks as _with_callbacks

    # A warning is the caller's of fit, and two decorators stand between.
    _CALLER = 5
except ImportError:  # scikit-learn before 1.9
    _CALLER = 4

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing to support."""

    def _with_callbacks(method: Any) -> Any:
        """Leave a method as it is."""
        return method


__all__ = [
    "NEW_BEGINNING",
    "READS",
    "CallbackSupportMixin",
    "Progress",
    "all_or_nothing",
    "doubt_of_idle_goals",
    "doubt_of_idle_sums",
    "doubt_of_scale",
    "doubt_of_scale_of_sums",
    "doubts_of_reach",
    "html_table",
    "in_double",
    "linear_of",
    "read_again",
    "read_labelled_rows",
    "read_random_state",
    "read_rows",
    "warn_of",
    "warn_of_status",
    "with_callbacks",
]

# Before partial_fit stands one decorator, and behind it the call that adds rows.
_ADDING = 5
_Method = TypeVar("_Method", bound=Callable[..., Any])

_TABLE = "a table of numbers (array, data frame or SciPy sparse matrix)"
#: What is taken as it comes: rows of either precision, stored by rows or columns if sparse.
READS: dict[str, Any] = {"accept_sparse": ("csr", "csc"), "dtype": (np.float64, np.float32)}
#: Providers who close more of the gap to their goals than this are predicted by their goals.
_STRONG = 0.95
#: Predictions that vary less than this, squared, of what columns make of them alone cancel.
_HARDLY = 1e-6
#: Goals further from the labels than this many of their standard deviations are on another scale.
_FAR = 10.0
#: Goals closer to the labels than this share of the largest number are the labels, up to rounding.
_SAME = 1e-12
#: Where fewer rows than this share want anything but the truth, the goals are hardly meant so.
_FEW = 0.01
_UNFINISHED = (Status.ITERATION_LIMIT, Status.STATIONARY, Status.INACCURATE, Status.FAILED)


def with_callbacks(method: _Method) -> _Method:
    """Let scikit-learn's callbacks see a fit."""
    seen: _Method = _with_callbacks(method)
    return seen


def all_or_nothing(method: _Method) -> _Method:
    """Leave an estimator as it was, where a method is interrupted or anything goes wrong."""

    @wraps(method)
    def attempt(self: Any, *told: Any, **named: Any) -> Any:
        before = dict(vars(self))
        try:
            return method(self, *told, **named)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    same: Any = attempt
    checked: _Method = same
    return checked


class Progress:
    """The tasks of one fit, as scikit-learn's callbacks see them: the fit and its iterations.

    Parameters
    ----------
    estimator : estimator
        The one that is fitted.
    iterative : bool
        Whether its solver reports iterations.
    **told
        What callbacks may ask for: X, y and metadata.
    """

    def __init__(self, estimator: Any, iterative: bool, **told: Any) -> None:
        self._estimator = estimator
        self._told = told
        self._fit: Any = None
        if getattr(estimator, "_skl_callbacks", None):
            # How many iterations it will take is not known beforehand.
            subtasks = None if iterative else 0
            self._fit = estimator._init_callback_context(max_subtasks=subtasks)
            self._fit.call_on_fit_task_begin(estimator=estimator, **told)

    @property
    def on_step(self) -> Callable[[Step], bool] | None:
        """Callback for a solver, which tells it to stop where one of scikit-learn's does."""
        return None if self._fit is None or self._fit.max_subtasks == 0 else self._step

    def _step(self, step: Step) -> bool:
        task = self._fit.subcontext(task_name=f"iteration {step.iteration}")
        task.call_on_fit_task_begin(estimator=self._estimator, **self._told)
        return bool(task.call_on_fit_task_end(estimator=self._estimator, **self._told))

    def end(self) -> None:
        """Tell the callbacks that the estimator is fitted."""
        if self._fit is not None:
            self._fit.call_on_fit_task_end(
                estimator=self._estimator, reconstruction_attributes={}, **self._told
            )


def html_table(rows: dict[str, str]) -> str:
    """Return a small table of two columns."""
    cells = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th><td>{escape(value)}</td></tr>"
        for name, value in rows.items()
    )
    return f"<table class='spgls-fit'><tbody>{cells}</tbody></table>"


def read_rows(model: Any, X: Any, y: Any, *, reset: bool = True) -> tuple[Any, Any]:
    """Rows and labels by scikit-learn's rules, and errors that name what is wrong.

    Data that is known by its verbs alone, such as a stream, is returned as it is. Unless ``reset``,
    the columns have to be those that the model knows.
    """
    # An array is none of these, and asking for all verbs takes as long as a small product.
    if not isinstance(X, np.ndarray) and (isinstance(X, Matrix) or in_chunks(X)):
        matrix = as_matrix(X, check_finite=False) if reset else _read_matrix_again(model, X)
        labels = check_vector(y, "y", matrix.shape[0], "row of X")
        if reset:
            _name_columns(model, X, matrix.shape[1])
        return matrix, labels
    refuse_lazy(X, "X", _TABLE)
    refuse_lazy(y, "y")
    if place_to_follow(X) is not None:
        return read_placed_rows(model, X, y, reset=reset)
    try:
        table, labels = validate_data(model, X, y, y_numeric=True, reset=reset, **READS)
        labels = labels.astype(np.float64, copy=False)
    except (RuntimeError, TypeError, ValueError) as error:
        _say_closer(error, X, y)
        raise
    return table, labels


def read_labelled_rows(
    model: Any, X: Any, y: Any, *, classes: Any = None, reset: bool = True
) -> tuple[Any, np.ndarray, np.ndarray]:
    """Rows, labels of two classes as they came, and the classes, by scikit-learn's rules.

    Classes that are known need not all be among the labels. Unless ``reset``, the columns have to
    be those that the model knows.
    """
    if in_chunks(X):
        table, labels = _read_labelled_chunks(model, X, y, reset=reset)
    else:
        table, labels = _read_labelled_table(model, X, y, reset=reset)
    found = two_classes(labels) if classes is None else classes
    if len(found) == 2:
        return table, labels, found
    check_classification_targets(labels)
    if len(found) == 1:
        raise ValueError(
            f"y must hold two classes; got only one class, {describe(found[0])}. Pass rows of "
            "both, or name both to partial_fit by classes=."
        )
    raise ValueError(
        "Only binary classification is supported. The type of the target is "
        f"{type_of_target(labels)}. y holds {len(found)} classes: pass rows of two, or wrap the "
        "model in OneVsRestClassifier."
    )


def _read_labelled_table(model: Any, X: Any, y: Any, *, reset: bool) -> tuple[Any, np.ndarray]:
    """Rows in memory, and labels as they came."""
    refuse_matrix_object(X, "X")
    refuse_lazy(X, "X", _TABLE)
    refuse_lazy(y, "y", "an array of labels")
    if on_device(X):
        raise TypeError(
            f"X must be in the host's memory for a classifier; got {describe(X)} with "
            f"{place_of(X)}. StackelbergRegressor and solve take it where it is."
        )
    try:
        table, labels = validate_data(model, X, y, reset=reset, **READS)
    except (RuntimeError, TypeError, ValueError) as error:
        _say_closer(error, X)
        raise
    return table, labels


def _read_labelled_chunks(model: Any, X: Any, y: Any, *, reset: bool) -> tuple[Any, np.ndarray]:
    """Rows in chunks of Dask, which stay where they are, and labels as they came."""
    matrix = as_matrix(X, check_finite=False) if reset else _read_matrix_again(model, X)
    given = np.asarray(y) if is_dask(y) else y
    labels = check_array(given, ensure_2d=False, dtype=None, input_name="y")
    labels = column_or_1d(labels, warn=True)
    if len(labels) != matrix.shape[0]:
        raise ValueError(
            f"y must have one entry per row of X, {matrix.shape[0]}; got {len(labels)}."
        )
    if reset:
        _name_columns(model, X, matrix.shape[1])
    return matrix, labels


def _name_columns(model: Any, X: Any, columns: int) -> None:
    """Set what scikit-learn sets of tables."""
    names = column_names(X)
    model.n_features_in_ = columns
    if names is not None:
        model.feature_names_in_ = np.array(names, dtype=object)
    elif hasattr(model, "feature_names_in_"):
        del model.feature_names_in_


def read_again(model: Any, X: Any, *, accept_sparse: bool = True) -> Any:
    """Rows for a model that is fitted already."""
    if in_chunks(X):
        return _read_matrix_again(model, X)
    if accept_sparse and isinstance(X, Matrix):
        return _read_matrix_again(model, X)
    refuse_matrix_object(X, "X")
    refuse_lazy(X, "X", _TABLE)
    if place_to_follow(X) is not None:
        read_placed(model, X, reset=False)
        return X
    how = READS if accept_sparse else READS | {"accept_sparse": False}
    try:
        return validate_data(model, X, reset=False, **how)
    except (RuntimeError, TypeError, ValueError) as error:
        _say_closer(error, X)
        raise


def linear_of(model: Any, table: Any) -> Any:
    """``w'x + b`` of rows that were read for a fitted model, in their own type."""
    if isinstance(table, np.ndarray) or not isinstance(table, Matrix):
        return table @ model.coef_ + model.intercept_
    if isinstance(table, DaskMatrix):
        coef, intercept = model.coef_.astype(np.float64), float(model.intercept_)
        return table.lazy_predictions(coef, intercept, model.coef_.dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        said = table.apply(model.coef_.astype(np.float64)) + float(model.intercept_)
    if not np.isfinite(said).all():
        refuse_non_finite(table, "X", table)
    return said.astype(model.coef_.dtype, copy=False)


def in_double(said: Any) -> Any:
    """Predictions in double precision, in this process; later where Dask has not computed them."""
    if is_lazy(said):
        return said.astype(np.float64)
    return np.asarray(on_host(said), dtype=np.float64)


def _read_matrix_again(model: Any, X: Any) -> Matrix:
    """Data that is known by its verbs alone, for a model that is fitted already."""
    matrix, names = as_matrix(X, check_finite=False), column_names(X)
    if matrix.shape[1] != model.n_features_in_:
        raise ValueError(
            f"X has {matrix.shape[1]} features, but {type(model).__name__} is expecting "
            f"{model.n_features_in_} features as input."
        )
    known = getattr(model, "feature_names_in_", None)
    if names is not None and known is not None and names != list(known):
        other = next((a, b) for a, b in zip(names, known, strict=True) if a != b)
        raise ValueError(
            f"X must have the features of the fit in the same order; {other[0]!r} stands where "
            f"{other[1]!r} was."
        )
    return matrix


def _say_closer(error: Exception, X: Any, y: Any = None) -> None:
    """Raise an error that names what is no table of numbers, if that was the trouble."""
    several = y is not None and "1d array" in str(error)
    if isinstance(error, ValueError):
        if "string" not in str(error) and not several:
            return
    elif isinstance(X, np.ndarray) and (y is None or isinstance(y, np.ndarray)):
        # What scikit-learn says of arrays of objects is part of its contract.
        return
    try:
        if not sp.issparse(X):
            as_numbers(X, "X", _TABLE)
        if y is not None:
            as_numbers(y, "y")
    except TypeError as closer:
        raise closer from None
    if several:
        check_vector(y, "y", None, "row of X")


def read_random_state(value: Any) -> np.random.Generator | None:
    """Return a generator from anything scikit-learn takes for one."""
    if isinstance(value, np.random.RandomState):
        return np.random.default_rng(value.randint(np.iinfo(np.int32).max))
    try:
        return check_rng(value)
    except (TypeError, ValueError) as error:
        raise type(error)(f"random_state{str(error).removeprefix('rng')}") from None


def doubt_of_scale(y: Vector, z: Vector) -> str | None:
    """What to tell where goals can hardly be meant in the units of the labels."""
    # By inner products, which cost a fraction of np.std.
    less_mean = y - y.sum() / len(y)
    # Over the largest, so that squares neither overflow nor vanish.
    largest = max(float(less_mean.max()), -float(less_mean.min()))
    if not 0.0 < largest < np.inf:
        return None
    less_mean = less_mean / largest
    spread = largest * float(np.sqrt(less_mean @ less_mean / len(y)))
    return _doubt_of_distance(float(np.abs(z - y).sum()) / len(y), spread)


def _doubt_of_distance(away: float, spread: float) -> str | None:
    if not away > _FAR * spread > 0.0:
        return None
    return (
        f"The goals z lie on average {away / spread:.3g} standard deviations of y from the "
        "labels, which suggests another scale. A TransformedTargetRegressor transforms y only: "
        "pass z, or the level of a goal, on the scale of the transformed y."
    )


def doubt_of_idle_goals(
    y: Vector, z: Vector, weight: Vector | None, goal: Any, advice: str
) -> str | None:
    """What to tell where next to nobody wants anything but the truth."""
    same = np.abs(z - y) <= _SAME * max(np.abs(y).max(), np.abs(z).max())
    counted = same if weight is None else same[weight > 0.0]
    m, idle = counted.size, np.count_nonzero(counted)
    if m - idle >= _FEW * m:
        return None
    shown = "z" if goal is None else f"{goal!r}"
    return (
        f"The goals from {shown} equal the labels y in {idle} of {m} rows ({100 * idle / m:.4g}%): "
        f"these providers want nothing but a correct prediction. {advice} If people do want "
        "the truth, this game is the right one, and the warning can be ignored."
    )


def doubts_of_reach(solution: Solution, data: GameData) -> Iterator[str]:
    """Tell of an optimum that rests on people or on directions that can hardly be relied on."""
    if not solution.status.ok:
        # The status says what is wrong.
        return
    alpha = np.atleast_1d(solution.alpha)
    least = float(alpha.min(initial=np.inf, where=alpha > 0.0))
    pull = 1.0 if np.isinf(least) else least / (1.0 + least)
    if alpha.any() and pull > _STRONG:
        yield (
            f"Strategic providers close {100 * pull:.3g}% of the gap to their goals: what the "
            "model predicts for them is their goal, nearly, and says little about their data. "
            "Pass a larger gamma, a larger honest_share, or a ridge."
        )
    shown = _shown(solution, data)
    if shown < _HARDLY:
        yield (
            "Most of the coefficients' norm lies in directions in which the data hardly varies: "
            f"predictions vary by {np.sqrt(shown):.1e} of what the changeable columns would make "
            "them vary one by one. Rows that do vary there, such as an unseen category, are "
            "predicted far from any label. Leave out one of the columns that depend on each "
            "other, or pass a ridge."
        )


def _shown(solution: Solution, data: GameData) -> float:
    """How much predictions vary, over what the changeable columns would add up to alone.

    At most a small number where more than half of the norm, in units of the columns, lies along
    singular directions below twice that number.
    """
    own = np.zeros_like(solution.coef)
    own[data.layout.changeable] = data.layout.inwards(solution.coef)[data.layout.changeable]
    if not own.any():
        return 1.0
    sums = [one for one in data.reductions.values() if isinstance(one, ColumnReduction)]
    if sums and not len(data.layout.immutable):
        # The rows were added up already, and need not be read again.
        price = 1.0 if data.layout.price is None else data.layout.price
        spread, alone = sums[-1].variation(solution.coef / price)
        return spread / alone if alone > 0.0 else 1.0
    mean = data.mean_row if data.layout.fit_intercept else None
    linear = data.matrix.apply(own, mean)
    alone = float(np.square(own) @ column_squares(data.matrix, data.weight, mean))
    return data.loss(linear) / alone if alone > 0.0 else 1.0


def doubt_of_scale_of_sums(known: GameStatistics) -> str | None:
    """What to tell where goals of all rows so far are hardly meant in the units of the labels."""
    return _doubt_of_distance(known.goal_distance, known.label_spread)


def doubt_of_idle_sums(known: GameStatistics, advice: str) -> str | None:
    """What to tell where nobody so far wants anything but the truth."""
    if known.goal_distance > _SAME * known.goal_size:
        return None
    return (
        "The goals equal the labels y in all rows so far: these providers want nothing but a "
        f"correct prediction. {advice} If people do want the truth, the warning can be ignored."
    )


#: What to tell where rows that a model was fitted to have no part in what follows.
NEW_BEGINNING = (
    "partial_fit begins anew: fit, which fitted this model before, keeps no sums of its rows. Call "
    "partial_fit with those rows first, or take a clone of the model."
)


def warn_of(doubts: Iterable[str | None], *, adding: bool = False) -> None:
    """Warn the caller of fit, or of partial_fit (``adding``)."""
    for doubt in filter(None, doubts):
        warnings.warn(doubt, UserWarning, stacklevel=_ADDING if adding else _CALLER)


def warn_of_status(solution: Solution, *, adding: bool = False) -> None:
    """Warn where a fit is not a certified optimum, unless the user stopped it."""
    status = solution.status
    if status.ok or status is Status.STOPPED:
        return
    category = ConvergenceWarning if status in _UNFINISHED else UserWarning
    proof = solution.certificate
    warnings.warn(
        f"{status.value}, relative gap {proof.relative_gap:.2g}. {solution.advice}",
        category,
        stacklevel=_ADDING if adding else _CALLER,
    )
