"""The game as least squares on a sphere: maps, secular equation, certificate."""

from __future__ import annotations

from spgls.sphere.certificate import Certificate, build_certificate, dual_bound, stationarity
from spgls.sphere.certificate_many import dual_bounds
from spgls.sphere.dense import DensePoint, solve_dense
from spgls.sphere.fixed_norm import solve_fixed_norm
from spgls.sphere.problem import from_sphere, scls_terms, to_sphere
from spgls.sphere.secular import SmallSolution, solve_sphere
from spgls.sphere.secular_many import SmallSolutions, solve_sphere_many

__all__ = [
    "Certificate",
    "DensePoint",
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
    "stationarity",
    "to_sphere",
]
