"""A Dask array as data: each verb is one graph over its chunks, and a tree of sums."""

from __future__ import annotations

import weakref
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import accumulate, pairwise
from typing import Any
from uuid import uuid4

import numpy as np

from spgls.base.types import Array, Vector
from spgls.base.validation import describe
from spgls.matrix.blocks import BlockedMatrix, Longest, longest_of, longest_of_any
from spgls.matrix.cluster import chunk_work as at
from spgls.matrix.cluster.running import (
    check_workers,
    cluster_of,
    current_client,
    futures_in,
    keep,
    places_of,
    run,
)
from spgls.matrix.dask_input import check_array, is_dask, is_dask_frame
from spgls.matrix.pieces import Rows, block_length, chosen_rows, cuts, rows_within
from spgls.matrix.protocol import Matrix, RowMap
from spgls.matrix.row_step import RowStep
from spgls.matrix.work import Work

__all__ = ["DaskMatrix", "dask_matrix", "in_chunks"]

#: Results that one task adds up, by their bytes: a worker has to hold them all.
_FANS = ((2**16, 64), (2**22, 8), (2**63, 2))
#: Numbers of fewer bytes travel with each task, which saves a step; others once to each worker.
_SMALL = 2**16
#: Rows that are looked at beforehand, and chunks whose means stand for all.
_HEAD, _EXAMPLES = 256, 3
#: Seconds that a pass takes however small the data: by a scheduler of workers, by threads; and
#: for each chunk.
_ANSWER, _ANSWER_HERE, _TASK, _TASK_HERE = 0.02, 0.002, 2.5e-3, 2e-4
#: Bytes a second that a worker loads, and that a client sends.
_LOAD, _SEND = 5e8, 5e8


@dataclass(frozen=True, eq=False)
class Chunks:
    """Tasks that give the rows of a table, chunk after chunk.

    Attributes
    ----------
    graph : dict
        What computes them; chunks that are held stand in it as they are.
    keys : list
        The task of each chunk.
    sizes : tuple of int
        Rows of each.
    columns : int
        Columns of all.
    held : bool
        Whether they need not be computed again.
    futures : tuple
        What stands for results on workers, which are there as long as this is.
    kept : dict
        What stands beside rows, and is on the workers too.
    """

    graph: dict[Any, Any]
    keys: list[Any]
    sizes: tuple[int, ...]
    columns: int
    held: bool = False
    futures: tuple[Any, ...] = ()
    kept: dict[int, tuple[Any, list[Any]]] = field(default_factory=dict)

    @classmethod
    def of_array(cls, X: Any) -> Chunks:
        """Of a Dask array, its graph optimised once for all passes."""
        import dask

        (best,) = dask.optimize(X)
        graph, futures = dict(best.__dask_graph__()), futures_in(X)
        keys = [key for (key,) in best.__dask_keys__()]
        held = all(key in futures or _is_data(graph.get(key)) for key in keys)
        return cls(
            graph,
            # A result on a worker is named by what stands for it.
            [futures.get(key, key) for key in keys],
            tuple(int(size) for size in X.chunks[0]),
            int(X.shape[1]),
            held,
            tuple(futures.values()),
        )

    @cached_property
    def rows(self) -> list[slice]:
        """Rows of each chunk among all."""
        ends = accumulate(self.sizes, initial=0)
        return [slice(first, stop) for first, stop in pairwise(ends)]


class DaskMatrix(BlockedMatrix):
    """Rows in the chunks of a Dask array, which stay where they are.

    A Dask array that is passed as ``X`` becomes one. Making it oneself gives columns names, lets
    several calls share what a first look found, and tells how often the data was read.

    Parameters
    ----------
    X : dask.array.Array of shape (m, n)
        Chunks of whole rows: NumPy arrays, or sparse matrices of SciPy, all of one kind.
    columns : sequence of str, optional
        Names of the columns, for costs by name.
    name : str
        How errors call it.

    Examples
    --------
    >>> import numpy as np
    >>> import pytest
    >>> da = pytest.importorskip("dask.array")
    >>> from spgls import solve
    >>> from spgls.matrix import DaskMatrix
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.normal(size=(300, 3))
    >>> y = rows.sum(axis=1)
    >>> X = DaskMatrix(da.from_array(rows, chunks=(100, 3)), columns=["a", "b", "c"])
    >>> solution = solve(X, y, y + 1.0 + y**2, gamma=0.5, feature_cost={"b": 2.0})
    >>> solution.status, X.passes
    (<Status.OPTIMAL: 'optimal'>, 2)
    """

    elsewhere = True

    def __init__(self, X: Any, *, columns: Sequence[str] | None = None, name: str = "X") -> None:
        check_array(X, name)
        self._start(Chunks.of_array(X), None if columns is None else list(columns))
        if self.columns is not None and len(self.columns) != self._chunks.columns:
            raise ValueError(
                f"columns must name each of the {self._chunks.columns} columns of {name}; got "
                f"{len(self.columns)} names."
            )

    @classmethod
    def from_frame(cls, frame: Any) -> DaskMatrix:
        """The numbers of a Dask data frame, with the names of its columns.

        Parameters
        ----------
        frame : dask.dataframe.DataFrame
            Its partitions are counted, which reads one of its columns.

        Returns
        -------
        DaskMatrix
        """
        if not is_dask_frame(frame):
            raise TypeError(f"frame must be a data frame of Dask; got {describe(frame)}.")
        return cls(frame.to_dask_array(lengths=True), columns=[str(one) for one in frame.columns])

    def _start(self, chunks: Chunks, columns: list[str] | None) -> None:
        self._chunks, self.columns = chunks, columns
        self._passes = 0
        self._own_client = chunks.futures[0].client if chunks.futures else None
        self._checked: Any = None
        self._together: list[list[int]] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return sum(self._chunks.sizes), self._chunks.columns

    @property
    def passes(self) -> int:
        """How often all chunks were asked for so far; each time they are loaded unless held."""
        return self._passes

    @property
    def held(self) -> bool:
        """Whether chunks are in memory, here or on workers, and are not loaded anew."""
        return self._chunks.held

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the stored numbers."""
        kind: np.dtype[Any] = self._looks[0].dtype
        return kind

    @property
    def threaded(self) -> bool:
        """Always: products are made elsewhere."""
        return True

    @property
    def natural_width(self) -> int:
        """Two: what takes time is asking for the rows."""
        return 2

    @property
    def work(self) -> Work:
        """That of the first chunk for all of them, and what it takes to ask for them."""
        (m, n), own = self.shape, self._looks[0].work
        share, chunks = m / own.rows, len(self._chunks.keys)
        client = self._client()
        workers, cores, limit = cluster_of(client)
        answer, task = (_ANSWER_HERE, _TASK_HERE) if client is None else (_ANSWER, _TASK)
        latency = answer + task * chunks + (0.0 if client is None else 16.0 * n * workers / _SEND)
        load = 0.0 if self.held else share * own.bytes / (_LOAD * workers)
        levels = int(np.ceil(np.log(max(chunks, 2)) / np.log(_fan(16 * n))))
        who = f"{cores} threads here" if client is None else f"{workers} workers, {cores} threads"
        place = (
            f"{who}, {chunks} chunks: a pass reads {_bytes(share * own.bytes)}"
            f"{'' if self.held else ' (loaded anew)'}, sends {_bytes(16.0 * n)} to each, adds up "
            f"in {levels} step{'s' if levels > 1 else ''}, and waits {1e3 * latency:.0f} ms"
        )
        return Work(
            m,
            n,
            entries=share * own.entries,
            bytes=share * own.bytes,
            by_index=own.by_index,
            square=share * own.square,
            row_square=float(m) * m * n,
            wait=latency + load,
            threads=cores,
            parts=0 if client is None else chunks,
            # Beside what a worker holds of the data, or loads of it.
            room=max(limit - share * own.bytes / (cores if self.held else chunks), 0.0),
            place=place,
        )

    def persist(self) -> DaskMatrix:
        """The same, with all chunks loaded once and held: by workers, or in this process.

        Returns
        -------
        DaskMatrix
            Another one; chunks that a worker loses are loaded anew.
        """
        known, client = self._chunks, self._client()
        self._passes += 1
        other = object.__new__(type(self))
        keys = [key if isinstance(key, str | tuple) else key.key for key in known.keys]
        found = keep(known.graph, keys, client)
        if client is None:
            chunks = replace(known, graph=found, held=True)
        else:
            futures = tuple(found.values())
            chunks = replace(known, graph={}, keys=list(futures), held=True, futures=futures)
        other._start(replace(chunks, kept={}), self.columns)
        return other

    def lazy_rows(self, *, dense: bool = False) -> Any:
        """All rows as a Dask array, which nothing has computed yet.

        Parameters
        ----------
        dense : bool
            Whether to refuse sparse chunks.

        Returns
        -------
        dask.array.Array of shape (m, n)
        """
        if dense and self._looks[0].sparse:
            raise TypeError(
                "X must be dense, because the rows returned are; its chunks are sparse. Use "
                "spgls.movement, which gives the step of each row and the common direction, or "
                "pass X.map_blocks(lambda chunk: chunk.toarray())."
            )
        return self._lazy("rows", at.chunk_values, (), self.dtype, (self._chunks.columns,))

    def lazy_predictions(self, coef: Vector, intercept: float, dtype: Any) -> Any:
        """``A w + b`` as a Dask array, which nothing has computed yet.

        Parameters
        ----------
        coef : ndarray of shape (n,)
            Coefficients.
        intercept : float
            What is added.
        dtype : dtype
            Type of the predictions.

        Returns
        -------
        dask.array.Array of shape (m,)
        """
        work = partial(at.chunk_predictions, intercept=intercept, dtype=np.dtype(dtype))
        starts = [piece.start for piece in self._chunks.rows]
        return self._lazy("predict", work, (coef,), dtype, each=starts)

    def apply(self, v: Array, shift: Vector | None = None) -> Array:
        """``A v``, a pass that returns as many numbers as there are rows."""
        parts = self._each("apply", at.chunk_apply, shared=(v, shift))
        out = np.empty((self.shape[0], *v.shape[1:]))
        for rows, part in zip(self._chunks.rows, parts, strict=True):
            out[rows] = part
        return out

    def cross(self, u: Array, shift: Vector | None = None) -> Array:
        """``A' u``, a pass that sends as many numbers as there are rows."""
        return np.asarray(self._sum("cross", at.chunk_cross, (shift,), (u,)))

    def gram(self, v: Array, shift: Vector | None = None, middle: RowMap | None = None) -> Array:
        """``A' M A v``, a pass: ``v`` goes out, and one sum comes back."""
        if middle is not None and not isinstance(middle, RowStep):
            t = self.apply(v, shift)
            return self.cross(middle(slice(0, len(t)), t), shift)
        step = RowStep() if middle is None else middle
        # Each part by itself: workers keep those that come with every product.
        beside = (step.row, *step.parts)
        out, left = self._sum("gram", at.chunk_gram, (v, shift, step.along), beside, lasting=True)
        if step.parts:
            step.left[...] += left
        return np.asarray(out)

    def moment(self, extra: Array, weight: Vector | None, shift: Vector | None) -> Array:
        """``B' S B`` for ``B = [A - 1 shift', extra]``, in one pass."""
        size = 8 * (self.shape[1] + extra.shape[1]) ** 2
        given, combine = ((shift,), (extra, weight)), at.added_moments
        total, told = self._sum("moment", at.chunk_moment, *given, combine=combine, size=size)
        self._longest = told.over(len(self._chunks.keys))
        return np.asarray(total)

    def column_squares(self, weight: Vector | None, shift: Vector | None) -> Vector:
        """Squared lengths of the columns, in one pass."""
        return np.asarray(self._sum("squares", at.chunk_squares, (shift,), (weight,)))

    def cross_and_squares(
        self, u: Array, weight: Vector | None, shift: Vector | None
    ) -> tuple[Array, Vector | None]:
        """``A' u`` and :meth:`column_squares`, in one pass."""
        product, squares = self._sum("cross", at.chunk_cross_and_squares, (shift,), (u, weight))
        return product, squares

    def triangle(self, beside: Array, root: Vector | None, shift: Vector | None) -> Array:
        """Triangular factor of ``S^{1/2}[A - 1 shift', beside]``, in one pass."""
        size = 8 * (self.shape[1] + beside.shape[1]) ** 2
        given, combine = ((shift,), (beside, root)), at.stacked_triangles
        found = self._sum("triangle", at.chunk_triangle, *given, combine=combine, size=size)
        return np.asarray(found)

    def typical_row(self, weight: Vector | None) -> Vector | None:
        """Mean of the typical rows of a few chunks, the first and the last among them."""
        if weight is None:
            some = self._examples_of(range(len(self._chunks.keys)))
            rows = [look.typical for look in self._looks]
            heavy = [float(self._chunks.sizes[number]) for number in some]
        else:
            sums = [float(weight[rows].sum()) for rows in self._chunks.rows]
            some = self._examples_of([k for k, total in enumerate(sums) if total > 0.0])
            rows = self._each("typical", at.chunk_typical, cut=(weight,), which=some)
            heavy = [sums[number] for number in some]
        told = np.array([np.zeros(self.shape[1]) if row is None else row for row in rows])
        mean = np.average(told, axis=0, weights=heavy)
        # What is the same everywhere is not rounded.
        row = np.where((told == told[0]).all(axis=0), told[0], mean)
        return row if row.any() else None

    def row_panels(self, rows: int) -> Iterator[tuple[slice, Array]]:
        """Dense float64 pieces of ``rows`` rows, brought here chunk after chunk."""
        pieces, head = super().row_panels(rows), self._looks[0].head
        if min(rows, self.shape[0]) <= len(head):
            first = head[:rows]
            yield slice(0, len(first)), first
            next(pieces)
        yield from pieces

    def column_panels(self, columns: int) -> Iterator[tuple[slice, Array]]:
        """Dense float64 pieces of ``columns`` columns, a pass each."""
        for number, piece in enumerate(cuts(self.shape[1], columns)):
            work = partial(at.chunk_columns, width=columns, number=number)
            yield piece, np.concatenate(self._each("columns", work))

    def take(self, rows: Rows) -> Matrix:
        """Some rows, taken where they are; in another order than theirs, read and held."""
        some = chosen_rows(rows, self.shape[0])
        if not isinstance(some, slice) and not bool((np.diff(some) >= 0).all()):
            return super().take(some)
        known, name = self._chunks, f"spgls-take-{uuid4().hex}"
        graph, keys, sizes = dict(known.graph), [], []
        for number, piece in enumerate(known.rows):
            own = rows_within(some, piece)
            if own is None:
                continue
            keys.append((name, number))
            sizes.append(own.stop - own.start if isinstance(own, slice) else len(own))
            graph[name, number] = (partial(at.chunk_rows, own), known.keys[number])
        other = object.__new__(type(self))
        other._start(replace(known, graph=graph, keys=keys, sizes=tuple(sizes)), self.columns)
        other._checked = self._checked
        return other

    def find_non_finite(self) -> tuple[int, int, float] | None:
        """Row, column and value of an entry of the first chunk that has one."""
        starts = [piece.start for piece in self._chunks.rows]
        found: tuple[int, int, float] | None = self._sum(
            "finite", at.chunk_non_finite, combine=at.first_found, each=starts, ordered=True
        )
        return found

    def name_row(self, row: int) -> str:
        """A row and its chunk, for errors."""
        ends = np.cumsum(self._chunks.sizes)
        return f"row {row} (chunk {int(np.searchsorted(ends, row, side='right'))})"

    def blocks(self) -> Iterable[tuple[slice, Any]]:
        """All rows in order, brought here one chunk after the other."""
        for number, rows in enumerate(self._chunks.rows):
            (values,) = self._each("values", at.chunk_values, which=[number])
            yield rows, values

    def __repr__(self) -> str:
        """Shape, number of chunks, and whether they are held."""
        held = ", held" if self.held else ""
        return f"{describe(self)} in {len(self._chunks.keys)} chunks{held}"

    def __getstate__(self) -> Any:
        raise TypeError(
            "a DaskMatrix belongs to the process that made it, and is not pickled. Send the Dask "
            "array, and make it anew."
        )

    def _examples(self) -> Iterable[Matrix]:
        raise NotImplementedError("what chunks say of themselves is known by a look at them")

    def _examples_of(self, numbers: Sequence[int]) -> list[int]:
        """A few of some chunks, spread evenly."""
        places = np.linspace(0, len(numbers) - 1, min(_EXAMPLES, len(numbers)))
        return [numbers[round(place)] for place in places]

    @cached_property
    def _longest(self) -> Longest:
        if not self._looks[0].sparse:
            return Longest(self.shape[1], self.shape[0])
        found: Longest = self._sum("longest", longest_of, combine=longest_of_any)
        return found.over(len(self._chunks.keys))

    @cached_property
    def _looks(self) -> list[at.Look]:
        """What a few chunks say of themselves, the first of which stands for all."""
        count = min(_HEAD, block_length(self.shape[1]))
        some = self._examples_of(range(len(self._chunks.keys)))
        look = partial(at.chunk_look, count=count)
        looks: list[at.Look] = self._each("look", look, which=some, kind=False)
        for number, one in zip(some, looks, strict=True):
            if one.sparse is not looks[0].sparse:
                kinds = ("dense", "sparse")
                raise TypeError(
                    f"X must have chunks of one kind; chunk 0 is {kinds[looks[0].sparse]}, and "
                    f"chunk {number} is {kinds[one.sparse]}. Pass "
                    "X.map_blocks(scipy.sparse.csr_array), or all chunks dense."
                )
        return looks

    def _client(self) -> Any:
        """Who runs graphs: where chunks are held, else whoever would run a Dask array now."""
        return current_client() if self._own_client is None else self._own_client

    def _sum(
        self,
        verb: str,
        work: Callable[..., Any],
        shared: tuple[Any, ...] = (),
        cut: tuple[Any, ...] = (),
        *,
        combine: Callable[[list[Any]], Any] = at.added,
        each: list[int] | None = None,
        lasting: bool = False,
        size: int | None = None,
        ordered: bool = False,
    ) -> Any:
        """Do some work on every chunk, and add up what comes of it, in one graph.

        ``size`` is that of a result in bytes, two columns by default. Large ones that are not
        ``ordered`` are added up on each worker first, as far as is known where chunks are.
        """
        client = self._ready()
        layer, keys = self._tasks(verb, work, shared, cut, client, each=each, lasting=lasting)
        name, level = f"spgls-sum-{uuid4().hex}", 0
        size = 16 * self.shape[1] if size is None else size
        fan, parts = _fan(size), [keys]
        together = self._held_together(client) if size > _SMALL and not ordered else None
        if together is not None:
            parts = [[keys[number] for number in some] for some in together]
        while len(keys) > 1 or level == 0:
            groups = [some[k : k + fan] for some in parts for k in range(0, len(some), fan)]
            keys = [(name, level, number) for number in range(len(groups))]
            layer |= {key: (combine, group) for key, group in zip(keys, groups, strict=True)}
            parts, level = [keys], level + 1
        self._passes += 1
        (total,) = run(self._chunks.graph | layer, keys, client)
        return total

    def _held_together(self, client: Any) -> list[list[int]] | None:
        """Chunks that one worker holds, for each worker; None until all are held.

        What is known stays: sums are then added in the same order whoever computes them later.
        """
        known = self._chunks
        # Tasks on top of what is held go where that is, but are nowhere yet.
        if self._together is None and client is not None and known.keys == list(known.futures):
            places, groups = places_of(known.futures, client), defaultdict[str, list[int]](list)
            for number, place in enumerate(places):
                groups[place].append(number)
            self._together = list(groups.values()) if all(places) else None
        return self._together

    def _each(
        self,
        verb: str,
        work: Callable[..., Any],
        shared: tuple[Any, ...] = (),
        cut: tuple[Any, ...] = (),
        *,
        which: Sequence[int] | None = None,
        kind: bool = True,
    ) -> list[Any]:
        """Do some work on every chunk, or some of them, and bring back what comes of it."""
        client = self._ready()
        layer, keys = self._tasks(verb, work, shared, cut, client, which=which, kind=kind)
        self._passes += which is None
        return run(self._chunks.graph | layer, keys, client)

    def _lazy(
        self,
        verb: str,
        work: Callable[..., Any],
        shared: tuple[Any, ...],
        dtype: Any,
        columns: tuple[int, ...] = (),
        each: list[int] | None = None,
    ) -> Any:
        """Some work on every chunk as a Dask array, whose chunks are the results."""
        import dask.array as da
        from dask.highlevelgraph import HighLevelGraph

        known = self._chunks
        layer, keys = self._tasks(verb, work, shared, (), None, each=each)
        name = f"spgls-{verb}-{uuid4().hex}"
        for number, key in enumerate(keys):
            layer[(name, number, *(0 for _ in columns))] = layer.pop(key)
        graph = HighLevelGraph.from_collections(name, known.graph | layer)
        return da.Array(graph, name, (known.sizes, *((n,) for n in columns)), dtype=np.dtype(dtype))

    def _ready(self) -> Any:
        """The client that runs a graph, its workers looked at once."""
        client = self._client()
        known = None if self._checked is None else self._checked()
        if client is not None and client is not known:
            check_workers(client, at.own_version())
            self._checked = weakref.ref(client)
        return client

    def _tasks(
        self,
        verb: str,
        work: Callable[..., Any],
        shared: tuple[Any, ...],
        cut: tuple[Any, ...],
        client: Any,
        *,
        which: Sequence[int] | None = None,
        each: list[int] | None = None,
        kind: bool = True,
        lasting: bool = False,
    ) -> tuple[dict[Any, Any], list[Any]]:
        """Tasks of one pass: what all chunks share is sent once, what belongs to rows with them.

        What is ``lasting`` comes again in later passes, and stays on the workers.
        """
        name, known = f"spgls-{verb}-{uuid4().hex}", self._chunks
        layer: dict[Any, Any] = {}
        common: list[Any] = []
        for number, part in enumerate(shared):
            if part is None or part.nbytes <= _SMALL:
                common.append(part)
                continue
            key = f"spgls-shared-{uuid4().hex}-{number}"
            layer[key] = np.ascontiguousarray(part)
            common.append(key)
        numbers = list(range(len(known.keys)) if which is None else which)
        own: list[list[Any]] = []
        for part in cut:
            if part is not None and lasting and client is not None:
                pieces = self._lasting(part, client)
                own.append([pieces[number] for number in numbers])
            else:
                own.append([None if part is None else part[known.rows[k]] for k in numbers])
        sparse = self._looks[0].sparse if kind else None
        keys = []
        for position, number in enumerate(numbers):
            place = at.Place(
                number,
                known.rows[number].start,
                (known.sizes[number], known.columns),
                sparse,
                at.own_version(),
            )
            beside = [] if each is None else [each[number]]
            beside += [pieces[position] for pieces in own]
            task = partial(at.on_chunk, place, work)
            layer[name, number] = (task, known.keys[number], *common, *beside)
            keys.append((name, number))
        return layer, keys

    def _lasting(self, rows: Array, client: Any) -> list[Any]:
        """Numbers beside the rows of each chunk, which the workers hold.

        Rows that are all the same, such as an intercept's, are told once and not held.
        """
        kept = self._chunks.kept
        if id(rows) not in kept:
            pieces: list[Any] = [at.as_repeated(rows[some]) for some in self._chunks.rows]
            if not all(isinstance(piece, at.Repeated) for piece in pieces):
                name = f"spgls-beside-{uuid4().hex}"
                keys = [(name, number) for number in range(len(pieces))]
                data = {
                    key: (partial(_given, piece),) for key, piece in zip(keys, pieces, strict=True)
                }
                pieces = list(keep(data, keys, client).values())
            while len(kept) >= 4:
                kept.pop(next(iter(kept)))
            # The rows are kept too, so that their number stays theirs.
            kept[id(rows)] = rows, pieces
        return kept[id(rows)][1]


def in_chunks(X: Any) -> bool:
    """Whether rows are in chunks of Dask."""
    return is_dask(X) or isinstance(X, DaskMatrix)


def dask_matrix(X: Any, name: str = "X") -> DaskMatrix:
    """Rows in chunks of Dask as a matrix: of an array, of a frame, or as it is."""
    if isinstance(X, DaskMatrix):
        return X
    return DaskMatrix.from_frame(X) if is_dask_frame(X) else DaskMatrix(X, name=name)


def _fan(size: int) -> int:
    """Results of so many bytes that one task adds up."""
    return next(fan for most, fan in _FANS if size <= most)


def _given(value: Any) -> Any:
    """A value, as a task that any worker can repeat."""
    return value


def _is_data(task: Any) -> bool:
    """Whether a chunk stands in a graph as it is."""
    value = getattr(task, "value", task)
    return hasattr(value, "shape") and hasattr(value, "dtype")


def _bytes(value: float) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e3:.3g} kB"
