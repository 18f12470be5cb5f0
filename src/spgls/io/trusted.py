"""What a model file may hold: a list in our code, never in the file.

A model is a tree of objects by the names of their types. The tree is read as plain JSON and every
name is held against the list before anything is imported or built.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from zipfile import ZIP_STORED, ZipFile

__all__ = ["TRUSTED", "refusal"]

#: Types of ours that a fitted model holds, and two that skops does not know.
TRUSTED = (
    "numpy.dtype",
    "scipy.sparse._csr.csr_array",
    "spgls.estimators.classifier.StackelbergClassifier",
    "spgls.estimators.classifier_cv.StackelbergClassifierCV",
    "spgls.estimators.cv.StackelbergRegressorCV",
    "spgls.estimators.regressor.StackelbergRegressor",
    "spgls.game.actions.Actions",
    "spgls.game.actions.Switches",
    "spgls.game.between.Between",
    "spgls.game.classes.Opposite",
    "spgls.game.classes.Wants",
    "spgls.game.goals.Cap",
    "spgls.game.goals.Constant",
    "spgls.game.goals.Floor",
    "spgls.game.goals.Scale",
    "spgls.game.goals.Shift",
    "spgls.game.moves.Moves",
    "spgls.game.providers.Population",
    "spgls.reduction.added.Factor",
    "spgls.reduction.added.Moments",
    "spgls.solvers.auto.Auto",
    "spgls.solvers.krylov.solver.Krylov",
    "spgls.solvers.published.admm.ADMM",
    "spgls.solvers.published.bisection.Bisection",
    "spgls.solvers.published.gltr.GLTR",
    "spgls.solvers.published.ltrsr.LTRSR",
    "spgls.solvers.published.rtr_newton.RTRNewton",
    "spgls.solvers.published.sdp.SDP",
    "spgls.solvers.published.socp.SOCP",
    "spgls.solvers.solution.Stats",
    "spgls.solvers.spectral.Spectral",
    "spgls.solvers.statistics.GameStatistics",
    "spgls.sphere.certificate.Certificate",
)
#: Plain types of Python.
_PLAIN = {
    f"builtins.{name}"
    for name in ("bool", "dict", "float", "int", "list", "set", "slice", "str", "tuple")
}
#: Packages whose types and functions skops itself knows to be harmless, one by one.
_KNOWN = ("numpy", "scipy", "sklearn")
#: How skops builds an object. Others call functions with arguments from the file, or methods.
_LOADERS = {
    "DTypeNode",
    "DictNode",
    "FunctionNode",
    "JsonNode",
    "ListNode",
    "MaskedArrayNode",
    "NdArrayNode",
    "ObjectNode",
    "RandomGeneratorNode",
    "RandomStateNode",
    "SetNode",
    "SliceNode",
    "SparseMatrixNode",
    "TupleNode",
    "TypeNode",
}
#: Objects lie so deep at most; more would exhaust the stack.
_DEEPEST = 100


def refusal(archive: ZipFile) -> str | None:
    """Say what in an archive of skops is not to be loaded; None if all of it may be.

    Parameters
    ----------
    archive : ZipFile
        The archive, of which nothing has been loaded.
    """
    if any(entry.compress_type != ZIP_STORED for entry in archive.infolist()):
        return "compressed parts"
    for node in _nodes(json.loads(archive.read("schema.json")), 0):
        if node is None:
            return "objects within objects without end"
        name = f"{node['__module__']}.{node['__class__']}"
        package = str(node["__module__"]).split(".")[0]
        if name not in TRUSTED and name not in _PLAIN and package not in _KNOWN:
            return f"the type {name}"
        loader = node.get("__loader__")
        if loader not in _LOADERS:
            return f"{name} by way of {loader}"
        if loader == "FunctionNode" and package not in _KNOWN:
            return f"the function {name}"
    return None


def _nodes(part: Any, depth: int) -> Iterator[dict[str, Any] | None]:
    """Every object in a tree, and what it refers to by name; None where the tree is too deep."""
    if depth > _DEEPEST:
        yield None
        return
    if isinstance(part, dict):
        if "__class__" in part or "__module__" in part or "__loader__" in part:
            yield {"__module__": None, "__class__": None} | part
        for inner in part.values():
            yield from _nodes(inner, depth + 1)
    elif isinstance(part, list):
        for inner in part:
            yield from _nodes(inner, depth + 1)
