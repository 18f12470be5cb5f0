"""From whatever a user holds to a matrix of the protocol."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from spgls._validation import as_numbers, column_label, describe
from spgls.matrix.dense import DenseMatrix
from spgls.matrix.protocol import Matrix
from spgls.matrix.sparse import SparseMatrix

__all__ = ["as_matrix", "refuse_non_finite"]

_FORMATS = ("csr", "csc")


def as_matrix(X: Any, name: str = "X", *, check_finite: bool = True) -> Matrix:
    """Wrap dense or sparse data without copying it.

    Parameters
    ----------
    X : array-like, data frame, or SciPy sparse matrix or array, of shape (m, n)
        Floating point data of any width is kept as it is; integers and truth values are
        converted once; sparse formats other than CSR and CSC are converted to CSR once.
    name : str
        How errors call it.
    check_finite : bool
        Whether to read the data once to refuse what is not finite; who does not, sees it in what
        it computes and calls :func:`refuse_non_finite`.

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
    matrix = _sparse(X, name) if sp.issparse(X) else _dense(X, name)
    if check_finite:
        refuse_non_finite(matrix, name, X)
    return matrix


def refuse_non_finite(matrix: Matrix, name: str = "X", source: Any = None) -> None:
    """Raise an error that names the first entry that is not finite.

    Parameters
    ----------
    matrix : Matrix
        The data.
    name : str
        How errors call it.
    source : object
        What the user passed; its columns may have names.
    """
    if isinstance(matrix, DenseMatrix):
        _check_dense(matrix.values, name, source)
    elif isinstance(matrix, SparseMatrix):
        _check_sparse(matrix.values, name)


def _dense(X: Any, name: str) -> DenseMatrix:
    array = as_numbers(X, name, "a table of numbers (array, data frame or SciPy sparse matrix)")
    _check_shape(array.shape, name)
    if array.dtype.kind != "f" or array.dtype == np.float16 or array.dtype.itemsize > 8:
        array = array.astype(np.float64)
    return DenseMatrix(array)


def _sparse(X: Any, name: str) -> SparseMatrix:
    _check_shape(X.shape, name)
    if X.format not in _FORMATS:
        X = X.tocsr()
    if X.dtype.kind not in "biuf":
        raise TypeError(
            f"{name} must be a table of real numbers; got {describe(X)} of type {X.dtype}."
        )
    if X.dtype not in (np.float64, np.float32):
        X = X.astype(np.float64)
    return SparseMatrix(X)


def _check_shape(shape: tuple[int, ...], name: str) -> None:
    if 0 in shape:
        raise ValueError(f"{name} must have at least one row and one column; got shape {shape}.")
    if len(shape) != 2:
        hint = ""
        if len(shape) == 1:
            hint = (
                f" Pass {name}.reshape(-1, 1) if it is one column, "
                f"{name}.reshape(1, -1) if it is one row."
            )
        raise ValueError(f"{name} must have two dimensions; got shape {shape}.{hint}")


def _check_sparse(X: Any, name: str) -> None:
    bad = ~np.isfinite(X.data)
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        major, minor = int(np.searchsorted(X.indptr, at, side="right")) - 1, int(X.indices[at])
        row, column = (major, minor) if X.format == "csr" else (minor, major)
        raise _not_finite(name, row, column, X.data[at])


def _check_dense(array: np.ndarray, name: str, source: Any) -> None:
    # One sum reads the data once and keeps no copy; only a bad sum is worth a closer look.
    with np.errstate(over="ignore", invalid="ignore"):
        suspicious = not np.isfinite(array.sum(dtype=np.float64))
    if not suspicious:
        return
    for row, values in enumerate(array):
        bad = ~np.isfinite(values)
        if bad.any():
            at = int(np.flatnonzero(bad)[0])
            raise _not_finite(name, row, column_label(source, at), values[at])


def _not_finite(name: str, row: int, column: Any, value: Any) -> ValueError:
    return ValueError(
        f"{name} must be finite; row {row}, column {column!r} is {value}. "
        "Drop or impute such rows first."
    )
