"""Data matrices of every kind behind one protocol."""

from __future__ import annotations

from spgls.matrix.convert import as_matrix
from spgls.matrix.dense import DenseMatrix
from spgls.matrix.lazy import ProjectedMatrix, ScaledMatrix, flush_columns, range_basis
from spgls.matrix.protocol import BLOCK_BYTES, Matrix, block_length
from spgls.matrix.sparse import SparseMatrix
from spgls.matrix.work import Work

__all__ = [
    "BLOCK_BYTES",
    "DenseMatrix",
    "Matrix",
    "ProjectedMatrix",
    "ScaledMatrix",
    "SparseMatrix",
    "Work",
    "as_matrix",
    "block_length",
    "flush_columns",
    "range_basis",
]
