"""Files and functions that give their rows anew in every pass are data like any other."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import spgls
from spgls import Floor, Population, Progress, Reading, StackelbergRegressor, solve, stream
from spgls.base.machine import available_memory
from spgls.matrix import Matrix
from spgls.matrix.squares import sum_rounding, sum_rounding_down
from spgls.streams.ahead import ahead
from spgls.streams.room import Room
from spgls.streams.tables import TableSource

from .measures import assert_close, peak_bytes, vectors

M, N = 3000, 6
#: About 60 rows of all columns.
SMALL = 60 * 8 * (N + 2)
NAMES = [*(f"x{j}" for j in range(N)), "price", "wish"]
NEEDS = {"parquet": "pyarrow", "arrow": "pyarrow", "csv": "pyarrow", "hdf5": "h5py", "zarr": "zarr"}


def _table(seed=0):
    """Features of large means, then labels and goals."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(M, N)) + np.arange(N) * 20.0
    y = X @ np.linspace(-1.0, 1.0, N) + rng.normal(size=M)
    return np.column_stack([X, y, np.maximum(y, np.median(y))])


TABLE = _table()
X, Y, Z = TABLE[:, :N], TABLE[:, N], TABLE[:, N + 1]
GOAL = Floor(float(np.median(Y)))
#: Rows that are kept are then enough for all that is asked of a few rows.
ROOMY = 300 * 8 * (N + 2)


def _blocks(table=TABLE, size=50):
    return (table[at : at + size] for at in range(0, len(table), size))


def _arrow(values=TABLE, names=NAMES):
    pa = pytest.importorskip("pyarrow", reason="pyarrow reads tables")
    return pa.table(dict(zip(names, values.T, strict=True)))


def _write_parquet(folder, values=TABLE):
    table = _arrow(values)
    import pyarrow.parquet as pq

    for number, at in enumerate(range(0, len(values), 1100)):
        pq.write_table(table.slice(at, 1100), folder / f"{number}.parquet", row_group_size=400)
    return folder


def _write_csv(path, values=TABLE):
    pd.DataFrame(values, columns=NAMES).to_csv(path, index=False)
    return path


def _source(kind, folder):
    """The same numbers in a source of any kind."""
    if kind in NEEDS:
        pytest.importorskip(NEEDS[kind], reason=f"{NEEDS[kind]} reads such files")
    if kind == "npy":
        np.save(folder / "a.npy", TABLE)
        return folder / "a.npy"
    if kind == "npy by columns":
        np.save(folder / "a.npy", np.asfortranarray(TABLE))
        return folder / "a.npy"
    if kind == "memmap":
        np.save(folder / "a.npy", np.vstack([TABLE[:7], TABLE]))
        return np.load(folder / "a.npy", mmap_mode="r")[7:]
    if kind == "function":
        return _blocks
    if kind == "sparse":
        return lambda: (sp.csr_array(block) for block in _blocks())
    if kind == "frames":
        return lambda: (pd.DataFrame(block, columns=NAMES) for block in _blocks())
    if kind == "parquet":
        return _write_parquet(folder)
    if kind == "csv":
        return _write_csv(folder / "a.csv")
    if kind == "arrow":
        import pyarrow.feather as feather

        feather.write_feather(_arrow(), str(folder / "a.arrow"), chunksize=700)
        return folder / "a.arrow"
    if kind == "hdf5":
        import h5py

        with h5py.File(folder / "a.h5", "w") as file:
            file.create_dataset("rows", data=TABLE, chunks=(128, 4), compression="gzip")
            file["note"] = np.arange(3.0)
        return folder / "a.h5"
    import zarr

    array = zarr.create_array(folder / "a.zarr", shape=TABLE.shape, chunks=(700, 8), dtype="f8")
    array[:] = TABLE
    return folder / "a.zarr"


KINDS = (
    "npy",
    "npy by columns",
    "memmap",
    "function",
    "sparse",
    "frames",
    "parquet",
    "arrow",
    "csv",
    "hdf5",
    "zarr",
)
NAMED = {"parquet", "arrow", "csv", "frames"}


def _stream(kind, folder, **options):
    y, z = ("price", "wish") if kind in NAMED else (N, -1)
    return stream(_source(kind, folder), y=y, z=z, **({"block_bytes": SMALL} | options))


def _threads():
    return [one for one in threading.enumerate() if one.name == "spgls read ahead"]


@pytest.fixture(autouse=True)
def _no_thread_is_left():
    yield
    assert not _threads()


# What is read


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_a_matrix(kind, tmp_path):
    s = _stream(kind, tmp_path)
    assert isinstance(s, Matrix)
    assert s.shape == (M, N)
    np.testing.assert_array_equal(s.y, Y)
    np.testing.assert_array_equal(s.z, Z)
    assert s.columns == (NAMES[:N] if kind in NAMED else None)
    assert s.dtype == np.float64
    size = np.linalg.norm(X)
    for v in vectors(N):
        assert_close(s.apply(v), X @ v, size * np.linalg.norm(v))
        assert_close(s.gram(v), X.T @ (X @ v), size**2 * np.linalg.norm(v))
    for u in vectors(M, seed=1):
        assert_close(s.cross(u), X.T @ u, size * np.linalg.norm(u))
    np.testing.assert_array_equal(np.vstack([panel for _, panel in s.row_panels(333)]), X)
    np.testing.assert_array_equal(next(s.take(slice(900, 2950)).row_panels(M))[1], X[900:2950])
    some = np.random.default_rng(0).permutation(M)[:80]
    np.testing.assert_array_equal(next(s.take(some).row_panels(M))[1], X[some])


@pytest.mark.parametrize("kind", KINDS)
def test_games_are_those_of_the_rows_in_memory(kind, tmp_path):
    s = _stream(kind, tmp_path)
    options = {"fit_intercept": True, "solver": "spectral"}
    for who in (0.5, Population.mixed(0.5, honest=0.5)):
        ours, theirs = (solve(A, Y, Z, who, **options) for A in (s, X))
        assert ours.status is theirs.status
        assert ours.objective == pytest.approx(theirs.objective, rel=1e-9)
        np.testing.assert_allclose(ours.coef, theirs.coef, rtol=1e-7, atol=1e-9)
    assert solve(s, s.y, s.z, 0.5, **options).objective == pytest.approx(
        solve(X, Y, Z, 0.5, **options).objective, rel=1e-9
    )


@pytest.mark.parametrize("solver", ["spectral", "krylov", "gltr"])
def test_solvers_weights_and_costs(solver, tmp_path):
    s = _stream("npy", tmp_path)
    weight = np.random.default_rng(1).random(M)
    weight[: M // 2] = 0.0
    options = {
        "solver": solver,
        "fit_intercept": True,
        "sample_weight": weight,
        "feature_cost": [1.0, 2.0, np.inf, 1.0, 0.5, 3.0],
    }
    ours, theirs = (solve(A, Y, Z, 0.7, **options) for A in (s, X))
    assert ours.objective == pytest.approx(theirs.objective, rel=1e-8)
    assert ours.certificate.lower_bound <= theirs.objective * (1 + 1e-12)


def test_paths_certificates_goals_and_movement(tmp_path):
    s = _stream("npy", tmp_path)
    gammas = [0.1, 1.0, Population.mixed(2.0)]
    paths = [spgls.solve_path(A, Y, GOAL, gammas, fit_intercept=True) for A in (s, X)]
    np.testing.assert_allclose(paths[0].objective, paths[1].objective, rtol=1e-9)
    bounds = [spgls.certify(A, Y, Z, 0.5, np.ones(N), intercept=0.0) for A in (s, X)]
    assert bounds[0].lower_bound == pytest.approx(bounds[1].lower_bound, rel=1e-8)
    assert bounds[0].gap == pytest.approx(bounds[1].gap, rel=1e-8)
    steps = [spgls.movement(A, Z, np.ones(N), gamma=1.0).step for A in (s, X)]
    np.testing.assert_allclose(*steps, rtol=1e-9, atol=1e-9)
    assert spgls.explain_solver(s, Y, Z, 0.5).solver == "spectral"


def test_weights_from_the_source_and_some_columns(tmp_path):
    path = _source("csv", tmp_path)
    s = stream(path, y="price", sample_weight="x1", columns=["x5", "x0"], block_bytes=SMALL)
    assert s.columns == ["x5", "x0"]
    np.testing.assert_array_equal(s.sample_weight, X[:, 1])
    np.testing.assert_array_equal(next(s.row_panels(M))[1], X[:, [5, 0]])
    with pytest.raises(AttributeError, match=r"no goals: name their column, as in stream\(.*z="):
        _ = s.z
    cost = {"x0": np.inf}
    ours = solve(s, s.y, Floor(0.0), 1.0, fit_intercept=True, feature_cost=cost)
    theirs = solve(X[:, [5, 0]], Y, Floor(0.0), 1.0, fit_intercept=True, feature_cost=[1, np.inf])
    np.testing.assert_allclose(ours.coef, theirs.coef, rtol=1e-9)


@pytest.mark.parametrize("kind", ["npy", "parquet"])
def test_single_precision_stays(kind, tmp_path):
    if kind == "npy":
        np.save(tmp_path / "a.npy", TABLE.astype(np.float32))
        s = stream(tmp_path / "a.npy", y=N, z=N + 1, block_bytes=SMALL)
    else:
        _write_parquet(tmp_path, TABLE.astype(np.float32))
        s = stream(tmp_path, y="price", z="wish", block_bytes=SMALL)
    assert s.dtype == np.float32
    assert s.y.dtype == np.float64
    rows = np.vstack([panel for _, panel in s.row_panels(500)])
    np.testing.assert_array_equal(rows, X.astype(np.float32))
    model = StackelbergRegressor(goal=GOAL).fit(s, s.y)
    assert model.predict(s).dtype == np.float32


@pytest.mark.parametrize("most", [90, 400, 800, 5000])
def test_row_groups_are_unpacked_whole_where_they_fit(most, tmp_path):
    source = TableSource(_write_parquet(tmp_path), SMALL)
    # Each file has groups of 400, 400 and 300 rows, but the last.
    sizes = [table.num_rows for table in source._groups(["price"], most)]
    assert sum(sizes) == M
    assert max(sizes) <= most
    starts = {90: [90] * 4, 400: [400, 400, 300], 800: [800, 300], 5000: [1100]}[most]
    assert sizes[: len(starts)] == starts
    # A block is a tenth of what is unpacked at once.
    s = stream(tmp_path, y="price", z="wish", block_bytes=most * 8 * N // 10)
    np.testing.assert_array_equal(np.vstack([block.values for _, block in s._matrices()]), X)
    np.testing.assert_array_equal(s.z, Z)


def test_text_of_every_kind(tmp_path):
    """Whole numbers that become fractions later, another separator, packed, truth values."""
    pytest.importorskip("pyarrow", reason="pyarrow reads tables")
    whole = np.arange(40_000.0)
    frame = pd.DataFrame({"a": whole, "b": whole % 7, "c": whole > 9, "y": whole * 2.0})
    frame.loc[39_999, "a"] = 0.5
    text = frame.astype({"a": object, "b": int})
    text["a"] = ["0.5" if a == 0.5 else str(int(a)) for a in frame["a"]]
    for name, options in {
        "a.csv": {},
        "b.csv": {"sep": ";"},
        "c.tsv": {"sep": "\t"},
        "d.csv.gz": {"compression": "gzip"},
    }.items():
        text.to_csv(tmp_path / name, index=False, **options)
        s = stream(tmp_path / name, y="y", block_bytes=SMALL)
        rows = np.vstack([panel for _, panel in s.row_panels(10_000)])
        np.testing.assert_array_equal(rows, frame[["a", "b", "c"]].to_numpy(float))
        np.testing.assert_array_equal(s.y, frame["y"])


# How often, and how much of it is held


def test_passes_of_the_default_fit(tmp_path):
    """One for labels and goals where they are in the file, one for sums, one for losses."""
    np.save(tmp_path / "a.npy", TABLE - np.append(np.arange(N) * 20.0, [0.0, 0.0]))
    for solve_it in (
        lambda s: solve(s, s.y, s.z, 0.5),
        lambda s: solve(s, s.y, s.z, 0.5, fit_intercept=True),
        lambda s: solve(s, s.y, s.z, Population.mixed(0.5), fit_intercept=True, ridge=0.1),
        lambda s: StackelbergRegressor().fit(s, s.y, z=s.z),
    ):
        s = stream(tmp_path / "a.npy", y=N, z=N + 1, block_bytes=ROOMY)
        s.y.sum()
        assert s.reads == 1
        solve_it(s)
        assert s.reads == 3
    path = stream(tmp_path / "a.npy", y=N, z=N + 1, block_bytes=ROOMY)
    spgls.solve_path(path, path.y, path.z, np.geomspace(0.1, 10.0, 20), fit_intercept=True)
    assert path.reads == 2


def test_a_pass_reads_every_row_once():
    calls, rows = [], []

    def source():
        calls.append(0)
        for block in _blocks():
            calls[-1] += len(block)
            yield block

    s = stream(source)
    assert s.shape == (M, N + 2)
    calls.clear()
    s.apply(np.ones(N + 2))
    assert calls == [M]
    assert next(iter(s.row_panels(10)))[1].shape == (10, N + 2)
    assert (s.work.rows, s.natural_width) == (M, 2)
    assert calls == [M]
    for piece, block in s.blocks():
        rows.append((piece.start, piece.stop, block.shape[0]))
    assert rows[0][0] == 0
    assert rows[-1][1] == M


def test_what_is_held(tmp_path):
    """A file of 40 MB: its first 4 MiB, blocks of 1 MB, and vectors of the length of the rows."""
    m, n = 50_000, 100
    big = np.lib.format.open_memmap(tmp_path / "a.npy", "w+", np.float64, (m, n))
    for at in range(0, m, 10_000):
        big[at : at + 10_000] = np.random.default_rng(at).random((10_000, n))
    big.flush()
    del big
    y = np.sin(np.arange(m))
    for solver in ("spectral", "krylov"):
        s = stream(tmp_path / "a.npy", block_bytes=10**6)
        peak = peak_bytes(
            lambda s=s, solver=solver: solve(
                s, y, y + 1 + y**2, 1.0, solver=solver, fit_intercept=True
            )
        )
        assert peak < 24e6
        # Blocks themselves are not NumPy's, and not counted there.
        assert len(s._source._room._free) <= 3
    s = stream(tmp_path / "a.npy", block_bytes=10**6)
    assert peak_bytes(lambda: StackelbergRegressor(goal=Floor(0.5)).fit(s, y).score(s, y)) < 24e6


LIMITED = """
import resource, sys
import numpy as np
import spgls
small = np.random.default_rng(0).random((3000, 100))
spgls.solve(small, small[:, 0], small[:, 1], 1.0, fit_intercept=True)
used = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmData"))
resource.setrlimit(resource.RLIMIT_DATA, (1024 * used + 110 * 10**6,) * 2)
try:
    np.load(sys.argv[1])
except MemoryError:
    print("does not fit")
s = spgls.stream(sys.argv[1], y=0, z=1)
print(spgls.solve(s, s.y, s.z, 1.0, fit_intercept=True).status.value)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits on data memory are Linux's")
@pytest.mark.slow
def test_a_process_with_less_memory_than_the_file(tmp_path):
    big = np.lib.format.open_memmap(tmp_path / "a.npy", "w+", np.float64, (200_000, 100))
    for at in range(0, len(big), 20_000):
        big[at : at + 20_000] = np.random.default_rng(at).normal(size=(20_000, 100))
    big.flush()
    del big
    run = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path / "a.npy")],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
    )
    assert run.stdout.split("\n")[:2] == ["does not fit", "optimal"], run.stderr


def test_memory_of_blocks_is_used_again():
    room, kind = Room(), np.dtype(np.float64)
    for length in (50, 50, 20):
        block = room.array((length, 4), kind)
        block[:] = length
        # A view of a view keeps it; the block itself is gone.
        held = block[3:].T[1:]
        at = held.base.__array_interface__["data"]
        del block
        other = room.array((50, 4), kind)
        other[:] = -1.0
        assert (held == length).all()
        del held
        again = room.array((10, 4), kind)
        assert again.__array_interface__["data"] == at
        del other, again
    assert room.array((100, 4), kind).shape == (100, 4)


def test_rows_that_are_kept_are_not_written_over(tmp_path):
    s = _stream("npy", tmp_path)
    kept = [block for _, block in s.blocks()]
    s.apply(np.ones(N))
    np.testing.assert_array_equal(np.vstack([getattr(one, "values", one) for one in kept]), X)


def test_free_memory_knows_limits_of_the_process():
    resource = pytest.importorskip("resource", reason="there are no such limits here")
    if sys.platform != "linux":
        pytest.skip("only Linux tells what a process has")
    before, hard = resource.getrlimit(resource.RLIMIT_DATA)
    try:
        resource.setrlimit(resource.RLIMIT_DATA, (8 * 10**9, hard))
        assert available_memory() < 8e9
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (before, hard))


def test_scratch_parses_text_once(tmp_path):
    path, folder = _source("csv", tmp_path), tmp_path / "scratch"
    folder.mkdir()
    s = stream(path, y="price", z="wish", scratch=folder, block_bytes=SMALL)
    y = s.y
    path.write_text("nothing of it is needed any more")
    np.testing.assert_array_equal(np.vstack([panel for _, panel in s.row_panels(700)]), X)
    assert list(folder.iterdir()) == []
    ours, theirs = (solve(A, y, Z, 0.5, fit_intercept=True, solver="spectral") for A in (s, X))
    np.testing.assert_allclose(ours.coef, theirs.coef, rtol=1e-7)
    sparse = stream(_source("sparse", tmp_path), scratch=folder)
    with pytest.raises(TypeError, match="scratch keeps dense rows only; got csr_array"):
        _ = sparse.shape


# Estimators


def test_estimators(tmp_path):
    s = _stream("parquet", tmp_path)
    frame = pd.DataFrame(X, columns=NAMES[:N])
    for model in (
        StackelbergRegressor(goal=GOAL),
        StackelbergRegressor(0.5, honest_share=0.0, feature_cost={"x1": np.inf}, goal=GOAL),
        spgls.StackelbergRegressorCV(goal=GOAL, cv=3),
    ):
        theirs = model.fit(frame, Y)
        wanted = theirs.predict(frame), theirs.score(frame, Y), theirs.predict_attacked(frame, Z)
        model.fit(s, s.y)
        assert model.n_features_in_ == N
        assert list(model.feature_names_in_) == NAMES[:N]
        got = model.predict(s), model.score(s, s.y), model.predict_attacked(s, Z)
        for a, b in zip(got, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-7)
        np.testing.assert_allclose(model.predict(s), model.predict(frame), rtol=1e-9)
    other = stream(tmp_path, columns=NAMES[1 : N + 1])
    with pytest.raises(ValueError, match="same order; 'x1' stands where 'x0' was"):
        model.predict(other)
    with pytest.raises(ValueError, match="X has 2 features, but StackelbergRegressorCV is expect"):
        model.predict(stream(tmp_path, columns=["x0", "x1"]))
    with pytest.raises(TypeError, match="rows are needed themselves; got Stream of shape"):
        model.best_response(s, Z)


# What goes wrong


def _with_nan(row, column):
    values = TABLE.copy()
    values[row, column] = np.nan
    return values


@pytest.mark.parametrize("kind", ["function", "npy", "csv", "parquet"])
def test_what_is_missing_is_named_by_block_and_column(kind, tmp_path):
    """Block 57 of 50 rows each; and an estimator that fails is left as it was."""
    values = _with_nan(57 * 50 + 3, 4)
    size = 50 * 8 * (N if kind in NAMED else N + 2)
    if kind == "function":
        source = lambda: _blocks(values)  # noqa: E731
    elif kind == "npy":
        np.save(tmp_path / "a.npy", values)
        source = tmp_path / "a.npy"
    elif kind == "csv":
        pytest.importorskip("pyarrow", reason="pyarrow reads tables")
        source = _write_csv(tmp_path / "a.csv", values)
    else:
        source = _write_parquet(tmp_path, values)
    y, z = ("price", "wish") if kind in NAMED else (N, N + 1)
    s = stream(source, y=y, z=z, block_bytes=size)
    label = "'x4'" if kind in NAMED else "4"
    message = rf"X must be finite; row 2853 \(block 57\), column {label} is nan"
    for options in ({}, {"fit_intercept": True}, {"solver": "krylov"}):
        with pytest.raises(ValueError, match=message):
            solve(s, s.y, s.z, 1.0, **options)
    model = StackelbergRegressor(goal=GOAL).fit(X, Y)
    before = dict(vars(model))
    with pytest.raises(ValueError, match=message):
        model.fit(s, s.y)
    with pytest.raises(ValueError, match=message):
        model.predict(s)
    assert vars(model) == before


def test_labels_that_are_missing(tmp_path):
    s = stream(lambda: _blocks(_with_nan(77, N)), y=N, z=N + 1)
    with pytest.raises(ValueError, match="y must be finite; entry 77 is nan"):
        solve(s, s.y, s.z, 1.0)


def test_blocks_that_become_sparse():
    """The first block stands for all, but entries of sparse ones are added one by one."""
    m = 4000

    def blocks():
        yield np.ones((m, 1))
        yield sp.csr_array(np.ones((m, 1)))

    matrix = spgls.matrix.as_matrix(stream(blocks))
    assert not matrix.work.by_index
    assert sum_rounding_down(matrix) >= sum_rounding(m)


def test_blocks_of_another_width():
    def source():
        for number, block in enumerate(_blocks()):
            yield block[:, :5] if number == 7 else block

    with pytest.raises(ValueError, match="equally many columns; block 7 has 5, the first has 8"):
        _ = stream(source).shape


def test_blocks_of_other_names():
    def source():
        for number, block in enumerate(_blocks()):
            yield pd.DataFrame(block, columns=NAMES[::-1] if number == 7 else NAMES)

    with pytest.raises(ValueError, match="same columns in the same order; block 7 has"):
        _ = stream(source).shape


@pytest.mark.parametrize("rows", [M - 20, M + 20, 3])
def test_a_second_pass_of_another_length(rows):
    calls = []

    def source():
        calls.append(1)
        # The first call looks at the first block, one more for the head, one counts.
        last = rows if len(calls) > 3 else M
        return _blocks(np.vstack([TABLE, TABLE])[:last])

    s = stream(source)
    assert s.shape[0] == M
    model = StackelbergRegressor(goal=GOAL).fit(X, Y)
    before = dict(vars(model))
    with pytest.raises(ValueError, match="must stay the same from pass to pass; it"):
        model.fit(s, Y)
    assert vars(model) == before


def test_a_function_that_shuffles():
    rng = np.random.default_rng(0)
    s = stream(lambda: _blocks(rng.permutation(TABLE)))
    with pytest.raises(ValueError, match=r"began with other rows in this pass\. A function has to"):
        s.apply(np.ones(N + 2))


@pytest.mark.parametrize("kind", ["npy", "parquet", "csv"])
def test_a_file_that_changes_between_passes(kind, tmp_path):
    s = _stream(kind, tmp_path)
    y, z = s.y, s.z
    solve(s, y, z, 1.0)
    if kind == "npy":
        np.save(tmp_path / "a.npy", TABLE[:-1])
        message = r"a.npy was written to \(\d+ bytes, now \d+\)"
    elif kind == "csv":
        os.utime(tmp_path / "a.csv", ns=(1, 1))
        message = r"a.csv was written to\."
    else:
        (tmp_path / "9.parquet").write_bytes((tmp_path / "0.parquet").read_bytes())
        message = "9.parquet is new"
    with pytest.raises(ValueError, match=f"from pass to pass; .*{message}.* Make a new stream"):
        solve(s, y, z, 1.0)


def test_a_file_that_changes_within_a_pass(tmp_path):
    np.save(tmp_path / "a.npy", TABLE)
    s = stream(tmp_path / "a.npy", block_bytes=SMALL)

    def cut(rows, t):
        if rows.start > 500:
            os.truncate(tmp_path / "a.npy", 50_000)
        return t

    with pytest.raises(ValueError, match=r"a\.npy (was written to|has been cut)"):
        s.gram(np.ones(N + 2), None, cut)
    (tmp_path / "a.npy").unlink()
    with pytest.raises(ValueError, match=r"a\.npy is gone"):
        s.apply(np.ones(N + 2))


def test_an_error_of_the_source_is_the_callers():
    def source():
        yield TABLE[:50]
        raise OSError("the disk is on fire")

    with pytest.raises(OSError, match="on fire"):
        _ = stream(source).shape


@pytest.mark.parametrize(
    ("source", "options", "error", "message"),
    [
        (_blocks(), {}, TypeError, "an iterator can be read only once; got a generator. Pass a fu"),
        (None, {}, TypeError, "source must be a path, an array outside of memory.*got None"),
        ([[1.0, 2.0]], {}, TypeError, "got a list. Data in memory is passed as X itself"),
        (sp.csr_array(X), {}, TypeError, r"got csr_array of shape \(3000, 6\), which is data alr"),
        ("no/such.npy", {}, FileNotFoundError, "file or folder that exists; got no/such.npy"),
        (np.ones(3), {}, ValueError, r"source must be a table.*of shape \(3,\)"),
        (np.array([["a"]]), {}, TypeError, "source must hold real numbers; got ndarray of shape"),
        (lambda: 3, {}, TypeError, "must return blocks of rows, such as a gen.* returned 3"),
        (list, {}, TypeError, "got the class list, not an object"),
        (lambda: [], {}, ValueError, "source must give at least one row"),
        (lambda: [np.ones(3)], {}, ValueError, r"two dimensions; block 0 has shape \(3,\)"),
        (lambda: [[["a"]]], {}, TypeError, "block 0 must be a table of numbers"),
        (X, {"y": "price"}, ValueError, "y must be the number of a column, because .* no names"),
        (X, {"y": 6}, ValueError, "y must be the number of a column, from 0 to 5; got 6"),
        (X, {"y": Y}, TypeError, r"y must be the name or number .*; got ndarray of shape \(3000,"),
        (X, {"z": Floor(3.0)}, TypeError, "z must be the name or number of a column; got a Floor"),
        (X, {"y": 1, "z": -5}, ValueError, "y, z must be different columns"),
        (X, {"y": 1, "columns": [0, 1]}, ValueError, "columns must not name the column of y"),
        (X, {"columns": "x0"}, TypeError, "columns must be a list of columns; got 'x0'"),
        (X, {"columns": [0, 0]}, ValueError, "columns must name each column once"),
        (X[:, :1], {"y": 0}, ValueError, "at least one column besides"),
        (X, {"block_bytes": 0}, ValueError, "block_bytes must be a positive whole number"),
        (X, {"scratch": "no/such"}, ValueError, "scratch must be a folder that exists"),
        (X, {"scratch": 3}, TypeError, "scratch must be a folder; got 3"),
        (X, {"progress": True}, TypeError, "progress must be None or a function of one Reading"),
    ],
)
def test_wrong_arguments(source, options, error, message):
    with pytest.raises(error, match=message):
        stream(source, **options)


def test_wrong_files(tmp_path):
    pytest.importorskip("pyarrow", reason="pyarrow reads tables")
    (tmp_path / "a.xls").write_text("x")
    with pytest.raises(ValueError, match=r"source must end in .npy, .parquet.*a\.xls"):
        stream(tmp_path / "a.xls")
    with pytest.raises(ValueError, match=r"folder of files of one format.* has none"):
        stream(tmp_path)
    (tmp_path / "a.npy").write_bytes(b"\x93NUMPY nothing")
    with pytest.raises(ValueError, match=r"source must be a \.npy file of a table of numbers"):
        stream(tmp_path / "a.npy")
    frame = pd.DataFrame({"a": [1.0, 2.0], "city": ["x", "y"], "b": [3, 4]})
    frame.to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(TypeError, match=r"column 'city' of .*a\.csv is string.*columns="):
        stream(tmp_path / "a.csv")
    assert stream(tmp_path / "a.csv", columns=["a", "b"]).shape == (2, 2)
    with pytest.raises(ValueError, match=r"y must be one of the columns .*Did you mean 'city'"):
        stream(tmp_path / "a.csv", y="citi")
    (tmp_path / "b.csv").write_text("a,b\n" + "1,2\n" * 600_000 + "1,oops\n")
    with pytest.raises(ValueError, match=r"b\.csv could not be read.*oops"):
        _ = stream(tmp_path / "b.csv").shape
    (tmp_path / "c.csv").write_text("a,a\n1,2\n")
    with pytest.raises(ValueError, match=r"could not be read.*multiple columns named a"):
        stream(tmp_path / "c.csv")
    (tmp_path / "d.csv").write_text("a,b\n")
    with pytest.raises(ValueError, match="source must have at least one row; got none"):
        stream(tmp_path / "d.csv")


def test_a_missing_package_is_named(tmp_path, monkeypatch):
    for name, module in (("a.csv", "pyarrow"), ("a.h5", "h5py"), ("a.zarr", "zarr")):
        for one in [module, *(key for key in sys.modules if key.startswith(f"{module}."))]:
            monkeypatch.setitem(sys.modules, one, None)
        (tmp_path / name).write_text("a\n1\n")
        with pytest.raises(ImportError, match=rf"{module} to be read: pip install 'spgls\[stream"):
            stream(tmp_path / name)


def test_several_tables_in_one_file(tmp_path):
    h5py = pytest.importorskip("h5py", reason="h5py reads such files")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["one"], file["sub/two"] = X, X
    with pytest.raises(ValueError, match=r"one table; .* has 'one', 'sub/two'. Pass one of its"):
        stream(tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5") as file:
        assert stream(file["sub/two"]).shape == X.shape


# Threads, interrupts, progress


def test_the_next_item_is_fetched_ahead():
    fetched = []

    def items():
        for number in range(4):
            fetched.append(number)
            yield number

    for number in ahead(items()):
        for one in _threads():
            one.join()
        assert fetched == list(range(min(number + 2, 4)))


@pytest.mark.parametrize("kind", ["npy", "parquet", "function"])
def test_an_interrupt_leaves_nothing_behind(kind, tmp_path):
    def interrupt(told):
        if told.read > 1 and told.rows > 1000:
            raise KeyboardInterrupt

    s = _stream(kind, tmp_path, progress=interrupt)
    y, z = s.y, s.z
    model = StackelbergRegressor()
    with pytest.raises(KeyboardInterrupt) as caught:
        model.fit(s, y, z=z)
    assert not _threads(), "while the traceback is still there"
    assert "coef_" not in vars(model)
    assert caught.value.__traceback__ is not None


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no timers here")
def test_a_signal_while_waiting_for_a_block():
    def source():
        for block in _blocks(size=1500):
            time.sleep(0.15)
            yield block

    s = stream(source)

    def interrupt(*_):
        raise KeyboardInterrupt

    old = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(KeyboardInterrupt):
            s.apply(np.ones(s.shape[1]))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, old)
    assert not _threads()
    np.testing.assert_allclose(s.apply(np.ones(N + 2)), TABLE.sum(axis=1))


def test_progress_tells_bytes_and_time(tmp_path):
    told: list[Reading] = []
    np.save(tmp_path / "a.npy", TABLE)
    s = stream(tmp_path / "a.npy", y=N, z=N + 1, progress=told.append, block_bytes=ROOMY)
    solve(s, s.y, s.z, 1.0, fit_intercept=True)
    assert [one.read for one in told if one.rows == M] == [1, 2, 3]
    for one in told:
        assert one.total == TABLE.nbytes
        assert one.bytes == pytest.approx(one.rows / M * TABLE.nbytes)
        assert one.remaining == pytest.approx((M - one.rows) / one.rows * one.seconds)
    assert Reading(2, 10, 3e9, 6e9, 2.0).remaining == 2.0
    words = "read 2 of the data, 3 GB of 6 GB, 1.5 GB/s, 2 s left in this read"
    assert str(Reading(2, 10, 3e9, 6e9, 2.0)) == words
    assert str(Reading(1, 10, 2500.0, None, 1.0)) == "read 1 of the data, 2.5 kB, 2.5 kB/s"
    assert Reading(1, 10, 2500.0, None, 1.0).remaining is None
    out = io.StringIO()
    shown = Progress(after=0.0, file=out)
    s = stream(lambda: _blocks(), progress=shown)
    solve(s, Y, Z, 1.0, fit_intercept=True, callback=shown)
    assert re.match(r"read 1 of the data, [\d.]+ kB, .*/s\n", out.getvalue())
