"""Blog feedback: comments that a post will get in a day."""

from __future__ import annotations

from functools import partial
from typing import Any

from sklearn.utils import Bunch

from spgls.datasets._bunch import CC_BY, as_bunch, attackers, frames
from spgls.datasets._find import find
from spgls.datasets._source import Source, csv_table
from spgls.game.goals import Shift

__all__ = ["BLOG", "load_blog_feedback"]

BLOG = Source(
    title="blog feedback",
    names=("blogData_train.csv", "blogData_train.csv.xz", "BlogFeedback.zip"),
    parse=partial(csv_table, delimiter=",", header=0, shape=(52397, 281)),
    page="https://archive.ics.uci.edu/dataset/304/blogfeedback",
    sha256="f3cc953ea9913361be6d3bae2c393eef73eab57b1cb8e5bf8a22f1e5eb5dd05f",
    archive_path="ml/machine-learning-databases/00304/BlogFeedback.zip",
    archive_sha256="1ba74e5ad920f7cd037502b2968581cc695146a226a73eff52fe8ad875ed4bcf",
)
_COUNTS = (
    "comments",
    "comments last day",
    "comments day before last",
    "comments first day",
    "comments last day change",
    "links",
    "links last day",
    "links day before last",
    "links first day",
    "links last day change",
)
_STATISTICS = ("mean", "std", "min", "max", "median")
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
FEATURES = (
    *(f"source {count} {statistic}" for count in _COUNTS for statistic in _STATISTICS),
    *_COUNTS,
    "hours since publication",
    "length",
    *(f"word {k}" for k in range(1, 201)),
    *(f"basetime {day}" for day in _DAYS),
    *(f"published {day}" for day in _DAYS),
    "parents",
    *(f"parents comments {statistic}" for statistic in ("min", "max", "mean")),
)
DESCRIPTION = """Blog feedback: 52397 posts of Hungarian blogs.

280 features of a post at a moment in time (basetime): statistics of its blog (source), counts of
comments and links of the post itself, 200 frequent words, days of the week, parent posts; the label
is the number of comments in the next day. The file has no header: the names follow its
documentation. Four columns are constant. Providers would like 5 (modest) or 10 (severe) comments
more in the paper of 2022, and as many fewer, but not below none, in that of 2021.

K. Buza (2014), Feedback prediction for blogs, in Data Analysis, Machine Learning and Knowledge
Discovery, Springer, 145-152.
"""


def load_blog_feedback(
    folder: Any = None,
    *,
    as_frame: bool = False,
    cache: Any = None,
    base_url: str | None = None,
    progress: bool = True,
) -> Bunch:
    """Load the posts: 52397 rows, 280 features, the number of comments to come as label.

    Parsing takes two or three seconds.

    Parameters
    ----------
    folder : str or path, optional
        Folder that holds ``blogData_train.csv``, the same as ``blogData_train.csv.xz``, or
        ``BlogFeedback.zip``. By default the one that ``SPGLS_DATA`` names is tried; where it has
        no such file, the last is downloaded from the UCI archive once.
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
        As :func:`load_wine_quality`.

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
    >>> from spgls.datasets import load_blog_feedback
    >>> blog = load_blog_feedback()  # doctest: +SKIP
    >>> blog.goals["2021"]["modest"], blog.goals["2022"]["modest"]  # doctest: +SKIP
    (Shift(amount=-5.0, lower=0.0), Shift(amount=5.0))
    """
    pandas = frames(as_frame)
    path, table = find(BLOG, folder, cache=cache, base_url=base_url, progress=progress)
    return as_bunch(
        table[:, :-1],
        table[:, -1],
        feature_names=FEATURES,
        target_name="comments next day",
        description=DESCRIPTION,
        licence=CC_BY,
        path=path,
        goals=attackers(
            (Shift(-5.0, lower=0.0), Shift(-10.0, lower=0.0)), (Shift(5.0), Shift(10.0))
        ),
        pandas=pandas,
    )
