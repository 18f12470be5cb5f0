"""Take the pictures of reports in the documentation: Chromium, and SPGLS_DATA, are needed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).parent / "_static"
FITS = {
    "wine": ("winequality-red.csv", "--y", "quality", "--floor", "7"),
    "insurance": ("insurance.csv", "--y", "charges", "--cap", "10000"),
}
#: Colour scheme, width, height, and how far down the page starts.
VIEWS = {
    "light": ("light", 1000, 1050, "#h-errors"),
    "dark": ("dark", 1000, 1050, "#h-features"),
    "phone": ("light", 390, 844, "#h-errors"),
}


def main() -> None:
    """Fit, write the reports, and photograph them."""
    # Tests import every script, also where there is no browser.
    from playwright.sync_api import sync_playwright

    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))))
    with TemporaryDirectory() as folder, sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name, (data, *words) in FITS.items():
            page = Path(folder) / f"{name}.html"
            path = Path(os.environ["SPGLS_DATA"]) / data
            line = [sys.executable, "-m", "spgls", "fit", path, *words, "--report", page]
            subprocess.run(line, check=True, stdout=subprocess.DEVNULL)
            for view, (scheme, width, height, start) in VIEWS.items():
                size = {"width": width, "height": height}
                shown = browser.new_page(viewport=size, color_scheme=scheme)
                shown.goto(page.as_uri())
                shown.locator(start).evaluate("node => window.scrollTo(0, node.offsetTop - 16)")
                shown.screenshot(path=HERE / f"report-{name}-{view}.png")
        browser.close()


if __name__ == "__main__":
    main()
