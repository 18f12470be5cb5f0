"""The game as least squares on a sphere: maps, secular equation, certificate."""

from __future__ import annotations

from spgls.sphere.by_eigen import DensePoint, solve_dense
from spgls.sphere.certificate import (
    Certificate,
    build_certificate,
    dual_bound,
    dual_bounds,
    stationarities,
    stationarity,
    stationarity_unit,
)
from spgls.sphere.fixed_norm import solve_fixed_norm
from spgls.sphere.point import Outcome, SmallSolution, SmallSolutions
from spgls.sphere.problem import from_sphere, scls_terms, to_sphere
from spgls.sphere.secular import solve_sphere, solve_sphere_many

__all__ = [
    "Certificate",
    "DensePoint",
    "Outcome",
    "SmallSolution",
    "SmallSolutions",
    "build_certificate",
    "dual_bound",
    "dual_bounds",
    "from_sphere",
    "scls_terms",
    "solve_dense",
    "solve_fixed_norm",
    "solve_sphere",
    "solve_sphere_many",
    "stationarities",
    "stationarity",
    "stationarity_unit",
    "to_sphere",
]
