"""A stream: any source of row blocks as data that every function takes as ``X``.

Each pass reads the source once, the next block while the last one is multiplied. What is held are
the first few rows, three blocks at most, and columns that were asked for by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp

from spgls.base.machine import available_memory, threads
from spgls.base.threads import blas_threads
from spgls.base.types import Vector
from spgls.base.validation import check_count, describe
from spgls.matrix import BlockedMatrix, Matrix, Work, as_matrix
from spgls.streams.ahead import ahead
from spgls.streams.opening import open_source
from spgls.streams.picked import pick_column, pick_features
from spgls.streams.reading import Reading
from spgls.streams.scratch import Scratch
from spgls.streams.source import Columns, Source, SourceLike, change_between

__all__ = ["Stream", "stream"]

#: Bytes of a block, and the share of the free memory that one may take.
_BLOCK_BYTES, _SHARE = 16 * 2**20, 1 / 32
#: Bytes of the first rows that are kept.
_HEAD_BYTES = 4 * 2**20
#: Rows that stand for all have this share of all weight.
_TYPICAL = 1 / 256


def stream(
    source: SourceLike,
    *,
    y: str | int | None = None,
    z: str | int | None = None,
    sample_weight: str | int | None = None,
    columns: Sequence[str | int] | None = None,
    block_bytes: int | None = None,
    scratch: str | PathLike[str] | None = None,
    progress: Callable[[Reading], object] | None = None,
) -> Stream:
    """Rows that are read anew in every pass, as ``X`` of any function or estimator.

    Parameters
    ----------
    source : path, array or callable
        A ``.npy`` file; a Parquet, Arrow or CSV file, or a folder of them; an HDF5 file with one
        table, or a ``.zarr`` folder with one array. An array outside of memory: a memory map, an
        HDF5 dataset, a Zarr array. Or a function without parameters that returns a fresh iterator
        of row blocks, dense or sparse, in every call, the same rows in the same order.
    y, z, sample_weight : str or int, optional
        Columns that are not features but labels, goals and weights, by name or, where columns
        have no names, by number. They are read once, and are then :attr:`Stream.y`,
        :attr:`Stream.z` and :attr:`Stream.sample_weight`.
    columns : sequence of str or int, optional
        The features; by default all other columns.
    block_bytes : int, optional
        Bytes of a block; by default 16 MiB, or less where memory is short. A function, and chunks
        of an HDF5 or Zarr array, decide themselves.
    scratch : path, optional
        A folder in which rows are kept in binary after the first pass, for all others to be read
        from there. Worth it for text, which takes long to parse. The file has no name, and is gone
        with the stream.
    progress : callable, optional
        Called with a :class:`Reading` after each block, such as :class:`Progress`.

    Returns
    -------
    Stream

    See Also
    --------
    solve : takes a stream as ``X``.

    Examples
    --------
    >>> import numpy as np
    >>> from spgls import Floor, solve, stream
    >>> def blocks():
    ...     for seed in range(20):
    ...         rows = np.random.default_rng(seed).normal(size=(50, 4))
    ...         rows[:, 0] += rows[:, 1:].sum(axis=1)
    ...         yield rows
    >>> s = stream(blocks, y=0)
    >>> s.shape
    (1000, 3)
    >>> solve(s, s.y, Floor(1.0), gamma=0.5, fit_intercept=True).status
    <Status.OPTIMAL: 'optimal'>
    """
    if progress is not None and not callable(progress):
        raise TypeError(
            "progress must be None or a function of one Reading, such as Progress(); got "
            f"{describe(progress)}."
        )
    size = check_count(block_bytes, "block_bytes") or _block_bytes()
    opened = open_source(source, size)
    aside = {"y": y, "z": z, "sample_weight": sample_weight}
    numbers = {
        role: pick_column(opened, column, role)
        for role, column in aside.items()
        if column is not None
    }
    folder = None if scratch is None else _folder(scratch)
    features = pick_features(opened, columns, numbers)
    return Stream(opened, features, numbers, size, scratch=folder, progress=progress)


class Stream(BlockedMatrix):
    """Data that :func:`stream` reads: all the verbs of a matrix, and columns by name.

    Attributes
    ----------
    columns : list of str or None
        Names of the features.
    """

    def __init__(
        self,
        source: Source,
        features: Columns,
        aside: dict[str, int],
        block_bytes: int,
        *,
        scratch: str | None = None,
        progress: Callable[[Reading], object] | None = None,
    ) -> None:
        self._source, self._features, self._aside = source, features, aside
        self._block_bytes, self._folder, self._progress = block_bytes, scratch, progress
        self._mark = source.mark()
        self._reads = 0
        self._total = source.nbytes
        self._starts = [0]
        self._keep: Scratch | None = None
        own = np.arange(source.width)[features]
        self.columns = None if source.names is None else [source.names[at] for at in own]
        self._width = len(own)
        first = next(source.read(features, 0), None)
        if first is None:
            raise ValueError("source must have at least one row; got none.")
        matrix = as_matrix(first, "block 0 of X", check_finite=False)
        self._first = matrix.shape[0]
        count = max(1, min(self._first, int(_HEAD_BYTES * self._first / matrix.work.bytes)))
        self._head = _copied(matrix, count)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features; rows of text and of functions are counted by a pass."""
        known = self._rows
        return self._aside_columns[0] if known is None else known, self._width

    @property
    def y(self) -> Vector:
        """Labels, from the column that is named so."""
        return self._column("y", "labels")

    @property
    def z(self) -> Vector:
        """Goals, from the column that is named so."""
        return self._column("z", "goals")

    @property
    def sample_weight(self) -> Vector:
        """Weights, from the column that is named so."""
        return self._column("sample_weight", "weights")

    @property
    def natural_width(self) -> int:
        """Two: rows take time to come."""
        return 2

    @property
    def work(self) -> Work:
        """That of the first rows for all of them, and the time they take to come."""
        own = super().work
        return replace(own, wait=(self._source.nbytes or own.bytes) / self._source.rate)

    @property
    def reads(self) -> int:
        """Passes over the source so far, those that ended early among them."""
        return self._reads

    def typical_row(self, weight: Vector | None) -> Vector | None:
        """Of the first rows, or as many more as it takes for weights to count."""
        m, n = self.shape
        total = float(m if weight is None else weight.sum())
        enough = min(self._head.shape[0] / m, _TYPICAL) * total
        row, seen = np.zeros(n), 0.0
        for rows, block in self._matrices():
            some = None if weight is None else weight[rows]
            heavy = float(rows.stop - rows.start if some is None else some.sum())
            own = block.typical_row(some) if heavy > 0.0 else None
            if own is not None:
                row += heavy * own
            seen += heavy
            if seen >= enough:
                break
        row /= seen
        return row if row.any() else None

    def name_row(self, row: int) -> str:
        """A row and its block, for errors."""
        return f"row {row} (block {int(np.searchsorted(self._starts, row, side='right')) - 1})"

    def blocks(self) -> Iterator[tuple[slice, Any]]:
        """All rows in order: those that are kept, then the others as they are read."""
        m, _ = self.shape
        source, at = self._source, self._head.shape[0]
        yield slice(0, at), self._head
        if at == m:
            return
        # A source that begins with the first row anew shows whether it is still the same.
        again = 0 if source.seekable else at
        starts, part = [0], at < self._first
        for block in self._pass(source, self._features, at - again):
            rows = as_matrix(block, f"block {len(starts) - part} of X", check_finite=False)
            if again:
                self._compare(rows)
                if rows.shape[0] == again:
                    again = 0
                    continue
                rows, again = rows.take(slice(again, rows.shape[0])), 0
            if not part:
                starts.append(at)
                self._starts = starts
            part = False
            stop = at + rows.shape[0]
            if stop > m:
                break
            yield slice(at, stop), rows
            at = stop
        else:
            if at == m:
                return
            raise _changed(f"it had {m} rows before, and now ended after {at}")
        raise _changed(f"it had {m} rows before, and now has more")

    def _examples(self) -> Iterable[Matrix]:
        return [self._head]

    def _compare(self, rows: Matrix) -> None:
        """Refuse a pass that begins with other rows than the one before."""
        count = self._head.shape[0]
        if rows.shape[0] < count or not _same(self._head, rows.take(slice(0, count))):
            raise _changed(
                "it began with other rows in this pass. A function has to return the same rows in "
                "the same order with every call"
            )

    def _column(self, role: str, what: str) -> Vector:
        if role not in self._aside:
            raise AttributeError(
                f"this stream has no {what}: name their column, as in stream(source, {role}=...)."
            )
        return self._aside_columns[1][role]

    @cached_property
    def _aside_columns(self) -> tuple[int, dict[str, Vector]]:
        """Number of rows, and the columns that are no features, in one pass."""
        source, numbers = self._source, list(self._aside.values())
        scratch = None if self._folder is None else Scratch(self._folder)
        wanted: Columns = np.array(numbers or [0], dtype=np.intp)
        if scratch is not None:
            # Features and others in one read.
            wanted = np.concatenate([np.arange(source.width)[self._features], wanted])
        read: Iterator[Any] = self._pass(source, wanted, 0)
        if scratch is not None:
            read = scratch.keep(read, self._width)
        parts: list[np.ndarray] = []
        rows = 0
        for block in read:
            rows += block.shape[0]
            some = block[:, -len(numbers) :] if numbers else block[:, :0]
            some = some.toarray() if sp.issparse(some) else some
            parts.append(np.array(some.T, dtype=np.float64))
        if source.rows is not None and rows != source.rows:
            raise _changed(f"it had {source.rows} rows before, and now has {rows}")
        found = np.concatenate(parts, axis=1)
        if scratch is not None:
            self._keep = scratch
            self._source = scratch.source(self._block_bytes)
            self._features, self._mark = slice(None), {}
            self._total = self._source.nbytes
            self._first = len(next(self._source.read(slice(None), 0)))
        return rows, {role: np.array(row) for role, row in zip(self._aside, found, strict=True)}

    def _pass(self, source: Source, columns: Columns, start: int) -> Iterator[Any]:
        """Blocks as they are read, the next one in a thread."""
        self._refuse_change(source)
        self._reads += 1
        number, begun, rows, seen = self._reads, perf_counter(), start, 0.0
        # A core is left to the thread that reads.
        with blas_threads(max(threads() - 1, 1)):
            for block in ahead(source.read(columns, start)):
                yield block
                rows += block.shape[0]
                seen += _bytes(block) * source.width / block.shape[1]
                if self._progress is not None:
                    done, total, all_rows = seen, self._total, self._rows
                    if total is not None and all_rows is not None:
                        done = rows / all_rows * total
                    self._progress(Reading(number, rows, done, total, perf_counter() - begun))
        if self._total is None:
            self._total = seen
        self._refuse_change(source)

    @property
    def _rows(self) -> int | None:
        """Number of rows; None before they are counted."""
        counted = self.__dict__.get("_aside_columns", (None,))
        return self._source.rows if counted[0] is None else int(counted[0])

    def _refuse_change(self, source: Source) -> None:
        if not self._mark:
            return
        try:
            what = change_between(self._mark, source.mark())
        except FileNotFoundError as error:
            what = f"{error.filename} is gone"
        if what is not None:
            raise _changed(what)

    def __repr__(self) -> str:
        """Number of columns, and of rows where that takes no pass."""
        rows = self._rows
        return f"Stream of {'rows' if rows is None else f'{rows} rows'} and {self._width} features"


def _changed(what: str) -> ValueError:
    return ValueError(
        f"the source of a stream must stay the same from pass to pass; {what}. Make a new stream "
        "of it, and solve again."
    )


def _block_bytes() -> int:
    return int(max(min(_BLOCK_BYTES, _SHARE * available_memory()), 2**16))


def _folder(scratch: Any) -> str:
    if not isinstance(scratch, str | PathLike):
        raise TypeError(f"scratch must be a folder; got {describe(scratch)}.")
    if not Path(scratch).is_dir():
        raise ValueError(f"scratch must be a folder that exists; got {fspath(scratch)}.")
    return str(fspath(scratch))


def _bytes(block: Any) -> float:
    return float(block.data.nbytes if sp.issparse(block) else block.nbytes)


def _copied(matrix: Matrix, count: int) -> Matrix:
    """The first rows, in memory of their own."""
    values = getattr(matrix, "values", None)
    first = matrix.take(slice(0, count))
    return first if values is None else as_matrix(values[:count].copy(), check_finite=False)


def _same(a: Matrix, b: Matrix) -> bool:
    """Whether two matrices hold the same numbers."""
    ours, theirs = (getattr(one, "values", None) for one in (a, b))
    if sp.issparse(ours) and sp.issparse(theirs):
        return all(
            np.array_equal(getattr(ours, part), getattr(theirs, part), equal_nan=part == "data")
            for part in ("indptr", "indices", "data")
        )
    if isinstance(ours, np.ndarray) and isinstance(theirs, np.ndarray):
        # Without an eye on what is missing it takes a tenth of the memory.
        return np.array_equal(ours, theirs) or np.array_equal(ours, theirs, equal_nan=True)
    return False
