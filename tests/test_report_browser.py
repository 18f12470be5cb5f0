"""The report in a browser: keyboard, rows, tables, contrast, labels, no error, no request."""

from __future__ import annotations

import contextlib
import shutil

import numpy as np
import pytest
from sklearn.datasets import load_diabetes

from spgls import Floor, StackelbergClassifier, StackelbergRegressor, Wants, write_report

pytest.importorskip("jinja2")
pytest.importorskip("pandas")
playwright = pytest.importorskip("playwright.sync_api", reason="`make browser` installs playwright")
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: `make browser`")

X, Y = load_diabetes(return_X_y=True, as_frame=True)
EVIL = "</script><script>window.hacked = true</script><b>bmi"
#: Colours in use, and what lies behind each text.
CONTRAST = """
() => {
  const rgb = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const light = (c) => {
    const [r, g, b] = c.slice(0, 3).map((v) => v / 255)
      .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (node) => {
    for (; node; node = node.parentElement) {
      const c = rgb(getComputedStyle(node).backgroundColor);
      if (c.length === 3 || c[3] > 0) return c;
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const node of document.querySelectorAll("body *")) {
    const own = [...node.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    const line = node.classList.contains("curve");
    if ((!own && !line) || ["SCRIPT", "STYLE", "NOSCRIPT"].includes(node.tagName)) continue;
    const style = getComputedStyle(node);
    const drawn = node.namespaceURI.endsWith("svg");
    const colour = line ? style.stroke : drawn ? style.fill : style.color;
    const [a, b] = [light(rgb(colour)), light(behind(node))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    found.push([ratio, line ? "line" : "text", node.textContent.trim().slice(0, 30)]);
  }
  return found;
}
"""


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as started:
        chrome = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chrome
        chrome.close()


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    frame = X.rename(columns={"bmi": EVIL})
    model = StackelbergRegressor(goal=Floor(250)).fit(frame[:300], Y[:300])
    write_report(model, frame[300:], Y[300:], folder / "numbers.html", rows=3, title=EVIL)
    classes = np.where(Y > 140, "ill", "well")
    decider = StackelbergClassifier(goal=Wants("ill")).fit(frame[:300], classes[:300])
    write_report(decider, frame[300:], classes[300:], folder / "classes.html")
    return folder


@contextlib.contextmanager
def visits(browser, folder, allowed=()):
    """Open pages of a folder without a network, and in the end see that nothing went wrong.

    Messages of the kinds that are allowed, such as "log", may be said on the console.
    """
    contexts, said, asked = [], [], []

    def run(name, width=1100, scheme="light"):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda told: told.type in allowed or said.append(told.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto((folder / f"{name}.html").as_uri())
        return page

    yield run, contexts, asked
    for context in contexts:
        context.close()
    assert said == []
    assert all(url.startswith(("file:", "data:")) for url in asked)


@pytest.fixture
def visit(browser, reports):
    """Open a report, which needs no other file."""
    with visits(browser, reports) as (run, contexts, asked):
        yield run
    assert len([url for url in asked if url.startswith("file:")]) == len(contexts)


def cells(page, table):
    return [line.split("\t") for line in page.locator(f"#{table} tbody").inner_text().split("\n")]


@pytest.mark.parametrize("name", ["numbers", "classes"])
def test_sliders_by_keyboard(visit, name):
    page = visit(name)
    # The skip link, the summary of nothing, then the first slider.
    for _ in range(10):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "pull":
            break
    assert page.evaluate("document.activeElement.id") == "pull"
    before = cells(page, "errors"), page.locator("#pull-said").inner_text()
    curves = page.locator("#chart-share svg").inner_html()
    moves = cells(page, "features")
    page.keyboard.press("End")
    assert page.locator("#pull-said").inner_text().startswith("95%")
    assert page.locator("#pull").get_attribute("aria-valuetext").startswith("95%")
    assert cells(page, "errors") != before[0]
    assert page.locator("#chart-share svg").inner_html() != curves
    assert cells(page, "features") != moves
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    assert page.locator("#pull-said").inner_text().startswith("10%")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "share"
    page.keyboard.press("Home")
    honest, mixed = (-4, -2) if name == "numbers" else (-3, -1)
    for line in cells(page, "errors")[:2]:
        assert line[honest] == line[mixed]
    page.keyboard.press("End")
    for line in cells(page, "errors")[:2]:
        assert line[honest + 1] == line[mixed]
    assert "Where 100% of people react" in page.locator("#said").inner_text()


def test_the_page_computes_what_the_library_does(visit, reports):
    page = visit("numbers")
    frame = X.rename(columns={"bmi": EVIL})
    model = StackelbergRegressor(goal=Floor(250)).fit(frame[:300], Y[:300])
    rows, y = frame[300:], Y[300:]
    gamma = page.evaluate("JSON.parse(document.getElementById('data').textContent).gammas[9]")
    page.locator("#pull").fill("9")
    page.locator("#share").fill("30")
    honest = np.mean((model.predict(rows) - y) ** 2)
    attacked = np.mean((model.predict_attacked(rows, y=y, gamma=gamma) - y) ** 2)
    ours = cells(page, "errors")[2]
    assert ours[0] == "spgls"
    assert float(ours[4]) == pytest.approx(np.sqrt(0.7 * honest + 0.3 * attacked), rel=2e-4)
    moved = model.best_response(rows, y=y, gamma=gamma)
    told = {line[0]: line[2] for line in cells(page, "features")}
    for name, far in np.abs(moved - rows).mean().items():
        assert float(told[name].replace("−", "-")) == pytest.approx(far, rel=5e-3)


def test_picking_rows(visit):
    page = visit("numbers")
    seen = set()
    for at in range(8):
        page.locator("#row").select_option(str(at))
        table = page.locator("#row-table tbody").inner_text()
        assert table.count("\n") == 9
        seen.add(table)
        assert "The model says" in page.locator("#row-said").inner_text()
    assert len(seen) == 8
    page.locator("#row").focus()
    page.keyboard.press("Home")
    assert page.locator("#row").input_value() == "0"


def test_names_are_shown_and_do_nothing(visit):
    page = visit("numbers")
    assert page.evaluate("window.hacked") is None
    assert page.locator("h1").inner_text() == EVIL
    assert EVIL in page.locator("#features").inner_text()
    assert page.locator("#features b").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["numbers", "classes"])
def test_contrast(visit, name, scheme):
    page = visit(name, scheme=scheme)
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
    assert dark == (scheme == "dark")
    found = page.evaluate(CONTRAST)
    assert len(found) > 100
    assert sum(kind == "line" for _, kind, _ in found) >= 4
    # WCAG AA: 4.5 for text, 3 for graphics.
    assert [one for one in found if one[0] < (4.5 if one[1] == "text" else 3.0)] == []


@pytest.mark.parametrize("width", [320, 390, 1100])
def test_no_width_is_too_narrow(visit, width):
    page = visit("numbers", width=width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_labels(visit):
    page = visit("numbers")
    for control in page.locator("input, select").all():
        assert control.evaluate("node => node.labels.length") == 1
    for picture in page.locator("svg").all():
        assert picture.get_attribute("role") == "img"
        titled = picture.get_attribute("aria-labelledby")
        assert page.locator(f"#{titled}").inner_text()
    for table in page.locator("table").all():
        assert table.locator("caption").inner_text()
        assert table.locator("th[scope=col]").count() >= 3
        assert table.locator("th[scope=row]").count() >= 2
    names = page.evaluate(
        "[...document.querySelectorAll('[role=region]')]"
        ".map(node => node.getAttribute('aria-labelledby'))"
    )
    assert len(names) == len(set(names)) == 4


def test_print(visit):
    page = visit("numbers", scheme="dark")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.pdf(format="A4").startswith(b"%PDF")
