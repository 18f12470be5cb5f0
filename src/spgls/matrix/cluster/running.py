"""Graphs on whatever runs them: threads of this process, or workers that may come and go.

A graph is sent as a whole and holds all that its tasks need, so that workers which are lost are
made up for by others. Nothing is pinned to a worker.
"""

from __future__ import annotations

import sys
from concurrent.futures import CancelledError, Future
from math import inf
from threading import Thread
from time import monotonic
from typing import Any

from spgls.base.threads import one_blas_thread

__all__ = [
    "check_workers",
    "cluster_of",
    "current_client",
    "futures_in",
    "keep",
    "places_of",
    "run",
]

#: Seconds between looks at whether there are workers, and after how many without one it is over.
_LOOK, _PATIENCE = 1.0, 15.0
#: Seconds that a scheduler may take to say who its workers are.
_ANSWER = 5.0
#: Rows of labels travel inside graphs, which Dask would warn of.
_LARGE_GRAPH = "distributed.admin.large-graph-warning-threshold"


def current_client() -> Any:
    """The client that would run a graph now; None where this process would."""
    from dask.base import get_scheduler

    owner = getattr(get_scheduler(), "__self__", None)
    return owner if hasattr(owner, "gather") else None


def futures_in(X: Any) -> dict[Any, Any]:
    """What stands for results on workers that an array is made from, by key."""
    if "distributed" not in sys.modules:
        return {}
    from distributed import futures_of

    return {future.key: future for future in futures_of(X)}


def run(graph: dict[Any, Any], keys: list[Any], client: Any) -> list[Any]:
    """Compute some keys of a graph."""
    if client is None:
        from dask.base import get_scheduler
        from dask.threaded import get

        # The threads of Dask each work on a chunk of their own.
        with one_blas_thread(True):
            return list((get_scheduler() or get)(graph, keys))
    futures = _submit(graph, keys, client)
    try:
        return _gather(futures, client)
    finally:
        for future in futures:
            future.release()


def keep(graph: dict[Any, Any], keys: list[Any], client: Any) -> dict[Any, Any]:
    """A graph in which some keys are computed, and kept where they are."""
    if client is None:
        return dict(zip(keys, run(graph, keys, None), strict=True))
    return dict(zip(keys, _submit(graph, keys, client), strict=True))


def places_of(futures: tuple[Any, ...], client: Any) -> list[str]:
    """The worker that holds each result, one of them where several do; "" where nobody says."""
    try:
        holders = client.who_has(list(futures))
    except Exception:
        # Knowing it saves time; no answer depends on it.
        return [""] * len(futures)
    return [min(holders.get(future.key) or ("",)) for future in futures]


def _submit(graph: dict[Any, Any], keys: list[Any], client: Any) -> list[Any]:
    import dask

    _check_open(client)
    with dask.config.set({_LARGE_GRAPH: "1 PiB"}):
        return list(client.get(graph, keys, sync=False))


def _gather(futures: list[Any], client: Any) -> list[Any]:
    """Results, or an error where nobody is left to compute them."""
    found: Future[Any] = Future()
    # Not a pool, which would wait for its thread even where that waits in vain.
    Thread(target=_fetch, args=(found, client, futures), daemon=True).start()
    alone_since: float | None = None
    try:
        while True:
            try:
                return list(found.result(timeout=_LOOK))
            except TimeoutError:
                if found.done():
                    # What was computed raised an error of this kind itself.
                    raise
            if _workers(client):
                alone_since = None
                continue
            alone_since = alone_since or monotonic()
            if monotonic() - alone_since >= _PATIENCE:
                raise RuntimeError(
                    f"no Dask worker is left: the last one has been gone for {_PATIENCE:g} "
                    "seconds, and none came in its place. Add workers, and start again; "
                    "client.wait_for_workers(1) waits for slow ones."
                )
    except BaseException as error:
        if not found.done():
            client.cancel(futures, force=True, asynchronous=False)
        told = _explained(error, client)
        if told is error:
            raise
        raise told from error


def _fetch(found: Future[Any], client: Any, futures: list[Any]) -> None:
    try:
        found.set_result(client.gather(futures))
    except BaseException as error:
        found.set_exception(error)


def _explained(error: BaseException, client: Any) -> BaseException:
    """An error that says what to do, where Dask's own would not."""
    kind = type(error).__name__
    if kind == "KilledWorker":
        return RuntimeError(
            f"a task was given up after several workers died with it: {error} They may have run "
            "out of memory: make chunks smaller, or give workers more of it."
        )
    cancelled = isinstance(error, CancelledError) or "Cancelled" in kind or "Closed" in kind
    if cancelled and not isinstance(error, KeyboardInterrupt):
        return RuntimeError(
            f"the work was cancelled ({kind}: {error}). The client is {client.status}: keep it, "
            "and the cluster, open until the answer is there."
        )
    return error


def _workers(client: Any) -> int:
    try:
        return len(client.sync(client.scheduler.ncores, callback_timeout=_ANSWER))
    except Exception:
        return 0


def _check_open(client: Any) -> None:
    if client.status not in ("running", "connecting"):
        raise RuntimeError(
            f"the Dask client of X is {client.status}, and chunks that it held are gone. Open a "
            "new one, and persist X again."
        )


def check_workers(client: Any, version: str) -> None:
    """Refuse workers that have another version of spgls, or none, before anything is sent."""
    _check_open(client)
    if not _workers(client):
        raise RuntimeError(
            "the Dask cluster has no workers. Add some, as by cluster.scale(2), and wait for them "
            "with client.wait_for_workers(1)."
        )
    try:
        # A lambda travels by value: it needs nothing of ours on the other side.
        found = client.run(lambda: __import__("spgls").__version__, on_error="return")
    except Exception as error:
        raise _explained(error, client) from error
    for address, said in found.items():
        if isinstance(said, ImportError):
            raise RuntimeError(
                f"workers must have spgls {version}; {address} has none. Install it there."
            )
        if isinstance(said, str) and said != version:
            raise RuntimeError(
                f"workers must have the version of spgls that asks, {version}; {address} has "
                f"{said}. Install the same version on all workers."
            )


def cluster_of(client: Any) -> tuple[int, int, float]:
    """Workers, their threads together, and the bytes that the one with least has for a thread."""
    if client is None:
        from spgls.base.machine import threads

        return 1, threads(), inf
    try:
        threads_of = client.sync(client.scheduler.ncores, callback_timeout=_ANSWER)
        told = client.scheduler_info()["workers"].values()
    except Exception:
        return 1, 1, inf
    # Zero stands for no limit.
    least = min(((one["memory_limit"] or inf) / one["nthreads"] for one in told), default=inf)
    return max(len(threads_of), 1), max(sum(threads_of.values()), 1), least
