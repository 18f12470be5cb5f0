"""Wheel and sdist, installed as users install them: into an environment without extras."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest

import spgls

packaging = pytest.importorskip("packaging.requirements", reason="packaging is not installed")
for module in ("build", "hatchling", "pip"):
    pytest.importorskip(module, reason=f"{module}, which builds or installs, is not installed")

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[1]
#: What comes with extras and test groups, and must not be there without them.
EXTRAS = (
    "typer",
    "rich",
    "matplotlib",
    "clarabel",
    "scs",
    "pooch",
    "openpyxl",
    "pandas",
    "pytest",
    "pyarrow",
    "h5py",
    "zarr",
    "dask",
    "distributed",
)
FIT = f"""
import importlib.util
import numpy as np
from sklearn.datasets import load_diabetes
import spgls
assert "site-packages" in spgls.__file__, spgls.__file__
extras = [name for name in {EXTRAS} if importlib.util.find_spec(name)]
assert not extras, extras
X, y = load_diabetes(return_X_y=True)
model = spgls.StackelbergRegressor(goal=spgls.Floor(250)).fit(X, y)
assert model.certificate_.relative_gap <= 1e-9
print(spgls.__version__, np.isfinite(model.predict(X)).all())
"""


def _run(*words, **options):
    run = subprocess.run([*map(str, words)], capture_output=True, text=True, check=False, **options)
    return run.returncode, run.stdout.strip(), run.stderr.strip()


def _do(*words, **options):
    code, out, errors = _run(*words, **options)
    assert code == 0, out + errors
    return out


def _with_dependencies(names):
    """Installed distributions of these names and of all that they need, without extras."""
    found, left = {}, list(names)
    while left:
        name = left.pop()
        if name in found:
            continue
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:
            pytest.skip(f"{name} is not installed")
        for text in found[name].requires or ():
            requirement = packaging.Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                left.append(requirement.name)
    return found.values()


def _link(names, folder):
    """Make distributions, and all that they need, importable from a folder."""
    folder.mkdir(exist_ok=True)
    for one in _with_dependencies(names):
        tops = {file.parts[0] for file in one.files if file.parts[0] not in ("..", "__pycache__")}
        for top in tops:
            if not (folder / top).exists():
                (folder / top).symlink_to(one.locate_file(top))


class Environment:
    """A new virtual environment that holds spgls and what it declares to need."""

    def __init__(self, folder, built, backend):
        _do(sys.executable, "-m", "venv", "--without-pip", folder)
        scripts = folder / ("Scripts" if sys.platform == "win32" else "bin")
        self.python, self.spgls = scripts / "python", scripts / "spgls"
        where = "import sysconfig; print(sysconfig.get_path('purelib'))"
        self.packages = Path(_do(self.python, "-c", where))
        needed = [packaging.Requirement(text) for text in distribution("spgls").requires]
        _link([one.name for one in needed if one.marker is None], self.packages)
        # Dependencies are looked for, and none may be missing; the backend is there to build only.
        pip = (sys.executable, "-m", "pip", "--python", self.python, "install", "-q")
        env = {"PYTHONPATH": str(backend), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        _do(*pip, "--no-index", "--no-build-isolation", built, env=os.environ | env)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Sdist, and the wheel built from that, without a network."""
    folder = tmp_path_factory.mktemp("built")
    _do(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT)
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return {"wheel": wheel, "sdist": sdist}


@pytest.fixture(scope="module")
def install(built, tmp_path_factory):
    folder = tmp_path_factory.mktemp("environments")
    try:
        _link(["hatchling"], folder / "backend")
    except OSError as error:
        pytest.skip(f"this system does not let us make links: {error}")
    return lambda kind: Environment(folder / kind, built[kind], folder / "backend")


def _modules(names, start):
    return sorted(n.removeprefix(start) for n in names if n.startswith(start) and n.endswith(".py"))


def test_what_is_in_them(built):
    source = [path.relative_to(ROOT).as_posix() for path in (ROOT / "src").rglob("*.py")]
    wheel = zipfile.ZipFile(built["wheel"]).namelist()
    info = f"spgls-{spgls.__version__}.dist-info/"
    assert all(name.startswith(("spgls/", info)) for name in wheel)
    assert {"spgls/py.typed", f"{info}licenses/LICENSE"} <= set(wheel)
    assert _modules(wheel, "spgls/") == _modules(source, "src/spgls/")
    with tarfile.open(built["sdist"]) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    assert _modules(names, "src/") == _modules(source, "src/")
    assert {"tests/test_installed.py", "docs/index.md", "benchmarks/harness.py"} <= set(names)
    assert {"pyproject.toml", "README.md", "LICENSE", "src/spgls/py.typed"} <= set(names)
    assert not [n for n in names if n.startswith((".ci", ".github", ".venv", ".pre-commit"))]


@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_installed_without_extras(kind, install, tmp_path):
    there = install(kind)
    assert _do(there.python, "-I", "-c", FIT, cwd=tmp_path) == f"{spgls.__version__} True"
    for words in (("--version",), ("demo",), ()):
        code, out, errors = _run(there.spgls, *words, cwd=tmp_path)
        assert (code, out) == (1, "")
        assert errors == (
            "The command line needs typer. Install it with: pip install 'spgls[cli,plot]'"
        )
    _link(["typer", "rich"], there.packages)
    assert _do(there.spgls, "--version") == f"spgls {spgls.__version__}"
    if kind == "wheel":
        code, out, errors = _run(there.spgls, "demo", cwd=tmp_path)
        assert code == 1
        assert "least squares" in out
        assert errors == "The picture needs matplotlib. Install it with: pip install 'spgls[plot]'"
