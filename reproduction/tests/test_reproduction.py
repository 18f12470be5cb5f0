"""The runner that loses nothing, its limits, and what is made of its cells."""

from __future__ import annotations

import ast
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import reproduction
import spgls
from reproduction import (
    EXPERIMENTS,
    PROTOCOLS,
    SCALES,
    Results,
    ResultsError,
    find_experiments,
    page,
    paper,
    reproduce,
    run_cells,
    store,
)
from reproduction import measure as measuring
from reproduction.cell import Cell, Real, Synthetic
from reproduction.claims import CAVEAT, FAILS, HOLDS, judge
from reproduction.command import app
from reproduction.curves import error_curves
from reproduction.environment import environment
from reproduction.experiment import Experiment, Grid
from reproduction.fastest import fastest_section
from reproduction.store import Record, Store, write_whole
from reproduction.tables import as_csv, curves_csv, error_table, time_table
from reproduction.view import families, fit_law, law_of, pairs, points
from spgls import solve

#: What stands in for a solver: the method's name says what to do.
MEASURES = """
import os, time

from reproduction.cell import UnavailableError


def measure(request, started):
    method, seed = request["method"], request["data"]["seed"]
    if method == "missing":
        raise UnavailableError(request["data"].get("source", "dense"), "it is not there; get it")
    started()
    print("a library that prints")
    log = os.environ.get("MEASURED")
    if log:
        with open(log, "a") as file:
            file.write(f"{seed}\\n")
    if method == "sleep":
        time.sleep(60)
    elif method == "eat":
        held = []
        while True:
            held.append(bytearray(b"x" * 20_000_000))
            time.sleep(0.01)
    elif method == "die":
        os._exit(3)
    elif method == "raise":
        raise ZeroDivisionError("one over nothing")
    elif method == "no memory":
        raise MemoryError
    time.sleep(0.02)
    values = {"objective": seed * 1.5, "seconds": [0.02], "threads": os.environ["OMP_NUM_THREADS"]}
    return "measured", values
"""


def cell(method="fine", seed=0, **more):
    return Cell("tiny", Synthetic(4, 2, None, "code", seed), method, 0.1, **more)


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """Name of a function that measures, importable by the process."""
    (tmp_path / "measures_of_tests.py").write_text(MEASURES)
    before = os.environ.get("PYTHONPATH")
    paths = [str(tmp_path), *([before] if before else [])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    return "measures_of_tests:measure"


def files(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.glob("cells/*/*.json"))}


class TestCells:
    @pytest.mark.parametrize(
        "data", [Synthetic(4, 2, 0.5, "code", 1), Real("wine", "modest", "2021", None, 3, 10)]
    )
    def test_plain_values_and_back(self, data):
        one = Cell("tiny", data, "socp", 0.1, tol=1e-7)
        assert Cell.from_dict(json.loads(json.dumps(one.to_dict()))) == one

    def test_keys_tell_apart_what_is_measured(self):
        one = cell()
        others = [cell(seed=1), cell("socp"), cell(seconds=5.0), replace(one, gamma=0.2)]
        assert len({one.key, *(other.key for other in others)}) == 5
        assert one.key == replace(one, expected=7.0).key
        assert re.fullmatch(r"[A-Za-z0-9._-]+", one.key)

    def test_a_solver_is_measured(self):
        started = []
        one = Cell("tiny", Synthetic(40, 10, None, "code", 0), "spectral", 0.1)
        outcome, values = measuring.measure(one.to_dict(), lambda: started.append(True))
        assert (outcome, started) == ("measured", [True])
        assert values["gap"] < 1e-9
        assert values["kind"] == "proved"
        assert len(values["seconds"]) == one.repeats
        assert values["shape"] == [40, 10]
        assert values["passes"] > 0

    @pytest.mark.parametrize("method", ["socp", "ltrsr", "rtr-newton", "krylov"])
    def test_methods_agree(self, method):
        game = Synthetic(60, 30, 0.2, "paper", 1)
        wanted, found = (
            measuring.measure(Cell("tiny", game, name, 0.1).to_dict(), lambda: None)[1]
            for name in ("spectral", method)
        )
        assert found["objective"] == pytest.approx(wanted["objective"], abs=1e-8 * wanted["labels"])

    @pytest.mark.parametrize(
        ("method", "times", "calls"),
        [
            ("krylov", [5.0, 0.1, 2.0], 3),
            ("krylov", [0.1, 2.0], 2),
            ("krylov", [0.1] * 9, 4),
            ("krylov", [50.0], 1),
            ("sdp", [0.5, 9.0], 2),
            ("sdp", [5.0], 1),
        ],
    )
    def test_a_first_call_that_compiles_is_not_the_last(self, method, times, calls, monkeypatch):
        clock, left, solve = [0.0], iter([*times, 0.0]), measuring.solve

        def takes_its_time(*game, solver, **options):
            clock[0] += next(left)
            return solve(*game, solver="spectral", **options)

        monkeypatch.setattr(measuring, "solve", takes_its_time)
        monkeypatch.setattr(measuring, "perf_counter", lambda: clock[0])
        cell = Cell("dense-0.1", Synthetic(20, 10, None, "code", 0), method, 0.1)
        outcome, _ = measuring.measure(cell.to_dict(), lambda: None)
        assert outcome == "measured"
        assert clock[0] == pytest.approx(sum(times[:calls]))
        assert next(left) == (times[calls] if calls < len(times) else 0.0)

    def test_a_refusal_is_a_result(self):
        one = Cell("tiny", Synthetic(400, 200, None, "code", 0), "bisection", 0.1)
        outcome, values = measuring.measure(one.to_dict(), lambda: None)
        assert outcome == "refused"
        assert "refuses above" in values["reason"]

    def test_protocols_differ(self):
        code, text = (
            measuring.build(Synthetic(50, 20, None, protocol, 0)) for protocol in ("code", "paper")
        )
        assert (code.X.min(), code.X.max()) == (0.0, 1.0)
        assert text.X.min() < -1.0
        np.testing.assert_array_equal(code.y, text.y)


class TestRunner:
    def test_measures_once_and_keeps(self, fake, tmp_path):
        cells = [cell(seed=seed) for seed in range(4)]
        told = []
        first = run_cells(cells[:3], tmp_path / "out", measure=fake, threads=1, notify=told.append)
        assert (first.measured, first.kept) == (3, 0)
        assert [progress.done for progress in told] == [0, 1, 2, 3]
        assert told[0].remaining is None
        assert told[2].remaining > 0.0
        before = files(tmp_path / "out")
        again = run_cells(cells, tmp_path / "out", measure=fake, threads=1)
        assert (again.measured, again.kept) == (1, 3)
        after = files(tmp_path / "out")
        assert len(after) == 4
        assert before.items() <= after.items()
        results = Results.read(tmp_path / "out")
        assert {r.cell.data.seed: r["objective"] for r in results.records} == {
            seed: 1.5 * seed for seed in range(4)
        }
        assert all(r["threads"] == "1" for r in results.records)
        (about,) = results.environments.values()
        assert about["threads"] == 1
        assert about["packages"]["numpy"] == np.__version__

    def test_limits_and_ends(self, fake, tmp_path):
        """What hangs, grows, dies or raises is marked, and the next cell is measured."""
        cells = [
            cell("sleep", seconds=0.3),
            cell("eat", memory=0.4),
            cell("die"),
            cell("raise"),
            cell("no memory"),
            cell("fine"),
        ]
        begin = time.monotonic()
        assert run_cells(cells, tmp_path / "out", measure=fake, threads=1).measured == len(cells)
        assert time.monotonic() - begin < 40.0
        found = {r.cell.method: r for r in Results.read(tmp_path / "out").records}
        outcomes = {method: record.outcome for method, record in found.items()}
        assert outcomes == {
            "sleep": "time",
            "eat": "memory",
            "die": "died",
            "raise": "failed",
            "no memory": "memory",
            "fine": "measured",
        }
        assert found["sleep"]["limit"] == 0.3
        assert found["eat"]["limit"] == 0.4
        assert found["die"]["reason"] == "its process ended with status 3"
        assert found["raise"]["reason"] == "ZeroDivisionError: one over nothing"
        # What says nothing of the method is tried again.
        again = run_cells(cells, tmp_path / "out", measure=fake, threads=1)
        assert (again.measured, again.kept) == (2, 4)

    def test_another_number_of_threads(self, fake, tmp_path):
        run_cells([cell()], tmp_path / "out", measure=fake, threads=1)
        with pytest.raises(ResultsError, match=r"results on 1 threads.*Pass --threads 1"):
            run_cells([cell(), cell(seed=1)], tmp_path / "out", measure=fake, threads=2)

    def test_what_is_missing_stays_open(self, fake, tmp_path):
        cells = [
            cell("missing"),
            cell("missing", 1),
            replace(cell("fine"), data=Synthetic(4, 2, 0.5, "code", 0)),
        ]
        first = run_cells(cells, tmp_path / "out", measure=fake, threads=1)
        assert first.measured == 1
        assert list(first.unavailable) == ["it is not there; get it"]
        assert len(first.unavailable["it is not there; get it"]) == 2
        assert len(files(tmp_path / "out")) == 1

    def test_a_process_that_cannot_start(self, tmp_path):
        with pytest.raises(RuntimeError, match="could not start; it said: ModuleNotFoundError"):
            run_cells([cell()], tmp_path / "out", measure="no_such_module:measure")

    def test_no_process_stays_behind(self, fake, tmp_path, monkeypatch):
        started = []
        popen = subprocess.Popen

        def remember(*args, **kwargs):
            started.append(popen(*args, **kwargs))
            return started[-1]

        monkeypatch.setattr(subprocess, "Popen", remember)
        monkeypatch.setattr(store, "write_whole", _full)
        with pytest.raises(OSError, match="No space left"):
            run_cells([cell()], tmp_path / "out", measure=fake)
        assert all(process.poll() is not None for process in started)


def _full(path, content):
    raise OSError(28, "No space left on device")


class TestFiles:
    def test_whole_or_nothing(self, tmp_path, monkeypatch):
        write_whole(tmp_path / "a.json", "before")

        def fail(handle):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("os.fsync", fail)
        with pytest.raises(OSError, match=r"a\.json could not be written .*No space left.*is kept"):
            write_whole(tmp_path / "a.json", "after")
        assert (tmp_path / "a.json").read_text() == "before"
        assert [path.name for path in tmp_path.iterdir()] == ["a.json"]

    def test_a_finished_cell_is_never_written_again(self, tmp_path):
        kept = Store(tmp_path)
        kept.write(Record(cell(), "measured", {"objective": 1.0}, "here"))
        kept.write(Record(cell(), "measured", {"objective": 2.0}, "here"))
        assert kept.read(cell())["objective"] == 1.0

    @pytest.mark.parametrize(
        "text", ["", '{"format": 1', '{"format": 9}', "[]", '{"format": 1}', "\x00"]
    )
    def test_a_damaged_cell(self, tmp_path, text):
        path = Store(tmp_path).path(cell())
        path.parent.mkdir(parents=True)
        path.write_text(text)
        with pytest.raises(ResultsError, match=rf"{path.name} is damaged.*Delete it"):
            run_cells([cell()], tmp_path)
        assert path.read_text() == text

    def test_a_cell_under_another_name(self, tmp_path):
        path = Store(tmp_path).path(cell())
        path.parent.mkdir(parents=True)
        path.write_text(Record(cell(seed=5), "measured", {}, "here").to_json())
        with pytest.raises(ResultsError, match="holds another cell"):
            run_cells([cell()], tmp_path)

    def test_one_run_at_a_time(self, tmp_path):
        pytest.importorskip("fcntl")
        with Store(tmp_path).locked(), pytest.raises(ResultsError, match="Another run is writing"):
            run_cells([], tmp_path)
        run_cells([], tmp_path)
        assert not list(tmp_path.iterdir())

    def test_a_lock_on_a_file_that_was_taken_away(self, tmp_path, monkeypatch):
        """Between opening the file and locking it, another run ends, and a third one begins."""
        fcntl = pytest.importorskip("fcntl")
        flock, path = fcntl.flock, tmp_path / ".lock"

        def late(file, how):
            path.unlink()
            path.touch()
            flock(file, how)

        monkeypatch.setattr(fcntl, "flock", late)
        with pytest.raises(ResultsError, match="Another run is writing"):
            run_cells([], tmp_path)
        assert path.exists()

    def test_a_place_that_cannot_be_written_to(self, tmp_path):
        (tmp_path / "file").touch()
        with pytest.raises(OSError, match=r"cannot be written to.*Name another"):
            run_cells([cell()], tmp_path / "file" / "out")

    def test_half_a_file_of_a_killed_run_goes(self, tmp_path):
        left = tmp_path / "cells" / "tiny" / ".x.json.1.tmp"
        left.parent.mkdir(parents=True)
        left.write_text("hal")
        others = [tmp_path / ".mine.tmp", tmp_path / "deep" / "er" / ".x.json.1.tmp"]
        others[1].parent.mkdir(parents=True)
        for other in others:
            other.write_text("mine")
        (tmp_path / ".folder.1.tmp").mkdir()
        run_cells([], tmp_path)
        assert not left.exists()
        assert all(other.exists() for other in others)

    @pytest.mark.parametrize("text", ["{", "[]", '{"cpu": "x"}'])
    def test_a_damaged_environment(self, tmp_path, text):
        Store(tmp_path).write(Record(cell(), "measured", {}, "here"))
        place = tmp_path / "environments" / "here.json"
        place.parent.mkdir()
        place.write_text(text)
        with pytest.raises(ResultsError, match=r"here\.json is damaged, it does not say what"):
            Results.read(tmp_path)

    def test_collected_results_read_back(self, tmp_path):
        kept = Store(tmp_path)
        kept.write_environment(*environment(1))
        for seed in range(3):
            kept.write(Record(cell(seed=seed), "measured", {"objective": 1.0 / 3}, "here"))
        first = Results.read(tmp_path)
        (tmp_path / "other").mkdir()
        first.collect(tmp_path / "other")
        assert Results.read(tmp_path / "other") == first

    def test_nothing_to_read(self, tmp_path):
        with pytest.raises(ResultsError, match=r"holds no results.*python -m reproduction --all"):
            Results.read(tmp_path)


KILLED = """
import sys
from pathlib import Path

from reproduction import run_cells
from reproduction.cell import Cell, Synthetic

cells = [
    Cell("tiny", Synthetic(4, 2, None, "code", seed), "fine", 0.1)
    for seed in range(int(sys.argv[2]))
]
print("ready", flush=True)
run_cells(cells, Path(sys.argv[1]), measure="measures_of_tests:measure", threads=1)
"""


@pytest.mark.long
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no such signal here")
def test_ten_kills_lose_nothing(fake, tmp_path, monkeypatch):
    """Killed at random moments: finished cells stay byte for byte, all others are measured once."""
    count, out, log = 60, tmp_path / "out", tmp_path / "log"
    monkeypatch.setenv("MEASURED", str(log))
    (tmp_path / "run.py").write_text(KILLED)
    command = [sys.executable, str(tmp_path / "run.py"), str(out), str(count)]
    chance, kills, kept = random.Random(0), 0, {}
    while kills < 10:
        with subprocess.Popen(command, stdout=subprocess.PIPE) as run:
            try:
                run.stdout.readline()
                before = len(files(out))
                # Once one more is finished, at a random moment of those that follow.
                while run.poll() is None and len(files(out)) <= before:
                    time.sleep(0.005)
                time.sleep(chance.uniform(0.0, 0.12))
            finally:
                run.kill()
        kills += 1
        now = files(out)
        assert kept.items() <= now.items()
        for text in now.values():
            Record.from_json(text.decode())
        kept = now
    assert len(kept) < count, "the run ended before it was killed ten times"
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    final = files(out)
    assert kept.items() <= final.items()
    assert len(final) == count
    assert not list(out.rglob("*.tmp"))
    measured = [int(line) for line in log.read_text().split()]
    # The cell at hand when a run is killed may be begun again; no finished one is.
    assert set(measured) == set(range(count))
    assert len(measured) <= count + kills
    objectives = {r.cell.data.seed: r["objective"] for r in Results.read(out).records}
    assert objectives == {seed: 1.5 * seed for seed in range(count)}


def test_only_public_names_of_spgls():
    for path in Path(reproduction.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                assert not any(name.name.startswith("spgls") for name in node.names), path
            elif isinstance(node, ast.ImportFrom) and str(node.module).startswith("spgls"):
                assert node.module == "spgls", path
                assert {name.name for name in node.names} <= {*spgls.__all__, "datasets"}, path


class TestCatalogue:
    @pytest.mark.parametrize("scale", SCALES)
    @pytest.mark.parametrize("protocol", PROTOCOLS)
    @pytest.mark.parametrize("name", EXPERIMENTS)
    def test_cells(self, name, scale, protocol):
        cells = EXPERIMENTS[name].cells(scale, protocol)
        assert cells
        assert len({one.key for one in cells}) == len(cells)
        assert all(one.experiment == name and one.expected > 0.0 for one in cells)
        games = [one.data for one in cells]
        # Neighbours share a game, so that it is built once.
        runs = 1 + sum(a != b for a, b in pairwise(games))
        assert runs == len(set(games))

    def test_every_printed_time_has_an_experiment(self):
        shown = {
            (density, ratio, experiment.gamma)
            for experiment in EXPERIMENTS.values()
            for density in experiment.densities
            for ratio in experiment.ratios
        }
        assert set(paper.TIMES) <= shown
        assert set(paper.SYNTHETIC_ERRORS) <= shown

    def test_the_papers_sizes(self):
        for experiment in EXPERIMENTS.values():
            for density in experiment.densities:
                for ratio in experiment.ratios:
                    printed = paper.TIMES.get((density, ratio, experiment.gamma), ())
                    if printed and experiment.id != "conic":
                        assert experiment.grids["paper"].sizes == tuple(row.n for row in printed)

    def test_unknown(self):
        with pytest.raises(ValueError, match=r"no experiment 'nix'\. There are: wine, insurance"):
            find_experiments(["wine", "nix"])

    def test_printed_ratios(self):
        for rows in paper.TIMES.values():
            for row in rows:
                assert row.socp / row.ltrsr == pytest.approx(row.ratio, rel=0.05)


def record(method, data, seconds, objective=1.0, *, gamma=0.1, experiment="dense-0.1", **more):
    values = {
        "seconds": [seconds],
        "stages": {"reduction": 0.4 * seconds} if method == "socp" else {},
        "objective": objective,
        "labels": 1.0,
        "gap": 1e-12,
        "entries": data.m * data.n if isinstance(data, Synthetic) else 1,
        **more,
    }
    return Record(Cell(experiment, data, method, gamma), "measured", values, "here")


@pytest.fixture
def invented():
    """Times that grow like known powers."""
    records = []
    for n in (1000, 2000, 4000):
        for ratio in (2.0, 1.0, 0.5):
            data = Synthetic(int(ratio * n), n, None, "code", 0)
            for method, factor, power in (("socp", 1e-10, 3), ("ltrsr", 1e-9, 2)):
                time_ = factor * data.size**power
                records.append(record(method, data, time_, 1.0 + (method == "ltrsr") * 1e-9))
    return Results(tuple(records), {})


class TestTables:
    def test_laws(self, invented):
        for family in families(invented):
            assert law_of(invented, family, "socp").exponent == pytest.approx(3.0)
            assert law_of(invented, family, "ltrsr").exponent == pytest.approx(2.0)
        assert fit_law({10: 1.0}) is None

    def test_a_table_marks_what_is_extrapolated(self, invented):
        (family,) = [f for f in families(invented) if f.ratio == 1.0]
        rows = {
            line.split("|")[1].strip(): [text.strip() for text in line.split("|")[2:-1]]
            for line in time_table(invented, family).splitlines()[2:]
        }
        assert rows["1,000 x 1,000"][0] == "0.1 (0.04)"
        assert rows["1,000 x 1,000"][1] == "0.454 (0.065)"
        assert rows["1,000 x 1,000"][-2:] == ["100", "27"]
        assert rows["10,000 x 10,000"][0] == "~100"
        assert rows["10,000 x 10,000"][-2:] == ["~1,000", "32"]
        assert rows["1,000 x 1,000"][2] == "-"

    def test_a_limit_is_shown(self, invented):
        late = Cell("dense-0.1", Synthetic(6000, 6000, None, "code", 0), "socp", 0.1)
        more = Record(late, "time", {"limit": 120.0}, "here")
        results = Results((*invented.records, more), {})
        (family,) = [f for f in families(results) if f.ratio == 1.0]
        assert "| > 120 s; ~21.6 |" in time_table(results, family)
        assert ",time," in as_csv(results)
        assert points(results, family, "socp")[-1].trouble == "> 120 s"

    def test_pairs_are_of_one_game(self, invented):
        """The same rows at another strength are another game."""
        others = tuple(replace(r, cell=replace(r.cell, gamma=0.01)) for r in invented.records)
        both = Results(invented.records + others, {})
        for family in families(both):
            found = list(pairs(both, family, "socp", "ltrsr"))
            assert len(found) == 3
            assert all(a.cell.family == b.cell.family == family for a, b in found)

    def test_relative_errors(self, invented):
        assert "-1.0e-09 / -1.0e-09 / -1.0e-09" in error_table(invented)

    def test_verdicts_follow_the_results(self, invented):
        def verdict(results):
            return next(v for v in judge(results) if v.claim.startswith("On dense data SOCP"))

        assert verdict(invented).verdict == HOLDS
        assert "50 to 400" in verdict(invented).sentence
        for factor, wanted in ((20.0, CAVEAT), (1000.0, FAILS)):
            slower = tuple(
                replace(r, values=r.values | {"seconds": [factor * r["seconds"][0]]})
                if r.cell.method == "ltrsr"
                else r
                for r in invented.records
            )
            assert verdict(Results(slower, {})).verdict == wanted

    def test_where_krylov_is_not_the_fastest(self, invented):
        """Twice as fast as LTRSR at n = 1000, half as fast beyond."""
        ours = [
            replace(
                r,
                cell=replace(r.cell, method="krylov"),
                values=r.values
                | {"seconds": [(0.5 if r.cell.data.n == 1000 else 2.0) * r["seconds"][0]]},
            )
            for r in invented.records
            if r.cell.method == "ltrsr"
        ]
        text = "\n".join(fastest_section(Results((*invented.records, *ours), {})))
        assert "Yes in 3 of 9 rows" in text
        assert "| dense-0.1 | 9 | 3 | LTRSR 6 (krylov takes up to 2 times as long) |" in text
        assert "In the other 6 it takes at most 2 times as long. In 6 of these 6 it reads" in text
        assert fastest_section(invented) == []

    def test_nothing_to_judge(self):
        assert judge(Results((), {})) == []


#: A small experiment in place of a large one.
TINY = Experiment(
    "dense-0.1",
    "Tiny games",
    "LTRSR is fast.",
    "Table 1",
    "synthetic",
    ("socp", "ltrsr", "rtr-newton", "krylov"),
    {scale: Grid((20, 40), 1) for scale in SCALES},
    densities=(None,),
    ratios=(2.0, 0.5),
)
COUNT = 16


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setitem(EXPERIMENTS, TINY.id, TINY)
    return TINY


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A folder in which all of it was measured, without a break."""
    folder = tmp_path_factory.mktemp("finished")
    run_cells(TINY.cells("quick"), folder, threads=1)
    return folder


@pytest.fixture
def out(finished, tmp_path):
    """A copy of that folder."""
    return shutil.copytree(finished, tmp_path / "out")


class TestReproduction:
    def test_tables_pictures_and_page(self, tiny, out, tmp_path):
        found = reproduce([tiny], out, scale="quick", threads=1)
        assert (found.summary.measured, found.summary.kept) == (0, COUNT)
        names = {path.name for path in found.files}
        own = {f"dense-0.1{end}" for end in (".csv", ".md", ".png", "-ratios.png")}
        assert names == own | {"results.jsonl"}
        assert len((out / "dense-0.1.csv").read_text().splitlines()) == 1 + COUNT
        written = page.write_page(Results.read(out), tmp_path / "page.md")
        text = (tmp_path / "page.md").read_text()
        for name in re.findall(r"\]\((_static/.*?)\)", text):
            assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
            assert tmp_path / name in written
        assert "| 40 x 20 |" in text
        for path in (*found.files, tmp_path / "page.md", *out.glob("*/*/*.json")):
            assert str(tmp_path).encode() not in path.read_bytes(), path.name
        # From the collected file alone comes the same page.
        (tmp_path / "committed").mkdir()
        (out / "results.jsonl").rename(tmp_path / "committed" / "results.jsonl")
        page.write_page(Results.read(tmp_path / "committed"), tmp_path / "again.md")
        assert (tmp_path / "again.md").read_text() == text

    def test_objectives_after_a_break_are_the_same(self, tiny, out):
        wanted = {r.cell.key: r["objective"] for r in Results.read(out).records}
        kept = {}
        for cell in tiny.cells("quick")[:5]:
            path = Store(out).path(cell)
            kept[path] = path.read_bytes()
        for path in set(out.glob("cells/*/*.json")) - set(kept):
            path.unlink()
        assert run_cells(tiny.cells("quick"), out, threads=1).kept == len(kept)
        assert {r.cell.key: r["objective"] for r in Results.read(out).records} == wanted
        assert all(path.read_bytes() == content for path, content in kept.items())

    def test_without_matplotlib_the_tables_are_there(self, tiny, out, monkeypatch):
        monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
        with pytest.raises(ImportError, match=r"pip install 'spgls\[plot\]'"):
            reproduce([tiny], out, scale="quick", threads=1)
        assert (out / "dense-0.1.md").is_file()
        assert (out / "dense-0.1.csv").is_file()

    def test_a_page_needs_results(self, tmp_path):
        with pytest.raises(ResultsError, match="no results by the protocol 'paper'"):
            page.write_page(Results((), {}), tmp_path / "page.md", protocol="paper")


@pytest.fixture
def invoke():
    def run(*words, **variables):
        # Wide, so that no message is broken.
        env = {"COLUMNS": "300"} | variables
        return CliRunner().invoke(app, [*map(str, words)], env=env)

    return run


class TestCommand:
    def test_list(self, invoke):
        done = invoke("--list")
        assert done.exit_code == 0
        assert all(name in done.stdout for name in EXPERIMENTS)

    @pytest.mark.parametrize(
        ("words", "told"),
        [
            (["nix"], r"There is no experiment 'nix'\. There are: wine"),
            ([], r"name experiments or pass --all, not both"),
            (["wine", "--all"], r"name experiments or pass --all, not both"),
            (["wine", "--scale", "huge"], r"'huge'"),
            (["wine", "--protocol", "mine"], r"'mine'"),
            (["wine", "--threads", "0"], r"--threads"),
            (["--page", "none/page.md"], r"must name a \.md file in a folder that exists"),
        ],
    )
    def test_bad_words(self, invoke, words, told, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        done = invoke(*words)
        assert done.exit_code == 2
        assert re.search(told, done.stderr)
        assert not list(tmp_path.iterdir())

    def test_run_and_page(self, invoke, tiny, out, tmp_path):
        next(iter(out.glob("cells/*/*.json"))).unlink()
        done = invoke(tiny.id, "--scale", "quick", "--out", out, "--threads", 1)
        assert done.exit_code == 0, done.output
        assert f"Cells measured now: 1; kept from before: {COUNT - 1}." in done.stdout
        done = invoke("--page", tmp_path / "page.md", "--from", out)
        assert done.exit_code == 0, done.output
        assert (tmp_path / "page.md").read_text().startswith("# The paper, reproduced")

    def test_without_results(self, invoke, tmp_path):
        done = invoke("--page", tmp_path / "page.md", "--from", tmp_path)
        assert done.exit_code == 1
        assert "holds no results" in done.stderr
        assert not list(tmp_path.iterdir())

    def test_a_place_that_cannot_be_written_to(self, invoke, tmp_path):
        (tmp_path / "file").touch()
        done = invoke("conic", "--out", tmp_path / "file" / "out")
        assert done.exit_code == 1
        assert re.search(r"cannot be written to: .*Name another", done.stderr)
        assert "Traceback" not in done.output

    def test_a_full_disk(self, invoke, tiny, tmp_path, monkeypatch):
        whole = store.write_whole

        def fill(path, content):
            if path.parent.name == tiny.id:
                with monkeypatch.context() as full:
                    full.setattr("os.fsync", lambda handle: _full(None, None))
                    whole(path, content)
            whole(path, content)

        monkeypatch.setattr(store, "write_whole", fill)
        done = invoke(tiny.id, "--scale", "quick", "--out", tmp_path / "out")
        assert done.exit_code == 1
        assert re.search(r"could not be written .*No space left.*goes on from there", done.stderr)
        assert not files(tmp_path / "out")

    @pytest.mark.parametrize(
        ("content", "told"),
        [(None, "holds no file of the insurance data"), ("age,sex\n", "is not the insurance data")],
    )
    def test_missing_and_damaged_data(self, invoke, tmp_path, content, told):
        folder = tmp_path / "data"
        folder.mkdir()
        if content is not None:
            (folder / "insurance.csv").write_text(content)
        done = invoke(
            "insurance", "--scale", "quick", "--out", tmp_path / "out", SPGLS_DATA=str(folder)
        )
        assert done.exit_code == 1
        assert re.search(rf"48 cells of insurance could not be measured: .*{told}", done.stderr)
        assert "The same command measures them" in done.stderr
        assert not list((tmp_path / "out").iterdir())

    def test_no_network(self, invoke, tmp_path):
        done = invoke(
            "wine",
            "--scale", "quick", "--out", tmp_path / "out",
            SPGLS_DATA="", SPGLS_CACHE=str(tmp_path / "cache"), SPGLS_UCI_URL="http://127.0.0.1:9",
        )  # fmt: skip
        assert done.exit_code == 1
        assert "48 cells of wine could not be measured" in done.stderr
        assert "could not be downloaded" in done.stderr
        assert not list((tmp_path / "out").iterdir())

    @pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no such signal here")
    def test_terminated(self, tmp_path):
        out = tmp_path / "out"
        command = [
            sys.executable,
            "-m",
            "reproduction",
            "dense-0.1",
            "--scale",
            "quick",
            "--out",
            str(out),
        ]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as run:
            try:
                while run.poll() is None and not files(out):
                    time.sleep(0.01)
                run.terminate()
                _, told = run.communicate(timeout=30)
            finally:
                run.kill()
        assert run.returncode == 1
        assert told == "Stopped. What was finished is kept: the same command goes on from there.\n"
        assert files(out)
        assert not (out / ".lock").exists()


@pytest.fixture(scope="module")
def curves():
    """Errors on a small game."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.random((300, 4)), np.ones(300)])
    y = X @ [1.0, 2.0, -1.0, 0.5, 1.0] + 0.3 * rng.normal(size=300)
    z = np.maximum(y, 2.0)
    game = measuring.Game(X[:200], y[:200], z[:200], X[200:], y[200:], z[200:], 10.0)
    return game, error_curves(game)


class TestCurves:
    def test_errors(self, curves):
        game, found = curves
        for at in (0, 17, 39):
            gamma = found["gammas"][at]
            solution = solve(game.X, game.y, game.z, gamma)
            plain = game.X_test @ solution.coef
            alpha = float(solution.coef @ solution.coef) / gamma
            moved = (plain + alpha * game.z_test) / (1 + alpha)
            errors = found["errors"]["game"]
            assert errors["attacked"][at] == pytest.approx(
                100 * np.mean((moved - game.y_test) ** 2), rel=1e-6
            )
            assert errors["honest"][at] == pytest.approx(
                100 * np.mean((plain - game.y_test) ** 2), rel=1e-5
            )

    def test_least_squares_and_ridge(self, curves):
        game, found = curves
        coef = np.linalg.lstsq(game.X, game.y, rcond=None)[0]
        honest = 100 * np.mean((game.X_test @ coef - game.y_test) ** 2)
        np.testing.assert_allclose(found["errors"]["least squares"]["honest"], honest, rtol=1e-6)
        assert np.isfinite(found["errors"]["ridge"]["attacked"]).all()

    def test_as_csv(self, curves):
        _, found = curves
        data = Real("wine", "modest", "2021", None, 0, 10)
        one = Record(Cell("error-curves", data, "curves", 0.0), "measured", found, "here")
        lines = curves_csv(Results((one,), {})).splitlines()
        assert len(lines) == 1 + 4 * 40
        assert lines[1].startswith("wine,modest,0,game,0.001,")
