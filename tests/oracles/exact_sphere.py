"""The reduced game solved to about 50 digits, as a quadratic on a sphere.

With u = (x, x0, sqrt(gamma) (c - 1/2)) the constraint |x|^2 + x0^2 = gamma c (1 - c) is the sphere
|u|^2 = gamma / 4 and the loss is u'Au - 2 b'u + const with A an arrow matrix: the trust-region
subproblem. Its global optima are the points with (A + nu) u = b, A + nu >= 0, so nu >= nu_0,
minus the least eigenvalue of A (the "pole"). Either some nu > nu_0 solves the sphere equation
(then the optimum is unique), or nu = nu_0 does (the hard case).

Everything that varies with nu is written in mu = nu - nu_0 and in gap_i = d_i + nu_0, so nothing
cancels near the pole except the pole's own residues; ``_digits_lost`` counts what those lose, and
the problem is solved again at twice the precision until enough digits are left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mpmath import mp, mpf

from ._fixed_alpha import phi
from ._pole import Pole, find_pole
from ._precise import Game, TooFewDigits, climb, negligible

__all__ = ["ExactAnswer", "phi", "solve_exact", "solve_precise"]

ALMOST_TIED = mpf(10) ** -15


@dataclass(frozen=True)
class ExactAnswer:
    """Optimum of one reduced game; numbers carry ``dps`` digits, so use ``mp.workdps`` on them.

    ``alpha`` is the smallest optimal alpha and ``alpha_max`` the largest one. ``status`` is
    "unique", "several" (the optimal x, and perhaps alpha, is not unique) or "unattained" (only
    alpha = inf is optimal). ``tie_alpha`` is another feasible alpha whose loss is
    ``gap_to_other`` above the optimum: the smallest such alpha if some are within
    1e-15 (|y|^2 + |z|^2), otherwise the one of least loss. "Another" differs by more than one part
    in a thousand.
    """

    value: mpf
    alpha: mpf
    alpha_max: mpf
    c: mpf
    s: mpf
    x: tuple[mpf, ...]
    x0: mpf
    nu: mpf
    nu_pole: mpf
    status: str
    tie_alpha: mpf
    gap_to_other: mpf


def solve_exact(
    sigma: Sequence[float],
    eta: Sequence[float],
    zeta: Sequence[float],
    r_yy: float,
    r_yz: float,
    r_zz: float,
    nullity: int,
    gamma: float,
    dps: int = 50,
) -> ExactAnswer:
    """Solve the game whose data are exactly these floats."""
    game = Game.from_floats(sigma, eta, zeta, r_yy, r_yz, r_zz, nullity, gamma)
    return solve_precise(game, dps)


def solve_precise(game: Game, dps: int = 50) -> ExactAnswer:
    """Solve a game whose data carry enough digits themselves (``exact_game`` makes such)."""
    digits = 4 * dps
    while digits <= 64 * dps:
        with mp.workdps(digits):
            try:
                answer, lost = _solve(game.rounded())
            except TooFewDigits:
                lost = mp.inf
        if digits - lost >= dps + 10:
            return answer
        digits *= 2
    raise TooFewDigits(f"{digits} digits do not give {dps} digits of this game's answer")


def _solve(game: Game) -> tuple[ExactAnswer, mpf]:
    pole = find_pole(game)
    found = _hard_case(game, pole)
    if found is None:
        found = _end_point(game, pole)
    if found is None:
        found = _interior(game, pole)
    nu, c, s, x, x0, status, alpha_max = found
    value = game.loss(x, c)
    alpha = c / s if s else mp.inf
    tie_alpha, gap = _almost_ties(game, pole, nu, c, x, value, alpha)
    answer = ExactAnswer(
        value, alpha, alpha_max, c, s, tuple(x), x0, nu, pole.nu, status, tie_alpha, gap
    )
    return answer, pole.digits_lost + _digits_lost(game, pole, nu, c, s)


def _digits_lost(game, pole, nu, c, s) -> mpf:
    """Digits by which errors of the working precision may be amplified in c, s and nu."""
    lost = sum(-mp.log10(part) for part in (c, s) if part)
    if nu > pole.nu and c and s:
        lost += max(0, mp.log10((game.top + abs(nu)) / (nu - pole.nu)))
    return lost


def _x_of(game: Game, gap, mu, c) -> list[mpf]:
    rows = zip(game.sigma, game.eta, game.zeta, gap, strict=True)
    return [s * (e - c * z) / (g + mu) if g + mu else mpf(0) for s, e, z, g in rows]


def _sphere_roots(game: Game, pole: Pole) -> tuple[mpf, mpf] | None:
    """Both c with |x(c)|^2 = gamma c (1 - c), x(c) = sigma (eta - c zeta) / gap on ``rest``."""
    rows = [
        (game.sigma[i] * game.eta[i] / pole.gap[i], game.sigma[i] * game.zeta[i] / pole.gap[i])
        for i in pole.rest
    ]
    q2 = game.gamma + mp.fsum(b * b for _, b in rows)
    q1 = game.gamma + 2 * mp.fsum(a * b for a, b in rows)
    q0 = mp.fsum(a * a for a, _ in rows)
    square = q1 * q1 - 4 * q0 * q2
    if abs(square) <= negligible() * q1 * q1:
        square = mpf(0)
    if square < 0:
        return None
    larger = q1 + mp.sqrt(square)
    return 2 * q0 / larger, larger / (2 * q2)


def _hard_case(game: Game, pole: Pole):
    """The optimum at nu = nu_0, or None if the sphere is out of reach there."""
    if any(game.eta[i] for i in pole.low) or (pole.free_c and pole.m):
        return None
    if pole.free_c:
        roots = _sphere_roots(game, pole)
        if roots is None:
            return None
        c, c_max = roots
        s_max = 1 - c_max
        alpha_max = c_max / s_max if s_max > negligible() else mp.inf
        x, x0 = _x_of(game, pole.gap, 0, c), mpf(0)
        status = "several" if c_max > c else "unique"
        return pole.nu, c, 1 - c, x, x0, status, alpha_max
    w = pole.m / (2 * pole.h)
    c, s = _snap(mpf(1) / 2 + w), _snap(mpf(1) / 2 - w)
    if not c or not s:
        c, s = (mpf(0), mpf(1)) if not c else (mpf(1), mpf(0))
    x = _x_of(game, pole.gap, 0, c)
    norm2 = mp.fdot(x, x)
    spare = game.gamma * c * s - norm2
    if abs(spare) <= negligible() * norm2:
        spare = mpf(0)
    if spare < 0:
        return None
    x0 = mp.sqrt(spare)
    if pole.low:
        x[pole.low[0]], x0 = x0, mpf(0)
    status = "several" if spare else "unique" if s else "unattained"
    return pole.nu, c, s, x, x0, status, c / s if s else mp.inf


def _snap(part: mpf) -> mpf:
    return mpf(0) if abs(part) <= negligible() else part


def _end_point(game: Game, pole: Pole):
    """The optimum at x = 0: c = 0 needs eta = 0 and c = 1 needs eta = zeta, or nu is not free."""
    still = [mpf(0)] * len(game.sigma)
    nu = -2 * game.r_yz / game.gamma
    if not any(game.eta) and nu > pole.nu:
        return nu, mpf(0), mpf(1), still, mpf(0), "unique", mpf(0)
    nu = -2 * (game.r_zz - game.r_yz) / game.gamma
    if game.eta == game.zeta and nu > pole.nu:
        return nu, mpf(1), mpf(0), still, mpf(0), "unattained", mp.inf
    return None


def _interior(game: Game, pole: Pole):
    """The optimum at nu > nu_0, where |u(nu)| = sqrt(gamma) / 2."""
    gamma = game.gamma
    cross = [s * z for s, z in zip(game.sigma, game.zeta, strict=True)]
    rest = [
        (game.sigma[i] ** 2 * game.zeta[i], game.eta[i], game.zeta[i], pole.gap[i])
        for i in pole.rest
        if game.zeta[i]
    ]

    def point(mu):
        scaled = [(dz / (g * (g + mu)), e, z) for dz, e, z, g in rest]
        h_slope = gamma + mp.fsum(t * z for t, _, z in scaled)
        m_slope = mp.fsum(t * (2 * e - z) for t, e, z in scaled)
        h = pole.h + mu * h_slope
        w = (pole.m + mu * m_slope) / (2 * h)
        return w, h, _x_of(game, pole.gap, mu, mpf(1) / 2 + w)

    def norm_and_fall(mu):
        w, h, x = point(mu)
        x_gap = [v / (g + mu) for v, g in zip(x, pole.gap, strict=True)]
        dc = (mp.fdot(cross, x_gap) - gamma * w) / h
        dx_x = mp.fsum(v * (xi + p * dc) for v, xi, p in zip(x_gap, x, cross, strict=True))
        return mp.fdot(x, x) + gamma * w * w, dx_x - gamma * w * dc

    radius = mp.sqrt(gamma) / 2
    mu = climb(norm_and_fall, _pole_distance(game, pole) / radius, radius, game)
    w, _, x = point(mu)
    c, s = mpf(1) / 2 + w, mpf(1) / 2 - w
    return pole.nu + mu, c, s, x, mpf(0), "unique", c / s


def _pole_distance(game: Game, pole: Pole) -> mpf:
    """Length of the part of b along the singular directions: a lower bound of mu * radius."""
    part = mp.fsum((game.sigma[i] * game.eta[i]) ** 2 for i in pole.low)
    if pole.free_c:
        rows = ((game.sigma[i] * game.zeta[i] / pole.gap[i]) ** 2 for i in pole.rest)
        part += pole.m**2 / (4 * (game.gamma + mp.fsum(rows)))
    return mp.sqrt(part)


def _almost_ties(game, pole, nu, c, x, value, alpha):
    """Feasible points far from the optimum in alpha that may cost hardly more, and the best.

    They are the ends c = 0 and c = 1, the two points of the sphere equation at nu_0, and the
    mirror image of the optimum in the hyperplane orthogonal to the singular direction v that
    moves c; A is unchanged by that reflection, so the image costs 4 (nu - nu_0) (u'v)^2 more.
    """
    still = [mpf(0)] * len(game.sigma)
    others = [(end, game.loss(still, end)) for end in (mpf(0), mpf(1))]
    roots = _sphere_roots(game, pole) or ()
    others += [(root, game.loss(_x_of(game, pole.gap, 0, root), root)) for root in roots]
    if pole.free_c:
        slope = [game.sigma[i] * game.zeta[i] / pole.gap[i] for i in pole.rest]
        q2 = game.gamma + mp.fdot(slope, slope)
        along = game.gamma * (c - mpf(1) / 2) - mp.fdot(slope, [x[i] for i in pole.rest])
        excess = 4 * (nu - pole.nu) * along**2 / q2
        others.append((c - 2 * along / q2, value + excess))
    far = []
    for other, loss in others:
        s = _snap(1 - other)
        other_alpha = other / s if s else mp.inf
        if not _alike(other_alpha, alpha):
            far.append((other_alpha, max(loss - value, mpf(0))))
    near = [item for item in far if item[1] <= ALMOST_TIED * game.size]
    return min(near) if near else min(far, key=lambda item: item[1])


def _alike(first: mpf, second: mpf) -> bool:
    return first == second or abs(first - second) <= mpf("1e-3") * max(first, second) < mp.inf
