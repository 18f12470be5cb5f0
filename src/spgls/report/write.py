"""The page: a template, a style and a script, and the facts that they show."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from spgls.base.files import write_whole
from spgls.base.types import Classes, Table
from spgls.base.validation import describe
from spgls.estimators.faced import linear_parts
from spgls.estimators.linear_game import LinearGame
from spgls.game.goals import GoalLike
from spgls.report.facts import gather

__all__ = ["write_report"]

#: Rows of people's own that a report may hold: it is sent on.
_ROWS = 200
#: Bytes of a page.
_LARGEST = 1_000_000
_CITE = (
    "J. Wang, W. Huang, R. Jiang, X. Li and A. L. Wang (2022), Solving Stackelberg prediction game "
    "with least squares loss via spherically constrained least squares reformulation, "
    "International Conference on Machine Learning."
)


def write_report(
    model: Any,
    X: Table,
    y: Classes,
    path: str | PathLike[str],
    *,
    z: Classes | GoalLike | None = None,
    models: Mapping[str, Any] | None = None,
    groups: Mapping[str, Any] | None = None,
    rows: int = 0,
    title: str = "What manipulation does to this model",
    notes: Sequence[str] = (),
) -> None:
    """Write what manipulation does to a model as one page that people can send on.

    The page needs no network and no other file. It shows errors of several models over strength
    and share of the people who react, which features move and how far, what it would be worth to
    verify a feature, rows before and after, and the certificate. It holds means of many rows, and
    nobody's own row unless ``rows`` asks for some.

    Parameters
    ----------
    model : estimator
        A fitted model of ours, or a Pipeline that ends in one.
    X, y : array-like or data frame of shape (m, k), array-like of shape (m,)
        Rows and labels to measure errors by, best others than those of the fit.
    path : str or path
        Where to write; by custom a name in ``.html``. It is written whole or not at all.
    z : array-like of shape (m,) or callable, optional
        Goals, if the model has no ``goal``.
    models : mapping, optional
        Other models by name, as :func:`robustness` takes them for the rows that the last step of
        ``model`` sees. By default least squares and ridge regression, or logistic regression,
        fitted to the rows given.
    groups : mapping, optional
        Features to treat as one, as in :func:`levers`; by default every column by itself.
    rows : int
        How many of people's own rows to show, at most 200.
    title : str
        Heading of the page.
    notes : sequence of str
        Sentences on what was assumed, shown on the page.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from spgls import Floor, StackelbergRegressor, write_report
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = StackelbergRegressor(goal=Floor(250)).fit(X[:300], y[:300])
    >>> write_report(model, X[300:], y[300:], "report.html")  # doctest: +SKIP
    """
    last = linear_parts(model)[1]
    if not isinstance(last, LinearGame):
        raise TypeError(
            f"model must be one of spgls, or a Pipeline that ends in one; got {describe(model)}. "
            "robustness() judges other models."
        )
    check_is_fitted(model)
    if isinstance(rows, bool) or not isinstance(rows, int) or not 0 <= rows <= _ROWS:
        raise ValueError(
            f"rows must be a whole number from 0 to {_ROWS}, because a report is sent on; got "
            f"{describe(rows)}."
        )
    facts = gather(model, X, y, z, models=models, groups=groups, rows=rows)
    page = _render(facts, title, notes).encode()
    if len(page) > _LARGEST:
        raise ValueError(
            f"The report would have {len(page)} bytes, and people could not send it on. Pass fewer "
            "rows."
        )
    write_whole(Path(path), page)


def _render(facts: Any, title: str, notes: Sequence[str]) -> str:
    try:
        jinja2 = import_module("jinja2")
    except ImportError:
        raise ImportError("Reports need jinja2: pip install 'spgls[report]'.") from None
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    template = environment.from_string(_resource("page.html"))
    return str(
        template.render(
            facts=facts,
            title=title,
            notes=list(notes),
            style=_resource("page.css"),
            script=_resource("page.js"),
            data=_embedded(facts.page),
            version=str(import_module("spgls").__version__),
            cite=_CITE,
        )
    )


def _resource(name: str) -> str:
    return (files("spgls.report") / name).read_text(encoding="utf-8")


def _embedded(page: Any) -> str:
    """JSON that no name in it can end early."""
    text = json.dumps(page, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
