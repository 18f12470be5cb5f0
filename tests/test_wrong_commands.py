# ruff: noqa: E501 (a line for each of them)
"""Wrong command lines and files: one sentence, code 2, no traceback, nothing half-written."""

from __future__ import annotations

import gzip
import importlib
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

for package in ("typer", "rich", "pandas", "pyarrow", "openpyxl", "skops"):
    pytest.importorskip(package)

GOOD = "age,region,bmi,cost\n" + "".join(
    f"{20 + i % 50},{'north' if i % 3 else 'south'},{20 + i % 17},{100 + 7 * (i % 50) + i % 5}\n"
    for i in range(60)
)
NUMBERS = "a,b,y\n" + "".join(f"{i % 7},{i % 5},{i % 7 + i % 3}\n" for i in range(40))


@pytest.fixture(scope="module")
def invoke():
    testing = importlib.import_module("typer.testing")
    app = importlib.import_module("spgls.cli.app").app

    def run(*words):
        return testing.CliRunner().invoke(app, [*map(str, words)], env={"COLUMNS": "300"})

    return run


@pytest.fixture(scope="module")
def kept(tmp_path_factory, invoke):
    """Models that the other commands use."""
    folder = tmp_path_factory.mktemp("kept")
    (folder / "good.csv").write_text(GOOD)
    (folder / "numbers.csv").write_text(NUMBERS)
    (folder / "goals.csv").write_text(NUMBERS.replace("b,y", "z,y"))
    for data, words in (
        ("good", ["--y", "cost", "--floor", "300"]),
        ("numbers", ["--y", "y", "--floor", "7"]),
        ("goals", ["--y", "y", "--z", "z"]),
    ):
        model = folder / f"{data}.spgls"
        done = invoke("fit", folder / f"{data}.csv", *words, "--model", model)
        assert done.exit_code == 0, done.output
    return folder


def workbook(path, rows):
    openpyxl = importlib.import_module("openpyxl")
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)


def parquet(path, **columns):
    arrow = importlib.import_module("pyarrow")
    importlib.import_module("pyarrow.parquet").write_table(arrow.table(columns), path)


#: Files by name, as bytes or as what writes them.
FILES = {
    "good.csv": GOOD.encode(),
    "numbers.csv": NUMBERS.encode(),
    "empty.csv": b"",
    "blank.csv": b"\n\n  \n",
    "names only.csv": b"a,b,y\n",
    "one row.csv": b"a,b,y\n1,2,3\n",
    "three rows.csv": b"a,b,y\n1,2,3\n2,3,4\n3,4,6\n",
    "twice.csv": b"a,b,a,y\n" + b"1,2,3,4\n" * 9,
    "one column.csv": b"y\n" + b"1\n" * 9,
    "spaces.csv": b"a b y\n" + b"1 2 3\n" * 9,
    "uneven.csv": b"a,b,y\n" + b"1,2,3\n" * 9 + b"1,2\n",
    "text among numbers.csv": NUMBERS.encode() + b"3,many,4\n",
    "late text.csv": NUMBERS.encode() * 1 + b"1,2,3\n" * 200_000 + b"3,many,4\n",
    "missing.csv": GOOD.encode() + b",north,,500\n",
    "missing label.csv": GOOD.encode() + b"30,north,22,\n",
    "empty column.csv": b"a,b,y\n" + b"".join(b"%d,,%d\n" % (i, i % 4) for i in range(20)),
    "constant.csv": b"a,b,y\n" + b"".join(b"%d,%d,5\n" % (i, i % 3) for i in range(20)),
    "infinite.csv": NUMBERS.encode() + b"inf,2,3\n",
    "people.csv": b"name,a,y\n" + b"".join(b"p%d,%d,%d\n" % (i, i, i % 7) for i in range(300)),
    "long cell.csv": b"a,b,y\n1,2,3\n" + b"x" * 10_000_000 + b",2,3\n",
    "long first.csv": b"x" * 10_000_000,
    "long quoted.csv": b'a,b,y\n1,"2,3\n' + b"1,2,3\n" * 2_000_000,
    "latin.csv": "größe,b,y\n".encode("latin-1") + b"1,2,3\n" * 9,
    "late latin.csv": GOOD.encode() + b"x,y,z,w\n"[:0] + "30,köln,22,200\n".encode("latin-1"),
    "zeros.csv": b"a,b,y\n1,2\0,3\n",
    "picture.png": b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 20,
    "old.xls": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600),
    "cut.csv.gz": gzip.compress(GOOD.encode() * 50)[:-40],
    "not a book.xlsx": b"PK\x03\x04" + bytes(100),
    "cut.parquet": b"PAR1" + bytes(50),
    "script.csv": NUMBERS.replace("b,y", "<script>,y").encode() + b"1,much,3\n",
    "brackets.csv": NUMBERS.replace("b,y", "[red]b[/red],y").encode() + b"1,much,3\n",
    "bell.csv": NUMBERS.replace("b,y", "\x1b[31mb,y").encode() + b"1,much,3\n",
    "dates.parquet": lambda path: parquet(
        path, a=np.arange(9), d=np.arange(9).astype("datetime64[D]"), y=np.arange(9.0) % 4
    ),
    "text.xlsx": lambda path: workbook(
        path, [["a", "b", "y"], *[[i, i % 3, i % 5] for i in range(9)], [1, "two", 3]]
    ),
    "empty.xlsx": lambda path: workbook(path, []),
    "classes.csv": b"a,b,y\n" + b"".join(b"%d,%d,c%d\n" % (i, i % 3, i % 3) for i in range(30)),
    "two.csv": b"a,b,y\n"
    + b"".join(b"%d,%d,%s\n" % (i, i % 3, b"yes" if i > 14 else b"no") for i in range(30)),
    "other columns.csv": b"a,c,y\n" + b"1,2,3\n" * 9,
    "new kind.csv": GOOD.encode() + b"30,<west>,22,200\n",
    "texts.csv": NUMBERS.replace("0,", "zero,").encode(),
    "short.csv": "".join(NUMBERS.splitlines(True)[:20]).encode(),
    "a.json": b'{"walk": {"effects": {"c": 1}}}',
    "list.json": b"[1, 2]",
    "damaged.spgls": b"spgls model\n{}\nnothing",
}
FLOOR = ["--y", "y", "--floor", "7"]
#: What is passed, with files in braces, and what is said.
WRONG: dict[str, tuple[list[str], str]] = {
    "no command like it": (["fitt"], r"No such command 'fitt'"),
    "no arguments": (["fit"], r"Missing (argument|option)"),
    "an unknown option": (["fit", "{numbers.csv}", *FLOOR, "--flor", "1"], r"No such option: --flor"),
    "no file": (["fit", "{none.csv}", *FLOOR], r"none\.csv: No such file"),
    "a folder": (["fit", "{.}", *FLOOR], r"is a folder; name a file"),
    "no label": (["fit", "{numbers.csv}", "--floor", "7"], r"Missing option '--y'"),
    "no goal": (["fit", "{numbers.csv}", "--y", "y"], r"exactly one of --z, --shift.*got none"),
    "two goals": (["fit", "{numbers.csv}", *FLOOR, "--cap", "1"], r"got --floor and --cap"),
    "a goal in words": (["fit", "{numbers.csv}", "--y", "y", "--floor", "high"], r"Invalid value for '--floor'"),
    "a goal without end": (["fit", "{numbers.csv}", "--y", "y", "--floor", "inf"], r"level must be"),
    "a missing column": (["fit", "{numbers.csv}", "--y", "Y", "--floor", "7"], r"--y names 'Y', which no column"),
    "a column misspelt": (["fit", "{good.csv}", "--y", "costs", "--floor", "7"], r"Did you mean 'cost'\?"),
    "goals of a missing column": (["fit", "{numbers.csv}", "--y", "y", "--z", "goal"], r"--z names 'goal'"),
    "goals that are the labels": (["fit", "{numbers.csv}", "--y", "y", "--z", "y"], r"goals are another column"),
    "a label of text": (["fit", "{good.csv}", "--y", "region", "--floor", "7"], r"'region'.*holds text, such as '"),
    "an empty file": (["fit", "{empty.csv}", *FLOOR], r"empty\.csv is empty"),
    "a blank file": (["fit", "{blank.csv}", *FLOOR], r"is empty"),
    "names and no rows": (["fit", "{names only.csv}", *FLOOR], r"holds no rows of data"),
    "one row": (["fit", "{one row.csv}", *FLOOR], r"has 1 row of data; 4 are needed"),
    "three rows": (["fit", "{three rows.csv}", *FLOOR], r"has 3 rows of data"),
    "duplicate names": (["fit", "{twice.csv}", *FLOOR], r"two columns called 'a', number 1 and number 3"),
    "one column": (["fit", "{one column.csv}", *FLOOR], r"has one column only"),
    "spaces between": (["fit", "{spaces.csv}", *FLOOR], r"has one column only"),
    "a wrong separator": (["fit", "{numbers.csv}", *FLOOR, "--separator", ";"], r"one column only, where ';'"),
    "a long separator": (["fit", "{numbers.csv}", *FLOOR, "--separator", ";;"], r"--separator must be one character"),
    "uneven lines": (["fit", "{uneven.csv}", *FLOOR], r"has 2 cells, and the first has 3"),
    "text among numbers": (["fit", "{text among numbers.csv}", *FLOOR], r"'b' .*text among numbers: 'many' in row 41"),
    "text far below": (["fit", "{late text.csv}", *FLOOR], r"'many' in row 200041 of the data"),
    "text in a workbook": (["fit", "{text.xlsx}", *FLOOR], r"text among numbers: 'two' in row 10"),
    "missing cells": (["fit", "{missing.csv}", "--y", "cost", "--floor", "300"], r"'age' 1, 'bmi' 1\..*--impute"),
    "missing labels": (["fit", "{missing label.csv}", "--y", "cost", "--floor", "300"], r"'cost'.*is missing in 1 of 61 rows"),
    "an empty column": (["fit", "{empty column.csv}", *FLOOR, "--impute"], r"'b'.*is empty; --drop it"),
    "constant labels": (["fit", "{constant.csv}", *FLOOR], r"holds one value only, 5"),
    "infinite cells": (["fit", "{infinite.csv}", *FLOOR], r"'a'.*1 infinite numbers, the first in row 41"),
    "names of people": (["fit", "{people.csv}", *FLOOR], r"'name' holds 300 different texts"),
    "ten million characters": (["fit", "{long cell.csv}", *FLOOR], r"line of more than 4 million characters"),
    "ten million at first": (["fit", "{long first.csv}", *FLOOR], r"first line of more than"),
    "a quote that stays open": (["fit", "{long quoted.csv}", *FLOOR], r"quotation mark|cells, and the first"),
    "not UTF-8": (["fit", "{latin.csv}", *FLOOR], r"not written in UTF-8.*--encoding latin-1"),
    "not UTF-8 below": (["fit", "{late latin.csv}", "--y", "cost", "--floor", "300"], r"not written in UTF-8"),
    "no such encoding": (["fit", "{numbers.csv}", *FLOOR, "--encoding", "utf-99"], r"--encoding must be one"),
    "bytes of zero": (["fit", "{zeros.csv}", *FLOOR], r"not a text table"),
    "a picture": (["fit", "{picture.png}", *FLOOR], r"not a text table|not written in"),
    "an old workbook": (["fit", "{old.xls}", *FLOOR], r"workbook of an old Excel"),
    "a broken workbook": (["fit", "{not a book.xlsx}", *FLOOR], r"cannot be read as an Excel workbook"),
    "an empty workbook": (["fit", "{empty.xlsx}", *FLOOR], r"is empty"),
    "a missing sheet": (["fit", "{text.xlsx}", *FLOOR, "--sheet", "Data"], r"--sheet names 'Data'"),
    "a packed file cut off": (["fit", "{cut.csv.gz}", "--y", "cost", "--floor", "300"], r"packed and damaged"),
    "half a Parquet file": (["fit", "{cut.parquet}", *FLOOR], r"is damaged"),
    "dates": (["fit", "{dates.parquet}", *FLOOR], r"'d'.*timestamp|'d'.*date"),
    "a column named <script>": (["fit", "{script.csv}", *FLOOR], r"Column '<script>'.*'much'"),
    "a column with markup": (["fit", "{brackets.csv}", *FLOOR], r"Column '\[red\]b\[/red\]'"),
    "a column with colours": (["fit", "{bell.csv}", *FLOOR], r"text among numbers"),
    "a negative strength": (["fit", "{numbers.csv}", *FLOOR, "--gamma", "-1"], r"gamma must be"),
    "a strength in words": (["fit", "{numbers.csv}", *FLOOR, "--gamma", "strong"], r"--gamma must be a number or a range"),
    "a range upside down": (["fit", "{numbers.csv}", *FLOOR, "--pull", "0.7:0.2"], r"--pull must be a range A:B with A below B"),
    "a pull above one": (["fit", "{numbers.csv}", *FLOOR, "--pull", "1.5"], r"pull must"),
    "strength and pull": (["fit", "{numbers.csv}", *FLOOR, "--gamma", "1", "--pull", "0.3"], r"drop one of them"),
    "a share above one": (["fit", "{numbers.csv}", *FLOOR, "--honest", "2"], r"honest_share must be"),
    "a cost of nothing": (["fit", "{numbers.csv}", *FLOOR, "--cost", "a=0"], r"--cost must be COL=V.*'a=0'"),
    "a cost of no column": (["fit", "{numbers.csv}", *FLOOR, "--cost", "c=2"], r"--cost names 'c'"),
    "a cost without a value": (["fit", "{numbers.csv}", *FLOOR, "--cost", "a"], r"--cost must be COL=V"),
    "immutable and dear": (["fit", "{numbers.csv}", *FLOOR, "--cost", "a=2", "--immutable", "a"], r"--immutable names 'a', and so does --cost"),
    "nothing can be changed": (["fit", "{numbers.csv}", *FLOOR, "--immutable", "a,b"], r"there is no game"),
    "nothing left": (["fit", "{numbers.csv}", *FLOOR, "--drop", "a,b"], r"no column left"),
    "the label dropped": (["fit", "{numbers.csv}", *FLOOR, "--drop", "y"], r"--drop names 'y', and so does --y"),
    "actions and costs": (["fit", "{numbers.csv}", *FLOOR, "--actions", "{a.json}", "--cost", "a=2"], r"--actions was given and so was --cost"),
    "actions in no file": (["fit", "{numbers.csv}", *FLOOR, "--actions", "{none.json}"], r"none\.json: No such file"),
    "actions that are none": (["fit", "{numbers.csv}", *FLOOR, "--actions", "{list.json}"], r"--actions must name a JSON file"),
    "actions on no column": (["fit", "{numbers.csv}", *FLOOR, "--actions", "{a.json}"], r"a\.json: .*'c'"),
    "all rows held out": (["fit", "{numbers.csv}", *FLOOR, "--test-size", "1"], r"--test-size must be"),
    "too few held out": (["fit", "{numbers.csv}", *FLOOR, "--test-size", "0.01"], r"leaves too few"),
    "units in miles": (["fit", "{numbers.csv}", *FLOOR, "--units", "miles"], r"--units must be 'sd' or 'raw'"),
    "an output in no folder": (["fit", "{numbers.csv}", *FLOOR, "--model", "{none/m.spgls}"], r"--model: the folder .*none does not exist"),
    "an output that is a folder": (["fit", "{numbers.csv}", *FLOOR, "--model", "{.}"], r"--model: .* is a folder"),
    "an output over the table": (["fit", "{numbers.csv}", *FLOOR, "--model", "{numbers.csv}"], r"is the table itself"),
    "a report over the table": (["fit", "{numbers.csv}", *FLOOR, "--report", "{numbers.csv}"], r"is the table itself"),
    "a full disk": (["fit", "{numbers.csv}", *FLOOR, "--model", "/dev/full"], r"No space left on device"),
    "rows without a report": (["fit", "{numbers.csv}", *FLOOR, "--rows", "3"], r"--rows was given without --report"),
    "too many rows": (["fit", "{numbers.csv}", *FLOOR, "--report", "{r.html}", "--rows", "300"], r"--rows must be from 0 to 200"),
    "three classes": (["classify", "{classes.csv}", "--y", "y", "--opposite"], r"has 3: c0, c1, c2"),
    "a class that is not": (["classify", "{two.csv}", "--y", "y", "--wants", "maybe"], r"--wants must be one of.*no and yes.*'maybe'"),
    "two wishes": (["classify", "{two.csv}", "--y", "y", "--wants", "yes", "--opposite"], r"got --wants and --opposite"),
    "no model": (["predict", "{none.spgls}", "{numbers.csv}"], r"none\.spgls: No such file"),
    "a table for a model": (["predict", "{numbers.csv}", "{numbers.csv}"], r"is not a model of spgls"),
    "a damaged model": (["predict", "{damaged.spgls}", "{numbers.csv}"], r"damaged\.spgls is damaged"),
    "other columns": (["predict", "<numbers.spgls>", "{other columns.csv}"], r"lacks 1 of the 2 columns.*'b'"),
    "a new category": (["predict", "<good.spgls>", "{new kind.csv}"], r"'region'.*'<west>', which the model never saw"),
    "missing cells to predict": (["predict", "<good.spgls>", "{missing.csv}"], r"missing cells, and the model was fitted without --impute"),
    "results in a picture": (["predict", "<numbers.spgls>", "{numbers.csv}", "--out", "{p.png}"], r"--out must end in one of"),
    "results over the model": (["predict", "<numbers.spgls>", "{numbers.csv}", "--out", "{numbers.csv}"], r"is the table itself"),
    "an attack without goals": (["attack", "<numbers.spgls>", "{numbers.csv}"], r"exactly one of --y and --z; got none"),
    "an attack with both": (["attack", "<numbers.spgls>", "{numbers.csv}", "--y", "y", "--z", "y"], r"got both"),
    "labels where goals are known": (["attack", "<goals.spgls>", "<goals.csv>", "--y", "y"], r"pass --z"),
    "an attack of no strength": (["attack", "<numbers.spgls>", "{numbers.csv}", "--y", "y", "--gamma", "0"], r"--gamma must be positive"),
    "before and after apart": (["estimate-gamma", "<numbers.spgls>", "{numbers.csv}", "{short.csv}", "--y", "y"], r"it has 19"),
    "nobody moved": (["estimate-gamma", "<numbers.spgls>", "{numbers.csv}", "{numbers.csv}", "--y", "y"], r"perhaps nobody reacts"),
    "export to nowhere": (["export", "<numbers.spgls>", "--onnx", "{none/m.onnx}"], r"--onnx: the folder"),
    "export of nothing": (["export", "<numbers.spgls>"], r"Missing option '--onnx'"),
    "pulls in words": (["path", "{numbers.csv}", *FLOOR, "--pulls", "weak"], r"--pulls must be numbers"),
    "pulls of one": (["path", "{numbers.csv}", *FLOOR, "--pulls", "0.5,1"], r"--pulls must lie between 0 and 1"),
    "a path of one strength": (["path", "{numbers.csv}", *FLOOR, "--gamma", "1"], r"pass --pulls in place"),
    "check of a missing column": (["check", "{numbers.csv}", "--y", "Y"], r"--y names 'Y'"),
    "check of nothing": (["check", "{empty.csv}"], r"is empty"),
    "levers without a goal": (["levers", "{numbers.csv}", "--y", "y"], r"got none"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_one_sentence(name, invoke, kept, tmp_path):
    words, said = WRONG[name]
    if "/dev/full" in words and not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    given = []
    for word in words:
        if word.startswith("{"):
            word = word[1:-1]
            content = FILES.get(word)
            if callable(content):
                content(tmp_path / word)
            elif content is not None:
                (tmp_path / word).write_bytes(content)
            word = str(tmp_path / word)
        elif word.startswith("<"):
            word = str(kept / word[1:-1])
        given.append(word)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    done = invoke(*given)
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1, done.stderr
    assert "\x1b" not in done.stderr
    assert "Traceback" not in done.stderr
    assert "defect" not in done.stderr
    assert len(done.stderr) < 700
    assert re.search(said, done.stderr), done.stderr
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_there_are_enough_of_them():
    assert len(WRONG) >= 50


def test_a_place_one_may_not_write_to(invoke, kept, tmp_path, monkeypatch):
    monkeypatch.setattr("os.access", lambda path, mode: mode != os.W_OK)
    done = invoke("fit", kept / "numbers.csv", *FLOOR, "--model", tmp_path / "m.spgls")
    assert done.exit_code == 2
    assert "you may not write to" in done.stderr


def test_a_disk_that_fills_up(invoke, kept, tmp_path, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    (tmp_path / "m.spgls").write_bytes(b"before")
    done = invoke("fit", kept / "numbers.csv", *FLOOR, "--model", tmp_path / "m.spgls")
    assert done.exit_code == 2
    assert done.stderr == "No space left on device.\n"
    assert [(one.name, one.read_bytes()) for one in tmp_path.iterdir()] == [("m.spgls", b"before")]


def test_a_defect_of_ours_is_told_as_one(invoke, kept, monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError("oh")

    monkeypatch.setattr("spgls.cli.fitting.prepare", broken)
    done = invoke("fit", kept / "numbers.csv", *FLOOR)
    assert done.exit_code == 2
    assert done.stderr == "ZeroDivisionError: oh This is a defect of spgls; please report it.\n"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
@pytest.mark.parametrize(
    ("sign", "code", "word"),
    [(signal.SIGINT, 130, "Interrupted."), (signal.SIGTERM, 143, "Terminated.")],
)
def test_signals(tmp_path, sign, code, word):
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    words = ["fit", str(pipe), *FLOOR, "--model", str(tmp_path / "m.spgls")]
    process = subprocess.Popen(
        [sys.executable, "-m", "spgls", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"NO_COLOR": "1"},
        # Whoever runs the tests in the background may have Ctrl-C ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    # The pipe can be opened once the command reads from it, and then it waits for us.
    end = None
    for _ in range(600):
        try:
            end = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
            break
        except OSError:
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.1)
    assert end is not None
    # Python looks for signals before it waits: one that comes in between is seen after the wait.
    time.sleep(1)
    process.send_signal(sign)
    out, err = process.communicate(timeout=60)
    os.close(end)
    assert process.returncode == code
    assert out == ""
    assert err.startswith(word)
    assert err.count("\n") == 1
    assert [one.name for one in tmp_path.iterdir()] == ["pipe.csv"]
