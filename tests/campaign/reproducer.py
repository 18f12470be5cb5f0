"""A failing game as a program of a few lines."""

from __future__ import annotations

import math
import re
from itertools import pairwise
from typing import Any

import numpy as np

from spgls import Actions

from .check import judge
from .exact import Exact, precise
from .game import Game, People
from .pieces import SUMS, cuts_of, strangers
from .play import SOLVERS, run_solver
from .ranges import as_given
from .replay import FIELD, as_solver, detail, plain
from .shrink import Small
from .twins import TWINS
from .whole import certified_scale

#: What programs may need, in the order in which it is imported.
_NAMES = (
    "Actions",
    "Between",
    "GameStatistics",
    "Population",
    "StackelbergRegressor",
    "StackelbergRegressorCV",
    "certify",
    "solve",
    "solve_path",
    "solvers",
)


def program(small: Small) -> str:
    """Lines to paste, which show the failure, and what is wrong with what they print."""
    told = [(small.game, small.label)]
    if detail(small.label) in TWINS:
        twin = TWINS[detail(small.label)](small.game, small.game.dice(3))
        assert twin is not None
        solver = plain(small.label)
        told = [(twin.first or small.game, solver), (twin.game, solver)]
    body = [line for game, label in told for line in _played(game, label)]
    text = "\n".join(body)
    names = [name for name in _NAMES if re.search(rf"\b{name}\b", text)]
    head = ["import numpy as np", *["import scipy.sparse as sp"] * ("sp." in text)]
    head += [f"from spgls import {', '.join(names)}", ""]
    return "\n".join([*head, *body, *(f"# {line}" for line in _explained(small))])


def _played(game: Game, label: str) -> list[str]:
    """A game and the call that plays it."""
    data = [f"X = {_table(game)}", f"y = {_array(game.y)}", f"z = {_array(game.z)}"]
    return [*data, _call(game, label)]


def _call(game: Game, label: str) -> str:
    options = [f"{name}={_value(value)}" for name, value in game.options().items()]
    if label.startswith("folds"):
        return _folds_call(game)
    if label == "range":
        given = ", ".join(["X", "y", "z", as_given(game), *options])
        return f"print(solve({given}).certificate)"
    if label == "estimator":
        fit = [option for option in options if option.startswith("sample_weight")]
        made = [option for option in options if not option.startswith("sample_weight")]
        if not game.fit_intercept:
            made.append("fit_intercept=False")
        model = ", ".join([_people(game.people), *made])
        return f"StackelbergRegressor({model}).fit({', '.join(['X', 'y', 'z=z', *fit])})"
    if label == "certify":
        scale = certified_scale(game)
        given = [option for option in options if not option.startswith("fit_intercept")]
        if game.fit_intercept:
            given.append(f"intercept={scale} * found.intercept")
        told = ", ".join(["X", "y", "z", people := _people(game.people), f"{scale} * found.coef"])
        solved = ", ".join(["X", "y", "z", people, *options])
        return f"found = solve({solved})\nprint(certify({', '.join([told, *given])}))"
    if label in SUMS:
        return _sums_call(game, label)
    options.append(f"solver={as_solver(label)}")
    if label.startswith("path "):
        everybody = ", ".join(map(_people, game.more))
        return f"print(solve_path(X, y, z, [{everybody}], {', '.join(options)}))"
    people = game.people
    if detail(label) == "half honest" and people.single:
        people = People((math.inf, *people.gammas), (0.5, 0.5))
    return f"print(solve(X, y, z, {_people(people)}, {', '.join(options)}).certificate)"


def _sums_call(game: Game, label: str) -> str:
    """Pieces of the rows added up, and the game solved from that."""
    method = "triangular" if label == "triangular" else "moments"
    weighed = "" if game.weight is None else ", sample_weight=w[a:b]"
    cuts = cuts_of(game)
    pairs = list(pairwise(cuts))
    if game.weight is not None:
        pairs = [(a, b) for a, b in pairs if game.weight[a:b].any()]
    lines = [] if game.weight is None else [f"w = np.array({_value(game.weight)})"]
    sparse = game.store in ("csr", "csc", "coo", "halves")
    rows = "X.tocsr()[a:b]" if sparse else "X[a:b]"
    added = f"GameStatistics.from_data({rows}, y[a:b], z[a:b], method={method!r}{weighed})"
    lines.append(f"found = sum({added} for a, b in {pairs})")
    if label == "subtracted":
        X, y, z = map(_array, strangers(game))
        lines.append(f"others = GameStatistics.from_data({X}, {y}, {z})")
        lines.append("found = (others + found) - others")
    given = {name: value for name, value in game.options().items() if name != "sample_weight"}
    told = ", ".join([_people(game.people), *(f"{k}={_value(v)}" for k, v in given.items())])
    return "\n".join([*lines, f"print(found.solve({told}).certificate)"])


def _folds_call(game: Game) -> str:
    gammas = [people.gammas[0] for people in game.more]
    given = [
        _value(gammas),
        "honest_shares=(0.0, 0.5)",
        f"ridges=({game.ridge!r},)",
        f"world={_people(game.people)}",
        "cv=3",
        f"fit_intercept={game.fit_intercept}",
    ]
    if game.cost is not None:
        given.append(f"feature_cost={_value(game.cost)}")
    weight = "" if game.weight is None else f", sample_weight={_value(game.weight)}"
    model = f"StackelbergRegressorCV({', '.join(given)}).fit(X, y, z=z{weight})"
    return f"print({model}.cv_results_)"


def _explained(small: Small) -> list[str]:
    game, label, failure = small.game, small.label, small.failure
    lines = [f"{failure.solver}, {failure.kind}: {failure.note}"]
    if "false" not in failure.kind or plain(label) not in SOLVERS or detail(label) in TWINS:
        return lines
    with precise():
        exact = Exact(game)
        people = game.people
        if detail(label) == "half honest" and people.single:
            people = People((math.inf, *people.gammas), (0.5, 0.5))
        asked = game.but(people=people)
        outcomes = {name: run_solver(asked, name) for name in (plain(label), *FIELD)}
        best = judge(exact, people, game.ridge, outcomes).best
        answer = outcomes[plain(label)].value
        if best is None or answer is None:
            return lines
        numbers = f"objective {answer.objective:.10g}, lower bound {answer.lower_bound:.10g}"
        lines.append(f"it says {answer.status}, {numbers}")
        point = np.array([float(v) for v in best.point])
        held = exact.loss(exact.point(point[: exact.n], point[-1]), people, game.ridge)
        many = "" if held <= best.loss + exact.slack else ", in more digits than these,"
        unit = "|y|^2 + |z|^2" if exact.explained else "|Py|^2"
        less = f", {failure.excess:.2g} of {unit} less" if math.isfinite(failure.excess) else ""
        loss = max(0.0, float(best.loss))
        lines.append(f"the predictor {_value(point)}{many} has {loss:.10g}{less}")
    return lines


def _people(people: People) -> str:
    if people.single:
        return _number(people.gammas[0])
    gammas, shares = (", ".join(map(_number, part)) for part in people)
    return f"Population([{gammas}], [{shares}])"


def _number(value: float) -> str:
    if math.isinf(value):
        return "np.inf"
    return f"{value:.0f}.0" if value == round(value) and abs(value) < 1e6 else repr(float(value))


def _value(value: Any) -> str:
    if isinstance(value, Actions):
        return f"Actions({_array(value.effects)}, cost={_value(value.cost)})"
    if isinstance(value, list | np.ndarray):
        return f"[{', '.join(_number(float(v)) for v in value)}]"
    return repr(value)


def _array(array: np.ndarray) -> str:
    if array.ndim == 1:
        return f"np.array({_value(array)})"
    return f"np.array([{', '.join(_value(row) for row in array)}])"


def _table(game: Game) -> str:
    dense = _array(game.X)
    if game.store == "dense":
        return dense
    if game.store == "fortran":
        return f"np.asfortranarray({dense})"
    if game.store == "float32":
        return f"{dense}.astype(np.float32)"
    if game.store in ("csr", "csc", "coo"):
        return f"sp.{game.store}_array({dense})"
    table = game.table
    parts = ", ".join(_value(np.asarray(part)) for part in (table.data,))
    columns, starts = table.indices.tolist(), table.indptr.tolist()
    return f"sp.csr_array(({parts}, {columns}, {starts}), shape={table.shape})"
