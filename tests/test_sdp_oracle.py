"""Small games held against the single SDP of the paper (eq. SDP), solved by an interior point code.

The lemma: the value of the game is the largest ``mu`` for which some ``lambda`` makes
``A - mu B + lambda C`` positive semidefinite.
"""

from __future__ import annotations

import warnings

import cvxpy as cp
import numpy as np
import pytest

import spgls

from .builders import Game, sdp_matrices, unit_game

GAMES = 50


def largest_mu(game: Game) -> tuple[float, float]:
    """``mu`` and ``lambda``, after a congruence that makes the first block of C the identity."""
    n = game.X.shape[1]
    scale = np.r_[np.full(n, np.sqrt(game.gamma)), 1.0, 1.0]
    A, B, C = (np.outer(scale, scale) * part for part in sdp_matrices(game))
    mu, multiplier = cp.Variable(), cp.Variable()
    problem = cp.Problem(cp.Maximize(mu), [A - mu * B + multiplier * C >> 0])
    # On some machines the sharper tolerance is beyond the code's own rounding, and it says so; the
    # other is a hundredth of what is compared.
    for tol in (1e-9, 1e-8):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Solution may be inaccurate", UserWarning)
            problem.solve(solver=cp.CLARABEL, tol_gap_abs=tol, tol_gap_rel=tol, tol_feas=tol)
        if problem.status == cp.OPTIMAL:
            break
    assert problem.status == cp.OPTIMAL
    return float(mu.value), float(multiplier.value)


@pytest.mark.parametrize("number", range(GAMES))
def test_value_is_that_of_the_sdp(number):
    this = unit_game(number)
    answer = this.solve()
    mu, _ = largest_mu(this)
    assert answer.status.ok, (this, answer)
    assert abs(answer.objective - mu) <= 1e-6 * (this.y @ this.y), (this, answer, mu)


@pytest.mark.parametrize("number", range(GAMES))
def test_objective_and_multiplier_are_feasible_for_the_sdp(number):
    """A proof of global optimality that needs no conic solver.

    In the SDP the constraint reads ``w'w/gamma - alpha``; in the paper's sphere its multiplier is a
    quarter of that, because ``|v~|^2 + a~^2 - 1 = 4 (w'w/gamma - alpha)/(1 + alpha)^2``.
    """
    this = unit_game(number)
    answer = this.solve()
    A, B, C = sdp_matrices(this)
    slack = A - answer.objective * B + 4.0 * answer.multiplier * C
    size = np.linalg.norm(A, 2) + np.linalg.norm(4.0 * answer.multiplier * C, 2)
    assert np.linalg.eigvalsh(slack)[0] >= -1e-13 * size, (this, answer)


def test_games_lack_rank_or_rows_sometimes():
    games = [unit_game(number) for number in range(GAMES)]
    assert sum(g.X.shape[0] < g.X.shape[1] for g in games) >= 5
    assert sum(np.linalg.matrix_rank(g.X) < min(g.X.shape) for g in games) >= 5
    statuses = {g.solve().status for g in games}
    assert statuses >= {spgls.Status.OPTIMAL, spgls.Status.SEVERAL_OPTIMA}
