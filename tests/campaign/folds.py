"""Scores of the cross-validated estimator against a plain loop of fits.

How far a score is determined by the data is not known, so the loop runs by two engines: where they
differ, cross-validation may differ as well.
"""

from __future__ import annotations

import math
from itertools import product
from typing import Any, NamedTuple

import numpy as np

import spgls

from .check import Failure
from .game import Game
from .play import Outcome, solver_named, watched

SPLITS = 3
_HONEST = (0.0, 0.5)
#: Digits that are promised, less two; and how far beyond the engines' own difference is too far.
_CLOSE = 1e-6
_BEYOND = 100.0
#: Coefficients of which people close all of the gap but this part grow without bound, and nothing
#: is promised of their scores.
_UNBOUNDED = 1e-8


class Scores(NamedTuple):
    """Scores of splits by candidates, and whether each fit is certain: optimal and bounded."""

    scores: np.ndarray
    sure: np.ndarray


def splits_of(game: Game) -> list[tuple[np.ndarray, np.ndarray]]:
    rows = np.arange(len(game.y))
    tests = np.array_split(rows, SPLITS)
    return [(np.setdiff1d(rows, test), test) for test in tests]


def candidates(game: Game) -> list[tuple[float, float, float]]:
    """Strength, honest share and ridge of each, in the order of the estimator."""
    return list(product([people.gammas[0] for people in game.more], _HONEST, (game.ridge,)))


def run_folds(game: Game) -> tuple[Outcome, list[Failure]]:
    """Choose by cross-validation, and say where its scores are not those of the loop."""
    allowed = (UserWarning,)
    together = watched(lambda: _together(game), allowed)
    if together.refused:
        return together, []
    loops = [watched(lambda e=engine: _loop(game, e), allowed) for engine in ("spectral", "qr")]
    failures = [
        Failure(label, kind, math.inf, note)
        for label, outcome in (("folds", together), *(("folds loop", loop) for loop in loops))
        for kind, note in outcome.troubles
    ]
    if together.value is None or any(loop.value is None for loop in loops):
        return together, failures
    return together, failures + compare_scores(game, together.value, *(o.value for o in loops))


def compare_scores(game: Game, scores: np.ndarray, loop: Scores, other: Scores) -> list[Failure]:
    """The worst score that is not that of the loop."""
    small = 1e-9 * float(np.mean(game.y**2))
    allowed = _CLOSE * (np.abs(loop.scores) + small)
    allowed = allowed + _BEYOND * np.abs(loop.scores - other.scores)
    off = np.where(loop.sure & other.sure, np.abs(scores - loop.scores), 0.0)
    if not (off > allowed).any():
        return []
    split, candidate = np.unravel_index(np.argmax(off / allowed), off.shape)
    mine, theirs = scores[split, candidate], loop.scores[split, candidate]
    gamma, honest, ridge = candidates(game)[candidate]
    note = (
        f"split {split}, gamma {gamma:.6g}, honest share {honest}, ridge {ridge:.3g}: "
        f"{mine:.12g}, loop {theirs:.12g}"
    )
    excess = float(off[split, candidate] / (abs(theirs) + small)) if theirs or small else math.inf
    return [Failure("folds", "folds", excess, note)]


def _options(game: Game) -> dict[str, Any]:
    return {"fit_intercept": game.fit_intercept, "feature_cost": game.cost}


def _together(game: Game) -> np.ndarray:
    model = spgls.StackelbergRegressorCV(
        [people.gammas[0] for people in game.more],
        honest_shares=_HONEST,
        ridges=(game.ridge,),
        world=game.people.as_given(),
        cv=splits_of(game),
        **_options(game),
    )
    model.fit(game.table, game.y, z=game.z, sample_weight=game.weight)
    results = model.cv_results_
    return np.array([results[f"split{i}_test_score"] for i in range(SPLITS)])


def _loop(game: Game, engine: str) -> Scores:
    table = game.table
    found = [
        [
            _fit_and_score(game, table, train, test, candidate, engine)
            for candidate in candidates(game)
        ]
        for train, test in splits_of(game)
    ]
    return Scores(*(np.array([[cell[k] for cell in row] for row in found]) for k in (0, 1)))


def _fit_and_score(
    game: Game,
    table: Any,
    train: np.ndarray,
    test: np.ndarray,
    candidate: tuple[float, float, float],
    engine: str,
) -> tuple[float, bool]:
    gamma, honest, ridge = candidate
    weight = np.ones(len(game.y)) if game.weight is None else game.weight
    model = spgls.StackelbergRegressor(
        gamma, honest_share=honest, ridge=ridge, solver=solver_named(engine), **_options(game)
    )
    weighted = None if game.weight is None else weight[train]
    model.fit(table[train], game.y[train], z=game.z[train], sample_weight=weighted)
    error = 0.0
    for strength, share in zip(game.people.gammas, game.people.shares, strict=True):
        after = model.predict_attacked(table[test], game.z[test], gamma=strength)
        error += share * float(np.average((after - game.y[test]) ** 2, weights=weight[test]))
    bounded = bool(np.max(model.alpha_) < 1.0 / _UNBOUNDED)
    return -error, bool(model.status_.ok) and bounded
