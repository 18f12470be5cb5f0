"""From whatever a user holds to a matrix of the protocol."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from spgls._validation import describe
from spgls.matrix.dense import DenseMatrix
from spgls.matrix.protocol import Matrix
from spgls.matrix.sparse import SparseMatrix

__all__ = ["as_matrix"]

_FORMATS = ("csr", "csc")


def as_matrix(X: Any, name: str = "X") -> Matrix:
    """Wrap dense or sparse data without copying it.

    Parameters
    ----------
    X : array-like, data frame, or SciPy sparse matrix or array, of shape (m, n)
        Floating point data of any width is kept as it is; integers and truth values are
        converted once; sparse formats other than CSR and CSC are converted to CSR once.
    name : str
        How errors call it.

    Returns
    -------
    Matrix

    Examples
    --------
    >>> from spgls.matrix import as_matrix
    >>> as_matrix([[1, 2], [3, 4], [5, 6]]).shape
    (3, 2)
    """
    if isinstance(X, DenseMatrix | SparseMatrix):
        return X
    if sp.issparse(X):
        return _sparse(X, name)
    if X is None or isinstance(X, str | bytes | dict):
        raise TypeError(f"{name} must be a table of numbers; got {describe(X)}.")
    try:
        array = np.asarray(X)
        if array.dtype.kind == "O":
            array = array.astype(np.float64)
        if array.dtype.kind not in "biuf":
            raise TypeError
    except (TypeError, ValueError):
        raise TypeError(
            f"{name} must hold numbers only; got {describe(X)}{_culprit(X)}. "
            "Encode text and categories first, for example with OneHotEncoder."
        ) from None
    _check_shape(array.shape, name)
    if array.dtype.kind != "f" or array.dtype == np.float16 or array.dtype.itemsize > 8:
        array = array.astype(np.float64)
    _check_finite(array, name)
    return DenseMatrix(array)


def _sparse(X: Any, name: str) -> SparseMatrix:
    _check_shape(X.shape, name)
    if X.format not in _FORMATS:
        X = X.tocsr()
    if X.dtype.kind not in "biuf":
        raise TypeError(f"{name} must hold real numbers; got entries of type {X.dtype}.")
    if X.dtype not in (np.float64, np.float32):
        X = X.astype(np.float64)
    if not np.isfinite(X.data).all():
        bad = X.data[~np.isfinite(X.data)][0]
        raise ValueError(f"{name} must be finite; it stores {bad}. Drop or impute such rows first.")
    return SparseMatrix(X)


def _check_shape(shape: tuple[int, ...], name: str) -> None:
    if len(shape) != 2:
        hint = f" For one column pass {name}.reshape(-1, 1)." if len(shape) == 1 else ""
        raise ValueError(f"{name} must have two dimensions; got shape {shape}.{hint}")
    if shape[0] == 0 or shape[1] == 0:
        raise ValueError(f"{name} must have at least one row and one column; got shape {shape}.")


def _check_finite(array: np.ndarray, name: str) -> None:
    # One sum reads the data once and keeps no copy; only a bad sum is worth a closer look.
    with np.errstate(over="ignore", invalid="ignore"):
        suspicious = not np.isfinite(array.sum(dtype=np.float64))
    if not suspicious:
        return
    for row, values in enumerate(array):
        bad = ~np.isfinite(values)
        if bad.any():
            column = int(np.flatnonzero(bad)[0])
            raise ValueError(
                f"{name} must be finite; row {row}, column {column} is {values[column]}. "
                "Drop or impute such rows first."
            )


def _culprit(X: Any) -> str:
    """Name the first column of a data frame that does not hold numbers."""
    dtypes = getattr(X, "dtypes", None)
    if dtypes is None or not hasattr(dtypes, "items"):
        return ""
    for column, dtype in dtypes.items():
        if getattr(dtype, "kind", "O") not in "biuf":
            return f" whose column {column!r} has type {dtype}"
    return ""
