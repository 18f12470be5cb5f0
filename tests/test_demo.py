"""The demonstration, the command line that shows it, and the README that quotes it."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from math import inf
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate

from spgls import (
    Floor,
    Population,
    Shift,
    StackelbergRegressor,
    Status,
    __version__,
    make_attacked_scorer,
)
from spgls.__main__ import main
from spgls.cli.demo import DEFAULT, FROM_GOAL, LEAST_SQUARES, PAPER, RIDGE, DemoResult, run_demo

ROOT = Path(__file__).parent.parent
MODELS = [LEAST_SQUARES, RIDGE, DEFAULT, PAPER, FROM_GOAL]
PNG = b"\x89PNG"


@pytest.fixture(scope="module")
def result() -> DemoResult:
    return run_demo()


@pytest.fixture(scope="module")
def rows(result):
    return {row.model: row for row in result.rows}


@pytest.fixture(scope="module")
def text() -> str:
    return (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def invoke():
    pytest.importorskip("rich")
    testing = pytest.importorskip("typer.testing")
    app = importlib.import_module("spgls.cli.app").app

    def run(*words):
        # Wide, so that no message is broken.
        return testing.CliRunner().invoke(app, [*map(str, words)], env={"COLUMNS": "300"})

    return run


@pytest.fixture
def quick(monkeypatch, result):
    """Command line that has the figures at hand."""
    monkeypatch.setattr("spgls.cli.demo.run_demo", lambda notify=None: result)


class TestFigures:
    @pytest.mark.parametrize(
        ("model", "honest", "attacked"),
        [(LEAST_SQUARES, 0.48, 0.00), (RIDGE, 0.48, 0.21), (DEFAULT, 0.46, 0.44)],
    )
    def test_r2(self, rows, model, honest, attacked):
        assert rows[model].honest == pytest.approx(honest, abs=0.02)
        assert rows[model].attacked == pytest.approx(attacked, abs=0.02)

    def test_the_papers_game(self, rows):
        assert rows[PAPER].honest == pytest.approx(-10.5, rel=0.1)
        assert rows[PAPER].attacked == pytest.approx(0.54, rel=0.1)

    def test_the_goal_alone(self, rows):
        _, y = load_diabetes(return_X_y=True)
        assert rows[FROM_GOAL].honest is None
        told = np.corrcoef(y, Floor(250)(y))[0, 1] ** 2
        assert rows[FROM_GOAL].attacked == pytest.approx(told, abs=0.03)
        assert rows[DEFAULT].attacked > rows[FROM_GOAL].attacked > rows[RIDGE].attacked

    def test_only_ours_is_certified(self, rows):
        for model in (DEFAULT, PAPER):
            assert 0.0 <= rows[model].gap < 1e-9
            assert rows[model].status == Status.OPTIMAL.value
        for model in (LEAST_SQUARES, RIDGE, FROM_GOAL):
            assert rows[model].gap is None
            assert rows[model].status == ""

    def test_times(self, result):
        assert all(0.0 < row.seconds < inf for row in result.rows)

    def test_order_and_progress(self, result):
        told = []
        again = run_demo(told.append)
        assert told == MODELS == [row.model for row in result.rows]
        assert [row.attacked for row in again.rows] == [row.attacked for row in result.rows]

    @pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
    def test_a_line_is_the_score_of_a_mixed_population(self, result, rows, share):
        X, y = load_diabetes(return_X_y=True)
        folds = KFold(10, shuffle=True, random_state=0)
        world = make_attacked_scorer(
            Population.mixed(result.gamma, honest=1 - share), goal=Floor(250)
        )
        models = {LEAST_SQUARES: LinearRegression(), DEFAULT: StackelbergRegressor(goal=Floor(250))}
        for name, model in models.items():
            score = cross_val_score(model, X, y, cv=folds, scoring=world).mean()
            assert rows[name].error(share) == pytest.approx(1 - score, rel=1e-10)

    def test_the_goal_alone_is_granted_every_goal(self, rows):
        row = rows[FROM_GOAL]
        np.testing.assert_allclose(row.error(np.linspace(0, 1, 5)), 1 - row.attacked)


class TestPicture:
    @pytest.mark.parametrize(
        ("name", "start"), [("a.png", PNG), ("a.PNG", PNG), ("a.svg", b"<?xml"), ("a.pdf", b"%PDF")]
    )
    def test_formats(self, result, tmp_path, name, start):
        pytest.importorskip("matplotlib")
        result.save(tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(start)
        assert (tmp_path / name).stat().st_size < 100_000

    def test_one_line_a_model(self, result, rows):
        figure = pytest.importorskip("matplotlib.figure")
        ax = result.plot(figure.Figure().add_subplot())
        lines = {line.get_label(): line for line in ax.get_lines()}
        assert list(lines) == MODELS
        for model, line in lines.items():
            assert line.get_ydata()[-1] == pytest.approx(1 - rows[model].attacked)
        words = " ".join(text.get_text() for text in ax.texts)
        assert all(model in words for model in MODELS)
        assert "reaches 11.5 where all are honest" in words
        assert ax.get_xlabel()
        assert ax.get_ylabel()

    def test_without_matplotlib(self, result, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
        with pytest.raises(ImportError, match=r"picture needs matplotlib.*'spgls\[plot\]'"):
            result.save(tmp_path / "a.png")
        assert not list(tmp_path.iterdir())

    def test_half_a_picture_is_taken_away(self, result, tmp_path, monkeypatch):
        pytest.importorskip("matplotlib")

        def full(_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("os.fsync", full)
        with pytest.raises(OSError, match="No space left"):
            result.save(tmp_path / "a.png")
        assert not list(tmp_path.iterdir())


class TestCommand:
    def test_table_and_picture(self, invoke, tmp_path):
        pytest.importorskip("matplotlib")
        path = tmp_path / "[red] demo.png"
        done = invoke("demo", "--picture", path)
        assert done.exit_code == 0, done.output
        assert done.stderr == ""
        cells = {
            line.split("│")[1].strip(): [cell.strip() for cell in line.split("│")[2:-1]]
            for line in done.stdout.splitlines()
            if line.startswith("│")
        }
        assert list(cells) == MODELS
        assert cells[LEAST_SQUARES][:3] == ["0.48", "0.00", "-"]
        assert cells[DEFAULT][:2] == ["0.46", "0.44"]
        assert cells[DEFAULT][4] == "optimal"
        assert cells[FROM_GOAL][0] == "-"
        assert f"Picture: {path}" in done.stdout
        assert [file.name for file in tmp_path.iterdir()] == [path.name]
        assert path.read_bytes().startswith(PNG)

    def test_default_place(self, invoke, quick, tmp_path, monkeypatch):
        pytest.importorskip("matplotlib")
        monkeypatch.chdir(tmp_path)
        assert invoke("demo").exit_code == 0
        assert (tmp_path / "spgls-demo.png").is_file()

    @pytest.mark.parametrize(
        ("name", "words"),
        [
            ("none/demo.png", r"the folder .*none does not exist; create it or name another"),
            ("file.txt/demo.png", r"the folder .*file\.txt does not exist"),
            (".", r"is a folder; name a file in it"),
            ("demo.gif", r"demo\.gif must end in one of \.png, \.svg, \.pdf"),
            ("demo", r"demo must end in one of"),
        ],
    )
    def test_bad_place(self, invoke, tmp_path, monkeypatch, name, words):
        def refuse(notify=None):
            raise AssertionError("a bad path must be refused before anything is computed")

        monkeypatch.setattr("spgls.cli.demo.run_demo", refuse)
        (tmp_path / "file.txt").touch()
        done = invoke("demo", "--picture", tmp_path / name)
        assert done.exit_code == 2
        assert "--picture" in done.stderr
        assert re.search(words, done.stderr)
        assert [file.name for file in tmp_path.iterdir()] == ["file.txt"]

    def test_a_place_one_may_not_write_to(self, invoke, tmp_path, monkeypatch):
        monkeypatch.setattr("os.access", lambda path, mode: False)
        done = invoke("demo", "--picture", tmp_path / "a.png")
        assert done.exit_code == 2
        assert "you may not write to" in done.stderr

    def test_a_full_disk(self, invoke, quick, tmp_path):
        pytest.importorskip("matplotlib")
        if not Path("/dev/full").exists():
            pytest.skip("no /dev/full here")
        (tmp_path / "a.png").symlink_to("/dev/full")
        done = invoke("demo", "--picture", tmp_path / "a.png")
        assert done.exit_code == 1
        assert "The picture could not be written to" in done.stderr
        assert "No space left on device." in done.stderr
        assert "Traceback" not in done.output

    def test_without_matplotlib_the_table_is_there(self, invoke, quick, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
        done = invoke("demo", "--picture", tmp_path / "a.png")
        assert done.exit_code == 1
        assert DEFAULT in done.stdout
        assert "pip install 'spgls[plot]'" in done.stderr
        assert not list(tmp_path.iterdir())

    @pytest.mark.parametrize("words", [[], ["--help"], ["wine", "--scale", "quick", "--nix"]])
    def test_where_the_experiments_are(self, invoke, words):
        done = invoke("reproduce", *words)
        assert done.exit_code == 2
        assert done.stderr.count("\n") == 1
        assert "python -m reproduction" in done.stderr
        assert not done.stdout

    def test_version(self, invoke):
        assert invoke("--version").stdout == f"spgls {__version__}\n"

    @pytest.mark.parametrize("missing", ["typer", "rich"])
    def test_without_the_command_line(self, missing, monkeypatch):
        # The package that is imported below is not the one that other tests know.
        monkeypatch.setattr("spgls.cli", importlib.import_module("spgls.cli"))
        for name in list(sys.modules):
            if name.startswith("spgls.cli") or name.partition(".")[0] == missing:
                monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, missing, None)
        with pytest.raises(
            SystemExit, match=rf"needs {missing}\..*pip install 'spgls\[cli,plot\]'"
        ):
            main()

    def test_other_import_errors_are_not_hidden(self, monkeypatch):
        pytest.importorskip("typer")
        monkeypatch.delitem(sys.modules, "spgls.cli.app", raising=False)
        monkeypatch.setitem(sys.modules, "spgls.cli.app", None)
        with pytest.raises(ModuleNotFoundError, match=r"spgls\.cli"):
            main()

    def test_as_a_module(self):
        pytest.importorskip("typer")
        done = subprocess.run(
            [sys.executable, "-m", "spgls", "demo", "--help"],
            capture_output=True,
            text=True,
            env=os.environ | {"NO_COLOR": "1", "TERM": "dumb", "PYTHONIOENCODING": "utf-8"},
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "spgls demo" in done.stdout
        assert "--picture" in done.stdout


class TestReadme:
    def test_table(self, text, rows):
        lines = [re.sub(r"\*\*", "", line) for line in text.splitlines() if line.startswith("| ")]
        table = {
            cells[0]: cells[1:]
            for cells in ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
        }
        for model, row in rows.items():
            honest, attacked, gap, _, status = table[model]
            if row.honest is None:
                assert honest == "-"
            else:
                assert float(honest) == pytest.approx(row.honest, abs=0.006)
            assert float(attacked) == pytest.approx(row.attacked, abs=0.006)
            assert (gap == "-") == (row.gap is None)
            assert status == (row.status or "-")

    def test_picture(self, text):
        (name,) = re.findall(r"!\[.*?\]\((.*?)\)", text)
        assert (ROOT / name).read_bytes().startswith(PNG)
        assert (ROOT / name).stat().st_size < 100_000

    def test_links(self, text):
        for name in re.findall(r"\]\((?!https?:)(.*?)\)", text):
            assert (ROOT / name).exists(), name

    def test_a_ridge_tuned_for_both_kinds_of_rows(self, result):
        X, y = load_diabetes(return_X_y=True)
        both = make_attacked_scorer(Population.mixed(result.gamma), goal=Floor(250))
        grid = {"alpha": np.geomspace(1e-3, 10.0, 30)}
        scores = cross_validate(
            GridSearchCV(Ridge(), grid, scoring=both),
            X,
            y,
            cv=KFold(10, shuffle=True, random_state=0),
            scoring={
                "honest": "r2",
                "attacked": make_attacked_scorer(result.gamma, goal=Floor(250)),
            },
        )
        assert scores["test_honest"].mean() == pytest.approx(0.48, abs=0.01)
        assert scores["test_attacked"].mean() == pytest.approx(0.39, abs=0.01)

    def test_a_shift_is_harmless(self, result, rows):
        X, y = load_diabetes(return_X_y=True)
        folds = KFold(10, shuffle=True, random_state=0)

        def attacked(amount):
            world = make_attacked_scorer(result.gamma, goal=Shift(amount))
            return cross_val_score(LinearRegression(), X, y, cv=folds, scoring=world).mean()

        assert attacked(50) == pytest.approx(0.76, abs=0.01)
        assert attacked(np.std(y)) > rows[LEAST_SQUARES].honest > attacked(100)
        # Without the constant, pulling towards the truth only helps.
        assert attacked(0) > attacked(50)
