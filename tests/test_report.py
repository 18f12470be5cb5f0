"""The report: what it says is what the library says, and nothing in it runs, leaks or calls out."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from spgls import (
    Between,
    Floor,
    Opposite,
    Population,
    Scale,
    Shift,
    StackelbergClassifier,
    StackelbergRegressor,
    StackelbergRegressorCV,
    Wants,
    best_response,
    predict_attacked,
    write_report,
)

pytest.importorskip("jinja2")
pd = pytest.importorskip("pandas")

X, Y = load_diabetes(return_X_y=True, as_frame=True)
TRAIN, TEST = slice(0, 300), slice(300, None)
EVIL = "</script><script>alert(1)</script>"
#: Tags that have no end.
VOID = {"meta", "link", "input", "br"}


class Page(HTMLParser):
    """The page as a browser reads it: balanced tags, texts, attributes."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.scripts: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts.append(data)
        elif "style" not in self.open:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    @property
    def data(self):
        return json.loads(self.scripts[0])


def report(path, model, *told, **options) -> tuple[Page, str]:
    write_report(model, *(told or (X[TEST], Y[TEST])), path, **options)
    text = path.read_text(encoding="utf-8")
    return Page(text), text


@pytest.fixture
def path(tmp_path):
    return tmp_path / "report.html"


@pytest.fixture(scope="module")
def model():
    return StackelbergRegressor(goal=Floor(250)).fit(X[TRAIN], Y[TRAIN])


class TestNumbers:
    def test_errors_are_those_of_the_library(self, path, model):
        plain = LinearRegression().fit(X[TRAIN], Y[TRAIN])
        page, _ = report(path, model, models={"least squares": plain})
        data = page.data
        assert [one["name"] for one in data["models"]] == ["least squares", "spgls"]
        z = Floor(250)(Y[TEST])
        for one, known in zip(data["models"], (plain, model), strict=True):
            honest = np.mean((known.predict(X[TEST]) - Y[TEST]) ** 2)
            assert one["honest"] == pytest.approx(honest, rel=1e-5)
            for at in (0, 9, 18):
                moved = predict_attacked(known, X[TEST], z, gamma=data["gammas"][at])
                error = np.mean((moved - Y[TEST]) ** 2)
                assert one["attacked"][at] == pytest.approx(error, rel=1e-4)
        reach = plain.coef_ @ plain.coef_
        for pull, gamma in zip(data["pulls"], data["gammas"], strict=True):
            assert reach / (reach + gamma) == pytest.approx(pull, rel=1e-4)

    def test_rows_move_as_people_would(self, path, model):
        page, _ = report(path, model)
        data = page.data
        assert len(data["rows"]) == 5
        z = Floor(250)(Y[TEST])
        ranked = np.argsort(model.predict(X[TEST]), kind="stable")
        people = ranked[round(0.5 * len(z)) - 7 :][:14]
        row = data["rows"][2]
        assert "mean of 14 rows" in row["label"]
        names = [one["name"] for one in data["features"]]
        np.testing.assert_allclose(
            row["cells"], X[TEST][names].to_numpy()[people].mean(axis=0), rtol=1e-4, atol=1e-6
        )
        # The script moves the mean row; that is where the mean of the moved rows is.
        gamma = data["gammas"][4]
        moved = best_response(X[TEST], z, model, gamma=gamma)[names].to_numpy()[people].mean(axis=0)
        step = (row["goal"] - row["before"]) / (gamma + data["reach"])
        direction = np.array([one["direction"] for one in data["features"]])
        np.testing.assert_allclose(row["cells"] + step * direction, moved, rtol=1e-3, atol=1e-5)

    def test_how_far_features_move(self, path, model):
        page, _ = report(path, model)
        data = page.data
        z, gamma = Floor(250)(Y[TEST]), data["gammas"][9]
        moved = best_response(X[TEST], z, model, gamma=gamma) - X[TEST]
        for one in data["features"]:
            far = abs(one["direction"]) * data["gap"] / (gamma + data["reach"])
            assert far == pytest.approx(np.abs(moved[one["name"]]).mean(), rel=1e-4)

    def test_words(self, path, model):
        page, _ = report(path, model, title="A <title>", notes=["one & two"])
        for part in (
            "A <title>",
            "one & two",
            "They would like at least 250.",
            "Verify bmi first",
            "optimal",
            "proved, among predictors that use no null space",
            "at most ",
            "International Conference on Machine Learning",
            "estimate-gamma",
        ):
            assert part in page.text

    @pytest.mark.parametrize(
        "make",
        [
            lambda: StackelbergRegressor(pull=Between(0.2, 0.7), goal=Floor(250)),
            lambda: StackelbergRegressor(Population.mixed(1e6, honest=0.3), goal=Scale(1.5)),
            lambda: StackelbergRegressorCV(goal=Floor(250), cv=3),
            lambda: StackelbergRegressor(goal=Shift(50, upper=300), feature_cost={"bmi": np.inf}),
            lambda: make_pipeline(StandardScaler(), StackelbergRegressor(goal=Floor(250))),
        ],
    )
    def test_every_model(self, path, make):
        page, text = report(path, make().fit(X[TRAIN], Y[TRAIN]))
        assert len(text) < 1_000_000
        assert len(page.data["features"]) == 10

    def test_goals_by_row(self, path):
        z = np.maximum(Y, 250)
        model = StackelbergRegressor().fit(X[TRAIN], Y[TRAIN], z=z[TRAIN])
        page, _ = report(path, model, z=z[TEST])
        assert "known row by row" in page.text
        with pytest.raises(ValueError, match="z"):
            report(path, model)

    def test_categories(self, path):
        frame = X[TRAIN].assign(place=np.where(np.arange(300) % 3, "north", EVIL))
        encode = make_column_transformer(
            (OneHotEncoder(sparse_output=False), ["place"]), remainder="passthrough"
        ).set_output(transform="pandas")
        cost = np.r_[np.inf, np.inf, np.ones(10)]
        model = make_pipeline(encode, StackelbergRegressor(goal=Floor(250), feature_cost=cost))
        page, text = report(path, model.fit(frame, Y[TRAIN]), frame, Y[TRAIN])
        assert "2 of 12 features cannot be changed" in page.text
        assert EVIL not in text


class TestClasses:
    @pytest.mark.parametrize("goal", [Wants("benign"), Opposite()])
    def test_accuracy(self, path, goal):
        rows, y = load_breast_cancer(return_X_y=True)
        rows, y = StandardScaler().fit_transform(rows), np.array(["malignant", "benign"])[y]
        model = StackelbergClassifier(goal=goal).fit(rows[:400], y[:400])
        page, text = report(path, model, rows[400:], y[400:])
        ours = page.data["models"][-1]
        assert ours["honest"] == pytest.approx(model.score(rows[400:], y[400:]), abs=1e-5)
        gamma = page.data["gammas"][12]
        moved = model.predict_attacked(rows[400:], y=y[400:], gamma=gamma)
        assert ours["attacked"][12] == pytest.approx(np.mean(moved == y[400:]), abs=1e-5)
        assert page.data["models"][0]["name"] == "logistic regression"
        assert page.data["classes"] == ["benign", "malignant"]
        assert "y from z alone" not in page.text.partition("What to do next")[0]
        assert len(text) < 200_000


class TestSafe:
    def test_names_do_nothing(self, path):
        frame = X.rename(columns={"bmi": EVIL, "s5": "{{ 7*7 }}", "bp": '" onload="x'})
        model = StackelbergRegressor(goal=Floor(250)).fit(frame[TRAIN], Y[TRAIN])
        page, text = report(
            path,
            model,
            frame[TEST],
            Y[TEST],
            title=EVIL,
            notes=[EVIL],
            rows=3,
            models={EVIL: (np.ones(10), 1.0)},
        )
        assert EVIL not in text
        assert "49" not in [one["name"] for one in page.data["features"]]
        assert EVIL in [one["name"] for one in page.data["features"]]
        assert EVIL in page.text
        assert len(page.scripts) == 2
        assert not any(name.startswith("on") for _, given in page.tags for name in given)

    def test_it_calls_nobody(self, path, model):
        page, text = report(path, model)
        for tag, given in page.tags:
            for name in ("src", "href", "action", "data"):
                value = given.get(name)
                assert value is None or value.startswith(("#", "data:,")), (tag, value)
        assert not re.search(r"url\(|@import|fetch\(|XMLHttp|WebSocket|innerHTML|eval\(", text)
        policy = [given for _, given in page.tags if "http-equiv" in given]
        assert [one["content"][:18] for one in policy] == ["default-src 'none'"]

    def test_nobodys_row_is_in_it(self, path, model):
        page, _ = report(path, model)
        assert all("mean of" in one["label"] for one in page.data["rows"])
        own, _ = report(path, model, rows=4)
        labels = [one["label"] for one in own.data["rows"]][5:]
        assert len(labels) == 4
        numbers = [int(label.removeprefix("Row ")) - 1 for label in labels]
        ranked = np.argsort(model.predict(X[TEST]), kind="stable")
        assert numbers[0] == ranked[0]
        assert numbers[-1] == ranked[-1]

    def test_many_features_stay_below_a_megabyte(self, path):
        rng = np.random.default_rng(0)
        rows = pd.DataFrame(
            rng.normal(size=(400, 150)), columns=[f"feature {i}" * 5 for i in range(150)]
        )
        y = rows.to_numpy() @ rng.normal(size=150)
        model = StackelbergRegressor(goal=Floor(5.0)).fit(rows, y)
        page, text = report(path, model, rows, y, rows=200)
        assert len(text.encode()) < 1_000_000
        assert page.data["more"] == 110

    def test_labels_and_headings(self, path, model):
        page, _ = report(path, model)
        named = {given["for"] for tag, given in page.tags if tag == "label"}
        controls = [given for tag, given in page.tags if tag in ("input", "select")]
        assert {given["id"] for given in controls} == named == {"pull", "share", "row"}
        ids = [given["id"] for _, given in page.tags if "id" in given]
        assert len(ids) == len(set(ids))
        for _, given in page.tags:
            assert given.get("aria-labelledby", "h-fit") in ids
        assert [tag for tag, _ in page.tags if tag == "h1"] == ["h1"]
        assert ("html", {"lang": "en"}) in page.tags


class TestRefused:
    @pytest.mark.parametrize("rows", [-1, 201, 1.5, True, "all"])
    def test_rows(self, path, model, rows):
        with pytest.raises(ValueError, match="rows must be a whole number from 0 to 200"):
            report(path, model, rows=rows)
        assert not path.exists()

    def test_models(self, path):
        with pytest.raises(TypeError, match="model must be one of spgls"):
            report(path, LinearRegression().fit(X, Y))

    def test_nothing_to_report(self, path):
        still = StackelbergRegressor(goal=Floor(250), feature_cost=np.full(10, np.inf))
        with pytest.raises(ValueError, match="nothing to report"):
            report(path, still.fit(X, Y))

    def test_without_the_extra(self, path, model, monkeypatch):
        monkeypatch.setitem(__import__("sys").modules, "jinja2", None)
        with pytest.raises(ImportError, match=r"spgls\[report\]"):
            report(path, model)
        assert not path.exists()
