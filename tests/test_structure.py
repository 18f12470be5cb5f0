"""The house holds: who may import whom, one name for one idea, every module on its page."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "spgls"
PAGE = (ROOT / "docs" / "structure.md").read_text()

#: From the ground up: a package imports only from those before it.
LAYERS = (
    "base",
    "matrix",
    "streams",
    "game",
    "reduction",
    "sphere",
    "population",
    "solvers",
    "estimators",
    "study",
    "datasets",
    "display",
    "io",
    "report",
    "cli",
)
#: Compiled kernels take numbers and arrays one by one: numba has no cheap way to pass objects.
MANY_PARAMETERS = {"matrix/kernels.py"}
#: Called by scikit-learn, never by us.
CALLED_BY_OTHERS = {"_accept_sample_weight"}

FILES = sorted(PACKAGE.rglob("*.py"))
TREES = {path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text()) for path in FILES}


def imports(tree: ast.AST) -> list[tuple[str, str]]:
    """Modules of ours that are imported, and the names taken from each."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            if (node.module or "").split(".")[0] == "spgls":
                found += [(node.module or "", alias.name) for alias in node.names]
        elif isinstance(node, ast.Import):
            found += [(a.name, "") for a in node.names if a.name.split(".")[0] == "spgls"]
    return found


def test_the_layers_are_the_packages():
    packages = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    assert packages == set(LAYERS)
    files = {path.name for path in PACKAGE.glob("*.py")}
    assert files == {"__init__.py", "__main__.py"}


@pytest.mark.parametrize("name", TREES)
def test_a_package_imports_only_from_those_below(name):
    layer = name.split("/")[0]
    if layer not in LAYERS:
        return
    allowed = LAYERS[: LAYERS.index(layer) + 1]
    for module, _ in imports(TREES[name]):
        parts = module.split(".")
        # The public names, taken where a user would take them, belong to no layer.
        target = parts[1] if len(parts) > 1 else "study"
        assert target in allowed, f"{name} imports {module}"


@pytest.mark.parametrize("name", TREES)
def test_no_private_name_crosses_packages(name):
    for module, taken in imports(TREES[name]):
        home = "/".join(module.split(".")[1:])
        own = name.rsplit("/", 1)[0]
        private = [part for part in (*module.split("."), taken) if part.startswith("_")]
        private = [part for part in private if not part.startswith("__")]
        if private:
            assert home.startswith(own), f"{name} imports {module}.{taken}"


def test_modules_import_each_other_without_cycles():
    """At the top of a module; what a function imports when called is allowed to look back."""
    graph = {}
    for name, tree in TREES.items():
        graph[_module(name)] = {
            target
            for node in tree.body
            for module, taken in imports(node)
            if not isinstance(node, ast.If | ast.FunctionDef | ast.ClassDef)
            for target in _targets(module, taken)
        }
    done: set[str] = set()

    def visit(module: str, way: tuple[str, ...]) -> None:
        assert module not in way, " -> ".join((*way[way.index(module) :], module))
        if module in done:
            return
        for target in graph[module]:
            if target != module:
                visit(target, (*way, module))
        done.add(module)

    for module in graph:
        visit(module, ())


def _module(name: str) -> str:
    return "spgls." + name.removesuffix(".py").replace("/", ".").removesuffix(".__init__")


MODULES = {_module(name) for name in TREES}


def _targets(module: str, taken: str) -> list[str]:
    """What is executed: the submodule that is named, or the module itself."""
    whole = f"{module}.{taken}"
    return [whole] if whole in MODULES else [module] if module in MODULES else []


def test_no_two_modules_of_one_name():
    names = Counter(path.stem for path in FILES if not path.stem.startswith("__"))
    assert [name for name, count in names.items() if count > 1] == []


@pytest.mark.parametrize("name", TREES)
def test_every_module_is_on_the_structure_page(name):
    if name.endswith("__init__.py") or name == "__main__.py":
        assert f"`{name.rsplit('/', 1)[0]}/`" in PAGE or "/" not in name
    else:
        assert name.rsplit("/", 1)[1] in PAGE


@pytest.mark.parametrize("name", sorted(set(TREES) - MANY_PARAMETERS))
def test_at_most_seven_parameters_by_position(name):
    for node in ast.walk(TREES[name]):
        if isinstance(node, ast.FunctionDef):
            named = [a.arg for a in (*node.args.posonlyargs, *node.args.args)]
            count = len([one for one in named if one not in ("self", "cls")])
            assert count <= 7, f"{name}: {node.name} takes {count}"


def test_every_name_in_the_house_is_used():
    """A function, class or constant that nobody mentions is not there for anybody."""
    words = Counter()
    for folder in ("src", "tests", "benchmarks", "docs", "reproduction"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".py", ".md") and "_build" not in path.parts:
                words.update(_words(path.read_text()))
    lonely = [
        f"{name}: {node.name}"
        for name, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
        and not node.name.startswith("__")
        and node.name not in CALLED_BY_OTHERS
        and words[node.name] == 1
    ]
    assert lonely == []


def _words(text: str) -> list[str]:
    return "".join(c if c.isalnum() or c == "_" else " " for c in text).split()
