"""The game at a fixed alpha: least squares on a sphere, solved to about 50 digits."""

from __future__ import annotations

from collections.abc import Sequence

from mpmath import mp, mpf

from ._precise import Game, climb, negligible


def phi(
    alpha: float | mpf,
    sigma: Sequence[float],
    eta: Sequence[float],
    zeta: Sequence[float],
    r_yy: float,
    r_yz: float,
    r_zz: float,
    nullity: int,
    gamma: float,
    dps: int = 50,
) -> mpf:
    """Least loss for a fixed alpha in [0, inf]; inf where no x has the norm alpha asks for."""
    game = Game.from_floats(sigma, eta, zeta, r_yy, r_yz, r_zz, nullity, gamma)
    with mp.workdps(4 * dps):
        alpha = mpf(alpha)
        s = 1 / (1 + alpha)
        c = 1 - s if mp.isinf(alpha) else alpha * s
        x = _best_on_sphere(game, c, game.gamma * s * c)
        return mp.inf if x is None else game.loss(x, c)


def _best_on_sphere(game: Game, c: mpf, square: mpf) -> list[mpf] | None:
    """The x that fits eta - c zeta best with |x|^2 + x0^2 = square; the null space takes x0."""
    if not square or (game.nullity and not game.sigma):
        return [mpf(0)] * len(game.sigma)
    if not game.sigma:
        return None
    d = [v * v for v in game.sigma]
    floor = mpf(0) if game.nullity else min(d)
    gap = [v - floor for v in d]
    p = [s * (e - c * z) for s, e, z in zip(game.sigma, game.eta, game.zeta, strict=True)]
    low = [i for i, g in enumerate(gap) if not g]
    edge = mp.sqrt(mp.fsum(p[i] ** 2 for i in low))
    if not edge:
        x = [v / g if g else mpf(0) for v, g in zip(p, gap, strict=True)]
        spare = square - mp.fdot(x, x)
        if spare >= -negligible() * square:
            if low:
                x[low[0]] = mp.sqrt(max(spare, mpf(0)))
            return x

    def x_of(mu):
        return [v / (g + mu) if v else mpf(0) for v, g in zip(p, gap, strict=True)]

    def norm_and_fall(mu):
        x = x_of(mu)
        return mp.fdot(x, x), mp.fsum(v * v / (g + mu) for v, g in zip(x, gap, strict=True))

    radius = mp.sqrt(square)
    return x_of(climb(norm_and_fall, edge / radius, radius, game))
