"""Two versions measured in turn: what counts, what is refused, and whose turn it is."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture(scope="module")
def against():
    # The benchmarks are scripts that import each other by short names, which nobody else may see.
    known = set(sys.modules)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        import against

        yield against
    for name in set(sys.modules) - known:
        if Path(getattr(sys.modules[name], "__file__", None) or "").parent == BENCHMARKS:
            del sys.modules[name]


@pytest.fixture
def quiet(against):
    return sys.modules["quiet"]


def turn(seconds=1.0, objective=0.5, gap=1e-12, proved=1):
    return {"seconds": seconds, "objectives": [objective], "gap": gap, "proved": proved}


class FakeWorker:
    """Answers at once, and writes down what it was asked for."""

    pid = -1

    def __init__(self, name, asked, **answer):
        self.name, self.asked, self.answer = name, asked, answer

    def build(self, title):
        self.asked.append(f"{self.name} builds")
        return self.answer.get("seconds", 1.0)

    def turn(self, calls):
        self.asked.append(self.name)
        return turn(**self.answer)

    def drop(self):
        self.asked.append(f"{self.name} drops")


TASK = SimpleNamespace(group="small", name="x", title="small: x", accuracy=1e-9)


def measured(against, before=None, after=None, asked=None):
    asked = [] if asked is None else asked
    pair = FakeWorker("A", asked, **before or {}), FakeWorker("B", asked, **after or {})
    return against.measure(TASK, pair, threads=1, rounds=3)


def test_versions_take_turns(against):
    asked = []
    measured(against, asked=asked)
    assert asked == ["A builds", "B builds", *"ABABAB", "A drops", "B drops"]


def test_limits_of_a_case(against):
    assert measured(against, {"seconds": 2.0}, {"seconds": 2.4}).verdict == "met"
    slower = measured(against, {"seconds": 2.0}, {"seconds": 2.5})
    assert slower.ratio == 1.25
    assert slower.verdict == "MISSED"


@pytest.mark.parametrize(
    ("after", "reason"),
    [
        ({"objective": 0.5 + 2e-9}, "objectives differ"),
        ({"objective": float("nan")}, "objectives differ"),
        ({"gap": 2e-9}, "gap 2.0e-09 after"),
        ({"gap": float("nan")}, "gap nan after"),
        ({"proved": 0}, "1 answers proved before, 0 after"),
    ],
)
def test_other_answers_do_not_count(against, after, reason):
    row = measured(against, {}, after)
    assert row.ratio is None
    assert row.verdict.startswith("NC: ")
    assert reason in row.verdict


def test_failure_of_a_version_is_reported(against, monkeypatch):
    def fails(self, title):
        raise against.Failed(f"{self.name}: ValueError: no")

    monkeypatch.setattr(FakeWorker, "build", fails)
    asked = []
    assert measured(against, asked=asked).verdict == "NC: A: ValueError: no"
    assert asked == ["A drops", "B drops"]


def test_geometric_means(against):
    rows = [
        measured(against, {"seconds": 1.0}, {"seconds": 2.0}),
        measured(against, {"seconds": 2.0}, {"seconds": 1.0}),
        measured(against, {}, {"gap": 1.0}),
    ]
    group, everything = against.summarise(rows)
    assert group.group == "small"
    assert group.ratio == pytest.approx(1.0)
    assert (group.cases, group.not_compared, group.verdict) == (3, 1, "met")
    assert everything.ratio == pytest.approx(1.0)
    assert against.summarise(rows[:1])[-1].verdict == "MISSED"
    assert against.summarise(rows[2:])[-1].verdict == "NC"
    about = against.environment() | {"before": "", "after": "", "quiet": ""}
    assert "NC: gap 1.0e+00 after" in against.page(rows, [group, everything], about)


def test_load_is_what_others_did(quiet):
    before = quiet.Snapshot(0.0, 10.0, 0.0, {1: ("us", 5.0), 2: ("idle", 1.0)})
    after = quiet.Snapshot(2.0, 14.0, 0.5, {1: ("us", 8.0), 2: ("idle", 1.0), 3: ("new", 0.5)})
    found = quiet.load(before, after, ours=[1])
    assert found.cores == pytest.approx((4.0 - 3.0 + 0.5) / 2.0)
    assert found.processes == (("new", 3, 0.25),)


def test_complaint_names_the_busy(quiet):
    assert quiet.complaint(quiet.Load(0.05, 0.0, (("cron", 7, 0.05),))) is None
    said = quiet.complaint(quiet.Load(1.2, 0.2, (("pytest", 7, 1.0),)), average=1.5)
    assert "1.20 cores: pytest (7, 1.00), other machines on this host (0.20)" in said
    assert "load average 1.50" in said
    assert "cannot be seen" in quiet.complaint(quiet.Load(1.0, 0.0, ()))


def test_busy_machine_is_refused(quiet):
    with pytest.raises(quiet.NotQuiet, match=r"Busy\. .*--force"):
        quiet.require_quiet(look=lambda: "Busy.")
    assert quiet.require_quiet(look=lambda: "Busy.", force=True) == "Busy."
    # Who wakes for a moment does not stop us.
    looks = iter(["Busy.", None])
    assert quiet.require_quiet(look=lambda: next(looks)) is None


def test_refusal_comes_before_the_next_case(against, quiet):
    looks = iter([None, "Busy."])

    def look():
        found = next(looks)
        if found:
            raise quiet.NotQuiet(found)

    asked = []
    pair = FakeWorker("A", asked), FakeWorker("B", asked)
    rows = against.run([TASK, TASK], pair, 1, 1, look)
    next(rows)
    done = len(asked)
    with pytest.raises(quiet.NotQuiet):
        next(rows)
    assert len(asked) == done
