"""What reads a source: known by the ending of a path, or by what an object can do."""

from __future__ import annotations

from os import PathLike, fspath
from pathlib import Path
from typing import Any

import scipy.sparse as sp

from spgls.base.validation import describe
from spgls.matrix import Matrix
from spgls.streams.arrays import open_array, open_hdf5, open_npy, open_zarr
from spgls.streams.calls import CallSource
from spgls.streams.source import Source
from spgls.streams.tables import TableSource, kind_of

__all__ = ["open_source"]


def open_source(source: Any, block_bytes: int) -> Source:
    """What reads a source."""
    if isinstance(source, str | PathLike):
        return _open_path(Path(fspath(source)), block_bytes)
    if hasattr(source, "__next__"):
        raise TypeError(
            "source must be read more than once, and an iterator can be read only once; got "
            f"{describe(source)}. Pass a function that returns a fresh one in every call."
        )
    if isinstance(source, Matrix) or sp.issparse(source):
        raise TypeError(
            f"source must be a file, an array or a function; got {describe(source)}, which is data "
            "already. Pass it as X."
        )
    if hasattr(source, "shape") and hasattr(source, "dtype") and hasattr(source, "__getitem__"):
        return open_array(source, block_bytes)
    if callable(source) and not isinstance(source, type):
        return CallSource(source)
    raise TypeError(
        "source must be a path, an array outside of memory (memory map, HDF5 dataset, Zarr array) "
        f"or a function that returns row blocks; got {describe(source)}. Data in memory is passed "
        "as X itself."
    )


def _open_path(path: Path, block_bytes: int) -> Source:
    if not path.exists():
        raise FileNotFoundError(f"source must be a file or folder that exists; got {path}.")
    ending = path.suffix.lower()
    if ending == ".npy":
        return open_npy(path, block_bytes)
    if ending in (".h5", ".hdf5"):
        return open_hdf5(path, block_bytes)
    if ending == ".zarr" or (path / "zarr.json").exists() or (path / ".zarray").exists():
        return open_zarr(path, block_bytes)
    if path.is_dir() or kind_of(path) is not None:
        return TableSource(path, block_bytes)
    raise ValueError(
        "source must end in .npy, .parquet, .arrow, .feather, .csv, .tsv, .h5 or .zarr, or be a "
        f"folder of Parquet, Arrow or CSV files; got {path}."
    )
