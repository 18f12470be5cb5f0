"""Data, root climbing and the notion of an exact zero, common to the high-precision oracles."""

from __future__ import annotations

from dataclasses import dataclass

from mpmath import mp, mpf

STEPS = 2000


class TooFewDigits(ArithmeticError):
    """The working precision drowned an iteration in rounding; more digits will do."""


@dataclass(frozen=True)
class Game:
    """The data, converted exactly."""

    sigma: list[mpf]
    eta: list[mpf]
    zeta: list[mpf]
    r_yy: mpf
    r_yz: mpf
    r_zz: mpf
    nullity: int
    gamma: mpf

    @classmethod
    def from_floats(cls, sigma, eta, zeta, r_yy, r_yz, r_zz, nullity, gamma):
        sigma, eta, zeta = ([mpf(float(v)) for v in vector] for vector in (sigma, eta, zeta))
        if not len(sigma) == len(eta) == len(zeta):
            raise ValueError("sigma, eta and zeta must have one length")
        if any(v <= 0 for v in sigma) or r_zz < 0 or gamma <= 0 or nullity < 0:
            raise ValueError("sigma and gamma must be positive, r_zz and nullity nonnegative")
        grams = (mpf(float(v)) for v in (r_yy, r_yz, r_zz))
        return cls(sigma, eta, zeta, *grams, int(nullity), mpf(float(gamma)))

    def rounded(self) -> Game:
        """The data in the working precision, so that equal data stay equal in arithmetic."""
        vectors = ([+v for v in vector] for vector in (self.sigma, self.eta, self.zeta))
        return Game(*vectors, +self.r_yy, +self.r_yz, +self.r_zz, self.nullity, +self.gamma)

    @property
    def size(self) -> mpf:
        """|y|^2 + |z|^2, the scale of a negligible loss."""
        return mp.fdot(self.eta, self.eta) + mp.fdot(self.zeta, self.zeta) + self.r_yy + self.r_zz

    @property
    def top(self) -> mpf:
        """A bound of the largest eigenvalue of A, the scale of a negligible multiplier."""
        return max((v * v for v in self.sigma), default=mpf(0)) + self.size / self.gamma

    def loss(self, x, c) -> mpf:
        rows = zip(self.sigma, x, self.eta, self.zeta, strict=True)
        fit = mp.fsum((s * xi + c * z - e) ** 2 for s, xi, e, z in rows)
        return fit + self.r_yy - 2 * c * self.r_yz + c * c * self.r_zz


def negligible() -> mpf:
    """Relative size under which a computed number counts as an exact zero.

    No data of 53 bits can produce such a number by accident, and one that did would move the
    answer by less than the digits asked for.
    """
    return mpf(10) ** (-mp.dps // 2)


def climb(norm_and_fall, mu, radius, game: Game) -> mpf:
    """Solve |u(mu)| = radius for mu > 0 from a point left of the root.

    1 / |u| is concave and increasing in mu, so Newton's method on it climbs to the root without
    passing it. ``norm_and_fall`` returns |u|^2 and -u'u_mu.
    """
    if not mu:
        mu = game.top * mpf(10) ** (-mp.dps // 3)
    finish = False
    for _ in range(STEPS):
        norm2, fall = norm_and_fall(mu)
        step = (mp.sqrt(norm2) / radius - 1) * norm2 / fall
        if mu + step <= 0:
            mu /= 10**6
            continue
        mu += step
        if finish:
            return mu
        finish = abs(step) <= negligible() * mu
    raise TooFewDigits
