"""Linear models that stay right when people change their data in response.

The learner publishes a linear predictor, each data provider then moves its row as far as pays off,
and the predictor is the best possible against that: the Stackelberg prediction game with
least-squares loss, solved globally and certified.
"""

from __future__ import annotations

from spgls.attack import make_attacked_scorer, predict_attacked
from spgls.compare import Comparison, Trial, compare_solvers
from spgls.estimators import StackelbergRegressor
from spgls.game import best_response, gamma_from_pull, movement, undo_response
from spgls.goals import Cap, Constant, Floor, Scale, Shift
from spgls.providers import Population
from spgls.solve import certify, solve
from spgls.solvers import Solution, Stats, Status, Step
from spgls.sphere import Certificate

__version__ = "0.1.0"

__all__ = [
    "Cap",
    "Certificate",
    "Comparison",
    "Constant",
    "Floor",
    "Population",
    "Scale",
    "Shift",
    "Solution",
    "StackelbergRegressor",
    "Stats",
    "Status",
    "Step",
    "Trial",
    "best_response",
    "certify",
    "compare_solvers",
    "gamma_from_pull",
    "make_attacked_scorer",
    "movement",
    "predict_attacked",
    "solve",
    "undo_response",
]
