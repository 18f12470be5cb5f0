"""Rows on many workers: arrays of Dask behind the matrix protocol."""

from __future__ import annotations

from spgls.matrix.cluster.dask_matrix import DaskMatrix, dask_matrix, in_chunks

__all__ = ["DaskMatrix", "dask_matrix", "in_chunks"]
