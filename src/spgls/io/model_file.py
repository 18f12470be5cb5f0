"""Fitted models in files that are whole or refused, and that run no code.

A file is a line that says what it is, a line of JSON with versions, the model as skops writes it,
and the SHA-256 of all before it. skops alone loads some flipped bits in silence.
"""

from __future__ import annotations

import json
from hashlib import sha256
from importlib import import_module
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np
import sklearn
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from spgls.base.files import write_whole
from spgls.base.validation import describe
from spgls.estimators.faced import linear_parts
from spgls.estimators.linear_game import LinearGame
from spgls.estimators.placed import as_numpy
from spgls.game.costs import one_per_column
from spgls.io.trusted import TRUSTED, refusal

__all__ = ["ModelFileError", "load_model", "save_model"]

#: The first line.
MAGIC = b"spgls model\n"
#: What this version writes. It reads all formats up to this one.
FORMAT = 1
#: Longest line of versions, and length of the SHA-256.
_HEADER, _DIGEST = 4096, 32


class ModelFileError(ValueError):
    """A file is not a model, not a whole one, or not one that this version may load."""


def save_model(model: Any, path: str | PathLike[str]) -> None:
    """Write a fitted model to a file that :func:`load_model` reads.

    Parameters
    ----------
    model : estimator
        A fitted model of ours, or a Pipeline of scikit-learn's that ends in one.
    path : str or path
        Where to write; by custom a name in ``.spgls``. It is written whole or not at all.

    Raises
    ------
    TypeError
        The model holds something that would not be loaded, such as a function of your own as its
        goal.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from spgls import Floor, StackelbergRegressor, load_model, save_model
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = StackelbergRegressor(goal=Floor(250)).fit(X, y)
    >>> save_model(model, "model.spgls")  # doctest: +SKIP
    >>> load_model("model.spgls").predict(X[:1])  # doctest: +SKIP
    array([202.3])
    """
    _, last, _ = linear_parts(model)
    if not isinstance(last, LinearGame):
        raise TypeError(
            "model must be one of spgls, or a Pipeline that ends in one; got "
            f"{describe(model)}. skops keeps other models."
        )
    check_is_fitted(model)
    content = _skops().dumps(model)
    with ZipFile(BytesIO(content)) as archive:
        strange = refusal(archive) or _unknown(content)
    if strange is not None:
        raise TypeError(
            f"model cannot be saved: it holds {strange}, which load_model would refuse. A goal "
            "must be one of spgls, such as Floor(250), and a solver a name or an object of spgls."
        )
    versions = {"format": FORMAT, "spgls": _version(), "scikit-learn": sklearn.__version__}
    body = MAGIC + json.dumps(versions).encode() + b"\n" + content
    write_whole(Path(path), body + sha256(body).digest())


def load_model(path: str | PathLike[str]) -> Any:
    """Read a model that :func:`save_model` wrote.

    The file is checked as a whole before anything in it is looked at, and it can hold nothing but
    the types in a list of our own: loading runs no code of the file's.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    estimator

    Raises
    ------
    ModelFileError
        The file is something else, damaged, of a newer version, or holds what is not to be loaded.
    """
    content = Path(path).read_bytes()
    versions, body = _unpack(content, str(path))
    try:
        with ZipFile(BytesIO(body)) as archive:
            strange = refusal(archive)
    except (BadZipFile, KeyError, ValueError, RecursionError, AttributeError) as error:
        raise ModelFileError(f"{path} is damaged: its model cannot be read ({error}).") from None
    strange = strange or _unknown(body)
    if strange is not None:
        raise ModelFileError(f"{path} is refused: it holds {strange}, which no model of ours does.")
    try:
        model = _skops().loads(body, trusted=list(TRUSTED))
        _check_whole(model)
    except Exception as error:
        # Whatever a file makes skops or scikit-learn stumble over, it is not a model here.
        made = ", ".join(f"{name} {version}" for name, version in versions.items())
        raise ModelFileError(
            f"{path} could not be loaded ({type(error).__name__}: {error}). It was written with "
            f"{made}; here are spgls {_version()} and scikit-learn {sklearn.__version__}."
        ) from None
    return model


def _unpack(content: bytes, path: str) -> tuple[dict[str, Any], bytes]:
    """Versions and model of a file, once it is known to be whole."""
    if not content.startswith(MAGIC):
        what = "is empty" if not content else "is not a model of spgls, or is damaged at its start"
        raise ModelFileError(f"{path} {what}. save_model, or spgls fit --model, writes one.")
    end = content.find(b"\n", len(MAGIC), len(MAGIC) + _HEADER)
    try:
        versions = json.loads(content[len(MAGIC) : end])
        number = versions["format"]
        if end < 0 or type(number) is not int or number < 1:
            raise ValueError
    except (ValueError, TypeError, KeyError, RecursionError):
        raise ModelFileError(f"{path} is damaged: its second line is not one of ours.") from None
    if number > FORMAT:
        raise ModelFileError(
            f"{path} is of format {number}, and this spgls {_version()} reads up to {FORMAT}: it "
            "is from a newer spgls, or damaged. Install the newest spgls."
        )
    body, digest = content[:-_DIGEST], content[-_DIGEST:]
    if sha256(body).digest() != digest:
        raise ModelFileError(
            f"{path} is damaged: its SHA-256 is not that of its content. Copy it again, or save "
            "the model again."
        )
    return versions, body[end + 1 :]


def _unknown(content: bytes) -> str | None:
    """Types that neither we nor skops know to be harmless, in words."""
    try:
        found = set(_skops().get_untrusted_types(data=content)) - set(TRUSTED)
    except Exception as error:
        return f"what skops cannot read ({type(error).__name__}: {error})"
    return f"the type {sorted(found)[0]}" if found else None


def _check_whole(model: Any) -> None:
    """Refuse a tree of allowed types that is no fitted model of ours."""
    try:
        _, last, coef = linear_parts(model)
    except NotFittedError:
        raise ValueError("it is not fitted") from None
    if not isinstance(last, LinearGame):
        raise TypeError("it is not a model of spgls")
    cost = one_per_column(as_numpy(last.feature_cost_), len(coef))
    numbers = np.append(coef, float(last.intercept_))
    if not np.isfinite(numbers).all() or cost.shape != coef.shape or not (cost > 0.0).all():
        raise ValueError("its coefficients or its costs are not numbers")


def _version() -> str:
    """Ours, which the package knows only once all of it is imported."""
    return str(import_module("spgls").__version__)


def _skops() -> Any:
    try:
        return import_module("skops.io")
    except ImportError:
        raise ImportError("Saved models need skops: pip install 'spgls[io]'.") from None
