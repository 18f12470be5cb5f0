"""Data matrices of every kind behind one protocol."""

from __future__ import annotations

from spgls.matrix.blocks import BlockedMatrix, RowBlocks, blocks_of
from spgls.matrix.change import Change, block_diagonal
from spgls.matrix.cluster import DaskMatrix, dask_matrix, in_chunks
from spgls.matrix.combined import combine_columns, whole_columns
from spgls.matrix.convert import as_matrix, device_of, refuse_matrix_object, refuse_non_finite
from spgls.matrix.dask_input import check_lazy_vector, is_dask, is_lazy
from spgls.matrix.dense import DenseMatrix
from spgls.matrix.factor import few_rows_with, triangle
from spgls.matrix.free_columns import FreeColumns
from spgls.matrix.lazy import ProjectedMatrix, ScaledMatrix, flush_columns, range_basis
from spgls.matrix.pieces import BLOCK_BYTES, Rows, block_length
from spgls.matrix.projection import FACTORISED, BasisProjection, SolvedProjection
from spgls.matrix.protocol import Matrix
from spgls.matrix.solved import SolvedMatrix
from spgls.matrix.sparse import SparseMatrix
from spgls.matrix.squares import column_squares, longest_row, predictions
from spgls.matrix.work import DeviceRates, Work

__all__ = [
    "BLOCK_BYTES",
    "FACTORISED",
    "BasisProjection",
    "BlockedMatrix",
    "Change",
    "DaskMatrix",
    "DenseMatrix",
    "DeviceRates",
    "FreeColumns",
    "Matrix",
    "ProjectedMatrix",
    "RowBlocks",
    "Rows",
    "ScaledMatrix",
    "SolvedMatrix",
    "SolvedProjection",
    "SparseMatrix",
    "Work",
    "as_matrix",
    "block_diagonal",
    "block_length",
    "blocks_of",
    "check_lazy_vector",
    "column_squares",
    "combine_columns",
    "dask_matrix",
    "device_of",
    "few_rows_with",
    "flush_columns",
    "in_chunks",
    "is_dask",
    "is_lazy",
    "longest_row",
    "predictions",
    "range_basis",
    "refuse_matrix_object",
    "refuse_non_finite",
    "triangle",
    "whole_columns",
]
