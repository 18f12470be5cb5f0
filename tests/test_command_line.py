"""The command line does what the Python interface does, from files as they come."""

from __future__ import annotations

import csv
import importlib
import importlib.util
import io
import json
import lzma
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import train_test_split

from spgls import (
    Actions,
    Between,
    Floor,
    Shift,
    StackelbergClassifier,
    StackelbergRegressor,
    Switches,
    Wants,
    load_model,
    robustness,
)

for package in ("typer", "rich", "pandas", "pyarrow", "openpyxl", "skops"):
    pytest.importorskip(package)
pd = importlib.import_module("pandas")

DATA = os.environ.get("SPGLS_DATA")
real = pytest.mark.skipif(not DATA, reason="SPGLS_DATA does not name a folder with the data")


@pytest.fixture(scope="module")
def invoke():
    testing = importlib.import_module("typer.testing")
    app = importlib.import_module("spgls.cli.app").app

    def run(*words, code=0):
        done = testing.CliRunner().invoke(app, [*map(str, words)], env={"COLUMNS": "200"})
        assert done.exit_code == code, done.output
        return done

    return run


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(7)
    m = 200
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, m).astype(float),
            "region": rng.choice(["north", "east", "<b>south</b>"], m),
            "bmi": rng.normal(27, 4, m).round(3),
            "<i>x</i>": rng.normal(0, 100, m).round(2),
        }
    )
    y = frame["age"] / 5 + 3 * (frame["region"] == "north") + frame["bmi"] + rng.normal(size=m)
    return frame.assign(y=y.round(4), grade=np.where(y > y.median(), "good", "bad"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory, table) -> Path:
    """The same table in every kind of file."""
    place = tmp_path_factory.mktemp("tables")
    plain = table.drop(columns="grade")
    plain.to_csv(place / "table.csv", index=False)
    plain.to_csv(place / "table.csv.gz", index=False)
    plain.to_csv(place / "table.csv.xz", index=False)
    plain.to_csv(place / "table.csv.bz2", index=False)
    plain.to_csv(place / "tabs.txt", index=False, sep="\t")
    plain.to_csv(place / "bars.csv", index=False, sep="|", encoding="utf-8-sig")
    plain.to_csv(place / "commas.csv", index=False, sep=";", decimal=",")
    plain.to_csv(place / "quoted.csv", index=False, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    plain.to_csv(place / "wide.csv", index=False, encoding="utf-16")
    plain.to_parquet(place / "table.parquet")
    plain.astype({"region": "category"}).to_parquet(place / "kinds.parquet")
    plain.to_feather(place / "table.arrow", compression="uncompressed")
    plain.to_excel(place / "table.xlsx", index=False)
    return place


FILES = (
    "table.csv",
    "table.csv.gz",
    "table.csv.xz",
    "table.csv.bz2",
    "tabs.txt",
    "bars.csv",
    "commas.csv",
    "quoted.csv",
    "wide.csv",
    "table.parquet",
    "kinds.parquet",
    "table.arrow",
    "table.xlsx",
)


def by_hand(X, y, goal, cost=None, names=None, size=0.25, **told):
    """The errors of least squares and of ours as the Python interface gives them."""
    train, test = train_test_split(np.arange(len(y)), test_size=size, random_state=0)
    cost = 1.0 / X[train].var(axis=0) if cost is None else cost(X[train])
    model = StackelbergRegressor(goal=goal, feature_cost=cost, **told).fit(X[train], y[train])
    plain = LinearRegression().fit(X[train], y[train])
    found = robustness(
        {"least squares": plain, "spgls": model},
        X[test],
        y[test],
        goal,
        [float(np.min(model.gamma_))],
        feature_cost=cost,
        metric="mse",
    )
    return model, found


def errors(done, name):
    return next(line for line in json.loads(done.stdout)["errors"] if line["model"] == name)


def assert_same(done, found, rtol=1e-9):
    for at, name in enumerate(found.models):
        line = errors(done, name)
        np.testing.assert_allclose(line["honest_mse"], found.honest[at], rtol=rtol)
        np.testing.assert_allclose(line["attacked_mse"], found.attacked[at, 0], rtol=rtol)


@pytest.fixture(scope="module")
def first(invoke, folder):
    done = invoke("fit", folder / "table.csv", "--y", "y", "--floor", 50, "--json")
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def model(invoke, folder):
    path = folder / "model.spgls"
    words = ("--y", "y", "--floor", 50, "--cost", "<i>x</i>=2", "--model", path)
    done = invoke("fit", folder / "table.csv", *words)
    assert f"Model: {path}" in done.stdout
    return path


@real
class TestRealFiles:
    def test_wine(self, invoke):
        done = invoke(
            "fit", f"{DATA}/winequality-red.csv", "--y", "quality", "--floor", 7, "--json"
        )
        raw = np.genfromtxt(f"{DATA}/winequality-red.csv", delimiter=";", skip_header=1)
        model, found = by_hand(raw[:, :-1], raw[:, -1], Floor(7))
        assert_same(done, found)
        told = json.loads(done.stdout)
        np.testing.assert_allclose(list(told["coefficients"].values()), model.coef_, rtol=1e-9)
        assert told["certificate"]["kind"] == "proved"
        assert errors(done, "spgls")["attacked_r2"] > errors(done, "least squares")["attacked_r2"]

    @pytest.mark.skipif(importlib.util.find_spec("jinja2") is None, reason="no jinja2")
    def test_wine_with_a_report_from_a_cold_start(self, tmp_path):
        words = ("--y", "quality", "--floor", "7", "--report", str(tmp_path / "r.html"))
        before = os.times()
        done = subprocess.run(
            [sys.executable, "-m", "spgls", "fit", f"{DATA}/winequality-red.csv", *words],
            capture_output=True,
            text=True,
            check=False,
        )
        after = os.times()
        assert done.returncode == 0, done.stderr
        # Processor time, which other work on the machine does not change.
        spent = after.children_user + after.children_system
        assert spent - before.children_user - before.children_system < 10.0
        assert 10_000 < (tmp_path / "r.html").stat().st_size < 1_000_000

    def test_insurance(self, invoke):
        done = invoke("fit", f"{DATA}/insurance.csv", "--y", "charges", "--shift", -3000, "--json")
        raw = pd.read_csv(f"{DATA}/insurance.csv")
        numbers = ["age", "bmi", "children"]
        hot = pd.get_dummies(raw[["sex", "smoker", "region"]], dtype=float)
        X = np.hstack([raw[numbers].to_numpy(float), hot.to_numpy()])

        def cost(rows):
            return np.r_[1.0 / rows[:, :3].var(axis=0), np.full(hot.shape[1], np.inf)]

        _, found = by_hand(X, raw["charges"].to_numpy(), Shift(-3000), cost)
        assert_same(done, found, rtol=1e-7)
        told = json.loads(done.stdout)
        assert set(told["coefficients"]) == {*numbers, *hot.columns}
        assert any("immutable: 'sex', 'smoker', 'region'" in note for note in told["assumed"])

    def test_building(self, invoke):
        path = f"{DATA}/Residential-Building-Data-Set.xlsx"
        done = invoke("fit", path, "--y", "V-9", "--drop", "V-10", "--shift", 40, "--json")
        raw = pd.read_excel(path, header=None, skiprows=2).to_numpy(float)
        X, y = raw[:, :-2], raw[:, -2]
        _, found = by_hand(X, y, Shift(40))
        told = errors(done, "spgls")
        np.testing.assert_allclose(told["honest_mse"], found.honest[1], rtol=1e-6)
        np.testing.assert_allclose(told["attacked_mse"], found.attacked[1, 0], rtol=1e-6)
        assert len(json.loads(done.stdout)["coefficients"]) == 107

    @pytest.mark.long
    @pytest.mark.filterwarnings("ignore:Strategic providers close")
    def test_blog(self, invoke):
        path = f"{DATA}/blogData_train.csv.xz"
        done = invoke("fit", path, "--y", "column 281", "--shift", 5, "--json")
        with lzma.open(path, "rt") as file:
            raw = np.loadtxt(file, delimiter=",")

        def cost(rows):
            spread = rows.var(axis=0)
            return 1.0 / np.where(spread > 0, spread, 1.0)

        _, found = by_hand(raw[:, :-1], raw[:, -1], Shift(5), cost)
        told = errors(done, "spgls")
        np.testing.assert_allclose(told["honest_mse"], found.honest[1], rtol=1e-6)
        np.testing.assert_allclose(told["attacked_mse"], found.attacked[1, 0], rtol=1e-6)


class TestFiles:
    @pytest.mark.parametrize("name", FILES)
    def test_every_kind_says_the_same(self, invoke, folder, first, name):
        done = invoke("fit", folder / name, "--y", "y", "--floor", 50, "--json")
        told = json.loads(done.stdout)
        assert done.stderr == ""
        assert list(told["coefficients"]) == list(first["coefficients"])
        np.testing.assert_allclose(
            list(told["coefficients"].values()), list(first["coefficients"].values()), rtol=1e-9
        )
        assert any("decimal comma" in note for note in told["assumed"]) == (name == "commas.csv")

    def test_by_hand(self, folder, table, first):
        X = np.column_stack(
            [
                table[["age", "bmi", "<i>x</i>"]],
                pd.get_dummies(table["region"], dtype=float),
            ]
        )

        def cost(rows):
            return np.r_[1.0 / rows[:, :3].var(axis=0), np.full(3, np.inf)]

        model, _ = by_hand(X, table["y"].to_numpy(), Floor(50), cost)
        np.testing.assert_allclose(list(first["coefficients"].values()), model.coef_, rtol=1e-7)
        assert list(first["coefficients"])[3:] == [
            "region_<b>south</b>",
            "region_east",
            "region_north",
        ]

    def test_options_of_people(self, invoke, folder, table):
        numbers = table[["age", "bmi", "<i>x</i>"]].to_numpy()
        done = invoke(
            *("fit", folder / "table.csv", "--y", "y", "--floor", 50, "--drop", "region"),
            *("--cost", "age=2,bmi=0.5", "--immutable", "<i>x</i>", "--units", "raw"),
            *("--gamma", 3, "--honest", 0.25, "--test-size", 0.5, "--json"),
        )
        _, found = by_hand(
            numbers,
            table["y"].to_numpy(),
            Floor(50),
            lambda _: np.array([2.0, 0.5, np.inf]),
            size=0.5,
            gamma=3.0,
            honest_share=0.25,
        )
        assert_same(done, found)

    def test_ranges(self, invoke, folder, table):
        numbers = table[["age", "bmi", "<i>x</i>"]].to_numpy()
        done = invoke(
            *("fit", folder / "table.csv", "--y", "y", "--floor", 50, "--drop", "region"),
            *("--pull", "0.2:0.6", "--honest", "0.3:0.7", "--json"),
        )
        _, found = by_hand(
            numbers,
            table["y"].to_numpy(),
            Floor(50),
            pull=Between(0.2, 0.6),
            honest_share=Between(0.3, 0.7),
        )
        assert_same(done, found)

    def test_actions(self, invoke, folder, table, tmp_path):
        told = {
            "diet": {"effects": {"bmi": -1, "age": 0.5}},
            "luck": {"effects": {"bmi": 2}, "cost": 3},
        }
        (tmp_path / "a.json").write_text(json.dumps(told))
        done = invoke(
            *("fit", folder / "table.csv", "--y", "y", "--floor", 50, "--drop", "region"),
            *("--actions", tmp_path / "a.json", "--json", "--model", tmp_path / "m.spgls"),
            *("--report", tmp_path / "r.html"),
        )
        names = ["age", "bmi", "<i>x</i>"]
        X, y = table[names], table["y"].to_numpy()
        train, test = train_test_split(np.arange(len(y)), test_size=0.25, random_state=0)
        people = Actions({"diet": {"bmi": -1, "age": 0.5}, "luck": {"bmi": 2}}, cost={"luck": 3.0})
        model = StackelbergRegressor(goal=Floor(50), feature_cost=people)
        model.fit(X.iloc[train], y[train])
        moved = model.predict_attacked(X.iloc[test], y=y[test])
        ours = errors(done, "spgls")
        assert ours["attacked_mse"] == pytest.approx(np.mean((moved - y[test]) ** 2), rel=1e-9)
        again = load_model(tmp_path / "m.spgls").best_response(X, y=y)
        np.testing.assert_allclose(again, model.best_response(X, y=y), rtol=1e-9)
        assert "<i>x</i>" not in (tmp_path / "r.html").read_text()

    def test_switches(self, invoke, folder, table):
        done = invoke(
            *("fit", folder / "table.csv", "--y", "y", "--floor", 50, "--cost", "region=4"),
            *("--json", "--test-size", 0),
        )
        numbers = table[["age", "bmi", "<i>x</i>"]]
        hot = pd.get_dummies(table[["region"]], dtype=float)
        cost = dict(1 / numbers.var(ddof=0)) | {"region": Switches(4.0)}
        model = StackelbergRegressor(goal=Floor(50), feature_cost=cost)
        model.fit(pd.concat([numbers, hot], axis=1), table["y"])
        told = json.loads(done.stdout)
        np.testing.assert_allclose(list(told["coefficients"].values()), model.coef_, rtol=1e-6)
        assert any("switch between the kinds of 'region'" in note for note in told["assumed"])

    def test_all_rows(self, invoke, folder):
        done = invoke("fit", folder / "table.csv", "--y", "y", "--floor", 50, "--test-size", 0)
        assert "errors are on the same rows, hence too good" in done.stdout
        assert "least squares" in done.stdout
        assert done.stderr == ""

    def test_goals_in_a_column(self, invoke, folder, tmp_path, table):
        frame = table.assign(z=np.maximum(table["y"], 50)).drop(columns="grade")
        frame.to_csv(tmp_path / "goals.csv", index=False)
        by_column = invoke("fit", tmp_path / "goals.csv", "--y", "y", "--z", "z", "--json")
        by_rule = invoke("fit", folder / "table.csv", "--y", "y", "--floor", 50, "--json")
        ours = errors(by_column, "spgls"), errors(by_rule, "spgls")
        for name in ("honest_mse", "attacked_mse", "pull"):
            assert ours[0][name] == pytest.approx(ours[1][name], rel=1e-9)

    def test_two_classes(self, invoke, tmp_path, table):
        frame = table.drop(columns="y")
        frame.to_csv(tmp_path / "grades.csv", index=False)
        done = invoke(
            *("classify", tmp_path / "grades.csv", "--y", "grade", "--wants", "good"),
            *("--drop", "region", "--model", tmp_path / "m.spgls", "--json"),
        )
        X, y = table[["age", "bmi", "<i>x</i>"]].to_numpy(), table["grade"].to_numpy(str)
        train, test = train_test_split(np.arange(len(y)), test_size=0.25, random_state=0)
        model = StackelbergClassifier(
            goal=Wants("good"), feature_cost=1 / X[train].var(axis=0)
        ).fit(X[train], y[train])
        line = errors(done, "spgls")
        assert line["honest_accuracy"] == pytest.approx(model.score(X[test], y[test]))
        moved = model.predict_attacked(X[test]) == y[test]
        assert line["attacked_accuracy"] == pytest.approx(moved.mean())
        said = invoke("predict", tmp_path / "m.spgls", tmp_path / "grades.csv").stdout
        assert said.split()[0] == "prediction"
        assert said.split()[1:] == model.predict(X).tolist()
        for goal in (["--opposite"], ["--wants", "bad"]):
            told = invoke("classify", tmp_path / "grades.csv", "--y", "grade", *goal)
            assert "logistic regression" in told.stdout

    def test_classes_that_are_numbers(self, invoke, tmp_path, table):
        frame = table.assign(grade=(table["grade"] == "good").astype(int)).drop(columns="y")
        frame.to_csv(tmp_path / "grades.csv", index=False)
        invoke(
            *("classify", tmp_path / "grades.csv", "--y", "grade", "--wants", "1"),
            *("--model", tmp_path / "m.spgls"),
        )
        said = invoke("predict", tmp_path / "m.spgls", tmp_path / "grades.csv").stdout.split()
        assert set(said[1:]) == {"0", "1"}
        sent = invoke("attack", tmp_path / "m.spgls", tmp_path / "grades.csv", "--y", "grade")
        assert "prediction after" in sent.stdout


class TestKeptModels:
    def test_predict(self, invoke, folder, model, table, tmp_path):
        loaded = load_model(model)
        done = invoke("predict", model, folder / "table.xlsx")
        said = np.array(done.stdout.split()[1:], dtype=float)
        np.testing.assert_array_equal(said, loaded.predict(table))
        invoke("predict", model, folder / "table.arrow", "--out", tmp_path / "p.parquet")
        np.testing.assert_array_equal(pd.read_parquet(tmp_path / "p.parquet")["prediction"], said)

    def test_attack(self, invoke, folder, model, table, tmp_path):
        loaded = load_model(model)
        invoke("attack", model, folder / "table.csv", "--y", "y", "--out", tmp_path / "sent.csv")
        sent = pd.read_csv(tmp_path / "sent.csv")
        assert list(sent["region"]) == list(table["region"])
        seen = loaded[:-1].transform(table)
        attacked = loaded[-1].predict_attacked(seen, y=table["y"])
        np.testing.assert_allclose(sent["prediction before"], loaded.predict(table), rtol=1e-12)
        np.testing.assert_allclose(sent["prediction after"], attacked, rtol=1e-9)
        np.testing.assert_allclose(loaded.predict(sent), attacked, rtol=1e-9)

    def test_formulas_in_cells(self, invoke, tmp_path, table):
        frame = table.drop(columns="grade").assign(
            region=table["region"].replace(
                {"east": "=cmd|'/c calc'!A1", "north": "+1", "<b>south</b>": "@x"}
            )
        )
        frame = frame.rename(columns={"<i>x</i>": "=1+1"})
        frame.to_csv(tmp_path / "t.csv", index=False)
        invoke("fit", tmp_path / "t.csv", "--y", "y", "--floor", 50, "--model", tmp_path / "m")
        sent = invoke("attack", tmp_path / "m", tmp_path / "t.csv", "--y", "y").stdout
        for row in csv.reader(io.StringIO(sent)):
            for cell in row:
                assert not cell.startswith(("=", "+", "@"))

    def test_strength_from_before_and_after(self, invoke, folder, model, table, tmp_path):
        gamma = load_model(model)[-1].gamma_
        for told in (None, 3 * gamma):
            words = [] if told is None else ["--gamma", told]
            out = tmp_path / "after.parquet"
            invoke("attack", model, folder / "table.csv", "--y", "y", "--out", out, *words)
            done = invoke("estimate-gamma", model, folder / "table.csv", out, "--y", "y", "--json")
            found = json.loads(done.stdout)
            assert found["gamma"] == pytest.approx(told or gamma, rel=1e-6)
        words = invoke("estimate-gamma", model, folder / "table.csv", out, "--y", "y").stdout
        assert words.startswith("GammaEstimate(")

    def test_export(self, invoke, folder, model, table, tmp_path):
        runtime = pytest.importorskip("onnxruntime")
        pytest.importorskip("skl2onnx")
        invoke("export", model, "--onnx", tmp_path / "m.onnx")
        session = runtime.InferenceSession(str(tmp_path / "m.onnx"))
        # Inputs are in the order of the columns; signs that ONNX does not allow are replaced.
        inputs = json.loads(session.get_modelmeta().custom_metadata_map["inputs"])
        feeds = {
            put: table[[name]].to_numpy(object if name == "region" else float)
            for put, name in zip(inputs, ("age", "region", "bmi", "<i>x</i>"), strict=True)
        }
        (said,) = session.run(None, feeds)
        np.testing.assert_allclose(said, load_model(model).predict(table), rtol=1e-12)

    def test_holes_are_filled_as_in_the_fit(self, invoke, folder, table, tmp_path):
        frame = table.drop(columns="grade")
        frame.loc[3, "bmi"] = np.nan
        frame.loc[5, "region"] = None
        frame.to_csv(tmp_path / "holes.csv", index=False)
        done = invoke(
            *("fit", tmp_path / "holes.csv", "--y", "y", "--floor", 50, "--impute"),
            *("--test-size", 0, "--model", tmp_path / "m.spgls"),
        )
        assert "Missing numbers are the median" in done.stdout
        said = invoke("predict", tmp_path / "m.spgls", tmp_path / "holes.csv").stdout.split()[1:]
        filled = frame.copy()
        filled.loc[3, "bmi"] = frame["bmi"].median()
        filled.loc[5, "region"] = frame["region"].mode()[0]
        filled.to_csv(tmp_path / "filled.csv", index=False)
        again = invoke("predict", tmp_path / "m.spgls", tmp_path / "filled.csv").stdout.split()[1:]
        np.testing.assert_allclose(np.array(said, float), np.array(again, float), rtol=1e-12)

    def test_a_model_without_names(self, invoke, tmp_path, table):
        from spgls import save_model

        X = table[["age", "bmi"]].to_numpy()
        model = StackelbergRegressor(goal=Floor(50)).fit(X, table["y"])
        save_model(model, tmp_path / "m.spgls")
        table[["age", "bmi"]].to_csv(tmp_path / "t.csv", index=False)
        said = invoke("predict", tmp_path / "m.spgls", tmp_path / "t.csv").stdout.split()[1:]
        np.testing.assert_array_equal(np.array(said, float), model.predict(X))


class TestStudies:
    def test_levers(self, invoke, folder, table):
        done = invoke("levers", folder / "table.csv", "--y", "y", "--floor", 50, "--json")
        told = json.loads(done.stdout)["levers"]
        assert set(told["feature"]) == {"age", "region", "bmi", "<i>x</i>"}
        words = invoke("levers", folder / "table.csv", "--y", "y", "--floor", 50).stdout
        assert "Mean squared error after manipulation" in words

    def test_path(self, invoke, folder):
        words = ("path", folder / "table.csv", "--y", "y", "--floor", 50, "--pulls", "0.2,0.5")
        told = json.loads(invoke(*words, "--json").stdout)["path"]
        assert [line["pull"] for line in told] == [0.2, 0.5]
        fitted = json.loads(
            invoke("fit", folder / "table.csv", "--y", "y", "--floor", 50, "--json").stdout
        )
        (gamma,) = fitted["gamma"]
        assert told[1]["gamma"] == pytest.approx(gamma, rel=1e-6)
        ours = fitted["errors"][-1]
        assert told[1]["attacked_r2"] == pytest.approx(ours["attacked_r2"], rel=1e-6)
        assert "least squares" in invoke(*words).stdout

    def test_check(self, invoke, folder, tmp_path, table):
        done = invoke("check", folder / "table.csv", "--y", "y")
        assert "200 rows, 5 columns." in done.stdout
        assert "Nothing is wrong with it." in done.stdout
        frame = table.assign(number=range(200), one=1.0, name=[f"p{i}" for i in range(200)])
        frame.loc[:3, "bmi"] = np.nan
        frame.to_csv(tmp_path / "t.csv", index=False)
        done = invoke("check", tmp_path / "t.csv", "--json", code=1)
        wrong = " ".join(json.loads(done.stdout)["wrong"])
        for part in ("'bmi' is missing in 4", "'number' counts", "'one' holds one", "'name' holds"):
            assert part in wrong

    def test_help_and_completion(self, invoke):
        shown = invoke("--help").stdout
        for name in ("check", "fit", "classify", "predict", "attack", "levers", "path"):
            assert name in shown
        assert "--install-completion" in shown
        assert "estimate-gamma" in shown
        assert "What people want" in invoke("fit", "--help").stdout

    def test_output_to_a_reader_that_leaves(self, folder):
        # `spgls predict ... | head -1` ends without a word.
        line = f"{sys.executable} -m spgls check {folder}/table.csv | head -c 1"
        done = subprocess.run(line, shell=True, capture_output=True, text=True, check=False)
        assert "Traceback" not in done.stderr


READ = """
import resource, sys, time
from pathlib import Path
import pyarrow, pyarrow.csv as parser
from spgls.cli.delimited import Wanted
from spgls.cli.read_table import read_table
path = Path(sys.argv[1])
read_table(path.with_name("small.csv"), Wanted(aside=("y",)))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.process_time()
table = read_table(path, Wanted(aside=("y",)))
ours = time.process_time() - start
peak = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
start = time.process_time()
rows = sum(one.num_rows for one in parser.open_csv(path))
theirs = time.process_time() - start
assert rows == table.rows
print(ours / theirs, peak - table.numbers.nbytes - 8 * rows, table.numbers.nbytes)
"""


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="memory is counted in other units")
def test_a_large_table_is_read_as_fast_as_it_is_parsed(tmp_path):
    rows = np.random.default_rng(0).normal(size=(5000, 26))
    text = io.StringIO()
    np.savetxt(text, rows, fmt="%.6f", delimiter=",")
    names = ",".join([*(f"x{j}" for j in range(25)), "y"]) + "\n"
    (tmp_path / "small.csv").write_text(names + text.getvalue())
    with (tmp_path / "large.csv").open("w") as file:
        file.write(names)
        for _ in range(200):
            file.write(text.getvalue())
    for _ in range(3):
        line = [sys.executable, "-c", READ, str(tmp_path / "large.csv")]
        done = subprocess.run(line, capture_output=True, text=True, check=True)
        ratio, beyond, numbers = map(float, done.stdout.split())
        assert numbers == 25e6 * 8
        assert beyond < 500e6
        if ratio < 1.5:
            return
    pytest.fail(f"reading takes {ratio} times as long as parsing")
