"""The problems of the catalogue: a name, a game, what makes it difficult, and its numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from spgls.datasets import _hard_games as games

__all__ = ["ENTRIES", "TAGS", "Entry"]

#: What the tags of problems mean.
TAGS = {
    "tall": "more rows than columns",
    "wide": "fewer rows than columns, so that every label may be met",
    "square": "as many rows as columns",
    "mid-size": "more than a few hundred numbers",
    "one row": "a single row",
    "one column": "a single column",
    "sparse": "a SciPy sparse array",
    "float32": "single precision",
    "layout": "not stored row after row",
    "ill-conditioned": "singular values over many orders of magnitude",
    "rank deficient": "columns that depend on each other",
    "spectrum": "equal or nearly equal singular values",
    "scales": "columns of very different scales, or far from zero",
    "hard case": "a multiplier at its pole: several predictors are equally good",
    "nearly hard": "a multiplier within a hair of its pole",
    "negative multiplier": "a negative multiplier, where small residuals prove nothing",
    "extreme gamma": "providers of extreme strength",
    "tiny alpha": "providers who hardly move",
    "huge alpha": "providers who nearly reach their goals",
    "unattained": "no predictor is best: the loss falls as coefficients grow",
    "goal in range": "goals that a linear model meets",
    "constant goal": "one goal for everybody",
    "intercept": "an intercept",
    "costs": "features of different costs",
    "immutable": "features that cannot be changed",
    "no game": "nothing can be changed: least squares",
    "weights": "weighted rows",
    "real data": "real data, by the protocol of Wang et al. 2022",
}


class Entry(NamedTuple):
    """How a problem is built."""

    name: str
    builder: Callable[..., games.Built]
    tags: tuple[str, ...]
    seed: int | None
    arguments: dict[str, Any]


def _entry(
    name: str,
    builder: Callable[..., games.Built],
    *tags: str,
    seed: int | None = None,
    **arguments: Any,
) -> Entry:
    return Entry(name, builder, tags, seed, arguments)


ENTRIES = (
    _entry("tall", games.plain, "tall", m=40, n=8),
    _entry("wide", games.plain, "wide", m=12, n=30),
    _entry("square", games.plain, "square", m=16, n=16),
    _entry("tall-500", games.plain, "tall", "mid-size", m=500, n=50),
    _entry("wide-300", games.plain, "wide", "mid-size", m=100, n=300),
    _entry("one-column", games.single, "one column", m=20, n=1),
    _entry("one-row", games.single, "one row", "hard case", m=1, n=6),
    _entry("one-entry", games.single, "one row", "one column", "hard case", m=1, n=1),
    _entry("sparse-csr", games.sparse_csr, "sparse"),
    _entry("sparse-csc-intercept", games.sparse_csc, "sparse", "intercept", "weights"),
    _entry("sparse-wide-csr", games.sparse_wide, "sparse", "wide"),
    _entry(
        "sparse-400",
        games.sparse_large,
        "sparse",
        "mid-size",
        m=400,
        n=300,
        entries=3600,
        gamma=1.0,
    ),
    _entry(
        "sparse-2000",
        games.sparse_large,
        "sparse",
        "mid-size",
        m=2000,
        n=1500,
        entries=30000,
        gamma=0.1,
    ),
    _entry("float32", games.float32, "float32"),
    _entry("float32-csr", games.float32_sparse, "float32", "sparse"),
    _entry("fortran-order", games.fortran_order, "layout"),
    _entry("every-other-row", games.every_other_row, "layout"),
    _entry(
        "condition-1e4", games.ill_conditioned, "ill-conditioned", m=30, n=10, bits=13, gamma=64.0
    ),
    _entry(
        "condition-1e6", games.ill_conditioned, "ill-conditioned", m=30, n=10, bits=20, gamma=64.0
    ),
    _entry(
        "condition-1e8", games.ill_conditioned, "ill-conditioned", m=30, n=12, bits=27, gamma=64.0
    ),
    _entry(
        "condition-1e8-weak",
        games.ill_conditioned,
        "ill-conditioned",
        m=30,
        n=12,
        bits=27,
        gamma=1024.0,
    ),
    _entry(
        "condition-1e10", games.ill_conditioned, "ill-conditioned", m=30, n=12, bits=33, gamma=64.0
    ),
    _entry(
        "condition-1e6-wide",
        games.ill_conditioned,
        "ill-conditioned",
        "wide",
        m=10,
        n=25,
        bits=20,
        gamma=4.0,
    ),
    _entry(
        "condition-1e6-square",
        games.ill_conditioned,
        "ill-conditioned",
        "square",
        m=14,
        n=14,
        bits=20,
        gamma=4.0,
    ),
    _entry("many-scales", games.many_scales, "ill-conditioned", "mid-size"),
    _entry("differences", games.differences, "ill-conditioned", "sparse", "mid-size"),
    _entry("rank-deficient", games.rank_deficient, "rank deficient", gamma=0.5),
    _entry(
        "rank-deficient-hard", games.rank_deficient, "rank deficient", "hard case", gamma=4096.0
    ),
    _entry("duplicate-columns", games.duplicate_columns, "rank deficient"),
    _entry("zero-column", games.zero_column, "rank deficient"),
    _entry("repeated-singular-values", games.repeated, "spectrum"),
    _entry("clustered-spectrum", games.clustered, "spectrum"),
    _entry("column-scales", games.column_scales, "scales"),
    _entry("means-far-from-zero", games.far_means, "scales", "intercept"),
    _entry("hard-wide", games.weak_provider, "hard case", "wide", gamma=256.0),
    _entry(
        "hard-wide-60",
        games.weak_provider,
        "hard case",
        "wide",
        "mid-size",
        m=60,
        n=150,
        gamma=64.0,
    ),
    _entry(
        "nearly-hard-wide", games.weak_provider, "nearly hard", "wide", seed=6, gamma=0.79238993
    ),
    _entry(
        "barely-hard-wide",
        games.weak_provider,
        "nearly hard",
        "hard case",
        "wide",
        seed=6,
        gamma=0.79239151,
    ),
    _entry(
        "hard-constant-goal", games.hard_constant_goal, "hard case", "constant goal", "intercept"
    ),
    _entry(
        "hard-isolated-column",
        games.isolated_column,
        "hard case",
        "negative multiplier",
        seed=3,
        nudge=0.0,
    ),
    _entry(
        "nearly-hard-isolated-column",
        games.isolated_column,
        "nearly hard",
        "negative multiplier",
        seed=3,
        nudge=2.0**-24,
    ),
    _entry("negative-weak", games.negative, "negative multiplier", gamma=64.0),
    _entry(
        "negative-weak-intercept",
        games.negative,
        "negative multiplier",
        "intercept",
        gamma=64.0,
        fit_intercept=True,
    ),
    _entry(
        "negative-sparse",
        games.negative_sparse,
        "negative multiplier",
        "sparse",
        m=60,
        n=20,
        entries=300,
        gamma=256.0,
    ),
    _entry(
        "negative-sparse-400",
        games.negative_sparse,
        "negative multiplier",
        "sparse",
        "mid-size",
        m=400,
        n=100,
        entries=2500,
        gamma=1024.0,
    ),
    _entry(
        "negative-costs-weights", games.negative_options, "negative multiplier", "costs", "weights"
    ),
    _entry("goal-in-range", games.goal_in_range, "goal in range", gamma=0.5),
    _entry("goal-in-range-weak", games.goal_in_range, "goal in range", "hard case", gamma=512.0),
    _entry("gamma-1e-6", games.extreme_gamma, "extreme gamma", gamma=1e-6),
    _entry("gamma-1e6", games.extreme_gamma, "extreme gamma", gamma=1e6),
    _entry(
        "gamma-1e-6-intercept",
        games.extreme_gamma,
        "extreme gamma",
        "intercept",
        gamma=1e-6,
        fit_intercept=True,
    ),
    _entry("alpha-1e-8", games.tiny_alpha, "tiny alpha"),
    _entry("alpha-1e5", games.huge_alpha, "huge alpha", noise=2.0**-8),
    _entry("alpha-1e7", games.huge_alpha, "huge alpha", noise=2.0**-11),
    _entry("unattained-same", games.unattained, "unattained", m=30, n=6),
    _entry(
        "unattained-shift",
        games.unattained,
        "unattained",
        "intercept",
        m=30,
        n=6,
        shift=1.0,
        fit_intercept=True,
    ),
    _entry("constant-goal", games.constant_goal, "constant goal"),
    _entry(
        "constant-goal-intercept",
        games.constant_goal,
        "constant goal",
        "intercept",
        fit_intercept=True,
    ),
    _entry("intercept", games.intercept, "intercept"),
    _entry("costs", games.costs, "costs", infinite=0),
    _entry("immutable", games.costs, "costs", "immutable", infinite=3),
    _entry("immutable-wide", games.costs, "costs", "immutable", "wide", infinite=3, m=10, n=24),
    _entry("nothing-to-change", games.costs, "immutable", "no game", infinite=8),
    _entry("weights", games.weights, "weights"),
    _entry(
        "everything-at-once",
        games.everything,
        "costs",
        "immutable",
        "weights",
        "intercept",
        "sparse",
    ),
)
