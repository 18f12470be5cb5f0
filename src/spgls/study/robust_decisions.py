"""What manipulation would do to linear classifiers that somebody already has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from spgls.base.frames import data_frame
from spgls.base.types import Array, Vector
from spgls.base.validation import check_weight, describe
from spgls.estimators.faced import Faced, face
from spgls.estimators.scorers import AttackedScorer
from spgls.game.classes import class_goals
from spgls.game.errors import pull_of
from spgls.game.providers import Population
from spgls.study.thresholds import wrapped

__all__ = ["DecisionRobustness", "judge_decisions"]


@dataclass(frozen=True, eq=False, repr=False)
class DecisionRobustness:
    """Scores of classifiers against providers of several strengths, or budgets, and shares.

    :func:`robustness` makes one.

    Attributes
    ----------
    models, shares : tuple of k str, ndarray of shape (s,)
        Names of the models, and shares of strategic providers.
    worlds, kind : ndarray of shape (g,), {"gamma", "budget"}
        Strengths of those, or what the decision is worth to them.
    honest, scores : ndarray of shape (k,), ndarray of shape (k, g, s)
        Scores on rows as they are, and where a share of the providers reacts; greater is better.
    crossed : ndarray of shape (k, g)
        Share of the rows on which the decision changes where everyone reacts.
    pull : ndarray of shape (k, g)
        Share of the gap to their goals that providers close against each model; NaN with budgets.
    metric : str
        What the scores are.
    """

    models: tuple[str, ...]
    shares: Vector
    worlds: Vector
    kind: str
    honest: Vector
    scores: Array
    crossed: Array
    pull: Array
    metric: str

    @property
    def answer(self) -> str:
        """What the worst of these worlds does to each model, in words."""
        lines = []
        for i, name in enumerate(self.models):
            g, s = np.unravel_index(int(self.scores[i].argmin()), self.scores[i].shape)
            worst, honest = self.scores[i, g, s], self.honest[i]
            hurts = "hurts" if worst < honest else "does not hurt"
            lines.append(
                f"{name}: {self.metric} {honest:.3g} on honest rows. At worst, where the share "
                f"{self.shares[s]:.3g} reacts with {self.kind} {self.worlds[g]:.3g}, it is "
                f"{worst:.3g}: manipulation {hurts} it. If all did, "
                f"{100 * self.crossed[i, g]:.3g}% of the decisions would change."
            )
        return "\n".join(lines)

    def to_dict(self) -> dict[str, list[Any]]:
        """Columns of the table, one row per model, world and share."""
        i, g, s = np.indices(self.scores.shape).reshape(3, -1)
        return {
            "model": [self.models[at] for at in i],
            self.kind: self.worlds[g].tolist(),
            "share": self.shares[s].tolist(),
            "crossed": self.crossed[i, g].tolist(),
            self.metric: self.scores.ravel().tolist(),
        }

    def to_dataframe(self) -> Any:
        """The same as a pandas data frame."""
        return data_frame(self.to_dict())

    def __repr__(self) -> str:
        table = [["model", self.kind, "crossed", *(f"{share:.3g}" for share in self.shares)]]
        for i, name in enumerate(self.models):
            rows = np.column_stack([self.worlds, self.crossed[i], self.scores[i]])
            table += [[name, *(f"{x:.3g}" for x in row)] for row in rows]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = ["  ".join(map(str.rjust, row, widths)) for row in table]
        title = (
            f'{self.metric} by share of strategic providers; "crossed" is the share of decisions '
            "that change where everyone reacts"
        )
        return "\n".join([wrapped(title), *lines, *map(wrapped, self.answer.splitlines())])


def judge_decisions(
    models: Mapping[str, Any],
    X: Any,
    y: Any,
    z: Any,
    worlds: tuple[str, Vector],
    shares: Vector,
    *,
    feature_cost: Any,
    sample_weight: Any,
    metric: str,
) -> DecisionRobustness:
    """Score classifiers in several worlds.

    Parameters
    ----------
    models : mapping
        Fitted linear classifiers by name.
    X, y, z, feature_cost, sample_weight, metric
        As in :func:`robustness`.
    worlds : pair
        "gamma" or "budget", and the values of it.
    shares : ndarray of shape (s,)
        Shares of strategic providers.
    """
    kind, values = worlds
    labels = np.asarray(y)
    honest, crossed = np.empty(len(models)), np.empty((len(models), len(values)))
    pull = np.full(crossed.shape, np.nan)
    scores = np.empty((*crossed.shape, len(shares)))
    for i, (name, model) in enumerate(models.items()):
        try:
            faced = face(model, X, feature_cost)
        except (TypeError, ValueError) as error:
            error.add_note(f"It is models[{name!r}].")
            raise
        if faced.classes is None:
            raise TypeError(
                "models must all be classifiers, or none of them; "
                f"models[{name!r}] is {describe(faced.last)}."
            )
        wish = z if z is not None else getattr(faced.last, "goal", None)
        goals = class_goals(wish, len(faced.before), None, labels, faced.classes)
        weight = check_weight(sample_weight, len(goals))
        honest[i] = AttackedScorer(np.inf, metric=metric).on_rows(faced, labels, goals, weight)
        for g, value in enumerate(values.tolist()):
            crossed[i, g] = _crossed(faced, goals, weight, kind, value)
            if kind == "gamma":
                pull[i, g] = pull_of(faced.provider(np.inf).reach, value)
            for s, share in enumerate(shares.tolist()):
                scorer = _scorer(kind, value, share, metric)
                scores[i, g, s] = scorer.on_rows(faced, labels, goals, weight)
    return DecisionRobustness(
        tuple(models), shares, values, kind, honest, scores, crossed, pull, metric
    )


def _scorer(kind: str, value: float, share: float, metric: str) -> AttackedScorer:
    if kind == "budget":
        return AttackedScorer(budget=value, share=share, metric=metric)
    groups = Population((np.inf, value), (1.0 - share, share)).merged()
    return AttackedScorer(groups, metric=metric)


def _crossed(faced: Faced, goals: Vector, weight: Vector | None, kind: str, value: float) -> float:
    """Share of the decisions that change where everyone reacts."""
    gamma, budget = (value, None) if kind == "gamma" else (None, value)
    after = faced.respondent(gamma, budget).induced(faced.before, goals)
    changes = (after > faced.threshold) != (faced.before > faced.threshold)
    return float(np.average(changes, weights=weight))
