"""Insurance: medical costs from what people state about themselves."""

from __future__ import annotations

import csv
from io import StringIO
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from spgls.base.types import Array
from spgls.datasets._bunch import as_bunch, attackers, frames
from spgls.datasets._find import find
from spgls.datasets._source import Source, check_table
from spgls.game.goals import Shift

__all__ = ["INSURANCE", "load_insurance"]

NUMBERS = ("age", "bmi", "children")
KINDS = {
    "sex": ("female", "male"),
    "smoker": ("no", "yes"),
    "region": ("northeast", "northwest", "southeast", "southwest"),
}
FEATURES = (*NUMBERS, *(f"{name}_{kind}" for name, kinds in KINDS.items() for kind in kinds))
#: Dollars in a unit of the labels.
UNIT = 100.0


def _parse(content: bytes) -> Array:
    """Numbers, one column per kind of each category, and charges."""
    rows = csv.DictReader(StringIO(content.decode("utf-8"), newline=""))
    table = [
        [
            *(float(row[name]) for name in NUMBERS),
            *(float(row[name] == kind) for name, kinds in KINDS.items() for kind in kinds),
            float(row["charges"]),
        ]
        for row in rows
    ]
    return check_table(np.array(table), (1338, len(FEATURES) + 1))


INSURANCE = Source(
    title="insurance",
    names=("insurance.csv",),
    parse=_parse,
    page="https://www.kaggle.com/datasets/mirichoi0218/insurance",
    sha256="388eff679557d08ac19f463d025de5e0b4adc482537c8456d19934d78621fd47",
)
DESCRIPTION = """Insurance: 1338 people insured in the United States, simulated from census data.

Age, body mass index, number of children, and one column for each sex, for smoking or not, and for
each of four regions; the label is what their treatment cost, in hundreds of dollars. With a column
of ones the categories add up to it three times over, so the features are linearly dependent.
Providers are people who would like to be charged 100 (modest) or 300 (severe) dollars less, but not
less than nothing.

B. Lantz (2013), Machine Learning with R, Packt Publishing; the file is on Kaggle as
mirichoi0218/insurance.
"""


def load_insurance(folder: Any = None, *, as_frame: bool = False) -> Bunch:
    """Load the insured people: 1338 rows, 11 features, cost in hundreds of dollars as label.

    The set is not in the UCI archive, so it is read from a folder and never downloaded.

    Parameters
    ----------
    folder : str or path, optional
        Folder that holds ``insurance.csv``; by default what ``SPGLS_DATA`` names.
    as_frame : bool
        Whether ``X`` and ``y`` are a pandas data frame and series.

    Returns
    -------
    Bunch
        As :func:`load_wine_quality`. The goals, like the labels, are in hundreds of dollars.

    Raises
    ------
    FileNotFoundError
        No folder was named, or it does not hold the file.
    DataFileError
        The file is not this set.

    Examples
    --------
    >>> from spgls.datasets import load_insurance
    >>> insurance = load_insurance("data")  # doctest: +SKIP
    >>> insurance.goals["2022"]["severe"]  # doctest: +SKIP
    Shift(amount=-3.0, lower=0.0)
    """
    pandas = frames(as_frame)
    path, table = find(INSURANCE, folder, cache=None, base_url=None, progress=False)
    pair = Shift(-100.0 / UNIT, lower=0.0), Shift(-300.0 / UNIT, lower=0.0)
    return as_bunch(
        table[:, :-1],
        table[:, -1] / UNIT,
        feature_names=FEATURES,
        target_name="charges / 100",
        description=DESCRIPTION,
        licence="Database Contents License 1.0 (https://opendatacommons.org/licenses/dbcl/1-0/)",
        path=path,
        goals=attackers(pair, pair),
        pandas=pandas,
    )
