"""Data of the papers: four real sets, from a folder or the UCI archive, and synthetic games.

Also the catalogue of hard games with known answers that the tests use.

Downloads, and the workbook of the building set, need the extra ``spgls[data]``, which is imported
only then.
"""

from __future__ import annotations

from spgls.datasets._blog import load_blog_feedback
from spgls.datasets._building import load_residential_building
from spgls.datasets._catalogue import Answer, Problem, catalogue, load_problem
from spgls.datasets._insurance import load_insurance
from spgls.datasets._source import DataFileError
from spgls.datasets._synthetic import make_dense, make_sparse
from spgls.datasets._wine import load_wine_quality

__all__ = [
    "Answer",
    "DataFileError",
    "Problem",
    "catalogue",
    "load_blog_feedback",
    "load_insurance",
    "load_problem",
    "load_residential_building",
    "load_wine_quality",
    "make_dense",
    "make_sparse",
]
