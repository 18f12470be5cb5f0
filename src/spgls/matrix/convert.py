"""From whatever a user holds to a matrix of the protocol."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from spgls.base.devices import Place, is_foreign, on_device
from spgls.base.validation import as_numbers, column_label, describe
from spgls.matrix.dask_input import is_dask
from spgls.matrix.dense import DenseMatrix
from spgls.matrix.protocol import VERBS, Matrix
from spgls.matrix.sparse import SparseMatrix

__all__ = ["as_matrix", "device_of", "non_finite", "refuse_matrix_object", "refuse_non_finite"]

_FORMATS = ("csr", "csc")
#: What some array or frame has too says nothing.
_OWN_VERBS = tuple(
    verb for verb in VERBS if verb not in ("shape", "dtype", "apply", "cross", "moment", "take")
)


def as_matrix(X: Any, name: str = "X", *, check_finite: bool = True) -> Matrix:
    """Wrap data without copying it.

    Parameters
    ----------
    X : array-like, data frame, SciPy sparse matrix or array, Dask array, or Matrix
        Floating point data of any width is kept as it is; integers and truth values are
        converted once; sparse formats other than CSR and CSC are converted to CSR once. An object
        with all verbs of :class:`~spgls.matrix.Matrix` is returned as it is. Arrays of PyTorch,
        CuPy and JAX on a device stay there, dense or in CSR format.
    name : str
        How errors call it.
    check_finite : bool
        Whether to read the data once to refuse what is not finite. Callers that skip this check
        must test their own result for non-finite values, and call :func:`refuse_non_finite`.

    Returns
    -------
    Matrix

    Examples
    --------
    >>> from spgls.matrix import as_matrix
    >>> as_matrix([[1, 2], [3, 4], [5, 6]]).shape
    (3, 2)
    """
    matrix: Matrix
    if isinstance(X, np.ndarray):
        matrix = _dense(X, name)
    elif sp.issparse(X):
        matrix = _sparse(X, name)
    elif is_dask(X):
        matrix = _in_chunks(X, name)
    elif is_foreign(X):
        matrix = _foreign(X, name)
    elif _is_matrix(X, name):
        matrix = X
        _check_shape(matrix.shape, name)
    else:
        matrix = _dense(X, name)
    if check_finite:
        refuse_non_finite(matrix, name, X)
    return matrix


def refuse_matrix_object(X: Any, name: str) -> None:
    """Raise an error where rows themselves are needed, and only a matrix's verbs are there."""
    if isinstance(X, Matrix):
        raise TypeError(
            f"{name} must be an array, a data frame or a sparse matrix here, because its rows are "
            f"needed themselves; got {describe(X)}. solve, solve_path, certify and the regressors "
            "take it."
        )


def refuse_non_finite(matrix: Matrix, name: str = "X", source: Any = None) -> None:
    """Raise an error that names an entry that is not finite.

    Parameters
    ----------
    matrix : Matrix
        The data.
    name : str
        How errors call it.
    source : object
        What the user passed; its columns may have names.
    """
    found = matrix.find_non_finite()
    if found is not None:
        row, column, value = found
        # Rows of a file are easier to find by their block.
        own = getattr(matrix, "name_row", None)
        where = f"row {row}" if own is None else own(row)
        raise non_finite(name, where, column_label(source, column), value)


def non_finite(name: str, where: str, column: Any, value: float) -> ValueError:
    """The error that names an entry that is not finite."""
    return ValueError(
        f"{name} must be finite; {where}, column {column!r} is {value}. Drop or impute such rows "
        "first."
    )


def _is_matrix(X: Any, name: str) -> bool:
    """Whether an object has every verb; one with some that no array has is refused."""
    kind = type(X)
    # A frame answers to the names of its columns, so a class is asked before its object is.
    if isinstance(X, type) or not any(hasattr(kind, verb) for verb in _OWN_VERBS):
        return False
    missing = [verb for verb in VERBS if not (hasattr(kind, verb) or hasattr(X, verb))]
    if missing:
        raise TypeError(
            f"{name} must have every verb of spgls.matrix.Matrix to be taken as a matrix; "
            f"got {describe(X)} without {', '.join(missing)}. Data in row blocks gets all of them "
            "from spgls.matrix.BlockedMatrix."
        )
    return True


def _in_chunks(X: Any, name: str) -> Matrix:
    """Rows of a Dask array, or of a data frame, where they are."""
    from spgls.matrix.cluster import dask_matrix

    return dask_matrix(X, name)


def _foreign(X: Any, name: str) -> Matrix:
    """Data of another array library: by NumPy where that sees its memory, else where it is."""
    _check_shape(tuple(X.shape), name)
    if on_device(X):
        from spgls.matrix.device import device_matrix

        return device_matrix(X, name)
    if str(getattr(X, "layout", "")) == "torch.sparse_csr":
        parts = (part.numpy() for part in (X.values().detach(), X.col_indices(), X.crow_indices()))
        return _sparse(sp.csr_array(tuple(parts), shape=tuple(X.shape)), name)
    return _dense(X.detach() if hasattr(X, "detach") else X, name)


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


def device_of(matrix: Matrix) -> Place | None:
    """Where data is that stays on a device; None for any other."""
    place = getattr(matrix, "place", None)
    return place if isinstance(place, Place) else None
