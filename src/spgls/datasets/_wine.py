"""Red wine: marks of experts from chemical measurements."""

from __future__ import annotations

from functools import partial
from typing import Any

from sklearn.utils import Bunch

from spgls.datasets._bunch import CC_BY, as_bunch, attackers, frames
from spgls.datasets._find import find
from spgls.datasets._source import Source, csv_table
from spgls.game.goals import Floor

__all__ = ["WINE", "load_wine_quality"]

WINE = Source(
    title="red wine",
    names=("winequality-red.csv",),
    parse=partial(csv_table, delimiter=";", header=1, shape=(1599, 12)),
    page="https://archive.ics.uci.edu/dataset/186/wine+quality",
    sha256="4a402cf041b025d4566d954c3b9ba8635a3a8a01e039005d97d6a710278cf05e",
    archive_path="ml/machine-learning-databases/wine-quality/winequality-red.csv",
)
FEATURES = (
    "fixed acidity",
    "volatile acidity",
    "citric acid",
    "residual sugar",
    "chlorides",
    "free sulfur dioxide",
    "total sulfur dioxide",
    "density",
    "pH",
    "sulphates",
    "alcohol",
)
DESCRIPTION = """Red wine: 1599 Portuguese red wines.

Eleven chemical measurements and the median mark of three or more experts, from 3 to 8 on a scale
of 0 to 10. Providers are producers who would like a mark of at least 6 (modest) or 8 (severe). The
code of the 2022 paper has 7 in place of 8, its text says "the same as 2021". With 8, the highest
mark there is, everyone wants the same: the goals are constant.

P. Cortez, A. Cerdeira, F. Almeida, T. Matos and J. Reis (2009), Modeling wine preferences by data
mining from physicochemical properties, Decision Support Systems 47(4), 547-553.
"""


def load_wine_quality(
    folder: Any = None,
    *,
    as_frame: bool = False,
    cache: Any = None,
    base_url: str | None = None,
    progress: bool = True,
) -> Bunch:
    """Load the red wines: 1599 rows, 11 features, the mark of experts as label.

    Parameters
    ----------
    folder : str or path, optional
        Folder that holds ``winequality-red.csv``. By default the one that ``SPGLS_DATA`` names is
        tried; where it has no such file, it is downloaded from the UCI archive once.
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
        ``X``, ``y``, ``feature_names``, ``target_name``, ``description`` (also ``DESCR``),
        ``licence``, ``filename``, and ``goals``: by protocol (``"2021"``, ``"2022"`` as in the
        code, ``"2022-text"`` as in the paper) and strength (``"modest"``, ``"severe"``).

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
    >>> from spgls.datasets import load_wine_quality
    >>> wine = load_wine_quality()  # doctest: +SKIP
    >>> wine.goals["2022"]["modest"]  # doctest: +SKIP
    Floor(level=6.0)
    """
    pandas = frames(as_frame)
    path, table = find(WINE, folder, cache=cache, base_url=base_url, progress=progress)
    return as_bunch(
        table[:, :-1],
        table[:, -1],
        feature_names=FEATURES,
        target_name="quality",
        description=DESCRIPTION,
        licence=CC_BY,
        path=path,
        goals=attackers(
            (Floor(6.0), Floor(8.0)), (Floor(6.0), Floor(7.0)), (Floor(6.0), Floor(8.0))
        ),
        pandas=pandas,
    )
