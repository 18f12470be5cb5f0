"""What a loader returns: the data with their names, goals and licence."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from spgls.base.types import Array, Vector
from spgls.base.validation import check_flag
from spgls.datasets._source import needs
from spgls.game.goals import Goal

__all__ = ["CC_BY", "as_bunch", "attackers", "frames"]

CC_BY = "CC BY 4.0 (https://creativecommons.org/licenses/by/4.0/)"

Pair = tuple[Goal, Goal]


def as_bunch(
    X: Array,
    y: Vector,
    *,
    feature_names: Sequence[str],
    target_name: str,
    description: str,
    licence: str,
    path: Path,
    goals: dict[str, dict[str, Goal]],
    pandas: Any,
) -> Bunch:
    """Collect a set, as arrays or as a pandas data frame and series."""
    # Not views of the file's table, which would keep all of it, strided.
    table: Any = np.ascontiguousarray(X)
    labels: Any = y.copy()
    if pandas is not None:
        table = pandas.DataFrame(table, columns=list(feature_names))
        labels = pandas.Series(labels, name=target_name)
    return Bunch(
        X=table,
        y=labels,
        feature_names=list(feature_names),
        target_name=target_name,
        goals=goals,
        licence=licence,
        description=description,
        DESCR=description,
        filename=str(path),
    )


def frames(as_frame: Any) -> Any:
    """Return pandas if data frames are wanted, else None; before anything is loaded."""
    wanted = check_flag(as_frame, "as_frame")
    return needs("pandas", "as_frame=True", "pandas") if wanted else None


def attackers(first: Pair, code: Pair, text: Pair | None = None) -> dict[str, dict[str, Goal]]:
    """Goals by protocol and strength: of 2021, of the code of 2022, of the text of 2022."""
    pairs = {"2021": first, "2022": code, "2022-text": text or code}
    return {
        protocol: dict(zip(("modest", "severe"), pair, strict=True))
        for protocol, pair in pairs.items()
    }
