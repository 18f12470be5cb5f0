"""Fitted models as ONNX graphs, for programs that are not in Python."""

from __future__ import annotations

import json
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.utils.validation import check_is_fitted

from spgls.base.files import write_whole
from spgls.base.validation import describe
from spgls.estimators.faced import linear_parts, model_columns
from spgls.estimators.linear_game import LinearGame

__all__ = ["export_onnx"]

#: Version of the operators: the first that compares texts, of 2023.
_OPSET = 19
#: The name of the rows, where columns do not come one by one.
_ROWS = "X"


def export_onnx(model: Any, path: str | PathLike[str]) -> None:
    """Write a fitted model as an ONNX graph in double precision.

    The graph has an input ``X``, rows as the model takes them, and an output ``prediction``; that
    of a classifier has ``score``, its ``decision_function``, and ``label``. Names of features are
    in the metadata as ``feature_names``. The steps of a Pipeline before the model are converted by
    skl2onnx; where it wants columns one by one, each is an input of its own name.

    Parameters
    ----------
    model : estimator
        A fitted model of ours, or a Pipeline that ends in one.
    path : str or path
        Where to write; it is written whole or not at all.

    Raises
    ------
    TypeError
        The model is not one of ours, or skl2onnx cannot convert a step before it.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from spgls import Floor, StackelbergRegressor, export_onnx
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = StackelbergRegressor(goal=Floor(250)).fit(X, y)
    >>> export_onnx(model, "model.onnx")  # doctest: +SKIP
    """
    head, last, coef = linear_parts(model)
    if not isinstance(last, LinearGame):
        raise TypeError(
            "model must be one of spgls, or a Pipeline that ends in one; got "
            f"{describe(model)}. skl2onnx exports others."
        )
    check_is_fitted(model)
    onnx = _needs("onnx", "Exporting to ONNX")
    if head is None or len(head) == 0:
        graph = _empty_graph(onnx, len(coef))
        seen = _ROWS
    else:
        graph = _converted(onnx, head)
        seen = graph.graph.output[0].name
        del graph.graph.output[:]
    names = model_columns(head, last, None) or [f"x{j}" for j in range(len(coef))]
    _append(onnx, graph.graph, seen, last, coef)
    inputs = [one.name for one in graph.graph.input]
    facts = {"feature_names": json.dumps(names), "inputs": json.dumps(inputs), "made_by": "spgls"}
    onnx.helper.set_model_props(graph, facts)
    try:
        # With types: some converters mix single and double precision, which no runtime accepts.
        onnx.checker.check_model(graph, full_check=True)
    except Exception as error:
        raise _unconvertible(error) from None
    write_whole(Path(path), graph.SerializeToString())


def _empty_graph(onnx: Any, columns: int) -> Any:
    """A graph whose rows are not touched yet."""
    helper, double = onnx.helper, onnx.TensorProto.DOUBLE
    rows = helper.make_tensor_value_info(_ROWS, double, [None, columns])
    graph = helper.make_graph([], "spgls", [rows], [])
    # The oldest form that knows these operators, for old runtimes.
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=9, producer_name="spgls"
    )


def _append(onnx: Any, graph: Any, seen: str, last: Any, coef: Any) -> None:
    """``w'x + b`` behind what the model sees, and of a classifier its decision."""
    helper, array = onnx.helper, onnx.numpy_helper.from_array
    classes = getattr(last, "classes_", None)
    cut = 0.0 if classes is None else float(last.threshold_)
    constants = {
        "spgls_coef": coef.reshape(-1, 1),
        "spgls_intercept": np.array([float(last.intercept_) - cut]),
        "spgls_flat": np.array([-1], dtype=np.int64),
    }
    said = "prediction" if classes is None else "score"
    nodes = [
        helper.make_node("Cast", [seen], ["spgls_rows"], to=onnx.TensorProto.DOUBLE),
        helper.make_node("MatMul", ["spgls_rows", "spgls_coef"], ["spgls_product"]),
        helper.make_node("Add", ["spgls_product", "spgls_intercept"], ["spgls_column"]),
        helper.make_node("Reshape", ["spgls_column", "spgls_flat"], [said]),
    ]
    outputs = [helper.make_tensor_value_info(said, onnx.TensorProto.DOUBLE, [None])]
    if classes is not None:
        labels = classes.astype(object if classes.dtype.kind in "OU" else _width(classes))
        constants |= {"spgls_cut": np.zeros(()), "spgls_classes": labels}
        nodes += [
            helper.make_node("Greater", [said, "spgls_cut"], ["spgls_second"]),
            helper.make_node("Cast", ["spgls_second"], ["spgls_at"], to=onnx.TensorProto.INT64),
            helper.make_node("Gather", ["spgls_classes", "spgls_at"], ["label"]),
        ]
        kind = onnx.helper.np_dtype_to_tensor_dtype(labels.dtype)
        outputs.append(helper.make_tensor_value_info("label", kind, [None]))
    graph.node.extend(nodes)
    graph.output.extend(outputs)
    graph.initializer.extend([array(value, name) for name, value in constants.items()])


def _width(classes: Any) -> Any:
    """The type that classes have in a graph."""
    return {"b": np.bool_, "f": np.float64}.get(classes.dtype.kind, np.int64)


def _converted(onnx: Any, head: Any) -> Any:
    """The steps before the model, by skl2onnx."""
    skl2onnx = _needs("skl2onnx", "Exporting a Pipeline to ONNX")
    try:
        graph = skl2onnx.convert_sklearn(
            head,
            initial_types=_inputs(head),
            target_opset={"": _OPSET, "ai.onnx.ml": 3},
            custom_conversion_functions={SimpleImputer: _convert_imputer},
            custom_shape_calculators={SimpleImputer: _shape_of_imputed},
        )
    except Exception as error:
        # It has an exception of its own for every reason.
        raise _unconvertible(error) from None
    return graph


def _unconvertible(error: Exception) -> TypeError:
    said = " ".join(str(error).split())
    return TypeError(
        "model cannot be exported: skl2onnx does not convert the steps before it in double "
        f"precision ({type(error).__name__}: {said[:200]}). Export the last step alone, or use "
        "steps that skl2onnx knows."
    )


def _shape_of_imputed(operator: Any) -> None:
    """Imputed columns are of the kind that they were."""
    given, width = operator.inputs[0].type, len(operator.raw_operator.statistics_)
    operator.outputs[0].type = type(given)([given.shape[0], width])


def _convert_imputer(scope: Any, operator: Any, container: Any) -> None:
    """Fill what is missing in double precision, where ONNX's own operator knows single only.

    A missing text is the empty one: ONNX knows no other.
    """
    imputer, rows = operator.raw_operator, operator.inputs[0].full_name
    filled = np.asarray(imputer.statistics_)
    if imputer.add_indicator or (filled.dtype.kind == "f" and np.isnan(filled).any()):
        raise TypeError("SimpleImputer adds or drops columns")
    text = type(operator.inputs[0].type).__name__ == "StringTensorType"
    tensor = import_module("onnx").TensorProto
    kind = tensor.STRING if text else tensor.DOUBLE
    value, missing = scope.get_unique_variable_name("fill"), scope.get_unique_variable_name("gone")
    cells = [str(one).encode() for one in filled] if text else filled.astype(np.float64).tolist()
    container.add_initializer(value, kind, [1, len(filled)], cells)
    if text:
        empty = scope.get_unique_variable_name("empty")
        container.add_initializer(empty, kind, [1], [b""])
        container.add_node("Equal", [rows, empty], missing, op_version=_OPSET)
    else:
        container.add_node("IsNaN", [rows], missing, op_version=13)
    container.add_node(
        "Where", [missing, value, rows], operator.outputs[0].full_name, op_version=16
    )


def _inputs(head: Any) -> list[tuple[str, Any]]:
    """Inputs of the steps before the model: all rows at once, or columns of numbers and of text."""
    types = import_module("skl2onnx.common.data_types")
    first = head.steps[0][1]
    if not hasattr(first, "transformers_"):
        return [(_ROWS, types.DoubleTensorType([None, int(first.n_features_in_)]))]
    names = [str(name) for name in getattr(first, "feature_names_in_", [])]
    if not names:
        raise TypeError("columns have no names; fit the Pipeline to a data frame")
    text = {
        str(column)
        for _, step, columns in first.transformers_
        if _reads_text(step)
        for column in columns
    }
    return [
        (name, (types.StringTensorType if name in text else types.DoubleTensorType)([None, 1]))
        for name in names
    ]


def _reads_text(step: Any) -> bool:
    """Whether a transformer of columns was fitted to text."""
    for one in dict(getattr(step, "steps", [("", step)])).values():
        for found in getattr(one, "categories_", []):
            if np.asarray(found).dtype.kind in "OUST":
                return True
    return False


def _needs(package: str, what: str) -> Any:
    try:
        return import_module(package)
    except ImportError:
        raise ImportError(f"{what} needs {package}: pip install 'spgls[io]'.") from None
