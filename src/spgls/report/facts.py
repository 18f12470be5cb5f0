"""What a report says, as plain numbers and words, before anything is drawn."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from spgls.base.types import Array, Vector
from spgls.base.validation import check_vector
from spgls.estimators.faced import Faced, face, linear_parts, model_columns
from spgls.game.costs import one_per_column
from spgls.game.goals import read_goals
from spgls.game.providers import priced_norm
from spgls.game.response import strength_at
from spgls.solvers.levers import KINDS
from spgls.study.baselines import fit_baselines, fit_logistic
from spgls.study.robustness import robustness

__all__ = ["Facts", "gather"]

#: How our model is called beside others.
OURS = "spgls"
#: Shares of their gaps that people close against the first model, where the slider stops.
_PULLS = np.linspace(0.05, 0.95, 19)
#: Features in tables, and levers that are tried.
_FEATURES, _LEVERS = 40, 20
#: Where among the predictions typical rows lie.
_QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
#: People whose mean a typical row is, at least, where there are as many.
_CROWD = 5


@dataclass(frozen=True, eq=False)
class Facts:
    """The content of a report.

    Attributes
    ----------
    kind : {"numbers", "classes"}
        What is predicted.
    reference : str
        The model against which strength is told.
    page : dict
        What the page computes with: models, strengths, features, rows.
    fit : list of str
        What was fitted, in sentences.
    proof : list of pairs
        The certificate, in words.
    levers : dict or None
        Errors with each feature treated differently.
    advice : list of str
        What to do next.
    """

    kind: str
    reference: str
    page: dict[str, Any]
    fit: list[str]
    proof: list[tuple[str, str]]
    levers: dict[str, Any] | None
    advice: list[str]


def gather(
    model: Any,
    X: Any,
    y: Any,
    z: Any,
    *,
    models: Mapping[str, Any] | None,
    groups: Mapping[str, Any] | None,
    rows: int,
) -> Facts:
    """Measure all that a report shows.

    Parameters
    ----------
    model, X, y, z, models, groups, rows
        As in :func:`write_report`.
    """
    head, last, _ = linear_parts(model)
    faced = face(model, X, None, own_cost=True)
    decides = is_classifier(last)
    labels = np.asarray(y) if decides else check_vector(y, "y", len(faced.before), "row of X")
    wish = _wish(last, z)
    goals = faced.goals(z, labels if z is None else None) if decides else read_goals(wish, labels)
    seen = faced.table
    cells = np.asarray(seen, dtype=np.float64)
    if models is None:
        models = (
            fit_logistic(seen, labels)
            if decides
            else fit_baselines(cells, labels, last.feature_cost_)
        )
    compared = dict(models) | {OURS: last}
    names = model_columns(head, last, seen) or [f"x{j}" for j in range(cells.shape[1])]
    reference, reach = _reference(compared, faced, last.feature_cost_)
    gammas = np.array([strength_at(float(pull), reach) for pull in _PULLS])
    found: Any = robustness(
        compared,
        seen,
        labels,
        wish,
        [*gammas, _strength(last)],
        shares=[0.0, 1.0],
        feature_cost=last.feature_cost_,
        metric=None if decides else "mse",
    )
    levers = None if decides else _levers(faced, seen, labels, z, groups)
    features, order = _feature_facts(faced, cells, names)
    page: dict[str, Any] = {
        "kind": "classes" if decides else "numbers",
        "reference": reference,
        "pulls": _rounded(_PULLS),
        "gammas": _rounded(gammas),
        "start": int(np.argmin(np.abs(np.log(gammas / _strength(last))))),
        "share": round(1.0 - _honest(last), 2),
        "models": _model_facts(found, decides),
        "fromGoal": None if decides else _short(found.from_goal),
        "variance": None if decides else _short(found.variance),
        "reach": _short(priced_norm(faced.coef, last.feature_cost_)),
        "gap": _short(float(np.abs(goals - faced.before).mean())),
        "threshold": faced.threshold,
        "classes": [str(one) for one in faced.classes] if faced.classes is not None else None,
    }
    page |= {
        "features": features,
        "more": len(names) - len(features),
        "rows": _row_facts(faced, cells, goals, order, rows),
    }
    return Facts(
        page["kind"],
        reference,
        page,
        _words(model, last, faced, z, len(compared)),
        _proof(last),
        levers,
        _advice(last, found, levers, decides),
    )


def _wish(last: Any, z: Any) -> Any:
    """What people want: goals, a function of the labels, or None for a classifier's default."""
    if z is not None:
        return z
    if last.goal is None and not is_classifier(last):
        raise ValueError("z is needed: this model holds no goal. Pass z=, one goal per row.")
    return last.goal


def _strength(last: Any) -> float:
    """Strength of the strategic people; the greatest there can be where it is not known."""
    strengths = np.atleast_1d(last.gamma_)
    finite = strengths[np.isfinite(strengths)]
    if not len(finite):
        raise ValueError("model was fitted to honest people only, so there is nothing to report.")
    return float(finite.min())


def _honest(last: Any) -> float:
    """Share of honest people that the model expects; the middle of it where it is not known."""
    if hasattr(last, "best_params_"):
        return float(last.best_params_["honest_share"])
    if hasattr(last.gamma, "honest"):
        return float(last.gamma.honest)
    share: Any = 0.5 if last.honest_share is None else last.honest_share
    return (share.low + share.high) / 2.0 if hasattr(share, "low") else float(share)


def _reference(models: Mapping[str, Any], faced: Faced, cost: Vector) -> tuple[str, float]:
    """The first model that people can exploit, and how much."""
    for name, one in models.items():
        coef = one[0] if isinstance(one, tuple) else linear_parts(one)[2]
        reach = priced_norm(np.asarray(coef), cost)
        if reach > 0.0:
            return name, reach
    raise ValueError("No model uses a feature that people can change: there is nothing to report.")


def _model_facts(found: Any, decides: bool) -> list[dict[str, Any]]:
    """Errors, or scores, on rows as they are and on rows that everyone moved."""
    attacked = found.scores[:, :, -1] if decides else found.attacked
    return [
        {
            "name": name,
            "honest": _short(found.honest[at]),
            "attacked": _rounded(attacked[at, :-1]),
            "fitted": _short(attacked[at, -1]),
        }
        for at, name in enumerate(found.models)
    ]


def _immutable(faced: Faced) -> np.ndarray:
    """Which features nobody can change."""
    return np.isinf(one_per_column(faced.cost, len(faced.coef)))


def _feature_facts(
    faced: Faced, cells: Array, names: Sequence[str]
) -> tuple[list[dict[str, Any]], np.ndarray]:
    """Features by how far they move, in standard deviations, the largest first."""
    direction, spread = faced.provider(math.inf).direction, cells.std(axis=0)
    fixed = _immutable(faced)
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.where(spread > 0.0, np.abs(direction) / spread, 0.0)
    order = np.argsort(-relative, kind="stable")[:_FEATURES]
    features = [
        {
            "name": str(names[at]),
            "coef": _short(faced.coef[at]),
            "direction": _short(direction[at]),
            "sd": _short(spread[at]),
            "fixed": bool(fixed[at]),
        }
        for at in order
    ]
    return features, order


def _row_facts(
    faced: Faced, cells: Array, goals: Vector, order: np.ndarray, own: int
) -> list[dict[str, Any]]:
    """Typical rows, each the mean of many, and people's own where they were asked for."""
    ranked = np.argsort(faced.before, kind="stable")
    m = len(ranked)
    crowd = min(m, max(_CROWD, m // 10))
    found = []
    for quantile in _QUANTILES:
        start = min(max(round(quantile * m) - crowd // 2, 0), m - crowd)
        people = ranked[start : start + crowd]
        label = f"Typical of predictions at {100 * quantile:.0f}% (mean of {crowd} rows)"
        found.append(_row(label, people, faced, cells[:, order], goals))
    for at in np.unique(np.linspace(0, m - 1, own).round().astype(int)) if own else ():
        one = ranked[at : at + 1]
        found.append(_row(f"Row {int(one[0]) + 1}", one, faced, cells[:, order], goals))
    return found


def _row(label: str, people: np.ndarray, faced: Faced, cells: Array, goals: Vector) -> Any:
    return {
        "label": label,
        "goal": _short(goals[people].mean()),
        "before": _short(faced.before[people].mean()),
        "cells": _rounded(cells[people].mean(axis=0)),
    }


def _levers(faced: Faced, seen: Any, labels: Vector, z: Any, groups: Any) -> dict[str, Any] | None:
    """What it would be worth to treat features differently; None where no game says."""
    weight = np.abs(faced.coef * faced.provider(math.inf).direction)
    if groups is None:
        order = np.argsort(-weight, kind="stable")[:_LEVERS]
        groups = [int(at) for at in order]
        names = getattr(seen, "columns", None)
        groups = groups if names is None else {str(names[at]): [at] for at in groups}
    else:
        place = {str(name): at for at, name in enumerate(getattr(seen, "columns", ()))}
        largest = {
            name: max(weight[place[str(one)]] for one in columns)
            for name, columns in groups.items()
        }
        kept = sorted(groups, key=lambda name: -largest[name])[:_LEVERS]
        groups = {name: groups[name] for name in kept}
    told = {} if z is None else {"z": z}
    try:
        found = faced.last.levers(seen, labels, groups=groups, **told)
    except (TypeError, ValueError):
        # Ranges of strength, and actions, have no levers.
        return None
    table = [
        [name, *(_cell(figure) for figure in row)]
        for name, row in zip(found.names, found.figures, strict=True)
    ]
    return {
        "head": [KINDS[kind] for kind in found.kinds],
        "now": _cell(found.now),
        "table": table,
        "answer": found.answer,
    }


def _cell(figure: Any) -> str:
    return f"{figure.error:.4g}{'' if figure.certified else '*'}"


def _words(model: Any, last: Any, faced: Faced, z: Any, count: int) -> list[str]:
    """What was fitted, in sentences."""
    m, n = len(faced.before), len(faced.coef)
    fixed = int(_immutable(faced).sum())
    what = "decides between two classes" if faced.classes is not None else "predicts a number"
    pull = float(np.max(np.atleast_1d(last.alpha_ / (1.0 + last.alpha_))))
    lines = [
        f"The model {what} from {n} features by a weighted sum. People know it, and some of them "
        f"change their data, as far as that pays off. {_wanted(last.goal if z is None else z)}",
        f"It expects {100 * _honest(last):.3g}% of people to be honest. The others close "
        f"{100 * pull:.2g}% of the gap between what it would say and what they want "
        f"(gamma {_strength(last):.4g}).",
        f"{fixed} of {n} features cannot be changed by anybody."
        if fixed
        else "Every feature can be changed, at a cost.",
        f"Errors are on {m} rows, of {count} models side by side.",
    ]
    return lines


def _wanted(goal: Any) -> str:
    """What people would like, in a sentence."""
    words = {
        "Floor": "They would like at least {level:g}.",
        "Cap": "They would like at most {level:g}.",
        "Constant": "They would like {level:g}.",
        "Shift": "They would like {amount:g} added to the truth.",
        "Scale": "They would like {factor:g} times the truth.",
        "Wants": "They would like to be in the class {label}.",
        "Opposite": "They would like to pass for the other class.",
    }
    known = words.get(type(goal).__name__)
    if known is None:
        return "What each of them would like is known row by row."
    told = goal.get_params()
    ends = [f"{name} bound {told[name]:g}" for name in ("lower", "upper") if told.get(name)]
    bounds = f" ({', '.join(ends)})" if ends else ""
    return known.format(**told)[:-1] + bounds + "."


def _proof(last: Any) -> list[tuple[str, str]]:
    proof = last.certificate_
    return [
        ("Status", last.status_.value),
        ("Proof", f"{proof.kind}, among {proof.among}"),
        ("Distance from the best there is, in R2", f"at most {proof.relative_gap:.2g}"),
        ("Sum of squares", f"{last.objective_:.6g}"),
        ("No predictor is below", f"{proof.lower_bound:.6g}"),
        ("Solver", last.solver_),
    ]


def _advice(last: Any, found: Any, levers: dict[str, Any] | None, decides: bool) -> list[str]:
    """What to do next."""
    lines = []
    if not last.status_.ok:
        lines.append(last.status_.advice)
    attacked = found.scores[:, -1, -1] if decides else -found.attacked[:, -1]
    honest = found.honest if decides else -found.honest
    first, ours = 0, len(found.models) - 1
    if attacked[first] >= honest[first]:
        lines.append(
            f"Manipulation does not hurt {found.models[first]} here: people who react reveal what "
            "they know. Check the line 'y from z alone' before you rely on that."
        )
    elif attacked[ours] > attacked[first]:
        lines.append(
            f"Where everyone reacts, {OURS} errs less than {found.models[first]}. Move the slider "
            "of shares to see from which share on it pays."
        )
    else:
        lines.append(f"{found.models[first]} does as well here: use it, and watch how people move.")
    if levers is not None:
        lines.append(levers["answer"])
    lines.append(
        "The strength of people is an assumption. Once you have rows of the same people before and "
        "after they knew a model, learn it: spgls estimate-gamma."
    )
    return lines


def _short(value: Any) -> float | None:
    """A number with six digits; None where there is none."""
    number = float(value)
    return float(f"{number:.6g}") if math.isfinite(number) else None


def _rounded(values: Any) -> list[float | None]:
    return [_short(one) for one in np.asarray(values).tolist()]
