"""Residential building: sales prices in Tehran from plans and from the economy."""

from __future__ import annotations

import warnings
from hashlib import sha256
from io import BytesIO
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from spgls.base.types import Array
from spgls.datasets._bunch import CC_BY, as_bunch, attackers, frames
from spgls.datasets._find import find
from spgls.datasets._source import Source, check_table, needs
from spgls.game.goals import Shift

__all__ = ["BUILDING", "load_residential_building"]

ROWS = 372
HEADERS = 2
FEATURES = (
    "START YEAR",
    "START QUARTER",
    "COMPLETION YEAR",
    "COMPLETION QUARTER",
    *(f"V-{k}" for k in range(1, 9)),
    *(f"V-{k} lag {lag}" for lag in range(1, 6) for k in range(11, 30)),
)
#: Copies of the workbook differ in bytes, not in these sums, nor in nine digits of any cell.
SUMS = {"V-9": 516125.0, "V-10": 86545.0}
CELLS = "9480fc81e5d583baf6d91deed0580adae745373873c98a9908856406265437a6"


def _parse(content: bytes) -> Array:
    """Cells of the first sheet below its header, of which these two outputs come last."""
    columns = len(FEATURES) + len(SUMS)
    table = []
    for at, row in enumerate(_rows(content)[HEADERS:], start=1):
        cells = row[:columns]
        if all(cell is None for cell in cells):
            continue
        wrong = [k for k, cell in enumerate(cells) if not isinstance(cell, Real)]
        if wrong:
            raise ValueError(
                f"row {at} of the data has {cells[wrong[0]]!r} in column {wrong[0] + 1}"
            )
        if len(cells) < columns:
            raise ValueError(f"row {at} of the data has {len(cells)} columns, not {columns}")
        table.append([float(cell) for cell in cells])
    found = check_table(np.array(table).reshape(len(table), columns), (ROWS, columns))
    for name, column in zip(SUMS, found.T[len(FEATURES) :], strict=True):
        total = float(column.sum())
        if abs(total - SUMS[name]) > 1e-6:
            raise ValueError(f"its column {name} sums to {total:.10g}, not {SUMS[name]:.10g}")
    if fingerprint(found) != CELLS:
        raise ValueError("some of its cells have other values")
    return found


def fingerprint(table: Array) -> str:
    """SHA-256 of all cells, to nine digits."""
    return sha256(" ".join(f"{cell:.9g}" for cell in table.ravel().tolist()).encode()).hexdigest()


def _rows(content: bytes) -> list[tuple[Any, ...]]:
    openpyxl = needs("openpyxl", "Reading the residential building data")
    try:
        with warnings.catch_warnings():
            # Of styles and extensions of Excel that it leaves out.
            warnings.simplefilter("ignore")
            book = openpyxl.load_workbook(BytesIO(content), read_only=True, data_only=True)
            return list(book.worksheets[0].iter_rows(values_only=True))
    except Exception as error:
        # What is no workbook, or no longer one, makes openpyxl fail in as many ways as there are.
        raise ValueError(
            f"it cannot be read as a workbook ({type(error).__name__}: {error})"
        ) from None


BUILDING = Source(
    title="residential building",
    names=("Residential-Building-Data-Set.xlsx",),
    parse=_parse,
    page="https://archive.ics.uci.edu/dataset/437/residential+building+data+set",
    archive_path="ml/machine-learning-databases/00437/Residential-Building-Data-Set.xlsx",
)
DESCRIPTION = """Residential building: 372 apartment houses in Tehran.

Dates, eight physical and financial variables of the project (V-1 to V-8), and nineteen variables of
the economy (V-11 to V-29) in each of five quarters before it (lag 1 to lag 5); the label is the
sales price (V-9) in units of ten thousand rials. The columns differ so much in scale that
unscaled they have a numerical rank of 76 out of 107. Providers are sellers who would like 20
(modest) or 40 (severe) more, in the same unit.

M. H. Rafiei and H. Adeli (2016), A novel machine learning model for estimation of sale prices of
real estate units, Journal of Construction Engineering and Management 142(2), 04015066.
"""


def load_residential_building(
    folder: Any = None,
    *,
    as_frame: bool = False,
    cache: Any = None,
    base_url: str | None = None,
    progress: bool = True,
) -> Bunch:
    """Load the apartment houses: 372 rows, 107 features, the sales price as label.

    Reading the workbook needs openpyxl, of the extra ``spgls[data]``.

    Parameters
    ----------
    folder : str or path, optional
        Folder that holds ``Residential-Building-Data-Set.xlsx``. By default the one that
        ``SPGLS_DATA`` names is tried; where it has no such file, it is downloaded from the UCI
        archive once.
    as_frame : bool
        Whether ``X`` and ``y`` are a pandas data frame and series.
    cache : str or path, optional
        Where downloads are kept; by default what ``SPGLS_CACHE`` names, else the system's folder
        for such files.
    base_url : str, optional
        Address of the archive, or of a copy of it; by default what ``SPGLS_UCI_URL`` names.
    progress : bool
        Whether a download shows a bar.

    Returns
    -------
    Bunch
        As :func:`load_wine_quality`. The goals are in the unit of the labels: to scale the
        labels as the papers do, divide labels and goals alike.

    Raises
    ------
    FileNotFoundError
        The folder does not hold the file.
    DataFileError
        The file is not this set.
    ConnectionError, OSError
        It could not be downloaded, or not be stored; nothing half-written stays behind.

    Examples
    --------
    >>> from spgls.datasets import load_residential_building
    >>> building = load_residential_building()  # doctest: +SKIP
    >>> building.feature_names[12]  # doctest: +SKIP
    'V-11 lag 1'
    """
    pandas = frames(as_frame)
    path, table = find(BUILDING, folder, cache=cache, base_url=base_url, progress=progress)
    return as_bunch(
        table[:, : len(FEATURES)],
        table[:, len(FEATURES)],
        feature_names=FEATURES,
        target_name="V-9",
        description=DESCRIPTION,
        licence=CC_BY,
        path=path,
        goals=attackers(
            (Shift(20.0, lower=0.0), Shift(40.0, lower=0.0)), (Shift(20.0), Shift(40.0))
        ),
        pandas=pandas,
    )
