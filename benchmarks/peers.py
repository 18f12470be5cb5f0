"""What a user would run instead, on the paper's sphere problem, with every product counted.

The problem: minimise ``r'Hr + 2g'r`` on ``|r| = 1`` for ``r = (w~, alpha~)``, ``H = L'L``,
``L = [sqrt(gamma)/2 X, z/2]`` and ``g = L'(z/2 - y)``. The peers reach X through NumPy or SciPy and
nothing else, so ``L'(Lr)`` reads it twice.

Traps
-----
- GALAHAD's documentation asks for ``OMP_PROC_BIND=TRUE``. That pins the importing thread, and all
  it starts later, to one core, and GLTR does not need it: leave it unset.
- GLTR hands back a fresh ``x`` on each call, so without room for all Lanczos vectors
  (``extra_vectors``) what it returns is wrong, and it reports success also when it ran out of
  iterations: judge the answer, not the status.
- SciPy's trlib is private and knows the ball, not the sphere: right only where the optimum of the
  ball lies on its boundary, and it stops early whatever the tolerance.
- pymanopt asks for the Euclidean gradient at every Hessian product: keep the last one. It stops at
  points that are not the global optimum, which only the judge can tell.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import pymanopt
from galahad import gltr
from pymanopt.manifolds import Sphere
from pymanopt.optimizers import TrustRegions
from scipy.optimize._trlib import get_trlib_quadratic_subproblem

from spgls.sphere import from_sphere, to_sphere

__all__ = [
    "Answer",
    "Game",
    "Judgement",
    "Peer",
    "SphereProblem",
    "eigh_socp",
    "galahad_gltr",
    "judge",
    "pymanopt_rtr",
    "scipy_trlib",
    "tighten",
]

#: GLTR keeps this many Lanczos vectors, so it can take this many steps.
STEPS = 1000
#: Outer iterations of pymanopt.
OUTER = 500
#: Relative tolerances to try, loosest first.
TOLERANCES = tuple(10.0 ** (-k / 2) for k in range(2, 25))


class Game(NamedTuple):
    """Data and strength."""

    X: Any
    y: np.ndarray
    z: np.ndarray
    gamma: float


class Answer(NamedTuple):
    """What a peer returns.

    ``products`` counts each ``L'(Lr)`` once, and so the gradient that shares ``Lr`` with the cost,
    and ``g``: the reads of X that a kernel fusing both halves would need.
    """

    coef: np.ndarray
    products: int
    seconds: float


Peer = Callable[[Game, float], Answer]


class SphereProblem:
    """``H`` and ``g`` without forming either, counting the reads of X."""

    def __init__(self, game: Game) -> None:
        self._X, self._XT, self._z = game.X, game.X.T, game.z
        self._scale = np.sqrt(game.gamma) / 2
        self.size = game.X.shape[1] + 1
        self.applies = self.crosses = 0
        self.centre = game.z / 2 - game.y
        self.g = self.cross(self.centre)

    def apply(self, r: np.ndarray) -> np.ndarray:
        """``L r``."""
        self.applies += 1
        return self._scale * (self._X @ r[:-1]) + r[-1] / 2 * self._z

    def cross(self, u: np.ndarray) -> np.ndarray:
        """``L' u``."""
        self.crosses += 1
        return np.append(self._scale * (self._XT @ u), self._z @ u / 2)

    def product(self, r: np.ndarray) -> np.ndarray:
        """``H r``."""
        return self.cross(self.apply(r))

    @property
    def products(self) -> int:
        """Reads of X, were ``L'(Lr)`` one read."""
        return max(self.applies, self.crosses)


def galahad_gltr(game: Game, tolerance: float) -> Answer:
    """GALAHAD's GLTR on the sphere; the tolerance is relative to ``|g|``."""
    start = perf_counter()
    problem = SphereProblem(game)
    options = gltr.initialize()
    options |= {
        "equality_problem": True,
        "boundary": True,
        "itmax": STEPS,
        "Lanczos_itmax": STEPS,
        "extra_vectors": STEPS + 2,
        "stop_relative": tolerance,
        "stop_absolute": 0.0,
    }
    gltr.load_options(options)
    # It minimises r'Hr/2 + g'r: with 2H and 2g its objective is ours.
    status, r, residual, v = 1, None, 2.0 * problem.g, np.zeros(problem.size)
    while status > 0:
        status, r, residual, v = gltr.solve_problem(status, problem.size, 1.0, residual, v)
        if status == 3:
            v = 2.0 * problem.product(v)
        elif status == 5:
            residual = 2.0 * problem.g
    gltr.terminate()
    coef = from_sphere(r[:-1], float(r[-1]), game.gamma).w
    return Answer(coef, problem.products, perf_counter() - start)


def pymanopt_rtr(game: Game, tolerance: float) -> Answer:
    """pymanopt's Riemannian trust regions from ones/norm; the tolerance is relative to ``|g|``."""
    start = perf_counter()
    problem = SphereProblem(game)
    manifold = Sphere(problem.size)
    # The point it stands at and the one it tries: after a rejection it goes back.
    recent: deque[tuple[np.ndarray, np.ndarray, list[np.ndarray]]] = deque(maxlen=2)

    def at(r: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
        for point, residual, gradients in recent:
            if point is r:
                return residual, gradients
        recent.append((r, problem.apply(r) + problem.centre, []))
        return recent[-1][1:]

    @pymanopt.function.numpy(manifold)
    def cost(r):
        residual, _ = at(r)
        return float(residual @ residual)

    @pymanopt.function.numpy(manifold)
    def gradient(r):
        residual, gradients = at(r)
        if not gradients:
            gradients.append(2.0 * problem.cross(residual))
        return gradients[0]

    @pymanopt.function.numpy(manifold)
    def hessian(r, direction):
        return 2.0 * problem.product(direction)

    optimizer = TrustRegions(
        verbosity=0,
        max_iterations=OUTER,
        min_gradient_norm=tolerance * 2.0 * float(np.linalg.norm(problem.g)),
        min_step_size=0.0,
    )
    result = optimizer.run(
        pymanopt.Problem(manifold, cost, euclidean_gradient=gradient, euclidean_hessian=hessian),
        initial_point=np.full(problem.size, 1.0 / np.sqrt(problem.size)),
    )
    r = result.point
    coef = from_sphere(r[:-1], float(r[-1]), game.gamma).w
    return Answer(coef, problem.products, perf_counter() - start)


def scipy_trlib(game: Game, tolerance: float) -> Answer:
    """SciPy's trlib on the unit ball; the tolerance is relative to ``|g|``."""
    start = perf_counter()
    problem = SphereProblem(game)
    subproblem = get_trlib_quadratic_subproblem(tolerance, tolerance)(
        np.zeros(problem.size),
        lambda r: 0.0,
        lambda r: 2.0 * problem.g,
        None,
        lambda r, v: 2.0 * problem.product(v),
    )
    r, _ = subproblem.solve(1.0)
    r = r / np.linalg.norm(r)
    coef = from_sphere(r[:-1], float(r[-1]), game.gamma).w
    return Answer(coef, problem.products, perf_counter() - start)


def eigh_socp(game: Game, tolerance: float) -> Answer:
    """The paper's SOCP by hand; the tolerance is Clarabel's own. Not a count of products."""
    from conic import socp_by_hand

    start = perf_counter()
    coef = socp_by_hand(game)
    return Answer(coef, 0, perf_counter() - start)


class Judgement(NamedTuple):
    """The one measure all answers are held to.

    Attributes
    ----------
    relative_gap : float
        ``|rho|^2 / (lambda |y|^2)``, a bound on the distance from the global optimum that needs
        only ``H >= 0``; infinite for ``lambda <= 0``, where it proves nothing.
    kkt_residual : float
        ``|rho| / |g|`` for ``rho = (H + lambda I) r + g`` and ``lambda = -r'(Hr + g)``.
    objective : float
        ``|Lr + z/2 - y|^2 / |y|^2``.
    """

    relative_gap: float
    kkt_residual: float
    objective: float


def judge(game: Game, coef: np.ndarray) -> Judgement:
    """Judge coefficients, whoever found them, by the data alone."""
    problem = SphereProblem(game)
    point = to_sphere(coef, game.gamma)
    r = np.append(point.w, point.alpha)
    r /= np.linalg.norm(r)
    error = problem.apply(r) + problem.centre
    slope = problem.cross(error)
    multiplier = -float(r @ slope)
    rho = slope + multiplier * r
    size = float(game.y @ game.y)
    return Judgement(
        float(rho @ rho) / (multiplier * size) if multiplier > 0.0 else np.inf,
        float(np.linalg.norm(rho) / np.linalg.norm(problem.g)),
        float(error @ error) / size,
    )


def tighten(peer: Peer, game: Game, gap: float) -> float:
    """Return the loosest tolerance, by half decades, that brings a peer to the gap.

    A peer that never gets there keeps the tightest.
    """
    for tolerance in TOLERANCES:
        if judge(game, peer(game, tolerance).coef).relative_gap <= gap:
            break
    return tolerance
