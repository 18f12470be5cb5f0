"""Models in files: what is loaded is what was saved, and what is not whole is never loaded."""

from __future__ import annotations

import io
import json
import pickle
from hashlib import sha256
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    PolynomialFeatures,
    StandardScaler,
)

from spgls import (
    Actions,
    Between,
    Cap,
    Constant,
    Floor,
    ModelFileError,
    Opposite,
    Population,
    Scale,
    Shift,
    StackelbergClassifier,
    StackelbergClassifierCV,
    StackelbergRegressor,
    StackelbergRegressorCV,
    Status,
    Wants,
    export_onnx,
    load_model,
    save_model,
)
from spgls.base.files import write_whole
from spgls.io.model_file import MAGIC

pytest.importorskip("skops")

#: Written when the format was new. It must load as long as this format is read.
FIRST = Path(__file__).parent / "data" / "model-format-1.spgls"
X, Y = load_diabetes(return_X_y=True)
CANCER, BENIGN = load_breast_cancer(return_X_y=True)
NAMED = np.array(["malignant", "benign"])[BENIGN]


def mixed_table():
    """A frame with numbers, categories and holes."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(
        {
            "age": rng.integers(18, 80, 120).astype(float),
            "region": rng.choice(["north", "east", "<south>"], 120),
            "bmi": rng.normal(27, 4, 120),
        }
    )
    y = frame["age"] / 10 + (frame["region"] == "north") + rng.normal(size=120)
    return frame, y


def encoded(**parameters):
    columns = ColumnTransformer(
        [
            ("number", SimpleImputer(strategy="median"), ["age", "bmi"]),
            ("category", OneHotEncoder(sparse_output=False), ["region"]),
        ]
    )
    return make_pipeline(columns, StackelbergRegressor(goal=Floor(6), **parameters))


MODELS = {
    "regressor": lambda: StackelbergRegressor(goal=Floor(250)).fit(X, Y),
    "population": lambda: StackelbergRegressor(
        Population([np.inf, 1e6, 1e5], [0.5, 0.3, 0.2]), goal=Shift(30, upper=400)
    ).fit(X, Y),
    "costs": lambda: StackelbergRegressor(
        1e6, goal=Scale(1.2), feature_cost=[np.inf, *range(1, 10)], ridge=0.1, random_state=3
    ).fit(X, Y),
    "cap": lambda: StackelbergRegressor(goal=Cap(100), pull=0.3, honest_share=0.2).fit(X, Y),
    "constant": lambda: StackelbergRegressor(goal=Constant(200)).fit(X, Y),
    "goals by row": lambda: StackelbergRegressor().fit(X, Y, z=np.maximum(Y, 250)),
    "single precision": lambda: StackelbergRegressor(goal=Floor(250)).fit(X.astype("f4"), Y),
    "cross-validated": lambda: StackelbergRegressorCV(goal=Floor(250), cv=3).fit(X, Y),
    "actions": lambda: StackelbergRegressor(
        goal=Floor(250), feature_cost=Actions({"walk": {2: -1.0, 3: -0.5}}, cost=2.0)
    ).fit(X, Y),
    "a matrix of costs": lambda: StackelbergRegressor(
        goal=Floor(250), feature_cost=np.eye(10) + 0.1
    ).fit(X, Y),
    "a range": lambda: StackelbergRegressor(pull=Between(0.3, 0.6), goal=Floor(250)).fit(X, Y),
    "in pieces": lambda: (
        StackelbergRegressor(goal=Floor(250))
        .partial_fit(X[:200], Y[:200])
        .partial_fit(X[200:], Y[200:])
    ),
    "pipeline": lambda: make_pipeline(
        StandardScaler(), FunctionTransformer(np.arctan), StackelbergRegressor(goal=Floor(250))
    ).fit(X, Y),
}
DECIDERS = {
    "wants": lambda: StackelbergClassifier(goal=Wants("benign"), ridge=1.0).fit(CANCER, NAMED),
    "numbers": lambda: StackelbergClassifier(goal=Wants(1), threshold="attacked").fit(
        CANCER, BENIGN
    ),
    "truths": lambda: StackelbergClassifier(goal=Opposite()).fit(CANCER, BENIGN == 1),
    "cross-validated": lambda: StackelbergClassifierCV(goal=Wants("benign"), cv=3).fit(
        CANCER, NAMED
    ),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A file, and its model."""
    path = tmp_path_factory.mktemp("whole") / "model.spgls"
    model = MODELS["regressor"]()
    save_model(model, path)
    return path.read_bytes(), model


class TestWhatComesBack:
    @pytest.mark.parametrize("name", MODELS)
    def test_a_regressor(self, tmp_path, name):
        model, path = MODELS[name](), tmp_path / "a model.spgls"
        save_model(model, path)
        again = load_model(str(path))
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        last, before = (one[-1] if hasattr(one, "steps") else one for one in (again, model))
        assert type(last) is type(before)
        assert last.status_ is before.status_
        assert last.certificate_ == before.certificate_
        assert last.get_params().keys() == before.get_params().keys()
        assert repr(last) == repr(before)
        np.testing.assert_array_equal(last.gamma_, before.gamma_)
        if name == "regressor":
            moved, other = (one.best_response(X, y=Y) for one in (again, model))
            np.testing.assert_array_equal(moved, other)
            assert again.levers(X, Y).names == model.levers(X, Y).names

    @pytest.mark.parametrize("name", DECIDERS)
    def test_a_classifier(self, tmp_path, name):
        model, path = DECIDERS[name](), tmp_path / "model.spgls"
        save_model(model, path)
        again = load_model(path)
        assert again.classes_.dtype.kind == model.classes_.dtype.kind
        np.testing.assert_array_equal(again.predict(CANCER), model.predict(CANCER))
        np.testing.assert_array_equal(
            again.decision_function(CANCER), model.decision_function(CANCER)
        )

    def test_an_encoding_with_its_columns(self, tmp_path):
        frame, y = mixed_table()
        model = encoded().fit(frame, y)
        save_model(model, tmp_path / "model.spgls")
        again = load_model(tmp_path / "model.spgls")
        frame.loc[3, "bmi"] = np.nan
        np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
        assert list(again.feature_names_in_) == ["age", "region", "bmi"]

    def test_fitting_goes_on(self, tmp_path):
        model = StackelbergRegressor(goal=Floor(250)).partial_fit(X[:200], Y[:200])
        save_model(model, tmp_path / "model.spgls")
        again = load_model(tmp_path / "model.spgls").partial_fit(X[200:], Y[200:])
        np.testing.assert_array_equal(again.coef_, model.partial_fit(X[200:], Y[200:]).coef_)

    def test_a_status_of_any_kind(self, tmp_path, recwarn):
        model = StackelbergRegressor(honest_share=0, goal=Shift(3.0)).fit(X, Y)
        assert model.status_ is Status.UNATTAINED
        save_model(model, tmp_path / "model.spgls")
        assert load_model(tmp_path / "model.spgls").status_ is Status.UNATTAINED
        assert pickle.loads(pickle.dumps(model)).status_ is Status.UNATTAINED

    def test_the_first_format_still_loads(self):
        model = load_model(FIRST)
        assert model.goal == Floor(250)
        np.testing.assert_allclose(
            model.predict(X[:3]), MODELS["regressor"]().predict(X[:3]), rtol=1e-9
        )


class TestRefusedAtSaving:
    @pytest.mark.parametrize(
        ("model", "error", "words"),
        [
            (StackelbergRegressor(goal=Floor(1)), Exception, "not fitted"),
            (StackelbergRegressor, TypeError, "model must be"),
            (LinearRegression().fit(X, Y), TypeError, "model must be one of spgls"),
            (StackelbergRegressor(goal=lambda y: y + 1).fit(X, Y), TypeError, "lambda"),
            (
                make_pipeline(
                    FunctionTransformer(lambda X: X), StackelbergRegressor(goal=Floor(250))
                ).fit(X, Y),
                TypeError,
                "cannot be saved",
            ),
        ],
    )
    def test_models(self, tmp_path, model, error, words):
        with pytest.raises(error, match=words):
            save_model(model, tmp_path / "model.spgls")
        assert not list(tmp_path.iterdir())

    def test_no_folder(self, tmp_path, whole):
        with pytest.raises(OSError, match="none"):
            save_model(whole[1], tmp_path / "none" / "model.spgls")

    def test_what_was_there_stays(self, tmp_path, whole, monkeypatch):
        path = tmp_path / "model.spgls"
        path.write_bytes(b"before")

        def stop(*_):
            raise KeyboardInterrupt

        monkeypatch.setattr("os.replace", stop)
        with pytest.raises(KeyboardInterrupt):
            save_model(whole[1], path)
        assert [(one.name, one.read_bytes()) for one in tmp_path.iterdir()] == [
            ("model.spgls", b"before")
        ]


def sealed(body: bytes) -> bytes:
    """A file with a digest that is right, as a forger would write it."""
    return body + sha256(body).digest()


def around(content: bytes, header: bytes = b'{"format": 1}') -> bytes:
    return sealed(MAGIC + header + b"\n" + content)


def archive_of(file: bytes) -> bytes:
    return file[file.index(b"\n", len(MAGIC)) + 1 : -32]


def rewritten(file: bytes, change, **options) -> bytes:
    """The file with another tree of objects, or other parts, and a digest that is right."""
    packed, out = ZipFile(io.BytesIO(archive_of(file))), io.BytesIO()
    parts = {name: packed.read(name) for name in packed.namelist()}
    tree = json.loads(parts["schema.json"])
    tree = change(tree, parts) or tree
    parts["schema.json"] = json.dumps(tree).encode()
    with ZipFile(out, "w", **options) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return around(out.getvalue())


def attributes(tree):
    return tree["content"]["content"]


def planted(node):
    """A change that puts an object where the goal was."""

    def change(tree, parts):
        attributes(tree)["goal"] = {"__id__": 1} | node

    return change


def node(name: str, loader: str, **more):
    module, _, kind = name.rpartition(".")
    return {"__module__": module, "__class__": kind, "__loader__": loader} | more


TEXT = node("builtins.str", "JsonNode", content='"touch CANARY"', is_json=True)
NOTHING = node(
    "builtins.dict", "DictNode", content={}, key_types=node("builtins.list", "ListNode", content=[])
)


def deep():
    part = TEXT
    for _ in range(300):
        part = node("builtins.list", "ListNode", content=[part])
    return part


class Evil:
    """What a pickle would run."""

    def __reduce__(self):
        return (Path.touch, (Path("CANARY"),))


def pickled_array(tree, parts):
    out = io.BytesIO()
    np.save(out, np.array([Evil()], dtype=object), allow_pickle=True)
    parts[attributes(tree)["coef_"]["file"]] = out.getvalue()


def text_for_coefficients(tree, parts):
    attributes(tree)["coef_"] = TEXT


def missing_part(tree, parts):
    del parts[attributes(tree)["coef_"]["file"]]


def unfitted(tree, parts):
    del attributes(tree)["coef_"]


def not_numbers(tree, parts):
    out = io.BytesIO()
    np.save(out, np.full(10, np.nan))
    parts[attributes(tree)["coef_"]["file"]] = out.getvalue()


def somebody_elses(tree, parts):
    tree["__class__"], tree["__module__"] = "LinearRegression", "sklearn.linear_model._base"


CRAFTED = {
    "os.system": lambda f: rewritten(f, planted(node("os.system", "FunctionNode", content="x"))),
    "posix.system": lambda f: rewritten(f, planted(node("posix.system", "TypeNode"))),
    "eval": lambda f: rewritten(f, planted(node("builtins.eval", "FunctionNode", content=TEXT))),
    "Popen": lambda f: rewritten(
        f, planted(node("subprocess.Popen", "ObjectNode", content=NOTHING))
    ),
    "a crafted type": lambda f: rewritten(
        f, planted(node("canary.Bird", "ObjectNode", content=NOTHING))
    ),
    "a method": lambda f: rewritten(
        f,
        planted(
            node(
                "spgls.game.goals.Floor",
                "MethodNode",
                content={"func": "set_params", "obj": node("spgls.game.goals.Floor", "ObjectNode")},
            )
        ),
    ),
    "a partial": lambda f: rewritten(
        f, planted(node("functools.partial", "PartialNode", content=TEXT))
    ),
    "an operator": lambda f: rewritten(
        f, planted(node("operator.methodcaller", "OperatorFuncNode", attrs=TEXT))
    ),
    "a constructor": lambda f: rewritten(
        f, planted(node("pathlib.Path", "ConstructorFromReduceNode", content=TEXT))
    ),
    "a reduce": lambda f: rewritten(
        f, planted(node("sklearn.tree._tree.Tree", "ReduceNode", reduce=TEXT))
    ),
    "a loader that is none": lambda f: rewritten(f, planted(node("builtins.str", "EvilNode"))),
    "numpy.load": lambda f: rewritten(f, planted(node("numpy.load", "FunctionNode", content=TEXT))),
    "a function of ours": lambda f: rewritten(
        f, planted(node("spgls.base.files.write_whole", "FunctionNode", content=TEXT))
    ),
    "a private module of ours": lambda f: rewritten(
        f, planted(node("spgls.cli.app.app", "TypeNode"))
    ),
    "no type": lambda f: rewritten(f, planted({"__loader__": "ObjectNode"})),
    "no end": lambda f: rewritten(f, planted(deep())),
    "a pickle": lambda f: rewritten(f, pickled_array),
    "text for numbers": lambda f: rewritten(f, text_for_coefficients),
    "not numbers": lambda f: rewritten(f, not_numbers),
    "a part that is missing": lambda f: rewritten(f, missing_part),
    "not fitted": lambda f: rewritten(f, unfitted),
    "somebody else's": lambda f: rewritten(f, somebody_elses),
    "compressed": lambda f: rewritten(f, lambda *_: None, compression=ZIP_DEFLATED),
    "no archive": lambda f: around(b"nothing of the kind"),
    "an archive of nothing": lambda f: around(_empty_archive()),
    "a newer format": lambda f: around(archive_of(f), b'{"format": 2}'),
    "a format below one": lambda f: around(archive_of(f), b'{"format": 0}'),
    "a format in words": lambda f: around(archive_of(f), b'{"format": "1"}'),
    "no format": lambda f: around(archive_of(f), b"{}"),
    "no JSON": lambda f: around(archive_of(f), b"format 1"),
    "a bare pickle": lambda f: pickle.dumps(Evil()),
    "a pickle behind our line": lambda f: around(pickle.dumps(Evil())),
    "more behind": lambda f: f + b"more",
    "less": lambda f: f[:-1],
    "half": lambda f: f[: len(f) // 2],
    "the line alone": lambda f: MAGIC,
    "nothing": lambda f: b"",
    "another digest": lambda f: f[:-32] + bytes(32),
    "a header changed": lambda f: f.replace(b'"format": 1', b'"format":  1', 1),
}


def _empty_archive() -> bytes:
    out = io.BytesIO()
    ZipFile(out, "w").close()
    return out.getvalue()


class TestTampered:
    def test_the_tools_of_the_forger_work(self, tmp_path, whole):
        # A rewritten file in which nothing was changed loads: the others fail by their change.
        path = tmp_path / "model.spgls"
        path.write_bytes(rewritten(whole[0], lambda *_: None))
        np.testing.assert_array_equal(load_model(path).coef_, whole[1].coef_)

    @pytest.mark.parametrize("name", CRAFTED)
    def test_crafted(self, tmp_path, monkeypatch, whole, name):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "canary.py").write_text("open('CANARY', 'w')\nclass Bird: pass\n")
        monkeypatch.syspath_prepend(tmp_path)
        path = tmp_path / "model.spgls"
        path.write_bytes(CRAFTED[name](whole[0]))
        with pytest.raises(ModelFileError, match=r"model\.spgls"):
            load_model(path)
        assert not (tmp_path / "CANARY").exists()

    @pytest.mark.parametrize("seed", range(50))
    def test_random(self, tmp_path, whole, seed):
        rng = np.random.default_rng(seed)
        changed = bytearray(whole[0])
        at = rng.integers(len(changed))
        if seed % 5 == 0:
            del changed[at]
        elif seed % 5 == 1:
            changed.insert(at, rng.integers(256))
        else:
            changed[at] ^= 1 << rng.integers(8)
        path = tmp_path / "model.spgls"
        path.write_bytes(changed)
        with pytest.raises(ModelFileError):
            load_model(path)

    def test_a_newer_file_is_called_newer(self, tmp_path, whole):
        path = tmp_path / "model.spgls"
        path.write_bytes(CRAFTED["a newer format"](whole[0]))
        with pytest.raises(ModelFileError, match=r"format 2.*reads up to 1.*newer"):
            load_model(path)

    def test_a_crafted_type_is_named(self, tmp_path, whole):
        path = tmp_path / "model.spgls"
        path.write_bytes(CRAFTED["Popen"](whole[0]))
        with pytest.raises(ModelFileError, match=r"the type subprocess\.Popen"):
            load_model(path)

    def test_no_file(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            load_model(tmp_path / "none.spgls")


class TestWholeFiles:
    def test_a_new_file_and_another_in_its_place(self, tmp_path):
        path = tmp_path / "a"
        write_whole(path, b"one")
        path.chmod(0o640)
        write_whole(path, b"two")
        assert path.read_bytes() == b"two"
        assert path.stat().st_mode & 0o777 == 0o640

    def test_a_link_stays_one(self, tmp_path):
        (tmp_path / "real").write_bytes(b"one")
        (tmp_path / "link").symlink_to(tmp_path / "real")
        write_whole(tmp_path / "link", b"two")
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "real").read_bytes() == b"two"

    def test_a_full_disk_leaves_nothing(self, tmp_path, monkeypatch):
        def full(_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("os.fsync", full)
        with pytest.raises(OSError, match="No space"):
            write_whole(tmp_path / "a", b"one")
        assert not list(tmp_path.iterdir())

    def test_a_device(self):
        if not Path("/dev/full").exists():
            pytest.skip("no /dev/full here")
        write_whole(Path("/dev/null"), b"one")
        with pytest.raises(OSError, match="No space"):
            write_whole(Path("/dev/full"), b"one")


@pytest.fixture
def run_graph(tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")

    def run(model, feeds):
        path = tmp_path / "model.onnx"
        export_onnx(model, path)
        session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        return session.run(None, feeds), session.get_modelmeta().custom_metadata_map

    return run


class TestONNX:
    @pytest.mark.parametrize("name", sorted(set(MODELS) - {"pipeline", "single precision"}))
    def test_numbers(self, run_graph, name):
        model = MODELS[name]()
        (said,), _ = run_graph(model, {"X": X})
        np.testing.assert_allclose(said, model.predict(X), rtol=1e-12, atol=0)
        assert said.dtype == np.float64

    @pytest.mark.parametrize("name", DECIDERS)
    def test_decisions(self, run_graph, name):
        model = DECIDERS[name]()
        (score, label), _ = run_graph(model, {"X": CANCER})
        wanted = model.decision_function(CANCER)
        np.testing.assert_allclose(score, wanted, rtol=1e-12, atol=1e-12 * np.abs(wanted).max())
        np.testing.assert_array_equal(label, model.predict(CANCER))

    def test_names_are_in_the_metadata(self, run_graph):
        pytest.importorskip("pandas")
        frame, y = load_diabetes(return_X_y=True, as_frame=True)
        frame = frame.rename(columns={"bmi": "<script>"})
        _, facts = run_graph(StackelbergRegressor(goal=Floor(250)).fit(frame, y), {"X": X})
        assert json.loads(facts["feature_names"]) == list(frame.columns)

    def test_a_pipeline_of_scalers(self, run_graph):
        pytest.importorskip("skl2onnx")
        model = make_pipeline(
            SimpleImputer(strategy="mean"), StandardScaler(), StackelbergRegressor(goal=Floor(250))
        ).fit(X, Y)
        holes = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
        (said,), _ = run_graph(model, {"X": holes})
        np.testing.assert_allclose(said, model.predict(holes), rtol=1e-12)

    def test_a_pipeline_with_categories(self, run_graph):
        pytest.importorskip("skl2onnx")
        frame, y = mixed_table()
        model = encoded().fit(frame, y)
        frame.loc[3, "bmi"] = np.nan
        feeds = {
            name: frame[[name]].to_numpy(object if name == "region" else float) for name in frame
        }
        (said,), facts = run_graph(model, feeds)
        np.testing.assert_allclose(said, model.predict(frame), rtol=1e-12)
        assert json.loads(facts["inputs"]) == ["age", "region", "bmi"]

    def test_what_cannot_be_converted(self, tmp_path):
        pytest.importorskip("skl2onnx")
        ours = StackelbergRegressor(goal=Floor(250))
        for step in (FunctionTransformer(np.arctan), PolynomialFeatures(2)):
            model = make_pipeline(step, ours).fit(X[:, :4], Y)
            with pytest.raises(TypeError, match="skl2onnx does not convert"):
                export_onnx(model, tmp_path / "model.onnx")
        with pytest.raises(TypeError, match="skl2onnx exports others"):
            export_onnx(LinearRegression().fit(X, Y), tmp_path / "model.onnx")
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("missing", "words"), [("skops.io", r"spgls\[io\]"), ("onnx", r"spgls\[io\]")]
)
def test_without_the_extra(tmp_path, monkeypatch, whole, missing, words):
    monkeypatch.setitem(__import__("sys").modules, missing, None)
    with pytest.raises(ImportError, match=words):
        (save_model if missing == "skops.io" else export_onnx)(whole[1], tmp_path / "model")
