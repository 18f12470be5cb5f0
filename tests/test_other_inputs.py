"""Containers of other libraries: what NumPy can read is read, and the rest is told what to do.

torch, xarray and frames in pieces are stood in for by classes that NumPy meets as it meets theirs;
polars is tried itself. Dask has tests of its own.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.multioutput import MultiOutputRegressor

from spgls import Floor, StackelbergRegressor, best_response, certify, movement, solve, solve_path

from .builders import linear_game

X, y, z = linear_game(40, 3)
NAMES = ["age", "debt", "income"]
MODEL = StackelbergRegressor(goal=Floor(0.0))


class Readable:
    """What has a shape and gives NumPy an array: a CPU tensor, an xarray DataArray."""

    def __init__(self, values):
        self.values = np.asarray(values)
        self.shape, self.dtype = self.values.shape, self.values.dtype
        self.reads = 0

    def __array__(self, dtype=None, copy=None):
        self.reads += 1
        return np.array(self.values, dtype=dtype)

    def __len__(self):
        return len(self.values)


class Pieces(Readable):
    """Frames in pieces: they know their columns, and compute when NumPy asks."""

    columns = NAMES
    index = range(40)

    def compute(self):
        raise AssertionError("NumPy asks for __array__")


class OnDevice(Readable):
    """A torch tensor on a GPU."""

    def __array__(self, dtype=None, copy=None):
        raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() first.")


class WithGradient(Readable):
    """A torch tensor that requires a gradient."""

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use detach() instead.")


class Query:
    """A frame of Spark or Ibis: nothing of it is there yet."""

    def __init__(self, verb):
        setattr(self, verb, lambda: None)


@pytest.mark.parametrize("kind", [Readable, Pieces])
def test_what_numpy_can_read_is_read(kind):
    best = solve(X, y, z, 0.5)
    assert np.array_equal(solve(kind(X), Readable(y), Readable(z), 0.5).coef, best.coef)
    assert solve_path(kind(X), y, z, [0.5])[0].objective == pytest.approx(best.objective)
    assert certify(kind(X), y, z, 0.5, Readable(best.coef)).relative_gap < 1e-10
    fitted = MODEL.fit(kind(X), Readable(y))
    assert isinstance(fitted.predict(kind(X)), np.ndarray)
    assert isinstance(best_response(kind(X), z, best.coef, gamma=0.5), np.ndarray)
    assert np.isfinite(movement(kind(X), z, best.coef, gamma=0.5).step).all()


def test_data_in_pieces_is_computed_whole_and_once():
    pieces = Pieces(X)
    solve(pieces, y, z, 0.5)
    assert pieces.reads == 1


def test_single_precision_stays():
    assert MODEL.fit(Readable(X.astype(np.float32)), y).coef_.dtype == np.float32


@pytest.mark.parametrize(
    ("kind", "advice"), [(OnDevice, r"Use Tensor\.cpu\(\)"), (WithGradient, r"Use detach\(\)")]
)
def test_tensors_that_numpy_cannot_read_are_named(kind, advice):
    said = rf"must be .*; got {kind.__name__} of shape \(40,.*which NumPy cannot read.*{advice}"
    for told, name in (((kind(X), y), "X"), ((X, kind(y)), "y")):
        with pytest.raises(TypeError, match=f"^{name} {said}"):
            solve(*told, z, 0.5)
        with pytest.raises(TypeError, match=f"^{name} {said}"):
            MODEL.fit(*told)
    with pytest.raises(TypeError, match=f"^X {said}"):
        MODEL.fit(X, y).predict(kind(X))


@pytest.mark.parametrize("verb", ["toPandas", "to_pandas", "collect"])
def test_queries_are_told_how_to_compute(verb):
    said = rf"must be .*; got a Query, which has not been computed\. Pass %s\.{verb}\(\)\.$"
    with pytest.raises(TypeError, match="^X " + said % "X"):
        solve(Query(verb), y, z, 0.5)
    with pytest.raises(TypeError, match="^z " + said % "z"):
        solve(X, y, Query(verb), 0.5)
    with pytest.raises(TypeError, match="^X " + said % "X"):
        MODEL.fit(Query(verb), y)
    with pytest.raises(TypeError, match="^y " + said % "y"):
        MODEL.fit(X, Query(verb))
    with pytest.raises(TypeError, match="^X " + said % "X"):
        MODEL.fit(X, y).predict(Query(verb))


def test_lazy_frames_of_polars_are_told_how_to_compute():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(X, schema=NAMES)
    for attempt in (lambda rows: solve(rows, y, z, 0.5), lambda rows: MODEL.fit(rows, y)):
        attempt(frame)
        with pytest.raises(TypeError, match=r"^X must be .*got a LazyFrame.*Pass X\.collect\(\)"):
            attempt(frame.lazy())


def test_rows_one_after_the_other_are_told_to_make_a_list():
    for attempt in (lambda rows: solve(rows, y, z, 0.5), lambda rows: MODEL.fit(rows, y)):
        with pytest.raises(TypeError, match=r"^X must be .*got a generator\. Pass list\(X\)"):
            attempt(row for row in X)


def test_several_outputs_are_a_model_each():
    both = np.column_stack([y, -y])
    said = r"^y must have one dimension.*got shape \(40, 2\)\. A model has one output: pass one"
    with pytest.raises(ValueError, match=said):
        solve(X, both, z, 0.5)
    with pytest.raises(ValueError, match=said):
        MODEL.fit(X, both)
    many = MultiOutputRegressor(MODEL).fit(X, both)
    assert many.predict(X)[:, 1] == pytest.approx(MODEL.fit(X, -y).predict(X))
