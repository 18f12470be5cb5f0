"""Rows that other array libraries hold, by scikit-learn's array API conventions.

With ``array_api_dispatch`` fitted attributes and predictions are arrays of the library and on the
device of ``X``. Vectors travel to the host and back; the rows never do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import get_config

from spgls.base.devices import Place, check_one_place, is_foreign, on_device, on_host, place_of
from spgls.base.validation import check_row_numbers, describe
from spgls.matrix import Matrix, as_matrix, device_of, refuse_non_finite

__all__ = [
    "as_numpy",
    "check_where_fitted",
    "like",
    "place_to_follow",
    "predict_placed",
    "read_placed",
    "read_placed_rows",
]


def place_to_follow(X: Any) -> Place | None:
    """Where results belong; None where they are NumPy's, as ever."""
    if not is_foreign(X):
        return None
    if get_config()["array_api_dispatch"]:
        return place_of(X)
    if on_device(X):
        raise TypeError(
            f"X must be in the host's memory; got {describe(X)} with {place_of(X)}. Call "
            "sklearn.set_config(array_api_dispatch=True) to fit it where it is; solve takes it "
            "in any case."
        )
    return None


def read_placed_rows(model: Any, X: Any, y: Any, *, reset: bool = True) -> tuple[Any, Any]:
    """Rows as they are, and labels: on the host, or beside them where they are many."""
    check_one_place(X, y=y)
    matrix = read_placed(model, X, reset=reset)
    return X, check_row_numbers(y, "y", matrix.shape[0], device_of(matrix))


def read_placed(model: Any, X: Any, *, reset: bool) -> Matrix:
    """The rows as a matrix, whose columns are those of the fit, or tell how many there are."""
    matrix = as_matrix(X, check_finite=False)
    n = matrix.shape[1]
    if reset:
        model.n_features_in_ = n
        vars(model).pop("feature_names_in_", None)
        return matrix
    if n != model.n_features_in_:
        raise ValueError(
            f"X has {n} features, but {type(model).__name__} is expecting {model.n_features_in_} "
            "features as input."
        )
    check_where_fitted(model, X)
    refuse_non_finite(matrix, "X", X)
    return matrix


def check_where_fitted(model: Any, X: Any) -> None:
    """Refuse rows of another library, or on another device, than those of the fit."""
    home, here = (place_of(t) if is_foreign(t) else None for t in (model.coef_, X))
    if home != here:
        told = ["NumPy" if place is None else str(place) for place in (here, home)]
        raise ValueError(
            f"{type(model).__name__}.predict() must use the same namespace and device as fit; got "
            f"X with {told[0]}, and the model was fitted with {told[1]}. Move X, or fit the model "
            "there."
        )


def predict_placed(model: Any, X: Any, place: Place) -> Any:
    """``w'x + b`` of each row, in the type of the rows."""
    matrix = read_placed(model, X, reset=False)
    coef = place.get(model.coef_).astype(np.float64)
    said = matrix.apply(coef) + float(model.intercept_)
    return place.put(said.astype(matrix.dtype, copy=False))


def like(place: Place | None, values: Any) -> Any:
    """An array where results belong; anything else as it is."""
    return place.put(values) if place is not None and isinstance(values, np.ndarray) else values


def as_numpy(values: Any) -> Any:
    """An array of NumPy's; anything but an array as it is."""
    return np.asarray(on_host(values)) if is_foreign(values) else values
