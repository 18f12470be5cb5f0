"""Attacked accuracy of linear classifiers: ``python benchmarks/classifiers.py [--quick]``.

Two classes, the breast cancer data that ships with scikit-learn and three generated families. In a
world a share of the people reacts, as strongly as it takes to close a share (the pull) of the gap
to their goals against least squares. Every model is tuned alike, by the attacked accuracy of its
world on five inner folds, over seven penalties; a shifted threshold is the one that decides most
attacked training rows right. A second world is that of budgets: people move to the boundary if that
costs less than the decision is worth.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from harness import environment, machine
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler

from spgls import (
    Opposite,
    Population,
    StackelbergClassifier,
    StackelbergClassifierCV,
    Wants,
    make_attacked_scorer,
)
from spgls.game.cut import best_cut
from spgls.game.providers import priced_norm

RESULTS = Path(__file__).parent / "results"
SHARES, PULLS, BUDGETS = (0.2, 0.5, 0.8, 1.0), (0.2, 0.5, 0.8), (0.5, 2.0, 8.0)
PENALTIES = np.logspace(-3, 3, 7)
OURS = ("ours", "ours, shifted")
RIVALS = {
    "logistic": [LogisticRegression(C=1.0 / p, max_iter=2000) for p in PENALTIES],
    "RidgeClassifier": [RidgeClassifier(alpha=p) for p in PENALTIES],
}
MODELS = (*OURS, "logistic", "logistic, shifted", "RidgeClassifier", "RidgeClassifier, shifted")
#: Thresholds that are tried against budgets, where the cut itself decides who moves.
CUTS = np.linspace(0.0, 1.0, 81)


@dataclass(frozen=True, eq=False)
class Task:
    """Rows, labels -1 and 1, what people want, and what features cost them."""

    name: str
    X: np.ndarray
    y: np.ndarray
    goal: object
    cost: np.ndarray | None = None

    def goals(self, y: np.ndarray) -> np.ndarray:
        return -y if isinstance(self.goal, Opposite) else np.ones(len(y))


def tasks(rows: int) -> Iterator[Task]:
    X, y = load_breast_cancer(return_X_y=True)
    yield Task("breast cancer", X, 2.0 * y - 1.0, Wants(1.0))
    rng = np.random.default_rng(0)
    # Credit: what repayment depends on is partly fixed, partly easy to change.
    X = rng.normal(size=(rows, 8))
    X[:, 4:] = 0.6 * X[:, :4] + 0.8 * X[:, 4:]
    truth = np.array([1.0, 0.8, 0.6, 0.4, 0.5, 0.3, 0.2, 0.0])
    y = np.where(X @ truth + rng.logistic(size=rows) > 0.0, 1.0, -1.0)
    yield Task("credit", X, y, Wants(1.0), np.array([np.inf, np.inf, 4.0, 4.0, 1, 1, 1, 1]))
    # Many weak signs, one class rare, and both want to pass for the other.
    y = np.where(rng.random(rows) < 0.25, 1.0, -1.0)
    X = rng.normal(size=(rows, 40)) + 0.25 * y[:, None] * (rng.random(40) < 0.5)
    yield Task("weak signs, opposite", X, y, Opposite())
    # Skewed counts, as of words.
    y = np.where(rng.random(rows) < 0.4, 1.0, -1.0)
    rate = np.exp(rng.normal(scale=0.3, size=20))
    tilt = np.exp(0.25 * rng.normal(size=20))
    X = rng.poisson(rate * tilt ** y[:, None]).astype(float)
    yield Task("counts", X, y, Wants(1.0))


def induced(h, z, reach, gamma):
    return (gamma * h + reach * z) / (gamma + reach) if gamma < np.inf else h


class World:
    """A share of the people, who react with one strength."""

    def __init__(self, gamma, share):
        self.gamma, self.share = gamma, share

    def cut(self, h, y, z, reach):
        moved = np.concatenate([h, induced(h, z, reach, self.gamma)])
        weight = np.repeat([1.0 - self.share, self.share], len(h))
        return best_cut(moved, np.tile(y, 2), weight)

    def accuracy(self, h, y, z, reach, cut):
        moved = induced(h, z, reach, self.gamma)
        right = np.mean((h > cut) == (y > 0)), np.mean((moved > cut) == (y > 0))
        return (1.0 - self.share) * right[0] + self.share * right[1]


class Boundary:
    """A share of the people, who move to the boundary within a budget."""

    def __init__(self, budget, share):
        self.budget, self.share = budget, share

    def accuracy(self, h, y, z, reach, cut):
        decided = h > cut
        crosses = (decided != (z > 0)) & (np.abs(h - cut) < np.sqrt(reach * self.budget))
        right = np.mean(decided == (y > 0)), np.mean((decided ^ crosses) == (y > 0))
        return (1.0 - self.share) * right[0] + self.share * right[1]

    def cut(self, h, y, z, reach):
        # Those who want the upper class cross cuts that lie above their score.
        reachable = h.max() + np.sqrt(reach * self.budget)
        cuts = np.concatenate([[0.0], h.min() + CUTS * (reachable - h.min())])
        scores = [self.accuracy(h, y, z, reach, cut) for cut in cuts]
        return float(cuts[int(np.argmax(scores))])


class Fitted:
    """Scores of one candidate, on the rows it was fitted to and on others, and its reach."""

    def __init__(self, model, task, train, test):
        coef = np.ravel(model.coef_).astype(float)
        self.reach = priced_norm(coef, task.cost)
        said = task.X @ coef + float(np.ravel(model.intercept_)[0])
        self.train, self.test = (said[rows] for rows in (train, test))
        self.y_train, self.y_test = (task.y[rows] for rows in (train, test))
        self.z_train, self.z_test = (task.goals(y) for y in (self.y_train, self.y_test))

    def accuracy(self, world, shifted):
        cut = world.cut(self.train, self.y_train, self.z_train, self.reach) if shifted else 0.0
        return world.accuracy(self.test, self.y_test, self.z_test, self.reach, cut)


def scaled(task, train):
    scaler = StandardScaler().fit(task.X[train])
    return Task(task.name, scaler.transform(task.X), task.y, task.goal, task.cost)


def splits_of(y, folds, seed):
    return list(StratifiedKFold(folds, shuffle=True, random_state=seed).split(y, y))


class Outer:
    """One outer fold: candidates fitted on it and on its inner folds, once for all worlds."""

    def __init__(self, task, train, test, seed):
        self.task, self.train, self.test = scaled(task, train), train, test
        self.inner = [(train[a], train[b]) for a, b in splits_of(task.y[train], 5, seed)]
        self.rivals = {name: self.candidates(models) for name, models in RIVALS.items()}

    def candidates(self, models):
        """For each model, its fits on the inner folds and on all training rows."""
        return [
            [self.fitted(model, *rows) for rows in (*self.inner, (self.train, self.test))]
            for model in models
        ]

    def fitted(self, model, train, test):
        fresh = clone(model).fit(self.task.X[train], self.task.y[train])
        return Fitted(fresh, self.task, train, test)

    @staticmethod
    def tuned(candidates, world, shifted):
        """Accuracy on the test rows of the candidate that is best on the inner folds."""
        by_inner = [
            np.mean([fit.accuracy(world, shifted) for fit in fits[:-1]]) for fits in candidates
        ]
        return candidates[int(np.argmax(by_inner))][-1].accuracy(world, shifted)

    def ours(self, gamma, share, shifted):
        """The game of this world, its ridge chosen by our own cross-validation."""
        task, rows = self.task, {row: at for at, row in enumerate(self.train)}
        cv = [tuple(np.array([rows[r] for r in part]) for part in pair) for pair in self.inner]
        world = Population.mixed(gamma, honest=1.0 - share)
        people = {"goal": task.goal, "feature_cost": task.cost}
        model = StackelbergClassifierCV(
            [gamma],
            honest_shares=[1.0 - share],
            ridges=PENALTIES,
            world=world,
            cv=cv,
            threshold="attacked" if shifted else 0.0,
            **people,
        )
        model.fit(task.X[self.train], task.y[self.train])
        judge = make_attacked_scorer(world, metric="accuracy", **people)
        return judge(model, task.X[self.test], task.y[self.test])

    def row(self, share, pull):
        """Attacked accuracies in one world."""
        task = self.task
        gamma = (
            StackelbergClassifier(pull=pull, goal=task.goal, feature_cost=task.cost)
            .fit(task.X[self.train], task.y[self.train])
            .gamma_
        )
        world = World(gamma, share)
        out = [self.ours(gamma, share, shifted) for shifted in (False, True)]
        for candidates in self.rivals.values():
            out += [self.tuned(candidates, world, shifted) for shifted in (False, True)]
        return out

    def boundary_rows(self, grid):
        """The same against budgets: of our games, those of three pulls and seven ridges."""
        games = self.candidates(
            [
                StackelbergClassifier(
                    pull=pull, ridge=ridge, goal=self.task.goal, feature_cost=self.task.cost
                )
                for pull in PULLS
                for ridge in PENALTIES[::3]
            ]
        )
        for share, budget in grid:
            world = Boundary(budget, share)
            yield [
                self.tuned(candidates, world, shifted)
                for candidates in (games, *self.rivals.values())
                for shifted in (False, True)
            ]


def measure(task, folds, seed, strengths, grid):
    """Accuracies by world, fold and model, of both kinds of worlds."""
    game, boundary = [], []
    for at, (train, test) in enumerate(splits_of(task.y, folds, seed)):
        outer = Outer(task, train, test, seed + at)
        game.append([outer.row(*world) for world in strengths])
        boundary.append(list(outer.boundary_rows(grid)))
        print(f"{task.name}: fold {at + 1} of {folds}", flush=True)
    return {
        "about": f"{task.X.shape[0]} rows, {task.X.shape[1]} features, goal {task.goal!r}",
        "game": np.array(game).transpose(1, 0, 2).round(6).tolist(),
        "boundary": np.array(boundary).transpose(1, 0, 2).round(6).tolist(),
    }


def differences(by_fold):
    """Ours less rivals, like with like: both with a plain threshold, and the best of both."""
    mean, folds = by_fold.mean(axis=0), len(by_fold)
    for ours, rivals in (((0,), (2, 4)), ((0, 1), (3, 5))):
        best = [max(kind, key=mean.__getitem__) for kind in (ours, rivals)]
        gap = by_fold[:, best[0]] - by_fold[:, best[1]]
        yield gap.mean(), gap.std(ddof=1) / np.sqrt(folds)


def table(second, worlds, scores):
    """Means and standard errors, and how far we are from the better rival of each kind."""
    lines = [
        f"| share | {second} | {' | '.join(MODELS)} | less plain rivals | less shifted rivals |",
        f"| ---: | ---: |{' ---: |' * (len(MODELS) + 2)}",
    ]
    verdicts = []
    for (share, other), by_fold in zip(worlds, scores, strict=True):
        error = by_fold.std(axis=0, ddof=1) / np.sqrt(len(by_fold))
        verdicts.append(list(differences(by_fold)))
        cells = [f"{m:.3f} ({e:.3f})" for m, e in zip(by_fold.mean(axis=0), error, strict=True)]
        cells += [f"{gap:+.3f} ({wide:.3f})" for gap, wide in verdicts[-1]]
        lines.append(f"| {share:g} | {other:g} | {' | '.join(cells)} |")
    return lines, verdicts


def counted(verdicts):
    """In how many worlds the difference is larger than two of its standard errors."""
    said = []
    for kind, name in enumerate(("plain", "shifted")):
        gaps = [verdict[kind] for verdict in verdicts]
        wins = sum(gap > 2 * error and gap > 0 for gap, error in gaps)
        losses = sum(-gap > 2 * error and gap < 0 for gap, error in gaps)
        said.append(
            f"{wins} won and {losses} lost against {name} rivals (mean difference "
            f"{np.mean([gap for gap, _ in gaps]):+.3f})"
        )
    return f"Of {len(verdicts)} worlds {', '.join(said)}."


def section(found, kind, second, words):
    """One kind of worlds, in words and tables."""
    lines, total = [], []
    for name, task in found["tasks"].items():
        made, verdicts = table(second, found["worlds"][kind], np.array(task[kind]))
        total += verdicts
        lines += ["", f"### {name}", "", f"{task['about']}. {counted(verdicts)}", "", *made]
    return ["", f"{words} {counted(total)}", *lines, ""]


def page(found):
    """All of it."""
    folds = len(next(iter(found["tasks"].values()))["game"][0])
    return [
        "# Classifiers",
        "",
        machine(found["environment"]),
        "",
        f"Attacked accuracy, means over {folds} folds and their standard errors. All models are "
        "tuned alike, by attacked accuracy on five inner folds over seven penalties; a shifted "
        "threshold is chosen on attacked training rows. The last columns are differences: ours "
        "less the better of the two plain rivals, and the better of ours less the better of the "
        "two rivals with a shifted threshold. A world is won or lost where a difference is more "
        "than two of its standard errors.",
        "",
        "## Against the game's response",
        *section(
            found,
            "game",
            "pull",
            "A share of the people closes the pull's share of the gap to the score -1 or 1 against "
            "least squares.",
        ),
        "## Against the boundary response",
        *section(
            found,
            "boundary",
            "budget",
            "A share of the people moves to the boundary if that costs less than the budget, in "
            "squared standard deviations. This is not the game that we solve: ours are fitted for "
            "three pulls and three ridges, nine candidates.",
        ),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="three folds of fewer rows")
    parser.add_argument("--again", action="store_true", help="only write the page anew")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the results")
    told = parser.parse_args()
    told.out.mkdir(parents=True, exist_ok=True)
    record = told.out / "classifiers.json"
    if not told.again:
        warnings.simplefilter("ignore", ConvergenceWarning)
        folds, rows = (3, 300) if told.quick else (10, 1000)
        shares = SHARES[1::2] if told.quick else SHARES
        worlds = {"game": list(product(shares, PULLS)), "boundary": list(product(shares, BUDGETS))}
        found = {"environment": environment(), "worlds": worlds, "tasks": {}}
        for task in tasks(rows):
            found["tasks"][task.name] = measure(task, folds, 0, *worlds.values())
        record.write_text(json.dumps(found) + "\n")
    found = json.loads(record.read_text())
    (told.out / "classifiers.md").write_text("\n".join(page(found)))


if __name__ == "__main__":
    main()
