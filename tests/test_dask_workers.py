"""Dask workers in processes of their own: the same answers, also while workers die and come.

All of these start a cluster, so all are long.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import spgls
from spgls.matrix import DaskMatrix

from . import test_dask as on_threads
from .catalogue import CATALOGUE
from .test_dask import KINDS, M, _chunked, _data, _refused, _same_answers, thirds, uneven

distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
da = pytest.importorskip("dask.array")

pytestmark = [
    pytest.mark.long,
    # Processes that are killed leave loops and sockets behind, which Dask and asyncio warn of.
    pytest.mark.filterwarnings("default"),
]

GAME = {"gamma": spgls.Population.mixed(0.5), "fit_intercept": True}


def _cluster(workers, **more):
    return distributed.LocalCluster(
        n_workers=workers, threads_per_worker=1, dashboard_address=":0", **more
    )


@pytest.fixture(scope="module")
def two_workers():
    with _cluster(2) as cluster, distributed.Client(cluster) as client:
        yield client


@pytest.mark.usefixtures("two_workers")
@pytest.mark.parametrize("name", CATALOGUE)
@pytest.mark.parametrize("sizes", [thirds, uneven])
def test_the_catalogue_on_two_workers(name, sizes):
    _same_answers(name, "auto", sizes)


@pytest.mark.usefixtures("two_workers")
@pytest.mark.parametrize("name", sorted(CATALOGUE)[::4])
@pytest.mark.parametrize("solver", ["spectral", "krylov"])
def test_each_solver_on_two_workers(name, solver):
    _same_answers(name, solver, uneven)


@pytest.mark.parametrize(
    ("check", "given"),
    [
        *((on_threads.test_paths_populations_weights_and_checks, (kind,)) for kind in KINDS),
        *((on_threads.test_a_fit_to_chunks_is_a_fit, (kind,)) for kind in KINDS),
        (on_threads.test_statistics_of_chunks, ("dense", "moments")),
        (on_threads.test_statistics_of_chunks, ("csr", "triangular")),
        (on_threads.test_cross_validation_on_chunks, (False, None)),
        (on_threads.test_cross_validation_on_chunks, (True, "neg_mean_absolute_error")),
        (on_threads.test_a_classifier_fits_chunks_where_they_are, ("csr", {})),
        (on_threads.test_classifiers_are_cross_validated_and_continued_on_chunks, ()),
        (on_threads.test_frames_keep_their_names, ()),
        # What is wrong is said on the way back too.
        (on_threads.test_chunks_that_hold_no_numbers, ()),
        (on_threads.test_chunks_that_are_not_what_the_array_says, ()),
        (on_threads.test_chunks_of_several_kinds, ()),
        (on_threads.test_the_chunk_of_a_missing_value_is_named, ("spectral", True)),
        (on_threads.test_the_chunk_of_a_missing_value_is_named, ("krylov", True)),
        (on_threads.test_errors_of_a_task_are_those_of_its_user, ()),
    ],
    ids=lambda one: getattr(one, "__name__", str(one)),
)
def test_workers_do_what_threads_do(two_workers, check, given):
    done = _executed(two_workers)
    check(*given)
    assert _executed(two_workers) > done


def _executed(client):
    """Tasks that the workers have done; what earlier tests left behind may still be under way."""
    while any(client.processing().values()):
        time.sleep(0.01)
    return sum(client.run(lambda dask_worker: dask_worker.state.executed_count).values())


def test_nothing_is_sent_where_the_array_itself_is_wrong(two_workers):
    done = _executed(two_workers)
    on_threads.test_chunks_of_columns()
    on_threads.test_chunks_of_unknown_lengths()
    on_threads.test_nothing_at_all()
    _refused(da.ones((M, 4), chunks=((20, 0, 40), 4)), ValueError, "chunk 1 is the first of 1 of 3")
    for kind in (object, complex):
        on_threads.test_types_that_are_no_numbers(kind)
    assert _executed(two_workers) == done


@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("how", ["as it is", "persisted by Dask", "persisted", "some held"])
def test_chunks_wherever_they_are(two_workers, kind, how):
    X, y, z = _data(1, m=400, n=6)
    X = sp.csr_array(np.where(X > 3.0, X, 0.0)) if kind == "csr" else X
    weight = np.random.default_rng(0).random(400)
    chunked = _chunked(X, (100, 150, 150))
    table = {
        "as it is": lambda: chunked,
        "persisted by Dask": chunked.persist,
        "persisted": lambda: DaskMatrix(chunked).persist(),
        # A graph on top of chunks that workers hold.
        "some held": lambda: chunked.persist().map_blocks(_twice).map_blocks(_half),
    }[how]()
    given = {"sample_weight": weight, "feature_cost": [1.0, np.inf, 1.0, 2.0, 1.0, 1.0]}
    for solver in ("spectral", "krylov"):
        a, b = (spgls.solve(T, y, z, **GAME, **given, solver=solver, tol=1e-11) for T in (table, X))
        assert a.status is b.status
        assert a.objective == pytest.approx(b.objective, rel=1e-10)
        assert two_workers.status == "running"


def _twice(block):
    return block * 2.0


def _half(block):
    return block * 0.5


def test_another_client_than_the_current_one(two_workers):
    X, y, z = _data(2, m=200)
    theirs = spgls.solve(X, y, z, **GAME)
    with two_workers.as_current():
        held = _chunked(X, (80, 120)).persist()
    with _cluster(1, processes=False) as other, distributed.Client(other) as second:
        assert distributed.default_client() is second
        # Chunks are used where they are; others go to the client of the moment.
        for table in (held, _chunked(X, (80, 120))):
            found = spgls.solve(table, y, z, **GAME)
            np.testing.assert_allclose(found.coef, theirs.coef, rtol=1e-10)


def test_a_client_that_is_closed():
    X, y, z = _data(2, m=200)
    with _cluster(1, processes=False) as cluster:
        client = distributed.Client(cluster)
        held = client.persist(_chunked(X, (80, 120)))
        distributed.wait(held)
        matrix = DaskMatrix(held)
        client.close()
        for table in (held, matrix):
            with pytest.raises(RuntimeError, match=r"client of X is closed.*persist X again"):
                spgls.solve(table, y, z, **GAME)


def test_workers_of_another_version():
    X, y, z = _data(2, m=200)
    with _cluster(1) as cluster, distributed.Client(cluster) as client:
        client.run(lambda: setattr(__import__("spgls"), "__version__", "0.0.1"))
        with pytest.raises(RuntimeError, match=r"version of spgls that asks, .* has 0\.0\.1"):
            spgls.solve(_chunked(X, (80, 120)), y, z, **GAME)


def test_no_workers_to_begin_with():
    X, y, z = _data(2, m=200)
    with (
        _cluster(0) as cluster,
        distributed.Client(cluster),
        pytest.raises(RuntimeError, match="the Dask cluster has no workers"),
    ):
        spgls.solve(_chunked(X, (80, 120)), y, z, **GAME)


def test_nothing_large_is_sent_again_in_every_pass(two_workers):
    """Weights and immutable columns go to the workers once; an intercept not at all."""
    X, y, z = _data(3, m=40_000, n=8)
    cost = np.ones(8)
    cost[7] = np.inf
    matrix = DaskMatrix(da.from_array(X, chunks=(5000, 8))).persist()
    sent, get = [], two_workers.get

    def counted(graph, keys, **more):
        sent.append(len(distributed.protocol.pickle.dumps(dict(graph))))
        return get(graph, keys, **more)

    two_workers.get = counted
    try:
        given = {"solver": "krylov", "sample_weight": np.linspace(0.5, 1.0, len(y))}
        found = spgls.solve(matrix, y, z, 0.5, fit_intercept=True, feature_cost=cost, **given)
    finally:
        two_workers.get = get
    assert found.status.ok
    # One number a row is 320 kB; tasks of eight chunks are a few.
    small = [size for size in sent if size < 40_000]
    assert len(small) >= found.stats.passes - 8
    assert len(sent) - len(small) <= 8


def test_long_sums_are_added_up_where_the_chunks_are(two_workers):
    """From each worker one sum travels, not one for each chunk."""
    n, chunks = 20_000, 12
    rng = np.random.default_rng(0)
    X, v = rng.normal(size=(3 * chunks, n)), rng.normal(size=(n, 2))
    held = two_workers.persist(da.from_array(X, chunks=(3, n)))
    distributed.wait(held)
    holders = two_workers.who_has(distributed.futures_of(held))
    matrix, sent, get = DaskMatrix(held), [], two_workers.get

    def noted(graph, keys, **more):
        sent.append(graph)
        return get(graph, keys, **more)

    two_workers.get = noted
    try:
        found = [matrix.gram(v) for _ in range(3)]
    finally:
        two_workers.get = get
    for one in found:
        np.testing.assert_allclose(one, X.T @ (X @ v), rtol=1e-10, atol=1e-8)
        np.testing.assert_array_equal(one, found[0])
    places = {key[1]: set(where) for key, where in holders.items()}
    first = [task[1] for key, task in sent[-1].items() if "-sum-" in key[0] and key[1] == 0]
    assert sorted(number for group in first for _, number in group) == list(range(chunks))
    for group in first:
        assert set.intersection(*(places[number] for _, number in group))


# Workers that die


def _slow(block):
    time.sleep(0.02)
    return block


def _kill(client, address=None):
    """Kill a worker as the system would."""
    pids = client.run(os.getpid)
    victim = address or next(iter(pids))
    os.kill(pids[victim], signal.SIGKILL)


@pytest.mark.parametrize("moment", range(20))
def test_a_worker_killed_at_any_moment(moment):
    rng = np.random.default_rng(moment)
    X, y, z = _data(5, m=1200, n=10)
    # Chunks that are loaded anew, that Dask holds, and that we hold.
    chunked = da.from_array(X, chunks=(100, 10)).map_blocks(_slow, dtype=float, meta=X[:0])
    solver = ("spectral", "krylov")[moment % 2]
    theirs = spgls.solve(X, y, z, **GAME, solver=solver, tol=1e-11)
    with _cluster(2) as cluster, distributed.Client(cluster) as client:
        held = (lambda: chunked, chunked.persist, DaskMatrix(chunked).persist)
        table = held[moment % 3]()
        found = {}

        def solve():
            try:
                found["solution"] = spgls.solve(table, y, z, **GAME, solver=solver, tol=1e-11)
            except BaseException as error:
                found["error"] = error

        work = threading.Thread(target=solve)
        work.start()
        time.sleep(float(rng.uniform(0.0, 1.5 if solver == "krylov" else 0.6)))
        _kill(client)
        work.join(timeout=120.0)
        assert not work.is_alive(), "a solve hangs"
        assert "error" not in found, found.get("error")
    assert found["solution"].status is theirs.status
    np.testing.assert_allclose(found["solution"].coef, theirs.coef, rtol=1e-10, atol=1e-12)


def test_long_sums_after_a_worker_died():
    """Chunks are then elsewhere than sums are arranged for; the sums are the same."""
    rng = np.random.default_rng(0)
    X, v = rng.normal(size=(24, 6000)), rng.normal(size=(6000, 2))
    with _cluster(2) as cluster, distributed.Client(cluster) as client:
        held = da.from_array(X, chunks=(2, 6000)).persist()
        distributed.wait(held)
        matrix = DaskMatrix(held)
        before = matrix.gram(v)
        _kill(client)
        for _ in range(3):
            np.testing.assert_array_equal(matrix.gram(v), before)
    np.testing.assert_allclose(before, X.T @ (X @ v), rtol=1e-10, atol=1e-8)


@pytest.mark.parametrize("held", [False, True])
def test_without_any_worker_there_is_an_error_soon(held):
    X, y, z = _data(5, m=1200, n=10)
    chunked = da.from_array(X, chunks=(100, 10)).map_blocks(_slow, dtype=float, meta=X[:0])
    with (
        distributed.LocalCluster(
            n_workers=0, threads_per_worker=1, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        # Workers without a nanny stay dead.
        told = ["-m", "distributed.cli.dask_worker", cluster.scheduler_address, "--no-nanny"]
        own = [
            subprocess.Popen(
                [sys.executable, *told, "--nthreads", "1", "--no-dashboard"],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            for _ in range(2)
        ]
        try:
            client.wait_for_workers(2, timeout=60)
            table = DaskMatrix(chunked)
            table = table.persist() if held else table
            started = threading.Event()
            errors = []

            def solve():
                started.set()
                try:
                    while True:
                        spgls.solve(table, y, z, **GAME, solver="krylov")
                except BaseException as error:
                    errors.append(error)

            work = threading.Thread(target=solve, daemon=True)
            work.start()
            started.wait()
            time.sleep(1.0)
            for one in own:
                one.kill()
            begun = time.monotonic()
            work.join(timeout=60.0)
            assert time.monotonic() - begun < 30.0
            (error,) = errors
            assert isinstance(error, RuntimeError)
            assert "worker" in str(error)
        finally:
            for one in own:
                one.kill()
                one.wait()


def test_a_worker_that_comes_later_is_used():
    X, y, z = _data(5, m=600, n=10)
    chunked = da.from_array(X, chunks=(100, 10)).map_blocks(_slow, dtype=float, meta=X[:0])
    theirs = spgls.solve(X, y, z, **GAME, solver="krylov")
    with _cluster(1) as cluster, distributed.Client(cluster) as client:
        first = set(client.nthreads())
        timer = threading.Timer(0.5, cluster.scale, (2,))
        timer.start()
        found = [spgls.solve(chunked, y, z, **GAME, solver="krylov")]
        client.wait_for_workers(2, timeout=60)
        found.append(spgls.solve(chunked, y, z, **GAME, solver="krylov"))
        timer.join()
        (late,) = set(client.nthreads()) - first
        done = client.run(lambda dask_worker: dask_worker.state.executed_count)
        assert done[late] > 10
    for one in found:
        np.testing.assert_allclose(one.coef, theirs.coef, rtol=1e-9)


def test_an_interrupt_leaves_nothing_behind(two_workers):
    X, y, z = _data(5, m=1200, n=10)
    chunked = da.from_array(X, chunks=(100, 10)).map_blocks(_slow, dtype=float, meta=X[:0])

    class Enough(Exception):
        pass

    def stop(step):
        raise Enough

    with pytest.raises(Enough):
        spgls.solve(chunked, y, z, 0.5, solver="krylov", callback=stop)
    deadline = time.monotonic() + 10.0
    while any(two_workers.processing().values()) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(two_workers.processing().values())
    assert spgls.solve(chunked, y, z, 0.5).status.ok


def test_the_script_of_the_page_runs(tmp_path):
    page = (Path(__file__).parents[1] / "docs" / "dask.md").read_text()
    script = tmp_path / "script.py"
    script.write_text(re.findall(r"^```python\n(import os.*?)^```$", page, re.M | re.S)[0])
    ran = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=300, check=True
    )
    assert ran.stdout.splitlines()[-1] == "optimal optimal True"
