"""The pole nu_0 of the game, minus the least eigenvalue of its arrow matrix, to high precision."""

from __future__ import annotations

from dataclasses import dataclass

from mpmath import mp, mpf

from ._precise import STEPS, Game, TooFewDigits, negligible


@dataclass(frozen=True)
class Pole:
    """Where A + nu becomes singular, and the directions in which it does.

    ``low`` are the coordinates with gap 0 (zeta is 0 on them), ``rest`` the others; ``free_c``
    says that a direction moving c is singular, and the null space always is one where nu is 0.
    h(nu_0) and m(nu_0) = 2 S_yz - S_zz are kept so that h and m can be written as increments.
    """

    nu: mpf
    gap: list[mpf]
    low: list[int]
    rest: list[int]
    free_c: bool
    h: mpf
    m: mpf
    digits_lost: mpf


def find_pole(game: Game) -> Pole:
    d = [v * v for v in game.sigma]
    d_min = min(d, default=mp.inf)
    lowest = [i for i, v in enumerate(d) if v == d_min]
    touched = any(game.zeta[i] for i in lowest)
    if game.nullity or not game.r_zz:
        nu, gap, low, free_c = mpf(0), d, [], not game.r_zz
    else:
        side = 0 if touched or not d else _sign_of_h(game, d, lowest, -d_min)
        if not touched and d and side >= 0:
            nu, gap, low, free_c = -d_min, [v - d_min for v in d], lowest, side == 0
        else:
            nu, gap = _root_of_h(game, d)
            low, free_c = [], True
    rest = [i for i in range(len(d)) if i not in set(low)]
    h_sum = mp.fsum(game.zeta[i] ** 2 / gap[i] for i in rest)
    m_terms = [game.zeta[i] * (2 * game.eta[i] - game.zeta[i]) / gap[i] for i in rest]
    h = mpf(0) if free_c else game.r_zz + game.gamma * nu + nu * h_sum
    m = 2 * game.r_yz - game.r_zz + nu * mp.fsum(m_terms)
    m_size = 2 * abs(game.r_yz) + game.r_zz + abs(nu) * mp.fsum(m_terms, absolute=True)
    if abs(m) <= negligible() * m_size:
        m = mpf(0)
    lost = mp.log10(m_size / abs(m)) if m else mpf(0)
    lost += mp.log10(game.r_zz / h) if h else 0
    return Pole(nu, gap, low, rest, free_c, h, m, lost)


def _sign_of_h(game, d, lowest, nu) -> int:
    parts = [game.zeta[i] ** 2 / (d[i] + nu) for i in range(len(d)) if i not in set(lowest)]
    h = game.r_zz + game.gamma * nu + nu * mp.fsum(parts)
    return 0 if abs(h) <= negligible() * game.r_zz else int(mp.sign(h))


def _root_of_h(game: Game, d: list[mpf]) -> tuple[mpf, list[mpf]]:
    """The root of h = r_zz + gamma nu + nu sum zeta_i^2 / (d_i + nu) right of its last pole.

    h is concave and increasing there, so Newton's method climbs to the root from any point left
    of it; keeping only one term of the sum gives such points, and the best is within a factor k.
    """
    active = [i for i in range(len(d)) if game.zeta[i]]
    if not active:
        nu = -game.r_zz / game.gamma
        return nu, [v + nu for v in d]
    first = min(d[i] for i in active)
    weights = [(d[i] - first, d[i], game.zeta[i] ** 2) for i in active]
    g = max(_one_term_root(game, v, z2) - shift for shift, v, z2 in weights)
    finish = False
    for _ in range(STEPS):
        nu = g - first
        h = game.r_zz + game.gamma * nu + nu * mp.fsum(z2 / (a + g) for a, _, z2 in weights)
        step = -h / (game.gamma + mp.fsum(v * z2 / (a + g) ** 2 for a, v, z2 in weights))
        g += step
        if finish:
            return g - first, [v - first + g for v in d]
        finish = abs(step) <= negligible() * g
    raise TooFewDigits


def _one_term_root(game, d, z2) -> mpf:
    """Positive t with r_zz + gamma (t - d) + (t - d) z2 / t = 0."""
    half = (game.r_zz - game.gamma * d + z2) / 2
    root = mp.sqrt(half * half + game.gamma * d * z2)
    return d * z2 / (half + root) if half > 0 else (root - half) / game.gamma
